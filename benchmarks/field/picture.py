"""The field as a table of means and as one picture: columns changed against outliers, a dot for each method, the larger the more models confirm it.

The run is one table, a line for each table, model, method and seed. A cell is a method on a model of a table; seeds of a cell are
averaged. A line without rows is a method that did not work there: it stays, found by nobody. The line of real rows is no method, it says
how the judges see rows that exist. A method takes part in a cell where it found an answer for 95% of the rows, and 95% of them are legal.
"""
import numpy as np
import pandas as pd

REAL = 'real rows'
ENOUGH = .95 # Share of rows with an answer, and of legal answers, from which a method takes part
SHOWN = ['found', 'legal', 'columns', 'l2', 'lof', 'isolation', 'flow', 'networks', 'refitted', 'ms']
MEASURED = ['columns', 'beyond', 'confirmed']
BESIDE = { # Names that would cover another on the right of their dot: which end of them stands where, points from the dot
    'ours': ('right', -8, 0), 'dial at 0': ('right', -7, 0), 'our LORE': ('right', -24, -11), 'CADEX': ('right', -9, 0),
    'NICE (sparsity)': ('right', -38, -20), 'NICE (proximity)': ('left', 12, -1), 'ours, quantile .5': ('center', -4, 16),
    'our Growing Spheres': ('left', 8, -3), "ours, the paper's": ('center', 6, -13), 'DiCE gradient': ('right', -10, 0),
    'NICE (plausibility)': ('left', 8, 3.5), 'CARLA CCHVAE': ('right', -10, 0), 'NICE (none)': ('left', 8, -6)}
ASKED = 15 # Rows that a method answered in all, at least
FEW = 5    # Tables below which a dot is pale
BROAD = .9 # Share of its cells in which a method takes part, from which its dot is filled


def cells_of(df): # A line for each data, model, method and seed
    "Means over seeds; found is 0 where a method did not work."
    mean = df.groupby(['data', 'model', 'method'], sort=False).mean(numeric_only=True).reset_index()
    return mean.fillna(dict(found=0., legal=0.))


def worthy(cells):
    "Cells of methods that answer, and legally."
    return cells[(cells.found >= ENOUGH) & (cells.legal >= ENOUGH) & (cells.method != REAL)]


def is_ours(method): return method.str.startswith('ours') # A setting of gradual construction; baselines are `our …`


def overall(df):
    "A line for each method: means over cells; of answers where there are any."
    cells = cells_of(df)
    mean = cells.groupby('method')[SHOWN].mean()
    mean['cells'] = cells.groupby('method').size()
    return mean.sort_values(['found', 'legal', 'columns'], ascending=[False, False, True])


def beyond_real(cells, by): # A line for each method of a cell, with one of real rows; what makes a cell
    "Cells with what the judge says beyond what it says of real rows of the same cell."
    real = cells[cells.method == REAL].set_index(by).isolation.rename('real')
    told = cells[cells.method != REAL].join(real, on=by)
    return told.assign(beyond=told.isolation - told.real).dropna(subset=['beyond'])


def methods_of(run):
    "A line for each method of the field: means over its cells, and the share of them in which it takes part."
    cells = cells_of(run).assign(rows=lambda d: d['rows'].fillna(0))
    asked = cells[cells.method != REAL].groupby('method').size()
    told = beyond_real(cells, ['data', 'model']).assign(confirmed=lambda d: d.refitted)
    mean = told.groupby('method')[MEASURED].mean()
    part = (worthy(cells).groupby('method').size()/asked).reindex(mean.index).fillna(0)
    answered = run.groupby('method').rows.sum().reindex(mean.index)
    tables = told.groupby('method').data.nunique()
    return mean.assign(part=part, tables=tables, ours=is_ours(mean.index.to_series()))[answered >= ASKED].dropna()


def dial_of(dial):
    "A line for each strength of the dial: means over tables and kinds of model."
    cells = dial.rename(columns=dict(strength='method'))
    told = beyond_real(cells, ['table', 'model', 'seed']).assign(confirmed=lambda d: d.same)
    strength = pd.to_numeric(told.method, errors='coerce')
    return told.assign(strength=strength).dropna(subset=['strength']).groupby('strength')[MEASURED].mean()


def size_of(confirmed): return 8 + 150*np.asarray(confirmed)**2 # Area of a dot, in square points


def write_names(ax, named): # Name -> (x, y, colour)
    "Write each name beside its dot, with a line to it where it stands further away."
    for name, (x, y, colour) in named.items():
        side, across, up = BESIDE.get(name, ('left', 9, 0))
        far = dict(arrowstyle='-', lw=.5, color=colour, shrinkA=0, shrinkB=4) if abs(across) + abs(up) > 20 else None
        ax.annotate(name, (x, y), (across, up), textcoords='offset points', ha=side, va='center', color=colour,
                    arrowprops=far, fontsize=7.5, bbox=dict(fc='w', ec='none', alpha=.7, pad=0))


def key_of(ax, shares=(.4, .7, 1)): # Confirmed shares
    "What the size of a dot says, in the lower left corner."
    dots = [ax.scatter([], [], size_of(v), color='none', edgecolor='.35', label=f'{v:g}') for v in shares]
    return ax.legend(handles=dots, title='confirmed', loc='lower left', frameon=False, fontsize=7.5, title_fontsize=7.5)


def frontier(ax, methods, dial, colours=('C1', '.35', 'C0')): # Of ours, of others, and of the dial
    "Draw the methods by name, the dial as a line, and real rows as another."
    ours, others, turned = colours
    tint = np.where(methods.ours, ours, others)
    for (_, m), colour in zip(methods.iterrows(), tint):
        full, clear = colour if m.part >= BROAD else 'none', 1 if m.tables >= FEW else .4
        ax.scatter(m['columns'], m.beyond, size_of(m.confirmed), color=full, edgecolor=colour, lw=1, alpha=clear,
                   zorder=4)
    ax.plot(dial['columns'], dial.beyond, color=turned, lw=1.2, zorder=1)
    ax.scatter(dial['columns'], dial.beyond, size_of(dial.confirmed), color='w', edgecolor=turned, lw=1.2, zorder=4)
    ax.axhline(0, ls='--', lw=1, color='.3')
    ax.set(xscale='log', xlabel='columns changed', ylabel='called outliers, beyond real rows', xlim=(.4, 45))
    ax.set_xticks([1, 2, 5, 10, 20], ['1', '2', '5', '10', '20'])
    ax.minorticks_off()
    ax.spines[['top', 'right']].set_visible(False)
    key_of(ax)
    named = {n: (m['columns'], m.beyond, c) for (n, m), c in zip(methods.iterrows(), tint)}
    named |= {f'dial at {s:g}': (d['columns'], d.beyond, turned) for s, d in dial.iloc[[0, -1]].iterrows()}
    ax.annotate('real rows', (1, 0), (0, 3), xycoords=('axes fraction', 'data'), textcoords='offset points', ha='right',
                color='.3', fontsize=7.5)
    write_names(ax, named)
