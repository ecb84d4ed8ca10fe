"""Small mistakes that no other test minded, as mutants showed (`make mutants`): each of these fails for one of them."""
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from toy import columns, reference

from gradual_cf.all import (Encoded, GradualCF, Question, Settings, State, Target, box, chain, compose, cost, fit_logits, improve,
    init_composite, l2_distance, line_search, logit_gap, logit_gap_norm, mix, predictor, probe, put_back, share, shortfall, steps, tabular)
from gradual_cf.answers import CHANGED
from gradual_cf.gradual import _aim_inside, _least_lead, _loss_of, _reachable
from gradual_cf.models.networks import seeded
from gradual_cf.search.composition import admissible, loss_grad
from gradual_cf.search.goals import Lead, Match, arrived, lacking, target_score, lead_of, merit, most_groups, spent, prototype_distance
from gradual_cf.search.masking import gain_groups
from gradual_cf.search.plausible import _usual_depth
from gradual_cf.search.shorten import improve_states, put_back_smallest


@pytest.fixture(scope='module')
def toy(): return columns()


def asked(toy, n=12, **how):
    "The probe's answer for some rows that want the other class, with every group free."
    x = toy.x[:n]
    label = 1 - toy.model(x).argmax(1)
    s = State(Encoded(x, toy.frozen[:n]), x, toy.model(x), reference(toy, label, how.pop('quantile', None), match=how.pop('match', logit_gap)))
    free = torch.ones(n, 4, dtype=torch.bool)
    return x, label, probe(toy.model, s, how.pop('free', free), toy.groups, toy.domain.propose, **how)


# ---- masking

def test_what_is_not_free_gains_minus_infinity():
    gain = gain_groups(torch.tensor([[1., 2, 3]]), torch.tensor([[1., 1, -1]]), torch.tensor([0, 1, 1]), torch.tensor([[True, False]]))
    assert gain.tolist() == [[1., -torch.inf]]


class Narrow:
    "A projection that is asked about entries, never about whole rows."
    def __call__(self, c, x): raise AssertionError('whole rows')
    def narrow(self, at, x): return lambda v: v.clamp(.2, .8)


def test_the_probe_asks_a_narrow_projection_about_entries(toy):
    x,_,(group,xp,_) = asked(toy, project=Narrow())
    moved = xp[xp != x]
    assert len(moved) and ((moved >= .2) & (moved <= .8)).all()


def test_the_last_stretch_stays_on_the_grid(toy):
    "Single numbers are divided once more between where they stand and where they arrive; whole numbers stay whole."
    grid = chain(box(0., 1.), steps(torch.full((6,), .125)))
    x,_,(group,xp,_) = asked(toy, 60, project=grid)
    moved = xp[xp != x]
    assert torch.equal((moved*8).round(), moved*8) and (group < 3).any()


def test_a_match_may_read_the_rows(toy):
    seen = []
    def match(s):
        seen.append(s.xp.shape)
        return logit_gap(s) + s.xp.sum(1)*0
    _,_,(_,xp,_) = asked(toy, quantile=.5, match=match)
    assert torch.equal(xp, asked(toy, quantile=.5)[2][1]) and all(len(shape) == 2 for shape in seen)


def dearer(x, xp): return ((xp - x).abs()*torch.tensor([1., 5, 1, 1, 1, 1]).to(x)).sum(1)


def test_the_probe_prefers_what_costs_least(toy):
    "Of values that arrive, the cheapest by the price that was given; brute force over all of them says the same."
    x,label,(group,xp,score) = asked(toy, 40, price=dearer)
    there = score > 0
    assert there.any() and torch.allclose(score[there], 1/(1 + dearer(x, xp)[there]))
    for g in range(4):
        values = toy.domain.propose(x, g)[0]
        for v in values:
            c = x.clone()
            c[:, toy.groups == g] = v
            arrived = toy.model(c).softmax(1).gather(1, label[:, None])[:, 0] >= .5
            assert (1/(1 + dearer(x, c)) <= score + 1e-12)[arrived & (c != x).any(1)].all()


class Together:
    "The second column follows the first."
    def tried(self, s, t, group):
        t = t.clone()
        if group == 0: t[..., 1] = t[..., 0]
        return t, t[..., 1] >= t[..., 0]

    def holds(self, enc, xp): return xp[:, 1] >= xp[:, 0]


def test_the_probe_takes_along_what_follows(toy):
    x,label,(group,xp,score) = asked(toy, 60, relations=Together())
    told = score > -torch.inf
    assert (xp[told, 1] >= xp[told, 0]).all()
    first = told & (group == 0)
    assert first.any() and torch.equal(xp[first, 1], xp[first, 0])
    there = score > 0
    assert torch.allclose(score[there], 1/(1 + (xp - x)[there].norm(dim=1)))


