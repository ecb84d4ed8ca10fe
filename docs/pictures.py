"""The three pictures of the first page: the card, the letter and the panel of one applicant, in nbs/images/.

    python docs/pictures.py     # needs Chromium

They show the code of nbs/index.ipynb, run as it stands there; `tests/test_help.py` holds the words under them against what that code says today.
"""
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT/'nbs/images'
WINDOW = dict(letter=(640, 758, 400), panel=(440, 618, 420))  # CSS pixels of the window, and how wide the picture is shown


def ran():
    "The names that the code of the first page defines, up to its first answers."
    names = {}
    for c in nbformat.read(ROOT/'nbs/index.ipynb', 4).cells:
        if c.id in ('all', 'ask'): exec(c.source, names)
    return names


def shown(names):
    "The first applicant who can get there: the card as a figure, the letter and the panel as pages."
    first, panel = names['answers'][:1], names['explorer'](names['cf'], names['refused'].loc[names['answers'].data.index[:1]])
    page = panel.page(['Order'])
    panel.close()
    return first[0].plot(card=True), first.letter(format='html', date='26 November 2026')[0], page


def photographed(page, width, height, wide):
    "A page in Chromium, at twice the width at which it is shown."
    browser = os.environ.get('CHROMIUM') or shutil.which('chromium') or sys.exit('need Chromium')
    with tempfile.TemporaryDirectory() as d:
        (Path(d)/'page.html').write_text(page)
        subprocess.run([browser, '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', f'--force-device-scale-factor={2*wide/width}', f'--window-size={width},{height}',
                        f'--screenshot={d}/page.png', f'file://{d}/page.html'], check=True, capture_output=True, timeout=120)
        return Image.open(io.BytesIO((Path(d)/'page.png').read_bytes())).convert('RGB')


def main():
    card, letter, panel = shown(ran())
    IMAGES.mkdir(exist_ok=True)
    card.savefig(out := io.BytesIO(), format='png', dpi=800/card.get_size_inches()[0], facecolor='white')
    pictures = dict(card=Image.open(out).convert('RGB'), letter=photographed(letter, *WINDOW['letter']), panel=photographed(panel, *WINDOW['panel']))
    for name, picture in pictures.items():
        picture.quantize(64, dither=Image.Dither.NONE).save(IMAGES/f'{name}.png', optimize=True)
        print(name, picture.size, f'{(IMAGES/f"{name}.png").stat().st_size/1e3:.0f} kB')


if __name__ == '__main__': main()
