"""What is refused, and how, beside tables and models: several answers, batches, letters, other data, other methods, the command."""
import datetime
import gzip
import json
import sys
import zipfile
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import torch
from cheapest import cheapest
from made import needs_pdf
from PIL import Image
from refused import (N, X, answers, called, cf, domain, each, fresh, housed, model, of_table, own, picture, pictures, plain, reader, refuses, reviews, table, wave)
from test_photographs import six_photographs as photos
from test_readers import png
from test_survey import result
from torch import nn
from toy import Level, waves
from typer.testing import CliRunner

from gradual_cf.all import (ABELE, CEM, FIDO, LORE, PLAUSIBLE, Counterfactuals, Goyal, GradualCF, GrowingSpheres, Wachter, as_batches,
    audit, because, bootstrap, box, check_evidence, checks, corpus_vectors, explain_dataset, explorer, images, improve, init_composite,
    letter, load_animals, load_glove, load_series, lrp, predictor, questions, reads_well, reasons, relevance, reproduce, save_model,
    save_page, sentences, series, summary, tabular, tally)
from gradual_cf.cli import app
from gradual_cf.data.images import pixels
from gradual_cf.data.words import word_spans
from gradual_cf.measures.metrics import outliers
from gradual_cf.paper.reproduce import results
from gradual_cf.render import language_of, plain_json
from gradual_cf.scale.serve import _load_pyfunc, log_explainer, service
from gradual_cf.models.fingerprints import fingerprint
from gradual_cf.scale.batch import open_source
from gradual_cf.search.proven import ways
from gradual_cf.search.robust import region
from gradual_cf.templates.evidence import check_evidence as checker
from gradual_cf.use.evidence import evidence
from gradual_cf.use.reasons import against_direction

DAY = datetime.date(2026, 3, 1)


@cache
def low(): return X()[(cf().z_train.argmax(1) == 0).numpy()]
@cache
def high(): return X()[(cf().z_train.argmax(1) == 1).numpy()]
@cache
def found(): return cf().explain(low()[:6], 1)
@cache
def priced(): return of_table('hist', cost=(('age', 1e-9), ('income', 1e-9), ('debt', 1e-9)))
@cache
def tied(): return of_table('hist', relations=('age falls -> income rises by 1',))
def unfitted(): return GradualCF(cf().model, cf().domain, 'sparse')  # of a domain that brings no rows
def written(name, content, d): (d/name).write_bytes(content if isinstance(content, bytes) else content.encode()); return d/name
def loaded(d, e=cf): return Counterfactuals.load(answers().save(d/'a.zip'), e().domain)


@contextmanager
def without(name):
    "A package is missing."
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, None)
        yield
def lacking(name, call):
    with without(name): call()


# Several answers, plans, proofs
@table(
    ('improve before fit', lambda: improve(unfitted(), answers()), 'fit must be called'),
    ('a plan before fit', lambda: unfitted().plan(answers()), 'fit must be called'),
    ('a plan of answers from a file', lambda d: loaded(d).plan(), 'plan needs answers that know their model'),
    ('ways in no time', lambda: ways(of_table(), N()[:2], seconds=0), 'seconds must be above 0, got 0'),
    ('ways with relations', lambda: ways(tied(), N()[:2]), 'a table without relations for ways'),
    *[(f'cheapest: {called(how)}', lambda how=how: cheapest(of_table(), N()[:2], **how), says) for how, says in (
        (dict(optimal='l2'), "proof must be one of … got 'l2'"), (dict(gap=-.1), 'gap must be at least 0, got -0.1'),
        (dict(seconds=0), 'seconds must be above 0, got 0'),
        (dict(optimal='cost'), 'needs a table with costs'))],
    ('cheapest of a model without bounds', lambda: cheapest(own('svc'), N()[:2]), 'a model that can be bounded … explain finds short answers'),
    ('cheapest with relations', lambda: cheapest(tied(), N()[:2], optimal='distance'), 'a table with relations'),
    ('prices too small to compare', lambda: cheapest(priced(), N()[:2], optimal='cost', start=False), 'cost must have a price of at least 0.001 … got'),
    ('a proof in a norm that is none', lambda: of_table().explain(N()[:2]).prove('l2'), "norm must be one of … got 'l2'"),
    ('a proof in no time', lambda: of_table().explain(N()[:2]).prove(seconds=0), 'seconds must be above 0, got 0'),
    ('a proof by distance with relations', lambda: tied().explain(N()[:2]).prove(norm='distance'), "'columns' for a table with relations, got 'distance'"),
    ('a proof by a cost of its own', lambda: priced().explain(N()[:2]).prove(norm='cost'),
        "norm must be 'columns' or 'distance' for a table with costs of its own, got 'cost'"),
    ('no picture', lambda: save_page('page.html', []), 'at least one picture'),
    ('outliers among too few', lambda: outliers(cf().x_train, torch.ones(90).long(), cf().x_train[:10], cf().z_train[:10]), '20 held-out rows … got'),
    ('no bootstrap', lambda: bootstrap(lambda x, y: 0, [1, 2], [0, 1], 0), 'k must be a whole number of at least 1, got 0'),
    ('a proof of pictures', lambda: picture_answers().prove(), 'cf must explain a table, got'),
    ('a region of pictures', lambda: region(picture(), picture_answers()), 'answers must be about a table, got'),
    ('a region of a table with relations', lambda: region(tied(), tied().explain(refused_by_trees()[:2], 1)),
        'answers must be about a table without relations'),
    ('a card of a picture', lambda: picture_answers()[:1].plot(card=True), 'card needs a row of a table, got'),
    ('a card of two rows', lambda: cf().explain(low()[:2], 1).plot(card=True), 'card needs one row, got 2'),
    ('names of a card that are one', lambda: cf().explain(low()[:1], 1).plot(card=True, names='age'), 'names, units and codes must be dicts of columns'),
    ('no direction', lambda: against_direction(cf(), X(), 1), 'domain must be a table with better='),
)
def test_several(row, tmp_path): refuses(row, tmp_path)


# Batches, files, a server
def run(d, ds=None, *target, e=cf, **how): return explain_dataset(e(), X() if ds is None else ds, d/'out', *target, **how)
@cache
def saved(): return own('line', 'text')
def abs_gap(a, b): return abs(b - a)
def derived():
    "An explainer of a table in which a column follows from another by a function."
    with pytest.warns(UserWarning): of = tabular(N(), derive=dict(debt=lambda df: df.income*1.))
    return GradualCF(predictor(lambda df: 1/(1 + np.exp(40. - df.age.to_numpy(float))), of), of, 'sparse').fit(N())
def kept(d): return saved().save(d/'cf')
def shards(d, third):
    "Three files, of which the last is another."
    (d/'s').mkdir()
    for i in range(0, 60, 30): X()[i:i + 30].to_parquet(d/f's/{i:03}.parquet')
    third(d/'s/060.parquet')
    return d/'s'
