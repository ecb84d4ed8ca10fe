"""Tables as they come: dates, Decimals, identifiers, levels that nobody has, constraints that come with a question."""
import copy
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import toy
from cover import cover
from hypothesis import example, given, settings, strategies as st

from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gradual_cf.all import PAPER, Counterfactuals, GradualCF, explain_dataset, improve, measures, predictor, summary, tabular, tabular_mlp
from gradual_cf.data import rows as rows_module, tables
from gradual_cf.data.columns import MISSING
from gradual_cf.data.rows import model_frame
from gradual_cf.models.fingerprints import fingerprint

DATA = os.environ.get('GRADUAL_CF_DATA')
DAYS = pd.date_range('2020-01-01', periods=60, freq='17D')


def explainer(df, k=2, domain=None, **told):
    "An untrained network of k classes that predicts all of them, and its explainer."
    domain = domain or tabular(df, **told)
    x = domain.encode(df).x.float()
    net = toy.sharpen(tabular_mlp(x.shape[1], k, seed=0), x)
    return GradualCF(net, domain, 'sparse', sigma=0).fit(df)


def filler(n, seed=0):
    "A column that is always free."
    return np.random.default_rng(seed).normal(0, 1, n).round(3)


# Levels
def test_levels_that_no_row_has_are_never_proposed():
    kinds = ['actor', 'clerk', 'nurse', 'pilot']
    df = pd.DataFrame({'job': pd.Categorical(np.resize(['clerk', 'nurse'], 60), kinds), 'x': filler(60)})
    cf = explainer(df)
    with torch.no_grad(): cf.model[0].weight[:, [0, 3]] = 9*torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    cfs = cf.fit(df).explain(df)
    assert set(cfs.raw.job) <= {'clerk', 'nurse'} and len(cfs.changes())
    assert not cf.domain.legal(df[:1], df[:1].assign(job='actor'))[0, 0]
    row = df[:1].assign(job=pd.Categorical(['pilot'], kinds))
    assert cf.domain.legal(row, row).all() and cf.explain(row, immutable=['job']).raw.job.item() == 'pilot'
    listed = tabular(df, bounds={'job': ['actor', 'nurse']})
    assert listed.legal(df[:1], df[:1].assign(job='actor')).all()


def test_a_column_of_zeros_among_siblings_is_never_proposed():
    df = pd.DataFrame({'red': [1, 0]*20, 'blue': [0, 1]*20, 'green': [0]*40, 'x': filler(40)})
    domain = tabular(df, categorical={'colour': ['red', 'blue', 'green']})
    x = domain.encode(df).x
    x[:, :3] = torch.tensor([0., .1, .9])
    assert (domain.decode(x, df).green == 0).all()
    assert not domain.legal(df[:1], df[:1].assign(red=0, green=1))[0, 0]


# Dates
WRITTEN = {
    'datetime64[ns]': lambda d: pd.Series(d).astype('datetime64[ns]'),
    'datetime64[s]': lambda d: pd.Series(d).astype('datetime64[s]'),
    'with a time zone': lambda d: pd.Series(d).dt.tz_localize('Europe/Berlin'),
    'date': lambda d: pd.Series(d.date, dtype=object),
    'datetime': lambda d: pd.Series(d.to_pydatetime(), dtype=object),
    'aware datetime': lambda d: pd.Series(d.tz_localize('UTC').to_pydatetime(), dtype=object),
    'text': lambda d: pd.Series(d.strftime('%Y-%m-%d')),
    'text with a time': lambda d: pd.Series(d.strftime('%Y-%m-%d %H:%M:%S')),
}

@pytest.mark.parametrize('case', WRITTEN)
def test_dates_are_days(case):
    day = WRITTEN[case](DAYS)
    df = pd.DataFrame({'day': day, 'x': filler(60)})
    domain = tabular(df, bounds={'day': (day[10], day[40])})
    c = domain.features[0]
    assert (c.kind, c.width, c.high - c.low) == ('date', 1, 30*17)
    pd.testing.assert_frame_equal(domain.decode(domain.encode(df).x, df), df)
    x = domain.encode(df).x
    x[:, 0] = torch.linspace(-1, 2, 60, dtype=x.dtype) + 1e-4
    new = domain.decode(x, df)
    assert new.dtypes.equals(df.dtypes) and type(new.day[3]) is type(df.day[3])
    assert new.day.min() == day[10] and new.day.max() == day[40] and domain.legal(df, new).all()
    assert (domain.encode(new).x[:, 0]*c.span + c.origin).sub(0).frac().abs().max() < 1e-6   # midnight, by its own clock


# Numbers in disguise
NUMBERS = {
    'Decimals': ([Decimal('1.50'), Decimal('2.25'), Decimal('9.99')], 'number', Decimal),
    'whole Decimals': ([Decimal('1'), Decimal('2'), Decimal('9')], 'integer', Decimal),
    'integers': ([1, 2, 9], 'integer', int),
    'floats': ([.5, 1.5, 2.25], 'number', float),
    'integers and floats': ([1, 2.5, 9], 'number', float),
    'numerals': (['1.50', '-2.25', '9.99'], 'number', str),
    'whole numerals': (['1', '-2', '90'], 'integer', str),
}

@pytest.mark.parametrize('case', NUMBERS)
def test_object_columns_of_numbers_are_numbers(case):
    values,kind,cell = NUMBERS[case]
    df = pd.DataFrame({'v': pd.Series(np.resize(np.array(values, object), 60), dtype=object), 'x': filler(60)})
    domain = tabular(df)
    c = domain.features[0]
    assert (c.kind, c.width) == (kind, 1)
    pd.testing.assert_frame_equal(domain.decode(domain.encode(df).x, df), df)
    x = domain.encode(df).x
    x[:, 0] = torch.linspace(0, 1, 60, dtype=x.dtype)**2 + 1e-7
    new = domain.decode(x, df)
    changed = new.v[new.v != df.v]
    assert len(changed) and {type(v) for v in changed} == {cell} and new.v.dtype == object and domain.legal(df, new).all()
    assert changed.astype(float).between(c.low, c.high).all() and (kind == 'number' or (changed.astype(float) % 1 == 0).all())
    if cell is Decimal: assert {v.as_tuple().exponent for v in changed} == {-c.digits}


def test_postcodes_are_no_numbers():
    df = pd.DataFrame({'code': ['01067', '80331', '01067']*10, 'x': filler(30)})
    assert tabular(df).features[0].kind == 'category'


