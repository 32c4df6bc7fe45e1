/* resolve.c: see resolve.h.
 *
 * Names are copied out of the code object once, line numbers decoded once per instruction; nothing is referenced and no
 * Python function is called, so this is safe inside an allocator, with or without the GIL.
 */

#include "resolve.h"

#include "../core/linetable.h"
#include "frames.h"

enum { MOST_TOTAL = UINT16_MAX };

/* Room for a name's UTF-8, reused under the ledger's lock. */
static hl_region text;

static size_t put_utf8(char *out, Py_UCS4 c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) { /* lone surrogates included */
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static hl_status intern_str(hl_book *book, PyObject *str, hl_string_id *id)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(str);
    const void *data = PyUnicode_DATA(str);
    if (PyUnicode_IS_ASCII(str))
        return hl_book_string(book, data, (size_t)length, id);
    hl_status status = hl_region_ensure(&text, (size_t)length * 4);
    if (status != HL_OK)
        return status;
    size_t bytes = 0;
    for (Py_ssize_t i = 0; i < length; i++)
        bytes += put_utf8(text.base + bytes, PyUnicode_READ(PyUnicode_KIND(str), data, i));
    return hl_book_string(book, text.base, bytes, id);
}

static hl_status know_code(hl_ledger *ledger, PyCodeObject *code, hl_code_id *id)
{
    *id = hl_codes_find(&ledger->codes, (uintptr_t)code);
    if (*id != 0)
        return HL_OK;
    hl_string_id file, name;
    hl_status status = hl_ledger_watch_code(ledger, (uintptr_t)code);
    if (status != HL_OK)
        return status;
    status = intern_str(ledger->book, code->co_filename, &file);
    if (status != HL_OK)
        return status;
    status = intern_str(ledger->book, code->co_qualname, &name);
    if (status != HL_OK) {
        hl_book_release_string(ledger->book, file);
        return status;
    }
    return hl_codes_add(&ledger->codes, ledger->book, (uintptr_t)code, file, name, id);
}

static hl_status locate(hl_ledger *ledger, const void *frame, hl_location_id *location)
{
    uintptr_t instruction = hl_frames_instruction(frame);
    *location = hl_codes_location(&ledger->codes, instruction);
    if (*location != 0)
        return HL_OK;
    PyCodeObject *code = hl_frames_code(frame);
    hl_code_id id;
    hl_status status = know_code(ledger, code, &id);
    if (status != HL_OK)
        return status;
    const uint8_t *table = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    size_t length = (size_t)PyBytes_GET_SIZE(code->co_linetable);
    size_t offset = instruction - hl_frames_first_instruction(code);
    uint32_t line = hl_linetable_line(table, length, code->co_firstlineno, offset);
    return hl_codes_learn(&ledger->codes, ledger->book, id, instruction, line, location);
}

static hl_site_id resolve_unknown(hl_ledger *ledger, uint64_t size, uint32_t domain)
{
    static const char unknown[] = "<unknown>";
    hl_string_id file;
    hl_location_id location;
    if (hl_book_string(ledger->book, unknown, sizeof unknown - 1, &file) != HL_OK)
        return 0;
    hl_status status = hl_book_location(ledger->book, file, 0, 0, &location);
    hl_book_release_string(ledger->book, file);
    if (status != HL_OK)
        return 0;
    hl_stack_id stack;
    status = hl_book_stack(ledger->book, &location, 1, 1, &stack);
    hl_book_release_location(ledger->book, location);
    return status == HL_OK ? hl_ledger_site(ledger, stack, size, domain) : 0;
}

/* Frames from `oldest` downwards that the window does not have; as in the stdlib, the total saturates. */
static uint32_t total_from(const void *oldest, uint32_t depth)
{
    uint32_t total = depth;
    for (const void *frame = hl_frames_caller(oldest); frame != NULL && total < MOST_TOTAL;
         frame = hl_frames_caller(frame))
        total++;
    return total;
}

hl_site_id hl_resolve_site(hl_ledger *ledger, hl_shadow *shadow, uint64_t size, uint32_t domain)
{
    uint32_t depth = hl_shadow_depth(shadow);
    if (depth == 0)
        return resolve_unknown(ledger, size, domain);
    if (shadow->generation != ledger->codes.generation) {
        /* A code object died; some instruction may have another meaning now. */
        memset(shadow->locations, 0, shadow->count * sizeof *shadow->locations);
        shadow->generation = ledger->codes.generation;
    }
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t at = shadow->count - 1 - i;
        hl_location_id *location = &shadow->locations[at];
        if (*location == 0 && locate(ledger, shadow->frames[at], location) != HL_OK)
            return 0;
        shadow->resolved[i] = *location;
    }
    hl_stack_id stack;
    if (hl_book_stack(ledger->book, shadow->resolved, depth, 0, &stack) != HL_OK)
        return 0;
    if (hl_book_get_stack(ledger->book, stack)->total == 0) /* a new one: the others must not cost a walk */
        hl_book_set_total(ledger->book, stack, total_from(shadow->frames[shadow->count - depth], depth));
    return hl_ledger_site(ledger, stack, size, domain);
}
