"""Ray: the same folder as without it, on this machine and by address, also when an actor is killed. Skips where Ray is not installed."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

from gradual_cf.batch import explain_dataset, explain_ray, finished_parts
from test_batch import content, explainer, loans

if 'ray' not in sys.modules: os.environ['OMP_NUM_THREADS'] = '1'


@pytest.fixture(scope='module')
def cf(): return explainer()


@pytest.fixture(scope='module')
def ray():
    r = pytest.importorskip('ray', reason='Ray is not installed: pip install "gradual_cf[ray]"')
    pytest.importorskip('psutil', reason='Ray comes with psutil')
    env = dict(PYTHONPATH=str(Path(__file__).resolve().parent.parent), OMP_NUM_THREADS='1')
    r.init('local', num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=dict(env_vars=env))
    yield r
    r.shutdown()


@pytest.fixture
def whole(cf, tmp_path):
    "A file and the folder of a run in this process."
    torch.set_num_threads(1)
    loans(1200).to_parquet(tmp_path/'r.parquet')
    return tmp_path/'r.parquet', content(explain_dataset(cf, tmp_path/'r.parquet', tmp_path/'whole', batch_size=20))


def test_without_ray_there_is_a_hint(cf, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(ImportError, match=r'pip install "gradual_cf\[ray\]"'): explain_ray(cf, loans(9), tmp_path/'out')


def test_the_same_folder_byte_for_byte(ray, cf, whole, tmp_path):
    rows,want = whole
    assert content(explain_ray(cf, rows, tmp_path/'out', batch_size=20, workers=2)) == want


def test_a_frame_travels(ray, cf, whole, tmp_path):
    _,want = whole
    got = content(explain_ray(cf, loans(1200), tmp_path/'out', batch_size=20, workers=1))
    assert {k: v for k,v in got.items() if k.startswith('part')} == {k: v for k,v in want.items() if k.startswith('part')}


def killer(ray, out, n):
    "Kill one actor as soon as `n` parts are there."
    import psutil
    def watch():
        while len(list(out.glob('part-*'))) < n: time.sleep(.02)
        actors = [p for p in psutil.process_iter(['cmdline', 'ppid']) if any('MapWorker' in a for a in p.info['cmdline'] or ())]
        mine = [p for p in actors if psutil.Process(p.pid).create_time() > began]
        mine[0].send_signal(signal.SIGKILL)
        killed.append(mine[0].pid)
    began,killed = time.time() - 1, []
    t = threading.Thread(target=watch, daemon=True)
    t.start()
    return killed


def test_a_killed_actor_is_retried(ray, cf, whole, tmp_path):
    rows,want = whole
    killed = killer(ray, tmp_path/'out', 5)
    assert content(explain_ray(cf, rows, tmp_path/'out', batch_size=20, workers=2)) == want
    assert killed


def test_a_stopped_run_is_resumed_by_either(ray, cf, whole, tmp_path):
    rows,want = whole
    for f in ('whole/_manifest.json', *(f'whole/part-{k:06}.parquet' for k in range(0, 60, 3))):
        (tmp_path/'out').mkdir(exist_ok=True)
        shutil.copy(tmp_path/f, tmp_path/'out')
    before = {k: os.stat(tmp_path/f'out/part-{k:06}.parquet').st_mtime_ns for k in finished_parts(tmp_path/'out', 1200, 20)}
    assert len(before) == 20
    assert content(explain_ray(cf, rows, tmp_path/'out', batch_size=20)) == want
    assert before == {k: os.stat(tmp_path/f'out/part-{k:06}.parquet').st_mtime_ns for k in before}


def test_a_bad_value_is_a_value_error_with_its_rows(ray, cf, tmp_path):
    df = loans(90)
    df.loc[70, 'debt'] = float('nan')
    with pytest.raises(ValueError, match=r"rows 60\.\.89 of ds.*'debt'"): explain_ray(cf, df, tmp_path/'out', batch_size=30)


def test_a_cluster_by_address(cf, whole, tmp_path):
    "`ray start`, then the same call with an address, in a process of its own."
    pytest.importorskip('ray', reason='Ray is not installed: pip install "gradual_cf[ray]"')
    rows,want = whole
    tool,env = Path(sys.executable).parent/'ray', os.environ | dict(PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)]), OMP_NUM_THREADS='1', RAY_AUTH_MODE='disabled')
    port = 20000 + os.getpid() % 20000
    code = f"from test_batch import explainer; from gradual_cf.batch import explain_ray; explain_ray(explainer(), {str(rows)!r}, {str(tmp_path/'out')!r}, batch_size=20, address='127.0.0.1:{port}')"
    head = subprocess.Popen([tool, 'start', '--head', '--block', f'--port={port}', '--num-cpus=2', '--include-dashboard=false', '--disable-usage-stats'], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(20):
            r = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True, timeout=240)
            if r.returncode == 0 or 'Could not' not in r.stderr and 'onnect' not in r.stderr: break
            time.sleep(2)                                   # the head is still starting
        assert r.returncode == 0, r.stderr[-2000:]
    finally: os.killpg(head.pid, signal.SIGTERM), head.wait(60)
    assert content(tmp_path/'out') == want
    assert pd.read_parquet(tmp_path/'out').cf_row.tolist() == list(range(1200))