def holding(d, name, content):
    "A run in a folder that holds something else."
    (d/'x').mkdir()
    written(name, content, d/'x')
    explain_dataset(cf(), X(), d/'x')
@cache
def curves():
    "An explainer of a domain written by hand, whose columns have no names."
    return GradualCF(plain().model, plain().domain, 'sparse', sigma=0).fit(plain().x)


MANIFESTS = ['['*100_000 + ']'*100_000, '[]', 'null', '{']


@table(
    ('a file that is not there', lambda d: run(d, 'nowhere.parquet'), "ds must … got 'nowhere.parquet'"),
    ('a list', lambda d: run(d, [1, 2]), 'ds must … got list: give an engine as_batches'),
    ('a batch that is none', lambda: as_batches(cf())([1, 2]), 'batch must be … got list'),
    ('columns without types', lambda: as_batches(cf(), keep=['id']), "keep must be columns with Arrow types … got ['id']"),
    ('a type that is none', lambda: as_batches(cf(), keep=dict(id='number')), "keep must be … got {'id': 'number'}"),
    ('a column that is added', lambda: as_batches(cf(), keep=dict(cf_prob='double')), "keep must not name columns that are added, got ['cf_prob']"),
    ('a folder that is none', lambda: as_batches('nowhere'), "explainer must be fitted, or a folder of one, got 'nowhere'"),
    ('a rule that is none', lambda: as_batches(cf(), imutable=['age']), 'imutable', TypeError),
    ('no row', lambda d: run(d, X()[:0]), 'ds must … at least one row … got'),
    ('a missing column', lambda d: run(d, X().drop(columns='debt')), "ds must have the columns … but lacks ['debt']"),
    ('a class that is none', lambda d: run(d, target=2), 'target must be in 0..1, got 2'),
    ('a target that is no column', lambda d: run(d, target='want'), "target must be one of the columns that ds must have, got none named 'want'"),
    ('a label that is none', lambda d: run(d, N(), 'gaol', e=partial(own, 'line', 'text')),
        "target must be one of the labels 'granted', 'refused' or one of the columns that ds must have, got none named 'gaol'"),
    ('a label that is a column too', lambda d: run(d, N().assign(granted='granted'), 'granted', e=partial(own, 'line', 'text')), 'which is both'),
    ('batches of no row', lambda d: run(d, batch_size=0), 'batch_size must be … got 0'),
    ('less than no worker', lambda d: run(d, workers=-1), 'workers must be … got -1'),
    *[(f'a column {c}', lambda d, c=c: run(d, X().assign(**{c: 1.})), f"ds must … got ['{c}']")
        for c in ('cf_prob', 'cf_valid', 'cf_target', 'cf_before', 'cf_row', 'cf:income')],
    ('a rule about no column', lambda d: run(d, immutable=['height']), "immutable must name columns of df, got ['height']"),
    ('bounds the wrong way', lambda d: run(d, bounds=dict(debt=(5, 1))), "bounds must have low ≤ high, got 'debt'"),
    ('no change', lambda d: run(d, max_changes=0), 'max_changes must be … got 0'),
    ('rules for each row', lambda d: run(d, immutable=X()), 'immutable must be plain values, the same for all rows, got DataFrame'),
    ('before fit', lambda d: run(d, e=unfitted), 'fit must be called'),
    ('columns without names', lambda d: run(d, pd.DataFrame(dict(x=[1.])), e=curves), 'domain.display.columns must name the columns'),
    ('a summary of nothing', lambda d: summary(d), 'parts'),
    ('a folder of others', lambda d: holding(d, 'holiday.jpg', ''), "out must be … holiday.jpg"),
    ('a file in the place of a folder', lambda d: explain_dataset(cf(), X(), written('x.jpg', '', d)), 'out must be a folder, got'),
    *[(f'a manifest {text:.5}', lambda d, text=text: holding(d, '_manifest.json', text), 'out must hold a readable … got') for text in MANIFESTS],
    ('a shard that is none', lambda d: run(d, shards(d, lambda path: path.write_bytes(b'not parquet'))), '060.parquet'),
    ('a shard of other columns', lambda d: run(d, shards(d, X()[60:].rename(columns=dict(debt='debts')).to_parquet)),
        '060.parquet … debt: double there, missing here'),
    ('a shard of other numbers', lambda d: run(d, shards(d, X()[60:].astype(dict(age=float)).to_parquet)), '060.parquet … age: int64 there, double here'),
    ('a CSV of uneven lines', lambda d: open_source(written('r.csv', 'a,b\n1,2\n3\n', d)), 'ds must be readable CSV … r.csv'),
    ('no folder of an explainer', lambda d: service(d), 'without explainer.zip'),
    ('no seconds', lambda d: service(kept(d), seconds=0), 'seconds must be above 0, got 0'),
    ('what has no fingerprint', lambda: fingerprint(torch.ones(999), (i for i in 'ab')), 'settings, data or functions'),
    ('a path has no fingerprint', lambda d: fingerprint(d), 'settings, data or functions'),
    *[(f'an answer of MLflow: {called(how)}', lambda d, rows=rows, how=how: _load_pyfunc(kept(d)).predict(rows(), how), says) for rows, how,
        says in (
        (lambda: N()[:2], dict(target='approved'), "target must be one of the labels … 'approved'"),
        (lambda: N()[:2], dict(targets='granted'), "params must be among … 'targets'"),
        (lambda: N()[:2].drop(columns='debt'), {}, 'debt'),
        (lambda: N()[:2], dict(seconds=-1.), 'seconds must be … got'))],
    ('a price by a function', lambda d: of_table(cost=(('age', abs_gap),)).save(d/'out'), "cost must be weights, got a function for column 'age'"),
    ('a term by a function', lambda d: cf(match=lambda s: s.logits[:, 0]).save(d/'out'), 'settings.match must be something that a file can store, got'),
    ('a column by a function', lambda d: derived().save(d/'out'), "must be sentences, got derive 'debt'"),
    ('an explainer of texts', lambda d: reader().save(d/'out'), 'domain must be a table, images or series to be saved'),
    ('a summary of few rows', lambda d: GradualCF(model(), tabular(N()), 'sparse').fit(N()[:12]).save(d/'out', rows=False),
        'rows must be True for fewer than 10 training rows of each class'),
    ('images without rows', lambda d: picture().save(d/'out', rows=False), 'rows must be True for images'),
    ('plausible answers without rows', lambda d: GradualCF(model(), tabular(N()), PLAUSIBLE).fit(N()).save(d/'out', rows=False),
        'rows must be True for settings with plausibility'),
    *[(f'without {name}', lambda d, name=name, call=call: lacking(name, lambda: call(d)), says, ImportError) for name, call, says in (
        ('mlflow', lambda d: log_explainer(own()), "pip install 'gradual_cf[mlflow]'"),
        ('openpyxl', lambda d: answers().to_excel(d/'out'), "needs openpyxl: pip install 'gradual_cf"),
        ('shap', lambda d: answers().to_shap(), "needs shap: pip install 'gradual_cf"))],
    ('a folder without a file', lambda d: (d/'in').mkdir() or run(d, d/'in'), 'ds must be a folder with parquet files, got'),
    *[(f'an explainer without rows of {name}', lambda d, how=how: cf(**how).save(d/'cf', rows=False), f'settings with {name}')
      for name, how in (('logit_margin', dict(logit_margin=.1)), ("init='prototype'", dict(init='prototype')))],
)
def test_batch(row, tmp_path): refuses(row, tmp_path)


