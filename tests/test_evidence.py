"""One decision as one JSON: it fits the schema, a program without this package finds the same, and forgeries are found."""
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gradual_cf
from gradual_cf.all import GradualCF, predictor, reasons, tabular
from gradual_cf.use.evidence import _seal, answer_schema, evidence, save_evidence
from made import by_hand, people

CHECKER = Path(gradual_cf.__file__).parent/'templates'/'evidence'/'check_evidence.py'
spec = importlib.util.spec_from_file_location('check_evidence', CHECKER)
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)


@pytest.fixture(scope='module')
def asked():
    "Decisions about a table of every kind of column with missing cells, and one row that cannot be read."
    df = people()
    domain = tabular(df, immutable=['member'])
    cf = GradualCF(predictor(by_hand, domain), domain, 'sparse', classes=('no', 'yes')).fit(df)
    rows = df[by_hand(df) < .5][:6].copy()
    rows['job'] = rows.job.astype(object)
    rows.iloc[5, rows.columns.get_loc('job')] = 7
    answers = cf.explain(rows, 'yes', bounds=dict(age=(20, 60)), max_changes=3)
    assert answers.unread.sum() == 1 and answers.valid.sum() >= 3
    return cf, rows, answers, evidence(answers, made_at='2026-01-01')


def ask(df):
    df = df.assign(since=pd.to_datetime(df.since))
    return by_hand(df)


def found(told): return checker.faults_of(told, (ask, ()))


def sealed(told):
    told = {k: v for k, v in told.items() if k != 'sha256'}
    return told | dict(sha256=_seal(told))


def test_it_fits_the_schema(asked):
    jsonschema = pytest.importorskip('jsonschema')
    schema = answer_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    fits = lambda part: jsonschema.Draft202012Validator(schema | {'$ref': f'#/$defs/{part}'})
    nobody, late = (asked[0].explain(asked[1], 'yes', **how) for how in (dict(immutable=list(asked[1].columns)), dict(seconds=1e-9)))
    assert not nobody.valid.any() and not late.valid.any()
    for answers in (asked[2], nobody, late):
        for text in evidence(answers): fits('evidence').validate(json.loads(text))
        fits('answers').validate(told := json.loads(answers.to_json()))
        assert all(a['valid'] or a['size'] is None for a in told['answers'])


def test_the_checker_finds_the_same(asked):
    for text in asked[3]: assert found(json.loads(text)) == []


def change(told, path, v):
    told = json.loads(json.dumps(told))
    at = told
    for k in path[:-1]: at = at[k]
    at[path[-1]] = v
    return told


def test_the_checker_finds_what_was_changed(asked):
    told = next(told for told in map(json.loads, asked[3]) if told['answer']['valid'])
    names = [c['name'] for c in told['columns']]
    first = told['answer']['changed'][0]
    at = names.index(first)
    new = told['answer']['answer']
    forged = [(('answer', 'after'), .999, 'the model says'), (('answer', 'before'), .4, 'of the row'),
              (('answer', 'valid'), False, 'the answer says otherwise'), (('answer', 'changed'), [], f'{first!r} changed'),
              (('answer', 'answer'), [told['answer']['data'][k] if k == at else v for k, v in enumerate(new)], f'{first!r} did not change'),
              (('answer', 'answer'), [not v if n == 'member' else v for n, v in zip(names, new)], "'member' changed and may not"),
              (('answer', 'answer'), [-5 if n == 'age' else v for n, v in zip(names, new)], "'age' must not be -5"),
              (('answer', 'answer'), [33.5 if n == 'age' else v for n, v in zip(names, new)], "'age'"),
              (('answer', 'answer'), ['astronaut' if n == 'job' else v for n, v in zip(names, new)], "'job' must be one of"),
              (('question', 'max_changes'), 0, 'no more than 0 may')]
    for path, v, words in forged:
        bad = change(told, path, v)
        try: said = found(sealed(bad))
        except checker.Unreadable as e: said = [str(e)]
        assert any(words in s for s in said) or 'age' in words and said, (path, v, said)
        assert any('sha256' in s for s in found(bad)) if words != "'age'" else True


def test_dates_of_an_answer_are_held_against_their_bounds():
    c = dict(feature='since', columns=['since'], may_change=True, low='2020-03-01T00:00:00', high=None, decimals=0)
    assert checker.breaks(c, dict(since='2020-02-29T00:00:00')) and not checker.breaks(c, dict(since='2020-03-01T00:00:00'))
    assert 'missing' in checker.breaks(c, dict(since=None))
    assert 'decimals' in checker.breaks(c, dict(since='2020-03-01T12:00:00'))


def test_one_of_several_columns_is_on():
    c = dict(feature='home', columns=['own', 'rent', 'none'], may_change=True, levels=['own', 'rent'])
    assert not checker.breaks(c, dict(own=1, rent=0, none=0))
    assert checker.breaks(c, dict(own=1, rent=1, none=0)) and checker.breaks(c, dict(own=0, rent=0, none=1))


