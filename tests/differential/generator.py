"""Write random but valid programs, the same for the same seed.

A program is a handful of functions and classes; main() calls them and keeps most of what they make. Every statement may
fail at run time (an operation on the wrong type) and is then caught, which is part of the exercise. A budget of calls
bounds the run time, whatever the functions do to each other.
"""

import random

CALLS = 15


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.indent = 0
        self.counter = 0
        self.functions = []
        self.classes = []
        self.names = ["KEPT"]

    def line(self, text):
        self.lines.append("    " * self.indent + text)
        if self.random.random() < 0.05:
            self.lines.append("")

    def fresh(self, stem):
        self.counter += 1
        return f"{stem}{self.counter}"

    def number(self):
        return self.random.choice([self.random.randrange(-5, 10), self.random.randrange(300, 10**6), 10**25])

    def name(self):
        return self.random.choice(self.names)

    def expression(self, depth=0):
        pick = self.random.choice
        simple = [
            lambda: str(self.number()),
            lambda: f"{self.random.random() * 100:.3f}",
            lambda: repr("abcdefghij"[: self.random.randrange(10)]),
            lambda: f"bytes({self.random.randrange(1500)})",
            lambda: f"bytearray({self.random.randrange(900)})",
            self.name,
            self.name,
        ]
        if depth >= 3:
            return pick(simple)()

        def inner():
            return self.expression(depth + 1)

        complex_ones = [
            lambda: f"[{inner()}, {inner()}, {inner()}]",
            lambda: f"({inner()}, {inner()})",
            lambda: f"{{short({inner()}): {inner()}}}",
            lambda: f"{{'a': {inner()}, 'b': {inner()}}}",
            lambda: f"{pick(['add', 'multiply'])}({inner()}, {inner()})",
            lambda: f"{inner()} {pick(['-', '//', '%', 'and', 'or', 'is'])} {inner()}",
            lambda: f"short({inner()}) * {self.random.randrange(1, 30)}",
            lambda: f"[{inner()}] * {self.random.randrange(1, 40)}",
            lambda: f"f'{{short({self.name()})!r:.40}} {self.number()}'",
            lambda: f"[(i, {inner()}) for i in range({self.random.randrange(6)})]",
            lambda: f"{{i * 1000: {inner()} for i in range({self.random.randrange(6)})}}",
            lambda: f"{{str(i) + 'x' for i in range({self.random.randrange(9)}) if i % 2}}",
            lambda: f"tuple({self.name()} for _ in range({self.random.randrange(5)}))",
            lambda: f"sorted(range({self.random.randrange(9)}), key=lambda k: -k)",
            lambda: f"(lambda a, b={inner()}: [a, b, {self.name()}])({inner()})",
            lambda: f"eval({self.random.choice(['[1.5, 2.5]', 'dict(a=1)'])!r})" if depth == 0 else inner(),
            lambda: f"{inner()} if {self.name()} else {inner()}",
            lambda: f"{self.name()}[{self.random.randrange(-2, 4)}]",
            lambda: f"{self.name()}[{self.random.randrange(3)}:]",
            lambda: f"list({self.name()})[:20]",
        ]
        if self.functions:
            complex_ones += [lambda: f"{pick(self.functions)}({inner()}, {inner()})"] * 4
        if self.classes:
            complex_ones += [lambda: f"{pick(self.classes)}({inner()})"] * 3
        return pick(simple + complex_ones)()

    def block(self, depth, count=None):
        self.indent += 1
        for _ in range(count or self.random.randrange(1, 5)):
            self.statement(depth + 1)
        self.indent -= 1

    def statement(self, depth):
        kinds = [self.assign] * 4 + [self.keep] * 4 + [self.mutate] * 3 + [self.forget]
        if depth < 4:
            kinds += [
                self.loop,
                self.condition,
                self.attempt,
                self.attempt,
                self.closure,
                self.generator,
                self.execute,
                self.manager,
                self.keep_generator,
            ]
        self.random.choice(kinds)(depth)

    def guarded(self, text):
        """Mostly a failure ends the statement, sometimes the function."""
        if self.random.random() < 0.1:
            self.line(text)
            return
        self.line("try:")
        self.line(f"    {text}")
        self.line("except Exception as error:")
        self.line(f"    KEPT.append({self.random.choice(['error', 'str(error)', 'error.args', 'type(error)'])})")

    def assign(self, depth):
        target = self.random.choice([self.fresh("v"), *self.names[1:]])
        if target not in self.names:
            self.line(f"{target} = None")
        self.guarded(f"{target} = {self.expression()}")
        if target not in self.names:
            self.names.append(target)

    def keep(self, depth):
        self.guarded(f"KEPT.append({self.expression()})")

    def forget(self, depth):
        self.line(f"del KEPT[:: {self.random.randrange(5, 60)}]")

    def mutate(self, depth):
        name, pick = self.name(), self.random.choice
        self.line(
            pick(
                [
                    f"if isinstance({name}, list) and len({name}) < 99: {name}.extend([{self.expression(2)}] * 7)",
                    f"if isinstance({name}, list): {name}.insert(0, {self.expression(2)})",
                    f"if isinstance({name}, list): del {name}[3:]",
                    f"if isinstance({name}, dict): {name}[{self.number()}] = {self.expression(2)}",
                    f"if isinstance({name}, dict): {name}.update((i, str(i)) for i in range(9))",
                    f"if isinstance({name}, bytearray): {name} += bytes({self.random.randrange(700)})",
                    f"if isinstance({name}, bytearray): del {name}[5:]",
                    f"if hasattr({name}, '__dict__'): {name}.extra{self.random.randrange(9)} = {self.expression(2)}",
                ]
            )
        )

    def loop(self, depth):
        variable = self.fresh("i")
        self.line(f"for {variable} in range({self.random.randrange(1, 6)}):")
        self.names.append(variable)
        self.block(depth)

    def condition(self, depth):
        self.line(f"if {self.expression(3)}:")
        known = list(self.names)
        self.block(depth)
        self.names = known
        self.line("else:")
        self.block(depth)
        self.names = known

    def attempt(self, depth):
        error, known = self.fresh("e"), list(self.names)
        self.line("try:")
        self.block(depth)
        if self.random.random() < 0.4:
            self.line(f"    raise ValueError(short({self.expression(2)}))")
        self.names = known
        self.line(f"except Exception as {error}:")
        self.line(f"    KEPT.append({self.random.choice([error, f'str({error})', f'{error}.args', f'type({error})'])})")
        if self.random.random() < 0.3:
            self.line("finally:")
            self.block(depth, 1)
        self.names = known

    def manager(self, depth):
        known = list(self.names)
        self.line(f"with Manager({self.expression(3)}) as {self.fresh('m')}:")
        self.block(depth)
        self.names = known

    def closure(self, depth):
        name, known = self.fresh("inner"), list(self.names)
        self.line(f"def {name}(x, y=None):")
        self.names = [*known, "x", "y"]
        # It reads what is bound before it; assigning would make a name local, so it assigns a new one.
        self.line(f"    fresh_x = {self.expression(1)}")
        self.line(f"    return [x, y, fresh_x, {self.expression(2)}]")
        self.names = known
        self.line(f"KEPT.append({name})")
        self.guarded(f"KEPT.append({name}({self.expression(2)}))")

    def generator(self, depth):
        name, known = self.fresh("gen"), list(self.names)
        self.line(f"def {name}(x):")
        self.names = [*known, "x"]
        self.line(f"    for step in range({self.random.randrange(1, 6)}):")
        self.line(f"        held = {self.expression(1)}")
        self.line("        yield [step, held]")
        self.names = known
        self.line(f"{name}_object = {name}({self.expression(3)})")
        self.guarded(f"KEPT.append(({name}_object, next({name}_object)))")

    def keep_generator(self, depth):
        self.guarded(f"KEPT.append(list(({self.expression(2)}) for _ in range({self.random.randrange(5)})))")

    def execute(self, depth):
        name = self.fresh("source")
        gap = "\n" * self.random.randrange(1, 6)
        body = f"def f(a):\n    b = [a, {self.number()}]{gap}    return b * 2\n"
        body += f"result = f({self.random.random():.4f}), {self.number()} + {self.number()}\n"
        self.line(f"{name} = {{}}")
        self.line(f"exec(compile({body!r}, '<{name}>', 'exec'), {name})")
        part = self.random.choice(["", "['f']", "['result']"])
        self.line(f"KEPT.append({name}{part})")

    def make_class(self):
        name = self.fresh("Class")
        base = f"({self.random.choice(self.classes)})" if self.classes and self.random.random() < 0.3 else ""
        self.line(f"class {name}{base}:")
        if self.random.random() < 0.3:
            self.line("    __slots__ = ('value', 'more', '__dict__')" if not base else "    __slots__ = ()")
        self.line("    def __init__(self, value):")
        self.names = ["KEPT", "value"]
        self.line("        self.value = value")
        self.line(f"        self.more = {self.expression(1)}")
        if self.random.random() < 0.3:
            self.line("    def __del__(self):")
            self.line(f"        KEPT.append({self.expression(2).replace('value', 'KEPT')})")
        self.line("    def __repr__(self):")
        self.line(f"        return {name!r} + str(type(self.value))")
        self.line("    def __len__(self):")
        self.line(f"        return {self.random.randrange(5)}")
        self.line("")
        self.classes.append(name)
        self.names = ["KEPT"]

    def make_function(self):
        name = self.fresh("function")
        self.line(f"def {name}(first, second=None):")
        self.line("    if spend():")
        self.line("        return first")
        self.names = ["KEPT", "first", "second"]
        self.block(0, self.random.randrange(3, 9))
        self.line(f"    return {self.expression()}")
        self.line("")
        self.functions.append(name)
        self.names = ["KEPT"]

    def program(self):
        for text in PREAMBLE:
            self.line(text)
        for _ in range(self.random.randrange(4, 9)):
            self.random.choice([self.make_class, self.make_function, self.make_function])()
        self.make_function()
        self.line("def main():")
        self.indent += 1
        for function in self.functions:
            for _ in range(2):
                self.line("BUDGET[0] = CALLS")
                self.line("try:")
                self.line(f"    KEPT.append({function}({self.expression(2)}, {self.expression(2)}))")
                self.line("except Exception as error:")
                self.line("    KEPT.append(error)")
        self.line("return KEPT")
        self.indent -= 1
        return "\n".join(self.lines) + "\n"


PREAMBLE = f'''\
CALLS = {CALLS}
KEPT = []
BUDGET = [0]


def spend():
    BUDGET[0] -= 1
    if len(KEPT) > 2000:
        del KEPT[::2]
    return BUDGET[0] < 0


def short(value):
    """A text that does not grow with what the value holds: containers here share parts, so repr could take for ever."""
    return str(value)[:60] if isinstance(value, (int, float, str, bytes)) else type(value).__name__


def add(left, right):
    return left if hasattr(left, "__len__") and len(left) > 300 else left + right


def multiply(left, right):
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return left * right if numbers and abs(left) < 1e40 and abs(right) < 1e40 else [left, right]


class Manager:
    def __init__(self, value):
        self.value = [value]

    def __enter__(self):
        return self.value * 3

    def __exit__(self, *details):
        KEPT.append(details)
        return True

'''.split("\n")


def write(seed):
    return Writer(seed).program()


if __name__ == "__main__":
    import sys

    print(write(int(sys.argv[1])))
