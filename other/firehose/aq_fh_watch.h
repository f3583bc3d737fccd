/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_watch.h - which registrations may be kept: the watch that aq_fh.h asks for (struct aq_fh_watch).
 *
 *   events   the kernel tells of each change (aq_fh_events.h): memory of the process's own is kept until it changes
 *   malloc   no events: only memory that never goes is kept, and malloc is told to keep its heap (aq_fh_guard.h)
 *   client   no events: everything is kept; the program promises to call firehose_forget()
 *
 * Threads   any, in par
 * Uses      aq_fh_events.h, aq_fh_guard.h, aq_fh_vma.h, aq_fh.h
 * See       docs/design/memory-watch.md
 */
#ifndef AQ_FH_WATCH_H
#define AQ_FH_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "gasnet/words.h"
#include "other/firehose/aq_fh.h"

/* The words of AQ_FIREHOSE_WATCH, in their order. */
enum aq_fh_watch_mode {
    AQ_FH_WATCH_AUTO, /* events, else malloc */
    AQ_FH_WATCH_EVENTS,
    AQ_FH_WATCH_MALLOC,
    AQ_FH_WATCH_CLIENT
};

/* How long after its pages began to go memory is not kept, ns: see aq_fh_watch.c. */
#define AQ_FH_WATCH_LINGER_NS 1000000000u

/* Everything, as a range. */
#define AQ_FH_WATCH_ALL (SIZE_MAX - 4095)

/* What is called for memory that has changed, e.g. aq_fh_invalidate(): in the thread that settles, no transfer that
 * begins after it may use a registration made before. It may unpin, must not call the watch. */
typedef void aq_fh_gone_fn(void *arg, uintptr_t addr, size_t nbytes);

/**
 * aq_fh_watch_open - start to watch.
 * why_out   the reason, in words, if events were asked for and there are none; else NULL
 * Returns AQ_OK, or negative: no memory (logged), or no events although mode is AQ_FH_WATCH_EVENTS (not logged).
 */
int aq_fh_watch_open(enum aq_fh_watch_mode mode, aq_fh_gone_fn *gone, void *arg, struct aq_fh_watch **watch_out,
                     const char **why_out);

/** aq_fh_watch_close - end; nobody uses a registration any more. Calls blocked in the kernel return. */
void aq_fh_watch_close(struct aq_fh_watch *watch);

/** aq_fh_watch_mode - what was chosen: never AQ_FH_WATCH_AUTO. */
enum aq_fh_watch_mode aq_fh_watch_mode(const struct aq_fh_watch *watch);

/** aq_fh_watch_trust - [addr, addr+size) is the library's own and stays as it is: the segment. */
void aq_fh_watch_trust(struct aq_fh_watch *watch, const void *addr, size_t size);

/** aq_fh_watch_forget - [addr, addr+nbytes) is about to change, in a way that makes no event. */
void aq_fh_watch_forget(struct aq_fh_watch *watch, const void *addr, size_t nbytes);

/* Figures, for tests and statistics. */
struct aq_fh_watch_counts {
    uint64_t events, floods; /* taken; times that everything was declared changed */
    uint64_t armed;          /* mappings */
    uint64_t refused;        /* covers that said no */
};
void aq_fh_watch_counts(struct aq_fh_watch *watch, struct aq_fh_watch_counts *counts_out);

/* --- the job's (aq_fh_guard.c) --- */

/**
 * aq_fh_watch_job_open - start the watch that the settings ask for, for aq_fh_job_start(). It tells aq_fh_job.
 * Returns AQ_OK or negative (logged).
 */
int aq_fh_watch_job_open(struct aq_fh_watch **watch_out);

/** aq_fh_watch_job_close - end it, after aq_fh_close(). */
void aq_fh_watch_job_close(void);

/* What programs call; they find it, and what it promises, in firehose_forget.h of the ibv conduit. */
AQ_PUBLIC void firehose_forget(const void *addr, size_t nbytes);

#endif
