"""Functions of texts: fewest words against asking everything, what is asked, and what is refused."""
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from gradual_cf.all import GradualCF, predictor, sentences

WORDS = dict(good='bright warm kind fresh calm brave'.split(), bad='grim cold cruel stale loud weak'.split(), none='room chair table lamp'.split())


def made(n=160, seed=0):
    "Short texts of words that speak for one class, for the other, or for none; and what they are called."
    r = np.random.default_rng(seed)
    out, labels = [], []
    for _ in range(n):
        y = r.random() < .5
        share = [.5, .2, .3] if y else [.2, .5, .3]
        out.append(' '.join(r.choice(WORDS[r.choice([*WORDS], p=share)]) for _ in range(r.integers(3, 8))).capitalize() + '.')
        labels.append('good' if y else 'bad')
    return out, np.array(labels)


TEXTS, LABELS = made()
MODELS = dict(
    tfidf=lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(C=5)),
    plain_idf=lambda: make_pipeline(TfidfVectorizer(norm=None), LinearSVC()),
    counts=lambda: make_pipeline(CountVectorizer(), LogisticRegression()),
    two_steps=lambda: make_pipeline(CountVectorizer(), TfidfTransformer(), RidgeClassifier()),
    bayes=lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
    svd=lambda: make_pipeline(TfidfVectorizer(), TruncatedSVD(6, random_state=0), LogisticRegression(C=5)),
    tilted=lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(C=5, class_weight={'good': 6})))
ASKED = dict(
    pairs=lambda: make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=5)),
    hashed=lambda: make_pipeline(HashingVectorizer(), LogisticRegression(C=5)),
    forest=lambda: make_pipeline(TfidfVectorizer(), RandomForestClassifier(20, random_state=0)))


def by_all(model, domain, text, most=2):
    "Fewest exchanged words of one text, each new word once, by asking about every text; `most` + 1 where it takes more."
    words, spans = domain.spliced.vectors.words, domain.spliced.tokenizer(text)
    leave, was = [''] if domain.spliced.leave_out else [], model.predict([text])[0]
    for k in range(1, most + 1):
        tries = []
        for at in itertools.combinations(range(len(spans)), k):
            for new in itertools.product(words + leave, repeat=k):
                kept = [w for w in new if w]
                if len(set(kept)) < len(kept): continue
                parts, end = [], 0
                for (a, b), w in sorted(zip([spans[i] for i in at], new)):
                    parts += [text[end:a], w]
                    end = b
                tries.append(''.join(parts) + text[end:])
        if (model.predict(tries) != was).any(): return k
    return most + 1


@pytest.mark.parametrize('leave_out', [False, True])
@pytest.mark.parametrize('name', MODELS)
def test_what_is_read_has_the_fewest_words_and_no_false_proof(name, leave_out):
    model, domain = MODELS[name]().fit(TEXTS, LABELS), sentences(TEXTS, leave_out=leave_out)
    cf = GradualCF(model, domain).fit(TEXTS)
    assert cf.planned.why == ''
    texts = [t for t in made(12, 1)[0] if len(t.split()) < 7][:7]
    answers = cf.explain(texts)
    assert (model.predict(answers.raw) != model.predict(texts))[answers.valid].all() and domain.legal(texts, answers.raw).all()
    for i, t in enumerate(texts):
        least, n = by_all(model, domain, t), answers.changed[i].sum()
        assert answers.bound[i] <= least and (not answers.valid[i] or n >= least)  # no false bound
        if answers.proof[i] == 'fewest words': assert n == answers.bound[i]
        if least <= 2: assert answers.valid[i] and n == least, (t, answers.raw[i], least)


@pytest.mark.parametrize('name', [*MODELS, *ASKED])
def test_a_function_is_asked_and_hardly_needs_more_words(name):
    model, domain = (MODELS | ASKED)[name]().fit(TEXTS, LABELS), sentences(TEXTS)
    numbers = hasattr(model, 'predict_proba')
    share = lambda texts: model.predict_proba(texts) if numbers else np.stack([-model.decision_function(texts), model.decision_function(texts)], 1)
    cf = GradualCF(predictor(share, domain, kind='proba' if numbers else 'logit'), domain, classes=['bad', 'good']).fit(TEXTS)
    assert cf.planned.weights is None
    texts = made(10, 2)[0]
    answers = cf.explain(texts)
    best = np.array([by_all(model, domain, t) for t in texts])
    words = answers.changed.sum(1)
    assert answers.valid[best <= 2].all() and answers.rows <= 152*len(texts) and not any(answers.proof)
    assert (model.predict(answers.raw) != model.predict(texts))[answers.valid].all()
    assert words[best <= 2].sum() <= 1.5*best[best <= 2].sum()


