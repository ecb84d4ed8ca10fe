"""What a map says (seen.py): which test runs which blocks of the package, and what it costs."""
import json
import os
from collections import defaultdict
from pathlib import Path


def spent():
    "Processor time of this process and of the children that ended, in seconds."
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


class Map:
    "What a run of the tests has told: `tests` name → (seconds, uses, ran), `units` likewise, `blocks` of each module."
    def __init__(self, folder):
        self.blocks = json.loads((Path(folder)/'blocks.json').read_text())
        lines = [json.loads(line) for line in (Path(folder)/'tests.jsonl').read_text().splitlines()]
        self.units = {line['unit']: line for line in lines if 'unit' in line}
        self.tests = {line['test']: line for line in lines if not line.get('failed', True)}
        self.lines = lines

    def used(self, line):
        "A test or unit and the units that it uses, directly or through others."
        used = list(line['uses'])
        for name in used: used += [u for u in self.units.get(name, dict(uses=()))['uses'] if u not in used]
        return [self.units[u] for u in used if u in self.units]

    def cost(self, line): return line['seconds'] + sum(unit['seconds'] for unit in self.used(line))

    def arcs(self, line):
        "Blocks that a test runs, those of its units included, as (module, number)."
        return {(module, block) for one in (line, *self.used(line)) for module, ran_here in one['ran'].items() for block in ran_here}

    def at(self, module, first, last):
        "Numbers of the blocks that have some of these lines."
        return {i for i, block in enumerate(self.blocks.get(module, ())) if any(a <= last and first <= b for a, b in block['lines'])}

    def numbers(self):
        "Statements and arms of choices of each module, and how many of them ran."
        took = defaultdict(set)
        for line in self.lines:
            for module, blocks in line['ran'].items(): took[module] |= {*blocks}
        rows = []
        for module, blocks in sorted(self.blocks.items()):
            lines, arms = ([[len(b['lines']) if kind == 'lines' else b['arm'] for b in blocks] for kind in ('lines', 'arm')])
            rows.append(dict(module=module.removeprefix('gradual_cf.'), lines=sum(lines), run=sum(lines[i] for i in took[module]),
                             branches=sum(arms), taken=sum(arms[i] for i in took[module])))
        rows.append(dict(module='all', **{k: sum(row[k] for row in rows) for k in ('lines', 'run', 'branches', 'taken')}))
        share = lambda some, of: round(some/max(of, 1), 4)
        return [{**r, 'share_of_lines': share(r['run'], r['lines']), 'share_of_branches': share(r['taken'], r['branches'])} for r in rows if r['lines']]
