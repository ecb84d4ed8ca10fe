"""Targets are labels: as the model calls its classes, wherever a target comes in or goes out."""
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from cover import few
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from toy import Score

from gradual_cf.all import (LORE, Counterfactuals, GradualCF, GrowingSpheres, as_batches, audit, because, check_evidence, confirm,
    evaluate, explain_dataset, frames, letter, predictor, stepper, tabular)
from gradual_cf.models.targets import CLASSES
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


@pytest.mark.night
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


@pytest.mark.night
def test_a_network_is_told_its_labels_once_and_everything_says_them():
    labels = 'refused', 'granted'
    cf = GradualCF(network(), tabular(X), 'sparse', classes=labels).fit(X)
    rows = X[cf.logits(X, cf.encode(X).x).argmax(1).numpy() == 0].iloc[:12]
    a = cf.explain(rows, target='granted')
    assert 'refused → granted, 1 <abbr' in a._repr_html_() and 'refused → ' not in cf.explain(a.raw, target='granted')._repr_html_()
    several, plan, trace = cf.explain(rows.iloc[:2], 'granted', k=2), a[:2].plan(), cf.trace(rows.iloc[:1], 'granted')
    page = stepper(trace)
    shown = [a.text(), a._repr_html_(), several.text(), several._repr_html_(), plan.text(), plan._repr_html_(), repr(trace),
             *(f.text for f in frames(trace)), letter(a[:1], date='1 May')[0], letter(a[:1], format='html', date='1 May')[0]]
    assert all('granted' in text and 'class 1' not in text and 'class 0' not in text for text in shown) and page is not None
    assert (check_evidence(letter(a), cf, rows).flips).all() and '"target":"granted"' in letter(a[:1])[0]
    assert evaluate(cf, rows, 'granted', eps=()).set_index('metric').loc['valid', 'mean'] == 1
    plain = GradualCF(network(), tabular(X), 'sparse').fit(X)
    same = plain.explain(rows, 1)
    assert torch.equal(same.xp, a.xp) and same.target.tolist() == [1]*12 and 'class 1' in same.text()
    told = audit(cf, X, (X.age > 0).rename('old'), target='granted', test=dict(resamples=99))
    assert set(told.advice(2).answers.target) == {'granted'}
    assert 'to be granted' in told.text() and 'class 1' not in told._repr_html_()
    old = (X.age > 0).rename('old')
    assert audit(GradualCF(network(), tabular(X), 'sparse', wanted='granted', classes=labels), X, old, test=dict(resamples=99)).text() == told.text()
    with pytest.raises(ValueError, match="one of the labels 'refused', 'granted'"): audit(cf, X, old)
    assert GrowingSpheres(network(), tabular(X), classes=labels).fit(X).explain(rows[:2], 'granted').target.tolist() == ['granted']*2
    lore = LORE(network(), tabular(X), classes=labels).fit(X)
    assert because(a[:2], lore).sentence.str.contains('refused .*; granted if ').all()


@pytest.mark.night
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
    a = cf.explain(rows, 'granted', proof='columns')
    assert len(ways(cf, rows, 'granted', k=1)) and a.valid.all()
    assert len(a.prove()) == 4 and cf.under(hold=dict(noise=dict(income=.01))).explain(rows, 'granted').target.tolist() == ['granted']*4


@pytest.mark.parametrize('kind', KINDS)
def test_answers_come_back_from_a_file_with_their_labels(kind, tmp_path):
    cf = GradualCF(fitted(kind), tabular(X), 'sparse').fit(X)
    a = cf.explain(X.iloc[:4], KINDS[kind][-1])
    plain, b = (Counterfactuals.load(a.save(tmp_path/'a.zip'), by) for by in (cf.domain, cf))  # `text` asks the explainer what would have been enough
    assert plain.target.tolist() == a.target.tolist() and plain.classes == a.classes and plain.changes().equals(a.changes())
    assert b.target.tolist() == a.target.tolist() and b.target.dtype == a.target.dtype and b.classes == a.classes
    assert b.text() == a.text() and torch.equal(b.tensors.target, a.tensors.target)
    assert pickle.loads(pickle.dumps(a.target)).tolist() == a.target.tolist()
    refused = a[~a.already]
    assert (check_evidence(letter(refused, date='1 May'), cf).flips == refused.valid).all()
    days = replace(a, classes=(pd.Timestamp(0), pd.Timestamp(1)), target=np.array([pd.Timestamp(0)]*4))
    assert Counterfactuals.load(days.save(tmp_path/'b.zip'), cf.domain).classes == days.classes


@pytest.mark.night
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


# What people hand over


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
@pytest.mark.night
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
