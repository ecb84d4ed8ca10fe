"""Data sets of any size: steady cost per row, bounded memory, kill −9 and resume, processes.

    python benchmarks/batch.py                                   # all that take minutes, in small
    python benchmarks/batch.py --only kill --rows 200000 --workers 2
    python benchmarks/batch.py --only memory --rows 1000000

Costs per row are CPU seconds of this process, in turns, so that other programs on the machine do not count; speed-ups of workers are wall seconds, with the machine's load beside them.
"""
import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from gradual_cf.scale.batch import explain_dataset
from gradual_cf.core import atomic
from gradual_cf.models.asking import predict
from gradual_cf.gradual import GradualCF
from gradual_cf.models.networks import tabular_mlp
from gradual_cf.data.tables import tabular


def finished(out):
    "Name -> file of the parts that a run has finished."
    return {p.name: p for p in out.glob('part-*.parquet')}


def rows_of(n, d=8, seed=0):
    "A frame of numbers in [0, 1]."
    return pd.DataFrame(np.random.default_rng(seed).random((n, d)).round(4), columns=[f'x{j}' for j in range(d)])


def explainer(d=8, width=32, grid=11, **settings):
    "A random network with spread-out logits, in the default setting unless told otherwise."
    train = rows_of(2000, d, 1)
    domain, model = tabular(train, read=dict(grid=grid)), tabular_mlp(d, width=width, seed=0)
    z = predict(model, domain.encode(train).x.float())
    with torch.no_grad():
        model[-1].weight.div_(z.std(0)[:, None])
        model[-1].bias.copy_((model[-1].bias - z.mean(0))/z.std(0))
    return GradualCF(model, domain, 'sparse', **settings).fit(train)


def quick():
    "The cheapest search that still changes rows: what is measured is the machinery around it."
    return explainer(width=8, grid=3, sigma=0, max_changes=1)


def write_rows(path, n, step=100_000):
    "A parquet file of any length, written in pieces."
    schema = pa.Schema.from_pandas(rows_of(1), preserve_index=False)
    with pq.ParquetWriter(path, schema) as w:
        for i in range(0, n, step): w.write_table(pa.Table.from_pandas(rows_of(min(step, n - i), seed=i), schema, preserve_index=False))
    return path


def digest(folder):
    "One digest of all that a run wrote."
    h = hashlib.sha256()
    for p in sorted(p for p in folder.iterdir() if p.name != '.lock'): h.update(p.name.encode() + p.read_bytes())
    return h.hexdigest()


