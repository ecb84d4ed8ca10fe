"""The explorer without a browser: its widgets are moved, and what it shows is read."""
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
from gradual_cf.use.editors import _checked_target, _Desk, _presets, _Question, _Worker
from gradual_cf.use.drawing import _Terms, _unit_text
from gradual_cf.use.editors import _regions
from gradual_cf.models.asking import Cancelled, cancelled_when, predict
from gradual_cf.use.explorer import explorer
from gradual_cf.gradual import PAPER, PLAUSIBLE, SPARSE, GradualCF
from gradual_cf.core import block_groups
from gradual_cf.data.tables import tabular
from gradual_cf.search.proven import ways
from gradual_cf.use.letter import check_letter

EVIL = '<img src=x onerror=alert(1)>'


def make_people(n=300):
    "Rows with a number, a whole number with holes, an order, a date, a category and a column of an evil name."
    rng = np.random.default_rng(0)
    late = rng.integers(0, 9, n).astype(float)
    late[::9] = np.nan
    school = pd.Categorical(rng.choice(['none', 'school', 'college'], n), ['none', 'school', 'college'], ordered=True)
    since = pd.Timestamp('2012-01-01') + pd.to_timedelta(rng.integers(0, 3000, n), unit='D')
    df = pd.DataFrame(dict(income=rng.integers(12, 90, n)*100, late=late, school=school, since=since,
                           housing=rng.choice(['own', 'rent', EVIL], n)))
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


@pytest.fixture
def box(fitted):
    "A panel at the first row that is refused."
    people, _, _ = fitted
    cf = GradualCF(written.read('people'), tabular(people), 'sparse', classes=('refused', EVIL)).fit(people)
    box = explorer(cf, people, units=dict(income='€'), k=1)
    box.panel.w.refused.click()
    assert box.wait()
    yield box
    box.close()


def line_of(box, name): return next(line for line in box.panel.knobs.lines if line.c.name == name)


def features(box): return set(box.panel.shown[1].changes().feature)


def page(box): return ' '.join(getattr(box.panel.w, name).value for name in ('about', 'status', 'quality', 'picture', 'said', 'tray', 'plan', 'others', 'nowhere'))


def test_a_locked_column_stays(box):
    changed = features(box)
    for name in changed: line_of(box, name).lock.value = True
    assert box.wait() and box.panel.asked.locked and not changed & features(box)
    assert line_of(box, min(changed)).lock.icon == 'lock'
    box.panel.w.release.click()
    assert box.wait() and features(box) == changed
    assert '✗ refused' in box.panel.w.quality.value and '✓ ' in box.panel.w.quality.value


