"""Run notebooks as a reader would, keep what came out, and know when that is still true.

A kept run is named by what the notebook *does*: its code cells, the code (not the comments) of every module that it
imports, directly or through others, the result files that it names, and the versions of what computes and draws.
Prose may change without a run. `tests/test_notebooks.py` runs every notebook, the site shows what came out.
"""
import ast
import base64
import hashlib
import importlib.metadata
import inspect
import io
import os
import re
import time
from functools import cache
from pathlib import Path

import nbformat
from kernels import Manager
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT/'gradual_cf'
KEPT = ROOT/'_proc_site/executed'
SKIP = {'slow', 'cuda', 'eval: false'}  # cells with these directives are shown, not run
START = '''import matplotlib as _mpl
from matplotlib_inline.backend_inline import set_matplotlib_formats as _formats
import matplotlib.pyplot as _plt
import gradual_cf.answers as _answers
get_ipython().run_line_magic('matplotlib', 'inline')  # at once, so that the first figure that a cell returns is drawn too
_formats('retina')
get_ipython().events.unregister('post_execute', _plt._draw_all_if_interactive)  # drawn once, when it is shown
_mpl.rcParams.update(_answers.STYLE)'''
UNSEEN = re.compile(r'<(?:Figure size|Axes|matplotlib|function|bound method)\b[^>]*>|<[^<>\n]* at 0x[0-9a-fA-F]+>')  # Python's words for what a reader came to see


def directives(source): return re.findall(r'^#\|\s*(.+?)\s*$', source, re.M)


def runs(c): return c.cell_type == 'code' and not set(directives(c.source)) & SKIP and 'nbdev_export()' not in c.source


@cache
def module_files():
    "Every module of the package by its name."
    files = [p for p in PACKAGE.rglob('*.py') if p.name != '_modidx.py']
    return {'.'.join(p.relative_to(PACKAGE.parent).with_suffix('').parts).removesuffix('.__init__'): p for p in files}


def imports(code, package='gradual_cf'):
    "Modules of this package that some code in `package` imports, also inside functions; nbdev writes relative imports into modules."
    named = re.findall(r'(?:from|import)\s+(gradual_cf(?:\.\w+)*)', code)
    for dots, name, what in re.findall(r'from[ \t]+(\.+|gradual_cf(?=[ \t]))([\w.]*)[ \t]+import[ \t]+([\w, \t]+)', code):
        parts = package.split('.')
        base = '.'.join(parts[:len(parts) - len(dots) + 1]) if dots[0] == '.' else dots
        named += [f'{base}.{name}'] if name else [f'{base}.{w}' for w in re.findall(r'\w+', what)]
    return {m for m in named if m in module_files()}


@cache
def module_imports(name):
    "Modules that a module imports."
    f = module_files()[name]
    return imports(f.read_text(), name if f.stem == '__init__' else name.rpartition('.')[0])


@cache
def module_hash(name):
    "What a module computes: its syntax tree, without comments and positions."
    return hashlib.sha256(ast.dump(ast.parse(module_files()[name].read_text())).encode()).hexdigest()


def needed(code):
    "All modules that some code needs, directly or through others."
    seen, todo = set(), imports(code) | {'gradual_cf.core'}
    while todo:
        seen.add(m := todo.pop())
        todo |= module_imports(m) - seen
    return sorted(seen)


def results():
    "Committed results, networks that are written down, and the data that the package brings."
    found = [f for d in ('benchmarks/results', 'nbs/figures/results') for f in (ROOT/d).rglob('*') if 'parts' not in f.parts]
    found += [f for f in (ROOT/'gradual_cf').rglob('*') if f.suffix in ('.json', '.html', '.csv')]
    found += (ROOT/'tests/networks').glob('*.safetensors')
    return sorted(f for f in found if f.is_file())


def label(p):
    "The name of a notebook with its folder in `nbs/`."
    inside = p.relative_to(ROOT/'nbs') if p.is_relative_to(ROOT/'nbs') else Path(p.name)
    return '-'.join(inside.with_suffix('').parts)


