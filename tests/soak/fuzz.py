"""Broken files for every reader: `python fuzz.py READER FIRST COUNT` prints each case that ends neither in an answer nor in a `ValueError`.

A child process, so that a crash, a hang and a hunger for memory are seen from outside: it prints the number of each case before it begins.
"""
import json
import resource
import signal
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import toy
from written import load_task

from gradual_cf.all import Counterfactuals, GradualCF, explain_dataset, check_evidence, letter, load_glove, load_model, save_model, tabular, tabular_mlp
from gradual_cf.models.fitted import load_fitted
from gradual_cf.scale.batch import open_source

SECONDS = 10
MEBIBYTES = 1024


def frame(n=60):
    r = np.random.default_rng(0)
    return pd.DataFrame({'a': r.integers(0, 9, n), 'b': r.normal(0, 1, n).round(3), 'c': r.choice(['x', 'y'], n)})


@cache
def small():
    "A fitted explainer of a small table."
    df = frame()
    domain = tabular(df)
    x = domain.encode(df).x.float()
    return GradualCF(toy.sharpen(tabular_mlp(x.shape[1], seed=0), x), domain, 'sparse', sigma=0).fit(df), df


def kept(path):
    cf,df = small()
    cf.explain(df[:5]).save(path)


def parquet(path): frame().to_parquet(path)
def csv(path): frame().to_csv(path, index=False)
def weights(path): save_model(tabular_mlp(4, seed=0), path)


def glove(path):
    path.write_text(''.join(f'w{i} ' + ' '.join(f'{v:.3f}' for v in np.random.default_rng(i).normal(0, 1, 8)) + '\n' for i in range(40)))


def booster(path):
    import xgboost
    X = frame()[['a', 'b']]
    xgboost.XGBClassifier(n_estimators=4, max_depth=2).fit(X, X.a > 4).save_model(path)


def leaves(path):
    import lightgbm
    X = frame()[['a', 'b']]
    lightgbm.LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=2, verbose=-1).fit(X, X.a > 4).booster_.save_model(path)


def onnx(path):
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    X = frame()[['a', 'b']].to_numpy('float32')
    path.write_bytes(to_onnx(LogisticRegression().fit(X, X[:, 0] > 4), X[:1]).SerializeToString())


def skops(path):
    from skops.io import dump
    from sklearn.linear_model import LogisticRegression
    X = frame()[['a', 'b']]
    dump(LogisticRegression().fit(X, X.a > 4), path)


def ask_fitted(path):
    "A model that was read is also asked: a table of its domain, and its answer to some rows."
    X = frame()[['a', 'b']]
    model = load_fitted(path)
    domain = tabular(X)
    return GradualCF(model, domain, 'sparse', sigma=0).fit(X)


def picture(path):
    from PIL import Image
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8), dtype='uint8')).save(path)


@cache
def digits(): return load_task('digits').domain
def read_picture(path): return digits().encode([str(path)])


def decision(path, format='json'):
    cf,df = small()
    cfs = cf.explain(df[:20])
    i = int((cfs.valid & cfs.changed.any(1)).nonzero()[0][0])
    path.write_text(letter(cf.explain(df[i:i + 1]), format=format)[0])


def read_decision(path):
    cf,df = small()
    return check_evidence(path.read_text(errors='replace'), cf, df[:1])


def catboost(path):
    import catboost
    X = frame()[['a', 'b']]
    catboost.CatBoostClassifier(iterations=4, depth=2, verbose=False, allow_writing_files=False).fit(X, X.a > 4).save_model(str(path))


def manifest(path):
    "What tells a folder of answers from that of another run."
    cf,df = small()
    explain_dataset(cf, df[:4], path.parent/'out', batch_size=4)
    path.write_bytes((path.parent/'out/_manifest.json').read_bytes())


def read_manifest(path):
    cf,df = small()
    (path.parent/'out/_manifest.json').write_bytes(path.read_bytes())
    return explain_dataset(cf, df[:4], path.parent/'out', batch_size=4)


RULES = ['a + 9 >= b', 'a rises -> b rises by 2', 'a + b <= 30', '`b` - a <= 20', 'c changes -> a rises']


def relation(path): path.write_text('\n'.join(RULES))
def read_relation(path): return [told(line) for line in path.read_text(errors='replace').splitlines()]


def told(line):
    "What is read is also kept: by the search, and by the judge."
    domain = tabular(frame(), relations=[line])
    enc = domain.encode(frame())
    assert domain.relations.holds(enc, enc.x).shape == (60,) and domain.legal(frame(), frame()).shape == (60, 3)
    return domain.propose(enc.x, 0)


