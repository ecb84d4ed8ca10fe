"""Table 6: every method of the paper on HELOC and UCI Credit, on the same rows of the same networks, beside the paper's numbers.

    python benchmarks/baselines.py [--rows 1000] [--seed 0] [--only heloc …] [--out benchmarks/results/baselines.csv]

Needs GRADUAL_CF_DATA. Each method runs twice: inside the data's bounds and in whole numbers (`legal`), and where its own paper lets it go (`free`). L1, L2, coherence, range and logit gap are means over the
rows that were found (a row left as it was would count as no change at all); `valid` is their share, and where it is not all, `ours_l1_there` and `ours_l2_there` are our default on the same rows. Each line is kept in `--parts` as soon as it is measured, and a second call goes on where the first one stopped; lines of
other rows, seed or versions are not read. `--out` always holds what there is so far. Remove a part after a change to its method: the code is not part of its name.
"""
import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import torch

from gradual_cf.all import PAPER, GradualCF, load_task
from gradual_cf.baselines.cem import CEM
from gradual_cf.baselines.lore import LORE
from gradual_cf.baselines.spheres import GrowingSpheres
from gradual_cf.baselines.wachter import Wachter
from gradual_cf.core import atomic, cache_dir, take_rows
from gradual_cf.metrics import l2_change, measures, n_changed
from gradual_cf.tasks import fingerprint

SYSTEMS = {'ours, default': (GradualCF, {}), 'ours, paper': (GradualCF, PAPER), 'GrowingSpheres, legal': (GrowingSpheres, {}), 'Wachter, legal': (Wachter, {}), 'CEM, legal': (CEM, {}),
           'LORE, legal': (LORE, {}), 'GrowingSpheres, free': (GrowingSpheres, dict(legal=False)), 'LORE, free': (LORE, dict(legal=False)), 'Wachter, free': (Wachter, dict(legal=False)),
           'CEM, free': (CEM, dict(legal=False)), 'Wachter at the boundary, legal': (Wachter, dict(aim=.5)), 'CEM with autoencoder, legal': (CEM, dict(autoencoder=True)),
           'GrowingSpheres to the first failure, legal': (GrowingSpheres, dict(select='first')), 'GrowingSpheres to the first failure, free': (GrowingSpheres, dict(select='first', legal=False))}

COLUMNS = ['paper_l1', 'paper_l1_std', 'paper_l2', 'paper_l2_std', 'paper_coherence', 'paper_coherence_std']
PRINTED = pd.DataFrame({
    ('heloc', 'Wachter'):          (16.25, 4.54, 4.52, .21, 2.34, 2.66), ('uci_credit', 'Wachter'):        (4.55, 5.54, .17, .09, 2.06, 2.48),
    ('heloc', 'CEM'):              (4.12, 1.89, .27, .17, 1.27, .36),    ('uci_credit', 'CEM'):            (3.12, 2.36, .20, .11, 1.94, 1.96),
    ('heloc', 'GrowingSpheres'):   (9.37, 2.60, .18, .13, 1.10, .19),    ('uci_credit', 'GrowingSpheres'): (6.83, 2.37, .12, .09, 1.48, 1.17),
    ('heloc', 'LORE'):             (1.19, .95, .68, 1.04, 6.97, 3.21),   ('uci_credit', 'LORE'):           (1.35, 1.18, .37, .39, 6.48, 13.14),
    ('heloc', 'ours'):             (1.05, .10, .39, .19, 1.40, .17),     ('uci_credit', 'ours'):           (1.01, .12, .33, .17, 1.29, .47)}, index=COLUMNS).T


def ours_there(task, cfs, seed):
    "L1 and L2 of our default on the rows that another system found: those are the easier ones."
    ours = GradualCF(task.model, task.domain).fit(task.X).explain(take_rows(cfs.data, cfs.valid), seed=seed)
    return dict(ours_l1_there=n_changed(ours.x, ours.xp).double().mean().item(), ours_l2_there=l2_change(ours.x, ours.xp).double().mean().item())


