"""Counterfactuals of time series on four sets, beside two methods of the field: what they change, and who believes it.

    python benchmarks/series.py [ROWS]         # needs aeon (the extra `series`), whose wheel holds three of the sets
    python benchmarks/series.py --others [ROWS]   # models without a gradient: a forest on features, and rockets
    pip install --no-deps tscf-eval tslearn   # CoMTE and Native Guide; without them their lines are left out

Networks: the package's convolutional one, judged by a residual one of another seed; `agree_real` is the share of real
test rows on which both agree, beyond which no judge can be expected to go. Ours as it comes, with less of a
margin (it aims at .9 instead of .95), with none (the decision alone), with a stricter bar on outliers, and with none. The peers as their authors' defaults have them: CoMTE swaps whole
series, Native Guide blends with a neighbour, or (`Native Guide, window`) grows a window of it until the class changes.
They are given training series of the target and of the class that the row has, so that they can only go there.
The default was chosen on training rows, with networks of other seeds. LOF and isolation are fitted on two thirds of the
test rows that are not explained, by their true labels; `real_lof` is the inlier share of the other third. `seconds` are
those of the processor, with one thread.

The others are one table, `series_others.csv`: a forest on 24 features (mean, spread and rise of eight stretches), MiniRocket as
aeon has it, which only decides, the same under a logistic regression, which has probabilities, and Rocket. Their judge is the
forest for rockets, and MiniRocket for the forest. aeon compiles its kernels when they are first used, which takes longer than
all that follows, and keeps them in its folder; `fit` and `seconds` are those of the processor afterwards.
"""
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.data.datasets import RECIPES, load_cbf
from gradual_cf.data.series import dtw, series
from gradual_cf.gradual import GradualCF
from gradual_cf.measures.metrics import judged, outliers
from gradual_cf.models.asking import predict
from gradual_cf.models.networks import accuracy, series_cnn, series_resnet, train
from gradual_cf.search.segments import composed, pasted
from gradual_cf.data.series import n_segments

OUT = Path(__file__).resolve().parent/'results/series.csv'
SETS = dict(GunPoint='load_gunpoint', ItalyPowerDemand='load_italy_power_demand', ArrowHead='load_arrow_head')
STRICT = {'ours': (1.5, .9), 'ours, tau_slack=.8': (1.5, .8), 'ours, tau_slack=0': (1.5, 0.),
          'ours, outlier=1.2': (1.2, .9), 'ours, outlier=inf': (float('inf'), .9)}
PEERS = {'CoMTE': dict(distance='euclidean'), 'Native Guide': dict(method='blend'),
         'Native Guide, window': dict(method='ng', distance='euclidean')}


def rows_of(name):
    "Training series `(n, length)`, labels, test series, labels."
    if name == 'CBF': return load_cbf()
    from aeon import datasets
    load = getattr(datasets, SETS[name])
    (X, y), (X_test, y_test) = load('train'), load('test')
    names = np.unique(y)
    return X[:, 0], np.searchsorted(names, y), X_test[:, 0], np.searchsorted(names, y_test)


def networks(x, y, k, seed):
    "The network and its judge."
    fit = RECIPES['cbf'].fit
    return tuple(train(build(1, k, seed=s), x, y, seed=s, **fit) for build, s in ((series_cnn, seed), (series_resnet, seed + 1000)))


def one_hot(y, k): return torch.nn.functional.one_hot(torch.as_tensor(y), k).float()


