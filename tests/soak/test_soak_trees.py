"""Models of trees over made tables, as their libraries hand them out: what they say themselves of every answer."""
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st
from judge import faults
from invented import ASKED, KINDS, Made, asked, domain_of, frames, rules
from test_soak_tables import QUICK, check_same

from gradual_cf.all import PLAUSIBLE, GradualCF

pytestmark = pytest.mark.filterwarnings('ignore:plausibility is left out')  # of few rows, as tests/test_unread.py says

LEAVES = 5                                  # Fewest training rows of a class
PLAIN = ['int64', 'int8', 'uint8', 'int32 far from zero', 'float64', 'float64 unrounded', 'float64 huge', 'float32', 'two values', 'bool']
HOLES = [*PLAIN, 'float64 with holes', 'whole floats with holes']
LEVELS = [*HOLES, 'category', 'category with holes', 'category of whole numbers', 'category with levels that no row has']
CHANGES = [{}, {}, dict(tau=.7), dict(tau_slack=.2), dict(batch_size=3), dict(quantile=.3), dict(logit_margin=.2)]


def forest(seed, k):
    from sklearn.ensemble import RandomForestClassifier
    return RandomForestClassifier(n_estimators=9, max_depth=5, random_state=seed)


def extra(seed, k):
    from sklearn.ensemble import ExtraTreesClassifier
    return ExtraTreesClassifier(n_estimators=9, max_depth=5, random_state=seed)


def stumps(seed, k):
    from sklearn.ensemble import GradientBoostingClassifier
    return GradientBoostingClassifier(n_estimators=9, max_depth=2, random_state=seed)


def boosted(seed, k):
    from sklearn.ensemble import HistGradientBoostingClassifier
    return HistGradientBoostingClassifier(max_iter=9, min_samples_leaf=3, categorical_features='from_dtype', random_state=seed)


def xgb(seed, k):
    from xgboost import XGBClassifier
    return XGBClassifier(n_estimators=9, max_depth=3, min_child_weight=0, enable_categorical=True, n_jobs=1, random_state=seed)


def lgbm(seed, k):
    from lightgbm import LGBMClassifier
    return LGBMClassifier(n_estimators=9, num_leaves=5, min_child_samples=3, min_data_per_group=1, verbose=-1, n_jobs=1, random_state=seed)


# Name -> the kinds of columns it reads, and how it is made
MAKES:dict[str, Any] = dict(forest=(HOLES, forest), extra=(PLAIN, extra), stumps=(PLAIN, stumps), boosted=(LEVELS, boosted),
                            xgboost=(LEVELS, xgb), lightgbm=(LEVELS, lgbm))
THERE = [name for name in MAKES if name not in ('xgboost', 'lightgbm') or importlib.util.find_spec(name)]


@st.composite
def grown(draw):
    "A table that a make of trees reads, and a question."
    make = draw(st.sampled_from(THERE), label='make')
    df,kinds,seed = draw(frames(kinds=tuple(k for k in MAKES[make][0] if k in KINDS)))
    df = df.set_axis([f'c{i}' for i in range(df.shape[1])], axis=1)     # these libraries refuse odd names
    kinds = dict(zip(df, kinds.values()))
    made = Made(df, df.iloc[:ASKED], kinds, draw(rules(df, kinds)), draw(st.sampled_from(['domain', 'question']), label='where'), seed)
    return make, made


def fitted(make, made, k):
    "A model of a table, of classes that the first columns and some luck decide."
    r = np.random.default_rng(made.seed)
    ranks = [s.rank(pct=True).fillna(.5) if s.dtype.kind in 'iuf' else s.astype(str).rank(pct=True) for _,s in made.train.items()]
    score = sum(rank.to_numpy(float)*w for rank,w in zip(ranks, r.normal(0, 1, len(ranks)))) + r.normal(0, .1, len(made.train))
    y = np.searchsorted(np.quantile(score, np.arange(1, k)/k), score)
    assume(np.bincount(y, minlength=k).min() >= LEAVES)
    return MAKES[make][1](made.seed, k).fit(made.train, y)


@QUICK
@given(case=grown(), k=st.sampled_from([2, 3]), how=st.sampled_from([None, None, PLAUSIBLE]), changes=st.sampled_from(CHANGES),
       order=st.permutations(range(ASKED)))
def test_what_trees_say_of_an_answer_is_what_is_said_of_it(case, k, how, changes, order):
    make,made = case
    model = fitted(make, made, k)
    said = lambda df: model.predict_proba(df).astype(float)
    p = said(made.rows)
    target = torch.tensor((p.argmax(1) + 1) % k)
    assume(np.bincount(said(made.train).argmax(1), minlength=k).min() > 1)
    cf = GradualCF(model, domain_of(made), how, **changes).fit(made.train)
    try: cfs = cf.explain(made.rows, target, **asked(made))
    except ValueError as e:
        assert 'training row' in str(e), e
        assume(False)
    assert not (found := faults(made, made.rows, cfs.raw)), found
    own = said(cfs.raw)[np.arange(len(p)), target]
    np.testing.assert_allclose(own, cfs.prob, atol=2e-6)
    sure = np.abs(own - cf.settings.tau) > 1e-5
    assert ((own >= cf.settings.tau) == cfs.valid)[sure].all()
    order = list(order)
    check_same(cf.explain(made.rows.iloc[order], target[order], **asked(made)).raw, cfs.raw.iloc[order])
    check_same(cf.explain(made.rows.iloc[[order[0]]], target[[order[0]]], **asked(made)).raw, cfs.raw.iloc[[order[0]]])
    with ThreadPoolExecutor(3) as pool:
        for again in pool.map(lambda _: cf.explain(made.rows, target, **asked(made)).raw, range(3)): check_same(again, cfs.raw)
