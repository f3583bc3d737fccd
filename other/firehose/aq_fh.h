/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh.h - firehose: which memory, local and of peers, is registered with the network's device.
 *
 * Each rank lets its peers have references to AQ_ENV_FIREHOSE_M bytes of its memory, wherever it
 * is. Each peer has a quota of that and decides by itself which pages its references cover. A
 * region of pages that a peer has a reference to (a firehose) stays registered until the peer gives
 * the reference up, so a transfer to it needs no message: a hit. A miss costs one round trip (a
 * move): the initiator gives up regions that it no longer uses and gets the key of the new one; the
 * first bytes of the transfer travel with the message. Regions without references stay registered
 * as victims while there is space (AQ_ENV_FIREHOSE_MAXVICTIM_M), oldest evicted first. The sources
 * and destinations of own transfers use the same space.
 *
 * A transfer     aq_fh_remote() for the peer's memory, then aq_fh_local() for the local memory: in
 *                this order, since transfers that have one and wait for the other could otherwise
 *                wait for each other in a circle. Each returns a hold, of at least the first byte.
 *                The caller transfers what both cover, releases both, and goes on
 * Owns           regions, holds and tables; one struct aq_fh belongs to one rank
 * Threads        any, in par; done() and the reg and dereg operations run without a lock
 * Promise        registered bytes never exceed the two budgets. A region is deregistered exactly
 *                once, and while nothing uses it. Serving a peer's move waits for nothing. A hit
 *                takes constant time
 * Uses           base/aq_lock.h, base/aq_rc.h; the caller sends messages and registers (struct
 *                aq_fh_ops)
 * See            docs/design/firehose.md
 */
#ifndef AQ_FH_H
#define AQ_FH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_platform.h"
#include "base/aq_rc.h"

#define AQ_FH_RAILS       4 /* keys of a region: one for each device that a conduit uses */
#define AQ_FH_PAGE        4096u
#define AQ_FH_CHUNK_PAGES 1024u /* the largest chunk of overlapped registration */
/* no message, and no answer, is longer; config.message may say less */
#define AQ_FH_MESSAGE 4096u

struct aq_fh;
struct aq_fh_region;

/* The result of registration. */
struct aq_fh_reg {
    void *handle;              /* the conduit's: local keys, what dereg needs */
    uint32_t key[AQ_FH_RAILS]; /* for peers; sent as they are */
};

/* What a conduit provides. Registration works on whole pages. */
struct aq_fh_ops {
    /* Register [addr, addr+len); write: for transfers that write to it too, else it may be
     * read-only memory. AQ_OK, or negative without a log line: memory that is not there, or the
     * limit of locked memory. */
    int (*reg)(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out);
    void (*dereg)(void *arg, const struct aq_fh_reg *reg);
    /* Send a request to a peer without blocking: AQ_OK, or AQ_RETRY. The peer calls aq_fh_serve().
     * */
    int (*send_request)(void *arg, uint32_t peer, const void *msg, size_t nbytes);
};

/* The memory monitor: notices that the program unmaps memory. May be NULL in the config. */
struct aq_fh_memmon {
    /* Not 0: the program may have changed mappings that aq_fh_invalidate() has not been told of.
     * The thread that reads events counts up before munmap() and the like can return, and down when
     * aq_fh_invalidate() has returned. */
    atomic_uint unsettled;
    /* Returns when everything that was unsettled at the call has reached aq_fh_invalidate(). Any
     * thread, no lock held. */
    void (*settle)(struct aq_fh_memmon *memmon);
    /* Before [addr, addr+len) is registered: from now on changes to it are noticed. AQ_OK;
     * negative: changes cannot be noticed, and the region is deregistered after its first use. */
    int (*cover)(struct aq_fh_memmon *memmon, uintptr_t addr, size_t len);
    /* Is a change under way that is not counted in `unsettled` yet? A system call, made before
     * `unsettled` is read; NULL: there is never one. */
    bool (*changing)(struct aq_fh_memmon *memmon);
};

