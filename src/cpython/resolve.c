/* resolve.c: see resolve.h.
 *
 * We copy names out of a code object once, and decode the line number of an instruction once. We keep no references and
 * call no Python function. So this is safe inside an allocator, with or without the GIL.
 */

#include "resolve.h"

#include "../core/linetable.h"
#include "../core/utf8.h"
#include "frames.h"
#include "own_code.h"

/* Space for the UTF-8 of a name. It is reused under the ledger's lock. */
static hl_region text;

static hl_status intern_str(hl_names *names, PyObject *str, hl_string_id *id)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(str);
    const void *data = PyUnicode_DATA(str);
    if (PyUnicode_IS_ASCII(str))
        return hl_names_string(names, data, (size_t)length, id);
    hl_status status = hl_region_ensure(&text, (size_t)length * HL_UTF8_MOST);
    if (status != HL_OK)
        return status;
    size_t bytes = 0;
    for (Py_ssize_t i = 0; i < length; i++)
        bytes += hl_utf8_encode(PyUnicode_READ(PyUnicode_KIND(str), data, i), text.base + bytes);
    return hl_names_string(names, text.base, bytes, id);
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
    status = intern_str(ledger->names, code->co_filename, &file);
    if (status != HL_OK)
        return status;
    status = intern_str(ledger->names, code->co_qualname, &name);
    if (status != HL_OK) {
        hl_names_release_string(ledger->names, file);
        return status;
    }
    status = hl_codes_add(&ledger->codes, ledger->names, (uintptr_t)code, file, name, id);
    if (status == HL_OK)
        hl_codes_at(&ledger->codes, *id)->is_ours = hl_own_code_is(code, hl_names_get_string(ledger->names, file));
    return status;
}

hl_status hl_resolve_location(hl_ledger *ledger, const void *frame, hl_location_id *location)
{
    PyCodeObject *code = hl_frames_code(frame);
    hl_code_id id;
    hl_status status = know_code(ledger, code, &id);
    if (status != HL_OK)
        return status;
    uintptr_t instruction = hl_frames_instruction(frame);
    const uint8_t *table = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    size_t length = (size_t)PyBytes_GET_SIZE(code->co_linetable);
    size_t offset = instruction - hl_frames_first_instruction(code);
    hl_code *known = hl_codes_at(&ledger->codes, id);
    uint32_t line = hl_linetable_line(table, length, code->co_firstlineno, offset, &known->place);
    status = hl_codes_learn(&ledger->codes, ledger->names, id, instruction, line, location);
    if (status == HL_OK && known->is_ours)
        hl_names_set_ours(ledger->names, *location);
    return status;
}

static void set_total(hl_ledger *ledger, hl_site_id site, uint32_t total)
{
    hl_names_set_total(ledger->names, hl_sites_at(&ledger->sites, site)->stack, total);
}

static bool is_new(const hl_ledger *ledger, hl_site_id site)
{
    return hl_names_get_stack(ledger->names, hl_sites_at(&ledger->sites, site)->stack)->total == 0;
}

hl_site_id hl_resolve_site(hl_ledger *ledger, hl_shadow *shadow, const hl_key *key)
{
    if (hl_names_get_location(ledger->names, key->locations[0])->is_ours)
        return hl_ledger_own_site(ledger, key->size);
    hl_site_id site = hl_ledger_site(ledger, key);
    if (site != 0 && is_new(ledger, site)) /* a known stack must not cost a walk */
        set_total(ledger, site, hl_shadow_total(shadow));
    return site;
}

hl_site_id hl_resolve_unknown(hl_ledger *ledger, uint64_t size, uint32_t domain)
{
    static const char unknown[] = "<unknown>";
    hl_string_id file;
    hl_location_id location;
    if (hl_names_string(ledger->names, unknown, sizeof unknown - 1, &file) != HL_OK)
        return 0;
    hl_status status = hl_names_location(ledger->names, file, 0, 0, &location);
    hl_names_release_string(ledger->names, file);
    if (status != HL_OK)
        return 0;
    hl_key key = {.locations = &location, .depth = 1, .domain = domain, .size = size, .stack_hash = location};
    hl_site_id site = hl_ledger_site(ledger, &key);
    hl_names_release_location(ledger->names, location);
    if (site != 0)
        set_total(ledger, site, 1);
    return site;
}
