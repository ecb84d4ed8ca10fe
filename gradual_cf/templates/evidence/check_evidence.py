"""Check the evidence of decisions against the model that made them.

    python check_evidence.py DECISIONS --model MODEL

DECISIONS is a JSON file of one decision or of a list, a parquet file, or a folder that save_evidence wrote. MODEL is a
file (.json or .ubj of XGBoost, .txt of LightGBM, .cbm of CatBoost, .onnx, .skops), or FILE.py:NAME, a function that
takes a frame of rows and gives probabilities, `(n,)` of the second class or `(n, k)`, or numbers. It needs numpy, pandas
and the library of the model, and nothing of the package that searched. The exit code is 0 where all is as the evidence
says, 1 where a decision is refuted, and 2 where something cannot be read.
"""
import argparse
import hashlib
import importlib.util
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

VERSION = 1
NEAR = 1e-5  # difference of two answers of one model, relative to numbers above 1
SAME = 1e-9  # difference of two numbers of a row that is rounding


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

def function_of(where):
    "The function FILE.py:NAME."
    file, _, name = where.rpartition(':')
    spec = importlib.util.spec_from_file_location('asked_model', file)
    if spec is None or spec.loader is None: raise Unreadable(f'--model must be FILE.py:NAME, got {where!r}')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


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
    kind = Path(where).suffix
    if '.py:' in where: return function_of(where), ()
    if not Path(where).is_file(): raise Unreadable(f'--model must be an existing file, got {where!r}')
    if kind in ('.json', '.ubj'):
        import xgboost
        b = xgboost.Booster(model_file=where)
        return (lambda df: b.predict(xgboost.DMatrix(df, enable_categorical=True))), tuple(b.feature_names or ())
    if kind == '.txt':
        import lightgbm
        b = lightgbm.Booster(model_file=where)
        named = [n for n in b.feature_name() if not n.startswith('Column_')]
        return b.predict, tuple(named)
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
        elif c['type'].startswith('datetime64'):
            s = pd.to_datetime(s, utc='UTC' in c['type'] or None).astype(c['type'])
        elif c['type'] != 'object': s = s.astype(c['type'])
        out[c['name']] = s
    return pd.DataFrame(out)


METHODS = dict(proba='predict_proba', decision='decision_function', number='predict')


def says(asked, evidence, rows):
    "What the model says of the target (None where only its labels count), and whether it decides for it, one a row."
    (ask, names), question, own = asked, evidence['question'], evidence['model']
    frame = frame_of(evidence['columns'], rows)
    if names and set(names) <= set(frame): frame = frame[list(names)]
    decides, kind = own.get('decides', 'numbers'), own['kind']
    labels = ask.predict if hasattr(ask, 'predict') and decides != 'numbers' else None
    if hasattr(ask, 'predict'): ask = next(getattr(ask, f) for f in (METHODS.get(kind, ''), *METHODS.values()) if hasattr(ask, f))
    try:
        out = None if labels and decides == 'predict' else np.asarray(ask(frame), float)
        said = [str(v) for v in np.asarray(labels(frame)).ravel().tolist()] if labels else []
    except Exception as e: raise Unreadable(f'the model must accept the rows, got {type(e).__name__}: {e}') from e
    if out is None: return [None]*len(rows), np.array([v == named(evidence) for v in said])
    if question['goal'] == 'number':
        low, high = question['target']
        v = out.reshape(len(rows))
        return v, (v >= (-np.inf if low is None else float(low))) & (v <= (np.inf if high is None else float(high)))
    p, there = of_class(out, kind, own['threshold'], place_of(question), question['tau'])
    if said: there = np.array([v == named(evidence) for v in said]) & (p >= (question['tau'] or 0.) - SAME)
    return p, there


def named(evidence):
    "The target as the model itself names it."
    own = evidence['model'].get('classes')
    return str(own[place_of(evidence['question'])] if own else evidence['question']['target'])


def place_of(question):
    "Where the target stands among the classes."
    target, classes = question['target'], question['classes']
    return classes.index(target) if classes else int(target)


def of_class(out, kind, threshold, at, tau):
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
    return p[:, at], (out.argmax(1) == at) & (p[:, at] >= (tau or 0.) - SAME)


# ----- one decision

def near(a, b): return (a is None) == (b is None) and (a is None or abs(a - b) <= NEAR*max(1, abs(a), abs(b)))
def differs(a, b): return type(a) is bool and a is not b or a != b


def number(v):
    "A number of a cell: dates as days since 1970."
    if isinstance(v, str) and not v.replace('.', '', 1).lstrip('-').isdigit():
        return (pd.Timestamp(v).tz_localize(None) - pd.Timestamp(0))/pd.Timedelta(1, 'D')
    return float(v)


def breaks(c, cells):
    "How an answer violates the rules of a column; '' if it does not."
    name = c['feature']
    if not c['may_change']: return '' if c.get('follows') else f'{name!r} changed and may not'
    if 'levels' in c:
        if len(cells) > 1: # 0/1 columns of one category
            on, may = [col for col, v in cells.items() if v], c.get('cells') or [[col == level for col in cells] for level in c['levels']]
            return '' if [bool(v) for v in cells.values()] in may else f'{name!r} must be one of {c["levels"]}, got {on}'
        cell = next(iter(cells.values()))
        return '' if cell in c['levels'] else f'{name!r} must be one of {c["levels"]}, got {cell!r}'
    cell = next(iter(cells.values()))
    if cell is None: return f'{name!r} is missing'
    v, room = number(cell), SAME*(1 + abs(number(cell))) + 1e-6
    for end, sign in (('low', 1), ('high', -1)):
        if c.get(end) is not None and sign*(number(c[end]) - v) > room: return f'{name!r} must not be {cell!r}: {end} is {c[end]!r}'
    if c.get('decimals') is not None and abs(round(v, c['decimals']) - v) > room:
        return f'{name!r} must have {c["decimals"]} decimals, got {cell!r}'
    return ''


