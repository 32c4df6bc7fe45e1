"""What kind of code a file holds, and pseudonyms for reports that must not tell names.

The snapshot may come from another machine, so the file's name is all there is to go by.
"""

import re

# In the order in which the page lists them.
KINDS = ("own", "site-packages", "stdlib", "importlib", "other")

_LIBRARY = re.compile(r"/(?:site|dist)-packages/")
_IMPORTLIB = re.compile(r"<frozen (?:importlib|zipimport)|/lib(?:64)?/python\d+(?:\.\d+)?t?/importlib/")
_STDLIB = re.compile(r"<frozen |/lib(?:64)?/python\d+(?:\.\d+)?t?/")


def kind_of(filename):
    """One of KINDS: the program's own code, installed packages, the standard library, imports, no file at all."""
    if _LIBRARY.search(filename):
        return "site-packages"
    if _IMPORTLIB.search(filename):
        return "importlib"
    if _STDLIB.search(filename):
        return "stdlib"
    return "other" if filename.startswith("<") and filename.endswith(">") else "own"


class Pseudonyms:
    """Names that tell nothing, the same one for the same name throughout a report."""

    def __init__(self):
        self._known = {}

    def of(self, sort, name):
        """A name for `name`, which is of this sort: file, function, package."""
        names = self._known.setdefault(sort, {})
        if name not in names:
            names[name] = f"{sort}-{len(names) + 1}"
        return names[name]
