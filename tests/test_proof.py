"Certificates against asking every legal value there is."
import itertools
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from cover import cover, few
from sklearn import ensemble, isotonic, pipeline, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from torch import nn

from gradual_cf.all import GradualCF, predict, predictor, tabular
from gradual_cf.search.boxes import grid_of
from gradual_cf.models.targets import arrived
from gradual_cf.search.proven import _counted, _proof
from gradual_cf.search.robust import region
from gradual_cf.search.readings import _readings

INFEASIBLE = 'none exists'


def bounded(cf):
    "Whether a model has bounds."
    return _readings(cf, grid_of(cf.domain.features)) is not None


def small(seed, classes=2):
    "A small frame of whole numbers and levels, and a rule with noise."
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(dict(a=rng.integers(0, 6, 300), b=rng.integers(0, 4, 300), c=rng.integers(0, 5, 300)))
    X['flag'] = pd.Categorical(rng.choice(['no', 'yes', 'may'], 300))
    z = rng.normal(size=3) @ X[['a', 'b', 'c']].to_numpy().T + 3*rng.normal()*(X.flag == 'yes') + rng.normal(size=300)
    return X, np.searchsorted(np.quantile(z, np.arange(1, classes)/classes), z), rng


def rules(rng, columns):
    "Random constraints of a question."
    return dict(immutable=[c for c in columns[:2] if rng.random() < .2], increase_only=['c'] if rng.random() < .3 else [],
                bounds={'a': (1, 4)} if rng.random() < .3 else {}, max_changes=int(rng.integers(1, 5)))


def test_an_even_chance_is_decided_for_the_first_class():
    X = pd.DataFrame(dict(a=np.arange(10)))
    lead = lambda x: torch.where(x < .5, -1., torch.where(x < .8, 0., 1.)) # a tie at 5, 6, 7
    cf = GradualCF(lambda x: torch.cat([0*x, lead(x)], 1), tabular(X), 'sparse', tau_slack=0.).fit(X)
    up, down = cf.explain(X, 1), cf.explain(X, 0)
    assert up.valid.all() and (up.raw.a >= 8).all() and (up.raw.a == X.a)[8:].all()
    assert up.already.tolist() == [False]*8 + [True]*2 and down.already.tolist() == [True]*8 + [False]*2
    assert down.valid.all() and (down.raw.a[8:] == 7).all()
    assert (replace(up, xp=torch.full_like(up.x, 7/9), decided=torch.zeros(10, 2, dtype=torch.bool)).prove()['verdict'] != 'optimal in columns').all()


def stepped(seed=0):
    "A rule that needs three columns at once."
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 10, (3000, 4)), columns=list('abcd'))
    return X, ((X[['a', 'b', 'c']] > 6).sum(axis=1) == 3).astype(int)


@cache
def three():
    "An explainer of a tree that knows the rule, and the answer of a row that needs three."
    X, y = stepped()
    cf = GradualCF(tree.DecisionTreeClassifier(random_state=0).fit(X, y), tabular(X), 'sparse').fit(X)
    return cf, cf.explain(pd.DataFrame([dict(a=1, b=2, c=3, d=4)]), 1)


def test_three_columns_are_proven():
    cf, answer = three()
    told = answer.prove()
    assert answer.valid.all() and told.verdict[0] == 'optimal in columns' and told['size'][0] == 3 and told.bound[0] == 3
    far = answer.prove('distance')
    assert far.bound[0] == pytest.approx((6 + 5 + 4)/9, abs=1e-4) and far.verdict[0] == 'optimal in distance'
    assert answer.prove('cost').verdict[0] == 'optimal in columns, then distance'


def test_what_greedy_missed_is_found():
    cf, answer = three()
    lost = replace(answer, xp=answer.x.clone(), prob=answer.before, mask=torch.zeros_like(answer.mask), decided=np.zeros_like(answer.decided))
    told = lost.prove()
    assert told.verdict[0] == 'missed: a legal change reaches the target' and told.best[0] == 3


def fewest_of_all(cf, answer):
    "For each row, the fewest columns of any legal change that reaches the target."
    features, enc = cf.domain.features, answer.enc
    values = [[np.eye(c.width)[i] for i in range(c.width)] if c.kind == 'category' else
              [np.array([(v - c.origin)/c.span]) for v in np.arange(c.low, c.high + 1)] for c in features]
    grid = torch.from_numpy(np.array([np.concatenate(v) for v in itertools.product(*values)])).to(answer.x)
    p, at, out = predict(cf.model, grid).softmax(1), np.cumsum([0, *(c.width for c in features)]), []
    for i, x in enumerate(answer.x):
        moved = torch.stack([(grid[:, a:b] != x[a:b]).any(1) for a, b in zip(at, at[1:])], 1)
        inside = ((grid >= enc.low[i] - 1e-6) & (grid <= enc.high[i] + 1e-6) | (grid == x)).all(1)
        most = enc.most[i] if enc.most is not None else len(features)
        ok = inside & ~(moved & enc.frozen[i]).any(1) & (moved.sum(1) <= most) & (p[:, answer.target[i]] >= .5)
        out.append(moved[ok].sum(1).min().item() if ok.any() else np.inf)
    return out


