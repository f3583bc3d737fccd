/*
 * aq_ibv_qp.c - queue pairs: creation, connection, posting, completions; see aq_ibv_qp.h.
 *
 * Threads   posting under qp->lock; reaping under the rail's reap_lock
 * Uses      aq_ibv_error.h, aq_ibv_choose.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_qp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/ibv/aq_ibv_choose.h"
#include "core/aq_exit.h"

#define AQ_IBV_REAP_MAX 16 /* completions of one poll */
#if GASNET_DEBUG           /* credits exclude receiver-not-ready: here it shows a defect */
#define AQ_IBV_RNR_RETRY 0
#else
#define AQ_IBV_RNR_RETRY 7 /* for ever */
#endif
#define AQ_IBV_KEEP 2u /* slots reserved for credit updates, without which a peer could not go on */
#define AQ_IBV_SLOT_MASK     \
    (2 * AQ_IBV_QP_DEPTH_MAX \
     - 1) /* in wr_id: the slot; the other bits: the address of the queue pair */
_Static_assert(AQ_IBV_QP_ALIGN > AQ_IBV_SLOT_MASK,
               "a slot number fits the zero bits of an address");

/* --- posting --- */

static inline uint64_t aq_ibv_qp_id(const struct aq_ibv_qp *qp, uint32_t slot)
{
    return (uint64_t)(uintptr_t)qp | (slot & AQ_IBV_SLOT_MASK);
}

static bool aq_ibv_qp_claim(struct aq_ibv_rail *rail)
{
    if (aq_counter_add(&rail->send_claimed, 1) <= rail->send_space)
        return true;
    aq_counter_add(&rail->send_claimed, (uint64_t)-1);
    return false;
}

/* Is there space for count requests? Reaps completions if not. */
static bool aq_ibv_qp_has_space(struct aq_ibv_qp *qp, unsigned count, unsigned flags)
{
    const uint32_t keep = (flags & AQ_IBV_POST_RESERVE) != 0 ? 0 : AQ_IBV_KEEP;

    if (AQ_LIKELY(aq_ibv_qp_space(qp) >= count + keep))
        return true;
    (void)aq_ibv_qp_reap(qp->rail);
    return aq_ibv_qp_space(qp) >= count + keep;
}

static void aq_ibv_qp_post_failed(const struct aq_ibv_qp *qp, int error)
{
    char who[AQ_IBV_WHO];

    if (aq_exit_in_progress() || aq_ibv_error_is_known())
        return;
    aq_fatal("ibv: port %s:%u: a request to %s was not taken: %s%s", qp->rail->dev->name,
             qp->rail->port, aq_ibv_remote_who(qp->remote, who, sizeof(who)), strerror(error),
             error == ENOMEM
                 ? "; the device's queue is full, which counting should exclude: please report it"
                 : "");
}

int aq_ibv_qp_post(struct aq_ibv_qp *qp, struct ibv_send_wr *wr, unsigned count,
                   struct aq_ibv_done *done, unsigned flags)
{
    struct ibv_send_wr *bad, *last = wr;
    int rc = AQ_RETRY;
    bool signals;

    aq_lock_acquire(&qp->lock);
    if (AQ_UNLIKELY(!aq_ibv_qp_has_space(qp, count, flags)))
        goto unlock;
    signals =
        (flags & AQ_IBV_POST_SIGNAL) != 0 || qp->head + count - qp->signalled >= qp->depth / 4;
    if (signals && AQ_UNLIKELY(!aq_ibv_qp_claim(qp->rail))) {
        (void)aq_ibv_qp_reap(qp->rail);
        if (!aq_ibv_qp_claim(qp->rail))
            goto unlock;
    }
    for (struct ibv_send_wr *each = wr; each != NULL; each = each->next) {
        const uint32_t slot = qp->head & (qp->depth - 1);

        qp->waits[slot] = each->next == NULL ? done : (struct aq_ibv_done *)(uintptr_t)each->wr_id;
        each->wr_id = aq_ibv_qp_id(qp, qp->head++);
        qp->opcodes[slot] = (uint8_t)((unsigned)each->opcode | (flags & AQ_IBV_POST_NOTICE));
        last = each;
    }
    if (signals) {
        last->send_flags |= IBV_SEND_SIGNALED;
        qp->signalled = qp->head;
    }
    rc = ibv_post_send(qp->qp, wr, &bad);
    if (AQ_UNLIKELY(rc != 0))
        aq_ibv_qp_post_failed(qp, rc);
    rc = AQ_OK;
unlock:
    aq_lock_release(&qp->lock);
    return rc;
}

