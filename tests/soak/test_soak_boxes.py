"""The cheapest answer, proven, against asking every legal row: SOAK_SIZE rows of made tables, models, rules and prices."""
import os

import numpy as np
import pytest
from test_boxes import MODELS, asked_everything
from test_robust import noise_against_everything
from test_tails import against_training_values

SIZE = int(os.environ.get('SOAK_SIZE', 400))
pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


def seeds(many):
    "As many seeds as there shall be cases; one where a case is asked for by its seed."
    start = int(os.environ.get('SOAK_SEED', np.random.SeedSequence().generate_state(1)[0]))
    return range(start, start + max(many, 1))


@pytest.mark.parametrize('optimal', ['columns', 'distance', 'cost'])
@pytest.mark.parametrize('name', MODELS)
def test_the_cheapest_equals_asking_everything(name, optimal):
    for seed in seeds(SIZE//(21*len(MODELS))):
        try: asked_everything(name, np.random.default_rng(seed), seed, optimal)
        except AssertionError as e: raise AssertionError(f'SOAK_SEED={seed} SOAK_SIZE=1') from e


@pytest.mark.parametrize('optimal', ['columns', 'distance'])
@pytest.mark.parametrize('name', MODELS)
def test_robust_answers_equal_asking_everything(name, optimal):
    for seed in seeds(SIZE//(100*len(MODELS))):
        rng = np.random.default_rng(seed)
        noise = {c: float(far) for c, far in zip('abc', rng.integers(0, 4, 3)) if far}
        try: noise_against_everything(name, rng, optimal, noise or dict(a=1.))
        except AssertionError as e: raise AssertionError(f'SOAK_SEED={seed} SOAK_SIZE=1') from e


def test_no_proof_denies_a_value_that_stands_in_the_training_rows():
    "Made columns with heavy tails; each case asks a few rows for each column alone."
    for seed in seeds(SIZE//20):
        try: against_training_values(np.random.default_rng(seed))
        except AssertionError as e: raise AssertionError(f'SOAK_SEED={seed} SOAK_SIZE=1') from e
