/*
 * aq_shm_skip.h - which polls of a conduit may leave its network out.
 *
 * A look at a network costs several times as much as a look at shared memory. While near ranks keep
 * this one busy, the network is looked at every AQ_SHM_SKIP_PERIOD polls only; it is never left out
 * for longer than AQ_SHM_SKIP_BUSY polls after the last message of a near rank.
 *
 * Threads   any: each thread counts for itself
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_SKIP_H
#define AQ_SHM_SKIP_H

#include <stdbool.h>
#include <stdint.h>

#define AQ_SHM_SKIP_PERIOD \
    8u /* polls of shared memory for one of the network, while near ranks are busy */
#define AQ_SHM_SKIP_BUSY 64u /* polls that they count as busy after a message */

struct aq_shm_skip {
    uint32_t busy, polls;
};

/* near: messages that this poll has found in shared memory. May it spare itself the network? */
static inline bool aq_shm_skip(struct aq_shm_skip *skip, unsigned local)
{
    if (local != 0)
        skip->busy = AQ_SHM_SKIP_BUSY;
    if (skip->busy == 0)
        return false;
    skip->busy--;
    return ++skip->polls % AQ_SHM_SKIP_PERIOD != 0;
}

#endif
