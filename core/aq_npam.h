/*
 * aq_npam.h - messages with a negotiated payload between Prepare and Commit.
 *
 * A thread has two descriptors, as part of its struct aq_thread: while the Commit of a request
 * waits for credit it runs request handlers, which may prepare replies.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_NPAM_H
#define AQ_NPAM_H

#include <stdbool.h>

#include "gasnetex.h"

#include "core/aq_conduit.h"

struct aq_thread;

/* Where the payload of a descriptor is. */
enum aq_npam_source {
    AQ_NPAM_CLOSED, /* no descriptor is open */
    AQ_NPAM_CLIENT, /* in the client's memory: Commit sends like any other message */
    AQ_NPAM_THREAD, /* in the thread's own buffer: likewise */
    AQ_NPAM_CONDUIT /* in a buffer of the conduit, or in the client's memory to be copied there */
};

/* The object behind gex_AM_SrcDesc_t. */
struct aq_srcdesc {
    struct aq_srcdesc_public head;
    uint8_t source; /* enum aq_npam_source */
    uint8_t kind;   /* enum aq_am_kind */
    uint8_t is_reply;
    uint8_t nargs;
    gex_Flags_t flags;
    gex_Rank_t jobrank;
    gex_Event_t *lc_opt;
    void *dest;                 /* long: the destination, or NULL if Prepare was not told */
    gex_Token_t token;          /* token of the request that is replied to */
    struct aq_am_buffer buffer; /* AQ_NPAM_CONDUIT */
    void *own; /* the thread's own buffer of max_medium bytes; NULL until it is needed, then kept */
};

/* Allocates the own buffer of a thread's descriptor. */
void *aq_npam_make_own(struct aq_srcdesc *sd);

static inline void *aq_npam_own(struct aq_srcdesc *sd)
{
    return AQ_LIKELY(sd->own != NULL) ? sd->own : aq_npam_make_own(sd);
}

/* A thread ends: frees what it has prepared. */
void aq_npam_thread_exit(struct aq_thread *thread);

#endif
