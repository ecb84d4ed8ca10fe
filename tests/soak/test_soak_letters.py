"""Forged letters: whatever a person would see, or could not see, that its record does not give, is an error or a False; what was only saved again is neither."""
import datetime
import html
import json
import random
import re

import numpy as np
import pandas as pd
import pytest
import torch
from size import SIZE

from gradual_cf.all import GradualCF, check_evidence, letter, tabular

DAY = datetime.date(2026, 3, 1)
UNSEEN = ['\u200b', '\u200c', '\u2060', '\ufeff', '\u00ad', '\u202e', '\u2066', '\u200f', '\u00a0', '\x00', '\x08']
HIDDEN = ['hidden', 'style="display:none"', "style='visibility:hidden'", 'style=opacity:0', 'style="font-size:0"', 'style="position:absolute;left:-9999px"',
          'aria-label="1.00"', 'class="proof"', 'onclick="this.remove()"', 'dir=rtl', 'id=x', 'data-x=1', 'contenteditable', 'data-line="1"']
ADDED = ['<!-- {} -->', '<!--{}', '<!-- --!>{}<!-- -->', '<template>{}</template>', '<div hidden>{}</div>', '<p>{}</p>', '<script>{}</script>', '<style>{}</style>', '<!{}>', '<?{}?>',
         '<![CDATA[{}]]>', '<svg><text>{}</text></svg>', '<noscript>{}</noscript>', '<iframe srcdoc="{}"></iframe>', '<textarea>{}</textarea>', '<input value="{}">', '<img alt="{}" src="x">',
         '<details>{}</details>', '<td>{}</td>', '<tr data-line="1"><td>{}</td></tr>', '<span style="display:none">{}</span>', '<object>{}', '<plaintext>{}', '</main>{}', '<a href="x">{}</a>',
         '<base href="//x">{}', '<link rel=stylesheet href=x>{}', '<meta http-equiv=refresh content="0;url=x">{}', '{}', '| 1 | {} | 2 |\n', '\n\n> {}\n\n', '\n\n[x]: {}\n\n', '\n\n![{}](x)\n\n',
         'model=00 data=00 settings=00 target=1 tau=0.5 told={{}} {}', '<s>{}</s>', '<b>{}</b>', '<!DOCTYPE {}>', '<html {}>', '<{}>', '</{}>']


@pytest.fixture(scope='module')
def evil():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'<b>income</b>': rng.gamma(6, 400, 80).round(2), '0': rng.poisson(2, 80), 'home': rng.choice(['own', '<i>rent</i>', 'with | parents'], 80),
                       '3': rng.integers(19, 80, 80)})
    domain = tabular(df, immutable=['3'])
    x = domain.encode(df).x
    w = torch.tensor([3, -2, .2, 0, .1, 1]).to(x)
    middle = (x @ w).median() + 1e-4
    cf = GradualCF(lambda x: torch.stack([middle - x @ w.to(x), x @ w.to(x) - middle], 1)*4, domain, 'sparse').fit(df)
    rows = df[(cf.logits(df, x).argmax(1) == 0).numpy()][:12]
    answer = cf.explain(rows, 1)
    others = cf.explain(rows, 1, k=3)
    return cf, rows, {form: letter(answer, format=form, date=DAY) for form in ('html', 'md', 'json')}


def digit(r, text):
    "Another digit somewhere, but for those of the probabilities that stand behind what anybody reads."
    precise = [range(*m.span()) for m in re.finditer(r'\d\.\d{6,}(e-\d+)?', text)]
    at = [m.start() for m in re.finditer(r'\d', text) if not any(m.start() in some for some in precise)]
    i = r.choice(at)
    return text[:i] + r.choice([d for d in '0123456789' if d != text[i]]) + text[i + 1:]


def unseen(r, text):
    i = r.choice([m.start() for m in re.finditer(r'\w', text)])
    return text[:i] + r.choice(UNSEEN) + text[i:]


def attribute(r, text):
    m = r.choice([*re.finditer(r'<(\w+)', text)])
    return text[:m.end()] + ' ' + r.choice(HIDDEN) + text[m.end():]


