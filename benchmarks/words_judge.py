"""A judge of how texts read that is no table of counts: a small recurrent language model.

    GRADUAL_CF_DATA=... python benchmarks/words_judge.py    # trains it on the odd IMDB training reviews and keeps it in the cache

The rule under test learns from the even reviews, by counting. The judge is an LSTM with an adaptive softmax, so neither texts nor family are shared.
"""
import time

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from gradual_cf.core import atomic, cache_dir
from gradual_cf.data.words import load_glove, load_imdb, _lookup_form, _word_spans

WIDTH, STEPS, ROWS = 192, 40, 64  # entries of a state, words of a stretch, stretches side by side
EPOCHS, RATE = 3, 3e-3


class Judge(nn.Module):
    "Log-probability of each word of a text after all that stand before it."
    def __init__(self, v):
        super().__init__()
        self.v = v                                      # v an unknown word, v + 1 the edge of a text
        self.embed, self.lstm = nn.Embedding(v + 2, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.drop = nn.Dropout(.2)
        self.out = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, v + 2, cutoffs=[1500, 6000], div_value=4.)

    def forward(self, x, state=None):
        h, state = self.lstm(self.drop(self.embed(x)), state)
        return self.drop(h), state

    @torch.no_grad()
    def log_prob(self, ids):
        "Sum over each text, `ids` `(n, l)` with edges behind the end: `(n,)`."
        edge = torch.full_like(ids[:, :1], self.v + 1)
        h, _ = self(torch.cat([edge, ids[:, :-1]], 1))
        each = self.out(h.flatten(0, 1), ids.flatten()).output.view(ids.shape)
        return (each*(ids != self.v + 1)).sum(1)


def word_ids(texts, index):
    "Numbers of the words of texts, unknown ones as one number."
    v = len(index)
    return [[index.get(_lookup_form(t[a:b]), v) for a, b in _word_spans(t)] for t in texts]


def train(texts, index):
    "Train a judge; minutes on one core."
    torch.manual_seed(0)
    net = Judge(len(index))
    stream = torch.tensor([i for line in word_ids(texts, index) for i in (net.v + 1, *line)])
    stream = stream[:len(stream)//ROWS*ROWS].view(ROWS, -1)
    starts = range(0, stream.shape[1] - 1, STEPS)
    opt = torch.optim.Adam(net.parameters(), RATE)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, RATE, EPOCHS*len(starts))
    for epoch in range(EPOCHS):
        state, total, begin = None, 0., time.process_time()
        for i in starts:
            x, y = stream[:, i:i + STEPS], stream[:, i + 1:i + 1 + STEPS]
            h, state = net(x[:, :y.shape[1]], state)
            state = tuple(s.detach() for s in state)
            loss = net.out(h.flatten(0, 1), y.flatten()).loss
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.)
            opt.step(), plan.step()
            total += loss.item()/len(starts)
        print(f'epoch {epoch + 1}: {total:.3f} nats a word, {time.process_time() - begin:.0f} CPU seconds', flush=True)
    return net.eval()


def judge():
    "The kept judge, or a new one."
    index, path = load_glove().index, cache_dir()/'words-judge.safetensors'
    if not path.is_file():
        net = train(list(load_imdb()[0]['text'])[1::2], index)
        with atomic(path) as f: save_file(net.state_dict(), f)
    net = Judge(len(index)).eval()
    net.load_state_dict(load_file(path))
    return net, index


if __name__ == '__main__':
    torch.set_num_threads(1)
    net, index = judge()
    v = net.v
    lines = [line[:256] for line in word_ids(list(load_imdb()[1]['text'])[:100], index)]
    ids = nn.utils.rnn.pad_sequence([torch.tensor(line) for line in lines], batch_first=True, padding_value=v + 1)
    print(f'{-(net.log_prob(ids).sum()/sum(map(len, lines))).item():.3f} nats a word on 100 test reviews')
