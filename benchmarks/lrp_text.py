"""Relevance of the paper's own sentences (Table 2, LRP) and of their counterfactuals; writes benchmarks/results/lrp_text.json.

    GRADUAL_CF_DATA=... python benchmarks/lrp_text.py

The network comes from the cache (`load_task('imdb')`) or is trained now.
"""
import json
from pathlib import Path

import torch

from gradual_cf.core import atomic
from gradual_cf.gradual import GradualCF
from gradual_cf.measures.relevance import relevance
from gradual_cf.data.datasets import load_task

SENTENCES = {'It was one of the best theatre experiences I have ever had': 0, 'This film is great and great': 0, 'The film is awful': 1}


def record(rel, i, kind):
    "One text with its relevance."
    df = rel.df()
    return dict(kind=kind, text=rel.data[i], target=rel.target[i].item(), logit=round(rel.logit[i].item(), 4), delta=round(rel.delta[i].item(), 4),
                words=[(l.feature, round(l.relevance, 4)) for l in df[df.row == i].itertuples()], html=rel.words(i))


if __name__ == '__main__':
    torch.set_num_threads(1)
    task = load_task('imdb', length=64)
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    cfs = cf.explain(list(SENTENCES), target=list(SENTENCES.values()))
    before = relevance(task.model, task.domain, list(SENTENCES), target=[1 - t for t in SENTENCES.values()])
    after = relevance(task.model, task.domain, cfs)
    lines = [record(r, i, kind) for i in range(len(SENTENCES)) for kind,r in (('original', before), ('counterfactual', after))]
    path = Path(__file__).parent/'results'/'lrp_text.json'
    with atomic(path) as tmp: tmp.write_text(json.dumps(dict(accuracy=task.right, rules='epsilon 1e-6', lines=lines), indent=1, ensure_ascii=False))
    print(path)
