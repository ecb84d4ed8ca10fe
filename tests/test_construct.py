"""The batched `construct` against Algorithm 1 line by line, and what must not depend on the batch."""
import oracle
import pytest
import torch
import toy

from gradual_cf.all import GradualCF, PAPER, construct, l2_distance, logit_gap, logit_gap_norm, logit_gap_sum, mix, total_variation
from gradual_cf.composition import init_composite
from gradual_cf.core import predict
from gradual_cf.gradual import Search, shared

READINGS = dict(mean=logit_gap, norm=logit_gap_norm, sum=logit_gap_sum)
MODES = dict(paper=dict(rank='gradient', keep='last'), default=dict(rank='probe', keep='nearest', margin=.02))
INIT = dict(paper='normal', default='input')


def run(p, n, mode, seed, match='mean', eta=0., quantile=None, tau=.95, sigma=25, project=None, rows=None, **over):
    "Both programs on `n` rows of a toy problem: (batched xp, groups), (oracle's)."
    rows = torch.arange(n) if rows is None else rows
    x,frozen = p.x[rows], p.frozen[rows]
    z = predict(p.model, x)
    target = (z.argmax(1) + 1) % z.shape[1]
    ref = toy.reference(p, target, quantile)
    c = init_composite(x, INIT[mode], seed)
    same = dict(MODES[mode], tau=tau, sigma=sigma, project=project, propose=p.domain.propose, **over)
    loss = mix(logit=(1., READINGS[match]), l2=(.3, l2_distance), tv=(eta, total_variation))
    xp,on = x,torch.zeros_like(frozen)
    for step in construct(Search(p.model, p.groups, loss, **same), x, frozen, ref, c): xp,on = step.xp,step.on
    ones = [oracle.gradual(p.model, x[i], target[i].item(), ref.mu[i], p.groups, frozen[i], c[i], match=match, eta=eta,
                           gap=None if ref.gap is None else ref.gap[i].item(), **same) for i in range(len(x))]
    return (xp, on), (torch.stack([o[0] for o in ones]), [set(o[1]) for o in ones])


@pytest.mark.parametrize('seed', [0, 1, 2])
@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('problem', toy.PROBLEMS)
def test_construct_equals_algorithm_1(problem, mode, seed):
    p = toy.PROBLEMS[problem]()
    project = None if mode == 'paper' else p.domain.project
    (xp,on),(want,groups) = run(p, 12, mode, seed, project=project, rows=torch.arange(12)*7 + seed)
    assert [set(r.nonzero()[:, 0].tolist()) for r in on] == groups
    assert any(len(g) > 1 for g in groups)          # rows with several groups are among them
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


@pytest.mark.parametrize('match', READINGS)
def test_every_reading_of_the_logit_match(match):
    (xp,_),(want,_) = run(toy.columns(), 10, 'paper', 0, match=match)
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


def test_total_variation_and_the_stop_inside_the_logit_distribution():
    (xp,on),(want,groups) = run(toy.blocks(), 4, 'paper', 0, sigma=12, eta=.05, quantile=.6, project=toy.blocks().domain.project)
    assert [set(r.nonzero()[:, 0].tolist()) for r in on] == groups
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


@pytest.mark.parametrize('mode', MODES)
def test_at_most_max_changes(mode):
    (xp,on),(want,_) = run(toy.columns(), 12, mode, 0, tau=.95, max_changes=2, project=toy.columns().domain.project)
    assert on.sum(1).max() == 2
    torch.testing.assert_close(xp, want, atol=1e-8, rtol=0)


@pytest.mark.parametrize('quantile', [None, .8])
@pytest.mark.parametrize('problem', toy.PROBLEMS)
def test_a_shared_change_equals_the_loop(problem, quantile):
    p,rows = toy.PROBLEMS[problem](), torch.arange(16)
    project = p.domain.project
    (xp,on),_ = run(p, 16, 'default', 0, quantile=quantile, tau=.8, project=project)
    target = (predict(p.model, p.x[rows]).argmax(1) + 1) % predict(p.model, p.x[:1]).shape[1]
    ref = toy.reference(p, target, quantile)
    s = Search(p.model, p.groups, None, project, p.domain.propose, rank='probe', tau=.8, margin=.02)
    _,new,won = shared(s, p.x[rows], xp, on[:, p.groups], ~(p.frozen[rows] | on), ref)
    want = torch.stack([oracle.share(p.model, p.x[i], xp[i], on[i].nonzero()[:, 0].tolist(), target[i].item(), p.frozen[i], p.groups, ref.mu[i], tau=.8, margin=.02,
                                     gap=None if ref.gap is None else ref.gap[i].item(), project=project, propose=p.domain.propose) for i in rows])
    torch.testing.assert_close(new, want, atol=1e-8, rtol=0)
    assert won.any() and torch.equal(won, (want != xp).flatten(1).any(1))


@pytest.mark.parametrize('settings', [dict(PAPER, sigma=40), dict(tau=.8), dict(tau=.8, spread=3)], ids=['paper', 'default', 'shared'])
@pytest.mark.parametrize('problem', toy.PROBLEMS)
def test_a_row_alone_in_a_batch_and_in_any_order(problem, settings):
    p = toy.PROBLEMS[problem]()
    free = p._replace(frozen=torch.zeros_like(p.frozen))
    domain = toy.make(p.model, p.x, p.groups).domain
    domain = domain.__class__(**{**domain.__dict__, 'encode': lambda raw: domain_encode(raw, free)})
    cf = GradualCF(p.model, domain, **settings).fit(p.x)
    target = (cf.z_train.argmax(1) + 1) % cf.z_train.shape[1]
    whole = cf.explain(p.x, target).xp
    order = torch.randperm(len(p.x), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(cf.explain(p.x[order], target[order]).xp, whole[order], atol=1e-8, rtol=0)
    for i in range(5): torch.testing.assert_close(cf.explain(p.x[i:i + 1], target[i:i + 1]).xp, whole[i:i + 1], atol=1e-8, rtol=0)


def domain_encode(raw, p):
    "Encode with nothing frozen, so that a row does not depend on its position."
    from gradual_cf.core import Encoded
    return Encoded(raw.clone(), torch.zeros(len(raw), p.frozen.shape[1], dtype=torch.bool))


def test_trace_ends_where_explain_ends():
    p = toy.columns()
    cf = GradualCF(p.model, p.domain, **PAPER | dict(sigma=30, tau=.9)).fit(p.x)
    for i in (1, 2, 3):
        trace = cf.trace(p.x[i:i + 1])
        xp = trace[-1].xp if len(trace) else p.x[i:i + 1]
        torch.testing.assert_close(xp, cf.explain(p.x[i:i + 1]).xp, atol=1e-12, rtol=0)
        df = trace.df()
        assert {'step', 'group', 'iteration', 'logit', 'l2', 'prob', 'gap', 'dist'} <= set(df)
        assert (df.groupby('step').size() == 31).all()
        assert [s.on.sum().item() for s in trace] == list(range(1, len(trace) + 1))
