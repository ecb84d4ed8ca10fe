"""Which mistakes in the method would go unnoticed? mutmut makes one small change at a time and runs the tests that touch it.

    make mutants [MODULES="search.masking search.trees"] [MOST=120]    # results of unchanged functions are kept in build/mutants

Of a module at most MOST mutants are tried, those with the smallest hashes of their names. First the tests nearest to the module and the
cells of its own chapter; what survives these meets the tests of the second line. A run that was ended goes on where it was.
What survives both is in `benchmarks/results/mutants_alive.csv`, and `reasons.csv` beside this file says why some of it may.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
HERE, BUILD, RESULTS = ROOT/'.ci/mutants', ROOT/'build/mutants', ROOT/'benchmarks/results'
# Module -> its chapter, the tests nearest to it, and those that what survives must survive as well
NEAR = {
    'search.masking': ('01_masking', 'sharp construct', 'invariants errors explainer tables'),
    'search.composition': ('03_composition', 'sharp construct', 'invariants errors explainer tables identity'),
    'gradual': ('07_gradual', 'sharp construct explainer', 'errors tables invariants improve typical'),
    'data.tables': ('04_tables', 'sharp tables errors', 'relations models_as_they_are typical'),
    'search.trees': ('search/07_trees', 'sharp trees', 'typical models_as_they_are'),
    'data.relations': ('data/01_relations', 'sharp relations', 'actions plans'),
    'search.goals': ('02_goals', 'sharp construct', 'explainer errors improve tables'),
    'search.shorten': ('search/04_shorten', 'sharp improve', 'construct explainer alternatives')}
# A line that is a text and nothing else is a docstring
CONFIG = r'''[mutmut]
source_paths =
    gradual_cf
only_mutate =
    gradual_cf/{module}.py
also_copy =
    nbs
    benchmarks
    pytest.ini
    settings.ini
pytest_add_cli_args =
    -p
    no:cacheprovider
    --hypothesis-seed=0
pytest_add_cli_args_test_selection =
{tests}
do_not_mutate_patterns =
    ^\s*"[^"]*"$
on_dependency_change = ignore
timeout_multiplier = 6
timeout_constant = 10
'''
SKIPPED, SURVIVED = 34, 0  # as mutmut counts
SECONDS = 25  # A mutant meets the quickest of the tests that touch it, which together take no longer


def stage(folder, module, tests):
    "A folder with the package, the tests and one chapter."
    folder.mkdir(parents=True, exist_ok=True)
    for name in ('gradual_cf', 'tests', 'benchmarks'): fresh(ROOT/name, folder/name)
    (folder/'nbs').mkdir(exist_ok=True)
    for path in (ROOT/f'nbs/{NEAR[module][0]}.ipynb', ROOT/'pytest.ini', ROOT/'settings.ini'):
        (folder/path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, folder/path.relative_to(ROOT))
    shutil.copy2(HERE/'test_chapters.py', folder/'tests')
    chosen = [f'tests/test_{t}.py' for t in [*tests, 'chapters']]
    (folder/'setup.cfg').write_text(CONFIG.format(module=module.replace('.', '/'), tests='\n'.join(f'    {t}' for t in chosen)))


def fresh(source, to):
    "Copy the Python files that changed; the time of what did not stays, by which mutmut knows it."
    to.mkdir(exist_ok=True)
    for path in source.rglob('*.py'):
        at = to/path.relative_to(source)
        at.parent.mkdir(parents=True, exist_ok=True)
        if not at.exists() or at.read_bytes() != path.read_bytes(): shutil.copy(path, at)


def generate(folder, module):
    "Write the mutants of a module, and give back what is known of each: name -> exit code, None where it was not tried."
    code = '''import os
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
os.makedirs('mutants', exist_ok=True)
copy_src_dir(); copy_also_copy_files(); create_mutants(1)'''
    subprocess.run([sys.executable, '-c', code], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return codes(folder, module)


def record(folder, module):
    "mutmut's own record of a module, loaded."
    from mutmut.mutation.data import SourceFileMutationData
    here = os.getcwd()
    os.chdir(folder)
    try:
        data = SourceFileMutationData(path=Path(f'gradual_cf/{module.replace(".", "/")}.py'))
        data.load()
    finally: os.chdir(here)
    return data


def codes(folder, module): return record(folder, module).exit_code_by_key


def choose(folder, module, names, again=()):
    "Skip every mutant but those named; those in `again` are tried once more."
    data = record(folder, module)
    for name,code in data.exit_code_by_key.items():
        if name not in names: data.exit_code_by_key[name] = SKIPPED
        elif code == SKIPPED or name in again: data.exit_code_by_key[name] = None
    here = os.getcwd()
    os.chdir(folder)
    try: data.save()
    finally: os.chdir(here)


def run(folder):
    "Try what was not tried; interrupted, what was found stays. The tests pass when mutmut notes which of them touch what: not once more."
    code = '''import sys
from mutmut import __main__ as mutmut
from mutmut.workers import isolation
isolation.ForkRunner.run_clean_tests = lambda self, tests: 0
submit,most = isolation.ForkRunner.submit, float(sys.argv[2])
def quickest(self, name, tests, *limits):
    took,chosen = mutmut.state().duration_by_test, []
    for test in sorted(tests, key=took.get):
        if chosen and sum(map(took.get, chosen)) + took[test] > most: break
        chosen.append(test)
    submit(self, name, chosen, *limits)
isolation.ForkRunner.submit = quickest
mutmut._run((), int(sys.argv[1]))'''
    done = subprocess.run([sys.executable, '-c', code, os.environ.get('JOBS', '1'), str(SECONDS)], cwd=folder, capture_output=True, text=True)
    if done.returncode: sys.exit(f'{folder.name}: {(done.stdout + done.stderr)[-3000:]}')


def sample(names, most): return set(sorted(names, key=lambda n: hashlib.sha256(n.encode()).hexdigest())[:most])


def alive(folder, module, names):
    "Those of the names that no test minded."
    return [n for n,code in codes(folder, module).items() if n in names and code in (SURVIVED, 33, 5)]


def hunt(module, most, again, near_only):
    "Mutants of a module tried, and which are alive."
    chapter,near,far = NEAR[module]
    first,second = BUILD/module, BUILD/f'{module}_second'
    stage(first, module, near.split())
    known = generate(first, module)
    names = sample(known, most)
    choose(first, module, names, alive(first, module, names) if again else ())
    if any(code is None for code in codes(first, module).values()): run(first)
    left = alive(first, module, names)
    if not left or near_only: return known, names, left
    stage(second, module, far.split())
    generate(second, module)
    choose(second, module, left, alive(second, module, left) if again else ())
    if any(code is None for code in codes(second, module).values()): run(second)
    return known, names, alive(second, module, left)


def change(folder, name):
    "The lines that a mutant takes out and puts in."
    done = subprocess.run([Path(sys.executable).parent/'mutmut', 'show', name], cwd=folder, capture_output=True, text=True)
    lines = [l for l in done.stdout.splitlines() if l[:1] in '+-' and l[:3] not in ('+++', '---')]
    return ' ⏎ '.join(f'{l[0]} {l[1:].strip()}' for l in lines)


def keep(path, module, table):
    "Replace a module's lines in a file of results."
    old = pd.read_csv(path) if path.exists() else table[:0]
    both = pd.concat([old[old.module != module], table])
    both['order'] = [list(NEAR).index(m) for m in both.module]
    both.sort_values('order', kind='stable').drop(columns='order').to_csv(path, index=False)


def why():
    "The reasons given: change -> reason."
    path = HERE/'reasons.csv'
    return pd.read_csv(path).set_index('mutant').reason.to_dict() if path.exists() else {}


def report(module, most, again, near_only):
    "Hunt, write down, print."
    known,names,left = hunt(module, most, again, near_only)
    lines = pd.DataFrame([(module, n.rpartition('.')[2], change(BUILD/module, n)) for n in sorted(left)], columns=['module', 'mutant', 'change'])
    reasons = why()
    lines['reason'] = [reasons.get(f'{module}.{m}', '') for m in lines.mutant]
    keep(RESULTS/'mutants_alive.csv', module, lines)
    excused = int((lines.reason != '').sum())
    one = dict(module=module, mutants=len(known), tried=len(names), killed=len(names) - len(left), survived=len(left), with_a_reason=excused,
               share=round(1 - len(left)/len(names), 3))
    keep(RESULTS/'mutants.csv', module, pd.DataFrame([one]))
    print(one, flush=True)


if __name__ == '__main__':
    parse = argparse.ArgumentParser()
    parse.add_argument('modules', nargs='*')
    parse.add_argument('--most', type=int, default=120)
    parse.add_argument('--again', action='store_true', help='try what survived once more: tests are new')
    parse.add_argument('--near', action='store_true', help='only the nearest tests: what survives may still meet others')
    args = parse.parse_args()
    for module in args.modules or NEAR: report(module, args.most, args.again, args.near)
