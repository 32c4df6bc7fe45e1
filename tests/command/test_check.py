"""heapledger check: what is wrong with a file, where, and what of it is sound."""

import json
import struct
import time
import zlib

import pytest
import stored

WHOLE = (stored.GOLDEN / "old.hlsnap").read_bytes()
KINDS = ["header", "META", "FILE", "FUNC", "LOCS", "STKS", "ROWS", "ROWS", "ROWS", "END"]


@pytest.fixture
def check(run, tmp_path):
    """check(bytes): (exit status, the answer)"""

    def check(content):
        (tmp_path / "file").write_bytes(content)
        done = run("check", tmp_path / "file", "--json")
        assert done.errors == ""
        (answer,) = json.loads(done.output)["files"]
        text = run("check", tmp_path / "file")
        assert text.status == done.status and all(part["state"] in text.output for part in answer["sections"])
        return done.status, answer

    return check


def offsets():
    """[(offset, length of the whole section), ...]; the header is the first."""
    found, at = [(0, 16)], 16
    while at < len(WHOLE):
        (length,) = struct.unpack_from("<Q", WHOLE, at + 4)
        found.append((at, length + 16))
        at += length + 16
    return found


def test_a_sound_file(check):
    status, answer = check(WHOLE)
    assert status == 0 and answer["sound"] and answer["problem"] is None
    assert [part["name"] for part in answer["sections"]] == KINDS
    assert [(part["offset"], part["length"]) for part in answer["sections"]] == offsets()
    assert answer["moments"] == ["live", "peak", "allocated"]


PLACES = [(number, place) for number in range(len(KINDS)) for place in ("payload", "length", "checksum")]
PLACES = [one for one in PLACES if one not in ((0, "payload"), (len(KINDS) - 1, "payload"))]  # which have none


@pytest.mark.parametrize("number, place", PLACES)
def test_a_flipped_bit(check, number, place):
    offset, length = offsets()[number]
    at = {"payload": offset + 12, "length": offset + 6, "checksum": offset + length - 1}[place]
    status, answer = check(WHOLE[:at] + bytes([WHOLE[at] ^ 4]) + WHOLE[at + 1 :])
    assert status == 1 and not answer["sound"] and answer["problem"]["reason"]
    if KINDS[number] == "header" and place == "length":
        return  # that is the magic number: no section of ours
    states = [part["state"] for part in answer["sections"]]
    assert [part["name"] for part in answer["sections"]] == KINDS
    assert [state != "sound" for state in states] == [which == number for which in range(len(KINDS))]
    assert sum(part["length"] for part in answer["sections"]) == len(WHOLE)


@pytest.mark.parametrize("length", [0, 5, 10, 16, 20, 700, len(WHOLE) - 16, len(WHOLE) - 1])
def test_a_file_that_was_cut_off(check, length):
    status, answer = check(WHOLE[:length])
    assert status == 1 and not answer["sound"]
    if length >= 16:
        sound = [part for part in answer["sections"] if part["state"] == "sound"]
        whole = [(offset, size) for offset, size in offsets() if offset + size <= length]
        assert [(part["offset"], part["length"]) for part in sound] == whole


def test_bytes_after_the_end(check):
    status, answer = check(WHOLE + b"more")
    assert status == 1 and answer["sections"][-1]["state"] == "unreadable"
    assert answer["problem"] == {"offset": len(WHOLE), "reason": "goes on after its end"}


def test_bytes_in_between(check):
    at = offsets()[4][0]
    status, answer = check(WHOLE[:at] + b"\0" * 100 + WHOLE[at:])
    assert status == 1
    assert [part["name"] for part in answer["sections"]] == [*KINDS[:4], "?", *KINDS[4:]]


def test_wrong_content_with_a_right_checksum(check):
    offset, length = offsets()[5]
    payload = b"\xff" * (length - 16)
    section = WHOLE[offset : offset + 12] + payload
    status, answer = check(WHOLE[:offset] + section + struct.pack("<I", zlib.crc32(section)) + WHOLE[offset + length :])
    assert status == 1 and all(part["state"] == "sound" for part in answer["sections"])
    assert offset < answer["problem"]["offset"] < offset + length


def test_pickles_and_other_files(run, check):
    assert run("check", "stdlib.pickle").status == 0
    status, answer = check(b"\x80\x03cos\nsystem\n.")
    assert status == 1 and answer["problem"]["offset"] > 0
    assert check(b"hello")[0] == 1 and check(b"")[0] == 1
    assert run("check", "old.hlsnap", "no-such-file").status == 2


def test_a_file_that_cannot_be_read_is_told_beside_the_others(run, bad_files):
    files = [bad_files / "cut", "no-such-file", "old.hlsnap", bad_files / "empty"]
    done = run("check", *files)
    assert (done.status, done.errors) == (2, "heapledger check: cannot read no-such-file: No such file or directory\n")
    assert [text.splitlines()[0].split(" (")[0] for text in done.output.split("\n\n")] == [
        f"{files[0]}: not sound",
        "old.hlsnap: sound",
        f"{files[3]}: not sound",
    ]
    done = run("check", "--json", *files)
    assert done.status == 2 and "no-such-file" in done.errors
    assert [one["sound"] for one in json.loads(done.output)["files"]] == [False, True, False]


def test_a_file_of_false_beginnings_takes_no_longer(check):
    """Each looks like a section that reaches to the end of the file."""
    size = 2_000_000
    head = b"ROWS" + struct.pack("<Q", size // 2)
    begin = time.process_time()
    status, _ = check(WHOLE[:16] + head * (size // len(head)))
    assert status == 1 and time.process_time() - begin < 5
