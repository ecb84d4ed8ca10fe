"""Does a suite find what is wrong with a challenger, and only that? Scorecards on a made-up population, 500 applicants a pair.

    OMP_NUM_THREADS=1 python benchmarks/suites.py [--pairs 200] [--bad 40] [--only KIND ...] [--out DIR]

Champion and challenger are logistic scorecards fitted to two samples of 4,000 people; both explain the same 500 applicants, of
whom about half are refused, and one suite of eight checks is run. In a quiet pair (`nothing`) that is all; `border` asks the same
pairs whether ratios are on the right side of 1, which only chance decides. Every other pair has one defect, which is planted into
the fitted challenger or into the letters:

no way       a column that nobody can change counts so much against one woman in five that nothing else suffices
longer       the challenger asks for more: ways of those whom both refuse become longer
group        women are asked for a higher score: their ways are longer than those of men
letters      letters that were sent were at the border of a scorecard that asked for less
reasons      two columns change their weights, so that another reason comes first
direction    more debt helps, a little
rules        two letters in a hundred change what nobody can change
fewer        late payments, which nobody can undo, count four times

`alarms` is the share of quiet pairs in which any of the thirteen lines fails. `found` is the share of pairs with a defect in which
the check that is meant for it fails; it is run alone, at a thirteenth of the level, which is harder than Holm's correction within
the suite. A line is one kind of pair, and nothing is left out.
"""
import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from tqdm import tqdm

from gradual_cf.core import atomic
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF
from gradual_cf.use import reasons
from gradual_cf.use.suites import run_suite

NAMES = ['income', 'debt', 'savings', 'months', 'late', 'branch']
CHECKS = [
    dict(check='recourse', least=.9, by='sex'),
    dict(check='recourse', against='champion', least=.95),
    dict(check='length', against='champion', most=1.25),
    dict(check='length', against='others', by='sex', most=1.25),
    dict(check='holds', least=.8),
    dict(check='reasons', least=.8),
    dict(check='direction'),
    dict(check='rules')]
BORDER = [  # what quiet pairs meet exactly on average: chance alone decides
    dict(check='recourse', against='champion', least=1), dict(check='recourse', against='others', by='sex', least=1),
    dict(check='length', against='champion', most=1), dict(check='length', against='others', by='sex', most=1)]
LINES = 13  # of the suite
MEANT = dict(nothing=None, no_way=1, fewer=2, longer=3, group=4, letters=5, reasons=6, direction=7, rules=8, border=None)  # which check
SIZE = dict(
    nothing='two samples', border='two samples, thresholds at 1', no_way='one woman in five', fewer='late payments count four times',
    longer='the cut-off is 3.2 logits higher', group='women: 8 logits more', letters='the cut-off is 2.8 logits higher',
    reasons='weights of income and savings change places', direction='debt: +1 instead of -8', rules='2% of the letters')


class Scorecard(nn.Module):
    "A linear score of encoded rows."
    def __init__(self, weights, bias):
        super().__init__()
        self.weights, self.bias = nn.Parameter(torch.as_tensor(weights).float()), float(bias)

    def forward(self, x):
        z = x @ self.weights + self.bias
        return torch.stack([-z, z], 1)/2


def people(n, rng):
    "Applicants; the branch says nothing, and nobody can change it."
    return pd.DataFrame({c: rng.integers(0, 101, n) for c in NAMES[:5]}).assign(
        branch=rng.choice([0, 1], n, p=[.8, .2]), sex=rng.choice(['woman', 'man'], n))


def fitted(rng):
    "Weights and bias of a scorecard, on values as shares of their ranges."
    df = people(4000, rng)
    x = df[NAMES].to_numpy()/np.array([100]*5 + [1])
    score = x @ [6., -4., 3., 2., -3., 0.] - 2
    model = LogisticRegression(C=10.).fit(x, rng.random(len(x)) < 1/(1 + np.exp(-2*score)))
    return model.coef_[0], model.intercept_[0]


def pair(defect, seed):
    "A champion, a challenger with a defect, the applicants, and letters where those are what is wrong."
    rng = np.random.default_rng([seed, *map(ord, 'nothing' if defect == 'border' else defect)])
    rows, rules = people(500, rng), dict(immutable=['late', 'branch'], better=dict(income='higher', debt='lower', savings='higher'))
    frame = pd.concat([rows[NAMES], pd.DataFrame({c: [0, 100] for c in NAMES[:5]} | dict(branch=[0, 1]))], ignore_index=True)
    (w, b), (v, c) = fitted(rng), fitted(rng)
    v = v.copy()
    if defect == 'longer': c -= 3.2
    if defect == 'letters': c -= 2.8
    if defect == 'reasons': v[[0, 2]] = v[[2, 0]]
    if defect == 'direction': v[1] = 1.
    if defect == 'fewer': v[4] *= 4.
    woman = rows.sex == 'woman'
    if defect == 'no_way': v[5], rows['branch'] = -60., (woman & (rng.random(500) < .2)).astype(int)
    if defect == 'group': v[5], rows['branch'] = -8., woman.astype(int)
    domain = tabular(frame, **rules)
    made = lambda w, b: GradualCF(Scorecard(w, b), domain, 'sparse', tau=.9, sigma=5, classes=('refused', 'granted')).fit(frame)
    champion, challenger = made(w, b), made(v, c)
    issued = None
    if defect == 'rules':
        answers = champion.explain(rows[NAMES], 'granted')
        answers.raw.loc[rng.random(500) < .02, 'late'] = 0
        issued = answers
    checks = BORDER if defect == 'border' else CHECKS
    return dict(model=challenger, champion=champion, rows=rows, target='granted', issued=issued, check=checks, seed=seed)


def failed(defect, seed):
    "Numbers of the checks that fail; of a pair with a defect, the one that is meant for it, at a harder level."
    meant, suite = MEANT[defect], pair(defect, seed)
    if not meant: return set(run_suite(suite).failures.no)
    return {meant for _ in run_suite(suite | dict(check=[CHECKS[meant - 1]], level=.05/LINES)).failures.no}


reasons._agreement = lambda *parts: pd.DataFrame()  # other methods play no part, and are most of the time


def main():
    p = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    p.add_argument('--pairs', type=int, default=200, help='quiet pairs')
    p.add_argument('--bad', type=int, default=40, help='pairs of each defect')
    p.add_argument('--only', nargs='+', choices=list(MEANT), help='these kinds; the lines of others stay as they are')
    p.add_argument('--out', type=Path, default=Path(__file__).parent/'results')
    asked = p.parse_args()
    torch.set_num_threads(1)
    file = asked.out/'suites.csv'
    lines = pd.read_csv(file).to_dict('records') if asked.only and file.exists() else []
    for defect, meant in ((k, v) for k, v in MEANT.items() if k in (asked.only or MEANT)):
        seen, start = [], time.process_time()
        for seed in tqdm(range(asked.bad if meant else asked.pairs), desc=defect):
            seen.append(failed(defect, seed))
        share = np.mean([bool(f) for f in seen])
        lines = [l for l in lines if l['defect'] != defect.replace('_', ' ')]
        told = dict(defect=defect.replace('_', ' '), size=SIZE[defect], pairs=len(seen))
        lines.append(told | {'found' if meant else 'alarms': share})
        print(lines[-1], f'{(time.process_time() - start)/len(seen):.2f} s a pair', Counter(c for f in seen for c in f))
        with atomic(file) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
