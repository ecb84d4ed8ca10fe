"""What a pipeline reads is told by the classes of its steps: features equal the pipeline's own, and what may read several columns is asked."""
import itertools
import pickle
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import compose, decomposition, ensemble, feature_selection, impute, naive_bayes, pipeline, preprocessing, random_projection, svm, tree
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPRegressor

from gradual_cf.all import GradualCF, tabular
from gradual_cf.search import pipelines, proven
from gradual_cf.search.boxes import grid_of
from gradual_cf.search.pipelines import entries_at, all_positions, opened_features
from gradual_cf.search.readings import has_bounds
from gradual_cf.search.pipelines import steps_of

rng, N = np.random.default_rng(0), 500
X = pd.DataFrame(dict(income=rng.integers(15, 90, N)*1000., age=rng.integers(4, 15, N)*5, debt=rng.integers(0, 60, N)*200.,
                      job=pd.Categorical(rng.choice(['none', 'part', 'full', 'own', 'rare'], N, p=[.3, .3, .2, .18, .02])), flag=rng.integers(0, 2, N)))
Y = np.where(X.income/1000 + .4*X.age - X.debt/300 + 20*X.flag*(X.job == 'full') + rng.normal(0, 8, N) > 50, 'yes', 'no')
X.loc[rng.random(N) < .2, 'income'] = np.nan
NUMBERS, FULL = ['income', 'age', 'debt', 'flag'], X.assign(income=X.income.fillna(40000.))
fill, one, make = impute.SimpleImputer, preprocessing.OneHotEncoder(handle_unknown='ignore'), pipeline.make_pipeline
P = preprocessing


class Doubled(P.StandardScaler):
    "A subclass may do anything."


def beside(numbers, levels=one, **how): return compose.make_column_transformer((numbers, NUMBERS), (levels, ['job']), **how)
def filled(*steps, **how): return beside(make(fill(), *steps), **how)


READ = dict(
    plain=filled(), median=beside(fill(strategy='median', add_indicator=True)), constant=beside(fill(strategy='constant', fill_value=-1)),
    scaled=filled(P.StandardScaler()), ranged=filled(P.MinMaxScaler(clip=True)), robust=filled(P.RobustScaler()), power=filled(P.PowerTransformer()),
    ranks=filled(P.QuantileTransformer(n_quantiles=20)), signs=filled(P.Binarizer(threshold=1000)), splines=filled(P.SplineTransformer(4)),
    bins=filled(P.KBinsDiscretizer(4, encode='onehot-dense', quantile_method='averaged_inverted_cdf')), logs=filled(P.FunctionTransformer(np.log1p)),
    each=filled(P.FunctionTransformer(np.vectorize(lambda v: v % 7))), dropped=beside(fill(), P.OneHotEncoder(drop='first')),
    seldom=beside(fill(), P.OneHotEncoder(min_frequency=.05)), ordered=beside(fill(), P.OrdinalEncoder()), target=beside(fill(), P.TargetEncoder(random_state=0)),
    best=make(filled(), feature_selection.SelectKBest(feature_selection.f_classif, k=5)), moving=make(filled(), feature_selection.VarianceThreshold()),
    both=make(filled(), pipeline.make_union(P.StandardScaler(), P.MinMaxScaler())),
    frames=beside(make(fill(), P.StandardScaler()), P.OneHotEncoder(sparse_output=False)).set_output(transform='pandas'),
    places=compose.make_column_transformer((fill(), [0, 2]), (fill(), slice('age', 'age')), (one, compose.make_column_selector(dtype_include='category')), remainder='passthrough'),
    alone=compose.make_column_transformer((make(fill(), P.FunctionTransformer(lambda v: np.c_[np.asarray(v) > 30000, np.asarray(v)])), ['income']), (one, ['job']), remainder='passthrough'),
    twice=compose.make_column_transformer((fill(), ['income', 'debt']), (make(fill(), P.StandardScaler()), ['income']), (one, ['job'])),
    nested=make(compose.make_column_transformer((make(fill(), make(P.StandardScaler())), NUMBERS), (make(one), ['job'])), P.MaxAbsScaler()))