def measured(task, cls, hyper, rows, seed):
    "One line: a system on some test rows."
    pick = np.random.default_rng(seed).permutation(len(task.X_test))[:rows]
    e = cls(task.model, task.domain, **hyper).fit(task.X)
    wall, cpu = time.perf_counter(), time.process_time()
    cfs = e.explain(task.X_test.iloc[pick], seed=seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    line = dict(rows=rows, seed=seed, valid=cfs.valid.double().mean().item(), seconds_per_row=wall/rows, cpu_seconds_per_row=cpu/rows)
    if not cfs.valid.any(): return line
    m = measures(e, cfs[cfs.valid])
    v, c = m[m.metric != 'coherence'].set_index('metric'), m[m.metric == 'coherence'].set_index('eps')
    if not cfs.valid.all(): line |= ours_there(task, cfs, seed)
    line |= {k: v.loc[k, 'mean'] for k in ('l1', 'l2', 'legal', 'in_range', 'logit_gap')} | {f'{k}_std': v.loc[k, 'std'] for k in ('l1', 'l2')}
    return line | {f'coherence@{k}{"" if s == "mean" else "_" + s}': c.loc[k, s] for k in (8, 12, 'all') for s in ('mean', 'std', 'share')}


def kept(path, make):
    "The line in `path`, or a new one that is kept from now on."
    if path.is_file(): return pd.read_csv(path)
    df = pd.DataFrame([make()])
    with atomic(path) as tmp: df.to_csv(tmp, index=False)
    return df


def beside(df):
    "Put the paper's numbers and the differences beside ours; the paper does not say its ε, so coherence is compared at all three."
    ref = PRINTED.reindex(pd.MultiIndex.from_arrays([df.data, df.system.str.split(r'[ ,]').str[0]]))
    df = pd.concat([df, ref.reset_index(drop=True)], axis=1)
    for ours, theirs in (('l1', 'l1'), ('l2', 'l2'), ('coherence@8', 'coherence'), ('coherence@12', 'coherence'), ('coherence@all', 'coherence')): df[f'{ours}_difference'] = df[ours] - df[f'paper_{theirs}']
    return df


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--rows', type=int, default=1000)
    a.add_argument('--seed', type=int, default=0)
    a.add_argument('--only', nargs='*', default=['heloc', 'uci_credit'], help='data sets')
    a.add_argument('--parts', type=Path, default=cache_dir()/'benchmark-baselines')
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/baselines.csv'))
    a = a.parse_args()
    versions = dict(torch=torch.__version__, sklearn=sklearn.__version__, numpy=np.__version__, threads=torch.get_num_threads())
    tasks = {d: load_task(d, progress=sys.stderr.isatty()) for d in a.only}
    lines = []
    for name, (cls, hyper) in SYSTEMS.items():
        for data, task in tasks.items():
            path = a.parts/f'{data}-{name.replace(", ", "-").replace(" ", "_")}-{fingerprint(a.rows, a.seed, versions, hyper)}.csv'
            lines.append(kept(path, lambda: dict(data=data, system=name, **measured(task, cls, hyper, a.rows, a.seed), **versions)))
            print(lines[-1][['data', 'system', 'valid', 'l1', 'l2', 'coherence@8', 'in_range', 'cpu_seconds_per_row']].round(4).to_string(header=False, index=False), flush=True)
            df = beside(pd.concat(lines, ignore_index=True).sort_values('data', kind='stable', ignore_index=True))
            with atomic(a.out) as tmp: df.round(5).to_csv(tmp, index=False)
    shown = [c for c in ['data', 'system', 'valid', 'l1', 'paper_l1', 'ours_l1_there', 'l2', 'paper_l2', 'ours_l2_there', 'coherence@8', 'coherence@12', 'coherence@all', 'paper_coherence', 'in_range', 'logit_gap', 'cpu_seconds_per_row'] if c in df]
    print(f'\n{a.rows} rows, seed {a.seed}, {versions}\n{df[shown].round(3).to_string(index=False)}')


if __name__ == '__main__': main()
