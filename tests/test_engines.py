"""Rows where they are: one function for pandas, Polars, Arrow, DuckDB, `datasets`, Dask, Ray and Spark; what each says equals `explain`, bit by bit.

Each engine skips where its library is missing; Spark wants Java too.
"""
import os
import pickle
import shutil
import signal
import sys
import threading
from functools import cache
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from gradual_cf.all import GradualCF, as_batches, explain_dataset, tabular
from gradual_cf.scale.batch import _ddl, _loaded

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.filterwarnings('ignore:PySpark does not yet fully support pandas:FutureWarning')  # of any pandas 3, whatever is asked


def people(n, seed=0):
    "Loan applications with numbers, a category, a date and a truth value."
    r = np.random.default_rng(seed)
    return pd.DataFrame(dict(
        income=r.normal(50, 12, n).round(1), age=r.integers(20, 70, n), home=r.choice(['own', 'rent', 'other'], n),
        since=pd.Timestamp('2020-01-01') + pd.to_timedelta(r.integers(0, 900, n), 'D'), member=r.random(n) < .5))


@cache
def lender():
    "Trees of LightGBM, fitted on applications; they do not read the date."
    df = people(400)
    y = (df.income + 6*(df.home == 'own') + df.age/5 > 63).map({True: 'granted', False: 'refused'})
    X = df.drop(columns='since').astype(dict(home='category'))
    model = lightgbm.LGBMClassifier(n_estimators=12, num_leaves=6, verbose=-1, n_jobs=1).fit(X, y)
    return GradualCF(model, tabular(X), 'sparse').fit(X)


@cache
def asked():
    "Applications with an account number; a date that nobody reads comes too, and the columns are in another order."
    return people(48, 1)[['member', 'since', 'home', 'age', 'income']].assign(customer=2**53 + 1 + np.arange(48))


@cache
def f(): return as_batches(lender(), 'granted', keep=dict(customer='int64', since='timestamp[us]'))
@cache
def expected():
    "The same of `explain`, as an Arrow table."
    cfs, rows = lender().explain(asked(), 'granted'), asked()
    told = dict(customer=rows.customer, since=rows.since) | {f'cf:{c}': cfs.raw[c].astype(object) for c in cfs.raw} | dict(cfs.df().filter(like='cf_'))
    return pa.table({n: pa.array(told[n], type=t, from_pandas=True) for n,t in zip(f().schema.names, f().schema.types) if n != 'cf_unread'})


def equal(out):
    "Whether answers of any engine, in any order, are those of `explain` in every bit."
    table = pa.Table.from_pandas(out, preserve_index=False) if isinstance(out, pd.DataFrame) else pa.table(out)
    return table.select(expected().column_names).cast(expected().schema).sort_by('customer').replace_schema_metadata(None).equals(expected())


def polars_of(rows): return pytest.importorskip('polars', reason='need polars').from_arrow(pa.Table.from_pandas(rows))


# ---- one door
FRAMES = dict(
    pandas=lambda rows: rows, arrow=pa.Table.from_pandas, batch=lambda rows: pa.Table.from_pandas(rows).to_batches()[0],
    reader=lambda rows: pa.Table.from_pandas(rows).to_reader(), arrow_dtypes=lambda rows: rows.convert_dtypes(dtype_backend='pyarrow'),
    polars=polars_of, lazy=lambda rows: polars_of(rows).lazy(),
    duckdb=lambda rows: pytest.importorskip('duckdb', reason='need DuckDB').from_df(rows),
    datasets=lambda rows: pytest.importorskip('datasets').Dataset.from_pandas(rows))


