"""Other packages for the benchmarks, in a folder beside the environment: nothing that this package needs changes its version."""
import subprocess
import sys


def install(folder, packages):
    "Put packages, without what they require, into a folder and on the path; what does not install says why when it is imported."
    folder.mkdir(parents=True, exist_ok=True)
    for what in packages:
        if list(folder.glob(what.split('==')[0].replace('-', '_') + '-*')): continue
        pip = [sys.executable, '-m', 'pip', 'install', '-q', '--disable-pip-version-check']
        r = subprocess.run([*pip, '--no-deps', '--target', folder, what], capture_output=True, text=True)
        if r.returncode: print(f'{what} does not install:', (r.stderr.strip().splitlines() or ['?'])[-1][:150])
    sys.path.append(str(folder))
