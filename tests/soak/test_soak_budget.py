"""Questions with a limit: never one call more, for tables, texts, images and series; four questions a seed."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from test_budget import never_more  # noqa: E402

SIZE = max(int(os.environ.get('SOAK_SIZE', 400))//40, 1)  # 100,000 of a night are 2,500 seeds of four kinds, four questions each


@pytest.mark.parametrize('kind', ['table', 'texts', 'images', 'series'])
def test_never_one_call_more(kind):
    for seed in range(SIZE): never_more(kind, seed)
