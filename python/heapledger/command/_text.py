"""Sizes and names as text. Anybody may have written the names, so they are shown as text and nothing else."""

from __future__ import annotations


def printable(name: str) -> str:
    """The name with escapes instead of what a terminal might obey or not show: control characters, marks that turn
    the direction of writing, lone surrogates."""
    if name.isprintable():
        return name
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in name
    )


def size(number: int, sign: bool = False) -> str:
    """Bytes for people: 512 B, 1.5 KiB, 23.4 MiB. hl_size_text in src/core and bytesText in report/page do the same."""
    plus = "+" if sign and number > 0 else ""
    if abs(number) < 1024:
        return f"{plus}{number} B"
    rest = float(abs(number))
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        rest /= 1024
        if rest < 999.95 or unit == "EiB":
            break
    return f"{'-' if number < 0 else plus}{rest:.1f} {unit}"


def count(number: int, sign: bool = False) -> str:
    return f"{number:+,}" if sign and number else f"{number:,}"


def share(part: int, whole: int) -> str:
    """Percent; empty if the whole is nothing."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def shorten(name: str, width: int) -> str:
    """The name cut to so many characters. Its end says most, and some of its beginning says where it is."""
    if len(name) <= width or width < 4:
        return name
    head = min(width // 4, 12)
    return f"{name[:head]}…{name[len(name) - (width - head - 1) :]}"


def plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