ASKED = dict(
    neighbours=beside(impute.KNNImputer()), rounds=beside(impute.IterativeImputer(random_state=0, max_iter=2)), norms=filled(P.Normalizer()),
    function=filled(P.FunctionTransformer(lambda v: np.c_[v, (np.asarray(v)[:, 0] == 0) & (np.asarray(v)[:, 2] == 0)])), products=filled(P.PolynomialFeatures(2)),
    components=filled(P.StandardScaler(), decomposition.PCA(2)), projected=filled(random_projection.GaussianRandomProjection(2, random_state=0)),
    subclass=filled(Doubled()), kernel=filled(decomposition.KernelPCA(2)))


def explained(before, last, rows=X, intent='sparse'):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = pipeline.make_pipeline(before, last).fit(rows, Y)
    return GradualCF(model, tabular(rows, read=dict(missing='keep')) if rows is X else tabular(rows), intent).fit(rows)


@pytest.mark.parametrize('name', READ)
def test_features_of_each_column_are_those_of_the_pipeline(name):
    "On random legal rows, and on training rows with missing cells, to the last bit."
    cf = explained(READ[name], tree.DecisionTreeClassifier(max_depth=4, random_state=0))
    assert has_bounds(cf) and 'asked, since' not in cf.model.about, cf.model.about
    grid, x = grid_of(cf.domain.features), cf.x_train.double().numpy()
    f = opened_features(cf.model, [steps_of(cf.model.predictor.source)[:-1]], grid, x)
    rows, draw = x[:200].copy(), np.random.default_rng(1)
    at = [draw.integers(0, len(v), 200) for v in f.at]
    for g, (there, place) in enumerate(zip(f.at, at)): rows[:, grid.first[g]:grid.first[g + 1]] = entries_at(grid, g, there[place])
    own = f.of(rows)
    for g, (values, place) in enumerate(zip(f.values, at)):
        assert np.array_equal(own[:, f.owner == g], values[place], equal_nan=True)
        assert np.array_equal(f.at[g], all_positions(grid, g))
    assert np.array_equal(own[:, f.owner < 0], np.tile(f.still[f.owner < 0], (200, 1)), equal_nan=True)
    some = torch.from_numpy(rows)
    assert torch.equal(cf.model.table(some), cf.model.read(cf.model.write(some))) # asked by its table: the same bits


@pytest.mark.parametrize('name', ASKED)
def test_what_may_read_several_columns_is_asked(name):
    "No proof stands on rows that were tried; the sentence names the step, and answers are the model's own."
    for last in (tree.DecisionTreeClassifier(max_depth=4, random_state=0), naive_bayes.GaussianNB()):
        cf = explained(ASKED[name], last)
        rows = X[cf.model.predictor.source.predict(X) == 'no'][:6]
        answers = cf.explain(rows, 'yes')
        assert not has_bounds(cf) and not any(answers.proof), answers.proof
        assert 'several columns' in cf.model.about and cf.model.table is None, cf.model.about
        assert ((cf.model.predictor.source.predict(answers.raw) == 'yes') == answers.valid).all()


@pytest.mark.parametrize('before, read', [(decomposition.PCA(2), True), (make(P.StandardScaler(), decomposition.PCA(2)), True), (make(P.PowerTransformer(), decomposition.PCA(2)), True),
                                          (P.PolynomialFeatures(2), False), (make(P.PolynomialFeatures(2), decomposition.PCA(3)), False)])
def test_a_line_over_sums_is_a_sum(before, read):
    "Components of single columns leave a linear model a sum of one term a column; behind products nothing is."
    cf = explained(before, LogisticRegression(max_iter=2000), FULL[NUMBERS])
    assert has_bounds(cf) == read
    assert not has_bounds(explained(before, naive_bayes.GaussianNB(), FULL[NUMBERS]))


