/*
 * aq_ibv_dgram.c - datagrams between connectors: an unreliable-datagram queue pair on the first
 * rail.
 *
 * It needs no connection and no state for a peer that says nothing. Datagrams may be lost, and the
 * handshake repeats them; a datagram that finds no receive buffer is lost too.
 *
 * Owns      the queue pair, its completion queue and channel, and the packet slots
 * Threads   the connector; aq_ibv_dgram_open(): start-up's thread
 * Uses      aq_ibv_connect.h, other/spawn for addresses. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "conduits/ibv/aq_ibv_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_choose.h"
#include "conduits/ibv/aq_ibv_reg.h"
#include "other/spawn/aq_siphash.h"
#include "other/spawn/aq_spawn.h"

#define AQ_IBV_GRH   40u        /* bytes before a received packet: space for a global header */
#define AQ_IBV_SLOT  320u       /* a header, and a packet */
#define AQ_IBV_SENDS (1u << 31) /* in a request's id: it is a send's */
_Static_assert(AQ_IBV_SLOT >= AQ_IBV_GRH + AQ_IBV_HELLO_BYTES && AQ_IBV_SLOT % 64 == 0,
               "slots are lines");

struct aq_ibv_dgram_counts aq_ibv_dgram_counts AQ_JOB_STATE;

static struct {
    struct aq_ibv_rail *rail;
    struct ibv_comp_channel *comp_channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *memory; /* receive slots, then send slots */
    uint32_t receives, sends;
    uint32_t sending; /* send slots in use */
    bool *busy;       /* [sends] */
    uint32_t qkey;
} aq_ibv_dgram AQ_JOB_STATE;

static uint8_t *aq_ibv_dgram_slot(uint32_t slot)
{
    return aq_ibv_dgram.memory + (size_t)slot * AQ_IBV_SLOT;
}