struct aq_fh_config {
    uint32_t rank, size; /* of the job */
    uint32_t peers; /* ranks that may have references to a rank's memory; the same on all ranks */
    uint64_t remote_bytes; /* for all quotas; the same on all ranks */
    uint64_t local_bytes;  /* own transfers and victims */
    uint32_t remote_regions, local_regions;
    size_t max_region; /* bytes: the size to which small misses grow */
    size_t max_chunk;  /* bytes: the largest region, of a large transfer; aq_fh_max_chunk() */
    size_t message;    /* bytes: longest message, at most AQ_FH_MESSAGE */
    size_t carry;      /* bytes: the most data that travel with a miss */
    struct aq_fh_memmon *memmon;
};

/** aq_fh_limit_local - own transfers have at most so many bytes (at least 16 KB); before the first
 * of them. */
void aq_fh_limit_local(struct aq_fh *fh, uint64_t local_bytes);

/** aq_fh_limit_remote - peers get references to memory in [start, end) only, whole pages; before
 * the first move of a peer. Beyond it they are told that it cannot be registered. */
void aq_fh_limit_remote(struct aq_fh *fh, uintptr_t start, uintptr_t end);

/** aq_fh_open - a rank's manager. arg is passed to the operations. AQ_OK, or negative and
 * logged. */
int aq_fh_open(const struct aq_fh_config *config, const struct aq_fh_ops *ops, void *arg,
               struct aq_fh **fh_out);

/** aq_fh_max_chunk - what a large transfer may ask for at once: for aq_fh_chunk(). */
size_t aq_fh_max_chunk(const struct aq_fh *fh);

/** aq_fh_close - deregister everything and free; no transfer is under way and no message arrives
 * any more. */
void aq_fh_close(struct aq_fh *fh);

/* --- transfers --- */

/* A part of memory that stays registered until aq_fh_release(). */
struct aq_fh_hold {
    uintptr_t addr;              /* as asked for */
    size_t len;                  /* at least 1, at most as asked for */
    const struct aq_fh_reg *reg; /* its keys (and handle: local memory only); as long as the hold */
    struct aq_fh_region *region;
};

/**
 * aq_fh_local - hold memory of this process, for as much of [addr, addr+nbytes) as one region
 * covers; registers it if need be.
 * write     the device writes to it (destination of a get), else it only reads
 * Context   any thread, no lock held
 * Returns AQ_OK; AQ_RETRY if transfers under way use all the space: poll, try again; negative (not
 * logged): the memory cannot be registered, transfer through a buffer instead.
 */
int aq_fh_local(struct aq_fh *fh, uintptr_t addr, size_t nbytes, bool write,
                struct aq_fh_hold *hold_out);

/** aq_fh_local_chunk - the same, but what is not registered yet is registered up to chunk bytes
 * only. */
int aq_fh_local_chunk(struct aq_fh *fh, uintptr_t addr, size_t nbytes, size_t chunk, bool write,
                      struct aq_fh_hold *hold_out);

/* A request for memory of a peer, in the caller's memory until AQ_OK, AQ_RETRY or done(). */
struct aq_fh_request {
    uint32_t peer;
    bool write;     /* put, or atomic; else get */
    uintptr_t addr; /* the peer's */
    size_t nbytes;
    size_t chunk; /* a miss asks for no more of it; 0: for all */
    const void
        *put;  /* write: the bytes, of which the first may travel with a miss; NULL: they may not */
    void *get; /* else: where to */
    void (*done)(
        struct aq_fh_request
            *request); /* after AQ_PENDING; any thread, perhaps in a reply handler, perhaps before
                                            * aq_fh_remote() has returned; may call everything here,
                                            * sends no request */
    void *arg;         /* the caller's */
    /* The result. */
    /* in done(): AQ_OK; AQ_RETRY: ask again; negative: the peer cannot register it, use messages */
    int rc;
    size_t carried;             /* bytes from addr on that were transferred by the miss */
    struct aq_fh_hold hold;     /* of what follows them; region NULL if that is nothing */
    struct aq_fh_request *next; /* firehose's */
};

