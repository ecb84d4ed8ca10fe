"""The other end of the pipe: start a peer in its environment, answer its questions, collect its answers."""
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from gradual_cf.models.networks import save_model

from .environments import environment, last_line

PATIENCE = 300 # Wall seconds in which a peer must start
WAIT = 10 # Wall seconds for a CPU second, until a peer must say something
HERE = Path(__file__).resolve().parent


def hand_over(case, folder, budget, limit, several):
    "What a peer reads."
    named = [int(j) for j in np.flatnonzero(case.named)]
    groups = case.domain.groups(case.encode(case.codes(case.rows[:1])).shape[1:]).tolist()
    k = int(case.table.y.max()) + 1
    names = list(case.table.X)
    fixed = [names.index(c) for c in case.table.rules.get('immutable', [])]
    grows = [names.index(c) for c in case.table.rules.get('increase_only', [])]
    whole = [j for j, c in enumerate(case.domain.features) if c.unit]
    told = dict(names=names, named=named, levels=[case.domain.features[j].width for j in named], groups=groups, classes=k,
                fixed=fixed, grows=grows, whole=whole, budget=budget, limit=limit, seed=case.seed, several=several)
    (folder/'told.json').write_text(json.dumps(told))
    train, rows = case.codes(case.table.X), case.codes(case.rows)
    arrays = dict(train=train, labels=case.table.y, said=case.ask(train).argmax(1), rows=rows, target=case.target,
                  x_train=case.encode(train).numpy(), x_rows=case.encode(rows).numpy())
    for name, v in arrays.items(): np.save(folder/f'{name}.npy', v, allow_pickle=False)
    if case.is_network: save_model(case.model, folder/'network.safetensors')


class Pipe:
    "Lines of JSON and raw numbers, with a limit on waiting."
    def __init__(self, process):
        self.process, self.fd, self.buffer = process, process.stdout.fileno(), b''

    def _more(self, seconds):
        if not select.select([self.fd], [], [], max(0, seconds))[0]: raise TimeoutError
        got = os.read(self.fd, 1 << 20)
        if not got: raise EOFError
        self.buffer += got

    def read(self, seconds):
        "A message: what its line says, and its numbers."
        end = time.monotonic() + seconds
        while b'\n' not in self.buffer: self._more(end - time.monotonic())
        line, _, self.buffer = self.buffer.partition(b'\n')
        head = json.loads(line)
        size = 8*head.get('d', 0)*head.get('n', 1)
        while len(self.buffer) < size: self._more(end - time.monotonic())
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return head, np.frombuffer(body)

    def write(self, head, values):
        self.process.stdin.write(json.dumps(head).encode() + b'\n' + np.ascontiguousarray(values, float).tobytes())
        self.process.stdin.flush()


def reply(case, pipe, head, body):
    "Answer a question about the model."
    start, x = time.process_time(), body.reshape(head['n'], head['d'])
    p = case.ask(x) if head['ask'] == 'codes' else case.ask_encoded(x)
    pipe.write(dict(n=len(p), k=p.shape[1], seconds=time.process_time() - start), p)


def converse(case, pipe, budget, several):
    "Answers as codes, seconds and words of each row, and what it took, from what the peer says."
    rows = case.codes(case.rows)
    codes, seconds, words = [], [], []
    told, wait = dict(fit=np.nan, memory=np.nan), PATIENCE
    while True:
        try: head, body = pipe.read(wait)
        except TimeoutError:
            if np.isnan(told['fit']): raise RuntimeError(f'does not start in {PATIENCE} s') from None
            return codes + [np.full(several*rows.shape[1], np.nan)], seconds + [budget], words + ['cut off'], told
        if 'failed' in head: raise RuntimeError(f'does not start: {head["failed"]}')
        if 'ready' in head: told['fit'], wait = head['ready'], WAIT*budget*len(rows)
        if 'ask' in head: reply(case, pipe, head, body)
        if 'done' in head: return codes, seconds, words, told | dict(memory=head['done'])
        if 'answer' in head:
            codes.append(answered(case, head, body, rows[head['answer']], several))
            seconds.append(head['seconds'])
            words.append(head['words'])


def answered(case, head, body, row, several):
    "The codes of an answer, or of several behind each other; NaN where there is none."
    out = np.full((several, len(row)), np.nan)
    if head['d']:
        codes = body.reshape(-1, len(row)) if head['space'] == 'codes' else case.decode(body[None], row[None])
        out[:len(codes)] = codes[:several]
    return out.ravel()


def end(process):
    "Nothing is left of a peer."
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        try: pipe.close()
        except BrokenPipeError: pass # what it never read


def run(package, method, case, folder, budget, limit, several=1):
    "A peer's answers as codes, `several` of a row side by side, seconds a row, and what it took; or `RuntimeError` with its words."
    python = environment(folder, package)
    quiet = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
    quiet |= dict(OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1', TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES='',
                  TF_NUM_INTRAOP_THREADS='1', TF_NUM_INTEROP_THREADS='1', TF_USE_LEGACY_KERAS='0')
    with tempfile.TemporaryDirectory() as d, open(Path(d)/'err', 'w+') as err:
        hand_over(case, Path(d), budget, limit, several)
        command = [python, HERE/f'peers/ask_{package}.py', d, method]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, env=quiet, cwd=d)
        try: codes, seconds, words, told = converse(case, Pipe(process), budget, several)
        except (EOFError, BrokenPipeError):
            process.wait(10)
            raise RuntimeError(f'ends by itself: {last_line((Path(d)/"err").read_text())}') from None
        finally: end(process)
    if not codes: raise RuntimeError('answers no row')
    said = [w for w in words if w]
    told['words'] = f'{len(said)} of {len(words)} rows: {max(set(said), key=said.count)}' if said else ''
    return np.stack(codes), np.array(seconds), told | dict(single=float(np.mean(seconds)))
