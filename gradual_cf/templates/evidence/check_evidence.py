"""Check the records of decisions, alone or in letters, against the model that made them.

    python check_evidence.py LETTERS --model MODEL

LETTERS is a letter as HTML, Markdown, JSON or PDF, a JSON file of one record or of a list of records and letters, or a folder
of such files. MODEL is a file (.json or .ubj of XGBoost, .txt of LightGBM, .cbm of CatBoost, .onnx, .skops), or FILE.py:NAME, a
function of a frame of rows that gives probabilities, `(n,)` of the second class or `(n, k)`, or numbers. It needs numpy, pandas,
the library of the model, and the schema, which lies beside it. Fields for which somebody's word is taken are listed;
words of letters are compared by the package. The exit code is 0 where all is as the record says, 1 where a decision is refuted,
and 2 where something cannot be read.
"""
import argparse, contextlib, hashlib, itertools, json, math, random, re, sys, typing, zipfile, zlib
from pathlib import Path

import numpy as np, pandas as pd

NEAR = 1e-5               # difference of two answers of one model, relative to numbers above 1
SAME, LOOSE = 1e-9, 1e-6  # difference of two numbers that is rounding, of probabilities too; in columns of 32 bits
TRIED, GRID, DRAWN = 4000, 100, 128 # rows that are asked for a smaller answer, values of a column among these, rows of a region
KINDS = dict(string=[str], number=[int, float], integer=[int], boolean=[bool], array=[list], object=[dict], null=[type(None)])
SCHEMA = json.loads(Path(__file__).with_name('schema.json').read_text(encoding='utf-8'))['$defs']
METHODS = dict(proba='predict_proba', decision='decision_function', number='predict')

# ----- the model, as a function of rows

class Unreadable(Exception):
    "A file that is not evidence, or not a model."

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
        if len(m.classes_): return (lambda df: m.predict(df, prediction_type='Probability')), tuple(m.feature_names_)
        return catboost.CatBoostRegressor().load_model(where).predict, tuple(m.feature_names_) # which knows the scale of its loss
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
        if c['type'] == 'category': s = s.where(s.isin(c['levels'])).astype(pd.CategoricalDtype(c['levels']))
        elif c['type'].startswith('datetime64'): s = pd.to_datetime(s, utc=',' in c['type'] or None).astype(c['type'])
        elif c['type'] != 'object': s = s.astype(c['type'])
        out[c['name']] = s
    return pd.DataFrame(out)

def says(asked, told, rows, surely=False):
    "What the model says of the target (None where only its labels count), and whether it decides for it; `surely`: its numbers, too."
    (ask, names), question, own = asked, told['question'], told['model']
    kind, number_, aim = own['kind'], question['goal'] == 'number', aim_of(question)
    labels = ask.predict if hasattr(ask, 'predict') and own['decides'] != 'numbers' else None
    if hasattr(ask, 'predict'): ask = next(getattr(ask, f) for f in (METHODS.get(kind, ''), *METHODS.values()) if hasattr(ask, f))
    try:
        frame = frame_of(told['columns'], rows)
        if names and set(names) <= set(frame): frame = frame[list(names)]
        out = None if labels and own['decides'] == 'predict' and not number_ else np.asarray(ask(frame), float)
        said = [str(v) for v in np.asarray(labels(frame)).ravel().tolist()] if labels else []
    except Exception as e: raise Unreadable(f'the model must accept the rows, got {type(e).__name__}: {e}') from e
    if out is not None and number_:
        if out.size != len(rows): raise Unreadable(f'the model must give a number a row, got the shape {out.shape}')
        return (v := out.reshape(-1)), (v >= aim[0]) & (v <= aim[1])
    label = [str(v) for v in own.get('classes') or question['classes'] or range(aim + 1)][aim:aim + 1]
    by_label = np.array([[v] == label for v in said])
    if out is None: return [None]*len(rows), by_label
    p, first = of_class(out, kind, own['threshold'], aim)
    return p, (p >= (question['tau'] or 0.) - SAME) & (first & by_label if said and surely else by_label if said else first)

def aim_of(question) -> typing.Any:
    "Where the target stands among the classes, or the two ends of numbers."
    target, classes = question['target'], question['classes']
    try:
        if question['goal'] != 'number': return classes.index(target) if classes else int(target)
        low, high = target
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)
    except (TypeError, ValueError): raise Unreadable(f'the target must be one of {classes}, or two ends, got {target!r}') from None

