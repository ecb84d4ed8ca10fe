"The cheapest answer against asking every legal row there is, by code that shares nothing with the search."
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from cover import cover
from sklearn import compose, ensemble, impute, linear_model, neural_network, pipeline, preprocessing, tree
from torch import nn

from gradual_cf.gradual import GradualCF
from gradual_cf.search import bounds, boxes, proven
from gradual_cf.search.readings import _bounded
from gradual_cf.search.proven import _NONE_EXISTS, _IS_OPTIMAL, cheapest, prove, region, ways
from gradual_cf.models.fitted import predictor
from gradual_cf.data.tables import tabular
from gradual_cf.use.drawing import _picture

pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')
HAIR = 1e-6  # a probability so near to the bar may count either way


def table(rng, n=220, missing=False, category=True):
    "Few values in each column: whole numbers, a heavy tail stored as floats, levels; some cells missing."
    X = pd.DataFrame(dict(a=rng.integers(0, 6, n), b=rng.integers(-3, 4, n), c=np.minimum(rng.pareto(1.2, n).round(0), 30)))
    if category: X['kind'] = pd.Categorical(rng.choice(['x', 'y', 'z', 'w'], n, p=[.4, .3, .2, .1]))
    if missing: X.loc[rng.random(n) < .2, 'c'] = np.nan
    if missing and category: X.loc[rng.random(n) < .2, 'kind'] = None
    return X


def labels(rng, X, classes=2):
    z = rng.normal(size=3) @ np.stack([X.a - 2.5, X.b, np.sign(X.c.fillna(2) - 2)*2])
    if 'kind' in X: z = z + 2*rng.normal()*(X.kind == 'x').to_numpy() + 2*((X.kind == 'z') & (X.a > 2)).to_numpy()
    z = z + rng.normal(0, .7, len(X))
    return np.searchsorted(np.quantile(z, np.arange(1, classes)/classes), z)


def coded(before, last):
    "A pipeline of scaler, imputer, encoder and a model."
    numbers = pipeline.make_pipeline(impute.SimpleImputer(strategy='median'), before)
    words = pipeline.make_pipeline(impute.SimpleImputer(strategy='most_frequent'), preprocessing.OneHotEncoder(handle_unknown='ignore'))
    return pipeline.make_pipeline(compose.make_column_transformer((numbers, ['a', 'b', 'c']), (words, ['kind'])), last)


def ordinal(last):
    words = preprocessing.OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1, encoded_missing_value=-2)
    return pipeline.make_pipeline(compose.make_column_transformer((words, ['kind']), remainder='passthrough'), last)


def xgb(**how): return pytest.importorskip('xgboost').XGBClassifier(n_estimators=7, max_depth=3, enable_categorical=True, n_jobs=1, **how)


def lgbm(**how):
    return pytest.importorskip('lightgbm').LGBMClassifier(n_estimators=7, num_leaves=6, verbose=-1, n_jobs=1, min_child_samples=5, min_data_per_group=5, **how)


MLP = dict(hidden_layer_sizes=(7,), max_iter=60, solver='lbfgs', random_state=0)
# name -> (model, whether it reads categories, whether it reads missing cells, classes)
MODELS = dict(
    hist=(lambda: ensemble.HistGradientBoostingClassifier(max_iter=7, max_depth=3, min_samples_leaf=5, categorical_features='from_dtype', random_state=0), True, True, 2),
    hist_three=(lambda: ensemble.HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5, categorical_features='from_dtype', random_state=0), True, True, 3),
    forest=(lambda: ensemble.RandomForestClassifier(7, max_depth=4, random_state=0, n_jobs=1), False, True, 2),
    forest_three=(lambda: ensemble.RandomForestClassifier(6, max_depth=4, random_state=0, n_jobs=1), False, False, 3),
    single=(lambda: tree.DecisionTreeClassifier(random_state=0), False, True, 2),
    boosting=(lambda: ensemble.GradientBoostingClassifier(n_estimators=7, random_state=0), False, False, 2),
    xgboost=(lambda: xgb(), True, True, 2), xgboost_three=(lambda: xgb(), True, True, 3),
    lightgbm=(lambda: lgbm(), True, True, 2), lightgbm_forest=(lambda: lgbm(boosting_type='rf', bagging_freq=1, bagging_fraction=.6), True, True, 2),
    logistic=(lambda: linear_model.LogisticRegression(), False, False, 2), ridge=(lambda: linear_model.RidgeClassifier(), False, False, 2),
    logistic_three=(lambda: linear_model.LogisticRegression(max_iter=500), False, False, 3),
    pipe_logistic=(lambda: coded(preprocessing.StandardScaler(), linear_model.LogisticRegression()), True, True, 2),
    pipe_mlp=(lambda: coded(preprocessing.StandardScaler(), neural_network.MLPClassifier(**MLP)), True, True, 2),
    pipe_mlp_three=(lambda: coded(preprocessing.MinMaxScaler(), neural_network.MLPClassifier(**MLP)), True, True, 3),
    pipe_forest=(lambda: coded(preprocessing.StandardScaler(), ensemble.RandomForestClassifier(7, max_depth=4, random_state=0)), True, True, 2),
    pipe_boosting=(lambda: coded(preprocessing.QuantileTransformer(n_quantiles=20), ensemble.GradientBoostingClassifier(n_estimators=7, random_state=0)), True, True, 2),
    pipe_ordinal=(lambda: ordinal(ensemble.HistGradientBoostingClassifier(max_iter=7, max_depth=3, min_samples_leaf=5, random_state=0)), True, True, 2))


def rules(rng, X):
    "Random rules of a question."
    return dict(immutable=['a'] if rng.random() < .2 else [], increase_only=['b'] if rng.random() < .3 else [],
                decrease_only=['c'] if rng.random() < .2 else [], bounds={'a': (1, 4)} if rng.random() < .3 else {},
                max_changes=int(rng.integers(1, 5)))


