"""Several answers to one question: valid, distinct, irreducible by brute force, legal, and as near as those of `explain`."""
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import toy
import torch
from cover import cover
from hypothesis import given, settings, strategies as st
from test_improve import Noise
import written
from written import load_task

from gradual_cf.all import PAPER, PLAUSIBLE, Encoded, GradualCF, Wachter, evaluate, improve, minimal, predictor, put_back, tabular
from gradual_cf.core import changed_groups, take_rows
from gradual_cf.models.targets import arrived
from gradual_cf.use.alternatives import _select


@cache
def cancer():
    task = load_task('breast_cancer')
    return task, GradualCF(task.model, task.domain, 'sparse').fit(task.X)


def found_in(many):
    "The answers that were found, the row of each and its number, how many rows there are, and the answers of one row."
    number = np.ones(len(many), int) if many.answer is None else many.answer  # one answer of each row has no number
    row, there = (number == 1).cumsum() - 1, many.valid & ~many.already
    return SimpleNamespace(answers=many[there], row=row[there], number=number[there], n=int(row.max()) + 1, of=lambda i: many[there & (row == i)])


def columns_of(many):
    "How many columns the answers of each row change together."
    return [found_in(many).of(i).changed.any(0).sum() for i in range(found_in(many).n)]


def holds(e, many, k, target=None):
    "What every collection of answers promises."
    many = found_in(many)
    a = many.answers
    assert a.valid.all() and not a.already.any()
    groups = e.groups(a.x)
    on = changed_groups(a.x, a.xp, groups)
    assert not (on & a.enc.frozen).any() and (np.diff(many.row) >= 0).all()
    for i in range(many.n):
        some = many.of(i)
        assert len(some) <= k
        apart = torch.cdist(some.xp.flatten(1).double(), some.xp.flatten(1).double()) + torch.eye(len(some))
        assert (apart > 1e-6).all()
    for i,g in on.nonzero().tolist():                           # brute force: put each change back alone
        less = torch.where(groups == g, a.x[i], a.xp[i])[None]
        if not arrived(e.model(less), a.tensors.target[i:i + 1], e.tau): continue
        asked = a.enc.take(slice(i, i + 1))
        assert not e.satisfies_settings(asked, less, a.tensors.target[i:i + 1]) and e.satisfies_settings(asked, a.xp[i:i + 1], a.tensors.target[i:i + 1])


@pytest.mark.parametrize('problem,how', cover(toy.PROBLEMS, ['default', 'paper', 'noise']))
def test_answers_are_valid_distinct_and_irreducible(problem, how):
    t = toy.PROBLEMS[problem]()
    e = dict(default=lambda: GradualCF(t.model, t.domain, 'sparse', sigma=20), noise=lambda: Noise(t.model, t.domain),
             paper=lambda: GradualCF(t.model, t.domain, PAPER, sigma=30, legal=True))[how]().fit(t.x)
    target = (e.z_train.argmax(1)[:40] + 1) % e.z_train.shape[1]
    many = e.explain(t.x[:40], target, k=4)
    holds(e, many, 4)
    one, many = e.explain(t.x[:40], target), found_in(many)
    todo = one.valid & ~one.already
    assert set(many.row.tolist()) == set(np.flatnonzero(todo).tolist())
    assert len(many.answers) > 1.5*int(todo.sum())              # most rows have further answers


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.floats(0, 1), st.floats(.3, .9))
def test_any_question(seed, k, diversity, tau):
    t = toy.columns(3)
    e = GradualCF(t.model, t.domain, 'sparse', tau=tau, sigma=5).fit(t.x)
    target = torch.randint(3, (12,), generator=torch.Generator().manual_seed(seed))
    holds(e, e.under(diversity=diversity).explain(t.x[:12], target, k=k, max_changes=3), k)


@pytest.mark.night
def test_the_first_answer_is_that_of_explain_without_idle_changes():
    t = toy.columns()
    e = GradualCF(t.model, t.domain, 'sparse', sigma=20).fit(t.x)
    one = e.explain(t.x[:40])
    many = found_in(e.explain(t.x[:40], k=3))
    first = many.answers[(many.number == 1).nonzero()[0].tolist()]
    there = sorted(set(many.row.tolist()))
    same = (first.xp == one.xp[there]).all(1)
    assert (same | ~minimal(e, one)[there]).all() and same.sum() > 20


