"""Small mistakes in a module: an order turned, one more, the branches of a choice exchanged; none in words, representations or types.

A mistake is known by its module, function, statement and change, and by how many like it the function has before; not by a line.
"""
import ast
import copy
import hashlib
import types
from collections import Counter

COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
           ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
          ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult}
NAMES = {a: b for pair in ('min max', 'any all', 'argmin argmax', 'amin amax', 'cummin cummax', 'floor ceil', 'minimum maximum')
         for a, b in (pair.split(), pair.split()[::-1])}
PARTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match,
          ast.excepthandler, ast.withitem, ast.match_case)  # of which a head may run alone
QUIET = ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal


def wrong(node):
    "A node of a syntax tree with the mistake that is made there, or nothing."
    new = copy.deepcopy(node)
    match new:
        case ast.Compare() if type(new.ops[0]) in COMPARE: new.ops[0] = COMPARE[type(new.ops[0])]()
        case ast.BinOp() if type(new.op) in BINARY: new.op = BINARY[type(new.op)]()
        case ast.BoolOp(): new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        case ast.UnaryOp(ast.Not()): new.operand = ast.UnaryOp(ast.Not(), new.operand)
        case ast.UnaryOp() if not isinstance(new.operand, ast.Constant): new.op = ast.UAdd()
        case ast.IfExp(): new.body, new.orelse = new.orelse, new.body
        case ast.Constant(bool()): new.value = not new.value
        case ast.Constant(int() | float()): new.value += 1
        case ast.Name() if new.id in NAMES: new.id = NAMES[new.id]
        case ast.Attribute() if new.attr in NAMES: new.attr = NAMES[new.attr]
        case _: return None
    return new


def spots(tree):
    "Each place of a mistake: function, its first line, statement (of a loop or condition its head), node, and the node with it."
    def walk(node, path, line, around):
        if isinstance(node, QUIET) or isinstance(node, ast.keyword) and node.arg == 'verbose': return
        if isinstance(node, ast.Call) and getattr(node.func, 'attr', getattr(node.func, 'id', '')) in ('warn', 'print'): return
        if line and (new := wrong(node)): yield '.'.join(path), line, around, node, new
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.AnnAssign): children = [node.value] if node.value else []
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name.startswith(('__repr', '_repr')): return
            if not line: path = [*path, node.name]
            if not line and not isinstance(node, ast.ClassDef): line = min(n.lineno for n in [node, *node.decorator_list])
            children = node.body
        for child in children:
            if isinstance(child, PARTED): near = None
            else: near = child if isinstance(child, ast.stmt) else around or child
            yield from walk(child, path, line, near)
    yield from walk(tree, [], 0, None)


def mutants(module, source):
    "All of a module: what each is called, and where it is."
    many = Counter()
    for at, (function, first, around, node, new) in enumerate(spots(ast.parse(source))):
        name = module, function, *map(ast.unparse, (around, node, new))
        many[name] += 1
        key = hashlib.sha256('\0'.join([*name, str(many[name])]).encode()).hexdigest()[:12]
        yield dict(mutant=key, module=module, function=function, statement=name[2][:200], change=f'{name[3][:90]} → {name[4][:90]}',
                   at=at, first=first, lines=[around.lineno, around.end_lineno])


def compiled(path, mutant):
    "The code of a function with one mistake."
    tree = ast.parse(path.read_text())
    *_, node, new = next(spot for at, spot in enumerate(spots(tree)) if at == mutant['at'])
    vars(node).update(vars(new))
    todo = [compile(ast.fix_missing_locations(tree), str(path), 'exec', dont_inherit=True)]
    for code in todo:
        if (code.co_firstlineno, code.co_name) == (mutant['first'], mutant['function'].rpartition('.')[2]): return code
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
