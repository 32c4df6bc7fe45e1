/* own_code.h: which functions are ours: those of the Python package around this library.
 *
 * What a function of ours allocates itself is our own work, like what the binding allocates (hl_tracer_begin_own_work).
 * We tell such a function by the file of its code, when its code object is first resolved (resolve.c). Importing the
 * package is not our own work: the bodies of modules and classes are no functions. Neither are the functions of one
 * file, python/heapledger/_calls.py, which call the program's: what a program's function that is written in C allocates
 * has no other frame.
 */
#ifndef HL_OWN_CODE_H
#define HL_OWN_CODE_H

#include <Python.h>
#include <stdbool.h>

#include "../core/names.h"

/* The package is in this folder, or in this one too: interpreters may import several copies. UTF-8, with the separator
 * at its end. Takes the ledger's lock. */
hl_status hl_own_code_add_folder(const char *folder, size_t length) HL_MUST_USE;
/* Is this code ours, given the name of its file? Under the ledger's lock. */
bool hl_own_code_is(const PyCodeObject *code, const hl_string *file);

#endif
