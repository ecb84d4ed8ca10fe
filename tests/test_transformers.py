"""A small BERT, made from a config and trained on the toy reviews, handed over as a pipeline."""
import re
from collections import Counter

import pytest
import torch
import written

from gradual_cf.all import GradualCF, load_toy_reviews, sentences
from gradual_cf.models.networks import seeded

transformers = pytest.importorskip('transformers', reason='need transformers (make .venv/.extras)')
if not transformers.utils.is_torch_available(): pytest.skip('need a PyTorch that transformers knows', allow_module_level=True)
tokenizers = pytest.importorskip('tokenizers')


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


def test_a_pipeline_is_explained_by_its_own_answers(bert):
    model, tok, train, test = bert
    before = {n: p.grad for n, p in model.named_parameters()}
    pipe = transformers.pipeline('text-classification', model=model, tokenizer=tok)
    cf = GradualCF(pipe, sentences(train['text'][:100], leave_out=True)).fit(train['text'][:100])
    answers = cf.explain(test['text'][:3])
    said = [one['label'] for one in pipe(list(answers.raw))]
    assert answers.valid.all() and all((s == t) == ok for s, t, ok in zip(said, answers.target, answers.valid))
    assert cf.domain.legal(answers.data, answers.raw).all() and (answers.changed.sum(1) > 0).all()
    assert all(p.grad is before[n] and p.requires_grad for n, p in model.named_parameters())
