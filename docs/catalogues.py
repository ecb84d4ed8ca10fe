"""Bring the catalogues in gradual_cf/locale up to date with what code and templates say.

    python docs/catalogues.py          # adds new texts with an empty translation, and drops those that nobody says
    python docs/catalogues.py --check  # only tells what is missing, stale or has other fields; exit code 1

Texts are marked by `N_('…')`, `lang.say('…')` and `lang.count('one', 'many', n)` in code, by `_('…')` and
`ngettext('one', 'many', n)` in templates.
"""
import io
import re
import sys
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from gradual_cf.render import LANGUAGES

ROOT = Path(__file__).resolve().parent.parent/'gradual_cf'
OTHERS = LANGUAGES[1:] # English is what the code says
HOW = [('**.py', 'python'), ('templates/**', 'jinja2.ext:babel_extract')]
SAID = {'N_': None, 'say': None, 'count': (1, 2), '_': None, 'ngettext': (1, 2)}


@cache
def said():
    "All texts, in the order of the files that say them; (one, many) for numbers of things."
    texts = {}
    for _, _, text, _, _ in extract_from_dir(ROOT, HOW, keywords=SAID):
        if text: texts.setdefault(text if isinstance(text, str) else text[0], text)
    return texts


def where(language): return ROOT/'locale'/language/'LC_MESSAGES'/'gradual_cf.po'


def catalogue(language):
    "The catalogue of a language; an empty one where there is none yet."
    if not where(language).exists(): return Catalog(language)
    with where(language).open('rb') as file: return read_po(file, language)


def fields(text): return sorted(set(re.findall(r'{(\w+)}', text)))


def wrong(language):
    "What is wrong with a catalogue, a line each."
    known, texts = catalogue(language), said()
    there = {m.id if isinstance(m.id, str) else m.id[0]: m for m in known if m.id}
    yield from (f'{language}: nobody says {text!r}' for text in there if text not in texts)
    for name, text in texts.items():
        one, many = (text, text) if isinstance(text, str) else text
        if name not in there or there[name].id != text: yield f'{language}: {name!r} is missing'; continue
        forms = there[name].string if isinstance(text, tuple) else [there[name].string]
        if len(forms) != (known.num_plurals if isinstance(text, tuple) else 1): yield f'{language}: {name!r} has {len(forms)} forms'
        for form in forms:
            if not form.strip(): yield f'{language}: {name!r} is not translated'
            elif not set(fields(one)) <= set(fields(form)) | {'n'} or not set(fields(form)) <= set(fields(many)):
                yield f'{language}: {form!r} has other fields than {many!r}'


def refresh(language):
    "Write a catalogue again: sorted, without dates and line numbers, so that a change of words is all that differs."
    old, new = catalogue(language), Catalog(language, fuzzy=False, header_comment=f'# gradual_cf in {Catalog(language).locale.english_name}')
    there = {m.id: m.string for m in old if m.id}
    for text in said().values(): new.add(text, there.get(text, ('',)*new.num_plurals if isinstance(text, tuple) else ''))
    write_po(out := io.BytesIO(), new, width=120, no_location=True, sort_output=True)
    kept = [l for l in out.getvalue().decode().splitlines() if not re.match(r'"(POT-Creation|PO-Revision)-Date|"(Last-Tran|Report-M|Language-T|Project-I|Generated)', l)]
    where(language).parent.mkdir(parents=True, exist_ok=True)
    where(language).write_text('\n'.join(kept) + '\n', encoding='utf-8')


if __name__ == '__main__':
    if '--check' not in sys.argv:
        for l in OTHERS: refresh(l)
    mistakes = [line for l in OTHERS for line in wrong(l)]
    print('\n'.join(mistakes) or 'all catalogues are whole')
    sys.exit(bool(mistakes))
