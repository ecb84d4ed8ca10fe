"""Ten tables, each with a card and a split by seed."""
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

TRAIN, HELD = 5000, 2000 # Most rows that train and that judge


@dataclass
class Table:
    "A table in three parts."
    name:str
    X:pd.DataFrame     # Training rows
    y:np.ndarray       # Their labels
    held:pd.DataFrame  # Rows that judge and that no search sees
    pool:pd.DataFrame  # Rows to explain
    rules:dict         # What nobody can change
    wanted:int|None    # The class that people want; None: the model's second choice
    licence:str = ''
    all_rows:int = 0


CC = 'CC BY 4.0'
PERSON = dict(increase_only=['age'])


def _folder():
    folder = os.environ.get('GRADUAL_CF_DATA')
    if not folder: raise ValueError('GRADUAL_CF_DATA must name the data folder, got none')
    return Path(folder)


def _read(name, **how): return pd.read_csv(_folder()/'tables'/f'{name}.csv', **how)


def heloc():
    df = pd.read_csv(_folder()/'heloc/heloc_dataset_v1.csv')
    X = df.drop(columns=['RiskPerformance', 'ExternalRiskEstimate'])
    keep = ~(X == -9).all(axis=1) & ~df.duplicated()
    return X[keep], (df.RiskPerformance == 'Good')[keep], {}, 1, "FICO's challenge terms"


def uci():
    df = pd.read_csv(_folder()/'uci_credit/UCI_Credit_Card.csv').drop(columns='ID')
    y = df.pop('default.payment.next.month')
    whole = [c for c in df.select_dtypes('float') if (df[c] % 1 == 0).all()]
    return df.astype(dict.fromkeys(whole, int)), y, dict(immutable=['SEX'], increase_only=['AGE']), 0, CC


def adult():
    df = _read('adult', skipinitialspace=True, keep_default_na=False).drop(columns=['fnlwgt', 'education-num'])
    df = df.drop_duplicates()
    fixed = dict(immutable=['sex', 'race', 'native-country'])
    return df.drop(columns='class'), df['class'] == '>50K', fixed | PERSON, 1, CC


def german():
    df = _read('german_credit')
    fixed = dict(immutable=['personal_status_sex', 'foreign_worker'])
    return df.drop(columns='default'), df.default, fixed | PERSON, 0, CC


def bank():
    df = _read('bank_marketing', index_col=0)
    return df.drop(columns='y'), df.y == 'yes', PERSON, 1, CC


LAW = ['decile1b', 'decile3', 'lsat', 'ugpa', 'zfygpa', 'zgpa', 'fulltime', 'fam_inc', 'tier', 'gender', 'race1']
CODED = ['decile1b', 'decile3', 'fulltime', 'fam_inc', 'tier']


def law():
    df = _read('law')[[*LAW, 'pass_bar']].dropna()
    df = df.astype(dict.fromkeys(CODED, int))
    return df[LAW], df.pass_bar, dict(immutable=['gender', 'race1']), 1, 'research (LSAC)'


COMPAS = ['compas_screening_date', 'c_jail_in', 'c_jail_out', 'days_b_screening_arrest', 'age_cat', 'decile_score',
          'score_text']


def compas():
    df = _read('compas').drop(columns=COMPAS).dropna()
    return df.drop(columns='two_year_recid'), df.two_year_recid, dict(immutable=['sex', 'race']) | PERSON, 0, 'research'


# The label is computed from Audit_Risk; the other columns left out are products and sums of those that stay.
AUDIT = ['Sector_score', 'PARA_A', 'Score_A', 'PARA_B', 'Score_B_1', 'numbers', 'Score_B_2', 'Money_Value', 'Score_MV',
         'District_Loss', 'PROB', 'History', 'Prob', 'CONTROL_RISK']


def audit():
    df = _read('audit').dropna()
    return df[AUDIT], df.Risk, dict(immutable=['Sector_score']), 0, CC


def wine():
    "From scikit-learn, so that it is there without a data folder."
    from sklearn.datasets import load_wine
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.astype(dict(magnesium=int, proline=int)), y, {}, None, CC


GRADES = ['unacc', 'acc', 'good', 'vgood']


def car():
    df = _read('car_eval').astype(str)
    return df.drop(columns='acceptability'), df.acceptability.map(GRADES.index), {}, None, CC


TABLES = dict(heloc=heloc, uci=uci, adult=adult, german=german, bank=bank, law=law, compas=compas, audit=audit, wine=wine,
              car=car)
TITLES = dict(heloc='HELOC', uci='UCI Credit', adult='Adult', german='German Credit', bank='Bank Marketing',
              law='Law School', compas='COMPAS', audit='Audit', wine='Wine', car='Car Evaluation')


def load(name, seed=0):
    "A table, shuffled by the seed: three fifths train, a fifth judges, a fifth is explained."
    X, y, rules, wanted, licence = TABLES[name]()
    X = X.astype({c: 'category' for c in X if not pd.api.types.is_numeric_dtype(X[c])})
    order = np.random.default_rng(seed).permutation(len(X))
    a, b = len(X)*6//10, len(X)*8//10
    train, held, pool = order[:a][:TRAIN], order[a:b][:HELD], order[b:]
    labels = np.asarray(y).astype(int)[train]
    return Table(name, X.iloc[train], labels, X.iloc[held], X.iloc[pool], rules, wanted, licence, len(X))


def codes(df):
    "Rows as numbers: categories are the position of their level."
    return np.column_stack([df[c].cat.codes if df[c].dtype == 'category' else df[c] for c in df]).astype(float)
