/* layers.h: how we put our hooks over the interpreter's allocators, and how we put them back.
 *
 * Other tools hook allocators too, above ours and below. A tool that stops may put back the allocators that it once
 * found, without our hooks. So from time to time we check whether calls still reach our hooks. If not, we put our hooks
 * on top again.
 *
 * Only a test call can tell, and it may be wrong, because an allocator above ours may serve some requests itself. After
 * a wrong test, our hooks are in the chain twice. If the lower hooks called what the upper hooks were put over, the
 * chain would be a circle. So we use layers: each layer is a separate set of functions, with its own originals, which
 * do not change.
 *
 *     top -> layer 1 -> another tool's -> layer 0 -> pymalloc
 *
 * Which layer enters a block? The first one that is called. The others are called from inside it, and only pass the
 * call on.
 *
 * A layer differs only in its functions from the allocator that it was put over. The context pointer is the same. So a
 * thread may copy the allocator's fields while we swap them (in the raw domain, or in an interpreter with its own GIL).
 * It sees some mixture of old and new fields, and every mixture works.
 *
 * Threading: each function says what it needs. hl_layers_survey runs other tools' code, so hold no lock when you call
 * it.
 */
#ifndef HL_LAYERS_H
#define HL_LAYERS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { HL_LAYERS = 6, HL_LAYER_DOMAINS = 3 };

/* The allocator that a layer was put over, by PyMemAllocatorDomain. It stays when the hooks are removed, because a
 * thread may still be inside a hook. */
extern PyMemAllocatorEx hl_layers_originals[HL_LAYERS][HL_LAYER_DOMAINS];
/* The functions of the layers (hooks.c). The context pointers are NULL. */
extern const PyMemAllocatorEx hl_layers_hooks[HL_LAYERS][HL_LAYER_DOMAINS];

/* What a survey found out about one domain. */
typedef struct {
    PyMemAllocatorEx top;
    uint32_t reached; /* bits of the layers that calls reach */
    bool always;      /* every call reached a layer */
} hl_survey;

/* Is one of our layers on top in every domain? Then no survey is needed. Needs an attached thread state. */
bool hl_layers_are_on_top(void);
/* Find out which layers calls reach. Needs an attached thread state. */
void hl_layers_survey(hl_survey survey[HL_LAYER_DOMAINS]);
/* Put a layer over each domain where some calls reach no layer, unless the domain has changed since the survey. Returns
 * true if no call in some domain reached a layer. Then we may have missed frees there. Needs the tracer's control. */
bool hl_layers_put(const hl_survey survey[HL_LAYER_DOMAINS]);
/* Like hl_layers_put, before the interpreter has started, when a survey is not possible yet. */
void hl_layers_put_before_main(void);
/* Remove the hooks, except where another tool has put its own on top. There our hooks stay and pass calls through.
 * Needs the tracer's control. */
void hl_layers_remove(void);

/* Call `what` while the object domain's malloc is the original one. The interpreter checks that pointer to find out
 * whether its allocator for small objects is in use. `what` must not allocate Python objects. In two cases the hooks
 * stay as they are during the call: in a process with several interpreters, because their allocations could be missed,
 * and where another tool's hooks are on top. Needs an attached thread state. */
void hl_layers_lift_object_malloc(void (*what)(void *), void *argument);

#endif
