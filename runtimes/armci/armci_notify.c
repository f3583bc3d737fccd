/*
 * armci_notify.c - notifications between two ranks: the sender writes a count at the receiver.
 *
 * Owns      notified[] in the control block of each segment; the counts of struct aq_armci_peer
 * Threads   the program's
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

int parmci_notify(int proc)
{
    struct aq_armci_peer *peer;
    const size_t at =
        offsetof(struct aq_armci_control, notified) + (size_t)aq_armci.me * sizeof(int64_t);

    aq_armci_check_proc("armci_notify", proc);
    peer = &aq_armci.peers[proc];
    peer->notify_sent++;
    aq_armci_serve();
    if (aq_armci_is_local(
            peer)) /* release: a rank that reads the count reads what was put before */
        atomic_store_explicit(&peer->control->notified[aq_armci.me], peer->notify_sent,
                              memory_order_release);
    else
        aq_armci_put_word(proc, peer->base + at, &peer->notify_sent, sizeof(int64_t));
    return (int)peer->notify_sent;
}
AQ_ARMCI_TWIN_LOWER(armci_notify);

int parmci_notify_wait(int proc, int *pval)
{
    struct aq_armci_peer *peer;
    _Atomic int64_t *count;
    int64_t seen;
    unsigned step = 0;

    aq_armci_check_proc("armci_notify_wait", proc);
    peer = &aq_armci.peers[proc];
    count = &aq_armci.peers[aq_armci.me].control->notified[proc];
    peer->notify_waited++;
    aq_armci_serve();
    /* acquire: pairs with the release, or the put, of the notification */
    while ((seen = atomic_load_explicit(count, memory_order_acquire)) < peer->notify_waited)
        aq_armci_pause_long(&step);
    if (pval != NULL)
        *pval = (int)peer->notify_waited;
    return (int)seen;
}
AQ_ARMCI_TWIN_LOWER(armci_notify_wait);
