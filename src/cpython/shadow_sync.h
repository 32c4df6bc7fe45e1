/* shadow_sync.h: how we update the shadow. See shadow.h, which also numbers the steps. Each frames_3XX.c includes this
 * file after frames_walk.h, because it needs those accessors inline. */

#ifndef HL_SHADOW_SYNC_H
#define HL_SHADOW_SYNC_H

#define UNKNOWN UINT32_MAX /* for `below` */

/* The hash table's entry for a frame. */
static inline uint32_t *place_of(const hl_shadow *shadow, const frame *f)
{
    return shadow->places + (((uintptr_t)f >> 3) * 0x9e3779b97f4a7c15u >> (64 - HL_SHADOW_PLACES_LOG2));
}

static inline void set_frame(hl_shadow *shadow, uint32_t at, const frame *f)
{
    shadow->seen[at] = (hl_seen){.frame = f, .instruction = instruction_of(f)};
    *place_of(shadow, f) = at;
}

/* The frames from `top` to `low` are at other instructions than before. */
static inline void unresolve(hl_shadow *shadow, uint32_t low)
{
    if (shadow->resolved <= low)
        shadow->resolved = low + 1;
}

/* Step 4, from `low` to the top. `low` is the oldest frame with another caller. */
static inline void find_contexts(hl_shadow *shadow, hl_ledger *ledger, uint32_t low)
{
    for (uint32_t i = low + 1; i-- > shadow->top;)
        shadow->contexts[i] = hl_spots_call(&ledger->spots, shadow->contexts[i + 1], shadow->seen[i + 1].instruction);
}

static inline bool arrive(hl_shadow *shadow, hl_ledger *ledger)
{
    if (!shadow->anywhere) {
        shadow->here = shadow->code_generation == 0 ? NULL : shadow->seen[shadow->top].frame;
        hl_spots_set_callers(&ledger->spots, shadow->contexts[shadow->top]);
    }
    return true;
}

/* Step 5. We do not look at frames below the window, because they may be gone. If they were not resolved while they
 * were in the window, the hashes begin again at the window's end. */
bool hl_shadow_resolve(hl_shadow *shadow, hl_ledger *ledger)
{
    uint32_t end = shadow->top + hl_shadow_depth(shadow), i = shadow->resolved;
    if (i > end || shadow->hashed_from < end) {
        i = shadow->hashed_from = end;
        shadow->hashes[end] = 0;
    }
    if (i <= shadow->top)
        return true;
    uint64_t hash = shadow->hashes[i];
    uint32_t code_generation = ledger->codes.code_generation;
    while (i-- > shadow->top) {
        hl_location_id location = hl_codes_location(&ledger->codes, shadow->seen[i].instruction);
        if (HL_UNLIKELY(location == 0) && hl_resolve_location(ledger, shadow->seen[i].frame, &location) != HL_OK) {
            hl_shadow_forget(shadow);
            return false;
        }
        shadow->locations[i] = location;
        hash = hash * HL_STACK_BASE + location;
        shadow->hashes[i] = hash;
    }
    shadow->resolved = shadow->top;
    if (HL_UNLIKELY(code_generation != ledger->codes.code_generation)) {
        /* A new location has shown that another code object died unseen. Its locations are gone. */
        hl_shadow_forget(shadow);
        return false;
    }
    return true;
}

/* A generator that has not begun yet counts as complete while it is closed or an exception is thrown into it. Later
 * frames at the same instruction do not. So a shadow with such a frame is valid for one use only. */
static inline bool is_lasting(const frame *f)
{
    PyCodeObject *code = code_of(f);
    return instruction_of(f) >= (uintptr_t)(_PyCode_CODE(code) + code->_co_firsttraceable);
}

