"""Run notebooks as a reader would, keep what came out, and know when that is still true.

A kept run is true while what it *did* is the same: the notebook's code cells, every function of the package that really
ran (`ran.py`) and what stands outside functions in the modules that it imports, directly or through others; the result
files that it names, and the versions of what computes and draws. Where a page began a process, all of these modules count.
Prose may change without a run. `tests/test_notebooks.py` runs the chapters, the site all pages, and shows what came out.
"""
import ast
import base64
import hashlib
import importlib.metadata
import inspect
import io
import json
import os
import re
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import quick  # noqa: F401 - before nbformat
import nbformat
from kernels import Manager
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT/'gradual_cf'
KEPT = ROOT/'_proc_site/executed'
SKIP = {'slow', 'cuda', 'eval: false'}  # cells with these directives are shown, not run
START = '''import warnings as _warnings
import matplotlib as _mpl
import numpy as _np
from matplotlib_inline.backend_inline import set_matplotlib_formats as _formats
import matplotlib.pyplot as _plt
import gradual_cf.answers as _answers
import axes as _axes
_axes.watch()
get_ipython().run_line_magic('matplotlib', 'inline')  # at once, so that the first figure that a cell returns is drawn too
_formats('retina')
get_ipython().events.unregister('post_execute', _plt._draw_all_if_interactive)  # drawn once, when it is shown
_mpl.rcParams.update(_answers.STYLE)
_np.set_printoptions(legacy='1.25')  # numbers as people write them: 0.5, and not np.float64(0.5)
_warnings.formatwarning = lambda message, category, *_: f'{category.__name__}: {message}\\n'  # no path of this machine'''
END = """import json as _json, sys as _sys, time as _time
_ran = _sys.modules.get('ran')
print(_json.dumps([_time.process_time(), _ran and _ran.taken(), _axes.FOUND]))"""
UNSEEN = re.compile(r'<(?:Figure size|Axes|matplotlib|function|bound method)\b[^>]*>|<[^<>\n]* at 0x[0-9a-fA-F]+>')  # Python's words for what a reader came to see


def directives(source): return re.findall(r'^#\|\s*(.+?)\s*$', source, re.M)


def runs(c): return c.cell_type == 'code' and not set(directives(c.source)) & SKIP


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


class Parts(NamedTuple):
    "What a module computes, part by part, without comments and positions."
    functions: dict  # Name -> syntax tree of a function or method
    bound: dict      # Name that an import binds -> what it is bound to
    outside: str     # All that stands outside functions, in which `__all__` and imports do not count

    def of(self, code):
        "What some of its code says, and to what it is bound."
        said = {w: self.bound[w] for w in sorted(set(re.findall(r"(?<=')\w+(?=')", code)) & {*self.bound})}
        return f'{code}{said}'


def split(source):
    "The parts of a module's source."
    functions, bound = {}, {}
    def rest(body, path):
        out = []
        for n in body:
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = '.'.join([*path, n.name])
                functions[name] = functions.get(name, '') + ast.dump(n)  # a property may be defined twice
                if path or n.decorator_list: out.append(f'{n.name}{[ast.dump(d) for d in n.decorator_list]}')
            elif isinstance(n, ast.ClassDef):
                out += [n.name, *map(ast.dump, n.bases + n.decorator_list), *rest(n.body, [*path, n.name])]
            elif isinstance(n, (ast.Import, ast.ImportFrom)) and not path:
                bound.update({a.asname or a.name.split('.')[0]: f'{getattr(n, "level", 0)}{getattr(n, "module", "")}.{a.name}' for a in n.names})
            elif not (isinstance(n, ast.Assign) and getattr(n.targets[0], 'id', '') == '__all__'): out.append(ast.dump(n))
        return out
    outside = '\n'.join(rest(ast.parse(source).body, []))
    return Parts(functions, bound, outside)


@cache
def parts(name): return split(module_files()[name].read_text())


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


def code_of(p): return '\n\0'.join(c.source for c in nbformat.read(p, 4).cells if c.cell_type == 'code')


