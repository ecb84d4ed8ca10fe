"""Suites of checks: against counts by hand, on models with a defect and without one; what is refused; files, exit codes, JUnit."""
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import toy
from benchmarks import suites as bench
from test_cli import run
from test_watch import card, lender, line as watch_line, people

from gradual_cf.all import GradualCF, run_suite, Suite, tabular
from gradual_cf.use.suites import _against_threshold, _ratio_against_threshold, _judged

SHARES = [dict(check='recourse', least=.9), dict(check='recourse', least=.9, by='sex')]


def asked(check, model=None, champion=None, n=300, **more):
    "A suite about a lender, with rows of two groups."
    rows = people(n, 1).assign(sex=np.where(np.arange(n) % 3, 'man', 'woman'))
    return dict(model=model or lender(), rows=rows, target='granted', check=check) | ({} if champion is None else dict(champion=champion)) | more


def line(found, check, group='all rows'): return watch_line(found, check, group, 'check')


def test_shares_lengths_and_letters_are_counted_as_by_hand():
    then, now = lender(), lender(1.5)
    suite = asked([*SHARES[1:], dict(check='length', most=.2), dict(check='holds', least=.5), dict(check='rules')], now, then)
    rows, found = suite['rows'], run_suite(suite)
    refused = 6*rows.income/100 - 4*rows.debt/100 < 1.5
    assert line(found, 'recourse').rows == refused.sum() and line(found, 'recourse', 'woman').rows == (refused & (rows.sex == 'woman')).sum()
    answers = now.explain(rows[['income', 'debt']][refused], 'granted')
    way = abs(answers.raw - answers.data).div([100, 100]).sum(axis=1)
    assert line(found, 'length').value == pytest.approx(way.median(), abs=.01)
    old = then.explain(rows[['income', 'debt']], 'granted')
    advised = old.raw[~old.decided[:, 0]]
    assert line(found, 'holds').value == pytest.approx((6*advised.income/100 - 4*advised.debt/100 > 1.5).mean(), abs=.01)
    assert line(found, 'rules').value == 0 and line(found, 'rules').verdict == 'holds'


def test_letters_hold_where_the_model_decides_as_they_say():
    "A model that is asked for more than the decision is not held to that by what was promised."
    then = lender(tau=.6)
    assert line(run_suite(asked([dict(check='holds', least=.9)], lender(tau=.9), then)), 'holds').value == 1


def test_a_group_in_which_nobody_has_a_way_fails():
    rows = people(300, 1).assign(branch=(np.arange(300) % 3 == 0).astype(int))
    cf = GradualCF(toy.Score([6., -4., -60.], -1.2), tabular(rows, immutable=['branch']), 'sparse', classes=('refused', 'granted')).fit(rows)
    checks = [dict(check='recourse', least=.9, by='branch'), dict(check='recourse', least=.8, against='others', by='branch')]
    found = run_suite(dict(model=cf, rows=rows, target='granted', check=checks)).frame
    some = found[found.group == '1']
    assert len(some) == 2 and (some.verdict == 'fails').all() and (found[found.group == '0'].verdict == 'holds').all()


def test_what_never_may_be_is_broken_by_one_row(tmp_path):
    cf = GradualCF(card(), tabular(people(), immutable=['debt']), 'sparse', classes=('refused', 'granted')).fit(people())
    answers = cf.explain(people(300, 1), 'granted')
    suite = asked([dict(check='rules', by='sex')], cf)
    assert run_suite(suite).exit_code == 0
    answers.raw.loc[(~answers.decided[:, 0] & answers.valid).nonzero()[0][0], 'debt'] -= 1
    found = run_suite(asked([dict(check='rules')], cf, issued=answers))
    assert found.exit_code == 1 and line(found, 'rules').value == pytest.approx(1/line(found, 'rules').rows)


def test_a_direction_is_a_line_a_column():
    cf = GradualCF(card(), tabular(people(), better=dict(income='higher', debt='higher')), 'sparse', classes=('refused', 'granted')).fit(people())
    found = run_suite(asked([dict(check='direction')], cf))
    assert line(found, 'direction', 'income').verdict == 'holds' and line(found, 'direction', 'debt').verdict == 'fails'


