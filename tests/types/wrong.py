"""Lines that type checkers must refuse, each of them: see tools/check-types."""

import heapledger


@heapledger.trace()
def double(number: int) -> int:
    return 2 * number


double("x")
heapledger.start(nframe=1)
heapledger.take_snapshot().statistics("function")
heapledger.take_snapshot().dump("file", format="json")
heapledger.trace(report=1)
heapledger.track_leaks(double)
heapledger.Frame(("file.py", 1)).lineno = 2
