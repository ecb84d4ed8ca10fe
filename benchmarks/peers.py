"""The default mode against DiCE (random, genetic), NICE and lore_sa on the same network and rows; and each baseline of this library against the package that implements it.

    GRADUAL_CF_DATA=... python benchmarks/peers.py [--rows 1000] [--limit 60] [--only lore_sa] [--venvs DIR] [--out benchmarks/results/peers.csv]

Each peer runs in a venv of its own, made under a temporary folder (or kept in --venvs), and is skipped with the reason where it will not install. All see min-max scaled columns; peers may
choose fractions where ours keeps whole numbers. Ours explains --rows rows in one call, a peer as many of the same rows as fit into --limit CPU seconds. Without GRADUAL_CF_DATA the embedded
data are used.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.all import GradualCF, l2_change, load_task, n_changed, save_model
from gradual_cf.baselines.nearest import CEM
from gradual_cf.baselines.lore import LORE
from gradual_cf.baselines.nearest import GrowingSpheres
from gradual_cf.baselines.nearest import Wachter
from gradual_cf.core import atomic
from gradual_cf.models.asking import predict

_DICE, _ALIBI = ('dice', ['dice-ml==0.12', 'numpy<2.3', 'pandas<2.3', 'safetensors']), ('alibi', ['alibi[tensorflow]==0.9.6', 'click', 'pandas', 'safetensors'])
PEERS = dict(nicex=('nicex', ['NICEx==0.2.3', 'numpy<2', 'pandas', 'safetensors', 'scikit-learn']), dice_random=_DICE, dice_genetic=_DICE, lore_sa=('lore_sa', ['lore_sa==1.1.3', 'pandas', 'safetensors']),
             alibi_wachter=_ALIBI, alibi_cem=_ALIBI, carla_spheres=('carla', ['numpy<2', 'pandas<2.3', 'safetensors'], ['carla-recourse==0.0.5']))  # the last without what it pins
BASELINES = dict(alibi_wachter=(Wachter, {}), alibi_cem=(CEM, {}), carla_spheres=(GrowingSpheres, dict(legal=False)), lore_sa=(LORE, {}))  # peer -> what it implements, with the peer's bounds


def venv(folder, name, needs, alone=()):
    "A venv with a peer in it; raises with pip's last line where it will not install."
    python = folder/name/'bin/python'
    if (folder/name/'.done').exists(): return python
    subprocess.run([sys.executable, '-m', 'venv', folder/name], check=True)
    for what in (needs, ['--no-deps', *alone] if alone else []):
        r = subprocess.run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *what], capture_output=True, text=True) if what else None
        if r and r.returncode: raise RuntimeError('does not install: ' + (r.stderr.strip().splitlines() or ['?'])[-1][:150])
    (folder/name/'.done').touch()
    return python


def line(name, model, x, xp, target, seconds, note=''):
    "One row of the table."
    p, changed = predict(model, xp).argmax(1) == target, n_changed(x, xp).double()
    some = p if p.any() else torch.ones_like(p)
    return dict(method=name, rows=len(x), valid=p.double().mean().item(), changed=changed[some].mean().item(), changed_std=changed[some].std(correction=0).item(), l2=l2_change(x, xp)[some].mean().item(),
                out_of_range=((xp < -1e-6) | (xp > 1 + 1e-6)).any(1)[some].double().mean().item(), ms_a_row=1e3*seconds, note=note)


def ours(task, rows, name='default', cls=GradualCF, hyper={}, rounds=3):
    "A method of this library on all rows in one call, and its counterfactuals."
    cf, took = cls(task.model, task.domain, **hyper).fit(task.X), []
    for _ in range(rounds):
        start = time.process_time()
        cfs = cf.explain(rows)
        took.append(time.process_time() - start)
    return line(f'gradual_cf, {name}', task.model, cfs.x, cfs.xp, cfs.tensors.target, statistics.median(took)/len(rows), f'{min(took)/len(rows)*1e3:.2f}–{max(took)/len(rows)*1e3:.2f} ms in {rounds} calls'), cfs


def peer(name, task, cfs, folder, venvs, limit):
    "A peer on the same rows."
    try:
        python = venv(venvs, *PEERS[name])
        r = subprocess.run([python, Path(__file__).with_name('peer.py'), name, folder, str(limit)], capture_output=True, text=True, env={k: v for k,v in os.environ.items() if k != 'PYTHONPATH'} | dict(OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1'), timeout=(wall := 240 + 120*limit))
        if r.returncode: raise RuntimeError((r.stderr.strip().splitlines() or ['?'])[-1][:150])
    except subprocess.TimeoutExpired: return dict(method=name, rows=0, note=f'skipped: no result in {wall:.0f} s')
    except (RuntimeError, subprocess.CalledProcessError) as e: return dict(method=name, rows=0, note=f'skipped: {e}')
    got, x = np.load(folder/f'{name}.npz'), cfs.x
    n, failed = len(got['xp']), r.stderr.count('row ')
    xp = torch.from_numpy(got['xp']).to(x)
    return line(name, task.model, x[:n], xp, cfs.tensors.target[:n], np.mean(got['seconds']), f'{failed} rows raised an error' if failed else '')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, default=1000); a.add_argument('--limit', type=float, default=60); a.add_argument('--venvs', type=Path); a.add_argument('--only', nargs='*', choices=PEERS, default=list(PEERS), help='measure these again and keep the other lines of the table'); a.add_argument('--out', type=Path, default=Path('benchmarks/results/peers.csv'))
    a = a.parse_args()
    torch.set_num_threads(1)
    task = load_task('heloc' if os.environ.get('GRADUAL_CF_DATA') else 'breast_cancer')
    pick = task.X_test.iloc[np.random.default_rng(0).permutation(len(task.X_test))[:a.rows]]
    with tempfile.TemporaryDirectory() as d:
        d, (first, cfs) = Path(d), ours(task, pick)
        print(first, flush=True)
        save_model(task.model, d/'model.safetensors')
        names = [f'x{j}' for j in range(cfs.x.shape[1])]
        for name, x in (('train', task.domain.encode(task.X).x), ('test', cfs.x)): pd.DataFrame(x.numpy(), columns=names).to_csv(d/f'{name}.csv', index=False)
        old = pd.read_csv(a.out).to_dict('records') if a.out.exists() else []
        lines = [first, *(l for l in old if l['method'] in PEERS and l['method'] not in a.only)]
        for name in a.only:
            lines.append(peer(name, task, cfs, d, a.venvs or d, a.limit))
            print(lines[-1], flush=True)
        kept = {l['method']: l for l in old}
        for its,(cls,hyper) in BASELINES.items():
            mine = f'gradual_cf, {cls.__name__}'
            lines.append(ours(task, pick, cls.__name__, cls, hyper, 1)[0] if its in a.only or mine not in kept else kept[mine])
            print(lines[-1], flush=True)
    df = pd.DataFrame(lines).assign(data=task.name, times_ours=lambda df: df.ms_a_row/df.ms_a_row[0])
    ms = df.set_index('method').ms_a_row
    df['times_own_baseline'] = [ms[m]/ms[f'gradual_cf, {BASELINES[m][0].__name__}'] if m in BASELINES else float('nan') for m in df.method]
    with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)
    print(df.round(3).to_string())


if __name__ == '__main__': main()
