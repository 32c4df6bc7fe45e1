/* plain.h: plain data as bytes, as far as the metadata of a process need it. docs/format.md, "Plain data", is the
 * specification. python/heapledger/_plain.py implements all of it.
 *
 * A dict is hl_plain_dict with its count, followed by as many keys and values in turn. A list works in the same way.
 *
 * Threading: no state of its own.
 */
#ifndef HL_PLAIN_H
#define HL_PLAIN_H

#include "hlsnap_bytes.h"

void hl_plain_dict(hl_hlsnap_buffer *to, size_t count);
void hl_plain_list(hl_hlsnap_buffer *to, size_t count);
void hl_plain_none(hl_hlsnap_buffer *to);
void hl_plain_bool(hl_hlsnap_buffer *to, bool value);
void hl_plain_int(hl_hlsnap_buffer *to, int64_t value);
/* A str. Bytes that are not UTF-8 become lone surrogates, as in Python's sys.argv. */
void hl_plain_text(hl_hlsnap_buffer *to, const char *bytes, size_t length);
/* The same for a terminated text. */
void hl_plain_word(hl_hlsnap_buffer *to, const char *text);

#endif
