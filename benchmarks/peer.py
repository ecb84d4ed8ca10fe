"""One peer on one folder, in a venv of its own: reads the same network through safetensors into numpy, writes counterfactuals and CPU seconds.

    python peer.py METHOD FOLDER SECONDS        # called by peers.py; needs numpy, pandas, safetensors and the peer
"""
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

warnings.filterwarnings('ignore')


class Network:
    "An MLP with ReLU, as scikit-learn speaks."
    def __init__(self, path):
        w = load_file(path)
        self.layers = [(w[f'{i}.weight'], w[f'{i}.bias']) for i in sorted({int(k.split('.')[0]) for k in w})]
        self.classes_ = np.array([0, 1])

    def predict_proba(self, x):
        h = np.asarray(x, np.float32)
        for i, (w, b) in enumerate(self.layers):
            h = h @ w.T + b
            if i < len(self.layers) - 1: h = np.maximum(h, 0)
        e = np.exp(h - h.max(1, keepdims=True))
        return e/e.sum(1, keepdims=True)

    def predict(self, x): return self.predict_proba(x).argmax(1)


def dice(method, net, train, y, test):
    "DiCE, model-agnostic: one counterfactual a row."
    import dice_ml
    d = dice_ml.Data(dataframe=train.assign(outcome=y), continuous_features=list(train), outcome_name='outcome')
    e = dice_ml.Dice(d, dice_ml.Model(model=net, backend='sklearn'), method=method)
    how = dict(total_CFs=1, desired_class='opposite', verbose=False) | (dict(random_seed=0) if method == 'random' else {})
    def one(i):
        found = e.generate_counterfactuals(test.iloc[[i]], **how).cf_examples_list[0].final_cfs_df
        return None if found is None or not len(found) else found[list(train)].to_numpy(float)[0]
    return one


def nicex(method, net, train, y, test):
    "NICE with the sparsity reward."
    from nice import NICE
    e = NICE(predict_fn=net.predict_proba, X_train=train.to_numpy(), cat_feat=[], num_feat=list(range(train.shape[1])), y_train=y, optimization='sparsity', justified_cf=True)
    return lambda i: e.explain(test.to_numpy()[i:i + 1])[0]


def lore(method, net, train, y, test):
    "lore_sa with its random generator; the counterfactual sample that is nearest."
    from lore_sa.bbox.sklearn_classifier_bbox import sklearnBBox
    from lore_sa.dataset import TabularDataset
    from lore_sa.lore import TabularRandomGeneratorLore
    e = TabularRandomGeneratorLore(sklearnBBox(net), TabularDataset(data=train.assign(outcome=y), class_name='outcome', categorial_columns=['outcome']))
    def one(i):
        x = test.to_numpy()[i]
        found = np.asarray(e.explain(x)['counterfactual_samples'], float).reshape(-1, len(x))
        return found[np.abs(found - x).sum(1).argmin()] if len(found) else None
    return one


def alibi(method, net, train, y, test):
    "alibi's Wachter or CEM with its own settings, gradients by TensorFlow."
    import tensorflow as tf
    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import CEM, Counterfactual
    layers = [tf.keras.layers.Dense(len(b), activation='relu' if i < len(net.layers) - 1 else 'softmax') for i, (w, b) in enumerate(net.layers)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer(input_shape=(train.shape[1],)), *layers])
    model.set_weights([v for w, b in net.layers for v in (w.T, b)])
    shape, rows = (1, train.shape[1]), test.to_numpy(np.float32)
    if method == 'wachter':
        e = Counterfactual(model, shape=shape, feature_range=(0., 1.))
        return lambda i: (e.explain(rows[i:i + 1]).cf or dict(X=[None]))['X'][0]
    e = CEM(model, mode='PN', shape=shape, feature_range=(np.zeros(shape), np.ones(shape)))
    e.fit(train.to_numpy(np.float32), no_info_type='median')
    def one(i):
        found = e.explain(rows[i:i + 1]).PN
        return None if found is None else found[0]
    return one


def spheres(method, net, train, y, test):
    "Growing spheres of carla-recourse: its module by itself, since the package pins a torch that newer Pythons lack."
    import importlib.util, logging, types
    from importlib.metadata import distribution
    sys.modules['carla'] = types.SimpleNamespace(log=logging.getLogger('carla'))
    path = distribution('carla-recourse').locate_file('carla/recourse_methods/catalog/growing_spheres/library/gs_counterfactuals.py')
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location('gs', path))
    spec.loader.exec_module(module)
    names = list(train)
    return lambda i: module.growing_spheres_search(test.iloc[i:i + 1], names, [], names, [], names, net)


METHODS = dict(alibi_wachter=('wachter', alibi), alibi_cem=('cem', alibi), carla_spheres=('', spheres), dice_random=('random', dice), dice_genetic=('genetic', dice), nicex=('sparsity', nicex), lore_sa=('random', lore))


def main():
    name, folder = sys.argv[1], Path(sys.argv[2])
    net, method = Network(folder/'model.safetensors'), METHODS[name]
    train, test = pd.read_csv(folder/'train.csv'), pd.read_csv(folder/'test.csv')
    one = method[1](method[0], net, train, net.predict(train), test)
    limit, out, took = float(sys.argv[3]), [], []
    for i in range(len(test)):
        start = time.process_time()
        try: found = one(i)
        except Exception as e: # a peer that fails on a row has no counterfactual for it
            found = None
            print(f'row {i}: {type(e).__name__}: {e}'[:200], file=sys.stderr)
        took.append(time.process_time() - start)
        out.append(test.to_numpy(float)[i] if found is None else found)
        if sum(took) > limit and len(out) >= 3: break
    np.savez(folder/f'{name}.npz', xp=np.stack(out), seconds=np.array(took))


if __name__ == '__main__': main()
