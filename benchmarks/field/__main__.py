"""Run the parts that are not there yet, then gather them; the quick form prints what it found.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python -m benchmarks.field [--data …] [--models …] [--methods …] [--seeds 5]
        [--rows 300] [--budget 2] [--limit 600] [--parts FOLDER] [--envs FOLDER] [--again] [--quick]

The order is breadth first: every table and model with one seed before the next seed.
"""
import argparse
import time
import warnings
from pathlib import Path

import pandas as pd
import torch

from gradual_cf.core import cache_dir

from . import gather, learners, registry, tables
from .case import case_of
from .judges import Judges
from .parts import REAL, Part, do, used
from .picture import overall

# The quick form; methods that are slow or that take long to install are left out
QUICK = dict(data=['german', 'wine'], models=['network', 'xgboost'], rows=20, seeds=1, limit=2.,
             methods=[*(m for m in registry.METHODS if m.startswith(('our', 'NICE')) and m != 'our CEM'), 'DiCE random', REAL])


def arguments():
    a = argparse.ArgumentParser(prog='benchmarks.field', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--data', nargs='*', choices=tables.TABLES, default=list(tables.TABLES))
    a.add_argument('--models', nargs='*', choices=learners.MODELS, default=list(learners.MODELS))
    a.add_argument('--methods', nargs='*', choices=[*registry.METHODS, REAL], default=[*registry.METHODS, REAL])
    a.add_argument('--seeds', type=int, default=5)
    a.add_argument('--seed', type=int, help='this seed alone')
    a.add_argument('--rows', type=int, default=300)
    a.add_argument('--budget', type=float, default=2, help='CPU seconds for each row of each method')
    a.add_argument('--limit', type=float, default=600, help='CPU seconds of a part after which no further row is asked')
    a.add_argument('--parts', type=Path, default=cache_dir()/'field-parts')
    a.add_argument('--envs', type=Path, default=cache_dir()/'field-envs', help='where the environments of the peers are made')
    a.add_argument('--again', action='store_true', help='do parts that are there once more')
    a.add_argument('--out', type=Path, default=Path('benchmarks/results'), help='folder of what is gathered')
    a.add_argument('--brief', type=Path, help='a CSV that keeps a line of the gathered for each model and method, few measures')
    a.add_argument('--gather', action='store_true', help='run nothing, gather what is there')
    a.add_argument('--quick', action='store_true', help='two tables, two models, 20 rows, one seed')
    return a.parse_args()


def settled(a):
    "Arguments, those of the quick form put in."
    if a.quick: vars(a).update(QUICK, parts=a.parts/'quick', out=a.parts/'quick/gathered')
    a.parts.mkdir(parents=True, exist_ok=True)
    a.envs.mkdir(parents=True, exist_ok=True)
    return a


def missing(a, data, model, seed):
    "Parts that are not there."
    parts = [Part(data, model, m, seed) for m in a.methods if m == REAL or registry.applies(m, model)]
    return [p for p in parts if a.again or not p.path(a.parts).is_file()]


def work(a):
    "All parts, breadth first."
    for seed in range(a.seeds) if a.seed is None else [a.seed]:
        for data in a.data:
            for model in a.models:
                todo = missing(a, data, model, seed)
                if not todo: continue
                start = used()
                case = case_of(data, model, seed, a.rows)
                judges = Judges(case)
                setup = used() - start
                for part in todo: tell(part, do(case, judges, part, a.parts, a.envs, a.budget, a.limit, setup))


def tell(part, df):
    "A line on the terminal."
    numbers = df.reindex(columns=['found', 'legal', 'columns', 'l2', 'lof', 'networks', 'ms', 'fit', 'memory']).mean()
    said = ' '.join(f'{k} {v:.3g}' for k, v in numbers.items())
    words = df.words.iloc[0]
    print(time.strftime('%H:%M:%S'), part.data, part.model, part.seed, f'[{part.method}]', len(df), said, words, flush=True)


def main():
    a = settled(arguments())
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    if not a.gather: work(a)
    gather.main(a.parts, a.out, a.rows)
    if a.brief:
        few = ['data', 'model', 'method', 'rows', 'found', 'legal', 'columns', 'l1', 'l2', 'isolation', 'refitted', 'networks', 'ms']
        pd.read_parquet(a.out/'field.parquet')[few].round(3).to_csv(a.brief, index=False)
    if a.quick: print(overall(pd.read_parquet(a.out/'field.parquet')).to_string(float_format='{:.2f}'.format, na_rep='–'))


if __name__ == '__main__': main()
