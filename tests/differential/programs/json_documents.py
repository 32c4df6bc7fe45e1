"""Encode and decode nested documents, with the C accelerator and without."""

import json
import json.decoder
import json.encoder


def document(width, depth):
    if depth == 0:
        return {"text": "t" * width, "number": width * 1.5, "big": 10**width, "none": None}
    return {f"key{index}": [document(index, depth - 1), index] for index in range(width)}


def main():
    source = document(5, 3)
    text = json.dumps(source, indent=1)
    decoder = json.JSONDecoder(object_pairs_hook=tuple)
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    broken = []
    for cut in range(1, 40):
        try:
            json.loads(text[:cut])
        except ValueError as error:
            broken.append(error)
    return json.loads(text), decoder.decode(text), list(json.JSONEncoder().iterencode(source)), text, broken
