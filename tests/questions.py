"""One generator of small questions and one judge. Every legal row is put to the model's own `predict`; what an answer claims is held against that.

A question is a level of each list of `LISTS`, and a seed. The judge shares no code with the search: legal cells are those that the table was made of.
`python questions.py LOG FIRST COUNT` asks by chance, writes a line each, and goes on where it was stopped.
"""
import itertools
import json
import random
import signal
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pandas as pd
import torch
from cheapest import cheapest
from sklearn import base, calibration, compose, config_context, discriminant_analysis, dummy, ensemble, impute, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm, tree
from torch import nn

from gradual_cf.all import GradualCF, plausible, tabular
from gradual_cf.core import State
from gradual_cf.models.networks import seeded
from gradual_cf.search.boxes import grid_of
from gradual_cf.search.goals import violation_required
from gradual_cf.search.proven import ways
from gradual_cf.search.robust import region
from gradual_cf.search.readings import _readings
from gradual_cf.use.evidence import answer_schema, evidence

FAILS_TODAY:dict = {}  # level, or several that meet -> the fault of today; whoever mends it deletes the line, and the level is asked about
SOAK_ONLY = ['forest', 'boosting', 'extra', 'exponential', 'lightgbm_forest', 'pipe_forest', 'ridge', 'svm', 'network', 'hist_number', 'int8', 'tail', 'nullable', 'float16',
             'leave', 'constant', 'bool', 'unused', 'text', 'one_truth', 'stepped32', 'quarters', 'still', 'one', 'relation', 'standard', 'three by .5', 'columns', 'discriminant', 'bins', 'spline_number', 'folded_bayes', 'bags', 'voting_number', 'leaning_number', 'constant_start', 'bent', 'residual', 'sigmoid', 'straight', 'pairs', 'lopsided', 'wide', 'sinh_number', 'ranks_number', 'scaled_number']  # by chance, at night
SAID = [f'ignore:{words}' for words in ('lbfgs failed to converge', 'n_quantiles', 'plausibility is left out', '`TargetEncoder', 'Missing values detected')]  # while models are fitted
ROWS = 100    # of a table
ASKED = 2     # Rows of it that are asked about
HAIR = 1e-6   # What is so near to a bar may count either way
ROOM = 1e-5   # What a row may lack by rounding
NEAR = 3e-6   # Sizes that differ by less are the same


# ---- tables
class Kind(NamedTuple):
    "A kind of column."
    cells:Any               # Every legal cell, in order
    dtype:Any='int64'
    how:Any={}              # What `tabular` is told
    gone:float=0.           # Share of cells that are missing
    code:Any=None           # A cell that occurs, and that nobody may propose
    between:Any=()          # Cells between the steps of the column, which only training rows have

    @property
    def named(self): return isinstance(self.cells[0], (str, bool)) and not getattr(self.dtype, 'ordered', False)


levels = pd.CategoricalDtype
tenths = [i/10 for i in range(9)]
single,half = (np.array(tenths, kind).tolist() for kind in ('f4', 'f2'))
KINDS = dict(
    whole=Kind(range(8)), int8=Kind(range(-4, 4), 'int8'), tail=Kind(range(25), 'float64', dict(integer=['u'])), tenths=Kind(tenths, 'float64'),
    float32=Kind(single, 'float32'), float16=Kind(half, 'float16'), nullable=Kind(single, 'Float32'),
    holes=Kind(range(6), 'float64', gone=.2), leave=Kind(range(6), 'float64', dict(missing='level'), .2),
    codes=Kind(range(6), how=dict(special=[-9]), code=-9), inner=Kind([0, 1, 2, 3, 4, 5, 7, 8], how=dict(special=[6]), code=6), constant=Kind([3]),
    hundreds=Kind(range(100, 900, 100)), sparse=Kind([0, 50, 100, 130, 150, 200, 250, 260], how=dict(step={'u': 50}), between=[130, 260]),
    tiny=Kind([1e-9, *range(1000, 8000, 1000)], 'float64', dict(step={'u': 1000}), between=[1e-9]),  # as good as 0, and many magnitudes below the others
    wide=Kind([0, 1, 2, 3, 10**9, 2*10**9], how=dict(step={'u': 10**9}), between=[1, 2, 3]),  # few cells, and a range that no list of places holds
    quarters=Kind([*np.arange(7)/4, 1.6], 'float64', dict(step={'u': .25}), between=[1.6]), stepped_code=Kind([0, 5, 10, 12, 15, 20], how=dict(step={'u': 5}, special=[7]), code=7, between=[12]),
    stepped32=Kind(np.array([0, .5, .7, 1, 1.5, 2], 'f4').tolist(), 'float32', dict(step={'u': .5}), between=[single[7]]),
    bool=Kind([False, True], 'bool'), ordered=Kind(list('qpsr'), levels(list('qpsr'), ordered=True)), unused=Kind(list('pqr'), levels(list('pqrst'))),
    gaps=Kind(list('pqr'), levels(list('pqr')), gone=.2), text=Kind(list('pqr'), object),
    one_level=Kind(['p'], levels(['p'])), one_truth=Kind([True], 'bool'))
BESIDE = dict(b=Kind(range(6)), c=Kind(range(-2, 2)), k=Kind(list('xyz'), levels(list('xyz'))))  # the other columns of a table


def drawn(kind, rng, n=ROWS):
    "Positions of cells, each end of which occurs; -1 is the code, -2 a missing cell."
    share = .8**np.arange(len(kind.cells))
    at = np.r_[0, len(kind.cells) - 1, rng.choice(len(kind.cells), n - 2, p=share/share.sum())]
    if kind.code is not None: at[2:] = np.where(rng.random(n - 2) < .15, -1, at[2:])
    return np.r_[at[:2], np.where(rng.random(n - 2) < kind.gone, -2, at[2:])]


