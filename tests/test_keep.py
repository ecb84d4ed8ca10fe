"""A fitted explainer as a folder: the same answers from it, bit for bit; what no file can hold is refused by name."""
import json
import pickle
from copy import copy
from datetime import date, datetime
from decimal import Decimal
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import torch
import toy
from safetensors.torch import load as load_tensors
from sklearn import base
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import BaggingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

import written
from gradual_cf.all import (GradualCF, Settings, evaluate, images, load_digits, load_fitted, load_loans, predictor, put_back, reasons, tabular, tabular_mlp)
from made import by_hand, people, pipeline, same
from gradual_cf.answers import Counterfactuals
from gradual_cf.render import from_plain, to_plain
from gradual_cf.scale import keep
from gradual_cf.templates.evidence import check_evidence as checker


def there_and_back(cf, tmp_path, rows, model=None, **asked):
    "Save, load, ask both."
    again = GradualCF.load(cf.save(tmp_path/'cf'), model)
    assert repr(again).split('Domain')[1] == repr(cf).split('Domain')[1]
    answers = cf.explain(rows, **asked)
    same(answers, back := again.explain(rows, **asked))
    assert answers.to_json() == back.to_json()
    assert not any(p.suffix in ('.pkl', '.pickle', '.joblib', '.pt') for p in (tmp_path/'cf').iterdir())
    return again, answers


@pytest.mark.parametrize('told', [
    dict(), dict(read=dict(missing='level')), dict(read=dict(scale='standard')), dict(read=dict(scale='quantile')),
    dict(bounds=dict(income=(20, 90), since=('2020-03-01', None), job=['cook']), increase_only=['age']),
    dict(relations=['age >= count', 'age rises by 1 -> count changes'], cost=dict(age=[3, 1], income='never', job=2.))],
    ids=['plain', 'level', 'standard', 'quantile', 'bounds', 'relations'])
@pytest.mark.filterwarnings('ignore:.*training rows break')
@pytest.mark.filterwarnings('ignore:the folder holds no model')
def test_tables_of_every_kind_of_column_come_back(told, tmp_path):
    df = people()
    domain = tabular(df, **told)
    cf = GradualCF(predictor(by_hand, domain), domain, 'sparse').fit(df)
    target = np.where(by_hand(df[:4]) > .5, 0, 1)
    again, _ = there_and_back(cf, tmp_path, df[:4], by_hand_again(domain), target=target)
    assert again.x_train.equal(cf.x_train) and list(again.held) == list(cf.held)


def by_hand_again(domain): return predictor(by_hand, domain)


@pytest.fixture(scope='module')
def loans():
    X, y, X_test, _ = load_loans()
    return X[:400], np.asarray(y[:400]), X_test


def of_make(make, X, y):
    "The ending of its file, and a model of one make."
    whole, few = (y == 'granted').astype(int), dict(n_estimators=8, max_depth=3)
    if make == 'linear': return 'skops', pipeline(X, y, LogisticRegression())
    if make == 'lightgbm': return 'txt', pytest.importorskip('lightgbm').LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)
    if make == 'catboost': return 'cbm', pytest.importorskip('catboost').CatBoostClassifier(iterations=8, verbose=0, cat_features=['housing'], allow_writing_files=False).fit(X, y)
    model = pytest.importorskip('xgboost').XGBClassifier(**few, enable_categorical=True).fit(X, whole)
    return 'json', model.get_booster() if make == 'booster' else model


@pytest.mark.parametrize('make', ['booster', 'catboost'])  # others: tests/test_contract.py
def test_models_of_further_makes_come_back(make, loans, tmp_path):
    X, y, X_test = loans
    if make == 'catboost': X, X_test = (v.astype(dict(housing=str)) for v in (X, X_test))
    form, model = of_make(make, X, y)
    cf = GradualCF(model, tabular(X, immutable=['age']), 'sparse').fit(X)
    refused = cf.classes.index('refused') if 'refused' in cf.classes else 0
    rows = X_test[(cf.logits(X_test, cf.encode(X_test).x).argmax(1) == refused).numpy()][:5]
    again, answers = there_and_back(cf, tmp_path, rows)
    assert any(p.suffix == f'.{form}' for p in (tmp_path/'cf').iterdir()) and answers.valid.any()
    assert again.classes == cf.classes


