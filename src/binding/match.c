/* match.c: does a trace match a filter?
 *
 * hl_py_match_translate translates a filter with plain values for the core, which does nearly all filtering. The _match
 * methods serve all other cases. They call each other through the instance, because subclasses override them.
 *
 * Threading: the GIL.
 */
#include "match.h"

#include "arguments.h"
#include "objects.h"
#include "text.h"

static int truth(PyObject *self, const char *name)
{
    PyObject *value = PyObject_GetAttrString(self, name);
    if (value == NULL)
        return -1;
    int answer = PyObject_IsTrue(value);
    Py_DECREF(value);
    return answer;
}

/* On Linux os.path.normcase only asks a path object for its path. After that, ".pyc" becomes ".py". */
PyObject *hl_py_match_normalize(PyObject *filename)
{
    PyObject *path = PyOS_FSPath(filename);
    if (path == NULL)
        return NULL;
    if (!PyUnicode_Check(path)) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_TypeError, "endswith first arg must be bytes or a tuple of bytes, not str");
        return NULL;
    }
    PyObject *suffix = PyUnicode_FromString(".pyc");
    Py_ssize_t found = suffix != NULL ? PyUnicode_Tailmatch(path, suffix, 0, PY_SSIZE_T_MAX, 1) : -1;
    Py_XDECREF(suffix);
    if (found > 0)
        Py_SETREF(path, PyUnicode_Substring(path, 0, PyUnicode_GET_LENGTH(path) - 1));
    else if (found < 0)
        Py_CLEAR(path);
    return path;
}

/* --- matching one trace --- */

PyObject *hl_py_match_base(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"trace"};
    static const hl_py_signature signature = {"BaseFilter._match", names, 1, 1, 1, 1};
    PyObject *trace;

    (void)self;
    if (hl_py_arguments_parse(&signature, args, kwargs, &trace))
        PyErr_SetNone(PyExc_NotImplementedError);
    return NULL;
}

static int glob_match(PyObject *pattern, PyObject *filename)
{
    PyObject *pattern_owner = NULL, *name_owner = NULL;
    size_t pattern_length, name_length;
    int matched = -1;

    if (!PyUnicode_Check(pattern)) {
        PyErr_Format(PyExc_TypeError, "expected str, not %.100s", Py_TYPE(pattern)->tp_name);
        return -1;
    }
    const char *pattern_bytes = hl_py_text_utf8(pattern, &pattern_length, &pattern_owner);
    const char *name_bytes = pattern_bytes != NULL ? hl_py_text_utf8(filename, &name_length, &name_owner) : NULL;
    if (name_bytes != NULL)
        matched = hl_glob_match(pattern_bytes, pattern_length, name_bytes, name_length);
    Py_XDECREF(name_owner);
    Py_XDECREF(pattern_owner);
    return matched;
}

PyObject *hl_py_match_frame_impl(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filename", "lineno"};
    static const hl_py_signature signature = {"Filter._match_frame_impl", names, 1, 2, 2, 2};
    PyObject *values[2];
    int matched = -1;

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return NULL;
    PyObject *filename = hl_py_match_normalize(values[0]);
    PyObject *pattern = filename != NULL ? PyObject_GetAttrString(self, "_filename_pattern") : NULL;
    if (pattern != NULL)
        matched = glob_match(pattern, filename);
    Py_XDECREF(pattern);
    Py_XDECREF(filename);
    if (matched <= 0)
        return matched == 0 ? Py_NewRef(Py_False) : NULL;
    PyObject *lineno = PyObject_GetAttrString(self, "lineno");
    if (lineno == NULL)
        return NULL;
    PyObject *answer = lineno == Py_None ? Py_NewRef(Py_True) : PyObject_RichCompare(values[1], lineno, Py_EQ);
    Py_DECREF(lineno);
    return answer;
}

