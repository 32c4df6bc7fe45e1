/* filters.c: BaseFilter, Filter and DomainFilter.
 *
 * Instances keep their values in their __dict__, like those of the stdlib. Nothing is compiled or cached, so any change
 * takes effect. match.c does the matching.
 *
 * Threading: the GIL.
 */
#include "filters.h"

#include "arguments.h"
#include "match.h"
#include "objects.h"

typedef struct {
    PyObject_HEAD
    PyObject *dict;
    PyObject *weak;
} hl_py_filter;

/* --- attributes --- */

static int base_filter_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"inclusive"};
    static const hl_py_signature signature = {"BaseFilter.__init__", names, 1, 1, 1, 1};
    PyObject *inclusive;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &inclusive))
        return -1;
    return PyObject_SetAttrString(self, "inclusive", inclusive);
}

static int filter_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"inclusive", "filename_pattern", "lineno", "all_frames", "domain"};
    static const hl_py_signature signature = {"Filter.__init__", names, 1, 2, 5, 5};
    PyObject *values[5];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return -1;
    if (PyObject_SetAttrString(self, "inclusive", values[0]) < 0)
        return -1;
    PyObject *pattern = hl_py_match_normalize(values[1]);
    if (pattern == NULL)
        return -1;
    int done = PyObject_SetAttrString(self, "_filename_pattern", pattern);
    Py_DECREF(pattern);
    for (int i = 2; done == 0 && i < 5; i++) {
        PyObject *missing = i == 3 ? Py_False : Py_None;
        done = PyObject_SetAttrString(self, names[i], values[i] != NULL ? values[i] : missing);
    }
    return done;
}

static int domain_filter_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"inclusive", "domain"};
    static const hl_py_signature signature = {"DomainFilter.__init__", names, 1, 2, 2, 2};
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return -1;
    if (PyObject_SetAttrString(self, "inclusive", values[0]) < 0)
        return -1;
    return PyObject_SetAttrString(self, "_domain", values[1]);
}

static PyObject *get_pattern(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString(self, "_filename_pattern");
}

static PyObject *get_domain(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString(self, "_domain");
}

/* --- the types --- */

static int filter_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((hl_py_filter *)self)->dict);
    return 0;
}

static int filter_clear(PyObject *self)
{
    Py_CLEAR(((hl_py_filter *)self)->dict);
    return 0;
}

static void filter_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, filter_dealloc)
    if (((hl_py_filter *)self)->weak != NULL)
        PyObject_ClearWeakRefs(self);
    filter_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

#define METHOD(name, function) {name, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, NULL}

PyTypeObject *hl_py_base_filter_type_new(PyObject *module)
{
    static PyMemberDef members[] = {
        HL_PY_DICT_MEMBERS(hl_py_filter),
        {NULL, 0, 0, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        METHOD("_match", hl_py_match_base),
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"BaseFilter(inclusive)\n--\n\nBase of all filters."},
        {Py_tp_init, base_filter_init},
        {Py_tp_members, members},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, filter_traverse},
        {Py_tp_clear, filter_clear},
        {Py_tp_dealloc, filter_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.BaseFilter",
        .basicsize = sizeof(hl_py_filter),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, NULL, NULL);
}

PyTypeObject *hl_py_filter_type_new(PyObject *module, PyTypeObject *base)
{
    static PyGetSetDef getset[] = {
        HL_PY_READ_ONLY("filename_pattern", get_pattern, "Shell-style pattern of the file name."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        METHOD("_match_frame_impl", hl_py_match_frame_impl),
        METHOD("_match_frame", hl_py_match_frame),
        METHOD("_match_traceback", hl_py_match_traceback),
        METHOD("_match", hl_py_match_filter),
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"Filter(inclusive, filename_pattern, lineno=None, all_frames=False, domain=None)\n--\n\n"
                            "Traces whose newest frame (or any, with all_frames) is at the given file and line."},
        {Py_tp_init, filter_init},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, filter_traverse},
        {Py_tp_clear, filter_clear},
        {Py_tp_dealloc, filter_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.Filter",
        .basicsize = sizeof(hl_py_filter),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, base, NULL);
}

PyTypeObject *hl_py_domain_filter_type_new(PyObject *module, PyTypeObject *base)
{
    static PyGetSetDef getset[] = {
        HL_PY_READ_ONLY("domain", get_domain, "Address space of the blocks."),
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef methods[] = {
        METHOD("_match", hl_py_match_domain_filter),
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)"DomainFilter(inclusive, domain)\n--\n\nTraces of one address space."},
        {Py_tp_init, domain_filter_init},
        {Py_tp_getset, getset},
        {Py_tp_methods, methods},
        {Py_tp_traverse, filter_traverse},
        {Py_tp_clear, filter_clear},
        {Py_tp_dealloc, filter_dealloc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "heapledger.DomainFilter",
        .basicsize = sizeof(hl_py_filter),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return hl_py_type_new(module, &spec, base, NULL);
}
