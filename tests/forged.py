"""Whatever can be changed in one place of a record, and a model that answers the same question once."""
import json

from gradual_cf.templates.evidence import check_evidence
from gradual_cf.use.evidence import answer_schema


def sealed(told):
    "A decision with the checksum of what it now says."
    told = {k: v for k, v in told.items() if k != 'sha256'}
    return told | dict(sha256=check_evidence.seal(told))


def changed(told, path, v):
    "The same record with another value in one place."
    told = json.loads(json.dumps(told))
    at = told
    for k in path[:-1]: at = at[k]
    at[path[-1]] = v
    return told


def places(v, path=()):
    "Every place of a record: (path, what stands there)."
    if path: yield path, v
    for k, u in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else (): yield from places(u, (*path, k))


FREE = 'fingerprints', 'versions'  # of any keys


def field_of(path):
    "The name of a place, [] for each of a list."
    if path[0] in FREE: return path[0]
    return ''.join('[]' if isinstance(k, int) else f'.{k}' for k in path)[1:]


def words_of(node):
    "All words that a schema allows somewhere."
    if isinstance(node, dict): yield from node.get('enum', ())
    for u in node.values() if isinstance(node, dict) else node if isinstance(node, list) else (): yield from words_of(u)


WORDS = sorted({w for w in words_of(answer_schema()['$defs']) if isinstance(w, str)} | {'optimal', 'best so far', 'none exists', 'within 5%', 'certified'})
WORDED = 'model.kind', 'model.decides', 'question.goal', 'proof.of', 'proof.said', 'answer.proof', 'region[].open', 'region[].how'


def others(v, field):
    "What else could stand there: (how it was changed, the new value)."
    if not isinstance(v, dict): yield from (('a dictionary', dict(a=1)), ('a list of one', [dict(a=1)]))
    if isinstance(v, bool): yield from (('flipped', not v), ('a number', int(v)), ('nothing', None))
    elif isinstance(v, (int, float)):
        yield from (('more', v + 1), ('less', v - 1), ('a little more', v*1.003 + 2e-5), ('of another size', v*1.37 + .01), ('negative', -v - 1),
                    ('a word', 'x'), ('true', True), ('nothing', None))
    elif isinstance(v, str): yield from (('longer', v + 'x'), ('empty', ''), ('a number', 7), ('nothing', None), *((f'“{w}”', w) for w in WORDS if field in WORDED))
    elif isinstance(v, list):
        yield from (('empty', []), ('reversed', v[::-1]), ('without the first', v[1:]), ('without the last', v[:-1]), ('the first twice', v[:1] + v),
                    ('with one more', [*v, 'x']), ('turned', v[1:] + v[:1]), ('nothing', None))
    elif isinstance(v, dict):
        yield from ((f'without {k}', {n: u for n, u in v.items() if n != k}) for k in v)
        yield from (('with one more', v | dict(approved_by='the board')), ('empty', {}), ('nothing', None))
    else: yield from (('a number', 1), ('a word', 'x'), ('a list', []), ('true', True))


def walk(told, few=False):
    "Every record that differs from this one in one place, sealed anew: (field, how, record). `few`: two places of each field."
    spots = [*places({k: v for k, v in told.items() if k != 'sha256'})]
    by_field = {}
    for path, v in spots: by_field.setdefault(field_of(path), []).append((path, v))
    for field, some in by_field.items():
        for path, v in some[::max(len(some) - 1, 1)] if few else some:
            for how, new in others(v, field):
                gone = how.removeprefix('without ') if isinstance(v, dict) and how.startswith('without ') else ''
                if json.dumps(new) != json.dumps(v): yield f'{field}.{gone}'.rstrip('.') if field not in FREE else field, how, sealed(changed(told, path, new))
    for k in told.keys() - {'sha256'}: yield k, f'without {k}', sealed({n: u for n, u in told.items() if n != k})
    yield 'approved_by', 'with one more', sealed(told | dict(approved_by='the board'))


def put_once(says):
    "The checker's question to a model, which is put once: most forgeries leave the rows, and what is asked of them, as they were."
    known = {}
    def ask(asked, told, rows, surely=False):
        question = [told['question'].get(k) for k in ('goal', 'target', 'classes', 'tau')]
        key = id(asked[0]), json.dumps([asked[1], told['columns'], told['model'], question, rows, surely], default=repr)
        if key not in known: known[key] = asked, says(asked, told, rows, surely)
        return known[key][1]
    return ask
