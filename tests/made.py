"""Frames, models and fitted explainers that several files share; what is fitted is fitted once a process and changed by nobody."""
import functools
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
import written
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gradual_cf.all import GradualCF, load_loans, tabular


# Frames
def table(n=300, seed=0):
    "A mixed frame and labels that depend on every kind of column; what the network `bank` reads."
    r = np.random.default_rng(seed)
    df = pd.DataFrame({'age': r.integers(18, 90, n), 'income': r.gamma(2., 900., n).round(2), 'late': r.choice([-9, -8, 0, 1, 2, 5, 9], n),
                       'job': pd.Categorical(r.choice(['clerk', 'nurse', 'pilot'], n)), 'owner': r.random(n) < .5})
    score = df.income/900 - .4*df.late.clip(0) + (df.job == 'pilot') + .5*df.owner + r.normal(0, .3, n)
    df.index = [f'id{i}' for i in range(n)]
    return df, (score > score.median()).astype(int)


def people(n=160, seed=0):
    "A table of every kind of column, with missing cells."
    r = np.random.default_rng(seed)
    df = pd.DataFrame(dict(
        age=r.integers(18, 70, n), income=r.normal(40, 9, n), score=r.normal(0, 1, n).astype('float32').round(2),
        code=r.choice([-9, 1, 2, 3, 4], n), member=r.choice([True, False], n), since=pd.Timestamp('2020-01-01') + pd.to_timedelta(r.integers(0, 900, n), 'D'),
        day=[date(2024, 1, 1 + k) for k in r.integers(0, 28, n)], price=[Decimal(f'{v:.2f}') for v in r.uniform(1, 9, n)],
        zoned=pd.date_range('2024-01-01', periods=n, tz='Europe/Berlin'), job=r.choice(['clerk', 'cook', 'smith'], n),
        grade=pd.Categorical(r.choice(['low', 'mid', 'high'], n), ['low', 'mid', 'high', 'none'], ordered=True),
        kind=pd.Categorical(r.choice(['a', 'b'], n)), count=pd.array(r.integers(0, 5, n), dtype='Int64'), town=pd.array(r.choice(['x', 'y'], n), dtype='string')))
    df.loc[::7, 'income'] = np.nan
    df.loc[::9, 'count'] = pd.NA
    df.loc[::8, 'job'] = None
    df.loc[::11, 'since'] = pd.NaT
    return df


class Lent:
    "A frame of another library: all that is known of it is that pandas can have it."
    def __init__(self, df): self.df = df
    def to_pandas(self): return self.df
    def __len__(self): return len(self.df)


# Models
def line(df): return 0.05*(df.age - 40) + .1*(df.income.fillna(30) - 40) + (df.member.astype(float) - .5) + (df.job == 'cook').astype(float)
def by_hand(df): return 1/(1 + np.exp(-line(df).to_numpy(float)))


def pipeline(X, y, last):
    "A model of loans as people fit one."
    first = ColumnTransformer([('named', OneHotEncoder(handle_unknown='ignore'), ['housing'])], remainder=StandardScaler())
    return make_pipeline(first, last).fit(X, y)


@functools.cache
def bank():
    "The frame of `table`, its labels, and the network that reads it."
    return *table(), written.read('bank')


# Explainers
def linear(domain, df, weights=None, shift=1e-4, **how):
    "An explainer of a linear model of the encoded rows, with half of the rows in each class."
    x = domain.encode(df).x
    w = torch.as_tensor(np.random.default_rng(0).normal(size=x.shape[1]) if weights is None else weights).to(x)
    middle = (x @ w).median() + shift  # no row lies on it
    model = lambda x: torch.stack([middle - x @ w.to(x), x @ w.to(x) - middle], 1)*4
    return GradualCF(model, domain, 'sparse', **how).fit(df)


