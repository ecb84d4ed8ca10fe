"""Targets are labels: as the model calls its classes, wherever a target comes in or goes out."""
import copy
import io
import json
import os
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from cover import cover, few
from made import Lent
from shell import shell
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn
from toy import Score, sharpen

from gradual_cf.all import (LORE, PAPER, PLAUSIBLE, SPARSE, Counterfactuals, GradualCF, GrowingSpheres, actions, as_batches, audit, because,
    check_evidence, confirm, evaluate, explain_dataset, frames, letter, load_fitted, predictor, prove, stepper, tabular, tabular_mlp)
from gradual_cf.search.goals import CLASSES
from gradual_cf.search.proven import ways

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(0, 1, (300, 3)).round(2), columns=['income', 'debt', 'age'])
SCORE = X.income - .6*X.debt + .2*X.age

KINDS = dict(text=['refused', 'granted'], swapped=['granted', 'refused'], signs=[-1, 1], from_one=[1, 2], booleans=[False, True],
             decimals=[0., 1.], digits=[3, 5, 8, 9], sizes=['S', 'M', 'L', 'very large & <b>'], written=['=1+1', '%20'],
             large=[-2**40, 2**40], places=['..', 'target=1']) # In the order of the score
MODELS = dict(linear=lambda: LogisticRegression(), forest=lambda: RandomForestClassifier(15, max_depth=4, random_state=0),
              pipeline=lambda: make_pipeline(StandardScaler(), LogisticRegression()),
              boosted=lambda: HistGradientBoostingClassifier(max_iter=15, random_state=0))


def labelled(labels):
    "A label for each row: the higher the score, the later in the list."
    rank = np.argsort(np.argsort(SCORE.to_numpy()))*len(labels)//len(X)
    return np.array(labels)[rank]


def fitted(kind='text', model='linear'): return MODELS[model]().fit(X, labelled(KINDS[kind]))


def network(): return Score([6., -4., 1.], -2.4)


CASES = [(kind, 'linear') for kind in KINDS] + [('digits', 'forest'), ('sizes', 'boosted'), ('signs', 'pipeline'), ('swapped', 'forest')]


@pytest.mark.parametrize('kind,model', CASES)
def test_who_asks_for_a_label_gets_it(kind, model):
    labels, m = KINDS[kind], fitted(kind, model)
    cf = GradualCF(m, tabular(X), 'sparse', tau=.3 if len(labels) > 2 else .5).fit(X)
    for label in labels:
        rows = X[m.predict(X) != label].iloc[:3]
        a = cf.explain(rows, target=label)
        sure = a.valid & (a.prob > .5)
        assert a.valid.any() and (m.predict(a.raw[sure]) == label).all() and (a.target == label).all() if sure.any() else len(labels) > 2
        assert a.df().cf_target.tolist() == [label]*3 and f'to be {CLASSES.words(label)}' in a.text()
    mixed = np.random.default_rng(1).choice(np.array(labels), 4)
    forms = [mixed, mixed.tolist(), pd.Series(mixed, index=range(50, 54)), *([] if labels[0] == 'S' else [pd.Categorical(mixed)])]
    for target in few(forms[len(kind) % 2:], 2):
        a = cf.explain(X.iloc[:4], target)
        assert a.target.tolist() == mixed.tolist() and (m.predict(a.raw) == mixed)[a.valid & (a.prob > .5)].all()
    if isinstance(labels[0], (int, float)): assert cf.explain(X.iloc[:4], torch.tensor(mixed)).target.tolist() == mixed.tolist()


def test_what_no_label_is_needed_for_and_what_one_is():
    cf = GradualCF(fitted('text'), tabular(X), 'sparse').fit(X)
    a = cf.explain(X.iloc[:8])
    assert (a.target != fitted('text').predict(X.iloc[:8])).all()
    many = GradualCF(fitted('digits'), tabular(X), 'sparse').fit(X)
    assert '4 classes (3, 5, 8, 9)' in repr(many) and "2 classes ('granted', 'refused')" in repr(cf)


