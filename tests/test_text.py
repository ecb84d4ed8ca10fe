"""Words, vectors, reviews: what a reader would not read in 06_texts."""
import json
import os
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
import written

from gradual_cf.all import GradualCF, corpus_vectors, load_glove, load_imdb, load_toy_reviews, predict, sentences, text_cnn, train
from gradual_cf.data.texts import _Lookup, rewrite_words, _word_ids
from gradual_cf.data.words import content_word, ending, word_spans
from gradual_cf.search.lookahead import _swap_logits

DATA = os.environ.get('GRADUAL_CF_DATA')
real = pytest.mark.skipif(not DATA, reason='need GRADUAL_CF_DATA')
texts = st.lists(st.sampled_from(list("aB'n’t. \t\n<br/>-,\"é0…") + ['<br />', "n't", 'cannot']), max_size=30).map(''.join)


@given(texts)
@settings(max_examples=200, deadline=None)
def test_spans_are_disjoint_and_leave_only_gaps(s):
    spans, end = word_spans(s), 0
    for a, b in spans:
        assert end <= a < b and not s[a:b].isspace()
        assert not s[end:a].replace('<br />', '').replace('<br/>', '').strip()
        end = b
    assert rewrite_words(s, spans, {}) == s
    assert rewrite_words(s, spans, {i: s[a:b] for i, (a, b) in enumerate(spans)}, lambda old, new: new) == s


@given(texts, st.data())
@settings(max_examples=100, deadline=None)
def test_rewriting_touches_one_word_only(s, data):
    spans = word_spans(s)
    if not spans: return
    i = data.draw(st.integers(0, len(spans) - 1))
    a, b = spans[i]
    out = rewrite_words(s, spans, {i: 'dull'})
    assert out[:a] == s[:a] and out[len(out) - (len(s) - b):] == s[b:] and out[a:a + 4].lower() == 'dull'


def test_treebank_where_it_matters():
    nltk = pytest.importorskip('nltk.tokenize', reason='need nltk')
    for s in ("It's a film that you can't forget, isn't it?", 'He cannot act; she will not.', 'A well-made film (of 1999) with 3.5 stars!', "They've gone; I'd stay, we'll see."):
        ours = [s[a:b] for a, b in word_spans(s)]
        assert ours == nltk.TreebankWordTokenizer().tokenize(s)


@pytest.fixture(scope='module')
def toy():
    "Toy reviews, their vectors, a network and a fitted explainer."
    tr, te = load_toy_reviews(600, 60)
    v = corpus_vectors(tr['text'], 32)
    return tr, te, v, written.read('reviews')


def test_a_member_of_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path/'two.zip', 'w') as z: z.writestr('a.txt', 'x 1\n'), z.writestr('b.txt', 'y 2\n')
    assert load_glove(tmp_path/'two.zip', member='b.txt', cache=False).words == ['y']


def test_cached_vectors_are_mapped_and_equal(tmp_path, monkeypatch):
    monkeypatch.setenv('GRADUAL_CF_CACHE', str(tmp_path/'cache'))
    (tmp_path/'v.txt').write_text('3 2\ngood 1 0\nbad -1 0\nfilm 0 1\n')
    a, b = load_glove(tmp_path/'v.txt'), load_glove(tmp_path/'v.txt')
    assert a.words == b.words == ['good', 'bad', 'film'] and torch.equal(a.table, b.table)
    assert sorted(p.suffix for p in (tmp_path/'cache').iterdir()) == ['.json', '.npy']
    assert load_glove(tmp_path/'v.txt', vocab={'bad'}).words == ['bad']
    next((tmp_path/'cache').glob('*.json')).unlink()                     # half a pair is no pair
    assert load_glove(tmp_path/'v.txt').words == a.words


@pytest.mark.night
def test_swaps_are_forward_passes(toy):
    _, te, v, net = toy
    x = sentences(v, length=40).encode(te['text'][:3]).x
    at, values = torch.tensor([[0, 1, 39], [5, 2, 3], [38, 20, 4]]), torch.randn(3, 3, 4, 32)
    with torch.no_grad():
        fast = net.eval().swaps(x, at, values)
        slow = _swap_logits(lambda t: net(t), x, at, values)
    assert torch.allclose(fast, slow, atol=1e-4)


@pytest.mark.parametrize('kw', [{}, dict(beam=1, depth=1), dict(allow=ending), dict(similarity=-1, common=None)])
def test_every_answer_is_legal_and_flips(toy, kw):
    tr, te, v, net = toy
    dom = sentences(v, length=40, **kw)
    cf = GradualCF(net, dom, 'sparse').fit(tr)
    cfs = cf.explain(te.select(range(20)))
    assert cfs.valid.mean() > .9 and dom.legal(cfs.data, cfs.raw).all()
    assert torch.equal(cf.encode(cfs.raw).x, cfs.xp) and np.array_equal(cfs.found, cfs.prob)
    changes = cfs.changes()
    assert all(content_word(w.lower()) for w in [*changes.before, *changes.after])
    if kw.get('allow') is ending: assert (changes.before.map(lambda w: ending(w.lower())) == changes.after.map(lambda w: ending(w.lower()))).all()


@pytest.mark.night
def test_html_is_escaped(toy):
    tr, _, v, net = toy
    cf = GradualCF(net, sentences(v, length=40), 'sparse').fit(tr)
    page = cf.explain('A <script>dull</script> film & a boring plot', target=1)._repr_html_()
    assert '<script>' not in page and '<del>' in page and '<ins>' in page


@real
def test_real_reviews_are_read_trained_on_and_explained():
    tr, te = load_imdb()
    v, rng = load_glove(dim=100), np.random.default_rng(0)
    a, b = (d.select(rng.permutation(25000)[:n]) for d, n in ((tr, 1000), (te, 12)))
    net, log = text_cnn(100, filters=16, seed=0), []
    train(_Lookup(v, net), _word_ids(v, a, 100), torch.tensor(a['label']), epochs=4, batch_size=50, log=log)
    assert log[-1]['loss'] < log[0]['loss']
    cf = GradualCF(net, sentences(v, length=100, reads=None), 'sparse', tau=.5).fit(a['text'][:300])
    cfs = cf.explain(b['text'])
    assert cfs.valid.any() and cf.domain.legal(cfs.data, cfs.raw).all()
    assert (predict(net, cfs.xp).argmax(1) == cfs.target)[cfs.valid].all()
    i = int(cfs.valid.argmax())
    assert cfs.raw[i] != cfs.data[i] and len(word_spans(cfs.raw[i])) == len(word_spans(cfs.data[i]))


@real
def test_real_vectors_restricted_and_neighbours(tmp_path, monkeypatch):
    monkeypatch.setenv('GRADUAL_CF_CACHE', str(tmp_path))
    v = load_glove(dim=300, vocab=['good', 'bad', 'film'])
    assert v.table.shape == (3, 300) and json.loads(next(tmp_path.glob('*.json')).read_text()) == v.words


def test_an_ending_needs_a_stem_of_three_letters():
    assert [ending(w) for w in ('aging', 'raging', 'badly', 'sadness')] == ['', 'ing', 'ly', 'ness']