# Letters, reasons, evidence, groups, later models
@cache
def text(form='md'): return letter(found()[:1], format=form, date=DAY)[0]
@cache
def record():
    "A letter as an object, of an answer that is valid."
    i = int((found().valid & found().changed.any(1)).argmax())
    return json.loads(letter(found()[i:i + 1], format='json', date=DAY)[0])
def resealed(**told):
    "A letter as JSON with something else in its record, sealed anew."
    new = json.loads(record()['sealed']) | told
    return json.dumps(record() | dict(sealed=plain_json(new | dict(sha256=checker.seal(new)))))
def answered(**told): return resealed(answer=json.loads(record()['sealed'])['answer'] | told)
def aimed(target): return resealed(question=json.loads(record()['sealed'])['question'] | dict(target=target), answer=json.loads(record()['sealed'])['answer'] | dict(target=target))
def celled(at, v): return answered(data=[v if g == at or at is None else u for g, u in enumerate(json.loads(record()['sealed'])['answer']['data'])])
@cache
def pdf_with(url):
    needs_pdf()
    letter(found()[:1], format='pdf', house=dict(template=f"<p><img src='{url}'>{{{{ checksum }}}}"))
def picture_answers(): return picture().explain(pictures()[1][:2], 1)
@cache
def refused_by_trees(): return N()[of_table().model.predictor.source.predict(N()) == 0][:6]
def wrong(text): return check_evidence(text, cf())
@cache
def poor(): return GradualCF(own().model, tabular(N()), 'sparse').fit(low_by_line())
@cache
def low_by_line(): return N()[(own().z_train.argmax(1) == 0).numpy()]
@cache
def named(): return own('line', 'text')
def audited(given, rows=X, by='job', **how): return audit(cf(), **dict(rows=rows(), by=by, target=1) | given)
def of_today(): return GradualCF(cf().model, domain(), 'sparse', classes=('refused', 'granted')).fit(X())
@cache
def advice(): return of_today().explain(X(), 'granted')
@cache
def asked(): return questions({m: result(30, i) for i, m in enumerate('abcd')})
def judged(f=lambda t: t): return pd.DataFrame(dict(survey=asked().name, participant='p', item=range(len(asked())),
    answer=[f(t) for t in asked().target], seconds=1.))


RECORD = "{{ checksum }}<!-- record {{ sealed|replace('model', 'Model') }} -->"
TEMPLATES = [('Dear {{ salary }}', "template must … fields among … got ['salary']"), ('{% if %}', 'template must … got line 1'),
('Dear customer', 'template must carry the record'),
             *[(t, 'template must … use fields as they are … got') for t in (
                 "{% include 'record' %}{{ sure.nobody }}", "{{ ''.__class__.__mro__ }}{% include 'record' %}",
                     "{% include '/etc/passwd' %}", "{% include 'record' %}{{ 1/0 }}")],
             (7, 'template must be a text of Jinja2 … got'), (RECORD, 'template must carry the record')]
SLOTS = dict(sender='A', addressee='B', product='C', contact=False)
LETTERS = [(dict(format='rtf'), "format must be 'md', 'html', 'txt', 'json' or 'pdf', got"),
           *[(SLOTS | {name: None} | dict(notices='eu'), f"{name} must be given where notices names 'eu'") for name in SLOTS],
           (SLOTS | dict(notices='eu', strict=True), "notices must come with the lender's own words … got the name alone"),
           *[(dict(notices=v), "notices must be one of ['us-reg-b', 'eu'], a file") for v in ('no such file', 7, {'uk': 'x'}, {})],
           (dict(sender=7), 'sender must be a text … got 7'), (dict(addressee=['A', 'B']), 'addressee must be a text, or one for each of 1'),
           (dict(product=[7]), 'product must be a text, or False … got 7'),
           *[(dict(names={'job': v}), "names must … for column 'job'") for v in (7, ('a', 'b'), ('a', 'b', 'c'), {'': 7})],
           (dict(names={'job': {'castle': 'x'}}), "names must name levels of column 'job'"),
           (dict(names={'age': 'Age'}, strict=True), "names must give words in 'en' … got none for … column 'job'"),
(dict(format='json', template='x'), 'template must be left out … got'), (dict(names={'salary': 'x'}), 'names must name columns … got'),
           (dict(names=['x']), 'names must be a dict … got'), (dict(units={'job': '€'}), 'units must name numbers … got'),
           (dict(words={'job': ('a', 'b')}), 'words must hold one sentence … got'),
           (dict(words={'age': 3}), 'words must hold a sentence, or a pair … got'),
           (dict(words={'age': '{{ salary }}'}), "words must have fields among … got ['salary']"),
           (dict(date=7), 'date must be a date or a text … got'), (dict(others=3), 'house must be a dict of … got'),
           *[(dict(reasons=v), 'reasons must be … got') for v in (0, -1, True, 2.5, 'four', [4])],
           (dict(language='klingon'), 'language must be one of … got')]
GROUPS = {
    'no column': (dict(by='height'), "by must name columns of rows, got ['height']"),
        'empty': (dict(by=[]), 'by must name at least one column'), 'nothing': (dict(by=None), 'by must name at least one column'),
    'an empty frame': (dict(by=X()[[]]), 'by must have at least one column … got'),
        'twice': (dict(by=['job', 'job']), 'by must … each once … got'),
    'one member': (dict(by=pd.Series('all', X().index, name='all')), "by must … at least two groups in column 'all', got only"),
    'numbers': (dict(by=pd.Series(np.arange(90.), X().index, name='pay')), "got 90 in column 'pay': cut it first"),
        'written alike': (dict(by=pd.Series([1, '1']*45, X().index)), 'by must … written differently … got'),
    'another length': (dict(by=X().job[:5]), 'by must … one line for each row (90), got 5'),
        'another index': (dict(by=X().job.set_axis(range(90))), 'by must … index of rows'),
    'least': (dict(least=1), 'least must be a whole number of at least 2, got 1'),
        'all too small': (dict(least=10_000), 'least must not exceed the largest group … got'),
    'resamples': (dict(test=dict(resamples=10)), 'resamples must be a whole number of at least 99, got 10'),
        'crossed': (dict(test=dict(crossed=0)), 'crossed must be … got'), 'level': (dict(test=dict(level=5)), 'level must be in (0, 1), got 5'),
}


