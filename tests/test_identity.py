"""Names of what is kept and of what a run was begun with: equal for equal things, and for nothing else."""
import functools
import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from shell import forked
from sklearn import ensemble
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from gradual_cf.all import GradualCF, box, explain_dataset, tabular, tabular_mlp, train
from gradual_cf.scale.batch import _known_by
from gradual_cf.models.fingerprints import fingerprint, kept


def test_a_fingerprint_follows_code_and_nothing_else(tmp_path, monkeypatch):
    source = 'scale = {}\ndef inner(x): return x*scale\ndef f(x):\n    "{}"\n    return inner(x) + 1\n'
    def loaded(scale, says, file):
        space = {'__name__': 'users_code'}
        exec(compile(source.format(scale, says), file, 'exec'), space)
        return space['f']
    here = fingerprint(loaded(2, 'a', '/home/a/m.py'))
    monkeypatch.chdir(tmp_path)
    assert fingerprint(loaded(2, 'b', '/home/b/n.py')) == here != fingerprint(loaded(3, 'a', '/home/a/m.py'))
    assert fingerprint(torch.ones(2)) != fingerprint(torch.ones(2, dtype=torch.float64)) != fingerprint(torch.zeros(2))


def closes_over(v): return lambda x: x + v
def power(k=2): return lambda s, bias=0.: s.logits[:, 0]**k + bias
def third(s, k=3): return s.logits[:, 0]**k
def second(s, k=2): return s.logits[:, 0]**k


class Weighed:
    def __init__(self, w): self.w = w
    def __call__(self, s): return self.w*s.logits[:, 0]


class Other(Weighed):
    def __call__(self, s): return self.w*s.logits[:, 1]


def calls(module): return eval('lambda x: m.sqrt(x)', {'m': module, '__name__': 'mine'})
def a_class(**members): return type('Named', (), members)


@pytest.mark.parametrize('one,other', [
    (abs, math.exp), (np.abs, np.exp), (torch.abs, torch.exp), (closes_over(torch.zeros(2)), closes_over(torch.ones(2))),
    (closes_over([1]), closes_over([2])), (calls(math), calls(np)), (a_class(k=1), a_class(k=2)),
    (a_class(f=abs, g=closes_over(1), h=closes_over(2)), a_class(f=abs, g=closes_over(2), h=closes_over(1))),
    ({1: 'a'}, {'1': 'a'}), ({abs: 1, 'b': 2}, {math.exp: 1, 'b': 2}),
    (functools.cache(closes_over(1)), functools.cache(closes_over(2))), (lambda s: s.logits.abs(), lambda s: s.logits.exp()),
    (second, third), (power(2), power(3)), (functools.partial(third, k=1), functools.partial(third, k=2)), (functools.partial(third), functools.partial(second)),
    (lambda s: 2*s.logits, lambda s: 3*s.logits), (lambda s: (lambda v: v + 1)(s), lambda s: (lambda v: v + 2)(s)),
    (closes_over(torch.abs), closes_over(torch.exp)), (Weighed(1), Weighed(2)), (Weighed(1), Other(1)), (Weighed(1).__call__, Other(1).__call__),
    (torch.zeros(2), torch.ones(2)), (torch.zeros(2), torch.zeros(2).double()), ({'a': 1}, {'a': 2}), (box(0, 1), box(0, 2)),
    (nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh())), (None, 'None'), (1, 1.5), ([1, [2]], [1, 2])])
def test_a_fingerprint_confuses_nothing(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one) and fingerprint(other) == fingerprint(other)
    for make in (power, Weighed, lambda k: box(0, k)): assert fingerprint(make(2)) == fingerprint(make(2))


def test_a_fingerprint_does_not_depend_on_order_in_memory_or_on_use():
    assert list({8, 0}) != list({0, 8}) and fingerprint({8, 0}, frozenset([8, 0])) == fingerprint({0, 8}, frozenset([0, 8]))
    assert fingerprint({abs: 1, 'b': 2}) == fingerprint({'b': 2, abs: 1})
    frame = pd.DataFrame({'a': [1, 2], 'b': [.5, 1.]})
    assert fingerprint(frame) == fingerprint(pd.DataFrame(dict(frame.items()))) == fingerprint(pd.concat([frame.a, frame.b], axis=1))
    before = fingerprint(train)
    train(tabular_mlp(2, seed=0), torch.rand(9, 2), [0, 1, 0]*3, epochs=1)
    assert fingerprint(train) == before


