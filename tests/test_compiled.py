"The engine in C against the one in Python: size, distance and proof are the same wherever both prove; and what happens without it."
import ctypes.util
import shutil
import sys
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
from cheapest import cheapest
from questions import SAID, question
from sklearn import ensemble

from gradual_cf.all import GradualCF, tabular
from gradual_cf.search import compiled
from gradual_cf.search.proven import _IS_OPTIMAL, NONE_EXISTS

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.filterwarnings(*SAID)
built = pytest.mark.skipif(compiled._library() is None, reason='needs a C compiler at installation')


HIST = dict(max_iter=12, max_depth=4, min_samples_leaf=4, categorical_features='from_dtype', random_state=0)
MAKES = dict(hist='hist', number='hist_number', lightgbm='lightgbm', xgboost='xgboost', forest='pipe_forest', boosting='boosting')


def explainer(make, seed, classes=2):
    "A made question's explainer of a small model, its rows, and its target."
    kind, decision = ['holes', 'codes', 'tenths', 'gaps'][seed % 4], {2: 'two', 3: 'three'}[classes]
    case = dict(model=MAKES[make], kind=kind, rule='free', price='plain', decision=decision, ask='as usual')
    while (q := question(case, seed)) is None: seed += 1  # no row of it is worth a question
    return q.cf, q.X, q.target


def rules(rng):
    "What a question may say besides."
    every = dict(immutable=['c'], increase_only=['b'], bounds={'b': (1, 4)}, max_changes=int(rng.integers(1, 3)))
    return {name: v for name, v in every.items() if rng.random() < .3}


def in_both(monkeypatch, ask):
    "What a question is answered with and without the library, and how often C was asked."
    calls, own = [], compiled._by_engine
    monkeypatch.setattr('gradual_cf.search.proven._by_engine', lambda *a: (calls.append(1), own(*a))[1])
    with_it = ask()
    with monkeypatch.context() as m:
        m.setattr(compiled, '_library', lambda: None)
        without = ask()
    return with_it, without, len(calls)


def compared(a, b):
    "Holds the answers of both engines against each other; how many rows both prove."
    proven = [np.isin(v.proof, [_IS_OPTIMAL, NONE_EXISTS]) for v in (a, b)]
    both = proven[0] & proven[1]
    assert (np.array(a.proof) == b.proof)[both].all()
    for mine, other in ((a.size, b.size), (a.distance, b.distance), (a.bound, b.bound)):
        np.testing.assert_allclose(mine[both], other[both], rtol=1e-6, atol=1e-6)
    for v, other in ((a, b), (b, a)): assert (v.bound <= other.size + 1e-6).all()  # no bound is above what the other one found
    assert (a.answers.valid == b.answers.valid)[both].all() and (a.answers.xp == b.answers.xp)[both].all()  # of equal answers the first
    return both.sum()


def asked(monkeypatch, make, seed, rows=12):
    "How many rows of some questions both prove."
    rng = np.random.default_rng(seed)
    classes = 3 if seed % 3 == 2 and make != 'number' else 2
    if make in ('lightgbm', 'xgboost'): pytest.importorskip(make)
    cf, X, target = explainer(make, seed, classes)
    if cf.model.predictor.over: return 0 # its own `predict` decides ties by the last bit, which nothing here reads
    told, some = rules(rng), X[X.b.between(1, 4)].sample(rows, random_state=seed)
    if make != 'number': target = 1 if classes > 2 else None
    optimal = ('columns', 'distance')[seed % 2]
    a, b, calls = in_both(monkeypatch, lambda: cheapest(cf, some, target, optimal, start=False, **told))
    assert calls
    return compared(a, b)


@pytest.mark.night
@built
@pytest.mark.parametrize('make', MAKES)
def test_both_engines_prove_the_same(make, monkeypatch):
    assert sum(asked(monkeypatch, make, seed) for seed in range(6)) >= 60


@pytest.mark.parametrize('optimal', ['columns', 'distance'])
def test_of_answers_that_cost_the_same_the_first_is_told(optimal, monkeypatch):
    "Fewer columns, then the first columns, then the first levels and the smaller numbers; every legal row is asked."
    rng, levels, ties = np.random.default_rng(4), list('pqr'), 0
    X = pd.DataFrame(dict(a=rng.integers(0, 3, 150), k=pd.Categorical(rng.choice(levels, 150)), b=rng.integers(0, 3, 150), m=pd.Categorical(rng.choice(levels, 150))))
    y = (X.a - 1)**2 + (X.b - 1)**2 + X.k.isin(['p', 'r']) + X.m.isin(['q', 'r']) > 2
    model = ensemble.HistGradientBoostingClassifier(**HIST).fit(X, y)
    cf, rows = GradualCF(model, tabular(X), 'sparse').fit(X), X[~model.predict(X)].iloc[:12]
    every = np.array(list(np.ndindex(3, 3, 3, 3)))
    there = model.predict(pd.DataFrame({c: pd.Categorical.from_codes(v, dtype=X[c].dtype) if c in 'km' else v for c, v in zip(X, every.T)}))
    answers = [v.answers.raw for v in in_both(monkeypatch, lambda: cheapest(cf, rows, True, optimal, start=False))[:2]]
    number = lambda df: np.stack([df[c].cat.codes if c in 'km' else df[c] for c in X], 1)
    for i, own in enumerate(number(rows)):
        moved = every != own
        far = (np.abs(every - own)[:, ::2]/2).sum(1) + 2.*moved[:, 1::2].sum(1)
        rule = lambda j: (moved[j].sum()*(optimal == 'columns'), far[j].round(9), moved[j].sum(), (~moved[j]).tolist(), every[j].tolist())
        first = min(np.flatnonzero(there), key=rule)
        ties += sum(rule(j)[:2] == rule(first)[:2] for j in np.flatnonzero(there)) > 1
        assert [number(v)[i].tolist() for v in answers] == [every[first].tolist()]*2
    assert ties > 3