@pytest.mark.parametrize('last', [LogisticRegression(), svm.SVC(), ensemble.HistGradientBoostingClassifier(max_iter=20), ensemble.RandomForestClassifier(5, random_state=0)])
def test_answers_by_the_table_are_those_of_the_whole(last):
    "Whatever stands at the end, read or not; the steps are called a few times, and words about the model stay."
    cf = explained(READ['scaled'], last, intent=None)
    about, rows = str(cf.model), X[cf.model.predictor.source.predict(X) == 'no'][:8]
    assert cf.model.table is not None
    seen, whole = [], cf.model.write
    cf.model.write = lambda x: seen.append(len(x)) or whole(x)
    quick = cf.explain(rows, 'yes')
    few, seen[:] = len(seen), []
    cf.model.table = None
    slow = cf.explain(rows, 'yes')
    assert quick.raw.equals(slow.raw) and quick.proof == slow.proof and str(cf.model) == about and few <= len(seen) + 1
    cf.model.write = whole
    assert pickle.loads(pickle.dumps(cf.model)).reader is None


def test_the_table_asks_again_between_levels_and_begins_anew(monkeypatch):
    cf = explained(READ['plain'], ensemble.RandomForestClassifier(5, random_state=0))
    x = cf.x_train[:50].clone()
    x[:, -5:-1] *= .5 # neither level
    assert torch.equal(cf.model.table(x), cf.model.read(cf.model.write(x)))
    monkeypatch.setattr(pipelines, 'TABLE_NUMBERS', 1)
    assert torch.equal(cf.model.table(cf.x_train), cf.model.read(X)) and len(cf.model.table.met[0].key) < len(X)


@pytest.mark.parametrize('library', ['lightgbm', 'xgboost', 'sklearn'])
def test_listed_levels_behind_steps_are_read(library):
    "Categories of pandas pass through a ColumnTransformer, missing ones too; no proof is denied by any other single level or number."
    made = dict(lightgbm=('LGBMClassifier', dict(n_estimators=15, verbose=-1, n_jobs=1)), xgboost=('XGBClassifier', dict(n_estimators=15, n_jobs=1, enable_categorical=True)))
    name, how = made.get(library, ('HistGradientBoostingClassifier', dict(max_iter=15, categorical_features='from_dtype')))
    last = getattr(ensemble if library == 'sklearn' else pytest.importorskip(library), name)(**how)
    rows = X.assign(job=X.job.where(np.random.default_rng(2).random(N) > .1))
    before = compose.make_column_transformer((make(fill(), P.StandardScaler()), NUMBERS), ('passthrough', ['job']), verbose_feature_names_out=False)
    model = make(before.set_output(transform='pandas'), last).fit(rows, Y == 'yes')
    cf = GradualCF(model, tabular(rows, read=dict(missing='keep')), 'sparse').fit(rows)
    some = rows[np.asarray(model.predict(rows)) == 0][:12]
    answers = cf.explain(some, 1)
    assert 'read as trees behind' in str(cf.model) and set(answers.proof) & {'optimal'} and cf.model.table is not None
    for i, proof in enumerate(answers.proof):
        one = [some.iloc[[i]*len(v)].reset_index(drop=True).assign(**{c: v.array}) for c in rows for v in [rows[c].dropna().drop_duplicates()]]
        there = model.predict(pd.concat([f.astype(rows.dtypes) if f.flag.dtype != object else f for f in one])).any()
        assert not there or answers.size[i] == 1 or proof not in ('optimal', 'none exists')


