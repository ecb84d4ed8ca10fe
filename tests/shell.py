"""`gradual-cf` in a process of its own, as a shell runs it, forked from one that has the package already imported."""
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'docs'))
from kernels import forked  # noqa: E402


class Done(NamedTuple):
    "What a command wrote, and how it ended."
    stdout: str
    stderr: str
    returncode: int


def without_data(): return {k: v for k,v in os.environ.items() if k != 'GRADUAL_CF_DATA'}


def command(args, env, cwd, out):
    "Run the command here, with its streams in files `1` and `2` of a folder."
    os.environ.clear()
    os.environ.update(env)
    for stream in (1, 2): os.dup2(os.open(f'{out}/{stream}', os.O_WRONLY | os.O_CREAT), stream)
    if cwd: os.chdir(cwd)
    sys.argv = ['gradual-cf', *args]
    from gradual_cf.cli import app
    app()


def shell(cache, cwd=None):
    "A function that runs the command with a cache folder and without any data, and checks its exit code."
    env = without_data() | dict(GRADUAL_CF_CACHE=str(cache), HF_HUB_OFFLINE='1')
    def run(*args, code=0):
        with tempfile.TemporaryDirectory() as out:
            process = forked(command, list(map(str, args)), env, cwd and str(cwd), out)
            process.join(300)
            process.kill()
            r = Done(*((Path(out)/s).read_text() for s in '12'), process.exitcode)
        assert r.returncode == code, r
        assert 'Traceback' not in r.stderr
        return r
    return run
