"""Answers among real rows: the preset, what answers say of themselves, other models."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import toy
from sklearn.datasets import load_wine
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
import written

from gradual_cf.all import (PLAUSIBLE, SPARSE, Counterfactuals, GradualCF, bootstrap, check_evidence, confirm, lacks, letter, plausible as dial, predict, tabular)
from gradual_cf.search import plausible
from gradual_cf.search.plausible import _among_their_own, _isolation_of, counted_pairs, crowd, usual_support


def people(n=700, seed=0):
    "Income and debt hang together, gain is mostly zero, the home is a category."
    rng = np.random.default_rng(seed)
    good = rng.random(n) < .5
    income = rng.gamma(6, 8, n) + 4
    df = pd.DataFrame({'income': income.round(1), 'debt': (income*np.where(good, .35, 1.05) + rng.normal(0, 4, n)).clip(0).round(1),
                       'gain': np.where(rng.random(n) < .85, 0, rng.integers(1, 6, n)*100), 'age': rng.integers(18, 80, n),
                       'home': rng.choice(['own', 'rent', 'free'], n)})
    return df, good.astype(int)


def with_holes():
    "Every seventh gain is missing."
    X, y = people()
    X.loc[X.index % 7 == 0, 'gain'] = np.nan
    return X, y


def wine(): return load_wine(return_X_y=True, as_frame=True)


def number_of_wine():
    "Wines, and an explainer of a number that is linear in two of their columns."
    X, _ = wine()
    return X, GradualCF(LinearRegression().fit(X, X.alcohol + X.proline/1000), tabular(X), PLAUSIBLE).fit(X)


@pytest.fixture(scope='module')
def case():
    X, y = people()
    domain, net = tabular(X, immutable=['home'], increase_only=['age']), written.read('incomes')
    cf = GradualCF(net, domain, PLAUSIBLE).fit(X)
    refused = X[cf.z_train.argmax(1).numpy() == 0].iloc[:40]
    return X, y, domain, net, cf, refused


# How answers stand
def test_typical_is_a_percentile(case):
    X, _, _, _, cf, _ = case
    fresh, _ = people(600, seed=9)
    x = cf.encode(fresh).x
    own = predict(cf.model, x).argmax(1)
    v = cf.typical(x, own)
    assert .4 < v.mean() < .6 and v.min() < .1 and v.max() > .9
    assert np.array_equal(cf.typical(x[:5], own[:5]), v[:5])


@pytest.mark.night
def test_standing_text_repr_rows_and_files(case, tmp_path):
    *_, cf, rows = case
    cfs = confirm(cf.explain(rows, 1), [cf.model, cf.model])
    assert 'typical' in repr(cfs) and 'confirmed 100%' in repr(cfs)
    table = cfs.quality()
    assert list(table)[:9] == ['row', 'before', 'after', 'valid', 'changes', 'distance', 'nearest_row', 'typical', 'confirmed'] and len(table) == 40
    assert 'looks like real cases' in cfs.text() and 'confirmed</abbr> 100%' in cfs._repr_html_()
    assert np.array_equal(cfs[3:5].typical, cfs.typical[3:5]) and np.array_equal(cfs[[4]].confirmed, cfs.confirmed[4:5])
    for kept in (cfs, replace(cfs, confirmed=None)):
        again = Counterfactuals.load(kept.save(tmp_path/'a.zip'), cf.domain)
        assert np.array_equal(again.typical, kept.typical) and (again.confirmed is None) == (kept.confirmed is None)


def test_too_few_rows_say_nothing():
    assert crowd(torch.rand(19, 3)) is None
    X, y = people(60)
    X = X.drop(columns='home')
    cfs = GradualCF(LogisticRegression(max_iter=2000).fit(X, y), tabular(X), 'sparse').fit(X).explain(X.iloc[:4])
    assert np.isnan(cfs.typical).all() and 'typical' not in repr(cfs) and 'looks like' not in cfs.text()


@pytest.mark.night
@pytest.mark.parametrize('many', [0, 1, 2, 5, 12])
def test_a_target_with_few_rows_is_answered_and_what_is_left_out_is_said(case, many):
    X, _, domain, net, *_ = case
    some = pd.concat([X[predict(net, domain.encode(X).x.float()).argmax(1).numpy() == t].iloc[:n] for t, n in ((0, 60), (1, many))])
    cf = GradualCF(net, domain, PLAUSIBLE).fit(some)
    with pytest.warns(UserWarning, match=r'plausibility is left out for the target 1: .* 20 training rows') as said: cfs = cf.explain(some.iloc[:6], 1)
    assert len(said) == 1 and cfs.valid.all() and (cfs.changed.sum(1) <= 4).all() and np.isnan(cfs.typical).all()
    assert cf.explain(some.iloc[:6], 1).xp.equal(cfs.xp)   # said once
    assert 'plausible' not in repr(cfs) and domain.legal(cfs.data, cfs.raw).all()
    if many: assert cf.explain(pd.concat([some.iloc[:2], some.iloc[-1:]]), [1, 1, 0]).valid.all()   # targets with and without company


@pytest.mark.parametrize('many', [0, 1, 5])
def test_a_proof_claims_no_company_that_was_left_out(many):
    X, y = people(400)
    X = X.drop(columns='home')
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    said = model.predict(X)
    rows = pd.concat([X[said == 0], X[said == 1].iloc[:many]])
    cf = GradualCF(model, tabular(X), PLAUSIBLE).fit(rows)
    with pytest.warns(UserWarning, match='plausibility is left out'): cfs = cf.explain(rows.iloc[:8], 1, proof="columns")
    assert cfs.valid.all() and cfs.among == 'answers well within the decision' and set(cfs.proof) == {'optimal'}
    texts = letter(cfs)
    assert all('plausible' not in text for text in texts) and check_evidence(texts, cf, cfs.data).flips.all()


# Other models
def test_bootstrap_draws_rows_with_their_labels():
    X, y = pd.DataFrame({'a': range(50)}), np.arange(50)*2
    made = bootstrap(lambda x, t: (x, t), X, y, k=3, seed=1)
    assert len(made) == 3 and all((x.a*2 == t).all() and len(x) == 50 and x.a.nunique() < 45 for x, t in made)
    assert made[0][0].a.tolist() != made[1][0].a.tolist()
    assert bootstrap(lambda x, t: x.sum().item(), torch.arange(50), torch.arange(50), 2) == bootstrap(lambda x, t: x.sum().item(), torch.arange(50), torch.arange(50), 2)


def test_a_list_of_models_is_worth_its_worst(case):
    X, _, domain, net, _, rows = case
    others = [written.read('incomes_1'), written.read('incomes_2')]
    for settings in (SPARSE, PLAUSIBLE):
        cfs = GradualCF([net, *others], domain, settings).fit(X).explain(rows)
        probability = torch.stack([predict(m, cfs.xp).softmax(1).gather(1, cfs.tensors.target[:, None])[:, 0] for m in (net, *others)])
        assert torch.allclose(cfs.tensors.prob, probability.amin(0), atol=1e-4)
        assert cfs.valid.mean() > .9 and (confirm(cfs[cfs.valid], others).confirmed == 1).all()


# Judges


@pytest.mark.night
def test_several_targets_and_intervals_have_rows_of_their_own_and_say_what_they_lack():
    X, y = wine()
    domain = tabular(X)
    cf = GradualCF(written.read('wine'), domain, PLAUSIBLE).fit(X)
    rows, target = X.iloc[::24], (y.iloc[::24].to_numpy() + 1) % 3
    cfs = cf.explain(rows, target)
    assert cfs.valid.all() and domain.legal(cfs.data, cfs.raw).all()
    told = repr(cf.company).splitlines()
    assert told[0] == 'answers are compared with' and len(told) == 1 + len(set(target))
    X, cf = number_of_wine()
    ends = [(13 + i/100, 14.5) for i in range(6)]
    for _ in range(2): assert cf.explain(X.iloc[:6], ends).valid.all()
    assert len(cf.company.circles) == 3 and 'target [13.05, 14.5]' in repr(cf.company)  # those of rows that had to change
    cfs = cf.explain(X.iloc[:4], (14, None))
    told = lacks(cf, cfs)
    assert cfs.valid.all() and not np.isnan(cfs.typical).any()
    assert (told.probability <= 1e-5).all() and told.lead.isna().all() and told.lonely.notna().all()


# Wide tables: what is asked is asked in parts
def test_the_dial_goes_from_sparse_to_plausible(case):
    X, _, domain, net, _, rows = case
    sparse = GradualCF(net, domain, 'sparse').fit(X)
    plain, none, target = sparse.explain(rows, 1), GradualCF(net, domain, dial(0)).fit(X).explain(rows, 1), sparse.aim(torch.ones(2, dtype=torch.long))
    assert torch.equal(plain.xp, none.xp) and dial(0) == SPARSE and dial(1) == dial() == PLAUSIBLE
    assert sparse.company is None and target.company is None and target.lead is None and SPARSE.plausibility is None


# Pairs
def tied_columns(n=1200):
    "Two columns that follow each other, one that does not, and a category that goes with the first; a network by hand."
    rng = np.random.default_rng(0)
    size = rng.uniform(0, 10, n)
    df = pd.DataFrame(dict(size=size.round(2), area=(size*10 + rng.normal(size=n)).round(1), other=rng.normal(size=n).round(2)))
    df['kind'] = pd.Categorical(np.where(size > 6, 'large', np.where(size < 3, 'small', rng.choice(['mid', 'odd'], n))))
    return df, tabular(df), toy.Score([6., 6., .6, 0., 0., 0., 0.], -7.)


def together(df, raw):
    "Whether each pair of values stands in some row of a table: numbers in tenths."
    cuts = {c: df[c].quantile(np.arange(1, 10)/10) for c in df if df[c].dtype != 'category'}
    codes = lambda rows: pd.DataFrame({c: np.searchsorted(cuts[c], rows[c]) if c in cuts else rows[c].astype(str) for c in rows})
    seen, new, out = codes(df), codes(raw), np.ones(len(raw), bool)
    for a in df:
        for b in df.columns.drop(a): out &= pd.MultiIndex.from_frame(new[[a, b]]).isin(pd.MultiIndex.from_frame(seen[[a, b]]))
    return out


def test_support_is_what_counting_says():
    df, domain, _ = tied_columns(300)
    x = domain.encode(df).x
    entries, numbers = [torch.tensor(v) for v in ([0], [1], [2], [3, 4, 5, 6])], [True, True, True, False]
    pairs = counted_pairs(x, entries, numbers)
    b = pairs.bins(x, entries)
    for i in (0, 7, 99):
        both = (b == b[i]).double()
        assert pairs.support(b[[i]], b[[i]])[0].tolist() == [min((both[:, g]*both[:, h]).sum() for h in range(4) if h != g) for g in range(4)]
    assert (pairs.best(b) >= pairs.support(b, b)).all() and (usual_support(pairs, x, entries, .9) <= usual_support(pairs, x, entries, .5)).all()
    assert pairs.bins(x[:0], entries).shape == (0, 4) and pairs.support(b[:0], b[:0]).shape == (0, 4)


# What is lacking is said
def test_what_an_answer_lacks(case, tmp_path):
    X, _, domain, net, cf, rows = case
    strict = GradualCF(net, domain, dial(2)).fit(X)
    for explainer in (cf, strict):
        cfs = explainer.explain(rows, 1, immutable=['debt'])
        said = lacks(explainer, cfs)
        assert list(said) == ['probability', 'lead', 'lonely', 'strange', 'pairs'] and len(said) == len(rows) and (said.fillna(0) >= 0).all().all()
        assert ((said.fillna(0) <= 1e-5).all(axis=1) == explainer.satisfies_settings(cfs.enc, cfs.xp, cfs.tensors.target).numpy()).all()
    assert said.pairs.notna().all() and lacks(cf, cfs).pairs.isna().all()
    again = Counterfactuals.load(cfs.save(tmp_path/'a.zip'), domain)
    pd.testing.assert_frame_equal(lacks(strict, again), lacks(strict, replace(cfs, enc=None)))
    plain = GradualCF(net, domain, 'sparse').fit(X)
    told = lacks(plain, plain.explain(rows[:3], 1))
    assert (told.probability == 0).all() and told.drop(columns='probability').isna().all().all()
    assert len(lacks(cf, cfs[:0])) == 0


# Which rows set the bars
def voted(x, own, least):
    "Plainly: which rows of a target have that share of it among their 20 nearest rows."
    far = torch.cdist(x, x)
    others = [[j for j in far[i].argsort(stable=True).tolist() if j != i][:20] for i in range(len(x))]
    return torch.tensor([bool(own[i]) and own[o].double().mean().item() >= least for i, o in enumerate(others)])


@pytest.mark.parametrize('share, least', [(.05, 2*.05/1.05), (.5, .15), (1., .15)])
def test_rows_of_a_target_are_judged_by_their_neighbours(share, least, monkeypatch):
    gen = torch.Generator().manual_seed(1)
    x = torch.randn(240, 3, generator=gen)
    own = torch.zeros(240, dtype=torch.bool)
    own[:int(240*share)] = True
    x[:int(120*share), 0] += 6 # half of them live apart
    kept = _among_their_own(x, own)
    assert kept.equal(voted(x, own, least)) and kept[:int(120*share)].all() and not kept[~own].any()
    monkeypatch.setattr(plausible, '_NUMBERS', 1000)
    assert _among_their_own(x, own).equal(kept) # a few rows at a time


def scattered(n=1500):
    "A rare target: a cluster, and as many rows in the midst of the others, which the model knows by heart."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list('abcd')).round(3)
    X.loc[:49, ['a', 'b']] += 4
    return X, (X.index < 100).astype(int)


def test_what_is_learnt_by_heart_does_not_set_the_bars():
    X, y = scattered()
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X), PLAUSIBLE).fit(X)
    cfs = cf.explain(X.iloc[100:110], 1)
    circle = cf.company.circles[0]
    near = (circle.x - cf.encode(X.iloc[:50]).x.mean(0)).abs()[:, :2].amax(1) < .5*(cf.x_train.amax(0) - cf.x_train.amin(0))[:2].max()
    assert cfs.valid.all() and (cfs.raw[['a', 'b']].mean(axis=1) > 2).all() and near.double().mean() > .9
    assert 'those among others of their kind' in repr(cf.company)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('many', [2, 100, 1000])
def test_isolation_scores_are_those_of_scikit_learn(many, dtype):
    rows, others = torch.randn(2, many, 5, generator=torch.Generator().manual_seed(many)).round(decimals=2).to(dtype)
    forest = IsolationForest(n_estimators=25, max_samples=min(many, 256), random_state=0).fit(rows.numpy())
    for x in (rows, others): assert np.allclose(_isolation_of(rows)(x), -forest.score_samples(x.numpy()), atol=1e-6)
