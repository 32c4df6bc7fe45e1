/* shadow.h: the call stack as last seen, so that the next look at it is cheap.
 *
 * Most allocations come from a stack that differs from the last one in a frame or two. The shadow keeps the frames seen
 * last, oldest first, and is brought up to date instead of walked anew:
 *
 *   1. From the current frame, find the newest frame that the shadow has too. Callees lie at higher addresses than their
 *      callers nearly always, so this is a merge of two sorted lists; where they do not, more is read again.
 *   2. Check every frame below it, down to the frame limit: still at the same instruction, still called by the next. The
 *      processor does not have to wait for one frame's link to look at the next frame: it predicts that the link is the
 *      one in the shadow. A frame is read only after its callee's link has been compared with it, so what is read exists.
 *   3. Put the new frames on top.
 *   4. Hash from the lowest change upwards. The hash is a polynomial, so that of the window (the newest frames up to the
 *      limit) is the difference of two:  hash(window) = hashes[top] - hashes[bottom - 1] * base^window.
 *
 *     frames  0 ............ bottom ........ top           locations[i]: of instructions[i], 0 if not resolved yet
 *                            '---- window ---'
 *
 * Nothing is taken on trust: after a sync the window is what a walk of the whole stack would have found.
 *
 * Threading: the ledger's lock. One shadow serves all threads; a switch between them costs one plain walk.
 */
#ifndef HL_SHADOW_H
#define HL_SHADOW_H

#include "../core/book.h"

typedef struct {
    const void **frames;       /* complete frames, oldest first */
    uintptr_t *instructions;   /* where they are */
    uint64_t *hashes;          /* of all instructions up to this one */
    hl_location_id *locations; /* valid for `generation` of the ledger's codes */
    const void **pending;      /* scratch: new frames, newest first */
    hl_location_id *resolved;  /* scratch: the window's locations, newest first */
    size_t bytes;
    uint32_t window; /* the frame limit */
    uint32_t room;
    uint32_t count;
    bool rooted;         /* the first frame has no caller */
    uint32_t generation; /* of `locations` */
    uint64_t base_power; /* base^window */
    uint64_t version;    /* grows with every change of the window */
} hl_shadow;

hl_status hl_shadow_open(hl_shadow *shadow, uint32_t window) HL_MUST_USE;
void hl_shadow_close(hl_shadow *shadow);

#define HL_SHADOW_BASE UINT64_C(0xd1342543de82ef95)

/* Bring the shadow up to date with the calling thread's stack, whose newest complete frame is `frame` (NULL: none). */
void hl_shadow_sync(hl_shadow *shadow, const void *frame);

/* How many frames the window has. */
static inline uint32_t hl_shadow_depth(const hl_shadow *shadow)
{
    return shadow->count < shadow->window ? shadow->count : shadow->window;
}

/* The window's instructions, oldest first. */
static inline const uintptr_t *hl_shadow_instructions(const hl_shadow *shadow)
{
    return shadow->instructions + (shadow->count - hl_shadow_depth(shadow));
}

static inline uint64_t hl_shadow_hash(const hl_shadow *shadow)
{
    if (shadow->count == 0)
        return 0;
    uint64_t hash = shadow->hashes[shadow->count - 1];
    if (shadow->count > shadow->window)
        hash -= shadow->hashes[shadow->count - 1 - shadow->window] * shadow->base_power;
    return hash;
}

#endif