@pytest.mark.parametrize('loss', [None, 'RMSE', 'Poisson', 'Tweedie:variance_power=1.5'])
def test_numbers_and_their_intervals_come_back(loss, loans, tmp_path):
    "A model of CatBoost in a file says the logarithm of some numbers, unless it is asked as a regressor."
    X, _, X_test = loans
    X, X_test = X.drop(columns='housing'), X_test.drop(columns='housing')
    y = (X.income*.3 - X.debt).clip(100.)/1000
    if loss is None: model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, y)
    else: model = pytest.importorskip('catboost').CatBoostRegressor(iterations=10, learning_rate=.5, loss_function=loss, verbose=0, allow_writing_files=False).fit(X, y)
    said = model.predict(X_test)
    rows, target = X_test[said < np.quantile(said, .5)][:4], (float(np.quantile(said, .6)), None)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    assert cf.numbers
    _, answers = there_and_back(cf, tmp_path, rows, target=target)
    assert (model.predict(answers.raw[list(X)])[answers.valid] >= target[0]).all()
    bare = GradualCF.load(cf.save(tmp_path/'bare', rows=False))
    assert bare.explain(rows, target=target).valid.any()
    if loss: # and the program that asks anew
        model.save_model(str(tmp_path/'model.cbm'))
        ask, _ = checker.model_of(str(tmp_path/'model.cbm'))
        assert np.allclose(ask(rows), model.predict(rows))


def test_networks_with_settings_of_their_own_come_back(tmp_path):
    df = pd.DataFrame(dict(a=np.linspace(0, 9, 40), b=np.tile([1., 4., 2., 8.], 10)))
    domain = tabular(df)
    x = domain.encode(df).x.float()
    h = Settings(moves=(put_back,), sigma=5, n_ref=7, quantile=.9)
    net = toy.sharpen(tabular_mlp(2, 2, seed=3), x)
    there_and_back(GradualCF(net, domain, h, classes=('no', 'yes')).fit(df), tmp_path/'plain', df[:4])
    raw = predictor(toy.sharpen(tabular_mlp(2, 2, seed=3), torch.tensor(df.to_numpy()).float()), domain, scaled=False, threshold=.4)
    there_and_back(GradualCF(raw, domain, 'sparse').fit(df), tmp_path/'scaled', df[:4])


@pytest.fixture
def lone(tmp_path):
    "An explainer of a function, as a folder without a model."
    df = people()[['age', 'member']]
    domain = tabular(df)
    cf = GradualCF(predictor(age_decides, domain), domain, 'sparse').fit(df)
    with pytest.warns(UserWarning, match='holds no model .* model='): folder = cf.save(tmp_path/'cf')
    return cf, folder, df


def age_decides(df): return 1/(1 + np.exp(40. - df.age.to_numpy(float)))
def age_decides_otherwise(df): return 1/(1 + np.exp(41. - df.age.to_numpy(float)))


def test_a_model_is_brought_along_and_must_be_the_same(lone):
    cf, folder, df = lone
    with pytest.raises(ValueError, match='model must be given, since'): GradualCF.load(folder)
    same(cf.explain(df[:3]), GradualCF.load(folder, predictor(age_decides, cf.domain)).explain(df[:3]))
    with pytest.raises(ValueError, match='the model that the explainer was fitted with, got logits that are off by up to 0.5'):
        GradualCF.load(folder, predictor(age_decides_otherwise, cf.domain))


