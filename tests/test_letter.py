"""Letters: what they say is true, what they hold comes back, and nothing gets out of its cell."""
import datetime
import itertools
import json
import re
import shutil
import subprocess
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cover import few
from made import linear, needs_pdf
import torch
from refused import housed
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gradual_cf.all import PLAUSIBLE, Counterfactuals, GradualCF, check_evidence, confirm, letter, load_loans, reachable, tabular
from gradual_cf.render import LANGUAGES, plain_json, sided_percent, value_text
from gradual_cf.models.fingerprints import fingerprints_of
from gradual_cf.templates.evidence.check_evidence import carried, seal
from gradual_cf.use.drawing import _ColumnNames
from gradual_cf.use.editors import _Desk, _RowQuestion, _shown_of
from gradual_cf.use.enough import _card_lines, _put_back
from gradual_cf.use.explorer import _order_pane

DAY = datetime.date(2026, 3, 1)
ROOT = Path(__file__).resolve().parent.parent
FORMATS = 'md', 'html', 'json'
EVIL = ['<script>alert(1)</script>', 'a|b', '"quoted" & \'so\'', 'two\nlines', '[x](http://x)', '**b** _i_ `c`', '# 1. - x', 'Zoë 日本 \u202e\u200b',
        '{{ 7*7 }}{% x %}', '| 1 | a | b | c |', '<tr data-line="1"><td>', '\\', '\\|', 'a\\', ' ', 'a  b', 'a b', '1', '1,000', '1000', '&lt;', 'missing',
        'None', 'model=aa data=bb settings=cc target=0 tau=0.5', '</table>', '~~x~~ $y$ ^z^']


def refused(cf, df, target=1): return df[(cf.logits(df, cf.encode(df).x).argmax(1) != target).numpy()]


@pytest.fixture(scope='module')
def evil():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'<b>income</b>': rng.gamma(6, 400, 80).round(2), 'late | payments': rng.poisson(2, 80),
                       'home': rng.choice(['own', '<i>rent</i>', 'with\nparents'], 80), 'age': rng.integers(19, 80, 80)})
    cf = linear(tabular(df, immutable=['age'], increase_only=['<b>income</b>']), df, [3, -2, .2, 0, .1, 1])
    return cf, df, cf.explain(refused(cf, df), 1)


FLOATS = st.floats(-1e9, 1e9).map(lambda v: round(v, 2)) | st.sampled_from([0., -0., 999.99, 1000., -1234.5, 9999., 10_000.01, 1e15, np.nan])


def column(draw, kind, n):
    "Cells of one kind, some of them missing where the kind knows that."
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    if kind == 'float': return pd.Series(draw(st.lists(FLOATS, min_size=n, max_size=n)))
    if kind in ('float64', 'float32', 'Float64'):
        scale, places = draw(st.sampled_from([1e-9, 1., 1e3, 1e12])), draw(st.integers(0, 9))
        v = pd.Series((rng.normal(size=n)*scale).round(places)).astype(kind)
        return v.mask(pd.Series(rng.random(n) < .1)) if draw(st.booleans()) else v
    if kind in ('int8', 'int64', 'Int64', 'uint16'):
        v = pd.Series(rng.integers(0, 100, n)*(10**6 if kind == 'int64' else 1)).astype(kind)
        return v.mask(pd.Series(rng.random(n) < .1)) if kind == 'Int64' else v
    if kind == 'bool': return pd.Series(rng.random(n) < .5)
    if kind == 'boolean': return pd.Series(rng.random(n) < .5).astype('boolean').mask(pd.Series(rng.random(n) < .2))
    if kind == 'date': return pd.Series([datetime.date(2000, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 9999, n)], dtype=object)
    if kind == 'time': return pd.Series(pd.Timestamp('2020-01-01') + pd.to_timedelta(rng.integers(0, 10**8, n), 's'))
    if kind == 'zone': return pd.Series(pd.Timestamp('2020-01-01', tz='UTC') + pd.to_timedelta(rng.integers(0, 10**8, n), 's')).dt.tz_convert('Europe/Berlin')
    if kind == 'Decimal': return pd.Series([Decimal(int(v)).scaleb(-2) for v in rng.integers(0, 10**7, n)], dtype=object)
    if kind == 'numeral': return pd.Series([f'{v:.2f}' for v in rng.random(n)*1e5], dtype=object)
    levels = draw(st.lists(st.sampled_from(EVIL) | st.text(max_size=8), min_size=2, max_size=5, unique=True))
    cells = pd.Series([levels[i] for i in rng.integers(0, len(levels), n)], dtype=object)
    if kind == 'ordered': return cells.astype(pd.CategoricalDtype(levels, ordered=True))
    if kind == 'category': return cells.astype(pd.CategoricalDtype(levels)).mask(pd.Series(rng.random(n) < .1))
    return cells.where(pd.Series(rng.random(n) > .1), None)


