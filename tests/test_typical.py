"""Answers among real rows: the preset, what answers say of themselves, other models."""
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import toy
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
import written

from gradual_cf.all import (PLAUSIBLE, SPARSE, Counterfactuals, GradualCF, Plausibility, bootstrap, check_letter, confirm, improve, lacks,
    letter, measures, plausible as dial, predict, strengths, tabular)
from gradual_cf.core import changed_groups
from gradual_cf.search import masking, plausible, robust
from gradual_cf.search.pairs import counted_pairs, usual_support
from gradual_cf.search.plausible import _among_their_own, _circle, _forest, _in_halves, _shrunk_bar, crowd, held_back


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


def trees():
    "People, a model that is read exactly, and its explainer."
    X, y = people(400)
    X['home'] = X.home.astype('category')
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    return X, model, GradualCF(model, tabular(X), PLAUSIBLE).fit(X)


@pytest.fixture(scope='module')
def case():
    X, y = people()
    domain, net = tabular(X, immutable=['home'], increase_only=['age']), written.read('incomes')
    cf = GradualCF(net, domain, PLAUSIBLE).fit(X)
    refused = X[cf.z_train.argmax(1).numpy() == 0].iloc[:40]
    return X, y, domain, net, cf, refused


def test_preset_is_valid_legal_and_more_typical(case):
    X, _, domain, net, cf, rows = case
    near, plain = cf.explain(rows, 1), GradualCF(net, domain, 'sparse').fit(X).explain(rows, 1)
    assert near.valid.all() and domain.legal(near.data, near.raw).all()
    assert near.typical.mean() > plain.typical.mean() + .05 and near.typical.min() > plain.typical.min()
    assert (near.raw.home == rows.home).all() and (near.raw.age >= rows.age).all() and set(near.raw.gain) <= set(X.gain)  # whose values are few


def test_validity_first(case):
    "Where nothing in company can be reached, the ordinary answer comes."
    X, _, domain, net, cf, rows = case
    hard = GradualCF(net, domain, replace(PLAUSIBLE, plausibility=Plausibility(density=.01, isolation=.01), logit_margin=1.)).fit(X)
    few = dict(immutable=['income', 'gain', 'age'], max_changes=1)
    plain = GradualCF(net, domain, 'sparse').fit(X).explain(rows, 1, **few)
    cfs = hard.explain(rows, 1, **few)
    assert (cfs.valid >= plain.valid).all()
    assert (changed_groups(cfs.x, cfs.xp, hard.groups(cfs.x)).sum(1) <= 1).all()


@pytest.mark.parametrize('double', [False, True])
def test_missing_cells_and_precisions(double):
    X, _ = with_holes()
    net = written.read('incomes_missing')
    cf = GradualCF(net.double() if double else net, tabular(X), PLAUSIBLE).fit(X)
    rows = X[cf.z_train.argmax(1).numpy() == 0].iloc[:20]
    cfs = cf.explain(rows, 1)
    assert cfs.valid.all() and cfs.xp.dtype == (torch.float64 if double else torch.float32)
    assert (cfs.raw.gain.isna() == rows.gain.isna()).all()


def test_the_forest_of_a_target_is_read_once(monkeypatch):
    (X, model, cf), read, old = trees(), [], robust._forest_splits
    monkeypatch.setattr(robust, '_forest_splits', lambda forest, grid: read.append(forest) or old(forest, grid))
    rows = X[model.predict(X) == 0].iloc[:4]
    one_by_one = [cf.explain(rows.iloc[[i]], 1, optimal="columns", seconds=60.) for i in range(4)]
    assert len(read) == 1
    together = GradualCF(model, tabular(X), PLAUSIBLE).fit(X).explain(rows, 1, optimal="columns", seconds=60.)
    assert len(read) == 2   # another explainer has a forest of its own
    for i, one in enumerate(one_by_one): assert one.raw.equals(together.raw.iloc[[i]]) and one.proof[0] == together.proof[i]


def test_improve_keeps_company(case):
    *_, cf, rows = case
    cfs = cf.explain(rows, 1)
    less = improve(cf, cfs)
    keep = cfs.typical - less.typical
    assert less.valid.all() and keep.max() < .35
    assert changed_groups(less.x, less.xp, cf.groups(less.x)).sum() <= changed_groups(cfs.x, cfs.xp, cf.groups(cfs.x)).sum()


