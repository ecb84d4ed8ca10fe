"""Decisions about questions of any levels, a thousandth of SOAK_SIZE; SOAK_SEED asks one again."""
from questions import ASKS
from size import SIZE, seeds
from test_evidence import evidence_of_anything


def test_decisions_about_anything_hold():
    for i, seed in enumerate(seeds(SIZE//1000)): evidence_of_anything(seed, [a for a in ASKS if a in ('as usual', 'columns', 'distance', 'cost')][i % 4])
