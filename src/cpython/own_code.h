/* own_code.h: which functions are ours, that is, belong to the Python package around this library.
 *
 * What our functions allocate themselves is our own work, like what the binding allocates (hl_tracer_begin_own_work).
 * We recognise such a function by the file of its code, when its code object is first resolved (resolve.c). Importing
 * the package is not our own work, because the bodies of modules and classes are not functions. The functions in
 * python/heapledger/_calls.py are not ours either. They call functions of the program. If such a function is written in
 * C, what it allocates has no other frame.
 */
#ifndef HL_OWN_CODE_H
#define HL_OWN_CODE_H

#include <Python.h>
#include <stdbool.h>

#include "../core/names.h"

/* Add a folder that contains the package. There may be several, because interpreters may import several copies. The
 * path is UTF-8 and ends with a separator. Takes the ledger's lock. */
hl_status hl_own_code_add_folder(const char *folder, size_t length) HL_MUST_USE;
/* Is this code ours? `file` is the name of its file. Needs the ledger's lock. */
bool hl_own_code_is(const PyCodeObject *code, const hl_string *file);

#endif
