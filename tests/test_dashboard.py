"""A tab of explainerdashboard: its layout, its callback, and what it says where there is no answer."""
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from made import linear

from gradual_cf.all import GradualCF, tabular
from gradual_cf.use.explorer import dashboard_tab

EVIL = '<script>alert(1)</script>'


@pytest.fixture(scope='module')
def evil():
    "A table with evil names and levels under an index of numbers, and its explainer."
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'age': rng.integers(18, 80, 60), '<b>income</b>': rng.gamma(6, 400, 60).round(), 'job': rng.choice([EVIL, 'none'], 60)},
                      index=range(100, 160))
    return df, linear(tabular(df), df, [1, 4/3, 5/3, 2], classes=(f'no {EVIL}', 'yes'))


class Sum(torch.nn.Module):
    "A model of a number."
    kind = 'number'
    def forward(self, x): return 10*x.sum(1, keepdim=True)


class Part:
    "Stands in for a component of dash: what it was made of."
    def __init__(self, children=None, value=None, **told): self.children, self.value, self.told = children, value, told

    def find(self, start):
        "The part whose id starts so, here or below."
        if str(self.told.get('id', '')).startswith(start): return self
        below = [c.find(start) for c in self.children if isinstance(c, Part)] if isinstance(self.children, list) else []
        return next(filter(None, below), None)


class Component:
    "Stands in for `ExplainerComponent`."
    def __init__(self, explainer, title=None, name=None): # the dashboard keeps all arguments of the class as attributes
        init = sys._getframe(1)
        for arg in init.f_code.co_varnames[1:init.f_code.co_argcount]: setattr(self, arg, init.f_locals[arg])
        self.name = name or 'one'

    def get_state_args(self, told=None):
        ids = {k: (start + self.name, prop) for k, (start, prop) in self._state_props.items()}
        return {k: (told or {}).get(v, getattr(self, k)) for k, v in ids.items()}


class Selector(Component):
    "Stands in for `IndexSelector`."
    def __init__(self, explainer, name=None, index=None): super().__init__(explainer, name=name)
    def layout(self): return Part(id=self.name, value=self.index)


@pytest.fixture
def board(monkeypatch):
    "Stand-ins for explainerdashboard and dash."
    made = dict(Input=lambda *at: ('in', *at), Output=lambda *at: ('out', *at), dcc=SimpleNamespace(Dropdown=lambda options, value, **told: Part(None, value, options=options, **told)),
                html=SimpleNamespace(Div=Part, Label=Part, Iframe=Part))
    for name, told in {'dash': made, 'explainerdashboard': {}, 'explainerdashboard.custom': dict(ExplainerComponent=Component, IndexSelector=Selector),
                       'explainerdashboard.to_html': dict(add_header=lambda text: f'<html>{text}</html>')}.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**told))


def known(df): # As the dashboard's explainer gives a row: by text, or by position
    return SimpleNamespace(get_index_list=lambda: df.index.astype(str), get_X_row=lambda index: df.iloc[[index if isinstance(index, int) else list(df.index.astype(str)).index(index)]])


def test_a_tab_shows_the_answer_of_the_row_that_is_chosen(board, evil):
    df, cf = evil
    refused = df[(cf.logits(df, cf.encode(df).x).argmax(1) == 0).numpy()]
    tab, calls = dashboard_tab(cf)(known(df)), []
    tab.component_callbacks(SimpleNamespace(callback=lambda *at: lambda f: calls.append((at, f))))
    (at, page), = calls
    assert at == (('out', 'ways-page-one', 'srcDoc'), ('in', 'ways-index-one', 'value'), ('in', 'ways-goal-one', 'value'))
    where = tab.layout()
    assert tab.index == where.find('ways-index-one').value == '100'
    assert where.find('ways-page').told['sandbox'] == '' and where.find('ways-index-one') and where.find('ways-goal').value == 1
    assert [o['label'] for o in where.find('ways-goal').told['options']] == [f'no {EVIL}', 'yes']
    shown, answer = page(str(refused.index[0]), 1), cf.explain(refused.iloc[:1], 'yes')
    assert 'probability' in shown and 'Wanted: yes' in shown and 'Settings: all as they are by default.' in shown
    assert answer._repr_html_() in shown and f'row {refused.index[0]}:' in shown and 'The model says no &lt;script' in shown and '<script' not in shown and '<b>income' not in shown
    assert 'Wanted: no &lt;script&gt;' in page(str(refused.index[0]), 0)
    assert 'Choose a row' in page(None, 1) and 'Choose a row' in page('', 1) and 'Choose a row' in page('101', None)
    assert 'There is no answer' in page('no such row', 1)
    stored = dashboard_tab(cf)(known(df), index=str(refused.index[0]))
    assert stored.to_html(add_header=False).startswith('<iframe sandbox=""') and '<script' not in stored.to_html()
    assert 'Choose a row' in stored.to_html({('ways-index-one', 'value'): None}) and stored.to_html().startswith('<html>')


