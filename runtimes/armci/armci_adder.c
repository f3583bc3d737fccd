/*
 * armci_adder.c - see armci_adder.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_adder.h"

#include "armci_impl.h"

void aq_armci_adder_begin(struct aq_armci_adder *adder, const struct aq_armci_peer *peer, int type,
                          const void *scale)
{
    *adder = (struct aq_armci_adder){ peer->control,           peer->base, type,
                                      aq_armci_acc_size(type), scale,      NULL };
}

void aq_armci_adder_end(struct aq_armci_adder *adder)
{
    if (adder->lock != NULL)
        aq_armci_lock_give(adder->lock);
}

static void hold(struct aq_armci_adder *adder, size_t stretch)
{
    struct aq_armci_lock *lock = &adder->control->stripe[stretch % AQ_ARMCI_STRIPES];

    if (lock == adder->lock)
        return;
    aq_armci_adder_end(adder);
    aq_armci_lock_take(lock);
    adder->lock = lock;
}

void aq_armci_adder_add(struct aq_armci_adder *adder, char *dst, const char *src, size_t bytes)
{
    while (bytes >= adder->size) {
        const size_t offset = (size_t)(dst - adder->base);
        const size_t stretch = offset >> AQ_ARMCI_STRETCH_SHIFT;
        const size_t left = ((stretch + 1) << AQ_ARMCI_STRETCH_SHIFT) - offset;
        size_t n = (left + adder->size - 1) / adder->size;

        if (n > bytes / adder->size)
            n = bytes / adder->size;
        hold(adder, stretch);
        aq_armci_add(adder->type, dst, src, n, adder->scale);
        dst += n * adder->size;
        src += n * adder->size;
        bytes -= n * adder->size;
    }
}
