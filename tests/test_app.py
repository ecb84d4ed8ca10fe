"""`gradual-cf app`: one server on embedded rows and a fitted model, visited by scripts and by headless Chromium, then interrupted."""
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from typer.testing import CliRunner

from gradual_cf.cli import app
from toy import loans_of

HERE = Path(__file__).resolve().parent
CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium')
BROWSER = CHROMIUM and shutil.which('node') and all((HERE.parent/'node_modules'/n).is_dir() for n in ('playwright-core', 'axe-core'))
needs_voila = pytest.mark.skipif(not find_spec('voila'), reason='need Voilà (make .venv/.extras)')


class Server(NamedTuple):
    "A running app."
    process: subprocess.Popen
    address: str
    folder: Path # where it keeps its temporary files

    @property
    def port(self): return urlsplit(self.address).port

    @property
    def token(self): return parse_qs(urlsplit(self.address).query)['token'][0]

    def get(self, path, method='GET', **headers):
        "Status and body of a request without cookies."
        one = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        one.request(method, path, headers=headers)
        answer = one.getresponse()
        text = answer.read().decode()
        one.close()
        return answer.status, answer.headers.get('Location', ''), text


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    "A table of loans and a forest fitted on it, as files."
    xgboost, folder = pytest.importorskip('xgboost'), tmp_path_factory.mktemp('app')
    rng = np.random.default_rng(0)
    people = loans_of(rng, 300)
    granted = people.income/1000 - people.late - people.debt/1000 > 0
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3, nthread=1).fit(people, granted)
    model.save_model(folder/'<i>model.json')
    people.head(40).to_csv(folder/'<i>loans.csv', index=False)
    return folder


def processes(*words):
    "Processes whose command line has all words."
    found = []
    for p in Path('/proc').glob('[0-9]*/cmdline'):
        try: line = p.read_text()
        except OSError: continue
        if all(w in line for w in words): found.append(int(p.parent.name))
    return found


