"""What is refused, and how: a table for each door, a line for each message. The call comes first, then words that the message holds."""
import datetime
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import refused as r
import torch
from made import Lent
from refused import LABELS, N, X, answers, bare, called, cf, domain, each, fresh, model, of_table, own, plain, refuses, table
from safetensors.torch import save_file
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from test_relations import people
from torch import nn

from gradual_cf.all import (PAPER, PLAUSIBLE, Common, GradualCF, Plausibility, Settings, Wachter, accuracy, confirm, load_fitted,
    digit_cnn, load_heloc, load_model, mix, plausible, predictor, reachable, save_model, strided_cnn, tabular, tabular_mlp, train)
from gradual_cf.models.fitted import recognise

# Asking: `explain` and what asks like it
FRAMES = {
    'a missing column': (lambda d: d.drop(columns='income'), "data must … missing ['income']"),
    'a column twice': (lambda d: d.iloc[:, [0, *range(d.shape[1])]], 'data must have distinct columns, got'),
    'NaN': (lambda d: d.assign(income=np.nan), "data must … got nan in column 'income'"),
    'infinity': (lambda d: d.assign(income=np.inf), "data must … got inf in column 'income'"),
    'an unknown category': (lambda d: d.assign(job='actor'), "data must … known levels … 'job', got 'actor'"),
    'text in a number': (lambda d: d.assign(age='old'), "data must … numeric in column 'age', got 'old'"),
    'an empty frame': (lambda d: d[:0], 'data must … at least one row, got an empty frame'),
    'no frame': (lambda d: d.income.tolist(), 'data must be a frame … got list'),
}
RULES = {
    'an unknown column': (dict(immutable=['agee']), "immutable must name columns of df, got ['agee']"),
    'a string': (dict(increase_only='age'), "increase_only must be a list of columns, got the string 'age'"),
    'too few rows': (dict(immutable=[['age'], []]), 'immutable must be the same for all rows or one for each (3), got 2'),
    'bounds of too few rows': (dict(bounds=[{}]), 'bounds must be the same for all rows or one for each (3), got 1'),
    'a frame of numbers': (dict(immutable=pd.DataFrame({'age': [1, 0, 1]})), 'immutable must be True or False in a frame'),
    'both ways': (dict(increase_only=['age'], decrease_only=[['age'], [], []]), 'must not overlap'),
    'a category': (dict(decrease_only=['job']), "must name numbers, got categories ['job']"),
    'bounds of a category': (dict(bounds={'job': (0, 1)}), "bounds must be of numbers, got (0, 1) for the category 'job'"),
    'bounds beyond the table': (dict(bounds={'age': (1000, None)}), 'bounds must leave a value that training rows have, from '),
    'bounds beyond the table in one row': (dict(bounds=[{}, {}, {'age': (None, -5)}]), "got (None, -5) for 'age'"),
    'bounds the wrong way': (dict(bounds={'age': (50, 20)}), "bounds must have low ≤ high, got 'age': (50, 20)"),
    'bounds that are no numbers': (dict(bounds={'age': ('young', None)}), "numeric in column 'age', got 'young'"),
    'bounds that are no list': (dict(bounds='age'), 'bounds must be a dict of columns, a list of dicts or a frame of pairs'),
    'bounds of an unknown column': (dict(bounds={'agee': (1, 2)}), "bounds must name columns of df, got ['agee']"),
}


def ask(how, rows=3, e=cf): return e().explain(X().iloc[:rows], **how)
def held(v, e=cf, **how): return e().under(hold=v).explain((X() if e is cf else N()).iloc[:2], **how)
def labelled(kind, target): own('line', kind).explain(N().iloc[:2], target)
def number(target): own('number').explain(N().iloc[:2], target)
def hist(**how): of_table().explain(N().iloc[:2], **how)
def in_hole(x): return (x[:, 1] > .2) & (x[:, 1] < .4)
def gaps():
    "Rows without, with, without and with an income in the hole."
    inside = in_hole(domain().encode(X()).x).numpy()
    return np.r_[np.flatnonzero(~inside)[:2], np.flatnonzero(inside)[:2]][[0, 2, 1, 3]]
def spoilt(): return X().astype({'job': object}).assign(job=lambda d: d.job.where(d.index != 'id1', 'Atlantis'))
def holed():
    "An explainer of a network that has no answer for some incomes."
    net = fresh()
    return GradualCF(lambda x: torch.where(in_hole(x)[:, None], torch.nan, net(x)), domain(), 'sparse',
        sigma=0).fit(X()[~in_hole(domain().encode(X()).x).numpy()])
def moved(change):
    "An explainer of a network that is changed after fit."
    e = GradualCF(fresh(), domain(), 'sparse').fit(X())
    change(e.model)
    return e


