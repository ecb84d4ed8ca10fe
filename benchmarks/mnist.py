"""Digits, each to a random other class: what the network, an independent judge and an RBF-SVM say, and what it cost.

    python benchmarks/mnist.py --rows 500 --json mnist.json            # quick networks (12,000 training rows each)
    python benchmarks/mnist.py --rows 500 --full --seeds 0 1 2 --json FILE  # networks on half of the training rows each; goes on where it stopped
    python benchmarks/mnist.py --data digits --block 2 --seeds 0 1 2 3 --json mnist_embedded.json # the 8×8 digits, in a minute
    python benchmarks/mnist.py --model net.safetensors --judge judge.safetensors --only default
    python benchmarks/mnist.py --speed --json FILE                     # ratios of time: an inner step, 64 images at once
    python benchmarks/mnist.py --train-all                             # the paper's network on all 60,000 rows
"""
import argparse
import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from clock import cpu

from gradual_cf.search.composition import compose
from gradual_cf.core import atomic, changed_groups
from gradual_cf.models.asking import predict
from gradual_cf.gradual import IMAGE, PAPER, GradualCF, without_images
from gradual_cf.models.networks import accuracy, digit_cnn, load_model, train
from gradual_cf.data.datasets import RECIPES, load_task

_BEFORE = dict(n_prototypes=1, lr=.1, prototype_weight=.3) # One start and large steps
MNIST_PAPER = replace(PAPER, sigma=1000, tau=.9, batch_size=64)
SETTINGS = dict(
    default=IMAGE,
    one_start=replace(IMAGE, n_prototypes=1),
    before=replace(IMAGE, **_BEFORE),
    fifth=replace(IMAGE, quantile=.2, **_BEFORE),
    median_stop=replace(IMAGE, quantile=.5),
    paste_only=replace(IMAGE, sigma=0),
    paste_one_start=replace(IMAGE, sigma=0, n_prototypes=1),
    without_images=without_images(),
    without_images_before=replace(without_images(), lam=.1, eta=.05, quantile=.1, logit_margin=.25, moves=()),
    no_stop_rule=replace(IMAGE, quantile=None),
    paper=MNIST_PAPER,
    paper_in_bounds=replace(MNIST_PAPER, legal=True))


