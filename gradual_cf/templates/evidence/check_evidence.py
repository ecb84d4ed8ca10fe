"""Check the evidence of decisions against the model that made them.

    python check_evidence.py DECISIONS --model MODEL

DECISIONS is a JSON file of one decision or of a list, a parquet file, or a folder that save_evidence wrote. MODEL is a
file (.json or .ubj of XGBoost, .txt of LightGBM, .cbm of CatBoost, .onnx, .skops), or FILE.py:NAME, a function that
takes a frame of rows and gives probabilities, `(n,)` of the second class or `(n, k)`, or numbers. It needs numpy, pandas
and the library of the model, and nothing of the package that searched. A decision that reconsiders another one is checked
beside it. Fields for which somebody's word is taken are listed. The exit code is 0 where all is as the evidence says,
1 where a decision is refuted, and 2 where something cannot be read.
"""
import argparse, hashlib, itertools, json, math, random, re, sys, zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

VERSION = 1
NEAR = 1e-5                # difference of two answers of one model, relative to numbers above 1
SAME, LOOSE = 1e-9, 1e-6   # difference of two numbers that is rounding, relative to them; in columns of 32 bits
TRIED, GRID = 4000, 100    # rows that are asked for a smaller answer, and values of a column among these
METHODS = dict(proba='predict_proba', decision='decision_function', number='predict')

class Unreadable(Exception):
    "A file that is not evidence, or not a model."

def read(text):
    "Strict JSON: a key that stands there twice would be read in two ways."
    def once(pairs):
        if len(dict(pairs)) < len(pairs): raise Unreadable(f'JSON must have each key once, got {[k for k, _ in pairs]}')
        return dict(pairs)
    def never(word): raise Unreadable(f'JSON must have finite numbers, got {word}')
    return json.loads(text, object_pairs_hook=once, parse_constant=never)

def shown(text):
    "A line for a terminal, where a name may neither begin a new one nor give orders."
    return ''.join(c if c.isprintable() else '?' for c in text)

def decisions(path):
    "All decisions of a file or a folder, and what is wrong with the folder."
    path, faults = Path(path), []
    if path.is_dir():
        manifest = read((path/'_manifest.json').read_text(encoding='utf-8'))
        if manifest.get('schema_version') != VERSION:
            raise Unreadable(f'{path} must be of schema_version {VERSION}, got {manifest.get("schema_version")!r}')
        texts, names = [], [Path(part['name']).name for part in manifest['parts']]
        faults += [f'{p.name} is not in the manifest' for p in sorted(path.glob('part-*.parquet')) if p.name not in names]
        faults += [f'{name} stands in the manifest twice' for name in sorted(set(names)) if names.count(name) > 1]
        for file, part in zip(map(path.joinpath, names), manifest['parts']):
            if not file.is_file(): faults.append(f'{file.name} is missing')
            elif hashlib.sha256(file.read_bytes()).hexdigest() != part['sha256']: faults.append(f'{file.name} is damaged')
            else: texts += pd.read_parquet(file).evidence.tolist()
        return [read(text) for text in texts], faults
    if path.suffix == '.parquet': return [read(text) for text in pd.read_parquet(path).evidence], faults
    told = read(path.read_text(encoding='utf-8'))
    return (told if isinstance(told, list) else [told]), faults

# ----- the model

def of_onnx(session, frame):
    "What an ONNX model says: of one matrix, or of a column each."
    types = {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(int64)': np.int64,
             'tensor(int32)': np.int32, 'tensor(bool)': bool, 'tensor(string)': object}
    inputs = session.get_inputs()
    if len(inputs) == 1: feed = {inputs[0].name: frame.to_numpy(types[inputs[0].type])}
    else: feed = {i.name: frame[[i.name]].to_numpy(types[i.type]) for i in inputs}
    out = session.run(None, feed)[-1]
    return np.array([[row[k] for k in sorted(row)] for row in out]) if isinstance(out, list) else out

def calls_only_checks(path):
    "Whether all that a file of skops calls by functools.partial is scikit-learn's check of arrays."
    with zipfile.ZipFile(path) as z: todo, called = [json.loads(z.read('schema.json'))], []
    while todo:
        one = todo.pop()
        if isinstance(one, dict) and one.get('__loader__') == 'PartialNode': called.append(one['content']['func'])
        if isinstance(one, (dict, list)): todo += one.values() if isinstance(one, dict) else one
    return all((f.get('__module__'), f.get('__class__')) == ('sklearn.utils.validation', 'check_array') for f in called)

