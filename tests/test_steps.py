"Numbers as people write them, and which way is better: steps that are learnt or told, what answers make of them, and what reasons say."
import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from gradual_cf.all import PLAUSIBLE, GradualCF, load_loans, predictor, tabular
from gradual_cf.cli import app
from gradual_cf.data.columns import Column, _bounds_inside, replace

DRAW = np.random.default_rng(0)


def column_of(v, **told): return tabular(pd.DataFrame({'v': v, 'w': DRAW.integers(0, 9, len(v))}), **told).features[0]


# ---- what is learnt
K = DRAW.integers(1, 400, 300)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(5*k)) for k in K]
LEARNT = {  # cells -> step that is legal, step that is preferred where that is another
    'hundreds': (K*100, 100, 0), 'halves': (K/2, .5, 0), 'quarters': (K/4, .25, 0), 'two and a half': (K*2.5, 2.5, 0), 'below zero': (-500*K, 500, 0),
    'huge': (K*1e12, 1e12, 0), 'tiny': (K*5e-7, 5e-7, 0), 'float32': ((K/20).astype('f4'), .05, 0), 'nullable': (pd.Series(K*50, dtype='Int32'), 50, 0),
    'decimals': ([Decimal(f'{k/2:.2f}') for k in K], .5, 0), 'all one number': (np.full(300, 700), 100, 0), 'nothing but zeros': (np.zeros(300), 1, 0),
    'zeros tell nothing': (np.where(K > 40, 0, 1000*K), 1000, 0), 'missing cells': (np.where(K > 300, np.nan, K*10.), 10, 0),
    'one in a hundred': (np.where(np.arange(300) < 3, 7, 100*K), 100, 0), 'two in a hundred': (np.where(np.arange(300) < 6, 7, 100*K), 1, 100),
    'mostly thousands': (np.where(np.arange(300) < 50, 100*K + 100, 1000*K), 100, 1000), 'a few cents': (np.where(np.arange(300) < 9, K + .25, K*5.), .25, 5),
    'full precision': (np.sqrt(K + .5), None, 0), 'few rows': (K[:20]*100, 1, 0), 'dates': (DAYS, 1, 0)}


@pytest.mark.night
def test_the_coarsest_step_is_learnt():
    for name, (cells, step, usual) in LEARNT.items():
        c, none = column_of(cells), column_of(cells, read=dict(step={}))
        assert c.usual == usual and (c.step == pytest.approx(step, rel=1e-9) if step else not c.every), name
        assert not (none.every or none.usual) and (none.low, none.high, none.origin, none.span) == (c.low, c.high, c.origin, c.span), name


def test_training_numbers_between_the_steps_are_legal_and_no_others():
    df = pd.DataFrame(dict(v=np.where(np.arange(300) < 3, [7, 13, 22]*100, 100*K), w=K))
    domain, row = tabular(df), df[5:6]
    legal = lambda v: domain.legal(row, row.assign(v=v))[0, 0]
    assert all(map(legal, (7, 13, 22, 100, 300))) and not any(map(legal, (8, 99, 101, 150)))
    assert tabular(df, read=dict(step={'v': None})).legal(row, row.assign(v=150))[0, 0] and not tabular(df, read=dict(step={'v': 50})).legal(row, row.assign(v=120))[0, 0]
    pd.testing.assert_frame_equal(domain.decode(domain.encode(df).x, df), df)
    pd.testing.assert_frame_equal(domain.decode(domain.encode(df).x), df)