def steady(folder, rows=(1_000, 10_000, 100_000), rounds=5):
    "CPU seconds a row by number of rows; small runs are repeated to last as long, and all are taken in turns."
    cf, few = quick(), {n: write_rows(folder/f'{n}.parquet', n) for n in rows}
    took = {n: [] for n in rows}
    for r in range(rounds):
        for n,path in few.items():
            start, times = time.process_time(), max(1, 10_000//n)
            for i in range(times): explain_dataset(cf, path, folder/f'{n}-{r}-{i}', batch_size=1000)
            took[n].append((time.process_time() - start)/times/n)
    base = statistics.median(took[rows[0]])
    for n in rows:
        ratio = sorted(b/a for a,b in zip(took[rows[0]], took[n]))
        yield dict(what='cost per row', rows=n, value=statistics.median(took[n])/base, low=ratio[0], high=ratio[-1], unit=f'of {rows[0]:,} rows', note=f'{1e6*statistics.median(took[n]):.1f} µs CPU a row')


CHILD = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import torch; torch.set_num_threads(1)
from batch import *
if __name__ == '__main__':
    cf, base = quick(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    explain_dataset(cf, Path({rows!r}), Path({out!r}), batch_size={size}, workers={workers})
    print(base/1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024)
"""


def child(folder, rows, out, workers=0, size=1000):
    "A run in a process of its own."
    script = folder/'child.py'
    script.write_text(CHILD.format(here=str(Path(__file__).resolve().parent), rows=str(rows), out=str(out), workers=workers, size=size))
    one = os.environ | dict(OMP_NUM_THREADS='1')
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=one)


def memory(folder, rows=(10_000, 1_000_000)):
    "Peak resident memory of a process that explains a file."
    for n in rows:
        path = write_rows(folder/f'm{n}.parquet', n)
        start, p = time.perf_counter(), child(folder, path, folder/f'm{n}')
        base, peak = map(float, p.communicate()[0].split())
        size = sum(f.stat().st_size for f in (folder/f'm{n}').iterdir())
        yield dict(what='peak resident memory', rows=n, value=peak, unit='MiB', note=f'{base:.0f} MiB before the first row; file {path.stat().st_size/2**20:.0f} MiB, answers {size/2**20:.0f} MiB, {time.perf_counter() - start:.0f} s')


def kill(folder, rows=200_000, workers=0, kills=3, seed=0):
    "Kill −9 at random moments, resume, compare with a run that was left alone."
    path, rng = write_rows(folder/'k.parquet', rows), random.Random(seed)
    whole, out, total = child(folder, path, folder/'whole', workers), folder/'out', -(-rows//1000)
    whole.wait()
    assert whole.returncode == 0
    goals, kept = sorted(rng.sample(range(1, total - 1), kills)), {}
    for goal in goals:
        p = child(folder, path, out, workers)
        while len(list(out.glob('part-*'))) < goal and p.poll() is None: time.sleep(.005)
        time.sleep(rng.random()*.1)
        p.send_signal(signal.SIGKILL)
        p.wait()
        now = {k: p.stat().st_mtime_ns for k,p in finished(out).items()}
        assert kept.items() <= now.items(), 'a finished part was lost or made again'
        kept = now
    p = child(folder, path, out, workers)
    p.wait()
    again = {k: p.stat().st_mtime_ns for k,p in finished(out).items() if k in kept}
    seen = pd.read_parquet(out, columns=['cf_row']).cf_row
    same = digest(out) == digest(folder/'whole')
    assert p.returncode == 0 and same and kept == again and (seen.to_numpy() == np.arange(rows)).all()
    who = f'{workers or "no"} workers'
    yield dict(what=f'killed {kills} times, {who}: byte-equal', rows=rows, value=float(same), unit='yes', note=f'killed at parts {goals} of {total}; {len(kept)} finished parts untouched, each row once')


def wall(f):
    "Wall seconds of a call."
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def speedup(name, folder, rows, run, rounds=3):
    "Rows/s of two workers over one, their start-up taken out by a run of four parts."
    path, short = write_rows(folder/'w.parquet', rows), write_rows(folder/'s.parquet', 4_000)
    ratio, load = [], []
    for r in range(rounds):
        t = {w: wall(lambda: run(path, folder/f'{name}{r}-{w}', w)) - wall(lambda: run(short, folder/f'{name}{r}-{w}-short', w)) for w in (1, 2)}
        ratio.append(t[1]/t[2])
        load.append(os.getloadavg()[0])
    ratio.sort()
    return dict(what=f'{name}: two over one', rows=rows, value=statistics.median(ratio), low=ratio[0], high=ratio[-1], unit='×', note=f'load {statistics.mean(load):.1f} on {os.cpu_count()} cores')


def workers(folder, rows=100_000):
    "Two processes over one."
    cf = explainer()
    yield speedup('processes', folder, rows, lambda p, out, w: explain_dataset(cf, p, out, batch_size=1000, workers=w))


def main():
    parts = dict(steady=steady, memory=memory, kill=kill, workers=workers)
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--only', nargs='*', choices=parts, default=list(parts)); a.add_argument('--rows', type=int); a.add_argument('--workers', type=int, default=0)
    a.add_argument('--folder', type=Path); a.add_argument('--out', type=Path, default=Path('benchmarks/results/batch.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in a.only:
        how = {} if a.rows is None else dict(rows=(a.rows,) if name == 'memory' else (1_000, a.rows) if name == 'steady' else a.rows)
        if name == 'kill': how |= dict(workers=a.workers) | ({} if a.rows else dict(rows=20_000))
        with tempfile.TemporaryDirectory(dir=a.folder) as d:
            for line in parts[name](Path(d), **how):
                lines.append(line | dict(part=name))
                print(json.dumps(lines[-1], ensure_ascii=False), flush=True)
    old = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['part', 'what', 'rows'])
    key = lambda df: list(zip(df.part, df.what, df.rows))
    new = pd.DataFrame(lines).assign(torch=torch.__version__)
    df = pd.concat([old[[k not in key(new) for k in key(old)]], new], ignore_index=True).reindex(columns=['part', 'what', 'rows', 'value', 'low', 'high', 'unit', 'note', 'torch'])
    with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
