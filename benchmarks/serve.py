"""Fifty clients ask a server for some seconds, which is killed in between; writes results/serve.csv.

    python benchmarks/serve.py --seconds 30

Each client asks one row after the other, comes again where it is told to (503), and goes on where the server was gone. An
answer is right where it fits the published schema and the model, asked here, confirms what it says. Latencies are those of
requests that were let in; `ratio` is their 95th percentile over the median of one client alone on the same machine.
"""
import argparse
import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

RESULTS = Path(__file__).parent/'results'/'serve.csv'


def made(folder):
    "A fitted explainer of the embedded bank, saved; refused rows, and who confirms answers."
    from sklearn.ensemble import HistGradientBoostingClassifier
    from gradual_cf.all import GradualCF, load_loans, tabular
    X, y, X_test, _ = load_loans()
    model = HistGradientBoostingClassifier(categorical_features='from_dtype', random_state=0, max_iter=50).fit(X, y)
    cf = GradualCF(model, tabular(X, immutable=['age']), 'sparse').fit(X)
    cf.save(folder)
    refused = X_test[model.predict(X_test) == 'refused']
    return model, X, json.loads(refused.to_json(orient='records'))


def begun(folder, port, workers, token):
    "A server in a process of its own, and its address once it listens."
    env = dict(os.environ, GRADUAL_CF_TOKEN=token, OMP_NUM_THREADS='1')
    code = f"from gradual_cf.scale.serve import serve_folder; serve_folder({str(folder)!r}, port={port}, workers={workers})"
    process = subprocess.Popen([sys.executable, '-c', code], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    return process, process.stdout.readline().split()[0]


def post(address, question, token):
    "Status and JSON, or how long to wait; no status where nobody listens."
    request = urllib.request.Request(address + '/explain', json.dumps(question).encode(), {'Authorization': f'Bearer {token}'})
    try:
        with urllib.request.urlopen(request, timeout=120) as told: return told.status, json.loads(told.read())
    except urllib.error.HTTPError as e: return e.code, float(e.headers['Retry-After'] or 0)
    except (OSError, ValueError): return None, 1.


class Tally:
    "What clients saw."
    def __init__(self): self.lock, self.took, self.answers, self.refused, self.cut, self.asked = threading.Lock(), [], [], 0, 0, 0


def client(address, rows, token, until, tally):
    "Ask one row after the other until it is answered."
    for k in range(10**9):
        if time.time() > until: return
        row = rows[k % len(rows)]
        with tally.lock: tally.asked += 1
        while True:
            start = time.perf_counter()
            status, told = post(address, dict(rows=[row], target='granted'), token)
            with tally.lock:
                if status == 200:
                    tally.took.append(time.perf_counter() - start)
                    tally.answers.append((row, told))
                elif status == 503: tally.refused += 1
                else: tally.cut += 1
            if status == 200: break
            time.sleep(told)


def memory(pid):
    "MB of a process and its children."
    pids = [pid, *map(int, subprocess.run(['ps', '-o', 'pid=', '--ppid', str(pid)], capture_output=True, text=True).stdout.split())]
    return sum(int(Path(f'/proc/{p}/statm').read_text().split()[1])*4096/2**20 for p in pids if Path(f'/proc/{p}').exists())


def wrong(model, X, answers):
    "Answers that do not fit the schema, or that the model does not confirm."
    import jsonschema
    import numpy as np
    import pandas as pd
    from gradual_cf.use.evidence import answer_schema
    check = jsonschema.Draft202012Validator(answer_schema() | {'$ref': '#/$defs/answers'})
    bad = sum(not check.is_valid(told) for _, told in answers)
    lines = [told['answers'][0] for _, told in answers]
    frame = pd.DataFrame([a['answer'] for a in lines], columns=X.columns).astype(X.dtypes)
    p = model.predict_proba(frame)[:, list(model.classes_).index('granted')]
    return bad + int((np.abs(p - [a['after'] for a in lines]) > 1e-5).sum()) + int(((p > .5) != [a['valid'] for a in lines]).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--clients', type=int, default=50)
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--out', type=Path, default=RESULTS)
    args = parser.parse_args()
    folder, token = Path(tempfile.mkdtemp())/'bank', 'bench'
    model, X, rows = made(folder)
    import socket
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    process, address = begun(folder, port, args.workers, token)
    alone = Tally()
    client(address, rows, token, time.time() + args.seconds/5, alone)
    before, tally = memory(process.pid), Tally()
    until = time.time() + args.seconds
    crowd = [threading.Thread(target=client, args=(address, rows[i::args.clients], token, until, tally)) for i in range(args.clients)]
    for t in crowd: t.start()
    time.sleep(args.seconds/2)
    middle = memory(process.pid)
    time.sleep(args.seconds/4)
    after, quiet = memory(process.pid), len(tally.took)
    os.killpg(process.pid, signal.SIGKILL)
    process, address = begun(folder, port, args.workers, token)
    for t in crowd: t.join()
    os.killpg(process.pid, signal.SIGKILL)
    one, p95 = statistics.median(alone.took), statistics.quantiles(tally.took[:quiet], n=20)[-1]
    told = dict(clients=args.clients, workers=args.workers, seconds=args.seconds, asked=tally.asked, answered=len(tally.answers),
                lost=tally.asked - len(tally.answers), wrong=wrong(model, X, tally.answers), refused=tally.refused, cut=tally.cut,
                one_ms=round(1000*one, 1), p50_ms=round(1000*statistics.median(tally.took[:quiet]), 1), p95_ms=round(1000*p95, 1),
                ratio=round(p95/one, 2), mb_before=round(before), mb_middle=round(middle), mb_after=round(after))
    args.out.parent.mkdir(exist_ok=True)
    with open(args.out, 'w', newline='') as f:
        w = csv.DictWriter(f, told)
        w.writeheader()
        w.writerow(told)
    print(json.dumps(told))


if __name__ == '__main__': main()
