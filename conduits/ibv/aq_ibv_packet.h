/*
 * aq_ibv_packet.h - the format of active messages between two ranks, and its checks.
 *
 * A message is one fragment, or several for a payload that does not fit one buffer. A fragment is a
 * head, the arguments, the fields of its type, and data:
 *
 *     SHORT    head, args
 *     MEDIUM   head, args, padding to 16, payload
 *     LONG     head, address, args, padding to 16, payload: the receiver places it
 *     PLACED   head, address, args: the payload was written before
 *     FRAG     head, address, total:32 at:32, args, padding to 16, data: of a medium (no address)
 *              or long payload
 *     CONTROL  head: credits that are asked for (want) or given up (skip)
 *
 * All ranks have the byte order of this one: verbs carry bytes, and hosts of two byte orders do not
 * share a job. The fragments of one channel and peer arrive in order. Each is checked once, by
 * aq_ibv_packet_read(); later code relies on the check.
 *
 * Threads   none of its own
 * Uses      aq_ibv_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_PACKET_H
#define AQ_IBV_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_credit.h"
#include "gasnetex.h"

#define AQ_IBV_ARGS 16u

enum aq_ibv_type {
    AQ_IBV_T_SHORT = 1,
    AQ_IBV_T_MEDIUM,
    AQ_IBV_T_LONG,
    AQ_IBV_T_PLACED,
    AQ_IBV_T_MEDIUM_FRAG,
    AQ_IBV_T_LONG_FRAG,
    AQ_IBV_T_CONTROL,
    AQ_IBV_T_COUNT
};

#define AQ_IBV_F_REPLY      1u /* the channel */
#define AQ_IBV_F_CREDIT_LOW 2u /* the sender's last credit, except for the reserve */

struct aq_ibv_head {
    uint8_t type, handler, nargs, flags;
    uint32_t from;                     /* rank */
    uint32_t credits[AQ_IBV_CHANNELS]; /* limits for the receiver of this */
    uint16_t skip, want;               /* see aq_ibv_credit.h */
    uint32_t nbytes;                   /* of payload: in this fragment; PLACED: as written */
};
_Static_assert(sizeof(struct aq_ibv_head) == 24, "the wire has no holes");

/* A fragment taken apart. */
struct aq_ibv_fragment {
    struct aq_ibv_head head;
    uint64_t address;   /* long */
    uint32_t total, at; /* FRAG */
    const gex_AM_Arg_t *args;
    uint8_t *data;
};

/* The channel that a fragment belongs to. */
static inline unsigned aq_ibv_fragment_channel(const struct aq_ibv_fragment *fragment)
{
    return (fragment->head.flags & AQ_IBV_F_REPLY) != 0 ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
}

static inline bool aq_ibv_type_is_frag(unsigned type)
{
    return type == AQ_IBV_T_MEDIUM_FRAG || type == AQ_IBV_T_LONG_FRAG;
}

static inline bool aq_ibv_type_has_address(unsigned type)
{
    return type == AQ_IBV_T_LONG || type == AQ_IBV_T_PLACED || type == AQ_IBV_T_LONG_FRAG;
}

static inline bool aq_ibv_type_has_data(unsigned type)
{
    return type == AQ_IBV_T_MEDIUM || type == AQ_IBV_T_LONG || aq_ibv_type_is_frag(type);
}

/* Where the arguments begin. */
static inline size_t aq_ibv_args_at(unsigned type)
{
    return sizeof(struct aq_ibv_head) + (aq_ibv_type_has_address(type) ? 8 : 0)
           + (aq_ibv_type_is_frag(type) ? 8 : 0);
}

/* Where data begins, or the fragment ends. */
static inline size_t aq_ibv_data_at(unsigned type, unsigned nargs)
{
    const size_t end = aq_ibv_args_at(type) + nargs * sizeof(gex_AM_Arg_t);

    return aq_ibv_type_has_data(type) ? (end + 15) & ~(size_t)15 : end;
}

/* Data that fits a fragment of so many bytes. */
static inline size_t aq_ibv_data_space(unsigned type, unsigned nargs, size_t bytes)
{
    return bytes - aq_ibv_data_at(type, nargs);
}

/* Everything before the data; returns where that goes. */
static inline uint8_t *aq_ibv_packet_write(uint8_t *packet, const struct aq_ibv_fragment *fragment)
{
    const struct aq_ibv_head *head = &fragment->head;
    uint8_t *at = packet + sizeof(*head);
    const size_t end = aq_ibv_data_at(head->type, head->nargs);

    memcpy(packet, head, sizeof(*head));
    if (aq_ibv_type_has_address(head->type)) {
        memcpy(at, &fragment->address, 8);
        at += 8;
    }
    if (aq_ibv_type_is_frag(head->type)) {
        memcpy(at, &fragment->total, 4);
        memcpy(at + 4, &fragment->at, 4);
        at += 8;
    }
    if (head->nargs != 0) {
        memcpy(at, fragment->args, head->nargs * sizeof(gex_AM_Arg_t));
        at += head->nargs * sizeof(gex_AM_Arg_t);
    }
    if (packet + end > at)
        memset(at, 0, (size_t)(packet + end - at));
    return packet + end;
}

/* Is a fragment well-formed? packet is aligned to 16; max_medium, max_long: at least every rank's
 * limits. */
static inline bool aq_ibv_packet_read(uint8_t *packet, size_t len, uint32_t ranks,
                                      size_t max_medium, size_t max_long,
                                      struct aq_ibv_fragment *out)
{
    const struct aq_ibv_head *head = &out->head;
    const uint8_t *at = packet + sizeof(*head);
    size_t data_at;

    if (len < sizeof(*head))
        return false;
    memcpy(&out->head, packet, sizeof(*head));
    if (head->type == 0 || head->type >= AQ_IBV_T_COUNT || head->nargs > AQ_IBV_ARGS
        || head->from >= ranks)
        return false;
    data_at = aq_ibv_data_at(head->type, head->nargs);
    if (len < data_at
        || (aq_ibv_type_has_data(head->type) ? len - data_at != head->nbytes : len != data_at))
        return false;
    out->address = 0;
    out->total = head->nbytes;
    out->at = 0;
    if (aq_ibv_type_has_address(head->type)) {
        memcpy(&out->address, at, 8);
        at += 8;
    }
    if (aq_ibv_type_is_frag(head->type)) {
        memcpy(&out->total, at, 4);
        memcpy(&out->at, at + 4, 4);
        at += 8;
        if (head->nbytes == 0 || out->at > out->total || head->nbytes > out->total - out->at)
            return false;
    }
    out->args = (const gex_AM_Arg_t *)(const void *)at;
    out->data = packet + data_at;
    return out->total <= (aq_ibv_type_has_address(head->type) ? max_long : max_medium);
}

#endif
