/*
 * aq_vis_ref.h - internal header of non-contiguous transfers over active messages.
 *
 *     aq_vis_ref.c    transfers: their states, window, sending, completion
 *     aq_vis_frag.c   the requester: contents of the next message
 *     aq_vis_serve.c  the peer: reads the description of a fragment, scatters or gathers its bytes
 *
 * A message carries one *fragment* of a transfer: a description of where its bytes are at the peer,
 * followed in a put by the bytes. The description has one of three forms, in 8-byte words:
 *
 *     STRIDED    base, bytes of an element, position: element, byte; n counts, n strides
 *     ADDRESSES  length, n addresses
 *     RUNS       n times address, length
 *
 * Wire      VIS_PUT(transfer, form, n) + description + data -> VIS_ACK(transfer)
 *           VIS_GET(transfer, form, n, slot, nbytes) + description
 *               -> VIS_DATA(transfer, slot) + data
 *           VIS_NOTICE(handler) + payload
 * Uses      aq_vis.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_VIS_REF_H
#define AQ_VIS_REF_H

#include "extended/aq_vis.h"

#include "core/aq_am.h"

#define AQ_VIS_WINDOW 8 /* fragments of one transfer in flight */
#define AQ_WORD       ((size_t)8)

enum aq_vis_desc { AQ_VIS_DESC_STRIDED, AQ_VIS_DESC_ADDRESSES, AQ_VIS_DESC_RUNS, AQ_VIS_DESCS };

enum aq_vis_state { AQ_VIS_BUSY, AQ_VIS_READY, AQ_VIS_PARKED, AQ_VIS_WAITING };

/* The contents of one message. */
struct aq_vis_frag {
    enum aq_vis_desc form;
    unsigned n;
    size_t desc, data;      /* bytes */
    struct aq_vis_pos next; /* position in the peer's stream behind it */
};

/* A get's fragment in flight: the place of its bytes in this process. */
struct aq_vis_slot {
    struct aq_vis_pos at;
    size_t nbytes; /* 0: free */
};

struct aq_vis_transfer {
    struct aq_vis_transfer *next; /* while READY */
    struct aq_op *op;
    gex_Rank_t jobrank;
    bool is_put, counts_lc;
    uint8_t state;     /* under the lock */
    unsigned inflight; /* fragments; under the lock */
    size_t nbytes, sent, grain;
    struct aq_vis_side local, remote;
    struct aq_vis_pos local_at, remote_at;
    struct aq_vis_stage *stage; /* a fragment that found no credit, or NULL */
    struct aq_vis_frag frag;
    struct aq_vis_slot slot[AQ_VIS_WINDOW]; /* gets; under the lock */
    gex_AM_Index_t notice;                  /* peer completion; 0: none, or sent */
    size_t notice_size;
    char notice_payload[GEX_VIS_MAX_PEERCOMPLETION];
    uint64_t arrays[]; /* counts and strides of strided sides */
};

/* A buffer for one message. */
struct aq_vis_stage {
    struct aq_vis_stage *next;
    char bytes[];
};

static inline void aq_vis_put_word(char *to, size_t index, uint64_t value)
{
    memcpy(to + index * AQ_WORD, &value, AQ_WORD);
}

static inline uint64_t aq_vis_word(const char *from, size_t index)
{
    uint64_t value;

    memcpy(&value, from + index * AQ_WORD, AQ_WORD);
    return value;
}

/* --- staging buffers: aq_vis_ref.c --- */

/** aq_vis_stage_take, aq_vis_stage_give - allocates and frees a buffer for the largest message.
 * Any thread. */
struct aq_vis_stage *aq_vis_stage_take(void);
void aq_vis_stage_give(struct aq_vis_stage *stage);

/** aq_vis_stage_size - bytes of a buffer. Constant after aq_vis_init(). */
size_t aq_vis_stage_size(void);

/* --- fragments: aq_vis_frag.c --- */

/** aq_vis_frag_compose - describes the transfer's next fragment in a staging buffer,
 * transfer->stage, and gathers a put's data behind it. The transfer is BUSY. */
void aq_vis_frag_compose(struct aq_vis_transfer *transfer);

/* --- the peer: aq_vis_serve.c --- */

/** aq_vis_serve_init - registers the handlers of requests. */
void aq_vis_serve_init(void);

#endif
