"""Fitted models of every make, as they are: what a reader would not read in models/04_fitted."""
import functools
import inspect
import operator
import os
import re
import zipfile
from io import BytesIO as io_bytes

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor, StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from test_tables import coded

from gradual_cf.all import GradualCF, evaluate, load_fitted, predictor, tabular
from gradual_cf.models.asking import _unanimous, log_odds
from gradual_cf.models.networks import seeded
from gradual_cf.search.sums import _is_linear_whole


def people(n=400, missing=True):
    "A frame of every common kind of column, some cells missing, and a class that depends on most of them."
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(age=rng.integers(18, 80, n), income=rng.normal(40, 12, n).round(2), debt=rng.exponential(5, n),
                           job=rng.choice(['nurse', 'cook', 'clerk'], n), owner=rng.random(n) < .4))
    y = (df.income - df.debt + 5*df.owner + 4*(df.job == 'nurse') + rng.normal(0, 3, n) > 38).astype(int)
    df['job'] = df.job.astype('category')
    if missing:
        df.loc[rng.random(n) < .1, 'debt'] = np.nan
        df.loc[rng.random(n) < .1, 'job'] = None
    return df, y


def encoded_pipeline(model):
    return make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), ['job']), remainder=StandardScaler(), sparse_threshold=0), model)


def xgb(**kw): return pytest.importorskip('xgboost').XGBClassifier(n_estimators=30, **kw)
def lgbm(**kw): return pytest.importorskip('lightgbm').LGBMClassifier(n_estimators=30, verbose=-1, **kw)


def catboost(**how):
    return pytest.importorskip('catboost').CatBoostClassifier(iterations=30, verbose=0, cat_features=['job'], allow_writing_files=False, **how)
GAPS = dict(hist=lambda: HistGradientBoostingClassifier(max_iter=30, categorical_features='from_dtype'), xgboost=lambda: xgb(enable_categorical=True), lightgbm=lgbm)


@pytest.mark.parametrize('name', GAPS)
def test_rows_in_other_dtypes_are_read_as_the_model_wants_them(name):
    df, y = people()
    model = GAPS[name]().fit(df[:300], y[:300])
    cf, test = GradualCF(model, tabular(df[:300]), 'sparse').fit(df[:300]), df[300:330]
    want = cf.explain(test).raw
    other = test.astype(dict(age=float, job=object, owner=int))
    for rows in (other, test.convert_dtypes(), pd.DataFrame(test.to_dict('records'), index=test.index)):
        cfs = cf.explain(rows)
        pd.testing.assert_frame_equal(cfs.raw, want)
        assert cfs.valid.all() and (model.predict(cfs.raw) == model.predict(want)).all()
    assert cf.explain(test.iloc[3].to_dict()).raw.iloc[0].astype(object).equals(want.iloc[3].astype(object))


@pytest.mark.parametrize('how', [dict(grow_policy='SymmetricTree'), dict(grow_policy='Depthwise', one_hot_max_size=9), dict(grow_policy='Lossguide', nan_mode='Max')])
def test_catboost_is_taken_as_it_is(how):
    "What each level does at each split is told by CatBoost itself, whatever shape its trees have."
    df, y = people(missing=False)
    if 'nan_mode' in how: df['debt'] = people()[0].debt  # of which some are missing; levels never are
    model = catboost(**how, max_ctr_complexity=1).fit(df[:300], y[:300])
    cf = GradualCF(model, tabular(df[:300]), 'sparse').fit(df[:300])
    cfs = cf.explain(df[300:])
    assert 'trees read exactly' in repr(cf.model)
    assert (model.predict(cfs.raw) == 1 - model.predict(df[300:])).all() and cfs.valid.all()


@pytest.mark.night
def test_columns_go_by_name_in_the_order_of_the_model():
    df, y = people(missing=False)
    df = df.drop(columns='job')
    other = df[['debt', 'owner', 'age', 'income']]
    lightgbm = pytest.importorskip('lightgbm')
    for model in (lgbm().fit(other, y), LogisticRegression(max_iter=500).fit(other, y), lightgbm.train(dict(objective='binary', verbose=-1), lightgbm.Dataset(other, y), 20)):
        cf = GradualCF(model, tabular(df), 'sparse').fit(df)
        right = model.predict_proba(other)[:, 1] if hasattr(model, 'predict_proba') else model.predict(other)
        assert np.allclose(cf.z_train.softmax(1)[:, 1].numpy(), right, atol=1e-6)


