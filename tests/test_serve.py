"""A saved explainer behind HTTP: the answers of explain, errors that name the field, deadlines, a queue that is short."""
import json
import os
import shutil
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip('fastapi')
pytest.importorskip('uvicorn')
psutil = pytest.importorskip('psutil')
jsonschema = pytest.importorskip('jsonschema')

from gradual_cf.all import GradualCF, tabular
from gradual_cf.scale import serve
from gradual_cf.scale.serve import serving
from gradual_cf.use.evidence import answer_schema
from sklearn.linear_model import LogisticRegression
from made import loans, people
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
    with serving(saved[0], token=TOKEN, most_bytes=20_000) as address: yield address


@pytest.fixture
def patient(monkeypatch):
    "Workers may be late, as on a busy machine."
    monkeypatch.setattr(serve, '_GRACE', (60., 1.))


def fits(part, told): jsonschema.Draft202012Validator(answer_schema() | {'$ref': f'#/$defs/{part}'}).validate(told)


def test_the_answers_are_those_of_explain_and_fit_the_schema(saved, address):
    _, cf, refused, rows = saved
    for question, rules in ((dict(), {}), (dict(immutable=['income'], bounds=dict(debt=[None, 9000]), max_changes=2), dict(immutable=['income'], bounds=dict(debt=(None, 9000)), max_changes=2))):
        status, text, _ = asked(address, '/explain', dict(rows=rows, target='granted', **question))
        assert status == 200 and json.loads(text) == json.loads(cf.explain(refused, 'granted', **rules).to_json())
        fits('answers', json.loads(text))
    status, text, _ = asked(address, '/ways', dict(rows=rows[:1], target='granted', k=2))
    told = json.loads(text)
    assert status == 200 and 1 <= len(told['answers']) <= 2 and {a['row'] for a in told['answers']} == {0}
    fits('answers', told)


def test_every_row_has_ways_or_says_why_not_and_time_that_is_over_ends_them(saved, address, patient):
    _, cf, refused, rows = saved
    unknown = rows[1] | dict(housing=7)
    told = json.loads(asked(address, '/ways', dict(rows=[rows[0], unknown, rows[2]], target='granted', k=2, max_changes=1))[1])
    fits('answers', told)
    own = cf.explain_many(refused.iloc[[0, 2]], 'granted', k=2, max_changes=1)
    ways = [(i, a['valid']) for i, a in enumerate(told['answers']) if a['valid']]
    assert sorted({a['row'] for a in told['answers']}) == [0, 1, 2] and len(ways) == len(own.answers)
    assert [a['proof'][:8] for a in told['answers'] if not a['read']] == ['not read']
    for path in ('/ways', '/explain'):
        status, text, _ = asked(address, path, dict(rows=rows, target='granted', seconds=0))
        late = json.loads(text)['answers']
        assert status == 200 and [a['row'] for a in late] == [0, 1, 2, 3] and not any(a['valid'] for a in late)
        assert all(a['proof'] == 'not begun: the time was over' for a in late)


def test_letters_evidence_and_checks(saved, address):
    _, _, _, rows = saved
    status, text, _ = asked(address, '/letter', dict(rows=rows[:2], target='granted'))
    letters = json.loads(text)['letters']
    assert status == 200 and len(letters) == 2
    fits('letters', json.loads(text))
    status, text, _ = asked(address, '/check', dict(letters=letters))
    told = json.loads(text)
    assert status == 200 and all(line['flips'] and line['model'] and line['data'] for line in told['checks'])
    fits('checks', told)
    assert asked(address, '/check', dict(letters=[letters[0].replace('income', 'outcome')]))[0] == 422
    status, text, _ = asked(address, '/evidence', dict(rows=rows[:2], target='granted'))
    assert status == 200
    fits('decisions', json.loads(text))


@pytest.mark.parametrize('form, begins', [('txt', ''), ('pdf', '%PDF')])
def test_letters_of_every_form_come_and_are_checked(saved, form, begins):
    if form != 'txt': pytest.importorskip('weasyprint')
    _, cf, _, rows = saved
    told = serve._letters(cf, dict(rows=rows[:1], target='granted', format=form), None)
    fits('letters', json.loads(told))
    text, = json.loads(told)['letters']
    if form == 'txt':
        assert text.startswith('About this decision') and serve._as_letter(text) == text
        return
    assert serve._as_letter(text)[:len(begins)] == begins.encode()
    line, = json.loads(serve._letters_checked(cf, dict(letters=[text]), None))['checks']
    assert line['flips'] and line['model'] and line['data']
    assert serve._as_letter('JVBERi, as somebody may begin') == 'JVBERi, as somebody may begin'


