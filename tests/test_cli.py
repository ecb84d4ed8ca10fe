"""The command in a process of its own: output, exit codes, cache."""
import json

import pandas as pd
import pytest

from gradual_cf.all import load_breast_cancer
from shell import shell


@pytest.fixture(scope='module')
def cache(tmp_path_factory): return tmp_path_factory.mktemp('cache')


@pytest.fixture
def sh(cache, tmp_path): return shell(cache, tmp_path)


def test_demo_needs_nothing(sh, tmp_path):
    r = sh('demo')
    assert '→' in r.stdout and 'benign' in r.stdout
    assert (tmp_path/'gradual_cf_demo.png').read_bytes()[:4] == b'\x89PNG'


def test_the_network_is_kept(sh, cache):
    sh('train', 'breast_cancer')
    before = {f: f.stat().st_mtime_ns for f in cache.iterdir()}
    assert json.loads(sh('train', 'breast_cancer', '--json').stdout)['accuracy'] > .93
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


def test_rows_from_a_file_and_a_model_of_ones_own(sh, tmp_path):
    _,_,X,_ = load_breast_cancer()
    X.head(4).assign(note='kept out').to_csv(tmp_path/'rows.csv', index=False)
    sh('train', 'breast_cancer', '--out', tmp_path/'m.safetensors', '--seed', 3)
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
    paper = json.loads(sh('evaluate', 'breast_cancer', '--rows', 30, '--json', '--paper').stdout)
    assert paper['settings']['rank'] == 'gradient' and paper['in_range'] < 1 and paper['legal'] < 1


@pytest.mark.parametrize('args,says', [
    (('explain', 'titanic', '--row', 0), 'titanic'),
    (('explain', 'breast_cancer', '--row', 999), 'row must be in 0..142, got 999'),
    (('explain', 'breast_cancer', '--row', 0, '--target', 7), '0..1, got 7'),
    (('explain', 'breast_cancer', '--row', 0, '--immutable', 'height'), "['height']"),
    (('explain', 'breast_cancer', '--row', 0, '--csv', 'none.csv'), 'none.csv'),
    (('explain', 'breast_cancer', '--row', 0, '--model', 'none.safetensors'), 'none.safetensors'),
    (('explain', 'heloc', '--row', 0, '--data', 'nowhere'), 'heloc_dataset_v1.csv'),
    (('explain', 'breast_cancer'), '--row'),
    (('evaluate', 'breast_cancer', '--rows', 0), '--rows'),
    (('explode',), 'explode'),
])
def test_bad_usage_is_a_line_and_exit_code_2(sh, args, says):
    assert says in sh(*args, code=2).stderr


def test_a_csv_with_other_columns(sh, tmp_path):
    pd.DataFrame({'a': [1]}).to_csv(tmp_path/'x.csv', index=False)
    assert 'missing' in sh('explain', 'breast_cancer', '--csv', tmp_path/'x.csv', '--row', 0, code=2).stderr


def test_version_and_help(sh):
    assert sh('--version').stdout.strip().count('.') == 2
    assert 'evaluate' in sh('--help').stdout
