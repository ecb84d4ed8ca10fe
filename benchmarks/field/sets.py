"""Several answers to each row, and how they differ: this package, and DiCE, which was made for that.

    python -m benchmarks.field.sets [--data …] [--models network xgboost] [--rows 20] [--limit 2] [--envs FOLDER]

Lines of cells that `benchmarks/results/field_sets.csv` has already are kept, others are added.
"""
import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.core import atomic, cache_dir

from . import exchange, learners, ours, tables
from .case import case_of

ANSWERS, MOST = 4, 10 # Answers of a row, and seconds for them
ASKED = {'ours': None, 'DiCE random': ('dice', 'random'), 'DiCE genetic': ('dice', 'genetic')}
OUT = Path('benchmarks/results/field_sets.csv')


def our_sets(case):
    "Answers as codes `(n, k, g)`, NaN where there are fewer; seconds of each row."
    cf = ours.explainer('ours', case).fit(case.table.X)
    cf.explain(case.rows.iloc[:1], case.target[:1])
    start = time.process_time()
    many = cf.explain(case.rows, case.target, k=ANSWERS)
    seconds = np.full(len(case.rows), (time.process_time() - start)/len(case.rows))
    out, owner = np.full((len(seconds), ANSWERS, len(case.named)), np.nan), np.cumsum(many.answer == 1) - 1 # position of the row
    for i, codes, valid in zip(owner, case.codes(many.raw), many.valid):
        if valid: out[i, np.isnan(out[i, :, 0]).argmax()] = codes
    return out, seconds


def their_sets(case, package, method, envs, limit):
    "The same of a peer, for as many rows as it was asked about."
    codes, seconds, _ = exchange.run(package, method, case, envs, MOST, limit, several=ANSWERS)
    return codes.reshape(len(codes), ANSWERS, -1), seconds


def apart(codes, case, spans):
    "Means over pairs of answers: share of columns that differ, and distance in ranges, 1 for another category."
    a, b = np.triu_indices(len(codes), 1)
    if not len(a): return dict(differ=np.nan, distance=np.nan)
    other = codes[a] != codes[b]
    far = np.where(case.named, other, np.abs(codes[a] - codes[b])/spans)
    return dict(differ=other.mean(), distance=far.sum(1).mean())


def line(case, i, codes, spans):
    "What the answers of one row are worth: only those that the model gives to the target and that the table allows count."
    codes = codes[~np.isnan(codes).any(1)]
    old = case.codes(case.rows.iloc[[i]])
    right = case.ask(codes).argmax(1) == case.target[i] if len(codes) else np.zeros(0, bool)
    rows = case.rows.iloc[[i]*len(codes)].reset_index(drop=True)
    frames = [case.frame(codes[[j]]) for j in range(len(codes))]
    legal = np.array([bool(case.domain.legal(rows.iloc[[0]], f).all()) for f in frames], bool)
    good = np.unique(codes[right & legal], axis=0)
    moved = good != old
    return dict(offered=len(codes), right=right.sum(), allowed=(right & legal).sum(), different=len(good),
                columns=moved.sum(1).mean() if len(good) else np.nan, sets=len(np.unique(moved, axis=0)),
                **apart(good, case, spans))


def cell(case, method, envs, limit):
    "A line for the table of results."
    key = dict(data=case.table.name, model=case.name, method=method, k=ANSWERS)
    try: codes, seconds = our_sets(case) if ASKED[method] is None else their_sets(case, *ASKED[method], envs, limit)
    except RuntimeError as e: return key | dict(rows=0, words=str(e)[:160])
    spans = np.array([np.ptp(v) or 1. for v in case.codes(case.table.X).T])
    df = pd.DataFrame([line(case, i, v, spans) for i, v in enumerate(codes)])
    return key | dict(rows=len(df), full=(df.different == ANSWERS).mean()) | df.mean().to_dict() | dict(ms=1e3*seconds.mean(), words='')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--data', nargs='*', choices=tables.TABLES, default=list(tables.TABLES))
    a.add_argument('--models', nargs='*', choices=learners.MODELS, default=['network', 'xgboost'])
    a.add_argument('--rows', type=int, default=20)
    a.add_argument('--limit', type=float, default=2)
    a.add_argument('--envs', type=Path, default=cache_dir()/'field-envs')
    a = a.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    lines = pd.read_csv(OUT).to_dict('records') if OUT.is_file() else []
    there = {(v['data'], v['model'], v['method']) for v in lines}
    for data in a.data:
        for model in a.models:
            todo = [m for m in ASKED if (data, model, m) not in there]
            case = case_of(data, model, 0, a.rows) if todo else None
            for method in todo:
                lines.append(cell(case, method, a.envs, a.limit))
                with atomic(OUT) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)
                print(lines[-1], flush=True)


if __name__ == '__main__': main()
