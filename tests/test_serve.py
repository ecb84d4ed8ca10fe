"""A saved explainer behind HTTP: the answers of explain, errors that name the field, a limit of time, nobody who keeps others waiting.

Promises, and the test that holds each: answers are those of `explain` (test_the_answers…), a limit of time is kept (test_time…, test_whoever…),
usual steps of fine numbers (test_changed_numbers…), a token for everything but /health, strict JSON, fields by name, a limit of rows and bytes (test_what_is_refused), nothing of a row in logs
(test_a_failure…), cells of another type, dates (test_cells…, test_dates…), slow clients (test_whoever_is_slow…), processes (test_no_worker…)."""
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

pytest.importorskip('fastapi')
pytest.importorskip('uvicorn')
psutil = pytest.importorskip('psutil')

from gradual_cf.all import GradualCF, check_evidence, tabular
from gradual_cf.scale import serve
from gradual_cf.scale.serve import serving
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from made import loans, needs_pdf, people
from shell import command, forked

TOKEN = 'let me in'


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    "A saved explainer, the same in memory, and refused rows as JSON."
    cf, refused = loans()
    refused = refused.reset_index(drop=True)
    return cf.save(tmp_path_factory.mktemp('saved')/'loans'), cf, refused, json.loads(refused.to_json(orient='records'))


def asked(address, path, body=None, token=TOKEN, raw=None, **headers):
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {'Authorization': f'Bearer {token}'} | headers)
    try:
        with urllib.request.urlopen(request) as told: return told.status, told.read().decode(), told.headers
    except urllib.error.HTTPError as e: return e.code, e.read().decode(), e.headers


@pytest.fixture(scope='module')
def address(saved):
    with serving(saved[0], token=TOKEN, most_bytes=200_000) as address: yield address


def answers_of(told): return json.loads(told[1])['answers']


def test_the_answers_are_those_of_explain(saved, address):
    _, cf, refused, rows = saved
    for rules in (dict(), dict(immutable=['income'], bounds=dict(debt=(None, 9000)), max_changes=2)):
        status, text, _ = asked(address, '/explain', dict(rows=rows, target='granted', **rules))
        assert status == 200 and json.loads(text) == json.loads(cf.explain(refused, 'granted', **rules).to_json())


def test_changed_numbers_are_told_in_usual_steps_unless_somebody_wants_every_digit(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(pay=np.exp(rng.normal(7.8, .5, 400)).round(2), debt=np.exp(rng.normal(7, 1, 400)).round(2), age=rng.integers(18, 80, 400)))
    y = (X.pay > 2*X.debt).astype(int)
    cf = GradualCF(DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X, y), tabular(X)).fit(X)
    rows, folder = X[cf.model.predictor.source.predict(X) == 0].head(8).reset_index(drop=True), cf.save(tmp_path/'cents')
    plain, question = json.loads(cf.explain(rows, 1).to_json())['answers'], dict(rows=json.loads(rows.to_json(orient='records')), target=1)
    with serving(folder) as coarse, serving(folder, usual=False) as every:
        told, same = (answers_of(asked(address, '/explain', question)) for address in (coarse, every))
        says = [json.loads(asked(address, '/schema')[1])['info'].get('description', '') for address in (coarse, every)]
        letters = json.loads(asked(coarse, '/letter', question)[1])['letters']
    assert same == plain and says[1] == '' and all(words in says[0] for words in ('steps: ', 'pay 100', 'debt 100')) and 'age' not in says[0]
    moved = [after for a in told for before, after in zip(a['data'][:2], a['answer'][:2]) if before != after]
    assert all(a['valid'] and a['changed'] == b['changed'] for a, b in zip(told, plain)) and moved and not {*moved} & {*X.pay, *X.debt}
    assert check_evidence(letters, GradualCF.load(folder))[['flips', 'legal', 'model', 'data', 'settings']].all(axis=None)  # by who knows nothing of steps


