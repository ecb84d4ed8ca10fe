"""Make the networks that tests and executed notebooks explain, and their table, networks.csv.

    python tests/networks/make.py [NAME…]     # those named; else all that are missing, damaged, or of another recipe

Every network has one recipe: data, architecture, settings, seed. Files that are as the table says are left alone, since
training gives other weights on another processor: what is written down holds everywhere.
"""
import __future__

import argparse
import ast
import csv
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import nbformat
import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT/'tests')]
import written  # noqa: E402

from gradual_cf.data import datasets as tasks  # noqa: E402
from gradual_cf.models.networks import accuracy, save_model, seeded, tabular_mlp, text_cnn, train  # noqa: E402
from gradual_cf.data.tables import tabular  # noqa: E402
from gradual_cf.data.texts import _Lookup, _word_ids
from gradual_cf.data.words import corpus_vectors, load_toy_reviews  # noqa: E402


class Recipe(NamedTuple):
    "How a network is made."
    make:Callable  # (recipe) -> network, its accuracy
    data:Callable|None  # () -> encoded rows, labels
    build:Callable|None # (rows, seed) -> untrained network
    seed:int
    settings:dict  # of the data, of `train`


def by_hand(recipe):
    "A network that is trained as a reader would."
    x, y = recipe.data()
    net = train(recipe.build(x, recipe.seed), x.float(), y, seed=recipe.seed, **recipe.settings)
    return net, accuracy(net, x.float(), y)


def mlp(data, k=2, width=32, seed=0, **settings):
    "A recipe of the package's network for tables, trained until it knows a few hundred rows."
    settings = dict(epochs=200, lr=3e-3, batch_size=32) | settings
    return Recipe(by_hand, data, lambda x, seed: tabular_mlp(x.shape[1], k, width, seed=seed), seed, settings)


@cache
def trained_task(task, seed):
    "The embedded task with its networks, trained by the package in an empty folder."
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, GRADUAL_CF_CACHE=folder):
        done = tasks.load_task(task, seed=seed)
        done.judge  # trained when it is looked at
    return done


def of_task(task, seed=0, judge=False):
    "A recipe of a network of an embedded task: the package's own."
    def make(recipe):
        done = trained_task(task, seed)
        if judge: return done.judge, accuracy(done.judge, done.domain.encode(done.X_test).x, done.y_test)
        return done.model, done.accuracy()
    return Recipe(make, None, None, seed, dict(task=task, judge=judge, **tasks.RECIPES[task].fit))


def table(df, y, **rules):
    "Rows as a network reads them, and labels."
    return tabular(df, **rules).encode(df).x, y


def of_test(module, data):
    "Rows and labels that a file of tests has: what `data` takes from it."
    return lambda: data(importlib.import_module(module))


def before(source, name, x, y, folder=ROOT):
    "Rows and labels that a program has made by the statement that loads the network: two expressions of its names."
    names, was = {'__name__': '__main__'}, Path.cwd()
    os.chdir(folder)
    try:
        for node in ast.parse(source).body:
            if f'networks/{name}.' in ast.unparse(node): return eval(x, names), eval(y, names)
            exec(compile(ast.Module([node], []), name, 'exec', __future__.annotations.compiler_flag), names)
    finally: os.chdir(was)
    raise ValueError(f'the program must load tests/networks/{name}.safetensors')


def of_notebook(name, path, x, y):
    "Rows and labels of a notebook, which must load the network."
    cells = [c.source for c in nbformat.read(ROOT/'nbs'/path, 4).cells if c.cell_type == 'code']
    if not any(f'networks/{name}.' in c for c in cells): raise ValueError(f'nbs/{path} must load tests/networks/{name}.safetensors')
    def data(): return before('\n'.join(cells), name, x, y, (ROOT/'nbs'/path).parent)
    return data


def digits():
    "The embedded digits of the task, and labels."
    task = written.load_task('digits')
    return task.domain.encode(np.array(task.X)).x, np.array(task.y)


def line_of_pixels(seed):
    "A logistic regression of 8×8 pixels."
    with seeded(seed): return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def reviews(n, dim):
    "Made-up reviews as numbers of words, labels, and their vectors."
    texts = load_toy_reviews(n, 6)[0]
    vectors = corpus_vectors(texts['text'], dim)
    return _word_ids(vectors, texts, 40), torch.tensor(texts['label']), vectors


