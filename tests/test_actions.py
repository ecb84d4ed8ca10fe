"""Shared actions: choice, legality, claims."""
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
import written

from gradual_cf.all import Actions, GradualCF, actions, tabular
from gradual_cf.use.actions import _exchanged, _worth_of_actions, _greedy_choice, _most_covered, _Move, _SharedRows

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(dict(
    income=RNG.lognormal(10.4, .4, N).round(-2), debt=RNG.gamma(2., 4000, N).round(-2), late=RNG.poisson(1.2, N),
    years=RNG.integers(0, 20, N), age=RNG.integers(20, 70, N),
    housing=pd.Categorical(RNG.choice(['owns', 'rents', 'family'], N))))
X.loc[::25, 'debt'] = np.nan
SCORE = X.income/9000 - X.debt.fillna(3000)/5000 + X.years/4 - 1.3*X.late - .6*(X.housing == 'rents')
Y = np.array(SCORE > 2.5, int)
ASKED = X.iloc[:100]
RULES = dict(immutable=['age'], increase_only=['years'], decrease_only=['debt', 'late'], bounds={'income': (None, 60_000)})


def network(domain): return written.read('applicants')


def line(domain):
    "A logistic regression."
    return written.read('applicants_line', torch.nn.Linear(domain.encode(X).x.shape[1], 2))


def trees(domain): return HistGradientBoostingClassifier(max_iter=15, categorical_features='from_dtype', random_state=0).fit(X, Y)


MODELS = dict(network=network, line=line, trees=trees)


@pytest.fixture(scope='module', params=MODELS)
def explainer(request):
    domain = tabular(X, **RULES)
    return GradualCF(MODELS[request.param](domain), domain, 'sparse').fit(X)


@pytest.fixture(scope='module')
def net():
    domain = tabular(X, **RULES)
    return GradualCF(network(domain), domain, 'sparse').fit(X)


@pytest.fixture(scope='module')
def two(net): return actions(net, ASKED, 2, 1)


@pytest.fixture(scope='module')
def told(explainer): return actions(explainer, ASKED, 3, 1, columns=2)


def said(cf, rows):
    "Whether the model itself accepts rows."
    return cf.explain(rows, 1).before >= .5


def allowed(old, new):
    "The rules of this table, written down once more."
    same = (old == new) | (old.isna() & new.isna())
    ok = same.age & (new.years >= old.years) & (same.late | (new.late < old.late)) & (new.late >= 0) & (new.years <= 19)
    ok &= same.debt | ((new.debt < old.debt) & (new.debt >= X.debt.min())) # a missing debt stays
    ok &= same.income | ((new.income <= 60_000) & (new.income >= X.income.min()))
    return ok & (new.late % 1 == 0) & (new.years % 1 == 0) & new.housing.isin(['owns', 'rents', 'family'])


def test_every_claim_holds(explainer, told):
    asked = ASKED[~said(explainer, ASKED)]
    assert told.already == len(ASKED) - len(asked) and told.answers.data.index.equals(asked.index) and len(told) <= 3
    assert told.helped.mean() > .6 and (said(explainer, told.answers.raw) == told.helped).all()
    assert allowed(asked, told.answers.raw).all()
    assert told.answers.raw[~told.helped].equals(asked[~told.helped]) and told.remaining().equals(asked[~told.helped])


def test_costs_add_up(told):
    cost = told.cost
    assert (np.isfinite(cost).any(1) == told.helped).all()
    assert (cost[told.helped].argmin(1) + 1 == told.taken[told.helped]).all()
    x, xp = (told.explainer.encode(v).x.double() for v in (told.answers.data, told.answers.raw))
    weight = torch.tensor([.5 if c.kind == 'category' else 1. for c in told.explainer.domain.features for _ in range(c.width)])
    np.testing.assert_allclose(((xp - x).abs() @ weight.double())[told.helped], cost[told.helped].min(1), atol=1e-5)
    df, sums, rows = told.df(), told.sums(), told.rows()
    first = df.groupby('action').first()
    assert first.takes.tolist() == np.bincount(told.taken, minlength=len(told) + 1)[1:].tolist()
    assert (first.covers >= first.takes).all() and first.takes.sum() == told.helped.sum() == sums.rows.iloc[-1]
    np.testing.assert_allclose(np.average(first.cost.fillna(0), weights=first.takes), sums.cost.iloc[-1])
    assert rows.cost.notna().sum() == told.helped.sum() and (rows.after[told.helped] >= .5).all()
    assert (sums.share.diff().iloc[1:] >= 0).all() and told.ceiling >= told.helped.sum()


