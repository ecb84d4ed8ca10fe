"""FIDO on MNIST: what must go, and what is enough, in 200 digits for each infill.

    python benchmarks/parts.py --rows 200            # writes results/parts.csv, a line at a time; goes on where it stopped
"""
import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.baselines.regions import FIDO
from gradual_cf.core import atomic
from gradual_cf.models.asking import predict
from gradual_cf.data.images import images
from gradual_cf.data.datasets import load_task

RESULTS = Path(__file__).resolve().parent/'results'/'parts.csv'
INFILLS = ('mean', 'blur', 'local')


def line(task, rows, infill, question, size=50):
    "One line of the table."
    start = time.process_time()
    fido = FIDO(task.model, images(block=1), infill=infill).fit(task.X[:2000])
    found = [getattr(fido, question)(rows[i:i + size]) for i in range(0, len(rows), size)]
    took = time.process_time() - start
    there, share, whole = (torch.cat([f(r) for r in found]) for f in (
        lambda r: r.there, lambda r: r.on[:, 0].double().mean((1, 2)), lambda r: (r.share[:, 0] > .5).double().mean((1, 2))))
    return dict(region=question, infill=infill, digits=len(rows), found=there.double().mean().item(), share=share[there].mean().item(),
                largest=share[there].max().item(), whole=whole.mean().item(), cpu_seconds=took/len(rows))


def main(rows, path):
    task = load_task('mnist')
    pick = np.random.default_rng(0).permutation(len(task.X_test))[:rows]
    data = np.stack([np.array(d) for d in task.X_test[pick]['image']]) if hasattr(task.X_test, 'column_names') else np.asarray(task.X_test)[pick]
    own = predict(task.model, task.domain.encode(data).x).argmax(1).numpy()
    print(f'{(own == np.asarray(task.y_test)[pick]).mean():.3f} of the digits are named as they are')
    done = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    for question in ('deletion', 'support'):
        for infill in INFILLS:
            if len(done) and ((done.region == question) & (done.infill == infill) & (done.digits == rows)).any(): continue
            done = pd.concat([done, pd.DataFrame([line(task, data, infill, question)])], ignore_index=True)
            print(done.tail(1).to_string(header=False), flush=True)
            with atomic(path) as tmp: done.round(4).to_csv(tmp, index=False)


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--rows', type=int, default=200)
    p.add_argument('--csv', type=Path, default=RESULTS)
    a = p.parse_args()
    main(a.rows, a.csv)