@pytest.mark.parametrize('make', [DecisionTreeClassifier(random_state=0), ensemble.GradientBoostingClassifier(n_estimators=2, random_state=0), ensemble.HistGradientBoostingClassifier(max_iter=2), LogisticRegression()],
                         ids=['padding between fields', 'a state of luck', 'empty arrays', 'arrays of one row'])
def test_a_model_that_was_saved_has_the_same_fingerprint(make):
    skops, X = pytest.importorskip('skops.io'), np.random.default_rng(0).normal(size=(60, 2))
    there = make.fit(X, X.sum(1) > 0)
    assert {fingerprint(there)} == {fingerprint(skops.loads(skops.dumps(there), skops.get_untrusted_types(data=skops.dumps(there)))) for _ in range(3)}


def test_a_fingerprint_is_the_same_in_the_run_that_compiles_and_in_the_next(monkeypatch):
    "Which constants are one object, and where libraries lie, differs between runs of one program."
    import gradual_cf.models.fingerprints as fingerprints
    shared, twin, own = (1, 2), (1, int('2')), frozenset('ab')
    assert shared is not twin and fingerprint([shared, shared, own, own]) == fingerprint([shared, twin, own, frozenset('ba')])
    before = fingerprint(kept)
    monkeypatch.setattr(fingerprints, '_LIBRARIES', (*fingerprints._LIBRARIES[::-1], '/elsewhere'))
    assert fingerprint(kept) == before


@pytest.mark.night
def test_what_was_used_is_the_same_one():
    X = pd.DataFrame(dict(a=np.arange(40.)/8, b=np.r_[np.arange(39.), 1/3], c=pd.Categorical(['x', 'y']*20)))
    domain, used = tabular(X), tabular(X)
    used.decode(used.encode(X[:3]).x, X[:3])
    assert any('between' in vars(c) for c in used.features)  # it was worked out
    assert fingerprint(used) == fingerprint(domain)
    cf = GradualCF(LinearRegression().fit(X[['a', 'b']], X.a), tabular(X[['a', 'b']]), 'sparse').fit(X[['a', 'b']])
    before = fingerprint(cf.domain)
    cf.explain(X[['a', 'b']][:3], (3., None)).plan()
    assert fingerprint(cf.domain) == before
    assert fingerprint(tabular(X.assign(b=X.b.round()))) != fingerprint(domain)


def test_dtypes_are_told_apart():
    kinds = [pd.Int64Dtype(), pd.UInt8Dtype(), pd.StringDtype('python'), pd.CategoricalDtype(['a', 'b']), pd.CategoricalDtype(['a', 'c']),
             pd.CategoricalDtype(['a', 'b'], ordered=True), pd.DatetimeTZDtype(tz='UTC'), pd.DatetimeTZDtype(tz='Europe/Vienna'), pd.IntervalDtype('int64'), pd.IntervalDtype('float64')]
    assert len(set(map(fingerprint, kinds))) == len(kinds)


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


# ---- models are known by what they say
class Scaled(nn.Module):
    "Logits times what `factor()` gives: how a model may hide what decides."
    def __init__(self, **held):
        super().__init__()
        self.line = nn.Linear(3, 2).double()
        self.line.weight.data, self.line.bias.data = torch.tensor([[1., -2, .5], [-1, 1, .25]]).double(), torch.tensor([.1, .2]).double()
        for name, v in held.items(): setattr(self, name, v)

    def factor(self): return 1.
    def forward(self, x): return self.line(x)*self.factor()


class Held: # an object with a state
    def __init__(self, v): self.v = v
    def __call__(self): return self.v


def having(factor, **held):
    "A model of a class of its own, whose factor is read from what it holds."
    return type('Scaled', (Scaled,), dict(factor=factor))(**held)


def with_buffer(v):
    m = having(lambda self: self.b)
    m.register_buffer('b', torch.tensor(v).double(), persistent=False)
    return m


def of_class(v): return type('Scaled', (Scaled,), dict(by=v, factor=lambda self: self.by))()
def with_hook(v): return (m := Scaled(), m.register_forward_hook(lambda m, x, out: out*v))[0]
def with_pre_hook(v): return (m := Scaled(), m.line.register_forward_pre_hook(lambda m, x: (x[0]*v,)))[0]
def with_forward(v):
    m = Scaled()
    m.forward = lambda x: Scaled.forward(m, x)*v
    return m


def in_module(v):
    space = dict(FACTOR=v, Scaled=Scaled)
    exec('class Inner(Scaled):\n    def factor(self): return FACTOR', space)
    return space['Inner']()


