"""The stepper driven by keyboard, drag and Play under headless Chromium: in a page of its own, and in a live JupyterLab."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from gradual_cf.stepper import save_page

HERE = Path(__file__).resolve().parent
CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium')
READY = CHROMIUM and shutil.which('node') and (HERE.parent/'node_modules/playwright-core').is_dir()
pytestmark = pytest.mark.skipif(not READY, reason='needs Chromium, node and `npm ci`')

SOURCE = '''from gradual_cf.all import GradualCF, load_task, stepper
task = load_task('digits')
cf = GradualCF(task.model, task.domain).fit(task.X)
trace = cf.trace(task.X_test[:1], target=(task.y_test[0] + 1) % 10)'''


@pytest.fixture(scope='module')
def trace(networks):
    env = {}
    exec(SOURCE, env)
    return env['trace']


def drive(script, *args):
    "Run a browser script; its output is the message of a failure."
    out = subprocess.run(['node', HERE/script, *map(str, args)], capture_output=True, text=True, timeout=300, env=os.environ | {'CHROMIUM': CHROMIUM})
    assert out.returncode == 0, out.stdout + out.stderr


def test_page_of_its_own(trace, tmp_path): drive('page.mjs', save_page(tmp_path/'page.html', trace))


@pytest.fixture
def lab(tmp_path):
    "The address of a JupyterLab on a folder with one notebook."
    cells = [nbformat.v4.new_code_cell(SOURCE + '\nstepper(trace)')]
    meta = {'kernelspec': {'name': 'python3', 'display_name': 'Python 3', 'language': 'python'}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=meta), tmp_path/'step.ipynb')
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    cmd = [sys.executable, '-m', 'jupyterlab', tmp_path, '--ServerApp.ip=127.0.0.1', f'--port={port}', '--no-browser', '--allow-root', '--IdentityProvider.token=tok']
    with open(tmp_path/'log', 'w') as log:
        server = subprocess.Popen(map(str, cmd), stdout=log, stderr=log, start_new_session=True, env=os.environ | {'JUPYTER_CONFIG_DIR': str(tmp_path/'cfg')})
    try:
        for _ in range(240):
            with socket.socket() as s:
                if not s.connect_ex(('127.0.0.1', port)): break
            time.sleep(.5)
        yield f'http://127.0.0.1:{port}/lab/tree/step.ipynb?token=tok&reset'
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def test_live_jupyterlab(trace, lab): drive('lab.mjs', lab, len(trace))
