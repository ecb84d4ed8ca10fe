"""Columns that hang together: every sentence is kept by plain comparisons of cells, whatever else is asked."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, strategies as st
from judge import faults
from invented import Made, asked, rules
from test_soak_tables import QUICK, check_same

from gradual_cf.all import PLAUSIBLE, GradualCF, line_search, put_back, tabular
from gradual_cf.models.fitted import predictor

pytestmark = pytest.mark.filterwarnings('ignore:plausibility is left out')  # of few rows, as tests/test_unread.py says

ROWS = 60
ASKED = 8                   # Rows that are explained: many of them take a second choice, and are slow
LEVELS = ['low', 'mid', 'top']
KINDS = dict(a='int64', b='int64', s='int64', f='float64', o='ordered', k='objects', d='float64')
WORDS = ['w0', 'w1', 'w2']
SLACK = 1e-9


def rank(v): return LEVELS.index(v)


# What is told -> whether two rows, before and after, keep it
SENTENCES = {
    'b >= a': lambda x, y: y.b >= y.a,
    's == a + b': lambda x, y: y.s == y.a + y.b,
    'a + b <= 50': lambda x, y: y.a + y.b <= 50,
    'f <= .5*a': lambda x, y: y.f <= .5*y.a + SLACK,
    'k == "w0" -> f == 0': lambda x, y: y.k != 'w0' or abs(y.f) < SLACK,
    'o rises -> a rises by 2': lambda x, y: rank(y.o) <= rank(x.o) or y.a >= x.a + 2,
    'k changes -> b rises': lambda x, y: y.k == x.k or y.b > x.b,
    'a falls -> o stays': lambda x, y: y.a >= x.a or y.o == x.o,
    'b falls -> f stays': lambda x, y: y.b >= x.b or y.f == x.f,
    'o == "top" or a <= 15': lambda x, y: y.o == 'top' or y.a <= 15,
}
DERIVED = dict(d=lambda df: (df.a/(df.b + 1)).round(3))
CHANGES = [{}, {}, dict(tau_slack=.1), dict(tau=.7), dict(max_shared=3), dict(moves=(put_back, line_search)), dict(batch_size=4)]
COSTS = [None, None, dict(a=2., f='easy'), dict(b=(1., 3.), k='hard')]


def people(seed):
    "Rows that keep every sentence."
    r = np.random.default_rng(seed)
    o = r.choice(LEVELS, ROWS)
    a = np.where(o == 'top', r.integers(0, 24, ROWS), r.integers(0, 16, ROWS))
    b = np.minimum(a + r.integers(0, 12, ROWS), 50 - a)
    k = r.choice(WORDS, ROWS)
    f = np.where(k == 'w0', 0, (r.random(ROWS)*.5*a)).round(3)
    df = pd.DataFrame(dict(a=a, b=b, s=a + b, f=np.minimum(f, .5*a), o=pd.Categorical(o, LEVELS, ordered=True), k=k))
    return df.assign(d=DERIVED['d'](df))[list(KINDS)]


def rule(seed, share):
    "A model of frames: a line through all columns."
    w = np.random.default_rng(seed).normal(0, 1, 7)/[8, 8, 16, 3, 1, 1, .5]
    def score(df):
        o,k = df.o.astype(object).map(rank), df.k.map(WORDS.index)
        return sum(c.to_numpy(float)*v for c,v in zip((df.a, df.b, df.s, df.f, o, k, df.d), w))
    cut = np.quantile(score(people(seed)), share)
    def ask(df):
        z = score(df) - cut
        return np.stack([-z, z], 1)
    return ask


@st.composite
def tied(draw):
    "A table, what hangs together, and a question."
    seed = draw(st.integers(0, 2**20), label='seed')
    df = people(seed)
    told = draw(st.lists(st.sampled_from(list(SENTENCES)), min_size=1, max_size=4, unique=True), label='told')
    derive = DERIVED if draw(st.booleans(), label='derive') else {}
    led = {'s'} & {name for name in 's' if 's == a + b' in told} | set(derive)
    constraints = draw(rules(df, KINDS))
    for named in ('immutable', 'increase_only', 'decrease_only'): constraints[named] = [c for c in constraints[named] if c not in led]
    constraints['bounds'] = {c: pair for c,pair in constraints['bounds'].items() if c not in led}
    made = Made(df, df.iloc[:ASKED], KINDS, constraints, draw(st.sampled_from(['domain', 'question']), label='where'), seed)
    return made, told, derive


def kept(made, told, derive, raw):
    "What is broken, one text each; rows that did not move are as they were."
    out = []
    for i,(x,y) in enumerate(zip(made.rows.itertuples(index=False), raw.itertuples(index=False))):
        if x == y: continue
        out += [f'row {i}: {text}, {x} -> {y}' for text in told if not SENTENCES[text](x, y)]
        if derive and abs(y.d - round(y.a/(y.b + 1), 3)) > 1e-3: out.append(f'row {i}: d, {x} -> {y}')
    return out


def domain_of(made, told, derive, cost):
    "The domain of a table; a sentence that moves what may not move is refused, and does not count."
    try: return tabular(made.train, relations=told, derive=derive, cost=cost, **(made.rules if made.where == 'domain' else {}))
    except ValueError as e:
        assert 'relations must not move' in str(e), e
        assume(False)


@QUICK
@given(case=tied(), how=st.sampled_from([None, None, None, PLAUSIBLE]), changes=st.sampled_from(CHANGES), cost=st.sampled_from(COSTS),
       share=st.sampled_from([.3, .5, .7]), order=st.permutations(range(ASKED)))
def test_what_hangs_together_stays_together(case, how, changes, cost, share, order):
    made,told,derive = case
    assume(not (how and 'max_shared' in changes))
    domain = domain_of(made, told, derive, cost)
    ask = rule(made.seed, share)
    target = torch.tensor(1 - ask(made.rows).argmax(1))
    try:
        cf = GradualCF(predictor(ask, domain, kind='logit'), domain, how, **changes).fit(made.train)
        cfs = cf.explain(made.rows, target, **asked(made))
    except ValueError as e:
        assert 'training row' in str(e) or 'a class that the model predicts' in str(e), e
        assume(False)
    assert not (found := kept(made, told, derive, cfs.raw)), found
    most,lines = made.rules['max_changes'], cfs.changes()
    chosen = lines[~lines.follows] if 'follows' in lines else lines
    assert most is None or (chosen.groupby('row').size() <= most).all()
    loose = made._replace(rules=made.rules | dict(max_changes=None))
    assert not (found := faults(loose, made.rows, cfs.raw)), found
    z = torch.from_numpy(ask(cfs.raw)).softmax(1)[torch.arange(ASKED), target]
    np.testing.assert_allclose(z.numpy(), cfs.prob, atol=1e-6)
    order = list(order)
    check_same(cf.explain(made.rows.iloc[order], target[order], **asked(made)).raw, cfs.raw.iloc[order])
    check_same(cf.explain(made.rows.iloc[[order[0]]], target[[order[0]]], **asked(made)).raw, cfs.raw.iloc[[order[0]]])
    with ThreadPoolExecutor(2) as pool:
        for again in pool.map(lambda _: cf.explain(made.rows, target, **asked(made)).raw, range(2)): check_same(again, cfs.raw)
