"""Pictures in colour, drawn from parts: what they are, and that their counterfactuals change parts and not colours."""
from dataclasses import replace

import numpy as np
import pytest
import torch
from shares import at_least
from written import load_task

from gradual_cf.all import GradualCF, images, load_animals, predict, put_back
from gradual_cf.core import changed_groups
from gradual_cf.data.datasets import _ANIMALS, _FUR
from gradual_cf.gradual import preset


@pytest.fixture(scope='module')
def task(): return load_task('animals')


@pytest.fixture(scope='module')
def found(task):
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    return cf, cf.explain(np.array(task.X_test[:12]), (task.y_test[:12] + 1 + np.arange(12) % 4) % 5)


def test_a_seed_is_a_data_set():
    def drawn(seed): return np.stack(load_animals(seed, rows=30, tests=1)[0]['image'][:])
    assert drawn(0).shape == (30, 32, 32, 3) and (drawn(0) == drawn(0)).all() and (drawn(0) != drawn(1)).any()


def test_every_animal_is_there_and_its_colours_say_nothing():
    rows,tests = load_animals(rows=1000, tests=50)
    values,label = np.stack(rows['image'][:]), np.array(rows['label'])
    assert len(tests) == 50 and (np.bincount(label, minlength=len(_ANIMALS)) > 150).all()
    sky = np.stack([values[label == i][:, 0, 0].mean(0) for i in range(len(_ANIMALS))])
    assert np.ptp(sky, axis=0).max() < 12   # of 255


def test_network_and_judge_know_them(task):
    "Those that are written down; test_training.py says how well training does."
    x = task.domain.encode(np.array(task.X_test)).x
    for net in (task.model, task.judge): assert (predict(net, x).argmax(1).numpy() == task.y_test).mean() >= .97


def test_a_judge_agrees(task, found):
    cf,cfs = found
    assert cfs.valid.all()
    at_least((predict(task.judge, cfs.xp).argmax(1) == cfs.target).double().mean().item(), 12, .9)


def other_furs(raw):
    "Share of the fur of each picture that has another colour than most of it."
    near = np.abs(raw[:, :, :, None]/255 - _FUR).max(-1) < .08
    many = np.sort(near.sum((1, 2)), axis=1)
    return 1 - many[:, -1]/many.sum(1)


def test_there_are_no_patches_of_many_colours(task, found):
    cf,cfs = found
    real = other_furs(np.array(task.X_test)).mean()
    assert other_furs(cfs.raw).mean() <= real + .08
    loose = replace(cf.settings, lr=.1, prototype_weight=.3)   # as for grey pictures
    colours = cf.under(loose).explain(np.array(task.X_test[:4]), cfs.target[:4])
    def bright(v): return (v.max(-1).astype(int) - v.min(-1)).reshape(len(v), -1).max(1).mean() # how colourful the most colourful pixel is
    assert bright(colours.raw) > bright(cfs.raw[:4])


def test_no_block_is_there_in_vain(task, found):
    cf,cfs = found
    s = cf.start(cfs.enc, cfs.tensors.target)._replace(xp=cfs.xp, logits=predict(task.model, cfs.xp))
    groups = cf.groups(cfs.x)
    before,after = (changed_groups(cfs.x, v, groups).sum() for v in (cfs.xp, put_back(cf, s).xp))
    assert before - after <= .15*before and preset(images(channels=3)).moves == (put_back,)
    assert not torch.equal(cfs.xp, cfs.x)
