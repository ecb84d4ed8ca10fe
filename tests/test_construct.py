"""The batched `construct` against Algorithm 1 line by line, and what must not depend on the batch."""
from dataclasses import replace

import oracle
import pytest
import torch
import toy
from cover import cover

from gradual_cf.all import (Encoded, GradualCF, Settings, State, Target, box, chain, compose, construct, fit_logits, init_composite,
    l2_distance, logit_gap, logit_gap_norm, logit_gap_sum, mix, predict, probe, shortfall, steps)
from gradual_cf.gradual import _BestSoFar, _loss_of, _reachable
from gradual_cf.search.composition import admissible
from gradual_cf.search.goals import Match, target_score
from gradual_cf.search.masking import gain_groups

READINGS = dict(mean=logit_gap, norm=logit_gap_norm, sum=logit_gap_sum)
MODES = dict(paper=dict(masking='gradient', keep='last', tau_slack=0.), default=dict(masking='probe', keep='nearest', tau_slack=.02))
INIT = dict(paper='normal', default='input')


def started(p, rows, mode, seed=0, match='mean', quantile=None, legal=True, target=None, **settings):
    "An explainer of a toy problem, and some of its rows at their inputs."
    cf = GradualCF(p.model, p.domain, 'sparse', **MODES[mode] | settings, match=READINGS[match], quantile=quantile, legal=legal).fit(p.x)
    x,z = p.x[rows], predict(p.model, p.x[rows])
    label = (z.argmax(1) + 1) % z.shape[1] if target is None else target
    frozen = p.frozen[rows]
    return cf, State(Encoded(x, frozen), x.clone(), z, cf.aim(label), torch.zeros_like(frozen), init_composite(x, INIT[mode], seed))


def run(p, n, mode, seed, match='mean', eta=0., quantile=None, tau=.95, sigma=25, legal=True, rows=None, **over):
    "Both programs on `n` rows of a toy problem: (batched xp, groups), (oracle's)."
    rows = torch.arange(n) if rows is None else rows
    p = p._replace(domain=replace(p.domain, kind='image' if eta else 'other'))
    cf,s = started(p, rows, mode, seed, match, quantile, legal, tau=tau, sigma=sigma, eta=eta, **over)
    c,aim,label = s.c.clone(), s.target, s.target.label
    for s in construct(cf, s): pass
    same = dict(MODES[mode], tau=tau, sigma=sigma, project=p.domain.project if legal else None, propose=p.domain.propose, **over)
    ones = [oracle.gradual(p.model, s.x[i], label[i].item(), aim.mu[i], p.groups, s.enc.frozen[i], c[i], match=match, eta=eta,
                           gap=None if aim.gap is None else aim.gap[i].item(), **same) for i in range(len(s.x))]
    return (s.xp, s.on), (torch.stack([o[0] for o in ones]), [set(o[1]) for o in ones])


@pytest.mark.night
@pytest.mark.parametrize('problem,mode,seed', cover(toy.PROBLEMS, MODES, [0, 1, 2], meet=2))
def test_construct_equals_algorithm_1(problem, mode, seed):
    p = toy.PROBLEMS[problem]()
    (xp,on),(want,groups) = run(p, 8, mode, seed, legal=mode != 'paper', rows=torch.arange(8)*7 + seed)
    assert [set(r.nonzero()[:, 0].tolist()) for r in on] == groups
    assert any(len(g) > 1 for g in groups)          # rows with several groups are among them
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


@pytest.mark.night
@pytest.mark.parametrize('problem,n,mode,how', [
    *[('columns', 10, 'paper', dict(match=match, legal=False)) for match in READINGS],
    ('blocks', 4, 'paper', dict(sigma=12, eta=.05, quantile=.6)),  # total variation, and the stop inside the logit distribution
    *[('columns', 12, mode, dict(tau=.95, max_changes=2)) for mode in MODES]])
def test_settings_equal_algorithm_1(problem, n, mode, how):
    (xp,on),(want,groups) = run(toy.PROBLEMS[problem](), n, mode, 0, **how)
    assert [set(r.nonzero()[:, 0].tolist()) for r in on] == groups and ('max_changes' not in how or on.sum(1).max() == 2)
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


