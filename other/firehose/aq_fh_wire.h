/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_wire.h - the messages of firehose, as they are in memory: ranks of a job have one byte
 * order.
 *
 *   MOVE     struct aq_fh_wire_move, ids of the regions given up, data of a put
 *            -> struct aq_fh_wire_reply, data of a get
 *   RELEASE  the same without a request for a region -> struct aq_fh_wire_reply
 *   RECALL   struct aq_fh_wire_recall, ids -> struct aq_fh_wire_recall
 *
 * The requests of a pair of ranks, and their answers, may arrive in any order: what a message gives
 * up pays for what it asks for, and an id is used again only after the answer to its release. A
 * recall may arrive before the answer to the move.
 */
#ifndef AQ_FH_WIRE_H
#define AQ_FH_WIRE_H

#include <stdint.h>

#include "other/firehose/aq_fh.h"

enum aq_fh_wire_kind { AQ_FH_MOVE = 1, AQ_FH_RELEASE, AQ_FH_RECALL };

struct aq_fh_wire_move {
    uint8_t kind;
    uint8_t write;
    uint16_t victims; /* ids that follow */
    uint32_t id;      /* RELEASE: of one of the victims */
    uint64_t start;   /* the region that would be best; a page */
    uint32_t pages;
    uint32_t first, min; /* of it the pages that it must have */
    uint32_t data;       /* bytes of a put that follow, or of a get that are wanted in the answer */
    uint64_t addr;       /* theirs */
};

struct aq_fh_wire_reply {
    uint8_t kind;
    uint8_t write;
    uint8_t once; /* to be given up after its first use */
    int8_t rc;    /* AQ_OK, AQ_RETRY, negative */
    uint32_t id;
    uint64_t start;
    uint32_t pages;
    uint32_t data; /* bytes that were written, or that follow */
    uint32_t key[AQ_FH_RAILS];
};

struct aq_fh_wire_recall {
    uint8_t kind;
    uint8_t unused[3];
    uint32_t count; /* ids that follow; in the answer: of the request */
};

#endif
