/*
 * aq_ibv_progress.c - polling and sleeping; see aq_ibv_progress.h.
 *
 * Polling   a look at a completion queue reads memory, so every poll takes one look. A software
 *           device (rxe, siw) does its work on this host's cores, in a kernel thread that a rank
 *           which spins keeps out until the end of its time slice. So after every few polls that
 *           find nothing the thread yields the core, and after each such poll when the wait is
 *           long. The service thread sleeps instead
 * Sleeping  completion queues are armed, then looked at once more; their channels are among the
 *           descriptors of sleepers
 * Ticks     ten times a second: updates that are not due, credits that are not used, peers that
 *           have disconnected, failures that were not signalled
 * Threads   any
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_progress.h"

#include <sched.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_am.h"
#include "core/aq_exit.h"
#include "core/aq_poll.h"
#include "core/aq_service.h"

#define AQ_IBV_TICK_POLLS 256u /* polls between looks at the clock */
#define AQ_IBV_TICK_NS    UINT64_C(100000000)
/* polls of a software device that find nothing before the thread yields the core */
#define AQ_IBV_YIELD_AFTER 4u
/* after so many in a row the thread yields after each: the wait is long */
#define AQ_IBV_YIELD_ALWAYS 32u

static aq_counter aq_ibv_sleeps AQ_JOB_STATE;

uint64_t aq_ibv_progress_sleeps(void)
{
    return aq_counter_get(&aq_ibv_sleeps);
}

static void aq_ibv_tick_peer(struct aq_ibv_peer *peer)
{
    aq_ibv_am_skip(peer);
    if (AQ_UNLIKELY(aq_ibv_peer_disconnected(peer)) && aq_fh_job != NULL)
        aq_fh_peer_disconnect(aq_fh_job, peer->remote.rank);
}

/* Returns how many requests have completed, perhaps other threads'. */
static unsigned aq_ibv_tick(struct aq_ibv_net *net, uint64_t now_ns)
{
    static _Atomic uint64_t next;
    unsigned completed = 0;

    /* relaxed: two threads that come at the same time do it twice */
    if (AQ_LIKELY(now_ns < atomic_load_explicit(&next, memory_order_relaxed)))
        return 0;
    atomic_store_explicit(&next, now_ns + AQ_IBV_TICK_NS, memory_order_relaxed);
    aq_ibv_error_overdue(now_ns);
    /* an update that is not due yet might be what a peer waits for */
    aq_ibv_updates_poll(&aq_ibv_am.updates, true);
    /* a request that was not signalled completes too if it failed */
    for (uint32_t i = 0; i < net->rail_count; i++)
        completed += aq_ibv_qp_reap(&net->rails[i]);
    for (struct aq_ibv_peer *peer = aq_ibv_peer_first(); peer != NULL; peer = peer->next_active)
        if (aq_ibv_peer_is_ready(peer))
            aq_ibv_tick_peer(peer);
    return completed;
}

unsigned aq_ibv_progress(struct aq_ibv_net *net, bool replies_only)
{
    static _Thread_local uint32_t polls;
    static _Thread_local unsigned idle;
    unsigned served;

    aq_ibv_batch_poll();
    served = aq_ibv_receive(replies_only);
    served += aq_ibv_qp_reap_all(net);
    aq_ibv_firehose_poll();
    served += aq_ibv_xfer_poll(replies_only);
    if (AQ_UNLIKELY(++polls % AQ_IBV_TICK_POLLS == 0))
        served += aq_ibv_tick(net, aq_now_ns());
    if (served != 0)
        idle = 0;
    else if (net->software && !aq_service_is_self()
             && (++idle % AQ_IBV_YIELD_AFTER == 0 || idle > AQ_IBV_YIELD_ALWAYS))
        sched_yield(); /* a software device moves packets on this core */
    return served;
}

/* From now on completions make the channels readable. */
static void aq_ibv_arm(const struct aq_ibv_net *net)
{
    struct ibv_cq *cq;
    void *own;
    int error = 0;

    for (uint32_t i = 0; i < net->dev_count; i++)
        while (net->lib->get_cq_event(net->devs[i].comp_channel, &cq, &own) == 0)
            net->lib->ack_cq_events(cq, 1);
    for (uint32_t i = 0; error == 0 && i < net->rail_count; i++) {
        error = ibv_req_notify_cq(net->rails[i].send_cq, 0);
        if (error == 0)
            error = ibv_req_notify_cq(net->rails[i].recv_cq, 0);
    }
    if (error != 0 && !aq_exit_in_progress())
        aq_fatal("ibv: a completion queue cannot be armed: %s", strerror(error));
}

void aq_ibv_progress_sleep(struct aq_ibv_net *net)
{
    aq_ibv_updates_poll(&aq_ibv_am.updates, true); /* nobody may poll for a while */
    if (aq_ibv_tick(net, aq_now_ns()) != 0)
        aq_wait_wake(); /* another thread may sleep on what has completed */
    aq_ibv_arm(net);
    aq_counter_add(&aq_ibv_sleeps, 1);
}
