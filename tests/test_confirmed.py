"""Answers that models agree about which might have been: who they are, what is asked of them, what is left alone."""
import numpy as np
import pandas as pd
import pytest
import torch
import toy
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from gradual_cf.all import GradualCF, tabular
from gradual_cf.search.confirmed import _agreed, _bootstrap, retrained_ensemble


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(dict(income=rng.integers(0, 101, n), debt=rng.integers(0, 101, n), idle=rng.integers(0, 5, n)))


def card(bar=1.): return toy.Score([6., -4., 0.], -bar)


class Bar:
    "A juror who asks for more than the model does."
    def __init__(self, more): self.more = more

    def __call__(self, x):
        z = 6*x[:, 0] - 4*x[:, 1] - 1 - self.more
        return torch.stack([-z, z], 1)/2


@pytest.fixture
def cf():
    "Five jurors who ask for ever more."
    cf = GradualCF(card(), tabular(people()), 'sparse').fit(people())
    cf.retrained += [Bar(v) for v in (-.5, 0, .5, 1., 1.5)]
    return cf


@pytest.mark.night
@pytest.mark.parametrize('share', [.2, .6, .8, 1.])
def test_answers_go_as_far_as_jurors_ask_and_say_how_many_agree(cf, share):
    rows = people(60, 1)
    rows = rows[(cf.explain(rows, 1).before < .5)]
    answers = cf.under(hold=share).explain(rows, 1)
    assert answers.valid.all() and (answers.confirmed >= share).all()
    np.testing.assert_array_equal(answers.confirmed, _agreed(cf.retrained, answers.xp, answers.tensors.target))
    for a, words in zip(answers.confirmed, answers.proof): assert words == f'{round(5*a)} of 5 agree'


def test_where_enough_agree_at_once_the_answer_is_the_usual_one(cf):
    cf.retrained[:] = [Bar(-9.)]*5
    rows = people(20, 2)
    usual, answers = cf.explain(rows, 1), cf.under(hold=1.).explain(rows, 1)
    pd.testing.assert_frame_equal(usual.raw, answers.raw)
    assert set(answers.proof) == {'5 of 5 agree'}


def test_a_row_that_cannot_be_read_says_so(cf):
    rows = people(5, 6).astype(object)
    rows.loc[2, 'income'] = 'much'
    answers = cf.under(hold=.6).explain(rows, 1)
    assert answers.unread.tolist() == [False, False, True, False, False] and np.isnan(answers.confirmed[2]) and not answers.valid[2]


def test_labels_are_drawn_as_the_model_says():
    z = torch.tensor([[4., 0.], [0., 0.], [0., 4.]]).repeat(1000, 1)
    rows, label = _bootstrap(z, 3)
    share = pd.Series(label).groupby(rows % 3).mean()
    np.testing.assert_allclose(share, [.018, .5, .982], atol=.06)  # 5 standard deviations of a share of 1,000
    never = _bootstrap(torch.tensor([[9., -9., -99.]]).repeat(50, 1), 0)[1]
    assert set(never) == {0, 1, 2}  # a fitted model refuses a class without a row


@pytest.mark.parametrize('kind', ['network', 'linear', 'forest', 'function'])
def test_jurors_are_of_the_kind_of_the_model(kind):
    X = people()
    y = (X.income > X.debt).astype(int)
    model = dict(network=lambda: card(0.), linear=lambda: LogisticRegression().fit(X, y), forest=lambda: RandomForestClassifier(5, random_state=0).fit(X, y),
                 function=lambda: lambda x: torch.stack([x[:, 1], x[:, 0]], 1)*4)[kind]()
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    weights, random = [p.clone() for p in getattr(model, 'parameters', list)()], torch.get_rng_state()
    some = retrained_ensemble(cf, 2)
    assert retrained_ensemble(cf, 2) == some and len(cf.retrained) == 2
    for m in some: assert m(cf.x_train).shape == (len(X), 2) and m(cf.x_train).isfinite().all()
    assert torch.equal(random, torch.get_rng_state()) and all(torch.equal(a, b) for a, b in zip(weights, getattr(model, 'parameters', list)()))
    assert cf.fit(X).retrained == []  # of other rows, other jurors
