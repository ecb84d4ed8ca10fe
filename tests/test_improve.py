"""Improving takes away and never adds: no row gains a group or a distance, no valid row is lost, twice is once."""

import numpy as np
import pandas as pd
import pytest
import torch
import toy

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gradual_cf.all import (Encoded, Explainer, GradualCF, State, Target, from_frames, improve, letter, line_search, load_loans, measures,
    predict, predictor, put_back, summary, tabular)
from gradual_cf.core import changed_groups
from gradual_cf.search.goals import violation, distance_or_cost
from gradual_cf.search.shorten import improve_states, put_back_smallest


class Noise(Explainer):
    "A wasteful method: random admissible values in every free group, the best of 30 draws."
    def search(self, question, effort):
        enc, target, gen = question.enc, question.target, torch.Generator().manual_seed(effort.seed)
        groups,best = self.domain.groups(enc.x.shape[1:]), enc.x.clone()
        p = lambda xp: self.model(xp).softmax(1).gather(1, target[:, None])[:, 0]
        for _ in range(30):
            c = torch.where(enc.frozen[:, groups], enc.x, torch.rand(enc.x.shape, generator=gen, dtype=enc.x.dtype))
            win = p(c) > p(best)
            best[win] = c[win]
        return best


# Answers of another method
@pytest.fixture(scope='module')
def decided_by_trees():
    X, y, T, _ = load_loans()
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', max_iter=20, random_state=0).fit(X, y)
    return model, GradualCF(model, tabular(X, bounds={'income': (None, 90_000)}), 'sparse').fit(X), T[model.predict(T) == 'refused'].head(6), T[model.predict(T) == 'granted'].head(6)


@pytest.mark.night
def test_frames_of_another_method_are_answers_like_any_other(decided_by_trees):
    model, cf, rows, other = decided_by_trees
    own = cf.explain(rows)
    same = from_frames(cf, rows, own.raw)
    assert torch.equal(same.xp, own.xp) and (same.valid == own.valid).all() and (same.typical == own.typical).all() and same.changes().equals(own.changes())
    theirs = from_frames(cf, rows, other.reset_index(drop=True))  # their rows have other names
    assert (theirs.valid == (model.predict(other) == 'granted')).all() and (theirs.raw.to_numpy(object) == other.to_numpy(object)).all()
    assert measures(cf, theirs).set_index('metric').loc['valid', 'mean'] == 1 and (theirs.quality().changes == (rows.to_numpy(object) != other.to_numpy(object)).sum(1)).all()
    better = improve(cf, theirs)
    assert better.valid.all() and (better.changed.sum(1) <= theirs.changed.sum(1)).all() and better.changed.sum() < theirs.changed.sum()
    assert (theirs.prove().bound <= theirs.changed.sum(1)).all() and 'granted' in letter(better[:1])[0]


def test_frames_are_judged_as_they_are(decided_by_trees):
    model, cf, rows, other = decided_by_trees
    odd = other.assign(income=other.income + 1e6)
    answers = from_frames(cf, rows, odd)
    assert (answers.raw.income.to_numpy() == odd.income.to_numpy()).all() and not cf.domain.legal(rows, answers.raw).all(1).any()
    gone = other.astype(object)
    gone.iloc[1] = None
    answers = from_frames(cf, rows, gone, 'granted')
    assert not answers.valid[1] and answers.valid.sum() == 5 and (answers.raw.iloc[1] == rows.iloc[1]).all()


def in_columns(*, named):  # a category in columns of 0 and 1, found or named
    r = np.random.default_rng(0)
    X = pd.DataFrame(np.eye(3)[r.integers(0, 3, 300)], columns=['job_a', 'job_b', 'job_c']).assign(x=r.random(300))
    model = LogisticRegression().fit(X, X.x + X.job_a > 1)
    return model, GradualCF(model, tabular(X, **(dict(categorical={'job': list(X)[:3]}) if named else {})), 'sparse').fit(X), X[~model.predict(X)][:4]


