"""What pages say is true of the code: names in code font, files, commands, arguments, and figures of a table."""
import functools
import inspect
import json
import re
from pathlib import Path

import pytest

import gradual_cf.all as public
from gradual_cf.paper.reproduce import results

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(p for p in (ROOT/'nbs').rglob('*.ipynb') if not any(part[0] in '._' for part in p.relative_to(ROOT).parts))


def cells(page, kind): return [''.join(c['source']) for c in json.loads(page.read_text())['cells'] if c['cell_type'] == kind]
def name_of(page): return page.relative_to(ROOT).with_suffix('').as_posix().removeprefix('nbs/')


@functools.cache
def texts():
    "Name of each page -> what it says, code blocks left out."
    told = {name_of(p): '\n\n'.join(cells(p, 'markdown')) for p in PAGES}
    told |= {name: (ROOT/f'{name}.md').read_text() for name in ('README', 'CONTRIBUTING')}
    return {name: re.sub(r'```.*?```', '', text, flags=re.S) for name, text in told.items()}


@functools.cache
def known():
    "Every word of the code: of the package, the cells of pages, tests, benchmarks and what runs them, and of the tables."
    files = [p for top in ('gradual_cf', 'tests', 'benchmarks', 'docs', '.ci', '.github') for p in (ROOT/top).rglob('*')
             if p.suffix in ('.py', '.mjs', '.html', '.json', '.csv', '.yml', '.sh', '.css', '') and p.is_file() and p != Path(__file__)]
    files += [ROOT/f for f in ('Makefile', 'settings.ini', 'setup.py', 'constraints.txt', 'pytest.ini')]
    said = [p.read_text(errors='ignore') for p in files] + [c for p in PAGES for c in cells(p, 'code')]
    return set(re.findall(r'\w+', '\n'.join(said))) | {p.stem for p in PAGES} | set(re.findall(r'\w+', ' '.join(p.name for p in (*files, *ROOT.glob('*.*')))))


def code_of(text): return re.findall(r'(?<!`)`([^`\n]+)`(?!`)', text)


# Words in code font that no code of ours knows, and why they may stand
ELSEWHERE = {
    'of which the page says that they are gone': 'bisect restore',
    'beginnings of names': 'paste_ l1_',
    'of torch, nltk, voila, pickle, LightGBM, CatBoost, nbdev, matplotlib and packaging': 'dark_background grad_outputs NNS nltk_tokenizer span_tokenize __setstate__ Column_0 Column_1 '
        'JJ NN VBD voila set_probability_threshold PyFuncDistance IdentityRule nbdev_test nbdev migrate config pyproject toml project optional dependencies',
    'of this test': 'test_pages',
    'of examples': 'experience previous_stroke systolic capital_gain MACHINE ssh subtitle _all _datasets _goals _masking j2'}


def test_words_in_code_font_stand_in_the_code():
    there = known() | set(' '.join(ELSEWHERE.values()).split())
    unknown = {page: sorted({w for code in code_of(text) for w in re.findall(r'[A-Za-z_]\w+', code)} - there) for page, text in texts().items()}
    assert len(unknown) > 100 and not {page: words for page, words in unknown.items() if words}, 'no code knows these: mend the page'


def test_files_that_pages_name_are_there():
    made = ('results/', 'site/')
    for page, text in texts().items():
        for path in re.findall(r'(?:benchmarks|tests|nbs|docs|\.ci|gradual_cf)/[\w./-]*\w', ' '.join(code_of(text))):
            assert (ROOT/path).exists() or (ROOT/f'{path}.py').exists() or any(part in path for part in made), f'{page}: {path}'


def test_targets_of_make_and_commands_are_there():
    targets = set(re.findall(r'^([\w-]+):', (ROOT/'Makefile').read_text(), re.M))
    commands = (ROOT/'gradual_cf'/'cli.py').read_text()
    options = '\n'.join(p.read_text() for top in ('gradual_cf', 'benchmarks', 'tests', '.ci', 'docs')
                        for p in (ROOT/top).rglob('*') if p.is_file() and p.suffix in ('.py', '.css', ''))
    for page, text in texts().items():
        for code in code_of(text):
            if m := re.match(r'make ([a-z-]+)$', code.split(' JOBS')[0]): assert m[1] in targets, f'{page}: {code}'
            if m := re.match(r'gradual-cf ([a-z]+)', code): assert re.search(rf"\b{m[1]}\b", commands), f'{page}: {code}'
            for option in re.findall(r'(?<!\w)--([a-z][\w-]+)', code):
                there = option in options or option.replace('-', '_') in options
                assert there or option == 'junitxml' or not re.search(r'gradual-cf|benchmarks|^--', code), f'{page}: {code}'


