"""One decision as one JSON: it fits the schema, a program without this package finds the same, and forgeries are found."""
import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from gradual_cf.all import GradualCF, letter, load_loans, predictor, reasons, tabular
from gradual_cf.templates.evidence import check_evidence as checker
from gradual_cf.use.evidence import _end, answer_schema, evidence
from forged import changed, field_of, places, put_once, sealed, walk
from made import by_hand, people
from questions import SAID

CHECKER = Path(checker.__file__)


@pytest.fixture(scope='module', autouse=True)
def once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, 'says', put_once(checker.says))
        yield


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


def found(told): return checker.check(told, (ask, ()))[0]


@pytest.mark.night
def test_it_fits_the_schema(asked):
    jsonschema = pytest.importorskip('jsonschema')
    schema = answer_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    fits = lambda part: jsonschema.Draft202012Validator(schema | {'$ref': f'#/$defs/{part}'})
    nobody, late = (asked[0].explain(asked[1], 'yes', **how) for how in (dict(immutable=list(asked[1].columns)), dict(limit=1e-9)))
    assert not nobody.valid.any() and not late.valid.any()
    for answers in (asked[2], nobody, late):
        for text in evidence(answers): fits('evidence').validate(json.loads(text))
        fits('answers').validate(told := json.loads(answers.to_json()))
        assert all(a['valid'] or a['size'] is None for a in told['answers'])


def test_dates_of_an_answer_are_held_against_their_bounds():
    c = dict(feature='since', columns=['since'], may_change=True, low='2020-03-01T00:00:00', high=None, decimals=0)
    assert checker.breaks(c, ['2020-02-29T00:00:00']) and not checker.breaks(c, ['2020-03-01T00:00:00'])
    assert 'missing' in checker.breaks(c, [None])
    assert 'decimals' in checker.breaks(c, ['2020-03-01T12:00:00'])


def test_one_of_several_columns_is_on():
    c = dict(feature='home', columns=['own', 'rent', 'none'], may_change=True, levels=['own', 'rent'], cells=[[1, 0, 0], [0, 1, 0]])
    assert not checker.breaks(c, [1, 0, 0])
    assert checker.breaks(c, [1, 1, 0]) and checker.breaks(c, [0, 0, 1])


@pytest.mark.parametrize('kind, out, at, p', [
    ('proba', [.3], 1, .3), ('proba', [[.7, .3]], 1, .3), ('logit', [[0., 0., 0.]], 2, 1/3), ('decision', [0.], 0, .5), ('proba', [[.2, .5, .3]], 1, .5)])
def test_what_models_answer_is_read_as_the_package_reads_it(kind, out, at, p):
    said, _ = checker.of_class(np.array(out), kind, .5, at)
    assert said[0] == pytest.approx(p)


def test_a_threshold_moves_the_decision():
    said, there = checker.of_class(np.array([.3, .21, .19]), 'proba', .2, 1)
    assert there.tolist() == [True, True, False] and said[0] == pytest.approx(.3)  # its own probability


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


@pytest.mark.night
def test_what_cannot_be_read_is_not_refuted(asked, tried, tmp_path, capsys, monkeypatch):
    text = asked[3][0]
    told = json.loads(text)
    assert tried(text)[0] == 0 and tried(f'[{",".join(asked[3])}]')[0] == 0
    deep = '['*100_000 + ']'*100_000
    for bad in ('', '[]', '[1]', '"x"', 'null', text[:500], deep, text[:-2] + f',"x": {deep}}}', text.replace('"valid"', '"valid": true, "valid"', 1)):
        assert tried(bad)[0] == 2, bad[:60]
    at = [c['name'] for c in told['columns']].index('age')
    for v in (10**400, 2**63, float('inf'), float('nan'), 'x', None, [1]):
        code, said = tried(json.dumps(sealed(changed(told, ('answer', 'answer', at), v))))
        assert code == 2 and 'error: Unreadable' in said, (v, said)
    cells = told['answer']['answer']
    for path, v in ((('schema_version',), True), (('question', 'tau'), -1), (('question', 'tau'), '0.5'), (('model', 'threshold'), 1), (('answer', 'answer'), cells[:-1]),
                    (('answer', 'answer'), [*cells, 1]), (('columns', 0, 'name'), 'income'), (('question', 'target'), 'perhaps')):
        code, said = tried(json.dumps(sealed(changed(told, path, v))))
        assert code == 2 and 'error: Unreadable' in said, (path, said)
    for name, source in dict(none='', boom='1/0', leaves='import sys; sys.exit(0)').items():
        (tmp_path/f'{name}.py').write_text(source)
        assert exits(tmp_path/'t.json', f'{tmp_path}/{name}.py:ask', capsys, monkeypatch)[0] == 2, name
    for name in ('m.skops', 'm.txt', 'm.pkl', 'gone.onnx'):
        if 'gone' not in name: (tmp_path/name).write_text('x')
        assert exits(tmp_path/'t.json', tmp_path/name, capsys, monkeypatch)[0] == 2, name


