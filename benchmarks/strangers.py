"""Tables and models as strangers bring them: is every answer valid, legal, written as the column is, and is nothing nearer?

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/strangers.py [--rows 10] [--only german svc] [--out benchmarks/results/strangers.csv]

Ten tables as they come from their files, one of columns that were made with heavy tails, and twelve kinds of models in the
pipelines that people write for them, fitted on at most 2,000 rows with nothing tuned. Rows that the model decides against get
the default answer. Everything is judged by the model's own `predict` and by numpy, by code that shares nothing with the search:

`answers`: rows that got one; `denied`: of these, how many the model does not decide as wanted; `illegal`: values out of the
training rows' range or levels, of another dtype, fractions of whole numbers, or what `domain.legal` refuses; `decimals`: changed
numbers with more decimals than any training number of the column; `single`: answers of one changed number; `farther`: how many of
these lie farther from the row than some training value (at most 400 of them, evenly by rank) that does as well, by more than one
step of the column; `gap`: by how much at most, as a share of the range; `missed`: rows without an answer, though some training
value of one column alone does; `ms`: time of a row.
"""
import os
import time
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import compose, ensemble, impute, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree
from options import RESULTS, options

from gradual_cf.core import atomic
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

TRAIN, SCANNED = 2000, 400


def file(name, label, wanted, drop=()):
    "A table of the data folder: raw columns, words as categories, and the wanted class."
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/name)
    df = df[df[label].notna()].sample(frac=1, random_state=0)[:TRAIN].reset_index(drop=True)
    X = df.drop(columns=[label, *[c for c in drop if c in df]])
    X = X.astype({c: 'category' for c in X if X[c].dtype.kind not in 'iufb'})
    return X.astype({c: int for c in X if X[c].dtype == bool}), (wanted(df[label]) if callable(wanted) else df[label] == wanted).astype(int).to_numpy()


def tails():
    "Columns of ratios, sums and times with heavy tails, an outlier, zeros, 32 bits and missing cells."
    r, n = np.random.default_rng(0), TRAIN
    X = pd.DataFrame(dict(
        ratio=np.r_[r.random(n - 1), 5000.], debt=np.where(r.random(n) < .6, 0, r.lognormal(3, 3, n)), income=r.lognormal(8, 1, n).round(2),
        share=r.lognormal(-1, 2, n).round(9), late=np.where(r.random(n) < .1, np.nan, r.poisson(1, n)), heat=r.normal(36.8, .7, n).round(1),
        gain=r.pareto(.7, n), single=r.lognormal(0, 3, n).astype('f4'), score=r.standard_cauchy(n)))
    z = 2*(X.ratio < .3) + .3*np.log(X.income) - .5*X.late.fillna(1) + np.tanh(X.score) + (X.share > .2) + r.normal(0, .5, n)
    return X, (z > z.median()).astype(int).to_numpy()


TABLES = dict(
    adult=lambda: file('tables/adult.csv', 'class', lambda s: s.str.contains('>50K')),
    audit=lambda: file('tables/audit.csv', 'Risk', 0, ['LOCATION_ID']),
    bank=lambda: file('tables/bank_marketing.csv', 'y', lambda s: s.astype(str).isin(['yes', '1']), ['Unnamed: 0']),
    car=lambda: file('tables/car_eval.csv', 'acceptability', lambda s: s != 'unacc'),
    compas=lambda: file('tables/compas.csv', 'two_year_recid', 0, ['compas_screening_date', 'c_jail_in', 'c_jail_out']),
    german=lambda: file('tables/german_credit.csv', 'default', 0),
    heloc=lambda: file('heloc/heloc_dataset_v1.csv', 'RiskPerformance', 'Good'),
    law=lambda: file('tables/law.csv', 'pass_bar', 1, ['ID', 'bar', 'bar1', 'bar2', 'bar_passed', 'dnn_bar_pass_prediction', 'bar1_yr', 'bar2_yr']),
    uci=lambda: file('uci_credit/UCI_Credit_Card.csv', 'default.payment.next.month', 0, ['ID']),
    wine=lambda: file('tables/wine.csv', 'Target', lambda s: s == s.iloc[0]),
    tails=tails)


def library(name, **how):
    "A model of a library that may be missing."
    import importlib
    module, cls = name.split('.')
    return getattr(importlib.import_module(module), cls)(**how)


MODELS = dict(
    logistic=lambda: linear_model.LogisticRegression(max_iter=500), bayes=naive_bayes.GaussianNB, neighbours=lambda: neighbors.KNeighborsClassifier(15),
    svc=lambda: svm.SVC(), perceptron=lambda: neural_network.MLPClassifier((16,), max_iter=200, random_state=0),
    tree=lambda: tree.DecisionTreeClassifier(max_depth=8, random_state=0), forest=lambda: ensemble.RandomForestClassifier(50, random_state=0),
    boosting=lambda: ensemble.GradientBoostingClassifier(n_estimators=50, random_state=0), hist=lambda: ensemble.HistGradientBoostingClassifier(max_iter=50, random_state=0),
    xgboost=lambda: library('xgboost.XGBClassifier', n_estimators=50, n_jobs=1), lightgbm=lambda: library('lightgbm.LGBMClassifier', n_estimators=50, n_jobs=1, verbose=-1),
    catboost=lambda: library('catboost.CatBoostClassifier', iterations=50, verbose=0, thread_count=1, allow_writing_files=False))


