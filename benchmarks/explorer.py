"""The explorer: how long does a person wait for an answer?

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/explorer.py [--questions 24] [--out benchmarks/results/explorer.csv]

HELOC under its three presets, with its network and with 200 boosted trees (`heloc trees`, of LightGBM), and the embedded tumours, digits
and toy reviews, each with its network and the default preset of its kind. A visitor goes to a row that is refused, locks what the
answer wants to change, locks some more, sets a limit and moves a value by hand; then to the next row. Every such move is an update
of the panel without a browser: what a page would send is read, the question is answered, and its parts are told to the widget.

`first` is the time until the answer is shown, `all` until what is enough and the order are there too, `hand` until the needle has moved
after a value was, `lines` until the lines of all columns have: median and 95th percentile in milliseconds of CPU time of the whole process, which other programs on the
machine do not lengthen much. `wall` is the same as `first` by the clock on the wall, on a machine with as much to do as `load` says
(running programs for each core). `switch` is wall time from a new question, put while an older one is searched for, to its answer.
`open` is the CPU time that it takes to open the panel.
"""
import argparse
import os
import time
from threading import Event

import numpy as np
import pandas as pd
import torch

from gradual_cf.core import atomic, take_rows
from gradual_cf.use.explorer import explorer
from gradual_cf.gradual import GradualCF
from gradual_cf.data.datasets import load_task

ASKED = [('heloc', 'sparse'), ('heloc', 'robust'), ('heloc', 'plausible'), ('heloc trees', 'robust'), ('heloc trees', 'plausible'),
         ('breast_cancer', 'robust'), ('toy_reviews', None), ('digits', None)] # Data and preset
ROWS = 100


class Clock:
    "When the parts of an answer were shown."
    def __init__(self, panel):
        self.panel, self.shown, self.times, self.answered = panel, panel.show, {}, Event()
        panel.worker.publish = self.publish

    def publish(self, part):
        self.shown(part)
        self.times[part[0]] = time.perf_counter(), time.process_time()
        if part[0] == 'done': self.answered.set()

    def after(self, move):
        "Milliseconds of wall and CPU time until each part was shown, after a move of a knob."
        self.times.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        move()
        self.panel.worker.wait(600)
        return {name: (1000*(w - wall), 1000*(c - cpu)) for name, (w, c) in self.times.items()}


def locked(panel, names):
    "What a page would set to hold what is called so."
    if panel.desk.domain.features:
        columns = [c.name for c in panel.desk.domain.features]
        return dict(ways=panel.mine['ways'] | {str(columns.index(name)): 'stay' for name in names})
    if panel.desk.regions is None: return dict(locked=[*panel.mine['locked'], *{str(name).lower() for name in names}])
    return dict(locked=[*panel.mine['locked'], *{i for i, held in enumerate(panel.desk.regions) for name in names if name in held}])


def wanted(panel):
    "What the answer on the panel wants to change."
    df = panel.shown[1].changes()
    return df.before.tolist() if panel.desk.cf.domain.kind == 'text' else df.feature.tolist()


def moves(panel, rng):
    "What a visitor does with one row, as functions without arguments."
    yield lambda: panel.go(panel.row + 1)
    for _ in range(3):
        names = wanted(panel)
        if not names: break
        name = names[rng.integers(len(names))]
        yield lambda: panel.set(**locked(panel, [name]))
    sliders = [i for i, c in enumerate(panel.fixed['columns']) if c['levels'] is None]
    for i in rng.permutation(sliders)[:2]:
        c = panel.fixed['columns'][i]
        yield lambda: panel.set(limits={str(i): [None, (c['low'] + c['high'])/2]})


def by_hand(panel):
    "A value moved by hand, where there is one."
    if columns := panel.fixed['columns']:
        i, c = next((i, c) for i, c in enumerate(columns) if c['levels'] is None)
        panel.set(hand={str(i): c['low'] if panel.mine['hand'].get(str(i)) != c['low'] else c['high']})
    else: panel.set(hand=panel.desk.one(panel.row)[0] + ' good')


def visit(panel, clock, questions, rng):
    "The times of so many updates."
    updates, hand, lines, switches = [], [], [], []
    while len(updates) < questions:
        panel.set(ways={}, limits={}, locked=[], hand={})
        panel.worker.wait()
        for move in moves(panel, rng):
            updates.append(clock.after(move))
        if panel.desk.domain.kind in ('table', 'text'):
            told = clock.after(lambda: by_hand(panel))
            hand.append(told['said'][1]), lines.append(told['lines'][1])
        switches.append(switched(panel, clock))
    return updates, hand, lines, switches


def switched(panel, clock):
    "Milliseconds from a question that is put while another one is searched for to its answer."
    panel.go(panel.row + 1)
    time.sleep(.005)
    clock.answered.clear()
    start = time.perf_counter()
    panel.go(panel.row + 1)
    clock.answered.wait()
    wall = time.perf_counter() - start
    panel.worker.wait()
    return 1000*wall


def trees_of(task):
    "Boosted trees that were fitted on the rows of a task."
    from lightgbm import LGBMClassifier
    return LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1, random_state=0).fit(task.X, task.y)


def measured(name, preset, questions):
    "One line of the table."
    task, rng = load_task(name.removesuffix(' trees')), np.random.default_rng(0)
    cf = GradualCF(trees_of(task) if name.endswith('trees') else task.model, task.domain, preset).fit(task.X)
    z = cf.logits(rows := take_rows(task.X_test, slice(600)), cf.encode(rows).x)
    target = 1 if z.shape[1] == 2 else 9
    refused = take_rows(rows, (z.argmax(1) != target).nonzero()[:ROWS, 0].numpy())
    start = time.process_time()
    box = explorer(cf, refused, target)
    opened = 1000*(time.process_time() - start)
    box.wait()
    updates, hand, lines, switches = visit(box.panel, Clock(box.panel), questions, rng)
    told = dict(first=[u['done'][1] for u in updates], all=[max(c for _, c in u.values()) for u in updates], hand=hand, lines=lines,
                wall=[u['done'][0] for u in updates], switch=switches)
    out = dict(data=name, preset=preset or 'default', updates=len(updates), open=opened)
    for label, values in told.items(): out |= {label: np.median(values), f'{label}_95': np.quantile(values, .95)} if values else {}
    return out | dict(load=os.getloadavg()[0]/os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--questions', type=int, default=24)
    parser.add_argument('--data', nargs='*', help='lines of these alone, as heloc or heloc:plausible')
    parser.add_argument('--out')
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
    lines = []
    for name, preset in ASKED:
        if args.data and not {name, f'{name}:{preset}'} & {*args.data}: continue
        lines.append(measured(name, preset, args.questions))
        df = pd.DataFrame(lines).round(1)
        print(df.tail(1).to_string(index=False), flush=True)
        if not args.out: continue
        with atomic(args.out) as tmp: df.to_csv(tmp, index=False)


if __name__ == '__main__': main()