@pytest.mark.parametrize('kind, out, at, p', [
    ('proba', [.3], 1, .3), ('proba', [[.7, .3]], 1, .3), ('logit', [[0., 0., 0.]], 2, 1/3), ('decision', [0.], 0, .5), ('proba', [[.2, .5, .3]], 1, .5)])
def test_what_models_answer_is_read_as_the_package_reads_it(kind, out, at, p):
    said, _ = checker.of_class(np.array(out), kind, .5, at, .5)
    assert said[0] == pytest.approx(p)


def test_a_threshold_moves_the_decision():
    said, there = checker.of_class(np.array([.3, .21, .19]), 'proba', .2, 1, None)
    assert there.tolist() == [True, True, False] and said[0] == pytest.approx(.3)  # its own probability


def test_a_folder_grows_and_names_its_damage(asked, tmp_path):
    (tmp_path/'d').mkdir()
    for name in ('part-0123456789abcdef.parquet', '_schema.json', '.lock'): (tmp_path/'d'/name).touch()  # of a save that was cut off
    save_evidence(asked[3][:2], tmp_path/'d')
    (tmp_path/'d'/'part-0123456789abcdef.parquet').unlink()
    folder = save_evidence(asked[3][:2], tmp_path/'d')
    save_evidence(asked[3][2:], folder)
    save_evidence(asked[3][:2], folder)  # once more changes nothing
    told, faults = checker.decisions(folder)
    assert len(told) == 6 and not faults
    parts = sorted(folder.glob('part-*.parquet'))
    assert len(pd.concat(map(pd.read_parquet, parts))) == 6
    parts[0].write_bytes(parts[0].read_bytes()[:-5] + b'12345')
    assert checker.decisions(folder)[1] == [f'{parts[0].name} is damaged']
    parts[0].unlink()
    assert checker.decisions(folder)[1] == [f'{parts[0].name} is missing']


def exits(path, model, capsys, monkeypatch):
    "The exit code of the checker, and what it printed."
    monkeypatch.setattr(sys, 'argv', ['check_evidence.py', str(path), '--model', str(model)])
    code = checker.main()
    return code, ''.join(capsys.readouterr())


@pytest.fixture
def tried(asked, tmp_path, capsys, monkeypatch):
    "A function that checks a text against a model which says what the explainer's own says."
    (tmp_path/'model.py').write_text('import pandas as pd\nfrom made import by_hand\nask = lambda df: by_hand(df.assign(since=pd.to_datetime(df.since)))\n')
    def tried(text):
        (tmp_path/'t.json').write_text(text, encoding='utf-8', errors='surrogatepass')
        return exits(tmp_path/'t.json', f'{tmp_path}/model.py:ask', capsys, monkeypatch)
    return tried


def test_what_cannot_be_read_is_not_refuted(asked, tried, tmp_path, capsys, monkeypatch):
    text = asked[3][0]
    told = json.loads(text)
    assert tried(text)[0] == 0 and tried(f'[{",".join(asked[3])}]')[0] == 0
    deep = '['*100_000 + ']'*100_000
    for bad in ('', '[]', '[1]', '"x"', 'null', text[:500], deep, text[:-2] + f',"x": {deep}}}', text.replace('"valid"', '"valid": true, "valid"', 1)):
        assert tried(bad)[0] == 2, bad[:60]
    at = [c['name'] for c in told['columns']].index('age')
    for v in (10**400, 2**63, float('inf'), float('nan'), 'x', None, [1]):
        assert tried(json.dumps(sealed(change(told, ('answer', 'answer', at), v))))[0] == 2, v
    cells = told['answer']['answer']
    for path, v in ((('schema_version',), True), (('question', 'tau'), -1), (('question', 'tau'), '0.5'), (('model', 'threshold'), 1), (('answer', 'answer'), cells[:-1]),
                    (('answer', 'answer'), [*cells, 1]), (('columns', 0, 'name'), 'income'), (('question', 'target'), 'perhaps')):
        assert tried(json.dumps(sealed(change(told, path, v))))[0] == 2, path
    for name, source in dict(none='', boom='1/0', leaves='import sys; sys.exit(0)').items():
        (tmp_path/f'{name}.py').write_text(source)
        assert exits(tmp_path/'t.json', f'{tmp_path}/{name}.py:ask', capsys, monkeypatch)[0] == 2, name
    for name in ('m.skops', 'm.txt', 'm.pkl', 'gone.onnx'):
        if 'gone' not in name: (tmp_path/name).write_text('x')
        assert exits(tmp_path/'t.json', tmp_path/name, capsys, monkeypatch)[0] == 2, name


def test_what_was_sealed_anew_is_refuted(asked, tried):
    told = next(told for told in map(json.loads, asked[3]) if told['answer']['valid'])
    hidden = change(change(told, ('answer', 'changed'), []), ('question', 'constraints'), [])
    for bad, words in ((hidden, 'nothing says that they may'), (change(told, ('answer', 'read'), False), 'was not read, and is answered'),
                       (change(told, ('answer', 'target'), 'no'), "'yes' was asked for, and 'no' answered")):
        code, said = tried(json.dumps(sealed(bad)))
        assert code == 1 and words in said


