"The two engines against each other: SOAK_SIZE rows of made tables, a tenth; SOAK_SEED asks one table again."
import pytest
from size import SIZE, seeds
from test_compiled import MAKES, asked, built

ROWS = 12


@built
@pytest.mark.parametrize('make', MAKES)
def test_both_engines_prove_the_same(make, monkeypatch):
    tables = seeds(SIZE//(9*ROWS*len(MAKES)))
    proven = sum(asked(monkeypatch, make, seed, ROWS) for seed in tables)
    assert proven >= .8*ROWS*len(tables)
