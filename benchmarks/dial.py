"""What each strength of `plausible` buys and costs, beside real rows of the target.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/dial.py [--rows 300] [--some 100] [--fit 2000] [--seeds 3] [--only heloc …]
        [--peers DIR] [--out FILE] [--fewest SECONDS]

Tables as `benchmarks/splits.py` cuts them in three parts: rows to learn from, held rows that judge, rows to explain. Nine are those
of the field; six more, for which nothing was tuned, are from R's packages and scikit-learn. In those called rare, rows of the target
were left out of the first part until a twelfth is left. A network and boosted trees. The preset (strength 1) is asked about --rows rows,
other strengths about the first of them, --some.

legal         share of valid answers that the table's constraints allow
met           share of answers that have all that the settings ask for
columns       how many changed
isolation, lof  shares of valid answers that judges, fitted on held rows of the target, call outliers
same          mean share of five models of the same kind, trained on resamples, that agree
pairs         share with a pair of values that touches a change and that no held row shows; numbers in tenths of the training rows,
              where they have more than ten values
near          mean distance to the five nearest training rows, L1, encoded
own           share of valid answers that an isolation forest calls outliers which grew on training rows that no search sees: what
              somebody can know who has training rows alone
ms, one       CPU time a row, in a batch and, at strength 1, alone

The line `real rows` measures rows of the third part that the model gives to the target; their pairs touch the columns that were
changed in an answer of strength 1 drawn at random; their `own` is that of training rows of the target that the search sees.
--peers installs NICE into a folder and asks it, in the first seed, about as many rows as other strengths are, for few and for
plausible changes. `target` is the number of training rows of the target. A line is kept as soon as it is there, and a run that was
stopped goes on.

--fewest asks something else, of boosted trees in the first seed: how few columns could any answer change that meets the demands of
strength 1? For two dozen rows of each table, the columns of the usual answer, of the best one that a search of SECONDS found for all of
them, and what is proven that no answer can do without, to results/dial_fewest.csv.
"""
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors

from gradual_cf.all import GradualCF, bootstrap, plausible, predict, tabular, tabular_mlp, train
from gradual_cf.core import atomic
from gradual_cf.measures.metrics import outliers
from gradual_cf.search.plausible import held_back
from installed import install
from splits import FIELD, FRESH, RARE
from options import RESULTS, options

TABLES = FIELD | FRESH | RARE
STRENGTHS = 0, .5, 1, 1.5
NICE = 'sparsity', 'plausibility' # What it optimises
HELD, FEWEST = 2000, 20 # Rows that judge, at most, and of the target, at least


def network(domain, X, y):
    torch.manual_seed(0)
    x = domain.encode(X).x
    return train(tabular_mlp(x.shape[1], 2), x, torch.as_tensor(np.asarray(y)), seed=0)


def boosting(domain, X, y):
    return HistGradientBoostingClassifier(random_state=0, max_iter=50, categorical_features='from_dtype').fit(X, y)


class Pairs:
    "Which pairs of values the held rows show."
    def __init__(self, X, held):
        self.cuts = {c: np.unique(X[c].quantile(np.arange(1, 10)/10)) for c in X if pd.api.types.is_numeric_dtype(X[c]) and X[c].nunique() > 10}
        self.levels = {c: sorted(X[c].unique()) for c in X if c not in self.cuts}
        self.seen = self.codes(held)

    def codes(self, df):
        "How cells are told apart."
        return np.column_stack([np.searchsorted(self.cuts[c], df[c].astype(float)) if c in self.cuts else
                                pd.Categorical(df[c], categories=self.levels[c]).codes for c in df])

    def unseen(self, frame, changed):
        "Whether a pair of values that touches a change is in no held row."
        new, out = self.codes(frame), np.zeros(len(frame), bool)
        big = int(max(new.max(), self.seen.max())) + 2
        for j in range(new.shape[1]):
            for k in range(new.shape[1]):
                if k == j: continue
                pairs = np.unique(self.seen[:, j]*big + self.seen[:, k])
                out |= changed[:, j] & ~np.isin(new[:, j]*big + new[:, k], pairs)
        return out


def lossy(x):
    "Reconstruction error of principal components that hold nine tenths of the variance: what NICE calls an auto-encoder."
    from sklearn.decomposition import PCA
    scale = x.std(0) + 1e-9
    pca = PCA(.9).fit(x/scale)
    return lambda v: ((v/scale - pca.inverse_transform(pca.transform(v/scale)))**2).mean(1)