def test_a_name_gives_no_orders_to_the_terminal(asked, tried):
    told = json.loads(asked[3][0])
    code, said = tried(json.dumps(sealed(change(told, ('answer', 'row'), '1: as the evidence says\nrow 2\x1b[2J'))))
    assert code == 0 and len(said.splitlines()) == 2 and '\x1b' not in said
    assert tried(json.dumps(sealed(change(told, ('answer', 'row'), '\ud800'))))[0] == 0


def test_a_folder_hides_nothing(asked, tmp_path):
    folder = save_evidence(asked[3][2:], save_evidence(asked[3][:2], tmp_path/'d'))
    manifest = folder/'_manifest.json'
    whole = json.loads(manifest.read_text())
    first, second = (part['name'] for part in whole['parts'])
    manifest.write_text(json.dumps(whole | dict(parts=whole['parts'][:1])))
    assert checker.decisions(folder)[1] == [f'{second} is not in the manifest']
    manifest.write_text(json.dumps(whole | dict(parts=[*whole['parts'], whole['parts'][0]])))
    assert checker.decisions(folder)[1] == [f'{first} stands in the manifest twice']


def test_the_program_alone(asked, tmp_path):
    "It runs where neither torch nor this package can be imported."
    (tmp_path/'one.json').write_text(asked[3][0])
    (tmp_path/'model.py').write_text('import numpy as np\ndef ask(df): return 1/(1 + np.exp(-(0.05*(df.age - 40) + .1*(df.income.fillna(30) - 40)'
                                     ' + (df.member.astype(float) - .5) + (df.job == "cook").astype(float)).to_numpy(float)))\n')
    guard = "import sys, runpy; sys.modules.update(torch=None, gradual_cf=None); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    run = lambda *args: subprocess.run([sys.executable, '-c', guard, str(CHECKER), *map(str, args)], capture_output=True, text=True)
    done = run(tmp_path/'one.json', '--model', f'{tmp_path}/model.py:ask')
    assert done.returncode == 0 and 'as the evidence says' in done.stdout, done.stdout + done.stderr
    assert run(tmp_path/'one.json', '--model', tmp_path/'gone.skops').returncode == 2


def test_the_checker_is_short(): assert len(CHECKER.read_text().splitlines()) <= 320


def test_reasons_stand_in_the_evidence(asked):
    cf, rows, answers, _ = asked
    why = reasons(cf, rows[:3], target='yes')
    told = [json.loads(t) for t in evidence(answers[:3], why, region=False)]
    assert all(len(t['reasons']) == len(why.of(i)) and t['region'] is None for i, t in enumerate(told))


def test_numbers_and_intervals():
    df = pd.DataFrame(dict(a=np.linspace(0, 9, 60).round(1), b=np.tile([1., 4., 2., 8., 5., 7.], 10)))
    domain = tabular(df)
    cf = GradualCF(predictor(lambda d: d.a + d.b, domain, kind='number'), domain, 'sparse').fit(df)
    told = [json.loads(t) for t in evidence(cf.explain(df[:3], target=(12., None)))]
    assert all(checker.faults_of(t, (lambda d: (d.a + d.b).to_numpy(), ())) == [] for t in told)
    assert any(checker.faults_of(t, (lambda d: (d.a + d.b).to_numpy() + 1, ())) for t in told)


def test_columns_that_follow_others_may_change():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(late=rng.integers(0, 5, 120), income=rng.gamma(6, 400, 120).round(), age=rng.integers(18, 80, 120)))
    df['sum'] = df.late + df.income
    ask = lambda d: 1/(1 + np.exp(-((d.income - 2400)/900 - .6*(d.late - 2)).to_numpy(float)))
    domain = tabular(df, derive={'sum': lambda d: d.late + d.income}, relations=['late <= age'])
    cf = GradualCF(predictor(ask, domain), domain, 'sparse', classes=('no', 'yes')).fit(df)
    texts = evidence(cf.explain(df[ask(df) < .5][:12], 'yes'))
    told = [json.loads(t) for t in texts]
    assert any('sum' in t['answer']['changed'] for t in told) and all(checker.faults_of(t, (ask, ())) == [] for t in told)
    assert all(t['question']['relations'] == ['late <= age', 'sum'] and t['region'] is None for t in told)
    moved = next(t for t in told if 'sum' in t['answer']['changed'])
    at = [c['feature'] for c in moved['question']['constraints']].index('sum')
    alone = {k: v for k, v in moved['question']['constraints'][at].items() if k != 'follows'}
    assert any("'sum' changed and may not" in s for s in checker.faults_of(sealed(change(moved, ('question', 'constraints', at), alone)), (ask, ())))
    jsonschema = pytest.importorskip('jsonschema')
    jsonschema.Draft202012Validator(answer_schema() | {'$ref': '#/$defs/evidence'}).validate(moved)
