"""The benchmark of the field: its parts, its pipe, its judges, and the committed run against a new one."""
import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
pytest.importorskip('xgboost', reason='need xgboost (make .venv/.extras)')
from benchmarks.field import exchange, learners, parts, tables
from benchmarks.field import flow  # noqa: E402
from benchmarks.field.case import case_of  # noqa: E402
from benchmarks.field.flow import Flow  # noqa: E402
from benchmarks.field.gather import with_kept
from benchmarks.field.judges import Judges, log_kernel_density  # noqa: E402
from benchmarks.field.picture import worthy  # noqa: E402

ROWS = 36 # All of Wine that there are to explain
PEER = '''
import sys
import numpy as np
sys.path.insert(0, {peers!r})
from client import serve

def odd(task):
    def one(i):
        if i == 1: raise ValueError('no way')
        while i == 2: pass
        p = task.ask(task.train)[:, int(task.target[i])]
        return task.train[np.argsort(-p)[:task.told['several'] - 1 or 1]].ravel()
    return 'codes', one

def none(task): raise KeyError('nothing')

serve(dict(odd=odd, none=none))
'''


def committed(): return pd.read_parquet(ROOT/'benchmarks/results/field.parquet')


@pytest.fixture(scope='module')
def wine(): return case_of('wine', 'xgboost', 0, ROWS)


def judges_of(case):
    "With one witness: five take five times as long."
    with pytest.MonkeyPatch.context() as m:
        m.setattr(learners, 'witnesses', lambda table, domain, seed: [learners.network(table, domain, 8, seed)])
        return Judges(case)


@pytest.fixture(scope='module')
def judges(wine): return judges_of(wine)


def test_lines_without_a_part_stay_as_they_were(tmp_path):
    lines = pd.DataFrame(dict(data='wine', model='network', method=['a', 'b', 'ours'], seed=0, found=[1., .5, .25]))
    lines.to_parquet(tmp_path/'field.parquet')
    both = with_kept(lines.iloc[[1]].assign(found=.75), tmp_path/'field.parquet')
    assert both.method.tolist() == ['a', 'b', 'ours'] and both.found.tolist() == [1., .75, .25]
    assert with_kept(lines, tmp_path/'none.parquet') is lines


def test_the_committed_run_is_broad_and_ours_answers_everything_legally():
    df = committed()
    methods = df.method[df.method != parts.REAL].nunique()
    assert df.data.nunique() >= 10 and df.model.nunique() >= 4 and methods >= 12
    cells = df[df.method != parts.REAL].groupby(['data', 'model']).method.nunique()
    assert (cells >= 12).sum() >= 40
    ours = df[df.method.isin(['ours', 'ours, quantile .5', 'ours, believable'])]
    late = ours.ms > 1e3*ours.budget # cut off: deep answers of a fully grown forest
    assert ours.legal.dropna().eq(1).all() and ours.found[~late].eq(1).all()
    assert late.sum() <= 1 and not late[ours.method != 'ours, quantile .5'].any()
    assert (ROOT/'benchmarks/results/field.parquet').stat().st_size < 2 << 20


def test_a_part_that_is_there_is_not_done_again(tmp_path):
    from benchmarks.field.__main__ import missing
    a = argparse.Namespace(methods=['ours', 'our CEM', parts.REAL], parts=tmp_path, again=False)
    todo = missing(a, 'wine', 'xgboost', 0)
    assert [p.method for p in todo] == ['ours', parts.REAL] # trees have no gradient for CEM
    todo[0].path(tmp_path).touch()
    assert [p.method for p in missing(a, 'wine', 'xgboost', 0)] == [parts.REAL]
    a.again = True
    assert len(missing(a, 'wine', 'xgboost', 0)) == 2


@pytest.fixture
def peer(monkeypatch, tmp_path):
    (tmp_path/'peers').mkdir()
    (tmp_path/'peers/ask_odd.py').write_text(PEER.format(peers=str(ROOT/'benchmarks/field/peers')))
    monkeypatch.setattr(exchange, 'HERE', tmp_path)
    monkeypatch.setattr(exchange, 'environment', lambda folder, name: sys.executable)
    return lambda method, case, limit=60., several=1: exchange.run('odd', method, case, tmp_path, .3, limit, several)


