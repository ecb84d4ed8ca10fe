"""Data sets of any size: equality with `explain`, kill −9 and resume, refused resumes, bad shards, a full disk, the command.

`benchmarks/batch.py` kills a run of 200,000 rows three times.
"""
import copy
import dataclasses
import json
import os
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from toy import sharpen, stretches
from written import load_task

from gradual_cf.all import PAPER, GradualCF, explain_dataset, load_digits, plot_summary, save_model, summary, tabular, tabular_mlp
from gradual_cf.scale.batch import _MANIFEST, _parts_in, check_folder, cut, open_source
from gradual_cf.models.fingerprints import fingerprints_of, fingerprint
from shell import forked, shell


def loans(n=300, seed=0):
    "Rows with whole numbers, fractions, a category and an account number that the model does not read."
    rng = np.random.default_rng(seed)
    return pd.DataFrame(dict(account=[f'a{i:05}' for i in range(n)], income=rng.integers(10, 100, n), debt=rng.random(n).round(3)*50, home=rng.choice(['own', 'rent', 'other'], n)))


def explainer():
    "An explainer in 64-bit floats, so that a row's answer does not depend on its neighbours."
    train = loans(400, 1).drop(columns='account')
    domain = tabular(train)
    x = domain.encode(train).x
    model = sharpen(tabular_mlp(x.shape[1], width=16, seed=0).double(), x)
    return GradualCF(model, domain, 'sparse', sigma=10).fit(train)


@pytest.fixture(scope='module')
def cf(): return explainer()


def content(folder): return {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir()) if p.name != '.lock'}


# ---- the same answers as explain
@pytest.fixture(scope='module')
def whole(cf): return cf.explain(loans(120).drop(columns='account'))


@pytest.mark.night
@pytest.mark.parametrize('kind', ['frame', 'parquet', 'csv', 'shards', 'hub'])
def test_every_source_gives_what_explain_gives(cf, whole, tmp_path, kind):
    df = loans(120)
    df.to_parquet(tmp_path/'r.parquet', row_group_size=70), df.to_csv(tmp_path/'r.csv', index=False), (tmp_path/'s').mkdir()
    for i in range(0, 120, 50): df[i:i + 50].to_parquet(tmp_path/f's/{i:03}.parquet')
    import datasets
    ds = dict(frame=df, parquet=tmp_path/'r.parquet', csv=tmp_path/'r.csv', shards=tmp_path/'s', hub=datasets.Dataset.from_pandas(df))[kind]
    out = pd.read_parquet(explain_dataset(cf, ds, tmp_path/'out', batch_size=32))
    assert out.cf_row.tolist() == list(range(120)) and out.account.tolist() == df.account.tolist()
    assert out[list(df)].astype({c: df[c].dtype for c in df}).equals(df)
    for c in ('income', 'debt', 'home'): assert (out[f'cf:{c}'].to_numpy(object) == whole.raw[c].to_numpy(object)).all(), c
    assert np.allclose(out.cf_prob, whole.prob, atol=1e-7) and (out.cf_valid == whole.valid).all() and (out.cf_target == whole.target).all()


OWN = dict(breast_cancer=(dict(batch_size=16, sigma=10), None, 32), digits=(dict(batch_size=2, sigma=2, max_changes=3), 3, 4), toy_reviews=({}, None, 32))


@pytest.mark.parametrize('name', OWN)
def test_images_texts_and_tables_have_the_bits_of_explain_where_parts_are_its_own_batches(name, tmp_path):
    task, (how, target, size) = load_task(name), OWN[name]
    rows = load_digits()[1].select(range(6)) if name == 'digits' else task.X_test[:40]
    cf = GradualCF(task.model, task.domain, 'sparse', **how).fit(task.X[:300])
    out, whole = pd.read_parquet(explain_dataset(cf, rows, tmp_path/'out', target=target, batch_size=size)), cf.explain(rows, target)
    if name == 'digits': assert (np.stack([np.stack(v) for v in out['cf:image']]) == np.asarray(whole.raw)).all()
    elif name == 'toy_reviews': assert out['cf:text'].tolist() == list(whole.raw)
    else: assert (out[[f'cf:{c}' for c in task.X]].to_numpy() == whole.raw.to_numpy()).all()
    assert np.allclose(out.cf_prob, whole.prob, atol=1e-5 if name == 'digits' else 1e-6)