# ---- composition

def test_limits_of_a_row_hold_on_both_sides_and_what_did_not_move_stays():
    x = torch.tensor([[.1, .5, .9, .5]])
    enc = Encoded(x, torch.zeros(1, 4, dtype=torch.bool), torch.tensor([[.2, .4, .4, -torch.inf]]), torch.tensor([[.8, .6, .6, torch.inf]]))
    assert admissible(enc, torch.tensor([[0., 0, 1, 7]])).tolist() == torch.tensor([[.2, .4, .6, 7]]).tolist()
    assert torch.equal(admissible(enc, x), x)        # the first and the third lie outside
    assert admissible(enc, torch.tensor([[.3, .5, .9, .5]]), lambda c, x: c + 1).tolist() == torch.tensor([[1.3, 1.5, 1.9, 1.5]]).tolist()
    assert torch.equal(admissible(enc._replace(low=None), torch.tensor([[0., 0, 1, 7]])), torch.tensor([[0., 0, .6, 7]]))
    assert torch.equal(admissible(enc._replace(high=None), torch.tensor([[0., 0, 1, 7]])), torch.tensor([[.2, .4, 1, 7]]))


def begun(toy, n=20, **target):
    "States with all groups on, that want the other class."
    x = toy.x[:n]
    label = 1 - toy.model(x).argmax(1)
    enc,aim = Encoded(x, toy.frozen[:n]), reference(toy, label)._replace(**target)
    return State(enc, x.clone(), toy.model(x).detach(), aim, torch.ones(n, 4, dtype=torch.bool), x.clone())


def test_a_step_is_taken_along_the_gradient_through_the_view(toy):
    "One step of Adam goes as far as the rate, against the sign of the gradient; which it sees through the view."
    def view(x): return x.flip(1)
    s = begun(toy)
    loss = mix(logit=(1., logit_gap))
    out = compose(toy.model, s, toy.groups, loss, sigma=1, lr=.01, views=[view])
    x = s.x.clone().requires_grad_()
    gap = (toy.model(view(x)) - s.target.mu).abs().mean(1).sum()
    step = -.01*torch.autograd.grad(gap, x)[0].sign()
    torch.testing.assert_close(out.xp, s.x + step, atol=1e-6, rtol=0)


def test_gradients_in_parts_are_those_of_the_whole():
    with seeded(0): net = nn.Linear(600, 2).double().eval()
    x = torch.rand(300, 600, dtype=torch.float64)
    enc = Encoded(x, torch.zeros(300, 600, dtype=torch.bool))
    s = State(enc, x, net(x).detach(), Target(torch.ones(300, dtype=torch.long), torch.full((300,), .5).double(), torch.zeros(300, 2).double()))
    sizes = []
    net.register_forward_hook(lambda m, given, out: sizes.append(len(given[0])))
    g,seen = loss_grad(net, mix(logit=(1., logit_gap)), s)
    assert sizes == [128, 128, 44] and torch.equal(seen.logits, s.logits)
    want = torch.autograd.functional.jacobian(lambda x: net(x).abs().mean(1).sum(), x)
    torch.testing.assert_close(g, want)


def test_the_nearest_iterate_is_judged_by_the_match_that_was_asked_for(toy):
    seen,gap = [], torch.full((20,), .8, dtype=torch.float64)
    s = begun(toy, demands=(Match(gap, logit_gap_norm),))
    loss = mix(logit=(1., logit_gap_norm), l2=(.1, l2_distance))
    out = compose(toy.model, s, toy.groups, loss, sigma=60, keep='nearest', watch=lambda s: seen.append(shortfall(s) <= 0))
    ever = torch.stack(seen).any(0)
    assert len(seen) == 61 and ever.any()
    assert torch.equal(shortfall(out) <= 0, ever)


def test_a_chain_is_narrow_only_where_all_links_are():
    plain = lambda c, x: c
    assert hasattr(chain(box(0., 1.), steps(torch.ones(2))), 'narrow') and not hasattr(chain(box(0., 1.), plain), 'narrow')
    v = chain(box(0., 1.), steps(torch.tensor([.5, .25]))).narrow(torch.tensor([[0, 1]]), torch.zeros(1, 2))
    assert v(torch.tensor([[.7, 1.3]])).tolist() == [[.5, 1.]]


def test_a_start_follows_its_seed():
    a,b = (init_composite(torch.zeros(2, 3), 'normal', seed) for seed in (0, 1))
    assert torch.equal(a[0], a[1]) and not torch.equal(a, b)


