"""Questions with a limit: never one call more, for tables, texts, images and series; 2,500 seeds of four kinds, four questions each, of a night's 100,000."""
import pytest
from size import SIZE
from test_budget import never_more


@pytest.mark.parametrize('kind', ['table', 'texts', 'images', 'series'])
def test_never_one_call_more(kind):
    for seed in range(max(SIZE//40, 1)): never_more(kind, seed)
