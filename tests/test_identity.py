"""Names of what is kept and of what a run was begun with: equal for equal things, and for nothing else."""
import functools
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from gradual_cf.core import Entrywise
from gradual_cf.scale.workers import fingerprint, kept
from gradual_cf.models.networks import tabular_mlp, train


def test_a_fingerprint_follows_code_and_nothing_else(tmp_path, monkeypatch):
    source = 'scale = {}\ndef inner(x): return x*scale\ndef f(x):\n    "{}"\n    return inner(x) + 1\n'
    def loaded(scale, says, file):
        space = {'__name__': 'users_code'}
        exec(compile(source.format(scale, says), file, 'exec'), space)
        return space['f']
    here = fingerprint(loaded(2, 'a', '/home/a/m.py'))
    monkeypatch.chdir(tmp_path)
    assert fingerprint(loaded(2, 'b', '/home/b/n.py')) == here != fingerprint(loaded(3, 'a', '/home/a/m.py'))
    with pytest.raises(ValueError, match='settings, data or functions'): fingerprint(tmp_path)
    assert fingerprint(torch.ones(2)) != fingerprint(torch.ones(2, dtype=torch.float64)) != fingerprint(torch.zeros(2))


def closes_over(v): return lambda x: x + v
def calls(module): return eval('lambda x: m.sqrt(x)', {'m': module, '__name__': 'mine'})
def a_class(**members): return type('Named', (), members)


@pytest.mark.parametrize('one,other', [
    (abs, math.exp), (np.abs, np.exp), (torch.abs, torch.exp), (closes_over(torch.zeros(2)), closes_over(torch.ones(2))),
    (closes_over([1]), closes_over([2])), (calls(math), calls(np)), (a_class(k=1), a_class(k=2)),
    (a_class(f=abs, g=closes_over(1), h=closes_over(2)), a_class(f=abs, g=closes_over(2), h=closes_over(1))),
    ({1: 'a'}, {'1': 'a'}), ({abs: 1, 'b': 2}, {math.exp: 1, 'b': 2}),
    (functools.cache(closes_over(1)), functools.cache(closes_over(2)))])
def test_a_fingerprint_confuses_nothing(one, other): assert fingerprint(one) != fingerprint(other)


def test_a_fingerprint_does_not_depend_on_order_in_memory_or_on_use():
    assert list({8, 0}) != list({0, 8}) and fingerprint({8, 0}, frozenset([8, 0])) == fingerprint({0, 8}, frozenset([0, 8]))
    assert fingerprint({abs: 1, 'b': 2}) == fingerprint({'b': 2, abs: 1})
    frame = pd.DataFrame({'a': [1, 2], 'b': [.5, 1.]})
    assert fingerprint(frame) == fingerprint(pd.DataFrame(dict(frame.items()))) == fingerprint(pd.concat([frame.a, frame.b], axis=1))
    before = fingerprint(train)
    train(tabular_mlp(2, seed=0), torch.rand(9, 2), [0, 1, 0]*3, epochs=1)
    assert fingerprint(train) == before


def least(c, x, k): return c.clamp_min(k)


def test_constants_do_not_grow_with_use_in_a_pickle():
    projection = Entrywise(least, torch.ones(9))
    before = pickle.dumps(projection)
    projection(torch.rand(4, 9), None)
    assert pickle.dumps(projection) == before
    assert torch.equal(pickle.loads(before)(torch.rand(4, 9), None), torch.ones(4, 9))


def test_what_cannot_be_named_is_said_in_a_line():
    with pytest.raises(ValueError, match='settings, data or functions') as e: fingerprint(torch.ones(999), (i for i in 'ab'))
    assert len(str(e.value)) < 200


def test_what_two_want_at_once_is_made_once(tmp_path):
    made = []
    def make():
        made.append(1)
        time.sleep(.3)
        return 7
    write, read = lambda v, path: path.write_text(str(v)), lambda path: int(path.read_text())
    with ThreadPoolExecutor(3) as ex: got = list(ex.map(lambda i: kept('seven.txt', make, write, read, folder=tmp_path/'new'), range(3)))
    assert got == [7]*3 and len(made) == 1 and len(list((tmp_path/'new').iterdir())) == 1


def test_what_could_not_be_made_leaves_nothing(tmp_path):
    write, read, tries = lambda v, path: path.write_text(str(v)), lambda path: int(path.read_text()), []
    def make():
        tries.append(1)
        if len(tries) == 1: raise RuntimeError('the first time')
        return 7
    with pytest.raises(RuntimeError): kept('seven.txt', make, write, read, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert kept('seven.txt', make, write, read, folder=tmp_path) == 7 and [p.suffix for p in tmp_path.iterdir()] == ['.txt']
