"""The stepper: frames of image, table and token traces, the widget's links, and the page of its own."""
import functools
import io
import re

import pytest
from PIL import Image
from toy import blocks, columns, tokens

from gradual_cf.all import PAPER, GradualCF, frames, images, predict, save_page, stepper


@functools.cache
def traced(kind):
    "A trace of two steps or more; the toy domains are written by hand and show their changes as any domain does."
    t = {'table': columns, 'image': blocks, 'text': tokens}[kind]()
    cf = GradualCF(t.model, images(block=2) if kind == 'image' else t.domain, PAPER, sigma=8, tau=.95, legal=True).fit(t.x)
    z = predict(t.model, t.x[:20])
    traces = (cf.trace(t.x[i:i + 1], target=(z[i].argmax().item() + 1) % z.shape[1]) for i in range(1, 8))
    return next(trace for trace in traces if len(trace) > 1)


@functools.cache
def drawn(kind): return frames(traced(kind))


@pytest.mark.night
@pytest.mark.parametrize('kind', ['table', 'image', 'text'])
def test_every_step_is_a_picture_of_its_own(kind):
    trace, fs = traced(kind), drawn(kind)
    assert len(fs) == len(trace) + 1 > 2 and len({bytes(f) for f in fs}) == len(fs)
    assert all(Image.open(io.BytesIO(f)).format == 'PNG' for f in fs)
    for i,f in enumerate(fs): assert f.text.startswith(f'Step {i} of {len(trace)}.') and 'probability of class' in f.text
    assert bytes(frames(trace)[1]) == bytes(fs[1])


def test_the_widget_is_linked_in_the_browser():
    fs = drawn('table')
    w = stepper(fs)
    (play,slider),stack = w.children[0].children, w.children[1]
    assert play.max == slider.max == len(fs) - 1 and len(stack.children) == len(fs)
    assert [bytes(c.children[0].value) for c in stack.children] == [bytes(f) for f in fs]
    links = {(l.source[0].model_id, l.target[0].model_id) for l in _links()}
    assert {(play.model_id, slider.model_id), (slider.model_id, stack.model_id)} <= links


def _links():
    "All browser-side links that exist."
    import ipywidgets
    from ipywidgets.widgets import widget
    return [w for w in list(widget._instances.values()) if isinstance(w, ipywidgets.widgets.widget_link.Link)]


def test_the_page_stands_alone(tmp_path):
    fs = drawn('image')
    page = save_page(tmp_path/'page.html', fs, title='7 <as> 9').read_text()
    assert page.count('"png"') == len(fs) and '7 &lt;as&gt; 9' in page and 'aria-live' in page
    assert not re.search(r'(src|href)\s*=\s*"(?!data:)', page) and 'http' not in page
