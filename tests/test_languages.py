"""Seven languages: catalogues are whole, numbers and days come back, letters prove themselves, and nothing stays English."""
import datetime
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT/'docs'))
babel = pytest.importorskip('babel')
import catalogues  # noqa: E402
from babel.numbers import format_decimal  # noqa: E402
from made import linear  # noqa: E402
from refused import housed  # noqa: E402
from test_letter import DAY, FORMATS, refused  # noqa: E402

from gradual_cf.all import GradualCF, check_evidence, explorer, letter, reasons, tabular  # noqa: E402
from gradual_cf.render import LANGUAGES, exact_text, language_of, render, sided_percent, value_text, with_unit  # noqa: E402

OTHERS = [l for l in LANGUAGES if l != 'en']
QUICK = dict(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.night
@pytest.mark.parametrize('language', OTHERS)
def test_catalogues_are_whole(language):
    assert list(catalogues.wrong(language)) == []
    said = ' '.join(form for m in catalogues.catalogue(language) if m.id for form in ([m.string] if isinstance(m.string, str) else m.string))
    assert not set(said) & set('*_[]|#~<>`\\$') and '  ' not in said  # nothing that Markdown or HTML would read


def test_mistakes_in_a_catalogue_are_found(monkeypatch):
    whole = catalogues.said()
    monkeypatch.setattr(catalogues, 'said', lambda: {k: v for k, v in whole.items() if k != 'missing'} | {'a new text {x}': 'a new text {x}'})
    assert list(catalogues.wrong('de')) == ["de: nobody says 'missing'", "de: 'a new text {x}' is missing"]
    monkeypatch.undo()
    one = catalogues.catalogue('pl')
    one.get('class {label}').string = 'klasa {name}'
    one.get('missing').string = ' '
    monkeypatch.setattr(catalogues, 'catalogue', lambda language: one)
    assert list(catalogues.wrong('pl')) == ["pl: 'missing' is not translated", "pl: 'klasa {name}' has other fields than 'class {label}'"]


def test_all_texts_of_templates_are_marked():
    "No words stand bare in the templates of letters, reasons and the panel."
    for path in (f for folder in ('letter', 'reasons', 'drawing', 'explorer') for f in (ROOT/'gradual_cf/templates'/folder).iterdir() if f.suffix not in ('.css', '.js')):
        bare = re.sub(r'{{.*?}}|{%.*?%}|{#.*?#}|<[^>]*>', '', path.read_text(), flags=re.S)
        assert not re.search('[A-Za-z]{2}', bare), (path.name, re.search('[A-Za-z]{2}.*', bare)[0])


def test_marks_are_not_hidden_in_texts_with_fields():
    "Extraction does not look into f-strings."
    for path in (ROOT/'gradual_cf').rglob('*.py'):
        found = re.search(r"""f(['"]).*\{[^}]*(N_|\.say)\(['"]""", path.read_text())
        assert found is None, (path.name, found[0])


@pytest.mark.night
def test_english_needs_no_babel_and_others_name_the_extra():
    code = """import sys
sys.modules['babel'] = None
from gradual_cf.render import language_of, date_text, value_text, with_unit
import datetime
assert (language_of('en').say('missing'), value_text(1234.5), date_text(datetime.date(2026, 3, 1)), with_unit('5', 'EUR')) == ('missing', '1,234.5', '1 March 2026', '5 EUR')
try: language_of('pl')
except ImportError as e: assert "gradual_cf[languages]" in str(e)
else: raise AssertionError"""
    subprocess.run([sys.executable, '-c', code], check=True, cwd=ROOT)
    assert 'languages_requirements = babel' in (ROOT/'settings.ini').read_text()


@pytest.mark.parametrize('language', LANGUAGES)
@settings(max_examples=40, **QUICK)
@given(st.decimals(-10**12, 10**12, places=3, allow_nan=False), st.dates(datetime.date(1700, 1, 1), datetime.date(2262, 1, 1)), st.floats(allow_nan=False))
def test_numbers_and_days_come_back(language, number, day, v):
    lang = language_of(language)
    text = lang.number(f'{number:,}')
    assert Decimal(lang.plain(text).replace(',', '')) == number
    if language not in ('en', 'es', 'pl') or not 1000 <= abs(number) < 10_000: assert text == format_decimal(number, '#,##0.000', language)
    assert float(lang.plain(exact_text(v, 2, lang)).replace(',', '')) == v
    assert lang.date(day) and value_text(day, lang=lang) == lang.day(str(day))


def test_marks_of_each_language():
    numbers = dict(en='-1,234.50', de='-1.234,50', fr='-1\u202f234,50', es='-1234,50', it='-1.234,50', nl='-1.234,50', pl='-1234,50')
    money = dict(en='€12,345', de='12.345 €', fr='12\u202f345 €', es='12.345 €', it='12.345 €', nl='€ 12.345', pl='12 345 €')
    percent = dict(en='49.96%', de='49,96 %', fr='49,96 %', es='49,96 %', it='49,96%', nl='49,96%', pl='49,96%')
    day = dict(en='2026-03-01', de='1.3.2026', fr='01/03/2026', es='1/3/2026', it='01/03/2026', nl='1-3-2026', pl='1.03.2026')
    for name in LANGUAGES:
        lang = language_of(name)
        assert exact_text(-1234.5, 2, lang) == numbers[name] and sided_percent(.4996, .5, lang).replace('\xa0', ' ') == percent[name]
        assert with_unit(lang.number('12,345'), '€', lang).replace('\xa0', ' ') == money[name]
        assert value_text(pd.Timestamp('2026-03-01'), lang=lang) == value_text(datetime.date(2026, 3, 1), lang=lang) == day[name]
        assert with_unit(lang.say('missing'), '€', lang) == lang.say('missing') and with_unit('7', '{} months', lang) == '7 months'
    assert with_unit('-5', '$') == '-$5' and with_unit('5', 'kg', language_of('nl')) == '5 kg' and with_unit('5,00', 'PLN', language_of('pl')) == '5,00\xa0zł'


def test_polish_has_three_plurals():
    said = lambda n: language_of('pl').count('… and {n} more row', '… and {n} more rows', n).split()[-1]
    assert [said(n) for n in (1, 2, 4, 5, 12, 22, 25, 112)] == ['wiersz', 'wiersze', 'wiersze', 'wierszy', 'wierszy', 'wiersze', 'wierszy', 'wierszy']
    assert '1\xa0000\xa0000' in language_of('pl').count('… and {n} more row', '… and {n} more rows', 10**6)


@pytest.mark.parametrize('form', ['html', 'md', 'txt'])
def test_what_fills_a_text_is_escaped_for_its_format(form):
    from gradual_cf.render import environment
    made = environment(form, '', language_of('fr')).from_string("{{ _('{name} too low: {before}.', name=name, before='1') }}").render(name='<b>*x*')
    assert made == {'html': '&lt;b&gt;*x*', 'md': '&lt;b&gt;\\*x\\*', 'txt': '<b>*x*'}[form] + '\xa0: 1, une valeur trop basse.'


@pytest.fixture(scope='module')
def shop():
    "Every kind of column: fractions, whole numbers, days, times, levels of texts, of numbers and of truth, missing cells."
    rng, n = np.random.default_rng(2), 90
    df = pd.DataFrame({
        'income': (rng.gamma(6, 4000, n) - 9000).round(2), 'late | payments': rng.poisson(2, n).astype(float), 'share': rng.random(n).round(4),
        'since': pd.Timestamp('1999-12-31') + pd.to_timedelta(rng.integers(0, 9999, n), 'D'), 'seen': pd.Timestamp('2020-01-01') + pd.to_timedelta(rng.integers(0, 10**8, n), 's'),
        'born': [datetime.date(1950, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 9999, n)],
        'home': rng.choice(['own', '<i>rent</i>', 'ja', '', 'with\nparents', '1.000', 'missing'], n), 'code': pd.Categorical(rng.choice([1000, 20000, 3], n)), 'member': rng.random(n) < .5})
    df.loc[::9, 'late | payments'] = np.nan
    df.loc[::7, 'home'] = None
    return linear(tabular(df, immutable=['born'], increase_only=['income']), df), df


@pytest.fixture(scope='module')
def decided(shop):
    "Three refused rows of the shop with an answer and two others each."
    cf, df = shop
    rows = refused(cf, df).iloc[:3]
    return rows, cf.explain(rows, 1, bounds={'share': (.1, .9)}), cf.explain(rows, 1, k=2, bounds={'share': (.1, .9)})


@pytest.mark.night
@pytest.mark.parametrize('language', LANGUAGES)
def test_letters_in_every_language_prove_themselves(shop, decided, language):
    cf, (rows, answer, several) = shop[0], decided
    levels = {'': ('Z_1' if language == 'en' else 'Wohnen'), 'own': 'Eigen<tum>'}
    own = dict(units={'income': 'EUR', 'late | payments': '{} ×'}, names={'income': ('A|B', 'A|B !', 'A|B ?'), 'home': levels, 'so': {0: 'nein', 1: 'ja'}},
               why={'born': 'nobody chooses it.'})
    found = reasons(cf, rows, 3, target=1, house=dict(codes={'home': 4, 'member': ('M', 'Membership')}, never=['born'], language=language))
    for form in FORMATS:
        texts = letter(several, **housed(format=form, date=DAY, language=language, reasons=found, strict=None, **own))
        check = check_evidence(texts, cf, rows, **housed(date=DAY, reasons=found, **own))
        assert check[['legal', 'row', 'model']].to_numpy().all() and (check.flips == answer.valid).all() and check.flips.any()
        if language != 'en': assert '1 March 2026' not in texts[0] and ('lang="en"' not in texts[0])
        with pytest.raises(ValueError, match='text must'): check_evidence(texts[0].replace('language', 'Language').replace(language_of(language).say('About this decision'), 'x').replace('"row"', '"raw"'), cf, **housed(reasons=found, **own))
    told = [json.loads(t) for t in letter(answer, format='json', date=DAY, language=language, house=dict(reasons=4, strict=None))]
    assert max(len(t['reasons']) for t in told) == 4 and all(t['language'] == language for t in told)
    assert check_evidence([json.dumps(t) for t in told], cf, rows).flips.any()


@pytest.mark.night
def test_letters_of_all_languages_are_checked_together(shop):
    cf, df = shop
    rows = refused(cf, df).iloc[:7]
    texts = [letter(cf.explain(rows.iloc[i:i + 1], 1), language=l, date=DAY, house=dict(reasons=i or None, strict=None))[0] for i, l in enumerate(LANGUAGES)]
    assert check_evidence(texts, cf, rows)[['row', 'model', 'legal']].to_numpy().all()
    forged = texts[1].replace('"language":"de"', '"language":"nl"')
    assert forged != texts[1]
    for bad in (forged, texts[1].replace('"language":"de"', '"language":"xx"'), texts[1].replace('"reasons":1', '"reasons":2')):
        with pytest.raises(ValueError, match='text must'): check_evidence(bad, cf)


def test_a_row_without_an_answer_is_told_its_reasons():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.integers(0, 100, (200, 3)), columns=list('abc'))
    cf = linear(tabular(df), df, [1, 1, 1])
    rows = refused(cf, df).iloc[:4]
    answer = cf.explain(rows, 1, immutable=['a', 'b', 'c'])
    for form in FORMATS:
        with_, without = letter(answer, format=form, date=DAY, house=dict(reasons=2)), letter(answer, format=form, date=DAY, house=dict(reasons=None))
        if form != 'json': assert 'names no single reason' in without[0] and 'names no single reason' not in with_[0] and 'too low' in with_[0]
        assert not check_evidence(with_, cf, rows).flips.any()


