"""Notebooks -> package, with help that says all: `help(tabular)` and Jupyter's `?` show every argument in sections that editors render.

    python docs/export.py

What a chapter has in blocks of C goes to `core.c` beside its module. The notebook stays the source: a summary in the docstring, a comment beside each argument, `>>>` lines below the summary where an example
helps. What is exported has them in numpy's order: Parameters (or Attributes), Returns, Raises, Examples; nothing is made at import.
"""
import ast
import importlib
import inspect
import json
import re
import sys
import textwrap
from pathlib import Path

from nbdev.doclinks import nbdev_export

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 108
# What an argument means wherever nobody says otherwise: those that methods of an explainer and of a column share
USUAL = dict(
    classes='Names of the classes; None for those of the model or of the labels', cells='Cells as people write them', cf='Fitted explainer', cfs='Answers, as `explain` returns them', data='Raw inputs, as `explain` takes them',
    df='Raw rows', enc='Encoded rows, as `encode` returns them', group='Number of a group of entries', i='Positions of rows', k='How many',
    label='Class of each row, long `(n,)`', progress='Whether to show a progress bar', quick='Whether the short search is enough', raw='Raw rows, where they are at hand',
    record='A record of rows', row='Label of a row', s='State of a search', seed='Seed of everything random', standing='What is proven of each row',
    target='Target of each row, as `aimed` returns it', v='Values of the column, raw', x='Encoded rows, `(n, *s)`', xp='Encoded answers, `(n, *s)`',
    y='Labels; not used', z='Logits, `(n, k)`')


def chapters():
    "Module -> the notebook that exports it; the index of all names is none."
    found = {}
    for path in sorted((ROOT/'nbs').rglob('*.ipynb')):
        if '.ipynb_checkpoints' in path.parts: continue
        code = '\n'.join(''.join(c['source']) for c in json.loads(path.read_text())['cells'] if c['cell_type'] == 'code')
        if m := re.search(r'#\|\s*default_exp\s+(\S+)', code): found[m[1]] = str(path.relative_to(ROOT/'nbs'))
    return found


def in_c(nb):
    "The blocks of C of a notebook, one after another; '' for none."
    text = '\n'.join(''.join(c['source']) for c in json.loads((ROOT/'nbs'/nb).read_text())['cells'] if c['cell_type'] == 'markdown')
    blocks = re.findall(r'^```c\n(.*?)^```$', text, re.M | re.S)
    return '\n'.join([f'/* Written by docs/export.py from the blocks of C in nbs/{nb}: change the chapter. */\n', *blocks]) if blocks else ''


def section(title, entries):
    "A section of numpy's style: (name and type, meaning) of each entry."
    if not entries: return ''
    lines = []
    for head, meaning in entries:
        lines.append(head)
        if meaning: lines += textwrap.wrap(meaning, WIDTH - 4, initial_indent='    ', subsequent_indent='    ', break_long_words=False, break_on_hyphens=False)
    return '\n'.join([title, '-'*len(title), *lines])


def head(name, annotation, default):
    about = ', '.join(t for t in (annotation, f'default {default}' if default else '') if t)
    return f'{name} : {about}' if about else name


def described(api, s, node):
    "Name, type and meaning of each argument or field, and of what is returned."
    obj, args = api.called(s, node)
    if obj is None or api.is_settings(obj): return [], []
    docs = api.comments(obj, args)
    if isinstance(node, ast.ClassDef) and isinstance(args, ast.FunctionDef): docs = api.inherited(s.obj) | docs
    else: docs = {k: v for k, v in overridden(api, s).items() if v} | {k: v for k, v in docs.items() if v}
    rows = [(head(n, a, d), docs.get(n.lstrip('*')) or USUAL.get(n, '')) for n, a, d in api.arguments(obj, args) if n != '*']
    if callable(s.obj) and not (isinstance(s.obj, type) and api.record(s.obj)):  # what a decorator or a base class adds
        known = {r[0].partition(' :')[0].strip('*') for r in [*rows, *settings_of(api, s.obj)]} | {'self', 'cls', 'changes'}
        rows += [(head(n, '', repr(p.default)), USUAL.get(n, '')) for n, p in inspect.signature(s.obj).parameters.items() if n not in known]
    returns = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns is not None else ''
    if returns == 'None': returns = ''
    back = [(returns or 'out', docs.get('return') or '')] if returns or docs.get('return') else []
    return rows, back


