"""What the site's builder decides: when a kept run is still true, what a name in backticks means, what an entry says."""
import re
import sys
import types
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip('myst_nb', reason='need the requirements of the site (make docs)')
sys.path.insert(0, str(ROOT/'docs'))
import api      # noqa: E402
import build    # noqa: E402
import doors    # noqa: E402
import execute  # noqa: E402
import gallery  # noqa: E402


def notebook(path, *cells):
    "Write a notebook of (kind, source) cells."
    make = {'md': nbformat.v4.new_markdown_cell, 'code': nbformat.v4.new_code_cell}
    nbformat.write(nbformat.v4.new_notebook(cells=[make[k](s, id=f'c{i}') for i, (k, s) in enumerate(cells)]), path)
    return path


def test_a_run_depends_on_code_and_not_on_prose(tmp_path):
    p = tmp_path/'page.ipynb'
    code = ('code', 'from gradual_cf.search.goals import mix')
    first = execute.key(notebook(p, ('md', '# A'), code))
    assert execute.key(notebook(p, ('md', '# B, said otherwise'), code)) == first
    assert execute.key(notebook(p, ('md', '# A'), ('code', code[1] + '\nmix()'))) != first


def test_every_line_of_the_gallery_has_its_cell():
    sources = {re.sub(r'^\d\d_', '', p.stem): p for p in (ROOT/'nbs').rglob('*.ipynb') if '.ipynb_checkpoints' not in p.parts}
    for line in doors.table('gallery.tsv'): gallery.found(nbformat.read(sources[line['page']], 4), line['cell'])


def test_what_a_reader_cannot_see_is_found(tmp_path):
    said = ["<Figure size 540x205 with 3 Axes>", "[<matplotlib.lines.Line2D at 0x7f12ab>]", "<gradual_cf.core.Domain object at 0x7f1>", "<function f at 0x7f2>"]
    assert len(execute.UNSEEN.findall(' '.join(said))) == 4 and not execute.UNSEEN.findall('a < b, <b>bold</b>, x > 0x7f')


def test_the_first_figure_that_a_cell_returns_is_drawn(tmp_path):
    p = notebook(tmp_path/'page.ipynb', ('md', '# A'), ('code', 'from matplotlib.figure import Figure\nfig = Figure()\nfig.subplots()\nfig'))
    done = execute.run(p)
    assert 'image/png' in done.cells[1].outputs[0].data and execute.unseen(done) == []


def test_a_run_knows_which_functions_ran_unless_it_began_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, 'KEPT', tmp_path/'kept')
    asked = ('code', 'from gradual_cf.core import cache_dir\ncache_dir();')
    p = notebook(tmp_path/'page.ipynb', asked, ('code', 'object()'))
    with pytest.raises(ValueError, match='cannot see'): execute.execute(p)
    p = notebook(tmp_path/'page.ipynb', asked)
    assert not execute.is_kept(p) and not execute.rewritten(p)
    execute.execute(p)
    ran = execute.read_kept(p).metadata.ran
    assert 'cache_dir' in ran['gradual_cf.core'] and 'take_rows' not in ran['gradual_cf.core'] and 'GradualCF.trace' not in ran['gradual_cf.gradual']
    assert execute.is_kept(p) and not execute.rewritten(p)
    notebook(p, *[asked]*2)
    assert not execute.is_kept(p) and execute.rewritten(p)
    q = notebook(tmp_path/'other.ipynb', asked, ('code', 'import subprocess\nsubprocess.run("true");'))
    assert execute.run(q).metadata.ran is None
    (tmp_path/'kept/page.ipynb').write_text('{')
    with pytest.raises(SystemExit, match='damaged.*make docs'): execute.is_kept(p)


SOURCE = """
import os
from .core import take
ONE = 1
def ran(x): return take(x) + ONE
def other(x): return os.path.join(x)
class Kind:
    def method(self): return 1
"""


@pytest.mark.parametrize('old, new, voids', [
    ('return take(x) + ONE', 'return take(x) - ONE', True), ('os.path.join(x)', 'os.path.split(x)', False), ('ONE = 1', 'ONE = 2', True),
    ('from .core import take', 'from .answers import take', True), ('import os', 'import os, re', False), ('import os', 'import re as os', False),
    ('def other', 'def another(): pass\ndef other', False), ('return 1', 'return 2', False), ('    def method', '    def __len__(self): return 0\n    def method', True),
    ('class Kind:', 'class Kind(int):', True), ('ONE = 1', 'ONE = 1  # said', False)])
def test_a_run_depends_on_what_ran_and_on_what_stands_outside_functions(old, new, voids, tmp_path, monkeypatch):
    p = notebook(tmp_path/'page.ipynb', ('code', 'from gradual_cf.core import take_rows'))
    def key(source):
        monkeypatch.setattr(execute, 'parts', lambda name: execute.split(source))
        return execute.key(p, {'gradual_cf.core': ['ran']}), execute.key(p)
    before, after = key(SOURCE), key(SOURCE.replace(old, new))
    assert old in SOURCE and (before[0] != after[0]) == voids
    assert (before[1] != after[1]) == (voids or new not in ('import os, re', 'ONE = 1  # said'))  # where nobody knows what ran, all of it did