@table(
    *[(name, lambda f=f: cf().explain(f(X().iloc[:3])), says) for name, (f, says) in FRAMES.items()],
    *[(name, lambda how=how: ask(how), says) for name, (how, says) in RULES.items()],
    *each([2, -1, 7], lambda t: ask(dict(target=t)), 'target must be in 0..1, got {v}', 'a target of '),
    ('a target too short', lambda: ask(dict(target=[0, 1])), 'target must … one per row (3) … got'),
    *each([.5, 'good'], lambda t: ask(dict(target=t)), 'target must … integer … got', 'a target of '),
    *[(f'{kind} {target!r}', lambda kind=kind, target=target: labelled(kind, target),
        'target must be one of the labels ' + ' … '.join(map(repr, sorted(LABELS[kind]))) + ' … got')
      for kind, target in [('text', 'maybe'), ('text', 1), ('signs', 0), ('from_one', 0), ('digits', 2), ('digits', '5'),
      ('decimals', True), ('text', ['granted', 'so']),
                           ('booleans', 'True'), ('text', np.nan), ('text', [['granted'], ['refused']])]],
    ('no target, three classes', lambda: r.grades().explain(X().iloc[:3]), 'explain must know what people want, one of the labels 0, 1, 2: write GradualCF(model, X, wanted=0)'),
    ('no target, four labels', lambda: labelled('digits', None), 'one of the labels 3, 5, 8, 9'),
    ('three targets, two rows', lambda: labelled('digits', [3, 5, 8]), 'target must … one per row (2) … got'),
    ('an interval of classes', lambda: labelled('text', (.2, .4)), 'target must … got'),
    *each([1, 'ab'], number, 'target must … an interval … got', 'a number of '),
    ('no interval', lambda: number(None), 'explain must know what people want, an interval of numbers'),
    *each([(3, 2), (np.nan, 1)], number, 'target must … low ≤ high … got', 'a number of '),
    ('intervals of other rows', lambda: number([(0, 1)]*3), 'target must … one per row … got'),
    ('before fit', lambda: GradualCF(plain().model, plain().domain, 'sparse').explain(plain().x), 'fit must be called'),
    ('a trace before fit', lambda: GradualCF(plain().model, plain().domain, 'sparse').trace(plain().x[:1]), 'fit must be called'),
    *each([0, 1.5, [1, 2], 'two'], lambda v: ask(dict(max_changes=v)), 'max_changes must be … got', 'max_changes='),
    *[(f'{name} of inputs without names', lambda name=name, v=v: bare().explain(plain().x[:2], **{name: v}), f'{name} must be left out … got')
      for name, v in dict(immutable=['a'], bounds={'a': (0, 1)}, increase_only=['a'], decrease_only=['a']).items()],
    *each([0, -1, 2.5, True, '3'], lambda v: cf().explain(X()[:2], k=v), 'k must be a whole number of at least 1, got {v}', 'k='),
    *each([-.1, 1.1, 'much', True], lambda v: cf().under(diversity=v).explain(X()[:2], k=5), 'diversity must be in [0, 1], got {v}', 'diversity='),
    ('several of no change', lambda: cf().explain(X()[:2], max_changes=0, k=5), 'max_changes must be … got 0'),
    ('an array of two columns', lambda: own().explain(N().to_numpy()[:3, :2]), 'an array `(n, 3)`, got ndarray of shape (3, 2)'),
    ('a text', lambda: cf().explain('rows'), 'data must … list of dicts, … got str'),
    *each([0, 2.5, True], lambda v: ask(dict(limit=dict(calls=v))), 'calls must be a whole number of at least 1, got {v}', 'calls='),
    *each([-1, '60'], lambda v: ask(dict(limit=dict(rows=v))), 'rows must be a whole number of at least 1, got {v}', 'rows='),
    ('rows and seconds', lambda: ask(dict(limit=dict(rows=60, seconds=3))), 'calls and rows must be left out'),
    ('rows and models', lambda: held(.5, limit=dict(rows=60)), 'limit must be left out where answers must hold for other models'),
    ('a limit of nobody', lambda: ask(dict(limit=dict(time=3))), "limit must be seconds, or a dict of … got ['time']"),
    *each([dict(proof='columns'), dict(limit=dict(rows=60))], lambda v: ask(dict(k=2) | v), 'k must be 1 with proof', 'several with '),
    ('several that hold', lambda: held(.5, k=2), 'k must be 1 with proof'),
    ('fewer rows than are asked about', lambda: cf().explain(X()[:9], limit=dict(rows=5)), 'calls and rows must allow to ask about each row'),
    ('rows in the place of a target', lambda: cf().explain(1, X().iloc[:2]), 'rows must come first'),
    *[(f'hold={v!r}', lambda v=v: held(v), 'hold must be in (0, 1], got') for v in (0, 1.5, True, 'all')],
    *[(f'models and {next(iter(more))}', lambda more=more: held(.5, **more), f'{next(iter(more))} must be left out … got')
      for more in (dict(proof='columns'), dict(limit=1))],
    ('models and noise', lambda: held(dict(models=.5, noise=dict(income=.1))), 'noise must be left out … got'),
    ('a confirmed number', lambda: own('number').under(hold=.9).explain(N()[:3], (50, None)), 'a model of classes'),
    ('a confirmed answer of Wachter', lambda: Wachter(cf().model, domain()).fit(X()).under(hold=.9).explain(X()[:3], 1), 'a model of classes'),
    ('proof in a norm that is none', lambda: hist(proof='l2'), "proof must be one of … got 'l2'"),
    ('a gap below zero', lambda: hist(proof='columns', limit=dict(gap=-.1)), 'gap must be at least 0, got -0.1'),
    ('a gap alone', lambda: hist(limit=dict(gap=.1)), 'gap must be left out … got'),
    ('seconds below zero', lambda: hist(limit=-1), 'seconds must be above 0, got'),
    ('optimal for a model without bounds', lambda: own('svc').explain(N()[:2], proof='columns'), 'a model that can be bounded … with a limit'),
    ('optimal with a quantile', lambda: own('hist', quantile=.5).explain(N()[:2], proof='distance'), 'quantile'),
    *each([dict(noise=dict(age=1), weights=.1), dict(weights=.1)], lambda v: held(v, of_table), 'hold must be … got', 'hold='),
    *each([-1, True], lambda v: held(dict(noise=dict(age=v)), of_table), 'must be above 0, got {v}', 'noise of '),
    ('noise of nobody', lambda: held(dict(noise=dict(nobody=1)), of_table), 'nobody'),
    ('no noise', lambda: held(dict(noise={}), of_table), 'dict of columns'),
    ('noise of a category', lambda: held(dict(noise=dict(job=1))), "category 'job'"),
    ('noise for a model without bounds', lambda: own('svc').under(hold=dict(noise=dict(age=1))).explain(N()[:1]), 'that can be bounded'),
    ('no row that can be read', lambda: cf().explain(X().iloc[:2].astype({'job': object}).assign(job='Atlantis'), 1), "known levels … 'job', got 'Atlantis'"),
    ('several of no row that can be read', lambda: cf().explain(X().iloc[:2].astype({'job': object}).assign(job='Atlantis'), 1, k=5),
        "known levels … 'job', got 'Atlantis'"),
    ('a target that is none, of rows of which some cannot be read', lambda: cf().explain(spoilt(), 7), 'target must be in 0..1, got 7'),
    ('a missing column of rows of which some cannot be read', lambda: cf().explain(spoilt().drop(columns='late'), 1), "data must … missing ['late']"),
    ('an ordered level that is none', lambda: tabular(people()).encode(people().assign(degree='doctor')), "data must … known levels … got 'doctor'"),
    ('a network that moved to other numbers', lambda: moved(lambda m: m.double()).explain(X()[:2]), 'model must … dtype it was fitted on … got'),
    ('a network of two kinds of numbers', lambda: moved(lambda m: m[0].double()).explain(X()[:2]), 'model must be on one device and of one dtype, got'),
    ('a network without an answer for some rows', lambda: holed().explain(X().iloc[gaps()]),
        'model must … finite logits, got NaN or infinite ones for rows 1, 3 of 4'),
    ('a network without an answer for one row', lambda: holed().explain(X().iloc[gaps()][:2]), 'finite logits … for row 1 of 2'),
    ('no image', lambda: r.picture().explain(r.pictures()[1][:0]), 'data must have at least one row, got'),
    ('images and a norm', lambda: r.picture().explain(r.pictures()[1][:2], 1, proof='columns'), 'proof must be None for what is no table, got'),
    *[(f'a trace of {n}', lambda n=n: cf().trace(X()[:n]), f'data must be one row to be traced, got {n}') for n in (2, 3)],
)
def test_explain(row, tmp_path): refuses(row, tmp_path)


