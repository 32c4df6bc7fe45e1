"""What users get: the source distribution, the wheel that is built of it, and that wheel in an empty environment.

The wheel is built as pip does it on a clean machine: of the source distribution, in an environment with nothing but
what pyproject.toml asks for, without the checkout and without our tools on the path.
"""

import email
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest

TIMEOUT = 300
NETWORK = ("PIP_", "SSL_", "HTTP", "NO_PROXY")  # the variables that lead to the index
PIP = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check"]
# Beside the files of python/heapledger and python/startup, as they are in the checkout.
LIBRARIES = ["heapledger/_ledger.*.so", "heapledger/_preload.so"]
DIST_INFO = ["METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"]
NOT_IN_SOURCE = [".ci/*", ".gitattributes", ".github/*", ".gitignore"]


def clean_environment(**more):
    """This process's variables, without those that lead to the checkout, its environment or a tracer."""
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK) or name == "HOME"}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **more}


def run(*command, expect=0, **options):
    options.setdefault("env", clean_environment())
    options.setdefault("cwd", "/")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT, **options)
    assert done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def source(tmp_path_factory, checkout, tracked):
    """The source distribution of the checkout as it is now. git archives commits, so one is made, elsewhere."""
    folder = tmp_path_factory.mktemp("source")
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / name, folder / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "-C", folder]
    run(*git, "init", "--quiet")
    run(*git, "add", "--force", "--all")
    run(*git, "commit", "--quiet", "--message=test")
    into = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--sdist", "--outdir", into]
    run(*command, folder, env=os.environ)
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, source):
    into = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", into, source)
    (made,) = into.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def empty(tmp_path_factory, wheel):
    """The programs of an environment with the wheel and nothing else, not even pip."""
    programs = tmp_path_factory.mktemp("empty") / "bin"
    run(sys.executable, "-I", "-m", "venv", "--without-pip", programs.parent)
    run(*PIP, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel)
    return programs


def test_source_has_all_that_is_tracked(source, tracked):
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if not archive.getmember(name).isdir()}
    left_out = {name for name in tracked if any(fnmatch.fnmatch(name, pattern) for pattern in NOT_IN_SOURCE)}
    assert len(left_out) >= len(NOT_IN_SOURCE)
    assert names == set(tracked) - left_out | {"PKG-INFO"}


def test_wheel_has_what_is_listed_and_nothing_else(wheel, tracked):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    libraries = {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in LIBRARIES)}
    assert len(libraries) == len(LIBRARIES)
    sources = {name.removeprefix("python/") for name in tracked if name.startswith("python/")}
    files = {name.removeprefix("startup/") for name in sources}  # the files of this folder stand beside the package
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    assert names == libraries | files | {info + name for name in DIST_INFO}


def test_wheel_is_for_this_interpreter_and_no_other(wheel):
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-{tag}-{tag}-{platform}.whl")


def test_metadata(wheel, source):
    """The index would take it, and a reader finds there what it runs on."""
    environment = {**os.environ, "COLUMNS": "200"}
    said = run(sys.executable, "-m", "twine", "check", "--strict", wheel, source, env=environment)
    assert said.count("PASSED") == 2, said
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    classifiers = metadata.get_all("Classifier")
    for minor in range(11, 16):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert "Operating System :: POSIX :: Linux" in classifiers
    assert metadata["Requires-Python"] == ">=3.11" and metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_in_an_empty_environment(empty, checkout):
    """Alone: neither rich nor anything else is needed to trace, nor for --help."""
    assert "usage: heapledger" in run(empty / "heapledger", "--help")
    assert "heapledger works" in run(empty / "python", checkout / "tools" / "self_test.py")
    script = "import sys; print(sys.modules['heapledger._ledger'].is_tracing(), 'rich' in sys.modules)"
    assert run(empty / "python", "-c", script, env=clean_environment(HEAPLEDGER="5")) == "True False\n"
    assert run(empty / "python", "-c", "import sys; print('heapledger._ledger' in sys.modules)") == "False\n"


def test_in_the_checkout(empty, checkout):
    """The root of the checkout is on the path there, and must not stand in the way of what is installed."""
    where = run(empty / "python", "-c", "import heapledger; print(heapledger.__file__)", cwd=checkout)
    assert pathlib.Path(where).is_relative_to(empty.parent)


def test_with_its_dependencies_and_without_leftovers(empty, wheel):
    """The environment is whole with what the wheel asks for, and as it was when it is gone."""
    pip = [*PIP, "--python", empty / "python"]
    run(*pip, "install", wheel)
    run(*pip, "check")
    where = "import sysconfig; print(sysconfig.get_path('platlib'))"
    folder = pathlib.Path(run(empty / "python", "-c", where).strip())
    assert (folder / "heapledger.pth").exists() and (folder / "rich").exists()
    run(*pip, "uninstall", "--yes", "heapledger")
    assert not [path for path in folder.iterdir() if "heapledger" in path.name]
    assert not (empty / "heapledger").exists()
