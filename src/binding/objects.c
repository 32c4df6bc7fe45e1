/* objects.c: what the small value types share: pickling, comparison, hash.
 *
 * The stdlib's classes are Python classes, so subclasses may override any of their methods. Where Python would look up
 * a method on the instance's type, this file does the same.
 */
#include "objects.h"

/* {name: value} of all slots that have a value, including the slots of subclasses. */
static PyObject *slot_values(PyObject *self, PyObject *copyreg)
{
    PyObject *list = PyObject_CallMethod(copyreg, "_slotnames", "(O)", (PyObject *)Py_TYPE(self));
    if (list != NULL && !PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "%.200s.__slotnames__ should be a list or None, not %.200s",
                     Py_TYPE(self)->tp_name, Py_TYPE(list)->tp_name);
        Py_CLEAR(list);
    }
    PyObject *names = list != NULL ? PyList_AsTuple(list) : NULL; /* a copy: any code may change the class's list */
    Py_XDECREF(list);
    PyObject *values = names != NULL ? PyDict_New() : NULL;

    for (Py_ssize_t i = 0; values != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        PyObject *value = PyObject_GetAttr(self, name);
        if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            continue;
        }
        if (value == NULL || PyDict_SetItem(values, name, value) < 0)
            Py_CLEAR(values);
        Py_XDECREF(value);
    }
    Py_XDECREF(names);
    return values;
}

/* The default state of a class with __slots__: (__dict__ or None, {slot: value}). */
PyObject *hl_py_object_getstate(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *state = NULL, *values = NULL, *dict = NULL;
    PyObject *copyreg = PyImport_ImportModule("copyreg");

    if (copyreg == NULL)
        return NULL;
    values = slot_values(self, copyreg);
    if (values != NULL) {
        dict = PyObject_GetAttrString(self, "__dict__");
        if (dict == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            dict = Py_NewRef(Py_None);
        }
    }
    if (dict != NULL)
        state = PyTuple_Pack(2, dict, values);
    Py_XDECREF(dict);
    Py_XDECREF(values);
    Py_DECREF(copyreg);
    return state;
}

/* Returns what object.__reduce_ex__(2) would return, for every protocol and any size of our structs. */
PyObject *hl_py_object_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *make = NULL;
    PyObject *copyreg = PyImport_ImportModule("copyreg");

    if (copyreg != NULL) {
        make = PyObject_GetAttrString(copyreg, "__newobj__");
        Py_DECREF(copyreg);
    }
    if (make == NULL)
        return NULL;
    PyObject *state = PyObject_CallMethod(self, "__getstate__", NULL);
    if (state == NULL) {
        Py_DECREF(make);
        return NULL;
    }
    return Py_BuildValue("N(O)N", make, (PyObject *)Py_TYPE(self), state);
}

PyObject *hl_py_object_missing(PyObject *self, const char *name)
{
    return PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%s'", Py_TYPE(self)->tp_name, name);
}

int hl_py_object_refuse(PyObject *self, PyObject *value, void *name)
{
    PyErr_Format(PyExc_AttributeError, "property '%s' of '%.100s' object has no %s", (const char *)name,
                 Py_TYPE(self)->tp_name, value != NULL ? "setter" : "deleter");
    return -1;
}

PyObject *hl_py_object_item(PyObject *object, Py_ssize_t index)
{
    if (PyTuple_CheckExact(object) && index < PyTuple_GET_SIZE(object))
        return Py_NewRef(PyTuple_GET_ITEM(object, index));
    PyObject *position = PyLong_FromSsize_t(index);
    if (position == NULL)
        return NULL;
    PyObject *item = PyObject_GetItem(object, position);
    Py_DECREF(position);
    return item;
}

static PyObject *compare_keys(PyObject *self, PyObject *other, int op, PyTypeObject *type, PyObject *(*key)(PyObject *))
{
    if (!PyObject_TypeCheck(other, type))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *answer = NULL;
    PyObject *mine = key(self);
    PyObject *theirs = mine != NULL ? key(other) : NULL;
    if (theirs != NULL)
        answer = PyObject_RichCompare(mine, theirs, op);
    Py_XDECREF(theirs);
    Py_XDECREF(mine);
    return answer;
}

/* Derives comparisons from __lt__ and __eq__ like functools.total_ordering. If a subclass has its own __lt__ or __eq__,
 * uses that. */
static PyObject *derive_order(PyObject *self, PyObject *other, int op)
{
    PyObject *lower = Py_TYPE(self)->tp_richcompare(self, other, Py_LT);
    if (lower == NULL || lower == Py_NotImplemented)
        return lower;
    int is_lower = PyObject_IsTrue(lower);
    Py_DECREF(lower);
    if (is_lower < 0)
        return NULL;
    if (op == Py_GE)
        return PyBool_FromLong(!is_lower);
    if (is_lower)
        return PyBool_FromLong(op == Py_LE);
    return PyObject_RichCompare(self, other, op == Py_LE ? Py_EQ : Py_NE);
}

PyObject *hl_py_object_compare(PyObject *self, PyObject *other, int op, PyTypeObject *type, bool ordered,
                               PyObject *(*key)(PyObject *))
{
    if (op == Py_EQ || (op == Py_LT && ordered))
        return compare_keys(self, other, op, type, key);
    if (op == Py_NE) {
        PyObject *equal = Py_TYPE(self)->tp_richcompare(self, other, Py_EQ);
        if (equal == NULL || equal == Py_NotImplemented)
            return equal;
        int is_equal = PyObject_IsTrue(equal);
        Py_DECREF(equal);
        return is_equal < 0 ? NULL : PyBool_FromLong(!is_equal);
    }
    if (ordered)
        return derive_order(self, other, op);
    Py_RETURN_NOTIMPLEMENTED;
}

/* An object may contain itself. In Python that raises a RecursionError. Here it must not overflow the stack. */
Py_hash_t hl_py_object_hash(PyObject *self, PyObject *(*key)(PyObject *))
{
    Py_hash_t hash = -1;

    if (Py_EnterRecursiveCall(" while hashing"))
        return -1;
    PyObject *value = key(self);
    if (value != NULL) {
        hash = PyObject_Hash(value);
        Py_DECREF(value);
    }
    Py_LeaveRecursiveCall();
    return hash;
}