@pytest.mark.night
@pytest.mark.parametrize('kind', FRAMES)
def test_every_frame_goes_in_and_comes_out_as_it_came(kind, tmp_path):
    "A batch, `explain`, `explain_dataset`; the columns that are read are found by name."
    given = FRAMES[kind](asked())
    out = f()(given)
    assert equal(out) and type(out).__name__ == dict(pandas='DataFrame', arrow_dtypes='DataFrame', batch='RecordBatch', polars='DataFrame', lazy='DataFrame').get(kind, 'Table')
    assert ('polars' in type(out).__module__) == (kind in ('polars', 'lazy'))
    cfs = lender().explain(FRAMES[kind](asked()), 'granted')
    assert (cfs.prob == expected()['cf_prob'].to_numpy()).all()
    if kind in ('arrow', 'batch', 'arrow_dtypes'): return  # as the others
    answers = pd.read_parquet(explain_dataset(lender(), FRAMES[kind](asked()), tmp_path/'out', 'granted', batch_size=20))
    assert equal(answers) and answers.cf_row.tolist() == list(range(48))


@pytest.mark.parametrize('kind', ['reader', 'polars', 'lazy', 'duckdb', 'datasets'])
def test_a_table_is_described_and_fitted_in_any_frame(kind):
    train = people(60)
    domain, known = tabular(FRAMES[kind](train)), tabular(train)
    rows = FRAMES[kind](train[train.columns[::-1]].assign(customer=1))
    assert torch.equal(domain.encode(rows).x, known.encode(train).x)
    assert [(c.name, type(c)) for c in domain.features] == [(c.name, type(c)) for c in known.features]


# ---- what a batch promises
def test_it_travels_as_bytes_and_is_unpacked_once_in_a_process():
    one, two = pickle.loads(pickle.dumps(f())), pickle.loads(pickle.dumps(f()))
    before = _loaded.cache_info().misses
    assert equal(one(asked())) and equal(two(asked())) and _loaded.cache_info().misses == before
    assert len(pickle.dumps(f())) < 400_000 and b'LGBM' not in pickle.dumps(f())  # the text of the trees, no object of the library


def test_a_folder_and_an_explainer_are_one_and_the_folder_may_go(tmp_path):
    of_folder = as_batches(lender().save(tmp_path/'cf'), 'granted', keep=dict(customer='int64', since='timestamp[us]'))
    shutil.rmtree(tmp_path/'cf')
    assert equal(of_folder(asked())) and of_folder.schema == f().schema


def test_a_model_that_no_folder_holds_travels_as_it_is():
    import cloudpickle
    X = people(80)[['income', 'age']]
    cf = GradualCF(lambda x: torch.stack([.8 - x.sum(1), x.sum(1) - .8], 1), tabular(X), 'sparse', sigma=0).fit(X)
    g = cloudpickle.loads(cloudpickle.dumps(as_batches(cf)))
    assert (g(X)['cf_prob'].to_numpy() == cf.explain(X).prob).all()


def test_schema_ddl_and_meta_say_what_comes_back():
    out = f()(pa.Table.from_pandas(asked()))
    assert out.schema == f().schema == pa.Table.from_pandas(f().meta, preserve_index=False).schema.remove_metadata()
    assert f()(asked()).dtypes.equals(f().meta.dtypes)
    assert f().ddl.startswith('`customer` bigint, `since` timestamp_ntz, `cf:income` double, `cf:age` bigint, `cf:home` string, `cf:member` boolean, `cf_target` string')
    assert [_ddl(t) for t in (pa.int32(), pa.date32(), pa.float32(), pa.timestamp('us', 'UTC'))] == ['int', 'date', 'float', 'timestamp']


BAD = dict(  # What may be wrong with a row: its cells -> its reason
    level=(dict(home='castle'), "'castle' in column 'home' is no known level"), missing=(dict(income=None), "column 'income' is missing"),
    text=(dict(age='old'), "'old' in column 'age' is no finite number"), infinite=(dict(income=np.inf), "inf in column 'income' is no finite number"),
    nulls=(dict.fromkeys(['income', 'age', 'home', 'member']), "column 'income' is missing; column 'age' is missing; column 'home' is missing; column 'member' is missing"),
    label=(dict(want='loved'), "target must be one of the labels 'granted', 'refused', got 'loved'"), unlabelled=(dict(want=None), 'target must be'),
    account=(dict(customer='none'), "column 'customer' holds no int64"))


