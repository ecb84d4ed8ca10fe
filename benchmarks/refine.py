"""What refining brings over results as found: HELOC and UCI Credit in both settings, MNIST digits to random other classes.

    GRADUAL_CF_DATA=... python benchmarks/refine.py [--rows 300] [--digits 100] [--out benchmarks/results/refine.csv]

Judge is an independent network. `restore` puts changed groups back, `bisect` pulls values back, `refine` does both until neither helps. Seconds are for the step alone, a row.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PAPER, GradualCF, load_task
from gradual_cf.core import atomic, changed_groups, predict, take_rows
from gradual_cf.refine import bisect, refine, restore

WAYS = {'as found': lambda e, c: c, 'restore': restore, 'restore, smallest first': lambda e, c: restore(e, c, 'smallest'), 'bisect': bisect, 'refine': refine}
SETTINGS = dict(heloc={'default': {}, 'default, τ=.9': dict(tau=.9), 'gain, once ranked': dict(rank='gradient', sigma=50), 'paper': PAPER},
                uci_credit={'default': {}, 'paper': PAPER}, mnist={'default': {}, 'paper in bounds': PAPER | dict(sigma=100, legal=True)})


def line(task, explainer, cfs, took, **more):
    "Measure one batch of answers."
    mean = lambda v: torch.as_tensor(v).double().mean().item()
    groups = changed_groups(cfs.x, cfs.xp, cfs.domain.groups(cfs.x.shape[1:])).sum(1)
    legal = cfs.domain.legal(cfs.data, cfs.raw).all(1)
    gap = (predict(task.model, cfs.xp) - explainer.stats.mu[cfs.target]).abs().mean(1)
    return more | dict(valid=mean(cfs.valid), groups=mean(groups), l2=mean((cfs.xp - cfs.x).flatten(1).norm(dim=1)), legal=mean(legal), logit_gap=mean(gap),
                       judge=mean(predict(task.judge, cfs.xp).argmax(1) == cfs.target), seconds_per_row=took/len(cfs))


def run(name, rows, seed=0):
    "Explain random test rows in every setting and refine in every way."
    task,rng = load_task(name), np.random.default_rng(seed)
    some = take_rows(task.X_test, np.sort(rng.permutation(len(task.X_test))[:rows]))
    for setting,hyper in SETTINGS[name].items():
        e = GradualCF(task.model, task.domain, **hyper).fit(task.X)
        z = predict(task.model, e.encode(some).x)
        target = None if z.shape[1] == 2 else (z.argmax(1).numpy() + rng.integers(1, z.shape[1], len(z))) % z.shape[1]
        cfs = e.explain(some, target, seed)
        for way,f in WAYS.items():
            start = time.perf_counter()
            after = f(e, cfs)
            yield line(task, e, after, time.perf_counter() - start, data=name, setting=setting, way=way, rows=len(cfs))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=300); a.add_argument('--digits', type=int, default=100); a.add_argument('--out', type=Path)
    a = a.parse_args()
    lines = []
    for name in SETTINGS:
        lines += run(name, a.digits if name == 'mnist' else a.rows)
        print(pd.DataFrame([l for l in lines if l['data'] == name]).round(4).to_string(index=False), flush=True)
    if a.out:
        with atomic(a.out) as tmp: pd.DataFrame(lines).round(5).to_csv(tmp, index=False)


if __name__ == '__main__': main()