@pytest.mark.parametrize('format, begins', [('md', '# '), ('txt', 'About this decision'), ('pdf', 'JVBERi')])
def test_letters_come_and_are_checked(saved, address, format, begins):
    if format == 'pdf': needs_pdf()
    letters = json.loads(asked(address, '/letter', dict(rows=saved[3][:2], target='granted', format=format))[1])['letters']
    assert len(letters) == 2 and all(one.startswith(begins) for one in letters)
    if format == 'txt': return  # a text has no record
    told = json.loads(asked(address, '/check', dict(letters=letters))[1])['checks']
    assert len(told) == 2 and all(line['flips'] and line['model'] and line['data'] for line in told)
    if format == 'md': assert asked(address, '/check', dict(letters=[letters[0].replace('income', 'outcome')]))[0] == 422


def test_time_that_is_over_brings_what_there_is(saved, address, monkeypatch):
    _, cf, _, rows = saved
    status, text, _ = asked(address, '/explain', dict(rows=rows, target='granted', seconds=0))
    late = json.loads(text)['answers']
    assert status == 200 and [a['row'] for a in late] == [0, 1, 2, 3] and not any(a['valid'] for a in late)
    assert all(a['proof'] == 'not begun: the time was over' for a in late)
    assert json.loads(asked(address, '/letter', dict(rows=rows, target='granted', seconds=0))[1]) == dict(letters=[None]*4)
    clock = iter([0., 1., 99.])
    monkeypatch.setattr(serve.time, 'time', lambda: next(clock))
    assert serve._in_time([1, 2, 3], str, 9.) == ['1', '2', None]


REFUSED = [(dict(), 'rows must be given'), (dict(rows=[]), 'rows must have at least 1'), (dict(rows=[[1]]), 'rows[0] must'), (dict(rows=[dict(age=[1])]), 'rows[0].age must be a number, a text'), (dict(rows=[dict(age=1)]*1001), 'rows must have at most 1000'),
    (dict(max_changes=0), 'max_changes must be greater than or equal to 1, got 0'), (dict(max_changes=1.5), 'max_changes must be'), (dict(max_changes='2'), "max_changes must be a valid integer, got '2'"), (dict(seconds=-1), 'seconds must'),
    (dict(bounds=dict(debt=['few', 9])), 'bounds must'), (dict(bounds=dict(debt=[1])), 'bounds must'), (dict(bounds=dict(debt=[9, 1])), 'bounds must'), (dict(target='approved'), 'target must be one of the labels'), (dict(target=[[1], 2]), 'target must'),
    (dict(immutable=['incom']), 'immutable must'), (dict(targt=1), "got 'targt'; did you mean 'target'?"), (dict(rows=[dict(age=30)]), 'rows must')]


@pytest.mark.parametrize('body, says', REFUSED, ids=[says for _, says in REFUSED])
def test_errors_name_the_field(saved, address, body, says):
    status, text, _ = asked(address, '/explain', dict(rows=saved[3][:1], target='granted') | body if body else {})
    words = json.loads(text)['detail']
    assert status == 422 and says in words and '\n' not in words, words


def test_what_is_refused(saved, address):
    for raw in (b'', b'{', b'[]', b'{"rows": 1, "rows": 2}', b'{"rows": [{"age": NaN}]}', b'[' * 15_000, b'\xff\xfe'):
        status, text, _ = asked(address, '/explain', raw=raw)
        assert status == 422 and 'the request must' in text, raw
    status, text, _ = asked(address, '/explain', raw=b' ' * 200_001)
    assert status == 413 and 'at most 200,000 bytes' in text
    for path, body in (('/explain', {}), ('/letter', {}), ('/check', {}), ('/schema', None)): assert asked(address, path, body, token='wrong')[0] == 401
    assert [asked(address, path, token='wrong')[0] for path in ('/docs', '/redoc', '/openapi.json', '/health')] == [404, 404, 404, 200]
    assert asked(address, '/health', Host='evil.example')[0] == 400 and asked(address, '/explain')[0] == 405
    told = json.loads(asked(address, '/schema')[1])
    assert set(told['paths']) == {'/explain', '/letter', '/check', '/health', '/schema'}
    assert 'max_changes' in told['paths']['/explain']['post']['requestBody']['content']['application/json']['schema']['properties']


