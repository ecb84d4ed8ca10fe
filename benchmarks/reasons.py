"""Reasons: processor time and calls of the model for a row, whether `predict` says the same, and what an earlier way said.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/reasons.py [--rows 40] [--singles 7] [--before d8637e7]
        [--only adult,lightgbm heloc,network] [--out FILE]

A line is a table and a model, fitted on its training rows; reasons are asked for --rows of its test rows that the model
refuses, and for --singles of them one at a time; --only keeps the other lines of the file. Fitting is not measured, nor the first question, which works out once what
columns are compared with (`first_ms`).

refused, lines     refused rows, and reasons told in all
bare               refused rows without a reason
enough             share of them in which all that is told decides otherwise together
judged             share of the lines and rows of which `predict` says what `enough` says: each reason alone and all of a row
                   together, put into the raw row by pandas from what the page tells
ms, batch_ms       CPU milliseconds of a row: the median of single ones, and all in one question
calls              how often the model is asked for a single row, `predict` included
call_ms            CPU milliseconds of one call of the model with one row, by the library: what the machine gave just then
before_ms, before_batch_ms, before_calls   the same of the code of the commit --before, on the same explainer
same               share of refused rows that are told the same there: reasons, order, cells and values
off                largest difference of a share
enough_differs     rows in which `enough` is another: the earlier code read it off the numbers, without `predict`
"""
import argparse
import os
import subprocess
import sys
import types
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import GradualCF, load_task, reasons, tabular
from gradual_cf.core import atomic
from clock import cpu, timed as clocked
from models import LOAD, RULES, fitted

ROOT = Path(__file__).resolve().parent.parent
CASES = [('adult', 'lightgbm'), ('adult', 'logistic'), ('adult', 'forest'), ('heloc', 'xgboost'), ('heloc', 'hist'),
         ('heloc', 'network'), ('loans', 'cut-off'), ('loans', 'coded'), ('wine', 'numbers'), ('wine', 'classes')]
TOLD = ['row', 'rank', 'code', 'reason', 'columns', 'has', 'compared', 'way']


def earlier(commit):
    "`reasons` of an earlier commit, beside the package of today."
    source = subprocess.run(['git', 'show', f'{commit}:gradual_cf/use/reasons.py'], check=True, capture_output=True, text=True, cwd=ROOT)
    name = 'gradual_cf.use._earlier_reasons'
    module = sys.modules[name] = types.ModuleType(name)
    module.__package__ = 'gradual_cf.use'
    exec(compile(source.stdout, name, 'exec'), module.__dict__)
    return module.reasons


def loans(kind):
    "A made table of loans: a cut-off of .3, or codes for several columns and one that must not be named."
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import FixedThresholdClassifier
    from gradual_cf.data.datasets import load_loans
    X, y, rows, _ = load_loans(4000)
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0).fit(X, y)
    codes = dict(income=('A1', 'Income'), debt=('A1', 'Income'), months_in_job=2)
    if kind == 'coded': return model, tabular(X), X, rows, dict(target='granted', codes=codes, never=['age'], k=3)
    return FixedThresholdClassifier(model, threshold=.3, pos_label='granted').fit(X, y), tabular(X), X, rows, dict(target='granted')


def wine(kind):
    "What is in wines: one number that shall be at least its median, or one of three sorts."
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/'tables/wine.csv').drop_duplicates()
    goal = 'Proline' if kind == 'numbers' else 'Target'
    order = np.random.default_rng(0).permutation(len(df))
    X, y = df.drop(columns=goal).iloc[order].reset_index(drop=True), df[goal].iloc[order].to_numpy()
    n, make = len(X)*3//4, RandomForestRegressor if kind == 'numbers' else RandomForestClassifier
    model = make(50, random_state=0, n_jobs=1).fit(X[:n], y[:n])
    return model, tabular(X[:n]), X[:n], X[n:], dict(target=(float(np.median(y)), None) if kind == 'numbers' else 1)


def network(kind):
    "The network of HELOC."
    task = load_task('heloc')
    return task.model, task.domain, task.X, task.X_test, dict(target=1)


def usual(data, kind):
    "A model of a library on Adult or HELOC."
    d = LOAD[data](2000)
    return fitted(kind, d), tabular(d.X, **RULES[data]), d.X, d.rows, dict(target=1)


def case(data, kind):
    "Model, domain, training rows, rows to ask about, and how they are asked."
    if kind == 'network': return network(kind)
    return dict(loans=loans, wine=wine).get(data, lambda k: usual(data, k))(kind)


def counted(cf):
    "Count how often the model is asked, in a list of one number."
    count = [0]
    def once(f):
        def asked(*a, **k):
            count[0] += 1
            return f(*a, **k)
        return asked if f else f
    p = getattr(cf.model, 'predictor', None)
    if p is None: cf.model.register_forward_hook(lambda *a: count.__setitem__(0, count[0] + 1))
    else: cf.model.predictor = replace(p, ask=once(p.ask), labels=once(p.labels))
    return count


