"""Files that are no snapshots: each is refused with a SnapshotFormatError that says what and where."""

import io
import os
import pickle
import random
import struct
import zlib

import heapledger
import pytest
import random_values
from children import run
from heapledger import _plain

FormatError = heapledger.SnapshotFormatError
HEADER, HEAD, CHECKSUM = 16, 12, 4


@pytest.fixture
def file(tmp_path):
    return tmp_path / "file.hlsnap"


def good(attributes=True):
    snapshot = heapledger.Snapshot(random_values.traces(random.Random(5), 40), 4)
    if attributes:
        snapshot.note = {"a": [1, 2.5, "x"]}
    return snapshot


def content(snapshot, file):
    snapshot.dump(file, "hlsnap")
    return file.read_bytes()


def refused(file, data):
    file.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        heapledger.Snapshot.load(file)
    error = caught.value
    assert error.filename == file and 0 <= error.offset <= len(data) and error.reason
    assert str(error) == f"{file}: byte {error.offset}: {error.reason}"
    return error


def sections(data):
    """[kind, payload] of each section."""
    found, at = [], HEADER
    while at < len(data):
        kind, length = struct.unpack_from("<4sQ", data, at)
        found.append([kind, data[at + HEAD : at + HEAD + length]])
        at += HEAD + length + CHECKSUM
    return found


def joined(header, parts):
    pieces = [header]
    for kind, payload in parts:
        piece = struct.pack("<4sQ", kind, len(payload)) + payload
        pieces.append(piece + struct.pack("<I", zlib.crc32(piece)))
    return b"".join(pieces)


def test_the_error():
    error = FormatError("a.hlsnap", 1234, "is cut off")
    assert (error.filename, error.offset, error.reason) == ("a.hlsnap", 1234, "is cut off")
    assert str(error) == "a.hlsnap: byte 1234: is cut off"
    assert isinstance(error, ValueError) and isinstance(error, pickle.UnpicklingError)
    assert FormatError.__module__ == "heapledger" and "SnapshotFormatError" in heapledger.__all__
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is FormatError and str(back) == str(error) and back.offset == 1234
    assert str(FormatError(b"\xff", 1, "x")) == "\udcff: byte 1: x"
    assert str(FormatError(7, 1, "x")) == "7: byte 1: x"


def test_neither_format(file):
    assert refused(file, b"").reason == "is empty"
    for data in (b"junk", b"\0" * 100, b"PK\3\4", b"hlsnap", b"\x88HLS", b"(lp0\n."):
        assert refused(file, data).reason == "is neither an .hlsnap file nor a pickle of a snapshot"


def test_other_errors_are_not_the_file_s(file, monkeypatch):
    content(good(), file)

    def fail(*_):
        raise ValueError("of two", 2)

    monkeypatch.setattr("heapledger._files._file_snapshot", fail)
    with pytest.raises(ValueError, match="of two") as caught:
        heapledger.Snapshot.load(file)
    assert type(caught.value) is ValueError


def test_not_files(tmp_path):
    for bad in (tmp_path, tmp_path / "missing", None, 1.5, [], io.BytesIO(), "a\0b"):
        with pytest.raises(Exception) as caught:
            heapledger.Snapshot.load(bad)
        with pytest.raises(type(caught.value)) as expected:
            open(bad, "rb")
        assert str(caught.value) == str(expected.value)
        assert not isinstance(caught.value, FormatError)
    with pytest.raises(IsADirectoryError):
        heapledger.Snapshot.load(tmp_path)


def test_every_truncation(file):
    data = content(good(), file)
    for length in range(1, len(data)):
        assert refused(file, data[:length]).reason in ("is cut off", "is not a heapledger snapshot")


def test_every_flipped_bit(file):
    """The checksums find each."""
    data = content(good(), file)
    for index in range(len(data)):
        damaged = bytearray(data)
        damaged[index] ^= 1 << index % 8
        refused(file, bytes(damaged))


def test_bytes_after_the_end(file):
    data = content(good(), file)
    error = refused(file, data + b"x")
    assert error.offset == len(data)


@pytest.mark.parametrize("version", [(2, 0), (0, 9), (65535, 0)])
def test_other_versions(version, file):
    data = content(good(), file)
    header = data[:8] + struct.pack("<HH", *version)
    error = refused(file, header + struct.pack("<I", zlib.crc32(header)) + data[HEADER:])
    assert error.reason == "is of another version than 1.x: %d.%d" % version and error.offset == 8