@pytest.mark.parametrize('body, status, field', [
    (dict(), 422, 'rows'), (dict(rows=[]), 422, 'rows'), (dict(rows=[[1]]), 422, 'rows[0]'), (dict(rows=[dict(age=[1])]), 422, 'rows[0].age'),
    (dict(max_changes=0), 422, 'max_changes'), (dict(max_changes=1.5), 422, 'max_changes'), (dict(seconds=-1), 422, 'seconds'),
    (dict(bounds=dict(debt=['few', 9])), 422, 'bounds'), (dict(bounds=dict(debt=[1])), 422, 'bounds.debt'), (dict(bounds=dict(debt=[9, 1])), 422, 'bounds'), (dict(target='approved'), 422, 'target'),
    (dict(immutable=['incom']), 422, 'immutable'), (dict(surprise=1), 422, 'surprise'), (dict(schema_version=2), 422, 'schema_version'),
    (dict(rows=[dict(age=30)]), 422, 'rows')])
def test_errors_name_the_field(saved, address, body, status, field):
    got, text, _ = asked(address, '/explain', dict(rows=saved[3][:1], target='granted') | body if body else {})
    told = json.loads(text)
    assert (got, told.get('field')) == (status, field), told
    fits('error', told)


def test_what_is_no_request(saved, address):
    for raw in (b'', b'{', b'[]', b'{"rows": 1, "rows": 2}', b'{"rows": [{"age": NaN}]}', b'[' * 15_000, b'\xff\xfe'):
        assert asked(address, '/explain', raw=raw)[0] in (400, 422), raw
    status, text, _ = asked(address, '/explain', raw=b' ' * 20_001)
    assert status == 413 and 'at most 20,000 bytes' in text
    assert asked(address, '/explain', {}, token='wrong')[0] == 401
    assert asked(address, '/metrics', token='wrong')[0] == 401
    assert asked(address, '/health', token='wrong')[0] == 200
    assert asked(address, '/health', Host='evil.example')[0] == 400
    assert asked(address, '/explain')[0] == 405


@pytest.mark.parametrize('error', [RuntimeError('a bug near income=17'), ValueError('model must accept the rows, got: income=17')], ids=['ours', 'the model'])
def test_a_failure_is_counted_and_tells_nothing_of_the_row(saved, monkeypatch, caplog, error):
    def broken(cf, q, seconds): raise error
    monkeypatch.setitem(serve._ADDRESSES, '/explain', serve._ADDRESSES['/explain']._replace(answer=broken))
    with serving(saved[0]) as address:
        status, text, _ = asked(address, '/explain', dict(rows=saved[3][:1]))
        name = json.loads(text)['error'].split()[-1]
        assert status == 500 and 'income=17' not in text and [name in r.getMessage() and 'income=17' not in r.getMessage() for r in caplog.records] == [True]
        assert 'gradual_cf_requests_total{path="/explain",status="500"} 1' in asked(address, '/metrics')[1]
        assert json.loads(asked(address, '/health')[1]) == dict(ok=True, inside=0)


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


def test_cells_of_another_type_are_refused_by_name(saved, address):
    rows = [saved[3][0] | {name: cell} for name, cell in FOREIGN]
    answers = json.loads(asked(address, '/explain', dict(rows=rows + saved[3][:1], target='granted'))[1])['answers']
    for (name, cell), a in zip(FOREIGN, answers): assert not a['read'] and f"in column '{name}'" in a['proof'] and repr(cell) in a['proof'], a
    assert answers[-1]['read']
    status, text, _ = asked(address, '/explain', dict(rows=rows[:1], target='granted'))
    assert status == 422 and json.loads(text)['field'] == 'rows'


def test_rows_that_cannot_be_read_are_told_beside_others(saved, address):
    "Also numbers that no dtype holds."
    one, two, three, _ = saved[3]
    rows = [one, two | dict(housing=7), three | dict(income=None), one | dict(income=10**400), two | dict(debt=10**30)]
    status, text, _ = asked(address, '/explain', dict(rows=rows, target='granted'))
    answers = json.loads(text)['answers']
    assert status == 200 and [a['read'] for a in answers] == [True, False, False, False, True]
    assert '7 in column' in answers[1]['proof'] and 'income' in answers[2]['proof']


