"""Random IMDB test reviews of 256 words: validity on the words themselves, words changed, and what the choice of words costs.

    GRADUAL_CF_DATA=... python benchmarks/text.py --rows 500 --json benchmarks/results/text.json     # 100 and 300 entries
    GRADUAL_CF_DATA=... python benchmarks/text.py --only paper --json FILE                           # Eq. 7 on vectors, then the nearest words
    GRADUAL_CF_DATA=... python benchmarks/text.py --speed --json FILE                                # reviews a second, batch against one by one
    GRADUAL_CF_DATA=... python benchmarks/text.py --profile --json benchmarks/results/text_profile.json # where the time of a review goes

The file keeps what is done: a second call goes on. CPU seconds are counted, since other programs on the machine lengthen wall time.
"""
import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gradual_cf.search import lookahead
from gradual_cf.data import words as reading
from gradual_cf.data import texts as text
from gradual_cf.core import atomic
from gradual_cf.gradual import PAPER, TEXT, GradualCF
from gradual_cf.models.networks import _TextCNN
from gradual_cf.data.datasets import load_task


def any_word(w): return w.isalpha()


PLAIN = dict(reads=None)  # any word that fits, as the lines of the file were measured
SETTINGS = dict(    # data, arguments of the domain, settings
    reads_well=('imdb', {}, TEXT),                  # needs the extra `fluent`
    default=('imdb', PLAIN, TEXT),
    default300=('imdb300', PLAIN, TEXT),
    any_word=('imdb', dict(allow=any_word, **PLAIN), TEXT),
    greedy=('imdb', dict(beam=1, **PLAIN), TEXT),
    paper=('imdb', PLAIN, replace(PAPER, tau=.9, batch_size=32)))


def prepared(name, rows, seed):
    "The fitted explainer of a setting and random test reviews."
    data, domain, settings = SETTINGS[name]
    task = load_task(data, **domain)
    pick = np.random.default_rng(seed).permutation(len(task.X_test))[:rows]
    return GradualCF(task.model, task.domain, settings).fit(task.X), task, task.X_test.iloc[pick]


def line(name, rows, seed):
    "Explain and measure with one setting."
    cf, task, texts = prepared(name, rows, seed)
    start = time.process_time()
    cfs = cf.explain(texts)
    took, m = time.process_time() - start, task.domain.measures(cfs)
    mean = lambda v: round(float(np.mean(np.asarray(v, float))), 4)
    return dict(setting=name, rows=len(texts), seed=seed, accuracy=task.right, valid=mean(cfs.valid),
                before_lookup=mean(m['valid_before_snapping']), words=mean(m['words']), words_std=round(float(np.std(m['words'])), 4),
                cosine=mean(m['cosine']), known=mean(m['known']), cpu_seconds_per_row=round(took/len(texts), 4))


class Clock:
    "CPU seconds by part; what one part asks of another counts for the other."
    def __init__(self): self.spent, self.open = {}, []

    def timed(self, name, f):
        "The same function, on the clock."
        def run(*args, **kw):
            self.open.append(0.)
            start = time.process_time()
            try: return f(*args, **kw)
            finally:
                took, inner = time.process_time() - start, self.open.pop()
                self.spent[name] = self.spent.get(name, 0.) + took - inner
                if self.open: self.open[-1] += took
        return run


CLOCKED = (  # part, where it is looked up, what it is called there
    ('the part of speech of each word', reading, '_tags'), ('reading and writing', text, '_read_once'), ('reading and writing', text, 'rewrite_words'),
    ('ten thousand words to first order', text, '_word_pool'), ('how likely words are', reading._Ear, 'likely'),
    ('the gradient', lookahead, '_lead_gradient'), ('single swaps', _TextCNN, 'swaps'), ('passes forward', _TextCNN, 'forward'),
    ('the sets compared by loss', lookahead, '_cheapest'), ('the words that stand there now', text, '_ids_now'))


def profile(rows, seed):
    "CPU milliseconds of a review by part, in default mode."
    cf, _, texts = prepared('reads_well', rows + 2, seed)
    cf.explain(texts[:2])                           # what is learnt once is not counted
    clock = Clock()
    for name, where, f in CLOCKED: setattr(where, f, clock.timed(name, getattr(where, f)))
    clock.timed('the rest', cf.explain)(texts[2:])
    parts = sorted(clock.spent.items(), key=lambda item: item[0] == 'the rest' or -item[1])
    return dict(rows=rows, ms_a_review={name: round(1000*took/rows, 2) for name, took in parts})


def speed(rows, alone, seed):
    "Reviews a CPU second in a batch, and how many times longer the same reviews take one by one."
    cf, _, texts = prepared('default', rows, seed)
    texts = texts.text.tolist()
    cf.explain(texts[:2])
    def seconds(f):
        start = time.process_time()
        f()
        return time.process_time() - start
    batch = seconds(lambda: cf.explain(texts))
    heard, _, others = prepared('reads_well', rows + 2, seed + 1)
    heard.explain(others[:2])                       # what is learnt once is not counted
    well = seconds(lambda: heard.explain(others[2:]))
    some, one = seconds(lambda: cf.explain(texts[:alone])), seconds(lambda: [cf.explain(t) for t in texts[:alone]])
    return dict(rows=rows, reviews_per_cpu_second=round(rows/batch, 2), reads_well_per_cpu_second=round(rows/well, 2),
                one_by_one_over_batch=round(one/some, 2))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(rows=500, seed=0, alone=25).items(): p.add_argument(f'--{name}', type=int, default=value)
    p.add_argument('--json', type=Path), p.add_argument('--speed', action='store_true'), p.add_argument('--profile', action='store_true')
    p.add_argument('--only', nargs='*', choices=SETTINGS, default=[s for s in SETTINGS if s != 'paper'])
    a = p.parse_args()
    torch.set_num_threads(1)
    if a.speed or a.profile:
        print(out := json.dumps(speed(a.rows, a.alone, a.seed) if a.speed else profile(a.rows, a.seed)))
        if a.json: a.json.write_text(out + '\n')
        return
    lines = json.loads(a.json.read_text()) if a.json and a.json.is_file() else []
    done = {(l['setting'], l['rows'], l['seed']) for l in lines}
    for name in (n for n in a.only if (n, a.rows, a.seed) not in done):
        lines.append(line(name, a.rows, a.seed))
        print(lines[-1], flush=True)
        if a.json:
            with atomic(a.json) as f: f.write_text(json.dumps(lines, indent=1) + '\n')
    print(pd.DataFrame(lines).set_index('setting').to_string())


if __name__ == '__main__': main()
