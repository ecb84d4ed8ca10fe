"""Build the site and README.md from nbs/, offline.

nbs/**/*.ipynb  --docs/execute.py-->  executed  --this file and docs/api.py-->  _proc_site/src/  --MyST-NB and Sphinx-->  _docs/

    python docs/build.py                      # the site
    python docs/build.py --readme [--check]   # README.md from nbs/index.ipynb, or only compare

Only what changed is run and written again. Where a page for people stands says docs/doors.tsv; a chapter stands in the book by the number of its file.
"""
import argparse
import ast
import base64
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from nbdev.config import get_config
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
os.chdir(ROOT)
sys.path[:0] = [str(ROOT), str(ROOT/'tests')]
os.environ.setdefault('OMP_NUM_THREADS', '1')  # the same figures on any machine; kernels inherit it
os.environ.setdefault('GRADUAL_CF_CACHE', str(ROOT/'_proc_site/cache'))  # not the user's: the networks of `tests/networks` are put there
os.environ['PYTHONPATH'] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
import gallery  # noqa: E402
from api import Links, cell, code, entry, remark, symbols, table  # noqa: E402
from doors import DOORS, below, door_page, guided, places, slug, stem, toctree  # noqa: E402
from execute import directives, execute, is_kept  # noqa: E402
from written import complaint, damaged, plant  # noqa: E402

CFG = get_config()
NBS, SRC, OUT, VENDOR, TREES = CFG.nbs_path, ROOT/'_proc_site/src', ROOT/'_docs', ROOT/'node_modules', ROOT/'_proc_site/doctrees'
new_md = nbformat.v4.new_markdown_cell


class Page:
    "A notebook on its way to the site."
    def __init__(self, path):
        self.path, self.rel = path, path.relative_to(NBS).as_posix()
        self.shelf = path.parent.name if path.stem == 'index' and path.parent != NBS else ''
        self.stem = stem(path)
        cells = nbformat.read(path, 4).cells
        head = re.match(r'# (.+)(?:\n+> (.+))?', cells[0].source)
        self.title, self.about = head[1], head[2] or ''
        self.module = next((d.split()[1] for c in cells if c.cell_type == 'code' for d in directives(c.source) if d.startswith('default_exp')), None)


def pages():
    "Every notebook, in reading order; raises `ValueError` where two would be one page."
    ps = [Page(p) for p in NBS.rglob('*.ipynb') if not any(part[0] in '._' for part in p.relative_to(NBS).parts)]
    twice = [stem for stem, n in Counter(p.stem for p in ps).items() if n > 1]
    if twice: raise ValueError(f'notebooks must have names of their own, got {twice} more than once')
    order = [*places(), 'all']
    if lost := {p.stem for p in ps} ^ {*order}: raise ValueError(f'docs/doors.tsv must have a line for each notebook that is no chapter, and none besides, got {sorted(lost)}')
    return sorted(ps, key=lambda p: order.index(p.stem))


def run_all(ps):
    "Execute what is not kept, in parallel; returns notebooks and how many were run."
    todo, failed = [p for p in ps if not is_kept(p.path)], []
    if todo: plant()
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as ex, tqdm(total=len(todo), desc='notebooks', disable=not todo) as bar:
        waiting = {ex.submit(execute, p.path): p for p in todo}
        for f in as_completed(waiting):
            if e := f.exception(): failed.append(re.sub(r'\x1b\[[\d;]*m', '', f'{waiting[f].rel}: {e}')); continue
            nb = f.result()
            bar.set_postfix_str(f'{waiting[f].rel} {nb.metadata.seconds:.0f} s')
            bar.update()
    if failed: sys.exit('\n\n'.join(failed))
    return {p.stem: execute(p.path) for p in ps}, len(todo)


def defined(src):
    "Names of the functions, classes, methods and constants of a cell, and whether it defines anything."
    tree, names = ast.parse(src), []
    for n in tree.body:
        if isinstance(n, ast.Assign): names += [t.id for t in n.targets if isinstance(t, ast.Name)]
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)): names.append(n.name)
        if isinstance(n, ast.ClassDef): names += [f'{n.name}.{m.name}' for m in n.body if isinstance(m, ast.FunctionDef)]
    return names, any(not isinstance(n, (ast.Import, ast.ImportFrom)) for n in tree.body)


def strip(src): return re.sub(r'^#\|.*\n?', '', src, flags=re.M)


