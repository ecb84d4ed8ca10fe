"""Frames, networks and questions that nobody wrote by hand, for hypothesis to combine and to shrink."""
import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from torch import nn

from gradual_cf.all import PAPER, tabular
from gradual_cf.models.networks import seeded

ROWS = 40                   # Training rows of a frame
ASKED = 30                  # Rows of it that are explained
DAY = pd.Timestamp('2021-03-01')


def holes(v, r, share=.1):
    "The same cells, a few of them missing, the first never."
    gone = r.random(len(v)) < share
    gone[0] = False
    return v.mask(pd.Series(gone, v.index))


def words(r, n, k=4): return pd.Series(r.choice([f'w{i}' for i in range(k)], n), dtype=object)
def whole(r, n, low=0, high=30): return pd.Series(r.integers(low, high, n))
def broken(r, n, scale=1.): return pd.Series((r.gamma(2, scale, n)).round(3))
def days(r, n): return pd.Series(DAY + pd.to_timedelta(r.integers(0, 400, n), 'D'))


NUMBERS = {                 # how a column of numbers may be stored
    'int64': lambda r, n: whole(r, n),
    'int8': lambda r, n: whole(r, n, -100, 100).astype('int8'),
    'uint8': lambda r, n: whole(r, n, 0, 255).astype('uint8'),
    'uint64': lambda r, n: whole(r, n, 0, 255).astype('uint64'),
    'int32 far from zero': lambda r, n: (whole(r, n) + 2_000_000_000).astype('int32'),
    'Int64 with holes': lambda r, n: holes(whole(r, n).astype('Int64'), r),
    'int64[pyarrow] with holes': lambda r, n: holes(whole(r, n).astype('int64[pyarrow]'), r),
    'int16[pyarrow]': lambda r, n: whole(r, n).astype('int16[pyarrow]'),
    'float64': lambda r, n: broken(r, n),
    'float64 unrounded': lambda r, n: pd.Series(r.normal(0, 1, n)),
    'float64 tiny': lambda r, n: pd.Series(r.gamma(2, 1e-9, n)),
    'float64 huge': lambda r, n: pd.Series(r.gamma(2, 1e12, n)),
    'float64 with holes': lambda r, n: holes(broken(r, n), r),
    'whole floats with holes': lambda r, n: holes(whole(r, n).astype(float), r),
    'float32': lambda r, n: broken(r, n).astype('float32'),
    'float16': lambda r, n: broken(r, n).round(1).astype('float16'),
    'Float64 with holes': lambda r, n: holes(broken(r, n).astype('Float64'), r),
    'Float32': lambda r, n: broken(r, n).astype('Float32'),
    'double[pyarrow] with holes': lambda r, n: holes(broken(r, n).astype('double[pyarrow]'), r),
    'objects of int': lambda r, n: pd.Series(whole(r, n).tolist(), dtype=object),
    'objects of float with holes': lambda r, n: holes(pd.Series(broken(r, n).tolist(), dtype=object), r),
    'Decimal': lambda r, n: pd.Series([Decimal(f'{v:.2f}') for v in r.gamma(2, 100, n)], dtype=object),
    'texts of numbers': lambda r, n: pd.Series([f'{v:.1f}' for v in r.gamma(2, 100, n)], dtype=object),
    'two values': lambda r, n: pd.Series(r.choice([1.5, 7.25], n)),
    'constant': lambda r, n: pd.Series(np.full(n, 3)),
    'ordered': lambda r, n: pd.Series(pd.Categorical(words(r, n), [f'w{i}' for i in range(5)], ordered=True)),
}
DATES = {
    'datetime64[ns]': lambda r, n: days(r, n).astype('datetime64[ns]'),
    'datetime64[s] with holes': lambda r, n: holes(days(r, n).astype('datetime64[s]'), r),
    'in a time zone': lambda r, n: days(r, n).dt.tz_localize('Europe/Berlin'),
    'objects of date': lambda r, n: pd.Series(days(r, n).dt.date.tolist(), dtype=object),
    'texts of dates': lambda r, n: pd.Series(days(r, n).dt.strftime('%Y-%m-%d'), dtype=object),
    'timestamp[us][pyarrow]': lambda r, n: days(r, n).astype('timestamp[us][pyarrow]'),
    'date32[pyarrow]': lambda r, n: days(r, n).astype('date32[day][pyarrow]'),
}
NAMES = {
    'objects': words,
    'string': lambda r, n: words(r, n).astype('string'),
    'string[pyarrow] with holes': lambda r, n: holes(words(r, n).astype('string[pyarrow]'), r),
    'objects with holes': lambda r, n: holes(words(r, n), r),
    'category': lambda r, n: words(r, n).astype('category'),
    'category with levels that no row has': lambda r, n: pd.Series(pd.Categorical(words(r, n), ['w9', *(f'w{i}' for i in range(4))])),
    'category of whole numbers': lambda r, n: whole(r, n, 1, 5).astype('category'),
    'category of intervals': lambda r, n: pd.cut(broken(r, n), [-1, 1, 2, 99]).reset_index(drop=True),
    'category with holes': lambda r, n: holes(words(r, n).astype('category'), r),
    'bool': lambda r, n: pd.Series(r.random(n) < .4),
    'boolean with holes': lambda r, n: holes(pd.Series(r.random(n) < .4).astype('boolean'), r),
    'bool[pyarrow]': lambda r, n: pd.Series(r.random(n) < .4).astype('bool[pyarrow]'),
    'dictionary[pyarrow]': lambda r, n: words(r, n).astype('category'),
}
KINDS = NUMBERS | DATES | NAMES
ORDERED = {*NUMBERS, *DATES}    # columns that may be told to grow only
BETWEEN = {*NUMBERS} - {'ordered', 'constant'}  # columns that bounds make sense for
LABELS = ['a', 'b b', '', 'größe', 0, -1, 2.5, ('x', 1), 'index', 'cf', 'row', 'before', 'a.b', '__class__', 'x' * 60, 'a\nb', datetime.date(2020, 1, 1)]
INDEXES = {
    'plain': lambda r, n: pd.RangeIndex(n),
    'shuffled': lambda r, n: pd.Index(r.permutation(n) + 7, name='id'),
    'twice': lambda r, n: pd.Index(np.arange(n)//2),
    'two levels': lambda r, n: pd.MultiIndex.from_arrays([np.arange(n)//3, [f'r{i}' for i in range(n)]], names=['a', None]),
    'dates': lambda r, n: pd.DatetimeIndex(DAY + pd.to_timedelta(np.arange(n), 'h')),
    'texts': lambda r, n: pd.Index([f'id {i}' for i in range(n)]),
}


class Made(NamedTuple):
    train:pd.DataFrame  # What the domain is fitted on
    rows:pd.DataFrame   # What is asked about
    kinds:dict          # Name of a column -> key of `KINDS`
    rules:dict          # Constraints: immutable, bounds, increase_only, decrease_only, max_changes
    where:str           # Whether they come with the 'domain' or with the 'question'
    seed:int

    def __repr__(self): return f'Made({self.kinds}, {self.rules} with the {self.where}, index {self.train.index.name!r}, seed {self.seed})'


@st.composite
def frames(draw, most=6, kinds=tuple(KINDS)):
    "A frame of a few columns, and the kind of each."
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=most), label='kinds')
    if all(k in ('constant',) for k in chosen): chosen[0] = 'int64'
    labels = draw(st.permutations(LABELS), label='names')[:len(chosen)] if draw(st.booleans(), label='odd names') else [f'c{i}' for i in range(len(chosen))]
    r = np.random.default_rng(seed := draw(st.integers(0, 2**20), label='seed'))
    df = pd.concat([KINDS[k](r, ROWS).reset_index(drop=True) for k in chosen], axis=1, ignore_index=True)
    df.columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    df.index = INDEXES[draw(st.sampled_from(list(INDEXES)), label='index')](r, ROWS)
    if draw(st.booleans(), label='rows that are there twice'): df = pd.concat([df, df.iloc[:5]])
    return df, dict(zip(labels, chosen)), seed


@st.composite
def rules(draw, df, kinds):
    "Constraints that leave a column that may change."
    free = lambda c: kinds[c] != 'constant'
    role = {c: draw(st.sampled_from(['free', 'free', 'immutable', 'up', 'down', 'bounded']), label=repr(c)) for c in kinds}
    role = {c: 'free' if v in ('up', 'down') and kinds[c] not in ORDERED or v == 'bounded' and kinds[c] not in BETWEEN else v for c,v in role.items()}
    if not any(free(c) and role[c] == 'free' for c in kinds): role[next(c for c in kinds if free(c))] = 'free'
    named = lambda word: [c for c,v in role.items() if v == word]
    bounds = {c: ends(df[c], draw(st.sampled_from([(.2, .8), (None, .5), (.5, None), (.4, .6)]), label='share')) for c in named('bounded')}
    return dict(immutable=named('immutable'), bounds=bounds, increase_only=named('up'), decrease_only=named('down'),
                max_changes=draw(st.sampled_from([None, None, 1, 2]), label='max_changes'))


def ends(s, shares):
    "Bounds of a column at some shares of its cells, None for an open side."
    v = np.sort(s.dropna().astype(float))
    return tuple(None if q is None else float(v[int(q*(len(v) - 1))]) for q in shares)


@st.composite
def tables(draw):
    "All that a question about a table needs."
    df,kinds,seed = draw(frames())
    return Made(df, df.iloc[:ASKED], kinds, draw(rules(df, kinds)), draw(st.sampled_from(['domain', 'question']), label='where'), seed)


def domain_of(made):
    "The domain of a table, with the constraints where they belong."
    return tabular(made.train, **(made.rules if made.where == 'domain' else {}))


def asked(made):
    "What comes with the question."
    return made.rules if made.where == 'question' else {}


def network(x, k, seed):
    "An untrained network that predicts all of its classes."
    with seeded(seed): net = nn.Sequential(nn.Linear(x.shape[1], 12), nn.ReLU(), nn.Linear(12, k)).to(x.dtype)
    with torch.no_grad():
        z = net(x)
        net[2].weight.mul_(3/z.std(0).clamp(min=1e-3)[:, None])
        net[2].bias.sub_(z.mean(0)).mul_(3/z.std(0).clamp(min=1e-3))
    return net.eval()


PRESETS:dict[str, Any] = dict(default=None, paper=PAPER)
CHANGES = [{}, {}, dict(tau=.7), dict(tau_slack=.2), dict(sigma=0), dict(batch_size=3), dict(quantile=.3)]