# How answers stand
def test_typical_is_a_percentile(case):
    X, _, _, _, cf, _ = case
    fresh, _ = people(600, seed=9)
    x = cf.encode(fresh).x
    own = predict(cf.model, x).argmax(1)
    v = cf.typical(x, own)
    assert .4 < v.mean() < .6 and v.min() < .1 and v.max() > .9
    assert np.array_equal(cf.typical(x[:5], own[:5]), v[:5])


def test_typical_says_what_plausible_holds(case):
    "One number: at least as usual as one real row in ten, and more so the more an intent asks."
    X, _, domain, net, *_ = case
    fresh, _ = people(600, seed=4)
    rows = fresh[(predict(net, domain.encode(fresh).x.float()).argmax(1) == 0).numpy()].head(30)
    of = {name: GradualCF(net, domain, name).fit(X).explain(rows, 1).typical for name in ('sparse', 'robust', 'plausible')}
    assert (of['plausible'] >= .1).mean() >= .95 and (of['plausible'] >= .1).mean() > (of['sparse'] >= .1).mean()
    assert of['sparse'].mean() < of['robust'].mean() < of['plausible'].mean()


def test_no_search_sees_the_rows_that_judge(case):
    *_, cf, _ = case
    cf.explain(case[-1].iloc[:3], 1)
    kept = cf.x_train[held_back(len(cf.x_train))]
    seen = torch.cat([c.x for c in cf.company.circles])
    shown = {tuple(r.tolist()) for r in seen}
    assert not any(tuple(r.tolist()) in shown for r in kept)


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
    with pytest.warns(UserWarning, match='plausibility is left out'): cfs = cf.explain(rows.iloc[:8], 1, optimal="columns")
    assert cfs.valid.all() and cfs.among == 'answers well within the decision' and set(cfs.proof) == {'optimal'}
    texts = letter(cfs)
    assert all('plausible' not in text for text in texts) and check_letter(texts, cf, cfs.data).flips.all()


# Other models
def test_bootstrap_draws_rows_with_their_labels():
    X, y = pd.DataFrame({'a': range(50)}), np.arange(50)*2
    made = bootstrap(lambda x, t: (x, t), X, y, k=3, seed=1)
    assert len(made) == 3 and all((x.a*2 == t).all() and len(x) == 50 and x.a.nunique() < 45 for x, t in made)
    assert made[0][0].a.tolist() != made[1][0].a.tolist()
    assert bootstrap(lambda x, t: x.sum().item(), torch.arange(50), torch.arange(50), 2) == bootstrap(lambda x, t: x.sum().item(), torch.arange(50), torch.arange(50), 2)


def test_confirm_asks_models_of_any_kind(case):
    X, y, domain, net, cf, rows = case
    numbers = X.drop(columns='home')
    model = LogisticRegression(max_iter=2000).fit(numbers, y)
    cfs = confirm(cf.explain(rows, 1), [net, model])
    want = (1 + model.predict(cfs.raw.drop(columns='home')))/2
    assert np.allclose(cfs.confirmed, want)


def test_a_list_of_models_is_worth_its_worst(case):
    X, _, domain, net, _, rows = case
    others = [written.read('incomes_1'), written.read('incomes_2')]
    for settings in (SPARSE, PLAUSIBLE):
        cfs = GradualCF([net, *others], domain, settings).fit(X).explain(rows)
        probability = torch.stack([predict(m, cfs.xp).softmax(1).gather(1, cfs.tensors.target[:, None])[:, 0] for m in (net, *others)])
        assert torch.allclose(cfs.tensors.prob, probability.amin(0), atol=1e-4)
        assert cfs.valid.mean() > .9 and (confirm(cfs[cfs.valid], others).confirmed == 1).all()