@contextmanager
def serving(folder, own, *options):
    "A server on these files, which keeps its own in another folder and writes into it which page it would open."
    (own/'tmp').mkdir()
    (own/'browser').write_text(f'#!/bin/sh\necho "$1" > "{own}/opened"\n')
    (own/'browser').chmod(0o700)
    env = os.environ | dict(TMPDIR=str(own/'tmp'), OMP_NUM_THREADS='1', BROWSER=str(own/'browser'))
    cmd = [sys.executable, '-c', 'from gradual_cf.cli import app; app()', 'app', '--model', '<i>model.json', '--rows', '<i>loans.csv']
    with open(own/'log', 'w') as log:
        process = subprocess.Popen([*cmd, '--target', '1', '--port', '0', *options], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    line = process.stdout.readline()
    assert 'http://127.0.0.1:' in line, (own/'log').read_text()
    with process:
        yield Server(process, line.split()[-1], own/'tmp')
        process.kill()


@pytest.fixture(scope='module')
def server(folder, tmp_path_factory):
    with serving(folder, tmp_path_factory.mktemp('server')) as s: yield s


@needs_voila
def test_strangers_are_refused(server):
    panel = '/voila/files/panel.ipynb'
    for path in ('/', '/?token=wrong', '/voila/render/panel.ipynb', '/voila/tree', panel):
        status, to, text = server.get(path)
        assert (status, to[:6]) == (302, '/login') or status in (403, 404), (path, status, to)
        assert '_visitor' not in text
    status, _, text = server.get('/login')
    assert status == 403 and 'enter the token' in text and 'http' not in text      # no page that could set a password
    known = f'?token={server.token}'
    upgrade = dict(Connection='Upgrade', Upgrade='websocket') | {'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'x'*22 + '=='}
    kernel = '/api/kernels/00000000-0000-0000-0000-000000000000'
    assert server.get(kernel)[0] == 403 and server.get(f'{kernel}/channels', **upgrade)[0] == 403
    assert server.get(kernel + known)[0] == 404                                    # known, but there is no such process
    assert server.get(f'/api/kernels{known}', 'POST')[0] in (403, 404, 405)        # nobody starts a process by hand
    assert server.get(f'{panel}{known}')[0] in (403, 404)                          # no file of the folder is served, nor a page of files
    assert server.get(f'/{known}', Host='example.org')[0] == 403                   # a name of the web for this machine
    assert server.get(f'/api/contents{known}')[0] != 200 and server.get(f'/voila/api/contents{known}')[0] != 200
    assert not processes('ipykernel', str(server.folder))                          # nobody was given a process


@needs_voila
def test_the_browser_is_told_where_and_not_the_token(server):
    at = server.folder.parent/'opened'
    for _ in range(100):
        if at.exists() and at.read_text(): break
        time.sleep(.1)
    opened = at.read_text().strip()
    assert opened.startswith('file:///') and server.token not in opened
    assert server.address.replace('&', '&amp;') in Path(url2pathname(urlsplit(opened).path)).read_text()


@needs_voila
@pytest.mark.skipif(not BROWSER, reason='need Chromium, node and `npm ci`')
def test_visits(server):
    cmd = ['node', HERE/'app.mjs', server.address, *os.environ.get('APP_SHOTS', '').split()]
    out = subprocess.run(list(map(str, cmd)), capture_output=True, text=True, timeout=300, env=os.environ | {'CHROMIUM': CHROMIUM})
    assert out.returncode == 0, out.stdout + out.stderr


@needs_voila
def test_who_comes_when_all_places_are_taken_is_told_so_and_an_interrupt_leaves_nothing(folder, tmp_path):
    with serving(folder, tmp_path, '--visitors', '1', '--no-open') as one:
        one.process.stdout.readline()
        for path in ('/', '/?token=', '/?token=x', '/api/kernels', '/api/kernels/x', '/voila/execution/x', '/voila/static/x', '/api/events/subscribe', '/logout', '/voila/files/x'):
            for method in ('GET', 'POST', 'HEAD'): assert one.get(path, method)[0] < 500, (path, method)
        assert one.get(f'/?token={one.token}')[0] == 200
        status, _, text = one.get(f'/?token={one.token}')
        assert status == 503 and 'The place is taken' in text and '30 minutes' in text and '--visitors' in text
        assert len(processes('ipykernel', str(one.folder))) == 1   # a visitor who stays until the end
        assert any(p.name.startswith('gradual_cf-app-') and p.stat().st_mode & 0o777 == 0o700 for p in one.folder.iterdir())
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(60) == 0
        assert not processes(str(one.folder))
        assert [p.name for p in one.folder.iterdir() if 'torch' not in p.name] == []
    assert one.token not in (tmp_path/'log').read_text()


def refused(*args):
    r = CliRunner().invoke(app, ['app', *map(str, args)])
    assert r.exit_code == 2 and isinstance(r.exception, SystemExit), r.exception
    assert r.stderr.startswith('error: ') and r.stderr.count('\n') == 1
    return r.stderr


@needs_voila
def test_mistakes_are_a_line(folder, tmp_path, networks):
    model, rows = folder/'<i>model.json', folder/'<i>loans.csv'
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        assert 'port must be free' in refused('breast_cancer', '--port', s.getsockname()[1])
    more = '--no-open', '--port', 0
    assert 'DATASET must be one of' in refused('titanic', *more)
    assert 'DATASET must be given' in refused(*more)
    assert 'csv must be a readable CSV file, got' in refused('breast_cancer', '--rows', 'none.csv', *more)
    assert 'must be a readable CSV file' in refused('--model', model, '--rows', tmp_path/'none.csv', *more)
    assert 'existing file' in refused('--model', tmp_path/'none.json', '--rows', rows, *more)
    (tmp_path/'model.pkl').write_bytes(b'cos\nsystem\n')
    assert 'must end in one of' in refused('--model', tmp_path/'model.pkl', '--rows', rows, *more)
    assert 'shoe' in refused('--model', model, '--rows', rows, '--immutable', 'shoe', *more)


def test_without_voila_it_says_what_to_install(monkeypatch, networks):
    for name in [n for n in sys.modules if n.partition('.')[0] == 'voila'] + ['voila']: monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'gradual_cf[app]'" in refused('breast_cancer', '--port', 0)
