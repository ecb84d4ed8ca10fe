"""Models as they behave: decisions in a whisper, state in odd places, writing where they should read, many threads at once."""
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from invented import ASKED, asked, domain_of, network, tables
from test_identity import OTHERS, answering, quarters
from test_invariants import adds, drops, dropping, locates, modes, numbers, renames, scales, sets
from test_soak_tables import QUICK, SIZE, answers, check_same, other_class

from gradual_cf.all import GradualCF, explain_dataset, tabular
from gradual_cf.models.asking import _ASKED, predict
from gradual_cf.models.fitted import predictor
from gradual_cf.search.proven import prove

FEW = settings(QUICK, max_examples=max(SIZE//(20*ASKED), 1))
INFEASIBLE = 'infeasible: no legal change of these columns reaches the target'


@QUICK
@given(made=tables(), k=st.sampled_from([2, 3]), tau=st.sampled_from([.25, .34, .5, .6]), tiny=st.integers(-9, 0), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_valid_is_the_decision_and_tau(made, k, tau, tiny, dtype):
    domain = domain_of(made)
    net = network(domain.encode(made.train).x.to(dtype), k, made.seed)
    with torch.no_grad():
        for p in list(net.parameters())[-2:]: p.mul_(10.**tiny)
    cf = GradualCF(net, domain, 'sparse', tau=tau, sigma=8).fit(made.train)
    target = other_class(cf, made.rows, k)
    cfs = answers(cf, made, target)
    for rows,valid in ((cfs.raw, cfs.valid), (made.rows, cfs.already)):
        z = predict(cf.model, cf.domain.encode(rows).x.to(dtype))
        p = z.double().softmax(1).gather(1, target[:, None])[:, 0]
        sure = (p - tau).abs() > 1e-6
        decided = (z.argmax(1) == target).numpy()
        assert (valid <= decided).all()
        assert (valid == decided & (p >= tau).numpy())[sure.numpy()].all()
    if cf.domain.relations is None:
        told = prove(cf, cfs[:4], seconds=1)
        assert not (cfs.valid[:4] & (told.verdict == INFEASIBLE).to_numpy()).any()


@FEW
@given(how=st.sampled_from(list(OTHERS)), factor=st.floats(.1, 3).filter(lambda v: abs(v - 1) > 1e-3))
def test_another_model_is_refused_wherever_it_keeps_what_is_other(how, factor):
    df, make = quarters()[:6], OTHERS[how]
    with tempfile.TemporaryDirectory() as d:
        out = explain_dataset(answering(make(1.)), df, Path(d)/'out', batch_size=6)
        explain_dataset(answering(make(1.)), df, out, batch_size=6)
        with pytest.raises(ValueError, match="model '"): explain_dataset(answering(make(factor)), df, out, batch_size=6)


@FEW
@given(made=tables(), how=st.sampled_from(['data', 'in place', 'one cell']), at=st.integers(0, 30))
def test_who_writes_is_refused_and_nobodys_rows_change(made, how, at):
    domain, before = domain_of(made), made.train.copy(deep=True)
    x = domain.encode(made.train).x
    net, asked_of = network(x, 2, made.seed), []
    class Late(torch.nn.Module): # well-behaved until it has been asked some times
        def __init__(self): super().__init__(); self.net = net
        def forward(self, x):
            asked_of.append(1)
            if len(asked_of) > at and how == 'data': x.data.sub_(1)
            if len(asked_of) > at and how == 'in place' and not x.requires_grad: x.mul_(.5).add_(1)
            if len(asked_of) > at and how == 'one cell': x.data[0, 0] += 1
            return self.net(x)
    try: GradualCF(Late(), domain, 'sparse', sigma=4).fit(made.train).explain(made.rows, **asked(made))
    except ValueError as e: assert 'writes into it' in str(e) or 'training row' in str(e), e
    check_same(made.train, before)


@FEW
@given(write=st.sampled_from([sets, locates, scales, drops, renames, adds]), seed=st.integers(0, 99), n=st.integers(1, 40))
def test_functions_of_frames_edit_nobodys_rows(write, seed, n):
    df = numbers(60, seed)
    before = df.copy()
    def f(frame):
        score = frame.a.to_numpy() - frame.b.to_numpy()
        write(frame)
        return np.stack([-score, score], 1)
    try: GradualCF(predictor(f, domain := tabular(df), kind='logit'), domain, 'sparse').fit(df).explain(df[:n])
    except ValueError as e: assert "writes into 'b'" in str(e) and write is not adds
    else: assert write is adds
    assert df.equals(before)


@FEW
@given(threads=st.integers(2, 16), seed=st.integers(0, 99), size=st.integers(1, 12))
def test_threads_get_the_answers_of_one(threads, seed, size):
    df, net = numbers(60, seed), dropping(seed)
    for m in np.random.default_rng(seed).choice(len(net), 2): net[m].train(not net[m].training)
    cf, before = GradualCF(net, tabular(df), 'sparse', sigma=3).fit(df), modes(net)
    if len(cf.z_train.argmax(1).unique()) < 2: return
    rows = [df[i:i + size] for i in range(0, 60, size)]
    alone = [cf.explain(r) for r in rows]
    with ThreadPoolExecutor(threads) as pool: got = list(pool.map(cf.explain, rows))
    assert all(torch.equal(a.xp, b.xp) for a,b in zip(alone, got)) and modes(net) == before and not _ASKED