# A table: `tabular`
CONSTRAINTS = {
    'a step that is none': (dict(read=dict(step={'income': -1})), "step must be a positive number or None … got -1 for the"),
    'a step of an unknown column': (dict(read=dict(step={'incom': 5})), "step must name columns of df, got ['incom']"),
    'a step of names': (dict(read=dict(step={'job': 5})), "step must be a positive number or None for a column of numbers, got 5 for the category 'job'"),
    'steps in a list': (dict(read=dict(step=['income'])), "step must be a dict of columns, got ['income']"),
    'a direction that is none': (dict(better={'income': 'up'}), "better must be 'higher', 'lower' or None … got 'up' for the"),
    'a direction of names': (dict(better={'job': 'higher'}), "better must be … with an order, got 'higher' for the category 'job'"),
    'a direction of an unknown column': (dict(better={'incom': 'higher'}), "better must name columns of df, got ['incom']"),
    'all immutable': (dict(immutable=list(X())), 'immutable must leave … got'),
    'low above high': (dict(bounds={'age': (60, 20)}), "bounds must have low ≤ high, got 'age': (60, 20)"),
    'bounds beyond the data': (dict(bounds={'age': (900, 999)}), 'bounds must overlap with what training rows have, from '),
    'no whole number between': (dict(bounds={'age': (20.2, 20.8)}), 'bounds must have low ≤ high … got'),
    'an unknown column': (dict(immutable=['agee']), "immutable must name columns of df, got ['agee']"),
    'a string': (dict(increase_only='age'), 'increase_only must be a list of columns, got'),
    'both ways': (dict(increase_only=['age'], decrease_only=['age']), 'must not overlap … got'),
    'a direction for a category': (dict(increase_only=['job']), 'increase_only and decrease_only must name numbers, got'),
    'bounds of a category': (dict(bounds={'job': (0, 1)}), 'bounds must be of numbers, got'),
    'bounds that are no pair': (dict(bounds={'age': 40}), "bounds must … a pair (low, high) for column 'age', got 40"),
    'levels of a number': (dict(bounds={'age': [20]}), 'bounds must be a pair (low, high) for column'),
    'a way to read that is none': (dict(read=dict(grit=1)), "read must be a dict of … got ['grit']"),
    'a unit of words': (dict(units={'job': 'm'}), "units must name numbers, got ['job']"),
    'a name of nobody': (dict(names={'agee': 'Age'}), "names must name columns of df, got ['agee']"),
    'a list of names': (dict(names=['Age']), 'names must be a dict, got'),
    'an unknown level': (dict(bounds={'job': ['actor']}), "levels must … got ['actor']"),
}
COLUMNS = {
    'a range beyond floats': (lambda: dict(v=[-1e308, 1e308], x=[0, 1]), "whose range a float can hold, got 'v' from -1e"),
    'names that are true and false': (lambda: {True: filler(9), False: filler(9, 1)}, 'df must … named by text or numbers, got [True, False]'),
    'numbers and texts': (lambda: dict(v=objects(['one', 2, 3]*20), x=filler(60)), "df must … got int and str in column 'v'"),
    'truth and numbers': (lambda: dict(v=objects([True, 2, 3]*20), x=filler(60)), "df must … got bool and int in column 'v'"),
    'spans of time': (lambda: dict(v=objects([datetime.timedelta(1), datetime.timedelta(2)]*30), x=filler(60)), "df must … in column 'v'"),
}


