/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_memmon.c - the memory monitor: which registrations may be kept, and when they must be
 * dropped.
 *
 * Owns      the sets of armed, trusted and doubtful memory; the events
 * Threads   one lock, held while events are passed on. In seq the client's thread is the only one
 *           here, since the event thread only fills a ring
 * Promise   a registration that is used after aq_fh_settle() belongs to the pages that are mapped
 *           there
 * Uses      aq_fh_events.h, aq_fh_permanent.h, aq_fh_vma.h, aq_fh_ranges.h, base/aq_lock.h
 *
 * The argument. A region enters firehose's table, then is covered, then registered. Each use starts
 *   with settling.
 *   - Changed before it was covered: it is registered afterwards, with its pages as they are then.
 *   - Changed later: the mapping is armed, and the change is noticed (see aq_fh_events.c). Settling
 *     drops the region before the next use, also one in use or being registered. Which mapping is
 *     armed is checked once more after arming, so that a mapping that came in between is not taken
 *     for the one that was asked about.
 *   - Memory whose changes make no event is not kept: shared memory (another process can cut the
 *     file or punch holes into it; shmdt makes no event), file mappings (the same) except programs'
 *     own data, devices.
 *   - Emptying (MADV_DONTNEED) makes its event before the pages go. A region registered between the
 *     event and the emptying would hold pages that go. So emptied memory is doubtful for
 *     AQ_FH_MEMMON_LINGER_NS, and regions there are not kept. In that time the kernel only has to
 *     take a lock and walk page tables. When the doubt ends that lock is taken once for writing, by
 *     arming anew, so that a walk under way ends first.
 *   - A flood of events, or changes without a pause: all registrations are dropped, and all
 *     knowledge of armed mappings too.
 * Not noticed, because the kernel makes no event: shmat(SHM_REMAP) on top of private memory,
 * madvise(MADV_GUARD_INSTALL), UFFDIO_MOVE of another userfaultfd. Programs that do this to memory
 * they have transferred call firehose_forget().
 *
 * Waiting. Settling waits at most AQ_FH_MEMMON_TIMEOUT_NS for the event thread, which depends on
 * nothing.
 */
#include "other/firehose/aq_fh_memmon.h"

#include <sched.h>
#include <stdlib.h>

#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "other/firehose/aq_fh_events.h"
#include "other/firehose/aq_fh_permanent.h"
#include "other/firehose/aq_fh_ranges.h"
#include "other/firehose/aq_fh_vma.h"

#define AQ_FH_MEMMON_DOUBTS     64
#define AQ_FH_MEMMON_TIMEOUT_NS 20000000u /* then everything is dropped instead */
#define AQ_FH_MEMMON_TRIES      4         /* of arming a mapping that changes under our hands */

struct aq_fh_doubt {
    uintptr_t start, end;
    uint64_t until_ns;
};

struct aq_fh_memmon_impl {
    struct aq_fh_memmon memmon; /* first: what firehose knows of us */
    enum aq_fh_memmon_mode mode;
    aq_fh_changed_fn *changed;
    void *arg;
    aq_lock lock;              /* of all below, and of who takes events */
    struct aq_fh_ranges armed; /* a part of what is */
    struct aq_fh_ranges trusted;
    struct aq_fh_doubt doubt[AQ_FH_MEMMON_DOUBTS];
    unsigned doubts;
    struct aq_fh_memmon_counts counts;
    struct aq_fh_events events;
};

static struct aq_fh_memmon_impl *aq_fh_memmon_impl(struct aq_fh_memmon *memmon)
{
    return (struct aq_fh_memmon_impl *)(void *)memmon;
}

/* --- doubt --- */

/* Not in doubt any more. Arming takes the lock of the address space for writing. */
static void aq_fh_memmon_trust_again(struct aq_fh_memmon_impl *impl, unsigned i)
{
    aq_fh_ranges_remove(&impl->armed, impl->doubt[i].start, impl->doubt[i].end);
    impl->doubt[i] = impl->doubt[--impl->doubts];
}

static bool aq_fh_memmon_doubts(struct aq_fh_memmon_impl *impl, uintptr_t start, uintptr_t end)
{
    bool found = false;
    uint64_t now;

    if (impl->doubts == 0)
        return false;
    now = aq_now_ns();
    for (unsigned i = impl->doubts; i-- > 0;) {
        if (impl->doubt[i].until_ns <= now)
            aq_fh_memmon_trust_again(impl, i);
        else
            found = found || (impl->doubt[i].start < end && impl->doubt[i].end > start);
    }
    return found;
}

