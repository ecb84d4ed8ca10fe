"""FIDO against closed forms, a replica in plain numbers, and its own rules."""
import math

import pytest
import torch
from torch import nn
from written import load_task

from gradual_cf.all import FIDO, images, predict
from gradual_cf.baselines.regions import _INFILLS, _concrete, _mask_log_odds, _Sought, _blurred, _find_regions

INFILLS = pytest.mark.parametrize('infill', list(_INFILLS))


class Linear(nn.Module):
    "Logits that are linear in the pixels, in 64 bits."
    def __init__(self, k=2, pixels=12, seed=0):
        super().__init__()
        w = torch.randn(k, pixels, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        if k == 2: w[0] = 0
        self.w, self.b = nn.Parameter(w), nn.Parameter(torch.zeros(k).double())
    def forward(self, x): return x.flatten(1) @ self.w.T + self.b


@pytest.fixture
def rows(): return torch.rand(9, 1, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture(scope='module')
def task(): return load_task('digits')


def towards(fido, x, label, there=None):
    return _Sought(fido.encode(x), torch.full((len(x),), label), 1, False, there or (lambda z: z[:, label] > z.logsumexp(1) - math.log(2)))


def test_a_block_is_switched_where_its_effect_exceeds_its_price(rows):
    "With linear log-odds the best region is {w (infill - x) > lam/g}, and the shortest prefix of the largest effects arrives."
    model = Linear()
    fido = FIDO(model, images(block=1), tau=.5, infill='mean', lam=3., steps=120, legal=False).fit(rows)
    gain = (model.w[1].view(1, 3, 4)*(fido.colour - rows)).flatten(1).detach()
    theta, effect = _mask_log_odds(fido, towards(fido, rows, 1), 0)
    clear = (gain - 3./12).abs() > .05
    assert clear.double().mean() > .8
    assert torch.equal((theta > 0)[clear], (gain > 3./12)[clear])
    torch.testing.assert_close(effect, gain, rtol=1e-4, atol=1e-4)
    odds = predict(model, rows)[:, 1]
    with torch.no_grad(): model.b[1] -= odds.max() + .3                   # every row has some way to go
    r = _find_regions(fido, towards(fido, rows, 1), 0)
    for i in range(len(rows)):
        reach = (odds[i] - odds.max() - .3 + gain[i].sort(descending=True).values.cumsum(0)) > 0
        assert r.there[i] == reach.any()
        if reach.any(): assert r.on[i].sum() == int(reach.to(torch.uint8).argmax()) + 1
    assert r.there.sum() >= 3


def test_the_search_equals_a_replica_in_plain_numbers(rows):
    "One row, three classes: draws, slopes and Adam written out."
    model, x = Linear(3, seed=2), rows[:1]
    fido = FIDO(model, images(block=1), tau=.5, infill='mean', lam=2., steps=12, samples=3).fit(rows)
    found, moved = _mask_log_odds(fido, towards(fido, x, 2), 5)
    gen, g, w, fill, p = torch.Generator().manual_seed(5), 12, model.w.tolist(), fido.colour.item(), x.flatten().tolist()
    theta, mean, square, effect = [0.]*g, [0.]*g, [0.]*g, [0.]*g
    for step in range(1, 13):
        draws = torch.rand(3, 1, g, generator=gen, dtype=torch.float64)[:, 0].tolist()
        grad, gain = [0.]*g, [0.]*g
        for u in draws:
            z = [1/(1 + math.exp(-(t + math.log(v/(1 - v)))/.1)) for t, v in zip(theta, u)]
            image = [a + s*(fill - a) for a, s in zip(p, z)]
            logits = [sum(a*b for a, b in zip(line, image)) for line in w]
            others = [math.exp(v) for v in logits[:2]]
            for j in range(g):
                rise = (w[2][j] - sum(o*w[c][j] for c, o in enumerate(others))/sum(others))*(fill - p[j])
                gain[j] += rise/3
                grad[j] -= rise*z[j]*(1 - z[j])/.1/3
        for j in range(g):
            s = 1/(1 + math.exp(-theta[j]))
            d = grad[j] + 2./g*s*(1 - s)
            mean[j], square[j] = .9*mean[j] + .1*d, .999*square[j] + .001*d*d
            theta[j] -= .05*(mean[j]/(1 - .9**step))/(math.sqrt(square[j]/(1 - .999**step)) + 1e-8)
            effect[j] = .9*effect[j] + .1*gain[j]
    torch.testing.assert_close(found[0], torch.tensor(theta).double(), rtol=0, atol=1e-5)
    torch.testing.assert_close(moved[0], torch.tensor(effect).double(), rtol=0, atol=1e-5)


@INFILLS
def test_a_batch_is_a_loop(infill, rows):
    fido = FIDO(Linear(3, seed=3), images(block=1), tau=.5, infill=infill, width=1., steps=12).fit(rows)
    for ask in (fido.deletion, fido.support):
        every = ask(rows)
        for i in (0, 5, 8):
            one = ask(rows[i:i + 1])
            for a, b in zip(every, one): torch.testing.assert_close(a[i], b[0])
    label = [2]*len(rows)
    assert torch.equal(fido.explain(rows, label).xp[4], fido.explain(rows[4:5], 2).xp[0])


def test_local_infill_is_a_weighted_mean_of_what_is_kept(rows):
    fido = FIDO(Linear(), images(block=1), tau=.5, infill='local', width=1.5).fit(rows)
    keep = (torch.rand(rows.shape, generator=torch.Generator().manual_seed(0)) < .5).double()
    out = _INFILLS['local'](rows, keep, fido.colour, 1.5)
    line = lambda n, i: torch.softmax(torch.tensor([-(i - j)**2/(2*1.5**2) for j in range(n)]).double(), 0)
    for top, left in ((0, 0), (1, 2), (2, 3)):
        weight = line(3, top)[:, None]*line(4, left)
        want = ((weight*keep*rows).sum((1, 2, 3)) + 1e-3*fido.colour.item())/((weight*keep).sum((1, 2, 3)) + 1e-3)
        torch.testing.assert_close(out[:, 0, top, left], want)
    nothing = _INFILLS['local'](rows, 0*keep, fido.colour, 1.5)
    torch.testing.assert_close(nothing, fido.colour.expand_as(rows))


def test_blur_keeps_grey_and_coins_keep_their_odds():
    grey = torch.full((1, 3, 6, 9), .4)
    torch.testing.assert_close(_blurred(grey, 3.), grey)
    u = torch.rand(50_000, generator=torch.Generator().manual_seed(0))
    assert abs((_concrete(torch.tensor(.3).logit(), u) > .5).double().mean() - .3) < .01


def test_without_trim_the_region_is_that_of_the_probabilities(task):
    fido = FIDO(task.model, images(block=1), infill='mean', steps=40, trim=False).fit(task.X)
    r = fido.deletion(task.X_test[:8])
    same = (r.on == (r.share > .5)).flatten(1).all(1)
    assert r.there.all() and same.sum() >= 6
    assert (r.on | (r.share <= .5)).all()                                 # others grew to all that has an effect