# Rows as a model reads them
def some_rows(n=60):
    "A column of every dtype, with missing cells where it can have them, under its dtype's name."
    r = np.random.default_rng(0)
    hole,cents,words = r.random(n) < .2, r.integers(-999, 99999, n)/100, np.array(['a', 'b', 'c'])[r.integers(0, 3, n)]
    out = {k: pd.Series(r.integers(0, 100, n), dtype=k) for k in ('int8', 'uint8', 'int64', 'int64[pyarrow]')}
    out |= {k: pd.Series(v).mask(hole).astype(k) for k,v in (('float32', r.random(n)), ('float64', cents), ('Int64', r.integers(0, 99, n)),
            ('Float64', cents), ('double[pyarrow]', cents), ('boolean', r.random(n) < .5), ('bool[pyarrow]', r.random(n) < .5),
            ('str', words), ('string', words), ('string[pyarrow]', words))}
    out |= {'bool': pd.Series(r.random(n) < .5), 'full precision': pd.Series(r.random(n)**9*1e3).mask(hole),
            'tiny': pd.Series(r.integers(1, 99, n)*1e-11), 'huge': pd.Series(r.integers(1, 99, n)*1e14),
            'whole': pd.Series(r.integers(0, 9, n)*1.).mask(hole), 'constant': pd.Series(np.full(n, .1)), 'none': pd.Series(np.full(n, np.nan))}
    out |= {f'objects {i}': pd.Series(v, dtype=object).mask(hole, None) for i,v in enumerate((words, [Decimal(c) for c in map(str, cents)],
            [f'{c:.2f}' for c in cents], r.integers(0, 9, n).tolist(), cents.tolist(), [True, False]*(n//2), pd.Series(DAYS[:n]).dt.date.tolist()))}
    kinds = pd.CategoricalDtype(['c', 'd', 'a', 'b'])
    days = pd.Series(DAYS[:n] + pd.to_timedelta(r.integers(0, 86400, n), 's'))
    out |= {'category': pd.Series(words).mask(hole).astype(kinds), 'days': days.mask(hole), 'days[s]': days.mask(hole).astype('datetime64[s]'),
            'zone': days.mask(hole).dt.tz_localize('America/New_York'), 'written days': days.dt.strftime('%Y-%m-%d %H:%M:%S').mask(hole)}
    return pd.DataFrame(out)


@pytest.mark.night
def test_encoded_rows_are_written_as_they_were():
    df = some_rows()
    domain = tabular(df)
    table,x = domain.decode.args[0], domain.encode(df).x
    pd.testing.assert_frame_equal(model_frame(table, x), df)
    pd.testing.assert_frame_equal(domain.decode(x, df), df)
    pd.testing.assert_frame_equal(model_frame(table, x[7:9]), df[7:9].reset_index(drop=True))
    assert domain.legal(df, df).all()


@pytest.mark.night
@settings(max_examples=60, deadline=None)
@example([0., 339099158608078., .1875, -1e15])
@example([0., 5e-324, 1e-320])
@example([.1, 1e308])
@given(st.lists(st.one_of(st.none(), st.floats(-1e15, 1e15), st.decimals(-9999, 9999, places=3).map(float)), min_size=2, max_size=30))
def test_numbers_of_any_size_are_written_as_they_were(values):
    df = pd.DataFrame({'v': pd.Series(values, dtype=float), 'x': filler(len(values))})
    domain = tabular(df)
    x,back = domain.encode(df).x, model_frame(domain.decode.args[0], domain.encode(df).x)
    v,at = df.v.fillna(-2e15).to_numpy(), x[:, 0].nan_to_num(-1.).double().numpy()  # 1 and 1.1 beside 1e15 are encoded alike, but for a rounding
    told = ~((np.abs(at[:, None] - at) < 1e-14) & (v[:, None] != v)).any(1)
    pd.testing.assert_frame_equal(back[told], df[told], check_exact=True)


def test_siblings_and_names_are_written_as_they_were():
    hot = pd.DataFrame({'red': [1, 0]*9, 'x': filler(18), 'blue': [False, True]*9})
    domain = tabular(hot, categorical={'colour': ['red', 'blue']})
    pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], domain.encode(hot).x), hot)
    two = pd.MultiIndex.from_tuples([('money', 'in'), ('money', 'out')], names=['what', 'where'])
    money = pd.DataFrame(np.column_stack([filler(9), filler(9, 1)]), columns=two)
    domain = tabular(money)
    pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], domain.encode(money).x), money)


# Missing cells
@pytest.mark.parametrize('how', [None, replace(PAPER, sigma=20)], ids=['default', 'paper'])
def test_missing_cells_stay_missing_and_are_never_proposed(how):
    df = some_rows()
    cf = explainer(df)
    cf = GradualCF(cf.model, cf.domain, how).fit(df)
    df = df[:8]
    cfs = cf.explain(df)
    assert df.isna().any(axis=None)
    assert len(cfs.changes()) and (cfs.raw.isna() == df.isna()).all(axis=None)
    gone = torch.from_numpy(df.isna().to_numpy())[:, cf.groups(cfs.x)]
    assert not cfs.mask[gone].any() and torch.equal(cfs.x[gone], cfs.xp[gone])
    lines = cfs.changes()
    assert not lines.before.isna().any() and not lines.after.isna().any() and cfs.plot() and cfs._repr_html_()
    if how is None: assert cf.domain.legal(df, cfs.raw).all()
    filled = df.assign(float64=df.float64.fillna(0.))
    assert not cf.domain.legal(df, filled)[:, list(df).index('float64')][df.float64.isna()].any()


def test_a_missing_number_is_a_constant():
    df = pd.DataFrame({'v': [1., 2.5, np.nan, -7.], 'n': [3, np.nan, 8, 9], 'x': filler(4)})
    enc = tabular(df).encode(df)
    assert enc.x[2, 0] == enc.x[1, 1] == MISSING == float(np.float32(MISSING)) and MISSING < -1
    assert enc.frozen.nonzero().tolist() == [[1, 1], [2, 0]]
    assert [c.kind for c in tabular(df).features] == ['number', 'integer', 'number']
    back = tabular(df).decode(torch.where(enc.frozen, enc.x, enc.x + torch.tensor([0., .11, 0.])), df)
    assert back.n.dtype == float and back.n.tolist()[2:] == [9., 9.] and back.n.isna().tolist() == [False, True, False, False]


