"""Speed as ratios within one run, medians of several rounds: the inner step over the floor, a batch over the oracle, memory by batch size.
Its rows are bare numbers without columns to compare, so the intents are PAPER and SPARSE; `one_row.py` times the default, ROBUST.

    python benchmarks/speed.py [--threads 1] [--rounds 15] [--out benchmarks/results/speed.csv]
"""
import argparse
import statistics
import sys
from pathlib import Path

import pandas as pd
import torch
from clock import cpu

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'tests'))
import oracle  # noqa: E402

from gradual_cf.all import PAPER, SPARSE, Domain, Encoded, GradualCF, State, Target, box, compose, fit_logits, init_composite, l2_distance, logit_gap  # noqa: E402
from gradual_cf.all import mix, predict, tabular_mlp  # noqa: E402
from gradual_cf.core import atomic  # noqa: E402


def ratio(ours, floor, rounds):
    "Median and quartiles of ours/floor, the two timed in turn."
    ours(), floor()
    r = sorted(cpu(ours)/cpu(floor) for _ in range(rounds))
    return statistics.median(r), r[len(r)//4], r[3*len(r)//4]


def problem(d, n, width, seed=0):
    "A random network with spread-out logits, inputs and a domain of numbers in [0, 1]."
    model = tabular_mlp(d, width=width, seed=seed)
    x = torch.rand(n, d, generator=torch.Generator().manual_seed(seed))
    z = predict(model, x)
    with torch.no_grad():
        model[-1].weight.div_(z.std(0)[:, None])
        model[-1].bias.copy_((model[-1].bias - z.mean(0))/z.std(0))
    encode = lambda x: Encoded(x, torch.zeros(len(x), d, dtype=torch.bool))
    domain = Domain(encode, lambda x, raw=None, legal=True: x, lambda s: torch.arange(d), box(0., 1.), lambda x, g: torch.linspace(0, 1, 11)[None, :, None])
    return model, x, domain


def raw_steps(model, x, target, steps):
    "The floor: forward and backward to the input, nothing else."
    for _ in range(steps):
        v = x.detach().requires_grad_()
        z = model(v)
        torch.autograd.grad(z, v, torch.ones_like(z))


def inner_step(rounds, n=1000, d=22, width=64, steps=50):
    "Ratio of a composition iterate to the floor, without and with projection and `nearest`."
    model, x, domain = problem(d, n, width)
    t = 1 - predict(model, x).argmax(1)
    target = Target(t, torch.full((n,), .5), fit_logits(predict(model, x)).mu[t])
    on = torch.zeros(n, d, dtype=torch.bool)
    on[torch.arange(n), torch.arange(n) % d] = True
    s = State(domain.encode(x), x, None, target, on, init_composite(x))
    loss, groups = mix(logit=(1., logit_gap), l2=(.3, l2_distance)), torch.arange(d)
    for name, how in (('paper', {}), ('bounded, nearest', dict(project=domain.project, keep='nearest'))):
        ours = lambda: compose(model, s, groups, loss, sigma=steps, **how)
        yield f'inner step, {name}', f'forward+backward, {n} rows, width {width}', ratio(ours, lambda: raw_steps(model, x, t, steps + 1), rounds)


def against_oracle(rounds, n=1000, few=3):
    "How many times faster a row is in a batch than alone in the line-by-line program."
    model, x, domain = problem(22, n, 64)
    cf = {name: GradualCF(model, domain, h).fit(x) for name,h in (('PAPER', PAPER), ('SPARSE', SPARSE))}
    t = 1 - cf['SPARSE'].z_train.argmax(1)
    mu, c = cf['SPARSE'].stats.mu[t], init_composite(x)
    alone = lambda: [oracle.gradual(model, x[i], t[i].item(), mu[i], torch.arange(22), torch.zeros(22, dtype=torch.bool), c[i], sigma=500) for i in range(few)]
    for name, e in cf.items():
        r = sorted((cpu(alone)/few)/(cpu(lambda: e.explain(x, t))/n) for _ in range(max(5, rounds//3)))
        yield f'{name}, {n} rows at once', 'rows a second of the line-by-line program, paper setting', (statistics.median(r), r[0], r[-1])


def memory(sizes=(500, 1000, 2000, 4000)):
    "Peak bytes that tensors take during an explanation, per row, by batch size."
    from torch.profiler import ProfilerActivity, profile
    for n in sizes:
        model, x, domain = problem(22, n, 64)
        e = GradualCF(model, domain, PAPER, sigma=5, batch_size=n).fit(x)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p: e.explain(x)
        now = peak = 0
        for ev in sorted((ev for ev in p.profiler.kineto_results.events() if ev.name() == '[memory]'), key=lambda ev: ev.start_ns()):
            now += ev.nbytes()
            peak = max(peak, now)
        yield f'peak tensor memory, {n} rows at once', 'KiB a row', (peak/n/1024,)*3


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--threads', type=int, default=1)
    a.add_argument('--rounds', type=int, default=15)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/speed.csv'))
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    lines = [l for l in pd.read_csv(a.out).to_dict('records') if l['threads'] != a.threads] if a.out.exists() else []
    for what, unit, (value, low, high) in (*inner_step(a.rounds), *against_oracle(a.rounds), *memory()):
        lines.append(dict(what=what, value=value, low=low, high=high, unit=unit, threads=a.threads, torch=torch.__version__))
        print(f'{what}: {value:.2f} ({low:.2f}–{high:.2f}) × {unit}', flush=True)
    with atomic(a.out) as tmp: pd.DataFrame(lines).round(3).to_csv(tmp, index=False)


if __name__ == '__main__': main()
