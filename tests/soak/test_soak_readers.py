"""Broken files: every reader ends in an answer or in a `ValueError`, in time, and alive."""
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SIZE = int(os.environ.get('SOAK_SIZE', 400))
CASES = {'xgboost json': 100, 'xgboost ubj': 100, 'lightgbm': 100, 'catboost': 100, 'manifest': 10}  # these take longer for each file, most in a process of their own: a part of the others
NEEDS = {'xgboost json': 'xgboost', 'xgboost ubj': 'xgboost', 'lightgbm': 'lightgbm', 'catboost': 'catboost', 'onnx': 'skl2onnx', 'skops': 'skops'}
READERS = ['answers', 'parquet', 'csv', 'weights', 'glove', 'xgboost json', 'xgboost ubj', 'lightgbm', 'catboost', 'onnx', 'skops', 'picture',
           'letter', 'letter md', 'letter html', 'manifest', 'relation', 'sentence']


@pytest.mark.parametrize('name', READERS)
def test_a_broken_file_is_an_error_or_an_answer(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None: pytest.skip(f'need {NEEDS[name]} (make .venv/.extras)')
    count = max(SIZE//10//CASES.get(name, 1), 3)
    paths = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run([sys.executable, HERE/'fuzz.py', name, '0', str(count)], capture_output=True, text=True, env=os.environ | dict(PYTHONPATH=paths))
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
    assert done.returncode == 0, f'case {lines[-1:]} ended the process: {done.returncode}, {done.stderr[-300:]}'
    assert not (bad := [line for line in lines if 'bad' in line]), bad[:5]
    assert len(lines) == count
