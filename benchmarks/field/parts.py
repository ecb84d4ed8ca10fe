"""One part: a method on a model of a table, with a seed. It is one small file, written whole or not at all."""
import re
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gradual_cf.core import atomic

from . import registry

REAL = 'real rows'


@dataclass(frozen=True)
class Part:
    "What a part is called."
    data:str
    model:str
    method:str
    seed:int

    def path(self, folder):
        name = '-'.join((self.data, self.model, self.method, str(self.seed)))
        return Path(folder)/f'{re.sub(r"[^A-Za-z0-9.-]+", "_", name)}.parquet'


def measured(case, judges, part, envs, budget, limit):
    "The lines of a part, one for each row that was asked; one line with words alone where a method does not work."
    if part.method == REAL: return judges.real().assign(words='')
    try: codes, seconds, told = registry.run(part.method, case, envs, budget, limit)
    except Exception as e:
        words = str(e) if isinstance(e, RuntimeError) else f'{type(e).__name__}: {" ".join(str(e).split())}'
        return pd.DataFrame([dict(row=-1, found=False, words=words[:300])])
    late = seconds > budget*1.25 + .2
    codes[late] = np.nan
    df = judges.of(codes, np.arange(len(codes)))
    words = told.pop('words')
    return df.assign(ms=1e3*seconds, cut=late, **told, words=words, row=df.index, answer=list(codes))


def used():
    "CPU seconds of this process, and of those that it started and that have ended."
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def do(case, judges, part, folder, envs, budget, limit, setup=np.nan):
    "Run a part and keep it: answers as codes too, so that they can be measured once more. `setup`: seconds of model and judges."
    start = used()
    df = measured(case, judges, part, envs, budget, limit)
    df = df.assign(data=part.data, model=part.model, method=part.method, seed=part.seed, budget=budget, asked=len(case.rows),
                   limit=limit, cpu=used() - start, setup=setup)
    with atomic(part.path(folder)) as tmp: df.to_parquet(tmp, index=False)
    return df
