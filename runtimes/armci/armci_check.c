/*
 * armci_check.c - the checks of a debug build: the remote range of a transfer lies in one
 * allocation of the target, and the rank exists.
 *
 * Owns      in each segment, the list of the allocations that other ranks may reach
 * Threads   the list has a lock. The owner's program thread writes; ranks that map the segment and
 *           the owner's handler read
 * Wire      CHECK(address, bytes) -> CHECK_REPLY(1 if the range lies in one allocation, else 0)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdio.h>
#include <stdlib.h>

#if AQ_ARMCI_CHECKS

static _Atomic int verdict; /* the answer to this rank's CHECK; -1: none yet */

static struct aq_armci_notes *notes_of(const struct aq_armci_peer *peer)
{
    return &peer->control->notes;
}

void aq_armci_note_memory(void *ptr, size_t bytes)
{
    const struct aq_armci_peer *self = &aq_armci.peers[aq_armci.me];
    struct aq_armci_notes *notes = notes_of(self);

    aq_armci_lock_take(&notes->lock);
    if (notes->count < AQ_ARMCI_MAX_NOTES)
        notes->note[notes->count++] =
            (struct aq_armci_note){ (uint64_t)((char *)ptr - self->base), bytes };
    else
        notes->overflow = 1;
    aq_armci_lock_give(&notes->lock);
}

void aq_armci_unnote_memory(const void *ptr)
{
    const struct aq_armci_peer *self = &aq_armci.peers[aq_armci.me];
    const uint64_t offset = (uint64_t)((const char *)ptr - self->base);
    struct aq_armci_notes *notes = notes_of(self);

    aq_armci_lock_take(&notes->lock);
    for (uint32_t i = 0; i < notes->count; i++) {
        if (notes->note[i].offset == offset) {
            notes->note[i] = notes->note[--notes->count];
            break;
        }
    }
    aq_armci_lock_give(&notes->lock);
}

void aq_armci_unnote_all(void)
{
    struct aq_armci_notes *notes = notes_of(&aq_armci.peers[aq_armci.me]);

    aq_armci_lock_take(&notes->lock);
    notes->count = notes->overflow = 0;
    aq_armci_lock_give(&notes->lock);
}

/* True if the range lies in one allocation, or if the list has overflowed. */
static bool is_noted(struct aq_armci_notes *notes, uint64_t offset, uint64_t bytes)
{
    bool found;

    aq_armci_lock_take(&notes->lock);
    found = notes->overflow != 0;
    for (uint32_t i = 0; i < notes->count && !found; i++) {
        const struct aq_armci_note *note = &notes->note[i];

        found = offset >= note->offset && offset - note->offset <= note->bytes
                && bytes <= note->bytes - (offset - note->offset);
    }
    aq_armci_lock_give(&notes->lock);
    return found;
}

static bool is_local_noted(const struct aq_armci_peer *peer, const void *ptr, size_t bytes)
{
    return is_noted(notes_of(peer), (uint64_t)((const char *)ptr - peer->base), bytes);
}

static gex_AM_Arg_t high_word(uint64_t word)
{
    return (gex_AM_Arg_t)(uint32_t)(word >> 32);
}

static gex_AM_Arg_t low_word(uint64_t word)
{
    return (gex_AM_Arg_t)(uint32_t)word;
}

static uint64_t word_of(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

void aq_armci_on_check(gex_Token_t token, gex_AM_Arg_t address_high, gex_AM_Arg_t address_low,
                       gex_AM_Arg_t bytes_high, gex_AM_Arg_t bytes_low)
{
    const void *ptr = (const void *)(uintptr_t)word_of(address_high, address_low);

    gex_AM_ReplyShort1(
        token, AQ_ARMCI_HANDLE_CHECK_REPLY, 0,
        is_local_noted(&aq_armci.peers[aq_armci.me], ptr, word_of(bytes_high, bytes_low)));
}

void aq_armci_on_check_reply(gex_Token_t token, gex_AM_Arg_t is_right)
{
    (void)token;
    /* release: pairs with the acquire of ask() */
    atomic_store_explicit(&verdict, is_right, memory_order_release);
}

static bool ask(int proc, const void *ptr, size_t bytes)
{
    const uint64_t word = (uint64_t)(uintptr_t)ptr;

    atomic_store_explicit(&verdict, -1, memory_order_relaxed); /* before the request is sent */
    gex_AM_RequestShort4(aq_armci.tm, (gex_Rank_t)proc, AQ_ARMCI_HANDLE_CHECK, 0, high_word(word),
                         low_word(word), high_word(bytes), low_word(bytes));
    GASNET_BLOCKUNTIL(atomic_load_explicit(&verdict, memory_order_acquire)
                      >= 0); /* from its handler */
    return atomic_load_explicit(&verdict, memory_order_relaxed) != 0;
}

void aq_armci_check_range(const char *call, const void *ptr, size_t bytes, int proc)
{
    const struct aq_armci_peer *peer = &aq_armci.peers[proc];
    const size_t offset = (size_t)((const char *)ptr - peer->base);
    bool is_right = offset < peer->size && bytes <= peer->size - offset;

    if (is_right)
        is_right =
            aq_armci_is_local(peer) ? is_local_noted(peer, ptr, bytes) : ask(proc, ptr, bytes);
    if (!is_right)
        aq_armci_fatal(
            "%s: [%p, +%zu) is not inside one allocation of rank %d (ARMCI_Malloc and its like)",
            call, ptr, bytes, proc);
}

void aq_armci_check_section(const struct aq_armci_section *section, const void *base,
                            const ptrdiff_t *strides, int proc)
{
    const char *first = base, *last = base;

    for (size_t i = 0; i < section->levels; i++) {
        const ptrdiff_t extent = strides[i] * (ptrdiff_t)(section->count[i] - 1);

        if (extent < 0)
            first += extent;
        else
            last += extent;
    }
    aq_armci_check_range(section->call, first, (size_t)(last - first) + section->bytes, proc);
}

void aq_armci_say_no_rank(const char *call, int proc)
{
    fprintf(stderr, "ARMCI: rank %d: %s: there is no rank %d; there are 0 to %d\n", aq_armci.me,
            call, proc, aq_armci.nproc - 1);
}

#endif