@functools.cache
def loans():
    "Loans, a fitted explainer of them, and four rows that are refused."
    X, y, X_test, _ = load_loans()
    X, y = X[:300], np.asarray(y[:300])
    model = pipeline(X, y, LogisticRegression())
    return GradualCF(model, tabular(X, immutable=['age']), 'sparse').fit(X), X_test[model.predict(X_test) == 'refused'][:4]


# Answers
def same(a, b):
    "Two batches are the same bit for bit, whatever they are called."
    for name in ('x', 'xp', 'mask', 'target', 'prob', 'before', 'decided', 'found', 'typical', 'size', 'bound', 'confirmed'):
        u, v = (getattr(cfs, name) for cfs in (a, b))
        assert (u is None) == (v is None), name
        if u is not None: np.testing.assert_array_equal(np.asarray(u), np.asarray(v), name, strict=True)
    if isinstance(a.raw, pd.DataFrame): pd.testing.assert_frame_equal(a.raw, b.raw)
    assert (a.proof or ['']*len(a)) == (b.proof or ['']*len(b)) and a.changes().drop(columns='row').equals(b.changes().drop(columns='row'))


def needs_pdf():
    "Skip where the library of PDFs, or what it needs of the system, is missing."
    from gradual_cf.use.letter import _weasyprint
    try: _weasyprint()
    except ImportError as e: pytest.skip(str(e)[:200])


# Tables that mislead
def misleading(seed):
    "A made table, and what is true of it: column -> codes, identifiers, columns of persons, ties (a function of a frame: what each is off by)."
    r = np.random.default_rng(seed)
    n = int(r.integers(200, 500))
    X, codes = pd.DataFrame({'plain': r.normal(size=n).round(2)}), {}
    for i, code in enumerate(r.choice([-999., 9999., -1., 99999., -99., 1e7], 2, replace=False)):
        v, dtype = r.uniform(20, 80, n), r.choice(['float64', 'float32', 'int64', 'Int64', 'one decimal'])
        v = v.round(1) if dtype == 'one decimal' else v.round(0) if 'nt' in dtype else v
        X[f'coded{i}'] = pd.Series(np.where(r.random(n) < .2, code, v)).astype('float64' if dtype == 'one decimal' else dtype)
        codes[f'coded{i}'] = code
    X['income'], X['rent'] = r.integers(20, 90, n)*1000, r.integers(100, 900, n)
    ties = [('burden', lambda f: 12*f.rent/f.income, 5.1e-5), ('both', lambda f: f.income + f.rent, 0), ('weekly', lambda f: f.rent/52, 1e-9),
            ('product', lambda f: f.rent*f.income, 0)]
    name, function, off = ties[seed % len(ties)]
    X[name] = function(X).round(4) if name == 'burden' else function(X)
    X['customer'] = r.permutation(n) + 5000 if seed % 2 else np.sort(r.permutation(2*n)[:n]) + 700_000
    who, levels = [('geslacht', ['man', 'vrouw']), ('civil_status', ['single', 'married']), ('Nationalität', ['de', 'fr', 'pl']), ('x7', ['Asian', 'Hispanic', 'White']),
                   ('płeć', ['k', 'm']), ('état civil', ['marié', 'célibataire'])][seed % 6]
    X[who] = r.choice(levels, n)
    priors = r.poisson(4, n)
    X['priors'] = priors/priors.max()
    kinds = pd.concat([pd.get_dummies(pd.Series(r.choice(list('abc'), n)), prefix=p, dtype=float) for p in ('home_type', 'home_state')], axis=1)
    X = pd.concat([X, kinds], axis=1)
    score = X.plain + sum((X[c].astype(float) == code)*1.2 for c, code in codes.items()) + (X[who] == levels[0]) + (X.customer > X.customer.median())*.8
    score += .8*(X.income/6e4 - X.rent/900) - X.priors + kinds.iloc[:, 0] + r.normal(0, .2, n)
    return X, (score > score.quantile(.6)).astype(int), dict(codes=codes, who=who, tie=(name, function, off), step=1/priors.max(), kinds=[list(kinds)[:3], list(kinds)[3:]])
