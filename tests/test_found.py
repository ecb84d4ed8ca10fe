"""Real tables: every row is found where one or two edits suffice, by a search that shares no code with the package."""
import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gradual_cf.all import GradualCF, predict, tabular, tabular_mlp

DATA = os.environ.get('GRADUAL_CF_DATA')
pytestmark = pytest.mark.skipif(not DATA, reason='need GRADUAL_CF_DATA')
DROP = dict(adult=['fnlwgt', 'native-country'], compas=['compas_screening_date', 'c_jail_in', 'c_jail_out', 'days_b_screening_arrest', 'score_text', 'decile_score'],
            german_credit=[], bank_marketing=['Unnamed: 0'])
LABEL = dict(adult='class', compas='two_year_recid', german_credit='default', bank_marketing='y')


def some_rows(name, n=1500, seed=0):
    "Rows of a table and labels of two classes."
    df = pd.read_csv(Path(DATA)/f'tables/{name}.csv', skipinitialspace=True).drop(columns=DROP[name])
    df = df.dropna().sample(n=min(n, len(df)), random_state=seed)
    y = df.pop(LABEL[name]).astype(str)
    return df, (y == sorted(y.unique())[1]).to_numpy().astype(int)


def network(x, y):
    "A small network, trained on all rows for a fixed number of steps."
    net = tabular_mlp(x.shape[1], width=32, seed=0)
    x,y,opt = x.float(), torch.tensor(y), torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(120):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    return net


def values(df, column):
    "Levels of a category, or a grid over the range of a number, whole where the column is."
    s = df[column]
    if s.dtype.kind not in 'iuf': return sorted(s.unique())
    grid = np.linspace(s.min(), s.max(), 11)
    return sorted(set(grid.round().astype(s.dtype))) if s.dtype.kind in 'iu' else list(grid)


def flips(df, row, net, domain, target, tau):
    "Whether some two values of two columns, or fewer, bring one row to the target: all of them, tried in the frame."
    for a,b in itertools.combinations(df.columns, 2):
        pairs = list(itertools.product([row[a], *values(df, a)], [row[b], *values(df, b)]))
        many = pd.DataFrame([row]*len(pairs)).astype(df.dtypes).reset_index(drop=True)
        many[a],many[b] = (pd.Series([p[i] for p in pairs]).astype(df[c].dtype) for i,c in ((0, a), (1, b)))
        if predict(net, domain.encode(many).x.float()).softmax(1)[:, target].max() >= tau: return True
    return False


@pytest.mark.parametrize('name', sorted(LABEL))
def test_every_row_is_found_where_two_edits_suffice(name):
    df,y = some_rows(name)
    domain = tabular(df)
    net,tau = network(domain.encode(df).x, y), .8
    cfs = GradualCF(net, domain, 'sparse', tau=tau, sigma=0).fit(df).explain(df.iloc[:200], max_changes=2)
    lost = np.flatnonzero(~cfs.valid).tolist()
    changed = (df.iloc[:200].astype(object).to_numpy() != cfs.raw.astype(object).to_numpy()).sum(1)
    assert changed.max() <= 2 and cfs.valid.mean() > .5
    for i in lost[:2]: assert not flips(df, df.iloc[i], net, domain, cfs.target[i].item(), tau + .005)
    free = GradualCF(net, domain, 'sparse', tau=tau, sigma=0).fit(df).explain(df.iloc[:200])
    assert free.valid[cfs.valid].all()          # more room never loses a row
