/*
 * aq_extended.c - the functions through which core calls this layer: start-up and progress.
 *
 * Threads   aq_callback_init() before the first message; aq_callback_progress() on any, at once
 * Uses      core/aq_callback.h, the parts of extended/
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/aq_log.h"
#include "core/aq_callback.h"
#include "base/aq_state.h"
#include "core/aq_nosup.h"
#include "extended/aq_ad.h"
#include "extended/aq_barrier.h"
#include "extended/aq_coll.h"
#include "extended/aq_exchange.h"
#include "extended/aq_gasnet1.h"
#include "extended/aq_ref.h"
#include "extended/aq_vis.h"

atomic_int aq_callback_pending AQ_JOB_STATE;

const struct aq_conduit_ops *aq_callback_reference(const struct aq_conduit_ops *native)
{
    struct aq_conduit_ops *ops = malloc(sizeof(*ops));

    if (ops == NULL)
        aq_fatal("no memory for a table of transfers (%zu bytes)", sizeof(*ops));
    *ops = *native;
    ops->caps &= ~(AQ_CAP_LOAD_STORE | AQ_CAP_RMA_BATCH);
    ops->am_alloc = aq_nosup_am_alloc;
    ops->put = aq_ref_put;
    ops->get = aq_ref_get;
    ops->rma_batch_begin = aq_nosup_rma_batch_begin;
    ops->rma_batch_end = aq_nosup_rma_batch_end;
    ops->ad_serves = aq_nosup_ad_serves;
    ops->coll = &aq_nosup_coll;
    ops->rndv_recv = aq_nosup_rndv_recv;
    ops->barrier_arrive = aq_ref_barrier_arrive;
    ops->barrier_done = aq_ref_barrier_done;
    ops->named_arrive = aq_ref_named_arrive;
    ops->named_done = aq_ref_named_done;
    return ops;
}

void aq_callback_init(void)
{
    aq_ref_rma_init();
    aq_exchange_init();
    aq_ref_barrier_init();
    aq_coll_init();
    aq_ref_ad_init();
    aq_vis_init();
    aq_gasnet1_start();
    aq_memset_init();
}

const char *aq_callback_open(void)
{
    return aq_barrier_is_open() ? "a barrier"
           : aq_coll_is_open()  ? "a collective"
           /* relaxed: other threads have stopped calling */
           : atomic_load_explicit(&aq_callback_pending, memory_order_relaxed) != 0 ? "a transfer"
                                                                                   : NULL;
}

void aq_callback_fini(void)
{
    aq_coll_fini();
    aq_ad_fini();
    aq_vis_fini();
    aq_ref_barrier_fini();
    aq_exchange_fini();
    aq_gasnet1_fini();
}

unsigned aq_callback_progress(void)
{
    return aq_ref_barrier_progress() + aq_coll_progress() + aq_vis_progress();
}
