"""Which functions of the package ran, at the price of one list store a call: an import hook writes a mark into each function's first line.

    import ran                  # before the package; `kernels.py` lets the process that forks kernels do so
    ran.taken()                 # {'gradual_cf.search.boxes': ['grid_of', …], …}, imports included; None where a process was begun

Positions and docstrings stay, so tracebacks and `inspect` are as before. Fingerprints of the package are those of code without marks.
"""
import ast
import importlib.machinery
import os
import sys
from types import CodeType, FunctionType

PACKAGE = 'gradual_cf'
NAMES, MARKS = {}, {}   # module -> names of its functions and methods, and whether each ran
PLAIN = {}              # code with a mark -> the same without
BEGUN = []              # what begins a process, of which nothing is known here
program = None          # of `gradual_cf.models.fingerprints`, as it was imported


def functions(body, path=()):
    "(name, node) of the functions of a module and the methods of its classes; what stands inside a function is part of it."
    for n in body:
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)): yield '.'.join([*path, n.name]), n
        elif isinstance(n, ast.ClassDef): yield from functions(n.body, (*path, n.name))


def mark(tree):
    "Write a mark into each function of a module; returns their names in order."
    names = []
    for name, n in functions(tree.body):
        store = ast.parse(f'__ran__[{len(names)}] = True').body[0]
        for part in ast.walk(store): ast.copy_location(part, n.body[0])
        n.body.insert(ast.get_docstring(n, clean=False) is not None, store)
        names.append(name)
    return names


def pair(marked, plain):
    "Remember what the functions of a module were without marks."
    inner = lambda code: [c for c in code.co_consts if isinstance(c, CodeType)]
    for a, b in zip(inner(marked), inner(plain), strict=True):
        PLAIN[a] = b
        pair(a, b)


def without_marks(f):
    "Stands for the package's `program_of`: what a function does, without its mark."
    if f is without_marks: f = program
    plain = PLAIN.get(f.__code__) if isinstance(f, FunctionType) else None
    if plain is None: return program(f)
    twin = FunctionType(plain, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    if twin.__doc__ != f.__doc__: twin.__doc__ = f.__doc__  # of what it wraps
    return program(twin)


class Loader(importlib.machinery.SourceFileLoader):
    "Loads a module with marks, never from byte code."
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        data = self.get_data(path)
        tree = ast.parse(data)
        NAMES[self.name] = mark(tree)
        MARKS[self.name] = [False]*len(NAMES[self.name])
        code = compile(ast.fix_missing_locations(tree), path, 'exec', dont_inherit=True)
        pair(code, compile(data, path, 'exec', dont_inherit=True))
        return code

    def exec_module(self, module):
        code = self.get_code(module.__name__)
        module.__dict__['__ran__'] = MARKS[self.name]
        exec(code, module.__dict__)
        if self.name == f'{PACKAGE}.models.fingerprints':
            global program
            program, module.program_of = module.program_of, without_marks


class Finder(importlib.machinery.PathFinder):
    "Finds the modules of the package, and marks them."
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split('.')[0] != PACKAGE: return None
        spec = super().find_spec(name, path, target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader): spec.loader = Loader(name, spec.origin)
        return spec


def heard(event, args):
    if event in ('os.fork', 'os.forkpty', 'os.posix_spawn', 'os.exec', 'subprocess.Popen', 'os.system'): BEGUN.append(event)


def hear(): sys.addaudithook(heard)


def taken():
    "Module -> names of its functions that ran in this process, at import too; None where it began another, which this list does not know."
    spent = os.times()
    if BEGUN or spent.children_user + spent.children_system: return None
    return {m: [n for n, ran in zip(NAMES[m], MARKS[m]) if ran] for m in sorted(NAMES)}


sys.meta_path.insert(0, Finder)