# Judges
def test_forest_agrees_with_scikit_learn():
    x = torch.randn(600, 8, generator=torch.Generator().manual_seed(1))*torch.tensor([1., 2, 1, 1, .5, 1, 3, 1])
    theirs = torch.from_numpy(-IsolationForest(n_estimators=100, random_state=0).fit(x.numpy()).score_samples(x.numpy()))
    ours = _forest(x)(x).double()
    assert torch.corrcoef(torch.stack([ours, theirs]))[0, 1] > .8 and (ours.mean() - theirs.mean()).abs() < .03


def test_half_of_the_bars_hold_for_the_other_half():
    x = torch.randn(800, 4, generator=torch.Generator().manual_seed(2))
    c = _circle(x, torch.ones(800, 4, dtype=torch.bool), .85, .9, values=[], atomic=[])
    fresh = torch.randn(800, 4, generator=torch.Generator().manual_seed(3))
    from gradual_cf.search.plausible import _loneliness_of, _nearest_rows
    lonely = _loneliness_of(c, _nearest_rows(c, fresh), fresh[:, None])[:, 0]
    assert ((lonely <= c.lonely).float().mean(0) - .85).abs().max() < .05
    assert ((c.forest(fresh) <= c.strange).float().mean() - .9).abs() < .05


def test_outliers_and_measures(case):
    X, _, domain, net, cf, rows = case
    fresh, _ = people(500, seed=4)
    cfs = cf.explain(rows, 1)
    table = measures(cf, cfs, eps=(), held=fresh).set_index('metric')['mean']
    plain = GradualCF(net, domain, 'sparse').fit(X)
    nearest = measures(plain, plain.explain(rows, 1), eps=(), held=fresh).set_index('metric')['mean']
    assert table['typical'] > nearest['typical'] and table['lof'] <= nearest['lof'] and table['isolation'] <= nearest['isolation']


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
    assert len(cf.company.circles) == 6 and 'target [13.05, 14.5]' in repr(cf.company)  # those of the last question
    cfs = cf.explain(X.iloc[:4], (14, None))
    told = lacks(cf, cfs)
    assert cfs.valid.all() and not np.isnan(cfs.typical).any()
    assert (told.probability <= 1e-5).all() and told.lead.isna().all() and told.lonely.notna().all()


def test_several_answers_in_company(case):
    X, _, domain, net, cf, rows = case
    some = rows.iloc[:6]
    many, plain = cf.explain_many(some, 1, k=3), GradualCF(net, domain, 'sparse').fit(X).explain_many(some, 1, k=3)
    assert many.answers.typical.min() > plain.answers.typical.min() and many.answers.typical.mean() > plain.answers.typical.mean()
    assert many.answers.valid.all() and len(many.answers) >= 6


# Wide tables: what is asked is asked in parts
def many_levels(levels=40, n=800):
    "A table with a category of many levels, and a network by hand that likes some of them."
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=rng.normal(size=n).round(2), b=rng.normal(size=n).round(2), city=pd.Categorical([f'city {i % levels}' for i in range(n)])))
    return df, tabular(df), toy.Score(torch.cat([torch.tensor([8., -6.]), torch.linspace(-3., 3., levels)]), -2.)


@pytest.mark.parametrize('settings', [SPARSE, PLAUSIBLE])
def test_parts_of_a_question_have_the_answers_of_the_whole(settings, monkeypatch):
    df, domain, net = many_levels()
    cf = GradualCF(net, domain, settings).fit(df)
    rows = df[(cf.z_train.argmax(1) == 0).numpy()].head(30)
    whole = cf.explain(rows, 1)
    held = []
    trials,tried = masking._trials, plausible._tried_in_groups
    def counted(t):
        held.append(t.numel())
        return t
    def block(*parts):
        t,owner = tried(*parts)
        return counted(t), owner
    monkeypatch.setattr(masking, '_trials', lambda *parts: counted(trials(*parts)))
    monkeypatch.setattr(plausible, '_tried_in_groups', block)
    for module in (masking, plausible): monkeypatch.setattr(module, '_NUMBERS', 4000)
    parts = cf.explain(rows, 1)
    assert torch.equal(parts.xp, whole.xp) and whole.valid.all()
    assert max(held) <= 4000 and len(held) > 10