def earners():
    "Two numbers, a category, and whether it is enough."
    r = np.random.default_rng(0)
    df = pd.DataFrame(dict(age=r.integers(18, 70, 300), income=r.integers(15, 60, 300), job=pd.Categorical(r.choice(['clerk', 'cook', 'smith'], 300))))
    return df, (df.age/25 + df.income/20 + (df.job == 'cook') + r.normal(0, .5, 300) > 4).astype(int)


def opened(last, before=None):
    "A pipeline of two numbers and a category that was read, with questions to it."
    df, y = earners()
    coded = ColumnTransformer([('n', before or StandardScaler(), ['age', 'income']), ('c', OneHotEncoder(sparse_output=False), ['job'])])
    cf = GradualCF(make_pipeline(coded, last).fit(df, y), tabular(df), 'sparse').fit(df)
    return cf, df[:6]


READ_BEHIND = dict(line=lambda: opened(LogisticRegression()), splines=lambda: opened(LogisticRegression(), SplineTransformer(3)),
                   forest=lambda: opened(RandomForestClassifier(5, max_depth=3, random_state=0)), bayes=lambda: opened(GaussianNB()))
@pytest.mark.parametrize('make', READ_BEHIND)
@pytest.mark.filterwarnings('ignore:the folder holds no model')
def test_what_is_read_behind_a_pipeline_is_read_again(make, tmp_path):
    cf, rows = READ_BEHIND[make]()
    answers = cf.explain(rows, proof='distance')
    for again in (GradualCF.load(cf.save(tmp_path/'cf'), cf.model.predictor.source), copy(cf), pickle.loads(pickle.dumps(cf))):
        same(answers, again.explain(rows, proof='distance'))


def test_damage_and_other_forms_are_named(loans, tmp_path):
    X, y, _ = loans
    cf = GradualCF(pipeline(X, y, LogisticRegression()), tabular(X), 'sparse').fit(X)
    folder = cf.save(tmp_path/'cf')
    whole, model = folder/'explainer.zip', next(folder.glob('model-*'))
    raw = whole.read_bytes()
    def other(**about):
        told, tensors = to_plain({}, {}, 'x'), folder/'other.zip'
        with ZipFile(tensors, 'w') as z: z.writestr('about.json', json.dumps(dict(holds='an explainer', values=told) | about)), z.writestr('tensors.safetensors', b'')
        return tensors.read_bytes(), tensors.unlink()
    flip = lambda raw: raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:]
    middle = raw.find(b'tensors.safetensors') + 500
    for path, now, words in ((model, flip(model.read_bytes()), f'undamaged files, got .*{model.name}'), (model, None, f'all of its files, got .* without {model.name}'),
                             (whole, raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1:], 'undamaged explainer.zip'), (whole, raw[:50], 'undamaged explainer.zip'), (whole, b'', 'undamaged explainer.zip'),
                             (whole, other(form=99, gradual_cf='9.9')[0], 'an explainer of form 3, got 99, written by gradual_cf 9.9: read it with that version, or make it anew'),
                             (whole, other(form=2)[0], 'hold an explainer|undamaged'), (whole, None, 'one that save wrote, got .* without explainer.zip')):
        old = path.read_bytes()
        path.write_bytes(now) if now is not None else path.unlink()
        with pytest.raises(ValueError, match=words): GradualCF.load(folder)
        path.write_bytes(old)
    GradualCF.load(folder)
    whole.unlink(), (folder/'manifest.json').write_text('{"format": 1}')
    with pytest.raises(ValueError, match='without explainer.zip: an earlier version wrote it; load it there, or fit and save again'): GradualCF.load(folder)
    answers = tmp_path/'answers.zip'
    with ZipFile(answers, 'w') as z: z.writestr('about.json', '{"tau": null}'), z.writestr('tensors.safetensors', b'')
    with pytest.raises(ValueError, match='written by Counterfactuals.save.*must hold answers of form 2, got an earlier one.*make it anew'): Counterfactuals.load(answers, cf.domain)


