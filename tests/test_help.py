"""`help` says every argument with its meaning, and its examples run as they stand."""
import inspect
import json
import re
from pathlib import Path

import gradual_cf
import pandas as pd
import pytest
from gradual_cf import all as everything, core
from gradual_cf.all import GradualCF, load_loans, tabular
from sklearn.ensemble import HistGradientBoostingClassifier

NAMES = [n for n in everything.__all__ if callable(getattr(everything, n)) and getattr(getattr(everything, n), '__module__', '').startswith('gradual_cf.')]
METHODS = ['GradualCF.explain', 'GradualCF.fit', 'GradualCF.under', 'GradualCF.trace', 'GradualCF.save']
FIRST = ['GradualCF', *METHODS, 'tabular', 'images', 'load_task', 'predictor', 'evaluate', 'confirm', 'improve', 'prove', 'letter', 'audit', 'reasons', 'checks', 'ablate',
         'as_batches', 'explain_dataset', 'stepper', 'explorer']


def of(name):
    cls, _, method = name.partition('.')
    return getattr(getattr(everything, cls), method) if method else getattr(everything, cls)


def sections(doc):
    "Title -> lines of each section of a docstring in numpy's style; what stands before them is its summary."
    lines, found, at = doc.split('\n'), {'': []}, ''
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {'-'}: found[at := line] = []
        elif not line or set(line) != {'-'}: found[at].append(line)
    return found


def entries(lines): return {line.partition(' : ')[0].strip('*'): lines[i + 1].strip() if i + 1 < len(lines) else '' for i, line in enumerate(lines) if line and line[0] != ' '}


def test_help_names_every_argument_and_what_it_means():
    checked = 0
    for name in [*NAMES, *METHODS]:
        obj = of(name)
        if isinstance(obj, type) and issubclass(obj, (tuple, Exception)): continue
        asked = inspect.signature(vars(obj).get('__init__', obj) if isinstance(obj, type) else obj).parameters
        said = sections(inspect.getdoc(obj) or '')
        told = entries([line for title in ('Parameters', 'Other Parameters', 'Attributes') for line in said.get(title, [])])
        missing = [p for p in asked if p not in ('self', 'args', 'kwargs') and not told.get(p)]
        if isinstance(obj, type) and not told: continue  # nobody makes one by hand
        assert not missing, (name, missing)
        checked += len(asked)
    assert checked > 400


def test_help_of_an_explainer_says_its_settings_and_their_ranges():
    said = entries(sections(inspect.getdoc(GradualCF))['Other Parameters'])
    assert said['logit_margin'].startswith('Stop only') and {f for f in GradualCF.Settings.__dataclass_fields__} <= {*said}
    doc = inspect.getdoc(GradualCF)
    assert 'masking : one of (' in doc and 'lam : at least 0, default 0.3' in doc and 'tau_slack : in [0, 1), default' in doc
    assert 'tau_slack : in [0, 1), default 0.02' in GradualCF.Settings.__doc__


def test_errors_stand_in_a_section_of_their_own():
    said = sections(inspect.getdoc(tabular))
    assert said['Raises'][0] == 'ValueError' and 'contradictions' in said['Raises'][1] and said['Returns'][0] == 'Domain'


@pytest.fixture(scope='module')
def first(tmp_path_factory):
    "What the example of `GradualCF` makes, by which the others begin."
    X, y, X_test, y_test = load_loans()
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', max_iter=20, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X, immutable=['age'])).fit(X)
    answers = cf.explain(X_test[model.predict(X_test) == 'refused'][:5], 'granted')
    return dict(vars(everything), HistGradientBoostingClassifier=HistGradientBoostingClassifier, X=X, y=y, X_test=X_test, y_test=y_test, model=model, cf=cf, answers=answers)


@pytest.mark.night
@pytest.mark.parametrize('name', FIRST)
def test_examples_run_as_they_stand(name, first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.removeprefix('>>> ') for line in sections(inspect.getdoc(of(name)))['Examples'] if line.startswith('>>> ')]
    names = dict(first)
    for line in lines: exec(line, names)
    assert lines and set(gradual_cf.__all__) & set(' '.join(lines).replace('(', ' ').replace('.', ' ').split()) or 'cf' in lines[-1]