def by_default(v):
    def factor(self, by=v): return by
    return having(factor)


def traced(v):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return torch.jit.trace(having(lambda self: v).eval(), torch.zeros(2, 3).double())


def through(f): return lambda x: f(Scaled()(x.double())) # a function, no module
def times(z, by): return z*by
class Called:
    def __init__(self, v): self.inner = Held(v)
    def __call__(self, x): return Scaled()(x.double())*self.inner()


OTHERS = dict( # How a model may hold a number that decides
    weights=lambda v: (m := Scaled(), m.line.weight.data.mul_(v))[0], bias=lambda v: (m := Scaled(), m.line.bias.data.add_(v))[0],
    attribute=lambda v: having(lambda self: self.a, a=v), in_a_list=lambda v: having(lambda self: self.a[0], a=[v]),
    in_a_tuple=lambda v: having(lambda self: self.a[0], a=(v,)), in_a_dict=lambda v: having(lambda self: self.a['by'], a=dict(by=v)),
    in_a_tensor=lambda v: having(lambda self: self.a[0], a=[torch.tensor(v).double()]), in_an_array=lambda v: having(lambda self: float(self.a[0]), a=np.array([v])),
    in_an_object=lambda v: having(lambda self: self.a(), a=Held(v)), in_a_closure=lambda v: having(lambda self: v),
    in_a_default=by_default, in_a_partial=lambda v: having(lambda self: self.a(1.), a=functools.partial(times, by=v)),
    no_persistent_buffer=with_buffer, attribute_of_the_class=of_class, constant_of_a_module=in_module, hook=with_hook, hook_before=with_pre_hook,
    own_forward=with_forward, traced=traced, function_of_a_closure=lambda v: through(lambda z: z*v), function_of_a_partial=lambda v: through(functools.partial(times, by=v)),
    object_with_a_call=Called, only_between_rows=lambda v: lambda x: Scaled()(x.double()) + (v - 1)*((x*4) % 1 != 0).any(1, keepdim=True)*torch.tensor([1., 0.]).double())


def quarters():
    r = np.random.default_rng(0)
    return pd.DataFrame(r.integers(0, 5, (60, 3))/4, columns=list('abc'))


def answering(model):
    df = quarters()
    return GradualCF(model, tabular(df), 'sparse', sigma=0).fit(df)


@pytest.mark.parametrize('how', OTHERS)
def test_another_model_is_known_by_what_it_says(how):
    one, again, other = (_known_by(answering(OTHERS[how](v))) for v in (1., 1., 1.5))
    assert one == again != other


@pytest.mark.night
def test_a_model_that_changes_after_fit_is_another_one(tmp_path):
    cf = answering(having(lambda self: self.a[0], a=[1.]))
    out = explain_dataset(cf, quarters()[:12], tmp_path/'out', batch_size=6)
    cf.model.a[0] = 2.
    with pytest.raises(ValueError, match='model'): explain_dataset(cf, quarters()[:12], out, batch_size=6)


def in_another_process(threads, out):
    "Its strings have other hashes than here."
    torch.set_num_threads(threads)
    explain_dataset(answering(OTHERS['in_a_list'](1.)), quarters()[:12], out, batch_size=6)


@pytest.mark.night
def test_the_same_model_is_known_in_another_process_and_with_more_threads(tmp_path):
    for threads in (1, 2):
        process = forked(in_another_process, threads, tmp_path/'out')
        process.join(300)
        assert process.exitcode == 0
    explain_dataset(answering(OTHERS['in_a_list'](1.)), quarters()[:12], tmp_path/'out', batch_size=6)


class Shaky(Scaled):
    "A model whose answers are off by a little, each time otherwise."
    def forward(self, x): return super().forward(x) + 1e-7*torch.from_numpy(np.random.default_rng().random((len(x), 2)))


def test_a_model_that_does_not_repeat_itself_is_named_and_may_go_on(tmp_path):
    other = Shaky()
    other.line.bias.data += 1e-4
    for model in (Shaky(), Shaky()):
        with pytest.warns(UserWarning, match='model does not repeat itself: its logits of the same rows differ'):
            out = explain_dataset(answering(model), quarters()[:12], tmp_path/'out', batch_size=6)
    with pytest.warns(UserWarning, match='repeat'), pytest.raises(ValueError, match=r"model '\w+' there, '\w+' now"):
        explain_dataset(answering(other), quarters()[:12], out, batch_size=6)
