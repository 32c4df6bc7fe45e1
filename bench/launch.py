"""Run a command and print what it took as JSON: `python -I -S launch.py COMMAND...`, output of the command discarded.

"wall" and "cpu" are seconds, "rss" is the most bytes resident that the process, or a descendant it has waited for, had
at a time. Linux counts to a process what its parent had resident when it was forked; so the parent is this one, which
is smaller than any program we measure, and not the benchmark.
"""

import os
import sys
import time


def main():
    command = sys.argv[1:]
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 1)
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - start
    numbers = wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    print('{"wall": %r, "cpu": %r, "rss": %d}' % numbers)
    return os.waitstatus_to_exitcode(status)


sys.exit(main())
