"""The nearest real row that has all stands beside an answer; open sides are open; plans say where it is enough."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gradual_cf.all import PLAUSIBLE, GradualCF, plausible, tabular
from gradual_cf.search.boxes import grid_of
from gradual_cf.search.robust import _upwards

SETTINGS = dict(sparse='sparse', half=replace(plausible(.5), logit_margin=.35), PLAUSIBLE=PLAUSIBLE)
MODELS = dict(boosted=lambda: HistGradientBoostingClassifier(max_iter=20, random_state=0),
              linear=lambda: make_pipeline(StandardScaler(), LogisticRegression()))
RULES = dict(free={}, locked=dict(immutable=['a'], bounds=dict(b=(3, 25)), increase_only=['c']), few=dict(immutable=['a', 'b', 'c'], max_changes=2))


def made(seed, n=400):
    "Six numbers that count together: one column alone has to go far."
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 30, (n, 6)), columns=list('abcdef'))
    return X, (X.sum(axis=1) + X.a*X.b/20 + rng.normal(0, 6, n) > 96).astype(int)


def asked(seed, model, settings='sparse', **told):
    X, y = made(seed)
    m = MODELS[model]().fit(X, y)
    cf = GradualCF(m, tabular(X, **told), SETTINGS[settings]).fit(X)
    return cf, X, X[m.predict(X) == 0].head(12)


def nearest(cf, X, rows, rules):
    "By asking everything: how far the nearest training row is that reaches 1 under the rules of a row and has all; both distances."
    _, enc, _, target = cf.ask(rows, 1, **rules)
    X = X[cf.model.predictor.source.predict(X) == 1]
    out = np.full((2, len(rows)), np.inf)
    for i in range(len(rows)):
        own, put = rows.iloc[i], X.copy()
        for c in rules.get('immutable', ()): put[c] = own[c]
        for c, (low, high) in rules.get('bounds', {}).items(): put[c] = put[c].clip(low, high).where(put[c] != own[c], own[c])
        for c in rules.get('increase_only', ()): put[c] = put[c].clip(own[c])
        put = put[(put != own).sum(axis=1).between(1, rules.get('max_changes', 6))]
        put = put[cf.model.predictor.source.predict(put) == 1] if len(put) else put
        if not len(put): continue
        xp = cf.encode(put).x
        many = enc.take(np.full(len(put), i))
        put = xp[cf.satisfies_settings(many, xp, target[[i]].expand(len(put)))]
        if len(put): out[:, i] = [(put - enc.x[i]).norm(dim=1).min(), (put - enc.x[i]).abs().sum(1).min()]
    return out


@pytest.mark.night
@pytest.mark.parametrize('model, settings, rules', [('boosted', 'half', 'locked'), ('boosted', 'sparse', 'free'), ('boosted', 'sparse', 'few'),
                                                    ('linear', 'half', 'free'), ('boosted', 'PLAUSIBLE', 'few'), ('linear', 'PLAUSIBLE', 'free')])
def test_beside_an_answer_stands_the_nearest_real_row_that_has_all(model, settings, rules):
    cf, X, rows = asked(3, model, settings)
    a = cf.explain(rows, 1, **RULES[rules])
    far, known = nearest(cf, X, rows, RULES[rules]), a.quality()
    there = np.isfinite(far[0])
    assert a.valid[there].all() and there.any()
    assert np.allclose(known.nearest_row[there], far[1][there], rtol=1e-3) and known.nearest_row[~there].isna().all()
    assert a.domain.legal(a.data, a.raw).all() and (a.changed.sum(1) <= RULES[rules].get('max_changes', 6)).all()


def test_rows_at_the_target_stay_and_without_training_rows_nothing_is_compared(tmp_path):
    cf, X, rows = asked(3, 'linear')
    granted = X[cf.model.predictor.source.predict(X) == 1].head(5)
    a = cf.explain(granted, 1)
    assert not a.changed.any() and a.quality().nearest_row.isna().all()
    cf.save(tmp_path/'cf', rows=False)
    bare = GradualCF.load(tmp_path/'cf', cf.model.predictor.source)
    b = bare.explain(rows, 1)
    assert b.valid.all() and b.quality().nearest_row.isna().all() and (b.changed.sum(1) <= cf.explain(rows, 1).changed.sum(1)).all()


def test_the_side_that_a_table_names_as_better_is_the_good_one():
    X, _ = made(5)
    domain = tabular(X, better=dict(a='lower', b='higher'), decrease_only=['c'])
    x, xp = (domain.encode(v).x for v in (X.head(4), X.head(4) + [2, -2, -1, 2, -2, 0]))
    assert _upwards(grid_of(domain.features), x, xp).tolist() == [[False, True, False, True, False, True]]*4


@pytest.mark.night
def test_plans_mark_what_is_enough_and_no_step_loses_it():
    cf, _, rows = asked(3, 'boosted', 'PLAUSIBLE')
    a = cf.explain(rows, 1)
    plan = a.plan()
    steps, marked = plan.changes(), 0
    for i, some in steps.groupby('row'):
        told = some.groupby('step')[['enough', 'probability']].last()
        assert (np.diff([a.before[i], *told.probability]) >= -1e-6).all() and told.enough.iloc[-1]
        assert (told.enough == (told.probability > .5)[::-1].cummin()[::-1]).all()
        text = plan.text().split('row ')[1 + list(steps.row.unique()).index(i)]
        early = int(told.enough.sum()) - 1
        assert text.count('enough from here') == (early > 0) and text.count('a margin') == early
        marked += early > 0
    assert marked
