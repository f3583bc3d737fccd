/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_siphash.h - a short keyed hash: without the key a message can neither be made nor changed.
 * Threads   pure function
 * Uses      nothing: programs need no further library for it
 * See       J.-P. Aumasson, D. J. Bernstein: SipHash: a fast short-input PRF (2012)
 */
#ifndef AQ_SIPHASH_H
#define AQ_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t aq_siphash_rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void aq_siphash_round(uint64_t v[4], int times)
{
    while (times-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = aq_siphash_rotate(v[1], 13) ^ v[0];
        v[3] = aq_siphash_rotate(v[3], 16) ^ v[2];
        v[0] = aq_siphash_rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = aq_siphash_rotate(v[1], 17) ^ v[2];
        v[3] = aq_siphash_rotate(v[3], 21) ^ v[0];
        v[2] = aq_siphash_rotate(v[2], 32);
    }
}

static inline uint64_t aq_siphash_word(const uint8_t *bytes, size_t count)
{
    uint64_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/** aq_siphash - SipHash-2-4 of len bytes under a key of 16. */
static inline uint64_t aq_siphash(const uint8_t key[16], const void *data, size_t len)
{
    const uint8_t *bytes = data;
    uint64_t k0 = aq_siphash_word(key, 8), k1 = aq_siphash_word(key + 8, 8), word;
    uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                      k1 ^ 0x7465646279746573u };

    for (size_t left = len; left >= 8; left -= 8, bytes += 8) {
        word = aq_siphash_word(bytes, 8);
        v[3] ^= word;
        aq_siphash_round(v, 2);
        v[0] ^= word;
    }
    word = aq_siphash_word(bytes, len % 8) | (uint64_t)len << 56;
    v[3] ^= word;
    aq_siphash_round(v, 2);
    v[0] ^= word;
    v[2] ^= 0xff;
    aq_siphash_round(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