@pytest.mark.parametrize('seed', range(4))
def test_a_line_for_every_row_whatever_is_wrong_with_it(seed):
    "Any kinds of bad rows among good ones, ids that come twice, partitions of any size, empty ones too."
    r = np.random.default_rng(seed)
    rows = asked().assign(want='granted', customer=r.integers(0, 9, 48)).astype(object)
    wrong = {int(i): str(r.choice(list(BAD))) for i in r.choice(48, 12, replace=False)}
    for i,kind in wrong.items():
        for c,v in BAD[kind][0].items(): rows.at[i, c] = v
    g = as_batches(lender(), 'want', keep=dict(customer='int64'))
    cuts = [0, *sorted(r.integers(0, 48, 3)), 48]
    out = pd.concat([g(rows[a:b]) for a,b in zip(cuts, cuts[1:])])
    assert len(out) == 48 and out.index.tolist() == list(range(48))
    for i in range(48):
        if i not in wrong: assert out.cf_unread.isna()[i] and out.cf_prob[i] == expected()['cf_prob'][i].as_py() and out.customer[i] == rows.customer[i]
        else: assert out.cf_unread[i].startswith(BAD[wrong[i]][1]), (wrong[i], out.cf_unread[i])
    read = [i for i,kind in wrong.items() if kind != 'account']
    assert not out.cf_valid[read].any() and out.loc[read, [c for c in out if c[:3] == 'cf:']].isna().all(axis=None)


def test_another_schema_is_said_at_once_on_every_line(monkeypatch):
    monkeypatch.setattr(GradualCF, 'explain', None)  # nobody asks
    for given in (asked().drop(columns='age'), pa.Table.from_pandas(asked().rename(columns=dict(age='years')))):
        out = pa.table(f()(given))
        assert set(out['cf_unread'].to_pylist()) == {"the batch lacks the columns ['age']"} and out['customer'].to_pylist() == asked().customer.tolist()
    out = f()(asked().drop(columns='customer'))
    assert set(out.cf_unread) == {"the batch lacks the columns ['customer']"} and out.customer.isna().all()


def test_an_empty_batch_has_the_schema():
    for given in (asked()[:0], pa.Table.from_pandas(asked()[:0]), pa.RecordBatch.from_pandas(asked()[:0])):
        out = f()(given)
        assert len(out) == 0 and pa.table(out).schema.remove_metadata() == f().schema


@pytest.mark.night
def test_threads_are_left_as_found_by_many_askers():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        askers = [threading.Thread(target=lambda: f()(asked()[:9])) for _ in range(4)]
        for t in askers: t.start()
        for t in askers: t.join()
        assert torch.get_num_threads() == 3
    finally: torch.set_num_threads(before)


# ---- engines
def test_polars_lazy_and_streamed(tmp_path):
    pl = pytest.importorskip('polars', reason='need polars')
    asked().to_parquet(tmp_path/'rows.parquet')
    schema = pl.from_arrow(f().schema.empty_table()).schema
    lazy = pl.scan_parquet(tmp_path/'rows.parquet').map_batches(f(), schema=schema, streamable=True)
    assert equal(lazy.collect())
    lazy.sink_parquet(tmp_path/'out.parquet')
    assert equal(pd.read_parquet(tmp_path/'out.parquet'))


@pytest.mark.night
def test_datasets_and_duckdb():
    datasets, duckdb = pytest.importorskip('datasets'), pytest.importorskip('duckdb', reason='need DuckDB')
    ds = datasets.Dataset.from_pandas(asked()).with_format('arrow')
    assert equal(ds.map(f(), batched=True, batch_size=20, remove_columns=ds.column_names, features=datasets.Features.from_arrow_schema(f().schema))[:])
    rows = asked()  # noqa: F841
    reader = duckdb.connect().sql('select * from rows').to_arrow_reader(20)
    assert equal(pa.Table.from_batches([f()(b) for b in reader]))