static int aq_ibv_dgram_post(uint32_t slot)
{
    struct ibv_sge sge = { .addr = (uintptr_t)aq_ibv_dgram_slot(slot),
                           .length = AQ_IBV_SLOT,
                           .lkey = aq_ibv_dgram.mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

    return ibv_post_recv(aq_ibv_dgram.qp, &wr, &bad);
}

/* --- opening --- */

static size_t aq_ibv_dgram_bytes(void)
{
    return aq_round_up((size_t)(aq_ibv_dgram.receives + aq_ibv_dgram.sends) * AQ_IBV_SLOT,
                       AQ_PAGE_SIZE);
}

static int aq_ibv_dgram_memory(const struct aq_ibv_rail *rail)
{
    const size_t bytes = aq_ibv_dgram_bytes();
    char why[600];

    aq_ibv_dgram.busy = calloc(aq_ibv_dgram.sends, sizeof(bool));
    aq_ibv_dgram.memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (aq_ibv_dgram.memory == MAP_FAILED || aq_ibv_dgram.busy == NULL)
        return aq_fail(AQ_ERR_NOMEM, "ibv: no memory for datagrams: %zu bytes", bytes);
    (void)madvise(aq_ibv_dgram.memory, bytes, MADV_DONTFORK);
    aq_ibv_dgram.mr =
        rail->dev->lib->reg_mr(rail->dev->pd, aq_ibv_dgram.memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (aq_ibv_dgram.mr != NULL)
        return AQ_OK;
    aq_ibv_register_why(why, sizeof(why), rail->dev, bytes, errno);
    return aq_fail(AQ_ERR_NOMEM, "%s", why);
}

static int aq_ibv_dgram_ready(const struct aq_ibv_rail *rail)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .pkey_index = rail->pkey_index,
                                .port_num = rail->port,
                                .qkey = aq_ibv_dgram.qkey };
    int error = rail->dev->lib->modify_qp(
        aq_ibv_dgram.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    if (error == 0)
        error = rail->dev->lib->modify_qp(aq_ibv_dgram.qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    if (error == 0)
        error = rail->dev->lib->modify_qp(aq_ibv_dgram.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    for (uint32_t slot = 0; error == 0 && slot < aq_ibv_dgram.receives; slot++)
        error = aq_ibv_dgram_post(slot);
    return error == 0
               ? AQ_OK
               : aq_fail(AQ_ERR_SYS, "ibv: port %s:%u: the queue of datagrams cannot be used: %s",
                         rail->dev->name, rail->port, strerror(error));
}

static int aq_ibv_dgram_queues(const struct aq_ibv_rail *rail)
{
    struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD };

    aq_ibv_dgram.comp_channel = rail->dev->lib->create_comp_channel(rail->dev->context);
    if (aq_ibv_dgram.comp_channel == NULL
        || fcntl(aq_ibv_dgram.comp_channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return aq_fail(AQ_ERR_SYS, "ibv: device %s gives no completion channel: %s",
                       rail->dev->name, strerror(errno));
    aq_ibv_dgram.cq = rail->dev->lib->create_cq(rail->dev->context,
                                                (int)(aq_ibv_dgram.receives + aq_ibv_dgram.sends),
                                                NULL, aq_ibv_dgram.comp_channel, 0);
    attr.send_cq = attr.recv_cq = aq_ibv_dgram.cq;
    attr.cap.max_send_wr = aq_ibv_dgram.sends;
    attr.cap.max_recv_wr = aq_ibv_dgram.receives;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    if (aq_ibv_dgram.cq != NULL)
        aq_ibv_dgram.qp = rail->dev->lib->create_qp(rail->dev->pd, &attr);
    return aq_ibv_dgram.qp != NULL
               ? AQ_OK
               : aq_fail(AQ_ERR_RESOURCE, "ibv: device %s makes no queue of datagrams: %s",
                         rail->dev->name, strerror(errno));
}

int aq_ibv_dgram_open(struct aq_ibv_net *net, struct aq_ibv_address *addr_out)
{
    struct aq_ibv_rail *rail = &net->rails[0];
    const int64_t sends = aq_env_int(AQ_ENV_CONNECT_SNDS),
                  receives = aq_env_int(AQ_ENV_CONNECT_RCVS);
    int rc;

    aq_ibv_dgram.rail = rail;
    aq_ibv_dgram.sends = sends < 1 ? 1 : sends > 1024 ? 1024 : (uint32_t)sends;
    /* at the start many ranks may connect at once; what is lost is repeated */
    aq_ibv_dgram.receives = receives > 0        ? (receives > 4096 ? 4096 : (uint32_t)receives)
                            : aq_job.size < 32  ? 64
                            : aq_job.size > 512 ? 1024
                                                : 2 * aq_job.size;
    aq_ibv_dgram.qkey =
        (uint32_t)aq_siphash(aq_spawn_key(), "ibv-qkey", 8) & 0x7fffffff; /* bit 31: the kernel's */
    rc = aq_ibv_dgram_memory(rail);
    if (rc == AQ_OK)
        rc = aq_ibv_dgram_queues(rail);
    if (rc == AQ_OK)
        rc = aq_ibv_dgram_ready(rail);
    if (rc != AQ_OK)
        return rc;
    memset(addr_out, 0, sizeof(*addr_out));
    memcpy(addr_out->gid, rail->gid.gid.raw, 16);
    addr_out->qpn = aq_ibv_dgram.qp->qp_num;
    addr_out->qkey = aq_ibv_dgram.qkey;
    addr_out->lid = rail->ethernet ? 0 : rail->lid;
    addr_out->gid_type = (uint8_t)rail->gid.type;
    addr_out->rails = (uint8_t)net->rail_count;
    if (gethostname(addr_out->host, sizeof(addr_out->host) - 1) != 0)
        addr_out->host[0] = '\0';
    return AQ_OK;
}

/* --- sending --- */

bool aq_ibv_dgram_find(struct aq_ibv_peer *peer)
{
    const struct aq_ibv_rail *rail = aq_ibv_dgram.rail;
    struct ibv_ah_attr attr = { .port_num = rail->port, .sl = rail->sl };
    struct aq_ibv_address address;
    char local_gid[64], remote_gid[64], who[AQ_IBV_WHO];

    if (peer->ah != NULL)
        return true;
    if (aq_spawn_lookup(peer->remote.rank, &address, sizeof(address)) != AQ_OK)
        aq_fatal("ibv: the address of rank %u cannot be had from the launcher", peer->remote.rank);
    address.host[sizeof(address.host) - 1] = '\0';
    /* release: pairs with the acquire in aq_ibv_remote_who(). Without memory the name is left out
     * of messages */
    if (address.host[0] != '\0'
        && atomic_load_explicit(&peer->remote.host, memory_order_relaxed) == NULL)
        atomic_store_explicit(&peer->remote.host, strdup(address.host), memory_order_release);
    (void)aq_ibv_remote_who(&peer->remote, who, sizeof(who));
    if ((address.gid_type != AQ_IBV_GID_IB) != rail->ethernet)
        aq_fatal("ibv: port %s:%u is %s, and the port of %s is not; choose ports of the same "
                 "network on all hosts "
                 "with GASNET_IBV_PORTS",
                 rail->dev->name, rail->port, rail->ethernet ? "Ethernet" : "InfiniBand", who);
    if (rail->ethernet && !aq_ibv_gid_alike(&rail->gid, address.gid, address.gid_type))
        aq_ibv_error_gid_types(rail, &peer->remote, address.gid, address.gid_type);
    attr.dlid = address.lid;
    if (rail->ethernet || address.lid == 0) {
        attr.is_global = 1;
        memcpy(attr.grh.dgid.raw, address.gid, 16);
        attr.grh.sgid_index = (uint8_t)rail->gid.index;
        attr.grh.hop_limit = 64;
    }
    peer->ah = rail->dev->lib->create_ah(rail->dev->pd, &attr);
    peer->ah_qpn = address.qpn;
    peer->ah_qkey = address.qkey;
    if (peer->ah != NULL)
        return true;
    if (!aq_exit_in_progress() && !peer->no_way)
        aq_warn(
            "ibv: no route from port %s:%u (%s) to %s (%s): %s; is the network between the hosts "
            "up? Other "
            "ports can be named with GASNET_IBV_PORTS; trying again",
            rail->dev->name, rail->port,
            aq_ibv_gid_text(rail->gid.gid.raw, local_gid, sizeof(local_gid)), who,
            aq_ibv_gid_text(address.gid, remote_gid, sizeof(remote_gid)), strerror(errno));
    peer->no_way = true;
    return false;
}

bool aq_ibv_dgram_has_slot(void)
{
    return aq_ibv_dgram.sending < aq_ibv_dgram.sends;
}

bool aq_ibv_dgram_send(struct aq_ibv_peer *peer, const uint8_t *packet, size_t len)
{
    struct ibv_sge sge = { .length = (uint32_t)len, .lkey = aq_ibv_dgram.mr->lkey };
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
    };
    struct ibv_send_wr *bad;
    uint32_t slot = 0;

    if (aq_ibv_dgram.sending == aq_ibv_dgram.sends || peer->ah == NULL)
        return false;
    while (aq_ibv_dgram.busy[slot])
        slot++;
    sge.addr = (uintptr_t)aq_ibv_dgram_slot(aq_ibv_dgram.receives + slot);
    memcpy((void *)(uintptr_t)sge.addr, packet, len);
    wr.wr_id = AQ_IBV_SENDS | slot;
    wr.wr.ud.ah = peer->ah;
    wr.wr.ud.remote_qpn = peer->ah_qpn;
    wr.wr.ud.remote_qkey = peer->ah_qkey;
    if (ibv_post_send(aq_ibv_dgram.qp, &wr, &bad) != 0)
        return false; /* as good as lost */
    aq_ibv_dgram.busy[slot] = true;
    aq_ibv_dgram.sending++;
    aq_counter_add(&aq_ibv_dgram_counts.sent, 1);
    return true;
}

void aq_ibv_dgram_forget(struct aq_ibv_peer *peer)
{
    if (peer->ah == NULL
        || aq_ibv_dgram.sending != 0) /* a datagram on its way may need it; later */
        return;
    (void)aq_ibv_dgram.rail->dev->lib->destroy_ah(peer->ah);
    peer->ah = NULL;
}

/* --- receiving --- */

const uint8_t *aq_ibv_dgram_receive(size_t *len_out)
{
    struct ibv_wc wc;
    int count;

    while ((count = ibv_poll_cq(aq_ibv_dgram.cq, 1, &wc)) > 0) {
        const bool sent = (wc.wr_id & AQ_IBV_SENDS) != 0;

        if (sent) {
            aq_ibv_dgram.busy[wc.wr_id & ~(uint64_t)AQ_IBV_SENDS] = false;
            aq_ibv_dgram.sending--;
        }
        if (wc.status != IBV_WC_SUCCESS)
            aq_ibv_error_note(aq_ibv_dgram.rail,
                              sent ? "sending a datagram" : "receiving a datagram", NULL, &wc);
        else if (!sent && wc.byte_len > AQ_IBV_GRH) {
            *len_out = wc.byte_len - AQ_IBV_GRH;
            return aq_ibv_dgram_slot((uint32_t)wc.wr_id) + AQ_IBV_GRH;
        } else if (!sent)
            aq_ibv_dgram_done(aq_ibv_dgram_slot((uint32_t)wc.wr_id) + AQ_IBV_GRH);
    }
    if (count < 0 && !aq_exit_in_progress())
        aq_fatal("ibv: the completion queue of datagrams cannot be read");
    return NULL;
}

void aq_ibv_dgram_done(const uint8_t *packet)
{
    const uint32_t slot = (uint32_t)((size_t)(packet - aq_ibv_dgram.memory) / AQ_IBV_SLOT);
    const int error = aq_ibv_dgram_post(slot);

    if (error != 0 && !aq_exit_in_progress())
        aq_fatal("ibv: the queue of datagrams takes no receive buffer: %s", strerror(error));
}

int aq_ibv_dgram_fd(void)
{
    return aq_ibv_dgram.comp_channel->fd;
}

void aq_ibv_dgram_arm(void)
{
    struct ibv_cq *cq;
    void *own;

    while (aq_ibv_dgram.rail->dev->lib->get_cq_event(aq_ibv_dgram.comp_channel, &cq, &own) == 0)
        aq_ibv_dgram.rail->dev->lib->ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(aq_ibv_dgram.cq, 0) != 0 && !aq_exit_in_progress())
        aq_fatal("ibv: the completion queue of datagrams cannot be armed");
}

/* --- closing --- */

void aq_ibv_dgram_close(void)
{
    const struct aq_ibv_lib *lib = aq_ibv_dgram.rail->dev->lib;

    (void)lib->destroy_qp(aq_ibv_dgram.qp); /* before the addresses of what it may still send to */
    for (struct aq_ibv_peer *peer = aq_ibv_peer_first(); peer != NULL; peer = peer->next_active)
        if (peer->ah != NULL)
            (void)lib->destroy_ah(peer->ah);
    (void)lib->destroy_cq(aq_ibv_dgram.cq);
    (void)lib->destroy_comp_channel(aq_ibv_dgram.comp_channel);
    (void)lib->dereg_mr(aq_ibv_dgram.mr);
    munmap(aq_ibv_dgram.memory, aq_ibv_dgram_bytes());
    free(aq_ibv_dgram.busy);
}
