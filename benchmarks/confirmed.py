"""Do answers last that made-up models confirmed? Asked of networks that were trained again on real labels.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/confirmed.py [--rows 60] [--folds 2] [--frontier] [--out DIR]

Near the protocol of BetaRCE (Stępka et al., 2024): FICO's HELOC in folds, refused rows of the fold that no network saw, and
fifteen networks of the same kind that were trained on resamples of the training rows with their real labels. `robust` is the
mean share of these that decide for the target, over valid answers; `columns` and `l1` (encoded) are means over them, too;
`isolation` is the share of them that an isolation forest, fitted on held-out rows of the target, calls outliers at the rate
of a tenth of these rows; `strange` is the share that it calls outliers at its own rate, fitted on two thirds of them, and
`real_strange` that of the other third. `seconds` is CPU time a row, with the five made-up models in the first row of `confirmed`. Breast
cancer, malignant to benign, needs no data folder. Nothing here was chosen on what is measured here. `--frontier` asks
the first fold of HELOC more, and writes `confirmed_frontier.csv`: more of a margin, shares between .9 and 1, and demands for
company of the forest's kind beside both.
"""
import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import IsolationForest

from gradual_cf.all import PLAUSIBLE, SPARSE, GradualCF, bootstrap, confirm, load_breast_cancer, load_heloc, tabular, tabular_mlp, train
from gradual_cf.core import atomic
from gradual_cf.measures.metrics import outliers
from gradual_cf.search.plausible import Plausibility

NETWORKS = 15
ALONE = Plausibility(density=1., isolation=1.) # Whatever real rows reach counts as company
AMONG = {v: replace(SPARSE, plausibility=replace(ALONE, isolation=v)) for v in (.9, .7, .5)}
METHODS = {
    'default': (SPARSE, {}), 'tau=.7': (replace(SPARSE, tau=.7), {}), 'logit_margin=.35': (replace(SPARSE, logit_margin=.35), {}),
    'PLAUSIBLE': (PLAUSIBLE, {}), **{f'confirmed={v}': (SPARSE, dict(confirmed=v)) for v in (.8, 1.)},
    'PLAUSIBLE, confirmed=1.0': (PLAUSIBLE, dict(confirmed=1.))}
FRONTIER = METHODS | {
    **{f'tau={v}': (replace(SPARSE, tau=v), {}) for v in (.75, .8, .85, .87, .88, .9, .95)},
    **{f'logit_margin={v}': (replace(SPARSE, logit_margin=v), {}) for v in (.5, .7)},
    **{f'confirmed={v}': (SPARSE, dict(confirmed=v)) for v in (.95, .97)},
    'tau=.7, confirmed=0.95': (replace(SPARSE, tau=.7), dict(confirmed=.95)),
    **{f'isolation={v}, tau=.75': (replace(how, tau=.75), {}) for v, how in AMONG.items()},
    **{f'isolation={v}, confirmed=0.97': (how, dict(confirmed=.97)) for v, how in AMONG.items()}}


def network(domain, X, y, seed):
    torch.manual_seed(seed)
    x = domain.encode(X).x
    return train(tabular_mlp(x.shape[1], 2), x, torch.as_tensor(np.asarray(y)), seed=seed)


def lines(name, X, y, target, fold, rows, methods):
    "One fold of one table, a line for each method."
    rng = np.random.default_rng(fold)
    order = rng.permutation(len(X))
    test, fit = order[:len(X)//4], order[len(X)//4:]
    A, b, B = X.iloc[fit], np.asarray(y)[fit], X.iloc[test]
    domain = tabular(A)
    net = network(domain, A, b, fold)
    others = bootstrap(lambda X, y: network(domain, X, y, fold + 100), A, b, NETWORKS, seed=fold)
    base = GradualCF(net, domain, 'sparse').fit(A)
    before = base.logits(B, base.encode(B).x).argmax(1).numpy()
    asked, real = B[before != target].head(rows), B[before == target]
    forest = IsolationForest(random_state=0).fit(base.encode(real).x.numpy())
    bar = np.quantile(forest.score_samples(base.encode(real).x.numpy()), .1)
    there = base.encode(real).x
    third, wanted = len(there)//3, torch.full((len(there),), target)
    strange = lambda xp: outliers(xp, wanted[:len(xp)], there[third:], base.logits(real, there)[third:])['isolation'].double().mean().item()
    for method, (settings, how) in methods.items():
        cf = GradualCF(net, domain, settings).fit(A)
        start = time.process_time()
        answers = cf.explain(asked, target, **how)
        seconds = (time.process_time() - start)/len(asked)
        some = answers[answers.valid]
        yield dict(table=name, fold=fold, method=method, rows=len(asked), valid=answers.valid.mean(), robust=np.nanmean(confirm(some, others).confirmed),
                   columns=some.changed.sum(1).mean(), l1=(some.xp - some.x).abs().sum(1).mean().item(),
                   isolation=(forest.score_samples(some.xp.numpy()) < bar).mean(), strange=strange(some.xp),
                   real_strange=strange(there[:third]), legal=np.asarray(domain.legal(asked, answers.raw)).all(1).mean(), seconds=seconds)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    p.add_argument('--rows', type=int, default=60)
    p.add_argument('--folds', type=int, default=2)
    p.add_argument('--frontier', action='store_true')
    p.add_argument('--out', type=Path, default=Path(__file__).parent/'results')
    a = p.parse_args()
    cancer, heloc = load_breast_cancer(), load_heloc()
    whole = lambda t: (pd.concat([t[0], t[2]]), np.r_[t[1], t[3]])
    tables, found = [('breast_cancer', *whole(cancer), 1), ('heloc', *whole(heloc), 1)], []
    if a.frontier: tables, a.folds = tables[1:], 1
    methods, file = (FRONTIER, 'confirmed_frontier.csv') if a.frontier else (METHODS, 'confirmed.csv')
    for name, X, y, target in tables:
        for fold in range(a.folds):
            for line in lines(name, X, y, target, fold, a.rows, methods):
                found.append(line)
                print('  '.join(f'{k} {v:.3f}' if isinstance(v, float) else f'{k} {v}' for k, v in line.items()), flush=True)
                with atomic(a.out/file) as tmp: pd.DataFrame(found).round(4).to_csv(tmp, index=False)
    print(pd.DataFrame(found).groupby(['table', 'method'], sort=False)[['robust', 'columns', 'l1', 'isolation', 'strange', 'real_strange', 'valid', 'legal', 'seconds']].mean().round(3))


if __name__ == '__main__': main()
