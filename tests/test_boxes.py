"The cheapest answer against asking every legal row there is, by code that shares nothing with the search."
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from cheapest import cheapest
from cover import cover, few
from sklearn import compose, ensemble, impute, linear_model, neural_network, pipeline, preprocessing, svm, tree
from torch import nn

from gradual_cf.all import GradualCF, Question, predictor, tabular
from gradual_cf.models.networks import seeded
from gradual_cf.search import bounds, boxes, compiled, proven, readings
from gradual_cf.search.proven import _IS_OPTIMAL, ways
from gradual_cf.search.readings import has_bounds

pytestmark = pytest.mark.filterwarnings('ignore:lbfgs failed to converge')


def table(rng, n=220, category=True):
    "Few values in each column: whole numbers, a heavy tail stored as floats, levels."
    X = pd.DataFrame(dict(a=rng.integers(0, 6, n), b=rng.integers(-3, 4, n), c=np.minimum(rng.pareto(1.2, n).round(0), 30)))
    if category: X['kind'] = pd.Categorical(rng.choice(['x', 'y', 'z', 'w'], n, p=[.4, .3, .2, .1]))
    return X


def labels(rng, X):
    z = rng.normal(size=3) @ np.stack([X.a - 2.5, X.b, np.sign(X.c - 2)*2])
    if 'kind' in X: z = z + 2*rng.normal()*(X.kind == 'x').to_numpy() + 2*((X.kind == 'z') & (X.a > 2)).to_numpy()
    z = z + rng.normal(0, .7, len(X))
    return (z > np.median(z)).astype(int)


def coded(before, last):
    "A pipeline of scaler, imputer, encoder and a model."
    numbers = pipeline.make_pipeline(impute.SimpleImputer(strategy='median'), before)
    words = pipeline.make_pipeline(impute.SimpleImputer(strategy='most_frequent'), preprocessing.OneHotEncoder(handle_unknown='ignore'))
    return pipeline.make_pipeline(compose.make_column_transformer((numbers, ['a', 'b', 'c']), (words, ['kind'])), last)


MLP = dict(hidden_layer_sizes=(7,), max_iter=60, solver='lbfgs', random_state=0)
MODELS = dict( # name -> model
    hist=lambda: ensemble.HistGradientBoostingClassifier(max_iter=7, max_depth=3, min_samples_leaf=5, categorical_features='from_dtype', random_state=0),
    forest=lambda: ensemble.RandomForestClassifier(7, max_depth=4, random_state=0, n_jobs=1), logistic=linear_model.LogisticRegression, svc=svm.SVC,
    pipe_svc=lambda: coded(preprocessing.StandardScaler(), svm.SVC()),  # which are asked
    pipe_logistic=lambda: coded(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    pipe_mlp=lambda: coded(preprocessing.StandardScaler(), neural_network.MLPClassifier(**MLP)))


def fitted(rng, name='hist', **how):
    X = table(rng, category=name not in ('forest', 'logistic', 'svc'))
    model = MODELS[name]().fit(X, labels(rng, X))
    return GradualCF(model, tabular(X, read=dict(integer=['c']), **how), 'sparse').fit(X), model, X


def test_decimals_near_a_cut():
    rng = np.random.default_rng(11)
    X = pd.DataFrame(dict(u=rng.random(300), v=rng.integers(0, 5, 300)))
    model = tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, (X.u + X.v/5 + rng.normal(0, .1, 300) > 1).astype(int))
    cut, rows = model.tree_.threshold[model.tree_.feature == 0][0], X.head(4)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    found = cheapest(cf, rows, 1 - model.predict(rows), 'distance', bounds={'u': (float(cut) - 2e-4, float(cut) + 2e-4)})
    step = 10.**-cf.domain.features[0].digits
    near = np.arange(np.ceil((cut - 2e-4)/step), np.floor((cut + 2e-4)/step) + 1)*step
    for i, row in enumerate(rows.itertuples(index=False)):
        every = pd.DataFrame(itertools.product([row.u, *near], range(5)), columns=['u', 'v'])
        far = (every.u - row.u).abs()/np.ptp(X.u) + (every.v - row.v).abs()/4
        assert found.size[i] == pytest.approx(far[model.predict(every) != model.predict(rows)[i]].min(), abs=2e-6)