def of_class(out, kind, threshold, at):
    "The model's own probability of a class, and whether it is decided, of probabilities, decision values or logits."
    single = out.ndim == 1 or out.shape[1] == 1
    out = out.reshape(-1) if single else out
    if kind == 'proba':
        out = out.clip(1e-12, 1 - 1e-12)
        out = np.log(out) - np.log1p(-out) if single else np.log(out)
    if single: out = np.stack([-out/2, out/2], 1)
    k = out.shape[1]
    if not 0 <= at < k or threshold != .5 and k > 2: raise Unreadable(f'class {at} at {threshold} must be given, got {k} classes')
    shift = np.log(threshold/(1 - threshold))
    p = np.exp(out - out.max(1, keepdims=True))
    p = p/p.sum(1, keepdims=True)
    return p[:, at], (out + np.array([shift/2, -shift/2]) if shift else out).argmax(1) == at

# ----- records

def read(text):
    "Strict JSON: a key that stands there twice would be read in two ways."
    def once(pairs):
        if len(dict(pairs)) < len(pairs): raise Unreadable(f'JSON must have each key once, got {[k for k, _ in pairs]}')
        return dict(pairs)
    def finite(word):
        if not abs(float(word)) < 1e300: raise Unreadable(f'JSON must have finite numbers, got {word[:20]}')
        return int(word) if re.fullmatch(r'-?\d+', word) else float(word)
    return json.loads(text, object_pairs_hook=once, parse_constant=finite, parse_int=finite, parse_float=finite)

def shown(text):
    "A line for a terminal, where a name may neither begin a new one nor give orders."
    return ''.join(c if c.isprintable() else '?' for c in text)

CARRIED = re.compile(r'<script[^<>]*>\s*(\{[^<>]*\})\s*</script>|<!-- record (\{[^<>]*\}) -->')
MOST = 10**8 # bytes of a record

def in_pdf(raw):
    "The record that a PDF has attached; '' for none."
    for found in re.finditer(rb'/EmbeddedFile\b[^\r\n]{0,400}?(?:>>)?\s*stream\r?\n', raw):
        part = raw[found.end():raw.find(b'endstream', found.end())]
        for unpack in (lambda b: zlib.decompressobj().decompress(b, MOST), lambda b: b[:MOST]):
            with contextlib.suppress(zlib.error, UnicodeDecodeError):
                if (text := unpack(part).decode().strip())[:1] == '{': return text
    return ''

def carried(text):
    "The format of a letter, and the record that it carries; '' where it holds none."
    if isinstance(text, bytes): return 'pdf', in_pdf(text)
    if text.lstrip()[:1] == '{':
        try: told = read(text)
        except (ValueError, RecursionError): return 'json', ''
        return ('json', str(told['sealed'])) if 'sealed' in told else ('record', text)
    found = [*CARRIED.finditer(text)][-1:]
    return ('txt', '') if not found else ('html' if found[0][1] else 'md', found[0][1] or found[0][2])

def record_of(text):
    "The record of a letter, or of a text that is one; raises `Unreadable` for anything else."
    try: told = read(carried(text)[1])
    except (ValueError, RecursionError): told = None
    if not isinstance(told, dict): raise Unreadable('a letter must hold its record, got none')
    if 'cells' in told or told.get('schema_version') == 1:
        raise Unreadable('a record must be of schema_version 2, got one of an earlier form: its words can still be read; write it again to check it')
    return told

def decisions(path):
    "All records of a file, or of the files of a folder."
    if path.is_dir(): return [told for one in sorted(path.iterdir()) if one.is_file() for told in decisions(one)]
    raw = path.read_bytes()
    if raw[:4] == b'%PDF' or (text := raw.decode()).lstrip()[:1] != '[': return [record_of(raw if raw[:4] == b'%PDF' else text)]
    return [record_of(one if isinstance(one, str) else json.dumps(one)) for one in read(text)]

# ----- one decision; what may be wrong with it is a list of (whether it is, a sentence)

def near(a, b): return (a is None) == (b is None) and (a is None or abs(a - b) <= NEAR*max(1, abs(a), abs(b)))
def differs(a, b): return (type(a) is bool or type(b) is bool) and a is not b or a != b
def cells_of(c): return c.get('cells') or [[v] for v in c['levels']]

