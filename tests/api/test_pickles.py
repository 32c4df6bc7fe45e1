"""Pickles of snapshots: what the standard library writes is read, and a file can do nothing but be a snapshot."""

import io
import pickle
import pickletools
import random
import time
import tracemalloc

import heapledger
import pytest
import random_values
from children import run
from heapledger._unpickle import Malformed, read
from same import tuples

ATTRIBUTES = {
    "text": "über \udc80", "bytes": b"\0\xff" * 300, "numbers": [0, -1, 2**40, -(2**70), 2**3000, 1.5, True, False],
    "none": None, "nested": {"a": [(1,), (1, 2), (1, 2, 3), (), {2: {3}}], (1, "k"): frozenset({1, 2})},
    "long": "x" * 70000, "shared": [("t", 1)] * 3,
}  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_every_protocol(protocol, seed):
    theirs = tracemalloc.Snapshot(random_values.traces(random.Random(seed), 500), 4)
    vars(theirs).update(ATTRIBUTES)
    if protocol == 2:  # which has no instruction for bytes and calls functions by Python 2's names
        del theirs.bytes, theirs.nested
    traces, attributes = read(pickle.dumps(theirs, protocol))
    assert traces == theirs.traces._traces
    assert attributes == {name: value for name, value in vars(theirs).items() if name != "traces"}
    assert [list(map(type, trace)) for trace in traces] == [list(map(type, trace)) for trace in tuples(theirs)]


def test_with_and_without_the_quick_part(monkeypatch):
    """What C does not carry out, Python does: with the same results."""
    files = [pickle.dumps(tracemalloc.Snapshot(random_values.traces(random.Random(9), 300), 4), n) for n in (3, 5)]
    files += [data for data, _, _ in BAD.values()]

    def results():
        for data in files:
            try:
                yield read(data)
            except Malformed as error:
                yield error.args

    quick = list(results())
    monkeypatch.setattr("heapledger._unpickle._unpickle_run", lambda data, at, *others: at)
    assert list(results()) == quick


def test_places_in_the_memo_in_any_order():
    data = pickletools.optimize(pickle.dumps(tracemalloc.Snapshot(random_values.traces(random.Random(9)), 4), 3))
    assert read(data)[0] == pickle.loads(data).traces._traces
    swapped = with_attribute(b"K\x05q\x07K\x06q\x0300h\x03h\x07\x86")
    assert read(swapped)[1]["a"] == (6, 5)


def test_our_own_classes():
    ours = heapledger.Snapshot(random_values.traces(random.Random(1)), 4)
    assert read(pickle.dumps(ours))[0] == tuples(ours)


def test_traces_without_total(tmp_path):
    """As Python 3.8 wrote them."""
    file = tmp_path / "old"
    file.write_bytes(pickle.dumps(tracemalloc.Snapshot([(0, 5, (("a.py", 1),))], 1), 4))
    back = heapledger.Snapshot.load(file)
    assert back.traces._traces == [(0, 5, (("a.py", 1),))]
    assert back.traces[0].traceback.total_nframe is None


HEAD = b"\x80\x04ctracemalloc\nSnapshot\n)\x81"
GOOD = HEAD + b"}(X\x06\0\0\0tracesctracemalloc\n_Traces\n)\x81}X\x07\0\0\0_traces]sbX\x0f\0\0\0traceback_limitK\x01ub."


def with_trace(trace):
    return GOOD.replace(b"]s", b"](" + trace + b"es")


def with_attribute(value):
    return GOOD.replace(b"K\x01ub.", b"K\x01X\x01\0\0\0a" + value + b"ub.")


