"""docs/format.md suffices to read a .hlsnap file: its example, and files of the C writer, read by hlsnap_reader."""

import pathlib
import re

import pytest
from hlsnap_reader import File, Malformed, Row, Snapshot, read

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "hlsnap"


def example():
    block = re.search(r"```hex\n(.*?)```", (ROOT / "docs" / "format.md").read_text(), re.DOTALL).group(1)
    return b"".join(bytes.fromhex(line[:35]) for line in block.splitlines())


def test_example_means_what_the_document_says():
    main = (b"/app/main.py", b"<module>", 7)
    load, unnamed = (b"/app/load.py", b"load", 300), (b"/app/load.py", None, 299)
    rows = [
        Row((main, load), 2, domain=0, origin=0, size=512, live=3, allocated=3),
        Row((main, load), 2, domain=0, origin=0, size=64, live=1000, allocated=1200),
        Row((main, unnamed), 9, domain=5, origin=0, size=4096, live=0, allocated=1),
    ]
    snapshot = Snapshot(moment=0, frame_limit=2, forks=0, origins=[0x1122334455667788], rows=rows)
    assert read(example()) == File((1, 0), [snapshot], [])


def test_damage_is_found():
    data = example()
    for length in range(len(data)):
        with pytest.raises(Malformed):
            read(data[:length])
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Malformed):
            read(bytes(damaged))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("seed-*")), ids=lambda path: path.name)
def test_reads_what_the_c_writer_wrote(path):
    file = read(path.read_bytes())
    assert file.version == (1, 0)
    for snapshot in file.snapshots:
        for row in snapshot.rows:
            assert 0 <= row.origin < max(1, len(snapshot.origins))


def test_there_are_files_of_the_c_writer():
    assert len(list(CORPUS.glob("seed-*"))) >= 5
