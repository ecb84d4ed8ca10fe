"""The chapters from top to bottom, each in a kernel of its own, without data. Of the other pages `make docs` runs what changed; here run those whose own source did."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'docs'))
from execute import execute, rewritten  # noqa: E402

PAGES = 'tutorials', 'explanations', 'figures'  # folders of what is no chapter
NOTEBOOKS = sorted(p for p in (ROOT/'nbs').rglob('*.ipynb') if not any(part[0] in '._' for part in p.relative_to(ROOT).parts))


def chosen(path, pages):
    "Whether a notebook runs: a chapter does, another page as `--pages` says."
    return path.parent.name not in PAGES or pages == 'all' or pages == 'changed' and rewritten(path)


def pytest_generate_tests(metafunc):
    paths = [p for p in NOTEBOOKS if chosen(p, metafunc.config.getoption('pages'))]
    if 'path' in metafunc.fixturenames: metafunc.parametrize('path', paths, ids=lambda p: p.relative_to(ROOT/'nbs').with_suffix('').as_posix())


def test_runs(path, networks, monkeypatch, record_property):
    monkeypatch.delenv('GRADUAL_CF_DATA', raising=False)
    done = execute(path, anew=True)  # raises where a cell does, or shows what a reader cannot see
    record_property('cpu', done.metadata.cpu)
