"""Answers that shall be likely, measured by a density that no search has seen: the flow of the field's benchmark.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python -m benchmarks.likelihood [--data law ...] [--models network] [--seeds 3] [--rows 100]

Tables, models, rows and judge are those of `benchmarks/field`, so its committed lines of NICE and PPCEF stand beside ours (`whose` is
`field`). `flow` is the mean logarithm of the density of answers less that of a usual row held out, `columns` how many changed, `ms`
CPU time a row, `fit` CPU seconds to fit, the density included. The judge is trained on the same rows as ours, is built otherwise, and
knows nothing of classes. Lines of cells that the file has already are kept. PPCEF's and two of NICE's lines were measured on 20 rows
without the flow; where `legal` is 0, their answers have values that no row may have.

    python -m benchmarks.likelihood --data german compas law heloc --models network --seeds 1 --rows 40 --out benchmarks/results/likelihood_typical.csv   # how typical they are
    python -m benchmarks.likelihood --fit 10000 20   # CPU seconds to learn the density of a made table of so many rows and columns
"""
import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.field import tables
from benchmarks.field.case import case_of
from benchmarks.field.flow import flow_of, measured
from gradual_cf.core import atomic
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import PLAUSIBLE, SPARSE, GradualCF
from gradual_cf.paper.reproduce import results
from gradual_cf.search.likelihood import Density
from gradual_cf.search.plausible import Plausibility

ALONE = Plausibility(density=1., isolation=1.) # Whatever real rows reach counts as company
SETTINGS = {'default': SPARSE, 'PLAUSIBLE': PLAUSIBLE} | {
    f'likelihood={v:g}': replace(SPARSE, plausibility=replace(ALONE, likelihood=v)) for v in (.05, .1, .25, .5)} | {
    'PLAUSIBLE, likelihood=.5': replace(PLAUSIBLE, plausibility=replace(PLAUSIBLE.plausibility, likelihood=.5))}
THEIRS = ['NICE (none)', 'NICE (sparsity)', 'NICE (proximity)', 'NICE (plausibility)', 'PPCEF']
OUT = Path('benchmarks/results/likelihood.csv')


def line(case, name, flow):
    "What one setting does on one case."
    start = time.process_time()
    cf = GradualCF(case.model, case.domain, SETTINGS[name]).fit(case.table.X)
    cf.explain(case.rows.iloc[:1], case.target[:1]) # what is learnt when a class is first asked for
    fit, start = time.process_time() - start, time.process_time()
    answers = cf.explain(case.rows, case.target)
    each = (time.process_time() - start)/len(case.rows)
    old, new = case.codes(case.rows), case.codes(answers.raw)
    dense = measured(*flow, new[answers.valid])
    legal = np.asarray(case.domain.legal(case.rows, answers.raw)).all(1)
    told = answers[answers.valid].quality()
    return dict(method=name, whose='ours', rows=len(new), found=answers.valid.mean(), legal=legal.mean(),
                typical=told.typical.mean(), confirmed=told.confirmed.mean(), columns=(old != new)[answers.valid].sum(1).mean(), flow=dense.mean(), ms=1e3*each, fit=fit)


def theirs(data, model, seed):
    "Committed lines of the field for the same cell."
    run = results('field.parquet')
    here = run[(run.data == data) & (run.model == model) & (run.seed == seed) & run.method.isin(THEIRS) & (run['rows'] > 0)]
    return here[['method', 'rows', 'found', 'legal', 'columns', 'flow', 'ms', 'fit']].assign(whose='field').to_dict('records')


def seconds_to_fit(rows, columns):
    "Three of ten columns are categories of five levels; numbers follow from four that nobody sees."
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 4))
    number = lambda i: (hidden[:, i % 4]*(i + 1) + rng.normal(size=rows)).round(3)
    table = pd.DataFrame({f'c{i}': rng.choice(list('abcde'), rows) if i % 10 > 6 else number(i) for i in range(columns)})
    domain = tabular(table)
    x, start = domain.encode(table).x, time.process_time()
    Density(domain).fit(x, (hidden[:, 0] > 0).astype(int))
    return time.process_time() - start


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--data', nargs='*', choices=tables.TABLES, default=['law', 'german', 'compas', 'heloc', 'adult', 'bank'])
    a.add_argument('--models', nargs='*', default=['network', 'lightgbm'])
    a.add_argument('--seeds', type=int, default=3)
    a.add_argument('--rows', type=int, default=100)
    a.add_argument('--out', type=Path, default=OUT)
    a.add_argument('--fit', nargs=2, type=int, metavar=('ROWS', 'COLUMNS'))
    a = a.parse_args()
    torch.set_num_threads(1)
    if a.fit: return print(f'{seconds_to_fit(*a.fit):.1f} s')
    found = pd.read_csv(a.out).to_dict('records') if a.out.is_file() else []
    there = {(v['data'], v['model'], v['seed']) for v in found}
    for key in [(d, m, s) for s in range(a.seeds) for d in a.data for m in a.models]:
        if key in there: continue
        case, told = case_of(*key, a.rows), dict(zip(('data', 'model', 'seed'), key))
        flow = flow_of(case.table, key[2])
        found += [told | line(case, name, flow) for name in SETTINGS] + [told | v for v in theirs(*key)]
        with atomic(a.out) as tmp: pd.DataFrame(found).round(4).to_csv(tmp, index=False)
        print(pd.DataFrame(found[-len(SETTINGS) - len(THEIRS):]).round(3).to_string(), flush=True)


if __name__ == '__main__': main()
