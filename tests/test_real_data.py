"""The paper's loan data: loaders, accuracies, and what the default and the paper's setting reach."""
import os

import pytest

from gradual_cf.all import GradualCF, PAPER, evaluate, load_heloc, load_task, load_uci_credit

DATA = os.environ.get('GRADUAL_CF_DATA')
pytestmark = pytest.mark.skipif(not DATA, reason='need GRADUAL_CF_DATA')


def test_splits_are_the_papers():
    X,y,Xt,yt = load_heloc()
    assert (X.shape, Xt.shape) == ((7402, 22), (2468, 22)) and not set(X.index) & set(Xt.index)
    assert set(y) == {0, 1} and (X == -8).to_numpy().any()
    X,y,Xt,yt = load_uci_credit()
    assert (X.shape, Xt.shape) == ((22500, 23), (7500, 23)) and .2 < y.mean() < .25 and (X.dtypes == 'int64').all()
    assert load_heloc(DATA)[0].equals(load_heloc()[0])


@pytest.fixture(scope='module', params=['heloc', 'uci_credit'])
def loan(request, tmp_path_factory):
    "A task with a freshly trained network."
    old = os.environ.get('GRADUAL_CF_CACHE')
    os.environ['GRADUAL_CF_CACHE'] = old or str(tmp_path_factory.mktemp('cache'))
    yield load_task(request.param)
    if old is None: del os.environ['GRADUAL_CF_CACHE']


LIMITS = dict(heloc=dict(accuracy=.708, l1=1.05, l2=.33, coherence=1.25), uci_credit=dict(accuracy=.81, l1=1.02, l2=.27, coherence=1.10))
# UCI's L2 is .25 because PAY_0 counts whole months; with fractions allowed it is .215 (benchmarks/loans.py)

def test_default_mode_on_a_thousand_rows(loan):
    rows = loan.X_test.iloc[:1000]
    table = evaluate(GradualCF(loan.model, loan.domain, 'sparse').fit(loan.X), rows)
    value = table.set_index('metric')['mean']
    most = LIMITS[loan.name]
    assert loan.accuracy() >= most['accuracy']
    assert value['valid'] >= .999 and value['legal'] == 1 and value['in_range'] >= .999
    assert value['l1'] <= most['l1'] and value['l2'] <= most['l2']
    assert table[table.eps == 8]['mean'].item() <= most['coherence']


def test_paper_mode(loan):
    value = evaluate(GradualCF(loan.model, loan.domain, PAPER).fit(loan.X), loan.X_test.iloc[:300]).set_index('metric')['mean']
    assert value['valid'] >= .995 and value['in_range'] < .9    # about half of the rows leave the range: the finding behind the default
    if loan.name == 'heloc': assert value['l1'] <= 1.10
