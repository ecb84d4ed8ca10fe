"""A small BERT, made from a config and trained on the toy reviews, explained through its embeddings."""
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
import written

from gradual_cf.all import GradualCF, load_toy_reviews, predict, reads_well, tokens
from gradual_cf.data import words as reading
from gradual_cf.data.texts import _changed_words, _swap_drops
from gradual_cf.data.transformers import _FromEmbeddings, _whole_words
from gradual_cf.data.words import _ear
from gradual_cf.models.networks import seeded

transformers = pytest.importorskip('transformers', reason='need transformers (make .venv/.extras)')
if not transformers.utils.is_torch_available(): pytest.skip('need a PyTorch that transformers knows', allow_module_level=True)
tokenizers = pytest.importorskip('tokenizers')
tagged = pytest.mark.skipif(not reading._can_tag(), reason='need spaCy and its English model (make .venv/.extras)')


def word_pieces(texts, size=170):
    "A fast WordPiece tokenizer of the commonest words; others fall into pieces. A trained one depends on how ties are broken."
    marks = ['[PAD]', '[UNK]', '[CLS]', '[SEP]']
    count = Counter(w for t in texts for w in re.findall(r"\w+|[^\w\s]", t.lower()))
    letters = sorted({c for w in count for c in w})
    pieces = [*marks, *letters, *(f'##{c}' for c in letters)]
    common = sorted((w for w in count if len(w) > 1), key=lambda w: (-count[w], w))[:size - len(pieces)]
    t = tokenizers.Tokenizer(tokenizers.models.WordPiece({w: i for i,w in enumerate([*pieces, *common])}, unk_token='[UNK]'))
    t.normalizer, t.pre_tokenizer = tokenizers.normalizers.Lowercase(), tokenizers.pre_tokenizers.BertPreTokenizer()
    t.post_processor = tokenizers.processors.TemplateProcessing(single='[CLS] $A [SEP]', special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token='[PAD]', unk_token='[UNK]', cls_token='[CLS]', sep_token='[SEP]')


def parts():
    "An untrained model, a tokenizer, training and test reviews."
    train, test = load_toy_reviews(600, 60)
    tok = word_pieces(train['text'])
    config = transformers.BertConfig(vocab_size=len(tok), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=128, num_labels=2)
    return transformers.BertForSequenceClassification(config), tok, train, test


def learnt(seed, epochs, lr, batch_size):
    "The model trained, and its share of right test reviews: what `make networks` writes down."
    with seeded(seed):
        model, tok, train, test = parts()
        opt, y = torch.optim.Adam(model.parameters(), lr=lr), torch.tensor(train['label'])
        for _ in range(epochs):
            for i in torch.randperm(len(y)).split(batch_size):
                enc = tok([train['text'][j] for j in i.tolist()], padding=True, return_tensors='pt')
                opt.zero_grad()
                model(input_ids=enc['input_ids'], attention_mask=enc['attention_mask'], labels=y[i]).loss.backward()
                opt.step()
    enc = tok(test['text'][:], padding=True, return_tensors='pt')
    with torch.no_grad(): z = model.eval()(input_ids=enc['input_ids'], attention_mask=enc['attention_mask']).logits
    return model, (z.argmax(1) == torch.tensor(test['label'])).double().mean().item()


@pytest.fixture(scope='module')
def bert():
    "Model, tokenizer, training and test reviews."
    with seeded(0): model, *others = parts()
    return written.read('bert', model), *others


def test_embeddings_give_what_the_model_gives(bert):
    model, tok, _, test = bert
    texts = test['text'][:8]
    x = tokens(model, tok, length=80).encode(texts).x
    enc = tok(texts, padding=True, return_tensors='pt')
    with torch.no_grad(): z = model(input_ids=enc['input_ids'], attention_mask=enc['attention_mask']).logits
    assert torch.allclose(predict(_FromEmbeddings(model), x), z, atol=1e-5)
    assert not x.requires_grad


