"""The house rules that a program can check."""
import json
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT/'nbs').glob('[0-9]*.ipynb'))


def cells(nb, kind):
    "Sources of a notebook's cells of one kind."
    return [''.join(c['source']) for c in json.loads(nb.read_text())['cells'] if c['cell_type'] == kind]


def exports(nb): return [s for s in cells(nb, 'code') if re.search(r'^#\|\s*export', s, re.M)]

def module(nb): return next(m[1] for s in cells(nb, 'code') if (m := re.search(r'#\|\s*default_exp\s+(\S+)', s)))


@pytest.mark.parametrize('nb', NOTEBOOKS, ids=lambda p: p.stem)
def test_first_cells_and_rhythm(nb):
    first = json.loads(nb.read_text())['cells']
    assert ''.join(first[0]['source']).startswith('# ') and '\n> ' in ''.join(first[0]['source'])
    assert 'default_exp' in ''.join(first[1]['source'])
    assert first[2]['cell_type'] == 'markdown' and len(''.join(first[2]['source'])) > 60   # the question it answers


@pytest.mark.parametrize('nb', NOTEBOOKS, ids=lambda p: p.stem)
def test_export_cells_are_small(nb):
    size = lambda s: sum(1 for l in s.splitlines() if l.strip() and not l.startswith('#|'))
    long = {s.splitlines()[1]: size(s) for s in exports(nb) if size(s) > 30}
    assert not long


def test_imports_point_down():
    number = {module(nb): int(nb.stem[:2]) for nb in NOTEBOOKS}
    for nb in NOTEBOOKS:
        for s in exports(nb):
            for m in re.findall(r'from gradual_cf\.([\w.]+) import', s):
                assert number[m] < number[module(nb)], f'{nb.name} imports {m}'


def test_the_package_is_what_the_notebooks_export():
    wrote = {module(nb).replace('.', '/') for nb in NOTEBOOKS}
    there = {str(p.relative_to(ROOT/'gradual_cf').with_suffix('')) for p in (ROOT/'gradual_cf').rglob('*.py')} - {'__init__', '_modidx'}
    assert {t for t in there if not t.endswith('__init__')} == wrote


def test_every_public_argument_has_a_docment():
    for nb in NOTEBOOKS:
        if module(nb) == 'cli': continue                    # its arguments carry their help texts
        for s in exports(nb):
            for head in re.findall(r'^def ([a-z]\w*)\(\n(.*?)^\)', s, re.M | re.S):
                for line in head[1].splitlines():
                    if line.strip() and not line.strip().startswith(('self', 'cls')): assert '#' in line, f'{nb.name} {head[0]}: {line.strip()}'


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
