"""Build the site and README.md from nbs/ without Quarto.

nbs/**/*.ipynb  --nbclient-->  executed  --nbdev's processors-->  _proc_site/*.ipynb  --MyST-NB and Sphinx-->  _docs/

    python docs/build.py                      # the site
    python docs/build.py --readme [--check]   # README.md from nbs/index.ipynb, or only compare

Execution is kept in _proc_site/.executed by a hash of the notebook and of the package, so that an unchanged notebook is not run again.
"""
import argparse
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from execnb.nbio import dict2nb
from fastcore.docments import DocmentTbl
from nbclient import NotebookClient
from nbdev.config import get_config
from nbdev.frontmatter import FrontmatterProc  # noqa: F401  registers the processor
from nbdev.process import NBProcessor
from nbdev.processors import FilterDefaults
from nbdev.showdoc import BasicMarkdownRenderer
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
os.chdir(ROOT)
os.environ.setdefault('OMP_NUM_THREADS', '1')  # the same figures on any machine; kernels inherit it
CFG = get_config()  # cached: `show_doc` below sees the same object
NBS, SRC, OUT, VENDOR = CFG.nbs_path, ROOT/'_proc_site', ROOT/'_docs', ROOT/'node_modules'
KEPT = SRC/'.executed'
BASE = re.escape(CFG.doc_host.rstrip('/') + CFG.doc_baseurl)


class ApiDoc(BasicMarkdownRenderer):
    "`show_doc` for MyST: a link target, the signature, the docstring and nbdev's table of docments."
    def _repr_markdown_(self):
        kind = 'class ' if isinstance(self.sym, type) else ''
        ps = list(self.sig.parameters.values()) if self.sig else []
        ret = '' if not self.sig or self.sig.return_annotation is self.sig.empty else f' -> {inspect.formatannotation(self.sig.return_annotation)}'
        one = f"({', '.join(map(str, ps))}){ret}"
        sig = one if len(one) < 70 else '(\n' + ''.join(f'    {p},\n' for p in ps) + f'){ret}'
        return f"(PAGE-{self.nm.lower()})=\n### {self.nm}\n\n```python\n{kind}{self.nm}{sig}\n```\n\n{self.docs or ''}\n\n{DocmentTbl(self.sym)}\n"


def pages():
    "Every notebook, chapters first, then the folders."
    ps = [p for p in NBS.rglob('*.ipynb') if not any(part[0] in '._' for part in p.relative_to(NBS).parts)]
    return sorted(ps, key=lambda p: (len(p.relative_to(NBS).parts), p))


def directives(source): return re.findall(r'^#\|\s*(.+?)\s*$', source, re.M)


def key(p):
    "A name for the notebook as it would run now."
    h = hashlib.sha256(p.read_bytes())
    for f in sorted((ROOT/'gradual_cf').rglob('*.py')): h.update(f.read_bytes())
    return f'{p.stem}-{h.hexdigest()[:16]}.ipynb'


def execute(p):
    "Run a copy of `p` as a reader would, in a fresh kernel with widget state kept; nbs/ is never written."
    kept = KEPT/key(p)
    if kept.exists(): return nbformat.read(kept, 4)
    nb = nbformat.read(p, 4)
    skip = set(CFG.tst_flags.split()) | {'eval: false'}
    for c in nb.cells:
        if c.cell_type == 'code' and (set(directives(c.source)) & skip or 'nbdev_export()' in c.source): c.metadata['saved'], c.source = c.source, ''
    NotebookClient(nb, timeout=900, kernel_name='python3', store_widget_state=True, resources={'metadata': {'path': str(p.parent)}}).execute()
    for c in nb.cells:
        if 'saved' in c.metadata: c.source = c.metadata.pop('saved')
        c.metadata.pop('execution', None)
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, kept)
    return nb


def api_cell(c, stem):
    "The output of a `show_doc` as a markdown cell with a link target."
    md = ''.join(''.join(o.data['text/markdown']) for o in c.outputs)
    fence = lambda m: re.sub(r'\[(`[^`]+`)\]\([^)]+\)', r'\1', m.group())
    return nbformat.v4.new_markdown_cell(re.sub(r'```python.*?```', fence, md, flags=re.S).replace('(PAGE-', f'({stem}-', 1))


def code_cell(c, src):
    "A code cell without its directives; they become MyST-NB's tags."
    dirs = dict(re.findall(r'^#\|\s*([\w-]+):\s*(.*?)\s*$', src, re.M))
    n = nbformat.v4.new_code_cell(re.sub(r'^#\|.*\n?', '', src, flags=re.M), outputs=nbformat.from_dict(list(c.outputs)))
    if dirs.get('echo') == 'false': n.metadata['tags'] = ['remove-input']
    if 'code-fold' in dirs: n.metadata['tags'] = ['hide-input']
    return n