@pytest.mark.night
def test_what_was_sealed_anew_is_refuted(asked, tried):
    told = next(told for told in map(json.loads, asked[3]) if told['answer']['valid'])
    hidden = changed(changed(told, ('answer', 'changed'), []), ('question', 'constraints'), [])
    for bad, words in ((hidden, 'nothing says what may become of'), (changed(told, ('answer', 'read'), False), 'was not read, and is answered'),
                       (changed(told, ('answer', 'target'), 'no'), "'yes' was asked for, and 'no' answered")):
        code, said = tried(json.dumps(sealed(bad)))
        assert code == 1 and words in said


@pytest.mark.night
def test_a_name_gives_no_orders_to_the_terminal(asked, tried):
    told = json.loads(asked[3][0])
    code, said = tried(json.dumps(sealed(changed(told, ('answer', 'row'), '1: as the record says\nrow 2\x1b[2J'))))
    assert code == 0 and len(said.splitlines()) == 3 and '\x1b' not in said
    assert tried(json.dumps(sealed(changed(told, ('answer', 'row'), '\ud800'))))[0] == 0


@pytest.mark.night
def test_the_program_alone(asked, tmp_path):
    "It runs where neither torch nor this package can be imported."
    (tmp_path/'one.json').write_text(asked[3][0])
    (tmp_path/'model.py').write_text('import numpy as np\ndef ask(df): return 1/(1 + np.exp(-(0.05*(df.age - 40) + .1*(df.income.fillna(30) - 40)'
                                     ' + (df.member.astype(float) - .5) + (df.job == "cook").astype(float)).to_numpy(float)))\n')
    guard = "import sys, runpy; sys.modules.update(torch=None, gradual_cf=None); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    run = lambda *args: subprocess.run([sys.executable, '-c', guard, str(CHECKER), *map(str, args)], capture_output=True, text=True)
    done = run(tmp_path/'one.json', '--model', f'{tmp_path}/model.py:ask')
    assert done.returncode == 0 and 'as the record says' in done.stdout, done.stdout + done.stderr
    assert run(tmp_path/'one.json', '--model', tmp_path/'gone.skops').returncode == 2


def test_the_checker_is_short(): assert len(CHECKER.read_text().splitlines()) <= 415


@pytest.mark.night
def test_reasons_stand_in_the_evidence(asked):
    cf, rows, answers, _ = asked
    why = reasons(cf, rows[:3], target='yes')
    told = [json.loads(t) for t in evidence(answers[:3], why, region=False)]
    assert all(len(t['reasons']) == len(why.of(i)) and t['region'] is None for i, t in enumerate(told))


def led():
    "Rows with a column that follows two others, a model that does not read it, and its explainer."
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(late=rng.integers(0, 5, 120), income=rng.gamma(6, 400, 120).round(), age=rng.integers(18, 80, 120)))
    df['sum'] = df.late + df.income
    ask = lambda d: 1/(1 + np.exp(-((d.income - 2400)/900 - .6*(d.late - 2)).to_numpy(float)))
    domain = tabular(df, derive={'sum': lambda d: d.late + d.income}, relations=['late <= age'])
    cf = GradualCF(predictor(ask, domain), domain, 'sparse', classes=('no', 'yes')).fit(df)
    return df, ask, cf


