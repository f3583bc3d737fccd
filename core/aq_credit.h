/*
 * aq_credit.h - the arithmetic of credits, for conduits that have flow control of their own.
 *
 * Two counts run on for ever, modulo 2^32. The sender counts what it has sent. The receiver counts
 * up to where the sender may send: the limit. The sender may send while it is below the limit. A
 * count that arrives late, or twice, is older than the one known and changes nothing. A receiver
 * tells its limit in every message that goes back, and in a message of its own when half the window
 * is untold: half a window lets the sender go on while the update travels.
 *
 * Threads   pure functions
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CREDIT_H
#define AQ_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/* Is count a later than count b? The two are less than 2^31 apart. */
static inline bool aq_credit_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* May a sender that has sent so much send cost more? The limit is at or after sent. */
static inline bool aq_credit_covers(uint32_t limit, uint32_t sent, uint32_t cost)
{
    return limit - sent >= cost;
}

/* Is it time for a message of its own? advertised: the limit that the sender knows, or that is on
 * its way. */
static inline bool aq_credit_update_due(uint32_t limit, uint32_t advertised, uint32_t window)
{
    const uint32_t update = limit - advertised;

    return update != 0 && 2 * update >= window;
}

#endif
