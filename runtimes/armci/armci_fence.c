/*
 * armci_fence.c - remote completion: order on one target, fences, the barrier; and how a rank
 * waits.
 *
 * Owns      the list of dirty ranks: those with puts or accumulates that may not have arrived
 * Threads   the program's
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"
#include "armci_stream.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define PAUSE_SPINS  200  /* steps before a waiting rank yields its core at each step */
#define PAUSE_YIELDS 2000 /* steps before it sleeps at each step */
#define PAUSE_NS     50000
#define PAUSE_SLEEPS 64 /* after so many it sleeps for twice as long */

void aq_armci_mark(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    if (!peer->dirty) {
        peer->dirty = true;
        aq_armci.dirty[aq_armci.ndirty++] = proc;
    }
}

void aq_armci_keep_put(int proc, gex_Event_t event, void *owned)
{
    if (event == GEX_EVENT_INVALID) {
        free(owned);
        return;
    }
    aq_armci.peers[proc].put = event;
    aq_armci.peers[proc].put_owned = owned;
    aq_armci_mark(proc);
}

void aq_armci_wait_puts(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    gex_Event_Wait(peer->put);
    peer->put = GEX_EVENT_INVALID;
    free(peer->put_owned);
    peer->put_owned = NULL;
}

/* Removes proc from the list of dirty ranks. The search begins at the end, where ARMCI_AllFence
 * takes its ranks from. */
static void mark_clean(int proc)
{
    for (int i = aq_armci.ndirty - 1; i >= 0; i--) {
        if (aq_armci.dirty[i] == proc) {
            aq_armci.dirty[i] = aq_armci.dirty[--aq_armci.ndirty];
            break;
        }
    }
    aq_armci.peers[proc].dirty = false;
}

void aq_armci_wait_all(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    aq_armci_stream_ask(proc);
    aq_armci_wait_puts(proc);
    aq_armci_wait_chunks(proc);
    /* acquire: pairs with the release in aq_armci_on_stream_done() */
    GASNET_BLOCKUNTIL(atomic_load_explicit(&peer->done, memory_order_acquire) == peer->sent);
    mark_clean(proc);
}

void PARMCI_Fence(int proc)
{
    aq_armci_check_proc("ARMCI_Fence", proc);
    if (aq_armci.peers[proc].dirty)
        aq_armci_wait_all(proc);
    else
        aq_armci_serve();
    atomic_thread_fence(
        memory_order_seq_cst); /* stores to mapped memory become visible before what follows */
}
AQ_ARMCI_TWIN(Fence);

void PARMCI_AllFence(void)
{
    if (!aq_armci.running)
        return;
    aq_armci_serve();
    for (int i = 0; i < aq_armci.ndirty; i++)
        aq_armci_stream_ask(aq_armci.dirty[i]);
    while (aq_armci.ndirty > 0)
        aq_armci_wait_all(aq_armci.dirty[aq_armci.ndirty - 1]);
    atomic_thread_fence(memory_order_seq_cst); /* as in ARMCI_Fence */
}
AQ_ARMCI_TWIN(AllFence);

void PARMCI_GroupFence(ARMCI_Group *group)
{
    const ARMCI_Group *of = aq_armci_group(group);

    for (int r = 0; r < of->size; r++)
        PARMCI_Fence(of->grp_to_abs[r]);
}
AQ_ARMCI_TWIN(GroupFence);

void PARMCI_Barrier(void)
{
    aq_armci_complete_handles();
    PARMCI_AllFence();
    parmci_msg_barrier();
}
AQ_ARMCI_TWIN(Barrier);

/* Memory is coherent: ordinary loads read what other ranks have put. The fences keep the order. */
void PARMCI_Access_begin(void *ptr)
{
    (void)ptr;
    atomic_thread_fence(
        memory_order_seq_cst); /* later loads see what was put before the barrier or message */
}
AQ_ARMCI_TWIN(Access_begin);

void PARMCI_Access_end(void *ptr)
{
    (void)ptr;
    atomic_thread_fence(
        memory_order_seq_cst); /* earlier stores are visible to the receiver of a later message */
}
AQ_ARMCI_TWIN(Access_end);

void aq_armci_give_way(void)
{
    gasnet_AMPoll();
    if ((aq_armci.ticks & 1023) == 0)
        sched_yield();
}

static void pause_for(unsigned step, long sleep_ns)
{
    const struct timespec interval = { 0, sleep_ns };

    if (aq_armci.started)
        gasnet_AMPoll();
    if (step < PAUSE_SPINS) {
        aq_armci_cpu_pause();
    } else if (step < PAUSE_YIELDS) {
        sched_yield();
    } else {
        aq_armci_mpi_step();
        nanosleep(&interval, NULL);
    }
}

void aq_armci_pause(unsigned *step)
{
    pause_for((*step)++, PAUSE_NS);
}

/* Unless other ranks need the polls of this one. */
void aq_armci_pause_long(unsigned *step)
{
    const unsigned slept = *step < PAUSE_YIELDS ? 0 : *step - PAUSE_YIELDS;
    const unsigned doublings = slept / PAUSE_SLEEPS < 5 ? slept / PAUSE_SLEEPS : 5;

    pause_for((*step)++, aq_armci.must_poll ? PAUSE_NS : PAUSE_NS << doublings);
}