@pytest.mark.parametrize('error', [RuntimeError('a bug near income=17'), ValueError('model must accept the rows, got: income=17')], ids=['ours', 'the model'])
def test_a_failure_tells_nothing_of_the_row(saved, monkeypatch, caplog, error):
    def broken(cf, q, until): raise error
    monkeypatch.setitem(serve._ADDRESSES, '/explain', broken)
    with serving(saved[0]) as address:
        status, text, _ = asked(address, '/explain', dict(rows=saved[3][:1]))
        name = json.loads(text)['detail'].split()[-1]
        assert status == 500 and 'income=17' not in text and [name in r.getMessage() and 'income=17' not in r.getMessage() for r in caplog.records] == [True]
        assert asked(address, '/health')[0] == 200


def test_two_services_of_one_process_answer_with_their_own_models(saved, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (100, 2)))
    cf = GradualCF(LogisticRegression().fit(X.to_numpy(), X.sum(axis=1) > 8), tabular(X), 'sparse').fit(X)
    one, other = dict(rows=saved[3][:1], target='granted'), dict(rows=[{'0': 1, '1': 2}], target=True)
    with serving(saved[0]) as first, serving(cf.save(tmp_path/'other')) as second:
        assert [asked(*q)[0] for q in ((first, '/explain', one), (second, '/explain', other))] == [200, 200]
        assert [asked(*q)[0] for q in ((first, '/explain', other), (second, '/explain', one))] == [422, 422]
        status, text, _ = asked(second, '/explain', other | dict(immutable=['1'], bounds={'0': ['-inf', 'inf']}))
        assert status == 200 and json.loads(text)['answers'][0]['changed'] == [0] # names of JSON are texts


FOREIGN = [('income', v) for v in (True, '3_000', ' 3000 ', '3000', '٣٠٠٠', 'nan', '')] + [('housing', v) for v in (True, 1, 0., 'rent ')]


def test_cells_of_another_type_are_refused_by_name_beside_others(saved, address):
    "Also numbers that no dtype holds."
    one, two, three, _ = saved[3]
    foreign = [one | {name: cell} for name, cell in FOREIGN]
    others = [two | dict(housing=7), three | dict(income=None), one | dict(income=10**400), two | dict(debt=10**30)]
    answers = answers_of(asked(address, '/explain', dict(rows=foreign + others + [one], target='granted')))
    for (name, cell), a in zip(FOREIGN, answers): assert not a['read'] and f"in column '{name}'" in a['proof'] and repr(cell) in a['proof'], a
    assert [a['read'] for a in answers[len(FOREIGN):]] == [False, False, False, True, True]
    status, text, _ = asked(address, '/explain', dict(rows=foreign[:1], target='granted'))
    assert status == 422 and json.loads(text)['detail'].startswith('rows must')


def test_whoever_waits_too_long_is_told_so_and_who_is_stuck_is_named(saved, monkeypatch):
    go, stuck = threading.Event(), []
    monkeypatch.setitem(serve._ADDRESSES, '/explain', lambda cf, q, until: go.wait() and {})
    monkeypatch.setattr(serve, '_GRACE', (0., 0.))
    question = dict(rows=saved[3][:1], seconds=.1)
    with serving(saved[0], stuck=lambda: stuck.append(1)) as address:
        told = [asked(address, '/explain', question) for _ in range(2)]
        assert [(status, headers['Retry-After']) for status, _, headers in told] == [(503, '1')]*2 and 'within 0.1 seconds' in told[0][1]
        assert asked(address, '/health')[0] == 200  # also while somebody is at work
        go.set()
        while not stuck: time.sleep(.05)
        assert asked(address, '/explain', question | dict(seconds=20))[:2] == (200, '{}')
    assert stuck == [1]  # the second one was never begun


