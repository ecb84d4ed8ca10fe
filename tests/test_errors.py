"""Bad input gets a ValueError that names argument, expectation and value, and changes nothing."""
import numpy as np
import pandas as pd
import pytest
import torch
import toy
from test_invariants import table
from torch import nn

from gradual_cf.all import GradualCF, load_heloc, load_model, tabular, tabular_mlp


@pytest.fixture(scope='module')
def bank():
    df,y = table(60)
    domain = tabular(df)
    net = fresh(domain, df)
    return df, domain, net, GradualCF(net, domain).fit(df)


def fresh(domain, df):
    "An untrained network that predicts both classes."
    x = domain.encode(df).x.float()
    return toy.sharpen(tabular_mlp(x.shape[1], seed=0), x)


BAD_FRAMES = {
    'missing column':     (lambda d: d.drop(columns='income'), "missing ['income']"),
    'extra column':       (lambda d: d.assign(more=1), "extra ['more']"),
    'reordered columns':  (lambda d: d[d.columns[::-1]], 'fitted order'),
    'NaN':                (lambda d: d.assign(income=np.nan), "nan in column 'income'"),
    'infinity':           (lambda d: d.assign(income=np.inf), "inf in column 'income'"),
    'unknown category':   (lambda d: d.assign(job='actor'), "'actor'"),
    'text in a number':   (lambda d: d.assign(age='old'), "column 'age'"),
    'empty frame':        (lambda d: d[:0], 'empty frame'),
    'not a frame':        (lambda d: d.income.tolist(), 'data must be a frame'),
}

@pytest.mark.parametrize('case', BAD_FRAMES)
def test_bad_rows(bank, case):
    df,domain,net,cf = bank
    break_it,says = BAD_FRAMES[case]
    before = df.copy()
    with pytest.raises(ValueError) as e: cf.explain(break_it(df.iloc[:3]))
    assert says in str(e.value)
    with pytest.raises(ValueError): GradualCF(net, domain).fit(break_it(df.iloc[:3]))
    pd.testing.assert_frame_equal(df, before)


BAD_TARGETS = {'out of range': (2, '0..1, got 2'), 'negative': (-1, '0..1, got -1'),
               'wrong length': ([0, 1], 'one per row (3)'), 'a float': (.5, 'integer'), 'a name': ('good', 'integer')}

@pytest.mark.parametrize('case', BAD_TARGETS)
def test_bad_targets(bank, case):
    target,says = BAD_TARGETS[case]
    with pytest.raises(ValueError) as e: bank[3].explain(bank[0].iloc[:3], target=target)
    assert 'target must' in str(e.value) and says in str(e.value)


def test_three_classes_need_a_target():
    p = toy.columns(k=3)
    cf = GradualCF(p.model, p.domain).fit(p.x)
    with pytest.raises(ValueError, match='more than two classes'): cf.explain(p.x[:2])
    assert len(cf.explain(p.x[:2], target=2)) == 2


class Wrapped(nn.Module):
    "A model with something done to its logits."
    def __init__(self, net, f): super().__init__(); self.net,self.f = net,f
    def forward(self, x): return self.f(self.net(x))

BAD_MODELS = {
    'probabilities':     (lambda z: z.softmax(1), 'probabilities'),
    'log-probabilities': (lambda z: z.log_softmax(1), 'log-probabilities'),
    'one probability':   (lambda z: z[:, :1].sigmoid(), 'remove the sigmoid'),
    'NaN':               (lambda z: z*float('nan'), 'finite'),
    'a cube':            (lambda z: z[:, None], 'k ≥ 2'),
}

@pytest.mark.parametrize('case', BAD_MODELS)
def test_bad_models(bank, case):
    df,domain,net,_ = bank
    f,says = BAD_MODELS[case]
    with pytest.raises(ValueError) as e: GradualCF(Wrapped(net, f), domain).fit(df)
    assert 'model must' in str(e.value) and says in str(e.value)


def test_one_logit_of_a_rare_class_is_no_log_probability(bank):
    df,domain,net,_ = bank
    lead = lambda z: .01*z[:, :1].tanh() - 13 # a probability below .001 in every training row
    cf = GradualCF(Wrapped(net, lead), domain).fit(df)
    assert (cf.z_train.softmax(1)[:, 1] < 1e-3).all()


def test_a_sigmoid_brings_a_warning(bank):
    df,domain,net,_ = bank
    with pytest.warns(UserWarning, match='sigmoid'): GradualCF(Wrapped(net, torch.sigmoid), domain).fit(df)


