"""Pytest plugin: one run of the tests says which lines and branches of the package run, which test runs which line, and its processor time.

`run.py` begins it. An import hook writes a mark into each *block* of the package: statements of which all run where the first does, an error
apart. Each arm of an `if` is a block, with what stands after it, an `else` that nobody wrote too, and so is the body of a loop. A mark costs
one list store, and a tracer a call for every line.

What a fixture of a module, class or session runs, or a cached helper of the tests, counts for every test that uses it: it is a *unit*, with
blocks of its own. Otherwise the first test of a file would own what the others only read.
"""
import ast
import functools
import hashlib
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from mapped import spent

sys.path.append(str(Path(__file__).resolve().parents[2]/'docs'))
import ran  # noqa: E402 - the hook; before the package

DEFINED = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef


def is_docstring(n): return isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)


def head(n):
    "First and last line of a statement; of one that holds others, of what stands before them."
    inner = getattr(n, 'body', None) or getattr(n, 'cases', None)
    first = min(d.lineno for d in [n, *getattr(n, 'decorator_list', ())])
    if not inner: return [first, n.end_lineno]
    return [first, max(first, min(getattr(part, 'lineno', None) or part.pattern.lineno for part in inner) - 1)]


class Marks:
    "Writes the marks of one module."
    def __init__(self): self.blocks = []

    def begin(self, at, arm):
        "A mark for the block that begins at a statement."
        mark = ast.parse(f'__ran__[{len(self.blocks)}] = True').body[0]
        for part in ast.walk(mark): ast.copy_location(part, at)
        self.blocks.append(dict(lines=[], arm=arm))
        return mark

    def body(self, body, arm):
        "The statements with a mark before the first, and after each that holds others, since it may end the function or the loop."
        out, fresh, number = [], True, None
        for n in body:
            if not out and is_docstring(n) or isinstance(n, ast.ImportFrom) and n.module == '__future__':
                out.append(n)
                continue
            if fresh:
                out.append(self.begin(n, arm))
                number, arm = len(self.blocks) - 1, False
            self.blocks[number]['lines'] += [head(n), *(head(m) for m in getattr(n, 'body', ()) if isinstance(n, ast.ClassDef) and not isinstance(m, DEFINED))]
            fresh = self.inside(n)
            out.append(n)
        return out or body

    def inside(self, n):
        "Marks of what a statement holds; whether there is any that may end what follows."
        if isinstance(n, ast.ClassDef): n.body = [self.function(m) for m in n.body]
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)): self.function(n)
        elif isinstance(n, ast.Match):
            for case in n.cases: case.body = self.body(case.body, True)
        elif isinstance(n, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)):
            choice = isinstance(n, (ast.If, ast.For, ast.AsyncFor, ast.While))
            n.body = self.body(n.body, choice)
            for handler in getattr(n, 'handlers', ()): handler.body = self.body(handler.body, True)
            for name in ('orelse', 'finalbody'):
                if getattr(n, name, None): setattr(n, name, self.body(getattr(n, name), choice))
            if isinstance(n, ast.If) and not n.orelse: n.orelse = [self.begin(n, True)]
        else: return False
        return not isinstance(n, DEFINED)

    def function(self, n):
        "A function, or what a class holds, with its marks."
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)): n.body = self.body(n.body, False)
        elif isinstance(n, ast.ClassDef): self.inside(n)
        return n


def mark(tree):
    "Stands for the hook's own, which marks functions: here blocks are."
    marks = Marks()
    tree.body = marks.body(tree.body, False)
    return marks.blocks


ran.mark = mark


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
    "Blocks by test and unit; what each used and spent."
    def __init__(self, root, out):
        self.root, self.out = Path(root), Path(out)
        (self.out/'tests.jsonl').unlink(missing_ok=True)
        self.stack, self.units, self.failed, self.own, self.others = [], {}, '', [], defaultdict(set)

    def use(self, key):
        if self.stack: self.stack[-1]['uses'].add(key)

    def unit(self, key): return Unit(self, self.units.setdefault(key, dict(unit=key, seconds=0, uses=set(), ran=defaultdict(set))))

    def write(self, line):
        told = {**line, 'uses': sorted(line['uses']), 'ran': {m: sorted(blocks) for m, blocks in line['ran'].items()}}
        with open(self.out/'tests.jsonl', 'a') as f: f.write(json.dumps(told) + '\n')

    def take(self, ran_here):
        "Blocks that ran since they were last taken go to whoever ran them."
        for module, marks in ran.MARKS.items():
            if True in marks:
                ran_here[module] |= {i for i, took in enumerate(marks) if took}
                marks[:] = [False]*len(marks)

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
        line = dict(test=item.nodeid, seconds=0, uses=uses, ran=defaultdict(set))
        with Unit(self, line): yield
        self.write({**line, 'failed': self.failed})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        os.makedirs(os.environ['GRADUAL_CF_CACHE'], exist_ok=True)  # which a test may have named and not made
        if report.failed or report.skipped: self.failed = self.failed or ('failed' if report.failed else 'skipped')

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self):
        self.take(self.others)
        for line in self.units.values(): self.write(line)
        self.write(dict(uses=(), ran=self.others))
        (self.out/'blocks.json').write_text(json.dumps(ran.NAMES))


class Unit:
    "Within, blocks and seconds count for one test or unit alone."
    def __init__(self, seen, line): self.seen, self.line = seen, line

    def turn(self):
        "From one into another: what ran and the seconds since the last turn go to who is on top."
        top = self.seen.stack[-1] if self.seen.stack else dict(ran=self.seen.others, seconds=0)
        self.seen.take(top['ran'])
        now = spent()
        top['seconds'] += now - getattr(self.seen, 'since', now)
        self.seen.since = now

    def __enter__(self):
        self.turn()
        self.seen.stack.append(self.line)

    def __exit__(self, *error):
        self.turn()
        self.line['seconds'] = round(self.line['seconds'], 3)
        self.seen.stack.pop()


def main(root, out, *args):
    "One run of the tests."
    sys.path.insert(0, root)
    pytest.main(['-q', '-p', 'no:cacheprovider', '--timeout=1200', f'--basetemp={out}/tmp', *args], plugins=[Seen(root, out)])


if __name__ == '__main__': main(*sys.argv[1:])