def test_rows_of_the_explainer_take_the_place_of_encoded_ones(board, evil):
    df, cf = evil
    encoded = known(pd.DataFrame(np.zeros((60, 4)), index=df.index))
    assert 'There is no answer' in dashboard_tab(cf)(encoded).page('107', 1)
    tab = dashboard_tab(cf, 'yes', rows=df.iloc[::-1])(encoded)
    assert tab.page('107', 1) == dashboard_tab(cf)(known(df)).page('107', 1) == tab.page(107, 1)
    assert 'rows must have the row' in tab.page('7', 1)
    with pytest.raises(ValueError, match="every name is there once, got \\['107'\\]"): dashboard_tab(cf, rows=df.set_index(df.index.where(df.index != 108, 107)))
    with pytest.raises(ValueError, match='rows must be a frame, got list'): dashboard_tab(cf, rows=[1])
    with pytest.raises(ValueError, match='target'): dashboard_tab(cf, 'perhaps')


def test_a_model_of_numbers_is_asked_for_its_interval(board, evil):
    df, _ = evil
    cf = GradualCF(Sum(), tabular(df), 'sparse').fit(df)
    tab = dashboard_tab(cf, (None, 12))(known(df))
    assert [o['label'] for o in tab.layout().find('ways-goal').told['options']] == ['at most 12']
    page = tab.page('100', 0)
    assert re.search(r'<h1>The model says \d+(\.\d+)?</h1>\s*<section>Wanted: at most 12\.', page)


def test_an_error_of_the_model_is_said_and_not_the_answer_of_the_row_before(board, evil):
    df, cf = evil
    tab = dashboard_tab(cf)(SimpleNamespace(get_index_list=list, get_X_row=lambda index: 1/0))
    assert 'ZeroDivisionError: division by zero' in tab.page('100', 1)


@pytest.mark.filterwarnings('default') # Theirs; dash's own plugin of pytest warns at start, so: pytest -p no:dash
def test_explainerdashboard_takes_the_tab(evil):
    boards = pytest.importorskip('explainerdashboard')
    from sklearn.linear_model import LogisticRegression
    df, cf = evil
    X = cf.encode(df).x.numpy()
    label = cf.logits(df, cf.encode(df).x).argmax(1).numpy()
    X = pd.DataFrame(X, index=df.index).rename(columns='c{}'.format)
    shown = boards.ClassifierExplainer(LogisticRegression().fit(X, label), X, pd.Series(label, index=df.index))
    board = boards.ExplainerDashboard(shown, [dashboard_tab(cf, 'yes', rows=df)], title='Loans')
    assert board.explainer_layout.layout() is not None
    name = next(k for k in board.app.callback_map if k.startswith('ways-page'))
    told = board.app.server.test_client().post('/_dash-update-component', json=dict(
        output=name, outputs=dict(id=name.split('.')[0], property='srcDoc'), changedPropIds=[],
        inputs=[dict(i, value=v) for i, v in zip(board.app.callback_map[name]['inputs'], ['107', 1])]))
    assert told.status_code == 200
    page = told.get_json()['response'][name.split('.')[0]]['srcDoc']
    assert 'Wanted: yes' in page and page == dashboard_tab(cf, rows=df)(shown).page('107', 1)
    tab = dashboard_tab(cf, rows=df)(shown, index='107')
    assert '<iframe' in tab.to_html()
