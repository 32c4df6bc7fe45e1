/* tracer_control.h: what the tracer's files share: control, and the functions that start and stop the tracer.
 *
 * A thread needs control to start, stop or clear the tracer. It waits for control without the GIL, and no code of other
 * tools runs while a thread has control. So no thread waits forever. A fork does not take control. If another thread
 * was just starting or stopping, the child finds the tracer half started. The next call repairs this.
 *
 * Threading: everything here needs control and an attached thread state, unless it says otherwise.
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

extern bool hl_tracer_for_windows; /* a window started the tracer, and nothing else needs it */

/* Call this before you take control, because it runs other tools' code. It fills `survey` for
 * hl_tracer_see_to_tracing. */
void hl_tracer_prepare(hl_survey survey[HL_LAYER_DOMAINS]);
/* Start the tracer if it is not running. Else make sure that the hooks are still installed. */
hl_status hl_tracer_see_to_tracing(hl_tracer_options options, const hl_survey survey[HL_LAYER_DOMAINS]) HL_MUST_USE;
/* Call this after you have given control back, because it may run other tools' code too. */
void hl_tracer_finish(void);
/* Does nothing when stopped. */
void hl_tracer_stop_tracing(void);
/* Needs the ledger's lock, but not control. */
void hl_tracer_get_facts(hl_tracer_totals *totals);

#endif
