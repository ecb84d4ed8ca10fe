"""A transformer on reviews: a small encoder, trained here, and what it takes to change its mind.

    GRADUAL_CF_DATA=... python benchmarks/encoder.py                # 20 reviews with a rule and without, results/encoder.csv
    GRADUAL_CF_DATA=... python benchmarks/encoder.py --only none    # one line alone; an existing line is kept

The encoder has two layers of BERT's kind and reads 160 pieces. It is trained on the even training reviews, from GloVe's vectors for
the words that have one, in seven minutes on one core; weights and tokenizer stay in the cache. Explained are the first 110 words,
which always fit, and at most eight may change: a review that it is too sure of would take dozens, and minutes. The reviews, the rule
and the judge are those of `words.py`, whose answers for the convolutional network stand beside it in the table.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy
from words import answers, fresh, judged, spread_of
from words_judge import judge

from gradual_cf.core import atomic, cache_dir
from gradual_cf.gradual import GradualCF
from gradual_cf.data.words import reads_well
from gradual_cf.data.words import _word_spans, load_glove, load_imdb
from gradual_cf.data.transformers import tokens

RESULTS = Path(__file__).parent/'results'
VOCABULARY, PIECES, WORDS, WIDTH, LAYERS, HEADS = 10_000, 160, 110, 100, 2, 4
EPOCHS, RATE, ROWS, PART = 4, 8e-4, 32, 5
RULE, MOST = 4000, 8  # Reviews that the rule learns from; words that may change in a review
FILTERS = dict(both=lambda texts: reads_well(texts[:RULE]), none=lambda texts: None)
MARKS = '[PAD]', '[UNK]', '[CLS]', '[SEP]'


def word_pieces(texts):
    "A WordPiece tokenizer of lower-case English, trained or from the cache."
    kept = cache_dir()/'encoder-tokenizer.json'
    if not kept.is_file():
        new = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token='[UNK]'))
        breaks = tokenizers.normalizers.Replace(tokenizers.Regex(r'<br\s*/?>'), ' ')
        new.normalizer = tokenizers.normalizers.Sequence([breaks, tokenizers.normalizers.BertNormalizer(lowercase=True)])
        new.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=list(MARKS), show_progress=False)
        new.train_from_iterator(texts, trainer)
        new.post_processor = tokenizers.processors.TemplateProcessing(
            single='[CLS] $A [SEP]', special_tokens=[(m, new.token_to_id(m)) for m in ('[CLS]', '[SEP]')])
        with atomic(kept) as f: new.save(str(f))
    names = dict(zip(('pad_token', 'unk_token', 'cls_token', 'sep_token'), MARKS))
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(kept), **names)


def encoder(tokenizer):
    "The network before it has learnt anything but GloVe's vectors."
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                                     intermediate_size=4*WIDTH, max_position_embeddings=PIECES, num_labels=2)
    net, glove = transformers.BertForSequenceClassification(config), load_glove()
    table = net.get_input_embeddings().weight.data
    known = [(i, glove.index[w]) for w, i in tokenizer.get_vocab().items() if w in glove]
    at, of = map(list, zip(*known))
    table[at] = glove.table[of]*(table.std()/glove.table.std())
    return net


def batches(tokenizer, texts, order):
    "Texts as numbers of pieces, some at a time."
    for part in order.split(ROWS):
        some = tokenizer([texts[i] for i in part.tolist()], truncation=True, max_length=PIECES, padding=True, return_tensors='pt')
        yield part, dict(input_ids=some['input_ids'], attention_mask=some['attention_mask'])


def trained(tokenizer, texts, labels):
    "Train the encoder; an epoch is kept as soon as it is done."
    net, labels, gen = encoder(tokenizer), torch.tensor(labels), torch.Generator().manual_seed(0)
    opt = torch.optim.AdamW(net.parameters(), RATE, weight_decay=.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, RATE, EPOCHS*(-(-len(texts)//ROWS)))
    for epoch in range(EPOCHS):
        total, begin = 0., time.process_time()
        for part, some in batches(tokenizer, texts, torch.randperm(len(texts), generator=gen)):
            loss = cross_entropy(net(**some).logits, labels[part])
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.)
            opt.step(), plan.step()
            total += loss.item()*len(part)/len(texts)
        print(f'epoch {epoch + 1}: {total:.3f}, {time.process_time() - begin:.0f} CPU seconds', flush=True)
    return net


def reader(texts, labels):
    "The kept encoder and its tokenizer, or new ones."
    tokenizer, kept = word_pieces(texts), cache_dir()/'encoder.safetensors'
    if not kept.is_file():
        with atomic(kept) as f: save_file(trained(tokenizer, texts, labels).state_dict(), f)
    net = encoder(tokenizer)
    net.load_state_dict(load_file(kept))
    return net.eval(), tokenizer


@torch.no_grad()
def accuracy(net, tokenizer, texts, labels):
    "Share of texts that the encoder gets right."
    right = [(net(**some).logits.argmax(1) == torch.tensor(labels)[part]).float()
             for part, some in batches(tokenizer, texts, torch.arange(len(texts)))]
    return torch.cat(right).mean().item()


def measured_accuracy(net, tokenizer, test, rows=2000):
    "The same of random test reviews, once."
    kept = cache_dir()/'encoder-accuracy.json'
    if not kept.is_file():
        some = test.select(np.random.default_rng(0).permutation(len(test))[:rows])
        with atomic(kept) as f: f.write_text(json.dumps(accuracy(net, tokenizer, list(some['text']), list(some['label']))))
    print(f'accuracy {json.loads(kept.read_text()):.3f} on {rows:,} test reviews', flush=True)
    return json.loads(kept.read_text())


def explained(name, net, tokenizer, texts, rows, seed):
    "Explain fresh reviews, a few at a time, as `answers` of `words.py`; what a former call found is read."
    test = list(load_imdb()[1]['text'])
    some, parts, cf = [test[i] for i in fresh(len(test), rows, seed)], [], None
    for i in range(0, rows, PART):
        kept = cache_dir()/f'encoder-{name}-{seed}-{i}.json'
        if not kept.is_file():
            if cf is None: cf = GradualCF(net, tokens(net, tokenizer, length=WORDS, reads=FILTERS[name](texts)), 'sparse').fit(texts[:300])
            if not parts: cf.explain(some[:1])      # what is learnt once is not counted
            with atomic(kept) as f: f.write_text(json.dumps(part_of(cf, some[i:i + PART])))
        parts.append(json.loads(kept.read_text()))
    joined = {k: sum((p[k] for p in parts), []) for k in ('before', 'after', 'valid')}
    return joined | dict(seconds=sum(p['seconds'] for p in parts), legal=all(p['legal'] for p in parts))


def part_of(cf, texts):
    "The answers for some texts, and what they took."
    start = time.process_time()
    cfs = cf.explain(texts, max_changes=MOST)
    took = time.process_time() - start
    legal = bool(cf.domain.legal(cfs.data, cfs.raw).all())
    print(f'{len(texts)} reviews, {len(cfs.changes())} words, {took:.0f} CPU seconds', flush=True)
    return dict(before=list(cfs.data), after=list(cfs.raw), valid=cfs.valid.tolist(), seconds=took, legal=legal)


def first(found, rows):
    "The first answers of a longer run; seconds in proportion."
    part = {k: found[k][:rows] for k in ('before', 'after', 'valid')}
    return found | part | dict(seconds=found['seconds']*rows/len(found['valid']))


def excerpts(found, table, most=15, around=9):
    "Reviews before and after: the words around each swap, reviews with few swaps first."
    out = []
    for i in table.groupby('review').size().sort_values(kind='stable').index[:most]:
        places, text = {p: (a, b) for _, p, a, b in table.loc[table.review == i, ['review', 'place', 'before', 'after']].values}, []
        words = [found['before'][i][a:b] for a, b in _word_spans(found['before'][i])]
        near = sorted({q for p in places for q in range(p - around, p + around + 1) if 0 <= q < len(words)})
        for q, last in zip(near, [near[0] - 1, *near]):
            if q > last + 1: text.append('…')
            text.append(f'[{places[q][0]} → {places[q][1]}]' if q in places else words[q])
        out.append(dict(review=i, swaps=len(places), valid=found['valid'][i], gain=round(table.gain[table.review == i].median(), 1),
                        text=' '.join(text)))
    return pd.DataFrame(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--rows', type=int, default=20), p.add_argument('--seed', type=int, default=0)
    p.add_argument('--only', nargs='*', choices=FILTERS, default=list(FILTERS))
    p.add_argument('--csv', type=Path, default=RESULTS/'encoder.csv')
    a = p.parse_args()
    torch.set_num_threads(1)
    train, test = load_imdb()
    texts, labels = list(train['text'])[::2], list(train['label'])[::2]
    net, tokenizer = reader(texts, labels)
    right = measured_accuracy(net, tokenizer, test)
    for name in a.only: explained(name, net, tokenizer, texts, a.rows, a.seed)
    ear, index = judge()
    table = pd.read_csv(a.csv) if a.csv.is_file() else pd.DataFrame(columns=['classifier', 'filter'])
    for name in a.only:
        for who in ('encoder', 'convolution'):
            if ((table.classifier == who) & (table['filter'] == name)).any(): continue
            if who == 'encoder': found = explained(name, net, tokenizer, texts, a.rows, a.seed)
            else: found = first(answers(dict(none='today').get(name, name), 300, a.seed), a.rows)
            line = dict(classifier=who, filter=name, rows=a.rows, accuracy=right if who == 'encoder' else np.nan)
            swaps = judged(found, ear, index)
            line |= spread_of(found, swaps, a.rows)
            if who == 'encoder':
                with atomic(a.csv.with_name(f'{a.csv.stem}_{name}.csv')) as f: excerpts(found, swaps).to_csv(f, index=False)
            table = pd.DataFrame([*table.to_dict('records'), line])
            with atomic(a.csv) as f: table.round(4).to_csv(f, index=False)
            print(table.tail(1).round(3).to_string(header=False), flush=True)


if __name__ == '__main__': main()
