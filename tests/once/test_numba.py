"""numba: machine code made at run time that calls back into Python, and threads that it starts itself."""

from beside import beside


def test_compiled_code():
    """The stack is that of the interpreter, wherever compiled code is in between; its arrays are its own affair."""
    beside(
        """
        import numba, numpy, threading
        heapledger.start(limit)
        checked = []
        def back():
            checked.append(random_stacks.check(len(checked), rounds=3))
        @numba.njit
        def calling(number):
            total = 0.0
            for _ in range(number):
                total += numpy.ones(10).sum()
                with numba.objmode():
                    back()
            return total
        assert calling(4) == 40 and len(checked) == 4
        @numba.njit(nogil=True, parallel=True)
        def together(number):
            total = 0.0
            for _ in numba.prange(number):
                total += numpy.ones(100).sum()
            return total
        together(10)
        other = threading.Thread(target=together, args=(10_000,))
        other.start()
        random_stacks.check(17, rounds=10)
        other.join()
        """
    )
