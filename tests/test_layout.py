"""The house rules that a program can check."""
import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'benchmarks'))
import house  # noqa: E402

NOTEBOOKS = house.notebooks(ROOT)
FLOORS = '01234569'  # the method, data and models, baselines, measures, tools, answers in use, the paper, ways in


def exports(nb): return [c for c in house.cells(nb) if c.exported]


def module(nb): return next(m[1] for c in house.cells(nb) if c.kind == 'code' and (m := re.search(r'#\|\s*default_exp\s+(\S+)', c.source)))


@pytest.mark.parametrize('nb', NOTEBOOKS, ids=lambda p: p.stem)
def test_first_cells(nb):
    title, exp, question = house.cells(nb)[:3]
    assert title.source.startswith('# ') and '\n> ' in title.source
    assert 'default_exp' in exp.source
    assert question.kind == 'markdown' and len(question.source) > 60   # the question it answers


@pytest.mark.parametrize('nb', NOTEBOOKS, ids=lambda p: p.stem)
def test_export_cells_are_small(nb):
    assert {c.lines[0][1]: len(c.lines) for c in exports(nb) if len(c.lines) > 30 and not house.only_imports(c.tree)} == {}
    assert [l for c in exports(nb) for _, l in c.lines if len(l) > house.WIDEST] == []


@pytest.fixture(scope='module')
def measured(): return house.measure(ROOT)


def test_few_lines_are_wide(measured): assert measured['wide'] <= .015


def test_exports_are_short(measured): assert measured['body'] <= 8


def test_exports_are_run_at_once(measured): assert measured['run'] >= .5


def test_few_names_are_public(measured): assert measured['public'] <= 160


def test_imports_point_down():
    place = {module(nb): i for i,nb in enumerate(NOTEBOOKS)}  # in the order of their files' names
    assert len(place) == len(NOTEBOOKS) and {nb.stem[0] for nb in NOTEBOOKS} <= set(FLOORS)
    for nb in NOTEBOOKS:
        for m in re.findall(r'from gradual_cf\.([\w.]+) import', '\n'.join(c.source for c in exports(nb))):
            assert place[m] < place[module(nb)] or m == module(nb), f'{nb.name} imports {m}'  # itself in another process


def test_the_package_is_what_the_notebooks_export():
    wrote = {module(nb).replace('.', '/') for nb in NOTEBOOKS}
    there = {str(p.relative_to(ROOT/'gradual_cf').with_suffix('')) for p in (ROOT/'gradual_cf').rglob('*.py')} - {'__init__', '_modidx'}
    assert {t for t in there if not t.endswith('__init__')} == wrote


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


def test_light_to_import():
    code = 'import sys, gradual_cf.all; print([m for m in ("ray", "transformers", "nbdev", "datasets", "captum", "sklearn", "pyarrow.parquet") if m in sys.modules])'
    r = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert eval(r.stdout) == []


def test_constraints_pin_every_requirement():
    ini = ConfigParser(delimiters=['='], interpolation=None)
    ini.read(ROOT/'settings.ini')
    name = lambda r: re.match(r'[A-Za-z0-9_.-]+', r)[0].lower().replace('_', '-')
    pins = {name(l) for l in (ROOT/'constraints.txt').read_text().split()}
    wanted = {name(r) for k,v in ini['DEFAULT'].items() if k.endswith('requirements') for r in v.split()}
    assert wanted <= pins
