"""The page *Gallery*: a thumbnail of every plot, panel and letter, by name, taken from what the pages show when they are run.

`gallery.tsv` names the page and the beginning of the code cell's line that shows it; a picture is made small, and a text is drawn as it is printed.
"""
import base64
import html
import io
import re

import matplotlib
from docutils.nodes import make_id
from doors import table
from PIL import Image, ImageDraw, ImageFont

SIZE = 480, 320  # pixels of a thumbnail


def text_of(output):
    "What an output says, without markup; '' where it is no text."
    data = output.get('data', {})
    shown = data.get('text/html') or data.get('text/markdown') or output.get('text') or data.get('text/plain', '')
    shown = re.sub(r'<(style|script|title)\b.*?</\1>', '', html.unescape(shown) if 'srcdoc=' in shown else shown, flags=re.S)
    shown = re.sub(r'</t[dh]>\s*<t[dh][^>]*>', '   ', shown)
    return html.unescape(re.sub(r'[*#]{1,3} ?|<(?!/?(?:p|tr|br|li|h\d|div)\b)[^>]*>', '', re.sub(r'</?(?:p|tr|br|li|h\d|div)\b[^>]*>', '\n', shown)))


def drawn(text):
    "A text as a picture, the first lines of it."
    lines = [l.rstrip()[:74] for l in text.splitlines() if l.strip()][:19]
    picture = Image.new('RGB', SIZE, 'white')
    font = ImageFont.truetype(f'{matplotlib.get_data_path()}/fonts/ttf/DejaVuSansMono.ttf', 12)
    for i, line in enumerate(lines): ImageDraw.Draw(picture).text((14, 10 + 16*i), line, '#1d2126', font)
    return picture


def thumbnail(outputs):
    "The picture of what a cell shows: its last plot, else its text."
    plots = [o['data']['image/png'] for o in outputs if 'image/png' in o.get('data', {})]
    if not plots: return drawn('\n'.join(map(text_of, outputs)))
    picture = Image.open(io.BytesIO(base64.b64decode(plots[-1]))).convert('RGBA')
    picture.thumbnail(SIZE)
    return Image.alpha_composite(Image.new('RGBA', picture.size, 'white'), picture).convert('RGB')


def found(nb, start):
    "The outputs of the one cell with a line that begins so, and the id of the heading above it."
    heading, hits = '', []
    for c in nb.cells:
        if c.cell_type == 'markdown': heading = (re.findall(r'^#{1,3} (.+)$', c.source, re.M) or [heading])[-1]
        elif any(line.strip().startswith(start) for line in c.source.splitlines()): hits.append((c.outputs, make_id(heading)))
    if len(hits) != 1: raise ValueError(f'docs/gallery.tsv: {len(hits)} cells have a line that begins with {start!r}')
    return hits[0]


def page(ran, pages, folder):
    "The markdown of the gallery; thumbnails are written into `folder`."
    out, caption = ['# Gallery\n\n*Every plot, panel and letter, by name*'], ''
    folder.mkdir(parents=True, exist_ok=True)
    for line in table('gallery.tsv'):
        outputs, heading = found(ran[line['page']], line['cell'])
        name = make_id(line['name'])
        thumbnail(outputs).quantize(64).save(folder/f'{name}.png', optimize=True)
        if line['kind'] != caption: out += ([] if not caption else ['::::']) + [f'\n## {line["kind"]}\n\n::::{{grid}} 1 2 3 3\n:gutter: 3\n']
        caption = line['kind']
        out.append(f':::{{grid-item-card}} {line["name"]}\n:img-top: _static/gallery/{name}.png\n:img-alt: {line["name"]}\n'
                   f':link: {line["page"]}.html#{heading}\n:link-type: url\n\n`{line["call"]}`\n\n*{pages[line["page"]].title}*\n:::')
    return '\n'.join([*out, '::::'])