def written(kind, at):
    "A column of these cells."
    cells = [*kind.cells, None, kind.code]  # of which -2 is missing
    return pd.Series([cells[i] for i in at], dtype=kind.dtype)


def classes_of(kinds, at, k, rng):
    "Labels that all columns decide, two of them together, and some luck."
    place = {c: np.maximum(at[c], 0)/max(len(kind.cells) - 1, 1) - .5 for c,kind in kinds.items()}
    z = sum(rng.choice([-1, 1])*rng.uniform(.5, 2)*v for v in place.values()) + 2*((place['b'] > 0) & (place['u'] >= 0)) + rng.normal(0, .3, ROWS)
    return np.searchsorted(np.quantile(z, np.arange(1, k)/k), z), z


# ---- models
class Make(NamedTuple):
    "A kind of model."
    of:Any                  # A model, a list of them, a function that makes one, or how large logits of a network are
    named:bool=False        # Whether it reads categories
    missing:bool=False      # Whether it reads missing cells
    before:Any=None         # What stands before it, for numbers
    coder:Any=preprocessing.OrdinalEncoder(encoded_missing_value=-2)  # What stands before it, for categories
    framed:bool=False       # Whether steps hand on frames, and with them categories of pandas


def both_first(v):
    "A feature of two columns, at a pair that is rare."
    v = np.asarray(v, float)
    return np.c_[v, (v[:, 0] == 0) & (v[:, 1] == 0)]


def library(name, make, **how): return lambda: getattr(__import__(name), make)(n_jobs=1, **how)


hist = dict(max_iter=7, max_depth=3, min_samples_leaf=5, categorical_features='from_dtype', random_state=0)
xgb = dict(n_estimators=7, max_depth=3, enable_categorical=True)
lgb = dict(n_estimators=7, num_leaves=6, verbose=-1, min_child_samples=5, min_data_per_group=5)
MLP = dict(hidden_layer_sizes=(7,), max_iter=60, solver='lbfgs', random_state=0)
ONE,SCALE = preprocessing.OneHotEncoder(handle_unknown='ignore'), preprocessing.StandardScaler()
LINE,GROWN = linear_model.LogisticRegression(max_iter=500), ensemble.GradientBoostingClassifier(n_estimators=7, random_state=0)
FOREST = ensemble.RandomForestClassifier(5, max_depth=4, random_state=0)
MODELS = dict(
    tree=Make(tree.DecisionTreeClassifier(random_state=0), missing=True), forest=Make(FOREST, missing=True),
    even_forest=Make(ensemble.RandomForestClassifier(4, max_depth=2, random_state=0), missing=True, coder=ONE),  # which ties all the time
    extra=Make(ensemble.ExtraTreesClassifier(7, max_depth=4, random_state=0)), boosting=Make(GROWN, coder=ONE),
    exponential=Make(ensemble.GradientBoostingClassifier(n_estimators=7, max_depth=2, loss='exponential', random_state=0)),
    hist=Make(ensemble.HistGradientBoostingClassifier(**hist), True, True), xgboost=Make(library('xgboost', 'XGBClassifier', **xgb), True, True),
    sentinel=Make(library('xgboost', 'XGBClassifier', missing=4., **xgb), True, True),  # where 4 is missing
    lightgbm=Make(library('lightgbm', 'LGBMClassifier', **lgb), True, True),
    lightgbm_forest=Make(library('lightgbm', 'LGBMClassifier', boosting_type='rf', bagging_freq=1, bagging_fraction=.6, **lgb), True, True),
    folds=Make(calibration.CalibratedClassifierCV(ensemble.RandomForestClassifier(3, max_depth=3, random_state=0), method='isotonic', cv=2), missing=True),
    logistic=Make(LINE, coder=ONE), ridge=Make(linear_model.RidgeClassifier(), coder=ONE), svm=Make(svm.LinearSVC(), coder=ONE),
    folded=Make(neural_network.MLPClassifier(**MLP, activation='identity'), before=SCALE, coder=ONE), pipe_forest=Make(FOREST, before=SCALE, coder=ONE),
    marked=Make(FOREST, before=impute.SimpleImputer(add_indicator=True), missing=True, coder=ONE),  # a cell that is empty moves a feature that no number moves
    pipe_ranks=Make(GROWN, before=preprocessing.QuantileTransformer(n_quantiles=20), coder=ONE),
    perceptron=Make(neural_network.MLPClassifier(**MLP), before=preprocessing.MinMaxScaler(), coder=ONE), tanh=Make(neural_network.MLPClassifier(**MLP, activation='tanh'), before=SCALE, coder=ONE),
    sigmoid=Make(neural_network.MLPClassifier(**MLP, activation='logistic'), coder=ONE), straight=Make(svm.SVC(kernel='linear'), before=SCALE, coder=ONE), agreeing=Make([LINE, GROWN], coder=ONE),
    asked=Make(svm.SVC(), before=SCALE, coder=ONE), network=Make(1., True, True), bent=Make(2., True, True), residual=Make(3., True, True), whisper=Make(1e-8, True, True),  # how large logits are
    forest_number=Make(ensemble.RandomForestRegressor(5, max_depth=5, random_state=0), missing=True),
    hist_number=Make(ensemble.HistGradientBoostingRegressor(**hist), True, True), linear_number=Make(linear_model.LinearRegression(), coder=ONE),
    bayes=Make(naive_bayes.GaussianNB()), splines=Make(LINE, before=preprocessing.SplineTransformer(4), coder=ONE),
    bins=Make(LINE, before=preprocessing.KBinsDiscretizer(4, strategy='uniform'), coder=ONE), discriminant=Make(discriminant_analysis.LinearDiscriminantAnalysis(), before=preprocessing.SplineTransformer(3)),
    target=Make(LINE, before=SCALE, coder=preprocessing.TargetEncoder(cv=3, random_state=0)), spline_number=Make(linear_model.Ridge(), before=preprocessing.SplineTransformer(4), coder=ONE),
    folded_svm=Make(calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2), before=preprocessing.SplineTransformer(4), coder=ONE),
    folded_bayes=Make(calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), method='isotonic', cv=2)),
    interpret=Make(lambda: __import__('interpret.glassbox').glassbox.ExplainableBoostingClassifier(interactions=0, outer_bags=2, max_rounds=60, n_jobs=1), True, True))
