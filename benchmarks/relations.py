"""Relations and costs on Adult, German Credit and UCI Credit: do answers keep them, and are they the cheapest?

    python benchmarks/relations.py [--rows 10000] [--priced 500] [--out benchmarks/results/relations.csv]

Needs GRADUAL_CF_DATA. Ten relations a table. `broken` counts rows that break one, by checks written here in plain
pandas, which know nothing of the search. `proven` are rows for which a valid answer is known to exist: those that were
found, and those for which trying all proposed values of one and two columns finds one. `ratio` is the cost of an answer
divided by the least cost met: by the answer itself, or by trying all values of one and two columns that cost less. Both
have the same bar there, the probability tau without a margin.
"""
import argparse
import os
import time
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LinearRegression

from gradual_cf.all import GradualCF, load_task, predict, tabular, tabular_mlp, train
from gradual_cf.core import changed_groups

FOLDER = Path(os.environ.get('GRADUAL_CF_DATA', '.'))
WIDTH = 64


class Table(NamedTuple):
    "One table, what hangs together in it, and a check of that."
    X: pd.DataFrame     # Training rows
    rows: pd.DataFrame  # Rows to explain
    model: object
    told: dict          # What `tabular` is told
    cost: dict
    check: object       # (rows before, rows after) -> name -> bool `(n,)`, True where it is kept


def network(X, y, **fit):
    "A network on the encoded rows of a table."
    x = tabular(X).encode(X).x
    return train(tabular_mlp(x.shape[1], 2, WIDTH, seed=0), x, y.to_numpy(), seed=0, **fit)


def ways(before, after, column):
    "Where a number rose, and where it fell."
    return after[column] > before[column], after[column] < before[column]


COUPLE = ['Husband', 'Wife']
WEDDED = ['Married-civ-spouse', 'Married-AF-spouse']


def check_adult(a, b):
    school = dict(zip(a.education, a['education-num'])) | dict(zip(b.education, b['education-num']))
    risen = b['education-num'] > a['education-num']
    return {
        'education-num': b['education-num'].eq(b.education.map(LEVELS)) & b.education.isin(list(school)),
        'study takes time': ~risen | (b.age >= a.age + 2),
        'husbands': ~b.relationship.eq('Husband') | b.sex.eq('Male'),
        'wives': ~b.relationship.eq('Wife') | b.sex.eq('Female'),
        'couples': ~b.relationship.isin(COUPLE) | b['marital-status'].isin(WEDDED),
        'gain or loss': ~(b['capital-gain'] > 0) | b['capital-loss'].eq(0),
        'armed forces': ~b.occupation.eq('Armed-Forces') | b.workclass.eq('Federal-gov'),
        'no pay': ~b.workclass.eq('Without-pay') | b['capital-gain'].eq(0),
        'young': ~(b.age < 20) | (b['education-num'] <= 10),
        'doctors': ~(b['education-num'] >= 15) | (b.age >= 24)}


LEVELS = {}  # Adult's levels of education and their numbers


def adult():
    df = pd.read_csv(FOLDER/'tables/adult.csv', skipinitialspace=True).drop(columns=['fnlwgt'])
    df, y = df.drop(columns=['class']), (df['class'].str.strip() == '>50K').astype(int)
    LEVELS.update(zip(df.education, df['education-num']))
    order = np.random.default_rng(0).permutation(len(df))
    X, rows = df.iloc[order[:16000]], df.iloc[order[16000:]]
    relations = ['`education-num` rises -> age rises by 2',
                 'relationship == "Husband" -> sex == "Male"', 'relationship == "Wife" -> sex == "Female"',
                 'relationship in ["Husband", "Wife"] -> `marital-status` in ["Married-civ-spouse", "Married-AF-spouse"]',
                 '`capital-gain` > 0 -> `capital-loss` == 0', 'occupation == "Armed-Forces" -> workclass == "Federal-gov"',
                 'workclass == "Without-pay" -> `capital-gain` == 0', 'age < 20 -> `education-num` <= 10',
                 '`education-num` >= 15 -> age >= 24']
    told = dict(immutable=['race', 'sex', 'native-country'], increase_only=['age'], relations=relations,
                derive={'education-num': lambda d: d.education.map(LEVELS)})
    cost = {'education': 'hard', 'age': (5, 'never'), 'marital-status': 'hard', 'relationship': 'hard', 'capital-gain': 3,
            'hours-per-week': (2, 1), 'occupation': 'medium'}
    return Table(X, rows, network(X, y.iloc[order[:16000]]), told, cost, check_adult)


