/* frames_walk_depth.h: how deep a stack is, without a walk to its root each time; included by each frames_3XX.c after
 * frames_walk.h.
 *
 * As long as a frame lives, as many frames are below it. So a walk leaves anchors on its way: frames whose depth is known
 * from then on, at distances of 8, 32, 128, ... from where it began. The next walk ends at the first of them that it
 * meets. A program that returns from n frames finds one after about 4 n more, so the walks cost what the calls and
 * returns do, however deep the stack is.
 *
 * A frame cannot be told by its address, so an anchor bears a mark. The marks of frames_settle.h will not do: not every
 * frame keeps them, and the shadow gives them to later frames at the same address. Where the mark of an anchor is depends
 * on what the frame waits for:
 *
 *   - A function that it called by itself: in the place on its stack where the interpreter will put the result, and which
 *     nothing reads before. If the call fails, the mark may stay behind in memory that later frames use. But to call a
 *     function, they put that function or its argument in the very place where its result will be. (Only stepping a
 *     generator needs no such operand, so a frame that waits for a generator is no anchor.)
 *   - Something in C: in `return_offset`, which is set for each call of the other kind and has no meaning but during it;
 *     3.11, which lacks the field, has `stacktop`, as in frames_settle.h. A new frame begins without it.
 *
 * Generators are no anchors: they live on while their callers change. The anchors of all threads are in one table, where
 * a newer one takes an older one's place.
 *
 * Threading: the ledger's lock.
 */
#ifndef HL_FRAMES_WALK_DEPTH_H
#define HL_FRAMES_WALK_DEPTH_H

typedef struct {
    const frame *frame;
    uint32_t depth; /* of the frame: 1 at the root */
} anchor;

enum { ANCHOR_BITS = 9, NEAREST = 8, SPREAD = 4, MOST_ON_A_WALK = 12 };

static anchor anchors[1 << ANCHOR_BITS];

static inline anchor *anchor_for(const frame *f)
{
    uint64_t spread = (uint64_t)(uintptr_t)f * UINT64_C(0x9e3779b97f4a7c15);
    return &anchors[spread >> (64 - ANCHOR_BITS)];
}

/* The first free place on the stack of a frame; NULL if that is not known, or if there is none. */
static inline uintptr_t *free_place(const frame *f)
{
    PyCodeObject *code = code_of(f);
    const void *end = f->localsplus + code->co_nlocalsplus + code->co_stacksize;
#if PY_VERSION_HEX < 0x030e0000
    const void *top = f->stacktop < 0 ? end : &f->localsplus[f->stacktop];
#else
    const void *top = f->stackpointer;
#endif
    return top < end ? (uintptr_t *)(uintptr_t)top : NULL;
}

typedef enum { NO_MARK, IN_RESULT, IN_FIELD } mark_place;

/* Where the mark of `f` is while it waits for `callee`, the frame that was made next, complete or not. While greenlets are
 * switched there may be no shim before a frame that was called from C; then what we take for the place of a result is at
 * least free. */
static inline mark_place place_of_mark(const frame *f, const frame *callee)
{
    if (f->owner != FRAME_OWNED_BY_THREAD)
        return NO_MARK;
#if PY_VERSION_HEX < 0x030c0000
    if (callee->is_entry)
        return f->stacktop < 0 ? IN_FIELD : NO_MARK; /* not negative while it is traced */
#else
    if (is_shim(callee))
        return IN_FIELD;
#endif
    return callee->owner == FRAME_OWNED_BY_THREAD && free_place(f) != NULL ? IN_RESULT : NO_MARK;
}

#if PY_VERSION_HEX < 0x030c0000
#define MARK_FIELD stacktop
#define FIELD_MARK(number) (SETTLED - 1 - (number))
#else
#define MARK_FIELD return_offset
#define FIELD_MARK(number) (UINT16_MAX - (number))
#endif

/* On the stack the mark is the address of the anchor, which is no object's; in the field it is the anchor's number. */
static inline bool is_anchored(const anchor *at, const frame *f, const frame *callee)
{
    if (HL_LIKELY(at->frame != f))
        return false;
    switch (place_of_mark(f, callee)) {
    case IN_RESULT:
        return *free_place(f) == (uintptr_t)at;
    case IN_FIELD:
        return f->MARK_FIELD == FIELD_MARK(at - anchors);
    default:
        return false;
    }
}

static void put_anchor(const frame *f, const frame *callee, uint32_t depth)
{
    anchor *at = anchor_for(f);
    *at = (anchor){.frame = f, .depth = depth};
    if (place_of_mark(f, callee) == IN_RESULT)
        *free_place(f) = (uintptr_t)at;
    else
        ((frame *)f)->MARK_FIELD = FIELD_MARK(at - anchors);
}

uint32_t hl_frames_depth(const void *of)
{
    struct {
        const frame *frame, *callee;
        uint32_t distance;
    } found[MOST_ON_A_WALK];
    uint32_t count = 0, distance = 0, next = NEAREST, below = 1;
    const frame *callee = of;
    for (const frame *f = callee->previous; f != NULL; callee = f, f = f->previous) {
        if (!is_complete(f))
            continue;
        distance++;
        const anchor *at = anchor_for(f);
        if (is_anchored(at, f, callee)) {
            below = at->depth;
            break;
        }
        if (distance >= next && count < MOST_ON_A_WALK && place_of_mark(f, callee) != NO_MARK) {
            found[count].frame = f;
            found[count].callee = callee;
            found[count++].distance = distance;
            next = distance * SPREAD;
        }
    }
    uint32_t depth = below + distance;
    while (count-- > 0)
        put_anchor(found[count].frame, found[count].callee, depth - found[count].distance);
    return depth;
}

#undef MARK_FIELD
#undef FIELD_MARK

#endif
