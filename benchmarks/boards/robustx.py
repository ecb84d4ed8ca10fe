"""Our answers judged by the code of RobustX, beside its own methods.

    pip install --no-deps rocelib gurobipy clingo keras tabulate   # RobustX's package; Gurobi's free licence suffices for networks of this size
    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python -m benchmarks.boards.robustx [--rows 40] [--seeds 3]

`Ours` is a `RecourseGenerator` of theirs: register it in a `ClassificationTask` (`task.methods[name] = partial(Ours, way=...)`), and all that RobustX
offers works with it. The scenario is RobustX's own (examples/Benchmarking.ipynb): columns standardised, one hidden
layer of 8, breast cancer from malignant to benign; a row is asked if the network calls it malignant. A line of `results/boards_robustx.csv` is a
method: `validity`, `distance` (Euclidean), `delta_robust` (every network whose weights and biases differ by at most .005 agrees, by their program),
`noise` (the same class after noise of a tenth of each column's range): by their evaluators. `columns` and `seconds` (CPU time a row) are ours. Their
test of the manifold is left out: it compares scikit-learn's negative outlier factor with .9, which no row reaches. A method that raises has its
error in `note`.
"""
import argparse
import contextlib
import io
import sys
import time
from functools import partial

import gurobipy
import numpy as np
import pandas as pd
import torch

sys.modules.setdefault('gurobipy.gurobipy', gurobipy)  # where RobustX looks for it; the release that has such a module has no licence any more

from rocelib.datasets.DatasetLoader import DatasetLoader
from rocelib.evaluations.DistanceEvaluator import DistanceEvaluator
from rocelib.evaluations.robustness_evaluations.MC_Robustness_Implementations.DeltaRobustnessEvaluator import DeltaRobustnessEvaluator
from rocelib.evaluations.robustness_evaluations.NE_Robustness_Implementations.InvalidationRateRobustnessEvaluator import \
    InvalidationRateRobustnessEvaluator
from rocelib.evaluations.ValidityEvaluator import ValidityEvaluator
from rocelib.models.imported_models.PytorchModel import PytorchModel
from rocelib.recourse_methods.RecourseGenerator import RecourseGenerator
from rocelib.tasks.ClassificationTask import ClassificationTask
from sklearn.preprocessing import StandardScaler
from torch import nn

from gradual_cf.core import atomic
from gradual_cf.data.datasets import load_breast_cancer
from gradual_cf.data.tables import tabular
from gradual_cf.gradual import GradualCF

DELTA, WAYS = .005, dict(SPARSE='sparse', ROBUST='robust', PLAUSIBLE='plausible')
THEIRS = 'NNCE', 'KDTreeNNCE', 'BinaryLinearSearch', 'Wachter', 'MCE', 'MCER', 'RNCE', 'STCE', 'PROPLACE'


def trained(x, y, seed):
    "A network of RobustX's kind."
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(x.shape[1], 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=.001)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(x), y[:, None]).backward()
        optimizer.step()
    return net.requires_grad_(False)


class Table(DatasetLoader):
    "A table as RobustX reads it: `X` and a column `target`, of which the first `rows` of class 0 are asked."
    def __init__(self, X, target, rows):
        super().__init__('target', 0)
        self._data, self.rows = X.assign(target=target), rows
    @property
    def X(self): return self._data.drop(columns='target')
    @property
    def y(self): return self._data['target']
    def get_negative_instances(self): return super().get_negative_instances().head(self.rows)


class Ours(RecourseGenerator):
    "Answers of `GradualCF` as one of RobustX's methods; all rows are asked at once, and one without an answer comes back as it was."
    def __init__(self, task, way):
        super().__init__(task)
        X = task.dataset.X
        self.cf = GradualCF(nn.Sequential(*task.model.model[:-1]), tabular(X, scale=StandardScaler(with_mean=False, with_std=False).fit(X)), WAYS[way]).fit(X)
    def generate(self, instances, neg_value=0, column_name='target', **_):
        asked = instances.drop(columns=column_name, errors='ignore')
        answers = self.cf.explain(asked, 1 - neg_value)
        return self.cf.domain.decode(answers.xp)
    def _generation_method(self, instance, **options): return self.generate(pd.DataFrame([instance]), **options)


def measured(task, method):
    "What RobustX's evaluators say of a method's answers, with the number of columns that differ."
    answers, asked = task.CEs[method][0], task.dataset.get_negative_instances()
    judge = DeltaRobustnessEvaluator(task)
    noisy = InvalidationRateRobustnessEvaluator(task)
    frame = answers[list(asked.columns)]
    rows = [row for _, row in frame.iterrows()]
    np.random.seed(0)
    return dict(validity=ValidityEvaluator(task).evaluate(method), distance=DistanceEvaluator(task).evaluate(method),
                delta_robust=np.mean([judge.evaluate_single_instance(row, delta=DELTA, bias_delta=DELTA) for row in rows]),
                noise=np.mean([noisy.evaluate_single_instance(None, row) for row in rows]),
                columns=(~np.isclose(frame.to_numpy(float), asked.to_numpy(float), atol=1e-6)).sum(1).mean())


def asked(seed, rows):
    "A line for each method with one network."
    X, y, _, _ = load_breast_cancer()
    X = ((X - X.mean())/X.std()).astype('float32')
    benign = np.asarray(y, float)
    x = torch.tensor(X.to_numpy())
    net = nn.Sequential(*trained(x, torch.tensor(benign).float(), seed), nn.Sigmoid())
    task = ClassificationTask(PytorchModel.from_model(net), Table(X, (net(x)[:, 0] > .5).long().numpy(), rows))
    task.methods |= {way: partial(Ours, way=way) for way in WAYS}
    for method in (*WAYS, *THEIRS):
        line, begin, said = dict(method=method, seed=seed, rows=len(task.dataset.get_negative_instances())), time.process_time(), io.StringIO()
        with contextlib.redirect_stdout(said): task.generate([method])
        spent = time.process_time() - begin
        if method not in task.CEs:
            yield line | dict(note=said.getvalue().strip().splitlines()[-1])
            continue
        with contextlib.redirect_stdout(said): line |= measured(task, method)
        yield line | dict(seconds=spent/line['rows'], note='')


if __name__ == '__main__':
    options = argparse.ArgumentParser()
    options.add_argument('--rows', type=int, default=40)
    options.add_argument('--seeds', type=int, default=3)
    options.add_argument('--out', default='benchmarks/results/boards_robustx.csv')
    o = options.parse_args()
    lines = []
    for seed in range(o.seeds):
        for line in asked(seed, o.rows):
            lines.append(line)
            print(line, flush=True)
            with atomic(o.out) as out: pd.DataFrame(lines).round(4).to_csv(out, index=False)
