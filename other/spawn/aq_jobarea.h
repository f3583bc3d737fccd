/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_jobarea.h - the job area: memory that the ranks of a host share to start and end the job.
 * Owns      struct aq_jobarea, made by the supervisor (or by the host's first rank) and mapped by
 *           every rank of the host. It lives in a memfd, so it vanishes with its last process
 * Holds     job size, exit state and exit code; for each rank: pid, state, exit code, what it waits
 *           for, 16 counters, and the core that it runs on, in a separate table, since a rank reads
 *           all of them together; a futex barrier and an area for exchanges among its ranks
 * Threads   all fields that change are atomic. A slot is written by its own rank only, except pid
 *           and state before the rank has joined
 * Uses      the kernel (memfd, futex); nothing of core/, because the launcher uses it too
 * See       aq_shutdown.h for the processes that act on the exit state
 */
#ifndef AQ_JOBAREA_H
#define AQ_JOBAREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define AQ_JOBAREA_MAGIC    0x61712d6a6f626172u /* "aq-jobar" */
#define AQ_JOBAREA_LINE     64                  /* bytes; slots share no cache line */
#define AQ_JOBAREA_COUNTERS 16
#define AQ_JOBAREA_CHUNK    1024 /* bytes of each rank in each round of an exchange */
#define AQ_JOBAREA_HOST_FDS 8    /* slots of aq_spawn_host_fd() */
/* bytes of each rank among the addresses of a job on several hosts */
#define AQ_JOBAREA_ADDR_MAX 64
#define AQ_SPAWN_MAX_RANKS  16384u     /* maximum on one host; more are refused at start */
#define AQ_SPAWN_MAX_JOB    (1u << 20) /* maximum on all hosts together */

/* State of a rank. The order matters: >= EXITING means that the rank is at the exit. */
enum aq_rank_state {
    AQ_RANK_EMPTY = 0, /* the process may exist, but has not called aq_spawn_init() */
    AQ_RANK_JOINED,    /* in aq_spawn_init() */
    AQ_RANK_READY,     /* aq_exit_init() done: signals and exit() are handled */
    AQ_RANK_LEFT,      /* called exit() under GASNET_CATCH_EXIT=0: it has ended, the job goes on */
    AQ_RANK_DISCONNECTED, /* has ended a job over a group: it is no rank any more, and goes on */
    AQ_RANK_EXITING,      /* wants the job to end; its code is published */
    AQ_RANK_FLUSHING, /* the same, and flushes stdio: takes as long as the reader of its output */
    AQ_RANK_ENDED,    /* the same, and has nothing left to do but to end its process */
    AQ_RANK_CRASHED   /* fatal signal; the message is printed */
};

/* Progress of the job's shutdown; it only grows. */
enum aq_exit_state {
    AQ_EXIT_NONE = 0, /* running */
    AQ_EXIT_SHUTDOWN, /* some rank is at the exit */
    /* the other ranks were asked to end by SIGQUIT; codes published later do not count */
    AQ_EXIT_ASKED,
    AQ_EXIT_KILLING /* GASNET_EXITTIMEOUT has passed: remaining ranks get SIGKILL */
};

/* What a rank waits for, for stall reports. Append only. */
enum aq_wait_kind {
    AQ_WAIT_NONE = 0,
    AQ_WAIT_START, /* start-up exchange */
    AQ_WAIT_BARRIER,
    AQ_WAIT_EVENT,      /* completion of a put, get or AM local completion */
    AQ_WAIT_QUEUE,      /* space in the peer's queue */
    AQ_WAIT_BLOCKUNTIL, /* a client's own condition */
    AQ_WAIT_COLL,       /* a collective */
    AQ_WAIT_KINDS
};

#define AQ_WAIT_ANYONE UINT32_MAX /* unknown peer */

/* Counters that a stall report prints; the rest of counter[] is free. */
enum aq_jobarea_counter { AQ_COUNT_AM_SENT = 0, AQ_COUNT_AM_HANDLED = 1 };

struct aq_jobarea_rank {
    _Alignas(AQ_JOBAREA_LINE) _Atomic int32_t pid; /* 0 until joined */
    _Atomic uint32_t state;                        /* enum aq_rank_state */
    _Atomic int32_t code;                          /* 0..255, valid from EXITING on */
    _Atomic uint32_t frozen;                       /* waits for a debugger: no timeout applies */
    _Atomic uint64_t wait;                         /* kind << 32 | peer jobrank */
    _Atomic uint64_t wait_since;                   /* CLOCK_MONOTONIC, nanoseconds */
    uint32_t jobrank;
    _Atomic uint32_t shutdown_vote; /* vote on how the rank will end; used by the provider */
    /* until then the rank is not killed for being alive in state ENDED */
    _Atomic uint64_t kill_after_ns;
    _Atomic uint32_t flushed; /* its output is written; after exit() libc flushes other files yet */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint64_t counter[AQ_JOBAREA_COUNTERS];
};

/* what the job area of one host in a job on several hosts needs to know about the job */
struct aq_jobarea_topo {
    uint32_t job_size;
    uint32_t rank_base; /* jobrank of slot 0; the other slots follow */
    uint32_t host_index, host_count;
    const uint32_t *host_ranks; /* [host_count]: number of ranks of each host */
    const uint8_t *job_key;     /* [32] */
    const char *environment;    /* NAME=VALUE strings, each with its NUL */
    size_t environment_bytes;
};

struct aq_jobarea {
    uint64_t magic;
    uint64_t bytes; /* of the whole mapping */
    uint32_t version;
    uint32_t size; /* slots: number of ranks of this host */
    uint32_t job_size;
    int32_t supervisor; /* pid of the supervisor; 0: there is none */
    uint8_t key[32];    /* random; the host's sockets are named by its hash and opened with it */
    uint32_t rank_base; /* jobrank of slot 0 */
    uint32_t host_index, host_count;
    int32_t link_fd;             /* slot 0's connection with its agent; -1: none */
    uint32_t exchange_bytes;     /* of each exchange area; 0: one host */
    uint64_t host_of_offset;     /* uint32_t[job_size]: host of each rank */
    uint64_t exchange_offset[2]; /* areas for exchanges between hosts, used in turn */
    uint64_t addrs_offset;       /* AQ_JOBAREA_ADDR_MAX bytes for each rank of the job */
    uint64_t environment_offset; /* the environment of the launcher's user */
    uint64_t environment_bytes;
    uint8_t job_key[32];                /* the same on all hosts */
    uint32_t exit_timeout_ms;           /* GASNET_EXITTIMEOUT and related variables */
    uint32_t orderly_timeout_ms;        /* AQ_EXITTIMEOUT_ORDERLY; see aq_jobarea_exit_ms() */
    uint32_t local_exchange_offset;     /* bytes from the job area's start */
    uint32_t cores_offset;              /* uint16_t[size]: see aq_jobarea_cores() */
    _Atomic uint64_t memory;            /* memory of the host; 0: not determined yet */
    _Atomic uint32_t memory_is_limited; /* by the cgroup */
    _Atomic uint32_t cores_quota;       /* by the cgroup */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t
        exit_state;                  /* enum aq_exit_state; read by waiting ranks */
    _Atomic int32_t exit_code;       /* largest code that counts */
    _Atomic uint32_t exit_seen;      /* incremented by each rank at the exit, twice; a futex */
    _Atomic uint32_t lost;           /* 1 + jobrank of the first rank lost, 0 none */
    _Atomic uint32_t catch_exit_off; /* GASNET_CATCH_EXIT=0 in some rank */
    _Atomic uint32_t shutdown_vote;  /* result of the ranks' votes; used by the provider */
    /* errors that a rank has logged at the start: aq_log_set_dedup() */
    _Atomic uint64_t logged;
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t arrived; /* start-up barrier */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t round;   /* its generation; a futex */
    struct aq_jobarea_rank rank[];                      /* [size], index = host rank */
};

/** aq_jobarea_remedy - what the user can do about an error in making a job area; "" if nothing
 * is known. */
const char *aq_jobarea_remedy(int error);

/**
 * aq_jobarea_create - a new job area for size ranks in a memfd.
 * fd_out  the memfd, close-on-exec
 * Returns the mapping, or NULL with errno set.
 */
struct aq_jobarea *aq_jobarea_create(uint32_t size, uint32_t job_size, int *fd_out);

/**
 * aq_jobarea_create_multihost - a new job area for one host of several, with space for exchanges
 * between hosts. Same result.
 */
struct aq_jobarea *aq_jobarea_create_multihost(uint32_t size, const struct aq_jobarea_topo *topo,
                                               int *fd_out);

/**
 * aq_jobarea_map - map the job area in the memfd fd. The caller keeps fd, which stays open.
 * Returns NULL with errno set; EINVAL if fd is no job area.
 */
struct aq_jobarea *aq_jobarea_map(int fd);

/** aq_jobarea_unmap - the job has ended and this process goes on: unmaps the job area. */
void aq_jobarea_unmap(struct aq_jobarea *jobarea);

/**
 * aq_jobarea_barrier - wait until every slot has arrived.
 * spin  false if ranks outnumber cores: sleep at once
 * Returns 0; -ESHUTDOWN if the job shuts down in the meantime.
 */
int aq_jobarea_barrier(struct aq_jobarea *jobarea, bool spin);

/** aq_jobarea_set_meanwhile - fn is called every few ms while this rank waits in
 * aq_jobarea_barrier(). A network retransmits there: this rank's last messages may have been lost,
 * and another rank may wait for them. */
void aq_jobarea_set_meanwhile(void (*fn)(void));

/** aq_jobarea_wait_word - sleeps on a word while it equals value, at most timeout_ms (< 0: no
 * limit). */
void aq_jobarea_wait_word(_Atomic uint32_t *word, uint32_t value, int timeout_ms);

/** aq_jobarea_wake_word - wakes all threads that sleep on word. Async-signal-safe. */
void aq_jobarea_wake_word(_Atomic uint32_t *word);

/**
 * aq_jobarea_publish_flushed - the rank of slot has written its output (state ENDED).
 * Async-signal-safe.
 */
void aq_jobarea_publish_flushed(struct aq_jobarea *jobarea, uint32_t slot);

/**
 * aq_jobarea_publish_exit - the rank of slot is at the exit with code (state EXITING or CRASHED).
 * The job's code becomes the larger one, unless ranks were asked to end already.
 * Async-signal-safe.
 */
void aq_jobarea_publish_exit(struct aq_jobarea *jobarea, uint32_t slot, enum aq_rank_state state,
                             int code);

/** aq_jobarea_raise_exit_state - moves the job's exit state forward, never back. Returns the old
 * state. */
uint32_t aq_jobarea_raise_exit_state(struct aq_jobarea *jobarea, enum aq_exit_state state);

/** aq_jobarea_raise_exit_code - the job's code becomes at least code. */
void aq_jobarea_raise_exit_code(struct aq_jobarea *jobarea, int code);

/** aq_jobarea_report - writes to fd one line for each rank that has waited for at least min_ms:
 * for which peer, and since when. */
void aq_jobarea_report(struct aq_jobarea *jobarea, int fd, uint64_t min_ms);

/** aq_jobarea_timeout_env - returns milliseconds from GASNET_EXITTIMEOUT{,_MAX,_MIN,_FACTOR} for
 * size ranks. */
uint32_t aq_jobarea_timeout_env(uint32_t size);

/** aq_jobarea_orderly_env - returns milliseconds from AQ_EXITTIMEOUT_ORDERLY; 0 if not set. */
uint32_t aq_jobarea_orderly_env(void);

/** aq_jobarea_exit_ms - returns how long the shutdown may take: the longer of both timeouts as long
 * as the job's code is 0, else the exit timeout. It becomes shorter when a rank fails during an
 * orderly shutdown, so users ask again while they wait. Async-signal-safe. */
static inline uint32_t aq_jobarea_exit_ms(const struct aq_jobarea *jobarea)
{
    const uint32_t failing = jobarea->exit_timeout_ms, orderly = jobarea->orderly_timeout_ms;

    /* relaxed: whoever acts on the exit state has acquired it, and the code with it */
    if (orderly <= failing || atomic_load_explicit(&jobarea->exit_code, memory_order_relaxed) != 0)
        return failing;
    return orderly;
}

static inline char *aq_jobarea_local_exchange(struct aq_jobarea *jobarea)
{
    return (char *)jobarea + jobarea->local_exchange_offset;
}

/** aq_jobarea_cores - [size] by slot: the core where the rank has last waited, + 1; 0: it has not,
 *  or has been asleep for long. */
static inline _Atomic uint16_t *aq_jobarea_cores(struct aq_jobarea *jobarea)
{
    return (_Atomic uint16_t *)(void *)((char *)jobarea + jobarea->cores_offset);
}

static inline uint64_t aq_jobarea_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** aq_jobarea_note_wait - records what slot waits for, for stall reports; call on slow paths
 * only. */
static inline void aq_jobarea_note_wait(struct aq_jobarea *jobarea, uint32_t slot,
                                        enum aq_wait_kind kind, uint32_t peer)
{
    struct aq_jobarea_rank *r = &jobarea->rank[slot];

    /* relaxed: a report may be off by one event and decides nothing */
    atomic_store_explicit(&r->wait_since, aq_jobarea_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->wait, (uint64_t)kind << 32 | peer, memory_order_relaxed);
}

static inline void aq_jobarea_note_done(struct aq_jobarea *jobarea, uint32_t slot)
{
    /* relaxed: as in aq_jobarea_note_wait() */
    atomic_store_explicit(&jobarea->rank[slot].wait, 0, memory_order_relaxed);
}

/** aq_jobarea_in_shutdown - returns true once any rank is at the exit or was lost. */
static inline bool aq_jobarea_in_shutdown(const struct aq_jobarea *jobarea)
{
    /* relaxed: a hint for loops that test again */
    return atomic_load_explicit(&jobarea->exit_state, memory_order_relaxed) != AQ_EXIT_NONE;
}

#endif
