"""The compiled engine against the one in Python: the same questions in turn, what they cost, and whether answers differ.

    python benchmarks/both_engines.py [--rows 60] [--single 20] [--only heloc/lightgbm] [--out benchmarks/results/both_engines.csv]

CPU milliseconds a row of one thread, both in one process and in turn, so ratios count. A batch is asked twice, and the quicker time is kept.
`differ` counts rows that both prove with another size, distance or proof; `larger` rows with a larger answer where one of them proves nothing.
"""
import argparse
import os
import time
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault('OMP_NUM_THREADS', '1')
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from models import LOAD, RULES, fitted  # noqa: E402
from sklearn.base import clone  # noqa: E402

from gradual_cf.all import GradualCF, tabular  # noqa: E402
from gradual_cf.core import atomic  # noqa: E402
from gradual_cf.search import compiled  # noqa: E402

CELLS = 'heloc/xgboost', 'heloc/lightgbm', 'heloc/hist', 'heloc/forest8', 'adult/lightgbm', 'adult/forest8'
ENGINES = 'python', 'compiled'


def explainer(data, name):
    "An explainer of a model that was fitted to a table; a forest of depth 8 stands behind the same pipeline as a full one."
    model = fitted('forest' if name == 'forest8' else name, data)
    if name == 'forest8': model = clone(model).set_params(**{k: 8 for k in model.get_params() if k.split('__')[-1] == 'max_depth'}).fit(data.X, data.y)
    return GradualCF(model, tabular(data.X, **RULES[data.name]), 'sparse').fit(data.X)


def asked(cf, rows, engine):
    "CPU milliseconds a row, and the answers."
    library = compiled._library()
    with patch.object(compiled, '_library', lambda: library if engine == 'compiled' else None):
        start = time.process_time()
        out = cf.explain(rows)
        return 1e3*(time.process_time() - start)/len(rows), out


def told(answers):
    "Size, distance and whether it is proven, of each row."
    return np.asarray(answers.size, float), (answers.xp - answers.x).abs().sum(1).double().numpy(), np.isin(answers.proof, ['optimal', 'none exists'])


def line(part, rows, single):
    "One table and one model."
    name, kind = part.split('/')
    data = LOAD[name](1000)
    cf = explainer(data, kind)
    for engine in ENGINES: asked(cf, data.rows.iloc[-5:], engine)  # what is made once a model
    ms, answers = {engine: [] for engine in ENGINES}, {}
    for engine in ENGINES*2:
        took, answers[engine] = asked(cf, data.rows.iloc[:rows], engine)
        ms[engine].append(took)
    one = {engine: [] for engine in ENGINES}
    for i in range(single):
        for engine in ENGINES: one[engine].append(asked(cf, data.rows.iloc[[i]], engine)[0])
    (size, far, proven), (size2, far2, proven2) = (told(answers[engine]) for engine in ENGINES)
    both, apart = proven & proven2, np.abs(far - far2) > 1e-5*(1 + far)
    out = dict(part=part, rows=rows)
    for engine, share in zip(ENGINES, (proven, proven2)): out |= {engine: min(ms[engine]), f'{engine}_proven': share.mean()}
    out |= dict(ratio=out['compiled']/out['python'], differ=int((both & ((size != size2) | apart)).sum()), larger=int((~both & (size2 > size)).sum()), smaller=int((~both & (size2 < size)).sum()))
    if single:
        for engine in ENGINES: out |= {f'{engine}_one': np.median(one[engine]), f'{engine}_mean': np.mean(one[engine]), f'{engine}_90': np.quantile(one[engine], .9)}
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=60)
    a.add_argument('--single', type=int, default=20)
    a.add_argument('--only', nargs='*', choices=CELLS, default=list(CELLS), help='measure these again and keep the other lines')
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/both_engines.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    lines = {l['part']: l for l in pd.read_csv(a.out).to_dict('records')} if a.out.exists() else {}
    for part in a.only:
        lines[part] = line(part, a.rows, a.single)
        print(lines[part], flush=True)
        with atomic(a.out) as tmp: pd.DataFrame([lines[p] for p in CELLS if p in lines]).round(3).to_csv(tmp, index=False)


if __name__ == '__main__': main()