def test_missing_cells_may_be_left_as_a_level():
    df = pd.DataFrame({'v': [1., np.nan, 3.]*20, 'job': ['clerk', None, 'nurse']*20, 'x': filler(60)})
    domain = tabular(df, read=dict(missing='level'))
    assert domain.features[1].offered == ('clerk', 'nurse', None) and not domain.encode(df).frozen.any()
    filled = df.assign(v=df.v.fillna(2.), job=df.job.fillna('clerk'))
    assert domain.legal(df, filled).all() and not tabular(df).legal(df, filled)[1, :2].any()
    assert domain.legal(df, df.assign(job=None))[:, 1].all() and not domain.legal(df, df.assign(v=np.nan))[0, 0]
    cf = explainer(df, domain=domain)
    cfs = cf.explain(df, increase_only=['v'])
    assert domain.legal(df, cfs.raw).all() and (cfs.raw.isna() != df.isna()).any(axis=None)
    assert cfs.plot() and 'missing' in cfs._repr_html_()
    assert not tabular(df, read=dict(missing='level'), bounds={'job': ['nurse']}).legal(df, df.assign(job=None))[0, 1]


def test_missing_cells_may_be_filled():
    df = some_rows().drop(columns='none')
    cf = explainer(df, read=dict(missing='fill'))
    cfs = cf.explain(df)
    assert not cfs.data.isna().any(axis=None) and not cfs.raw.isna().any(axis=None) and cf.domain.legal(cfs.data, cfs.raw).all()
    whole = df.notna()
    pd.testing.assert_frame_equal(cfs.data.astype(object).where(whole, None), df.astype(object).where(whole, None))
    assert cfs.data.float64[df.float64.isna()].iloc[0] == df.float64.quantile(.5, 'lower') and cfs.data.dtypes.equals(df.dtypes)
    assert set(cfs.data.category[df.category.isna()]) == set(df.category.mode()[:1])
    complete = tabular(df[['int64']].assign(x=filler(60)), read=dict(missing='fill'))
    row = pd.DataFrame({'int64': [np.nan], 'x': [1.]})
    assert complete.rows(row).int64[0] == df.int64.quantile(.5, 'lower') and not complete.encode(row).frozen.any()


def test_a_column_without_any_cell_is_frozen():
    df = pd.DataFrame({'v': np.nan, 'w': pd.Series([None]*9, dtype=object), 'd': pd.Series([pd.NaT]*9), 'c': pd.Categorical([None]*9, ['a']), 'x': filler(9)})
    domain = tabular(df, bounds={'v': (0, 1)})
    assert domain.encode(df).frozen.all(0).tolist() == [True]*4 + [False]
    assert domain.encode(df.assign(v=1.)).frozen.all(0).tolist() == [True]*4 + [False]
    pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], domain.encode(df).x), df)
    assert explainer(df).explain(df).raw.iloc[:, :4].isna().all(axis=None)


# Ordered categories
SIZES = ['XS', 'S', 'M', 'L', 'XL']

def sized(n=60, hole=.2):
    "A column of sizes of which nobody has M."
    r = np.random.default_rng(0)
    size = pd.Series(np.array(['XS', 'S', 'L', 'XL'])[r.integers(0, 4, n)]).mask(r.random(n) < hole)
    return pd.DataFrame({'size': size.astype(pd.CategoricalDtype(SIZES, ordered=True)), 'x': filler(n), 'job': list('ab')*(n//2)})


def test_ordered_levels_are_positions():
    df = sized()
    domain = tabular(df)
    c,x = domain.features[0], domain.encode(df).x
    assert (c.kind, c.width, c.levels, c.offered, c.codes) == ('ordinal', 1, tuple(SIZES), ('XS', 'S', 'L', 'XL'), (2,))
    at = df['size'].cat.codes.to_numpy()
    assert (x[:, 0].numpy()[at >= 0] == at[at >= 0]/4).all() and (x[:, 0].numpy()[at < 0] == MISSING).all()
    pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], x), df)
    pd.testing.assert_frame_equal(domain.decode(x, df), df)
    assert tabular(df, categorical=['size']).features[0].kind == 'category'


# Own scales
SCALES = {'standard': lambda df: 'standard', 'quantile': lambda df: 'quantile', 'a scaler': lambda df: StandardScaler().fit(df[['n', 'v']]), 'robust': lambda df: RobustScaler().fit(df[['v', 'n']]),
          'shift only': lambda df: StandardScaler(with_std=False).fit(df[['v']]), 'largest': lambda df: MaxAbsScaler().fit(df[['n']]),
          'min-max': lambda df: MinMaxScaler((-1, 3)).fit(df[['n', 'v', 'day']].assign(day=1.*np.arange(len(df))))}

@pytest.mark.night
@pytest.mark.parametrize('case', SCALES)
def test_a_scale_says_what_is_far_and_nothing_else(case):
    r = np.random.default_rng(0)
    df = pd.DataFrame({'n': r.integers(0, 40, 60), 'v': r.random(60), 'h': pd.Series(r.integers(0, 9, 60)).mask(r.random(60) < .3), 'day': DAYS, 'c': list('ab')*30})
    domain = tabular(df, bounds={'n': (3, 30)}, read=dict(scale=SCALES[case](df)))
    a,b = domain.features,tabular(df, bounds={'n': (3, 30)}).features
    assert [(c.low, c.high, c.codes, c.digits) for c in a] == [(c.low, c.high, c.codes, c.digits) for c in b] and a != b
    table,enc = domain.decode.args[0], domain.encode(df)
    pd.testing.assert_frame_equal(model_frame(table, enc.x), df)
    cf = explainer(df, domain=domain)
    for how in (cf, GradualCF(cf.model, domain, 'sparse', sigma=20).fit(df)):
        cfs = how.explain(df, increase_only=['v'], bounds={'day': (DAYS[9], None)})
        assert domain.legal(df, cfs.raw).all() and len(cfs.changes()) and cfs.raw.n.dtype == int and (cfs.raw.v >= df.v).all()
    off = domain.decode(enc.x + .3, df)
    assert domain.legal(df, off)[~enc.frozen.numpy()].all() and (off.n != df.n).any()


def test_a_scaler_is_read_as_it_scales():
    df = pd.DataFrame({'a': filler(40), 'b': filler(40, 1)*9})
    for scaler in (StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), RobustScaler(), RobustScaler(with_centering=False), MaxAbsScaler(), MinMaxScaler((2, 5))):
        x = tabular(df, read=dict(scale=scaler.fit(df))).encode(df).x
        np.testing.assert_allclose(x.numpy(), scaler.transform(df), atol=1e-12)
        np.testing.assert_allclose(tabular(df, read=dict(scale=clone(scaler).fit(df.to_numpy()))).encode(df).x, x, atol=1e-12)