def test_the_same_pipeline_names_what_is_not_read():
    for name, why in dict(pairs='ngram_range=(1, 2)', hashed='HashingVectorizer', forest='RandomForestClassifier').items():
        cf = GradualCF(ASKED[name]().fit(TEXTS, LABELS), sentences(TEXTS)).fit(TEXTS)
        assert why in cf.planned.why and cf.explain(TEXTS[:3]).valid.all()


def test_words_that_stay_and_how_many_may_go():
    model = MODELS['tfidf']().fit(TEXTS, LABELS)
    cf = GradualCF(model, sentences(TEXTS)).fit(TEXTS)
    text = next(t for t in TEXTS if cf.explain([t]).changed.sum() >= 2)
    first = cf.explain([text]).changes().before[0]
    assert first.lower() not in cf.explain([text], immutable=[first.lower()]).changes().before.str.lower().tolist()
    one = cf.explain([text], max_changes=1)
    assert not one.valid[0] and one.proof == ['none exists'] and one.bound[0] == np.inf
    assert cf.explain([text], 'good' if model.predict([text])[0] == 'good' else 'bad').already[0]
    allowed = GradualCF(model, sentences(TEXTS, allow=WORDS['none'])).fit(TEXTS).explain(TEXTS[:4])
    assert set(allowed.changes().after.str.lower()) <= set(WORDS['none'])


def test_gaps_and_capitals_stay_and_rows_mean_the_same_everywhere():
    model, domain = MODELS['tfidf']().fit(TEXTS, LABELS), sentences(TEXTS)
    cf = GradualCF(model, domain).fit(TEXTS)
    text = '  GRIM,   grim --\tCold!? (Room)\n'
    answers = cf.explain([text])
    assert answers.valid[0] and len(answers.raw[0].split()) == len(text.split())
    assert ''.join(c for c in answers.raw[0] if not c.isalpha()) == ''.join(c for c in text if not c.isalpha())
    assert all(a.isupper() == b.isupper() for a, b in zip(answers.changes().before, answers.changes().after))
    again = pickle.loads(pickle.dumps(domain))
    assert again.encode([text]).x.equal(domain.encode([text]).x) and again.decode(answers.xp, [text]) == answers.raw
    with pytest.raises(ValueError, match='x must come from texts that this domain encoded'): sentences(TEXTS[:40]).decode(answers.xp)
    assert cf.explain([text]).xp.equal(answers.xp)


def test_long_texts_and_texts_of_no_words():
    cf = GradualCF(MODELS['tfidf']().fit(TEXTS, LABELS), sentences(TEXTS)).fit(TEXTS)
    plain = GradualCF(cf.model.predictor.source.predict_proba, sentences(TEXTS)).fit(TEXTS)
    long = 'grim room '*50_000
    for e in (cf, plain):
        answers = e.explain([long], max_changes=20)
        assert answers.rows <= 152 and not answers.valid[0]
        for none in ('', ' ... !'):
            with pytest.raises(ValueError, match='data must have a word in every text, got none in row 1'): e.explain(['grim', none])
    assert cf.explain(['xyzzy plugh']).raw[0] != 'xyzzy plugh'


def test_several_classes():
    y = np.array([t.split()[0].lower() in WORDS['none'] and 'room' or label for t, label in zip(TEXTS, LABELS)])
    model = MODELS['tfidf']().fit(TEXTS, y)
    cf = GradualCF(model, sentences(TEXTS)).fit(TEXTS)
    assert 'several classes' in cf.planned.why
    answers = cf.explain(TEXTS[:8], 'good')
    assert answers.valid.mean() >= .75 and (model.predict(answers.raw)[answers.valid] == 'good').all()


BAD = [
    ('labels', lambda t: ['good']*len(t), r"model must return a probability for each class, shape \(\d+, k\) with k ≥ 2, got \['good'\]: labels"),
    ('numbers of classes', lambda t: [0]*len(t), r'with k ≥ 2, got shape'),
    ('one column', lambda t: [[.5]]*len(t), r'got shape \(\d+, 1\): return \[1 - p, p\]'),
    ('other rows', lambda t: [[.5, .5]]*(len(t) + 1), r'got \d+ rows for \d+ texts'),
    ('NaN', lambda t: [[np.nan, .5]]*len(t), 'finite probabilities'),
    ('no shares', lambda t: [[3., -2.]]*len(t), r'probabilities in \[0, 1\]'),
    ('no sum', lambda t: [[.2, .2]]*len(t), 'sum to one')]


@pytest.mark.parametrize('name, f, words', BAD, ids=[b[0] for b in BAD])
def test_a_function_that_answers_something_else(name, f, words):
    with pytest.raises(ValueError, match=words): GradualCF(f, sentences(TEXTS)).fit(TEXTS)