def test_a_letter_with_other_reasons_is_no_letter_of_ours(shop):
    cf, df = shop
    answer = cf.explain(refused(cf, df).iloc[:1], 1)
    by_code = letter(answer, date=DAY, house=dict(reasons=reasons(cf, answer.data, 9, target=1, house=dict(codes={c: ('Z9', 'All of it') for c in df}))))
    assert 'All of it (code Z9)' in by_code[0]
    with pytest.raises(ValueError, match='text must be the letter'): check_evidence(by_code, cf)


@pytest.mark.night
def test_reasons_in_a_language(shop):
    cf, df = shop
    rows = refused(cf, df).iloc[:8]
    english, german = (reasons(cf, rows, 2, target=1, house=dict(codes={'home': 3}, language=l)) for l in ('en', 'de'))
    assert list(english.frame['columns']) == list(german.frame['columns']) and 'verglichen mit' in german.text() and 'lang' not in german.text()
    assert 'Zeile 0' in german.text() and 'Gründe' in german._repr_html_() and 'reasons' in repr(german)
    german.plot()


def test_a_number_not_a_class_in_words():
    from sklearn.linear_model import LinearRegression
    rng = np.random.default_rng(0)
    df = pd.DataFrame({'rooms': rng.integers(1, 9, 100), 'size': rng.random(100).round(2)})
    cf = GradualCF(LinearRegression().fit(df, df.rooms*1000 + df['size']*500), tabular(df), 'sparse').fit(df)
    answer = cf.explain(df[df.rooms < 4].iloc[:3], (5000, None))
    for language, aim in dict(en='at least 5,000', de='mindestens 5.000', es='como mínimo 5000', fr='au moins 5\u202f000', pl='co najmniej 5000').items():
        texts = letter(answer, language=language, house=dict(reasons=2, strict=None))
        assert aim in texts[0] and 'probability' not in texts[0] and check_evidence(texts, cf).flips.all()


