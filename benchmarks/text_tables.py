"""Explain the paper's own sentences (Tables 2, 3, 7 and Figure 1) and write benchmarks/results/text_tables.json.

    GRADUAL_CF_DATA=... python benchmarks/text_tables.py [--model100 FILE] [--model300 FILE] [--sigma 500]

Networks come from the cache (`load_task('imdb')`, `load_task('imdb300')`) or are trained now.
`gradual-cf reproduce table2` and its siblings run the same sentences and set them beside the paper's.
"""
import argparse
import json
from pathlib import Path

import torch

from gradual_cf.all import load_task
from gradual_cf.paper.reproduce import _explain_sentences

if __name__ == '__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--model100'), p.add_argument('--model300'), p.add_argument('--sigma', type=int, default=500)
    a = p.parse_args()
    torch.set_num_threads(1)
    records, accuracy = [], {}
    for dim, name, model in ((100, 'imdb', a.model100), (300, 'imdb300', a.model300)):
        task = load_task(name, model=model, length=64, reads=None)        # the sentences are short; fewer places cost less
        accuracy[dim] = task.right
        records += _explain_sentences(task, dim, a.sigma)
    path = Path(__file__).parent/'results'/'text_tables.json'
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dict(sigma=a.sigma, accuracy=accuracy, lines=records), indent=1, ensure_ascii=False))
    print(path)
