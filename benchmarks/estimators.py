"""Which models are read, and which are only asked: every kind against asking everything.

    python benchmarks/estimators.py [--rows 20] [--only KNeighborsClassifier …] [--group pipelines]

Each kind is fitted to the same 400 rows of four whole numbers; all 2,401 legal rows are put to its own `predict`, so the fewest
changes of each question are known. Pipelines are fitted to rows of which one number is missing now and then and one column is a
category; questions are asked about rows with a missing number, too. Libraries that are not installed are left out; the table on the site has pygam
too, which no extra brings. Written to `benchmarks/results/estimators.csv`; of a group alone, the others stay as they are there.
"""
import argparse
import itertools
import time
import warnings
from functools import partial
from importlib import import_module

import numpy as np
import pandas as pd
import torch
from sklearn import (calibration, compose, decomposition, discriminant_analysis, dummy, ensemble, feature_selection, gaussian_process, impute, linear_model, model_selection,
                     multiclass, naive_bayes, neighbors, neural_network, preprocessing, semi_supervised, svm, tree)
from sklearn.base import clone
from sklearn.pipeline import make_pipeline, make_union
from torch import nn

from gradual_cf.all import GradualCF, tabular
from gradual_cf.search.boxes import grid_of
from gradual_cf.search.readings import _readings

COLUMNS, VALUES, ROWS = list('abcd'), 7, 400
READ = dict(leaves='trees and lines', lines='linear', layers='layers', trees='trees', sums='sum of one term a column')
LINE, SEED = linear_model.LogisticRegression(max_iter=500), dict(random_state=0)
GROWN = tree.DecisionTreeClassifier(max_depth=3, **SEED)
FOREST = ensemble.RandomForestClassifier(7, max_depth=4, **SEED)
BOOSTED = ensemble.GradientBoostingClassifier(n_estimators=7, **SEED)
NET = dict(hidden_layer_sizes=(7,), solver='lbfgs', max_iter=60, **SEED)
BINS = preprocessing.KBinsDiscretizer(4, quantile_method='averaged_inverted_cdf')
X7, L7 = dict(n_estimators=7, max_depth=3, n_jobs=1), dict(n_estimators=7, max_depth=3, verbose=-1, n_jobs=1, min_child_samples=5)
CAT, EBM = dict(iterations=8, depth=3, verbose=0, allow_writing_files=False, thread_count=1, random_seed=0), dict(outer_bags=2, max_rounds=60, n_jobs=1)


def of(module, name, **how): return lambda: getattr(import_module(module), name)(**how)


class Around(nn.Module):
    "A sum around what stands inside."
    def __init__(self, *inside):
        super().__init__()
        self.inside = nn.Sequential(*inside)

    def forward(self, x): return x + self.inside(x)


def layers(*between):
    "A network with something between its two linear layers, of weights that are drawn and not trained."
    def make():
        with torch.random.fork_rng():
            torch.manual_seed(4)
            return nn.Sequential(nn.Linear(4, 9), *between, nn.Linear(9, 2)).eval()
    return make