def holds(told, fewest):
    "Certificates against the fewest columns there are; one and two columns are decided."
    for (_, line), least in zip(told.iterrows(), fewest):
        assert line.bound <= least and (least > 2 or line.bound == least), (line.to_dict(), least)
        if line.verdict == INFEASIBLE: assert np.isinf(least)
        if line.verdict.startswith('optimal'): assert line['size'] == least


def network(width, outputs, seed):
    "A random network with ReLU."
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, outputs))


def own_network(how, seed):
    "A network with its own scaling or threshold, or one logit for two classes, and the frame that it reads."
    X, _, rng = small(seed)
    domain = tabular(X)
    enc = domain.encode(X).x
    net = network(enc.shape[1], 1 if 'single' in how else 2, seed)
    if 'scaler' in how:
        raw = np.concatenate([X[['a', 'b', 'c']].to_numpy(float), enc[:, 3:].numpy()], 1)
        scaled = StandardScaler().fit(raw)
    else: scaled = False if 'raw' in how else None
    model = predictor(net, domain, threshold=.35 if 'threshold' in how else .5, scaled=scaled)
    z = model(enc.float()).detach()
    net[-1].bias.data += .5*(z[:, 0] - z[:, 1]).mean().item()*torch.tensor([2.] if 'single' in how else [-1., 1.])
    return X, model, domain, rng


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('how', ['raw', 'scaler', 'threshold', 'single', 'scaler single threshold'])
def test_networks_with_their_own_scaling_equal_asking_everything(how, seed):
    X, model, domain, rng = own_network(how, seed)
    cf = GradualCF(model, domain, 'sparse').fit(X)
    assert bounded(cf)
    answer = cf.explain(X.head(30), **rules(rng, list(X.columns)))
    told = answer.prove()
    assert (told.how != 'all proposed values').all()
    holds(told, fewest_of_all(cf, answer))


def test_layers_that_do_not_say_what_the_model_says_are_not_bounded():
    X, model, domain, _ = own_network('threshold', 0)
    odd = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
    assert not bounded(GradualCF(predictor(network(6, 2, 0), domain, scaled=odd), domain, 'sparse').fit(X))
    class Otherwise(nn.Sequential):
        def forward(self, x): return self.of(super().forward(x))
    for of, read in ((lambda z: 2*z, True), (lambda z: z*(z - 4), False), (lambda z: z.flip(1), False)):
        net = Otherwise(*network(6, 2, 0))
        net.of = of
        assert bounded(GradualCF(net, domain, 'sparse').fit(X)) == read
    for ends, read in (([nn.Softmax(1)], True), ([nn.Softmax(1), nn.Identity()], False), ([nn.Softmax(1), nn.Softmax(1)], False)):
        assert bounded(GradualCF(predictor(nn.Sequential(*network(6, 2, 0), *ends), domain, kind='proba'), domain, 'sparse').fit(X)) == read
    assert bounded(GradualCF(predictor(network(6, 1, 0), domain, kind='number'), domain, 'sparse').fit(X))


def test_a_bound_of_what_was_asked_says_so():
    words = lambda size, bound, *counted: _proof((size, bound)*2, counted=_counted(*counted, size))
    assert words(4., 3., 'columns', 'all proposed values') == 'within 34% in columns on all proposed values'
    assert words(4., 3., 'distance', 'boxes') == 'within 34% in distance'
    assert [words(*v, 'columns', 'boxes') for v in ((4., 0.), (np.inf, 1.))] == ['best so far', 'none found so far']
    assert _proof((np.inf, 1.)*2, best=4.) == 'missed: a legal change reaches the target'


def test_other_models_are_tried_on_what_is_proposed():
    X, y = stepped()
    cf = GradualCF(svm.SVC().fit(X, y), tabular(X), 'sparse').fit(X)
    answer = cf.explain(X.head(20), 1)
    told = answer.prove()
    assert (told.how == 'all proposed values').sum() > 10 and (told.verdict == 'optimal in columns on all proposed values').any()
    assert not answer.prove('cost').verdict[told.how != 'asked'].str.startswith('optimal').any()  # of distances nothing is known