@pytest.mark.night
def test_a_row_that_was_not_read_gets_a_note_in_its_language(shop):
    cf, df = shop
    rows = refused(cf, df).iloc[:3].copy()
    rows['home'] = rows['home'].astype(object)
    rows.iloc[1, list(df).index('home')] = 'castle'
    texts = letter(cf.explain(rows, 1), language='it', format='html', house=dict(reasons=2, strict=None))
    assert 'lang="it"' in texts[1] and 'leggibili' in texts[1] and 'castle' in texts[1] and texts[1].count('<script') == 1 and check_evidence([texts[0], texts[2]], cf).model.all()


def test_pages_of_one_language_do_not_leak_into_another():
    first = render('reasons/page', 'txt', language_of('de'), rows=[], more=2, summary='', agreement=[], withheld={}, without=[], unread={})
    assert 'weitere Zeilen' in first and 'more rows' in render('reasons/page', 'txt', rows=[], more=2, summary='', agreement=[], withheld={}, without=[], unread={})


WORDS = {
    'de': {'job_years': ('Zeit in der Stelle', 'Zeit in der Stelle ist zu kurz', ''), 'debt_sum': ('Schulden', '', 'Ihre Schulden sind zu hoch'),
           'home_kind': {'': 'Wohnen', 'rent_ed': 'Miete', 'own_ed': 'Eigentum'}, 'y': {'refused': 'abgelehnt', 'granted': 'bewilligt'}},
    'fr': {'job_years': ('Ancienneté', "L’ancienneté est trop courte", ''), 'debt_sum': ('Dettes', '', 'Les dettes sont trop élevées'),
           'home_kind': {'': 'Logement', 'rent_ed': 'location', 'own_ed': 'propriété'}, 'y': {'refused': 'refusé', 'granted': 'accordé'}},
    'en': {'job_years': ('Time in the job', 'Time in the job is too short', ''), 'debt_sum': ('Debts', '', 'Your debts are too high'),
           'home_kind': {'': 'Housing', 'rent_ed': 'tenant', 'own_ed': 'owner'}, 'y': {'refused': 'declined', 'granted': 'approved'}}}