def check_german(a, b):
    longer, shorter = ways(a, b, 'duration_in_month')
    more, _ = ways(a, b, 'credit_amount')
    return {
        'instalments are bounded': b.credit_amount <= 500*b.duration_in_month,
        'instalments are worth it': b.credit_amount >= 30*b.duration_in_month,
        'shorter is dearer': ~shorter | (b.installment_as_income_perc >= a.installment_as_income_perc + 1),
        'long employed': ~b.present_emp_since.eq('.. >= 7 years') | (b.age >= 22),
        'no job': ~b.present_emp_since.eq('unemployed') | b.job.ne('skilled employee / official'),
        'free housing': ~b.housing.eq('for free') | b.property.eq('unknown / no property'),
        'owners': ~b.housing.eq('own') | b.property.ne('unknown / no property'),
        'young families': ~b.people_under_maintenance.eq(2) | (b.age >= 21),
        'many credits': ~(b.credits_this_bank >= 3) | (b.age >= 21),
        'managers': ~b.job.str.startswith('management') | b.telephone.ne('none')}


def german():
    df = pd.read_csv(FOLDER/'tables/german_credit.csv').apply(lambda s: s.str.strip() if s.dtype == object or s.dtype == 'str' else s)
    X, y = df.drop(columns='default'), 1 - df['default']
    relations = ['credit_amount <= 500*duration_in_month', 'credit_amount >= 30*duration_in_month',
                 'duration_in_month falls -> installment_as_income_perc rises by 1',
                 'present_emp_since == ".. >= 7 years" -> age >= 22',
                 'present_emp_since == "unemployed" -> job != "skilled employee / official"',
                 'housing == "for free" -> property == "unknown / no property"',
                 'housing == "own" -> property != "unknown / no property"', 'people_under_maintenance == 2 -> age >= 21',
                 'credits_this_bank >= 3 -> age >= 21',
                 'job == "management/ self-employed/ highly qualified employee/ officer" -> telephone != "none"']
    told = dict(immutable=['personal_status_sex', 'foreign_worker', 'purpose'], increase_only=['age'], relations=relations)
    cost = {'age': 'hard', 'job': 'hard', 'present_emp_since': 'hard', 'housing': 'hard', 'property': 'medium',
            'credit_history': 'hard', 'duration_in_month': (1, 2), 'credit_amount': (5, 1), 'telephone': .2}
    return Table(X, X, network(X, y, batch_size=32, patience=30), told, cost, check_german)


BILLS = [f'BILL_AMT{i} >= BILL_AMT{i + 1} - PAY_AMT{i}' for i in range(1, 6)]


def check_uci(a, b):
    kept = {text: b[f'BILL_AMT{i}'] >= b[f'BILL_AMT{i + 1}'] - b[f'PAY_AMT{i}'] for i, text in enumerate(BILLS, 1)}
    return kept | {
        'limit of a bill': b.BILL_AMT1 <= 1.2*b.LIMIT_BAL, 'limit of a payment': b.PAY_AMT1 <= b.LIMIT_BAL,
        'delays grow by one': ~(b.PAY_0 > 1) | (b.PAY_0 <= b.PAY_2 + 1),
        'and so before': ~(b.PAY_2 > 1) | (b.PAY_2 <= b.PAY_3 + 1),
        'study takes time': b.EDUCATION.eq(a.EDUCATION) | (b.AGE >= a.AGE + 2)}


