"Proofs against asking every legal row there is: each pair of a model, a kind of column, a rule, a price, a number of classes and a question (`questions.py`)."
from collections import Counter

import pytest
from questions import FAILS_TODAY, LISTS, MODELS, ONCE_WRONG, ONLY_ASKED, SAID, SOAK_ONLY, check, covering, daily

pytestmark = pytest.mark.filterwarnings(*SAID)


@pytest.mark.parametrize('model', [name for name in MODELS if name not in FAILS_TODAY and name not in SOAK_ONLY])
def test_what_is_claimed_is_true(model, request):
    "By day each model is asked three questions or more; at night (CASES=all) each meets each kind of column, rule, price, decision and question."
    for library in ('xgboost', 'lightgbm', 'interpret', 'catboost'):
        if library == model: pytest.importorskip(library)
    told, every = Counter(), request.config.getoption('cases') == 'all'
    for seed, case in enumerate(covering()):
        if case['model'] == model and (every or seed in daily()): told.update(check(seed, **case))
    assert not every or told['optimal'] > 3 or model in (*ONLY_ASKED, 'sentinel'), told  # which are not read


@pytest.mark.parametrize('seed', ONCE_WRONG)
def test_what_was_wrong_once_is_right(seed):
    case = dict(zip(LISTS, ONCE_WRONG[seed]))
    if case['model'] == 'lightgbm': pytest.importorskip('lightgbm')
    check(seed, **case)
