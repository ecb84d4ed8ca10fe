"""How the source reads: modules, classes and how deep they are; width of lines, exports that are run at once, prose, names.

    python benchmarks/house.py [ROOT]   # the table of any checkout; without ROOT, of this one

Numbered notebooks in `nbs/` and its folders are measured, and the modules that they write. `tests/test_layout.py` holds the limits.
A *relay* is a class with one subclass whose name stands nowhere else in the package: it exists only to be continued.
"""
import ast
import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

LIMIT, WIDEST = 120, 140  # characters of a line: what a line should have, and what no line may pass
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


parsed = cache(ast.parse)  # whoever asks


class Cell(NamedTuple):
    "A cell of a notebook."
    kind: str    # 'code' or 'markdown'
    source: str

    @property
    def exported(self): return self.kind == 'code' and bool(re.search(r'^#\|\s*exports?i?\b', self.source, re.M))
    @property
    def lines(self): return [(i, l) for i, l in enumerate(self.source.splitlines(), 1) if l.strip() and not l.startswith('#|')]
    @property
    def tree(self): return parsed(self.source)


def notebooks(root):
    "The numbered notebooks: those that write modules."
    return sorted((Path(root)/'nbs').rglob('[0-9]*.ipynb'))


def cells(path):
    "Cells of a notebook; cell magics and empty cells are left out."
    read = json.loads(Path(path).read_text())['cells']
    return [c for r in read if (c := Cell(r['cell_type'], ''.join(r['source']))).source.strip() and c.source[:2] != '%%']


def only_imports(tree): return all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in tree.body)


def defined(tree):
    "Names that a cell gives: functions, constants, classes and their public methods, and what decorators call them (commands)."
    out = set()
    for n in tree.body:
        if isinstance(n, (*FUNCTIONS, ast.ClassDef)): out.add(n.name)
        if isinstance(n, FUNCTIONS): out |= {a.value for d in n.decorator_list for a in getattr(d, 'args', ()) if isinstance(a, ast.Constant)}
        if isinstance(n, ast.ClassDef): out |= {m.name for m in n.body if isinstance(m, FUNCTIONS) and m.name[0] != '_'}
        if isinstance(n, ast.Assign): out |= {t.id for t in n.targets if isinstance(t, ast.Name)}
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name): out.add(n.target.id)
    return out


def run_at_once(cs):
    "For each export of a notebook's cells that defines something: does the next code cell use it, unexported?"
    code = [c for c in cs if c.kind == 'code']
    out = []
    for cell, after in zip(code, [*code[1:], Cell('code', '')]):
        if not cell.exported or only_imports(cell.tree): continue
        used = set(re.findall(r'\w+', after.source))
        out.append(not after.exported and bool(defined(cell.tree) & used))
    return out


def modules(root):
    "Module files of the package: path -> text."
    return {f: f.read_text() for f in sorted((Path(root)/'gradual_cf').rglob('*.py')) if f.name not in ('_modidx.py', '__init__.py')}


def public(texts):
    "Public names of every module but `all`, which repeats them."
    names = []
    for f, text in texts.items():
        if f.name == 'all.py': continue
        listed = [n.value for n in parsed(text).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == '__all__']
        names += [e.value for v in listed for e in v.elts if e.value[0] != '_']
    return names


def classes(texts):
    "Classes of the package: (file, name) -> their bases in the package, as such keys."
    nodes = {(f, n.name): n for f, text in texts.items() for n in ast.walk(parsed(text)) if isinstance(n, ast.ClassDef)}
    named = lambda f, b: (f, b) if (f, b) in nodes else next((k for k in nodes if k[1] == b), None)
    return {k: [b for e in n.bases if (b := named(k[0], ast.unparse(e).split('.')[-1]))] for k, n in nodes.items()}


def relays(texts, known):
    "Names of those known classes that exist only to be continued by one other class."
    continued = Counter(b for bases in known.values() for b in bases)
    words = {f: Counter(re.findall(r'\w+', text)) for f, text in texts.items()}
    taken = {f: {a.name for n in ast.walk(parsed(text)) if isinstance(n, ast.ImportFrom) for a in n.names} for f, text in texts.items()}
    own = lambda f, name: words[f][name] + sum(words[g][name] - 1 for g in words if g != f and name in taken[g])  # but for imports
    said = lambda f, name: own(f, name) if name[0] == '_' else sum(w[name] for w in words.values())
    return [name for f, name in known if continued[f, name] == 1 and said(f, name) == 2]


def depth(known, key):
    "A class and those above it in the package, counted along the longest way."
    return 1 + max((depth(known, b) for b in known[key]), default=0)


