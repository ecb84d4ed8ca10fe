"""The survey: what is asked, what is noted, what is counted; the page in a browser where there is one."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import torch

from gradual_cf.all import Counterfactuals, images, questions, survey, tally
from gradual_cf.paper.survey import _COLUMNS, _PROXY, _shares_taken

ROOT = Path(__file__).resolve().parent.parent


def result(n, seed, classes=10):
    "Made-up counterfactuals of 8×8 images."
    x = torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    t = torch.arange(n) % classes
    p = torch.ones(n)
    return Counterfactuals(x, x, x > 0, t, p, images(block=2), p)


@pytest.fixture(scope='module')
def qs(): return questions({m: result(30, i) for i,m in enumerate(('a', 'b', 'c', 'd'))})


def answers(qs, who, f=lambda t: t):
    return pd.DataFrame(dict(survey=qs.name, participant=who, item=range(len(qs)), answer=[f(t) for t in qs.target], seconds=1.))


def test_a_hundred_images_mixed_by_seed(qs):
    assert len(qs) == 100 and all(qs.method.count(m) == 25 for m in 'abcd')
    assert len({qs.method[i:i + 4] for i in range(0, 100, 4)}) > 10            # not in turns
    again,other = (questions({m: result(30, i) for i,m in enumerate('abcd')}, seed=s) for s in (0, 1))
    assert (again.name, again.method, again.target) == (qs.name, qs.method, qs.target)
    assert other.name != qs.name


def test_questions_hold_the_images_of_their_rows(qs):
    sources = {m: result(30, i) for i,m in enumerate('abcd')}
    for x,m,t in list(zip(qs.x, qs.method, qs.target))[:12]:
        row = (sources[m].xp == x).flatten(1).all(1).nonzero()
        assert len(row) == 1 and sources[m].target[row[0, 0]] == t


def test_wilsons_ends_are_the_roots_of_his_equation():
    for right,n in ((0, 7), (3, 9), (25, 25), (600, 750)):
        line, = _shares_taken('a judge', 'people', ['ours']*n, [True]*right + [False]*(n - right))
        for s in (line['low'], line['high']): assert abs((right/n - s)**2 - 1.959963984540054**2*s*(1 - s)/n) < 1e-9


def test_the_tally_counts_by_method(qs):
    wrong_on = lambda who, bad: answers(qs, who).assign(answer=[(t + (m in bad)) % 10 for m,t in zip(qs.method, qs.target)])
    t = tally([wrong_on('p1', 'a'), wrong_on('p2', 'ab')], qs).table.set_index('method')
    assert t.share.to_dict() == dict(a=0, b=.5, c=1, d=1) and (t.answers == 50).all()
    assert all((t.low <= t.share) & (t.share <= t.high)) and set(t.who) == {'people, 2'}


def test_judges_are_labelled_as_a_proxy_everywhere(qs):
    oracle = lambda x: torch.eye(10)[[qs.target[int((qs.x == r).flatten(1).all(1).nonzero()[0, 0])] for r in x]]
    t = tally([answers(qs, 'p')], qs, {'J': oracle, 'S': lambda x: -oracle(x)})
    assert t.table[t.table.who == 'J'].share.eq(1).all() and t.table[t.table.who == 'S'].share.eq(0).all()
    assert set(t.table[t.table.by != 'people'].by) == {_PROXY} and 'proxy' in _PROXY
    labels = [l.get_text() for l in t.plot().axes[0].get_legend().get_texts()]
    assert sum('proxy' in l for l in labels) == 2 and sum(l.startswith('people') for l in labels) == 1
    assert t._repr_html_() == t._repr_html_()


def test_files_are_read(tmp_path, qs):
    files = [tmp_path/f'{w}.csv' for w in ('0123', 'x')]
    for f in files: answers(qs, f.stem).to_csv(f, index=False)
    assert tally(files, qs).table.equals(tally([answers(qs, '0123'), answers(qs, 'x')], qs).table)     # '0123' is a name, no number
    part = answers(qs, 'q').iloc[:40]
    assert tally(part, qs).table.answers.sum() == 40


def test_the_page_gives_nothing_away(tmp_path, qs):
    page = survey(qs, tmp_path/'page.html', title='<b> & "c"')
    assert (tmp_path/'page.html').read_text() == page and page._repr_html_().count('<iframe') == page._repr_html_().count('srcdoc="&lt;!doctype') == 1
    assert '&lt;b&gt;' in page and not re.search(r'https?://|@import|url\(|(src|href)\s*=\s*"(?!data:)[^"]', page)
    hidden = questions({'secret-one': result(25, 0), 'secret-two': result(25, 1)})
    assert 'secret' not in survey(hidden) and "default-src 'none'" in page
    assert survey(questions({'m': result(25, 0, 3)}, classes=('</script>', 'é', '"'))).count('</script>') == 1


def test_the_page_in_a_browser(tmp_path):
    browser = os.environ.get('CHROMIUM', '/usr/bin/chromium')
    if not (shutil.which('node') and Path(browser).is_file() and (ROOT/'node_modules'/'playwright-core').is_dir()): pytest.skip('need Chromium, node and `npm ci`')
    qs = questions({m: result(8, i) for i,m in enumerate('ab')}, each=8)
    survey(qs, tmp_path/'page.html')
    r = subprocess.run(['node', str(ROOT/'tests'/'survey.mjs'), str(tmp_path/'page.html'), str(tmp_path/'out.csv')], capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    assert all(json.loads(r.stdout).values())
    df = pd.read_csv(tmp_path/'out.csv', dtype=dict(participant=str))
    assert list(df.columns) == _COLUMNS and df.answer.tolist() == [3, *(i % 10 for i in range(1, 16))]
    assert tally(tmp_path/'out.csv', qs).table.answers.sum() == 16