def test_a_network_is_told_its_labels_once_and_everything_says_them():
    labels = 'refused', 'granted'
    cf = GradualCF(network(), tabular(X), 'sparse', classes=labels).fit(X)
    rows = X[cf.logits(X, cf.encode(X).x).argmax(1).numpy() == 0].iloc[:12]
    a = cf.explain(rows, target='granted')
    assert 'refused → granted, 1 <abbr' in a._repr_html_() and 'refused → ' not in cf.explain(a.raw, target='granted')._repr_html_()
    several, plan, trace = cf.explain_many(rows.iloc[:2], 'granted', k=2), a[:2].plan(), cf.trace(rows.iloc[:1], 'granted')
    page = stepper(trace)
    shown = [a.text(), a._repr_html_(), several.text(), several._repr_html_(), plan.text(), plan._repr_html_(), repr(trace),
             *(f.text for f in frames(trace)), letter(a[:1], date='1 May')[0], letter(a[:1], format='html', date='1 May')[0]]
    assert all('granted' in text and 'class 1' not in text and 'class 0' not in text for text in shown) and page is not None
    assert (check_evidence(letter(a), cf, rows).flips).all() and '"target":"granted"' in letter(a[:1])[0]
    assert evaluate(cf, rows, 'granted', eps=()).set_index('metric').loc['valid', 'mean'] == 1
    plain = GradualCF(network(), tabular(X), 'sparse').fit(X)
    same = plain.explain(rows, 1)
    assert torch.equal(same.xp, a.xp) and same.target.tolist() == [1]*12 and 'class 1' in same.text()
    told = audit(cf, X, (X.age > 0).rename('old'), target='granted', resamples=99)
    assert set(told.advice(2).answers.target) == {'granted'}
    assert 'to be granted' in told.text() and 'class 1' not in told._repr_html_()
    assert audit(cf, X, (X.age > 0).rename('old'), resamples=99).answers.target[0] == 'granted' # the second of two, where nobody says
    assert GrowingSpheres(network(), tabular(X), classes=labels).fit(X).explain(rows[:2], 'granted').target.tolist() == ['granted']*2
    lore = LORE(network(), tabular(X), classes=labels).fit(X)
    assert because(a[:2], lore).sentence.str.contains('refused .*; granted if ').all()


def test_labels_of_a_fitted_model_can_be_renamed_and_positions_asked_for():
    m = fitted('signs')
    cf = GradualCF(m, tabular(X), 'sparse', classes=['refused', 'granted']).fit(X)
    a = cf.explain(X[m.predict(X) == -1].iloc[:4], 'granted')
    assert (m.predict(a.raw) == 1).all() and a.target.tolist() == ['granted']*4
    b = GradualCF(m, tabular(X), 'sparse', classes=range(2)).fit(X).explain(X[m.predict(X) == -1].iloc[:4], 1)
    assert torch.equal(a.xp, b.xp) and b.target.tolist() == [1]*4


def test_numbers_have_no_labels():
    ask = predictor(lambda df: df.income.to_numpy(), tabular(X), kind='number')
    assert GradualCF(ask, tabular(X), 'sparse').fit(X).explain(X.iloc[:2], (1, None)).target.tolist() == [[1, np.inf]]*2


def test_several_models_call_their_classes_alike():
    up = fitted('text')
    both = GradualCF([up, fitted('text', 'forest')], tabular(X), 'sparse').fit(X)
    a = both.explain(X.iloc[:5], 'granted')
    assert a.valid.all() and (up.predict(a.raw) == 'granted').all() and both.classes == ('granted', 'refused')


