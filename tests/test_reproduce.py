"""The machinery of `gradual-cf reproduce`: parts are run once, kept whole, and keyed by all that they depend on."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from gradual_cf import reproduce as module
from gradual_cf.all import load_task
from gradual_cf.reproduce import EXPERIMENTS, METHODS, ROWS, SENTENCES, TABLE6, Experiment, as_frame, beside_sentences, beside_table6, find_row, part_path, reproduce, run_cell, run_part
from shell import without_data

real = pytest.mark.skipif(not os.environ.get('GRADUAL_CF_DATA'), reason='GRADUAL_CF_DATA is not set: no HELOC, UCI Credit or IMDB data')


@pytest.fixture
def counted(monkeypatch):
    "An experiment of two parts that counts its runs."
    calls = []
    def run(part, path):
        calls.append(part['method'])
        return pd.DataFrame([dict(data='d', method=part['method'], metric='l1', paper=1., ours=float(part['rows']))])
    e = Experiment('two parts', lambda rows, seed: [dict(method=m, rows=rows, seed=seed) for m in 'ab'], run, lambda df: df.assign(difference=df.ours - df.paper), module.draw_pairs, 7)
    monkeypatch.setitem(EXPERIMENTS, 'two', e)
    return calls


def test_parts_run_once_and_again_when_anything_changes(counted, tmp_path, monkeypatch):
    first = reproduce('two', tmp_path)
    again = reproduce('two', tmp_path)
    assert counted == ['a', 'b'] and first.beside.equals(again.beside) and first.made == again.made
    reproduce('two', tmp_path, rows=8)
    reproduce('two', tmp_path, seed=1)
    assert counted == ['a', 'b']*3
    monkeypatch.setattr('gradual_cf.__version__', '99')
    reproduce('two', tmp_path)
    assert counted == ['a', 'b']*4


def test_what_is_written(counted, tmp_path):
    said = []
    report = reproduce('two', tmp_path, tell=said.append)
    names = {Path(f).name for f in report.files}
    assert names == {'two.csv', 'two_beside.csv', 'two.png', 'two.json'} and len(said) == 2
    made = json.loads((tmp_path/'two.json').read_text())
    assert made['seed'] == 0 and made['rows'] == 7 and {'torch', 'gradual_cf', 'numpy', 'python'} <= set(made['versions']) and made['seconds'] >= 0
    assert (tmp_path/'two.png').read_bytes()[:4] == b'\x89PNG'
    assert 'part_seconds' not in pd.read_csv(tmp_path/'two.csv')
    assert '6.000' in str(report) and 'torch' in str(report)
    assert json.loads(json.dumps(report.as_dict()))['beside'][0]['difference'] == 6


def test_a_part_that_fails_leaves_nothing_behind(counted, tmp_path, monkeypatch):
    def broken(part, path): raise RuntimeError('no')
    monkeypatch.setitem(EXPERIMENTS, 'two', EXPERIMENTS['two']._replace(run=broken))
    with pytest.raises(RuntimeError): reproduce('two', tmp_path)
    assert not list(tmp_path.rglob('*.*'))


def test_errors_name_the_argument(tmp_path):
    with pytest.raises(ValueError, match="name must be one of .*got 'table1'"): reproduce('table1', tmp_path)
    with pytest.raises(ValueError, match='rows must be'): reproduce('table6', tmp_path, rows=0)
    with pytest.raises(ValueError, match='path must be a data folder'): reproduce('table4', tmp_path, path=tmp_path)


def test_every_table_and_figure_of_the_command_is_registered():
    assert list(EXPERIMENTS) == ['table2', 'table3', 'table4', 'table5', 'table6', 'table6_variants', 'table7', *(f'fig{i}' for i in range(2, 10))]


def test_printed_numbers_against_the_paper():
    t = TABLE6.set_index(['data', 'method'])
    assert t.loc[('heloc', 'ours')].tolist() == [1.05, .39, 1.40] and t.loc[('uci_credit', 'LORE')].tolist() == [1.35, .37, 6.48]
    assert [len(ROWS[d].values) for d in ROWS] == [22, 23] and all(len(r.changed['ours']) == 1 for r in ROWS.values())
    assert all(s.old.lower() in s.text.lower() for s in SENTENCES)


def test_beside_table6_pairs_every_method_with_its_printed_row():
    row = lambda m, k: '[1, 1, 0]' if m == 'valid' and k == 'LORE' else '[1, 1, 1]' if m == 'valid' else '[1, 2, 6]' if m in ('l1', 'l2') else None
    lines = [dict(metric=m, eps=e, mean=1., std=0., share=None, data=d, method=k, per_row=row(m, k)) for d in ('heloc', 'uci_credit') for k in METHODS for m,e in (('l1', None), ('l2', None), ('coherence', '8'), ('coherence', '12'), ('valid', None))]
    b = beside_table6(pd.DataFrame(lines))
    assert len(b) == 2*len(METHODS)*3 and b.paper.notna().all()
    at = lambda m, metric: b[(b.method == m) & (b.metric == metric) & (b['data'] == 'heloc')].iloc[0]
    assert at('ours, default', 'l1').ours == 3 and at('ours, default', 'l1').difference == pytest.approx(3 - 1.05)
    assert at('LORE', 'l2').ours == 1.5 and at('LORE', 'l2').default_same_rows == 1.5 and at('LORE', 'l2').answered == pytest.approx(2/3)
    assert at('CEM', 'coherence').ours == 1


def test_beside_sentences_counts_words():
    ours = pd.DataFrame([dict(text=SENTENCES[1].text, dim=100, setting='default', swaps='[["best", "worst"]]', prob=.9, valid=True),
                         dict(text=SENTENCES[-1].text, dim=100, setting='paper without logits', swaps='[]', prob=.2, valid=False)])
    b = beside_sentences(ours)
    assert b.paper.tolist() == ['best → dreadful', 'funny → Equally'] and b.ours.tolist() == ['best → worst', ''] and b.difference.tolist() == [0, -1]


def test_cells_run_as_in_a_notebook():
    names = {}
    assert run_cell('a = 2\na + 1', names) == 3 and run_cell('a;', names) is None and run_cell('b = a', names) is None
    assert as_frame({'x': 1}).to_dict('list') == {'name': ['x'], 'value': ['1']}


def test_a_figure_is_its_notebook(tmp_path):
    code = f"from gradual_cf.reproduce import reproduce; r = reproduce('fig4', {str(tmp_path)!r}); print(r); r = reproduce('fig4', {str(tmp_path)!r}, tell=print)"
    out = subprocess.run([sys.executable, '-c', code], env=without_data() | dict(MPLBACKEND='Agg'), capture_output=True, text=True, check=True).stdout
    assert 'kept' in out and (tmp_path/'fig4.png').is_file() and 'rank_of_the_first_block' in out


@real
def test_the_papers_applicants_are_in_the_data():
    for data,agree in (('heloc', 10), ('uci_credit', 17)):
        row,same = find_row(load_task(data), ROWS[data].values)
        assert same >= agree and len(row) == 1


@real
def test_table6_part_on_a_few_rows(tmp_path):
    part = dict(data='heloc', method='ours, default', rows=20, seed=0)
    df,new = run_part(EXPERIMENTS['table6'], 'table6', part, tmp_path)
    again,anew = run_part(EXPERIMENTS['table6'], 'table6', part, tmp_path)
    assert new and not anew and df.equals(again) and part_path(tmp_path, 'table6', part).is_file()
    assert df[df.metric == 'valid']['mean'].item() == 1 and df[df.metric == 'l1']['mean'].item() < 1.5


def test_the_data_folder_is_put_back(counted, tmp_path, monkeypatch):
    for old in (None, '/old'):
        monkeypatch.delenv('GRADUAL_CF_DATA', raising=False) if old is None else monkeypatch.setenv('GRADUAL_CF_DATA', old)
        with module.data_folder(tmp_path): assert os.environ['GRADUAL_CF_DATA'] == str(tmp_path)
        assert os.environ.get('GRADUAL_CF_DATA') == old
        with module.data_folder(None): assert os.environ.get('GRADUAL_CF_DATA') == old
