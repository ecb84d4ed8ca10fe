"`gradual-cf` in a process of its own, as a shell runs it."
import os
import subprocess
import sys


def without_data(): return {k: v for k,v in os.environ.items() if k != 'GRADUAL_CF_DATA'}


def shell(cache, cwd=None):
    "A function that runs the command with its own cache and without any data, and checks its exit code."
    env = without_data() | dict(GRADUAL_CF_CACHE=str(cache), HF_HUB_OFFLINE='1')
    def run(*args, code=0):
        r = subprocess.run([sys.executable, '-c', 'from gradual_cf.cli import app; app()', *map(str, args)], capture_output=True, text=True, env=env, cwd=cwd, timeout=300)
        assert r.returncode == code, (r.returncode, r.stdout, r.stderr)
        assert 'Traceback' not in r.stderr
        return r
    return run
