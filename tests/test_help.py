"""`help` says every argument with its meaning, and its examples run as they stand."""
import inspect

import gradual_cf
import pytest
from gradual_cf import all as everything
from gradual_cf.all import GradualCF, load_loans, tabular
from sklearn.ensemble import HistGradientBoostingClassifier

NAMES = [n for n in everything.__all__ if callable(getattr(everything, n)) and getattr(getattr(everything, n), '__module__', '').startswith('gradual_cf.')]
METHODS = ['GradualCF.explain', 'GradualCF.fit', 'GradualCF.trace', 'GradualCF.save']
FIRST = ['GradualCF', *METHODS, 'tabular', 'images', 'load_task', 'predictor', 'evaluate', 'confirm', 'improve', 'prove', 'letter', 'audit', 'actions', 'stepper', 'explorer']


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