@pytest.mark.parametrize('dtype,hidden', cover(['int64', 'float64'], [False, True]))
def test_plateaus_are_explained_in_full(dtype, hidden):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 10)), columns=[f'c{i}' for i in range(10)]).astype(dtype)
    model = neural_network.MLPClassifier((2,), solver='lbfgs', random_state=0).fit(X, (X.iloc[:, :7].sum(axis=1) >= 3).astype(int))
    rows = X[model.predict(X) == 0]
    asked = predictor(lambda frame: model.predict_proba(frame)[:, 1], tabular(X)) if hidden else model
    cf = GradualCF(asked, tabular(X), 'sparse').fit(X)
    answers = cf.explain(rows, 1)
    grid = np.array(list(itertools.product((0, 1), repeat=10)))
    there = model.predict(pd.DataFrame(grid, columns=X.columns).astype(dtype)) == 1
    fewest = [(grid[there] != row).sum(1).min() for row in rows.to_numpy()]
    on = answers.changed
    assert answers.valid.all() and (hidden or on.sum(1).tolist() == fewest)
    if not hidden:
        from_nothing = cheapest(cf, rows.head(12), 1, start=False)
        assert from_nothing.answers.valid.all() and from_nothing.proof == [_IS_OPTIMAL]*12 and from_nothing.size.tolist() == fewest[:12]
    for row, g in np.argwhere(on).tolist(): # none is spare
        less = answers.raw.iloc[[row]].copy()
        less.iloc[0, g] = rows.iloc[row, g]
        assert model.predict(less)[0] == 0


def barred(seed, by=.05):
    "A network of random weights that says 1 nowhere, by little: four columns, of which one has a million legal values."
    r = np.random.default_rng(seed)
    X = pd.DataFrame(dict(months=r.integers(4, 73, 300), amount=r.gamma(2, 1500, 300).round(2), age=r.integers(19, 75, 300), job=r.choice(list('abcd'), 300)))
    with seeded(seed): net = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
    ends = [np.linspace(X[c].min(), X[c].max(), many).round(2*(c == 'amount')) for c, many in zip(X, (69, 30, 29))]
    every = pd.DataFrame(itertools.product(*ends, 'abcd'), columns=X.columns).astype(dict(months=int, age=int))
    with torch.no_grad():
        for layer in net[::2]: layer.weight *= 3
        z = net((domain := tabular(X)).encode(every).x.float())
        lead = z[:, 1] - z[:, 0]
        net[4].bias[1] -= lead.max() + by*lead.std()
    return GradualCF(net, domain, 'sparse').fit(X), X


@pytest.mark.parametrize('seed', few(range(3), 1))
def test_no_answer_of_a_network_is_said_to_be_none_without_being_asked(seed):
    "A box is cut where the lines of units leave room: with cuts by gain alone this work proves one row in eight."
    cf, X = barred(seed)
    assert cf.explain(X.head(6), 1).proof == ['none exists']*6 and cf.under('robust').explain(X.head(2), 1).proof == ['none exists']*2
    near, X = barred(seed, -.05)  # as near, and there are some
    assert (found := near.explain(X.head(6), 1)).valid.all() and 'none exists' not in found.proof


def test_a_proof_has_ten_seconds_a_row_and_says_when_they_are_over(monkeypatch, caplog):
    cf, X = barred(0, 1e-6)
    monkeypatch.setattr(proven, '_ROW_SECONDS', .02)
    assert cf.explain(X.head(2), 1, proof='distance').proof == ['none found so far']*2
    assert '2 of 2 rows had their 0.02 seconds and are not proven: limit= gives all rows more' in caplog.text


def test_a_way_is_no_longer_than_the_question_allows():
    cf, model, X = fitted(np.random.default_rng(14), 'hist')
    rows, free = X.head(3), dict(max_changes=[1, 2, 2])
    menu = ways(cf, rows, 1 - model.predict(rows), 2, **free)
    assert menu.groupby('row')['columns'].apply(lambda c: max(map(len, c))).tolist() == [1, 2, 2]
    assert list(ways(cf, rows, immutable=list(X))) == ['row', 'columns', 'proof', 'distance', 'values']