# Quantiles
RANKED = {'skewed': lambda r: np.exp(r.normal(0, 3, 900)), 'whole and skewed': lambda r: (1000*np.exp(r.normal(0, 2, 900))).astype(int),
          'one value holds most rows': lambda r: np.where(r.random(900) < .6, 1001, r.permutation(900)), 'two values': lambda r: r.integers(0, 2, 900),
          'constant': lambda r: np.full(900, 7.5), 'far from zero': lambda r: 1e9 + r.integers(0, 50, 900), 'tiny': lambda r: r.random(900)**9*1e-11,
          'with codes': lambda r: np.where(r.random(900) < .2, -8, r.integers(0, 50, 900)), 'days': lambda r: DAYS[r.integers(0, 60, 900)],
          'missing': lambda r: pd.Series(r.random(900)**5).mask(r.random(900) < .2)}

@pytest.mark.parametrize('case', RANKED)
def test_distances_are_shares_of_rows(case):
    df = pd.DataFrame({'v': RANKED[case](np.random.default_rng(0)), 'x': filler(900)})
    domain = tabular(df, read=dict(scale='quantile'))
    enc,there = domain.encode(df), df.v.notna().to_numpy().copy()
    x,rank = enc.x[there, 0].numpy(), df.v[there].rank().to_numpy()
    assert np.abs((x - x[0]) - (rank - rank[0])/there.sum()).max() <= .011
    order = np.argsort(rank, kind='stable')
    assert ((np.diff(x[order]) > 0) == (np.diff(rank[order]) > 0)).all() and (np.diff(x[order]) >= 0).all()
    assert (enc.x[~there, 0] == MISSING).all() and enc.frozen[:, 0].tolist() == (~there).tolist() and MISSING < x.min()
    pd.testing.assert_frame_equal(domain.write(enc.x), df)
    pd.testing.assert_frame_equal(domain.decode(enc.x, df), df)


@pytest.mark.parametrize('case', RANKED)
def test_ranks_are_moved_to_legal_values(case):
    df = pd.DataFrame({'v': RANKED[case](np.random.default_rng(0)), 'x': filler(900)})
    domain = tabular(df, read=dict(scale='quantile'))
    enc,c,r = domain.encode(df), domain.features[0], torch.Generator().manual_seed(0)
    for dtype in (torch.float64, torch.float32):
        moved = domain.project((enc.x + .2*torch.randn(enc.x.shape, generator=r).double()).clamp(enc.low, enc.high).to(dtype), enc.x.to(dtype))
        answers = domain.decode(moved, df)
        assert domain.legal(df, answers)[~enc.frozen.numpy()].all() and moved.dtype == dtype
        whole = c.decoded(moved[:, 0].double()).round()
        if c.unit: assert (c.encoded(whole) - moved[:, 0]).abs().max() <= 4*torch.finfo(dtype).eps


def wish(rows): return (rows.income/6000 + rows.years/20 - 1.7).to_numpy()


def test_what_is_near_depends_on_how_many_lie_between():
    r = np.random.default_rng(0)
    df = pd.DataFrame({'income': (1500*np.exp(r.normal(0, 1.2, 400))).round().astype(int), 'years': r.integers(0, 40, 400)})
    one,ask = pd.DataFrame({'income': [1200], 'years': [20]}), lambda rows: np.stack([-wish(rows), wish(rows)], 1)
    out = {}
    for scale in ('range', 'quantile'):
        domain = tabular(df, read=dict(scale=scale))
        out[scale] = GradualCF(predictor(ask, domain, kind='logit'), domain, 'sparse').fit(df).explain(one, target=1)
        assert out[scale].valid.all() and domain.legal(one, out[scale].raw).all() and (wish(out[scale].raw) > 0).all()
    assert out['range'].raw.years.item() == 20 and out['quantile'].raw.income.item() == 1200


def test_a_network_on_raw_numbers_reads_ranks_back():
    r = np.random.default_rng(0)
    df = pd.DataFrame({'v': np.exp(r.normal(0, 1, 200)), 'n': r.integers(0, 9, 200), 'c': list('ab')*100})
    raw = torch.tensor(np.column_stack([df.v, df.n, df.c == 'a', df.c == 'b']).astype(float))
    net,domain = tabular_mlp(4, seed=0).double(), tabular(df, read=dict(scale='quantile'))
    scaler = StandardScaler().fit(raw.numpy())
    for scaled,reads in ((False, raw), (scaler, torch.tensor(scaler.transform(raw.numpy())))):
        model,x = predictor(net, domain, scaled=scaled), domain.encode(df).x.requires_grad_()
        z = model(x)
        torch.testing.assert_close(z.softmax(1), net(reads).softmax(1), rtol=0, atol=1e-9)
        assert (torch.autograd.grad(z[:, 0].sum(), x)[0] != 0).any(1).all()
    between = domain.encode(df).x[:5] + torch.tensor([1e-3, 1e-2, 0, 0])
    assert torch.autograd.gradcheck(model, between.requires_grad_())


# Files
def test_answers_of_every_dtype_are_written_as_they_are_decoded_and_survive_a_file(tmp_path):
    df = some_rows()
    for levels in ([1, 2, 3], [.5, 1.5, 2.5], ['a', 'b', 'never']): df[f'levels {levels}'] = pd.Categorical(np.resize(levels[:2], len(df)), levels)
    cf = explainer(df)
    cfs = cf.explain(df)
    assert len(cfs.changes()) and cf.domain.legal(df, cfs.raw).all()
    pd.testing.assert_frame_equal(model_frame(cf.domain.decode.args[0], cf.domain.encode(cfs.raw).x), cfs.raw)
    back = Counterfactuals.load(cfs.save(tmp_path/'a.zip'), cf.domain)
    for name in ('data', 'raw'): pd.testing.assert_frame_equal(getattr(back, name), getattr(cfs, name))
    assert [type(v) for v in back.raw['objects 3']] == [type(v) for v in cfs.raw['objects 3']]
    assert back._repr_html_() == replace(cfs, explainer=None)._repr_html_() and cf.domain.legal(back.data, back.raw).all()
    pd.testing.assert_frame_equal(back.changes(), cfs.changes())


