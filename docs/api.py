"""What the package offers, as markdown: an entry for each public name, a page for each module, and links to them."""
import ast
import dataclasses
import functools
import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from fastcore.docments import docments

from gradual_cf.search.settings import _setting_rows


@dataclass
class Symbol:
    "A public name: a function, a class, a method or a constant."
    name: str        # `GradualCF` or `GradualCF.search`
    module: str      # `gradual`, `baselines.wachter`
    obj: object
    page: str        # The chapter that defines it
    source: tuple    # Module and name of its definition: a method may come from a private base class
    at: dict = field(default_factory=dict)  # Where entries are: 'chapter' and 'api' -> link target

    @property
    def short(self): return self.name.rpartition('.')[2]
    @property
    def target(self): return self.at.get('chapter') or self.at['api']


def function(obj):
    "The function behind a method, property or class method."
    if obj is None: return None
    obj = obj.fget if isinstance(obj, property) else getattr(obj, '__func__', obj)
    return inspect.unwrap(getattr(obj, 'func', obj))


def is_method(m):
    "Whether an attribute of a class is a method or property of this package."
    kinds = (type(lambda: 0), classmethod, staticmethod, property)
    f = function(m) if isinstance(m, kinds) else None
    return inspect.isfunction(f) and f.__module__.startswith('gradual_cf.')


def lineage(cls):
    "A class and the private classes above it, up to the next public one, which has an entry of its own."
    out = [cls]
    for c in cls.__mro__[1:]:
        if c.__name__[0] != '_' or not c.__module__.startswith('gradual_cf.'): break
        out.append(c)
    return out


def own_methods(cls):
    "Public methods and properties of a class: name -> (the class that defines it, the method)."
    out, given = {}, {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for c in reversed(lineage(cls)):
        out |= {n: (c, m) for n, m in vars(c).items() if n[0] != '_' and n not in given and is_method(m)}
    return out


def symbols(chapters):
    "Every public name of the modules in `chapters` (module -> page), in the order of the chapters."
    mods = {m: importlib.import_module(f'gradual_cf.{m}') for m in chapters}
    short = lambda c: c.__module__.removeprefix('gradual_cf.')
    out, classes = [], []
    for m, mod in mods.items():
        for n in mod.__all__:
            obj = getattr(mod, n)
            if isinstance(obj, type): classes.append(obj)
            home = getattr(obj, '__module__', mod.__name__) in (mod.__name__, 'builtins', 'functools')
            if '.' in n or m == 'all' or callable(obj) and not home or _imported(mod, n): continue
            out.append(Symbol(n, m, obj, chapters[m], (m, n)))
    for c in dict.fromkeys(classes):
        for n, (definer, method) in own_methods(c).items():
            m, name = short(c), f'{c.__name__}.{n}'
            if m in chapters: out.append(Symbol(name, m, method, chapters[m], (short(definer), f'{definer.__name__}.{n}')))
    order, lines = {m: i for i, m in enumerate(mods)}, {(s.module, s.name): _line(s) for s in out}
    owner = lambda s: lines[s.module, s.name.partition('.')[0]]  # a class, then its methods
    return sorted(out, key=lambda s: (order[s.module], owner(s), '.' in s.name, lines[s.module, s.name]))


def _imported(mod, name):
    "Whether a module has a constant from elsewhere."
    return not any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name or isinstance(n, (ast.Assign, ast.AnnAssign)) and name in ast.unparse(n).split('=')[0]
                   for n in _tree(mod.__file__).body)


@functools.cache
def _tree(f): return ast.parse(Path(f).read_text())


def _line(s):
    "The line on which a name is defined."
    if callable(s.obj) or isinstance(s.obj, (property, classmethod, staticmethod)):
        try: return definition(s.obj).lineno
        except (TypeError, OSError): pass
    f = importlib.import_module(f'gradual_cf.{s.module}').__file__
    return next((n.lineno for n in _tree(f).body if isinstance(n, (ast.Assign, ast.AnnAssign)) and s.name in ast.unparse(n).split('=')[0]), 0)


@functools.cache
def written(file):
    "The lines of a module, and qualified name -> syntax tree of its functions, classes and methods."
    def nodes(body, path=()):
        for n in body:
            if isinstance(n, (ast.FunctionDef, ast.ClassDef)): yield '.'.join([*path, n.name]), n
            if isinstance(n, ast.ClassDef): yield from nodes(n.body, (*path, n.name))
    text = Path(file).read_text()
    return text.splitlines(), dict(nodes(ast.parse(text).body))


@functools.cache
def place(obj):
    "Where a function or class is written: lines, and its syntax tree, which counts in them."
    lines, nodes = written(inspect.getfile(obj))
    if (node := nodes.get(obj.__qualname__)) is not None: return lines, node
    source = dedent(inspect.getsource(obj))
    return source.splitlines(), ast.parse(source).body[0]


