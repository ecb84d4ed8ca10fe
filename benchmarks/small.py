"""Small tables by exhaustion: every legal row is put to the model, so the best answer there is is known.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/small.py [--rows 200] [--only german car] [--out benchmarks/results/small.csv]

Six columns of German Credit, Car Evaluation, six columns of COMPAS, and four of the embedded breast cancer in steps of its
deciles; in pipelines (scaler and one-hot encoder) a perceptron, gradient boosting, a random forest and a support vector machine,
which alone is only asked and never read. Refused rows towards the wanted class, as `explain` answers them by default.

`reach`: rows that have any answer; `unanswered`: how many of these got none; `columns`: share of answered rows with as few columns
as any answer has; `near`: share of these whose distance (L1) is within 1.05 of the nearest with as few; `worst`: the largest
such ratio. `proven`: share that says `optimal`; `false`: how many of them are not, or say that none exists where one does.
`l1_near`, `l1_proven` and `l1_false` are the same for `optimal='distance'`, a second a row, where the model is read.
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_breast_cancer
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF
from gradual_cf.search.proven import cheapest
from gradual_cf.search.readings import _has_bounds

CLOSE = 1e-6  # Probabilities so near to a half, and distances so near to each other, may count either way


def read(name, columns, label, wanted):
    "Some columns of a table, words as categories, and whether a row has the wanted label."
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/f'tables/{name}.csv').dropna(subset=[*columns, label])
    X = df[columns].reset_index(drop=True)
    words = {c: 'category' for c in X if X[c].dtype.kind not in 'iuf'}
    return X.astype(words), (df[label] == wanted).to_numpy().astype(int)


def german(): return read('german_credit', ['account_check_status', 'duration_in_month', 'credit_history', 'savings', 'installment_as_income_perc', 'housing'], 'default', 0)


def compas(): return read('compas', ['sex', 'age_cat', 'race', 'juv_misd_count', 'priors_count', 'c_charge_degree'], 'two_year_recid', 0)


def car():
    X, unacceptable = read('car_eval', ['buying', 'maint', 'doors', 'persons', 'lug_boot', 'safety'], 'acceptability', 'unacc')
    return X, 1 - unacceptable


def cancer():
    "Four columns in tenths of their rows: whole numbers 0 to 9."
    df, y = load_breast_cancer()[:2]
    X = df.iloc[:, [0, 1, 4, 7]].rank(pct=True)
    return (X*9).round().astype(int), np.asarray(y)


TABLES = dict(german=german, compas=compas, car=car, cancer=cancer)
MODELS = dict(perceptron=lambda: MLPClassifier((8,), max_iter=400, random_state=0), boosting=lambda: GradientBoostingClassifier(random_state=0),
              forest=lambda: RandomForestClassifier(50, random_state=0, n_jobs=1), svc=lambda: SVC())


def piped(last):
    words = make_column_selector(dtype_include='category')
    return make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), words), (StandardScaler(), make_column_selector(dtype_exclude='category'))), last)


def every_row(columns, dtypes):
    "All legal rows of a table, and the encoded place of each value, by column."
    values = [np.array(c.offered, object) if not c.ordered else np.arange(np.ceil(c.low/c.step), np.floor(c.high/c.step) + 1)*c.step for c in columns]
    at = np.indices([len(v) for v in values]).reshape(len(values), -1)
    frame = pd.DataFrame({c.name: pd.Series(v[i]).astype(dtypes[c.name]) for c, v, i in zip(columns, values, at)})
    return frame, values, at


def lead(model, frame):
    "How far a model is on the side of class 1."
    return model.predict_proba(frame)[:, 1] - .5 if hasattr(model, 'predict_proba') else model.decision_function(frame)


def best_of(columns, values, at, said, row):
    "Fewest columns of any answer, the least distance with as few, and with any number."
    many, far = np.zeros(at.shape[1], int), np.zeros(at.shape[1])
    for c, v, i in zip(columns, values, at):
        moved = v != row[c.name]
        many += moved[i]
        far += (2.*moved if not c.ordered else np.abs(v - row[c.name])/c.span)[i]
    there = (said >= 0) & (many > 0)
    if not there.any(): return np.inf, np.inf, np.inf
    least = many[there].min()
    return least, far[there & (many == least)].min(), far[there].min()


def measured(table, name, most):
    "One line of the table."
    X, y = TABLES[table]()
    model = piped(MODELS[name]()).fit(X, y)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    columns = cf.domain.features
    frame, values, at = every_row(columns, X.dtypes)
    said = np.concatenate([lead(model, frame[i:i + 50_000]) for i in range(0, len(frame), 50_000)])
    rows = X[lead(model, X) < -CLOSE].head(most)
    begin = time.process_time()
    a = cf.explain(rows, 1)
    ms = 1e3*(time.process_time() - begin)/len(rows)
    best = [tuple(best_of(columns, values, at, said + side, row) for side in (-CLOSE, CLOSE)) for _, row in rows.iterrows()]
    valid, changed, far = a.valid, a.changed.sum(1).numpy(), (a.xp - a.x).abs().sum(1).double().numpy()
    reach = np.array([np.isfinite(b[0][0]) for b in best])
    few = np.array([v and k <= b[0][0] for v, k, b in zip(valid, changed, best)])
    ratio = np.array([f/b[0][1] for f, b in zip(far, best)])[few]
    proof = np.array(a.proof or ['']*len(rows))
    optimal, none = proof == 'optimal', np.char.startswith(proof, 'none exists')
    wrong = [o and not (f and d <= b[0][1] + 1e-4) or no and np.isfinite(b[0][0]) for o, no, f, d, b in zip(optimal, none, few, far, best)]
    line = dict(table=table, model=name, read=_has_bounds(cf), legal=len(frame), rows=len(rows), reach=int(reach.sum()), unanswered=int((reach & ~valid).sum()),
                columns=few.sum()/valid.sum(), near=(ratio <= 1.05).mean(), worst=ratio.max(), proven=(optimal | none).mean(), false=int(np.sum(wrong)), ms=ms)
    if not line['read']: return line
    p = cheapest(cf, rows, 1, 'distance', 1.)
    there = np.isfinite(p.distance)
    over = np.array([d/b[0][2] for d, b in zip(p.distance, best)])[there]
    proof = np.array(p.proof)
    wrong = [told == 'optimal' and d > b[0][2] + 1e-4 or told.startswith('none exists') and np.isfinite(b[0][2]) for told, d, b in zip(proof, p.distance, best)]
    return line | dict(l1_near=(over <= 1.05).mean(), l1_proven=((proof == 'optimal') | ~there).mean(), l1_false=int(np.sum(wrong)))


if __name__ == '__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--rows', type=int, default=200)
    ask.add_argument('--only', nargs='*', default=[*TABLES], choices=[*TABLES])
    ask.add_argument('--out', type=Path, default=Path(__file__).parent/'results/small.csv')
    how = ask.parse_args()
    torch.set_num_threads(1)
    lines = []
    for table in how.only:
        for name in MODELS:
            lines.append(measured(table, name, how.rows))
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in lines[-1].items()}, flush=True)
            with atomic(how.out) as path: pd.DataFrame(lines).round(4).to_csv(path, index=False)
