"""Answers that people and a retrained network believe: the preset beside today's default and its peers, on six tables.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/believable.py [--rows 1000] [--seeds 3] [--peers DIR]
        [--data heloc …] [--methods …] [--limit 20] [--out FILE]

The test rows are cut in two. The first half judges: on its rows that the network gives to the target, LOF
(20 neighbours) and an isolation forest (100 trees) are fitted with scikit-learn's defaults. Rows of the second half are
explained. No search sees a test row. Measured on valid rows, decoded and encoded again:

valid, legal  the network's own word, and the domain's
columns, l2   how many columns changed, and how far, in ranges of their columns
lof, forest   share of answers that the judges call outliers
confirmed     agreement of five networks, three with other seeds and two trained on resamples: mean, and the worst
pairs         share of answers with a pair of values that touches a change and that no row of the first half shows;
              numbers in tenths of the training rows, where they have more than ten values
typical       mean of what the answer says of itself
ms            CPU milliseconds a row, all rows in one call; peers one by one, as many as fit into --limit seconds

`real rows` are those of the second half that the network gives to the target; their pairs touch the columns that the
preset changed in an answer drawn at random. A line is kept as soon as it is there, and a run that was stopped goes on.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import GradualCF, load_heloc, load_uci_credit, tabular, tabular_mlp, train
from gradual_cf.core import atomic, changed_groups
from gradual_cf.explainer import predict

PEERS = ['NICEx==0.2.3', 'dice-ml==0.12', 'raiutils==0.4.2'] # the last is imported by dice-ml


@dataclass
class Data:
    "A table in three parts."
    name:str
    X:pd.DataFrame     # Training rows
    y:np.ndarray       # Their labels
    held:pd.DataFrame  # Rows that judge
    rows:pd.DataFrame  # Rows to explain
    rules:dict         # What may not change
    wanted:int|None    # The class that people want; None for both directions


def tables(): return Path(os.environ['GRADUAL_CF_DATA'])/'tables'


def cut(name, df, label, wanted, **rules):
    "A table as features and labels, with categories, shuffled and cut in 60, 20 and 20 hundredths."
    X = df.drop(columns=label.name)
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(0).permutation(len(X))
    a, b = len(X)*6//10, len(X)*8//10
    part = lambda i: X.iloc[order[i]]
    return Data(name, part(slice(0, a)), label.to_numpy(int)[order[:a]], part(slice(a, b)), part(slice(b, None)), rules, wanted)


def halved(name, loaded, **rules):
    "A table of the package, its test rows cut in two."
    X, y, Xt, _ = loaded
    half = len(Xt)//2
    return Data(name, X, y.to_numpy(int), Xt.iloc[:half], Xt.iloc[half:], rules, None)


def adult():
    df = pd.read_csv(tables()/'adult.csv', skipinitialspace=True, keep_default_na=False)
    df = df.drop(columns=['fnlwgt', 'education-num']).drop_duplicates()
    return cut('adult', df, (df['class'] == '>50K').rename('class'), 1,
               immutable=['sex', 'race', 'native-country'], increase_only=['age'])


def german():
    df = pd.read_csv(tables()/'german_credit.csv')
    fixed = [c for c in df if c in ('personal_status_sex', 'foreign_worker')]
    return cut('german', df, df['default'], 0, immutable=fixed, increase_only=['age'])


def bank():
    df = pd.read_csv(tables()/'bank_marketing.csv', index_col=0)
    return cut('bank', df, (df.y == 'yes').rename('y'), 1, increase_only=['age'])


def compas():
    df = pd.read_csv(tables()/'compas.csv')
    dates = ['compas_screening_date', 'c_jail_in', 'c_jail_out', 'days_b_screening_arrest']
    df = df.drop(columns=[*dates, 'age_cat', 'decile_score', 'score_text']).dropna()
    return cut('compas', df, df.two_year_recid, 0, immutable=['sex', 'race'], increase_only=['age'])


LOAD = dict(heloc=lambda: halved('heloc', load_heloc()), uci=lambda: halved('uci', load_uci_credit()),
            adult=adult, german=german, bank=bank, compas=compas)


def network(x, y, seed, rows=slice(None)):
    "A network of the paper's kind."
    return train(tabular_mlp(x.shape[1], seed=seed), x[rows], y[rows], seed=seed)


def networks(data, domain, seed, folder):
    "The network, three others by seed and two by resamples, kept in a folder."
    path = folder/f'believable-{data.name}-{seed}.pt'
    x, y = domain.encode(data.X).x.float(), torch.as_tensor(data.y)
    nets = [tabular_mlp(x.shape[1]) for _ in range(6)]
    if path.is_file():
        for net, state in zip(nets, torch.load(path, weights_only=True)): net.load_state_dict(state)
        return nets
    rng = np.random.default_rng(seed)
    drawn = [slice(None)]*4 + [torch.as_tensor(rng.integers(0, len(x), len(x))) for _ in range(2)]
    nets = [network(x, y, 100*seed + i, rows) for i, rows in enumerate(drawn)]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(path) as tmp: torch.save([n.state_dict() for n in nets], tmp)
    return nets


def codes_of(data):
    "How cells are told apart: tenths of the training rows for numbers with more than ten values."
    cuts = {c: np.unique(data.X[c].quantile(np.arange(1, 10)/10)) for c in data.X
            if pd.api.types.is_numeric_dtype(data.X[c]) and data.X[c].nunique() > 10}
    def codes(df):
        return np.column_stack([np.searchsorted(cuts[c], df[c].astype(float)) if c in cuts else
                                pd.Categorical(df[c], categories=sorted(data.X[c].unique())).codes for c in df])
    return codes


class Judges:
    "What held rows say of answers."
    def __init__(self, data, domain, net, others):
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        self.data, self.domain, self.net, self.others, self.codes = data, domain, net, others, codes_of(data)
        x = domain.encode(data.held).x.float()
        said = predict(net, x).argmax(1)
        self.seen = self.codes(data.held)
        self.lof, self.forest = {}, {}
        for t in (0, 1):
            own = x[said == t].numpy()
            self.lof[t] = LocalOutlierFactor(20, novelty=True).fit(own)
            self.forest[t] = IsolationForest(n_estimators=100, random_state=0).fit(own)

    def unseen(self, frame, changed):
        "Whether a pair of values that touches a change is in no held row."
        new, out = self.codes(frame), np.zeros(len(frame), bool)
        big = int(max(new.max(), self.seen.max())) + 2
        g = new.shape[1]
        for j in range(g):
            for l in range(g):
                if l == j: continue
                pairs = np.unique(self.seen[:, j]*big + self.seen[:, l])
                out |= changed[:, j] & ~np.isin(new[:, j]*big + new[:, l], pairs)
        return out

    def of(self, x, target, frame, changed):
        "All measures of rows, `x` encoded."
        v, out = x.numpy(), dict(lof=np.zeros(len(x), bool), forest=np.zeros(len(x), bool))
        for t in np.unique(target):
            i = target == t
            out['lof'][i] = self.lof[t].predict(v[i]) < 0
            out['forest'][i] = self.forest[t].predict(v[i]) < 0
        agree = np.stack([predict(n, x).argmax(1).numpy() == target for n in self.others])
        told = {k: float(w.mean()) for k, w in out.items()}
        return told | dict(confirmed=float(agree.mean()), worst=float(agree.mean(1).min()),
                           pairs=float(self.unseen(frame, changed).mean()))


@dataclass
class Case:
    "One network of one table, and what is asked of it."
    data:Data
    domain:Any
    net:Any
    judges:Judges
    seed:int
    rows:pd.DataFrame
    target:np.ndarray


def case_of(data, seed, n, folder):
    "Train, or read what was trained; the rows to explain."
    domain = tabular(data.X, **data.rules)
    net, *others = networks(data, domain, seed, folder)
    rows = data.rows.iloc[np.random.default_rng(seed).permutation(len(data.rows))]
    said = predict(net, domain.encode(rows).x.float()).argmax(1).numpy()
    if data.wanted is not None: rows, said = rows[said != data.wanted], said[said != data.wanted]
    return Case(data, domain, net, Judges(data, domain, net, others), seed, rows.iloc[:n], 1 - said[:n])


def measured(case, method, raw, seconds, note='', **more):
    "One line of the table."
    n, d = len(raw), case.domain
    old, target = case.rows.iloc[:n], case.target[:n]
    x, xp = (d.encode(v).x.float() for v in (old, raw))
    valid = predict(case.net, xp).argmax(1).numpy() == target
    changed = changed_groups(x, xp, d.groups(x.shape[1:])).numpy()
    legal = d.legal(old, raw).all(1)
    told = case.judges.of(xp[valid], target[valid], raw[valid], changed[valid])
    mean = lambda v: float(v[valid].mean())
    line = dict(data=case.data.name, seed=case.seed, method=method, rows=n, valid=float(valid.mean()), legal=mean(legal),
                columns=mean(changed.sum(1)), l2=mean((x - xp).norm(dim=1).numpy()), **told, ms=1e3*seconds, **more, note=note)
    print({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}, flush=True)
    return line, changed


def real(case, changed):
    "The rows of the second half that are what is wanted, as if they were answers."
    d, rows = case.domain, case.data.rows
    x = d.encode(rows).x.float()
    said = predict(case.net, x).argmax(1).numpy()
    i = np.isin(said, np.unique(case.target))
    drawn = changed[np.random.default_rng(0).integers(0, len(changed), i.sum())]
    told = case.judges.of(x[i], said[i], rows[i], drawn)
    return dict(data=case.data.name, seed=case.seed, method='real rows', rows=int(i.sum()), **told)
