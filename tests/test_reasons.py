"""Principal reasons: against scorecards done by hand and brute force, with codes, forbidden columns and bad input."""
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from toy import Score

from gradual_cf.all import GradualCF, reasons, tabular
from gradual_cf.use.reasons import HMDA

WEIGHTS = dict(income=6., debt=-4., months=2., idle=0.)


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({c: rng.integers(0, 101, n) for c in WEIGHTS})


@pytest.fixture(scope='module')
def cf(): return GradualCF(Score([*WEIGHTS.values()]), tabular(people()), 'sparse', wanted=1).fit(people())


def by_hand(cf, row):
    "Points of each column below the average of the two references of the commentary, in shares of what is lacking."
    x, w = cf.x_train.double().numpy(), np.array([*WEIGHTS.values()])
    score = x @ w - 2
    order = np.argsort(np.where(score > 0, score, np.inf), kind='stable')[:max(int(.25*(score > 0).sum()), 20)]
    mine = cf.encode(row).x.double().numpy()[0]
    return [dict(zip(WEIGHTS, w*(ref.mean(0) - mine)/-(mine @ w - 2))) for ref in (x[order], x)]


def test_a_scorecard_gives_the_two_methods_of_the_commentary(cf):
    rows = people(60, 1)
    found = reasons(cf, rows, k=4).frame
    for i in found.row.unique():
        near, every = by_hand(cf, rows.iloc[[i]])
        lack = -(cf.encode(rows.iloc[[i]]).x[0].double().numpy() @ np.array([*WEIGHTS.values()]) - 2)
        for line in found[found.row == i].itertuples():
            room = .03*abs(WEIGHTS[line.columns])/lack  # of an average over eight values of a hundred
            assert abs(line.near - near[line.columns]) <= room and abs(line[-1] - every[line.columns]) <= room


@pytest.mark.night
def test_alone_and_put_back_are_what_the_model_says(cf):
    rows = people(40, 2)
    found, w = reasons(cf, rows, k=2), np.array([*WEIGHTS.values()])
    assert found.refused.sum() > 10 and (found.frame.groupby('row').size() <= 2).all()
    score = lambda row: float(cf.encode(row).x[0].double().numpy() @ w - 2)
    for i, lines in found.frame.groupby('row'):
        row = rows.iloc[[i]]
        if -score(row) < .01: continue  # a tie lacks nothing to speak of
        lack, whole = -score(row), row.assign(**{l.columns: float(l.compared) for l in lines.itertuples()})
        assert found.enough[i] == (score(whole) >= 0)
        for l in lines.itertuples():
            assert l.has == str(row[l.columns].iloc[0])
            alone = score(row.assign(**{l.columns: float(l.compared)})) + lack
            back = score(whole) - score(whole.assign(**{l.columns: row[l.columns].iloc[0]}))
            np.testing.assert_allclose([l.alone, l.put_back], [alone/lack, back/lack], rtol=1e-4, atol=1e-5)
            assert (l.alone + l.put_back)/2 >= .05


def test_no_other_column_closes_more_and_an_idle_one_is_no_reason(cf):
    rows = people(60, 3)
    few, all_ = reasons(cf, rows, k=1).frame, reasons(cf, rows, k=9).frame
    assert (few.alone.to_numpy() == all_.groupby('row').alone.max().loc[few.row].to_numpy()).all()
    assert 'idle' not in set(all_['columns'])


def test_where_four_exist_four_are_told():
    "Six columns of equal weight, all of them at their worst."
    names = list('abcdef')
    rows = pd.DataFrame({c: np.random.default_rng(i).integers(0, 101, 300) for i, c in enumerate(names)})
    cf = GradualCF(Score([1.]*6, -3.), tabular(rows), 'sparse', wanted=1).fit(rows)
    found = reasons(cf, pd.DataFrame({c: [0, 100] for c in names}))
    assert found.refused.tolist() == [True, False] and found.of(1) == []
    assert len(found.of(0)) == 4 and (found.frame['rank'] == [1, 2, 3, 4]).all()