def source_key(p):
    "What a notebook says, and how it is run."
    return hashlib.sha256((START + END + code_of(p) + ''.join(map(inspect.getsource, (run, shrink, smaller)))).encode()).hexdigest()


def key(p, ran=None):
    "What a run of notebook `p` depends on, as all of this stands; `ran` has the functions that ran by their modules, None where that is not known."
    code = code_of(p)
    h = hashlib.sha256(source_key(p).encode())
    for m in needed(code):
        there = parts(m)
        h.update(f'{m}{there.of(there.outside)}'.encode())
        for f in sorted(there.functions) if ran is None else ran.get(m, ()): h.update(f'{f}{there.of(there.functions.get(f, ""))}'.encode())
    for f in results():
        if f.stem.removesuffix('_judge') in code: h.update(f.read_bytes())
    for d in ('torch', 'numpy', 'pandas', 'matplotlib', 'scikit-learn', 'ipywidgets'): h.update(importlib.metadata.version(d).encode())
    h.update(str(bool(os.environ.get('GRADUAL_CF_DATA'))).encode())
    return h.hexdigest()


def read_kept(p):
    "The kept run of notebook `p`, be it true or not; None where there is none."
    at = KEPT/f'{label(p)}.ipynb'
    if not at.exists(): return None
    try: return nbformat.read(at, 4)
    except Exception as e: raise SystemExit(f'{os.path.relpath(at, ROOT)} is damaged ({type(e).__name__}): remove it, and `make docs` runs the page again') from e


def is_kept(p):
    "Whether there is a kept run of notebook `p`, and it is still true."
    ran = read_kept(p)
    return ran is not None and ran.metadata.get('key') == key(p, ran.metadata.ran)


def rewritten(p):
    "Whether notebook `p` says something else than when its kept run was made; False where there is none."
    ran = read_kept(p)
    return ran is not None and ran.metadata.get('source') != source_key(p)


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
    nb.cells.append(nbformat.v4.new_code_cell(END))
    kernel = dict(kernel_name='python3', kernel_manager_class=Manager, extra_arguments=['--log-level=ERROR'])
    NotebookClient(nb, timeout=900, store_widget_state=True, coalesce_streams=True, resources={'metadata': {'path': str(p.parent)}}, **kernel).execute()
    cpu, ran, axes = json.loads(nb.cells.pop().outputs[0].text)
    del nb.cells[0]
    nb.metadata.update(seconds=round(time.time() - start, 1), cpu=round(cpu, 1), ran=ran, axes=axes, source=source_key(p), key=key(p, ran))
    return nb


def keep(done, p):
    "Write what a run of `p` gave, in place of what an earlier one did."
    KEPT.mkdir(parents=True, exist_ok=True)
    at = KEPT/f'{label(p)}.ipynb'
    nbformat.write(done, tmp := at.with_suffix('.tmp'))
    tmp.replace(at)


def execute(p, anew=False):
    "Notebook `p` with outputs: those of its kept run where that is true, unless it shall be run anew; pictures are shrunk where a kept run is asked for."
    if anew or not is_kept(p):
        done = run(p)
        if found := unseen(done): raise ValueError(f'{label(p)} shows what a reader cannot see: {found}; return a figure that has something drawn on it, or end the line with a semicolon')
        if axes := done.metadata.axes: raise ValueError(f'{label(p)} shows axes of numbers that do not say what they count: {axes}')
        keep(done, p)
    ran, nb = read_kept(p), nbformat.read(p, 4)
    if not anew and 'shrunk' not in ran.metadata:
        shrink(ran)
        keep(ran, p)
    outputs = iter([c for c in ran.cells if c.cell_type == 'code'])
    for c in nb.cells:
        if c.cell_type == 'code': c.outputs = next(outputs).outputs
    nb.metadata.update({k: ran.metadata[k] for k in ('widgets', 'seconds', 'cpu') if k in ran.metadata})
    return nb
