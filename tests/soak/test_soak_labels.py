"""Labels of all kinds, in any order and any form: what was asked for is what the model says of the answer, in every file and letter too."""
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from hypothesis import given, strategies as st
from test_soak_tables import QUICK

from gradual_cf.all import Counterfactuals, GradualCF, check_letter, letter, tabular
from gradual_cf.scale.batch import as_batches

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(0, 1, (120, 2)).round(2), columns=['a', 'b'])

KINDS = [st.integers(-9, 9), st.integers(-2**40, 2**40), st.floats(-9, 9, width=32), st.text(min_size=1, max_size=6), st.sampled_from([False, True]),
         st.sampled_from(['a b', '%20', '1', '01', '<b>', '..', 'target=1', '\x1b', 'é', '$x$', '=1+1', 'True', 'nan'])]
MADE = st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, min_size=2, max_size=4, unique_by=str))
FORMS = dict(list=list, array=np.array, series=lambda t: pd.Series(t, index=range(7, 7 + len(t))), objects=lambda t: np.array(t, object),
             tensor=lambda t: torch.tensor(t, dtype=torch.float64 if isinstance(t[0], float) else None))


class Sides:
    "A class for each side that a row lies on; its classes are called as somebody wants."
    feature_names_in_ = list(X)

    def __init__(self, labels, seed):
        self.classes_ = np.array(labels, dtype=None if isinstance(labels[0], (str, float)) else object)
        self.weights = np.random.default_rng(seed).normal(0, 4, (2, len(labels)))

    def predict_proba(self, df):
        z = df.to_numpy(float) @ self.weights
        p = np.exp(z - z.max(1, keepdims=True))
        return p/p.sum(1, keepdims=True)

    def predict(self, df): return [self.classes_.tolist()[i] for i in self.predict_proba(df).argmax(1)]


@QUICK
@given(labels=MADE, form=st.sampled_from(list(FORMS)), seed=st.integers(0, 999), data=st.data())
def test_what_was_asked_for_is_what_the_model_says(labels, form, seed, data):
    model = Sides(labels, seed)
    there = set(model.predict(X))
    cf = GradualCF(model, tabular(X), 'sparse').fit(X)
    wanted = data.draw(st.lists(st.sampled_from([v for v in labels if v in there]), min_size=3, max_size=3))
    target = FORMS['list' if isinstance(labels[0], str) and form == 'tensor' else form](wanted)
    a = cf.explain(X.iloc[:3], target)
    assert a.target.tolist() == wanted
    said,sure = model.predict(a.raw), a.valid & (a.prob > .5 + 1e-6)
    assert all(u == v for u,v,ok in zip(said, wanted, sure) if ok)
    assert all(str(v) in line for v,line in zip(wanted, [l for l in a.text().split('\n') if l.startswith('row ')])) or any('\n' in str(v) for v in wanted)
    unknown = data.draw(st.sampled_from(KINDS).flatmap(lambda kind: kind))
    if not any(unknown == v for v in labels):
        try: cf.explain(X.iloc[:3], unknown)
        except ValueError as e: assert 'must be one of the labels' in str(e)
        else: raise AssertionError(unknown)
    with tempfile.TemporaryDirectory() as d: again = Counterfactuals.load(a.save(Path(d)/'a.zip'), cf.domain)
    assert again.target.tolist() == wanted and again.classes == cf.classes and torch.equal(again.tensors.target, a.tensors.target)
    assert as_batches(cf, wanted[0])(X[:2])['cf_target'].tolist() == [wanted[0]]*2
    refused = a[[i for i in range(3) if a.before[i] < .5 and model.predict(X.iloc[[i]])[0] != wanted[i]]]
    if len(refused): assert (check_letter(letter(refused, date='1 May'), cf).flips == refused.valid).all()
