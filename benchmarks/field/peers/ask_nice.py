"""NICE (Brughmans et al., 2023): its four modes. It takes no constraints."""
import numpy as np

from client import serve


def lossy(x):
    "Reconstruction error of the components that hold nine tenths of the variance: its plausibility asks for an auto-encoder."
    scale = x.std(0) + 1e-9
    _, s, v = np.linalg.svd((x - x.mean(0))/scale, full_matrices=False)
    v = v[:1 + int(np.searchsorted(np.cumsum(s**2)/(s**2).sum(), .9))]
    def error(z):
        z = (z - x.mean(0))/scale
        return ((z - z @ v.T @ v)**2).mean(1)
    return error


def mode(optimization):
    def make(task):
        from nice import NICE
        more = dict(auto_encoder=lossy(task.train)) if optimization == 'plausibility' else {}
        e = NICE(predict_fn=task.ask, X_train=task.train, cat_feat=task.named, num_feat=task.numbers, y_train=task.labels,
                 optimization=optimization, justified_cf=True, **more)
        return 'codes', lambda i: e.explain(task.rows[i:i + 1], target_class=[int(task.target[i])])[0]
    return make


serve({m: mode(m) for m in ('none', 'sparsity', 'proximity', 'plausibility')})