def seal(told):
    "The checksum of a decision."
    rest = {k: v for k, v in told.items() if k != 'sha256'}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode(errors='surrogatepass')).hexdigest()


def check_form(told):
    "Raise `Unreadable` for what is no decision."
    version = told.get('schema_version') if isinstance(told, dict) else None
    if type(version) is not int or version != VERSION: raise Unreadable(f'a decision must be of schema_version {VERSION}, got {version!r}')
    names, (a, question) = [c['name'] for c in told['columns']], (told['answer'], told['question'])
    if len(set(names)) < len(names): raise Unreadable(f'columns must have names of their own, got {names}')
    if not len(names) == len(a['data']) == len(a['answer']): raise Unreadable('rows must have a cell for each column')
    if question['tau'] is not None and not 0 < question['tau'] < 1: raise Unreadable(f'tau must be in (0, 1), got {question["tau"]!r}')


def faults_of(told, asked):
    "Discrepancies between a decision and the model, as sentences."
    answer, question, names = told['answer'], told['question'], [c['name'] for c in told['columns']]
    out = [] if told.get('sha256') == seal(told) else ['the decision is not as it was written: its sha256 differs']
    data, new = answer['data'], answer['answer']
    if answer['target'] != question['target']: out.append(f'{question["target"]!r} was asked for, and {answer["target"]!r} answered')
    if not answer['read']:
        return out + ['the row was not read, and is answered']*bool(answer['valid'] or answer['changed'] or data != new)
    (before, after), (_, there) = says(asked, told, [data, new])
    for what, a, b in (('row', before, answer['before']), ('answer', after, answer['after'])):
        if a is not None and not near(float(a), b): out.append(f'the model says {float(a):.6g} of the {what}, and not {b}')
    if bool(there) != answer['valid']:
        out.append(f'the model decides {"" if there else "not "}for the target, and the answer says otherwise')
    moved = {n for n, a, b in zip(names, data, new) if differs(a, b)}
    own = {c['feature']: c for c in question['constraints']}
    for c in question['constraints']:
        changed = bool(moved & set(c['columns']))
        if changed != (c['feature'] in answer['changed']):
            out.append(f'{c["feature"]!r} {"changed" if changed else "did not change"}, and the answer says otherwise')
        if changed and (words := breaks(c, {n: new[names.index(n)] for n in c['columns']})): out.append(words)
    loose = moved.difference(*(c['columns'] for c in question['constraints']))
    if loose: out.append(f'{sorted(loose, key=str)} changed, and nothing says that they may')
    if set(answer['changed']) - set(own): out.append(f'{sorted(set(answer["changed"]) - set(own), key=str)} are no features')
    most = question['max_changes']
    if most is not None and not question['relations'] and len(answer['changed']) > most:
        out.append(f'{len(answer["changed"])} columns changed, and no more than {most} may')
    return out + region_faults(told, asked, names, new)


def region_faults(told, asked, names, new):
    "Ends of certified ranges at which the model decides otherwise."
    out, rows, said = [], [], []
    for line in told.get('region') or ():
        if line['how'] != 'certified' or line['feature'] not in names or line['levels']: continue
        at = names.index(line['feature'])
        for end in (line['low'], line['high']):
            if end is None: continue
            whole = isinstance(new[at], int) and not isinstance(new[at], bool)
            rows.append([*new[:at], int(end) if whole else end, *new[at + 1:]])
            said.append((line['feature'], end))
    if rows:
        _, there = says(asked, told, rows)
        out = [f'{name!r} may be {end} by the region, and the model decides otherwise' for (name, end), ok in zip(said, there) if not ok]
    return out


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('decisions', help='a .json or .parquet file, or a folder of decisions')
    parser.add_argument('--model', required=True, help='the model: a file, or FILE.py:NAME')
    parser.add_argument('--trust', action='append', default=[], help='a type that a .skops file may hold; repeat for more')
    args = parser.parse_args()
    try:
        told, faults = decisions(args.decisions)
        asked, bad = model_of(args.model, args.trust), len(faults)
        if not told and not faults: raise Unreadable(f'{args.decisions} holds no decision')
        for words in faults: print(shown(words))
        for one in told:
            check_form(one)
            found = faults_of(one, asked)
            bad += bool(found)
            rest = ' (relations are not checked)'*bool(one['question']['relations'])
            kind = 'not read' if not one['answer']['read'] else 'as the evidence says' + rest
            print(shown(f'row {one["answer"]["row"]}: ' + ('; '.join(found) if found else kind)))
    except (Exception, SystemExit) as e: # whatever a file or a model does; that is not the same as a decision refuted
        print(shown(f'error: {type(e).__name__}: {e}'), file=sys.stderr)
        return 2
    print(f'{len(told):,} decisions, {bad:,} refuted')
    return int(bad > 0)


if __name__ == '__main__': sys.exit(main())