def kinds():
    "Group -> name -> a model that is not fitted yet, or a function that makes one."
    behind = lambda *steps: make_pipeline(*steps)
    voting = lambda voting, *parts: ensemble.VotingClassifier([(str(i), p) for i, p in enumerate(parts)], voting=voting)
    search = lambda model, **grid: model_selection.GridSearchCV(model, grid, cv=3)
    return {
        'linear models': {type(m).__name__ + more: m for m, more in [
            (LINE, ''), (linear_model.LogisticRegressionCV(cv=3), ''), (linear_model.RidgeClassifier(), ''), (linear_model.RidgeClassifierCV(), ''),
            (linear_model.SGDClassifier(loss='log_loss', **SEED), ', log loss'), (linear_model.SGDClassifier(**SEED), ', hinge'),
            (linear_model.Perceptron(**SEED), ''), (svm.LinearSVC(), ''), (svm.SVC(kernel='linear'), ', linear'), (discriminant_analysis.LinearDiscriminantAnalysis(), '')]},
        'sums of one term a column': {
            'GaussianNB': naive_bayes.GaussianNB(), 'BernoulliNB': naive_bayes.BernoulliNB(binarize=2), 'MultinomialNB': naive_bayes.MultinomialNB(),
            'ComplementNB': naive_bayes.ComplementNB(), 'CategoricalNB': naive_bayes.CategoricalNB(min_categories=VALUES),
            'splines before a line': behind(preprocessing.SplineTransformer(4), LINE), 'bins before a line': behind(BINS, LINE),
            'power before a line': behind(preprocessing.PowerTransformer(), LINE), 'components before a line': behind(decomposition.PCA(2), LINE),
            'calibrated LinearSVC': calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2), 'XGBoost, gblinear': of('xgboost', 'XGBClassifier', booster='gblinear', n_estimators=20, n_jobs=1),
            'EBM without pairs': of('interpret.glassbox', 'ExplainableBoostingClassifier', interactions=0, **EBM), 'pygam': of('pygam', 'LogisticGAM')},
        'trees': {
            'DecisionTreeClassifier': GROWN, 'ExtraTreeClassifier': tree.ExtraTreeClassifier(max_depth=4, **SEED), 'RandomForestClassifier': FOREST,
            'ExtraTreesClassifier': ensemble.ExtraTreesClassifier(7, max_depth=4, **SEED), 'GradientBoostingClassifier': BOOSTED,
            'GradientBoosting, constant start': ensemble.GradientBoostingClassifier(n_estimators=7, init=dummy.DummyClassifier(), **SEED),
            'HistGradientBoostingClassifier': ensemble.HistGradientBoostingClassifier(max_iter=7, max_depth=3, **SEED),
            'AdaBoostClassifier': ensemble.AdaBoostClassifier(GROWN, n_estimators=5, **SEED), 'BaggingClassifier, trees': ensemble.BaggingClassifier(GROWN, 5, **SEED),
            'VotingClassifier, soft, trees': voting('soft', FOREST, GROWN), 'StackingClassifier, trees': ensemble.StackingClassifier([('a', FOREST), ('b', GROWN)], cv=3),
            'StackingClassifier, a line': ensemble.StackingClassifier([('a', FOREST), ('b', LINE)], cv=3), 'VotingClassifier, soft, a line': voting('soft', FOREST, LINE),
            'GradientBoosting, a line as start': ensemble.GradientBoostingClassifier(n_estimators=7, init=LINE, **SEED),
            'calibrated forest': calibration.CalibratedClassifierCV(FOREST, cv=2),
            'XGBoost': of('xgboost', 'XGBClassifier', **X7), 'XGBoost, forest': of('xgboost', 'XGBRFClassifier', **X7), 'XGBoost, dart': of('xgboost', 'XGBClassifier', booster='dart', **X7),
            'XGBoost, 3 for missing': of('xgboost', 'XGBClassifier', missing=3, **X7), 'LightGBM, zero for missing': of('lightgbm', 'LGBMClassifier', zero_as_missing=True, **L7),
            'LightGBM': of('lightgbm', 'LGBMClassifier', **L7), 'LightGBM, linear leaves': of('lightgbm', 'LGBMClassifier', linear_tree=True, **L7), 'LightGBM, dart': of('lightgbm', 'LGBMClassifier', boosting_type='dart', **L7),
            'EBM with pairs': of('interpret.glassbox', 'ExplainableBoostingClassifier', interactions=2, **EBM),
            'CatBoost': of('catboost', 'CatBoostClassifier', **CAT), 'CatBoost, not symmetric': of('catboost', 'CatBoostClassifier', grow_policy='Lossguide', **CAT),
            'forest behind chosen columns': behind(feature_selection.SelectKBest(k=2), FOREST),
            'boosting behind ranks': behind(preprocessing.QuantileTransformer(n_quantiles=20), BOOSTED)},
        'layers': {
            **{f'MLPClassifier, {way}': neural_network.MLPClassifier(activation=way, **NET) for way in ('relu', 'tanh', 'logistic', 'identity')},
            'perceptron behind a scaler': behind(preprocessing.MinMaxScaler(), neural_network.MLPClassifier(**NET)),
            'torch, ReLU': layers(nn.ReLU()), 'torch, LeakyReLU': layers(nn.LeakyReLU()), 'torch, Tanh': layers(nn.Tanh()), 'torch, Sigmoid': layers(nn.Sigmoid()),
            'torch, Hardtanh': layers(nn.Hardtanh()), 'torch, ELU': layers(nn.ELU()), 'torch, BatchNorm1d': layers(nn.BatchNorm1d(9), nn.ReLU()), 'torch, a sum around': layers(nn.ReLU(), Around(nn.Linear(9, 9), nn.ReLU()))},
        'around a model': {
            'GridSearchCV': search(GROWN, max_depth=[2, 3]), 'GridSearchCV, pipeline': search(behind(preprocessing.StandardScaler(), LINE), logisticregression__C=[.1, 1]),
            'FixedThresholdClassifier': model_selection.FixedThresholdClassifier(FOREST, threshold=.3), 'TunedThresholdClassifierCV': model_selection.TunedThresholdClassifierCV(LINE, cv=3),
            'SelfTrainingClassifier': semi_supervised.SelfTrainingClassifier(LINE)},
        'only asked': {
            'SVC': svm.SVC(), 'KNeighborsClassifier': neighbors.KNeighborsClassifier(), 'GaussianProcessClassifier': gaussian_process.GaussianProcessClassifier(**SEED),
            'QuadraticDiscriminantAnalysis': discriminant_analysis.QuadraticDiscriminantAnalysis(), 'OneVsRestClassifier': multiclass.OneVsRestClassifier(GROWN),
            'StackingClassifier, neighbours': ensemble.StackingClassifier([('a', FOREST), ('b', neighbors.KNeighborsClassifier())], cv=3),
            'VotingClassifier, hard': voting('hard', FOREST, GROWN, LINE), 'VotingClassifier, soft, neighbours': voting('soft', FOREST, neighbors.KNeighborsClassifier()),
            'GradientBoosting, neighbours as start': ensemble.GradientBoostingClassifier(n_estimators=7, init=neighbors.KNeighborsClassifier(), **SEED),
            'products before a line': behind(preprocessing.PolynomialFeatures(2), LINE), 'forest behind components': behind(decomposition.PCA(2), FOREST),
            'bins before a perceptron': behind(BINS, neural_network.MLPClassifier(**NET)), 'torch, GELU': layers(nn.GELU())}}


