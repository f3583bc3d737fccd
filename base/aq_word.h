/*
 * aq_word.h - copies that do not tear aligned words.
 *
 * A transfer of 1, 2, 4 or 8 bytes aligned to their size is never seen half written by a thread of
 * the owner that reads at the same moment.
 *
 * Order     a word may be a flag for earlier transfers, which another thread of the owner may read,
 *           or may have written, without a message. Writes are therefore releases, reads acquires
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_WORD_H
#define AQ_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t __attribute__((may_alias)) aq_word2;
typedef uint32_t __attribute__((may_alias)) aq_word4;
typedef uint64_t __attribute__((may_alias)) aq_word8;

static inline bool aq_is_word(const void *addr, size_t nbytes)
{
    return nbytes <= 8 && (nbytes & (nbytes - 1)) == 0 && ((uintptr_t)addr & (nbytes - 1)) == 0;
}

/* Copies to memory that others may read. */
static inline void aq_word_write(void *dest, const void *src, size_t nbytes)
{
    uint64_t word = 0;

    if (!aq_is_word(dest, nbytes)) {
        memcpy(dest, src, nbytes);
        return;
    }
    memcpy(&word, src, nbytes);
    switch (nbytes) {
    case 1:
        __atomic_store((uint8_t *)dest, (uint8_t *)&word, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store((aq_word2 *)dest, (aq_word2 *)&word, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store((aq_word4 *)dest, (aq_word4 *)&word, __ATOMIC_RELEASE);
        break;
    case 8:
        __atomic_store((aq_word8 *)dest, (aq_word8 *)&word, __ATOMIC_RELEASE);
        break;
    }
}

/* Copies from memory that others may write. */
static inline void aq_word_read(void *dest, const void *src, size_t nbytes)
{
    uint64_t word = 0;

    if (!aq_is_word(src, nbytes)) {
        memcpy(dest, src, nbytes);
        return;
    }
    switch (nbytes) {
    case 1:
        __atomic_load((const uint8_t *)src, (uint8_t *)&word, __ATOMIC_ACQUIRE);
        break;
    case 2:
        __atomic_load((const aq_word2 *)src, (aq_word2 *)&word, __ATOMIC_ACQUIRE);
        break;
    case 4:
        __atomic_load((const aq_word4 *)src, (aq_word4 *)&word, __ATOMIC_ACQUIRE);
        break;
    case 8:
        __atomic_load((const aq_word8 *)src, (aq_word8 *)&word, __ATOMIC_ACQUIRE);
        break;
    }
    memcpy(dest, &word, nbytes);
}

#endif
