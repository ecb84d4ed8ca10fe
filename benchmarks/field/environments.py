"""An environment for each package, so that none changes a version of another."""
import subprocess
import sys

PACKAGES = dict(nice=['NICEx==0.2.3', 'numpy<2', 'pandas<2', 'scikit-learn'], dice=['dice-ml==0.12', 'numpy<2.3', 'pandas<2.3', 'torch'],
                cfnow=['cfnow==0.0.6'], alibi=['alibi[tensorflow]==0.9.6', 'click', 'pandas'], cel=['ce-library==0.1.1'])
PIP = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check']


def last_line(text): return (text.strip().splitlines() or ['?'])[-1][:200]


def environment(folder, name):
    "Its Python; raises `RuntimeError` with pip's last line where it does not install."
    python = folder/name/'bin/python'
    if (folder/name/'.done').exists(): return python
    subprocess.run([sys.executable, '-m', 'venv', folder/name], check=True)
    for what in (['-U', 'pip'], PACKAGES[name]):
        r = subprocess.run([python, *PIP, *what], capture_output=True, text=True)
        if r.returncode: raise RuntimeError(f'does not install: {last_line(r.stderr)}')
    (folder/name/'.done').touch()
    return python
