"""A row is decided as the model's own `predict` decides it: every classifier, wherever it stands, for two classes and for several."""
import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from cover import ALL
from decides import COUNTS, SLOW, every, kinds, table, wrapped
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from torch import nn

from gradual_cf.all import GradualCF, audit, check_evidence, letter, predictor, tabular
from gradual_cf.models.networks import seeded
from gradual_cf.use.evidence import evidence

HOW = 'plain', 'pipeline', 'search'
FEW = ['SVC with probability', 'SVC ovo', 'cut .8', 'cut .2 of the first', 'cut of decisions', 'tuned forest', 'one against one', 'hard votes', 'centroids', 'codes', 'stack', 'tree']


def asked(name, k, how):
    "Rows and answers: model, explainer, refused rows with answers, rows that have the target with answers."
    X, y = table(k)
    if name in COUNTS: X = (X - X.min()).round()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # what models say while they are fitted
        model = wrapped(name, (kinds() if name in kinds() else every())[name], how).fit(X, y)
        said = np.asarray(model.predict(X))
        if len(set(said)) < 2: pytest.skip('the model names one class')
        target = 1 if k == 2 else pd.Series(said).value_counts().index[1]
        rows, own = X[said != target].head(6), X[said == target].head(4)
        cf = GradualCF(model, tabular(X), 'sparse').fit(X)
        return model, target, rows, cf.explain(rows, target), own, cf.explain(own, target)


def holds(name, k, how):
    try: model, target, rows, answers, own, kept = asked(name, k, how)
    except ValueError as e:
        if k > 2 and ('two' in str(e) or 'binary' in str(e)): pytest.skip(f'{name} is for two classes')  # a cut-off
        raise
    agrees = np.asarray(model.predict(answers.raw)) == target
    assert (answers.valid == agrees).all() and not answers.already.any()
    assert not kept.changed.any() and kept.already.all() and kept.valid.all()
    assert f'{len(own)} had it already' in repr(kept)


def cases():
    "Name, number of classes, wrapper: a few in which everything is met, and all of them in a soak."
    cut = lambda name: 'cut' in name or 'tuned' in name
    first = [(name, 2 if cut(name) else 3 + 2*(i % 2), HOW[i % 3]) for i, name in enumerate(FEW)]
    names = {*kinds(), *every()} - SLOW if ALL else []
    return list(dict.fromkeys([*first, *((name, k, how) for name in sorted(names) for k in (2, 3, 5) for how in HOW if k == 2 or not cut(name))]))


@pytest.mark.parametrize('name, k, how', cases())
def test_no_answer_is_denied_and_no_row_that_has_it_is_changed(name, k, how): holds(name, k, how)


class Stubborn(ClassifierMixin, BaseEstimator):
    "A model whose `predict` agrees with its numbers on all rows but those of a corner that training rows do not have."
    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.feature_names_in_ = np.array(list(X), object)
        return self

    def predict_proba(self, X):
        p = 1/(1 + np.exp(-(X.a + X.b)))
        return np.c_[1 - p, p]

    def predict(self, X): return ((X.a + X.b > 0) & ~((X.a > 1.4) & (X.a < 1.9))).astype(int)


@pytest.mark.night
@pytest.mark.parametrize('k, many, tau', [(2, 2, None), (2, 2, .3), (3, 2, None), (3, 2, .3), (5, 3, None)])
def test_what_is_valid_is_decided_by_each_of_several_networks(k, many, tau):
    "The least probability of a class may be the largest although one of the networks decides for another."
    X, met = pd.DataFrame(np.random.default_rng(k).normal(size=(150, 3)).round(1), columns=list('uvw')), 0
    domain = tabular(X)
    x = domain.encode(X).x.float()
    for seed in range(4):
        nets = []
        for i in range(many):
            with seeded(10*seed + i): nets.append(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, k)))
            with torch.no_grad():
                nets[-1][-1].weight *= 3
                nets[-1][-1].bias -= nets[-1](x).mean(0)  # every class is somewhere
        decide = lambda frame: torch.stack([net(domain.encode(frame).x.float()).argmax(1) for net in nets])
        at = decide(X)
        cf = GradualCF(nets, domain, 'sparse', **{} if tau is None else dict(tau=tau)).fit(X)
        for target in at[0][(at == at[0]).all(0)].unique().tolist():
            answers = cf.explain(X.head(12), target)
            assert (decide(answers.raw)[:, answers.valid] == target).all()
            met += answers.valid.sum()
    assert met > 5