# ---- the lattice
STEPS = [1., 2.5, 5., 25., .5, .05, .25, 1000., 1e-6, 7.]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STEPS), st.sampled_from(['', 'float32']), st.lists(st.floats(-999, 999), min_size=0, max_size=4), st.floats(-2000, 2000), st.floats(0, 50))
def test_places_roundings_and_limits_are_of_one_set(step, bits, between, near, wide):
    digits = next(d for d in range(9) if round(step, d) == step)
    c = Column('v', ('v',), digits=digits, every=step, bits=bits, low=-1e6, high=1e6)
    c = replace(c, known=np.unique(c.stored(np.array(between)*step)) if between else None)
    places = np.arange(-300, 300)
    v = c.at(places)
    assert (np.diff(v) > 0).all() and (c.place(v) == places).all() and (c.rounded(v) == v).all()
    assert np.isin(v, np.r_[c.multiple(np.arange(-1300, 1300)), c.between]).all() and np.isin(c.between[np.abs(c.between) < 100*step], v).all()
    x = float(c.stored(near*step/20))
    distance = np.abs(np.r_[v, c.between] - x)
    if -250*step < x < 250*step: assert abs(float(c.rounded(np.array([x]))[0]) - x) <= distance.min() + 1e-9*step + 1e-6*abs(x)*bool(bits)
    low, high = (float(e) for e in _bounds_inside(c, x, x + wide*step))
    inside = v[(v >= c.stored(x)) & (v <= c.stored(x + wide*step))]
    if len(inside) and abs(x) < 100*step: assert (low, high) == pytest.approx((inside[0], inside[-1]), abs=1e-9*step)


# ---- answers
@pytest.fixture(scope='module')
def lender():
    X, y, rest, _ = load_loans()
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0).fit(X, y)
    return X, model, rest[model.predict(rest) == 'refused']


@pytest.mark.night
@pytest.mark.parametrize('preset', [None, PLAUSIBLE])
def test_answers_are_written_as_training_rows_are(lender, preset):
    X, model, rows = lender
    cf = GradualCF(model, tabular(X, immutable=['age', 'late_payments'], increase_only=['months_in_job']), preset).fit(X)
    answers = cf.explain(rows[:20], target='granted')
    sums = answers.changes()
    sums = sums[sums.feature.isin(['income', 'debt'])].after.astype(int)
    assert len(sums) > 15 and (sums % 100 == 0).all() and answers.valid.all() and (model.predict(answers.raw) == 'granted').all()
    region = cf.region(answers[:4])
    ends = region[region.feature.isin(['income', 'debt'])][['low', 'high']].to_numpy()
    assert len(ends) and (ends % 100 == 0).all()


def mostly_thousands(step=None, between=False, **told):
    "A bank that grants by income, which is written in hundreds and mostly in thousands; and those whom it refuses."
    income = np.where(DRAW.random(400) < .1, DRAW.integers(100, 900, 400)*100, DRAW.integers(10, 90, 400)*1000)
    if between: income[:2] = 50_520, 50_550
    df = pd.DataFrame(dict(income=income, debt=DRAW.integers(0, 80, 400)*250))
    domain = tabular(df, read=dict(step=step), **told)
    cf = GradualCF(predictor(lambda d: .5 + np.tanh((d.income - 50_530)/9000)/2.01, domain, kind='proba'), domain, 'sparse').fit(df)
    return df, cf


def test_the_usual_step_is_preferred_where_it_costs_a_tenth_at_most():
    df, cf = mostly_thousands()
    assert (cf.domain.features[0].step, cf.domain.features[0].usual) == (100, 1000)
    far, near = (cf.explain(df.head(1).assign(income=v, debt=1000), 1).raw.income.item() for v in (20_000, 49_000))
    assert (far, near) == (51_000, 50_600) # the nearest hundred is 50,600
    assert cf.explain(df.head(1).assign(income=20_000, debt=1000), 1, bounds={'income': (None, 50_700)}).raw.income.item() == 50_600
    off = cf.explain(df.head(1).assign(income=20_000, debt=1033), 1).raw
    assert (off.income.item(), off.debt.item()) == (51_000, 1033)  # one's own number stays as it is


def test_a_number_between_the_steps_is_rounded_too_and_said_where_it_cannot_be():
    df, cf = mostly_thousands(between=True)
    row = df.tail(1).assign(income=20_000, debt=1000)
    assert cf.explain(row, 1).raw.income.item() == 51_000
    answers = cf.explain(row, 1, bounds={'income': (None, 50_599)})
    if answers.valid.all(): assert answers.changes().note.tolist() == ['finer than its step of 100'] and 'finer than its step' in answers.text()
    X, y = df[['income', 'debt']], (df.income > 50_540).astype(int)
    trees = GradualCF(DecisionTreeClassifier(random_state=0).fit(X, y), tabular(X), 'sparse').fit(X)  # which cuts at 50,535
    finer = trees.explain(row, 1, bounds={'income': (None, 50_599)})
    assert finer.valid.all() and finer.raw.income.item() == 50_550 and 'finer than its step of 100' in finer.text()