@pytest.mark.night
def test_new_sets_of_columns_come_before_other_values():
    t = toy.columns()
    e = GradualCF(t.model, t.domain, 'sparse', sigma=20).fit(t.x)
    for i in range(0, 30, 3):
        some = e.explain(t.x[i:i + 1], k=6)
        keys = [one.numpy().tobytes() for one in changed_groups(some.x, some.xp, t.groups)]
        fresh = [key not in keys[:n] for n,key in enumerate(keys)]
        assert fresh == sorted(fresh, reverse=True)


@pytest.mark.night
def test_used_up_columns_give_other_values():
    t = toy.columns()
    e = GradualCF(t.model, t.domain, 'sparse', sigma=20).fit(t.x)
    enc = lambda raw: Encoded(torch.as_tensor(raw).clone(), torch.tensor([[True, False, True, True]]).repeat(len(raw), 1))
    narrow = GradualCF(t.model, replace(t.domain, encode=enc), 'sparse', sigma=20).fit(t.x)
    many = narrow.explain(t.x[:60], k=3)
    holds(narrow, many, 3)
    each = [found_in(many).of(i).changed for i in range(found_in(many).n)]
    assert all(len({one.tobytes() for one in on}) <= 1 for on in each) and any(len(on) > 1 for on in each)
    assert len(e.explain(t.x[:60], k=3)) > len(many)


@pytest.mark.night
def test_diversity_covers_more_columns_and_costs_nearness():
    on = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]], bool)
    moved = on*np.array([.1, .2, .9, .3])[:, None]
    assert _select(on, moved, 2, 0.) == [0, 1] and _select(on, moved, 2, 1.) == [0, 2]
    task, e = cancer()
    rows = task.X_test.iloc[:8]
    near,wide = (e.under(diversity=d).explain(rows, k=3) for d in (0., 1.))
    assert np.mean(columns_of(wide)) > np.mean(columns_of(near))
    assert wide.quality().distance.mean() >= near.quality().distance.mean()


def test_rows_that_are_there_or_cannot_get_there_have_no_answers():
    task, e = cancer()
    said = e.domain.encode(task.X_test).x
    benign = task.X_test[(e.model(said.to(e.x_train)).argmax(1) == 1).numpy()].iloc[:2]
    for many in (e.explain(benign, target=1, k=5), e.explain(benign, target=0, immutable=list(benign), k=5)):
        assert len(many) == 2 and not len(found_in(many).answers) and many.answer.tolist() == [1, 1]
        assert many.changes().empty and many.plot() is not None and many.xp.equal(many.x)


def loan_rows():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(income=rng.integers(10, 90, 400), job=rng.choice(['clerk', 'cook', 'nurse', 'smith'], 400),
                           debt=rng.random(400).round(2), years=rng.integers(0, 40, 400)))
    good = (df.income/90 + .4*(df.job == 'nurse') + .3*(df.job == 'smith') - df.debt + df.years/80 > .5).to_numpy(int)
    return df, good


@pytest.fixture(scope='module')
def loans(): return loan_rows()


@pytest.mark.parametrize('name', ['digits', 'toy_reviews', 'breast_cancer'])
def test_images_texts_and_tables(name):
    task = load_task(name)
    rows,k = take_rows(task.X_test, slice(0, 2)), len(task.classes)
    target = None if k == 2 else (np.asarray(task.y_test[:2]) + 1) % k
    e = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    state = torch.get_rng_state()
    many = e.explain(rows, target, k=3)
    assert torch.equal(state, torch.get_rng_state())
    holds(e, many, 3)
    assert len(many) > found_in(many).n and e.domain.legal(many.data, many.raw).all()
    lines = many.changes()
    assert list(lines)[:2] == ['row', 'answer'] and lines.groupby('row').answer.max().le(3).all()
    assert many.plot() is not None and found_in(many).of(0).plot() is not None and 'answer 2' in many._repr_html_() and 'answer 2' in many.text()
    names = list(many.data.index) if name == 'breast_cancer' else found_in(many).row.tolist()
    assert many.quality().row.tolist() == names  # all answers of a row go by its name
    assert len(many.df()) == len(many) and many.df().cf_answer.tolist() == many.answer.tolist()


def test_a_baseline_has_several_answers_too():
    t = toy.columns()
    e = Wachter(t.model, t.domain, rounds=3, steps=60).fit(t.x)
    holds(e, e.explain(t.x[:10], k=2), 2)


