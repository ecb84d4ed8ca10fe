"""Arguments of a script of this folder, by their defaults."""
import argparse
import os
import sys
import warnings
from pathlib import Path

import torch

RESULTS = Path('benchmarks/results')


def options(doc, flags=(), needs_data=False, **known): # Text of --help; names of flags; whether the data folder must be named; a default for each, or its type
    "Arguments as they were given, in one thread and without warnings; a list takes several of its members."
    a = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in flags: a.add_argument(f'--{name}', action='store_true')
    for name, v in known.items():
        kind = v if isinstance(v, type) else Path if isinstance(v, Path) else type(v)
        several = isinstance(v, (list, tuple, dict))
        a.add_argument(f'--{name}', **dict(nargs='*', choices=list(v), default=list(v)) if several else dict(type=kind, default=None if v is kind else v))
    a = a.parse_args()
    if needs_data and not os.environ.get('GRADUAL_CF_DATA'): sys.exit('GRADUAL_CF_DATA must name the data folder')
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore')
    return a
