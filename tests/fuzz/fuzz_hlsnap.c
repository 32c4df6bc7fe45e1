/* fuzz_hlsnap.c: any bytes, read as a .hlsnap file. What is accepted is written again, and must be read as the same.
 *
 * Bytes that do not begin as a file does are taken for the payloads of its sections, each after its length in one byte:
 * so the fuzzer can lengthen and shorten them without losing what comes later.
 *
 * Built with HL_FUZZING, which makes the reader ignore checksums: no fuzzer guesses them. `make fuzz` runs it with
 * libFuzzer; `make test` runs it over the files in corpus/hlsnap (see replay.c).
 */

#include <stdio.h>
#include <stdlib.h>

#include "../../src/core/hlsnap_bytes.h"
#include "../core/hlsnap_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void run(const uint8_t *bytes, size_t length)
{
    hl_hlsnap_content content, again;
    hl_hlsnap_error error;
    hl_hlsnap_file file;
    hl_status status = hl_hlsnap_read(bytes, length, &content, &error);
    insist(status == HL_OK || status == HL_MALFORMED, "a status that only failing memory explains");
    if (status == HL_MALFORMED) {
        insist(error.what != NULL && error.where <= length, "no error, or one outside the file");
        return;
    }
    insist(content.snapshot_count > 0, "accepted without a snapshot");
    status = hl_hlsnap_write((const hl_snapshot *const *)content.snapshots, content.snapshot_count, content.sections,
                             content.section_count, &file);
    insist(status == HL_OK, "read, but cannot be written");
    insist(hl_hlsnap_read(file.bytes, file.length, &again, &error) == HL_OK, "written, but cannot be read");
    insist(again.snapshot_count == content.snapshot_count && again.section_count == content.section_count,
           "something was lost");
    for (size_t i = 0; i < content.snapshot_count; i++)
        insist(same_snapshot(content.snapshots[i], again.snapshots[i]), "a snapshot has changed");
    for (size_t i = 0; i < content.section_count; i++) {
        const hl_hlsnap_section *a = &content.sections[i], *b = &again.sections[i];
        insist(memcmp(a->kind, b->kind, 4) == 0 && a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0,
               "a section has changed");
    }
    drop_content(&content);
    drop_content(&again);
    hl_os_free(file.bytes);
}

static void add_section(hl_hlsnap_buffer *to, const char kind[4], const uint8_t *payload, size_t length)
{
    hl_hlsnap_add_bytes(to, kind, 4);
    hl_hlsnap_add_fixed(to, 8, length);
    hl_hlsnap_add_bytes(to, payload, length);
    hl_hlsnap_add_fixed(to, 4, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char kinds[][5] = {"FILE", "FUNC", "LOCS", "STKS", "ROWS"};
    if (length == 0 || bytes[0] == (uint8_t)HL_HLSNAP_MAGIC[0]) {
        run(bytes, length);
        return 0;
    }
    hl_hlsnap_buffer made = {0};
    hl_hlsnap_add_bytes(&made, HL_HLSNAP_MAGIC, 8);
    hl_hlsnap_add_fixed(&made, 2, HL_HLSNAP_MAJOR);
    hl_hlsnap_add_fixed(&made, 6, HL_HLSNAP_MINOR); /* and a checksum nobody looks at */
    size_t at = 0;
    for (size_t kind = 0; at < length && made.length < 10000; kind += kind < 4) {
        size_t payload = bytes[at] < length - at - 1 ? bytes[at] : length - at - 1;
        add_section(&made, kinds[kind], bytes + at + 1, payload);
        at += 1 + payload;
    }
    add_section(&made, "END ", NULL, 0);
    run(made.bytes, made.length);
    hl_os_free(made.bytes);
    return 0;
}
