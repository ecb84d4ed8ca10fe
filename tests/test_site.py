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
import doors  # noqa: E402
from execute import UNSEEN  # noqa: E402

pytestmark = pytest.mark.skipif(not (SITE/'index.html').exists(), reason='need the site (make docs)')


MOST_WORDS = dict(page=2_000, all=25_000)  # of Start and Guide, code and what it prints counted


def modules():
    "Modules that notebooks export and that list public names."
    names = (p.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.') for p in (ROOT/'gradual_cf').rglob('*.py'))
    names = [n for n in sorted(names) if not n.endswith(('__init__', '_modidx', '.all', '.cli'))]
    return [n for n in names if getattr(importlib.import_module(n), '__all__', ())]


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


NOISE = re.compile(r"\bnp\.\w+\(|/tmp/\S*|site-packages|<[\w.]+ object")  # Python's words for a number, and paths of the machine that built the site


def outputs(page):
    "What the cells of a page print."
    found = re.findall(r'<div class="output text_(?:plain|html)[^>]*>(.*?)</div>\s*</div>|<div class="output (?:stream|stderr)[^>]*>(.*?)</div>\s*</div>', page.read_text(), re.S)
    return html.unescape(re.sub(r'<[^>]+>', '', '\n'.join(map(''.join, found))))


def test_outputs_are_free_of_noise():
    found = {p.name: outputs(p) for p in SITE.glob('*.html')}
    assert sum(map(bool, found.values())) > 60
    assert {name: noise for name, text in found.items() if (noise := NOISE.findall(text))} == {}


def test_guides_show_sentences_and_tables():
    "No dict, list or tuple as Python writes it stands between the text and the pictures of Start and Guide."
    told = re.compile(r'<div class="output text_plain[^>]*>(.*?)</div>\s*</div>', re.S)
    pages = [page for page, line in doors.places().items() if line.door in ('Start', 'Guide')]
    shown = {page: [html.unescape(re.sub(r'<[^>]+>', '', t)).strip() for t in told.findall((SITE/f'{page}.html').read_text())] for page in pages}
    assert sum(map(len, shown.values())) > 2
    assert {page: bad for page, texts in shown.items() if (bad := [t[:60] for t in texts if t[:1] in ('{', '[', '(')])} == {}


def test_figures_say_what_they_claim():
    "Each section of a table or figure has a claim and its verdict right below its heading, and asserts it."
    sections = 0
    for p in (ROOT/'nbs/figures').glob('*.ipynb'):
        for part in re.split(r'<h2>(?=(?:Figure|Table) \d)', (SITE/f'{p.stem}.html').read_text())[1:]:
            top = re.search(r'class="[^"]*\bclaim\b', part).start()
            assert 'Verdict' in part[top:top + 4000] and top < re.search('class="cell', part).start() and 'assert' in part, (p.stem, part[:40])
            sections += 1
    assert sections == 14


def test_no_output_says_nan_outside_a_frame():
    "A chapter may print a frame, where gaps stand beside it, and an error about it."
    stream = re.compile(r'<div class="output (?:text_plain|stream)[^>]*>(.*?)</div>\s*</div>', re.S)
    printed = {p: '\n'.join(stream.findall(re.sub(r'<table.*?</table>', '', p.read_text(), flags=re.S))) for p in SITE.glob('*.html')}
    assert sum(map(bool, printed.values())) > 60
    chapters = {page for page, line in doors.places().items() if line.door == doors.BOOK}
    told = re.compile(r'(?:got|with) NaN|  NaN\b')
    lines = [(p.stem, line) for p, text in printed.items() for line in html.unescape(re.sub(r'<[^>]+>', '', text)).splitlines()]
    assert [(page, line) for page, line in lines if re.search(r'\bNaN\b', line) and not (page in chapters and told.search(line))] == []


def test_every_page_has_a_door_and_the_way_on_leads_to_no_chapter():
    lines = doors.places()
    chapters = {page for page, line in lines.items() if line.door == doors.BOOK}
    for page, line in lines.items():
        shown = (SITE/f'{page}.html').read_text()
        assert line.door in doors.DOORS and (not line.next or line.next in lines) and (line.next in chapters) == (page in chapters and bool(line.next)), page
        if line.door in ('Start', 'Guide') and page != 'index':
            head = re.search(r'<p class="guided">(.*?)</p>', shown, re.S)
            assert head and doors.READERS[line.reader] in head[1] and f'{line.minutes} minutes' in head[1] and f'{line.next}.html' in head[1], page
    for door in doors.DOORS: assert (SITE/f'{doors.slug(door)}.html').exists()


def test_start_and_guide_are_short():
    counted = doors.counted(SITE)
    assert len(counted) > 20 and max(counted.values()) <= MOST_WORDS['page'] and sum(counted.values()) <= MOST_WORDS['all'], counted


def test_the_sidebar_has_the_pages_of_the_tables():
    "Behind each door stand its pages, all of them and no others; entries of modules are found from *All public names*."
    for door in doors.DOORS:
        shown = (SITE/f'{doors.slug(door)}.html').read_text()
        bar = re.search(r'<nav class="bd-docs-nav.*?</nav>', shown, re.S)[0]
        pages = {h.removesuffix('.html') for h in re.findall(r'href="([\w-]+\.html)"', bar)}
        assert pages == {page for page, line in doors.places().items() if line.door == door and page != 'index'} | set(doors.MADE if door == 'Reference' else ()), door


def test_the_gallery_shows_what_its_table_names():
    shown = (SITE/'gallery.html').read_text()
    for line in doors.table('gallery.tsv'): assert line['name'] in shown and f'{line["page"]}.html' in shown, line['name']
    pictures = re.findall(r'src="(?:\.\./)?(_images/[^"]+|_static/gallery/[^"]+)"', shown)
    assert len(pictures) == len(doors.table('gallery.tsv')) and all((SITE/p).exists() for p in pictures)


@pytest.fixture
def walk():
    "Walks over a site in a browser; gives what was seen there."
    if not (ROOT/'node_modules/playwright-core').exists(): pytest.skip('need Chromium, node and `npm ci`')
    if not (shutil.which('chromium') and shutil.which('node')): pytest.skip('need Chromium, node and `npm ci`')
    def run(site, *more):
        r = subprocess.run(['node', str(ROOT/'tests/site.mjs'), str(site), *more], capture_output=True, text=True, timeout=1500)
        assert r.stdout, r.stderr[-2000:]
        return json.loads(r.stdout)
    return run


@pytest.mark.timeout(1500)
def test_in_a_browser(walk):
    out = walk(SITE)
    assert out['problems'] == []
    assert out['pages'] > 30 and len(out['steppers']) >= 3


def test_the_search_finds_pages_for_people(walk):
    "Words that were known when the table was written, words that a newcomer typed, and words that were written down apart: the right page is among the first two."
    r = subprocess.run(['node', str(ROOT/'tests/words.mjs'), str(SITE)], capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r.stderr[-2000:]
    told = json.loads(r.stdout)
    assert told['known']['found'] >= 22 and told['newcomers']['found'] >= 23 and told['held_out']['found'] >= 16, told


PLANTED = {
    'axe, light: color-contrast: .pale': '<p class="pale" style="color: #bbb">Pale.</p>',
    'axe, dark: color-contrast: .dim': '<p class="dim">Dim where it is dark.</p>',
    'axe, light: color-contrast: .k': '<div class="highlight"><pre><span>x = 1</span> <span class="k">pass</span></pre></div>',
    'axe: image-alt (1)': '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width="9" height="9">',
    'broken image': '<img alt="Nothing" src="none.png">',
    'broken link other.html': '<a href="other.html">other</a>',
    'link that leads nowhere: https://somewhere.invalid/there': '<a href="https://somewhere.invalid/there">there</a>',
    "a plot's letters shrink to 0.": '<div class="cell_output"><img alt="A plot" width="1000" style="max-width: 100%" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></div>',
    'no anchor #nowhere': '<a href="b.html#nowhere">there</a>',
    'math as it is typed: \\frac': '<p>A share is \\frac{a}{b}.</p>',
    'code scrolls sideways': f'<details><summary>Source</summary><div class="highlight"><pre style="overflow: auto">{"x"*400}</pre></div></details>',
    'scrolls': '<div style="width: 700px">Wide.</div>',
    'error: Error: thrown': '<script>throw new Error("thrown")</script>',
    'outside request': '<script>fetch("http://127.0.0.1:9/")</script>',
}


def test_five_tasks_are_a_click_away(walk, tmp_path):
    "From the first page by links of the text; the committed table says the same. `node tests/clicks.mjs _docs benchmarks/results/clicks.csv` writes it anew."
    r = subprocess.run(['node', str(ROOT/'tests/clicks.mjs'), str(SITE), str(tmp_path/'clicks.csv')], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stdout + r.stderr[-2000:]
    assert max(line['clicks'] for line in json.loads(r.stdout)) <= 1
    assert (tmp_path/'clicks.csv').read_text() == (ROOT/'benchmarks/results/clicks.csv').read_text()


def test_what_is_wrong_with_a_page_is_told(walk, tmp_path):
    "Each defect on the second page only: what the first one is judged by must not hide it."
    style = '<style>body { background: #fff; color: #111 } [data-theme=dark] body { background: #111; color: #eee } .k { color: #ccc } [data-theme=dark] .dim { color: #333 }</style>'
    page = f'<!DOCTYPE html><html lang="en"><head><title>A page</title>{style}</head><body><main><article><h1>A page</h1>%s</article></main></body></html>'
    (tmp_path/'a.html').write_text(page % ('<p>All is well.</p>'*500))
    (tmp_path/'b.html').write_text(page % '\n'.join(PLANTED.values()))
    problems = walk(tmp_path, '--only', '.html')['problems']
    assert [p for p in problems if not p.startswith('b: ')] == []
    assert [k for k in PLANTED if not any(p.startswith(f'b: {k}') for p in problems)] == [], problems