def number(v):
    "A number of a cell: dates as days since 1970."
    for way in (float, lambda v: (pd.Timestamp(v).tz_localize(None) - pd.Timestamp(0))/pd.Timedelta(1, 'D')):
        with contextlib.suppress(ValueError): return way(v)
    raise Unreadable(f'a cell or an end must be a number or a date, got {v!r}')

def breaks(c, cells, loose=SAME):
    "How an answer violates the rules of a column; '' if it does not."
    name, cell = c['feature'], cells[0]
    if not c['may_change']: return '' if c.get('follows') else f'{name!r} changed and may not'
    if 'levels' in c: return '' if cells in cells_of(c) else f'{name!r} must be one of {c["levels"]}, got {cells}'
    if cell is None: return f'{name!r} is missing'
    v, low, high = number(cell), *(None if u is None else number(u) for u in (c['low'], c['high']))
    room = loose*max(abs(u) for u in (v, low, high) if u is not None)
    off = lambda step: math.isfinite(v/step) and abs(round(v/step)*step - v) > max(loose*abs(v), LOOSE*step)
    bad = dict(low=low is not None and low - v > room, high=high is not None and v - high > room, codes=v in c.get('codes', ()),
               decimals=c['decimals'] is not None and off(10.**-c['decimals']), step=c.get('step') and off(c['step']))
    return next((f'{name!r} must not be {cell!r}: {rule} is {c[rule]!r}' for rule, broken in bad.items() if broken), '')

