"""Time of an explanation over one raw forward+backward pass of the same model, by rows, width, kind of network; peak memory a row.

    python benchmarks/ratios.py [--rounds 5] [--most 100000] [--only rows] [--out benchmarks/results/ratios.csv]

Everything is a ratio within one run: ours and the floor are timed in turn, in CPU seconds of one thread, and the medians and quartiles of the ratios are kept. Calls of 10,000 rows are timed twice, of 100,000 once.
"""
import argparse
import gc
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clock import cpu  # noqa: E402
from speed import problem, raw_steps  # noqa: E402

from gradual_cf.all import PAPER, GradualCF, load_task, predict  # noqa: E402
from gradual_cf.core import atomic  # noqa: E402


def floor(model, x, steps=1):
    "CPU seconds of a pass forward and back, repeated until it can be measured."
    times = max(1, min(200, 20_000//len(x)))
    return cpu(lambda: [raw_steps(model, x, None, steps) for _ in range(times)])/times/steps


def quartiles(v):
    v = sorted(v)
    return dict(value=statistics.median(v), low=v[len(v)//4], high=v[-1 - len(v)//4])


def line(part, name, n, cf, rows, x, target, rounds, **more):
    "Passes that an explanation costs, and what it costs a row."
    if n < 10_000: cf.explain(rows, target), floor(cf.model, x)         # the first call is slower; in long ones it does not show
    pairs = [(cpu(lambda: cf.explain(rows, target)), floor(cf.model, x)) for _ in range(rounds)]
    per = quartiles([a/n for a,_ in pairs])
    return dict(part=part, what=name, rows=n, **quartiles([a/b for a,b in pairs]), unit='passes', ms_a_row=1e3*per['value'], **more)


def by_rows(rounds, most):
    "1 … 100,000 rows of 22 columns, width 64, in default mode, and in paper mode with 10 steps instead of 500."
    for n in (1, 10, 100, 1_000, 10_000, 100_000):
        if n > most: continue
        model, x, domain = problem(22, max(n, 1000), 64)
        for name, how in {'default': None, **({'paper, 10 steps': replace(PAPER, sigma=10)} if n < 100_000 else {})}.items():
            cf = GradualCF(model, domain, how).fit(x[:1000])
            yield line('rows', name, n, cf, x[:n], x[:n], 1 - predict(model, x[:n]).argmax(1), rounds if n < 10_000 else 2 if n < 100_000 else 1)


def by_width(rounds, n=50):
    "10 … 1,024 columns and hidden units."
    for d in (10, 32, 100, 320, 1024):
        model, x, domain = problem(d, 1000, 64)
        cf = GradualCF(model, domain, PAPER, sigma=20, max_changes=3).fit(x)
        yield line('columns', 'paper, 20 steps, at most 3 changes', n, cf, x[:n], x[:n], 1 - cf.z_train[:n].argmax(1), rounds, width=d)
        model, x, domain = problem(22, 1000, d)
        cf = GradualCF(model, domain, 'sparse').fit(x)
        yield line('units', 'default', n, cf, x[:n], x[:n], 1 - cf.z_train[:n].argmax(1), rounds, width=d)


def kinds(rounds):
    "A convolutional network on digits and a text network on toy reviews, both embedded."
    task = load_task('digits')
    cf, rows = GradualCF(task.model, task.domain, 'sparse').fit(task.X), np.array(task.X_test[:64])
    yield line('kind', 'CNN, 8×8 digits, default', 64, cf, rows, cf.encode(rows).x, (task.y_test[:64] + 1) % 10, rounds)
    task = load_task('toy_reviews')
    cf, rows = GradualCF(task.model, task.domain, 'sparse').fit(task.X), task.X_test[:16]
    yield line('kind', 'text CNN, toy reviews, default', len(rows), cf, rows, cf.encode(rows).x, None, rounds)


def peak(f):
    "Peak bytes that tensors take during a call."
    from torch.profiler import ProfilerActivity, profile
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p: f()
    now = most = 0
    for e in sorted((e for e in p.profiler.kineto_results.events() if e.name() == '[memory]'), key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    return most


def memory(rounds):
    "Peak tensor memory a row in default mode, by rows in a batch."
    for n in (100, 1_000):
        model, x, domain = problem(22, n, 64)
        cf = GradualCF(model, domain, 'sparse', batch_size=n).fit(x)
        most = peak(lambda: cf.explain(x))
        yield dict(part='memory', what='default', rows=n, value=most/n/1024, unit='KiB a row', low=most/n/1024, high=most/n/1024)


def draw(df, path):
    "Four panels: rows, columns, units, kinds."
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    fig, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout='constrained')
    def curve(ax, g, x, y='value'):
        for name, l in g.groupby('what'):
            ax.plot(l[x], l[y], 'o-', label=name)
            if y == 'value': ax.fill_between(l[x], l.low, l.high, alpha=.2)
        ax.legend(fontsize=8)
    curve(axes[0], df[df.part == 'rows'], 'rows', 'ms_a_row'), axes[0].set(xscale='log', yscale='log', xlabel='rows in one call', ylabel='CPU ms a row', title='rows')
    for ax, part, label in ((axes[1], 'columns', 'columns'), (axes[2], 'units', 'units of the hidden layers')):
        curve(ax, df[df.part == part], 'width'), ax.set(xscale='log', yscale='log', xlabel=label, ylabel='forward+backward passes', title=label)
    k = df[df.part == 'kind']
    axes[3].barh(k.what.str.replace(', ', '\n', n=1), k.value, xerr=[k.value - k.low, k.high - k.value], color='C2'), axes[3].set(xlabel='forward+backward passes', title='kinds')
    with atomic(path) as tmp: fig.savefig(tmp, dpi=110, format='png')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rounds', type=int, default=5); a.add_argument('--most', type=int, default=100_000); a.add_argument('--out', type=Path, default=Path('benchmarks/results/ratios.csv'))
    parts = dict(memory=memory, kind=kinds, width=by_width, rows=lambda r: by_rows(r, a.most))
    a.add_argument('--only', nargs='*', choices=parts, default=list(parts), help='measure these again and keep the other lines of the table')
    a = a.parse_args()
    torch.set_num_threads(1)
    again = {q for p in a.only for q in (('columns', 'units') if p == 'width' else (p,))}
    lines = [l for l in (pd.read_csv(a.out).drop(columns='torch').to_dict('records') if a.out.exists() else []) if l['part'] not in again]
    for part in a.only:
        for l in parts[part](a.rounds):
            lines.append(l)
            print({k: round(v, 3) if isinstance(v, float) else v for k,v in l.items()}, flush=True)
            df = pd.DataFrame(lines).assign(torch=torch.__version__)
            with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)  # what was measured is kept, whenever the rest is stopped
    draw(df, a.out.with_suffix('.png'))


if __name__ == '__main__': main()
