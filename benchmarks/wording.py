"""Swaps alone, or also words left out and put in: fresh IMDB test reviews, judged as in `words.py`.

    GRADUAL_CF_DATA=... python benchmarks/wording.py                       # 100 reviews, results/wording.csv and wording_heard.csv
    GRADUAL_CF_DATA=... python benchmarks/wording.py --rows 20 --seeds 0   # a look; names another file with --csv
    GRADUAL_CF_DATA=... python benchmarks/wording.py --read 40             # forty words that came or went, wording_to_read.csv

A change's score is what the judge's log-probability gains by it, with all others in place. Where it changes the number of words,
each word counts as much as the judge needs for a word on average; without that, leaving out a word would always be a gain.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from words import BAD, fresh, scores
from words_judge import judge

from gradual_cf.core import atomic, cache_dir
from gradual_cf.gradual import GradualCF
from gradual_cf.search.lookahead import _lead_gradient, _swap_logits
from gradual_cf.data.datasets import load_task
from gradual_cf.data.words import _ear, _Pool
from gradual_cf.data.texts import _known_word_places, _tag_kept
from gradual_cf.data.words import _lookup_form
from gradual_cf.data.wording import _changes_between, _place_candidates, wordings

RESULTS = Path(__file__).parent/'results'
WAYS = {'swaps': dict(insert=(), delete=False), 'swaps, left out': dict(insert=()), 'swaps, left out, put in': {}}
LAX = 3  # Rung of the ladder on which any drop goes, for words of a fitting kind


def domain_of(name, task):
    "The domain of a way, under the rule of `load_task`, which has learnt already."
    known = task.domain.note.args[0]
    domain = wordings(known.vectors, reads=known.reads, **WAYS[name])
    reader_of(domain).kept['ear'] = _ear(known)
    return domain


def reader_of(domain): return domain.measures.args[0]


def heard(cf, texts, positions=12, words=8):
    "How far the target's logit gets ahead by the best single change of each kind: medians over texts."
    _, enc, z, target = cf.ask(texts)
    notes = enc.notes._replace(rung=torch.full_like(enc.notes.rung, LAX))
    s = cf.start(enc._replace(notes=notes), target)
    toward, reader = _lead_gradient(cf.model, s.xp, target), reader_of(cf.domain)
    at, values, ok = _place_candidates(reader, _Pool(0., positions, words, None), s, toward, ~enc.frozen)
    with torch.no_grad(): new = _swap_logits(cf.model, s.xp, at, values)
    lead = lambda z: z.gather(-1, target.view(-1, *[1]*(z.ndim - 1)).expand(*z.shape[:-1], 1))[..., 0]*2 - z.sum(-1)
    gain = (lead(new) - lead(z)[:, None, None]).masked_fill(~ok, -torch.inf)
    kinds = {'swap': gain[:, :, :words], 'left out': gain[:, :, words:words + 1], 'put in': gain[:, :, words + 1:]}
    best = {kind: part.flatten(1).amax(1) for kind, part in kinds.items()}
    missing = -lead(z).median().item()
    return pd.DataFrame([dict(kind=kind, missing=missing, gain=v.median().item(), most=v.max().item()) for kind, v in best.items()])


def answers(name, task, rows, seed):
    "Explain fresh reviews, or read what a former call found."
    kept = cache_dir()/f'wording-{name.replace(" ", "-")}-{rows}-{seed}.json'
    if kept.is_file(): return json.loads(kept.read_text())
    texts = task.X_test.iloc[fresh(len(task.X_test), rows, seed)]
    cf = GradualCF(task.model, domain_of(name, task), 'sparse').fit(task.X)
    cf.explain(texts.iloc[:1])                      # what is learnt once is not counted
    start = time.process_time()
    cfs = cf.explain(texts)
    took = time.process_time() - start
    plain = GradualCF(task.model, task.domain, 'sparse').fit(task.X)  # knows nothing of places, and reads the answers' letters
    p = plain.logits(cfs.raw, plain.encode(cfs.raw).x).softmax(1).gather(1, cfs.tensors.target[:, None])[:, 0]
    changes, reader = cfs.changes(), reader_of(cf.domain)
    found = dict(before=list(cfs.data), after=list(cfs.raw), valid=(p >= cfs.tau).tolist(), seconds=took,
                 legal=bool(cf.domain.legal(cfs.data, cfs.raw).all()), row=changes.row.tolist(), place=changes.feature.tolist(),
                 old=changes.before.tolist(), new=changes.after.tolist(),
                 tag_kept=_tag_kept(reader, cfs, changes.row, changes.feature).tolist())
    with atomic(kept) as f: f.write_text(json.dumps(found))
    return found


def in_places(reader, old, new, index):
    "The words of each place, as the judge numbers them, before and after."
    told = _changes_between(reader, old, new)
    numbers = lambda letters: [index.get(_lookup_form(w), len(index)) for w in letters.split()]
    words = [numbers(old[a:b]) for a, b in _known_word_places(reader, old)]
    return words, [numbers(told[p]) if p in told else w for p, w in enumerate(words)]


def judged(found, reader, net, index):
    "The changes with the judge's scores."
    table = pd.DataFrame({k: found[k] for k in ('row', 'place', 'old', 'new', 'tag_kept')})
    pairs = [in_places(reader, *pair, index) for pair in zip(found['before'], found['after'])]
    line = lambda places: sum(places, [])
    befores = [line(old) for old, _ in pairs]
    usual = -scores_of(net, befores).sum()/sum(map(len, befores))
    now = [line(new) for _, new in pairs]
    undone = [line([*pairs[i][1][:p], pairs[i][0][p], *pairs[i][1][p + 1:]]) for i, p in zip(table.row, table.place)]
    more = np.array([len(now[i]) - len(u) for i, u in zip(table.row, undone)])
    gain = scores_of(net, now)[table.row] - scores_of(net, undone) + usual*more
    kind = table.new.map(lambda w: ('left out', 'swap', 'put in')[len(w.split())])
    return table.assign(gain=gain, kind=kind)


def scores_of(net, lines):
    "The judge's log-probability of whole lines of words."
    return scores(net, lines, max(map(len, lines)))


def line_of(name, rows, seed, found, table):
    "One line of the table."
    many = table.groupby('row').size().reindex(range(rows), fill_value=0)
    kinds = {k.replace(' ', '_'): (table.kind == k).mean() for k in ('left out', 'put in')}
    return dict(ways=name, rows=rows, seed=seed, valid=np.mean(found['valid']), legal=found['legal'], changes=many.mean(),
                changes_median=many.median(), changes_most=many.max(), **kinds, gain_median=table.gain.median(),
                gain_mean=table.gain.mean(), worse=(table.gain < BAD).mean(), tag_kept=table.tag_kept.mean(),
                lost_a_review=-table.gain.sum()/rows, reviews_per_cpu_second=rows/found['seconds'])


def some_lines(found, table, reader, many, around=7):
    "Random words that came or went, in their place, to be read."
    pick = table[table.kind != 'swap']
    pick = pick.sample(min(many, len(pick)), random_state=0).sort_values(['row', 'place'])
    out = []
    for i, p, old, new, gain in pick[['row', 'place', 'old', 'new', 'gain']].itertuples(index=False):
        text, spans = found['after'][i], reader.beside(found['before'][i], found['after'][i])
        words = ['' if s is None else text[slice(*s)] for s in spans]
        out.append(dict(review=i, left=' '.join(words[max(0, p - around):p]), before=old, after=new,
                        right=' '.join(words[p + 1:p + 1 + around]), gain=round(gain, 1)))
    return pd.DataFrame(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--rows', type=int, default=100), p.add_argument('--seeds', type=int, nargs='*', default=[0])
    p.add_argument('--csv', type=Path, default=RESULTS/'wording.csv'), p.add_argument('--read', type=int, default=0)
    a = p.parse_args()
    torch.set_num_threads(1)
    net, index = judge()
    task = load_task('imdb')
    table = pd.read_csv(a.csv) if a.csv.is_file() else pd.DataFrame(columns=['ways', 'rows', 'seed'])
    if a.read:
        name = list(WAYS)[2]
        found, reader = answers(name, task, a.rows, a.seeds[0]), reader_of(domain_of(name, task))
        lines = some_lines(found, judged(found, reader, net, index), reader, a.read).assign(badly='', remark='')  # a person fills them in
        lines.to_csv(a.csv.with_name('wording_to_read.csv'), index=False)
        return
    for seed in a.seeds:
        done = set(table[(table.rows == a.rows) & (table.seed == seed)].ways)
        for name in (n for n in WAYS if n not in done):
            found, reader = answers(name, task, a.rows, seed), reader_of(domain_of(name, task))
            lines = judged(found, reader, net, index)
            table = pd.DataFrame([*table.to_dict('records'), line_of(name, a.rows, seed, found, lines)])
            with atomic(a.csv) as f: table.round(4).to_csv(f, index=False)
            print(table.tail(1).round(3).to_string(header=False), flush=True)
    cf = GradualCF(task.model, domain_of(list(WAYS)[2], task), 'sparse').fit(task.X)
    told = heard(cf, task.X_test.iloc[fresh(len(task.X_test), a.rows, a.seeds[0])])
    with atomic(a.csv.with_name(f'{a.csv.stem}_heard.csv')) as f: told.round(3).to_csv(f, index=False)
    print(told.to_string())
    print(table.groupby('ways', sort=False).mean().round(3).T.to_string())


if __name__ == '__main__': main()
