"""Six doors and what lies behind each. `doors.tsv` says where each page for people stands, for whom, and what comes next; chapters stand
behind *The book* in the order of their files.

    python docs/doors.py          # pages behind each door, and words of each page of Start and Guide as the built site shows them, what is folded apart
"""
import csv
import html
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BOOK = 'The book'
DOORS = {  # name of a door -> what stands behind it
    'Start': 'Install it, see it work, choose what you want', 'Guide': 'One question a page: ask, believe, prove, tell, audit, serve',
    'Reference': 'Names by task, the command line, settings, models, words, limits, the law', 'Paper': 'Its tables and figures, each with a verdict',
    'Research': 'Other packages, speed, and what to build on it', BOOK: 'The chapters that are the source, in reading order'}
READERS = {'decides': 'people who decide', 'fits models': 'people who fit models', 'researches': 'people who do research',
           'reads the paper': 'readers of the paper', 'everyone': 'everyone'}
SHELVES = 'models', 'data', 'search', 'measures', 'baselines', 'use', 'scale', 'paper'  # folders of chapters, in reading order
MADE = 'api', 'gallery'  # pages of Reference that no notebook is


class Line(NamedTuple):
    "The place of a page. A `section` that is itself a page has the page below it."
    page: str
    door: str
    section: str = ''
    next: str = ''
    minutes: str = ''
    words: str = ''
    reader: str = 'researches'


def table(name):
    with (ROOT/'docs'/name).open(encoding='utf8') as f: return list(csv.DictReader(f, delimiter='\t'))


def stem(path):
    "What the page of a notebook is called: its file without the number, and a shelf's index by its shelf."
    return f'{path.parent.name}-shelf' if path.stem == 'index' and path.parent.name != 'nbs' else re.sub(r'^\d+_', '', path.stem)


def chapters(people):
    "The book: chapters of the method by the number of their files, then shelf by shelf, then the ways in and out; `people` are pages that stand elsewhere."
    nbs = ROOT/'nbs'
    own = [p for p in sorted(nbs.glob('[0-9]*.ipynb')) if stem(p) not in {*people, 'all'}]
    parts = [('The method', [p for p in own if p.name[0] == '0'])]
    parts += [(f'{s}-shelf', [nbs/s/'index.ipynb', *sorted((nbs/s).glob('[0-9]*.ipynb'))]) for s in SHELVES]
    parts += [('Answers and words', [p for p in own if p.name[0] != '0'])]
    read = [(stem(p), 'Shelves' if stem(p) == section else section) for section, paths in parts for p in paths]
    following = [page for page, _ in read[1:]] + ['']
    return [Line(page, BOOK, section, after) for (page, section), after in zip(read, following)]


def places():
    "Where each page stands, in reading order."
    people = {line['page']: Line(**line) for line in table('doors.tsv')}
    return people | {line.page: line for line in chapters(people)}


def slug(door): return door.lower().removeprefix('the ')


def told(line):
    "For whom a page is, and how long it takes."
    return f'For {READERS[line.reader]}' + (f' · {line.minutes} minutes' if line.minutes else '')


def guided(page, lines, titles):
    "The line under a title of Start or Guide, and the last one of a page: what comes next on this reader's path, or in the book."
    line = lines.get(page)
    if not line or line.door not in ('Start', 'Guide', BOOK) or not line.next or page == 'index': return '', ''
    after = f'[{titles[line.next]}]({line.next}.ipynb)'
    if line.door == BOOK: return '', f'**Next in the book:** {after}'
    return f'<p class="guided">{told(line)} · next: <a href="{line.next}.html">{html.escape(titles[line.next])}</a></p>', f'**Next on this path:** {after}'


def toctree(names, caption=''):
    "A tree that only the sidebar shows; '' of no names."
    said = f':caption: {caption}\n' if caption else ''
    return '```{toctree}\n:hidden:\n' + said + '\n' + '\n'.join(names) + '\n```' if names else ''


def card(page, title, about, foot):
    return f':::{{grid-item-card}} {title}\n:link: {page}\n:link-type: doc\n\n{about}\n\n*{foot}*\n:::'


def sections(lines, door):
    "Captions of a door and the pages under each, those apart that stand below another page."
    out = {}
    for line in lines.values():
        if line.door == door and line.section not in lines and line.page != 'index': out.setdefault(line.section, []).append(line)
    return out


def below(page, lines): return [line.page for line in lines.values() if line.section == page]


def door_page(door, lines, pages):
    "The page behind a door: a card for each page, and the tree of its sidebar."
    out, trees = [f'# {door}', f'*{DOORS[door]}*'], []
    for caption, members in sections(lines, door).items():
        cards = [card(m.page, pages[m.page].title, pages[m.page].about, told(m)) for m in members]
        out += ([f'## {caption}'] if caption else []) + ['::::{grid} 1 2 2 2\n:gutter: 3\n\n' + '\n'.join(cards) + '\n::::']
        trees.append(toctree([m.page for m in members], caption))
    if door == 'Reference':
        out.append('[All public names](api.md), by module; and the [gallery](gallery.md), with every plot, panel and letter by name.')
        trees.insert(0, toctree(MADE))
    return '\n\n'.join([*out, *trees])


def shown_words(page):
    "How many words the article of a built page shows: what is folded or hidden, and the source of widgets, do not count."
    article = page[page.index('<article'):page.index('</article>')]
    while (fewer := re.sub(r'<details\b(?:(?!<details\b).)*?</details>', ' ', article, flags=re.S)) != article: article = fewer
    article = re.sub(r'<(script|style|svg)\b.*?</\1>|<p\b[^>]* hidden>.*?</p>', ' ', article, flags=re.S)  # words for the search are hidden
    article = re.sub(r'</?(span|a|em|strong|code|b|i|u|s|sub|sup|ins|del|small)\b[^>]*>', '', article)  # colours of code are within words
    return len(html.unescape(re.sub(r'<[^>]+>', ' ', article)).split())


def counted(site):
    "Words of each page of Start and Guide."
    return {p: shown_words((site/f'{p}.html').read_text()) for p, line in places().items() if line.door in ('Start', 'Guide')}


def for_people():
    "How many pages stand behind each door but the book's."
    return Counter(line['door'] for line in table('doors.tsv')) + Counter({'Reference': len(MADE)})


if __name__ == '__main__':
    doors = for_people()
    print(', '.join(f'{d} {n}' for d, n in doors.items()), f'= {doors.total()} pages; {BOOK.lower()}: {sum(line.door == BOOK for line in places().values())}')
    found = counted(ROOT/'_docs')
    for p, n in found.items(): print(f'{n:6,}  {p}')
    print(f'{sum(found.values()):6,}  in all')
