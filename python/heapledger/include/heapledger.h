/* heapledger.h: for C extensions that manage memory of their own, such as an arena, and want it in heapledger's ledger.
 *
 *     #include <Python.h>
 *     #include "heapledger.h"                              // compile with -I $(python -c 'import heapledger as h;
 *                                                          //                            print(h.get_include())')
 *     heapledger_connect();                                // with the GIL; often in the module's init function
 *     heapledger_track(DOMAIN, (uintptr_t)block, size);    // from here on in any thread
 *     heapledger_untrack(DOMAIN, (uintptr_t)block);        // BEFORE the block is given back
 *
 * The extension does not depend on heapledger: nothing is linked, and nothing is imported. heapledger_connect looks
 * whether the process has imported heapledger already; until it has found it, and while heapledger is not tracing, the
 * other functions do nothing. It costs about a dictionary lookup, so an extension that may be imported first calls it
 * again now and then, for instance whenever it makes an arena.
 *
 * A domain is a number that tells your blocks from others', in filters (heapledger.DomainFilter): draw one at random
 * and keep it. Domain 0 is the interpreter's own. Within a domain an address stands for one block; tracking it again
 * replaces the block. The traceback is the calling thread's; a thread that Python does not know, gets "<unknown>".
 *
 * Threads: heapledger_connect needs the GIL (an attached thread state). The others take any thread, with or without the
 * GIL, and never take it. They return without running any Python code.
 *
 * The connection is kept per source file that includes this header.
 */
#ifndef HEAPLEDGER_H
#define HEAPLEDGER_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEAPLEDGER_CAPSULE "heapledger._ledger._C_API"

/* What heapledger provides. `version` is the number of functions; newer versions append. */
typedef struct {
    size_t version;
    int (*track)(unsigned int domain, uintptr_t address, size_t size);
    int (*untrack)(unsigned int domain, uintptr_t address);
    int (*is_tracing)(void);
} heapledger_api;

enum { HEAPLEDGER_API_VERSION = 3 };

static const heapledger_api *heapledger_connection;

static inline const heapledger_api *heapledger_connected(void)
{
#if defined(__GNUC__)
    return __atomic_load_n(&heapledger_connection, __ATOMIC_ACQUIRE);
#else
    return heapledger_connection;
#endif
}

/* Returns whether heapledger is there. Sets no exception and keeps one that is set. */
static inline int heapledger_connect(void)
{
    PyObject *type, *value, *traceback, *name, *module = NULL, *capsule = NULL;

    if (heapledger_connected() != NULL)
        return 1;
    PyErr_Fetch(&type, &value, &traceback);
    name = PyUnicode_FromString("heapledger._ledger");
    if (name != NULL)
        module = PyImport_GetModule(name); /* looks in sys.modules only */
    if (module != NULL)
        capsule = PyObject_GetAttrString(module, "_C_API");
    if (capsule != NULL) {
        const heapledger_api *found = (const heapledger_api *)PyCapsule_GetPointer(capsule, HEAPLEDGER_CAPSULE);
        if (found != NULL && found->version >= HEAPLEDGER_API_VERSION) {
#if defined(__GNUC__)
            __atomic_store_n(&heapledger_connection, found, __ATOMIC_RELEASE);
#else
            heapledger_connection = found;
#endif
        }
    }
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Restore(type, value, traceback);
    return heapledger_connected() != NULL;
}

/* Is heapledger there, and tracing? For extensions that must do work to find out what they would report. */
static inline int heapledger_is_tracing(void)
{
    const heapledger_api *api = heapledger_connected();
    return api != NULL && api->is_tracing();
}

/* Enter a block. 0: done. -1: heapledger has no memory for it. -2: not connected or not tracing. */
static inline int heapledger_track(unsigned int domain, uintptr_t address, size_t size)
{
    const heapledger_api *api = heapledger_connected();
    return api != NULL ? api->track(domain, address, size) : -2;
}

/* Remove a block; it need not be there. 0: done. -2: not connected or not tracing. */
static inline int heapledger_untrack(unsigned int domain, uintptr_t address)
{
    const heapledger_api *api = heapledger_connected();
    return api != NULL ? api->untrack(domain, address) : -2;
}

#ifdef __cplusplus
}
#endif

#endif
