"""A reader of .hlsnap files, written from docs/format.md and from nothing else, to find out whether that suffices.

    read(open("some.hlsnap", "rb").read()) -> File

It refuses what the document says readers must refuse, by raising Malformed.
"""

import dataclasses
import struct
import zlib


class Malformed(Exception):
    pass


@dataclasses.dataclass
class Row:
    stack: tuple  # of (file, function or None, line), the oldest frame first; names are bytes
    total: int  # frames there were before the stack was cut; 0: not known
    domain: int
    origin: int
    size: int
    live: int
    allocated: int


@dataclasses.dataclass
class Snapshot:
    moment: int
    frame_limit: int
    forks: int
    origins: list
    rows: list


@dataclasses.dataclass
class File:
    version: tuple
    snapshots: list
    others: list  # (kind, payload) of the sections that are not known here


def insist(condition, otherwise):
    if not condition:
        raise Malformed(otherwise)


class Payload:
    def __init__(self, data, version):
        self.data = data
        self.version = version
        self.at = 0

    def take(self, length):
        insist(length <= len(self.data) - self.at, "longer than the section")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, below=2**64):
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            insist(shift < 70, "a number of more than ten bytes")
        insist(byte != 0 or shift == 7, "a number that could be shorter")
        insist(value < below, "a number that is too great")
        return value

    def signed(self):
        return unfold(self.number())

    def count(self, least):
        count = self.number()
        insist(count * least <= len(self.data) - self.at, "a count beyond the section")
        return count

    def end(self, padding=False):
        rest = self.data[self.at :]
        if padding:
            rest = rest.lstrip(b"\0")
        insist(not rest or self.version > (1, 0), "bytes after the content")


def unfold(code):
    return -(code + 1) // 2 if code % 2 else code // 2


class Named:
    """Things that are named in the order in which they stand."""

    def __init__(self, things):
        self.things = things
        self.named = 0

    def get(self, code):
        if code == 0:
            insist(self.named < len(self.things), "one more name than there are things")
            self.named += 1
            return self.things[self.named - 1]
        insist(code <= self.named, "what has not been named yet")
        return self.things[code - 1]


def read_files(payload):
    names = []
    for _ in range(payload.count(2)):
        last = names[-1] if names else b""
        shared = payload.number(min(len(last), 255) + 1)
        names.append(last[:shared] + payload.take(payload.number()))
    payload.end()
    return names


def read_functions(payload):
    names = [payload.take(payload.number()) for _ in range(payload.count(1))]
    payload.end()
    return names


def read_locations(payload, files, functions):
    files, functions = Named(files), Named(functions)
    locations, line = [], 0
    for _ in range(payload.count(3)):
        file = files.get(payload.number())
        code = payload.number()
        function = functions.get(code - 1) if code else None
        line = (line + payload.signed()) % 2**64
        insist(line < 2**32, "a line that is too great")
        locations.append((file, function, line))
    payload.end()
    return locations


def read_stacks(payload, locations):
    locations = Named(locations)
    nodes = [()]  # the whole path, for each
    node_count, frames, stacks = payload.count(1), 0, []
    for _ in range(payload.count(3)):
        back = payload.number(len(nodes))
        path = nodes[-back] if back else ()
        for _ in range(payload.number(node_count + 1 - (len(nodes) - 1))):
            path += (locations.get(payload.number()),)
            nodes.append(path)
        code = payload.number()
        total = (len(path) + unfold(code - 1)) % 2**64 if code else 0
        insist(code == 0 or 1 <= total < 2**32, "a total that cannot be")
        frames += len(path)
        insist(frames <= 64 * len(payload.data), "more frames than the section may hold")
        stacks.append((path, total))
    insist(len(nodes) - 1 == node_count, "fewer nodes than announced")
    payload.end(padding=True)
    return stacks


def read_rows(payload, stacks):
    moment = payload.number(3)
    frame_limit, forks = payload.number(2**32), payload.number(2**32)
    origins = [struct.unpack("<Q", payload.take(8))[0] for _ in range(payload.number(33))]
    rows, expected, domain, origin, blocks, size_of_all = [], 0, 0, 0, 0, 0
    for _ in range(payload.count(4)):
        code = payload.number()
        number = (expected + unfold(code // 2)) % 2**64
        insist(number < len(stacks), "a stack that does not exist")
        expected = max(expected, number + 1)
        if code % 2:
            domain, origin = payload.number(2**32), payload.number(max(len(origins), 1))
        size, live = payload.number(), payload.number()
        allocated = (live + payload.signed()) % 2**64
        blocks, size_of_all = blocks + live, size_of_all + size * live
        insist(allocated < 2**56 and blocks < 2**64 and size_of_all < 2**64, "too many blocks")
        rows.append(Row(*stacks[number], domain, origin, size, live, allocated))
    payload.end()
    return Snapshot(moment, frame_limit, forks, origins, rows)


def sections(data):
    """(kind, payload) of every section, whose checksums hold."""
    at, kind = 16, None
    while kind != b"END ":
        insist(len(data) - at >= 16, "cut off")
        kind, length = struct.unpack_from("<4sQ", data, at)
        insist(length <= len(data) - at - 16, "cut off")
        (checksum,) = struct.unpack_from("<I", data, at + 12 + length)
        insist(checksum == zlib.crc32(data[at : at + 12 + length]), "a damaged section")
        yield kind, data[at + 12 : at + 12 + length]
        at += 16 + length
    insist(at == len(data), "bytes after the end")


def read(data):
    insist(data[:8] == b"\x89HLS\r\n\x1a\n", "not a .hlsnap file")
    insist(len(data) >= 16, "cut off")
    *version, checksum = struct.unpack_from("<HHI", data, 8)
    insist(checksum == zlib.crc32(data[:12]), "a damaged header")
    insist(version[0] == 1, "another major version")
    file, known = File(tuple(version), [], []), []
    readers = {b"FILE": read_files, b"FUNC": read_functions, b"LOCS": read_locations, b"STKS": read_stacks}
    needs = {b"FILE": slice(0, 0), b"FUNC": slice(0, 0), b"LOCS": slice(0, 2), b"STKS": slice(2, 3)}
    for kind, data_of_section in sections(data):
        payload = Payload(data_of_section, file.version)
        if kind in readers:
            insist(len(known) < 4 and list(readers)[len(known)] == kind, "sections out of order")
            known.append(readers[kind](payload, *known[needs[kind]]))
        elif kind == b"ROWS":
            insist(len(known) == 4, "sections out of order")
            file.snapshots.append(read_rows(payload, known[3]))
        elif kind == b"END ":
            payload.end()
        else:
            file.others.append((kind, data_of_section))
    insist(1 <= len(file.snapshots) <= 8 and len(file.others) <= 32, "no snapshot, or too many")
    return file