def every_row(domain, X, row, told):
    "All legal rows that a row may become, raw, and what they cost: how many columns, and how far."
    columns, choices, far = domain.features, [], []
    for c in columns:
        own = row[c.name]
        gone = bool(pd.isna(own))
        fixed = c.name in told['immutable'] or gone and not told.get('leave')
        if c.kind == 'category':
            new = [] if fixed else [v for v in c.offered if not (v == own or v is None and gone)]
            choices.append([own, *new])
            far.append([0., *[2.]*len(new)])
            continue
        step = 1. if c.unit else 10.**-c.digits
        low, high = told['bounds'].get(c.name, (-np.inf, np.inf))
        values = [round(k*step, 6) + 0. for k in range(int(np.ceil(c.low/step - 1e-9)), int(np.floor(c.high/step + 1e-9)) + 1)]
        values = [v for v in values if low <= v <= high and v not in c.codes and v != own and not fixed]
        if c.name in told['increase_only'] and not gone: values = [v for v in values if v >= own]
        if c.name in told['decrease_only'] and not gone: values = [v for v in values if v <= own]
        place = lambda v: (v - c.origin)/c.span
        start = -(1 + 2.**-23) if gone else place(own)
        choices.append([own, *values])
        far.append([0., *(abs(place(v) - start) for v in values)])
    many = np.array(list(itertools.product(*(np.arange(len(v)) for v in choices))))
    out = pd.DataFrame({c.name: pd.Series(v, dtype=object).iloc[many[:, g]].to_numpy() for g, (c, v) in enumerate(zip(columns, choices))})
    for name in X: out[name] = out[name].astype(X[name].dtype if X[name].dtype.kind != 'i' else 'int64')
    return out, (many > 0).sum(1), np.stack([np.array(v)[many[:, g]] for g, v in enumerate(far)], 1)


def probability(model, frame, target):
    if hasattr(model, 'predict_proba'): return model.predict_proba(frame)[:, target]
    z = model.decision_function(frame)
    return 1/(1 + np.exp(-z*(2*target - 1)))


def compared(cf, model, X, rows, target, told, optimal, tau=.5, weight=None, **how):
    "Each proven answer against every legal row; returns how many there were."
    p = cheapest(cf, rows, target, optimal, **{k: v for k, v in told.items() if k != 'leave'}, **how)
    weight = np.ones(len(X.columns)) if weight is None else weight
    for i in range(len(rows)):
        every, columns, far = every_row(cf.domain, X, rows.iloc[i], told)
        legal = columns <= told['max_changes']
        said = probability(model, every, target[i])
        cost = (far*weight).sum(1)
        for bar in (tau + HAIR, tau - HAIR): # a tie may count either way
            ok = legal & (said >= bar)
            if optimal == 'columns':
                least = columns[ok].min() if ok.any() else np.inf
                near = cost[ok & (columns == least)].min() if ok.any() else np.inf
            else: least = near = cost[ok].min() if ok.any() else np.inf
            here = (p.size[i], p.distance[i])
            if here == pytest.approx((least, near), abs=2e-6): break
        else: raise AssertionError((i, here, (least, near), p.proof[i], rows.iloc[i].to_dict(), told))
        if np.isinf(least): assert p.proof[i] == _NONE_EXISTS and not p.answers.valid[i]
        else:
            assert p.proof[i] == _IS_OPTIMAL and p.answers.valid[i]
            changed = (p.answers.xp - p.answers.x).abs().sum(1)[i].item()
            if (weight == 1).all(): assert changed == pytest.approx(p.distance[i], abs=1e-5)
    assert cf.domain.legal(p.answers.data, p.answers.raw).all()
    return len(rows)


def asked_everything(name, rng, seed, optimal):
    "One made table, model and question; `'cost'` has prices of its own."
    make, category, missing, classes = MODELS[name]
    X = table(rng, missing=missing and seed % 2 == 1 and (category or name != 'boosting'), category=category)
    y = labels(rng, X, classes)
    model = make().fit(X, y)
    leave = seed % 2 == 1 and rng.random() < .5
    price = rng.uniform(.2, 4, 2) if optimal == 'cost' else np.ones(2)
    prices = dict(cost=dict(zip('ab', price))) if optimal == 'cost' else {}
    cf = GradualCF(model, tabular(X, integer=['c'], missing='level' if leave else 'keep', **prices), tau=float(rng.choice([.5, .57]))).fit(X)
    rows = X.sample(4, random_state=seed)
    rows.iloc[0, 2] = 2.5 if pd.notna(rows.iloc[0, 2]) else np.nan  # where nobody may propose a value
    target = (model.predict(rows) + 1) % classes
    told = rules(rng, X) | dict(leave=leave)
    weight = np.r_[price, 1., .5][:X.shape[1]] if optimal == 'cost' else None # another level costs its price once
    assert compared(cf, model, X, rows, target, told, optimal, cf.settings.tau, weight, start=seed % 2 == 0) == 4


@pytest.mark.parametrize('optimal', ['columns', 'distance'])
@pytest.mark.parametrize('name', MODELS)
def test_the_cheapest_equals_asking_everything(name, optimal):
    "With and without gaps by turns, so that models, kinds of proofs and tables all meet; the soak asks as often as one likes."
    seed = (list(MODELS).index(name) + (optimal == 'columns')) % 2
    asked_everything(name, np.random.default_rng(100*seed + 7*list(MODELS).index(name) + (optimal == 'columns')), seed, optimal)


def fitted(rng, name='hist', **how):
    make, category, missing, classes = MODELS[name]
    X = table(rng, category=category)
    y = labels(rng, X, classes)
    model = make().fit(X, y)
    return GradualCF(model, tabular(X, integer=['c'], **how)).fit(X), model, X


FREE = dict(immutable=[], increase_only=[], decrease_only=[], bounds={}, max_changes=4)


@pytest.mark.parametrize('name', ['hist', 'forest', 'pipe_mlp', 'logistic'])
def test_prices_of_the_table_are_kept(name):
    cf, model, X = fitted(np.random.default_rng(5), name, cost={'a': 3., 'b': (.5, 2.)})
    rows = X.head(6)
    target = 1 - model.predict(rows)
    p = cheapest(cf, rows, target, 'cost')
    for i in range(len(rows)):
        every, columns, far = every_row(cf.domain, X, rows.iloc[i], FREE)
        weight = np.ones((len(every), far.shape[1]))
        weight[:, 0] = 3
        weight[:, 1] = np.where(every.b > rows.b.iloc[i], .5, 2.)
        if 'kind' in X: weight[:, 3] = .5 # another level costs its price once
        ok = probability(model, every, target[i]) >= .5
        assert p.size[i] == pytest.approx((far*weight).sum(1)[ok].min(), abs=2e-6), i
        assert p.size[i] == pytest.approx(cf.domain.cost(p.answers.x, p.answers.xp)[i].item(), abs=1e-5)


