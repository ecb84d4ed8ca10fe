"""Cells of ours that were slow, and what was mended: the same rows with and without, in one run.

    python -m benchmarks.field.slow [--rows 20] [--times 3]

Without: a model that is called as a function is asked about each column by itself, and with a `quantile` every pair of cells of a
forest is asked for its shortfall. Writes `benchmarks/results/field_slow.csv`.
"""
import argparse
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch

from gradual_cf.core import atomic

from . import ours
from .case import case_of

CELLS = [('heloc', 'forest', 'ours, quantile .5'), ('audit', 'forest', 'ours, quantile .5'), ('law', 'forest', 'ours, quantile .5'),
         ('german', 'forest', 'ours, quantile .5'), ('german', 'forest', 'ours'), ('adult', 'logistic', 'ours'),
         ('wine', 'logistic', 'ours'), ('german', 'logistic', 'ours, spread 3'), ('wine', 'forest', 'ours')]
BEFORE = {'gradual_cf.search.masking._CALL_ROWS': 1, 'gradual_cf.search.masking._CALL_NUMBERS': 2**16,
          'gradual_cf.search.trees._is_range': lambda m, explainer, s: s.target.gap is None and m.ensemble.kind != 'number'
                                                                and len(m.ensemble.base) == 1}


def asked(cf, case):
    "Answers, milliseconds a row, and calls of the model."
    calls = []
    hook = cf.model.register_forward_hook(lambda *_: calls.append(1))
    start = time.process_time()
    answers = cf.explain(case.rows, case.target)
    hook.remove()
    return answers, 1e3*(time.process_time() - start)/len(case.rows), len(calls)


def without(cf, case):
    "The same as it was before."
    patches = [patch(name, v) for name, v in BEFORE.items()]
    for p in patches: p.start()
    try: return asked(cf, case)
    finally:
        for p in patches: p.stop()


def line(data, model, method, rows, times):
    "A cell both ways, medians."
    case = case_of(data, model, 0, rows)
    cf = ours.explainer(method, case).fit(case.table.X)
    cf.explain(case.rows.iloc[:1], case.target[:1])
    runs = [(without(cf, case), asked(cf, case)) for _ in range(times)]
    (old, _, before), (new, _, after) = runs[0]
    ms = np.median([[r[1] for r in pair] for pair in runs], axis=0)
    same = (old.xp == new.xp).all(1).double().mean().item()
    return dict(data=data, model=model, method=method, rows=len(case.rows), calls_before=before, calls=after, ms_before=ms[0],
                ms=ms[1], ratio=ms[0]/ms[1], same_answers=same)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=20)
    a.add_argument('--times', type=int, default=3)
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/field_slow.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    lines = []
    for cell in CELLS:
        lines.append(line(*cell, a.rows, a.times))
        print(lines[-1], flush=True)
    with atomic(a.out) as tmp: pd.DataFrame(lines).round(3).to_csv(tmp, index=False)


if __name__ == '__main__': main()