def pipelines():
    "Name -> a pipeline: each way to prepare numbers and a category, before each kind of last step."
    fill, scale, one, P = impute.SimpleImputer(), preprocessing.StandardScaler(), preprocessing.OneHotEncoder(handle_unknown='ignore'), preprocessing
    def columns(number=fill, level=one, **how): return compose.make_column_transformer((number, list('abc')), (level, ['job']), verbose_feature_names_out=False, **how)
    def filled(*steps, level=one): return columns(make_pipeline(fill, *steps), level)
    framed = clone(columns(make_pipeline(fill, scale), 'passthrough')).set_output(transform='pandas')
    ends = {'LightGBM': of('lightgbm', 'LGBMClassifier', **L7), 'XGBoost': of('xgboost', 'XGBClassifier', enable_categorical=True, **X7), 'CatBoost': of('catboost', 'CatBoostClassifier', **CAT),
            'histogram boosting': lambda: ensemble.HistGradientBoostingClassifier(max_iter=7, max_depth=3, categorical_features='from_dtype', **SEED),
            'a forest': lambda: FOREST, 'a line': lambda: LINE, 'a perceptron': lambda: neural_network.MLPClassifier(**NET)}
    ways = {'imputer, one-hot': columns(), 'imputer, one-hot, sparse': columns(sparse_threshold=1.), 'indicators': columns(impute.SimpleImputer(strategy='median', add_indicator=True)),
            'scaler': filled(scale), 'range, clipped': filled(P.MinMaxScaler(clip=True)), 'ranks': filled(P.QuantileTransformer(n_quantiles=20)), 'power': filled(P.PowerTransformer()),
            'bins': filled(clone(BINS).set_params(encode='onehot-dense')), 'splines': filled(P.SplineTransformer(3)), 'log1p': filled(P.FunctionTransformer(np.log1p)), 'codes of levels': columns(level=P.OrdinalEncoder()),
            'shares of levels': columns(level=P.TargetEncoder(**SEED)), 'rare levels': columns(level=P.OneHotEncoder(min_frequency=.3)), 'chosen features': make_pipeline(filled(scale), feature_selection.SelectKBest(k=4)),
            'a union': make_pipeline(filled(), make_union(scale, P.MaxAbsScaler())), 'categories of pandas': framed, 'a function of one column': compose.make_column_transformer(
                (make_pipeline(fill, P.FunctionTransformer(lambda v: np.c_[v, np.asarray(v) > 3])), ['a']), (one, ['job']), remainder='passthrough'),
            'a function of several columns': filled(P.FunctionTransformer(lambda v: np.c_[v, v[:, 0]*v[:, 1]])), 'neighbours': columns(impute.KNNImputer()), 'products': filled(P.PolynomialFeatures(2))}
    alone = {'LightGBM', 'XGBoost', 'histogram boosting'} # these read categories of pandas
    return {f'{way} before {end}': partial(behind_steps, steps, make) for way, steps in ways.items() for end, make in ends.items()
            if (way != 'categories of pandas' or end in alone) and (way, end) != ('imputer, one-hot, sparse', 'histogram boosting')}


