"""Which mistakes in the package would go unnoticed? One at a time in live functions, in forked children: imports are paid once.

    make mutants [MODULES="search.masking data.tables"] [MOST=400]     # what is there in build/mutants is not done again
    python .ci/mutants/run.py --of CHECKOUT --out FOLDER --same benchmarks/results/mutants_tried.csv    # the same mistakes elsewhere
    python .ci/mutants/run.py --of CHECKOUT --most 132 --tests --ignore=tests/test_site.py    # what another revision's tests notice, asked as it knows

First the *map* (seen.py): one run of the tests with marks in the package, by which lines and branches are counted and each test knows its lines.
Then MOST mutants, those with the smallest hashes over all modules, each of which meets the tests that run its line, cheapest first, until
one fails or SECONDS of processor time are over. A test that fails without the mistake too counts for nothing. A mutant is known by
its module, function, statement and change, not by a number of line: what another revision no longer has is counted apart.
"""
import argparse
import contextlib
import csv
import gc
import hashlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import defaultdict
from pathlib import Path

import pytest
from mistakes import compiled, mutants
from mapped import Map, spent

HERE = Path(__file__).resolve().parent
SAY = os.dup(1)  # pytest keeps the other
SECONDS, STUCK = 6, 240  # processor time of a mutant; by the clock, a child that waits for ever
MEMORY = 8 << 30  # that a child may ask for
PARTS = ['gradual.py', 'search/*.py', 'data/*.py', 'models/*.py', 'use/*.py']
WITHOUT = ['--cases=few', '--ignore=tests/test_site.py', '--ignore=tests/test_notebooks.py']  # every test, also those that the day leaves to the night


def sample(root, modules, most, same):
    "Those that are tried, and of a file those that are not there any more."
    found = []
    for path in sorted(p for part in PARTS for p in (root/'gradual_cf').glob(part)):
        module = '.'.join(path.relative_to(root/'gradual_cf').with_suffix('').parts)
        if not modules or module in modules: found += mutants(module, path.read_text())
    if not same: return sorted(found, key=lambda m: m['mutant'])[:most]
    there = {m['mutant']: m for m in found}
    rows = sorted(table(same), key=lambda row: row['word'] != 'killed')
    return [dict(there[row['mutant']], by=row['by']) if row['mutant'] in there else dict(row, word='gone') for row in rows]


def where(code): return code.co_filename, code.co_firstlineno, code.co_name


def found(out, key):
    "What is known of mutants for this code and these tests."
    path = out/'found.jsonl'
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {line['mutant']: line for line in lines if line['key'] == key}


class Hunt:
    "Pytest plugin: collects, then tries each mutant in a child of its own."
    def __init__(self, root, out, tried, key):
        self.root, self.out, self.tried, self.key, self.failed = root, out, tried, key, ''
        self.map, self.sound, self.live = Map(out), {}, defaultdict(list)
        self.cost = {name: self.map.cost(line) for name, line in self.map.tests.items()}

    def pytest_runtest_logreport(self, report):
        if report.failed: self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        importlib.import_module('gradual_cf.all')
        gc.unfreeze()
        for f in gc.get_objects():
            if type(f) is types.FunctionType: self.live[where(f.__code__)].append(f)
        self.items = {item.nodeid: item for item in session.items}
        done = found(self.out, self.key)
        todo = [m for m in self.tried if m['mutant'] not in done]
        own = self.own(todo)
        gc.freeze()
        for n, mutant in enumerate(todo):
            line = {**mutant, **(self.ask(session, mutant, own[n]) if 'word' not in mutant else {}), 'key': self.key}
            with open(self.out/'found.jsonl', 'a') as f: f.write(json.dumps(line) + '\n')
            say(n + 1, *(line.get(k, '') for k in ('word', 'module', 'function', 'change', 'by', 'seconds')))
        return True

    def path(self, mutant): return self.root/'gradual_cf'/f'{mutant["module"].replace(".", "/")}.py'

    def own(self, todo):
        "Of each mutant the tests that run its lines: who killed it before, then the cheapest."
        own, arcs = [[] for _ in todo], {test: self.map.arcs(line) for test, line in self.map.tests.items() if test in self.items}
        for n, m in enumerate(todo):
            if 'word' in m: continue
            module = f'gradual_cf.{m["module"]}'
            blocks = {(module, block) for block in self.map.at(module, *m['lines'])}
            own[n] = sorted((test for test, ran in arcs.items() if ran & blocks), key=lambda test: (test != m.get('by'), self.cost[test]))
        return own

    def ask(self, session, mutant, own):
        "Does a test mind? One that fails without the mistake too is not asked."
        code = compiled(self.path(mutant), mutant)
        if not (live := self.live.get(where(code))): return dict(word='no function', by='', tests=len(own))
        while asked := [test for test in own if self.sound.get(test, True)]:
            word, by, seconds = self.child(session, asked, live, code)
            if word == 'killed' and by not in self.sound: self.sound[by] = self.child(session, [by], [], None)[0] == 'survived'
            if word != 'killed' or self.sound[by]: return dict(word=word, by=by, seconds=seconds, tests=len(asked))
        return dict(word='no test', by='', tests=0)

    def child(self, session, tests, live, code):
        "Tests in a forked process, until one fails or its time is over: (word, test, seconds)."
        folder = Path(tempfile.mkdtemp(prefix='mutant-'))
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            try: self.play(session, tests, live, code, folder, write)
            finally: os._exit(1)
        os.close(write)
        said, ended = b'', time.time() + STUCK
        while select.select([read], [], [], max(0, ended - time.time()))[0] and (got := os.read(read, 4096)): said += got
        with contextlib.suppress(ProcessLookupError): os.killpg(pid, signal.SIGKILL)  # what tests began goes with it
        with contextlib.suppress(ProcessLookupError): os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0), os.close(read)
        shutil.rmtree(folder, ignore_errors=True)
        last = said.decode().splitlines()[-1:]
        word, by, seconds = json.loads(last[0]) if last else ('running', tests[0], 0)
        return ('killed' if word == 'running' else word), by, seconds  # who was running when it ended or hung has minded

    def play(self, session, tests, live, code, folder, write):
        "In the child: what is asked and how it ended, one line each."
        os.setsid()
        os.environ['GRADUAL_CF_CACHE'] = str(folder/'networks')
        for f in ('networks', 'tmp'): (folder/f).mkdir()
        session.config._tmp_path_factory._basetemp = folder/'tmp'
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for f in live: f.__code__ = code
        before = spent()
        def tell(word, test): os.write(write, (json.dumps([word, test, round(spent() - before, 2)]) + '\n').encode())
        for test, following in zip(tests, [*tests[1:], None]):
            cost = self.cost[test]
            if test != tests[0] and spent() - before + cost > SECONDS: break  # the others cost more
            tell('running', test)
            signal.setitimer(signal.ITIMER_PROF, 10 + 5*cost)
            try: session.config.hook.pytest_runtest_protocol(item=self.items[test], nextitem=self.items[following] if following else None)
            except BaseException: self.failed = test
            if self.failed: return tell('killed', test)
        tell('survived', '')


