"""What all tests share: one folder of networks, each trained once a run, and who may run beside whom."""
import os
import shutil
import signal
import tempfile

import pytest
from filelock import FileLock
from xdist.scheduler import LoadFileScheduling

CACHE = 'GRADUAL_CF_CACHE'


def pytest_configure(config):
    "Ctrl-C is heard, also where a shell began this run in the background; one folder of networks for the whole run, unless the caller names one."
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if CACHE in os.environ: return
    os.environ[CACHE] = tempfile.mkdtemp(prefix='gradual_cf-')
    config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(CACHE), ignore_errors=True))


LONG = ['ray', 'images', 'batch', 'app', 'audit', 'explorer', 'predictors', 'baselines', 'abele', 'real_data', 'browser', 'letter', 'text', 'reproduce']  # files that take longest


def turn(scope):
    "When tests that stay together begin: the longest files, the others, then notebooks, at last those of the method, which are the quickest."
    if 'test_notebooks' in scope: return 2, [-ord(c) for c in scope]
    stem = scope.removesuffix('.py').rpartition('test_')[2]
    return (0, [LONG.index(stem)]) if stem in LONG else (1, [])


class ByFile(LoadFileScheduling):
    "Tests of a file stay together, since they share what they make; notebooks share nothing but networks, and those of the soak nothing at all. What is long begins, so that the workers end together."
    def _split_scope(self, nodeid):
        return nodeid if 'test_notebooks' in nodeid or 'soak' in nodeid else super()._split_scope(nodeid)

    def _assign_work_unit(self, node):
        self.workqueue.move_to_end(min(self.workqueue, key=turn), last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config, log): return ByFile(config, log)


@pytest.fixture(scope='session')
def networks():
    "The networks of the embedded tasks, trained by the first worker that asks."
    from gradual_cf.tasks import load_task
    with FileLock(f'{os.environ[CACHE]}/training.lock'):
        return {name: load_task(name) for name in ('breast_cancer', 'digits', 'toy_reviews')}