/* answer ^ (not self.inclusive). Steals `answer`, which may be NULL. */
static PyObject *turn_exclusive(PyObject *self, PyObject *answer)
{
    int inclusive = answer != NULL ? truth(self, "inclusive") : -1;
    PyObject *turned = NULL;

    if (inclusive >= 0)
        turned = PyNumber_Xor(answer, inclusive ? Py_False : Py_True);
    Py_XDECREF(answer);
    return turned;
}

PyObject *hl_py_match_frame(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filename", "lineno"};
    static const hl_py_signature signature = {"Filter._match_frame", names, 1, 2, 2, 2};
    PyObject *values[2];

    if (!hl_py_arguments_parse(&signature, args, kwargs, values))
        return NULL;
    return turn_exclusive(self, PyObject_CallMethod(self, "_match_frame_impl", "OO", values[0], values[1]));
}

static PyObject *call_with_frame(PyObject *self, const char *method, PyObject *frame)
{
    PyObject *pair[2];

    if (!hl_py_arguments_unpack(frame, 2, pair))
        return NULL;
    PyObject *answer = PyObject_CallMethod(self, method, "OO", pair[0], pair[1]);
    Py_DECREF(pair[0]);
    Py_DECREF(pair[1]);
    return answer;
}

static int any_frame_matches(PyObject *self, PyObject *traceback)
{
    int matched = 0;
    PyObject *frame;
    PyObject *iterator = PyObject_GetIter(traceback);

    if (iterator == NULL)
        return -1;
    while (matched == 0 && (frame = PyIter_Next(iterator)) != NULL) {
        PyObject *answer = call_with_frame(self, "_match_frame_impl", frame);
        matched = answer != NULL ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        Py_DECREF(frame);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : matched;
}

PyObject *hl_py_match_traceback(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"traceback"};
    static const hl_py_signature signature = {"Filter._match_traceback", names, 1, 1, 1, 1};
    PyObject *traceback;

    if (!hl_py_arguments_parse(&signature, args, kwargs, &traceback))
        return NULL;
    int all_frames = truth(self, "all_frames");
    if (all_frames < 0)
        return NULL;
    if (!all_frames) {
        PyObject *newest = hl_py_object_item(traceback, 0);
        if (newest == NULL)
            return NULL;
        PyObject *answer = call_with_frame(self, "_match_frame", newest);
        Py_DECREF(newest);
        return answer;
    }
    int matched = any_frame_matches(self, traceback);
    if (matched < 0)
        return NULL;
    if (matched)
        return PyObject_GetAttrString(self, "inclusive");
    int inclusive = truth(self, "inclusive");
    return inclusive < 0 ? NULL : PyBool_FromLong(!inclusive);
}

/* Adds what a filter with a domain says to the answer about the traceback (stolen). */
static PyObject *match_domain(PyObject *self, PyObject *answer, PyObject *domain, PyObject *wanted)
{
    int inclusive = truth(self, "inclusive");
    int matched = inclusive < 0 ? -1 : PyObject_IsTrue(answer);

    if (matched < 0)
        Py_CLEAR(answer);
    else if (matched == inclusive)
        Py_SETREF(answer, PyObject_RichCompare(domain, wanted, inclusive ? Py_EQ : Py_NE));
    return answer;
}

PyObject *hl_py_match_filter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"trace"};
    static const hl_py_signature signature = {"Filter._match", names, 1, 1, 1, 1};
    PyObject *trace, *parts[4];

    if (!hl_py_arguments_parse(&signature, args, kwargs, &trace) || !hl_py_arguments_unpack(trace, 4, parts))
        return NULL;
    PyObject *answer = PyObject_CallMethod(self, "_match_traceback", "(O)", parts[2]);
    PyObject *wanted = answer != NULL ? PyObject_GetAttrString(self, "domain") : NULL;
    if (wanted == NULL)
        Py_CLEAR(answer);
    else if (wanted != Py_None)
        answer = match_domain(self, answer, parts[0], wanted);
    Py_XDECREF(wanted);
    for (int i = 0; i < 4; i++)
        Py_DECREF(parts[i]);
    return answer;
}

