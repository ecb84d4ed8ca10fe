"""The built site in a browser. `make docs` builds it; without `_docs/` there is nothing to test."""
import html
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT/'_docs'
sys.path.insert(0, str(ROOT/'docs'))
from execute import UNSEEN  # noqa: E402

pytestmark = pytest.mark.skipif(not (SITE/'index.html').exists(), reason='there is no _docs/: run `make docs` first')


def modules():
    "Modules that notebooks export and that list public names."
    names = (p.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.') for p in (ROOT/'gradual_cf').rglob('*.py'))
    names = [n for n in sorted(names) if not n.endswith(('__init__', '_modidx', '.all', '.cli'))]
    return [n for n in names if importlib.import_module(n).__all__]


@pytest.mark.parametrize('module', modules())
def test_every_public_name_has_an_entry(module):
    page = (SITE/f'api-{module.removeprefix("gradual_cf.")}.html').read_text()
    ids = set(re.findall(r'\sid="([^"]+)"', page))
    short, mod = module.removeprefix('gradual_cf.'), importlib.import_module(module)
    slug = lambda n: re.sub(r'[^a-z0-9]+', '-', f'api-{short}-{n}'.lower()).strip('-')
    slugs = {re.sub(r'-\d+$', '', i) for i in ids} | ids
    assert [n for n in mod.__all__ if slug(n) not in slugs and n not in page] == []


def test_what_a_program_may_read():
    llms = (SITE/'llms.txt').read_text()
    assert llms.startswith('# gradual_cf\n') and (SITE/'llms-full.txt').stat().st_size > 50_000
    assert [l for l in re.findall(r'\]\(([\w.-]+)\)', llms) if not (SITE/l).exists()] == []


def words(page):
    "The text of a page as a reader sees it, without markup and without the sources of widgets."
    body = re.sub(r'<(script|style)\b.*?</\1>', '', page.read_text(), flags=re.S)
    return html.unescape(re.sub(r'<[^>]+>', '', body))


def test_no_page_shows_an_object_where_a_picture_belongs():
    assert UNSEEN.findall('<Figure size 540x205 with 3 Axes> [<matplotlib.lines.Line2D at 0x7f12ab>] <gradual_cf.core.Domain object at 0x7f>')
    assert {p.name: found for p in SITE.glob('*.html') if (found := UNSEEN.findall(words(p)))} == {}


def test_figures_say_what_they_claim():
    for p in (ROOT/'nbs/figures').glob('*.ipynb'):
        page = (SITE/f'{p.stem}.html').read_text()
        top = re.search(r'class="[^"]*\bclaim\b', page).start()
        assert top > 0 and 'Verdict' in page[top:top + 4000], p.stem
        assert top < re.search('class="cell', page).start(), p.stem


@pytest.mark.skipif(not (ROOT/'node_modules/playwright-core').exists(), reason='node_modules/ is missing: npm ci')
@pytest.mark.skipif(not (shutil.which('chromium') and shutil.which('node')), reason='no chromium or node on this machine')
def test_in_a_browser():
    r = subprocess.run(['node', str(ROOT/'tests/site.mjs'), str(SITE)], capture_output=True, text=True, timeout=1500)
    assert r.stdout, r.stderr[-2000:]
    out = json.loads(r.stdout)
    assert out['problems'] == []
    assert out['pages'] > 30 and len(out['steppers']) >= 3