def test_too_few_rows_are_no_pass():
    found = run_suite(asked([dict(check='recourse', least=.9, by='sex')], fewest=100))
    assert line(found, 'recourse', 'woman').verdict == 'too few' and found.exit_code == 0 and not found.unmeasured
    nobody = run_suite(asked([dict(check='recourse', least=.9), dict(check='length', most=9.)], fewest=290, n=300))
    assert nobody.unmeasured == [1, 2] and nobody.exit_code == 2 and nobody.text() and nobody._repr_html_()
    with pytest.raises(ValueError, match='plot needs'): nobody.plot()


@pytest.mark.parametrize('defect', bench.MEANT)
def test_planted_defects_are_found_and_quiet_pairs_pass(defect):
    "Of each kind one pair, as the measurement of the benchmark draws it; a quiet pair with thresholds at 1 may fail by chance, this one does not."
    assert bench.failed(defect, 3) == ({bench.MEANT[defect]} if bench.MEANT[defect] else set())


def test_the_measurement_says_what_the_page_says():
    told = pd.read_csv(Path(bench.__file__).parent/'results'/'suites.csv').set_index('defect')
    defects = told[told.found.notna()]
    assert len(defects) == 8 and (defects.found >= .95).all() and (defects.pairs >= 40).all()
    assert told.alarms['nothing'] <= .05 and told.pairs['nothing'] >= 200


def shares(rng, p, q, n=250):
    "Lines about two shares and their ratio, each exactly at its threshold, if `p` is `q`."
    a, b = ((rng.random(n) < v).astype(float) for v in (p, q))
    told = lambda title, line: dict(no=1, check='recourse', title=title, side='least', by='everybody', group='all rows', rows=n) | line
    return _judged([told('alone', dict(limit=q) | _against_threshold(a, True, 1, q)), told('beside', dict(limit=1.) | _ratio_against_threshold(a, b, True, 1, 1.))], .05)


@pytest.mark.parametrize('share', [.5, .9, .99])
def test_chance_alone_fails_in_one_of_twenty(share):
    alarms = sum((shares(np.random.default_rng([i, 1]), share, share).verdict == 'fails').any() for i in range(100))
    assert alarms <= 11  # 5 are expected at most; more than 11 have a chance of one in two hundred


def test_ten_points_less_are_found():
    assert sum((shares(np.random.default_rng([i, 2]), .8, .9).verdict == 'fails').any() for i in range(50)) >= 47


def test_medians_and_ratios_of_lengths_have_their_level():
    rng = np.random.default_rng(0)
    draws = [rng.lognormal(0, .6, (2, 200)) for _ in range(300)]
    assert np.mean([_against_threshold(a, False, -1, 1.)['p'] <= .05 for a, _ in draws]) <= .08
    assert np.mean([_ratio_against_threshold(a, b, False, -1, 1.)['p'] <= .05 for a, b in draws]) <= .08
    assert np.mean([_ratio_against_threshold(1.3*a, b, False, -1, 1.)['p'] <= .05 for a, b in draws]) >= .95


def test_pages_and_junit_of_odd_names(tmp_path):
    rows = people(300, 1).assign(sex=np.where(np.arange(300) % 2, '<b>&"\x07\x1b[31m', '$m$\n'))
    found = run_suite(asked([dict(check='recourse', least=.9, by='sex', title='a "ratio" <1>\x00')], title='a & b', rows=rows))
    top = ET.parse(found.to_junit(tmp_path/'s.xml')).getroot()
    assert top.get('name') == 'a & b' and top.get('tests') == '3' == str(len(top)) and top.get('failures') == '0'
    assert '<b>' not in found._repr_html_() and found.to_html(tmp_path/'s.html').stat().st_size and '\x07' not in found.text()
    assert isinstance(found, Suite) and found.df().equals(found.frame) and found.df() is not found.frame
    assert len(json.loads(found.to_json())['suite']) == 3 and found.plot()


