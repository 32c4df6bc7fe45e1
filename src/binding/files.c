/* files.c: converts between Python objects and files of snapshots. Serves python/heapledger/_files.py, which checks the
 * arguments.
 *
 * Threading: the GIL, released while the core writes or reads a file.
 */
#include "files.h"

#include "../core/hlsnap.h"
#include "../core/hlsnap_bytes.h"
#include "convert.h"
#include "snapshot_object.h"
#include "traces.h"
#include "view.h"

/* Returns traces in the form that _file_write takes, which is native, with their frame limit and the payload of TOTL or
 * None. If the given traces are not native, the frame limit is the given one. */
PyObject *hl_py_files_prepare(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *traces, *totals = NULL;
    unsigned int limit;

    if (!PyArg_ParseTuple(args, "OI", &traces, &limit))
        return NULL;
    HL_PY_OWN_WORK;
    hl_py_view *view = hl_py_traces_view(state, traces);
    if (view == NULL) {
        PyObject *list = hl_py_traces_list(state, traces);
        view = list != NULL ? hl_py_convert_for_file(state, list, &totals) : NULL;
        if (view != NULL)
            view->snapshot->nframe = limit;
        Py_XDECREF(list);
    }
    if (view == NULL)
        return NULL;
    limit = view->snapshot->nframe;
    PyObject *native = hl_py_traces_new(state, view);
    Py_DECREF(view);
    return Py_BuildValue("(NIN)", native, limit, totals != NULL ? totals : Py_NewRef(Py_None));
}

static bool read_sections(PyObject *list, hl_hlsnap_section *sections, size_t *count)
{
    if (!PyTuple_Check(list) || PyTuple_GET_SIZE(list) > HL_HLSNAP_MOST_SECTIONS) {
        PyErr_SetString(PyExc_TypeError, "sections must be a short tuple");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        const char *kind, *bytes;
        Py_ssize_t kind_length, length;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "y#y#", &kind, &kind_length, &bytes, &length))
            return false;
        if (kind_length != sizeof(sections[i].kind)) {
            PyErr_SetString(PyExc_ValueError, "a section's kind has four letters");
            return false;
        }
        memcpy(sections[i].kind, kind, sizeof(sections[i].kind));
        sections[i].bytes = (const uint8_t *)bytes;
        sections[i].length = (size_t)length;
    }
    *count = (size_t)PyTuple_GET_SIZE(list);
    return true;
}

static void drop_sources(hl_py_view **views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        Py_DECREF(views[i]);
}

/* Finds the views behind the traces of one or several moments. Returns their number, or 0 with an exception. */
static size_t read_moments(hl_py_state *state, PyObject *moments, hl_py_view **views)
{
    Py_ssize_t count = PyTuple_GET_SIZE(moments);

    if (count < 1 || count > HL_MOMENTS) {
        PyErr_SetString(PyExc_ValueError, "a file has one snapshot of each moment at most");
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        views[i] = hl_py_traces_view(state, PyTuple_GET_ITEM(moments, i));
        if (views[i] == NULL || views[i]->snapshot->names != views[0]->snapshot->names) {
            drop_sources(views, (size_t)i + (views[i] != NULL));
            PyErr_SetString(PyExc_TypeError, "traces must come from _file_prepare, and share their names");
            return 0;
        }
    }
    return (size_t)count;
}

PyObject *hl_py_files_write(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    hl_hlsnap_section sections[HL_HLSNAP_MOST_SECTIONS];
    size_t section_count;
    hl_hlsnap_file file;
    hl_status status;
    hl_py_view *views[HL_MOMENTS];
    const hl_snapshot *snapshots[HL_MOMENTS];
    PyObject *moments, *list;

    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &moments, &list) ||
        !read_sections(list, sections, &section_count))
        return NULL;
    HL_PY_OWN_WORK;
    size_t count = read_moments(state, moments, views);
    if (count == 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        snapshots[i] = views[i]->snapshot;
    Py_BEGIN_ALLOW_THREADS
    status = hl_hlsnap_write(snapshots, count, sections, section_count, &file);
    Py_END_ALLOW_THREADS
    drop_sources(views, count);
    if (status != HL_OK)
        return hl_py_raise_status(status);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)file.bytes, (Py_ssize_t)file.length);
    hl_os_free(file.bytes);
    return bytes;
}

static void raise_malformed(hl_py_state *state, const char *what, size_t where)
{
    PyObject *arguments = Py_BuildValue("(sn)", what, (Py_ssize_t)where);

    if (arguments != NULL)
        PyErr_SetObject(state->malformed, arguments);
    Py_XDECREF(arguments);
}

