"""Ray: the same folder as without it, joined by address, also when an actor is killed. One Ray for all; skips where it is not installed."""
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from gradual_cf.scale.batch import _ABOUT, _finished, _part_file, explain_dataset, explain_ray
from test_batch import content, ends_at_row_70, explainer, loans

ROWS, SIZE = 400, 10
PORT = 20000 + os.getpid() % 20000


@pytest.fixture(scope='module')
def cf(): return explainer()


class Cluster:
    "A cluster of this machine, as `ray start` makes one, with room for two actors."
    address = f'127.0.0.1:{PORT}'
    head = None

    def ensure(self):
        "Start the head, again where it gave up on a busy machine."
        if self.head is not None and self.head.poll() is None: return
        here = Path(__file__).resolve().parent
        env = os.environ | dict(PYTHONPATH=f'{here}{os.pathsep}{here.parent}', OMP_NUM_THREADS='1')
        tool = [shutil.which('ray', path=f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'), 'start', '--head', '--block', f'--port={PORT}', '--num-cpus=2']
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.head = subprocess.Popen([*tool, '--include-dashboard=false', '--disable-usage-stats'], env=env, start_new_session=True, **quiet)

    def answers(self):
        "Whether somebody listens at the port; asking Ray itself takes many seconds where nobody does."
        try: socket.create_connection(('127.0.0.1', PORT), 1).close()
        except OSError: return False
        return True

    def stop(self):
        "End what was started: there is nothing to be saved."
        import psutil
        begun = []
        with suppress(psutil.NoSuchProcess): begun = psutil.Process(self.head.pid).children(recursive=True)
        for p in begun:
            with suppress(psutil.NoSuchProcess): p.kill()  # Ray ends its own children meanwhile
        self.head.kill()
        self.head.wait(60)


@pytest.fixture(scope='module')
def cluster():
    "One Ray for all tests; it needs no token, whatever the user has set."
    ray = pytest.importorskip('ray', reason='need Ray (make .venv/.extras)')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('RAY_AUTH_MODE', 'disabled')
        c = Cluster()
        c.ensure()
        yield c
        ray.shutdown()
        c.stop()


@pytest.fixture(scope='module')
def whole(cf, tmp_path_factory):
    "A file, and the folder of a run in this process."
    d = tmp_path_factory.mktemp('whole')
    torch.set_num_threads(1)
    loans(ROWS).to_parquet(d/'r.parquet')
    return d/'r.parquet', content(explain_dataset(cf, d/'r.parquet', d/'out', batch_size=SIZE))


def parts(folder):
    "Tables and what the model said of them; a frame and a file are two runs, which each part says of itself."
    read = {k: pq.read_table(io.BytesIO(v)) for k,v in folder.items() if k.startswith('part')}
    told = lambda t: {k: v for k,v in json.loads(t.schema.metadata[_ABOUT]).items() if k in ('rows', 'logits')}
    return {k: (t.to_pydict(), told(t)) for k,t in read.items()}


@pytest.fixture(scope='module')
def ray(cf, cluster, whole, tmp_path_factory):
    "Ray, joined by the first call that names its address: the head may still be starting. A frame travels there."
    out = tmp_path_factory.mktemp('joined')/'out'
    for _ in range(60):
        while not cluster.answers():
            cluster.ensure()
            time.sleep(.2)
        try: explain_ray(cf, loans(ROWS), out, batch_size=SIZE, workers=1, address=cluster.address)
        except ValueError as e:
            assert 'address must be that of a running Ray cluster' in str(e)
            time.sleep(1)
        else: break
    import ray
    return ray, parts(content(out)), parts(whole[1])


def test_a_frame_travels_to_a_cluster_by_address(ray):
    ray, got, want = ray
    assert ray.is_initialized() and len(got) == ROWS//SIZE and got == want


def actors():
    "Processes of this Ray's actors, by their ids."
    psutil = pytest.importorskip('psutil', reason='need Ray (make .venv/.extras)')
    return [p for p in psutil.process_iter(['cmdline']) if any('ray::_Actor' in a for a in p.info['cmdline'] or ())]


def test_a_killed_actor_loses_nothing_byte_for_byte(ray, cf, whole, tmp_path):
    rows, want = whole
    out, killed, before = tmp_path/'out', [], {p.pid for p in actors()}
    def watch():
        while len(list(out.glob('part-*'))) < 3: time.sleep(.01)
        one = next(p for p in actors() if p.pid not in before)
        one.send_signal(signal.SIGKILL)
        killed.append(len(list(out.glob('part-*'))))
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    assert content(explain_ray(cf, rows, out, batch_size=SIZE, workers=2)) == want
    assert killed and killed[0] < ROWS//SIZE
    assert pd.read_parquet(out).cf_row.tolist() == list(range(ROWS))


def test_a_stopped_run_is_resumed_by_either(ray, cf, whole, tmp_path):
    rows, want = whole
    shutil.copytree(rows.parent/'out', out := tmp_path/'out')
    for k in set(range(ROWS//SIZE)) - set(range(0, ROWS//SIZE, 3)): _part_file(out, k).unlink()
    before = {k: os.stat(_part_file(out, k)).st_mtime_ns for k in _finished(out)}
    assert len(before) == 14
    assert content(explain_ray(cf, rows, out, batch_size=SIZE, workers=1)) == want
    assert before == {k: os.stat(_part_file(out, k)).st_mtime_ns for k in before}


def test_a_bad_value_is_a_value_error_with_its_rows(ray, cf, tmp_path):
    df = loans(90).assign(wish=1)
    df.loc[70, 'wish'] = 7
    with pytest.raises(ValueError, match=r"rows 60\.\.89 of ds.*target.*7") as e: explain_ray(cf, df, tmp_path/'out', 'wish', batch_size=30, workers=1)
    assert 'Traceback' not in str(e.value)


def test_a_part_that_kills_its_actors_ends_the_run(ray, cf, tmp_path, monkeypatch):
    ends_at_row_70(cf, explain_ray, tmp_path/'out', monkeypatch, 'actors must survive their parts')
