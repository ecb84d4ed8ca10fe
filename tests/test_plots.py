"""Pictures of answers, plans, audits and reasons: no word lies on another or leaves the picture, at two widths, and each axis of numbers says what it counts."""
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gradual_cf.all import GradualCF, audit, predictor, reasons, tabular
from gradual_cf.answers import CHANGED, STYLE
from gradual_cf.use.enough import _card_lines

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'docs'))
import axes  # noqa: E402

WIDTHS = 5.5, 11  # inches: a narrow cell, a screen


@pytest.fixture(scope='module')
def pictures():
    "Figures by name, of a table with long names and large numbers."
    rng, n = np.random.default_rng(0), 400
    rows = pd.DataFrame({'income of the household in a year': rng.integers(9_000, 99_000, n), 'months in the present job': rng.integers(0, 300, n),
                         'open debts': rng.integers(0, 40_000, n), 'late payments in the last three years': rng.integers(0, 9, n)})
    score = rows.iloc[:, 0]/9000 + rows.iloc[:, 1]/60 - rows.iloc[:, 2]/6000 - rows.iloc[:, 3]
    granted = np.where(score > score.median(), 'granted', 'refused')
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, granted)
    domain = tabular(rows, bounds={'income of the household in a year': (None, 60_000)})
    cf = GradualCF(model, domain, 'sparse').fit(rows)
    refused = rows[model.predict(rows) == 'refused']
    answers = cf.explain(refused[:24], 'granted')
    groups = pd.Series(np.where(np.arange(n) % 3, 'tenants of a flat', 'owners of a house'), rows.index, name='housing')
    wide = cf.explain(refused[:5], 'granted', bounds={c: (None, None) for c in rows}, immutable=[])
    return dict(
        answers=wide.plot(), plan=answers.plan().plot(), several=cf.explain(refused[:1], 'granted', k=3).plot(),
        audit=audit(cf, rows[:120], groups[:120], 'granted', least=9, test=dict(resamples=99)).plot(),
        reasons=reasons(cf, rows[:40], target='granted').plot(),
        card=wide[0].plot(card=True, units={'open debts': '€'}), empty=answers[:0].plot(), many=answers.plot())


def words(fig):
    "What is written, whether it lies straight, and where: (text, straight, box) of each."
    FigureCanvasAgg(fig)
    fig.draw_without_rendering()
    seen = [t for t in fig.findobj(Text) if t.get_visible() and t.get_text().strip() and t.get_alpha() != 0]
    edges = {id(label) for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for label in (*axis.get_ticklabels(), axis.get_offset_text())}
    drawn = {id(label) for ax in fig.axes if ax.axison for axis in (ax.xaxis, ax.yaxis)
             for tick in axis._update_ticks() for label in (tick.label1, tick.label2)} | {id(ax.xaxis.get_offset_text()) for ax in fig.axes}
    return [(t.get_text(), t.get_rotation() % 90 == 0, t.get_window_extent()) for t in seen if id(t) not in edges or id(t) in drawn]


def troubles(fig):
    "Words that lie on others, or that leave the picture by more than a pixel."
    boxes, (wide, tall) = words(fig), fig.canvas.get_width_height()
    on = [(a, b) for i, (a, straight, p) in enumerate(boxes) for b, too, q in boxes[:i]
          if straight and too and min(p.x1, q.x1) - max(p.x0, q.x0) > 1 and min(p.y1, q.y1) - max(p.y0, q.y0) > 1]
    return on + [a for a, _, p in boxes if p.x0 < -1 or p.y0 < -1 or p.x1 > wide + 1 or p.y1 > tall + 1]


def test_words_on_words_are_found():
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.text(.5, .5, 'one word'), ax.text(.52, .5, 'another'), ax.text(.9, .1, 'a long way beyond the edge')
    found = troubles(fig)
    plt.close(fig)
    assert ('another', 'one word') in found and 'a long way beyond the edge' in found


