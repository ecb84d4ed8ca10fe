"""Fitted models as they are, by the measures of `benchmarks/models.py`, on small tables."""
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]/'benchmarks'))
import models
from gradual_cf.data.tables import tabular


def mixed(n=300, seed=0):
    "Numbers, whole numbers, categories; some cells are missing."
    rng = np.random.default_rng(seed)
    level = pd.Categorical(rng.choice(['a', 'b', 'c'], n), categories=['a', 'b', 'c'])
    X = pd.DataFrame({'number': rng.normal(size=n).round(2), 'whole': rng.integers(0, 20, n), 'level': level})
    y = (X.number + X.whole/10 + (X.level == 'b') > 1.2).to_numpy(int)
    return X, y


@pytest.fixture
def case(request, monkeypatch):
    "A model on the mixed table."
    pytest.importorskip(request.param if request.param in ('xgboost', 'lightgbm', 'catboost') else 'sklearn')
    monkeypatch.setitem(models.RULES, 'mixed', dict(increase_only=['whole']))
    X, y = mixed()
    return models.case_of(models.Data('mixed', X[:250], y[:250], X[250:]), request.param)


@pytest.mark.night
@pytest.mark.parametrize('case', models.MODELS, indirect=True)
@pytest.mark.parametrize('through', ['itself', 'adapter'])
def test_the_models_own_predict_agrees_and_every_change_is_legal(case, through):
    model = models.adapted(case) if through == 'adapter' else None
    line = models.ours(case, model=model, alone=1)
    assert line['valid'] == line['legal'] == 1 and 1 <= line['columns'] <= 2


class Constant:
    "Says 1 to rows whose number is above 0."
    def predict(self, frame): return (frame.number.fillna(-1) > 0).to_numpy(int)


@pytest.fixture
def by_hand():
    "Four rows: one found in two columns, one found in one, one not found, one whose missing number was filled."
    X = pd.DataFrame({'number': [-2., -1., -1., np.nan], 'level': pd.Categorical(['a', 'a', 'b', 'b'])})
    new = X.assign(number=[2., 1., -.5, 1.], level=pd.Categorical(['b', 'a', 'b', 'b']))
    train = pd.DataFrame({'number': [-2., 2., np.nan], 'level': pd.Categorical(['a', 'b', 'a'])})
    data = models.Data('hand', train, np.array([0, 1, 0]), X)
    return models.Case(data, 'constant', Constant(), tabular(train), np.ones(4, int)), new


def test_the_measures_by_hand(by_hand):
    line = models.measured(by_hand[0], 'm', by_hand[1], .002)
    assert line['valid'] == .75 and line['ms'] == 2 and (line['missing'], line['filled']) == (1, 1)
    assert line['columns'] == pytest.approx(4/3) and line['l2'] == pytest.approx((np.sqrt(2) + .5 + 1)/3)
