"""Shared actions beside GLOBE-CE and AReS, as `ce-library` ships them: same model, same rows, one run.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/actions.py [--data heloc german] [--models logistic network]
        [--peers DIR] [--limit 60] [--out FILE]

Rows are those that the model refuses: test rows of HELOC, all rows of German Credit. The peers are told which columns
must stay; they take no other rule. Of the library only the modules of the two methods are imported, without the rest of
its requirements. `free` lets each row go along an action only as far as it needs, as GLOBE-CE does with its direction.

covered     share of rows that the model accepts after the method, on the numbers as the method gives them
cost        their mean distance: shares of a column's range, summed over columns; another level costs 1
legal       share of these rows that the table allows, once written in its form: whole numbers, one level
held        share of all rows that are covered, legal and still accepted in that form, and `held_cost`, their cost
seconds     CPU time of the method; one that needs more than --limit is stopped

A line is kept as soon as it is there, and a run that was stopped goes on.

`each row alone` are the explainer's own answers, one for each row. `floor` is what no legal answers of HELOC's logistic
regression can undercut: each row goes along the best column first, as far as the table allows, then along the next.
"""
import argparse
import contextlib
import io
import os
import signal
import tempfile
import time
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from gradual_cf.use.actions import actions
from gradual_cf.all import GradualCF, load_heloc, predict, tabular, tabular_mlp, train
from gradual_cf.core import atomic
from installed import hollow, install

PEERS = ['ce-library==0.1.1', 'mlxtend==0.23.4'] # the second is imported by AReS
COLUMNS = 4 # Most columns of an action of ours; a rule of AReS may have seven conditions


@dataclass
class Case:
    "A model of a table, and the rows that it refuses."
    data:str
    model:str
    domain:Any
    net:Any
    X:pd.DataFrame    # Training rows
    rows:pd.DataFrame # Rows that it refuses
    fixed:list        # Columns that must stay


def heloc():
    X, y, Xt, _ = load_heloc()
    return X, y.to_numpy(), Xt, {}


def german():
    df = pd.read_csv(Path(os.environ['GRADUAL_CF_DATA'])/'tables/german_credit.csv')
    X = df.drop(columns='default')
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(0).permutation(len(X))
    first = order[:600]
    rules = dict(immutable=['personal_status_sex', 'foreign_worker'], increase_only=['age'])
    return X.iloc[first], 1 - df['default'].to_numpy()[first], X.iloc[order], rules


def logistic(x, y):
    "Scikit-learn's logistic regression as a layer of two outputs."
    from sklearn.linear_model import LogisticRegression
    fitted = LogisticRegression(max_iter=2000).fit(x.numpy(), y)
    layer = torch.nn.Linear(x.shape[1], 2)
    w, b = (torch.from_numpy(np.stack([-v[0]/2, v[0]/2])).float() for v in (fitted.coef_, fitted.intercept_[:, None]))
    with torch.no_grad():
        layer.weight.copy_(w)
        layer.bias.copy_(b[:, 0])
    return layer


def case_of(data, model):
    "Train, and find who is refused."
    X, y, rows, rules = dict(heloc=heloc, german=german)[data]()
    domain = tabular(X, **rules)
    x = domain.encode(X).x.float()
    net = logistic(x, y) if model == 'logistic' else train(tabular_mlp(x.shape[1], seed=0), x, torch.as_tensor(y), seed=0)
    said = predict(net, domain.encode(rows).x.float()).argmax(1).numpy()
    return Case(data, model, domain, net, X, rows[said == 0], rules.get('immutable', []))


class Flat:
    "Rows as the peers read them: raw numbers, and a column of 0 and 1 for each level."
    def __init__(self, case):
        self.case, columns = case, case.domain.features
        self.names = [f'{c.name} = {l}' if c.kind == 'category' else c.name for c in columns
                      for l in (c.levels if c.kind == 'category' else [0])]
        wide = lambda v: np.concatenate([np.full(c.width, w, float) for c, w in zip(columns, v)])
        self.named = wide([c.kind == 'category' for c in columns]) > 0
        self.origin = wide([0 if c.kind == 'category' else c.origin for c in columns])
        self.span = wide([1 if c.kind == 'category' else c.span for c in columns])
        self.tree = {c.name: [f'{c.name} = {l}' for l in c.levels] if c.kind == 'category' else [] for c in columns}
        self.categories = [c.name for c in columns if c.kind == 'category']

    def read(self, rows): # (n, d)
        "Raw rows as numbers."
        return self.case.domain.encode(rows).x.numpy()*self.span + self.origin

    def frame(self, rows):
        "The same as a frame; 0 and 1 are whole."
        df = pd.DataFrame(self.read(rows), columns=self.names)
        return df.astype({c: int for c, named in zip(self.names, self.named) if named})

    def encoded(self, v): return (np.asarray(getattr(v, 'values', v), float) - self.origin)/self.span

    def predict(self, v): return predict(self.case.net, torch.from_numpy(self.encoded(v)).float()).argmax(1).numpy()

    def written(self, v, rows):
        "Numbers as rows of the table: the nearest whole number, the largest level."
        v, out, at = np.asarray(v, float), {}, 0
        for c in self.case.domain.features:
            one, at = v[:, at:at + c.width], at + c.width
            if c.kind == 'category': out[c.name] = pd.Categorical(np.array(c.levels, object)[one.argmax(1)], dtype=rows[c.name].dtype)
            else: out[c.name] = np.rint(one[:, 0]).astype(rows[c.name].dtype) if c.unit else one[:, 0]
        return pd.DataFrame(out, index=rows.index)


