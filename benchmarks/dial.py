"""What each strength of `plausible` buys and costs, beside real rows of the target.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/dial.py [--rows 20] [--fit 2000] [--seeds 3] [--only heloc …]
        [--peers DIR] [--out FILE]

Tables as `benchmarks/believable.py` cuts them in three parts: rows to learn from, held rows that judge, rows to explain. In the
tables called rare, rows of the target were left out of the first part until a twelfth is left. A network and boosted trees.

met           share of answers that have all that the settings ask for
columns       how many changed
isolation, lof  shares of valid answers that judges, fitted on held rows of the target, call outliers
same          mean share of five models of the same kind, trained on resamples, that agree
pairs         share with a pair of values that touches a change and that no held row shows, as `benchmarks/believable.py` counts it
near          mean distance to the five nearest training rows, L1, encoded
own           share of valid answers that an isolation forest calls outliers which grew on training rows that no search sees: what
              somebody can know who has training rows alone
ms, one       CPU time a row, in a batch and, at strength 1, alone

The line `real rows` measures rows of the third part that the model gives to the target; their pairs touch the columns that were
changed in an answer of strength 1 drawn at random; their `own` is that of training rows of the target that the search sees.
--peers installs NICE into a folder and asks it about the same rows, for few and for plausible changes. `target` is the number of
training rows of the target. A line is kept as soon as it is there, and a run that was stopped goes on. Few rows for each table
and model, so small differences mean nothing.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors

from believable import LOAD, Data, Judges, codes_of, halved, lossy
from installed import install
from gradual_cf.all import GradualCF, bootstrap, load_breast_cancer, plausible, predict, tabular, tabular_mlp, train
from gradual_cf.core import atomic
from gradual_cf.measures.metrics import outliers
from gradual_cf.search.plausible import held_back

STRENGTHS = 0, .5, 1, 1.5
NICE = 'sparsity', 'plausibility' # What it optimises
HELD, FEWEST = 2000, 20 # Rows that judge, at most, and of the target, at least


def network(domain, X, y):
    torch.manual_seed(0)
    x = domain.encode(X).x
    return train(tabular_mlp(x.shape[1], 2), x, torch.as_tensor(np.asarray(y)), seed=0)


def boosting(domain, X, y):
    return HistGradientBoostingClassifier(random_state=0, max_iter=50, categorical_features='from_dtype').fit(X, y)


def rare(name):
    "A table with few rows of the target to learn from."
    d = LOAD[name]()
    t = 1 if d.wanted is None else d.wanted
    kept, other = np.flatnonzero(d.y == t), np.flatnonzero(d.y != t)
    i = np.random.default_rng(0).permutation(np.r_[kept[:len(other)//11], other])
    return Data(f'{name} rare', d.X.iloc[i], d.y[i], d.held, d.rows, d.rules, t)


TABLES = {'breast_cancer': lambda: halved('breast_cancer', load_breast_cancer()), **LOAD,
          'adult_rare': lambda: rare('adult'), 'uci_rare': lambda: rare('uci')}


class Case:
    "One table, one kind of model, one draw of the rows that it learns from."
    def __init__(self, name, kind, seed, rows, fit):
        d = TABLES[name]()
        rng = np.random.default_rng(seed)
        i = rng.permutation(len(d.X))[:fit]
        self.name, self.kind, self.seed, self.X, self.t = name, kind.__name__, seed, d.X.iloc[i], 1 if d.wanted is None else d.wanted
        y = np.asarray(d.y)[i]
        self.domain = tabular(self.X, **d.rules)
        self.model = kind(self.domain, self.X, y)
        self.base = GradualCF(self.model, self.domain).fit(self.X)
        models = bootstrap(lambda X, y: kind(self.domain, X, y), self.X, y, seed=seed)
        self.others = [GradualCF(m, self.domain).fit(self.X).model for m in models]
        held = d.held.iloc[:HELD]
        self.x = self.base.encode(held).x
        self.z = self.base.logits(held, self.x)
        self.judge = Judges.__new__(Judges) # its pairs alone: the other judges are those of the package
        self.judge.codes = codes_of(Data(name, self.X, y, held, d.rows, d.rules, self.t))
        self.judge.seen = self.judge.codes(held)
        said = self.base.logits(d.rows, self.base.encode(d.rows).x).argmax(1).numpy()
        self.asked, self.real = (d.rows[own].iloc[rng.permutation(own.sum())] for own in (said != self.t, said == self.t))
        self.asked, self.real = self.asked.head(rows), self.real.head(300)
        self.near = NearestNeighbors(n_neighbors=5, metric='manhattan').fit(self.base.x_train.numpy())
        self.back = held_back(len(self.base.x_train))
        self.few = self.z_of(self.back).sum() < FEWEST

    def z_of(self, rows): return self.base.z_train[rows].argmax(1) == self.t # Which training rows are of the target

    def own(self, x):
        "The share that training rows of the target, unseen by the search, find odd; None where there are too few."
        if self.few: return None
        unseen = self.base.x_train[self.back], self.base.z_train[self.back]
        return outliers(x, torch.full((len(x),), self.t), *unseen)['isolation'].double().mean().item()

    def enough(self): return min((self.z.argmax(1) == self.t).sum(), len(self.real), len(self.asked)) >= FEWEST

    def told(self, strength, frame, changed, **more):
        x = self.base.encode(frame).x
        more = dict(own=self.own(x)) | more
        out = outliers(x, torch.full((len(x),), self.t), self.x, self.z)
        same = np.mean([(predict(m, x).argmax(1) == self.t).numpy().mean() for m in self.others])
        own = (self.base.z_train.argmax(1) == self.t).sum().item()
        return dict(table=self.name, model=self.kind, seed=self.seed, strength=strength, rows=len(frame), target=own, **more,
                    **{j: v.double().mean().item() for j, v in out.items()}, same=same,
                    pairs=self.judge.unseen(frame, changed).mean(), near=self.near.kneighbors(x.numpy())[0].mean())

    def lines(self):
        "A line for each strength, and one for real rows."
        for s in STRENGTHS:
            cf = GradualCF(self.model, self.domain, plausible(s)).fit(self.X)
            cf.explain(self.asked.head(1), self.t) # what is learnt of a target when it is first asked for
            start = time.process_time()
            answers = cf.explain(self.asked, self.t)
            batch = time.process_time()
            ms = dict(ms=1000*(batch - start)/len(self.asked))
            if s == 1:
                for i in range(2): cf.explain(self.asked.iloc[[i]], self.t)
                ms['one'] = 1000*(time.process_time() - batch)/2
            some = answers[answers.valid]
            if s == 1: usual = some.changed
            met = cf.content(some.enc, some.xp, some.tensors.target).double().mean().item()
            yield self.told(s, some.raw, some.changed, valid=answers.valid.mean(), met=met, columns=some.changed.sum(1).mean(), **ms)
        drawn = np.random.default_rng(0).integers(0, len(usual), len(self.real))
        seen = self.base.x_train[~self.back][self.z_of(~self.back)]
        yield self.told('real rows', self.real, usual[drawn], own=self.own(seen))

    def peer(self, how):
        "NICE, about the same rows; categories as their codes."
        from nice import NICE
        kinds, named = self.X.dtypes, [c for c in self.X if isinstance(self.X[c].dtype, pd.CategoricalDtype)]
        codes = lambda df: np.column_stack([df[c].cat.codes if c in named else df[c] for c in df]).astype(float)
        cells = lambda c, v: pd.Categorical.from_codes(v.astype(int), dtype=kinds[c]) if c in named else v.astype(kinds[c])
        frame = lambda x: pd.DataFrame({c: cells(c, x[:, j]) for j, c in enumerate(self.X)})
        def said(x):
            df = frame(x)
            return self.base.logits(df, self.base.encode(df).x).softmax(1).numpy()
        where = [j for j, c in enumerate(self.X) if c in named]
        rest = [j for j in range(len(kinds)) if j not in where]
        X, asked = codes(self.X), codes(self.asked)
        more = dict(auto_encoder=lossy(X)) if how == 'plausibility' else {}
        e = NICE(predict_fn=said, X_train=X, cat_feat=where, num_feat=rest, y_train=said(X).argmax(1), optimization=how,
                 justified_cf=True, **more)
        start = time.process_time()
        found = np.concatenate([e.explain(asked[i:i + 1]) for i in range(len(asked))])
        ms, there = 1000*(time.process_time() - start)/len(asked), said(found).argmax(1) == self.t
        changed = (found != asked)[there]
        return self.told(f'NICE {how}', frame(found[there]), changed, valid=there.mean(), columns=changed.sum(1).mean(), ms=ms)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    p.add_argument('--rows', type=int, default=20)
    p.add_argument('--fit', type=int, default=2000)
    p.add_argument('--seeds', type=int, default=3)
    p.add_argument('--only', nargs='*', default=list(TABLES))
    p.add_argument('--peers', type=Path)
    p.add_argument('--out', type=Path, default=Path(__file__).parent/'results'/'dial.csv')
    a = p.parse_args()
    if a.peers: install(a.peers, ['NICEx==0.2.3'])
    found = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['table', 'model', 'seed'])
    for seed in range(a.seeds):
        for name in a.only:
            for kind in network, boosting:
                if ((found.table == name) & (found.model == kind.__name__) & (found.seed == seed)).any(): continue
                case = Case(name, kind, seed, a.rows, a.fit)
                if not case.enough():
                    print(name, kind.__name__, 'gives too few rows to the target, or too many, to be judged', flush=True)
                    continue
                new = pd.DataFrame([*case.lines(), *(case.peer(how) for how in NICE if a.peers)])
                print(new.round(3).to_string(), flush=True)
                found = pd.concat([found, new]) if len(found) else new
                with atomic(a.out) as tmp: found.round(4).to_csv(tmp, index=False)
    found['strength'] = found.strength.astype(str)
    shown = ['columns', 'met', 'isolation', 'lof', 'same', 'pairs', 'near', 'own', 'ms', 'one']
    print(found.groupby(['model', 'strength'], sort=False)[shown].mean(numeric_only=True).round(3))


if __name__ == '__main__': main()