def test_it_is_described(saved, address):
    assert asked(address, '/explain', dict(rows=saved[3][:1], target='granted'))[0] == 200
    told = json.loads(asked(address, '/openapi.json')[1])
    assert set(told['paths']) == {'/explain', '/ways', '/letter', '/evidence', '/check', '/health', '/metrics', '/schema'}
    schema = told['paths']['/explain']['post']['requestBody']['content']['application/json']['schema']
    assert schema == {'$ref': '#/components/schemas/question'}
    refs = set(json.dumps(told).split('"#/components/schemas/')[1:])
    assert {r.split('"')[0] for r in refs} <= set(told['components']['schemas'])
    assert json.loads(asked(address, '/schema')[1]) == answer_schema()
    text = asked(address, '/metrics')[1]
    assert 'gradual_cf_requests_total{path="/explain",status="200"}' in text and 'gradual_cf_inside 0' in text


def test_a_full_queue_says_so(saved, monkeypatch):
    go = threading.Event()
    def slow(cf, q, seconds):
        go.wait()
        return '{}'
    monkeypatch.setitem(serve._ADDRESSES, '/explain', serve._ADDRESSES['/explain']._replace(answer=slow))
    with serving(saved[0], waiting=1) as address:
        got = []
        threads = [threading.Thread(target=lambda: got.append(asked(address, '/explain', dict(rows=saved[3][:1])))) for _ in range(5)]
        for t in threads: t.start()
        while len(got) < 3: time.sleep(.01)
        refused = list(got)
        go.set()
        for t in threads: t.join()
    assert [(status, headers['Retry-After']) for status, _, headers in refused] == [(503, '1')]*3
    assert sorted(status for status, *_ in got) == [200, 200, 503, 503, 503]


