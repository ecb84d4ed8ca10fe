"""Networks that are written down, so that what tests and executed notebooks say about the search holds on any machine.

`networks/make.py` makes the files and their table. A network of an embedded task is *planted*: it lies in the cache
folder under the name that the package's own `load_task` looks for, which then finds it there and trains nothing. The table alone is read without PyTorch.
"""
import csv
import hashlib
import os
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from unittest.mock import patch

FOLDER = Path(__file__).resolve().parent/'networks'
TABLE = FOLDER/'networks.csv'
TASKS = [(name, 0) for name in ('loans', 'breast_cancer', 'digits', 'toy_reviews', 'animals', 'cbf')]  # and their seeds


def file_of(name): return FOLDER/f'{name}.safetensors'


def hash_of(path): return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ''


def rows():
    "The table of networks by their names."
    with open(TABLE, newline='') as f: return {row['name']: row for row in csv.DictReader(f)}


def damaged():
    "Files that are not what the table says."
    return [file_of(name) for name, row in rows().items() if hash_of(file_of(name)) != row['sha256']]


def complaint(paths):
    "What to do about files that are not what the table says, in one line."
    names = ', '.join(f'tests/networks/{p.name}' for p in paths)
    return f'missing or damaged: {names}; get the files back from git, or make them again: make networks'


def read(name, model=None):
    "A network that is written down; weights alone go into `model`."
    from gradual_cf.models.networks import load_model
    return load_model(file_of(name), model)


def names_of(task, seed):
    "Names of the network and of the judge of an embedded task."
    stem = f'{task}_{seed}' if seed else task
    return [stem] if task == 'toy_reviews' else [stem, f'{stem}_judge']


@contextmanager
def planting(names):
    "Inside, the package's `load_task` finds networks of these names in the cache folder, in the order in which it asks."
    from gradual_cf.models import fingerprints as identity
    from gradual_cf.data import datasets as tasks
    from gradual_cf.core import atomic, cache_dir
    from gradual_cf.models.networks import load_model
    names, make_once = iter(names), identity._make_once
    def only_other_files(path, make, write):
        if path.suffix != '.safetensors': make_once(path, make, write)
    def found(path):
        if Path(path).parent != Path(cache_dir()): return load_model(path)  # the user's own
        source = file_of(next(names)).read_bytes()
        if not path.is_file() or path.read_bytes() != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic(path) as tmp: tmp.write_bytes(source)
        return load_model(path)
    with patch.object(identity, '_make_once', only_other_files), patch.object(tasks, 'load_model', found): yield


def load_task(name, seed=0, model=None, **told):
    "The package's `load_task`, of which the networks are planted; it asks for that of the task, unless `model` is one, and then for the judge's."
    from gradual_cf.data import datasets as tasks
    names = names_of(name, seed)[model is not None:] if (name, seed) in TASKS else []
    with planting(names) if names else nullcontext():
        task = tasks.load_task(name, seed=seed, model=model, **told)
        if names: task.judge  # looked at while its file is at hand
    return task


def plant():
    "All networks of embedded tasks are in the cache folder, where kernels and commands will look for them."
    for name, seed in TASKS: load_task(name, seed=seed)


@cache
def known(): return {row['sha256'] for row in rows().values()}


def trained(since):
    "Networks of embedded tasks that were trained into the cache folder after a time: names of files."
    files = [p for name in dict(TASKS) for p in Path(os.environ['GRADUAL_CF_CACHE']).glob(f'{name}-*.safetensors')]
    return {p.name for p in files if p.stat().st_mtime >= since and hash_of(p) not in known()}
