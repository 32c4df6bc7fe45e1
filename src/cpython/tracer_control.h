/* tracer_control.h: what the files of the tracer share: who may start and stop it, and how.
 *
 * Threading: everything here needs hl_tracer_control, and an attached thread state.
 */
#ifndef HL_TRACER_CONTROL_H
#define HL_TRACER_CONTROL_H

#include "../core/lock.h"
#include "../core/status.h"

extern hl_lock hl_tracer_control;
extern bool hl_tracer_for_windows; /* a window started the tracer, and nobody else has asked for it */

/* Start if it is not running, else see to it that the hooks are still there. */
hl_status hl_tracer_see_to_tracing(uint32_t nframe) HL_MUST_USE;
/* No-op when stopped. */
void hl_tracer_stop_tracing(void);

#endif