def test_irreducible_is_a_measure_and_agrees_with_brute_force():
    t = toy.columns()
    e = GradualCF(t.model, t.domain, PAPER, sigma=30, legal=True).fit(t.x)
    cfs = e.explain(t.x[:60])
    want = torch.ones(60, dtype=torch.bool)
    for i,g in changed_groups(cfs.x, cfs.xp, t.groups).nonzero().tolist():
        less = torch.where(t.groups == g, cfs.x[i], cfs.xp[i])[None]
        if cfs.valid[i] and arrived(t.model(less), cfs.tensors.target[i:i + 1], e.tau): want[i] = False
    assert 0 < want.sum() < 60 and torch.equal(minimal(e, cfs), want)
    assert minimal(e, improve(e, cfs, [put_back])).all()
    table = evaluate(e, t.x[:60], eps=()).set_index('metric')
    assert table.loc['minimal', 'mean'] == pytest.approx(want.double().mean().item())


@pytest.mark.night
def test_answers_of_a_row_do_not_depend_on_its_neighbours():
    task, e = cancer()
    rows = task.X_test.iloc[:12]
    whole = e.explain(rows, k=3)
    for i in (0, 5, 11):
        one = e.explain(rows.iloc[i:i + 1], k=3)
        assert torch.allclose(one.xp, found_in(whole).of(i).xp, atol=1e-4)


def tied_rows():
    "A table with a sum and a comparison."
    rng = np.random.default_rng(0)
    df = pd.DataFrame({c: rng.integers(0, 30, 400) for c in 'abc'})
    df['total'],df['most'] = df.a + df.b, df[['c', 'a']].max(axis=1)
    return df, (df.total + df.c > 45).astype(int).to_numpy()


@pytest.fixture(scope='module')
def tied():
    "An explainer to which one column costs three times as much, and rows."
    df, good = tied_rows()
    domain = tabular(df, relations=['total == a + b', 'most >= c'], cost={'a': 3., 'b': 1., 'c': 1.})
    return GradualCF(written.read('tied'), domain, 'sparse', tau=.8).fit(df), df[good == 0].iloc[:40]


@pytest.mark.night
def test_what_hangs_together_moves_together(tied):
    e,rows = tied
    many = e.explain(rows, target=1, k=4)
    a = found_in(many).answers
    plan = a.plan()
    assert a.valid.all() and minimal(e, a).all() and len(a) > 80
    for raw,start in ((a.raw, a.data), (plan.taken.raw, a.data.iloc[plan.row])):
        assert (raw.total == raw.a + raw.b).all() and (raw.most >= raw.c).all()
        assert e.domain.legal(start, raw).all()
    steps = plan.changes()
    assert steps[steps.feature == 'total'].follows.all()
    led = steps.groupby(['row', 'step']).feature.agg(set)
    assert all(one & {'a', 'b'} for one in led if 'total' in one)
    assert any(len(one) == 1 for one in led)                                       # only what follows comes along


@pytest.mark.night
def test_believable_answers_where_they_are_asked_for(loans):
    df,_ = loans
    e = GradualCF(written.read('jobs'), tabular(df), PLAUSIBLE).fit(df)
    many = e.explain(df.iloc[:6], k=3)
    many = found_in(many)
    a = many.answers
    content = e.satisfies_settings(a.enc, a.xp, a.tensors.target)
    assert a.valid.all() and minimal(e, a).all() and content.any() and a.typical is not None
    for i in set(many.row.tolist()):                        # all of a row, or none because it has none
        assert len(content[np.flatnonzero(many.row == i).tolist()].unique()) == 1


@pytest.mark.night
def test_sets_are_full_where_columns_of_levels_must_change_together():
    from itertools import product
    points = dict(a=0, b=1, c=2)
    rows = pd.DataFrame(list(product('abc', repeat=4)), columns=list('wxyz')).astype('category')
    def chance(df):
        p = (sum(df[c].astype(object).map(points).astype(int) for c in rows) >= 5).to_numpy(float)*.8 + .1
        return np.column_stack([1 - p, p])
    domain = tabular(rows)
    cf = GradualCF(predictor(chance, domain, names=list(rows)), domain, 'sparse').fit(rows)
    some = rows[(rows == 'a').sum(axis=1) >= 2].sample(8, random_state=0)
    some = some[cf.explain(some, 1).before < .5].head(4)
    many = cf.explain(some, 1, k=4)
    assert (np.bincount(found_in(many).row, minlength=len(some)) == 4).all()
    assert minimal(cf, many).all() and many.valid.all()
    for i in range(len(some)): assert len(found_in(many).of(i).raw.drop_duplicates()) == 4