def definition(obj):
    "The syntax tree of a function or class, as it is written."
    return place(obj if isinstance(obj, type) else function(obj))[1]


def record(cls): return dataclasses.is_dataclass(cls) or issubclass(cls, tuple)


def called(s, node):
    "What is called, and its syntax tree: the function itself; a record; else `__init__` or `__new__`, also an inherited one."
    if isinstance(node, ast.FunctionDef) or record(s.obj): return s.obj, node
    for c in s.obj.__mro__:
        f = function(vars(c).get('__init__') or vars(c).get('__new__'))
        if inspect.isfunction(f) and f.__module__.startswith('gradual_cf.'): return f, definition(f)
    return None, ast.parse('def none(): pass').body[0]


def field_nodes(cls):
    "The fields of a record, those of its private base classes first: (class, syntax tree) of each."
    return [(c, n) for c in reversed(lineage(cls)) for n in definition(c).body if isinstance(n, ast.AnnAssign)]


def arguments(obj, node):
    "(name, annotation, default) of each argument of a function, or field of a record, as text."
    text = lambda n: ast.unparse(n) if n is not None else ''
    if isinstance(node, ast.ClassDef): return [(n.target.id, text(n.annotation), text(n.value)) for _, n in field_nodes(obj)]
    a = node.args
    plain = a.posonlyargs + a.args
    rows = [(x.arg, text(x.annotation), text(d)) for x, d in zip(plain, [None]*(len(plain) - len(a.defaults)) + a.defaults)]
    if a.vararg or a.kwonlyargs: rows.append(('*' + (a.vararg.arg if a.vararg else ''), text(a.vararg and a.vararg.annotation), ''))
    rows += [(x.arg, text(x.annotation), text(d)) for x, d in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg: rows.append((f'**{a.kwarg.arg}', text(a.kwarg.annotation), ''))
    return [r for r in rows if r[0] not in ('self', 'cls')]


def signature(s, node):
    "The signature as it is written, on one line or on several."
    if node is None: return s.name
    if is_settings(s.obj): return f'class {s.name}(**settings)'
    rows = [n + (f': {a}' if a else '') + ((' = ' if a else '=') + d if d else '') for n, a, d in arguments(*called(s, node))]
    ret = f' -> {ast.unparse(node.returns)}' if isinstance(node, ast.FunctionDef) and node.returns is not None else ''
    head = ('class ' if isinstance(node, ast.ClassDef) else '') + s.name
    if isinstance(s.obj, property): return f'{head}{ret}  # a property'
    one = f'{head}({", ".join(rows)}){ret}'
    return one if len(one) < 78 else f'{head}(\n' + ''.join(f'    {r},\n' for r in rows) + f'){ret}'


def cell(text): return re.sub(r'(?<!\\)\|', r'\\|', str(text).replace('\n', ' ')).strip()


def code(text): return f'`{cell(text)}`' if text else ''


def table(head, rows):
    "A markdown table without its empty columns; nothing where only names are left."
    used = [i for i in range(len(head)) if i == 0 or any(r[i] for r in rows)]
    if not rows or len(used) < 2: return ''
    line = lambda cells: '| ' + ' | '.join(cells[i] for i in used) + ' |'
    return '\n'.join([line(head), '|' + '---|'*len(used), *map(line, rows)])


def comments(obj, node):
    "The comment beside each argument or field, and beside what is returned."
    beside = lambda n, lines: (re.search(r'(?<=\s)#\s*(.*)$', lines[n.end_lineno - 1]) or ['', ''])[1]
    if isinstance(node, ast.ClassDef): return {n.target.id: beside(n, place(c)[0]) for c, n in field_nodes(obj)}
    lines = place(function(obj))[0]
    stars = [a for a in (node.args.vararg, node.args.kwarg) if a is not None and a.lineno > node.lineno]
    docs = {k: v for k, v in docments(function(obj), returns=True).items() if v} | {a.arg: beside(a, lines) for a in stars}
    if node.returns is not None and not beside(node.returns, lines): docs.pop('return', None)  # the comment beside the last argument
    return docs


def inherited(cls):
    "What the `__init__` of the classes above says about arguments."
    inits = [f for c in reversed(cls.__mro__[1:]) if inspect.isfunction(f := vars(c).get('__init__')) and f.__module__.startswith('gradual_cf.')]
    return {k: v for f in inits for k, v in comments(f, definition(f)).items() if v}


def docment_table(s, node, typed):
    "What each argument means, and what comes back."
    obj, args = called(s, node)
    if obj is None or is_settings(obj): return ''
    docs = comments(obj, args)
    if isinstance(node, ast.ClassDef) and isinstance(args, ast.FunctionDef): docs = inherited(s.obj) | docs  # a subclass need not say again what an argument is
    rows = [[code(n), typed(a), code(d), cell(docs.get(n.lstrip('*')) or '')] for n, a, d in arguments(obj, args) if n != '*']
    if isinstance(node, ast.FunctionDef) and (node.returns is not None or docs.get('return')):
        rows.append(['*returns*', typed(ast.unparse(node.returns)) if node.returns is not None else '', '', cell(docs.get('return') or '')])
    return table(['field' if isinstance(args, ast.ClassDef) else 'argument', 'type', 'default', 'meaning'], rows)


def is_settings(obj): return isinstance(obj, type) and dataclasses.is_dataclass(obj) and any('about' in f.metadata for f in dataclasses.fields(obj))


def settings_table(cls):
    "Settings: those of a class of settings, or of the explainer that has them."
    cls = cls if is_settings(cls) else getattr(cls, 'Settings', None)
    if not is_settings(cls): return ''
    rows = [[code(name), code(default), cell(limits), cell(about)] for name, default, limits, about in _setting_rows(cls)]
    return table(['setting', 'default', 'range', 'meaning'], rows)


def remark(s):
    "The comment behind the definition of a constant; '' where there is none."
    file = importlib.import_module(f'gradual_cf.{s.module}').__file__
    node = next((n for n in _tree(file).body if isinstance(n, (ast.Assign, ast.AnnAssign)) and s.name in ast.unparse(n).split('=')[0]), None)
    behind = Path(file).read_text().splitlines()[node.end_lineno - 1].encode()[node.end_col_offset:].decode() if node else ''
    return behind.partition('#')[2].strip()


SECTIONS = r'\n\n(Parameters|Attributes|Other Parameters|Returns|Raises|Examples)\n---+\n'  # which `export.py` writes


def entry(s, where, level, typed=code):
    "The entry of a name: link target, signature, docstring, tables."
    node = definition(s.obj) if callable(s.obj) or isinstance(s.obj, (property, classmethod, staticmethod)) else None
    out = [f'({s.at[where]})=', f'{"#"*level} `{s.name}`']
    if node is None or not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        f = importlib.import_module(f'gradual_cf.{s.module}').__file__
        src = next(ast.get_source_segment(Path(f).read_text(), n) for n in _tree(f).body if isinstance(n, (ast.Assign, ast.AnnAssign)) and s.name in ast.unparse(n).split('=')[0])
        return '\n\n'.join([out[0] + '\n' + out[1], f'```python\n{src}\n```'])
    words, _, sections = re.split(SECTIONS, doc, maxsplit=1) if re.search(SECTIONS, doc := ast.get_docstring(node) or '') else (doc, '', '')
    parts = [out[0] + '\n' + out[1], f'```python\n{signature(s, node)}\n```', words, docment_table(s, node, typed)]
    if '\n>>> ' in sections: parts.append(f'```python\n>>> {sections.partition(">>> ")[2]}\n```')
    if isinstance(node, ast.ClassDef): parts.append(settings_table(s.obj))
    return '\n\n'.join(p for p in parts if p and p.strip())


class Links:
    "Which name in backticks means which entry."
    def __init__(self, syms, first):
        self.by_name = {}
        for s in sorted(syms, key=lambda s: s.name not in first): self.by_name.setdefault(s.name, []).append(s)

    def find(self, name, page):
        "The symbol meant by `name` on `page`: the page's own before others'."
        found = self.by_name.get(name.removesuffix('()').removeprefix('gradual_cf.'), [])
        return next((s for s in found if s.page == page), found[0] if found else None)

    def typed(self, page):
        "How an annotation is written on `page`: linked where it names a class of the package."
        def write(a):
            s = next((s for n in re.findall(r'\w+', a) if (s := self.find(n, page)) and isinstance(s.obj, type)), None)
            return f'[{code(a)}](#{s.target})' if s else code(a)
        return write

    def link(self, md, page):
        "Link the first mention of each name in a piece of markdown; code blocks, headings and links stay as they are."
        seen = set()
        def one(m):
            s = None if m[0][0] != '`' or m[1] is None else self.find(m[1], page)
            if s is None or s.target in seen: return m[0]
            seen.add(s.target)
            return f'[{m[0]}](#{s.target})'
        parts = re.split(r'(^```.*?^```[^\n]*$|^#[^\n]*$|^\([\w.-]+\)=$|^%[^\n]*$|\$\$.*?\$\$)', md, flags=re.M | re.S)
        return ''.join(t if i % 2 else re.sub(r'\[[^\]]*\]\([^)]*\)|<[^>]+>|`([A-Za-z_][\w.]*(?:\(\))?)`|`[^`]+`', one, t) for i, t in enumerate(parts))
