"""DiCE (Mothilal et al., 2020): random, genetic and kd-tree search of any model, gradients of a network; told what must stay."""
import numpy as np
import pandas as pd

from client import serve, torch_network


def text(v): return 'level %d' % v


class Asked:
    "A model as DiCE asks it: frames with texts for levels."
    def __init__(self, task):
        self.task, self.classes_ = task, np.arange(task.told['classes'])

    def predict_proba(self, frame): return self.task.ask(codes(self.task, frame))
    def predict(self, frame): return self.predict_proba(frame).argmax(1)


def codes(task, frame):
    out = [frame[c].map(lambda v: float(v.split()[1])) if j in task.named else frame[c].astype(float)
           for j, c in enumerate(task.columns)]
    return np.column_stack(out)


def frame_of(task, v):
    "Rows as DiCE reads them: it takes whole numbers for such where their column is one of integers."
    df = pd.DataFrame(v, columns=task.columns).astype({task.columns[j]: int for j in task.told['whole']})
    for j in task.named: df[task.columns[j]] = [text(int(c)) for c in v[:, j]]
    return df


def method(name):
    def make(task):
        import dice_ml
        task.columns = ['x%d' % j for j in range(len(task.names))]
        numbers = [task.columns[j] for j in task.numbers]
        df = frame_of(task, task.train).assign(outcome=task.labels)
        data = dice_ml.Data(dataframe=df, continuous_features=numbers, outcome_name='outcome')
        e = dice_ml.Dice(data, dice_ml.Model(model=Asked(task), backend='sklearn'), method=name)
        free = [c for j, c in enumerate(task.columns) if j not in task.told['fixed']]
        top, seed = task.train.max(0), dict(random_seed=0) if name == 'random' else {}
        def one(i):
            v = task.rows[i]
            grow = {task.columns[j]: [float(v[j]), float(max(top[j], v[j]))] for j in task.told['grows']}
            out = e.generate_counterfactuals(frame_of(task, v[None]), total_CFs=task.told['several'], desired_class=int(task.target[i]),
                                             verbose=False, features_to_vary=free, permitted_range=grow or None, **seed)
            got = out.cf_examples_list[0].final_cfs_df
            return None if got is None or not len(got) else codes(task, got.iloc[:task.told['several']]).ravel()
        return 'codes', one
    return make


def gradient(task):
    "Gradients of the same network; DiCE takes a network with one output of a probability."
    import dice_ml
    import torch
    if task.weights() is None: raise ValueError('needs a gradient, and the model has none')
    if task.told['classes'] > 2: raise ValueError('takes a network of two classes only')
    net = torch_network(task)
    class One(torch.nn.Module):
        def forward(self, x): return net(x.float()).softmax(-1)[..., 1:]
    names = ['x%d' % j for j in range(task.x_train.shape[1])]
    df = pd.DataFrame(task.x_train, columns=names).assign(outcome=task.labels)
    data = dice_ml.Data(dataframe=df, continuous_features=names, outcome_name='outcome')
    e = dice_ml.Dice(data, dice_ml.Model(model=One(), backend='PYT'), method='gradient')
    fixed = set(task.told['fixed'])
    free = [n for n, g in zip(names, task.told['groups']) if g not in fixed]
    def one(i):
        row = pd.DataFrame(task.x_rows[[i]], columns=names)
        out = e.generate_counterfactuals(row, total_CFs=1, desired_class=int(task.target[i]), features_to_vary=free,
                                         verbose=False)
        got = out.cf_examples_list[0].final_cfs_df
        return None if got is None or not len(got) else got[names].to_numpy(float)[0]
    return 'encoded', one


serve({**{m: method(m) for m in ('random', 'genetic', 'kdtree')}, 'gradient': gradient})
