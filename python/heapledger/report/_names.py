"""Pseudonyms for confidential reports."""


class Pseudonyms:
    """Names without meaning: the same pseudonym for the same name throughout a report."""

    def __init__(self):
        self._known = {}

    def of(self, sort, name):
        """A name for `name`, which is of this sort: file, function, package."""
        names = self._known.setdefault(sort, {})
        if name not in names:
            names[name] = f"{sort}-{len(names) + 1}"
        return names[name]
