"""alibi: CounterfactualProto (Van Looveren and Klaise, 2019) and CEM (Dhurandhar et al., 2018), on encoded rows.

Both are given the network in TensorFlow where there is one. Prototypes ask any other model as a function, with gradients by
differences; settings are those of alibi's own example on Adult. CEM knows no categories.
"""
import numpy as np

from client import serve


def tensorflow():
    import tensorflow as tf
    tf.compat.v1.disable_v2_behavior()
    return tf


def keras(task, tf):
    "The same network; nothing for a model that is none."
    layers = task.weights()
    if layers is None: return None
    last = len(layers) - 1
    dense = [tf.keras.layers.Dense(len(b), activation='softmax' if i == last else 'relu') for i, (w, b) in enumerate(layers)]
    model = tf.keras.Sequential([tf.keras.layers.InputLayer(input_shape=(task.x_train.shape[1],)), *dense])
    model.set_weights([v for w, b in layers for v in (w.T, b)])
    return model


def prototypes(task):
    tf = tensorflow()
    from alibi.explainers import CounterfactualProto
    model = keras(task, tf)
    d, g = task.x_train.shape[1], len(task.names)
    first = {j: task.told['groups'].index(j) for j in task.named}
    kinds = {first[j]: k for j, k in zip(task.named, task.told['levels'])} or None
    ask = model if model is not None else lambda x: task.ask_encoded(x)
    e = CounterfactualProto(ask, (1, d), cat_vars=kinds, ohe=kinds is not None, use_kdtree=True, theta=10., beta=.1, c_init=1.,
                            c_steps=5, max_iterations=500, feature_range=(np.zeros((1, g)), np.ones((1, g))))
    e.fit(task.x_train.astype(np.float32), d_type='abdm', disc_perc=[25, 50, 75])
    rows = task.x_rows.astype(np.float32)
    def one(i):
        cf = e.explain(rows[i:i + 1], target_class=[int(task.target[i])]).cf
        return None if cf is None else cf['X'][0]
    return 'encoded', one


def cem(task):
    tf = tensorflow()
    from alibi.explainers import CEM
    model = keras(task, tf)
    if model is None: raise ValueError('needs a gradient, and the model has none')
    shape = (1, task.x_train.shape[1])
    e = CEM(model, mode='PN', shape=shape, feature_range=(np.zeros(shape), np.ones(shape)))
    e.fit(task.x_train.astype(np.float32), no_info_type='median')
    rows = task.x_rows.astype(np.float32)
    def one(i):
        pn = e.explain(rows[i:i + 1]).PN
        return None if pn is None else pn[0]
    return 'encoded', one


serve(dict(prototypes=prototypes, cem=cem))
