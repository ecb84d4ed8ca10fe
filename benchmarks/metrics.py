"""How long coherence of 1,000 rows takes, by width and by how alike the rows are.

    python benchmarks/metrics.py [--rows 1000] [--columns 23 784 2500]
"""
import argparse
import time

import pandas as pd
import torch

from gradual_cf.measures.metrics import coherence


def rows_of(kind, n, d, gen):
    "Random rows: all different, pairs that differ in five entries, everybody like one row, or words of which each row has a few."
    x = torch.rand(n, d, generator=gen)
    if kind == 'pairs': x[n//2:n//2*2] = x[:n//2]; x[n//2:n//2*2, :5] += .01
    if kind == 'alike': x = torch.where(torch.rand(n, d, generator=gen) < 5/d, x, x[:1])
    if kind == 'words': x = (x < 5/d).float()
    return x


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=1000); a.add_argument('--columns', type=int, nargs='*', default=[23, 784, 2500])
    a = a.parse_args()
    lines = []
    for d in a.columns:
        for kind in ('different', 'pairs', 'alike', 'words'):
            gen = torch.Generator().manual_seed(0)
            x = rows_of(kind, a.rows, d, gen)
            xp = x + .1*torch.rand(x.shape, generator=gen)
            start,cpu = time.perf_counter(),time.process_time()
            c = coherence(x, xp).set_index('eps')['mean']
            lines.append(dict(columns=d, rows_are=kind, seconds=time.perf_counter() - start, process_seconds=time.process_time() - cpu, coherence_12=c[12]))
    print(pd.DataFrame(lines).round(4).to_string(index=False))


if __name__ == '__main__': main()
