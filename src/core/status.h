/* status.h: what a core function answers.
 *
 * Results travel through out-parameters, success through this enum. Core functions allocate first and mutate last, so
 * any answer but HL_OK means that nothing has changed that anybody can see. The binding maps each status to one Python exception; on the
 * hook path a failure is counted as a lost record and never reaches the host.
 */
#ifndef HL_STATUS_H
#define HL_STATUS_H

typedef enum {
    HL_OK = 0,
    HL_NO_MEMORY, /* the operating system gave us none */
    HL_FULL,      /* a table has no id left */
    HL_STOPPED,   /* the tracer is not running */
    HL_MALFORMED, /* what was read is not what it should be */
    HL_TOO_LARGE, /* a sum does not fit */
    HL_BUSY,      /* a signal handler has interrupted what it would need */
} hl_status;

#define HL_MUST_USE __attribute__((warn_unused_result))
/* The path of every allocation, which the compiler would rather share between the hooks. */
#define HL_INLINE static inline __attribute__((always_inline))
#define HL_LIKELY(x) __builtin_expect(!!(x), 1)
#define HL_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