def test_what_is_no_function_of_texts():
    import torch
    domain, model = sentences(TEXTS), MODELS['tfidf']()
    with pytest.raises(ValueError, match='fitted'): GradualCF(model, domain)
    with pytest.raises(ValueError, match='function of texts for sentences'): GradualCF(torch.nn.Linear(2, 2), domain)
    for kw in (dict(similarity=.5), dict(words=3), dict(beam=2)):
        with pytest.raises(ValueError, match=f'{[*kw][0]} must be left out'): sentences(TEXTS, **kw)
    with pytest.raises(ValueError, match='vectors must be word vectors, or training texts'): sentences([])
    with pytest.raises(ValueError, match='data must be texts'): sentences([1, 2])
    with pytest.raises(ValueError, match='length must be a whole number of at least 5'): sentences(TEXTS, length=2)
    with pytest.raises(ValueError, match="allow must say True or False .* got 'x'"): sentences(TEXTS, allow=lambda w: 'x')
    cf = GradualCF(model.fit(TEXTS, LABELS), domain).fit(TEXTS)
    with pytest.raises(ValueError, match='optimal must be left out'): cf.explain(TEXTS[:1], proof='columns')
    from sklearn.linear_model import Ridge
    with pytest.raises(ValueError, match='classes for sentences'): GradualCF(make_pipeline(TfidfVectorizer(), Ridge()).fit(TEXTS, LABELS == 'good'), domain).fit(TEXTS)


class Pipe:
    "What a pipeline of Hugging Face looks like, around a model of scikit-learn."
    task = 'text-classification'

    def __init__(self, model):
        self.inner = model
        self.model = type('Network', (), dict(config=type('Config', (), dict(id2label={1: 'POS', 0: 'NEG'}))()))()

    def __call__(self, texts, top_k=1, truncation=False):
        assert top_k is None and truncation
        return [sorted([dict(label='NEG', score=float(a)), dict(label='POS', score=float(b))], key=lambda one: -one['score']) for a, b in self.inner.predict_proba(texts)]


def test_a_pipeline_of_hugging_face_is_known_by_its_module(monkeypatch):
    monkeypatch.setattr(Pipe, '__module__', 'transformers.pipelines.text_classification')
    model = MODELS['tfidf']().fit(TEXTS, LABELS)
    cf = GradualCF(Pipe(model), sentences(TEXTS)).fit(TEXTS)
    assert cf.classes == ('NEG', 'POS')
    answers = cf.explain(TEXTS[:5])
    assert answers.valid.all() and (model.predict(answers.raw) != model.predict(TEXTS[:5])).all()
    monkeypatch.setattr(Pipe, 'task', 'text-generation')
    with pytest.raises(ValueError, match="got a pipeline for 'text-generation'"): GradualCF(Pipe(model), sentences(TEXTS))


def test_a_text_classifier_of_spacy():
    spacy = pytest.importorskip('spacy', reason='need spacy')
    nlp = spacy.blank('en')
    cat = nlp.add_pipe('textcat', config=dict(model={'@architectures': 'spacy.TextCatBOW.v3', 'exclusive_classes': True, 'ngram_size': 1, 'no_output_layer': False, 'length': 4096}))
    for label in ('bad', 'good'): cat.add_label(label)
    nlp.initialize()
    domain = sentences(TEXTS)
    cf = GradualCF(nlp, domain).fit(TEXTS[:60])
    answers = cf.explain(TEXTS[:2])
    said = [max(doc.cats, key=doc.cats.get) for doc in nlp.pipe(answers.raw)]
    assert cf.classes == ('bad', 'good') and all(s == t for s, t, ok in zip(said, answers.target, answers.valid) if ok)
    with pytest.raises(ValueError, match="model must have a 'textcat'"): GradualCF(spacy.blank('en'), domain)


def test_answers_are_shown_saved_and_counted(tmp_path):
    cf = GradualCF(MODELS['tfidf']().fit(TEXTS, LABELS), sentences(TEXTS)).fit(TEXTS, sample=60)
    assert cf.account.rows <= 60
    answers = cf.explain(TEXTS[:3])
    assert '→' in answers.text() and '<ins>' in answers._repr_html_() and 'fewest words' in repr(answers)
    assert answers.changes().columns.tolist() == ['row', 'feature', 'before', 'after'] and answers.calls >= 1
    assert (answers.quality()['size'] == answers.changed.sum(1)).all()
    answers.save(tmp_path/'a.zip')
    back = type(answers).load(tmp_path/'a.zip', cf.domain)
    assert back.raw == answers.raw and back.proof == answers.proof
    assert pd.DataFrame(answers.df()).shape[0] == 3