def judged(cf, model, rows, told, target):
    "Share of lines and rows of which the model's own answer to a frame is what `enough` says."
    asked, want = [], []
    for i, lines in told.frame.groupby('row'):
        one = rows.iloc[[i]]
        new = [cells(one, l.columns, l.compared) for l in lines.itertuples()]
        asked += [put(one, v) for v in new] + [put(one, sum(new, []))]
        want += [*lines.enough, told.enough[i]]
    frame = pd.concat(asked, ignore_index=True).astype(rows.dtypes)
    if not hasattr(model, 'predict'): there = cf.decided(frame, cf.logits(frame, cf.encode(frame).x)).numpy() == target
    else:
        said = np.asarray(model.predict(frame)).ravel()
        there = said >= target[0] if isinstance(target, tuple) else said == target
    return float((there == np.array(want)).mean())


def cells(one, columns, text):
    "The columns of a reason, and what they are compared with, read off the page."
    if columns in one: return [(columns, cell(one[columns], text))]
    parts = [(name, part[len(name) + 1:]) for name, part in zip(columns.split(', '), text.split(', '))]
    return [(name, cell(one[name], part)) for name, part in parts]


def cell(column, text):
    "A text of a page as a cell."
    if text == 'missing': return np.nan
    return float(text.replace(',', '')) if pd.api.types.is_numeric_dtype(column) else text


def put(one, new):
    "A row with other cells."
    out = one.copy()
    for name, v in new: out[name] = pd.Series([v], index=one.index).astype(float if isinstance(v, float) else one[name].dtype)
    return out


def alike(a, b):
    "Share of refused rows told the same, and the largest difference of a share."
    rows = np.flatnonzero(a.refused)
    lines = [{i: v for i, v in f.frame.groupby('row')} for f in (a, b)]
    none = a.frame.iloc[:0]
    pairs = [(lines[0].get(i, none), lines[1].get(i, none)) for i in rows]
    same = [p[TOLD].astype(str).equals(q[TOLD].astype(str)) if len(p) == len(q) else False
            for p, q in ((p.reset_index(drop=True), q.reset_index(drop=True)) for p, q in pairs)]
    off = [np.abs(p[c].to_numpy(float) - q[c].to_numpy(float)).max(initial=0)
           for (p, q), on in zip(pairs, same) if on for c in ('alone', 'put_back', 'near', 'all')]
    return float(np.mean(same)), float(max(off, default=np.nan))


def timed(cf, count, ask, some, rows):
    "Median of single rows, of the batch, calls of a single row, and what the batch was told."
    ask(cf, some.iloc[[0]])
    singles, calls = [], []
    for i in range(len(some)):
        was = count[0]
        singles.append(1e3*cpu(lambda: ask(cf, some.iloc[[i]])))
        calls.append(count[0] - was)
    told, took = clocked(lambda: ask(cf, rows))
    return np.median(singles), 1e3*took/max(told.refused.sum(), 1), int(np.median(calls)), told


def measured(data, kind, n, singles, before):
    "One line."
    model, domain, X, test, how = case(data, kind)
    cf = GradualCF(model, domain, 'sparse').fit(X)
    asked = cf.ask(test, how['target'])
    refused = ~cf.decides(asked[0], asked[2], asked[3]).cpu().numpy()
    rows = test[refused].iloc[:n].reset_index(drop=True)
    count, some = counted(cf), rows.iloc[:singles]
    first = 1e3*cpu(lambda: reasons(cf, some.iloc[[0]], **how))
    ms, batch, calls, told = timed(cf, count, lambda c, r: reasons(c, r, **how), some, rows)
    one = rows.iloc[[0]]
    call = 1e3*np.median([cpu(lambda: cf.logits(one, cf.encode(one).x)) for _ in range(15)])
    line = dict(data=data, model=kind, refused=int(told.refused.sum()), lines=len(told.frame),
                bare=int(told.refused.sum() - told.frame.row.nunique()), enough=told.enough[told.refused].mean(),
                judged=judged(cf, model, rows, told, how['target']), first_ms=first, ms=ms, batch_ms=batch, calls=calls, call_ms=call)
    if before is None: return line
    old_ms, old_batch, old_calls, old = timed(cf, count, lambda c, r: before(c, r, **how), some, rows)
    same, off = alike(told, old)
    return line | dict(before_ms=old_ms, before_batch_ms=old_batch, before_calls=old_calls, same=same, off=off,
                       enough_differs=int((told.enough != old.enough).sum()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rows', type=int, default=40)
    parser.add_argument('--singles', type=int, default=7)
    parser.add_argument('--before', help='an earlier commit to compare with')
    parser.add_argument('--only', nargs='+', help='table,model')
    parser.add_argument('--out', type=Path, default=ROOT/'benchmarks/results/reasons.csv')
    a = parser.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    before = a.before and earlier(a.before)
    lines = {(v['data'], v['model']): v for v in pd.read_csv(a.out).to_dict('records')} if a.out.exists() else {}
    for c in CASES:
        if a.only and ','.join(c) not in a.only: continue
        lines[c] = {k: round(float(v), 4) if isinstance(v, float) else v for k, v in measured(*c, a.rows, a.singles, before).items()}
        print(lines[c], flush=True)
        with atomic(a.out) as tmp: pd.DataFrame([lines[c] for c in CASES if c in lines]).to_csv(tmp, index=False)


if __name__ == '__main__': main()