MODELS |= dict(pairs=Make(lambda: __import__('interpret.glassbox').glassbox.ExplainableBoostingClassifier(interactions=3, outer_bags=2, max_rounds=60, n_jobs=1), True, True))
cat = dict(iterations=8, depth=3, verbose=0, allow_writing_files=False, thread_count=1, random_seed=0)
GROWN_DEEP = tree.DecisionTreeClassifier(max_depth=3, random_state=0)
MODELS |= dict(
    votes=Make(ensemble.AdaBoostClassifier(GROWN_DEEP, n_estimators=5, random_state=0)), bags=Make(ensemble.BaggingClassifier(GROWN_DEEP, 5, max_features=.7, random_state=0)),
    voting=Make(ensemble.VotingClassifier([('a', FOREST), ('b', GROWN)], voting='soft', weights=[1, 2])), voting_number=Make(ensemble.VotingRegressor([('a', tree.DecisionTreeRegressor(max_depth=3)), ('b', ensemble.GradientBoostingRegressor(n_estimators=5))])),
    voting_forests=Make(ensemble.VotingClassifier([('a', FOREST), ('b', GROWN_DEEP), ('c', ensemble.ExtraTreesClassifier(4, max_depth=4, random_state=0))], voting='soft', weights=[2, 1, 1])),
    constant_start=Make(ensemble.GradientBoostingClassifier(n_estimators=7, init=dummy.DummyClassifier(), random_state=0)),
    coded=Make(library('xgboost', 'XGBClassifier', n_estimators=7, max_depth=3, missing=2.), missing=True), zeros=Make(library('lightgbm', 'LGBMClassifier', zero_as_missing=True, **lgb), missing=True),
    stack=Make(ensemble.StackingClassifier([('a', FOREST), ('b', GROWN), ('c', GROWN_DEEP)], cv=2)), stack_number=Make(ensemble.StackingRegressor([('a', tree.DecisionTreeRegressor(max_depth=3)), ('b', ensemble.GradientBoostingRegressor(n_estimators=5))], linear_model.Ridge(), cv=2)),
    mixed_vote=Make(ensemble.VotingClassifier([('a', FOREST), ('b', pipeline.make_pipeline(SCALE, LINE)), ('c', naive_bayes.GaussianNB())], voting='soft', weights=[2, 1, 1]), coder=ONE),
    piped_vote=Make(ensemble.VotingClassifier([('a', pipeline.make_pipeline(preprocessing.QuantileTransformer(n_quantiles=20), FOREST)), ('b', LINE), ('c', pipeline.make_pipeline(SCALE, GROWN))], voting='soft'), coder=ONE),
    mixed_stack=Make(ensemble.StackingClassifier([('a', GROWN), ('b', LINE)], cv=2), before=SCALE, coder=ONE),
    line_start=Make(ensemble.GradientBoostingClassifier(n_estimators=7, init=LINE, random_state=0), coder=ONE),
    line_start_number=Make(ensemble.GradientBoostingRegressor(n_estimators=7, init=linear_model.LinearRegression(), random_state=0), before=SCALE, coder=ONE),
    mixed_number=Make(ensemble.StackingRegressor([('a', tree.DecisionTreeRegressor(max_depth=3)), ('b', linear_model.Ridge())], linear_model.RidgeCV(), cv=2), coder=ONE),
    leaning=Make(library('lightgbm', 'LGBMClassifier', linear_tree=True, **lgb), True, True), leaning_number=Make(library('lightgbm', 'LGBMRegressor', linear_tree=True, **lgb), True, True),
    catboost=Make(lambda: __import__('catboost').CatBoostClassifier(**cat), missing=True), lopsided=Make(lambda: __import__('catboost').CatBoostClassifier(grow_policy='Lossguide', **cat), missing=True))
PASSED = Make(None, True, True, SCALE, 'passthrough', True)
MODELS |= dict(
    passed=PASSED._replace(of=library('lightgbm', 'LGBMClassifier', **lgb)), passed_hist=PASSED._replace(of=ensemble.HistGradientBoostingClassifier(**hist)),
    neighbours=Make(FOREST, before=impute.KNNImputer(n_neighbors=3), missing=True, coder=ONE), together=Make(GROWN_DEEP, before=preprocessing.FunctionTransformer(both_first), coder=ONE))
MODELS |= dict(
    sinh_number=Make(compose.TransformedTargetRegressor(ensemble.RandomForestRegressor(5, max_depth=5, random_state=0), func=np.arcsinh, inverse_func=np.sinh), before=SCALE, coder=ONE),
    ranks_number=Make(compose.TransformedTargetRegressor(linear_model.Ridge(), transformer=preprocessing.QuantileTransformer(n_quantiles=20)), coder=ONE),
    scaled_number=Make(compose.TransformedTargetRegressor(ensemble.HistGradientBoostingRegressor(**hist), transformer=preprocessing.MinMaxScaler()), True, True))
ONLY_ASKED = 'asked', 'neighbours', 'together'  # since a step, or the last one, may read several columns
TWO = ['exponential', 'ridge', 'svm', 'straight', 'folds', 'agreeing', 'asked', 'folded_svm', 'folded_bayes', 'voting', 'stack', 'mixed_vote', 'piped_vote', 'mixed_stack', 'line_start']  # are models of two classes here


