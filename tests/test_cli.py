"""The command in a process of its own: output, exit codes, cache."""
import json
import os

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gradual_cf.cli import app
from gradual_cf.core import Display, Domain, Encoded
from gradual_cf.data.datasets import load_breast_cancer
from gradual_cf.data.datasets import Task
from gradual_cf.models.networks import save_model
from shell import shell
from toy import loans_of
from written import load_task


@pytest.fixture
def sh(networks, tmp_path): return shell(os.environ['GRADUAL_CF_CACHE'], tmp_path)


def test_demo_needs_nothing(sh, tmp_path):
    r = sh('demo')
    assert '→' in r.stdout and 'granted' in r.stdout
    assert (tmp_path/'gradual_cf_demo.png').read_bytes()[:4] == b'\x89PNG'


def test_the_network_is_kept(tmp_path):
    sh, cache = shell(tmp_path/'cache'), tmp_path/'cache'
    sh('train', 'breast_cancer')
    before = {f: f.stat().st_mtime_ns for f in cache.iterdir()}
    assert json.loads(sh('train', 'breast_cancer', '--json').stdout)['accuracy'] > .9  # the bound of test_training.py
    assert {f: f.stat().st_mtime_ns for f in cache.iterdir()} == before
    sh('train', 'breast_cancer', '--seed', 5)
    assert len(list(cache.iterdir())) > len(before)


def test_explain_prints_one_object(sh):
    one = json.loads(sh('explain', 'breast_cancer', '--row', 3, '--json').stdout)
    assert one['valid'] and one['before'] < .5 <= one['prob'] and len(one['changes']) >= 1
    names = [c['feature'] for c in one['changes']]
    other = json.loads(sh('explain', 'breast_cancer', '--row', 3, '--json', '--immutable', names[0], '--immutable', 'mean radius').stdout)
    assert not {names[0], 'mean radius'} & {c['feature'] for c in other['changes']}
    text = sh('explain', 'breast_cancer', '--row', 3).stdout
    assert names[0] in text and '→' in text


def test_order_and_other_ways(sh):
    ask = lambda *more: sh('explain', 'breast_cancer', '--row', 3, '--preset', 'plausible', '--plan', '--several', 3, *more).stdout
    one, text = json.loads(ask('--json')), ask()
    steps = [line for step in one['plan'] for line in step]
    assert {l['feature']: l['after'] for l in steps} == {l['feature']: l['after'] for l in one['changes']}
    assert abs(steps[-1]['probability'] - one['prob']) < 1e-6 and 2 <= len(one['answers']) <= 3
    assert len({tuple((l['feature'], l['after']) for l in answer) for answer in one['answers']}) == len(one['answers'])
    assert text.count('row 80') == 1 and text.index('step by step') < text.index('several ways')
    assert 'several' in sh('explain', 'breast_cancer', '--row', 3, '--several', 0, code=2).stderr


def test_a_text_as_an_object(sh):
    one = json.loads(sh('explain', 'toy_reviews', '--text', 'A dull plot.', '--json').stdout)
    assert one['text'] == 'A dull plot.' and 'dull' not in one['counterfactual']


def test_constraints_come_with_the_question(sh):
    ask = lambda *more: json.loads(sh('explain', 'breast_cancer', '--row', 3, '--json', *more).stdout)
    free = ask()
    first = free['changes'][0]
    sign = '--increase-only' if first['after'] < first['before'] else '--decrease-only'
    turned = ask(sign, first['feature'])
    assert turned['valid'] and all((c['after'] > c['before']) == (sign == '--increase-only') for c in turned['changes'] if c['feature'] == first['feature'])
    low, high = sorted((first['before'], first['before'] + .3*(first['after'] - first['before'])))
    held = ask('--bound', f'{first["feature"]}={low}..{high}')
    assert all(low - 1e-9 <= c['after'] <= high + 1e-9 for c in held['changes'] if c['feature'] == first['feature'])
    assert len(ask('--max-changes', 1)['changes']) == 1