def test_codes_gather_columns_and_are_those_that_were_given(cf):
    rows = people(60, 4)
    found = reasons(cf, rows, house=dict(codes=dict(income=('A1', 'Too little income'), debt=1, months=1, idle='Nothing')))
    assert set(found.frame.code) <= {'A1', 1} and HMDA[1] in set(found.frame.reason)
    both = found.frame[found.frame.code == 1]
    assert set(both['columns']) == {'debt, months'} and both.has.str.contains('debt .*, months').all()
    apart = reasons(cf, rows).frame.set_index(['row', 'columns'])
    one = lambda row, c: apart.alone.get((row, c), 0.)
    for l in both.itertuples():  # a score adds up; what is less than a twentieth is not told
        assert one(l.row, 'debt') + one(l.row, 'months') - 1e-5 <= l.alone <= one(l.row, 'debt') + one(l.row, 'months') + .1


def test_a_column_that_must_not_be_named_is_not_and_the_reader_is_told(cf):
    rows = people(60, 5)
    free, held = reasons(cf, rows), reasons(cf, rows, house=dict(never=['income']))
    assert 'income' in set(free.frame['columns']) and 'income' not in set(held.frame['columns'])
    assert free.withheld == {} and 0 < held.withheld['income'] <= held.refused.sum()
    assert 'must not be named' in held.text() and 'must not be named' in held._repr_html_()
    assert reasons(cf, rows, house=dict(never='idle')).withheld == {}


def test_rows_that_nobody_refuses_have_no_reasons(cf):
    rich = people(5).assign(income=100, debt=0, months=100)
    found = reasons(cf, rich)
    assert not found.refused.any() and not len(found.frame) and 'none to be told' in repr(found)
    assert found.text() and found._repr_html_() and found.plot()


def test_what_is_derived_follows():
    "The model reads a ratio alone: debt and income are the reasons behind it, and never without it."
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(dict(debt=rng.integers(1, 101, 300), income=rng.integers(50, 151, 300)))
    rows['ratio'] = rows.debt/rows.income
    domain = tabular(rows, derive=dict(ratio=lambda df: df.debt/df.income))
    cf = GradualCF(Score([0., 0., -4.], 1.), domain, 'sparse', wanted=1).fit(rows)
    bad = pd.DataFrame(dict(debt=[90], income=[100], ratio=[.9]))
    told = reasons(cf, bad).frame
    assert {'debt', 'income'} & set(told['columns'])


def test_classes_with_names_have_no_second_one():
    "'granted' stands before 'refused' in the alphabet: the second class is no wish."
    named = GradualCF(Score([*WEIGHTS.values()]), tabular(people()), 'sparse', classes=('refused', 'granted')).fit(people())
    assert 'rows is not granted' in repr(reasons(named, people(5), target='granted'))


def test_what_cannot_change_can_be_a_reason_and_the_value_compared_is_the_one_that_was_tried(cf):
    ruled = GradualCF(cf.model, tabular(people(), immutable=['income'], increase_only=['months'], decrease_only=['debt']), 'sparse', wanted=1).fit(people())
    rows = people(60, 1)
    a, b = reasons(cf, rows).frame, reasons(ruled, rows).frame
    pd.testing.assert_frame_equal(a, b)
    assert (b.has != b.compared).all() and (b.alone > 0).all()


def test_a_column_without_a_name_goes_by_it():
    df = people(60).rename(columns=dict(idle=' '))
    cf = GradualCF(Score([*WEIGHTS.values()]), tabular(df), 'sparse', wanted=1).fit(df)
    assert reasons(cf, df[:10], house=dict(codes=dict(income=('A1', 'Income')), never='debt')).refused.any()
    assert reasons(cf, df[:10], house=dict(never=None)).refused.any()


class Both(nn.Module):
    "Asks for a and b at once, and reads nothing else: a change of one alone does nothing."
    def forward(self, x):
        z = torch.where((x[:, 0] > .5) & (x[:, 1] > .5), 1., -1.)
        return torch.stack([-z, z], 1)


def pairs(n=300): return pd.DataFrame(np.random.default_rng(0).integers(0, 11, (n, 3)), columns=['a', 'b', 'c'])


