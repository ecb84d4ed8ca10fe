"How many cases a soak has, and the seeds of some of them."
import os

import numpy as np

SIZE = int(os.environ.get('SOAK_SIZE', 400))


def seeds(n):
    start = int(os.environ.get('SOAK_SEED', np.random.SeedSequence().generate_state(1)[0]))
    return range(start, start + max(n, 1))
