"""The page: the sources in page/ joined to one, with the data in it or beside it.

The page forbids itself everything except its own script and style, which it names by their hashes. It allows no network
and no other script, whatever the names in the data look like. Only `open` allows it to ask its own server.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources

# In the order in which they are joined. Each may use those before it.
SCRIPTS = (
    "decode.js",
    "values.js",
    "names.js",
    "folding.js",
    "frames.js",
    "text.js",
    "state.js",
    "colours.js",
    "graph.js",
    "tip.js",
    "graph_keys.js",
    "table.js",
    "fix.js",
    "timeline.js",
    "controls.js",
    "source.js",
    "main.js",
)


def _source(name: str) -> str:
    return importlib.resources.files("heapledger.report").joinpath("page", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def script() -> str:
    """All scripts as one, invisible to others."""
    return '(() => {\n"use strict";\n' + "\n".join(_source(name) for name in SCRIPTS) + "})();\n"


def make(title: str, data: str, served: bool = False) -> str:
    """The page's text. `data` is text without markup: base64, or nothing if a server sends the data."""
    style, code = _source("page.css"), script()
    policy = (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(style)}'; img-src data:; "
        f"connect-src {chr(39)}{'self' if served else 'none'}{chr(39)}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=True),
        "title": html.escape(title),
        "style": style,
        "script": code,
        "data": data,
        "source": "served" if served else "embedded",
    }
    # One pass over the page's own text: inserted text is never searched again.
    pieces = _source("page.html").split("{{")
    page = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        page += [parts[name], rest]
    return "".join(page)