def test_a_file_from_a_stranger_names_no_code():
    for told in ({'is': 'function', 'of': 'system'}, {'is': 'Path', 'of': {}}, {'is': 'partial', 'of': ['os.system']}):
        with pytest.raises(KeyError): from_plain(told, {}, keep._KNOWN)


CELLS = dict(  # Columns of every kind that pandas has
    whole=[1, 2], fraction=[.1, np.nan], short=np.array([1, 2], 'f4'), big=np.array([1, 2**63], 'u8'), truth=[True, False], texts=['a', None], mixed=np.array([1, 'a'], object),
    nullable=pd.array([1, None], dtype='Int64'), python=pd.array(['a', None], dtype=pd.StringDtype('python')), arrow=pd.array([1, None], dtype='int64[pyarrow]'),
    levels=pd.Categorical(['b', None], ['c', 'b', 'a'], ordered=True), numbers=pd.Categorical([2, 1], [1, 2, 3]), day=pd.to_datetime(['2024-02-29', None]), zone=pd.to_datetime(['2024-02-29 12:00', None]).tz_localize('Europe/Berlin'),
    span=pd.to_timedelta([1, 2], 'D'), month=pd.period_range('2024-01', periods=2, freq='M'), band=pd.IntervalIndex.from_breaks([0, 1, 2]), price=np.array([Decimal('1.10'), None], object),
    date=np.array([date(2024, 2, 29), pd.NaT], object), moment=np.array([pd.Timestamp('2024-02-29', tz='UTC'), datetime(2024, 1, 1)], object), raw=np.array([b'\x00', b''], object), lists=np.array([(1, 2), None], object))


@pytest.mark.parametrize('index', [[7, 9], pd.Index(['a', 'b'], name='who'), pd.MultiIndex.from_tuples([('a', 1), ('b', 2)], names=['x', None]), pd.DatetimeIndex(['2024-01-01', '2024-02-01'], tz='UTC')], ids=str)
def test_a_frame_of_every_kind_of_cell_comes_back(index):
    frame = pd.DataFrame(CELLS).set_axis(index)
    told = json.dumps(to_plain(frame, tensors := {}, 'data'), allow_nan=False)
    back = from_plain(json.loads(told), tensors)
    pd.testing.assert_frame_equal(back, frame, check_freq=False)
    for c in ('mixed', 'price', 'date', 'moment', 'raw', 'lists'): assert [*map(type, back[c])] == [*map(type, frame[c])], c


@pytest.mark.parametrize('make', ['linear', 'xgboost', 'lightgbm', 'catboost', 'network'])
def test_saving_is_all_or_nothing(make, loans, tmp_path, monkeypatch):
    "A full disk, whatever it holds back, ends a save; what a kill left is in nobody's way."
    resource = pytest.importorskip('resource')
    X, y = loans[0][:80].astype(dict(housing=str if make == 'catboost' else 'category')), loans[1][:80]
    if make == 'network': model, domain, rows = written.read('digits'), images(block=2), load_digits()[0]['image'][:60]
    else: model, domain, rows = of_make(make, X, y)[1], tabular(X), X
    one, other = (GradualCF(model, domain, 'sparse', tau=tau).fit(rows) for tau in (.5, .7))
    folder, new = one.save(tmp_path/'cf'), tmp_path/'new'
    before, (soft, hard) = {p.name: p.read_bytes() for p in folder.iterdir()}, resource.getrlimit(resource.RLIMIT_FSIZE)
    (new/'.new-left').mkdir(parents=True)
    (new/'model-0123456789ab.skops').write_text('{')
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path/'none'))  # nothing is written there
    for room in sorted({0, *(len(raw) - 1 for raw in before.values())}):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            for place in (folder, new) if not room else (folder,):
                with pytest.raises(OSError): other.save(place)
        finally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before and {p.name for p in new.iterdir()} <= {'model-0123456789ab.skops', '.new-left'}
    for place in (folder, new):
        assert GradualCF.load(other.save(place)).settings.tau == .7
        assert len(list(place.iterdir())) == 2  # those of before are gone


