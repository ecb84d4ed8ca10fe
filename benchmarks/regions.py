"""Regions of answers, attacked: legal rows drawn from the product of their ranges and levels, put to the model.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/regions.py [--rows 40] [--drawn 5000] [--out benchmarks/results/regions.csv]

HELOC with the models of `boxes.py`, and German Credit (all twenty columns, of which thirteen are categories) with histogram
boosting and, in pipelines, a forest, a logistic model and a perceptron. Half of the regions are of the changed columns alone, half
have all other columns free. A drawn number is an end of its range for one in three, else anything between; `points` are the rows that
were drawn, `failures` those that the model refuses. `certified`: share of regions that say so; `alone` and `free`: the mean width of the range of a number, as a share of the column's, and `levels`: mean number of levels of a category; `ms`: of a region.
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from boxes import MODELS, explained
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from small import piped

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_heloc
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

GERMAN = {'histogram': lambda: HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0),
          'forest of depth 8': lambda: piped(RandomForestClassifier(100, max_depth=8, n_jobs=1, random_state=0)),
          'logistic': lambda: piped(LogisticRegression(max_iter=1000)), 'perceptron of 8': lambda: piped(MLPClassifier((8,), max_iter=300, random_state=0))}


def german(name, most):
    "A fitted explainer of German Credit, and refused rows."
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/'tables/german_credit.csv')
    X = df.drop(columns='default')
    X = X.astype({c: 'category' for c in X if X[c].dtype.kind not in 'if'})
    model = GERMAN[name]().fit(X, 1 - df['default'])
    return GradualCF(model, tabular(X), 'sparse').fit(X), X[model.predict(X) == 0].head(most)


def drawn(cf, row, lines, many, rng):
    "Legal rows of one region."
    out = pd.concat([row]*many, ignore_index=True)
    for line, c in ((line, next(c for c in cf.domain.features if c.name == line.feature)) for line in lines.itertuples()):
        if not c.ordered: out[c.name] = pd.Series(rng.choice(np.array(line.levels, object), many)).astype(out[c.name].dtype)
        elif line.high > line.low:
            v = rng.uniform(line.low, line.high, many)
            v = np.where(rng.random(many) < 1/3, np.where(rng.random(many) < .5, line.low, line.high), np.round(np.round(v/c.step)*c.step, c.digits))
            legal = (v >= max(line.low, c.low)) & (v <= min(line.high, c.high)) & ~np.isin(v, c.codes)
            out[c.name] = np.where(legal, v, line.value).astype(out[c.name].dtype)
    return out


def measured(table, name, cf, rows, many, rng):
    "One line of the table."
    answers = cf.explain(rows, 1)
    answers, parts = answers[answers.valid], {}
    begin = time.process_time()
    regions = [answers.region(), answers.region(free=list(rows.columns))]
    ms = 1e3*(time.process_time() - begin)/2/len(answers)
    points = failures = 0
    for around in regions:
        for i, lines in around.groupby('row'):
            x = drawn(cf, answers.raw.iloc[[i]], lines, many, rng)
            said = cf.logits(x, cf.encode(x).x).argmax(1)
            points, failures = points + many, failures + int((said != 1).sum())
    span = {c.name: c.high - c.low for c in cf.domain.features if c.ordered}
    for part, around in zip(('alone', 'free'), regions):
        numbers = around[around.feature.isin(span)]
        parts[part] = ((numbers.high - numbers.low)/numbers.feature.map(span)).mean()
    words = pd.concat(regions).levels.map(len)
    certified = pd.concat(regions).how.eq('certified').mean()
    return dict(table=table, model=name, answers=len(answers), certified=certified, points=points, failures=failures, **parts, levels=words[words > 0].mean(), ms=ms)


if __name__ == '__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--rows', type=int, default=40)
    ask.add_argument('--drawn', type=int, default=5000)
    ask.add_argument('--out', type=Path, default=Path(__file__).parent/'results/regions.csv')
    how = ask.parse_args()
    torch.set_num_threads(1)
    heloc, lines, rng = load_heloc(os.environ['GRADUAL_CF_DATA'])[:3], [], np.random.default_rng(0)
    asked = [('HELOC', name, lambda name=name: explained(name, *heloc, how.rows)) for name in [*MODELS, 'network']]
    asked += [('German', name, lambda name=name: german(name, how.rows)) for name in GERMAN]
    for table, name, make in asked:
        lines.append(measured(table, name, *make(), how.drawn, rng))
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in lines[-1].items()}, flush=True)
        with atomic(how.out) as path: pd.DataFrame(lines).round(4).to_csv(path, index=False)