def filler(n, seed=0): return np.random.default_rng(seed).normal(0, 1, n).round(3)
def objects(values): return pd.Series(values, dtype=object)
def hot(**told): return tabular(pd.DataFrame(dict(red=[1, 0]*9, blue=[0, 1]*9, x=filler(18))), categorical={'colour': ['red', 'blue']}, **told)
def twice(): return pd.DataFrame(np.column_stack([filler(30, s) for s in range(3)]), columns=['a', 'b', 'a'])
def gap(c):
    "A row with a missing cell in a column that had none."
    df = pd.DataFrame(dict(v=filler(18), job=['clerk', 'nurse']*9, red=[1, 0]*9, blue=[0, 1]*9))
    row = df[:2].astype({c: object})
    row.loc[1, c] = None
    return tabular(df, categorical={'colour': ['red', 'blue']}), row


def line(parents, child): return LinearRegression().fit(people()[parents], people()[child])
def share(df): return df.loan/(df.card + df.loan + 1)


RISE, SUM = 'degree rises -> age rises by 2', 'total == card + loan'
RELATED = [
    (dict(relations=['late_mx >= late_last']), "relations must name columns of df, got 'late_mx'"),
    (dict(relations='late_max >= late_last'), 'relations must be a list of texts … got'),
    (dict(relations=[3]), 'relations must be texts, got 3'),
    (dict(relations=['age.max() > 3']), 'relations must be made of columns … got'),
    (dict(relations=['__import__("os")']), 'relations must be made of columns … got'),
    (dict(relations=['age > @age']), 'relations must compare columns … got'),
    (dict(relations=['age']), 'relations must compare columns … got'),
    (dict(relations=['job == "clark"']), "got 'clark'"),
    (dict(relations=['age > "old"']), "relations must compare 'age' with a number"),
    (dict(relations=['late_max > late_last', 'late_last > late_max']), 'relations must not contradict each other'),
    (dict(relations=['age > 200']), "no row satisfies 'age > 200'"),
    (dict(relations=[RISE, 'degree rises -> age falls by 1']), 'contradict'),
    (dict(relations=[RISE], immutable=['age']), "column of immutable, got 'age'"),
    (dict(relations=[RISE], decrease_only=['age']), 'column of decrease_only'),
    (dict(relations=[SUM, 'card == total - loan']), "form a circle, got 'total' → 'card' → 'total'"),
    (dict(relations=[SUM], derive={'total': lambda df: df.card}), "once, got ['total']"),
    (dict(relations=['income rises by 1.2.3 -> age rises']), "by what positive number a column rises or falls, got '1.2.3'"),
    (dict(derive={'share': lambda df: df.share*2}), "circle, got 'share' → 'share'"),
    (dict(derive={'shares': len}), "derive must name columns of df, got 'shares'"),
    (dict(derive={'share': 3}), 'derive must be a function … got'),
    (dict(derive={'share': lambda df: df.gone}), "derive must compute 'share' … got"),
    (dict(derive=['share']), 'derive must be a dict … got'),
    (dict(derive={'share': share}, immutable=['share']), "immutable must not name a column that is computed, got 'share'"),
    (dict(derive={'share': share}, cost={'share': 2}), "cost must not name a column that is computed, got 'share'"),
    (dict(relations=[SUM], cost={'total': 2}), "cost must not name a column that is computed, got 'total'"),
    (dict(derive={'income': (['agee'], LinearRegression())}), "got 'agee'"),
    (dict(derive={'income': ['age']}), 'derive must … got'),
    (dict(derive={'income': ('age', LinearRegression())}), 'derive must … a list of parents … got'),
    (dict(derive={'income': (['age'], LinearRegression())}), "derive must predict 'income' from … got"),
    (dict(derive={'job': (['age'], LinearRegression())}), 'derive must … children that are numbers … got'),
    (dict(cost={'age': -1}), "cost must … column 'age', got -1"),
    (dict(cost={'agee': 1}), "cost must name columns of df, got ['agee']"),
    (dict(cost={'job': (1, 2)}), 'a pair (up, down)'),
    (dict(cost={'age': 'dear'}), "cost must … got 'dear'"),
    (dict(cost=3), 'cost must be a dict … got'),
    (dict(relations=['job > "clerk"']), "relations must compare the category 'job' by ==, != or in"),
    (dict(relations=['job + 1 > age']), "relations must not do arithmetic with levels, got 'job'"),
    (dict(relations=['"a" == "b"']), "relations must compare a text with a column, got 'a'"),
    (dict(relations=['job rises -> age rises by 1']), "relations must say that a category changes or stays, got 'job' that rises"),
    (dict(relations=['age changes by 2 -> income rises']), "relations must say 'by' only of a column that rises or falls"),
    (dict(relations=['age rises -> income rises -> loan rises']), 'relations must have one arrow at most'),
    (dict(relations=['age > 3 -> income rises']), 'relations must have an event on the left'),
    (dict(derive={'share': lambda df: [1.]}), "derive must give one value a row for 'share', got 1"),
    (dict(derive={'income': (['income'], LinearRegression())}), "must not form a circle, got 'income'"),
    (dict(read=dict(missing='drop')), "missing must be 'keep', 'level' or 'fill', got 'drop'"),
]
OUT_OF_PLACE = ['not age', 'age and income > 3', 'age > 3 or 1', '-age', 'age in 3', 'age in income', 'age in [income]', 'age in [[1]]',
    'age >= [1]', 'age >= 2j', 'age == b"x"',
                'age == None', 'age >= ...', 'age + (loan > 2) > 3', '-(loan > 2) < age', 'age + 1' + '0'*400 + ' >= loan', 'age >= \ud800']