def behind_steps(steps, make): return make_pipeline(clone(steps() if callable(steps) else steps), make())


def encoders():
    "Name -> a pipeline with an encoder of another make, before trees and a line."
    found = {'category_encoders': 'OneHotEncoder OrdinalEncoder TargetEncoder WOEEncoder CountEncoder BinaryEncoder HelmertEncoder JamesSteinEncoder CatBoostEncoder HashingEncoder',
             'feature_engine.encoding': 'OneHotEncoder MeanEncoder CountFrequencyEncoder WoEEncoder', 'skrub': 'TableVectorizer'}
    def columns(library, name): return compose.make_column_transformer((impute.SimpleImputer(), list('abc')), (make_pipeline(of(library, name)()), ['job']))
    ends = {'a forest': lambda: FOREST, 'a line': lambda: LINE}
    return {f'{library.split(".")[0]}, {name} before {end}': partial(behind_steps, partial(columns, library, name), make)
            for library, names in found.items() for name in names.split() for end, make in ends.items()}


def regressors():
    "Name -> a regressor, behind a scaler or not, of the number itself or of another target."
    P, grown = preprocessing, ensemble.RandomForestRegressor(7, max_depth=4, **SEED)
    def other(model, **how): return make_pipeline(P.StandardScaler(), compose.TransformedTargetRegressor(model, check_inverse=False, **how))
    logs = dict(func=np.log1p, inverse_func=np.expm1)
    return {
        'Ridge': linear_model.Ridge(), 'PoissonRegressor': make_pipeline(P.StandardScaler(), linear_model.PoissonRegressor()), 'GammaRegressor': make_pipeline(P.StandardScaler(), linear_model.GammaRegressor()),
        'RandomForestRegressor': grown, 'histogram boosting, Poisson': ensemble.HistGradientBoostingRegressor(loss='poisson', max_iter=7, max_depth=3, **SEED),
        'LightGBM, gamma': of('lightgbm', 'LGBMRegressor', objective='gamma', **L7), 'XGBoost, Poisson': of('xgboost', 'XGBRegressor', objective='count:poisson', **X7), 'CatBoost, Tweedie': of('catboost', 'CatBoostRegressor', loss_function='Tweedie:variance_power=1.5', **CAT),
        'logarithms, a line': other(linear_model.Ridge(), **logs), 'logarithms, a forest': other(grown, **logs), 'logarithms, a perceptron': other(neural_network.MLPRegressor(**NET), **logs),
        'ranks, a forest': other(grown, transformer=P.QuantileTransformer(n_quantiles=20)), 'power, a line': other(linear_model.Ridge(), transformer=P.PowerTransformer()),
        'squares, a line': other(linear_model.Ridge(), func=np.sqrt, inverse_func=np.square), 'KNeighborsRegressor': neighbors.KNeighborsRegressor()}


def table(mixed=False):
    "Training rows, their classes, and all legal rows; `mixed`: with a category and missing numbers."
    if mixed:
        X, y, every = table()
        named = lambda d: pd.Categorical.from_codes(d.astype(int) % 4, ['none', 'part', 'full', 'own'])
        X, every = (f.assign(job=named(f.d)).drop(columns='d') for f in (X, every[every.d < 4]))
        gone = np.random.default_rng(1).random(ROWS) < .15
        return X.assign(a=X.a.mask(gone)), y, pd.concat([every, every.assign(a=np.nan).drop_duplicates()], ignore_index=True)
    r = np.random.default_rng(0)
    X = pd.DataFrame(r.integers(0, VALUES, (ROWS, 4)), columns=COLUMNS).astype(float)
    score = X.a - 3 + .8*(X.b - 3) - .6*(X.c - 3)*(X.d > 2) + r.normal(0, .8, ROWS)
    return X, (score > 1).astype(int), pd.DataFrame(itertools.product(range(VALUES), repeat=4), columns=COLUMNS).astype(float)


