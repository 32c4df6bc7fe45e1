/* tracer_control.h: what the files of the tracer share: who may start and stop it, and how.
 *
 * Whoever starts, stops or clears holds control. It waits for control without the GIL, and nothing of another tool's
 * runs while control is held: so nobody waits for ever. A fork does not take control. If another thread was just
 * starting or stopping, the child finds the tracer half started, which the next call makes good.
 *
 * Threading: everything here needs control, and an attached thread state, unless it says otherwise.
 */
#ifndef HL_TRACER_CONTROL_H
#define HL_TRACER_CONTROL_H

#include "../core/lock.h"
#include "../core/status.h"
#include "layers.h"
#include "tracer.h"

/* Any thread. */
void hl_tracer_take_control(void);
void hl_tracer_give_control(void);

extern bool hl_tracer_for_windows; /* a window started the tracer, and nobody else has asked for it */

/* What must be found out before control is taken, as it runs other tools' code: hl_tracer_see_to_tracing's `survey`. */
void hl_tracer_prepare(hl_survey survey[HL_LAYER_DOMAINS]);
/* Start if it is not running, else see to it that the hooks are still there. */
hl_status hl_tracer_see_to_tracing(hl_tracer_options options, const hl_survey survey[HL_LAYER_DOMAINS]) HL_MUST_USE;
/* What is left to be done when control was given back, and for the same reason. */
void hl_tracer_finish(void);
/* No-op when stopped. */
void hl_tracer_stop_tracing(void);
/* Under the ledger's lock; control is not needed. */
void hl_tracer_get_facts(hl_tracer_totals *totals);

#endif