@table(
    *each(['', 'Dear customer', '{"record": 1}', '{"record":' + MANIFESTS[0] + '}'], wrong, 'text must hold a record … got', 'a letter '),
    ('a page without its record', lambda: wrong(text('html').replace('<script', '<div')), 'text must hold a record … got none'),
    ('a record of fewer columns', lambda: wrong(resealed(columns=[dict(name='a', type='int64')])), 'text must hold a record … cell for each column'),
    ('no model', lambda: wrong(text().replace('"model"', '"Model"')), 'text must hold a record … got'),
    ('no records', lambda: wrong(text('txt')), 'text must hold a record … got none; records'),
    ('more records than letters', lambda: check_evidence(text('txt'), cf(), records=[text('json')]*2), 'records must be one for each of 1'),
    ('a record of another letter', lambda: check_evidence(text('txt'), cf(), records=[7]), 'records must be letters in JSON'),
    ('no letter', lambda: check_evidence([], cf()), 'at least one letter'),
    ('a level that is none', lambda: wrong(celled(4, 'castle')), 'text must … castle'),
    ('a number that is none', lambda: wrong(celled(0, 'old')), 'text must be about what the model reads'),
    *each([2, 9, -1, 'x', [1., 2.]], lambda v: wrong(aimed(v)), 'text must … got', 'a class '),
    ('a letter to several rows', lambda: check_evidence(text(), cf(), low()[:6]), 'rows must be one for each of 1'),
    *each([None, [1], {}, 10**400, float('nan'), float('inf'), 'x', '', '1-2', '\0'], lambda v: wrong(celled(None, v)), 'text must … got', 'a value '),
    *[(f'template {t!r:.70}', lambda t=t: letter(found()[:1], house=dict(template=t)), says) for t, says in TEMPLATES],
    *[(f'letter: {called(told)}', lambda told=told: letter(found()[:1], **housed(**told)), says) for told, says in LETTERS],
    ('a letter with no reasons', lambda: check_evidence(text(), cf(), house=dict(reasons=0)), 'reasons must be … got 0'),
    ('a letter about images', lambda: letter(picture().explain(pictures()[1][:1], 0)), 'rows of a table'),
    ('a letter that was about images', lambda: check_evidence('x', picture()), 'rows of a table'),
    *each(['xx', 'DE', '', None, ['de'], 7, 'de_DE'], language_of, 'language must be one of en, de, fr, es, it, nl, pl, got {v}', 'language '),
    *[(f'reasons: {called(how)}', lambda how=how: reasons(own(), N(), how.get('k', 4), how.get('target', 1), {n: v for n, v in how.items() if n not in ('k', 'target')}), says) for how, says in (
        (dict(k=0), 'k must be … got 0'), (dict(k=2.5), 'k must be … got 2.5'), (dict(codes=dict(wealth=1)), "codes must … got ['wealth']"),
        (dict(never=['wealth']), "never must … got ['wealth']"),
        (dict(codes=dict(debt=11)), 'codes must … 1 to 10 … got'), (dict(codes=dict(debt=True)), 'codes must … 1 to 10 … got'),
        (dict(codes=dict(debt=['a'])), 'codes must … 1 to 10 … got'),
        (dict(codes=dict(debt=1), never='debt'), "columns of never, got ['debt']"), (dict(never=list(N())), 'may be named'),
        (dict(codes=dict(debt=('a', 'x'), age=('a', 'y'))), 'one text each'), (dict(target=5), 'target must be … got 5'),
        (dict(names=dict(debt='x')), "house must be a dict of codes, never and language, got ['names']"),
        *[(dict(codes=codes), 'codes must … got')
            for codes in ('hmda', ['income'], dict(income=''), dict(income='  '), dict(income=('A1', ' ')), dict(income=(None, 'x')),
            dict(income=([], 'x')),
                 dict(income=(float('nan'), 'x')), dict(income=('A1', 3)))])],
    ('reasons before fit', lambda: reasons(unfitted(), X()[:3], target=1), 'fit must be called'),
    ('reasons about images', lambda: reasons(picture(), pictures()[1][:2], target=1), 'must be a table'),
    ('reasons of those of whom nobody has the target', lambda: reasons(poor(), low_by_line()[:3], target=1), 'training rows must hold some'),
    ('reasons of classes with names', lambda: reasons(named(), N()[:5]), "must know what people want, one of the labels 'granted', 'refused': write GradualCF(model, X, wanted='granted')"),
    ('reasons to a class that is none', lambda: reasons(named(), N()[:5], target='rich'), "refused', got 'rich'"),
    ('reasons of no row that can be read', lambda: reasons(cf(), X()[:1].astype({'job': object}).assign(job='unknown'), target=1), "got 'unknown'"),
    *[(f'groups: {name}', lambda given=given: audited(given), says) for name, (given, says) in GROUPS.items()],
    ('groups of whom none is refused', lambda: audited(dict(rows=high(), least=2)), 'that the model refuses, got'),
    ('groups without a way', lambda: audited(dict(immutable=list(X()))), 'with an answer, got none among'),
    ('groups without a column', lambda: audit(cf(), X().drop(columns='debt'), 'job', 1), "missing ['debt']"),
    *[(f'advice {called(how)}', lambda how=how: audited(dict(least=2)).advice(**how), says) for how, says in (
        (dict(k=0), 'k must be a whole number of at least 1, got 0'), (dict(columns=0), 'columns must be a whole number … got 0'),
        (dict(worth=0), 'worth must be above 0, got 0'))],
    *[(f'checks: {called(how)}', lambda how=how: checks(of_today(), advice(), **how), says) for how, says in (
        (dict(limits=dict(held=1)), "limits must name checks among … got ['held']"), (dict(limits={}), 'limits must name checks … got'),
        (dict(limits=dict(holds=2)), 'limits of holds must be … got'), (dict(limits=dict(length_then=0)), 'limits of length_then must be … got'),
        (dict(limits=dict(reasons=.5)), 'earlier must be an explainer for the check reasons'), (dict(level=0), 'level must be … got'),
        (dict(limits=dict(recourse_others=.8)), 'by must be given for the check recourse_others, got None'),
        (dict(fewest=1), 'fewest must be a whole number … got 1'), (dict(target='rich'), "earlier must include rows that were refused 'rich', got none"),
        (dict(by='sex'), 'by must name columns … got'), (dict(rows=3), 'rows must be a frame, got int'))],
    ('checks of a number', lambda: checks(of_today(), 3), 'earlier must be … got int'),
    ('checks of an empty folder', lambda d: checks(of_today(), d), 'with parts'),
    ('checks of a model', lambda: checks(cf().model, advice()), 'checks takes a fitted explainer first, got Sequential', TypeError),
    ('checks before fit', lambda: checks(GradualCF(cf().model, cf().domain, 'sparse', classes=('refused', 'granted')), advice()), 'fit must be called'),
    ('checks of nothing', lambda: checks(of_today()), 'limits must be given where nothing was said earlier'),
    ('checks of letters of nobody', lambda: checks(of_today(), limits=dict(holds=.9)), 'earlier must be given for the check holds'),
    ('checks without rows', lambda: checks(of_today(), limits=dict(recourse=.9)), 'rows must be given'),
    ('checks without a target', lambda: checks(of_today(), of_today().explain(X())), 'target must be given'),
    ('checks of those who were granted', lambda: checks(of_today(), of_today().explain(high(), 'granted')), 'must include rows that were refused'),
    ('evidence of a text', lambda: evidence('x'), 'cfs must be answers of explain, got str'),
    ('evidence of answers from a file', lambda d: evidence(loaded(d)), 'answers that know their model, got'),
    ('evidence with reasons of others', lambda: evidence(found(), reasons(cf(), low()[:3], target=1)), 'reasons must be about the same 6 rows, got 3'),
    ('a region of dictionaries', lambda: wrong(resealed(region=dict(age=dict(low=1)))), "region must be as the schema says, got ['age']"),
    ('what does not hold', lambda: wrong(answered(after=.999)), 'text must be evidence that holds, got in letter 0: the model says'),
    ('what was changed', lambda: wrong(json.loads(text('json'))['sealed'].replace('"tau":null', '"tau":0.6')), 'text must be evidence that holds … sha256'),
    *[(f'what is {name}', lambda bad=bad: wrong(bad), 'text must hold a record … got one of an earlier form') for name, bad in dict(
        evidence='{"schema_version": 1}', letter='<!-- record {"model":"a","cells":[],"told":{}} -->').items()],
    ('what letter does not know', lambda: check_evidence(text(), cf(), house=dict(colour='red')), "house must be a dict of … got ['colour']"),
    *[(f'panel: {name}', lambda rows=rows, told=told: explorer(cf(), rows(), **told), says) for name, rows, told, says in (
        ('no row', lambda: X()[:0], {}, 'at least one row'), ('a missing column', lambda: X().drop(columns='late'), {}, "missing ['late']"),
        ('a level that is none', lambda: X().assign(job='boat'), {}, 'known levels … got'),
        ('target', X, dict(target=2), 'target must be in 0..1, got'),
        ('language', X, dict(language='xx'), 'language must be one of … got'))],
    *[(f'panel: {word}', lambda word=word: explorer(cf(), X(), **{word: 1}), f'explorer has no {word}', TypeError)
      for word in ('units', 'names', 'preset', 'k')],
    ('a panel before fit', lambda: explorer(unfitted(), X()), 'fit must be called'),
    *[(f'survey: {name}', call, says) for name, call, says in (
        ('no method', lambda: questions({}), 'at least one method'),
        ('few images', lambda: questions({'a': result(3, 0)}), "at least 25 images of each method, got {'a': 3}"),
        ('few names', lambda: questions({'a': result(30, 0)}, classes='abc'), 'name every target'),
        ('many names', lambda: questions({'a': result(30, 0)}, classes=range(11)), 'one for each key'),
        ('no judge', lambda: tally([], asked()), 'where there are no judges'),
        ('no file', lambda: tally('/nowhere/a.csv', asked()), 'CSV files of this survey'),
        ('no answers', lambda: tally(judged().drop(columns='answer'), asked()), 'must have columns'),
        ('another survey', lambda: tally(judged().assign(survey='0'), asked()), 'must be of survey'),
        ('another class', lambda: tally(judged(lambda t: 12), asked()), 'answer in 0..9, got'),
        ('half an item', lambda: tally(judged().assign(item=lambda d: d['item'] + .5), asked()), 'item in 0..99'),
        ('twice', lambda: tally([judged()]*2, asked()), "two of 'p'"),
        ('a table', lambda: questions({'a': Counterfactuals(plain().x[:30], plain().x[:30], plain().x[:30] > 0, torch.ones(30).long(),
            torch.ones(30), plain().domain, torch.ones(30))}), 'counterfactuals of images'))],
    ('evidence of pictures', lambda: evidence(picture_answers()), 'cfs must be answers about rows of a table, got'),
    ('words in an empty file', lambda d: letter(found()[:1], house=dict(notices=written('words.txt', '', d))), 'got the empty file'),
    *[(f'a PDF that loads {url}', lambda url=url: pdf_with(url), 'template must load nothing, got')
      for url in ('https://example.org/logo.png', 'file:///logo.png')],
)
def test_letters(row, tmp_path): refuses(row, tmp_path)


