"""Goyal's edits against closed forms, a loop over all pairs, and their own rules."""
import pytest
import torch
from torch import nn
from written import load_task

from gradual_cf.all import FIDO, Goyal, images, predict
from gradual_cf.baselines.regions import _collage, _nearest_donors, _slope_scores
from gradual_cf.models.targets import log_prob


def pooled(seed=0, k=3, flat=False):
    "Images of 6×8 to maps of 3×4 cells, and a head: mean and linear, or linear over all cells."
    g = torch.Generator().manual_seed(seed)
    conv = nn.Conv2d(1, 5, 2, 2)
    head = [nn.Flatten(), nn.Linear(60, k)] if flat else [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(5, k)]
    net = nn.Sequential(conv, nn.ReLU(), *head).double().requires_grad_(False)
    for p in net.parameters(): p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64))
    z = net.eval()(torch.rand(200, 1, 6, 8, generator=g, dtype=torch.float64))
    net[-1].weight.div_(z.std(0)[:, None]/3), net[-1].bias.copy_((net[-1].bias - z.mean(0))/z.std(0)*3)   # every class has its images
    return net


@pytest.fixture
def rows(): return torch.rand(40, 1, 6, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def ask(net, rows, tau=.9, **more):
    "An explainer, and five rows with a target that is another class with training images at `tau`."
    e = Goyal(net, images(block=1), tau=tau, **more).fit(rows)
    prob = e.z_train.softmax(1)
    enough = [t for t in range(prob.shape[1]) if (prob[:, t] >= tau).sum() > 2]
    some = (prob[:, enough[0]] < .2).nonzero()[:5, 0]
    return e, rows[some], [enough[0]]*len(some)


def test_slopes_are_exact_to_first_order(rows):
    "A thousandth of the way to the donor raises the log-probability by a thousandth of the score."
    net = pooled(flat=True)
    maps, head, t = net[:2](rows), net[2:], torch.tensor([2])
    a, b = maps[:1], maps[4:5]
    out = _slope_scores(head, a.flatten(2), b.flatten(2), (3, 4), t)
    for i, j in ((0, 0), (3, 7), (11, 2)):
        edited = a.flatten(2).clone()
        edited[:, :, i] += 1e-5*(b.flatten(2)[:, :, j] - edited[:, :, i])
        rise = (log_prob(head(edited.view(1, 5, 3, 4)), t) - log_prob(head(a), t))/1e-5
        torch.testing.assert_close(out[0, i, j], rise[0], rtol=1e-3, atol=1e-4)


def slow(net, x, donor, target, tau):
    "Goyal's greedy search for one image: all pairs, one after the other."
    f, d, head = net[:2](x[None]).flatten(2)[0], net[:2](donor[None]).flatten(2)[0], net[2:]
    say = lambda m: head(m.view(1, 5, 3, 4)).softmax(1)[0, target].item()
    free, unused, source = set(range(12)), set(range(12)), {}
    while say(f) < tau + .001*(1 - tau) and free:
        best = (-1., 0, 0)
        for i in free:
            for j in unused:
                new = f.clone()
                new[:, i] = d[:, j]
                best = max(best, (say(new), i, j))
        _, i, j = best
        f[:, i], source[i] = d[:, j], j
        free.remove(i), unused.remove(j)
    return source, say(f)


@pytest.mark.parametrize('flat', [False, True])
def test_a_batch_is_a_loop_over_all_pairs(rows, flat):
    "Exactly for a mean and a linear layer; for another head when all pairs are tried."
    net = pooled(3, flat=flat)
    e, x, target = ask(net, rows, tried=144)
    assert (e.linear is None) == flat
    found = e.edits(x, target)
    assert found.there.sum() >= 3 and (found.source >= 0).any()
    for i in range(len(x)):
        source, prob = slow(net, x[i], found.donors[i, 0], target[i], .9)
        assert {int(c): int(found.source[i].flatten()[c]) for c in (found.source[i].flatten() >= 0).nonzero()[:, 0]} == source
        assert abs(found.prob[i].item() - prob) < 1e-9
        one = e.edits(x[i:i + 1], target[i])
        assert all(torch.equal(a[i], b[0]) for a, b in zip(found, one) if not a.is_floating_point())


def test_the_fewest_cells_in_closed_form():
    "One feature, log-odds its mean: the brightest cells of the donor replace the darkest of the image."
    net = nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 2)).double().requires_grad_(False)
    net[-1].weight.copy_(torch.tensor([[0.], [40.]])), net[-1].bias.copy_(torch.tensor([0., -20.]))
    dark, bright = (torch.linspace(a, b, 12, dtype=torch.float64).view(1, 1, 3, 4).repeat_interleave(2, 2).repeat_interleave(2, 3) for a, b in ((0, .6), (.4, 1)))
    e = Goyal(net, images(block=1), tau=.5).fit(torch.cat([dark, bright]))
    found = e.edits(dark, [1])
    gain = (torch.linspace(.4, 1, 12).flip(0) - torch.linspace(0, .6, 12)).cumsum(0)/12
    many = int((.3 + gain > .5).to(torch.uint8).argmax()) + 1
    source = found.source.flatten().tolist()
    assert source == [11 - i for i in range(many)] + [-1]*(12 - many) and found.there.all()
    assert e.explain(dark, [1]).valid.all()                                # the mean of pixels is that of the cells