@pytest.mark.night
def test_columns_that_follow_others_may_change():
    df, ask, cf = led()
    texts = evidence(cf.explain(df[ask(df) < .5][:12], 'yes'))
    told = [json.loads(t) for t in texts]
    assert any('sum' in t['answer']['changed'] for t in told) and all(checker.check(t, (ask, ()))[0] == [] for t in told)
    assert all(t['question']['relations'] == ['late <= age', 'sum'] and t['region'] is None for t in told)
    moved = next(t for t in told if 'sum' in t['answer']['changed'])
    at = [c['feature'] for c in moved['question']['constraints']].index('sum')
    alone = {k: v for k, v in moved['question']['constraints'][at].items() if k != 'follows'}
    assert any("'sum' changed and may not" in s for s in checker.check(sealed(changed(moved, ('question', 'constraints', at), alone)), (ask, ()))[0])
    jsonschema = pytest.importorskip('jsonschema')
    jsonschema.Draft202012Validator(answer_schema() | {'$ref': '#/$defs/evidence'}).validate(moved)


# ---- forgeries: over models and domains, each is found, or the field is listed as not checked
def of_loans():
    X, y, test, _ = load_loans()
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0, max_iter=20).fit(X, y)
    cf = GradualCF(model, tabular(X, immutable=['age'])).fit(X)
    rows = test[model.predict(test) == 'refused'][:4]
    answers, others = cf.explain(rows, 'granted', increase_only=['income'], proof='columns'), cf.explain(rows, 'granted', k=2)
    return model, [*(json.loads(t)['sealed'] for t in letter(others, format='json')), *evidence(cf.explain(rows[:1], 'granted', immutable=list(X), proof='columns'))]


def of_two_columns():
    r = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=r.integers(0, 9, 300), b=r.integers(0, 9, 300), k=pd.Categorical(r.choice(['x', 'y', 'z'], 300))))
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features='from_dtype').fit(df, np.where(df.a + df.b + 4*(df.k == 'z') > 8, 'granted', 'refused'))
    cf = GradualCF(model, tabular(df)).fit(df)
    rows = df[model.predict(df) == 'refused']
    far, near = rows[rows.a + rows.b < 4][:2], rows[(rows.k != 'z') & (rows.a + rows.b > 4)][:2]
    return model, [*evidence(cf.explain(far, 'granted', proof='columns')), *evidence(cf.explain(near, 'granted', proof='distance')),
                   *evidence(cf.explain(near, 'granted', bounds=dict(a=(0, 3)), immutable=['b', 'k'], proof='columns')),
                   *evidence(cf.explain(near, 'granted', immutable=['a', 'b'], proof='columns'))]


def of_tiny_numbers():
    r = np.random.default_rng(1)
    df = pd.DataFrame(dict(dose=(r.integers(1, 90, 200)*1e-9).round(9), other=r.integers(0, 5, 200)))
    ask = lambda d: 1/(1 + np.exp(-(d.dose*1e8 - 5 + .1*d.other).to_numpy(float)))
    cf = GradualCF(predictor(ask, domain := tabular(df)), domain, 'sparse', classes=('no', 'yes')).fit(df)
    return ask, evidence(cf.explain(df[ask(df) < .5][:3], 'yes', bounds=dict(dose=(None, 8e-8))))


def of_relations():
    df, ask, cf = led()
    return ask, evidence(cf.explain(df[ask(df) < .5][:4], 'yes'))


def of_causes():
    rng = np.random.default_rng(2)
    df = pd.DataFrame(dict(school=rng.integers(0, 9, 150), age=rng.integers(18, 80, 150)))
    df['income'] = (300*df.school + 1500 + rng.normal(0, 90, 150)).round()
    ask = lambda d: 1/(1 + np.exp(-((d.income - 2800)/300).to_numpy(float)))
    parent = LinearRegression().fit(df[['school']], df.income)
    cf = GradualCF(predictor(ask, domain := tabular(df, immutable=['age'], derive=dict(income=(['school'], parent)))), domain, 'sparse', classes=('no', 'yes')).fit(df)
    return ask, evidence(cf.explain(df[ask(df) < .5][:3], 'yes'))


def of_numbers():
    df = pd.DataFrame(dict(a=np.linspace(0, 9, 60).round(1), b=np.tile([1., 4., 2., 8., 5., 7.], 10)))
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(df, df.a + df.b)
    cf = GradualCF(model, tabular(df)).fit(df)
    return model, evidence(cf.explain(df[:3], target=(12., None), proof='columns'))