@pytest.mark.night
def test_column_types_do_not_depend_on_the_part(cf, tmp_path):
    free = GradualCF(cf.model, cf.domain, PAPER, sigma=20).fit(loans(400, 1).drop(columns='account'))
    out = explain_dataset(free, loans(40), tmp_path/'out', batch_size=1)
    assert len({str(pq.read_schema(p).remove_metadata()) for p in out.glob('*.parquet')}) == 1
    assert pd.read_parquet(out)['cf:income'].dtype == float and pd.read_parquet(explain_dataset(cf, loans(9), tmp_path/'b'))['cf:income'].dtype == 'int64'


# ---- kill and resume
def run_here(rows, out, workers):
    "A run, in a process of its own."
    torch.set_num_threads(1)
    explain_dataset(explainer(), rows, out, batch_size=10, workers=workers)


def start(rows, out, workers=0):
    "Begin a run in a process of its own."
    return forked(run_here, rows, out, workers)


def wait_until(there, p=None, limit=300):
    "Wait until something is so, while a process runs."
    end = time.time() + limit
    while not there() and (p is None or p.exitcode is None):
        assert time.time() < end, 'no progress'
        time.sleep(.005)


def parts_in(folder): return len(list(folder.glob('part-*')))

def kill(p):
    "Kill a process as nothing can prevent."
    p.kill()
    p.join()
    assert p.exitcode == -signal.SIGKILL


def _finished(out): return {k: p for p, k in _parts_in(out).items() if k is not None}
def stamps(out): return {k: p.stat().st_mtime_ns for k, p in _finished(out).items()}


@pytest.fixture(scope='module')
def many(cf, tmp_path_factory):
    "A file of rows, and the folder of a run that was left alone."
    n, d = 400, tmp_path_factory.mktemp('many')
    loans(n).to_parquet(d/'r.parquet')
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield n, d/'r.parquet', content(explain_dataset(cf, d/'r.parquet', d/'whole', batch_size=10))
    torch.set_num_threads(threads)


@pytest.mark.night
def test_kill_9_loses_nothing_and_does_nothing_twice(cf, many, tmp_path):
    (n, rows, whole), out, kept, rng = many, tmp_path/'out', {}, random.Random(0)
    for goal in (3, 12):
        p = start(rows, out)
        wait_until(lambda: parts_in(out) >= goal, p)
        time.sleep(rng.random()*.05)
        kill(p)
        now = stamps(out)
        assert kept.items() <= now.items() and len(now) < n//10
        kept = now
    assert not check_folder(out)['finished']
    explain_dataset(cf, rows, out, batch_size=10)
    assert content(out) == whole
    assert kept.items() <= stamps(out).items()           # no part was made twice
    assert pd.read_parquet(out).cf_row.tolist() == list(range(n))


def dies(data):
    "An `encode` that ends a worker at one value."
    if (data['debt'] == 66).any(): os._exit(1)
    return tabular(loans(400, 1).drop(columns='account')).encode(data)


def test_a_worker_that_dies_ends_the_run_and_any_number_goes_on(cf, many, tmp_path):
    "A row kills whoever meets it; a run of two workers leaves the folder of a run of none."
    df = loans(90)
    df.loc[70, 'debt'] = 66
    deadly = GradualCF(cf.model, dataclasses.replace(cf.domain, encode=dies), 'sparse', sigma=0).fit(loans(400, 1).drop(columns='account'))
    with pytest.raises(RuntimeError, match='workers must survive their parts, got one that died .*run the same call again'):
        explain_dataset(deadly, df, tmp_path/'out', batch_size=10, workers=1)
    assert 7 not in _finished(tmp_path/'out')
    _, rows, whole = many
    assert content(explain_dataset(cf, rows, tmp_path/'crew', batch_size=10, workers=2)) == whole


def test_every_flipped_byte_half_parts_and_parts_of_others_are_noticed_and_made_again(cf, tmp_path):
    out = explain_dataset(cf, loans(90), tmp_path/'out', batch_size=30)
    whole, part = content(out), _finished(out)[1]
    raw = part.read_bytes()
    flipped = [raw[:i] + bytes([raw[i] ^ 1 << n % 8]) + raw[i + 1:] for n, i in enumerate(np.linspace(0, len(raw) - 1, 31).astype(int))]
    for broken in (*flipped, raw[:500], _finished(out)[0].read_bytes()):
        part.write_bytes(broken)
        assert {*_finished(out)} == {0, 2} and f'{part.name} is damaged: run the same call again' in check_folder(out)['faults'][0]
    (out/'.part-000002.parquet.abc').write_bytes(b'left by a kill')
    assert content(explain_dataset(cf, loans(90), out, batch_size=30)) == whole and check_folder(out)['faults'] == []


