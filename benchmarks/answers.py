"""Several answers to one question, and plans: are they valid, distinct and irreducible, how long do they take, how early do they rise?

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/answers.py [--rows 1000] [--k 5] [--out benchmarks/results/answers.csv]

HELOC, Adult and German Credit, networks (`tabular_mlp`) and histogram boosting, test rows, each towards the other class. On Adult
sex, race and country must stay and age may only grow. The preset `PLAUSIBLE` explains a fifth of the rows. The checks are independent of the search: pandas puts every single change
of every answer back into the raw row, the model is asked about that, and about the answers. (With `PLAUSIBLE` a change is also
needed where the answer loses its company without it; there `irreducible` is what the package says.)

`answers`: mean for each row that has one at all (`found`); `full`: share of those with `k`. `valid`, `legal` and `irreducible` are
shares of answers; `distinct` of rows in which no two answers are alike, `sets` of rows in which no two change the same columns.
`content` is the share of answers with all that the settings ask for, `typical` their mean percentile. `columns`: of the first and mean over all; `apart`: mean Jaccard distance of two answers' columns; `covered`: columns that any answer of a
row changes. `ms` is CPU time a row of `explain` and of `explain_many`, the best of three, and `ratio` their quotient.

Plans are made for the answers of a row at `tau=.9` with two changes or more, on at most `--plans` of them: `plan_legal` is the share of
rows on the way that the domain's own word allows; `plan_area` the mean of how much of the whole rise is there after each step but the
last, `listed_area` the same in the order of the columns, `random_area` in random order, and `best_area` over all orders by brute force
(answers of at most five changes).
"""
import argparse
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from gradual_cf.use.alternatives import minimal
from gradual_cf.core import atomic, take_rows
from gradual_cf.search.goals import target_prob
from gradual_cf.gradual import PLAUSIBLE, GradualCF
from gradual_cf.data.datasets import load_heloc
from gradual_cf.models.networks import tabular_mlp, train
from gradual_cf.models.fitted import predictor
from gradual_cf.data.tables import tabular

REPEATS, ORDERS, MOST_ORDERED = 3, 20, 5
ADULT = dict(immutable=['sex', 'race', 'native-country'], increase_only=['age'])


@dataclass
class Table:
    "A table in two parts, and what may become of it."
    X:pd.DataFrame
    y:np.ndarray
    rows:pd.DataFrame
    rules:dict


def split(df, y, share=.8, **rules):
    "Shuffled once; text columns are categories."
    X = df.astype({c: 'category' for c in df if not pd.api.types.is_numeric_dtype(df[c])})
    order = np.random.default_rng(0).permutation(len(X))
    cut = int(len(X)*share)
    return Table(X.iloc[order[:cut]], y[order[:cut]], X.iloc[order[cut:]], rules)


def load(name):
    "One of the three tables."
    if name == 'heloc':
        X, y, rows, _ = load_heloc()
        return Table(X, y.to_numpy(), rows, {})
    folder = Path(os.environ['GRADUAL_CF_DATA'])/'tables'
    if name == 'german':
        df = pd.read_csv(folder/'german_credit.csv')
        return split(df.drop(columns='default'), df.default.to_numpy())
    df = pd.read_csv(folder/'adult.csv', skipinitialspace=True, keep_default_na=False).drop(columns=['fnlwgt', 'education-num'])
    df = df.drop_duplicates()
    return split(df.drop(columns='class'), (df['class'] == '>50K').to_numpy(int), **ADULT)


def explainers(t):
    "Name -> a function of settings that gives a fitted explainer."
    domain = tabular(t.X, **t.rules)
    x = domain.encode(t.X).x.float()
    net = train(tabular_mlp(x.shape[1], seed=0), x, torch.tensor(t.y), seed=0)
    trees = HistGradientBoostingClassifier(random_state=0, categorical_features='from_dtype').fit(t.X, t.y)
    yield 'network', lambda **h: GradualCF(net, domain, 'sparse', **h).fit(t.X)
    yield 'network, PLAUSIBLE', lambda **h: GradualCF(net, domain, PLAUSIBLE, **h).fit(t.X)
    yield 'boosting', lambda **h: GradualCF(predictor(trees, domain), domain, 'sparse', **h).fit(t.X)


def ask(e, raw, target):
    "Probability of the target, of raw rows."
    return target_prob(e.logits(raw, e.encode(raw).x), target)


def cpu(do):
    "Result, and the least CPU milliseconds of some runs."
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        out = do()
        times.append(time.process_time() - start)
    return out, 1000*min(times)


def irreducible_by_hand(e, cfs):
    "Whether no change of an answer can be put back in the raw row, `(n,)`."
    old, new = cfs.data.reset_index(drop=True), cfs.raw.reset_index(drop=True)
    out = np.ones(len(cfs), bool)
    for c in old:
        rows = np.flatnonzero((old[c] != new[c]).to_numpy())
        if not len(rows): continue
        less = new.iloc[rows].copy()
        less[c] = old[c].iloc[rows]
        p = ask(e, less, cfs.target[rows.tolist()]).cpu().numpy()
        legal = e.domain.legal(old.iloc[rows], less).all(1)
        out[rows[(p >= cfs.tau) & legal]] = False
    return out