BAD = {
    "protocol 6": (b"\x80\x06N.", "protocol 6", 0),
    "not a snapshot": (pickle.dumps(5), "not of a snapshot", 0),
    "a class": (b"\x80\x04ctracemalloc\nSnapshot\n.", "not of a snapshot", 0),
    "no state": (HEAD + b".", "not of a snapshot", 0),
    "no traces": (HEAD + b"}b.", "without traces", 0),
    "no limit": (GOOD.replace(b"X\x0f\0\0\0traceback_limitK\x01", b""), "without its frame limit", 0),
    "a snapshot for traces": (GOOD.replace(b"_Traces\n", b"Snapshot\n"), "without traces", 0),
    "traces without list": (GOOD.replace(b"]s", b"}s"), "no list", 0),
    "other class": (b"\x80\x04cos\nsystem\n.", "names 'os'.'system'", 2),
    "other class of ours": (b"\x80\x04ctracemalloc\nFilter\n.", "'Filter'", 2),
    "other class by stack": (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "'system'", 14),
    "builtin": (b"\x80\x04cbuiltins\neval\n.", "'eval'", 2),
    "no text for a class": (b"\x80\x04K\x01\x8c\x01x\x93.", "not named by texts", 7),
    "call": (b"\x80\x04ctracemalloc\nSnapshot\n]K\x01\x86R.", "calls a function", 28),
    "call of a set": (b"\x80\x04cbuiltins\nset\nK\x01\x85R.", "calls a function", 19),
    "arguments": (b"\x80\x04ctracemalloc\nSnapshot\nK\x01\x85\x81.", "what is not a class", 27),
    "state for a class": (b"\x80\x04ctracemalloc\nSnapshot\n}b.", "what is not an object", 25),
    "state that sets attributes": (HEAD + b"N}\x86b.", "what is not an object", 29),
    "state for a list": (b"\x80\x04]}b.", "what is not an object", 4),
    "persistent": (b"\x80\x04Pid\n.", "the instruction 80", 2),
    "extension": (b"\x80\x04\x82\x01.", "the instruction 130", 2),
    "duplicate": (b"\x80\x04N2.", "the instruction 50", 3),
    "nothing to stop with": (b"\x80\x04.", "what is not there", 2),
    "nothing in memo": (b"\x80\x04h\x05N.", "what is not there", 2),
    "no mark": (b"\x80\x04tN.", "lacks its mark", 2),
    "hole in the memo": (b"\x80\x04Nq\x04h\x02.", "what is not there", 5),
    "far in the memo": (b"\x80\x04Nr\xff\xff\xff\x7f.", "no room for 2147483647 things", 3),
    "no mark either": (b"\x80\x04]eN.", "lacks its mark", 3),
    "cut": (b"\x80\x04J\1\2", "is cut off", 2),
    "cut name": (b"\x80\x04cos\nsys", "is cut off", 2),
    "cut text": (b"\x80\x04X\xff\xff\xff\xffabc.", "4294967295 bytes are announced, 4 are left", 2),
    "cut long text": (b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.", "are left", 2),
    "cut bytes": (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x00abc.", "are left", 2),
    "cut number": (b"\x80\x04\x8b\xff\xff\xff\x7f1.", "are left", 2),
    "no UTF-8": (b"\x80\x04X\x01\0\0\0\xff.", "not UTF-8", 2),
    "list as key": (b"\x80\x04}]Ns.", "a list cannot be a key", 5),
    "items for a tuple": (b"\x80\x04)Na.", "not a list", 4),
    "items for an object": (HEAD + b"Na.", "not a list", 27),
    "pairs for a list": (b"\x80\x04](NNu.", "not a dict", 6),
    "members for a list": (b"\x80\x04](N\x90.", "not a set", 5),
    "number as trace": (with_trace(b"K\x01"), "trace 0 is not a tuple", 0),
    "short trace": (with_trace(b"K\x01K\x01\x86"), "trace 0 is not a tuple", 0),
    "text as size": (with_trace(b"(K\0X\x01\0\0\0a)Nt"), "trace 0 has no domain", 0),
    "negative size": (with_trace(b"(K\0J\xff\xff\xff\xff)Nt"), "trace 0 has no domain, size", 0),
    "huge size": (with_trace(b"(K\0\x8a\x09" + b"\0" * 8 + b"\1)Nt"), "trace 0 has no domain, size", 0),
    "negative line": (with_trace(b"(K\0K\0X\x01\0\0\0aJ\xff\xff\xff\xff\x86\x85Nt"), "trace 0 has a frame", 0),
    "huge line": (with_trace(b"(K\0K\0X\x01\0\0\0a\x8a\5\0\0\0\0\1\x86\x85Nt"), "trace 0 has a frame", 0),
    "negative domain": (with_trace(b"(J\xff\xff\xff\xffK\0)Nt"), "trace 0 has no domain", 0),
    "negative total": (with_trace(b"(K\0K\0)J\xff\xff\xff\xfft"), "trace 0 has a total", 0),
    "text as total": (with_trace(b"(K\0K\0)X\x01\0\0\0at"), "trace 0 has a total", 0),
    "number as frame": (with_trace(b"(K\0K\0K\5\x85Nt"), "trace 0 has a frame", 0),
    "swapped frame": (with_trace(b"(K\0K\0K\5X\x01\0\0\0a\x86\x85Nt"), "trace 0 has a frame", 0),
    "class as attribute": (with_attribute(b"ctracemalloc\nSnapshot\n"), "the attribute 'a' is not plain", 0),
    "object as attribute": (with_attribute(b"]ctracemalloc\nSnapshot\n)\x81a"), "the attribute 'a' is not plain", 0),
    "loop as attribute": (with_attribute(b"]q\0h\0a"), "the attribute 'a' is too large", 0),
    "bush as attribute": (
        with_attribute(b"]q\x000" + b"".join(b"](h%ch%ceq%c0" % (n, n, n + 1) for n in range(40)) + b"h\x28"),
        "the attribute 'a' is too large", 0,
    ),
    "many that share a list": (
        with_attribute(b"]q\0(" + b"N" * 3000 + b"e" + b"".join(b"X\x02\0\0\0%02dh\0" % n for n in range(100))),
        "is too large", 0,
    ),
}  # fmt: skip


def test_the_good_one():
    assert read(GOOD) == ([], {"traceback_limit": 1})
    assert read(with_trace(b"(K\0K\0X\x01\0\0\0aK\1\x86\x85Nt"))[0] == [(0, 0, (("a", 1),), None)]
    assert read(with_attribute(b"K\5"))[1]["a"] == 5
    assert isinstance(pickle.loads(GOOD), tracemalloc.Snapshot)


@pytest.mark.parametrize("name", BAD)
def test_bad_pickles(name, tmp_path):
    data, reason, offset = BAD[name]
    file = tmp_path / "bad"
    file.write_bytes(data)
    with pytest.raises(heapledger.SnapshotFormatError) as caught:
        heapledger.Snapshot.load(file)
    assert reason in caught.value.reason and caught.value.offset == offset
    assert str(caught.value) == f"{file}: byte {offset}: {caught.value.reason}"


def test_a_key_that_takes_forever_to_hash():
    """A tuple of two that are the same tuple of two ...: hashed 2**60 times."""
    bush = b")q\0" + b"".join(b"h%ch%c\x86q%c0" % (n, n, n + 1) for n in range(60))
    for instructions in (b"}h\x3cNs", b"\x8f(h\x3c\x90", b"(h\x3c\x91", b"cbuiltins\nset\n]h\x3ca\x85R"):
        with pytest.raises(Malformed, match="cannot be a key"):
            read(b"\x80\x04" + bush + instructions + b".")


def ways_to_hash(keys):
    """Instructions that hash the things these instructions push."""
    yield b"}(" + b"".join(key + b"N" for key in keys) + b"u"
    yield b"}" + b"".join(key + b"Ns" for key in keys)
    yield b"\x8f" + b"".join(b"(" + key + b"\x90" for key in keys)
    yield b"(" + b"".join(keys) + b"\x91"
    yield b"cbuiltins\nset\n](" + b"".join(keys) + b"e\x85R"


def test_keys_that_are_hashed_again_and_again():
    """Two bytes of the file name a key whose hash takes as long as all the rest of it."""
    for key in (b"(" + b"N" * 5000 + b"t", b"\x8b\xff\xff\0\0" + b"\1" * 65535):
        for instructions in ways_to_hash([b"h\0"] * 2000):
            with pytest.raises(Malformed, match="too long to hash|same hash"):
                read(with_attribute(key + b"q\x000" + instructions))
    once = b"(" + b"K\5" * 5000 + b"t"
    assert read(with_attribute(b"}" + once + b"Ns"))[1]["a"] == {(5,) * 5000: None}


def test_keys_that_are_in_each_others_way(monkeypatch):
    """As in test_plain.py. Numbers in a row are not; pickles have them in portions."""
    monkeypatch.setattr("heapledger._plain.MOST_SCATTERED", 500)
    for step in (1, 1000):
        numbers = [10**6 + n * step for n in range(2500)]
        keys = [b"J" + number.to_bytes(4, "little") for number in numbers]
        portions = [b"(" + b"N".join([*keys[at : at + 1000], b""]) + b"u" for at in range(0, len(keys), 1000)]
        for instructions in (*ways_to_hash(keys), b"}" + b"".join(portions)):
            if step == 1:
                assert sorted(read(with_attribute(instructions))[1]["a"]) == numbers
            else:
                with pytest.raises(Malformed, match="more than 500 keys are numbers"):
                    read(with_attribute(instructions))


def test_keys_that_have_the_same_hash():
    """Each would be compared with all others."""
    for few, many in ((100, 101), (0, 5000)):
        for count, is_refused in ((few, False), (many, True)):
            numbers = [n * (2**61 - 1) for n in range(2, count + 2)]
            keys = [b"\x8a\x10" + number.to_bytes(16, "little") for number in numbers]
            for instructions in ways_to_hash(keys):
                if is_refused:
                    with pytest.raises(Malformed, match="same hash"):
                        read(with_attribute(instructions))
                else:
                    assert sorted(read(with_attribute(instructions))[1]["a"]) == numbers
    other = [b"K\1" + b"\x8a\x10" + (n * (2**61 - 1)).to_bytes(16, "little") + b"\x86" for n in range(2, 1000)]
    for instructions in ways_to_hash(other):
        with pytest.raises(Malformed, match="same hash"):
            read(with_attribute(instructions))


def test_traces_that_share_their_frames():
    """The frames are looked at once: 100,000 traces with 100,000 frames each would take a minute."""
    many = 100_000
    frame = b"X\x01\0\0\0aK\1\x86q\x000"
    frames = b"(" + b"h\0" * many + b"tq\x010"
    data = GOOD.replace(b"]s", frame + frames + b"(K\0K\5h\1Ntq\x020](" + b"h\2" * many + b"es")
    start = time.process_time()
    traces = read(data)[0]
    assert time.process_time() - start < 10
    assert len(traces) == many and len(traces[0][2]) == many


HUNGRY = {
    "a list in itself": with_attribute(b"]q\0(" + b"h\0" * 20000 + b"e"),
    "place in the memo": b"\x80\x04Nr\xff\xff\xff\x7f.",
    "place far in the memo": b"\x80\x04Nr\xff\xff\xff\xff.",
    "length of bytes": b"\x80\x04\x8e\0\0\0\0\x08\0\0\0.",
    "length of text": b"\x80\x04\x8d\0\0\0\0\x08\0\0\0.",
    "length of a number": b"\x80\x04\x8b\xff\xff\xff\x7f.",
    "length of a frame": b"\x80\x04\x95\0\0\0\0\x08\0\0\0N.",
    "copies of a list": b"\x80\x04]q\0(" + b"".join(b"M" + n.to_bytes(2, "little") for n in range(65536)) + b"e" +
    b"cbuiltins\nset\nh\0\x85R" * 20000 + b".",
}  # fmt: skip

LIMITED = """
    import resource, sys
    import heapledger
    data = open(sys.argv[1], "rb").read()
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20),) * 2)
    try:
        heapledger.Snapshot.load(sys.argv[1])
    except heapledger.SnapshotFormatError:
        sys.exit(0)
    sys.exit("loaded")
"""


@pytest.mark.parametrize("name", HUNGRY)
def test_a_file_gets_no_more_memory_than_it_has_bytes(name, tmp_path):
    """Each of these makes the standard library's unpickler ask for gigabytes; here 64 MB are all there is."""
    file = tmp_path / "hungry"
    file.write_bytes(HUNGRY[name])
    run(LIMITED, file)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_pickles(seed):
    """Whatever is changed: a snapshot of plain data, or Malformed; never another error."""
    source = random.Random(seed)
    snapshot = heapledger.Snapshot(random_values.traces(source, 20), 4)
    snapshot.note = {"a": [1, 2.5, {3}]}
    data = pickle.dumps(tracemalloc.Snapshot(tuples(snapshot), 4), source.choice([3, 4, 5]))
    loaded = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 3)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        if source.random() < 0.2:
            del damaged[source.randrange(len(damaged)) :]
        try:
            traces, attributes = read(bytes(damaged))
        except Malformed as error:
            assert 0 <= error.args[1] <= len(damaged)
        else:
            loaded += 1
            assert type(traces) is list and type(attributes) is dict
    assert loaded


def test_our_pickles_are_plain(tmp_path):
    """Nothing but what a reader of the standard library's expects is in them: the two classes, and sets."""
    snapshot = heapledger.Snapshot(random_values.traces(random.Random(1)), 4)
    vars(snapshot).update(ATTRIBUTES)
    snapshot.dump(tmp_path / "file", "tracemalloc")
    stream = io.BytesIO((tmp_path / "file").read_bytes())
    names = {argument for opcode, argument, _ in pickletools.genops(stream) if opcode.name == "GLOBAL"}
    assert names == {"tracemalloc Snapshot", "tracemalloc _Traces", "builtins set", "builtins frozenset"}
    assert stream.read() == b""