def in_levels():  # the model passes over a level that it does not know
    r = np.random.default_rng(0)
    X = pd.DataFrame(dict(c=r.choice(list('abc'), 300), x=r.random(300)))
    model = make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), ['c']), remainder='passthrough'), LogisticRegression())
    model.fit(X, X.x + (X.c == 'a') > 1)
    return model, GradualCF(model, tabular(X), 'sparse').fit(X), X[~model.predict(X)][:4]


@pytest.mark.parametrize('made, odd, says', [
    *[(partial(in_columns, named=named), odd, says) for named in (False, True) for odd, says in (
        (dict(job_a=1., job_b=1., job_c=0.), 'job_a + job_b'), (dict(job_a=.4, job_b=.6, job_c=0.), '0.4 job_a + 0.6 job_b'),
        (dict(job_a=0., job_b=0., job_c=0.), 'none of these'), (dict(job_a=-3., job_b=0., job_c=4.), '-3 job_a + 4 job_c'))],
    (in_levels, dict(c='zzz'), 'zzz')], ids=lambda v: None if callable(v) else str(v))
def test_an_answer_that_no_row_can_be_is_asked_about_and_is_not_legal(made, odd, says):
    model, cf, rows = made()
    own, i = cf.explain(rows, True), np.arange(len(rows)) == 1
    theirs = own.raw.copy()
    theirs.loc[i, list(odd)] = list(odd.values())
    answers = from_frames(cf, rows, theirs, True)
    assert (answers.raw == theirs).all(axis=None) and (answers.legal == ~i).all() and (answers.valid == model.predict(theirs)).all()
    np.testing.assert_allclose(answers.prob, model.predict_proba(theirs)[:, 1])
    told = measures(cf, answers).set_index('metric')['mean']
    assert told.legal == .75 and told.valid == answers.valid.mean() and says in answers.changes().after.tolist() and own.legal.all()


def test_numbers_of_full_precision_are_legal_with_any_decimals():
    "A method of gradients does not round; what training rows hold with two decimals stays at two."
    r = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=r.random(300), b=r.random(300).round(2)))
    cf = GradualCF(LogisticRegression().fit(X, X.a > .5), tabular(X), 'sparse').fit(X)
    theirs = X[:3].assign(a=[.123456789012345, .5, 1.5], b=[.25, .123456789, .5])
    assert cf.domain.legal(X[:3], theirs).tolist() == [[True, True], [True, False], [False, True]]


def test_who_wants_answers_and_gets_frames_says_what_makes_them(decided_by_trees):
    _, cf, rows, other = decided_by_trees
    for ask in (lambda: improve(cf, other), lambda: measures(cf, other), lambda: cf.region(other)):
        with pytest.raises(ValueError, match='must be Counterfactuals, as explain returns them, got DataFrame: from_frames'): ask()
    with pytest.raises(ValueError, match='got 2 Counterfactuals: measures'): summary(cf.explain(rows[:2]))
    with pytest.raises(ValueError, match='answers must be one for each of 6 rows, got 2'): from_frames(cf, rows, other[:2])
    with pytest.raises(ValueError, match='must have the columns'): from_frames(cf, rows, other.drop(columns='age'))