def several(e, rows, k):
    "What `explain_many` gives."
    one, ms_one = cpu(lambda: e.explain(rows))
    many, ms_many = cpu(lambda: e.explain_many(rows, k=k))
    a, table = many.answers, many.diversity()
    table = table[table.answers > 0]
    reached = ask(e, a.raw, a.tensors.target) >= a.tau
    alike = a.raw.assign(_row=many.row).duplicated()
    told = many.df()
    content = e.content(a.enc, a.xp, a.tensors.target)
    return dict(rows=len(rows), k=k, found=len(table)/len(rows), answers=table.answers.mean(), full=(table.answers == k).mean(),
                valid=reached.double().mean().item(), legal=e.domain.legal(a.data, a.raw).all(1).mean(),
                minimal=(irreducible_by_hand(e, a) if e.company is None else minimal(e, a).numpy()).mean(),
                content=content.double().mean().item(), typical=a.typical.mean().item(), distinct=1 - pd.Series(many.row[alike]).nunique()/len(table),
                sets=(table.sets == table.answers).mean(), columns_first=told[told.answer == 1].changes.mean(),
                columns=told.changes.mean(), apart=table['apart'].mean(), covered=table.features.mean(),
                ms=ms_one/len(rows), ms_many=ms_many/len(rows), ratio=ms_many/ms_one)


def rise(e, cfs, i, orders):
    "Mean share of the whole rise after each step but the last, for each order of one answer's changed columns, `(orders,)`."
    old, new, target = cfs.data.iloc[[i]], cfs.raw.iloc[[i]], cfs.tensors.target[[i]]
    made = [order[:j] for order in orders for j in range(1, len(order))]
    rows = pd.concat([old]*len(made), ignore_index=True)
    for c in orders[0]: rows[c] = np.where([c in m for m in made], new[c].iloc[0], old[c].iloc[0])
    rows = rows.astype(old.dtypes.to_dict())
    p = ask(e, rows, target.repeat(len(made))).double().cpu().numpy().reshape(len(orders), -1)
    first, last = cfs.before[i].item(), cfs.prob[i].item()
    return ((p - first)/(last - first)).mean(1)


def areas(e, cfs, plan, i, rng):
    "How early the target comes near in the order of the plan, as listed, at random, and at best."
    steps = plan.changes()
    planned = steps[steps.row == i].feature.tolist()
    listed = [c for c in cfs.data if c in planned]
    shuffled = [list(rng.permutation(listed)) for _ in range(ORDERS)]
    every = list(itertools.permutations(listed)) if len(listed) <= MOST_ORDERED else None
    out = dict(plan_area=rise(e, cfs, i, [planned])[0], listed_area=rise(e, cfs, i, [listed])[0], random_area=rise(e, cfs, i, shuffled).mean())
    return out | dict(best_area=rise(e, cfs, i, every).max() if every else np.nan)


def plans(make, rows, most):
    "What `plan` gives."
    e = make(tau=.9)
    cfs = e.explain(rows)
    longer = np.flatnonzero(cfs.valid & (cfs.changes().groupby('row').size().reindex(range(len(cfs)), fill_value=0) > 1))
    if not len(longer): return {}
    cfs = cfs[longer[:most].tolist()]
    plan, ms = cpu(cfs.plan)
    legal = e.domain.legal(take_rows(cfs.data, plan.row), plan.taken.raw).all(1)
    rng = np.random.default_rng(0)
    early = pd.DataFrame([areas(e, cfs, plan, i, rng) for i in range(len(cfs))])
    known = early.dropna()
    return dict(planned=len(cfs), plan_columns=len(plan.row)/len(cfs), plan_ms=ms/len(cfs), plan_legal=legal.mean(), **early.mean(),
                at_best=(known.plan_area >= known.best_area - 1e-4).mean())


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--rows', type=int, default=1000)
    p.add_argument('--k', type=int, default=5)
    p.add_argument('--plans', type=int, default=200)
    p.add_argument('--data', nargs='+', default=['heloc', 'adult', 'german'])
    p.add_argument('--out', default='benchmarks/results/answers.csv')
    args = p.parse_args()
    torch.set_num_threads(1)
    lines:list[Any] = []
    for name in args.data:
        t = load(name)
        for model, make in explainers(t):
            rows = t.rows.iloc[:args.rows if model in ('network', 'boosting') else args.rows//5]
            more = {} if 'PLAUSIBLE' in model else plans(make, rows, args.plans)
            lines.append(dict(data=name, model=model, **several(make(), rows, args.k), **more))
            print(pd.DataFrame(lines[-1:]).T.to_string(header=False), flush=True)
            with atomic(args.out) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)