def test_whoever_is_late_or_dies_is_replaced_and_a_model_that_is_gone_is_said(saved, tmp_path):
    "A limit of nothing, and a worker that is at work: the question is refused, and the next one finds somebody."
    folder = shutil.copytree(saved[0], tmp_path/'loans')
    app_of = {}
    real = serve.service
    def kept(*a, **k): return app_of.setdefault('app', real(*a, **k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, 'service', kept)
        with serving(folder, workers=1, seconds=300) as address:
            question = dict(rows=saved[3][:1], target='granted')
            first = asked(address, '/explain', question)[1]
            crew = app_of['app'].state.crew
            late = crew.all[0].process
            with pytest.MonkeyPatch.context() as hasty:
                hasty.setattr(serve, '_GRACE', (0., 0.))
                assert asked(address, '/letter', dict(rows=saved[3][:2]*150, target='granted', seconds=.05))[0] == 503
            assert asked(address, '/explain', question)[:2] == (200, first) and crew.restarts == 1 and not late.is_alive()
            def kill():
                os.kill(crew.all[0].process.pid, signal.SIGKILL)
                crew.all[0].process.join()
            kill()
            assert asked(address, '/health')[0] == 503  # while nobody answers
            assert asked(address, '/explain', question | dict(seconds=.01))[0] == 503  # the limit is the request's
            assert asked(address, '/explain', question)[:2] == (200, first) and crew.restarts == 2
            assert asked(address, '/health')[0] == 200
            shutil.rmtree(folder)
            kill()
            status, text, _ = asked(address, '/explain', question)
            assert status == 503 and 'is the model missing?' in text
            assert asked(address, '/health')[0] == 503


@pytest.mark.parametrize('path, name', [('/letter', 'letters'), ('/evidence', 'decisions'), ('/check', 'checks')])
def test_time_that_ends_among_rows_brings_what_there_is(saved, monkeypatch, path, name):
    _, cf, _, rows = saved
    q = dict(rows=rows[:1]*12, target='granted')
    if path == '/check': q = dict(letters=json.loads(serve._letters(cf, q, None))['letters'])
    whole, clock = json.loads(serve._ADDRESSES[path].answer(cf, q, None))[name], iter([0., 1., 2., *[99.]*9])
    monkeypatch.setattr(serve, 'time', SimpleNamespace(time=lambda: next(clock)))
    with pytest.raises(serve.Refused, match='over after 10 of 12') as e: serve._ADDRESSES[path].answer(cf, q, 9.)
    same = lambda v: {k: u for k, u in v.items() if k not in ('made_at', 'sha256')} if isinstance(v, dict) else v
    assert e.value.status == 504 and list(map(same, e.value.told[name])) == list(map(same, whole[:10]))
    fits('error', e.value.told)


@pytest.mark.parametrize('how', ['SIGTERM', 'SIGKILL', pytest.param('SIGINT', marks=pytest.mark.night)])
def test_no_worker_outlives_its_server(saved, how, tmp_path):
    (tmp_path/'1').touch()
    server = forked(command, ['serve', str(saved[0]), '--port', '0', '--no-token', '--workers', '1'], dict(os.environ), None, str(tmp_path))
    while '/explain' not in (told := (tmp_path/'1').read_text()):
        assert server.is_alive(), (tmp_path/'2').read_text()
        time.sleep(.05)
    while True:
        with suppress(OSError): asked(told.partition('/explain')[0], '/health'); break
        time.sleep(.05)
    kids = [child for child in psutil.Process(server.pid).children(recursive=True) if 'forkserver' in ' '.join(child.cmdline())]
    os.kill(server.pid, getattr(signal, how))
    server.join(60)
    assert len(kids) == 2 and not psutil.wait_procs(kids, 60)[1]


def test_half_a_request_is_dropped_and_connections_are_counted(saved, monkeypatch):
    monkeypatch.setattr(serve, '_HEAD', .2)
    monkeypatch.setattr(serve, '_CONNECTIONS', 8)
    def opened(address, text):
        s = socket.create_connection(address.removeprefix('http://').split(':'))
        s.sendall(text)
        return s
    with serving(saved[0], seconds=.5) as address:
        head = b'POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n'
        for text, said in ((b'', b''), (head, b''), (head + b'\r\n{"rows', b'HTTP/1.1 408')):
            with opened(address, text) as s:
                s.settimeout(60)
                assert s.recv(99)[:12] == said
                with suppress(ConnectionError):
                    while s.recv(999): pass  # until it is closed
        monkeypatch.setattr(serve, '_HEAD', 60.)
        many = [opened(address, b'') for _ in range(8)]
        with opened(address, b'') as s, suppress(ConnectionError):
            s.settimeout(60)
            assert s.recv(99) == b''
        for s in many: s.close()


def test_dates_and_missing_cells_and_texts_come_through(tmp_path):
    df = people()[['age', 'since', 'day', 'zoned', 'price', 'job', 'kind', 'count']]
    model = LogisticRegression()
    from sklearn.pipeline import make_pipeline
    from sklearn.compose import ColumnTransformer
    model = make_pipeline(ColumnTransformer([('age', 'passthrough', ['age'])]), model).fit(df, (df.age > 40).astype(int))
    cf = GradualCF(model, tabular(df), 'sparse').fit(df)
    rows = df[df.age < 40][:4]
    as_json = [{k: None if pd.isna(v) else str(v) if not isinstance(v, (int, float, str)) else v for k, v in row.items()} for row in rows.astype(object).to_dict('records')]
    other = [as_json[0] | dict(since='2020-01-01'), as_json[1] | dict(since='2020-01-01T00:00:00', zoned='2020-01-01T00:00:00Z')]
    with serving(cf.save(tmp_path/'cf')) as address:
        status, text, _ = asked(address, '/explain', dict(rows=as_json, target=1))
        for cell in ('03.04.2020', 'yesterday', 5, True): # which could be misread
            got = asked(address, '/explain', dict(rows=[as_json[0] | dict(since=cell)], target=1))
            assert got[0] == 422 and json.loads(got[1])['field'] == 'rows' and 'dates in ISO 8601' in got[1]
        dates = [a['data'][1] for a in json.loads(asked(address, '/explain', dict(rows=other, target=1))[1])['answers']]
    assert dates == ['2020-01-01T00:00:00']*2 # of one column, written in two ways
    assert status == 200, text
    own = cf.explain(rows.reset_index(drop=True), 1)
    answers = json.loads(text)['answers']
    assert [a['after'] for a in answers] == own.prob.tolist() and [a['changed'] for a in answers] == [['age']]*4
