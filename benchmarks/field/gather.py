"""Parts to one tidy table: a line for each table, model, method and seed, with bootstrap intervals."""
import numpy as np
import pandas as pd

from gradual_cf.core import atomic

from .judges import MEASURES

DRAWS = 500
MEANS = ['found', 'legal', *MEASURES, 'ms', 'fit', 'single', 'memory', 'cpu', 'setup']
TOLD = ['words', 'budget', 'limit', 'asked'] # The same in all lines of a part
KEY = ['data', 'model', 'method', 'seed']


def interval(v, rng):
    "The central 95% of bootstrap means."
    v = v[~np.isnan(v)]
    if len(v) < 2: return np.nan, np.nan
    means = v[rng.integers(0, len(v), (DRAWS, len(v)))].mean(1)
    return tuple(np.quantile(means, [.025, .975]))


def line(df, rng):
    "Means over the rows of a part; of answers, over those that were found."
    out = dict(rows=len(df), found=df.found.mean()) | df[TOLD].iloc[0].to_dict()
    for name in MEANS[1:]:
        v = df[name].to_numpy(float) if name in df else np.full(len(df), np.nan)
        out[name] = np.nanmean(v) if not np.isnan(v).all() else np.nan
    for name in ['found', 'legal', *MEASURES]:
        v = df[name].to_numpy(float) if name in df else np.full(len(df), np.nan)
        out[f'{name}_low'], out[f'{name}_high'] = interval(v, rng)
    return out


def gathered(folder, rows=None):
    "All parts of a folder, of each the first so many rows."
    rng, lines = np.random.default_rng(0), []
    for path in sorted(folder.glob('*.parquet')):
        df = pd.read_parquet(path)
        if rows and 'row' in df: df = df[df.row < rows]
        key = {k: df[k].iloc[0] for k in KEY}
        failed = 'row' in df and (df.row == -1).all()
        told = dict(rows=0) | df[TOLD].iloc[0].to_dict() if failed else line(df, rng)
        lines.append(key | told)
    return pd.DataFrame(lines)


def small(df):
    "Numbers in 32 bits."
    return df.astype({c: 'float32' for c in df.select_dtypes('float64')})


def with_kept(df, path):
    "Lines of an earlier table stay where the folder has no part for them: so a few cells can be done anew."
    if not path.is_file(): return df
    old = pd.read_parquet(path).set_index(KEY)
    return pd.concat([df, old[~old.index.isin(df.set_index(KEY).index)].reset_index()]).sort_values(KEY, ignore_index=True)


def main(folder, out, rows=None):
    "Write the table."
    df = gathered(folder, rows)
    if df.empty: return
    df = with_kept(df, out/'field.parquet')
    out.mkdir(parents=True, exist_ok=True)
    with atomic(out/'field.parquet') as tmp: small(df).to_parquet(tmp, index=False, compression='zstd')
    print(f'{len(df)} parts gathered in {out}')