def decided_by(cf):
    "Whose decision an answer is held to."
    known = getattr(cf.model, 'predictor', None)
    if known is None: return 'its outputs'
    return 'its predict' if known.over else 'its numbers' if known.cut in (None, .5) else f'its cut at {known.cut:.2f}'


def line(name, group, model, rows):
    "What becomes of one kind."
    mixed, number = group in ('pipelines', 'encoders'), group == 'regressors'
    X, y, every = table(mixed)
    if number: y = np.exp((X.a + .5*X.b - .4*X.c)/3)*np.random.default_rng(2).uniform(.9, 1.1, ROWS)
    net = isinstance(model, nn.Module)
    bare = name == 'pygam'  # knows no names of columns
    if not net: model.fit(X.to_numpy() if bare else X, y)
    domain = tabular(X, read=dict(missing='keep') if mixed else dict(integer=COLUMNS))
    if net:
        with torch.no_grad(): model[-1].bias -= model(domain.encode(X).x.float()).mean(0)  # so that both classes are somewhere
    cf = GradualCF(model, domain, 'sparse').fit(X)
    if number: low, high = np.quantile(model.predict(X), [.8, .9])
    def said(frame):
        if number: return ((v := model.predict(frame)) >= low).astype(int)*(v <= high)
        if net: return model(domain.encode(frame).x.float()).argmax(1).numpy()
        return np.asarray(model.predict(frame.to_numpy() if bare else frame)).ravel().astype(int)
    seen, begin = _readings(cf, grid_of(cf.domain.features)), time.process_time()
    asked = X[said(X) == 0]
    asked = asked.loc[asked.isna().any(axis=1).sort_values(ascending=False, kind='stable').index[:rows]] if mixed else asked.iloc[:rows]
    a = cf.explain(asked, (low, high) if number else 1, proof='columns' if seen else None)
    took = time.process_time() - begin
    cells = lambda f: np.stack([f[c].cat.codes if f[c].dtype == 'category' else f[c].fillna(-1) for c in X], 1)
    wanted, own = cells(every[said(every) == 1]), cells(asked)
    reach = [wanted[(wanted[:, 0] < 0) == (row[0] < 0)] for row in own] if mixed else [wanted]*len(own)  # a missing number stays
    fewest = np.array([(there != row).sum(1).min(initial=len(row)) for there, row in zip(reach, own)])
    columns = (cells(a.raw.astype(X.dtypes)) != own).sum(1)
    true, proven = said(a.raw.astype(X.dtypes)) == 1, np.array([told.startswith('optimal') for told in a.proof or ['']*len(a)])
    assert (a.valid == true).all(), f'{name}: the model itself says otherwise'
    return dict(kind=name, group=group, read=READ['lines' if seen[0].of == 'sums' and seen[0].layers else seen[0].of] if seen else '', why='' if seen else getattr(cf.model, 'unread', '') or 'a layer that ends the proof',
                decides='its numbers' if number else decided_by(cf), questions=len(a), fewest=int((true & (columns == fewest)).sum()), proven=int(proven.sum()),
                false=int((proven & ~(true & (columns == fewest))).sum()), ms=round(1e3*took/len(a), 1))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--rows', type=int, default=20)
    p.add_argument('--only', nargs='+')
    p.add_argument('--group')
    p.add_argument('--out', default='benchmarks/results/estimators.csv')
    args = p.parse_args()
    lines = []
    for group, some in (kinds() | dict(pipelines=pipelines(), encoders=encoders(), regressors=regressors())).items():
        if args.group not in (None, group): continue
        for name, model in some.items():
            if args.only and name not in args.only: continue
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                try: made = model() if callable(model) else model
                except ImportError as missing:
                    print(f'{name}: {missing}')
                    continue
                lines.append(line(name, group, made, args.rows))
            print(*lines[-1].values(), sep=' | ', flush=True)
    df = pd.DataFrame(lines)
    if args.group: df = pd.concat([(before := pd.read_csv(args.out))[before.group != args.group], df]).fillna('')
    if not args.only: df.to_csv(args.out, index=False)
    read = df['read'] != ''
    print(f'{len(df)} kinds, {read.sum()} read: {df.proven[read].sum()} of {df.questions[read].sum()} proven, {df.false.sum()} of them false; '
          f'fewest in {df.fewest[read].sum()}, and in {df.fewest[~read].sum()} of {df.questions[~read].sum()} where it is only asked')


if __name__ == '__main__': main()