def test_the_form_of_one_column_is_the_form_of_the_table():
    df, domain, _ = many_levels()
    df['when'] = pd.Series(pd.Categorical(['low', 'mid', 'high'][i % 3] for i in range(len(df))).as_ordered())
    domain = tabular(df, levels={'when': ['low', 'high']}, integer=['a'], scale='quantile')
    x = domain.encode(df.head(20)).x
    for entry in (0, 1, 42): # two numbers and an ordinal
        at, v = torch.tensor([entry]), torch.rand(20, 7, 1, dtype=x.dtype, generator=torch.Generator().manual_seed(entry))
        whole = domain.project(masking._trials(x, v, at).flatten(0, 1), x.repeat_interleave(7, 0)).view(20, 7, -1)[:, :, at]
        assert torch.equal(domain.project.alone(at.expand(20, 7), x)(v[..., 0])[..., None], whole)


def test_the_dial_goes_from_sparse_to_plausible(case):
    X, _, domain, net, _, rows = case
    sparse = GradualCF(net, domain, 'sparse').fit(X)
    plain, none, target = sparse.explain(rows, 1), GradualCF(net, domain, dial(0)).fit(X).explain(rows, 1), sparse.aim(torch.ones(2, dtype=torch.long))
    assert torch.equal(plain.xp, none.xp) and dial(0) == SPARSE and dial(1) == dial() == PLAUSIBLE
    assert sparse.company is None and target.company is None and target.lead is None and SPARSE.plausibility is None


def test_every_demand_grows_with_strength(case):
    X, _, domain, net, _, rows = case
    levels = [dial(s) for s in (.1, .4, .7, 1, 1.5, 2)]
    bars = [(-h.plausibility.density, -h.plausibility.isolation, h.logit_margin) for h in levels]
    assert all(a < b for low, high in zip(bars, bars[1:]) for a, b in zip(low, high))
    assert [h.plausibility.pairs for h in levels] == [None]*4 + [.75, .5] and dial(2).plausibility == Plausibility(.5, .5, .5)
    circles = []
    for h in levels:
        company = GradualCF(net, domain, h).fit(X).company
        circles.append(company.circles[company.number(torch.tensor(1))])
    for low, high in zip(circles, circles[1:]): assert (high.lonely < low.lonely).all() and high.strange <= low.strange


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


def test_pairs_that_nobody_has_are_avoided():
    df, domain, net = tied_columns()
    lenient, paired = (GradualCF(net, domain, 'sparse', plausibility=Plausibility(1., 1., p)).fit(df) for p in (None, .8))
    rows = df[(paired.z_train.argmax(1) == 0).numpy()].head(40)
    plain, asked = (cf.explain(rows, 1) for cf in (lenient, paired))
    assert asked.valid.all() and domain.legal(asked.data, asked.raw).all()
    assert together(df, asked.raw).mean() >= .95 > together(df, plain.raw).mean()


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


def test_columns_that_hang_together_are_left_for_a_real_row():
    "No single value of one column is in company here, so the row starts from a near row."
    df = tied_columns()[0][['size', 'area']]
    cf = GradualCF(toy.Score([6., 6.], -7.), tabular(df), plausible_but_dear()).fit(df)
    rows = df[(cf.z_train.argmax(1) == 0).numpy()].head(20)
    cfs = cf.explain(rows, 1)
    assert cf.content(cfs.enc, cfs.xp, cfs.tensors.target).all() and (cfs.changed.sum(1) == 2).all()
    fixed = cf.explain(rows, 1, immutable=['size']) # what is within reach
    assert (fixed.changed.sum(1) <= 1).all()


def plausible_but_dear(): return replace(PLAUSIBLE, sparsity_weight=50., logit_margin=None) # near rows are near the border, too


# What is lacking is said
def test_what_an_answer_lacks(case, tmp_path):
    X, _, domain, net, cf, rows = case
    strict = GradualCF(net, domain, dial(2)).fit(X)
    for explainer in (cf, strict):
        cfs = explainer.explain(rows, 1, immutable=['debt'])
        said = lacks(explainer, cfs)
        assert list(said) == ['probability', 'lead', 'lonely', 'strange', 'pairs'] and len(said) == len(rows) and (said.fillna(0) >= 0).all().all()
        assert ((said.fillna(0) <= 1e-5).all(axis=1) == explainer.content(cfs.enc, cfs.xp, cfs.tensors.target).numpy()).all()
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


