/* unmixed.h: the inverse of the core's hash, for tests that choose what collides. */
#ifndef HL_UNMIXED_H
#define HL_UNMIXED_H

#include <stdint.h>

/* Undo hl_mix. */
static uint64_t unmixed(uint64_t x)
{
    uint64_t inverse = 1; /* of the factor, modulo 2^64: each step doubles the bits that are right */
    for (int i = 0; i < 6; i++)
        inverse *= 2 - 0xd6e8feb86659fd93u * inverse;
    for (int i = 0; i < 2; i++)
        x = (x ^ x >> 32) * inverse;
    return x ^ x >> 32;
}

#endif
