/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_budget.h - how the memory (or the regions) that may be registered is divided: references of
 * peers, and the rest. Uses nothing.
 */
#ifndef AQ_FH_BUDGET_H
#define AQ_FH_BUDGET_H

#include <stdint.h>

struct aq_fh_budget {
    uint64_t remote, local;
};

/**
 * aq_fh_budget_split - divide total.
 * remote, local  what the user asked for; 0: nothing. One given: the other gets the rest, at least
 *                a quarter of the total
 * peers          that may have references to local memory; 0: everything is for own transfers
 */
static inline struct aq_fh_budget aq_fh_budget_split(uint64_t total, uint64_t remote,
                                                     uint64_t local, uint32_t peers)
{
    struct aq_fh_budget budget = { .remote = remote, .local = local };

    if (peers == 0) {
        budget.remote = 0;
        budget.local = local != 0 ? local : total;
    } else if (remote == 0 && local == 0) {
        budget.local = total / 4;
        budget.remote = total - budget.local;
    } else if (local == 0) {
        budget.local = remote < total - total / 4 ? total - remote : total / 4;
    } else if (remote == 0) {
        budget.remote = local < total - total / 4 ? total - local : total / 4;
    }
    return budget;
}

#endif