def test_few_rows_lean_on_all():
    gen = torch.Generator().manual_seed(2)
    x, few = torch.randn(900, 4, generator=gen), torch.randn(30, 4, generator=gen)*3
    legal = torch.ones(900, 4, dtype=torch.bool)
    everywhere = _circle(x, legal, .85, .9, values=[], atomic=[]).strange
    for rows in (few, x[:800]):
        own = _circle(rows, legal[:len(rows)], .85, .9, values=[], atomic=[])
        leant, weight = _shrunk_bar(own, x, .9), len(own.x)/(len(own.x) + 50)
        assert torch.isclose(leant.strange, weight*own.strange + (1 - weight)*everywhere, atol=1e-6)
        assert leant.lonely.equal(own.lonely)
    assert len(_in_halves(x[:31])) == 30


def odd_table(n=400):
    "A constant column, one that is mostly missing, a flag and whole numbers as texts."
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(v=rng.normal(size=n).round(2), same=7, gone=np.where(rng.random(n) < .9, np.nan, rng.normal(size=n).round(1)),
                          flag=rng.random(n) < .5, code=pd.Categorical(rng.integers(0, 4, n).astype(str))))
    return X, X.v + X.flag + rng.normal(size=n)*.3


@pytest.mark.parametrize('many', [1, 3, 40, 200])
def test_rare_targets_of_odd_tables(many):
    X, score = odd_table()
    y = (score.rank(ascending=False) <= many).astype(int)
    model = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=1, random_state=0, categorical_features='from_dtype').fit(X, y)
    cf = GradualCF(model, tabular(X), PLAUSIBLE).fit(X)
    rows = X[model.predict(X) == 0].iloc[:2]
    state, other = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        cfs = cf.explain(rows, 1)
    assert cfs.valid.all() and (model.predict(cfs.raw) == 1).all() and cf.domain.legal(cfs.data, cfs.raw).all()
    assert torch.equal(torch.random.get_rng_state(), state) and (np.random.get_state()[1] == other).all()
    few = [w for w in said if 'plausibility is left out' in str(w.message)]
    assert bool(few) == (many < 20) and ('nobody' in repr(cf.company)) == (many < 20)


# The same answers, asked for one by one
def twos_one_by_one(explainer, s):
    "Plainly: any two of the four changes that are missed least, put back one pair after the other."
    groups = explainer.groups(s.x)
    on = changed_groups(s.x, s.xp, groups) & ~s.enc.frozen
    missed = plausible._without_each(explainer, s, groups).masked_fill(~on, torch.inf)
    order, xp, nearest = missed.argsort(dim=1, stable=True), s.xp.clone(), s.x.new_full((len(s.x),), torch.inf)
    for a, b in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        for i in range(len(s.x)):
            if on[i].sum() <= max(b, 2): continue
            one = s.take(torch.tensor([i]))
            less = torch.where((groups == order[i, a]) | (groups == order[i, b]), one.x, one.xp)
            t, worth = plausible._best(explainer, one._replace(xp=less), ~one.enc.frozen)
            far = plausible._distance_or_cost(explainer, one._replace(xp=t))
            if worth[0] > 0 and far[0] < nearest[i]: xp[i], nearest[i] = t[0], far[0]
    return xp


def test_two_changes_for_one_all_at_once(case):
    *_, cf, rows = case
    far = rows.iloc[:12]
    cfs = cf.explain(far, 1)
    s = cf.start(cfs.enc, cfs.tensors.target)
    xp = plausible._pasted_rows(cf.company, cf.company.circles[0], s.target.company.near, s.enc)[:, 0] # a real row, with all its columns
    s = plausible.moved(cf, s, xp)
    together, apart = plausible._one_for_two(cf, s), twos_one_by_one(cf, s)
    assert together.equal(apart) and (together != xp).any()


