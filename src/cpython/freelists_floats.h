/* freelists_floats.h: floats, for versions whose full collections turn their list on again.
 *
 * So the collector is asked to tell when it is done, by gc.callbacks. The including file defines
 *     void turn_off_floats(PyInterpreterState *interpreter)     cheap where that is done already
 */
#ifndef HL_FREELISTS_FLOATS_H
#define HL_FREELISTS_FLOATS_H

static _Atomic bool floats_too;
static PyObject *callback; /* made once, kept for ever */

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

/* Where that cannot be done, floats are on again after a full collection. */
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
