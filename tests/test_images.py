"""Images: every form of input, blocks of every size, bounds, and what the default setting reaches on MNIST."""
import os

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from gradual_cf.core import changed_groups, predict
from gradual_cf.composition import prototypes
from gradual_cf.gradual import PAPER, GradualCF, Search, construct, paste
from gradual_cf.images import arrange, images, load_mnist, pixels, shifts
from gradual_cf.losses import Point, Ref, prototype_distance, term_grad
from gradual_cf.masking import merit, shortfall
from gradual_cf.models import accuracy, seeded

DATA = os.environ.get('GRADUAL_CF_DATA')
needs_data = pytest.mark.skipif(not DATA, reason='GRADUAL_CF_DATA is not set: MNIST is not part of the project')


def toy(channels=1, shape=(9, 10)):
    "An untrained network on noise, spread so that every class occurs."
    with seeded(5):
        x = (torch.rand(120, channels, *shape)*255).to(torch.uint8)
        net = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4*(shape[0] - 2)*(shape[1] - 2), 3))
        z = predict(net, x/255)
        with torch.no_grad():
            net[-1].weight.div_(z.std(0)[:, None]).mul_(2)
            net[-1].bias.copy_(2*(net[-1].bias - z.mean(0))/z.std(0))
    return net.double(), x


@pytest.mark.parametrize('channels', [1, 3])
def test_every_form_is_the_same_image(channels):
    a = np.random.default_rng(0).integers(0, 256, (3, 9, 10) + (3,)*(channels == 3), dtype=np.uint8)
    want = arrange(a, channels)
    forms = [a, list(a), [Image.fromarray(v) for v in a], torch.as_tensor(want), {'image': [Image.fromarray(v) for v in a]}, [{'image': Image.fromarray(v)} for v in a]]
    for f in forms: assert pixels(f, channels).equal(want)
    for f in (a[0], Image.fromarray(a[0]), want[0]): assert pixels(f, channels).equal(want[:1])


def test_files(tmp_path):
    a = np.random.default_rng(0).integers(0, 256, (9, 10), dtype=np.uint8)
    Image.fromarray(a).save(tmp_path/'a.png')
    assert pixels(tmp_path/'a.png').equal(arrange(a, 1))
    (tmp_path/'b.png').write_text('no image')
    with pytest.raises(ValueError, match='must be an image file'): pixels(tmp_path/'b.png')
    with pytest.raises(ValueError, match='must be an image file'): pixels(tmp_path/'none.png')


@pytest.mark.parametrize('block', [1, 2, 4, 7])
@pytest.mark.parametrize('channels', [1, 3])
def test_blocks_bounds_and_untouched_pixels(block, channels):
    net,x = toy(channels)
    dom = images(block, channels=channels)
    cf = GradualCF(net, dom, tau=.6, sigma=3, prototypes=3).fit(x)
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
    cf = GradualCF(net, images(3, bounds=(-1, 1)), tau=.6, sigma=2, prototypes=2).fit(v)
    cfs = cf.explain(v[:5], target=(predict(net, v[:5].double()).argmax(1) + 1) % 3)
    assert ((cfs.xp >= -1) & (cfs.xp <= 1)).all() and isinstance(cfs.raw, torch.Tensor) and cfs.xp[~cfs.mask].equal(v[:5][~cfs.mask])


@pytest.mark.parametrize('bad, words', [
    (np.zeros((2, 9, 10, 3), np.uint8), '1 channel'), (np.full((1, 9, 10), 1.5), r'bounds \[0, 1\], got 1.5'), (np.full((1, 9, 10), np.nan), 'bounds'),
    (np.zeros((1, 12, 12), np.uint8), 'shape'), (['text'], 'image file'), ([3], 'must be images'), ([], 'at least one'), (Image.new('RGBA', (10, 9)), 'RGBA')])
def test_bad_input_is_a_clear_error(bad, words):
    net,x = toy()
    cf = GradualCF(net, images(3), sigma=1, prototypes=1).fit(x)
    with pytest.raises(ValueError, match=words): cf.explain(bad, target=1)


def test_wrong_size_and_block():
    net,x = toy()
    with pytest.raises(ValueError, match='shape'): GradualCF(net, images(3)).fit(x[:, :, :8])
    with pytest.raises(ValueError, match='block must be in 1..9'): GradualCF(net, images(10)).fit(x)


