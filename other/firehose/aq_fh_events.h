/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_events.h - userfaultfd events, and the thread that reads them: the kernel tells which
 * memory of this process is unmapped, moved or emptied.
 *
 * A mapping is armed as a whole. From then on a call that unmaps, moves or empties a part of it
 * sleeps in the kernel until the thread has read the event. The thread only notes the event in a
 * ring; client threads take events from the ring (aq_fh_memmon.c).
 *
 * Owns      the descriptor, the thread, the ring
 * Threads   arm, disarm, changing: any. take, settled: one at a time (the memory monitor's lock).
 *           The event thread takes no lock, allocates nothing, and touches no memory that could
 *           cause an event: a thread that waits for it may hold any lock of the program, malloc's
 *           included
 * Uses      the kernel; base/aq_rc.h
 */
#ifndef AQ_FH_EVENTS_H
#define AQ_FH_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_FH_EVENTS_RING \
    2048 /* events not yet taken; if there are more, everything counts as changed */

enum aq_fh_event_kind {
    AQ_FH_EVENT_UNMAP, /* [addr, addr+len) is mapped no more, or something else is */
    /* it will get fresh pages, in a moment (!): madvise(MADV_DONTNEED), _FREE, _REMOVE */
    AQ_FH_EVENT_EMPTY,
    AQ_FH_EVENT_MOVE /* its pages are at `to` now */
};

struct aq_fh_event {
    enum aq_fh_event_kind kind;
    uintptr_t addr, to;
    size_t len;
};

struct aq_fh_events {
    atomic_int fd; /* -1: none, or in a forked child */
    int wake;      /* an eventfd: the thread is to end */
    atomic_uint *
        /* struct aq_fh_memmon: counts reads, from before each until aq_fh_events_settled() */
        unsettled;
    pthread_t thread;
    void *test; /* what the thread plays with first, see aq_fh_events_verify() */
    atomic_int verify;
    /* One writer, the thread; one reader at a time. */
    atomic_uint head, tail; /* events written, events taken */
    atomic_uint finished;   /* reads whose events are in the ring */
    atomic_bool flood;      /* the ring was full */
    unsigned settled;       /* the reader's: how many of `finished` it has seen */
    struct aq_fh_event ring[AQ_FH_EVENTS_RING];
};

/**
 * aq_fh_events_open - ask for events, make sure that they come as they must, start the thread.
 * why_out   if negative: the reason, in words
 * Returns AQ_OK or AQ_ERR_SYS; nothing is logged, since there is another way (aq_fh_permanent.h).
 */
int aq_fh_events_open(struct aq_fh_events *events, atomic_uint *unsettled, const char **why_out);

/** aq_fh_events_close - disarm all mappings, release the calls that wait, join the thread. Not from
 * a signal handler. */
void aq_fh_events_close(struct aq_fh_events *events);

/**
 * aq_fh_events_changing - is a call under way that has changed, or will change, an armed mapping,
 * and whose event has not been read yet? One system call. If not, the event of each change so far
 * is counted in unsettled.
 */
bool aq_fh_events_changing(struct aq_fh_events *events);

/** aq_fh_events_arm - [start, end), whole mappings, from now on. Again: harmless. AQ_OK or
 * AQ_ERR_SYS (not logged). */
int aq_fh_events_arm(struct aq_fh_events *events, uintptr_t start, uintptr_t end);

/** aq_fh_events_disarm - not any more. */
void aq_fh_events_disarm(struct aq_fh_events *events, uintptr_t start, uintptr_t end);

/**
 * aq_fh_events_take - hand everything that has been read to each(); all true: some events were lost
 * in a flood. Returns how many reads that were, to be given to aq_fh_events_settled() when all is
 * done.
 */
unsigned aq_fh_events_take(struct aq_fh_events *events,
                           void (*each)(void *arg, const struct aq_fh_event *event), void *arg,
                           bool *all_out);
void aq_fh_events_settled(struct aq_fh_events *events, unsigned reads);

#endif
