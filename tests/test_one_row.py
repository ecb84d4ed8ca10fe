"What makes a single row quick says the same as the plain way, and forgets."
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from lightgbm import LGBMClassifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gradual_cf.all import GradualCF, predictor, tabular
from gradual_cf.models.asking import remembering
from gradual_cf.models.decisions import _block_of, Predictor, single_threaded, asked_once
from gradual_cf.search import sums
from gradual_cf.models.targets import CLASSES, log_prob, output_of


def odd(n=200):
    "A frame of every kind of column, with missing cells."
    rng, i = np.random.default_rng(0), np.arange(n)
    return pd.DataFrame(dict(
        whole=rng.integers(-3, 40, n), money=rng.lognormal(9, 1, n).round(2), full=rng.standard_normal(n)*1e7,
        short=rng.standard_normal(n).astype('float32'), gone=np.where(i % 7 == 0, np.nan, rng.integers(0, 9, n)),
        null=pd.array(np.where(i % 4 == 0, None, i % 17), dtype='Int64'), flag=i % 5 == 0,
        when=pd.Timestamp('2020-01-01') + pd.to_timedelta(i*7 % 900, 'D'), text=np.array(['1', '2', '10'])[i % 3],
        size=pd.Categorical(np.array(['s', 'm', 'l'])[i % 3], categories=['s', 'm', 'l'], ordered=True),
        named=pd.Categorical(np.array(['b', 'a', None], object)[i % 3], categories=['b', 'a']),
        words=pd.Series(np.array(['x', 'y', None], object)[i % 3], dtype=object)))


def test_categories_with_other_codes_are_read_by_their_levels():
    df = odd()
    domain = tabular(df[['named', 'money']])
    other = df[['named', 'money']].assign(named=df.named.cat.reorder_categories(['a', 'b']))
    assert torch.equal(domain.encode(df[['named', 'money']]).x, domain.encode(other).x)


@pytest.mark.parametrize('model', [LGBMClassifier(n_estimators=9, verbose=-1), HistGradientBoostingClassifier(max_iter=9, categorical_features='from_dtype')])
def test_levels_as_a_model_counts_them_say_what_its_frames_say(model):
    df = odd()[['named', 'money', 'size', 'gone', 'whole']].assign(size=lambda d: d['size'].astype(pd.CategoricalDtype(['m', 's', 'never', 'l'])))
    model.fit(df, (df.whole + 9*(df.named == 'a') + df.gone.fillna(4) > 24).astype(int))
    p = GradualCF(model, tabular(df)).fit(df).model.predictor
    turned = df.assign(named=df.named.cat.reorder_categories(['a', 'b']), size=df['size'].cat.remove_unused_categories())
    for rows in (df, df.iloc[[3]], turned, df.assign(gone=np.nan)):
        np.testing.assert_array_equal(p.quick(_block_of(rows, p.source)), model.predict_proba(rows))
    assert _block_of(df.assign(named=df.named.astype(object)), p.source) is None # the model says what it thinks of texts


@pytest.mark.night
@pytest.mark.parametrize('made', [RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor])
def test_a_forest_that_is_asked_tree_by_tree_says_the_same_to_the_last_bit(made):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list('abcd')).mask(rng.random((200, 4)) < .1)
    y = (X.sum(axis=1) > 0).astype(int) + (X.a > 1)
    for data in (X, X.to_numpy()):
        forest = made(30, random_state=0, n_jobs=2).fit(data, y)
        one, how = single_threaded(forest), 'predict_proba' if hasattr(forest, 'classes_') else 'predict'
        assert how in vars(one) and how not in vars(forest) and (one.n_jobs, forest.n_jobs) == (1, 2)
        assert np.array_equal(getattr(one, how)(data), getattr(forest.set_params(n_jobs=1), how)(data))
    twice = made(3, random_state=0).fit(X, np.c_[y, y]) # decides two things
    mine = type('Mine', (made,), {})(3).fit(X, y)
    assert single_threaded(twice) is twice and single_threaded(mine) is mine


class Counting:
    "A pipeline that counts how often it is asked, and about how many rows."
    def __init__(self, model): self.model, self.asked = model, []
    def __call__(self, frame):
        self.asked.append(len(frame))
        return self.model.predict_proba(frame)


def told():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(0, 10, (200, 3)).round(), columns=list('abc'))
    model = Counting(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.a + X.b > 0))
    return X, model, tabular(X)


def priced(n=300):
    "Numbers of the same scale and categories of three levels, so that changes cost the same."
    rng = np.random.default_rng(0)
    X = pd.DataFrame({c: rng.integers(0, 9, n) for c in 'abc'} | {c: pd.Categorical(rng.choice(list('xyz'), n)) for c in 'de'})
    X.loc[::11, 'c'] = -9
    return X, (X.a + X.b - X.c.clip(0) + 3*(X.d == 'x') - 2*(X.e == 'z') + rng.normal(0, 2, n) > 5).astype(int)


def behind(model, X):
    first = make_column_transformer((OneHotEncoder(), ['d', 'e']), remainder=StandardScaler())
    return make_pipeline(first, model)


RULES = {}, dict(immutable=['a']), dict(bounds={'b': (2, 6)}), dict(increase_only=['a', 'b'], max_changes=1)


