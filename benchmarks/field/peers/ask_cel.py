"""ce-library 0.1.1: CADEX, PPCEF, GLOBE-CE and WACH, on encoded rows. DiCoFlex is not in it.

Only the modules of a method are imported: the package's own start loads all of its methods. PPCEF (two classes only) learns a
masked autoregressive flow of the rows, then moves all rows at once; GLOBE-CE finds one direction for all rows.
"""
import importlib.util
import sys
import types

import numpy as np
import pandas as pd

from client import serve, torch_network


def hollow(*names):
    "Packages of which only modules are wanted."
    root = list(importlib.util.find_spec('cel').submodule_search_locations)[0]
    for name in ('cel', *('cel.' + n for n in names)):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = ['/'.join([root, *name.split('.')[1:]])]


def entries_of(task):
    "Entries of each category."
    groups = np.array(task.told['groups'])
    return [np.flatnonzero(groups == j).tolist() for j in task.named]


def network(task):
    if task.weights() is None: raise ValueError('needs a gradient, and the model has none')
    return torch_network(task)


def cadex(task):
    "The fewest of 1, 2, 3, 5 and all entries that it finds an answer with."
    hollow('cf_methods', 'cf_methods.local_methods', 'models')
    from cel.cf_methods.local_methods.cadex.cadex import CadexEngine
    e = CadexEngine(network(task), categorical_attributes=entries_of(task) or None)
    def one(i):
        for most in (1, 2, 3, 5, None):
            target = int(task.target[i])
            xp, _ = e.train(task.x_rows[i:i + 1], target, task.told['classes'], num_changed_attributes=most)
            if xp is not None and task.ask_encoded(xp)[0].argmax() == target: return xp[0]
        return None
    return 'encoded', one


def ppcef(task):
    hollow('cf_methods', 'cf_methods.local_methods', 'models', 'models.generative')
    import torch
    from cel.cf_methods.local_methods.ppcef.ppcef import PPCEF
    from cel.models.generative.maf.maf import MaskedAutoregressiveFlow
    if task.told['classes'] > 2: raise ValueError('takes two classes only')
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = network(task)
    class Lead(torch.nn.Module):
        def forward(self, x): return net(x).diff(dim=1)
    x, y = torch.as_tensor(task.x_train).float(), torch.as_tensor(task.said).float()[:, None]
    rows = lambda a, b: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[a:b], y[a:b]), batch_size=256)
    flow = MaskedAutoregressiveFlow(x.shape[1], 16, context_features=1, num_layers=2)
    cut = len(x)*9//10
    flow.fit(rows(0, cut), rows(cut, len(x)), epochs=30, patience=5, checkpoint_path=str(task.folder/'flow.pth'))
    usual = float(flow.predict_log_prob(rows(0, cut)).quantile(.25))
    e = PPCEF(flow, Lead(), torch.nn.BCEWithLogitsLoss(reduction='none'))
    x_rows = torch.as_tensor(task.x_rows).float()
    asked = torch.utils.data.TensorDataset(x_rows, 1. - torch.as_tensor(task.target).float()[:, None])
    def every():
        told = e.explain_dataloader(torch.utils.data.DataLoader(asked, batch_size=len(x_rows)), epochs=1000, lr=.01, alpha=100,
                                    log_prob_threshold=usual)
        return told.x_cfs
    return 'encoded', every


def globe(task):
    hollow('cf_methods', 'cf_methods.global_methods', 'models')
    from cel.cf_methods.global_methods.globe_ce.globe_ce import GLOBE_CE
    if task.told['classes'] > 2: raise ValueError('takes two classes only')
    np.random.seed(0)
    target = int(task.target[0])
    titles = ['x%d' % j for j in range(len(task.names))]
    groups = task.told['groups']
    names = [titles[g] if g not in task.named else '%s = %d' % (titles[g], i - groups.index(g)) for i, g in enumerate(groups)]
    X = pd.DataFrame(task.x_rows.astype(float), columns=names)
    tree = {t: [n for n in names if n.startswith(t + ' =')] for t in titles}
    about = types.SimpleNamespace(features_tree=tree, categorical_features=[titles[j] for j in task.named],
                                  categorical_columns=task.named, numerical_columns=task.numbers, features=titles)
    ask = lambda v: (task.ask_encoded(np.asarray(v, float)).argmax(1) == target).astype(int)
    widths = {c: .1 for c in titles if not tree[c]}
    def every():
        e = GLOBE_CE(ask, about, X, dropped_features=[titles[j] for j in task.told['fixed']], bin_widths=widths,
                     target_class=1)
        found = e.explain()
        return e.round_categorical(found.x_cfs) if task.named else found.x_cfs
    return 'encoded', every


def wach(task):
    "Its Wachter: alibi's, with gradients by differences."
    hollow('cf_methods', 'cf_methods.local_methods', 'models')
    from cel.cf_methods.local_methods.wach.wach import WACH
    class Asked:
        num_inputs = task.x_train.shape[1]
        def predict_proba(self, x): return types.SimpleNamespace(numpy=lambda: task.ask_encoded(x))
    made = {int(t): WACH(Asked(), target_class=int(t)) for t in np.unique(task.target)}
    def one(i):
        told = made[int(task.target[i])].explain(task.x_rows[i], None, None, None, None)[0]
        found = None if told is None else told.cf
        return None if found is None else found['X'][0]
    return 'encoded', one


serve({'CADEX': cadex, 'PPCEF': ppcef, 'GLOBE-CE': globe, 'WACH': wach}, batched=('PPCEF', 'GLOBE-CE'))