/* Forget everything and walk the stack. */
static bool walk_anew(hl_shadow *shadow, hl_ledger *ledger, const frame *f)
{
    uint32_t count = 0;
    for (; f != NULL && count < shadow->window; f = hl_frames_caller(f))
        shadow->pending[count++] = f;
    shadow->stack_version++;
    shadow->below = f == NULL ? 0 : UNKNOWN;
    shadow->code_generation = ledger->codes.code_generation;
    shadow->top = shadow->room - count;
    shadow->sound = shadow->resolved = shadow->room;
    for (uint32_t i = 0; i < count; i++) {
        const frame *next = shadow->pending[i];
        set_frame(shadow, shadow->top + i, next);
        mark(next);
        if (!is_lasting(next))
            hl_shadow_forget(shadow);
    }
    if (count == 0) {
        shadow->here = NULL;
        return false;
    }
    shadow->contexts[shadow->room - 1] = ledger->spots.root;
    find_contexts(shadow, ledger, shadow->room - 2);
    return arrive(shadow, ledger);
}

/* Step 2: check `need` frames from `top` on, or fewer if one of them is marked. Returns the oldest frame that has moved
 * on, or `top - 1` if none has. Returns UINT32_MAX if the shadow's frames are not the frames of the stack. Then *last
 * is the last frame that is still there, whose caller has changed, or UINT32_MAX if that is not known. */
HL_INLINE uint32_t check(hl_shadow *shadow, uint32_t top, uint32_t need, uint32_t *last)
{
    uint32_t have = shadow->room - top, count = need < have ? need : have, low = top - 1;
    hl_seen *seen = shadow->seen + top, *end = seen + count;
    const frame *f = seen->frame;
    bool sound = top + count <= shadow->sound && (count == need || shadow->below == 0);
    *last = UINT32_MAX;
    for (;;) {
        if (HL_UNLIKELY(instruction_of(f) != seen->instruction)) {
            if (is_shim(f) || !is_lasting(f))
                return UINT32_MAX;
            seen->instruction = instruction_of(f);
            low = (uint32_t)(seen - shadow->seen);
        }
        if (sound && is_marked(f))
            return low;
        mark(f);
        if (++seen == end)
            break;
        const frame *expected = seen->frame, *caller = expected;
        /* `caller` comes from the shadow. The comparison below shows that it equals the frame's own link. The compiler
         * must not know this. Otherwise it would continue with the frame's own link, and the processor would wait for
         * each link before it can load the next frame. */
        __asm__("" : "+r"(caller));
        if (HL_UNLIKELY(f->previous != expected) && hl_frames_complete(f->previous) != expected) {
            *last = (uint32_t)(seen - 1 - shadow->seen);
            return UINT32_MAX;
        }
        f = caller;
    }
    if (top + count == shadow->room) {
        bool rooted = hl_frames_caller(f) == NULL;
        if (count < need && !(shadow->below == 0 && rooted))
            return UINT32_MAX;
        shadow->below = rooted ? 0 : UNKNOWN;
    }
    shadow->sound = top + count;
    return low;
}

/* Make room on top by forgetting the oldest frames. Half of the frames that are kept for returns stay, so this is rare.
 * The caller will put `fresh` frames on `top`. Returns the new top. */
static uint32_t make_room(hl_shadow *shadow, uint32_t top, uint32_t fresh)
{
    uint32_t keep = (shadow->room - shadow->window) / 2 + shadow->window - fresh, to = shadow->room - keep;
    memmove(shadow->seen + to, shadow->seen + top, keep * sizeof *shadow->seen);
    for (uint32_t i = to; i < shadow->room; i++)
        *place_of(shadow, shadow->seen[i].frame) = i;
    memmove(shadow->contexts + to, shadow->contexts + top, keep * sizeof *shadow->contexts);
    if (shadow->below != UNKNOWN)
        shadow->below += to - top;
    shadow->sound = shadow->sound - top < keep ? shadow->sound + (to - top) : shadow->room;
    shadow->resolved = shadow->room;
    return to;
}

static uint32_t callers_of(const frame *f, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && (f = hl_frames_caller(f)) != NULL)
        count++;
    return count;
}

uint32_t hl_shadow_total(hl_shadow *shadow)
{
    enum { MOST_TOTAL = UINT16_MAX };
    uint32_t depth = hl_shadow_depth(shadow);
    if (shadow->sound < shadow->room) /* frames below the window may be of another stack */
        return depth + callers_of(shadow->seen[shadow->top + depth - 1].frame, MOST_TOTAL - depth);
    if (shadow->below == UNKNOWN)
        shadow->below = callers_of(shadow->seen[shadow->room - 1].frame, MOST_TOTAL);
    uint32_t total = shadow->room - shadow->top + shadow->below;
    return total < MOST_TOTAL ? total : MOST_TOTAL;
}

