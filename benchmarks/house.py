"""How the source reads: length and width of its cells, exports that are run at once, prose, names.

    python benchmarks/house.py [ROOT]   # the table of any checkout; without ROOT, of this one

Numbered notebooks in `nbs/` are measured, and `__all__` of the modules that they write. `tests/test_layout.py` holds the limits.
"""
import ast
import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

LIMIT, WIDEST = 120, 140  # characters of a line: what a line should have, and what no line may pass
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Cell(NamedTuple):
    "A cell of a notebook."
    kind: str    # 'code' or 'markdown'
    source: str

    @property
    def exported(self): return self.kind == 'code' and bool(re.search(r'^#\|\s*exports?i?\b', self.source, re.M))
    @property
    def lines(self): return [(i, l) for i, l in enumerate(self.source.splitlines(), 1) if l.strip() and not l.startswith('#|')]
    @property
    def tree(self): return ast.parse(self.source)


def notebooks(root): return sorted((Path(root)/'nbs').glob('[0-9]*.ipynb'))


def cells(path):
    "Cells of a notebook; cell magics and empty cells are left out."
    read = json.loads(Path(path).read_text())['cells']
    return [c for r in read if (c := Cell(r['cell_type'], ''.join(r['source']))).source.strip() and c.source[:2] != '%%']


def only_imports(tree): return all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in tree.body)


def said(tree):
    "Lines that only say something: arguments on lines of their own, and docstrings."
    out = set()
    for n in ast.walk(tree):
        if isinstance(n, FUNCTIONS):
            arguments = [*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs]
            out |= {a.lineno for a in arguments if a.lineno > n.lineno}
        if isinstance(n, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(n):
            out |= set(range(n.body[0].lineno, n.body[0].end_lineno + 1))
    return out


def body(cell):
    "Lines of an exported cell that do something."
    skip = said(cell.tree)
    return [l.strip() for i, l in cell.lines if i not in skip]


def defined(tree):
    "Names that a cell gives: functions, constants, classes and their public methods."
    out = set()
    for n in tree.body:
        if isinstance(n, (*FUNCTIONS, ast.ClassDef)): out.add(n.name)
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


def public(root):
    "Public names of every module but `all`, which repeats them."
    names = []
    for f in sorted((Path(root)/'gradual_cf').rglob('*.py')):
        if f.name == 'all.py': continue
        listed = [n.value for n in ast.parse(f.read_text()).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == '__all__']
        names += [e.value for v in listed for e in v.elts if e.value[0] != '_']
    return names


def measure(root):
    "Every number of the table, by name."
    books = [cells(p) for p in notebooks(root)]
    exports = [c for cs in books for c in cs if c.exported]
    lines = [l for c in exports for _, l in c.lines]
    bodies = [body(c) for c in exports if not only_imports(c.tree)]
    names = [n.id for c in exports for n in ast.walk(c.tree) if isinstance(n, ast.Name)]
    words = sum(len(c.source.split()) for cs in books for c in cs if c.kind == 'markdown')
    run = [r for cs in books for r in run_at_once(cs)]
    return dict(
        body=median(map(len, bodies)),
        characters=median(len('\n'.join(b)) for b in bodies),
        wide=sum(len(l) > LIMIT for l in lines)/len(lines),
        longest=max(map(len, lines)),
        run=sum(run)/len(run),
        prose=words/len(lines),
        short=sum(len(n) == 1 for n in names)/len(names),
        exported=len(lines),
        public=len(public(root)))


def table(m):
    "The numbers of a checkout as markdown."
    rows = [
        ('export cell, median lines without signature lines (characters)', f'{m["body"]:.0f} ({m["characters"]:.0f})'),
        (f'lines over {LIMIT} characters', f'{m["wide"]:.1%} (longest {m["longest"]})'),
        ('exports followed directly by a cell that runs them', f'{m["run"]:.0%}'),
        ('prose words for each exported line', f'{m["prose"]:.1f}'),
        ('one-letter names', f'{m["short"]:.0%}'),
        ('exported lines', f'{m["exported"]:,}'),
        ('public names', f'{m["public"]}')]
    return '\n'.join(['measured | now', '---|---', *[f'{a} | {b}' for a, b in rows]])


if __name__ == '__main__': print(table(measure(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