def test_a_function_of_ones_own_is_a_price():
    steps = lambda before, after: np.where(np.abs(after - before) > 2, .1, 1.)*(after != before)  # far is cheaper than near
    cf, model, X = fitted(np.random.default_rng(6), cost={'a': steps})
    rows = X.head(6)
    target = 1 - model.predict(rows)
    p = cheapest(cf, rows, target, 'cost')
    for i in range(len(rows)):
        every, columns, far = every_row(cf.domain, X, rows.iloc[i], FREE)
        far[:, 0], far[:, 3] = steps(rows.a.iloc[i], every.a.to_numpy(float)), far[:, 3]/2
        ok = probability(model, every, target[i]) >= .5
        assert p.size[i] == pytest.approx(far.sum(1)[ok].min(), abs=2e-6), i


def test_a_number_has_to_lie_in_its_interval():
    rng = np.random.default_rng(7)
    X = table(rng, category=False)
    y = X.a*2. - X.b + np.minimum(X.c, 5)
    for model in (ensemble.RandomForestRegressor(7, max_depth=5, random_state=0), linear_model.LinearRegression()):
        model.fit(X, y)
        cf = GradualCF(model, tabular(X, integer=['c'])).fit(X)
        p = cheapest(cf, X.head(6), (7.2, 8.1), 'distance')
        for i in range(6):
            every, columns, far = every_row(cf.domain, X, X.iloc[i], FREE)
            said = model.predict(every)
            ok = (said >= 7.2) & (said <= 8.1)
            assert p.size[i] == pytest.approx(far.sum(1)[ok].min() if ok.any() else np.inf, abs=2e-6)
        usual = cf.explain(X.head(6), (7.2, 8.1)) # fewest columns, proven, where nobody asked
        for i in range(6):
            every, columns, far = every_row(cf.domain, X, X.iloc[i], FREE)
            ok = (model.predict(every) >= 7.2) & (model.predict(every) <= 8.1)
            few = columns[ok].min() if ok.any() else np.inf
            assert usual.proof[i] == (_IS_OPTIMAL if ok.any() else _NONE_EXISTS) and usual.size[i] == few
            if ok.any(): assert (usual.xp - usual.x).abs().sum(1)[i].item() == pytest.approx(far.sum(1)[ok & (columns == few)].min(), abs=1e-5)


def test_several_models_have_to_agree():
    rng = np.random.default_rng(8)
    X = table(rng, category=False)
    y = labels(rng, X)
    models = [linear_model.LogisticRegression().fit(X, y), ensemble.GradientBoostingClassifier(n_estimators=7).fit(X, y)]
    cf = GradualCF(models, tabular(X, integer=['c'])).fit(X)
    rows = X[(models[0].predict(X) == 0) & (models[1].predict(X) == 0)].head(6)
    p = cheapest(cf, rows, 1, 'distance')
    for i in range(len(rows)):
        every, columns, far = every_row(cf.domain, X, rows.iloc[i], FREE)
        ok = np.min([probability(m, every, 1) for m in models], 0) >= .5
        assert p.size[i] == pytest.approx(far.sum(1)[ok].min() if ok.any() else np.inf, abs=2e-6)


@pytest.mark.parametrize('scaled', [None, False])
@pytest.mark.parametrize('scale', ['range', 'quantile'])
def test_networks_of_torch(scaled, scale):
    rng = np.random.default_rng(9)
    X = table(rng, category=False)
    domain = tabular(X, integer=['c'], scale=scale)
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 2))
    model = predictor(net, domain, scaled=scaled) if scale == 'range' else net
    z = model(domain.encode(X).x.float()).detach()
    net[-1].bias.data[1] -= (z[:, 1] - z[:, 0]).median()
    cf = GradualCF(model, domain).fit(X)
    grid = pd.DataFrame(itertools.product(range(6), range(-3, 4), range(int(X.c.min()), int(X.c.max()) + 1)), columns=list('abc')).astype(X.dtypes)
    said, rows = cf.model(cf.encode(grid).x).detach().numpy(), X.head(8)
    p = cheapest(cf, rows, None, 'distance')
    x, every = cf.encode(rows).x.double().numpy(), cf.encode(grid).x.double().numpy()
    for i in range(8):
        ok = said.argmax(1) == int(p.answers.target[i]) # of two classes
        assert p.proof[i] == _IS_OPTIMAL and p.size[i] == pytest.approx(np.abs(every[ok] - x[i]).sum(1).min(), abs=1e-5)


def test_codes_are_stepped_over_and_a_row_may_have_one():
    rng = np.random.default_rng(10)
    X = table(rng, category=False)
    X.loc[rng.random(len(X)) < .15, 'a'] = -9
    y = labels(rng, X.assign(a=X.a.clip(0)))
    model = ensemble.RandomForestClassifier(7, max_depth=4, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X, integer=['c'], special=[-9, 3])).fit(X)
    rows = X[X.a == -9].head(5)
    target = 1 - model.predict(rows)
    for optimal in ('columns', 'distance'): assert compared(cf, model, X, rows, target, FREE, optimal) == 5


def test_decimals_near_a_cut():
    rng = np.random.default_rng(11)
    X = pd.DataFrame(dict(u=rng.random(300), v=rng.integers(0, 5, 300)))
    model = tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, (X.u + X.v/5 + rng.normal(0, .1, 300) > 1).astype(int))
    cut = model.tree_.threshold[0] if model.tree_.feature[0] == 0 else model.tree_.threshold[model.tree_.feature == 0][0]
    cf = GradualCF(model, tabular(X)).fit(X)
    told = FREE | dict(bounds={'u': (float(cut) - 2e-4, float(cut) + 2e-4)})
    rows = X.head(4)
    assert compared(cf, model, X, rows, 1 - model.predict(rows), told, 'distance') == 4


def test_stopped_early_the_bound_holds():
    cf, model, X = fitted(np.random.default_rng(12), 'pipe_mlp')
    rows = X.head(8)
    best = cheapest(cf, rows, None, 'distance')
    for how in (dict(seconds=1e-9), dict(gap=.2), dict(gap=.2, start=False)):
        p = cheapest(cf, rows, None, 'distance', **how)
        assert (p.bound <= best.size*(1 + 1e-6)).all() and (p.size >= best.size*(1 - 1e-6)).all()
        if 'gap' in how: assert (p.size <= 1.2*best.size + 1e-6).all()