def key(p):
    "The name of the kept run of notebook `p` as it stands."
    code = '\n\0'.join(c.source for c in nbformat.read(p, 4).cells if c.cell_type == 'code')
    h = hashlib.sha256((START + code + ''.join(map(inspect.getsource, (run, shrink, smaller)))).encode())
    for m in needed(code): h.update(module_hash(m).encode())
    for f in results():
        if f.stem.removesuffix('_judge') in code: h.update(f.read_bytes())
    for d in ('torch', 'numpy', 'pandas', 'matplotlib', 'scikit-learn', 'ipywidgets'): h.update(importlib.metadata.version(d).encode())
    h.update(str(bool(os.environ.get('GRADUAL_CF_DATA'))).encode())
    return f'{label(p)}-{h.hexdigest()[:16]}.ipynb'


def smaller(png):
    "The picture with 256 colours, where that is smaller."
    im = Image.open(io.BytesIO(png))
    if im.mode == 'P': return png
    rgb = Image.new('RGB', im.size, 'white')
    rgb.paste(im, mask=im.getchannel('A') if im.mode == 'RGBA' else None)
    rgb.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(out := io.BytesIO(), 'PNG', optimize=True)
    return min(png, out.getvalue(), key=len)


def shrink(nb):
    "Compress all pictures of an executed notebook: outputs, pictures inside HTML, and those of widgets."
    nb.metadata['shrunk'] = True
    again = lambda b64: base64.b64encode(smaller(base64.b64decode(b64))).decode()
    for c in nb.cells:
        for o in c.get('outputs', []):
            data = o.get('data', {})
            if 'image/png' in data: data['image/png'] = again(data['image/png'])
            if 'text/html' in data: data['text/html'] = re.sub(r'(?<=data:image/png;base64,)[\w+/=]+', lambda m: again(m[0]), data['text/html'])
    for w in nb.metadata.get('widgets', {}).values():
        for m in w.get('state', {}).values():
            for b in m.get('buffers', []):
                if b['data'].startswith('iVBOR'): b['data'] = again(b['data'])


def unseen(nb):
    "What in a notebook's outputs stands for something that a reader cannot see: a figure that was not drawn, an object's address."
    found = []
    for o in (o for c in nb.cells for o in c.get('outputs', [])):
        data = o.get('data', {})
        shown = {'text/html', 'image/png', 'image/svg+xml', 'application/vnd.jupyter.widget-view+json'} & set(data)
        if not shown: found += UNSEEN.findall(''.join(o.get('text') or data.get('text/plain', '')))
    return found


def run(p):
    "Run a copy of `p` in a fresh kernel with widget state kept; nbs/ is never written."
    start, nb = time.time(), nbformat.read(p, 4)
    for c in nb.cells:
        if c.cell_type == 'code' and not runs(c): c.source = ''
    nb.cells.insert(0, nbformat.v4.new_code_cell(START))
    nb.cells.append(nbformat.v4.new_code_cell('import time; print(time.process_time())'))
    kernel = dict(kernel_name='python3', kernel_manager_class=Manager, extra_arguments=['--log-level=ERROR'])
    NotebookClient(nb, timeout=900, store_widget_state=True, resources={'metadata': {'path': str(p.parent)}}, **kernel).execute()
    cpu = float(nb.cells.pop().outputs[0].text)
    del nb.cells[0]
    nb.metadata['seconds'], nb.metadata['cpu'] = round(time.time() - start, 1), round(cpu, 1)
    return nb


def keep(done, p, name):
    "Write what a run of `p` gave, in place of what an earlier one did."
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f'{label(p)}-{"[0-9a-f]"*16}.ipynb'): old.unlink()
    nbformat.write(done, tmp := (KEPT/name).with_suffix('.tmp'))
    tmp.replace(KEPT/name)


def execute(p, name, anew=False):
    "Notebook `p` with outputs: those kept under `name`, its key, where there are any, unless it shall be run anew; pictures are shrunk where a kept run is asked for."
    kept, nb = KEPT/name, nbformat.read(p, 4)
    if anew or not kept.exists(): keep(run(p), p, name)
    ran = nbformat.read(kept, 4)
    if not anew and 'shrunk' not in ran.metadata:
        shrink(ran)
        keep(ran, p, name)
    outputs = iter([c for c in ran.cells if c.cell_type == 'code'])
    for c in nb.cells:
        if c.cell_type == 'code': c.outputs = next(outputs).outputs
    nb.metadata.update({k: ran.metadata[k] for k in ('widgets', 'seconds', 'cpu') if k in ran.metadata})
    return nb
