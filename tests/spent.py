"""What a run really cost, told in its last lines: processor time with workers, kernels and children, and the ten dearest tests.

A clock beside the run (`--durations`) measures what else the machine does. A worker of xdist tells its own time when it ends.
"""
import os
import sys

import pytest

CONTROLLER = {'workers': 0., 'tests': []}  # seconds of ended workers, and (seconds, test)


def seconds():
    "Processor time of this process and of its children that ended."
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    before = seconds()
    yield
    kernel = dict(item.user_properties).get('cpu', 0.)  # a kernel is no child of this process
    item.config.spent.append((seconds() - before + kernel, item.nodeid))


def pytest_configure(config):
    config.spent = []
    config.pluginmanager.register(Workers())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if forks := sys.modules.get('multiprocessing.forkserver'): forks._forkserver._stop()  # kernels and servers' workers count once it has ended
    if hasattr(session.config, 'workeroutput'): session.config.workeroutput['spent'] = seconds(), session.config.spent


class Workers:
    "What workers tell; there are none with -p no:xdist."
    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        cost, tests = getattr(node, 'workeroutput', {}).get('spent', (0., []))
        CONTROLLER['workers'] += cost
        CONTROLLER['tests'] += map(tuple, tests)


def pytest_terminal_summary(terminalreporter, config):
    t, tests = os.times(), sorted(CONTROLLER['tests'] + config.spent, reverse=True)
    whole = t.user + t.system + CONTROLLER['workers'] if CONTROLLER['workers'] else seconds()  # workers are children of this process too
    terminalreporter.write_line(f'{whole:.0f} s of processor time, workers, kernels and children included; the dearest tests:')
    for cost, name in tests[:10]: terminalreporter.write_line(f'{cost:6.1f} s  {name}')
    if hasattr(config, 'cache'): config.cache.set('spent', tests)  # every test, for whoever looks where the time goes