def test_a_way_names_the_level_of_a_category_of_several_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({'red': rng.integers(0, 2, 80), 'a': rng.integers(0, 9, 80)})
    X.insert(1, 'blue', 1 - X.red)
    model = tree.DecisionTreeClassifier(random_state=0).fit(X, X.red)
    cf = GradualCF(model, tabular(X, categorical={'colour': ['red', 'blue']}), 'sparse').fit(X)
    menu = ways(cf, X[X.red == 0].head(1), 1, 1)
    assert menu[menu.proof == 'optimal'][['columns', 'values']].values.tolist() == [[('colour',), ('red',)]]


def test_a_smaller_change_is_handed_back():
    cf, model, X = fitted(np.random.default_rng(15))
    answers = cf.explain(X.head(8), 1 - model.predict(X.head(8)))
    told, better = answers.prove('distance', smaller=True)
    far = (better.xp - better.x).abs().sum(1).numpy()
    assert (told.verdict.str.contains('in distance')).all() and better.valid.all() and np.allclose(far, told.best, atol=1e-5)
    assert better.prove('distance').verdict.eq('optimal in distance').all()


def test_cents_keep_no_pipeline_shut_and_zigzags_do():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(dict(income=rng.gamma(6, 900, 300).round(2), late=rng.integers(0, 5, 300)))
    y = (X.income/2000 - X.late/2 > 1.6).astype(int)
    for last in (linear_model.LogisticRegression(), ensemble.RandomForestClassifier(10, max_depth=4, random_state=0)):
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), last).fit(X, y)
        answers = GradualCF(model, tabular(X), 'sparse').fit(X).explain(X[model.predict(X) == 0].head(5), 1, proof='columns')
        assert answers.proof == ['optimal']*5 and (answers.region().how == 'certified').all()
    bins = compose.make_column_transformer((preprocessing.KBinsDiscretizer(5, encode='onehot-dense', quantile_method='averaged_inverted_cdf'), ['income']), remainder='passthrough')
    assert not has_bounds(GradualCF(pipeline.make_pipeline(bins, linear_model.LogisticRegression()).fit(X, y), tabular(X), 'sparse').fit(X))


def test_what_reads_several_columns_is_named():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.integers(0, 9, (200, 4)).astype(float), columns=list('abcd'))
    both = compose.make_column_transformer((preprocessing.PolynomialFeatures(2, interaction_only=True), ['a', 'b']), remainder='passthrough')
    cf = GradualCF(pipeline.make_pipeline(both, ensemble.RandomForestClassifier(5, random_state=0)).fit(X, X.a*X.b > 15), tabular(X), 'sparse').fit(X)
    assert not has_bounds(cf)
    assert cf.model.about.endswith('asked, since it has 1 feature that reads several columns (polynomialfeatures__a b)')


@pytest.mark.parametrize('output', ['default', 'pandas'])
def test_products_before_a_line_are_asked_of_a_frame_without_a_warning(output):
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.integers(0, 9, (200, 3)).astype(float), columns=list('abc'))
    both = compose.make_column_transformer((preprocessing.PolynomialFeatures(2), ['a', 'b']), remainder='passthrough')
    model = pipeline.make_pipeline(both, preprocessing.StandardScaler(), linear_model.LogisticRegression()).set_output(transform=output)
    cf = GradualCF(model.fit(X, X.a*X.b > 15), tabular(X, read=dict(integer=list(X))), 'sparse').fit(X)
    rows = X[~model.predict(X)][:5]
    a = cf.explain(rows, True)
    assert not has_bounds(cf) and 'several columns' in cf.model.about and a.valid.all() and model.predict(a.raw[list(X)].astype(float)).all()


