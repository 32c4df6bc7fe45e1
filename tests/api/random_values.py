"""Random frames, traces, snapshots and patterns, the same for the same seed."""

FILES = [
    "a.py", "b.py", "dir/a.py", "dir/sub/c.py", "/usr/lib/x.py", "<unknown>", "<string>", "", "a.pyc", "B.PY", "[x].py",
    "über.py", "€/文.py", "\U0001f600.py", "\udc80bad.py", "a\nb.py", "a\0b.py", "*.py", "dir/a.pyc.py", ".pyc", ".py",
]  # fmt: skip
LINES = [0, 1, 2, 3, 10, 11, 2**31 - 1]
PATTERNS = [
    "*", "a.py", "*.py", "*.pyc", "a.pyc", "dir/*", "*/c.py", "?.py", "[ab].py", "[!a].py", "[[]x].py", "[]x].py",
    "[a-",
    "[", "", "**", "*a*b*", "<*>", "[!]a]*", "*[0-9]", "[z-a].py", "\udc80*", "€/?.py", "*\n*", "[a-c]*", "B.PY",
    "b.PY",
    "*.py?", "*.[p]y", "[\\]", "\\*", "[^a].py", "[--0]*", "[a-c-e].py", "[&&a]*", "[a||b]*", "[~~]*", "[a--z]*",
]  # fmt: skip


def frame(random):
    return random.choice(FILES), random.choice(LINES)


def frames(random, most=4):
    return tuple(frame(random) for _ in range(random.randint(1, most)))


def trace(random):
    stack = frames(random)
    total = random.choice([len(stack), len(stack), len(stack) + 3, None])
    size = random.choice([0, 1, 5, 100, 512, 1000, 10240, 123456, 2**33])
    return random.choice([0, 0, 0, 1, 389047, 2**32 - 1]), size, stack, total


def traces(random, most=60):
    """Few distinct stacks, so that groups have several traces and ties in size and count are common."""
    known = [trace(random) for _ in range(random.randint(1, 12))]
    return [random.choice(known) if random.random() < 0.7 else trace(random) for _ in range(random.randint(0, most))]


def pattern(random):
    if random.random() < 0.6:
        return random.choice(PATTERNS)
    letters = "ab*?[]!-^.py/\\"
    return "".join(random.choice(letters) for _ in range(random.randint(0, 8)))


def filter_recipe(random):
    """("Filter", arguments) or ("DomainFilter", arguments), to be made in either implementation."""
    if random.random() < 0.2:
        return "DomainFilter", (random.random() < 0.6, random.choice([0, 1, 389047, 2**32 - 1, -1]))
    return "Filter", (
        random.random() < 0.6,
        pattern(random),
        random.choice([None, None, *LINES]),
        random.random() < 0.5,
        random.choice([None, None, None, 0, 1]),
    )
