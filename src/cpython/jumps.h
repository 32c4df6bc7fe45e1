/* jumps.h: debuggers that make a frame go on at another line.
 *
 * The shadow takes it that a frame which waits stands still (frames_mark.h). One thing moves it: a trace function, or
 * a callback of sys.monitoring, that sets `f_lineno` of the frame that waits for it, as pdb's `jump` does. The function
 * behind that attribute stands in a table of the frame type. Ours takes its place there, calls it and has the shadow
 * forget what it saw. It stays for good, as somebody may be inside, and costs nothing elsewhere.
 */
#ifndef HL_JUMPS_H
#define HL_JUMPS_H

/* To be called with an attached thread state; a second call does nothing. */
void hl_jumps_watch(void);

#endif
