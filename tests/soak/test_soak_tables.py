"""Every answer about any table: legal, kept where it must be, what the model says, the same in any company."""
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from judge import faults, same
from invented import ASKED, CHANGES, PRESETS, asked, domain_of, network, tables
from size import SIZE  # rows that are explained, about

from gradual_cf.all import Counterfactuals, GradualCF, predict
from gradual_cf.search.proven import NONE_EXISTS

QUICK = settings(max_examples=max(SIZE//(5*ASKED), 1), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
SHORT = dict(sigma=8)                              # Steps of the paper's setting
STOPPING = [c for c in CHANGES if 'quantile' not in c] # a valid answer that has not come so far goes on when it is asked again


def explainer(made, how, changes, k, dtype=torch.float32):
    "An explainer of a made table."
    domain = domain_of(made)
    x = domain.encode(made.train).x.to(dtype)
    settings_of = None if how is None else replace(how, **SHORT)
    return GradualCF(network(x, k, made.seed), domain, settings_of, **changes).fit(made.train)


def cells(df): return [[v for v in row] for row in df.astype(object).to_numpy().tolist()]


def check_same(a, b):
    "Two frames of answers are the same, cell by cell."
    assert [str(t) for t in a.dtypes] == [str(t) for t in b.dtypes]
    for one,two in zip(cells(a), cells(b), strict=True): assert all(map(same, one, two)), (one, two)


def answers(cf, made, target):
    "What is found; a case in which a class has too few training rows for what is asked, as the error says, does not count."
    try: return cf.explain(made.rows, target, **asked(made))
    except ValueError as e:
        assert 'training row' in str(e), e
        assume(False)


def other_class(cf, rows, k):
    "A target that most rows do not have yet."
    return (predict(cf.model, cf.domain.encode(rows).x.to(cf.place[1])).argmax(1) + 1) % k


@QUICK
@given(made=tables(), how=st.sampled_from(list(PRESETS)), changes=st.sampled_from(CHANGES), k=st.sampled_from([2, 3]),
       dtype=st.sampled_from([torch.float32, torch.float64]))
def test_an_answer_is_legal_and_is_what_the_model_says(made, how, changes, k, dtype):
    cf = explainer(made, PRESETS[how], changes, k, dtype)
    target = other_class(cf, made.rows, k)
    before = made.rows.copy(deep=True)
    cfs = answers(cf, made, target)
    check_same(made.rows, before)
    for c in made.rules['immutable']: assert all(map(same, made.rows[c].tolist(), cfs.raw[c].tolist())), c
    if not cf.settings.legal: return
    assert not (found := faults(made, made.rows, cfs.raw)), found
    p = predict(cf.model, cf.domain.encode(cfs.raw).x.to(dtype)).softmax(1)
    said = p[torch.arange(len(p)), target].numpy()
    np.testing.assert_allclose(said, cfs.prob, atol=2e-5)
    if 'quantile' not in changes: assert ((said >= cf.settings.tau - 2e-5) | ~cfs.valid).all()
    assert (said[cfs.valid] > .5 - 2e-5).all() or k > 2


@QUICK
@given(made=tables(), changes=st.sampled_from(CHANGES), k=st.sampled_from([2, 3]), order=st.permutations(range(ASKED)))
def test_an_answer_is_the_same_in_any_company(made, changes, k, order):
    cf = explainer(made, None, changes, k)
    target = other_class(cf, made.rows, k)
    cfs = answers(cf, made, target)
    all_at_once = cfs.raw
    order = list(order)
    turned = cf.explain(made.rows.iloc[order], target[order], **asked(made)).raw
    check_same(turned, all_at_once.iloc[order])
    i = order[0]
    check_same(cf.explain(made.rows.iloc[[i]], target[[i]], **asked(made)).raw, all_at_once.iloc[[i]])
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: cf.explain(made.rows, target, **asked(made)).raw, range(2)))
    for one in both: check_same(one, all_at_once)


NO_VALUES = ['Atlantis', '12,5', '', np.inf, -np.inf, 1e400, b'x', (1, 2), None, float('nan'), '31.02.2020', True, 7, -1e30]


@QUICK
@given(made=tables(), changes=st.sampled_from(CHANGES), k=st.sampled_from([2, 3]),
       bad=st.lists(st.tuples(st.integers(0, ASKED - 1), st.integers(0, 9), st.sampled_from(NO_VALUES)), min_size=1, max_size=5))
def test_a_row_that_cannot_be_read_refuses_no_other(made, changes, k, bad):
    cf = explainer(made, None, changes, k)
    target = other_class(cf, made.rows, k)
    whole, rows = answers(cf, made, target), made.rows.astype(object)
    for i, c, v in bad: rows.isetitem(c % rows.shape[1], [v if n == i else old for n, old in enumerate(rows.iloc[:, c % rows.shape[1]])])
    kept = [i for i in range(len(rows)) if i not in {i for i, _, _ in bad}]
    assume(kept)
    cfs = cf.explain(rows, target, **asked(made))
    for one, two in zip(cells(cfs.raw.iloc[kept]), cells(whole.raw.iloc[kept]), strict=True): assert all(map(same, one, two)), (one, two)
    assert not cfs.unread[kept].any() and (cfs.valid[kept] == whole.valid[kept]).all() and np.array_equal(cfs.prob[kept], whole.prob[kept])
    for i in np.flatnonzero(cfs.unread):
        assert not cfs.valid[i] and np.isnan(cfs.prob[i]) and cfs.proof[i].startswith('not read: ')
        assert all(map(same, cells(cfs.raw.iloc[[i]])[0], cells(rows.iloc[[i]])[0]))


@QUICK
@given(made=tables(), changes=st.sampled_from(STOPPING), k=st.sampled_from([2, 3]))
def test_an_answer_that_is_explained_again_stays(made, changes, k):
    cf = explainer(made, None, changes, k)
    target = other_class(cf, made.rows, k)
    cfs = answers(cf, made, target)
    there = np.flatnonzero(cfs.valid).tolist()
    assume(there)
    again = cf.explain(cfs.raw.iloc[there], target[there], **asked(made))
    check_same(again.raw, cfs.raw.iloc[there])
    assert again.valid.all() and not len(again.changes())


@QUICK
@given(made=tables(), k=st.sampled_from([2, 3]))
def test_answers_come_back_from_a_file(made, k):
    cf = explainer(made, None, {}, k)
    cfs = answers(cf, made, other_class(cf, made.rows, k))
    with tempfile.TemporaryDirectory() as d:
        try: path = cfs.save(f'{d}/kept.zip')
        except ValueError as e:
            assert any(said in str(e) for said in ('to be saved', 'be the same after saving', 'a file can store')), e
            return
        back = Counterfactuals.load(path, cf.domain)
    check_same(back.raw, cfs.raw)
    check_same(back.data, cfs.data)
    assert np.array_equal(back.valid, cfs.valid) and np.array_equal(back.prob, cfs.prob)
    assert back.raw.index.equals(cfs.raw.index) and list(back.raw.columns) == list(cfs.raw.columns)


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
        told = cfs[:4].prove(seconds=1)
        assert not (cfs.valid[:4] & (told.verdict == NONE_EXISTS).to_numpy()).any()
