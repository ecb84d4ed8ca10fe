"""Groups, their way, and what chance explains: against SciPy and brute force, on banks with and without a longer way."""
import re
import sys
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import toy
from scipy import stats

from gradual_cf.all import Audit, GradualCF, audit, tabular
from gradual_cf.use.audit import (_chosen, _cohorts, _holm, _impact_line, _ratio_line, _share_ratio_interval, _shuffled, _standard_errors, _step_down, _told_apart)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'benchmarks'))


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(dict(income=rng.integers(0, 101, n), debt=rng.integers(0, 101, n), sex=rng.choice(['f', 'm'], n),
                             region=rng.choice(['north', 'south', 'isles'], n, p=[.57, .4, .03])))


def made(higher=1., n=300, **rules):
    "Rows with a region that the model does not read, and an explainer; more by `higher` is asked of men."
    rows = people(n)
    read = rows.drop(columns='region')
    return GradualCF(toy.Score([6., -4., 0., -higher], -1.2), tabular(read, immutable=['sex'], **rules), 'sparse', wanted='granted', classes=('refused', 'granted')).fit(read), rows


@pytest.fixture(scope='module')
def told():
    cf, rows = made(n=600)
    return cf, rows, audit(cf, rows, ['sex', 'region'], test=dict(resamples=199))


def line(a, group, measure):
    lines = a.frame[(a.frame.measure == measure) & (a.frame.group == group)]
    assert len(lines) == 1
    return lines.iloc[0]


# Statistics
def drawn(seed=0, n=40):
    rng = np.random.default_rng(seed)
    member = np.stack([rng.random(n) < .4, rng.random(n) < .5, rng.random(n) < .3], 1)
    return rng.exponential(size=n) + .8*member[:, 0], member


def test_distances_between_groups_are_welchs_t_and_for_shares_that_of_pooled_proportions(monkeypatch):
    monkeypatch.setattr('gradual_cf.use.audit._PRIOR', 0)
    v, member = drawn()
    t = _standard_errors((v - v.mean())[None], member.astype(float), False)[0]
    np.testing.assert_allclose(t, [stats.ttest_ind(v[m], v[~m], equal_var=False).statistic for m in member.T])
    share = (v > 1).astype(float)
    z = _standard_errors((share - share.mean())[None], member.astype(float), True)[0]
    table = lambda m: [[share[m].sum(), (1 - share[m]).sum()], [share[~m].sum(), (1 - share[~m]).sum()]]
    np.testing.assert_allclose(z**2, [stats.chi2_contingency(table(m), correction=False).statistic for m in member.T])


def test_a_small_group_draws_on_the_spread_of_all_rows_as_if_fifty_of_them_were_its_own():
    v, member = drawn()
    a, b = v[member[:, 1]], v[~member[:, 1]]
    drawn_in = lambda s: ((len(s) - 1)*s.var(ddof=1) + 50*v.var())/(len(s) - 1 + 50)/len(s)
    t = _standard_errors((v - v.mean())[None], member.astype(float), False)[0, 1]
    assert t == pytest.approx((a.mean() - b.mean())/np.sqrt(drawn_in(a) + drawn_in(b)))


def test_groups_without_any_spread_have_the_p_value_of_their_shuffles():
    member = np.repeat([[1.], [0.]], 4, 0)
    v = member[:, 0] - .5
    p, _ = _step_down(abs(_standard_errors(v[None], member, False)[0]), _shuffled(v, member, False, 4000, np.random.default_rng(0)))
    assert p.item() == pytest.approx(2/70, abs=.01)  # two of the 70 ways to choose four of eight


def test_p_values_of_single_groups_are_those_of_scipys_permutation_test(monkeypatch):
    v, member = drawn(n=12)
    member = member[:, :1] | (np.arange(12) < 3)[:, None]
    m = member[:, 0]
    monkeypatch.setattr('gradual_cf.use.audit._PRIOR', 0)
    vectorized = lambda a, b, axis: abs(stats.ttest_ind(a, b, equal_var=False, axis=axis).statistic)
    exact = stats.permutation_test((v[m], v[~m]), vectorized, vectorized=True, n_resamples=np.inf, alternative='greater').pvalue
    centred = v - v.mean()
    by_chance = _shuffled(centred, member.astype(float), False, 5000, np.random.default_rng(0))
    p, corrected = _step_down(abs(_standard_errors(centred[None], member.astype(float), False)[0]), by_chance)
    assert p.item() == corrected.item() == pytest.approx(exact, abs=.02)