LINES = sorted({line for _, line in core._foreign_names()[1].items()})
GUESSES = [line.strip() for line in """
    gc.explain(model, rows, X) | GradualCF(model).fit(X) | cf(rows) | GradualCF(model, X.to_numpy()) | GradualCF(X, model) | GradualCF(model, X, method='sparse') | GradualCF(model, X, positive='granted')
    GradualCF(model, X, sparsity=2) | cf.explain(rows, total_CFs=4) | cf.explain(rows, num_cfs=2) | cf.explain(rows, features_to_vary=['income']) | cf.explain(rows, desired_class='opposite') | cf.explain(rows, cost={})
    cf.explain(rows, imutable=['age']) | cf.explain(rows, colour='red') | cf.explain() | cf.explain(rows, timeout=3) | cf.explain(rows, verbose=True) | cf.explain(rows, random_state=1) | cf.explain(rows, robust=.8)
    cf.explain(rows, optimal='columns') | cf.explain(rows, 'granted', 4, [], None, [], [], None, None, None, 7) | cf.generate_counterfactuals(rows) | cf.get_params() | cf.set_params(tau=.6) | cf.predict(rows) | cf.shap_values(rows)
    answers.to_df() | answers.cfs | answers.cf_examples_list | answers.show() | answers.to_dict() | answers.metrics() | answers.iloc[0] | answers.robustness() | answers.letter(lang='de') | answers.letter(sender='Bank')
    answers.letter('letter.doc') | answers.plot(figsize=(3, 3)) | letter(cf, rows) | prove(cf, rows) | prove(rows) | confirm(answers) | evaluate(answers) | explorer(answers) | reasons(answers) | audit(answers, 'housing')
    audit(cf, X_test, groups='housing') | audit(cf, X_test, 'housing') | reasons(cf, rows) | tabular(X, monotone={'age': 1}) | tabular(X, actionable=['income']) | tabular(X, rules=['debt <= income']) | tabular(X, levels={'housing': ['owns']})
    tabular(X, integer=['age']) | tabular() | explain_dataset('in.csv', cf, 'out') | explain_dataset(cf, rows) | explain_dataset(cf, rows, 'f', n_jobs=2) | as_batches(rows) | as_batches(cf, seed=3) | stepper(cf) | gc.load('m')
    gc.actions(cf, rows) | gc.Dice(model) | gc.DataFrame(X) | gc.alternatives(cf, rows) | cf.under(robust=.8) | cf.under('believable') | cf.fit() | cf.trace(rows[:1], total_CFs=3) | checks(answers) | images(3) | sentences(vectors=1, beam=0)
""".replace('\n', '|').split('|') if line.strip()]


@pytest.fixture(scope='module')
def asked(first):
    refused = first['X_test'][first['model'].predict(first['X_test']) == 'refused']
    return first | dict(gc=gradual_cf, pd=pd, core=core, rows=refused[:3], answers=first['cf'].explain(refused[:3], 'granted'))


@pytest.mark.parametrize('line', LINES)
def test_every_line_that_an_error_tells_to_write_runs(line, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked['cf'].save('folder')
    assert eval(line, dict(asked)) is not None


@pytest.mark.parametrize('guess', GUESSES)
def test_what_people_write_first_is_answered_in_words(guess, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked['cf'].save('folder')
    with pytest.raises((TypeError, ValueError, AttributeError)) as e: eval(guess, dict(asked))
    said = str(e.value)
    assert 'unexpected keyword' not in said and 'positional argument' not in said.partition(': write')[0].replace('too many positional arguments', '') and 'object has no attribute' not in said, said
    if ': write ' in said and not said.partition(': write ')[2].startswith('one of'): assert eval(said.rpartition(': write ')[2].split(', or ')[0], dict(asked)) is not None


@pytest.fixture(scope='module')
def first_page():
    "What the first page says in its text, and the names that its code defines."
    cells = json.loads((Path(__file__).parent.parent/'nbs/index.ipynb').read_text())['cells']
    names = {}
    for c in cells:
        if c['cell_type'] == 'code': exec(''.join(c['source']), names)
    return re.sub(r'```.*?```', '', '\n'.join(''.join(c['source']) for c in cells if c['cell_type'] == 'markdown'), flags=re.S), names


def test_lines_that_the_first_page_names_in_running_text_run(first_page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prose, names = first_page
    calls = [code for code in re.findall(r'`([^`\n]+)`', prose) if re.match(r'\w+(\.\w+|\[[^]]*\])*\(', code)]
    for code in calls: assert eval(code, names) is not None
    assert len(calls) >= 6


def test_the_pictures_of_the_first_page_show_what_its_code_says_today(first_page, monkeypatch):
    "The card, the letter and the panel are pictures; the figures told of each are those of the page or the plot of which it is one."
    monkeypatch.syspath_prepend(Path(__file__).parent.parent/'docs')
    import pictures
    card, *pages = pictures.shown(first_page[1])
    said = dict(zip(('card', 'letter', 'panel'), [' '.join(t.get_text() for t in card.findobj(lambda o: hasattr(o, 'get_text'))), *pages]))
    told = {name: words for words, name in re.findall(r'!\[([^]]+)\]\(images/(\w+)\.png\)', first_page[0])}
    assert set(told) == set(said)
    for name, words in told.items():
        assert (pictures.IMAGES/f'{name}.png').stat().st_size < 60_000
        for figure in re.findall(r'\d[\d,]*', words): assert figure in said[name], (name, figure)
