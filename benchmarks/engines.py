"""One function in every engine: does each say what `explain` says, and what does it cost?

    python benchmarks/engines.py                                  # 100,000 rows in Spark, Polars and Dask; 8,000 in Ray: some minutes
    python benchmarks/engines.py --only start                     # what a worker costs until its first answer, by make of model
    python benchmarks/engines.py --only polars --rows 1000000     # streamed: memory

Loans with an id, six columns that the model reads, 100 trees of LightGBM, sparse answers. Seconds are of the processor: of the process
that asks and of all that it began, sampled twice a second; the JVM is told apart. Each engine has a process of its own.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent/'results'/'engines.csv'
FIELDS = 'what rows seconds jvm bits mib note'.split()
BATCH = 4096
os.environ |= dict(PYSPARK_PYTHON=sys.executable, RAY_AUTH_MODE='disabled', RAY_raylet_start_wait_time_s='120')


def loans(n, seed=0):
    "Applications: five numbers and a category."
    r = np.random.default_rng(seed)
    return pd.DataFrame(dict(
        income=r.lognormal(7.9, .4, n).round(0), debt=r.gamma(2, 4000, n).round(0), years=r.integers(0, 40, n), late=r.poisson(.8, n),
        rate=r.uniform(.01, .12, n).round(3), home=pd.Categorical(r.choice(['own', 'rent', 'family'], n), ['family', 'own', 'rent'])))


def lender():
    "An explainer of LightGBM's trees."
    import lightgbm

    from gradual_cf.all import GradualCF, tabular
    X = loans(4000, 1)
    score = X.income/2500 - X.debt/12000 + X.years/30 - .6*X.late - 8*X.rate + .5*(X.home == 'own')
    y = (score + np.random.default_rng(2).normal(0, .3, 4000) > .35).map({True: 'granted', False: 'refused'})
    model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1, random_state=0).fit(X, y)
    return GradualCF(model, tabular(X), 'sparse', classes=('granted', 'refused')).fit(X)


def refused(path, n):
    "A file of n refused applications with an id, written in pieces; the cells of a category are texts, as files have them."
    cf, at, seed = lender(), 0, 10
    model = cf.model.predictor.source
    with pq.ParquetWriter(path, pa.schema([('customer', pa.int64()), *pa.Schema.from_pandas(loans(1).astype(dict(home=str)), preserve_index=False)])
                          .remove_metadata()) as w:
        while at < n:
            df = loans(100_000, seed)
            df = df[model.predict(df) == 'refused'].head(n - at)
            w.write_table(pa.Table.from_pandas(df.assign(customer=np.arange(at, at + len(df)), home=df.home.astype(str))[w.schema.names],
                                               w.schema, preserve_index=False).replace_schema_metadata(None), 20_000)
            at, seed = at + len(df), seed + 1


# ---- each of these runs in a process of its own, and writes its answers

def batches(folder):
    from gradual_cf.scale.batch import as_batches
    return as_batches(folder/'cf', 'granted', keep=dict(customer='int64'))


def explain(rows, out, folder):
    "All rows in one call, and what that took."
    from gradual_cf.gradual import GradualCF
    cf, df = GradualCF.load(folder/'cf'), pd.read_parquet(rows)
    cf.explain(df[:9], 'granted')
    before = time.process_time()
    cfs = cf.explain(df, 'granted')
    print('seconds', time.process_time() - before)
    told = {'customer': df.customer} | {f'cf:{c}': cfs.raw[c].astype(object) for c in cfs.raw} | dict(cfs.df().filter(like='cf_'))
    schema = batches(folder).schema
    pq.write_table(pa.table({f.name: pa.array(told[f.name], type=f.type, from_pandas=True) if f.name in told else pa.nulls(len(df), f.type)
                             for f in schema}), out)


def plain(rows, out, folder):
    "Batch after batch in one process."
    f, file = batches(folder), pq.ParquetFile(rows)
    with pq.ParquetWriter(out, f.schema) as w:
        for b in file.iter_batches(BATCH): w.write_batch(f(b))


def polars(rows, out, folder):
    import polars as pl
    f = batches(folder)
    pl.scan_parquet(rows).map_batches(f, schema=pl.from_arrow(f.schema.empty_table()).schema, streamable=True).sink_parquet(out)


def dask(rows, out, folder):
    import dask.dataframe as dd
    f = batches(folder)
    ddf = dd.read_parquet(rows, split_row_groups=1).map_partitions(f, meta=f.meta)
    ddf.to_parquet(out, write_index=False, compute_kwargs=dict(scheduler='processes', num_workers=2))


def ray(rows, out, folder):
    import ray
    f = batches(folder)
    ray.init(address='local', num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200*2**20)
    ray.data.read_parquet(str(rows)).map_batches(f, batch_format='pyarrow', batch_size=BATCH).write_parquet(str(out))
    ray.shutdown()


def spark(rows, out, folder, more=None):
    from pyspark.sql import SparkSession
    f = batches(folder)
    session = SparkSession.builder.master('local[2,4]').config('spark.ui.enabled', 'false').config('spark.driver.memory', '2g').config(
        'spark.sql.execution.arrow.maxRecordsPerBatch', str(BATCH)).config('spark.ui.showConsoleProgress', 'false').getOrCreate()
    session.sparkContext.setLogLevel('ERROR')
    sdf = session.read.parquet(str(rows)).repartition(4)
    sdf.mapInArrow(f.batches, f.ddl).write.parquet(str(out))
    session.stop()


ENGINES = dict(explain=explain, plain=plain, polars=polars, dask=dask, ray=ray, spark=spark)


# ---- and this watches them

def watched(command):
    "Seconds of the processor of a command and all that it begins, by kind; the largest Python process in MiB; what it said."
    env = os.environ | dict(OMP_NUM_THREADS='1', PYTHONWARNINGS='ignore', PYTHONPATH=str(Path(__file__).parent.parent))
    with tempfile.TemporaryFile('w+') as said:
        p = subprocess.Popen(command, env=env, stdout=said, stderr=subprocess.DEVNULL)
        me, used, mib = psutil.Process(p.pid), {}, 0
        while p.poll() is None:
            try: crew = [me, *me.children(recursive=True)]
            except psutil.NoSuchProcess: break
            for q in crew:
                try:
                    t, name = q.cpu_times(), ' '.join(q.cmdline())
                    kind = 'jvm' if 'java' in name.split(' ')[0] else 'asks' if q.pid == p.pid else 'workers'
                    used[q.pid] = kind, t.user + t.system
                    if kind != 'jvm': mib = max(mib, q.memory_info().rss/2**20)
                except (psutil.NoSuchProcess, psutil.ZombieProcess): pass
            time.sleep(.5)
        said.seek(0)
        if p.wait(): raise RuntimeError(f'{command} ended with {p.returncode}')
        total = {k: sum(s for kind,s in used.values() if kind == k) for k in ('asks', 'workers', 'jvm')}
        return total, mib, said.read()


def table_of(out, schema):
    "Answers in the order of their ids; Polars writes texts of another type."
    import pyarrow.dataset as pds
    return pds.dataset(out, format='parquet').to_table().cast(schema).sort_by('customer').replace_schema_metadata(None).combine_chunks()


START = """import multiprocessing.process as p, pickle, sys, time
p._parent_process = p.current_process()  # as in a worker
f = pickle.load(open(sys.argv[1], 'rb'))
import pyarrow.parquet as pq
f(pq.ParquetFile(sys.argv[2]).read_row_group(0).slice(0, 1))
print('seconds', time.process_time())"""


def start(folder, rows, times=2):
    "What a worker costs until its first answer, the least of some times; by make of model."
    import pickle

    from sklearn.linear_model import LogisticRegression

    from gradual_cf.all import GradualCF, as_batches, tabular, tabular_mlp
    X, many = loans(300, 1).drop(columns='home'), lender()
    makes = dict(lightgbm=many, network=GradualCF(tabular_mlp(5, seed=0).double(), tabular(X)).fit(X),
                 sklearn=GradualCF(LogisticRegression(max_iter=5000).fit(X, X.income > X.income.median()), tabular(X)).fit(X))
    floor = "import torch, pandas, pyarrow, time; print('seconds', time.process_time())"
    yield dict(what='start: torch, pandas and pyarrow alone', seconds=min(float(watched([sys.executable, '-c', floor])[2].split()[-1]) for _ in range(times)))
    for make, cf in makes.items():
        (folder/f'{make}.pkl').write_bytes(pickle.dumps(as_batches(cf)))
        said = [watched([sys.executable, '-c', START, str(folder/f'{make}.pkl'), str(rows)]) for _ in range(times)]
        yield dict(what=f'start of a worker, {make}', seconds=min(float(s[2].split()[-1]) for s in said), mib=max(s[1] for s in said))


def measured(folder, rows, n, only):
    "Lines of the table."
    def run(name): return watched([sys.executable, __file__, '--one', name, '--rows', str(rows), '--folder', str(folder)])
    if 'start' in only:
        yield from start(folder, rows)
    want = [name for name in ENGINES if name in only]
    if not want: return
    first = float(run('explain')[2].split()[-1]) if 'explain' in want else None
    if first: yield dict(what='explain, one call', rows=n, seconds=first)
    schema = batches(folder).schema
    for name in want:
        if name == 'explain': continue
        used, mib, _ = run(name)
        same = table_of(folder/name, schema).equals(table_of(folder/'explain', schema)) if (folder/'explain').exists() else None
        seconds = used['workers'] if name == 'spark' else used['asks'] + used['workers']
        yield dict(what=name, rows=n, seconds=seconds, jvm=used['jvm'] or None, bits=same, mib=mib, note=f'the process that asks: {used["asks"]:.1f} s' if name == 'spark' else '')


def kept(lines):
    "Put lines into the table, in the place of those of the same name and number of rows."
    old = list(csv.DictReader(open(RESULTS))) if RESULTS.exists() else []
    shown = lambda v: '' if v is None else f'{v:.4g}' if isinstance(v, float) else str(v)
    for line in lines:
        line = {k: shown(line.get(k)) for k in FIELDS}
        print(line, flush=True)
        old = [o for o in old if (o['what'], o['rows']) != (line['what'], line['rows'])] + [line]
        with open(RESULTS, 'w', newline='') as f:
            w = csv.DictWriter(f, FIELDS, lineterminator='\n')
            w.writeheader(), w.writerows(old)


if __name__ == '__main__':
    a = argparse.ArgumentParser()
    a.add_argument('--only', nargs='*', default=['start', 'explain', 'plain', 'polars', 'dask', 'spark'])
    a.add_argument('--rows', default='100000')
    a.add_argument('--folder', type=Path)
    a.add_argument('--one')
    a = a.parse_args()
    if a.one: ENGINES[a.one](Path(a.rows), a.folder/a.one, a.folder)
    else:
        with tempfile.TemporaryDirectory() as d:
            folder, n = Path(d), int(a.rows)
            lender().save(folder/'cf')
            refused(folder/'rows.parquet', n)
            kept(measured(folder, folder/'rows.parquet', n, a.only))