static PyObject *raise_unreadable(hl_py_state *state, const hl_hlsnap_error *error)
{
    char what[200];

    if (error->major == HL_HLSNAP_MAJOR || error->major + error->minor == 0)
        PyOS_snprintf(what, sizeof(what), "%s", error->what);
    else
        PyOS_snprintf(what, sizeof(what), "%s: %u.%u", error->what, error->major, error->minor);
    raise_malformed(state, what, error->where);
    return NULL;
}

/* Steals the reference to the snapshot. */
static PyObject *wrap_snapshot(hl_py_state *state, hl_snapshot *snapshot)
{
    uint32_t limit = snapshot->nframe;
    hl_moment moment = snapshot->moment;
    hl_py_view *view = hl_py_view_new(state, snapshot);
    PyObject *traces = view != NULL ? hl_py_traces_new(state, view) : NULL;

    Py_XDECREF(view);
    return traces != NULL ? Py_BuildValue("(NIi)", traces, limit, moment) : NULL;
}

/* [(traces, limit, moment)] */
static PyObject *wrap_snapshots(hl_py_state *state, const hl_hlsnap_content *content)
{
    PyObject *list = PyList_New((Py_ssize_t)content->snapshot_count);

    for (size_t i = 0; i < content->snapshot_count; i++) {
        PyObject *wrapped = list != NULL ? wrap_snapshot(state, content->snapshots[i]) : NULL;
        if (list == NULL)
            hl_snapshot_drop(content->snapshots[i]);
        else if (wrapped == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, wrapped);
    }
    return list;
}

static PyObject *wrap_sections(const hl_hlsnap_content *content, const uint8_t *start)
{
    PyObject *list = PyList_New((Py_ssize_t)content->section_count);

    for (size_t i = 0; list != NULL && i < content->section_count; i++) {
        const hl_hlsnap_section *section = &content->sections[i];
        PyObject *triple = Py_BuildValue("(y#ny#)", section->kind, (Py_ssize_t)sizeof(section->kind),
                                         (Py_ssize_t)(section->bytes - start), (const char *)section->bytes,
                                         (Py_ssize_t)section->length);
        if (triple == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, triple);
    }
    return list;
}

PyObject *hl_py_files_read(PyObject *module, PyObject *data)
{
    hl_py_state *state = hl_py_state_of_module(module);
    hl_hlsnap_content content;
    hl_hlsnap_error error;
    hl_status status;

    if (!PyBytes_CheckExact(data)) {
        PyErr_SetString(PyExc_TypeError, "data must be bytes");
        return NULL;
    }
    HL_PY_OWN_WORK;
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(data);
    size_t length = (size_t)PyBytes_GET_SIZE(data);
    Py_BEGIN_ALLOW_THREADS
    status = hl_hlsnap_read(bytes, length, &content, &error);
    Py_END_ALLOW_THREADS
    if (status != HL_OK)
        return status == HL_MALFORMED ? raise_unreadable(state, &error) : hl_py_raise_status(status);
    PyObject *snapshots = wrap_snapshots(state, &content);
    PyObject *sections = snapshots != NULL ? wrap_sections(&content, bytes) : NULL;
    if (sections == NULL) {
        Py_XDECREF(snapshots);
        return NULL;
    }
    return Py_BuildValue("(NNN)", snapshots, sections, PyBool_FromLong(!content.newer));
}

static const char *const state_names[] = {
    [HL_HLSNAP_SOUND] = "sound",
    [HL_HLSNAP_DAMAGED] = "damaged",
    [HL_HLSNAP_CUT_OFF] = "cut off",
};

PyObject *hl_py_files_header(PyObject *module, PyObject *args)
{
    const char *bytes;
    Py_ssize_t left;
    size_t magic = sizeof(HL_HLSNAP_MAGIC) - 1, length;
    hl_hlsnap_crc crc;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &bytes, &left))
        return NULL;
    if ((size_t)left < magic || memcmp(bytes, HL_HLSNAP_MAGIC, magic) != 0)
        Py_RETURN_NONE;
    hl_hlsnap_crc_open(&crc);
    hl_hlsnap_state state = hl_hlsnap_look_at_header(&crc, (const uint8_t *)bytes, (size_t)left, &length);
    const uint8_t *version = (const uint8_t *)bytes + magic;
    if (state == HL_HLSNAP_CUT_OFF)
        return Py_BuildValue("(nsO)", (Py_ssize_t)length, state_names[state], Py_None);
    return Py_BuildValue("(ns(II))", (Py_ssize_t)length, state_names[state], (unsigned)hl_hlsnap_get_fixed(version, 2),
                         (unsigned)hl_hlsnap_get_fixed(version + 2, 2));
}

/* Four characters: letters, or spaces for some of them. */
static bool is_kind(const char *kind)
{
    bool has_letter = false;

    for (int i = 0; i < 4; i++) {
        bool is_letter = Py_ISALPHA((unsigned char)kind[i]);
        if (!is_letter && kind[i] != ' ')
            return false;
        has_letter = has_letter || is_letter;
    }
    return has_letter;
}

