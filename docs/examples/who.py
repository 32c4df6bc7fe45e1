import heapledger
import service

heapledger.start(10)
service.serve(1000)
largest = heapledger.take_snapshot().statistics("traceback")[0]
print(largest.count, "blocks,", largest.size, "bytes")
print("\n".join(largest.traceback.format()))