def at_width(fig, width):
    "Troubles of a picture at another width; a warning is an error."
    with plt.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter('error')
        fig.set_size_inches(width, fig.get_size_inches()[1])
        return troubles(fig)


def test_no_word_lies_on_another(pictures):
    found = {(name, width): at_width(fig, width) for name, fig in pictures.items() for width in WIDTHS}
    assert len(found) == 16 and not {at: words for at, words in found.items() if words}


def test_axes_without_a_name_are_found():
    fig, (bare, said) = plt.subplots(1, 2)
    for ax in (bare, said): ax.plot([1, 2])
    said.set(xlabel='step', ylabel='certainty')
    found = axes.bare(fig)
    plt.close(fig)
    assert [line[:11] for line in found] == ['x of axes 0', 'y of axes 0']


def test_the_ring_of_a_card_is_what_the_told_values_come_to():
    rows = pd.DataFrame(np.random.default_rng(1).integers(0, 1_000, (200, 3)), columns=['income', 'savings', 'debt'])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, rows.income + rows.savings - rows.debt > 400)
    cf = GradualCF(model, tabular(rows)).fit(rows)
    answers = cf.explain(rows[~model.predict(rows)][:8], True)
    for i in np.flatnonzero(answers.valid):
        one = answers[int(i)]
        lines, ring = _card_lines(cf, one)
        told = one.data.assign(**{name: float(enough.split()[-1].replace(',', '')) for name, _, enough in lines if enough})
        assert ring == pytest.approx(model.predict_proba(told)[0, 1], abs=1e-6) and .5 <= ring <= one.prob[0] + 1e-6
    assert answers.valid.sum() > 3


def test_a_picture_of_changes_shows_the_way_on_the_whole_range():
    df, before = pd.DataFrame(dict(card=[0, 3, 5, 9, 4, 7], loan=[2, 0, 8, 1, 3, 6], job=list('xyzxyz'))), plt.get_fignums()
    domain = tabular(df)
    cf = GradualCF(predictor(lambda d: np.stack([d.card - 4.5, 4.5 - d.card], 1), domain, kind='logit'), domain, 'sparse').fit(df)
    fig = cf.explain(df).plot(most=5)
    ax = fig.axes[0]
    tracks = [line for line in ax.lines if list(line.get_xdata()) == [0, 1] and line.get_linewidth() == 3]
    old, new = ax.lines[ax.lines.index(tracks[0]) + 1:][:2]
    heads = [t.get_text() for t in ax.texts if t.get_weight() == 'bold']
    assert plt.get_fignums() == before and len(tracks) == len(heads) == 5 and [h.split(':')[0] for h in heads] == [f'row {i}' for i in range(5)]  # a block a row, and no window is left
    assert old.get_xdata()[0] == 0 and new.get_xdata()[0] > .5 and old.get_markerfacecolor() == 'w' and to_hex(new.get_color()) == to_hex(CHANGED)
    assert [t.get_text() for t in ax.get_yticklabels()] == ['card']*5 and not len(ax.get_xticks()) and not any(s.get_visible() for s in ax.spines.values())
    words = [t.get_text() for t in ax.texts if t.get_text() and t.get_weight() != 'bold']
    assert words[:4] == ['0', '5', '0', '9'] and not any('nearest' in t or 'distance' in t for t in words)  # before, after, and both ends of the range


def test_a_category_stands_on_no_line_of_numbers():
    df = pd.DataFrame(dict(home=list('abcabc'), card=[0, 3, 5, 9, 4, 7]))
    model = predictor(lambda d: np.stack([(d.home == 'b')*2. - 1, 1 - (d.home == 'b')*2.], 1), domain := tabular(df, units=dict(card='€')), kind='logit')
    one = GradualCF(model, domain, 'sparse').fit(df).explain(df.iloc[:1], 0)
    ax = one.plot().axes[0]
    assert one.valid.all() and {'a', 'b'} <= {t.get_text() for t in ax.texts} and not [line for line in ax.lines if line.get_linewidth() == 3]