"""Would numba or torch be worth it? The bound of trees on the same boxes: in words of numpy, as the package does it, compiled, and by torch.

    GRADUAL_CF_DATA=... python benchmarks/boxes_look.py [--rows 60] [--rounds 5] [--folder /tmp/numba] [--out benchmarks/results/boxes_look.csv]

HELOC, numbers only, trees of at most 64 leaves. `boxes` are those that `explain` looks at by default. CPU microseconds a box of one thread: `us_numpy` and
`us_numba` are a whole look (the bound, the corner's score, where to cut), `us_torch` the bound alone, `us_rest` all the rest of a search: queue, corners,
prices, questions to the model. `ms` is a row of `explain` with numpy and with numba, by default and with `optimal='columns', seconds=60`; `ratio` is the
second over the first, asked in turn (median of `--rounds`). `apart` is the largest difference of two bounds, `same_cuts` the share of
boxes that numba cuts at the same place. Reading trees and compiling are not counted.
"""
import argparse
import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from boxes import explained
from clock import cpu, timed as clocked
from installed import install

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_heloc
from gradual_cf.search import bounds, boxes


def kernel():
    "The bound as one loop over boxes, trees and columns."
    import numba as nb

    @nb.njit
    def rank(words): # the lowest bit
        at = 0
        while not words & np.uint64(1): words, at = words >> np.uint64(1), at + 1
        return at

    @nb.njit
    def looked(row, low, high, corner, stays, limits, asks, edges, first_edge, upto, since, cell, first_cell, own, fixed, strange, value, spans, mine,
               need, slack, most, here, column, upper):
        trees = value.shape[0]
        met, there, at = np.empty((2, trees), np.uint64), np.empty((len(asks), trees), np.uint64), np.zeros(len(asks), np.int64)
        top, gain = np.empty(trees, np.int64), np.empty(trees)
        for b in range(len(row)):
            r = row[b]
            met[0], met[1] = fixed[r], fixed[r]
            for j, g in enumerate(asks):
                a, z, kept = max(low[b, g], limits[0, r, g]), min(high[b, g], limits[1, r, g]), own[j, r]
                a, z, still = a + (a & 1), z - (z & 1), stays[b, g] and low[b, g] >= high[b, g]
                odd, cuts = strange[r, g] and stays[b, g], edges[first_edge[j]:first_edge[j + 1]]
                at[j] = np.searchsorted(cuts, corner[b, g])
                i, k = first_cell[j] + np.searchsorted(cuts, a), first_cell[j] + np.searchsorted(cuts, z)
                for t in range(trees):
                    there[j, t] = kept[t] if still or odd else cell[first_cell[j] + at[j], t]
                    if still or stays[b, g] and a > z: words = kept[t]
                    else: words = (upto[k, t] & since[i, t] if a <= z else np.uint64(0)) | (kept[t] if odd else np.uint64(0))
                    met[0, t] &= words
                    met[1, t] &= there[j, t]
            total = 0.
            for t in range(trees):
                top[t] = rank(met[0, t])
                total += value[t, top[t]]
            most[b], here[b], column[b], upper[b] = total - need[r] + slack, -np.inf, -1, 0
            if most[b] < 0: continue
            total = 0.
            for t in range(trees):
                v = value[t, rank(met[1, t])]
                total, gain[t] = total + v, value[t, top[t]] - v
            here[b], chosen, heaviest = total - need[r] + slack, -1, 0.
            for j in range(len(asks)):
                weight = 0.
                for t in range(trees):
                    if not there[j, t] >> np.uint64(top[t]) & np.uint64(1): weight += gain[t]
                if weight > heaviest: heaviest, chosen = weight, j
            if chosen < 0: continue
            g, j, cuts = asks[chosen], chosen, edges[first_edge[chosen]:first_edge[chosen + 1]]
            heavy = np.zeros(len(cuts) + 1)
            for t in range(trees):
                if there[j, t] >> np.uint64(top[t]) & np.uint64(1): continue
                begin, end = spans[0, j, t, top[t]], spans[1, j, t, top[t]]
                cut = begin - 1 if begin > at[j] else end if end < at[j] else -1
                if cut >= 0: heavy[cut] += gain[t]
            best = heavy.argmax()
            column[b], upper[b] = g, cuts[min(best, len(cuts) - 1)]
            if heavy[best] <= 0 or upper[b] < low[b, g] or upper[b] >= high[b, g]:
                beside = mine[r, g] if mine[r, g] < high[b, g] else mine[r, g] - 1
                upper[b] = beside if stays[b, g] else low[b, g] + (high[b, g] - low[b, g])//2
    return looked


