"""One row at a time: CPU milliseconds of a single answer beside NICE, on seven models of HELOC.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/one_row.py [--rows 60] [--few 10] [--peers DIR] [--only lightgbm network …] [--out FILE]

Each row is asked of ours and of NICE (sparsity) in turn, in one thread; `ratio_…` divides means, medians and ninth deciles
of the same rows. NICE is as lean as it can rightly be: its model function puts its numbers into a frame with the names that
the model was fitted on, as one block of floats, or for the network asks the layers themselves. `plausible`, `four` and
`reasons` are medians of --few rows under the preset PLAUSIBLE, for `explain_many(k=4)` and for `reasons`, divided by the
median of the default on these very rows. `forest` has 100 trees of depth 8 behind a scaler, `perceptron` 50 units behind one.
--only keeps the other lines of the file.
"""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from clock import cpu
from installed import install
from models import LOAD, boosted
from options import RESULTS, options

from gradual_cf.all import PLAUSIBLE, GradualCF, load_task, reasons, tabular
from gradual_cf.core import atomic

MODELS = 'lightgbm', 'xgboost', 'catboost', 'forest', 'logistic', 'perceptron', 'network'


def nice(said, x, y, new):
    "NICE on numbers, as a function of the number of a row."
    from nice import NICE
    e = NICE(predict_fn=said, X_train=x, cat_feat=[], num_feat=list(range(x.shape[1])), y_train=y, optimization='sparsity', justified_cf=True)
    return lambda i: e.explain(new[i:i + 1])


def network(rows):
    "The network of HELOC: its training rows, ours, rows to explain, and NICE on what the network reads."
    task = load_task('heloc')
    cf, some = GradualCF(task.model, task.domain, 'sparse').fit(task.X), task.X_test.iloc[:rows]
    def said(x):
        with torch.no_grad(): return task.model(torch.as_tensor(x, dtype=torch.float32)).softmax(1).numpy()
    x = cf.x_train.numpy()
    return task.X, cf, some, nice(said, x, said(x).argmax(1), cf.encode(some).x.numpy())


def fitted(name, rows):
    "The same of a model that is fitted on the frame, in one thread."
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    behind = dict(forest=RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1),
                  logistic=LogisticRegression(max_iter=1000), perceptron=MLPClassifier((50,), max_iter=60, random_state=0))
    data = LOAD['heloc'](rows)
    model = (make_pipeline(StandardScaler(), behind[name]) if name in behind else boosted(name, data)).fit(data.X, data.y)
    said = lambda x: model.predict_proba(pd.DataFrame(x, columns=data.X.columns, copy=False))
    peer = nice(said, data.X.to_numpy(float), data.y, data.rows.to_numpy(float))
    return data.X, GradualCF(model, tabular(data.X), 'sparse').fit(data.X), data.rows, peer


def line(name, rows, few):
    "Single rows of one model."
    X, cf, some, peer = network(rows) if name == 'network' else fitted(name, rows)
    preset, one, ms = GradualCF(cf.model, cf.domain, PLAUSIBLE).fit(X), lambda i: some.iloc[[i]], lambda f, i: 1e3*cpu(lambda: f(i))
    ours = lambda i: cf.explain(one(i))
    ours(0), peer(0) # the first calls import
    pairs = np.array([(ms(ours, i), ms(peer, i)) for i in range(len(some))])
    labels, other = cf.classes or (0, 1), (1 - cf.logits(some, cf.encode(some).x).argmax(1)).tolist()
    others = dict(plausible=lambda i: preset.explain(one(i)), four=lambda i: cf.explain(one(i), k=4),
                  reasons=lambda i: reasons(cf, one(i), target=labels[other[i]]))
    usual, *rest = np.median([[ms(f, i) for f in (ours, *others.values())] for i in range(min(few, len(some)))], 0)
    told = dict(mean=pairs.mean(0), ms=np.median(pairs, 0), high=np.quantile(pairs, .9, axis=0))
    return dict(part=name, rows=len(some), **{what: v[0] for what,v in told.items()}, **{f'nice_{what}': v[1] for what,v in told.items()},
                **{f'ratio_{what}': v[0]/v[1] for what,v in told.items()}, **{what: v/usual for what,v in zip(others, rest)})


def main():
    a = options(__doc__, needs_data=True, rows=60, few=10, peers=Path, only=MODELS, out=RESULTS/'one_row.csv')
    old = {known['part']: known for known in pd.read_csv(a.out).to_dict('records')} if a.out.exists() else {}
    with tempfile.TemporaryDirectory() as d:
        install(a.peers or Path(d), ['NICEx==0.2.3'])
        for part in a.only:
            old[part] = line(part, a.rows, a.few)
            print({k: v if k == 'part' else round(v, 3) for k,v in old[part].items()}, flush=True)
            with atomic(a.out) as tmp: pd.DataFrame([old[name] for name in MODELS if name in old]).round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