def test_a_row_that_no_column_helps_alone_gets_what_is_needed_together():
    cf = GradualCF(Both(), tabular(pairs()), 'sparse', wanted=1).fit(pairs())
    found = reasons(cf, pd.DataFrame(dict(a=[0, 0, 9, 9], b=[0, 9, 0, 9], c=[5]*4)))
    assert found.refused.tolist() == [True]*3 + [False] and found.without == [] and found.enough.tolist() == [True]*3 + [False]
    assert [set(found.frame[found.frame.row == i]['columns']) for i in range(3)] == [{'a', 'b'}, {'a'}, {'b'}]
    two, ones = (found.frame[found.frame.row.isin(rows)] for rows in ([0], [1, 2]))
    assert (two.alone == 0).all() and (two.put_back >= 1).all() and not two.enough.any() and ones.enough.all()
    few = reasons(cf, pd.DataFrame(dict(a=[0], b=[0], c=[5])), k=1)
    assert len(few.frame) == 1 and few.enough.tolist() == [False]


def test_rows_without_a_reason_that_may_be_named_are_told_and_what_was_withheld_is_said():
    cf = GradualCF(Both(), tabular(pairs()), 'sparse', wanted=1).fit(pairs())
    found = reasons(cf, pd.DataFrame(dict(a=[0, 0], b=[9, 0], c=[5, 5])), house=dict(never='a', language='de'))
    assert found.without == [0, 1] and not len(found.frame) and not found.enough.any() and found.withheld == dict(a=1)
    assert all(f'Zeile {i}: kein Grund gefunden' in page for i in (0, 1) for page in (found.text().replace('\n', ' '), found._repr_html_()))


def fitted(kind):
    "A fitted model, how its explainer is set up, and the target."
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import FixedThresholdClassifier
    from sklearn.svm import SVC
    rows = people(300)
    y = np.where(rows.income - .7*rows.debt + .3*rows.months > 25, 'yes', 'no')
    if kind == 'several': return RandomForestClassifier(20, random_state=0, n_jobs=1).fit(rows, np.where(y == 'yes', np.where(rows.idle > 50, 'yes', 'maybe'), 'no')), {}
    if kind == 'cut-off': return FixedThresholdClassifier(RandomForestClassifier(20, random_state=0, n_jobs=1), threshold=.8, pos_label='yes').fit(rows, y), {}
    if kind == 'probability': return HistGradientBoostingClassifier(random_state=0).fit(rows, y), dict(tau=.9)
    return dict(trees=HistGradientBoostingClassifier(random_state=0), margins=SVC()).get(kind).fit(rows, y), {}


@pytest.mark.night
@pytest.mark.parametrize('kind', ['trees', 'margins', 'several', 'cut-off', 'probability'])
def test_every_refused_row_has_reasons_and_predict_says_what_is_enough(kind):
    "Each reason alone and all of a row together, as the page tells them, put into the row."
    model, how = fitted(kind)
    cf, rows = GradualCF(model, tabular(people(300)), 'sparse', **how).fit(people(300)), people(40, 7)
    found = reasons(cf, rows, target='yes')
    assert np.array_equal(found.refused, model.predict(rows) != 'yes') and found.refused.sum() > 10 and found.without == []
    def there(frame):
        said = model.predict(frame) == 'yes'
        return said & (model.predict_proba(frame)[:, list(model.classes_).index('yes')] >= how['tau']) if how else said
    for i, lines in found.frame.groupby('row'):
        one = rows.iloc[[i]]
        put = [one.assign(**{line.columns: int(line.compared)}) for line in lines.itertuples()]
        assert there(pd.concat(put)).tolist() == lines.enough.tolist()
        assert there(one.assign(**{line.columns: int(line.compared) for line in lines.itertuples()})).tolist() == [found.enough[i]]


def test_kendalls_tau_is_scipys():
    from scipy.stats import kendalltau
    from gradual_cf.use.reasons import _taus
    a, b = (torch.as_tensor(np.random.default_rng(i).integers(0, 4, (50, 6))) for i in (0, 1))
    np.testing.assert_allclose(_taus(a, b), [kendalltau(x, y).statistic for x, y in zip(a, b)])
    assert np.isnan(_taus(a[:1]*0, b[:1])).all()
