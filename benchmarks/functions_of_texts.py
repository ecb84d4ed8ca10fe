"""Reviews of films, and functions of texts: how many words change, how many are proven, how many texts are asked about.

    GRADUAL_CF_DATA=… python benchmarks/functions_of_texts.py [--rows 200]

6,000 training reviews fit the models; `fit` asks about 1,000 of them. Written to `benchmarks/results/functions_of_texts.csv`.
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from gradual_cf.all import GradualCF, sentences

MODELS = {
    'Tf-idf, logistic': (TfidfVectorizer(min_df=5), LogisticRegression(C=10)),
    'Tf-idf, SVD, logistic': (TfidfVectorizer(min_df=5), TruncatedSVD(100, random_state=0), LogisticRegression(C=10)),
    'pairs of words, logistic': (TfidfVectorizer(min_df=5, ngram_range=(1, 2)), LogisticRegression(C=10)),
    'hashing, logistic': (HashingVectorizer(n_features=2**18), LogisticRegression(C=30)),
    'Tf-idf, forest': (TfidfVectorizer(min_df=5), RandomForestClassifier(100, min_samples_leaf=2, random_state=0, n_jobs=1))}


def reviews(part, n, seed):
    "Some reviews of IMDB, and their labels."
    df = pd.read_parquet(Path(os.environ['GRADUAL_CF_DATA'])/f'imdb/{part}-00000-of-00001.parquet').sample(n, random_state=seed)
    return df.text.str.replace('<br />', ' ').tolist(), df.label.to_numpy()


def line(name, how, model, cf, texts, least):
    "One line of the table; `least`: the words of answers that were read, to compare with."
    begin = time.process_time()
    each = [cf.explain([t]) for t in texts]
    took = time.process_time() - begin
    valid = np.array([a.valid[0] for a in each])
    true = model.predict([a.raw[0] for a in each]) != model.predict(texts)
    assert (valid == true).all(), 'the model itself says otherwise'
    words = np.array([a.changed.sum() for a in each])
    rows = np.array([a.rows for a in each])
    ratio = words[valid].sum()/least[valid].sum() if least is not None else np.nan
    return words, dict(model=name, how=how, reviews=len(texts), valid=valid.mean().round(3), proven=np.mean([a.proof[0] == 'fewest words' for a in each]).round(3),
                       words=words[valid].mean().round(2), median=np.median(words[valid]), most_words=words.max(), texts=rows.mean().round(1),
                       texts_95=np.percentile(rows, 95), most_texts=rows.max(), calls=np.mean([a.calls for a in each]).round(2), of_read=np.round(ratio, 3), ms=round(1e3*took/len(texts), 1))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--rows', type=int, default=200)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--models', default='')
    p.add_argument('--out', default='benchmarks/results/functions_of_texts.csv')
    args = p.parse_args()
    (X, y), (texts, _) = reviews('train', 6000, 0), reviews('test', args.rows, args.seed)
    domain, lines = sentences(X[:1000]), []
    for name, steps in MODELS.items():
        if args.models not in name: continue
        model, least = make_pipeline(*steps).fit(X, y), None
        for how, asked in (('read', model), ('asked', lambda t: model.predict_proba(t))):
            cf = GradualCF(asked, domain).fit(X[:1000])
            if how == 'read' and cf.planned.weights is None: continue
            words, told = line(name, how, model, cf, texts, least)
            least = words if how == 'read' else least
            lines.append(told)
            print(pd.DataFrame([told]).to_string(index=False, header=len(lines) == 1), flush=True)
    pd.DataFrame(lines).to_csv(args.out, index=False)


if __name__ == '__main__': main()