def test_words_flip_the_decision(bert):
    model, tok, train, test = bert
    before = {n: p.grad for n, p in model.named_parameters()}
    cf = GradualCF(model, tokens(model, tok, length=80), 'sparse').fit(train['text'][:100])
    cfs = cf.explain(test['text'][:30])
    right = (predict(cf.model, cf.encode(test).x).argmax(1) == torch.tensor(test['label'])).float().mean()
    assert right > .85, right
    assert cfs.valid.mean() >= .9, (right, np.sort(cfs.prob)[:12], len(_whole_words(tok)), cfs.changes().head(20))
    assert cf.domain.legal(cfs.data, cfs.raw).all()
    whole = _whole_words(tok)
    assert all(w.lower() in whole for w in cfs.changes().after) and len(cfs.changes()) / 30 < 5
    enc = tok(cfs.raw, padding=True, return_tensors='pt')                 # the texts themselves, through the model's own front door
    with torch.no_grad(): p = model(input_ids=enc['input_ids'], attention_mask=enc['attention_mask']).logits.softmax(1)
    assert torch.allclose(p.gather(1, cfs.tensors.target[:, None])[:, 0], cfs.tensors.prob, atol=1e-4)
    assert all(p.grad is before[n] and p.requires_grad for n, p in model.named_parameters())


def test_words_of_several_pieces_are_one_group(bert):
    model, tok, _, _ = bert
    dom = tokens(model, tok, length=80)
    words = [w for w in ('unloved', 'dullish', 'filmed', 'dialogues', 'delightfully') if 1 < len(tok(w, add_special_tokens=False)['input_ids']) <= 6]
    enc = dom.encode(f'What a {words[0]} film')
    assert (enc.x[0, 3] != 0).any(1).sum() == min(6, len(tok(words[0], add_special_tokens=False)['input_ids']))
    assert enc.frozen[0, [0, 1, 2, 5]].all() and not enc.frozen[0, 4]     # special tokens, "what", "a"; "film" may change


def test_long_texts_keep_their_end_token_and_their_end(bert):
    model, tok, train, test = bert
    cf = GradualCF(model, tokens(model, tok, length=12), 'sparse').fit(train['text'][:100])
    long = ' '.join(test['text'][:5])
    cfs = cf.explain(long)
    assert cfs.raw[0][len(long)//2:].endswith(long[-60:])
    last = cf.encode(long).x[0, -1, 0]
    assert torch.equal(last, model.get_input_embeddings().weight[tok.sep_token_id])


def test_the_rule_for_reading_well_holds_for_pieces(bert):
    model, tok, train, test = bert
    rule = reads_well(train['text'][:200], tagger=None)
    heard, plain = (GradualCF(model, tokens(model, tok, length=60, reads=r), 'sparse').fit(train['text'][:40]) for r in (rule, None))
    one, two = (cf.explain(test['text'][:8]) for cf in (heard, plain))
    assert one.valid.all() and heard.domain.legal(one.data, one.raw).all()
    reader = heard.domain.note.args[0]
    before, after = one.changes().reads, _changed_words(reader, replace(two, domain=heard.domain)).reads
    assert before.median() > after.median() and 'reads' not in two.changes()
    notes = heard.ask(one.data).enc.notes
    rows, places, drops = _swap_drops(reader, notes, one.xp[:, :, 0], (one.xp != one.x).flatten(2).any(2))
    assert torch.allclose(-drops, torch.tensor(before.to_numpy()), atol=1e-6)    # what the search heard is what the table says
    strict = drops <= _ear(reader).limit(_ear(reader).lowered(notes, torch.bincount(rows, minlength=8)))[rows]
    assert strict.float().mean() > .8


@tagged
def test_a_transformer_keeps_the_kind_of_a_word(bert):
    model, tok, train, test = bert
    told = {}
    for name, rule in dict(any=None, kind=reads_well(train['text'][:100])).items():
        cf = GradualCF(model, tokens(model, tok, length=60, reads=rule), 'sparse').fit(train['text'][:40])
        told[name] = cf.domain.measures(cf.explain(test['text'][:8]))['tag_kept'].mean()
    assert told['kind'] > max(.9, told['any'])


def test_words_held_fixed_by_a_question(bert):
    model, tok, train, test = bert
    cf = GradualCF(model, tokens(model, tok, length=80), 'sparse').fit(train['text'][:100])
    word = cf.explain(test['text'][:1]).changes().before.iloc[0].lower()
    assert word not in set(cf.explain(test['text'][:1], immutable=[word]).changes().before.str.lower())


def test_errors(bert):
    model, tok, _, _ = bert
    with pytest.raises(ValueError, match='fast'): tokens(model, object())
    with pytest.raises(ValueError, match='length must be a whole number of at least 5'): tokens(model, tok, length=2)
    long = 'film '*200
    with pytest.raises(ValueError, match='length must leave 128 pieces of a text, got 150 in row 1'):
        tokens(model, tok, length=150).encode(['a film', long])
    for bad in ('', '   ', '§ §'):
        with pytest.raises(ValueError, match='row 1'): tokens(model, tok).encode(['a film', bad])