@cache
def svm_of(data, rows=10_000):
    "An RBF-SVM on the pixels of the last training rows, at most half: the network has not seen them, where there are such rows."
    from sklearn.svm import SVC
    from gradual_cf.data.images import pixels
    ds = RECIPES[data].load(None, 0)[0]
    ds = ds.select(range(len(ds) - min(rows, len(ds)//2), len(ds)))
    return SVC(C=10, gamma='scale').fit(pixels(ds).flatten(1).numpy()/255, np.array(ds['label']))


def row(name, settings, task, judge, svm, x, target):
    "Explain and measure with one setting."
    cf = GradualCF(task.model, task.domain, settings).fit(task.X)
    start = time.perf_counter()
    cfs = cf.explain(x, target)
    took = time.perf_counter() - start
    t,xp = cfs.tensors.target, cfs.xp
    mean = lambda v: round(torch.as_tensor(v).double().mean().item(), 4)
    blocks = changed_groups(cfs.x, xp, task.domain.groups(xp.shape[1:])).sum(1)
    by_svm = svm.predict(xp.flatten(1).numpy())
    gap = (predict(task.model, xp) - cf.stats.mu[t]).abs().mean(1).median().item()
    return dict(setting=name, rows=len(x), valid=mean(cfs.valid), judge=mean(predict(judge, xp).argmax(1) == t), svm=mean(by_svm == t.numpy()),
                blocks=mean(blocks), L2=mean((xp - cfs.x).flatten(1).norm(dim=1)), gap=round(gap, 3), seconds=round(took/len(x), 3),
                in_bounds=bool(((xp >= 0) & (xp <= 1)).all()), untouched=bool((xp == cfs.x)[~cfs.mask].all()))


def asked(task, rows, seed):
    "Random test rows, each with a random other class than the network's."
    rng = np.random.default_rng(seed)
    x = np.array(task.X_test[np.sort(rng.permutation(len(task.X_test))[:rows])])
    pred = predict(task.model, task.domain.encode(x).x).argmax(1).numpy()
    return x, (pred + rng.integers(1, 10, rows)) % 10


class Lines:
    "What was measured so far: a file that is read, and written after each line. Lines of other rows or networks go."
    def __init__(self, path, about):
        self.path,self.about,old = path,about,{}
        if path and Path(path).is_file(): old = json.loads(Path(path).read_text())
        same = all(old.get(k) == v for k,v in about.items())
        self.networks,self.lines = (old['networks'], old['settings']) if same else ([], [])
        self.before = {k: old[k] for k in ('before',) if k in old}

    def network(self, about):
        "Say which networks a seed has; lines of others with that seed go."
        if about in self.networks: return
        self.networks = [n for n in self.networks if n['seed'] != about['seed']] + [about]
        self.lines = [l for l in self.lines if l['seed'] != about['seed']]

    def has(self, name, seed): return any(l['setting'] == name and l['seed'] == seed for l in self.lines)

    def add(self, line):
        self.lines.append(line)
        print(line, flush=True)
        if not self.path: return
        with atomic(self.path) as f:
            f.write_text(json.dumps(self.about | dict(networks=self.networks, settings=self.lines) | self.before, indent=1))


BATCHES = 64, 250  # images that are explained at once


def speed(task, alone=40, rounds=1):
    "An inner step against the raw pass at batch 64; images one by one against some at once, for answers and for the raw pass, in CPU time."
    rows, target = np.array(task.X_test[:max(BATCHES)]), (task.y_test[:max(BATCHES)] + 1) % 10
    cfs = {n: GradualCF(task.model, task.domain, 'sparse', batch_size=n).fit(task.X) for n in (1, *BATCHES)}
    enc = cfs[64].encode(rows[:64])
    x, groups, cf = enc.x, cfs[64].groups(enc.x), cfs[64]
    start = cf.start(enc, torch.zeros(64, dtype=torch.long))
    start.on[:, groups[0, 8:16, 8:16].unique()] = True
    def raw(x):
        xp = x.clone().requires_grad_()
        torch.autograd.grad(task.model(xp).sum(), xp)
    steps = lambda: compose(task.model, start, groups, cf.loss, sigma=20, lr=.1, project=cf.project, keep='last')  # 21 passes
    ratio = lambda f, g, n: round(float(np.median([cpu(f)/cpu(g) for _ in range(n)])), 2)
    one_by_one = [cpu(lambda: cfs[1].explain(rows[:alone], target[:alone]))/alone for _ in range(rounds)]  # a batch is one image
    out = dict(threads=torch.get_num_threads(), digit_alone_ms=round(1000*float(np.median(one_by_one)), 1),
               step_over_raw=ratio(steps, lambda: [raw(x) for _ in range(21)], 9))
    every = cfs[64].encode(rows).x
    for n in BATCHES:
        together = np.median([cpu(lambda: cfs[n].explain(rows[:n], target[:n]))/n for _ in range(rounds)])
        some = every[:n]
        out |= {f'one_by_one_over_{n}': round(float(np.median(one_by_one)/together), 2),
                f'raw_one_by_one_over_{n}': ratio(lambda: [raw(v) for v in some.split(1)], lambda: raw(some), 7)}
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name,value in dict(rows=100, block=4).items(): p.add_argument(f'--{name}', type=int, default=value)
    p.add_argument('--data', choices=['mnist', 'digits'], default='mnist')
    p.add_argument('--seeds', type=int, nargs='+', default=[0], help='of the digits, the targets and both networks')
    for name in ('json', 'model', 'judge'): p.add_argument(f'--{name}')
    for name in ('full', 'speed', 'train-all'): p.add_argument(f'--{name}', action='store_true')
    p.add_argument('--only', nargs='*', choices=SETTINGS, default=list(SETTINGS))
    a = p.parse_args()
    lines = Lines(None if a.speed else a.json, dict(rows=a.rows, block=a.block, full=a.full) | _named(a.data))
    for seed in a.seeds: run(a, seed, lines)
    if lines.lines: print(pd.DataFrame(lines.lines).groupby('setting', sort=False).mean(numeric_only=True).round(4).to_string())


def _named(data): return {} if data == 'mnist' else dict(data=data) # What a file says of its data; MNIST's say nothing


def run(a, seed, lines):
    "All settings with the networks and digits of one seed; or speed, or the network on all rows."
    task = load_task(a.data, seed=seed, model=a.model, full=a.full, block=a.block)
    judge = load_model(a.judge) if a.judge else task.judge
    test = lambda m: accuracy(m, task.domain.encode(np.array(task.X_test)).x, torch.tensor(task.y_test))
    about = dict(seed=seed, network=test(task.model), judge=test(judge))
    print(about, flush=True)
    if a.train_all:
        from gradual_cf.data.images import load_mnist, pixels
        ds = load_mnist()[0]
        net = train(digit_cnn(seed=seed), pixels(ds)/255, torch.tensor(ds['label']), epochs=10, batch_size=128, patience=3)
        return print('network on all rows', test(net))
    if a.speed:
        about |= speed(task)
        if a.json:
            with atomic(a.json) as f: f.write_text(json.dumps(about, indent=1))
        return print(json.dumps(about))
    lines.network(about)
    x,target = asked(task, a.rows, seed)
    for name in [n for n in a.only if not lines.has(n, seed)]:
        svm = svm_of(a.data)
        lines.add(dict(seed=seed) | row(name, SETTINGS[name], task, judge, svm, x, target))


if __name__ == '__main__': main()