def test_max_t_goes_down_step_by_step_as_by_hand():
    v, member = drawn()
    centred, m = v - v.mean(), member.astype(float)
    seen = abs(_standard_errors(centred[None], m, False)[0])
    by_chance = _shuffled(centred, m, False, 500, np.random.default_rng(1))
    alone, corrected = _step_down(seen, by_chance)
    left, so_far = list(np.argsort(-seen)), 0.
    while left:
        hits = sum(max(row[left]) >= seen[left[0]]*(1 - 1e-9) for row in by_chance)
        so_far = max(so_far, (1 + hits)/501)
        assert corrected[left[0]] == so_far
        left.pop(0)
    assert (corrected >= alone).all()
    twin = np.concatenate([m, 1 - m], 1)  # the others of each group tell nothing new, and cost nothing
    seen, by_chance = abs(_standard_errors(centred[None], twin, False)[0]), np.concatenate([by_chance]*2, 1)
    np.testing.assert_array_equal(_step_down(seen, by_chance)[1], [*corrected]*2)


def test_families_are_corrected_no_less_than_a_closed_test_of_all_intersections_demands():
    rng = np.random.default_rng(0)
    for _ in range(20):
        t, by_chance = rng.exponential(size=4)*2, rng.exponential(size=(200, 4))
        family = np.array([0, 0, 1, 1])
        p = np.concatenate([_step_down(t[family == f], by_chance[:, family == f])[1] for f in (0, 1)])
        def of_one(some): return (1 + (by_chance[:, some].max(1) >= t[some].max()).sum())/201
        def of(some):
            parts = [[h for h in some if family[h] == f] for f in (0, 1)]
            parts = [part for part in parts if part]
            return min(1, len(parts)*min(map(of_one, parts)))
        every = [list(s) for s in chain.from_iterable(combinations(range(4), k) for k in range(1, 5))]
        closed = np.array([max(of(s) for s in every if h in s) for h in range(4)])
        assert (_holm(p, family) >= closed - 1e-12).all()
    np.testing.assert_allclose(_holm(np.array([.03, .01, .5]), np.array([0, 1, 2])), [.06, .03, .5])


# What is measured
@pytest.mark.night
def test_lines_hold_what_pandas_counts(told):
    cf, rows, a = told
    answers = cf.explain(rows.drop(columns='region'), target='granted')
    refused = ~answers.already
    np.testing.assert_array_equal(a.refused, refused)
    standing = answers.quality().set_index(rows.index)
    for group in ('f', 'm'):
        here = (rows.sex == group).to_numpy()
        assert line(a, group, 'refused').value == refused[here].mean() and line(a, group, 'refused').rows == here.sum()
        assert line(a, group, 'recourse').value == standing.valid[here & refused].mean()
        ways, others = (standing.distance[refused & side & standing.valid] for side in (here, ~here))
        one = line(a, group, 'distance')
        np.testing.assert_allclose([one.value, one.lower, one.upper, one.average], [ways.median(), *ways.quantile([.25, .75]), ways.mean()], rtol=1e-5)
        np.testing.assert_allclose([one.others, one.ratio], [others.mean(), ways.mean()/others.mean()], rtol=1e-5)
        assert one.low <= one.value <= one.high and one.ratio_low < one.ratio < one.ratio_high
        assert line(a, group, 'changes').average == standing.changes[refused & here & standing.valid].mean()
    low, high = stats.binomtest(int(refused.sum()), len(rows)).proportion_ci(method='wilson')
    assert (line(a, 'all rows', 'refused').low, line(a, 'all rows', 'refused').high) == (low, high)