def test_names_that_differ_by_a_blank_are_two_columns():
    df, y = people(missing=False)
    df = df[['income', 'debt']].set_axis(['a b', 'a_b'], axis=1)
    model = LogisticRegression().fit(df, y)
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    assert np.allclose(cf.z_train.softmax(1)[:, 1].numpy(), model.predict_proba(df)[:, 1], atol=1e-6)


def test_a_tie_goes_to_the_first_class():
    df = pd.DataFrame(dict(a=np.arange(40.), b=np.tile([0., 1.], 20)))
    domain = tabular(df, roles=dict(a='free'))  # no two rows have the same: else it is an identifier
    half = predictor(lambda f: np.where(f.a < 10, .2, np.where(f.a < 30, .5, .8)), domain)
    cfs = GradualCF(half, domain, 'sparse').fit(df).explain(df[:5], target=1)
    assert (cfs.raw.a >= 30).all() and cfs.valid.all()
    assert (GradualCF(half, domain, 'sparse').fit(df).explain(df[35:], target=0).raw.a < 30).all()


def test_numbers_reach_their_interval_each_row_its_own():
    df, _ = people(missing=False)
    y = 2*df.income - df.debt + 10*df.owner
    for model in (encoded_pipeline(LinearRegression()), encoded_pipeline(RandomForestRegressor(5, random_state=0))):
        cf = GradualCF(model.fit(df[:300], y[:300]), tabular(df[:300]), 'sparse').fit(df[:300])
        own = [(v, v + 15) for v in np.linspace(50, 90, 5)]
        cfs = cf.explain(df[300:305], target=own)
        said = model.predict(cfs.raw)
        assert [lo <= v <= hi for v, (lo, hi) in zip(said, own)] == cfs.valid.tolist() and cfs.valid.mean() >= .95
        assert np.allclose(said, cfs.prob) and {'cf_low', 'cf_high', 'cf_after'} <= set(cfs.df())
        again = cf.explain(df[300:301], target=own[0])
        assert torch.equal(again.xp, cfs.xp[:1])
        table = evaluate(cf, df[300:302], target=(60, None)).set_index('metric')
        assert table['mean']['valid'] >= .95 and table['mean']['legal'] == 1


def test_a_network_of_numbers():
    df, _ = people(missing=False)
    df = df[['age', 'income', 'debt']]
    domain = tabular(df)
    with seeded(0): net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    cf = GradualCF(predictor(net, domain, 'number'), domain, 'sparse').fit(df)
    low, high = cf.z_train.quantile(.6).item(), cf.z_train.quantile(.7).item()
    cfs = cf.explain(df[:50], target=(low, high))
    assert cfs.valid.all() and ((cfs.tensors.prob >= low) & (cfs.tensors.prob <= high)).all()


class Labels(ClassifierMixin, BaseEstimator):
    "A classifier that gives labels only, and does not say which there are."
    def fit(self, X, y): self.fitted_, self.n_features_in_ = True, X.shape[1]; return self
    def predict(self, X): return np.zeros(len(X), int)


class Foreign:
    "What other libraries return: something with a method that predicts, or none."
    def __init__(self, *ways):
        for way in ways: setattr(self, way, lambda rows: rows.age.to_numpy()/100)


LINES = {'survival': (Foreign('predict', 'predict_survival_function'), 'which may give numbers: write predictor(by, domain), with by(rows) = 1 - their curves at a time, for what happens by then, or predictor(lambda rows: model.predict(rows), domain, kind='),
         'hazards': (Foreign('predict_partial_hazard'), 'write predictor(lambda rows: model.predict_partial_hazard(rows), domain, kind='),
         'data': (Foreign(), 'which does not predict: predictor(fn, domain, kind=…) takes any function of rows'),
         'several outputs': (MultiOutputClassifier(LogisticRegression(max_iter=500)), 'got 2 outputs: choose one by predictor(model, domain, output=…)')}