KINDS = ['float', 'float64', 'float32', 'Float64', 'int8', 'int64', 'Int64', 'uint16', 'bool', 'boolean', 'date', 'time', 'zone', 'Decimal', 'numeral', 'ordered',
         'category', 'text']


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(EVIL) | st.text(min_size=1, max_size=8), min_size=2, max_size=4, unique=True))
    df = pd.DataFrame({i: column(draw, draw(st.sampled_from(KINDS)), 24) for i in range(len(names))})
    return df.set_axis(pd.Index(names, dtype=object), axis=1)


QUICK = dict(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def numeral(v): return bool(re.fullmatch(r'-?\d+\.\d+', str(v)))


@settings(max_examples=18, **QUICK)
@given(tables(), st.sampled_from(FORMATS), st.sampled_from(LANGUAGES if find_spec('babel') else ['en']))
def test_letters_of_any_table_prove_themselves(df, form, language):
    domain = tabular(df, categorical=[c for c in df if df[c].map(lambda v: isinstance(v, str)).any() and not df[c].dropna().map(numeral).all()])
    cf = linear(domain, df)
    rows = refused(cf, df)
    if len(rows) in (0, len(df)): return  # columns of one value
    answer = cf.explain(rows.iloc[:4], 1)
    check = check_evidence(letter(answer, format=form, date=DAY, language=language, house=dict(strict=None)), cf, answer.data)
    assert check.row.all() and check.model.all() and (check.flips == answer.valid).all()
    assert check.legal.all()


def resealed(text, **told):
    "A letter whose record says something else."
    sealed = carried(text)[1]
    new = plain_json((new := json.loads(sealed) | told) | dict(sha256=seal(new)))
    return text.replace(sealed, new) if text[0] != '{' else json.dumps(json.loads(text) | dict(sealed=new))


@pytest.mark.parametrize('form', FORMATS)
def test_a_changed_record_does_not_pass(evil, form):
    cf, df, answer = evil
    text, row = letter(answer[:1], format=form, date=DAY)[0], df.loc[answer.data.index[:1]]
    told = json.loads(carried(text)[1])
    a, digests = told['answer'], told['fingerprints'] | dict(model='0'*12)
    same, own = a | dict(answer=a['data']), a | dict(data=[1., *a['data'][1:]])
    for forged in (same, own):
        with pytest.raises(ValueError, match='text must'): check_evidence(resealed(text, answer=forged), cf)
    other = lambda forged: check_evidence(resealed(text, answer=forged, fingerprints=digests), cf, row)  # of a model that is not at hand
    assert not other(same)[['flips', 'model']].to_numpy().any() and not other(own).row.any()
    assert check_evidence(text, cf, row)[['flips', 'row', 'model']].to_numpy().all()


@pytest.mark.parametrize('form, forge', [
    ('html', lambda t: re.sub(r'(class="changed">\D*)[\d,.]+', r'\g<1>1.00', t, count=1)), ('html', lambda t: t.replace('<script', '<script id="x"></script><script', 1)),
    ('html', lambda t: t.replace('</style>', 'td{font-size:0}</style>')), ('html', lambda t: t.replace('<p>', '<p>You owe us 500 €. ', 1)),
    ('html', lambda t: t.replace('<p>', '<template>x</template><p>', 1)), ('html', lambda t: resealed(t, made_at='2 March 2026')),
    ('html', lambda t: t.replace('50% was needed', '40% was needed')), ('html', lambda t: t.replace('on record', 'on rec\u200bord', 1)),
    ('html', lambda t: t + '<!-- record ' + carried(t)[1] + ' -->'), ('html', lambda t: re.sub('([0-9a-f]{4}-){3}', '0000-0000-0000-', t)),
    ('md', lambda t: t.replace('too low', 'too high')), ('md', lambda t: t.replace('late \\| payments', 'age')),
    ('md', lambda t: t.replace('would have been enough', 'would be enough')), ('md', lambda t: t.replace('<!-- record', '<!-- record {} -->\n<!-- record')),
    ('json', lambda t: t.replace('{', '{"found": false,', 1)), ('json', lambda t: t.replace('"decision": "', '"decision": "not '))])
def test_what_a_person_sees_is_what_the_record_gives(evil, form, forge):
    cf, df, answer = evil
    texts = letter(answer[:3], format=form, date=DAY)
    forged = [forge(text) for text in texts]
    assert forged != texts
    for a, b in zip(texts, forged):
        if a == b: continue
        with pytest.raises(ValueError, match='text must') as e: check_evidence(b, cf)
        assert len(str(e.value)) < 1000
    one = letter(answer[:1], format=form, date=DAY, house=dict(names=(names := {'home': 'Housing'}), strict=None))
    assert check_evidence(one, cf, date=DAY, house=dict(names=names)).flips.all()
    with pytest.raises(ValueError, match='of 2 March 2026'): check_evidence(one, cf, date=datetime.date(2026, 3, 2), house=dict(names=names))


SLOTS = dict(sender='Bank\n1 Street', addressee=['Ms. <A>', 'Mr. | B'], product='A *loan*', contact='Ms. C, 000\nc@example.invalid')


@pytest.mark.parametrize('form', ['md', 'html', 'txt', 'json', 'pdf'])
@pytest.mark.parametrize('rules', ['us-reg-b', 'eu'])
def test_slots_are_filled_left_out_and_read_back(evil, tmp_path, form, rules):
    cf, df, answer = evil
    if form == 'pdf': needs_pdf()
    (tmp_path/'notice.txt').write_text('Notice: the <lender\'s> own words,\nline by line.\n\n| and a second part', encoding='utf-8')
    slots = SLOTS | dict(notices={rules: tmp_path/'notice.txt'})
    rows = df.loc[answer.data.index[:2]]
    write = lambda **more: letter(answer[:2], **housed(format=form, date=DAY, **slots | more))
    texts, records = write(), letter(answer[:2], **housed(format='json', date=DAY, **slots)) if form == 'txt' else None
    assert texts == write()
    assert check_evidence(texts, cf, rows, **housed(records=records, **slots))[['flips', 'legal', 'row', 'model']].to_numpy().all()
    for name in SLOTS:
        with pytest.raises(ValueError, match=f'{name} must be given'): write(**{name: None})
        out = slots | {name: False}
        left = letter(answer[:2], **housed(format=form, date=DAY, **out))
        if form != 'json': assert left != texts
        beside = letter(answer[:2], **housed(format='json', date=DAY, **out)) if form == 'txt' else None
        with pytest.raises(ValueError, match='text must be the letter'): check_evidence(left, cf, **housed(records=beside, **slots))
    if form == 'html': assert ('size: letter' in texts[0]) == (rules == 'us-reg-b') and 'Notice: the &lt;lender&#39;s&gt; own words,<br>line by line.' in texts[0]
    if form in ('md', 'html', 'txt'): assert 'have a person review the decision' in texts[0] and 'have a person review' not in write(contact='')[0]


def test_notices_without_their_words_are_missed(evil):
    cf, _, answer = evil
    with pytest.warns(UserWarning, match="notices must come with the lender's own words"): letter(answer[:2], **housed(notices='us-reg-b', **SLOTS))
    assert letter(answer[:2], **housed(notices={'us-reg-b': False}, strict=None, **SLOTS))


def test_a_forged_pdf_is_found(evil):
    cf, _, answer = evil
    needs_pdf()
    own, other = (letter(answer[i:i + 1], format='pdf', date=DAY)[0] for i in (0, 1))
    assert carried(own)[0] == 'pdf' and check_evidence([own, other], cf).flips.all()
    for text in (own.replace(b'endobj', b'endobk', 1), own + b'%', own[:len(own)//2], b'%PDF', b'PK', b''):
        with pytest.raises(ValueError, match='text must'): check_evidence(text, cf)


@pytest.mark.parametrize('error, said', [(ImportError('no'), re.escape('gradual_cf[letters]')), (OSError("cannot load library 'pango-1.0-0'"), 'libpango-1.0-0')])
def test_what_a_pdf_lacks_is_named(monkeypatch, error, said):
    import builtins
    from gradual_cf.use.letter import pdf_of
    real = builtins.__import__
    def without(name, *rest, **more):
        if name == 'weasyprint': raise error
        return real(name, *rest, **more)
    monkeypatch.setattr(builtins, '__import__', without)
    with pytest.raises(ImportError, match=said): pdf_of('<p>', '{}')
    assert 'letters_requirements = ' in (ROOT/'settings.ini').read_text()


EARLIER = '{"model":"aa","data":"bb","settings":"cc","target":"1","tau":"none","cells":[["1","2"]],"told":{}}'


@pytest.mark.parametrize('text', [f'# A letter\n\n<!-- record {EARLIER} -->', json.dumps(dict(sealed=EARLIER)), '{"schema_version": 1, "answer": {}}'])
def test_what_is_of_an_earlier_form_is_told_in_one_line(evil, text):
    with pytest.raises(ValueError, match='one of an earlier form: its words can still be read; write it again') as e: check_evidence(text, evil[0])
    assert '\n' not in str(e.value)


ATTRIBUTES = '<p ' + '=x '.join(map(''.join, itertools.islice(itertools.product('abcdefghijklmnopqrst', repeat=4), 100_000))) + '>'


@pytest.mark.parametrize('piece', [pytest.param(ATTRIBUTES, id='100,000 attributes'), '<script>', '<script>{', '<a', '<a x="', '<!--', '<!-- record {', '&#9', '| 1 | a | b | c |\n', '{"a":', '[', '\\', '<script x=', 'model=a '])
@pytest.mark.timeout(120)  # what looks back at all of it for each piece takes half an hour
def test_work_on_anything_grows_with_its_length(evil, piece):
    cf, _, answer = evil
    own = dict(zip(FORMATS, (letter(answer[:1], format=f)[0] for f in FORMATS)))
    forge = [lambda text: text, lambda text: own['html'] + text, lambda text: own['md'] + text,
             lambda text: own['html'].replace('<td>', '<td>' + text, 1), lambda text: own['md'].replace('"row":"', '"row":"' + text, 1)]
    for at in few(forge[len(piece) % 4:], 2):
        try: assert check_evidence(at((piece*max(1, 400_000//len(piece)))[:400_000]), cf).flips.all() and piece == '&#9'  # which is white space
        except ValueError as e: assert len(str(e)) < 1000


@pytest.mark.night
def test_a_column_may_be_called_as_a_line_is_numbered():
    df = pd.DataFrame(np.random.default_rng(0).random((60, 4)).round(2), columns=['1', '0', '2', '3'])
    cf = linear(tabular(df), df, [1, 2, 3, .5])
    rows = refused(cf, df)[:8]
    for form in FORMATS: assert check_evidence(letter(cf.explain(rows, 1), format=form), cf, rows)[['flips', 'row', 'model']].to_numpy().all()


def test_what_the_question_allowed_stands_in_the_letter(evil):
    cf, df, _ = evil
    rows = refused(cf, df).iloc[:6]
    answer = confirm(cf.explain(rows, 1, k=3, immutable=['home'], bounds={'<b>income</b>': (None, 9000)}), [cf.model])
    for form in FORMATS:
        check = check_evidence(letter(answer, format=form, date=DAY), cf, rows)
        assert check[['flips', 'legal', 'row']].to_numpy().all() and (check.untested == 'confirmed').all() and (check.date == '1 March 2026').all()
        assert list(check.reference) == [str(i) for i in rows.index]


@pytest.mark.night
def test_nothing_gets_out_of_its_cell():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'<img src=x onerror=alert(1)>': rng.random(60).round(2), 'a|b': rng.choice(EVIL[:6], 60), '# **h** [l](http://x)': rng.random(60).round(2)})
    cf = linear(tabular(df, immutable=['a|b']), df)
    cf.classes = '<u>no</u>', '<u>yes</u>'
    answer = cf.explain(refused(cf, df), '<u>yes</u>')
    told = dict(words={'<img src=x onerror=alert(1)>': '<u>{{ before }}</u>'}, why={'a|b': '<u>no</u>'}, date='<u>1</u>')
    from markdown_it import MarkdownIt
    for page, text in zip(letter(answer, **housed(format='html', **told)), letter(answer, **housed(**told))):
        body = page[page.index('<body>'):]
        tags = {t.split()[0].strip('/<>') for t in re.findall(r'</?\w[^>]*>', body.partition('<script type="application/json"')[0])}
        assert not tags & {'img', 'script', 'u'} and 'onerror=alert(1)>' not in body and '&lt;u&gt;no' in body and body.count('<script') == 1
        made = MarkdownIt('gfm-like', dict(html=True, linkify=False)).render(text)
        assert not re.search('<(img|script|u|strong|a)[ >]', made) and made.count('<h1>') == 1
        assert {len(re.findall('<td', row)) for row in re.findall('<tr>(.*?)</tr>', made, re.S)} <= {0, 3}


@pytest.mark.night
def test_templates_of_the_bank(evil):
    cf, _, answer = evil
    own = "{% extends 'letter' %}{% block title %}Hello {{ row }}{% endblock %}{% block closing %}Call us.{% endblock %}"
    for form in ('md', 'html'):
        texts = letter(answer, format=form, date=DAY, house=dict(template=own))
        assert all('Call us.' in t and 'Hello' in t for t in texts) and check_evidence(texts, cf, house=dict(template=own)).flips.all()
        with pytest.raises(ValueError, match='got in letter 0'): check_evidence(texts, cf)
    bare = "{% for l in record %}| {{ l.number }} | {{ l.before }} | {{ l.after }} |\n{% endfor %}<!-- record {{ sealed }} -->"
    assert check_evidence(letter(answer, house=dict(reasons=None, template=bare)), cf, house=dict(template=bare)).flips.all()


def test_who_was_not_refused(evil):
    cf, df, _ = evil
    some = df.iloc[:20]
    granted = sorted(set(some.index) - set(refused(cf, some).index))
    with pytest.raises(ValueError, match=f'{len(granted)} that already have the target') as e: letter(cf.explain(some, 1))
    assert str(granted[:10]) in str(e.value)
    every = cf.explain(some, 1)
    assert len(letter(every[~every.already])) == len(some) - len(granted)


def test_who_has_no_way(evil):
    cf, df, _ = evil
    answer = cf.explain(refused(cf, df).iloc[:4], 1, immutable=['<b>income</b>', 'late | payments'], bounds={})
    assert not answer.valid.all()
    texts = letter(answer, date=DAY, house=dict(reasons=None))
    none = [t for t, ok in zip(texts, answer.valid.tolist()) if not ok]
    assert all('We found none' in t and 'principal reasons' not in t for t in none)
    check = check_evidence(texts, cf)
    assert (check.flips == answer.valid).all() and (check.changes[~check.flips] == 0).all()
    assert all('age: we looked at no other value.' in t and 'home: we did not' not in t for t in none)
    assert letter(answer[~answer.valid], date=DAY, house=dict(reasons=None)) == none  # nobody has a way
    assert letter(answer[:0], date=DAY) == []


def test_changes_that_nobody_needs_are_not_told():
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    df = pd.DataFrame({'a': a.round(2), 'b': (a + rng.normal(size=400)*.3).round(2), 'c': rng.normal(size=400).round(2)})
    domain = tabular(df)
    cf = GradualCF(linear(domain, df, [2, 2, .1]).model, domain, PLAUSIBLE).fit(df)
    answer = cf.explain(refused(cf, df).iloc[:30], 1)
    on, needed, _ = _put_back(cf, answer)
    told = [json.loads(t) for t in letter(answer, format='json', date=DAY)]
    assert (on & ~needed).any()
    fewer = 0
    for i, one in enumerate(told):
        if not one['found']: continue
        names = [c['name'] for c in one['changes']]
        there = answer.data.iloc[[i]].assign(**{c['name']: float(re.search(r'-?[\d.]+', c['enough'])[0]) for c in one['changes']})
        said = lambda rows: cf.logits(rows, cf.encode(rows).x).argmax(1).item()
        assert said(there) == 1 and all(said(there.assign(**{n: answer.data[n].iloc[i]})) == 0 for n in names)
        fewer += len(names) < on[i].sum().item()
    assert fewer


@pytest.mark.night
def test_two_columns_with_the_same_words(evil):
    cf, _, answer = evil
    names = {c: 'the same' for c in ('<b>income</b>', 'late | payments', 'home', 'age')}
    assert check_evidence(letter(answer, date=DAY, house=dict(names=names, strict=None)), cf, house=dict(names=names)).flips.all()


def test_digests_follow_what_they_name(evil):
    cf, df, _ = evil
    own = fingerprints_of(cf)
    assert own == fingerprints_of(linear(cf.domain, df, [3, -2, .2, 0, .1, 1]))
    assert fingerprints_of(linear(cf.domain, df, [3, -1, .2, 0, .1, 1]))['model'] != own['model']
    assert fingerprints_of(GradualCF(cf.model, cf.domain, 'sparse', tau=.7).fit(df))['settings'] != own['settings']
    less = GradualCF(cf.model, cf.domain, 'sparse').fit(df.iloc[1:])
    assert fingerprints_of(less)['data'] != own['data']


def test_answers_from_a_file(evil, tmp_path):
    cf, _, answer = evil
    loaded = Counterfactuals.load(answer.save(tmp_path/'a.zip'), cf.domain)
    with pytest.raises(ValueError, match='letter needs answers that know their model'): letter(loaded)
    assert letter(Counterfactuals.load(tmp_path/'a.zip', cf), date=DAY) == letter(answer, date=DAY)


@pytest.mark.night
def test_what_is_said_of_limits_standing_and_other_ways(evil):
    cf, df, answer = evil
    rows = refused(cf, df).iloc[:6]
    several = confirm(cf.explain(rows, 1, k=3, immutable=['home']), [cf.model])
    one = [json.loads(t) for t in letter(several, format='json', date=DAY, house=dict(why={'home': 'it is yours.'}))]
    for i, told in enumerate(one):
        kept = {k['name']: k['why'] for k in told['kept']}
        assert kept['home'] == 'it is yours.' and kept['age'] == 'we looked at no other value.'
        assert ('<b>income</b>' in kept) == ('<b>income</b>' not in {c['name'] for c in told['changes']})
        assert any('100% of the other models' in l for l in told['sure']['lines'])
        assert len(told['ways']) == sum((several.answer == 1).cumsum() == i + 1) - 1


EVIL_NAME = '<b>late</b> | payments'


@pytest.fixture(scope='module')
def shop():
    "Rows with a missing cell, a special code, a category of two 0/1 columns and an evil name; and an explainer of trees that are read."
    rng, n = np.random.default_rng(5), 300
    df = pd.DataFrame({'income': rng.gamma(6, 400, n).round(1), EVIL_NAME: rng.poisson(2, n).astype(float), 'card': rng.integers(0, 2, n),
                       'home': pd.Categorical(rng.choice(['own', '<i>rent</i>', 'parents'], n)), 'years': rng.integers(0, 20, n)})
    df.insert(3, 'cash', 1 - df.card)
    df.loc[::11, EVIL_NAME] = np.nan
    df.loc[::7, 'years'] = -9
    df = df.set_index(pd.Index([f'r{i}' for i in range(n)]))
    y = df.income/1500 - df[EVIL_NAME].fillna(2)/2 + (df.home == 'own') + df.card/2 + df.years.clip(0)/20 > 1.6
    domain = tabular(df, categorical={'pays': ['card', 'cash']}, increase_only=['income'], read=dict(special=[-9]))
    cf = GradualCF(HistGradientBoostingClassifier(max_iter=8, random_state=0, categorical_features='from_dtype').fit(df, y), domain, 'sparse').fit(df)
    return cf, df


def test_values_of_other_ways_lead_there(shop):
    cf, df = shop
    rows = refused(cf, df)[3:40:3]
    several, seen = cf.explain(rows, 1, k=4), set()
    for (_, row), text in zip(rows.iterrows(), letter(several, format='json', house=dict(ranges=False))):
        for way in json.loads(text)['ways']:
            there = pd.DataFrame([row]).astype(df.dtypes)
            for change in way['changes']:
                name, after = change['name'], change['enough']
                seen.add(name)
                if name == 'pays': there[['card', 'cash']] = [int(after == 'card'), int(after == 'cash')]
                else: there[name] = pd.Series([after if name == 'home' else float(after.replace(',', ''))], there.index).astype(df[name].dtype)
            assert cf.model.predictor.source.predict(there)[0]
    assert {'pays', 'home', 'years', EVIL_NAME} <= seen
    for form in FORMATS:
        text = letter(cf.explain(rows[:1], 1, k=4), format=form, date=DAY)
        assert check_evidence(text, cf, rows[:1])[['flips', 'legal', 'row']].to_numpy().all()
        assert form == 'json' or '<b>late' not in text[0] and '<i>rent' not in text[0]


@pytest.mark.night
def test_a_page_prints_well(tmp_path):
    chromium = shutil.which('chromium') or shutil.which('google-chrome')
    if chromium is None: pytest.skip('need Chromium')
    df = pd.DataFrame(np.random.default_rng(0).random((40, 30)).round(2), columns=[f'column {i}' for i in range(30)])
    cf = linear(tabular(df), df)
    (tmp_path/'a.html').write_text(letter(cf.explain(refused(cf, df).iloc[:1], 1), format='html')[0], encoding='utf-8')
    arguments = ['--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={tmp_path}/profile', '--no-pdf-header-footer']
    subprocess.run([chromium, *arguments, f'--print-to-pdf={tmp_path}/a.pdf', str(tmp_path/'a.html')], capture_output=True, timeout=120, check=True)
    pages = re.findall(rb'/Type\s*/Page\b', (tmp_path/'a.pdf').read_bytes())
    assert len(pages) == 1


def test_templates_travel_with_the_package():
    there = [f for f in (ROOT/'gradual_cf/templates').rglob('*') if f.is_file() and '__pycache__' not in f.parts]
    manifest = (ROOT/'MANIFEST.in').read_text().split()
    assert there and {f'*{f.suffix}' for f in there} <= {*manifest} and '"templates/*", "templates/*/*"' in (ROOT/'setup.py').read_text()
    assert max(len(f.relative_to(ROOT/'gradual_cf/templates').parts) for f in there) == 2


def _corners(letter_, domain, rng):
    "Values that a letter calls enough: ends of its ranges and levels, drawn for each change at once."
    out = {}
    for change in json.loads(letter_)['changes']:
        said, c = change['enough'], next(c for c in domain.features if c.name == change['name'])
        if not c.ordered: out[c.name] = rng.choice(re.split(', | or ', said))
        else:
            ends = [float(v.replace(',', '')) for v in re.findall(r'-?[\d,.]*\d', said)]
            far = [c.high] if said.startswith('at least') else [c.low] if said.startswith('at most') else []
            out[c.name] = rng.choice([*ends, *far])
    return out


@pytest.mark.night
@pytest.mark.parametrize('make', [lambda: RandomForestClassifier(15, max_depth=5, random_state=0),
                                  lambda: make_pipeline(StandardScaler(), LogisticRegression())], ids=['forest', 'logistic'])
def test_what_is_enough_is_enough(make):
    rng = np.random.default_rng(3)
    df = pd.DataFrame({'income': rng.gamma(6, 400, 300).round(1), 'debt': rng.gamma(2, 900, 300).astype(int), 'late': rng.poisson(2, 300),
                       'own': rng.integers(0, 2, 300)})
    model = make().fit(df, df.income/1500 - df.debt/900 - df.late/2 + df.own > 1)
    cf = GradualCF(model, tabular(df, categorical=['own']), 'sparse').fit(df)
    rows = df[~model.predict(df)].head(25)
    answer = cf.explain(rows, 1)
    told = letter(answer, format='json')
    assert sum(c['certified'] for l in told for c in json.loads(l)['changes']) > 15
    for text, (_, row) in zip(told, rows.iterrows()):
        for _ in range(6):
            there = pd.DataFrame([row]).assign(**_corners(text, cf.domain, rng)).astype(float)
            assert model.predict(there[list(df)])[0]
    certified = lambda text: 'certified' in text.partition('<!--')[0]
    assert certified(letter(answer[:1])[0]) and not certified(letter(answer[:1], house=dict(ranges=False))[0])
    asked = GradualCF(lambda x: torch.stack([x.sum(1)*0, x.sum(1) - 1.5], 1), tabular(df), 'sparse').fit(df)
    assert not any(map(certified, letter(asked.explain(refused(asked, df)[:3], 1))))


@pytest.mark.night
@pytest.mark.parametrize('direction, limit, words', [
    ('increase_only', (None, 60), 'we did not look at values below yours or above 60.'),
    ('decrease_only', (40, None), 'we did not look at values above yours or below 40.'), (None, (40, 60), 'we did not look at values below 40 or above 60.'),
    (None, (None, 60), 'we did not look at values above 60.'), ('increase_only', (None, None), 'we did not look at values below yours.')])
def test_a_letter_without_an_answer_tells_a_direction_and_its_limit(direction, limit, words):
    df = pd.DataFrame({'age': np.arange(20, 80), 'debt': np.arange(60)*100})
    cf = GradualCF(lambda x: torch.stack([x.sum(1)*0 + 2, x.sum(1)*0], 1), tabular(df)).fit(df)  # it refuses everybody
    answer = cf.explain(df.iloc[30:31], 1, immutable=['debt'], bounds={'age': limit}, **{direction: ['age']} if direction else {})
    assert not answer.valid.any() and f'* age: {words}' in letter(answer, date=DAY)[0]


@pytest.mark.parametrize('some, many, every', [(5, 17, 9), pytest.param(1, 95, 1, marks=pytest.mark.night)])
def test_nobody_is_told_two_numbers(some, many, every):
    X, y, X_test, _ = load_loans()
    signs = dict(income=-1, debt=1, months_in_job=-1, late_payments=1)
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', monotonic_cst=signs, random_state=0).fit(X, y)
    cf = GradualCF(model, tabular(X, immutable=['age', 'late_payments'], increase_only=['income', 'months_in_job'], decrease_only=['debt'])).fit(X)
    asked = X_test[model.predict(X_test) == 'refused'][::some]
    answers = cf.explain(asked, target='granted', bounds=reachable(asked, '12 months', dict(income='10%', debt=-6000, months_in_job=12)))
    answers, more = answers[answers.valid], 0
    desk, texts = _Desk(cf, answers.data), answers.text().split('\nrow ')
    letters = [json.loads(t) for t in letter(answers, format='json', house=dict(names={c: c for c in X}, strict=None))]
    assert len(answers) == many
    for i, (text, told) in enumerate(zip(texts, letters)):
        said = {c['name']: c['enough'] for c in told['changes']}
        head, *lines = [line for line in text.splitlines() if not line.startswith('    with a margin')]
        assert {line.split()[0]: line.partition(' → ')[2] for line in lines} == said
        there = answers.data.iloc[[i]].copy()
        for c, v in said.items(): there.loc[:, c] = int(re.sub('[^0-9]', '', v)) if v[-1].isdigit() else next(l for l in v.split(' or ') if l == answers.raw[c].iloc[i])
        share = model.predict_proba(there)[0, 0]
        assert model.predict(there)[0] == 'granted' and f' → {share:.2f}' in head
        if i % every: continue
        card, ring = _card_lines(cf, answers[i])
        assert {name.replace(' ', '_'): enough for name, _, enough in card if enough} == said and ring == pytest.approx(share, abs=1e-6)
        q = _RowQuestion(i, 'granted', next(iter(desk.presets)))
        desk.kept['answer', q.asked] = answers[i]  # as if the bounds had been set on the panel
        shown = _shown_of(desk, q)
        sentence, order = shown.sentence(_ColumnNames()), _order_pane(desk, q, shown, _ColumnNames())
        for c, enough in list(said.items())[:3]: assert len(said) > 3 or f'{c}: {value_text(answers.data[c].iloc[i])} → {enough}' in sentence
        assert dict(re.findall(r'(\w+): [^:]+ → <b class="cfx-after">(.+?)</b>', order)) == said and sided_percent(share, .5) in sentence
        own = answers[i].changes()
        margin = {l.feature for l in own.itertuples() if re.sub('^at (least|most) ', '', said.get(l.feature, '')) != value_text(l.after)}
        assert ('With a margin' in sentence) == ('With a margin' in order) == ('with a margin' in text) == bool(margin)
        more += bool(margin)
    assert more
