"Answers that must have more than the decision, against asking every legal row there is."
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import ensemble
from test_boxes import MODELS, fitted, labels, table

from gradual_cf.all import PLAUSIBLE, GradualCF, load_loans, plausible, tabular
from gradual_cf.search.proven import _IS_OPTIMAL, NONE_EXISTS

pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


def test_plausible_answers_are_the_nearest_among_those_whose_pairs_are_met():
    "By asking everything: a strength above 1 looks at pairs, too."
    rng = np.random.default_rng(3)
    X = table(rng)
    model = MODELS['pipe_logistic']().fit(X, labels(rng, X))
    cf = GradualCF(model, tabular(X, read=dict(integer=['c'])), plausible(1.5)).fit(X)
    rows = X.sample(2, random_state=2)
    target = 1 - model.predict(rows)
    every = pd.DataFrame(itertools.product(range(6), range(-3, 4), range(int(X.c.max()) + 1), 'wxyz'), columns=list(X)).astype(X.dtypes)
    found = cf.explain(rows, target, proof='distance')
    x, (_, enc, _, label) = cf.encode(every).x, cf.ask(rows, target)
    for i in range(len(rows)):
        same = torch.full((len(x),), i)
        fine = cf.satisfies_settings(enc.take(same), x, label[same]).numpy() & (model.predict(every) == target[i])
        least = (x - enc.x[i]).abs().sum(1).numpy()[fine].min() if fine.any() else np.inf
        assert (found.size[i], found.proof[i]) == (pytest.approx(least, abs=2e-6), _IS_OPTIMAL if fine.any() else NONE_EXISTS)


def test_an_answer_without_all_demands_says_what_its_proof_says():
    "Text, frame and the batch's line have one word for it, and the tooltip's words stand in the text."
    X, y, rows, _ = load_loans()
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, categorical_features='from_dtype', random_state=0).fit(X, y)
    tight = tabular(X, immutable=['age', 'late_payments', 'income'], increase_only=['months_in_job'])
    a = GradualCF(model, tight, PLAUSIBLE).fit(X).explain(rows[model.predict(rows) == 'refused'][:40], 'granted', proof='columns')
    none, words = a.quality().proof == NONE_EXISTS, 'plausible answers well within the decision'
    other, nothing = none & a.valid, none & ~a.valid
    assert a.among == words and other.any() and nothing.any() and (a.df().cf_proof == a.quality().proof.to_numpy()).all()
    for i in np.flatnonzero(none):
        said = a[[i]].text().splitlines()[0]
        assert f'{NONE_EXISTS} among {a.among}' in said and ('so this is another answer' in said) == other[i]
    assert f'for {other.sum()} rows {NONE_EXISTS} among {a.among}, but another answer does' in repr(a)


@pytest.mark.night
def test_noise_reaches_beyond_the_limits_of_a_question():
    "A bound says what may be proposed, not where somebody comes out."
    X = pd.DataFrame(dict(a=np.arange(40)))
    model = ensemble.HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2).fit(X, (X.a >= 20) & (X.a < 30))
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    two = cf.under(hold=dict(noise=dict(a=2)))
    assert two.explain(X.iloc[[10]], 1, proof='distance').raw.a.tolist() == [22]
    assert two.explain(X.iloc[[10]], 1, bounds={'a': (0, 21)}, proof='distance').proof == [NONE_EXISTS]
    assert two.explain(X.iloc[[10]], 1, bounds={'a': (0, 22)}, proof='distance').raw.a.tolist() == [22]
    assert cf.under(hold=dict(noise=dict(a=5))).explain(X.iloc[[38]], 1, proof='distance').proof == [NONE_EXISTS] # 20 to 29 is not wide enough


def test_a_deadline_holds_for_robust_answers():
    cf, model, X = fitted(np.random.default_rng(3), 'forest')
    rows = X[model.predict(X) == 0].head(30)
    a = cf.under(hold=dict(noise=dict(a=1))).explain(rows, 1, limit=1e-9)
    assert not a.valid.any() and len(a.proof) == 30
    assert 'not begun: the time was over  (no' in a[:1].text() and 'among' not in a[:1].text() # that is said of a row, not of answers
