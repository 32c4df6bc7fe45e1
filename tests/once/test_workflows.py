"""The workflow files cannot run here. They are valid, know nothing that they should not, and name what there is."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

PACKAGES = pathlib.Path(os.environ["HEAPLEDGER_PACKAGES"])
VERSIONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]


@pytest.fixture(scope="module")
def workflows(checkout):
    return {path.stem: yaml.safe_load(path.read_text()) for path in (checkout / ".github" / "workflows").glob("*.yml")}


def steps(workflows):
    for workflow in workflows.values():
        for job in workflow["jobs"].values():
            yield from job.get("steps", ())


def test_schema(checkout):
    command = [PACKAGES / "bin" / "check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*command, *(checkout / ".github" / "workflows").glob("*.yml")], check=True, timeout=60)


def test_expressions_and_scripts(checkout):
    if shutil.which("go") is None and os.environ.get("CI", "false") == "false":
        pytest.skip("there is no go here to build actionlint")
    program = subprocess.check_output([checkout / "tools" / "actionlint"], text=True, timeout=600).strip()
    done = subprocess.run(
        [program, "-no-color", *(checkout / ".github" / "workflows").glob("*.yml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_security(checkout):
    command = [PACKAGES / "bin" / "zizmor", "--offline", "--no-progress", "--min-severity", "medium"]
    configuration = ["--config", checkout / ".github" / "zizmor.yml"]
    subprocess.run([*command, *configuration, checkout / ".github" / "workflows"], check=True, timeout=60)


def test_actions_have_versions(workflows):
    for step in steps(workflows):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", step["uses"]), step


def test_targets_exist(workflows, checkout):
    """What a step calls is in the Makefile or in the checkout."""
    targets = set(re.findall(r"^([\w -]+):", (checkout / "Makefile").read_text(), re.MULTILINE))
    targets = {target for line in targets for target in line.split()}
    commands = [step["run"] for step in steps(workflows) if "run" in step]
    makes = [command.split()[1:] for command in commands if command.startswith("make ")]
    called = {word for words in makes for word in words if "=" not in word}
    assert called and called <= targets, called - targets
    for name in re.findall(r"\btools/[\w.-]+", " ".join(commands)):
        assert (checkout / name).exists(), name


def test_every_version_is_tested(workflows):
    assert workflows["test"]["jobs"]["api"]["strategy"]["matrix"]["python"] == VERSIONS


def test_publishing_needs_no_password(workflows):
    publish = workflows["publish"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["needs"] == "wheels"
    assert "secrets" not in str(workflows)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_wheels_for_all_that_we_support(checkout, machine):
    """What cibuildwheel would build, by its own word."""
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--archs", machine]
    said = subprocess.check_output([*command, "--print-build-identifiers", checkout], text=True, timeout=60).split()
    tags = [f"cp{version.replace('.', '')}" for version in VERSIONS]
    assert sorted(said) == sorted(f"{tag}-{libc}linux_{machine}" for tag in tags for libc in ("many", "musl"))


def test_wheels_are_tested(checkout):
    options = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert [options["test-command"]] == [f"python {name}" for name in options["test-sources"]]
    assert all((checkout / name).exists() for name in options["test-sources"])