def source_cells(src, page, syms, links):
    "An exported cell: an entry for each public name, and the source behind a fold."
    names, any_code = defined(strip(src))
    if not any_code: return []
    by_source = {s.source: s for s in syms}
    found = [by_source[page.module, n] for n in names if (page.module, n) in by_source]
    out = [new_md(links.link(entry(s, 'chapter', 3, links.typed(page.stem)), page.stem)) for s in found if 'chapter' in s.at]
    if found and all(not callable(s.obj) for s in found): return out
    c = nbformat.v4.new_code_cell(strip(src))
    c.metadata['tags'] = ['hide-input']
    return out + [c]


def published(url):
    "An address that settings.ini gives; '' for one that ends in .invalid, which leads nowhere."
    return '' if '.invalid' in url else url


LONGEST = dict(table=24, text=60, drawing=3)  # rows of a table, lines of text and of code that draws, which a tutorial shows unfolded


def too_long(output):
    "Whether a reader would scroll past an output: a table of many rows, or a long text; never a picture or a page."
    data = output.get('data', {})
    if '<table' in data.get('text/html', ''): return data['text/html'].count('<tr') > LONGEST['table']
    if set(data) - {'text/plain'}: return False
    return (output.get('text') or data.get('text/plain', '')).count('\n') > LONGEST['text']


def only_asserts(src):
    "Whether a cell holds what the page says, and shows nothing: a reader opens it, and need not."
    body = [] if src.startswith(('%', '!')) else ast.parse(src).body
    return bool(body) and all(isinstance(n, ast.Assert) for n in body)


def code_cell(c, page, heading):
    "A cell without its directives; they become MyST-NB's tags, and pictures get their width and a text alternative."
    dirs = dict(re.findall(r'^#\|\s*([\w-]+):\s*(.*?)\s*$', c.source, re.M))
    n = nbformat.v4.new_code_cell(strip(c.source), outputs=c.outputs)
    if dirs.get('echo') == 'false': n.metadata['tags'] = ['remove-input']
    if page.rel.startswith('tutorials/') and only_asserts(n.source): n.metadata['tags'] = ['hide-input']
    if page.rel.startswith('tutorials/') and 'fig-alt' in dirs and n.source.count('\n') > LONGEST['drawing']: n.metadata['tags'] = ['hide-input']
    if 'code-fold' in dirs or page.rel.startswith('figures/') and dirs.get('echo') != 'false': n.metadata['tags'] = ['hide-input']
    if page.rel.startswith('tutorials/') and any(map(too_long, c.outputs)): n.metadata['tags'] = [*n.metadata.get('tags', []), 'hide-output']
    size = next((o.metadata['image/png'] for o in c.outputs if 'image/png' in o.get('metadata', {})), {})
    image = {'alt': dirs.get('fig-alt') or f'Plot: {heading or page.title}'} | ({'width': f'{size["width"]}px'} if 'width' in size else {})
    if any('image/png' in o.get('data', {}) for o in c.outputs): n.metadata['mystnb'] = {'image': image}
    return n


def joined(cells):
    "Folded cells that show nothing are folded together with the next."
    out = []
    for c in cells:
        last = out[-1] if out else None
        if last is not None and c.cell_type == last.cell_type == 'code' and not last.outputs and 'hide-input' in c.metadata.get('tags', []):
            out.pop()
            c.source = f'{last.source}\n\n{c.source}'
        out.append(c)
    return out


CLAIM = re.compile(r'^\*\*Claim\.\*\* (.+)\n\n\*\*Verdict\.\*\* ([^:\n]+)(:?)(.*)$', re.M)


def claim_card(m):
    "A claim of the paper and its verdict, as a card."
    kind = 'fails' if 'not hold' in m[2] else 'part' if 'in part' in m[2] else 'holds'
    return f':::{{admonition}} Claim\n:class: claim {kind}\n\n{m[1]}\n\n**Verdict: {m[2]}{m[3]}**{m[4]}\n:::'


def without_panels(told):
    "Widgets of a page without those that need Python, or a module that the site does not have; other things as they are."
    for kept in told.values() if isinstance(told, dict) else ():
        if isinstance(kept, dict) and 'state' in kept:
            kept['state'] = {name: v for name, v in kept['state'].items() if v.get('model_module') != 'anywidget'}
    return told


