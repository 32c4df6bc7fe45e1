"""Threads that allocate, hand blocks to each other and free each other's."""

import queue
import threading


class Worker(threading.Thread):
    def __init__(self, inbox, outbox):
        super().__init__()
        self.inbox, self.outbox, self.kept = inbox, outbox, []

    def run(self):
        while (item := self.inbox.get()) is not None:
            item.append(bytes(len(item) + 600))
            self.kept.append([item.pop(0), str(len(self.kept)) * 20])
            self.outbox.put(item)


def main():
    queues = [queue.SimpleQueue() for _ in range(4)]
    workers = [Worker(queues[index], queues[index + 1]) for index in range(3)]
    for worker in workers:
        worker.start()
    for number in range(200):
        queues[0].put([bytearray(number), number * 1000, f"{number:030}"])
    results = [queues[3].get() for _ in range(200)]
    for worker, inbox in zip(workers, queues, strict=False):
        inbox.put(None)
        worker.join()
    del results[::3]
    for worker in workers:
        del worker.kept[::2]
    local = threading.local()
    local.value = object()
    return workers, results, local
