"""The machinery of `gradual-cf reproduce`: parts are run once, kept whole, and keyed by all that they depend on."""
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from written import load_task

from gradual_cf.paper import reproduce as module
from gradual_cf.paper.reproduce import (
    _REAL, _run_believed, _METHODS, EXPERIMENTS, _beside_sentences, _beside_table6, _execute, _Experiment, _find_row,
    _figure_code, _last_table, _printed, _kept_or_run, reproduce, results)
from shell import shell

real = pytest.mark.skipif(not os.environ.get('GRADUAL_CF_DATA'), reason='need GRADUAL_CF_DATA')
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def counted(monkeypatch):
    "An experiment of two parts that counts its runs."
    calls = []
    def run(part, path):
        calls.append(part['method'])
        return pd.DataFrame([dict(data='d', method=part['method'], metric='l1', paper=1., ours=float(part['rows']))])
    parts = [dict(method=m) for m in 'ab']
    e = _Experiment('two parts', lambda path: parts, run, lambda df: df.assign(difference=df.ours - df.paper), module._draw_pairs, 7)
    monkeypatch.setitem(EXPERIMENTS, 'two', e)
    return calls


@pytest.mark.night
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
    monkeypatch.setattr(module, '_code_digest', lambda: 'other code')
    reproduce('two', tmp_path)
    assert counted == ['a', 'b']*5


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


def test_pictures_of_a_kept_part_are_written_again(counted, tmp_path, monkeypatch):
    png = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(png, 'PNG')
    def drawn(part, path): return pd.DataFrame([dict(x=1)]), [png.getvalue()]
    monkeypatch.setitem(EXPERIMENTS, 'two', _Experiment('drawn', lambda path: [dict(figure='x')], drawn))
    reproduce('two', tmp_path)
    a = (tmp_path/'two.png').read_bytes()
    (tmp_path/'two.png').unlink()
    reproduce('two', tmp_path)
    b = (tmp_path/'two.png').read_bytes()
    assert a == b and np.array_equal(np.array(Image.open(io.BytesIO(a)).convert('L')), np.arange(64).reshape(8, 8))


def test_every_table_and_figure_of_the_command_is_registered():
    assert list(EXPERIMENTS) == ['table2', 'table3', 'table4', 'table5', 'table6', 'table6_variants', 'table6_believed', 'table7', *(f'fig{i}' for i in range(2, 10))]


def test_printed_numbers_against_the_paper():
    t = pd.DataFrame(_printed('table6')).set_index(['data', 'method'])
    assert t.loc[('heloc', 'ours')].tolist() == [1.05, .39, 1.40] and t.loc[('uci_credit', 'LORE')].tolist() == [1.35, .37, 6.48]
    applicants = _printed('applicants')
    assert [len(a['values']) for a in applicants.values()] == [22, 23] and all(len(a['changed']['ours']) == 1 for a in applicants.values())
    assert all(s['old'].lower() in s['text'].lower() for s in _printed('sentences'))


def test_the_papers_numbers_are_part_of_the_package():
    setup = (ROOT/'setup.py').read_text()
    assert '*.json' in setup and '*.html' in setup
    assert {p.name for p in (ROOT/'gradual_cf/paper').iterdir()} >= {'paper.json'} and (ROOT/'gradual_cf/templates/survey/page.html').is_file()


def test_results_are_read_by_name():
    assert isinstance(results('table6.csv'), pd.DataFrame) and 'seed' in results('table6.json')
    assert results('loans.csv').equals(pd.read_csv(ROOT/'benchmarks/results/loans.csv'))
    assert results('explorer.png').data == (ROOT/'benchmarks/results/explorer.png').read_bytes()


@pytest.mark.parametrize('picture', sorted((ROOT/'nbs/figures/results').glob('*.png')), ids=lambda p: p.stem)
def test_committed_pictures_are_small(picture):
    assert picture.stat().st_size <= 150_000 and len(Image.open(picture).getcolors(256)) <= 256


def test_beside_table6_pairs_every_method_with_its_printed_row():
    def row(metric, method):
        if metric == 'valid': return '[1, 1, 0]' if method == 'LORE' else '[1, 1, 1]'
        return '[1, 2, 6]' if metric in ('l1', 'l2') else None
    metrics = ('l1', None), ('l2', None), ('coherence', '8'), ('coherence', '12'), ('valid', None)
    lines = [dict(metric=m, eps=e, mean=1., std=0., share=None, data=d, method=k, per_row=row(m, k))
             for d in ('heloc', 'uci_credit') for k in _METHODS for m, e in metrics]
    b = _beside_table6(pd.DataFrame(lines))
    assert len(b) == 2*len(_METHODS)*3 and b.paper.notna().all()
    at = lambda m, metric: b[(b.method == m) & (b.metric == metric) & (b['data'] == 'heloc')].iloc[0]
    assert at('ours, sparse', 'l1').ours == 3 and at('ours, sparse', 'l1').difference == pytest.approx(3 - 1.05)
    assert at('LORE', 'l2').ours == 1.5 and at('LORE', 'l2').sparse_same_rows == 1.5 and at('LORE', 'l2').answered == pytest.approx(2/3)
    assert at('CEM', 'coherence').ours == 1