def of_three_classes():
    X, y = np.random.default_rng(3).integers(0, 7, (240, 3)), None
    X = pd.DataFrame(X, columns=list('abc'))
    y = np.digitize(X.a + X.b - .5*X.c, [3, 7])
    model = LogisticRegression(max_iter=500).fit(X, y)
    cf = GradualCF(model, tabular(X), tau=.6).fit(X)
    return model, evidence(cf.explain(X[model.predict(X) == 0][:3], 2))


MADE = [of_loans, of_two_columns, of_tiny_numbers, of_relations, of_causes, of_numbers, of_three_classes]


@functools.cache
def made(of):
    model, texts = of()
    return (model, ()), [json.loads(t) for t in texts]


def put(cell):
    "An answer with another cell in the first column that changed."
    def forge(e):
        at = [c['name'] for c in e['columns']].index(e['answer']['changed'][0])
        e['answer']['answer'][at] = cell(e['question']['constraints'][[c['feature'] for c in e['question']['constraints']].index(e['answer']['changed'][0])])
    return forge


def nothing(e):
    a = e['answer']
    a.update(answer=a['data'], changed=[], changes=0, after=a['before'], valid=False, proof='none exists', size=None, bound=None, distance=0.)
    e['proof'].update(said='none exists', size=None, bound=None)
    if e['region']: e['region'] = []


def unread(e, why):
    a = e['answer']
    a.update(read=False, valid=False, changed=[], changes=0, answer=a['data'], before=None, after=None, proof=why, size=None, bound=None)
    e['proof'].update(said=why, of='', size=None, bound=None)
    e['region'] = e['region'] and []


def proven(e, **told):
    "Both places say so."
    e['proof'].update({dict(proof='said').get(k, k): v for k, v in told.items()})
    e['answer'].update({k: v for k, v in told.items() if k != 'of'})


def two(e):
    "A second column that need not have changed, and a proof that two are least."
    c = next(c for c in e['question']['constraints'] if c['may_change'] and c['feature'] not in e['answer']['changed'] and len(e['answer']['changed']) == 1)
    at = [k['name'] for k in e['columns']].index(c['feature'])
    new = next(v for v in c.get('levels', (c.get('high'), c.get('low'))) if v != e['answer']['data'][at])
    e['answer']['answer'][at] = int(new) if type(e['answer']['data'][at]) is int else new
    e['answer']['changed'].append(c['feature'])
    proven(e, size=2., bound=2., proof='optimal', of='columns')
    e['answer']['changes'], e['region'] = 2, None


def levels_of(e): return next(c for c in e['columns'] if 'levels' in c)


def ranged(e, end, far): line = next(r for r in e['region'] if r[end] is not None); line[end] = far(line[end])


def named(e): return next(r for r in e['region'] if r['levels'])


FORGED = dict(  # in several places at once; what can be changed in one is walked below
    too_much=put(lambda c: c['high'] + 1 if type(c['high']) is float else 'gold'), too_little=put(lambda c: c['low'] - (5e-10 if 0 < c['low'] < 1e-6 else 1)),
    a_level_of_nothing=put(lambda c: c['levels'] and 'gold'), many_decimals=put(lambda c: c['low'] + .123), put_back=lambda e: e['answer'].update(answer=e['answer']['data']),
    may_not=lambda e: [c.update(may_change=False) for c in e['question']['constraints'] if not c.get('follows')],
    higher_floor=lambda e: [c.update(low=c['high'] + 1) for c in e['question']['constraints'] if type(c.get('high')) is float],
    on_other_steps=lambda e: [c.update(step=10007.) for c in e['question']['constraints'] if 'low' in c],
    a_code=lambda e: [c.update(codes=[float(v) for v in e['answer']['answer'] if type(v) in (int, float)]) for c in e['question']['constraints'] if 'low' in c],
    classes_upside_down=lambda e: (e['question']['classes'].reverse(), [e[k].update(target=e['question']['classes'][::-1][e['question']['classes'].index(e[k]['target'])]) for k in ('question', 'answer')]),
    both_classes_upside_down=lambda e: (e['question']['classes'].reverse(), e['model']['classes'].reverse()),
    valid_but_none_exists=lambda e: proven(e, proof='none exists'), size_99_twice=lambda e: proven(e, size=99., bound=99.),
    more_than_least=lambda e: proven(e, bound=e['answer']['size'] + 1), optimal_without_bound=lambda e: proven(e, proof='optimal', bound=0.),
    within_a_hair=lambda e: proven(e, proof='within 1%', of='distance', bound=e['answer']['size']/2), proven_by_nobody=lambda e: proven(e, of=''), sizes_by_cost=lambda e: proven(e, size=None, of='cost'),
    strange_proof=lambda e: proven(e, proof='surely'), has_an_answer_none_exists=nothing, two_where_one_will_do=two,
    not_read_and_empty=lambda e: unread(e, 'not read: 7 is no number'), not_read_for_no_reason=lambda e: unread(e, ''),
    region_past_the_bounds=lambda e: ranged(e, 'high', lambda v: v*10 + 10),
    region_too_wide=lambda e: [line.update({end: c[end] for end in ('low', 'high')}) for line in e['region'] for c in e['question']['constraints']
                               if c['feature'] == line['feature'] and line['low'] is not None],
    region_of_all_levels=lambda e: named(e).update(levels=list(levels_of(e)['levels'])),
    region_upside_down=lambda e: [line.update(low=line['high'], high=line['low']) for line in e['region'] if line['low'] != line['high']],
    follows_nothing=lambda e: [c.update(follows=True) for c in e['question']['constraints']])
