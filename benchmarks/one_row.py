"""One row at a time, and all rows at once: CPU milliseconds of an answer under each intent, beside NICE, DiCE and treecf in one process.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/one_row.py [--rows 24] [--peers DIR] [--only lightgbm network …] [--more] [--out FILE]

HELOC. Every method is asked for one answer of the other class, in turn, row by row, in one thread. The first call
of each towards either class is timed alone (`first`, both together), and left out of what follows.
`single`, `mean` and `high` are median, mean and ninth decile of the calls with one row, `batch` is one call with all rows, divided by
their number (ours only: the others take one row). `found` is the share of answers that the model gives to the other class, `columns` how
many of them change. `forest` has 100 trees of depth 8, `perceptron` 50 units behind a scaler, `network` is the paper's and is handed to
peers as a function of its own numbers.

Each as lean as it can rightly be: the model function of NICE and DiCE puts numbers into one block of floats with the names that the model was
fitted on; treecf reads trees, and proves its answer within two seconds or hands out what it has. --only keeps the other lines of the file;
--more asks ours alone for four answers (of which `columns` are of the first) and for the reasons of the decision.
"""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from clock import timed
from installed import install
from options import RESULTS, options
from splits import LOAD

from gradual_cf.all import PLAUSIBLE, ROBUST, SPARSE, GradualCF, load_task, reasons, tabular
from gradual_cf.core import atomic

MODELS = 'lightgbm', 'xgboost', 'catboost', 'forest', 'logistic', 'perceptron', 'network'
TREES = 'lightgbm', 'xgboost', 'forest'
INTENTS = {'ours, the default (ROBUST)': ROBUST, 'ours, SPARSE': SPARSE, 'ours, PLAUSIBLE': PLAUSIBLE}


def learner(name):
    "A model that is not fitted yet, in one thread."
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier
    return dict(lightgbm=lambda: LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbose=-1),
                xgboost=lambda: XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0),
                catboost=lambda: CatBoostClassifier(iterations=100, thread_count=1, verbose=0, allow_writing_files=False, random_seed=0),
                forest=lambda: RandomForestClassifier(100, max_depth=8, random_state=0, n_jobs=1),
                logistic=lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
                perceptron=lambda: make_pipeline(StandardScaler(), MLPClassifier((50,), max_iter=60, random_state=0)))[name]()


class Asked:
    "A model as peers ask it: rows of numbers, or a frame of them, to probabilities."
    classes_ = np.arange(2)
    def __init__(self, said): self.predict_proba = said
    def predict(self, x): return self.predict_proba(x).argmax(1)


def case(name, rows):
    "The model, its training rows and labels, rows to ask about, and what peers see of them: their numbers, and a function of these."
    if name == 'network':
        task = load_task('heloc')
        def said(x):
            with torch.no_grad(): return task.model(torch.as_tensor(np.asarray(x), dtype=torch.float32)).softmax(1).numpy()
        read = lambda df: task.domain.encode(df).x.double().numpy()
        x = read(task.X)
        return task.model, task.domain, task.X, task.X_test.iloc[:rows], x, said(x).argmax(1), read, Asked(said)
    d = LOAD['heloc']()
    X, model = d.X.astype(float), learner(name).fit(d.X.astype(float), d.y)
    read = lambda df: df.to_numpy(float)
    said = lambda x: model.predict_proba(pd.DataFrame(np.asarray(x), columns=X.columns, copy=False))
    return model, tabular(d.X), d.X, d.pool.iloc[:rows], read(X), d.y, read, Asked(said)