def test_a_ratio_to_next_to_nothing_has_no_upper_end_and_one_to_nothing_is_none():
    none, one, some = np.zeros(40), np.eye(40)[0], np.repeat([1., 0.], 20)
    far = _ratio_line(some, one, False, 99, 0)
    assert far['ratio'] == 20 and not np.isfinite(far['ratio_high'])
    assert _ratio_line(some, none, True, 99, 0) == dict(others=0.)
    assert _ratio_line(none, some, True, 99, 0)['ratio'] == 0


def score_test(a, n, b, m, ratio):
    "Standard errors between counts and a ratio, with the likeliest shares that have it found by search."
    from scipy.optimize import minimize_scalar
    unlikely = lambda q: -stats.binom.logpmf(a, n, min(ratio*q, 1)) - stats.binom.logpmf(b, m, q)
    q = minimize_scalar(unlikely, bounds=(0, min(1, 1/ratio)), method='bounded', options=dict(xatol=1e-12)).x
    p = ratio*q
    return (a/n - ratio*b/m)/np.sqrt((p*(1 - p)/n + ratio**2*q*(1 - q)/m)*(n + m)/(n + m - 1))


def test_the_interval_of_a_ratio_of_shares_inverts_the_score_test():
    for a, n, b, m in ((7, 34, 1, 34), (20, 30, 25, 31), (3, 40, 200, 300), (30, 30, 29, 30)):
        low, high = _share_ratio_interval(a, n, b, m)
        np.testing.assert_allclose([score_test(a, n, b, m, low), score_test(a, n, b, m, high)], [1.959964, -1.959964], atol=2e-3)
        np.testing.assert_allclose(_share_ratio_interval(b, m, a, n), (1/high, 1/low), rtol=1e-6)
    assert _share_ratio_interval(0, 30, 0, 30) == (0, np.inf)
    (zero, high), (low, far) = _share_ratio_interval(0, 30, 9, 30), _share_ratio_interval(9, 30, 0, 30)
    assert zero == 0 < high < 1 < low and far == np.inf


@pytest.mark.night
def test_nineteen_of_twenty_intervals_hold_the_ratio():
    "Exactly: over all that can be counted in two groups of thirty, weighed by how likely it is."
    n, counts = 30, np.arange(31)
    ends = np.array([[_share_ratio_interval(a, n, b, n) for b in counts.tolist()] for a in counts.tolist()])
    for p, q in ((.1, .3), (.5, .6), (.9, .9), (.3, .05)):
        likely = np.outer(stats.binom.pmf(counts, n, p), stats.binom.pmf(counts, n, q))
        assert .935 < (likely*((ends[..., 0] <= p/q) & (p/q <= ends[..., 1]))).sum() < .985


@pytest.mark.night
def test_adverse_impact_is_counted_against_the_group_that_is_accepted_most_often(told):
    _, rows, a = told
    assert len(a.impact) and not a.impact.group.str.contains('isles').any() and (a.impact.ratio <= 1).all()
    for line in a.impact[a.impact.by.isin(['sex', 'region'])].itertuples():
        mine, there = (~a.refused[(rows[line.by] == g).to_numpy()] for g in (line.group, line.against))
        assert there.mean() == max((~a.refused[(rows[line.by] == g).to_numpy()]).mean() for g in ('f', 'm', 'north', 'south') if g in set(rows[line.by]))
        assert (line.rows, line.ratio, line.refusals) == (len(mine), pytest.approx(mine.mean()/there.mean()), pytest.approx((~mine).mean()/(~there).mean()))
        assert line.low < line.ratio < line.high and line.refusals_low < line.refusals < line.refusals_high
    one = a.impact[a.impact.by == 'sex'].iloc[0]
    assert one.four_fifths == ('below' if one.high < .8 else 'kept' if one.low >= .8 else 'open')
    assert 'adverse impact ratio' in a.text() and 'adverse impact ratio' in a._repr_html_()
    drawn = [_impact_line(np.arange(n) < k, np.arange(100) < 60) for n, k in ((100, 30), (1000, 595), (40, 18))]
    assert [line['four_fifths'] for line in drawn] == ['below', 'kept', 'open']


@pytest.mark.parametrize('kind', ['tokens', 'blocks'])
def test_what_is_no_table_is_audited_by_groups_told_apart(kind):
    p = toy.PROBLEMS[kind]()
    cf = GradualCF(p.model, p.domain, 'sparse', sigma=0).fit(p.x)
    a = audit(cf, p.x, pd.Series(np.arange(200) % 2, name='parity'), target=1, test=dict(resamples=99))
    assert line(a, '1', 'refused').rows == 100 and 'group 0' in set(a.columns.column)


