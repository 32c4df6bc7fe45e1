"""A short selection of the real programs; `make real-programs` runs them all."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("real_programs", HERE / "run.py")
real_programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real_programs)


def test_the_interpreters_own_tests(tmp_path):
    problem, _ = real_programs.compare_tests("json", tmp_path)
    assert problem is None


@pytest.mark.parametrize("name", ["pytest", "pip"])
def test_applications(tmp_path, name):
    program = real_programs.applications(tmp_path)[name]
    problem, _ = real_programs.compare_output(program, tmp_path)
    assert problem is None


def test_differences_are_noticed(tmp_path):
    (tmp_path / "work").mkdir()
    notices = "import os; print('HEAPLEDGER_RUN' in os.environ)"
    problem, written = real_programs.compare_output(["-c", notices], tmp_path)
    assert problem.startswith("stdout ['False'], traced ['True']")
    assert written == 1


@pytest.mark.parametrize(
    "leave, what",
    [
        ("open('left', 'w')", "file left"),
        ("import tempfile; tempfile.mkdtemp(prefix='left', suffix='behind')", "file left"),
        ("import subprocess; subprocess.Popen(['sleep', '98'], start_new_session=True)", "process sleep 98"),
    ],
)
def test_what_is_left_behind_is_noticed(tmp_path, leave, what):
    """In a process of its own, which becomes the parent of orphans."""
    program = f"import os\nif 'HEAPLEDGER_RUN' in os.environ: {leave}"
    compare = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import run
run.PATIENCE = 0.5
run.adopt_orphans()
print(run.compare_output(["-c", {program!r}], {str(tmp_path)!r})[0])
"""
    done = subprocess.run([sys.executable, "-P", "-c", compare], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(f"left behind [], traced ['{what}"), done
