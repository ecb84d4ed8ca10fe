"""Models that are sums of one term a column: what one row costs, and how much is proven, on five tables.

    GRADUAL_CF_DATA=... OMP_NUM_THREADS=1 python benchmarks/sums.py [--rows 200] [--only EBM …] [--out benchmarks/results/sums.csv]

Fewest columns and nearest answers of refused rows. Milliseconds of processor time: the first row, in which a model is read; one row at a time,
median and 90%; a row of all together. `proven` counts certified answers, `false` those that the model's own `predict` denies.
"""
import argparse
import os
import time
import warnings

import numpy as np
import pandas as pd
from boxes_tables import TABLES, table
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler, TargetEncoder
from tqdm.auto import tqdm

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_heloc
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

OTHERS = dict(german_credit=({}, [], 'default', 0),
              compas=({}, ['compas_screening_date', 'c_jail_in', 'c_jail_out', 'decile_score', 'score_text', 'age_cat', 'days_b_screening_arrest'],
                      'two_year_recid', 0))  # as in `boxes_tables`
TRAINED = 4000
ALONE = 20  # Rows that are asked about one at a time


def rows_of(name):
    "Rows and labels to fit on, and the others."
    if name != 'heloc': return table(name, TABLES | OTHERS, TRAINED)
    X, y, others, _ = load_heloc(os.environ['GRADUAL_CF_DATA'])
    return X[:TRAINED], np.asarray(y)[:TRAINED], others


def behind(words, numbers, last):
    return make_pipeline(make_column_transformer((words, make_column_selector(dtype_include='category')), remainder=numbers), last)


def ebm(X, y, pairs):
    from interpret.glassbox import ExplainableBoostingClassifier
    return ExplainableBoostingClassifier(interactions=pairs, n_jobs=1, random_state=0).fit(X, y)


def scorecard(X, y):
    from optbinning import BinningProcess, Scorecard
    named = list(X.select_dtypes('category'))
    return Scorecard(BinningProcess(list(X), categorical_variables=named), LogisticRegression(max_iter=2000)).fit(X.astype({c: object for c in named}), y)


def line(): return LogisticRegression(max_iter=3000)


def bits(): return OneHotEncoder(handle_unknown='ignore', sparse_output=False)


KINDS = {'logistic': lambda X, y: behind(bits(), StandardScaler(), line()).fit(X, y),
         'splines': lambda X, y: behind(bits(), make_pipeline(StandardScaler(), SplineTransformer(5)), line()).fit(X, y),
         'target encoding': lambda X, y: behind(TargetEncoder(random_state=0), StandardScaler(), line()).fit(X, y),
         'GaussianNB': lambda X, y: behind(bits(), 'passthrough', GaussianNB(var_smoothing=1e-3)).fit(X, y),
         'BernoulliNB': lambda X, y: behind(bits(), StandardScaler(), BernoulliNB()).fit(X, y),
         'EBM': lambda X, y: ebm(X, y, 0), 'EBM with pairs': lambda X, y: ebm(X, y, 8), 'scorecard': scorecard}


def one(name, kind, n):
    "Every figure of one model of one table."
    X, y, others = rows_of(name)
    model = KINDS[kind](X, y)
    domain = tabular(X)
    said = np.ravel(model.predict(others))
    asked, out = others[said == 0].head(n), []
    cf = GradualCF(model, domain, 'sparse').fit(X)
    for optimal in ('columns', 'distance'):
        def spent(rows):
            begin = time.process_time()
            answers = cf.explain(rows, 1, optimal=optimal)
            return 1e3*(time.process_time() - begin), answers
        first, _ = spent(asked.head(1))
        alone = [spent(asked.iloc[[i]])[0] for i in range(1, min(len(asked), ALONE + 1))]
        together, answers = spent(asked)
        proven = sum(told in ('optimal', 'none exists') for told in answers.proof)
        false = int((answers.valid & (np.ravel(model.predict(answers.raw)) != 1)).sum())
        out.append(dict(table=name, kind=kind, optimal=optimal, rows=len(asked), first=round(first, 1), alone=round(np.median(alone), 1),
                        high=round(np.quantile(alone, .9), 1), together=round(together/len(asked), 2), proven=proven, false=false))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--rows', type=int, default=200)
    p.add_argument('--only', nargs='+', default=list(KINDS))
    p.add_argument('--tables', nargs='+', default=['heloc', *TABLES, *OTHERS])
    p.add_argument('--out', default='benchmarks/results/sums.csv')
    args = p.parse_args()
    lines = []
    for name in tqdm(args.tables, desc='tables'):
        for kind in args.only:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                try: new = one(name, kind, args.rows)
                except ImportError as missing:
                    print(f'{kind}: {missing}')
                    continue
            lines += new
            for told in new: print(*told.values(), sep=' | ', flush=True)
    df = pd.DataFrame(lines)
    with atomic(args.out) as path: df.to_csv(path, index=False)
    print(df.groupby(['kind', 'optimal'])[['together', 'alone', 'high']].median().unstack())
    print(f'{df.proven.sum()} of {df.rows.sum()} proven, {df.false.sum()} false')


if __name__ == '__main__': main()
