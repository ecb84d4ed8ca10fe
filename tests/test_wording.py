"""Words that come and go: what a reader would not read in data/03_wording."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gradual_cf.all import GradualCF, corpus_vectors, load_toy_reviews, predict, reads_well, sentences, text_cnn, wordings
from gradual_cf.data import words as reading, wording
from gradual_cf.data.wording import _without_gaps, _ClosedUp, _drop_of, _said_of
from gradual_cf.data.words import _left_out, _loss_of_insertion, _Trigrams, content_word
from gradual_cf.search.lookahead import _swap_logits

tagged = pytest.mark.skipif(not reading._can_tag(), reason='need spaCy and its English model (make .venv/.extras)')


@pytest.fixture(scope='module')
def vectors():
    texts = [t.replace(' is ', ' is not ', 1) for t in load_toy_reviews(150, 2)[0]['text']] + ['It was hardly ever really good.']*3
    return texts, corpus_vectors(texts, 16)


def loud(v, texts):
    "A network that was not trained, and hears all sorts of things: half of the texts are of each class."
    net = text_cnn(16, filters=8, seed=3).eval()
    x = sentences(v, length=12, reads=None).encode(texts).x
    net.head.weight.data *= 40
    net.head.bias.data[0] += predict(net, x).diff(dim=1).median()
    return net


@pytest.fixture(scope='module')
def asked(vectors):
    "An explainer of a loud network."
    texts, v = vectors
    net = loud(v, texts)
    dom = wordings(v, insert=('not', 'hardly'), length=12, reads=reads_well(tagger=None))
    return GradualCF(net, dom, 'sparse').fit(texts[:30]), net, texts


def test_what_a_missing_or_further_word_costs_is_the_difference_of_whole_texts():
    model = _Trigrams([[0, 1, 2, 3], [2, 1, 0], [3, 3, 1]], 4)
    ids = [0, 1, 3, 2]
    alone = np.log(model.one)
    for at in range(4):
        without = _said_of(model, ids) - alone[ids[at]] - _said_of(model, [*ids[:at], *ids[at + 1:]])
        assert _left_out(model, torch.tensor([ids]), torch.tensor([[at]])).item() == pytest.approx(without)
        assert _drop_of(model, [[i] if p != at else [] for p, i in enumerate(ids)], ids[at], at) == pytest.approx(without)
        for new in range(4):
            more = _said_of(model, ids) - _said_of(model, [*ids[:at], new, *ids[at:]]) + alone[new]
            assert _loss_of_insertion(model, torch.tensor([ids]), torch.tensor([[at]]), torch.tensor([new])).item() == pytest.approx(more)
            both = [[i] if p != at else [new, i] for p, i in enumerate(ids)]
            assert _drop_of(model, both, ids[at], at) == pytest.approx(more)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=9), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_places_close_up(there, length):
    x = torch.zeros(1, len(there), 2, 3)
    x[0, :, :, -1] = torch.tensor(there, dtype=torch.float)
    x[0, :, :, :-1] = (1 + torch.arange(len(there)*2).view(-1, 2, 1))*x[0, :, :, -1:]
    want = [1 + i for i, t in enumerate(np.ravel(there)) if t][:length]
    got = _without_gaps(x, length)[0, :, 0].tolist()
    assert got == want + [0]*(len(got) - len(want)) and len(got) == min(length, 2*len(there))


def test_swaps_are_what_whole_texts_say(asked):
    cf, net, texts = asked
    x = cf.encode(['The plot is really dull and the cast is not good, it was hardly ever really good, and more'][:1]).x
    values = x[:, [4, 9, 11]][:, :, None].repeat(1, 1, 3, 1, 1)
    values[0, :, 0, 1, :-1] = 1.
    values[0, :, 1, 1] = 0.
    values[0, :, 2, 0] = 1.
    at = torch.tensor([[4, 9, 11]])
    long = x.clone()
    long[0, 2, 0, -1] = 1.                                     # with one more word in front, the last one is out of sight
    for start in (x, long):
        quick, slow = (_swap_logits(m, start, at, values).detach() for m in (_ClosedUp(net, 12), lambda x: net(_without_gaps(x, 12))))
        assert torch.allclose(quick, slow, atol=1e-5)
    assert not hasattr(_ClosedUp(torch.nn.Flatten(), 12), 'swaps')


TEXT = 'I found the plot very really dull, and  the cast good.'


def worded(cf, changes):
    "The text with words in places: '' for none, two words for one in front."
    x, v = cf.encode([TEXT]).x.clone(), cf.domain.measures.args[0].vectors
    for p, words in ((p, said.split()) for p, said in changes.items()):
        if not words: x[0, p, 1] = 0.
        if len(words) == 2: x[0, p, 0] = torch.cat([v[words[0]], torch.ones(1)])
        if words: x[0, p, 1, :-1] = v[words[-1]]
    return x


@pytest.mark.parametrize('changes,after', [
    ({}, TEXT), ({6: 'funny'}, TEXT.replace('dull', 'funny')), ({5: ''}, TEXT.replace(' really', '')),
    ({6: ''}, TEXT.replace(' dull', '')), ({6: 'not dull'}, TEXT.replace('dull', 'not dull')),
    ({5: '', 6: 'funny', 10: 'hardly cast'}, TEXT.replace(' really dull', ' funny').replace('cast', 'hardly cast'))])
def test_letters_and_places_say_the_same(asked, changes, after):
    cf, net, _ = asked
    xp = worded(cf, changes)
    assert cf.domain.decode(xp, [TEXT]) == [after]
    again = cf.encode([after]).x
    assert torch.equal(cf.domain.confirm(xp, again), xp)
    assert torch.equal(predict(cf.model, xp), predict(cf.model, again))
    plain = sentences(cf.domain.measures.args[0].vectors, length=12, reads=None)
    assert torch.allclose(predict(cf.model, xp), predict(net, plain.encode([after]).x), atol=1e-6)
    assert cf.domain.legal([TEXT], [after]).all()
    assert set(cf.domain.measures.args[0].differ(TEXT, after)) == set(changes)


def test_letters_that_say_something_else_win(asked):
    cf = asked[0]
    xp, other = worded(cf, {5: ''}), cf.encode([TEXT.replace('dull', 'funny')]).x
    assert torch.equal(cf.domain.confirm(xp, other), other)


@pytest.mark.parametrize('after', [
    TEXT.replace('the plot', 'plot'),              # a function word went
    TEXT.replace('really', 'really  '),            # a blank came
    TEXT.replace('dull', 'never dull'),            # a word that is not on the list
    TEXT.replace('I found', 'I not found'),        # in front of a function word
    TEXT.replace('good.', 'dull good.')])
def test_what_no_legal_way_leads_to(asked, after):
    assert asked[0].domain.legal([TEXT, TEXT], [after, TEXT])[:, 0].tolist() == [False, True]


def test_without_the_two_only_swaps_are_left(vectors):
    texts, v = vectors
    dom = wordings(v, insert=(), delete=False, length=12, reads=None)
    assert not dom.legal([TEXT], [TEXT.replace(' really', '')]).any()
    net = loud(v, texts)
    one = GradualCF(net, dom, 'sparse').fit(texts[:30]).explain(texts[60:66], target=0)
    two = GradualCF(net, sentences(v, length=12, reads=None), 'sparse').fit(texts[:30]).explain(texts[60:66], target=0)
    assert one.raw == two.raw and torch.allclose(one.tensors.prob, two.tensors.prob, atol=1e-5)


def test_every_answer_is_legal_and_read_from_its_letters(asked):
    cf, net, texts = asked
    for target in (0, 1):
        cfs = cf.explain(texts[60:66], target=target)
        assert cf.domain.legal(cfs.data, cfs.raw).all()
        plain = sentences(cf.domain.measures.args[0].vectors, length=12, reads=None)
        said = predict(net, plain.encode(cfs.raw).x).softmax(1)[:, target]
        assert torch.allclose(said, cfs.tensors.prob, atol=1e-5)
        table = cfs.changes()
        assert (table.after.str.split().str.len() != 1).any()
        assert len(table) == (cfs.xp != cfs.x).flatten(2).any(2).sum() and np.isfinite(table.reads).all()
        assert table.cosine.isna().tolist() == (table.after.str.split().str.len() != 1).tolist()
        assert np.isfinite(cf.domain.measures(cfs)['cosine']).all()


def test_a_score_is_the_one_the_search_uses(asked):
    cf = asked[0]
    changes = {5: '', 6: 'not dull', 11: 'funny'}
    xp, question = worded(cf, changes), cf.ask([TEXT])
    enc = question.enc
    rows, at, drops = wording._drops_in_places(cf.domain.measures.args[0], enc.notes, xp, (xp != enc.x).flatten(2).any(2))
    cfs = cf.measure(question, xp)
    assert at.tolist() == [5, 6, 11] == cfs.changes().feature.tolist()
    assert -drops.numpy() == pytest.approx(cfs.changes().reads.to_numpy())


def test_words_held_fixed_stay_and_nothing_comes_before_them(asked):
    cf, _, texts = asked
    frozen = cf.ask([TEXT], immutable=['really']).enc.frozen[0]
    assert frozen[5] and not frozen[6]


def test_a_word_of_the_list_may_go_and_is_not_swapped(vectors):
    v = vectors[1]
    dom = wordings(v, insert=('not',), length=12, reads=None)
    text = 'The plot is not dull.'
    assert not dom.encode([text]).frozen[0, 3]
    assert dom.legal([text]*3, ['The plot is dull.', 'The plot is funny dull.', 'The plot is not not dull.'])[:, 0].tolist() == [True, False, True]
    assert not content_word('not')


@tagged
def test_only_adverbs_and_adjectives_before_nouns_go(vectors):
    texts, v = vectors
    cf = GradualCF(loud(v, texts), wordings(v, length=12, insert=('not',)), 'sparse').fit(texts[:30])
    text = 'It has a dull plot and really the cast was dull.'
    _, enc, _, target = cf.ask([text])
    reader, s = cf.domain.measures.args[0], cf.start(enc, target)
    may = wording._dispensable(reader, wording._as_it_stands(reader, s)[0], torch.arange(12)[None])[0]
    assert [w for w, ok in zip(text.rstrip('.').split(), may) if ok] == ['dull', 'really'] and may.sum() == 2
