/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_jobarea.h - the job board: one shared page area for the ranks of a host.
 * Owns      struct aq_jobarea, made by the supervisor (or the host's first rank), mapped by every
 *           rank of the host; lives in a memfd, so it vanishes with its last process
 * Holds     job size, exit state and exit code; per rank: pid, state, exit code, what it waits for,
 *           16 spare counters; the core that it runs on, in a table of its own, since all are
 *           looked at together; a futex barrier and a blackboard for start-up
 * Threads   all fields that change are atomic; a slot is written by its own rank only, except pid
 *           and state before the rank has joined
 * Uses      the kernel (memfd, futex); nothing of core/, because the launcher is built from it too
 * See       aq_shutdown.h for who acts on the exit state
 */
#ifndef AQ_JOBAREA_H
#define AQ_JOBAREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define AQ_JOBAREA_MAGIC    0x61712d626f617264u /* "aq-board" */
#define AQ_JOBAREA_LINE     64 /* bytes; keeps slots off each other's cache lines */
#define AQ_JOBAREA_COUNTERS 16
#define AQ_JOBAREA_CHUNK    1024       /* blackboard bytes a rank and round */
#define AQ_JOBAREA_HOST_FDS 8          /* slots of aq_spawn_host_fd() */
#define AQ_JOBAREA_ADDR_MAX 64         /* bytes a rank in the addresses of a job on several hosts */
#define AQ_SPAWN_MAX_RANKS  16384u     /* ranks on one host; above: refused at start */
#define AQ_SPAWN_MAX_JOB    (1u << 20) /* ranks on all hosts together */

/* Where a rank stands. Order matters: >= EXITING means "has come to the exit". */
enum aq_rank_state {
    AQ_RANK_EMPTY = 0, /* process may exist, has not called aq_spawn_init() */
    AQ_RANK_JOINED,    /* in aq_spawn_init() */
    AQ_RANK_READY,     /* aq_exit_init() done: signals and exit() are looked after */
    AQ_RANK_LEFT,      /* called exit() under GASNET_CATCH_EXIT=0: gone, job goes on */
    AQ_RANK_EXITING,   /* wants the job to end, code published */
    AQ_RANK_FLUSHING,  /* the same, writing out what stdio holds: may take as long as its reader */
    AQ_RANK_ENDED,     /* the same, nothing left to do but to vanish */
    AQ_RANK_CRASHED    /* fatal signal, message printed */
};

/* How far the job is on its way out; only ever grows. */
enum aq_exit_state {
    AQ_EXIT_NONE = 0, /* running */
    AQ_EXIT_SHUTDOWN, /* somebody has come to the exit */
    AQ_EXIT_ASKED,  /* the others were told by SIGQUIT; codes published from here on do not count */
    AQ_EXIT_KILLING /* GASNET_EXITTIMEOUT is over: SIGKILL for who is left */
};

/* What a rank waits for, for stall reports. Append only. */
enum aq_wait_kind {
    AQ_WAIT_NONE = 0,
    AQ_WAIT_START, /* start-up exchange */
    AQ_WAIT_BARRIER,
    AQ_WAIT_EVENT,      /* completion of a put, get or AM local completion */
    AQ_WAIT_QUEUE,      /* room in the peer's queue */
    AQ_WAIT_BLOCKUNTIL, /* a client's own condition */
    AQ_WAIT_COLL,       /* a collective */
    AQ_WAIT_KINDS
};

#define AQ_WAIT_ANYONE UINT32_MAX /* peer not known */

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
    _Atomic uint32_t shutdown_vote; /* how it will leave: for the provider's use */
    _Atomic uint64_t kill_after_ns; /* until then nobody kills it for being ENDED yet alive */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint64_t counter[AQ_JOBAREA_COUNTERS];
};

/* where a job area's ranks stand in a job on several hosts */
struct aq_jobarea_topo {
    uint32_t job_size;
    uint32_t rank_base; /* jobrank of slot 0; the others follow */
    uint32_t host_index, host_count;
    const uint32_t *host_ranks; /* [host_count] how many ranks each host has */
    const uint8_t *job_key;     /* [32] */
    const char *environment;    /* NAME=VALUE strings, each with its NUL */
    size_t environment_bytes;
};

struct aq_jobarea {
    uint64_t magic;
    uint64_t bytes; /* whole mapping */
    uint32_t version;
    uint32_t size; /* slots: ranks of this host */
    uint32_t job_size;
    int32_t supervisor; /* pid, 0 if the job has none of ours */
    uint8_t key[32];    /* random: names the host's sockets, by hash, and opens them */
    uint32_t rank_base; /* jobrank of slot 0 */
    uint32_t host_index, host_count;
    int32_t link_fd;             /* slot 0's line to its agent, -1 if there is none */
    uint32_t exchange_bytes;     /* bytes of each exchange area; 0: one host */
    uint64_t host_of_offset;     /* uint32_t[job_size]: the host of each rank */
    uint64_t exchange_offset[2]; /* areas for exchanges between hosts, in turn */
    uint64_t addrs_offset;       /* AQ_JOBAREA_ADDR_MAX bytes a rank of the job */
    uint64_t environment_offset; /* what the launcher's user has */
    uint64_t environment_bytes;
    uint8_t job_key[32];                /* the same on all hosts */
    uint32_t exit_timeout_ms;           /* GASNET_EXITTIMEOUT and friends */
    uint32_t blackboard_offset;         /* bytes from the job area's start */
    uint32_t cores_offset;              /* uint16_t[size]: see aq_jobarea_cores() */
    _Atomic uint64_t memory;            /* what the host has; 0: nobody has looked yet */
    _Atomic uint32_t memory_is_limited; /* by the cgroup */
    _Atomic uint32_t cores_quota;       /* by the cgroup */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t
        exit_state;                  /* enum aq_exit_state; read by waiting ranks */
    _Atomic int32_t exit_code;       /* largest that counts */
    _Atomic uint32_t exit_seen;      /* grows with each rank that exits; a futex */
    _Atomic uint32_t lost;           /* 1 + jobrank of the first rank lost, 0 none */
    _Atomic uint32_t catch_exit_off; /* GASNET_CATCH_EXIT=0 in some rank */
    _Atomic uint32_t shutdown_vote;  /* what the ranks' parting comes to; the same */
    _Atomic uint64_t logged;         /* what a rank found wrong at the start: aq_log_set_dedup() */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t arrived; /* start-up barrier */
    _Alignas(AQ_JOBAREA_LINE) _Atomic uint32_t round;   /* its generation; a futex */
    struct aq_jobarea_rank rank[];                      /* [size], index = host rank */
};

