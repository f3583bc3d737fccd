/*
 * aq_extended.c - how core reaches this layer: start-up and progress.
 *
 * Threads   aq_callback_init() before the first message; aq_callback_progress() on any, at once
 * Uses      core/aq_callback.h, the parts of extended/
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>

#include "core/aq_callback.h"
#include "extended/aq_ad.h"
#include "extended/aq_barrier.h"
#include "extended/aq_coll.h"
#include "extended/aq_exchange.h"
#include "extended/aq_gasnet1.h"
#include "extended/aq_ref.h"
#include "extended/aq_vis.h"

atomic_int aq_callback_pending;

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

/* The reference barriers first: what they find out ends phases for the second. */
unsigned aq_callback_progress(void)
{
    return aq_ref_barrier_progress() + aq_barrier_progress() + aq_coll_progress()
           + aq_vis_progress();
}