@pytest.mark.night
@pytest.mark.parametrize('rules', RULES, ids=str)
def test_a_sum_says_in_closed_form_what_boxes_find(monkeypatch, rules):
    X, y = priced()
    cf = GradualCF(behind(LogisticRegression(), X).fit(X, y), tabular(X), 'sparse').fit(X)
    found, own = [], sums._way_of
    monkeypatch.setattr(sums, '_way_of', lambda *a: (found.append(own(*a)), found[-1])[1])
    closed = cf.explain(X.iloc[:40], **rules)
    assert sum(way is not None for way in found) > 5
    monkeypatch.setattr(sums, '_way_of', lambda *a: None)
    boxes = cf.explain(X.iloc[:40], **rules)
    far = [(answers.xp - answers.x).abs().sum(1).numpy() for answers in (closed, boxes)]
    np.testing.assert_allclose(*far, atol=1e-9)  # of several as near, each may find another
    assert closed.proof == boxes.proof
    for name in ('size', 'bound'): np.testing.assert_array_equal(getattr(closed, name), getattr(boxes, name))


EQUAL = [(True, 1), (False, 0), (1, 1.), (np.nan, None), (0., -0.), (np.bool_(True), 1)] # to pandas


@pytest.mark.parametrize('one, two', EQUAL, ids=str)
def test_cells_that_are_equal_and_not_the_same_are_asked_by_themselves(one, two):
    asked = []
    def says(frame): return [.25 if (asked.append(str(frame.a[0])) or asked[-1]) == str(one) else .75]
    p, frame = Predictor(says), lambda v: pd.DataFrame(dict(a=pd.Series([v], dtype=object)))
    with remembering(): output_of = [float(asked_once(p, frame(v)).softmax(1)[0, 1]) for v in (one, two, one, two)]
    assert asked == [str(one), str(two)] and np.allclose(output_of, [.25, .75]*2)


def test_levels_with_other_codes_and_zeros_with_a_sign_are_asked_by_themselves():
    asked = []
    def says(frame): return [.5 for _ in asked.append(frame) or range(len(frame))]
    p, level = Predictor(says), lambda *levels: pd.DataFrame(dict(a=pd.Categorical(['x'], categories=levels)))
    with remembering():
        for frame in (level('x', 'y'), level('y', 'x'), pd.DataFrame(dict(a=[0.])), pd.DataFrame(dict(a=[-0.]))):
            asked_once(p, frame), asked_once(p, frame.copy())
    assert len(asked) == 4


class Told:
    "A model that tells True from 1, as one that reads texts does."
    classes_ = 0, 1
    def predict_proba(self, frame):
        p = 1/(1 + np.exp(2.1 - (frame.c.map(str) == 'True')*2. - frame.m/10))
        return np.c_[1 - p, p]


def test_a_row_that_writes_a_level_in_another_way_is_answered_by_what_the_model_says_of_it():
    i = np.arange(300)
    X = pd.DataFrame(dict(c=pd.Series([[True, 'x', 'y'][k % 3] for k in i], dtype=object), m=i*7 % 20*1.))
    cf = GradualCF(Told(), tabular(X, categorical=['c']), 'sparse').fit(X)
    answer = cf.explain(pd.DataFrame(dict(c=pd.Series([1], dtype=object), m=[3.])), 1)
    says = Told().predict_proba(answer.raw)[0, 1]
    assert np.isclose(float(answer.prob[0]), says) and bool(answer.valid[0]) == (says >= .5)


def one_refused():
    X, model, domain = told()
    return X, model, GradualCF(predictor(model, domain), domain, 'sparse').fit(X), X[(model.model.predict(X) == 0)].iloc[[0]]


def test_a_model_that_was_trained_on_is_asked_anew():
    X, model, cf, row = one_refused()
    before = cf.explain(row)
    model.model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.a - X.b > 15)
    now = float(model.model.predict_proba(row)[0, 1])
    assert abs(float(before.before[0]) - now) > .01
    assert abs(float(cf.explain(row, 1).before[0]) - now) < 1e-9


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('classes', [1, 2, 3, 10])
def test_a_row_alone_is_the_row_in_a_batch_to_the_last_place(dtype, classes):
    gen = torch.Generator().manual_seed(classes)
    z = torch.randn(4000, classes, dtype=dtype, generator=gen)*4
    z[::7] += 800 # and far from zero
    target = torch.randint(classes, (len(z),), generator=gen) if classes > 1 else torch.tensor([[-1., 2.]], dtype=dtype).expand(len(z), 2)
    asked = [log_prob, output_of] + [lambda z, t: output_of(z, t, .3)]*(classes == 2) + [lambda z, t: CLASSES.lead(z, t, .6)]*(classes > 1)
    for ask in asked:
        whole = ask(z, target)
        for n in (1, 7, 8, 9, 12, 100):
            few = 40*n
            assert torch.cat([ask(v, t) for v, t in zip(z[:few].split(n), target[:few].split(n))]).equal(whole[:few])
    if classes > 1:
        torch.testing.assert_close(log_prob(z, target), z.log_softmax(1).gather(1, target[:, None])[:, 0])
        assert log_prob(torch.full((1, classes), torch.inf), target[:1]).isnan().all()
