"""What makes the tables of docs/benchmarks.md: turns, their ratios, and the proofs that a turn was traced."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import peers  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402
import turns  # noqa: E402
import witness  # noqa: E402


def test_a_machine_that_slows_down_changes_no_ratio():
    clock = itertools.count(10)
    cost = {"untraced": 1.0, "some": 1.5, "other": 4.0}

    def measure(mode):
        return {"wall": cost[mode] * next(clock), "rss": 100 * cost[mode], "written": 0}

    taken = turns.take(["some", "other"], lambda _mode: 3, measure)
    assert [len(taken[mode]) for mode in ("untraced", "some", "other")] == [7, 3, 3]
    programs = {"program": taken, "the same": taken}
    assert turns.mean(programs, "some", "wall") == pytest.approx(1.5)
    assert turns.mean(programs, "other", "wall") == pytest.approx(4.0)
    assert turns.mean(programs, "other", "rss") == pytest.approx(4.0)
    assert turns.mean(programs, "other", "written") is None
    assert turns.mean({"program": taken, "without": {}}, "some", "wall") is None


def test_start_and_end_are_taken_away():
    """A tool that needs 0.5 s for its start and then doubles the time, and a program of 1 s after 0.1 s of start."""
    untraced = [{"wall": 1.1}, {"wall": 1.1}]
    nothing = [{"wall": 0.1}]
    samples = [{"wall": 2.5, "ratios": {"wall": 2.5 / 1.1}}]
    start = [{"wall": 0.5, "ratios": {"wall": 5.0}}]
    assert turns.ratio_beyond(samples, untraced, start, nothing, "wall") == pytest.approx(2.0)
    assert turns.ratio_beyond(samples, untraced, [], [], "wall") is None


def test_what_takes_long_has_one_turn():
    seconds = {"untraced": 1.0, "slow": 9.0, "quick": 2.0, "few": 2.0}
    wanted = {"slow": 3, "quick": 3, "few": 2}
    taken = turns.take(list(wanted), wanted.get, lambda mode: {"wall": seconds[mode]}, longest=5.0)
    assert [len(taken[mode]) for mode in ("slow", "quick", "few")] == [1, 3, 2]
    assert turns.counts({"one": taken}, "quick") == "3"
    assert turns.counts({"one": taken, "other": {"quick": taken["slow"]}, "none": {}}, "quick") == "1 to 3"


def test_samples_are_kept_when_asked(tmp_path):
    path = tmp_path / "samples.json"
    turns.Store(path, ("a", "b"), keep=False).put("b", {"untraced": []})
    turns.Store(path, ("a", "b"), keep=True).put("a", {"untraced": []})
    assert list(turns.Store(path, ("a", "b"), keep=True).programs) == ["a", "b"]
    assert turns.Store(path, ("a", "b"), keep=False).programs == {}


def test_a_part_of_a_document_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n<!-- part {report.VERSION} some -->\nold\n<!-- end -->\n\nThe rest.\n")
    report.put(page, {"some": r"new \1"})
    assert page.read_text() == f"# Title\n\n<!-- part {report.VERSION} some -->\nnew \\1\n<!-- end -->\n\nThe rest.\n"
    report.put(page, {"other": "more"})
    report.put(page, {"other": "less"})
    assert page.read_text().endswith(
        f"The rest.\n\n## CPython {report.VERSION}: other\n\n<!-- part {report.VERSION} other -->\nless\n<!-- end -->\n"
    )


def test_a_process_is_measured_from_outside():
    code = "import sys, time; block = bytearray(b'x') * 60_000_000; time.sleep(0.2); sys.exit(3)"
    command = [sys.executable, "-I", "-S", BENCH / "launch.py", sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    taken = json.loads(done.stdout)
    assert taken["rss"] > 60_000_000
    assert taken["wall"] > 0.2 and taken["wall"] > taken["cpu"] > 0


def test_the_launcher_has_no_part_in_the_memory():
    """This process is large; what the kernel counts to a child before it runs its program is not."""
    block = bytearray(b"x") * 80_000_000
    command = [sys.executable, "-I", "-S", BENCH / "launch.py", "/bin/true"]
    assert json.loads(subprocess.check_output(command, timeout=60))["rss"] < 40_000_000
    del block


@pytest.mark.parametrize("mode", suite.MODES)
def test_a_process_says_who_traces_it(mode, tmp_path):
    variables = {"PATH": os.environ["PATH"], witness.VARIABLE: str(tmp_path), **suite.MODES[mode]}
    code = f"import sys; sys.path.insert(0, {str(BENCH)!r}); import witness; witness.start()"
    subprocess.run([sys.executable, "-c", code, "--worker"], check=True, timeout=60, env=variables, cwd=tmp_path)
    (path,) = tmp_path.iterdir()
    said = json.loads(path.read_text())
    assert said["tracer"] == mode
    assert said["role"] == "worker"
    assert 5_000_000 < said["rss"] < 200_000_000


def test_a_turn_that_was_not_traced_is_refused():
    def said(tracer, role="worker", rss=1):
        return {"tracer": tracer, "role": role, "rss": rss}

    workers = [said("heapledger-1", rss=rss) for rss in (5, 7, 6)]
    manager = said("heapledger-1", "manager", 100)
    assert suite.memory_of([manager, *workers], "heapledger-1") == 6
    commands = [said("heapledger-1", "command", rss) for rss in (40, 50, 60)]
    assert suite.memory_of([manager, *workers, *commands], "heapledger-1") == 50
    with pytest.raises(RuntimeError, match="1 of 5 processes ran untraced, not heapledger-1"):
        suite.memory_of([manager, *workers, said("untraced")], "heapledger-1")
    with pytest.raises(RuntimeError, match="no process"):
        suite.memory_of([manager], "heapledger-1")


def test_times_are_read_as_pyperf_writes_them():
    runs = [{"metadata": {}, "warmups": [[1, 9.0]]}, {"values": [1.0, 2.0]}, {"values": [6.0]}]
    assert suite.times_of({"metadata": {"name": "one"}, "benchmarks": [{"runs": runs}]}) == {"one": 3.0}
    several = [{"metadata": {"name": name}, "runs": runs} for name in ("one", "other")]
    assert suite.times_of({"metadata": {}, "benchmarks": several}) == {"one": 3.0, "other": 3.0}


def test_a_peer_that_wrote_nothing_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="was it tracing"):
        peers.check(peers.MODES["memray"], "json", tmp_path)
    (tmp_path / "x.json").write_text('{"alloc_samples": 0}')
    with pytest.raises(RuntimeError, match="no sample"):
        peers.check(peers.MODES["scalene"], "json", tmp_path)
    peers.check(peers.MODES["scalene"], "nothing", tmp_path)


def test_a_command_has_the_program_and_the_folder(tmp_path):
    command = peers.MODES["stdlib-25"].command("python", "json", tmp_path)
    program = [str(BENCH / "program.py"), "json", str(peers.TIMES)]
    assert command == ["python", "-X", "tracemalloc=25", *program, f"{tmp_path}/snapshot"]
