"""The stepper and the explorer driven by keyboard and mouse under headless Chromium: in a page of its own, and in a live JupyterLab."""
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

from gradual_cf.use.drawing import save_page

HERE = Path(__file__).resolve().parent
CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium')
READY = CHROMIUM and shutil.which('node') and (HERE.parent/'node_modules/playwright-core').is_dir()
pytestmark = pytest.mark.skipif(not READY, reason='need Chromium, node and `npm ci`')

SOURCE = '''from gradual_cf.all import GradualCF, load_task, stepper
task = load_task('digits')
cf = GradualCF(task.model, task.domain).fit(task.X)
trace = cf.trace(task.X_test[:1], target=(task.y_test[0] + 1) % 10)'''

PANEL = f'''import numpy as np, pandas as pd
from gradual_cf.all import GradualCF, explorer, load_model, tabular
rng, n = np.random.default_rng(0), 400
loans = pd.DataFrame(dict(
    income=rng.lognormal(10.4, .4, n).round(-2), debt=rng.gamma(2., 4000, n).round(-2), months_in_job=rng.integers(0, 180, n),
    late_payments=rng.poisson(1.2, n), age=rng.integers(20, 70, n), housing=rng.choice(['owns', 'rents', 'with family'], n, p=[.35, .5, .15])))
score = loans.income/9000 - loans.debt/5000 + loans.months_in_job/40 - 1.3*loans.late_payments - .6*(loans.housing == 'rents')
domain = tabular(loans, immutable=['age'], units=dict(income='€', debt='€'))
net = load_model('{HERE}/networks/browser.safetensors')
named = loans.set_index(pd.Index([f'p{{i}}' for i in range(n - 1)] + ['<img src=x onerror=alert(1)>']))
explorer(GradualCF(net, domain, tau=.8, classes=('refused', 'granted')).fit(loans), named)'''


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


@pytest.fixture(scope='module')
def lab(tmp_path_factory):
    "The addresses of two notebooks in one JupyterLab, by name."
    tmp_path = tmp_path_factory.mktemp('lab')
    meta = {'kernelspec': {'name': 'python3', 'display_name': 'Python 3', 'language': 'python'}}
    for name, source in dict(step=SOURCE + '\nstepper(trace)', panel=PANEL).items():
        cells = [nbformat.v4.new_code_cell(source)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=meta), tmp_path/f'{name}.ipynb')
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
        yield {name: f'http://127.0.0.1:{port}/lab/tree/{name}.ipynb?token=tok&reset' for name in ('step', 'panel')}
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.mark.night  # a server, two kernels and a browser; by day the stepper is driven in its page, and the panel in the app
def test_live_jupyterlab(trace, lab): drive('lab.mjs', lab['step'], len(trace))


@pytest.mark.night
def test_explorer_in_jupyterlab(lab): drive('explorer.mjs', lab['panel'], *filter(None, [os.environ.get('SHOTS')]))  # a folder for pictures of it
