/* jumps.h: debuggers that make a frame continue at another line.
 *
 * The shadow assumes that a waiting frame does not move (frames_mark.h). Only one thing can move it: a trace function,
 * or a callback of sys.monitoring, sets `f_lineno` of the frame that waits for it. pdb's `jump` does so. The frame type
 * has a table with the function behind that attribute. We replace that function with ours, which calls the original and
 * makes the shadow forget what it saw. We never restore the original, because a thread may be inside our function.
 * Other code pays nothing for this.
 */
#ifndef HL_JUMPS_H
#define HL_JUMPS_H

/* Needs an attached thread state. A second call does nothing. */
void hl_jumps_watch(void);

#endif
