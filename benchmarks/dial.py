"""What each strength of `plausible` buys and costs, beside real rows of the target.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/dial.py [--rows 60] [--fit 2000] [--out DIR]

Breast cancer to benign, HELOC to granted, UCI credit to default (the rarer class); a network and boosted trees. `isolation` and
`lof` are the shares of valid answers that judges, fitted on held-out rows of the target, call outliers; `same` is the mean share
of five models of the same kind, trained on resamples, that agree; `columns` is how many changed, `ms` CPU time a row in a batch.
The line `real rows` measures training rows of the target, and `twice` asks for twice what the end of the dial asks for. Nothing
was chosen on these tables: the end of the dial is the preset as it was before. One draw of 60 rows for each table and model, so small differences mean nothing.
"""
import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from gradual_cf.all import (GradualCF, bootstrap, load_breast_cancer, load_heloc, load_uci_credit, plausible, Plausibility, predict, tabular,
                            tabular_mlp, train)
from gradual_cf.core import atomic
from gradual_cf.measures.metrics import outliers

TWICE = replace(plausible(), plausibility=Plausibility(density=.7, isolation=.8), logit_margin=.7, sparsity_weight=1.)
SETTINGS = {s: plausible(s) for s in (0, .25, .5, .75, 1)} | dict(twice=TWICE)


def network(domain, X, y):
    torch.manual_seed(0)
    x = domain.encode(X).x
    return train(tabular_mlp(x.shape[1], 2), x, torch.as_tensor(np.asarray(y)), seed=0)


def boosting(domain, X, y): return HistGradientBoostingClassifier(random_state=0, max_iter=50).fit(X, y)


def lines(name, table, target, kind, rows, fit):
    "One table and one kind of model, a line for each strength and one for real rows."
    X, y, held, _ = table
    X, y = X.head(fit), np.asarray(y)[:fit]
    domain = tabular(X)
    model, others = kind(domain, X, y), bootstrap(lambda X, y: kind(domain, X, y), X, y)
    base = GradualCF(model, domain).fit(X)
    others = [GradualCF(m, domain).fit(X).model for m in others]
    x, agree = base.encode(held).x, lambda xp: np.mean([(predict(m, xp).argmax(1) == target).numpy().mean() for m in others])
    z = predict(base.model, x)
    def told(method, xp, **more):
        out = outliers(xp, torch.full((len(xp),), target), x, z)
        return dict(table=name, model=kind.__name__, strength=method, rows=rows, **more, **{j: v.double().mean().item() for j, v in out.items()},
                    same=agree(xp))
    yield told('real rows', base.x_train[base.z_train.argmax(1) == target][:rows])
    asked = held[(z.argmax(1) != target).numpy()].head(rows)
    for s, settings in SETTINGS.items():
        cf = GradualCF(model, domain, settings).fit(X)
        start = time.process_time()
        answers = cf.explain(asked, target)
        ms = 1000*(time.process_time() - start)/len(asked)
        some = answers[answers.valid]
        yield told(s, some.xp, valid=answers.valid.mean(), columns=some.changed.sum(1).mean(), ms=ms)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    p.add_argument('--rows', type=int, default=60)
    p.add_argument('--fit', type=int, default=2000)
    p.add_argument('--out', type=Path, default=Path(__file__).parent/'results')
    a = p.parse_args()
    tables = dict(breast_cancer=load_breast_cancer(), heloc=load_heloc(), uci_credit=load_uci_credit())
    found = []
    for name, table in tables.items():
        for kind in network, boosting:
            for line in lines(name, table, 1, kind, a.rows, a.fit):
                found.append(line)
                print('  '.join(f'{k} {v:.3f}' if isinstance(v, float) else f'{k} {v}' for k, v in line.items()), flush=True)
                with atomic(a.out/'dial.csv') as tmp: pd.DataFrame(found).round(4).to_csv(tmp, index=False)
    print(pd.DataFrame(found).groupby(['model', 'strength'], sort=False)[['columns', 'isolation', 'lof', 'same', 'valid', 'ms']].mean().round(3))


if __name__ == '__main__': main()
