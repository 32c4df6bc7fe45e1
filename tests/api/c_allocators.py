"""The interpreter's allocators, called through ctypes: with the GIL, without it, and from a thread Python never saw."""

import ctypes
import types


def declare(library):
    functions = types.SimpleNamespace()
    for domain in ("PyMem_Raw", "PyMem_", "PyObject_"):
        for verb, arguments in (("Malloc", 1), ("Calloc", 2), ("Realloc", 2), ("Free", 1)):
            function = getattr(library, domain + verb)
            function.restype = None if verb == "Free" else ctypes.c_void_p
            first = ctypes.c_void_p if verb in ("Realloc", "Free") else ctypes.c_size_t
            function.argtypes = [first, ctypes.c_size_t][:arguments]
            setattr(functions, domain + verb, function)
    return functions


holding_the_gil = declare(ctypes.PyDLL(None))
without_the_gil = declare(ctypes.CDLL(None))

_process = ctypes.CDLL(None)


def in_a_foreign_thread(function, argument):
    """function(argument) in a new thread that has no thread state; the thread has ended when this returns."""
    thread, result = ctypes.c_ulong(), ctypes.c_void_p()
    status = _process.pthread_create(ctypes.byref(thread), None, function, ctypes.c_void_p(argument))
    assert status == 0
    assert _process.pthread_join(thread, ctypes.byref(result)) == 0
    return result.value
