"""What all tests share: networks that are written down, in one folder for the run; who runs beside whom, and in which order; what is said at the end."""
import gc
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import written
from filelock import FileLock
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ['spent']
CACHE, RUN = 'GRADUAL_CF_CACHE', 'GRADUAL_CF_RUN'  # the folder of networks, and a name of this run
sys.modules.setdefault('rfc3987_syntax', None)  # as docs/quick.py says, which a test that copies this file does not have


def pytest_configure(config):
    "Ctrl-C is heard, also where a shell began this run in the background; the same made cases in every run, other ones in a soak; one folder of networks for the whole run, unless the caller names one; no run with other networks than those of the table."
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line('markers', 'night: a test beside others of the same code, or its large size; runs where somebody names it, and at night (--cases=all)')
    settings.register_profile('same', derandomize='SOAK_SIZE' not in os.environ)
    settings.load_profile('same')
    if hasattr(config, 'workerinput'): return
    if bad := written.damaged(): raise pytest.UsageError(written.complaint(bad))
    os.environ[RUN] = uuid.uuid4().hex
    if CACHE in os.environ: os.makedirs(os.environ[CACHE], exist_ok=True)
    else:
        os.environ[CACHE] = tempfile.mkdtemp(prefix='gradual_cf-')
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(CACHE), ignore_errors=True))
    config.pluginmanager.register(Trained(os.environ[CACHE], time.time()))


def pytest_addoption(parser):
    parser.addoption('--pages', choices=['chapters', 'changed', 'all'], default='changed',
                     help='notebooks that run beside the chapters: none, those whose source changed since their kept run, or all')
    parser.addoption('--cases', choices=['day', 'all'], default='day', help='of a test with many cases its first, middle and last, and none that is marked night; or all (make night)')
    parser.addoption('--shuffle', type=int, metavar='SEED', help='files, and the tests in each, in another order')


TABLES = 'contract', 'proofs', 'refusals', 'refusals_of_use', 'notebooks', 'site'  # files whose every case is a promise of its own


def is_size(place, many):
    "Whether a case, one of many of a test, only asks the same of something else: neither the first, the middle nor the last."
    return place not in (0, many//2, many - 1)


def sizes(items):
    "Cases that the night takes, unless somebody names one."
    tests, large = {}, {item for item in items if item.get_closest_marker('night')}
    for item in items:
        if hasattr(item, 'callspec') and item not in large and item.path.stem.removeprefix('test_') not in TABLES:
            tests.setdefault(item.nodeid.partition('[')[0], []).append(item)
    return large | {item for cases in tests.values() for i, item in enumerate(cases) if is_size(i, len(cases))}


def fewer_examples(items):
    "Tests of made examples take a third of them by day; the same ones in each run."
    for test in {item.obj for item in items if getattr(getattr(item, 'obj', None), 'is_hypothesis_test', False)}:
        told = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(told, max_examples=max(3, told.max_examples//3))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    named = any('::' in arg for arg in config.args) or config.option.keyword or 'soak' in ' '.join(config.args)
    if config.getoption('cases') != 'all' and not named:
        left = sizes(items)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
        fewer_examples(items)
    if config.getoption('shuffle') is None: return
    r, files = random.Random(config.getoption('shuffle')), {}
    for item in items: files.setdefault(item.path, []).append(item)
    for tests in files.values(): r.shuffle(tests)
    items[:] = [item for tests in r.sample(list(files.values()), len(files)) for item in tests]


def pytest_collection_finish():
    "What was imported and collected stays: nothing looks through it for garbage again, and seldom through the rest."
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


class Trained:
    "Fails a run in which a network of an embedded task was trained, and says during which test; with workers side by side, another may be meant."
    def __init__(self, folder, since): self.folder, self.since, self.during, self.seen = folder, since, {}, 0

    def pytest_runtest_logreport(self, report):
        if report.when != 'teardown': return
        now = os.stat(self.folder).st_mtime_ns
        if now != self.seen:  # a file came
            self.seen = now
            for name in written.trained(self.since): self.during.setdefault(name, report.nodeid)

    def pytest_sessionfinish(self, session):
        if self.during: session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for name, test in self.during.items():
            terminalreporter.write_line(f'{name} was trained during {test}: load it as tests/written.py does (a further seed: TASKS, make networks), or give the test `own_cache` if it is about training', red=True)


def reason(said):
    "What a skipped test needs."
    missing = re.match("Skipped: could not import '(\\w+)", said)
    return f'need {missing[1]} (make .venv/.extras)' if missing else said.removeprefix('Skipped: ')


def pytest_terminal_summary(terminalreporter):
    "Why tests were skipped, in one line; what cannot be imported is one of the extras."
    reasons = Counter(reason(r.longrepr[2]) for r in terminalreporter.stats.get('skipped', []))
    if reasons: terminalreporter.write_line(f'{reasons.total()} skipped: ' + ', '.join(f'{n} {why}' for why, n in reasons.most_common()))


LONG = ['engines', 'images', 'batch', 'audit', 'explorer', 'predictors', 'baselines', 'abele', 'real_data', 'browser', 'letter', 'text', 'reproduce']  # files that take longest


def turn(scope):
    "When tests that stay together begin: the longest files, the others, then notebooks, at last those of the method, which are the quickest."
    if 'test_notebooks' in scope: return 2, [-ord(c) for c in scope]
    stem = scope.removesuffix('.py').rpartition('test_')[2]
    return (0, [LONG.index(stem)]) if stem in LONG else (1, [])


FORKING = re.compile(r'^(from|import) (shell|kernels|execute)\b', re.M)  # files whose tests fork kernels or commands


@cache
def forks(file): return bool(FORKING.search((Path(__file__).parent/file).read_text()))


class ByFile(LoadFileScheduling):
    """Tests of a file stay together, since they share what they make; notebooks share nothing but networks, and those of the soak nothing at all.

    What is long begins, so that the workers end together. What forks goes to the first of two workers: the process that forks has imported
    everything, and one of these is enough.
    """
    def _split_scope(self, nodeid):
        return nodeid if 'test_notebooks' in nodeid or 'soak' in nodeid else super()._split_scope(nodeid)

    def _assign_work_unit(self, node):
        of_its_own = [scope for scope in self.workqueue if len(self.nodes) > 2 or forks(Path(scope.partition('::')[0]).name) == (node is self.nodes[0])]
        self.workqueue.move_to_end(min(of_its_own or self.workqueue, key=turn), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)  # there is none with -p no:xdist
def pytest_xdist_make_scheduler(config, log): return ByFile(config, log)


@pytest.fixture(scope='session')
def networks():
    "The cache folder has the networks of all embedded tasks, for kernels and commands; the first worker that asks puts them there."
    done = os.path.join(os.environ[CACHE], f'.planted-{os.environ[RUN]}')
    with FileLock(f'{os.environ[CACHE]}/training.lock'):
        if not os.path.exists(done):
            written.plant()
            open(done, 'w').close()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    "A cache folder of its own, for a test about training itself."
    monkeypatch.setenv(CACHE, str(tmp_path/'cache'))