def distance(flat, a, b):
    "Shares of ranges, summed; half of what the levels of a category change."
    step = np.abs(flat.encoded(b) - flat.encoded(a))
    return (step*np.where(flat.named, .5, 1)).sum(1)


def measured(case, flat, v, rows, **more):
    "One line of the table, `v` as a method gives its rows."
    domain, base, mean = case.domain, flat.read(rows), lambda a: float(a.mean()) if len(a) else np.nan
    told = lambda v: (flat.predict(v) == 1, distance(flat, base, v))
    covered, cost = told(v)
    frame = flat.written(v, rows)
    legal = domain.legal(rows, frame).all(1)
    again, price = told(flat.read(frame))
    held = covered & legal & again
    return dict(rows=len(rows), covered=mean(covered), cost=mean(cost[covered]), legal=mean(legal[covered]), held=mean(held),
                held_cost=mean(price[held]), **more)


def ours(k, free):
    def run(case, flat):
        start = time.process_time()
        cf = GradualCF(case.net, case.domain, 'sparse').fit(case.X)
        told = actions(cf, case.rows, k, 1, free=free, columns=COLUMNS)
        seconds = time.process_time() - start
        return measured(case, flat, flat.read(told.answers.raw), case.rows, actions=len(told), seconds=seconds, note='; '.join(told.words))
    return run


def alone(case, flat):
    "An answer for each row."
    start = time.process_time()
    found = GradualCF(case.net, case.domain, 'sparse').fit(case.X).explain(case.rows, 1)
    seconds = time.process_time() - start
    many = len(found.changes().drop(columns=['row', 'index', 'before']).drop_duplicates())
    return measured(case, flat, flat.read(found.raw), case.rows, seconds=seconds, note=f'{many} different changes')


def floor(case, flat):
    "The least that legal answers can cost, row by row: a logistic regression's best columns first. For numbers only."
    enc = case.domain.encode(case.rows)
    w = (case.net.weight[1] - case.net.weight[0]).detach().double().numpy()
    z = predict(case.net, enc.x.float()).double().numpy()
    left, cost = z[:, 0] - z[:, 1], np.zeros(len(z))
    room = np.where(w > 0, enc.high - enc.x, enc.x - enc.low).clip(0)
    for g in np.argsort(-np.abs(w)):
        step = np.minimum(room[:, g], left.clip(0)/abs(w[g]))
        cost, left = cost + step, left - step*abs(w[g])
    there = left < 1e-9
    return dict(rows=len(z), covered=float(there.mean()), cost=float(cost[there].mean()))


def dataset(flat):
    "What the peers want to know of a table."
    names = list(flat.tree)
    is_named = [c in flat.categories for c in names]
    return types.SimpleNamespace(features_tree={c: list(v) for c, v in flat.tree.items()}, categorical_features=flat.categories,
                                 categorical_columns=np.flatnonzero(is_named).tolist(),
                                 numerical_columns=np.flatnonzero(~np.array(is_named)).tolist(), features=names)


def globe(case, flat):
    "GLOBE-CE: one direction, and each row's own multiple of it."
    from cel.cf_methods.global_methods.globe_ce.globe_ce import GLOBE_CE
    X = flat.frame(case.rows)
    widths = {c: float(pd.cut(X[c].astype(float), bins=10).cat.categories.length[-1]) for c in X if c not in flat.categories and ' = ' not in c}
    start = time.process_time()
    with quiet():
        e = GLOBE_CE(flat.predict, dataset(flat), X.astype(float), dropped_features=case.fixed, bin_widths=widths, target_class=1)
        found = e.explain()
    seconds = time.process_time() - start
    v = e.round_categorical(found.x_cfs) if flat.named.any() else found.x_cfs
    note = ', '.join(f'{c} {d:+.3g}' for c, d in zip(flat.names, e.best_delta) if d)
    return measured(case, flat, v, case.rows, actions=1, seconds=seconds, note=note)


