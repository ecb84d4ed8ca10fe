"""What models may return and lack, settings that check themselves, and constraints that come with a question."""
import inspect
from dataclasses import FrozenInstanceError, fields, replace

import pytest
import torch
import toy
from refused import Wrapped, X, domain, fresh
from torch import nn

from gradual_cf.all import IMAGE, PAPER, SPARSE, TEXT, Common, Encoded, Explainer, GradualCF, Settings


class Boxed:
    "An output with logits, as some libraries have it."
    def __init__(self, z): self.logits = z


OUTPUTS = dict(dict=lambda z: dict(loss=z.mean(), logits=z), object=Boxed, tuple=lambda z: (z, torch.zeros(len(z), 2, 3)), one_of_a_dict=lambda z: dict(out=z),
               float64=lambda z: z.double(), numpy=lambda z: z.detach().numpy())


@pytest.mark.parametrize('how', OUTPUTS)
def test_outputs_are_read_where_they_are_unambiguous(how):
    p = toy.columns()
    model = p.model.float()
    plain = GradualCF(model, p.domain, 'sparse', sigma=0).fit(p.x.float()).explain(p.x[:12].float())
    packed = GradualCF(lambda x: OUTPUTS[how](model(x)), p.domain, 'sparse', sigma=0).fit(p.x.float()).explain(p.x[:12].float())
    torch.testing.assert_close(packed.xp, plain.xp)
    assert packed.prob.dtype == plain.prob.dtype


@pytest.mark.night
def test_a_compiled_network_is_explained_as_it_is():
    "In passes of any size, forward and back, and in train mode, which it is left in."
    p = toy.columns()
    model = p.model.train()
    try: compiled = torch.compile(model, backend='eager', dynamic=True)  # what a compiler would be given, without a compiler
    except RuntimeError: pytest.skip('need a compiler that torch.compile runs with')
    for settings in (None, replace(PAPER, sigma=4)):
        plain, ours = (GradualCF(m, p.domain, settings).fit(p.x) for m in (model, compiled))
        for n in (1, 7, 30): torch.testing.assert_close(ours.explain(p.x[:n]).xp, plain.explain(p.x[:n]).xp)
    assert compiled.training and all(m.training for m in model.modules())


def test_a_model_that_returns_float64_for_float32_is_probed_and_composed():
    "Index put used to fail in the probe."
    p = toy.columns()
    net = p.model.float()
    model = lambda x: net(x).double()
    for settings in (None, replace(PAPER, sigma=10)):
        cfs = GradualCF(model, p.domain, settings).fit(p.x.float()).explain(p.x[:8].float())
        assert cfs.valid.all() and cfs.xp.dtype == torch.float32


@pytest.mark.night
@pytest.mark.parametrize('one', [lambda z: z[:, 0], lambda z: z[:, :1], lambda z: dict(logits=z[:, :1])])
def test_one_logit_is_read_as_two(one):
    p = toy.columns()
    net = p.model.float()
    def answers(model): return GradualCF(model, p.domain, 'sparse').fit(p.x).explain(p.x[:20]).xp
    assert torch.equal(answers(lambda x: one(net(x))), answers(lambda x: torch.stack([-net(x)[:, 0]/2, net(x)[:, 0]/2], 1)))


def test_a_module_in_train_mode_is_switched_and_given_back_as_it_was():
    p = toy.columns()
    net = nn.Sequential(p.model.float(), nn.Dropout(.5)).train()
    GradualCF(net, p.domain, 'sparse').fit(p.x)
    assert net.training


def test_one_logit_of_a_rare_class_is_no_log_probability():
    cf = GradualCF(Wrapped(fresh(), lambda z: .01*z[:, :1].tanh() - 13), domain(), 'sparse').fit(X())  # a probability below .001 in every training row
    assert (cf.z_train.softmax(1)[:, 1] < 1e-3).all()


def test_sigmoids_bring_a_warning():
    with pytest.warns(UserWarning, match='sigmoid'): GradualCF(Wrapped(fresh(), torch.sigmoid), domain(), 'sparse').fit(X())


def detached(m): return lambda x: m(x.detach())

def undetached(m): return lambda x: torch.from_numpy(m(x).numpy() if not x.requires_grad else m(torch.from_numpy(x.numpy())).numpy())

def quantized(m): return torch.ao.quantization.quantize_dynamic(m, {nn.Linear})


