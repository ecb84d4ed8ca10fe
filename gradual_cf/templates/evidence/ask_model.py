"""The model that evidence is checked against, as a function of rows: it lies beside check_evidence.py, which reads it."""
import json, typing, zipfile
from pathlib import Path

import numpy as np
import pandas as pd

METHODS = dict(proba='predict_proba', decision='decision_function', number='predict')
SAME = 1e-9 # difference of two probabilities that is rounding

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