def uci():
    task = load_task('uci_credit')
    relations = [*BILLS, 'BILL_AMT1 <= 1.2*LIMIT_BAL', 'PAY_AMT1 <= LIMIT_BAL', 'PAY_0 > 1 -> PAY_0 <= PAY_2 + 1',
                 'PAY_2 > 1 -> PAY_2 <= PAY_3 + 1', 'EDUCATION changes -> AGE rises by 2']
    told = dict(immutable=['SEX', 'MARRIAGE'], increase_only=['AGE'], relations=relations)
    late = {c: (1, 3) for c in task.X if c.startswith('PAY_') and 'AMT' not in c}
    cost = late | {'AGE': 'never', 'EDUCATION': 'hard', 'LIMIT_BAL': (10, 1)}
    return Table(task.X, task.X_test, task.model, told, cost, check_uci)


def caused():
    "UCI Credit with a bill that follows the bill before it and what was paid: the residual stays."
    t = uci()
    parents = ['BILL_AMT2', 'PAY_AMT1']
    fitted = LinearRegression().fit(t.X[parents], t.X.BILL_AMT1)
    def check(a, b):
        wanted = a.BILL_AMT1 + fitted.predict(b[parents]) - fitted.predict(a[parents])
        return {k: v for k, v in t.check(a, b).items() if k != BILLS[0]} | {'residual': (b.BILL_AMT1 - wanted).abs() <= .5001}
    told = t.told | dict(relations=t.told['relations'][1:], causes={'BILL_AMT1': (parents, fitted)})
    return t._replace(told=told, check=check)


TABLES = dict(adult=adult, german_credit=german, uci_credit=uci, uci_credit_causes=caused)
SHARES = dict(adult=.5, german_credit=.1, uci_credit=.3, uci_credit_causes=.1)


def broken(t, cfs):
    "Rows that break a relation which they kept before, by name."
    a, b = (df.reset_index(drop=True) for df in (cfs.data, cfs.raw))
    before, after = t.check(a, a), t.check(a, b)
    return {name: int((before[name] & ~after[name]).sum()) for name in after}


def all_values(cf, enc, i):
    "Every proposed value of one row put in alone, with all that follows: rows `(q, d)`, and the column of each."
    groups, out, which = cf.groups(enc.x), [], []
    for g in (~enc.frozen[i]).nonzero()[:, 0].tolist():
        values = cf.domain.propose(enc.x[i:i + 1], g)[0].to(enc.x)
        rows = enc.x[i].repeat(len(values), 1)
        rows[:, groups == g] = values
        out.append(rows)
        which += [g]*len(values)
    return torch.cat(out), torch.tensor(which)


def admitted(cf, enc, i, xp):
    "Rows inside the limits of row `i`, with all that follows, and which of them may be."
    many = type(enc)(*(v if v is None else v[i:i + 1].expand(len(xp), *v.shape[1:]) for v in enc))
    inside = torch.minimum(torch.maximum(xp, many.low), many.high)
    inside = torch.where(xp == many.x, xp, inside)
    inside = cf.project(inside, many.x)
    return inside, cf.domain.relations.holds(many, inside)


CHUNK = 2**16


def pairs(cf, enc, i, one, which, below, price):
    "All pairs of values that cost less than a limit, a part at a time."
    single = price(enc.x[i:i + 1].expand_as(one), one)
    groups = cf.groups(enc.x)
    for g, h in combinations(sorted(set(which.tolist())), 2):
        a, b = ((which == k).nonzero()[:, 0] for k in (g, h))
        first, second = (v.flatten() for v in torch.meshgrid(a, b, indexing='ij'))
        cheap = single[first] + single[second] < below
        first, second = first[cheap], second[cheap]
        for part in torch.arange(len(first)).split(CHUNK):
            if len(part): yield torch.where(groups == h, one[second[part]], one[first[part]])


def reaching(cf, enc, target, i, xp):
    "Of some rows, those that may be and reach the target."
    xp, may = admitted(cf, enc, i, xp)
    xp = xp[may]
    if not len(xp): return xp
    odds = predict(cf.model, xp).softmax(1)[:, target[i]]
    return xp[odds >= cf.settings.tau]


def provable(cf, enc, target, i):
    "Whether one or two columns suffice."
    one, which = all_values(cf, enc, i)
    if len(reaching(cf, enc, target, i, one)): return True
    free = lambda x, xp: torch.zeros(len(xp))
    return any(len(reaching(cf, enc, target, i, xp)) for xp in pairs(cf, enc, i, one, which, 1., free))


