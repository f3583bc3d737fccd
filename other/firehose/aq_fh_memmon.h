/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_memmon.h - the memory monitor that aq_fh.h asks for (struct aq_fh_memmon): which
 * registrations may be kept.
 *
 *   events   the kernel tells of each change (aq_fh_events.h): the process's own memory stays
 *            registered until it changes
 *   malloc   no events: only memory that never goes stays registered, and malloc is told to keep
 *            its heap (aq_fh_permanent.h)
 *   client   no events: everything stays registered; the program promises to call
 *            firehose_forget()
 *
 * Threads   any, in par
 * Uses      aq_fh_events.h, aq_fh_permanent.h, aq_fh_vma.h, aq_fh.h
 * See       docs/design/memory-monitor.md
 */
#ifndef AQ_FH_MEMMON_H
#define AQ_FH_MEMMON_H

#include <stddef.h>
#include <stdint.h>

#include "gasnet/words.h"
#include "other/firehose/aq_fh.h"

/* The values of AQ_FIREHOSE_MONITOR, in their order. */
enum aq_fh_memmon_mode {
    AQ_FH_MEMMON_AUTO, /* events, else malloc */
    AQ_FH_MEMMON_EVENTS,
    AQ_FH_MEMMON_MALLOC,
    AQ_FH_MEMMON_CLIENT
};

/* How long after its pages began to go memory is not kept, ns: see aq_fh_memmon.c. */
#define AQ_FH_MEMMON_LINGER_NS 1000000000u

/* Everything, as a range. */
#define AQ_FH_MEMMON_ALL (SIZE_MAX - 4095)

/* What is called for memory that has changed, e.g. aq_fh_invalidate(): in the thread that settles,
 * no transfer that begins after it may use a registration made before. It may deregister, must not
 * call the memory monitor. */
typedef void aq_fh_changed_fn(void *arg, uintptr_t addr, size_t nbytes);

/**
 * aq_fh_memmon_open - start the memory monitor.
 * why_out   the reason, in words, if events were asked for and there are none; else NULL
 * Returns AQ_OK, or negative: no memory (logged), or no events although mode is AQ_FH_MEMMON_EVENTS
 * (not logged).
 */
int aq_fh_memmon_open(enum aq_fh_memmon_mode mode, aq_fh_changed_fn *changed, void *arg,
                      struct aq_fh_memmon **memmon_out, const char **why_out);

/** aq_fh_memmon_close - end; no registration is used any more. Calls blocked in the kernel
 * return. */
void aq_fh_memmon_close(struct aq_fh_memmon *memmon);

/** aq_fh_memmon_mode - what was chosen: never AQ_FH_MEMMON_AUTO. */
enum aq_fh_memmon_mode aq_fh_memmon_mode(const struct aq_fh_memmon *memmon);

/** aq_fh_memmon_trust - [addr, addr+size) is the library's own and stays as it is: the segment. */
void aq_fh_memmon_trust(struct aq_fh_memmon *memmon, const void *addr, size_t size);

/** aq_fh_memmon_forget - [addr, addr+nbytes) is about to change, in a way that makes no event. */
void aq_fh_memmon_forget(struct aq_fh_memmon *memmon, const void *addr, size_t nbytes);

/* Figures, for tests and statistics. */
struct aq_fh_memmon_counts {
    uint64_t events, floods; /* taken; times that everything was declared changed */
    uint64_t armed;          /* mappings */
    uint64_t refused;        /* covers that said no */
};
void aq_fh_memmon_counts(struct aq_fh_memmon *memmon, struct aq_fh_memmon_counts *counts_out);

/* --- the job's (aq_fh_permanent.c) --- */

/**
 * aq_fh_memmon_job_open - start the memory monitor that the settings ask for. It calls
 * aq_fh_invalidate() for aq_fh_job. Returns AQ_OK or negative (logged).
 */
int aq_fh_memmon_job_open(struct aq_fh_memmon **memmon_out);

/** aq_fh_memmon_job_close - end it, after aq_fh_close(). */
void aq_fh_memmon_job_close(void);

/* What programs call; they find it, and what it promises, in firehose_forget.h of the ibv conduit.
 * */
AQ_PUBLIC void firehose_forget(const void *addr, size_t nbytes);

#endif