@pytest.mark.night
def test_a_folder_is_checked_without_the_model(sh, cf, tmp_path):
    out = explain_dataset(cf, loans(90), tmp_path/'out', batch_size=30)
    assert sh('check', out).stdout == '3 of 3 parts for 90 rows are whole; nothing is wrong\n'
    parts = _finished(out)
    parts[0].unlink(), parts[2].write_bytes(parts[2].read_bytes()[:-9]), (out/'notes.txt').write_text('mine')
    text = sh('check', out, code=1).stdout
    for says in ('1 of 3 parts for 90 rows are whole\n', f'{parts[2].name} is damaged', '2 of 3 parts are missing', 'notes.txt does not belong to a run'): assert says in text
    assert len(json.loads(sh('check', out, '--json', code=1).stdout)['faults']) == 3
    (out/'notes.txt').unlink()
    explain_dataset(cf, loans(90), out, batch_size=30)
    assert check_folder(out)['faults'] == []
    with pytest.raises(ValueError, match='readable _manifest.json'): check_folder(tmp_path/'nowhere')
    (tmp_path/'old').mkdir(), (tmp_path/'old'/_MANIFEST).write_text('{"format": 4, "versions.gradual_cf": "0.0.9"}')
    for ask in (lambda: check_folder(tmp_path/'old'), lambda: explain_dataset(cf, loans(9), tmp_path/'old')):
        with pytest.raises(ValueError, match='of format 6, got 4 in .*, written by gradual_cf 0.0.9: read its parts with pandas, and begin a new folder'): ask()


# ---- what decides the output
def third(s, k=3): return s.logits[:, 0]**k
def second(s, k=2): return s.logits[:, 0]**k
def calls(f): return lambda s: f(s.logits[:, 0])

def test_what_is_made_alike_or_was_used_is_alike(cf):
    fresh = explainer()
    before = fingerprint(fresh.domain.project, fresh.domain.propose, fresh.domain.encode)
    cf.explain(loans(9).drop(columns='account'))
    assert fingerprint(cf.domain.project, cf.domain.propose, cf.domain.encode) == before   # also after use
    def recursive(n): return n and recursive(n - 1)
    assert fingerprint(recursive) == fingerprint(recursive)


# ---- refused
def changed(cf, **settings):
    "The same explainer with other settings; a term needs a search that composes."
    if 'terms' in settings: settings = dict(masking='gain') | settings
    return GradualCF(cf.model, cf.domain, 'sparse', **dict(sigma=10) | settings).fit(loans(400, 1).drop(columns='account'))


@pytest.fixture(scope='module')
def begun(cf, tmp_path_factory): return explain_dataset(cf, loans(60), tmp_path_factory.mktemp('begun')/'out', batch_size=30)


def test_a_bar_makes_no_other_run(cf, begun, tmp_path):
    shown, out = cf.under(progress=True), shutil.copytree(begun, tmp_path/'out')
    assert explain_dataset(shown, loans(60), out, batch_size=30) and content(out) == content(begun)
    assert fingerprints_of(shown) == fingerprints_of(cf) != fingerprints_of(cf.under(seed=1))


@pytest.mark.night
@pytest.mark.parametrize('what,says', [('sigma', 'settings.sigma 10 there, 11 now'), ('term', 'settings.match'), ('abs', 'settings.terms'), ('default', 'settings.terms'), ('partial', 'settings.terms'), ('seed', 'settings.seed 0 there, 1 now'), ('batch_size', 'batch_size 30 there, 31 now'),
                                       ('target', 'question.target None there, 1 now'), ('rows', 'input.sha256'), ('weights', 'model'), ('immutable', 'domain'), ('train', 'training_rows')])
def test_another_run_is_refused_and_nothing_is_touched(cf, begun, tmp_path, what, says):
    old = dict(abs=calls(torch.abs), default=third, partial=partial(third, k=1)).get(what)
    out = explain_dataset(changed(cf, terms=dict(extra=(0., old))), loans(60), tmp_path/'out', batch_size=30) if old else shutil.copytree(begun, tmp_path/'out')
    before = content(out)
    model = copy.deepcopy(cf.model)
    with torch.no_grad(): model[-1].bias[0] += .001
    train = loans(400, 1).drop(columns='account')
    e = dict(sigma=lambda: changed(cf, sigma=11), seed=lambda: changed(cf, seed=1), term=lambda: changed(cf, match=lambda s: (s.logits - s.target.mu).pow(2).sum(1)),
             abs=lambda: changed(cf, terms=dict(extra=(0., calls(torch.exp)))), default=lambda: changed(cf, terms=dict(extra=(0., second))), partial=lambda: changed(cf, terms=dict(extra=(0., partial(third, k=2)))), weights=lambda: GradualCF(model, cf.domain, 'sparse', sigma=10).fit(train),
             immutable=lambda: GradualCF(cf.model, tabular(train, immutable=['income']), 'sparse', sigma=10).fit(train), train=lambda: GradualCF(cf.model, cf.domain, 'sparse', sigma=10).fit(train[:200])).get(what, lambda: cf)()
    how = dict(batch_size=30) | dict(batch_size=dict(batch_size=31), target=dict(target=1)).get(what, {})
    with pytest.raises(ValueError, match=says): explain_dataset(e, loans(60, 5 if what == 'rows' else 0), out, **how)
    assert content(out) == before


