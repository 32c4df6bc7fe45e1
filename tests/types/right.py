"""Programs that type checkers must accept, and what they must find out. Checked, not run: see tools/check-types."""

from typing import assert_type

import heapledger

with heapledger.trace(nframe=5) as t:
    pass
assert_type(t, heapledger.trace)
assert_type(t.peak, heapledger.Snapshot)


@heapledger.trace()
def double(number: int, *, twice: bool = False) -> list[int]:
    return [number] * (4 if twice else 2)


assert_type(double(3, twice=True), list[int])
assert_type(double.last, heapledger.trace | None)


@heapledger.trace(report=lambda one: print(one.leaked))
async def say(number: int) -> str:
    return str(number)


async def listen() -> None:
    assert_type(await say(1), str)


class Service:
    @heapledger.trace()
    def handle(self, number: int) -> str:
        return str(number)


assert_type(Service().handle(1), str)

for statistic in t.leaked.statistics("lineno"):
    assert_type(statistic.traceback[0].lineno, int)
    assert_type(statistic.traceback[0:2], tuple[heapledger.Frame, ...])
for difference in t.peak.compare_to(t.start, "traceback", cumulative=False):
    assert_type(difference.size_diff, int)
for one in t.leaked.filter_traces([heapledger.Filter(False, "*.py"), heapledger.DomainFilter(True, 0)]).traces:
    assert_type(one.traceback.format(most_recent_first=True), list[str])
assert_type(heapledger.take_capture().live, heapledger.Snapshot | None)
assert_type(heapledger.track_leaks(lambda: None).rounds, tuple[tuple[int, int], ...])
assert_type(heapledger.Snapshot.merge([t.leaked]), heapledger.Snapshot)
assert_type(heapledger.get_traced_memory(), tuple[int, int])