bool aq_ibv_qp_drained(struct aq_ibv_qp *qp)
{
    /* writes nothing: it completes, and with it all requests before it */
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
    bool idle, asked;

    if (!aq_lock_try(&qp->lock)) /* its owner may have stopped for good */
        return false;
    /* acquire: pairs with the release in aq_ibv_qp_retire() */
    idle = qp->head == atomic_load_explicit(&qp->tail, memory_order_acquire);
    asked = qp->signalled == qp->head;
    aq_lock_release(&qp->lock);
    if (!idle && !asked)
        (void)aq_ibv_qp_post(qp, &wr, 1, NULL,
                             AQ_IBV_POST_SIGNAL | AQ_IBV_POST_RESERVE
                                 | AQ_IBV_POST_NOTICE); /* no space: later */
    return idle;
}

/* --- completions --- */

/* All requests up to that of an id are complete. */
static unsigned aq_ibv_qp_retire(struct aq_ibv_qp *qp, uint64_t id)
{
    /* relaxed: it is written under the reap lock, which is held */
    const uint32_t tail = atomic_load_explicit(&qp->tail, memory_order_relaxed);
    const uint32_t count = (((uint32_t)id - tail) & AQ_IBV_SLOT_MASK) + 1;
    unsigned called = 0;

    for (uint32_t slot = tail; slot != tail + count; slot++) {
        struct aq_ibv_done *done = qp->waits[slot & (qp->depth - 1)];

        if (done != NULL) {
            done->fn(done);
            called++;
        }
    }
    /* release: pairs with the acquire in aq_ibv_qp_space(): these slots are free */
    atomic_store_explicit(&qp->tail, tail + count, memory_order_release);
    return called;
}

static const char *aq_ibv_qp_opcode(unsigned opcode)
{
    switch (opcode) {
    case IBV_WR_SEND:
        return "sending a message";
    case IBV_WR_RDMA_WRITE:
        return "an RDMA write";
    case IBV_WR_RDMA_READ:
        return "an RDMA read";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return "an atomic compare-and-swap";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return "an atomic fetch-and-add";
    default:
        return "an operation";
    }
}

/* A request has failed: the job ends soon. But true if it was a notice to a peer that has
 * disconnected: then it does not matter, and what was posted before it has arrived. */
static bool aq_ibv_qp_failed(const struct aq_ibv_rail *rail, const struct aq_ibv_qp *qp,
                             const struct ibv_wc *wc)
{
    const unsigned opcode = qp->opcodes[(uint32_t)wc->wr_id & (qp->depth - 1)];

    if ((opcode & AQ_IBV_POST_NOTICE) != 0 && aq_ibv_remote_disconnected(qp->remote))
        return true;
    aq_ibv_error_note(rail, aq_ibv_qp_opcode(opcode & ~AQ_IBV_POST_NOTICE), qp->remote, wc);
    return false;
}

unsigned aq_ibv_qp_reap(struct aq_ibv_rail *rail)
{
    struct ibv_wc wc[AQ_IBV_REAP_MAX];
    unsigned called = 0;
    int count;

    if (!aq_lock_try(&rail->reap_lock))
        return 0;
    do {
        count = ibv_poll_cq(rail->send_cq, AQ_IBV_REAP_MAX, wc);
        for (int i = 0; i < count; i++) {
            struct aq_ibv_qp *qp =
                (struct aq_ibv_qp *)(uintptr_t)(wc[i].wr_id & ~(uint64_t)AQ_IBV_SLOT_MASK);

            if (AQ_UNLIKELY(wc[i].status != IBV_WC_SUCCESS)) {
                if (aq_ibv_qp_failed(rail, qp, &wc[i]))
                    called += aq_ibv_qp_retire(qp, wc[i].wr_id);
                continue; /* the claim stays: whether it had one is not known */
            }
            called += aq_ibv_qp_retire(qp, wc[i].wr_id);
            aq_counter_add(&rail->send_claimed, (uint64_t)-1);
        }
    } while (count == AQ_IBV_REAP_MAX);
    aq_lock_release(&rail->reap_lock);
    if (AQ_UNLIKELY(count < 0))
        aq_fatal("ibv: port %s:%u: its completion queue cannot be read", rail->dev->name,
                 rail->port);
    return called;
}

/* --- creation --- */

/* Local pieces that a device takes, of those that the settings allow; a message has two. */
static uint32_t aq_ibv_qp_gather(const struct aq_ibv_qp_config *config, int device)
{
    const uint32_t wanted = MAX(config->gather_max, 2u);

    return device < (int)wanted ? (uint32_t)MAX(device, 1) : wanted;
}

