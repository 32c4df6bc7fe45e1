"""Trace a small program: the ten lines that hold most memory, the peak, the traceback of the biggest block."""

import dataclasses
import json
import linecache
import re

import heapledger as tracemalloc


@dataclasses.dataclass
class Order:
    number: int
    customer: str
    lines: list

    def total(self):
        return sum(line["price"] * line["count"] for line in self.lines)


def write_orders(count):
    """Orders as one JSON text, the way they would come over the wire."""
    orders = []
    for number in range(count):
        lines = [{"article": f"article {n % 40}", "price": n % 17, "count": n % 5} for n in range(number % 12)]
        orders.append({"number": number, "customer": f"customer {number % 300}", "lines": lines})
    return json.dumps(orders)


def read_orders(text):
    return [Order(**fields) for fields in json.loads(text)]


def index_words(text):
    """Where each word of the text begins."""
    index = {}
    for match in re.finditer(r"\w+", text):
        index.setdefault(match.group(), []).append(match.start())
    return index


def program():
    text = write_orders(4000)
    orders = read_orders(text)
    index = index_words(text)
    return orders, index, {order.number: order.total() for order in orders}


def main():
    tracemalloc.start(25)
    kept = program()
    current, peak = tracemalloc.get_traced_memory()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()

    print(f"Ten lines that hold most of the memory of {len(kept[0])} orders:")
    for statistic in snapshot.statistics("lineno")[:10]:
        frame = statistic.traceback[0]
        print(f"  {statistic}")
        print(f"      {linecache.getline(frame.filename, frame.lineno).strip()}")
    print(f"\nTraced now: {current / 1024:,.0f} KiB; at the peak: {peak / 1024:,.0f} KiB")

    biggest = max(snapshot.traces, key=lambda trace: trace.size)
    print(f"\nThe biggest block has {biggest.size / 1024:,.0f} KiB. It was allocated at (most recent call last):")
    print("\n".join(biggest.traceback.format()))


if __name__ == "__main__":
    main()
