/* embedding.c: a program that has the interpreter come and go, each time with heapledger tracing in it.
 *
 *     embedding EXECUTABLE ROUNDS
 *
 * EXECUTABLE is the interpreter's, by which it finds its library; PYTHONPATH says where heapledger is.
 * test_embedding.py compiles and runs it.
 */
#include <Python.h>
#include <pthread.h>
#include <stdatomic.h>

/* A thread that outlives every interpreter, and allocates in the raw domain all the time. */
static _Atomic int ended;

static void *outlive(void *unused)
{
    while (!atomic_load(&ended))
        PyMem_RawFree(PyMem_RawMalloc(4321));
    return unused;
}

static int initialize(const char *executable)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, executable);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.executable, executable);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return PyStatus_Exception(status) ? -1 : 0;
}

static const char program[] = "import heapledger\n"
                              "assert not heapledger.is_tracing() and heapledger.get_traced_memory() == (0, 0)\n"
                              "heapledger.start(5)\n"
                              "def make():\n"
                              "    return [bytearray(n) for n in range(3000, 3500)]\n"
                              "kept = make()\n"
                              "found = heapledger.get_object_traceback(kept[7])\n"
                              "assert [frame.lineno for frame in found][-1] == 5, found\n"
                              "snapshot = heapledger.take_snapshot()\n"
                              "sizes = [t.size for t in snapshot.traces if t.traceback[-1].lineno == 5]\n"
                              "assert sum(3000 < size < 3600 for size in sizes) == 500, len(sizes)\n"
                              "assert heapledger._validate() is None and heapledger.lost_records() == 0\n"
                              "import builtins; builtins.late = snapshot\n";

int main(int argc, char **argv)
{
    pthread_t thread;
    int started = 0;
    if (argc != 3)
        return 2;
    for (int round = 0; round < atoi(argv[2]); round++) {
        if (initialize(argv[1]) != 0)
            return 3;
        if (PyRun_SimpleString(program) != 0)
            return 4;
        if (!started)
            started = pthread_create(&thread, NULL, outlive, NULL) == 0;
        if (round % 3 == 1 && PyRun_SimpleString("heapledger.stop()") != 0)
            return 5;
        if (Py_FinalizeEx() != 0)
            return 6;
    }
    atomic_store(&ended, 1);
    if (started)
        pthread_join(thread, NULL);
    puts("done");
    return 0;
}
