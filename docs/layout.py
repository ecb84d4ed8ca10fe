"""The house from its imports: a drawing of folders and modules in `nbs/images/layout.svg`, and the walk of one row in `CONTRIBUTING.md`.

    python docs/layout.py          # both; `make export` makes the drawing

Floors stand on each other, and a module is drawn on the floor of its folder. The width of a line is the number of imports that one floor takes from another one; a red line goes up.
"""
import ast
import re
import sys
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT/'nbs/images/layout.svg'
FLOORS = 'core render models answers data search gradual measures use scale baselines paper all cli'.split()  # what stands below comes first
WIDTH, LEFT, RIGHT, LINE, LETTER, ACCENT = 1000, 92, 750, 24, 6.7, '#b3261e'


def package():
    "Module -> its line about itself, and the modules of the package that it imports, wherever in it."
    root = ROOT/'gradual_cf'
    files = {p.relative_to(root).with_suffix('').as_posix().replace('/', '.'): p for p in sorted(root.rglob('*.py')) if p.stem[0] != '_' and 'templates' not in p.parts}
    trees = {m: ast.parse(p.read_text()) for m, p in files.items()}
    return {m: ast.get_docstring(tree) or '' for m, tree in trees.items()}, {m: taken(tree, m, files) for m, tree in trees.items()}


def taken(tree, module, known):
    "Modules that a tree imports, by whichever form of `from … import …`."
    found, folders = set(), module.split('.')
    for n in ast.walk(tree):
        if not isinstance(n, ast.ImportFrom): continue
        name = '.'.join([*(folders[:-n.level] if n.level else []), n.module or '']).strip('.').removeprefix('gradual_cf.')
        found |= {name, *(f'{name}.{a.name}' for a in n.names)} & {*known} - {module}
    return found


def floor(module): return FLOORS.index(module.partition('.')[0])


def arrows(imports):
    "(floor, another floor) -> imports of modules, the first taking from the second."
    return Counter((floor(m), floor(other)) for m, others in imports.items() for other in others if floor(m) != floor(other))


def drawing():
    "The house as SVG, the same for the same imports."
    (about, imports), out, middle, y = package(), [], {}, 12
    for k in range(len(FLOORS) - 1, -1, -1):
        rows, x = [[]], LEFT
        for m in sorted((m for m in imports if floor(m) == k), key=lambda m: (len([o for o in imports[m] if floor(o) == k]), m)):
            name, wide = m.rpartition('.')[2], len(m.rpartition('.')[2])*LETTER + 12
            if x + wide > RIGHT: rows.append([]); x = LEFT
            rows[-1].append((x, wide, name, imports[m]))
            x += wide + 6
        high = LINE*len(rows) + 6
        middle[k] = y + high/2
        out.append(f'<rect x="4" y="{y}" width="{RIGHT + 4}" height="{high}" rx="4" fill="{"#f4f1ea" if k % 2 else "#e9eef2"}"/>'
                   f'<text x="12" y="{middle[k] + 4:g}" font-weight="bold">{FLOORS[k]}</text>')
        if FLOORS[k] in imports: # a module that is a floor by itself
            out.append(f'<text x="{LEFT}" y="{middle[k] + 4:g}" fill="#555">{escape(about[FLOORS[k]])}</text>')
            rows = []
        for i, row in enumerate(rows):
            for x, wide, name, others in row:
                at = y + 4 + LINE*i
                out.append(f'<g><title>{escape(name)} imports {escape(", ".join(sorted(others)) or "nothing of the package")}</title><rect x="{x:.1f}" y="{at}" width="{wide:.1f}" '
                           f'height="{LINE - 5}" rx="3" fill="white" stroke="#9aa5ad"/><text x="{x + 6:.1f}" y="{at + 14}">{escape(name)}</text></g>')
        y += high + 6
    for (a, b), n in sorted(arrows(imports).items()):
        top, end, far = middle[a], middle[b], RIGHT + 14 + 17*abs(a - b)
        up = b > a
        out.append(f'<path d="M{RIGHT + 8} {top:g}C{far} {top:g} {far} {end:g} {RIGHT + 12} {end:g}" fill="none" stroke="{ACCENT if up else "#46606f"}" stroke-width="{.6 + n**.5/3:.2f}" '
                   f'stroke-opacity="{1 if up else .45}" marker-end="url(#{"up" if up else "down"})"><title>{FLOORS[a]} takes from {FLOORS[b]}, {n} imports</title></path>')
    head = ''.join(f'<marker id="{name}" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" markerHeight="5" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z" fill="{colour}"/></marker>'
                   for name, colour in (('down', '#46606f'), ('up', ACCENT)))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6}" font-family="sans-serif" font-size="11.5" role="img">\n<title>Folders of the package as floors, with their modules, '
            f'and arrows for imports: all go down, but for those in red</title>\n<defs>{head}</defs>\n<rect width="{WIDTH}" height="{y + 6}" fill="white"/>\n' + '\n'.join(out) + '\n</svg>\n')


def walk(call):
    "Module -> the functions of it that a call passes, both in the order of their first turn; what is written inside of a function belongs to it."
    seen = {}
    def look(frame, event, arg):
        package, _, module = frame.f_globals.get('__name__', '').partition('.')
        name = frame.f_code.co_qualname.partition('.<locals>')[0]
        if event == 'call' and package == 'gradual_cf' and '__' not in name and name[0] != '<': seen.setdefault(module, {})[name] = None
    sys.setprofile(look)
    try: call()
    finally: sys.setprofile(None)
    return {module: [*names] for module, names in seen.items()}


def of_one_row():
    "What the default answer of one row of a table passes, once the explainer is warm: lines of markdown."
    sys.path.insert(0, str(ROOT))
    from gradual_cf.data.datasets import load_task
    from gradual_cf.gradual import GradualCF
    task = load_task('breast_cancer')
    cf = GradualCF(task.model, task.domain).fit(task.X)
    row = task.X_test.iloc[[1]]
    cf.explain(row)
    return [f'{i}. `{module}`: {", ".join(names)}' for i, (module, names) in enumerate(walk(lambda: cf.explain(row)).items(), 1)]


MARKS = '<!-- the walk, by docs/layout.py -->\n', '\n<!-- end of the walk -->'


def put_walk(text, lines):
    "A text with other lines between its two marks."
    (before, rest), after = text.split(MARKS[0]), text.split(MARKS[1])[1]
    assert MARKS[1] in rest
    return before + MARKS[0] + '\n'.join(lines) + MARKS[1] + after


def main():
    DRAWING.write_text(drawing())
    page = ROOT/'CONTRIBUTING.md'
    page.write_text(put_walk(page.read_text(), of_one_row()))


if __name__ == '__main__': main()
