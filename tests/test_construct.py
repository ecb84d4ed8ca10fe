"""The batched `construct` against Algorithm 1 line by line, and what must not depend on the batch."""
from dataclasses import replace

import oracle
import pytest
import torch
import toy
from cover import cover

from gradual_cf.all import (PAPER, Encoded, GradualCF, Question, State, construct, init_composite, logit_gap, logit_gap_norm, logit_gap_sum, predict)
from gradual_cf.gradual import _BestSeen

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
    c,aim,best = s.c.clone(), s.target, _BestSeen(cf, s)
    for s in construct(cf, s): best.see(s)
    for i in rows:
        t,gap,seen = aim.label[i].item(), None if aim.gap is None else aim.gap[i].item(), []
        oracle.gradual(p.model, s.x[i], t, aim.mu[i], p.groups, s.enc.frozen[i], c[i], tau=tau, sigma=15, gap=gap, max_changes=3,
                       project=p.domain.project, propose=p.domain.propose, seen=seen, **MODES[mode])
        want = oracle.best_of(p.model, s.x[i], seen, t, MODES[mode]['keep'], tau, aim.mu[i], gap)
        torch.testing.assert_close(best.xp[i], want, atol=1e-8, rtol=0)


def test_a_row_that_ends_below_tau_returns_to_where_it_was_above():
    p = toy.tokens()
    cf = GradualCF(p.model, p.domain, 'sparse', masking='gradient', keep='last', tau_slack=0., tau=.8, quantile=.02, sigma=5).fit(p.x)
    label = 1 - cf.z_train.argmax(1)
    s = cf.start(Encoded(p.x, p.frozen), label)
    prob = lambda z: z.softmax(1).gather(1, label[:, None])[:, 0]
    ever = torch.zeros(len(p.x), dtype=torch.bool)
    for s in construct(cf, s): ever |= prob(s.logits) >= .8
    ends_below = ever & (prob(s.logits) < .8)
    assert ends_below.any()
    found = cf.search(Question(None, Encoded(p.x, p.frozen), None, label))
    assert (prob(predict(p.model, found))[ever] >= .8).all()
    row = ends_below.nonzero()[0]
    free = replace(p.domain, encode=lambda raw: Encoded(torch.as_tensor(raw).clone(), p.frozen[row]))
    one = GradualCF(p.model, free, cf.settings)
    one.x_train,one.z_train,one.stats = cf.x_train,cf.z_train,cf.stats
    trace = one.trace(p.x[row], target=label[row].item())
    torch.testing.assert_close(trace[-1].xp, found[row], atol=1e-12, rtol=0)


def test_a_group_that_is_on_is_changed_again_where_that_flips():
    "The first group takes the value that looks best alone; one more step of it decides."
    def model(x): # class 1 needs a of at least .8 where b is on, and a of at most .4 where it is not
        a,b = x[:, 0], x[:, 1]
        score = torch.where(b > .5, 10*(a - .75), 3 - 10*(a - .4).abs() - 3.5)
        return torch.stack([-score/2, score/2], 1)
    free = torch.zeros(400, 2, dtype=torch.bool)
    domain = replace(toy.columns().domain, encode=lambda raw: Encoded(torch.as_tensor(raw).clone(), free[:len(raw)]), groups=lambda s: torch.arange(2),
                     propose=lambda x, g: torch.linspace(0, 1, 11, dtype=x.dtype)[None, :, None])
    x = torch.rand(400, 2, generator=torch.Generator().manual_seed(0))
    cf = GradualCF(model, domain, 'sparse', sigma=0).fit(x)
    cfs = cf.explain(x[(cf.z_train.argmax(1) == 0)][:40], target=1)
    assert cfs.valid.all()


def test_trace_ends_where_explain_ends():
    p = toy.columns()
    cf = GradualCF(p.model, p.domain, PAPER, sigma=30, tau=.9).fit(p.x)
    for i in (1, 2, 3):
        trace = cf.trace(p.x[i:i + 1])
        xp = trace[-1].xp if len(trace) else p.x[i:i + 1]
        torch.testing.assert_close(xp, cf.explain(p.x[i:i + 1]).xp, atol=1e-12, rtol=0)
        df = trace.df()
        assert {'step', 'group', 'iteration', 'logit', 'l2', 'prob', 'gap', 'dist'} <= set(df)
        assert (df.groupby('step').size() == 31).all()
        assert [s.on.sum().item() for s in trace] == list(range(1, len(trace) + 1))
