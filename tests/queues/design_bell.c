/* SPDX-License-Identifier: BSD-3-Clause
 *
 * design_bell.c - design `bell`: the rings of design_ring.c and a summary word for each receiver.
 *
 * A sender sets its bit after each message, so that an idle poll reads one word whatever the number
 * of senders. The price is an atomic read-modify-write and a second shared line for each message.
 */
#include "queue_ring.h"

#define VARIANT_NAME bell
#define VARIANT_TITLE "bell"
#define VARIANT_WHAT "ring for each pair; senders flag their ring in one word"
#define VARIANT_OPTIONS RING_BELL
#define VARIANT_FINE false
#include "queue_kernels.h"

const struct queue_design *const bell_designs[] = { &bell_design, NULL };