class Case:
    "One table, one kind of model, one draw of the rows that it learns from."
    def __init__(self, name, kind, seed, rows, some, fit):
        d = TABLES[name]()
        rng = np.random.default_rng(seed)
        i = rng.permutation(len(d.X))[:fit]
        self.name, self.kind, self.seed, self.X, self.t = name, kind.__name__, seed, d.X.iloc[i], 1 if d.wanted is None else d.wanted
        y = np.asarray(d.y)[i]
        self.domain = tabular(self.X, **d.rules)
        self.model = kind(self.domain, self.X, y)
        self.base = GradualCF(self.model, self.domain, 'sparse').fit(self.X)
        models = bootstrap(lambda X, y: kind(self.domain, X, y), self.X, y, seed=seed)
        self.others = [GradualCF(m, self.domain, 'sparse').fit(self.X).model for m in models]
        held = d.held.iloc[:HELD]
        self.x = self.base.encode(held).x
        self.z = self.base.logits(held, self.x)
        self.pairs = Pairs(self.X, held)
        said = self.base.logits(d.pool, self.base.encode(d.pool).x).argmax(1).numpy()
        self.asked, self.real = (d.pool[own].iloc[rng.permutation(own.sum())] for own in (said != self.t, said == self.t))
        self.asked, self.real, self.some = self.asked.head(rows), self.real.head(300), some
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
                    pairs=self.pairs.unseen(frame, changed).mean(), near=self.near.kneighbors(x.numpy())[0].mean())

    def lines(self):
        "A line for each strength, and one for real rows."
        for s in STRENGTHS:
            asked = self.asked if s == 1 else self.asked.head(self.some)
            cf = GradualCF(self.model, self.domain, plausible(s)).fit(self.X)
            cf.explain(asked.head(1), self.t) # what is learnt of a target when it is first asked for
            start = time.process_time()
            answers = cf.explain(asked, self.t)
            batch = time.process_time()
            ms = dict(ms=1000*(batch - start)/len(asked))
            if s == 1:
                for i in range(2): cf.explain(asked.iloc[[i]], self.t)
                ms['one'] = 1000*(time.process_time() - batch)/2
            found = answers[answers.valid]
            if s == 1: usual = found.changed
            met = cf.satisfies_settings(found.enc, found.xp, found.tensors.target).double().mean().item()
            legal = np.asarray(self.domain.legal(found.data, found.raw)).all(1).mean()
            yield self.told(s, found.raw, found.changed, valid=answers.valid.mean(), legal=legal, met=met,
                            columns=found.changed.sum(1).mean(), **ms)
        drawn = np.random.default_rng(0).integers(0, len(usual), len(self.real))
        seen = self.base.x_train[~self.back][self.z_of(~self.back)]
        yield self.told('real rows', self.real, usual[drawn], own=self.own(seen))

    def fewest(self, seconds):
        "How many columns answers of strength 1 change, and how many are proven to be needed: means over rows that can have all demands."
        asked = self.asked.head(24)
        cf = GradualCF(self.model, self.domain, plausible()).fit(self.X)
        usual, best = cf.explain(asked, self.t), cf.explain(asked, self.t, proof='columns', limit=seconds)
        i = np.isfinite(best.size)
        told = {'usual': usual.changed.sum(1)[i], 'best': best.size[i], 'bound': np.minimum(best.bound, best.size)[i]}
        return dict(table=self.name, rows=len(asked), answered=int(i.sum()), proven=float((told['bound'] == told['best']).mean()),
                    none_exists=float(np.isinf(best.bound).mean()), **{k: float(v.mean()) for k, v in told.items()})

    def peer(self, how):
        "NICE, about the same rows; categories as their codes. It takes no constraints, so `legal` is not asked."
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
        X, asked = codes(self.X), codes(self.asked.head(self.some))
        more = dict(auto_encoder=lossy(X)) if how == 'plausibility' else {}
        e = NICE(predict_fn=said, X_train=X, cat_feat=where, num_feat=rest, y_train=said(X).argmax(1), optimization=how,
                 justified_cf=True, **more)
        start = time.process_time()
        found = np.concatenate([e.explain(asked[i:i + 1]) for i in range(len(asked))])
        ms, there = 1000*(time.process_time() - start)/len(asked), said(found).argmax(1) == self.t
        changed = (found != asked)[there]
        return self.told(f'NICE {how}', frame(found[there]), changed, valid=there.mean(), columns=changed.sum(1).mean(), ms=ms)


def fewest(only, fit, seconds, out):
    "A line for each table whose boosted trees can be asked."
    lines = []
    for name in only:
        case = Case(name, boosting, 0, 300, 100, fit)
        if not case.enough(): continue
        lines.append(case.fewest(seconds))
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in lines[-1].items()}, flush=True)
        with atomic(out) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)


def main():
    a = options(__doc__, rows=300, some=100, fit=2000, seeds=3, only=TABLES, peers=Path, fewest=float, out=RESULTS/'dial.csv')
    if a.fewest: return fewest(a.only, a.fit, a.fewest, a.out.with_stem('dial_fewest'))
    if a.peers: install(a.peers, ['NICEx==0.2.3'])
    found = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['table', 'model', 'seed'])
    for seed in range(a.seeds):
        for name in a.only:
            for kind in network, boosting:
                if ((found.table == name) & (found.model == kind.__name__) & (found.seed == seed)).any(): continue
                case = Case(name, kind, seed, a.rows, a.some, a.fit)
                if not case.enough():
                    print(name, kind.__name__, 'gives too few rows to the target, or too many, to be judged', flush=True)
                    continue
                peers = NICE if a.peers and seed == 0 else ()
                new = pd.DataFrame([*case.lines(), *(case.peer(how) for how in peers)])
                print(new.round(3).to_string(), flush=True)
                found = pd.concat([found, new]) if len(found) else new
                with atomic(a.out) as tmp: found.round(4).to_csv(tmp, index=False)
    found['strength'] = found.strength.astype(str)
    shown = ['columns', 'met', 'isolation', 'lof', 'same', 'pairs', 'near', 'own', 'ms', 'one']
    print(found.groupby(['model', 'strength'], sort=False)[shown].mean(numeric_only=True).round(3))


if __name__ == '__main__': main()
