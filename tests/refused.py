"""Refusals in tables: a row is (name, call, words of the message, kind of error). And what calls need, small, made once a process."""
import inspect
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
import toy
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

from gradual_cf.all import GradualCF, corpus_vectors, images, load_toy_reviews, sentences, series, tabular, tabular_mlp

SAID = ('must', 'need', 'takes')  # what a message says that was expected


def housed(**told):
    "Arguments of `letter` and `check_evidence`; what a house says in all its letters is in `house`."
    own = {k: told.pop(k) for k in ('path', 'format', 'language', 'date', 'addressee', 'rows', 'records') if k in told}
    return own | dict(house=told)


def each(values, call, words, name=''):
    "A row for each value, of which the words speak as `{v}`."
    return [(f'{name}{v!r:.40}', lambda v=v: call(v), words.replace('{v}', repr(v))) for v in values]


def called(told):
    "What was told, as a name that is the same in every process."
    return re.sub(r' at 0x\w+', '', ', '.join(f'{k}={v!r}' for k, v in told.items()))[:90]


def table(*rows):
    "Marks a test with the rows of a table; a name that comes again is counted."
    names = [row[0] for row in rows]
    return pytest.mark.parametrize('row', rows, ids=[n if n not in names[:i] else f'{n} ({names[:i].count(n) + 1})' for i, n in enumerate(names)])


def stands(words, said):
    "Whether words stand in a message, with anything where ` … ` is; `||` lies between messages of which one is enough."
    return any(re.search('.*'.join(map(re.escape, one.split(' … '))), said, re.S) for one in words.split(' || '))


def refuses(row, folder):
    "The call is refused in these words; no shared frame is written into, and no folder `out` is begun."
    _, call, words, kind = (*row, ValueError)[:4]
    before = {f: f().copy() for f in (X, N)}
    with torch.random.fork_rng(), pytest.raises(kind) as e:
        torch.manual_seed(3)  # of networks and rows that the call draws, none of which all answer within (0, 1)
        call(*[folder]*len([p for p in inspect.signature(call).parameters.values() if p.default is p.empty]))
    said = str(e.value)
    assert stands(words, said) and len(said) < 1000, said
    assert kind is not ValueError or any(word in said for word in SAID), said
    assert not (folder/'out').exists()
    for f, frame in before.items(): pd.testing.assert_frame_equal(f(), frame)


# A table: a network, and models of libraries
@cache
def X():
    "Rows of every common kind of column."
    r = np.random.default_rng(0)
    return pd.DataFrame({'age': r.integers(18, 90, 90), 'income': r.gamma(2., 9., 90).round(2), 'debt': r.exponential(5, 90).round(2),
        'late': r.choice([-9, -8, 0, 1, 2, 5, 9], 90),
                         'job': pd.Categorical(r.choice(['clerk', 'nurse', 'pilot'], 90)), 'owner': r.random(90) < .5},
                             index=[f'id{i}' for i in range(90)])


@cache
def N(): return X()[['age', 'income', 'debt']]


@cache
def domain(): return tabular(X())


def fresh(k=2):
    "An untrained network that predicts all of its classes."
    x = domain().encode(X()).x.float()
    return toy.sharpen(tabular_mlp(x.shape[1], k, seed=0), x)


@cache
def cf(**told): return GradualCF(fresh(), domain(), 'sparse', **told).fit(X())


@cache
def grades(): return GradualCF(fresh(3), domain(), 'sparse').fit(X())


@cache
def answers(): return cf().explain(X().iloc[:3])


MAKES = dict(line=lambda: LogisticRegression(max_iter=2000), number=LinearRegression, svc=SVC,
    forest=lambda: RandomForestClassifier(5, random_state=0),
             folded=lambda: make_pipeline(StandardScaler(), MLPClassifier((7,), 'identity', max_iter=60, solver='lbfgs', random_state=0)),
             hist=lambda: HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5))


LABELS = dict(zero=(0, 1), text=('refused', 'granted'), signs=(-1, 1), from_one=(1, 2), booleans=(False, True), decimals=(0., 1.),
    digits=(3, 5, 8, 9))


@cache
def model(kind='line', labels='zero'):
    "A fitted model of a library; the higher the score of a row, the later its label stands."
    score = N().income - N().debt + N().age/20
    rank = np.argsort(np.argsort(score.to_numpy()))*len(LABELS[labels])//len(N())
    return MAKES[kind]().fit(N(), score if kind == 'number' else np.array(LABELS[labels])[rank])


@cache
def own(kind='line', labels='zero', /, **told): return GradualCF(model(kind, labels), tabular(N()), 'sparse', **told).fit(N())


@cache
def of_table(kind='hist', /, **told):
    "An explainer of a model, of which the table was told more."
    return GradualCF(model(kind), tabular(N(), **{k: dict(v) if k in ('cost', 'bounds') else list(v) for k, v in told.items()}), 'sparse').fit(N())


@cache
def plain(): return toy.columns()


@cache
def bare():
    "An explainer of inputs of which nothing is known, with a domain written by hand."
    return GradualCF(plain().model, plain().domain, 'sparse').fit(plain().x)


class Wrapped(nn.Module):
    "A model with something done to its logits."
    def __init__(self, net, f): super().__init__(); self.net, self.f = net, f
    def forward(self, x): return self.f(self.net(x))


# Images, series, texts
@cache
def pictures(channels=1):
    "Images of 9×10 pixels, and an untrained network that predicts all of three classes."
    g = torch.Generator().manual_seed(5)
    x = (torch.rand(60, channels, 9, 10, generator=g)*255).to(torch.uint8)
    net = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4*7*8, 3))
    with torch.no_grad():
        for p in net.parameters(): p.copy_(torch.randn(p.shape, generator=g)/4)
    return toy.sharpen(net, x/255), x


@cache
def picture(): return GradualCF(pictures()[0], images(block=3), 'sparse', sigma=1).fit(pictures()[1])


@cache
def wave(): return GradualCF(toy.Level(), series(toy.waves(), ['ecg', 'pulse'], fs=100), 'sparse').fit(toy.waves())


@cache
def reviews():
    "Texts, and vectors of their words."
    texts = load_toy_reviews(120, 20)[0]['text']
    return texts, corpus_vectors(texts, 32)


@cache
def reader():
    texts, vectors = reviews()
    return GradualCF(lambda x: torch.stack([x.sum((1, 2)), -x.sum((1, 2))], 1), sentences(vectors, length=32, reads=None), 'sparse').fit(texts[:40])
