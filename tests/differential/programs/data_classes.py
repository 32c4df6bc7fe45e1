"""Make data classes of several kinds, instances, copies and comparisons."""

import dataclasses


@dataclasses.dataclass
class Plain:
    number: int
    names: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Point:
    x: float
    y: float = 0.5


def main():
    kinds = [
        dataclasses.make_dataclass(f"Made{index}", [(f"field{number}", int, number) for number in range(index)])
        for index in range(6)
    ]
    plain = [Plain(number, [str(number)] * 3) for number in range(1000, 1300)]
    points = sorted(Point(number * 1.25, -number / 7) for number in range(300))
    moved = [dataclasses.replace(point, y=9.25) for point in points]
    return kinds, plain, moved, [dataclasses.asdict(one) for one in plain], [kind() for kind in kinds * 10]
