/* fuzz_ledger.c: any bytes, taken as the choices of a history of the ledger, beside the model of ledger_model.h.
 *
 * The first byte says which of the ledger's own allocations fail: every n-th, or none. Whatever the choices are, totals
 * and peak are the model's after each step, snapshots whenever one is chosen, and the invariants hold at the end:
 * looking at those visits every page there could be, which takes as long as a whole history.
 */

#include <limits.h>
#include <stdlib.h>

#define BLOCKS 120 /* few, so that most choices meet a block that is there */
#include "../core/ledger_model.h"

enum { STEPS = 40, NEVER = INT_MAX };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    if (!begin(1))
        abort();
    the_history.bytes = bytes + 1;
    the_history.end = bytes + length;
    check_failures = 0;
    while (the_history.bytes < the_history.end && check_failures == 0)
        run(&the_history, STEPS, NEVER, bytes[0] < 200 ? 0 : bytes[0] - 199);
    if (check_failures != 0 || hl_ledger_validate(&the_history.ledger) != NULL)
        abort();
    hl_ledger_close(&the_history.ledger);
    return 0;
}