def piped(X, model):
    "The usual pipeline: numbers filled in and scaled, words filled in and one-hot."
    numbers = [c for c in X if not isinstance(X[c].dtype, pd.CategoricalDtype)]
    words = pipeline.make_pipeline(impute.SimpleImputer(strategy='most_frequent'), preprocessing.OneHotEncoder(handle_unknown='ignore', sparse_output=False))
    scaled = pipeline.make_pipeline(impute.SimpleImputer(strategy='median'), preprocessing.StandardScaler())
    return pipeline.make_pipeline(compose.make_column_transformer((scaled, numbers), (words, [c for c in X if c not in numbers])), model)


def most_decimals(s):
    "The most decimals with which a column is written, in its own dtype."
    return max((max(-int(Decimal(str(v)).normalize().as_tuple().exponent), 0) for v in s.dropna().unique()), default=0)


def illegal(X, rows, raw):
    "Cells that changed into what no training row could hold."
    bad = 0
    for c in X:
        if raw[c].dtype != rows[c].dtype: bad += len(raw)
        moved = (raw[c].astype(object) != rows[c].astype(object)) & ~(raw[c].isna() & rows[c].isna())
        new, known = raw[c][moved], X[c].dropna()
        if isinstance(X[c].dtype, pd.CategoricalDtype): bad += (~new.isin(known)).sum()
        else:
            v = new.to_numpy(float)
            bad += ((v < known.min()) | (v > known.max())).sum()
            if (known % 1 == 0).all(): bad += (v % 1 != 0).sum()
    return int(bad)


def scanned(X, model, rows, label, c):
    "For each row the training values of a column that alone do as well."
    v = np.sort(X[c].dropna().unique())
    v = v[np.unique(np.linspace(0, len(v) - 1, min(SCANNED, len(v))).astype(int))]
    trial = rows.loc[rows.index.repeat(len(v))].assign(**{c: np.tile(v, len(rows)).astype(X[c].dtype)})
    return v, (model.predict(trial).reshape(-1) == label).reshape(len(rows), len(v))


def measured(table, name, asked):
    "One table and one model."
    X, y = TABLES[table]()
    model = piped(X, MODELS[name]())
    model.fit(X, y)
    refused = X[np.asarray(model.predict(X)).reshape(-1) == 0]
    domain = tabular(X)
    cf = GradualCF(model, domain, 'sparse').fit(X)
    rows = refused[:asked]
    if not len(rows): return None
    start = time.perf_counter()
    cfs = cf.explain(rows, 1)
    spent = time.perf_counter() - start
    valid, raw = np.asarray(cfs.valid), cfs.raw
    found = raw[valid]
    out = dict(table=table, model=name, rows=len(rows), answers=int(valid.sum()), denied=int((np.asarray(model.predict(found)).reshape(-1) != 1).sum()) if len(found) else 0)
    out['illegal'] = illegal(X, rows, raw) + int((~domain.legal(rows, raw)).sum())
    changes = cfs.changes()
    changes = changes[valid[changes.row.to_numpy()]]
    numbers = {c.name: c for c in domain.features if c.ordered}
    most = {c: most_decimals(X[c]) for c in numbers}
    out['decimals'] = sum(most_decimals(pd.Series([after]).astype(X[c].dtype)) > most[c] for c, after in zip(changes.feature, changes.after) if c in numbers)
    single = changes.groupby('row').filter(lambda lines: len(lines) == 1)
    single = single[single.feature.isin(list(numbers))]
    gaps = []
    for line in single.itertuples():
        if pd.isna(line.before): continue
        v, does = scanned(X, model, rows.iloc[[line.row]], 1, line.feature)
        if not does.any(): continue
        gap = abs(float(line.after) - float(line.before)) - np.abs(v[does[0]].astype(float) - float(line.before)).min()
        column = numbers[line.feature]
        if gap > 1.000001*column.step: gaps.append(gap/((column.high - column.low) or 1))
    out |= dict(single=len(single), farther=len(gaps), gap=round(max(gaps, default=0.), 5))
    lost = rows[~valid]
    out['missed'] = int(np.any([scanned(X, model, lost, 1, c)[1].any(1) for c in numbers], 0).sum()) if len(lost) else 0
    return out | dict(ms=round(1000*spent/len(rows), 1))


def main():
    a = options(__doc__, rows=10, only=[*TABLES, *MODELS], out=RESULTS/'strangers.csv')
    tables, models = ([n for n in names if n in a.only] or list(names) for names in (TABLES, MODELS))
    lines = []
    for table in tables:
        for name in models:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                line = measured(table, name, a.rows)
            if line is None: continue
            lines.append(line)
            print(*(f'{k}={v}' for k, v in line.items()), flush=True)
            with atomic(a.out) as tmp: pd.DataFrame(lines).to_csv(tmp, index=False)
    out = pd.DataFrame(lines)
    print(out.drop(columns=['table', 'model', 'gap', 'ms']).sum().to_string())


if __name__ == '__main__': main()
