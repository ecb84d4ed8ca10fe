"""Our answers for series judged by the code of tscf-eval, beside two of its own methods.

    pip install --no-deps tscf-eval tslearn
    OMP_NUM_THREADS=1 python -m benchmarks.boards.tscf [--rows 20] [--seeds 3] [--data CBF]

`Ours` has the one method that tscf-eval asks of an explainer, `explain(x, y_pred)`, so their benchmark can run it too. Networks, rows and the
options of CoMTE and Native Guide are those of `benchmarks/series.py`. A line of `results/boards_tscf.csv` is a method: their metrics `validity` (another
class than before), `proximity_l2`, `sparsity` (share of values that change, as it comes out), `plausibility_lof` (share of inliers, by a local
outlier factor among the training series), `contiguity` (1: all changes in one stretch); `target` (the class that was asked for) and
`seconds` (CPU time a row) are ours.
"""
import argparse
import time

import numpy as np
import pandas as pd
import torch
from benchmarks.series import PEERS, Asked, networks, rows_of, theirs
from tscf_eval.evaluator import Contiguity, Evaluator, Plausibility, Proximity, Sparsity, Validity

from gradual_cf.core import atomic
from gradual_cf.data.series import series
from gradual_cf.gradual import GradualCF

METRICS = Validity('hard'), Proximity(2, 'lp'), Sparsity(), Plausibility('lof'), Contiguity()


class Ours:
    "`GradualCF` as tscf-eval asks: one series `(length,)` and its class; the answer, its class, and what else is known."
    def __init__(self, net, X, k): self.cf, self.k = GradualCF(net, series(X)).fit(X), k
    def explain(self, x, y_pred=None, class_of_interest=None):
        "The nearest decision otherwise, or `class_of_interest`."
        now = int(self.cf.model(self.cf.domain.encode(x[None]).x).argmax()) if y_pred is None else int(y_pred)
        targets = [k for k in range(self.k) if k != now] if class_of_interest is None else [int(class_of_interest)]
        answers = self.cf.explain(np.repeat(x[None], len(targets), 0), targets)
        far = (answers.xp - answers.x).flatten(1).norm(dim=1).numpy()
        best = int(np.where(answers.valid, far, np.inf).argmin())
        return answers.xp[best].flatten().numpy(), targets[best], dict(valid=bool(answers.valid[best]))


def asked(data, rows, seed):
    "A line for each method with one network."
    X, y, X_test, _ = rows_of(data)
    k = int(y.max()) + 1
    net, _ = networks(series(X).encode(X).x, y, k, seed)
    model, rng = Asked(net, k), np.random.default_rng(seed)
    x = np.asarray(X_test)[rng.permutation(len(X_test))[:rows]]
    target = (model.predict(x) + rng.integers(1, k, rows)) % k
    for method in ('ours', *PEERS):
        begin = time.process_time()
        if method == 'ours':
            ours = Ours(net, X, k)
            xp = np.stack([ours.explain(row, class_of_interest=t)[0] for row, t in zip(x, target)])
        else: xp = theirs(method, net, X, torch.as_tensor(x, dtype=torch.float32)[:, None], target, k)[:, 0].numpy()
        seconds = (time.process_time() - begin)/rows
        said = Evaluator(METRICS).evaluate(x, xp, model=model, X_train=np.asarray(X), y_train=np.asarray(y))
        said = {name: value for name, value in said.items() if not name.startswith('_')}
        yield dict(data=data, method=method, seed=seed, rows=rows, **said, target=(model.predict(xp) == target).mean(), seconds=seconds)


if __name__ == '__main__':
    options = argparse.ArgumentParser()
    options.add_argument('--rows', type=int, default=20)
    options.add_argument('--seeds', type=int, default=3)
    options.add_argument('--data', nargs='+', default=['CBF'])
    options.add_argument('--out', default='benchmarks/results/boards_tscf.csv')
    o = options.parse_args()
    lines = []
    for data in o.data:
        for seed in range(o.seeds):
            for line in asked(data, o.rows, seed):
                lines.append(line)
                print(line, flush=True)
                with atomic(o.out) as out: pd.DataFrame(lines).round(4).to_csv(out, index=False)
