"""Where texts of data leave: a terminal is not steered, a spreadsheet runs nothing, a dollar sign is no mathematics, and files are whose the umask says."""
import csv
import io
import os
import re
import stat
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.text import Text
from typer.testing import CliRunner

from gradual_cf.all import (GradualCF, audit, explain_dataset, plot_summary, relevance, save_model, save_page, summary, tabular, tabular_mlp)
from gradual_cf.core import atomic
from gradual_cf.render import csv_text, plot_text, terminal

TITLE = '\x1b]0;owned\x07'
EVIL = f'{TITLE}=cmd|$x_1$ {{$ \x9b2J'
LEVELS = ['$\\frac{$', f'=1+1{TITLE}', '@SUM(A1)']


@pytest.fixture(scope='module')
def shop():
    "A table whose names and levels are commands of a terminal, formulas and mathematics, and an explainer of a linear model."
    rng = np.random.default_rng(0)
    df = pd.DataFrame({EVIL: rng.gamma(6, 400, 90).round(2), '$ late $': rng.poisson(2, 90), '-home': rng.choice(LEVELS, 90)}, index=[f'{TITLE}{i}' for i in range(90)])
    domain = tabular(df)
    x = domain.encode(df).x
    w = torch.tensor([3., -2, .2, 0, .5], dtype=torch.float64)
    middle = (x.double() @ w).median() + 1e-3
    net = torch.nn.Sequential(torch.nn.Linear(5, 2)).double()
    net[0].load_state_dict(dict(weight=torch.stack([-w, w])*4, bias=torch.stack([middle, -middle])*4))
    cf = GradualCF(net, domain, 'sparse').fit(df)
    rows = df[(cf.logits(df, x).argmax(1) == 0).numpy()][:20]
    return cf, rows, cf.explain(rows, 1)


def steers(text): return re.search(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]', re.sub(r'\x1b\[[01]m', '', text)) is not None


def test_a_terminal_is_not_steered(shop):
    cf, rows, answer = shop
    evil = (TITLE + 'no', TITLE + 'yes')
    cf = GradualCF(cf.model, cf.domain, 'sparse', classes=evil).fit(cf.domain.decode(cf.x_train))
    answer = cf.explain(rows, evil[1])
    texts = [answer.text(colour=True), cf.explain(rows[:4], evil[1], k=3).text(), answer.plan().text(), audit(cf, rows, '-home', target=evil[1], least=2).text()]
    for text in texts: assert not steers(text) and '\\x1b]0;owned\\x07' in text
    assert terminal('a\tb\nc ü \x1b[1mx\x1b[0m') == 'a\tb\nc ü \x1b[1mx\x1b[0m' and terminal('\r\u202e\x7f') == '\\r\\u202e\\x7f'


@pytest.mark.night
def test_the_command_line_does_not_steer_either(shop, tmp_path):
    from sklearn.linear_model import LogisticRegression
    skops = pytest.importorskip('skops.io')
    from gradual_cf.cli import app
    rng = np.random.default_rng(0)
    df = pd.DataFrame({TITLE + 'a': rng.random(60).round(2), 'b': rng.random(60).round(2)})
    skops.dump(LogisticRegression().fit(df, df.iloc[:, 0] + df.b > 1), tmp_path/'m.skops')
    df.to_csv(tmp_path/'d.csv', index=False)
    r = CliRunner().invoke(app, ['explain', '--model', str(tmp_path/'m.skops'), '--csv', str(tmp_path/'d.csv'), '--row', '0'])
    assert r.exit_code in (0, 3) and 'owned' in r.output and not steers(r.output)
    r = CliRunner().invoke(app, ['explain', '--model', str(tmp_path/'m.skops'), '--csv', str(tmp_path/'d.csv'), '--row', '0', '--immutable', TITLE])
    assert r.exit_code == 2 and 'owned' in r.output and not steers(r.output)


def test_a_spreadsheet_runs_nothing():
    cells = ['=1+1', '+1+1', '-x', '@SUM(A1)', '\t=1', '\r=1', ' =1', '\n=1', 'a\r=1', '-', '=', '-1', '+3.5', '-1,000', 'a=1', '', None]
    df = pd.DataFrame({'=HYPERLINK("x")': cells, 'n': np.arange(len(cells)) - 3.5, '-2': cells, 'c': pd.Categorical(cells)})
    head, *lines = csv.reader(io.StringIO(csv_text(df), newline=''))
    assert head == ["'=HYPERLINK(\"x\")", 'n', '-2', 'c'] and [float(l[1]) for l in lines] == df.n.tolist()
    for line, cell in zip(lines, cells):
        shown = (cell or '').replace('\r', '\n')
        assert line[0] == line[2] == line[3] == (f"'{shown}" if cell in cells[:8] + ['-', '='] else shown)


def drawn(fig):
    "The texts of a figure as they are drawn; none is mathematics."
    fig.canvas.draw()
    out = []
    for t in fig.findobj(Text):
        text, math = t._preprocess_math(t.get_text())
        assert not math, t.get_text()
        out.append(text)
    return '\n'.join(out)


@pytest.mark.night
def test_a_dollar_sign_in_a_plot_is_one(shop, tmp_path):
    cf, rows, answer = shop
    explain_dataset(cf, rows, tmp_path/'out', 1)
    figures = [answer.plot(), cf.explain(rows[:4], 1, k=3).plot(), answer.plan().plot(), audit(cf, rows, '-home', target=1, least=2).plot(), plot_summary(summary(tmp_path/'out'))]
    for fig in figures: assert '$' in drawn(fig)
    assert '$' in drawn(relevance(cf.model, cf.domain, rows[:2]).plot())
    assert plot_text('a $x$\x1b') == 'a \\$x\\$\\x1b'


@pytest.mark.night
@pytest.mark.parametrize('umask, mode', [(0o077, 0o600), (0o022, 0o644), (0o027, 0o640)])
def test_files_are_whose_the_umask_says(shop, tmp_path, umask, mode):
    cf, rows, answer = shop
    old = os.umask(umask)
    try:
        with atomic(tmp_path/'a.txt') as tmp: tmp.write_text('x')
        answer.save(tmp_path/'answers.zip'), answer.to_json(tmp_path/'a.json'), answer.to_html(tmp_path/'a.html')
        if find_spec('openpyxl'): answer.to_excel(tmp_path/'a.xlsx')
        save_model(tabular_mlp(3, seed=0), tmp_path/'net.safetensors')
        save_page(tmp_path/'page.html', cf.trace(rows[:1], 1))
        explain_dataset(cf, rows, tmp_path/'out', 1)
    finally: os.umask(old)
    files = [p for p in tmp_path.rglob('*') if p.is_file()]
    assert len(files) >= 8 and {stat.S_IMODE(p.stat().st_mode) for p in files if p.name != '.lock'} == {mode}  # which nobody reads
    assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob('*') if p.is_dir()} == {0o777 & ~umask}