def test_plateaus_have_answers_without_a_spare_change():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 10)), columns=[f'c{i}' for i in range(10)])
    y = (X.iloc[:, :7].sum(axis=1) >= 3).astype(int)
    model = neural_network.MLPClassifier((2,), solver='lbfgs', random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X)).fit(X)
    rows = X[model.predict(X) == 0].head(12)
    p = cheapest(cf, rows, 1, start=False)
    grid = np.array(list(itertools.product((0, 1), repeat=10)))
    there = model.predict(pd.DataFrame(grid, columns=X.columns)) == 1
    fewest = [(grid[there] != row).sum(1).min() for row in rows.to_numpy()]
    assert p.answers.valid.all() and p.proof == [_IS_OPTIMAL]*12 and p.size.tolist() == fewest


@pytest.mark.parametrize('dtype,hidden', cover(['int64', 'float64'], [False, True]))
def test_plateaus_are_explained_in_full(dtype, hidden):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 10)), columns=[f'c{i}' for i in range(10)]).astype(dtype)
    model = neural_network.MLPClassifier((2,), solver='lbfgs', random_state=0).fit(X, (X.iloc[:, :7].sum(axis=1) >= 3).astype(int))
    rows = X[model.predict(X) == 0]
    asked = predictor(lambda frame: model.predict_proba(frame)[:, 1], tabular(X)) if hidden else model
    answers = GradualCF(asked, tabular(X)).fit(X).explain(rows, 1)
    grid = np.array(list(itertools.product((0, 1), repeat=10)))
    there = model.predict(pd.DataFrame(grid, columns=X.columns).astype(dtype)) == 1
    fewest = [(grid[there] != row).sum(1).min() for row in rows.to_numpy()]
    on = answers.changed
    assert answers.valid.all() and (hidden or on.sum(1).tolist() == fewest)
    for row, g in np.argwhere(on).tolist(): # none is spare
        less = answers.raw.iloc[[row]].copy()
        less.iloc[0, g] = rows.iloc[row, g]
        assert model.predict(less)[0] == 0


@pytest.mark.parametrize('name', ['hist', 'hist_three', 'pipe_mlp', 'pipe_forest'])
def test_a_region_holds_everywhere(name):
    cf, model, X = fitted(np.random.default_rng(13), name)
    answers = cf.explain(X.head(12), (model.predict(X.head(12)) + 1) % MODELS[name][3])
    answers = answers[answers.valid]
    around, rng = region(cf, answers, free=['b', 'kind']), np.random.default_rng(0)
    assert {'b', 'kind'} <= set(around.feature) and (around.high > around.low).any()
    for i, lines in around.groupby('row'):
        many = pd.concat([answers.raw.iloc[[i]]]*300, ignore_index=True)
        own = answers.raw.kind.iloc[i]
        for line in lines.itertuples():
            if line.feature != 'kind': many[line.feature] = rng.integers(int(line.low), int(line.high) + 1, 300).astype(X[line.feature].dtype)
            else: many['kind'] = pd.Categorical(rng.choice([*line.levels, own], 300), X.kind.cat.categories)
        assert (probability(model, many, int(answers.target[i])) >= .5 - 1e-9).all()


@pytest.mark.parametrize('name', ['hist', 'pipe_mlp'])
def test_every_way_is_the_best_or_certified_to_lead_nowhere(name):
    cf, model, X = fitted(np.random.default_rng(14), name)
    rows = X.head(2)
    target = 1 - model.predict(rows)
    menu = ways(cf, rows, target, 2)
    assert len(menu) == 2*(4 + 6)
    for line in menu.itertuples():
        told = FREE | dict(immutable=[c for c in X if c not in line.columns])
        every, columns, far = every_row(cf.domain, X, rows.iloc[line.row], told)
        ok = probability(model, every, target[line.row]) >= .5
        least = far.sum(1)[ok].min() if ok.any() else np.inf
        assert line.distance == pytest.approx(least, abs=2e-6) and (line.proof == _NONE_EXISTS) == np.isinf(least)


def test_a_way_is_no_longer_than_the_question_allows():
    cf, model, X = fitted(np.random.default_rng(14), 'hist')
    rows, free = X.head(3), dict(max_changes=[1, 2, 2])
    menu = ways(cf, rows, 1 - model.predict(rows), 2, **free)
    assert menu.groupby('row')['columns'].apply(lambda c: max(map(len, c))).tolist() == [1, 2, 2]
    assert list(ways(cf, rows, immutable=list(X))) == ['row', 'columns', 'proof', 'distance', 'values']
    with pytest.raises(ValueError, match='seconds must be positive'): ways(cf, rows, seconds=0)
    tied = GradualCF(model, tabular(X, relations=['a falls -> b rises by 1'])).fit(X)
    with pytest.raises(ValueError, match='a table without relations for ways'): ways(tied, rows)


def test_a_way_names_the_level_of_a_category_of_several_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({'red': rng.integers(0, 2, 80), 'a': rng.integers(0, 9, 80)})
    X.insert(1, 'blue', 1 - X.red)
    model = tree.DecisionTreeClassifier(random_state=0).fit(X, X.red)
    cf = GradualCF(model, tabular(X, categorical={'colour': ['red', 'blue']})).fit(X)
    menu = ways(cf, X[X.red == 0].head(1), 1, 1)
    assert menu[menu.proof == 'optimal'][['columns', 'values']].values.tolist() == [[('colour',), ('red',)]]


def test_a_smaller_change_is_handed_back():
    cf, model, X = fitted(np.random.default_rng(15))
    answers = cf.explain(X.head(8), 1 - model.predict(X.head(8)))
    told, better = prove(cf, answers, 'l1', better=True)
    far = (better.xp - better.x).abs().sum(1).numpy()
    assert (told.verdict.str.contains('in distance')).all() and better.valid.all() and np.allclose(far, told.best, atol=1e-5)
    assert prove(cf, better, 'l1').verdict.eq('optimal in distance').all()


def test_bad_questions_are_refused():
    from sklearn.svm import SVC
    cf, model, X = fitted(np.random.default_rng(16), 'logistic')
    for how, words in ((dict(optimal='l2'), 'optimal must be one of'), (dict(gap=-.1), 'gap must be a share of at least 0, got -0.1'),
                       (dict(seconds=0), 'seconds must be positive or None'), (dict(optimal='cost'), 'needs a table with costs')):
        with pytest.raises(ValueError, match=words): cheapest(cf, X.head(2), **how)
    asked = GradualCF(SVC().fit(X, model.predict(X)), tabular(X)).fit(X)
    with pytest.raises(ValueError, match='a model that can be bounded.*explain finds short answers'): cheapest(asked, X.head(2))
    tied = GradualCF(model, tabular(X, relations=['a falls -> b rises by 1'])).fit(X)
    with pytest.raises(ValueError, match='a table with relations'): cheapest(tied, X.head(2), optimal='distance')


