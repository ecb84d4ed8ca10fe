"""The cells of one chapter that are not exported, over the module as it stands: `make test` runs them in a kernel."""
import importlib
import json
import os
import re
import sys
from pathlib import Path

import matplotlib
import pytest

matplotlib.use('Agg')
ROOT = Path(__file__).resolve().parent.parent
SKIP = re.compile(r'^#\|\s*(export|exporti|slow|cuda|eval: false|default_exp)\b|nbdev_export\(\)', re.M)


def cells(path):
    "The code of a chapter that only uses what it exports."
    found = [''.join(c['source']) for c in json.loads(path.read_text())['cells'] if c['cell_type'] == 'code']
    return [code for code in found if not SKIP.search(code)]


def module_of(path):
    "The module that a chapter exports."
    return importlib.import_module('gradual_cf.' + re.search(r'default_exp (\S+?)[\\"\n]', path.read_text())[1])


@pytest.mark.filterwarnings('default')
@pytest.mark.parametrize('path', sorted((ROOT/'nbs').glob('*.ipynb')), ids=lambda p: p.stem)
def test_cells(path, networks, monkeypatch):
    monkeypatch.delenv('GRADUAL_CF_DATA', raising=False)
    monkeypatch.chdir(ROOT)
    scope = type(sys)('chapter')
    scope.__dict__.update(vars(module_of(path)), __name__='chapter', display=lambda *what: [repr(w) for w in what])
    monkeypatch.setitem(sys.modules, 'chapter', scope)
    for code in cells(path): exec(compile(code, path.stem, 'exec'), scope.__dict__)
    assert os.getcwd() == str(ROOT)
