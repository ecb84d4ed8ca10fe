"""carla-recourse 0.0.5 with what it pins, which wants Python 3.7: Growing Spheres, FACE, CCHVAE and REVISE, on encoded rows.

They look for any other class, so tables have two. REVISE needs a gradient.
"""
import numpy as np
import pandas as pd

from client import serve, torch_network

LAYERS = 16, 8 # Hidden layers of the auto-encoders behind the input


def titles(task):
    "Names of encoded columns, in the form that CARLA groups them by."
    groups = task.told['groups']
    return ['x%d_%d' % (g, i - groups.index(g)) if g in task.named else 'x%d' % g for i, g in enumerate(groups)]


def table(task):
    "The rows as CARLA wants them."
    from carla import Data
    names = titles(task)
    df = pd.DataFrame(task.x_train, columns=names).assign(outcome=task.labels)

    class Encoder:
        def get_feature_names(self, _): return [n for n in names if '_' in n]

    class Table(Data):
        categorical = ['x%d' % j for j in task.named]
        continuous = ['x%d' % j for j in task.numbers]
        immutables = ['x%d' % j for j in task.told['fixed']]
        target, encoder = 'outcome', Encoder()
        df_train, df_test = df, df
        def transform(self, v): return v
        def inverse_transform(self, v): return v
    Table.df = df
    return Table()


def model(task):
    "The model as CARLA asks it: a network by itself where there is one, else through the pipe."
    import torch
    from carla import MLModel
    net = None if task.weights() is None else torch_network(task)

    class Asked(MLModel):
        feature_input_order, backend, raw_model = titles(task), 'pytorch', net
        def predict_proba(self, x):
            if isinstance(x, torch.Tensor):
                if net is not None: return net(x.float()).softmax(1)
                return torch.from_numpy(task.ask_encoded(x.detach().numpy())).float()
            v = np.atleast_2d(np.asarray(x, float))
            if net is None: return task.ask_encoded(v)
            with torch.no_grad(): return net(torch.from_numpy(v).float()).softmax(1).numpy()
        def predict(self, x):
            p = self.predict_proba(x)
            return p[:, 1]
    return Asked(table(task))


def method(name):
    def make(task):
        import torch
        torch.manual_seed(0)
        torch.set_num_threads(1)
        np.random.seed(0)
        if task.told['classes'] > 2: raise ValueError('takes two classes only')
        from carla.recourse_methods import CCHVAE, Face, GrowingSpheres, Revise
        asked = model(task)
        if name == 'REVISE' and asked.raw_model is None: raise ValueError('needs a gradient, and the model has none')
        target = int(task.target[0])
        names = asked.feature_input_order
        how = dict(data_name='rows', vae_params=dict(layers=[len(names), *LAYERS], train=True, epochs=5))
        made = dict(spheres=lambda: GrowingSpheres(asked), FACE=lambda: Face(asked, dict(mode='knn', fraction=.1)),
                    CCHVAE=lambda: CCHVAE(asked, how),
                    REVISE=lambda: Revise(asked, asked.data, dict(how, target_class=[int(k == target) for k in (0, 1)])))
        e = made[name]()
        rows = pd.DataFrame(task.x_rows.astype(float), columns=names)
        return 'encoded', lambda i: e.get_counterfactuals(rows.iloc[[i]])[names].to_numpy(float)[0]
    return make


serve({m: method(m) for m in ('spheres', 'FACE', 'CCHVAE', 'REVISE')})