def test_other_folders_are_left_alone(lone, tmp_path):
    cf, _, _ = lone
    (tmp_path/'mine').mkdir()
    (tmp_path/'mine'/'letter.txt').write_text('dear')
    with pytest.raises(ValueError, match="new, empty or one that save wrote, got .* with \\['letter.txt'\\]"): cf.save(tmp_path/'mine')
    with pytest.raises(ValueError, match='must be a folder, got the file'): cf.save(tmp_path/'mine'/'letter.txt')
    with pytest.raises(ValueError, match='fit'): GradualCF(predictor(age_decides, cf.domain), cf.domain, 'sparse').save(tmp_path/'new')
    assert {p.name for p in tmp_path.iterdir()} == {'cf', 'mine'}


def test_without_rows_no_row_is_in_the_folder(loans, tmp_path):
    X, y, X_test = loans
    X = X.assign(exact=np.random.default_rng(0).normal(size=len(X)))
    cf = GradualCF(pipeline(X, y, LogisticRegression()), tabular(X), 'sparse').fit(X)
    folder = cf.save(tmp_path/'bare', rows=False)
    with ZipFile(folder/'explainer.zip') as z: tensors = load_tensors(z.read('tensors.safetensors'))
    rows = {tuple(row) for row in cf.x_train.tolist()}
    kept = [tuple(row) for t in tensors.values() if t.ndim == 2 and t.shape[1] == cf.x_train.shape[1] for row in t.double().tolist()]
    assert kept and not rows & set(kept)
    a = X.income + np.arange(len(X))/100
    together = pd.DataFrame(dict(income=a, tax=(a*.3).round(2), rent=(a*.2 + 100).round(2)))  # a median is somebody
    one = GradualCF(LogisticRegression().fit(together, y), tabular(together), 'sparse').fit(together)
    few = GradualCF.load(one.save(tmp_path/'together', rows=False))
    there = few.domain.decode(few.x_train, None, False).round(2)
    assert len(there) and not len(there.merge(together.round(2)))
    steps = X[['age', 'debt']].gt(X[['age', 'debt']].median()).astype(int)
    with pytest.raises(ValueError, match='a table of few different rows'):
        GradualCF(LogisticRegression().fit(steps, y), tabular(steps), 'sparse').fit(steps).save(tmp_path/'few', rows=False)
    assert max(t.shape[0] for t in tensors.values() if t.ndim) <= 101 < len(X)
    bare = GradualCF.load(folder)
    assert bare.summary and repr(bare) != repr(cf)
    rows = X_test[(cf.model.predictor.source.predict(X_test.assign(exact=.25)) == 'refused')][:5].assign(exact=.25)
    assert bare.explain(rows, target='granted').valid.all()
    assert bare.explain(rows[:1], target='granted', k=2).valid.any()
    same(bare.under(seed=0, diversity=.9, progress=False).explain(rows, target='granted'), bare.explain(rows, target='granted'))
    sure = GradualCF.load(cf.under(hold=.8).save(tmp_path/'sure', rows=False))
    for ask, name in ((lambda: sure.explain(rows, target='granted'), 'hold'), (lambda: reasons(bare, rows, target='granted'), 'reasons'),
                      (lambda: evaluate(bare, rows, 'granted'), 'measures'), (lambda: bare.under(bare.settings), 'under'),
                      (lambda: bare.save(tmp_path/'full'), 'save with rows=True')):
        with pytest.raises(ValueError, match=f'{name} needs training rows, and this explainer was saved without them'): ask()


@pytest.mark.parametrize('estimator, name', [
    (KNeighborsClassifier(3), '_fit_X'), (RadiusNeighborsClassifier(9.), '_fit_X'), (SVC(probability=False), 'support_vectors_'), (GaussianProcessClassifier(), 'X_train_'),
    (LabelSpreading(), 'X_'), (make_pipeline(KNNImputer(), LogisticRegression()), '_fit_X'), (make_pipeline(Nystroem(), LogisticRegression()), 'component'),
    (make_pipeline(KernelPCA(2), LogisticRegression()), 'X_fit_'), (BaggingClassifier(KNeighborsClassifier(3), 2), '_fit_X'),
    (make_pipeline(KMeans(60, n_init=1), LogisticRegression()), 'cluster_centers_'), (CalibratedClassifierCV(SVC(), ensemble=False), 'support_vectors_')], ids=lambda v: str(v)[:30])
