"""The nearest row of a tree ensemble, proven: this package's boxes beside the exact search of treecf.

    OMP_NUM_THREADS=1 python benchmarks/exact_trees.py [--rows 60] [--out benchmarks/results/exact_trees.csv]

The medium scenario of treecf's own comparison (wlazlod/treecf, scripts/bench_vs_competitors.py: a made credit population of 6,000 rows and
eight columns, XGBoost with 120 trees of depth 4), its first declined rows, towards approval. Both look for the least sum of changes, each
divided by the column's median absolute deviation as treecf measures it, in any number of columns. treecf 0.3.2 (from the package index, in a
folder beside the environment) may take any number between two cuts and knows no rules; here every value is one that the column could hold.
CPU time of the question alone, in turn, row by row; `together`: of all rows in one call.

`proven`: share that says so; `distance`: mean of what was found; `legal`: share of the other's answers that still decide otherwise when each
value is the nearest one that the column could hold; `above`: rows where ours is farther than such a one; `invalid`: answers that the model denies.
"""
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from clock import timed
from installed import install
from xgboost import XGBClassifier
from options import RESULTS, options

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'tests'))
from cheapest import cheapest  # noqa: E402

from gradual_cf.core import atomic
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

WHOLE = ['n_active_loans', 'n_loans_total', 'max_dpd_30d', 'max_dpd_12m', 'months_since_last_delinq', 'age']


def population(n=6000):
    "The rows and labels of the scenario; draws in the same order, so that they are the same rows."
    rng = np.random.default_rng(42)
    X = pd.DataFrame({'income_monthly': rng.lognormal(8.3, .5, n).round(-1), 'utilization': rng.beta(2, 3, n).round(3)})
    total = 1. + rng.poisson(4, n)
    X['n_active_loans'] = np.minimum(np.floor(total*rng.beta(3, 2, n)), total)
    X['n_loans_total'] = total
    late = np.floor(rng.exponential(6, n))*(rng.random(n) < .4)
    X['max_dpd_30d'], X['max_dpd_12m'] = np.floor(late*rng.beta(2, 4, n)), late
    X['months_since_last_delinq'] = rng.exponential(14, n).round(0)
    X['age'] = rng.integers(21, 75, n).astype(float)
    risk = -.9*np.log(X.income_monthly/4000) + 2.2*X.utilization + .35*X.max_dpd_30d + .15*X.max_dpd_12m - .02*X.months_since_last_delinq - .015*X.age
    return X, (risk + rng.logistic(scale=.8, size=n) > np.median(risk)).astype(int)


if __name__ == '__main__':
    how = options(__doc__, rows=60, folder=Path('.venv/exact'), out=RESULTS/'exact_trees.csv')
    install(how.folder, ['treecf==0.3.2'])
    try: from treecf import Counterfactual, Explainer, Target
    except ImportError as e: sys.exit(f'treecf cannot be imported: {e}')
    from treecf.objective import fit_normalizers
    X, y = population()
    model = XGBClassifier(n_estimators=120, max_depth=4, random_state=0, n_jobs=1).fit(X.to_numpy(), y)
    rows = X[model.predict_proba(X.to_numpy())[:, 1] > .5].head(how.rows)
    unit = fit_normalizers(X.to_numpy())
    spans = [c.span for c in tabular(X, read=dict(integer=WHOLE)).features]
    domain = tabular(X, cost={name: span/u for name, span, u in zip(X, spans, unit)}, read=dict(integer=WHOLE))
    cf = GradualCF(model, domain, 'sparse').fit(X)
    theirs, goal = Explainer(model, background=X.to_numpy()), Target.probability(range=(0., .5))
    exact = lambda x: theirs.explain(x, goal, backend='exact', seed=0, time_budget_s=60.)
    ours = lambda row: cheapest(cf, row, 0, 'cost', start=False)
    exact(rows.to_numpy()[0]), ours(rows.head(1))
    pairs = [(timed(lambda: exact(x)), timed(lambda: ours(rows.iloc[[i]]))) for i, x in enumerate(rows.to_numpy())]
    whole, together = timed(lambda: ours(rows))
    there = [isinstance(b, Counterfactual) for (b, _), _ in pairs]
    assert all(there), 'treecf found nothing for some rows'
    other = pd.DataFrame(np.stack([b.x_cf for (b, _), _ in pairs]), rows.index, X.columns)
    far = (np.abs(other.to_numpy() - rows.to_numpy())/unit).sum(1)
    mine = np.array([p.size[0] for _, (p, _) in pairs])
    raw = pd.concat([p.answers.raw for _, (p, _) in pairs])
    near = pd.DataFrame({c.name: np.where(other[c.name] == rows[c.name], rows[c.name], other[c.name].round(c.digits)) for c in domain.features}, rows.index)
    legal = domain.legal(rows, near).all(1) & (model.predict_proba(near.to_numpy())[:, 1] < .5)
    near_far = (np.abs(near.to_numpy() - rows.to_numpy())/unit).sum(1)
    denied = lambda frame: int((model.predict_proba(frame.to_numpy(float))[:, 1] > .5).sum())
    ms = lambda seconds: 1e3*np.array(seconds)
    lines = [dict(method='treecf, exact', values='any', proven=np.mean([b.proof == 'optimal' for (b, _), _ in pairs]), distance=far.mean(), invalid=denied(other),
                  legal=legal.mean(), ms=ms([t for (_, t), _ in pairs]).mean(), median_ms=np.median(ms([t for (_, t), _ in pairs]))),
             dict(method='boxes', values='legal', proven=np.mean([p.proof[0] == 'optimal' for _, (p, _) in pairs]), distance=mine.mean(), invalid=denied(raw),
                  legal=1., above=int((legal & (mine > near_far + 1e-5)).sum()), ms=ms([t for _, (_, t) in pairs]).mean(),
                  median_ms=np.median(ms([t for _, (_, t) in pairs])), together=1e3*together/len(rows))]
    assert np.allclose(whole.size, mine)
    out = pd.DataFrame(lines)
    print(out.round(3).T.to_string())
    with atomic(how.out) as path: out.round(4).to_csv(path, index=False)