@pytest.mark.parametrize('optimal', [None, 'columns', 'distance'])
def test_a_proof_that_a_real_row_denies_is_an_error(monkeypatch, optimal):
    "Bounds are held against real rows of the target under the rules of the question."
    cf = explained(READ['plain'], tree.DecisionTreeClassifier(max_depth=4, random_state=0))
    rows, real = X[cf.model.predictor.source.predict(X) == 'no'][:4], proven._by_boxes
    assert cf.explain(rows, 'yes', proof=optimal).valid.all()
    def false(task, *more): return real(task, *more)._replace(bound=np.full(len(task.q), np.inf), distance_bound=np.full(len(task.q), np.inf), size=np.full(len(task.q), np.inf))
    monkeypatch.setattr(proven, '_by_boxes', false)
    with pytest.raises(RuntimeError, match='error of the package'): cf.explain(rows, 'yes', proof=optimal)


def test_absent_cells_are_missing_for_xgboost():
    xgboost = pytest.importorskip('xgboost')
    model = pipeline.make_pipeline(beside(fill(), P.OneHotEncoder(), sparse_threshold=1.), xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1))
    cf = GradualCF(model.fit(FULL, Y == 'yes'), tabular(FULL), 'sparse').fit(FULL)
    rows = FULL[cf.model.predictor.source.predict(FULL) == 0][:8]
    answers = cf.explain(rows, 1)
    assert has_bounds(cf) and set(answers.proof) == {'optimal'} and (cf.model.predictor.source.predict(answers.raw) == 1).all()


@pytest.mark.parametrize('tiny', [0., 1e-9, 1e-3, -1e-7, 3e-12])
@pytest.mark.parametrize('step', [1., 1000., 1e9])
def test_every_training_cell_is_a_place_of_the_search(tiny, step):
    "Cells many magnitudes below the steps of their column are legal places, bounds may name them, and proofs know them."
    df = pd.DataFrame(dict(debt=np.where(rng.random(400) < .2, tiny, rng.integers(1, 60, 400)*step), k=rng.integers(0, 4, 400)))
    c = tabular(df).features[0]
    cells = np.unique(df.debt)
    assert np.array_equal(c.at(c.place(cells)), cells)
    model = tree.DecisionTreeClassifier(random_state=0).fit(df, df.debt < step/2)
    cf, rows = GradualCF(model, tabular(df), 'sparse').fit(df), df[df.debt > 5*step][:3]
    for bound in (None, step, tiny):
        answers = cf.explain(rows, True, bounds={} if bound is None else {'debt': (None, bound)})
        assert set(answers.proof) == {'optimal'} and model.predict(answers.raw).all()


SMALL = pd.DataFrame(dict(a=rng.integers(1, 7, N)*1., b=rng.integers(1, 7, N)*1., job=rng.choice(['part', 'full', 'own'], N), town=rng.choice(['x', 'y', 'z'], N)))
PRICE = np.exp(.4*SMALL.a - .2*SMALL.b + .5*(SMALL.job == 'full') + rng.normal(0, .1, N))
EVERY = pd.DataFrame(itertools.product(range(1, 7), range(1, 7), ['part', 'full', 'own'], ['x', 'y', 'z']), columns=list(SMALL)).astype(SMALL.dtypes)
CODED = compose.make_column_transformer((P.StandardScaler(), ['a', 'b']), (one, ['job', 'town']))
GROWN, LAYERS = ensemble.RandomForestRegressor(5, max_depth=4, random_state=0), MLPRegressor(hidden_layer_sizes=(4,), solver='lbfgs', max_iter=200, random_state=0)


def target(regressor, **how): return compose.TransformedTargetRegressor(regressor, check_inverse=False, **how)


CURVES = dict(logs=make(CODED, target(GROWN, func=np.log1p, inverse_func=np.expm1)), outside=target(make(CODED, GROWN), func=np.log1p, inverse_func=np.expm1),
              line=make(CODED, target(Ridge(), func=np.log, inverse_func=np.exp)), falls=make(CODED, target(GROWN, func=np.negative, inverse_func=np.negative)),
              layers=make(CODED, target(LAYERS, transformer=make(P.PowerTransformer(), P.MinMaxScaler()))), ranks=make(CODED, target(GROWN, transformer=P.QuantileTransformer(n_quantiles=20))),
              poisson=make(CODED, PoissonRegressor()), gamma=make(CODED, GammaRegressor()))


