"""Explain the paper's own sentences (Tables 2, 3, 7 and Figure 1) and write benchmarks/results/text_tables.json.

    GRADUAL_CF_DATA=... python benchmarks/text_tables.py [--model300 FILE] [--sigma 500]

Networks come from the cache (`gradual-cf train imdb`, `gradual-cf train imdb300`) or are trained now.
"""
import argparse
import json
from pathlib import Path

import torch

from gradual_cf.all import GradualCF, PAPER, l2_distance, load_task, mix, target_score

SENTENCES = dict(
    figure1=[('Perfect film from beginning to end', 0)],
    table2=[('It was one of the best theatre experiences I have ever had', 0), ('This film is great and great', 0), ('The film is awful', 1)],
    table3=[('The ultimate homage to a great film actress. The film is a masterpiece of poetry on the screen. Like great poetry it is timeless.  Direction, cast, screenplay, music, lyrics, in fact all the norms for movie…', 0),
            ("I was pretty disappointed in what I believe was one of Audrey Hepburn's last movies. I 'll always love John Ritter best in slapstick. He was just too pathetic here...", 1),
            ('The mood of the film is captured perfectly by the camera-work and ( lack of ) lighting. A great discourse...', 0),
            ('Yes, The Southern Star features a pretty forgettable title tune sung by that heavy set crooner Matt Monro. It pretty much establishes the tone for this bloated and rather dull feature, ...', 1)],
    table7=[('It could be one of the best movies of the year', 0), ('There are many other funny scenes in this film', 0)])


def settings(sigma):
    "Name -> settings: the default, the paper's route, and the paper's route without the logit distribution (Eq. 12)."
    paper = PAPER | dict(sigma=sigma)
    return {'default': {}, 'paper': paper, 'paper without logits': paper | dict(loss=mix(score=(1., target_score), l2=(.3, l2_distance)))}


def lines(task, dim, sigma):
    "One record for each sentence and setting."
    out = []
    for name, hyper in settings(sigma).items():
        cf = GradualCF(task.model, task.domain, **hyper).fit(task.X)
        for table, pairs in SENTENCES.items():
            cfs = cf.explain([s for s, _ in pairs], target=[t for _, t in pairs])
            for i, (text, target) in enumerate(pairs):
                one = cfs[i]
                swaps = [(l.before, l.after) for l in one.changes().itertuples()]
                out.append(dict(table=table, dim=dim, setting=name, text=text, target=target, after=one.raw[0], swaps=swaps, before_prob=round(one.before.item(), 3),
                                found=round(one.found.item(), 3), prob=round(one.prob.item(), 3), valid=one.valid.item(), html=task.domain.show(one)))
    return out


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--model100'), p.add_argument('--model300'), p.add_argument('--sigma', type=int, default=500)
    a = p.parse_args()
    torch.set_num_threads(1)
    records, accuracy = [], {}
    for dim, name, model in ((100, 'imdb', a.model100), (300, 'imdb300', a.model300)):
        task = load_task(name, model=model, length=64)        # the sentences are short; fewer places cost less
        accuracy[dim] = task.right
        records += lines(task, dim, a.sigma)
    path = Path(__file__).parent/'results'/'text_tables.json'
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dict(sigma=a.sigma, accuracy=accuracy, lines=records), indent=1, ensure_ascii=False))
    print(path)