def test_two_runs_in_one_folder(cf, tmp_path):
    import fcntl
    (tmp_path/'out').mkdir()
    with open(tmp_path/'out/.lock', 'w') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match='another run'): explain_dataset(cf, loans(9), tmp_path/'out')
    explain_dataset(cf, loans(9), tmp_path/'out')


# ---- bad input
def shards(tmp_path, n=90):
    (tmp_path/'s').mkdir()
    for i in range(0, n, 30): loans(n)[i:i + 30].to_parquet(tmp_path/f's/{i:03}.parquet')
    return tmp_path/'s'


@pytest.mark.night
def test_a_shard_that_breaks_in_the_middle_keeps_what_was_finished(cf, tmp_path):
    s = shards(tmp_path)/'060.parquet'
    data = bytearray(s.read_bytes())
    data[4:100] = bytes(96)                                # the first pages; the footer stays whole
    s.write_bytes(data)
    with pytest.raises(ValueError, match='060.parquet'): explain_dataset(cf, tmp_path/'s', tmp_path/'out', batch_size=30)
    assert {*_finished(tmp_path/'out')} == {0, 1}


@pytest.mark.parametrize('workers', [0, pytest.param(1, marks=pytest.mark.night)])
def test_a_bad_value_names_its_rows_and_keeps_what_was_finished(cf, tmp_path, workers):
    df = loans(90).assign(wish=1)
    df.loc[70, 'wish'] = 7
    with pytest.raises(ValueError, match=r"rows 60\.\.89 of ds.*target.*7"): explain_dataset(cf, df, tmp_path/'out', 'wish', batch_size=30, workers=workers)
    assert {*_finished(tmp_path/'out')} == {0, 1}


def test_a_full_disk_keeps_what_was_finished(cf, tmp_path, monkeypatch):
    write, count = Path.write_bytes, []
    def full(path, raw):
        count.append(path)
        if len(count) <= 2: return write(path, raw)
        write(path, raw[:4])
        raise OSError(28, 'No space left on device')
    monkeypatch.setattr(Path, 'write_bytes', full)
    with pytest.raises(OSError, match='no space left for part 2'): explain_dataset(cf, loans(90), tmp_path/'out', batch_size=30)
    assert {*_finished(tmp_path/'out')} == {0, 1} and not list((tmp_path/'out').glob('.part*'))
    monkeypatch.undo()
    assert len(pd.read_parquet(explain_dataset(cf, loans(90), tmp_path/'out', batch_size=30))) == 90


@pytest.mark.night
def test_csv_columns_have_the_type_that_holds_all_rows(tmp_path):
    df = pd.DataFrame(dict(a=[*range(40_000), .5], b=range(40_001), c=['x']*40_001))
    df.astype(dict(a=object)).to_csv(tmp_path/'r.csv', index=False)
    s = open_source(tmp_path/'r.csv')
    assert s.rows == 40_001 and [str(t) for t in s.data.schema.types][:2] == ['double', 'int64']
    assert pa.concat_tables([t for _,t in cut(s, 7000)]).to_pandas().a.iloc[-1] == .5


def test_csv_columns_of_every_type(tmp_path):
    (tmp_path/'r.csv').write_text('whole,missing,truth,mixed,text,quoted,none\n1,,True,1,a,"x, ""y""\nz",NA\n2,5,False,x,NA,q,\n')
    s = open_source(tmp_path/'r.csv')
    assert [str(t) for t in s.data.schema.types] == ['int64', 'int64', 'bool', 'string', 'string', 'string', 'int64']
    first,second = next(cut(s, 2))[1].to_pylist()
    assert first == dict(whole=1, missing=None, truth=True, mixed='1', text='a', quoted='x, "y"\nz', none=None) and second['text'] is None