def test_names_of_columns_survive_a_file_or_are_refused(tmp_path):
    two = pd.MultiIndex.from_tuples([('money', 'in'), ('money', 'out')], names=['what', None])
    df = pd.DataFrame(np.column_stack([filler(30), filler(30, 1)]), columns=two)
    for some in (df, df.set_axis([3, 7], axis=1)):
        cf = explainer(some, immutable=[some.columns[0]])
        cfs = cf.explain(some)
        assert cfs.raw.iloc[:, 0].equals(some.iloc[:, 0]) and cf.domain.encode(some.iloc[0]).x.shape == (1, 2)
        pd.testing.assert_frame_equal(Counterfactuals.load(cfs.save(tmp_path/'a.zip'), cfs.domain).raw, cfs.raw)
    bad = df.set_axis(['x', 'cf_valid'], axis=1)
    with pytest.raises(ValueError, match=r"like those that are added, got \['cf_valid'\]"): explainer(bad).explain(bad).save(tmp_path/'b.zip')
    assert not (tmp_path/'b.zip').exists()


def test_a_batch_keeps_what_is_missing(tmp_path):
    df = some_rows().drop(columns=['int64[pyarrow]', 'double[pyarrow]', 'bool[pyarrow]', 'string[pyarrow]', 'huge'])
    cf = explainer(df)
    df = df[:24]
    out = pd.concat([pd.read_parquet(f) for f in sorted(explain_dataset(cf, df, tmp_path/'out', batch_size=10).glob('part-*'))])
    want = cf.explain(df)
    for c in df: assert (out[f'cf:{c}'].isna().to_numpy() == want.raw[c].isna().to_numpy()).all(), c
    told = summary(tmp_path/'out')
    changes = want[want.valid].changes()
    assert set(told.feature) == set(changes.feature) and 'none' not in set(told.feature)


# What asks for a decision
IDENTIFIERS = {
    'more than fifty levels': [f'town {i % 51}' for i in range(200)],
    'sixty clients with three orders each': [f'client {i % 60}' for i in range(200)],
    'all different': [f'client {i}' for i in range(200)],
    'days written as no date': [f'{1 + i % 28}.{1 + i % 12}.2020' for i in range(200)],
}

@pytest.mark.parametrize('case', IDENTIFIERS)
def test_identifiers_ask_for_a_decision(case):
    df = pd.DataFrame({'who': IDENTIFIERS[case], 'x': filler(200)})
    with pytest.raises(ValueError) as e: tabular(df)
    said = str(e.value)
    assert "column 'who'" in said and f'{df.who.nunique()} values in 200 rows' in said
    assert 'drop it' in said and 'immutable or categorical' in said and 'dates' in said
    assert tabular(df, immutable=['who']).features[0].width == df.who.nunique()
    assert tabular(df, categorical=['who']).features[0].kind == 'category'
    assert tabular(df, categorical={'who': ['who']}).features[0].kind == 'category'
    assert tabular(df.astype({'who': 'category'})).features[0].kind == 'category'
    assert len(tabular(df.drop(columns='who')).features) == 1


@pytest.mark.parametrize('levels, rows', [(100, 7000), (51, 510), (1000, 10_000)])
def test_many_levels_that_come_again_and_again_are_a_category(levels, rows):
    df = pd.DataFrame(dict(city=[f'city {i % levels}' for i in range(rows)], x=filler(rows)))
    assert tabular(df).features[0].kind == 'category' and tabular(df).features[0].width == levels
    with pytest.raises(ValueError, match='must not have an identifier'): tabular(df.head(9*levels))


# Constraints that come with a question
@pytest.fixture(scope='module')
def ruled():
    r = np.random.default_rng(0)
    df = pd.DataFrame({'age': r.integers(18, 80, 200), 'income': r.gamma(2, 900, 200), 'late': r.choice([-8, 0, 1, 5], 200),
                       'job': r.choice(['clerk', 'nurse', 'pilot'], 200), 'since': DAYS[r.integers(0, 60, 200)]})
    return df, explainer(df)


@pytest.mark.night
def test_a_question_only_tightens(ruled):
    df,_ = ruled
    cf = explainer(df, bounds={'age': (30, 50)}, immutable=['job'], increase_only=['income'])
    rows = df.iloc[:40]
    wide = cf.explain(rows, bounds={'age': (0, 200), 'income': (0, 1e6)})
    pd.testing.assert_frame_equal(wide.raw, cf.explain(rows).raw)
    none = cf.explain(rows, bounds={'age': (60, 70)})
    assert (none.raw.age == rows.age).all()
    pd.testing.assert_frame_equal(cf.explain(rows, immutable=[]).raw, cf.explain(rows).raw)


def test_rules_in_any_form_mean_the_same(ruled):
    df,cf = ruled
    rows = df.iloc[:8]
    one = cf.explain(rows, immutable=['age'], bounds={'income': (500, 3000)}, increase_only=['since'], decrease_only=['late'])
    each = cf.explain(rows, immutable=[['age']]*8, bounds=[{'income': (500, 3000)}]*8, increase_only=[['since']]*8, decrease_only=[['late']]*8)
    flags, up, down = (pd.DataFrame({c: [True]*8}) for c in ('age', 'since', 'late'))
    pairs = pd.DataFrame({'income': [(500, 3000)]*8, 'late': [None]*8})
    for other in (each, cf.explain(rows, immutable=flags, bounds=pairs, increase_only=up, decrease_only=down)): pd.testing.assert_frame_equal(one.raw, other.raw)


@pytest.mark.night
@settings(max_examples=50, deadline=None)
@example(-.05, .02, 0)  # -.05 + .02 is a little less than -.03
@given(st.floats(-50, 50), st.floats(.02, 50), st.integers(0, 5))
def test_decoding_never_leaves_the_bounds_of_a_question(low, width, seed):
    r = np.random.default_rng(seed)
    df = pd.DataFrame({'v': r.uniform(-50, 50, 40), 'w': pd.Series([Decimal(int(i)).scaleb(-2) for i in r.integers(-5000, 5000, 40)])})
    domain = tabular(df)
    enc = domain.constrain(domain.encode(df), df, bounds={c: (low, low + width) for c in df})
    single = [t.float() for t in (enc.low, enc.high)]
    for at in single:
        new = domain.decode(torch.where(enc.frozen, domain.encode(df).x.float(), at), df)
        changed = ~domain.encode(df).frozen & ~enc.frozen
        for c,ok in zip(df, changed.T.numpy()): assert new[c][ok].astype(float).between(low, low + width).all()


