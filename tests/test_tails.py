"Columns with heavy tails, of full precision, in cents, in 32 bits: what is legal, what proofs speak of, how answers are written."
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cover import few
from sklearn import ensemble, tree

from gradual_cf.all import GradualCF, predictor, tabular
from gradual_cf.search.proven import NONE_EXISTS

N = 300
COLUMNS = dict( # made as data come: computed, in cents, in 32 bits, with missing cells
    lognormal=lambda r: r.lognormal(0, r.uniform(1, 6), N),
    pareto=lambda r: r.pareto(.3, N),
    cauchy=lambda r: r.standard_cauchy(N),
    outlier=lambda r: np.r_[r.random(N - 1), 10.**r.integers(1, 13)],
    zeros=lambda r: np.where(r.random(N) < .6, 0, r.lognormal(3, 3, N)),
    dense=lambda r: np.r_[r.random(N - 60), r.uniform(.0011, .0039, 60)],
    cents=lambda r: r.lognormal(7, 2, N).round(2),
    nine_decimals=lambda r: r.lognormal(-1, 2, N).round(9),
    tenths=lambda r: r.normal(36.8, .7, N).round(1),
    shifted=lambda r: 1e6 + r.random(N)*1e-3,
    whole=lambda r: r.poisson(3, N).astype(float),
    single=lambda r: r.lognormal(0, 3, N).astype('f4'),
    holes=lambda r: np.where(r.random(N) < .1, np.nan, r.lognormal(0, 4, N).round(4)))


def made(rng, few=3):
    "A table of some of these columns, and classes that hold in a thin part of one of them."
    names = rng.choice(list(COLUMNS), few, replace=False)
    X = pd.DataFrame({name: COLUMNS[name](rng) for name in names})
    v = X[rng.choice(names)].fillna(0.)
    low,high = np.sort(rng.choice(v.to_numpy(), 2, replace=False))
    y = ((v >= low) & (v <= high)).astype(int).to_numpy() ^ (rng.random(N) < .02)
    return X, y


def decimals(v):
    "How many decimals it takes to write a number."
    return max(-int(Decimal(repr(float(v))).normalize().as_tuple().exponent), 0)


def most_decimals(s):
    "The most decimals of a column, as numbers of its own dtype are written."
    return max(max(-int(Decimal(str(v)).normalize().as_tuple().exponent), 0) for v in s.dropna().to_numpy())


def cost(c, before, after): return np.abs(c.encoded(after) - c.encoded(np.array(before, float)))


def against_training_values(rng, asked=6):
    "Whether proofs and answers hold against every value of the training rows, column by column."
    X,y = made(rng)
    if y.min() == y.max(): return 0
    makes = ensemble.RandomForestClassifier(7, random_state=0), tree.DecisionTreeClassifier(random_state=0)
    model = makes[rng.integers(2)].fit(X.fillna(-1.), y)
    f = predictor(lambda df: model.predict_proba(df.fillna(-1.)), tabular(X)) if X.isna().any().any() else model
    domain = tabular(X)
    mixed = X.apply(lambda s: rng.permutation(s))
    legal = domain.legal(X, mixed)
    assert (legal | X.isna().to_numpy() | mixed.isna().to_numpy()).all(), list(X)
    says = lambda df: model.predict(df.fillna(-1.))
    rows = X[says(X) == 0].head(asked)
    if not len(rows): return 0
    cf = GradualCF(f, domain, 'sparse').fit(X)
    for c in domain.features:
        others = [o for o in X if o != c.name]
        answers = cf.explain(rows, 1, immutable=others)
        proofs = answers.prove() if f is model else None
        values = np.unique(X[c.name].dropna())
        for i in range(len(rows)):
            if pd.isna(rows[c.name].iloc[i]): continue
            trial = rows.iloc[[i]*len(values)].assign(**{c.name: values.astype(X[c.name].dtype)})
            there = says(trial) == 1
            if not there.any(): continue
            assert answers.valid[i], (c.name, 'a training value reaches the target')
            assert proofs is None or proofs.verdict.iloc[i] != NONE_EXISTS, (c.name, rows.iloc[i].to_dict())
            told = cf.explain(rows.iloc[[i]], 1, immutable=others, proof='distance') if f is model else None
            if told is not None:
                near = cost(c, rows[c.name].iloc[i], values[there].astype(float)).min()
                assert float(told.size[0]) <= near*(1 + 1e-6) + 1e-9, (c.name, float(told.size[0]), near)
        assert domain.legal(rows, answers.raw).all(), c.name
        moved = answers.raw[c.name][np.asarray(answers.valid) & (answers.raw[c.name] != rows[c.name])]
        assert all(decimals(v) <= max(most_decimals(X[c.name]), c.digits) for v in moved.astype(float)) or X[c.name].dtype != float, c.name
    return len(rows)


