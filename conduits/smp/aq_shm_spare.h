/*
 * aq_shm_spare.h - which polls of a conduit may leave its network out.
 *
 * A look at a network costs several times as much as a look at shared memory. While near ranks keep this one busy, the
 * network is looked at every AQ_SHM_SPARE_TURN polls only; it is never left out for longer than AQ_SHM_SPARE_BUSY
 * polls after the last message of a near rank.
 *
 * Threads   any: each thread counts for itself
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_SPARE_H
#define AQ_SHM_SPARE_H

#include <stdbool.h>
#include <stdint.h>

#define AQ_SHM_SPARE_TURN 8u  /* polls of shared memory for one of the network, while near ranks are busy */
#define AQ_SHM_SPARE_BUSY 64u /* polls that they count as busy after a message */

struct aq_shm_spare {
    uint32_t busy, turn;
};

/* near: messages that this poll has found in shared memory. May it spare itself the network? */
static inline bool aq_shm_spare(struct aq_shm_spare *spare, unsigned near)
{
    if (near != 0)
        spare->busy = AQ_SHM_SPARE_BUSY;
    if (spare->busy == 0)
        return false;
    spare->busy--;
    return ++spare->turn % AQ_SHM_SPARE_TURN != 0;
}

#endif
