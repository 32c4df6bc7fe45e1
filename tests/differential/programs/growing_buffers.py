"""Lists, bytearrays, dicts, sets and strings that grow and shrink: realloc in place, moved, and to less."""

import array
import io


def main():
    lists = [[] for _ in range(20)]
    for number in range(3000):
        lists[number % 20].append(number * 1000)
    for one in lists[::2]:
        del one[10:]
        one.clear() if len(one) % 3 else one.extend(range(70))
    buffers = [bytearray() for _ in range(10)]
    for number in range(400):
        buffers[number % 10] += b"x" * number
    for buffer in buffers[::2]:
        del buffer[100:]
        buffer.extend(bytes(17))
    text = ""
    for number in range(500):
        text += str(number)
    numbers = array.array("d")
    for number in range(1500):
        numbers.append(number)
    while len(numbers) > 40:
        numbers.pop()
    table, members = {}, set()
    for number in range(2000):
        table[number] = None
        members.add(str(number))
        if number % 3 == 0:
            del table[number]
    stream = io.BytesIO()
    for number in range(300):
        stream.write(bytes(number))
    stream.truncate(1000)
    joined = b"".join(bytes([number % 256]) * number for number in range(200))
    return lists, buffers, text, numbers, table, members, stream, stream.getvalue(), joined