def test_a_run_depends_on_the_modules_it_imports_and_on_those_they_import():
    need = execute.needed('from gradual_cf.gradual import GradualCF')
    assert {'gradual_cf.core', 'gradual_cf.search.masking', 'gradual_cf.search.goals', 'gradual_cf.gradual'} <= set(need)
    assert 'gradual_cf.cli' not in need
    assert execute.imports('from ..core import take_rows\nfrom . import lore', 'gradual_cf.paper') == {'gradual_cf.core'}
    assert execute.imports('from . import core') == {'gradual_cf.core'}
    assert 'gradual_cf.data.texts' in execute.needed('from gradual_cf.all import *')


def test_a_run_depends_on_the_results_that_it_names(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, 'ROOT', tmp_path)
    (tmp_path/'benchmarks/results').mkdir(parents=True)
    kept = tmp_path/'benchmarks/results/kept.csv'
    kept.write_text('1')
    p = notebook(tmp_path/'page.ipynb', ('code', "open('kept.csv')"))
    q = notebook(tmp_path/'other.ipynb', ('code', '1'))
    before = execute.key(p), execute.key(q)
    kept.write_text('2')
    assert execute.key(p) != before[0] and execute.key(q) == before[1]


@pytest.fixture(scope='module')
def syms():
    found = api.symbols({m: m for m in ('core', 'answers', 'models.asking', 'search.question', 'search.answer', 'search.goals', 'gradual')})
    for s in found: s.at['api'] = f'api-{s.module}-{s.name}'.lower()
    return found


def test_entries_have_what_the_source_says(syms):
    by_name = {s.name: s for s in syms}
    text = api.entry(by_name['GradualCF'], 'api', 2)
    assert text.startswith('(api-gradual-gradualcf)=\n## `GradualCF`') and '| `sigma` | `50` | a whole number of at least 0 | Adam steps' in text
    assert '| `tau` | `None` | in (0, 1), or None |' in api.entry(by_name['Settings'], 'api', 2)
    assert '| `x` | `Tensor` |  | Model input, `(n, *s)` |' in api.entry(by_name['Encoded'], 'api', 2)
    assert 'Counterfactuals.save' in by_name and 'Encoded.take' in by_name and 'PAPER' in by_name
    assert not any(n.startswith('_') or '._' in n for n in by_name)


def test_a_constant_is_described_by_its_comment(syms):
    by_name = {s.name: s for s in syms}
    assert api.remark(by_name['PAPER']) == "The paper's own" and api.remark(by_name['IMAGE']) == 'For images'


def test_methods_of_private_base_classes_stand_under_the_public_class(syms):
    by_name = {s.name: s for s in syms}
    names = list(by_name)
    assert {'Explainer.fit', 'Explainer.explain', 'Counterfactuals.load', 'GradualCF.trace'} <= set(names)
    assert 'GradualCF.explain' not in names and 'Display.changes' not in names        # said by `Explainer`; a field
    assert by_name['Counterfactuals.load'].source == ('answers', 'Counterfactuals.load')
    assert names.index('Counterfactuals') < names.index('Counterfactuals.valid') < names.index('Counterfactuals.df') < names.index('predict')
    text = api.entry(by_name['Explainer.explain'], 'api', 2)
    assert '    k: int = 1,\n    immutable=(),' in text and '| `bounds` |  | `None` | Group' in text
    assert '    *,\n    wanted=None,' in api.entry(by_name['Explainer'], 'api', 2)
    assert '| `before` | `Any` |  |' in api.entry(by_name['Counterfactuals'], 'api', 2) 


def test_names_become_links_once_and_only_in_prose(syms):
    links = api.Links(syms, set())
    out = links.link('# `mix`\n\nUse `mix`, then `mix` again; not `nothing` or [`mix`](x.md).\n\n```python\n`mix`\n```', 'search.goals')
    assert out.count('](#api-search.goals-mix)') == 1 and '# `mix`\n' in out and '```python\n`mix`' in out


def test_an_address_is_named_once_there_is_one(monkeypatch):
    "Nothing that a reader clicks leads to an address that ends in .invalid; `git_url` of settings.ini turns the links on."
    asked = next(c.source for c in nbformat.read(ROOT/'nbs/index.ipynb', 4).cells if c.source.startswith('## Install'))
    page = build.Page(ROOT/'nbs/00_core.ipynb')
    for url in ('https://gradual-cf.invalid/gradual_cf', 'https://example.org/gradual_cf'):
        monkeypatch.setattr(build, 'CFG', types.SimpleNamespace(git_url=url, branch='main'))
        told, last, there = build.fill(asked, []), build.whence(page), '.invalid' not in url
        assert ('not published yet' in told) != there and (f'git+{url}' in told) == there and '<!--' not in told
        assert (f'href="{url}/blob/main/nbs/00_core.ipynb"' in last) == there and ('.invalid' in last) is False
    assert '.invalid' not in (ROOT/'README.md').read_text()


def test_long_outputs_of_tutorials_are_folded():
    rows = lambda n: nbformat.v4.new_output('execute_result', {'text/html': '<table>' + '<tr><td>1</td></tr>'*n + '</table>', 'text/plain': '1\n'*n})
    tags = lambda stem, *outputs: build.code_cell(nbformat.v4.new_code_cell('x', outputs=list(outputs)), types.SimpleNamespace(rel=stem, title=''), '').metadata.get('tags', [])
    assert tags('tutorials/a.ipynb', rows(70)) == ['hide-output'] and tags('tutorials/a.ipynb', rows(10)) == [] == tags('03_a.ipynb', rows(70))
    text = lambda n: nbformat.v4.new_output('stream', text='a line\n'*n)
    assert tags('tutorials/a.ipynb', text(80)) == ['hide-output'] and tags('tutorials/a.ipynb', text(48)) == []
