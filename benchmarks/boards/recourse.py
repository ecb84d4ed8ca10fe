"""Our answers beside other methods, by the data, models, factuals and evaluation of RecourseBench (charmlab/recourse_bench).

    OMP_NUM_THREADS=1 python -m benchmarks.boards.recourse FOLDER [--rows 30] [--data adult compas german] [--models linear mlp]

FOLDER holds their package `recourse_bench`; nothing is downloaded. `entries` registers a method for each of our intents there. Settings are those of
`benchmark/configs`. A line of `results/boards_recourse.csv` is a method about the factuals of a data set and a model, in their metrics; lines that are
there are not asked again. Ours: `legal` (share of factuals answered validly and legally: one-hot, range, direction), `whole` (and whole numbers stay
whole), `none` (share that has no legal answer, as is proven), `redundancy` (changed columns that may go back). `*`: a rival is better.
"""
import argparse
import importlib
import logging
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import yaml

from gradual_cf.all import GradualCF, from_frames, measures, predictor, tabular
from gradual_cf.core import atomic

OURS, RIVALS = ('gradual_sparse', 'gradual_robust', 'gradual_plausible'), ('gs', 'wachter', 'dice', 'face', 'cchvae')
LESS = 'distance_l0', 'distance_l1', 'distance_l2', 'distance_linf', 'knn_5', 'runtime_seconds', 'redundancy' # Columns where less is better
WAYS = dict(increase_only=('increase', 'same-or-increase'), decrease_only=('decrease', 'same-or-decrease'))


def described(data, **more):
    "Rows of their `DatasetObject` as a domain: groups of 0/1 columns, and what may change which way."
    X, part = data.get(target=False), 'encoded' if hasattr(data, 'encoded_feature_type') else 'raw'
    groups = {name: list(of) for name, of in getattr(data, 'encoding', {}).items() if len(of) > 1}
    whole = {c: name for name, of in groups.items() for c in of}
    may, way = (data.attr(f'{part}_feature_{what}') for what in ('mutability', 'actionability'))
    fixed = [c for c in X if not may[c] or way[c] in ('none', 'same')]
    told = dict(immutable=fixed, **{name: [c for c in X if c not in fixed and way[c] in said] for name, said in WAYS.items()})
    free = {whole.get(c, c): 'free' for c in X if c not in fixed}  # who somebody is may change where their rules say so
    return tabular(X, categorical=groups, roles=free, **{name: list({whole.get(c, c): 0 for c in of}) for name, of in told.items()}, **more)


def entries(bench):
    "Register one method for each intent in the package `bench`."
    class Gradual(bench.MethodObject):
        intent, more = '', {} # What `tabular` is told besides
        def __init__(self, target_model, seed=None, device='cpu', desired_class=None, **kwargs):
            self._target_model, self._seed, self._device, self._desired_class, self._need_grad = target_model, seed, device, desired_class, False
        def fit(self, train_set):
            domain, network = described(train_set, **self.more), getattr(self._target_model, '_model', None)
            asked = lambda rows: self._target_model.get_prediction(rows, proba=True).numpy()
            ask = predictor(network, domain, scaled=False) if isinstance(network, torch.nn.Module) else predictor(asked, domain)
            self.cf, self._is_trained, self.none = GradualCF(ask, domain, self.intent).fit(train_set.get(target=False)), True, 0
        def get_counterfactuals(self, factuals):
            wanted = self._desired_class
            found = self.cf.explain(factuals, None if wanted is None else int(self._target_model.get_class_to_index()[wanted]))
            self.none += sum(said == 'none exists' and not there for said, there in zip(found.proof, found.valid))
            return found.raw.astype(float).where(pd.Series(found.valid, factuals.index), np.nan)

    for name in OURS: bench.register(name)(type(name, (Gradual,), dict(intent=name.removeprefix('gradual_'))))


def settings(bench, kind, name): return yaml.safe_load((Path(bench.__path__[0])/f'benchmark/configs/{kind}/{name}.yaml').read_text())
def made(bench, kind, told, **more): return bench.get_registry(kind)[told['name']](**{k: v for k, v in told.items() if k != 'name'}, **more)


def cell(bench, data, model, rows):
    "Training rows, factuals, the trained model, its accuracy and the class that is wanted, as their benchmark makes them."
    told = settings(bench, 'datasets', data)
    sets = [made(bench, 'dataset', told['dataset'])]
    for step in (*told['preprocess'], dict(name='finalize')):
        step = made(bench, 'preprocess', step)
        sets = [one for new in map(step.transform, sets) for one in (new if isinstance(new, tuple) else (new,))]
    (train, test), model = sets, made(bench, 'model', settings(bench, 'models', model)['model'] | dict(device='cpu'))
    model.fit(train)
    right = model.predict(test, 512).argmax(1).numpy() == test.get(target=True).iloc[:, 0].map(model.get_class_to_index()).to_numpy()
    wanted = settings(bench, '.', 'base')['benchmark'] | told['benchmark'] | dict(sample_target=rows)
    factuals, _ = importlib.import_module(f'{bench.__name__}.benchmark.run')._sample_factuals(test, model, wanted)
    return train, factuals, model, right.mean(), wanted['desired_class']


