/* shadow.h: the call stack as we last saw it, so that the next look at it is cheap.
 *
 * Most allocations come from a stack that differs from the last one in one or two frames. The shadow keeps the frames
 * that we saw last, with their locations. We update it instead of walking the stack again:
 *
 *   1. Start at the current frame, and find the newest frame that is also in the shadow. A small hash table says
 *      where frames are in the shadow. If no frame is there, read everything again.
 *   2. Check every frame below it, down to the frame limit: it must still be at the same instruction, and the next
 *      frame must still be its caller. The processor need not wait for one frame's link before it looks at the next
 *      frame, because it predicts that the link equals the one in the shadow. We read a frame only after we have
 *      compared its callee's link with it, so it exists. We mark the frames that we look at, where possible
 *      (frames_mark.h). A marked frame ends the check: it is the same frame that the last sync found here, so its
 *      callers have not moved.
 *   3. Put the new frames on top.
 *   4. Find the contexts (core/spots.h) of the new frames, from the lowest change upwards. From the newest frame's
 *      context, its instruction and a size, a spot usually knows the site.
 *   5. If no spot knows it, find the locations of the new frames (hl_shadow_resolve), and hash from the lowest change
 *      upwards. The hash is a polynomial. So the hash of the window (the newest frames up to the limit) is the
 *      difference of two hashes:
 *          hash(window) = hashes[top] - hashes[below the window] * base^window
 *
 *     arrays, newest first:   0 . . . . top ............. bottom ............ room
 *                             (free)    '---- window ----'  kept for returns
 *
 * After a sync, the window is what a walk of the whole stack would have found.
 *
 * Threading: needs the ledger's lock. One shadow serves all threads. A switch between threads costs one walk.
 */
#ifndef HL_SHADOW_H
#define HL_SHADOW_H

#include "../core/ledger.h"

typedef struct {
    const void *frame;     /* a complete frame */
    uintptr_t instruction; /* the instruction it is at */
} hl_seen;

enum { HL_SHADOW_PLACES_LOG2 = 9 };

typedef struct {
    bool anywhere;    /* the frame limit is 1: the callers do not matter */
    const void *here; /* the marked frame that the program is in, as far as we know; NULL: not known */
    /* Arrays, newest frame first. Frames and contexts begin at `top`, locations and hashes at `resolved`. They are
     * valid for `code_generation` of the ledger's codes. */
    hl_seen *seen;
    hl_context *contexts;      /* by frame: the context of its callers */
    hl_location_id *locations; /* by frame: the location of its instruction */
    uint64_t *hashes;          /* by frame: the hash of the locations from here to before `hashed_from` */
    const void **pending;      /* scratch space for new frames, newest first */
    uint32_t *places;          /* hash table with 2^HL_SHADOW_PLACES_LOG2 entries: frame -> index in `seen` */
    size_t bytes;
    uint32_t window; /* the frame limit */
    uint32_t room;
    uint32_t top;
    uint32_t resolved;
    uint32_t hashed_from;     /* the index where the hashes begin, with 0 */
    uint32_t sound;           /* the last sync found the frames from `top` to before here; the rest is older */
    uint32_t below;           /* number of callers below the oldest frame, which are not kept; UINT32_MAX: not known */
    uint32_t code_generation; /* 0: nothing in the shadow is valid */
    uint64_t base_power;      /* base^window */
    uint64_t stack_version;   /* grows with every change of the window's locations */
} hl_shadow;

hl_status hl_shadow_open(hl_shadow *shadow, uint32_t window) HL_MUST_USE;
void hl_shadow_close(hl_shadow *shadow);

/* Update the shadow to the calling thread's stack. `frame` is the thread's current frame, or NULL. Also tells the
 * ledger's spots the context. Returns false if there is no complete frame. Then the shadow is empty. */
bool hl_shadow_sync(hl_shadow *shadow, hl_ledger *ledger, const void *frame) HL_MUST_USE;
/* Find the locations of the window, after a sync. Returns false if there is no memory for a location. Also returns
 * false if a new location has shown that others are void. Then a second sync and a second call succeed. */
bool hl_shadow_resolve(hl_shadow *shadow, hl_ledger *ledger) HL_MUST_USE;

/* Nothing in the shadow is valid any more. The next sync walks the stack. */
static inline void hl_shadow_forget(hl_shadow *shadow)
{
    shadow->code_generation = 0;
    shadow->here = NULL;
}

static inline bool hl_shadow_empty(const hl_shadow *shadow)
{
    return shadow->top == shadow->room;
}

/* The number of frames in the window. */
static inline uint32_t hl_shadow_depth(const hl_shadow *shadow)
{
    uint32_t count = shadow->room - shadow->top;
    return count < shadow->window ? count : shadow->window;
}

/* The number of frames in the stack, after a sync. It saturates as in the standard library. */
uint32_t hl_shadow_total(hl_shadow *shadow);

static inline uint64_t hl_shadow_hash(const hl_shadow *shadow)
{
    uint64_t hash = shadow->hashes[shadow->top];
    if (shadow->room - shadow->top > shadow->window)
        hash -= shadow->hashes[shadow->top + shadow->window] * shadow->base_power;
    return hash;
}

#endif
