"""How well swaps read: fresh IMDB test reviews, with and without a rule, judged by a language model of another family.

    GRADUAL_CF_DATA=... python benchmarks/words.py                       # 300 reviews, three seeds, benchmarks/results/words.csv
    GRADUAL_CF_DATA=... python benchmarks/words.py --rows 60 --seeds 0   # a look; names another file with --csv
    GRADUAL_CF_DATA=... python benchmarks/words.py --read 40             # forty swaps of the default, before and after, words_to_read.csv

The rule learns from the even training reviews. The judge (`words_judge.py`) is a recurrent network that has read the odd ones.
A swap's score is what the judge's log-probability of the first 256 words gains by it, with all other swaps in place.
Reviews on which settings were chosen are left out. The file keeps what is done: a second call goes on. CPU seconds are counted.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from words_judge import judge, word_ids

from gradual_cf.core import atomic, cache_dir
from gradual_cf.gradual import GradualCF
from gradual_cf.data.words import _pipeline, _tags, reads_well
from gradual_cf.data.datasets import load_task
from gradual_cf.data.words import ending, load_imdb, _word_spans

RESULTS = Path(__file__).parent/'results'
LENGTH, BAD = 256, -3.
CHOSEN_ON = {11: 32, 12: 48, 13: 100}  # seeds and rows of the samples that settings were chosen on

FILTERS = {
    'today': lambda texts: dict(reads=None),
    'ending': lambda texts: dict(reads=None, allow=ending),
    'part of speech': lambda texts: dict(reads=reads_well(texts, (np.inf,))),
    'language model': lambda texts: dict(reads=reads_well(texts, tagger=None)),
    'both': lambda texts: dict(reads=reads_well(texts))}


def fresh(n, rows, seed):
    "Positions of random test reviews that no setting was chosen on."
    seen = {i for s, m in CHOSEN_ON.items() for i in np.random.default_rng(s).permutation(n)[:m]}
    return [i for i in np.random.default_rng(seed).permutation(n) if i not in seen][:rows]


def answers(name, rows, seed):
    "Explain fresh reviews under a filter, or read what a former call found: texts before and after, validity, CPU seconds."
    kept = cache_dir()/f'words-{name.replace(" ", "-")}-{rows}-{seed}.json'
    if kept.is_file(): return json.loads(kept.read_text())
    task = load_task('imdb', **FILTERS[name](list(load_imdb()[0]['text'])[::2]))
    texts = task.X_test.iloc[fresh(len(task.X_test), rows, seed)]
    cf = GradualCF(task.model, task.domain, 'sparse').fit(task.X)
    cf.explain(texts.iloc[:1])                      # what is learnt once is not counted
    start = time.process_time()
    cfs = cf.explain(texts)
    took = time.process_time() - start
    legal = task.domain.legal(cfs.data, cfs.raw).all()
    found = dict(before=list(cfs.data), after=list(cfs.raw), valid=cfs.valid.tolist(), seconds=took, legal=bool(legal))
    with atomic(kept) as f: f.write_text(json.dumps(found))
    return found


def swaps(before, after):
    "The swaps of each review: position, old word, new word."
    lines = []
    for i, pair in enumerate(zip(before, after)):
        old, new = ([t[a:b] for a, b in _word_spans(t)[:LENGTH]] for t in pair)
        lines += [(i, p, a, b) for p, (a, b) in enumerate(zip(old, new)) if a != b]
    return pd.DataFrame(lines, columns=['review', 'place', 'before', 'after'])


def scores(net, lines, length=LENGTH):
    "The judge's log-probability of texts."
    ids = [torch.tensor(line[:length]) for line in lines]
    ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=net.v + 1)
    return torch.cat([net.log_prob(part) for part in ids.split(32)]).numpy()


def judged(found, net, index):
    "The swaps with the judge's scores, and whether their part of speech was kept."
    table, (old, new) = swaps(found['before'], found['after']), (word_ids(found[k], index) for k in ('before', 'after'))
    back = [new[i][:p] + [old[i][p]] + new[i][p + 1:] for i, p in zip(table.review, table.place)]
    tags = [_tags(_pipeline('en'), t, [_word_spans(s)[:LENGTH] for s in t]) for t in (found['before'], found['after'])]
    kept = [tags[0][i][p] == tags[1][i][p] for i, p in zip(table.review, table.place)]
    return table.assign(gain=scores(net, new)[table.review] - scores(net, back), tag_kept=kept)


def spread_of(found, table, rows):
    "What answers have in common: validity, words, the judge's scores."
    words = table.groupby('review').size().reindex(range(rows), fill_value=0)
    return dict(valid=np.mean(found['valid']), legal=found['legal'], words=words.mean(), words_median=words.median(),
                words_most=words.max(), gain_median=table.gain.median(), gain_mean=table.gain.mean(),
                worse=(table.gain < BAD).mean(), tag_kept=table.tag_kept.mean(), reviews_per_cpu_second=rows/found['seconds'])


def line(name, rows, seed, net, index):
    "One line of the table."
    found = answers(name, rows, seed)
    return dict(filter=name, rows=rows, seed=seed, **spread_of(found, judged(found, net, index), rows))


def some_lines(found, table, many, seed=0, around=7):
    "Random swaps in their place, to be read."
    pick = table.sample(many, random_state=seed).sort_values('review')
    out = []
    for i, p, a, b, gain, kept in pick[['review', 'place', 'before', 'after', 'gain', 'tag_kept']].itertuples(index=False):
        words = [found['after'][i][x:y] for x, y in _word_spans(found['after'][i])[:LENGTH]]
        left, right = ' '.join(words[max(0, p - around):p]), ' '.join(words[p + 1:p + 1 + around])
        out.append(dict(review=i, left=left, before=a, after=b, right=right, gain=round(gain, 1), tag_kept=kept))
    return pd.DataFrame(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--rows', type=int, default=300), p.add_argument('--seeds', type=int, nargs='*', default=[0, 1, 2])
    p.add_argument('--only', nargs='*', choices=FILTERS, default=list(FILTERS))
    p.add_argument('--csv', type=Path, default=RESULTS/'words.csv'), p.add_argument('--read', type=int, default=0)
    a = p.parse_args()
    torch.set_num_threads(1)
    net, index = judge()
    if a.read:
        found = answers('both', a.rows, a.seeds[0])
        lines = some_lines(found, judged(found, net, index), a.read).assign(badly='', remark='')  # a person fills them in
        lines.to_csv(a.csv.with_name('words_to_read.csv'), index=False)
        return
    table = pd.read_csv(a.csv) if a.csv.is_file() else pd.DataFrame(columns=['filter', 'rows', 'seed'])
    for seed in a.seeds:
        done = set(table[(table.rows == a.rows) & (table.seed == seed)]['filter'])
        for name in (n for n in a.only if n not in done):
            table = pd.DataFrame([*table.to_dict('records'), line(name, a.rows, seed, net, index)])
            with atomic(a.csv) as f: table.round(4).to_csv(f, index=False)
            print(table.tail(1).round(3).to_string(header=False), flush=True)
    print(table.groupby('filter', sort=False).mean().round(3).to_string())


if __name__ == '__main__': main()
