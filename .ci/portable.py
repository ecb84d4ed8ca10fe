"""The whole suite as other processors would run it: older instructions, one thread and two, the oldest PyTorch.

    python .ci/portable.py                       # every cell that this processor can run, once
    python .ci/portable.py --times 3             # three times in a row
    python .ci/portable.py default-1 oldest-avx2-2
    python .ci/portable.py --quick               # the tests that touch floats, with instructions other than this processor's
    python .ci/portable.py --quick --times 3 default-1 avx2-1   # these tests alone, in such cells

The table is kept in benchmarks/results/portable.csv, with the day of each run: a cell that is run again takes the place of its old lines.
Nobody waits for it: the night runs it, and `.ci/run` the tests that touch floats in one other cell.
Processor time is that of all processes, kernels of notebooks too; it is empty where a run did not count these.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT/'benchmarks/results/portable.csv'
FIELDS = ['cell', 'tests', 'run', 'date', 'processor', 'torch', 'passed', 'failed', 'skipped', 'minutes', 'cpu_minutes', 'failures']
INSTRUCTIONS = {  # What PyTorch, oneDNN and MKL call them
    'default': dict(ATEN_CPU_CAPABILITY='default', ONEDNN_MAX_CPU_ISA='SSE41', MKL_ENABLE_INSTRUCTIONS='SSE4_2'),
    'avx2': dict(ATEN_CPU_CAPABILITY='avx2', ONEDNN_MAX_CPU_ISA='AVX2', MKL_ENABLE_INSTRUCTIONS='AVX2'),
    'avx512': dict(ATEN_CPU_CAPABILITY='avx512', ONEDNN_MAX_CPU_ISA='AVX512_CORE', MKL_ENABLE_INSTRUCTIONS='AVX512')}
CELLS = {f'{isa}-{threads}': (isa, threads, '.venv') for isa in INSTRUCTIONS for threads in (1, 2)}
CELLS |= {'oldest-default-1': ('default', 1, '.venv/oldest'), 'oldest-avx2-2': ('avx2', 2, '.venv/oldest')}
FLOATS = 'construct explainer improve typical tables text invariants'.split()  # the files of --quick


def processor():
    "The newest instructions of this processor, among those of the table."
    asked = 'import torch; print(torch.backends.cpu.get_cpu_capability())'
    free = {k: v for k, v in os.environ.items() if k not in INSTRUCTIONS['avx2']}
    told = subprocess.run([ROOT/'.venv/bin/python', '-c', asked], env=free, capture_output=True, text=True, check=True).stdout
    return next((isa for isa in ('avx512', 'avx2') if isa in told.lower()), 'default')


def tested(cell, files):
    "Run the suite in one cell: counts, minutes, and the names of what failed."
    isa, threads, venv = CELLS[cell]
    python = ROOT/venv/'bin/python'
    with tempfile.TemporaryDirectory() as cache:
        # Threads that wait asleep: awake, two of them for each of many small products took three times the processor time.
        env = os.environ | INSTRUCTIONS[isa] | dict(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY='PASSIVE', GRADUAL_CF_CACHE=cache, PATH=f'{python.parent}:{ROOT}/.venv/bin:{os.environ["PATH"]}',
                                                     JUPYTER_PATH=str(ROOT/'.venv/share/jupyter'))  # the oldest environment has only PyTorch of its own
        version = subprocess.run([python, '-c', 'import torch; print(torch.__version__)'], env=env, capture_output=True, text=True, check=True).stdout
        start, before = time.time(), os.times()
        done = subprocess.run([python, '-m', 'pytest', '-q', '-n', '2', '--tb=short', *files], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    failures = re.findall(r'^(?:FAILED|ERROR) (\S+)', done.stdout, re.M)
    count = lambda word: int((re.search(rf'(\d+) {word}', (done.stdout.splitlines() or [''])[-1]) or [0, 0])[1])
    if done.returncode: print(done.stdout[-6000:])
    return dict(cell=cell, torch=version.strip(), passed=count('passed'), failed=len(failures) or bool(done.returncode)*1, skipped=count('skipped'),
                minutes=round((time.time() - start)/60, 1), cpu_minutes=round(spent/60, 1), failures=' '.join(failures))


def keep(rows):
    "Write the table; what was run again takes the place of its old lines."
    again = {(r['cell'], r['tests']) for r in rows}
    old = [r for r in csv.DictReader(TABLE.open()) if (r['cell'], r['tests']) not in again] if TABLE.exists() else []
    with TABLE.open('w', newline='') as f:
        out = csv.DictWriter(f, FIELDS, lineterminator='\n')
        out.writeheader()
        out.writerows(sorted(old + rows, key=lambda r: (r['tests'], list(CELLS).index(r['cell']), int(r['run']))))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('cells', nargs='*', choices=[*CELLS, []], help='cells to run; all that this processor can run by default')
    ap.add_argument('--times', type=int, default=1, help='how often each is run')
    ap.add_argument('--quick', action='store_true', help='the tests that touch floats; without cells in one of them, and nothing is kept')
    a = ap.parse_args()
    has = processor()
    able = list(INSTRUCTIONS)[:list(INSTRUCTIONS).index(has) + 1]
    files = [f'tests/test_{f}.py' for f in FLOATS] if a.quick else ['--ignore=tests/test_site.py']
    if a.quick and not a.cells:
        got = tested('default-1', files)
        print({k: v for k, v in got.items() if v != ''})
        return got['failed']
    rows = []
    for run in range(1, a.times + 1):
        for cell in a.cells or CELLS:
            lacks = f'this processor has {has}' if CELLS[cell][0] not in able else '' if (ROOT/CELLS[cell][2]).is_dir() else f'{CELLS[cell][2]} is made by `make portable`'
            if lacks:
                if run == 1: print(f'{cell:18} not run: {lacks}')
                continue
            rows.append(tested(cell, files) | dict(tests='floats' if a.quick else 'all', run=run, date=date.today().isoformat(), processor=has))
            print('{cell:18} {tests:6} run {run}: {passed} passed, {failed} failed, {skipped} skipped, {minutes} min ({cpu_minutes} of processor time) {failures}'.format(**rows[-1]), flush=True)
            keep(rows)
    return sum(r['failed'] for r in rows)


if __name__ == '__main__': sys.exit(bool(main()))
