"""Six kinds of model, trained by seed on one thread, and networks kept as safetensors."""
import numpy as np
import torch

from gradual_cf.core import cache_dir
from gradual_cf.models.networks import load_model, save_model, tabular_mlp, train

NETWORKS = dict(network=64, small=8) # Units of the hidden layers: the paper's network, and a small one
MODELS = ('network', 'small', 'logistic', 'forest', 'xgboost', 'lightgbm')
TITLES = dict(network="the paper's network", small='small network', logistic='logistic regression, a pipeline',
              forest='random forest', xgboost='XGBoost', lightgbm='LightGBM')


def learner(name, table, seed):
    "A model of scikit-learn or like it, not yet fitted; 100 trees where it has trees."
    if name == 'xgboost':
        from xgboost import XGBClassifier
        return XGBClassifier(n_estimators=100, max_depth=6, enable_categorical=True, n_jobs=1, random_state=seed)
    if name == 'lightgbm':
        from lightgbm import LGBMClassifier
        return LGBMClassifier(n_estimators=100, n_jobs=1, random_state=seed, verbose=-1)
    return pipeline(name, table, seed)


def pipeline(name, table, seed):
    "A model behind scikit-learn's own preparation of raw columns."
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    named = list(table.X.select_dtypes('category'))
    scaler = StandardScaler() if name == 'logistic' else 'passthrough'
    first = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), named), remainder=scaler)
    if name == 'logistic': return make_pipeline(first, LogisticRegression(max_iter=1000))
    forest = RandomForestClassifier(100, random_state=seed, n_jobs=1)
    return make_pipeline(first, forest) if named else forest


def drawn(table, seed, again):
    "Positions of training rows: all of them, or the draw with that number."
    n = len(table.X)
    if not again: return np.arange(n)
    i = np.random.default_rng([seed, again]).integers(0, n, n)
    return np.concatenate([i, [np.flatnonzero(table.y == k)[0] for k in np.unique(table.y)]]) # every class is there


def network(table, domain, width, seed, again=0, other=0):
    "A network, trained or read from the cache; `again` draws the rows anew, `other` is another seed."
    path = cache_dir()/f'field-{table.name}-{width}-{seed}-{again}-{other}.safetensors'
    if path.is_file(): return load_model(path)
    rows = drawn(table, seed, again)
    x = domain.encode(table.X).x.float()[rows]
    net = tabular_mlp(x.shape[1], int(table.y.max()) + 1, width, seed=100*seed + other)
    net = train(net, x, torch.as_tensor(table.y[rows]), batch_size=min(256, max(16, len(x)//20)), seed=100*seed + other)
    path.parent.mkdir(parents=True, exist_ok=True)
    return load_model(save_model(net, path))


def fitted(name, table, domain, seed, again=0):
    "A model fitted on the training rows, or on a draw of them."
    if name in NETWORKS: return network(table, domain, NETWORKS[name], seed, again)
    rows = drawn(table, seed, again)
    return learner(name, table, seed).fit(table.X.iloc[rows], table.y[rows])


def witnesses(table, domain, seed):
    "Five networks of the paper's kind: three with other seeds, two on draws of the rows."
    others = [network(table, domain, NETWORKS['network'], seed, other=i) for i in (1, 2, 3)]
    return others + [network(table, domain, NETWORKS['network'], seed, again=i) for i in (1, 2)]