def judged(cf, model, rows, there, goal):
    "Whether no proof of answers is denied by any legal row, all of which are asked; how many there are."
    answers = cf.explain(rows, goal)
    for i, proof in enumerate(answers.proof):
        fewest = (EVERY[there] != rows.iloc[i]).sum(axis=1).min() if there.any() else np.inf
        assert (proof == 'none exists') == (fewest == np.inf)
        assert proof != 'optimal' or (answers.raw.iloc[i] != rows.iloc[i]).sum() == fewest
    return sum(proof in ('optimal', 'none exists') for proof in answers.proof)


@pytest.mark.parametrize('name', CURVES)
def test_a_regressor_of_another_target_is_read(name):
    "An interval of prices is an interval of what is summed up: in the middle, at numbers that are met, without an end, out of reach."
    model = CURVES[name].fit(SMALL, PRICE)
    cf = GradualCF(model, tabular(SMALL, roles=dict.fromkeys(SMALL, 'free')), 'sparse').fit(SMALL)
    assert ('within TransformedTargetRegressor' in cf.model.about) == (name not in ('poisson', 'gamma')) and 'read as' in cf.model.about, cf.model.about
    says, own = model.predict(EVERY), np.sort(model.predict(SMALL))
    for goal in ((own[N//2] + 1e-6, own[N//2] + 1.), (own[9*N//10] - 1e-6, np.inf), (-np.inf, own[20] + 1e-6), (says.max() + 1, np.inf)):
        rows = SMALL[(model.predict(SMALL) < goal[0]) | (model.predict(SMALL) > goal[1])][:5]
        assert judged(cf, model, rows, (says >= goal[0]) & (says <= goal[1]), goal) == len(rows)


def test_numbers_behind_a_function_that_may_turn_are_asked():
    for inverse in (np.square, lambda v: v*np.sin(v)):
        model = make(CODED, target(Ridge(), func=np.sqrt, inverse_func=inverse)).fit(SMALL, PRICE)
        cf = GradualCF(model, tabular(SMALL), 'sparse').fit(SMALL)
        assert not has_bounds(cf) and 'may turn' in cf.model.about, cf.model.about


OTHERS = dict(category_encoders='OneHotEncoder OrdinalEncoder TargetEncoder CountEncoder BinaryEncoder WOEEncoder SumEncoder CatBoostEncoder HashingEncoder',
              **{'feature_engine.encoding': 'OneHotEncoder MeanEncoder CountFrequencyEncoder WoEEncoder'}, skrub='TableVectorizer SquashingScaler')


@pytest.mark.parametrize('library, name', [(library, name) for library, names in OTHERS.items() for name in names.split()])
def test_encoders_of_other_makes_are_read_by_their_classes(library, name):
    pytest.importorskip(library.split('.')[0])
    steps = [getattr(import_module(library), name)(**dict(cols=['job', 'town']) if library == 'category_encoders' else {})]
    if name == 'SquashingScaler': steps = [compose.make_column_transformer((steps[0], ['a', 'b']), (one, ['job', 'town']))]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = make(*steps, tree.DecisionTreeClassifier(max_depth=5, random_state=0)).fit(SMALL, (PRICE > 3).astype(int))
        cf = GradualCF(model, tabular(SMALL, roles=dict.fromkeys(SMALL, 'free')), 'sparse').fit(SMALL)
        says, rows = model.predict(EVERY) == 1, SMALL[model.predict(SMALL) == 0][:10]
        if name == 'HashingEncoder': assert 'several columns (HashingEncoder)' in cf.model.about
        else: assert judged(cf, model, rows, says, 1) == len(rows), cf.model.about
