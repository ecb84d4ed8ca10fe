"""Answers for other programs: strict JSON that comes back, pages and workbooks in which nothing runs, effects for shap."""
import datetime
import json
import math
import os
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from made import linear
from test_contract import even, fitted_case, odd, state_of, usual

from gradual_cf.all import GradualCF, audit, check_evidence, explain_dataset, letter, reasons, relevance, tabular
from gradual_cf.scale.batch import _model_digest

NAMES = ['=1+1', '<b>age</b>', '$ a $', 'two\nlines']
LEVELS = ['=cmd|x', '<script>alert(1)</script>', '@SUM(A1)\x07', '-x']


@pytest.fixture(scope='module')
def shop():
    "A table with hostile names and levels, missing cells and dates; its explainer and answers."
    rng, n = np.random.default_rng(0), 90
    df = pd.DataFrame({NAMES[0]: rng.gamma(6, 400, n).round(2), NAMES[1]: rng.integers(18, 80, n), NAMES[2]: pd.Categorical(rng.choice(LEVELS, n)),
                       NAMES[3]: pd.Timestamp('2020-01-01') + pd.to_timedelta(rng.integers(0, 900, n), 'D')}, index=[f'=r{i}' for i in range(n)])
    df.loc[df.index[::9], NAMES[0]] = np.nan
    cf = linear(tabular(df), df, classes=('<no>', '=yes'))
    rows = df[(cf.logits(df, cf.encode(df).x).argmax(1) == 0).numpy()]
    return cf, rows, cf.explain(rows, '=yes')


def refuse(name): raise AssertionError(f'{name} is no JSON')


@pytest.mark.night
def test_json_is_strict_and_holds_the_answers(shop, tmp_path):
    cf, rows, answer = shop
    text = answer.to_json(tmp_path/'a.json')
    told = json.loads(text, parse_constant=refuse)
    assert json.loads((tmp_path/'a.json').read_text(encoding='utf-8')) == told and told['schema_version'] == 1
    assert [c['name'] for c in told['columns']] == NAMES and told['classes'] == ['<no>', '=yes'] and told['tau'] is None and told['cut'] == .5
    for i, a in enumerate(told['answers']):
        assert a['row'] == rows.index[i] and a['target'] == '=yes' and a['valid'] == answer.valid[i] and a['after'] == answer.prob[i].item()
        assert a['distance'] == answer.quality().distance[i] and a['changed'] == [c for c, on in zip(NAMES, answer.changed[i]) if on]
        for cells, frame in ((a['data'], answer.data), (a['answer'], answer.raw)):
            for v, was in zip(cells, frame.iloc[i]):
                if pd.isna(was): assert v is None
                elif isinstance(was, pd.Timestamp): assert pd.Timestamp(v) == was
                else: assert v == was
    none = json.loads(answer[:0].to_json())
    assert none['answers'] == []


def test_json_of_what_is_infinite_or_no_table():
    from gradual_cf.render import json_value
    assert json_value([math.inf, -math.inf, math.nan, np.nan, pd.NA, None, np.bool_(True), datetime.date(2026, 3, 1)]) == ['inf', '-inf', None, None, None, None, True, '2026-03-01']
    from gradual_cf.all import images
    cf = GradualCF(lambda x: torch.stack([x.sum((1, 2, 3)) - 8, 8 - x.sum((1, 2, 3))], 1), images(block=2), 'sparse').fit(np.random.default_rng(0).random((20, 4, 4)))
    told = json.loads(cf.explain(np.zeros((1, 4, 4)), 0).to_json(), parse_constant=refuse)
    assert told['columns'] is None and np.shape(told['answers'][0]['data']) == (4, 4)


@pytest.mark.night
def test_a_page_runs_nothing_and_shows_every_row(shop, tmp_path):
    _, rows, answer = shop
    page = answer.to_html(tmp_path/'a.html').read_text(encoding='utf-8')
    assert '<script' not in page and '<b>age' not in page and '&lt;b&gt;age' in page and 'mathjax_ignore' in page
    assert all(f'row {name}:' in page for name in rows.index) and ' more rows' not in page


def test_a_workbook_runs_nothing(shop, tmp_path):
    openpyxl = pytest.importorskip('openpyxl')
    _, rows, answer = shop
    book = openpyxl.load_workbook(answer.to_excel(tmp_path/'a.xlsx'))
    assert book.sheetnames == ['answers', 'changes', 'quality']
    cells = [c for sheet in book for line in sheet.iter_rows() for c in line]
    assert not any(c.data_type == 'f' for c in cells) and not any(str(c.value)[:1] in '=+@' for c in cells if isinstance(c.value, str))
    head, *lines = [[c.value for c in line] for line in book['answers'].iter_rows()]
    assert head[:5] == ['cf_row', "'=1+1", *NAMES[1:]] and len(lines) == len(rows)
    for line, (_, raw) in zip(lines, answer.raw.iterrows()):
        assert line[2] == raw.iloc[1] and line[4] == raw.iloc[3] and (line[1] is None if pd.isna(raw.iloc[0]) else line[1] == raw.iloc[0])
    from gradual_cf.render import _excel_cell
    assert [_excel_cell(v) for v in ('\t=1', 10**17, math.inf, pd.NaT, '\x00')] == ["'\t=1", str(10**17), 'inf', None, '\\x00']