def overridden(api, s):
    "What the same method of the classes above says about its arguments."
    owner, _, name = s.name.rpartition('.')
    if not owner: return {}
    cls = getattr(importlib.import_module(f'gradual_cf.{s.module}'), owner)
    above = [vars(c)[name] for c in reversed(cls.__mro__[1:]) if api.is_method(vars(c).get(name)) and not isinstance(vars(c)[name], property)]
    return {k: v for f in above for k, v in api.comments(f, api.definition(f)).items() if v}


def settings_of(api, cls):
    "Each setting of an explainer or of a class of settings: (name, default and range, meaning)."
    if not isinstance(cls, type): return []
    cls = cls if api.is_settings(cls) else getattr(cls, 'Settings', None)
    if not api.is_settings(cls): return []
    return [(head(name, limits, default), about) for name, default, limits, about in api._setting_rows(cls)]


def split(doc):
    "The words of a docstring, its errors and its examples."
    at = doc.find('>>> ')
    text, example = (doc, '') if at < 0 else (doc[:at].rstrip(), doc[at:].rstrip())
    errors = [(m[1], m[2].strip(' ,;.')) for m in re.finditer(r'[Rr]aises `(\w+)`([^;.\n]*)', text)]
    return text, [(name, why[:1].upper() + why[1:]) for name, why in errors], example


def written(api, s, node):
    "The docstring of a name, with its sections; None where it has none or nothing to add."
    doc = ast.get_docstring(node)
    if not doc: return None
    text, errors, example = split(doc)
    rows, back = described(api, s, node)
    record = isinstance(node, ast.ClassDef) and api.record(s.obj)
    settings = settings_of(api, s.obj) if isinstance(node, ast.ClassDef) else []
    parts = [text, section('Attributes' if record else 'Parameters', rows), section('Other Parameters' if rows else 'Parameters', settings), section('Returns', back),
             section('Raises', errors), 'Examples\n--------\n' + example if example else '']
    parts = [p for p in parts if p]
    return '\n\n'.join(parts) if len(parts) > 1 else None


def in_place(source, new):
    "A module's source with these docstrings: {node: text}."
    lines = source.split('\n')
    for node, text in sorted(new.items(), key=lambda item: -item[0].lineno):
        first = node.body[0]
        if first.lineno == node.lineno: continue  # all of it on one line
        indent = ' '*first.col_offset
        quoted = text.replace('\\', '\\\\').replace('"""', '\\"\\"\\"')
        rows = [f'{indent}"""{quoted}'.replace('\n', '\n' + indent), f'{indent}"""']
        lines[first.lineno - 1:first.end_lineno] = '\n'.join(re.sub(r'[ \t]+$', '', r, flags=re.M) for r in rows).split('\n')
    return '\n'.join(lines)


def main():
    nbdev_export.__wrapped__()
    sys.path[:0] = [str(ROOT), str(ROOT/'docs')]
    import api
    for module, nb in chapters().items():
        if text := in_c(nb): (ROOT/'gradual_cf'/module.replace('.', '/')).with_name('core.c').write_text(text)
    todo = {}
    for s in api.symbols(chapters()):
        module, name = s.source
        if api.is_settings(s.obj): continue  # `document_settings` writes theirs, also of classes that somebody else makes
        if s.module == 'cli' or module == 'cli' or not (callable(s.obj) or isinstance(s.obj, (property, classmethod, staticmethod))): continue
        file = Path(importlib.import_module(f'gradual_cf.{module}').__file__)
        node = api.written(str(file))[1].get(name)
        if node is None or node in todo.get(file, {}): continue
        if text := written(api, s, api.definition(s.obj)): todo.setdefault(file, {})[node] = text
    for file, new in todo.items():
        source = in_place(file.read_text(), new)
        ast.parse(source)
        file.write_text(source)
    import layout
    layout.DRAWING.write_text(layout.drawing())


if __name__ == '__main__': main()