@pytest.mark.parametrize('case', LINES)
def test_what_nobody_knows_is_answered_with_the_line_to_write(case):
    df, y = people(missing=False)
    df, (model, says) = df.drop(columns='job'), LINES[case]
    if case == 'several outputs': model.fit(df, np.c_[y, df.age > 40])
    with pytest.raises(ValueError, match=re.escape(says)) as e: GradualCF(model, tabular(df), 'sparse')
    assert 'labels only' not in str(e.value)
    line = dict(survival=lambda d: predictor(lambda rows: model.predict(rows), d, kind='number'), hazards=lambda d: predictor(lambda rows: model.predict_partial_hazard(rows), d, kind='proba'),
                data=lambda d: predictor(lambda rows: rows.age/100, d, kind='proba')).get(case, lambda d: predictor(model, d, output=1))
    assert len(GradualCF(line(tabular(df)), tabular(df), 'sparse').fit(df).explain(df[:2], target=(.3, .4) if case == 'survival' else 1)) == 2


@pytest.mark.parametrize('codes', ['whole', 'dropped', 'rising'])
@pytest.mark.parametrize('scale', ['range', 'quantile'])
def test_a_network_of_raw_columns_reads_what_it_was_trained_on(codes, scale, caplog):
    df, _ = coded(codes, 'shared', float)
    with seeded(0): net = torch.nn.Sequential(torch.nn.Linear(df.shape[1], 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    domain = tabular(df, read=dict(scale=scale))
    x, raw = domain.encode(df).x.float(), torch.tensor(df.to_numpy()).float()
    wide, norm = StandardScaler().fit(df.to_numpy()), torch.nn.BatchNorm1d(df.shape[1], affine=False)
    norm(raw), norm.eval()
    assert sum('are one category' in line for line in domain.findings) == 3
    for scaled, read in ((False, raw), (wide, torch.tensor(wide.transform(df.to_numpy())).float()), (norm, norm(raw))):
        asked = predictor(net, domain, scaled=scaled)
        assert torch.allclose(asked(x), log_odds(net(read), 'logit'), atol=1e-3) and GradualCF(asked, domain, 'sparse').settings.sigma > 0  # the gradient is there


def test_a_network_that_says_the_same_of_all_rows_may_want_raw_ones(caplog):
    df = people(missing=False)[0].select_dtypes('number')
    net = torch.nn.Linear(df.shape[1], 2)
    with torch.no_grad():
        net.weight.zero_(); net.bias.copy_(torch.tensor([30., 0.])); net.weight[1, list(df).index('age')] = 1
    domain = tabular(df)
    GradualCF(net, domain, 'sparse').fit(df)
    assert "the network says 0 of all" in caplog.text and 'predictor(net, domain, scaled=False)' in caplog.text
    caplog.clear()
    GradualCF(predictor(net, domain, scaled=False), domain, 'sparse').fit(df)
    assert not caplog.text


@pytest.mark.night
@pytest.mark.parametrize('ending', ['txt', 'ubj'])
def test_a_file_that_would_end_the_process_is_an_error(tmp_path, ending):
    pytest.importorskip('lightgbm' if ending == 'txt' else 'xgboost')
    df, y = people(missing=False)
    path = tmp_path/f'm.{ending}'
    if ending == 'ubj': xgb().fit(df[['age']], y).save_model(path)
    else: path.write_text('tree\nversion=v4\nnum_class=1\nmax_feature_idx=1\nfeature_names=a b\nfeature_infos=none none\ntree_sizes=9 9\n\nno tree here')
    if ending == 'ubj': path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(ValueError, match='path must be a readable file of'): load_fitted(path)


def own_estimators():
    "scikit-learn's own classifiers and regressors, fitted on a small table, and what they were asked with."
    from sklearn.linear_model import Ridge
    from sklearn.utils import all_estimators
    X = np.abs(np.random.default_rng(0).random((60, 4)))
    label, several = (X[:, 0] > .5).astype(int), ('MultiTask', 'MultiOutput', 'Chain', 'CCA', 'PLS')
    for name, kind in all_estimators(type_filter=['classifier', 'regressor']):
        one = LogisticRegression() if issubclass(kind, ClassifierMixin) else Ridge()
        needs = {p: [('a', one)] if p == 'estimators' else one for p, v in inspect.signature(kind).parameters.items()
                 if p in ('estimator', 'estimators') and (v.default is inspect.Parameter.empty or name == 'SelfTrainingClassifier')}
        y = label if issubclass(kind, ClassifierMixin) else X[:, 0]
        if any(s in name for s in several): y = np.stack([y, y], 1)
        some = X[:, :1] if name == 'IsotonicRegression' else X
        yield name, kind(**needs).fit(some, y), some


@pytest.mark.night
@pytest.mark.filterwarnings('ignore')
def test_every_estimator_of_scikit_learn_is_read_from_skops(tmp_path):
    io, read = pytest.importorskip('skops.io'), 0
    for name, model, X in own_estimators():
        io.dump(model, tmp_path/'m.skops')
        assert np.allclose(load_fitted(tmp_path/'m.skops').predict(X), model.predict(X)), name
        read += 1
    assert read >= 99


def pipelines():
    "Pipelines over columns of all kinds, and models that keep something else in themselves."
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=rng.random(80), b=rng.integers(0, 9, 80), c=rng.choice(['x', 'y', 'z'], 80), d=pd.Categorical(rng.choice(['u', 'v'], 80))))
    num, y = df[['a', 'b']], np.where(df.a > .5, 'yes', 'no')
    by = lambda *steps: make_column_transformer(*steps, remainder='drop')
    hot, ordinal = by((OneHotEncoder(handle_unknown='ignore'), ['c', 'd']), (StandardScaler(), ['a', 'b'])), by((OrdinalEncoder(), ['c', 'd']), ('passthrough', ['a', 'b']))
    yield from ((make_pipeline(hot, LogisticRegression()), df, y), (make_pipeline(hot, RandomForestClassifier(3)), df, y), (make_pipeline(ordinal, DecisionTreeClassifier()), df, y),
                (HistGradientBoostingClassifier(max_iter=3, categorical_features='from_dtype'), df[['a', 'b', 'd']], y), (make_pipeline(SimpleImputer(), MLPClassifier((3,), max_iter=5)), num, y),
                (CalibratedClassifierCV(RandomForestClassifier(3), cv=2, method='isotonic'), num, y), (make_pipeline(StandardScaler(), SVC()), num, y),
                (KNeighborsClassifier(metric='manhattan', algorithm='ball_tree'), num, y), (GridSearchCV(DecisionTreeClassifier(), {'max_depth': [1, 2]}, cv=2, scoring='roc_auc'), num, y),
                (StackingClassifier([('a', LogisticRegression()), ('b', DecisionTreeClassifier())], cv=2), num, y), (MLPClassifier((3,), solver='sgd', max_iter=5), num, y))