@pytest.mark.night
@pytest.mark.parametrize('engine', ['compiled', 'python'])
def test_work_that_is_over_ends_the_search_and_a_row_alone_has_as_much(engine, monkeypatch):
    "Thirty trees: how many boxes the work buys is no whole number. A row shares nothing with its company."
    rng = np.random.default_rng(9)
    X = pd.DataFrame(rng.integers(0, 30, (600, 8)), columns=list('abcdefgh'))
    y = (X.to_numpy() @ rng.normal(size=8) + X.a*X.b/20 + rng.normal(0, 9, 600) > 40).astype(int)
    model = ensemble.RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, y)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    rows = X[model.predict(X) == 0][18:31]
    unbounded = cf.explain(rows, 1)
    if engine == 'python': monkeypatch.setattr(compiled, '_library', lambda: None)
    elif compiled._library() is None: pytest.skip('needs a C compiler at installation')
    monkeypatch.setattr(proven, '_BUDGET', 20_001. if engine == 'python' else 1001.)
    monkeypatch.setattr(boxes, '_TOGETHER', 64)
    together = cf.explain(rows, 1)
    alone = [cf.explain(rows.iloc[[i]], 1) for i in range(len(rows))]
    assert together.proof == [a.proof[0] for a in alone]
    pd.testing.assert_frame_equal(together.raw, pd.concat([a.raw for a in alone]))
    optimal = lambda a: np.array([told == 'optimal' for told in a.proof])
    assert (optimal(together) <= optimal(unbounded)).all() and optimal(together).sum() < optimal(unbounded).sum()


def test_ends_of_a_region_are_legal_values():
    "Where a row's own value is missing, a special code or beyond the table, the range is that of the legal values which do as well."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 9, (400, 3)).astype(float), columns=list('abc'))
    X.loc[::7, 'b'] = np.nan
    X.loc[::5, 'a'] = -7.
    y = (X.a.clip(0) + X.b.fillna(4) + X.c > 13).astype(int)
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X, read=dict(integer=list('abc'), special=[-7])), 'sparse').fit(X)
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
    cf, model, X = fitted(np.random.default_rng(13), 'hist')
    answers = cf.explain(X.head(12), 1 - model.predict(X.head(12)))
    shades = lambda figure: [line for line in figure.axes[0].lines if line.get_alpha() == .3]
    around = answers[:12].region()
    wide = around[(around.high > around.low) | (around.levels.map(len) > 0)]
    assert len(shades(answers.plot(most=12))) == len(wide) > 0 and 'shaded' in answers.plot(most=5).axes[0].get_xlabel()
    assert not shades(answers.plot(ranges=False))
    asked, _, numbers = fitted(np.random.default_rng(13), 'svc')
    counted = asked.explain(numbers.head(6))
    assert not shades(counted.plot()) and shades(counted.plot(ranges=True)) # unasked, nothing is drawn that is only counted


@pytest.mark.parametrize('name', [pytest.param('pipe_mlp', marks=pytest.mark.night), 'hist', 'pipe_svc'])
def test_who_breaks_the_question_is_certified_for_nothing(name):
    "Answers that change what may not change were called optimal, and were handed back as better ones."
    rng = np.random.default_rng(5)
    X = table(rng)
    model = MODELS[name]().fit(X, (X.a + X.b + rng.normal(0, .7, len(X)) > 3).astype(int))
    cf = GradualCF(model, tabular(X, read=dict(integer=['c'])), 'sparse').fit(X)
    rows, target = X.head(20), 1 - model.predict(X.head(20))
    asked = cf.explain(rows, target, immutable=['a'], bounds={'b': (-1, 1)})
    free = cf.explain(rows, target, immutable=['c', 'kind'])
    foreign = cf.measure(Question(rows, asked.enc, cf.logits(rows, asked.enc.x), asked.tensors.target), free.xp)
    broken = ((free.raw.a != rows.a) | (free.raw.b != rows.b) & ~free.raw.b.between(-1, 1)).to_numpy()
    assert 3 < broken.sum()
    told, better = foreign.prove('columns', smaller=True)
    assert not told.verdict[broken].str.contains('optimal').any() and np.isinf(told['size'][broken]).all()
    assert (told.verdict[~broken].str.contains('optimal') == foreign.valid[~broken]).all()
    if name == 'pipe_svc': return # who is only asked has no better row to hand back
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
    cf, rows = GradualCF(model, tabular(X, categorical=['a']), 'sparse').fit(X), X.head(15)
    every = pd.DataFrame(itertools.product(X.a.cat.categories, ['u', 'v', 'w'], range(4)), columns=['a', 'b', 'c'])
    share = model.predict_proba(every)
    for target in sorted(set(model.predict(X))):
        answers = cf.explain(rows, target, proof=optimal)
        does = (share.argmax(1) == target) & (share[:, target] >= .5)
        assert does.any() and answers.valid.all() and set(answers.proof) == {'optimal'}
        for i in range(len(rows)):
            far = (every.a != rows.a.iloc[i]).to_numpy()*1., (every.b != rows.b.iloc[i]).to_numpy()*1., (every.c - rows.c.iloc[i]).abs().to_numpy()/3
            size = sum((v > 0)*1 for v in far) if optimal == 'columns' else 2*far[0] + 2*far[1] + far[2]
            assert answers.size[i] == pytest.approx(size[does].min(), abs=1e-6)


