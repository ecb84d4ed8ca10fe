"""What photographs ask of the image domain."""
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import gradual_cf.gradual as gradual
import gradual_cf.search.plausible as prototypes
from gradual_cf.all import Goyal, GradualCF, Settings, images

PASTE = Settings(tau=.6, masking='gain', init='prototype', keep='last', tau_slack=0., sigma=0)


class Redness(nn.Module):
    "Three classes: more red, more green, more blue."
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(20.))
    def forward(self, x): return self.scale*x.mean((2, 3))


@cache
def six_photographs():
    "Six photographs of 12×10 pixels, two of each class."
    g = torch.Generator().manual_seed(0)
    v = torch.rand(6, 12, 10, 3, generator=g)*.4
    for i in range(6): v[i, ..., i//2] += .5
    return (v*255).round().to(torch.uint8).numpy()


@pytest.fixture
def photos(): return six_photographs()


def patches(seed):
    "Uneven regions."
    g = np.random.default_rng(seed)
    seeds = g.random((9, 2))*[12, 10]
    at = np.stack(np.meshgrid(np.arange(12), np.arange(10), indexing='ij'), -1)[:, :, None]
    return np.unique(((at - seeds)**2).sum(-1).argmin(-1), return_inverse=True)[1].reshape(12, 10)


def test_each_photograph_may_have_regions_of_its_own(photos):
    "Whole regions change and nothing else; a change is named by its first pixel, and can be forbidden."
    for i in (0, 3):
        regions = patches(i)
        cf = GradualCF(Redness(), images(channels=3, regions=regions), PASTE).fit(photos)
        cfs = cf.explain(photos[i:i + 1], [(i//2 + 1) % 3])
        assert cfs.valid.all()
        on, differs = cfs.mask[0, 0].numpy(), (cfs.x != cfs.xp)[0].any(0).numpy()
        touched = set(regions[differs])
        assert 0 < len(touched) < regions.max() + 1 and np.array_equal(on, np.isin(regions, list(touched)))
        first = cfs.changes().feature[0]
        top, left = map(int, first.removeprefix('block at ').split(','))
        assert regions[top, left] in touched
        assert first not in set(cf.explain(photos[i:i + 1], [(i//2 + 1) % 3], immutable=[first]).changes().feature)
        assert cf.domain.legal(photos[i:i + 1], cfs.raw).all()


def test_no_prototype_is_searched_for_rows_that_are_there(photos, monkeypatch):
    cf, asked = GradualCF(Redness(), images(channels=3), PASTE).fit(photos), []
    search = prototypes.nearest_prototypes
    monkeypatch.setattr(gradual, 'nearest_prototypes', lambda cf, s, *more: asked.append(len(s.x)) or search(cf, s, *more))
    assert torch.equal(cf.explain(photos, [0, 0, 1, 1, 2, 2]).xp, cf.encode(photos).x) and asked == []
    cf.explain(photos, [0, 0, 1, 1, 2, 0])
    assert asked == [1]


def test_one_donor_is_enough_where_one_is_needed(photos):
    few = photos[[0, 2, 3, 4, 5]]                                         # one red photograph
    cf = GradualCF(Redness(), images(channels=3), PASTE, quantile=.2).fit(few)
    assert cf.explain(few[:1], 1).valid.all()
    assert GradualCF(Redness(), images(channels=3), PASTE).fit(few).explain(few[1:], 0).valid.all()
    conv = nn.Conv2d(3, 3, 2, 2, bias=False)
    conv.weight.data = torch.eye(3)[..., None, None].expand(3, 3, 2, 2)/4
    linear = nn.Linear(3, 3, bias=False)
    linear.weight.data = 20*torch.eye(3)
    net = nn.Sequential(conv, nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear).requires_grad_(False)
    assert Goyal(net, images(channels=3)).fit(few).edits(few[1:], 0).there.all()


def test_donors_are_distinct(photos, monkeypatch):
    "With one donor a class there is one candidate, not sixteen times the same."
    many, search = [], prototypes._merits_of_pasted
    monkeypatch.setattr(prototypes, '_merits_of_pasted', lambda cf, s, groups, c, n: many.append((n, len(c.unique(dim=0)))) or search(cf, s, groups, c, n))
    GradualCF(Redness(), images(channels=3), PASTE).fit(photos[::2]).explain(photos[:2], 2)
    assert many == [(1, 1)]
