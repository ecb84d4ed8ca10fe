"""What is measured of each answer, and by whom: rows that no search has seen, other networks, the model trained again."""
import numpy as np
import pandas as pd
import torch

from gradual_cf.models.asking import predict

from . import learners
from .flow import flow_of, measured

WIDTHS = np.geomspace(.02, 1, 12) # Bandwidths of the kernel density that are tried, on
TRIED = 400 # held rows
NEAREST = 5
MEASURES = ['columns', 'l1', 'l2', 'mad', 'lof', 'isolation', 'near', 'density', 'flow', 'networks', 'refitted']


def log_kernel_density(train, x, width):
    "Logarithm of a density with one Gaussian on each training row."
    d = train.shape[1]
    far = torch.cdist(x, train)**2/(2*width**2)
    return torch.logsumexp(-far, 1) - np.log(len(train)) - d*np.log(width*np.sqrt(2*np.pi))


def spread_of(v):
    "Median absolute deviation; where that is zero the mean one, where that is zero too, 1."
    far = np.abs(v - np.median(v))
    return np.median(far) or far.mean() or 1.


class Judges:
    "Fitted once for each table, model and seed."
    def __init__(self, case):
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        self.case, self.table = case, case.table
        held, train = case.codes(self.table.held), case.codes(self.table.X)
        self.held, self.train = case.encode(held).double(), case.encode(train).double()
        said, own = case.ask(held).argmax(1), case.ask(train).argmax(1)
        self.spans = np.array([np.ptp(v) or 1. for v in train.T])
        self.spreads = np.array([spread_of(v) for v in train.T])
        self.classes = {t: self.train[own == t] for t in np.unique(own)}
        self.lof, self.forest = {}, {}
        for t in np.unique(case.target):
            rows = self.held[said == t].numpy()
            if len(rows) < 5: continue
            self.lof[t] = LocalOutlierFactor(min(20, len(rows) - 1), novelty=True).fit(rows)
            self.forest[t] = IsolationForest(random_state=0).fit(rows)
        some = self.held[:TRIED]
        self.width = max(WIDTHS, key=lambda w: log_kernel_density(self.train, some, w).mean())
        self.usual = log_kernel_density(self.train, some, self.width).median()
        self.flow = flow_of(self.table, case.seed)
        self.networks = learners.witnesses(self.table, case.domain, case.seed)
        self.again = [learners.fitted(case.name, self.table, case.domain, case.seed, i) for i in (1, 2)]

    def of(self, codes, asked):
        "All measures of answers `(n, g)`, NaN where there is none; `asked` are the positions of their rows."
        old, target = self.case.codes(self.case.rows)[asked], self.case.target[asked]
        there = ~np.isnan(codes).any(1)
        found = there.copy()
        found[there] = self.case.ask(codes[there]).argmax(1) == target[there] if there.any() else False
        out = pd.DataFrame(np.nan, index=range(len(codes)), columns=['legal', *MEASURES])
        if found.any():
            told = self._measured(old[found], codes[found], target[found], self.case.rows.iloc[asked[found]])
            for name, v in told.items(): out.loc[found, name] = np.asarray(v, float)
        return out.assign(found=found)

    def _measured(self, old, new, target, rows):
        moved = old != new
        named = self.case.named
        far = np.where(named, moved, np.abs(new - old)/self.spans)
        deviation = np.where(named, moved, np.abs(new - old)/self.spreads)
        x = self.case.encode(new)
        told = dict(legal=self._legal(rows, new), columns=moved.sum(1), l1=far.sum(1), l2=np.sqrt((far**2).sum(1)),
                    mad=deviation.sum(1), flow=measured(*self.flow, new), **self._company(x.double(), target))
        return told | self._agreement(x, new, target)

    def _legal(self, rows, new):
        "Answers without a fraction together, others one by one: a fraction does not change the dtype of another row."
        whole = (new % 1 == 0) | ~self.case.whole
        together, out = np.flatnonzero(whole.all(1)), np.zeros(len(new), bool)
        for i in ([together] if len(together) else []) + [[i] for i in np.flatnonzero(~whole.all(1))]:
            frame = self.case.frame(new[i]).set_axis(rows.index[i])
            out[i] = np.asarray(self.case.domain.legal(rows.iloc[i], frame)).all(1)
        return out

    def _company(self, x, target):
        "How an answer stands among real rows: outlier or not, distance to the nearest of its class, density."
        lof, forest, near = (np.full(len(x), np.nan) for _ in range(3))
        for t in np.unique(target):
            i = target == t
            if t in self.lof: lof[i], forest[i] = (j[t].predict(x[i].numpy()) < 0 for j in (self.lof, self.forest))
            if t not in self.classes: continue
            k = min(NEAREST, len(self.classes[t]))
            near[i] = torch.cdist(x[i], self.classes[t]).topk(k, largest=False).values.mean(1).numpy()
        density = log_kernel_density(self.train, x, self.width) - self.usual
        return dict(lof=lof, isolation=forest, near=near, density=density.numpy())

    def _agreement(self, x, codes, target):
        "Shares of other networks, and of the same kind of model on draws of the rows, that agree."
        said = [predict(n, x).argmax(1).numpy() == target for n in self.networks]
        if self.case.is_network: again = [predict(n, x).argmax(1).numpy() == target for n in self.again]
        else: again = [m.predict_proba(self.case.frame(codes)).argmax(1) == target for m in self.again]
        return dict(networks=np.mean(said, 0), refitted=np.mean(again, 0))

    def real(self):
        "Held rows that the model gives to a target, measured as if they were answers; what needs a start is left out."
        codes = self.case.codes(self.table.held)
        said = self.case.ask(codes).argmax(1)
        i = np.flatnonzero(np.isin(said, np.unique(self.case.target)))[:300]
        x = self.case.encode(codes[i])
        told = self._company(x.double(), said[i]) | self._agreement(x, codes[i], said[i])
        return pd.DataFrame(told).astype(float).assign(found=True)