@pytest.mark.parametrize('problem,how', cover(toy.PROBLEMS, [('default', None), ('default', .3), ('paper', .3)]))
def test_the_best_state_seen_equals_the_loop(problem, how):
    mode,quantile = how
    p,rows,tau = toy.PROBLEMS[problem](), torch.arange(16), .7
    cf,s = started(p, rows, mode, quantile=quantile, tau=tau, sigma=15, max_changes=3)
    c,aim,best = s.c.clone(), s.target, _BestSoFar(cf, s)
    for s in construct(cf, s): best.update(s)
    for i in rows:
        t,gap,seen = aim.label[i].item(), None if aim.gap is None else aim.gap[i].item(), []
        oracle.gradual(p.model, s.x[i], t, aim.mu[i], p.groups, s.enc.frozen[i], c[i], tau=tau, sigma=15, gap=gap, max_changes=3,
                       project=p.domain.project, propose=p.domain.propose, seen=seen, **MODES[mode])
        want = oracle.best_of(p.model, s.x[i], seen, t, MODES[mode]['keep'], tau, aim.mu[i], gap)
        torch.testing.assert_close(best.xp[i], want, atol=1e-8, rtol=0)


# ---- the probe
@pytest.fixture(scope='module')
def p(): return toy.columns()


def begun(p, n=20, quantile=None, match=logit_gap, **target):
    "Rows at their inputs that want the other class, with all groups on."
    x,z = p.x[:n], predict(p.model, p.x[:n])
    aim = toy.reference(p, 1 - z.argmax(1), quantile, match=match)._replace(**target)
    return State(Encoded(x, p.frozen[:n]), x.clone(), z, aim, torch.ones(n, 4, dtype=torch.bool), x.clone())


def probed(p, n=60, quantile=None, match=logit_gap, **how):
    s = begun(p, n, quantile, match)
    return s, probe(p.model, s, s.on, p.groups, p.domain.propose, **how)


def dearer(x, xp): return ((xp - x).abs()*torch.tensor([1., 5, 1, 1, 1, 1]).to(x)).sum(1)


def test_a_match_may_read_the_rows(p):
    seen = []
    def match(s):
        seen.append(s.xp.dim())
        return logit_gap(s) + s.xp.sum(1)*0
    assert torch.equal(probed(p, 12, .5, match)[1][1], probed(p, 12, .5)[1][1]) and set(seen) == {2}


def test_the_probe_prefers_what_costs_least(p):
    "Of values that arrive, the cheapest by the price that was given; brute force over all of them says the same."
    s,(_,xp,score) = probed(p, 40, price=dearer)
    there = score > 0
    assert there.any() and torch.allclose(score[there], 1/(1 + dearer(s.x, xp)[there]))
    for g in range(4):
        for v in p.domain.propose(s.x, g)[0]:
            c = s.x.clone()
            c[:, p.groups == g] = v
            there = (predict(p.model, c).softmax(1).gather(1, s.target.label[:, None])[:, 0] >= .5) & (c != s.x).any(1)
            assert (1/(1 + dearer(s.x, c)) <= score + 1e-12)[there].all()


# ---- composition
INF = torch.inf