def test_a_newer_minor_version(file):
    """It may have sections of unknown kinds, and more in those that are known."""
    data = content(good(), file)
    header = data[:8] + struct.pack("<HH", 1, 7)
    header += struct.pack("<I", zlib.crc32(header))
    parts = [[b"NEWS", b"anything"], *sections(data)]
    for part in parts:
        part[1] += b"more" if part[0] == b"ATTR" else b""
    file.write_bytes(joined(header, parts))
    back = heapledger.Snapshot.load(file)
    assert back.traces == good().traces and back.note == good().note


def with_section(file, kind, payload):
    data = content(good(False), file)
    return joined(data[:HEADER], [[kind, payload], *sections(data)])


@pytest.mark.parametrize("kind", [b"META", b"ATTR"])
def test_bad_sections_of_plain_data(kind, file):
    wrong = _plain.encode(5)
    for payload, reason, offset in [
        (b"", "the data end", 0),
        (b"x", "no value begins with", 0),
        (wrong, "a section is not a", 0),
        (b"u\xff\xff\xff\xff\x7f", "bytes are announced", 1),
        (b"l\xff\xff\xff\xff\x7f", "items are announced", 0),
        (b"l\1" * 40, "levels deep", 64),
        (_plain.encode({"a": 1}) + b"N", "bytes too many", None),
    ]:
        error = refused(file, with_section(file, kind, payload))
        assert reason in error.reason
        assert offset is None or error.offset == HEADER + HEAD + offset
    data = with_section(file, kind, _plain.encode({}))
    twice = joined(data[:HEADER], [sections(data)[0], *sections(data)])
    assert "twice" in refused(file, twice).reason


def test_bad_attributes(file):
    for attributes in ({"traces": 5}, {5: 6}):
        assert "wrong name" in refused(file, with_section(file, b"ATTR", _plain.encode(attributes))).reason


def test_bad_totals(file):
    count = len(good().traces)
    for totals in (b"\2" * (count - 1), b"", b"\x82" * (count + 5), b"\2" * (count - 1) + b"\x82", b"\2" * (count + 1),
                   b"\2" * (count - 1) + b"\x82\0", b"\2" * (count - 1) + b"\x82\x80\x80\x80\x10"):  # fmt: skip
        error = refused(file, with_section(file, b"TOTL", totals))
        assert "total" in error.reason and error.offset == HEADER + HEAD
    data = with_section(file, b"TOTL", b"\2" * count)
    twice = joined(data[:HEADER], [sections(data)[0], *sections(data)])
    assert "twice" in refused(file, twice).reason
    file.write_bytes(data)
    assert [trace[3] for trace in heapledger.Snapshot.load(file).traces._traces] == [1] * count


def test_damage_that_the_checksums_do_not_show(file):
    """Somebody who means harm writes the right checksums: then a snapshot is loaded, or the file refused."""
    data = content(good(), file)
    source = random.Random(3)
    loaded = 0
    for _ in range(3000):
        parts = sections(data)
        part = source.choice([part for part in parts if part[1]])
        payload = bytearray(part[1])
        for _ in range(source.randint(1, 3)):
            payload[source.randrange(len(payload))] = source.choice([0, 1, 127, 128, 255, source.randrange(256)])
        part[1] = bytes(payload)
        file.write_bytes(joined(data[:HEADER], parts))
        try:
            back = heapledger.Snapshot.load(file)
        except FormatError:
            continue
        loaded += 1
        if len(back.traces) < 10_000:
            assert len(list(back.traces)) == len(back.traces)
            repr(vars(back)), repr(back.metadata)
    assert loaded


def test_names_that_are_no_text(file):
    """Found when the file is loaded, not when somebody looks at the name."""
    snapshot = heapledger.Snapshot([(0, 5, (("name.py", 1),), 1)], 1)
    data = content(snapshot, file)
    parts = sections(data)
    for part in parts:
        part[1] = part[1].replace(b"name.py", b"na\xffe.py")
    damaged = joined(data[:HEADER], parts)
    error = refused(file, damaged)
    assert "not UTF-8" in error.reason and error.offset == damaged.index(b"na\xff")


def test_names_are_texts_to_us_if_they_are_to_python(file):
    """UTF-8, and lone surrogates."""
    pieces = [bytes([one]) for one in b"a\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5"]
    pieces.append("ä\u20ac\ud800\udfff\U0001f600".encode("utf-8", "surrogatepass"))
    data = content(heapledger.Snapshot([(0, 5, (("name", 1),), 1)], 1), file)
    source = random.Random(11)
    found = set()
    for _ in range(3000):
        name = b"".join(source.choices(pieces, k=source.randint(1, 3)))
        name += b"\x80" * source.choice([0, 0, 1, 2, 3])
        parts = sections(data)
        for part in parts:
            part[1] = part[1].replace(b"\4name", bytes([len(name)]) + name)
        file.write_bytes(joined(data[:HEADER], parts))
        try:
            text = name.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            text = None
        try:
            assert heapledger.Snapshot.load(file).traces[0].traceback[0].filename == text
        except FormatError:
            assert text is None
        found.add(text is None)
    assert found == {True, False}


