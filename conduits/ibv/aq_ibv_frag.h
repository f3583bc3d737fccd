/*
 * aq_ibv_frag.h - messages of several fragments: how a payload is cut, and how it is put together.
 *
 * A payload that does not fit one buffer is cut as core/aq_fragment.h says. The fragments of one
 * peer and channel arrive in order and without loss, since a reliable connection carries them; a
 * fragment that is not the next one is a protocol error.
 *
 * Owner     the receiver keeps one open message for each peer and channel (struct aq_ibv_reasm *,
 *           NULL: none) and hands every fragment to aq_ibv_reasm_add()
 * Threads   a message: the caller's lock; the pool of message memory has its own lock
 * Uses      aq_ibv_packet.h, core/aq_bufpool.h, core/aq_fragment.h; knows neither devices nor
 *           peers, so that tests run it alone. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_FRAG_H
#define AQ_IBV_FRAG_H

#include "conduits/ibv/aq_ibv_packet.h"
#include "core/aq_bufpool.h"
#include "core/aq_fragment.h"

#define AQ_IBV_MAX_MEDIUM 65536u /* bytes */
/* fragments of a message of AQ_IBV_MAX_MEDIUM bytes with 16 arguments */
#define AQ_IBV_MSG_FRAGS 9u
/* credits that a message needs at once, with the one that aq_ibv_am_reserve() leaves */
#define AQ_IBV_WANT_MAX (AQ_IBV_MSG_FRAGS + 1)

/* --- cutting --- */

/* How a payload travels. */
struct aq_ibv_cut {
    uint8_t type; /* of each fragment */
    struct aq_fragment_cut base;
};

/* Cut a payload of nbytes with nargs arguments, in buffers of buf_size bytes. */
static inline struct aq_ibv_cut aq_ibv_cut(bool is_long, unsigned nargs, size_t nbytes,
                                           size_t buf_size)
{
    const uint8_t whole = is_long ? AQ_IBV_T_LONG : AQ_IBV_T_MEDIUM;
    const uint8_t frag = is_long ? AQ_IBV_T_LONG_FRAG : AQ_IBV_T_MEDIUM_FRAG;
    struct aq_ibv_cut cut;

    cut.base = aq_fragment_cut(nbytes, aq_ibv_data_space(whole, nargs, buf_size),
                               aq_ibv_data_space(frag, nargs, buf_size));
    cut.type = cut.base.count == 1 ? whole : frag;
    return cut;
}

/* --- putting together --- */

struct aq_ibv_reasm {
    struct aq_freelist_item item; /* while it is free */
    struct aq_reassembly base;    /* the payload of a medium is own, of a long its destination */
    _Alignas(16) uint8_t own[];   /* [AQ_IBV_MAX_MEDIUM] */
};

enum aq_ibv_reasm_result {
    AQ_IBV_REASM_MORE,     /* fragments are still to come */
    AQ_IBV_REASM_COMPLETE, /* *whole_out is the message; the caller gives it back */
    AQ_IBV_REASM_BAD,      /* not the next fragment of the message: nothing was written */
    AQ_IBV_REASM_NOMEM
};

/* Add a fragment to *open, which becomes NULL with the last one. The destination of a long message
 * was checked by the caller when *open was NULL. */
enum aq_ibv_reasm_result aq_ibv_reasm_add(struct aq_ibv_reasm **open,
                                          const struct aq_ibv_fragment *fragment,
                                          struct aq_ibv_reasm **whole_out);
/* A complete message has been handled. */
void aq_ibv_reasm_release(struct aq_ibv_reasm *reasm);
/* Free the cached memory. */
void aq_ibv_reasm_fini(void);

#endif