def model_of(where, trusted=()):
    "What answers frames: a function or a fitted model, and the columns that it reads, () for all."
    kind, (file, _, name), space = Path(where).suffix, where.rpartition(':'), dict(__name__='asked_model')
    if '.py:' in where:
        exec(compile(Path(file).read_text(encoding='utf-8'), file, 'exec'), space)
        return space[name], ()
    if not Path(where).is_file(): raise Unreadable(f'--model must be an existing file, got {where!r}')
    if kind in ('.json', '.ubj'):
        import xgboost
        b = xgboost.Booster(model_file=where)
        return (lambda df: b.predict(xgboost.DMatrix(df, enable_categorical=True))), tuple(b.feature_names or ())
    if kind == '.txt':
        import lightgbm
        b = lightgbm.Booster(model_file=where)
        return b.predict, tuple(n for n in b.feature_name() if not n.startswith('Column_'))
    if kind == '.cbm':
        import catboost
        m = catboost.CatBoost().load_model(where)
        form = 'Probability' if len(m.classes_) else 'RawFormulaVal'
        return (lambda df: m.predict(df, prediction_type=form)), tuple(m.feature_names_)
    if kind == '.onnx':
        import onnxruntime
        session = onnxruntime.InferenceSession(where)
        return (lambda df: of_onnx(session, df)), ()
    if kind == '.skops':
        from skops.io import get_untrusted_types, load
        safe = ('numpy.dtype', *trusted, *['functools.partial']*calls_only_checks(where))
        strange = [t for t in get_untrusted_types(file=where) if not t.startswith('sklearn.') and t not in safe]
        if strange: raise Unreadable(f'{where} holds types that are not known to be safe: {strange}; use --trust for each')
        m = load(where, trusted=get_untrusted_types(file=where))
        return m, tuple(getattr(m, 'feature_names_in_', ()))
    raise Unreadable(f'--model must end in .json, .ubj, .txt, .cbm, .onnx or .skops, or be FILE.py:NAME, got {where!r}')

def frame_of(columns, rows):
    "Rows of cells as a frame with the dtypes of the training rows."
    out = {}
    for i, c in enumerate(columns):
        s = pd.Series([row[i] for row in rows], dtype=object)
        if c['type'] == 'category': s = s.astype(pd.CategoricalDtype(c.get('levels')))
        elif c['type'].startswith('datetime64'): s = pd.to_datetime(s, utc=',' in c['type'] or None).astype(c['type'])
        elif c['type'] != 'object': s = s.astype(c['type'])
        out[c['name']] = s
    return pd.DataFrame(out)

def says(asked, told, rows, surely=False):
    "What the model says of the target (None where only its labels count), and whether it decides for it; `surely`: its numbers, too."
    (ask, names), question, own = asked, told['question'], told['model']
    frame, kind, number_ = frame_of(told['columns'], rows), own['kind'], question['goal'] == 'number'
    if names and set(names) <= set(frame): frame = frame[list(names)]
    labels = ask.predict if hasattr(ask, 'predict') and own['decides'] != 'numbers' else None
    if hasattr(ask, 'predict'): ask = next(getattr(ask, f) for f in (METHODS.get(kind, ''), *METHODS.values()) if hasattr(ask, f))
    try:
        out = None if labels and own['decides'] == 'predict' else np.asarray(ask(frame), float)
        said = [str(v) for v in np.asarray(labels(frame)).ravel().tolist()] if labels else []
    except Exception as e: raise Unreadable(f'the model must accept the rows, got {type(e).__name__}: {e}') from e
    if out is not None and number_:
        v, (low, high) = out.reshape(len(rows)), question['target']
        return v, (v >= (-np.inf if low is None else float(low))) & (v <= (np.inf if high is None else float(high)))
    at = question['classes'].index(question['target']) if question['classes'] else int(question['target'])
    by_label = np.array([v == str(own['classes'][at] if own.get('classes') else question['target']) for v in said])
    if out is None: return [None]*len(rows), by_label
    p, first = of_class(out, kind, own['threshold'], at)
    return p, (p >= (question['tau'] or 0.) - SAME) & (first & by_label if said and surely else by_label if said else first)

