"""Numbers on the steps that training rows are written in: before and after steps are learnt, and what it costs.

    GRADUAL_CF_DATA=... python benchmarks/steps.py > benchmarks/results/steps.csv     # all tables, or those that are named
"""
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parent))
from field.tables import load
from gradual_cf.all import PLAUSIBLE, GradualCF, load_loans, tabular

ROWS, TIMES = 30, 3


def tables():
    X, y, rest, _ = load_loans(2500)
    yield 'loans', X, (y == 'granted').astype(int), rest, 1
    for name in ('german', 'uci', 'heloc'):
        t = load(name)
        yield name, t.X.head(2500), t.y[:2500], t.pool, t.wanted


def models(X):
    words = X.select_dtypes('category').columns
    numbers = make_pipeline(SimpleImputer(strategy='median'), StandardScaler())
    first = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), words), remainder=numbers)
    return dict(lightgbm=LGBMClassifier(n_estimators=80, num_leaves=15, verbose=-1, n_jobs=1), logistic=make_pipeline(first, LogisticRegression(max_iter=2000)))


def on_steps(cf, answers, which):
    "Of all numbers that changed, the share on the step of their column."
    columns, on = {c.name: c for c in cf.domain.features if c.ordered and not c.levels}, []
    for line in answers.changes().itertuples():
        c = columns.get(line.feature)
        if c is not None:
            step = c.usual if which == 'usual' and c.usual else c.step
            on.append(abs(line.after/step - round(line.after/step)) < 1e-6)
    return np.mean(on) if on else np.nan


def main():
    warnings.simplefilter('ignore')
    out = []
    for name, X, y, rest, wanted in tables():
        if sys.argv[1:] and name not in sys.argv[1:]: continue
        for kind, model in models(X).items():
            model.fit(X, y)
            rows = rest[model.predict(rest) != wanted].head(ROWS)
            for setting, settings in dict(default=None, plausible=PLAUSIBLE).items():
                told, took = {}, dict(tabular=[], explain=[])
                for _ in range(TIMES):
                    for how in ({}, None):
                        a = time.process_time()
                        domain = tabular(X, step=how)
                        b = time.process_time()
                        cf = GradualCF(model, domain, settings).fit(X)
                        c = time.process_time()
                        answers = cf.explain(rows, wanted)
                        took['tabular'].append(b - a), took['explain'].append(time.process_time() - c)
                        told[how is None] = cf, answers
                after, cf = told[True][1], told[True][0]
                distance = [(a.xp - a.x).abs().sum(1).numpy() for a in (told[False][1], after)]
                both = told[False][1].valid & after.valid
                ratio = {k: np.median(np.array(v[1::2])/np.array(v[::2])) for k, v in took.items()}
                out.append(dict(table=name, model=kind, settings=setting, rows=len(rows), before=on_steps(cf, told[False][1], 'step'), after=on_steps(cf, after, 'step'),
                                usual_before=on_steps(cf, told[False][1], 'usual'), usual_after=on_steps(cf, after, 'usual'), said=int('note' in after.changes() and (after.changes().note != '').sum()),
                                valid_before=told[False][1].valid.mean(), valid=after.valid.mean(), legal=cf.domain.legal(rows, after.raw).all(),
                                columns_before=told[False][1].changed[both].sum(1).mean(), columns=after.changed[both].sum(1).mean(), distance=np.median(distance[1][both]/distance[0][both]),
                                explain_ratio=ratio['explain'], ms=1e3*np.median(took['explain'][1::2])/len(rows), tabular_ratio=ratio['tabular'], tabular_ms=1e3*np.median(took['tabular'][1::2])))
                print(out[-1], file=sys.stderr)
    pd.DataFrame(out).round(3).to_csv(sys.stdout, index=False)


if __name__ == '__main__': main()