TOKENS = ['a', 'b', 'c', '`a`', '1', '2.5', '-1', '1e999', '"x"', '"q"', 'None', 'True', '+', '-', '*', '/', '**', '//', '%', '<', '<=', '>', '>=', '==', '!=', 'in',
          'not in', 'is', 'and', 'or', 'not', '(', ')', '[', ']', ',', '->', 'rises', 'falls', 'changes', 'stays', 'by 2', 'if', 'else', 'lambda', ':', '.', '@', '0'*400]


def words_of(r):
    "A sentence of random words: a good one of which a few were replaced, or nothing but random ones."
    words = list(r.choice(TOKENS, r.integers(1, 12)))
    if r.random() < .7:
        words = str(r.choice([*RULES, 'c == "x" -> a + b <= 30', 'not (a > 3 and b < 2) or c in ["x", "y"]', '0 <= a <= 2*b + 9'])).split()
        for _ in range(r.integers(1, 4)):
            at,word = int(r.integers(0, len(words) + 1)), str(r.choice(TOKENS))
            words[at:at + int(r.integers(0, 2))] = [word]*int(r.choice([1, 1, 1, 1, 300]))
    return ' '.join(words)


READERS = { # name -> (suffix, writes a whole file, reads it)
    'answers': ('.zip', kept, lambda p: Counterfactuals.load(p, small()[0].domain)),
    'parquet': ('.parquet', parquet, lambda p: [len(t) for t in open_source(p).tables()]),
    'csv': ('.csv', csv, lambda p: [len(t) for t in open_source(p).tables()]),
    'weights': ('.safetensors', weights, load_model),
    'glove': ('.txt', glove, lambda p: load_glove(p, cache=False)),
    'xgboost json': ('.json', booster, ask_fitted),
    'xgboost ubj': ('.ubj', booster, ask_fitted),
    'lightgbm': ('.txt', leaves, ask_fitted),
    'onnx': ('.onnx', onnx, ask_fitted),
    'skops': ('.skops', skops, ask_fitted),
    'picture': ('.png', picture, read_picture),
    'letter': ('.json', decision, read_decision),
    'letter md': ('.md', lambda p: decision(p, 'md'), read_decision),
    'letter html': ('.html', lambda p: decision(p, 'html'), read_decision),
    'catboost': ('.cbm', catboost, ask_fitted),
    'manifest': ('.json', manifest, read_manifest),
    'relation': ('.txt', relation, read_relation),
    'sentence': ('.txt', relation, read_relation),
}


def broken(whole, r):
    "The bytes of a file with a few defects."
    b = bytearray(whole)
    for _ in range(r.integers(1, 6)):
        at,to = sorted(r.integers(0, len(b) + 1, 2))
        kind = r.integers(0, 7)
        if kind == 0 and len(b): b[at % len(b)] = r.integers(0, 256)
        elif kind == 1 and len(b): b[at % len(b)] ^= 1 << int(r.integers(0, 8))
        elif kind == 2: del b[at:min(to, at + 40)]
        elif kind == 3: b[at:at] = b[at:min(to, at + 60)]
        elif kind == 4: b[at:at] = r.choice([b'NaN', b'1e999', b'-1', b'9999999999999999999', b'null', b'{', b'"', b'\n', b'\0', b',', b'\xff\xfe'])
        elif kind == 5 and r.random() < .3: del b[at:]
        elif digits := [i for i,v in enumerate(b) if 48 <= v <= 57]: b[digits[at % len(digits)]] = 48 + int(r.integers(0, 10))
    return bytes(b)


def too_long(*_): raise TimeoutError(f'more than {SECONDS} s')


def outcome(read, path):
    "What reading a file came to; None where that is as it should be."
    signal.alarm(SECONDS)
    try: read(path)
    except (ValueError, ImportError): return None
    except BaseException as e: return f'{type(e).__name__}: {e}'[:300]
    finally: signal.alarm(0)
    return None


def main(name, first, count):
    suffix,write,read = READERS[name]
    signal.signal(signal.SIGALRM, too_long)
    with tempfile.TemporaryDirectory() as d:
        path = Path(d)/f'f{suffix}'
        write(path)
        whole,grown = path.read_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024
        read(path)
        for seed in range(first, first + count):
            r = np.random.default_rng(seed)
            path.write_bytes(words_of(r).encode() if name == 'sentence' else broken(whole, r))
            print(json.dumps(dict(case=seed)), flush=True)
            bad = outcome(read, path)
            now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024
            if bad is None and now - grown > MEBIBYTES: bad = f'{now - grown:.0f} MiB'
            if bad is not None: print(json.dumps(dict(case=seed, bad=bad)), flush=True)


if __name__ == '__main__':
    warnings.simplefilter('ignore')
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
