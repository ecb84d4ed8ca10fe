"""Three tiny problems in 64-bit floats, one for each shape of group: columns, blocks, tokens; models of which every weight is known; a table of loans."""
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from gradual_cf.all import Display, Domain, Encoded, Target, block_groups, box, column_groups, fit_logits, logit_gap, predict, token_groups
from gradual_cf.models.networks import seeded
from gradual_cf.search.goals import Match


class Toy(NamedTuple):
    model:nn.Module # 64-bit, in eval mode
    x:Tensor        # Inputs, `(200, *s)`
    groups:Tensor   # `(*s)`
    frozen:Tensor   # bool `(200, g)`
    domain:Domain


def propose(groups):
    "Eleven values for each group: all its entries equal, a multiple of .1."
    width = lambda g: int((groups == g).sum())
    return lambda x, g: torch.linspace(0, 1, 11, dtype=x.dtype)[None, :, None].expand(1, 11, width(g))


def make(model, x, groups):
    "Wrap a model and inputs as a problem in which the first group of every fifth row is frozen."
    g = int(groups.max()) + 1
    frozen = torch.zeros(len(x), g, dtype=torch.bool)
    frozen[::5, 0] = True
    domain = Domain(lambda raw: Encoded(torch.as_tensor(raw).clone(), frozen[:len(raw)]), lambda x, raw=None, legal=True: x,
                    lambda s: groups, box(0., 1.), propose(groups))
    return Toy(model.double().eval(), x.double(), groups, frozen, domain)


def sharpen(model, x):
    "Scale the last layer so that classes are well apart, and centre it so that all of them occur."
    last = [m for m in model if isinstance(m, nn.Linear)][-1]
    z = predict(model, x)
    with torch.no_grad():
        last.weight.div_(z.std(0)[:, None]).mul_(2)
        last.bias.copy_(2*(last.bias - z.mean(0))/z.std(0))
    return model


def columns(k=2):
    "Six columns, of which the last three are siblings of one category."
    with seeded(3):
        x = torch.rand(200, 6)
        model = sharpen(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, k)), x)
    return make(model, x, column_groups(['a', 'b', 'c', 'd', 'd', 'd']))


def blocks():
    "8×8 images in 4×4 blocks, three classes, a small convolution."
    with seeded(4):
        x = torch.rand(200, 1, 8, 8)
        model = sharpen(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)), x)
    return make(model, x, block_groups((1, 8, 8), 4))


def tokens():
    "Five tokens of three numbers, two classes."
    with seeded(5):
        x = torch.rand(200, 5, 3)
        model = sharpen(nn.Sequential(nn.Flatten(), nn.Linear(15, 10), nn.Tanh(), nn.Linear(10, 2)), x)
    return make(model, x, token_groups((5, 3)))


PROBLEMS = dict(columns=columns, blocks=blocks, tokens=tokens)


def reference(toy, label, quantile=None, level=.5, match=logit_gap):
    "The `Target` of some classes on a toy problem."
    stats = fit_logits(predict(toy.model, toy.x))
    gap = () if quantile is None else (Match(stats.largest_gap(label, quantile), match),)
    return Target(label, torch.full(label.shape, level, dtype=toy.x.dtype), stats.mu[label], demands=gap)


def loans_of(rng, n):
    "Applicants for a loan: what they earn, how often they paid late, what they owe."
    return pd.DataFrame(dict(income=rng.integers(12, 90, n)*100, late=rng.integers(0, 9, n), debt=rng.integers(0, 40, n)*50))


class Score(nn.Module):
    "A scorecard: log-odds are linear in what is encoded."
    def __init__(self, weights, bias=-2.):
        super().__init__()
        self.weights, self.bias = nn.Parameter(torch.as_tensor(weights)), bias

    def forward(self, x):
        z = x @ self.weights.to(x) + self.bias
        return torch.stack([-z, z], 1)/2


class Level(nn.Module):
    "A model that decides by the mean of a stretch of one channel, and has a gradient."
    def __init__(self, at=slice(20, 40), channel=0):
        super().__init__()
        self.at, self.channel = at, channel

    def forward(self, x):
        lead = 4*x[:, self.channel, self.at].mean(1)
        return torch.stack([-lead, lead], 1)


def waves(n=60, c=2, length=80, seed=0):
    "Smooth series; in every second one the stretch that `Level` looks at is high, in the others low."
    rng, t = np.random.default_rng(seed), np.arange(length)
    X = np.sin(t/6 + rng.uniform(0, 6, (n, c, 1)))*.3
    X[:, 0, 18:42] += np.where(np.arange(n) % 2, 1, -1)[:, None]*np.hanning(24)*1.5
    return X


def stretches(**display):
    "Curves of twelve samples in three stretches, as a domain written by hand."
    ids = torch.arange(12)//4
    def encode(data):
        x = torch.as_tensor(np.asarray(data)).double().reshape(-1, 12)
        return Encoded(x, torch.zeros(len(x), 3, dtype=torch.bool))
    def decode(x, data, legal): return x.clamp(0, 1).numpy()
    def propose(x, group): return torch.linspace(0, 1, 6).to(x)[None, :, None].expand(1, 6, 4)
    return Domain(encode, decode, lambda s: ids, propose=propose, display=Display(**display))
