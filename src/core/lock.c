/* lock.c: see lock.h. */

#include "lock.h"

__thread bool hl_lock_has_all;
