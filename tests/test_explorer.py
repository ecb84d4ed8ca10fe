"""The explorer without a browser: what a page would send is sent, and what it is told is read."""
import base64
import io
import re
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import toy
import written
from written import load_task
from gradual_cf.all import PAPER, PLAUSIBLE, SPARSE, GradualCF, check_evidence, explorer, predict, tabular
from gradual_cf.models.asking import Cancelled, cancelled_when
from gradual_cf.models.networks import seeded
from gradual_cf.render import sided_percent
from gradual_cf.search.proven import ways
from gradual_cf.use.drawing import _ColumnNames, _unit_text
from gradual_cf.use.editors import _answer_shown, _checked_target, _Desk, _menu, _nowhere, _several_answers, _presets, _RowQuestion, _Latest

EVIL = '<img src=x onerror=alert(1)>'


def make_people(n=300):
    "Rows with a number, a whole number with holes, an order, a date, a category and a column of an evil name."
    rng = np.random.default_rng(0)
    late = rng.integers(0, 9, n).astype(float)
    late[::9] = np.nan
    school = pd.Categorical(rng.choice(['none', 'school', 'college'], n), ['none', 'school', 'college'], ordered=True)
    since = pd.Timestamp('2012-01-01') + pd.to_timedelta(rng.integers(0, 3000, n), unit='D')
    df = pd.DataFrame(dict(income=rng.integers(12, 90, n)*100, late=late, school=school, since=since, housing=rng.choice(['own', 'rent', EVIL], n)))
    df[EVIL] = rng.random(n).round(2)
    return df.set_index(pd.Index([f'p{i}' for i in range(n)]))


def decided(people):
    "Who was granted a loan."
    return (people.income/1000 - people.late.fillna(3)/2 + 2*(people.housing == 'own') + people.school.cat.codes > 4.5).to_numpy(int)


@pytest.fixture(scope='module')
def fitted():
    "Rows, and a fitted explainer of a small network."
    people = make_people()
    return people, decided(people), GradualCF(written.read('people'), tabular(people), 'sparse').fit(people)


@pytest.fixture(scope='module')
def named(fitted):
    "The same with units, and classes of which one has an evil name."
    people, _, _ = fitted
    return GradualCF(written.read('people'), tabular(people, units=dict(income='€')), 'sparse', classes=('refused', EVIL)).fit(people)


@pytest.fixture
def box(fitted, named):
    "A panel at the first row that is refused."
    box = explorer(named, fitted[0])
    assert box.wait()
    yield box
    box.close()


def at(box, name): return str([c.name for c in box.panel.desk.domain.features].index(name))


def set(box, hold=(), **change):
    "Set by columns' names what a page sets by their positions; `hold` are columns that stay."
    by_place = lambda v: {at(box, name): one for name, one in v.items()} if isinstance(v, dict) else v
    if hold: change['ways'] = {name: 'stay' for name in hold}
    box.panel.set(**{name: by_place(v) for name, v in change.items()})
    assert box.wait()


def column(box, name): return box.row['columns'][int(at(box, name))]


def features(box): return {*box.panel.shown[1].changes().feature}


def page(box):
    "Everything that a page puts in as HTML."
    return ' '.join([box.said['about'], box.said['hand'], box.tray, box.answer['picture'], *box.panes.values()])


def open_tab(box, name):
    box.panel.look(name)
    assert box.wait()
    return box.panes[name]


def only(box, *names): return [c.name for c in box.panel.desk.domain.features if c.name not in names]


