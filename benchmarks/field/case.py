"""A model of a table, the rows it is asked about, and rows as codes: what every method is given."""
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from gradual_cf.models.asking import predict
from gradual_cf.data.tables import tabular

from . import learners, tables

PLENTY = 300 # Rows of a large call
WHOLE = 1e-3 # A number this near to one that the column can hold is taken for it when it comes back from 32 bits


@dataclass
class Case:
    "What is asked of which model."
    table:tables.Table
    name:str          # Of the model
    model:Any
    domain:Any
    seed:int
    rows:pd.DataFrame # Rows to explain
    target:np.ndarray # The class each of them should get
    plenty:pd.DataFrame # These and more rows of the kind, for timing a large call
    aims:np.ndarray   # Their classes

    @property
    def is_network(self): return isinstance(self.model, torch.nn.Module)

    @property
    def named(self): # bool, one for each column
        return np.array([c.kind == 'category' for c in self.domain.features])

    @property
    def whole(self): # bool, one for each column: neither named nor with fractions
        return np.array([d.kind in 'iu' if isinstance(d, np.dtype) else False for d in self.table.X.dtypes])

    def codes(self, df): return tables.codes(df)

    def frame(self, codes):
        "Rows as a frame in the dtypes of the table; whole columns stay float where a number in them is not whole."
        return pd.DataFrame({c: self._cells(codes[:, j], self.table.X.dtypes[c]) for j, c in enumerate(self.table.X)})

    def _cells(self, v, dtype):
        if dtype == 'category':
            level = np.clip(np.rint(v), 0, len(dtype.categories) - 1).astype(int)
            return pd.Categorical.from_codes(level, dtype=dtype)
        return v.astype(dtype) if dtype.kind == 'f' or (v % 1 == 0).all() else v

    def encode(self, codes):
        "Rows as a network reads them, `(n, d)`."
        out = []
        for c, v in zip(self.domain.features, np.asarray(codes, float).T):
            if c.kind != 'category': out.append(c.encoded(v)[:, None])
            else: out.append(np.rint(v)[:, None] == np.arange(c.width))
        return torch.from_numpy(np.concatenate(out, 1)).float()

    def decode(self, x, codes):
        "Encoded rows as codes; what did not move stays exactly what it was in `codes`."
        x, old, out, at = np.asarray(x, float), self.encode(codes).double().numpy(), [], 0
        for c, was in zip(self.domain.features, codes.T):
            part, before = x[:, at:at + c.width], old[:, at:at + c.width]
            if c.kind == 'category': v = part.argmax(1).astype(float)
            else: v = np.where(np.abs(part - before)[:, 0] < 1e-6, was, self._written(c, c.decoded(part[:, 0])))
            out.append(v)
            at += c.width
        return np.column_stack(out)

    def _written(self, c, v):
        "Numbers that 32 bits moved off what the column can hold, put back."
        if not c.unit: return v
        return np.where(np.abs(v - np.rint(v)) < WHOLE, np.rint(v), v)

    def ask(self, codes):
        "Probabilities of the classes, `(n, k)`."
        if self.is_network: return self.ask_encoded(self.encode(codes))
        return np.asarray(self.model.predict_proba(self.frame(codes)), float)

    def ask_encoded(self, x, codes=None):
        "The same of encoded rows."
        if self.is_network: return predict(self.model, torch.as_tensor(x).float()).softmax(1).double().numpy()
        return self.ask(self.decode(x, np.zeros((len(x), len(self.named))) if codes is None else codes))


def case_of(data, model, seed, n):
    "Load, fit, and choose rows that the model does not give to the wanted class."
    table = tables.load(data, seed)
    domain = tabular(table.X, **table.rules)
    net = learners.fitted(model, table, domain, seed)
    case = Case(table, model, net, domain, seed, table.pool, np.zeros(0), table.pool, np.zeros(0))
    p = case.ask(case.codes(table.pool))
    said, target = p.argmax(1), np.argsort(p, 1)[:, -2]
    if table.wanted is not None: target = np.full(len(p), table.wanted)
    refused = np.flatnonzero(said != target)[:max(n, PLENTY)]
    case.plenty, case.aims = table.pool.iloc[refused], target[refused]
    case.rows, case.target = case.plenty.iloc[:n], case.aims[:n]
    return case
