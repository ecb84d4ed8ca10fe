"""MNIST digits, each to a random other class: what the network, an independent judge and an RBF-SVM say, and what it cost.

    python benchmarks/mnist.py --rows 500 --json mnist.json            # quick networks (12,000 training rows each)
    python benchmarks/mnist.py --rows 500 --full                       # networks on half of the training rows each
    python benchmarks/mnist.py --model net.safetensors --judge judge.safetensors --only default
    python benchmarks/mnist.py --speed --json FILE                     # ratios of time: an inner step, 64 images at once
    python benchmarks/mnist.py --train-all                             # the paper's network on all 60,000 rows
"""
import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.composition import compose
from gradual_cf.core import atomic, changed_groups
from gradual_cf.explainer import predict
from gradual_cf.gradual import IMAGE, PAPER, GradualCF
from gradual_cf.images import without_images
from gradual_cf.losses import logit_gap
from gradual_cf.models import accuracy, digit_cnn, load_model, train
from gradual_cf.tasks import load_task

MNIST_PAPER = replace(PAPER, sigma=1000, tau=.9, batch_size=64)
SETTINGS = dict(
    default=IMAGE,
    median_stop=replace(IMAGE, quantile=.5),
    paste_only=replace(IMAGE, sigma=0),
    without_images=without_images(),
    no_stop_rule=replace(IMAGE, quantile=None),
    paper=MNIST_PAPER,
    paper_in_bounds=replace(MNIST_PAPER, legal=True))


def svm_of(task, rows=10_000):
    "An RBF-SVM on the pixels of training rows that the network has not seen, where there are such rows."
    from sklearn.svm import SVC
    from gradual_cf.images import load_mnist, pixels
    ds = load_mnist()[0].select(range(60_000 - rows, 60_000))
    return SVC(C=10, gamma='scale').fit(pixels(ds).flatten(1).numpy()/255, np.array(ds['label']))


def row(name, settings, task, judge, svm, x, target):
    "Explain and measure with one setting."
    cf = GradualCF(task.model, task.domain, settings).fit(task.X)
    start = time.perf_counter()
    cfs = cf.explain(x, target)
    took = time.perf_counter() - start
    t,xp = cfs.target, cfs.xp
    mean = lambda v: round(torch.as_tensor(v).double().mean().item(), 4)
    blocks = changed_groups(cfs.x, xp, task.domain.groups(xp.shape[1:])).sum(1)
    by_svm = svm.predict(xp.flatten(1).numpy())
    gap = (predict(task.model, xp) - cf.stats.mu[t]).abs().mean(1).median().item()
    return dict(setting=name, rows=len(x), valid=mean(cfs.valid), judge=mean(predict(judge, xp).argmax(1) == t), svm=mean(by_svm == t.numpy()),
                blocks=mean(blocks), L2=mean((xp - cfs.x).flatten(1).norm(dim=1)), gap=round(gap, 3), seconds=round(took/len(x), 3),
                in_bounds=bool(((xp >= 0) & (xp <= 1)).all()), untouched=bool((xp == cfs.x)[~cfs.mask].all()))


def done(path, about):
    "Lines of an earlier run on the same rows and networks."
    old = json.loads(Path(path).read_text()) if path and Path(path).is_file() else {}
    return old['settings'] if {k: old.get(k) for k in about} == about else []


def speed(task):
    "An inner step against the raw pass at batch 64; 64 images at once against one by one, for an explanation and for the raw pass, in wall time."
    rows,target = np.array(task.X_test[:64]), (task.y_test[:64] + 1) % 10
    cf = GradualCF(task.model, task.domain).fit(task.X)
    enc = cf.encode(rows)
    x,groups = enc.x, cf.groups(enc.x)
    start = cf.start(enc, torch.zeros(64, dtype=torch.long))
    start.on[:, groups[0, 8:16, 8:16].unique()] = True
    def raw(x):
        xp = x.clone().requires_grad_()
        torch.autograd.grad(task.model(xp).sum(), xp)
    def wall(f):
        start = time.perf_counter()
        f()
        return time.perf_counter() - start
    steps = lambda: compose(task.model, start, groups, cf.loss, sigma=20, lr=.1, project=cf.project, keep='last', match=logit_gap) # 21 passes
    alone = lambda: [cf.explain(rows[i:i + 1], target[i:i + 1]) for i in range(64)]
    ratio = lambda f, g, n: round(float(np.median([wall(f)/wall(g) for _ in range(n)])), 2)
    return dict(threads=torch.get_num_threads(),
                step_over_raw=ratio(steps, lambda: [raw(x) for _ in range(21)], 9),
                raw_one_by_one_over_batch=ratio(lambda: [raw(v) for v in x.split(1)], lambda: raw(x), 15),
                one_by_one_over_batch=ratio(alone, lambda: cf.explain(rows, target), 7))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name,value in dict(rows=100, block=4, seed=0).items(): p.add_argument(f'--{name}', type=int, default=value)
    for name in ('json', 'model', 'judge'): p.add_argument(f'--{name}')
    for name in ('full', 'speed', 'train-all'): p.add_argument(f'--{name}', action='store_true')
    p.add_argument('--only', nargs='*', choices=SETTINGS, default=list(SETTINGS))
    a = p.parse_args()
    task = load_task('mnist', seed=0, model=a.model, full=a.full, block=a.block)
    judge = load_model(a.judge) if a.judge else task.judge
    test = lambda m: accuracy(m, task.domain.encode(np.array(task.X_test)).x, torch.tensor(task.y_test))
    out = dict(network=test(task.model), judge=test(judge))
    if a.train_all:
        from gradual_cf.images import load_mnist, pixels
        ds = load_mnist()[0]
        net = train(digit_cnn(seed=0), pixels(ds)/255, torch.tensor(ds['label']), epochs=10, batch_size=128, patience=3)
        out['network_on_all_rows'] = test(net)
    elif a.speed:
        out |= speed(task)
        if a.json:
            with atomic(a.json) as f: f.write_text(json.dumps(out, indent=1))
    else:
        rng = np.random.default_rng(a.seed)
        x = np.array(task.X_test[np.sort(rng.permutation(len(task.X_test))[:a.rows])])
        pred = predict(task.model, task.domain.encode(x).x).argmax(1).numpy()
        target,svm = (pred + rng.integers(1, 10, len(x))) % 10, svm_of(task)
        about = out | dict(rows=a.rows, block=a.block, seed=a.seed, full=a.full)
        lines = done(a.json, about)
        for name in [n for n in a.only if n not in {l['setting'] for l in lines}]:
            lines.append(row(name, SETTINGS[name], task, judge, svm, x, target))
            print(lines[-1], flush=True)
            if a.json:
                with atomic(a.json) as f: f.write_text(json.dumps(about | dict(settings=lines), indent=1))
        print(pd.DataFrame(lines).set_index('setting').to_string())
    print(json.dumps(out))


if __name__ == '__main__': main()