/**
 * aq_jobarea_create - a new board for size ranks in a memfd.
 * fd_out  the memfd, close-on-exec
 * Returns the mapping, or NULL with errno set.
 */
struct aq_jobarea *aq_jobarea_create(uint32_t size, uint32_t job_size, int *fd_out);

/**
 * aq_jobarea_create_multihost - the job area of one host of several: besides the above, room for
 * exchanges. Same result.
 */
struct aq_jobarea *aq_jobarea_create_multihost(uint32_t size, const struct aq_jobarea_topo *topo,
                                               int *fd_out);

/**
 * aq_jobarea_map - map the job area behind fd, which stays open and the caller's.
 * Returns NULL with errno set; EINVAL if fd holds no board.
 */
struct aq_jobarea *aq_jobarea_map(int fd);

/** aq_jobarea_unmap - the job has ended, this process goes on. */
void aq_jobarea_unmap(struct aq_jobarea *jobarea);

/**
 * aq_jobarea_barrier - wait until every slot has arrived.
 * spin  false when ranks outnumber cores: go to sleep at once
 * Returns 0; -ESHUTDOWN if the job is being ended meanwhile.
 */
int aq_jobarea_barrier(struct aq_jobarea *jobarea, bool spin);

/** aq_jobarea_set_meanwhile - what a rank does every few ms while it waits in aq_jobarea_barrier():
 *  a network's last messages before it may be lost, and then somebody waits for them to be sent
 *  again. */
void aq_jobarea_set_meanwhile(void (*fn)(void));

/** aq_jobarea_wait_word - sleep on a word while it equals value, at most timeout_ms (< 0: for
 * ever). */
void aq_jobarea_wait_word(_Atomic uint32_t *word, uint32_t value, int timeout_ms);

/** aq_jobarea_wake_word - wake all who sleep on word. Async-signal-safe. */
void aq_jobarea_wake_word(_Atomic uint32_t *word);

/**
 * aq_jobarea_publish_exit - slot has come to the exit with code (state EXITING or CRASHED).
 * The job's code becomes the larger one unless the others were asked already. Async-signal-safe.
 */
void aq_jobarea_publish_exit(struct aq_jobarea *jobarea, uint32_t slot, enum aq_rank_state state,
                             int code);

/** aq_jobarea_raise_exit_state - move the job's exit state forward, never back. Returns the old
 * one. */
uint32_t aq_jobarea_raise_exit_state(struct aq_jobarea *jobarea, enum aq_exit_state state);

/** aq_jobarea_raise_exit_code - the job's code becomes at least code. */
void aq_jobarea_raise_exit_code(struct aq_jobarea *jobarea, int code);

/** aq_jobarea_report - who waits for whom since when, one line a waiting rank of min_ms or more, to
 * fd. */
void aq_jobarea_report(struct aq_jobarea *jobarea, int fd, uint64_t min_ms);

/** aq_jobarea_timeout_env - milliseconds from GASNET_EXITTIMEOUT{,_MAX,_MIN,_FACTOR} for size
 * ranks. */
uint32_t aq_jobarea_timeout_env(uint32_t size);

static inline char *aq_jobarea_blackboard(struct aq_jobarea *jobarea)
{
    return (char *)jobarea + jobarea->blackboard_offset;
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

/** aq_jobarea_note_wait - tell readers of stall reports what slot waits for; call on slow paths
 * only. */
static inline void aq_jobarea_note_wait(struct aq_jobarea *jobarea, uint32_t slot,
                                        enum aq_wait_kind kind, uint32_t peer)
{
    struct aq_jobarea_rank *r = &jobarea->rank[slot];

    /* relaxed: a report may be off by one event, it decides nothing */
    atomic_store_explicit(&r->wait_since, aq_jobarea_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&r->wait, (uint64_t)kind << 32 | peer, memory_order_relaxed);
}

static inline void aq_jobarea_note_done(struct aq_jobarea *jobarea, uint32_t slot)
{
    /* relaxed: as in aq_jobarea_note_wait() */
    atomic_store_explicit(&jobarea->rank[slot].wait, 0, memory_order_relaxed);
}

/** aq_jobarea_in_shutdown - true once any rank has come to the exit or was lost. */
static inline bool aq_jobarea_in_shutdown(const struct aq_jobarea *jobarea)
{
    /* relaxed: a hint for loops that will look again */
    return atomic_load_explicit(&jobarea->exit_state, memory_order_relaxed) != AQ_EXIT_NONE;
}

#endif