def tables(m):
    "The tables of a bound end to end, for a kernel; kept with its words."
    key = 'kernel', tuple(m.asks)
    if key not in m.any:
        edges, cells = [m.nodes.edges[g] for g in m.asks], [len(m.nodes.edges[g]) + 1 for g in m.asks]
        whole = lambda part: np.concatenate([part[g][:n, :, 0] for g, n in zip(m.asks, cells)])
        firsts = [np.r_[0, np.cumsum(v)].astype(np.int64) for v in ([len(v) for v in edges], cells)]
        spans = np.array([m.spans(g) for g in m.asks]).swapaxes(0, 1)
        own = np.stack([m.own[g][:, :, 0] for g in m.asks])
        limits, w = np.stack([m.q.rows.low, m.q.rows.high]), m.words
        m.any[key] = (limits, np.array(m.asks), np.concatenate(edges), firsts[0], whole(w.upto), whole(w.since), whole(w.cell), firsts[1], own,
                      m.fixed[:, :, 0], m.strange, w.value, spans, m.q.rows.own, m.need.astype(float), m.slack)
    return m.any[key]


def compiled(looked):
    "`_TreeBound.__call__` by a kernel; what it leaves open is asked as before."
    def call(m, b, budget):
        n = len(b.row)
        most, here, column, upper = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
        looked(b.row, b.low, b.high, b.corner, b.stays, *tables(m), most, here, column, upper)
        rest = np.flatnonzero((column < 0) & (most >= 0))
        if len(rest):
            first, last = boxes._legal_ends(m.q, b.row[rest], b.low[rest], b.high[rest])
            column[rest], upper[rest] = m.anywhere(b.take(rest), first, last)
        return boxes._Seen(most, here, np.zeros(n), column, upper, slack=m.slack)
    return call


def by_torch(m, b, budget):
    "The bound alone, as words of torch."
    limits, asks, _, _, upto, since, _, first_cell, own, fixed, strange, value, *_ = m.any['torch']
    row, low, high, stays = (torch.from_numpy(v) for v in (b.row, b.low, b.high, b.stays))
    words, none = fixed[row], torch.zeros((), dtype=torch.long)
    for j, g in enumerate(asks.tolist()):
        a, z, kept = torch.maximum(low[:, g], limits[0][row, g]), torch.minimum(high[:, g], limits[1][row, g]), own[j][row]
        a, z, cuts = a + (a & 1), z - (z & 1), m.any['cuts'][j]
        i, k = (first_cell[j] + torch.searchsorted(cuts, v) for v in (a, z))
        met = torch.where((a <= z)[:, None], upto[k] & since[i], none) | torch.where((strange[row, g] & stays[:, g])[:, None], kept, none)
        words &= torch.where((stays[:, g] & ((low[:, g] >= high[:, g]) | (a > z)))[:, None], kept, met)
    top = ((words & -words).double().abs().view(torch.int64) >> 52) - 1023
    return value[torch.arange(len(value)), top].sum(1) - m.any['need'][row] + m.slack


