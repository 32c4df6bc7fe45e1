"""Call everything public of heapledger and of the stdlib with the same random values; print where the errors differ.

    python bad_input.py SEED CALLS

Run in a child process: a crash must not take the tests with it. Values that contain objects of an implementation are
made twice, once for each.
"""

import json
import random
import sys
import tracemalloc

import heapledger

FUNCTIONS = [
    "start", "stop", "is_tracing", "clear_traces", "reset_peak", "get_traced_memory", "get_tracemalloc_memory",
    "get_traceback_limit", "get_object_traceback", "take_snapshot", "_get_object_traceback", "_format_size",
]  # fmt: skip
CLASSES = [
    "Frame",
    "Traceback",
    "Trace",
    "Statistic",
    "StatisticDiff",
    "Snapshot",
    "Filter",
    "DomainFilter",
    "BaseFilter",
]
METHODS = {
    "Frame": [],
    "Traceback": ["format", "index", "count", "__contains__", "__getitem__"],
    "Trace": [],
    "Statistic": ["_sort_key"],
    "StatisticDiff": ["_sort_key"],
    "Snapshot": ["statistics", "compare_to", "filter_traces"],
    "Filter": ["_match", "_match_frame", "_match_traceback"],
    "DomainFilter": ["_match"],
    "BaseFilter": ["_match"],
    "_Traces": ["__getitem__", "__contains__", "index", "count"],
}
ATTRIBUTES = ["filename", "lineno", "_frame", "_frames", "total_nframe", "_trace", "domain", "size", "traceback",
              "count",
              "size_diff", "count_diff", "inclusive", "filename_pattern", "all_frames", "traceback_limit", "traces",
              "_traces", "__dict__", "__doc__"]  # fmt: skip
SPECIALS = {
    "str": str, "repr": repr, "hash": hash, "len": len, "list": list, "bool": bool, "==": lambda o: o == o,
    "<": lambda o: o < o, "!= 5": lambda o: o != 5, ">= None": lambda o: o >= None, "[0]": lambda o: o[0],
    "[-1:]": lambda o: o[-1:], "iter": iter, "reversed": reversed, "5 in": lambda o: 5 in o,
}  # fmt: skip


class Hostile:
    """Fails, lies or answers nonsense, depending on the mood."""

    def __init__(self, mood):
        self.mood = mood
        self.patience = 30  # or a loop over it would never end, in either implementation

    def __getitem__(self, index):
        self.patience -= 1
        if self.patience < 0:
            raise IndexError("hostile")
        return self.answer()

    def answer(self, *arguments, **named):
        if self.mood == 0:
            raise ZeroDivisionError("hostile")
        return [None, -5, "text", 2**70, (), Hostile(0)][self.mood % 6]

    __eq__ = __lt__ = __len__ = __iter__ = __index__ = __bool__ = __str__ = __contains__ = __call__ = answer
    __hash__ = object.__hash__

    def __repr__(self):
        return f"Hostile({self.mood})"


class Text(str):
    __slots__ = ()


class Number(int):
    pass


PLAIN = [
    0, 1, -1, 2, 3, 255, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63, 2**64, 2**200, -(2**200),
    0.0, 1.5, float("nan"), float("inf"), 1j, True, False, None, ..., NotImplemented,
    "", "a", "a.py", "*.py", "[", "\udc80", "\0", "x" * 1000, "lineno", "traceback", "filename", b"", b"a.py",
    (), [], {}, set(), frozenset(), range(3), slice(1), object, int, len, print, bytearray(3), memoryview(b"x"),
]  # fmt: skip


def recipe(source, depth=0):
    """Something that `build` makes a value of, the same for both implementations."""
    roll = source.random()
    if depth > 3 or roll < 0.45:
        return ("plain", source.randrange(len(PLAIN)))
    if roll < 0.52:
        return ("hostile", source.randrange(6))
    if roll < 0.72:
        kind = source.choice(["tuple", "list", "generator", "dict", "subclass"])
        return (kind, [recipe(source, depth + 1) for _ in range(source.randrange(5))])
    if roll < 0.80:
        return ("frame", (source.choice(["a.py", "b.pyc", "\udc80", Text("sub.py")]), source.choice([0, 1, -3, 2**40])))
    if roll < 0.90:
        frames = tuple(("a.py", source.choice([1, 2, Number(3)])) for _ in range(source.randrange(4)))
        size, domain = source.choice([0, 5, -1, 2**64, 2**63, 1.5]), source.choice([0, 3, -1, 2**33])
        return ("trace", (domain, size, frames, source.choice([None, 1, 2**40, "x"])))
    return ("object", source.choice(CLASSES), [recipe(source, depth + 1) for _ in range(source.randrange(1, 4))])


def build(module, plan):
    kind = plan[0]
    if kind == "plain":
        return PLAIN[plan[1]]
    if kind == "hostile":
        return Hostile(plan[1])
    if kind in ("frame", "trace"):
        return plan[1]
    if kind == "object":
        try:
            return getattr(module, plan[1])(*(build(module, part) for part in plan[2]))
        except Exception:
            return None
    parts = [build(module, part) for part in plan[1]]
    if kind == "tuple":
        return tuple(parts)
    if kind == "generator":
        return (part for part in parts)
    if kind == "dict":
        return {str(index): part for index, part in enumerate(parts)}
    if kind == "subclass":
        return type("Sub", (list,), {})(parts)
    return parts


def attempt(call):
    try:
        return None, call()
    except RecursionError:
        return "RecursionError", None
    except Exception as error:
        return type(error).__name__, None


