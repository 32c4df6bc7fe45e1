/* reftracer.h: objects that come from a freelist get the traceback of their new life (3.13 and later).
 *
 * The interpreter tells a reference tracer about every new object. There is one slot for tracers in the process: ours
 * calls the one it replaced. Earlier versions have no such hook, and these functions do nothing there.
 *
 * Threading: installing and removing need an attached thread state, and no lock, as they run other tools' tracers; the
 * tracer itself runs like a hook (hooks.h). Both are no-ops where they have nothing to do. Installing does nothing unless
 * we are tracing.
 */
#ifndef HL_REFTRACER_H
#define HL_REFTRACER_H

void hl_reftracer_install(void);
void hl_reftracer_remove(void);

#endif
