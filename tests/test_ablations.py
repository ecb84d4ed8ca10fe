"""Ablations are data: every line runs where it says it can, and differs from its base in what it says."""
from dataclasses import replace

import pytest
from written import load_task

from gradual_cf.gradual import PAPER, GradualCF, preset
from gradual_cf.paper.reproduce import _ABLATIONS, _lines_of_choices, _some_rows, ablate


@pytest.mark.parametrize('name', ['breast_cancer', 'digits', 'toy_reviews'])
def test_every_line_makes_an_explainer_of_its_kind(name):
    task = load_task(name)
    kind = task.domain.kind
    assert {'breast_cancer': 'table', 'digits': 'image', 'toy_reviews': 'text'}[name] == kind
    for a in _lines_of_choices(None, kind):
        for base in (PAPER, 'sparse'): GradualCF(task.model, task.domain, base, **a.changes)


def test_lines_are_unique_and_cover_the_choices():
    assert len({(a.axis, a.value) for a in _ABLATIONS}) == len(_ABLATIONS)
    assert {a.axis for a in _ABLATIONS} == {'loss', 'reading', 'block', 'lam', 'n_ref', 'start', 'ranking'}
    for axis in {a.axis for a in _ABLATIONS}: assert sum(a.axis == axis for a in _ABLATIONS) >= 2


def test_rows_and_targets_are_the_same_for_every_line():
    task = load_task('digits')
    (a, s), (b, t) = _some_rows(task, 5, 3), _some_rows(task, 5, 3)
    assert (a == b).all() and (s == t).all()
    z = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    assert (task.model(z.encode(a).x).argmax(1).numpy() != s).all()


def test_the_base_line_is_the_base():
    df = ablate('breast_cancer', ['reading', 'n_ref'], base=replace(PAPER, sigma=10), rows=8).set_index('value')
    same = [c for c in df if c not in ('axis', 'seconds_per_row')]
    assert df.loc['mean |z − μ|', same].equals(df.loc['100', same])      # both are the paper's setting
    assert df.loc['‖z − μ‖₂', 'l2'] != df.loc['100', 'l2']


def test_block_sizes_change_the_domain():
    df = ablate('digits', 'block', base=replace(preset(load_task('digits').domain), sigma=0), rows=3).set_index('value')
    assert list(df.index) == ['1×1', '2×2', '4×4', '7×7'] and df.loc['1×1', 'blocks'] > df.loc['7×7', 'blocks']
