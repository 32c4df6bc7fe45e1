/* freelists_floats.h: floats, for versions whose full collections turn the list of floats on again.
 *
 * We add a function to gc.callbacks, so that the collector tells us when it is done. The including file defines
 *     void turn_off_floats(PyInterpreterState *interpreter)     cheap if the list is off already
 */
#ifndef HL_FREELISTS_FLOATS_H
#define HL_FREELISTS_FLOATS_H

static _Atomic bool floats_too;
static PyObject *callback; /* created once, never freed */

static PyObject *after_collection(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    if (atomic_load_explicit(&floats_too, memory_order_relaxed))
        turn_off_floats(PyInterpreterState_Get());
    Py_RETURN_NONE;
}

static PyMethodDef callback_def = {.ml_name = "heapledger", .ml_meth = after_collection, .ml_flags = METH_VARARGS};

/* A new reference, or NULL. */
static PyObject *collector_callbacks(void)
{
    PyObject *collector = PyImport_ImportModule("gc");
    PyObject *callbacks = collector == NULL ? NULL : PyObject_GetAttrString(collector, "callbacks");
    Py_XDECREF(collector);
    if (callbacks != NULL && !PyList_Check(callbacks))
        Py_CLEAR(callbacks);
    return callbacks;
}

/* If this fails, floats are on again after a full collection. */
static void watch_collections(void)
{
    PyObject *callbacks = collector_callbacks();
    if (callbacks != NULL && callback == NULL)
        callback = PyCFunction_New(&callback_def, NULL);
    if (callbacks != NULL && callback != NULL && PySequence_Contains(callbacks, callback) == 0)
        (void)PyList_Append(callbacks, callback);
    Py_XDECREF(callbacks);
    PyErr_Clear();
}

static void forget_collections(void)
{
    PyObject *callbacks = callback == NULL ? NULL : collector_callbacks();
    Py_ssize_t at = callbacks == NULL ? -1 : PySequence_Index(callbacks, callback);
    if (at >= 0)
        (void)PySequence_DelItem(callbacks, at);
    Py_XDECREF(callbacks);
    PyErr_Clear();
}

#endif