def peers(name, model, x, y, read, asked):
    "Each as a function of one row of numbers that gives another, or None."
    import dice_ml
    from nice import NICE
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler
    from treecf import Counterfactual, Explainer, Target
    number = [f'x{j}' for j in range(x.shape[1])]
    scale, few = StandardScaler().fit(x), PCA(.9).fit(StandardScaler().fit_transform(x))  # stands for the auto-encoder of NICE's plausibility
    def lossy(z): return ((scale.transform(z) - few.inverse_transform(few.transform(scale.transform(z))))**2).mean(1)
    def of_nice(mode):
        more = dict(auto_encoder=lossy) if mode == 'plausibility' else {}
        e = NICE(predict_fn=asked.predict_proba, X_train=x, cat_feat=[], num_feat=list(range(x.shape[1])), y_train=y,
                 optimization=mode, justified_cf=True, **more)
        return lambda v: e.explain(v[None])[0]
    data = dice_ml.Data(dataframe=pd.DataFrame(x, columns=number).assign(outcome=y), continuous_features=number, outcome_name='outcome')
    def of_dice(method):
        e = dice_ml.Dice(data, dice_ml.Model(model=asked, backend='sklearn'), method=method)
        more = dict(random_seed=0) if method == 'random' else {}
        def one(v):
            asking = dict(total_CFs=1, desired_class='opposite', verbose=False)
            got = e.generate_counterfactuals(pd.DataFrame(v[None], columns=number), **asking, **more).cf_examples_list[0].final_cfs_df
            return None if got is None or not len(got) else got[number].to_numpy(float)[0]
        return one
    out = {f'NICE ({m})': of_nice(m) for m in ('none', 'sparsity', 'plausibility')} | {f'DiCE ({m})': of_dice(m) for m in ('random', 'genetic')}
    if name not in TREES: return out
    span = Target.raw if name == 'forest' else Target.probability  # its trees hold shares already
    exact, goals = Explainer(model, background=x), [span(range=ends) for ends in ((.5, 1.), (0., .5))]
    def of_treecf(v):
        got = exact.explain(v, goals[asked.predict(v[None])[0]], backend='exact', seed=0, time_budget_s=2.)
        return got.x_cf if isinstance(got, Counterfactual) else None
    return out | {'treecf (exact)': of_treecf}


def answered(f, i):
    "The answer to a row; None where the method says by an error that it has none."
    try: return f(i)
    except Exception: return None


def lines(name, rows, more):
    "What each method takes for the rows of a model, and what it gives."
    model, domain, X, some, x, y, read, asked = case(name, rows)
    explainers = {intent: GradualCF(model, domain, settings).fit(X) for intent, settings in INTENTS.items()}
    old, alone = read(some), [some.iloc[[i]] for i in range(len(some))]
    if more:
        one = {f'four answers, {intent[6:]}': lambda i, cf=cf: cf.explain(alone[i], k=4).raw for intent, cf in explainers.items()}
        said = asked.predict(old)
        one |= {'reasons': lambda i, cf=explainers['ours, SPARSE']: reasons(cf, alone[i], target=1 - int(said[i])) and None}
    else:
        one = {intent: lambda i, cf=cf: cf.explain(alone[i]).raw for intent, cf in explainers.items()}
        one |= {who: lambda i, f=f: f(old[i]) for who, f in peers(name, model, x, y, read, asked).items()}
    first, early = np.unique(asked.predict(old), return_index=True)[1].tolist(), {} # a row of each class
    for who, f in list(one.items()):
        try: early[who] = sum(timed(lambda: f(i))[1] for i in first)
        except Exception as e: print(f'{name}, {who}: {str(e)[:150]}', flush=True); del one[who]
    told = {who: [] for who in one}
    for i in range(len(some)):
        for who, f in one.items(): told[who].append(timed(lambda: answered(f, i)))
    for who, calls in told.items():
        got = [(old[i], v if isinstance(v, np.ndarray) else read(v)[0]) for i, (v, _) in enumerate(calls) if v is not None]
        other = np.array([asked.predict(new[None])[0] != asked.predict(was[None])[0] for was, new in got])
        ms = 1e3*np.array([t for _, t in calls])
        batch = 1e3*timed(lambda: explainers[who].explain(some))[1]/len(some) if who in explainers else np.nan
        changed = np.mean([(~np.isclose(was, new)).sum() for was, new in got])
        yield dict(model=name, method=who, rows=len(some), found=np.nan if who == 'reasons' else other.sum()/len(some), columns=changed, first=1e3*early[who],
                   single=np.median(ms), mean=ms.mean(), high=np.quantile(ms, .9), batch=batch)


def main():
    a = options(__doc__, ['more'], needs_data=True, rows=24, peers=Path, only=MODELS, out=RESULTS/'one_row.csv')
    kept = pd.read_csv(a.out) if a.out.exists() else pd.DataFrame(columns=['model', 'method'])
    with tempfile.TemporaryDirectory() as d:
        install(a.peers or Path(d), ['NICEx==0.2.3', 'dice-ml==0.12', 'raiutils', 'treecf==0.3.2'])
        for name in a.only:
            new = pd.DataFrame(lines(name, a.rows, a.more))
            print(new.round(2).to_string(index=False), flush=True)
            kept = pd.concat([kept[(kept.model != name) | ~kept.method.isin(new.method)], new], ignore_index=True)
            with atomic(a.out) as tmp: kept.sort_values('model', key=lambda c: c.map(MODELS.index), kind='stable').round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
