"""The cheapest answers, proven, on tables with categories (Adult, Bank Marketing); the network of breast cancer.

    GRADUAL_CF_DATA=... OMP_NUM_THREADS=1 python benchmarks/boxes_tables.py [--rows 20] [--seconds 2] [--out benchmarks/results/boxes_tables.csv]

100 trees each as their makers fit them by default, a random forest of depth 8 behind an encoder; 8,000 training rows, refused rows that no model saw.
CatBoost is not among them: its models are only asked, so nothing is proven of them.
Columns of the table as in `benchmarks/boxes.py`. The network is asked with `--seconds 5 --gap .02`. Seconds are counted by the wall.
"""
import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from boxes import forest, hist, lightgbm, measured, xgboost

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_task
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

TABLES = dict(adult=(dict(skipinitialspace=True, keep_default_na=False), ['fnlwgt', 'education-num'], 'class', '>50K'),
              bank_marketing=(dict(index_col=0), [], 'y', 'yes'))  # how it is read, columns left out, label, its second class
TRAINED = 8000


def encoded_forest():
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    words = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), make_column_selector(dtype_include='category')), remainder='passthrough')
    return make_pipeline(words, forest())


def fitted(name, X, y):
    "A model of one make, with categories told as that make reads them."
    if name == 'XGBoost': return xgboost().set_params(enable_categorical=True).fit(X, y)
    if name == 'HistGradientBoosting': return hist().set_params(categorical_features='from_dtype').fit(X, y)
    return (encoded_forest() if name == 'forest of depth 8' else lightgbm()).fit(X, y)


def table(name, tables=TABLES, most=TRAINED):
    "Rows and labels to fit on, four of five at most, and the others."
    how, left_out, label, second = tables[name]
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/f'tables/{name}.csv', **how).drop(columns=left_out).drop_duplicates()
    df = df.sample(frac=1, random_state=0).reset_index(drop=True)
    y, n = (df.pop(label) == second).to_numpy(int), min(most, len(df)*4//5)
    for c in df.select_dtypes(['object', 'string']): df[c] = df[c].astype('category')
    return df[:n], y[:n], df[n:]


def questions(rows):
    "Every explainer with refused rows, seconds and gap."
    for name in TABLES:
        X, y, others = table(name)
        for make in ('XGBoost', 'LightGBM', 'HistGradientBoosting', 'forest of depth 8'):
            model = fitted(make, X, y)
            cf = GradualCF(model, tabular(X), 'sparse').fit(X)
            yield name, make, cf, others[np.ravel(model.predict(others)) == 0].head(rows), None, 0.
    task = load_task('breast_cancer')
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    refused = (cf.model(cf.encode(task.X_test).x).argmax(1) == 0).numpy()
    yield 'breast_cancer', 'network', cf, task.X_test[refused].head(rows), 5., .02


if __name__ == '__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--rows', type=int, default=20)
    ask.add_argument('--seconds', type=float, default=2.)
    ask.add_argument('--out', type=Path, default=Path(__file__).parent/'results/boxes_tables.csv')
    how = ask.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    lines = []
    for name, make, cf, rows, seconds, gap in questions(how.rows):
        cf.explain(rows.head(3), 1) # what is read once is read now
        for optimal in ('columns', 'distance'):
            lines.append(dict(table=name) | measured(make, cf, rows, optimal, seconds or how.seconds, gap))
            print({k: v if isinstance(v, (str, int)) else round(v, 3) for k, v in lines[-1].items()}, flush=True)
            with atomic(how.out) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)
