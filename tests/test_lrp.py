"""Layer-wise relevance propagation against captum, against slow replicas of every rule, and around the model."""
import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from captum.attr import LRP
from captum.attr._utils.lrp_rules import EpsilonRule, GammaRule
from torch import nn
from toy import columns
from written import load_task

from gradual_cf.all import GradualCF, digit_cnn, images, lrp, predict, relevance, strided_cnn, tabular, tabular_mlp, text_cnn
from gradual_cf.measures.relevance import _box_shares, _folded, epsilon, gamma, positive, z_box
from gradual_cf.models.networks import seeded


def two_layers(d=6, h=9, k=3):
    with seeded(1): return nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, k)).double()


def shared_out(a, w, b, r, eps):
    "The ε-rule entry by entry: a `(i,)`, w `(o, i)`, b `(o,)`, r `(o,)`."
    out = np.zeros(len(a))
    for j in range(len(r)):
        z = sum(a[i]*w[j, i] for i in range(len(a))) + b[j]
        z += eps*(1 if z >= 0 else -1)
        for i in range(len(a)): out[i] += a[i]*w[j, i]/z*r[j]
    return out


def parameters(layer): return layer.weight.detach().numpy(), layer.bias.detach().numpy()


@pytest.mark.parametrize('rule,theirs', [(partial(epsilon, 1e-3), partial(EpsilonRule, 1e-3)), (gamma, GammaRule)])
def test_equals_captum_where_captum_has_the_rule(rule, theirs):
    net,x = two_layers(), torch.rand(5, 6, dtype=torch.double)
    own = copy.deepcopy(net)
    for m in own:
        if isinstance(m, nn.Linear): m.rule = theirs()
    want,delta = LRP(own).attribute(x.requires_grad_(), target=2, return_convergence_delta=True)
    got = lrp(net, x.detach(), target=2, rules=[(nn.Linear, rule)])
    assert torch.allclose(got.values, want.detach(), atol=1e-12) and torch.allclose(got.delta, delta.detach(), atol=1e-12)


def test_equals_captum_on_the_digit_network():
    with seeded(2): net = digit_cnn((1, 8, 8), seed=2).double().eval()
    x = torch.rand(3, 1, 8, 8, dtype=torch.double)
    own = copy.deepcopy(net)
    for m in own:
        if isinstance(m, nn.Conv2d): m.rule = GammaRule()
        if isinstance(m, nn.Linear): m.rule = EpsilonRule(1e-6)
        if isinstance(m, nn.Flatten): m.rule = EpsilonRule(1e-12)
    want = LRP(own).attribute(x.clone().requires_grad_(), target=4).detach()
    assert torch.allclose(lrp(net, x, 4, [(nn.Conv2d, gamma)]).values, want, atol=1e-7)


def slow_box(x, w, r, low, high, stride, padding):
    "z^B on a convolution, window by window: x `(c, h, w)`, w `(o, c, k, k)`, r `(o, h', w')`."
    c,h,wd = x.shape
    out = np.zeros_like(x)
    for o in range(len(w)):
        for a in range(r.shape[1]):
            for b in range(r.shape[2]):
                part = {}
                for ch in range(c):
                    for i in range(w.shape[2]):
                        for j in range(w.shape[3]):
                            p,q = a*stride + i - padding, b*stride + j - padding
                            if not (0 <= p < h and 0 <= q < wd): continue     # padding is no pixel
                            v = w[o, ch, i, j]
                            part[ch, p, q] = x[ch, p, q]*v - low*max(v, 0) - high*min(v, 0)
                total = sum(part.values())
                for at,v in part.items(): out[at] += v/total*r[o, a, b]
    return out


@pytest.mark.parametrize('stride,padding,low,high', [(1, 0, 0., 1.), (2, 2, 0., 1.), (1, 1, -1., 2.)])
def test_pixels_against_a_slow_replica(stride, padding, low, high):
    gen = torch.Generator().manual_seed(0)
    layer = nn.Conv2d(2, 3, 3, stride=stride, padding=padding).double()
    with torch.no_grad(): layer.weight.copy_(torch.randn(layer.weight.shape, generator=gen))
    x = low + (high - low)*torch.rand(2, 2, 6, 5, dtype=torch.double, generator=gen)
    r = torch.randn(layer(x).shape, dtype=torch.double, generator=gen)
    got = _box_shares(layer, x, r, low, high)
    for i in range(2):
        assert np.allclose(got[i], slow_box(x[i].numpy(), layer.weight.detach().numpy(), r[i].numpy(), low, high, stride, padding), atol=1e-6)
    assert torch.allclose(got.flatten(1).sum(1), r.flatten(1).sum(1), atol=1e-6)


