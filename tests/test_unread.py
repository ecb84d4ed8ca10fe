"""A row that cannot be read has a reason and no answer; the others are answered as they would be without it."""
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from made import same
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gradual_cf.all import Counterfactuals, GradualCF, confirm, explain_dataset, letter, measures, tabular
from gradual_cf.scale.batch import check_folder

def applicants(n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(dict(
        income=rng.normal(50, 10, n).round(1), age=rng.integers(20, 70, n), since=pd.Timestamp('2020-01-01') + pd.to_timedelta(rng.integers(0, 900, n), 'D'),
        grade=pd.Categorical(rng.choice(['low', 'mid', 'high'], n), ['low', 'mid', 'high'], ordered=True), city=pd.Categorical(rng.choice(['A', 'B', 'C'], n))))
    return X, (X.income + 5*(X.city == 'A') + 4*X.grade.cat.codes + rng.normal(0, 3, n) > 56).astype(int)


def linear():
    X, y = applicants()
    coded = make_column_transformer((OneHotEncoder(), ['city', 'grade']), ('passthrough', ['income', 'age']))
    return make_pipeline(coded, LogisticRegression(max_iter=5000)).fit(X, y), X


def trees():
    X, y = applicants()
    X = X.drop(columns='since').assign(grade=X.grade.cat.codes)
    return HistGradientBoostingClassifier(max_leaf_nodes=6, max_iter=20, categorical_features='from_dtype', random_state=0).fit(X, y), X


@pytest.fixture(scope='module', params=[linear, trees])
def asked(request):
    model, X = request.param()
    return GradualCF(model, tabular(X), 'sparse').fit(X), X[model.predict(X) == 0].head(12).set_axis(list('abcdefghijkl'))


def spoilt(rows, *bad):
    "Rows with other cells: (row, column, cell)."
    out = rows.copy()
    for i, c, cell in bad:
        numbers = pd.api.types.is_numeric_dtype(out[c])
        out[c] = out[c].astype(float if numbers and isinstance(cell, float) else object)
        out.loc[i, c] = cell
    return out


BAD = ('b', 'city', 'Atlantis'), ('d', 'income', 'much'), ('d', 'age', np.nan), ('e', 'income', np.inf), ('f', 'grade', np.nan)


def test_a_row_that_cannot_be_read_is_invalid_with_its_reason(asked):
    cf, rows = asked
    given = spoilt(rows, *BAD)
    cfs, without = cf.explain(given, 1), cf.explain(rows.drop(index=list('bdef')), 1)
    assert cfs.unread.tolist() == [i in 'bdef' for i in rows.index]
    same(cfs[~cfs.unread], without)
    told = cfs.df().loc[list('bdef')]
    assert not told.cf_valid.any() and told.cf_prob.isna().all() and not cfs.changed[cfs.unread].any()
    assert told.cf_proof.tolist() == [
        "not read: 'Atlantis' in column 'city' is no known level",
        "not read: 'much' in column 'income' is no finite number; column 'age' is missing",
        "not read: inf in column 'income' is no finite number", "not read: column 'grade' is missing"]
    pd.testing.assert_frame_equal(cfs.raw.loc[list('bdef')].astype(object), given.loc[list('bdef')].astype(object))
    assert "; 4 not read: 'Atlantis' in column 'city' is no known level and 3 other reasons" in repr(cfs)
    assert "row b: to be class 1, not read: 'Atlantis'" in cfs.text() and '&#39;Atlantis&#39;' in cfs._repr_html_() and 'nan' not in cfs.text()
    assert set(cfs.changes().row) <= set(np.flatnonzero(~cfs.unread)) and len(cfs.quality()) == 12
    cfs.plot(most=12)


@pytest.mark.night
@pytest.mark.parametrize('form', ['arrow', 'dicts'])
def test_rows_of_other_makes(asked, form):
    cf, rows = asked
    plain = rows.assign(city=rows.city.astype(object), grade=rows.grade.astype(object)).reset_index(drop=True)
    plain.loc[1, 'city'] = 'Atlantis'
    if form == 'arrow': given = pa.Table.from_pandas(plain)
    else:
        given = plain.to_dict('records')
        given[1].pop('age')
    try: cf.explain(plain.drop(index=1), 1)
    except ValueError: pytest.skip('a category that the training rows have otherwise')
    cfs = cf.explain(given, 1)
    assert cfs.unread.tolist() == [i == 1 for i in range(12)]
    np.testing.assert_array_equal(cfs[~cfs.unread].xp, cf.explain(plain.drop(index=1), 1).xp)


def test_what_is_made_of_answers_goes_on(asked, tmp_path):
    cf, rows = asked
    given = spoilt(rows, ('b', 'city', 'Atlantis'), ('e', 'income', np.inf))
    cfs, without = cf.explain(given, 1), cf.explain(rows.drop(index=['b', 'e']), 1)
    pd.testing.assert_frame_equal(measures(cf, cfs), measures(cf, without))
    assert cfs.prove().verdict['b'].startswith("not read: 'Atlantis'")
    assert cfs.plan().changes().drop(columns='row').equals(without.plan().changes().drop(columns='row'))
    assert cfs.region().drop(columns='row').equals(without.region().drop(columns='row'))
    assert np.isnan(confirm(cfs, [cf.model]).confirmed[cfs.unread]).all()
    again = Counterfactuals.load(cfs.save(tmp_path/'a.zip'), cf.domain)
    assert again.unread.tolist() == cfs.unread.tolist() and again.proof == cfs.proof
    alone = cf.explain(given, 1, limit=20)
    assert alone.proof[1].startswith('not read') and not alone.proof[0].startswith('not read')


@pytest.mark.parametrize('format', ['md', 'html', 'json'])
def test_a_letter_says_that_the_row_was_not_read(asked, format):
    cf, rows = asked
    cfs = cf.explain(spoilt(rows, ('b', 'city', '<Atlantis>')), 1)
    texts, without = letter(cfs, format=format), letter(cf.explain(rows.drop(index='b'), 1), format=format)
    assert texts[:1] + texts[2:] == without
    assert 'Atlantis' in texts[1] and ('<Atlantis>' in texts[1]) == (format == 'json')
    slots = {'sender', 'addressee', 'product', 'contact', 'notices', 'rules', 'paper'}
    if format == 'json': assert set(json.loads(texts[1])) - slots == {'row', 'date', 'language', 'why', 'checksum', 'sealed'}
    else: assert 'could not be read' in texts[1] and 'would have changed the decision' not in texts[1]
    others = letter(cf.explain(spoilt(rows, ('b', 'city', '<Atlantis>')), 1, k=5), format=format)
    assert others[1] == texts[1] and len(others) == 12


def test_a_folder_goes_on_and_keeps_the_reason(asked, tmp_path):
    cf, rows = asked
    given = rows.astype({'city': object, 'age': float}).reset_index(drop=True)
    given.loc[1, 'city'], given.loc[5, 'age'] = 'Atlantis', np.nan
    given.loc[[8, 9, 10, 11], 'city'] = 'Atlantis'   # a part of nothing else
    out = pd.read_parquet(explain_dataset(cf, given, tmp_path/'run', 1, batch_size=4))
    bad = [1, 5, 8, 9, 10, 11]
    assert out.cf_unread.notna().to_numpy().nonzero()[0].tolist() == bad
    assert out.cf_unread[1] == "'Atlantis' in column 'city' is no known level" and out.cf_unread[5] == "column 'age' is missing"
    assert not out.cf_valid[bad].any() and out['cf:city'][bad].isna().all()
    whole = cf.explain(given, 1)
    assert out.cf_valid.tolist() == whole.valid.tolist() and np.allclose(out['cf:income'].drop(bad), whole.raw.income.drop(bad)) and out['cf:income'][bad].isna().all()
    assert check_folder(tmp_path/'run')['faults'] == []
    assert explain_dataset(cf, given, tmp_path/'run', 1, batch_size=4)