@pytest.mark.night
def test_a_peer_answers_fails_and_is_cut_off(peer, wine):
    codes, seconds, told = peer('odd', wine, .2)
    assert 3 <= len(codes) < ROWS # no further rows once the limit is spent
    gone = np.isnan(codes).any(1)
    assert gone[:3].tolist() == [False, True, True]
    assert (wine.ask(codes[~gone]).argmax(1) == wine.target[:len(codes)][~gone]).all()
    assert 'cut off' in told['words'] or 'no way' in told['words'] # that it came back at all shows the cut: the loop of row 2 has no end
    assert told['fit'] >= 0 and told['memory'] >= 0


def test_codes_come_back_as_they_went(wine):
    codes = wine.codes(wine.rows)
    assert (wine.codes(wine.frame(codes)) == codes).all()
    x = wine.encode(codes)
    assert (wine.decode(x, codes) == codes).all()
    assert (wine.domain.encode(wine.rows).x.float() - x).abs().max() < 1e-6
    moved = wine.decode(x + .01, codes)
    assert (moved != codes).all()


@pytest.mark.night
def test_the_judges_see_what_is_forbidden(wine, judges):
    codes = wine.codes(wine.rows)
    answer = wine.codes(wine.table.X)[wine.ask(wine.codes(wine.table.X)).argmax(1) == wine.target[0]][:1]
    whole = list(wine.table.X).index('magnesium')
    broken, far = answer.copy(), answer.copy()
    broken[0, whole] += .5
    far[0, whole] = 1e6
    told = judges.of(np.concatenate([answer, broken, far, codes[:1], answer*np.nan]), np.zeros(5, int))
    assert told.found.tolist()[3:] == [False, False] and told.found[0]
    assert told.legal[0] == 1
    assert all(told.legal[i] == 0 for i in (1, 2) if told.found[i])
    assert told['columns'][0] == (answer != codes[:1]).sum() and told.near[0] < 1


def test_the_kernel_density_is_a_density():
    import torch
    v = torch.linspace(-4, 5, 2001)[:, None].double()
    p = log_kernel_density(torch.tensor([[0.], [1.]]).double(), v, .3).exp()
    assert p.sum().item()*9/2000 == pytest.approx(1, abs=1e-3)


def made_up_rows(n=600):
    "A category, a number that depends on it, and a copy of the category."
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, n)
    return np.column_stack([kind, np.round(kind*4 + rng.normal(size=n), 1), kind]).astype(float), [True, False, True]


@pytest.mark.night
def test_the_flow_is_a_density_and_knows_what_goes_together():
    rows, named = made_up_rows()
    f = Flow(rows, named).fit(rows[:500], 0)
    low, high = f.edges[1][0], f.edges[1][-1]
    grid = np.linspace(low, high, 401)[:-1] + (high - low)/800
    every = np.array([(a, v, b) for a in range(3) for v in grid for b in range(3)])
    assert np.exp(f.log_density(every)).sum()/400 == pytest.approx(1, abs=.01)
    rng = np.random.default_rng(1)
    apart = np.column_stack([rng.permutation(v) for v in rows.T])
    assert f.log_density(rows[500:]).mean() > f.log_density(apart).mean() + 2
    later = rows.copy()
    later[:, 2] = (later[:, 2] + 1) % 3
    early = [f.shares(f.bins(v))[:, :2] for v in (rows, later)]
    assert (early[0] == early[1]).all() # a column sees those before it only


def test_split_by_seed_shares_no_row():
    a, b = tables.load('wine', 0), tables.load('wine', 1)
    assert not set(a.X.index) & set(a.pool.index) and not set(a.held.index) & (set(a.pool.index) | set(a.X.index))
    assert list(a.X.index) != list(b.X.index) and len(a.X) + len(a.held) + len(a.pool) == 178


def test_who_takes_part():
    cells = pd.DataFrame(dict(method=['near', 'odd', 'wild', 'real rows'], found=[1., .9, 1., 1.], legal=[1., 1., .4, 1.]))
    assert worthy(cells).method.tolist() == ['near']
