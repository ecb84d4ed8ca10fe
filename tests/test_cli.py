"""The command in a process of its own: output, exit codes, cache."""
import json
import os
import re
import shlex
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from gradual_cf.all import Task, load_breast_cancer
from gradual_cf.cli import _json_lines, app
from shell import shell
from toy import loans_of, stretches


QUICK = 'explain', 'breast_cancer', '--intent', 'sparse'  # the default proves, for seconds


@pytest.fixture
def sh(networks, tmp_path): return shell(os.environ['GRADUAL_CF_CACHE'], tmp_path)


@pytest.mark.night
def test_explain_prints_one_object(sh):
    one = json.loads(sh(*QUICK, '--row', 3, '--json').stdout)
    assert one['valid'] and one['before'] < .5 <= one['prob'] and len(one['changes']) >= 1
    names = [c['feature'] for c in one['changes']]
    other = json.loads(sh(*QUICK, '--row', 3, '--json', '--immutable', names[0], '--immutable', 'mean radius').stdout)
    assert not {names[0], 'mean radius'} & {c['feature'] for c in other['changes']}
    text = sh(*QUICK, '--row', 3).stdout
    assert names[0] in text and '→' in text


@pytest.mark.night
def test_order_and_other_ways(sh):
    ask = lambda *more: sh('explain', 'breast_cancer', '--row', 3, '--intent', 'plausible', '--plan', '-k', 3, *more).stdout
    one, text = json.loads(ask('--json')), ask()
    steps = [line for step in one['plan'] for line in step]
    assert {l['feature']: l['after'] for l in steps} == {l['feature']: l['after'] for l in one['changes']}
    assert abs(steps[-1]['probability'] - one['prob']) < 1e-6 and 2 <= len(one['answers']) <= 3
    assert len({tuple((l['feature'], l['after']) for l in answer) for answer in one['answers']}) == len(one['answers'])
    assert text.count('row 3, answer 1:') == 1 and 0 < text.index('step by step')


@pytest.mark.night
def test_a_text_as_an_object(sh):
    one = json.loads(sh('explain', 'toy_reviews', '--text', 'A dull plot.', '--json').stdout)
    assert one['text'] == 'A dull plot.' and 'dull' not in one['counterfactual']


@pytest.mark.night
def test_constraints_come_with_the_question(sh):
    ask = lambda *more: json.loads(sh(*QUICK, '--row', 3, '--json', *more).stdout)
    free = ask()
    first = free['changes'][0]
    sign = '--increase-only' if first['after'] < first['before'] else '--decrease-only'
    turned = ask(sign, first['feature'])
    assert turned['valid'] and all((c['after'] > c['before']) == (sign == '--increase-only') for c in turned['changes'] if c['feature'] == first['feature'])
    low, high = sorted((first['before'], first['before'] + .3*(first['after'] - first['before'])))
    held = ask('--bound', f'{first["feature"]}={low}..{high}')
    assert all(low - 1e-9 <= c['after'] <= high + 1e-9 for c in held['changes'] if c['feature'] == first['feature'])
    assert len(ask('--max-changes', 1)['changes']) == 1


@pytest.mark.night
def test_not_found_is_exit_code_3(sh):
    _,_,X,_ = load_breast_cancer()
    hold = [c for c in X if c != 'mean smoothness']
    args = [a for c in hold for a in ('--immutable', c)]
    codes = {json.loads(sh(*QUICK, '--row', 3, '--json', *args, code=3).stdout)['valid']}
    assert codes == {False}


@pytest.mark.night
def test_version_and_help(sh):
    assert sh('--version').stdout.strip().count('.') == 2
    said = sh('--help').stdout
    assert all(f' {name} ' in said for name in 'explain letter reasons batch audit check serve reproduce demo'.split())
    assert not [name for name in 'plan evaluate actions watch test app train field'.split() if re.search(rf'│ {name} ', said)]


def curves_task(*args, **kw):
    "A task on a domain written by hand, of the kind 'other': twelve samples in three stretches."
    torch.manual_seed(0)
    rows, net = torch.rand(60, 12).double(), torch.nn.Linear(12, 2).double()
    domain = stretches(names=('left', 'middle', 'right'))
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
    df.head(60).to_parquet(folder/'rows.parquet')
    (folder/'cost.json').write_text('{"income": 2, "debt": 1}')
    (folder/'rules.txt').write_text('debt <= income + 9999\n')
    return folder


def run(*args):
    r = CliRunner().invoke(app, list(map(str, args)))
    assert r.exception is None or isinstance(r.exception, SystemExit), r.exception
    return r


def test_a_model_of_ones_own_is_asked_by_every_command(loans, tmp_path):
    own = '--model', loans/'m.skops', '--csv', loans/'rows.csv'
    batch = run('batch', loans/'rows.parquet', '--model', loans/'m.skops', '--csv', loans/'rows.csv', '--out', tmp_path/'out', '--max-changes', 2, '--relations', loans/'rules.txt', '--json')
    assert json.loads(batch.stdout)['rows'] == 60, batch.output
    whom = *own, '--by', 'sex', '--rows', 80, '--least', 5, '--wanted', 1
    found = run('audit', *whom)
    assert found.exit_code == 0 and 'sex' in found.output, found.output
    assert any(line['by'] == 'sex' for line in json.loads(run('audit', *whom, '--json').stdout))
    assert run('audit', *own).stderr.startswith('error: --by must name')


