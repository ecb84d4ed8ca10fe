"""Does an audit find a longer way, and only where there is one? Simulated banks, and three tables.

    OMP_NUM_THREADS=1 python benchmarks/audit.py [--banks 100] [--power] [--out DIR]
    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/audit.py --tables

Each bank is a scorecard over five columns, with weights, sizes and thresholds of its own, that decides about two sexes in
three age groups. In a planted bank the way of refused women is a fifth longer than that of refused men, on average over
the whole population, in one of three ways:

threshold  women are asked for a higher score
start      women stand lower, and the scorecard does not look at their sex
steps      what a woman changes counts for less, so she needs more of it

The size of each is solved for on 20,000 applicants, in closed form; the audit never sees it. Two kinds of banks have nothing
to be found in the way:

fair       sex and age mean nothing
oftener    women are refused more often, but those refused have a way as long as men

`found` says that the audit's corrected p-value of distance for women is at most .05 and that theirs is the longer way.
`mistakes` counts what the audit found beyond what there is: anything in a fair bank, anything but refusals and what follows
from them in the other, and in planted ones whatever is said of age alone. `wrong_way` counts those of them that are not about refusals.
--power repeats the planted banks with fewer applicants. A line is one bank; nothing is left out.

With --tables, networks of the paper's kind are trained on six tenths of German Credit, Adult and COMPAS, and the rest is
audited: frames of groups and columns, and the text.
"""
import os
import sys
import time

import numpy as np
import pandas as pd
import torch
from scipy.optimize import brentq
from torch import nn
from tqdm import tqdm
from options import RESULTS, options

from gradual_cf.all import GradualCF, tabular
from gradual_cf.use.audit import audit
from gradual_cf.core import atomic

LONGER = 1.2          # The planted ratio of mean ways
SIGNS = np.array([1., -1., 1., -1., 1.])
POPULATION = 20_000   # Applicants on whom a bank is set up
FIXED_TWICE = 2.      # What cannot change weighs twice as much: women whose steps count less still stand as men do


def applicants(n, share, rng):
    "Applicants with five columns, a sex, and an age group that no model reads."
    return pd.DataFrame(dict(
        income=rng.lognormal(3.6, .35, n).round(1), debt=rng.gamma(3., 5., n).round(1), months=rng.integers(0, 240, n),
        late=rng.poisson(1.5, n), history=rng.gamma(4., 3., n).round(1),
        sex=pd.Categorical(np.where(rng.random(n) < share, 'woman', 'man'), ['man', 'woman']),
        age=rng.choice(['young', 'middle', 'old'], n, p=[.25, .45, .3])))


class Scorecard(nn.Module):
    "A linear score, a threshold for each sex, and free columns that count `1/stretch` for women."
    def __init__(self, weights, centre, threshold, higher=0., stretch=1.):
        super().__init__()
        tensor = lambda v: nn.Parameter(torch.tensor(v, dtype=torch.float32), requires_grad=False)
        self.weights, self.centre, self.threshold, self.higher, self.stretch = map(tensor, (weights, centre, threshold, higher, stretch))

    def forward(self, x):
        woman, points = x[:, 6], (x[:, :5] - self.centre)*self.weights
        free, fixed = points[:, :3].sum(1), points[:, 3:5].sum(1)
        lead = fixed + torch.where(woman > .5, free/self.stretch, free) - self.threshold - self.higher*woman
        return torch.stack([-lead, lead], 1)/2


def mean_ways(lead, best):
    "The mean way of those refused, in ranges of the best column."
    return (-lead[lead < 0]).mean()/best


def planted(kind, score, free, threshold, best):
    "What makes the mean way of women longer by a fifth: settings of the scorecard, and by how much their score starts lower."
    base = mean_ways(score - threshold, best)
    if kind in ('threshold', 'start'):
        higher = brentq(lambda v: mean_ways(score - threshold - v, best)/base - LONGER, 0, 3*score.std())
        return (dict(higher=higher), 0.) if kind == 'threshold' else ({}, higher)
    if kind == 'steps':
        way = lambda k: mean_ways(score - free + free/k - threshold, best/k)
        return dict(stretch=brentq(lambda k: way(k)/base - LONGER, 1, 5)), 0.
    return {}, 0.