static void aq_fh_memmon_doubt(struct aq_fh_memmon_impl *impl, uintptr_t start, uintptr_t end)
{
    struct aq_fh_doubt *doubt = impl->doubt;
    const uint64_t until = aq_now_ns() + AQ_FH_MEMMON_LINGER_NS;
    unsigned i = 0;

    /* a range that touches it grows; if there is no space, the last one does, over all that lies
     * between */
    while (i < impl->doubts && (doubt[i].start > end || doubt[i].end < start))
        i++;
    if (i == impl->doubts) {
        if (impl->doubts < AQ_FH_MEMMON_DOUBTS)
            doubt[impl->doubts++] = (struct aq_fh_doubt){ start, end, until };
        else
            i--;
    }
    if (doubt[i].start > start)
        doubt[i].start = start;
    if (doubt[i].end < end)
        doubt[i].end = end;
    doubt[i].until_ns = until;
}

/* --- settling --- */

static void aq_fh_memmon_event(void *arg, const struct aq_fh_event *event)
{
    struct aq_fh_memmon_impl *impl = arg;
    const uintptr_t end = event->addr + event->len;

    impl->counts.events++;
    if (event->kind == AQ_FH_EVENT_EMPTY)
        aq_fh_memmon_doubt(impl, event->addr, end);
    else
        aq_fh_ranges_remove(&impl->armed, event->addr, end);
    impl->changed(impl->arg, event->addr, event->len);
    if (event->kind == AQ_FH_EVENT_MOVE) {
        aq_fh_ranges_remove(&impl->armed, event->to, event->to + event->len);
        impl->changed(impl->arg, event->to, event->len);
    }
}

/* Everything has changed, for all that we know. */
static void aq_fh_memmon_flood(struct aq_fh_memmon_impl *impl)
{
    impl->counts.floods++;
    aq_fh_ranges_clear(&impl->armed);
    impl->changed(impl->arg, 0, AQ_FH_MEMMON_ALL);
}

/* Under the lock. Afterwards the table has no region that had changed when this was called. */
static void aq_fh_memmon_catch_up(struct aq_fh_memmon_impl *impl)
{
    uint64_t end = 0;

    for (;;) {
        const bool changing =
            aq_fh_events_changing(&impl->events); /* before unsettled is read: aq_fh_events.c */
        bool all;
        const unsigned reads = aq_fh_events_take(&impl->events, aq_fh_memmon_event, impl, &all);

        if (all) {
            aq_fh_memmon_doubt(impl, 0,
                               AQ_FH_MEMMON_ALL); /* an emptying may be among what was lost */
            aq_fh_memmon_flood(impl);
        }
        aq_fh_events_settled(&impl->events, reads);
        /* acquire: pairs with the thread's increment before its read */
        if (!changing && atomic_load_explicit(&impl->memmon.unsettled, memory_order_acquire) == 0)
            return;
        if (end == 0) {
            end = aq_now_ns() + AQ_FH_MEMMON_TIMEOUT_NS;
        } else if (aq_now_ns() > end) {
            aq_fh_memmon_flood(impl); /* what is read later drops what is registered from now on */
            return;
        }
        sched_yield();
    }
}

static void aq_fh_memmon_settle(struct aq_fh_memmon *memmon)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);

    aq_lock_acquire(&impl->lock);
    if (impl->mode == AQ_FH_MEMMON_EVENTS)
        aq_fh_memmon_catch_up(impl);
    aq_lock_release(&impl->lock);
}

static bool aq_fh_memmon_changing(struct aq_fh_memmon *memmon)
{
    return aq_fh_events_changing(&aq_fh_memmon_impl(memmon)->events);
}

/* --- covering --- */

/* May registrations of this mapping be kept while it is armed? */
static bool aq_fh_memmon_keeps(const struct aq_fh_vma *vma)
{
    if (vma->shared || vma->backing == AQ_FH_DEVICE)
        return false;
    return vma->backing == AQ_FH_ANONYMOUS || aq_fh_permanent_is_program(vma->start, vma->end);
}

/* Arms the mapping at addr. */
static int aq_fh_memmon_arm(struct aq_fh_memmon_impl *impl, uintptr_t addr, uintptr_t *end_out)
{
    struct aq_fh_vma vma, again;
    int rc = aq_fh_vma_find(addr, &vma);

    for (int try = 0; try < AQ_FH_MEMMON_TRIES && rc == AQ_OK; try++) {
        if (!aq_fh_memmon_keeps(&vma))
            return AQ_ERR_RESOURCE;
        rc = aq_fh_events_arm(&impl->events, vma.start, vma.end);
        if (rc == AQ_OK)
            rc = aq_fh_vma_find(addr, &again);
        if (rc != AQ_OK)
            break;
        if (again.start == vma.start && again.end == vma.end && aq_fh_memmon_keeps(&again)) {
            aq_fh_ranges_add(&impl->armed, vma.start, vma.end);
            impl->counts.armed++;
            *end_out = vma.end;
            return AQ_OK;
        }
        vma = again; /* it has been changed, or merged with its neighbour */
    }
    return AQ_ERR_RESOURCE;
}