REFUSED = [
    (dict(check=[dict(check='recurse', least=.9)]), "check 1 must be one of"), (dict(check=['recourse']), 'check 1 must be one of'),
    (dict(check=[dict(check=['recourse'])]), "check 1 must be one of"), (dict(check=[]), 'check must be a list of at least one'),
    (dict(check=[dict(check='recourse', least=1.2)]), r'least of check 1 \(recourse\) must be a share in \[0, 1\], got 1.2'),
    (dict(check=[dict(check='recourse', least=True)]), 'got True'), (dict(check=[dict(check='recourse')]), 'got None'),
    (dict(check=[dict(check='recourse', most=.9)]), "no others, got \\['most'\\]"),
    (dict(check=[dict(check='length', most=0)]), 'most of check 1 .length. must be a positive number, got 0'),
    (dict(check=[dict(check='length', most=float('nan'))]), 'got nan'),
    (dict(check=[SHARES[0] | dict(by='gender')]), r"by must name columns of rows, got \['gender'\]"),
    (dict(check=[SHARES[0] | dict(against='others')]), "with by, got 'others'"),
    (dict(check=[SHARES[0] | dict(against='champion')]), 'champion must be given for check 1'),
    (dict(check=[dict(check='holds', least=.9)]), 'champion or issued must be given'),
    (dict(check=[dict(check='reasons', least=.9, k=0)], champion=lender()), 'k must be a whole number'),
    (dict(check=SHARES, model='gone.skops'), "model must be an existing file or folder, got 'gone.skops'"),
    (dict(check=SHARES, model=card()), 'model must be a file, a folder or a fitted explainer, got Score'),
    (dict(check=SHARES, rows='gone.csv'), 'rows must be a readable CSV file'), (dict(check=SHARES, rows=[1]), 'rows must be a file or a frame, got list'),
    (dict(check=SHARES, target='approved'), "target must be one of"), (dict(check=SHARES, level=2.), 'level must be in'),
    (dict(check=SHARES, fewest=1), 'fewest must be a whole number'), (dict(check=SHARES, modle=1), r"no others, got \['modle'\]"),
    (dict(check=SHARES, rules=dict(immutable=['age'])), "must be left out where model is an explainer"),
    (dict(check=[dict(check='direction')]), 'better'), (dict(check=SHARES, target=None), 'target must be given in a suite')]


