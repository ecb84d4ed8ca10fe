"""Every notebook from top to bottom, each in a kernel of its own, without data. The site shows these runs: `make docs` runs again only what changed."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'docs'))
from execute import execute, key, unseen  # noqa: E402

NOTEBOOKS = sorted(p for p in (ROOT/'nbs').rglob('*.ipynb') if not any(part[0] in '._' for part in p.relative_to(ROOT).parts))


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda p: p.relative_to(ROOT/'nbs').with_suffix('').as_posix())
def test_runs(path, networks, monkeypatch):
    monkeypatch.delenv('GRADUAL_CF_DATA', raising=False)
    done = execute(path, key(path), anew=True)
    assert unseen(done) == []
