"""Answers for networks of this year's customers, and what networks of next year's say: UCI Credit by the order of its ids.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/drift.py [--rows 1000] [--seeds 3] [--out FILE]

Networks trained on the first half of the ids are explained; those trained on the second half confirm. `real rows` are held rows of
the second half, with the class that the first network gives them.
"""

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PLAUSIBLE, GradualCF, confirm, load_uci_credit, predict, tabular
from gradual_cf.core import atomic
from splits import network
from options import RESULTS, options

METHODS = {'default': {}, 'quantile=.5': dict(quantile=.5), 'PLAUSIBLE': dict(intent=PLAUSIBLE)}


def drift(rows, seeds):
    "A line for each training and setting."
    X, y, Xt, _ = load_uci_credit()
    middle, lines = (len(X) + len(Xt))//2, []
    now, later = (X.index < middle, X.index >= middle)
    domain, some = tabular(X[now]), Xt[Xt.index < middle].iloc[:rows]
    x = {when: domain.encode(X[part]).x.float() for when, part in (('now', now), ('later', later))}
    labels = {'now': torch.tensor(y[now].to_numpy(int)), 'later': torch.tensor(y[later].to_numpy(int))}
    tomorrow = [network(x['later'], labels['later'], seed) for seed in range(3)]
    for seed in range(seeds):
        net = network(x['now'], labels['now'], seed)
        for name, more in METHODS.items():
            cfs = confirm(GradualCF(net, domain, 'sparse', **more).fit(X[now]).explain(some), tomorrow)
            stands = cfs.quality()[['changes', 'distance', 'typical', 'confirmed']].mean()
            lines.append(dict(data='uci', seed=seed, method=name, rows=len(some), valid=float(cfs.valid.mean())) | stands.to_dict())
        held = domain.encode(Xt[Xt.index >= middle]).x.float()
        own = predict(net, held).argmax(1)
        agree = np.mean([(predict(n, held).argmax(1) == own).float().mean().item() for n in tomorrow])
        lines.append(dict(data='uci', seed=seed, method='real rows', rows=len(held), confirmed=float(agree)))
    return pd.DataFrame(lines).round(4)


def main():
    a = options(__doc__, rows=1000, seeds=3, out=RESULTS/'drift.csv')
    table = drift(a.rows, a.seeds)
    with atomic(a.out) as tmp: table.to_csv(tmp, index=False)
    print(table.to_string())


if __name__ == '__main__': main()