# Calibrated trees: a curve behind them, or one for each fold
CURVED = dict(forest=lambda: ensemble.RandomForestClassifier(7, max_depth=3, random_state=0), extra=lambda: ensemble.ExtraTreesClassifier(7, max_depth=3, random_state=0),
              boosted=lambda: ensemble.GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0), hist=lambda: ensemble.HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5),
              exponential=lambda: ensemble.GradientBoostingClassifier(n_estimators=8, max_depth=2, loss='exponential', random_state=0), tree=lambda: tree.DecisionTreeClassifier(max_depth=3, random_state=0))


def of_folds(kind, method, folds):
    "Whole numbers from 0 to 3, each row there may be, and a model with trees and a curve for each fold, or with one of either."
    r, one = np.random.default_rng([0, dict(single=5, frozen=6).get(folds, folds)]), CURVED[kind]()
    df = pd.DataFrame(r.integers(0, 4, (150, 3)), columns=list('abc'))
    labels, how = np.where(df.a - .7*df.b + .4*df.c + r.normal(0, 1, 150) > .5, 'yes', 'no'), dict(method=method.replace('falling', 'sigmoid'))
    if folds == 'frozen': m = CalibratedClassifierCV(pytest.importorskip('sklearn.frozen').FrozenEstimator(one.fit(df, labels)), **how).fit(df.iloc[::2], labels[::2])
    else: m = CalibratedClassifierCV(one, cv=3 if folds == 'single' else folds, ensemble=folds != 'single', **how).fit(df, labels)
    for c in m.calibrated_classifiers_[::2] if method == 'falling' else (): c.calibrators[0].a_ *= -1
    return df, pd.DataFrame(list(itertools.product(range(4), repeat=3)), columns=list('abc')), m


def there_at(cf, every, k): return arrived(predict(cf.model, cf.encode(every).x), torch.full((len(every),), k), cf.tau).numpy()


def holds_everywhere(cf, every, k, optimal):
    "The proofs of all rows that are not there yet, against each row there may be; how many rows these are."
    cells, there = every.to_numpy(), there_at(cf, every, k)
    if there.all(): return 0
    rows = every[~there]
    a = cf.explain(rows, cf.model.classes_[k], proof=optimal)
    for i,x in enumerate(rows.to_numpy()):
        if not there.any(): assert a.proof[i] == 'none exists' and not a.valid[i]
        else:
            cost = lambda v: ((v != x).sum(-1), np.abs(v - x).sum(-1))
            least, own = min(zip(*cost(cells[there]))), cost(a.raw.to_numpy()[i])
            if optimal is None and a.proof[i] != 'optimal':  # a real row is nearer than the fewest columns, and the answer no farther than it
                assert a.valid[i] and own[1] <= cost(cf.x_train[arrived(cf.z_train, torch.full((len(cf.z_train),), k), cf.tau)].numpy()*3)[1].min() + 1e-6 < least[1] + 1e-3
            else: assert a.proof[i] == 'optimal' and a.valid[i] and own == least
    far = (np.abs(cells[there] - rows.to_numpy()[:, None]).sum(2)/3).min(1, initial=np.inf)
    assert np.allclose(a.prove(norm='distance').bound, far, atol=1e-6)
    for i,box in region(cf, a, free=list('abc')).groupby('row'):
        ends = box.set_index('feature').loc[list('abc')]
        assert there[((cells >= ends.low.to_numpy()) & (cells <= ends.high.to_numpy())).all(1)].all()
    return len(rows)


