"""Texts of data on every way out: no terminal is steered, no spreadsheet runs anything, no dollar sign is mathematics."""
import csv
import html
import io
import re

import pandas as pd
from hypothesis import HealthCheck, given, settings, strategies as st
from matplotlib.cbook import is_math_text
from size import SIZE

from gradual_cf.render import csv_text, markdown, plot_text, terminal

QUICK = settings(max_examples=max(SIZE, 1), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
BITS = st.sampled_from(['$', '\\', '=', '+', '-', '@', '\t', '\r', '\n', '\r\n', '\x1b[31m', '\x1b]0;owned\x07', '\x9b2J', '\u202e', '\u200b', '"', "'", ',', ';',
                        '|', '<', '>', '&', '&amp;', '*', '_', '`', '#', '~', 'a', 'é', '1', ' ', 'cmd|x!A1', '\x00', '\x7f'])
TEXTS = st.lists(BITS, max_size=12).map(''.join)
OURS = re.compile(r'\x1b\[[0-9;]*m')  # bold, colours, off: marks of our own


@QUICK
@given(TEXTS)
def test_no_terminal_is_steered(text):
    assert re.search(r'[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]', OURS.sub('', terminal(text))) is None


@QUICK
@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_no_spreadsheet_runs_anything_and_all_comes_back(cells, name):
    head, *lines = csv.reader(io.StringIO(csv_text(pd.DataFrame({name: cells, 'n': 1})), newline=''))
    for shown, text in zip([head[0], *(line[0] for line in lines)], [name, *cells], strict=True):
        plain = shown.removeprefix("'") if not text.startswith("'") else shown
        assert plain == re.sub('\r\n?', '\n', text)
        if not re.fullmatch(r'\s*[-+]?[\d,.]+\s*', shown): assert not re.match(r'\s*[=+\-@\t\r]', shown), (text, shown)


@QUICK
@given(TEXTS)
def test_no_dollar_sign_is_mathematics(text): assert not is_math_text(plot_text(text))


@QUICK
@given(TEXTS)
def test_markdown_gives_back_what_was_written(text):
    page = str(markdown(text))
    back = html.unescape(re.sub(r'\\([!-/:-@\[-`{-~])', r'\1', page))
    assert back.strip() == text.strip() and re.search(r'(?<!\\)[$*`|<]', page) is None
