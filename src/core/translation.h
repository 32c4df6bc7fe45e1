/* translation.h: a map from the names in a snapshot's name table to those of another name table. Names are entered
 * there as needed.
 *
 * Each string and location is looked up once, however many rows name it. Opening a translation allocates room for all
 * that the rows can name.
 *
 * Threading: belongs to one thread; reads the name table of an immutable snapshot.
 */
#ifndef HL_TRANSLATION_H
#define HL_TRANSLATION_H

#include "dense.h"
#include "snapshot.h"

typedef struct {
    hl_names *to;
    const hl_names *from;
    hl_id_map strings, locations;
    hl_id_map stacks; /* from the stacks that the rows name, for the caller to fill */
    uint32_t deepest; /* the depth of the deepest */
} hl_translation;

/* Close it even if opening failed. */
hl_status hl_translation_open(hl_translation *translation, hl_names *to, const hl_snapshot *snapshot) HL_MUST_USE;
void hl_translation_close(hl_translation *translation);
/* *fresh says whether the caller has a reference to give back. A location that was known already has another holder. */
hl_status hl_translation_location(hl_translation *translation, hl_location_id from, hl_location_id *to,
                                  bool *fresh) HL_MUST_USE;

#endif