@pytest.mark.night
@pytest.mark.parametrize('kind,method,folds', cover(CURVED, ['isotonic', 'falling', 'sigmoid'], [3, 2, 4, 'single', 'frozen']))
def test_calibrated_trees_are_read_and_their_proofs_hold_for_all_rows(kind, method, folds):
    df, every, m = of_folds(kind, method, folds)
    share, looked = m.predict_proba(every), 0
    sure = np.sort(share.max(1))[len(share)//2]*(1 - 3e-9) # a hair less than some rows have
    for tau,optimal in ((.5, 'columns'), (sure, None)):
        cf = GradualCF(m, tabular(df), 'sparse', tau=tau).fit(df)
        assert 'read exactly' in cf.model.about
        assert np.allclose(cf.model.scores(cf.encode(every).x).softmax(1), share, atol=1e-9)
        looked += sum(holds_everywhere(cf, every, k, optimal) for k in cf.model(cf.x_train).argmax(1).unique().tolist())
    assert looked


@pytest.mark.night
@pytest.mark.parametrize('kind, row', few([('forest', 50), ('hist', 37), ('exponential', 37), ('extra', 20), ('boosted', 50), ('tree', 20)], 2))
def test_proofs_hold_where_every_curve_jumps_at_the_sums_of_a_row(kind, row):
    "The last digit of a sum decides whether the row is an answer."
    df, every, m = of_folds(kind, 'isotonic', 5)
    for c in m.calibrated_classifiers_:
        scores = getattr(c.estimator, 'decision_function', lambda x: c.estimator.predict_proba(x)[:, 1])
        end = scores(every)[row]
        c.calibrators = [isotonic.IsotonicRegression(out_of_bounds='clip').fit([end - 5e-11, end], [.2, .8])]
    cf = GradualCF(m, tabular(df), 'sparse', tau=.8*(1 - 3e-9)).fit(df)
    assert 'read exactly' in cf.model.about and there_at(cf, every, 1)[row]
    assert holds_everywhere(cf, every, 1, 'columns') > 20


def test_several_folds_behind_a_pipeline_with_categories_and_in_a_copy():
    df, every, m = of_folds('forest', 'isotonic', 3)
    piped = pipeline.make_pipeline(StandardScaler(), m).fit(df, m.predict(df))
    cf = GradualCF(piped, tabular(df), 'sparse').fit(df)
    there, rows = there_at(cf, every, 1), every[::7]
    a = cf.explain(rows, 'yes', proof='columns')
    fewest = (every.to_numpy()[there] != rows.to_numpy()[:, None]).sum(2).min(1)
    assert a.proof == ['optimal']*len(rows) and np.array_equal((a.raw.to_numpy() != rows.to_numpy()).sum(1), fewest)
    flagged = df.assign(d=pd.Categorical(np.where(df.index % 3, 'x', 'y')))
    hist = CalibratedClassifierCV(ensemble.HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, categorical_features='from_dtype'), cv=4)
    hist.fit(flagged, np.where(df.a + 2*(flagged.d == 'x') > 3, 'yes', 'no'))
    cf = GradualCF(hist, tabular(flagged), 'sparse').fit(flagged)
    assert 'read exactly' in cf.model.about and cf.explain(flagged[:20], 'yes', proof='columns').proof == ['optimal']*20
    df, every, m = of_folds('boosted', 'falling', 2)
    cf = GradualCF(m, tabular(df), 'sparse').fit(df)
    again = pickle.loads(pickle.dumps(cf))
    assert torch.equal(again.model.scores(cf.x_train), cf.model.scores(cf.x_train))


@pytest.mark.night
def test_curves_that_are_not_read_are_asked():
    df, every, m = of_folds('forest', 'sigmoid', 3)
    y = (df.a > df.b).astype(int)
    inner = [pytest.importorskip('lightgbm').LGBMClassifier(n_estimators=5, verbose=-1, min_child_samples=5), pytest.importorskip('xgboost').XGBClassifier(n_estimators=5)]
    inner += [pipeline.make_pipeline(StandardScaler(), ensemble.RandomForestClassifier(5, random_state=0)), svm.LinearSVC()]
    for one,labels in [(v, y) for v in inner] + [(ensemble.RandomForestClassifier(5, random_state=0), df.a.clip(0, 2))]:
        for several in (False, True):
            cf = GradualCF(CalibratedClassifierCV(one, ensemble=several, cv=3).fit(df, labels), tabular(df), 'sparse').fit(df)
            assert ('asked' in cf.model.about) == (not isinstance(one, svm.LinearSVC)) and cf.explain(df.iloc[:5], 1).valid.all()
    rare = df.assign(d=pd.Categorical(np.where(df.index == 7, 'rare', np.where(df.index % 2, 'x', 'y'))))
    hist = ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features='from_dtype')
    for several,how in ((True, 'asked'), (False, 'read exactly')): # a fold that never saw a level
        assert how in GradualCF(CalibratedClassifierCV(hist, ensemble=several, cv=3).fit(rare, y), tabular(rare), 'sparse').fit(rare).model.about


def test_a_tie_of_shares_is_decided_as_the_forest_decides_it():
    "Two trees of one column each: one of them alone makes a tie, which is the first class's."
    frame = pd.DataFrame(dict(a=[0, 1, 2, 3]*10, b=[0, 1, 2, 3]*10))
    forest = next(f for f in (ensemble.RandomForestClassifier(2, max_depth=1, max_features=1, bootstrap=False, random_state=i).fit(frame, frame.a >= 2) for i in range(20))
                  if {t.tree_.feature[0] for t in f.estimators_} == {0, 1})
    cf = GradualCF(forest, tabular(frame, read=dict(integer=['a', 'b'])), 'sparse').fit(frame)
    for row, target, fewest in ((0, True, 2), (3, False, 1)):
        answer = cf.explain(frame.iloc[[row]], target, proof='columns')
        assert answer.proof == ['optimal'] and answer.mask.sum() == fewest and forest.predict(answer.raw).tolist() == [target]
