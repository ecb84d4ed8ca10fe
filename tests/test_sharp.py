"""Small mistakes that no other test minded, as mutants showed (`make mutants`): each of these fails for one of them."""
import pandas as pd
import pytest
import torch
from toy import columns, reference

from gradual_cf.composition import box, chain, steps
from gradual_cf.core import Encoded, State, Target
from gradual_cf.losses import logit_gap
from gradual_cf.masking import gain_groups, probe


@pytest.fixture(scope='module')
def toy(): return columns()


def asked(toy, n=12, **how):
    "The probe's answer for some rows that want the other class, with every group free."
    x = toy.x[:n]
    label = 1 - toy.model(x).argmax(1)
    s = State(Encoded(x, toy.frozen[:n]), x, toy.model(x), reference(toy, label, how.pop('quantile', None)))
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