static void aq_ibv_qp_note_gather(struct aq_ibv_qp *qp, const struct aq_ibv_qp_config *config)
{
    const struct ibv_device_attr *device = &qp->rail->dev->attr;
    const int reads = device->max_sge_rd > 0 ? device->max_sge_rd : device->max_sge;

    if (config->gather_max < 2) {
        qp->max_gather[0] = qp->max_gather[1] = 1;
        return;
    }
    qp->max_gather[0] = (uint8_t)aq_ibv_qp_gather(config, device->max_sge);
    qp->max_gather[1] = (uint8_t)aq_ibv_qp_gather(config, MIN(reads, device->max_sge));
}

static struct ibv_qp *aq_ibv_qp_new(const struct aq_ibv_qp_config *config,
                                    const struct aq_ibv_rail *rail,
                                    const struct aq_ibv_remote *remote,
                                    struct ibv_qp_init_attr *attr)
{
    *attr = (struct ibv_qp_init_attr){ .qp_context = (void *)(uintptr_t)remote,
                                       .send_cq = rail->send_cq,
                                       .recv_cq = rail->recv_cq,
                                       .srq = rail->srq,
                                       .qp_type = IBV_QPT_RC };
    attr->cap.max_send_wr = config->depth;
    attr->cap.max_send_sge = aq_ibv_qp_gather(config, rail->dev->attr.max_sge);
    attr->cap.max_inline_data = config->inline_max;
    return rail->dev->lib->create_qp(rail->dev->pd, attr);
}

/* The device does not take such requests: shorter lists, then less inline data. False: there is no
 * less. */
static bool aq_ibv_qp_ask_for_less(struct aq_ibv_qp_config *config)
{
    if (config->gather_max > 2) {
        config->gather_max = 2;
        return true;
    }
    if (config->inline_max == 0)
        return false;
    config->inline_max = config->inline_max > 32 ? config->inline_max / 2 : 0;
    return true;
}

static void aq_ibv_qp_to_init(struct aq_ibv_qp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .pkey_index = qp->rail->pkey_index,
                                .port_num = qp->rail->port };
    char who[AQ_IBV_WHO];
    int error;

    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (qp->rail->dev->attr.atomic_cap != IBV_ATOMIC_NONE)
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    error = qp->rail->dev->lib->modify_qp(
        qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0)
        aq_fatal("ibv: port %s:%u: a queue pair for %s cannot be initialised: %s",
                 qp->rail->dev->name, qp->rail->port,
                 aq_ibv_remote_who(qp->remote, who, sizeof(who)), strerror(error));
}

struct aq_ibv_qp *aq_ibv_qp_create(struct aq_ibv_qp_config *config, struct aq_ibv_rail *rail,
                                   const struct aq_ibv_remote *remote, uint32_t others)
{
    const size_t bytes = sizeof(struct aq_ibv_qp);
    struct aq_ibv_qp *qp = aligned_alloc(AQ_IBV_QP_ALIGN, aq_round_up(bytes, AQ_IBV_QP_ALIGN));
    struct ibv_qp_init_attr attr;
    char who[AQ_IBV_WHO];

    if (qp == NULL)
        aq_fatal("ibv: no memory for a queue pair: %zu bytes", bytes);
    memset(qp, 0, bytes);
    qp->remote = remote;
    qp->rail = rail;
    qp->depth = config->depth;
    qp->qp = aq_ibv_qp_new(config, rail, remote, &attr);
    while (qp->qp == NULL && (errno == EINVAL || errno == ENOMEM) && aq_ibv_qp_ask_for_less(config))
        qp->qp = aq_ibv_qp_new(config, rail, remote, &attr);
    if (qp->qp == NULL)
        aq_fatal("ibv: port %s:%u makes no queue pair for %s, after those for %u ranks: %s; the "
                 "device offers %d "
                 "in all: run fewer ranks on a host, or raise ulimit -l if that is the limit",
                 rail->dev->name, rail->port, aq_ibv_remote_who(remote, who, sizeof(who)), others,
                 strerror(errno), rail->dev->attr.max_qp);
    aq_ibv_qp_note_gather(qp, config);
    qp->max_inline = attr.cap.max_inline_data < config->inline_max ? attr.cap.max_inline_data
                                                                   : config->inline_max;
    aq_ibv_qp_to_init(qp);
    return qp;
}

void aq_ibv_qp_destroy(struct aq_ibv_qp *qp)
{
    const struct aq_ibv_dev *dev = qp->rail->dev;
    const int error = dev->lib->destroy_qp(qp->qp);

    if (error != 0)
        aq_warn("ibv: device %s: a queue pair cannot be freed: %s; please report it", dev->name,
                strerror(error));
    free(qp);
}

