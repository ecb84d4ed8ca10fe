"""Images: every form of input, blocks of every size, bounds, and what the default setting reaches on MNIST."""
import os

import numpy as np
import pytest
import torch
from cover import cover
from PIL import Image
from torch import nn
from toy import sharpen
from written import load_task

from gradual_cf.all import (PAPER, Encoded, GradualCF, State, Target, construct, images, improve, load_animals, load_mnist, predict, put_back, without_images)
from gradual_cf.core import changed_groups
from gradual_cf.data.images import _SHIFTS, _arrange, pixels
from gradual_cf.gradual import _best_place
from gradual_cf.models.networks import seeded
from gradual_cf.search.goals import violation, merit, prototype_distance, _term_grad
from gradual_cf.search.plausible import CANDIDATES, _nearest_typical, _merits_of_pasted

DATA = os.environ.get('GRADUAL_CF_DATA')
needs_data = pytest.mark.skipif(not DATA, reason='need GRADUAL_CF_DATA')


def toy(channels=1, shape=(9, 10)):
    "An untrained network on noise, spread so that every class occurs."
    with seeded(5):
        x = (torch.rand(120, channels, *shape)*255).to(torch.uint8)
        net = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4*(shape[0] - 2)*(shape[1] - 2), 3))
    return sharpen(net, x/255).double(), x


@pytest.mark.parametrize('channels', [1, 3])
def test_every_form_is_the_same_image(channels, tmp_path):
    a = np.random.default_rng(0).integers(0, 256, (3, 9, 10) + (3,)*(channels == 3), dtype=np.uint8)
    want = _arrange(a, channels)
    forms = [a, list(a), [Image.fromarray(v) for v in a], torch.as_tensor(want), {'image': [Image.fromarray(v) for v in a]}, [{'image': Image.fromarray(v)} for v in a]]
    for f in forms: assert pixels(f, channels).equal(want)
    Image.fromarray(a[0]).save(tmp_path/'a.png')
    for f in (a[0], Image.fromarray(a[0]), want[0], tmp_path/'a.png'): assert pixels(f, channels).equal(want[:1])


@pytest.mark.night
@pytest.mark.parametrize('block,channels', cover([1, 2, 4, 7], [1, 3]))
def test_blocks_bounds_and_untouched_pixels(block, channels):
    net,x = toy(channels)
    dom = images(block=block, channels=channels)
    cf = GradualCF(net, dom, 'sparse', tau=.6, sigma=3).fit(x)
    cfs = cf.explain(x[:12], target=(predict(net, x[:12].double()/255).argmax(1) + 1) % 3)
    assert cfs.valid.any() and ((cfs.xp >= 0) & (cfs.xp <= 1)).all()
    assert cfs.xp[~cfs.mask].equal(cfs.x[~cfs.mask])
    ids = dom.groups(cfs.x.shape[1:])
    assert ids[0].equal(ids[-1]) and changed_groups(cfs.x, cfs.xp, ids)[:, ids].equal(cfs.mask)
    assert cfs.raw.dtype == np.uint8 and dom.legal(cfs.data, cfs.raw).all()
    assert dom.encode(cfs.raw).x.equal(cfs.xp)
    assert cf.explain(x[3:4], target=cfs.target[3:4]).xp.allclose(cfs.xp[3:4], atol=1e-6)


def test_other_bounds_and_floating_images():
    net,x = toy()
    v = x.double()/255*2 - 1
    cf = GradualCF(net, images(block=3, bounds=(-1, 1)), 'sparse', tau=.6, sigma=2, quantile=None).fit(v)
    cfs = cf.explain(v[:5], target=(predict(net, v[:5]).argmax(1) + 1) % 3)
    assert isinstance(cfs.raw, torch.Tensor) and ((cfs.raw >= -1) & (cfs.raw <= 1)).all() and cfs.raw[~cfs.mask].equal(v[:5][~cfs.mask])
    assert cfs.tensors.prob.allclose(predict(net, cfs.raw).softmax(1).gather(1, cfs.tensors.target[:, None])[:, 0])


@pytest.mark.night
def test_bounds_for_each_channel():
    net,x = toy(3)
    low,high = torch.tensor([-2., 0., -1.]).view(3, 1, 1).double(), torch.tensor([2., 1., 3.]).view(3, 1, 1).double()
    scaled = nn.Sequential(Rescaled(low, high), net)
    dom = images(block=3, bounds=((-2, 2), (0, 1), (-1, 3)), channels=3)
    cfs = GradualCF(scaled, dom, 'sparse', tau=.6, sigma=3).fit(x).explain(x[:10], target=1)
    want = GradualCF(net, images(block=3, channels=3), 'sparse', tau=.6, sigma=3).fit(x).explain(x[:10], target=1)
    assert cfs.mask.equal(want.mask) and (cfs.raw.astype(int) - want.raw).max() <= 1
    inside = torch.rand(2, 3, 9, 10).double()*(high - low) + low
    assert dom.rows(inside).equal(inside) and dom.decode(dom.encode(inside).x, inside).equal(inside)