ENDLESS = dict(minus='age >= ' + '-'*5000 + 'loan', many='age >= ' + '-'*200_000 + 'loan', nots='not '*3000 + 'age > 3',
    sum='age <= ' + ' + '.join(['loan']*5000), chain=' >= '.join(['age']*3000))
SCALES = {'a word': ('log', "got 'log'"), 'not fitted': (StandardScaler(), 'before its fit'),
    'not affine': (PowerTransformer(), "one of scikit-learn's"),
          'other columns': (StandardScaler().fit(pd.DataFrame({'z': [1., 2.]})), "got 1: ['z']"),
              'too few': (StandardScaler().fit([[1.], [2.]]), 'got 1')}


@table(
    *[(name, lambda told=told: tabular(X(), **told), says) for name, (told, says) in CONSTRAINTS.items()],
    *[(name, lambda make=make: tabular(pd.DataFrame(make())), says) for name, (make, says) in COLUMNS.items()],
    *[(f'scale: {name}', lambda scale=scale: tabular(pd.DataFrame({'a': filler(9), 'b': filler(9, 1)}), read=dict(scale=scale)),
        f'scale must … {says}') for name, (scale, says) in SCALES.items()],
    ('two columns of one name', lambda: tabular(twice()), "distinct column names, got ['a'] more than once"),
    ('rows with two columns of one name', lambda: tabular(twice().iloc[:, :2]).encode(twice()), 'distinct columns'),
    ('a part of a category', lambda: hot(immutable=['red']), "'red' is a part of 'colour'"),
    ('a column of nothing to fill', lambda: tabular(X().assign(debt=np.nan), read=dict(missing='fill')), "in every column for missing='fill', got none in column 'debt'"),
    *each(['v', 'job', 'red'], lambda c: (lambda d, row: d.encode(row))(*gap(c)),
        "data must … missing values where the training rows have none, got … (1 of 2 rows)", 'a missing cell in '),
    *each(['v', 'job', 'red'], lambda c: (lambda d, row: d.encode(row.iloc[1]))(*gap(c)), 'data must … got', 'a missing cell of one row in '),
    ('an identifier', lambda: tabular(pd.DataFrame(dict(city=[f'city {i % 51}' for i in range(459)], x=filler(459)))),
        "must not have an identifier … column 'city'"),
    *[(f'levels {one!r} and {two!r}', lambda one=one,
        two=two: tabular(pd.DataFrame(dict(c=objects([one, two, 'x']*20), m=np.arange(60.))), categorical=['c']),
        f'in one way, got … {one} … column')
      for one, two in [(True, 1), (False, 0), (1, 1.)]],
    *[(called(told), lambda told=told: tabular(people(), **told), says) for told, says in RELATED],
    ('a circle of causes', lambda: tabular(people(), derive={'income': (['age'], line(['age'], 'income')), 'age': (['income'], line(['income'], 'age'))}),
        "circle, got 'income' → 'age' → 'income'"),
    *each(OUT_OF_PLACE, lambda text: tabular(people(), relations=[text]), 'relations must compare … got', 'relations: '),
    *[(f'relations without end: {name}', lambda text=text: tabular(people(), relations=[text]),
        'relations must have at most 200 operators each … got') for name, text in ENDLESS.items()],
    ('a level twice in a row', lambda: tabular(pd.DataFrame(dict(red=[1, 1, 0]*6, blue=[0, 1, 1]*6, x=filler(18))), categorical={'colour': ['red', 'blue']}),
        'of which one is 1 in every row'),
    *each(['soon', 0, True, -1, np.inf], lambda v: reachable(X(), v, dict(age=1)),
        "within must be a time such as '12 months', or a number of years above 0, got {v}", 'within '),
    *each(['fast', (1, -1), (-1, 1, 2), None], lambda v: reachable(X(), 1, dict(age=v)),
        "rates must be a number or a share such as '10%' a year, or a pair (down ≤ 0, up ≥ 0), got {v}", 'a rate of '),
    ('a rate of nobody', lambda: reachable(X(), 1, dict(agee=1)), "rates must name columns of the rows, got 'agee'"),
    ('a rate of a category', lambda: reachable(X(), 1, dict(job=1)), "rates must name columns of numbers, got 'job'"),
)
def test_tabular(row, tmp_path): refuses(row, tmp_path)


# Making an explainer and fitting it
SETTINGS = dict(tau=[0, 1, 1.], tau_slack=[1, -.1], quantile=[1.5], sigma=[-1, 2.5, True], lr=['fast'], lam=[-1], n_ref=[0],
    max_changes=[0], max_shared=[0], masking=['best'],
                init=[0], keep=[None], legal=[1.5], batch_size=[0])


