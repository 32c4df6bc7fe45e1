/* filter.h: which rows of a snapshot pass a list of filters.
 *
 * The rules are those of the stdlib. A row passes if it matches any inclusive filter (or there is none) and no
 * exclusive one. It matches a filter if its domain is the filter's domain and one of its frames (or the newest) is in
 * a file that fits the pattern, at the filter's line. A file name that ends in ".pyc" is treated as ".py". Without
 * filters, all rows pass. Each distinct (pattern, file name) pair is matched once, however many rows there are.
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
    bool any_line;   /* the filter has no line number */
    bool all_frames; /* every frame is tried, not only the newest */
    bool any_domain; /* the filter has no domain */
    int64_t line;
    int64_t domain;
    const char *pattern; /* shell-style, UTF-8, already normalised (".pyc" -> ".py"); not terminated */
    size_t pattern_length;
} hl_filter;

/* A new snapshot with the rows that pass, sharing the name table. */
hl_status hl_filter_snapshot(const hl_snapshot *snapshot, const hl_filter *filters, size_t count,
                             hl_snapshot **filtered) HL_MUST_USE;

#endif
