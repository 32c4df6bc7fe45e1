/* shadow_sync.h: bringing the shadow up to date: see shadow.h. Included by each frames_3XX.c after frames_walk.h, whose
 * accessors it needs inlined. The numbered steps are those of shadow.h. */

#ifndef HL_SHADOW_SYNC_H
#define HL_SHADOW_SYNC_H

/* No location yet. */
enum { UNRESOLVED = 0 };

static inline void set_frame(hl_shadow *shadow, uint32_t at, const frame *f)
{
    shadow->seen[at] = (hl_seen){.frame = f, .instruction = instruction_of(f)};
    shadow->locations[at] = UNRESOLVED;
}

/* Step 4, from the oldest change, `low`, to the top. */
static inline bool resolve_from(hl_shadow *shadow, hl_ledger *ledger, uint32_t low)
{
    uint64_t hash = low + 1 == shadow->room ? 0 : shadow->hashes[low + 1];
    uint32_t generation = ledger->codes.generation;
    shadow->version++;
    for (uint32_t i = low + 1; i-- > shadow->top;) {
        hl_location_id *location = &shadow->locations[i];
        if (*location == UNRESOLVED) {
            *location = hl_codes_location(&ledger->codes, shadow->seen[i].instruction);
            if (HL_UNLIKELY(*location == UNRESOLVED) &&
                hl_resolve_location(ledger, shadow->seen[i].frame, location) != HL_OK) {
                hl_shadow_forget(shadow);
                return false;
            }
        }
        hash = hash * HL_STACK_BASE + *location;
        shadow->hashes[i] = hash;
    }
    if (HL_UNLIKELY(generation != ledger->codes.generation)) {
        /* Learning one location has shown that another code object died unseen: its locations are gone. */
        hl_shadow_forget(shadow);
        return false;
    }
    return true;
}

/* A generator that has not begun yet counts as complete while it is closed or thrown into. Later frames at the same
 * instruction do not, so a shadow with such a frame is good for one use. */
static inline bool is_lasting(const frame *f)
{
    PyCodeObject *code = code_of(f);
    return instruction_of(f) >= (uintptr_t)(_PyCode_CODE(code) + code->_co_firsttraceable);
}

/* Forget everything and walk. */
static bool walk_anew(hl_shadow *shadow, hl_ledger *ledger, const frame *f)
{
    uint32_t count = 0;
    for (; f != NULL && count < shadow->window; f = hl_frames_caller(f))
        shadow->pending[count++] = f;
    shadow->rooted = f == NULL;
    shadow->generation = ledger->codes.generation;
    shadow->top = shadow->room - count;
    shadow->sound = shadow->room;
    for (uint32_t i = 0; i < count; i++) {
        const frame *next = shadow->pending[i];
        set_frame(shadow, shadow->top + i, next);
        settle(next);
        if (!is_lasting(next))
            hl_shadow_forget(shadow);
    }
    return count > 0 && resolve_from(shadow, ledger, shadow->room - 1);
}

typedef enum { GONE, MOVED, SAME_LINE } movement;

/* A frame that is checked stands at another instruction than before: mostly one of the same line, which changes nothing.
 * GONE: it is not the frame it was. */
static __attribute__((noinline)) movement moved_on(hl_shadow *shadow, const hl_ledger *ledger, uint32_t at,
                                                   const frame *f)
{
    if (is_shim(f) || !is_lasting(f))
        return GONE;
    hl_location_id before = shadow->locations[at];
    set_frame(shadow, at, f);
    shadow->locations[at] = hl_codes_location(&ledger->codes, instruction_of(f));
    return shadow->locations[at] == before ? SAME_LINE : MOVED;
}

/* Step 2: check `need` frames from `top` on, or as many as it takes to come to one that is settled. Returns the oldest one
 * whose line has changed, `top - 1` if none has, or UINT32_MAX if these are not the frames that are there now. */