def choices(c, kind, own):
    "What a column may become, as lists of cells, and whether this is all."
    if not c['may_change'] or 'levels' in c: return (cells_of(c) if c['may_change'] else []), True
    if None in (c['low'], c['high'], c['decimals'], own) or kind[:3] not in ('int', 'Int', 'flo'): return [], False
    step = c.get('step') or 10.**-c['decimals']
    ends = number(c['low'])/step - LOOSE, number(c['high'])/step + LOOSE
    if not all(map(math.isfinite, ends)): return [], False
    first, last = math.ceil(ends[0]), math.floor(ends[1])
    places = sorted({first + (last - first)*k//(GRID - 1) for k in range(GRID)}) if first <= last else []
    values = [round(k*step, c['decimals']) for k in places]
    return [[v if kind[:3] == 'flo' else int(v)] for v in values if v not in c.get('codes', ())], last - first < GRID

def put(cells, parts):
    "A row with other cells in some places."
    new = {i: v for at, values in parts for i, v in zip(at, values)}
    return [new.get(i, v) for i, v in enumerate(cells)]

def within(told, at, most):
    "Rows that the question allows, with at most so many columns changed, and whether these are all."
    data, parts, whole, rng = told['answer']['data'], [], True, random.Random(0)
    for c, i in zip(told['question']['constraints'], at):
        values, every = choices(c, told['columns'][i[0]]['type'], data[i[0]])
        values = [v for k, v in enumerate(values) if v != [data[k] for k in i] and v not in values[:k]]
        parts, whole = parts + [[(i, v) for v in values]]*bool(values), whole and every
    sets = [s for k in range(min(most, len(parts)) + 1) for s in itertools.islice(itertools.combinations(parts, k), TRIED)]
    few = sum(math.prod(map(len, s)) for s in sets) <= TRIED
    if few: tries = [one for s in sets for one in itertools.product(*s)]
    else: tries = [[rng.choice(p) for p in rng.choice(sets)] for _ in range(TRIED)]
    return [put(data, one) for one in tries], whole and few

def seal(told):
    "The checksum of a decision."
    text = json.dumps({k: v for k, v in told.items() if k != 'sha256'}, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()

def fields(v, node, path='', said=None):
    "Where something stands, [] for each of a list, and what the schema says of its check, None where it knows nothing of it."
    node = SCHEMA[node['$ref'].split('/')[-1]] | node if '$ref' in node else node
    known, said, kinds = node.get('properties'), node.get('$comment', said), node.get('type', list(KINDS))
    n, ends = (len(v), ('minItems', 'maxItems')) if type(v) is list else (v if type(v) is int else 0, ('minimum', 'maximum'))
    fits = any(type(v) in KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    fits = fits and v in node.get('enum', [node.get('const', v)])
    fits = fits and node.get(ends[0], n) <= n <= node.get(ends[1], n) and (type(v) is not dict or {*node.get('required', ())} <= v.keys())
    if not fits: raise Unreadable(f'{path[1:]} must be as the schema says, got {v if type(v) is not dict else list(v)!r}')
    if said or known is None and type(v) is not list: yield path[1:], said
    for u in v if type(v) is list else ():
        yield from fields(u, node.get('items', {}), path + '[]'*(type(u) is dict), None if type(u) is dict else said)
    for k, u in v.items() if type(v) is dict else ():
        if known is None: yield from fields(u, node.get('additionalProperties', {}), path, said)
        else: yield from fields(u, known[k], f'{path}.{k}') if k in known else [(f'{path}.{k}'[1:], None)]

def shape(told):
    "What the schema says of each field of a decision; raises `Unreadable` for what is none."
    known = dict(fields(told, SCHEMA['evidence']))
    names, a, question, rules = [c['name'] for c in told['columns']], told['answer'], told['question'], told['question']['constraints']
    ways = [way['answer'] for way in (told['letter'] or {}).get('ways') or ()]
    of, bars = [n for c in rules for n in c['columns']], [v for v in (told['model']['threshold'], question['tau']) if v is not None]
    open_ = [c['feature'] for c in rules if not c['columns'] or 'levels' not in c and not {'low', 'high', 'decimals'} <= c.keys()]
    for bad, words in ((len(set(names)) < len(names), f'columns must have names of their own, got {names}'),
                       ({len(names)} != {*map(len, (a['data'] or (), a['answer'] or (), *ways))}, 'rows must have a cell for each column'),
                       (not all(0 < v < 1 for v in bars), f'tau and threshold must be in (0, 1), got {bars}'),
                       (not {*of} <= {*names} or open_, f'rules must say what may become of columns, got {of} and {open_}')):
        if bad: raise Unreadable(words)
    return known

def of_model(told, ask, notes):
    "What a decision says of its model, against the model."
    own, question = told['model'], told['question']
    lists = getattr(ask, 'classes_', ()), own.get('classes') or (), question['classes'] or ()
    there, given, asked = ([str(v) for v in list(some)] for some in lists)
    known, numbers = there or given, question['goal'] == 'number'
    if not there: notes.update(dict.fromkeys(('model.classes', 'model.kind', 'question.classes'), 'the model does not say'))
    elif asked == there: notes.pop('question.classes', 0)
    if own['decides'] == 'predict':
        notes.update(dict.fromkeys(('answer.before', 'answer.after', 'letter.ways[].after'), 'only labels are compared'))
    gives = own['decides'] == 'predict' or not hasattr(ask, 'predict') or hasattr(ask, METHODS.get(own['kind'], '-'))
    return [(not gives, f'the model gives no {own["kind"]}'),
            (question['goal'] != ('number' if own['kind'] == 'number' else 'probability'), f'{own["kind"]} is no answer to that goal'),
            (there and not numbers and given != there, f'the model names its classes {there}, and not {given}'),
            (set(asked) & set(known) and asked != known, f'the classes of the model are {known}, and not {asked}')]

def of_proof(told, asked, at, notes):
    "What is said to be proven, against itself and against the rows that are tried."
    a, proof, question = told['answer'], told['proof'], told['question']
    said, of, size, bound, among = (proof[k] for k in ('said', 'of', 'size', 'bound', 'among'))
    none, gap, columns = said == 'none exists', re.fullmatch(r'within (\d+)%', said), of == 'columns'
    if size is None and of: good = none or (said == 'none found so far' or said.startswith('not begun: ')) and bound is not None
    elif size is None: good = none or (said, bound, among) == ('', None, '')
    elif not a['valid'] or not of or bound is None or bound > size*(1 + NEAR) + LOOSE: good = False
    elif said == 'optimal' or columns and said.startswith('fewest columns; distance '): good = bound >= size*(1 - NEAR) - LOOSE
    elif gap and not columns and bound > 0: good = abs(float(gap[1]) - 100*(size/bound - 1)) <= 1 + NEAR
    else: good = said in ('best so far', 'nearer than the fewest columns') and bound < size
    if size is None and a['valid'] and of or none and bound is not None: good = good and bool(among) and bound is None
    whole = len(a['changed']) if columns else a['distance'] if of == 'distance' else size
    open_ = ('proof.of', 'proof.size', 'answer.size') if of == 'cost' else ('proof.of',)*none
    notes.update(dict.fromkeys(open_, 'what changes cost is not recorded' if of == 'cost' else 'none exists, by whatever measure'))
    out = [([said, size, bound] != [a[k] for k in ('proof', 'size', 'bound')], 'what is proven is told in two ways'),
           (not good or none and a['valid'] and not among, f'{said!r} cannot be, of a size of {size} and a bound of {bound}'),
           (size is not None and not near(size, whole), f'the size is {whole}, and not {size}')]
    most = len(told['columns']) if none else (bound or 0) - 1 if columns else -1
    if most < 0 or among or question['relations']: return out
    rows, every = within(told, at, int(min(most, question['max_changes'] or most)))
    better = [row for row, ok in zip(rows, says(asked, told, rows, True)[1]) if ok]
    why = f'{"all" if every else "some"} smaller answers were tried, {len(rows)}'
    notes.update(dict.fromkeys(('proof.said', 'proof.bound', 'answer.proof', 'answer.bound'), why))
    return out + [(better, f'{said!r}, and the model decides for the target of {(better or [0])[0]}')]

def of_region(told, asked, limits, at):
    "A region against answer and question, and certified values, one and several at a time, against the model."
    a, parts, rng, lines = told['answer'], [], random.Random(0), told['region']
    if lines is None: return []
    out = [([l['feature'] for l in lines] != a['changed']*a['valid'], 'the region is of other columns')]
    for l in (l for l in lines if l['feature'] in limits):
        c, i, ends, some = limits[l['feature']], at[list(limits).index(l['feature'])], (l['low'], l['high']), l['levels']
        own = [a['answer'][k] for k in i]
        if 'levels' in c:
            named = list(zip(c['levels'], cells_of(c)))
            value, may = next((v for v, cells in named if cells == own), None), [cells for v, cells in named if v in some]
            inside = value in some and len(may) == len(some) and ends == (None, None)
        else:
            value, there = own[0], not some and None not in (own[0], *ends) and all(math.isfinite(number(v)) for v in ends)
            may = [[int(v) if type(value) is int else v] for v in ends if there]
            inside = there and number(ends[0]) <= number(value) <= number(ends[1])
        wrong = next((w for v in may if (w := breaks(c | dict(decimals=None, step=0, codes=()), v, LOOSE))), '')
        out += [(differs(l['value'], value) or not inside, f'the region of {l["feature"]!r} is not about {value!r}'), (wrong, wrong)]
        if may: parts.append([(i, v) for v in may])
    tries, sure = [[rng.choice(p) for p in parts if rng.random() < .4] for _ in range(DRAWN)], all(l['how'] == 'certified' for l in lines)
    if sure: tries = [[one] for p in parts for one in p] + [[rng.choice(p) for p in parts] for _ in range(DRAWN//2)]
    there = says(asked, told, [put(a['answer'], one) for one in tries])[1] if parts else ()
    bad = [[v for _, v in one] for one, ok in zip(tries, there) if not ok]
    return [*out, (len(bad) > (0 if sure else DRAWN//10), f'{(bad or [0])[0]} may be by the region, and the model decides otherwise')]

def of_ways(told, asked):
    "Other ways that a letter tells of, against the model."
    ways = (told['letter'] or {}).get('ways') or []
    p, there = says(asked, told, [way['answer'] for way in ways]) if ways else ((), ())
    return [(not ok, 'another way does not lead to the target') for ok in there] + [
        (v is not None and not near(float(v), way['after']), f'the model says {v} of another way, and not {way["after"]}') for v, way in zip(p, ways)]

def check(told, asked):
    "What is wrong with a decision, as sentences, and fields for which somebody's word is taken."
    known, names, a, question = shape(told), [c['name'] for c in told['columns']], told['answer'], told['question']
    data, new, rules, limits = a['data'], a['answer'], question['constraints'], {c['feature']: c for c in question['constraints']}
    strange = [f for f, why in known.items() if why is None]
    notes: dict = {f: why[6:] for f, why in known.items() if why and why[:6] == 'told: '}
    at, moved = [[names.index(n) for n in c['columns']] for c in rules], {i for i, (u, v) in enumerate(zip(data, new)) if differs(u, v)}
    gold = [v for c, *row in zip(told['columns'], data, new) if 'levels' in c for v in row if v is not None and v not in c['levels']]
    ends = [(c['feature'], c['low'], c['high']) for c in rules if c['may_change'] and None not in (c.get('low'), c.get('high'))]
    out = [(told['sha256'] != seal(told), 'the decision is not as it was written: its sha256 differs'),
           (strange, f'{strange} are no fields of a decision'), (gold, f'{gold} are no levels'),
           (a['target'] != question['target'], f'{question["target"]!r} was asked for, and {a["target"]!r} answered'),
           (len(limits) < len(at) or sum(map(len, at)) > len({*sum(at, [])}), 'a column has two rules'),
           (bare := [n for k, n in enumerate(names) if k not in {*sum(at, [])}], f'nothing says what may become of {bare}'),
           (closed := [f for f, low, high in ends if number(low) > number(high)], f'{closed} have ends that nothing lies between'),
           (any([c['feature']] != c['columns'] for c in rules if len(c['columns']) < 2), 'a rule has another name than its column'),
           *of_model(told, asked[0], notes)]
    if not a['read']:
        notes['answer.read'] = 'whether it could be read'
        fine = all(data[i[0]] in c['levels'] if 'levels' in c else type(data[i[0]]) in (int, float) for c, i in zip(rules, at))
        said = a['valid'] or a['changed'] or moved or told['region'] or (a['before'], a['after'], a['size']) != (None,)*3
        fine = fine or not a['proof'].startswith('not read: ') or a['proof'] != told['proof']['said']
        out += [(said, 'the row was not read, and is answered'), (fine, 'the row was not read, and nothing is wrong with it')]
        return [words for bad, words in out if bad], notes
    (before, after), (_, there) = says(asked, told, [data, new])
    out += [(u is not None and not near(float(u), v), f'the model says {u} of the {what}, and not {v}')
            for what, u, v in (('row', before, a['before']), ('answer', after, a['after']))]
    for c, i in ((c, i) for c, i in zip(rules, at) if moved & set(i)):
        out.append((wrong := breaks(c, [new[k] for k in i], LOOSE if told['columns'][i[0]]['type'][-2:] in ('32', '16') else SAME), wrong))
    changed, most = [c['feature'] for c, i in zip(rules, at) if moved & set(i)], question['max_changes']
    free, ranks = [f for f in changed if not limits[f].get('follows')], [r['rank'] for r in told['reasons'] or ()]
    led = [c['feature'] for c in rules if c.get('follows') and str(c['feature']) not in question['relations']]
    out += [(bool(there) != a['valid'], f'the model decides {"" if there else "not "}for the target, and the answer says otherwise'),
            (changed != a['changed'] or a['changes'] != len(changed), f'{changed} changed, and the answer says otherwise'),
            (led, f'{led} follow nothing'), (most is not None and len(free) > most, f'{free} changed, and no more than {most} may'),
            (ranks != [*range(1, len(ranks) + 1)], 'reasons have other ranks'),
            *of_proof(told, asked, at, notes), *of_region(told, asked, limits, at), *of_ways(told, asked)]
    return [words for bad, words in out if bad], notes

def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('letters', help='a letter or a .json file of records, or a folder of such files')
    parser.add_argument('--model', required=True, help='the model: a file, or FILE.py:NAME')
    parser.add_argument('--trust', action='append', default=[], help='a type that a .skops file may hold; repeat for more')
    args = parser.parse_args(argv)
    try:
        told, asked, notes, bad = decisions(Path(args.letters)), model_of(args.model, args.trust), {}, 0
        if not told: raise Unreadable(f'{args.letters} holds no record')
        for one in told:
            found, more = check(one, asked)
            bad, notes = bad + bool(found), notes | more
            kind = 'as the record says' if one['answer']['read'] else 'not read'
            print(shown(f'row {one["answer"]["row"]}: {"; ".join(found) or kind}'))
    except (Exception, SystemExit) as e: # whatever a file or a model does; that is not the same as a decision refuted
        print(shown(f'error: {type(e).__name__}: {e}'), file=sys.stderr)
        return 2
    print(shown('not checked: ' + '; '.join(f'{f} ({why})' for f, why in sorted(notes.items()))))
    print(f'{len(told):,} decisions, {bad:,} refuted')
    return int(bad > 0)

if __name__ == '__main__': sys.exit(main())
