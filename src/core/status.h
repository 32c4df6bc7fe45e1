/* status.h: what a core function returns.
 *
 * Results come through out-parameters, success through this enum. Core functions allocate first and change last. So
 * any result but HL_OK means that nothing visible has changed. The binding maps each status to one Python exception.
 * On the path of a hook a failure is counted as a lost record and never reaches the host.
 */
#ifndef HL_STATUS_H
#define HL_STATUS_H

typedef enum {
    HL_OK = 0,
    HL_NO_MEMORY, /* the operating system has no memory left */
    HL_FULL,      /* a table has no id left */
    HL_STOPPED,   /* the tracer is not running */
    HL_MALFORMED, /* the input is not valid */
    HL_TOO_LARGE, /* a sum does not fit */
    HL_BUSY,      /* a signal handler has interrupted code that holds what it needs */
} hl_status;

#define HL_MUST_USE __attribute__((warn_unused_result))
/* For the path of every allocation. Without it, the compiler would share the code between the hooks. */
#define HL_INLINE static inline __attribute__((always_inline))
/* On the rare branch of a condition: keep it apart from the usual one. Otherwise the compiler loads what both need into
 * registers before the condition, or makes a conditional move of it, and the usual branch takes more instructions. */
#define HL_APART __asm__ volatile("" ::: "memory")
#define HL_LIKELY(x) __builtin_expect(!!(x), 1)
#define HL_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
