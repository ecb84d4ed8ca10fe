"""Whether an answer is legal, by rules that share no code with the library: plain Python over cells."""
import datetime
import math

import pandas as pd

from invented import DATES, NAMES, NUMBERS

WHOLE = {k for k in NUMBERS if 'int' in k.lower() or k == 'constant' or k.startswith('whole')}
SLACK = dict(float32=1e-6, Float32=1e-6, float16=2e-3)     # what a narrow dtype rounds away, in shares of a number


def is_missing(v): return v is None or v is pd.NA or v is pd.NaT or (isinstance(v, float) and math.isnan(v))


def same(a, b):
    "Whether two cells are the very same."
    if is_missing(a) or is_missing(b): return is_missing(a) and is_missing(b)
    return type(a) is type(b) and a == b


def number(v):
    "A cell as a number that can be compared."
    if isinstance(v, str) and '-' in v[1:]: v = datetime.date.fromisoformat(v)
    if isinstance(v, pd.Timestamp) and v.tzinfo is not None: v = v.tz_localize(None)
    if isinstance(v, datetime.datetime): return (pd.Timestamp(v) - pd.Timestamp(0))/pd.Timedelta(1, 'D')
    if isinstance(v, datetime.date): return float(v.toordinal())
    return float(v)


def is_whole(kind, s):
    "Whether a column counts: floats do where only holes made them floats."
    return kind in WHOLE and (not kind.startswith('whole') or any(map(is_missing, s.tolist())))


def order(kind, s):
    "A function from cells of a column to where they stand."
    if kind != 'ordered': return number
    return lambda v: float(list(s.cat.categories).index(v))


def wrong_number(kind, s, old, new, bounds, up, down):
    "What is wrong with a changed cell of numbers or dates; None where nothing is."
    at,there = order(kind, s), [v for v in s.tolist() if not is_missing(v)]
    low,high,slack = min(map(at, there)), max(map(at, there)), SLACK.get(kind, 1e-12)
    a,b = bounds or (None, None)
    low,high = (end if told is None else told for told,end in ((a, low), (b, high)))
    v,room = at(new), slack*max(abs(low), abs(high))
    if not low - room <= v <= high + room: return f'{new!r} is outside of {low}..{high}'
    if is_whole(kind, s) and v != int(v): return f'{new!r} is not whole'
    if kind in DATES and v != int(v): return f'{new!r} is not a day'
    if up and v < at(old): return f'{new!r} is less than {old!r}'
    if down and v > at(old): return f'{new!r} is more than {old!r}'
    return None


def wrong(kind, s, old, new, rules, c):
    "What is wrong with a changed cell; None where nothing is."
    if c in rules['immutable']: return f'immutable, and {old!r} became {new!r}'
    if is_missing(old) or is_missing(new): return f'missing cells stay missing, and {old!r} became {new!r}'
    if kind in NAMES: return None if any(same(new, v) for v in s.tolist()) else f'{new!r} is in no training row'
    return wrong_number(kind, s, old, new, rules['bounds'].get(c), c in rules['increase_only'], c in rules['decrease_only'])


def faults(made, old, new):
    "All that is wrong with some answers, one text each."
    out = [] if list(new.columns) == list(old.columns) and new.index.equals(old.index) else ['other columns or index']
    out += [f'{c!r}: {old[c].dtype} became {new[c].dtype}' for c in old if old[c].dtype != new[c].dtype and len(old[c])]
    changed = [0]*len(old)
    for c,kind in made.kinds.items():
        for i,(a,b) in enumerate(zip(old[c].tolist(), new[c].tolist())):
            if same(a, b): continue
            changed[i] += 1
            if said := wrong(kind, made.train[c], a, b, made.rules, c): out.append(f'row {i}, {c!r} ({kind}): {said}')
    most = made.rules['max_changes']
    return out + [f'row {i}: {n} changes' for i,n in enumerate(changed) if most is not None and n > most]
