"""Metrics against slow replicas by their words, and the work that coherence takes."""
import pytest
import torch
import toy
from written import load_task

from gradual_cf.all import Counterfactuals, GradualCF, coherence, evaluate, plausibility, predict
from gradual_cf.core import changed_groups
from gradual_cf.data.columns import MISSING
from gradual_cf.measures.metrics import in_range, out_of_range, _redundant
from gradual_cf.models.targets import target_prob

KINDS = ['different', 'pairs', 'alike', 'words', 'counts', 'twins']


def rows_of(kind, n, d, seed=0):
    "Rows that are all different, pairs, all like one row, 0/1, small counts, or equal twins."
    gen = torch.Generator().manual_seed(seed)
    x = torch.rand(n, d, generator=gen, dtype=torch.float64)
    if kind == 'pairs': x[n//2:n//2*2] = x[:n//2]; x[n//2:n//2*2, :3] += .01
    if kind == 'alike': x = torch.where(torch.rand(n, d, generator=gen) < 2/d, x, x[:1])
    if kind == 'words': x = (x < 3/d).double()
    if kind == 'counts': x = (x*20).round()/20
    if kind == 'twins': x[1::2] = x[:n//2*2:2][:len(x[1::2])]
    return x


def replica(x, xp, eps, least=.001):
    "Eq. 11, a pair at a time."
    worst = []
    for i in range(len(x)):
        ratios = [((xp[j] - xp[i]).norm()/(x[j] - x[i]).norm()).item() for j in range(len(x))
                  if not torch.equal(x[i], x[j]) and (eps is None or ((x[j] - x[i]).abs() >= least).sum() <= eps)]
        if ratios: worst.append(max(ratios))
    return worst


@pytest.mark.parametrize('kind', KINDS)
def test_coherence_equals_a_slow_replica(kind):
    x = rows_of(kind, 40, 12)
    xp = x + rows_of('different', 40, 12, 1)
    table = coherence(x, xp, eps=(3, 8, None)).set_index('eps')
    for e in (3, 8, None):
        slow = torch.tensor(replica(x, xp, e), dtype=torch.float64)
        line = table.loc['all' if e is None else e]
        assert line.share == len(slow)/40
        if len(slow): assert line['mean'] == pytest.approx(slow.mean().item(), rel=1e-6) and line['std'] == pytest.approx(slow.std(correction=0).item(), rel=1e-5, abs=1e-9)


def test_redundant_counts_what_was_added_for_nothing():
    t = toy.columns()
    e = GradualCF(t.model, t.domain, 'sparse').fit(t.x)
    cfs = e.explain(t.x[:40])
    plain = _redundant(e, cfs)
    assert (plain == 0).double().mean() > .9
    used = changed_groups(cfs.x, cfs.xp, t.groups)
    x,xp = cfs.x.clone(), cfs.xp.clone()
    spare = (~used).to(torch.uint8).argmax(1)
    for i,g in enumerate(spare.tolist()): xp[i, t.groups == g] += 1e-6              # a change that moves nothing
    more = Counterfactuals(x, xp, cfs.mask, cfs.target, e.model(xp).softmax(1).gather(1, cfs.tensors.target[:, None])[:, 0].detach(), t.domain, cfs.before, cfs.tau, x, xp)
    still = more.tensors.valid & cfs.tensors.valid & ~used[range(40), spare]
    assert still.sum() > 20 and (_redundant(e, more)[still] >= 1).all()


def test_plausibility_and_range_by_hand():
    train,z = torch.tensor([[0., 0], [2, 0], [0, 9]]), torch.tensor([[1., 0], [1, 0], [0, 1]])
    assert plausibility(torch.tensor([[1., 0]]), torch.tensor([0]), train, z).item() == 1
    assert plausibility(train, torch.tensor([0, 0, 1]), train, z, k=1).tolist() == [0, 0, 0]
    assert out_of_range(torch.zeros(1, 2), torch.tensor([[3., 1]]), train).item() == .5


@pytest.mark.night
@pytest.mark.parametrize('name', ['breast_cancer', 'digits', 'toy_reviews'])
def test_evaluate_measures_everything_that_applies(name):
    task = load_task(name)
    rows = task.X_test[:4] if name == 'digits' else task.X_test.iloc[:8]
    target = (task.y_test[:4] + 1) % 10 if name == 'digits' else None
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    t,cfs = evaluate(cf, rows, target, judge=task.judge), cf.explain(rows, target)
    assert list(t.columns) == ['metric', 'eps', 'mean', 'std', 'share']
    want = {'valid', 'l1', 'l2', 'legal', 'in_range', 'out_of_range', 'logit_gap', 'plausibility', 'redundancy', 'minimal', 'seconds_per_row'}
    want |= dict(breast_cancer={'coherence', 'judge'}, digits={'blocks', 'judge'}, toy_reviews={'words', 'coherence'})[name]
    assert want <= set(t.metric) and t[~t.metric.isin(['coherence', 'reads', 'tag_kept'])]['mean'].notna().all()
    one = t[t.metric != 'coherence'].set_index('metric')['mean']
    reached = target_prob(predict(cf.model, cfs.xp), cfs.tensors.target) >= (cf.settings.tau or .5)
    assert one.valid == reached.double().mean() and (reached.all() or name == 'digits' and reached.sum() >= 3)
    assert one.legal == 1 and 0 <= one.out_of_range <= (name == 'digits')


def test_missing_cells_have_no_say_in_the_range():
    x = torch.tensor([[MISSING, .2], [.5, .4], [.9, MISSING]])
    assert in_range(torch.tensor([[.5, .3], [.4, .3], [MISSING, .3], [.6, MISSING]]), x).tolist() == [True, False, True, True]


def test_without_what_reads_texts_there_is_no_value_for_reading(monkeypatch):
    "The extra `fluent` may be missing: a measure that nobody can take is there, and empty."
    from gradual_cf.data import datasets as tasks
    from gradual_cf.data import texts as text
    for module in (tasks, text): monkeypatch.setattr(module, '_can_tag', lambda: False)
    task = load_task('toy_reviews')
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    mean = evaluate(cf, task.X_test.iloc[:4], eps=()).set_index('metric')['mean']
    assert mean[['reads', 'tag_kept']].isna().all() and mean[['words', 'cosine', 'known']].notna().all()