def test_ranges_are_obeyed(box):
    for line in box.panel.knobs.lines: line.lock.value = line.c.name != 'income'
    assert box.wait() and features(box) == {'income'}
    free, now = (int(df.income.iloc[0]) for df in (box.panel.shown[1].raw, box.panel.shown[1].data))
    line_of(box, 'income').limit.slider.value = (1200, (now + free)//2)
    assert box.wait() and box.panel.asked.bounds == (('income', (1200, (now + free)//2)),)
    assert box.panel.shown[1].raw.income.iloc[0] <= (now + free)//2 < free and not box.panel.shown[1].valid[0]
    assert 'No allowed change found' in box.panel.w.status.value
    assert '✗ no allowed change found' in box.panel.w.quality.value and 'cfx-failed' in box.panel.right._dom_classes
    box.panel.w.release.click()
    assert box.wait() and 'cfx-failed' not in box.panel.right._dom_classes


@pytest.mark.parametrize('name, ends, cells', [('school', (0., 1.), ('none', 'school')), ('since', None, None)])
def test_ranges_of_named_stops(box, name, ends, cells):
    line = line_of(box, name)
    options = [v for _, v in line.limit.slider.options]
    line.limit.least.value, line.limit.most.value = ends or (options[0], options[len(options)//2])
    low, high = dict(box.panel.knobs.rules()['bounds'])[name]
    assert (low, high) == cells if cells else low < high and isinstance(high, pd.Timestamp)
    assert box.wait()
    after = box.panel.shown[1].raw[name].iloc[0]
    assert name not in features(box) or low <= after <= high


def test_levels_are_obeyed_and_none_is_a_lock(box):
    line = line_of(box, 'housing')
    for other in box.panel.knobs.lines: other.lock.value = other is not line
    assert box.wait() and box.panel.shown[1].raw.housing.iloc[0] == 'own'
    line.limit.boxes[line.c.offered.index('own')].value = False
    assert box.wait() and box.panel.shown[1].raw.housing.iloc[0] != 'own'
    for one in line.limit.boxes: one.value = False
    assert 'housing' in box.panel.knobs.rules()['locked'] and not box.panel.knobs.rules()['levels']


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
        answers = [next(part for name, part in _parts(desk, _Question(i, 1, 'sparse', ('income',), levels=levels)) if name == 'answer') for i in rows]
        assert any(cfs.raw.housing.iloc[0] == 'own' for _, cfs in answers) is (not levels)


def test_by_hand_the_model_is_asked_and_nothing_is_searched(box, fitted):
    people, _, cf = fitted
    row, shown = box.panel.row, box.panel.shown
    line_of(box, 'income').hand.widget.value = 8700
    line_of(box, 'housing').hand.widget.value = 'own'
    assert box.wait() and box.panel.shown[1] is shown[1]
    changed = people.iloc[[row]].assign(income=8700, housing='own')
    p = predict(cf.model, cf.encode(changed).x).softmax(1)[0, 1].item()
    assert f'<b>{p:.0%}</b>' in box.panel.w.said.value
    box.panel.w.next.click()
    assert box.wait() and box.panel.w.said.value == '<div class="cfx"></div>'


def test_by_hand_the_rules_speak(fitted):
    people, _, cf = fitted
    strict = GradualCF(cf.model, tabular(people, immutable=['housing'], increase_only=['income']), 'sparse').fit(people)
    box = explorer(strict, people, k=1)
    line_of(box, 'income').hand.widget.value = 1200
    assert line_of(box, 'housing').lock.disabled and box.wait()
    assert 'do not allow this for income' in box.panel.w.said.value


def test_a_missing_cell_can_be_set_by_hand(fitted):
    people, _, cf = fitted
    box = explorer(cf, people, k=1)                   # `late` of the first row is missing
    line = line_of(box, 'late')
    assert 'missing' in line.now.value and box.panel.knobs.rules()['hand'] == ()
    line.hand.widget.value = 5
    assert box.panel.knobs.rules()['hand'] == (('late', 5.),) and box.wait()
    assert 'By hand' in box.panel.w.said.value


def test_what_an_answer_changes_is_marked_and_comes_first(box):
    knobs = box.panel.knobs
    marked = lambda: [line.c.name for line in knobs.lines if 'cfx-moved' in line.box._dom_classes]
    changed = box.panel.shown[1].changes().feature.tolist()
    assert marked() == changed != []
    assert [line.c.name for line in knobs.order][:len(changed)] == changed
    order = list(knobs.body.children)
    next(line for line in knobs.lines if line.c.name == changed[0]).lock.value = True
    assert box.wait()
    assert changed[0] not in marked()
    assert list(knobs.body.children) == order  # nothing jumps away from under a hand


def test_a_row_stands_among_the_training_rows(fitted, box):
    people, _, cf = fitted
    line = box.panel.knobs.lines[0]
    shown = re.search('base64,([^)]*)', line.now.value)[1]
    counts = np.histogram(people.income, 24, (line.c.low, line.c.high))[0]
    svg = base64.b64decode(shown).decode()
    heights = [float(h) for h in re.findall('height="([0-9.]+)"', svg)]
    np.testing.assert_allclose(heights, 20*counts/counts.max(), atol=.006)
    income = people.income.iloc[box.panel.row]
    assert f'M{100*(income - line.c.low)/(line.c.high - line.c.low):.2f} 0V20' in svg
    assert svg.count('<path') == 1 + ('cfx-moved' in line.box._dom_classes)


def test_what_comes_from_data_is_escaped(box):
    for line in box.panel.knobs.lines: line.lock.value = line.c.name not in (EVIL, 'housing')
    line_of(box, EVIL).hand.widget.value = .5
    box.panel.w.keep.click()
    assert box.wait() and EVIL not in page(box) and '&lt;img' in page(box)
    assert all('<img' not in line.now.value for line in box.panel.knobs.lines)


def test_presets_answer_as_explainers_of_their_own(fitted):
    people, _, cf = fitted
    assert list(_presets(cf)) == ['sparse', 'robust', 'plausible', 'paper']
    desk, rows = _Desk(cf, people), people.iloc[[5]]
    for name, settings in dict(sparse=SPARSE, plausible=PLAUSIBLE).items():
        own = GradualCF(cf.model, cf.domain, settings).fit(people).explain(rows, 1)
        assert dict(_parts(desk, _Question(5, 1, name)))['answer'][1].xp.equal(own.xp)
    kept = desk.explainer(_Question(0, 1, 'paper')).settings
    assert kept.legal and kept.sigma == PAPER.sigma and kept.tau == cf.settings.tau
    assert cf.settings == SPARSE and cf.company is None


def test_presets_keep_the_bar_of_the_explainer(fitted):
    people, _, cf = fitted
    high = GradualCF(cf.model, cf.domain, 'sparse', tau=.8, max_changes=2, sigma=3).fit(people)
    desk = _Desk(high, people)
    assert list(desk.presets) == ['as fitted', 'sparse', 'robust', 'plausible', 'paper']
    for name in desk.presets:
        h = desk.explainer(_Question(0, 1, name)).settings
        assert (h.tau, h.max_changes) == (.8, 2)
    assert explorer(high, people).panel.w.preset.value == 'as fitted'


def test_rows_are_found(box):
    w, panel = box.panel.w, box.panel
    w.find.value = 'p17'
    assert panel.row == 17
    w.previous.click()
    assert panel.row == 16 and w.find.value == 'p16'
    w.find.value = 'nobody'
    assert panel.row == 16 and 'There is no row' in w.status.value and box.wait()


def test_next_refused_goes_round(fitted):
    people, _, cf = fitted
    z = predict(cf.model, cf.encode(people).x).argmax(1)
    last = int((z == 0).nonzero()[-1])
    box = explorer(cf, people, k=1)
    box.panel.go(last)
    box.panel.w.refused.click()
    assert box.wait() and box.panel.row == int((z == 0).nonzero()[0])
    good = explorer(cf, people[(z == 1).numpy()])
    good.panel.w.refused.click()
    assert good.wait() and 'every row' in good.panel.w.status.value


def test_the_tray_is_a_frame_and_a_file(fitted):
    people, _, cf = fitted
    box = explorer(cf, people)
    box.panel.w.refused.click()
    assert box.wait() and box.kept.empty and 'answer 2' in box.panel.w.others.value
    box.panel.w.keep.click()
    first = box.panel.shown[1]
    box.panel.w.number.value = 2
    assert box.wait() and box.panel.shown[1].xp.ne(first.xp).any()
    box.panel.w.keep.click()
    kept = box.kept
    assert kept[first.raw.columns].iloc[[0]].equals(first.raw) and kept.cf_row.tolist() == [first.raw.index[0]]*2
    data = box.panel.w.tray.value.split('base64,')[1].split('"')[0]
    read = pd.read_csv(io.BytesIO(base64.b64decode(data)))
    assert read.income.tolist() == kept.income.tolist() and read.cf_preset.tolist() == ['sparse']*2


def test_numbers_have_the_decimals_and_units_of_their_column():
    df = pd.DataFrame(dict(share=[.1, .25, 2.], whole=[1, 20, 3000], free=[.1234567, 3.3, 9.]))
    share, whole, free = tabular(df).features
    assert _unit_text(whole, 1234, _Terms(dict(whole='€'))) == '€1,234' and _unit_text(share, 2.) == '2.00'
    assert _unit_text(free, 3.3) == '3.30000' or float(_unit_text(free, 3.3)) == 3.3


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
    cf = GradualCF(nn.Linear(2, 2), tabular(coded), 'sparse').fit(coded)
    told = dict(names=dict(late='payments <late>'), codes={-7: 'never <late>'})
    box, plain = (explorer(cf, coded.iloc[:1], k=1, **more) for more in (told, {}))
    assert line_of(box, 'late').lock.description == 'payments <late>' and 'never &lt;late&gt;' in line_of(box, 'late').now.value
    assert 'code -7' in line_of(plain, 'late').now.value
    box.panel.knobs.filter.value = 'PAYMENTS'
    assert box.panel.knobs.body.children == (line_of(box, 'late').box,)
    assert box.wait() and plain.wait()


def test_what_may_not_change_is_locked_to_the_eye(fitted):
    people, _, cf = fitted
    strict = GradualCF(cf.model, tabular(people, immutable=['housing', 'income']), 'sparse').fit(people)
    box = explorer(strict, people, k=1)
    for name in ('housing', 'income'):
        line = line_of(box, name)
        assert line.lock.icon == 'lock' and line.lock.disabled and not line.hand.widget.disabled
    assert line_of(box, 'income').limit.slider.disabled and all(b.disabled for b in line_of(box, 'housing').limit.boxes)
    assert line_of(box, 'school').lock.icon == 'unlock' and not line_of(box, 'school').limit.slider.disabled
    box.panel.w.release.click()
    assert box.wait() and line_of(box, 'income').lock.icon == 'lock'


def test_a_letter_of_the_answer(fitted):
    people, _, cf = fitted
    box = explorer(cf, people, units=dict(income='€', housing='flats'), names=dict(income='your income'))
    assert box.wait()
    box.panel.w.letter_button.click()
    assert box.wait()
    page = base64.b64decode(re.search('base64,([^"]*)', box.panel.w.letter.value)[1]).decode()
    assert check_letter(page, cf, names=dict(income='your income'), units=dict(income='€')).flips.all()
    assert EVIL not in box.panel.w.letter.value and 'answer 1' in box.panel.w.others.value
    box.panel.w.next.click()
    assert box.wait() and box.panel.w.letter.value == ''
    box.panel.go(int(np.flatnonzero(cf.z_train.argmax(1).numpy() == 1)[0]))
    assert box.wait()
    box.panel.w.letter_button.click()
    assert box.wait() and 'No letter: ' in box.panel.w.letter.value and 'refused' in box.panel.w.letter.value


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
    worker = _Worker(work, shown.append)
    worker.put('slow')
    assert began.wait(20)
    worker.put('quick')
    assert worker.wait(20) and shown == [('began', 'slow'), ('began', 'quick'), ('ended', 'quick')]
    assert worker.thread is None


def test_a_hundred_questions_leave_nothing_behind(fitted):
    people, _, cf = fitted
    cf.model.train()
    torch.manual_seed(7)
    state, threads, alive = torch.get_rng_state(), torch.get_num_threads(), threading.active_count()
    box = explorer(cf, people, k=1)
    for value in range(100): line_of(box, 'income').limit.slider.value = (1200, 8900 - 10*value)
    assert box.wait() and box.panel.shown[0].bounds == (('income', (1200, 7910)),)
    assert threading.active_count() == alive and torch.get_num_threads() == threads
    assert torch.get_rng_state().equal(state) and cf.model.training and all(m.training for m in cf.model.modules())
    cf.model.eval()


def test_the_same_question_has_the_same_answer(fitted):
    people, _, cf = fitted
    q = _Question(5, 1, 'sparse', bounds=(('income', (1200, 8000)),))
    a, b = (dict(_parts(_Desk(cf, people), q)) for _ in range(2))
    assert a['answer'][1].xp.equal(b['answer'][1].xp) and a['others'].answers.xp.equal(b['others'].answers.xp)


def known(cf, people, pick=np.nanargmin, **told):
    "The refused row that is farthest from the target, or nearest, its other answers, and what is said of ways."
    lead = (cf.z_train[:, 1] - cf.z_train[:, 0]).numpy()
    row = int(pick(np.where(people.late.notna() & (lead < 0), lead, np.nan)))
    own = next(name for name, settings in _presets(cf).items() if settings is None)
    parts = dict(_parts(_Desk(cf, people), _Question(row, 1, own, **told)))
    return people.iloc[[row]], parts['others'], parts['nowhere']


def test_other_answers_are_the_ways_that_are_proven(fitted):
    people, _, cf = fitted
    row, several, said = known(cf, people, np.nanargmax, locked=('school',))
    menu = ways(cf, row, 1, immutable=['school'])
    assert said == f'Proven not to work: {(menu.proof == "none exists").sum()} of 15 sets of one or two columns.'
    sets = [frozenset(f) for f in several.df().features]
    led = [frozenset(c) for c in menu[menu.proof != 'none exists']['columns']]
    assert 1 < len(sets) <= 5 and all(not a <= b for a in sets for b in sets if a is not b) and several.answers.valid.all()
    assert {*sets[1:]} <= {*led} and all(len(a) <= len(b) for a, b in zip(sets[1:], sets[2:]))
    assert len(sets) == 5 or all(any(few <= way for few in sets) for way in led)
    assert several.answers.xp[:1].equal(cf.explain(row, 1, immutable=['school']).xp)


def test_no_other_answer_is_longer_than_the_question_allows(fitted):
    people, _, cf = fitted
    short = GradualCF(cf.model, cf.domain, 'sparse', max_changes=1).fit(people)
    _, several, said = known(short, people)
    assert 'of 6 single columns.' in said and several.answers.changed.sum(1).max() == 1


@pytest.mark.parametrize('told', [dict(model=lambda x: torch.stack([x.sum(1)*0, x.sum(1) - 3], 1)), dict(density=.4), dict(cost={'income': 2.})])
def test_other_answers_are_searched_where_nothing_is_proven(fitted, told):
    people, _, cf = fitted
    domain = tabular(people, cost=told['cost']) if 'cost' in told else cf.domain
    plain = GradualCF(told.get('model', cf.model), domain, PLAUSIBLE if 'density' in told else SPARSE).fit(people)
    row, several, said = known(plain, people)
    assert said == '' and several.answers.xp.equal(plain.explain_many(row, 1).answers.xp)


def test_answers_are_searched_where_some_ways_are_not_decided(fitted, monkeypatch):
    import gradual_cf.use.editors as editors
    people, _, cf = fitted
    monkeypatch.setattr(editors, '_SECONDS', 1e-9)
    row, several, said = known(cf, people)
    assert 'Undecided when time ran out: ' in said and several.answers.xp.equal(cf.explain_many(row, 1).answers.xp)


def test_longer_answers_are_searched_where_no_way_is_short(fitted):
    people, _, cf = fitted
    steep = nn.Sequential(nn.Linear(8, 2))
    nn.init.constant_(steep[0].weight[0], 0.), nn.init.constant_(steep[0].weight[1], 1.)
    steep[0].bias.data = torch.tensor([4., 0.])  # all entries together have to be more
    _, several, said = known(GradualCF(steep, cf.domain, 'sparse').fit(people), people)
    assert said == 'Proven not to work: 21 of 21 sets of one or two columns.' and several.answers.changed.sum(1).min() > 2


def test_the_panel_shows_ways_and_what_leads_nowhere(fitted):
    people, granted, cf = fitted
    box = explorer(cf, people, k=3)
    box.panel.w.refused.click()
    assert box.wait() and 'Proven not to work: ' in box.panel.w.nowhere.value and 'answer 2' in box.panel.w.others.value
    box.panel.w.number.value = 2
    others = dict(_parts(box.panel.desk, box.panel.asked))['others']
    assert box.wait() and box.panel.shown[1].xp.equal(others.answers[1].xp)
    box.panel.go(int(np.flatnonzero(cf.z_train.argmax(1).numpy() == 1)[0]))
    assert box.wait() and 'No other answer' in box.panel.w.others.value and 'ways' not in box.panel.w.nowhere.value
    box.close()


def test_an_error_is_a_sentence_and_the_panel_goes_on(box, monkeypatch):
    import gradual_cf.use.editors as asking
    with monkeypatch.context() as m:
        m.setattr(asking, '_answer', lambda *args: 1/0)
        box.panel.w.next.click()
        assert box.wait() and 'ZeroDivisionError' in box.panel.w.status.value
    box.panel.w.next.click()
    assert box.wait() and 'Error' not in box.panel.w.status.value


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
    box = explorer(priced, people, k=1)
    assert box.wait() and list(box.panel.desk.presets) == ['sparse', 'robust', 'plausible']
    box.panel.w.target.value = '900..'
    assert box.wait() and box.panel.asked.target == (900., None) and box.panel.shown[1].valid[0]
    box.panel.w.target.value = 'much'
    assert 'LOW..HIGH' in box.panel.w.status.value
    assert _checked_target(priced, _Desk(priced, people).logits(0), (None, 5)) == (None, 5.)


def test_words():
    task = load_task('toy_reviews')
    cf = GradualCF(task.model, task.domain, 'sparse', classes=task.classes).fit(task.X.iloc[:200])
    box = explorer(cf, pd.DataFrame(dict(text=['The plot is awful. I found the cast awful. What a <b>plot</b>!'])))
    assert box.wait() and {'awful'} <= set(box.panel.shown[1].changes().before)
    locks = box.panel.knobs.locks
    next(lock for lock in locks if lock.description == 'awful').value = True
    assert [lock.value for lock in locks if lock.description == 'awful'] == [True, True] and box.wait()
    assert box.panel.asked.locked == ('awful',) and 'awful' not in set(box.panel.shown[1].changes().before)
    assert '<b>plot' not in page(box) and 'LOW' not in page(box)
    box.panel.knobs.hand.value = 'The plot is wonderful.'
    assert box.wait() and 'That is enough' in box.panel.w.said.value
    box.panel.w.keep.click()
    assert box.kept.text.tolist() == box.panel.shown[1].raw


def test_regions():
    task = load_task('digits')
    cf = GradualCF(task.model, task.domain, 'sparse', sigma=2).fit(task.X[:200])
    box = explorer(cf, task.X_test[:3], target=9, k=1)
    assert box.wait()
    changed = features(box)
    lock = box.panel.knobs.locks[box.panel.knobs.names.index(min(changed))]
    lock.value = True
    assert box.wait() and min(changed) not in features(box) and len(box.panel.shown[0].locked) == 1
    assert page(box).count('data:image/png') == 3 and 'alt=' in page(box)


def test_small_blocks_share_a_toggle():
    region, wide = _regions(block_groups((1, 28, 28), 1)[0].numpy())
    assert wide == 7 and len(region) == 784 and region.max() == 48 and np.bincount(region).tolist() == [16]*49


def test_other_kinds_have_a_panel_without_knobs():
    p = toy.columns()
    box = explorer(GradualCF(p.model, p.domain, 'sparse').fit(p.x), p.x[:5])
    assert box.wait() and type(box.panel.knobs).__name__ == '_Knobs' and 'group' in box.panel.w.picture.value
    assert list(box.panel.desk.presets) == ['as fitted']


def test_a_panel_without_front_end_code(box):
    kinds = {type(w).__module__.split('.')[0] for w in walk(box)}
    assert kinds <= {'ipywidgets', 'gradual_cf'} and len(walk(box)) < 100
    assert all(getattr(w, 'tooltip', None) or getattr(w, 'description', None) or type(w).__name__ in ('HTML', 'HBox', 'VBox', 'Explorer')
               for w in walk(box))


def walk(w): return [w, *(v for child in getattr(w, 'children', ()) for v in walk(child))]


LEAVES = '''
from threading import Event
from gradual_cf.use.editors import _Worker
from gradual_cf.models.asking import predict
import torch
net, began = torch.nn.Linear(2, 2), Event()
def work(q):
    while True:
        predict(net, torch.zeros(1, 2))
        began.set()
        yield q
_Worker(work, lambda part: None).put(1)
began.wait()
'''


def test_a_program_may_end_while_a_panel_searches():
    done = subprocess.run([sys.executable, '-c', LEAVES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