def say(*what): os.write(SAY, ('\t'.join(map(str, what)) + '\n').encode())


def write(path, rows):
    with open(path, 'w', newline='') as f:
        table = csv.DictWriter(f, rows[0], lineterminator='\n')
        table.writeheader(), table.writerows(rows)


def table(path):
    if not path: return []
    with open(path, newline='') as f: return list(csv.DictReader(f))


def report(out, tried, key, same):
    "Tables of the mutants, their shares, coverage, and what was killed before and is not any more; all but the first printed."
    known, before = found(out, key), {row['mutant']: row for row in table(same)}
    reasons, rows, shares = {row['mutant']: row['reason'] for row in table(HERE/'reasons.csv')}, [], []
    for m in tried:
        if not (line := known.get(m['mutant'])): continue
        was = before.get(m['mutant'], {})
        rows.append({k: line.get(k, '') for k in ('mutant', 'module', 'function', 'change', 'word', 'by', 'seconds')} |
                    dict(before=was.get('word', ''), by_before=was.get('by', ''), reason=reasons.get(m['mutant'], '')))
    for module in [*sorted({r['module'] for r in rows}), 'all']:
        here = [r for r in rows if module in (r['module'], 'all')]
        there = [r for r in here if r['word'] != 'gone']
        killed, was = (sum(r[k] == 'killed' for r in there) for k in ('word', 'before'))
        shares.append(dict(module=module, mutants=len(there), gone=len(here) - len(there), killed=killed, share=round(killed/max(len(there), 1), 4),
                           killed_before=was if same else '', share_before=round(was/max(len(there), 1), 4) if same else '',
                           with_a_reason=sum(r['word'] != 'killed' and r['reason'] != '' for r in there)))
    lost = [r for r in rows if r['before'] == 'killed' and r['word'] not in ('killed', 'gone')]
    for name, lines in [('_tried', rows), ('_coverage', Map(out).numbers()), ('', shares), ('_lost', lost)]:
        if lines: write(out/f'mutants{name}.csv', lines)
        if name != '_tried':
            say(f'mutants{name}:', *(lines[0] if lines else ['none']))
            for line in lines: say(*line.values())


def key_of(root):
    "What a map and its results hold for: the code of the package and of the tests."
    files = sorted([*root.glob('gradual_cf/**/*.py'), *root.glob('tests/*.py')])
    return hashlib.sha256(b''.join(p.read_bytes() for p in files)).hexdigest()[:16]


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument('modules', nargs='*')
    ask.add_argument('--most', type=int)
    ask.add_argument('--of', type=Path, default=HERE.parents[1], help='a checkout')
    ask.add_argument('--out', type=Path, help='a folder of results')
    ask.add_argument('--same', type=Path, help='a table of mutants that are asked for again')
    ask.add_argument('--tests', nargs=argparse.REMAINDER, default=WITHOUT, help='what pytest is told, to the end of the line')
    given = ask.parse_args()
    root, out = given.of.resolve(), (given.out or given.of/'build/mutants').resolve()
    kept = root/'benchmarks/results/mutants_tried.csv'
    same = given.same.resolve() if given.same else kept if kept.exists() and not (given.modules or given.most) else None
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(root), os.environ.pop('GRADUAL_CF_DATA', None)
    os.environ.update(PYTHONPATH=str(root), OMP_NUM_THREADS=os.environ.get('OMP_NUM_THREADS', '1'))
    key = key_of(root)
    if not (out/'key').exists() or (out/'key').read_text() != key:
        subprocess.run([sys.executable, HERE/'seen.py', root, out, *given.tests], check=False)
        (out/'key').write_text(key)
    tried = sample(root, given.modules, given.most or 400, same)
    sys.path[:0] = [str(root)]
    log = os.open(out/'hunt.log', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1), os.dup2(log, 2)
    pytest.main(['-q', '-p', 'no:cacheprovider', '--timeout=0', *given.tests], plugins=[Hunt(root, out, tried, key)])
    report(out, tried, key, same)


if __name__ == '__main__': main()
