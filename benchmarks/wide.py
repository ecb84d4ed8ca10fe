"""Memory and time of wide tables: a category of many levels, or many columns; each question in a process of its own.

    OMP_NUM_THREADS=1 python benchmarks/wide.py [--rows 200] [--out benchmarks/results/wide.csv]

`peak` is the largest resident size of the whole process in GiB, `loaded` what it had before the explainer was made:
Python, torch, pandas and the table. Seconds are of the processor, for the explanation alone. The last lines say
how the time grows with levels and with columns. The networks are made by hand, since training takes memory, too; the
fitted pipelines are of scikit-learn, and answers of them are proven within the usual budget (`optimal` counts those).
Where there are many columns, the first of them count for most, and the models read the table as it is.
"""
import multiprocessing
import resource
import time
import warnings

import numpy as np
import pandas as pd
import torch
from options import RESULTS, options

from gradual_cf.all import PLAUSIBLE, GradualCF, tabular
from gradual_cf.core import atomic

TRAINING = 7000
FITTED = ['logistic', 'perceptron', 'forest', 'boosting']
QUESTIONS = [('network', preset, levels, 3) for preset in ('sparse', 'believable') for levels in (100, 1000)]
QUESTIONS += [(model, 'sparse', levels, 3) for model in FITTED for levels in (100, 1000)]
QUESTIONS += [(model, 'sparse', 0, columns) for model in ('network', 'logistic', 'lightgbm', 'forest') for columns in (100, 300)]
QUESTIONS += [('network', 'believable', 0, 300)]


def table(levels, columns, rng):
    "Numbers, and where there are levels, a category that has each of them as often."
    df = pd.DataFrame(rng.normal(size=(TRAINING, columns)).round(3), columns=[f'c{i}' for i in range(columns)])
    if levels: df['city'] = pd.Categorical([f'city {i}' for i in rng.permutation(TRAINING) % levels])
    return df


def network(domain, df, columns, rng):
    "Two hidden units for and against the score of the first columns, and an effect of each level."
    width, few = domain.encode(df.head(1)).x.shape[1], min(columns, 20)
    weight = np.r_[[c.span for c in domain.features[:few]], np.zeros(columns - few), rng.normal(0, 1, width - columns)]
    net = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    with torch.no_grad():
        net[0].weight.copy_(torch.as_tensor(weight)*torch.linspace(.01, .1, 64)[:, None])
        score = torch.cat([domain.encode(df[i:i + 500]).x.float() @ net[0].weight.T for i in range(0, len(df), 500)])
        net[0].bias.copy_(-score.mean(0))
        net[2].weight.copy_(torch.tensor([-1., 1.])[:, None].expand(2, 64))
        net[2].bias.zero_()
    return net


def of_numbers(kind, df, rng):
    "A model that learnt from many numbers, of which each counts for less than the one before it."
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    effects = rng.normal(size=df.shape[1])*np.exp(-np.arange(df.shape[1])/20)
    models = dict(logistic=LogisticRegression(max_iter=500), lightgbm=LGBMClassifier(n_jobs=1, random_state=0, verbose=-1),
                  forest=RandomForestClassifier(50, max_depth=8, n_jobs=1, random_state=0))
    return models[kind].fit(df, (df @ effects + .5*rng.normal(size=len(df)) > 0).astype(int))


def fitted(kind, df, rng):
    "A pipeline that learnt from the numbers and from an effect of each level."
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
    score = df.c0 - df.c1 + rng.normal(size=df.city.nunique())[df.city.cat.codes] + rng.normal(size=len(df))
    coder = OneHotEncoder() if kind in ('logistic', 'perceptron') else OrdinalEncoder()
    last = dict(logistic=LogisticRegression(max_iter=500), perceptron=MLPClassifier((16,), max_iter=8, random_state=0),
                forest=RandomForestClassifier(20, random_state=0), boosting=HistGradientBoostingClassifier(max_iter=30, random_state=0))[kind]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # few rounds are enough here
        return make_pipeline(make_column_transformer((coder, ['city']), remainder='passthrough'), last).fit(df, (score > 0).astype(int))


def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/2**20


def asked(model, preset, levels, columns, rows, out):
    "Ask one question and say what it took."
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    df = table(levels, columns, rng)
    domain = tabular(df)
    made = fitted if levels else of_numbers
    net = network(domain, df, columns, rng) if model == 'network' else made(model, df, rng)
    loaded = peak()
    cf = GradualCF(net, domain, PLAUSIBLE if preset == 'believable' else 'sparse').fit(df)
    some = df[(cf.z_train.argmax(1) == 0).numpy()].head(rows)
    start = time.process_time()
    answers = cf.explain(some, 1)
    seconds = time.process_time() - start
    proven = [words == 'optimal' for words in answers.proof or ['']*len(some)]
    out.put(dict(model=model, settings=preset, levels=levels, columns=columns, rows=len(some), valid=float(answers.valid.mean()),
                 optimal=float(np.mean(proven)), loaded=loaded, peak=peak(), seconds=seconds))


def main():
    a = options(__doc__, rows=200, out=RESULTS/'wide.csv')
    fresh, lines = multiprocessing.get_context('spawn'), []
    for question in QUESTIONS:
        told = fresh.Queue()
        p = fresh.Process(target=asked, args=(*question, a.rows, told))
        p.start()
        lines.append(told.get())
        p.join()
        print('  '.join(f'{k} {v:.2f}' if isinstance(v, float) else f'{k} {v}' for k, v in lines[-1].items()), flush=True)
        with atomic(a.out) as tmp: pd.DataFrame(lines).round(3).to_csv(tmp, index=False)
    table_ = pd.DataFrame(lines)
    for (model, preset), of in table_[table_.levels > 0].groupby(['model', 'settings'], sort=False):
        print(f'{model}, {preset}: time grows by {of.seconds.iloc[1]/of.seconds.iloc[0]:.1f} from 100 levels to 1,000')
    for model,of in table_[(table_.levels == 0) & (table_.settings == 'sparse')].groupby('model', sort=False):
        print(f'{model}: time grows by {of.seconds.iloc[1]/of.seconds.iloc[0]:.1f} from 100 columns to 300')


if __name__ == '__main__': main()