def test_whoever_is_slow_is_dropped(saved, monkeypatch):
    monkeypatch.setattr(serve, '_PATIENCE', .2)
    head = b'POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n'
    with serving(saved[0], seconds=.5) as address:
        port = int(address.rpartition(':')[2])
        held = lambda: [c for c in psutil.Process().net_connections('tcp') if c.laddr and c.laddr.port == port and c.status == 'ESTABLISHED']
        for text, said in ((b'', b''), (head, b''), (head + b'\r\n{"rows', b'HTTP/1.1 408'), (b'GET /schema HTTP/1.1\r\nHost: localhost\r\n\r\n'*2000, None)):
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                s.connect(('127.0.0.1', port))
                s.settimeout(60)
                with suppress(ConnectionError): s.sendall(text)
                if said is not None: assert s.recv(99)[:12] == said  # the last one never reads
                while held(): time.sleep(.05)


@pytest.mark.parametrize('how', ['SIGTERM', 'SIGKILL', pytest.param('SIGINT', marks=pytest.mark.night)])
def test_no_worker_outlives_its_server_and_who_dies_is_replaced(saved, how, tmp_path):
    (tmp_path/'1').touch()
    server = forked(command, ['serve', str(saved[0]), '--port', '0', '--no-token', '--workers', '1'], dict(os.environ), None, str(tmp_path))
    while '/explain' not in (told := (tmp_path/'1').read_text()):
        assert server.is_alive(), (tmp_path/'2').read_text()
        time.sleep(.05)
    address, kids = told.partition('/explain')[0], lambda: [c for c in psutil.Process(server.pid).children(recursive=True) if 'spawn_main' in ' '.join(c.cmdline())]
    def answer():
        while True:
            with suppress(OSError): return asked(address, '/explain', dict(rows=saved[3][:1], target='granted'))[0]
            time.sleep(.05)
    assert answer() == 200
    if how == 'SIGTERM':
        first, = kids()
        first.kill()
        assert answer() == 200 and kids() != [first]
    before = kids()
    os.kill(server.pid, getattr(signal, how))
    server.join(60)
    assert len(before) == 1 and not psutil.wait_procs(before, 60)[1]


def test_dates_and_missing_cells_and_texts_come_through(tmp_path):
    df = people()[['age', 'since', 'day', 'zoned', 'price', 'job', 'kind', 'count']]
    from sklearn.pipeline import make_pipeline
    from sklearn.compose import ColumnTransformer
    model = make_pipeline(ColumnTransformer([('age', 'passthrough', ['age'])]), LogisticRegression()).fit(df, (df.age > 40).astype(int))
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    rows = df[df.age < 40][:4]
    as_json = [{k: None if pd.isna(v) else str(v) if not isinstance(v, (int, float, str)) else v for k, v in row.items()} for row in rows.astype(object).to_dict('records')]
    other = [as_json[0] | dict(since='2020-01-01'), as_json[1] | dict(since='2020-01-01T00:00:00', zoned='2020-01-01T00:00:00Z')]
    with serving(cf.save(tmp_path/'cf')) as address:
        answers = answers_of(asked(address, '/explain', dict(rows=as_json, target=1)))
        for cell in ('03.04.2020', 'yesterday', 5, True): # which could be misread
            got = asked(address, '/explain', dict(rows=[as_json[0] | dict(since=cell)], target=1))
            assert got[0] == 422 and 'rows must be dates in ISO 8601' in got[1]
        dates = [a['data'][1] for a in answers_of(asked(address, '/explain', dict(rows=other, target=1)))]
    assert dates == ['2020-01-01T00:00:00']*2 # of one column, written in two ways
    own = cf.explain(rows.reset_index(drop=True), 1)
    assert [a['after'] for a in answers] == own.prob.tolist() and [a['changed'] for a in answers] == [['age']]*4