@pytest.mark.night
def test_predict_has_the_last_word_where_a_comparison_saw_nothing():
    r = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=r.choice([-1., 0., 1., 2.], 300), b=r.choice([-1., -1.5, -2.], 300)))
    model = Stubborn().fit(X, (X.a > 0).astype(int))
    rows = X[model.predict(X) == 0].head(8)
    cf = GradualCF(model, tabular(X, immutable=['b']), 'sparse').fit(X)
    answers = cf.explain(rows, 1, bounds={'a': (None, 2.)})
    assert (model.predict(answers.raw) == answers.valid).all()
    alone = pd.concat([cf.explain(rows.iloc[[i]], 1, bounds={'a': (None, 2.)}).raw for i in range(len(rows))])
    pd.testing.assert_frame_equal(alone, answers.raw)  # whoever stands beside it


@pytest.fixture(scope='module')
def loans():
    X, y = table(2)
    return X, np.where(y == 1, 'yes', 'no')


@pytest.mark.parametrize('cut, label', [(.8, 'yes'), (.3, 'yes'), (.3, 'no')])
def test_texts_tell_the_models_own_probability_and_its_cut(loans, cut, label):
    X, y = loans
    model = FixedThresholdClassifier(LogisticRegression(), threshold=cut, pos_label=label).fit(X, y)
    rows, own = X[model.predict(X) == 'no'].head(5), model.estimator_.predict_proba
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    a = cf.explain(rows, 'yes')
    needed = cut if label == 'yes' else 1 - cut
    np.testing.assert_allclose(a.before, own(rows)[:, 1], atol=1e-7)
    np.testing.assert_allclose(a.prob, own(a.raw)[:, 1], atol=1e-7)
    assert a.tau is None and a.cut == pytest.approx(needed) and (a.prob >= needed - 1e-7).all() and '(decided for)' in repr(a)
    text = letter(a[:1], date='2026-11-25')[0]
    assert f'{100*needed:.6g}% was needed' in text and check_evidence(text, cf).flips.all()
    told = json.loads(evidence(a[:1])[0])
    assert told['question']['tau'] is None and told['model']['decides'] == 'both'
    refused = audit(cf, X.assign(g=np.arange(len(X)) % 2), by='g', target='yes', test=dict(resamples=99))
    assert np.average(refused.frame[refused.frame.measure == 'refused'].value) == pytest.approx((model.predict(X) == 'no').mean(), abs=.05)


def test_a_probability_that_is_asked_for_is_the_models_own(loans):
    X, y = loans
    model = FixedThresholdClassifier(LogisticRegression(), threshold=.3, pos_label='yes').fit(X, y)
    rows, own = X[model.predict(X) == 'no'].head(5), model.estimator_.predict_proba
    low, high = (GradualCF(model, tabular(X), 'sparse', tau=tau).fit(X).explain(rows, 'yes', proof='distance') for tau in (.2, .6))
    assert (own(low.raw)[:, 1] >= .3 - 1e-7).all() and (own(low.raw)[:, 1] < .6).any()  # the decision asks for more
    assert (own(high.raw)[:, 1] >= .6).all() and 'with a probability of at least 0.6' in repr(high)
    assert 'with a probability of at least 60%' in letter(high[:1], date='2026-11-25')[0]
    assert {*high.proof} == {'optimal'}  # nothing nearer has as much


def test_several_classes_ask_for_the_decision_and_nothing_else():
    X, y = table(5)
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(X, y)
    t = pd.Series(model.predict(X)).value_counts().index[1]
    rows = X[model.predict(X) != t].head(8)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    a, more = cf.explain(rows, t), GradualCF(model, tabular(X), 'sparse', tau=.5).fit(X).explain(rows, t)
    assert (model.predict(a.raw) == t).all() and all(p.startswith(('optimal', 'fewest columns; distance ')) for p in a.proof)
    assert a.changed.sum() < more.changed.sum() and (a.prob < .5).any() and (more.prob[more.valid] >= .5).all()
    assert a.prove().verdict.str.startswith(('optimal', 'at most')).all()
    text = letter(a[:1], date='2026-11-25')[0]
    assert 'was needed' not in text and f'it put the probability of “class {t}” at' in text and check_evidence(text, cf).flips.all()
    assert not cf.explain(X[model.predict(X) == t].head(5), t).changed.any()


