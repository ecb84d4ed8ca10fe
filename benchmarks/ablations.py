"""Every ablation on the paper's data: HELOC, UCI Credit and MNIST in the paper's setting, IMDB where its network is at hand.

    GRADUAL_CF_DATA=... python benchmarks/ablations.py [--rows 100] [--sigma 100] [--only heloc ...] [--default] [--out benchmarks/results/ablations.csv]

--default applies each line to the default instead of the paper's setting. A block size or ranking that a kind of data cannot be asked is left out.
"""
import argparse
from pathlib import Path

import pandas as pd

from gradual_cf.ablations import ablate
from gradual_cf.core import atomic
from gradual_cf.gradual import PAPER

SHOWN = ['axis', 'value', 'valid', 'l1', 'l2', 'coherence@8', 'blocks', 'words', 'logit_gap', 'out_of_range', 'judge', 'seconds_per_row']


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=100); a.add_argument('--sigma', type=int, default=100); a.add_argument('--only', nargs='*', default=['heloc', 'uci_credit', 'mnist'])
    a.add_argument('--axes', nargs='*'); a.add_argument('--default', action='store_true'); a.add_argument('--out', type=Path)
    a = a.parse_args()
    tables = []
    for name in a.only:
        base = {} if a.default else PAPER | dict(sigma=a.sigma) | (dict(legal=True) if name == 'mnist' else {})
        tables.append(ablate(name, a.axes, base, a.rows).assign(base='default' if a.default else f'paper, sigma {a.sigma}'))
        print(name, tables[-1][[c for c in SHOWN if c in tables[-1]]].round(3).to_string(index=False), sep='\n', flush=True)
        if a.out:
            with atomic(a.out) as tmp: pd.concat(tables).round(5).to_csv(tmp, index=False)


if __name__ == '__main__': main()
