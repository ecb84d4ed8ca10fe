"""The house rules that a program can check, and three limits: code, arrows between folders, pages in the navigation."""
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from configparser import ConfigParser
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

CODE, PAGES = 23_840, 60  # most lines of code (2% above what is there) and most pages in the navigation, the chapters apart
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'docs'))
import doors  # noqa: E402
import layout  # noqa: E402

NOTEBOOKS = sorted((ROOT/'nbs').rglob('[0-9]*.ipynb'))  # those that write modules
SHELVES = 'models search data baselines measures use scale paper'.split()


class Cell(NamedTuple):
    "A cell of a notebook."
    kind: str  # 'code' or 'markdown'
    source: str

    @property
    def exported(self): return self.kind == 'code' and bool(re.search(r'^#\|\s*exports?i?\b', self.source, re.M))
    @property
    def tree(self): return ast.parse(self.source)


@cache
def cells(nb):
    "Cells of a notebook; cell magics and empty cells are left out."
    read = json.loads(nb.read_text())['cells']
    return [c for r in read if (c := Cell(r['cell_type'], ''.join(r['source']))).source.strip() and c.source[:2] != '%%']


def exports(nb): return [c for c in cells(nb) if c.exported]


def module(nb): return next(m[1] for c in cells(nb) if c.kind == 'code' and (m := re.search(r'#\|\s*default_exp\s+(\S+)', c.source)))


def code_lines(text):
    "How many lines of a module hold code: those of docstrings, comments and blanks do not."
    told = [n.body[0] for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(n) is not None]
    silent = tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
    lines = {i for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in silent for i in range(t.start[0], t.end[0] + 1)}
    return len(lines - {i for n in told for i in range(n.lineno, n.end_lineno + 1)})


def test_there_is_room_for_code():
    assert code_lines('"""Said."""\ndef f():  # one\n    "Two."\n\n    return (1,\n            2)\n') == 3
    lines = sum(code_lines(f.read_text()) for f in (ROOT/'gradual_cf').rglob('*.py') if f.name != '_modidx.py')
    assert lines <= CODE, 'find what the new code replaces'


def opening_of(title, *two):
    "The question of a notebook that starts with its title, its module, and the question that it answers; '' for another start."
    question = [c.source for c in two if c.kind == 'markdown' and len(c.source) > 60]
    return question[0] if title.source.startswith('# ') and '\n> ' in title.source and 'default_exp' in ''.join(c.source for c in two) and question else ''


def test_first_cells():
    assert len(NOTEBOOKS) > 50 and not [nb.stem for nb in NOTEBOOKS if not opening_of(*cells(nb)[:3])]


def test_no_line_is_wide():
    assert not [(nb.stem, line) for nb in NOTEBOOKS for c in exports(nb) for line in c.source.splitlines() if len(line) > 140 and not line.startswith('#|')]


def test_numbers_of_chapters_are_unique_within_a_shelf():
    for shelf in {nb.parent for nb in NOTEBOOKS}:
        numbers = sorted(nb.name[:2] for nb in NOTEBOOKS if nb.parent == shelf)
        assert len(set(numbers)) == len(numbers), shelf


OPENED = 'nbs models data search measures baselines paper use scale'.split()  # folders whose chapters name in their opening what they offer


def test_a_chapter_opens_with_the_functions_that_it_offers():
    "The cell of the question names each public function in code font; a chapter that has no public name says which chapter takes what it makes."
    looked = 0
    for nb in NOTEBOOKS:
        if nb.parent.name not in OPENED or module(nb) == 'all': continue
        opening, defined = opening_of(*cells(nb)[:3]), [n for c in exports(nb) for n in c.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name[0] != '_']
        said = set(re.findall(r'`(\w+)`', opening))
        assert not [n.name for n in defined if isinstance(n, ast.FunctionDef) and n.name not in said], f'{nb.name}: name them in the opening, and say how they differ'
        assert defined or 'No name of it is public' in opening and '.ipynb)' in opening.partition('No name of it is public')[2], nb.name
        looked += 1
    assert looked > 40


def own_imports(tree, modules):
    "Modules of the package that some code imports, wherever in it: `from gradual_cf.x import y`, `from gradual_cf import x`, `import gradual_cf.x`."
    for n in ast.walk(tree):
        if isinstance(n, ast.Import): names = [a.name for a in n.names]
        elif isinstance(n, ast.ImportFrom): names = [n.module or '', *(f'{n.module}.{a.name}' for a in n.names)]
        else: continue
        yield from {m for name in names if (m := name.removeprefix('gradual_cf.')) in modules and m != name}