NOBODY_CAN = dict(classes_upside_down='question.classes',  # where a function does not say what it gives
                  higher_floor='question.constraints[].low', may_not='question.constraints[].may_change', on_other_steps='question.constraints[].step', a_code='question.constraints[].codes',  # of what did not change
                  has_an_answer_none_exists='proof.said', proven_by_nobody='proof.of', sizes_by_cost='proof.of')  # where relations tie columns; where none exists


OF_FOLLOWERS = 'too_much', 'too_little', 'many_decimals'  # what follows from relations is not computed again


def forged(told, forge):
    "A decision that was changed and sealed anew; None where there is nothing of the kind to change."
    new = json.loads(json.dumps(told))
    try: forge(new)
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError): return None
    return sealed(new) if new != told else None


@pytest.mark.parametrize('of', MADE)
def test_honest_decisions_pass(of):
    jsonschema = pytest.importorskip('jsonschema')
    asked, decisions = made(of)
    fits = jsonschema.Draft202012Validator(answer_schema() | {'$ref': '#/$defs/evidence'})
    for told in decisions:
        fits.validate(told)
        assert checker.check(told, asked)[0] == []


@pytest.mark.night
def test_every_kind_of_forgery_is_found():
    "Each kind over all decisions to which it can be done; at least one of each kind is refuted, and none is listed alone."
    assert len(FORGED) > 25
    for name, forge in FORGED.items():
        tried, open_ = 0, NOBODY_CAN.get(name)
        for of in MADE:
            asked, decisions = made(of)
            for told in decisions:
                if (bad := forged(told, forge)) is None: continue
                try: faults, notes = checker.check(bad, asked)
                except checker.Unreadable: tried += 1; continue
                tried += bool(faults)
                assert faults or open_ in notes or name in OF_FOLLOWERS and bad['question']['relations'] and 'answer.answer' in notes, (of.__name__, name)
        assert tried, name


@pytest.mark.night
def test_another_kind_of_answer_is_found_where_the_model_says_what_it_gives():
    "A forger who asks the model himself, and takes what it says for logits."
    for asked, decisions in map(made, MADE):
        told = json.loads(json.dumps(decisions[0]))
        if told['model']['kind'] != 'proba': continue
        told['model']['kind'] = 'logit'
        (before, after), (_, there) = checker.says(asked, told, [told['answer'][k] for k in ('data', 'answer')])
        told['answer'].update(before=float(before), after=float(after), valid=bool(there))
        faults, notes = checker.check(sealed(told), asked)
        assert 'the model gives no logit' in faults if hasattr(asked[0], 'predict') else notes['model.kind'] == 'the model does not say'