/**
 * aq_fh_remote - hold memory of a peer, for as much of the request as one region covers.
 * Returns AQ_OK: a hit, request->hold is valid and nothing was carried; AQ_PENDING: a message is
 * under way, done() is called; AQ_RETRY: transfers under way use all of the quota, or no message
 * can be sent now: poll, try again; negative: no memory, or no quota (config.peers 0).
 */
int aq_fh_remote(struct aq_fh *fh, struct aq_fh_request *request);

/** aq_fh_release - end a hold, when the device is done with the memory. Any thread and context. */
void aq_fh_release(struct aq_fh *fh, struct aq_fh_hold *hold);

/* Overlapped registration: a large transfer asks for AQ_FH_WHOLE, up to which one call for all is
 * as fast, then for twice as much each time, so that it registers a chunk while the device
 * transfers the one before. Chunks stay, and every transfer that crosses their ends goes in as many
 * requests: smaller ones would cost later transfers more than they save this one. Start with { 0
 * }. */
#define AQ_FH_WHOLE ((size_t)64 << 10)
struct aq_fh_chunks {
    size_t next;
};

/** aq_fh_chunk - how much of [addr, addr+left) to ask for now; ends at a page, or at the end. */
static inline size_t aq_fh_chunk(struct aq_fh_chunks *chunks, uintptr_t addr, size_t left,
                                 size_t max_chunk)
{
    const size_t first = AQ_FH_WHOLE < max_chunk ? AQ_FH_WHOLE : max_chunk;
    const size_t pages = chunks->next != 0 ? chunks->next : first;
    const size_t nbytes = aq_round_up(addr % AQ_FH_PAGE + pages, AQ_FH_PAGE) - addr % AQ_FH_PAGE;

    if (chunks->next == 0 && left <= AQ_FH_WHOLE)
        return left;
    chunks->next = pages * 2 < max_chunk ? pages * 2 : max_chunk;
    return nbytes < left ? nbytes : left;
}

/* --- messages and progress --- */

/**
 * aq_fh_serve - a request from a peer has come; waits for nothing.
 * answer    space for AQ_FH_MESSAGE bytes; to be sent back to the peer, which calls
 * aq_fh_answered() Returns the length of the answer, or 0 if the request is malformed (logged).
 */
size_t aq_fh_serve(struct aq_fh *fh, uint32_t peer, const void *msg, size_t nbytes, void *answer);

/** aq_fh_answered - the answer to a request of this rank has arrived. */
void aq_fh_answered(struct aq_fh *fh, uint32_t peer, const void *msg, size_t nbytes);

/** aq_fh_progress - send what waits to be sent; call when aq_fh_has_work(), from polls. Any thread,
 * any context. */
void aq_fh_progress(struct aq_fh *fh);

/* The part of struct aq_fh that inline functions look at. */
struct aq_fh_head {
    atomic_uint work;      /* messages that wait to be sent */
    atomic_uint recalls;   /* regions of unmapped memory, with references of peers */
    atomic_uint peer_refs; /* local regions with references of peers */
    struct aq_fh_memmon *memmon;
};

static inline bool aq_fh_has_work(const struct aq_fh *fh)
{
    /* relaxed: a hint; a conduit looks at it before it sleeps */
    return atomic_load_explicit(&((struct aq_fh_head *)(uintptr_t)fh)->work, memory_order_relaxed)
           != 0;
}

/* May memory have changed without aq_fh_invalidate() having been told? */
static inline bool aq_fh_memmon_behind(struct aq_fh_memmon *memmon)
{
    /* acquire: pairs with the monitor's release after aq_fh_invalidate(): its effect on the regions
     * is visible */
    return (memmon->changing != NULL && memmon->changing(memmon))
           || atomic_load_explicit(&memmon->unsettled, memory_order_acquire) != 0;
}

