"""What training promises: the loss falls, and the accuracy is what it was over many seeds and instruction sets."""
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.training import FILE, SEEDS, SETS, trained  # noqa: E402

FIGURES = pd.read_csv(FILE)
BOUNDS = {('breast_cancer', 'network'): .9, ('breast_cancer', 'judge'): .9, ('toy_reviews', 'network'): .9,
          ('digits', 'network'): .88, ('digits', 'judge'): .96}
TRAINED = ['breast_cancer', 'toy_reviews']  # here; digits take half a minute


@pytest.mark.parametrize('data, network', BOUNDS)
def test_bounds_leave_four_standard_deviations_of_room(data, network):
    some = FIGURES[(FIGURES.data == data) & (FIGURES.network == network)]
    assert set(some.instructions) == set(SETS) and (some.groupby('instructions').seed.nunique() == SEEDS).all()
    assert BOUNDS[data, network] <= some.accuracy.mean() - 4*some.accuracy.std() and (some.best_loss < .75*some.first_loss).all()


@pytest.mark.parametrize('data', TRAINED)
def test_a_network_learns(data):
    for r in trained(data, 0): assert r['accuracy'] >= BOUNDS[data, r['network']] and r['best_loss'] < .9*r['first_loss']