def process(nb, page, syms, links):
    "An executed notebook as MyST-NB reads it."
    cells, heading = [new_md(f'# {page.title}\n\n' + (f'*{page.about}*' if page.about else ''))], ''
    for i, c in enumerate(nb.cells):
        dirs = {d.split(':')[0].split()[0] for d in directives(c.source)}
        if c.cell_type == 'markdown':
            src = re.sub(r'^# .+(\n+> .+)?', '', c.source, count=1).strip() if i == 0 else c.source
            heading = (re.findall(r'^#+ (.+)$', src, re.M) or [heading])[-1]
            if src: cells.append(new_md(CLAIM.sub(claim_card, links.link(src, page.stem))))
        elif dirs & {'export', 'exports', 'exporti'}: cells += source_cells(c.source, page, syms, links)
        elif strip(c.source).strip() and not dirs & {'hide', 'default_exp'}: cells.append(code_cell(c, page, heading))
    if page.rel.startswith('figures/'): cells = joined(cells)
    out = nbformat.v4.new_notebook(cells=cells, metadata={k: without_panels(nb.metadata[k]) for k in ('kernelspec', 'language_info', 'widgets') if k in nb.metadata})
    for i, c in enumerate(out.cells): c['id'] = f'c{i}'
    return out


def box(ps, shelf):
    "The table of the notebooks of a shelf: what each tells, in reading order."
    rows = [f'| [{p.title}]({p.path.name}) | {p.about} |' for p in ps if p.path.parent.name == shelf and not p.shelf]
    return '| notebook | what it tells |\n|---|---|\n' + '\n'.join(rows)


def fill(src, ps, shelf=''):
    "Markdown with the table of notebooks in its place, and with the address of the repository once settings.ini has one."
    src = re.sub(r'<!-- the table of notebooks[^>]*-->', lambda m: box(ps, shelf), src)
    url = published(CFG.git_url)
    return re.sub(r'<!-- until published -->(.*?)<!-- then: (.*?) -->', lambda m: m[2].format(url=url) if url else m[1], src, flags=re.S)


def whence(p):
    "The last line of a page: the notebook as it was run, and the repository once settings.ini has its address."
    url = published(CFG.git_url)
    there = f' Its source is <a href="{url}/blob/{CFG.branch}/{NBS.name}/{p.rel}">in the repository</a>.' if url else ''
    return f'<p class="notebook">This page is a notebook that was run: <a href="notebooks/{p.stem}.ipynb" download>{p.rel}</a>, with its outputs.{there}</p>'


def relink(src, ps):
    "Links to notebooks become links to pages."
    names = {p.path.name: f'{p.stem}.ipynb' for p in ps} | {p.rel: f'{p.stem}.ipynb' for p in ps}
    src = src.replace('](../images/', '](images/') # all pages stand in one folder
    return re.sub(r'\]\((?:\.\./)*(?:\w+/)*?((?:\w+/)?([\w.-]+\.ipynb))', lambda m: f"]({names.get(m[1]) or names.get(m[2], m[2])}", src)


def place(syms, ps):
    "Give every name its link targets: in its module's page of the API, and in the chapter where an exported cell defines it."
    shown = {(p.module, n) for p in ps if p.module for c in nbformat.read(p.path, 4).cells
             if c.cell_type == 'code' and {'export', 'exports', 'exporti'} & {d.split()[0] for d in directives(c.source) if d} for n in defined(strip(c.source))[0]}
    used = set()
    for s in syms:
        base = t = f'{s.module}-{s.name}'.lower()
        while t in used: t = f'{base}-{len(used)}'
        used.add(t)
        s.at['api'] = f'api-{t}'
        if s.source in shown: s.at['chapter'] = t


def api_pages(syms, ps, links):
    "A page for each module, and one that lists what `gradual_cf.all` offers."
    import importlib
    out, chapters = {}, {p.module: p for p in ps if p.module}
    short = lambda s: cell((s.obj.__doc__ or '').strip().split('\n')[0]) if callable(s.obj) or isinstance(s.obj, property) else cell(remark(s))
    import gradual_cf
    listed = lambda names: table(['name', 'what it is', 'module'], [
        [f'[{code(n)}](#{s.at["api"]})', links.link(short(s), 'all'), f'[{s.module}](api-{s.module}.md)'] for n in names if (s := links.find(n, 'all'))])
    first, every = gradual_cf.__all__, importlib.import_module('gradual_cf.all').__all__
    out['api'] = '\n\n'.join([
        '# All public names', '## To begin with', 'Most work needs only these: `import gradual_cf as gc`, then `gc.GradualCF`, `gc.tabular`, `gc.letter`.', listed(first),
        '## The others', 'In a notebook, `from gradual_cf.all import *` gives all names. In a program, import each from its module.', listed([n for n in every if n not in first])])
    for m, p in chapters.items():
        mine = [s for s in syms if s.module == m]
        if not mine: continue
        intro = f'*{p.about}.* The chapter [{p.title}]({p.stem}.ipynb) explains it, with examples.'
        parts = [entry(s, 'api', 2, links.typed(p.stem)) + (f'\n\n[explained in its chapter](#{s.at["chapter"]})' if 'chapter' in s.at else '') for s in mine]
        out[f'api-{m}'] = f'---\norphan: true\n---\n\n# gradual_cf.{m}\n\n[All public names](api.md)\n\n{intro}\n\n' + '\n\n'.join(links.link(x, p.stem) for x in parts)
    return out