class Rescaled(nn.Module):
    "Values of a range as shares of it."
    def __init__(self, low, high):
        super().__init__()
        self.register_buffer('low', low), self.register_buffer('span', high - low)

    def forward(self, x): return (x - self.low)/self.span


def test_pasting_chooses_as_the_whole_search_would():
    net,x = toy()
    cf = GradualCF(net, images(block=3), 'sparse', tau=.6, sigma=0, average=False).fit(x)
    enc = cf.encode(x[:20])
    target = (predict(net, enc.x).argmax(1) + 1) % 3
    row = torch.arange(20).repeat_interleave(CANDIDATES)
    inside = cf.aim(target[row])
    assert inside.gap.equal(cf.stats.largest_gap(target[row], cf.settings.quantile))
    c = _nearest_typical(enc.x, target, cf).flatten(0, 1)
    many = enc.take(row)
    start = State(many, many.x.clone(), predict(net, many.x), inside, torch.zeros_like(many.frozen), c.clone())
    for step in construct(cf, start): pass
    far = (step.xp - step.x).flatten(1).norm(dim=1)
    alone = merit(violation(cf, step), step.on.sum(1) + far/(1 + far)).view(20, CANDIDATES)
    found = _merits_of_pasted(cf, State(many, many.x, None, inside), cf.groups(enc.x), c, CANDIDATES).view(20, CANDIDATES)
    assert (alone > 0).any() and found.argmax(1).equal(alone.argmax(1))
    assert found[found > 0].allclose(alone[found > 0]) and ((alone > 0) & (found < 0)).any()   # some gave up
    fewest = step.on.sum(1).view(20, CANDIDATES).where(alone > 0, 99).amin(1)
    chosen = step.on.sum(1).view(20, CANDIDATES)[torch.arange(20), found.argmax(1)]
    assert chosen.equal(fewest.where(fewest < 99, chosen))


def test_prototype_term_and_views():
    x,near = torch.rand(2, 3, 1, 4, 4)
    target = Target(torch.tensor([0, 1, 0]), torch.ones(3), torch.randn(3, 2), near)
    s = State(Encoded(x, torch.zeros(3, 1, dtype=torch.bool)), torch.rand(3, 1, 4, 4), torch.randn(3, 2), target)
    assert prototype_distance.grad(s)[0].allclose(_term_grad(lambda s: prototype_distance(s), s)[0])
    assert all(view(x).shape == x.shape for view in _SHIFTS)


def test_one_image_can_be_selected_and_drawn():
    net,x = toy()
    cf = GradualCF(net, images(block=3), 'sparse', tau=.6, sigma=1).fit(x)
    cfs = cf.explain(Image.fromarray(x[0, 0].numpy()), target=1)
    assert len(cfs[0].changes()) == len(cfs.changes()) and 'alt="image 0: to class 1' in cfs._repr_html_()


def test_paper_setting_is_untouched_by_the_domain():
    net,x = toy()
    cf = GradualCF(net, images(block=3), PAPER)
    h = cf.settings
    assert (h.masking, h.init, h.keep, h.quantile, h.sigma, h.lam, h.eta, h.prototype_weight, h.average, h.moves) == ('gradient', 'normal', 'last', None, 500, .3, .3, 0., False, ())
    assert set(cf.loss.terms) == {'logit', 'l2', 'tv'}


@needs_data
def test_mnist_is_the_hubs():
    train,test = load_mnist()
    assert (len(train), len(test)) == (60000, 10000) and train.column_names == ['image', 'label'] and test[0]['image'].size == (28, 28) and test[0]['label'] == 7


def test_an_answer_that_did_not_arrive_is_no_finalist():
    net,x = toy()
    cf = GradualCF(net, images(block=3), 'sparse', tau=.6, sigma=1).fit(x)
    enc,target = cf.encode(x[:2]), torch.tensor([0, 1])     # two ends for each row, and one of them is of the class
    there = [x[int(predict(net, x.double()/255)[:, t].argmax())]/255 for t in (0, 1)]
    ends = torch.stack([torch.stack([there[1], there[1]]), torch.stack([there[0], there[0]])]).to(enc.x)
    assert _best_place(cf, enc, ends, target).tolist() == [1, 0]


def test_no_block_is_needless_without_images():
    task = load_task('digits')
    cf = GradualCF(task.model, task.domain, without_images()).fit(task.X)
    cfs = cf.explain(np.array(task.X_test[:12]), (np.array(task.y_test[:12]) + 1) % 10)
    inside = cf.satisfies_settings(cfs.enc, cfs.xp, cfs.tensors.target)
    assert inside.double().mean() > .5 and improve(cf, cfs, (put_back,)).xp[inside].equal(cfs.xp[inside])


@pytest.mark.night
def test_a_seed_of_animals_is_a_data_set():
    def drawn(seed): return np.stack(load_animals(seed, rows=30, tests=1)[0]['image'][:])
    assert drawn(0).shape == (30, 32, 32, 3) and (drawn(0) == drawn(0)).all() and (drawn(0) != drawn(1)).any()