def test_a_word_that_is_none_lists_those_that_are(loans):
    own = '--model', loans/'m.skops', '--csv', loans/'rows.csv'
    said = run('explain', 'nope', '--row', 0)
    assert said.exit_code == 2 and 'heloc' in said.stderr and 'digits' in said.stderr
    said = run('explain', *own, '--row', 0, '--immutable', 'Foo')
    assert said.exit_code == 2 and all(name in said.stderr for name in ('Foo', 'income', 'late', 'debt'))
    said = run('reproduce', '--list')
    assert said.exit_code == 0 and 'table6' in said.stdout and 'fig' in said.stdout and len(said.stdout.splitlines()) > 8
    assert run('reproduce').exit_code == 2


@pytest.mark.night
def test_help_imports_nothing_heavy():
    import subprocess
    import sys
    code = """import sys
from gradual_cf.cli import app
try: app(sys.argv[1:])
except SystemExit: pass
assert not {'torch', 'pandas', 'numpy', 'sklearn', 'matplotlib', 'jinja2'} & set(sys.modules)"""
    for words in (['--help'], ['explain', '--help'], ['batch', '--help'], ['--version']):
        subprocess.run([sys.executable, '-c', code, *words], check=True, capture_output=True)


def test_the_help_names_every_data_set():
    from gradual_cf.cli import _NAMES
    from gradual_cf.data.datasets import RECIPES
    assert _NAMES == ', '.join(RECIPES)


CALLS = [  # a stranger's call, its exit code, what is said
    ('', 0, 'About one row'), ('explain', 2, 'gradual-cf explain loans --row'), ('explain loans', 2, 'gradual-cf explain loans --row 0'),
    ('explain loans --row 0', 0, '--wanted refused'), ('explain loans --row 8', 0, '→'), ('explian loans', 2, 'explain'), ('explain lons --row 8', 2, "did you mean 'loans'"),
    ('explain loans --row 8 --imutable debt', 2, 'gradual-cf explain --help'), ('explain loans --row 8 --immutable dept', 2, "'debt'"), ('explain loans --row 8 --max-changes none', 2, "'--max-changes'"),
    ('explain loans --row 8 --wanted yes', 2, "--wanted must be one of the labels 'refused', 'granted'"), ('explain --csv rows.csv --row 0', 2, 'gradual-cf explain loans --row'), ('explain loans --row 999', 2, '--row must be in 0..399'),
    ('letter loans --row 0', 2, 'the model says granted already; rows of which it does not: --row'), ('letter loans', 2, 'gradual-cf letter loans --row 0'), ('letter loans --row 8 --format pdf', 2, '--out must name a file'),
    ('letter loans --row 8 --notices us-reg-b', 2, 'us-reg-b=FILE'), ('letter loans --row 8 --notices us-reg-b=', 2, "--sender must be given where notices names 'us-reg-b', or '' to leave it out"),
    ('letter loans --row 8 --language xx', 2, '--language'), ('plan loans --row 8', 2, 'gradual-cf --help'), ('check . --model nowhere', 2, 'nowhere'), ('reasons loans --row 8', 0, '2. '), ('reasons', 2, 'gradual-cf reasons loans --row')]


def next_calls(call, said):
    "The calls that an answer names: one that is written out, a word that is nearer, or other rows."
    told = re.findall(r'gradual-cf [^;:`\n]*(?=[;:`\n]| lists)', said)
    near = re.search(r"did you mean '(\w+)'", said, re.I)
    words = shlex.split(call)
    if near: told.append(' '.join(['gradual-cf', words[0], near[1], *words[2:]] if 'DATASET' in said else ['gradual-cf', near[1], *words[1:]]))
    told += [re.sub(r'--row \d+', row, f'gradual-cf {call}') for row in re.findall(r'--row \d+', said.partition('does not: ')[2])[:1]]
    return [told.replace(' lists what there is', '').removeprefix('gradual-cf').strip() for told in told]


@pytest.fixture(scope='module')
def fitted(networks):
    "Commands find a task and its explainer as an earlier call left them."
    from unittest.mock import patch
    from gradual_cf import cli
    make, fit, kept = cli._task, cli._fitted, {}
    def task(*args, block=None, **told):
        key = repr((args, block, told))
        if key not in kept: kept[key] = make(*args, **told) if block is None else make(*args, block=block, **told)
        return kept[key]
    def fitted(task, intent=None, seed=0):
        if (id(task), intent, seed) not in kept: kept[id(task), intent, seed] = fit(task, intent, seed)
        return kept[id(task), intent, seed]
    with patch.object(cli, '_task', task), patch.object(cli, '_fitted', fitted): yield


