/*
 * armci_check.c - the checks of a debug build: the remote range of a transfer lies in one
 * allocation of the target, and the rank exists.
 *
 * Owns      in each segment, the list of the allocations that other ranks may reach: a table in the
 *           owner's heap, which doubles when it is full
 * Threads   the list has a lock. The owner's program thread writes; ranks that map the segment and
 *           the owner's handler read
 * Wire      CHECK(address, bytes) -> CHECK_REPLY(1 if the range lies in one allocation, else 0)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if AQ_ARMCI_CHECKS

static _Atomic int verdict; /* the answer to this rank's CHECK; -1: none yet */

static struct aq_armci_notes *notes_of(const struct aq_armci_peer *peer)
{
    return &peer->control->notes;
}

static struct aq_armci_note *table_of(const struct aq_armci_peer *peer)
{
    return (struct aq_armci_note *)(void *)(peer->base + notes_of(peer)->table);
}

/* Makes space for twice as many allocations. The heap is used without the lock: it may run
 * handlers, which take the lock. */
static void grow(const struct aq_armci_peer *self, struct aq_armci_notes *notes)
{
    const uint32_t capacity = notes->capacity == 0 ? 1024 : 2 * notes->capacity;
    struct aq_armci_note *longer = aq_armci_heap_alloc(aq_armci.heap, capacity * sizeof(*longer));
    struct aq_armci_note *old = notes->capacity == 0 ? NULL : table_of(self);

    if (longer == NULL) {
        fprintf(stderr,
                "ARMCI: rank %d: no memory for a list of %u allocations: ranges of this rank are "
                "not checked from now on\n",
                aq_armci.me, capacity);
        notes->is_off = 1;
        return;
    }
    aq_armci_lock_take(&notes->lock);
    if (old != NULL)
        memcpy(longer, old, notes->count * sizeof(*longer));
    notes->table = (uint64_t)((char *)longer - self->base);
    notes->capacity = capacity;
    aq_armci_lock_give(&notes->lock);
    if (old != NULL)
        aq_armci_heap_free(aq_armci.heap, old, 0);
}

/* Only the owner's program thread changes the list. */
void aq_armci_note_memory(void *ptr, size_t bytes)
{
    const struct aq_armci_peer *self = &aq_armci.peers[aq_armci.me];
    struct aq_armci_notes *notes = notes_of(self);

    if (notes->count == notes->capacity && !notes->is_off)
        grow(self, notes);
    if (notes->is_off)
        return;
    aq_armci_lock_take(&notes->lock);
    table_of(self)[notes->count++] =
        (struct aq_armci_note){ (uint64_t)((char *)ptr - self->base), bytes };
    aq_armci_lock_give(&notes->lock);
}

void aq_armci_unnote_memory(const void *ptr)
{
    const struct aq_armci_peer *self = &aq_armci.peers[aq_armci.me];
    const uint64_t offset = (uint64_t)((const char *)ptr - self->base);
    struct aq_armci_notes *notes = notes_of(self);
    struct aq_armci_note *note;

    aq_armci_lock_take(&notes->lock);
    note = table_of(self);
    for (uint32_t i = 0; i < notes->count; i++) {
        if (note[i].offset == offset) {
            note[i] = note[--notes->count];
            break;
        }
    }
    aq_armci_lock_give(&notes->lock);
}

/* The table goes back with the heap. */
void aq_armci_unnote_all(void)
{
    struct aq_armci_notes *notes = notes_of(&aq_armci.peers[aq_armci.me]);

    aq_armci_lock_take(&notes->lock);
    notes->count = notes->capacity = notes->is_off = 0;
    aq_armci_lock_give(&notes->lock);
}

/* True if the range lies in one allocation, or if the list is off. */
static bool is_noted(const struct aq_armci_peer *peer, uint64_t offset, uint64_t bytes)
{
    struct aq_armci_notes *notes = notes_of(peer);
    const struct aq_armci_note *note;
    bool found;

    aq_armci_lock_take(&notes->lock);
    found = notes->is_off != 0;
    note = table_of(peer);
    for (uint32_t i = 0; i < notes->count && !found; i++)
        found = offset >= note[i].offset && offset - note[i].offset <= note[i].bytes
                && bytes <= note[i].bytes - (offset - note[i].offset);
    aq_armci_lock_give(&notes->lock);
    return found;
}

static bool is_local_noted(const struct aq_armci_peer *peer, const void *ptr, size_t bytes)
{
    return is_noted(peer, (uint64_t)((const char *)ptr - peer->base), bytes);
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