def believable(xp, target, held, y, k):
    "Inlier shares of answers, and of real rows, by two judges."
    order = np.random.default_rng(0).permutation(len(held))
    fit, real = order[len(order)//3:], order[:len(order)//3]
    there = outliers(xp, target, held[fit], one_hot(y[fit], k))
    own = outliers(held[real], torch.as_tensor(y[real]), held[fit], one_hot(y[fit], k))
    share = lambda out: 1 - out.double().mean().item()
    return dict(lof=share(there['lof']), real_lof=share(own['lof']), isolation=share(there['isolation']), real_isolation=share(own['isolation']))


class Asked:
    "A network as the peers ask it."
    def __init__(self, net, k): self.net, self.classes_ = net, np.arange(k)
    def predict_proba(self, X):
        x = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        return predict(self.net, x.reshape(len(x), 1, -1)).softmax(1).double().numpy()
    def predict(self, X): return self.predict_proba(X).argmax(1)


def theirs(name, net, X, x, target, k):
    "What a peer answers, `(n, 1, length)`."
    from tscf_eval.counterfactuals import COMTE, NativeGuide
    model, out = Asked(net, k), []
    said = model.predict(X)
    for row, now, t in zip(x, model.predict(x), target):
        some = np.isin(said, [now, t])
        make = COMTE if name == 'CoMTE' else NativeGuide
        peer = make(model, (X[some].astype(float), said[some]), **PEERS[name])
        asked = dict(class_of_interest=int(t)) if name == 'CoMTE' else {}
        out.append(np.asarray(peer.explain(row[0].double().numpy(), int(now), **asked)[0]).reshape(1, -1))
    return torch.tensor(np.stack(out), dtype=torch.float32)


def measured(net, judge, x, xp, target):
    "What is measured of answers of any method."
    far, p = xp - x, predict(net, xp).softmax(1)
    own = p.gather(1, target[:, None])[:, 0]
    return dict(valid=(p.argmax(1) == target).double().mean().item(), sure=(own >= .95).double().mean().item(),
                share=(far != 0).double().mean().item(), segments=n_segments(x, xp).double().mean().item(),
                most_segments=n_segments(x, xp).max().item(), l1=far.abs().mean().item(), dtw=dtw(x, xp).mean(),
                judge=judged(judge, xp, target).double().mean().item())


def lines_of(name, rows, seed, nets=networks):
    "One set, one seed, every method."
    X, y, X_test, y_test = rows_of(name)
    domain, k, rng = series(X), int(y.max()) + 1, np.random.default_rng(seed)
    net, judge = nets(domain.encode(X).x, y, k, seed)
    x = domain.encode(X_test).x
    order = rng.permutation(len(X_test))
    some, rest = order[:rows], order[rows:]
    target = (predict(net, x[some]).argmax(1) + torch.as_tensor(rng.integers(1, k, rows))) % k
    both = [predict(m, x).argmax(1) for m in (net, judge)]
    known = dict(data=name, seed=seed, rows=rows, length=X.shape[1], accuracy=accuracy(net, x, y_test),
                 judge_accuracy=accuracy(judge, x, y_test), agree_real=(both[0] == both[1]).double().mean().item())
    for method in (*STRICT, *PEERS):
        start = time.process_time()
        if method in STRICT:
            outlier, slack = STRICT[method]
            steps = partial(pasted, outlier=outlier), composed
            xp = GradualCF(net, domain, 'sparse', steps=steps, tau_slack=slack).fit(X).explain(X_test[some], target).xp
        else:
            try: xp = theirs(method, net, X, x[some], target.numpy(), k)
            except ImportError: continue
        took = (time.process_time() - start)/rows
        yield dict(method=method, **known, **measured(net, judge, x[some], xp, target),
                   **believable(xp, target, x[rest], y_test[rest], k), seconds=took)


def summed(X):
    "Mean, spread and rise of eight stretches of series `(n, length)`."
    parts = np.array_split(np.asarray(X), 8, 1)
    return np.concatenate([np.stack([p.mean(1), p.std(1), p[:, -1] - p[:, 0]], 1) for p in parts], 1)


def others():
    "Models that have no gradient, by name."
    from aeon.classification.convolution_based import MiniRocketClassifier, RocketClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    soft = lambda: make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=.01, max_iter=1000))
    return {'forest on features': lambda: make_pipeline(FunctionTransformer(summed), RandomForestClassifier(100, random_state=0)),
            'MiniRocket': lambda: MiniRocketClassifier(random_state=0),
            'MiniRocket, logistic': lambda: MiniRocketClassifier(random_state=0, estimator=soft()),
            'Rocket, 200 kernels': lambda: RocketClassifier(n_kernels=200, random_state=0)}


def fitted(make, X, y):
    "A model, and what its fit took."
    start = time.process_time()
    model = make().fit(X, y)
    return model, time.process_time() - start


def lines_of_others(name, rows):
    "One set, every model without a gradient."
    X, y, X_test, y_test = rows_of(name)
    domain, k = series(X), int(y.max()) + 1
    order = np.random.default_rng(0).permutation(len(X_test))
    some, rest = order[:rows], order[rows:]
    x, models = domain.encode(X_test).x, {}
    for model, make in others().items():
        make().fit(X, y) # compiled now, if not before
        models[model] = fitted(make, X, y)
    adapted = {model: GradualCF(m, domain, 'sparse').fit(X).model for model, (m, _) in models.items()}
    for model, (fit, took) in models.items():
        judge = adapted['MiniRocket' if model == 'forest on features' else 'forest on features']
        target = (predict(adapted[model], x[some]).argmax(1) + torch.as_tensor(np.random.default_rng(1).integers(1, k, rows))) % k
        for slack in (.9, 0.):
            cf = GradualCF(fit, domain, 'sparse', tau_slack=slack).fit(X)
            start = time.process_time()
            xp = cf.explain(X_test[some], target.tolist()).xp
            seconds = (time.process_time() - start)/rows
            yield dict(model=model, tau_slack=slack, data=name, rows=rows, accuracy=accuracy(adapted[model], x, y_test),
                       **measured(adapted[model], judge, x[some], xp, target), **believable(xp, target, x[rest], y_test[rest], k),
                       fit=took, seconds=seconds)


def main_others(rows):
    torch.set_num_threads(1)
    lines = []
    for name in ('CBF', 'ItalyPowerDemand', 'GunPoint'):
        lines += lines_of_others(name, rows)
        pd.DataFrame(lines).round(4).to_csv(OUT.with_name('series_others.csv'), index=False)
        print(pd.DataFrame(lines[-2*len(others()):]).round(3).to_string(index=False), flush=True)


def main(rows, nets=networks):
    torch.set_num_threads(1)
    warnings.simplefilter('ignore', UserWarning) # theirs
    lines = []
    for name in (*SETS, 'CBF'):
        for seed in range(3):
            lines += lines_of(name, rows, seed, nets)
            pd.DataFrame(lines).round(4).to_csv(OUT, index=False)
            print(pd.DataFrame(lines[-len(STRICT) - len(PEERS):]).round(3).to_string(index=False), flush=True)
    table = pd.DataFrame(lines).drop(columns=['seed', 'rows', 'length']).groupby(['method', 'data'], sort=False).mean()
    print((table.assign(lof_share=table.lof/table.real_lof)).round(3).to_string())


if __name__ == '__main__':
    told = [int(v) for v in sys.argv[1:] if v != '--others']
    (main_others if '--others' in sys.argv else main)(*told or [24])
