/*
 * armci_rmw.c - read-modify-write of a word of another rank, by the atomic domains of gex_AD.
 *
 * Threads   the program's
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

enum {
    OTHER_FETCH_AND_ADD,
    OTHER_FETCH_AND_ADD_LONG,
    OTHER_SWAP,
    OTHER_SWAP_LONG
}; /* ARMCI-MPI's numbers */

/* The operation is a release of what precedes it and an acquire for what follows: programs build
 * locks from it. */
#define ORDER (GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ)

static bool is_long(int op)
{
    return op == ARMCI_FETCH_AND_ADD_LONG || op == OTHER_FETCH_AND_ADD_LONG || op == ARMCI_SWAP_LONG
           || op == OTHER_SWAP_LONG;
}

static void rmw_int(gex_OP_t op, int *ploc, void *owner, int value, int proc)
{
    int32_t before;

    gex_Event_Wait(
        gex_AD_OpNB_I32(aq_armci.ad_int, &before, (gex_Rank_t)proc, owner, op, value, 0, ORDER));
    *ploc = before;
}

static void rmw_long(gex_OP_t op, long *ploc, void *owner, long value, int proc)
{
    int64_t before;

    gex_Event_Wait(
        gex_AD_OpNB_I64(aq_armci.ad_long, &before, (gex_Rank_t)proc, owner, op, value, 0, ORDER));
    *ploc = before;
}

int PARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc)
{
    struct aq_armci_peer *peer;
    void *owner;

    if (ploc == NULL || prem == NULL)
        return FAIL;
    if (!aq_armci_is_proc(proc)) {
        aq_armci_say_no_rank("ARMCI_Rmw", proc);
        return FAIL5;
    }
    peer = aq_armci_order_after(proc);
    owner = aq_armci_owner(peer, prem);
    aq_armci_check_range("ARMCI_Rmw", prem, is_long(op) ? sizeof(long) : sizeof(int), proc);
    aq_armci_tick();
    switch (op) {
    case ARMCI_FETCH_AND_ADD:
    case OTHER_FETCH_AND_ADD:
        rmw_int(GEX_OP_FADD, ploc, owner, value, proc);
        break;
    case ARMCI_FETCH_AND_ADD_LONG:
    case OTHER_FETCH_AND_ADD_LONG:
        rmw_long(GEX_OP_FADD, ploc, owner, value, proc);
        break;
    case ARMCI_SWAP:
    case OTHER_SWAP:
        rmw_int(GEX_OP_SWAP, ploc, owner, *(int *)ploc, proc);
        break;
    case ARMCI_SWAP_LONG:
    case OTHER_SWAP_LONG:
        rmw_long(GEX_OP_SWAP, ploc, owner, *(long *)ploc, proc);
        break;
    default:
        aq_armci_fatal("ARMCI_Rmw: %d is no operation", op);
    }
    return 0;
}
AQ_ARMCI_TWIN(Rmw);