def test_a_proof_is_about_the_nearest_and_none_that_was_asked_for_is_rounded():
    df, _ = mostly_thousands()
    y = (df.income + 2*df.debt > 60_000).astype(int)
    lines = GradualCF(LogisticRegression(max_iter=5000).fit(df/1000, y), tabular(df/1000), 'sparse').fit(df/1000)
    rows = (df[lines.model.predictor.source.predict(df/1000) == 0]/1000).head(12)
    usual, proven = lines.explain(rows, 1), lines.explain(rows, 1, proof='distance')
    assert set(proven.proof) == {'optimal'} and usual.valid.all()
    far = [(a.xp - a.x).abs().sum(1) for a in (usual, proven, lines.explain(rows, 1, proof='columns'))]
    assert (far[1] <= far[0] + 1e-9).all() and (far[0] <= 1.1*far[2] + 1e-9).all() and (far[0] > far[2] + 1e-9).any()
    assert all(told == 'optimal' or told.startswith('fewest columns; distance within') for told in usual.proof)


# ---- which way is better
@pytest.mark.night
def test_a_hint_decides_ties_and_forbids_nothing():
    df = pd.DataFrame(dict(v=np.arange(-40, 41).repeat(4), w=np.tile(np.arange(4), 81)))
    for way, want in dict(higher=12, lower=-12).items():
        domain = tabular(df, better=dict(v=way))
        cf = GradualCF(predictor(lambda d: np.where(np.abs(d.v) > 11.5, .9, .1), domain, kind='proba'), domain, 'sparse').fit(df)
        assert cf.explain(df[df.v == 0].head(1), 1).raw.v.item() == want
        assert cf.explain(df[df.v == -9*np.sign(want)].head(1), 1).raw.v.item() == -want  # which is nearer


def test_what_may_only_go_one_way_is_better_that_way_unless_somebody_says_otherwise():
    X = load_loans(400)[0]
    way = lambda **told: {c.name: c.better for c in tabular(X, increase_only=['age'], decrease_only=['debt'], **told).features if c.better}
    assert way() == dict(age=1, debt=-1) and way(better=dict(age=None, income='higher')) == dict(debt=-1, income=1)


# ---- told, kept and shown
def test_steps_and_directions_are_shown_and_kept(lender, tmp_path):
    X, _, rows = lender
    X = X[['income', 'debt', 'age']].assign(income=np.where(np.arange(len(X)) < 3, 12_345, X.income))
    domain = tabular(X, better=dict(debt='lower'), increase_only=['age'], read=dict(step=dict(age=5)))
    about = domain.about().set_index('column')
    assert about.step.tolist() == ['100', '100', '5'] and about.better.tolist() == ['', 'lower', 'higher'] and about.guessed.tolist() == ['step', 'step', '']
    assert about.may.tolist() == ['changes', 'changes', 'only increases'] and '12,345' not in domain.text()
    assert all(word in part for part in (domain.text(), domain._repr_html_()) for word in ('income', 'only increases', 'lower', '100'))
    cf = GradualCF(LogisticRegression(max_iter=5000).fit(X, (X.income > 3*X.debt).astype(int)), domain, 'sparse').fit(X)
    back = GradualCF.load(cf.save(tmp_path/'kept'))
    assert [(c.every, c.usual, c.better) for c in back.domain.features] == [(c.every, c.usual, c.better) for c in domain.features]
    assert back.domain.about().equals(domain.about()) and back.domain.legal(X[5:6], X[5:6].assign(income=12_345)).all()
    some = rows[['income', 'debt', 'age']].head(5)
    pd.testing.assert_frame_equal(back.explain(some).raw, cf.explain(some).raw)


def test_images_say_what_they_are():
    from gradual_cf.all import images
    assert images(block=4)._repr_html_() == images(block=4).text() == repr(images(block=4)) == 'Domain(image)'


def test_the_command_line_takes_directions(networks):
    said = [CliRunner().invoke(app, ['explain', 'loans', '--row', '3', '--better', told]) for told in ('debt=lower', 'debt=less', 'debt')]
    assert [r.exit_code for r in said] == [0, 2, 2] and "got 'less' for the integer 'debt'" in said[1].output and 'NAME=higher' in said[2].output