def test_pasting_chooses_as_the_whole_search_would():
    net,x = toy()
    cf = GradualCF(net, images(3), tau=.6, prototypes=5).fit(x)
    enc = cf.encode(x[:20])
    target = (predict(net, enc.x).argmax(1) + 1) % 3
    row = torch.arange(20).repeat_interleave(5)
    inside = cf.ref(target[row])._replace(gap=cf.stats.within(target[row], .75))
    c = prototypes(enc.x, target, cf.x_train, cf.z_train, cf.stats, 5).flatten(0, 1)
    s = Search(net, cf.domain.groups(enc.x.shape[1:]), cf.loss, cf.domain.project, rank='gain', tau=.6, sigma=0)
    for step in construct(s, *enc.take(row), inside, c): pass
    whole = merit(shortfall(step.logits, target[row], .6, inside.mu, inside.gap), (step.xp - enc.x[row]).flatten(1).norm(dim=1)).view(20, 5)
    found = paste(s, *enc.take(row), inside, c, 5).view(20, 5)
    assert (whole > 0).any() and found.argmax(1).equal(whole.argmax(1))
    assert found[found > 0].allclose(whole[found > 0]) and ((whole > 0) & (found < 0)).any()   # some gave up


def test_prototype_term_and_views():
    p = Point(torch.rand(3, 1, 4, 4), torch.rand(3, 1, 4, 4), torch.randn(3, 2), Ref(torch.tensor([0, 1, 0]), torch.randn(3, 2), None, torch.rand(3, 1, 4, 4)))
    assert prototype_distance.grad(p)[0].allclose(term_grad(lambda p: prototype_distance(p), p)[0])
    assert all(v(p.x).shape == p.x.shape for v in shifts(2))


def test_one_image_can_be_selected_and_drawn():
    net,x = toy()
    cf = GradualCF(net, images(3), tau=.6, sigma=1, prototypes=1).fit(x)
    cfs = cf.explain(Image.fromarray(x[0, 0].numpy()), target=1)
    assert len(cfs[0].changes()) == len(cfs.changes()) and 'alt="image 0: to class 1' in cfs._repr_html_()


def test_the_same_options_on_a_table():
    from toy import columns
    t = columns(3)
    target = (predict(t.model, t.x[:20]).argmax(1) + 1) % 3
    for h in (dict(rank='gain', init='prototype', prototypes=4, pull=.1, quantile=.9), dict(rank='room')):
        cfs = GradualCF(t.model, t.domain, sigma=20, **h).fit(t.x).explain(t.x[:20], target=target)
        assert cfs.valid.double().mean() > .8 and ((cfs.xp >= 0) & (cfs.xp <= 1)).all()


def test_paper_setting_is_untouched_by_the_domain():
    net,x = toy()
    cf = GradualCF(net, images(3), **PAPER)
    h = cf.hyper
    assert (h.rank, h.init, h.keep, h.quantile, h.sigma, h.lam, h.eta, h.pull, h.average, h.tau) == ('gradient', 'normal', 'last', None, 500, .3, .3, 0., False, .9)
    assert set(cf.loss.terms) == {'logit', 'l2', 'tv'}


@needs_data
def test_mnist_is_the_hubs():
    train,test = load_mnist()
    assert (len(train), len(test)) == (60000, 10000) and train.column_names == ['image', 'label'] and test[0]['image'].size == (28, 28) and test[0]['label'] == 7


@needs_data
def test_default_setting_on_mnist_is_believed_by_a_judge():
    from gradual_cf.tasks import load_task
    task = load_task('mnist')
    x,y = task.domain.encode(np.array(task.X_test)).x, torch.tensor(task.y_test)
    assert accuracy(task.model, x, y) >= .97
    rows = np.array(task.X_test[:30])
    cf = GradualCF(task.model, task.domain).fit(task.X)
    target = (predict(task.model, x[:30]).argmax(1) + 1 + torch.arange(30) % 9) % 10
    cfs = cf.explain(rows, target)
    assert cfs.valid.double().mean() >= .97
    assert (predict(task.judge, cfs.xp).argmax(1) == target).double().mean() >= .85
    assert changed_groups(cfs.x, cfs.xp, task.domain.groups(cfs.x.shape[1:])).sum(1).double().mean() <= 12