def test_rows_from_a_file_and_a_model_of_ones_own(sh, tmp_path):
    _,_,X,_ = load_breast_cancer()
    X.head(4).assign(note='kept out').to_csv(tmp_path/'rows.csv', index=False)
    save_model(load_task('breast_cancer').model, tmp_path/'m.safetensors', data='breast_cancer')
    one = json.loads(sh('explain', 'breast_cancer', '--csv', tmp_path/'rows.csv', '--row', 2, '--model', tmp_path/'m.safetensors', '--json').stdout)
    assert one['row'] == 2 and one['valid']


def test_not_found_is_exit_code_3(sh):
    _,_,X,_ = load_breast_cancer()
    hold = [c for c in X if c != 'mean smoothness']
    args = [a for c in hold for a in ('--immutable', c)]
    codes = {json.loads(sh('explain', 'breast_cancer', '--row', 3, '--json', *args, code=3).stdout)['valid']}
    assert codes == {False}


def test_evaluate_prints_one_object(sh):
    out = json.loads(sh('evaluate', 'breast_cancer', '--rows', 30, '--json').stdout)
    assert {'valid', 'l1', 'l2', 'coherence', 'legal', 'in_range', 'logit_gap', 'judge', 'seconds_per_row', 'accuracy', 'rows', 'settings'} <= set(out)
    assert out['valid'] == 1 and out['legal'] == 1 and out['rows'] == 30 and set(out['coherence']) == {'8', '12', 'all'} and out['coherence']['8'] is None
    paper = json.loads(sh('evaluate', 'breast_cancer', '--rows', 30, '--json', '--preset', 'paper').stdout)
    assert paper['settings']['masking'] == 'gradient' and paper['in_range'] < 1 and paper['legal'] < 1


def test_version_and_help(sh):
    assert sh('--version').stdout.strip().count('.') == 2
    assert 'evaluate' in sh('--help').stdout


def curves_task(*args, **kw):
    "A task on a domain written by hand, of the kind 'other': twelve samples in three stretches."
    ids = torch.arange(12)//4
    def encode(data):
        x = torch.as_tensor(np.asarray(data)).float().reshape(-1, 12)
        return Encoded(x, torch.zeros(len(x), 3, dtype=torch.bool))
    def propose(x, group): return torch.linspace(0, 1, 6).to(x)[None, :, None].expand(1, 6, 4)
    torch.manual_seed(0)
    rows, net = torch.rand(60, 12), torch.nn.Linear(12, 2)
    domain = Domain(encode, lambda x, data, legal: x.clamp(0, 1), lambda s: ids, propose=propose, display=Display(names=('left', 'middle', 'right')))
    y = net(rows).argmax(1)
    return Task('curves', rows[:40], y[:40], rows[40:], y[40:], domain, net, None, ('low', 'high'))


def test_a_domain_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.setattr('gradual_cf.data.datasets.load_task', curves_task)
    run = lambda *args: CliRunner().invoke(app, list(map(str, args)))
    text = run('explain', 'curves', '--row', 3, '--out', tmp_path/'x.png', '--html', tmp_path/'x.html')
    assert text.exit_code == 0 and 'row 3: to be' in text.output and '→' in text.output
    assert (tmp_path/'x.png').read_bytes()[:4] == b'\x89PNG' and (tmp_path/'x.html').stat().st_size > 1000
    one = json.loads(run('explain', 'curves', '--row', 3, '--json', '--max-changes', 2).stdout)
    assert one['valid'] and one['row'] == 3 and {c['feature'] for c in one['changes']} <= {'left', 'middle', 'right'}
    assert json.loads(run('evaluate', 'curves', '--rows', 5, '--json').stdout)['rows'] == 5
    for more, says in ((('--row', 3, '--csv', 'x.csv'), "csv must not be given for 'curves'"), (('--text', 'dull'), 'text must not be given'), (('--row', 3, '--immutable', 'left'), 'immutable must be left out')):
        r = run('explain', 'curves', *more)
        assert r.exit_code == 2 and says in r.stderr, r.output


