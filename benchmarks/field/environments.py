"""An environment for each package, so that none changes a version of another."""
import shutil
import subprocess
import sys

# name -> (Python that it wants, or None for this one; what to install; what to install without its requirements)
PACKAGES = dict(
    nice=(None, ['NICEx==0.2.3', 'numpy<2', 'pandas<2', 'scikit-learn'], []),
    dice=(None, ['dice-ml==0.12', 'numpy<2.3', 'pandas<2.3', 'torch'], []),
    cfnow=(None, ['cfnow==0.0.6'], []),
    alibi=(None, ['alibi[tensorflow]==0.9.6', 'click', 'pandas'], []),
    cel=(None, ['ce-library==0.1.1'], []),
    carla=('3.7', ['torch==1.7.0', 'numpy==1.19.4', 'pandas==1.1.4', 'scikit-learn==0.23.2', 'tqdm'],
           ['carla-recourse==0.0.5'])) # with all that it pins, resolving was stopped after twenty minutes
PIP = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check']


def last_line(text): return (text.strip().splitlines() or ['?'])[-1][:200]


def python_of(version):
    "An interpreter of a version; raises `RuntimeError` where there is none."
    if version is None: return sys.executable
    found = shutil.which(f'python{version}')
    if found is None: raise RuntimeError(f'needs Python {version}, which is not here')
    return found


def environment(folder, name):
    "Its Python; raises `RuntimeError` with pip's last line where it does not install."
    wanted, packages, alone = PACKAGES[name]
    python = folder/name/'bin/python'
    if (folder/name/'.done').exists(): return python
    subprocess.run([python_of(wanted), '-m', 'venv', folder/name], check=True)
    for what in (['-U', 'pip'], packages, ['--no-deps', *alone] if alone else []):
        if not what: continue
        r = subprocess.run([python, *PIP, *what], capture_output=True, text=True)
        if r.returncode: raise RuntimeError(f'does not install: {last_line(r.stderr)}')
    (folder/name/'.done').touch()
    return python
