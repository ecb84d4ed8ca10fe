"""Memory and time of wide tables: a category of many levels, or many columns; each question in a process of its own.

    OMP_NUM_THREADS=1 python benchmarks/wide.py [--rows 200] [--out benchmarks/results/wide.csv]

`peak` is the largest resident size of the whole process in GiB, `loaded` what it had before the explainer was made:
Python, torch, pandas and the table. Seconds are of the processor, for the explanation alone. The last line says how
the time grows from the fewest levels to the most. The networks are made by hand, since training takes memory, too.
"""
import argparse
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PLAUSIBLE, GradualCF, tabular
from gradual_cf.core import atomic

TRAINING = 7000
QUESTIONS = [('default', 100, 3), ('default', 1000, 3), ('believable', 100, 3), ('believable', 1000, 3), ('default', 0, 300), ('believable', 0, 300)]


def table(levels, columns, rng):
    "Numbers, and where there are levels, a category that has each of them as often."
    df = pd.DataFrame(rng.normal(size=(TRAINING, columns)).round(3), columns=[f'c{i}' for i in range(columns)])
    if levels: df['city'] = pd.Categorical([f'city {i}' for i in rng.permutation(TRAINING) % levels])
    return df


def network(domain, df, columns, rng):
    "Two hidden units for and against the score of the first columns, and an effect of each level."
    width, few = domain.encode(df.head(1)).x.shape[1], min(columns, 20)
    weight = np.r_[[c.span for c in domain.features[:few]], np.zeros(columns - few), rng.normal(0, 1, width - columns)]
    net = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    with torch.no_grad():
        net[0].weight.copy_(torch.as_tensor(weight)*torch.linspace(.01, .1, 64)[:, None])
        score = torch.cat([domain.encode(df[i:i + 500]).x.float() @ net[0].weight.T for i in range(0, len(df), 500)])
        net[0].bias.copy_(-score.mean(0))
        net[2].weight.copy_(torch.tensor([-1., 1.])[:, None].expand(2, 64))
        net[2].bias.zero_()
    return net


def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/2**20


def asked(preset, levels, columns, rows, out):
    "Ask one question and say what it took."
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    df = table(levels, columns, rng)
    domain = tabular(df)
    net, loaded = network(domain, df, columns, rng), peak()
    cf = GradualCF(net, domain, PLAUSIBLE if preset == 'believable' else None).fit(df)
    some = df[(cf.z_train.argmax(1) == 0).numpy()].head(rows)
    start = time.process_time()
    valid = cf.explain(some, 1).valid
    out.put(dict(settings=preset, levels=levels, columns=columns, rows=len(some), valid=float(np.mean(np.asarray(valid))),
                 loaded=loaded, peak=peak(), seconds=time.process_time() - start))


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--rows', type=int, default=200)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/wide.csv'))
    a = a.parse_args()
    fresh, lines = multiprocessing.get_context('spawn'), []
    for question in QUESTIONS:
        told = fresh.Queue()
        p = fresh.Process(target=asked, args=(*question, a.rows, told))
        p.start()
        lines.append(told.get())
        p.join()
        print('  '.join(f'{k} {v:.2f}' if isinstance(v, float) else f'{k} {v}' for k, v in lines[-1].items()), flush=True)
        with atomic(a.out) as tmp: pd.DataFrame(lines).round(3).to_csv(tmp, index=False)
    for preset in ('default', 'believable'):
        few, many = [line['seconds'] for line in lines if line['settings'] == preset and line['levels']]
        print(f'{preset}: time grows by {many/few:.1f} from 100 levels to 1,000')


if __name__ == '__main__': main()
