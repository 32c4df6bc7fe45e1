/* hlsnap.h: snapshots as .hlsnap files, which docs/format.md specifies.
 *
 * The writer makes the whole file in memory. A file takes only a few bytes per row, and a finished file can be
 * written and renamed in one go. The reader takes a whole file from anyone. It checks every length, count and index
 * before it uses it, and allocates at most a multiple of the file's size (docs/format.md).
 *
 * A file has sections. Those that hold names and rows are written and read here. Others (metadata, the users'
 * attributes) are passed through as bytes.
 *
 * Threading: no state of its own. A snapshot that is written is immutable, a ledger is locked, and what is read
 * belongs to the caller.
 */
#ifndef HL_HLSNAP_H
#define HL_HLSNAP_H

#include "rows.h"

/* The most that any version 1.x may have. */
enum { HL_HLSNAP_MOST_SNAPSHOTS = 8, HL_HLSNAP_MOST_SECTIONS = 32 };

/* A section that is passed through. Kinds are four ASCII letters; FILE, FUNC, LOCS, STKS, ROWS and "END " are taken. */
typedef struct {
    char kind[4];
    const uint8_t *bytes;
    size_t length;
} hl_hlsnap_section;

typedef struct {
    uint8_t *bytes; /* scratch memory: hl_os_free */
    size_t length;
} hl_hlsnap_file;

/* Make a file of `count` snapshots (at least one) of the same name table, each of one moment, and of other sections.
 * HL_FULL: there are more of either than a file may have, or the blocks of a snapshot add up to more than 64 bits. */
hl_status hl_hlsnap_write(const hl_snapshot *const *snapshots, size_t count, const hl_hlsnap_section *sections,
                          size_t section_count, hl_hlsnap_file *file) HL_MUST_USE;
/* The same from rows, which are read twice. */
hl_status hl_hlsnap_write_rows(const hl_rows *rows, size_t count, const hl_hlsnap_section *sections,
                               size_t section_count, hl_hlsnap_file *file) HL_MUST_USE;

/* What is wrong with a file: a static text that continues after the file's name ("is cut off"), the offset of the
 * problem, and the version that the file claims to have, once its header has been read (0.0 before). */
typedef struct {
    const char *what;
    size_t where;
    uint16_t major, minor;
} hl_hlsnap_error;

typedef struct {
    hl_snapshot *snapshots[HL_HLSNAP_MOST_SNAPSHOTS]; /* the caller drops them */
    size_t snapshot_count;
    hl_hlsnap_section sections[HL_HLSNAP_MOST_SECTIONS]; /* pointing into the file's bytes */
    size_t section_count;
    bool newer; /* of a newer minor version than this reader knows */
} hl_hlsnap_content;

/* The snapshots share a private name table. A file of a newer minor version is read as far as this reader knows it.
 * Sections that are passed through may then be of unknown kinds, and longer than their known part. Returns HL_OK;
 * HL_MALFORMED with *error filled; or HL_NO_MEMORY. On failure nothing needs to be freed. */
hl_status hl_hlsnap_read(const uint8_t *bytes, size_t length, hl_hlsnap_content *content,
                         hl_hlsnap_error *error) HL_MUST_USE;
/* The same with an existing private name table, and only with the snapshots of one moment (HL_MOMENTS: all). Names stay
 * in the name table even if the file turns out to be malformed. */
hl_status hl_hlsnap_read_into(hl_names *names, hl_moment only, const uint8_t *bytes, size_t length,
                              hl_hlsnap_content *content, hl_hlsnap_error *error) HL_MUST_USE;

#endif