def test_answers_have_five_tables(shop):
    _, rows, answer = shop
    tidy, told, lookup = (answer.table(name) for name in (None, 'answers', 'lookup'))
    assert list(tidy.columns) == ['row', 'column', 'before', 'after', 'probability', 'proof', 'plausibility']
    lines = answer.changes()
    changed = tidy.dropna(subset='column')
    assert changed.column.tolist() == lines.feature.tolist() and changed.after.tolist() == lines.after.tolist()
    assert set(tidy.row) == {str(i) for i in rows.index} and len(tidy) == len(lines) + (~answer.changed.any(1)).sum()
    assert told.cf_row.tolist() == list(map(str, rows.index))
    joined = rows.reset_index(drop=True).merge(lookup, on=NAMES, how='left')  # an index of answers, joined to the rows
    assert len(joined) == len(rows) and np.array_equal(joined.cf_prob, answer.prob)
    assert len(answer[[0, 0, 1]].table('lookup')) == 2
    with pytest.raises(ValueError, match="table must be one of .*'tidy'.*, got 'long'"): answer.table('long')


def test_every_result_leaves_in_five_ways_and_by_arrow(shop, tmp_path):
    "No cell of CSV is a formula, JSON is strict, and a column of cells of several kinds becomes text in a file with types."
    import pyarrow as pa
    cf, rows, answer = shop
    for result in (answer, cf.explain(rows[:4], '=yes', k=5)):
        for name in result._TABLES:
            frame = result.table(name)
            back = pd.read_csv(result.to_csv(tmp_path/'a.csv', name), dtype=str, keep_default_na=False)
            assert len(back) == len(pd.read_parquet(result.to_parquet(tmp_path/'a.parquet', name))) == len(frame)
            texts = [*back.columns, *back.select_dtypes(exclude='number').to_numpy(str).ravel()]
            assert not [v for v in texts if v[:1] in '=@' and v]
        json.loads(result.to_json(tmp_path/'a.json'), parse_constant=refuse)
        assert '<script>alert' not in result.to_html(tmp_path/'a.html').read_text(encoding='utf-8')
        assert pa.table(result).num_rows == len(result.table())


def test_answers_come_back_from_csv(shop, tmp_path):
    answer = shop[2]
    for name in (None, 'quality'):
        back, frame = pd.read_csv(answer.to_csv(tmp_path/'a.csv', name), keep_default_na=False), answer.table(name)
        assert list(back.columns) == list(frame.columns) and len(back) == len(frame)
    assert back.valid.tolist() == answer.valid.tolist() and np.allclose(back.distance, answer.quality().distance)


def test_effects_are_what_the_model_says_without_a_change(shop, monkeypatch):
    cf, rows, answer = shop
    effects, changed = answer.effects(), answer.changed
    assert list(effects.columns) == NAMES and (effects.to_numpy()[~changed] == 0).all() and changed[answer.valid].any()
    groups = cf.groups(answer.x)
    for i, g in np.argwhere(changed & answer.valid[:, None]):
        xp = torch.where(groups == g, answer.x[i], answer.xp[i])[None]
        without = cf.logits(None, xp).softmax(1)[0, 1].item()
        assert effects.iloc[i, g] == pytest.approx(answer.prob[i] - without, abs=1e-6)
    kept = {}
    monkeypatch.setitem(sys.modules, 'shap', SimpleNamespace(Explanation=lambda values, **more: kept.update(values=values, **more)))
    answer.to_shap()
    assert np.array_equal(kept['values'], effects) and np.array_equal(kept['base_values'], answer.before) and kept['feature_names'] == NAMES


@pytest.mark.filterwarnings('ignore:The set_(bad|over|under) function:PendingDeprecationWarning') # shap 0.51 colours its maps so at import
def test_shap_reads_the_effects(shop):
    shap = pytest.importorskip('shap')
    explanation = shop[2].to_shap()
    assert isinstance(explanation, shap.Explanation) and explanation.shape == shop[2].changed.shape and explanation[0].feature_names == NAMES


def test_files_are_whole_or_not_there(shop, tmp_path, monkeypatch):
    page = shop[2].to_html(tmp_path/'a.html')
    was = page.read_bytes()
    monkeypatch.setattr(os, 'replace', lambda *a: (_ for _ in ()).throw(OSError('the disk is full')))
    with pytest.raises(OSError, match='full'): shop[2].to_html(page)
    assert page.read_bytes() == was and list(tmp_path.iterdir()) == [page]


# What is made of an explainer and its answers, as a text; each time in a folder of its own
USES = {
    'letters': lambda c, a, d: [check_evidence(texts := letter(a[:1], format=form), c.cf).to_json() + repr(texts) for form in ('md', 'html', 'json')],
    'reasons': lambda c, a, d: reasons(c.cf, c.rows, target=1).text(),
    'audit': lambda c, a, d: audit(c.cf, c.X[:90], 'job', target=1, least=9, test=dict(resamples=99)).text(),
    'relevance': lambda c, a, d: relevance(c.cf.model, c.cf.domain, c.rows)._repr_html_(),
    'folder of answers': lambda c, a, d: pd.read_parquet(explain_dataset(c.cf, c.rows, d, 1)).to_json(), 'name': lambda c, a, d: _model_digest(c.cf)}


@pytest.mark.night
@pytest.mark.parametrize('use', USES)
def test_what_is_made_of_answers_touches_nothing_and_says_the_same_twice(use, tmp_path):
    c, there = fitted_case('network'), usual('network')
    odd(c)
    try:
        before = state_of(c)
        one, two = (USES[use](c, there, tmp_path/name) for name in 'ab')
        now = state_of(c)
    finally: even(c)
    assert [k for k in before if before[k] != now[k]] == [] and one == two and len(one)