@pytest.fixture(scope='module')
def loans(tmp_path_factory):
    "A table of loans as CSV and parquet, and a fitted pipeline in a skops file."
    io, folder = pytest.importorskip('skops.io'), tmp_path_factory.mktemp('loans')
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    rng = np.random.default_rng(0)
    df = loans_of(rng, 240)
    io.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(df, (df.income/1000 - df.late > 1).astype(int)), folder/'m.skops')
    df.assign(sex=rng.choice(['f', 'm'], 240)).to_csv(folder/'rows.csv', index=False)
    df.to_parquet(folder/'rows.parquet')
    (folder/'cost.json').write_text('{"income": 2, "debt": 1}')
    (folder/'rules.txt').write_text('debt <= income + 9999\n')
    return folder


def run(*args):
    r = CliRunner().invoke(app, list(map(str, args)))
    assert r.exception is None or isinstance(r.exception, SystemExit), r.exception
    return r


def test_a_model_of_ones_own_is_asked_by_every_command(loans, tmp_path):
    own = '--model', loans/'m.skops', '--csv', loans/'rows.csv'
    told = json.loads(run('evaluate', *own, '--rows', 20, '--cost', loans/'cost.json', '--json').stdout)
    assert told['rows'] == 20 and told['valid'] > .9 and told['accuracy'] is None and told['dataset'] == 'rows'
    batch = run('batch', loans/'rows.parquet', '--model', loans/'m.skops', '--csv', loans/'rows.csv', '--out', tmp_path/'out', '--max-changes', 2, '--relations', loans/'rules.txt', '--json')
    assert json.loads(batch.stdout)['rows'] == 240, batch.output
    found = run('audit', *own, '--by', 'sex', '--rows', 200, '--least', 10, '--target', 1)
    assert found.exit_code == 0 and 'sex' in found.output, found.output
    assert any(line['by'] == 'sex' for line in json.loads(run('audit', *own, '--by', 'sex', '--rows', 200, '--least', 10, '--target', 1, '--json').stdout))
    few = run('actions', *own, '--rows', 100, '--count', 2, '--target', 1, '--immutable', 'debt')
    assert few.exit_code == 0 and '1. ' in few.output and 'debt' not in few.output, few.output


def test_a_word_that_is_none_lists_those_that_are(loans, tmp_path, monkeypatch):
    own = '--model', loans/'m.skops', '--csv', loans/'rows.csv'
    said = run('explain', 'nope', '--row', 0)
    assert said.exit_code == 2 and 'heloc' in said.stderr and 'digits' in said.stderr
    said = run('explain', *own, '--row', 0, '--immutable', 'Foo')
    assert said.exit_code == 2 and all(name in said.stderr for name in ('Foo', 'income', 'late', 'debt'))
    said = run('reproduce', '--list')
    assert said.exit_code == 0 and 'table6' in said.stdout and 'fig' in said.stdout and len(said.stdout.splitlines()) > 8
    assert run('reproduce').exit_code == 2
    monkeypatch.setattr('gradual_cf.paper.reproduce._KEEPS', ('nowhere',))
    said = run('field')
    assert said.exit_code == 2 and 'needs a clone of the repository' in said.stderr


def test_help_imports_nothing_heavy():
    import subprocess
    import sys
    code = """import sys
from gradual_cf.cli import app
try: app(sys.argv[1:])
except SystemExit: pass
assert not {'torch', 'pandas', 'numpy', 'sklearn', 'matplotlib', 'jinja2'} & set(sys.modules)"""
    for words in (['--help'], ['explain', '--help'], ['app', '--help'], ['batch', '--help'], ['--version']):
        subprocess.run([sys.executable, '-c', code, *words], check=True, capture_output=True)


def test_the_help_names_every_data_set():
    from gradual_cf.cli import _NAMES
    from gradual_cf.data.datasets import RECIPES
    assert _NAMES == ', '.join(RECIPES)
