"""carla-recourse 0.0.5 on the torch that it pins, which wants Python 3.7: Growing Spheres, FACE, CCHVAE and REVISE, on encoded rows.

Its own start imports every method and tensorflow 1.14. So only the modules of a method are imported, and what the auto-encoders
never use is left empty.

They go to class 1 of two, so the wanted class is shown to them as 1. REVISE needs a gradient.
"""
import importlib
import importlib.util
import logging
import sys
import types
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

from client import serve, torch_network

LAYERS = 16, 8 # Hidden layers of the auto-encoders behind the input


def hollow():
    "CARLA without its start, and names that are imported and never called."
    root = list(importlib.util.find_spec('carla').submodule_search_locations)[0]
    for name in ('carla', 'carla.data', 'carla.models', 'carla.recourse_methods', 'carla.recourse_methods.catalog'):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = ['/'.join([root, *name.split('.')[1:]])]
    sys.modules['carla'].log = logging.getLogger('carla')
    for name in ('tensorflow', 'keras', 'keras.layers', 'keras.models', 'keras.backend'): sys.modules[name] = MagicMock()


def titles(task):
    "Names of encoded columns, in the form that CARLA groups them by."
    groups = task.told['groups']
    return ['x%d_%d' % (g, i - groups.index(g)) if g in task.named else 'x%d' % g for i, g in enumerate(groups)]


def table(task):
    "The rows as CARLA wants them."
    from carla.data.api import Data
    names = titles(task)
    rows = pd.DataFrame(task.x_train, columns=names).assign(outcome=(task.labels == task.target[0]).astype(int))

    class Encoder:
        def get_feature_names(self, _): return [n for n in names if '_' in n]

    class Table(Data):
        categorical = ['x%d' % j for j in task.named]
        continuous = ['x%d' % j for j in task.numbers]
        immutables = ['x%d' % j for j in task.told['fixed']]
        target, encoder = 'outcome', Encoder()
        df = df_train = df_test = rows
        def transform(self, v): return v
        def inverse_transform(self, v): return v
    return Table()


def model(task):
    "The model as CARLA asks it: a network by itself where there is one, else through the pipe."
    import torch
    from carla.models.api import MLModel
    net = None if task.weights() is None else torch_network(task)
    order = [1 - int(task.target[0]), int(task.target[0])]

    class Asked(MLModel):
        feature_input_order, backend, raw_model = titles(task), 'pytorch', net
        def predict_proba(self, x):
            if isinstance(x, torch.Tensor):
                if net is not None: return net(x.float()).softmax(1)[:, order]
                return torch.from_numpy(task.ask_encoded(x.detach().numpy())[:, order]).float()
            v = np.atleast_2d(np.asarray(x, float))
            if net is None: return task.ask_encoded(v)[:, order]
            with torch.no_grad(): return net(torch.from_numpy(v).float()).softmax(1)[:, order].numpy()
        def predict(self, x):
            return self.predict_proba(x)[:, 1]
    return Asked(table(task))


def method(name):
    def make(task):
        import torch
        torch.manual_seed(0)
        torch.set_num_threads(1)
        np.random.seed(0)
        if task.told['classes'] > 2: raise ValueError('takes two classes only')
        hollow()
        asked = model(task)
        if name == 'REVISE' and asked.raw_model is None: raise ValueError('needs a gradient, and the model has none')
        names = asked.feature_input_order
        how = dict(data_name='rows', vae_params=dict(layers=[len(names), *LAYERS], train=True, epochs=5))
        of = lambda where: importlib.import_module('carla.recourse_methods.catalog.' + where)
        made = dict(spheres=lambda: of('growing_spheres').GrowingSpheres(asked),
                    FACE=lambda: of('face').Face(asked, dict(mode='knn', fraction=.1)),
                    CCHVAE=lambda: of('cchvae').CCHVAE(asked, how),
                    REVISE=lambda: of('revise').Revise(asked, asked.data, dict(how, target_class=[0, 1])))
        e = made[name]()
        rows = pd.DataFrame(task.x_rows.astype(float), columns=names)
        return 'encoded', lambda i: e.get_counterfactuals(rows.iloc[[i]])[names].to_numpy(float)[0]
    return make


serve({m: method(m) for m in ('spheres', 'FACE', 'CCHVAE', 'REVISE')})
