/* filter.h: which rows of a snapshot pass a list of filters.
 *
 * Semantics of the stdlib: a row passes if it matches any inclusive filter (or there is none) and no exclusive one. It
 * matches a filter when its domain is the one asked for and one of its frames (or the newest) is in a file that fits
 * the pattern, at the line asked for. A file name that ends in ".pyc" is taken as ".py". Without filters all rows pass.
 * Each distinct (pattern, file name) pair is matched once, whatever the number of rows.
 *
 * Threading: reads immutable snapshots only; no lock, no GIL.
 */
#ifndef HL_FILTER_H
#define HL_FILTER_H

#include "glob.h"
#include "snapshot.h"

typedef struct {
    bool inclusive;
    bool any_file;   /* a domain filter: pattern, line and all_frames do not apply */
    bool any_line;   /* no line number was asked for */
    bool all_frames; /* every frame is tried, not only the newest */
    bool any_domain; /* no domain was asked for */
    int64_t line;
    int64_t domain;
    const char *pattern; /* shell-style, UTF-8, already normalised (".pyc" -> ".py"); not terminated */
    size_t pattern_length;
} hl_filter;

/* A new snapshot with the rows that pass, sharing the book. */
hl_status hl_filter_snapshot(const hl_snapshot *snapshot, const hl_filter *filters, size_t count,
                             hl_snapshot **filtered) HL_MUST_USE;

#endif