@pytest.mark.parametrize('got,want', [
    (lambda e: gain_groups(torch.tensor([[1., 2, 3]]), torch.tensor([[1., 1, -1]]), torch.tensor([0, 1, 1]), torch.tensor([[True, False]])), [[1., -INF]]),
    (lambda e: target_score(State(None, None, torch.tensor([[1., 2.], [3., -4.]]), Target(torch.tensor([1, 0]), torch.full((2,), .5)))), [-2, -3]),
    (lambda e: admissible(e, torch.tensor([[0., 0, 1, 7]])), [[.2, .4, .6, 7]]),
    (lambda e: admissible(e, e.x), [[.1, .5, .9, .5]]),       # the first and the third lie outside, and did not move
    (lambda e: admissible(e, torch.tensor([[.3, .5, .9, .5]]), lambda c, x: c + 1), [[1.3, 1.5, 1.9, 1.5]]),
    (lambda e: admissible(e._replace(low=None), torch.tensor([[0., 0, 1, 7]])), [[0., 0, .6, 7]]),
    (lambda e: admissible(e._replace(high=None), torch.tensor([[0., 0, 1, 7]])), [[.2, .4, 1, 7]]),
    (lambda e: chain(box(0., 1.), steps(torch.tensor([.5, .25]))).narrow(torch.tensor([[0, 1]]), torch.zeros(1, 2))(torch.tensor([[.7, 1.3]])), [[.5, 1.]]),
    (lambda e: _loss_of(Settings(eta=.3), 'table').terms.keys() | _loss_of(Settings(eta=0.), 'image').terms.keys(), {'logit', 'l2'}),
    (lambda e: {k: w for k,(w,_) in _loss_of(Settings(eta=.2, prototype_weight=.5, lam=.1), 'image', spread=4.).terms.items()}, dict(logit=.25, l2=.1, tv=.2, pull=.5))])
def test_small_parts_by_hand(got, want):
    enc = Encoded(torch.tensor([[.1, .5, .9, .5]]), torch.zeros(1, 4, dtype=torch.bool), torch.tensor([[.2, .4, .4, -INF]]), torch.tensor([[.8, .6, .6, INF]]))
    out = got(enc)
    assert out.tolist() == torch.tensor(want, dtype=out.dtype).tolist() if torch.is_tensor(out) else out == want


def test_a_step_is_taken_along_the_gradient_through_the_view(p):
    "One step of Adam goes as far as the rate, against the sign of the gradient; iterates are judged without the view."
    def view(x): return x.flip(1)
    s,seen = begun(p), []
    def watch(s): seen.append((s.logits, predict(p.model, s.xp)))
    how = dict(groups=p.groups, loss=mix(logit=(1., logit_gap)), views=[view])
    out = compose(p.model, s, **how, sigma=1, lr=.01)
    x = s.x.clone().requires_grad_()
    step = -.01*torch.autograd.grad((p.model(view(x)) - s.target.mu).abs().mean(1).sum(), x)[0].sign()
    torch.testing.assert_close(out.xp, s.x + step, atol=1e-6, rtol=0)
    compose(p.model, s, **how, sigma=5, keep='nearest', watch=watch)
    for judged,plain in seen: torch.testing.assert_close(judged, plain)


def test_the_nearest_iterate_is_kept_by_the_match_and_the_price_that_were_asked_for(p):
    seen = []
    s = begun(p, demands=(Match(torch.full((20,), .8, dtype=torch.float64), logit_gap_norm),))
    out = compose(p.model, s, p.groups, mix(logit=(1., logit_gap_norm), l2=(.1, l2_distance)), sigma=60, keep='nearest',
                  watch=lambda s: seen.append(shortfall(s) <= 0))
    assert len(seen) == 61 and torch.stack(seen).any() and torch.equal(shortfall(out) <= 0, torch.stack(seen).any(0))
    s,seen = begun(p), []
    out = compose(p.model, s, p.groups, mix(logit=(1., logit_gap), l2=(.1, l2_distance)), sigma=60, lr=.05, keep='nearest', price=dearer,
                  watch=lambda s: seen.append(dearer(s.x, s.xp).masked_fill(shortfall(s) > 0, INF)))
    paid = torch.stack(seen).amin(0)
    assert (paid < INF).any()
    torch.testing.assert_close(dearer(s.x, out.xp)[paid < INF], paid[paid < INF])


# ---- the loop
def test_a_class_of_rows_that_are_all_alike_has_no_quantile():
    stats = fit_logits(torch.tensor([[0., 1], [0, 2], [0, 4], [5, 0]]))
    assert _reachable(stats, torch.tensor([1, 1]), .5).shape == (2,)
    told = r'^quantile must be None for a class with one training row, got 0.5 and class \[0\]$'
    with pytest.raises(ValueError, match=told): _reachable(stats, torch.tensor([1, 0]), .5)