@pytest.mark.night
def test_columns_say_how_often_and_how_far(told):
    _, rows, a = told
    women = (rows.sex[a.refused] == 'f').to_numpy() & a.answers.valid
    raw, data = a.answers.raw[women], a.answers.data[women]
    income = a.columns[(a.columns.group == 'f') & (a.columns.column == 'income')].iloc[0]
    assert income.changed == (raw.income != data.income).mean()
    assert income.way == pytest.approx(abs(raw.income - data.income).mean()/100, rel=1e-4)


@pytest.mark.night
def test_small_groups_are_named_and_not_measured(told):
    _, rows, a = told
    assert ('region', 'isles') in a.withheld and (rows.region == 'isles').sum() < 30
    isles = a.frame[a.frame.group.str.contains('isles')]
    assert isles[isles.columns[3:]].isna().all().all()
    assert not a.columns.group.str.contains('isles').any()
    assert '  isles: withheld' in a.text().splitlines()


def test_a_group_is_not_compared_where_its_others_are_too_few():
    cf, rows = made()
    few = pd.Series(np.where(rows.index < 12, 'few', 'many'), name='size')
    a = audit(cf, rows.drop(columns='region'), pd.concat([few, rows.sex], axis=1), test=dict(resamples=99, crossed=1))
    assert pd.notna(line(a, 'many', 'refused').value)
    assert a.frame[a.frame.group == 'many'][['others', 'ratio', 'p', 'corrected']].isna().all().all()
    many = a.columns[a.columns.group == 'many']
    assert many.others_changed.isna().all() and many.changed.notna().all()


@pytest.mark.night
def test_groups_come_by_name_or_apart_and_a_missing_cell_is_a_group():
    cf, rows = made()
    read = rows.drop(columns='region')
    apart = audit(cf, read, rows.region, test=dict(resamples=99))
    pd.testing.assert_frame_equal(apart.frame, audit(cf, rows, 'region', test=dict(resamples=99)).frame)
    gone = rows.assign(region=rows.region.where(rows.index % 3 > 0))
    a = audit(cf, gone, 'region', test=dict(resamples=99))
    assert line(a, 'missing', 'refused').rows == gone.region.isna().sum()


@pytest.mark.night
def test_other_columns_and_their_order_do_not_matter():
    cf, rows = made()
    mixed = rows.assign(name='x')[['name', 'sex', 'region', 'debt', 'income']]
    pd.testing.assert_frame_equal(audit(cf, mixed, 'sex', test=dict(resamples=99)).frame, own := audit(cf, rows, 'sex', test=dict(resamples=99)).frame)
    assert not own.equals(audit(cf.under(seed=4), rows, 'sex', test=dict(resamples=99)).frame)


def test_crossings_are_every_group_of_every_pair_that_is_not_empty():
    rows = people()
    groups = _cohorts(_told_apart(rows, ['sex', 'region']), 2)
    assert len(groups) == 2 + 3 + 6
    own = next(member for _,name,member in groups if name == 'f × south')
    np.testing.assert_array_equal(own, (rows.sex == 'f') & (rows.region == 'south'))
    assert len(_cohorts(_told_apart(rows, ['sex', 'region']), 1)) == 5
    only = rows.assign(region=np.where(rows.sex == 'f', 'north', 'south'))
    assert len(_cohorts(_told_apart(only, ['sex', 'region']), 2)) == 6


@pytest.mark.night
def test_constraints_of_each_row_stay_with_their_rows():
    cf, rows = made()
    read, bounds = rows.drop(columns='region'), [dict(income=(None, int(v) + 25)) for v in rows.income]
    a = audit(cf, rows, 'sex', bounds=bounds, immutable=['debt'], test=dict(resamples=99))
    kept = [b for b, r in zip(bounds, a.refused) if r]
    plain = cf.explain(read[a.refused], target='granted', bounds=kept, immutable=['debt'])
    assert a.answers.xp.equal(plain.xp) and 0 < a.answers.valid.sum() < len(kept)
    assert (a.answers.raw.income - a.answers.data.income).max() <= 25