# Images, series, texts
def redness(x): return 20*x.mean((2, 3))
@cache
def halves():
    "The same model as a network whose last layers read pooled channels."
    net = nn.Sequential(nn.Conv2d(3, 3, 2, 2, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3, bias=False)).requires_grad_(False)
    net[0].weight.data, net[3].weight.data = torch.eye(3)[..., None, None].expand(3, 3, 2, 2)/4, 20*torch.eye(3)
    return net
WAYS = {GradualCF: dict(masking='gain', sigma=0, quantile=None), FIDO: dict(steps=3), Goyal: dict(donors=1)}
@cache
def of_photos(cls): return cls(halves(), images(channels=3), **WAYS[cls]).fit(photos())
def few(): return photos()[[0, 2, 3, 4, 5]]  # one red photograph
def seen(bad): return picture().explain(bad, target=1)
def each_channel(bounds): return images(block=3, bounds=bounds, channels=3)
def vectors(content, pack):
    "Reads vectors from a file of some kind, and keeps nothing of them."
    def call(d):
        if pack == 'zip':
            with zipfile.ZipFile(d/'v.zip', 'w') as z: z.writestr('v.txt', content)
        else: written(f'v.{pack}', gzip.compress(content) if pack == 'gz' else content, d)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv('GRADUAL_CF_CACHE', str(d/'cache'))
            try: load_glove(d/f'v.{pack}')
            finally: assert not [*d.glob('cache/*')]
    return call
