"""The baselines against closed forms, slow replicas and their own rules."""
import math

import made
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
import written

from gradual_cf.all import (CEM, LORE, Domain, Encoded, GradualCF, GrowingSpheres, Wachter, because, box, corpus_vectors, load_toy_reviews, sentences,
    tabular)
from gradual_cf.baselines.lore import _Condition
from gradual_cf.search.answer import Explainer
from gradual_cf.use.enough import certified

QUICK = {Wachter: dict(lam=100., rounds=3, steps=60), CEM: dict(rounds=3, steps=80), GrowingSpheres: dict(samples=100), LORE: dict(samples=200, generations=10)}
DOMAINLESS = [Wachter, CEM, GrowingSpheres]


class Linear(nn.Module):
    "Two logits whose difference is linear, in 64-bit floats."
    def __init__(self, w, b):
        super().__init__()
        self.w, self.b = nn.Parameter(w.double()), b
    def forward(self, x): return torch.stack([0*x[:, 0], x @ self.w + self.b], 1)


def plain(d, low=-9., high=9.):
    "A domain of `d` numbers."
    return Domain(lambda r: Encoded(torch.as_tensor(r).clone(), torch.zeros(len(r), d, dtype=torch.bool)), lambda x, raw=None, legal=True: x, lambda s: torch.arange(d), box(low, high))


@pytest.fixture(scope='module')
def linear():
    g = torch.Generator().manual_seed(0)
    x = torch.rand(400, 5, generator=g, dtype=torch.float64)*torch.tensor([.5, 1., 1.5, 1., 2.]).double()
    return x, Linear(torch.tensor([-3., 2., 1., -.5, 2.2]), -4.)


@pytest.mark.night
@pytest.mark.parametrize('legal', [False, True])
def test_wachter_reaches_the_analytic_optimum(linear, legal):
    "On a linear model the nearest row in d moves one entry, the one with the best slope for its MAD, exactly to logit(p* - tol)."
    x, model = linear
    e = Wachter(model, plain(5), legal=legal).fit(x)
    cfs = e.explain(x[:12], 1)
    away = cfs.before < .5
    gap = math.log(.95/.05) - model(x[:12])[:, 1]
    best = gap*(1/(e.mad*model.w.abs())).min()
    d = ((cfs.xp - cfs.x).abs()/e.mad).sum(1)
    assert away.sum() >= 8 and cfs.valid.all() and (cfs.prob[away] >= .95 - 1e-9).all()
    torch.testing.assert_close(d[away], best[away].detach(), rtol=.02, atol=0)
    assert (d[away] >= best[away]*(1 - 1e-9)).all()                       # nothing can be nearer
    main = (model.w.abs()*e.mad).argmax()
    assert ((cfs.xp - cfs.x).abs()[away].argmax(1) == main).all()


def slow_fista(x, w, b, c, margin, beta, lr, steps, low, high):
    "CEM's inner loop for one row and a linear model, in plain numbers."
    xp = y = list(x)
    best, size = None, math.inf
    for i in range(steps):
        z = sum(wi*yi for wi, yi in zip(w, y)) + b
        rate, new = lr*math.sqrt(1 - i/steps), []
        for j in range(len(x)):
            g = (-c*w[j] if margin - z > 0 else 0.) + 2*(y[j] - x[j])
            v = y[j] - x[j] - rate*g
            v = 0. if abs(v) <= beta else v - math.copysign(beta, v)
            new.append(min(max(x[j] + v, low[j]), high[j]))
        y, xp = [n + i/(i + 3)*(n - o) for n, o in zip(new, xp)], new
        d = [a - o for a, o in zip(xp, x)]
        net = beta*sum(map(abs, d)) + sum(v*v for v in d)
        if sum(wi*v for wi, v in zip(w, xp)) + b >= margin - 1e-9 and net < size: best, size = xp, net
    return best


@pytest.mark.night
@pytest.mark.parametrize('c', [10., 40.])
def test_cem_equals_a_slow_replica(linear, c):
    x, model = linear
    e = CEM(model, plain(5), rounds=1, steps=200, c=c).fit(x)
    cfs, checked = e.explain(x[:12], 1), 0
    for row, xp, before in zip(x[:12], cfs.xp, cfs.before):
        if before >= .5: continue
        slow = slow_fista(row.tolist(), model.w.tolist(), model.b, c, e.margin, .1, .01, 200, x.amin(0).tolist(), x.amax(0).tolist())
        torch.testing.assert_close(xp, row if slow is None else torch.tensor(slow, dtype=torch.float64), rtol=0, atol=1e-8)
        checked += slow is not None
    assert checked > 3


