/* SPDX-License-Identifier: BSD-3-Clause
 *
 * design_ring.c - design `ring` and the variants that show what each of its choices is worth.
 *
 * The receiver polls the rings of those that have ever sent to it (see queue_ring.h).
 */
#include "queue_ring.h"

#define VARIANT_NAME ring
#define VARIANT_TITLE "ring"
#define VARIANT_WHAT "ring for each pair; receiver scans its active senders"
#define VARIANT_OPTIONS 0
#define VARIANT_FINE false
#include "queue_kernels.h"

#define VARIANT_NAME ring_own
#define VARIANT_TITLE "ring-own"
#define VARIANT_WHAT "ring, prefetchw of the reply slot when a request is seen"
#define VARIANT_OPTIONS RING_REPLY_PREFETCH
#define VARIANT_FINE false
#include "queue_kernels.h"

#define VARIANT_NAME ring_own2
#define VARIANT_TITLE "ring-own2"
#define VARIANT_WHAT "ring-own, and of the request slot when a reply is seen"
#define VARIANT_OPTIONS (RING_REPLY_PREFETCH | RING_REQUEST_PREFETCH)
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_next
#define VARIANT_TITLE "ring-next"
#define VARIANT_WHAT "ring, prefetchw of the next slot after a send"
#define VARIANT_OPTIONS RING_NEXT_PREFETCH
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_pause
#define VARIANT_TITLE "ring-pause"
#define VARIANT_WHAT "ring, pause instruction in the spin"
#define VARIANT_OPTIONS RING_PAUSE
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_rxwrite
#define VARIANT_TITLE "ring-rxwrite"
#define VARIANT_WHAT "ring, receiver frees each slot by writing it"
#define VARIANT_OPTIONS RING_RECEIVER_WRITES
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_eager
#define VARIANT_TITLE "ring-eager"
#define VARIANT_WHAT "ring, consumed count published after every message"
#define VARIANT_OPTIONS RING_EAGER_COUNT
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_dense
#define VARIANT_TITLE "ring-dense"
#define VARIANT_WHAT "ring, slots 64 bytes apart"
#define VARIANT_OPTIONS RING_DENSE
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME ring_single
#define VARIANT_TITLE "ring-single"
#define VARIANT_WHAT "one ring for requests and replies: half the lines to poll"
#define VARIANT_OPTIONS RING_SINGLE
#define VARIANT_FINE false
#include "queue_kernels.h"

#define VARIANT_NAME ring_fence
#define VARIANT_TITLE "ring-fence"
#define VARIANT_WHAT "ring, full fence in the sender before it looks for sleepers"
#define VARIANT_OPTIONS RING_FENCE
#define VARIANT_FINE true
#include "queue_kernels.h"

const struct queue_design *const ring_designs[] = {
    &ring_design,        &ring_own_design,    &ring_single_design, &ring_own2_design,
    &ring_next_design,   &ring_pause_design,  &ring_rxwrite_design, &ring_eager_design,
    &ring_dense_design,  &ring_fence_design,  NULL,
};
