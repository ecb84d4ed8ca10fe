"The two engines against each other: SOAK_SIZE rows of made tables, a tenth; SOAK_SEED asks one table again."
import os

import numpy as np
import pytest
from test_compiled import MAKES, asked, built

SIZE = int(os.environ.get('SOAK_SIZE', 400))
ROWS = 12


@built
@pytest.mark.parametrize('make', MAKES)
def test_both_engines_prove_the_same(make, monkeypatch):
    start = int(os.environ.get('SOAK_SEED', np.random.SeedSequence().generate_state(1)[0]))
    tables = range(start, start + max(SIZE//(9*ROWS*len(MAKES)), 1))
    proven = sum(asked(monkeypatch, make, seed, ROWS) for seed in tables)
    assert proven >= .8*ROWS*len(tables)
