"""What runs in a peer's own environment: rows and words come from a folder, answers and questions go through a pipe.

    python PEER.py FOLDER METHOD

Every question about the model goes to the process that has it, so all methods ask the very same model. Numbers travel as
raw 64-bit floats, behind a line of JSON. A row that takes longer than its budget (CPU seconds here and there together) is
cut off. Needs numpy, and nothing newer than Python 3.7.
"""
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from memory import Peak  # noqa: E402

warnings.filterwarnings('ignore')


class Cut(BaseException):
    "A row's time is over."


def _cut(*_): raise Cut()


class Task:
    "What a peer is given: codes and encoded rows, targets, what must stay; and the model to ask."
    def __init__(self, folder, method):
        self.folder, self.method = Path(folder), method
        self.told = json.loads((self.folder/'told.json').read_text())
        for name in ('train', 'labels', 'said', 'rows', 'target', 'x_train', 'x_rows'):
            setattr(self, name, np.load(str(self.folder/name) + '.npy', allow_pickle=False))
        self.names, self.named = self.told['names'], self.told['named']
        self.numbers = [j for j in range(len(self.names)) if j not in self.named]
        self.budget, self.spent = self.told['budget'], 0.
        self._out = os.fdopen(os.dup(1), 'wb')
        os.dup2(2, 1) # whatever a package prints goes elsewhere
        self._in = os.fdopen(os.dup(0), 'rb')

    def _send(self, head, values=None):
        body = b'' if values is None else np.ascontiguousarray(values, np.float64).tobytes()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])
        self._out.write(json.dumps(head).encode() + b'\n' + body)
        self._out.flush()
        return blocked

    def _asked(self, head, x):
        x = np.atleast_2d(np.asarray(x, np.float64))
        blocked = self._send(dict(head, n=x.shape[0], d=x.shape[1]), x)
        told = json.loads(self._in.readline())
        p = np.frombuffer(self._in.read(8*told['n']*told['k'])).reshape(told['n'], told['k'])
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.spent += told['seconds']
        if self.spent > self.most and self.running: raise Cut()
        return p.copy()

    running, most = False, 0.

    def ask(self, codes):
        "Probabilities of rows of codes, `(n, k)`."
        return self._asked(dict(ask='codes'), codes)

    def ask_encoded(self, x):
        "Probabilities of encoded rows, `(n, k)`."
        return self._asked(dict(ask='encoded'), x)

    def weights(self):
        "The network's layers, [(weight, bias)], from safetensors; nothing for a model that is none."
        path = self.folder/'network.safetensors'
        if not path.exists(): return None
        w = _tensors(path.read_bytes())
        order = sorted({int(k.split('.')[0]) for k in w})
        return [(w['%d.weight' % i], w['%d.bias' % i]) for i in order]

    def limits(self):
        "Smallest and largest code of each column in the training rows."
        return self.train.min(0), self.train.max(0)


def _tensors(data):
    "What a safetensors file holds, name -> array: a header of JSON, then raw 32-bit floats."
    size = int.from_bytes(data[:8], 'little')
    head, body = json.loads(data[8:8 + size].decode()), data[8 + size:]
    told = {name: v for name, v in head.items() if name != '__metadata__'}
    assert all(v['dtype'] == 'F32' for v in told.values())
    return {name: np.frombuffer(body[slice(*v['data_offsets'])], np.float32).reshape(v['shape']) for name, v in told.items()}


def torch_network(task):
    "The same network in PyTorch."
    import torch
    layers = task.weights()
    out = []
    for i, (w, b) in enumerate(layers):
        one = torch.nn.Linear(w.shape[1], w.shape[0])
        with torch.no_grad():
            one.weight.copy_(torch.from_numpy(w.copy()))
            one.bias.copy_(torch.from_numpy(b.copy()))
        out.append(one)
        if i < len(layers) - 1: out.append(torch.nn.ReLU())
    return torch.nn.Sequential(*out).eval()


def _timed(task, one, seconds):
    "What a call answers, or None; its seconds, and an error's words. It is cut off after so many seconds."
    task.spent, task.running, task.most, start, words, got = 0., True, seconds, time.process_time(), '', None
    signal.setitimer(signal.ITIMER_PROF, seconds, .2)
    try: got = one()
    except Cut: words = 'cut off'
    except Exception as e: words = ('%s: %s' % (type(e).__name__, ' '.join(str(e).split())))[:160]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        task.running = False
    return got, time.process_time() - start + task.spent, words


def _tell(task, i, got, seconds, words, space):
    "Send the answer to a row."
    if got is not None: got = np.asarray(got, float).ravel()
    if got is not None and not np.isfinite(got).all(): got = None
    task._send(dict(answer=i, seconds=seconds, words=words, d=0 if got is None else len(got), space=space), got)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])


def _alone(task, one, space):
    "Row by row, until the time of the part is over; three at least."
    used = 0.
    for i in range(len(task.rows)):
        got, seconds, words = _timed(task, lambda: one(i), task.budget)
        _tell(task, i, got, seconds, words, space)
        used += seconds
        if used > task.told['limit'] and i >= 2: break


def _together(task, every, space):
    "All rows at once, in the time that they have together."
    n = len(task.rows)
    found, seconds, words = _timed(task, every, n*task.budget)
    for i in range(n): _tell(task, i, None if found is None else found[i], seconds/n, words, space)


def serve(methods, batched=()):
    "Run the method that the command line names on all rows, or on as many as fit into the time of the part."
    task = Task(sys.argv[1], sys.argv[2])
    signal.signal(signal.SIGPROF, _cut)
    peak, start = Peak(), time.process_time()
    try: space, one = methods[task.method](task)
    except Exception as e:
        task._send(dict(failed=('%s: %s' % (type(e).__name__, ' '.join(str(e).split())))[:300]))
        return
    task._send(dict(ready=time.process_time() - start + task.spent))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    (_together if task.method in batched else _alone)(task, one, space)
    task._send(dict(done=peak.megabytes()))
