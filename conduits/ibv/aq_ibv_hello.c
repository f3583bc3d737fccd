/*
 * aq_ibv_hello.c - the handshake of two ranks; see aq_ibv_hello.h.
 *
 * Wire      little endian: magic:32 from:32 to:32, step:8 count:8 rails:8 0:8, cell:64 cell_rkey:32
 *           window:32, then for each queue pair gid:16*8 number:32 psn:32 lid:16 kind:4 mtu:4
 *           reads:8; then the hash of all that:64
 * Threads   the caller's lock
 * Uses      other/spawn/aq_siphash.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_hello.h"

#include <string.h>

#include "other/spawn/aq_siphash.h"

#define AQ_IBV_MAGIC      0x31627661u /* "avb1" */
#define AQ_IBV_HELLO_HEAD 32u
#define AQ_IBV_HELLO_QP   28u
#define AQ_IBV_HELLO_MAC  8u
_Static_assert(AQ_IBV_HELLO_HEAD + AQ_IBV_QPS * AQ_IBV_HELLO_QP + AQ_IBV_HELLO_MAC
                   <= AQ_IBV_HELLO_BYTES,
               "a packet fits the smallest datagram");

/* --- numbers --- */

static void aq_ibv_hello_store(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t aq_ibv_hello_load(const uint8_t *at, unsigned bytes)
{
    return aq_siphash_word(at, bytes);
}

void aq_ibv_hello_key(const uint8_t job_key[32], uint32_t a, uint32_t b, uint8_t key_out[16])
{
    uint8_t what[16] = "ibv-hey";

    aq_ibv_hello_store(what + 8, a < b ? a : b, 4);
    aq_ibv_hello_store(what + 12, a < b ? b : a, 4);
    /* two hashes under the two halves of the job's key make a key of 16 bytes */
    aq_ibv_hello_store(key_out, aq_siphash(job_key, what, sizeof(what)), 8);
    aq_ibv_hello_store(key_out + 8, aq_siphash(job_key + 16, what, sizeof(what)), 8);
}

/* --- packets --- */

size_t aq_ibv_hello_encode(const struct aq_ibv_hello *hello, uint8_t packet_out[AQ_IBV_HELLO_BYTES])
{
    const struct aq_ibv_hello_info *info = &hello->local;
    uint8_t *at = packet_out;

    aq_ibv_hello_store(at, AQ_IBV_MAGIC, 4);
    aq_ibv_hello_store(at + 4, hello->me, 4);
    aq_ibv_hello_store(at + 8, hello->peer, 4);
    at[12] = (uint8_t)hello->step;
    at[13] = (uint8_t)info->count;
    at[14] = (uint8_t)info->rails;
    at[15] = 0;
    aq_ibv_hello_store(at + 16, info->cell, 8);
    aq_ibv_hello_store(at + 24, info->cell_rkey, 4);
    aq_ibv_hello_store(at + 28, info->window, 4);
    at += AQ_IBV_HELLO_HEAD;
    for (uint32_t i = 0; i < info->count; i++, at += AQ_IBV_HELLO_QP) {
        const struct aq_ibv_hello_qp *qp = &info->qps[i];

        memcpy(at, qp->gid, 16);
        aq_ibv_hello_store(at + 16, qp->number, 4);
        aq_ibv_hello_store(at + 20, qp->psn, 4);
        aq_ibv_hello_store(at + 24, qp->lid, 2);
        at[26] = (uint8_t)(qp->mtu | qp->gid_type << 4);
        at[27] = qp->reads;
    }
    aq_ibv_hello_store(at, aq_siphash(hello->key, packet_out, (size_t)(at - packet_out)), 8);
    return (size_t)(at - packet_out) + AQ_IBV_HELLO_MAC;
}

bool aq_ibv_hello_from(const uint8_t *packet, size_t len, uint32_t me, uint32_t *from_out)
{
    if (len < AQ_IBV_HELLO_HEAD + AQ_IBV_HELLO_MAC || aq_ibv_hello_load(packet, 4) != AQ_IBV_MAGIC
        || aq_ibv_hello_load(packet + 8, 4) != me)
        return false;
    *from_out = (uint32_t)aq_ibv_hello_load(packet + 4, 4);
    return true;
}

static bool aq_ibv_hello_decode(const struct aq_ibv_hello *hello, const uint8_t *packet, size_t len,
                                uint32_t *step_out, struct aq_ibv_hello_info *info)
{
    const size_t body = len - AQ_IBV_HELLO_MAC;
    const uint8_t *at = packet + AQ_IBV_HELLO_HEAD;
    uint32_t from;

    if (!aq_ibv_hello_from(packet, len, hello->me, &from) || from != hello->peer)
        return false;
    memset(info, 0, sizeof(*info));
    *step_out = packet[12];
    info->count = packet[13];
    info->rails = packet[14];
    if (*step_out < AQ_IBV_HELLO_ASK || *step_out > AQ_IBV_HELLO_READY || info->count == 0
        || info->count > AQ_IBV_QPS || info->rails == 0 || info->rails > info->count
        || body != AQ_IBV_HELLO_HEAD + info->count * AQ_IBV_HELLO_QP
        || aq_siphash(hello->key, packet, body) != aq_ibv_hello_load(packet + body, 8))
        return false;
    info->cell = aq_ibv_hello_load(packet + 16, 8);
    info->cell_rkey = (uint32_t)aq_ibv_hello_load(packet + 24, 4);
    info->window = (uint32_t)aq_ibv_hello_load(packet + 28, 4);
    for (uint32_t i = 0; i < info->count; i++, at += AQ_IBV_HELLO_QP) {
        struct aq_ibv_hello_qp *qp = &info->qps[i];

        memcpy(qp->gid, at, 16);
        qp->number = (uint32_t)aq_ibv_hello_load(at + 16, 4);
        qp->psn = (uint32_t)aq_ibv_hello_load(at + 20, 4);
        qp->lid = (uint16_t)aq_ibv_hello_load(at + 24, 2);
        qp->mtu = at[26] & 15;
        qp->gid_type = at[26] >> 4;
        qp->reads = at[27];
    }
    return true;
}

bool aq_ibv_hello_is_genuine(const uint8_t job_key[32], uint32_t me, uint32_t from,
                             const uint8_t *packet, size_t len)
{
    struct aq_ibv_hello probe = { .me = me, .peer = from };
    struct aq_ibv_hello_info info;
    uint32_t step;

    if (len < AQ_IBV_HELLO_HEAD + AQ_IBV_HELLO_MAC)
        return false;
    aq_ibv_hello_key(job_key, me, from, probe.key);
    return aq_ibv_hello_decode(&probe, packet, len, &step, &info);
}

/* --- the handshake --- */

void aq_ibv_hello_begin(struct aq_ibv_hello *hello, uint64_t now_ns,
                        const struct aq_ibv_hello_times *times)
{
    if (hello->step != AQ_IBV_HELLO_NONE)
        return;
    hello->step = AQ_IBV_HELLO_ASK;
    hello->next_ns = hello->since_ns = now_ns;
    hello->wait_ns = times->first_ns;
}

unsigned aq_ibv_hello_take(struct aq_ibv_hello *hello, const uint8_t *packet, size_t len)
{
    struct aq_ibv_hello_info info;
    unsigned events = 0;
    uint32_t step;

    if (hello->step == AQ_IBV_HELLO_NONE || !aq_ibv_hello_decode(hello, packet, len, &step, &info))
        return AQ_IBV_HELLO_BAD;
    if (hello->step == AQ_IBV_HELLO_ASK) {
        hello->remote = info;
        hello->step = AQ_IBV_HELLO_HAVE;
        events = AQ_IBV_HELLO_MET;
    } else if (memcmp(&info, &hello->remote, sizeof(info)) != 0) {
        return AQ_IBV_HELLO_BAD;
    }
    if (step != AQ_IBV_HELLO_ASK && hello->step != AQ_IBV_HELLO_READY) {
        hello->step = AQ_IBV_HELLO_READY;
        events |= AQ_IBV_HELLO_DONE;
    }
    hello->answer = hello->answer || step != AQ_IBV_HELLO_READY;
    return events;
}

bool aq_ibv_hello_due(struct aq_ibv_hello *hello, uint64_t now_ns,
                      const struct aq_ibv_hello_times *times)
{
    const bool repeats = (hello->step == AQ_IBV_HELLO_ASK || hello->step == AQ_IBV_HELLO_HAVE)
                         && now_ns >= hello->next_ns;
    const bool again = hello->again_ns != 0 && now_ns >= hello->again_ns;

    if (!repeats && !hello->answer && !again)
        return false;
    hello->answer = false;
    hello->again_ns = 0;
    hello->tries++;
    hello->next_ns = now_ns + hello->wait_ns;
    if (repeats)
        hello->wait_ns = hello->wait_ns * 2 > times->max_ns ? times->max_ns : hello->wait_ns * 2;
    return true;
}

void aq_ibv_hello_again(struct aq_ibv_hello *hello, uint64_t when_ns)
{
    hello->again_ns = when_ns;
}

uint64_t aq_ibv_hello_deadline(const struct aq_ibv_hello *hello)
{
    uint64_t deadline = hello->again_ns != 0 ? hello->again_ns : UINT64_MAX;

    if (hello->answer)
        return 0;
    if ((hello->step == AQ_IBV_HELLO_ASK || hello->step == AQ_IBV_HELLO_HAVE)
        && hello->next_ns < deadline)
        deadline = hello->next_ns;
    return deadline;
}