def test_cem_heeds_the_autoencoder(linear):
    "An autoencoder that gives back only the first entry makes the others expensive; without one the last and best entry moves."
    x, model = linear
    coder = lambda v: torch.cat([v[:, :1], x[:1, 1:].expand(len(v), -1)], 1)
    row = x[:1]
    assert model(row)[0, 1] < 0
    with_, without = (CEM(model, plain(5), autoencoder=a, gamma=20., rounds=6, steps=300).fit(x).explain(row, 1) for a in (coder, None))
    off = lambda c: (c.xp - c.x)[:, 1:].norm().item()
    assert with_.valid.all() and without.valid.all() and off(with_) < off(without)


@pytest.mark.parametrize('h', [.03, .15, .5, 1.1])
def test_growing_spheres_finds_the_radius_of_a_half_space(h):
    "The nearest enemy of a half-space at distance h lies at h, and at most one shell beyond."
    w = torch.tensor([.6, .8])
    model = Linear(w, -h)
    x = torch.zeros(3, 2).double()
    e = GrowingSpheres(model, plain(2), select=False, samples=3000).fit(torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double())
    cfs = e.explain(x, 1)
    r = (cfs.xp - cfs.x).norm(dim=1)
    assert cfs.valid.all() and (r >= h).all() and (r <= h*1.1).all()
    torch.testing.assert_close((cfs.xp[0]/r[0]).float(), w, atol=.35, rtol=0)
    put_back = GrowingSpheres(model, plain(2), samples=3000).fit(torch.rand(50, 2, generator=torch.Generator().manual_seed(1)).double()*4).explain(x, 1)
    assert put_back.valid.all() and ((put_back.xp - put_back.x).norm(dim=1) <= r + 1e-9).all()


@pytest.fixture(scope='module')
def stepped():
    "A frame and a model that decides by one column alone: income above 1,500."
    df, _ = made.table(400)
    domain = tabular(df)
    at = list(df.columns).index('income')
    cut = (1500 - df.income.min())/(df.income.max() - df.income.min())
    return df, domain, lambda x: torch.stack([0*x[:, at], 50*(x[:, at] - cut)], 1)


@pytest.mark.night
def test_lore_recovers_axis_and_threshold(stepped):
    df, domain, model = stepped
    lore = LORE(model, domain).fit(df)
    low = df[df.income < 1400].iloc[:6]
    cfs = lore.explain(low)
    for i, why in enumerate(lore.rules(low)):
        assert [c.feature for c in why.rule.conditions] == ['income'] and why.rule.outcome == 0
        assert abs(why.rule.conditions[0].high - 1500) < 60 and why.rule.conditions[0].low == -np.inf
        assert why.rule.precision > .95 and why.rule.coverage == pytest.approx((df.income <= why.rule.conditions[0].high).mean(), abs=1e-9)
        assert why.others and why.others[0].changed[0].feature == 'income' and abs(why.others[0].changed[0].low - 1500) < 60
    assert cfs.valid.all() and set(cfs.changes().feature) == {'income'}
    words = because(GradualCF(model, domain, 'sparse', sigma=0, classes=['denied', 'approved']).fit(df).explain(low, 'approved'), LORE(model, domain, classes=['denied', 'approved']).fit(df))
    assert words.sentence.str.fullmatch(r'denied because income ≤ 1,\d{3}(\.\d+)?; approved if income becomes 1,\d{3}(\.\d+)?').all()
    assert list(words.index) == list(low.index) and words.precision.gt(.95).all()


def test_a_rules_numbers_are_those_of_the_frame(stepped):
    df, domain, _ = stepped
    lore = LORE(written.read('bank'), domain).fit(df)
    label = lore.z_train.argmax(1).numpy()
    kinds = set()
    for i, why in enumerate(lore.rules(df.iloc[:25])):
        for rule in (why.rule, *why.others):
            inside = rule.covers(df)
            assert rule.coverage == pytest.approx(inside.mean(), abs=1e-9)
            assert not inside.any() or rule.precision == pytest.approx((label[inside] == rule.outcome).mean(), abs=1e-9)
            kinds |= {c.feature for c in rule.conditions}
        assert why.rule.covers(df.iloc[[i]]).all() and not any(r.covers(df.iloc[[i]]).any() for r in why.others)
        assert all(set(r.changed) <= set(r.conditions) and r.changed for r in why.others)
    assert {'job', 'income', 'late'} <= kinds                            # categories, numbers and coded integers