WIDE = dict(tree=tree.DecisionTreeClassifier(max_depth=4, random_state=0), boosting=ensemble.HistGradientBoostingClassifier(max_iter=4, max_depth=3),
            pipeline=pipeline.make_pipeline(preprocessing.FunctionTransformer(), tree.DecisionTreeClassifier(max_depth=4, random_state=0)))


@pytest.mark.parametrize('name, bits', few(cover(WIDE, [53, 56, 40, 62]), 6))
def test_what_is_proven_of_numbers_that_float_tells_apart_is_true_and_of_others_nothing_is(name, bits):
    "Identifiers and nanoseconds are whole numbers of up to 64 bits; beyond 53, neighbours are one float."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=rng.integers(0, 50, 300), big=rng.integers(0, 2**bits, 300)))
    model = WIDE[name].fit(X, ((X.a/50 + X.big/2**bits) > 1.2).astype(int))
    cf, rows = GradualCF(model, tabular(X), 'sparse').fit(X), X[model.predict(X) == 0].head(15)
    answers, spans = cf.explain(rows, 1, **({} if bits > 53 else dict(proof='columns'))), (X.max() - X.min()).astype(float)
    assert ((model.predict(answers.raw) == 1) == answers.valid).all() and answers.valid.all()
    if bits > 53:
        assert not any(answers.proof) and answers.region().how.str.startswith('counted').all()
        with pytest.raises(ValueError, match=r"53 bits at most, got 'columns' and \['big'\]"): cf.explain(rows, 1, proof='columns')
        return
    assert set(answers.proof) == {'optimal'} and set(answers.region().how) == {'certified'}
    far = ((answers.raw - rows).abs()/spans).sum(axis=1).to_numpy()
    for i, (a, big) in enumerate(zip(rows.a, rows.big)):
        values = np.unique(np.linspace(X.big.min(), X.big.max(), 2000).round()).astype(np.int64)
        other = pd.concat([pd.DataFrame(dict(a=np.arange(X.a.min(), X.a.max() + 1), big=big)), pd.DataFrame(dict(a=a, big=values))])
        there = other[model.predict(other) == 1]
        if len(there): assert answers.mask[i].sum() == 1 and far[i] <= ((there - [a, big]).abs()/spans).sum(axis=1).min() + 1e-6


class Written(nn.Module):
    "A network by its `forward`, with a weight and a layer at hand."
    def __init__(self, forward):
        super().__init__()
        self.way, self.one, self.two, self.weight, self.norm = forward, nn.Linear(4, 4), nn.Linear(4, 4), nn.Parameter(torch.rand(4) + .1), nn.BatchNorm1d(4)
        self.levels = nn.Embedding(3, 3)
        self.norm.running_mean.normal_(), self.norm.running_var.uniform_(.5, 2)

    def forward(self, x): return self.way(self, x)


def written_over(m, x):
    "What a view shows is written over."
    h = x[:, :2]
    h += 1
    return torch.cat([h, x], 1)


def in_place(m, x):
    h = m.one(x)
    nn.functional.relu(h, inplace=True)
    h += x
    return m.two(h)