def test_beside_sentences_counts_words():
    sentences = _printed('sentences')
    ours = pd.DataFrame([dict(text=sentences[1]['text'], dim=100, setting='default', swaps='[["best", "worst"]]', prob=.9, valid=True),
                         dict(text=sentences[-1]['text'], dim=100, setting='paper without logits', swaps='[]', prob=.2, valid=False)])
    b = _beside_sentences(ours)
    assert b.paper.tolist() == ['best → dreadful', 'funny → Equally'] and b.ours.tolist() == ['best → worst', ''] and b.difference.tolist() == [0, -1]


def test_a_swap_that_the_paper_does_not_print_is_empty():
    s = _printed('sentences')[1]    # Table 2 has no line without logits
    ours = pd.DataFrame([dict(text=s['text'], dim=100, setting='paper without logits', swaps='[]', prob=.2, valid=False)])
    assert _beside_sentences(ours).paper.tolist() == ['']


def test_the_last_table_that_a_notebook_shows():
    assert _last_table([{'x': 1}]) == 'name,value\nx,1\n'
    assert _last_table([pd.DataFrame(dict(a=[1]), index=[7])]) == 'a\n1\n'
    assert _last_table([pd.DataFrame(dict(a=[1]), index=pd.Index(['u'], name='m'))]) == 'm,a\nu,1\n'
    assert _last_table([pd.DataFrame(dict(a=[1]), index=['u'])]) == 'index,a\nu,1\n'
    assert _last_table([{'x': 1}, pd.DataFrame(dict(a=[2])), 'text', 3]) == 'a\n2\n' and _last_table(['text']) == ''


def test_cells_run_in_a_kernel_of_their_own(tmp_path):
    outputs = _execute(['import os', 'os.environ["GRADUAL_CF_DATA"]', 'os.getcwd();'], tmp_path, tmp_path/'data')
    assert outputs[1][0].data['text/plain'] == repr(str(tmp_path/'data')) and not outputs[2]
    assert os.environ.get('GRADUAL_CF_DATA') != str(tmp_path/'data')      # the caller's environment stays as it was
    with pytest.raises(AssertionError, match='no digit'): _execute(['assert False, "no digit"'], tmp_path)
    with pytest.raises(ValueError, match='got KeyError'): _execute(['{}[1]'], tmp_path)


def test_cells_that_show_what_is_committed_are_no_part_of_a_figure():
    for name in (e for e in EXPERIMENTS if e.startswith('fig')):
        assert not any("results('fig" in c for c in _figure_code(name)) and any('assert' in c for c in _figure_code(name))


@pytest.mark.night
def test_a_figure_is_its_notebook(networks, tmp_path):
    sh = shell(os.environ['GRADUAL_CF_CACHE'], tmp_path)
    first, again = (sh('reproduce', 'fig4', '--out', tmp_path) for _ in range(2))
    assert 'rank_of_the_first_block' in first.stdout and 'kept' in again.stderr and (tmp_path/'fig4.png').is_file()


def test_answers_stand_before_other_networks(monkeypatch):
    task = load_task('breast_cancer')
    monkeypatch.setattr(module, 'load_task', lambda name, path, seed: replace(task, model=task.judge) if seed else task)  # nothing is trained anew
    part = dict(data='breast_cancer', rows=4, seed=0)
    for method in ('ours, sparse', _REAL):
        table = _run_believed(part | dict(method=method), None)
        shares = table[table.metric.isin(['typical', 'confirmed', 'lof', 'isolation'])]
        assert {'confirmed', 'lof', 'isolation'} <= set(table.metric) and shares['mean'].between(0, 1).all()


@real
def test_the_papers_applicants_are_in_the_data():
    for data, agree in (('heloc', 10), ('uci_credit', 17)):
        row, same = _find_row(load_task(data), _printed('applicants')[data]['values'])
        assert same >= agree and len(row) == 1


@real
def test_table6_part_on_a_few_rows(tmp_path):
    part, said = dict(data='heloc', method='ours, sparse', rows=20, seed=0), []
    first = _kept_or_run('table6', part, None, tmp_path, said.append)
    again = _kept_or_run('table6', part, None, tmp_path, said.append)
    assert [s.endswith('kept') for s in said] == [False, True] and first['csv'] == again['csv']
    df = pd.read_csv(io.StringIO(first['csv']))
    assert df[df.metric == 'valid']['mean'].item() == 1 and df[df.metric == 'l1']['mean'].item() < 1.5
