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
from gradual_cf.all import GradualCF, Counterfactuals, predictor, reasons, tabular
from gradual_cf.use.evidence import _seal, answer_schema, evidence, save_evidence
from test_keep import by_hand, people

CHECKER = Path(gradual_cf.__file__).parent/'templates'/'evidence'/'check_evidence.py'
spec = importlib.util.spec_from_file_location('check_evidence', CHECKER)
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)


@pytest.fixture(scope='module')
def asked():
    "Decisions about a table of every kind of column with missing cells, and one row that cannot be read."
    df = people()
    domain = tabular(df, immutable=['member'])
    cf = GradualCF(predictor(by_hand, domain), domain, classes=('no', 'yes')).fit(df)
    rows = df[by_hand(df) < .5][:6].copy()
    rows['job'] = rows.job.astype(object)
    rows.iloc[5, rows.columns.get_loc('job')] = 'pilot'
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
    for text in asked[3]: fits('evidence').validate(json.loads(text))
    fits('answers').validate(json.loads(asked[2].to_json()))


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
    said, there = checker.of_class(np.array([.3, .21, .19]), 'proba', .2, 1, .5)
    assert there.tolist() == [True, True, False] and said[0] > .5


def test_a_folder_grows_and_names_its_damage(asked, tmp_path):
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
    (tmp_path/'mine').mkdir()
    (tmp_path/'mine'/'a.txt').write_text('')
    with pytest.raises(ValueError, match='folder must be new, empty or one of decisions'): save_evidence(asked[3], tmp_path/'mine')
    with pytest.raises(ValueError, match='texts must be what evidence returned'): save_evidence([asked[3][0].replace('"tau": 0.5', '"tau": 0.6')], tmp_path/'e')
    with pytest.raises(ValueError, match='texts must be a list of decisions'): save_evidence([], tmp_path/'e')
    assert not (tmp_path/'e').exists()


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


def test_the_checker_is_short(): assert len(CHECKER.read_text().splitlines()) <= 300


def test_what_is_no_answer_is_refused(asked, tmp_path):
    cf, rows, answers, _ = asked
    with pytest.raises(ValueError, match='cfs must be answers of explain, got str'): evidence('x')
    loaded = Counterfactuals.load(answers[:3].save(tmp_path/'a.zip'), cf.domain)
    with pytest.raises(ValueError, match='answers that know their model and question'): evidence(loaded)
    with pytest.raises(ValueError, match='reasons must be about the same 6 rows, got 3'): evidence(answers, reasons(cf, rows[:3], target='yes'))
    why = reasons(cf, rows[:3], target='yes')
    told = [json.loads(t) for t in evidence(answers[:3], why, region=False)]
    assert all(len(t['reasons']) == len(why.of(i)) and t['region'] is None for i, t in enumerate(told))


def test_numbers_and_intervals():
    df = pd.DataFrame(dict(a=np.linspace(0, 9, 60).round(1), b=np.tile([1., 4., 2., 8., 5., 7.], 10)))
    domain = tabular(df)
    cf = GradualCF(predictor(lambda d: d.a + d.b, domain, kind='number'), domain).fit(df)
    told = [json.loads(t) for t in evidence(cf.explain(df[:3], target=(12., None)))]
    assert all(checker.faults_of(t, (lambda d: (d.a + d.b).to_numpy(), ())) == [] for t in told)
    assert any(checker.faults_of(t, (lambda d: (d.a + d.b).to_numpy() + 1, ())) for t in told)
