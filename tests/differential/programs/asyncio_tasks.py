"""Tasks, queues, locks, timeouts, cancellation and async generators; some left suspended."""

import asyncio


async def numbers(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number * 1000


async def consume(queue, results):
    while (item := await queue.get()) is not None:
        results.append({"item": item, "square": item**5})


async def stuck(event):
    note = bytearray(77)
    await event.wait()
    return note


async def everything():
    queue, results = asyncio.Queue(3), []
    consumer = asyncio.create_task(consume(queue, results))
    async for number in numbers(40):
        await queue.put(number)
    await queue.put(None)
    await consumer
    gathered = await asyncio.gather(*(asyncio.sleep(0, [number] * number) for number in range(30)))
    tasks = [asyncio.create_task(stuck(asyncio.Event())) for _ in range(10)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError as error:
        failures.append(error)
    return results, gathered, failures, [value async for value in numbers(10)]


def main():
    return asyncio.run(everything())