@pytest.mark.filterwarnings('ignore')
def test_pipelines_of_scikit_learn_are_read_from_skops_and_explained(tmp_path):
    io = pytest.importorskip('skops.io')
    for model, X, y in pipelines():
        io.dump(model.fit(X, y), tmp_path/'m.skops')
        back = load_fitted(tmp_path/'m.skops')
        assert (back.predict(X) == model.predict(X)).all()
        if hasattr(model, 'predict_proba') and len(set(model.predict(X))) == 2: assert np.isfinite(GradualCF(back, tabular(X), 'sparse').fit(X).explain(X[:2]).prob).all()


def test_what_a_skops_file_would_call_is_refused_by_name(tmp_path):
    io = pytest.importorskip('skops.io')
    for f, name in ((eval, 'builtins.eval'), (os.system, 'system'), (functools.partial(np.log1p), 'functools.partial'), (operator.methodcaller('to_pickle', 'x'), 'methodcaller'),
                    (SVC().set_params, 'skops')):
        io.dump(make_pipeline(FunctionTransformer(f), StandardScaler()), tmp_path/'m.skops')
        with pytest.raises(ValueError, match=name): load_fitted(tmp_path/'m.skops')
    io.dump(make_pipeline(FunctionTransformer(functools.partial(np.log1p)), StandardScaler()), tmp_path/'m.skops')
    assert load_fitted(tmp_path/'m.skops', trusted=['functools.partial']).steps
    with pytest.raises(ValueError, match='list of names'): load_fitted(tmp_path/'m.skops', trusted='functools.partial')


