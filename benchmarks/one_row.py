"""One row at a time: CPU milliseconds of a single answer beside NICE, on seven models of HELOC; and what a thousand rows and ten thousand cost.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/one_row.py [--rows 60] [--few 10] [--peers DIR]
        [--only lightgbm xgboost catboost forest logistic perceptron network many large] [--out FILE]

Each row is asked of ours and of NICE (sparsity) in turn, in one thread; `ratio_…` divides means, medians and ninth deciles
of the same rows. NICE is as lean as it can rightly be: its model function puts its numbers into a frame with the names that
the model was fitted on, as one block of floats, or for the network asks the layers themselves. `plausible`, `four` and
`reasons` are medians of --few rows under the preset PLAUSIBLE, for `explain_many(k=4)` and for `reasons`, divided by the
median of the default on these very rows. `forest` has 100 trees of depth 8 behind a scaler, `perceptron` 50 units behind one.
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

from gradual_cf.all import PLAUSIBLE, GradualCF, load_task, reasons, tabular
from gradual_cf.core import atomic
from clock import cpu
from installed import install
from models import LOAD, PEERS, boosted

MODELS = ('lightgbm', 'xgboost', 'catboost', 'forest', 'logistic', 'perceptron', 'network')
PARTS = (*MODELS, 'many', 'large')


def ms(f): return 1e3*cpu(f)  # CPU milliseconds of one call


def nice(said, x, y, new):
    "NICE on numbers, as a function of the number of a row."
    from nice import NICE
    e = NICE(predict_fn=said, X_train=x, cat_feat=[], num_feat=list(range(x.shape[1])), y_train=y, optimization='sparsity',
             justified_cf=True)
    return lambda i: e.explain(new[i:i + 1])


def network(rows):
    "The network of HELOC: its training rows, ours, rows to explain, and NICE on what the network reads."
    task = load_task('heloc')
    cf, some = GradualCF(task.model, task.domain, 'sparse').fit(task.X), task.X_test.iloc[:rows]
    def said(x):
        with torch.no_grad(): return task.model(torch.as_tensor(x, dtype=torch.float32)).softmax(1).numpy()
    x = cf.x_train.numpy()
    return task.X, cf, some, nice(said, x, said(x).argmax(1), cf.encode(some).x.numpy())


def model_of(name, data):
    "A model fitted on a frame, in one thread."
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    behind = dict(forest=RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1),
                  logistic=LogisticRegression(max_iter=1000), perceptron=MLPClassifier((50,), max_iter=60, random_state=0))
    return make_pipeline(StandardScaler(), behind[name]) if name in behind else boosted(name, data)


def fitted(name, rows):
    "The same of a model that is fitted on the frame."
    data = LOAD['heloc'](rows)
    model, names = model_of(name, data).fit(data.X, data.y), data.X.columns
    said = lambda x: model.predict_proba(pd.DataFrame(x, columns=names, copy=False))
    peer = nice(said, data.X.to_numpy(float), data.y, data.rows.to_numpy(float))
    return data.X, GradualCF(model, tabular(data.X), 'sparse').fit(data.X), data.rows, peer


def singles(name, rows, few):
    "Single rows of one model."
    try: X, cf, some, peer = network(rows) if name == 'network' else fitted(name, rows)
    except ImportError as e: return print(f'{name} is left out: {e}')
    preset = GradualCF(cf.model, cf.domain, PLAUSIBLE).fit(X)
    one = lambda i: some.iloc[[i]]
    ours, theirs = lambda i: ms(lambda: cf.explain(one(i))), lambda i: ms(lambda: peer(i))
    ours(0), theirs(0) # the first calls import
    pairs = np.array([(ours(i), theirs(i)) for i in range(len(some))])
    labels, other = cf.classes or (0, 1), (1 - cf.logits(some, cf.encode(some).x).argmax(1)).tolist()
    others = dict(plausible=lambda i: preset.explain(one(i)), four=lambda i: cf.explain_many(one(i), k=4),
                  reasons=lambda i: reasons(cf, one(i), target=labels[other[i]]))
    more = np.array([(ours(i), *(ms(lambda: f(i)) for f in others.values())) for i in range(min(few, len(some)))])
    told = dict(mean=pairs.mean(0), ms=np.median(pairs, 0), high=np.quantile(pairs, .9, axis=0))
    usual, *rest = np.median(more, 0)
    yield dict(part=name, rows=len(some), **{what: v[0] for what,v in told.items()},
               **{f'nice_{what}': v[1] for what,v in told.items()}, **{f'ratio_{what}': v[0]/v[1] for what,v in told.items()},
               **{what: v/usual for what,v in zip(others, rest)})


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
            took.append(ms(lambda: cf.explain(some)))
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
        yield dict(part='large', what=name, rows=rows, ms=ms(lambda: cf.explain(X.iloc[:rows]))/rows)


def lines(a, part):
    "The lines of one part."
    return list(many() if part == 'many' else large() if part == 'large' else singles(part, a.rows, a.few))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=60)
    a.add_argument('--few', type=int, default=10)
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
            df = pd.DataFrame(old).dropna(axis=1, how='all').sort_values('part', key=lambda s: s.map(PARTS.index), kind='stable')
            print(df[df.part == part].round(3).to_string(), flush=True)
            with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
