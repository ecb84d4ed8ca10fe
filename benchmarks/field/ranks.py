"""Ranks of the methods over tables and models, and pictures of which ranks differ.

    python -m benchmarks.field.ranks [--out benchmarks/results]

A block is a model of a table. A method that found no answer for 95% of its rows, or whose answers were not legal in 95%, shares the
last rank of the block. Friedman's test and Nemenyi's come from scikit-posthocs.
"""
import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from gradual_cf.core import atomic

from .wins import SENSE, cells_of, worthy

MEASURES = dict(columns='columns changed', isolation='outliers (isolation forest)', networks='agreement of other networks', ms='CPU time a row')


NEARLY, WORST, SURE = .9, 1e9, 1e-16


def blocks(df, measure):
    "Blocks × methods: the smaller the better; those that take no part are worst. Methods asked nearly everywhere, where all were."
    cells = cells_of(df[df.method != 'real rows']).set_index(['data', 'model', 'method'])
    asked = cells.found.unstack('method').notna()
    often = asked.columns[asked.sum() >= NEARLY*len(asked)]
    asked = asked[often][asked[often].all(axis=1)]
    good = worthy(cells.reset_index()).set_index(['data', 'model', 'method'])[measure]*SENSE[measure]
    return good.unstack('method').reindex(index=asked.index, columns=often).fillna(WORST)


def ranked(table):
    "Mean ranks, Friedman's p, and Nemenyi's p of each pair."
    import scikit_posthocs as posthocs
    from scipy.stats import friedmanchisquare
    p = friedmanchisquare(*table.to_numpy().T).pvalue
    return table.rank(axis=1).mean(), p, posthocs.posthoc_nemenyi_friedman(table.reset_index(drop=True))


def draw(ranks, pairs, title, ax):
    "A critical-difference diagram."
    import scikit_posthocs as posthocs
    posthocs.critical_difference_diagram(ranks, pairs, ax=ax, label_props=dict(fontsize=8), text_h_margin=.3,
                                         color_palette={m: 'C1' if m.startswith('ours') else '.3' for m in ranks.index})
    ax.set_title(title, fontsize=10)


def main():
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results'))
    a = a.parse_args()
    df, lines = pd.read_parquet(a.out/'field.parquet'), []
    fig, axs = plt.subplots(len(MEASURES), 1, figsize=(9, 3*len(MEASURES)), layout='constrained')
    for ax, (name, title) in zip(np.ravel(axs), MEASURES.items()):
        table = blocks(df, name)
        ranks, p, pairs = ranked(table)
        lines += [dict(measure=name, method=m, rank=r, blocks=len(table), friedman=p) for m, r in ranks.items()]
        said = f'p = {p:.2g}' if p > SURE else f'p < {SURE:g}'
        draw(ranks, pairs, f'{title}: mean rank over {len(table)} blocks, Friedman {said}', ax)
    with atomic(a.out/'field_ranks.png') as tmp: fig.savefig(tmp, dpi=100, format='png')
    with atomic(a.out/'field_ranks.csv') as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
