/* layers.c: see layers.h. */

#include "layers.h"

#include <string.h>

#include "hooks.h"

PyMemAllocatorEx hl_layers_originals[HL_LAYERS][HL_LAYER_DOMAINS];

static const PyMemAllocatorDomain domains[HL_LAYER_DOMAINS] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

enum { NO_LAYER = -1 };

static int layer_of(PyMemAllocatorDomain which, const PyMemAllocatorEx *allocator)
{
    for (int layer = 0; layer < HL_LAYERS; layer++)
        if (allocator->malloc == hl_layers_hooks[layer][which].malloc)
            return layer;
    return NO_LAYER;
}

bool hl_layers_are_on_top(void)
{
    for (int i = 0; i < HL_LAYER_DOMAINS; i++) {
        PyMemAllocatorEx top;
        PyMem_GetAllocator(domains[i], &top);
        if (layer_of(domains[i], &top) == NO_LAYER)
            return false;
    }
    return true;
}

/* The layers of the domain that one request reaches. Calls that reach the raw domain's layers say nothing about the
 * other domains, because the interpreter's own allocator for objects passes large requests on to the raw one. */
static uint32_t layers_called(PyMemAllocatorDomain which, const PyMemAllocatorEx *top, size_t size)
{
    enum { ALL = (1 << HL_LAYERS) - 1 };
    hl_this_thread.probed[which] = 0;
    void *block = top->malloc(top->ctx, size);
    if (block == NULL)
        return ALL; /* we do not know, so put no second layer there */
    top->free(top->ctx, block);
    return hl_this_thread.probed[which];
}

void hl_layers_survey(hl_survey survey[HL_LAYER_DOMAINS])
{
    /* Small and large requests, for the interpreter and for tools that keep a reserve. None is so large that the C
     * library maps pages for it, because that would change its thresholds permanently. */
    static const size_t sizes[] = {1, 64, 512, 4096, 65536};
    hl_this_thread.inside++; /* our hooks pass calls through and note that they were called */
    for (int i = 0; i < HL_LAYER_DOMAINS; i++) {
        hl_survey *found = &survey[domains[i]];
        *found = (hl_survey){.always = true};
        PyMem_GetAllocator(domains[i], &found->top);
        if (layer_of(domains[i], &found->top) != NO_LAYER)
            continue;
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            uint32_t called = layers_called(domains[i], &found->top, sizes[j]);
            found->reached |= called;
            found->always &= called != 0;
        }
    }
    hl_this_thread.inside--;
}

static bool is_over(int layer, PyMemAllocatorDomain which, const PyMemAllocatorEx *allocator)
{
    return memcmp(&hl_layers_originals[layer][which], allocator, sizeof *allocator) == 0;
}

/* Choose a layer to put over `top`. Calls to `top` already reach the layers in `reached`. Prefer the layer that was
 * over `top` before, then a layer that was never used. If there is none, reuse a layer that calls do not reach. By
 * then, so many allocators were on top that the one below that layer is not expected to come back. */
static int choose_layer(PyMemAllocatorDomain which, const PyMemAllocatorEx *top, uint32_t reached)
{
    static int last[HL_LAYER_DOMAINS];
    for (int layer = 0; layer < HL_LAYERS; layer++)
        if (is_over(layer, which, top) && (reached >> layer & 1) == 0)
            return layer;
    for (int layer = 0; layer < HL_LAYERS; layer++)
        if (hl_layers_originals[layer][which].malloc == NULL)
            return layer;
    for (int i = 0; i < HL_LAYERS; i++) {
        last[which] = (last[which] + 1) % HL_LAYERS;
        if ((reached >> last[which] & 1) == 0)
            return last[which];
    }
    return NO_LAYER;
}

static void put_over(PyMemAllocatorDomain which, const PyMemAllocatorEx *top, uint32_t reached)
{
    int layer = choose_layer(which, top, reached);
    if (layer == NO_LAYER)
        return;
    if (!is_over(layer, which, top)) {
        hl_layers_originals[layer][which] = *top;
        if (hl_os_has_barrier())
            hl_os_barrier(); /* a thread that sees the hook also sees its original */
    }
    PyMemAllocatorEx ours = hl_layers_hooks[layer][which];
    ours.ctx = top->ctx;
    PyMem_SetAllocator(which, &ours);
}

bool hl_layers_put(const hl_survey survey[HL_LAYER_DOMAINS])
{
    bool gone = false;
    for (int i = 0; i < HL_LAYER_DOMAINS; i++) {
        const hl_survey *found = &survey[domains[i]];
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        if (found->always || memcmp(&now, &found->top, sizeof now) != 0)
            continue;
        put_over(domains[i], &now, found->reached);
        gone |= found->reached == 0;
    }
    return gone;
}

void hl_layers_put_before_main(void)
{
    for (int i = 0; i < HL_LAYER_DOMAINS; i++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        put_over(domains[i], &now, 0);
    }
}

void hl_layers_remove(void)
{
    for (int i = 0; i < HL_LAYER_DOMAINS; i++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator(domains[i], &now);
        int layer = layer_of(domains[i], &now);
        if (layer != NO_LAYER) {
            PyMemAllocatorEx original = hl_layers_originals[layer][domains[i]];
            PyMem_SetAllocator(domains[i], &original);
        }
    }
}

void hl_layers_lift_object_malloc(void (*what)(void *), void *argument)
{
    PyMemAllocatorEx ours, lifted;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &ours);
    int layer = layer_of(PYMEM_DOMAIN_OBJ, &ours);
    bool alone = PyInterpreterState_Next(PyInterpreterState_Head()) == NULL;
    bool lift = alone && layer != NO_LAYER;
    if (lift) {
        lifted = ours; /* blocks that are freed meanwhile still reach our hook */
        lifted.malloc = hl_layers_originals[layer][PYMEM_DOMAIN_OBJ].malloc;
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &lifted);
    }
    what(argument);
    if (lift)
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
}
