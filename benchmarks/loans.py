"""The loan table: the paper's row, the paper's setting and the default on HELOC and UCI Credit, over training seeds.

    python benchmarks/loans.py [--rows 1000] [--seeds 3] [--out benchmarks/results/loans.csv]

Needs GRADUAL_CF_DATA. `finer, no margin` bounds what a single legal change can reach: four times the grid, and a kept value may sit on the boundary itself.
`fractions allowed` is the default with every integer column treated as a number: what the legality of whole numbers costs.
`floor` is the L2 of the nearest single legal change there is, found by trying a thousand values of every column, with no margin: no search that changes one feature can be below it (rows without one are left out).
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PAPER, GradualCF, evaluate, load_task, tabular
from gradual_cf.core import atomic, predict

PRINTED = pd.DataFrame([('heloc', 'paper, as printed', 1.05, .39, 1.40, .708), ('uci_credit', 'paper, as printed', 1.01, .33, 1.29, .81)],
                       columns=['data', 'setting', 'l1', 'l2', 'coherence@8', 'accuracy'])


def settings(task):
    "Name -> (domain, explainer settings, rows as floats?)."
    whole = task.X.astype(float)
    return {'paper mode': (task.domain, PAPER, False), 'default': (task.domain, {}, False),
            'finer, no margin': (tabular(task.X, grid=41), dict(margin=0.), False), 'fractions allowed': (tabular(whole), {}, True)}


def floor(task, df, values=1001, rows=50):
    "Mean L2 of the nearest single legal change that decides otherwise, by exhaustion over the columns."
    x = task.domain.encode(df).x.float()
    groups = task.domain.groups(x.shape[1:])
    own,best = predict(task.model, x).argmax(1), torch.full((len(x),), torch.inf, dtype=x.dtype)
    for at in [(groups == g).nonzero()[:, 0] for g in groups.unique()]:
        tries = (torch.linspace(0, 1, values)[:, None] if len(at) == 1 else torch.eye(len(at))).to(x)
        for i in torch.arange(len(x)).split(rows):
            old = x[i].repeat_interleave(len(tries), 0)
            new = old.index_copy(1, at, task.domain.project(old.index_copy(1, at, tries.repeat(len(i), 1)), old)[:, at])  # the others stay, special codes too
            other = predict(task.model, new).argmax(1) != own[i].repeat_interleave(len(tries))
            best[i] = torch.minimum(best[i], (new - old).norm(dim=1).masked_fill(~other, torch.inf).view(len(i), -1).amin(1))
    return best[best < torch.inf].mean().item()


def line(task, name, domain, hyper, as_float, rows, seed):
    "Evaluate one setting on one task."
    pick = np.random.default_rng(seed).permutation(len(task.X_test))[:rows]
    cast = (lambda df: df.astype(float)) if as_float else (lambda df: df)
    t = evaluate(GradualCF(task.model, domain, **hyper).fit(cast(task.X)), cast(task.X_test.iloc[pick]), judge=task.judge, seed=seed)
    v = t[t.metric != 'coherence'].set_index('metric')
    c = t[t.metric == 'coherence'].set_index('eps')
    return dict(data=task.name, setting=name, seed=seed, rows=rows, accuracy=task.accuracy(), **v['mean'].to_dict(), l1_std=v.loc['l1', 'std'],
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
            least = floor(task, task.X_test.iloc[np.random.default_rng(seed).permutation(len(task.X_test))[:a.rows]])
            lines += [line(task, name, *how, a.rows, seed) | dict(floor=least) for name,how in settings(task).items()]
            print(pd.DataFrame(lines[-4:]).set_index('setting')[['accuracy', 'valid', 'l1', 'l2', 'floor', 'coherence@8', 'share@8', 'legal', 'in_range', 'logit_gap', 'judge', 'seconds_per_row']].round(4).to_string(), flush=True)
    df = pd.DataFrame(lines).assign(torch=torch.__version__)
    with atomic(a.out) as tmp: df.round(5).to_csv(tmp, index=False)
    shown = ['accuracy', 'valid', 'l1', 'l2', 'floor', 'coherence@8', 'coherence@12', 'coherence@all', 'legal', 'in_range', 'logit_gap', 'judge', 'seconds_per_row']
    print(pd.concat([PRINTED, df]).groupby(['data', 'setting'], sort=False)[shown].mean().round(4).to_string())


if __name__ == '__main__': main()