def test_a_step_towards_the_prototype_goes_by_the_masked_entries(toy):
    "Only the third group is on; its entry moves towards the prototype's, those of others stay."
    s = begun(toy)
    near = torch.where(torch.arange(6) % 2 == 0, s.x + 1, s.x - 1)
    s = s._replace(target=s.target._replace(near=near), on=torch.tensor([[False, True, True, False]]).expand(20, 4))
    out = compose(toy.model, s, toy.groups, mix(pull=(1., prototype_distance)), sigma=1, lr=.01)
    moved = torch.tensor([0., -.01, .01, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(out.xp - s.x, moved.expand(20, 6), atol=1e-9, rtol=0)


class Twice:
    "The second column is twice the first."
    def follow(self, xp, x): return torch.cat([xp[:, :1], 2*xp[:, :1], xp[:, 2:]], 1)
    def holds(self, enc, xp): return ((xp[:, 1] - 2*xp[:, 0]).abs() < 1e-9) & (xp[:, 0] > .2)


@pytest.mark.parametrize('keep', ['last', 'nearest'])
def test_what_follows_is_put_in_after_every_step(toy, keep):
    s,seen = begun(toy), []
    loss = mix(logit=(1., logit_gap), l2=(.1, l2_distance))
    out = compose(toy.model, s, toy.groups, loss, sigma=40, lr=.05, keep=keep, relations=Twice(), watch=lambda s: seen.append(s.xp.clone()))
    assert all(torch.equal(xp[:, 1], 2*xp[:, 0]) for xp in [*seen, out.xp])
    torch.testing.assert_close(out.logits, toy.model(out.xp).detach())
    torch.testing.assert_close(out.c, out.xp)
    allowed = torch.stack([xp[:, 0] > .2 for xp in seen]).any(0)
    if keep == 'nearest': assert (out.xp[:, 0] > .2)[allowed].all()    # iterates that break a relation are not kept
    else: assert torch.equal(out.xp, seen[-1])


def test_the_nearest_iterate_is_the_one_that_costs_least(toy):
    s,seen = begun(toy), []
    loss = mix(logit=(1., logit_gap), l2=(.1, l2_distance))
    def watch(s): seen.append((s.xp.clone(), shortfall(s) <= 0))
    out = compose(toy.model, s, toy.groups, loss, sigma=60, lr=.05, keep='nearest', watch=watch, price=dearer)
    paid = torch.stack([dearer(s.x, xp).masked_fill(~there, torch.inf) for xp,there in seen]).amin(0)
    assert (paid < torch.inf).any()
    torch.testing.assert_close(dearer(s.x, out.xp)[paid < torch.inf], paid[paid < torch.inf])


def test_iterates_are_judged_without_the_view(toy):
    s,seen = begun(toy), []
    def watch(s): seen.append((s.logits, toy.model(s.xp).detach()))
    compose(toy.model, s, toy.groups, mix(logit=(1., logit_gap)), sigma=5, keep='nearest', views=[lambda x: x.flip(1)], watch=watch)
    for judged,plain in seen: torch.testing.assert_close(judged, plain)


# ---- the loop

def test_the_aim_lies_in_the_middle_of_an_interval_or_just_beyond_its_one_end():
    inf = torch.inf
    interval = torch.tensor([[1., 3.], [-inf, 3.], [1., inf], [-inf, inf]])
    aim = _aim_inside(SimpleNamespace(spread=2.), interval)
    assert aim.mu.tolist() == torch.tensor([[2.], [2.8], [1.2], [0.]]).tolist()
    assert torch.equal(aim.label, interval) and aim.level.tolist() == [.5]*4 and aim.gap is None


def test_the_least_lead_is_that_of_a_share_of_the_rows_of_the_class():
    z = torch.tensor([[0., 1, 0], [0, 3, 0], [0, 5, 1], [2, 0, 0], [0, 0, 9], [0, 0, 7]])
    assert _least_lead(z, torch.tensor([1, 2, 0, 1]), .5).tolist() == [3., 8., 2., 3.]
    assert _least_lead(z, torch.tensor([1]), 0.).tolist() == [1.]


def test_a_class_of_rows_that_are_all_alike_has_no_quantile():
    stats = fit_logits(torch.tensor([[0., 1], [0, 2], [0, 4], [5, 0]]))
    assert _reachable(stats, torch.tensor([1, 1]), .5).shape == (2,)
    with pytest.raises(ValueError, match=r'^quantile must be None for a class with one training row, got 0.5 and class \[0\]$'): _reachable(stats, torch.tensor([1, 0]), .5)


def test_a_model_without_gradient_is_asked_about_values_that_training_rows_hold():
    df = pd.DataFrame(dict(a=[1., 2.5, 2.5, 7.25, 10.], b=[0, 1, 2, 3, 4], c=['x', 'y', 'x', 'y', 'x']))
    domain = tabular(df, increase_only=['b'])
    cf = GradualCF(predictor(lambda rows: np.stack([rows.a/20, 1 - rows.a/20], 1), domain, kind='proba'), domain, 'sparse').fit(df)
    assert cf.settings.sigma == 0 and cf.settings.tau_slack == 0
    some = cf.propose(cf.x_train[:2], 0)[..., 0]
    held = cf.held[0]
    assert sorted(held.tolist()) == sorted(cf.x_train[:, 0].unique().tolist())
    cf.propose(cf.x_train[:2], 0)
    assert cf.held[0] is held
    assert all((some == v).any(1).all() for v in held) and cf.propose(cf.x_train[:2], 2).shape == domain.propose(cf.x_train[:2], 2).shape
    asked = GradualCF(cf.model, domain, 'sparse', tau_slack=.3).fit(df)
    assert asked.settings.tau_slack == .3 and asked.settings.sigma == 0


def solved(toy, **settings):
    cf = GradualCF(toy.model, toy.domain, 'sparse', **settings).fit(toy.x)
    x = toy.x[:30]
    return cf, Encoded(x, toy.frozen[:30]), 1 - toy.model(x).argmax(1)


def test_a_quick_search_finds_about_as_many(toy):
    cf,enc,label = solved(toy, tau=.6)
    question = Question(None, enc, None, label)
    found = cf.search(question)
    assert not torch.equal(found, enc.x)
    fresh = cf.search_quickly(question)
    there = lambda xp: toy.model(xp).softmax(1).gather(1, label[:, None])[:, 0] >= .6
    assert there(fresh).sum() >= there(found).sum() - 1
    assert cf.content(enc, found, label)[there(found)].all() and not cf.content(enc, enc.x, label)[~there(enc.x)].any()
    assert cf.settings.sigma == 50


def test_the_trace_of_a_row_that_is_there_has_no_step(toy):
    cf = GradualCF(toy.model, toy.domain, 'sparse').fit(toy.x)
    trace = cf.trace(toy.x[1:2], target=int(toy.model(toy.x[1:2]).argmax()))
    assert len(trace) == 0


def test_only_images_are_smoothed_and_only_where_somebody_asks():
    assert set(_loss_of(Settings(eta=.3), 'table').terms) == {'logit', 'l2'} == set(_loss_of(Settings(eta=0.), 'image').terms)
    terms = _loss_of(Settings(eta=.2, prototype_weight=.5, lam=.1), 'image', spread=4.).terms
    assert {name: weight for name,(weight,_) in terms.items()} == dict(logit=.25, l2=.1, tv=.2, pull=.5)


def test_a_network_is_asked_about_the_values_of_the_domain_alone():
    df = pd.DataFrame(dict(a=[1., 2.5, 2.5, 7.25, 10.], b=[0, 1, 2, 3, 4]))
    domain = tabular(df)
    with seeded(1): net = nn.Linear(2, 2).double().eval()
    with torch.no_grad(): net.bias.sub_(net(domain.encode(df).x.double()).mean(0))
    cf = GradualCF(net, domain, 'sparse').fit(df)
    assert torch.equal(cf.propose(cf.x_train, 0), domain.propose(cf.x_train, 0)) and cf.held == {0: None}


# ---- arrival

def test_a_number_lacks_its_way_to_the_interval():
    inf = torch.inf
    y = torch.tensor([[1.], [3.], [7.], [-inf], [3.], [torch.nan]])
    ends = torch.tensor([[2., 5.]]*4 + [[-inf, inf]]*2)
    s = State(Encoded(y, y > 9), y, y, Target(ends, torch.full((6,), .5), y*0))
    assert shortfall(s).tolist() == [1., -1., 2., inf, -inf, inf]


def test_parts_that_are_missing_add_up_and_spare_room_is_the_least():
    "A probability, a gap of logits and a lead, by hand."
    z = torch.tensor([[0., 2.], [0., 2.], [1., 0.]], dtype=torch.float64)
    aim = Target(torch.ones(3, dtype=torch.long), torch.full((3,), .5).double(), torch.tensor([[0., 3.]]).double().expand(3, 2))
    s = State(Encoded(z, z > 9), z, z, aim)
    p = torch.log(torch.tensor(.5)) - torch.log_softmax(z, 1)[:, 1]
    torch.testing.assert_close(shortfall(s), p)
    gap = s._replace(target=aim._replace(demands=(Match(torch.tensor([1., .25, 1.]).double(), logit_gap),)))
    torch.testing.assert_close(shortfall(gap), torch.tensor([max(p[0], .5 - 1), .25, p[2] + 1.], dtype=torch.float64))
    lead = s._replace(target=aim._replace(demands=(Lead(torch.tensor([1., 5., 0.]).double()),)))
    torch.testing.assert_close(shortfall(lead), torch.tensor([max(p[0], -1.), 3., p[2] + 1 - p[2]], dtype=torch.float64))
    assert torch.equal(lead_of(z, aim.label), torch.tensor([2., 2, -1]).double())
    assert lead_of(torch.stack([z, -z], 1), aim.label[:, None].expand(3, 2)).tolist() == [[2, -2], [2, -2], [-1, 1]]
    nan = s._replace(logits=torch.full_like(z, torch.nan))
    assert shortfall(nan).tolist() == [torch.inf]*3


def test_company_is_one_more_part_and_a_broken_relation_lacks_all(toy):
    s = begun(toy, 4)
    plain = SimpleNamespace(settings=object(), ties={})
    assert torch.equal(lacking(plain, s), shortfall(s))
    company = SimpleNamespace(missing=lambda s: torch.tensor([9., 9, 9, -9]).double())
    beside = lacking(plain, s._replace(target=s.target._replace(demands=(company,))))
    torch.testing.assert_close(beside[:3], shortfall(s)[:3].clamp_min(0) + 9)
    torch.testing.assert_close(beside[3], shortfall(s)[3])
    holds = torch.tensor([True, False, True, False])
    tied = SimpleNamespace(settings=object(), ties=dict(relations=SimpleNamespace(holds=lambda enc, xp: holds)))
    assert torch.equal(lacking(tied, s), shortfall(s).masked_fill(~holds, torch.inf))


def test_what_answers_take():
    x,xp = torch.zeros(2, 3), torch.tensor([[1., 0, 2], [0, 0, 0]])
    s = State(Encoded(x, torch.zeros(2, 2, dtype=torch.bool)), xp, None, Target(torch.zeros(2).long(), torch.zeros(2)))
    groups,price = torch.tensor([0, 1, 1]), lambda x, xp: 3*(xp - x).sum(1)
    many,far = cost(s, groups)
    assert many.tolist() == [2, 0] and far.tolist() == pytest.approx([5**.5, 0]) == spent(x, xp).tolist()
    many,far = cost(s, groups, price)
    assert many.tolist() == [0, 0] and far.tolist() == [9, 0] == spent(x, xp, price).tolist()
    enc = s.enc._replace(most=torch.tensor([1, 9]))
    assert most_groups(SimpleNamespace(settings=object()), s.enc).tolist() == [2, 2]
    assert most_groups(SimpleNamespace(settings=object()), enc).tolist() == [1, 2]
    assert most_groups(SimpleNamespace(settings=SimpleNamespace(max_changes=1)), s.enc).tolist() == [1, 1]


def test_what_has_arrived_is_better_then_the_nearest_then_what_lacks_less():
    short = torch.tensor([0., -1, -1, .3, .3, .300001, .4], dtype=torch.float64)
    dist = torch.tensor([1., 1, 3, 1, 3, 0, 0]).double()
    got = merit(short, dist)
    assert got[:3].tolist() == [.5, .5, .25]
    torch.testing.assert_close(-got[3:], torch.tensor([.3 + 2.5e-6, .3 + 3.75e-6, .3, .4], dtype=torch.float64), atol=1e-12, rtol=0)


# ---- improving

def answered(toy, **settings):
    "Answers that have arrived, with more room than they need."
    cf = GradualCF(toy.model, toy.domain, 'sparse', **settings).fit(toy.x)
    label = 1 - toy.model(toy.x[:40]).argmax(1)
    return cf, cf.explain(toy.x[:40], label)


def state_of(cf, cfs):
    "Answers as a state, asked for no more than `tau` of `cf`."
    aim = cf.aim(cfs.tensors.target)
    return State(cfs.enc, cfs.xp.clone(), cf.model(cfs.xp).detach(), aim._replace(level=torch.full_like(aim.level, cf.tau)))


def test_improving_counts_by_the_bar_that_answers_were_found_with(toy):
    _,cfs = answered(toy, tau=.7)
    low = GradualCF(toy.model, toy.domain, 'sparse', tau=.5, tau_slack=0.).fit(toy.x)
    better = improve(low, cfs)
    assert better is not cfs and better.tau == cfs.tau == .7 and np.array_equal(better.valid, cfs.valid)
    assert (better.prob[cfs.valid] >= .7 - 1e-6).all()
    assert low.enc_of(cfs) is cfs.enc and torch.equal(low.enc_of(replace(cfs, enc=None)).x, cfs.x)
    assert torch.equal(improve(low, replace(cfs, enc=None)).xp, better.xp)      # as it comes from a file


def test_a_move_that_loses_the_target_is_not_taken(toy):
    cf,cfs = answered(toy, tau=.6)
    s = state_of(cf, cfs[cfs.valid])
    x,way = s.xp.clone(), lambda explainer, s: s._replace(xp=s.x.clone(), logits=cf.model(s.x).detach())
    short = lacking(cf, way(cf, s))
    assert ((short > 0) & (short < 1)).any()
    live = torch.arange(len(x))
    for s in improve_states(cf, s, [way], live): pass
    assert torch.equal(s.xp[short > 0], x[short > 0])


def test_groups_are_put_back_as_far_as_the_row_stays_there(toy):
    "Every entry differs at first. What is left is needed, group by group, as the model says."
    cf,cfs = answered(toy, tau=.6)
    s = state_of(cf, cfs)
    far = torch.where(toy.frozen[:40, toy.groups], s.x, 1 - s.x)
    s = s._replace(xp=far, logits=cf.model(far).detach())
    there = lacking(cf, s) <= 0
    assert there.sum() > 5
    for way in (put_back, put_back_smallest):
        new = way(cf, s)
        now = lacking(cf, new) <= 0
        assert now[there].all() and torch.equal(new.xp[~now], far[~now])
        torch.testing.assert_close(new.logits, cf.model(new.xp).detach())
        assert ((new.xp == s.x) | (new.xp == far)).all() and (new.xp != far)[there].any()
    left = put_back(cf, s)
    for g in range(4):
        one = torch.where(toy.groups == g, s.x, left.xp)
        moved = (one != left.xp).any(1) & there
        assert (lacking(cf, left._replace(xp=one, logits=cf.model(one).detach())) > 0)[moved].all()
    near = line_search(cf, left)
    assert (lacking(cf, near) <= 0)[there].all() and (spent(s.x, near.xp) < spent(s.x, left.xp))[there].all()


class Sum(nn.Module):
    "A model whose one number is the sum of the entries."
    def forward(self, x): return x.sum(1, keepdim=True)


def summing(xp, low):
    "Rows of zeros on their way to a sum of at least `low`."
    cf = SimpleNamespace(model=Sum().eval(), groups=lambda x: torch.arange(x.shape[1]), ties=dict(relations=None), settings=object())
    xp = torch.tensor(xp, dtype=torch.float64)
    aim = Target(torch.tensor([[low, torch.inf]], dtype=torch.float64).expand(len(xp), 2), torch.full((len(xp),), .5))
    return cf, State(Encoded(torch.zeros_like(xp), torch.zeros(xp.shape, dtype=torch.bool)), xp, xp.sum(1, keepdim=True), aim)


def test_a_row_at_the_very_bar_has_arrived_and_one_may_be_left_after_its_first_failure():
    for way in (put_back, put_back_smallest):
        cf,s = summing([[1., 2, 4]], 6.)
        assert way(cf, s).xp.tolist() == [[0, 2, 4]]
    cf,s = summing([[1., 2, 4, 0], [3, 3.5, 4, 0]], 6.5)
    assert put_back_smallest(cf, s).xp.tolist() == [[1, 2, 4, 0], [0, 3.5, 4, 0]]
    cf,s = summing([[-1., 2, 2.5]], 3.)
    assert put_back_smallest(cf, s, first=True).xp.tolist() == [[0, 2, 2.5]]
    cf,s = summing([[1., -2, 4]], 3.)
    assert put_back_smallest(cf, s, first=True).xp.tolist() == [[1, -2, 4]] and put_back_smallest(cf, s).xp.tolist() == [[1, 0, 4]]


def test_sharing_a_change_counts_what_it_costs(toy):
    cf = GradualCF(toy.model, replace(toy.domain, cost=dearer), 'sparse', max_shared=3, tau=.6, moves=()).fit(toy.x)
    s = state_of(*answered(toy, tau=.6))
    new = share(cf, s)
    before,after = dearer(s.x, s.xp), dearer(s.x, new.xp)
    won = (new.xp != s.xp).any(1)
    assert won.any() and (after < .9*before)[won].all() and (lacking(cf, new) <= 0)[won].all()


def test_a_currency_does_not_change_what_is_shared(toy):
    s = state_of(*answered(toy, tau=.6))
    way = lambda price: share(GradualCF(toy.model, replace(toy.domain, cost=price), 'sparse', max_shared=3, tau=.6, moves=()).fit(toy.x), s).xp
    assert torch.equal(way(lambda x, xp: 20*(xp - x).norm(dim=1)), way(lambda x, xp: (xp - x).norm(dim=1))) and (way(None) != s.xp).any()


# ---- tables

DEBTS = pd.DataFrame(dict(card=[0, 3, 5, 9, 4, 7], loan=[2, 0, 8, 1, 3, 6], total=[2, 3, 13, 10, 7, 13], job=list('xyzxyz')))


def debts(**told):
    "A bank that minds the card, and answers about some debts."
    domain = tabular(DEBTS, **told)
    bank = predictor(lambda df: np.stack([df.card - 4.5, 4.5 - df.card], 1), domain, kind='logit')
    return domain, GradualCF(bank, domain, 'sparse').fit(DEBTS)


def test_a_table_measures_what_it_was_told():
    told = dict(relations=['total == card + loan'], cost=dict(card=(1., 2.)))
    for some,names in (({}, {}), (dict(cost=told['cost']), {'cost'}), (dict(relations=told['relations']), {'broken'}), (told, {'broken', 'cost'})):
        domain,cf = debts(**some)
        cfs = cf.explain(DEBTS)
        assert domain.kind == 'table' and cfs.valid.all() and set(domain.measures(cfs)) == set(names)
    got = domain.measures(cfs)
    assert not got['broken'].any() and torch.equal(got['cost'], domain.cost(cfs.x, cfs.xp))
    step = torch.tensor((cfs.raw.card - DEBTS.card).tolist(), dtype=torch.float64)/9
    torch.testing.assert_close(got['cost'], torch.where(step > 0, step, -2*step))


def test_followers_follow_for_nothing_and_are_told_apart():
    _,cf = debts(relations=['card rises -> loan rises by 1'], cost=dict(loan='never'))
    cfs = cf.explain(DEBTS)
    risen = cfs.raw.card > DEBTS.card
    assert cfs.valid.all() and risen.sum() == 3 and (cfs.raw.loan == DEBTS.loan + risen).all()
    lines = cfs.changes()
    assert set(lines.feature) == {'card', 'loan'} and (lines.follows == (lines.feature == 'loan')).all()
    many = cf.explain(pd.concat([DEBTS]*8)).changes()
    assert many.row.is_monotonic_increasing and many.index.tolist() == list(range(len(many))) and len(many) > 60
    assert all(names in (['card'], ['card', 'loan']) for names in many.groupby('row').feature.agg(list))      # in the table's order
    assert 'follows' not in debts()[1].explain(DEBTS).changes()


def test_what_costs_infinitely_much_stays():
    domain,cf = debts(cost=dict(card='never', loan=(np.inf, 1.), total=(1., 'never')))
    enc = domain.encode(DEBTS)
    assert enc.frozen[:, 0].all() and not enc.frozen[:, 1].all()
    assert torch.equal(enc.high[:, 1], enc.x[:, 1]) and (enc.low[:, 1] <= enc.x[:, 1]).all() and (enc.low[:, 1] == 0).all()
    assert torch.equal(enc.low[:, 2], enc.x[:, 2]) and (enc.high[:, 2] == 1).all()
    assert (cf.explain(DEBTS).raw.card == DEBTS.card).all()


def test_a_column_that_a_question_fixes_cannot_follow():
    domain,_ = debts(relations=['total == card + loan'])
    enc = domain.constrain(domain.encode(DEBTS), DEBTS, immutable=['total'])
    assert torch.equal(enc.low[:, 2], enc.x[:, 2]) and torch.equal(enc.high[:, 2], enc.x[:, 2])
    free = domain.constrain(domain.encode(DEBTS), DEBTS)
    assert (free.low[:, 2] < enc.x[:, 2]).any() and (free.high[:, 2] > enc.x[:, 2]).any()


def test_levels_in_several_columns_are_legal_row_by_row():
    hot = pd.DataFrame(dict(a=[1, 0, 0, 0], b=[0, 1, 0, 0], c=[0, 0, 1, 1], n=[1., 2, 3, 4]))
    domain = tabular(hot, categorical=dict(kind=['a', 'b', 'c']), levels=dict(kind=['a', 'b']))
    new = hot.assign(a=[0, 1, 1, 0], b=[1, 1, 0, 0], c=[0, 0, 0, 1])
    assert domain.legal(hot, new)[:, 0].tolist() == [True, False, True, True]      # the second has two, the last did not move
    assert domain.legal(hot, hot.assign(a=0, b=0, c=1))[:, 0].tolist() == [False, False, True, True]


def test_values_that_are_tried_lie_between_the_ends():
    r = np.random.default_rng(0)
    wide = pd.DataFrame({f'c{i}': r.gamma(2, 10.**i, 60) for i in range(-4, 5)})
    for scale in ('quantile', 'range', 'standard'):
        domain = tabular(wide, scale=scale, grid=7)
        x = domain.encode(wide).x
        for g,c in enumerate(domain.features):
            raw = c.decoded(domain.propose(x, g)[0, :, 0].numpy())
            assert len(raw) == 7 and raw.min() >= c.low*(1 - 1e-12) and raw.max() <= c.high*(1 + 1e-12)
            np.testing.assert_allclose([raw.min(), raw.max()], [c.low, c.high])


def test_near_a_relation_more_values_are_tried():
    domain,_ = debts(relations=['card + loan <= 13'])
    x = domain.encode(DEBTS).x
    values = domain.propose(x, 0)
    assert values.shape[0] == len(x) and values.shape[1] == tabular(DEBTS).propose(x, 0).shape[1] + 11
    own = values[:, -11:, 0]*9
    torch.testing.assert_close(own[:, -1], torch.tensor([9., 9, 5, 9, 9, 7], dtype=torch.float64))
    torch.testing.assert_close(own[:, 0], torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(own.diff(dim=1), own[:, -1:].expand(6, 10)/10)


def test_a_picture_of_changes_shows_the_way_on_the_whole_range():
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_hex
    before = plt.get_fignums()
    fig = debts()[1].explain(DEBTS).plot(most=5)
    assert plt.get_fignums() == before
    ax = fig.axes[0]
    track,old,new = ax.lines[:3]
    assert len(ax.lines) == 15 and len(ax.texts) == 15                          # five rows are drawn
    assert list(track.get_xdata()) == [0, 1] and (track.get_color(), track.get_linewidth(), track.get_solid_capstyle()) == ('.8', 3, 'round')
    assert old.get_markerfacecolor() == 'w' and (old.get_markersize(), new.get_markersize()) == (9, 9)
    assert to_hex(new.get_color()) == to_hex(CHANGED) and old.get_xdata()[0] == 0 and new.get_xdata()[0] > .5
    assert all(list(line.get_ydata())[0] == -i//1 for i,line in enumerate(ax.lines[::3]))
    labels = ax.get_yticklabels()
    assert [t.get_text().split(chr(10))[0] for t in labels] == [f'row {i}: card' for i in range(5)] and {t.get_fontsize() for t in labels} == {8}
    assert ax.get_xlim() == (-.25, 1.25) and ax.get_ylim() == (-4.6, .6) and not any(s.get_visible() for s in ax.spines.values())
    assert [t.get_text() for t in ax.get_xticklabels()] == ['smallest', 'largest'] and fig.get_size_inches().tolist() == pytest.approx([7, .8 + .72*5])
    arrow = ax.texts[0]
    assert arrow.xyann == (0, 0) and arrow.xy == (new.get_xdata()[0], 0) and (arrow.arrow_patch.shrinkA, arrow.arrow_patch.shrinkB) == (4, 5)
    told = [t.get_text() for t in ax.texts if t.get_text()]
    assert told[:2] == ['0', '5'] and {t.get_fontsize() for t in ax.texts if t.get_text()} == {8}


# ---- what fits together, and the order of lines


def test_changes_of_a_row_come_in_the_order_of_the_columns():
    df = pd.DataFrame(np.random.default_rng(0).random((200, 6)).round(2), columns=list('fedcba'))
    domain = tabular(df)
    def net(v): return (v.sum(1, keepdim=True) - 3)*torch.tensor([-1., 1.]).to(v)
    cf = GradualCF(net, domain, 'sparse', sigma=0).fit(df)
    cfs = cf.explain(df)
    moved = replace(cfs, xp=1 - cfs.x, mask=torch.ones_like(cfs.mask))
    lines = moved.changes()
    assert lines.feature.tolist() == list('fedcba')*200 and lines.row.is_monotonic_increasing


def test_the_score_of_a_target_falls_as_its_logit_rises():
    s = State(None, None, torch.tensor([[1., 2.], [3., -4.]]), Target(torch.tensor([1, 0]), torch.full((2,), .5)))
    assert target_score(s).tolist() == [-2, -3]


def test_whoever_arrives_is_as_sure_as_tau_asks():
    z, target = torch.tensor([[0., 1], [0, 2]]), torch.tensor([1, 1])  # .73 and .88
    assert arrived(z, target, .8).tolist() == [False, True] and arrived(z, target, .5).all()


# ---- company

def test_the_usual_depth_is_the_mean_path_of_a_search_that_fails():
    "Liu, Ting and Zhou 2008, equation 1, and none or one row, or two."
    assert [_usual_depth(m) for m in range(3)] == [0, 0, 1] and np.allclose([_usual_depth(3), _usual_depth(256)], [1.20739, 10.24477], atol=1e-5)