def test_trees_too_large_for_tables_have_no_bounds(monkeypatch):
    cf, model, X = fitted(np.random.default_rng(17), 'forest')
    monkeypatch.setattr('gradual_cf.search.bounds._MOST_BYTES', 1000)
    with pytest.raises(ValueError, match='a model that can be bounded'): cheapest(cf, X.head(2))


@pytest.mark.parametrize('name,seeds', cover(['hist', 'forest', 'xgboost', 'pipe_logistic', 'pipe_forest', 'logistic'], [range(1), range(1, 3)]))
def test_what_is_proven_by_default_equals_asking_everything(name, seeds):
    for seed in seeds:
        rng = np.random.default_rng(60 + seed)
        make, category, missing, classes = MODELS[name]
        X = table(rng, category=category)
        model = make().fit(X, labels(rng, X, classes))
        cf = GradualCF(model, tabular(X, integer=['c'])).fit(X)
        rows, told = X.head(5), rules(rng, X)
        target = 1 - model.predict(rows)
        answers = cf.explain(rows, target, **told)
        assert answers.optimal == 'columns' and set(answers.proof) <= {'optimal', 'none exists', 'best so far', 'none found so far'} | {
            p for p in answers.proof if p.startswith('fewest columns; distance ')}
        for i in range(len(rows)):
            every, columns, far = every_row(cf.domain, X, rows.iloc[i], told)
            legal, said = columns <= told['max_changes'], probability(model, every, target[i])
            sure, may = (legal & (said >= .5 + slip) for slip in (HAIR, -HAIR))
            here = (answers.xp - answers.x).abs().sum(1)[i].item()
            least = lambda ok: (columns[ok].min(), far.sum(1)[ok & (columns == columns[ok].min())].min()) if ok.any() else (np.inf, np.inf)
            if answers.proof[i] == _NONE_EXISTS: assert not sure.any() and not answers.valid[i]
            if answers.proof[i] != _IS_OPTIMAL: continue
            assert least(may)[0] <= answers.size[i].item() <= least(sure)[0]
            if least(may) == least(sure): assert here == pytest.approx(least(sure)[1], abs=2e-6)
        one = answers.valid & (answers.changed.sum(1) <= 1)
        if name in ('hist', 'forest', 'xgboost'): assert all(answers[one].proof[j] == _IS_OPTIMAL for j in range(int(one.sum())))


def test_a_proof_is_asked_for_and_goes_along(tmp_path):
    from gradual_cf.answers import Counterfactuals
    cf, model, X = fitted(np.random.default_rng(17), 'pipe_mlp')
    rows, target = X.head(6), 1 - model.predict(X.head(6))
    assert cf.explain(rows, target).optimal == 'columns'
    answers = cf.explain(rows, target, optimal='distance')
    assert answers.proof == [_IS_OPTIMAL]*6 and np.array_equal(answers.size, answers.bound)
    assert '6 optimal' in repr(answers) and 'optimal in distance' in answers.text() and '>optimal</abbr> in distance' in answers._repr_html_()
    assert answers.df().cf_proof.tolist() == [_IS_OPTIMAL]*6 and answers.quality().proof.tolist() == [_IS_OPTIMAL]*6
    again = Counterfactuals.load(answers.save(tmp_path/'cfs.zip'), cf.domain)
    assert again.proof == answers.proof and again.optimal == 'distance' and np.array_equal(again[[1]].size, answers.size[[1]])


def test_letters_say_what_is_proven():
    from gradual_cf.use.letter import letter
    cf, model, X = fitted(np.random.default_rng(18))
    rows = X[model.predict(X) == 0].head(3)
    answers = cf.explain(rows, 1)
    texts = letter(answers)
    assert all(('proven for this model' in text) == (p == _IS_OPTIMAL) for text, p in zip(texts, answers.proof)) and _IS_OPTIMAL in answers.proof


def test_questions_to_explain_that_cannot_be_proven_are_refused():
    from sklearn.svm import SVC
    cf, model, X = fitted(np.random.default_rng(19))
    for how, words in ((dict(optimal='l2'), 'optimal must be one of'), (dict(optimal='columns', gap=-.1), 'gap must be a share'),
                       (dict(gap=.1), 'gap must be left out'), (dict(seconds=-1), 'seconds must be positive')):
        with pytest.raises(ValueError, match=words): cf.explain(X.head(2), **how)
    numbers = X[['a', 'b', 'c']]
    asked = GradualCF(SVC().fit(numbers, model.predict(X)), tabular(numbers)).fit(numbers)
    with pytest.raises(ValueError, match='a model that can be bounded.*with seconds'): asked.explain(numbers.head(2), optimal='columns')
    assert asked.explain(numbers.head(2)).proof == ['']*2


@pytest.mark.parametrize('name', ['hist', 'svc'])
def test_when_the_time_is_over_rows_say_so(name):
    from sklearn.svm import SVC
    cf, model, X = fitted(np.random.default_rng(20))
    if name == 'svc':
        X = X[['a', 'b', 'c']]
        model = SVC().fit(X, labels(np.random.default_rng(20), X))
        cf = GradualCF(model, tabular(X, integer=['c'])).fit(X)
    rows = pd.concat([X]*2, ignore_index=True)
    some = cf.explain(rows, 1 - model.predict(rows), seconds=1e-6)
    told = np.array(some.proof)
    late = told == 'not begun: the time was over'
    assert late.any() and not some.valid[late].any()
    whole = cf.explain(rows.head(20), 1 - model.predict(rows.head(20)), seconds=600.)
    assert whole.valid.mean() > .9


def test_ctrl_c_ends_a_question_that_has_some_time(monkeypatch):
    from sklearn.svm import SVC
    rng = np.random.default_rng(21)
    X = table(rng, category=False)
    model = SVC().fit(X, labels(rng, X))
    cf = GradualCF(model, tabular(X)).fit(X)
    rows, search, calls = X.head(30), type(cf).search, []
    def interrupted(self, *asked):
        calls.append(1)
        if len(calls) == 2: raise KeyboardInterrupt
        return search(self, *asked)
    monkeypatch.setattr(type(cf), 'search', interrupted)
    some = cf.explain(rows, 1 - model.predict(rows), seconds=600.)
    assert some.valid[:4].all() and not some.valid[4:].any() and some.proof[4:] == ['not begun: the time was over']*26
    with pytest.raises(KeyboardInterrupt): (calls.clear(), cf.explain(rows.head(2)), calls.clear(), calls.append(1), cf.explain(rows.head(2)))