READ = [lambda m, x: m.two(torch.relu(m.norm(m.one(x))) + x), in_place, lambda m, x: m.weight*m.one(x) - 2*x/m.weight + 1, lambda m, x: 1 - torch.tanh(x)@m.weight.view(4, 1),
        lambda m, x: torch.cat([nn.functional.elu(m.one(x))[:, [2, 0]], x[:, 1:3]], -1), lambda m, x: [m.two(torch.sigmoid(x)), m.two(-m.one(x.flatten(1)))][1],
        lambda m, x: m.two(m.one(x).relu()).sub(x).tanh(), lambda m, x: torch.cat([m.levels(x[:, 1:].argmax(1)), x[:, :1].relu()], 1),
        lambda m, x: m.levels(torch.argmax(x[:, 1:], dim=-1)) + x[:, :3],
        lambda m, x: nn.functional.leaky_relu(nn.functional.dropout(m.one(x), training=m.training), .3) + nn.functional.hardtanh(x, -.5, .5) + nn.functional.softplus(x) + nn.functional.relu6(x)]
UNREAD = [lambda m, x: x*x, lambda m, x: x if x.sum() > 0 else -x, lambda m, x: x if x else -x, written_over, lambda m, x: torch.cat([x, x], 0), lambda m, x: nn.functional.dropout(x),
          lambda m, x: nn.functional.gelu(x), lambda m, x: x.softmax(1), lambda m, x: x + torch.rand(5, 4), lambda m, x: x[:2], lambda m, x: x[:, 0], lambda m, x: torch.add(x, x, alpha=2),
          lambda m, x: (x, x), lambda m, x: m.weight, lambda m, x: nn.functional.leaky_relu(x, 2.), lambda m, x: x.flatten(), lambda m, x: nn.functional.layer_norm(x, (4,)), lambda m, x: m.one(x) @ x,
          lambda m, x: m.levels(x[:, :3].argmax(1)), lambda m, x: m.levels((2*x[:, 1:]).argmax(1)), lambda m, x: m.levels(x[:, [1, 3, 2]].argmax(1)), lambda m, x: m.levels(x[:, 1:].argmax()),
          lambda m, x: m.levels(x[:, 1:].argmax(1)) + x[:, 1:].argmax(1), lambda m, x: x + x[:, 1:].argmax(1), lambda m, x: m.levels(torch.relu(x)[:, 1:].argmax(1)), lambda m, x: x.cumsum(1)]


def test_a_network_is_read_as_its_forward_computes():
    "A stand-in for its rows goes through it; what is no linear function of units has no reading, and never another one."
    for seed, way in enumerate([*READ, *UNREAD]):
        with seeded(seed): net, x = Written(way).double().eval(), torch.randn(50, 4, dtype=torch.float64)
        x[:, 1:] = torch.eye(3)[torch.arange(50) % 3]  # a category of three levels
        read = readings._layers_of(net, 4, {(1, 4)})
        assert (read is not None) == (way in READ), seed
        if read is not None: np.testing.assert_allclose(bounds.Layers(read, *[None]*5).scores(x.numpy()), net(x.clone()).detach().numpy(), atol=1e-12)
    assert readings._layers_of(Written(READ[0]).train(), 4) is None  # the batch decides


def test_an_activation_lies_between_its_two_lines():
    "Also where both ends are nearly one, far out, or on a kink."
    bends = dict(ReLU=bounds.RELU, leaky=bounds.leaky_relu(.2), straight=bounds.leaky_relu(1.), ramp=bounds.ramp(-1., 1.), six=bounds.ramp(0., 6.),
                 sigmoid=bounds.SIGMOID, tanh=bounds.TANH, softplus=bounds.SOFTPLUS, elu=bounds.elu(1.), small_elu=bounds.elu(.3))
    rng = np.random.default_rng(0)
    for name, bend in bends.items():
        for scale in (1e-9, .01, 1., 30., 1e4):
            ends = np.concatenate([np.sort(rng.normal(0, scale, (2, 400)) + rng.normal(0, scale, 400), 0), [[-1., 0, 0, 6, -1], [1., 0, 6, 6, -1]]], 1)
            lines, x = bend.lines(*ends), np.linspace(*ends, 51)
            off = 1e-12*(1 + np.abs(x))
            assert (lines.above*x + lines.rise >= bend.of(x) - off).all() and (lines.below*x + lines.fall <= bend.of(x) + off).all(), (name, scale)