def made(*given, net=cf, **told): return GradualCF(net().model, domain(), *given, **told)
def refit(*rows): return GradualCF(cf().model, domain(), 'sparse').fit(*rows)
def by(net, of=domain, rows=X): return GradualCF(net, of(), 'sparse').fit(rows())


@table(
    *[(name, lambda f=f: refit(f(X().iloc[:3])), says) for name, (f, says) in FRAMES.items()],
    *each([3, 2.5, True, '9'], lambda v: cf.__wrapped__().fit(X(), sample=v), 'sample must be a whole number of at least 8, got {v}', 'sample='),
    ('a row that cannot be read', lambda: refit(spoilt()), "data must … known levels … 'job', got 'Atlantis'"),
    *[(f'{name}={v!r}', lambda name=name, v=v: Settings(**{name: v}), f'{name} must be … got {v!r}') for name, values in SETTINGS.items() for v in values],
    *[(f'a setting {name!r}', lambda name=name: made(**{name: 1}), f'GradualCF has no {name}', TypeError)
      for name in ('tua', 'zoom', 'beta', 'prototypes', 'loss')],
    ('settings of others', lambda: made(Common()), 'intent must be Settings(...), got Common'),
    ('a name that no settings have', lambda: made('believable'), "intent must be one of ['sparse', 'robust', 'plausible', 'paper'] … got 'believable'"),
    ('company by name without a table', lambda: GradualCF(cf().model, replace(domain(), features=()), 'robust'), "intent must be 'sparse' or 'paper' … got"),
    ('a name for another method', lambda: Wachter(cf().model, domain(), 'sparse'), "intent must be … got str"),
    ('a term that is a word', lambda: made(match='gap'), 'match must be a loss term … got'),
    ('several groups at once without a probe', lambda: made('sparse', masking='gain', max_shared=2), 'max_shared must be 1 unless … got'),
    ('a change that is shared where there are no columns', lambda: GradualCF(plain().model, plain().domain, 'sparse', max_shared=2), 'max_shared must be 1 unless … got 2'),
    *[('what only a composition reads', lambda how=how: made('sparse', **how), f"{[*how][0]} must be left as it is where values of a table are tried")
      for how in (dict(lam=.1), dict(prototype_weight=1.), dict(terms=dict(ink=(1., len))))],
    ('a probe where nothing is proposed', lambda: GradualCF(plain().model, replace(plain().domain, propose=None, probe=None), 'sparse',
        masking='probe'), "for a domain that proposes no values, got 'probe'"),
    ('company without a probe', lambda: made(replace(PLAUSIBLE, masking='gradient')), "plausibility must be None unless masking='probe' on a table … got"),
    ('company without a table', lambda: GradualCF(cf().model, replace(domain(), features=()), PLAUSIBLE), 'plausibility must be None … got'),
    *[(called(told), lambda told=told: Plausibility(**told), f'{next(iter(told))} must be in (0, 1] … got')
      for told in (dict(density=0), dict(isolation=1.2), dict(pairs=-.5), dict(pairs=True), dict(density=None), dict(isolation='much'))],
    *each([2.1, -.1, float('nan'), 'strict', None, True], plausible, 'strength must be in [0, 2], got {v}', 'strength='),
    ('one label', lambda: made(classes=['a']), 'classes must … at least two labels … got'),
    ('labels as a text', lambda: made(classes='ab'), 'classes must … list of at least two … got'),
    ('a label twice', lambda: made(classes=['a', 'a']), "classes must … got ['a'] more than once"),
    ('a label written in two ways', lambda: made(classes=[1, '1']), 'classes must … more than once'),
    ('more labels than outputs', lambda: made(classes=['a', 'b', 'c']).fit(X()),
        "classes must … a label for each of 2 outputs of the model, got 'a', 'b', 'c'"),
    ('labels of numbers', lambda: GradualCF(model('number'), tabular(N()), 'sparse', classes=['low', 'high']), 'classes must be left out'),
    ('labels of fewer rows', lambda: refit(X(), [0]*9), 'y must be a label for each of 90 rows, got shape (9,)'),
    ('a domain in the place of a model', lambda: GradualCF(domain(), cf().model, 'sparse'), 'model must come first and X second … got'),
    ('an array in the place of a frame', lambda: GradualCF(cf().model, X().to_numpy(), 'sparse'),
        'X must be a frame, or what tabular, images, sentences or series make, got ndarray: write GradualCF(model, pd.DataFrame(X))'),
    *each(['so', 2, ['a', 'b'], (0, 1)], lambda v: made('sparse', wanted=v, classes=['no', 'yes']), 'wanted must be one … got', 'wanted='),
    ('a frame of another library', lambda: tabular(Lent(X())), 'write df.to_pandas()'),
    ('a network on meta', lambda: GradualCF(tabular_mlp(3).to('meta'), domain(), 'sparse'), "model must be on a device with data, got 'meta'"),
    ('a network for other columns', lambda: by(tabular_mlp(3, seed=0)), 'model must accept … got'),
    ('a gradient without gradient', lambda: GradualCF(model('hist'), tabular(N()), PAPER), "masking must be 'probe'"),
    ('two models of other columns', lambda: by([cf().model, tabular_mlp(4)]), 'model must accept inputs … got'),
    ('a list of one model', lambda: by([cf().model]), 'model must be one model or a list of at least two … got'),
    ('models of other classes', lambda: by([cf().model, r.grades().model]), 'models of the same classes … got'),
    ('a model of classes and one of numbers', lambda: by([model(), model('number')], lambda: tabular(N()), N),
        'model must … got one that answers with numbers'),
    ('labels in another order', lambda: by([model('line', 'text'), turned()], lambda: tabular(N()), N), 'model must … with the same class labels … got'),
    ('a term without a weight', lambda: mix(distance=3), 'distance must be a (weight, term) pair, got 3'),
)
def test_fit(row, tmp_path): refuses(row, tmp_path)


