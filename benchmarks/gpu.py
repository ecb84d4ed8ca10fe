"""On a graphics card: answers over their raw passes, the inner step over the floor, what a CUDA graph would change.

    python benchmarks/gpu.py [--rows 100 1000 10000 100000] [--rounds 7] [--out benchmarks/results/gpu.csv]
    python benchmarks/gpu.py --device cpu --rows 100 --rounds 3 --out benchmarks/results/gpu_on_cpu.csv

The floor is a raw forward+backward pass of the same network; the raw passes of an answer are its own passes forward, of the
same sizes, and nothing else. Ours and the floor are timed in turn, the card idle between; medians and quartiles of the ratios
are kept, with the card's name. Without a card nothing is measured unless `--device cpu` asks for it: a check of the script.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from speed import problem  # noqa: E402

from gradual_cf.all import Encoded, GradualCF, State, Target, compose, digit_cnn, init_composite  # noqa: E402
from gradual_cf.all import l2_distance, load_task, logit_gap, mix, predict  # noqa: E402
from gradual_cf.search.composition import loss_grad  # noqa: E402
from gradual_cf.core import atomic, take_rows  # noqa: E402


def idle():
    "Wait for the card, where there is one."
    if torch.cuda.is_available(): torch.cuda.synchronize()


def seconds(f):
    "Wall seconds of one call, the card idle before and after."
    idle()
    start = time.perf_counter()
    f()
    idle()
    return time.perf_counter() - start


def quartiles(v):
    v = sorted(v)
    return dict(value=statistics.median(v), low=v[len(v)//4], high=v[-1 - len(v)//4])


def ratio(a, b, rounds):
    "Quartiles of the time of `a` over `b`, in turn."
    a(), b()
    return quartiles([seconds(a)/seconds(b) for _ in range(rounds)])


def graphed(f):
    "A call captured as a CUDA graph; after a few calls on a stream of its own, as capture asks."
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side): [f() for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g): f()
    return g.replay


def networks(n, place):
    "The loan network and the digit network with inputs, on the card."
    model, x, domain = problem(22, max(n, 1000), 64)
    yield 'MLP, width 64', model.to(**place), x.to(**place), domain
    if n > 10_000: return
    pixels = torch.rand(max(n, 64), 1, 28, 28, generator=torch.Generator().manual_seed(0))
    yield 'CNN, 28×28', digit_cnn(seed=0).to(**place), pixels.to(**place), None


def steps(n, rounds, place, sigma=20):
    "An inner step over the floor, and both over themselves as graphs."
    for name, model, x, domain in networks(n, place):
        z, x = predict(model, x), x[:n]
        t = z[:n].argsort(1)[:, -2]
        groups = torch.arange(x[0].numel(), device=x.device).view(x.shape[1:])   # each entry its own group
        on = torch.zeros(n, groups.numel(), dtype=torch.bool, device=x.device)
        on[torch.arange(n), torch.arange(n) % groups.numel()] = True
        target = Target(t, torch.full((n,), .5, device=x.device), z.mean(0).expand(n, -1))
        loss, s = mix(logit=(1., logit_gap), l2=(.3, l2_distance)), State(Encoded(x, ~on), x, None, target, on, init_composite(x))
        def floor():
            v = x.detach().requires_grad_()
            torch.autograd.grad(model(v).sum(), v)
        ours = lambda: compose(model, s, groups, loss, sigma=sigma)
        floors = lambda: [floor() for _ in range(sigma + 1)]
        yield dict(what=f'inner step over the floor, {name}', rows=n, **ratio(ours, floors, rounds), unit='×')
        step = lambda: loss_grad(model, loss, s._replace(on=None, c=None))
        for what, f in (('floor', floor), ('gradient of the loss', step)):
            if place['device'] == 'cuda': yield dict(what=f'{what} over its CUDA graph, {name}', rows=n, **over_its_graph(f, rounds))


def over_its_graph(f, rounds):
    "Twenty calls over twenty replays of one, or why that cannot be."
    try: replay = graphed(f)
    except RuntimeError as e: return dict(value=float('nan'), unit='×', note=f'cannot be captured: {str(e).splitlines()[0][:100]}')
    return ratio(lambda: [f() for _ in range(20)], lambda: [replay() for _ in range(20)], rounds) | dict(unit='×')


def tasks(n, place):
    "A table, digits and texts with their networks: name, explainer, rows and targets."
    for name in ('breast_cancer', 'digits', 'toy_reviews'):
        task = load_task(name)
        model = task.model.to(**place)
        rows = take_rows(task.X_test, torch.arange(n) % len(task.X_test))
        cf = GradualCF(model, task.domain, 'sparse').fit(task.X)
        now = predict(model, task.domain.encode(rows).x.to(**place)).argmax(1)
        yield name, cf, rows, (now + 1) % len(task.classes)


def passes(cf, rows, target):
    "The sizes of all passes forward of one call, as `(rows, …)` each."
    seen = []
    hook = cf.model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape))
    try: cf.explain(rows, target)
    finally: hook.remove()
    return seen


def answers(n, rounds, place):
    "A default answer over its raw passes."
    for name, cf, rows, target in tasks(n, place):
        sizes = passes(cf, rows, target)
        inputs = {size: torch.rand(size, generator=torch.Generator().manual_seed(0)).to(**place) for size in set(sizes)}
        @torch.no_grad()
        def raw():
            for size in sizes: cf.model(inputs[size])
        many = sum(size[0] for size in sizes)/n
        yield dict(what=f'answers over their raw passes, {name}', rows=n, **ratio(lambda: cf.explain(rows, target), raw, rounds),
                   unit='×', note=f'{many:.0f} inputs a row in {len(sizes)} passes')


def throughput(n, rounds, place):
    "Rows a second in default mode."
    model, x, domain = problem(22, max(n, 1000), 64)
    model, x = model.to(**place), x.to(**place)
    cf = GradualCF(model, domain, 'sparse', batch_size=n).fit(x[:1000])
    cf.explain(x[:n])
    took = [n/seconds(lambda: cf.explain(x[:n])) for _ in range(rounds)]
    most = f'{torch.cuda.max_memory_allocated()/2**20:.0f} MiB at most' if place['device'] == 'cuda' else ''
    yield dict(what='rows a second, default, MLP, width 64', rows=n, **quartiles(took), unit='rows/s', note=most)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--rows', type=int, nargs='*', default=[100, 1_000, 10_000, 100_000])
    a.add_argument('--rounds', type=int, default=7)
    a.add_argument('--dtype', default='float32', choices=('float32', 'float64', 'bfloat16', 'float16'))
    a.add_argument('--device', default='cuda', choices=('cuda', 'cpu'))
    a.add_argument('--out', type=Path, default=Path('benchmarks/results/gpu.csv'))
    a = a.parse_args()
    if a.device == 'cuda' and not torch.cuda.is_available():
        sys.exit(f'no graphics card: torch {torch.__version__} sees none, so nothing was measured')
    place = dict(device=a.device, dtype=getattr(torch, a.dtype))
    lines, card = [], torch.cuda.get_device_name() if a.device == 'cuda' else 'none, on the processor'
    for n in a.rows:
        for part in (answers, steps, throughput) if n <= 1_000 else (steps, throughput):
            for l in part(n, a.rounds, place):
                lines.append(l)
                print(l, flush=True)
    df = pd.DataFrame(lines).assign(card=card, dtype=a.dtype, torch=torch.__version__)
    with atomic(a.out) as tmp: df.round(4).to_csv(tmp, index=False)


if __name__ == '__main__': main()
