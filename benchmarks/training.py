"""How well the networks of embedded tasks are trained: 20 seeds under each set of processor instructions.

    python -m benchmarks.training [TASK…]    # results/training.csv, a line for each network; minutes of processor time

tests/test_training.py asks of a single training what all of these promise: that the loss falls, and an accuracy that
lies at least four standard deviations below their mean.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import pandas as pd

FILE = Path(__file__).parent/'results/training.csv'
SEEDS = 20
TASKS = ('breast_cancer', 'toy_reviews', 'digits')  # any of RECIPES may be named
SETS = dict(default=dict(ATEN_CPU_CAPABILITY='default', ONEDNN_MAX_CPU_ISA='SSE41', MKL_ENABLE_INSTRUCTIONS='SSE4_2'),
            avx2=dict(ATEN_CPU_CAPABILITY='avx2', ONEDNN_MAX_CPU_ISA='AVX2', MKL_ENABLE_INSTRUCTIONS='AVX2'),
            avx512=dict(ATEN_CPU_CAPABILITY='avx512', ONEDNN_MAX_CPU_ISA='AVX512_CORE', MKL_ENABLE_INSTRUCTIONS='AVX512'))


def trained(name, seed):
    "The networks of a task, trained in an empty folder: accuracy, and the validation loss of the first and of the best epoch."
    from gradual_cf.data import datasets as tasks
    from gradual_cf.models.networks import accuracy, train
    histories = []
    def noted(*args, **settings):
        histories.append([])
        return train(*args, log=histories[-1], **settings)
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, GRADUAL_CF_CACHE=folder), patch.object(tasks, 'train', noted):
        task = tasks.load_task(name, seed=seed)
        judge = task.judge  # trained when it is looked at
    nets = [('network', task.accuracy())]
    if judge is not None: nets.append(('judge', accuracy(judge, task.domain.encode(task.X_test).x, task.y_test)))
    return [dict(data=name, network=kind, seed=seed, accuracy=share, first_loss=h[0]['loss'], best_loss=min(e['loss'] for e in h))
            for (kind, share), h in zip(nets, histories)]


def main(names):
    "All trainings of some tasks, each instruction set in a process of its own."
    done = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=['data', 'instructions'])
    for name in names:
        parts = []
        for instructions, env in SETS.items():
            code = f'import json; from benchmarks.training import trained; print(json.dumps([r for s in range({SEEDS}) for r in trained({name!r}, s)]))'
            out = subprocess.run([sys.executable, '-c', code], env=os.environ | env | dict(OMP_NUM_THREADS='1'), capture_output=True, text=True, check=True)
            parts.append(pd.DataFrame(json.loads(out.stdout.splitlines()[-1])).assign(instructions=instructions))
        done = pd.concat([done[done.data != name], *parts], ignore_index=True)
        done.round(4).to_csv(FILE, index=False)
    print(done.groupby(['data', 'network', 'instructions']).accuracy.agg(['size', 'min', 'mean', 'std']).round(4))


if __name__ == '__main__': main(sys.argv[1:] or TASKS)