def of_class(out, kind, threshold, at):
    "The model's own probability of a class, and whether it is decided, of probabilities, decision values or logits."
    single = out.ndim == 1 or out.shape[1] == 1
    out = out.reshape(-1) if single else out
    if kind == 'proba':
        out = out.clip(1e-12, 1 - 1e-12)
        out = np.log(out) - np.log1p(-out) if single else np.log(out)
    if single: out = np.stack([-out/2, out/2], 1)
    shift = np.log(threshold/(1 - threshold))
    p = np.exp(out - out.max(1, keepdims=True))
    p = p/p.sum(1, keepdims=True)
    if shift: out = out + np.array([shift/2, -shift/2])
    return p[:, at], out.argmax(1) == at

# ----- one decision; what may be wrong with it is a list of (whether it is, a sentence)

def near(a, b): return (a is None) == (b is None) and (a is None or abs(a - b) <= NEAR*max(1, abs(a), abs(b)))
def differs(a, b): return (type(a) is bool or type(b) is bool) and a is not b or a != b
def cells_of(c): return c.get('cells') or [[v] for v in c['levels']]

def number(v):
    "A number of a cell: dates as days since 1970."
    try: return float(v)
    except ValueError: return (pd.Timestamp(v).tz_localize(None) - pd.Timestamp(0))/pd.Timedelta(1, 'D')

def breaks(c, cells, loose=SAME):
    "How an answer violates the rules of a column; '' if it does not."
    name, v = c['feature'], cells[0]
    if not c['may_change']: return '' if c.get('follows') else f'{name!r} changed and may not'
    if 'levels' in c: return '' if cells in cells_of(c) else f'{name!r} must be one of {c["levels"]}, got {cells}'
    if v is None: return f'{name!r} is missing'
    low, high = (None if c[end] is None else number(c[end]) for end in ('low', 'high'))
    v, room = number(v), loose*max(abs(number(u)) for u in (v, c['low'] or 0, c['high'] or 0))
    for end, far in (('low', 0 if low is None else low - v), ('high', 0 if high is None else v - high)):
        if far > room: return f'{name!r} must not be {cells[0]!r}: {end} is {c[end]!r}'
    if v in c.get('codes', ()): return f'{name!r} must not be {cells[0]!r}, which is a code'
    steps = {} if c['decimals'] is None else {f'have {c["decimals"]} decimals': 10.**-c['decimals'], f'be on steps of {c.get("step")}': c.get('step', 0)}
    off = [words for words, step in steps.items() if step and abs(round(v/step)*step - v) > max(loose*abs(v), LOOSE*step)]
    return f'{name!r} must {off[0]}, got {cells[0]!r}' if off else ''

