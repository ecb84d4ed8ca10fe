"""Models of frames, as they are: what they are shown is a table like the one they know, and what is said of an answer is what they say."""
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st
from judge import faults, is_missing
from invented import NAMES, asked, domain_of, tables
from test_soak_tables import QUICK, answers, check_same

from gradual_cf.all import PLAUSIBLE, GradualCF
from gradual_cf.models.fitted import predictor

pytestmark = pytest.mark.filterwarnings('ignore:plausibility is left out')  # of few rows, as tests/test_unread.py says

def level(v): return (zlib.crc32(repr(v).encode()) % 97)/97


def position(kind, s):
    "Each cell as a number between 0 and 1, by its rank among the training cells or by its name."
    if kind in NAMES or kind == 'ordered': return lambda cells: np.array([0. if is_missing(v) else level(v) for v in cells])
    known = np.sort(pd.to_numeric(pd.Series(number(s)), errors='coerce').dropna().to_numpy(float))
    return lambda cells: np.searchsorted(known, np.nan_to_num(number(cells), nan=known[0]))/len(known)


def number(cells):
    "Cells of numbers or dates as numbers, NaN where missing."
    s = pd.Series(list(cells), dtype=object)
    return np.array([np.nan if is_missing(v) else stamp(v) for v in s], float)


def stamp(v):
    try: return float(v)
    except (TypeError, ValueError): return pd.Timestamp(v).tz_localize(None).timestamp()/86400


def rule(made, k):
    "A model of frames that steps at the training values, and refuses a frame of another form."
    df,parts = made.train, {c: position(kind, made.train[c]) for c,kind in made.kinds.items()}
    weights = np.random.default_rng(made.seed).normal(0, 3, (len(parts), k))
    def ask(frame):
        assert list(frame.columns) == list(df.columns)
        assert not (other := {c: (frame[c].dtype, df[c].dtype) for c in df if frame[c].dtype != df[c].dtype}), other
        z = np.stack([part(frame[c].tolist()) for c,part in parts.items()], 1) @ weights
        p = np.exp(z - z.max(1, keepdims=True))
        return p/p.sum(1, keepdims=True)
    return ask


@QUICK
@given(made=tables(), k=st.sampled_from([2, 3]), how=st.sampled_from([None, None, PLAUSIBLE]))
def test_what_is_said_of_an_answer_is_what_the_model_says(made, k, how):
    domain,ask = domain_of(made), rule(made, k)
    p = ask(made.rows)
    target = (p.argmax(1) + 1) % k
    have = np.bincount(ask(made.train).argmax(1), minlength=k)
    assume(have.min())              # a class that nobody has is refused
    cf = GradualCF(predictor(ask, domain), domain, how).fit(made.train)
    cfs = answers(cf, made, target)
    assert not (found := faults(made, made.rows, cfs.raw)), found
    said = ask(cfs.raw)[np.arange(len(p)), target]
    np.testing.assert_allclose(said, cfs.prob, atol=1e-6)
    sure = np.abs(said - cf.settings.tau) > 1e-6
    assert ((said >= cf.settings.tau) == cfs.valid)[sure].all()
    check_same(cf.explain(made.rows.iloc[[4]], target[[4]], **asked(made)).raw, cfs.raw.iloc[[4]])