def zipped(d, **files):
    with zipfile.ZipFile(d/'z.zip', 'w', zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items(): z.writestr(f'{name}.txt', text)
    return load_glove(d/'z.zip', cache=False)
def heard(bad): return reader().encode(bad)
def lines(): return ''.join(f'w{i} {i} {i/7}\n' for i in range(5000)).encode()
def archive(name, text): return lambda d: load_series(written(name, text, d))
CUBE = r'(n, length) or (n, channels, length)'


@table(
    *[(f'pictures: {name}', lambda bad=bad: seen(bad), says) for name, bad, says in (
        ('colours', np.zeros((2, 9, 10, 3), np.uint8), 'data must be … 1 channel … got'),
        ('beyond bounds', np.full((1, 9, 10), 1.5), 'data must … bounds [0, 1], got 1.5'),
        ('NaN', np.full((1, 9, 10), np.nan), 'data must … bounds … got nan'),
        ('another size', np.zeros((1, 12, 12), np.uint8), 'data must have rows of shape … got'),
        ('a text', ['text'], 'data must be an image file, got'), ('a number', [3], 'data must be images … got'),
        ('nothing', [], 'at least one'),
        ('RGBA', Image.new('RGBA', (10, 9)), "got … RGBA"))],
    ('pictures to fit of another size', lambda: GradualCF(pictures()[0], images(block=3), 'sparse').fit(pictures()[1][:, :, :8]), 'shape'),
    ('a block larger than pictures', lambda: GradualCF(pictures()[0], images(block=10), 'sparse').fit(pictures()[1]), 'block must be in 1..9 … got 10'),
    ('a value beyond the bounds of its channel', lambda: each_channel(((-2, 2), (0, 1), (-1, 3))).rows(torch.full((1, 3, 9, 10), 1.5)),
        '[-2, 2], [0, 1], [-1, 3], got 1.5'),
    *each([((0, 1), (0, 1)), ((0, 1), (1, 0), (0, 1)), 'white'], each_channel, 'bounds must … low < high, or such a pair for each channel, got', 'bounds '),
    ('a block that is none', lambda: picture().explain(pictures()[1][:1], 1, immutable=['nose']),
        "immutable must name blocks, from 'block at 0,0' to 'block at 6,9', got 'nose'"),
    ('a direction of blocks', lambda: picture().explain(pictures()[1][:1], 1, increase_only=['block at 0,0']), 'increase_only must be left out for images'),
    *[(f'{name} of {cls.__name__}', lambda cls=cls, call=call: call(cls), says) for cls in WAYS for name, call, says in (
        ('a photograph of another size', lambda cls: of_photos(cls).explain(photos()[:1, :8], [1]),
            'data must have rows of shape (3, 12, 10), as the training data, got (3, 8, 10)'),
        ('photographs of two sizes', lambda cls: of_photos(cls).explain([photos()[0], photos()[0, :8]], [1, 1]), 'data must be images of one size … got'),
        ('photographs unlike their regions', lambda cls: cls(halves(), images(channels=3, regions=np.arange(120).reshape(12, 10)//9),
        **WAYS[cls]).fit(photos()[:1, :8]), 'data must be images of 12×10, as the regions, got 8×10'))],
    *each([[[0., 1.]], [0, 1], [[0, 2]], [[-1, 0]]], lambda v: images(regions=v), 'regions must be … got', 'regions '),
    ('regions of three dimensions', lambda: images(regions=np.zeros((2, 2, 2), int)), 'regions must be … got'),
    ('no regions', lambda: images(regions=np.zeros((0, 3), int)), 'regions must be … got'),
    ('one donor', lambda: GradualCF(redness, images(channels=3), 'sparse', quantile=.2).fit(few()).explain(few()[1:], 0),
        'quantile must be None for a class with one training row, got 0.2 and class [0]'),
    ('one donor of Goyal', lambda: Goyal(halves(), images(channels=3), donors=2).fit(few()).edits(few()[1:], 0), 'donors must be at most 1 for class 0, got 2'),
    ('a picture of a text without answers', lambda: reader().explain(['a film'], immutable=['a', 'film'], k=5)[:0].plot(),
        'plot needs at least one answer, got none'),
    ('a file that is no picture', lambda d: pixels(written('b.png', 'no image', d)), 'data must be an image file, got … b.png'),
    ('a picture that is not there', lambda d: pixels(d/'none.png'), 'data must be an image file, got … none.png'),
    *[(f'a picture of {size} pixels', lambda d, size=size: pixels(str(written('x.png', png(size), d))),
        'data must be images of at most || data must be an image file') for size in (4097, 20_000)],
    *[(f'series: {name}', lambda make=make: make(waves()), says) for name, make, says in (
        ('turned', lambda X: series(X.swapaxes(1, 2)), 'for (60, 80, 2), which seems to be (n, length, channels)'),
        ('turned and named', lambda X: series(X.swapaxes(1, 2), ['a', 'b']), 'which seems to be (n, length, channels)'),
        ('one name of two', lambda X: series(X, ['a']), 'a name of its own for each of 2 channels, got 1'),
        ('a name twice', lambda X: series(X, ['a', 'a']), 'a name of its own'), ('one series', lambda X: series(X[0, 0]), CUBE),
        ('infinity', lambda X: series(np.where(X == X[3, 1, 5], np.inf, X)), 'finite'),
        ('a constant', lambda X: series(np.concatenate([X, np.ones((1, 2, 80))])), 'constant series in row 60'),
        ('a constant channel', lambda X: series(np.stack([X[:, 0], np.ones((60, 80))], 1)), "a constant 'channel 1'"),
        ('a gap', lambda X: series(np.where((np.arange(60) == 0)[:, None, None] & (np.arange(80) == 52), np.nan, X)),
            "no NaN inside a series, got one in row 0; series(…, missing='bridge'"),
        ('missing', lambda X: series(X, missing='drop'), "missing must be 'refuse' or 'bridge', got"),
        ('fs', lambda X: series(X, fs=0), 'fs must be above 0, got 0'),
        ('fs as a text', lambda X: series(X, fs='100'), "fs must be above 0, got '100'"),
        ('steepest', lambda X: series(X, steepest=-1), 'steepest must be above 0, got'),
        ('none', lambda X: series(X[:0]), 'X must be series (n, length) or'),
        ('all missing', lambda X: series(np.concatenate([X, np.full((1, 2, 80), np.nan)])), 'got 0 in row 60'),
        ('bounds of nobody', lambda X: series(X, bounds={'ecg': (0, 1)}), "bounds must name channels … got 'ecg'"),
        ('bounds the wrong way', lambda X: series(X, bounds={'channel 0': (1, 0)}), 'bounds must … low ≤ high, got'),
        ('bounds that are no pair', lambda X: series(X, bounds={'channel 0': 3}), "bounds must be pairs … got 3 for 'channel 0'"),
        ('a lock of nobody', lambda X: series(X, immutable=['ecg']), 'immutable must name channels … got'),
        ('a lock of parts of points', lambda X: series(X, immutable=[slice(0., .4)]),
            'immutable must have times as slices of points … got'), ('words', lambda X: series([['a', 'b']]), 'data must be series'))],
    *[(f'asked about {name}', lambda ask=ask: wave().explain(ask(waves()), 1), says) for name, ask, says in (
        ('short series', lambda X: X[:, :, :70], 'data must have 80 points a series, as the training data, got 70 in row 0'),
        ('long series', lambda X: np.concatenate([X, X], 2), 'data must have 80 points … got 160'),
        ('turned series', lambda X: X.swapaxes(1, 2), 'got shape (60, 80, 2), which seems to be (n, length, channels)'),
        ('one channel', lambda X: X[:, :1], 'data must be series (n, 2, 80) … got'),
        ('constant series', lambda X: X*0, 'constant series in row 0'),
        ('series with gaps', lambda X: np.where(np.arange(80) == 7, np.nan, X), 'no NaN inside'))],
    ('series of one class', lambda: GradualCF(Level(), series(waves() + 5), 'sparse').fit(waves() + 5).explain(waves()[:1] + 5, 0),
        'target must be a class that the model predicts for some training row, got'),
    ('a lock of a channel that is none', lambda: wave().explain(waves()[:8], 1, immutable=['heart']), "immutable must name channels … got 'heart'"),
    ('locks of other series', lambda: wave().explain(waves()[:8], 1, immutable=[['ecg'], []]), 'immutable must be … one for each of 8, got 2'),
    ('bounds of a channel that is none', lambda: wave().explain(waves()[:2], 1, bounds={'heart': (0, 1)}),
        'bounds must name channels … got'), ('bounds without room', lambda: wave().explain(waves()[:2], 1, bounds={'ecg': (90, None)}),
        'bounds must leave room … got'),
    ('words in an archive', archive('c.tsv', '1\tx\ty\n'), 'path must be a .ts or .tsv file … got'),
    ('an empty archive', archive('d.ts', '@data\n'), 'path must be a .ts or .tsv file … got'),
    ('no archive', lambda d: load_series(d/'nowhere.ts'), 'path must be … got'),
    ('an archive without labels', archive('f.ts', '@classLabel false\n@data\n1,2:3,4\n'), 'have no labels'),
    *[(f'vectors in {pack}: {says}', vectors(content, pack), says) for pack, content, says in (
        ('txt', b'good 1 0\nbad -1\n', 'line 2 must have 2 numbers'), ('gz', b'good 1 0\ngood 1 0\n', 'line 2 must not repeat'),
        ('zip', b'good 1 0\n\nbad 1 0\n', 'line 2 must be a word'), ('txt', b'good 1 x\n', 'line 1 must hold numbers'),
        ('gz', b'good 1 inf\n', 'line 1 must hold finite'), ('zip', b'g\xff 1 0\n', 'line 1 must be UTF-8'),
        ('txt', b'', 'got none in 0 lines'))],
    ('half of an archive', lambda d: load_glove(written('v.gz', gzip.compress(lines())[:-2000], d), cache=False), 'whole file'),
    ('no zip', lambda d: load_glove(written('v.zip', b'PK not a zip', d), cache=False), 'whole file'),
    ('no vectors', lambda d: load_glove(d/'none.txt'), 'none.txt'),
    ('two members', lambda d: zipped(d, a='x 1\n', b='y 2\n'), 'member must be one of … got'),
    ('a line without end', lambda d: zipped(d, v='w 0.5 0.5\n' + '\0'*2**22), 'line 2 must have less than 1,048,576 bytes'),
    *each(['', ' \n\t', 'zanzibar', '<br />'], lambda bad: heard(['a film', bad]), 'data must have a known word in every text, got none in row 1', 'a text '),
    ('no text', lambda: heard([None]), 'got NoneType in row 0'),
    ('similarity', lambda: sentences(reviews()[1], similarity=2), 'similarity must … got'),
    ('allow', lambda: sentences(reviews()[1], allow=['the!']), 'allow must … got'),
    ('reads', lambda: sentences(reviews()[1], reads='yes'), "reads must be a rule of reads_well, None or 'auto', got 'yes'"),
    ('bounds of texts', lambda: reader().explain(['a film'], bounds={'film': (0, 1)}), 'bounds must be left out for texts'),
    ('locks of other texts', lambda: reader().explain(['a film'], immutable=[['film'], []]), 'one for each row (1), got 2'),
    *each([(), (3., 1.)], lambda most: reads_well(most=most, tagger=None), 'most must be drops from strict to lax, got', 'most='),
    *each([[], ['zanzibar qwerty']], lambda t: reads_well(t, tagger=None).learn(reviews()[1].words, word_spans),
        'texts must hold words of the vocabulary, got none in', 'texts to learn from '),
    ('an image of two channels', lambda: images(block=3, channels=2), 'channels must be 1 or 3, got 2'),
    ('texts of no such column', lambda: reader().explain(pd.DataFrame(dict(words=['a']))), "data must have a column 'text', got ['words']"),
    ('words that go, of a network of places', lambda: sentences(reviews()[1], leave_out=True), 'leave_out must be False with vectors'),
    ('more entries than words', lambda: corpus_vectors(reviews()[0], 100_000), 'dim must be at most the number of words'),
)
def test_kinds_of_data(row, tmp_path): refuses(row, tmp_path)


# Other methods, measures, and the paper
QUICK = {Wachter: [dict(aim=0.), dict(aim=1.2), dict(lam=0.), dict(rounds=0), dict(decay=0.), dict(tol=-.1)],
    CEM: [dict(kappa=-1.), dict(beta=-1.), dict(c=0.), dict(steps=0), dict(autoencoder='no')],
         GrowingSpheres: [dict(samples=0), dict(radius=0.), dict(select='last')],
             LORE: [dict(samples=10), dict(generations=-1), dict(eps=-.1), dict(least=0), dict(together=0)]}


class Twice(nn.Module):
    "A network that uses a layer twice."
    def __init__(self): super().__init__(); self.act, self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x): return self.b(self.act(self.a(self.act(x))))


def blind(cls): return cls(lambda x: cf().model(x).detach(), domain()).fit(X()).explain(X()[:3])
def other_logits(): return halves()[:1], nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3))
def fresh_named():
    net = fresh()
    net.classes_ = ('refused', 'granted')
    return net
