"""How easily the pages that people read are read: words, words a sentence, and Flesch's reading ease of README, Start, Guide and Reference.

    python docs/reading.py [--rev COMMIT]       # the hardest page first; with --rev beside what the pages were at a commit

Reading ease is 206.835 - 1.015 words/sentences - 84.6 syllables/words: 60 and more is plain English, below 30 is for specialists. Only prose
counts: no code, no tables, no formulas and no headings. A name in code font is one word of one syllable. Syllables are groups of vowels.
"""
import argparse
import json
import re
import subprocess

from doors import ROOT, places, stem

DOORS = 'Start', 'Guide', 'Reference'
DROPPED = r'```.*?```', r'<!--.*?-->', r'^[ ]*\|[^\n]*$', r'^#+ [^\n]*$', r'^ {4,}\S[^\n]*$', r'\$\$.*?\$\$', r'!\[[^]]*\]\([^)]*\)'


def syllables(word):
    "Groups of vowels, less a silent e at the end; at least one."
    word = re.sub(r'(?<=[^aeiouyl])e$|(?<=[aeiouy])le$|(?<=[^dt])ed$', '', word.lower())
    return max(1, len(re.findall(r'[aeiouy]+', word)))


def prose(markdown):
    "The sentences of a markdown text; an item of a list, and a paragraph, ends one."
    for what in DROPPED: markdown = re.sub(what, ' ', markdown, flags=re.S | re.M)
    text = re.sub(r'`[^`\n]+`|\$[^$\n]+\$', 'x', re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', markdown))
    parts = re.split(r'(?<=[.!?:])[*_)"”]*\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.) ', text)
    return [words for part in parts if (words := re.findall(r"[A-Za-z][A-Za-z'’-]*", part))]


def scored(markdown):
    "(Words, words a sentence, reading ease)."
    sentences = prose(markdown)
    words = [w for s in sentences for w in s]
    return len(words), len(words)/len(sentences), 206.835 - 1.015*len(words)/len(sentences) - 84.6*sum(map(syllables, words))/len(words)


def text_of(path, rev=None):
    "What the markdown cells of a notebook say, today or at a commit."
    told = subprocess.run(['git', 'show', f'{rev}:{path.relative_to(ROOT)}'], capture_output=True, text=True, cwd=ROOT, check=True).stdout if rev else path.read_text()
    return '\n\n'.join(''.join(c['source']) for c in json.loads(told)['cells'] if c['cell_type'] == 'markdown')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rev', help='a commit to compare with')
    rev, paths = a.parse_args().rev, {stem(p): p for p in (ROOT/'nbs').rglob('*.ipynb')}
    pages = [(page, line.door) for page, line in places().items() if line.door in DOORS]
    lines = [(scored(text_of(paths[page])), scored(text_of(paths[page], rev)) if rev else None, door, page) for page, door in pages]
    show = lambda s: f'{s[0]:6,} {s[1]:6.1f} {s[2]:6.1f}' if s else ''
    print(f'{" words  a sent.   ease":>21}  {"before" if rev else ""}')
    for now, then, door, page in sorted(lines, key=lambda l: l[0][2]): print(f'{show(now)}  {show(then)}  {page} ({door})')
    for name, k in dict(now=0, **(dict(before=1) if rev else {})).items():
        total = sum(l[k][0] for l in lines)
        print(f'{name}: {total:,} words, reading ease {sum(l[k][0]*l[k][2] for l in lines)/total:.1f} weighted by words, {min(l[k][2] for l in lines):.1f} at least')


if __name__ == '__main__': main()
