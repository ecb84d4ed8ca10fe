"Trees read exactly: readers of every library, and boxes against asking one value after the other."


import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, neighbors, tree
from sklearn.linear_model import LogisticRegression

from gradual_cf.all import GradualCF, tabular
from gradual_cf.models.decisions import FrameModel
from gradual_cf.models.fitted import recognised, parse_trees, _rounded_down
from gradual_cf.models.trees import widen_to_64
from gradual_cf.models.glass import _below
from gradual_cf.models.trees import _same_scores, exact


def frame(n=250, seed=0):
    "Few values in each column, so that all pairs of values can be asked."
    rng = np.random.default_rng(seed)
    return pd.DataFrame(dict(
        a=rng.random(n).round(1)*5, b=rng.integers(0, 12, n), c=pd.Categorical(rng.choice(list('vwxyz'), n)),
        d=rng.normal(size=n).round(1), flag=rng.integers(0, 2, n).astype(bool)))


X = frame()
Y = ((X.a > 2.2) ^ X.c.isin(['x', 'w']) ^ (X.b > 8) & X.flag).astype(int).to_numpy()
THREE, NUMBER = Y + (X.d > .5).to_numpy(), (X.a*2 + X.b).to_numpy()
PLAIN = X.drop(columns='c')


def xgb(name='XGBClassifier', y=Y, **how):
    library = pytest.importorskip('xgboost')
    return getattr(library, name)(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1, **how).fit(X, y), X


def lgbm(name='LGBMClassifier', y=Y, **how):
    library = pytest.importorskip('lightgbm')
    return getattr(library, name)(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1, min_data_per_group=5, **how).fit(X, y), X


def sk(make, data=PLAIN, y=Y, **how): return make(random_state=0, **how).fit(data, y), data


def booster(made, get):
    model, data = made
    return get(model), data


MADE = dict(
    xgboost=lambda: xgb(max_cat_to_onehot=3), xgboost_one_hot=lambda: xgb(max_cat_to_onehot=9),
    xgboost_booster=lambda: booster(xgb(), lambda m: m.get_booster()), xgboost_dart=lambda: xgb(booster='dart', rate_drop=.3),
    xgboost_forest=lambda: xgb('XGBRFClassifier'), xgboost_three=lambda: xgb(y=THREE), xgboost_number=lambda: xgb('XGBRegressor', NUMBER),
    lightgbm=lgbm, lightgbm_booster=lambda: booster(lgbm(), lambda m: m.booster_), lightgbm_three=lambda: lgbm(y=THREE),
    lightgbm_forest=lambda: lgbm(boosting_type='rf', bagging_freq=1, bagging_fraction=.6), lightgbm_number=lambda: lgbm('LGBMRegressor', NUMBER),
    forest=lambda: sk(ensemble.RandomForestClassifier, n_estimators=20), forest_three=lambda: sk(ensemble.RandomForestClassifier, y=THREE, n_estimators=20),
    forest_number=lambda: sk(ensemble.RandomForestRegressor, y=NUMBER, n_estimators=20), extra=lambda: sk(ensemble.ExtraTreesClassifier, n_estimators=20, max_depth=3),
    single=lambda: sk(tree.DecisionTreeClassifier, max_depth=4), boosting=lambda: sk(ensemble.GradientBoostingClassifier, n_estimators=20),
    boosting_three=lambda: sk(ensemble.GradientBoostingClassifier, y=THREE, n_estimators=20), boosting_exponential=lambda: sk(ensemble.GradientBoostingClassifier, n_estimators=20, loss='exponential'),
    hist=lambda: sk(ensemble.HistGradientBoostingClassifier, X, max_iter=20), hist_three=lambda: sk(ensemble.HistGradientBoostingClassifier, X, THREE, max_iter=20),
    hist_number=lambda: sk(ensemble.HistGradientBoostingRegressor, X, NUMBER, max_iter=20))


def read(source, data, **told):
    domain = tabular(data, **told)
    return exact(FrameModel(recognised(source), domain.write, domain.features), parse_trees), domain


@pytest.mark.night
@pytest.mark.parametrize('name', MADE)
def test_the_reading_equals_the_library(name):
    source, data = MADE[name]()
    trees, domain = read(source, data)
    x = domain.encode(data).x
    assert trees is not None and _same_scores(trees.scores(x), trees(x))


def test_32_bits_round_onto_a_cut():
    rng = np.random.default_rng(0)
    t = (rng.normal(size=2000)*10.**rng.integers(-6, 7, 2000)).astype(np.float32)
    last = _below(t)
    assert (last.astype(np.float32) < t).all() and (np.nextafter(last, np.inf).astype(np.float32) >= t).all()
    wide = t.astype(float) + rng.normal(size=2000)*np.spacing(t)
    last = widen_to_64(_rounded_down(wide))
    assert (last.astype(np.float32) <= wide).all() and (np.nextafter(last, np.inf).astype(np.float32) > wide).all()


