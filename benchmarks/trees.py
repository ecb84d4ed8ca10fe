"""Trees read exactly: how many answers are proven to be the best there is, and at what price. Adult and HELOC.

    GRADUAL_CF_DATA=... python benchmarks/trees.py [--rows 300] [--exact 30] [--seconds 15] [--out benchmarks/results/trees.csv]

`ms` is what `explain` takes by default, in CPU time of one thread a row. `proven` is the share of rows of which the fewest columns are decided with a
limit of .15 s, `columns_optimal` the share of answers with as many; `ratio` is the distance (l1) over the smallest with as
many columns, for answers of one or two columns (`one_two`; `worst` is its largest, `margin` the same with the margin .02 of
networks) and for those of more. `l1_proven` is the share of `--exact` rows whose smallest distance is proven within `--seconds`. `infeasible`
are questions with three free columns for which nothing was found: the share with a proof, and the median of seconds. With
`--networks` the columns of answers for the tasks' networks are proven too.
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from gradual_cf.core import atomic, changed_groups
from gradual_cf.gradual import GradualCF
from gradual_cf.data.datasets import load_heloc
from gradual_cf.search.proven import prove
from gradual_cf.data.tables import tabular
from gradual_cf.data.datasets import load_task


def adult(folder):
    "Adult with its names as categories: columns, and whether the income is high."
    X = pd.read_csv(Path(folder)/'tables/adult.csv')
    y = (X.pop('class').str.strip() == '>50K').astype(int)
    return X.astype({c: 'category' for c in X.select_dtypes(exclude='number')}), y


def heloc(folder):
    X, y, Xt, yt = load_heloc(folder)
    return pd.concat([X, Xt]), pd.concat([y, yt])


def xgboost(depth=6):
    from xgboost import XGBClassifier
    return XGBClassifier(n_estimators=100, max_depth=depth, enable_categorical=True, n_jobs=1, random_state=0)


def lightgbm():
    from lightgbm import LGBMClassifier
    return LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)


MODELS = {
    'XGBoost': xgboost, 'LightGBM': lightgbm,
    'HistGradientBoosting': lambda: HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0),
    'forest of depth 8': lambda: RandomForestClassifier(100, max_depth=8, n_jobs=1, random_state=0)}
FIXED = dict(adult=['age', 'race', 'sex', 'native-country'], heloc=[])


def answers(X, y, model, rows, immutable):
    "A fitted explainer, answers for rows that it did not learn from, and CPU seconds a row."
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = X.iloc[order[rows:]], X.iloc[order[:rows]]
    cf = GradualCF(model.fit(train, y.iloc[order[rows:]]), tabular(train, immutable=immutable), 'sparse').fit(train)
    cf.explain(test.head(16))
    start = time.process_time()
    cfs = cf.explain(test)
    return cf, cfs, (time.process_time() - start)/len(cfs)


def planted(cf, X, rows, seed=0):
    "Questions with few free columns, of which many have no answer."
    rng, names = np.random.default_rng(seed), [c.name for c in cf.domain.features]
    fixed = [sorted(rng.permutation(names)[:-3].tolist()) for _ in range(rows)]
    return cf.explain(X.head(rows), immutable=fixed)


def mean(v): return float(np.mean(v)) if len(v) else float('nan')


def with_margin(cf, cfs, margin=.02):
    "Distances of answers that keep the margin of networks; missing where that takes another number of columns."
    safe = GradualCF(cf.model, cf.domain, 'sparse', tau_slack=margin)
    safe.x_train, safe.z_train, safe.stats, safe.place = cf.x_train, cf.z_train, cf.stats, cf.place
    safe = safe.explain(cfs.data, cfs.target)
    groups = cf.groups(cfs.x)
    as_many = changed_groups(cfs.x, safe.xp, groups).sum(1) == changed_groups(cfs.x, cfs.xp, groups).sum(1)
    return pd.Series((safe.xp - cfs.x).abs().sum(1).where(as_many & safe.valid, torch.nan).numpy())


def line(cf, cfs, took, exact, seconds):
    "Everything about the answers of one model."
    told = prove(cf, cfs, 'l0', seconds=.15)
    near = prove(cf, cfs, 'cost', seconds=seconds/5)
    decided = (told.bound == told.best) | told.verdict.eq('none exists')
    few, ratio = told['size'] <= 2, near['size']/near.best.where(near.best > 0)
    same = (told['size'] == told.best) & cfs.valid & (told['size'] > 0)
    far = prove(cf, cfs[:exact], 'l1', seconds=seconds)
    safe = with_margin(cf, cfs)/near.best.reset_index(drop=True)
    none = planted(cf, cfs.data, len(cfs)//5)
    lost = none[~none.valid]
    why = prove(cf, lost, 'l0', seconds=seconds) if len(lost) else told.iloc[:0]
    return dict(
        rows=len(cfs), ms=1e3*took, valid=mean(cfs.valid), columns=mean(told['size'][cfs.valid]), proven=mean(decided),
        proof_seconds=mean(told.seconds), columns_optimal=mean((told['size'] == told.best)[cfs.valid]),
        ratio_one_two=mean(ratio[same & few]), ratio_worst=float(ratio[same & few].max()), ratio_margin=mean(safe[(same & few).to_numpy()].dropna()),
        ratio_more=mean(ratio[same & ~few]), more=int((same & ~few).sum()),
        l1_proven=mean(far.best - far.bound < 1e-4*(1 + far.best)), l1_seconds=float(far.seconds.median()),
        infeasible=len(lost), infeasible_proven=mean(why.verdict.eq('none exists')), missed=int(why.verdict.str.startswith('missed').sum()),
        infeasible_seconds=float(why.seconds.median()))


def networks(rows, seconds):
    "Columns of the default's answers for the paper's networks."
    for name in ('heloc', 'uci_credit'):
        task = load_task(name)
        cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
        some = task.X_test.head(rows)
        start = time.process_time()
        cfs = cf.explain(some)
        took = time.process_time() - start
        told = prove(cf, cfs, 'l0', seconds=seconds)
        decided = (told.bound == told.best) | told.verdict.eq('none exists')
        yield dict(data=name, model='network', rows=rows, ms=1e3*took/rows, valid=mean(cfs.valid), columns=mean(told['size'][cfs.valid]),
                   proven=mean(decided), proof_seconds=mean(told.seconds), columns_optimal=mean((told['size'] == told.best)[cfs.valid]))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=300)
    a.add_argument('--exact', type=int, default=30)
    a.add_argument('--seconds', type=float, default=15.)
    a.add_argument('--data', nargs='*', default=['adult', 'heloc'])
    a.add_argument('--models', nargs='*', default=list(MODELS))
    a.add_argument('--networks', action='store_true')
    a.add_argument('--folder', default=None)
    a.add_argument('--out', type=Path)
    a, lines = a.parse_args(), []
    def done(new):
        "Print lines, and put them in the place of those of the same data and model."
        lines.extend(new)
        print(pd.DataFrame(new).round(4).T.to_string(header=False), flush=True)
        if not a.out: return
        old = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['data', 'model'])
        key = [(l['data'], l['model']) for l in lines]
        kept = old[[k not in key for k in zip(old.data, old.model)]]
        with atomic(a.out) as tmp: pd.concat([kept, pd.DataFrame(lines)], ignore_index=True).round(4).to_csv(tmp, index=False)
    folder = a.folder or os.environ['GRADUAL_CF_DATA']
    torch.set_num_threads(1)
    for data in a.data:
        X, y = dict(adult=adult, heloc=heloc)[data](folder)
        for name in a.models:
            if data == 'adult' and 'forest' in name: continue  # it reads no names
            cf, cfs, took = answers(X, y, MODELS[name](), a.rows, FIXED[data])
            done([dict(data=data, model=name) | line(cf, cfs, took, a.exact, a.seconds)])
    if a.networks: done(list(networks(a.rows, 1.)))


if __name__ == '__main__': main()
