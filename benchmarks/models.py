"""Fitted models as they are, on raw frames: the default on Adult and HELOC, for six models.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/models.py [--rows 1000]
        [--data adult heloc] [--models logistic forest hist xgboost lightgbm catboost] [--out FILE]

Rows aim at the class that the model's own `predict` does not say. On Adult sex, race and country must stay and age may only grow.

Measured by pandas and the model itself: valid (its `predict` of the returned frame is the target), columns changed,
L2 (numbers in ranges of their column, 1 for each changed category), missing cells that were filled. Legal is the
domain's word. Legal, columns and L2 are means over valid rows. Times are CPU milliseconds a row; `single` is the median
of 20 calls with one row each. `ours` is the default, which reads trees exactly where it can; `ours, adapter` asks such a
model as a mere function.
"""
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from options import RESULTS, options

from gradual_cf.all import GradualCF, load_heloc, tabular
from gradual_cf.core import atomic
from gradual_cf.models.fitted import predictor

RULES = dict(adult=dict(immutable=['sex', 'race', 'native-country'], increase_only=['age']), heloc={})
TREES = ('hist', 'xgboost', 'lightgbm') # Read exactly by themselves, so that the adapter is measured beside


@dataclass
class Data:
    "A table in two parts."
    name:str
    X:pd.DataFrame      # Training rows
    y:np.ndarray        # Their labels, 0 or 1
    rows:pd.DataFrame   # Rows to explain
    note:str = ''
    missing:bool = False # Whether what is missing was left missing

    @property
    def label(self): return self.name + (', missing' if self.missing else '')

    @property
    def categories(self): return list(self.X.select_dtypes('category'))


@dataclass
class Case:
    "A fitted model and what is asked of it."
    data:Data
    name:str
    model:Any
    domain:Any
    target:np.ndarray # The other class, by the model's own `predict`, for each row


def load_adult(n, missing=False):
    "Adult: without the weight of sampling, and without the second column that says the education."
    path = Path(os.environ['GRADUAL_CF_DATA'])/'tables/adult.csv'
    df = pd.read_csv(path, skipinitialspace=True, na_values=['?'] if missing else [], keep_default_na=False)
    df = df.drop(columns=['fnlwgt', 'education-num']).drop_duplicates()
    X, y = df.drop(columns='class'), (df['class'] == '>50K').to_numpy(int)
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(0).permutation(len(X))
    cut = len(X)*4//5
    train, test = order[:cut], order[cut:]
    note = "its '?' as missing" if missing else ''
    return Data('adult', X.iloc[train], y[train], X.iloc[test[:n]], note, missing)


def load_credit(n, missing=False):
    "HELOC: its codes as they are, or as missing cells."
    X, y, Xt, _ = load_heloc()
    order = np.random.default_rng(0).permutation(len(Xt))
    if not missing: return Data('heloc', X, y.to_numpy(), Xt.iloc[order[:n]])
    blank = lambda df: df.astype(float).mask(df.isin([-7, -8, -9]))
    X, Xt = blank(X), blank(Xt.iloc[order])
    there, some = X.notna().any(axis=1), Xt.notna().any(axis=1)
    out = f'{(~there).sum()} training and {(~some).sum()} test rows'
    note = f'its codes as missing; {out} that are all missing left out'
    return Data('heloc', X[there], y[there].to_numpy(), Xt[some].iloc[:n], note, True)


LOAD = dict(adult=load_adult, heloc=load_credit)


def fitted(name, data):
    "One of the six, with 100 trees where it has trees, in one thread."
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    if name == 'hist': model = HistGradientBoostingClassifier(random_state=0)
    elif name == 'logistic': model = LogisticRegression(max_iter=1000)
    elif name == 'forest': model = RandomForestClassifier(100, random_state=0, n_jobs=1)
    else: model = boosted(name, data)
    if name in ('logistic', 'forest'):
        numbers = StandardScaler() if name == 'logistic' else 'passthrough'
        one_hot = (OneHotEncoder(handle_unknown='ignore'), data.categories)
        first = make_column_transformer(one_hot, remainder=numbers) if data.categories else numbers
        if first != 'passthrough': model = make_pipeline(first, model)
    return model.fit(data.X, data.y)


def boosted(name, data):
    "A model of a library of its own."
    if name == 'xgboost':
        from xgboost import XGBClassifier
        return XGBClassifier(n_estimators=100, enable_categorical=True, n_jobs=1, random_state=0)
    if name == 'lightgbm':
        from lightgbm import LGBMClassifier
        return LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbose=-1)
    from catboost import CatBoostClassifier
    quiet = dict(verbose=False, allow_writing_files=False)
    return CatBoostClassifier(iterations=100, cat_features=data.categories, thread_count=1, random_seed=0, **quiet)