# Real tables
REAL = {
    'adult': ('class', ()), 'compas': ('two_year_recid', ()), 'german_credit': ('default', ()), 'bank_marketing': ('y', ()),
    'law': ('bar_passed', ('ID',)), 'audit': ('Risk', ()), 'wine': ('Target', ()), 'car_eval': ('acceptability', ()),
}

def read(name):
    "A real table without its classes; missing cells as pandas reads them."
    label,drop = REAL[name]
    return pd.read_csv(Path(DATA)/'tables'/f'{name}.csv', skipinitialspace=True).drop(columns=[label, *drop])


@pytest.mark.skipif(not DATA, reason='need GRADUAL_CF_DATA')
class TestRealTables:
    @pytest.mark.parametrize('name', REAL)
    def test_a_table_is_read_and_written(self, name):
        df = read(name).replace('?', None)
        some = df.sample(min(800, len(df)), random_state=0).reset_index(drop=True)
        for rows,scale in ((some, 'range'), (some, 'quantile'), (some.convert_dtypes(), 'range'), (some.astype(object), 'range'),
                           (some.convert_dtypes(dtype_backend='pyarrow'), 'range')):
            domain = tabular(rows, read=dict(scale=scale))
            x = domain.encode(rows).x
            assert len(domain.features) == df.shape[1] and domain.legal(rows, rows).all()
            pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], x), rows)
            pd.testing.assert_frame_equal(domain.decode(x, rows), rows)

    def test_compas_has_dates(self):
        df = read('compas')
        kinds = {c.name: c.kind for c in tabular(df).features}
        assert [c for c in df if kinds[c] == 'date'] == ['compas_screening_date', 'c_jail_in', 'c_jail_out']
        assert kinds['days_b_screening_arrest'] == 'integer' and df.days_b_screening_arrest.isna().any()


def test_huge_numbers_have_the_digits_that_32_bits_know():
    r = np.random.default_rng(5828)
    df = pd.DataFrame({'gain': r.gamma(2, 1e12, 60).round(3), 'x': filler(60)})
    cf = explainer(df, k=3)
    cfs = cf.explain(df, 1)
    for i in (3, 17, 40): pd.testing.assert_frame_equal(cf.explain(df.iloc[[i]], 1).raw, cfs.raw.iloc[[i]], check_exact=True)
    new = cfs.raw.gain[cfs.raw.gain != df.gain]
    assert len(new) and (new % 1e6 == 0).all() # digits of a usual number


# 0/1 columns that nobody named
CODES = dict(whole=lambda v, k: np.eye(k)[v], dropped=lambda v, k: np.eye(k)[v][:, 1:], rising=lambda v, k: (v[:, None] > np.arange(k - 1)).astype(float))
NAMED = dict(shared=lambda part, j: f'{part}_{j}', none=lambda part, j: f'{"qxz"["abc".index(part)]}{"uvwy"[j]}')

def coded(codes, names, dtype, seed=0, n=300):
    "Three categories as 0/1 columns among numbers, their columns in any order, and the columns of each."
    rng = np.random.default_rng(seed)
    cols, parts = {'age': rng.integers(18, 28, n)}, {}
    for part, k in dict(a=3, b=4, c=3).items():
        v = CODES[codes](rng.integers(0, k, n), k)
        parts[part] = [NAMED[names](part, j) for j in range(v.shape[1])]
        cols |= dict(zip(parts[part], v.T.astype(dtype)))
    return pd.DataFrame(cols).sample(frac=1, axis=1, random_state=seed), parts

def possible(df, parts, codes):
    "Whether each row has what some row may have."
    v = {part: df[cols].to_numpy(float) for part, cols in parts.items()}
    if codes == 'rising': return np.all([(np.diff(u, axis=1) <= 0).all(1) for u in v.values()], 0)
    return np.all([u.sum(1) == 1 if codes == 'whole' else u.sum(1) <= 1 for u in v.values()], 0)

ASKED = {'forest': lambda: RandomForestClassifier(8, max_depth=4, random_state=0), 'lines': lambda: make_pipeline(StandardScaler(), LogisticRegression()),
         'layers': lambda: MLPClassifier((4,), solver='lbfgs', max_iter=200, random_state=0), 'asked': lambda: KNeighborsClassifier(15)}

@pytest.mark.night
@pytest.mark.parametrize('codes,names,dtype,model', cover(list(CODES), list(NAMED), [int, bool, float], list(ASKED)))
@pytest.mark.filterwarnings('ignore::sklearn.exceptions.ConvergenceWarning')
def test_one_category_in_several_columns_is_found_kept_and_told_and_proofs_speak_of_it(codes, names, dtype, model, caplog):
    df, parts = coded(codes, names, dtype)
    on = sum(df[cols].to_numpy(float) @ np.linspace(1, 2, len(cols)) for cols in parts.values())
    source = ASKED[model]().fit(df, on + df.age/8 > np.quantile(on + df.age/8, .6))
    domain = tabular(df)
    assert sorted(sorted(c.sources) for c in domain.features if c.kind == 'category') == sorted(map(sorted, parts.values()))
    assert [r.message for r in caplog.records] == list(domain.findings) and sum('one category' in t for t in domain.findings) == 3
    pd.testing.assert_frame_equal(model_frame(domain.decode.args[0], domain.encode(df).x), df)
    rows = df[~source.predict(df)].head(4)
    cf = GradualCF(source, domain, 'sparse').fit(df)
    everything = np.stack(np.meshgrid(*[np.arange(c.width) if c.kind == 'category' else np.arange(18, 28) for c in domain.features], indexing='ij'), -1).reshape(-1, 4)
    entries = np.concatenate([np.eye(c.width)[v] if c.kind == 'category' else c.encoded(v)[:, None] for c, v in zip(domain.features, everything.T)], 1)
    there = source.predict(domain.decode(torch.from_numpy(entries)))
    for optimal in [None] if model == 'asked' else [None, 'columns', 'distance']:
        answers = cf.explain(rows, target=True, proof=optimal)
        assert possible(answers.raw, parts, codes).all() and domain.legal(rows, answers.raw).all() and answers.valid.all()
        for i in np.flatnonzero([told == 'optimal' for told in answers.proof or ()]):
            far = entries[there] - answers.x[i].numpy()
            moved = np.stack([(far[:, at] != 0).any(1) for at in domain.decode.args[0].at], 1).sum(1)
            if optimal != 'distance': assert sum(answers.mask[i, at.start] for at in domain.decode.args[0].at) == moved.min()
            else: assert (answers.xp[i] - answers.x[i]).abs().sum() <= np.abs(far).sum(1).min() + 1e-6
        assert optimal is None or 'optimal' in answers.proof
    assert len(tabular(df, categorical={}).features) == df.shape[1]

