"""Series: how they are read, what may be asked, where answers cut, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
import written
from hypothesis import given, settings
from hypothesis import strategies as st
from cover import cover
from sklearn.ensemble import RandomForestClassifier
from torch import nn
from toy import Level, waves

from gradual_cf.all import (GradualCF, evaluate, frames, load_cbf, load_model, load_series, predictor, save_model, series, series_cnn,
    series_resnet)
from gradual_cf.data.datasets import CBF_CLASSES
from gradual_cf.data.series import dtw
from gradual_cf.models.targets import in_target
from gradual_cf.search.segments import _DONORS, _reference_series, _outlying
from gradual_cf.data.series import n_segments


@pytest.fixture(scope='module')
def task(): return written.load_task('cbf')


@pytest.fixture(scope='module')
def cf(task): return GradualCF(task.model, task.domain, 'sparse', classes=task.classes).fit(task.X)


@pytest.fixture(scope='module')
def two(): return GradualCF(Level(), series(waves(), ['ecg', 'pulse'], fs=100), 'sparse').fit(waves())


@pytest.fixture(scope='module')
def answers(cf, task): return cf.explain(task.X_test[:20], [CBF_CLASSES[(k + 1) % 3] for k in task.y_test[:20]])


# Reading
def test_every_container_is_read_alike():
    X = waves(30)
    dom, want = series(X, ['a', 'b']), torch.from_numpy(X).float()
    nested = pd.DataFrame(dict(a=list(X[:, 0]), b=list(X[:, 1])))
    frames = [pd.DataFrame(v.T, columns=['a', 'b']) for v in X]
    for data in (X, torch.tensor(X), list(X), X.tolist(), nested, frames): assert dom.encode(data).x.equal(want)
    assert series(nested).display.names[0].startswith('a from 0 ') and dom.encode(X[3]).x.equal(want[3:4])
    flat = series(X[:, 0])
    for data in (X[:, 0], X[:, :1], pd.DataFrame(X[:, 0]), list(X[:, 0])): assert flat.encode(data).x.equal(want[:, :1])
    assert flat.encode(X[0, 0]).x.equal(want[:1, :1])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(8, 40), st.integers(0, 9))
def test_what_did_not_move_comes_back_as_it_was(c, length, seed):
    X = np.random.default_rng(seed).normal(size=(6, c, length)).astype(np.float32).astype(float)
    dom = series(X)
    assert np.array_equal(dom.decode(dom.encode(X).x, X), X)
    one = X[:, 0] if c == 1 else X
    back = dom.decode(dom.encode(one).x + 1, one)
    assert back.shape == one.shape and np.allclose(back, one + 1, atol=1e-5)


def test_series_of_several_lengths_are_padded_and_their_padding_stays():
    X = waves()
    rows = [v[:, :60 + i % 21] for i,v in enumerate(X)]
    cf = GradualCF(Level(), series(rows), 'sparse').fit(rows)
    cfs = cf.explain(rows[:6], [1, 0]*3)
    assert cfs.valid.all() and cfs.raw.shape == (6, 2, 65)
    for i,v in enumerate(rows[:6]): assert np.isnan(cfs.raw[i, :, v.shape[1]:]).all() and not np.isnan(cfs.raw[i, :, :v.shape[1]]).any()
    assert (cfs.xp[0, :, 60:] == 0).all()


def test_missing_stretches_are_bridged_on_request_and_never_changed():
    X = waves()
    X[:4, 0, 52:58] = np.nan
    cf = GradualCF(Level(), series(X, missing='bridge'), 'sparse').fit(X)
    cfs = cf.explain(X[:4], [1, 0]*2)
    assert (cfs.xp[:, 0, 52:58] == cfs.x[:, 0, 52:58]).all() and np.allclose(cfs.raw[:, 0, 52:58], cfs.x[:, 0, 52:58]) and cfs.valid.all()
    X[7, 1] = np.nan # a channel that nobody measured
    assert GradualCF(Level(), series(X, missing='bridge'), 'sparse').fit(X).explain(X[6:8], [1, 0]).valid.all()
    bridge = cfs.x[0, 0, 51:59].diff()
    assert torch.allclose(bridge, bridge[:1].expand(7), atol=1e-6)


def test_files_of_the_archive_are_read(tmp_path):
    (tmp_path/'a.tsv').write_text('1\t.5\t1.5\t2\n2\t1\t0\tNaN\n')
    X, y = load_series(tmp_path/'a.tsv')
    assert np.array_equal(X, [[.5, 1.5, 2], [1, 0, np.nan]], equal_nan=True) and y.tolist() == ['1', '2']
    (tmp_path/'b.ts').write_text('# about\n@problemName b\n@data\n1,2,?:4,5,6:yes\n1,2:3,4:no\n')
    X, y = load_series(tmp_path/'b.ts')
    assert X.shape == (2, 2, 3) and np.isnan(X[0, 0, 2]) and np.isnan(X[1, :, 2]).all() and y.tolist() == ['yes', 'no']
    (tmp_path/'g.csv').write_text('a,1,2\nb,3,?\n')
    assert np.array_equal(load_series(tmp_path/'g.csv')[0], [[1, 2], [3, np.nan]], equal_nan=True)


# Answers


@pytest.mark.night
def test_what_lies_outside_of_limits_keeps_its_value():
    X = waves()
    ragged = [v[:, :60 + i % 21] for i,v in enumerate(X)]
    cfs = GradualCF(Level(), series(ragged), 'sparse').fit(ragged).explain(ragged[:6:2], 1, bounds={'channel 0': (.1, None)}) # padding is 0
    moved = cfs.xp != cfs.x
    assert moved.any() and (cfs.xp[:, :1][moved[:, :1]] >= .1 - 1e-6).all() and (cfs.xp[0, :, 60:] == 0).all()
    held = series(X, immutable=[slice(50, 80)], bounds={'channel 0': (.05, None)}) # most locked points lie below
    assert GradualCF(Level(), held, 'sparse').fit(X).explain(waves(4, seed=3)[::2], 1).valid.all()
    high = waves(2, seed=3)[:1]
    high[:, 0, 70] = 9. # beyond every training series
    cfs = GradualCF(Level(), series(X), 'sparse').fit(X).explain(high, 1, increase_only=['channel 0'])
    assert cfs.valid.all() and (cfs.xp >= cfs.x)[:, 0].all() and cfs.raw[0, 0, 70] == 9


@pytest.mark.night
def test_no_jump_is_steeper_than_real_ones():
    X = waves()
    dom = series(X)
    cfs = GradualCF(Level(), dom, 'sparse').fit(X).explain(waves(10, seed=4), [1, 0]*5)
    most = torch.from_numpy(np.abs(np.diff(X, axis=2)).max((0, 2))).float()[:, None]
    new = cfs.xp.diff(dim=-1).abs()
    assert (new <= torch.maximum(most, cfs.x.diff(dim=-1).abs())*1.002).all() and cfs.valid.all()
    jumpy = X[:1].copy()
    jumpy[:, :, 50] += 9*most.numpy()[:, 0]
    bad = ~dom.legal(X[:1], jumpy)
    assert bad[0, [n.startswith('channel 0') for n in dom.display.names]].any() and bad.sum() < bad.size/2


def test_where_no_paste_arrives_values_are_composed():
    X = waves()
    cf = GradualCF(Level(), series(X, bounds={'channel 0': (-9, 9)}, steepest=9.), 'sparse').fit(X)
    rows, lock = waves(4, seed=5)[::2], [('channel 0', slice(0, 33))]
    pasted = GradualCF(Level(), cf.domain, cf.settings, sigma=0).fit(X).explain(rows, 1, immutable=lock)
    cfs = cf.explain(rows, 1, immutable=lock)
    assert not pasted.valid.any() and (cfs.prob > pasted.prob).all() and (cfs.xp[:, 0, :33] == cfs.x[:, 0, :33]).all()


@pytest.mark.night
@pytest.mark.parametrize('kind', ['forest', 'one tree', 'neighbours', 'scaled and linear'])
def test_there_is_an_answer_wherever_a_training_series_is_of_the_target(kind):
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier
    make = {'forest': lambda: RandomForestClassifier(30, random_state=0), 'one tree': lambda: DecisionTreeClassifier(random_state=0),
            'neighbours': lambda: KNeighborsClassifier(1), 'scaled and linear': lambda: make_pipeline(StandardScaler(), LogisticRegression())}
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 40)).cumsum(1), rng.integers(0, 3, 50) # labels that mean nothing
    model = make[kind]().fit(X, y)
    cf = GradualCF(model, series(X), 'sparse').fit(X)
    rows = rng.normal(size=(12, 40)).cumsum(1)
    for label in range(3): assert in_target(cf.z_train, torch.tensor(label)).any() and cf.explain(rows, label).valid.all()


class Kernels:
    "A classifier as aeon makes them: series `(n, c, length)`, hard decisions; frames of several channels it refuses."
    __module__, classes_ = 'aeon.classification', np.array(['low', 'high'])
    def predict_proba(self, X):
        if X.shape[1:] != (2, 80): raise ValueError(f'series of another shape, {X.shape}')
        return np.eye(2)[(X[:, 0, 20:40].mean(1) > 0).astype(int)]
    predict = predict_proba


@pytest.mark.parametrize('given', [lambda m, dom: m, predictor], ids=['as it is', 'predictor'])
def test_classifiers_of_aeon_read_arrays(given):
    X, dom = waves(), series(waves(), ['ecg', 'pulse'])
    model = given(Kernels(), dom)
    for _ in range(2): # two explainers may hold one model
        cf = GradualCF(model, dom, 'sparse').fit(X)
        cfs = cf.explain(waves(4, seed=6), ['high', 'low']*2)
    again = GradualCF(cf.model, dom, 'sparse').fit(X).explain(waves(4, seed=6), ['high', 'low']*2)
    assert cfs.valid.all() and again.xp.equal(cfs.xp) and (cfs.changes().start < 40).all() and (cfs.changes().end > 20).all()
    assert ((cfs.xp != cfs.x).flatten(1).double().mean(1) < .2).all() # though no window alone moves a decision


def test_a_model_of_numbers_is_brought_into_an_interval():
    from sklearn.linear_model import LinearRegression
    X = waves(c=1)[:, 0]
    model = LinearRegression().fit(X, X[:, 20:40].mean(1))
    cfs = GradualCF(model, series(X), 'sparse').fit(X).explain(waves(4, 1, seed=7)[::2, 0], (.4, 2.))
    assert cfs.valid.all() and ((cfs.prob >= .4 - 1e-5) & (cfs.prob <= 2.)).all() and n_segments(cfs.x, cfs.xp).max() <= 3


def test_the_outlier_factor_is_that_of_scikit_learn():
    from sklearn.neighbors import LocalOutlierFactor
    pool, new = torch.randn(2, 40, 1, 12, generator=torch.Generator().manual_seed(1))
    label = torch.arange(40) % 2
    known = LocalOutlierFactor(40//3, novelty=True).fit(pool.flatten(1).numpy())
    ours = _outlying([(torch.tensor(1), _reference_series(pool))], new, label)
    assert torch.allclose(ours[label == 1], torch.from_numpy(-known.score_samples(new[label == 1].flatten(1).numpy())).float(), atol=1e-4)
    assert (ours[label == 0] == 1).all()
    twice = pool[:1].expand(10, -1, -1) # all the same: no distance to divide by
    assert _outlying([(torch.tensor(1), _reference_series(twice))], new, label).isfinite().all()


def test_the_stepper_goes_from_a_whole_series_to_its_stretch(two):
    trace = two.trace(waves(2, seed=9)[:1], 1)
    pictures = frames(trace)
    changed = [(s.xp != s.x).sum() for s in trace]
    assert len(pictures) == len(trace) + 1 and changed == sorted(changed, reverse=True) and changed[0] > changed[-1]
    assert 'nothing changed yet' in pictures[0].text and 'ecg from 0.' in pictures[-1].text
    assert len({bytes(p) for p in pictures}) == len(pictures)


def test_the_measures_of_the_field(cf, task, answers):
    table = evaluate(cf, task.X_test[:6], answers.target[:6], task.judge, held=task.X_test[60:]).set_index('metric')['mean']
    assert {'share', 'segments', 'l1_point', 'dtw', 'lof', 'isolation', 'judge', 'legal'} <= set(table.index)
    assert table.share == pytest.approx((answers.xp != answers.x)[:6].double().mean().item()) and table.legal == 1


# Parts


def slow_dtw(a, b, most):
    "The textbook's table, one cell after the other."
    n = a.shape[1]
    table = np.full((n + 1, n + 1), np.inf)
    table[0, 0] = 0
    for i in range(n):
        for j in range(n):
            if abs(i - j) <= most: table[i + 1, j + 1] = ((a[:, i] - b[:, j])**2).sum() + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return table[n, n]**.5


def test_time_warping_is_that_of_the_textbook():
    a, b = torch.randn(2, 3, 2, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for band in (.1, .3, 1.): assert np.allclose(dtw(a, b, band), [slow_dtw(u, v, max(1, round(20*band))) for u, v in zip(a.numpy(), b.numpy())])
    assert (dtw(a, a) == 0).all()


def test_networks_of_series_are_kept(tmp_path):
    for make in (series_cnn, series_resnet):
        net, x = make(2, 3, width=4, seed=0).eval(), torch.randn(5, 2, 17)
        assert load_model(save_model(net, tmp_path/'net.safetensors'))(x).equal(net(x))


def test_cylinder_bell_funnel_is_its_formula():
    X, y, X_test, y_test = load_cbf(30, 12, seed=3)
    assert X.shape == (30, 128) and X_test.shape == (12, 128) and np.bincount(y).tolist() == [10]*3
    assert np.abs(X[:, :15]).max() < 6 and X[y == 0].max(1).min() > 4 and _DONORS > 1
    assert np.array_equal(load_cbf(30, 12, seed=3)[0], X) and not np.array_equal(load_cbf(30, 12)[0], X)


# Counts
def counting(threshold=3.2):
    "A network that adds up the middle third."
    net = nn.Sequential(nn.Flatten(), nn.Linear(24, 2))
    weight = (torch.arange(24)//8 == 1).float()*.2
    net[1].load_state_dict(dict(weight=torch.stack([-weight, weight]), bias=torch.tensor([1., -1.])*threshold))
    return net


RULES = dict(none={}, bounds=dict(bounds={'value': (.5, 6.5)}), locked=dict(immutable=[slice(0, 9)]), rising=dict(increase_only=['value']))


@pytest.mark.parametrize('dtype,kind,rules', cover([np.int64, np.uint8, np.float32, np.float64], ['network', 'forest'], list(RULES)))
def test_counts_stay_counts(dtype, kind, rules):
    rules = RULES[rules]
    X = np.random.default_rng(0).poisson(3, (150, 24)).astype(dtype)
    net = counting(5.6)
    label = net(torch.tensor(X).float()).argmax(1).numpy()
    model = net if kind == 'network' else RandomForestClassifier(20, random_state=0).fit(X, label)
    cf = GradualCF(model, series(X), 'sparse').fit(X)
    rows = X[label == 0][:5]
    answers = cf.explain(rows, 1, **rules)
    raw = np.asarray(answers.raw)
    assert raw.dtype == (dtype if np.issubdtype(dtype, np.integer) else float) and (raw == np.round(raw)).all() and answers.changed.any() and cf.domain.legal(rows, raw).all()
    if 'bounds' in rules: assert ((raw == rows) | (raw >= 1) & (raw <= 6)).all()
    if kind == 'network': assert (net(torch.tensor(raw).float()).argmax(1).numpy()[answers.valid] == 1).all()


def test_who_says_which_channels_count_is_believed():
    X = np.random.default_rng(1).poisson(3, (40, 2, 12)) + np.array([0., .5])[:, None]
    assert series(X).encode.args[0].whole == (0,) and series(X, integer=[]).encode.args[0].whole == ()
    with pytest.raises(ValueError, match=r"integer must name channels of whole numbers up to 16,777,216, got \['channel 1'\], which has others"): series(X, integer=['channel 1'])
    with pytest.raises(ValueError, match="integer must be a list of channels, got 'channel 0'"): series(X, integer='channel 0')
    half = X[:3] + np.array([.5, 0])[:, None]  # a row with a fraction of its own keeps it
    assert (series(X).decode(series(X).encode(half).x, half) == half).all()
