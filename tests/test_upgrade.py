"""The upgrade notes say what is so: what they call new is there, what they call old is gone or warns."""
import ast
import importlib
import re
from pathlib import Path

from gradual_cf import all as public

NOTES = (Path(__file__).parent.parent/'CHANGELOG.md').read_text().partition('### Upgrade notes')[2].partition('\n### ')[0]
LINES = [line.strip('| ').split(' | ') for line in NOTES.splitlines() if line.startswith('| ') and not line.startswith('| before')]


def test_what_is_called_old_is_gone_and_what_is_called_new_is_there():
    assert len(LINES) > 20
    for old,new in LINES:
        for name in re.findall(r'`(gradual_cf[.\w]+)`', new): assert importlib.import_module(name)
        if 'gradual_cf.' in old or old[0] != '`': continue  # what moved to another module, and what stays
        for name in re.findall(r'`(\w+)[`(]', old): assert f'`{name}(' in new or not hasattr(public, name), name
        for code in re.findall(r'`(\w+\(.*?\))`', new):
            for node in ast.walk(ast.parse(code.replace('…', '...'))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name): assert hasattr(public, node.func.id), code