@built
def test_slices_and_company_change_no_answer(monkeypatch):
    cf, X, _ = explainer('hist', 3)
    whole = cf.explain(X.iloc[:10])
    monkeypatch.setattr(compiled, '_SLICE', 37)
    for i in range(10):
        alone = cf.explain(X.iloc[[i]])
        assert (alone.xp == whole.xp[i]).all() and alone.proof[0] == whole.proof[i]


@built
def test_ctrl_c_ends_a_search_with_what_is_known(monkeypatch):
    cf, X, _ = explainer('hist', 3)
    ours, count = compiled._taken, []
    def pressed(go, work, until):
        count.append(1)
        if len(count) == 6: raise KeyboardInterrupt
        ours(go, work, until)
    monkeypatch.setattr(compiled, '_taken', pressed)
    rows = X[cf.model.predictor.source.predict(X) == 0].iloc[:10]
    told = cheapest(cf, rows, start=False).proof
    assert _IS_OPTIMAL in told[:5] and not np.isin(told[5:], [_IS_OPTIMAL, NONE_EXISTS]).any() and len(count) == 6
    monkeypatch.setattr(compiled, '_taken', ours)
    assert np.isin(cheapest(cf, rows, start=False).proof, [_IS_OPTIMAL, NONE_EXISTS]).all()


FOREIGN = ctypes.util.find_library('m')


@pytest.mark.parametrize('kind', ['missing', 'empty', 'text', 'foreign', 'older'])
def test_a_broken_or_foreign_library_is_not_used(kind, tmp_path, monkeypatch):
    file = tmp_path/'core.so'
    if kind == 'empty': file.write_bytes(b'')
    if kind == 'text': file.write_text('no library')
    if kind == 'foreign':
        found = next((p for p in map(Path, ('/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu', '/usr/lib', '/lib64')) if (p/(FOREIGN or '-')).exists()), None)
        if found is None: pytest.skip('no library of mathematics at hand')
        shutil.copy(found/FOREIGN, file)
    if kind == 'older':
        if compiled._library() is None: pytest.skip('needs a C compiler at installation')
        shutil.copy(next(p for name in compiled._FILES if (p := ROOT/'gradual_cf/search'/name).exists()), file)
        monkeypatch.setattr(compiled, '_VERSION', compiled._VERSION + 1)
    said = dict(missing='there is none', foreign='has no function', older='version').get(kind, 'cannot be used')
    with pytest.warns(UserWarning, match=said) as seen: assert compiled._library_in(tmp_path) is None
    assert len(seen) == 1


@pytest.mark.night
def test_one_warning_says_that_python_does_the_work(monkeypatch, tmp_path):
    cf, X, _ = explainer('hist', 3)
    loaded = compiled.cache(lambda: compiled._library_in(tmp_path))
    monkeypatch.setattr(compiled, '_library', loaded)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        assert _IS_OPTIMAL in cf.explain(X.iloc[:3]).proof + cf.explain(X.iloc[:3]).proof
    assert len([w for w in seen if 'without the compiled engine' in str(w.message)]) == 1


def test_the_source_is_what_its_chapter_says():
    sys.path.insert(0, str(ROOT/'docs'))
    from export import in_c
    assert (ROOT/'gradual_cf/search/core.c').read_text() == in_c('search/12_compiled.ipynb')


@built
@pytest.mark.parametrize('leaves', [2, 64, 65, 300])
def test_a_column_left_open_says_what_written_rows_do(leaves):
    "Trees whose leaves fit into a word are asked by bits, and larger ones walked: every change says the same as the row that is written down."
    from gradual_cf.search.judge import _known_of
    rng = np.random.default_rng(leaves)
    X = pd.DataFrame(dict(a=rng.normal(size=900).round(2), b=rng.normal(size=900).round(1), c=rng.choice(list('uvwxyz'), 900)))
    y = (X.a + (X.c == 'w') + rng.normal(size=900) > X.b).astype(int)
    X.loc[rng.random(900) < .1, 'b'] = np.nan
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=leaves, min_child_samples=1, verbose=-1, n_jobs=1).fit(X.astype(dict(c='category')), y)
    cf = GradualCF(model, X.astype(dict(c='category')), 'sparse', wanted=1).fit(X.astype(dict(c='category')))
    known, x = _known_of(cf), cf.x_train[:5].double().numpy()
    every = np.arange(len(known.places.owner))
    change = known.engine.changes(x, np.ones((5, len(every)), bool))
    for row, said in zip(x, change):
        written = known.engine.sums(known.places.put(np.repeat(row[None], len(every), 0), every))
        np.testing.assert_allclose(said.T, written, atol=1e-9)
