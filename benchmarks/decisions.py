"""Whose decision: what is read of each estimator, what is asked, and who decides.

    python benchmarks/decisions.py              # all of them, about five minutes of processor time
    python benchmarks/decisions.py SVC cut      # those whose name has one of these in it; nothing is written

Every classifier and regressor of scikit-learn's `all_estimators`, and what may stand around one: cut-offs, searches,
votes, stacks; and the classifiers of XGBoost, LightGBM and CatBoost where they are installed. A classifier is fitted on
300 mixed rows with 2, 3 and 5 classes of unequal size. `usual` is the share of 2,000 other rows that the highest
probability (or decision value) gives to another class than the model's own `predict`; `ours` the same of the reading
that `fit` chose. `read` says what is known of its inside, and `asked` what is asked of it.
Writes results/decisions.csv.
"""
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import all_estimators

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'tests'))
from decides import COUNTS, every, kinds, table  # noqa: E402

from gradual_cf.data.tables import tabular  # noqa: E402
from gradual_cf.gradual import GradualCF  # noqa: E402
from gradual_cf.models.decisions import by_votes, of_labels, with_mixtures  # noqa: E402
from gradual_cf.search.boxes import _grid_of  # noqa: E402
from gradual_cf.search.readings import _readings  # noqa: E402

CLASSES, TESTED = (2, 3, 5), 2000
NAMES = {'proba': 'probabilities', 'decision': 'decision values', 'logit': 'logits', 'number': 'numbers'}


def boosters():
    "Classifiers of the three libraries, with what they can be told about deciding."
    out = {}
    try:
        from xgboost import XGBClassifier
        out |= {'XGBoost': XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1), 'XGBoost, missing=-1': XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1, missing=-1.)}
    except ImportError: pass
    try:
        from lightgbm import LGBMClassifier
        out |= {'LightGBM': LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)}
    except ImportError: pass
    try:
        from catboost import CatBoostClassifier
        quiet = dict(iterations=10, verbose=0, thread_count=1, allow_writing_files=False)
        out |= {'CatBoost': CatBoostClassifier(**quiet), 'CatBoost, cut .8': CatBoostClassifier(**quiet)}
    except ImportError: pass
    return out


def regressors():
    "Regressors of scikit-learn that are made without another one."
    out = {}
    for name, cls in all_estimators('regressor'):
        try: out[name] = cls()
        except TypeError: continue  # needs another estimator
        if 'n_estimators' in out[name].get_params(): out[name].set_params(n_estimators=8)
        if name == 'MLPRegressor': out[name].set_params(hidden_layer_sizes=(4,))
    return out


def asked_how(p):
    "What is asked of a model."
    if p.over: return f'{NAMES[p.kind]}, and predict over them'
    made = getattr(p.ask, 'func', None)
    return 'votes of pairs' if made is by_votes else 'labels' if made is of_labels else NAMES[p.kind]


def decider(p):
    "Who decides."
    if p.kind == 'number': return 'the number'
    if p.over or getattr(p.ask, 'func', None) is of_labels: return 'predict'
    if getattr(p.ask, 'func', None) is by_votes: return 'most votes'
    if p.threshold != .5: return f'the cut-off, {p.threshold:.3g} of the second class'
    return {'proba': 'highest probability', 'decision': 'highest decision value'}.get(p.kind, 'highest logit')


def usual(model, frame):
    "What is decided by the highest probability, or decision value where there is none; None for labels alone."
    for method in ('predict_proba', 'decision_function'):
        if not hasattr(model, method): continue
        v = np.asarray(getattr(model, method)(frame))
        if v.ndim == 1: v = np.stack([-v, v], 1)
        return model.classes_[v.argmax(1)] if v.shape[1] == len(model.classes_) else v.argmax(1)
    return None


def line(kind, name, model, k):
    "One line of the table."
    X, y = table(k or 2, n=300)
    if name in COUNTS: X = (X - X.min()).round()
    if kind == 'regressor': y = X.a + X.b*X.c + .5*X.d + (6. if name in ('GammaRegressor', 'PoissonRegressor', 'TweedieRegressor') else 0.)
    if name in ('GammaRegressor', 'PoissonRegressor', 'TweedieRegressor'): y = np.maximum(y, .1)
    known = dict(kind=kind, model=name, classes=k or '')
    try:
        model = (clone(model) if not name.startswith('CatBoost') else model.copy()).fit(X, y)
        if name == 'CatBoost, cut .8': model.set_probability_threshold(.8)
    except Exception: return None  # it is not for such rows
    try:
        cf = GradualCF(model, tabular(X), 'sparse').fit(X)
        readings = _readings(cf, _grid_of(cf.domain.features))
    except ValueError as e: return known | dict(read='', asked='', decides=f'refused: {e}'[:90])
    p = cf.model.predictor
    known |= dict(read=readings[0].of if readings else 'nothing', asked=asked_how(p), decides=decider(p))
    if kind == 'regressor': return known
    mixed, (other, _) = with_mixtures(X).tail(TESTED//2), table(k, seed=1, n=TESTED//2)
    new = mixed if name in COUNTS else pd.concat([mixed, other], ignore_index=True)
    said, plain = np.asarray(model.predict(new)).ravel(), usual(model, new)
    ours = np.asarray(p.classes)[cf.logits(new, cf.encode(new).x).argmax(1).numpy()]
    return known | dict(usual=np.nan if plain is None else np.mean(plain != said), ours=np.mean(ours != said))


def main(which):
    warnings.simplefilter('ignore')  # what models say while they are fitted
    jobs = [('classifier', name, m, k) for name, m in (every() | kinds() | boosters()).items() for k in CLASSES] + [('regressor', name, m, None) for name, m in regressors().items()]
    lines = []
    for kind, name, model, k in jobs:
        if which and not any(w in name for w in which) or k and k > 2 and ('cut' in name or 'tuned' in name): continue
        told = line(kind, name, model, k)
        if told is None: continue
        lines.append(told)
        print(*told.values(), sep=' | ', flush=True)
    frame = pd.DataFrame(lines)
    if not which: frame.to_csv(ROOT/'benchmarks'/'results'/'decisions.csv', index=False, float_format='%.4f')
    print(f'{len(frame)} lines, ours is off in at most {frame.ours.max():.4f} of the rows, the usual reading in up to {frame.usual.max():.4f}')


if __name__ == '__main__': main(sys.argv[1:])