def fitted_to(make, X, y):
    "Models that were fitted to a table, behind what reads for them what they do not read."
    words = [c for c in X if X[c].dtype == object or isinstance(X[c].dtype, levels)]
    holes = bool(X.isna().any().any()) and not make.missing
    steps = [impute.SimpleImputer(strategy='median')]*holes + [make.before]*(make.before is not None)
    chain = lambda *steps: pipeline.make_pipeline(*steps) if len(steps) > 1 else steps[0]  # asking through fewer steps is quicker
    coded = chain(*[impute.SimpleImputer(strategy='most_frequent')]*holes, make.coder)
    both = compose.make_column_transformer((chain(*steps or ['passthrough']), [c for c in X if c not in words]), (coded, words))
    if make.framed: both.set_output(transform='pandas')
    if make.named and not make.framed and X.u.dtype != object: first = []
    else: first = [both] if words else steps
    models = [make.of()] if callable(make.of) else make.of if isinstance(make.of, list) else [make.of]
    return [pipeline.make_pipeline(*map(base.clone, first), base.clone(m)).fit(X, y) if first else base.clone(m).fit(X, y) for m in models]


class Residual(nn.Module):
    "Sums, parts and constants, as people write them."
    def __init__(self, width):
        super().__init__()
        self.code, self.layer, self.last = nn.Linear(width - 1, 9), nn.Linear(10, 9), nn.Linear(9, 9)

    def forward(self, x):
        code = torch.relu(self.code(x[:, 1:]))
        out = self.last(nn.functional.leaky_relu(self.layer(torch.cat([x[:, :1], code], 1)), .1))
        out += code
        return 1 - torch.tanh(out/2)


def net_of(domain, X, k, loud):
    "A network of random weights, of which each class is the largest somewhere."
    x = domain.encode(X).x.float()
    bends = [nn.BatchNorm1d(9), nn.Tanh(), nn.Sequential(nn.Linear(9, 7), nn.LeakyReLU(.2)), nn.Linear(7, 9), nn.Hardtanh()] if loud == 2 else [nn.ReLU()]
    with seeded(3): net = nn.Sequential(*[Residual(x.shape[1])] if loud == 3 else [nn.Linear(x.shape[1], 9), *bends], nn.Linear(9, k)).eval()
    with torch.no_grad():
        z = net(x)
        net[-1].weight.mul_(loud/z.std(0)[:, None]), net[-1].bias.sub_(z.mean(0)).mul_(loud/z.std(0))
    return net


# ---- what is asked
RULES = ['free', 'still', 'directions', 'bounds', 'elsewhere', 'one', 'row by row', 'domain', 'relation']
PRICES = dict(plain={}, cost=dict(cost={'b': (.5, 2.), 'u': .4}), quantile=dict(scale='quantile'), standard=dict(scale='standard'),
              zigzag=dict(cost={'b': lambda old, new: np.where(new == old, 0., np.array([.6, 3, .3, np.inf, 2, .1])[new.astype(int)])}))  # some have no price at all
DECISIONS = {'two': (2, None), 'two by .6': (2, .6), 'three by .3': (3, .3), 'three by .5': (3, .5), 'three': (3, None), 'eight': (8, None)}
ASKS = ['as usual', 'columns', 'distance', 'cost', 'from nothing', 'plausible', 'ways', 'noise', 'certificates', 'several']
LISTS = dict(model=list(MODELS), kind=list(KINDS), rule=RULES, price=list(PRICES), decision=list(DECISIONS), ask=ASKS)


def fits(model, kind, rule, price, decision, ask):
    "Whether levels make a question, and none that fails today."
    if any({*([key] if isinstance(key, str) else key)} <= {model, kind, rule, price, decision, ask} for key in FAILS_TODAY): return False
    if 'number' in model and decision != 'two' or model in TWO and not decision.startswith('two'): return False
    if model == 'sentinel' and KINDS[kind].gone or model in ('passed', 'passed_hist') and kind == 'text': return False
    if (rule == 'relation' or model in ONLY_ASKED) and ask not in ('as usual', 'several'): return False
    if ask == 'plausible': return price == 'plain' and 'number' not in model and model not in ('agreeing', 'network', 'bent', 'whisper')
    return (ask == 'cost') <= ('cost' in PRICES[price]) and (price == 'zigzag') <= (ask == 'cost') and (model == 'folds') <= (kind != 'unused')


def dear(model, kind, rule, price, decision, ask):
    "Whether a question takes too long for every run."
    return ask in ('noise', 'plausible') and (model not in ('tree', 'hist', 'logistic') or kind not in ('whole', 'gaps') or decision != 'two')


@cache
def covering(seed=0, tries=60):
    "Few questions in which each pair of levels of two lists meets, where it may: greedy, pair after pair."
    rng,taken = random.Random(seed), []
    lists = {name: [v for v in some if v not in FAILS_TODAY and v not in SOAK_ONLY] for name,some in LISTS.items()}
    todo = {pair: None for a,b in itertools.combinations(lists, 2) for pair in itertools.product(((a, u) for u in lists[a]), ((b, v) for v in lists[b]))}
    while todo:
        first,best,most = next(iter(todo)), None, {next(iter(todo))}
        for n in range(tries):
            if best and n > 5: break
            case = dict(first)
            for name in rng.sample(list(lists), len(lists)):
                new = lambda v: sum(((name, v), old) in todo or (old, (name, v)) in todo for old in case.items())*(n < tries/2)
                if name not in case: case[name] = max(lists[name], key=lambda v: (new(v), rng.random()))
            case = {name: case[name] for name in lists}
            met = set(itertools.combinations(case.items(), 2)) & todo.keys()
            if fits(**case) and not dear(**case) and (best is None or len(met) > len(most)): best,most = case, met
        if best: taken.append(best)
        for pair in most: del todo[pair]
    return taken