def test_a_region_without_bounds_is_counted():
    from sklearn.svm import SVC
    rng = np.random.default_rng(22)
    X = table(rng, category=False)
    model = SVC().fit(X, labels(rng, X))
    cf = GradualCF(model, tabular(X, integer=['c'])).fit(X)
    answers = cf.explain(X.head(6))
    around = answers.region(free=['b'])
    assert around.how.eq('counted on 200 rows').all() and (around.high > around.low).any()
    cf, model, X = fitted(rng)
    assert cf.explain(X.head(4)).region().how.eq('certified').all()


@pytest.mark.parametrize('name', ['pipe_forest', 'pipe_logistic'])
def test_a_column_of_many_values_is_asked_at_a_few(name, monkeypatch):
    "What is found, proven and certified is what asking every value gives."
    rng = np.random.default_rng(5)
    X = pd.DataFrame(dict(u=rng.gamma(2, 30, 250).round(1), v=rng.normal(0, 20, 250).round(1), w=rng.integers(0, 4, 250)))
    last = ensemble.RandomForestClassifier(12, max_depth=5, random_state=0) if name == 'pipe_forest' else linear_model.LogisticRegression()
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), last).fit(X, (X.u + X.v + 12*X.w + rng.normal(0, 9, 250) > 80).astype(int))
    def told():
        cf = GradualCF(model, tabular(X, integer=['w'])).fit(X)
        found = cheapest(cf, X.head(25), 1 - model.predict(X.head(25)), 'distance')
        return found.frame().drop(columns=['seconds', 'boxes']), found.answers.raw, found.answers.region(['w'])
    every = told()
    monkeypatch.setattr(bounds, '_MOST_VALUES', 200)
    monkeypatch.setattr(bounds, '_SPREAD', 16)
    for one, other in zip(every, told()): pd.testing.assert_frame_equal(one, other)
    assert (every[0].proof == 'optimal').all()


def test_cents_keep_no_pipeline_shut_and_zigzags_do():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(dict(income=rng.gamma(6, 900, 300).round(2), late=rng.integers(0, 5, 300)))
    y = (X.income/2000 - X.late/2 > 1.6).astype(int)
    for last in (linear_model.LogisticRegression(), ensemble.RandomForestClassifier(10, max_depth=4, random_state=0)):
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), last).fit(X, y)
        answers = GradualCF(model, tabular(X)).fit(X).explain(X[model.predict(X) == 0].head(5), 1)
        assert answers.proof == ['optimal']*5 and (answers.region().how == 'certified').all()
    bins = compose.make_column_transformer((preprocessing.KBinsDiscretizer(5, encode='onehot-dense', quantile_method='averaged_inverted_cdf'), ['income']), remainder='passthrough')
    assert not _bounded(GradualCF(pipeline.make_pipeline(bins, linear_model.LogisticRegression()).fit(X, y), tabular(X)).fit(X))


def test_work_that_is_over_ends_the_search_and_a_row_alone_has_as_much(monkeypatch):
    "Thirty trees: how many boxes the work buys is no whole number. A row shares nothing with its company."
    rng = np.random.default_rng(9)
    X = pd.DataFrame(rng.integers(0, 30, (600, 8)), columns=list('abcdefgh'))
    y = (X.to_numpy() @ rng.normal(size=8) + X.a*X.b/20 + rng.normal(0, 9, 600) > 40).astype(int)
    model = ensemble.RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, y)
    cf = GradualCF(model, tabular(X)).fit(X)
    rows = X[model.predict(X) == 0][18:31]
    unbounded = cf.explain(rows, 1)
    monkeypatch.setattr(proven, '_BUDGET', 20_001.)
    monkeypatch.setattr(boxes, '_TOGETHER', 64)
    together = cf.explain(rows, 1)
    alone = [cf.explain(rows.iloc[[i]], 1) for i in range(len(rows))]
    assert together.proof == [a.proof[0] for a in alone]
    pd.testing.assert_frame_equal(together.raw, pd.concat([a.raw for a in alone]))
    optimal = lambda a: np.array([told == 'optimal' for told in a.proof])
    assert (optimal(together) <= optimal(unbounded)).all() and optimal(together).sum() < optimal(unbounded).sum()


def test_levels_of_two_categories_go_together():
    "Each alone may become 'n', both may not: a region that offers both for each would be false."
    rng = np.random.default_rng(3)
    X = pd.DataFrame({c: pd.Categorical(rng.choice(['m', 'n', 'o'], 400)) for c in ('a', 'b')} | dict(k=rng.integers(0, 4, 400)))
    y = ((X.a != 'o') & (X.b != 'o') & ~((X.a == 'n') & (X.b == 'n'))).astype(int)
    model = pipeline.make_pipeline(compose.make_column_transformer((preprocessing.OneHotEncoder(), ['a', 'b']), remainder='passthrough'), tree.DecisionTreeClassifier(random_state=0)).fit(X, y)
    cf = GradualCF(model, tabular(X)).fit(X)
    rows = X[(X.a == 'o') & (X.b == 'o')].head(3)
    around = cf.explain(rows, 1).region()
    for _, lines in around.groupby('row'):
        many = pd.DataFrame(list(itertools.product(*lines.levels, range(4))), columns=[*lines.feature, 'k']).astype(X.dtypes.to_dict())
        assert (model.predict(many[list(X)]) == 1).all() and len(many) > 4 # more than the answer alone


