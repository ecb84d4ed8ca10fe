"""What improving brings over results as found: HELOC and UCI Credit in both settings, MNIST digits to random other classes.

    GRADUAL_CF_DATA=... python benchmarks/refine.py [--rows 300] [--digits 100] [--out benchmarks/results/refine.csv]

Judge is an independent network. `put back` puts changed groups back, `line search` moves values back, the last way
does both until neither helps. Seconds are for the step alone, a row.
"""
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from options import options

from gradual_cf.core import atomic, changed_groups, take_rows
from gradual_cf.models.asking import predict
from gradual_cf.gradual import PAPER, GradualCF
from gradual_cf.search.shorten import improve, line_search, put_back, put_back_smallest
from gradual_cf.data.datasets import load_task


def as_found(explainer, cfs): return cfs


WAYS = {
    'as found': as_found,
    'put back': partial(improve, moves=(put_back,)),
    'put back, smallest first': partial(improve, moves=(put_back_smallest,)),
    'line search': partial(improve, moves=(line_search,)),
    'both': improve}
SETTINGS = dict(
    heloc={'default': {}, 'default, τ=.9': dict(tau=.9), 'gain, once ranked': dict(masking='gradient', sigma=50), 'paper': dict(intent=PAPER)},
    uci_credit={'default': {}, 'paper': dict(intent=PAPER)},
    mnist={'default': {}, 'paper in bounds': dict(intent=replace(PAPER, sigma=100, legal=True, tau=.9))})


def line(task, explainer, cfs, took, **more):
    "Measure one batch of answers."
    def mean(v): return torch.as_tensor(v).double().mean().item()
    groups = changed_groups(cfs.x, cfs.xp, cfs.domain.groups(cfs.x.shape[1:])).sum(1)
    gap = (predict(task.model, cfs.xp) - explainer.stats.mu[cfs.target]).abs().mean(1)
    judge = predict(task.judge, cfs.xp).argmax(1) == cfs.target
    legal = cfs.domain.legal(cfs.data, cfs.raw).all(1)
    return more | dict(valid=mean(cfs.valid), groups=mean(groups), l2=mean((cfs.xp - cfs.x).flatten(1).norm(dim=1)),
                       legal=mean(legal), logit_gap=mean(gap), judge=mean(judge), seconds_per_row=took/len(cfs))


def questions(task, rows, seed):
    "Random test rows, and random other classes where there are more than two."
    rng = np.random.default_rng(seed)
    some = take_rows(task.X_test, np.sort(rng.permutation(len(task.X_test))[:rows]))
    z = predict(task.model, GradualCF(task.model, task.domain, 'sparse').encode(some).x)
    n, k = z.shape
    return some, None if k == 2 else (z.argmax(1).numpy() + rng.integers(1, k, n)) % k


def run(name, rows, seed=0):
    "Explain random test rows in every setting and improve the answers in every way."
    task = load_task(name)
    some, target = questions(task, rows, seed)
    for setting, changes in SETTINGS[name].items():
        e = GradualCF(task.model, task.domain, 'sparse', **changes).fit(task.X)
        cfs = e.under(seed=seed).explain(some, target)
        for way, f in WAYS.items():
            start = time.perf_counter()
            after = f(e, cfs)
            yield line(task, e, after, time.perf_counter() - start, data=name, setting=setting, way=way, rows=len(cfs))


def main():
    a, lines = options(__doc__, rows=300, digits=100, out=Path), []
    for name in SETTINGS:
        lines += run(name, a.digits if name == 'mnist' else a.rows)
        print(pd.DataFrame([l for l in lines if l['data'] == name]).round(4).to_string(index=False), flush=True)
    if a.out:
        with atomic(a.out) as tmp: pd.DataFrame(lines).round(5).to_csv(tmp, index=False)


if __name__ == '__main__': main()
