/* jumps.c: see jumps.h. */

#include "jumps.h"

#include <string.h>

#include "hooks.h"

static setter original;

static int set_line(PyObject *frame, PyObject *value, void *closure)
{
    int result = original(frame, value, closure);
    if (hl_hooks_are_tracing()) {
        hl_hooks_lock();
        hl_shadow_forget(&hl_hooks_shadow);
        hl_hooks_unlock();
    }
    return result;
}

void hl_jumps_watch(void)
{
    for (PyGetSetDef *attribute = PyFrame_Type.tp_getset; original == NULL && attribute->name != NULL; attribute++) {
        if (strcmp(attribute->name, "f_lineno") == 0) {
            original = attribute->set;
            attribute->set = set_line;
        }
    }
}