def process(nb, p):
    "nbdev's own processors (hide, export, show_doc, links …), then Quarto's idioms to MyST's."
    nb = dict2nb(nb)
    nb['path_'] = str(p)
    nb = NBProcessor(nb=nb, procs=FilterDefaults().procs(), process=True).nb
    cells, front = [], {}
    for c in nb.cells:
        src = ''.join(c.source) if 'source' in c else ''
        if not src.strip() or src.startswith('<!-- WARNING'): continue
        if c.cell_type == 'raw':
            front = dict(re.findall(r"^(title|description|output-file): '?(.*?)'?$", src, re.M))
            cells.append(nbformat.v4.new_markdown_cell(f"# {front.get('title', '')}\n\n*{front.get('description', '')}*"))
        elif c.cell_type == 'markdown': cells.append(nbformat.v4.new_markdown_cell(src))
        elif re.sub(r'^#\|.*\n?', '', src, flags=re.M).startswith('show_doc('): cells.append(api_cell(c, Path(front.get('output-file', 'index')).stem))
        else: cells.append(code_cell(c, src))
    out = nbformat.v4.new_notebook(cells=cells, metadata=nbformat.from_dict(dict(nb.metadata)))
    for k in [k for k in out.metadata if k.endswith('_')]: del out.metadata[k]
    return out, Path(front.get('output-file', f'{p.stem}.html')).stem


def relink(src, names):
    "Links to notebooks and nbdev's absolute links become links inside this site."
    src = re.sub(BASE + r'/([\w-]+)\.html#([\w.-]+)', lambda m: f'#{m[1]}-{m[2].lower()}', src)
    src = re.sub(BASE + r'/([\w-]+)\.html', r'\1.ipynb', src)
    return re.sub(r'\]\((?:\.\./|\w+/)*([\w.-]+\.ipynb)', lambda m: f"]({names.get(m[1], m[1])}", src)


def vendor():
    "Math and widgets from node_modules, so that pages ask nobody for anything."
    static, fonts = SRC/'_static', 'output/chtml/fonts/woff-v2'
    shutil.copytree(VENDOR/'mathjax/es5'/fonts, static/'mathjax'/fonts)
    shutil.copy(VENDOR/'mathjax/es5/tex-chtml-full.js', static/'mathjax')
    (static/'widgets').mkdir()
    manager = VENDOR/'@jupyter-widgets/html-manager/dist'
    for f in [manager/'embed.js', *manager.glob('*.woff2')]: shutil.copy(f, static/'widgets')


def site():
    "Build the whole site into _docs/."
    start = time.time()
    sys.modules['site_build'] = sys.modules[__name__]
    CFG['renderer'] = 'site_build.ApiDoc'  # settings are strings
    SRC.mkdir(exist_ok=True)
    for f in SRC.iterdir(): f == KEPT or (shutil.rmtree(f) if f.is_dir() else f.unlink())
    ps = pages()
    ran = sum(not (KEPT/key(p)).exists() for p in ps)
    with ThreadPoolExecutor(2) as ex: nbs = list(tqdm(ex.map(execute, ps), total=len(ps), desc='notebooks'))
    done = {p.name: process(nb, p) for p, nb in zip(ps, nbs)}
    names = {old: f'{stem}.ipynb' for old, (_, stem) in done.items()}
    for nb, stem in done.values():
        for i, c in enumerate(nb.cells):
            c['id'] = f'c{i}'
            if c.cell_type == 'markdown': c.source = relink(c.source, names)
        if stem == 'index':
            toc = '\n'.join(n[:-6] for n in names.values() if n != 'index.ipynb')
            nb.cells.append(nbformat.v4.new_markdown_cell(f'```{{toctree}}\n:hidden:\n\n{toc}\n```'))
        nbformat.write(nb, SRC/f'{stem}.ipynb')
    vendor()
    shutil.copy(ROOT/'docs/conf.py', SRC)
    shutil.rmtree(OUT, ignore_errors=True)
    subprocess.run([sys.executable, '-W', 'ignore', '-m', 'sphinx', '-W', '--keep-going', '-q', '-b', 'html', str(SRC), str(OUT)], check=True)
    shutil.rmtree(ROOT/'jupyter_execute', ignore_errors=True)  # myst-nb leaves copies beside the output
    print(f'{len(ps)} pages, {ran} of them run, {time.time() - start:.0f} s: {OUT.name}/index.html')


def picture(o, i):
    "Write a picture of the README beside the notebooks and return its markdown."
    import base64
    f = NBS/'images'/f'index-{i}.png'
    f.parent.mkdir(exist_ok=True)
    f.write_bytes(base64.b64decode(''.join(o['data']['image/png'])))
    return f'![What changed]({f.relative_to(ROOT)})'


def readme(check):
    "README.md from the index notebook: its text, code and outputs."
    nb, _ = process(execute(NBS/CFG.readme_nb), NBS/CFG.readme_nb)
    parts = []
    for c in nb.cells:
        if c.cell_type == 'markdown': parts.append(c.source); continue
        if 'remove-input' not in c.metadata.get('tags', []): parts.append(f'```python\n{c.source.strip()}\n```')
        for o in c.outputs:
            data = o.get('data', {})
            if 'image/png' in data: parts.append(f'![What changed](nbs/images/index-{len(parts)}.png)' if check else picture(o, len(parts)))
            elif t := o.get('text') or data.get('text/plain', ''): parts.append('```\n' + ''.join(t).rstrip() + '\n```')
    txt = re.sub(r'\]\(((?:\w+/)*[\w.-]+\.ipynb)', rf']({NBS.name}/\1', '\n\n'.join(parts)) + '\n'
    f = ROOT/'README.md'
    if not check: f.write_text(txt)
    elif not f.exists() or f.read_text() != txt: sys.exit('README.md is out of date: run python docs/build.py --readme')


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('--readme', action='store_true')
    ap.add_argument('--check', action='store_true')
    a = ap.parse_args()
    readme(a.check) if a.readme else site()
