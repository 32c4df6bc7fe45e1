"""The encoding of plain data: docs/format.md, section "Plain data"."""

import itertools
import math
import random
import sys
import time

import pytest
from heapledger import _plain
from heapledger._plain import MOST_ALIKE, MOST_INT_BYTES, MOST_LEVELS, Malformed, decode, encode

TEXTS = ["", "a", "über", "\0", "\ud800", "\udcff\udc80", "\U0001f600", "x" * 1000]
NUMBERS = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**31, 2**63, -(2**63), 2**64, 10**300, -(10**300)]
FLOATS = [0.0, -0.0, 1.5, math.inf, -math.inf, sys.float_info.min, 5e-324]


def hashable(source, level):
    kind = source.randrange(9 if level else 7)
    if kind < 7:
        return [None, True, False, source.choice(NUMBERS), source.choice(FLOATS), source.choice(TEXTS),
                source.randbytes(source.randrange(5))][kind]  # fmt: skip
    return (tuple, frozenset)[kind - 7](hashable(source, level - 1) for _ in range(source.randrange(4)))


def value(source, level):
    kind = source.randrange(8)
    if level == 0 or kind < 2:
        return hashable(source, level)
    if kind < 4:
        return {hashable(source, level - 1): value(source, level - 1) for _ in range(source.randrange(5))}
    if kind < 6:
        return (list, tuple)[kind - 4](value(source, level - 1) for _ in range(source.randrange(5)))
    return (set, frozenset)[kind - 6](hashable(source, level - 1) for _ in range(source.randrange(5)))


def exactly(one):
    """Equal means equal with all types: True is 1, and -0.0 is 0.0."""
    if isinstance(one, (set, frozenset)):
        return type(one), sorted(map(repr, map(exactly, one)))
    if isinstance(one, dict):
        return dict, [(exactly(key), exactly(item)) for key, item in one.items()]
    if isinstance(one, (list, tuple)):
        return type(one), [exactly(item) for item in one]
    return type(one), repr(one)


OTHERS = [None, True, False, b"", b"\xff\0", [], (), {}, set(), frozenset(), [[[]]], {"a": {1: (2.5, None)}}]


@pytest.mark.parametrize("one", [*TEXTS, *NUMBERS, *FLOATS, *OTHERS, {1, "1", b"1", (1,)}], ids=repr)
def test_round_trip(one):
    assert exactly(decode(encode(one))) == exactly(one)


@pytest.mark.parametrize("seed", range(200))
def test_random_round_trip(seed):
    one = value(random.Random(seed), 5)
    data = encode(one)
    back = decode(data)
    assert exactly(back) == exactly(one)
    assert encode(back) == data


def test_nan():
    assert math.isnan(decode(encode(math.nan)))
    assert [math.isnan(one) for one in decode(encode({float("nan"), float("nan")}))] == [True, True]


def test_sets_have_one_order():
    members = [str(number) for number in range(100)]
    assert len({encode(set(random.Random(seed).sample(members, 100))) for seed in range(20)}) == 1


class Text(str):
    pass


@pytest.mark.parametrize("one", [object(), Text("x"), bytearray(b"x"), 1j, int, len, range(3), ...], ids=repr)
def test_what_is_not_plain(one):
    name = type(one).__name__
    for where, inside in [("", one), ("[0]", [one]), ("[0][1]", ([None, one],)), ("['k']", {"k": one})]:
        with pytest.raises(TypeError) as caught:
            encode(inside, "attribute 'tags'")
        assert str(caught.value).startswith(f"attribute 'tags'{where}: a")
        assert f"{name} can't be saved; only None, bool," in str(caught.value)
    if isinstance(one, (Text, range)):
        with pytest.raises(TypeError, match=", member "):
            encode({one}, "x")
        with pytest.raises(TypeError, match=", key "):
            encode({one: 1}, "x")


def nested(levels):
    one = []
    for _ in range(levels - 1):
        one = [one]
    return one


def test_levels():
    assert decode(encode(nested(MOST_LEVELS))) == nested(MOST_LEVELS)
    with pytest.raises(ValueError, match="nested more than 32 levels deep"):
        encode(nested(MOST_LEVELS + 1))
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="or in itself"):
        encode(loop)
    with pytest.raises(Malformed, match="levels deep"):
        decode(b"l\1" * MOST_LEVELS + b"l\0")


class Awkward:
    def __repr__(self):
        raise RuntimeError("no")


def test_what_cannot_be_described():
    for key in (10**5000, "k" * 10**6, Awkward(), (Awkward(),), frozenset({10**5000}), b"k" * 10**6):
        with pytest.raises(TypeError, match="can't be saved") as caught:
            encode({key: object()}, "x")
        assert len(str(caught.value)) < 300


def test_what_changes_meanwhile(monkeypatch):
    """Another thread may change a list: what has been encoded by then is what is saved."""
    value = [2, 3, [1]]
    real = _plain._scalar

    def scalar(one):
        if one == 1:
            value.pop()
        return real(one)

    monkeypatch.setattr(_plain, "_scalar", scalar)
    data = encode(value)
    assert decode(data) == [2, 3, [1]] and value == [2, 3]


def test_great_numbers():
    most = 2 ** (8 * MOST_INT_BYTES - 1) - 1
    assert decode(encode(most)) == most
    with pytest.raises(ValueError, match="attribute 'n': an int of more than 4096 bytes"):
        encode(most + 1, "attribute 'n'")