def bank(kind, seed, n=None):
    "Draw a bank; the planted size is solved for on its population."
    rng = np.random.default_rng([seed, *map(ord, kind)])
    share, rate, size = rng.uniform(.3, .5), rng.uniform(.3, .5), int(rng.integers(5000, 8001))
    people = applicants(POPULATION, share, rng).drop(columns='age')
    domain = tabular(people, immutable=['sex', 'late', 'history'])
    x = domain.encode(people).x.numpy()[:, :5]
    weights = rng.uniform(3., 8., 5)/x.std(0)
    weights[:3] = np.sort(weights[:3])[::-1] # the first column is the best to change
    weights[3:] *= FIXED_TWICE
    points = (x - x.mean(0))*weights*SIGNS
    score, free = points.sum(1), points[:, :3].sum(1)
    threshold = np.quantile(score, rate)
    settings, lower = planted(kind, score, free, threshold, weights[0])
    net = Scorecard(weights*SIGNS, x.mean(0), threshold, **settings)
    come = applicants(3*(n or size), share, rng)
    come['history'] -= np.where(come.sex == 'woman', lower/weights[4]*domain.features[4].span, 0.)
    return domain, net, people, picked(kind, domain, net, come, n or size, rng)


def picked(kind, domain, net, come, n, rng):
    "As many as apply; where women are refused oftener, half of those who would be accepted stay away."
    if kind == 'oftener':
        granted = net(domain.encode(come.drop(columns='age')).x.float()).argmax(1).numpy() == 1
        come = come[~(granted & (come.sex == 'woman').to_numpy() & (rng.random(len(come)) < .5))]
    return come.iloc[:n].reset_index(drop=True)


def is_mistake(kind, line):
    "Whether a difference that was found is none."
    if kind == 'fair': return True
    if kind == 'oftener': return line.measure != 'refused' or line.by == 'age'
    return line.by == 'age'


def audited(kind, seed, n=None, resamples=499):
    "One bank: what was found, and what by mistake."
    domain, net, people, rows = bank(kind, seed, n)
    start = time.process_time()
    cf = GradualCF(net, domain, 'sparse', wanted=1).fit(people)
    told = audit(cf.under(seed=seed), rows, ['sex', 'age'], test=dict(resamples=resamples))
    women = told.frame[(told.frame.group == 'woman') & (told.frame.measure == 'distance')].iloc[0]
    wrong = [l for l in told.differences.itertuples() if is_mistake(kind, l)]
    found = bool(women.corrected <= told.level and women.ratio > 1)
    return dict(kind=kind, seed=seed, rows=len(rows), refused=int(told.refused.sum()), women=int(women.rows), found=found,
                ratio=women.ratio, low=women.ratio_low, high=women.ratio_high, corrected=women.corrected,
                mistakes=len(wrong), wrong_way=sum(l.measure != 'refused' for l in wrong),
                seconds=time.process_time() - start)


PLANTED, FAIR = ('threshold', 'start', 'steps'), ('fair', 'oftener')
SIZES = (500, 1000, 2000, 4000)


def banks(count, out):
    "As many planted banks as fair ones."
    todo = [(kinds[i % len(kinds)], i) for kinds in (PLANTED, FAIR) for i in range(count)]
    table = pd.DataFrame([audited(*bank) for bank in tqdm(todo, desc='banks')])
    print(table.groupby('kind', sort=False).agg(banks=('seed', 'size'), rows=('rows', 'mean'), refused=('refused', 'mean'),
          found=('found', 'sum'), ratio=('ratio', 'mean'), mistaken=('mistakes', lambda v: (v > 0).sum()),
          wrong_way=('wrong_way', lambda v: (v > 0).sum()), seconds=('seconds', 'sum')).round(3).to_string())
    with atomic(out/'audit_banks.csv') as tmp: table.drop(columns='seconds').round(4).to_csv(tmp, index=False)


