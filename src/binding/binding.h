/* binding.h: the folder that creates Python objects: the module's state and the contracts between its files.
 *
 * Two kinds of everything: objects made by a caller hold what they were given, like the stdlib's; objects made here
 * hold numbers and ids and a reference to a source, and build tuples and strings only when somebody looks. An object
 * that has been looked at or written to behaves the same either way.
 *
 * Invariants:
 *   - only documented Python API; no object or type outside the module's state, so that interpreters share nothing;
 *   - a function that returns PyObject * returns a new reference, or NULL with an exception set;
 *   - creating an object may run the collector, and with it any code: an object's source is held while it is used;
 *   - whatever a public function allocates for its result is bracketed by HL_OWN_WORK and stays out of the ledger.
 *
 * Threading: the interpreter's GIL, which is released around the core's analyses only.
 */
#ifndef HL_BINDING_H
#define HL_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "../core/filter.h"
#include "../core/group.h"
#include "../cpython/tracer.h"

typedef struct {
    PyTypeObject *source;
    PyTypeObject *own_work;
    PyTypeObject *frame;
    PyTypeObject *traceback;
    PyTypeObject *trace;
    PyTypeObject *traces;
    PyTypeObject *statistic;
    PyTypeObject *difference;
    PyTypeObject *base_filter;
    PyTypeObject *filter;
    PyTypeObject *domain_filter;
    PyTypeObject *snapshot;
    PyTypeObject *window;
    PyObject *malformed;     /* the exception for bytes that are not what they should be: (reason, offset) */
    PyObject *stdlib_memory; /* the stdlib's get_tracemalloc_memory, which a swap may hide; NULL: not there */
} hl_state;

/* --- module.c --- */

/* The state of the module that made `type` or one of its bases; never NULL for a type of ours. */
hl_state *hl_state_of(PyTypeObject *type);
hl_state *hl_state_of_module(PyObject *module);
/* Set the exception that stands for `status`; returns NULL. */
PyObject *hl_raise_status(hl_status status);
/* Make a type and give it `slots` (names, NULL-terminated, or NULL) as its __slots__. */
PyTypeObject *hl_type_new(PyObject *module, PyType_Spec *spec, PyTypeObject *base, const char *const *slots);

static inline void hl_own_work_end(const hl_own_work *work)
{
    hl_tracer_end_own_work(work);
}

/* From here to the end of the enclosing block, on every way out, the current frame's allocations are our own work. */
#define HL_OWN_WORK                                                 \
    __attribute__((cleanup(hl_own_work_end))) hl_own_work own_work; \
    hl_tracer_begin_own_work(&own_work)

/* --- arguments.c --- */

/* The parameters of a function that is written in Python in the stdlib, so that its errors read the same. */
typedef struct {
    const char *function;     /* qualified name */
    const char *const *names; /* of the parameters but self */
    int self;                 /* 1 for a method, which counts itself */
    int required;
    int positional; /* how many may be given by position */
    int count;      /* the rest is keyword-only and optional */
} hl_signature;

/* Fill values[0..count) with borrowed references, NULL where not given. */
bool hl_arguments_parse(const hl_signature *signature, PyObject *args, PyObject *kwargs, PyObject **values);
/* Unpack exactly `count` values as an assignment does, into new references. */
bool hl_arguments_unpack(PyObject *object, int count, PyObject **values);

/* --- text.c --- */

/* `format` % args; steals the reference to `args`, which may be NULL with an exception set. */
PyObject *hl_text_format(const char *format, PyObject *args);
PyObject *hl_text_size(PyObject *size, bool sign);
/* The UTF-8 bytes of `text`, lone surrogates included. *owner keeps them alive. */
const char *hl_text_utf8(PyObject *text, size_t *length, PyObject **owner);
PyObject *hl_text_decode(const char *bytes, size_t length);

/* --- objects.c: what several types share --- */