def hidden_imports(tree):
    "Modules of the package that come in by another way: `import_module` with a name of ours, or a name that the package loads when it is asked for."
    for n in ast.walk(tree):
        if isinstance(n, ast.Call) and ast.unparse(n.func).split('.')[-1] in ('import_module', '__import__'):
            if any(isinstance(v, ast.Constant) and 'gradual_cf' in str(v.value) or isinstance(v, ast.Name) and v.id in ('__name__', '__package__')
                   for v in ast.walk(n)): yield ast.unparse(n)
        if isinstance(n, ast.ImportFrom) and n.module == 'gradual_cf': yield from (a.name for a in n.names if a.name not in SHELVES)
        if isinstance(n, ast.Attribute) and ast.unparse(n.value) == 'gradual_cf' and n.attr[:2] != '__' and n.attr not in SHELVES: yield ast.unparse(n)


@pytest.fixture(scope='module')
def imported():
    "Module -> the modules of the package that its exported cells import, those inside of functions included."
    modules = {module(nb) for nb in NOTEBOOKS}
    return {module(nb): {m for c in exports(nb) for m in own_imports(c.tree, modules)} for nb in NOTEBOOKS}


def test_every_way_to_import_is_read():
    tree = ast.parse("""import gradual_cf, gradual_cf.core
from gradual_cf.data import tables
def later():
    from gradual_cf.gradual import GradualCF
    from importlib import import_module
    return import_module(f'gradual_cf.{name}'), importlib.import_module('gradual_cf.cli'), import_module('shap'), gradual_cf.tabular, gradual_cf.__version__""")
    assert set(own_imports(tree, {'core', 'data.tables', 'data.images', 'gradual'})) == {'core', 'data.tables', 'gradual'}
    assert [*hidden_imports(tree)] == ["import_module(f'gradual_cf.{name}')", "importlib.import_module('gradual_cf.cli')", 'gradual_cf.tabular']


def test_imports_go_one_way(imported):
    "No module imports, directly or through others, one that imports it."
    assert len(imported) == len(NOTEBOOKS) and sum(map(len, imported.values())) > 300
    TopologicalSorter(imported).prepare()  # raises where there is a circle


UPWARD = {'measures.metrics use.alternatives'}  # arrows between folders that go up all the same: what is `minimal` is told by changes put back


def test_no_new_arrow_goes_up(imported):
    assert {f'{m} {other}' for m, others in imported.items() for other in others if layout.floor(other) > layout.floor(m)} <= UPWARD


def test_the_drawing_of_the_house_is_what_the_imports_say(imported):
    read = layout.package()[1]
    assert {m: others - {m} for m, others in imported.items()} == read  # two readers of imports agree
    assert layout.DRAWING.read_text() == layout.drawing(), 'run `make export`'
    assert sum(n for (a, b), n in layout.arrows(read).items() if b > a) == len(UPWARD)


def test_the_walk_of_one_row_passes_functions_that_there_are():
    text = (ROOT/'CONTRIBUTING.md').read_text()
    walk = re.findall(r'^\d+\. `([\w.]+)`: (.+)$', text.split(layout.MARKS[0])[1].split(layout.MARKS[1])[0], re.M)
    assert len(walk) > 15 and layout.put_walk(text, ['1.']) != text == layout.put_walk(text, [f'{i}. `{m}`: {names}' for i, (m, names) in enumerate(walk, 1)])
    for m, names in walk:
        tree = ast.parse((ROOT/'gradual_cf'/f'{m.replace(".", "/")}.py').read_text())
        there = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        assert not {part for name in names.split(', ') for part in name.split('.')} - there, f'{m}: run python docs/layout.py'


def test_a_walk_has_each_function_once_in_the_order_of_its_turn():
    from gradual_cf.core import check_range
    assert layout.walk(lambda: [check_range('k', 1, least=0), check_range('k', 2)]) == {'core': ['check_range']}


def test_no_import_is_hidden():
    "Only the table of the package itself, which is no notebook, loads modules by name."
    for nb in NOTEBOOKS:
        for c in exports(nb): assert not [*hidden_imports(c.tree)], nb.name


def test_pages_for_people_are_few():
    "The book stands beside them: its chapters are all notebooks that are no page for people."
    behind = doors.for_people()
    assert behind.total() <= PAGES and set(behind) == {*doors.DOORS} - {doors.BOOK}, behind
    book = {line.page for line in doors.places().values() if line.door == doors.BOOK}
    assert {doors.stem(nb) for nb in NOTEBOOKS} - {'cli', 'all'} == book - {f'{s}-shelf' for s in doors.SHELVES} and set(doors.SHELVES) == set(SHELVES)


def test_every_shelf_has_an_index(imported):
    assert {m.partition('.')[0] for m in imported if '.' in m} == set(SHELVES)
    for s in SHELVES: assert (ROOT/'nbs'/s/'index.ipynb').exists()


def test_data_does_not_know_the_explainer(imported):
    for m, others in imported.items():
        if m.startswith(('data.', 'models.')): assert not others & {'gradual', 'search.settings', 'search.question', 'search.answer', 'search.steps', 'search.plausible'}, m


