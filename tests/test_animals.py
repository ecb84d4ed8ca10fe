"""Pictures in colour, drawn from parts: what they are, and that their counterfactuals change parts and not colours."""

import numpy as np
import pytest
from shares import at_least
from written import load_task

from gradual_cf.all import GradualCF, load_animals, predict


@pytest.fixture(scope='module')
def task(): return load_task('animals')


@pytest.fixture(scope='module')
def found(task):
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    return cf, cf.explain(np.array(task.X_test[:12]), (task.y_test[:12] + 1 + np.arange(12) % 4) % 5)


@pytest.mark.night
def test_a_seed_is_a_data_set():
    def drawn(seed): return np.stack(load_animals(seed, rows=30, tests=1)[0]['image'][:])
    assert drawn(0).shape == (30, 32, 32, 3) and (drawn(0) == drawn(0)).all() and (drawn(0) != drawn(1)).any()


@pytest.mark.night
def test_network_and_judge_know_them(task):
    "Those that are written down; test_training.py says how well training does."
    x = task.domain.encode(np.array(task.X_test)).x
    for net in (task.model, task.judge): assert (predict(net, x).argmax(1).numpy() == task.y_test).mean() >= .97


@pytest.mark.night
def test_a_judge_agrees(task, found):
    cf,cfs = found
    assert cfs.valid.all()
    at_least((predict(task.judge, cfs.xp).argmax(1) == cfs.target).double().mean().item(), 12, .9)