def test_windows_of_words_against_a_slow_replica():
    "Conv1d, maximum over the text, concatenation, linear: the winner's window gets what the filter gets."
    net = text_cnn(4, 2, filters=3, sizes=(2, 3), seed=0).double().eval()
    x = torch.randn(1, 7, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    acts = [c(x.transpose(1, 2)).relu()[0].detach().numpy() for c in net.convs]
    pooled = np.concatenate([a.max(1) for a in acts])
    w,b = parameters(net.head)
    r = shared_out(pooled, w, b, np.eye(2)[1]*net(x)[0, 1].item(), 1e-6)
    want,row = np.zeros((7, 4)), x[0].numpy()
    for c,(conv,a) in enumerate(zip(net.convs, acts)):
        cw,cb = parameters(conv)
        k = cw.shape[2]
        for f in range(3):
            at = a[f].argmax()
            if a[f, at] == 0: continue                                  # silent everywhere: nothing arrives
            want[at:at + k] += shared_out(row[at:at + k].T.ravel(), cw[f].reshape(1, -1), cb[f:f + 1], r[3*c + f:3*c + f + 1], 1e-6).reshape(4, k).T
    assert np.allclose(lrp(net, x, 1).values[0], want, atol=1e-5)


def test_a_batch_norm_counts_as_part_of_its_convolution():
    net = strided_cnn((1, 8, 8), seed=1).double().eval()
    with seeded(7):
        for m in net:
            if isinstance(m, nn.BatchNorm2d): m.running_mean.normal_(); m.running_var.uniform_(.5, 2); m.bias.data.normal_()
    x = torch.rand(3, 1, 8, 8, dtype=torch.double)
    one = _folded(copy.deepcopy(net))
    assert torch.allclose(predict(one, x), predict(net, x)) and not any(isinstance(m, nn.BatchNorm2d) for m in one)
    assert torch.allclose(lrp(net, x, 3).values, lrp(one, x, 3).values)


@pytest.mark.parametrize('make,shape', [(lambda: tabular_mlp(12, seed=0), (12,)), (lambda: digit_cnn((1, 8, 8), seed=0), (1, 8, 8)), (lambda: strided_cnn((1, 8, 8), seed=0), (1, 8, 8)), (lambda: text_cnn(8, seed=0), (9, 8))])
def test_relevance_is_conserved_where_rules_ignore_biases(make, shape):
    net = make().double().eval()
    x = torch.rand(10, *shape, dtype=torch.double)
    whole = lrp(net, x, 1, [((nn.Linear, nn.Conv1d), partial(epsilon, 1e-9, bias=False)), (nn.Conv2d, positive)], first=z_box if len(shape) == 3 else None)
    assert (whole.delta.abs() <= 1e-6*whole.values.abs().flatten(1).sum(1)).all()   # shares of both signs may be far larger than the logit
    with_biases = lrp(net, x, 1)
    assert torch.allclose(with_biases.values.flatten(1).sum(1) + with_biases.delta, with_biases.logit)
    assert with_biases.delta.abs().max() > 1e-6                          # biases do take a share


def state(net):
    return dict(weights={k: v.clone() for k,v in net.state_dict().items()}, at=[p.data_ptr() for p in net.parameters()], wants=[p.requires_grad for p in net.parameters()],
                grads=[p.grad for p in net.parameters()], training=[m.training for m in net.modules()], keys=[sorted(m.__dict__) for m in net.modules()],
                hooks=[len(m._forward_hooks) + len(m._backward_hooks) + len(m._forward_pre_hooks) for m in net.modules()], rng=torch.random.get_rng_state())


@pytest.mark.parametrize('fails', [False, True])
def test_the_model_is_left_as_it_was_found(fails):
    net = digit_cnn((1, 8, 8), seed=0)
    net[0].train(); net[3].eval(); net[0].weight.requires_grad_(False)
    x = torch.rand(2, 1, 8, 8)
    before = state(net)
    if fails:
        with pytest.raises(ZeroDivisionError): lrp(net, x, 1, [(nn.Conv2d, lambda: 1/0)])
    else: lrp(net, x, 1, [(nn.Conv2d, gamma)], z_box)
    after = state(net)
    for k in before:
        if k == 'weights': assert all(torch.equal(v, after[k][n]) for n,v in before[k].items())
        elif k == 'rng': assert torch.equal(before[k], after[k])
        else: assert before[k] == after[k], k
    assert not x.requires_grad


def test_rows_do_not_depend_on_each_other():
    net,x = digit_cnn((1, 8, 8), seed=0), torch.rand(7, 1, 8, 8)
    one = lrp(net, x, [0, 1, 2, 3, 4, 5, 6], batch=7).values
    assert torch.allclose(lrp(net, x, [0, 1, 2, 3, 4, 5, 6], batch=2).values, one, atol=1e-5)
    with torch.no_grad(): assert torch.equal(lrp(net, x, [0, 1, 2, 3, 4, 5, 6], batch=7).values, one)


def test_a_table_is_named_and_an_unknown_domain_numbered():
    t = columns()
    rel = relevance(t.model, t.domain, t.x[:4])
    assert rel.df().feature.tolist()[:4] == [f'group {g}' for g in range(4)] and len(rel.df()) == 16
    assert torch.allclose(rel.by_group.sum(1) + rel.delta, rel.logit)     # siblings of a category are one line
    task = load_task('breast_cancer')
    rel = relevance(task.model, task.domain, task.X_test.iloc[:2], target=0)
    df = rel.df()
    assert df.feature.tolist()[:30] == list(task.X_test.columns) and df.value.tolist()[:30] == task.X_test.iloc[0].tolist()
    assert rel.target.tolist() == [0, 0] and 'alt="input 0, class 0: ' in rel._repr_html_()


def test_words_can_be_read_without_colour():
    task = load_task('toy_reviews')
    rel = relevance(task.model, task.domain, ['The <plot> is awful & dull.', 'A superb cast'])
    out = rel.words(0)
    df = rel.df().query('row == 0')
    strong = df[df.relevance.abs() >= .25*df.relevance.abs().max()]
    assert out.count('<sub>') == len(strong) >= 1 and out.count('<u>') == 1 and '&lt;' in out and '&amp;' in out
    assert df.loc[df.relevance.abs().idxmax()].feature in out.split('<u><b>')[1].split('</b>')[0]
    assert rel.df().query('row == 1').feature.tolist() == ['A', 'superb', 'cast']


def test_counterfactuals_are_explained_for_their_target():
    task = load_task('digits')
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    cfs = cf.explain(task.X_test[:4], target=[(y + 1) % 10 for y in task.y_test[:4]])
    rel = relevance(task.model, task.domain, cfs)
    assert torch.equal(rel.target, cfs.tensors.target) and torch.equal(rel.x, cfs.xp)
    low = images(block=2, bounds=(-1., 1.))
    assert relevance(task.model, low, task.X_test[:1]).values.isfinite().all()


def test_relevance_calls_classes_as_the_model_does():
    df = pd.DataFrame(torch.rand(40, 3, generator=torch.manual_seed(0)).numpy(), columns=list('abc'))
    net, domain = nn.Sequential(nn.Linear(3, 2)).double(), tabular(df)
    net.classes_ = ('refused', '<b>granted</b>')
    rel = relevance(net, domain, df.iloc[:2], '<b>granted</b>')
    assert rel.target.tolist() == [1, 1] and rel.name(0) == '<b>granted</b>'
    assert 'for <b>granted</b>: logit' in rel.plot().axes[0].get_title() and 'class 1' not in rel._repr_html_()
    cfs = GradualCF(net, domain, 'sparse', classes=['no', 'yes']).fit(df)
    if set(cfs.z_train.argmax(1).tolist()) == {0, 1}: assert relevance(net, domain, cfs.explain(df.iloc[:2], 'yes')).name(1) == 'yes'
    del net.classes_
    assert relevance(net, domain, df.iloc[:2], 1).name(0) == 'class 1'