def test_ends_of_a_region_are_legal_values():
    "Where a row's own value is missing, a special code or beyond the table, the range is that of the legal values which do as well."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 9, (400, 3)).astype(float), columns=list('abc'))
    X.loc[::7, 'b'] = np.nan
    X.loc[::5, 'a'] = -7.
    y = (X.a.clip(0) + X.b.fillna(4) + X.c > 13).astype(int)
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X, integer=list('abc'), special=[-7])).fit(X)
    refused = X[model.predict(X) == 0]
    rows = pd.concat([refused[refused.b.isna()].head(3), refused[refused.a == -7].head(3), refused[refused.b.notna()].head(2)])
    rows.iloc[-1, 2] = 40.
    answers = cf.explain(rows, 1, immutable=['a'])
    answers = answers[answers.valid]
    around = answers.region(free=list('abc'))
    there = around.low.notna()
    assert (around.value.isna() == ~there).all() and around.value.isna().any() and (around.value == -7).any() and (around.value == 40).any()
    assert around.low[there].between(0, 8).all() and around.high[there].between(0, 8).all()
    for i, lines in around.groupby('row'):
        values = [np.unique([line.value, *np.arange(line.low, line.high + 1)]) if pd.notna(line.low) else [np.nan] for line in lines.itertuples()]
        many = pd.DataFrame(list(itertools.product(*values)), columns=list('abc'))
        assert (model.predict(many) == 1).all()


def test_a_picture_shades_what_does_as_well():
    from sklearn.svm import SVC
    cf, model, X = fitted(np.random.default_rng(13), 'hist')
    answers = cf.explain(X.head(12), 1 - model.predict(X.head(12)))
    shades = lambda figure: [line for line in figure.axes[0].lines if line.get_alpha() == .3]
    around = answers[:12].region()
    wide = around[(around.high > around.low) | (around.levels.map(len) > 0)]
    assert len(shades(answers.plot(most=12))) == len(wide) > 0 and 'shaded' in answers.plot(most=5).axes[0].get_xlabel()
    assert not shades(answers.plot(ranges=False))
    pages = [_picture(answers[i]) for i in np.flatnonzero(answers.valid)]
    assert sum(page.count('cfx-also') for page in pages) == (around.high > around.low).sum()
    assert any('(at least ' in page or '(at most ' in page for page in pages)
    numbers = table(np.random.default_rng(13), category=False)
    asked = GradualCF(SVC().fit(numbers, labels(np.random.default_rng(13), numbers)), tabular(numbers, integer=['c'])).fit(numbers)
    counted = asked.explain(numbers.head(6))
    assert not shades(counted.plot()) and shades(counted.plot(ranges=True)) # unasked, nothing is drawn that is only counted
    assert 'cfx-also' not in ''.join(_picture(counted[i]) for i in range(6))


@pytest.mark.parametrize('name', ['hist', 'forest', 'pipe_mlp'])
def test_prices_that_go_up_and_down_on_every_column(name):
    "The cheapest value of a part of a column is in its middle, and some values have no price at all."
    rng = np.random.default_rng(30)
    price = {c: rng.permutation(np.r_[rng.uniform(.1, 3, 90), [np.inf]*10]) for c in 'abc'}
    cost = {c: lambda before, after, c=c: np.where(after == before, 0, price[c][(10*after).astype(int) % 100]) for c in 'abc'}
    cf, model, X = fitted(rng, name, cost=cost)
    rows = X.head(6)
    target = 1 - model.predict(rows)
    p = cheapest(cf, rows, target, 'cost', start=False)
    for i in range(len(rows)):
        every, _, far = every_row(cf.domain, X, rows.iloc[i], FREE)
        for g, c in enumerate('abc'): far[:, g] = cost[c](rows[c].iloc[i], every[c].to_numpy(float))
        if 'kind' in X: far[:, 3] /= 2
        ok = probability(model, every, target[i]) >= .5
        assert p.size[i] == pytest.approx(far.sum(1)[ok].min(), abs=2e-6), i


@pytest.mark.parametrize('name', ['pipe_logistic', 'pipe_mlp', 'pipe_forest'])
def test_codes_in_the_middle_are_no_corner(name):
    rng = np.random.default_rng(31)
    make = MODELS[name][0]
    X = table(rng)
    model = make().fit(X, labels(rng, X))
    cf = GradualCF(model, tabular(X, integer=['c'], special=[2, 3])).fit(X)
    rows = X.head(6)
    for optimal in ('columns', 'distance'): assert compared(cf, model, X, rows, 1 - model.predict(rows), FREE, optimal, start=False) == 6


def test_a_perceptron_without_a_bend_is_one_layer():
    rng = np.random.default_rng(32)
    X = table(rng)
    model = coded(preprocessing.StandardScaler(), neural_network.MLPClassifier((5, 4), activation='identity', max_iter=60, solver='lbfgs', random_state=0))
    cf = GradualCF(model.fit(X, labels(rng, X)), tabular(X, integer=['c'])).fit(X)
    rows = X.head(8)
    assert compared(cf, model, X, rows, 1 - model.predict(rows), FREE, 'distance') == 8


def test_a_region_that_is_counted_has_categories_too():
    from sklearn.svm import SVC
    rng = np.random.default_rng(33)
    X = table(rng)
    model = coded(preprocessing.StandardScaler(), SVC())
    cf = GradualCF(model.fit(X, labels(rng, X)), tabular(X, integer=['c'])).fit(X)
    around = cf.explain(X.head(8)).region(free=['kind', 'a'])
    kinds = around[around.feature == 'kind']
    assert kinds.how.eq('counted on 200 rows').all() and kinds.levels.map(len).gt(1).any()
    assert all(line.value in line.levels for line in kinds.itertuples())


@pytest.mark.parametrize('scale', [1e-9, 1e-2, 1e9])
def test_prices_too_small_to_compare_are_refused_and_others_scale(scale):
    "With prices of 1e-9 every answer once counted as optimal."
    cf, model, X = fitted(np.random.default_rng(5), 'hist', cost={'a': 3*scale, 'b': (.5*scale, 2*scale), 'c': scale, 'kind': scale})
    rows = X.head(6)
    ask = lambda cf: cheapest(cf, rows, 1 - model.predict(rows), 'cost', start=False)
    if scale < 1e-3:
        with pytest.raises(ValueError, match='cost must have a price of at least 0.001'): ask(cf)
        return
    plain = fitted(np.random.default_rng(5), 'hist', cost={'a': 3., 'b': (.5, 2.), 'c': 1., 'kind': 1.})[0]
    np.testing.assert_allclose(ask(cf).size, ask(plain).size*scale, rtol=1e-5)