PyObject *hl_py_match_domain_filter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"trace"};
    static const hl_py_signature signature = {"DomainFilter._match", names, 1, 1, 1, 1};
    PyObject *trace, *parts[4];

    if (!hl_py_arguments_parse(&signature, args, kwargs, &trace) || !hl_py_arguments_unpack(trace, 4, parts))
        return NULL;
    PyObject *wanted = PyObject_GetAttrString(self, "domain");
    PyObject *answer = wanted != NULL ? PyObject_RichCompare(parts[0], wanted, Py_EQ) : NULL;
    Py_XDECREF(wanted);
    for (int i = 0; i < 4; i++)
        Py_DECREF(parts[i]);
    return turn_exclusive(self, answer);
}

/* --- translation for the core --- */

/* Is the instance's method `name` our `function`? It is not if the type or the instance has replaced it. */
static bool has_own(PyObject *self, const char *name, PyCFunctionWithKeywords function)
{
    PyObject *match = PyObject_GetAttrString(self, name);
    bool own = match != NULL && PyCFunction_Check(match) && PyCFunction_GET_SELF(match) == self &&
               PyCFunction_GET_FUNCTION(match) == (PyCFunction)(void (*)(void))function;

    if (match == NULL)
        PyErr_Clear();
    Py_XDECREF(match);
    return own;
}

/* Returns 1 for None or an int that fits, 0 for anything else, and -1 with an exception. */
static int plain_number(PyObject *self, const char *name, bool *any, int64_t *number)
{
    PyObject *value = PyObject_GetAttrString(self, name);
    if (value == NULL)
        return -1;
    int plain = 0, overflow = 0;
    *any = value == Py_None;
    if (*any) {
        plain = 1;
    } else if (PyLong_Check(value)) {
        *number = PyLong_AsLongLongAndOverflow(value, &overflow);
        plain = overflow == 0;
    }
    Py_DECREF(value);
    return plain;
}

static int translate_filter(PyObject *self, hl_filter *out, PyObject **owner)
{
    int plain = plain_number(self, "lineno", &out->any_line, &out->line);
    if (plain > 0)
        plain = plain_number(self, "domain", &out->any_domain, &out->domain);
    int all_frames = plain > 0 ? truth(self, "all_frames") : 0;
    if (plain <= 0 || all_frames < 0)
        return all_frames < 0 ? -1 : plain;
    PyObject *pattern = PyObject_GetAttrString(self, "_filename_pattern");
    if (pattern == NULL)
        return -1;
    plain = PyUnicode_Check(pattern);
    if (plain) {
        out->all_frames = all_frames;
        out->pattern = hl_py_text_utf8(pattern, &out->pattern_length, owner);
        if (out->pattern == NULL)
            plain = -1;
    }
    Py_DECREF(pattern);
    return plain;
}

int hl_py_match_translate(hl_py_state *state, PyObject *filter, hl_filter *out, PyObject **owner)
{
    bool by_file = Py_TYPE(filter) == state->filter && has_own(filter, "_match", hl_py_match_filter) &&
                   has_own(filter, "_match_traceback", hl_py_match_traceback) &&
                   has_own(filter, "_match_frame", hl_py_match_frame) &&
                   has_own(filter, "_match_frame_impl", hl_py_match_frame_impl);
    bool by_domain = Py_TYPE(filter) == state->domain_filter && has_own(filter, "_match", hl_py_match_domain_filter);

    if (!by_file && !by_domain)
        return 0;
    memset(out, 0, sizeof(*out));
    int inclusive = truth(filter, "inclusive");
    if (inclusive < 0)
        return -1;
    out->inclusive = inclusive;
    if (by_file)
        return translate_filter(filter, out, owner);
    out->any_file = true;
    int plain = plain_number(filter, "domain", &out->any_domain, &out->domain);
    /* A domain filter compares None like any other value, and no trace has the domain None. */
    return plain > 0 && out->any_domain ? 0 : plain;
}