/* --- connection --- */

uint8_t aq_ibv_qp_reads(int64_t device, uint8_t other)
{
    const int64_t pref = aq_env_int(AQ_ENV_QP_RD_ATOM);
    int64_t reads = device < other ? device : other;

    if (pref > 0 && pref < reads)
        reads = pref;
    return (uint8_t)(reads < 255 ? reads : 255);
}

/* Ready to receive. */
static int aq_ibv_qp_to_receive(struct aq_ibv_qp *qp, const struct aq_ibv_hello_qp *remote)
{
    const struct aq_ibv_rail *rail = qp->rail;
    const int64_t served = rail->dev->attr.max_qp_rd_atom;
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
                                .dest_qp_num = remote->number,
                                .rq_psn = remote->psn,
                                .min_rnr_timer = 12 };

    attr.path_mtu = (enum ibv_mtu)remote->mtu < rail->mtu ? (enum ibv_mtu)remote->mtu : rail->mtu;
    attr.max_dest_rd_atomic =
        aq_ibv_qp_reads(served, 255); /* the peer was told this number and keeps to it */
    attr.ah_attr.dlid = remote->lid;
    attr.ah_attr.sl = rail->sl;
    attr.ah_attr.port_num = rail->port;
    if (rail->ethernet || remote->lid == 0) {
        attr.ah_attr.is_global = 1;
        memcpy(attr.ah_attr.grh.dgid.raw, remote->gid, 16);
        attr.ah_attr.grh.sgid_index = (uint8_t)rail->gid.index;
        attr.ah_attr.grh.hop_limit = 64;
    }
    return qp->rail->dev->lib->modify_qp(qp->qp, &attr,
                                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU
                                             | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                             | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* Ready to send. */
static int aq_ibv_qp_to_send(struct aq_ibv_qp *qp, const struct aq_ibv_hello_qp *remote,
                             uint32_t psn)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
                                .sq_psn = psn,
                                .rnr_retry = AQ_IBV_RNR_RETRY };

    attr.timeout = (uint8_t)(aq_env_int(AQ_ENV_QP_TIMEOUT) & 31);
    attr.retry_cnt = (uint8_t)(aq_env_int(AQ_ENV_QP_RETRY_COUNT) & 7);
    if (qp->rail->dev->software && attr.retry_cnt == 7)
        attr.retry_cnt = 6; /* rxe takes 7 for "for ever", which is so for rnr_retry only */
    attr.max_rd_atomic = aq_ibv_qp_reads(qp->rail->dev->attr.max_qp_init_rd_atom, remote->reads);
    qp->max_reads = attr.max_rd_atomic;
    return qp->rail->dev->lib->modify_qp(qp->qp, &attr,
                                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT
                                             | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                                             | IBV_QP_MAX_QP_RD_ATOMIC);
}

void aq_ibv_qp_join(struct aq_ibv_qp *qp, const struct aq_ibv_hello_qp *remote, uint32_t psn)
{
    const struct aq_ibv_rail *rail = qp->rail;
    char local_gid[64], remote_gid[64], who[AQ_IBV_WHO];
    int error;

    (void)aq_ibv_remote_who(qp->remote, who, sizeof(who));
    aq_ibv_gid_text(rail->gid.gid.raw, local_gid, sizeof(local_gid));
    aq_ibv_gid_text(remote->gid, remote_gid, sizeof(remote_gid));
    if (rail->ethernet != (remote->gid_type != AQ_IBV_GID_IB))
        aq_fatal("ibv: port %s:%u is %s, and the port of %s is not; choose ports of the same "
                 "network on all hosts "
                 "with GASNET_IBV_PORTS",
                 rail->dev->name, rail->port, rail->ethernet ? "Ethernet" : "InfiniBand", who);
    if (rail->ethernet && !aq_ibv_gid_alike(&rail->gid, remote->gid, remote->gid_type))
        aq_ibv_error_gid_types(rail, qp->remote, remote->gid, remote->gid_type);
    error = aq_ibv_qp_to_receive(qp, remote);
    if (error == 0)
        error = aq_ibv_qp_to_send(qp, remote, psn);
    if (error != 0)
        aq_fatal("ibv: port %s:%u (%s) cannot be connected with %s (%s): %s%s", rail->dev->name,
                 rail->port, local_gid, who, remote_gid, strerror(error),
                 error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH
                     ? "; no route leads to that address: name ports of one network with "
                       "GASNET_IBV_PORTS"
                     : "");
}