def two_layers(): return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3))


@table(
    *[row for cls, bad in QUICK.items() for row in (
        (f'{cls.__name__}: a setting', lambda cls=cls: cls(cf().model, domain(), nonsense=1), 'has no nonsense; it takes tau,', TypeError),
        (f'{cls.__name__}: before fit', lambda cls=cls: cls(cf().model, cf().domain).explain(X()[:2]), 'fit must be called'),
        (f'{cls.__name__}: target', lambda cls=cls: cls(cf().model, domain()).fit(X()).explain(X()[:2], target=2), 'target must be in 0..1, got 2'),
        *[(f'{cls.__name__}: {called(told)}', lambda cls=cls, told=told: cls(cf().model, domain(), **told),
            f'{next(iter(told))} must … got') for told in bad])],
    *[(f'{cls.__name__} without a gradient', lambda cls=cls: blind(cls), 'model must be differentiable … GrowingSpheres and LORE need none')
        for cls in (Wachter, CEM)],
    *[(f'{cls.__name__} on {kind}', lambda cls=cls, of=of: cls(plain().model, of()), f"X must be of kind … for {cls.__name__}, got kind '{kind}'")
        for cls, of, kind in (
        (LORE, lambda: plain().domain, 'other'), (ABELE, lambda: plain().domain, 'other'), (LORE, images, 'image'),
        (ABELE, domain, 'table'), (FIDO, domain, 'table'), (Goyal, domain, 'table'))],
    ('because of other columns', lambda: because(answers(), LORE(own().model, tabular(N()), samples=200, generations=2).fit(N())),
        'lore must be fitted on rows'),
    ('a depth of ABELE', lambda: ABELE(pictures()[0], images(), depth=3), 'ABELE has no depth; it takes tau,', TypeError),
    ('exemplars of two images', lambda: ABELE(pictures()[0], images(), latent=2, width=8,
        batches=2).fit(pictures()[1]).exemplars(pictures()[1][:2]), 'one image, got 2'),
    ('infill', lambda: FIDO(redness, images(channels=3), infill='paint'), "infill must be … got 'paint'"),
    ('FIDO before fit', lambda: FIDO(redness, images(channels=3)).deletion(photos()[:1]), 'fit must be called'),
    ('FIDO without a gradient', lambda: FIDO(lambda x: redness(x).detach(), images(channels=3),
        steps=2).fit(photos()).deletion(photos()[:1]), 'model must be differentiable … got'),
    ('a function in halves', lambda: Goyal(redness, images(channels=3)).fit(photos()), 'halves must be given for a model … got'),
    ('halves of another network', lambda: Goyal(halves(), images(channels=3), halves=other_logits()).fit(photos()), "halves must give the model's logits"),
    *[(f'relevance {name}', lambda net=net, x=x, told=told: lrp(net(), x(), **told), says) for name, net, x, told, says in (
        ('of a function', lambda: (lambda x: x), lambda: torch.rand(1, 2), {}, 'model must be a torch module … got function'),
        ('of LayerNorm', lambda: nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), lambda: torch.rand(1, 2), {}, 'none for LayerNorm'),
        ('of a layer that comes twice', Twice, lambda: torch.full((2, 3), 9.), dict(target=0), 'every layer once'),
        ('of a class that is none', two_layers, lambda: torch.rand(2, 6), dict(target=3), 'target must be in 0..2, got 3'),
        ('of no row', two_layers, lambda: torch.rand(0, 6), {}, 'at least one row'),
        ('of probabilities', lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)), lambda: torch.rand(2, 2), {}, "remove the softmax, or say predictor(net, domain, kind='proba', scaled=False)"))],
    ('relevance of a label that is none', lambda: relevance(fresh_named(), domain(), X()[:2], 'lost'), "'refused', 'granted', got 'lost'"),
    ('a start that nobody knows', lambda: init_composite(torch.zeros(2, 3), 'zeros'), "init must be 'normal' or 'input', got 'zeros'"),
    ('bounds the wrong way', lambda: box(1., 0.), 'bounds must have low ≤ high, got 1.0 and 0.0'),
    *[(f'animals: {called(told)}', lambda told=told: load_animals(**told), f'{next(iter(told))} must be a whole number of at least 1, got')
        for told in (dict(rows=0), dict(tests=1.5), dict(rows='many'))],
    ('a table that is none', lambda d: reproduce('table1', d), "name must be one of … got 'table1'"),
    ('a table of no row', lambda d: reproduce('table6', d, rows=0), 'rows must be … got'),
    ('a table without data', lambda d: reproduce('table4', d, path=d), 'path must be a data folder'),
    ('results of another file', lambda: results('../README.md'), "name must be that of a committed result, such as … got '../README.md'"),
    ('labels of other rows', lambda: bootstrap(lambda x, y: None, X(), [1, 0]), 'y must have a label for each row (90), got 2'),
    ('LORE of other classes', lambda: because(own('line', 'text').explain(N()[:2]), LORE(own().model, own().domain, samples=40).fit(N())),
        'lore must have the classes of the answers'),
    *each([42, 50], lambda v: LORE(cf().model, domain(), samples=v), 'samples must be a multiple of 4, got {v}', 'samples='),
)
def test_methods(row, tmp_path): refuses(row, tmp_path)