def ares(rules, support=.6):
    "AReS by the steps of its `explain`, which fails where fewer than 5,000 rules can be made; 0.6 is its default."
    def run(case, flat):
        from cel.cf_methods.global_methods.ares.ares import AReS
        X, about = flat.frame(case.rows), dataset(flat)
        about.features = flat.names
        start = time.process_time()
        with quiet():
            e = AReS(flat.predict, about, X, dropped_features=case.fixed, constraints=[rules, 7, 10])
            e.generate_itemsets(apriori_threshold=support)
            e.generate_groundset(then_generation=1/len(X))
            made = min(e.V.length, 5000)
            e.evaluate_groundset(lams=[1, 10], r=made, save_mode=1, disable_tqdm=True, plot_accuracy=False)
            e.select_groundset(s=made)
            e.optimise_groundset(lams=[1, 10], plot_accuracy=False)
        seconds = time.process_time() - start
        note = f'{made} rules to choose from'
        return measured(case, flat, cheapest(e.R, X), case.rows, actions=e.R.length, seconds=seconds, note=note)
    return run


def cheapest(R, X):
    "The rows after the cheapest rule that helps them."
    cost = np.where(R.correct_matrix > 0, R.cost_matrix, np.inf)
    best, out = cost.argmin(0), X.to_numpy(float)
    helped = np.isfinite(cost.min(0))
    out[helped] = R.cfx_matrix[best, np.arange(len(out))][helped]
    return out


@contextlib.contextmanager
def at_most(seconds):
    "Stop what needs more CPU time."
    def stop(*_): raise TimeoutError(f'stopped after {seconds} CPU seconds')
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try: yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def quiet():
    "Without a library's bars and prints."
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()): yield


METHODS = {'4 actions': ours(4, False), '1 action': ours(1, False), '4 free actions': ours(4, True), '1 free action': ours(1, True),
           'GLOBE-CE': globe, 'AReS, 4 rules': ares(4), 'AReS, 4 rules, support .4': ares(4, .4),
           'each row alone': alone, 'floor': floor}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--data', nargs='+', default=['heloc', 'german'])
    a.add_argument('--models', nargs='+', default=['logistic', 'network'])
    a.add_argument('--methods', nargs='+', default=list(METHODS))
    a.add_argument('--peers', type=Path, help='folder for the peers; a temporary one without it')
    a.add_argument('--limit', type=float, default=60, help='CPU seconds of a method')
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/actions.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    names = ['data', 'model', 'method', 'rows', 'actions', 'covered', 'cost', 'legal', 'held', 'held_cost', 'seconds', 'note']
    lines = pd.read_csv(a.out).to_dict('records') if a.out.is_file() else []
    done = {(l['data'], l['model'], l['method']) for l in lines}
    with tempfile.TemporaryDirectory() as d:
        folder = a.peers or Path(d)
        install(folder, PEERS)
        hollow(folder, 'cel', 'cel.cf_methods', 'cel.models')
        for data in a.data:
            for model in a.models:
                case = case_of(data, model)
                for name in a.methods:
                    if (data, model, name) in done or name == 'floor' and (data, model) != ('heloc', 'logistic'): continue
                    lines.append(dict(data=data, model=model, method=name) | line_of(case, name, a.limit))
                    print({k: round(v, 4) if isinstance(v, float) else v for k, v in lines[-1].items()}, flush=True)
                    with atomic(a.out) as tmp: sorted_lines(lines, names).to_csv(tmp, index=False)
    print(sorted_lines(lines, names[:-1]).round(3).to_string())


def line_of(case, name, limit):
    "What a method reaches; one that does not run says why."
    try:
        with at_most(limit): return METHODS[name](case, Flat(case))
    except Exception as e: return dict(rows=0, note=f'does not run: {type(e).__name__}: {" ".join(str(e).split())}'[:200])


def sorted_lines(lines, names):
    "The table in the order of data, models and methods."
    df = pd.DataFrame(lines, columns=names).round(4)
    order = {name: i for i, name in enumerate(['heloc', 'german', 'logistic', 'network', *METHODS])}
    return df.sort_values(['data', 'model', 'method'], key=lambda c: c.map(order), ignore_index=True)


if __name__ == '__main__': main()
