/* names.h: the interned names of a ledger: strings, locations and stacks.
 *
 *     stack    -> array of locations, newest first, cut at the frame limit; plus the total depth
 *     location -> (file, line, function)
 *     string   -> UTF-8 bytes (lone surrogates encoded as three bytes, as Python's "surrogatepass" does)
 *
 * Interning means that equal content has an equal id within one name table. Id 0 is never handed out. Locations with
 * the same file and line but different functions share one `line_id`, so grouping by line never compares strings.
 *
 * The ledger that writes a name table shares it with the snapshots taken from it. The name table counts its holders:
 * each has one reference. A snapshot also holds a pin. While a pin is held, nothing that existed when it was made is
 * reclaimed.
 *
 * Threading: interning, releasing, sweeping and making a pin need the writer's exclusion (the ledger's lock; a
 * private name table has one owner). Reading what a snapshot names needs no lock. Entries never move in a ledger's name
 * table, and they never change while pinned. The one exception is a stack's total, which is set once
 * (hl_names_set_total) and read atomically.
 */
#ifndef HL_NAMES_H
#define HL_NAMES_H

#include "index.h"
#include "lock.h"
#include "pool.h"

typedef uint32_t hl_string_id;
typedef uint32_t hl_location_id;
typedef uint32_t hl_stack_id;

typedef struct {
    char *bytes;     /* not terminated */
    uint32_t length; /* in bytes */
    uint32_t refs;   /* locations that name it, plus explicit holders */
} hl_string;

typedef struct {
    hl_string_id file;
    hl_string_id name; /* the function; 0 when not known */
    uint32_t line;
    hl_location_id line_id; /* the representative of all locations with this file and line; usually itself */
    uint32_t refs;          /* stacks that name it (once per occurrence), plus explicit holders */
    uint32_t content : 31;  /* a hash of its content, independent of the ids of its strings */
    uint32_t is_ours : 1;   /* in a function of our Python package: what it allocates is our own work */
} hl_location;

typedef struct {
    hl_location_id *locations; /* newest first */
    uint32_t depth;            /* how many */
    uint32_t total;            /* number of frames when the stack was first seen; >= depth; 0: not known */
    uint32_t refs;             /* sites that name it */
    uint32_t limbo;            /* the next stack that waits for its pins; 0 at the end */
    uint64_t born;             /* `pins_made` when it was made: older pins do not name it */
    union {
        uint64_t died;    /* in limbo: `pins_made` when its last site went */
        uint64_t content; /* until then: a hash of its content, independent of the ids of its locations */
    };
} hl_stack;

typedef struct {
    uint64_t number; /* of the pin: `pins_made` just after it was made */
    uint32_t held;   /* number of holders */
} hl_pin;

typedef struct hl_names hl_names;

struct hl_names {
    _Atomic uint32_t holders;
    hl_pool *pool; /* strings' bytes and stacks' arrays */
    hl_table strings;
    hl_table locations;
    hl_table stacks;
    /* Of all hashes; 0 in a ledger's name table. A private one may be filled from a file, whose author must not know
     * it: names that fall into one chain would make interning quadratic. */
    uint64_t seed;
    uint32_t frames;    /* of all stacks; at most HL_NAMES_MOST_FRAMES */
    uint64_t pins_made; /* grows with every pin; hl_names_pin_lock guards this and the three below */
    hl_region pins;     /* hl_pin each, ascending; in pages, because they grow under the ledger's lock */
    uint32_t pin_count;
    bool stirred;            /* a stack was born or died since the last pin, so the next pin is a new one */
    hl_stack_id limbo_first; /* dead stacks that a pin may still name, oldest first */
    hl_stack_id limbo_last;
};

/* A name table for a ledger (`stable`: entries never move, readers need no lock) or a private one (small, may move). */
hl_status hl_names_new(bool stable, hl_names **names) HL_MUST_USE;
hl_names *hl_names_hold(hl_names *names);
void hl_names_drop(hl_names *names);
/* Forget everything if nobody else holds the name table and it is small. Otherwise return false and change nothing. */
bool hl_names_clear(hl_names *names);

/* A location counts the frames that name it in 32 bits. */
#define HL_NAMES_MOST_FRAMES ((UINT32_C(1) << 31) - 1)

/* Intern. A new or found string or location comes with one more reference. The caller owns it and gives it back with
 * the matching release. A stack keeps its own references to its locations. HL_FULL: no id is left, or there are more
 * references than can be counted. */
hl_status hl_names_string(hl_names *names, const char *bytes, size_t length, hl_string_id *id) HL_MUST_USE;
hl_status hl_names_location(hl_names *names, hl_string_id file, uint32_t line, hl_string_id name,
                            hl_location_id *id) HL_MUST_USE;
hl_status hl_names_stack(hl_names *names, const hl_location_id *locations, uint32_t depth, uint32_t total,
                         hl_stack_id *id) HL_MUST_USE;
/* The same in a ledger's name table, for a caller that has the hash: a polynomial in HL_STACK_BASE over the locations,
 * the newest last. */
hl_status hl_names_stack_hashed(hl_names *names, uint64_t hash, const hl_location_id *locations, uint32_t depth,
                                uint32_t total, hl_stack_id *id) HL_MUST_USE;
#define HL_STACK_BASE UINT64_C(0xd1342543de82ef95)
/* The location is in a function of ours. Called before any stack names it. */
void hl_names_set_ours(hl_names *names, hl_location_id id);
/* Set the total of a stack that was interned with a total of 0, once its frames have been counted. */
void hl_names_set_total(hl_names *names, hl_stack_id id, uint32_t total);
void hl_names_release_string(hl_names *names, hl_string_id id);
void hl_names_release_location(hl_names *names, hl_location_id id);
void hl_names_release_stack(hl_names *names, hl_stack_id id);

/* Guards the pins of all name tables. It is the innermost of all locks. Public because fork needs it. */
extern hl_lock hl_names_pin_lock;

/* Pins: see above. hl_names_pin returns the number of the pin, or 0 when there is no memory for the pin.
 * hl_names_pin_again holds a pin once more. The last two need no lock of the caller. */
uint64_t hl_names_pin(hl_names *names) HL_MUST_USE;
void hl_names_pin_again(hl_names *names, uint64_t pin);
void hl_names_unpin(hl_names *names, uint64_t pin);
/* Look at up to `most` stacks in limbo and reclaim those whose pins are gone. Returns how many it reclaimed. Cheap
 * when limbo is empty. */
uint32_t hl_names_sweep(hl_names *names, uint32_t most);

/* Bytes of memory the name table has obtained. */
size_t hl_names_memory(const hl_names *names);

static inline const hl_string *hl_names_get_string(const hl_names *names, hl_string_id id)
{
    return (const hl_string *)hl_table_at(&names->strings, id);
}

static inline const hl_location *hl_names_get_location(const hl_names *names, hl_location_id id)
{
    return (const hl_location *)hl_table_at(&names->locations, id);
}

static inline const hl_stack *hl_names_get_stack(const hl_names *names, hl_stack_id id)
{
    return (const hl_stack *)hl_table_at(&names->stacks, id);
}

#endif
