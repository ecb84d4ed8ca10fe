"""The loan table: the paper's row, the paper's setting and sparse answers on HELOC and UCI Credit, over training seeds.

    python benchmarks/loans.py [--rows 1000] [--seeds 3] [--out benchmarks/results/loans.csv]

Needs GRADUAL_CF_DATA. `finer, no margin` bounds what a single legal change can reach: four times the grid, and a
kept value may sit on the boundary itself. `fractions allowed` is `sparse` with every integer column treated as a
number: what the legality of whole numbers costs. `floor` is the L2 of the nearest single legal change there is, found
by trying a thousand values of every column, with no margin: no search that changes one feature can be below it (rows
without one are left out).
"""
import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PAPER, SPARSE, GradualCF, evaluate, load_task, predict, tabular
from gradual_cf.search.composition import admissible
from gradual_cf.core import Encoded, atomic

PRINTED = pd.DataFrame([('heloc', 'paper, as printed', 1.05, .39, 1.40, .708),
                        ('uci_credit', 'paper, as printed', 1.01, .33, 1.29, .81)],
                       columns=['data', 'setting', 'l1', 'l2', 'coherence@8', 'accuracy'])
SHOWN = ['accuracy', 'valid', 'l1', 'l2', 'floor', 'coherence@8', 'coherence@12', 'coherence@all', 'legal', 'in_range',
         'logit_gap', 'judge', 'seconds_per_row']


def settings(task):
    "Name -> (domain, explainer settings, rows as floats?)."
    whole = task.X.astype(float)
    return {'paper mode': (task.domain, PAPER, False), 'sparse': (task.domain, SPARSE, False),
            'finer, no margin': (tabular(task.X, read=dict(grid=41)), replace(SPARSE, tau_slack=0.), False),
            'fractions allowed': (tabular(whole), SPARSE, True)}


def nearest_change(task, enc, at, tries):
    "Distance to the nearest row with another value in one column that decides otherwise, `(n,)`; inf for none."
    n,q = len(enc.x), len(tries)
    many = enc.take(torch.arange(n).repeat_interleave(q))
    old = many.x
    tried = admissible(many, old.index_copy(1, at, tries.repeat(n, 1)), task.domain.project)
    new = old.index_copy(1, at, tried[:, at])  # the other columns stay, special codes too
    same = predict(task.model, new).argmax(1) == predict(task.model, enc.x).argmax(1).repeat_interleave(q)
    return (new - old).norm(dim=1).masked_fill(same, torch.inf).view(n, q).amin(1)


def floor(task, df, values=1001, rows=50):
    "Mean L2 of the nearest single legal change that decides otherwise, by exhaustion over the columns."
    enc = task.domain.encode(df)
    enc = Encoded(enc.x.float(), enc.frozen, enc.low.float(), enc.high.float())
    groups,best = task.domain.groups(enc.x.shape[1:]), torch.full((len(df),), torch.inf)
    for at in [(groups == g).nonzero()[:, 0] for g in groups.unique()]:
        tries = torch.linspace(0, 1, values)[:, None] if len(at) == 1 else torch.eye(len(at))
        for i in torch.arange(len(df)).split(rows):
            best[i] = torch.minimum(best[i], nearest_change(task, enc.take(i), at, tries))
    return best[best < torch.inf].mean().item()


def line(task, name, domain, chosen, as_float, rows, seed):
    "Evaluate one setting on one task."
    pick = np.random.default_rng(seed).permutation(len(task.X_test))[:rows]
    cast = (lambda df: df.astype(float)) if as_float else (lambda df: df)
    cf = GradualCF(task.model, domain, chosen).fit(cast(task.X))
    t = evaluate(cf.under(seed=seed), cast(task.X_test.iloc[pick]), judge=task.judge)
    v = t[t.metric != 'coherence'].set_index('metric')
    c = t[t.metric == 'coherence'].set_index('eps')
    means = v['mean'].to_dict() | dict(l1_std=v.loc['l1', 'std'])
    return dict(data=task.name, setting=name, seed=seed, rows=rows, accuracy=task.accuracy(), **means,
                **{f'coherence@{e}': m for e,m in c['mean'].items()}, **{f'share@{e}': m for e,m in c['share'].items()})


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--rows', type=int, default=1000)
    a.add_argument('--seeds', type=int, default=3)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/loans.csv'))
    a = a.parse_args()
    lines = []
    for data in ('heloc', 'uci_credit'):
        for seed in range(a.seeds):
            task = load_task(data, seed=seed, progress=sys.stderr.isatty())
            pick = np.random.default_rng(seed).permutation(len(task.X_test))[:a.rows]
            least = floor(task, task.X_test.iloc[pick])
            lines += [line(task, name, *how, a.rows, seed) | dict(floor=least) for name,how in settings(task).items()]
            print(pd.DataFrame(lines[-4:]).set_index('setting')[SHOWN + ['share@8']].round(4).to_string(), flush=True)
    df = pd.DataFrame(lines).assign(torch=torch.__version__)
    with atomic(a.out) as tmp: df.round(5).to_csv(tmp, index=False)
    print(pd.concat([PRINTED, df]).groupby(['data', 'setting'], sort=False)[SHOWN].mean().round(4).to_string())


if __name__ == '__main__': main()
