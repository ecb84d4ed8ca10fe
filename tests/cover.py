"""Which cases an ordinary run takes: those in which everything is met. `make soak` runs all of them (`soak/test_soak_products.py`)."""
import itertools
import os

ALL = 'SOAK_SIZE' in os.environ


def few(cases, n):
    "The first `n` cases."
    return list(cases) if ALL else list(cases)[:n]


def cover(*values, meet=1):
    "Cases in which each value of each list occurs at least once (`meet=1`), or each pair of values of two lists (`meet=2`); beyond that, the first of each list."
    cases = list(itertools.product(*values))
    if ALL: return cases
    met, taken = set(), []
    parts = lambda case: {(at, tuple(case[i] for i in at)) for at in itertools.combinations(range(len(case)), meet)}
    while fresh := max((parts(c) - met for c in cases), key=len):
        taken.append(next(c for c in cases if parts(c) - met == fresh))
        met |= fresh
    return taken