@pytest.mark.night
def test_dask():
    dd = pytest.importorskip('dask.dataframe', reason='need Dask (make .venv/.extras)')
    out = dd.from_pandas(asked(), npartitions=3).map_partitions(f(), meta=f().meta)
    assert equal(out.compute(scheduler='threads'))
    assert out.cf_valid.mean().compute(scheduler='sync') > .5


@pytest.fixture(scope='module')
def environment():
    "What workers of engines find: this package, one thread, and room in the caches of their own."
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYTHONPATH', f'{ROOT}{os.pathsep}{Path(__file__).parent}'), patch.setenv('OMP_NUM_THREADS', '1')
        patch.setenv('PYSPARK_PYTHON', sys.executable), patch.setenv('PYSPARK_DRIVER_PYTHON', sys.executable)
        patch.setenv('RAY_AUTH_MODE', 'disabled'), patch.setenv('RAY_raylet_start_wait_time_s', '300')
        yield patch


@pytest.mark.night  # a cluster of its own; by day Dask and Polars hand out batches
@pytest.mark.filterwarnings('ignore:`use_:DeprecationWarning', 'ignore::ResourceWarning')  # Ray Data reads old settings of its own, and leaves files to the collector
def test_ray(environment):
    ray = pytest.importorskip('ray', reason='need Ray (make .venv/.extras)')
    ray.init(address='local', num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100*2**20)
    try: out = ray.data.from_arrow(pa.Table.from_pandas(asked())).map_batches(f(), batch_format='pyarrow', batch_size=24).take_all()
    finally: ray.shutdown()
    assert equal(pa.Table.from_pylist(out, schema=f().schema))


@pytest.fixture(scope='module')
def spark(environment):
    "A session of two workers in which a task has four tries."
    pytest.importorskip('pyspark', reason='need PySpark (.ci/extras --run spark)')
    if not shutil.which('java'): pytest.skip('need Java')
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master('local[2,4]').config('spark.ui.enabled', 'false').config('spark.ui.showConsoleProgress', 'false').config('spark.sql.shuffle.partitions', '3').getOrCreate()
    session.sparkContext.setLogLevel('OFF')
    yield session
    session.stop()


def test_spark_takes_three_lines(spark):
    sdf = spark.createDataFrame(asked())
    assert equal(sdf.mapInPandas(f().batches, f().ddl).toArrow())
    assert equal(sdf.repartition(3).mapInArrow(f().batches, f().ddl).toArrow())


def test_spark_loses_nothing_with_a_worker(spark, tmp_path):
    "The worker that answers first kills itself, once; the other of its kind takes its rows."
    mark = str(tmp_path/'killed')
    def batches(some, f=f()):
        for b in some:
            try: os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError: yield f(b)
            else: os.kill(os.getpid(), signal.SIGKILL)
    assert equal(spark.createDataFrame(asked()).repartition(3).mapInArrow(batches, f().ddl).toArrow()) and os.path.exists(mark)


def test_spark_and_rows_of_every_kind(spark):
    rows = pd.DataFrame(dict(income=[40., None, 40.], age=[30, 30, 30], home=['rent', 'rent', 'castle'], member=[True, None, True], since=pd.Timestamp('2020-01-01'), customer=[7, 7, 8]))
    out = spark.createDataFrame(rows).repartition(5).mapInPandas(f().batches, f().ddl).toArrow().to_pandas()
    assert sorted(out.customer) == [7, 7, 8] and out.cf_unread.notna().sum() == 2
    lacking = spark.createDataFrame(rows.drop(columns='age')).mapInPandas(f().batches, f().ddl).toArrow().to_pandas()
    assert len(lacking) == 3 and set(lacking.cf_unread) == {"the batch lacks the columns ['age']"}