def test_cells_and_donor_cells_are_used_once(rows):
    e, x, target = ask(pooled(4), rows, donors=2)
    found = e.edits(x, target)
    for s in found.source:
        used = s[s >= 0]
        assert len(used.unique()) == len(used) and used.max() < 24
    near = _nearest_donors(e, x, torch.tensor(target))
    assert (near[:, 0] != near[:, 1]).all()


@pytest.mark.parametrize('high, wide, grid', [(6, 8, (3, 4)), (5, 7, (2, 3)), (4, 4, (4, 4))])
def test_a_collage_pixel_by_pixel(high, wide, grid):
    g = torch.Generator().manual_seed(0)
    x, donors = torch.rand(3, 2, high, wide, generator=g), torch.rand(3, 2, 2, high, wide, generator=g)
    cells = grid[0]*grid[1]
    source = torch.randint(-1, 2*cells, (3, *grid), generator=g)
    out = _collage(x, donors, source)
    starts = lambda size, n: [next(p for p in range(size) if p*n//size == i) for i in range(n)]
    top, left = starts(high, grid[0]), starts(wide, grid[1])
    for n in range(3):
        for r in range(high):
            for c in range(wide):
                i, j = r*grid[0]//high, c*grid[1]//wide
                s = int(source[n, i, j])
                if s < 0: want = x[n, :, r, c]
                else:
                    q, s = divmod(s, cells)
                    down, right = top[s//grid[1]] + r - top[i], left[s % grid[1]] + c - left[j]
                    want = donors[n, q, :, min(down, high - 1), min(right, wide - 1)]
                assert torch.equal(out[n, :, r, c], want)


@pytest.fixture(scope='module')
def task(): return load_task('digits')


@pytest.mark.parametrize('make', [lambda t: FIDO(t.model, t.domain, infill='mean', steps=40, tau=.5), lambda t: Goyal(t.model, t.domain, halves=(t.model[:5], t.model[5:]), tau=.5)],
                         ids=['FIDO', 'Goyal'])
def test_rules_are_kept(task, make):
    e = make(task).fit(task.X)
    rows, state = task.X_test[:20], torch.random.get_rng_state()
    x = e.encode(rows).x
    target = predict(task.model, x).topk(2).indices[:, 1].tolist()
    task.model.train()
    free, few = e.explain(rows, target), e.explain(rows, target, max_changes=2)
    assert task.model.training and torch.equal(state, torch.random.get_rng_state())
    task.model.eval()
    assert free.valid.sum() >= 5 and (few.quality().changes <= 2).all()
    names = free.changes().feature.unique()[:2].tolist()
    assert not set(e.explain(rows, target, immutable=names).changes().feature) & set(names)
    prob, own = predict(task.model, x).softmax(1).max(1)
    assert torch.equal(e.explain(rows, own.tolist()).xp[prob >= .51], x[prob >= .51])  # nothing to do
    assert free.domain.legal(free.data, free.raw).all()
    if isinstance(e, FIDO): return
    assert e.edits(rows, target).there.double().mean() >= .95 and (e.edits(rows, own.tolist()).source[prob >= .51] == -1).all()


def test_a_range_of_its_own(rows):
    "A network that reads pixels in [-1, 1] is cut and asked in that range."
    net = pooled(3)
    shifted = nn.Sequential(nn.Conv2d(1, 5, 2, 2).double(), *net[1:]).requires_grad_(False).eval()
    shifted[0].weight.copy_(net[0].weight/2), shifted[0].bias.copy_(net[0].bias + net[0].weight.sum((1, 2, 3))/2)
    one, x, target = ask(net, rows)
    two = Goyal(shifted, images(block=1, bounds=(-1, 1)), tau=.9).fit(2*rows - 1)
    torch.testing.assert_close(two.edits(2*x - 1, target).prob, one.edits(x, target).prob)