@pytest.mark.parametrize('call, code, says', CALLS, ids=[call or 'nothing' for call, _, _ in CALLS])
def test_a_strangers_call_ends_in_an_answer_or_names_the_next_call(fitted, call, code, says):
    r = run(*shlex.split(call))
    assert r.exit_code == code and says in r.output and 'Traceback' not in r.output, r.output
    if code: assert r.stderr.startswith('error: ') and r.stderr.count('\n') == 1
    asked, seen = next_calls(call, r.output) if call else [], {call}
    while asked:
        call = asked.pop()
        if call in seen: continue
        seen.add(call)
        r = run(*shlex.split(call))
        assert len(seen) < 5 and (not r.exit_code or next_calls(call, r.output)), r.output
        asked += next_calls(call, r.output) if r.exit_code else []


def test_a_row_is_called_as_it_was_asked_for(fitted):
    for command in ('explain', 'reasons'): assert 'row 8' in run(command, 'loans', '--row', 8).stdout
    assert 'reference 8' in run('letter', 'loans', '--row', 8).stdout and (told := json.loads(run('explain', 'loans', '--row', 8, '--intent', 'plausible', '--json').stdout))['row'] == 8
    assert told['valid'] and 0 <= told['typical'] <= 1


def test_letters_are_written_in_every_form(fitted, tmp_path):
    (tmp_path/'ours.txt').write_text('Our own words.')
    slots = [w for name in ('sender', 'addressee', 'product', 'contact') for w in (f'--{name}', name.title())]
    for name, begins in (('a.html', b'<!doctype html>'), ('a.txt', b'Sender'), ('a.json', b'{')):
        r = run('letter', 'loans', '--row', 8, '--out', tmp_path/name, *slots, '--notices', f'us-reg-b={tmp_path/"ours.txt"}', '--reasons', 2)
        assert r.exit_code == 0 and r.stdout == f'the letter is in {tmp_path/name}\n', r.output
        assert (tmp_path/name).read_bytes().lstrip().startswith(begins)
    text = (tmp_path/'a.txt').read_text()
    assert 'Our own words.' in text and 'Addressee' in text and 'Contact' in text and '2. ' in text and '3. The value' not in text


def test_classes_of_a_model_get_their_names(loans):
    own = '--model', loans/'m.skops', '--csv', loans/'rows.csv'
    for told in ('refused,granted', '0=refused,1=granted', '1=granted,0=refused'):
        rows = [json.loads(run('explain', *own, '--row', i, '--classes', told, '--wanted', 'granted', '--json').stdout) for i in (0, 1)]
        assert all(one['target'] == 'granted' and one['valid'] and (one['prob'] >= .5) for one in rows)
    wrong = run('explain', *own, '--row', 0, '--classes', 'a=refused,b=granted')
    assert wrong.exit_code == 2 and wrong.stderr.startswith('error: --classes must name each label of the model'), (wrong.exit_code, wrong.output)
    assert run('explain', 'loans', '--row', 0, '--classes', 'a,b').exit_code == 2


def test_check_tells_whether_a_folder_a_letter_and_evidence_hold(loans, tmp_path):
    from gradual_cf.all import GradualCF, letter, tabular
    from gradual_cf.models.fitted import load_fitted
    from gradual_cf.use.evidence import evidence
    X = pd.read_parquet(loans/'rows.parquet')
    cf = GradualCF(load_fitted(loans/'m.skops'), tabular(X), 'sparse', classes=('refused', 'granted')).fit(X)
    model = cf.save(tmp_path/'cf')
    answer = cf.explain(X[cf.predict(X) == 0][:1] if hasattr(cf, 'predict') else X[(X.income/1000 - X.late <= 1)][:1], 'granted')
    (tmp_path/'a.md').write_text(letter(answer, house=dict(strict=None))[0])
    told = run('check', tmp_path/'a.md', '--model', model, '--json')
    assert told.exit_code == 0 and json.loads(told.stdout)['flips'], told.output
    (tmp_path/'kept.json').write_text(f"[{','.join(evidence(answer))}]")
    assert run('check', tmp_path/'kept.json', '--model', loans/'m.skops').exit_code == 0
    with (tmp_path/'a.md').open('a') as f: f.write('One line more.')
    assert run('check', tmp_path/'a.md', '--model', model).exit_code == 2
    assert run('check', tmp_path).exit_code == 2


def test_help_shows_options_in_groups_with_examples():
    for command in ('explain', 'letter', 'reasons'):
        said = run(command, '--help').stdout
        assert all(part in said for part in ('Data and model', 'What may change', 'Search', 'For example:', f'gradual-cf {command} loans --row'))


def test_every_cell_has_a_form_in_json():
    cells = pd.DataFrame(dict(row=[0], a=pd.Timestamp('2026-01-02'), b=[pd.NaT], c=[np.float32(.5)], d=[float('nan')], e=[Decimal('1.20')], f=[np.int64(3)], g=[None], h=['x'], i=[-np.inf]))
    assert json.loads(json.dumps(_json_lines(cells))) == [dict(a='2026-01-02T00:00:00', b=None, c=.5, d=None, e='1.20', f=3, g=None, h='x', i='-inf')]