ONCE_WRONG = {  # Number of a question that was answered wrongly -> what it is
    1100200: ('hist', 'leave', 'directions', 'standard', 'three by .3', 'ways'),     # a missing number stood among the others
    1100307: ('lightgbm', 'sparse', 'domain', 'cost', 'three by .3', 'as usual')}    # of two columns, found by no step of a search


@cache
def daily():
    "Numbers of the questions of `covering` that are needed if each model comes three times, and each kind of column meets each price and decision; what else is asked meets in pairs."
    def met(case):
        pairs = itertools.combinations(sorted(case.items()), 2)
        return {case['model']} | {pair for pair in pairs if (names := {name for name,_ in pair}) & {'price', 'decision'} and 'model' not in names or not names & {'model', 'kind'}}
    count,needed = Counter(pair for case in covering() for pair in met(case)), []
    for i,case in enumerate(covering()):
        if all(count[pair] > (3 if pair in MODELS else 1) for pair in met(case)): count.subtract(met(case))
        else: needed.append(i)
    return needed


def anything(seed, ask):
    "Levels by chance."
    rng = random.Random(seed)
    while not fits(**(case := {name: rng.choice(some) for name,some in LISTS.items()} | dict(ask=ask))): pass
    return case


class Question(NamedTuple):
    "A small question, and what there is to know of it."
    case:dict       # Its levels
    X:Any           # The table
    kinds:dict      # Column -> kind
    cf:Any
    rows:Any        # Those that are asked about
    target:Any      # A class for each, or an interval
    told:dict       # Rules that come with the question
    rules:dict      # All of them
    price:dict      # Scale and costs
    at:dict         # Column -> position of each cell of `every`
    every:Any       # All rows that can be made of legal cells, of the code, of a missing cell
    sure:np.ndarray # Whether each row of `every` is where each of `rows` is wanted, `(rows, every)`
    may:np.ndarray  # The same, counting those at the bar
    says:Any        # Whether rows of a frame are where they are wanted, by the model itself