def test_whoever_names_the_cut_decides(loans):
    X, y = loans
    model = FixedThresholdClassifier(LogisticRegression(), threshold=.8, pos_label='yes').fit(X, y)
    domain = tabular(X)
    own, named = (GradualCF(m, domain, 'sparse').fit(X) for m in (predictor(model, domain), predictor(model, domain, threshold=.4)))
    rows = X[model.estimator_.predict_proba(X)[:, 1] < .4].head(5)
    assert own.cut == pytest.approx(.8) and named.cut == .4
    assert ((model.estimator_.predict_proba(named.explain(rows, 'yes').raw)[:, 1] >= .4).all()) and (model.predict(own.explain(rows, 'yes').raw) == 'yes').all()


def test_labels_in_another_order_are_an_error(loans):
    X, y = loans
    model = LogisticRegression().fit(X, y)
    for turned in (['yes', 'no'], ['Yes', 'No'], np.array(['yes', 'no'])):
        with pytest.raises(ValueError, match="order of the model, 'no', 'yes'.*{'no': …, 'yes': …}"): GradualCF(model, tabular(X), 'sparse', classes=turned)
    named = GradualCF(model, tabular(X), 'sparse', classes={'yes': 'granted', 'no': 'refused'}).fit(X)
    assert named.classes == ('refused', 'granted')
    a = named.explain(X[model.predict(X) == 'no'].head(3), 'granted')
    assert (model.predict(a.raw) == 'yes').all()
    with pytest.raises(ValueError, match='each label of the model'): GradualCF(model, tabular(X), 'sparse', classes={'yes': 'granted'})


def test_a_proof_of_another_row_is_an_error(loans, monkeypatch):
    X, y = loans
    model = RandomForestClassifier(6, max_depth=3, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    rows = X[model.predict(X) == 'no'].head(4)
    assert all(isinstance(a.proof, list) for a in (cf.explain(rows, 'yes'), cf.explain(rows, 'yes', limit=5.)))
    from gradual_cf.search import proven
    own = proven._search_and_prove
    def nearer(*args):
        known, begun = own(*args)
        known.size[:], known.distance[:] = known.size + 1, known.distance/2
        return known, begun
    monkeypatch.setattr(proven, '_search_and_prove', nearer)
    with pytest.raises(RuntimeError, match='about the row that is returned'): cf.explain(rows, 'yes')


class Hesitant(Stubborn):
    "Its numbers grant from a sum on; its predict grants a hair later, where no row of a fit or a comparison lies."
    def beyond(self, d): return d.to_numpy() @ [1., -1.] - 20
    def predict(self, d): return (self.beyond(d) > .02).astype(int)

    def predict_proba(self, d):
        p = 1/(1 + np.exp(-self.beyond(d)/5))
        return np.c_[1 - p, p]


@pytest.mark.parametrize('settings', ['sparse', None])
def test_answers_that_predict_denies_are_looked_for_again(settings):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(income=(rng.random(400)*60).round(3), debt=(rng.random(400)*30).round(3)))
    model = Hesitant().fit(X, [0, 1]*200)
    X = X[~pd.Series(model.beyond(X), X.index).between(0, .02)]
    cf, rows = GradualCF(model, tabular(X), settings).fit(X), X[model.predict(X) == 0][:6]
    assert not cf.model.predictor.over  # it seemed that numbers decide
    answers, several = cf.explain(rows, 1), cf.explain(rows, 1, k=2)
    first = several[several.answer == 1]
    for told in (answers, several): assert told.valid.all() and model.predict(told.raw).all()
    assert list(first.data.index) == list(rows.index) and (first.changed.sum(1) <= answers.changed.sum(1)).all()
    if settings == 'sparse': assert (model.beyond(answers.raw) < 1).all()  # a little beyond the hair, where the numbers alone would have stopped