def write(path, text):
    "Write a file only where it changed, so that Sphinx reads only that."
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text: path.write_text(text)
    return path


def vendor(static):
    "Math, widgets, fonts and the theme, so that pages ask nobody for anything."
    fonts, manager = 'output/chtml/fonts/woff-v2', VENDOR/'@jupyter-widgets/html-manager/dist'
    shutil.copytree(ROOT/'docs/static', static, dirs_exist_ok=True)
    if (static/'fonts').exists(): return
    shutil.copytree(VENDOR/'mathjax/es5'/fonts, static/'mathjax'/fonts, dirs_exist_ok=True)
    shutil.copy(VENDOR/'mathjax/es5/tex-chtml-full.js', static/'mathjax')
    (static/'widgets').mkdir(exist_ok=True)
    for f in [manager/'embed.js', *manager.glob('*.woff2')]: shutil.copy(f, static/'widgets')
    (static/'fonts').mkdir(exist_ok=True)
    for kind in ('400-normal', '400-italic', '600-normal'): shutil.copy(VENDOR/f'@fontsource/source-serif-4/files/source-serif-4-latin-{kind}.woff2', static/'fonts')


def sphinx():
    "Sphinx with warnings as errors; what failed is read again next time."
    cmd = [sys.executable, '-W', 'ignore', '-m', 'sphinx', '-W', '--keep-going', '-q', '-j', 'auto', '-b', 'html', '-d', str(TREES), str(SRC), str(OUT)]
    if subprocess.run(cmd).returncode:
        shutil.rmtree(TREES, ignore_errors=True)
        sys.exit('the site has warnings, see above')


def plain(cells): return '\n\n'.join(c.source if c.cell_type == 'markdown' else f'```python\n{c.source}\n```' for c in cells)


def llms(groups, done):
    "llms.txt: what is here, for readers that are programs; and all the words of the chapters in one file."
    lines = [f'# {CFG.title}', '', f'> {CFG.description}', '', 'The notebooks of the package, as text: [llms-full.txt](llms-full.txt)']
    for caption, ps in groups: lines += ['', f'## {caption}', '', *[f'- [{p.title}]({p.stem}.html): {p.about}' for p in ps]]
    (OUT/'llms.txt').write_text('\n'.join(lines) + '\n')
    (OUT/'llms-full.txt').write_text('\n\n'.join(plain(done[p.stem].cells) for _, ps in groups for p in ps) + '\n')


