"""Does a watch raise an alarm on bad days, and only then? Five hundred people a day, two groups, hundreds of days.

    OMP_NUM_THREADS=1 python benchmarks/watch.py [--days 400] [--out DIR]

A day is made up: whether each person's advice holds and whether they find a way are coins, lengths of ways are lognormal,
and half of the people are women. `fall` is what changed since the day of the advice: nothing, ten points less advice that
holds, ten points more without a way, or ways a fifth longer. `alarms` is the share of days on which `watch` has an alarm,
whichever line raised it. A line is one kind of day, and nothing is left out.
"""
import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from gradual_cf.core import atomic
from gradual_cf.use import watch as w

PEOPLE, FALL, LONGER, LEVEL = 500, .1, 1.2, .05
FALLS = ['nothing', 'holds', 'without', 'length']


def measured(rng, values): return w._Measured(pd.DataFrame(dict(sex=rng.choice(['woman', 'man'], len(values)))), values)


def ways(rng, without, longer):
    "Who finds a way, and how long it is."
    gone = rng.random(PEOPLE) < without
    return dict(without=measured(rng, gone.astype(float)), length=measured(rng, longer*rng.lognormal(0, .5, int((~gone).sum()))))


def alarm(fall, share, seed):
    "Whether a day raises an alarm where `share` was expected to hold and to find a way."
    rng = np.random.default_rng([seed, FALLS.index(fall), round(100*share)])
    then = ways(rng, 1 - share, 1)
    holds = (rng.random(PEOPLE) < share - FALL*(fall == 'holds')).astype(float)
    now = dict(holds=measured(rng, holds)) | ways(rng, 1 - share + FALL*(fall == 'without'), LONGER if fall == 'length' else 1)
    return bool((w._drifted(then, now, 'sex', share, seed).corrected <= LEVEL).any())


def main():
    p = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    p.add_argument('--days', type=int, default=400)
    p.add_argument('--out', type=Path, default=Path(__file__).parent/'results')
    asked = p.parse_args()
    w._RESAMPLES = 9  # intervals play no part
    lines = [dict(fall=fall, expected=share, people=PEOPLE, days=asked.days, alarms=np.mean([alarm(fall, share, i) for i in range(asked.days)]))
             for share in tqdm([.95, .8, .6]) for fall in FALLS]
    frame = pd.DataFrame(lines)
    print(frame.to_string(index=False))
    with atomic(asked.out/'watch.csv') as tmp: frame.to_csv(tmp, index=False)


if __name__ == '__main__': main()