@pytest.mark.parametrize('make', [detached, undetached, quantized])
@pytest.mark.filterwarnings('ignore:torch.ao.quantization')
@pytest.mark.filterwarnings('ignore:torch.quantize_per_tensor')
@pytest.mark.filterwarnings('ignore:.*autograd kernel was not registered')
def test_a_model_without_gradient_names_the_way_out(make):
    p = toy.columns()
    model,x = make(p.model.float()), p.x.float()
    try: GradualCF(model, p.domain, 'sparse', sigma=0).fit(x).explain(x[:8])   # the way out works
    except RuntimeError: pytest.skip('need a build of PyTorch that runs the model')
    for settings in (PAPER, replace(SPARSE, masking='gain')):
        with pytest.raises(ValueError, match='sigma=0'): GradualCF(model, p.domain, settings).fit(x).explain(x[:8])


@pytest.mark.filterwarnings('ignore:.*torch.jit.*:DeprecationWarning')
def test_a_module_that_jit_froze_is_explained_as_any_other():
    p = toy.columns()
    net,x = p.model.float(), p.x.float()
    frozen = torch.jit.freeze(torch.jit.trace(net.eval(), torch.zeros(1, 6)))
    torch.testing.assert_close(GradualCF(frozen, p.domain, 'sparse').fit(x).explain(x[:8]).xp, GradualCF(net, p.domain, 'sparse').fit(x).explain(x[:8]).xp)


def test_settings_are_frozen_keyword_only_and_seen():
    with pytest.raises(FrozenInstanceError): SPARSE.tau = .9
    with pytest.raises(TypeError): Settings(.9)
    seen = inspect.signature(GradualCF).parameters
    assert {f.name for f in fields(Settings)} <= set(seen) and seen['sigma'].default == 50
    assert all(f.name in Settings.__doc__ for f in fields(Settings)) and all(isinstance(s, Settings) for s in (PAPER, SPARSE, IMAGE, TEXT))
    assert replace(PAPER, sigma=3).masking == 'gradient'


def test_an_explainer_takes_the_domains_settings_a_preset_or_changes():
    p = toy.columns()
    domain = replace(p.domain, defaults=Settings(tau=.7, sigma=3))
    assert GradualCF(p.model, domain, 'sparse').settings == Settings(tau=.7, sigma=3)
    assert GradualCF(p.model, domain, PAPER).settings == PAPER
    assert GradualCF(p.model, domain, PAPER, sigma=4).settings == replace(PAPER, sigma=4)
    assert Explainer(p.model, domain).settings == Common(tau=.7)


def test_what_would_not_survive_a_file_is_refused_by_name(tmp_path):
    import pandas as pd
    p = toy.columns()
    cfs = GradualCF(p.model, p.domain, 'sparse').fit(p.x).explain(p.x[:2])
    intervals = pd.DataFrame({'band': pd.Categorical(pd.cut([1, 9], [0, 5, 10]))})
    for rows in (intervals, pd.DataFrame({.5: [1, 2]})):
        pd.testing.assert_frame_equal(type(cfs).load(replace(cfs, data=rows).save(tmp_path/'a.zip'), p.domain).data, rows)
    (tmp_path/'a.zip').unlink()
    with pytest.raises(ValueError, match='data must hold values that a file can store'): replace(cfs, data=pd.DataFrame({'z': [1j, 2]})).save(tmp_path/'a.zip')
    with pytest.raises(ValueError, match='cf_valid'): replace(cfs, raw=pd.DataFrame({'cf_valid': [1, 2]})).df()
    assert not list(tmp_path.iterdir())


def test_one_row_that_the_model_is_sure_of_is_no_log_probability():
    p = toy.columns()
    sure = lambda x: torch.stack([0*x[:, 0], 90*(x[:, 0].float() - .5)], 1)
    x = torch.rand(40, 6, generator=torch.Generator().manual_seed(0))
    row = torch.zeros(1, 6)                                # logits 0 and -45: their log-sum-exp is 0
    assert GradualCF(sure, replace(p.domain, encode=lambda raw: Encoded(raw.clone(), torch.zeros(len(raw), 4, dtype=torch.bool))), 'sparse', sigma=0).fit(x).explain(row).valid.all()


def test_some_rows_of_a_question_are_answered_as_all_of_them_with_the_constraints_of_each():
    p = toy.columns()
    e = GradualCF(p.model, p.domain, 'sparse', sigma=0).fit(p.x)
    rows, some = p.x[:12], torch.arange(12) % 3 == 1
    question = e.ask(rows, None, max_changes=[1, 2]*6)
    part, whole = e.answer(question.take(some)), e.explain(rows, max_changes=[1, 2]*6)
    assert part.xp.equal(whole.xp[some])
    assert part.enc.most.tolist() == torch.tensor([1, 2]*6)[some].tolist()
    assert e.answer(question).xp.equal(whole.xp)