@pytest.mark.parametrize('name', ['pipe_mlp', 'hist', 'svc'])
def test_who_breaks_the_question_is_certified_for_nothing(name):
    "Answers that change what may not change were called optimal, and were handed back as better ones."
    from sklearn.svm import SVC
    MODELS_TOO = MODELS | dict(svc=(lambda: coded(preprocessing.StandardScaler(), SVC()), True, False, 2))
    rng = np.random.default_rng(5)
    X = table(rng)
    model = MODELS_TOO[name][0]().fit(X, (X.a + X.b + rng.normal(0, .7, len(X)) > 3).astype(int))
    cf = GradualCF(model, tabular(X, integer=['c'])).fit(X)
    rows, target = X.head(40), 1 - model.predict(X.head(40))
    asked = cf.explain(rows, target, immutable=['a'], bounds={'b': (-1, 1)})
    free = cf.explain(rows, target, immutable=['c', 'kind'])
    foreign = cf.measure(rows, asked.enc, cf.logits(rows, asked.enc.x), free.xp, asked.tensors.target)
    broken = ((free.raw.a != rows.a) | (free.raw.b != rows.b) & ~free.raw.b.between(-1, 1)).to_numpy()
    assert 3 < broken.sum()
    told, better = prove(cf, foreign, 'l0', better=True)
    assert not told.verdict[broken].str.contains('optimal').any() and np.isinf(told['size'][broken]).all()
    assert (told.verdict[~broken].str.contains('optimal') == foreign.valid[~broken]).all()
    if name == 'svc': return # who is only asked has no better row to hand back
    there = better.valid & broken & told.best.lt(np.inf).to_numpy()
    assert there.any() and (better.raw.a == rows.a)[there].all() and better.raw.b[there & (better.raw.b != rows.b)].between(-1, 1).all()


def many_levels(levels, seed=0, classes=2):
    "A linear model of a category with many levels, another one and a number."
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(dict(a=pd.Categorical([f'x{i}' for i in rng.permutation(6*levels) % levels]), b=rng.choice(['u', 'v', 'w'], 6*levels), c=rng.integers(0, 4, 6*levels)))
    effect = rng.normal(size=(levels, classes)).round(1)  # several levels add the same
    z = effect[X.a.cat.codes] + np.outer(X.c - 1.5, rng.normal(size=classes)) + (X.b == 'u').to_numpy()[:, None]*rng.normal(size=classes)
    coder = compose.make_column_transformer((preprocessing.OneHotEncoder(), ['a', 'b']), remainder='passthrough')
    model = pipeline.make_pipeline(coder, linear_model.LogisticRegression(C=10)).fit(X, z.argmax(1))
    return model, X


@pytest.mark.parametrize('seed,classes,optimal', cover(range(2), [2, 3], ['columns', 'distance'], meet=2))
def test_levels_that_were_left_out_are_in_no_better_answer(seed, classes, optimal):
    "Against every row there is."
    model, X = many_levels(20, seed, classes)
    cf, rows = GradualCF(model, tabular(X, categorical=['a'])).fit(X), X.head(15)
    every = pd.DataFrame(itertools.product(X.a.cat.categories, ['u', 'v', 'w'], range(4)), columns=['a', 'b', 'c'])
    share = model.predict_proba(every)
    for target in sorted(set(model.predict(X))):
        answers = cf.explain(rows, target, optimal=optimal)
        does = (share.argmax(1) == target) & (share[:, target] >= .5)
        assert does.any() and answers.valid.all() and set(answers.proof) == {'optimal'}
        for i in range(len(rows)):
            far = (every.a != rows.a.iloc[i]).to_numpy()*1., (every.b != rows.b.iloc[i]).to_numpy()*1., (every.c - rows.c.iloc[i]).abs().to_numpy()/3
            size = sum((v > 0)*1 for v in far) if optimal == 'columns' else 2*far[0] + 2*far[1] + far[2]
            assert answers.size[i] == pytest.approx(size[does].min(), abs=1e-6)


def test_ten_times_the_levels_take_no_more_boxes_of_a_linear_model(monkeypatch):
    def looked(levels):
        model, X = many_levels(levels)
        cf, seen = GradualCF(model, tabular(X, categorical=['a'])).fit(X), []
        look = bounds._LayerBound.__call__
        with monkeypatch.context() as m:
            m.setattr(bounds._LayerBound, '__call__', lambda self, b, budget: (seen.append(len(b.row)*self.width), look(self, b, budget))[1])
            assert set(cf.explain(X.head(40)).proof) == {'optimal'}
        return sum(seen)  # numbers that were looked at
    assert looked(300) <= 2*looked(30)


@pytest.mark.parametrize('model', [tree.DecisionTreeClassifier(max_depth=4, random_state=0), ensemble.HistGradientBoostingClassifier(max_iter=4, max_depth=3),
                                   pipeline.make_pipeline(preprocessing.FunctionTransformer(lambda d: d.to_numpy(float)), tree.DecisionTreeClassifier(max_depth=4, random_state=0))],
                         ids=['tree', 'boosting', 'pipeline'])
@pytest.mark.parametrize('bits', [40, 53, 56, 62])
def test_what_is_proven_of_numbers_that_float_tells_apart_is_true_and_of_others_nothing_is(model, bits):
    "Identifiers and nanoseconds are whole numbers of up to 64 bits; beyond 53, neighbours are one float."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=rng.integers(0, 50, 300), big=rng.integers(0, 2**bits, 300)))
    model.fit(X, ((X.a/50 + X.big/2**bits) > 1.2).astype(int))
    cf, rows = GradualCF(model, tabular(X)).fit(X), X[model.predict(X) == 0].head(15)
    answers, spans = cf.explain(rows, 1), (X.max() - X.min()).astype(float)
    assert ((model.predict(answers.raw) == 1) == answers.valid).all() and answers.valid.all()
    if bits > 53:
        assert not any(answers.proof) and answers.region().how.str.startswith('counted').all()
        with pytest.raises(ValueError, match=r"53 bits at most, got 'columns' and \['big'\]"): cf.explain(rows, 1, optimal='columns')
        return
    assert set(answers.proof) == {'optimal'} and set(answers.region().how) == {'certified'}
    far = ((answers.raw - rows).abs()/spans).sum(axis=1).to_numpy()
    for i, (a, big) in enumerate(zip(rows.a, rows.big)):
        values = np.unique(np.linspace(X.big.min(), X.big.max(), 2000).round()).astype(np.int64)
        other = pd.concat([pd.DataFrame(dict(a=np.arange(X.a.min(), X.a.max() + 1), big=big)), pd.DataFrame(dict(a=a, big=values))])
        there = other[model.predict(other) == 1]
        if len(there): assert answers.mask[i].sum() == 1 and far[i] <= ((there - [a, big]).abs()/spans).sum(axis=1).min() + 1e-6
