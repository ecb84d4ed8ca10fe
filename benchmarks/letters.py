"""Letters by the thousand: how long they take, whether what they say is so, and whether two runs write the same.

    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/letters.py [--data heloc german adult] [--out FILE]
    OMP_NUM_THREADS=1 GRADUAL_CF_DATA=... python benchmarks/letters.py --principal [--trees] [--data …] [--rows 1000]

The paper's kind of network is trained on each table. All rows of the table that it refuses are explained, with the
constraints of benchmarks/splits.py; HELOC's are repeated up to 10,000 rows. Then they become letters in each format,
and each letter is checked: its values are read back from its text alone, and the network is asked about them.

rows, found       rows that were refused, and those for which an answer was found: the other letters say that none was
explain, letters  CPU seconds for all rows, of the search and of writing; total is their sum
check             CPU seconds of reading all letters and asking about what they hold
flips, legal      share of the letters with an answer whose values flip the decision, and are legal
reasons           share of these letters with at least one reason that counts by itself
same              whether a second process wrote the same bytes

With --principal, letters carry up to four principal reasons (`letter(reasons=4)`), and letters_reasons.csv says, of the
network or, with --trees, of scikit-learn's boosting:

answer, principal reasons in a letter on average: those of the answer alone, and the principal ones
exist             reasons that `reasons` finds for the same rows, on average; four, the share of letters with four
letters, with     CPU seconds of writing without and with them; check, of checking the latter
passed            share of the letters with an answer whose check says that the decision flips
"""
import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from clock import timed
from splits import LOAD, network
from gradual_cf.all import GradualCF, reasons, tabular
from gradual_cf.core import atomic
from gradual_cf.use.letter import check_evidence, letter
from sklearn.ensemble import HistGradientBoostingClassifier

ROWS = dict(heloc=10_000, german=1_000, adult=2_000)  # Rows at most; HELOC's are repeated up to them
FORMATS = 'md', 'html', 'json'
SETTINGS = dict(date='1 March 2026')


def refused(data, cf):
    "Rows of all parts that the network refuses, as many as there shall be."
    rows = pd.concat([data.X, data.held, data.pool])
    wanted = 1 if data.wanted is None else data.wanted
    rows = rows[(cf.logits(rows, cf.encode(rows).x).argmax(1) != wanted).numpy()]
    count = ROWS[data.name] if data.name == 'heloc' else min(len(rows), ROWS[data.name])
    return rows.iloc[np.arange(count) % len(rows)].reset_index(drop=True), wanted


def asked(name, trees=False):
    "An explainer of a table, the rows that it refuses, and what they want to be."
    data = LOAD[name]()
    domain = tabular(data.X, **data.rules)
    if trees: model = HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0).fit(data.X, data.y)
    else: model = network(domain.encode(data.X).x.float(), data.y, 0)
    cf = GradualCF(model, domain, 'sparse').fit(data.X)
    return cf, *refused(data, cf)


def principal(name, most, trees):
    "How many reasons letters name, with the principal ones and without."
    cf, rows, wanted = asked(name, trees)
    rows = rows.head(most)
    answer, found = cf.explain(rows, wanted), reasons(cf, rows, 4, target=wanted)
    (before, letters), (after, with_) = (timed(lambda: letter(answer, format='json', date=SETTINGS['date'], house=dict(reasons=k, ranges=False))) for k in (None, 4))
    told, checking = timed(lambda: check_evidence(after, cf, rows))
    count = lambda texts: np.array([len(json.loads(t)['reasons']) for t in texts])
    return dict(data=name, model='boosting' if trees else 'network', rows=len(rows), answer=count(before).mean(), principal=count(after).mean(), exist=len(found.frame)/len(rows),
                four=(count(after) == 4).mean(), letters=letters, **{'with': with_}, check=checking, passed=told.flips[told.changes > 0].mean())


def run(name):
    "One line for each format."
    cf, rows, wanted = asked(name)
    answer, explain = timed(lambda: cf.explain(rows, wanted))
    for form in FORMATS:
        texts, writing = timed(lambda: letter(answer, format=form, **SETTINGS))
        check, checking = timed(lambda: check_evidence(texts, cf, rows))
        told, strict = check[check.changes > 0], sum('by itself' in t or 'this alone' in t or '"alone": true' in t for t in texts)
        assert check.row.all() and check.model.all()
        yield dict(data=name, format=form, rows=len(rows), found=len(told), explain=explain, letters=writing,
                   total=explain + writing, check=checking, flips=told.flips.mean(), legal=told.legal.mean(),
                   reasons=strict/max(len(told), 1), characters=np.mean([len(t) for t in texts]),
                   sha256=hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:16])


def in_a_process(name):
    "The lines of a run of its own."
    done = subprocess.run([sys.executable, __file__, '--once', name], capture_output=True, text=True)
    if done.returncode: raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--data', nargs='*', default=list(ROWS))
    parser.add_argument('--once', help='print the lines of one table and stop')
    parser.add_argument('--principal', action='store_true', help='letters with principal reasons')
    parser.add_argument('--trees', action='store_true', help='with --principal, boosted trees in place of the network')
    parser.add_argument('--rows', type=int, default=1000, help='with --principal, rows of each table at most')
    parser.add_argument('--out', default=str(Path(__file__).parent/'results/letters.csv'))
    a = parser.parse_args()
    if a.once:
        for line in run(a.once): print(json.dumps(line), flush=True)
        return
    if a.principal:
        path = Path(__file__).parent/'results/letters_reasons.csv'
        lines = [principal(name, a.rows, a.trees) for name in a.data]
        old = pd.read_csv(path).to_dict('records') if path.exists() else []
        table = pd.DataFrame([*old, *lines]).drop_duplicates(['data', 'model'], keep='last').round(3) # the others stay
        with atomic(path) as tmp: table.to_csv(tmp, index=False)
        return print(table.to_string(index=False))
    lines = []
    for name in a.data:
        for first, second in zip(in_a_process(name), in_a_process(name)):
            same = first.pop('sha256') == second['sha256']
            lines.append(first | dict(same=same))
        table = pd.DataFrame(lines).round(3)
        with atomic(a.out) as tmp: table.to_csv(tmp, index=False)
    print(table.to_string(index=False))


if __name__ == '__main__': main()
