"""The code of the tutorials as plain files in _proc_site/tutorials/, for `make types`: a reader's editor sees it as pyright does."""
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT/'_proc_site/tutorials'


def script(nb):
    "The code cells of a notebook that run, one after the other, each under its number; a name on its own line is there to be shown."
    runs = lambda c: c.cell_type == 'code' and c.source[:1] not in '%!' and '#| eval: false' not in c.source
    cells = [f'# %% cell {i}\n{c.source}' for i, c in enumerate(nb.cells) if runs(c)]
    return '\n\n'.join(['# pyright: reportUnusedExpression=false', *cells]) + '\n'


if __name__ == '__main__':
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob('*.py'): old.unlink()
    for p in sorted((ROOT/'nbs/tutorials').glob('*.ipynb')): (OUT/f'{p.stem}.py').write_text(script(nbformat.read(p, 4)))
