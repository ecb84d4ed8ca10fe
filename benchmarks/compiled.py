"""Does `torch.compile` pay? What the first call costs, and what passes and default answers take afterwards over the plain network.

    python benchmarks/compiled.py [--rounds 7] [--only table digits] [--out benchmarks/results/compiled.csv]

Every line is a process of its own with an empty folder of compiled code, so that the first call is a first call. CPU seconds of
one thread are counted, those of the C++ compiler with them. Plain and compiled are timed in turn; medians and quartiles of the
ratios are kept. `pays_from` is the number of rows whose savings make up for the first call; empty where nothing is saved.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from gradual_cf.all import GradualCF, load_task, predict
from gradual_cf.core import atomic, take_rows
from gradual_cf.models.asking import pass_rows
from gradual_cf.models.networks import train


class Block(nn.Module):
    "A residual block of many small operations, as a compiler likes them."
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + nn.functional.gelu(self.linear(self.norm(x)))*torch.sigmoid(x)


def residual(task, width=64, blocks=4):
    "A residual network for a table, trained on its rows."
    x = task.domain.encode(task.X).x
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(x.shape[1], width), *[Block(width) for _ in range(blocks)], nn.Linear(width, len(task.classes)))
    return train(net, x, task.y.to_numpy(), epochs=20, seed=0)


PARTS = dict(  # data, rows of a call, network, how torch.compile is told
    table=('breast_cancer', 1000, None, {}),
    dynamic=('breast_cancer', 1000, None, dict(dynamic=True)),
    residual=('breast_cancer', 1000, residual, {}),
    digits=('digits', 64, None, {}),
    texts=('toy_reviews', 100, None, {}),
    texts_dynamic=('toy_reviews', 100, None, dict(dynamic=True)))


def cpu():
    "CPU seconds of this process and of all that it has waited for."
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def seconds(f):
    "CPU seconds of one call."
    start = cpu()
    f()
    return cpu() - start


def median(ours, floor, rounds):
    "Quartiles of the time of `ours` over `floor`, in turn."
    ours(), floor()
    v = sorted(seconds(ours)/seconds(floor) for _ in range(rounds))
    return v[len(v)//4], statistics.median(v), v[-1 - len(v)//4]


def passes(task, model, compiled, rows, rounds, times=20):
    "A pass forward of as many rows as go in together, compiled over plain."
    x = task.domain.encode(rows).x
    together = pass_rows(x)
    x = x.repeat(-(-together//len(x)), *[1]*(x.ndim - 1))[:together].to(torch.float32)
    @torch.no_grad()
    def again(net):
        for _ in range(times): net(x)
    return median(lambda: again(compiled), lambda: again(model), rounds)[1]


def line(part, rounds):
    "One network, plain and compiled."
    data, n, build, how = PARTS[part]
    task = load_task(data)
    model = (build(task) if build else task.model).eval()
    rows = take_rows(task.X_test, torch.arange(n) % len(task.X_test))
    plain, made = GradualCF(model, task.domain, 'sparse').fit(task.X), {}
    target = (predict(model, plain.encode(rows).x).argmax(1) + 1) % len(task.classes)
    told = dict(part=part, data=data, rows=n, compile=', '.join(f'{k}={v}' for k, v in how.items()))
    def first():
        made['cf'] = GradualCF(torch.compile(model, **how), task.domain, 'sparse').fit(task.X)
        made['cfs'] = made['cf'].explain(rows, target)
    want = plain.explain(rows, target)
    try: cost = seconds(first)
    except ValueError as e: return told | dict(note=' '.join(str(e).split())[:150])
    low, value, high = median(lambda: made['cf'].explain(rows, target), lambda: plain.explain(rows, target), rounds)
    usual = seconds(lambda: plain.explain(rows, target))
    saved = usual/n*(1 - value)
    return told | dict(first_call=cost, usual=usual, passes=passes(task, model, made['cf'].model, rows, rounds), answers=value, low=low, high=high,
                       pays_from=round((cost - usual)/saved) if saved > 0 else None, same=int((want.xp == made['cfs'].xp).flatten(1).all(1).sum()))


def alone(part, rounds):
    "A line in a process of its own, with nothing compiled before."
    with tempfile.TemporaryDirectory() as folder:
        here = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_COMPILE_THREADS='1', OMP_NUM_THREADS='1')
        out = Path(folder)/'line.json'
        subprocess.run([sys.executable, __file__, '--part', part, '--rounds', str(rounds), '--out', out], env=here, check=True)
        return json.loads(out.read_text())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rounds', type=int, default=7)
    a.add_argument('--only', nargs='*', choices=PARTS, default=list(PARTS), help='measure these again and keep the other lines')
    a.add_argument('--part', choices=PARTS, help=argparse.SUPPRESS)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/compiled.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    if a.part:
        a.out.write_text(json.dumps(line(a.part, a.rounds)))
        return
    lines = {l['part']: l for l in pd.read_csv(a.out).to_dict('records')} if a.out.exists() else {}
    for part in a.only:
        lines[part] = alone(part, a.rounds) | dict(torch=torch.__version__)
        print(lines[part], flush=True)
        with atomic(a.out) as tmp: pd.DataFrame([lines[p] for p in PARTS if p in lines]).round(3).to_csv(tmp, index=False)


if __name__ == '__main__': main()
