"""The page of the law: sources, days, artefacts and tests that there are; and texts that are dead stand nowhere else."""
import ast
import re
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest
from test_pages import cells

import gradual_cf.all as public

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT/'nbs'/'explanations'/'the_law.ipynb'
DEAD = {  # a text that was rescinded, withdrawn or repealed -> how it is written
    'SR 11-7': r'\bSR[ -]?(?:letter )?11[-/]7\b', 'OCC 2011-12': r'\b(?:OCC|Bulletin)[ -]?2011-12', 'FIL-22-2017': r'\bFIL-22-2017',
    'SB 24-205': r'\bSB[ -]?24-205', 'Circular 2022-03': r'(?i)\bcirculars?[^.|]{0,40}\b2022-0?3\b', 'Circular 2023-03': r'(?i)\bcirculars?[^.|]{0,40}\b2023-0?3\b'}


def tables():
    "Lines of the two tables of the page, as lists of cells: clauses, dead texts."
    found = re.findall(r'(?:^\|.*\|\n?)+', '\n\n'.join(cells(PAGE, 'markdown')), re.M)
    return [[[c.strip() for c in line.strip('|').split(' | ')] for line in t.strip().splitlines()[2:]] for t in found]


CLAUSES, GONE = tables()


def named_in(path): return {n.name for n in ast.walk(ast.parse((ROOT/path).read_text())) if isinstance(n, ast.FunctionDef)}


def artefact(name):
    "What a name in the table is: of the public ones, else of a module that it names."
    if '.' not in name: return getattr(public, name)
    module, _, name = name.rpartition('.')
    return getattr(import_module(module), name)


@pytest.mark.parametrize('line', CLAUSES, ids=[c[0][:30] for c in CLAUSES])
def test_each_clause_has_an_artefact_a_test_a_source_and_a_day(line):
    clause, since, asks, artefacts, tests, source, read = line
    assert clause and since and len(asks) > 40
    names, paths = re.findall(r'`([\w.]+)`', artefacts), re.findall(r'`(tests/\w+\.py)::(\w+)`', tests)
    assert names and all(callable(artefact(name)) for name in names)
    assert paths and all(test in named_in(path) for path, test in paths)
    assert re.search(r'\]\(https://\S+\)', source) and (' read' in f' {read}' or 'not the' in read)
    assert date(2026, 1, 1) <= date.fromisoformat(re.search(r'\d{4}-\d{2}-\d{2}$', read)[0])


def test_the_clauses_are_those_that_were_asked_for():
    told = ' '.join(c[0] for c in CLAUSES)
    for name in ('GDPR 15(1)(h)', 'C-203/22', 'GDPR 22', '2023/2225', 'art. 86', 'Annex III', '1002.9', '9(b)(2)', 'SB 26-189', 'SR 26-2', '2026-13'): assert name in told


def test_dead_texts_are_listed_with_their_end():
    told = '\n'.join(' '.join(line) for line in GONE)
    assert all(re.search(pattern, told) for pattern in DEAD.values())
    assert all(re.search(r'rescinded|withdrawn|repealed', line[1]) and re.search(r'\d{4}-\d{2}-\d{2}$', line[2]) for line in GONE)


@pytest.mark.night
def test_no_page_and_no_code_names_a_dead_text():
    files = [p for top in ('nbs', 'gradual_cf', 'benchmarks', 'docs', 'tests') for p in (ROOT/top).rglob('*')
             if p.suffix in ('.ipynb', '.py', '.html', '.txt', '.md', '.json', '.po', '.css') and p.is_file() and '.ipynb_checkpoints' not in p.parts]
    files += [*ROOT.glob('*.md')]
    assert len(files) > 300
    named = {(str(p.relative_to(ROOT)), name) for p in files if p not in (PAGE, Path(__file__).resolve())
             for name, pattern in DEAD.items() if re.search(pattern, p.read_text(errors='ignore'))}
    assert not named, 'dead, see nbs/explanations/the_law.ipynb'


@pytest.mark.parametrize('text, name', [('In SR 11-7, part V', 'SR 11-7'), ('SR letter 11-7', 'SR 11-7'), ('CFPB circulars 2022-03 and 2023-03', 'Circular 2023-03'),
                                        ('circular 2022-3', 'Circular 2022-03'), ('OCC Bulletin 2011-12', 'OCC 2011-12'), ('SB 24-205', 'SB 24-205')])
def test_ways_to_write_a_dead_text_are_known(text, name): assert re.search(DEAD[name], text) and not re.search(DEAD[name], 'SR 26-2, OCC Bulletin 2026-13, SB 26-189')
