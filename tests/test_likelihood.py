"""A learnt density: tables nobody made for it, what it leaves as it was, and what is never proven of it."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cover import few
import torch

from gradual_cf.all import GradualCF, Plausibility, predictor, save_model, tabular, tabular_mlp
from gradual_cf.search.likelihood import Density

RNG = np.random.default_rng(0)
N = 240


def table(**more):
    "Two numbers of which the second follows from the first, and other columns."
    a = RNG.normal(size=N).round(2)
    return pd.DataFrame(dict(a=a, b=(10*a + RNG.normal(0, 1, N)).round(1), **more))


def learnt(df, label=None, **how):
    domain = tabular(df)
    x = domain.encode(df).x
    return Density(domain).fit(x, np.zeros(len(df), int) if label is None else label, **how), x


ODD = {
    'constant': dict(c=1.), 'missing': dict(c=pd.Series(RNG.normal(size=N)).mask(RNG.random(N) < .5)),
    'huge': dict(c=np.r_[RNG.normal(size=N - 1), 1e15]), 'yes or no': dict(c=RNG.random(N) < .3),
    'dates': dict(c=pd.Timestamp('2020-01-01') + pd.to_timedelta(RNG.integers(0, 900, N), unit='D')),
    'a level': dict(c=pd.Categorical(['x']*N, ['x'])),
    'words': dict(c=pd.Categorical(RNG.choice(['x', 'y', None], N))), 'codes': dict(c=RNG.choice([-9, -8, 3, 4, 5], N))}


@pytest.mark.parametrize('kind', few(ODD, 5))
def test_odd_columns_are_learnt_and_drawn(kind):
    df = table(**ODD[kind])
    density, x = learnt(df)
    assert density.log_prob(x, 0).isfinite().all()
    drawn = density.sample(20)
    assert list(drawn) == list(df) and density.log_prob(density.domain.encode(drawn).x, 0).isfinite().all()
    if kind == 'missing': assert 0 < density.sample(100).c.isna().mean() < 1


def test_what_does_not_belong_together_is_unlikely():
    df = table()
    density, x = learnt(df)
    apart = df.assign(b=df.b.to_numpy()[::-1].copy())
    far = (df.b - apart.b).abs() > 10
    assert (density.log_prob(density.domain.encode(apart).x, 0) < density.log_prob(x, 0) - 1)[far.to_numpy(copy=True)].double().mean() > .9


def test_beyond_the_ends_it_only_falls():
    density, x = learnt(table())
    there, = density.bins[0].entry
    out = x[:1].repeat(4, 1)
    out[:, there] = torch.tensor([x[:, there].max().item() + v for v in (0., .5, 1., 10.)])
    assert (density.log_prob(out, 0).diff() < 0).all()


def test_one_row_three_hundred_columns_and_a_class_that_nobody_has():
    one, x = learnt(table().iloc[:1])
    assert one.log_prob(x, 0).isfinite().all()
    wide, x = learnt(pd.DataFrame(RNG.normal(size=(60, 300)).round(2)).rename(columns=str), RNG.integers(0, 2, 60), classes=4)
    assert wide.log_prob(x, 3).isfinite().all() and wide.classes == 4
    own = wide.net.last_mask[-1]
    assert own.all() and not wide.net.first_mask[0, -1] # the last column is said by all units, and read by none


def test_what_is_around_stays_as_it_was():
    df = table()
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    state = np.random.get_state()[1].copy()
    first, x = learnt(df, seed=3)
    second, _ = learnt(df, seed=3)
    first.sample(5)
    assert torch.equal(before, torch.get_rng_state()) and (state == np.random.get_state()[1]).all()
    assert torch.get_num_threads() == threads and torch.equal(first.log_prob(x, 0), second.log_prob(x, 0))
    assert not any(p.requires_grad or p.grad is not None for p in first.net.parameters())


def test_a_file_gives_the_same_density(tmp_path):
    df = table(**ODD['missing'])
    density, x = learnt(df)
    again = Density.load(density.save(tmp_path/'density.safetensors'), density.domain)
    assert torch.equal(again.log_prob(x, 0), density.log_prob(x, 0)) and again.sample(9).equals(density.sample(9))
    with pytest.raises(ValueError, match='domain must have the columns'): Density.load(tmp_path/'density.safetensors', tabular(df[['a', 'b']]))
    with pytest.raises(ValueError, match='file of a density'): Density.load(save_model(tabular_mlp(4, 2), tmp_path/'net'), density.domain)


def chance(rows):
    "The probability of class 1 rises with `a` and with nothing else."
    p = 1/(1 + np.exp(-4*rows.a.to_numpy(float)))
    return np.column_stack([1 - p, p])


def explainer(df, model=chance, **asked):
    domain = tabular(df)
    numbers = dict(kind='number') if model is not chance else {}
    told = predictor(model, domain, names=list(df), **numbers)
    return GradualCF(told, domain, 'sparse', plausibility=Plausibility(density=1., isolation=1., **asked)).fit(df)


def test_answers_are_as_likely_as_asked():
    df = table(c=RNG.choice(['x', 'y'], N))
    cf = explainer(df, likelihood=.5)
    some = df[df.a < -.5].head(20)
    answers = cf.explain(some, 1)
    demand = cf.company.aim(answers.enc, answers.tensors.target)
    real = cf.company.bar(torch.tensor(1))
    assert answers.valid.all() and (demand.floor <= real + 1e-6).all()
    usual = explainer(df).explain(some, 1)
    likely = lambda a: cf.density.log_prob(a.xp, 1)
    assert (likely(answers) >= demand.floor - 1e-4).double().mean() > .9 and likely(answers).mean() > likely(usual).mean()
    assert answers[:3].raw.equals(cf.explain(some.head(3), 1).raw) # a row alone is the row in a batch


def test_the_density_is_learnt_once():
    df = table()
    cf = explainer(df, likelihood=.3)
    other = cf.under(replace(cf.settings, plausibility=replace(cf.settings.plausibility, likelihood=.8)))
    assert other.density is cf.density and other.company.bar(torch.tensor(1)) > cf.company.bar(torch.tensor(1))
    assert explainer(df).density is None


def test_an_interval_has_its_own_bar():
    df = table()
    cf = explainer(df, lambda rows: rows.a.to_numpy(float), likelihood=.5)
    answers = cf.explain(df[df.a < 0].head(5), (.5, 1.))
    assert answers.valid.all() and cf.company.density.classes == 1


def test_too_few_rows_set_no_bar():
    df = table()
    df.loc[1:, 'a'] = -df.a[1:].abs() - 1
    df.loc[0, 'a'] = 2.
    cf = explainer(df, likelihood=.5)
    with pytest.warns(UserWarning, match='plausibility is left out'): answers = cf.explain(df.iloc[5:8], 1)
    assert answers.valid.all() and cf.company.bar(torch.tensor(1)) == -np.inf


def test_nothing_is_proven_of_it():
    from sklearn.linear_model import LogisticRegression
    df = table()
    model = LogisticRegression().fit(df, df.a > 0)
    cf = GradualCF(model, tabular(df), 'sparse', plausibility=Plausibility(likelihood=.5)).fit(df)
    some = df[df.a < -.5].head(3)
    assert not any(cf.explain(some, True).proof or [])