def test_other_models_are_asked_by_label():
    m = fitted('text')
    a = GradualCF(m, tabular(X), 'sparse').fit(X).explain(X.iloc[:10], 'granted')
    class Turned(ClassifierMixin, BaseEstimator):
        "The same answers, its columns the other way round."
        classes_, feature_names_in_ = m.classes_[::-1], list(X)
        def predict(self, df): return m.predict(df)
        def predict_proba(self, df): return m.predict_proba(df)[:, ::-1]
    assert (confirm(a, [Turned()]).confirmed == 1).all()
    renamed = GradualCF(m, tabular(X), 'sparse', classes=['yes', 'no']).fit(X).explain(X.iloc[:10], 'yes')
    assert (confirm(renamed, [Turned(), m]).confirmed == 1).all()


def test_proofs_and_ways_take_labels():
    cf = GradualCF(fitted('swapped', 'forest'), tabular(X), 'sparse').fit(X)
    rows = X[cf.model.predictor.source.predict(X) == 'refused'].iloc[:4]
    a = cf.explain(rows, 'granted', optimal='columns')
    assert len(ways(cf, rows, 'granted', k=1)) and a.valid.all()
    assert len(prove(cf, a)) == 4 and cf.explain(rows, 'granted', robust=dict(noise=dict(income=.01))).target.tolist() == ['granted']*4


@pytest.mark.parametrize('kind', KINDS)
def test_answers_come_back_from_a_file_with_their_labels(kind, tmp_path):
    cf = GradualCF(fitted(kind), tabular(X), 'sparse').fit(X)
    a = cf.explain(X.iloc[:4], KINDS[kind][-1])
    b = Counterfactuals.load(a.save(tmp_path/'a.zip'), cf.domain)
    assert b.target.tolist() == a.target.tolist() and b.target.dtype == a.target.dtype and b.classes == a.classes
    assert b.text() == a.text() and torch.equal(b.tensors.target, a.tensors.target)
    assert pickle.loads(pickle.dumps(a.target)).tolist() == a.target.tolist()
    refused = a[~a.already]
    assert (check_evidence(letter(refused, date='1 May'), cf).flips == refused.valid).all()
    days = replace(a, classes=(pd.Timestamp(0), pd.Timestamp(1)), target=np.array([pd.Timestamp(0)]*4))
    assert Counterfactuals.load(days.save(tmp_path/'b.zip'), cf.domain).classes == days.classes


@pytest.mark.parametrize('kind', ['text', 'digits', 'booleans', 'decimals', 'sizes', 'written', 'large'])
def test_a_batch_takes_a_label_or_a_column_of_labels(kind, tmp_path):
    labels, cf = KINDS[kind], GradualCF(fitted(kind), tabular(X), 'sparse').fit(X)
    wanted = X.iloc[:10].assign(goal=rng.choice(np.array(labels), 10))
    explain_dataset(cf, wanted, tmp_path/'each', target='goal', batch_size=8, workers=0)
    assert pd.read_parquet(tmp_path/'each').cf_target.tolist() == wanted.goal.tolist()
    assert as_batches(cf, labels[0])(X[:2])['cf_target'].tolist() == [labels[0]]*2
    if kind == 'text':
        one = pd.read_parquet(explain_dataset(cf, X.iloc[:10], tmp_path/'one', target=labels[-1], batch_size=8))
        assert one.cf_target.tolist() == [labels[-1]]*10


def test_the_command_line_takes_labels(tmp_path):
    sh = shell(os.environ['GRADUAL_CF_CACHE'])
    xgboost = pytest.importorskip('lightgbm')
    m = xgboost.LGBMClassifier(n_estimators=10, verbose=-1).fit(X, labelled(KINDS['text']))
    m.booster_.save_model(tmp_path/'m.txt')
    X.to_csv(tmp_path/'x.csv', index=False)
    assert load_fitted(tmp_path/'m.txt') is not None # a Booster has no labels
    def ask(*args, code=0):
        done = sh(*args, code=code)
        return done.stdout + done.stderr
    asked = 'explain', 'breast_cancer', '--row', 3, '--preset', 'sparse', '--target'
    one = json.loads(ask(*asked, 'malignant', '--json'))
    assert one['target'] == 'malignant' and one['valid'] and 'target_name' not in one
    assert 'to be malignant' in ask(*asked, 'malignant')
    assert "labels 'malignant', 'benign', got '1'" in ask(*asked, 1, code=2)
    assert json.loads(ask('explain', '--csv', tmp_path/'x.csv', '--model', tmp_path/'m.txt', '--row', 0, '--target', 1, '--json'))['target'] == 1



