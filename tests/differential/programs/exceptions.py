"""Raise, chain, group and keep exceptions with their tracebacks."""

import traceback


class Custom(Exception):
    def __init__(self, number):
        super().__init__(number, "n" * number)
        self.number = number


def fail(depth):
    if depth:
        try:
            fail(depth - 1)
        except Custom as error:
            raise RuntimeError(f"depth {depth}") from error
        finally:
            local = [depth] * 4
            del local
    raise Custom(40)


def main():
    caught = []
    for depth in range(12):
        try:
            fail(depth)
        except (Custom, RuntimeError) as error:
            caught.append(error)
    try:
        raise ExceptionGroup("several", [KeyError(f"key{number}") for number in range(20)] + caught[:2])
    except* KeyError as group:
        caught.append(group)
    except* (Custom, RuntimeError) as group:
        caught.append(group)
    formatted = ["".join(traceback.format_exception(error)) for error in caught[:6]]
    for action in (lambda: [][1], lambda: {}["x"], lambda: 1 / 0, lambda: None.x, lambda: int("z"), lambda: undefined):  # noqa: F821
        try:
            action()
        except Exception as error:
            caught.append(error)
    return caught, formatted
