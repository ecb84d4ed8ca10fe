"""One row at a time: CPU milliseconds of a single answer beside NICE, on five models; and what a thousand rows and ten thousand cost.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/one_row.py [--rows 200] [--few 20] [--peers DIR]
        [--only network lightgbm xgboost logistic forest many large] [--out FILE]

Each row is asked of ours and of NICE (sparsity) in turn, in one thread; `ratio` divides the medians of the same rows.
NICE gets what it gets in models.py, and the network on encoded rows. `plausible` and `four` are the medians of --few
rows under the preset PLAUSIBLE and for `explain_many(k=4)`, divided by the median of the default on these very rows.
`many` explains 1,000 rows in one call, and counts the share of its time that is spent inside of the model.
`large` explains 10,000 rows of a made table of 30,000 rows and 20 columns. --only keeps the other lines of the file.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PLAUSIBLE, GradualCF, load_task, tabular
from gradual_cf.core import atomic
from installed import install
from models import LOAD, PEERS, case_of, nice

MADE_OF = dict(lightgbm='adult', xgboost='heloc', logistic='adult', forest='adult')
MODELS = ('network', *MADE_OF)
PARTS = (*MODELS, 'many', 'large')


def cpu(f):
    "CPU milliseconds of one call."
    start = time.process_time()
    f()
    return 1e3*(time.process_time() - start)


def network(rows):
    "The network of HELOC, rows to explain, and NICE on what the network reads."
    from nice import NICE
    task = load_task('heloc')
    cf, some = GradualCF(task.model, task.domain, 'sparse').fit(task.X), task.X_test.iloc[:rows]
    def said(x):
        with torch.no_grad(): return task.model(torch.as_tensor(x, dtype=torch.float32)).softmax(1).numpy()
    x, new = cf.x_train.numpy(), cf.encode(some).x.numpy()
    e = NICE(predict_fn=said, X_train=x, cat_feat=[], num_feat=list(range(x.shape[1])), y_train=said(x).argmax(1),
             optimization='sparsity', justified_cf=True)
    return task.X, cf, some, lambda i: e.explain(new[i:i + 1])


def fitted(name, rows):
    "The same of a model that is fitted on a raw frame."
    case = case_of(LOAD[MADE_OF[name]](rows), name)
    return case.data.X, GradualCF(case.model, case.domain, 'sparse').fit(case.data.X), case.data.rows, nice(case)


def singles(name, rows, few):
    "Single rows of one model."
    X, cf, some, peer = network(rows) if name == 'network' else fitted(name, rows)
    preset = GradualCF(cf.model, cf.domain, PLAUSIBLE).fit(X)
    one = lambda i: some.iloc[[i]]
    ours, theirs = lambda i: cpu(lambda: cf.explain(one(i))), lambda i: cpu(lambda: peer(i))
    ours(0), theirs(0) # the first calls import
    pairs = np.array([(ours(i), theirs(i)) for i in range(len(some))])
    more = np.array([(ours(i), cpu(lambda: preset.explain(one(i))), cpu(lambda: cf.explain_many(one(i), k=4)))
                     for i in range(min(few, len(some)))])
    ms, peers = np.median(pairs, 0)
    usual, plausible, four = np.median(more, 0)
    yield dict(part=name, rows=len(some), ms=ms, high=np.quantile(pairs[:, 0], .9), nice_ms=peers, ratio=ms/peers,
               plausible=plausible/usual, four=four/usual)


class Clock:
    "CPU milliseconds inside of a model."
    def __init__(self, cf):
        self.ms = 0.
        asked = getattr(cf.model, 'predictor', None)
        if asked is None:
            cf.model.register_forward_pre_hook(lambda *_: setattr(self, 'start', time.process_time()))
            cf.model.register_forward_hook(lambda *_: self.add(time.process_time() - self.start))
            return
        ask = asked.ask
        def timed(frame):
            start = time.process_time()
            try: return ask(frame)
            finally: self.add(time.process_time() - start)
        object.__setattr__(asked, 'ask', timed)

    def add(self, seconds): self.ms += 1e3*seconds


def many(rounds=3):
    "A thousand rows in one call."
    for name in ('network', 'lightgbm', 'xgboost'):
        X, cf, some, _ = network(1000) if name == 'network' else fitted(name, 1000)
        cf.explain(some.iloc[:50])
        clock, took, inside = Clock(cf), [], []
        for _ in range(rounds):
            before = clock.ms
            took.append(cpu(lambda: cf.explain(some)))
            inside.append((clock.ms - before)/took[-1])
        yield dict(part='many', what=name, rows=1000, ms=statistics.median(took)/1000, passes=statistics.median(inside))


def large(n=30_000, columns=20, rows=10_000):
    "A made table of many rows."
    from lightgbm import LGBMClassifier
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    x, y = make_classification(n, columns, n_informative=10, random_state=0)
    X = pd.DataFrame(x.round(3), columns=[f'x{j}' for j in range(columns)])
    models = dict(lightgbm=LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbose=-1),
                  linear=make_pipeline(StandardScaler(), LogisticRegression()))
    for name, model in models.items():
        cf = GradualCF(model.fit(X, y), tabular(X), 'sparse').fit(X)
        cf.explain(X.iloc[:50])
        yield dict(part='large', what=name, rows=rows, ms=cpu(lambda: cf.explain(X.iloc[:rows]))/rows)


def lines(a, part):
    "The lines of one part."
    return list(many() if part == 'many' else large() if part == 'large' else singles(part, a.rows, a.few))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=200)
    a.add_argument('--few', type=int, default=20)
    a.add_argument('--peers', type=Path, help='a folder to keep NICE in')
    a.add_argument('--only', nargs='*', choices=PARTS, default=list(PARTS))
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/one_row.csv'))
    a = a.parse_args()
    if not os.environ.get('GRADUAL_CF_DATA'): sys.exit('GRADUAL_CF_DATA must name the data folder')
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    old = pd.read_csv(a.out).to_dict('records') if a.out.exists() else []
    with tempfile.TemporaryDirectory() as d:
        install(a.peers or Path(d), PEERS[:1])
        for part in a.only:
            old = [line for line in old if line['part'] != part] + lines(a, part)
            df = pd.DataFrame(old).sort_values('part', key=lambda s: s.map(PARTS.index), kind='stable')
            print(df[df.part == part].round(3).to_string(), flush=True)
            with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