def choices(c, kind, own):
    "What a column may become, as lists of cells, and whether this is all."
    if not c['may_change'] or 'levels' in c: return (cells_of(c) if c['may_change'] else []), True
    if None in (c['low'], c['high'], c['decimals'], own) or kind[:3] not in ('int', 'Int', 'flo'): return [], False
    step = c.get('step') or 10.**-c['decimals']
    first, last = math.ceil(c['low']/step - LOOSE), math.floor(c['high']/step + LOOSE)
    values = [round(k*step, c['decimals']) for k in sorted({first + (last - first)*k//(GRID - 1) for k in range(GRID)})] if first <= last else []
    return [[v if kind[:3] == 'flo' else int(v)] for v in values if v not in c.get('codes', ())], last - first < GRID

def within(told, at, most):
    "Rows that the question allows, with at most so many columns changed, and whether these are all."
    data, parts, whole, rng = told['answer']['data'], [], True, random.Random(0)
    for c, i in zip(told['question']['constraints'], at):
        values, every = choices(c, told['columns'][i[0]]['type'], data[i[0]])
        values = [v for k, v in enumerate(values) if v != [data[k] for k in i] and v not in values[:k]]
        parts, whole = parts + [[(i, v) for v in values]]*bool(values), whole and every
    sets = [s for k in range(min(most, len(parts)) + 1) for s in itertools.islice(itertools.combinations(parts, k), TRIED)]
    few = sum(math.prod(map(len, s)) for s in sets) <= TRIED
    tries = [one for s in sets for one in itertools.product(*s)] if few else [[rng.choice(p) for p in rng.choice(sets)] for _ in range(TRIED)]
    return [put(data, one) for one in tries], whole and few

def put(cells, parts):
    "A row with other cells in some places."
    new = {i: v for at, values in parts for i, v in zip(at, values)}
    return [new.get(i, v) for i, v in enumerate(cells)]

def seal(told):
    "The checksum of a decision."
    text = json.dumps({k: v for k, v in told.items() if k != 'sha256'}, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()

@cache
def schema():
    "What may stand in a decision, and how it is checked: the schema that lies beside this program."
    return json.loads(next(p for p in map(Path(__file__).with_name, ('schema.json', '_schema.json')) if p.is_file()).read_text(encoding='utf-8'))['$defs']

def fields(v, node, path=''):
    "Where something stands in a decision, [] for each of a list, and what the schema says of its check; None where it knows nothing of it."
    node = schema()[node['$ref'].split('/')[-1]] | node if '$ref' in node else node
    if isinstance(v, dict) and 'properties' in node:
        for k, u in v.items(): yield from fields(u, node['properties'].get(k, {}), f'{path}.{k}')
    elif isinstance(v, list) and v and isinstance(v[0], dict): yield from (f for u in v for f in fields(u, node.get('items', {}), f'{path}[]'))
    else: yield path[1:], node.get('$comment')

def of_model(told, ask, notes):
    "What a decision says of its model, against the model."
    own, numbers = told['model'], told['question']['goal'] == 'number'
    there, given, asked = ([str(v) for v in list(vs)] for vs in (getattr(ask, 'classes_', ()), own.get('classes') or (), told['question']['classes'] or ()))
    if not there: notes.update(dict.fromkeys(('model.classes', 'model.kind', 'question.classes'), 'the model does not say'))
    elif asked == there: notes.pop('question.classes', 0)
    if own['decides'] == 'predict': notes.update(dict.fromkeys(('answer.before', 'answer.after'), 'only labels are compared'))
    gives = own['decides'] == 'predict' or not hasattr(ask, 'predict') or hasattr(ask, METHODS.get(own['kind'], '-'))
    return [(not gives, f'the model gives no {own["kind"]}'), (told['question']['goal'] != ('number' if own['kind'] == 'number' else 'probability'), f'{own["kind"]} is no answer to that goal'),
            (there and not numbers and given != there, f'the model names its classes {there}, and not {given}'),
            (set(asked) & set(there or given) and asked != (there or given), f'the classes of the model are {there or given}, and not {asked}')]

def of_proof(told, asked, at, notes):
    "What is said to be proven, against itself and against the rows that are tried."
    a, proof, question = told['answer'], told['proof'], told['question']
    said, of, size, bound, among = (proof[k] for k in ('said', 'of', 'size', 'bound', 'among'))
    none, open_, gap = said == 'none exists', said == 'none found so far' or said.startswith('not begun: '), re.fullmatch(r'within (\d+)%', said)
    out = [([said, size, bound] != [a[k] for k in ('proof', 'size', 'bound')], 'what is proven is told in two ways'),
           (none and (a['valid'] and not among or (size, bound) != (None, None)), 'none exists, and something is said of it')]
    if size is None: good = none or not of and (said, bound, among) == ('', None, '') or of and open_ and bound is not None and (among or not a['valid'])
    elif not a['valid'] or not of or bound is None or bound > size*(1 + NEAR) + LOOSE: good = False
    elif said == 'optimal' or of == 'columns' and said.startswith('fewest columns; distance '): good = bound >= size*(1 - NEAR) - LOOSE
    else: good = bound < size and (said == 'best so far' or gap and of != 'columns' and abs(float(gap[1]) - 100*(size/max(bound, SAME) - 1)) <= 1 + NEAR)
    whole = len(a['changed']) if of == 'columns' else a['distance'] if of == 'distance' else size
    out += [(not good, f'{said!r} cannot be, of a size of {size} and a bound of {bound}'), (size is not None and not near(size, whole), f'the size is {whole}, and not {size}')]
    most = len(told['columns']) if none else (bound or 0) - 1 if of == 'columns' else -1
    if most < 0 or among or question['relations']: return out
    rows, every = within(told, at, int(min(most, question['max_changes'] or most)))
    better = [row for row, ok in zip(rows, says(asked, told, rows, True)[1]) if ok]
    notes.update(dict.fromkeys(('proof.said', 'proof.bound', 'answer.proof', 'answer.bound'), f'{len(rows)} rows tried, {"all" if every else "not all"} there are'))
    return out + [(better, f'{said!r}, and the model decides for the target of {(better or [0])[0]}')]

def of_region(told, asked, limits, at):
    "A region against answer and question, and certified values, one and several at a time, against the model."
    a, parts, rng, lines = told['answer'], [], random.Random(0), told['region'] or ()
    out = [(told['region'] is not None and sorted(str(l['feature']) for l in lines) != sorted(map(str, a['changed']*a['valid'])), 'the region is of other columns')]
    for l in (l for l in lines if l['feature'] in limits):
        c, i = limits[l['feature']], at[list(limits).index(l['feature'])]
        own, low, high, named = [a['answer'][k] for k in i], l['low'], l['high'], 'levels' in c
        value = next((v for v, cells in zip(c['levels'], cells_of(c)) if cells == own), None) if named else own[0]
        may = [cells for v, cells in zip(c['levels'], cells_of(c)) if v in l['levels']] if named else [[type(own[0])(v) if type(own[0]) is int else v] for v in (low, high)]
        inside = value in l['levels'] and set(l['levels']) <= set(c['levels']) if named else not l['levels'] and number(low) <= number(value) <= number(high)
        free = c | dict(decimals=None, step=0, codes=())
        out += [(differs(l['value'], value) or not inside, f'the region of {l["feature"]!r} is not about {value!r}'), *((w := breaks(free, v, LOOSE), w) for v in may)]
        if l['how'] == 'certified': parts.append([(i, v) for v in may])
    tries = [[one] for p in parts for one in p] + [[rng.choice(p) for p in parts] for _ in range(64*(len(parts) > 1))] if all(parts) else []
    there = says(asked, told, [put(a['answer'], one) for one in tries])[1] if tries else ()
    return out + [(not ok, f'{[v for _, v in one]} may be by the region, and the model decides otherwise') for one, ok in zip(tries, there)]

def of_chain(told, asked, others):
    "What is reconsidered, against the decision that it was."
    again, question, names = told['reconsidered'], told['question'], [c['name'] for c in told['columns']]
    if (old := others.get(again['of'])) is None: return [(True, f'the chain is broken: {again["of"][:12]}, which it reconsiders, is not here')]
    was, data, moved = old['answer']['data'], told['answer']['data'], {c['column']: c for c in again['corrected']}
    undone = [put(data, [([names.index(n)], [c['was']])]) for n, c in moved.items()]
    p, there = says(asked, told, [was, data, *undone])
    right = [u if n not in moved else moved[n]['is'] for n, u in zip(names, was)]
    ends = lambda c: {k: v for k, v in c.items() if k not in ('low', 'high', 'levels', 'cells') or not set(c['columns']) & set(moved)}
    rules, before = ({**q, 'constraints': list(map(ends, q['constraints']))} for q in (question, old['question']))
    return [(not moved and not again['view'], 'nothing was corrected, and nothing said'), (rules != before, 'another question is asked'),
            (any(told[k] != old[k] for k in ('columns', 'model', 'fingerprints')) or told['answer']['row'] != old['answer']['row'], 'another row or model is asked'),
            (len(moved) < len(again['corrected']) or any(map(differs, right, data)), f'what was corrected of {was} is not {data}'),
            (any(differs(c['was'], was[names.index(n)]) or not differs(c['was'], c['is']) for n, c in moved.items()), 'it was otherwise before'),
            (again['decided'] != {'was': bool(there[0]), 'is': bool(there[1])}, f'the row itself was {bool(there[0])} and is {bool(there[1])}'),
            (any(v is not None and not near(float(v), c['without']) for v, c in zip(p[2:], moved.values())), 'the model says otherwise without a correction')]

def check(told, asked, others=None):
    "What is wrong with a decision, as sentences, and fields for which somebody's word is taken; `others` holds all by their seals."
    version = told.get('schema_version') if isinstance(told, dict) else None
    if type(version) is not int or version != VERSION: raise Unreadable(f'a decision must be of schema_version {VERSION}, got {version!r}')
    names, (a, question) = [c['name'] for c in told['columns']], (told['answer'], told['question'])
    if len(set(names)) < len(names): raise Unreadable(f'columns must have names of their own, got {names}')
    if not len(names) == len(a['data']) == len(a['answer']): raise Unreadable('rows must have a cell for each column')
    if question['tau'] is not None and not 0 < question['tau'] < 1: raise Unreadable(f'tau must be in (0, 1), got {question["tau"]!r}')
    notes = {f: why[6:] for f, why in fields(told, schema()['evidence']) if why and why.startswith('told: ')}
    strange = sorted({f for f, why in fields(told, schema()['evidence']) if why is None})
    data, new, limits = a['data'], a['answer'], {c['feature']: c for c in question['constraints']}
    at, moved = [[names.index(n) for n in c['columns']] for c in question['constraints']], {i for i, (u, v) in enumerate(zip(data, new)) if differs(u, v)}
    out = [(told['sha256'] != seal(told), 'the decision is not as it was written: its sha256 differs'), (strange, f'{strange} are no fields'),
           (a['target'] != question['target'], f'{question["target"]!r} was asked for, and {a["target"]!r} answered'), *of_model(told, asked[0], notes)]
    if others is not None and told.get('reconsidered'): out += of_chain(told, asked, others)
    if not a['read']:
        notes['answer.read'] = 'whether it could be read'
        fine = all(data[i[0]] in c['levels'] if 'levels' in c else type(data[i[0]]) in (int, float) for c, i in zip(limits.values(), at))
        out += [(a['valid'] or a['changed'] or moved or told['region'] or (a['before'], a['after'], a['size']) != (None,)*3, 'the row was not read, and is answered'),
                (fine or not a['proof'].startswith('not read: ') or a['proof'] != told['proof']['said'], 'the row was not read, and nothing is wrong with it')]
        return [words for bad, words in out if bad], notes
    (before, after), (_, there) = says(asked, told, [data, new])
    out += [(u is not None and not near(float(u), v), f'the model says {u} of the {what}, and not {v}')
            for what, u, v in (('row', before, a['before']), ('answer', after, a['after']))]
    out.append((bool(there) != a['valid'], f'the model decides {"" if there else "not "}for the target, and the answer says otherwise'))
    for c, i in zip(question['constraints'], at):
        f, changed, loose = c['feature'], bool(moved & set(i)), LOOSE if any(told['columns'][k]['type'][-2:] in ('32', '16') for k in i) else SAME
        out += [(changed != (f in a['changed']), f'{f!r} {"changed" if changed else "did not change"}, and the answer says otherwise'),
                (c.get('follows') and str(f) not in question['relations'], f'{f!r} follows nothing'), (changed and (w := breaks(c, [new[k] for k in i], loose)), changed and w)]
    loose, lost = sorted({str(names[i]) for i in moved.difference(*at)}), sorted({*map(str, a['changed'])} - {*map(str, limits)})
    free, ranks = [f for f in a['changed'] if not limits.get(f, {}).get('follows')], [r['rank'] for r in told['reasons'] or ()]
    out += [(loose, f'{loose} changed, and nothing says that they may'), (lost, f'{lost} are no features'), (len(limits) < len(at) or sum(map(len, at)) > len({*sum(at, [])}), 'a column has two rules'),
            (question['max_changes'] is not None and len(free) > question['max_changes'], f'{len(free)} columns changed, and no more than {question["max_changes"]} may'),
            (a['changes'] != len(a['changed']), f'{len(a["changed"])} columns changed, and not {a["changes"]}'), (ranks != [*range(1, len(ranks) + 1)], 'reasons have other ranks'),
            *of_proof(told, asked, at, notes), *of_region(told, asked, limits, at)]
    return [words for bad, words in out if bad], notes

def faults_of(told, asked, others=None): return check(told, asked, others)[0]

def main():
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('decisions', help='a .json or .parquet file, or a folder of decisions')
    parser.add_argument('--model', required=True, help='the model: a file, or FILE.py:NAME')
    parser.add_argument('--trust', action='append', default=[], help='a type that a .skops file may hold; repeat for more')
    args = parser.parse_args()
    try:
        told, faults = decisions(args.decisions)
        asked, notes = model_of(args.model, args.trust), {}
        if not told and not faults: raise Unreadable(f'{args.decisions} holds no decision')
        again = [one['reconsidered']['of'] for one in told if one.get('reconsidered')]
        faults += [f'{of[:12]} is reconsidered twice' for of in sorted(set(again)) if again.count(of) > 1]
        for words in faults: print(shown(words))
        bad = len(faults)
        for one in told:
            found, more = check(one, asked, {other['sha256']: other for other in told})
            bad, notes = bad + bool(found), notes | more
            print(shown(f'row {one["answer"]["row"]}: ' + ('; '.join(found) or ('as the evidence says' if one['answer']['read'] else 'not read'))))
    except (Exception, SystemExit) as e: # whatever a file or a model does; that is not the same as a decision refuted
        print(shown(f'error: {type(e).__name__}: {e}'), file=sys.stderr)
        return 2
    print(shown('not checked: ' + '; '.join(f'{f} ({why})' for f, why in sorted(notes.items()))))
    print(f'{len(told):,} decisions, {bad:,} refuted')
    return int(bad > 0)

if __name__ == '__main__': sys.exit(main())