def added(r, text):
    "More of something, somewhere between two lines, up to a hundred thousand times."
    lines, more = text.split('\n'), r.choice(ADDED).format(r.choice(['1.00', 'a', '| 1 | a | 1 | 2 |', r.choice(text.split('\n')).strip() or 'x']))
    i = r.randrange(len(lines) + 1)
    return '\n'.join([*lines[:i], more*r.choice([1, 1, 1, 7, 1000, 10**5//len(more)]), *lines[i:]])


def removed(r, text):
    lines = text.split('\n')
    i = r.choice([i for i, l in enumerate(lines) if re.search(r'\w', re.sub('</[^<>]*>|<tbody>', '', l))]) # an end tag may be left out, and so may this one
    return '\n'.join(lines[:i] + lines[i + 1:])


def swapped(r, text):
    "Two lines in each other's place."
    lines = text.split('\n')
    i, j = r.sample([i for i, l in enumerate(lines) if re.search(r'\w', re.sub('<[^<>]*>', '', l))], 2)
    lines[i], lines[j] = lines[j], lines[i]
    return '\n'.join(lines)


def true_record_aside(r, text):
    "The record out of sight, and a kinder one in its place."
    m = re.search(r'<!-- record .*? -->|<script[^<>]*id="record".*?</script>', text, re.S)
    shown = re.sub(r'\d(?=\.\d\d")', '9', m[0])
    before, after = r.choice([('<!--', '-->'), ('<template>', '</template>'), ('<div style="display:none">', '</div>'), ('<details>', '</details>')])
    both = [shown, before + m[0] + after]
    return text[:m.start()] + ''.join(both if r.random() < .5 else both[::-1]) + text[m.end():]


def word(r, text):
    "Another word: a reason, a name, a class, what was needed."
    m = r.choice([m for m in re.finditer(r'[A-Za-z]{3,}', text) if not re.search('<[^<>]*$', text[:m.start()])]) # names of tags have no case
    return text[:m.start()] + r.choice(['grace', 'no', 'yes', m[0].swapcase()]) + text[m.end():]


def everywhere(r, text):
    "One number of the record, wherever it stands; none of the probabilities that stand behind what anybody reads."
    number = r.choice(re.findall(r'(?<![\d.])\d[\d,]*\.\d\d(?!\d)', text) or ['0.5'])
    return re.sub(rf'(?<![\d.]){re.escape(number)}(?!\d)', r.choice(['1.00', '9,999.99']), text)


def leaf(r, text):
    "Another value somewhere in JSON, or a name that is given twice."
    if r.random() < .2: return text.replace('{', '{"found": false, ', 1)
    told = json.loads(text)
    places = []
    def walk(v):
        for k, one in (v.items() if isinstance(v, dict) else enumerate(v)):
            if isinstance(one, (dict, list)): walk(one)
            elif k != 'proof': places.append((v, k))
    walk(told)
    v, k = r.choice(places)
    v[k] = r.choice([w for w in (None, True, False, 7, 'x', '1.00', [], {}) if w != v[k]])
    return json.dumps(told)


FORGE = dict(html=[digit, unseen, attribute, added, added, removed, swapped, true_record_aside, word, everywhere],
             md=[digit, unseen, added, added, removed, swapped, true_record_aside, word, everywhere], json=[digit, leaf, leaf, leaf, everywhere])


@pytest.mark.parametrize('form', FORGE)
def test_a_forged_letter_is_an_error_or_a_false(evil, form):
    cf, rows, letters = evil
    for seed in range(SIZE):
        r = random.Random(f'{form} {seed}')
        i = r.randrange(len(rows))
        make = r.choice(FORGE[form])
        forged = make(r, letters[form][i])
        if forged == letters[form][i]: continue
        try: check = check_evidence(forged, cf, rows.iloc[i:i + 1], date=DAY)
        except ValueError as e: assert len(str(e)) < 1200, (seed, make)
        else: assert not check[['flips', 'legal', 'row', 'model', 'data', 'settings']].to_numpy().all() or check.reference[0] != str(rows.index[i]), (seed, make, forged)


def resaved(r, text, form):
    "What browsers and editors do to a page that nobody changed."
    if form == 'json': return json.dumps(json.loads(text), indent=r.choice([None, 2, 4]), ensure_ascii=r.random() < .5)
    if form == 'html':
        if r.random() < .5: text = re.sub(r'&(lt|gt|amp|#34|#39);', lambda m: r.choice([m[0], f'&#{ord(html.unescape(m[0]))};', f'&#x{ord(html.unescape(m[0])):x};']), text)
        if r.random() < .5: text = re.sub(r'>\n?\s*<', lambda m: r.choice(['><', '>\n<', '>\n    <']), text)
        if r.random() < .5: text = re.sub(r'="(\d+|[a-z]+)"', lambda m: r.choice([f'={m[1]}', f"='{m[1]}'", m[0]]), text)
        if r.random() < .5: text = re.sub(r'</?(tr|td|th|p|li|h2)\b', lambda m: m[0].upper(), text)
        if r.random() < .3: text = text.replace('<tbody>', '').replace('</tbody>', '')
        if r.random() < .3: text = text.replace('<html', '<!-- saved from url=(0014)about:internet -->\n<html')
        return text.replace('\n', r.choice(['\n', '\r\n']))
    if r.random() < .5: text = re.sub(r'^\|(.*)\|$', lambda m: '|' + '|'.join(f'  {c.strip()}   ' for c in re.split(r'(?<!\\)\|', m[1])) + '|', text, flags=re.M)
    if r.random() < .5: text = re.sub(r'\n\n+', '\n\n\n', text)
    if r.random() < .5: text = re.sub(r'&(lt|gt|amp);', lambda m: f'&#{ord(html.unescape(m[0]))};', text)
    return re.sub('\n', lambda m: r.choice(['\n', '  \n', '\r\n']), text)


@pytest.mark.parametrize('form', FORGE)
def test_a_letter_that_was_saved_again_is_true(evil, form):
    cf, rows, letters = evil
    for seed in range(max(SIZE//10, 20)):
        r = random.Random(f'{form} {seed}')
        check = check_evidence([resaved(r, t, form) for t in letters[form]], cf, rows, date=DAY)
        assert check[['flips', 'legal', 'row', 'model', 'data', 'settings']].to_numpy().all(), seed
