"""What the tests of the plugins share: a folder to write tests into."""

import pathlib

import pytest


@pytest.fixture
def write(tmp_path):
    def write(**files):
        for name, content in files.items():
            pathlib.Path(tmp_path, f"{name}.py").write_text(content, encoding="utf-8")
        return tmp_path

    return write