static __attribute__((noinline)) uint32_t check(hl_shadow *shadow, const hl_ledger *ledger, uint32_t top, uint32_t need)
{
    uint32_t have = shadow->room - top, count = need < have ? need : have, low = top - 1;
    const hl_seen *seen = shadow->seen + top, *end = seen + count;
    const frame *f = seen->frame;
    bool sound = top + count <= shadow->sound && (count == need || shadow->rooted);
    for (;;) {
        if (HL_UNLIKELY(instruction_of(f) != seen->instruction)) {
            uint32_t at = (uint32_t)(seen - shadow->seen);
            movement to = moved_on(shadow, ledger, at, f);
            if (to == GONE)
                return UINT32_MAX;
            if (to == MOVED)
                low = at;
        }
        if (sound && is_settled(f))
            return low;
        settle(f);
        if (++seen == end)
            break;
        const frame *expected = seen->frame, *caller = expected;
        /* Equal to what is compared below, but loaded from the shadow: the compiler must not know, or it goes on with the
         * frame's own link, and the processor waits for each link before it can load the next. */
        __asm__("" : "+r"(caller));
        if (HL_UNLIKELY(f->previous != expected) && hl_frames_complete(f->previous) != expected)
            return UINT32_MAX;
        f = caller;
    }
    if (count < need && !(shadow->rooted && hl_frames_caller(f) == NULL))
        return UINT32_MAX;
    shadow->sound = top + count;
    return low;
}

/* Make room on top by forgetting all but `keep` frames from `top` on. Returns the new top. */
static uint32_t make_room(hl_shadow *shadow, uint32_t top, uint32_t keep)
{
    uint32_t to = shadow->room - keep;
    memmove(shadow->seen + to, shadow->seen + top, keep * sizeof *shadow->seen);
    memmove(shadow->locations + to, shadow->locations + top, keep * sizeof *shadow->locations);
    shadow->rooted = shadow->rooted && to == top;
    shadow->sound = shadow->room;
    return to;
}

/* With a window of one frame there is nothing below to check. */
static inline bool sync_one(hl_shadow *shadow, hl_ledger *ledger, const frame *f)
{
    uint32_t at = shadow->room - 1;
    shadow->top = at;
    set_frame(shadow, at, f);
    if (!is_lasting(f))
        hl_shadow_forget(shadow);
    return resolve_from(shadow, ledger, at);
}

/* Step 1, for one frame: does the shadow have it? `top` moves past what cannot be a caller of it, to the frame itself if it
 * is there, or to `room` if nothing is left. Frames of generators lie in the heap, out of order: a few in a row are passed
 * over. */
static inline bool find_frame(const hl_shadow *shadow, const frame *f, uint32_t *top)
{
    enum { IN_A_ROW = 4 };
    uint32_t at = *top;
    if (f->owner != FRAME_OWNED_BY_GENERATOR)
        while (at < shadow->room && (uintptr_t)shadow->seen[at].frame > (uintptr_t)f)
            at++;
    *top = at;
    for (uint32_t end = at + IN_A_ROW; at < end && at < shadow->room; at++) {
        if (shadow->seen[at].frame == f) {
            *top = at;
            return true;
        }
    }
    return false;
}

bool hl_shadow_sync(hl_shadow *shadow, hl_ledger *ledger, const void *current)
{
    const frame *f = current;
    bool valid = shadow->generation == ledger->codes.generation; /* else an instruction may have another meaning now */
    if (HL_LIKELY(f != NULL && valid && !hl_shadow_empty(shadow) &&
                  instruction_of(f) == shadow->seen[shadow->top].instruction)) {
        /* At an instruction that was found complete. */
        if (shadow->window == 1) {
            shadow->seen[shadow->top].frame = f;
            return true;
        }
        if (f == shadow->seen[shadow->top].frame && is_settled(f))
            return true;
    } else {
        f = hl_frames_complete(f);
        if (HL_UNLIKELY(f == NULL || !valid))
            return walk_anew(shadow, ledger, f);
        if (shadow->window == 1)
            return sync_one(shadow, ledger, f);
    }
    const frame *newest = f;
    /* Step 1. */
    uint32_t top = shadow->top, fresh = 0;
    while (!find_frame(shadow, f, &top)) {
        if (top == shadow->room || fresh + 1 == shadow->window || !is_lasting(f))
            return walk_anew(shadow, ledger, newest);
        shadow->pending[fresh++] = f;
        f = hl_frames_caller(f);
        if (f == NULL)
            return walk_anew(shadow, ledger, newest);
    }
    uint32_t low = check(shadow, ledger, top, shadow->window - fresh);
    if (HL_UNLIKELY(low == UINT32_MAX))
        return walk_anew(shadow, ledger, newest);
    if (low + 1 == top && fresh == 0 && top == shadow->top)
        return true; /* the same stack again */
    /* Step 3. */
    if (HL_UNLIKELY(fresh >= top)) { /* place 0 stays free: the place before `top` is one too */
        top = make_room(shadow, top, shadow->window - fresh);
        low = shadow->room - 1;
    }
    while (fresh > 0) {
        set_frame(shadow, --top, shadow->pending[--fresh]);
        settle(shadow->pending[fresh]);
    }
    shadow->top = top;
    return resolve_from(shadow, ledger, low);
}

#endif
