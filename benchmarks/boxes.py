"""The cheapest answers, proven: HELOC, trees of several makes, a linear model and a perceptron in pipelines, and the task's network.

    GRADUAL_CF_DATA=... python benchmarks/boxes.py [--rows 30] [--seconds 2] [--gap 0] [--models XGBoost forest] [--out benchmarks/results/boxes.csv]
    GRADUAL_CF_DATA=... python benchmarks/boxes.py --default [--rows 120] [--out benchmarks/results/boxes_default.csv]

For each model and each meaning of cheap: the share of rows that is proven optimal, or within `--gap` of it, in `--seconds` a row, milliseconds of a
row on this machine (mean and median, without the default search that a row begins with) and boxes, the mean distance (l1) of
what was found and of the default's answers, the same in columns, and the mean gap to the bound where it is not proven.
`--default` is what `explain` proves by itself. Seconds are counted by the wall, so figures of a busy machine are too low; compare those of one run.
"""
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from options import options

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'tests'))
from cheapest import cheapest  # noqa: E402

from gradual_cf.core import atomic
from gradual_cf.gradual import GradualCF
from gradual_cf.data.datasets import load_heloc
from gradual_cf.data.tables import tabular
from gradual_cf.data.datasets import load_task


def xgboost(depth=6):
    from xgboost import XGBClassifier
    return XGBClassifier(n_estimators=100, max_depth=depth, n_jobs=1, random_state=0)


def lightgbm():
    from lightgbm import LGBMClassifier
    return LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)


def hist():
    from sklearn.ensemble import HistGradientBoostingClassifier
    return HistGradientBoostingClassifier(random_state=0)


def forest():
    from sklearn.ensemble import RandomForestClassifier
    return RandomForestClassifier(100, max_depth=8, n_jobs=1, random_state=0)


def deep():
    from sklearn.ensemble import RandomForestClassifier
    return RandomForestClassifier(100, n_jobs=1, random_state=0)


def piped(last):
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    return make_pipeline(SimpleImputer(), StandardScaler(), last)


def logistic():
    from sklearn.linear_model import LogisticRegression
    return piped(LogisticRegression())


def perceptron():
    from sklearn.neural_network import MLPClassifier
    return piped(MLPClassifier((16,), random_state=0, max_iter=100, early_stopping=True))


MODELS = {'XGBoost, depth 3': lambda: xgboost(3), 'XGBoost': xgboost, 'LightGBM': lightgbm, 'HistGradientBoosting': hist,
          'forest of depth 8': forest, 'forest of any depth': deep, 'pipeline, logistic': logistic, 'pipeline, perceptron of 16': perceptron}


def explained(name, X, y, Xt, rows):
    "A fitted explainer, and refused rows that it did not learn from."
    if name == 'network':
        task = load_task('heloc')
        cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
        z = cf.model(cf.encode(task.X_test).x)
        return cf, task.X_test[(z.argmax(1) == 0).numpy()].head(rows)
    model = MODELS[name]().fit(X, y)
    return GradualCF(model, tabular(X), 'sparse').fit(X), Xt[model.predict(Xt) == 0].head(rows)


def measured(name, cf, rows, optimal, seconds, gap):
    "One line of the table."
    default = cf.explain(rows, 1)
    p = cheapest(cf, rows, 1, optimal, seconds, gap)
    there = np.isfinite(p.distance)
    few = (p.size <= p.bound*(1 + 1e-6)) | (optimal != 'columns')
    ok = few & (p.distance <= p.distance_bound*(1 + gap) + 1e-6) | ~there & np.isinf(p.bound)
    rest = (p.distance/np.maximum(p.distance_bound, 1e-9))[there & ~ok & (p.distance_bound > 0)] - 1
    columns = lambda a: (a.xp != a.x).float().sum(1).mean().item()
    return dict(model=name, optimal=optimal, rows=len(rows), proven=ok.mean(), ms=1e3*p.seconds.mean(), median_ms=1e3*np.median(p.seconds),
                boxes=p.boxes.mean(), distance=p.distance[there].mean(), default=(default.xp - default.x).abs().sum(1).mean().item(),
                columns=columns(p.answers), default_columns=columns(default), gap=rest.mean() if len(rest) else 0.)


def ruled(name, cf, rows):
    "What `explain` proves by itself, and what that costs: CPU time beside that of gradual construction alone, everything warm."
    q = cf.ask(rows, 1)
    clock, took = time.process_time, {}
    ways = dict(alone=lambda: cf.measure(q, cf.find(q)[0]), default=lambda: cf.explain(rows, 1))
    for way, ask in ways.items():
        found = ask()
        begin = clock()
        found = ask()
        took[way] = 1e3*(clock() - begin)/len(rows), found
    (alone, before), (now, after) = took['alone'], took['default']
    columns = lambda a: a.changed.sum(1)
    far = lambda a: (a.xp - a.x).abs().sum(1).mean().item()
    proof = pd.Series(after.proof or ['']*len(after))
    return dict(model=name, rows=len(rows), optimal=proof.eq('optimal').mean(), ms_alone=alone, ms=now, ratio=now/alone,
                columns_alone=columns(before).mean(), columns=columns(after).mean(),
                more_columns=int((columns(after) > columns(before)).sum()), distance_alone=far(before), distance=far(after))


if __name__ == '__main__':
    how = options(__doc__, ['default'], needs_data=True, rows=30, seconds=2., gap=0., models=[*MODELS, 'network'], out=Path)
    how.out = how.out or Path(__file__).parent/f'results/boxes{"_default"*how.default}.csv'
    X, y, Xt, yt = load_heloc(os.environ['GRADUAL_CF_DATA'])
    lines = []
    for name in how.models:
        cf, rows = explained(name, X, y, Xt, how.rows)
        cf.explain(rows.head(3), 1) # what is read once is read now
        for optimal in () if how.default else ('columns', 'distance'):
            begin = time.perf_counter()
            lines.append(measured(name, cf, rows, optimal, how.seconds, how.gap))
            print(f'{time.perf_counter() - begin:6.1f} s', {k: v if isinstance(v, (str, int)) else round(v, 4) for k, v in lines[-1].items()}, flush=True)
            with atomic(how.out) as path: pd.DataFrame(lines).round(4).to_csv(path, index=False)
        if how.default:
            lines.append(ruled(name, cf, rows))
            print(lines[-1], flush=True)
            with atomic(how.out) as path: pd.DataFrame(lines).round(4).to_csv(path, index=False)
