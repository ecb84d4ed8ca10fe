"""What must hold for any input: nothing outside the mask moves, every change is legal, nobody's state is touched."""
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from types import SimpleNamespace

import made
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from gradual_cf.all import Encoded, GradualCF, State, Target, block_groups, fit_logits, logit_gap, predict, predictor, shortfall, tabular
from gradual_cf.gradual import _aim_inside, _least_lead
from gradual_cf.models.asking import _ASKED, with_graph
from gradual_cf.search.goals import Lead, Match, merit
from gradual_cf.models.targets import arrived, lead_of


def test_selecting_rows():
    df,y,net = made.bank()
    cfs = GradualCF(net, tabular(df), 'sparse').fit(df).explain(df.iloc[:9])
    assert len(cfs[2]) == 1 and list(cfs[2:4].raw.index) == ['id2', 'id3'] and len(cfs[cfs.valid]) == cfs.valid.sum()
    assert '→' in cfs[:2]._repr_html_() and 'valid' in repr(cfs)


@pytest.mark.night
def test_numbers_in_any_dtype():
    df,y,net = made.bank()
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        other = deepcopy(net).to(dtype)
        cf = GradualCF(other, tabular(df), 'sparse').fit(df)
        cfs = cf.explain(df.iloc[:20])
        assert cfs.xp.dtype == (torch.float64 if dtype == torch.float64 else torch.float32) and tabular(df).legal(df.iloc[:20], cfs.raw).all()
        assert cfs.valid.mean() > .9 and {p.dtype for p in other.parameters()} == {dtype}
        z = other(cf.encode(cfs.raw).x.to(dtype)).double()      # the network itself, as it is used
        assert (z.argmax(1) == cfs.target)[cfs.valid].double().mean() > .9


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
def test_blocks_cover_an_image_of_any_size(h, w, block):
    if block > min(h, w):
        with pytest.raises(ValueError): block_groups((h, w), block)
        return
    ids = block_groups((3, h, w), block)
    assert (ids[0] == ids[2]).all() and set(ids.unique().tolist()) == set(range((-(-h//block))*(-(-w//block))))
    assert torch.bincount(ids[0].flatten()).max() <= block**2


def test_a_row_at_the_bar_is_inside_in_a_batch_of_any_size():
    df,_,net = made.bank()
    x = tabular(df).encode(df).x.to(net[0].weight).repeat_interleave(3, 0) # so that every percentile is the gap of a row
    z = net(x).detach()
    stats = fit_logits(z)
    for one in x[::40].split(1):
        again = net(one).detach()
        label = again.argmax(1)
        gap = logit_gap(State(Encoded(one, one > torch.inf), one, again, Target(label, torch.ones(1), stats.mu[label])))
        there = stats.gaps[label.item()].sub(gap).abs().argmin().item()
        near = abs(stats.gaps[label.item(), there] - gap) < 1e-5
        assert not near or gap <= stats.within(label, there/100)


# ---- several threads
def dropping(seed=0, rate=.5):
    "A network with dropout, in train mode but for one layer that was frozen on purpose."
    parts = nn.Sequential(nn.Linear(3, 16), nn.Dropout(rate), nn.ReLU(), nn.Dropout(rate), nn.Linear(16, 2)).double()
    r = torch.Generator().manual_seed(seed)
    for p in parts.parameters(): p.data = torch.randn(p.shape, generator=r).double()
    parts[4].bias.data -= predict(parts, torch.rand(500, 3, generator=r).double()).mean(0) # both classes occur
    parts.train()
    parts[3].eval()
    return parts


def modes(*models): return [m.training for model in models for m in model.modules()]
def numbers(n=120, seed=0): return pd.DataFrame(np.random.default_rng(seed).normal(0, 1, (n, 3)).round(2), columns=list('abc'))


@pytest.mark.night
def test_threads_may_share_parts_of_models_and_fail():
    df, one = numbers(), dropping()
    two = nn.Sequential(one[0], nn.Dropout(.5), one[2], one[4]).train() # the same layers, in another model
    one[3].eval()
    before = modes(one, two)
    def breaks(x):
        if len(x) == 1: raise RuntimeError('no single rows')
        return one(x)
    class Breaking(nn.Module):
        def __init__(self): super().__init__(); self.inner = one
        def forward(self, x): return breaks(x)
    broken = Breaking()
    broken.training = False
    cfs = [GradualCF(m, tabular(df), 'sparse', sigma=3).fit(df) for m in (one, two, broken)]
    rows = [df.iloc[i:i + 4] for i in range(0, 40, 4)]
    alone = [cf.explain(r) for cf in cfs[:2] for r in rows]
    def ask(job):
        cf, r = job
        try: return cf.explain(r)
        except ValueError as e: return str(e)
    jobs = [(cf, r) for cf in cfs[:2] for r in rows] + [(cfs[2], df.iloc[[i]]) for i in range(10)]
    with ThreadPoolExecutor(8) as pool: got = list(pool.map(ask, jobs))
    for a,b in zip(alone, got): assert torch.equal(a.xp, b.xp)
    assert all('no single rows' in e for e in got[20:]) and modes(one, two) == before and not broken.training and not _ASKED


def test_a_deadline_of_one_thread_is_not_that_of_another():
    df, net = numbers(), dropping()
    cf = GradualCF(net, tabular(df), 'sparse', sigma=10).fit(df)
    alone = cf.explain(df)
    with ThreadPoolExecutor(6) as pool:
        hasty = [pool.submit(cf.explain, df, limit=.001) for _ in range(3)]
        calm = [pool.submit(cf.explain, df) for _ in range(3)]
    for job in hasty: job.result()
    for job in calm: assert torch.equal(job.result().xp, alone.xp)


# ---- models that write
class Clamping(nn.Module):
    "A network that tidies up its input in place."
    def __init__(self, how, most=.5):
        super().__init__()
        self.line, self.how, self.most = nn.Linear(3, 2).double(), how, most
        self.line.weight.data, self.line.bias.data = torch.tensor([[-3., 1., 0], [3., -1, 0]]).double(), torch.tensor([1., -1]).double()

    def forward(self, x):
        if self.how == 'data': x.data.clamp_(0, self.most)
        if self.how == 'in place': x.mul_(.5)
        if self.how == 'one cell': x.data[0, 0] = 0.
        if self.how == 'shape': x.unsqueeze_(0)
        return self.line(x.reshape(-1, 3))


@pytest.mark.parametrize('how', ['data', 'in place', 'one cell', 'shape'])
def test_a_network_that_writes_into_its_input_is_named_and_writes_nowhere(how):
    df = numbers()
    kept, domain = df.copy(), tabular(df)
    x = domain.encode(df).x.clone()
    cf = GradualCF(Clamping(how), domain, 'sparse')
    with pytest.raises(ValueError, match='model must not modify its input, got one that writes into it'): cf.fit(df)
    assert df.equals(kept) and torch.equal(domain.encode(df).x, x)
    late = Clamping('none')
    cf = GradualCF(late, domain, 'sparse', sigma=5).fit(df)
    learnt, late.how = cf.x_train.clone(), how
    with pytest.raises(ValueError, match='writes into it'): cf.explain(df[:9])
    with pytest.raises(ValueError, match='writes into it'): with_graph(late, x[:9].clone().requires_grad_()) if how in ('data', 'one cell') else predict(late, x)
    assert torch.equal(cf.x_train, learnt) and df.equals(kept)
    late.how = 'none'
    assert torch.equal(cf.explain(df[:9]).xp, GradualCF(Clamping('none'), domain, 'sparse', sigma=5).fit(df).explain(df[:9]).xp)


def sets(frame): frame['b'] = 0.
def locates(frame): frame.loc[:, 'b'] = 0.
def scales(frame): frame['b'] *= 2
def drops(frame): del frame['b']
def renames(frame): frame.columns = ['a', 'B', 'c']
def adds(frame): frame['sum'] = frame.sum(axis=1)


@pytest.mark.parametrize('write', [sets, locates, scales, drops, renames, adds])
def test_a_function_of_frames_that_writes_edits_nobodys_rows(write):
    df = numbers()
    kept, domain, on = df.copy(), tabular(df), [True]
    def f(frame):
        score = frame.a.to_numpy() - frame.b.to_numpy()
        if on[0]: write(frame)
        return np.stack([-score, score], 1)
    def made(): return GradualCF(predictor(f, domain, kind='logit'), domain, 'sparse')
    if write is adds: # a column of its own harms nobody
        here = made().fit(df).explain(df[:5])
        on[0] = False
        assert torch.equal(here.xp, made().fit(df).explain(df[:5]).xp) and df.equals(kept) and list(here.raw) == list(df)
        return
    with pytest.raises(ValueError, match="model must not modify its rows, got one that writes into 'b'"): made().fit(df)
    assert df.equals(kept)
    on[0] = False
    cf, rows = made().fit(df), df[:5].copy()
    on[0] = True
    with pytest.raises(ValueError, match="writes into 'b'"): cf.explain(rows)
    assert rows.equals(kept[:5])


def test_an_array_handed_to_a_model_is_no_window_on_the_rows():
    from sklearn.linear_model import LogisticRegression
    df = numbers()
    kept = df.copy()
    class Writing(LogisticRegression):
        def predict_proba(self, X):
            p = super().predict_proba(X)
            X[:] = 0.
            return p
    model = Writing().fit(df.to_numpy(), (df.a > df.b).astype(int))
    GradualCF(model, tabular(df), 'sparse').fit(df).explain(df[:5])
    assert df.equals(kept)


# Arrival, distance and aim by hand
def test_the_aim_lies_in_the_middle_of_an_interval_or_just_beyond_its_one_end():
    inf = torch.inf
    interval = torch.tensor([[1., 3.], [-inf, 3.], [1., inf], [-inf, inf]])
    aim = _aim_inside(SimpleNamespace(spread=2.), interval)
    assert aim.mu.tolist() == torch.tensor([[2.], [2.8], [1.2], [0.]]).tolist()
    assert torch.equal(aim.label, interval) and aim.level.tolist() == [.5]*4 and aim.gap is None


def test_the_least_lead_is_that_of_a_share_of_the_rows_of_the_class():
    z = torch.tensor([[0., 1, 0], [0, 3, 0], [0, 5, 1], [2, 0, 0], [0, 0, 9], [0, 0, 7]])
    assert _least_lead(z, torch.tensor([1, 2, 0, 1]), .5).tolist() == [3., 8., 2., 3.]
    assert _least_lead(z, torch.tensor([1]), 0.).tolist() == [1.]


def test_parts_that_are_missing_add_up_and_spare_room_is_the_least():
    "A probability, a gap of logits and a lead, by hand."
    z = torch.tensor([[0., 2.], [0., 2.], [1., 0.]], dtype=torch.float64)
    aim = Target(torch.ones(3, dtype=torch.long), torch.full((3,), .5).double(), torch.tensor([[0., 3.]]).double().expand(3, 2))
    s = State(Encoded(z, z > 9), z, z, aim)
    p = torch.log(torch.tensor(.5)) - torch.log_softmax(z, 1)[:, 1]
    torch.testing.assert_close(shortfall(s), p)
    gap = s._replace(target=aim._replace(demands=(Match(torch.tensor([1., .25, 1.]).double(), logit_gap),)))
    torch.testing.assert_close(shortfall(gap), torch.tensor([max(p[0], .5 - 1), .25, p[2] + 1.], dtype=torch.float64))
    lead = s._replace(target=aim._replace(demands=(Lead(torch.tensor([1., 5., 0.]).double()),)))
    torch.testing.assert_close(shortfall(lead), torch.tensor([max(p[0], -1.), 3., p[2] + 1 - p[2]], dtype=torch.float64))
    assert torch.equal(lead_of(z, aim.label), torch.tensor([2., 2, -1]).double())
    assert lead_of(torch.stack([z, -z], 1), aim.label[:, None].expand(3, 2)).tolist() == [[2, -2], [2, -2], [-1, 1]]
    nan = s._replace(logits=torch.full_like(z, torch.nan))
    assert shortfall(nan).tolist() == [torch.inf]*3


def test_what_has_arrived_is_better_then_the_nearest_then_what_lacks_less():
    short = torch.tensor([0., -1, -1, .3, .3, .300001, .4], dtype=torch.float64)
    dist = torch.tensor([1., 1, 3, 1, 3, 0, 0]).double()
    got = merit(short, dist)
    assert got[:3].tolist() == [.5, .5, .25]
    torch.testing.assert_close(-got[3:], torch.tensor([.3 + 2.5e-6, .3 + 3.75e-6, .3, .4], dtype=torch.float64), atol=1e-12, rtol=0)


def test_whoever_arrives_is_as_sure_as_tau_asks():
    z, target = torch.tensor([[0., 1], [0, 2]]), torch.tensor([1, 1])  # .73 and .88
    assert arrived(z, target, .8).tolist() == [False, True] and arrived(z, target, .5).all()
