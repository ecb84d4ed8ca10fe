"""An explainer in MLflow: what it answers is what `explain` answers, from a folder without pickle; bad input is named."""
import json
import warnings
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from gradual_cf.all import GradualCF, load_loans, predictor, tabular
from gradual_cf.scale.serve import _load_pyfunc, _mlflow_frame, log_explainer
from made import loans, people

needs_mlflow = pytest.mark.skipif(not find_spec('mlflow'), reason="need mlflow (pip install 'gradual_cf[mlflow]')")


@pytest.fixture(scope='module')
def mixed():
    "An explainer of every kind of column with missing cells, and rows below the line."
    df = people()
    model = make_pipeline(ColumnTransformer([('age', 'passthrough', ['age'])]), LogisticRegression()).fit(df, (df.age > 40).astype(int))
    return GradualCF(model, tabular(df), 'sparse').fit(df), df[df.age < 40][:12]


def same(told, answers):
    "Whether a frame holds these answers, bit for bit."
    own = _mlflow_frame(answers.df())
    pd.testing.assert_frame_equal(told[list(own)], own, check_exact=True, check_dtype=False)
    names = [c.name for c in answers.domain.features]
    assert told.cf_changed.tolist() == [[n for n, on in zip(names, row) if on] for row in answers.changed]
    return True


@pytest.mark.night
def test_a_folder_answers_as_explain_does(mixed, tmp_path):
    for k, (cf, rows, target) in enumerate(((*loans(), 'granted'), (*mixed, 1))):
        own = cf.explain(rows, target)
        model = _load_pyfunc(cf.save(tmp_path/str(k)))
        before = rows.copy()
        told = model.predict(rows, dict(target=str(target)))
        assert same(told, own) and own.valid.all()
        pd.testing.assert_frame_equal(rows, before)                                      # what was handed in is left alone
        json.dumps(told.drop(columns=[c for c in told if told[c].dtype.kind == 'M']).to_dict('records'), allow_nan=False)
    cf, rows = loans()
    model = _load_pyfunc(tmp_path/'0')
    assert same(model.predict(rows.to_dict('records')), cf.explain(rows.reset_index(drop=True)))     # of two classes, the other
    assert not model.predict(rows, dict(target='granted', seconds=0)).cf_valid.any()
    shuffled = rows[rows.columns[::-1]]
    assert same(model.predict(shuffled), cf.explain(rows))


def test_numbers_have_intervals_as_targets(tmp_path):
    df = people()[['age', 'score', 'job']]
    model = make_pipeline(ColumnTransformer([('n', 'passthrough', ['age', 'score'])]), LinearRegression()).fit(df, df.age*1. + df.score)
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    rows, model = df[df.age < 35][:3], _load_pyfunc(cf.save(tmp_path/'cf'))
    assert same(model.predict(rows, dict(target='40..')), cf.explain(rows, (40, None)))
    for bad in (None, 'high', '1'):
        with pytest.raises(ValueError, match='^target|wanted='): model.predict(rows, dict(target=bad))


@pytest.mark.night
def test_names_that_are_numbers_labels_that_are_booleans(tmp_path):
    df = people()[['age', 'score']].astype(dict(score=float)).set_axis([0, 1], axis=1)
    cf = GradualCF(LogisticRegression().fit(df, df[0] > 40), tabular(df), 'sparse').fit(df)
    rows, model = df[df[0] < 40][:1], _load_pyfunc(cf.save(tmp_path/'labels'))
    own = cf.explain(rows, True)
    for asked in (rows, rows.set_axis(['0', '1'], axis=1), rows.to_dict('records')):
        told = model.predict(asked, dict(target='True'))
        assert told.cf_prob.tolist() == own.prob.tolist() and told['0'].tolist() == own.raw[0].tolist() and told.cf_changed.tolist() == [[0]]


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    "MLflow with a store of its own."
    mlflow, room = pytest.importorskip('mlflow'), tmp_path_factory.mktemp('mlflow')
    mlflow.set_tracking_uri(f'sqlite:///{room}/mlflow.db')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(room)
        yield mlflow
    mlflow.set_tracking_uri(None)


@pytest.fixture
def client(store):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # its own, about itself
        yield store


@needs_mlflow
def test_a_round_trip_through_mlflow(client, mixed, tmp_path):
    for (cf, rows), target in ((loans(), 'granted'), (mixed, 1)):
        for whole in (True, False):
            info = log_explainer(cf, target=target, rows=whole)
            model = client.pyfunc.load_model(info.model_uri)
            bare = cf if whole else GradualCF.load(cf.save(tmp_path/str(target), rows=False))
            assert same(model.predict(rows), bare.explain(rows, target))
            assert same(model.predict(rows, params=dict(target=str(target))), bare.explain(rows, target))
            assert (model.input_example is None) == (not whole)
            files = [p.name for p in Path(client.artifacts.download_artifacts(info.model_uri)).rglob('*')]
            assert not [f for f in files if f.endswith(('.pkl', '.pickle', '.joblib'))] and 'explainer.zip' in files


@needs_mlflow
def test_the_signature_names_columns_and_what_may_be_asked(client, mixed):
    types = {c.name: str(c.type).removeprefix('DataType.') for c in log_explainer(mixed[0], target=1).signature.inputs}
    assert types == dict(age='long', income='double', score='float', code='long', member='boolean', since='datetime', day='Any', price='Any', zoned='Any', job='string', grade='Any', kind='Any', count='Any', town='string')
    cf, rows = loans()
    info = log_explainer(cf, target='granted', input_example=rows[:2])
    assert {p.name: p.default for p in info.signature.params} == dict(target='granted', seconds=None)
    model = client.pyfunc.load_model(info.model_uri)
    assert len(model.input_example) == 2
    for bad, words in ((rows.drop(columns='debt'), 'debt'), (rows.assign(debt='much'), 'debt')):
        with pytest.raises(client.MlflowException, match=words): model.predict(bad)
    with pytest.raises(ValueError, match='target must be one of the labels'): model.predict(rows, params=dict(target='approved'))
    with pytest.raises(ValueError, match='target'): log_explainer(cf, target='approved')


@needs_mlflow
def test_explainers_without_a_file_or_a_table_are_refused(client):
    cf, _ = loans()
    X, source = load_loans()[0][:300], cf.model.predictor.source
    asked = predictor(lambda df: source.predict_proba(df), cf.domain, names=list(X))
    own = GradualCF(asked, cf.domain, 'sparse', classes=list(cf.classes))
    with pytest.raises(ValueError, match='cf must have a model that can be saved without pickle'): log_explainer(own.fit(X))
    with pytest.raises(ValueError, match='fit'): log_explainer(GradualCF(cf.model, cf.domain, 'sparse'))