def reader(n, dim):
    "A recipe of a small reader of made-up reviews."
    def make(recipe):
        x, y, vectors = reviews(n, dim)
        net = text_cnn(dim, filters=dim, seed=recipe.seed)
        looked_up = train(_Lookup(vectors, net), x, y, seed=recipe.seed, **recipe.settings)
        return net, accuracy(looked_up, x, y)
    return Recipe(make, None, None, 0, dict(epochs=10, lr=5e-3, batch_size=32, weight_decay=0.))


def line(x, seed):
    "A logistic regression."
    with seeded(seed): return torch.nn.Linear(x.shape[1], 2)


def transformer(recipe):
    "A small BERT that reads made-up reviews: weights alone, whose configuration is the test's."
    from test_transformers import learnt
    return learnt(recipe.seed, **recipe.settings)


NETWORKS = {}  # name -> recipe
for task, seed in written.TASKS:
    for i, name in enumerate(written.names_of(task, seed)): NETWORKS[name] = of_task(task, seed, judge=i == 1)
NETWORKS |= dict(  # of the tables and texts that tests make up
    bert=Recipe(transformer, None, None, 0, dict(epochs=8, lr=2e-3, batch_size=32)),
    bank=mlp(of_test('made', lambda t: table(*t.table()))),
    browser=mlp(of_test('test_browser', lambda t: before(t.PANEL, 'browser', 'domain.encode(loans).x', '(score > 2.5).to_numpy(int)'))),
    people=mlp(of_test('test_explorer', lambda t: table(t.make_people(), t.decided(t.make_people())))),
    incomes=mlp(of_test('test_typical', lambda t: table(*t.people()))),
    incomes_1=mlp(of_test('test_typical', lambda t: table(*t.people())), seed=1),
    incomes_2=mlp(of_test('test_typical', lambda t: table(*t.people())), seed=2),
    incomes_missing=mlp(of_test('test_typical', lambda t: table(*t.with_holes()))),
    wine=mlp(of_test('test_typical', lambda t: table(*t.wine())), k=3),
    tied=mlp(of_test('test_alternatives', lambda t: table(*t.tied_rows()))),
    jobs=mlp(of_test('test_alternatives', lambda t: table(*t.loan_rows()))),
    digits_line=Recipe(by_hand, digits, lambda x, seed: line_of_pixels(seed), 0, dict(epochs=60, batch_size=32)),
    reviews=reader(600, 32),
    reviews_small=reader(400, 16))


def nb_mlp(name, path, x, y, **settings):
    "A recipe of the package's network for tables, on what a notebook has made up."
    return mlp(of_notebook(name, path, x, y), **settings)


def nb_reader(name, path, vectors, texts, labels, filters):
    "A recipe of a reader of a notebook's texts: its word vectors, texts and labels, as expressions of its names."
    def make(recipe):
        (words, lines), y = of_notebook(name, path, f'({vectors}, {texts})', f'torch.as_tensor({labels})')()
        x, net = _word_ids(words, lines, 40), text_cnn(words.table.shape[1], filters=filters, seed=recipe.seed)
        looked_up = train(_Lookup(words, net), x, y, seed=recipe.seed, **recipe.settings)
        return net, accuracy(looked_up, x, y)
    return Recipe(make, None, None, 0, dict(epochs=10, lr=5e-3, batch_size=32, weight_decay=0.))


def in_doubles(recipe):
    "A small network in 64-bit floats, trained on all rows at once."
    x, y = recipe.data()
    net = recipe.build(x, recipe.seed)
    opt = torch.optim.Adam(net.parameters(), lr=.01, weight_decay=1e-4)
    for _ in range(recipe.settings['epochs']):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    return net, accuracy(net, x, y)


def three_layers(x, seed):
    "Three linear layers in 64-bit floats."
    from torch.nn import Linear, ReLU, Sequential
    with seeded(seed): return Sequential(Linear(30, 32), ReLU(), Linear(32, 32), ReLU(), Linear(32, 2)).double()