def test_a_tree_that_cannot_be_walked_is_refused(tmp_path):
    io = pytest.importorskip('skops.io')
    X = np.random.default_rng(0).random((60, 3))
    for model in (DecisionTreeClassifier(), RandomForestClassifier(3), HistGradientBoostingClassifier(max_iter=3)):
        io.dump(model.fit(X, X[:, 0] > .5), tmp_path/'m.skops')
        with zipfile.ZipFile(tmp_path/'m.skops') as z: parts = {n: z.read(n) for n in z.namelist()}
        nodes = next(n for n, v in parts.items() if n.endswith('.npy') and (a := np.load(io_bytes(v))).dtype.names and len(a) > 1)
        for kid in (0, 10**6):
            a = np.load(io_bytes(parts[nodes])).copy()
            a[next(n for n in a.dtype.names if n.startswith('left'))][0] = kid
            np.save(made := io_bytes(), a)
            with zipfile.ZipFile(tmp_path/'b.skops', 'w') as z:
                for n, v in parts.items(): z.writestr(n, made.getvalue() if n == nodes else v)
            with pytest.raises(ValueError, match='nodes behind them'): load_fitted(tmp_path/'b.skops')


def test_a_skops_file_with_a_type_of_its_own_is_refused(tmp_path):
    io = pytest.importorskip('skops.io')
    df, y = people(missing=False)
    io.dump(Labels().fit(df[['age']], y), tmp_path/'m.skops')
    with pytest.raises(ValueError, match='not known to be safe'): load_fitted(tmp_path/'m.skops')


def test_object_columns_in_xgboost_are_named_by_the_model():
    df, y = people(missing=False)
    model = xgb(enable_categorical=True).fit(df, y)
    text = df.assign(job=df.job.astype(str))
    with pytest.raises(ValueError, match='model must accept the rows'): GradualCF(model, tabular(text), 'sparse').fit(text)


@pytest.mark.parametrize('tau', [.5, pytest.param(.6, marks=pytest.mark.night), pytest.param(.9, marks=pytest.mark.night)])
def test_a_list_of_models_without_gradient_asks_for_none(tau):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=rng.integers(0, 6, 220), b=rng.integers(-3, 4, 220)))
    y = (X.a + X.b + rng.normal(0, 1, 220) > 3).astype(int)
    models = [RandomForestClassifier(8, max_depth=4, random_state=s).fit(X, y) for s in range(3)]
    cf = GradualCF(models, tabular(X), 'sparse', tau=tau).fit(X)
    rows = X[models[0].predict(X) == 0].head(5)
    cfs = cf.explain(rows, 1)
    agreed = np.min([m.predict_proba(cfs.raw)[:, 1] for m in models], 0) >= tau
    assert cf.settings.sigma == 0 and (agreed == cfs.valid).all() and (tau == .9 or agreed.any())
    if tau != .5: return
    robust = cf.under(hold=dict(noise=dict(a=1))).explain(rows, 1, proof='distance')
    assert (robust.size >= cf.explain(rows, 1, proof='distance').size).all()


def test_models_that_disagree_decide_for_no_class():
    one, other = torch.tensor([[4., 0.], [0., 4.]]), torch.tensor([[4., 0.], [4., 0.]])
    share = _unanimous(one.log_softmax(1), [one, other]).exp()
    assert share[0, 0] > .5 and (share[1] <= .5).all()


def test_the_coefficients_of_support_vectors_are_all_of_a_line_and_of_nothing_else():
    x, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    assert [_is_linear_whole(SVC(kernel=kind).fit(x, y % k)) for kind, k in (('linear', 2), ('linear', 3), ('rbf', 2))] == [True, False, False]