def test_free_rows_go_only_as_far_as_they_need(net, two):
    free = actions(net, ASKED, 2, 1, free=True)
    assert free.helped.sum() >= two.helped.sum() - 2 and free.sums().cost.iloc[-1] < two.sums().cost.iloc[-1]
    assert (said(net, free.answers.raw) == free.helped).all() and allowed(free.answers.data, free.answers.raw).all()
    assert all('as far as needed' in w for w in free.words) and 'at least' not in ' '.join(free.words)


def best(gain, k): return max(gain[:, list(s)].max(1).sum() for s in itertools.combinations(range(gain.shape[1]), k))


@pytest.mark.parametrize('worth', [None, 1.])
def test_greedy_against_all_subsets(worth):
    equal = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        cost = np.where(rng.random((30, 9)) < .35, rng.random((30, 9))*2, np.inf)
        gain, k = _worth_of_actions(cost, worth), 2 + seed % 3
        chosen = _greedy_choice(gain, k)
        more = _exchanged(gain, chosen)
        value = [gain[:, c].max(1).sum() for c in (chosen, more)]
        assert len(chosen) == k and best(gain, k)*(1 + 1e-12) >= value[1] >= value[0] >= (1 - (1 - 1/k)**k)*best(gain, k)
        covered = max((gain[:, list(s)] > 0).any(1).sum() for s in itertools.combinations(range(9), k))
        assert _most_covered(gain > 0, more, k) >= covered
        equal += value[1] >= best(gain, k)*(1 - 1e-12)
    assert equal > 45


def test_greedy_can_be_wrong_and_exchange_mends_it():
    cost = np.full((4, 3), np.inf)
    cost[[0, 1], 0] = cost[[2, 3], 1] = 1.      # two actions that share the rows
    cost[[0, 2, 3], 2] = .5                     # and one that greed takes first
    cost[[2, 3], 2], cost[0, 2] = .5, .5
    gain = _worth_of_actions(cost[:, [2, 0, 1]], None)
    assert _greedy_choice(gain, 1) == [0] and _exchanged(gain, [1]) == [0]
    assert _exchanged(gain, _greedy_choice(gain, 2)) == [0, 1]


def test_coverage_counts_before_cost():
    cost = np.array([[.1, 9.], [np.inf, 9.]])
    assert _greedy_choice(_worth_of_actions(cost, None), 1) == [1] and _greedy_choice(_worth_of_actions(cost, 1.), 1) == [0]


def test_a_row_is_not_helped_beyond_its_worth(net, two):
    some = actions(net, ASKED, 2, 1, worth=.25)
    assert (some.cost[np.isfinite(some.cost)] < .25).all()
    assert 0 < some.helped.sum() < two.helped.sum()
    assert some.apply(ASKED).valid.sum() == some.already + some.helped.sum()


def test_moves_respect_the_table(net):
    rows = _SharedRows(net, net.ask(X, 1))
    g = list(X).index
    for name, kind, value, legal in [
            ('late', 'by', -2., X.late >= 2), ('late', 'by', 1., X.late > 99), ('late', 'most', 1., X.late >= 0),
            ('age', 'by', 5., X.age > 99), ('age', 'least', 40., X.age >= 40), ('years', 'by', 2., X.years <= 17),
            ('debt', 'by', -100., X.debt - 100 >= X.debt.min()), ('debt', 'most', 500., X.late >= 0),
            ('income', 'by', 10_000., X.income <= 50_000)]:
        v, ok = rows.entries(_Move(g(name), kind, value))
        assert ok.tolist() == legal.tolist(), (name, kind)
    owns = list(net.domain.features[g('housing')].levels).index('owns')
    assert rows.entries(_Move(g('housing'), 'level', owns))[1].all()


def test_special_codes_are_no_numbers():
    coded = pd.DataFrame(dict(seen=RNG.integers(0, 30, 200), other=RNG.random(200)))
    coded.loc[::4, 'seen'] = -9
    cf = GradualCF(lambda x: torch.stack([0*x[:, 1], 9*(x[:, 1] - .5)], 1), tabular(coded), 'sparse').fit(coded)
    rows, code = _SharedRows(cf, cf.ask(coded)), np.array(coded.seen == -9)
    assert not rows.entries(_Move(0, 'by', 2.))[1][code].any()     # nothing is added to a code
    v, ok = rows.entries(_Move(0, 'least', 5.))
    assert ok[code].all() and (v[code] == rows.enc.x[code, :1]).all() # and a threshold leaves it alone


