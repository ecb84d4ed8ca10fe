"""What the run of the field says: who wins which measure, and who is on the front that no other method beats.

The run is one table, a line for each table, model, method and seed. A cell is a method on a model of a table; seeds of a cell are
averaged. A line without rows is a method that did not work there: it stays, found by nobody. The line of real rows is no method, it says
how the judges see rows that exist. Only a method takes part that found an answer for 95% of the rows, and whose answers are legal in
95%: a method that makes a person younger may be fast, but it must not win anything. Where several are equally good they share a win.
A method dominates another where it is at least as good in every measure and better in one; those that nobody dominates are the front.
A local outlier factor hardly tells methods apart on tables of categories, so the front counts the isolation forest.
"""
import json

import numpy as np
import pandas as pd

from gradual_cf.paper.reproduce import results

REAL = 'real rows'
LESS = ('columns', 'l1', 'l2', 'mad', 'lof', 'isolation', 'near', 'ms') # Measures of which less is better …
MORE = ('density', 'flow', 'networks', 'refitted')                       # … and more
SENSE = dict.fromkeys(LESS, 1) | dict.fromkeys(MORE, -1)


def cells_of(
    df:pd.DataFrame, # A line for each data, model, method and seed
) -> pd.DataFrame:   # A line for each data, model and method; found is 0 where a method did not work
    "Means over seeds."
    mean = df.groupby(['data', 'model', 'method'], sort=False).mean(numeric_only=True).reset_index()
    return mean.fillna(dict(found=0., legal=0.))


ENOUGH = .95 # Share of rows with an answer, and of legal answers, from which a method takes part


def worthy(cells:pd.DataFrame) -> pd.DataFrame:
    "Cells of methods that answer, and legally."
    return cells[(cells.found >= ENOUGH) & (cells.legal >= ENOUGH) & (cells.method != REAL)]


def shares_won(
    v:np.ndarray, # Values of a measure in one cell, the smaller the better; NaN where there is none
) -> np.ndarray:  # Which share of the cell each has won
    "The best win, together."
    best = np.isclose(v, np.nanmin(v)) if not np.isnan(v).all() else np.zeros(len(v), bool)
    return best/max(1, best.sum())


def who_wins(
    df:pd.DataFrame,   # A line for each data, model, method and seed, as in `field.parquet`
    measures=('columns', 'l2', 'lof', 'isolation', 'near', 'networks', 'refitted', 'ms'), # Which to look at
) -> pd.DataFrame:     # Methods × measures: number of cells won; the column `takes part` counts cells
    "Count who is best at what, among methods that answer 95% of the rows, 95% of that legally."
    cells = worthy(cells_of(df))
    won = cells[['method']].assign(**{'takes part': 1})
    for name in measures:
        sense = SENSE[name]
        won[name] = cells.groupby(['data', 'model'])[name].transform(lambda v: shares_won(sense*v.to_numpy(float)))
    table = won.groupby('method').sum()
    return table.sort_values(list(measures), ascending=False)


AXES = 'columns', 'isolation', 'networks' # Few changes, among real rows, and other models agree


def undominated(
    v:np.ndarray, # Methods × measures, the smaller the better
) -> np.ndarray:  # bool, one for each method
    "Which rows no other row dominates."
    no_worse = (v[:, None] >= v[None]).all(2) # [i, j]: j is at least as good as i
    better = (v[:, None] > v[None]).any(2)
    return ~np.logical_or.reduce(no_worse & better, axis=1)


def front_of(
    df:pd.DataFrame,  # As `who_wins` takes it
    axes=AXES,       # Measures that count
) -> pd.DataFrame:    # Cells of methods that take part, with `front`
    "Which methods are on the front of their cell."
    cells = worthy(cells_of(df)).dropna(subset=list(axes)).copy()
    sense = np.array([SENSE[a] for a in axes])
    cells['front'] = False
    for _,rows in cells.groupby(['data', 'model']):
        cells.loc[rows.index, 'front'] = undominated(rows[list(axes)].to_numpy(float)*sense)
    return cells


def is_ours(method): return method.str.startswith('ours') # A setting of gradual construction; baselines are `our …`


def without_us(front:pd.DataFrame) -> list: # (data, model)
    "Cells on whose front no setting of this package is."
    there = front[front.front & is_ours(front.method)]
    found = {*map(tuple, there[['data', 'model']].to_numpy())}
    return sorted({*map(tuple, front[['data', 'model']].to_numpy())} - found)


def command_of(line) -> str: # A line of the table
    "The command that does a part once more."
    part = f'--data {line.data} --models {line.model} --methods "{line.method}" --seed {line.seed}'
    return f'python -m benchmarks.field {part} --rows {line.asked:.0f} --limit {line.limit:g} --again'


SHOWN = ['found', 'legal', 'columns', 'l2', 'lof', 'isolation', 'flow', 'networks', 'refitted', 'ms']


def overall(df:pd.DataFrame) -> pd.DataFrame: # A line for each method
    "Means over cells; of answers where there are any."
    cells = cells_of(df)
    mean = cells.groupby('method')[SHOWN].mean()
    mean['cells'] = cells.groupby('method').size()
    return mean.sort_values(['found', 'legal', 'columns'], ascending=[False, False, True])


def chosen(data=None, model=None) -> pd.DataFrame:
    "The committed run, or a part of it; raises `ValueError` for a table or model that is not in it."
    df = results('field.parquet')
    for name,v in dict(data=data, model=model).items():
        known = sorted(df[name].unique())
        if v is not None and v not in known: raise ValueError(f'{name} must be one of {known}, got {v!r}')
        if v is not None: df = df[df[name] == v]
    return df


def field_text(df:pd.DataFrame) -> str:
    "Both tables as text, and what was run."
    rows = df[df.method != REAL].rows
    counts = f'{df.data.nunique()} tables, {df.model.nunique()} models, {df.method.nunique() - 1} methods'
    counts = f'{counts}, {df.seed.nunique()} seeds'
    first = f'{counts}; at most {int(rows.max())} rows a cell, {int((rows == 0).sum())} cells in which a method does not work'
    one = df.data.nunique() == df.model.nunique() == 1
    commands = [command_of(line) for line in df.itertuples()] if one else ['gradual-cf field --data D --model M says by which commands']
    again = '\n'.join(['A cell once more:', *commands])
    show = dict(float_format='{:.2f}'.format, na_rep='–')
    wins = who_wins(df)
    wins = wins[wins.drop(columns='takes part').sum(axis=1) > 0]
    last = f'Who wins how many cells, among methods that answer {ENOUGH:.0%} of the rows, {ENOUGH:.0%} of that legally:'
    won = wins.to_string(float_format='{:.1f}'.format, na_rep='–')
    return '\n\n'.join([first, overall(df).to_string(**show), last, won, again])


def field_values(df:pd.DataFrame) -> dict:
    "The same as JSON values."
    values = lambda table: json.loads(table.reset_index().to_json(orient='records'))
    cells = cells_of(df).drop(columns='seed', errors='ignore')
    return dict(cells=values(cells), methods=values(overall(df)), wins=values(who_wins(df)))