def rules_of(rule, kinds, rng):
    "Rules as `explain` takes them, and as `tabular` does; and which rows may be asked about."
    line = 'u' if not kinds['u'].named and len(kinds['u'].cells) > 1 else 'c'
    cells,fine = kinds[line].cells, lambda df: df.b >= 0
    ends = (cells[len(cells)//4], cells[-(len(cells)//4) - 1])
    plain = line == 'u' and kinds['u'].gone == 0 and kinds['u'].code is None and not isinstance(cells[0], str)
    if rule == 'still': return dict(immutable=['b']), {}, fine
    if rule == 'directions': return dict(zip(rng.permutation(['increase_only', 'decrease_only']).tolist(), ([line], ['b']))), {}, fine
    if rule == 'bounds': return dict(bounds={line: ends} if plain else {'b': (1, 4)}), {}, (lambda df: df[line].between(*ends) if plain else df.b.between(1, 4))
    if rule == 'elsewhere': return dict(bounds={'b': (None, 1)}), {}, lambda df: df.b >= 3
    if rule == 'one': return dict(max_changes=1), {}, fine
    if rule == 'row by row':
        return dict(immutable=[['b'], []], max_changes=[2, 1], bounds=[{}, {'b': (1, 4)}]), {}, lambda df: df.b.between(1, 4)
    if rule == 'domain':
        levels = {'k': ['x', 'y']} if 'k' in kinds else {}
        return dict(max_changes=2), dict(immutable=['c'], increase_only=[line], bounds={'b': (1, None)} | levels), lambda df: df.b >= 1
    return {}, dict(relations=['b rises -> c rises by 1']) if rule == 'relation' else {}, fine


def question(case, seed):
    "The question of some levels and a seed; None where no row is worth one."
    model,kind,rule,price,decision,ask = case.values()
    rng,make = np.random.default_rng(seed), MODELS[model]
    (k,tau),prices = DECISIONS[decision], PRICES[price]
    kinds = dict(u=KINDS[kind], **{c: v for c,v in BESIDE.items() if c != 'k' or make.named or make.before and seed % 3 == 0})
    place = {c: rng.permutation(drawn(v, rng)) for c,v in kinds.items()}
    if model == 'sentinel': place['b'][place['b'] == 4] = 3  # no training row tells of it
    X = pd.DataFrame({c: written(v, place[c]) for c,v in kinds.items()})
    y,z = classes_of(kinds, place, k, rng)
    told,by_table,fine = rules_of(rule, kinds, rng)
    how = KINDS[kind].how | prices | by_table
    cells = {name: how.pop(name) for name in ('integer', 'special', 'missing', 'scale', 'step') if name in how}
    domain = tabular(X, **how, read=cells)
    net = net_of(domain, X, k, make.of) if isinstance(make.of, float) else None
    fitted = [net] if net else fitted_to(make, X, z if 'number' in model else y)
    hair = 0. if model in ('whisper', 'even_forest') else HAIR
    cf = GradualCF(fitted if len(fitted) > 1 else fitted[0], domain, plausible(1.5 if len(model) % 2 else 1.) if ask == 'plausible' else 'sparse', **{} if tau is None else dict(tau=tau)).fit(X)
    def scores(m, frame):
        "What a model says of each class, or the number it gives; and what it predicts."
        if net:
            with torch.no_grad(): z = net(domain.encode(frame).x.float()).double()
            return z.softmax(1).numpy(), z.argmax(1).numpy()
        if 'number' in model: return m.predict(frame), None
        if hasattr(m, 'predict_proba'): return m.predict_proba(frame).astype(float), np.ravel(m.predict(frame))
        p = 1/(1 + np.exp(-m.decision_function(frame)))
        return np.stack([1 - p, p], 1), m.predict(frame)
    def wanted(said, target, slip=0.):
        "Whether rows are where they are wanted; with a slip, also those that lack so little, and below 0 without those that have so little to spare."
        out = True
        for p,label in said:
            if label is None: out = out & (p >= target[0] - slip) & (p <= target[1] + slip)
            else:
                lead = p[:, target] - np.delete(p, target, 1).max(1)
                there = (label == target) & (slip >= 0 or lead >= -slip) | (slip > 0) & (np.abs(lead) <= slip)
                out = out & there & (tau is None or p[:, target] >= tau - slip)
        return out
    if 'number' in model:
        target = tuple(np.quantile(fitted[0].predict(X), [.7, .85]) + [-1e-3, 1e-3])
        targets = [target]*ASKED
    else:
        have,now = [np.unique(scores(m, X)[1]) for m in fitted], scores(fitted[0], X)[1]
        have = [v for v in range(k) if all(v in some for some in have)]
        if len(have) < 2: return None
    rows = X[fine(X).fillna(False).to_numpy(bool)]
    if len(rows) < ASKED: return None
    rows = rows.sample(ASKED, random_state=seed % 2**31)
    if 'number' not in model:  # the first row of some questions has what it asks for
        targets = [have[(have.index(now[i]) + (seed % 4 > 0 or j > 0)) % len(have)] if now[i] in have else have[0] for j,i in enumerate(rows.index)]
        target = np.array(targets)
    spots = {c: [*range(len(v.cells)), *[-1]*(v.code is not None), *[-2]*(v.gone > 0)] for c,v in kinds.items()}
    grid = np.array(list(itertools.product(*spots.values()))).T
    at = dict(zip(spots, grid))
    every = pd.DataFrame({c: written(v, at[c]) for c,v in kinds.items()})
    said = [scores(m, every) for m in fitted]
    sure,may = ([wanted(said, t, slip) for t in targets] for slip in (-hair, hair))
    def says(frame):
        said = [scores(m, frame) for m in fitted]
        return np.array([wanted(said, t)[i] for i,t in enumerate(targets)])
    return Question(case, X, kinds, cf, rows, target, told, told | by_table, prices, at, every, np.array(sure), np.array(may), says)


# ---- what is true
def of_row(rule, i, none):
    "What a rule says of one row."
    return none if rule is None else rule[i] if isinstance(rule, list) and rule and isinstance(rule[0], (list, dict, int)) else rule


def values(q, c):
    "What stands in a column of `every`, as numbers; levels are counted."
    kind = q.kinds[c]
    cells = range(len(kind.cells)) if isinstance(kind.cells[0], str) else kind.cells
    return np.array([*cells, np.nan, np.nan if kind.code is None else kind.code], float)[q.at[c]]


def legal(q, i, own, last=False):
    "Which rows of `every` the question's rules allow, the last resort too, and which columns these change, `(columns, every)`; `own` is where the row is."
    still,most,bounds = (of_row(q.rules.get(name), i, none) for name,none in (('immutable', []), ('max_changes', 99), ('bounds', {})))
    ok,moved = np.ones(len(q.every), bool), []
    for c,kind in q.kinds.items():
        at,me = q.at[c], q.at[c][own]
        fine = (at >= 0) & (c not in still)
        if me == -2: fine &= 'missing' in kind.how
        if me == -1 and q.case['ask'] == 'plausible' and not last: fine &= False  # advice leaves codes as they are, where anything else helps
        value = values(q, c)
        ends = bounds.get(c, (None, None))
        if isinstance(ends, list): fine &= np.isin([*kind.cells, '', ''], ends)[at]
        elif c in bounds: fine &= (value >= (-np.inf if ends[0] is None else ends[0])) & (value <= (np.inf if ends[1] is None else ends[1]))
        if c in q.rules.get('increase_only', []) and me != -2: fine &= value >= value[own]
        if c in q.rules.get('decrease_only', []) and me != -2: fine &= value <= value[own]
        moved.append(at != me)
        ok &= fine | ~moved[-1]
    return ok & (np.sum(moved, 0) <= most), np.array(moved)


def ways_to(q, own):
    "How far each row of `every` is, and what the way costs."
    far,x,groups = [], q.cf.encode(q.every).x.double().numpy(), q.cf.groups(q.cf.x_train).numpy()
    for g,(c,kind) in enumerate(q.kinds.items()):
        at = q.at[c]
        if kind.named: far.append(2.*(at != at[own]))
        elif 'scale' in q.price: far.append(np.abs(x - x[own])[:, groups == g].sum(1))
        else:
            v = values(q, c)
            place = (v - np.nanmin(v))/(np.nanmax(v) - np.nanmin(v) or 1)
            place = np.where(at == -2, -(1 + 2.**-23), place)
            far.append(np.abs(place - place[own]))
    cost = []
    for (c,kind),v in zip(q.kinds.items(), far):
        told = q.price.get('cost', {}).get(c, 1.)
        if callable(told): cost.append(told(values(q, c)[own], values(q, c)))
        else: cost.append(v/(2 if kind.named else 1)*(np.where(q.at[c] > q.at[c][own], *told) if isinstance(told, tuple) else told))
    return np.sum(far, 0), np.sum(cost, 0)


def places(q, frame):
    "Where rows stand in `every`; a row that has a cell nobody could have is an error."
    assert [*map(str, frame.dtypes)] == [*map(str, q.X.dtypes)]
    there = np.ones((len(frame), len(q.every)), bool)
    for c in q.kinds:
        for i,v in enumerate(frame[c].tolist()): there[i] &= q.every[c].isna().to_numpy() if pd.isna(v) else (q.every[c] == v).fillna(False).to_numpy(bool)
    assert there.any(1).all(), ('no legal cells', frame[~there.any(1)].to_dict('records'))
    return there.argmax(1)


def least(size, near, ok):
    "Size and distance of the least row of some, the distance second."
    if not ok.any(): return np.inf, np.inf
    low = size[ok].min()
    return low, near[ok & (size <= low + NEAR)].min()


def below(a, b): return a[0] < b[0] - NEAR or a[0] <= b[0] + NEAR and a[1] <= b[1] + NEAR


def firm(q, ok):
    "Rows that stay where they are wanted when b comes out one higher or lower, changed or not, within the table's bounds."
    v,axis = ok.reshape([len(set(at)) for at in q.at.values()]), list(q.at).index('b')
    first,b = int(q.case['rule'] == 'domain'), np.arange(v.shape[axis])
    higher,lower = (np.take(v, np.clip(b + s, first, len(b) - 1), axis) for s in (1, -1))
    return (v & higher & lower).ravel()


# ---- the judge
def claims(proof, size, bound, here, best, may, whole):
    "What is said of one row against what its answer takes (`here`) and the least there is, for certain and perhaps."
    told = proof, size, bound, here, best
    assert bound <= best[0] + NEAR and (not whole or proof in ('optimal', 'none exists')), told
    if here[0] < np.inf: assert bound <= size + NEAR and abs(size - here[0]) <= NEAR and below(may, here), told
    if proof == 'optimal': assert here[0] < np.inf and below(here, best), told
    if proof == 'none exists': assert here[0] == best[0] == np.inf, told
    if proof.startswith('within'): assert here[0] <= best[0]*(1 + float(proof[7:-1])/100) + NEAR, told


def within_a_real_row(answers):
    "Whether answers are no farther than the nearest real row that is told beside them: why they may take more columns."
    told = answers.quality()
    return (told['cost' if 'cost' in told else 'distance'] <= told.nearest_row*(1 + 1e-3)).to_numpy()


def judged(q):
    "Asks, and holds every claim against all rows; returns what was said of the rows."
    own = places(q, q.rows)
    allowed,ways_of = [legal(q, i, j) for i,j in enumerate(own)], [ways_to(q, j) for j in own]
    if q.case['ask'] == 'several': return several(q, own, allowed)
    ask = q.case['ask'] if _readings(q.cf, grid_of(q.cf.domain.features)) is not None else 'as usual'
    if ask == 'ways': return menu(q, allowed, ways_of)
    optimal = dict(columns='columns', plausible='columns', distance='distance', cost='cost', noise='distance').get(ask)
    if ask == 'from nothing': answers = cheapest(q.cf, q.rows, q.target, optimal := 'distance', start=False, **q.told).answers
    else:
        cf = q.cf.under(hold=dict(noise=dict(b=1.))) if ask == 'noise' else q.cf
        answers = cf.explain(q.rows, q.target, proof=optimal, limit=60. if dear(**q.case) else 600. if ask == 'noise' else None, **q.told)
    published(answers)
    valid,there,tied = answers.valid, places(q, answers.raw), 'relations' in q.rules
    assert (valid <= q.says(answers.raw)).all(), 'the model denies it'
    assert q.cf.domain.legal(q.rows, answers.raw).all()
    if tied: assert all(c > old or b <= was for b,was,c,old in zip(answers.raw.b, q.rows.b, answers.raw.c, q.rows.c))
    for i,j in enumerate(there):
        ok,moved = allowed[i]
        assert ok[j] or tied or answers.proof[i] == 'none exists' and legal(q, i, own[i], True)[0][j], ('against the rules', q.rows.iloc[i].to_dict(), answers.raw.iloc[i].to_dict())
        if tied: continue
        far,cost = ways_of[i]
        second = far if answers.optimal else cost  # prices decide where nothing is proven
        size,near = (moved.sum(0), second) if optimal in (None, 'columns') else (cost, cost) if optimal == 'cost' else (far, far)
        sure,may = ok & q.sure[i], ok & q.may[i]
        if ask == 'noise': sure,may = sure & firm(q, q.sure[i]), may & (fine := firm(q, q.may[i]))
        if ask == 'plausible': sure,may = sure & (content(q, i) <= 0), may & (fine := content(q, i) <= ROOM)
        here = (size[j], near[j]) if valid[i] and ok[j] and (ask not in ('plausible', 'noise') or fine[j]) else (np.inf, np.inf)
        best = least(size, near, sure)
        round_ = np.all([~np.isin(values(q, c), kind.between) | ~moved[g] for g,(c,kind) in enumerate(q.kinds.items())], 0)  # steps, which are all that is tried where a model is asked
        known = least(size, near, sure & round_)[0] <= 2 and q.case['price'] in ('plain', 'cost') and q.case['ask'] != 'plausible' and not isinstance(MODELS[q.case['model']].of, float)  # and no margin is asked for
        nearest = max(best[1], least(size, near, sure & round_)[1]) if best[0] == 1 else best[1]
        if not answers.optimal: assert not known or valid[i] and (best[0] > 1 or second[j] <= nearest + NEAR or here[0] > 1 and within_a_real_row(answers)[i]), ('missed', here, best)
        else: claims(answers.proof[i], answers.size[i], answers.bound[i], here, best, least(size, near, may), optimal and not dear(**q.case))
    if ask == 'certificates': certified(q, answers, allowed, ways_of), around(q, answers, there)
    return answers.proof


@cache
def validator(part):
    "Of a part of the published schema."
    return jsonschema.Draft202012Validator(answer_schema() | {'$ref': f'#/$defs/{part}'})


def published(answers):
    "Answers and evidence are what the published schema says."
    validator('answers').validate(json.loads(answers.to_json()))
    for text in evidence(answers, region=False): validator('evidence').validate(json.loads(text))


def content(q, i):
    "What rows lack of all that is asked for."
    x,(_,enc,_,label) = q.cf.encode(q.every).x, q.cf.ask(q.rows, q.target, **q.told)
    same = torch.full((len(x),), i)
    return violation_required(q.cf, State(enc.take(same), x, q.cf.logits(q.every, x), q.cf.aim(label[same], enc.take(same)))).numpy()


def certified(q, answers, allowed, ways_of):
    "Certificates of what was answered."
    for norm in ('columns', 'distance', 'cost')[:2 if 'cost' in q.price else 3]:
        for i,line in enumerate(answers.prove(norm, seconds=60).itertuples()):
            (ok,moved),far = allowed[i], ways_of[i][0]
            best,may = (least(far if norm == 'distance' else moved.sum(0), far, ok & v[i]) for v in (q.sure, q.may))
            at = int(norm == 'cost' and line.verdict.endswith('distance'))
            assert line.bound in (may[at], best[at]) or may[at] - 3e-5 <= line.bound <= best[at] + 3e-5, (norm, line, best)
            assert (line.verdict == 'none exists') <= np.isinf(best[0]), (norm, line, best)
            if line.verdict.startswith('optimal'): assert line.size <= best[at] + 3e-5, (norm, line, best)


def around(q, answers, there):
    "All rows of a region are where they are wanted."
    for i,lines in region(q.cf, answers, free=list(q.kinds)).groupby('row'):
        inside = np.ones(len(q.every), bool)
        for c in q.kinds:
            same = q.at[c] == q.at[c][there[i]]
            for line in lines[lines.feature == c].itertuples():
                v = values(q, c)
                if pd.notna(line.low): same |= (v >= line.low) & (v <= line.high) & (q.at[c] >= 0)
                else: same |= q.every[c].isin(line.levels).to_numpy()
            inside &= same
        assert q.may[i][inside].all(), (lines, q.every[inside & ~q.may[i]])


def menu(q, allowed, ways_of):
    "Each set of columns has its nearest answer, or none."
    told = ways(q.cf, q.rows, q.target, 2, **q.told)
    for line in told.itertuples():
        (ok,moved),far = allowed[line.row], ways_of[line.row][0]
        only = ok & ~moved[[c not in line.columns for c in q.kinds]].any(0)
        low,high = (far[only & v[line.row]].min(initial=np.inf) for v in (q.may, q.sure))
        assert low - NEAR <= line.distance <= high + NEAR and line.proof == ('none exists' if line.distance == np.inf else 'optimal'), (line, high)
        if line.distance == np.inf: continue
        row = q.rows.iloc[[line.row]]
        j = places(q, row.assign(**{c: pd.Series([v], row.index, dtype=q.X[c].dtype) for c,v in zip(line.columns, line.values)}))[0]
        assert only[j] and q.may[line.row][j] and abs(far[j] - line.distance) <= NEAR, ('the values of a way', line)
    return told.proof.tolist()


def several(q, own, allowed):
    "Answers of a row are different ones, none is against the rules, and none has a change that might as well be put back."
    told,tied = q.cf.explain(q.rows, q.target, k=3, **q.told), 'relations' in q.rules
    rows,found = (told.answer == 1).cumsum() - 1, told.valid & ~told.already
    first,answers,row = told[told.answer == 1], told[found], rows[found]
    there = places(q, answers.raw)
    assert q.says(first.raw)[first.valid].all() and len({*zip(row, there)}) == len(there)
    for i,j in zip(row, there):
        ok,moved = allowed[i]
        assert (ok[j] or tied) and q.may[i][j], ('one of several', q.rows.iloc[i].to_dict(), q.every.iloc[j].to_dict())
        for c in np.array(list(q.kinds))[moved[:, j]] if moved[:, j].sum() > 1 and not tied else ():
            back = np.all([at == at[own[i] if name == c else j] for name,at in q.at.items()], 0).argmax()
            assert not (ok & q.sure[i])[back], ('a change might be put back', c, q.rows.iloc[i].to_dict(), q.every.iloc[j].to_dict())
    one = [(ok & q.sure[i] & (moved.sum(0) <= 1)).any() and not q.may[i][own[i]] for i,(ok,moved) in enumerate(allowed)]
    missed = {*np.flatnonzero(one)} - {*row} # of networks a margin is asked for
    assert not missed or tied or isinstance(MODELS[q.case['model']].of, float), ('missed', q.rows.to_dict('records'))
    return first.proof


def check(seed, **case):
    "One question, and what was said of its rows; an error names the question."
    try:
        with config_context(assume_finite=True, skip_parameter_validation=True): return [] if (q := question(case, seed)) is None else judged(q)
    except Exception as e: raise AssertionError(f'questions.check({seed}, **{case})') from e


def soak(log, first, count, most=300):
    "Questions by chance whose numbers a log does not have, each of `most` seconds of processor time: what is said of the rows, or what is wrong."
    def late(*_): raise TimeoutError
    warnings.simplefilter('ignore')
    signal.signal(signal.SIGPROF, late)
    log.touch()
    for seed in sorted({*range(first, first + count)} - {json.loads(line)['seed'] for line in log.read_text().splitlines()}):
        signal.setitimer(signal.ITIMER_PROF, most)
        try: told = dict(said=Counter(check(seed, **anything(seed, ASKS[seed % len(ASKS)]))))
        except Exception as e: told = dict(late=str(e)) if isinstance(e.__cause__, TimeoutError) else dict(wrong=f'{e}: {e.__cause__!r}'[:3000])
        signal.setitimer(signal.ITIMER_PROF, 0)
        with log.open('a') as f: f.write(json.dumps(dict(seed=seed, **told)) + '\n')


if __name__ == '__main__': soak(Path(sys.argv[1]), *map(int, sys.argv[2:]))
