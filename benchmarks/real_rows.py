"""What it costs that no answer is farther than a real row, and what `typical` says of the intents.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/real_rows.py [--rows 24] [--out benchmarks/results/real_rows.csv]

Cells of `benchmarks/first_answer.py`, and HELOC with the paper's network. `bound` is what an answer is held to: nothing, the sum of the
ways (what SPARSE is), or the straight line as well. `farther` counts answers beyond the nearest real row by the sum.

columns, l1, l2     changed columns; the sum of their ways; the straight line
typical, tenth      mean of `typical`; share of answers that are at least as usual as one real row in ten
"""
import argparse
import warnings
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import torch
from first_answer import Case

from gradual_cf.all import GradualCF, load_task
from gradual_cf.core import atomic
from gradual_cf.search import proven, real

CELLS = [('german', 'lightgbm'), ('heloc', 'lightgbm'), ('heloc', 'logistic'), ('wa_churn', 'lightgbm'), ('adult', 'lightgbm')]
BOUNDS = dict(nothing=patch.object(proven, '_never_farther', lambda cf, q, xp, *more, **told: xp),
              sum=patch.object(real, '_bounds', lambda cf, far: 1), both=patch.object(real, '_bounds', lambda cf, far: len(far)))
ASKED = [('sparse', bound) for bound in BOUNDS] + [('robust', 'both'), ('plausible', 'both')]


def line(model, domain, X, rows, target, intent, bound):
    "What one intent gives under one bound."
    with BOUNDS[bound]: a = GradualCF(model, domain, intent).fit(X).explain(rows, target)
    q, way = a.quality(), a.xp - a.x
    return dict(intent=intent, bound=bound, rows=len(a), valid=a.valid.mean(), columns=a.changed.sum(1).mean(), l1=way.abs().sum(1).mean().item(),
                l2=way.norm(dim=1).mean().item(), farther=(q.distance > q.nearest_row*(1 + 1e-3)).mean(), typical=q.typical.mean(),
                tenth=(q.typical >= .1).mean())


def cells(rows):
    "Tables with their model and the rows that are asked about."
    for name, kind in CELLS:
        c = Case(name, kind, 0, rows, 2500)
        yield name, kind, (c.model, c.domain, c.X, c.asked, c.t)
    t = load_task('heloc')
    yield 'heloc', "the paper's network", (t.model, t.domain, t.X, t.X_test.iloc[:5*rows], None)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--rows', type=int, default=24)
    p.add_argument('--out', type=Path, default=Path('benchmarks/results/real_rows.csv'))
    args = p.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    found = [dict(table=name, model=kind) | line(*asked, *how) for name, kind, asked in cells(args.rows) for how in ASKED]
    df = pd.DataFrame(found).round(3)
    print(df.to_string(index=False))
    with atomic(args.out) as part: df.to_csv(part, index=False)


if __name__ == '__main__': main()
