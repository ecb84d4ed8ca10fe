"""Runs in which something fails again and again: in the end they are what an undisturbed run is, and no part was made twice."""
import os
import random
import signal
import sys

import pytest
from shell import forked
from test_batch import content, explainer, loans, parts_in, stamps, wait_until
from torch import nn

from gradual_cf.all import GradualCF
from gradual_cf.scale.batch import explain_dataset
SIZE = int(os.environ.get('SOAK_SIZE', 400))
FAULT = 'GRADUAL_CF_TEST_FAULT'
ROWS = 200


class Frail(nn.Module):
    "A network that fails after some passes, as the environment says."
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        kind,_,left = os.environ.get(FAULT, '').partition(' ')
        if kind: os.environ[FAULT] = f'{kind} {int(left) - 1}'
        if not kind or int(left): return self.net(x)
        if kind == 'stop': raise KeyboardInterrupt
        if kind == 'kill': os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError('the card fell off the bus')


def run_with(fault, rows, out, workers):
    "In a process of its own: the run, with one fault."
    sys.stderr = open(os.devnull, 'w')
    os.environ[FAULT] = fault
    cf = explainer()
    frail = GradualCF(Frail(cf.model), cf.domain, 'sparse', sigma=5)
    os.environ[FAULT] = ''
    frail.fit(loans(400, 1).drop(columns='account'))
    os.environ[FAULT] = fault
    explain_dataset(frail, rows, out, batch_size=10, workers=workers)


@pytest.mark.parametrize('seed', range(max(SIZE//10_000, 1)))
def test_faults_one_after_the_other_lose_nothing_and_repeat_nothing(tmp_path, seed):
    rng,rows,out,n = random.Random(seed), tmp_path/'rows.parquet', tmp_path/'out', 0
    loans(ROWS, seed).to_parquet(rows)
    forked(run_with, '', rows, tmp_path/'whole', 0).join()
    had,ended = {}, None
    while ended != 0:
        fault = f'{rng.choice(["stop", "kill", "raise"])} {rng.randrange(20, 100)}'
        process = forked(run_with, fault, rows, out, rng.choice([0, 0, 2]))
        process.join(300)
        ended,n = process.exitcode, n + 1
        now = stamps(out, ROWS)
        assert had.items() <= now.items(), (fault, had, now)
        had = now
        assert n < 100
    assert content(out) == content(tmp_path/'whole') and len(had) == ROWS//10 and n > 2


def test_ctrl_c_with_workers_ends_all_of_them(tmp_path):
    loans(4000).to_parquet(tmp_path/'r.parquet')
    process = forked(run_with, '', tmp_path/'r.parquet', tmp_path/'out', 2)
    wait_until(lambda: parts_in(tmp_path/'out') > 2, process)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode not in (0, None) and 2 < parts_in(tmp_path/'out') < 400
    assert not list((tmp_path/'out').glob('.part*'))