@pytest.mark.night
@pytest.mark.parametrize('seed', [*few(range(5), 2), 4019023151])  # the last: a range of 10^15, where values below ten stand between the steps
def test_no_proof_denies_a_value_that_stands_in_the_training_rows(seed): assert against_training_values(np.random.default_rng(seed)) >= 0


def test_an_answer_has_no_more_decimals_than_its_column():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(dict(grade=rng.choice(np.linspace(1, 5, 41), 200).round(1), income=rng.lognormal(8, 2, 200).round(2), price=rng.random(200).astype('f4').round(1)))
    domain = tabular(X)
    assert [c.digits for c in domain.features] == [1, 2, 1]
    f = predictor(lambda df: np.c_[df.grade - 3 + .2*np.log(df.income) - 1.6 + df.price - .5], domain, kind='logit')
    cf = GradualCF(f, domain, 'sparse').fit(X)
    rows = X[np.asarray(cf.model(domain.encode(X).x).argmax(1)) == 0].head(30)
    answers = cf.explain(rows, 1, max_changes=1)
    after = answers.changes()
    assert len(after) > 10 and all(decimals(v) <= dict(grade=1, income=2, price=8)[name] for name,v in zip(after.feature, after.after))
    assert not domain.legal(rows, rows.assign(grade=2.345))[:, 0].any() and domain.legal(rows, rows.assign(grade=.1 + 2.2))[:, 0].all()


@pytest.mark.night
@pytest.mark.parametrize('shape', ['line', 'stairs', 'wave'])
def test_no_value_on_the_way_to_a_single_change_does_as_well(shape):
    "All legal values are asked, by code that shares nothing with the search."
    rng = np.random.default_rng(2)
    X = pd.DataFrame(dict(tenure=rng.integers(0, 72, 300), fee=rng.uniform(18, 120, 300).round(1)))
    form = dict(line=lambda t: t, stairs=lambda t: np.floor(t/5)*5, wave=lambda t: t + 6*np.sin(t/4))[shape]
    say = lambda df: .08*form(df.tenure.to_numpy(float)) - .03*(df.fee.to_numpy(float) - 60) - 2.5
    domain = tabular(X)
    cf = GradualCF(predictor(lambda df: np.c_[say(df)], domain, kind='logit'), domain, 'sparse').fit(X)
    rows = X[say(X) < 0].head(60)
    answers = cf.explain(rows, 1)
    single = answers.changes().groupby('row').filter(lambda lines: len(lines) == 1)
    assert len(single) > 40
    for line in single.itertuples():
        every = np.arange(72) if line.feature == 'tenure' else np.arange(180, 1201)/10
        trial = rows.iloc[[line.row]*len(every)].assign(**{line.feature: every})
        nearest = np.abs(every[say(trial) >= 0] - line.before).min()
        step = 1 if line.feature == 'tenure' else .1
        assert abs(line.after - line.before) <= nearest + 1.01*step