def test_columns_that_are_named_are_columns_and_luck_is_no_category(caplog):
    df, parts = coded('whole', 'shared', int)
    kept = tabular(df, bounds={'a_0': (0, 1)}, relations=['b_1 == 0 -> age >= 18'], immutable=parts['c'])
    assert sorted(c.kind for c in kept.features) == ['category'] + ['integer']*8 and 'because bounds names one of them' in caplog.text and 'because relations names' in caplog.text
    assert kept.encode(df).frozen.sum(1).unique().tolist() == [1]
    with pytest.raises(ValueError, match="'c_0' is a part of 'c' unless categorical={} keeps them apart"): tabular(df, immutable=['c_0'])
    strange = df.head(3).copy()
    strange.iloc[1, [df.columns.get_loc(c) for c in parts['a']]] = [1, 1, 0]
    told = tabular(df).unread(strange)
    assert told[::2] == ['', ''] and "hold no level of the category 'a'" in told[1]
    rng = np.random.default_rng(0)
    for share in (.01, .05, .5):
        flags = pd.DataFrame((rng.random((400, 12)) < share).astype(int)).add_prefix('has_')
        assert tabular(flags).findings == ()


# Levels that no training row has
def with_one_hot(last, unknown='ignore'):
    return make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown=unknown), ['job']), remainder='passthrough'), last)

READS = {'lines': (lambda: with_one_hot(LogisticRegression(max_iter=3000)), True), 'forest': (lambda: with_one_hot(RandomForestClassifier(9, random_state=0)), True),
         'asked': (lambda: with_one_hot(KNeighborsClassifier(9)), True), 'refuses': (lambda: with_one_hot(LogisticRegression(max_iter=3000), 'error'), False),
         'category': (lambda: with_one_hot(RandomForestClassifier(9, random_state=0)), True)}

@pytest.mark.parametrize('name', READS)
@pytest.mark.filterwarnings('ignore:Found unknown categories')
def test_a_level_that_no_training_row_has_stays_and_the_row_is_answered_where_the_model_reads_it(name):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'job': rng.choice(['clerk', 'nurse', None], 200), 'age': rng.integers(18, 60, 200), 'pay': rng.integers(10, 60, 200)})
    label = df.pay + 5*(df.job == 'clerk') + df.age/10 > 42
    if 'categor' in name: df['job'] = df.job.astype('category')
    model, reads = READS[name][0]().fit(df, label), READS[name][1]
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    rows = df[~model.predict(df)].head(4).copy()
    plain = cf.explain(rows, True)
    new = rows.assign(job=['pilot', *rows.job[1:3], 'actor'])
    if 'categor' in name: new['job'] = new.job.astype('category')
    answers = cf.explain(new, True)
    assert answers.raw.job.iloc[[0, 3]].tolist() == ['pilot', 'actor'] and answers.unread.tolist() == [not reads, False, False, not reads]
    for i in (1, 2): assert answers.raw.iloc[i].astype(str).equals(plain.raw.iloc[i].astype(str))
    if not reads: return
    assert answers.valid.all() and model.predict(answers.raw).all() and cf.explain(new[:1], True).valid.all()
    if name != 'asked':
        everything = pd.DataFrame([('pilot', a, p) for a in range(18, 60) for p in range(10, 60)], columns=df.columns)
        if 'categor' in name: everything['job'] = everything.job.astype(pd.CategoricalDtype([*df.job.cat.categories, 'pilot']))
        few = (everything[['age', 'pay']].to_numpy() != new[['age', 'pay']].iloc[0].to_numpy()).sum(1)
        assert answers.proof[0] == 'optimal' and answers.changed[0].sum() == few[model.predict(everything)].min()
    cf.region(answers), cf.plan(answers), cf.effects(answers), answers.changes(), answers.prove(), measures(cf, improve(cf, answers))


@pytest.mark.parametrize('settings', ['sparse', None])
def test_rows_with_long_categories_are_kept_as_codes(settings, monkeypatch, tmp_path):
    "What an explainer answers, learns and writes is the same, and less is kept."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(a=rng.normal(size=300).round(2), b=rng.integers(0, 9, 300), k=pd.Categorical(rng.choice(list('pqrstuvw'), 300)), m=rng.choice(['x', 'y', None], 300)))
    y = (X.a + X.b/4 + X.k.isin(['p', 'q', 'r']) > 1.5).astype(int)
    domain = tabular(X)
    coder = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), ['k', 'm']), remainder='passthrough')
    net = make_pipeline(coder, RandomForestClassifier(7, max_depth=4, random_state=0)).fit(X, y)
    whole = GradualCF(net, domain, settings).fit(X)
    monkeypatch.setattr(rows_module, '_ENTRIES', 0)
    coded = GradualCF(net, domain, settings).fit(X)
    kept = coded.x_train
    assert isinstance(kept, rows_module._CodedRows) and kept.numbers.shape == (300, 2) and (kept.whole() == whole.x_train).all()
    want, got = (cf.explain(X.iloc[:6]) for cf in (whole, coded))
    assert (got.xp == want.xp).all() and got.proof == want.proof and got.df().equals(want.df())
    assert got.quality().equals(want.quality())
    assert (copy.deepcopy(coded).explain(X.iloc[:3]).xp == whole.explain(X.iloc[:3]).xp).all()
    loaded = GradualCF.load(coded.save(tmp_path/'cf'), net)
    assert (loaded.x_train == whole.x_train).all() and fingerprint(coded.x_train.contiguous()) == fingerprint(whole.x_train)


# Sums, followers and prices of a small bank
DEBTS = pd.DataFrame(dict(card=[0, 3, 5, 9, 4, 7], loan=[2, 0, 8, 1, 3, 6], total=[2, 3, 13, 10, 7, 13], job=list('xyzxyz')))


def debts(**told):
    "A bank that minds the card, and answers about some debts."
    domain = tabular(DEBTS, **told)
    bank = predictor(lambda df: np.stack([df.card - 4.5, 4.5 - df.card], 1), domain, kind='logit')
    return domain, GradualCF(bank, domain, 'sparse').fit(DEBTS)