def parameters(f):
    "Names of what a function or a record takes; None where it takes any."
    try: given = inspect.signature(f).parameters
    except (TypeError, ValueError): return None
    return None if any(p.kind is p.VAR_KEYWORD for p in given.values()) else set(given)


def test_calls_in_code_font_name_arguments_that_there_are():
    for page, text in texts().items():
        for code in code_of(text):
            call = re.fullmatch(r'([A-Za-z]\w*)\(([^()]*)\)', code)
            takes = call and parameters(getattr(public, call[1], None))
            if not takes: continue
            bad = [k for k in re.findall(r'(?:^|[ ,(])(\w+)=', call[2]) if k not in takes]
            assert not bad, f'{page}: {code} names {bad}'


# Figures that prose quotes from a table of results: page, the words around them, and what the table says
def ablated(value, column):
    table = results('ablations.csv').query('data == "heloc" and axis == "loss"').set_index('value')
    return table[column][table.index.str.startswith(value)].item()


FIGURES = [
    ('paper/01_reproduce', r'distance of (\S+) with the logit distribution and (\S+) without', lambda: [ablated(v, 'l2') for v in ('with ', 'without')]),
]


@pytest.mark.parametrize('page, words, told', FIGURES, ids=[f[0] for f in FIGURES])
def test_figures_in_prose_are_those_of_the_table(page, words, told):
    said = re.search(words, texts()[page])
    assert said, f'{page} says it in other words: mend FIGURES'
    for quoted, value in zip(said.groups(), told(), strict=True):
        decimals = len(quoted.partition('.')[2])
        assert round(float(value), decimals) == float(quoted), f'{page} says {quoted}, the table {value}'


def test_the_networks_of_limits_disagree_as_the_page_says():
    judge = results('loans.csv').groupby(['data', 'setting']).judge.mean()
    assert judge['heloc', 'paper mode'] > judge['heloc', 'sparse'] and judge['uci_credit', 'paper mode'] < judge['uci_credit', 'sparse']


def test_wide_tables_keep_to_their_memory():
    wide = results('wide.csv').set_index(['model', 'settings', 'levels', 'columns'])
    taken = wide.peak - wide.loaded # beside Python, torch and the table, which differ from machine to machine
    assert (wide.valid == 1).all() and taken['network', 'sparse', 1000, 3] <= .18
    assert taken.max() <= .6 and wide.optimal['logistic', 'sparse', 1000, 3] == 1


def test_figures_of_the_first_page_are_the_measured_ones():
    "The table *Beside others*, and what is counted below it, say what the committed results say; the page is short."
    page, field, trees = (ROOT/'README.md').read_text(), results('first_answer_field.csv'), results('boxes_default.csv')
    one = results('one_row.csv').query('model == "lightgbm"').set_index('method').single
    means, spread = (f(field.groupby('method'))[['found', 'legal', 'columns', 'refitted', 'networks']] for f in (lambda g: g.mean(numeric_only=True), lambda g: g.std(numeric_only=True)))
    called = {'ours, robust': 'ours, the default (`ROBUST`)', 'ours': 'ours, `SPARSE`', 'ours, believable': 'ours, `PLAUSIBLE`', 'DiCE random': 'DiCE (random)', 'DiCE genetic': 'DiCE (genetic)'}
    for method, m in means.iterrows():
        agree = '|'.join(f'{100*m[k]:.0f}±{100*spread[k][method]:.0f}%' for k in ('refitted', 'networks'))
        name = called.get(method, method)
        line = f'|real rows|–|–|–|{agree}|–|' if method == 'real rows' else f'|{name}|{m.found:.0%}|{m.legal:.0%}|{m["columns"]:.2f}|{agree}|{one[name.replace("`", "")]:.0f}|'
        assert line in page, line
    assert f'treecf takes {one["treecf (exact)"]:.0f}.' in page and len(page.split()) <= 900
    assert '24 rows of each' in page and set(field[field.method == 'ours']['rows']) == {24} and set(field.data) == {'adult', 'german', 'heloc'}
    plain, counted = trees.set_index('model').optimal, page.partition('**What was counted here.**')[2]
    for share in (plain['XGBoost'], plain['forest of depth 8'], plain['forest of any depth']): assert f'{share:.0%}' in counted
    letters = results('letters.csv')
    assert letters.flips.eq(1).all() and f'{letters.rows.max():,} letters' in counted


def test_the_code_that_the_first_page_shows_is_what_ran():
    import nbformat
    cells = {c.id: c.source for c in nbformat.read(ROOT/'nbs/index.ipynb', 4).cells}
    assert cells['all'].startswith('#| echo: false\n') and cells['all'].partition('\n')[2] in cells['all-of-it']
