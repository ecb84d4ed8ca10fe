"""cfnow (de Oliveira et al., 2023): its three strategies, levels as one-hot columns. It takes no constraints."""
import numpy as np
import pandas as pd

from client import serve


def columns_of(task):
    "Names of one-hot columns, and which column of the codes each belongs to."
    widths = dict(zip(task.named, task.told['levels']))
    return [('x%d_%d' % (j, k) if j in widths else 'x%d' % j, j) for j in range(len(task.names)) for k in range(widths.get(j, 1))]


def spread(task, codes):
    widths = dict(zip(task.named, task.told['levels']))
    parts = [codes[:, j][:, None] == np.arange(widths[j]) if j in widths else codes[:, [j]] for j in range(codes.shape[1])]
    return np.concatenate(parts, 1).astype(float)


def gathered(task, x):
    group = np.array([j for _, j in columns_of(task)])
    parts = [x[:, group == j] for j in range(len(task.names))]
    return np.column_stack([p.argmax(1) if j in task.named else p[:, 0] for j, p in enumerate(parts)])


def strategy(name):
    def make(task):
        from cfnow import find_tabular
        columns = columns_of(task)
        names = [n for n, _ in columns]
        types = {n: 'cat' if j in task.named else 'num' for n, j in columns}
        x = spread(task, task.rows)
        def one(i):
            t = int(task.target[i])
            def ask(rows): # cfnow knows two classes: the target, and whatever is most likely beside it
                p = task.ask(gathered(task, np.atleast_2d(np.asarray(rows, float))))
                rest = np.delete(p, t, 1).max(1)
                return np.column_stack([rest, p[:, t]])/(rest + p[:, t])[:, None]
            np.random.seed(0)
            found = find_tabular(factual=pd.Series(x[i], index=names), model_predict_proba=ask, feat_types=types,
                                 cf_strategy=name, has_ohe=bool(task.named), limit_seconds=task.budget)
            return gathered(task, np.asarray(found.cfs[:1], float))[0] if len(found.cfs) else None
        return 'codes', one
    return make


serve({m: strategy(m) for m in ('greedy', 'random', 'random-sequential')})