@pytest.mark.night
def test_recourse_that_one_group_lacks_is_found():
    cf, rows = made(higher=0., n=600)
    tied = [['income', 'debt'] if f and i % 4 == 0 else [] for i, f in enumerate(rows.sex == 'f')]
    a = audit(cf, rows, 'sex', immutable=tied, test=dict(resamples=199))
    assert line(a, 'f', 'recourse').corrected <= .05 and line(a, 'f', 'recourse').value < .9
    assert set(a.differences.measure) == {'recourse'}


@pytest.mark.night
def test_prices_take_the_place_of_distance():
    cf, rows = made(cost=dict(income=3., debt=1.))
    a = audit(cf, rows, 'sex', test=dict(resamples=99))
    own = a.answers.domain.cost(a.answers.x, a.answers.xp)[a.answers.valid]
    assert line(a, 'all rows', 'cost').average == pytest.approx(own.mean().item(), rel=1e-5)
    assert 'what the table says that changes cost' in a.text() and 'distance' not in set(a.frame.measure)


def test_numbers_have_an_interval_as_their_target():
    from sklearn.linear_model import LinearRegression
    rows = people()
    read = rows[['income', 'debt']]
    cf = GradualCF(LinearRegression().fit(read, read.income - .5*read.debt), tabular(read), 'sparse').fit(read)
    a = audit(cf, rows, 'sex', target=(20.25, None), test=dict(resamples=99))
    np.testing.assert_array_equal(a.refused, read.income - .5*read.debt < 20.25)
    assert 'at least 20.25' in a.text()


# Draws


def test_draws_in_parts_are_the_draws_at_once(monkeypatch):
    v, member = drawn()
    shuffle = lambda: _shuffled(v - v.mean(), member.astype(float), False, 50, np.random.default_rng(0))
    whole = shuffle()
    monkeypatch.setattr('gradual_cf.use.audit._CELLS', 7*len(v))
    np.testing.assert_allclose(shuffle(), whole)


# Banks
KINDS = 'threshold', 'start', 'steps'
FEW, MANY = (600, 2., 1.5, 2.4), (6000, 1.2, 1.05, 1.4)  # rows, planted ratio of mean ways, and between what it is told: fewer rows tell what is larger
BANKS = [(kind, *FEW) for kind in KINDS] + [pytest.param(kind, *MANY, marks=pytest.mark.night, id=f'{kind}-many') for kind in KINDS]


@pytest.mark.night
@pytest.mark.parametrize('kind, n, longer, low, high', BANKS)
def test_a_longer_way_is_found(kind, n, longer, low, high, monkeypatch):
    import audit as banks
    monkeypatch.setattr(banks, 'LONGER', longer)
    got = banks.audited(kind, 1, n, resamples=299)
    assert got['found'] and got['mistakes'] == 0 and low < got['ratio'] < high


@pytest.mark.parametrize('n', [800, pytest.param(4000, marks=pytest.mark.night)])
def test_where_only_refusals_differ_no_longer_way_is_found(n):
    import audit as banks
    got = banks.audited('oftener', 1, n, resamples=299)
    assert not got['found'] and got['wrong_way'] == 0


# What is said
@pytest.mark.night
def test_numbers_of_the_text_stand_in_the_frame(told):
    _, rows, a = told
    numbers = np.concatenate([df.select_dtypes('number').astype(float).to_numpy().ravel() for df in (a.frame, a.columns, a.impact)])
    numbers = numbers[np.isfinite(numbers)]
    known = {f'{v:.1%}' for v in numbers} | {f'{v:.3g}' for v in numbers} | {f'{int(v):,}' for v in numbers if v % 1 == 0}
    head, found, *groups, how = a.text().split('\n\n')
    said = re.findall(r'(?<![\w.])\d[\d,]*\.?\d*(?:e-\d+)?%?', '\n'.join(groups) + '\n'.join(found.splitlines()[1:-1]))
    assert len(said) > 150 and [v for v in said if v.rstrip(',') not in known] == []
    assert f'{len(rows):,} rows' in head and f'{a.refused.sum():,} are refused' in head and '199' in how