def number(value):
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def with_row(file, size, live):
    """A file with one row of so many blocks of this size."""
    data = content(heapledger.Snapshot([(0, 5, (("a.py", 1),), 1)], 1), file)
    parts = sections(data)
    for part in parts:
        if part[0] == b"ROWS":
            assert part[1].endswith(b"\0\5\1\0")
            back = -live % 2**64  # none are allocated; the distance from `live` as a signed number
            back = 2 * back if back < 2**63 else 2 * (2**64 - back) - 1
            part[1] = part[1][:-3] + number(size) + number(live) + number(back)
    return joined(data[:HEADER], parts)


def test_huge_counts(file):
    file.write_bytes(with_row(file, 2**40, 2**22))
    back = heapledger.Snapshot.load(file)  # takes no more memory than one block
    assert len(back.traces) == 2**22 and back.statistics("lineno")[0].size == 2**62
    for size, live in ((2**40, 2**23), (0, 2**63), (2**63, 1), (1, 2**64 - 1)):
        data = with_row(file, size, live)
        error = refused(file, data)
        assert "64 bits" in error.reason and error.offset == data.index(b"ROWS") + HEAD


def test_blocks_of_no_bytes(file):
    """They are counted, once for each frame, in 63 bits like all others."""
    frames = (("a.py", 1),) * 4
    data = content(heapledger.Snapshot([(0, 0, frames, 4)], 4), file)
    for live, is_refused in ((2**61 - 1, False), (2**61, True), (2**62, True)):
        parts = sections(data)
        for part in parts:
            if part[0] == b"ROWS":
                assert part[1].endswith(b"\0\0\1\0")
                part[1] = part[1][:-2] + number(live) + number(2 * live - 1)
        file.write_bytes(joined(data[:HEADER], parts))
        if is_refused:
            assert "64 bits" in refused(file, file.read_bytes()).reason
        else:
            assert heapledger.Snapshot.load(file).statistics("lineno", cumulative=True)[0].count == 4 * live


MEASURED = """
    import sys
    import heapledger
    def most():
        return [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")][0] * 1024
    heapledger.Snapshot.load(sys.argv[1])
    before = most()
    loaded = heapledger.Snapshot.load(sys.argv[2])
    print(most() - before)
"""


def test_memory_for_each_byte_of_a_file(file, tmp_path):
    """Names that have nearly all in common, in all the snapshots that a file may have: docs/format.md has the bound."""
    small = content(good(), file)
    count = 60_000
    beginning = "\U0001f600".encode() + b"p" * 251
    names = [number(0) + number(258) + beginning + b"abc"]
    for n in range(count - 1):
        names.append(number(255) + number(3) + b"%c%c%c" % (65 + n // 1024, 64 + n // 32 % 32, 64 + n % 32))
    parts = [
        [b"FILE", number(count) + b"".join(names)],
        [b"FUNC", b"\0"],
        [b"LOCS", number(count) + b"\0\0\0" * count],
        [b"STKS", number(count) + b"\1\0" + number(count) + b"\0" * count + b"\0"],
        *[[b"ROWS", b"\0\0\0\0\0"]] * 8,
        [b"END ", b""],
    ]
    large = tmp_path / "large"
    large.write_bytes(joined(small[:HEADER], parts))
    taken = int(run(MEASURED, file, large))
    assert taken < 400 * large.stat().st_size


LIMITED = """
    import resource, sys
    import heapledger
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20),) * 2)
    for name in sys.argv[1:]:
        try:
            heapledger.Snapshot.load(name)
        except heapledger.SnapshotFormatError:
            continue
        sys.exit(name)
"""


def test_counts_get_no_memory(file, tmp_path):
    """Each section begins with a count: whatever it says, 64 MB suffice."""
    data = content(good(), file)
    names = []
    for index, part in enumerate(sections(data)):
        for count in (2**20, 2**31, 2**40, 2**63):
            parts = sections(data)
            start = 5 if part[0] == b"ROWS" else 0  # after moment, limit, forks, origins
            start = min(start, len(part[1]))
            parts[index][1] = part[1][:start] + number(count) + part[1][start:]
            names.append(tmp_path / f"{index}-{count}")
            names[-1].write_bytes(joined(data[:HEADER], parts))
    run(LIMITED, *names)
    assert len(os.listdir(tmp_path)) == len(names) + 1
