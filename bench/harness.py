"""What all benchmarks share: the modes, children, the C helper, and the machine's description.

Every measurement runs in a fresh process with PYTHONHASHSEED=0, on the processor that is least busy at that moment:
`measure(module, **request)` starts child.py, which calls `module.measure(**request)` and prints its answer as JSON.
"""

import contextlib
import dataclasses
import datetime
import importlib.util
import json
import math
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    title: str
    tracer: str | None = None
    nframe: int = 1

    def start(self):
        """Start this mode's tracer in the current process; returns the module, or None."""
        match self.tracer:
            case "heapledger":
                import heapledger as tracer
            case "stdlib":
                import tracemalloc as tracer
            case "noop":
                import _noop

                _noop.start()
                return _noop
            case _:
                return None
        tracer.start(self.nframe)
        return tracer


MODES = {
    mode.name: mode
    for mode in (
        Mode("untraced", "untraced"),
        Mode("noop", "no-op hooks", "noop"),
        Mode("heapledger-1", "heapledger, 1 frame", "heapledger", 1),
        Mode("heapledger-25", "heapledger, 25 frames", "heapledger", 25),
        Mode("stdlib-1", "stdlib, 1 frame", "stdlib", 1),
        Mode("stdlib-25", "stdlib, 25 frames", "stdlib", 25),
    )
}


def chosen_modes(names, wanted=None):
    """Those of `names` (all of them, or the comma-separated `wanted`), in order; a missing heapledger is an error."""
    names = [name for name in names if name in MODES]
    if wanted is not None:
        picked = wanted.split(",")
        unknown = [name for name in picked if name not in MODES]
        if unknown:
            sys.exit(f"no such mode: {', '.join(unknown)} (there are {', '.join(MODES)})")
        names = [name for name in names if name in picked]
    if any(name.startswith("heapledger") for name in names) and importlib.util.find_spec("heapledger") is None:
        sys.exit(f"heapledger is not installed for {sys.executable}; leave its modes out with --modes")
    return names


def compiler():
    return shlex.split(os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0])


@contextlib.contextmanager
def noop_built():
    """Build noop.c for this interpreter into a temporary folder and let the children import it as `_noop`."""
    with tempfile.TemporaryDirectory(prefix="heapledger-bench-") as folder:
        target = pathlib.Path(folder, "_noop" + sysconfig.get_config_var("EXT_SUFFIX"))
        paths = sysconfig.get_paths()
        command = [*compiler(), "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Wextra"]
        command += [f"-I{paths['include']}", f"-I{paths['platinclude']}", str(HERE / "noop.c"), "-o", str(target)]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            sys.exit(f"cannot build bench/noop.c: {shlex.join(command)}\n{built.stderr}")
        os.environ["HEAPLEDGER_BENCH_NOOP"] = folder
        try:
            yield folder
        finally:
            del os.environ["HEAPLEDGER_BENCH_NOOP"]


def busy_ticks():
    """Ticks that each processor we may use has been busy, from /proc/stat."""
    ticks = {}
    with open("/proc/stat") as lines:
        for line in lines:
            name, *fields = line.split()
            if name.startswith("cpu") and name != "cpu":
                user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
                ticks[int(name[3:])] = user + nice + system + irq + softirq + steal
    return {cpu: ticks[cpu] for cpu in os.sched_getaffinity(0) if cpu in ticks}


def idlest_cpu():
    try:
        before = busy_ticks()
        time.sleep(0.05)
        after = busy_ticks()
    except (OSError, AttributeError, ValueError):
        return None
    return min(after, key=lambda cpu: (after[cpu] - before.get(cpu, 0), -cpu), default=None)


def child_command(module, request):
    return [sys.executable, str(HERE / "child.py"), module, json.dumps(request)]


def child_environment():
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONTRACEMALLOC", "PYTHONMALLOC")}
    return environment | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def child_environment_on(cpu):
    return child_environment() | ({} if cpu is None else {"HEAPLEDGER_BENCH_CPU": str(cpu)})


class Child:
    """A child that answers whenever it is asked: `serve(**request)` of a module."""

    def __init__(self, module, request, environment):
        self.command = child_command(module, request)
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{shlex.join(self.command)} ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Children:
    """One child for each request, all on the processor that is least busy now."""

    def __init__(self, module, requests):
        environment = child_environment_on(idlest_cpu())
        self.children = [Child(module, request, environment) for request in requests]

    def __enter__(self):
        return self.children

    def __exit__(self, *_exception):
        for child in self.children:
            child.close()


def measure(module, **request):
    """Run `module.measure(**request)` in a fresh child and return what it returned."""
    environment = child_environment_on(idlest_cpu())
    done = subprocess.run(child_command(module, request), capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{module} {request} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def progress(text):
    print(text, file=sys.stderr, flush=True)


def rss():
    """Bytes of resident memory of this process; smaps_rollup is exact, statm may lag by some pages a thread."""
    try:
        with open("/proc/self/smaps_rollup") as lines:
            for line in lines:
                if line.startswith("Rss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    with open("/proc/self/statm") as line:
        return int(line.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def how_built():
    """Compiler and the options that matter for speed."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    flags = [flag for flag in ("--enable-optimizations", "--with-lto") if flag in arguments]
    if "deb_system" in sysconfig.get_scheme_names():
        # Debian's rules optimise by profile without telling configure.
        return f"Debian's, {platform.python_compiler()}"
    return f"{platform.python_compiler()}, {' '.join(flags) or 'without --enable-optimizations'}"


def transparent_huge_pages():
    try:
        text = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "unknown"
    return text.partition("[")[2].partition("]")[0] or text.strip()


def description():
    """Machine, interpreter and date, as a Markdown list."""
    return "\n".join(
        (
            f"- CPython {platform.python_version()} ({how_built()})",
            f"- {processor()}, {os.cpu_count()} processors, Linux {platform.release()}, "
            f"transparent huge pages: {transparent_huge_pages()}",
            f"- {datetime.date.today().isoformat()}, load average before the run {os.getloadavg()[0]:.1f}",
        )
    )
