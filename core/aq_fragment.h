/*
 * aq_fragment.h - a payload that does not fit one packet: how it is cut into fragments, and how
 * they are put together.
 *
 * Fragments are of equal size, a multiple of 16 so that each begins aligned; the last one may be
 * shorter. Whoever puts a message together counts its bytes, so each fragment must arrive once:
 * losses and duplicates are the carrier's to repair. Where fragments arrive in order (ibv), one
 * message is open at a time, and aq_reassembly_follows() refuses a fragment that is not the next
 * one. Where they arrive in any order (udp), several are open, and the conduit finds the message by
 * its number. Where the payload lies meanwhile is the conduit's.
 *
 * Threads   pure functions, and the caller's lock of a struct aq_reassembly
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_FRAGMENT_H
#define AQ_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_FRAGMENT_ALIGN ((size_t)16)

/* --- cutting --- */

struct aq_fragment_cut {
    size_t each; /* bytes of every fragment but the last; one fragment: all */
    unsigned count;
};

/* Cut a payload of nbytes. whole_space: bytes of a payload that a packet has space for if it is
 * alone; fragment_space: if it is one of several, at least AQ_FRAGMENT_ALIGN. */
static inline struct aq_fragment_cut aq_fragment_cut(size_t nbytes, size_t whole_space,
                                                     size_t fragment_space)
{
    struct aq_fragment_cut cut = { .each = nbytes, .count = 1 };

    if (nbytes <= whole_space)
        return cut;
    cut.each = fragment_space & ~(AQ_FRAGMENT_ALIGN - 1);
    cut.count = (unsigned)((nbytes + cut.each - 1) / cut.each);
    return cut;
}

/* Bytes of the fragment that begins at byte at of a payload. */
static inline size_t aq_fragment_len(size_t each, size_t nbytes, size_t at)
{
    return nbytes - at < each ? nbytes - at : each;
}

/* --- putting together --- */

/* A message of which fragments have arrived. */
struct aq_reassembly {
    uint32_t total, got; /* bytes */
    uint8_t type;        /* the conduit's */
    void *payload;
};

static inline void aq_reassembly_open(struct aq_reassembly *message, uint8_t type, uint32_t total,
                                      void *payload)
{
    *message = (struct aq_reassembly){ .total = total, .type = type, .payload = payload };
}

/* Does a fragment say the same of its message as the first one did? */
static inline bool aq_reassembly_matches(const struct aq_reassembly *message, uint8_t type,
                                         uint32_t total)
{
    return message->type == type && message->total == total;
}

/* Is the fragment of nbytes that begins at byte at the next one, and within the message? */
static inline bool aq_reassembly_follows(const struct aq_reassembly *message, uint32_t at,
                                         uint32_t nbytes)
{
    return at == message->got && nbytes <= message->total - message->got;
}

/* The bytes of a fragment are in their place. Returns true if the message is complete. */
static inline bool aq_reassembly_add(struct aq_reassembly *message, uint32_t nbytes)
{
    message->got += nbytes;
    return message->got >= message->total;
}

#endif
