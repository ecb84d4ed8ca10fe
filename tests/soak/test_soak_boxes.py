"""The cheapest answer, proven, against asking every legal row: SOAK_SIZE rows of made tables, models, rules and prices."""
import os

import numpy as np
import pytest
from test_boxes import MODELS, asked_everything

SIZE = int(os.environ.get('SOAK_SIZE', 400))
pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


@pytest.mark.parametrize('optimal', ['columns', 'distance', 'cost'])
@pytest.mark.parametrize('name', MODELS)
def test_the_cheapest_equals_asking_everything(name, optimal):
    start = int(os.environ.get('SOAK_SEED', np.random.SeedSequence().generate_state(1)[0]))
    for seed in range(start, start + max(SIZE//(21*len(MODELS)), 1)):
        try: asked_everything(name, np.random.default_rng(seed), seed, optimal)
        except AssertionError as e: raise AssertionError(f'SOAK_SEED={seed} SOAK_SIZE=1') from e
