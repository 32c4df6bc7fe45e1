"""List, set, dict and generator comprehensions, nested and with closures."""


class Table:
    width = 7
    rows = [[number * 1000 for number in range(10)] for _ in range(5)]


def main():
    squares = [number**3 for number in range(2000)]
    texts = {str(number) for number in range(700)}
    pairs = {(a, b): a * b for a in range(20) for b in range(20) if a != b}
    functions = [lambda bound=number: bound * factor for number in range(50) for factor in (1.5, 2.5)]
    nested = [[{c: [d for d in range(c)]} for c in range(b)] for b in range(12)]
    results = [function() for function in functions]
    walrus = [last := text * 2 for text in sorted(texts)]
    return squares, texts, pairs, functions, nested, results, walrus, last, tuple(x / 3 for x in range(200)), Table
