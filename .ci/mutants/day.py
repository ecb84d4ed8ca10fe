"""Which tests the day can leave to the night: all lines and branches that they run are run by others too, and no mistake that was tried was noticed by them first.

    make mutants; python .ci/mutants/day.py [MAP ...]      # folders of `run.py`, build/mutants where none is named; writes tests/night.txt

Functions of tests are taken or left, with all their cases of a day. Those that cost little, the tables of promises, and those that noticed
a mistake first stay. Of the others the greedy choice takes whoever runs most that nobody ran yet for a second of processor time, in which
fixtures and helpers that somebody else has made already cost nothing; the rest go into the list. Nothing is lost: they run at night.
"""
import json
import sys
from collections import defaultdict
from pathlib import Path

from mapped import Map

ROOT = Path(__file__).resolve().parents[2]
CHEAP = .1  # seconds of all cases of a function
WHOLE = 'contract', 'proofs', 'refusals', 'refusals_of_use', 'layout', 'docs', 'pages', 'written', 'soak'  # files that stay


class Maps:
    "What functions of tests run and cost, of one or more maps."
    def __init__(self, folders):
        self.arcs, self.seconds, self.units, self.uses, self.first = defaultdict(set), defaultdict(float), {}, defaultdict(set), set()
        for place, folder in enumerate(map(Path, folders)): self.read(place, folder)

    def read(self, place, folder):
        seen = Map(folder)
        self.units |= {(place, name): line['seconds'] for name, line in seen.units.items()}
        for test, line in seen.tests.items():
            function = test.partition('[')[0]
            self.seconds[function] += line['seconds']
            self.uses[function] |= {(place, unit['unit']) for unit in seen.used(line)}
            self.arcs[function] |= seen.arcs(line)
        known = folder/'found.jsonl'
        for line in map(json.loads, known.read_text().splitlines() if known.exists() else ()):
            if line['word'] == 'killed': self.first.add(line['by'].partition('[')[0])

    def cost(self, function, paid): return max(self.seconds[function], .01) + sum(self.units[u] for u in self.uses[function] - paid)


def chosen(seen):
    "Functions that the day takes."
    stays = lambda f: Path(f.partition('::')[0]).stem.removeprefix('test_') in WHOLE or f in seen.first or seen.cost(f, set()) <= CHEAP
    day = {f for f in seen.seconds if stays(f)}
    have, paid = set().union(*(seen.arcs[f] for f in day)), set().union(*(seen.uses[f] for f in day))
    left = {f: seen.arcs[f] - have for f in seen.seconds if f not in day}
    while left := {f: arcs - have for f, arcs in left.items() if arcs - have}:
        best = max(left, key=lambda f: (len(left[f])/seen.cost(f, paid), f))
        day.add(best)
        have |= left.pop(best)
        paid |= seen.uses[best]
    return day


def main(*folders):
    seen = Maps(folders or [ROOT/'build/mutants'])
    day = chosen(seen)
    night = sorted({*seen.seconds} - day)
    seconds = lambda functions: sum(seen.seconds[f] for f in functions) + sum(seen.units[u] for u in set().union(*(seen.uses[f] for f in functions)))
    (ROOT/'tests/night.txt').write_text('\n'.join(night) + '\n')
    print(f'{len(seen.seconds)} functions, {seconds(seen.seconds):.0f} s with marks; the day takes {len(day)}, {seconds(day):.0f} s; the night {len(night)} more')


if __name__ == '__main__': main(*sys.argv[1:])