# What people hand over
def copies(thing):
    "The same, through everything that copies."
    joblib.dump(thing, file := io.BytesIO())
    file.seek(0)
    return pickle.loads(pickle.dumps(thing)), joblib.load(file), copy.copy(thing), copy.deepcopy(thing)


@pytest.mark.parametrize('make', [
    lambda: fitted('text'), lambda: fitted('digits', 'forest'), network, lambda: [network(), network()],
    lambda: RandomForestClassifier(5, random_state=0).fit(X.to_numpy(), labelled(['a', 'b']))], ids=['linear', 'forest', 'network', 'two', 'of arrays'])
def test_explainers_and_answers_are_copied_whole(make):
    cf = GradualCF(make(), tabular(X), 'sparse').fit(X)
    target = (cf.classes or (0, 1))[-1]
    a = cf.explain(X.iloc[:3], target)
    for other in copies(cf): assert torch.equal(other.explain(X.iloc[:3], target).xp, a.xp)
    for other in copies(a):
        assert other.text() == a.text() and other.target.tolist() == a.target.tolist() and len(other.region()) == len(a.region())
        assert (other.raw[other.valid] == a.raw[a.valid]).all(axis=None)


HOUSE = X.assign(total=(X.income + X.debt).round(2), home=rng.choice(['own', 'rent', 'free'], 300), steps=rng.integers(0, 9, 300))
HOUSE_MODEL = make_pipeline(make_column_transformer((OneHotEncoder(), ['home']), remainder='passthrough'), LogisticRegression()).fit(HOUSE, SCORE > 0)
def total(df): return df.income + df.debt
def dear(before, after): return np.abs(after - before)

RULES = dict(
    none={}, chosen=dict(levels=dict(home=['own', 'rent']), bounds=dict(debt=(-1, 1)), increase_only=['age'], max_changes=2), quantile=dict(scale='quantile'),
    compared=dict(relations=['income <= total + 9', 'debt < 2 or not (home == "rent")', 'home in ["own", "rent", "free"]', '-age*2 < total/3 + 9', '0 <= steps < 30 and steps != 12']),
    equal=dict(relations=['total == income + debt']), follows=dict(relations=['home == "rent" -> steps == 3']),
    moves=dict(relations=['steps rises -> age rises by 0.5', 'home changes -> debt stays']), derived=dict(derive=dict(total=total)),
    caused=dict(causes=dict(age=(['income', 'debt'], LinearRegression().fit(HOUSE[['income', 'debt']], HOUSE.age)))), priced=dict(cost=dict(income=dear, debt=(1, 3), age='hard')))

PRESETS = dict(table=SPARSE, plausible=PLAUSIBLE, paper=PAPER)


@pytest.mark.filterwarnings('ignore:.*training rows break')
@pytest.mark.parametrize('rules,preset', few(cover(RULES, PRESETS), 6))
def test_explainers_of_every_table_are_copied_whole(rules, preset):
    domain, preset = tabular(HOUSE, **RULES[rules]), PRESETS[preset]
    x = domain.encode(HOUSE).x.float()
    model = sharpen(tabular_mlp(x.shape[1], seed=0), x) if preset is PAPER else HOUSE_MODEL  # any network with two answers
    cf = GradualCF(model, domain, preset, **dict(sigma=5) if preset is PAPER else {}).fit(HOUSE)
    a = cf.explain(HOUSE.iloc[:2])
    for other in copies(cf)[::3]:
        b = other.explain(HOUSE.iloc[:2])
        assert torch.equal(a.xp, b.xp) and torch.equal(a.tensors.prob, b.tensors.prob) and a.text() == b.text()
    for b in copies(a): assert b.raw.equals(a.raw) and b.text() == a.text() and b.changes().equals(a.changes())