static int aq_fh_memmon_cover_locked(struct aq_fh_memmon_impl *impl, uintptr_t start, uintptr_t end)
{
    int rc = AQ_OK;

    if (aq_fh_ranges_contains(&impl->trusted, start, end))
        return AQ_OK;
    if (impl->mode == AQ_FH_MEMMON_EVENTS)
        aq_fh_memmon_catch_up(impl);
    if (aq_fh_memmon_doubts(impl, start, end))
        return AQ_ERR_RESOURCE;
    if (impl->mode != AQ_FH_MEMMON_EVENTS)
        return impl->mode == AQ_FH_MEMMON_CLIENT || aq_fh_permanent_covers(start, end)
                   ? AQ_OK
                   : AQ_ERR_RESOURCE;
    if (aq_fh_ranges_contains(&impl->armed, start, end))
        return AQ_OK;
    while (start < end && rc == AQ_OK) {
        uintptr_t next = end;

        rc = aq_fh_memmon_arm(impl, start, &next);
        if (rc != AQ_OK
            && aq_fh_permanent_covers(start, start + 1)) /* a program's data before Linux 6.7 */
            rc = aq_fh_permanent_end(start, &next);
        start = next;
    }
    return rc;
}

static int aq_fh_memmon_cover(struct aq_fh_memmon *memmon, uintptr_t addr, size_t len)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);
    int rc;

    aq_lock_acquire(&impl->lock);
    rc = aq_fh_memmon_cover_locked(impl, addr, addr + len);
    impl->counts.refused += rc != AQ_OK;
    aq_lock_release(&impl->lock);
    return rc;
}

void aq_fh_memmon_trust(struct aq_fh_memmon *memmon, const void *addr, size_t size)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);

    aq_lock_acquire(&impl->lock);
    aq_fh_ranges_add(&impl->trusted, (uintptr_t)addr, (uintptr_t)addr + size);
    aq_lock_release(&impl->lock);
}

void aq_fh_memmon_forget(struct aq_fh_memmon *memmon, const void *addr, size_t nbytes)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);
    const uintptr_t start = (uintptr_t)addr & ~(uintptr_t)(AQ_FH_PAGE - 1);
    const uintptr_t end = aq_round_up((uintptr_t)addr + nbytes, AQ_FH_PAGE);

    if (nbytes == 0)
        return;
    aq_lock_acquire(&impl->lock);
    aq_fh_memmon_doubt(impl, start, end);
    aq_fh_ranges_remove(&impl->armed, start, end);
    impl->changed(impl->arg, start, end - start);
    aq_lock_release(&impl->lock);
}

/* --- open and close --- */

int aq_fh_memmon_open(enum aq_fh_memmon_mode mode, aq_fh_changed_fn *changed, void *arg,
                      struct aq_fh_memmon **memmon_out, const char **why_out)
{
    struct aq_fh_memmon_impl *impl = calloc(1, sizeof(*impl));
    int rc = AQ_OK;

    *why_out = NULL;
    if (impl == NULL)
        return aq_fail(AQ_ERR_NOMEM, "firehose: no memory for %zu bytes", sizeof(*impl));
    impl->changed = changed;
    impl->arg = arg;
    impl->mode = mode;
    impl->memmon.cover = aq_fh_memmon_cover;
    impl->memmon.settle = aq_fh_memmon_settle;
    aq_fh_permanent_look();
    if (mode == AQ_FH_MEMMON_AUTO || mode == AQ_FH_MEMMON_EVENTS) {
        rc = aq_fh_events_open(&impl->events, &impl->memmon.unsettled, why_out);
        impl->mode = rc == AQ_OK ? AQ_FH_MEMMON_EVENTS : AQ_FH_MEMMON_MALLOC;
    }
    if (rc != AQ_OK && mode == AQ_FH_MEMMON_EVENTS) {
        free(impl);
        return rc;
    }
    if (impl->mode == AQ_FH_MEMMON_EVENTS)
        impl->memmon.changing = aq_fh_memmon_changing;
    *memmon_out = &impl->memmon;
    return AQ_OK;
}

void aq_fh_memmon_close(struct aq_fh_memmon *memmon)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);

    if (impl->mode == AQ_FH_MEMMON_EVENTS) {
        /* Closing the descriptor would do, unless a child that was not made by fork() has it open
         * too. */
        for (size_t i = 0; i < impl->armed.count; i++)
            aq_fh_events_disarm(&impl->events, impl->armed.range[i].start,
                                impl->armed.range[i].end);
        aq_fh_events_close(&impl->events);
    }
    aq_fh_ranges_clear(&impl->armed);
    aq_fh_ranges_clear(&impl->trusted);
    aq_fh_vma_close();
    free(impl);
}

enum aq_fh_memmon_mode aq_fh_memmon_mode(const struct aq_fh_memmon *memmon)
{
    return aq_fh_memmon_impl((struct aq_fh_memmon *)(uintptr_t)memmon)->mode;
}

void aq_fh_memmon_counts(struct aq_fh_memmon *memmon, struct aq_fh_memmon_counts *counts_out)
{
    struct aq_fh_memmon_impl *impl = aq_fh_memmon_impl(memmon);

    aq_lock_acquire(&impl->lock);
    *counts_out = impl->counts;
    aq_lock_release(&impl->lock);
}
