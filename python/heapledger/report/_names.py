"""Pseudonyms for confidential reports."""

from __future__ import annotations


class Pseudonyms:
    """Names without meaning: the same pseudonym for the same name throughout a report."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def of(self, sort: str, name: str) -> str:
        """A name for `name`, which is of this sort: file, function, package."""
        names = self._known.setdefault(sort, {})
        if name not in names:
            names[name] = f"{sort}-{len(names) + 1}"
        return names[name]