def test_what_was_written_in_place_is_copied_by_those_who_can():
    cf = GradualCF(HOUSE_MODEL, tabular(HOUSE, derive=dict(total=lambda df: df.income + df.debt)), 'sparse').fit(HOUSE)
    want = cf.explain(HOUSE.iloc[:3])
    with pytest.raises((pickle.PicklingError, AttributeError), match='lambda'): pickle.dumps(cf)  # when it is written, not when it is read
    cloudpickle = pytest.importorskip('cloudpickle')
    for other in (copy.deepcopy(cf), pickle.loads(cloudpickle.dumps(cf))): assert torch.equal(other.explain(HOUSE.iloc[:3]).xp, want.xp)


def asked_of(frame): return fitted().predict_proba(frame)

def made_elsewhere(kind, tmp_path):
    "A fitted model of another library, as a library or a file hands it over."
    y = labelled([0, 1])
    if kind == 'pipeline': return fitted('digits', 'pipeline')
    if kind in ('xgboost', 'ubj', 'json'):
        m, path = pytest.importorskip('xgboost').XGBClassifier(n_estimators=8, n_jobs=1).fit(X, y).get_booster(), tmp_path/f'm.{kind}'
        if kind == 'xgboost': return m
        m.save_model(path)
        return load_fitted(path)
    if kind in ('lightgbm', 'txt'):
        m = pytest.importorskip('lightgbm').LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y).booster_
        m.save_model(tmp_path/'m.txt')
        return load_fitted(tmp_path/'m.txt') if kind == 'txt' else m
    if kind in ('catboost', 'cbm'):
        m = pytest.importorskip('catboost').CatBoostClassifier(iterations=8, verbose=0, allow_writing_files=False).fit(X, y)
        m.save_model(str(tmp_path/'m.cbm'))
        return load_fitted(tmp_path/'m.cbm') if kind == 'cbm' else m
    if kind == 'skops':
        pytest.importorskip('skops.io').dump(fitted('digits', 'pipeline'), tmp_path/'m.skops')
        return load_fitted(tmp_path/'m.skops')
    if kind == 'function': return predictor(asked_of, tabular(X))
    if kind == 'scaled': return predictor(network(), tabular(X), scaled=StandardScaler().fit(X.to_numpy()))
    to, runtime = pytest.importorskip('skl2onnx'), pytest.importorskip('onnxruntime')
    numbers = X.to_numpy(np.float32)
    (tmp_path/'m.onnx').write_bytes(to.to_onnx(LogisticRegression().fit(numbers, y), numbers[:1]).SerializeToString())
    if kind == 'session': return runtime.InferenceSession((tmp_path/'m.onnx').read_bytes())
    return load_fitted(tmp_path/'m.onnx')


@pytest.mark.parametrize('kind', ['xgboost', 'ubj', 'lightgbm', 'txt', 'catboost', 'cbm', 'skops', 'function', 'scaled', 'session', 'onnx'])
def test_explainers_of_models_from_elsewhere_are_copied_whole(kind, tmp_path):
    cf = GradualCF(made_elsewhere(kind, tmp_path), tabular(X), 'sparse').fit(X)
    target = (cf.classes or (0, 1))[-1]
    a = cf.explain(X.iloc[:3], target)
    for file in tmp_path.iterdir(): file.write_bytes(b'another model')  # what was read counts, not what stands there later
    for other in copies(cf)[::3]:
        b = other.explain(X.iloc[:3], target)
        assert torch.equal(a.xp, b.xp) and torch.equal(a.tensors.prob, b.tensors.prob)
    twice = copy.deepcopy(copy.deepcopy(cf))
    assert torch.equal(twice.z_train, cf.z_train) and torch.equal(twice.explain(X.iloc[:3], target).xp, a.xp)