NETWORKS |= dict(  # of what notebooks make up
    nuclei=Recipe(in_doubles, of_notebook('nuclei', '07_gradual.ipynb', 'X', 'y'), three_layers, 0, dict(epochs=120)),
    company=nb_mlp('company', 'search/03_plausible.ipynb', 'table.encode(people).x', 'accepted.to_numpy(int)'),
    proof=nb_mlp('proof', 'search/13_proven.ipynb', 'x', 'paid.to_numpy()', width=16),
    typical=nb_mlp('typical', 'measures/00_metrics.ipynb', 'domain.encode(X).x', 'good.astype(int)'),
    asking=nb_mlp('asking', 'use/05_editors.ipynb', 'bank.encode(people).x', 'granted'),
    critic=nb_reader('critic', 'use/04_drawing.ipynb', 'vectors', 'reviews', "reviews['label']", 16),
    editors=nb_mlp('editors', 'use/05_editors.ipynb', 'bank.encode(people).x', 'granted'),
    explorer=nb_mlp('explorer', 'use/06_explorer.ipynb', 'tumours.encode(X).x', 'y.to_numpy()'),
    letter=nb_mlp('letter', 'use/03_letter.ipynb', 'bank.encode(people).x', 'good.astype(int)'),
    letter_other=nb_mlp('letter_other', 'use/03_letter.ipynb', 'bank.encode(people).x', 'good.astype(int)', seed=1),
    audit=nb_mlp('audit', 'use/02_audit.ipynb', 'domain.encode(read).x', 'granted', width=16),
    strict_loan=nb_mlp('strict_loan', 'tutorials/ask_what_if.ipynb', 'domain.encode(loans).x', 'granted'),
    tied_loan=nb_mlp('tied_loan', 'tutorials/plans_and_other_ways.ipynb', 'tied.encode(cards).x', 'granted'))


def wanted(names):
    "Names to make: those asked for, else those without a file as the table says, or with another recipe than the table's."
    if unknown := set(names) - set(NETWORKS): sys.exit(f'no recipe for {sorted(unknown)}; there are {sorted(NETWORKS)}')
    there = written.rows() if written.TABLE.exists() else {}
    same = lambda n: n in there and written.hash_of(written.file_of(n)) == there[n]['sha256'] and said(NETWORKS[n]) == (there[n]['seed'], there[n]['settings'])
    return list(names) or [n for n in NETWORKS if not same(n)]


def said(recipe):
    "Seed and settings as the table has them."
    return str(recipe.seed), json.dumps(recipe.settings, sort_keys=True)


HALVED = 'animals_judge',  # kept in 16 bits and read back into 32: the largest, so that all of them stay small


def halve(path):
    "Write weights again with half the bytes."
    with safe_open(path, 'pt') as f: meta = f.metadata()
    save_file({k: v.half() if v.is_floating_point() else v for k, v in load_file(path).items()}, path, meta)


def make(name):
    "Train a network, write it, and return its row of the table."
    recipe = NETWORKS[name]
    net, share = recipe.make(recipe)
    meta = {k: v for k, v in getattr(net, 'meta', {}).items() if k != 'spec'}
    if hasattr(net, 'spec'): save_model(net, written.file_of(name), **meta)
    else: save_file({k: v.contiguous() for k, v in net.state_dict().items()}, written.file_of(name))
    if name in HALVED: halve(written.file_of(name))
    seed, settings = said(recipe)
    return dict(name=name, seed=seed, settings=settings, accuracy=f'{share:.4f}', sha256=written.hash_of(written.file_of(name)))


def main(names):
    "Make what is wanted and write the table."
    there = {n: r for n, r in (written.rows() if written.TABLE.exists() else {}).items() if n in NETWORKS}
    for name in wanted(names):
        there[name] = make(name)
        print(f"{name}: accuracy {there[name]['accuracy']}, {written.file_of(name).stat().st_size:,} bytes", flush=True)
        with open(written.TABLE, 'w', newline='') as f:
            to = csv.DictWriter(f, ['name', 'seed', 'settings', 'accuracy', 'sha256'], lineterminator='\n')
            to.writeheader()
            to.writerows(there[n] for n in NETWORKS if n in there)
    for extra in set(written.FOLDER.glob('*.safetensors')) - {written.file_of(n) for n in NETWORKS}: extra.unlink()
    size = sum(p.stat().st_size for p in written.FOLDER.glob('*.safetensors'))
    print(f'{len(there)} networks, {size:,} bytes')
    if size > 3_000_000: sys.exit('more than 3 MB')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('names', nargs='*')
    main(parser.parse_args().names)