def both(what, plans, named, call, differences):
    """Do it in both; returns the two results, or None if either failed."""
    answers = []
    for module in (heapledger, tracemalloc):
        values = [build(module, plan) for plan in plans]
        keywords = {name: build(module, plan) for name, plan in named.items()}
        answers.append(attempt(lambda m=module, v=values, k=keywords: call(m, *v, **k)))
    if answers[0][0] != answers[1][0]:
        differences.append([what, repr(plans)[:400], repr(named)[:200], answers[0][0], answers[1][0]])
        return None
    return None if answers[0][0] else (answers[0][1], answers[1][1])


def use(name, pair, source, differences, odd=""):
    """Everything that can be done with two objects that were made alike."""
    for attribute in ATTRIBUTES:
        answers = [attempt(lambda o=one, a=attribute: getattr(o, a))[0] for one in pair]
        if answers[0] != answers[1]:
            differences.append([f"{name}.{attribute}", repr(pair[1])[:300], "", *answers])
    for special, function in SPECIALS.items():
        answers = [attempt(lambda o=one, s=function: s(o))[0] for one in pair]
        if answers[0] != answers[1]:
            differences.append([f"{special} of {name}", shown(pair[1]), "", *answers])
    for method in METHODS[name]:
        plans = [recipe(source) for _ in range(source.choice([0, 1, 1, 1, 2, 2, 3]))]
        if method == "compare_to" and source.random() < 0.7:
            plans[:1] = [("object", "Snapshot", [("tuple", [("trace", (0, 1, (("a.py", 1),), 1))]), ("plain", 1)])]
        answers = []
        for module, one in zip((heapledger, tracemalloc), pair, strict=True):
            values = [build(module, plan) for plan in plans]
            answers.append(attempt(lambda o=one, m=method, v=values: getattr(o, m)(*v))[0])
        if answers[0] != answers[1]:
            differences.append([f"{odd}{name}.{method}", repr(plans)[:400], shown(pair[1]), *answers])
    for attribute in ("_frames", "_frame", "_trace", "lineno", "inclusive", "traces", "traceback_limit", "size"):
        plan = recipe(source)
        answers = [
            attempt(lambda o=one, m=module, a=attribute, p=plan: setattr(o, a, build(m, p)))[0]
            for module, one in zip((heapledger, tracemalloc), pair, strict=True)
        ]
        if answers[0] != answers[1]:
            differences.append([f"set {name}.{attribute}", repr(plan)[:300], "", *answers])
        if answers == [None, None]:
            for special, function in SPECIALS.items():
                answers = [attempt(lambda o=one, s=function: s(o))[0] for one in pair]
                if answers[0] != answers[1]:
                    differences.append([f"{special} of {name} with {attribute} set", repr(plan)[:300], "", *answers])


def shown(value):
    state = getattr(value, "__dict__", None) or {n: getattr(value, n, "?") for n in getattr(value, "__slots__", ())}
    return (attempt(lambda: repr(state))[1] or "?")[:300]


def run(seed, calls):
    source, differences = random.Random(seed), []
    sys.setrecursionlimit(400)
    for _ in range(calls):
        if source.random() < 0.2:
            name = source.choice(FUNCTIONS)
            plans = [recipe(source) for _ in range(source.choice([0, 1, 1, 2, 3]))]
            named = {source.choice(["nframe", "obj", "x", "size"]): recipe(source)} if source.random() < 0.2 else {}
            if source.random() < 0.3:
                heapledger.start(source.randrange(1, 9)), tracemalloc.start()
            both(name, plans, named, lambda m, *v, n=name, **k: getattr(m, n)(*v, **k), differences)
            heapledger.stop(), tracemalloc.stop()
            continue
        name = source.choice(CLASSES)
        plans = [recipe(source) for _ in range(source.choice([1, 1, 2, 2, 3, 3, 4, 5]))]
        if name == "Snapshot" and source.random() < 0.8:
            entries = [
                recipe(source) if source.random() < 0.2 else ("trace", recipe_of_trace(source)) for _ in range(4)
            ]
            plans = [(source.choice(["list", "tuple"]), entries), ("plain", 1)]
        odd = (
            ""
            if name != "Snapshot" or all(map(is_trace, plans[0][1:][0] if plans[0][0] in LISTS else [None]))
            else "odd "
        )
        if name == "Filter" and source.random() < 0.8:
            plans = [("plain", 21), ("plain", source.choice([26, 27, 28, 29, 30, 31])), *plans[2:]]
        made = both(name, plans, {}, lambda m, *v, n=name: getattr(m, n)(*v), differences)
        if made:
            use(name, made, source, differences, odd)
            if name == "Snapshot" and source.random() < 0.5:
                traces = [attempt(lambda o=one: o.traces) for one in made]
                if all(error is None for error, _ in traces):
                    use("_Traces", [value for _, value in traces], source, differences)
    problem = heapledger._validate()
    assert problem is None, problem
    return differences


LISTS = ("list", "tuple")


def is_trace(plan):
    """Could an engine have made it?"""
    if plan is None or plan[0] != "trace":
        return False
    domain, size, frames, _ = plan[1]
    return type(size) is int and 0 <= size < 2**63 and 0 <= domain < 2**32 and len(frames) > 0


def recipe_of_trace(source):
    while True:
        plan = recipe(source)
        if plan[0] == "trace":
            return plan[1]


if __name__ == "__main__":
    json.dump(run(int(sys.argv[1]), int(sys.argv[2])), sys.stdout)