PyObject *hl_py_files_section(PyObject *module, PyObject *args)
{
    const char *bytes;
    Py_ssize_t all, offset;
    size_t length;
    hl_hlsnap_crc crc;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#n", &bytes, &all, &offset))
        return NULL;
    if (offset < 0 || offset > all - HL_HLSNAP_SECTION_HEAD - HL_HLSNAP_CHECKSUM || !is_kind(bytes + offset))
        Py_RETURN_NONE;
    hl_hlsnap_crc_open(&crc);
    hl_hlsnap_state state =
        hl_hlsnap_look_at_section(&crc, (const uint8_t *)bytes + offset, (size_t)(all - offset), &length);
    return Py_BuildValue("(y#ns)", bytes + offset, (Py_ssize_t)4, (Py_ssize_t)length, state_names[state]);
}

/* Returns the next total of TOTL as an object. Returns NULL with an exception, or without one if the payload is
 * malformed. */
static PyObject *next_total(const uint8_t **at, const uint8_t *end)
{
    uint64_t code = 0;

    for (unsigned shift = 0; shift < 35 && *at < end; shift += 7) {
        uint8_t digit = *(*at)++;
        code |= (uint64_t)(digit & 127) << shift;
        if (digit < 128 && ((digit == 0 && shift > 0) || code > (uint64_t)UINT32_MAX + 1))
            break;
        if (digit < 128)
            return code == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(code - 1);
    }
    return NULL;
}

static PyObject *with_total(hl_py_state *state, PyObject *row, const uint8_t **at, const uint8_t *end)
{
    PyObject *total = next_total(at, end);

    if (total == NULL && !PyErr_Occurred())
        raise_malformed(state, "a total is not written as it should be", 0);
    if (total == NULL)
        return NULL;
    return Py_BuildValue("(OOON)", PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1), PyTuple_GET_ITEM(row, 2), total);
}

static PyObject *list_with_totals(hl_py_state *state, hl_py_view *view, const uint8_t *at, const uint8_t *end,
                                  bool whole)
{
    const hl_snapshot *snapshot = view->snapshot;
    PyObject *list = PyList_New((Py_ssize_t)snapshot->blocks);
    Py_ssize_t next = 0;

    for (size_t i = 0; list != NULL && i < snapshot->row_count; i++) {
        PyObject *row = snapshot->rows[i].live > 0 ? hl_py_view_row(view, i) : Py_NewRef(Py_None);
        for (uint64_t block = 0; row != NULL && list != NULL && block < snapshot->rows[i].live; block++) {
            PyObject *trace = with_total(state, row, &at, end);
            if (trace == NULL)
                Py_CLEAR(list);
            else
                PyList_SET_ITEM(list, next++, trace);
        }
        if (row == NULL)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    if (list != NULL && whole && at != end) {
        raise_malformed(state, "there are more totals than traces", 0);
        Py_CLEAR(list);
    }
    return list;
}

PyObject *hl_py_files_totals(PyObject *module, PyObject *args)
{
    hl_py_state *state = hl_py_state_of_module(module);
    PyObject *traces;
    const char *bytes;
    Py_ssize_t length;
    int whole;

    if (!PyArg_ParseTuple(args, "Oy#p", &traces, &bytes, &length, &whole))
        return NULL;
    HL_PY_OWN_WORK;
    hl_py_view *view = hl_py_traces_view(state, traces);
    if (view == NULL) {
        PyErr_SetString(PyExc_TypeError, "traces must come from _file_read");
        return NULL;
    }
    PyObject *list = NULL;
    if (view->snapshot->blocks > (uint64_t)length) /* each total takes at least one byte */
        raise_malformed(state, "there are fewer totals than traces", 0);
    else
        list = list_with_totals(state, view, (const uint8_t *)bytes, (const uint8_t *)bytes + length, whole);
    Py_DECREF(view);
    return list;
}

PyObject *hl_py_files_snapshot(PyObject *module, PyObject *args)
{
    PyObject *traces, *limit, *raw_metadata;

    if (!PyArg_ParseTuple(args, "OOO", &traces, &limit, &raw_metadata))
        return NULL;
    HL_PY_OWN_WORK;
    PyObject *snapshot = hl_py_snapshot_new(hl_py_state_of_module(module), Py_NewRef(traces), Py_NewRef(limit));
    return hl_py_snapshot_with_raw_metadata(snapshot, Py_NewRef(raw_metadata));
}

PyObject *hl_py_files_raw_metadata(PyObject *module, PyObject *snapshot)
{
    if (!PyObject_TypeCheck(snapshot, hl_py_state_of_module(module)->snapshot)) {
        PyErr_SetString(PyExc_TypeError, "not a Snapshot");
        return NULL;
    }
    return hl_py_snapshot_raw_metadata(snapshot);
}