def site():
    "Build the whole site into _docs/."
    start, ps = time.time(), pages()
    ran, count = run_all(ps)
    executed = time.time()
    syms = symbols({p.module: p.stem for p in ps if p.module})
    place(syms, ps)
    import gradual_cf.all as everything
    links = Links(syms, set(everything.__all__))
    done = {p.stem: process(ran[p.stem], p, syms, links) for p in ps}
    extra = api_pages(syms, ps, links)
    shown, lines = [p for p in ps if p.stem != 'all'], places()
    known = {p.stem: p for p in shown}
    extra |= {slug(d): door_page(d, lines, known) for d in DOORS}
    extra['gallery'] = gallery.page(ran, known, SRC/'_static/gallery')
    for p in shown:
        nb, (first, last) = done[p.stem], guided(p.stem, lines, {s: q.title for s, q in known.items()})
        nb.cells[0].source += f'\n\n{first}' if first else ''
        for c in nb.cells:
            if c.cell_type == 'markdown': c.source = relink(fill(c.source, ps, p.shelf), ps)
        trees = toctree([*map(slug, DOORS)] if p.stem == 'index' else below(p.stem, lines))
        nb.cells.append(new_md('\n\n'.join(filter(None, [last, trees, '' if p.stem == 'index' else whence(p)])), id='last'))
    wanted = {write(SRC/f'{p.stem}.ipynb', nbformat.writes(done[p.stem])) for p in shown} | {write(SRC/f'{n}.md', relink(t, ps) + '\n') for n, t in extra.items()}
    wanted.add(write(SRC/'conf.py', (ROOT/'docs/conf.py').read_text()))
    for f in SRC.iterdir(): f in wanted or f.is_dir() or f.unlink()
    vendor(SRC/'_static')
    shutil.copytree(NBS/'images', SRC/'images', dirs_exist_ok=True)
    if not TREES.exists(): shutil.rmtree(OUT, ignore_errors=True)
    sphinx()
    shutil.rmtree(ROOT/'jupyter_execute', ignore_errors=True)  # myst-nb leaves copies beside the output
    shutil.rmtree(OUT/'notebooks', ignore_errors=True)
    (OUT/'notebooks').mkdir()
    for p in shown: nbformat.write(ran[p.stem], OUT/f'notebooks/{p.stem}.ipynb')
    llms([(d, [p for p in shown if lines[p.stem].door == d]) for d in DOORS], done)
    subprocess.run([VENDOR/'.bin/pagefind', '--site', OUT, '--exclude-selectors', 'details, div.cell_input, div.highlight, div.cell_output', '--quiet'], check=True)
    cpu = lambda p: ran[p.stem].metadata.get('cpu', 0)
    lines = [f'{p.rel}\t{ran[p.stem].metadata.seconds}\t{cpu(p)}' for p in ps]
    (ROOT/'_proc_site/times.tsv').write_text('notebook\tseconds\tprocessor seconds\n' + '\n'.join(lines) + '\n')
    print('most processor time: ' + ', '.join(f'{p.rel[:-6]} {cpu(p):.0f} s' for p in sorted(ps, key=cpu, reverse=True)[:6]) + '; all in _proc_site/times.tsv')
    print(f'{len(shown) + len(extra)} pages; {count} of {len(ps)} notebooks run in {executed - start:.0f} s, pages in {time.time() - executed:.0f} s, {time.time() - start:.0f} s in all: {OUT.name}/index.html')


def picture(o, i):
    "Write a picture of the README beside the notebooks and return its markdown."
    f = NBS/'images'/f'index-{i}.png'
    f.parent.mkdir(exist_ok=True)
    f.write_bytes(base64.b64decode(''.join(o['data']['image/png'])))


def readme(check):
    "README.md from the index notebook: its text, code and outputs."
    page = Page(NBS/CFG.readme_nb)
    if not is_kept(page.path): plant()
    nb, parts, shown = process(execute(page.path), page, [], Links([], ())), [], 0
    for old in [] if check else NBS.glob('images/index-*.png'): old.unlink()
    for c in nb.cells:
        if c.cell_type == 'markdown': parts.append(fill(c.source, pages())); continue
        if 'remove-input' not in c.metadata.get('tags', []): parts.append(f'```python\n{c.source.strip()}\n```')
        for o in c.outputs:
            data = o.get('data', {})
            if 'image/png' in data:
                shown += 1
                parts.append(f'<img src="nbs/images/index-{shown}.png" alt="{c.metadata.mystnb["image"]["alt"]}" width="{c.metadata.mystnb["image"].get("width", "700px")[:-2]}">')
                check or picture(o, shown)
            elif 'application/vnd.jupyter.widget-view+json' in data: parts.append('*(On the site, and in a notebook, a slider stands here.)*')
            elif '<ins>' in data.get('text/html', ''): parts.append(data['text/html'])
            elif t := o.get('text') or data.get('text/plain', ''): parts.append('```\n' + ''.join(t).rstrip() + '\n```')
    txt = re.sub(r'\]\(((?:\w+/)*[\w.-]+\.(?:ipynb|png))', rf']({NBS.name}/\1', '\n\n'.join(parts)) + '\n'
    f = ROOT/'README.md'
    if not check: f.write_text(txt)
    elif not f.exists() or f.read_text() != txt: sys.exit('README.md is out of date: run python docs/build.py --readme')


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('--readme', action='store_true')
    ap.add_argument('--check', action='store_true')
    a = ap.parse_args()
    if bad := damaged(): sys.exit(complaint(bad))
    readme(a.check) if a.readme else site()