/* With a window of one frame, there are no callers to check. */
static inline bool sync_one(hl_shadow *shadow, const frame *f)
{
    shadow->stack_version++;
    shadow->top = shadow->room - 1;
    shadow->resolved = shadow->room;
    shadow->below = UNKNOWN;
    set_frame(shadow, shadow->top, f);
    if (!is_lasting(f))
        hl_shadow_forget(shadow);
    return true;
}

/* Step 1, for one frame: its index in the shadow, from `from` on. UINT32_MAX: it is not there, or another frame has
 * taken its entry in the hash table. */
static inline uint32_t find_frame(const hl_shadow *shadow, const frame *f, uint32_t from)
{
    uint32_t at = *place_of(shadow, f);
    return at >= from && at < shadow->room && shadow->seen[at].frame == f ? at : UINT32_MAX;
}

/* Remember a frame that is new, or must be treated as new, to put it on top later. Returns false if a walk is better:
 * there are too many such frames, or this one is not lasting. */
static inline bool put_off(hl_shadow *shadow, const frame *f, uint32_t *fresh)
{
    if (*fresh + 1 >= shadow->window || !is_lasting(f))
        return false;
    shadow->pending[(*fresh)++] = f;
    return true;
}

/* What the shadow and the stack have in common. */
typedef struct {
    uint32_t top;   /* the newest common frame */
    uint32_t low;   /* the oldest frame that has moved on; top - 1: none */
    uint32_t fresh; /* the number of frames to put on top */
} common;

/* Steps 1 and 2. False: they have nothing useful in common. */
HL_INLINE bool find_common(hl_shadow *shadow, const frame *f, common *found)
{
    uint32_t from = shadow->top, fresh = 0;
    for (; f != NULL; f = hl_frames_caller(f)) {
        uint32_t top = find_frame(shadow, f, from), last;
        if (top == UINT32_MAX) {
            if (!put_off(shadow, f, &fresh))
                return false;
            continue;
        }
        uint32_t low = check(shadow, top, shadow->window - fresh, &last);
        if (HL_LIKELY(low != UINT32_MAX)) {
            *found = (common){.top = top, .low = low, .fresh = fresh};
            return true;
        }
        if (last == UINT32_MAX)
            return false;
        /* Another frame has called a generator this time. Treat it, and the frames that it has called, as new. */
        for (from = last + 1; top < from; top++) {
            f = shadow->seen[top].frame;
            if (!put_off(shadow, f, &fresh))
                return false;
        }
    }
    return false;
}

bool hl_shadow_sync(hl_shadow *shadow, hl_ledger *ledger, const void *current)
{
    const frame *f = hl_frames_complete(current);
    bool valid = shadow->code_generation == ledger->codes.code_generation; /* else instructions may have changed */
    if (HL_UNLIKELY(hl_spots_begin_again(&ledger->spots) || f == NULL || !valid))
        return walk_anew(shadow, ledger, f);
    if (shadow->anywhere)
        return sync_one(shadow, f);
    common found;
    if (HL_UNLIKELY(!find_common(shadow, f, &found)))
        return walk_anew(shadow, ledger, f);
    if (found.low + 1 != found.top || found.top != shadow->top || found.fresh != 0)
        shadow->stack_version++;
    unresolve(shadow, found.low);
    /* Step 3. */
    if (HL_UNLIKELY(found.fresh >= found.top)) { /* index 0 stays free, so that `top - 1` is an index too */
        uint32_t to = make_room(shadow, found.top, found.fresh);
        found.low += to - found.top;
        found.top = to;
    }
    uint32_t moved = found.low > found.top ? found.low : found.top; /* if not moved on, it calls another frame now */
    for (shadow->top = found.top; found.fresh > 0;) {
        const frame *next = shadow->pending[--found.fresh];
        set_frame(shadow, --shadow->top, next);
        mark(next);
    }
    find_contexts(shadow, ledger, moved - 1);
    return arrive(shadow, ledger);
}

#endif
