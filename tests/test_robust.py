"Answers that must have more than the decision, against asking every legal row there is."
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from cheapest import cheapest
from sklearn import ensemble
from test_boxes import MODELS, fitted, labels, table

from gradual_cf.all import PLAUSIBLE, Counterfactuals, GradualCF, Plausibility, letter, load_loans, plausible, tabular
from gradual_cf.search import proven
from gradual_cf.search.proven import _IS_OPTIMAL, _NONE_EXISTS, ways

pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


def test_plausible_answers_are_the_nearest_among_those_whose_pairs_are_met():
    "By asking everything: a strength above 1 looks at pairs, too."
    rng = np.random.default_rng(3)
    X = table(rng)
    model = MODELS['pipe_logistic']().fit(X, labels(rng, X))
    cf = GradualCF(model, tabular(X, integer=['c']), plausible(1.5)).fit(X)
    rows = X.sample(2, random_state=2)
    target = 1 - model.predict(rows)
    every = pd.DataFrame(itertools.product(range(6), range(-3, 4), range(int(X.c.max()) + 1), 'wxyz'), columns=list(X)).astype(X.dtypes)
    found = cf.explain(rows, target, optimal='distance')
    x, (_, enc, _, label) = cf.encode(every).x, cf.ask(rows, target)
    for i in range(len(rows)):
        same = torch.full((len(x),), i)
        fine = cf.content(enc.take(same), x, label[same]).numpy() & (model.predict(every) == target[i])
        least = (x - enc.x[i]).abs().sum(1).numpy()[fine].min() if fine.any() else np.inf
        assert (found.size[i], found.proof[i]) == (pytest.approx(least, abs=2e-6), _IS_OPTIMAL if fine.any() else _NONE_EXISTS)


def test_an_answer_without_all_demands_says_what_its_proof_says():
    "Text, frame and the batch's line have one word for it, and the tooltip's words stand in the text."
    X, y, rows, _ = load_loans()
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, categorical_features='from_dtype', random_state=0).fit(X, y)
    tight = tabular(X, immutable=['age', 'late_payments', 'income'], increase_only=['months_in_job'])
    a = GradualCF(model, tight, PLAUSIBLE).fit(X).explain(rows[model.predict(rows) == 'refused'][:40], 'granted', optimal='columns')
    none, words = a.quality().proof == _NONE_EXISTS, 'plausible answers well within the decision'
    other, nothing = none & a.valid, none & ~a.valid
    assert a.among == words and other.any() and nothing.any() and (a.df().cf_proof == a.quality().proof.to_numpy()).all()
    for i in np.flatnonzero(none):
        said = a[[i]].text().splitlines()[0]
        assert f'{_NONE_EXISTS} among {a.among}' in said and ('so this is another answer' in said) == other[i]
    assert f'for {other.sum()} rows {_NONE_EXISTS} among {a.among}, but another answer does' in repr(a)


def test_a_proof_names_the_answers_that_it_speaks_of(tmp_path):
    cf, model, X = fitted(np.random.default_rng(3), 'hist')
    rows = X[model.predict(X) == 0].head(3)
    a = cf.explain(rows, 1, robust=dict(noise=dict(a=1)))
    assert a.optimal == 'columns' and a.among == 'answers that withstand noise'
    assert 'proven fewest among answers that withstand noise' in a.text()
    a.save(tmp_path/'a.cfs')
    back = Counterfactuals.load(tmp_path/'a.cfs', cf.domain)
    assert back.among == a.among and repr(back) == repr(a)
    said = '\n'.join(letter(a))
    assert 'changing fewer values would not have been enough' in said and 'Only answers that withstand noise in the data were compared.' in said


def test_ways_have_what_the_settings_demand():
    cf, model, X = fitted(np.random.default_rng(3), 'hist')
    row = X[model.predict(X) == 0].head(1)
    plain = ways(cf, row, 1, k=2)
    bold = ways(GradualCF(model, cf.domain, 'sparse', logit_margin=.5).fit(X), row, 1, k=2)
    both = plain.merge(bold, on='columns')
    assert (both.distance_y >= both.distance_x - 1e-9).all() and (both.distance_y > both.distance_x).any()