def test_rules_of_one_hot_columns():
    "A category that comes as 0/1 columns is one condition and moves as one."
    df, y = made.table(300)
    df = pd.get_dummies(df.drop(columns=['owner']), columns=['job'], dtype=int)
    jobs = [c for c in df if c.startswith('job_')]
    domain = tabular(df, categorical={'job': jobs})
    model = lambda x: torch.stack([0*x[:, 0], 9*x[:, domain.encode(df.iloc[:1]).x.shape[1] - 1] - 4], 1)   # the last sibling decides
    lore, rows = LORE(model, domain).fit(df), df[df[jobs[-1]] == 0].iloc[:5]
    cfs = lore.explain(rows)
    assert cfs.valid.all() and (cfs.raw[jobs].sum(axis=1) == 1).all() and set(cfs.changes().feature) == {'job'}
    for why in lore.rules(rows): assert [c.feature for c in why.rule.conditions] == ['job'] and why.rule.covers(df).mean() == pytest.approx(why.rule.coverage)


def test_rules_read_dates():
    "A limit on a date is a day, and its rule covers the rows that come before it."
    n = 200
    df = pd.DataFrame({'opened': pd.Timestamp('2020-01-01') + pd.to_timedelta(np.arange(n), 'D'), 'x': np.random.default_rng(0).random(n)})
    domain = tabular(df)
    model = lambda x: torch.stack([9 - 90*x[:, 0], 90*x[:, 0] - 81], 1)
    why = LORE(model, domain, **QUICK[LORE]).fit(df).rules(df.iloc[:1])[0].rule
    assert str(why.conditions[0]).startswith('opened ≤ 2020-0') and why.coverage == pytest.approx(why.covers(df).mean(), abs=1e-9)
    assert why.conditions[0].feature == 'opened' and why.precision > .9 and isinstance(why.conditions[0], _Condition)


@pytest.mark.night
@pytest.mark.parametrize('cls', [GrowingSpheres, LORE], ids=lambda c: c.__name__)
def test_sampling_needs_no_gradient(cls):
    from sklearn.ensemble import RandomForestClassifier
    df, y = made.table()
    domain = tabular(df)
    forest = RandomForestClassifier(20, random_state=0).fit(domain.encode(df).x.numpy(), y)
    model = lambda x: torch.as_tensor(np.log(forest.predict_proba(x.numpy()) + 1e-3)*3).to(x)
    cfs = cls(model, domain, **QUICK[cls]).fit(df).explain(df.iloc[:10])
    assert cfs.valid.mean() > .5


@pytest.mark.parametrize('cls', DOMAINLESS, ids=lambda c: c.__name__)
def test_reviews(cls):
    tr, te = load_toy_reviews(400, 6)
    v = corpus_vectors(tr['text'], 16)
    net = written.read('reviews_small')
    extra = dict(radius=2., samples=30) if cls is GrowingSpheres else dict(lam=1e4, rounds=3, steps=100, lr=.02) if cls is Wachter else dict(rounds=4, steps=60)
    cfs = cls(net, sentences(v, length=40), **QUICK[cls] | extra | dict(tau=.5)).fit(tr).explain(te.select(range(4)))
    assert cfs.valid.any() and all(isinstance(t, str) for t in cfs.raw) and (cfs.x == cfs.xp).any()


def test_because_says_when_there_is_nothing_to_say():
    df, _, net = made.bank()
    lore = LORE(net, tabular(df), classes=['no', 'yes'], **QUICK[LORE]).fit(df)
    cf = GradualCF(net, tabular(df, immutable=[c for c in df if c != 'age']), 'sparse', classes=['no', 'yes']).fit(df)
    cfs = cf.explain(df.iloc[:20], target='yes')
    out = because(cfs, lore)
    assert list(out.valid) == cfs.valid.tolist() and out.valid.any() and not out.valid.all()
    assert out.sentence[~out.valid].str.endswith('no way to reach yes was found').all() and out.sentence[cfs.before >= .5].str.endswith('yes already').all()


def test_a_display_works_out_the_ranges_of_few_changes_alone(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 12)).round(2), columns=list('abcdefghijkl'))
    model = LogisticRegression().fit(X, X.sum(axis=1) > 0)
    answers = GrowingSpheres(model, tabular(X)).fit(X).explain(X[~model.predict(X)][:8], True)
    many, asked, plain = answers.changed.sum(1), [], Explainer.region
    monkeypatch.setattr(Explainer, 'region', lambda self, cfs, free=None: asked.append(cfs.changed.sum(1)) or plain(self, cfs, free))
    lines = certified(answers.explainer, answers, 5)
    assert many.max() > 8 and set(lines.row) == set(np.flatnonzero(answers.valid & (many <= 5))) and asked.pop().max() <= 5
    assert all(len(some) == many[row] for row, some in lines.groupby('row'))
    answers.text()
    assert [some.max() <= 8 for some in asked] == [True]
