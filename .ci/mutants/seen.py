"""Pytest plugin: one run under coverage says which lines and branches the tests run, which test runs which line, and its processor time.

`run.py map` gives it to pytest. What a fixture of a module, class or session runs, or a cached helper of the tests, counts for every test
that uses it: it is a *unit*, with a context of its own. Otherwise the first test of a file would own what the others only read.
"""
import functools
import hashlib
import json
import os
import sys
from pathlib import Path

import coverage
import pytest


def spent():
    "Processor time of this process and of the children that ended, in seconds."
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


class Helper:
    "A cached helper: each use is noted, and what it runs when it is not yet known is a unit."
    def __init__(self, seen, cached):
        self.seen, self.cached, self.name = seen, cached, f'{cached.__module__}.{cached.__qualname__}'
        self.inner = functools.lru_cache(**cached.cache_parameters())(self.make)
        functools.update_wrapper(self, cached)

    def key(self, args, named):
        told = f'{args}{named or ""}'
        return self.name + (told if len(told) < 100 else hashlib.sha256(told.encode()).hexdigest()[:16])

    def make(self, *args, **named):
        with self.seen.unit(self.key(args, named)): return self.cached.__wrapped__(*args, **named)

    def __call__(self, *args, **named):
        self.seen.use(self.key(args, named))
        return self.inner(*args, **named)

    def __getattr__(self, name): return getattr(self.inner, name)


class Seen:
    "Contexts of coverage by test and unit; what each used and spent."
    def __init__(self, root, out):
        self.root, self.out = Path(root), Path(out)
        source = [str(self.root/'gradual_cf')]
        self.cover = coverage.Coverage(data_file=str(self.out/'coverage'), branch=True, source=source, config_file=False)
        self.cover.set_option('run:disable_warnings', ['trace-changed', 'no-data-collected', 'module-not-measured'])
        for name in ('tests.jsonl', 'coverage'): (self.out/name).unlink(missing_ok=True)
        self.stack, self.units, self.failed, self.own = [], {}, '', []

    def use(self, key):
        if self.stack: self.stack[-1]['uses'].add(key)

    def unit(self, key): return Unit(self, self.units.setdefault(key, dict(unit=key, seconds=0, uses=set())))

    def write(self, line):
        with open(self.out/'tests.jsonl', 'a') as f: f.write(json.dumps({**line, 'uses': sorted(line['uses'])}) + '\n')

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self):
        from hypothesis import settings
        settings.register_profile('seen', parent=settings(), deadline=None)
        settings.load_profile('seen')

    def pytest_collection_finish(self):
        "Caches of helpers become units; those of the package are emptied before each test."
        for module in [m for m in list(sys.modules.values()) if str(getattr(m, '__file__', None) or '').startswith(str(self.root/'tests'))]:
            for name, value in list(vars(module).items()):
                if not isinstance(value, functools._lru_cache_wrapper): continue
                if getattr(sys.modules.get(value.__module__), '__file__', '').startswith(str(self.root/'tests')):
                    setattr(module, name, Helper(self, value))
        self.own = [v for n, m in list(sys.modules.items()) if n.startswith(('gradual_cf.use.', 'gradual_cf.data.'))
                    for v in vars(m).values() if isinstance(v, functools._lru_cache_wrapper)]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == 'function': yield
        else:
            with self.unit(self.fixture(fixturedef, request.param_index if hasattr(request, 'param') else 0)): yield

    def fixture(self, fixture, at): return f'{fixture.baseid}::{fixture.argname}[{at}]'

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.failed = ''
        for cached in self.own: cached.cache_clear()
        at = getattr(getattr(item, 'callspec', None), 'indices', {})
        fixtures = [f[-1] for f in item._fixtureinfo.name2fixturedefs.values() if f]
        uses = {self.fixture(f, at.get(f.argname, 0)) for f in fixtures if f.scope != 'function'}
        line = dict(test=item.nodeid, seconds=0, uses=uses)
        with Unit(self, line): yield
        self.write({**line, 'failed': self.failed})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        os.makedirs(os.environ['GRADUAL_CF_CACHE'], exist_ok=True)  # which a test may have named and not made
        if report.failed or report.skipped: self.failed = self.failed or ('failed' if report.failed else 'skipped')

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self):
        for line in self.units.values(): self.write(line)
        self.cover.stop()
        self.cover.save()


class Unit:
    "Within, lines and seconds count for one test or unit alone."
    def __init__(self, seen, line): self.seen, self.line = seen, line

    def turn(self):
        "From one context into another: seconds since the last turn go to who is on top."
        self.seen.cover.switch_context(self.seen.stack[-1].get('test') or 'unit ' + self.seen.stack[-1]['unit'] if self.seen.stack else '')
        self.seen.since = spent()

    def __enter__(self):
        if self.seen.stack: self.seen.stack[-1]['seconds'] += spent() - self.seen.since
        self.seen.stack.append(self.line)
        self.turn()

    def __exit__(self, *error):
        self.line['seconds'] = round(self.line['seconds'] + spent() - self.seen.since, 3)
        self.seen.stack.pop()
        self.turn()


def numbers(out):
    "Statements and branches of each module, and how many of them ran."
    cover = coverage.Coverage(data_file=str(out/'coverage'), config_file=False)
    cover.load()
    cover.json_report(outfile=str(out/'coverage.json'))
    told = json.loads((out/'coverage.json').read_text())['files']
    (out/'coverage.json').unlink()
    rows = [(path.partition('gradual_cf/')[2], one['summary']) for path, one in sorted(told.items()) if '_modidx' not in path]
    names = dict(lines='num_statements', run='covered_lines', branches='num_branches', taken='covered_branches')
    rows.append(('all', {k: sum(one[k] for _, one in rows) for k in names.values()}))
    share = lambda some, of: round(some/max(of, 1), 4)
    return [dict(module=name, **{k: n[v] for k, v in names.items()}, share_of_lines=share(n['covered_lines'], n['num_statements']),
                 share_of_branches=share(n['covered_branches'], n['num_branches'])) for name, n in rows if n['num_statements']]


def main(root, out, *args):
    "One run of the tests under coverage."
    sys.path.insert(0, root)
    seen = Seen(root, out)
    seen.cover.start()
    pytest.main(['-q', '-p', 'no:cacheprovider', '--timeout=1200', f'--basetemp={out}/tmp', *args], plugins=[seen])


if __name__ == '__main__': main(*sys.argv[1:])