def test_noise_reaches_beyond_the_limits_of_a_question():
    "A bound says what may be proposed, not where somebody comes out."
    X = pd.DataFrame(dict(a=np.arange(40)))
    model = ensemble.HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2).fit(X, (X.a >= 20) & (X.a < 30))
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    ask = dict(optimal='distance', robust=dict(noise=dict(a=2)))
    assert cf.explain(X.iloc[[10]], 1, **ask).raw.a.tolist() == [22]
    assert cf.explain(X.iloc[[10]], 1, bounds={'a': (0, 21)}, **ask).proof == [_NONE_EXISTS]
    assert cf.explain(X.iloc[[10]], 1, bounds={'a': (0, 22)}, **ask).raw.a.tolist() == [22]
    assert cf.explain(X.iloc[[38]], 1, optimal='distance', robust=dict(noise=dict(a=5))).proof == [_NONE_EXISTS] # 20 to 29 is not wide enough


def test_a_deadline_holds_for_robust_answers():
    cf, model, X = fitted(np.random.default_rng(3), 'forest')
    rows = X[model.predict(X) == 0].head(30)
    a = cf.explain(rows, 1, seconds=1e-9, robust=dict(noise=dict(a=1)))
    assert not a.valid.any() and len(a.proof) == 30
    assert 'not begun: the time was over  (no' in a[:1].text() and 'among' not in a[:1].text() # that is said of a row, not of answers


def test_company_is_counted_with_the_digits_that_the_search_counts_with():
    "Rows so near to each other that 32 bits round their distances; what the demand accepts must not be dropped."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=rng.integers(0, 1000, 400), b=rng.integers(0, 2, 400)))
    model = ensemble.HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=4).fit(X, X.a + 15*rng.normal(size=400) > 700)
    cf = GradualCF(model, tabular(X), 'sparse', plausibility=Plausibility(density=.2)).fit(X)
    rows = X[model.predict(X) == 0].head(2)
    p = cheapest(cf, rows, 1, 'distance')
    every = pd.DataFrame(list(itertools.product(range(1000), (0, 1))), columns=['a', 'b'])
    x = cf.encode(every).x
    _, enc, _, label = cf.ask(rows, 1)
    for i in range(len(rows)):
        far = (x - enc.x[i]).abs().sum(1)
        near = far.argsort().split(100)
        for part in near:
            same = torch.full((len(part),), i)
            fine = part[cf.content(enc.take(same), x[part], label[same])]
            if len(fine): break
        assert p.size[i] == pytest.approx(far[fine[0]].item() if len(fine) else np.inf, abs=2e-6)


def numbers_of_loans():
    "Numbers of loans, trees that grant them, their explainer, and refused rows."
    X, y, T, _ = load_loans()
    X, T = X.drop(columns='housing'), T.drop(columns='housing')
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    return X, model, GradualCF(model, tabular(X), 'sparse').fit(X), T[model.predict(T) == 'refused']


def test_a_column_that_may_not_change_has_noise_too():
    "The worst of all copies of an answer, one for each error of measurement, keeps its class."
    X, model, cf, rows = numbers_of_loans()
    rows = rows[:4]
    answers = cf.explain(rows, target='granted', robust=dict(noise={'income': 300, 'age': 1}), immutable=['age'], seconds=60)
    assert answers.valid.any() and (answers.raw.age == rows.age).all()
    for i in np.flatnonzero(answers.valid):
        copies = answers.raw.iloc[[i]].loc[lambda f: f.index.repeat(3*601)]
        copies = copies.assign(income=copies.income + np.tile(np.arange(-300, 301), 3), age=copies.age + np.repeat([-1, 0, 1], 601))
        assert (model.predict(copies.clip(X.min(), X.max(), axis=1)) == 'granted').all()


def test_what_is_to_be_withstood_has_a_limit_of_time(monkeypatch):
    _, _, cf, rows = numbers_of_loans()
    monkeypatch.setattr(proven, '_ROBUST_SECONDS', 1e-9)
    told = cf.explain(rows[:2], target='granted', robust=dict(noise={'income': 300})).proof
    assert not {'optimal', 'none exists'} & set(told)
