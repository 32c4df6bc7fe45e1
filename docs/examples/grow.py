import heapledger
import service

heapledger.start(10)
service.serve(500)  # caches fill, modules load
before = heapledger.take_snapshot()
service.serve(1000)
after = heapledger.take_snapshot()

for difference in after.compare_to(before, "lineno")[:4]:
    print(difference)
