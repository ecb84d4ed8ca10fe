"""Ablations are data: every line runs where it says it can, and differs from its base in what it says."""
from dataclasses import replace

import pytest
from written import load_task

from gradual_cf.gradual import PAPER, preset
from gradual_cf.paper.reproduce import _ABLATIONS, ablate


def test_lines_are_unique_and_cover_the_choices():
    assert len({(a.axis, a.value) for a in _ABLATIONS}) == len(_ABLATIONS)
    assert {a.axis for a in _ABLATIONS} == {'loss', 'reading', 'block', 'lam', 'n_ref', 'start', 'ranking'}
    for axis in {a.axis for a in _ABLATIONS}: assert sum(a.axis == axis for a in _ABLATIONS) >= 2


def test_the_base_line_is_the_base():
    df = ablate('breast_cancer', axes=['reading', 'n_ref'], base=replace(PAPER, sigma=10), rows=8).set_index('value')
    same = [c for c in df if c not in ('axis', 'seconds_per_row')]
    assert df.loc['mean |z − μ|', same].equals(df.loc['100', same])      # both are the paper's setting
    assert df.loc['‖z − μ‖₂', 'l2'] != df.loc['100', 'l2']


@pytest.mark.night
def test_block_sizes_change_the_domain():
    df = ablate('digits', axes='block', base=replace(preset(load_task('digits').domain), sigma=0), rows=3).set_index('value')
    assert list(df.index) == ['1×1', '2×2', '4×4', '7×7'] and df.loc['1×1', 'blocks'] > df.loc['7×7', 'blocks']
