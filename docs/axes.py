"""Axes of numbers that do not say what they count, or whose ends stand nowhere. `execute.py` looks at every picture that a page shows."""
import re

NUMBER = re.compile(r'[−–+\-<≤>≥×~€$£ ]*\d[\d.,\u202f ]*(?:[eE][+−-]?\d+)?\s*(?:[%×kKmM€$£]|ms|s|h|min)?')
FOUND = []  # What pictures of this process had, one line each


def is_number(text):
    "Whether the text of a tick is a number, with a sign or a unit or without."
    plain = re.sub(r'\$\\mathdefault\{(.*?)\}\$', r'\1', text).replace('{', '').replace('}', '').replace('10^', '10')
    return bool(NUMBER.fullmatch(plain.strip('$ ')))


def numbers(axis):
    "What the ticks of an axis say within its limits, where these are numbers; '' for a tick that says nothing."
    if not axis.get_visible(): return []
    said = [t.label1.get_text() if t.label1.get_visible() else t.label2.get_text() if t.label2.get_visible() else '' for t in axis._update_ticks()]
    return said if any(said) and all(is_number(s) for s in said if s) else []


def labelled(ax, which):
    "Whether an axis has a label, its own, that of axes with which it is shared, or that of the picture."
    shared = getattr(ax, f'get_shared_{which}_axes')().get_siblings(ax)
    whole = getattr(ax.figure, f'_sup{which}label', None)
    return any(t.strip() for t in [getattr(other, f'get_{which}label')() for other in shared] + [whole.get_text() if whole else ''])


def named(ax, which):
    "Whether it is said what an axis counts, by a label or by the title: that one names the axis which is left, where the other has a label or counts nothing."
    other = 'y' if which == 'x' else 'x'
    title = ''.join(ax.get_title(loc) for loc in ('left', 'center', 'right')).strip()
    return labelled(ax, which) or bool(title) and (labelled(ax, other) or not numbers(getattr(ax, f'{other}axis')))


def bare(fig):
    "Axes of a figure that show numbers without saying of what, or fewer than two of them; one line each."
    fig.canvas.draw()
    out = []
    for i, ax in enumerate(fig.axes):
        if not ax.axison or not ax.get_visible(): continue
        for which in 'xy':
            said = [s for s in numbers(getattr(ax, f'{which}axis')) if s]
            if said and not named(ax, which): out.append(f'{which} of axes {i}{ax.get_title() and f" ({ax.get_title()})"}: {said[0]} to {said[-1]} without a name')
            if len(said) == 1: out.append(f'{which} of axes {i}: {said[0]} and no other number')
    return out


def watch():
    "Look at every picture that is shown from here on."
    from IPython.core import pylabtools
    draw = pylabtools.print_figure

    def print_figure(fig, *args, **kwargs):
        FOUND.extend(bare(fig))
        return draw(fig, *args, **kwargs)
    pylabtools.print_figure = print_figure
