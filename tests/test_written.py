"""Networks that are written down, shares with their uncertainty, and what a run says at its end."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import written

HERE = Path(__file__).resolve().parent


def test_files_are_small_and_as_the_table_says():
    files = {p.stem for p in written.FOLDER.glob('*.safetensors')}
    assert files == set(written.rows()) and written.damaged() == []
    assert sum(written.file_of(n).stat().st_size for n in files) <= 3_000_000


def test_every_network_can_be_made_again(monkeypatch):
    "A recipe names a notebook that is there and loads the network: without, `make networks` says so at once."
    monkeypatch.syspath_prepend(str(written.FOLDER))
    import make
    assert set(make.NETWORKS) == set(written.rows()) and make.wanted([]) == []
    with pytest.raises(ValueError, match='must load tests/networks/nobody.safetensors'): make.of_notebook('nobody', 'use/04_drawing.ipynb', 'x', 'y')


@pytest.mark.parametrize('harm', ['missing', 'damaged'])
def test_a_file_that_is_missing_or_damaged_stops_the_run_with_one_line(harm, tmp_path):
    for name in ('written.py', 'conftest.py', 'spent.py'): shutil.copy(HERE/name, tmp_path)
    shutil.copytree(written.FOLDER, tmp_path/'networks')
    (tmp_path/'test_nothing.py').write_text('def test_nothing(): pass\n')
    bad = tmp_path/'networks/wine.safetensors'
    if harm == 'missing': bad.unlink()
    else: bad.write_bytes(bad.read_bytes()[:-1] + b'!')
    out = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', tmp_path], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    said = (out.stdout + out.stderr).strip().splitlines()
    assert out.returncode == 4 and len(said) == 1 and 'tests/networks/wine.safetensors' in said[0] and 'make networks' in said[0]


def test_the_day_takes_three_of_many_cases_and_leaves_what_the_night_has_unless_somebody_names_them(tmp_path):
    for name in ('written.py', 'conftest.py', 'spent.py'): shutil.copy(HERE/name, tmp_path)
    shutil.copytree(written.FOLDER, tmp_path/'networks')
    many = "import pytest\n@pytest.mark.parametrize('i', range(7))\ndef test_many(i): pass\n@pytest.mark.night\ndef test_one(): pass\n"
    for name in ('test_many', 'test_contract'): (tmp_path/f'{name}.py').write_text(many)
    def passed(*told):
        out = subprocess.run([sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-v', *told], capture_output=True, text=True, cwd=tmp_path, timeout=300).stdout
        return [line.split()[0].partition('.py::test_')[2] for line in out.splitlines() if 'PASSED' in line]
    few = ['many[0]', 'many[3]', 'many[6]']
    assert passed('.') == [f'many[{i}]' for i in range(7)] + few  # a table is always whole
    assert passed('test_many.py') == few and len(passed('test_many.py', '--cases=all')) == 8 and passed('test_many.py::test_one') == ['one']
    assert passed('test_many.py::test_many') == passed('test_many.py', '-k', 'not one') == [f'many[{i}]' for i in range(7)]


def test_what_was_trained_is_noticed(own_cache):
    written.load_task('breast_cancer')
    folder = Path(os.environ['GRADUAL_CF_CACHE'])
    (folder/'breast_cancer-0123456789ab.safetensors').write_bytes(b'weights that nobody wrote down')
    (folder/'heloc-0123456789ab.safetensors').write_bytes(b'not an embedded task')
    assert written.trained(0) == {'breast_cancer-0123456789ab.safetensors'}
    os.utime(folder/'breast_cancer-0123456789ab.safetensors', (9, 9))  # of an earlier run
    assert written.trained(10) == set()