def test_a_table_measures_what_it_was_told():
    told = dict(relations=['total == card + loan'], cost=dict(card=(1., 2.)))
    for some,names in (({}, {}), (dict(cost=told['cost']), {'cost'}), (dict(relations=told['relations']), {'broken'}), (told, {'broken', 'cost'})):
        domain,cf = debts(**some)
        cfs = cf.explain(DEBTS)
        assert domain.kind == 'table' and cfs.valid.all() and set(domain.measures(cfs)) == set(names)
    got = domain.measures(cfs)
    assert not got['broken'].any() and torch.equal(got['cost'], domain.cost(cfs.x, cfs.xp))
    step = torch.tensor((cfs.raw.card - DEBTS.card).tolist(), dtype=torch.float64)/9
    torch.testing.assert_close(got['cost'], torch.where(step > 0, step, -2*step))


def test_followers_follow_for_nothing_and_are_told_apart():
    _,cf = debts(relations=['card rises -> loan rises by 1'], cost=dict(loan='never'))
    cfs = cf.explain(DEBTS)
    risen = cfs.raw.card > DEBTS.card
    assert cfs.valid.all() and risen.sum() == 3 and (cfs.raw.loan == DEBTS.loan + risen).all()
    lines = cfs.changes()
    assert set(lines.feature) == {'card', 'loan'} and (lines.follows == (lines.feature == 'loan')).all()
    many = cf.explain(pd.concat([DEBTS]*8)).changes()
    assert many.row.is_monotonic_increasing and many.index.tolist() == list(range(len(many))) and len(many) > 60
    assert all(names in (['card'], ['card', 'loan']) for names in many.groupby('row').feature.agg(list))      # in the table's order
    assert 'follows' not in debts()[1].explain(DEBTS).changes()


def test_what_costs_infinitely_much_stays():
    domain,cf = debts(cost=dict(card='never', loan=(np.inf, 1.), total=(1., 'never')))
    enc = domain.encode(DEBTS)
    assert enc.frozen[:, 0].all() and not enc.frozen[:, 1].all()
    assert torch.equal(enc.high[:, 1], enc.x[:, 1]) and (enc.low[:, 1] <= enc.x[:, 1]).all() and (enc.low[:, 1] == 0).all()
    assert torch.equal(enc.low[:, 2], enc.x[:, 2]) and (enc.high[:, 2] == 1).all()
    assert (cf.explain(DEBTS).raw.card == DEBTS.card).all()


def test_a_column_that_a_question_fixes_cannot_follow():
    domain,_ = debts(relations=['total == card + loan'])
    enc = domain.constrain(domain.encode(DEBTS), DEBTS, immutable=['total'])
    assert torch.equal(enc.low[:, 2], enc.x[:, 2]) and torch.equal(enc.high[:, 2], enc.x[:, 2])
    free = domain.constrain(domain.encode(DEBTS), DEBTS)
    assert (free.low[:, 2] < enc.x[:, 2]).any() and (free.high[:, 2] > enc.x[:, 2]).any()


def test_levels_in_several_columns_are_legal_row_by_row():
    hot = pd.DataFrame(dict(a=[1, 0, 0, 0], b=[0, 1, 0, 0], c=[0, 0, 1, 1], n=[1., 2, 3, 4]))
    domain = tabular(hot, categorical=dict(kind=['a', 'b', 'c']), bounds=dict(kind=['a', 'b']))
    new = hot.assign(a=[0, 1, 1, 0], b=[1, 1, 0, 0], c=[0, 0, 0, 1])
    assert domain.legal(hot, new)[:, 0].tolist() == [True, False, True, True]      # the second has two, the last did not move
    assert domain.legal(hot, hot.assign(a=0, b=0, c=1))[:, 0].tolist() == [False, False, True, True]


@pytest.mark.parametrize('make', ['forest', 'layers', 'boosted'])
def test_what_is_opened_says_what_rows_say_that_are_written_down(make):
    "Of every single change, with levels, missing numbers and whole ones, to the last digits; and what the model itself decides."
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from gradual_cf.search.boxes import grid_of
    from gradual_cf.search.opened import _lead_in, _opened, _places_of
    r = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=r.normal(0, 9, 200).round(1), b=r.integers(0, 6, 200), c=pd.Categorical(r.choice(list('xyz'), 200))))
    if make == 'boosted': df.loc[r.random(200) < .2, 'a'] = np.nan
    steps = make_column_transformer((StandardScaler(), ['a', 'b']), (OneHotEncoder(), ['c']))
    last = dict(forest=lambda: RandomForestClassifier(6, max_depth=5, random_state=0), layers=lambda: MLPClassifier((5,), max_iter=3000, random_state=0),
                boosted=lambda: HistGradientBoostingClassifier(max_iter=8, categorical_features='from_dtype'))[make]()
    model = (last if make == 'boosted' else make_pipeline(steps, last)).fit(df, (df.a.fillna(0) + 3*df.b + 5*(df.c == 'y') > 8).astype(int))
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    x = cf.x_train.double().numpy()
    places = _places_of(grid_of(cf.domain.features), x)
    inside = _opened(cf, places, None)
    if inside is None and make != 'layers': pytest.skip('needs a C compiler at installation')
    engine, every = inside.make(places, [inside.own]), np.arange(len(places.owner))
    for i in range(0, 40, 8):
        rows = places.put(np.repeat(x[i:i + 1], len(every), 0), every)
        change, written = engine.changes(x[i:i + 1], np.ones((1, len(every)), bool))[0].T, engine.sums(rows)
        np.testing.assert_allclose(change, written, atol=1e-9)
        z = cf.model(torch.from_numpy(rows)).double().numpy()
        np.testing.assert_allclose(_lead_in(inside.own.link, engine.k[0], change, 1, True), z[:, 1] - z[:, 0], rtol=1e-5, atol=1e-5)


def test_changes_of_a_row_come_in_the_order_of_the_columns():
    df = pd.DataFrame(np.random.default_rng(0).random((200, 6)).round(2), columns=list('fedcba'))
    cfs = GradualCF(lambda v: (v.sum(1, keepdim=True) - 3)*torch.tensor([-1., 1.]).to(v), tabular(df), 'sparse', sigma=0).fit(df).explain(df)
    lines = replace(cfs, xp=1 - cfs.x, mask=torch.ones_like(cfs.mask)).changes()
    assert lines.feature.tolist() == list('fedcba')*200 and lines.row.is_monotonic_increasing