@pytest.mark.parametrize(
    ("data", "reason", "offset"),
    [
        (b"", "the data end", 0),
        (b"x", "no value begins with", 0),
        (b"NN", "1 bytes too many", 1),
        (b"f1234567", "within a float", 0),
        (b"u\x05abc", "5 bytes are announced, 3 are left", 1),
        (b"u\xff\xff\xff\xff\x7f", "are left", 1),
        (b"b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "too long", 1),
        (b"u\x80\x00", "longer than need be", 2),
        (b"u\x80", "within a number", 2),
        (b"u\x02a\xff", "not UTF-8", 3),
        (b"i\x00", "an int of 0 bytes", 0),
        (b"i\x02\x01\x00", "longer than need be", 0),
        (b"i\x02\xff\xff", "longer than need be", 0),
        (b"i\x81\x20" + b"\1" * 4097, "an int of 4097 bytes", 0),
        (b"l\x03NN", "3 items are announced, 2 bytes are left", 0),
        (b"l\xff\xff\xff\xff\x7f", "items are announced", 0),
        (b"d\x01N", "1 items are announced", 0),
        (b"d\x01l\0N", "what cannot be in a dict", 0),
        (b"s\x01l\0", "what cannot be in a set", 0),
        (b"d\x02NTNT", "same key twice", 0),
        (b"d\x02TNi\x01\x01N", "same key twice", 0),
        (b"s\x02NN", "same member twice", 0),
        (b"s\x02TN", "not in order", 3),
        (b"z\x02TN", "not in order", 3),
        (b"l\x02Nt\x01u\x05abc", "are announced", 6),
    ],
    ids=repr,
)
def test_malformed(data, reason, offset):
    with pytest.raises(Malformed) as caught:
        decode(data)
    assert reason in caught.value.args[0]
    assert caught.value.args[1] == offset


def test_members_that_have_the_same_hash(monkeypatch):
    for kind in (set, frozenset, dict.fromkeys, lambda members: {(1, member) for member in members}):
        few = kind([number * (2**61 - 1) for number in range(2, 2 + MOST_ALIKE)])
        assert decode(encode(few)) == few
        many = kind([number * (2**61 - 1) for number in range(2, 3 + MOST_ALIKE)])
        with pytest.raises(ValueError, match="x: more than 100 keys have the same hash: can't be saved"):
            encode(many, "x")
        monkeypatch.setattr("heapledger._plain.MOST_ALIKE", MOST_ALIKE + 1)
        data = encode(many)
        monkeypatch.undo()
        with pytest.raises(Malformed, match="same hash"):
            decode(data)
    alike = [0] * 1000
    assert decode(encode([alike, tuple(alike)])) == [alike, tuple(alike)]


def cluster(bits, count):
    """Ints that all differ in their hash, and fill two thirds of a dict's table of 2**bits places. Some take a row of
    places, each where one goes that found the one before it taken; the others are sent to that row, and follow it.
    """
    mask = 2**bits - 1
    row = [1]
    while len(row) < count * 4 // 5:
        row.append((row[-1] * 5 + 1) & mask)
    taken = frozenset(row)
    found = list(row)
    for number in itertools.count(mask + 1):
        if len(found) == count:
            return found
        at, rest = number & mask, number
        while at in taken and rest:
            rest >>= 5
            at = (at * 5 + rest + 1) & mask
        if at in taken:
            found.append(number)


def test_members_that_are_in_each_others_way(monkeypatch):
    """Shown to take long, so that many would take forever; refused, unless they are few, or in a row."""
    keys = cluster(14, 10_500)
    took = []
    for numbers in (range(10_500), keys):
        start = time.thread_time()
        dict.fromkeys(numbers)
        took.append(time.thread_time() - start)
    assert took[1] > 5 * took[0]
    monkeypatch.setattr("heapledger._plain.MOST_SCATTERED", 500)
    with pytest.raises(ValueError, match="x: more than 500 keys are numbers, .*: can't be saved"):
        encode(dict.fromkeys(keys), "x")
    far = [number * 10**6 for number in range(502)]
    for kind in (set, frozenset, dict.fromkeys, lambda members: {(1, member) for member in members}):
        few = kind(far[:-2])
        assert decode(encode(few)) == few
        with pytest.raises(ValueError, match="x: more than 500 keys are numbers, .*: can't be saved"):
            encode(kind(far), "x")
        with monkeypatch.context() as patched:
            patched.setattr("heapledger._plain.MOST_SCATTERED", 502)
            data = encode(kind(far))
        with pytest.raises(Malformed, match="more than 500 keys are numbers"):
            decode(data)
    for start in (0, 5, -7, 10**15):
        in_a_row = list(range(start, start + 2000))
        random.Random(1).shuffle(in_a_row)
        assert decode(encode(dict.fromkeys(in_a_row))) == dict.fromkeys(in_a_row)
    # The same key again and again does not make room for others.
    data = b"d" + _plain.base128(5000) + b"i\1\5N" * 4000
    data += b"".join(encode(number) + b"N" for number in range(5, 6005, 6))
    with pytest.raises(Malformed, match="more than 500 keys are numbers"):
        decode(data)


@pytest.mark.parametrize("seed", range(20))
def test_damaged(seed):
    """Whatever is changed: another value, whose encoding it is, or Malformed; never another error."""
    source = random.Random(seed)
    data = encode([value(source, 4) for _ in range(5)])
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 3)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        damaged = bytes(damaged[: source.choice([len(damaged), source.randrange(len(damaged))])])
        try:
            back = decode(damaged)
        except Malformed as error:
            assert 0 <= error.args[1] <= len(damaged)
        else:
            assert len(encode(back)) == len(damaged)
