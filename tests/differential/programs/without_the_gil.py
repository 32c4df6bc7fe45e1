"""Threads inside libraries that allocate in the raw domain while they do not hold the GIL."""

import bz2
import hashlib
import lzma
import threading
import zlib


def work(number, results):
    data = bytes(range(256)) * (40 + number)
    compressors = [zlib.compressobj(level) for level in (1, 6, 9)]
    packed = [compressor.compress(data) for compressor in compressors]
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(zlib.compress(data))
    squeezer = bz2.BZ2Compressor()
    squeezer.compress(data)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
    results.append(
        (
            compressors,
            packed,
            unpacker,
            plain,
            squeezer,
            lzma.compress(data, lzma.FORMAT_RAW, filters=filters),
            hashlib.sha256(data),
            hashlib.blake2b(data),
            bz2.compress(data),
        )
    )


def main():
    results = []
    threads = [threading.Thread(target=work, args=(number, results)) for number in range(4)]
    for thread in threads:
        thread.start()
    work(9, results)
    for thread in threads:
        thread.join()
    del results[1]
    return results
