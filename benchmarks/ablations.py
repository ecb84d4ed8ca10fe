"""Every ablation on the paper's data: HELOC, UCI Credit and MNIST in the paper's setting, IMDB where its network is at hand.

    GRADUAL_CF_DATA=... python benchmarks/ablations.py [--rows 100] [--sigma 100] [--only heloc ...] [--default] [--out FILE]

--default applies each line to the default instead of the paper's setting; the committed run is --rows 60 --only heloc
--out benchmarks/results/ablations.csv. A block size or ranking that a kind of data cannot be asked is left out.
"""
import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd

from gradual_cf.core import atomic
from gradual_cf.gradual import PAPER, preset
from gradual_cf.paper.reproduce import ablate
from gradual_cf.data.datasets import load_task

SHOWN = ['axis', 'value', 'valid', 'l1', 'l2', 'coherence@8', 'blocks', 'words', 'logit_gap', 'out_of_range', 'judge', 'seconds_per_row']


def paper(task, sigma):
    "The paper's setting with fewer steps, at the threshold of the data; pictures stay in their bounds."
    tau = preset(task.domain).tau
    return replace(PAPER, sigma=sigma, tau=tau, legal=task.domain.kind == 'image')


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=100)
    a.add_argument('--sigma', type=int, default=100)
    a.add_argument('--only', nargs='*', default=['heloc', 'uci_credit', 'mnist'])
    a.add_argument('--axes', nargs='*')
    a.add_argument('--default', action='store_true')
    a.add_argument('--out', type=Path)
    return a.parse_args()


def main():
    a, tables = arguments(), []
    for name in a.only:
        task = load_task(name)
        base = None if a.default else paper(task, a.sigma)
        table = ablate(task, a.rows, axes=a.axes, base=base).assign(base='default' if a.default else f'paper, sigma {a.sigma}')
        print(name, table[[c for c in SHOWN if c in table]].round(3).to_string(index=False), sep='\n', flush=True)
        tables.append(table)
        if a.out:
            with atomic(a.out) as tmp: pd.concat(tables).round(5).to_csv(tmp, index=False)


if __name__ == '__main__': main()
