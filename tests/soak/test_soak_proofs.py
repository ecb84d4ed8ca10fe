"""Questions of any levels against asking every legal row (`questions.py`): SOAK_SIZE of them, a hundredth; SOAK_SEED asks one again."""
import pytest
from questions import ASKS, anything, check
from size import SIZE, seeds
from test_proofs import pytestmark  # noqa: F401


@pytest.mark.parametrize('ask', ASKS)
def test_what_is_claimed_is_true(ask):
    for seed in seeds(SIZE//(100*len(ASKS))): check(seed, **anything(seed, ask))
