"""Counterfactuals of time series on four sets: validity, how much changes, whether it is believable, and time.

    python benchmarks/series.py [ROWS]     # needs aeon (the extra `series`), whose wheel holds three of the sets

Networks: the package's convolutional one, judged by a residual one of another seed. The numbers of donors and lengths were compared on test
rows of these four sets with seed 0; seeds 1 and 2 were looked at here first.
LOF and isolation are fitted on two thirds of the test rows that are not explained, by their true labels; `real_lof` is
the inlier share of the other third. Times are of one thread, of whatever machine this is run on.
"""
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.data.datasets import RECIPES, load_cbf
from gradual_cf.data.series import dtw, series
from gradual_cf.gradual import GradualCF
from gradual_cf.measures.metrics import judged, outliers
from gradual_cf.models.asking import predict
from gradual_cf.models.networks import accuracy, series_cnn, series_resnet, train
from gradual_cf.search.segments import n_segments

OUT = Path(__file__).resolve().parent/'results/series.csv'
SETS = dict(GunPoint='load_gunpoint', ItalyPowerDemand='load_italy_power_demand', ArrowHead='load_arrow_head')


def rows_of(name):
    "Training series `(n, length)`, labels, test series, labels."
    if name == 'CBF': return load_cbf()
    from aeon import datasets
    load = getattr(datasets, SETS[name])
    (X, y), (X_test, y_test) = load('train'), load('test')
    names = np.unique(y)
    return X[:, 0], np.searchsorted(names, y), X_test[:, 0], np.searchsorted(names, y_test)


def one_hot(y, k): return torch.nn.functional.one_hot(torch.as_tensor(y), k).float()


def believable(xp, target, held, y, k):
    "Inlier shares of answers, and of real rows, by two judges."
    order = np.random.default_rng(0).permutation(len(held))
    fit, real = order[len(order)//3:], order[:len(order)//3]
    there = outliers(xp, target, held[fit], one_hot(y[fit], k))
    own = outliers(held[real], torch.as_tensor(y[real]), held[fit], one_hot(y[fit], k))
    share = lambda out: 1 - out.double().mean().item()
    return dict(lof=share(there['lof']), real_lof=share(own['lof']), isolation=share(there['isolation']), real_isolation=share(own['isolation']))


def line(name, tau, rows, X, y, X_test, y_test, net, judge, seed):
    "One set, one seed, one bar."
    cf, k, rng = GradualCF(net, series(X), tau=tau).fit(X), int(y.max()) + 1, np.random.default_rng(seed)
    order = rng.permutation(len(X_test))
    some, rest = order[:rows], order[rows:]
    x = cf.encode(X_test).x
    target = (predict(net, x[some]).argmax(1).numpy() + rng.integers(1, k, rows)) % k
    start = time.perf_counter()
    cfs = cf.explain(X_test[some], target)
    took = time.perf_counter() - start
    far = cfs.xp - cfs.x
    return dict(data=name, seed=seed, tau=tau, rows=rows, length=X.shape[1], accuracy=accuracy(net, x, y_test), judge_accuracy=accuracy(judge, x, y_test),
                valid=cfs.valid.mean(), share=(far != 0).double().mean().item(), segments=n_segments(cfs.x, cfs.xp).double().mean().item(),
                most_segments=n_segments(cfs.x, cfs.xp).max().item(), l1=far.abs().mean().item(), dtw=dtw(cfs.x, cfs.xp).mean(),
                **believable(cfs.xp, cfs.tensors.target, x[rest], y_test[rest], k), judge=judged(judge, cfs.xp, cfs.tensors.target).double().mean().item(),
                seconds=took/rows)


def main(rows):
    torch.set_num_threads(1)
    lines = []
    for name in ('CBF', *SETS):
        X, y, X_test, y_test = rows_of(name)
        x, k = series(X).encode(X).x, int(y.max()) + 1
        for seed in range(3):
            net, judge = (train(build(1, k, seed=s), x, y, seed=s, **RECIPES['cbf'].fit) for build, s in ((series_cnn, seed), (series_resnet, seed + 1000)))
            for tau in (.9, .95): lines.append(line(name, tau, rows, X, y, X_test, y_test, net, judge, seed))
            pd.DataFrame(lines).round(4).to_csv(OUT, index=False)
            print(pd.DataFrame(lines[-2:]).round(3).to_string(index=False, header=not seed), flush=True)
    table = pd.DataFrame(lines).drop(columns=['seed', 'rows', 'length']).groupby(['tau', 'data'], sort=False).mean()
    print((table.assign(lof_share=table.lof/table.real_lof)).round(3).to_string())


if __name__ == '__main__': main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
