"""Chains of decisions, a tenth of SOAK_SIZE, and decisions about questions of any levels, a thousandth; SOAK_SEED asks one again."""
from questions import ASKS
from size import SIZE, seeds
from test_evidence import chain_holds, evidence_of_anything


def test_chains_hold():
    "One in twenty is also broken in every way that is known."
    for i, seed in enumerate(seeds(SIZE//10)): chain_holds(seed, breaking=not i % 20)


def test_decisions_about_anything_hold():
    for i, seed in enumerate(seeds(SIZE//1000)): evidence_of_anything(seed, [a for a in ASKS if a in ('as usual', 'columns', 'distance', 'cost')][i % 4])
