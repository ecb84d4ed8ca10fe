"""Models as mere functions, on a budget of sixty rows, beside the same question without a limit: ten tables.

    GRADUAL_CF_DATA=… python benchmarks/functions_of_rows.py [--rows 12] [--seed 13] [--budget 60]

Boosted trees (LightGBM) and a support vector machine in a pipeline, each behind a function that gives probabilities of a frame and counts what it is
asked. `fit` asks about 300 training rows. Rows are drawn from those that no plan was shaped on (`--seed 13`). A line of
`results/functions_of_rows.csv` is a table and a model: `valid`, `columns` and `most_rows` on the budget; `valid_unlimited`, `columns_unlimited` and
`rows_unlimited` without; `ratio` of columns over the rows that both answered; `calls`; `seconds`: what an answer costs in the median if a row
takes .3 s and a call 1 s more; `ms`: CPU time of our own for an answer, the model's included. Whether an answer is one says the model's own `predict`.
"""
import argparse
import time

import lightgbm
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from benchmarks.field.tables import TABLES, load
from gradual_cf.all import GradualCF, predictor, tabular
from gradual_cf.core import atomic

A_ROW, A_CALL, FIT = .3, 1., 300


def models():
    "Kind -> a model that is not fitted yet."
    words = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), make_column_selector(dtype_include='category')), remainder=StandardScaler())
    return dict(LightGBM=lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0), SVC=make_pipeline(words, SVC(probability=False)))


class Service:
    "A model as a function of frames that counts; of two classes a decision, of several shares."
    def __init__(self, model): self.model, self.rows, self.calls = model, 0, 0
    def __call__(self, frame):
        self.calls, self.rows = self.calls + 1, self.rows + len(frame)
        if hasattr(self.model, 'predict_proba'): return self.model.predict_proba(frame)
        said = self.model.decision_function(frame)
        return said if said.ndim == 1 else np.exp(said)/np.exp(said).sum(1, keepdims=True)


def answered(cf, model, asked, target, **limit):
    "One answer after the other: whether it is one, columns, rows and calls asked, and CPU seconds."
    told = []
    for i in range(len(asked)):
        begin = time.process_time()
        a = cf.explain(asked.iloc[[i]], target[i], **limit)
        spent = time.process_time() - begin
        valid = bool(a.valid[0])
        if valid:
            said = model.predict(cf.domain.decode(a.xp))[0]
            assert said == cf.classes[target[i]], f'{said} is not {cf.classes[target[i]]}'
        told.append((valid, a.changed.sum() if valid else np.nan, a.rows, a.calls, spent))
    return np.array(told, float)


def line(name, kind, model, rows, seed, budget):
    "A table and a model."
    t = load(name)
    model.fit(t.X, t.y)
    domain, service, k = tabular(t.X, **t.rules), Service(model), len(np.unique(t.y))
    how = 'decision' if kind == 'SVC' and k == 2 else 'proba'
    cf = GradualCF(predictor(service, domain, kind=how), domain, 'sparse', classes=list(range(k))).fit(t.X, sample=FIT)
    heard = service.rows
    whole = GradualCF(predictor(Service(model), domain, kind=how), domain, 'sparse', classes=list(range(k))).fit(t.X)
    pool = t.pool.sample(len(t.pool), random_state=seed)
    said = model.predict(pool)
    want = np.full(len(pool), t.wanted) if t.wanted is not None else (said + 1) % k
    asked = pool[said != want].head(rows)
    target = want[said != want][:rows]
    few, free = (answered(cf, model, asked, target, rows=budget), answered(whole, model, asked, target))
    both = (few[:, 0] > 0) & (free[:, 0] > 0)
    cost = A_ROW*few[:, 2] + A_CALL*few[:, 3]
    return dict(data=name, model=kind, n=len(asked), valid=few[:, 0].mean(), valid_unlimited=free[:, 0].mean(), columns=np.nanmean(few[:, 1]),
                columns_unlimited=np.nanmean(free[:, 1]), ratio=few[both, 1].sum()/free[both, 1].sum(), most_rows=few[:, 2].max(),
                rows_unlimited=free[:, 2].mean(), calls=few[:, 3].mean(), seconds=np.median(cost), fit_rows=heard, ms=1e3*few[:, 4].mean())


if __name__ == '__main__':
    options = argparse.ArgumentParser()
    options.add_argument('--rows', type=int, default=12)
    options.add_argument('--seed', type=int, default=13)
    options.add_argument('--budget', type=int, default=60)
    options.add_argument('--only', nargs='+', default=[*TABLES])
    options.add_argument('--out', default='benchmarks/results/functions_of_rows.csv')
    o = options.parse_args()
    lines = []
    for name in o.only:
        for kind, model in models().items():
            lines.append(line(name, kind, model, o.rows, o.seed, o.budget))
            print(lines[-1], flush=True)
            with atomic(o.out) as out: pd.DataFrame(lines).round(3).to_csv(out, index=False)
    print(pd.DataFrame(lines).round(2).to_string())