def kept_whole(train, rows):
    "Whether the numbers of a row are whole, scaled back, where those of all training rows are."
    raw = lambda of, c, low, high: of[c].to_numpy()*(high - low) + low
    ends = {c: (told['min'], told['max']) for c, told in train.attr('scaling_stats').items() if told['mode'] == 'normalize'}
    off = {c: [np.abs((v := raw(of, c, *end)) - v.round()) > 1e-3 for of in (train.get(), rows)] for c, end in ends.items()}
    return ~np.any([new for old, new in off.values() if not old.any()] or [np.zeros(len(rows), bool)], axis=0)


def judged(bench, name, train, factuals, model, wanted, judge):
    "What their evaluation says of a method, and what `judge`, one of our explainers, adds."
    told = dict(name=name, seed=0) if name in OURS else settings(bench, 'methods', name)['method']
    method = made(bench, 'method', told | dict(device='cpu', desired_class=wanted), target_model=model)
    method.fit(train)
    answers = method.predict(factuals)
    steps = [*settings(bench, '.', 'base')['evaluation'], dict(name='ynn'), dict(name='runtime')]
    steps = [made(bench, 'evaluation', step | (dict(ref_set=train) if step['name'] == 'knn' else {})) for step in steps]
    x, xp = (rows.get(target=False) for rows in (factuals, answers))
    n, there = len(x), xp.notna().all(axis=1)
    line = pd.concat([step.evaluate(factuals, answers) for step in steps], axis=1).iloc[0].to_dict() | dict(none=getattr(method, 'none', np.nan)/n)
    if not there.any(): return line | dict(legal=0., whole=0.)
    ours = from_frames(judge, x[there], xp[there], int(model.get_class_to_index()[wanted]))
    fine, redundancy = ours.legal & ours.valid, measures(judge, ours, eps=()).set_index('metric')['mean']['redundancy']
    return line | dict(legal=fine.sum()/n, whole=(fine & kept_whole(train, xp[there])).sum()/n, redundancy=redundancy)


def table(lines):
    "Lines as text, `*` where a rival is better than ours."
    out, ours = lines.round(3).astype(object), lines['method'].isin(OURS)
    for c in LESS:
        best = lines[c].where(~ours).groupby([lines.data, lines.model]).transform('min')
        for i in lines.index[ours & (lines[c] > best + 5e-4)]: out.loc[i, c] = f'{lines.loc[i, c]:.3f}*'
    return out.fillna('').to_string(index=False)


if __name__ == '__main__':
    options = argparse.ArgumentParser()
    options.add_argument('folder')
    options.add_argument('--rows', type=int, default=30)
    for name, known in dict(data=['adult', 'compas', 'german'], models=['linear', 'mlp'], methods=[*OURS, *RIVALS]).items():
        options.add_argument(f'--{name}', nargs='+', default=known)
    options.add_argument('--out', default='benchmarks/results/boards_recourse.csv')
    o = options.parse_args()
    sys.path.insert(0, o.folder)
    logging.disable(logging.INFO)
    entries(bench := importlib.import_module('recourse_bench'))
    lines = pd.read_csv(o.out).to_dict('records') if Path(o.out).exists() else []
    for data, name in ((data, name) for data in o.data for name in o.models):
        there = {(line['data'], line['model'], line['method'], line['rows']) for line in lines}
        if not (todo := [method for method in o.methods if (data, name, method, o.rows) not in there]): continue
        train, factuals, model, accuracy, wanted = cell(bench, data, name, o.rows)
        judge = made(bench, 'method', dict(name=OURS[0]), target_model=model)
        judge.more = dict(read=dict(step={})) # whole numbers are counted apart
        judge.fit(train)
        for method in todo:
            line = dict(data=data, model=name, method=method, rows=o.rows, factuals=len(factuals), accuracy=accuracy)
            try: line |= judged(bench, method, train, factuals, model, wanted, judge.cf)
            except Exception as e: line |= dict(error=f'{type(e).__name__}: {e}'[:120])
            lines.append(line)
            with atomic(o.out) as out: pd.DataFrame(lines).round(4).to_csv(out, index=False)
    print(table(pd.DataFrame(lines)))
