"""What goes wrong around the method: networks that fail, Ctrl-C, folders that nobody may write, full disks.

`tests/test_batch.py` kills runs; here is what a call, a run or a file promises when something else fails.
"""
import os
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from shell import command, forked, without_data
from test_batch import explainer, loans, parts_in, wait_until
from torch import nn
from written import load_task

from gradual_cf.all import GradualCF, save_model
from gradual_cf.scale.batch import explain_dataset
from gradual_cf.core import atomic
from gradual_cf.models.fingerprints import kept

TRAIN = loans(400, 1).drop(columns='account')


@pytest.fixture(scope='module')
def cf(): return explainer()


@pytest.fixture(scope='module')
def rows(): return loans(8, 5).drop(columns='account')


class Failing(nn.Module):
    "A network that fails where the environment says so."
    def __init__(self, net, fault):
        super().__init__()
        self.net,self.fault = net,fault

    def forward(self, x): return self.fault(self.net(x), x)


# ---- networks that fail
def hole(z, x):
    "NaN in the middle of the incomes, as of a logarithm."
    return torch.where(((x[:, 0] > .4) & (x[:, 0] < .6))[:, None], torch.nan, z)


@pytest.mark.night
@pytest.mark.parametrize('how', [dict(), dict(sigma=0, tau_slack=0.), dict(max_shared=2), dict(masking='gain', init='prototype', sigma=5)], ids=str)
def test_values_for_which_a_network_answers_nan_cost_no_row(cf, how):
    "Rows whose best single change lay there find another."
    apart = lambda df: df[(cf.domain.encode(df).x[:, 0].sub(.5).abs() > .12).numpy()]
    asked,train = apart(loans(60, 3).drop(columns='account')), apart(TRAIN)
    cfs = GradualCF(Failing(cf.model, hole), cf.domain, 'sparse', **how).fit(train).explain(asked)
    plain = GradualCF(cf.model, cf.domain, 'sparse', **how).fit(train).explain(asked)
    assert cfs.valid.sum() >= plain.valid.sum() - 1 and cfs.valid.mean() > .9
    assert not np.isnan(cfs.prob).any() and not cfs.xp.isnan().any()


# ---- Ctrl-C


@pytest.mark.night
def test_ctrl_c_of_the_command_says_how_to_go_on(networks, tmp_path):
    task = load_task('breast_cancer')
    save_model(task.model, tmp_path/'m.safetensors', data='breast_cancer')
    pd.concat([task.X_test]*20).to_parquet(tmp_path/'rows.parquet')
    args = ['batch', tmp_path/'rows.parquet', '--model', tmp_path/'m.safetensors', '--out', tmp_path/'out', '--batch-size', 20]
    process = forked(command, list(map(str, args)), without_data() | dict(HF_HUB_OFFLINE='1'), None, str(tmp_path))
    wait_until(lambda: parts_in(tmp_path/'out') > 2, process)
    os.kill(process.pid, signal.SIGINT)
    process.join(180)
    said = (tmp_path/'2').read_text()
    assert process.exitcode == 130 and 'run the same command again' in said and 'Traceback' not in said
    assert 2 < parts_in(tmp_path/'out') < 114 and not list((tmp_path/'out').glob('.part*'))


# ---- folders and disks
@contextmanager
def read_only(folder):
    "A folder in which this process may not write, also where it is root's."
    was = os.geteuid()
    os.chmod(folder, 0o555)
    if was == 0: os.seteuid(65534)
    try: yield
    finally:
        if was == 0: os.seteuid(0)
        os.chmod(folder, 0o755)


@pytest.fixture
def folder():
    "A folder that everybody may enter: those of pytest are its user's alone."
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        yield Path(d)


@pytest.mark.night
@pytest.mark.skipif(not hasattr(os, 'seteuid'), reason='need rights of folders')
def test_a_read_only_folder_is_named_and_stays_as_it_was(cf, rows, folder):
    cfs = cf.explain(rows)
    calls = [lambda: cfs.save(folder/'a.zip'), lambda: save_model(cf.model, folder/'m.safetensors'), lambda: explain_dataset(cf, loans(9), folder/'out'),
             lambda: kept('a.txt', lambda: 'x', lambda v, path: path.write_text(v), Path.read_text, folder=folder)]
    for call in calls:
        with read_only(folder), pytest.raises(PermissionError, match=str(folder)): call()
    assert not list(folder.iterdir())
    for call in calls: call()


@pytest.mark.night
def test_a_file_that_cannot_be_written_leaves_the_old_one(cf, rows, tmp_path):
    resource = pytest.importorskip('resource')
    cfs,many = cf.explain(rows), cf.explain(TRAIN)
    path = cfs.save(tmp_path/'a.zip')
    before,(soft,hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before)//2, hard))
    try:
        with pytest.raises(OSError): many.save(path)
        with pytest.raises(OSError), atomic(path) as tmp: tmp.write_bytes(before)
    finally: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ['a.zip']