def test_the_package_is_what_the_notebooks_export():
    wrote = {module(nb).replace('.', '/') for nb in NOTEBOOKS}
    there = {str(p.relative_to(ROOT/'gradual_cf').with_suffix('')) for p in (ROOT/'gradual_cf').rglob('*.py') if 'templates' not in p.parts} - {'__init__', '_modidx'}
    assert {t for t in there if not t.endswith('__init__')} == wrote


def test_a_wheel_has_every_module_but_the_index_of_nbdev(tmp_path):
    subprocess.run([sys.executable, 'setup.py', '-q', 'build_py', '--build-lib', str(tmp_path)], check=True, cwd=ROOT)
    modules = lambda at: {p.relative_to(at).as_posix() for p in (at/'gradual_cf').rglob('*.py')}
    assert modules(ROOT) - modules(tmp_path) == {'gradual_cf/_modidx.py'}


def public_functions(tree):
    "Public functions of a cell, and methods of its classes."
    for n in tree.body:
        of_class = n.body if isinstance(n, ast.ClassDef) else []
        yield from (f for f in (n, *of_class) if isinstance(f, ast.FunctionDef) and (f.name[0] != '_' or f.name == '__init__'))


def test_every_public_argument_has_a_docment():
    for nb in NOTEBOOKS:
        if module(nb) == 'cli': continue                    # its arguments carry their help texts
        for c in exports(nb):
            lines = c.source.splitlines()
            for f in public_functions(c.tree):
                said = [a.lineno for a in (*f.args.args, *f.args.kwonlyargs) if a.arg not in ('self', 'cls') and a.lineno > f.lineno]
                for i in said: assert '#' in lines[i - 1], f'{nb.name} {f.name}: {lines[i - 1].strip()}'


def in_a_new_process(code): return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_package_gives_the_names_that_people_need_and_is_light_to_import():
    code = """import sys, gradual_cf as gc
assert not {'torch', 'pandas', 'numpy', 'matplotlib'} & set(sys.modules)
from gradual_cf.data.tables import tabular
import gradual_cf.data.images
assert gc.tabular is tabular and gc.images is sys.modules['gradual_cf.data.images'].images  # functions, whoever imports their modules
print([[n, getattr(gc, n).__module__] for n in gc.__all__ if callable(getattr(gc, n))])
try: gc.nothing
except AttributeError as e: assert 'nothing' in str(e)
else: raise AssertionError
import gradual_cf.all
assert not {'ray', 'transformers', 'nbdev', 'datasets', 'captum', 'sklearn', 'pyarrow.parquet'} & set(sys.modules)"""
    import gradual_cf as gc
    assert all(m.startswith('gradual_cf.') for _,m in eval(in_a_new_process(code)))
    assert set(dir(gc)) == {*gc.__all__, '__version__'}
    typed = [n for n in ast.walk(ast.parse((ROOT/'gradual_cf/__init__.py').read_text())) if isinstance(n, ast.ImportFrom) and n.level]
    assert {(a.name, n.module) for n in typed for a in n.names} == {*gc._HOME.items()}  # what type checkers read


def test_a_star_overwrites_no_names_of_other_packages():
    from gradual_cf import all as public
    short = {'Explainer', 'Target', 'State', 'Domain', 'Display', 'Trace', 'Common', 'box', 'chain', 'compose', 'cost', 'mix', 'probe', 'steps', 'prototypes'}
    assert not short & set(public.__all__) and all(hasattr(public, n) for n in short)
    import gradual_cf as gc
    assert set(gc.__all__) <= set(public.__all__)


def named(requirement): return re.match(r'[A-Za-z0-9_.-]+', requirement)[0].lower().replace('_', '-')


def requirements():
    "Every list of requirements in settings.ini, as names of packages."
    ini = ConfigParser(delimiters=['='], interpolation=None)
    ini.read(ROOT/'settings.ini')
    return {k: {named(r) for r in v.split()} for k,v in ini['DEFAULT'].items() if k.endswith('requirements')}


def test_constraints_pin_every_requirement():
    pins = {named(l) for l in (ROOT/'constraints.txt').read_text().split()}
    assert set().union(*requirements().values()) <= pins


def imported_by(tree):
    "The packages that a module imports, wherever in it."
    for n in ast.walk(tree):
        if isinstance(n, ast.Import): yield from (a.name.partition('.')[0] for a in n.names)
        if isinstance(n, ast.ImportFrom) and not n.level: yield n.module.partition('.')[0]


def test_tests_skip_where_an_extra_is_missing():
    "`make test` installs the extra `dev` alone, and CI all of them: what only another one brings is imported behind a skip."
    lists = requirements()
    extras = set().union(*lists.values()) - lists['requirements'] - lists['dev_requirements'] - lists['docs_requirements']
    assert {'ray', 'spacy', 'catboost'} <= extras
    for file in (ROOT/'tests').glob('test_*.py'):
        text = file.read_text()
        for name in extras & set(imported_by(ast.parse(text))):
            assert f"importorskip('{name}" in text, f'{file.name} imports {name}'