@pytest.mark.parametrize('more, says', REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_wrong_is_named(more, says):
    with pytest.raises(ValueError, match=says): run_suite(asked(**({'check': SHARES} | more)))


SUITE = '''
title = "Loans"
model = "{model}.skops"
champion = "then.skops"
rows = "rows.csv"
training = "training.csv"
target = 1
preset = "sparse"
[rules]
better = {{income = "higher", debt = "lower"}}
bounds = {{income = [0, 120]}}
[[check]]
check = "recourse"
by = "sex"
least = 0.9
[[check]]
check = "holds"
least = 0.9
[[check]]
check = "direction"
'''


@pytest.fixture
def folder(tmp_path):
    io = pytest.importorskip('skops.io')
    from sklearn.linear_model import LogisticRegression
    rows = people(300)
    for name, bar in dict(then=0, now=30).items(): io.dump(LogisticRegression().fit(rows, (rows.income - rows.debt > bar).astype(int)), tmp_path/f'{name}.skops')
    rows.to_csv(tmp_path/'training.csv', index=False)
    people(200, 3).assign(sex=['f', 'm']*100).to_csv(tmp_path/'rows.csv', index=False)
    for model in ('then', 'now', 'gone'): (tmp_path/f'{model}.toml').write_text(SUITE.format(model=model))
    return tmp_path


def test_the_command_ends_with_what_it_found(folder):
    good = run('test', folder/'then.toml', '--junit', folder/'s.xml', '--html', folder/'s.html')
    assert good.exit_code == 0 and 'FAILS' not in good.output and (folder/'s.html').stat().st_size > 500, good.output
    assert ET.parse(folder/'s.xml').getroot().get('tests') == '6'
    bad = run('test', folder/'now.toml', '--json', '--junit', folder/'s.xml')
    assert bad.exit_code == 1 and {l['check'] for l in json.loads(bad.stdout) if l['verdict'] == 'fails'} == {'holds'}
    assert ET.parse(folder/'s.xml').getroot().get('failures') == '1'
    assert run('test', folder/'now.toml').output.count('FAILS') == 1
    for words, says in (('gone.toml', 'gone.skops'), ('nothing.toml', 'suite must be a readable TOML file')):
        r = run('test', folder/words)
        assert r.exit_code == 2 and says in r.stderr and 'Traceback' not in r.output
    for old, new, says in (('by = "sex"', 'by = "age"', "by must name columns of rows, got ['age']"), ('0.9', '9', 'share in [0, 1], got 9'),
                           ('bounds =', 'bound =', "rules must be arguments of tabular, got ['bound']"), ('title =', 'title', 'readable TOML file')):
        (folder/'bad.toml').write_text(SUITE.format(model='then').replace(old, new))
        r = run('test', folder/'bad.toml')
        assert r.exit_code == 2 and says in r.stderr, r.output


def test_no_pickle_is_opened(folder):
    (folder/'then.pkl').write_bytes(b'cos\nsystem\n(S"touch pwned"\ntR.')
    (folder/'bad.toml').write_text(SUITE.format(model='then').replace('"then.skops"\nchampion', '"then.pkl"\nchampion'))
    r = run('test', folder/'bad.toml')
    assert r.exit_code == 2 and 'then.pkl' in r.stderr and not Path('pwned').exists()


def test_a_saved_explainer_and_letters_from_a_folder(folder):
    rows = pd.read_csv(folder/'rows.csv')
    made = run('batch', folder/'rows.csv', '--model', folder/'then.skops', '--csv', folder/'training.csv', '--target', 1, '--out', folder/'answers')
    assert made.exit_code == 0, made.output
    from sklearn.linear_model import LogisticRegression
    model = LogisticRegression().fit(people(), np.where(people().income > people().debt, 'granted', 'refused'))
    GradualCF(model, tabular(people()), 'sparse').fit(people()).save(folder/'saved')
    found = run_suite(dict(model=str(folder/'then.skops'), rows=rows, training=str(folder/'training.csv'), target=1, issued=str(folder/'answers'),
                           check=[dict(check='holds', least=.95, by='sex'), dict(check='rules', by='sex')]))
    assert found.exit_code == 0 and set(found.frame.group) == {'all rows', 'f', 'm'}
    kept = run_suite(dict(model=folder/'saved', rows=rows, target='granted', check=SHARES))
    assert kept.exit_code == 0 and line(kept, 'recourse', 'f').verdict == 'holds'


def recipe(name):
    "The cell of the chapter that uses a package."
    cells = json.loads((Path(__file__).parent.parent/'nbs'/'use'/'13_suites.ipynb').read_text())['cells']
    return next(text for text in (''.join(c['source']) for c in cells) if f'import {name}' in text)


def test_the_recipe_for_mlflow_logs_a_failed_run(tmp_path):
    mlflow = pytest.importorskip('mlflow', reason="needs mlflow (pip install 'gradual_cf[mlflow]')")
    mlflow.set_tracking_uri(f'sqlite:///{tmp_path}/mlflow.db')
    found = run_suite(asked([SHARES[1], dict(check='holds', least=.9)], lender(1.5), lender()))
    names = dict(found=found, folder=tmp_path)
    exec(recipe('mlflow'), names)
    told = mlflow.get_run(names['active'].info.run_id)
    assert told.info.status == 'FAILED' and told.data.metrics['suite_failures'] == 1 and len(told.data.metrics) == 5


def test_the_recipe_for_validmind_is_a_test_that_it_can_run():
    pytest.importorskip('validmind')
    exec(recipe('validmind').partition('result =')[0], names := dict(run_suite=lambda suite: run_suite(asked(SHARES))))
    table, figure, passed = names['recourse']()
    assert passed and len(table['Checks of recourse']) == 4 and figure