# The command
class Usage(Exception): "A line on stderr, and exit code 2."


def command(*args):
    "Runs the command in this process."
    done = CliRunner().invoke(app, list(map(str, args)), env=dict(GRADUAL_CF_DATA=None))
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit), done.output
    raise Usage(done.stderr)


def batch_of(d, name):
    "Rows, a pickle, and a network that does not say what it reads; of these one is the model."
    X().to_parquet(d/'rows.parquet'), (d/'m.pkl').write_bytes(b'\x80\x04K\x01.'), save_model(fresh(), d/'m.safetensors')
    command('batch', d/'rows.parquet', '--out', d/'out', '--model', d/name)


@table(*[(' '.join(map(str, args)), lambda args=args: command(*args), says, Usage) for args, says in (
    *[(('explain', 'breast_cancer', *more), says) for more, says in (
        (('--row', 999), 'row must be in 0..142, got 999'), (('--row', 0, '--wanted', 7), "labels 'malignant', 'benign', got '7'"),
        (('--row', 0, '--immutable', 'height'), "['height']"), (('--row', 0, '--bound', 'mean radius'), 'NAME=LOW..HIGH'),
        (('--row', 0, '--bound', 'mean radius=9..1'), 'mean radius'), (('--row', 0, '--increase-only', 'height'), 'height'),
        (('--row', 0, '--max-changes', 0), '--max-changes'),
        (('--row', 0, '--csv', 'none.csv'), 'none.csv'), (('--row', 0, '--model', 'none.safetensors'), 'none.safetensors'), ((), '--row'),
        (('--row', 3, '--several', 0), 'several'), (('--row', 3, '--cost', 'none.json'), 'none.json'))],
    *[(('letter', 'loans', *more), says) for more, says in (
        (('--row', 8, '--notices', 'us-reg-b'), "--notices must come with the lender's own words"),
        (('--row', 8, '--format', 'pdf'), '--out must name a file for pdf, got none'))],
    (('explain', 'titanic', '--row', 0), 'titanic'), (('explain', 'nope', '--row', 0), 'digits … heloc'),
    (('explain', 'heloc', '--row', 0, '--data', 'nowhere'), 'heloc_dataset_v1.csv'), (('audit', 'breast_cancer', '--rows', 0), '--rows'),
    (('explain', 'loans', '--row', 8, '--intent', 'beleivable'), "--intent must be one of ['sparse', 'robust', 'plausible', 'paper']"),
    (('explode',), 'explode'))],
    *[(f'batch of {name}', lambda d, name=name: batch_of(d, name), says, Usage) for name, says in (
        ('m.pkl', 'safetensors'), ('none.safetensors', 'none.safetensors'), ('m.safetensors', '--dataset'))],
    ('explain a CSV of other columns', lambda d: command('explain', 'breast_cancer', '--csv', written('x.csv', 'a\n1\n', d), '--row', 0), 'missing', Usage))
def test_command(row, tmp_path, networks): refuses(row, tmp_path)