@pytest.fixture(scope='module')
def coded():
    rng, n = np.random.default_rng(4), 160
    df = pd.DataFrame({'job_years': rng.integers(0, 30, n), 'debt_sum': rng.integers(0, 90, n)*1000, 'home_kind': rng.choice(['rent_ed', 'own_ed'], n)},
                      index=pd.RangeIndex(1608, 1608 + n))
    cf = linear(tabular(df), df, [3, -3, .5, -.5])
    cf.classes = 'refused', 'granted'
    return cf, refused(cf, df)


@pytest.mark.parametrize('form', FORMATS + ('txt',))
@pytest.mark.parametrize('language', WORDS)
def test_where_words_are_given_nothing_of_the_table_is_left(coded, language, form):
    cf, rows = coded
    answer = cf.explain(rows.iloc[:12], 'granted')
    write = lambda form: letter(answer, language=language, format=form, date=DAY, house=dict(names=WORDS, strict=True))
    texts = write(form)
    check = check_evidence(texts, cf, rows.iloc[:12], records=write('json') if form == 'txt' else None, house=dict(names=WORDS))
    assert check[['flips', 'row', 'model']].to_numpy().all()
    seen = [re.sub('(?s)<!--.*?-->|<(script|style).*?</|"sealed".*', '', t) for t in texts]
    for i, text in zip(answer.data.index, seen):
        assert str(i) in text and not re.search(r'refused|granted|rent_ed|job_years|\w_\w', text.replace('_blank', '')), text
        if language != 'en': assert WORDS[language]['y']['refused'] in text
    said = WORDS[language]['job_years'][1], WORDS[language]['debt_sum'][2]
    assert all(any(s in text for text in seen) for s in said)


