"""Answers that people and a retrained network believe: the preset beside today's default and its peers, on six tables.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/believable.py [--rows 1000] [--seeds 3] [--peers DIR]
        [--data heloc …] [--methods …] [--limit 20] [--out FILE]

The test rows are cut in two. The first half judges: on its rows that the network gives to the target, LOF
(20 neighbours) and an isolation forest (100 trees) are fitted with scikit-learn's defaults. Rows of the second half are
explained. No search sees a test row. Measured on valid rows, decoded and encoded again:

valid, legal  the network's own word, and the domain's
columns, l2   how many columns changed, and how far, in ranges of their columns
lof, forest   share of answers that the judges call outliers
confirmed     agreement of five networks, three with other seeds and two trained on resamples: mean, and the worst
pairs         share of answers with a pair of values that touches a change and that no row of the first half shows;
              numbers in tenths of the training rows, where they have more than ten values
typical       mean of what the answer says of itself
ms            CPU milliseconds a row, all rows in one call; peers one by one, as many as fit into --limit seconds

`real rows` are those of the second half that the network gives to the target; their pairs touch the columns that the
preset changed in an answer drawn at random. With --drift, networks trained on the first half of UCI Credit's ids are
explained and those trained on the second half confirm. A line is kept as soon as it is there, and a run that was stopped goes on.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import PLAUSIBLE, GradualCF, confirm, load_heloc, load_uci_credit, tabular, tabular_mlp, train
from gradual_cf.core import atomic, cache_dir, changed_groups
from gradual_cf.models.asking import predict
from installed import hollow, install

PEERS = ['NICEx==0.2.3', 'dice-ml==0.12', 'raiutils==0.4.2', 'ce-library==0.1.1'] # raiutils is imported by dice-ml


@dataclass
class Data:
    "A table in three parts."
    name:str
    X:pd.DataFrame     # Training rows
    y:np.ndarray       # Their labels
    held:pd.DataFrame  # Rows that judge
    rows:pd.DataFrame  # Rows to explain
    rules:dict         # What may not change
    wanted:int|None    # The class that people want; None for both directions


def tables(): return Path(os.environ['GRADUAL_CF_DATA'])/'tables'


def cut(name, df, label, wanted, **rules):
    "A table as features and labels, with categories, shuffled and cut in 60, 20 and 20 hundredths."
    X = df.drop(columns=label.name)
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(0).permutation(len(X))
    a, b = len(X)*6//10, len(X)*8//10
    part = lambda i: X.iloc[order[i]]
    return Data(name, part(slice(0, a)), label.to_numpy(int)[order[:a]], part(slice(a, b)), part(slice(b, None)), rules, wanted)


def halved(name, loaded, **rules):
    "A table of the package, its test rows cut in two."
    X, y, Xt, _ = loaded
    half = len(Xt)//2
    return Data(name, X, y.to_numpy(int), Xt.iloc[:half], Xt.iloc[half:], rules, None)


def adult():
    df = pd.read_csv(tables()/'adult.csv', skipinitialspace=True, keep_default_na=False)
    df = df.drop(columns=['fnlwgt', 'education-num']).drop_duplicates()
    return cut('adult', df, (df['class'] == '>50K').rename('class'), 1,
               immutable=['sex', 'race', 'native-country'], increase_only=['age'])


def german():
    df = pd.read_csv(tables()/'german_credit.csv')
    fixed = [c for c in df if c in ('personal_status_sex', 'foreign_worker')]
    return cut('german', df, df['default'], 0, immutable=fixed, increase_only=['age'])


def bank():
    df = pd.read_csv(tables()/'bank_marketing.csv', index_col=0)
    return cut('bank', df, (df.y == 'yes').rename('y'), 1, increase_only=['age'])


def compas():
    df = pd.read_csv(tables()/'compas.csv')
    dates = ['compas_screening_date', 'c_jail_in', 'c_jail_out', 'days_b_screening_arrest']
    df = df.drop(columns=[*dates, 'age_cat', 'decile_score', 'score_text']).dropna()
    return cut('compas', df, df.two_year_recid, 0, immutable=['sex', 'race'], increase_only=['age'])


LOAD = dict(heloc=lambda: halved('heloc', load_heloc()), uci=lambda: halved('uci', load_uci_credit()),
            adult=adult, german=german, bank=bank, compas=compas)


def network(x, y, seed, rows=slice(None)):
    "A network of the paper's kind."
    return train(tabular_mlp(x.shape[1], seed=seed), x[rows], y[rows], seed=seed)


def networks(data, domain, seed, folder):
    "The network, three others by seed and two by resamples, kept in a folder."
    path = folder/f'believable-{data.name}-{seed}.pt'
    x, y = domain.encode(data.X).x.float(), torch.as_tensor(data.y)
    nets = [tabular_mlp(x.shape[1]) for _ in range(6)]
    if path.is_file():
        for net, state in zip(nets, torch.load(path, weights_only=True)): net.load_state_dict(state)
        return nets
    rng = np.random.default_rng(seed)
    drawn = [slice(None)]*4 + [torch.as_tensor(rng.integers(0, len(x), len(x))) for _ in range(2)]
    nets = [network(x, y, 100*seed + i, rows) for i, rows in enumerate(drawn)]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(path) as tmp: torch.save([n.state_dict() for n in nets], tmp)
    return nets


def codes_of(data):
    "How cells are told apart: tenths of the training rows for numbers with more than ten values."
    cuts = {c: np.unique(data.X[c].quantile(np.arange(1, 10)/10)) for c in data.X
            if pd.api.types.is_numeric_dtype(data.X[c]) and data.X[c].nunique() > 10}
    def codes(df):
        return np.column_stack([np.searchsorted(cuts[c], df[c].astype(float)) if c in cuts else
                                pd.Categorical(df[c], categories=sorted(data.X[c].unique())).codes for c in df])
    return codes


class Judges:
    "What held rows say of answers."
    def __init__(self, data, domain, net, others):
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        self.data, self.domain, self.net, self.others, self.codes = data, domain, net, others, codes_of(data)
        x = domain.encode(data.held).x.float()
        said = predict(net, x).argmax(1)
        self.seen = self.codes(data.held)
        self.lof, self.forest = {}, {}
        for t in (0, 1):
            own = x[said == t].numpy()
            self.lof[t] = LocalOutlierFactor(20, novelty=True).fit(own)
            self.forest[t] = IsolationForest(n_estimators=100, random_state=0).fit(own)

    def unseen(self, frame, changed):
        "Whether a pair of values that touches a change is in no held row."
        new, out = self.codes(frame), np.zeros(len(frame), bool)
        big = int(max(new.max(), self.seen.max())) + 2
        g = new.shape[1]
        for j in range(g):
            for l in range(g):
                if l == j: continue
                pairs = np.unique(self.seen[:, j]*big + self.seen[:, l])
                out |= changed[:, j] & ~np.isin(new[:, j]*big + new[:, l], pairs)
        return out

    def of(self, x, target, frame, changed):
        "All measures of rows, `x` encoded."
        v, out = x.numpy(), dict(lof=np.zeros(len(x), bool), forest=np.zeros(len(x), bool))
        for t in np.unique(target):
            i = target == t
            out['lof'][i] = self.lof[t].predict(v[i]) < 0
            out['forest'][i] = self.forest[t].predict(v[i]) < 0
        agree = np.stack([predict(n, x).argmax(1).numpy() == target for n in self.others])
        told = {k: float(w.mean()) for k, w in out.items()}
        return told | dict(confirmed=float(agree.mean()), worst=float(agree.mean(1).min()),
                           pairs=float(self.unseen(frame, changed).mean()))


@dataclass
class Case:
    "One network of one table, and what is asked of it."
    data:Data
    domain:Any
    net:Any
    judges:Judges
    seed:int
    rows:pd.DataFrame
    target:np.ndarray


def case_of(data, seed, n, folder):
    "Train, or read what was trained; the rows to explain."
    domain = tabular(data.X, **data.rules)
    net, *others = networks(data, domain, seed, folder)
    rows = data.rows.iloc[np.random.default_rng(seed).permutation(len(data.rows))]
    said = predict(net, domain.encode(rows).x.float()).argmax(1).numpy()
    if data.wanted is not None: rows, said = rows[said != data.wanted], said[said != data.wanted]
    return Case(data, domain, net, Judges(data, domain, net, others), seed, rows.iloc[:n], 1 - said[:n])


def measured(case, raw, seconds, note='', **more):
    "One line of the table, and which columns changed in each row, bool `(n, columns)`."
    n, d = len(raw), case.domain
    old, target = case.rows.iloc[:n], case.target[:n]
    x, xp = (d.encode(v).x.float() for v in (old, raw))
    valid = predict(case.net, xp).argmax(1).numpy() == target
    changed = changed_groups(x, xp, d.groups(x.shape[1:])).numpy()
    legal = d.legal(old, raw).all(1)
    told = case.judges.of(xp[valid], target[valid], raw[valid], changed[valid])
    mean = lambda v: float(v[valid].mean())
    line = dict(rows=n, valid=float(valid.mean()), legal=mean(legal), columns=mean(changed.sum(1)),
                l2=mean((x - xp).norm(dim=1).numpy()), **told, ms=1e3*seconds, **more, note=note)
    return line, changed


def real(case, changed):
    "The rows of the second half that are what is wanted, as if they were answers."
    d, rows = case.domain, case.data.rows
    x = d.encode(rows).x.float()
    said = predict(case.net, x).argmax(1).numpy()
    i = np.isin(said, np.unique(case.target))
    drawn = changed[np.random.default_rng(0).integers(0, len(changed), i.sum())]
    told = case.judges.of(x[i], said[i], rows[i], drawn)
    return dict(rows=int(i.sum()), **told)


def ours(case, settings=None, **changes):
    "A setting of this package, on all rows in one call."
    cf = GradualCF(case.net, case.domain, settings, **changes)
    start = time.process_time()
    cf.fit(case.data.X)
    ready = time.process_time() - start
    cf.explain(case.rows.iloc[:2], case.target[:2]) # what is learnt of a class when it is first asked for
    start = time.process_time()
    answers = cf.explain(case.rows, case.target)
    seconds = (time.process_time() - start)/len(case.rows)
    note = f'{ready:.2f} s to fit'
    return measured(case, answers.raw, seconds, note, typical=float(answers.typical[answers.valid].nanmean()))


def one_by_one(case, ask, limit):
    "A peer on as many rows as fit into its time; a row that fails keeps its cells."
    found, took, errors = [], [], []
    for i in range(len(case.rows)):
        start = time.process_time()
        try: got = ask(i)
        except Exception as e: got, _ = None, errors.append(f'{type(e).__name__}: {" ".join(str(e).split())}'[:120])
        took.append(time.process_time() - start)
        found.append(case.rows.iloc[[i]] if got is None else got)
        if sum(took) > limit: break
    raw = pd.concat([f.astype(object) for f in found]).set_axis(case.rows.index[:len(found)])
    note = f'{len(errors)} rows raised an error, the first {errors[0]}' if errors else ''
    return measured(case, like(case.data, raw), statistics.mean(took), note)


def like(data, values):
    "A frame of any cells with the dtypes of the data; numbers that are not whole stay what they are."
    out = {}
    for c, dtype in data.X.dtypes.items():
        if dtype == 'category': out[c] = pd.Categorical(values[c], dtype=dtype)
        else:
            v = pd.to_numeric(values[c]).to_numpy(float)
            out[c] = v.astype(dtype) if dtype.kind == 'f' or (v % 1 == 0).all() else v
    return pd.DataFrame(out, index=values.index)


def said(case, frame): return predict(case.net, case.domain.encode(frame).x.float()).softmax(1).numpy()


def lossy(x):
    "Reconstruction error of principal components that hold nine tenths of the variance: what NICE calls an auto-encoder."
    from sklearn.decomposition import PCA
    scale = x.std(0) + 1e-9
    pca = PCA(.9).fit(x/scale)
    return lambda v: ((v/scale - pca.inverse_transform(pca.transform(v/scale)))**2).mean(1)


def nice(optimization):
    "NICE, with categories as their codes; it takes no constraints."
    def run(case, limit):
        from nice import NICE
        data, names = case.data, list(case.data.X)
        named = [j for j, c in enumerate(names) if data.X[c].dtype == 'category']
        codes = lambda df: np.column_stack([df[c].cat.codes if j in named else df[c] for j, c in enumerate(names)]).astype(float)
        def frame(x):
            cells = lambda j, v: pd.Categorical.from_codes(v.astype(int), dtype=data.X.dtypes.iloc[j]) if j in named else v
            return like(data, pd.DataFrame({c: cells(j, x[:, j]) for j, c in enumerate(names)}))
        X, x = codes(data.X), codes(case.rows)
        more = dict(auto_encoder=lossy(X)) if optimization == 'plausibility' else {}
        e = NICE(predict_fn=lambda v: said(case, frame(v)), X_train=X, cat_feat=named,
                 num_feat=[j for j in range(len(names)) if j not in named], y_train=data.y, optimization=optimization,
                 justified_cf=True, **more)
        return one_by_one(case, lambda i: frame(e.explain(x[i:i + 1])), limit)
    return run


class Asked:
    "A network as DiCE asks it."
    classes_ = np.array([0, 1])
    def __init__(self, case): self.case = case
    def predict_proba(self, frame): return said(self.case, like(self.case.data, frame))
    def predict(self, frame): return self.predict_proba(frame).argmax(1)


def dice(case, limit):
    "DiCE by random search: one counterfactual a row, told what must stay."
    import contextlib
    import io
    import dice_ml
    data, rules = case.data, case.data.rules
    plain = data.X.astype({c: object for c in data.X if data.X[c].dtype == 'category'})
    numbers = [c for c in data.X if data.X[c].dtype != 'category']
    table = dice_ml.Data(dataframe=plain.assign(outcome=data.y), continuous_features=numbers, outcome_name='outcome')
    e = dice_ml.Dice(table, dice_ml.Model(model=Asked(case), backend='sklearn'), method='random')
    free = [c for c in data.X if c not in rules.get('immutable', [])]
    rows, top = case.rows.astype(plain.dtypes), data.X[numbers].max()
    def ask(i):
        v = rows.iloc[i]
        grow = {c: [v[c], max(top[c], v[c]).item()] for c in rules.get('increase_only', [])}
        with contextlib.redirect_stderr(io.StringIO()): # a bar for each row
            out = e.generate_counterfactuals(rows.iloc[[i]], total_CFs=1, desired_class='opposite', verbose=False,
                                             features_to_vary=free, random_seed=0, permitted_range=grow or None)
        got = out.cf_examples_list[0].final_cfs_df
        return None if got is None or not len(got) else like(data, got.iloc[:1])
    return one_by_one(case, ask, limit)


def cadex(case, limit):
    "CADEX of ce-library on the encoded row: the fewest of 1, 2, 3, 5 and all entries that it finds an answer with."
    from cel.cf_methods.local_methods.cadex.cadex import CadexEngine
    d, x = case.domain, case.domain.encode(case.rows).x.float()
    groups = d.groups(x.shape[1:])
    sets = [torch.where(groups == g)[0].tolist() for g in groups.unique()]
    e = CadexEngine(case.net, categorical_attributes=[s for s in sets if len(s) > 1] or None)
    def ask(i):
        for most in (1, 2, 3, 5, None):
            xp, _ = e.train(x[i:i + 1].numpy(), int(case.target[i]), 2, num_changed_attributes=most)
            if xp is None: continue
            raw = d.decode(torch.as_tensor(xp).float(), case.rows.iloc[[i]], False)
            if said(case, raw)[0].argmax() == case.target[i]: return raw
        return None
    return one_by_one(case, ask, limit)


METHODS = {
    'default': lambda case, limit: ours(case), 'quantile=.5': lambda case, limit: ours(case, quantile=.5),
    'PLAUSIBLE': lambda case, limit: ours(case, PLAUSIBLE), 'NICE (sparsity)': nice('sparsity'),
    'NICE (proximity)': nice('proximity'), 'NICE (plausibility)': nice('plausibility'), 'DiCE random': dice,
    'CADEX': cadex}


def lines_of(case, methods, limit, done):
    "The lines of one case that are not there yet."
    key = lambda method: (case.data.name, case.seed, method)
    changed = None
    for name in methods:
        needed = name == 'PLAUSIBLE' and key('real rows') not in done # it says which columns real rows are asked about
        if key(name) in done and not needed: continue
        try: line, moved = METHODS[name](case, limit)
        except Exception as e: # a peer that does not start, in its own words
            line, moved = dict(rows=0, note=f'does not start: {type(e).__name__}: {e}'[:150]), None
        if name == 'PLAUSIBLE': changed = moved
        if key(name) not in done: yield dict(data=case.data.name, seed=case.seed, method=name) | line
    if changed is not None and key('real rows') not in done:
        yield dict(data=case.data.name, seed=case.seed, method='real rows') | real(case, changed)


def drift(rows, seeds):
    "UCI Credit by time: networks of the first half of the ids are explained, those of the second half are asked."
    X, y, Xt, _ = load_uci_credit()
    middle, lines = (len(X) + len(Xt))//2, []
    now, later = (X.index < middle, X.index >= middle)
    domain, some = tabular(X[now]), Xt[Xt.index < middle].iloc[:rows]
    x = {when: domain.encode(X[part]).x.float() for when, part in (('now', now), ('later', later))}
    labels = {'now': torch.as_tensor(y[now].to_numpy(int)), 'later': torch.as_tensor(y[later].to_numpy(int))}
    tomorrow = [network(x['later'], labels['later'], seed) for seed in range(3)]
    for seed in range(seeds):
        net = network(x['now'], labels['now'], seed)
        for name, more in (('default', {}), ('quantile=.5', dict(quantile=.5)), ('PLAUSIBLE', dict(settings=PLAUSIBLE))):
            cfs = confirm(GradualCF(net, domain, **more).fit(X[now]).explain(some), tomorrow)
            stands = cfs.quality()[['changes', 'distance', 'typical', 'confirmed']].mean()
            lines.append(dict(data='uci', seed=seed, method=name, rows=len(some), valid=float(cfs.valid.mean())) | stands.to_dict())
        held = domain.encode(Xt[Xt.index >= middle]).x.float()
        own = predict(net, held).argmax(1)
        agree = np.mean([(predict(n, held).argmax(1) == own).float().mean().item() for n in tomorrow])
        lines.append(dict(data='uci', seed=seed, method='real rows', rows=len(held), confirmed=float(agree)))
    return pd.DataFrame(lines).round(4)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=1000)
    a.add_argument('--seeds', type=int, default=3)
    a.add_argument('--limit', type=float, default=20, help='CPU seconds for each peer, table and seed')
    a.add_argument('--peers', type=Path, help='a folder to keep the peers in')
    a.add_argument('--data', nargs='*', choices=LOAD, default=list(LOAD))
    a.add_argument('--methods', nargs='*', choices=METHODS, default=list(METHODS))
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/believable.csv'))
    a.add_argument('--drift', action='store_true', help='UCI Credit by time alone, to the same file with _drift')
    a = a.parse_args()
    if not os.environ.get('GRADUAL_CF_DATA'): sys.exit('GRADUAL_CF_DATA must name the data folder')
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    if a.drift:
        table = drift(a.rows, a.seeds)
        with atomic(a.out.with_stem(f'{a.out.stem}_drift')) as tmp: table.to_csv(tmp, index=False)
        return print(table.to_string())
    lines = pd.read_csv(a.out).to_dict('records') if a.out.is_file() else []
    with tempfile.TemporaryDirectory() as d:
        folder = a.peers or Path(d)
        install(folder, PEERS)
        hollow(folder, 'cel', 'cel.cf_methods', 'cel.cf_methods.local_methods', 'cel.models')
        for seed in range(a.seeds):
            for name in a.data:
                done = {(l['data'], l['seed'], l['method']) for l in lines}
                if all((name, seed, m) in done for m in [*a.methods, 'real rows']): continue
                for line in lines_of(case_of(LOAD[name](), seed, a.rows, cache_dir()), a.methods, a.limit, done):
                    print({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}, flush=True)
                    lines.append(line)
                    with atomic(a.out) as tmp: pd.DataFrame(lines).round(4).to_csv(tmp, index=False)
    shown = pd.DataFrame(lines).drop(columns=['note', 'seed']).groupby(['data', 'method'], sort=False).mean(numeric_only=True)
    print(shown.round(3).to_string())


if __name__ == '__main__': main()