def test_limits_are_obeyed(box):
    set(box, hold=only(box, 'income'))
    assert features(box) == {'income'}
    free, now = (int(df.income.iloc[0]) for df in (box.panel.shown[1].raw, box.panel.shown[1].data))
    set(box, limits={'income': [None, (now + free)//2]})
    assert box.panel.asked.bounds == (('income', (None, (now + free)//2)),) and not box.panel.shown[1].valid[0]
    assert 'No allowed change found' in box.status and '✗ no allowed change found' in box.panes['order'] and box.answer['p'] is None
    set(box, limits={}, ways={name: 'stay' for name in only(box, 'income')} | {'income': 'down'})
    assert box.panel.asked.bounds == (('income', (None, now)),) and not box.panel.shown[1].valid[0]
    set(box, ways={})
    assert box.answer['p'] >= .5


@pytest.mark.night
@pytest.mark.parametrize('name, places', [('school', [0., 1.]), ('since', None)])
def test_limits_of_named_stops(box, name, places):
    stops = [v for v, _ in box.fixed['columns'][int(at(box, name))]['stops']]
    set(box, limits={name: places or [stops[0], stops[len(stops)//2]]})
    low, high = dict(box.panel.asked.bounds)[name]
    assert (low, high) == ('none', 'school') if places else low < high and isinstance(high, pd.Timestamp)
    after = box.panel.shown[1].raw[name].iloc[0]
    assert name not in features(box) or low <= after <= high


def test_levels_are_obeyed_and_none_is_a_lock(box):
    set(box, hold=only(box, 'housing'))
    levels = box.panel.desk.domain.features[int(at(box, 'housing'))].levels
    assert box.panel.shown[1].raw.housing.iloc[0] == 'own'
    set(box, without={'housing': [levels.index('own')]})
    assert box.panel.shown[1].raw.housing.iloc[0] != 'own'
    set(box, without={'housing': [*range(len(levels))]})
    assert 'housing' in box.panel.asked.locked and not box.panel.asked.levels


def test_levels_are_obeyed_by_trees(fitted):
    lightgbm = pytest.importorskip('lightgbm')
    people, granted, _ = fitted
    plain = people[['income', 'housing']].astype({'housing': 'category'})
    trees = lightgbm.LGBMClassifier(n_estimators=10, num_leaves=8, verbose=-1, n_jobs=1).fit(plain, granted)
    domain = tabular(plain)
    desk = _Desk(GradualCF(trees, domain, 'sparse').fit(plain), plain)
    assert list(desk.presets) == ['sparse', 'robust', 'plausible']   # trees have no gradient for the paper's search
    rows = [i for i in range(200) if granted[i] == 0 and plain.housing.iloc[i] != 'own'][:8]
    for levels in ((), (('housing', ('rent', EVIL)),)):
        answers = [_answer_shown(desk, _RowQuestion(i, 1, 'sparse', ('income',), levels=levels)) for i in rows]
        assert any(cfs.raw.housing.iloc[0] == 'own' for cfs in answers) is (not levels)


@pytest.mark.night
def test_by_hand_the_model_is_asked_and_nothing_is_searched(box, fitted):
    people, _, cf = fitted
    row, shown = box.panel.row, box.panel.shown
    own = box.panel.desk.domain.features[int(at(box, 'housing'))].levels.index('own')
    set(box, hand={'income': 8700, 'housing': own})
    assert box.panel.shown[1] is shown[1]
    changed = people.iloc[[row]].assign(income=8700, housing='own')
    p = predict(cf.model, cf.encode(changed).x).softmax(1)[0, 1].item()
    assert f'<b>{sided_percent(p, .5)}</b>' in box.said['hand'] and box.said['p'] == pytest.approx(p, abs=1e-6)
    box.panel.go(row + 1)
    assert box.wait() and not box.said['hand'] and box.panel.mine['hand'] == {}


@pytest.mark.night
def test_a_line_is_what_the_model_says_of_every_row_on_it(box, fitted):
    people, _, cf = fitted
    set(box, hand={'school': 2.})
    moved = people.iloc[[box.panel.row]].assign(school='college').astype(people.dtypes)
    for c, line in zip(cf.domain.features, box.lines['of']):
        cells = [v for v, _ in line] if c.name in ('income', 'late', EVIL) else [c.levels[int(v)] for v, _ in line] if c.levels else None
        if cells is None: continue
        rows = pd.concat([moved.assign(**{c.name: cell}) for cell in cells]).astype(people.dtypes)
        says = predict(cf.model, cf.encode(rows).x).softmax(1)[:, 1]
        np.testing.assert_allclose([p for _, p in line], says, atol=2e-5)
    answer = box.answer['columns']
    assert answer and all(one['at'] in [v for v, _ in box.lines['of'][int(g)]] for g, one in answer.items())


def test_a_page_that_is_late_asks_nothing_and_a_wrong_state_is_a_sentence(box):
    panel, asked = box.panel, box.panel.asked
    panel.hear(dict(kind='ask', fresh=panel.fresh - 1, n=3, tab='order', mine=panel.mine | dict(hand={'0': 1200})))
    assert panel.asked is asked
    panel.hear(dict(kind='ask', fresh=panel.fresh, n=3, tab='order', mine=panel.mine | dict(hand={'0': 1200})))
    assert box.wait() and panel.asked.hand == (('income', 1200),)
    assert box.said['at'] == box.lines['at'] == box.done == [panel.fresh, 3]
    row = panel.row
    for wrong in (dict(row=10**6), dict(row='x'), dict(preset='nobody'), dict(ways=[]), dict(hand={'0': 'much'}), dict(hand={'4': 99}), dict(target=7),
                  dict(limits={'0': ['x', None]}), dict(without={'4': 1})):
        panel.hear(dict(kind='open', mine=panel.mine | wrong))
        assert box.wait() and ('state must be' in box.status or panel.row == row), wrong
    panel.hear(dict(kind='open', mine=[1]))
    assert 'state must be' in box.status
    panel.hear(dict(kind='open', mine=dict(row=5, ways={'0': 'stay'}, evil=1)))
    assert box.wait() and panel.row == 5 and panel.asked.locked == ('income',) and box.row['mine'] == panel.mine


def test_a_page_without_python_carries_its_answer(box):
    whole = box.page()
    assert EVIL not in whole and 'export const still' in whole and 'src="http' not in whole and f'"at": {[*box.answer["columns"].values()][0]["at"]}' in whole


@pytest.mark.night
def test_by_hand_the_rules_speak(fitted):
    people, _, cf = fitted
    strict = GradualCF(cf.model, tabular(people, immutable=['housing'], increase_only=['income']), 'sparse').fit(people)
    box = explorer(strict, people)
    set(box, hand={'income': 1200})
    assert column(box, 'housing')['fixed'] and column(box, 'income')['way'] == 'up'
    assert 'do not allow this for income' in box.said['hand']


@pytest.mark.night
def test_a_missing_cell_can_be_set_by_hand(fitted):
    people, _, cf = fitted
    box = explorer(cf, people)                   # `late` of the first row is missing
    assert column(box, 'late')['text'] == 'missing' and column(box, 'late')['fixed'] and column(box, 'late')['now'] is None
    set(box, hand={'late': 5})
    assert box.panel.asked.hand == (('late', 5.),) and 'By hand' in box.said['hand']


@pytest.mark.night
def test_a_row_stands_among_the_training_rows(fitted, box):
    people, _, cf = fitted
    told = box.fixed['columns'][0]
    assert told['bars'] == np.histogram(people.income, 24, (told['low'], told['high']))[0].tolist()
    assert column(box, 'income')['now'] == people.income.iloc[box.panel.row]


def test_what_comes_from_data_is_escaped(box):
    set(box, hold=only(box, EVIL, 'housing'), hand={EVIL: .5})
    box.panel.keep()
    for tab in ('real', 'reasons', 'letter', 'order'): open_tab(box, tab)
    assert EVIL not in page(box) and '&lt;img' in page(box)


@pytest.mark.night
def test_presets_answer_as_explainers_of_their_own(fitted):
    people, _, cf = fitted
    assert list(_presets(cf)) == ['sparse', 'robust', 'plausible', 'paper']
    desk, rows = _Desk(cf, people), people.iloc[[5]]
    for name, settings in dict(sparse=SPARSE, plausible=PLAUSIBLE).items():
        own = GradualCF(cf.model, cf.domain, settings).fit(people).explain(rows, 1)
        assert _answer_shown(desk, _RowQuestion(5, 1, name)).xp.equal(own.xp)
    kept = desk.explainer(_RowQuestion(0, 1, 'paper')).settings
    assert kept.legal and kept.sigma == PAPER.sigma and kept.tau == cf.settings.tau
    assert cf.settings == SPARSE and cf.company is None


def test_presets_keep_the_bar_of_the_explainer(fitted):
    people, _, cf = fitted
    high = GradualCF(cf.model, cf.domain, 'sparse', tau=.8, max_changes=2, sigma=3).fit(people)
    desk = _Desk(high, people)
    assert list(desk.presets) == ['as fitted', 'sparse', 'robust', 'plausible', 'paper']
    for name in desk.presets:
        h = desk.explainer(_RowQuestion(0, 1, name)).settings
        assert (h.tau, h.max_changes) == (.8, 2)
    assert explorer(high, people).panel.mine['preset'] == 'as fitted'


def test_rows_are_found(box):
    panel = box.panel
    panel.hear(dict(kind='find', name='p17'))
    assert panel.row == 17
    panel.hear(dict(kind='go', by=-1))
    assert panel.row == 16 and box.row['name'] == 'p16' and box.wait()
    panel.hear(dict(kind='find', name='nobody'))
    assert panel.row == 16 and 'There is no row' in box.status


def test_next_refused_goes_round(fitted):
    people, _, cf = fitted
    z = predict(cf.model, cf.encode(people).x).argmax(1)
    last = int((z == 0).nonzero()[-1])
    box = explorer(cf, people)
    box.panel.go(last)
    box.panel.hear(dict(kind='refused'))
    assert box.wait() and box.panel.row == int((z == 0).nonzero()[0])
    good = explorer(cf, people[(z == 1).numpy()], target=1)
    assert good.wait()
    good.panel.refused()
    assert good.wait() and 'every row' in good.status


def test_the_tray_is_a_frame_and_a_file(fitted):
    people, _, cf = fitted
    box = explorer(cf, people)
    assert box.wait() and box.kept.empty and 'answer 2' in open_tab(box, 'ways')
    box.panel.keep()
    first = box.panel.shown[1]
    box.panel.ask(box.panel.mine | dict(number=2))
    assert box.wait() and box.panel.shown[1].xp.ne(first.xp).any()
    box.panel.keep()
    kept = box.kept
    assert kept[first.raw.columns].iloc[[0]].equals(first.raw) and kept.cf_row.tolist() == [first.raw.index[0]]*2
    data = box.tray.split('base64,')[1].split('"')[0]
    read = pd.read_csv(io.BytesIO(base64.b64decode(data)))
    assert read.income.tolist() == kept.income.tolist() and read.cf_preset.tolist() == ['sparse']*2
    box.panel.set(ways={'0': 'stay'})
    box.panel.keep()                                  # what is shown answers an older question
    assert len(box.kept) in (2, 3) and all('income' in locked for locked in box.kept.cf_locked[2:])
    assert box.wait()


def test_numbers_have_the_decimals_and_units_of_their_column():
    df = pd.DataFrame(dict(share=[.1, .25, 2.], whole=[1, 20, 3000], free=[.1234567, 3.3, 9.]))
    share, whole, free = tabular(df).features
    assert _unit_text(whole, 1234, _ColumnNames(dict(whole='€'))) == '€1,234' and _unit_text(share, 2.) == '2.00'
    assert _unit_text(free, 3.3) == '3.30000' or float(_unit_text(free, 3.3)) == 3.3


@pytest.mark.night
def test_a_panel_opens_at_a_row_with_something_to_see(fitted):
    people, _, cf = fitted
    z = cf.logits(people, cf.encode(people).x)
    first = int((z.argmax(1) == 0).nonzero()[0])
    given = people[(z.argmax(1) == 1).numpy()]
    assert explorer(cf, people.iloc[first - 1:] if first else people).panel.row == min(first, 1)
    assert explorer(cf, given).panel.row == 0
    assert explorer(cf, people, target=0).panel.row == int((z.argmax(1) == 1).nonzero()[0])


def test_columns_and_codes_are_called_as_people_call_them(fitted):
    people, granted, _ = fitted
    late = people.late.fillna(-7).astype(int)
    coded = people[['income']].assign(late=late)
    told = dict(names=dict(late='payments <late>'), codes={-7: 'never <late>'})
    with seeded(0): net = nn.Linear(2, 2)
    box, plain = (explorer(GradualCF(net, tabular(coded, **more), 'sparse'), coded.iloc[:1]) for more in (told, {}))
    for one in (box, plain): assert one.wait()
    assert box.fixed['columns'][1]['title'] == 'payments <late>' and column(box, 'late')['text'] == 'never <late>'
    assert column(plain, 'late')['text'] == 'code -7' and box.fixed['columns'][1]['codes'] == {'-7': 'never <late>'}


def test_what_may_not_change_is_locked_to_the_eye(fitted):
    people, _, cf = fitted
    strict = GradualCF(cf.model, tabular(people, immutable=['housing', 'income']), 'sparse').fit(people)
    box = explorer(strict, people)
    assert box.wait() and [column(box, name)['fixed'] for name in ('housing', 'income', 'since')] == [True, True, False]
    set(box, ways={'income': 'up'}, limits={'income': [5000, None]})
    assert not {'income', 'housing'} & features(box)


def test_a_letter_of_the_answer(fitted):
    people, _, plain = fitted
    cf = GradualCF(plain.model, tabular(people, units=dict(income='€'), names=dict(income='your income')), 'sparse').fit(people)
    box = explorer(cf, people)
    assert box.wait()
    shown = open_tab(box, 'letter')
    page = base64.b64decode(re.search('base64,([^"]*)', shown)[1]).decode()
    assert check_evidence(page, cf).flips.all()
    assert EVIL not in shown and 'answer 1' in open_tab(box, 'ways')
    box.panel.go(int(np.flatnonzero(cf.z_train.argmax(1).numpy() == 1)[0]))
    assert box.wait() and 'letter' not in box.panes and 'No letter: ' in open_tab(box, 'letter') and 'refused' in box.panes['letter']
    assert 'No reasons' in open_tab(box, 'reasons')


def test_a_newer_question_ends_an_older_one(fitted):
    people, _, cf = fitted
    began, shown = threading.Event(), []
    def work(q):
        "Asks the model for ever where it is asked to."
        yield 'began', q
        while q == 'slow':
            began.set()
            predict(cf.model, cf.x_train[:1])
        yield 'ended', q
    worker = _Latest(work, shown.append)
    worker.put('slow')
    assert began.wait(20)
    worker.put('quick')
    assert worker.wait(20) and shown == [('began', 'slow'), ('began', 'quick'), ('ended', 'quick')]
    assert worker.thread is None


def known(cf, people, pick=np.nanargmin, **told):
    "The refused row that is farthest from the target, or nearest, its other answers, and what is said of ways."
    lead = (cf.z_train[:, 1] - cf.z_train[:, 0]).numpy()
    row = int(pick(np.where(people.late.notna() & (lead < 0), lead, np.nan)))
    own = next(name for name, settings in _presets(cf).items() if settings is None)
    desk, q = _Desk(cf, people), _RowQuestion(row, 1, own, **told)
    return people.iloc[[row]], _several_answers(desk, q), _nowhere(_menu(desk, q))


def test_other_answers_are_searched_and_what_leads_nowhere_is_said(fitted):
    people, _, cf = fitted
    row, several, said = known(cf, people, np.nanargmax, locked=('school',))
    menu = ways(cf, row, 1, immutable=['school'])
    assert said == f'Proven not to work: {(menu.proof == "none exists").sum()} of 15 sets of one or two columns.'
    assert 1 < len(several) <= 5 and several.valid.all()
    assert several.xp[:1].equal(cf.explain(row, 1, immutable=['school']).xp)
    assert several.xp.equal(cf.explain(row, 1, immutable=['school'], k=5).xp)


def test_no_other_answer_is_longer_than_the_question_allows(fitted):
    people, _, cf = fitted
    short = GradualCF(cf.model, cf.domain, 'sparse', max_changes=1).fit(people)
    _, several, said = known(short, people)
    assert 'of 6 single columns.' in said and several.changed.sum(1).max() == 1


@pytest.mark.night
@pytest.mark.parametrize('told', [dict(model=lambda x: torch.stack([x.sum(1)*0, x.sum(1) - 3], 1)), dict(density=.4), dict(cost={'income': 2.})])
def test_nothing_is_said_of_ways_where_nothing_is_proven(fitted, told):
    people, _, cf = fitted
    domain = tabular(people, cost=told['cost']) if 'cost' in told else cf.domain
    plain = GradualCF(told.get('model', cf.model), domain, PLAUSIBLE if 'density' in told else SPARSE).fit(people)
    row, several, said = known(plain, people)
    assert said == '' and several.xp.equal(plain.explain(row, 1, k=5).xp)


def test_ways_that_are_not_decided_are_counted(fitted, monkeypatch):
    import gradual_cf.use.editors as editors
    people, _, cf = fitted
    monkeypatch.setattr(editors, '_SECONDS', 1e-9)
    row, several, said = known(cf, people)
    assert 'Undecided when time ran out: ' in said and several.xp.equal(cf.explain(row, 1, k=5).xp)


@pytest.mark.night
def test_longer_answers_are_searched_where_no_way_is_short(fitted):
    people, _, cf = fitted
    steep = nn.Sequential(nn.Linear(8, 2))
    nn.init.constant_(steep[0].weight[0], 0.), nn.init.constant_(steep[0].weight[1], 1.)
    steep[0].bias.data = torch.tensor([4., 0.])  # all entries together have to be more
    _, several, said = known(GradualCF(steep, cf.domain, 'sparse').fit(people), people)
    assert said == 'Proven not to work: 21 of 21 sets of one or two columns.' and several.changed.sum(1).min() > 2


def test_the_panel_shows_ways_and_what_leads_nowhere(fitted):
    people, granted, cf = fitted
    box = explorer(cf, people)
    assert box.wait() and 'Proven not to work: ' in open_tab(box, 'ways') and 'answer 2' in box.panes['ways'] and box.many > 1
    box.panel.ask(box.panel.mine | dict(number=2))
    others = _several_answers(box.panel.desk, box.panel.asked)
    assert box.wait() and box.panel.shown[1].xp.equal(others[1].xp)
    box.panel.go(int(np.flatnonzero(cf.z_train.argmax(1).numpy() == 1)[0]))
    assert box.wait() and 'No other answer' in box.panes['ways'] and 'Proven' not in box.panes['ways']
    box.close()


def test_an_error_is_a_sentence_and_the_panel_goes_on(box, monkeypatch):
    import gradual_cf.use.explorer as asking
    with monkeypatch.context() as m:
        m.setattr(asking, '_shown_of', lambda *args: 1/0)
        box.panel.go(box.panel.row + 1)
        assert box.wait() and 'ZeroDivisionError' in box.status
    box.panel.go(box.panel.row + 1)
    assert box.wait() and 'Error' not in box.status


def test_cancelled_when_belongs_to_a_thread(fitted):
    _, _, cf = fitted
    seen = []
    with cancelled_when(lambda: True):
        other = threading.Thread(target=lambda: seen.append(predict(cf.model, cf.x_train[:1])))
        other.start(), other.join()
        with pytest.raises(Cancelled): predict(cf.model, cf.x_train[:1])
        with pytest.raises(Cancelled): cf.explain(make_people().iloc[:2])
    assert len(seen) == 1 and len(predict(cf.model, cf.x_train[:1])) == 1


def test_numbers_are_asked_for_an_interval(fitted):
    people, _, cf = fitted
    class Price(nn.Module):
        kind = 'number'
        def forward(self, x): return 1000*x[:, :1] + 3
    priced = GradualCF(Price(), cf.domain, 'sparse').fit(people)
    box = explorer(priced, people)
    assert box.wait() and list(box.panel.desk.presets) == ['sparse', 'robust', 'plausible']
    set(box, target='900..')
    assert box.panel.asked.target == (900., None) and box.panel.shown[1].valid[0] and box.fixed['targets'] is None
    low, high = box.said['scale']
    assert low <= box.said['p'] <= high and box.said['good'][0] == 900. and box.said['marks'][0][0] == 900.
    set(box, target='much')
    assert 'LOW..HIGH' in box.status
    assert _checked_target(_Desk(priced, people), (None, 5)) == (None, 5.)


def test_words():
    task = load_task('toy_reviews')
    cf = GradualCF(task.model, task.domain, 'sparse', classes=task.classes).fit(task.X.iloc[:200])
    box = explorer(cf, pd.DataFrame(dict(text=['The plot is awful. I found the cast awful. What a <b>plot</b>!'])))
    assert box.wait() and 'awful' in [*box.panel.shown[1].changes().before]
    assert [w for w, _ in box.row['words']].count('awful') == 2
    set(box, locked=['awful'])
    assert box.panel.asked.locked == ('awful',) and 'awful' not in [*box.panel.shown[1].changes().before]
    assert '<b>plot' not in page(box) and [name for name, _ in box.fixed['tabs']] == ['ways', 'order']
    set(box, hand='The plot is wonderful.')
    assert 'That is enough' in box.said['hand']
    box.panel.keep()
    assert box.kept.text.tolist() == box.panel.shown[1].raw


def test_regions():
    task = load_task('digits')
    cf = GradualCF(task.model, task.domain, 'sparse', sigma=2).fit(task.X[:200])
    box = explorer(cf, task.X_test[:3], 9)
    assert box.wait()
    changed = features(box)
    at = next(i for i, names in enumerate(box.panel.desk.regions) if min(changed) in names)
    set(box, locked=[at])
    assert min(changed) not in features(box) and box.panel.shown[0].locked == tuple(box.panel.desk.regions[at])
    assert page(box).count('data:image/png') == 3 and 'alt=' in page(box) and box.row['png'].startswith('data:image/png') and len(box.fixed['regions']) == 16


def test_other_kinds_have_a_panel_without_knobs():
    p = toy.columns()
    box = explorer(GradualCF(p.model, p.domain, 'sparse').fit(p.x), p.x[:5])
    assert box.wait() and box.fixed['columns'] == [] and 'group' in box.answer['picture']
    assert list(box.panel.desk.presets) == ['as fitted']


LEAVES = '''
from threading import Event
from gradual_cf.use.editors import _Latest
from gradual_cf.models.asking import predict
import torch
net, began = torch.nn.Linear(2, 2), Event()
def work(q):
    while True:
        predict(net, torch.zeros(1, 2))
        began.set()
        yield q
_Latest(work, lambda part: None).put(1)
began.wait()
'''


@pytest.mark.night
def test_a_program_may_end_while_a_panel_searches():
    done = subprocess.run([sys.executable, '-c', LEAVES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
