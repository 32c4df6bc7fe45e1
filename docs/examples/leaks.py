import importlib
import sys

import heapledger

service = importlib.import_module(sys.argv[1])
leaks = heapledger.track_leaks(lambda: service.serve(100), rounds=3, nframe=10)
for size, blocks in leaks.rounds:
    print(f"a round left {size:,} bytes in {blocks} blocks behind")
for statistic in leaks.leaked.statistics("lineno")[:2]:
    print(statistic)