MODELS = ('logistic', 'forest', 'hist', 'xgboost', 'lightgbm', 'catboost')


def said(model, frame):
    "What the model itself decides."
    return np.asarray(model.predict(frame)).ravel().astype(int)


def same(a, b):
    "Which cells of two columns are the same; a missing cell is the same as a missing cell."
    equal = a.astype(object).to_numpy() == b.astype(object).to_numpy()
    return equal | (a.isna().to_numpy() & b.isna().to_numpy())


def steps(data, old, new):
    "How far each cell went: numbers in ranges of their column, 1 for a category and for a cell that came or went."
    out = np.zeros(old.shape)
    for j, c in enumerate(old):
        moved = ~same(old[c], new[c])
        if c not in data.categories:
            span = (data.X[c].max() - data.X[c].min()) or 1
            far = (new[c].astype(float) - old[c].astype(float)).abs().to_numpy()/span
            out[:, j] = np.where(moved & ~np.isnan(far), far, moved)
        else: out[:, j] = moved
    return out


def named(case, method, n):
    "Which line of the table it is."
    return dict(data=case.data.label, model=case.name, method=method, rows=n)


def measured(case, method, found, seconds, note='', **more):
    "One line of the table."
    n = len(found)
    old = case.data.rows.iloc[:n]
    new = found
    valid = said(case.model, new) == case.target[:n]
    legal = case.domain.legal(old, new).all(axis=1)
    moved = np.stack([~same(old[c], new[c]) for c in old], 1)
    far = np.sqrt((steps(case.data, old, new)**2).sum(1))
    gone, filled = old.isna().to_numpy(), (old.isna() & new.notna()).to_numpy()
    mean = lambda v: float(v[valid].mean()) if valid.any() else np.nan
    line = named(case, method, n) | dict(valid=float(valid.mean()), legal=mean(legal), columns=mean(moved.sum(1)),
                                         l2=mean(far), ms=1e3*seconds, **more, note=note)
    if gone.any(): line |= dict(missing=int(gone.sum()), filled=int(filled.sum()))
    print({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}, flush=True)
    return line


def ours(case, method='ours', model=None, alone=20):
    "The default on all rows in one call, and on single rows."
    start = time.process_time()
    cf = GradualCF(case.model if model is None else model, case.domain, 'sparse').fit(case.data.X)
    ready, start, single = time.process_time() - start, time.process_time(), []
    answer = cf.explain(case.data.rows, target=case.target)
    seconds = (time.process_time() - start)/len(case.target)
    for i in range(min(alone, len(case.target))):
        start = time.process_time()
        cf.explain(case.data.rows.iloc[[i]], target=case.target[[i]])
        single.append(time.process_time() - start)
    note = '; '.join(filter(None, [case.data.note, f'{ready:.1f} s to fit, {cf.model!r}']))
    return measured(case, method, answer.raw, seconds, note, single=1e3*statistics.median(single))


def case_of(data, name):
    "A model fitted on data, and its domain."
    model = fitted(name, data)
    return Case(data, name, model, tabular(data.X, **RULES[data.name]), 1 - said(model, data.rows))


def adapted(case):
    "The same model as a function of a frame: nothing is known of its inside."
    return predictor(case.model.predict_proba, case.domain, names=list(case.data.X))


def compare(case):
    "The lines of one model."
    made = [ours(case)]
    bare = case.name == 'forest' and not case.data.categories # no pipeline around it
    if case.name in TREES or bare: made.append(ours(case, 'ours, adapter', adapted(case)))
    return made


def lines_of(a):
    "The lines of each model: first whole tables, then missing cells."
    for name in a.data:
        data = LOAD[name](a.rows)
        for model in a.models: yield asked(data, model)
    for name in a.data: yield asked(LOAD[name](a.rows, missing=True), 'lightgbm')


def asked(data, model):
    "The lines of one model; a single one where its library is not here."
    try: case = case_of(data, model)
    except ImportError as e: return [dict(data=data.label, model=model, method='ours', rows=0, note=f'skipped: {e}')]
    return compare(case)


def main():
    a = options(__doc__, needs_data=True, rows=1000, data=LOAD, models=MODELS, out=RESULTS/'models.csv')
    lines = []
    for more in lines_of(a):
        lines += more
        with atomic(a.out) as tmp: table(lines).to_csv(tmp, index=False)
    print(table(lines).drop(columns='note').to_string())


def table(lines):
    "The lines as a table, the note last."
    df = pd.DataFrame(lines).round(4)
    return df[[c for c in df if c != 'note'] + ['note']]


if __name__ == '__main__': main()
