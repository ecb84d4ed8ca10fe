"""One look at 256 boxes of 100 trees over 22 columns, by numpy, torch and, where it is installed, numba: CPU microseconds a box.

    OMP_NUM_THREADS=1 python benchmarks/boxes_look.py

A look is the heart of the bound of trees: words of leaves for a range of cells in each column, the lowest bit, the leaf's value.
"""
import time

import numpy as np
import torch

COLUMNS, TREES, CELLS, BOXES = 22, 100, 40, 256
ALL = 2**64 - 1


def tables(rng):
    "Leaves met up to each cell, and from each cell on; values of leaves; boxes."
    words = lambda: rng.integers(0, 2**63, (COLUMNS, CELLS, TREES)).astype(np.uint64)
    upto = np.bitwise_or.accumulate(words(), 1)
    since = np.ascontiguousarray(np.bitwise_or.accumulate(words()[:, ::-1], 1)[:, ::-1])
    low = rng.integers(0, CELLS, (BOXES, COLUMNS))
    return upto, since, rng.normal(size=(TREES, 64)), low, np.maximum(low, rng.integers(0, CELLS, (BOXES, COLUMNS)))


def by_numpy(upto, since, value, low, high):
    w = np.full((BOXES, TREES), ALL, np.uint64)
    for g in range(COLUMNS): w &= upto[g][high[:, g]] & since[g][low[:, g]]
    w |= np.uint64(1 << 63)
    top = ((w & (~w + np.uint64(1))).astype(float).view(np.int64) >> 52) - 1023
    return value[np.arange(TREES), top].sum(1)


def by_torch(upto, since, value, low, high):
    w = torch.full((BOXES, TREES), -1)
    for g in range(COLUMNS): w &= upto[g][high[:, g]] & since[g][low[:, g]]
    w |= -2**63
    top = ((w & -w).double().abs().view(torch.int64) >> 52) - 1023
    return value[torch.arange(TREES), top].sum(1)


def compiled():
    import numba

    @numba.njit
    def by_numba(upto, since, value, low, high):
        out, w = np.zeros(len(low)), np.empty(len(value), np.uint64)
        for b in range(len(low)):
            w[:] = np.uint64(ALL)
            for g in range(low.shape[1]):
                first, last = since[g, low[b, g]], upto[g, high[b, g]]
                for t in range(len(w)): w[t] &= first[t] & last[t]
            for t in range(len(w)):
                k = 0
                while k < 63 and not (w[t] >> np.uint64(k)) & np.uint64(1): k += 1
                out[b] += value[t, k]
        return out
    return by_numba


def took(look, *given):
    "Median CPU microseconds a box, after one look."
    look(*given)
    times = []
    for _ in range(30):
        begin = time.process_time()
        look(*given)
        times.append(time.process_time() - begin)
    return 1e6*np.median(times)/BOXES


if __name__ == '__main__':
    torch.set_num_threads(1)
    made = tables(np.random.default_rng(0))
    tensors = [torch.from_numpy(v.view(np.int64) if v.dtype == np.uint64 else v) for v in made]
    assert np.allclose(by_numpy(*made), by_torch(*tensors).numpy())
    print(f'numpy {took(by_numpy, *made):.2f}')
    print(f'torch {took(by_torch, *tensors):.2f}')
    try: look = compiled()
    except ImportError: print('numba is not installed')
    else:
        assert np.allclose(by_numpy(*made), look(*made))
        print(f'numba {took(look, *made):.2f}')