@pytest.mark.parametrize('finer', [False, True])
def test_candidates_change_one_column_and_are_legal(case, finer):
    *_, cf, rows = case
    cfs = cf.explain(rows.iloc[:5], 1)
    s = cf.start(cfs.enc, cfs.tensors.target)._replace(xp=cfs.xp)
    circle = cf.company.circles[0]
    free = ~s.enc.frozen
    (t, may, rare), = plausible._values_to_try(cf, s, free, circle, finer)
    differ = changed_groups(s.xp.repeat_interleave(t.shape[1], 0), t.flatten(0, 1), cf.groups(s.x)).view(*t.shape[:2], -1)
    assert (differ.sum(2) <= 1).all() and (differ.any(2) & (differ & ~free[:, None]).any(2)).sum() == (differ.any(2) & ~may).sum()
    x = s.x.repeat_interleave(t.shape[1], 0)
    assert torch.allclose(cf.domain.project(t.flatten(0, 1), x), t.flatten(0, 1)) and not rare.any()
    theirs = circle.x[s.target.company.near[0, :, :32].flatten()]
    for g, c in enumerate(cf.domain.features):
        entry = cf.company.entries[g]
        if not c.ordered or not free[0, g]: continue
        offered = set(t[0, differ[0, :, g], entry[0]].tolist())
        assert offered & set(theirs[:, entry[0]].tolist())


def test_a_near_row_that_lacks_something_pays_for_its_columns(case, monkeypatch):
    *_, cf, rows = case
    cfs = cf.explain(rows.iloc[:4], 1)
    s = cf.start(cfs.enc, cfs.tensors.target)
    real = cfs.xp
    for lack, weight, taken in ((0., 9., True), (.5, 9., False), (.5, 0., True)):
        now = plausible.moved(cf, s, s.x.clone())
        now = now._replace(logits=torch.tensor([[-9., 9.]]).expand(4, 2).clone()) # the model takes them as they are
        monkeypatch.setattr(plausible, '_near_row', lambda e, s: (real[:len(s.x)], torch.full((len(s.x),), lack)))
        monkeypatch.setattr(plausible, 'lacking', lambda e, s: torch.ones(len(s.x)))
        priced = GradualCF(cf.model, cf.domain, replace(cf.settings, sparsity_weight=weight)).fit(case[0])
        list(plausible._from_near_rows(priced, now, torch.arange(4)))
        assert now.xp.equal(real if taken else s.x)


# What each strength costs and buys
def test_strengths_are_those_of_the_preset_and_their_judge(case):
    *_, cf, rows = case
    some = rows.iloc[:10]
    table = strengths(cf, some, 1, tried=(0, 1), slack=0.)
    cfs, held = cf.explain(some, 1), held_back(len(cf.x_train))
    own = cf.z_train.argmax(1) == 1
    judge = IsolationForest(random_state=0).fit(cf.x_train[held & own].numpy())
    said = table.loc[1]
    assert said['columns'] == cfs.changed.sum(1).mean() and said.outliers == (judge.predict(cfs.xp.numpy()) < 0).mean()
    usual = (judge.predict(cf.x_train[~held & own].numpy()) < 0).mean()
    assert np.isclose(said.usual, usual) and said.enough == (said.outliers <= said.usual)
    assert table.loc[0, 'columns'] < said['columns'] and list(table.index) == [0, 1]
    tight = cf.under(replace(cf.settings, max_changes=1)) # other settings stay
    assert strengths(tight, some, 1, tried=(1,)).loc[1, 'columns'] <= 1


def test_strengths_of_several_targets_intervals_and_rows_without_an_answer(case):
    X, *_, cf, rows = case
    both = strengths(cf, X.iloc[:12], tried=(.5,)) # the other class of each row
    assert len(both) == 1 and both.valid.all()
    numbers = X.drop(columns='home')
    number = GradualCF(LinearRegression().fit(numbers, X.income - X.debt), tabular(numbers), 'sparse').fit(numbers)
    assert strengths(number, numbers.iloc[:4], (10, None), tried=(1,)).valid.all()
    fixed = GradualCF(cf.model, tabular(X, immutable=['income', 'debt', 'gain', 'age']), 'sparse').fit(X)
    lost = rows[~fixed.explain(rows, 1).valid]
    none = strengths(fixed, lost.iloc[:3], 1, tried=(1,)).loc[1]
    assert none.valid == 0 and not none.enough and np.isnan(none['columns'])