def test_values_just_beyond_a_cut_are_what_the_library_calls_beyond():
    library = pytest.importorskip('xgboost')
    rng = np.random.default_rng(1)
    data = pd.DataFrame(dict(v=rng.random(400)*1e6))
    source = library.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1).fit(data, (data.v > 5e5).astype(int))
    trees, _ = read(source, data)
    bounds = trees.cuts[0]
    margin = lambda v: source.predict(pd.DataFrame(dict(v=v)), output_margin=True)
    assert (margin(bounds) != margin(np.nextafter(bounds, np.inf))).any()
    assert (margin(bounds) == margin(bounds - .5*np.spacing(bounds.astype(np.float32)))).all()


def test_levels_that_are_cut_as_codes_are_read():
    library = pytest.importorskip('lightgbm')
    source = library.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(X, Y, categorical_feature=[])
    trees, domain = read(source, X)
    assert trees is not None and _same_scores(trees.scores(domain.encode(X).x), trees(domain.encode(X).x))


@pytest.mark.night
def test_the_explainer_says_whether_a_model_is_read_or_asked():
    source, data = MADE['hist']()
    cf = GradualCF(source, tabular(data), 'sparse').fit(data)
    assert 'HistGradientBoostingClassifier, probabilities, 20 trees read exactly' in repr(cf) and 'read exactly' in repr(cf.model)
    cf = GradualCF(LogisticRegression().fit(PLAIN, Y), tabular(PLAIN), 'sparse').fit(PLAIN)
    assert 'LogisticRegression, probabilities, read as a sum' in repr(cf) and 'read as a sum' in repr(cf.model)
    cf = GradualCF(neighbors.KNeighborsClassifier(3).fit(PLAIN, Y), tabular(PLAIN), 'sparse').fit(PLAIN)
    assert 'KNeighborsClassifier, probabilities, asked' in repr(cf) and 'asked' in repr(cf.model)


def test_what_cannot_be_read_goes_through_the_frame():
    library = pytest.importorskip('xgboost')
    linear = library.XGBClassifier(booster='gblinear', n_estimators=3, n_jobs=1).fit(PLAIN.drop(columns='flag'), Y)
    assert parse_trees(linear) is None and read(linear, PLAIN.drop(columns='flag'))[0] is None
    lgb = pytest.importorskip('lightgbm')
    leaves = lgb.LGBMClassifier(n_estimators=3, linear_tree=True, verbose=-1, n_jobs=1).fit(PLAIN, Y)
    assert read(leaves, PLAIN)[0] is None and parse_trees(leaves).leans
    bags = ensemble.BaggingClassifier(leaves, 2, random_state=0).fit(PLAIN, Y)
    assert parse_trees(bags) is None  # which are no sums of cells
    assert read(LogisticRegression().fit(PLAIN, Y), PLAIN)[0] is None


def test_a_reading_that_differs_from_the_library_is_refused():
    source, data = MADE['hist']()
    trees, domain = read(source, data)
    off = lambda s: (e := parse_trees(s))._replace(link=e.link._replace(base=e.link.base + .01))
    assert trees is not None and exact(FrameModel(recognised(source), domain.write, domain.features), off) is None


def test_early_stopping_counts_the_rounds_that_are_used():
    library = pytest.importorskip('xgboost')
    source = library.XGBClassifier(n_estimators=60, max_depth=4, learning_rate=1., early_stopping_rounds=2, enable_categorical=True, n_jobs=1)
    rng = np.random.default_rng(3)
    source.fit(X, Y, eval_set=[(X, rng.permutation(Y))], verbose=False)
    trees, _ = read(source, X)
    assert trees is not None and len(trees.trees.root) == source.best_iteration + 1 < 60


@pytest.mark.parametrize('seed', range(6))
def test_an_isolation_forest_is_read(seed):
    "Whether a row is an outlier, against all rows there are; some forests see a part of the columns, or of the rows."
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(np.stack([rng.integers(0, 6, 150), rng.poisson(2, 150).clip(0, 6), rng.choice([0, 3, 6], 150)], 1), columns=list('abc')).astype(float)
    share = ['auto', .2][seed % 2]
    forest = ensemble.IsolationForest(n_estimators=3 + 5*seed, max_features=[1., .7][seed % 3 == 1], max_samples=20 + 20*seed, contamination=share, random_state=seed).fit(rows)
    forest.offset_ += 1e-6  # a row at the bar, which is no outlier, is none of the question
    cf = GradualCF(forest, tabular(rows, read=dict(integer=list('abc'))), 'sparse').fit(rows)
    every = pd.DataFrame(np.stack(np.meshgrid(*(np.arange(rows[c].min(), rows[c].max() + 1) for c in rows)), -1).reshape(-1, 3), columns=list('abc'))
    said = forest.predict(every)
    for target in (1, -1):
        asked = rows[forest.predict(rows) == -target].head(5)
        answers = cf.explain(asked, target, proof='columns')
        fewest = [(every[said == target].to_numpy() != row).sum(1).min() for row in asked.to_numpy()]
        assert (answers.raw.to_numpy(float) != asked.to_numpy()).sum(1).tolist() == fewest and {*answers.proof} == {'optimal'}
        assert (forest.predict(answers.raw.astype(float)) == target).all()
