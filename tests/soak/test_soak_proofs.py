"""Questions of any levels against asking every legal row (`questions.py`): SOAK_SIZE of them, a hundredth; SOAK_SEED asks one again."""
import os

import numpy as np
import pytest
from questions import ASKS, anything, check
from test_proofs import pytestmark  # noqa: F401

SIZE = int(os.environ.get('SOAK_SIZE', 400))


@pytest.mark.parametrize('ask', ASKS)
def test_what_is_claimed_is_true(ask):
    start = int(os.environ.get('SOAK_SEED', np.random.SeedSequence().generate_state(1)[0]))
    for seed in range(start, start + max(SIZE//(100*len(ASKS)), 1)): check(seed, **anything(seed, ask))