@pytest.mark.parametrize('file, model', [('ubj', 'xgboost'), ('json', 'xgboost'), ('txt', 'lightgbm'), ('cbm', 'catboost'), ('skops', 'pipeline'), ('onnx', 'session')])
def test_a_model_from_a_file_gives_the_same_answers(file, model, tmp_path):
    one, two = (GradualCF(made_elsewhere(kind, tmp_path), tabular(X), 'sparse').fit(X) for kind in (model, file))
    a, b = (cf.explain(X.iloc[:9], (cf.classes or (0, 1))[-1]) for cf in (one, two))
    assert a.valid.any() and np.array_equal(a.valid, b.valid) and a.raw.equals(b.raw)


@pytest.mark.parametrize('form', [Lent, pd.DataFrame.to_numpy, lambda df: df.to_dict('records')])
def test_rows_of_any_make_are_read(form):
    cf = GradualCF(network(), tabular(X), 'sparse').fit(form(X))
    assert torch.equal(cf.explain(form(X.iloc[:3]), 1).xp, cf.explain(X.iloc[:3], 1).xp)


def test_a_fit_that_fails_leaves_what_was():
    cf = GradualCF(network(), tabular(X), 'sparse').fit(X)
    before = cf.explain(X.iloc[:3], 1)
    for bad in (X[['age']], X.iloc[:0], X.assign(age='old')):
        with pytest.raises(ValueError): cf.fit(bad)
        assert torch.equal(cf.explain(X.iloc[:3], 1).xp, before.xp)


def test_masks_and_numbers_of_answers_work_on_frames():
    a = GradualCF(network(), tabular(X), 'sparse').fit(X).explain(X.iloc[:9], 1)
    for mask in (a.valid, a.prob > .5, a.changed[:, 0], a.typical > .1, a.target == 1):
        assert isinstance(mask, np.ndarray) and len(a.raw[mask]) == mask.sum() == len(a[mask]) and len(a.raw.loc[mask]) == mask.sum()
    assert a.raw.assign(p=a.prob).p.tolist() == a.prob.tolist()
    assert torch.equal(a.tensors.valid, torch.from_numpy(a.valid)) and a.tensors.target.dtype == torch.long


# Several outputs, and no classes at all
def test_one_of_several_outputs_is_chosen_by_name():
    domain, two = tabular(X), np.c_[labelled(['lost', 'repaid']), labelled(['a', 'b', 'c'])]
    both = RandomForestClassifier(10, random_state=0).fit(X, two)
    a = GradualCF(predictor(both, domain, output=1), domain, 'sparse', tau=.6).fit(X).explain(X.iloc[:5], 'c')
    assert (both.predict(a.raw)[:, 1] == 'c')[a.valid].all() and a.valid.any()
    line = LinearRegression().fit(X, np.c_[SCORE, -SCORE])
    a = GradualCF(predictor(line, domain, output=1), domain, 'sparse').fit(X).explain(X.iloc[:3], (1, None))
    assert a.valid.all() and (line.predict(a.raw)[:, 1] >= 1 - 1e-9).all()
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = network(), network()
        def forward(self, x): return self.one(x), -self.other(x)
    a = GradualCF(predictor(Heads(), domain, output=1), domain, 'sparse').fit(X).explain(X.iloc[:3], 1)
    b = GradualCF(predictor(Heads(), domain, output=0), domain, 'sparse').fit(X).explain(a.raw, 0)
    assert a.valid.all() and torch.equal(b.x, b.xp)


def test_outlier_detectors_have_the_labels_of_outliers():
    odd = IsolationForest(random_state=0).fit(X)
    cf = GradualCF(odd, tabular(X), 'sparse').fit(X)
    a = cf.explain(X[odd.predict(X) == -1].iloc[:4], target=1)
    assert cf.classes == (-1, 1) and a.valid.all() and (odd.predict(a.raw) == 1).all()
