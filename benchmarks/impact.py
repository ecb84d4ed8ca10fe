"""Does an interval of 95% of an adverse impact ratio hold the truth 95 times in 100? Three intervals, simulated.

    OMP_NUM_THREADS=1 python benchmarks/impact.py [--draws 4000] [--resamples 499] [--out FILE]

Two groups of given sizes and shares are drawn --draws times; the ratio of what was counted gets an interval three ways:

score      that of the package, by Miettinen and Nurminen
log        SciPy's `relative_risk`, by the logarithm of the ratio
bootstrap  percentiles of --resamples draws from what was counted, as ratios of ways have

A line is a pair of shares; `score`, `log` and `bootstrap` are the parts of the draws whose interval holds the true ratio. An
interval without ends holds nothing, but a draw in which nobody of either group is accepted has no ratio, and is left out.
In lines with four groups all shares are alike; the first group is compared with the best of the four, as an audit does,
where it is not the best itself.
"""
import argparse
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats.contingency import relative_risk

from gradual_cf.core import atomic
from gradual_cf.use.audit import _CONFIDENCE, _share_ratio_interval

SIZES = (10, 10), (30, 30), (30, 300), (300, 30), (300, 300)
SHARES = (.02, .1, .3, .6, .9)


@cache
def score(a, n, b, m): return _share_ratio_interval(a, n, b, m)


@cache
def log(a, n, b, m):
    if not a or not b: return np.nan, np.nan
    return tuple(relative_risk(a, n, b, m).confidence_interval(_CONFIDENCE))


@cache
def bootstrap(a, n, b, m, resamples):
    rng = np.random.default_rng([a, n, b, m])
    with np.errstate(divide='ignore', invalid='ignore'):
        ratios = rng.binomial(n, a/n, resamples)/n/(rng.binomial(m, b/m, resamples)/m)
    return tuple(np.nanquantile(ratios, [(1 - _CONFIDENCE)/2, (1 + _CONFIDENCE)/2], method='inverted_cdf'))


def held(counts, n, m, ratio, resamples):
    "How often each interval holds a ratio, over pairs of counts."
    pairs, times = np.unique(counts[(counts > 0).any(1)], axis=0, return_counts=True)
    ends = {name: [f(a, n, b, m) for a, b in pairs.tolist()] for name, f in (
        ('score', score), ('log', log), ('bootstrap', lambda *c: bootstrap(*c, resamples)))}
    holds = {name: np.array([low <= ratio <= high for low, high in v]) for name, v in ends.items()}
    return {name: (v*times).sum()/times.sum() for name, v in holds.items()}


def lines(draws, resamples):
    "A line for each pair of shares and each pair of sizes."
    for n, m in SIZES:
        for p in SHARES:
            for q in SHARES:
                rng = np.random.default_rng([n, m, int(100*p), int(100*q)])
                counts = np.stack([rng.binomial(n, p, draws), rng.binomial(m, q, draws)], 1)
                yield dict(groups=2, rows=n, others=m, share=p, others_share=q) | held(counts, n, m, p/q, resamples)
    for n in (30, 300):
        for p in SHARES:
            four = np.random.default_rng([n, int(100*p)]).binomial(n, p, (draws, 4))
            counts = np.stack([four[:, 0], four.max(1)], 1)[four[:, 0] < four.max(1)]
            yield dict(groups=4, rows=n, others=n, share=p, others_share=p) | held(counts, n, n, 1., resamples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--draws', type=int, default=4000)
    parser.add_argument('--resamples', type=int, default=499)
    parser.add_argument('--out', type=Path, default=Path(__file__).parent/'results/impact.csv')
    a = parser.parse_args()
    table = pd.DataFrame(lines(a.draws, a.resamples))
    print(table.groupby(['groups', 'rows', 'others'])[['score', 'log', 'bootstrap']].agg(['mean', 'min']).round(3).to_string())
    with atomic(a.out) as tmp: table.round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