def least_cost(cf, enc, target, i, own):
    "The least cost of a valid row with one or two changed columns, if that is below the answer's own."
    one, which = all_values(cf, enc, i)
    price, best = cf.domain.cost, own
    cost = lambda xp: price(enc.x[i:i + 1].expand_as(xp), xp)
    for xp in (one, *pairs(cf, enc, i, one, which, own, price)):
        found = reaching(cf, enc, target, i, xp)
        if len(found): best = min(best, cost(found).min().item())
    return best


def measured(name, t, rows, priced):
    "One line of the table."
    draw = np.random.default_rng(1).permutation(len(t.rows))
    some = t.rows.iloc[draw[:rows]]
    domain = tabular(t.X, **t.told)
    cf = GradualCF(t.model, domain, 'sparse').fit(t.X)
    begin = time.perf_counter()
    cfs = cf.explain(some)
    took = time.perf_counter() - begin
    free = tabular(t.X, **{k: v for k, v in t.told.items() if k not in ('relations', 'derive', 'causes')})
    plain = GradualCF(t.model, free, 'sparse').fit(t.X)
    begin = time.perf_counter()
    without = plain.explain(some)
    took_plain = time.perf_counter() - begin
    lost = np.flatnonzero(~cfs.valid).tolist()
    proven = sum(provable(cf, cfs.enc, cfs.tensors.target, i) for i in lost)
    line = dict(data=name, rows=len(some), broken=sum(broken(t, cfs).values()), legal=domain.legal(cfs.data, cfs.raw).all(1).mean(),
                broken_without=sum(broken(t, without).values()), valid=cfs.valid.mean(),
                proven=1 - proven/max(len(some) - len(lost) + proven, 1), columns=columns(cf, cfs), columns_without=columns(plain, without),
                ms=1e3*took/len(some), ms_without=1e3*took_plain/len(some))
    return line | costs(t, some.iloc[:priced])


def columns(cf, cfs):
    "Mean number of columns that were chosen, of valid rows."
    changed = changed_groups(cfs.x, cfs.xp, cf.groups(cfs.x))
    relations = cf.domain.relations
    if relations is not None: changed &= ~relations.consequences(cfs.x, cfs.xp)
    return changed.sum(1)[cfs.valid].double().mean().item()


def costs(t, some):
    "Cost of answers against the least that trying all values of one and two columns meets."
    cf = GradualCF(t.model, tabular(t.X, **t.told, cost=t.cost), 'sparse', tau_slack=0.).fit(t.X)  # the bar of the exhaustive search
    begin = time.perf_counter()
    cfs = cf.explain(some)
    took = time.perf_counter() - begin
    own = cf.domain.cost(cfs.x, cfs.xp)
    rows = np.flatnonzero(cfs.valid).tolist()
    best = np.array([least_cost(cf, cfs.enc, cfs.tensors.target, i, own[i].item()) for i in rows])
    mine = own[rows].double().numpy()
    ratio = mine/np.maximum(best, 1e-9)
    return dict(priced=len(some), broken_priced=sum(broken(t, cfs).values()), valid_priced=len(rows)/len(some), cost=mine.mean(),
                ratio=ratio.mean(), total_ratio=mine.sum()/best.sum(), within_5=(ratio <= 1.05).mean(), ms_priced=1e3*took/len(some))


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--rows', type=int, default=10000)
    a.add_argument('--priced', type=int, default=500)
    a.add_argument('--only', default='')
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/relations.csv'))
    a = a.parse_args()
    torch.manual_seed(0)
    lines = []
    for name, make in TABLES.items():
        if a.only and name != a.only: continue
        lines.append(measured(name, make(), round(a.rows*SHARES[name]), round(a.priced*SHARES[name])))
        print(pd.Series(lines[-1]).to_string(), '\n', flush=True)
    pd.DataFrame(lines).to_csv(a.out, index=False, float_format='%.4g')


if __name__ == '__main__': main()