def test_a_model_that_moved_after_fit(bank):
    df,domain,*_ = bank
    net = fresh(domain, df)
    cf = GradualCF(net, domain).fit(df)
    net.double()
    with pytest.raises(ValueError, match='dtype it was fitted on'): cf.explain(df.iloc[:2])
    net.float()
    assert len(cf.explain(df.iloc[:2])) == 2
    net[0].double()
    with pytest.raises(ValueError, match='one dtype'): cf.explain(df.iloc[:2])
    with pytest.raises(ValueError, match='meta'): GradualCF(tabular_mlp(3).to('meta'), domain)


def test_a_model_for_other_columns(bank):
    df,domain,*_ = bank
    with pytest.raises(ValueError, match='model must accept'): GradualCF(tabular_mlp(3, seed=0), domain).fit(df)


def test_fit_comes_first(bank):
    with pytest.raises(ValueError, match='fit must be called'): GradualCF(bank[2], bank[1]).explain(bank[0])
    with pytest.raises(ValueError, match='fit must be called'): GradualCF(bank[2], bank[1]).trace(bank[0].iloc[:1])


BAD_TABLES = {
    'all immutable':      (dict(immutable=['age', 'income', 'late', 'job', 'owner']), 'immutable must leave'),
    'low above high':     (dict(bounds={'age': (60, 20)}), 'low ≤ high'),
    'no whole number between': (dict(bounds={'age': (20.2, 20.8)}), 'low ≤ high'),
    'bounds beyond the data': (dict(bounds={'age': (900, 999)}), "bounds must overlap with what training rows have, from "),
    'unknown column':     (dict(immutable=['agee']), "['agee']"),
    'a string':           (dict(increase_only='age'), 'list of columns'),
    'both ways':          (dict(increase_only=['age'], decrease_only=['age']), 'must not overlap'),
    'a direction for a category': (dict(increase_only=['job']), 'must name numbers'),
    'bounds of a category': (dict(bounds={'job': (0, 1)}), 'must be of numbers'),
    'bounds that are no pair': (dict(bounds={'age': 40}), "a pair (low, high) for column 'age', got 40"),
    'no changes':         (dict(max_changes=0), 'max_changes must be a whole number of at least 1, got 0'),
    'a grid of one':      (dict(grid=1), 'grid must be a whole number of at least 2, got 1'),
    'levels of a number': (dict(levels={'age': [20]}), "levels must name categories, got ['age']"),
    'an unknown level':   (dict(levels={'job': ['actor']}), "got ['actor']"),
}

@pytest.mark.parametrize('case', BAD_TABLES)
def test_bad_constraints(case):
    args,says = BAD_TABLES[case]
    with pytest.raises(ValueError) as e: tabular(table(30)[0], **args)
    assert says in str(e.value)


BAD_SETTINGS = {'unknown': (dict(tua=.9), 'tua'), 'tau': (dict(tau=1.), 'tau must be in (0, 1), got 1'),
                'masking': (dict(masking='gain!'), 'masking must be one of'), 'sigma': (dict(sigma=-1), 'sigma must be'),
                'quantile': (dict(quantile=1.5), 'quantile must be in'), 'lr': (dict(lr='fast'), 'lr must be'),
                'max_shared': (dict(max_shared=0), 'max_shared must be a whole number of at least 1, got 0'),
                'spread without probe': (dict(masking='gain', max_shared=2), 'max_shared must be 1 unless')}

@pytest.mark.parametrize('case', BAD_SETTINGS)
def test_bad_settings(bank, case):
    args,says = BAD_SETTINGS[case]
    with pytest.raises(ValueError) as e: GradualCF(bank[2], bank[1], **args)
    assert says in str(e.value)


def test_a_class_the_model_never_predicts(bank):
    df,domain,net,_ = bank
    always = Wrapped(net, lambda z: z*0 + torch.tensor([9., 0.]) + .1*z)
    cf = GradualCF(always, domain).fit(df)
    with pytest.raises(ValueError, match='predicts for some training row, got \\[1\\]'): cf.explain(df.iloc[:2], target=1)


def test_bad_files(tmp_path):
    (tmp_path/'m.safetensors').write_bytes(b'\x80\x04pickle')
    with pytest.raises(ValueError, match='safetensors file'): load_model(tmp_path/'m.safetensors')
    with pytest.raises(ValueError, match='heloc_dataset_v1.csv'): load_heloc(tmp_path)
    (tmp_path/'heloc').mkdir()
    (tmp_path/'heloc/heloc_dataset_v1.csv').write_text('a,b\n1,2\n')
    with pytest.raises(ValueError, match='RiskPerformance'): load_heloc(tmp_path)
