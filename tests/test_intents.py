"""The three intents of a first answer: what each promises, once."""
import numpy as np
import pandas as pd
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from gradual_cf.all import GradualCF, predictor, tabular
from gradual_cf.search.confirmed import ensemble_of

MODELS = dict(forest=lambda: RandomForestClassifier(10, n_jobs=1),
              boosted=lambda: LGBMClassifier(n_estimators=30, num_leaves=5, verbose=-1, n_jobs=1), linear=lambda: LogisticRegression())


def loans(n=240, seed=0, share=.5):
    "Three numbers and who was granted, a share of all."
    r = np.random.default_rng(seed)
    X = pd.DataFrame(dict(income=r.normal(50, 12, n).round(1), debt=r.normal(20, 6, n).round(1), months=r.integers(0, 180, n)))
    score = (X.income - 50)/12 - (X.debt - 20)/6 + X.months/180 + r.normal(0, .5, n)
    return X, (score > score.quantile(1 - share)).astype(int).to_numpy()


def fitted(kind, settings, y=False, **how):
    "An explainer, its rows and their labels."
    X, labels = loans(**how)
    model = MODELS[kind]().fit(X, labels)
    return GradualCF(model, tabular(X), settings).fit(X, labels if y else None), X, model


@pytest.fixture(scope='module', params=MODELS)
def robust(request):
    "An explainer of each kind of model, refused rows and their answers."
    cf, X, model = fitted(request.param, 'robust')
    rows = X[model.predict(X) == 0].head(5)
    return request.param, cf, model, rows, cf.explain(rows, 1)


@pytest.mark.night
def test_what_is_robust_has_what_it_is_asked_for(robust):
    "The model decides so by its own `predict`; the lead and the company are there, or `quality` says what is missed."
    kind, cf, model, rows, answers = robust
    assert (model.predict(answers.raw) == 1).all()
    met = cf.satisfies_settings(answers.enc, answers.xp, answers.tensors.target).numpy()
    missed = answers.quality().missed.to_numpy()
    assert np.array_equal(missed == '', met) and met.any()


def test_other_questions_go_with_it():
    "What must be confirmed speaks of answers that the intent allows, what must be proven of those that are plausible or of the decision alone."
    cf, X, model = fitted('boosted', 'robust', y=True)
    rows = X[model.predict(X) == 0].head(2)
    for how, asked in ((cf, dict(proof='columns')), (cf.under(hold=.6), {}), (cf, dict(max_changes=2))):
        assert (model.predict(how.explain(rows, 1, **asked).raw) == 1).all()
    assert 'plausible answers well within the decision' in cf.under('plausible').explain(rows, 1, proof='columns').among
    plain, own = (e.explain(rows, 1, proof='columns') for e in (cf.under('sparse'), cf))  # of models trained again there is no bound
    assert own.raw.equals(plain.raw) and own.proof == plain.proof and own.among == plain.among
    assert plain.prove().verdict.equals(plain.prove().verdict)


@pytest.mark.night
@pytest.mark.parametrize('intent', ['robust', 'plausible'])
def test_what_cannot_be_had_is_said_to_be_so_without_being_asked(intent):
    "Where nothing was found, the decision alone is looked at: none exists, or there is one after all."
    cf, X, model = fitted('boosted', intent, y=True)
    rows = X[model.predict(X) == 0].head(12)
    limits = dict(bounds={'income': (None, 30)}, immutable=[c for c in X if c != 'income'])
    a, sparse = cf.explain(rows, 1, **limits), cf.under('sparse').explain(rows, 1, **limits)
    assert np.array_equal(a.valid, sparse.valid) and not a.valid.all()
    assert {told for told, valid in zip(a.proof, a.valid) if not valid} == {'none exists'}


def test_jurors_decide_as_often_as_for_real_rows(robust):
    "As many of twelve jurors give each answer as was wanted, or `quality` says what is missed; what is wanted is no more than real rows get, and no less where these are few."
    kind, cf, model, rows, answers = robust
    panel = ensemble_of(cf)
    goal = panel.goal(cf, 1)
    share = (panel.leads(panel.outputs(answers.xp), 1) > 0).mean(0)
    assert len(panel.learnt) == 12 and all(len(rows) < .7*len(cf.x_train) or len(cf.x_train) < 400 for rows in panel.learnt)
    assert (share >= goal['agreed'] - 1e-9)[answers.quality().missed.to_numpy() == ''].all() and goal['agreed'] <= .85
    few, X, _ = fitted('boosted', 'robust', n=900, share=.14)
    assert ensemble_of(few).goal(few, 1)['agreed'] >= .75 and few.aim(torch.tensor([0])).of('want') is not None


def test_labels_are_read_by_any_name():
    X, y = loans(60)
    names = np.array(['refused', 'granted'])[1 - y]
    cf = GradualCF(LogisticRegression().fit(X, names), tabular(X), 'sparse', classes={'granted': 'no', 'refused': 'yes'})
    assert np.array_equal(cf.fit(X, names).labels, cf.fit(X, np.where(names == 'granted', 'no', 'yes')).labels)
    for bad, says in ((y[:5], 'y must be a label for each of 60 rows'), (np.full(60, 'other'), 'y must be')):
        with pytest.raises(ValueError, match=says): cf.fit(X, bad)


def test_numbers_labels_alone_and_few_rows():
    "A model of numbers, one without probabilities, and a target of a handful of rows: each gets what can be had, and says so."
    from sklearn.svm import LinearSVC
    X, y = loans(200)
    cf = GradualCF(LinearRegression().fit(X, X.income - X.debt), tabular(X), 'robust').fit(X)
    assert cf.explain(X.head(2), (45., None)).valid.all() and 'missed' in cf.explain(X.head(1), (45., None)).quality()
    with pytest.raises(ValueError, match='y must be left out'): cf.fit(X, y)
    svc = LinearSVC().fit(X, y)
    assert (svc.predict(GradualCF(svc, tabular(X), 'robust').fit(X).explain(X[svc.predict(X) == 0].head(2), 1).raw) == 1).all()
    few = X.head(30)
    cf = GradualCF(svc, tabular(few), 'robust').fit(few)
    answers = cf.explain(few[svc.predict(few) == 0].head(2), 1) # no warning: nobody asked for company itself
    assert answers.valid.all() and answers.quality().missed.str.contains('too few rows').all()


def test_sparse_answers_of_a_network_stop_at_the_border():
    X, net = pd.DataFrame(dict(x=np.random.default_rng(0).random(200))), torch.nn.Linear(1, 2)
    with torch.no_grad(): net.weight.copy_(torch.tensor([[0.], [2.]])), net.bias.copy_(torch.tensor([0., -1.4]))
    found = GradualCF(predictor(net, tabular(X), scaled=False), tabular(X), 'sparse').fit(X).explain(X[X.x < .6][:5], 1)
    assert found.valid.all() and (found.raw.x - .7).between(0, 1e-3).all()
