"""Five doors and what lies behind each: which page stands where, for whom, and what comes next; where pages that moved are found now.

    python docs/doors.py          # words of each page of Start and Guide as the built site shows them, what is folded apart
"""
import csv
import html
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOORS = dict(  # name of a door -> what stands behind it
    Start='Install it, see it work, choose what you want', Guide='One question a page: ask, believe, prove, tell, audit, serve',
    Gallery='Every plot, panel and letter, by name', Reference='Names by task, the command line, words, and the chapters that are the source',
    Research='The paper beside this package, figures with verdicts, other packages, speed')
READERS = {'decides': 'people who decide', 'fits models': 'people who fit models', 'researches': 'people who do research',
           'reads the paper': 'readers of the paper', 'everyone': 'everyone'}


class Line(NamedTuple):
    "A line of `doors.tsv`: the place of a page. A `section` that is itself a page has the page below it."
    page: str
    door: str
    section: str
    reader: str
    minutes: str
    next: str
    words: str


def table(name):
    with (ROOT/'docs'/name).open(encoding='utf8') as f: return list(csv.DictReader(f, delimiter='\t'))


def places():
    "Where each page stands, in reading order."
    return {line['page']: Line(**line) for line in table('doors.tsv')}


def moved():
    "Old addresses of pages that moved, and where what they said stands now."
    return {line['old']: line['new'] for line in table('moved.tsv')}


def told(line):
    "For whom a page is, and how long it takes."
    return f'For {READERS[line.reader]}' + (f' · {line.minutes} minutes' if line.minutes else '')


def guided(page, lines, titles):
    "The line under a title of Start or Guide, and the last one: what comes next on this reader's path."
    line = lines.get(page)
    if not line or line.door not in ('Start', 'Guide') or page == 'index': return '', ''
    after = f'[{titles[line.next]}]({line.next}.ipynb)' if line.next else ''
    head = f'<p class="guided">{told(line)}' + (f' · next: <a href="{line.next}.html">{html.escape(titles[line.next])}</a>' if after else '') + '</p>'
    return head, f'**Next on this path:** {after}' if after else ''


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


def door_page(door, lines, pages, more=()):
    "The page behind a door: a card for each page, and the tree of its sidebar; `more` are names of pages without a line."
    out, trees = [f'# {door}', f'*{DOORS[door]}*'], []
    for caption, members in sections(lines, door).items():
        cards = [card(m.page, pages[m.page].title, pages[m.page].about, told(m)) for m in members]
        out += ([f'## {caption}'] if caption else []) + ['::::{grid} 1 2 2 2\n:gutter: 3\n\n' + '\n'.join(cards) + '\n::::']
        trees.append(toctree([m.page for m in members], caption))
    if more: trees.insert(1, toctree(more, 'Names'))
    return '\n\n'.join([*out, *trees])


def redirect(out):
    "Old addresses of what moved: a page of one line each, with a link."
    for old, new in moved().items():
        page = (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title><meta http-equiv="refresh" content="0; url={new}">'
                f'<link rel="canonical" href="{new}"></head><body><main><h1>Moved</h1><p>This page is now at <a href="{new}">{new}</a>.</p></main></body></html>\n')
        (out/f'{old}.html').write_text(page)


def shown_words(page):
    "How many words the article of a built page shows: what is folded, and the source of widgets, do not count."
    article = page[page.index('<article'):page.index('</article>')]
    while (fewer := re.sub(r'<details\b(?:(?!<details\b).)*?</details>', ' ', article, flags=re.S)) != article: article = fewer
    article = re.sub(r'<(script|style|svg)\b.*?</\1>', ' ', article, flags=re.S)
    article = re.sub(r'</?(span|a|em|strong|code|b|i|u|s|sub|sup|ins|del|small)\b[^>]*>', '', article)  # colours of code are within words
    return len(html.unescape(re.sub(r'<[^>]+>', ' ', article)).split())


def counted(site):
    "Words of each page of Start and Guide."
    return {p: shown_words((site/f'{p}.html').read_text()) for p, line in places().items() if line.door in ('Start', 'Guide')}


if __name__ == '__main__':
    found = counted(ROOT/'_docs')
    for p, n in found.items(): print(f'{n:6,}  {p}')
    print(f'{sum(found.values()):6,}  in all')