def power(count, out):
    "How many planted banks are found with fewer applicants."
    todo = [(PLANTED[i % len(PLANTED)], i, n) for n in SIZES for i in range(count)]
    table = pd.DataFrame([audited(*bank) for bank in tqdm(todo, desc='banks')])
    told = table.groupby('rows').agg(banks=('seed', 'size'), refused=('refused', 'mean'), found=('found', 'mean'),
                                     mistaken=('mistakes', lambda v: (v > 0).mean())).reset_index()
    print(told.round(3).to_string())
    with atomic(out/'audit_power.csv') as tmp: told.round(3).to_csv(tmp, index=False)


# Real tables

AGES = [0, 25, 35, 50, 120]
PAST = dict( # What a table records of the past, or of a person, beside what `splits.py` holds fixed
    german=['credit_history', 'people_under_maintenance', 'age'],
    adult=['marital-status', 'relationship', 'age', 'capital-gain', 'capital-loss'],
    compas=['age'])


def groups_of(name, rows):
    "Sex, race where the table has it, and age in four parts, whatever the model reads."
    sex = rows.personal_status_sex.str.split(' :').str[0] if name == 'german' else rows.sex.str.lower()
    told = dict(sex=sex.astype(str), race=rows.race.astype(str)) if 'race' in rows else dict(sex=sex.astype(str))
    return pd.DataFrame(told | dict(age=pd.cut(rows.age, AGES, labels=['to 25', '26 to 35', '36 to 50', 'over 50'])), rows.index)


def table_audit(name, most):
    "Train a network of the paper's kind, and audit rows that it has not seen."
    from splits import LOAD, network
    data = LOAD[name]()
    domain = tabular(data.X, immutable=sorted({*data.rules.get('immutable', ()), *PAST[name]}))
    net = network(domain.encode(data.X).x.float(), torch.as_tensor(data.y), 0)
    rows = pd.concat([data.held, data.pool]).iloc[:most]
    start = time.process_time()
    told = audit(GradualCF(net, domain, 'sparse').fit(data.X), rows, groups_of(name, rows), target=data.wanted)
    return told, dict(data=name, rows=len(rows), refused=int(told.refused.sum()), answered=int(told.answers.valid.sum()),
                      groups=told.frame.groupby(['by', 'group']).ngroups - 1, withheld=len(told.withheld),
                      compared=int(told.frame.corrected.notna().sum()), found=len(told.differences),
                      seconds=round(time.process_time() - start, 1)), '\n\n'.join(told.text(data_classes(name)).split('\n\n')[:2])


def data_classes(name):
    "Names of the classes of a table."
    return dict(german=('a good risk', 'a bad risk'), adult=('at most 50K', 'over 50K'),
                compas=('no new arrest in two years', 'a new arrest in two years'))[name]


def tables(out, most=6000):
    "Frames and columns of three tables, and the first two paragraphs of their texts."
    if not os.environ.get('GRADUAL_CF_DATA'): sys.exit('GRADUAL_CF_DATA must name the data folder')
    kept = {name: table_audit(name, most) for name in ('german', 'adult', 'compas')}
    together = pd.concat([told.frame.assign(data=name) for name, (told, *_) in kept.items()])
    with atomic(out/'audit_tables.csv') as tmp: together.round(4).to_csv(tmp, index=False)
    for _, about, text in kept.values(): print(about, text, sep='\n')


def main():
    a = options(__doc__, ['power', 'tables'], banks=100, out=RESULTS)
    if a.tables: return tables(a.out)
    (power if a.power else banks)(a.banks, a.out)


if __name__ == '__main__': main()
