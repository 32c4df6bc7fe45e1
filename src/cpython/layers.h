/* layers.h: how our hooks get over the interpreter's allocators, and how they get there again.
 *
 * Other tools hook allocators too, above ours and below, and one that stops may put back what it once found, without
 * ours. So from time to time we look whether calls still come by, and if not we put our hooks on top. Only a call can
 * tell, and it may be wrong: an allocator above ours may serve some requests by itself. Then ours would be in the chain
 * twice, and the lower ones must not lead to what the upper ones were put over, or the chain would be a circle. Hence
 * layers: each is a set of functions of its own, with originals of its own that do not change.
 *
 *     top -> layer 1 -> another tool's -> layer 0 -> pymalloc
 *
 * Which layer enters a block? The first that is called: the others are called from inside it, and pass.
 *
 * A layer differs from the allocator that it was put over in its functions only; the context pointer is the same. So a
 * thread that copies the allocator's fields while we swap them (the raw domain, an interpreter with its own GIL) sees
 * some mixture of old and new, and every mixture works.
 *
 * Threading: as each function says. hl_layers_survey runs other tools' code: no lock may be held.
 */
#ifndef HL_LAYERS_H
#define HL_LAYERS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { HL_LAYERS = 6, HL_LAYER_DOMAINS = 3 };

/* What a layer was put over, by PyMemAllocatorDomain. It is never taken away with the hooks: a thread may still be
 * inside one. */
extern PyMemAllocatorEx hl_layers_originals[HL_LAYERS][HL_LAYER_DOMAINS];
/* Their functions (hooks.c). The contexts are NULL. */
extern const PyMemAllocatorEx hl_layers_hooks[HL_LAYERS][HL_LAYER_DOMAINS];

/* What was found out about one domain. */
typedef struct {
    PyMemAllocatorEx top;
    uint32_t reached; /* bits of the layers that calls come by */
    bool always;      /* every call came by one */
} hl_survey;

/* Is a layer of ours on top everywhere? Then there is nothing to find out. Needs an attached thread state. */
bool hl_layers_are_on_top(void);
/* Find out which layers calls come by. Needs an attached thread state. */
void hl_layers_survey(hl_survey survey[HL_LAYER_DOMAINS]);
/* Put a layer over each domain whose calls do not always come by one, unless the domain has changed since the survey.
 * Returns whether some domain's calls came by none: what was freed meanwhile is not known. Needs the tracer's
 * control. */
bool hl_layers_put(const hl_survey survey[HL_LAYER_DOMAINS]);
/* The same before the interpreter has started, when nothing can be called yet to find out who is there. */
void hl_layers_put_before_main(void);
/* Take the hooks off again, except where another tool has put its own on top: there they stay and pass through. Needs
 * the tracer's control. */
void hl_layers_remove(void);

/* Call `what` while the object domain's malloc is again the one we found: the interpreter tells by that pointer whether
 * its allocator for small objects is in use. `what` must not allocate Python objects. In a process with several
 * interpreters, whose allocations could be missed meanwhile, and where another tool's hooks are on top, it is called
 * all the same, with the hooks as they are. Needs an attached thread state. */
void hl_layers_lift_object_malloc(void (*what)(void *), void *argument);

#endif