@pytest.mark.filterwarnings('ignore')  # of the fits
def test_a_model_that_keeps_rows_is_refused_by_name(estimator, name, tmp_path):
    df = pd.DataFrame(np.random.default_rng(0).random((60, 3)), columns=list('abc'))
    for scaled in (False, True):
        if scaled and name.startswith('cluster'): continue  # the centre of one scaled row is no name's
        model = make_pipeline(StandardScaler(), base.clone(estimator)) if scaled else base.clone(estimator)
        cf = GradualCF(model.fit(df, df.sum(axis=1) > 1.5), tabular(df), 'sparse').fit(df)
        with pytest.raises(ValueError, match=f'keeps training rows, got False: .* has them in .*{name}'): cf.save(tmp_path/'cf', rows=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('estimator', [KNeighborsClassifier(3), SVC()], ids=['neighbours', 'support'])
@pytest.mark.filterwarnings('ignore:Attribute .prob:FutureWarning')  # of the converter
def test_an_onnx_model_that_keeps_rows_is_refused(estimator, tmp_path):
    skl2onnx = pytest.importorskip('skl2onnx')
    df = pd.DataFrame(np.random.default_rng(0).random((60, 3)).astype('f4'), columns=list('abc'))
    model = make_pipeline(StandardScaler(), estimator).fit(df.to_numpy(), (df.sum(axis=1) > 1.5).astype(int))
    (tmp_path/'m.onnx').write_bytes(skl2onnx.to_onnx(model, df.to_numpy()[:1], options={'zipmap': False}).SerializeToString())
    domain, kind = tabular(df), 'decision' if isinstance(estimator, SVC) else 'proba'
    cf = GradualCF(predictor(load_fitted(tmp_path/'m.onnx'), domain, kind=kind), domain, 'sparse').fit(df)
    with pytest.raises(ValueError, match='the ONNX file has them in'): cf.save(tmp_path/'cf', rows=False)


def test_an_onnx_model_of_texts_and_one_of_numbers_come_back(tmp_path):
    to, runtime = pytest.importorskip('skl2onnx'), pytest.importorskip('onnxruntime')
    df = people()[['age', 'town', 'score']].astype(dict(age='int64', town=object, score='float32'))
    model = make_pipeline(ColumnTransformer([('town', OneHotEncoder(), ['town']), ('rest', 'passthrough', ['age', 'score'])]), LogisticRegression(max_iter=500))
    model.fit(df, ((df.town == 'x')*4 + df.age/10 > 6).astype(int))
    named = [('town', to.common.data_types.StringTensorType([None, 1])), ('age', to.common.data_types.Int64TensorType([None, 1])), ('score', to.common.data_types.FloatTensorType([None, 1]))]
    session = runtime.InferenceSession(to.to_onnx(model, initial_types=named).SerializeToString())
    domain = tabular(df)
    cf = GradualCF(predictor(session, domain), domain, 'sparse').fit(df)
    assert there_and_back(cf, tmp_path/'texts', df[model.predict(df) == 0][:6], target=1)[1].valid.any()
    some = df[['age', 'score']].astype('float32')
    line = GradientBoostingRegressor(n_estimators=9).fit(some.to_numpy(), some.age*2)
    cf = GradualCF(predictor(runtime.InferenceSession(to.to_onnx(line, some.to_numpy()[:1]).SerializeToString()), domain := tabular(some)), domain, 'sparse').fit(some)
    assert there_and_back(cf, tmp_path/'numbers', some[some.age < 40][:6], target=(90., None))[1].valid.any()
