/*
 * aq_ibv_error.h - failures of the network: noted where they are seen, reported by the connector.
 *
 * A thread that finds a failed work request may hold locks, so it only notes the failure and wakes
 * the connector. The connector ends the job with one message: port, peer, operation, status, likely
 * cause, remedy. The connector first waits some seconds for the notice of the shutdown.
 *
 * Threads   aq_ibv_error_note(), _is_known(), _overdue(): any; the others: the connector
 * Uses      aq_ibv_device.h, aq_ibv_choose.h, core/aq_exit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_ERROR_H
#define AQ_IBV_ERROR_H

#include "conduits/ibv/aq_ibv_device.h"
#include "core/aq_job.h"

/* What the lower parts know of a remote rank: its name for messages, and whether it has
 * disconnected. Embedded in struct aq_ibv_peer. */
struct aq_ibv_remote {
    gex_Rank_t rank;
    _Atomic(const char *) host;     /* host name; NULL until it is known */
    _Atomic uint64_t *disconnected; /* non-zero: the rank is in its exit; NULL: not open yet */
};

#define AQ_IBV_WHO 96u
/* "rank 3 on node7", or "rank 3"; returns text. */
const char *aq_ibv_remote_who(const struct aq_ibv_remote *remote, char *text, size_t size);

/* Has the remote rank entered its exit? Then it waits for nothing from this rank and may have
 * ended. */
static inline bool aq_ibv_remote_disconnected(const struct aq_ibv_remote *remote)
{
    /* acquire: everything that the peer sent came before */
    return remote->disconnected != NULL
           && atomic_load_explicit(remote->disconnected, memory_order_acquire) != 0;
}

/* Make an eventfd readable: wakes the thread that polls it. */
void aq_ibv_wake(int eventfd);
/* The eventfd that aq_ibv_error_note() wakes; before the first queue pair exists. */
void aq_ibv_error_set_wakeup(int eventfd);

/* A work request has failed. what: the operation, for the message; remote: its peer, or NULL. Only
 * the first failure is kept: later ones follow from it. A request that was flushed, because its
 * queue pair was in error before, is reported only if no failure is known that is a cause. Any lock
 * may be held. */
void aq_ibv_error_note(const struct aq_ibv_rail *rail, const char *what,
                       const struct aq_ibv_remote *remote, const struct ibv_wc *wc);
/* Has a failure been noted? Then others follow, and need no message. */
bool aq_ibv_error_is_known(void);
/* From polls, without a lock: reports a failure that the connector has not reported for long: the
 * connector may have lost its descriptors. */
void aq_ibv_error_overdue(uint64_t now_ns);
/* An asynchronous event of a device. */
void aq_ibv_error_event(struct aq_ibv_net *net, const struct aq_ibv_dev *dev,
                        const struct ibv_async_event *event);
/* Ends the job for a noted failure, or a port that has been down for too long. Returns when to call
 * again, or UINT64_MAX. */
uint64_t aq_ibv_error_check(const struct aq_ibv_net *net, uint64_t now_ns);
/* Ends the job: the peer's port has another kind of address than this rail. */
_Noreturn void aq_ibv_error_gid_types(const struct aq_ibv_rail *rail,
                                      const struct aq_ibv_remote *remote, const uint8_t gid[16],
                                      uint32_t type);

#endif