def test_constraints_of_the_question(net):
    free = actions(net, ASKED, 2, 1, immutable=['income'], bounds={'debt': (1000, None)}, max_changes=1)
    changed = (free.answers.raw != free.answers.data) & ~free.answers.data.isna()
    assert not changed.income.any() and changed.sum(axis=1).max() <= 1 and (free.answers.raw.debt[changed.debt] >= 1000).all()


def owing():
    "The same people with a card, and with the sum of what they owe."
    rows = X.assign(debt=X.debt.fillna(3000.), card=np.random.default_rng(1).gamma(2., 500, N).round(-2))
    return rows.assign(owed=rows.debt + rows.card)


def test_what_hangs_together_and_prices():
    rows = owing()
    domain = tabular(rows, immutable=['age'], relations=['owed == debt + card'], cost=dict(income=5., debt='easy', late='never'))
    cf = GradualCF(written.read('owing'), domain, 'sparse').fit(rows)
    told = actions(cf, rows.iloc[:150], 2, 1)
    raw = told.answers.raw
    assert told.helped.any() and np.allclose(raw.owed, raw.debt + raw.card) and (raw.late == told.answers.data.late).all()
    price = domain.cost(told.answers.x, told.answers.xp).double().numpy()
    np.testing.assert_allclose(price[told.helped], told.cost[told.helped].min(1), rtol=1e-5)


def test_numbers_and_intervals():
    plain = X.assign(debt=X.debt.fillna(3000.)).drop(columns='housing')
    domain = tabular(plain, immutable=['age'])
    cf = GradualCF(LinearRegression().fit(plain, SCORE), domain, 'sparse').fit(plain)
    told = actions(cf, plain.iloc[:150], 2, (2.5, None))
    assert told.helped.mean() > .8 and (told.answers.prob[torch.as_tensor(told.helped)] >= 2.5).all()
    assert told.apply(plain.iloc[:150]).valid.sum() == told.already + told.helped.sum()


SIZES = dict(categorical={'ab': ['a', 'b']}, increase_only=['since'], scale='quantile')


def sizes(n=150):
    "Levels in order, dates, a number, two siblings."
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(dict(
        size=pd.Categorical(rng.choice(['s', 'm', 'l'], n), ['s', 'm', 'l'], ordered=True),
        since=pd.to_datetime('2020-01-01') + pd.to_timedelta(rng.integers(0, 900, n), 'D'), v=rng.normal(0, 1, n).round(3),
        a=rng.integers(0, 2, n)))
    rows['b'] = 1 - rows.a
    y = (rows['size'].cat.codes > 0).astype(int) + (rows.since > '2021-03-01') + (rows.v > 0) + rows.a > 2
    return rows, np.array(y, int)


@pytest.mark.parametrize('free', [False, True])
def test_levels_in_order_dates_siblings_and_quantiles(free):
    rows, _ = sizes()
    domain = tabular(rows, **SIZES)
    cf = GradualCF(written.read('sizes'), domain, 'sparse').fit(rows)
    told = actions(cf, rows, 2, 1, free=free)
    old, new = told.answers.data, told.answers.raw
    assert told.helped.mean() > .8 and (said(cf, new) == told.helped).all() and domain.legal(old, new).all()
    assert (new.since >= old.since).all() and (new.a + new.b == 1).all() and (new.since == new.since.dt.normalize()).all()
    assert (new.dtypes == old.dtypes).all()


def test_apply_to_new_rows(net):
    told = actions(net, X.iloc[:120], 3, 1)
    new = told.apply(X.iloc[120:])
    assert (new.valid == said(net, new.raw)).all() and allowed(X.iloc[120:], new.raw).all()
    there = said(net, X.iloc[120:])
    assert new.raw[there].equals(X.iloc[120:][there]) and new.valid.sum() > there.sum()
    whole = told.apply(X.iloc[120:], action=1)
    assert allowed(X.iloc[120:], whole.raw).all() and not whole.raw.equals(X.iloc[120:])


def test_fewer_rows_than_actions(net):
    refused = X[~said(net, X)]
    told = actions(net, refused.iloc[:2], 5, 1)
    assert 1 <= len(told) <= 2 and told.helped.all()


def test_nothing_helps(net):
    told = actions(net, X[~said(net, X)], 2, 1, immutable=[c for c in X if c != 'years'], bounds={'years': (None, 0)})
    assert isinstance(told, Actions) and len(told) == 0 and not told.helped.any() and len(told.df()) == 0
    assert repr(told).startswith('0 actions') and '0 helped' in told._repr_html_() and told.plot() is not None
    assert told.apply(X.iloc[:5]).raw.equals(X.iloc[:5])
