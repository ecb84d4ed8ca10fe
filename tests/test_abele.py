"""ABELE on the embedded digits: what its autoencoder, its breeding, its tree and its answers are worth."""
import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from written import load_task

from gradual_cf.all import ABELE, predict
from gradual_cf.baselines.lore import (_autoencoder_for, _breed_codes, _crossover, _points_in_leaves, _far_apart, _kernel, _mutate, _nearest_first, _points_between, _read_leaves)

SMALL = dict(latent=8, width=128, batches=400, lr=3e-3)     # the notebook's, so that both find the same file


@pytest.fixture(scope='module')
def task(): return load_task('digits')

@pytest.fixture(scope='module')
def fitted(task): return ABELE(task.model, task.domain, **SMALL).fit(task.X)


def test_digits_are_reconstructed(task, fitted):
    x,xt = (task.domain.encode(r).x for r in (task.X, task.X_test))
    with torch.no_grad(): back = fitted.auto(xt)
    assert (back - xt).square().mean() < .3*(xt - x.mean(0)).square().mean()
    assert (predict(task.model, back).argmax(1) == predict(task.model, xt).argmax(1)).double().mean() > .85


@pytest.mark.night
def test_the_autoencoder_is_kept(tmp_path, monkeypatch, task):
    monkeypatch.setenv('GRADUAL_CF_CACHE', str(tmp_path))
    x = task.domain.encode(task.X[:50]).x
    state = torch.random.get_rng_state()
    tiny = dict(latent=3, width=8, batches=4)
    one,files = _autoencoder_for(x, **tiny), sorted(tmp_path.iterdir())
    again = _autoencoder_for(x, **tiny)
    assert len(files) == 1 and files[0].suffix == '.safetensors' and sorted(tmp_path.iterdir()) == files
    assert all(torch.equal(a, b) for a,b in zip(one.parameters(), again.parameters()))
    _autoencoder_for(x, **tiny | dict(batches=5)), _autoencoder_for(x[:49], **tiny)
    assert len(list(tmp_path.iterdir())) == 3 and torch.equal(state, torch.random.get_rng_state())


def test_counter_exemplars_are_of_the_target(task, fitted):
    rows,target = task.X_test[20:28], (task.y_test[20:28] + 3) % 10
    cfs = fitted.explain(rows, target)
    assert cfs.valid.mean() >= .75
    assert (predict(task.model, cfs.xp).argmax(1) == cfs.target)[cfs.valid].all() and (cfs.prob[cfs.valid] >= .9).all()
    assert torch.equal(fitted.explain(rows, target).xp, cfs.xp)
    assert torch.equal(fitted.explain(rows[5:6], target[5:6]).xp[0], cfs.xp[5])
    assert cfs.domain.legal(cfs.data, cfs.raw).all()


def test_exemplars_keep_the_class_and_counter_exemplars_lose_it(task, fitted):
    for i in (20, 21, 22):
        t = int((task.y_test[i] + 1) % 10)
        e = fitted.exemplars(task.X_test[i:i + 1], t, n=4)
        own = predict(task.model, e.x).argmax(1)
        assert len(e.same) and (predict(task.model, e.same).argmax(1) == own).all() and (predict(task.model, e.counter).argmax(1) == t).all()


def test_paths_are_the_tree():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, (x[:, 0] > .3) + 2*(x[:, 2] > 0)*(x[:, 1] < .5))
    leaves,new = _read_leaves(tree), rng.normal(size=(200, 3)).astype(np.float32).astype(float)
    cover = leaves.holds(new[:, None])
    assert (cover.sum(1) == 1).all()
    assert leaves.label[cover.argmax(1)].tolist() == tree.predict(new).tolist()
    inside = _points_in_leaves(leaves, np.zeros(3))
    assert leaves.holds(inside[:, None]).diagonal().all() and (tree.predict(inside) == leaves.label).all()


def test_the_axis_of_the_model_is_the_axis_of_the_tree():
    "A model that reads one coordinate of the code: the nearest path crosses that coordinate only, and its threshold."
    z = _breed_codes(lambda z: _kernel(z, torch.zeros(4)), torch.zeros(400, 4), 3*torch.randn(500, 4, generator=torch.Generator().manual_seed(0)), generations=3, gen=torch.Generator().manual_seed(1))
    y = (z[:, 2] > .25).numpy().astype(int)
    assert 20 < y.sum() < 380
    leaves = _read_leaves(DecisionTreeClassifier(random_state=0).fit(z.double().numpy(), y))
    moved = _points_in_leaves(_nearest_first(leaves.take(leaves.label == 1), np.zeros(4)), np.zeros(4))[0]
    assert moved[[0, 1, 3]].tolist() == [0, 0, 0] and abs(moved[2] - .25) < .15


def test_breeding():
    gen = torch.Generator().manual_seed(0)
    z,pool = torch.randn(50, 6, generator=gen), torch.randn(80, 6, generator=gen)
    assert torch.equal(_mutate(z, pool, 0., gen), z) and torch.equal(_crossover(z, 0., gen), z)
    child = _crossover(z, 1., gen)
    assert ((child == z) | (child == z.roll(1, 0))).all() and (child != z).any()
    moved = _mutate(z, pool, 1., gen)
    assert ((moved >= torch.minimum(z, pool.amin(0))) & (moved <= torch.maximum(z, pool.amax(0)))).all()
    way = _points_between(z[0], pool, 30, gen, near=1)
    end = pool[(pool - z[0]).norm(dim=1).argmin()]
    assert torch.allclose((way - z[0]).norm(dim=1) + (way - end).norm(dim=1), (end - z[0]).norm(), atol=1e-4)
    assert torch.equal(_points_between(z[0], pool[:0], 3, gen), z[:1].expand(3, -1))
    assert _far_apart(torch.tensor([[0.], [1], [10], [4]]), 3).tolist() == [0, 2, 3]
