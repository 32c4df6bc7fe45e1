/* shadow.h: the call stack as last seen, so that the next look at it is cheap.
 *
 * Most allocations come from a stack that differs from the last one in a frame or two. The shadow keeps the frames seen
 * last, with their locations, and is brought up to date instead of walked anew:
 *
 *   1. From the current frame, find the newest frame that the shadow has too, by a small table of where frames are in
 *      it. Where there is none, all is read again.
 *   2. Check every frame below it, down to the frame limit: still at the same instruction, still called by the next.
 *      The processor does not have to wait for one frame's link to look at the next frame: it predicts that the link is
 *      the one in the shadow. A frame is read only after its callee's link has been compared with it, so what is read
 *      exists. A frame that was looked at is marked where that can be (frames_mark.h), and a frame that bears the
 *      mark ends the check: it is the very frame that the last sync found here, so its callers are where they were.
 *   3. Put the new frames on top.
 *   4. Find the contexts (core/spots.h) of what is new, from the lowest change upwards. With the newest frame's, its
 *      instruction and a size, a spot mostly knows the site.
 *   5. Where none does, find the locations of what is new (hl_shadow_resolve), and hash from the lowest change upwards.
 *      The hash is a polynomial, so that of the window (the newest frames up to the limit) is the difference of two:
 *          hash(window) = hashes[top] - hashes[below the window] * base^window
 *
 *     arrays, newest first:   0 . . . . top ............. bottom ............ room
 *                             (free)    '---- window ----'  kept for returns
 *
 * After a sync the window is what a walk of the whole stack would have found.
 *
 * Threading: the ledger's lock. One shadow serves all threads; a switch between them costs one plain walk.
 */
#ifndef HL_SHADOW_H
#define HL_SHADOW_H

#include "../core/ledger.h"

typedef struct {
    const void *frame;     /* complete */
    uintptr_t instruction; /* where it is */
} hl_seen;

enum { HL_SHADOW_PLACES_LOG2 = 9 };

typedef struct {
    bool anywhere;    /* the frame limit is 1: no matter what called the frame that the program is in */
    const void *here; /* the frame that the program is in, as far as we know, if it bears the mark; NULL: not known */
    /* From `top` on, newest first; locations and hashes from `resolved` on, valid for `code_generation` of the ledger's
     * codes. */
    hl_seen *seen;
    hl_context *contexts;      /* of the frames' callers */
    hl_location_id *locations; /* of their instructions */
    uint64_t *hashes;          /* of all locations from that above `hashed_from` to this one */
    const void **pending;      /* scratch: new frames, newest first */
    uint32_t *places;          /* of frames in `seen`, 2^HL_SHADOW_PLACES_LOG2: each where its address says */
    size_t bytes;
    uint32_t window; /* the frame limit */
    uint32_t room;
    uint32_t top;
    uint32_t resolved;
    uint32_t hashed_from;     /* where the hashes begin, with 0 */
    uint32_t sound;           /* frames from `top` up to here were found by the last sync; what follows is older */
    uint32_t below;           /* callers of the oldest frame, which are not kept; UINT32_MAX: not known */
    uint32_t code_generation; /* 0: nothing in here is valid */
    uint64_t base_power;      /* base^window */
    uint64_t stack_version;   /* grows with every change of the window's locations */
} hl_shadow;

hl_status hl_shadow_open(hl_shadow *shadow, uint32_t window) HL_MUST_USE;
void hl_shadow_close(hl_shadow *shadow);

/* Bring the shadow up to date with the calling thread's stack; the thread is in `frame`, or in none (NULL). Tells the
 * ledger's spots the context. False when there is no complete frame, which leaves the shadow empty. */
bool hl_shadow_sync(hl_shadow *shadow, hl_ledger *ledger, const void *frame) HL_MUST_USE;
/* Find the locations of the window, after a sync. False when there is no memory for a location; or when a location that
 * was learnt has shown that others are void: then a second sync and this succeed. */
bool hl_shadow_resolve(hl_shadow *shadow, hl_ledger *ledger) HL_MUST_USE;

/* Nothing in the shadow is valid any more: the next sync walks. */
static inline void hl_shadow_forget(hl_shadow *shadow)
{
    shadow->code_generation = 0;
    shadow->here = NULL;
}

static inline bool hl_shadow_empty(const hl_shadow *shadow)
{
    return shadow->top == shadow->room;
}

/* How many frames the window has. */
static inline uint32_t hl_shadow_depth(const hl_shadow *shadow)
{
    uint32_t count = shadow->room - shadow->top;
    return count < shadow->window ? count : shadow->window;
}

/* How many frames the stack has, after a sync; saturates as in the stdlib. */
uint32_t hl_shadow_total(hl_shadow *shadow);

static inline uint64_t hl_shadow_hash(const hl_shadow *shadow)
{
    uint64_t hash = shadow->hashes[shadow->top];
    if (shadow->room - shadow->top > shadow->window)
        hash -= shadow->hashes[shadow->top + shadow->window] * shadow->base_power;
    return hash;
}

#endif