def test_what_has_no_words_is_named(coded):
    cf, rows = coded
    answer = cf.explain(rows.iloc[:2], 'granted')
    few = {'job_years': 'Zeit', 'home_kind': {'own_ed': 'Eigentum'}}
    missing = ["column 'debt_sum'", "column 'home_kind'", "level 'rent_ed' of 'home_kind'", "class 'refused'", "class 'granted'"]
    for language, names in (('de', few), ('en', few), ('de', None), ('de', {'fr': few})):
        with pytest.warns(UserWarning, match='names must give words') as caught: letter(answer, language=language, house=dict(names=names))
        assert all(m in str(caught[0].message) for m in missing) and ("column 'job_years'" in str(caught[0].message)) == (names is not few)
        with pytest.raises(ValueError, match='names must give words'): letter(answer, language=language, house=dict(names=names, strict=True))
    assert letter(answer, language='de', house=dict(names=few, strict=None)) and letter(answer)


@pytest.mark.parametrize('language', LANGUAGES)
def test_things_are_listed_as_each_language_does(language):
    lang = language_of(language)
    each = dict(en=('and', 'or'), de=('und', 'oder'), fr=('et', 'ou'), es=('y', 'o'), it=('e', 'o'), nl=('en', 'of'), pl=('i', 'lub'))[language]
    for word, said in zip(('and', 'or'), each):
        assert [lang.listed('ABC'[:n], word) for n in (0, 1, 2, 3)] == ['', 'A', f'A {said} B', f'A, B {said} C']


@pytest.mark.parametrize('language', LANGUAGES)
def test_a_number_never_contradicts_its_decision(language):
    from gradual_cf.use.letter import _number_text
    lang = language_of(language)
    for bar in (.5, .001, .9995, 1/3, .4999999):
        for p in (bar*(1 - 1e-9), bar - 1e-7, bar + 1e-7, bar*(1 + 1e-9), bar): assert (sided_percent(p, bar, lang) == sided_percent(bar, bar, lang)) <= (p >= bar)
    target = torch.tensor([500., torch.inf], dtype=torch.float64)
    for v in (499.9999999, 500., 500.0000001, 12.):
        assert (float(lang.plain(_number_text(v, target, lang)).replace(',', '')) >= 500) == (v >= 500)


@pytest.mark.parametrize('language', ['de', 'pl'])
def test_the_panel_says_nothing_in_english(shop, language):
    cf, df = shop
    lang = language_of(language)
    box = explorer(cf, refused(cf, df).iloc[:3], 1, language=language)
    assert box.wait()
    box.panel.keep()
    english = {text for text, said in lang.texts.items() if '{' not in text and said != text} - {*map(str, [*df, *df.home])}
    for tab in ('ways', 'reasons', 'real', 'letter', 'order'):
        box.panel.look(tab)
        assert box.wait()
    pages = [box.said['about'], box.tray, *(re.sub('srcdoc=.*', '', page) for page in box.panes.values())]
    pieces = {p.strip() for page in pages for p in re.split('<[^>]*>', page)}
    told = {text for name, text in box.fixed['words'].items() if isinstance(text, str)} | {*box.fixed['words']['heads'], *(text for _, text in box.fixed['tabs'])}
    assert not (pieces | told) & english, (pieces | told) & english
    assert box.fixed['words']['keep'] == lang.say('Keep this answer') and '%' in box.panes['order'] and box.fixed['numbers'][0] == lang.say('first')
    box.close()