@pytest.mark.night
@pytest.mark.parametrize('constraints', [{}, dict(increase_only=['a']), dict(immutable=['b'], bounds={'a': (5, 22)})], ids=str)
@pytest.mark.parametrize('asked', [False, True], ids=['network', 'asked'])
def test_where_one_change_suffices_it_is_the_nearest_legal_one_of_all_columns(asked, constraints):
    gen, n = np.random.default_rng(0), 150
    X = pd.DataFrame(dict(a=gen.integers(0, 40, n), b=gen.normal(0, 3, n).round(1), c=gen.choice(['u', 'v', 'w'], n), d=gen.choice([-9, *range(6)], n)))
    domain = tabular(X, read=dict(special=[-9]))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(domain.encode(X).x.shape[1], 2))
    with torch.no_grad(): net[0].weight *= 1000 # the margin is no step wide
    with torch.no_grad(): net[0].bias[1] -= net(domain.encode(X).x.float()).diff(dim=1).median()
    says = lambda df: net(domain.encode(df).x.float()).softmax(1).detach().numpy()
    cf = GradualCF(predictor(lambda df: says(df), domain) if asked else net, domain, 'sparse').fit(X)
    rows, found = X.iloc[:12], 0
    q = cf.ask(rows, **constraints)
    xp, own = cf.search(q), says(rows).argmax(1)
    values = dict(a=range(40), b=np.arange(X.b.min(), X.b.max() + .05, .1).round(1), c=['u', 'v', 'w'], d=range(6))
    low, high = constraints.get('bounds', {}).get('a', (0, 40))
    for i, row in enumerate(rows.to_dict('records')):
        others = pd.DataFrame([row | {c: v} for c, still in zip(values, q.enc.frozen[i]) if not still for v in values[c] if v != row[c]
                               and not (c == 'a' and (not low <= v <= high or 'increase_only' in constraints and v < row[c]))]).astype(X.dtypes)
        there = others[says(others).argmax(1) != own[i]]
        if not len(there): continue
        nearest, found = (domain.encode(there).x.float() - q.enc.x[i]).norm(dim=1).min(), found + 1
        assert changed_groups(q.enc.x, xp, cf.groups(xp))[i].sum() == 1 and (xp[i] - q.enc.x[i]).norm() <= nearest*(1 + 1e-4), (row, there)
    assert found > 5


# Details of what is taken away
@pytest.fixture(scope='module')
def p(): return toy.columns()


def answered(p, **settings):
    "Answers that have arrived, with more room than they need; and as a state that is asked for no more than `tau`."
    cf = GradualCF(p.model, p.domain, 'sparse', **settings).fit(p.x)
    cfs = cf.explain(p.x[:40], 1 - predict(p.model, p.x[:40]).argmax(1))
    aim = cf.aim(cfs.tensors.target)
    return cf, cfs, State(cfs.enc, cfs.xp.clone(), predict(cf.model, cfs.xp), aim._replace(level=torch.full_like(aim.level, cf.tau)))


def test_improving_counts_by_the_bar_that_answers_were_found_with(p):
    cfs,low = answered(p, tau=.7)[1], GradualCF(p.model, p.domain, 'sparse', tau=.5, tau_slack=0.).fit(p.x)
    better = improve(low, cfs)
    assert better is not cfs and better.tau == cfs.tau == .7 and np.array_equal(better.valid, cfs.valid) and (better.prob[cfs.valid] >= .7 - 1e-6).all()
    assert low.enc_of(cfs) is cfs.enc and torch.equal(low.enc_of(replace(cfs, enc=None)).x, cfs.x)
    assert torch.equal(improve(low, replace(cfs, enc=None)).xp, better.xp)      # as it comes from a file


def test_a_move_that_loses_the_target_is_not_taken(p):
    cf,cfs,s = answered(p, tau=.6)
    assert cfs.valid.all()
    x,way = s.xp.clone(), lambda explainer, s: s._replace(xp=s.x.clone(), logits=predict(cf.model, s.x))
    short = violation(cf, way(cf, s))
    assert ((short > 0) & (short < 1)).any()
    for s in improve_states(cf, s, [way], torch.arange(len(x))): pass
    assert torch.equal(s.xp[short > 0], x[short > 0])


def test_groups_are_put_back_as_far_as_the_row_stays_there(p):
    "Every entry differs at first. What is left is needed, group by group, as the model says."
    cf,_,s = answered(p, tau=.6)
    far = torch.where(p.frozen[:40, p.groups], s.x, 1 - s.x)
    s = s._replace(xp=far, logits=predict(cf.model, far))
    there = violation(cf, s) <= 0
    assert there.sum() > 5
    for way in (put_back_smallest, put_back):
        left = way(cf, s)
        now = violation(cf, left) <= 0
        assert now[there].all() and torch.equal(left.xp[~now], far[~now]) and torch.allclose(left.logits, predict(cf.model, left.xp))
        assert ((left.xp == s.x) | (left.xp == far)).all() and (left.xp != far)[there].any()
    for g in range(4):
        one = torch.where(p.groups == g, s.x, left.xp)
        assert (violation(cf, left._replace(xp=one, logits=predict(cf.model, one))) > 0)[(one != left.xp).any(1) & there].all()
    near = line_search(cf, left)
    assert (violation(cf, near) <= 0)[there].all() and (distance_or_cost(s.x, near.xp) < distance_or_cost(s.x, left.xp))[there].all()


