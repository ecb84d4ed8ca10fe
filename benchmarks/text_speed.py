"""Reviews a second in batches and one by one: real IMDB test reviews at 256 words, default settings, one thread.

    GRADUAL_CF_DATA=... python benchmarks/text_speed.py [--rows 100] [--alone 25] [--name imdb]

CPU seconds are printed beside wall seconds, since other programs on the machine lengthen the latter.
"""
import argparse
import json
import time

import numpy as np
import torch

from gradual_cf.all import GradualCF, load_task


def timed(f):
    "CPU and wall seconds of a call."
    c, w = time.process_time(), time.perf_counter()
    f()
    return time.process_time() - c, time.perf_counter() - w


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--rows', type=int, default=100), p.add_argument('--alone', type=int, default=25), p.add_argument('--name', default='imdb'), p.add_argument('--model')
    a = p.parse_args()
    torch.set_num_threads(1)
    task = load_task(a.name, model=a.model)
    cf = GradualCF(task.model, task.domain).fit(task.X)
    texts = task.X_test.text.iloc[np.random.default_rng(0).permutation(len(task.X_test))[:a.rows]].tolist()
    cf.explain(texts[:2])
    cpu, wall = timed(lambda: cf.explain(texts))
    one, _ = timed(lambda: [cf.explain(t) for t in texts[:a.alone]])
    some, _ = timed(lambda: cf.explain(texts[:a.alone]))
    print(json.dumps(dict(name=a.name, rows=a.rows, per_cpu_second=round(a.rows/cpu, 2), per_wall_second=round(a.rows/wall, 2), one_by_one_over_batch=round(one/some, 2))))
