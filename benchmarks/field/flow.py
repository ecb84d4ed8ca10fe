"""The density of a table's rows: a masked autoregressive flow with piecewise linear steps (Müller et al., 2019).

Columns come one after the other. A masked network says how the next one is distributed, given those before it: in bins, which are
the levels of a category, or stretches of a number with about equally many rows. Its cumulative distribution maps the column to
[0, 1]; that map is what makes it a flow, and its slope, share of a bin by its width, is the density.

    python -m benchmarks.field.flow --parts FOLDER   # measure answers that are kept, once more
"""
import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from gradual_cf.core import atomic, cache_dir
from gradual_cf.models.networks import load_model, save_model, seeded, tabular_mlp

from . import tables

HIDDEN, EPOCHS, PATIENCE, RATE = 128, 80, 8, 2e-3 # The network is the paper's, 128 wide and masked
FEWEST, BINS, LEAST, BATCH = 15, 24, 5, 128 # Rows in a bin at least; bins at most and at least; rows of a step at most
THINNEST = 1e-4 # Width of a bin at least, in ranges of the column


def edges_of(v, named):
    "Where the bins of a column begin and end: between its values."
    values, count = np.unique(v, return_counts=True)
    if named: return np.arange(-.5, values.max() + 1)
    most = int(np.clip(len(v)//FEWEST, LEAST, BINS))
    middle, share = (values[1:] + values[:-1])/2, count.cumsum()[:-1]/len(v)
    if not len(middle): return values[0] + np.array([-.5, .5])
    some = np.unique(np.searchsorted(share, np.arange(1, most)/most).clip(max=len(middle) - 1))
    room = np.diff(values).min()
    return np.r_[values[0] - room/2, middle[some], values[-1] + room/2]


def masks_of(sizes):
    "Which entries a layer may read: a column's distribution sees the columns before it."
    column = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    hidden = torch.arange(HIDDEN) % max(1, len(sizes) - 1)
    return [hidden[:, None] >= column, *[hidden[:, None] >= hidden]*3, column[:, None] > hidden]


def layers_of(net): return [m for m in net.modules() if isinstance(m, nn.Linear)]


class Flow:
    "Bins of each column, and the network of their shares."
    def __init__(self, train, named):
        self.edges = [edges_of(v, n) for v, n in zip(train.T, named)]
        self.sizes = [len(e) - 1 for e in self.edges]
        spans = [e[-1] - e[0] for e in self.edges]
        self.widths = [np.ones(s) if n else np.maximum(np.diff(e)/span, THINNEST)
                       for e, s, span, n in zip(self.edges, self.sizes, spans, named)]
        self.net:Any = tabular_mlp(sum(self.sizes), sum(self.sizes), HIDDEN)
        self.masks = masks_of(self.sizes)

    def bins(self, codes):
        "In which bin each cell lies, `(n, g)`; what is beyond the ends counts as the last bin."
        inside = [np.searchsorted(e, v, side='right') - 1 for e, v in zip(self.edges, codes.T)]
        return torch.from_numpy(np.stack([b.clip(0, s - 1) for b, s in zip(inside, self.sizes)], 1))

    def shares(self, bins):
        "Logarithm of the share of each cell's bin, given the columns before it, `(n, g)`."
        x = torch.cat([nn.functional.one_hot(b, s) for b, s in zip(bins.T, self.sizes)], 1).float()
        for layer, mask in zip(layers_of(self.net), self.masks):
            x = nn.functional.linear(x, layer.weight*mask, layer.bias)
            if mask is not self.masks[-1]: x = x.relu()
        parts = (v.log_softmax(1).gather(1, b[:, None]) for v, b in zip(x.split(self.sizes, 1), bins.T))
        return torch.cat(list(parts), 1)

    def log_density(self, codes):
        "Logarithm of the density, `(n,)`: categories count as shares, numbers in ranges of their column."
        bins = self.bins(codes)
        with torch.no_grad(): shares = self.shares(bins).sum(1).double().numpy()
        return shares - sum(np.log(w[b]) for w, b in zip(self.widths, bins.T.numpy()))

    def fit(self, codes, seed):
        "Train until a tenth of the rows, held out, is explained no better."
        with seeded(seed): order = torch.randperm(len(codes))
        bins, best, waited, kept = self.bins(codes)[order], np.inf, 0, None
        held, rows = bins[:len(bins)//10], bins[len(bins)//10:]
        self.net = tabular_mlp(sum(self.sizes), sum(self.sizes), HIDDEN, seed=seed)
        step = torch.optim.Adam(self.net.parameters(), RATE, weight_decay=1e-5)
        for _ in range(EPOCHS):
            for b in rows.split(int(np.clip(len(rows)//20, 8, BATCH))):
                step.zero_grad()
                (-self.shares(b).sum(1).mean()).backward()
                step.step()
            with torch.no_grad(): loss = -self.shares(held).sum(1).mean().item()
            waited = 0 if loss < best else waited + 1
            if loss < best: best, kept = loss, {k: v.clone() for k, v in self.net.state_dict().items()}
            if waited == PATIENCE: break
        self.net.load_state_dict(kept)
        return self


def flow_of(table, seed):
    "The flow of a table's training rows, trained or read from the cache, and what a usual held row has."
    train, named = tables.codes(table.X), [d == 'category' for d in table.X.dtypes]
    flow, path = Flow(train, named), cache_dir()/f'field-flow-{table.name}-{seed}.safetensors'
    if path.is_file(): flow.net = load_model(path)
    else: save_model(flow.fit(train, seed).net, path)
    return flow, float(np.median(flow.log_density(tables.codes(table.held))))


def measured(flow, usual, answers):
    "Logarithm of the density of answers less that of a usual row; NaN where there is none."
    codes = np.stack(answers)
    there, out = ~np.isnan(codes).any(1), np.full(len(codes), np.nan)
    if there.any(): out[there] = flow.log_density(codes[there]) - usual
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--parts', type=Path, default=cache_dir()/'field-parts')
    a, flows = a.parse_args(), {}
    torch.set_num_threads(1)
    for path in sorted(a.parts.glob('*.parquet')):
        df = pd.read_parquet(path)
        if 'answer' not in df or 'flow' in df: continue
        which = df.data.iloc[0], int(df.seed.iloc[0])
        if which not in flows: flows[which] = flow_of(tables.load(*which), which[1])
        flow = np.where(df.found, measured(*flows[which], df.answer), np.nan)
        with atomic(path) as tmp: df.assign(flow=flow).to_parquet(tmp, index=False)


if __name__ == '__main__': main()
