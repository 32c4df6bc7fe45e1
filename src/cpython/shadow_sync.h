/* shadow_sync.h: bringing the shadow up to date: see shadow.h. Included by each frames_3XX.c after frames_walk.h, whose
 * accessors it needs inlined. The numbered steps are those of shadow.h. */

#ifndef HL_SHADOW_SYNC_H
#define HL_SHADOW_SYNC_H

static inline void set_instruction(hl_shadow *shadow, uint32_t at, uintptr_t instruction)
{
    shadow->instructions[at] = instruction;
    shadow->locations[at] = 0;
}

/* Step 4. */
static inline void hash_from(hl_shadow *shadow, uint32_t low)
{
    uint64_t hash = low == 0 ? 0 : shadow->hashes[low - 1];
    for (uint32_t i = low; i < shadow->count; i++) {
        hash = hash * HL_SHADOW_BASE + shadow->instructions[i];
        shadow->hashes[i] = hash;
    }
    shadow->version++;
}

/* Forget everything and walk. */
static void walk_anew(hl_shadow *shadow, const frame *f)
{
    uint32_t count = 0;
    for (; f != NULL && count < shadow->window; f = hl_frames_caller(f))
        shadow->pending[count++] = f;
    shadow->rooted = f == NULL;
    shadow->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const frame *next = shadow->pending[count - 1 - i];
        shadow->frames[i] = next;
        set_instruction(shadow, i, instruction_of(next));
    }
    hash_from(shadow, 0);
}

/* Step 2: check the `need` newest of the first `top` frames. Returns the lowest index whose instruction has changed,
 * `top` if none has, or UINT32_MAX if these are not the frames that are there now. */
static inline uint32_t check(hl_shadow *shadow, uint32_t top, uint32_t need)
{
    uint32_t low = top;
    for (uint32_t i = top - 1;; i--) {
        const frame *f = shadow->frames[i];
        if (HL_UNLIKELY(instruction_of(f) != shadow->instructions[i])) {
            if (!is_complete(f))
                return UINT32_MAX;
            set_instruction(shadow, i, instruction_of(f));
            low = i;
        }
        if (--need == 0)
            return low;
        const frame *caller = f->previous;
        const frame *expected = i == 0 ? NULL : shadow->frames[i - 1];
        if (HL_UNLIKELY(caller != expected) && hl_frames_complete(caller) != expected)
            return UINT32_MAX;
        if (i == 0)
            return shadow->rooted ? low : UINT32_MAX;
    }
}

/* Make room on top by forgetting all but the newest `keep` of the first `top` frames. */
static uint32_t make_room(hl_shadow *shadow, uint32_t top, uint32_t keep)
{
    uint32_t from = top - keep;
    memmove(shadow->frames, shadow->frames + from, keep * sizeof *shadow->frames);
    memmove(shadow->instructions, shadow->instructions + from, keep * sizeof *shadow->instructions);
    memmove(shadow->locations, shadow->locations + from, keep * sizeof *shadow->locations);
    shadow->rooted = shadow->rooted && from == 0;
    return keep;
}

/* With a window of one frame there is nothing below to check. */
static inline void sync_one(hl_shadow *shadow, const frame *f)
{
    uintptr_t instruction = instruction_of(f);
    if (shadow->count == 1 && shadow->frames[0] == f && shadow->instructions[0] == instruction)
        return;
    shadow->count = 1;
    shadow->frames[0] = f;
    set_instruction(shadow, 0, instruction);
    hash_from(shadow, 0);
}

void hl_shadow_sync(hl_shadow *shadow, const void *current)
{
    const frame *f = current;
    if (HL_UNLIKELY(f == NULL)) {
        walk_anew(shadow, NULL);
        return;
    }
    if (shadow->window == 1) {
        sync_one(shadow, f);
        return;
    }
    /* Step 1. */
    uint32_t top = shadow->count, fresh = 0;
    for (;;) {
        while (top > 0 && (uintptr_t)shadow->frames[top - 1] > (uintptr_t)f)
            top--;
        if (top > 0 && shadow->frames[top - 1] == f)
            break;
        if (top == 0 || fresh + 1 == shadow->window) {
            walk_anew(shadow, current);
            return;
        }
        shadow->pending[fresh++] = f;
        f = hl_frames_caller(f);
        if (f == NULL) {
            walk_anew(shadow, current);
            return;
        }
    }
    uint32_t low = check(shadow, top, shadow->window - fresh);
    if (HL_UNLIKELY(low == UINT32_MAX)) {
        walk_anew(shadow, current);
        return;
    }
    if (low == top && fresh == 0 && top == shadow->count)
        return; /* the same stack again */
    /* Step 3. */
    if (HL_UNLIKELY(top + fresh > shadow->room)) {
        top = make_room(shadow, top, shadow->window - fresh);
        low = 0;
    }
    while (fresh > 0) {
        const frame *next = shadow->pending[--fresh];
        shadow->frames[top] = next;
        set_instruction(shadow, top++, instruction_of(next));
    }
    shadow->count = top;
    hash_from(shadow, low);
}

#endif
