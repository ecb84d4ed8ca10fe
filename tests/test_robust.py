"Answers that must have more than the decision, against asking every legal row there is."
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from cheapest import cheapest
from sklearn import ensemble
from test_boxes import MODELS, fitted, labels, table
from torch import nn

from gradual_cf.all import PLAUSIBLE, GradualCF, load_loans, plausible, tabular
from gradual_cf.search import proven
from gradual_cf.search.proven import _IS_OPTIMAL, _NONE_EXISTS
from gradual_cf.search.robust import _against, _lowest_score

pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


def small_network(rng, sizes):
    net = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())][:-1]
    for m in net[::2]:
        m.weight.data, m.bias.data = (torch.from_numpy(rng.normal(0, .6, v.shape)).float() for v in (m.weight, m.bias))
    return nn.Sequential(*net)


@pytest.mark.parametrize('outputs', [1, 2, 3])
def test_every_network_of_nearly_these_weights_accepts_the_answer_and_no_cheaper_one_can_be_found(outputs):
    rng, by = np.random.default_rng(outputs + 40), .04
    X = table(rng, category=outputs == 2)
    domain = tabular(X, integer=['c'])
    net = small_network(rng, (len(X.columns) + 3*(outputs == 2), 6, outputs))
    net[-1].bias.data -= net(GradualCF(net, domain, 'sparse').fit(X).x_train).mean(0).detach() # each class has rows
    cf = GradualCF(net, domain, 'sparse').fit(X)
    z = cf.model(cf.x_train)
    rows = X[(z.argmax(1) == 0).numpy()].head(4)
    p = cheapest(cf, rows, 1, 'distance', robust=dict(weights=by))
    assert p.answers.valid.any()
    parts = [v.detach().double().numpy() for v in net.parameters()]
    def worst(x):
        "The least lead of class 1 over each other one: behind one hidden layer of nonnegative units, weights do their worst one by one."
        (w, b, v, c), x = parts, x.detach().double().numpy()
        wide = by*(np.abs(x).sum(1, keepdims=True) + 1)
        low, high = (np.maximum(x @ w.T + b + s*wide, 0) for s in (-1, 1))
        lead = []
        for j in ([0, 2][:outputs - 1] if outputs > 1 else [None]):
            u, shift, move = (v[0], c[0], by) if j is None else (v[1] - v[j], c[1] - c[j], 2*by)
            lead.append((np.minimum((u - move)*low, (u - move)*high)).sum(1) + shift - move)
        return np.min(lead, 0)
    for i in np.flatnonzero(p.answers.valid):
        assert worst(p.answers.xp[i:i + 1])[0] >= -1e-4
        for seed in range(20):
            other, draw = small_network(rng, (len(parts[0].T), 6, outputs)), np.random.default_rng(seed)
            for v, w in zip(other.parameters(), net.parameters()): v.data = w.data + by*torch.from_numpy(draw.choice([-1., 1.], w.shape)).float()
            z = other(p.answers.xp[i:i + 1]).detach()[0]
            assert (z[0] > 0) if outputs == 1 else z.argmax() == 1
    for i in range(len(rows)):
        every = pd.DataFrame(itertools.product(*(sorted(set(X[c])) for c in X)), columns=list(X)).astype(X.dtypes)
        cost, some = (cf.encode(every).x - cf.encode(rows).x[i]).abs().sum(1).numpy(), worst(cf.encode(every).x) >= 1e-4
        if some.any(): assert p.bound[i] <= cost[some].min() + 1e-6  # what is told of all networks is true


def test_networks_against_a_row_are_networks_of_nearly_these_weights():
    rng = np.random.default_rng(0)
    weight, bias = [rng.normal(size=s) for s in ((7, 4), (5, 7), (1, 5))], [rng.normal(size=s) for s in (7, 5, 1)]
    x = rng.normal(size=4)
    w, b = _against(weight, bias, .01, .02, x)
    for i, (new, old) in enumerate(zip(w + b, weight + bias)): assert np.abs(new - old).max() == pytest.approx(.02 if i in (2, 5) else .01)
    def says(weight, bias):
        v = x
        for a, c in zip(weight[:-1], bias[:-1]): v = np.maximum(a @ v + c, 0)
        return (weight[-1] @ v + bias[-1])[0]
    lowest = _lowest_score(weight, bias, .01, .02, x[None])[0]
    assert lowest <= says(w, b) < says(weight, bias)
    for _ in range(50):
        moved = [[v + rng.uniform(-1, 1, v.shape)*(.02 if i == 2 else .01) for i, v in enumerate(vs)] for vs in (weight, bias)]
        assert says(*moved) >= lowest


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


@pytest.mark.night
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