def as_tensors(m):
    "The same tables for torch."
    if 'torch' in m.any: return
    kept = [torch.from_numpy(v.view(np.int64) if v.dtype == np.uint64 else v) if isinstance(v, np.ndarray) else v for v in tables(m)]
    m.any.update({'torch': kept, 'cuts': [torch.from_numpy(m.nodes.edges[g]) for g in m.asks], 'need': torch.from_numpy(m.need.astype(float))})


def recorded(ask):
    "The boxes of a question, batch by batch, and the CPU seconds of its searches without their bounds."
    seen, spent = [], dict(run=0., bound=0.)
    call, run = bounds._TreeBound.__call__, boxes._Search.run
    def kept(m, b, budget):
        out, took = clocked(lambda: call(m, b, budget))
        seen.append((m, b, budget))
        spent['bound'] += took
        return out
    def timed(*args):
        out, took = clocked(lambda: run(*args))
        spent['run'] += took
        return out
    with patch.object(bounds._TreeBound, '__call__', kept), patch.object(boxes._Search, 'run', timed): ask()
    return seen, spent['run'] - spent['bound']


def measured(name, cf, rows, looked, rounds):
    "One line of the table."
    numpys, numbas = bounds._TreeBound.__call__, compiled(looked)
    ask = dict(default=lambda: cf.explain(rows, 1), columns=lambda: cf.explain(rows, 1, optimal='columns', seconds=60.))
    seen, rest = recorded(ask['default'])
    n, all_ = sum(len(b.row) for _, b, _ in seen), lambda call: [call(*batch) for batch in seen]
    for m, *_ in seen: as_tensors(m)
    ours, theirs, third = all_(numpys), all_(numbas), all_(by_torch)
    apart = max(np.abs(a.most - other).max() for a, b, c in zip(ours, theirs, third) for other in (b.most, c.numpy()))
    same = np.concatenate([(a.column == b.column) & (a.upper == b.upper) for a, b in zip(ours, theirs)]).mean()
    took, whole = {numpys: [], numbas: [], by_torch: []}, {(what, call): [] for what in ask for call in (numpys, numbas)}
    for _ in range(rounds):
        for call in took: took[call].append(cpu(lambda: all_(call)))
        for call in (numpys, numbas):
            with patch.object(bounds._TreeBound, '__call__', call):
                for what, f in ask.items(): whole[what, call].append(cpu(f))
    us, ms = (lambda v: 1e6*np.median(v)/n), (lambda v: 1e3*np.median(v)/len(rows))
    times = {f'ms_{what}{end}': ms(whole[what, call]) for what in ask for call, end in ((numpys, '_numpy'), (numbas, '_numba'))}
    ratios = {f'ratio_{what}': np.median(np.divide(whole[what, numbas], whole[what, numpys])) for what in ask}
    return dict(model=name, rows=len(rows), boxes=n, us_numpy=us(took[numpys]), us_numba=us(took[numbas]), us_torch=us(took[by_torch]),
                us_rest=1e6*rest/n, **times, **ratios, apart=apart, same_cuts=same)


if __name__ == '__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--rows', type=int, default=60)
    ask.add_argument('--rounds', type=int, default=5)
    ask.add_argument('--models', nargs='*', default=['XGBoost, depth 3', 'XGBoost'])
    ask.add_argument('--folder', type=Path, default=Path('/tmp/numba'))
    ask.add_argument('--out', type=Path, default=Path(__file__).parent/'results/boxes_look.csv')
    how = ask.parse_args()
    install(how.folder, ['numba', 'llvmlite'])
    torch.set_num_threads(1)
    X, y, Xt, yt = load_heloc(os.environ['GRADUAL_CF_DATA'])
    lines, looked = [], kernel()
    for name in how.models:
        cf, rows = explained(name, X, y, Xt, how.rows)
        lines.append(measured(name, cf, rows, looked, how.rounds))
        print({k: v if isinstance(v, str) else round(float(v), 4) for k, v in lines[-1].items()}, flush=True)
        with atomic(how.out) as path: pd.DataFrame(lines).round(4).to_csv(path, index=False)
