"""Seven allocation-heavy programs in the shape of real ones: pure Python, deterministic, some tenths of a second each.

Each function takes nothing and returns a checksum, which must not depend on the tracer. `deep` runs one below
`DEPTH` frames of recursion, so that a tracer asked for 25 frames always finds 25: without it most stacks here would
end after three or four and the 25-frames figures would be flattering.
"""

import copy
import dataclasses
import json
import random
import re

DEPTH = 30


def deep(depth, function):
    """Call `function` below `depth` frames of this one."""
    if depth == 0:
        return function()
    return deep(depth - 1, function)


class Employee:
    def __init__(self, number, name, salary):
        self.number = number
        self.name = name
        self.salary = salary
        self.tags = []
        self.history = {"hired": number, "raises": (salary, salary + 10.5)}


def objects():
    """Instances with attributes, kept in lists and dicts, then dropped."""
    total = 0
    for batch in range(3):
        staff = [Employee(i, f"employee-{batch}-{i}", 1000.0 + i) for i in range(12_000)]
        by_name = {}
        for employee in staff:
            by_name[employee.name] = employee
            employee.tags.append(("batch", batch))
            if employee.number % 3 == 0:
                employee.tags.append(employee.salary * 1.5)
        by_shard = {}
        for employee in staff:
            by_shard.setdefault(employee.number % 97, []).append(employee)
        total += len(by_name) + sum(len(shard) for shard in by_shard.values())
        total += sum(len(employee.tags) for employee in staff)
    return total


def json_documents():
    """Nested data through json.dumps and json.loads."""
    dice = random.Random(7)
    document = {
        "users": [
            {
                "id": i,
                "name": f"user{i}",
                "score": dice.random() * 100,
                "address": {"street": f"street {i % 50}", "zip": str(10_000 + i), "geo": [i * 0.5, i * 0.25]},
                "tags": [f"tag{dice.randrange(1000)}" for _ in range(6)],
                "active": i % 2 == 0,
                "notes": None,
            }
            for i in range(400)
        ]
    }
    total = 0
    for round_ in range(30):
        document["round"] = round_
        text = json.dumps(document)
        document = json.loads(text)
        total += len(text)
    return total


LOG_LINE = re.compile(r"(?P<when>\d+-\d+-\d+) (?P<level>[A-Z]+) \[(?P<module>\w+)\] (?P<text>.*)")


def strings():
    """Log lines formatted, split, matched, replaced and joined."""
    total = 0
    for round_ in range(6):
        lines = [
            "{:04d}-{:02d}-{:02d} {} [mod{}] request {} took {:.3f} ms from 10.0.{}.{}".format(
                2000 + i % 20, i % 12, i % 28, ("INFO", "WARN", "ERROR")[i % 3], i % 40, i, i / 7, i % 256, round_
            )
            for i in range(4_000)
        ]
        text = "\n".join(lines)
        counts = {}
        for line in text.splitlines():
            match = LOG_LINE.match(line)
            fields = match.groupdict()
            words = fields["text"].split(" ")
            key = f"{fields['level'].lower()}:{fields['module']}"
            counts[key] = counts.get(key, 0) + len(words)
            total += len("-".join(words).upper().replace("REQUEST", "r").encode())
        total += len(re.sub(r"\d+", "#", text[:20_000])) + len(counts)
    return total


class Tree:
    __slots__ = ("left", "right", "value")

    def __init__(self, left, right, value):
        self.left = left
        self.right = right
        self.value = value


def build_tree(depth, value):
    if depth == 0:
        return Tree(None, None, [value])
    # Two lines, so that every node is made under a stack of its own: 2**depth of them.
    left = build_tree(depth - 1, value * 2)
    right = build_tree(depth - 1, value * 2 + 1)
    return Tree(left, right, value)


def sum_tree(tree):
    if tree.left is None:
        return tree.value[0]
    return tree.value + sum_tree(tree.left) + sum_tree(tree.right)


def trees():
    """Binary trees built and walked by recursion (32,000 stacks), and linked lists."""
    total = 0
    for round_ in range(3):
        total += sum_tree(build_tree(14, round_ + 1))
        head = None
        for i in range(20_000):
            head = [i, head]
        while head is not None:
            total += head[0]
            head = head[1]
    return total


def collections_churn():
    """Dicts, sets, tuples and lists made by comprehensions and thrown away."""
    total = 0
    for round_ in range(50):
        pairs = [(i, i * 1.5 + round_) for i in range(1_000, 2_200)]
        mapping = {key: [value, key] for key, value in pairs}
        squares = {(key % 37, key % 11) for key in mapping}
        groups = {}
        for key, (value, same) in mapping.items():
            groups.setdefault(key % 53, set()).add((value, same))
        inverted = {frozenset((key, key + 1000)): len(group) for key, group in groups.items()}
        merged = {**mapping, **{-key: value for key, value in pairs}}
        total += len(squares) + sum(inverted.values()) + len(merged) + len(sorted(merged)[:10])
        total += sum(len(chunk) for chunk in [list(mapping)[i : i + 7] for i in range(0, 1_200, 7)])
    return total


class Refused(Exception):
    def __init__(self, number, reason):
        super().__init__(number, reason)
        self.reason = reason


def numbers(limit):
    for i in range(limit):
        yield i * 1000


async def fetch(number):
    return [number, str(number)]


async def gather(first):
    result = []
    for number in range(first, first + 10):
        result.append(await fetch(number))
    return result


def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("the coroutine waits for something")


def check(number):
    if number % 5 == 0:
        raise Refused(number, f"divisible: {number}")
    return number


def functions():
    """Generators, coroutines, closures, keyword arguments and exceptions."""
    total = 0
    for round_ in range(27):
        total += sum(number for number in numbers(4_000) if number % 3)
        for first in range(0, 400, 2):
            total += len(finish(gather(first * 1000)))
        adders = [lambda x, step=step: x + step + round_ for step in range(1_500)]
        for adder in adders:
            total += adder(10_000)
        for number in range(2_500):
            try:
                check(number)
            except Refused as refusal:
                total += len(refusal.reason)
        for number in range(1_500):
            options = dict(first=number, second=(number, round_), third=[number])
            total += (lambda *args, **kwargs: len(args) + len(kwargs))(*options["third"], **options)
    return total


@dataclasses.dataclass
class Item:
    name: str
    price: float
    amounts: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(order=True)
class Order:
    priority: int
    number: int
    items: list = dataclasses.field(default_factory=list, compare=False)
    note: dict = dataclasses.field(default_factory=dict, compare=False)


def records():
    """Dataclass records: made, sorted, replaced, turned to dicts and deep-copied."""
    dice = random.Random(11)
    total = 0
    for round_ in range(3):
        orders = [
            Order(
                dice.randrange(100),
                i,
                [Item(f"item{i}-{k}", k * 9.99, [i, k * 300]) for k in range(2)],
                {"round": round_, "customer": f"c{i % 300}"},
            )
            for i in range(1_100)
        ]
        orders.sort()
        replaced = [dataclasses.replace(order, priority=order.priority + 1) for order in orders]
        copies = copy.deepcopy(replaced[:650])
        rows = [dataclasses.asdict(order) for order in orders[:650]]
        total += sum(order.priority for order in copies) + sum(len(row["items"]) for row in rows)
        total += len({repr(order) for order in orders[:400]})
    return total


WORKLOADS = {
    "objects": objects,
    "json": json_documents,
    "strings": strings,
    "trees": trees,
    "collections": collections_churn,
    "functions": functions,
    "records": records,
}