def walked(asked, told, few=True):
    "What a walk over all places of a record led to: how often each, and what passed. A fault of the checker is one of the walk."
    tally, passed = dict(unreadable=0, refuted=0, listed=0), []
    said = dict(schema_leaves(answer_schema()['$defs']['evidence']))
    for field, how, bad in walk(told, few):
        try: faults, notes = checker.check(bad, asked)
        except checker.Unreadable: kind = 'unreadable'
        else: kind = 'refuted' if faults else 'listed' if re.sub(r'(\[\])+$', '', field) in notes or how.startswith('without ') and said.get(field, '').startswith('told') else ''
        if kind: tally[kind] += 1
        else: passed.append((field, how))
    return tally, passed


@pytest.mark.night
@pytest.mark.parametrize('of', MADE)
def test_no_place_of_a_record_is_forgotten(of, monkeypatch):
    "Whatever is changed in whichever place of a decision: it is found, or the check says that it does not check this field."
    monkeypatch.setattr(checker, 'TRIED', 50)
    asked, decisions = made(of)
    tally, passed = walked(asked, next(told for told in decisions if told['answer']['valid']))
    assert passed == [] and min(tally.values()) > 50, (tally, passed)


@pytest.mark.night
def test_a_key_that_stands_twice_is_unreadable():
    for told in (made(of)[1][0] for of in (of_two_columns, of_numbers)):
        for path, v in [((), told), *places(told)]:
            if not isinstance(v, dict): continue
            for k in v:
                text = json.dumps(changed(dict(all=told), ('all', *path), v | {'\0': v[k]}))
                with pytest.raises(checker.Unreadable, match='each key once'): checker.read(text.replace('"\\u0000"', json.dumps(k)))


def schema_leaves(node, path=''):
    "Fields of the schema, and what is said of their check."
    node = answer_schema()['$defs'][node['$ref'].split('/')[-1]] | node if '$ref' in node else node
    inner = node.get('items', {})
    if 'properties' in node:
        if '$comment' in node: yield path[1:], node['$comment']
        for k, u in node['properties'].items(): yield from schema_leaves(u, f'{path}.{k}')
    elif '$ref' in inner or 'properties' in inner:
        if '$comment' in node: yield path[1:], node['$comment']
        if '$ref' not in inner or 'properties' in answer_schema()['$defs'][inner['$ref'].split('/')[-1]]: yield from schema_leaves(inner, f'{path}[]')
    else: yield path[1:], node.get('$comment')


@pytest.mark.night
def test_the_schema_says_of_every_field_whether_it_is_checked():
    fields = dict(schema_leaves(answer_schema()['$defs']['evidence']))
    assert len(fields) > 60 and not [f for f, said in fields.items() if said is None or not re.fullmatch('checked|told: .+', said)]
    there = {re.sub(r'(\[\])+$', '', field_of(path)) for of in MADE for told in made(of)[1] for path, v in places(told) if not isinstance(v, (dict, list))}
    assert not there - fields.keys()




def evidence_of_anything(seed, ask):
    "Decisions about a random question hold, and fit the schema; how many there are, by what is proven."
    from questions import anything, question, validator
    case = anything(seed, ask)
    while case['model'] in ('agreeing', 'network', 'bent', 'whisper'): case, seed = anything(seed + 10**6, ask), seed + 10**6
    if (q := question(case, seed)) is None: return []
    predictor = q.cf.model.predictor
    how = dict(proof=ask) if ask in ('columns', 'distance', 'cost') else {}
    try: answers = q.cf.explain(q.rows, q.target, limit=2., **q.told, **how)
    except ValueError: return []  # a model that nobody can bound
    for text in evidence(answers):
        validator('evidence').validate(told := json.loads(text))
        faults, _ = checker.check(told, (predictor.source if predictor.whole is None else predictor.whole, tuple(predictor.names)))
        assert faults == [], (seed, case, faults)
    return list(answers.proof)


@pytest.mark.filterwarnings(*SAID)
def test_decisions_about_anything_hold():
    pytest.importorskip('jsonschema')
    assert sum((evidence_of_anything(seed, 'columns') for seed in range(4)), [])


def test_ends_of_ranges_of_dates_are_dates():
    days = tabular(pd.DataFrame(dict(day=pd.date_range('2020-01-01', periods=60)))).features[0]
    assert [_end(days, v) for v in (days.low, days.high, np.inf)] == ['2020-01-01T00:00:00', '2020-02-29T00:00:00', None]