@pytest.mark.night
def test_text_gives_no_causes_and_keeps_what_was_not_found_open(told):
    text = told[2].text().lower()
    for word in ('because', 'discriminat', 'unfair', 'biased', 'bias ', 'intend', 'to blame', 'significant'): assert word not in text
    assert 'does not show that those groups are alike' in text and 'do not say why' in text


@pytest.mark.night
def test_two_groups_are_compared_once_in_text_and_the_one_with_more_is_told(told):
    a = told[2]
    pair = a.frame[(a.frame.by == 'sex') & (a.frame.measure == 'distance')]
    assert pair.corrected.nunique() == 1 and (pair.corrected <= .05).all()
    lines = [t for t in a.text().splitlines() if re.match(r'  [fm]: distance', t)]
    assert len(lines) == 1 and lines[0].startswith('  m: distance')


def test_a_picture_has_every_group_and_shares_keep_their_room(told):
    a = told[2]
    fig = a.plot()
    assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == \
        [g + (' (withheld)' if (b, g) in a.withheld and 'isles' in g else '') for b, g in dict.fromkeys(zip(a.frame.by, a.frame.group))]
    low, high = fig.axes[1].get_xlim()
    assert high - low >= .25 and low < 1 <= high and fig.axes[2].get_xlim()[0] == 0


def test_an_audit_says_what_it_is(told):
    a = told[2]
    assert isinstance(a, Audit) and re.fullmatch(r'audit of 600 rows in 11 groups, \d+ differences found, \d+ groups withheld', repr(a))
    assert len(replace(a, level=1e-9).differences) == 0
    assert 'to be granted' in a.text()


# One advice for many
ADVISED = dict(increase_only=['income'], decrease_only=['debt'], bounds=dict(income=(None, 90)))


def test_advice_is_legal_and_what_the_model_says_and_costs_add_up():
    cf, rows = made(n=600)
    found = audit(cf, rows, 'sex', least=5, test=dict(resamples=99), **ADVISED)
    told = found.advice(3, columns=2)
    old, new = told.answers.data, told.answers.raw
    given = cf.explain(new, 'granted').decided[:, 0]
    assert (given == told.helped).all() and told.helped.mean() > .6 and len(told.words) <= 3
    assert (new.income >= old.income).all() and (new.debt <= old.debt).all() and (new.sex == old.sex).all()
    assert (new.income[new.income != old.income] <= 90).all()
    assert new[~told.helped].equals(old[~told.helped])
    df = told.frame
    np.testing.assert_allclose(df.takes.sum(), told.helped.mean())
    np.testing.assert_allclose(df.helped_so_far.iloc[-1], told.helped.mean())
    assert (df.helps >= df.takes).all() and (df.helped_so_far.diff().iloc[1:] >= 0).all() and all('at ' in w for w in told.words)
    moved = (abs(new[['income', 'debt']] - old[['income', 'debt']])/100).sum(axis=1)
    np.testing.assert_allclose(told.cost[told.helped].min(1), moved[told.helped], atol=.02)


def test_advice_that_costs_too_much_helps_nobody_and_rules_out_what_it_must():
    cf, rows = made(n=600)
    found = audit(cf, rows, 'sex', least=5, test=dict(resamples=99), **ADVISED)
    some, whole = found.advice(2, worth=.2), found.advice(2)
    assert (some.cost[np.isfinite(some.cost)] < .2).all() and 0 < some.helped.sum() < whole.helped.sum()
    same = found.advice(2)
    assert same.words == whole.words and repr(same) == repr(whole) and '<p>' in whole._repr_html_() and whole.text()


def test_greed_and_exchange_against_all_choices():
    equal = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        gain, k = np.where(rng.random((30, 9)) < .35, rng.random((30, 9))*2, 0), 2 + seed % 3
        best = max(gain[:, list(s)].max(1).sum() for s in combinations(range(9), k))
        value = gain[:, _chosen(gain, k)].max(1).sum()
        assert (1 - (1 - 1/k)**k)*best <= value <= best*(1 + 1e-12)
        equal += value >= best*(1 - 1e-12)
    assert equal > 30