class Sum(torch.nn.Module):
    "A model whose one number is the sum of the entries."
    def forward(self, x): return x.sum(1, keepdim=True)


@pytest.mark.parametrize('way,xp,low,first,left', [
    *[(way, [[1., 2, 4]], 6., False, [[0, 2, 4]]) for way in (put_back, put_back_smallest)],       # at the very bar
    (put_back_smallest, [[1., 2, 4, 0], [3, 3.5, 4, 0]], 6.5, False, [[1, 2, 4, 0], [0, 3.5, 4, 0]]),
    (put_back_smallest, [[-1., 2, 2.5]], 3., True, [[0, 2, 2.5]]), (put_back_smallest, [[1., -2, 4]], 3., True, [[1, -2, 4]]),
    (put_back_smallest, [[1., -2, 4]], 3., False, [[1, 0, 4]])])
def test_zeros_on_their_way_to_a_sum(way, xp, low, first, left):
    "A row at the very bar has arrived, and one may be left after its first failure."
    cf = SimpleNamespace(model=Sum().eval(), groups=lambda x: torch.arange(x.shape[1]), ties=dict(relations=None), settings=object())
    xp = torch.tensor(xp, dtype=torch.float64)
    aim = Target(torch.tensor([[low, torch.inf]], dtype=torch.float64).expand(len(xp), 2), torch.full((len(xp),), .5))
    s = State(Encoded(torch.zeros_like(xp), torch.zeros(xp.shape, dtype=torch.bool)), xp, xp.sum(1, keepdim=True), aim)
    assert way(cf, s, **dict(first=True) if first else {}).xp.tolist() == left


@pytest.fixture(scope='module')
def points():
    "Two numbers of equal worth, and one that is worth little."
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 41, (200, 3)), columns=list('abc'))
    return X, lambda df: 1/(1 + np.exp(-(df.a + df.b + .1*df.c - 60)/4)), X[X.sum(axis=1) < 45].head(6)


def squared(x, v): return (v - x)**2


@pytest.mark.parametrize('cost', [None, dict(a=1., b=2., c=9.), dict(a=squared, b=squared)], ids=['distance', 'lines', 'squares'])
def test_a_change_is_shared_where_that_is_nearer_by_a_tenth(points, cost):
    X, says, rows = points
    of = lambda **more: (cf := GradualCF(predictor(says, tabular(X, cost=cost)), tabular(X, cost=cost), 'sparse', **more).fit(X), cf.explain(rows, 1))
    (cf, one), (_, two) = of(), of(max_shared=2)
    far = lambda a: distance_or_cost(a.x, a.xp, cf.ties['price'])
    won = torch.as_tensor((two.xp != one.xp).any(1))
    assert one.valid.all() and two.valid.all() and two.legal.all() and (two.changed.sum(1) <= np.maximum(one.changed.sum(1), 2)).all()
    assert (far(two)[won] < .9*far(one)[won] + 1e-6).all() and (won.any() or cost is not None)


@pytest.mark.parametrize('tau', [None, .7])
def test_answers_lie_above_the_level_in_no_more_columns(points, tau):
    X, says, rows = points
    net = torch.nn.Sequential(torch.nn.Linear(3, 2)).double()
    with torch.no_grad(): net[0].weight.copy_(torch.tensor([[0., 0, 0], [10, 10, 1]])); net[0].bias.copy_(torch.tensor([0., -15]))
    of = lambda **more: GradualCF(net, tabular(X), 'sparse', tau=tau, **more).fit(X).explain(rows, 1)
    bare, more = of(), of(tau_slack=.2)
    level = (tau or .5) + .2*(1 - (tau or .5))
    assert bare.valid.all() and more.valid.all() and (more.changed.sum(1) <= bare.changed.sum(1)).all()
    assert (more.prob >= level - 1e-6).mean() > .5 and (more.prob >= bare.prob - 1e-6).all() and ((bare.prob < level) | (more.xp == bare.xp).all(1).numpy()).all()