# Models: what they answer, and files that hold them
OUTPUTS = {
    'probabilities': (lambda z: z.softmax(1), 'raw logits … got probabilities'),
        'log-probabilities': (lambda z: z.log_softmax(1), 'raw logits … log-probabilities'),
    'one probability': (lambda z: z[:, :1].sigmoid(), 'remove the sigmoid'),
        'one probability, flat': (lambda z: z[:, 0].sigmoid(), 'remove the sigmoid'),
    'NaN': (lambda z: z*float('nan'), 'finite logits, got NaN'),
        'a cube': (lambda z: z[:, None], 'shape (n, k) with k ≥ 2, got (90, 1, 2)'),
    'two outputs': (lambda z: (z, z), 'got a tuple of 2 with 2'), 'a text': (lambda z: 'no', 'got str'),
        'nothing': (lambda z: None, 'got NoneType'),
}


class Drifts:
    "A function whose answers change between calls."
    n = 0
    def __call__(self, df): self.n += 1; return np.full(len(df), .3 + .1*(self.n % 3)) + df.age.to_numpy()/1e3


class Heads(nn.Module):
    "A network of two outputs."
    def __init__(self): super().__init__(); self.one = nn.Linear(3, 2)
    def forward(self, x): return self.one(x), -self.one(x)


class InferenceSession:
    "An ONNX session without inputs."
    __module__, get_inputs, get_outputs = 'onnxruntime', lambda self: [], lambda self: []


def turned():
    "The same labels in another order."
    m = LogisticRegression(max_iter=2000).fit(N(), model('line', 'text').predict(N()))
    m.classes_ = m.classes_[::-1]
    return m
def of_function(f, kind='proba'): return by(predictor(f, tabular(N()), kind), lambda: tabular(N()), N)
def of_model(m): return by(m, lambda: tabular(N()), N)
def two_outputs(make, *y): return make.fit(N(), np.stack(y, 1))
def file(name, content, d):
    d.mkdir(exist_ok=True)
    (d/name).write_bytes(content)
    return d/name
def net_file(header, d):
    save_file({'w': torch.zeros(2)}, d/'m.safetensors', metadata={'gradual_cf': header})
    load_model(d/'m.safetensors')


Y = np.arange(90) % 2
DEEP = '['*100_000 + ']'*100_000
HEADERS = ['[]', '3', 'null', DEEP, '{"spec": [1]}', '{"spec": "ab"}', '{"spec": {"network": []}}', '{"spec": {"network": "tabular_mlp"}}',
    '{"spec": {"network": "tabular_mlp", "d": 3, "foo": 1}}',
           '{"spec": {"network": "tabular_mlp", "d": 1000000000000}}', '{"spec": {"network": "tabular_mlp", "d": 3, "width": 200000}}',
               '{"spec": {"network": "tabular_mlp", "d": 1e400}}',
           '{"spec": {"network": "tabular_mlp", "d": -3}}', '{"spec": {"network": "tabular_mlp", "d": "x"}}',
               '{"spec": {"network": "tabular_mlp", "d": 3, "seed": 5}}']
TRAINED = partial(tabular_mlp, 3, 3, seed=0)


