"""A plan goes from a row to its answer: every row on the way is legal, and no step loses what was reached."""
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gradual_cf.all import Counterfactuals, Domain, Encoded, Explainer, GradualCF, predictor, tabular


class AllOnes(Explainer):
    "Set every number that may change to one."
    def search(self, q, effort=None): return torch.where(q.enc.frozen, q.enc.x, torch.ones_like(q.enc.x))


def numbered(raw): return (np.asarray(raw) > .5) @ (1 << np.arange(np.asarray(raw).shape[1]))


def world(m, allowed=None, seed=0):
    "`m` numbers, a network of random pairs, and rules that name the legal choices by their numbers; the answer is all ones."
    gen = torch.Generator().manual_seed(seed)
    w,pairs = torch.rand(m, generator=gen), torch.randn(m, m, generator=gen)/m
    f = lambda x: x @ w + ((x @ pairs)*x).sum(1)
    whole = f(torch.ones(1, m))
    model = lambda x: torch.stack([0*x[:, 0], 8*(f(x) - whole)/m + .1], 1)
    legal = None if allowed is None else lambda old, new: allowed[numbered(new)][:, None].repeat(m, 1)
    domain = Domain(lambda raw: Encoded(torch.as_tensor(raw), torch.zeros(len(raw), m, dtype=torch.bool)),
                    lambda x, raw=None, legal=True: x, lambda s: torch.arange(m), legal=legal)
    e = AllOnes(model, domain).fit(torch.rand(30, m, generator=gen))
    return e, e.explain(torch.zeros(1, m), target=1)


def heights(e, m):
    "Probability of every choice, in the order of their numbers."
    x = ((torch.arange(2**m)[:, None] >> torch.arange(m)) & 1).float()
    return e.model(x).softmax(1)[:, 1].double().numpy()


def chain_of(plan): return numbered(plan.taken.xp).tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(.2, 1))
def test_every_row_on_the_way_is_legal_and_the_best_single_change_comes_first(seed, m, share):
    allowed = np.random.default_rng(seed).random(2**m) < share
    allowed[[0, -1]] = True
    e,found = world(m, allowed, seed)
    chain,p = chain_of(found.plan()), heights(e, m)
    assert allowed[chain].all() and chain[-1] == 2**m - 1
    assert len(chain) == 1 or (np.diff(p[[0, *chain]]) >= -1e-6).all()
    first = [1 << j for j in range(m) if allowed[1 << j] and p[0] <= p[1 << j] <= p[-1]]
    if first: assert p[chain[0]] == pytest.approx(p[first].max(), abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(11, 14))
def test_many_changes_that_move_together_are_legal_too(seed, m):
    rng = np.random.default_rng(seed)
    a,b,c,d = rng.permutation(m)[:4]               # a only with b, and d not before c
    made = lambda j: (np.arange(2**m) >> j & 1) == 1
    allowed = (made(a) == made(b)) & (made(c) | ~made(d))
    e,found = world(m, allowed, seed)
    plan = found.plan()
    chain,p = [0, *chain_of(plan)], heights(e, m)
    assert allowed[chain].all() and chain[-1] == 2**m - 1
    assert len(chain) == 2 or (np.diff(p[chain]) >= -1e-6).all()  # no step lowers what was reached


def test_an_answer_that_is_not_legal_itself_can_be_planned():
    allowed = np.zeros(8, bool)
    _,found = world(3, allowed)
    assert len(found.plan().row) == 3


@pytest.fixture(scope='module')
def loan():
    "A frame with a category, a date and a column that may only grow; the network's answers change all of them."
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(income=rng.integers(10, 90, 200), job=rng.choice(['clerk', 'cook', 'nurse'], 200),
                           since=pd.Timestamp('2020-01-01') + pd.to_timedelta(rng.integers(0, 2000, 200), 'D'),
                           debt=rng.random(200).round(2)))
    said = lambda f: (f.income/90 + (f.job == 'nurse') - f.debt + (f.since > '2023-01-01')).to_numpy(float)
    def proba(f):
        p = 1/(1 + np.exp(5 - 3*said(f)))
        return np.stack([1 - p, p], 1)
    domain = tabular(df, increase_only=['income'])
    return GradualCF(predictor(proba, domain, kind='proba'), domain, 'sparse', tau=.6).fit(df), df


def test_a_plan_of_nothing_is_empty(loan):
    e,df = loan
    there = e.explain(df[e.z_train.argmax(1).numpy() == 1].iloc[:2], target=1)
    stuck = e.explain(df[e.z_train.argmax(1).numpy() == 0].iloc[:2], target=1, immutable=list(df))
    for cfs,said in ((there, 'nothing to change'), (stuck, 'no counterfactual, so no plan')):
        plan = cfs.plan()
        assert len(plan) == 2 and len(plan.row) == 0 and plan.changes().empty and plan.text().count(said) == 2
        assert said in plan._repr_html_() and plan.plot() is not None


@pytest.mark.night
def test_answers_from_a_file_are_planned_by_an_explainer(loan, tmp_path):
    e,df = loan
    found = e.explain(df.iloc[:8], target=1)
    read = Counterfactuals.load(found.save(tmp_path/'a.zip'), e.domain)
    pd.testing.assert_frame_equal(e.plan(read).changes(), found.plan().changes())


def test_numbers_come_nearer_to_their_interval():
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.integers(0, 20, (200, 3)), columns=list('abc'))
    model = lambda f: (f.a + f.b + f.c).to_numpy(float)[:, None]
    domain = tabular(df)
    e = GradualCF(predictor(model, domain, kind='number'), domain, 'sparse', max_shared=2).fit(df)
    plan = e.explain(df[(df.sum(axis=1) < 12)].iloc[:5], target=(50, 54)).plan()
    far = (50 - plan.changes().number).clip(lower=0)
    assert len(plan.row) > 5 and (far.groupby(plan.changes().row).diff().dropna() <= 0).all()
