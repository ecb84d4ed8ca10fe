"""What reads well: what a reader would not read in data/02_words."""
from dataclasses import replace

import numpy as np
import pytest
import torch
import toy
from hypothesis import given, settings, strategies as st
from written import load_task

from gradual_cf.all import Domain, GradualCF, corpus_vectors, evaluate, load_toy_reviews, reads_well, sentences
from gradual_cf.data import words as reading, texts as text
from gradual_cf.data.words import _fluency_loss, _Trigrams, _fluency_model

tagged = pytest.mark.skipif(not reading._can_tag(), reason='need spaCy and its English model (make .venv/.extras)')
lines = st.lists(st.lists(st.integers(-1, 3), max_size=6), min_size=1, max_size=5)


def by_formula(corpus, v, history, w):
    "Witten and Bell's formula, word by word."
    stream = [i if i >= 0 else v for line in corpus for i in (v + 1, v + 1, *line)] + [v + 1, v + 1]
    n = len(history)
    if n and not any(tuple(stream[i:i + n]) == history for i in range(len(stream) - n)): return by_formula(corpus, v, history[1:], w)
    behind = [stream[i + n] for i in range(len(stream) - n) if tuple(stream[i:i + n]) == history]
    kinds = len(set(behind))
    shorter = by_formula(corpus, v, history[1:], w) if n else 1/(v + 2)
    return (behind.count(w) + kinds*shorter)/(len(behind) + kinds)


@given(lines, st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_trigrams_are_the_formula_and_sum_to_one(corpus, a, b):
    model, every = _Trigrams(corpus, 4), np.arange(6)
    p = np.exp(model(np.full(6, a), np.full(6, b), every))
    assert p.sum() == pytest.approx(1)
    assert p == pytest.approx([by_formula(corpus, 4, (a, b), w) for w in every])


def test_a_drop_is_the_difference_of_two_whole_texts():
    model = _Trigrams([[0, 1, 2, 3], [2, 1, 0], [3, 3, 1]], 4)
    def whole(ids):
        t = np.array([5, 5, *ids, 5, 5])
        return model(t[:-2], t[1:-1], t[2:]).sum()
    ids = [0, 1, 3, 4, 2]
    for at in range(5):
        for new in range(4):
            want = whole(ids) - whole([*ids[:at], new, *ids[at + 1:]])
            assert _fluency_loss(model, torch.tensor([ids]), torch.tensor([[at]]), torch.tensor([[[new]]])).item() == pytest.approx(want)


@tagged
def test_a_language_without_a_tagger():
    spacy = pytest.importorskip('spacy')
    with pytest.raises(ValueError, match=r"tagger must be 'en', None, or a spaCy pipeline with a tagger, got one for 'de'"):
        reads_well(tagger=spacy.blank('de'))
    with pytest.raises(ValueError, match="got 'de'"): reads_well(tagger='de')


def test_nothing_installed(monkeypatch):
    monkeypatch.setattr(reading, '_can_tag', lambda: False)
    monkeypatch.setattr(text, '_can_tag', lambda: False)
    with pytest.raises(ImportError, match=r'pip install .gradual_cf\[fluent\]'): reading._english.__wrapped__()
    train, _ = load_toy_reviews(60, 2)
    v = corpus_vectors(train['text'], 8)
    plain = sentences(v, length=20)
    assert all(getattr(plain, does) is getattr(Domain, does) for does in ('note', 'retry', 'learn'))   # nothing
    assert sentences(v, length=20, reads=reads_well(tagger=None)).note is not Domain.note


@pytest.fixture(scope='module')
def task(): return load_task('toy_reviews')


@pytest.fixture(scope='module')
def heard(task):
    "Toy reviews under a rule that needs no tagger."
    dom = sentences(task.domain.encode.args[0].vectors, length=40, reads=reads_well(tagger=None))
    cf = GradualCF(task.model, dom, 'sparse').fit(task.X[:300])
    return cf, cf.explain(task.X_test[:30])


def test_the_whole_text_is_judged_at_the_end(heard):
    cf, cfs = heard
    enc = cf.ask(cfs.data).enc
    reader = cf.domain.note.args[0]
    ear, moved = _fluency_model(reader), (cfs.xp != enc.x).any(2)
    arrived = torch.ones(len(cfs), dtype=torch.bool)
    rows, _, drops = text._swap_drops(reader, enc.notes, cfs.xp, moved)
    over = drops > ear.limit(ear.lowered(enc.notes, moved.sum(1)))[rows]
    again, later = cf.domain.retry(enc, cfs.xp, arrived)
    assert sorted(set(rows[over].tolist())) == again.tolist()
    again, later = cf.domain.retry(enc, cfs.xp, ~arrived)
    assert len(again) == len(cfs) and (later.notes.rung == 1).all()
    last = enc._replace(notes=enc.notes._replace(rung=torch.full_like(enc.notes.rung, len(ear.most))))
    assert not len(cf.domain.retry(last, cfs.xp, ~arrived)[0])
    assert not len(cf.domain.retry(enc._replace(notes=None), cfs.xp, ~arrived)[0])


def test_an_answer_is_not_given_up_for_none():
    p = toy.columns()
    calls = []
    def again(enc, xp, arrived):
        calls.append(arrived.clone())
        rows = torch.arange(len(xp)) if len(calls) == 1 else torch.zeros(0, dtype=torch.long)
        return rows, enc._replace(frozen=torch.ones_like(enc.frozen))
    once = GradualCF(p.model, p.domain, 'sparse').fit(p.x).explain(p.x[:40])
    twice = GradualCF(p.model, replace(p.domain, retry=again), 'sparse').fit(p.x).explain(p.x[:40])
    assert len(calls) == 2 and np.array_equal(once.valid, twice.valid) and torch.equal(once.xp, twice.xp)


@pytest.mark.night
@tagged
def test_the_kind_of_a_word_is_kept(heard, task):
    reader = heard[0].domain.note.args[0]
    both = GradualCF(task.model, sentences(reader.vectors, length=40), 'sparse').fit(task.X[:300])
    kept = {}
    for name, cf in dict(plain=heard[0], both=both).items():
        table = evaluate(cf, task.X_test[:30], eps=())
        means = table.set_index('metric')['mean']
        kept[name] = means.get('tag_kept')
        assert means['valid'] == 1
    assert np.isnan(kept['plain']) and kept['both'] > .9