SECTIONS = r'\n\n +(Parameters|Attributes|Other Parameters|Returns|Raises|Examples)\n +---+\n.*?\n +"""(?=\n)'  # of docstrings, written by docs/export.py


def code_lines(text):
    "Lines that are neither blank nor comment nor written by the export."
    return sum(bool(l.strip()) and not l.lstrip().startswith('#') for l in re.sub(SECTIONS, '', text, flags=re.S).splitlines())


def kind_of(value):
    "What makes two values of an assignment alike: calls of one function, attributes of one object, else one kind of expression."
    if isinstance(value, ast.UnaryOp): return kind_of(value.operand)
    if isinstance(value, ast.Call): return 'call', ast.unparse(value.func)
    return ('of', ast.unparse(value.value)) if isinstance(value, ast.Attribute) else type(value).__name__


def unlike(tree):
    "Assignments of a tuple that holds three or more unlike values: several things that one line does at once."
    pairs = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple) and isinstance(n.value, ast.Tuple)]
    return [ast.unparse(n) for n in pairs if len(set(map(kind_of, n.value.elts))) >= 3]


def repeated(texts):
    "Names of functions and classes that several modules define: who looks for one finds the other."
    named = Counter(n for f, t in texts.items() if 'templates' not in f.parts for n in {n.name for n in parsed(t).body if isinstance(n, (*FUNCTIONS, ast.ClassDef))})
    return sorted(n for n, many in named.items() if many > 1)


def many_arguments(texts, least=6):
    "Functions and methods that take so many arguments or more, `self` apart."
    def count(f):
        a = f.args
        named = [v.arg for v in (*a.posonlyargs, *a.args)]
        return len(named) - (named[:1] in (['self'], ['cls'])) + len(a.kwonlyargs) + bool(a.vararg) + bool(a.kwarg)
    return sum(isinstance(n, FUNCTIONS) and count(n) >= least for t in texts.values() for n in ast.walk(parsed(t)))


def measure(root):
    "Every number of the table, by name."
    texts, books = modules(root), [cells(p) for p in notebooks(root)]
    exports = [c for cs in books for c in cs if c.exported]
    lines = [l for c in exports for _, l in c.lines]
    names = [n.id for c in exports for n in ast.walk(c.tree) if isinstance(n, ast.Name)]
    words = sum(len(c.source.split()) for cs in books for c in cs if c.kind == 'markdown')
    by_chapter = {p.relative_to(Path(root)/'nbs').with_suffix('').as_posix(): run_at_once(cs) for p,cs in zip(notebooks(root), books)}
    run, known = [r for each in by_chapter.values() for r in each], classes(texts)
    deepest = max((k for k in known if k[1][0] != '_'), key=lambda k: depth(known, k))
    return dict(
        modules=len(texts),
        code=sum(map(code_lines, texts.values())),
        largest=max((code_lines(t), f.stem) for f, t in texts.items()),
        classes=len(known),
        relays=relays(texts, known),
        deepest=(depth(known, deepest), deepest[1]),
        wide=sum(len(l) > LIMIT for l in lines)/len(lines),
        longest=max(map(len, lines)),
        run=sum(run)/len(run),
        run_in={name: sum(each)/len(each) for name,each in by_chapter.items() if each},
        unlike=sum(len(unlike(c.tree)) for c in exports),
        repeated=len(repeated(texts)),
        many_arguments=many_arguments(texts),
        prose=words/len(lines),
        short=sum(len(n) == 1 for n in names)/len(names),
        public=len(public(texts)))


def table(m):
    "The numbers of a checkout as markdown."
    rows = [
        ('modules', m['modules']),
        ('lines that are neither blank nor comment', f'{m["code"]:,}'),
        ('the largest module', '{} ({})'.format(*m['largest'])),
        ('classes', m['classes']),
        ('classes that exist only to be continued', f'{len(m["relays"])} {" ".join(m["relays"])}'.strip()),
        ('greatest depth of a public class', '{} ({})'.format(*m['deepest'])),
        (f'lines over {LIMIT} characters', f'{m["wide"]:.1%} (longest {m["longest"]})'),
        ('exports followed directly by a cell that runs them', f'{m["run"]:.0%}'),
        ('the least of these in a chapter', '{1:.0%} ({0})'.format(*min(m['run_in'].items(), key=lambda v: v[1]))),
        ('prose words for each exported line', f'{m["prose"]:.1f}'),
        ('assignments of three or more unlike values', m['unlike']),
        ('names that several modules define', m['repeated']),
        ('functions of six arguments or more', m['many_arguments']),
        ('one-letter names', f'{m["short"]:.0%}'),
        ('public names', f'{m["public"]}')]
    return '\n'.join(['measured | now', '---|---', *[f'{a} | {b}' for a, b in rows]])


if __name__ == '__main__': print(table(measure(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