/**
 * aq_fh_is_quiet - may this rank send messages and puts? Not while peers have references to memory
 * that the program has unmapped: what this rank sends might make them use it. Call it before each
 * message or put to any rank, except for firehose's own messages. If not: aq_fh_settle(), poll, and
 * call it again. Costs a load or two while peers have no references here.
 */
static inline bool aq_fh_is_quiet(const struct aq_fh *fh)
{
    struct aq_fh_head *head = (struct aq_fh_head *)(uintptr_t)fh;

    /* acquire: pairs with the release that counts a recall as noted, whose answer a message of this
     * rank may follow */
    if (AQ_LIKELY((atomic_load_explicit(&head->peer_refs, memory_order_acquire)
                   | atomic_load_explicit(&head->recalls, memory_order_acquire))
                  == 0))
        return true;
    return (head->memmon == NULL || !aq_fh_memmon_behind(head->memmon))
           && atomic_load_explicit(&head->recalls, memory_order_acquire) == 0;
}

/** aq_fh_is_recalling - has a peer still to be told of memory that aq_fh_invalidate() was called
 * for? Until it has, it may use its reference. Poll and ask again. */
static inline bool aq_fh_is_recalling(const struct aq_fh *fh)
{
    /* acquire: pairs with the release that counts a recall as noted */
    return atomic_load_explicit(&((struct aq_fh_head *)(uintptr_t)fh)->recalls,
                                memory_order_acquire)
           != 0;
}

/** aq_fh_settle - let the memory monitor catch up: afterwards aq_fh_invalidate() has been called
 * for all changes before. No lock held. */
static inline void aq_fh_settle(struct aq_fh *fh)
{
    struct aq_fh_memmon *memmon = ((struct aq_fh_head *)(void *)fh)->memmon;

    if (memmon != NULL && AQ_UNLIKELY(aq_fh_memmon_behind(memmon)))
        memmon->settle(memmon);
}

/* --- unmapped memory --- */

/**
 * aq_fh_invalidate - the program has unmapped, moved, or given back the pages of [addr,
 * addr+nbytes): no transfer that begins after this call uses a registration made before. Regions
 * are deregistered when the last transfer and the last peer have let go. In seq the client's thread
 * only: the memory monitor calls it in settle(). Not in a signal handler.
 */
void aq_fh_invalidate(struct aq_fh *fh, uintptr_t addr, size_t nbytes);

/**
 * aq_fh_peer_disconnect - a peer has left: it sends, answers and transfers nothing any more. Its
 * references are dropped, no recall or release is sent to it, and no answer to one is waited for.
 * The call may be repeated, and messages that the peer sent may still be served. Transfers to it
 * are the program's mistake, and the network's to notice. No lock held; any thread.
 */
void aq_fh_peer_disconnect(struct aq_fh *fh, uint32_t rank);

/** aq_fh_is_notice - may this request be dropped if its receiver has left? Not one that a transfer
 * waits for. */
bool aq_fh_is_notice(const void *msg);

/* --- figures --- */

struct aq_fh_counts {
    uint64_t remote_hits, remote_misses, remote_waits; /* waits: joined a move under way */
    uint64_t moves, releases, recalls;                 /* messages sent */
    uint64_t carried; /* misses whose data all travelled with them */
    uint64_t local_hits, local_misses;
    uint64_t regs, deregs, reg_failures;
    uint64_t reg_bytes, reg_regions;        /* now */
    uint64_t remote_charged, local_charged; /* now: bytes against the two budgets */
    uint64_t stale;                         /* regions found invalid */
};

void aq_fh_counts(struct aq_fh *fh, struct aq_fh_counts *counts_out);

/* The process's manager; NULL unless the conduit has started it. */
extern struct aq_fh *aq_fh_job;

#endif