PyObject *hl_object_reduce(PyObject *self, PyObject *unused);
PyObject *hl_object_getstate(PyObject *self, PyObject *unused);
PyObject *hl_object_missing(PyObject *self, const char *name);
/* Setters of attributes that are properties without a setter in the stdlib: the closure is the attribute's name. */
int hl_object_refuse(PyObject *self, PyObject *value, void *name);
#define HL_READ_ONLY(name, getter, doc) {name, getter, hl_object_refuse, PyDoc_STR(doc), (void *)name}
/* object[index], quick for tuples. */
PyObject *hl_object_item(PyObject *object, Py_ssize_t index);
/* Compare by what `key` returns (a new reference), like a class with __eq__ (and total_ordering, if `ordered`). */
PyObject *hl_object_compare(PyObject *self, PyObject *other, int op, PyTypeObject *type, bool ordered,
                            PyObject *(*key)(PyObject *));
Py_hash_t hl_object_hash(PyObject *self, PyObject *(*key)(PyObject *));

/* --- sequence.c: collections.abc.Sequence's mixin methods, for Traceback and _Traces --- */

PyObject *hl_sequence_reversed(PyObject *self, PyObject *unused);
PyObject *hl_sequence_index(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_sequence_count(PyObject *self, PyObject *args, PyObject *kwargs);
/* tuple(make(item) for item in items) */
PyObject *hl_sequence_wrap(hl_state *state, PyObject *items, PyObject *(*make)(hl_state *, PyObject *));
#define HL_SEQUENCE_METHODS                                                                     \
    {"__reversed__", hl_sequence_reversed, METH_NOARGS, NULL},                                  \
        {"index", (PyCFunction)(void (*)(void))hl_sequence_index, METH_VARARGS | METH_KEYWORDS, \
         PyDoc_STR("index(value, start=0, stop=None): first index of value, or ValueError.")},  \
    {                                                                                           \
        "count", (PyCFunction)(void (*)(void))hl_sequence_count, METH_VARARGS | METH_KEYWORDS,  \
            PyDoc_STR("count(value): number of occurrences of value.")                          \
    }

/* --- source.c --- */

/* From ids to objects, each made at most once. */
typedef struct {
    uint32_t *keys; /* 0: empty */
    PyObject **values;
    uint32_t room; /* a power of two */
    uint32_t used;
    uint64_t seed; /* of the hashes: which ids are looked at may be a file's choice */
} hl_objects;

/* One core snapshot and the Python objects made from it so far. Not visible to Python. */
typedef struct {
    PyObject_HEAD
    hl_snapshot *snapshot;
    hl_objects strings; /* string id -> str */
    hl_objects lines;   /* line id -> (file, line) */
    hl_objects stacks;  /* stack id -> tuple of those, newest first */
    PyObject **rows;    /* row -> (domain, size, frames, total); NULL until the first is asked for */
    uint64_t *starts;   /* row -> index of its first block; NULL until needed */
} hl_source;

static inline hl_source *hl_source_hold(hl_source *source)
{
    return (hl_source *)Py_NewRef((PyObject *)source);
}

/* Takes over the caller's hold on `snapshot`, also when it fails. */
hl_source *hl_source_new(hl_state *state, hl_snapshot *snapshot);
bool hl_source_seed_string(hl_source *source, hl_string_id id, PyObject *text);
PyObject *hl_source_string(hl_source *source, hl_string_id id);
PyObject *hl_source_line(hl_source *source, hl_location_id id);
/* Newest first. */
PyObject *hl_source_frames(hl_source *source, hl_stack_id id);
/* An int, or None when the depth is not known. */
PyObject *hl_source_total(hl_source *source, hl_stack_id id);
PyObject *hl_source_row(hl_source *source, size_t row);
/* Find the row of the block with this index in the order of rows; false with an exception when there is no memory. */
bool hl_source_row_of_block(hl_source *source, uint64_t block, size_t *row);
/* One tuple per live block. */
PyObject *hl_source_list(hl_source *source);
PyTypeObject *hl_source_type_new(PyObject *module);

/* --- memo.c --- */

typedef struct {
    PyObject *object; /* held; NULL: empty */
    uint32_t number;
} hl_memo_entry;

typedef struct {
    hl_memo_entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t used;
} hl_memo;

/* The entry of this very object, or an empty one for it; NULL with an exception when there is no memory. */
hl_memo_entry *hl_memo_find(hl_memo *memo, const PyObject *object);
/* Fill an empty entry that was found for the object, and after which no other was looked for. */
void hl_memo_enter(hl_memo *memo, hl_memo_entry *entry, PyObject *object, uint32_t number);
void hl_memo_free(hl_memo *memo);

/* --- convert.c --- */

/* What a conversion needs beyond sizes and frames. */
enum {
    HL_NEED_DOMAINS = 1, /* else rows have domain 0 */
    HL_NEED_FRAMES = 2,  /* an empty traceback is an IndexError */
    HL_NEED_TOTALS = 4,  /* else the stacks' totals are not known */
};
/* A source with one row per trace of a sequence of plain tuples; a row's `allocated` is the trace's index. */
hl_source *hl_convert_traces(hl_state *state, PyObject *traces, int needs);
/* The core snapshot behind one of ours; without `any_kind` NULL without an exception where it had to be made first. */
hl_source *hl_convert_snapshot(hl_state *state, PyObject *snapshot, bool any_kind);
/* hl_convert_traces for a file: the order of the traces is kept, those that are alike and follow each other share a row, and a
 * trace may lack its total. In a book a stack has one total: where that cannot say what the traces say, *totals is
 * what the section TOTL has to say, as bytes, and no trace shares its row; else NULL. Errors say which trace is to
 * blame. */
hl_source *hl_convert_for_file(hl_state *state, PyObject *traces, PyObject **totals);

/* --- the types; each file has the struct, the constructor and the methods --- */

PyTypeObject *hl_frame_type_new(PyObject *module);
/* Frame(frame), with the function's name or NULL. */
PyObject *hl_frame_new(hl_state *state, PyObject *frame, PyObject *name);

PyTypeObject *hl_traceback_type_new(PyObject *module);
/* The traceback of a group (hl_group.key) or, by HL_BY_STACK, of a trace; steals `total` (NULL: None). */
PyObject *hl_traceback_new(hl_state *state, hl_source *source, hl_key_type kind, uint32_t key, PyObject *total);

/* --- traceback_format.c --- */
PyObject *hl_traceback_format(PyObject *self, PyObject *args, PyObject *kwargs);

PyTypeObject *hl_trace_type_new(PyObject *module);
PyObject *hl_trace_new(hl_state *state, hl_source *source, size_t row);
PyObject *hl_trace_wrap(hl_state *state, PyObject *trace);
/* The source and row of a trace that has not been written to; false for others. */
bool hl_trace_is_row(PyObject *trace, hl_state *state, const hl_source *source, size_t *row);

PyTypeObject *hl_traces_type_new(PyObject *module);
PyObject *hl_traces_new(hl_state *state, hl_source *source);
/* The source of native traces that nobody has changed (a new reference); NULL without an exception for others. */
hl_source *hl_traces_source(hl_state *state, PyObject *traces);
/* traces._traces, without keeping what it builds. */
PyObject *hl_traces_list(hl_state *state, PyObject *traces);

PyTypeObject *hl_statistic_type_new(PyObject *module);
PyTypeObject *hl_difference_type_new(PyObject *module);
PyObject *hl_statistic_new(hl_state *state, hl_source *source, hl_key_type kind, const hl_group *group);
PyObject *hl_difference_new(hl_state *state, hl_source *source, hl_key_type kind, const hl_difference *difference);

PyTypeObject *hl_base_filter_type_new(PyObject *module);
PyTypeObject *hl_filter_type_new(PyObject *module, PyTypeObject *base);
PyTypeObject *hl_domain_filter_type_new(PyObject *module, PyTypeObject *base);

/* --- match.c: the filters' methods --- */

PyObject *hl_match_base(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_match_frame_impl(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_match_frame(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_match_traceback(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_match_filter(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *hl_match_domain_filter(PyObject *self, PyObject *args, PyObject *kwargs);
/* A file name or pattern as filters compare it. */
PyObject *hl_match_normalize(PyObject *filename);
/* Translate a filter of ours with plain values; 1 done, 0 it must be asked through its _match, -1 exception.
 * *owner keeps the pattern alive. */
int hl_match_translate(hl_state *state, PyObject *filter, hl_filter *translated, PyObject **owner);

PyTypeObject *hl_snapshot_type_new(PyObject *module);
/* Snapshot with `traces` (stolen, may be NULL with an exception) as they are, and a limit (stolen too). */
PyObject *hl_snapshot_object_new(hl_state *state, PyObject *traces, PyObject *limit);
/* Give `snapshot` (stolen, may be NULL with an exception) its facts (stolen too): see facts.c. */
PyObject *hl_snapshot_object_with_facts(PyObject *snapshot, PyObject *facts);
/* A new reference; None when it has none. */
PyObject *hl_snapshot_object_facts(PyObject *snapshot);
/* What `name` groups by, 'traceback', 'filename' or 'lineno'. False with an exception: by none of these. */
bool hl_read_key_type(PyObject *name, hl_key_type *type);

/* --- facts.c --- */

/* What is known of snapshots that were taken just now, at one instant: for each an object that python/heapledger/_metadata.py
 * reads. False with an exception. */
bool hl_facts_take(hl_snapshot *const *snapshots, size_t count, PyObject **facts);
PyObject *hl_facts_process(PyObject *module, PyObject *unused);

/* --- window.c --- */

PyTypeObject *hl_window_type_new(PyObject *module);

/* --- files.c --- */

PyObject *hl_files_prepare(PyObject *module, PyObject *args);
PyObject *hl_files_write(PyObject *module, PyObject *args);
PyObject *hl_files_read(PyObject *module, PyObject *data);
PyObject *hl_files_totals(PyObject *module, PyObject *args);
PyObject *hl_files_snapshot(PyObject *module, PyObject *args);
PyObject *hl_files_facts(PyObject *module, PyObject *snapshot);

/* --- merge.c: Snapshot.merge, a class method, and the same for captures --- */

PyObject *hl_snapshot_merge(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *hl_merge_captures(PyObject *module, PyObject *captures);

/* --- greatest.c --- */

PyObject *hl_greatest(PyObject *module, PyObject *args);

/* --- tree.c --- */

PyObject *hl_call_tree(PyObject *module, PyObject *args);

/* --- sums.c --- */

PyObject *hl_sum_by(PyObject *module, PyObject *args);
PyObject *hl_split(PyObject *module, PyObject *args);

/* --- selection.c --- */

/* Snapshot.filter_traces, given the traces attribute: the new traces object, or a list for the caller to wrap. */
PyObject *hl_selection_filter(hl_state *state, PyObject *traces, PyObject *filters);

/* --- unpickle.c --- */

PyObject *hl_unpickle_run(PyObject *module, PyObject *args);
PyObject *hl_unpickle_check(PyObject *module, PyObject *traces);

/* --- take.c --- */

PyObject *hl_take_traces(PyObject *module, PyObject *unused);
PyObject *hl_take_snapshot(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *hl_take_peak_snapshot(PyObject *module, PyObject *unused);
PyObject *hl_take_allocation_snapshot(PyObject *module, PyObject *unused);
PyObject *hl_take_capture(PyObject *module, PyObject *unused);
/* Snapshots that were taken just now, as objects; takes over the holds on them, also when it fails. */
bool hl_take_objects(hl_state *state, hl_snapshot *const *snapshots, size_t count, PyObject **objects);
/* A Capture of the three snapshots given, each of which may be None. */
PyObject *hl_make_capture(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* --- functions.c --- */

extern PyMethodDef hl_functions[];
/* A frame limit from the object a caller gave for it. */
bool hl_functions_nframe(PyObject *object, uint32_t *nframe);

/* --- c_api.c --- */

/* Add what the header for extensions looks for, and be ready for what extensions ask the interpreter. */
bool hl_c_api_add(PyObject *module);

/* Members that give instances a __dict__ and weak references. */
#define HL_DICT_MEMBERS(type)                                                  \
    {"__dictoffset__", T_PYSSIZET, offsetof(type, dict), READONLY, NULL},      \
    {                                                                          \
        "__weaklistoffset__", T_PYSSIZET, offsetof(type, weak), READONLY, NULL \
    }

#endif
