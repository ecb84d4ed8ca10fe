"""The explorer: how long does a person wait for an answer?

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/explorer.py [--questions 24] [--out benchmarks/results/explorer.csv]

HELOC and the embedded tumours, digits and toy reviews, each with its network. A visitor goes to a row that is refused, locks what the
answer wants to change, locks some more, narrows a range and moves a value by hand; then to the next row. Every such move is an update
of the panel without a browser: knobs are read, the question is answered, and its parts are written into the widgets.

`first` is the time until the answer is shown, `all` until the order and the other answers are there too, `hand` until the model's word on
a value moved by hand is: median and 95th percentile in milliseconds of CPU time of the whole process, which other programs on the
machine do not lengthen much. `wall` is the same as `first` by the clock on the wall, on a machine with as much to do as `load` says
(running programs for each core). `switch` is wall time from a new question, put while an older one is searched for, to its answer.
`widgets` counts what travels to the browser when the panel opens, and `open` is the CPU time that this takes.
"""
import argparse
import os
import time
from threading import Event

import numpy as np
import pandas as pd
import torch
from ipywidgets.widgets.widget import _instances

from gradual_cf.core import atomic, take_rows
from gradual_cf.use.explorer import explorer
from gradual_cf.gradual import GradualCF
from gradual_cf.data.datasets import load_task

TASKS = ('heloc', 'toy_reviews', 'breast_cancer', 'digits')
ROWS = 100


class Clock:
    "When the parts of an answer were shown."
    def __init__(self, panel):
        self.panel, self.shown, self.times, self.answered = panel, panel.show, {}, Event()
        panel.worker.publish = self.publish

    def publish(self, part):
        self.shown(part)
        self.times[part[0]] = time.perf_counter(), time.process_time()
        if part[0] == 'answer': self.answered.set()

    def after(self, move):
        "Milliseconds of wall and CPU time until each part was shown, after a move of a knob."
        self.times.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        move()
        self.panel.worker.wait()
        return {name: (1000*(w - wall), 1000*(c - cpu)) for name, (w, c) in self.times.items()}


def locks_of(panel, names):
    "The toggles that lock what is called so."
    knobs = panel.knobs
    if hasattr(knobs, 'lines'): return [line.lock for line in knobs.lines if line.c.name in names]
    if hasattr(knobs, 'region'): return [knobs.locks[knobs.region[knobs.names.index(name)]] for name in names]
    words = {lock.description.lower(): lock for lock in knobs.locks if not lock.disabled}
    return [words[w] for w in dict.fromkeys(str(name).lower() for name in names) if w in words]


def wanted(panel):
    "What the answer on the panel wants to change."
    df = panel.shown[1].changes()
    return df.before.tolist() if panel.desk.cf.domain.kind == 'text' else df.feature.tolist()


def moves(panel, rng):
    "What a visitor does with one row, as functions without arguments."
    yield lambda: panel.go(panel.row + 1)
    for _ in range(3):
        locks = [lock for lock in locks_of(panel, wanted(panel)) if not lock.value]
        if not locks: break
        yield lambda: setattr(locks[rng.integers(len(locks))], 'value', True)
    ranges = [line.limit for line in getattr(panel.knobs, 'lines', ()) if hasattr(line.limit, 'slider') and not line.limit.slider.disabled]
    for one in rng.permutation(len(ranges))[:2]:
        c = ranges[one].c
        yield lambda: setattr(ranges[one].slider, 'value', (c.low, (c.low + c.high)/2))


def by_hand(panel):
    "A value moved by hand, where the panel has editors."
    if hasattr(panel.knobs, 'lines'):
        line = panel.knobs.lines[0]
        line.hand.widget.value = line.c.low if line.hand.widget.value != line.c.low else line.c.high
    elif hasattr(panel.knobs, 'hand'): panel.knobs.hand.value += ' good'


def visit(panel, clock, questions, rng):
    "The times of so many updates."
    updates, hand, switches = [], [], []
    while len(updates) < questions:
        with panel.quietly(): panel.knobs.release()
        for move in moves(panel, rng):
            updates.append(clock.after(move))
        if hasattr(panel.knobs, 'lines') or hasattr(panel.knobs, 'hand'): hand.append(clock.after(lambda: by_hand(panel))['said'][1])
        switches.append(switched(panel, clock))
    return updates, hand, switches


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


def measured(name, questions):
    "One line of the table."
    task, rng = load_task(name), np.random.default_rng(0)
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    z = cf.logits(rows := take_rows(task.X_test, slice(600)), cf.encode(rows).x)
    target = 1 if z.shape[1] == 2 else 9
    refused = take_rows(rows, (z.argmax(1) != target).nonzero()[:ROWS, 0].numpy())
    before, start = len(_instances), time.process_time()
    box = explorer(cf, refused, target, task.classes)
    opened = 1000*(time.process_time() - start)
    box.wait()
    widgets = len(_instances) - before
    updates, hand, switches = visit(box.panel, Clock(box.panel), questions, rng)
    told = dict(first=[u['answer'][1] for u in updates], all=[max(c for _, c in u.values()) for u in updates], hand=hand,
                wall=[u['answer'][0] for u in updates], switch=switches)
    out = dict(data=name, updates=len(updates), widgets=widgets, open=opened)
    for label, values in told.items(): out |= {label: np.median(values), f'{label}_95': np.quantile(values, .95)} if values else {}
    return out | dict(load=os.getloadavg()[0]/os.cpu_count())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--questions', type=int, default=24)
    parser.add_argument('--data', nargs='*', default=TASKS)
    parser.add_argument('--out')
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
    lines = []
    for name in args.data:
        lines.append(measured(name, args.questions))
        df = pd.DataFrame(lines).round(1)
        print(df.tail(1).to_string(index=False), flush=True)
        if not args.out: continue
        with atomic(args.out) as tmp: df.to_csv(tmp, index=False)


if __name__ == '__main__': main()