# ---- constraints, and domains written by hand
@pytest.mark.night
def test_constraints_come_with_the_question(cf, tmp_path):
    df, asked = loans(60), dict(immutable=['home'], bounds=dict(debt=(None, 30)), increase_only=['income'], max_changes=1)
    out = explain_dataset(cf, df, tmp_path/'out', batch_size=20, **asked)
    got, whole = pd.read_parquet(out), cf.explain(df.drop(columns='account'), **asked)
    for c in ('income', 'debt', 'home'): assert (got[f'cf:{c}'].to_numpy(object) == whole.raw[c].to_numpy(object)).all(), c
    assert (got['cf:home'] == df.home).all() and (got['cf:income'] >= df.income).all()
    manifest = json.loads((out/_MANIFEST).read_text())
    assert manifest['question.immutable'] == ['home'] and manifest['question.bounds'] == {'debt': [None, 30]} and manifest['question.max_changes'] == 1
    explain_dataset(cf, df, out, batch_size=20, **asked)
    with pytest.raises(ValueError, match='question.max_changes 1 there, 2 now'): explain_dataset(cf, df, out, batch_size=20, **asked | dict(max_changes=2))
    with pytest.raises(TypeError, match='imutable'): explain_dataset(cf, df, tmp_path/'b', imutable=['home'])


def test_a_domain_written_by_hand(tmp_path):
    torch.manual_seed(0)
    rows, net = torch.rand(40, 12).double(), torch.nn.Linear(12, 2).double()
    cf = GradualCF(net, stretches(columns=('curve',)), 'sparse', sigma=0).fit(rows)
    df = pd.DataFrame(dict(id=range(40), curve=list(rows.numpy())))
    df.to_parquet(tmp_path/'r.parquet')
    for ds in (df, tmp_path/'r.parquet'):
        out, whole = pd.read_parquet(explain_dataset(cf, ds, tmp_path/type(ds).__name__, batch_size=16)), cf.explain(rows)
        assert np.allclose(np.stack(out['cf:curve']), whole.raw) and out.id.tolist() == list(range(40)) and out.cf_valid.mean() > .5


# ---- told


def test_the_summary_counts_by_hand():
    df = pd.DataFrame(dict(income=[10, 20, 30, 40], home=list('abab')))
    new = pd.DataFrame({'cf:income': [15, 20, 20, 40], 'cf:home': list('abbb'), 'cf_target': ['good', 'good', 'good', 'bad'], 'cf_valid': [True, True, True, True]})
    t = summary(pd.concat([df, new], axis=1))
    one = t.set_index(['to', 'feature']).loc['good']
    assert len(t) == 2 and one.loc['income', ['rows', 'changed', 'up', 'down', 'median']].tolist() == [3, 2/3, 1/3, 1/3, -2.5]
    assert one.loc['home', 'changed'] == 1/3 and one.loc['home', 'most'] == 'b' and one.loc['home', 'up'] == 0
    fig = plot_summary(t)
    assert [a.get_title() for a in fig.axes] == ['to be good (3 rows)']


# ---- the command
@pytest.fixture(scope='module')
def sh(networks): return shell(os.environ['GRADUAL_CF_CACHE'])


@pytest.mark.night
def test_the_command(sh, tmp_path):
    task = load_task('breast_cancer')
    save_model(task.model, tmp_path/'m.safetensors', data='breast_cancer')
    task.X_test.head(40).to_parquet(tmp_path/'rows.parquet')
    one = json.loads(sh('batch', tmp_path/'rows.parquet', '--model', tmp_path/'m.safetensors', '--out', tmp_path/'out', '--batch-size', 16, '--json').stdout)
    assert one['rows'] == 40 and one['valid'] == 1 and one['changes'] and len(list((tmp_path/'out').glob('part-*.parquet'))) == 3
    again = sh('batch', tmp_path/'rows.parquet', '--model', tmp_path/'m.safetensors', '--out', tmp_path/'out', '--batch-size', 16, '--workers', 1).stdout
    assert '40 rows' in again
    assert 'question.max_changes None there, 1 now' in sh('batch', tmp_path/'rows.parquet', '--model', tmp_path/'m.safetensors', '--out', tmp_path/'out', '--batch-size', 16, '--max-changes', 1, code=2).stderr
    assert 'seed 0 there, 1 now' in sh('batch', tmp_path/'rows.parquet', '--model', tmp_path/'m.safetensors', '--out', tmp_path/'out', '--batch-size', 16, '--seed', 1, code=2).stderr