@table(
    *[(f'a network that answers with {name}', lambda f=f: by(r.Wrapped(fresh(), f)), f'model must … {says}') for name, (f, says) in OUTPUTS.items()],
    ('a network that drops out', lambda: (lambda net: by(lambda x: net(x)))(nn.Sequential(fresh(), nn.Dropout(.5)).train()), 'model must … train mode'),
    ('another column', lambda: of_model(LogisticRegression(max_iter=2000).fit(N()[['age', 'debt']].rename(columns=dict(debt='loan')), Y)),
        "model must be fitted on columns of the domain, got ['loan']"),
    ('another number of columns', lambda: of_model(LogisticRegression(max_iter=2000).fit(N()[['age', 'debt']].to_numpy(), Y)), 'model must … got one of 2'),
    ('an unfitted pipeline', lambda: of_model(make_pipeline(StandardScaler(), LogisticRegression())), 'model must be fitted … got'),
    ('probabilities that do not sum to one', lambda: of_function(lambda f: np.full((len(f), 2), .4)), 'model must … sum to one … got'),
    ('probabilities above one', lambda: of_function(lambda f: f.age/10.), 'model must … in [0, 1] … got'),
    ('probabilities called logits', lambda: of_function(lambda f: np.full((len(f), 2), .5), 'logit'), "kind must be 'proba' … got"),
    ('one probability called a logit', lambda: of_function(lambda f: f.age/100, 'logit'), 'remove the sigmoid'),
    ('answers that change', lambda: of_function(Drifts()), 'model must … got two passes that differ'),
    ('answers that are NaN', lambda: of_function(lambda f: np.full(len(f), np.nan)), 'model must … finite … got'),
    ('too few answers', lambda: of_function(lambda f: [.5]), 'model must … one answer for each … got'),
    ('an error of its own', lambda: of_function(lambda f: f.nothing), "model must … no attribute 'nothing'"),
    ('a file name', lambda: of_model('model.pkl'), 'model must … load_fitted'),
    *each([0, 1], lambda t: predictor(model(), tabular(N()), threshold=t), 'threshold must be in (0, 1), got {v}', 'threshold='),
    ('a kind that is none', lambda: predictor(model(), tabular(N()), 'probability'), "kind must be one of … got 'probability'"),
    ('a forest of two outputs', lambda: of_model(two_outputs(RandomForestClassifier(3), Y, Y + 5)),
        'model must … got 2 outputs: choose one by predictor … output='),
    ('a forest of two outputs with the same labels', lambda: of_model(two_outputs(RandomForestClassifier(3), Y, Y)),
        'model must … got 2 outputs: choose one by predictor … output='),
    ('a third of two outputs', lambda: predictor(two_outputs(RandomForestClassifier(3), Y, Y + 5), tabular(N()), output=7), 'output must be in 0..1, got 7'),
    ('a line of two outputs', lambda: of_model(two_outputs(LinearRegression(), Y, Y)), 'model must … one number, got 2 outputs: choose one'),
    ('a network of two outputs', lambda: of_model(Heads()), 'model must … choose one by predictor'),
    ('a session without inputs', lambda: recognise(InferenceSession()), 'model must read and answer matrices … got'),
    ('a judge that is no list', lambda: confirm(answers(), cf().model), 'models must be a list … got'),
    ('a judge of other columns', lambda: confirm(answers(), [tabular_mlp(3)]), 'model must accept inputs … got'),
    ('a pickle', lambda d: load_fitted(file('m.pkl', pickle.dumps(model()), d)), 'path must … skops.io.dump'),
    *[(f'a .{end} file that is none', lambda d, end=end: load_fitted(file(f'm.{end}', b'no model', d)),
        'path must be a readable file … got || pip install', (ValueError, ImportError)) for end in ('json', 'txt', 'skops', 'onnx', 'cbm')],
    *[(f'a description {header:.60}', lambda d, header=header: net_file(header, d), 'path must … got') for header in HEADERS],
    ('a network that is none', lambda d: load_model(file('m.safetensors', b'\x80\x04pickle', d)), 'path must … safetensors file … got'),
    ('a folder without data', lambda d: load_heloc(d), 'heloc_dataset_v1.csv'),
    ('a file without the columns', lambda d: load_heloc((file('heloc_dataset_v1.csv', b'a,b\n1,2\n', d/'heloc'), d)[1]),
        "must have the columns ['RiskPerformance', 'ExternalRiskEstimate'], got ['a', 'b']"),
    *[(f'{f.__name__}: {name}', lambda f=f, y=y: f(TRAINED(), torch.rand(30, 3), y), says) for f in (train, accuracy) for name, y, says in (
        ('labels from one', np.resize([1, 2, 3], 30), 'y must be in 0..2 for a network of 3 classes, got 1..3: subtract 1'),
        ('too few labels', [0]*4, 'y must … one label a row … got'),
        ('labels that are words', np.resize(['good', 'bad'], 30), "y must be classes 0..2, got … 'good' … pd.factorize"),
        ('halves', np.resize([.5, 1], 30), 'y must … got … 0.5'))],
    ('one row to train on', lambda: train(TRAINED(), torch.rand(1, 3), [0]), 'at least two rows, one to train on and one to hold back, got 1'),
    ('all rows held back', lambda: train(TRAINED(), torch.rand(30, 3), np.resize([0, 1, 2], 30), valid=1), 'valid must be in (0, 1), got 1'),
    *[(f'{name} of three classes', lambda f=f: of_model(predictor(f, tabular(N()), threshold=.6)), says) for name, f, says in (
        ('a threshold', lambda d: np.tile([.5, .3, .2], (len(d), 1)), 'threshold must be .5 for 3 classes, got 0.6'),
        ('two tables', lambda d: [np.ones((len(d), 2))/2]*2, 'model must have one output'))],
    ('a model of no known way to ask', lambda: of_model(type('Asks', (), dict(predict_rows=lambda self, x: x))()),
        'model must be something that can be asked, got Asks'),
    ('a fitted model of images', lambda: predictor(r.model(), r.picture().domain), 'domain must be a table, got'),
    *[(f'scaled {name}', lambda m=m, d=d, scaled=scaled: predictor(m(), d(), scaled=scaled()), f'scaled must be {says}')
      for name, m, d, scaled, says in (
        ('of what is no network', r.model, lambda: tabular(N()), StandardScaler, 'left out for what is no network, got'),
        ('by a scaler that is not fitted', fresh, domain, StandardScaler, 'a module or a fitted scaler of'),
        ('by one that bends', lambda: nn.Linear(3, 2), lambda: tabular(N()), lambda: PowerTransformer().fit(N().to_numpy()), 'an affine scaler or a module'))],
    *[(f'{make.__name__} of a small picture', lambda make=make, side=side: make((1, side - 1, 9), 3),
        f'shape must have sides of at least {side}, got (1, {side - 1}, 9)') for make, side in ((digit_cnn, 8), (strided_cnn, 4))],
    ('a network that does not say what it is', lambda d: save_model(nn.Linear(3, 2), d/'m.safetensors'), 'model must have a spec'),
    ('weights of another network', lambda d: load_model(save_model(fresh(), d/'m.safetensors') or d/'m.safetensors', nn.Linear(3, 2)),
        'path must hold weights that fit the network'),
)
def test_models(row, tmp_path): refuses(row, tmp_path)
