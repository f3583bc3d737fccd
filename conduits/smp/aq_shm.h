/*
 * aq_shm.h - the transport between the ranks of a neighborhood: all ranks of a host, or some.
 *
 * Owns      the arena (memory of a memfd that all ranks of the neighborhood map: wakeups, message
 *           rings, payload blocks, barrier words), and the mapping of the neighborhood's segments
 * Threads   set-up by one thread; everything else by any
 * Wire      the arena's layout below; all ranks of a host run the same library
 * Uses      core/aq_job.h, other/spawn/aq_spawn.h; nothing of extended/ or of a network conduit
 * See       docs/how-it-works.md; why each pair has a ring: docs/design/queues.md
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_H
#define AQ_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/aq_conduit.h"
#include "base/aq_platform.h"

/* Requests and replies never share a ring or a pool: a reply's space must not depend on
 * requests. */
enum aq_shm_channel { AQ_CHANNEL_REQUEST = 0, AQ_CHANNEL_REPLY = 1, AQ_CHANNELS = 2 };

#define AQ_SHM_MAX_MEDIUM 65536 /* bytes: the largest payload block */
#define AQ_SHM_PAIR       128   /* two cache lines, since the adjacent-line prefetch fetches both */

/* --- the arena --- */

/* Shared by all ranks of the host. */
struct aq_shm_common {
    _Alignas(AQ_SHM_PAIR) _Atomic uint32_t sleepers; /* sleeping threads of all ranks */
    _Atomic uint32_t waiting;                        /* those that wait themselves */
    _Alignas(AQ_SHM_PAIR) _Atomic uint32_t
        cma_refused; /* some rank may not read another rank's memory */
};

/* One for each rank. */
struct aq_shm_control {
    /* threads of the rank that have announced their sleep; those of them that wait themselves */
    _Alignas(AQ_SHM_PAIR) _Atomic uint32_t sleeping;
    _Atomic uint32_t waiting;
    _Atomic uint32_t wakeup;    /* futex; incremented to wake the rank */
    _Atomic uint32_t listening; /* a sleeper waits for descriptors too: wake it by a datagram */
    _Alignas(
        AQ_SHM_PAIR) _Atomic uint32_t greetings; /* number of senders that have sent to this rank */
    int32_t pid;
    _Atomic int32_t task; /* a thread of the process, by which the kernel finds its memory */
    uint64_t probe_addr;  /* address of a word in the rank's private memory, and its value: */
    uint64_t probe_word;  /* other ranks test process_vm_readv on it */
};

/*
 * A message is half a cache line; the other half of the line is for the reply. Between two ranks
 * there is a channel for each requester: a ring of slots, each with space for a request and a
 * reply. When request and reply use the same slot, the reader of one half gets the line
 * exclusively, writes the other half without requesting the line again, and the peer reads that. A
 * round trip takes two transfers of a line; with separate lines it would take four.
 *
 * To make both use the same slot, a channel does not advance to its next slot while it is known to
 * be empty (every message carries how many of the other channel's messages have been taken). The
 * sender then stays at its slot, and a receiver polls both that slot and the next one.
 */
struct aq_shm_half {
    /* number:32 handler:8 nargs:8 kind:8 location:2 running:5 args:1; stored last */
    _Atomic uint64_t head;
    uint32_t taken; /* how many messages of the other channel the sender has taken */
    union {
        gex_AM_Arg_t short_args[5];
        struct {
            /* payload length, and the offset of its block in the sender's pool */
            uint32_t nbytes, offset;
            gex_AM_Arg_t medium_args[3];
        };
        struct {
            uint32_t long_nbytes;
            uint32_t dest[2];     /* address at the target: low, high */
            uint32_t long_offset; /* of the block, for AQ_LOC_COPY */
            gex_AM_Arg_t long_args[1];
        };
    };
};
_Static_assert(sizeof(struct aq_shm_half) == AQ_CACHE_LINE / AQ_CHANNELS,
               "two halves are one line");
#define AQ_INLINE_SHORT  5 /* arguments behind the head; a message with more uses aq_shm_more */
#define AQ_INLINE_MEDIUM 3
#define AQ_INLINE_LONG   1

struct aq_shm_slot {
    _Alignas(AQ_SHM_PAIR) struct aq_shm_half half[AQ_CHANNELS];
};

/* All arguments of a message whose arguments do not fit the half. They are not stored beside the
 * slots, whose lines are polled: the poller's adjacent-line prefetch would take the line from the
 * sender that fills it. */
struct aq_shm_more {
    _Alignas(AQ_CACHE_LINE) gex_AM_Arg_t args[16];
};

/* The location of a payload; stored in the head. */
enum aq_shm_loc {
    AQ_LOC_NONE,   /* short; empty payload; or long, already at its destination */
    AQ_LOC_INLINE, /* behind the arguments, in the half itself */
    AQ_LOC_BLOCK,  /* in a block of the sender's pool */
    AQ_LOC_COPY    /* long, in a block that the receiver copies to the destination */
};
#define AQ_LOC_MASK 0x03u
/* par: how many of the other channel's messages the sender has taken and is not done with: its
 * position in this byte; all its bits: unknown, or as many or more */
#define AQ_LOC_RUNNING  2
#define AQ_RUNNING_MANY 31u
#define AQ_LOC_ARGS     0x80u /* flag: the arguments are in the slot's aq_shm_more */
_Static_assert((AQ_RUNNING_MANY << AQ_LOC_RUNNING | AQ_LOC_MASK | AQ_LOC_ARGS) == 0xff
                   && (AQ_RUNNING_MANY << AQ_LOC_RUNNING & (AQ_LOC_MASK | AQ_LOC_ARGS)) == 0,
               "the parts of the byte are apart");

/* The slots of one requester and one responder. They are followed by an aq_shm_more for each
 * channel of each slot. */
struct aq_shm_ring {
    /* Number of a channel's messages that the receiver has finished, handlers included. The
     * receiver writes it; the sender reads it only when the channel looks full or blocks run
     * short. */
    struct {
        _Alignas(AQ_SHM_PAIR) _Atomic uint32_t count;
    } done[AQ_CHANNELS];
    struct aq_shm_slot slots[];
};

/* Payload blocks of three sizes, and how many of each a rank has in a channel. */
#define AQ_POOL_CLASSES     3
#define AQ_SHM_SMALL_BLOCK  512
#define AQ_SHM_MIDDLE_BLOCK 4096
#define AQ_SHM_MAX_DEPTH    4096 /* of the largest: the most that GASNET_PSHM_NETWORK_DEPTH gives */
struct aq_shm_pool_plan {
    uint32_t size[AQ_POOL_CLASSES];
    uint32_t count[AQ_POOL_CLASSES];
    uint32_t offset[AQ_POOL_CLASSES]; /* of the class, in the channel's part of the pool */
    uint32_t channel_bytes;
};

/* Offsets into the arena; equal on every rank. */
struct aq_shm_layout {
    uint64_t control, hello, arrived, named, rings, pools, bytes;
    uint64_t ring_bytes;
    uint64_t coll, coll_bytes;       /* areas for collectives; bytes of one */
    uint32_t coll_areas, coll_block; /* number of areas; bytes of one of their blocks */
    uint32_t slots;                  /* slots of a channel */
    uint64_t marks;                  /* of all receivers */
    uint32_t mark_bytes;             /* of a receiver's marks of one channel; 0: there are none */
    struct aq_shm_pool_plan pool;
};

struct aq_shm {
    uint32_t size, me; /* ranks of this neighborhood; index of this rank */
    char *arena;
    struct aq_shm_layout layout;
    struct aq_shm_control *self;
    const uint32_t *jobrank_of; /* [size] */
};
extern struct aq_shm aq_shm __attribute__((visibility("hidden")));

static inline struct aq_shm_common *aq_shm_common(void)
{
    return (struct aq_shm_common *)(void *)aq_shm.arena;
}

static inline struct aq_shm_control *aq_shm_control(uint32_t local)
{
    return (struct aq_shm_control *)(void *)(aq_shm.arena + aq_shm.layout.control) + local;
}

/* hello[receiver][sender] is 1 once the sender has sent to the receiver. */
static inline _Atomic unsigned char *aq_shm_hello(uint32_t receiver, uint32_t sender)
{
    return (_Atomic unsigned char *)(void *)(aq_shm.arena + aq_shm.layout.hello)
           + (size_t)receiver * aq_shm.size + sender;
}

/*
 * Among many ranks that share few cores a poll would look at every source's slots, most of them in
 * vain. There each sender also keeps a mark at the receiver: the low bits of how many messages it
 * has sent in a channel. A poll compares the marks with what it has taken. Nobody resets a mark, so
 * that none is lost: a message is behind the mark until it has been taken.
 */
static inline _Atomic uint8_t *aq_shm_marks(uint32_t receiver, int channel)
{
    size_t number = (size_t)receiver * AQ_CHANNELS + (size_t)channel;

    return (_Atomic uint8_t *)(void *)(aq_shm.arena + aq_shm.layout.marks
                                       + number * aq_shm.layout.mark_bytes);
}

static inline struct aq_shm_ring *aq_shm_ring(uint32_t requester, uint32_t responder)
{
    size_t number = (size_t)requester * aq_shm.size + responder;

    return (struct aq_shm_ring *)(void *)(aq_shm.arena + aq_shm.layout.rings
                                          + number * aq_shm.layout.ring_bytes);
}

static inline char *aq_shm_pool(uint32_t owner, int channel)
{
    size_t number = (size_t)owner * AQ_CHANNELS + (size_t)channel;

    return aq_shm.arena + aq_shm.layout.pools + number * aq_shm.layout.pool.channel_bytes;
}

/* --- set-up (aq_shm_arena.c, aq_shm_segment.c) --- */

/* Collective over the host: makes or joins the arena. AQ_OK or negative, logged. */
int aq_shm_init(void);

/** aq_shm_fini - the job has ended: unmaps and frees everything, the segments too. */
void aq_shm_fini(void);
/* Collective over the job: allocates this rank's segment, maps those of the neighborhood, and fills
 * in aq_job.bound for all ranks. */
int aq_shm_segment_attach(uintptr_t size, void **base_out);
/* The table's entry. AQ_ERR_RESOURCE: reserved huge pages, which another process could take; or
 * pages that the program has locked. */
int aq_shm_segment_discard(void *addr, size_t nbytes);
/* Unmaps the segments, if any are attached. */
void aq_shm_segment_detach(void);
/* --- messages (aq_shm_send.c, aq_shm_recv.c) --- */

int aq_shm_am_send(const struct aq_am_out *out);
int aq_shm_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
int aq_shm_am_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                     size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args);
int aq_shm_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
void aq_shm_am_free(bool is_reply, const struct aq_am_buffer *buffer);
unsigned aq_shm_poll(enum aq_poll_kind kind);
void aq_shm_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out);

/* --- payload blocks (aq_shm_pool.c) --- */

/* A block's name is its offset in its channel's part of the pool. */
#define AQ_BLOCK_NONE UINT32_MAX
void aq_shm_pool_plan(uint32_t ranks, uint32_t depth, struct aq_shm_pool_plan *plan_out);
int aq_shm_pool_init(void);
void aq_shm_pool_fini(void);
/* Takes a block for a caller that may keep it for long, of max bytes if there is one, else the
 * largest of at least min bytes; or AQ_BLOCK_NONE. One block of each size stays free, so that a
 * message that waits for a block waits only for messages in flight. */
uint32_t aq_shm_block_lend(int channel, size_t min, size_t max);
size_t aq_shm_block_size(uint32_t block);

/* --- sleeping (aq_shm_sleep.c) --- */

void aq_shm_sleep_init(void);
void aq_shm_sleep_fini(void);
/* From now on sleepers of this process also wake when fd becomes readable. The caller owns fd.
 * AQ_OK, or negative, logged. */
int aq_shm_sleep_add_fd(int fd);
uint32_t aq_shm_sleep_prepare(bool waits);
void aq_shm_sleep(uint32_t wakeup, uint64_t max_ns);
void aq_shm_sleep_cancel(bool waits);
void aq_shm_sleep_wake(void);
int aq_shm_wake(struct aq_shm_control *control); /* AQ_OK, always */
void aq_shm_wake_waiting(void); /* of all ranks, those where a thread waits itself */

/* Between a store that publishes something and the test whether a rank sleeps. The sleeper's
 * membarrier is the processor's part: after it, either the publisher sees the sleeper, or the
 * sleeper sees what was published. This function is the compiler's part. */
static inline void aq_shm_order_before_look(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* --- barriers (aq_shm_barrier.c) --- */

void aq_shm_barrier_arrive(uint64_t k);
bool aq_shm_barrier_done(uint64_t k, gex_Rank_t *missing_out);
void aq_shm_named_arrive(uint64_t k, int id, int flags);
bool aq_shm_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out);

/* --- collectives (aq_shm_coll_team.c) --- */

extern const struct aq_coll_ops aq_shm_coll_ops;

/* --- transfers (aq_shm_rma.c) --- */

/* Transfers with a local rank, complete on return. False if this process cannot reach the memory;
 * nothing was done then. */
bool aq_shm_put(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes);
bool aq_shm_get(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes);

/* Copies a local rank's memory, of whatever kind. aq_shm_cma_is_allowed() must be true. */
void aq_shm_read(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes);
/* The same without a copy if that memory is mapped: returns its address here. Otherwise temp, with
 * the copy. */
const void *aq_shm_view(gex_Rank_t jobrank, const void *src, size_t nbytes, void *temp);

/* --- private memory of other processes (aq_shm_cma.c) --- */

/* Announces this rank's probe word in the arena, and lets other ranks read it. */
void aq_shm_cma_announce(void);
/* Tests the neighbour's memory. All ranks of the host have announced their words. AQ_OK or
 * negative. */
int aq_shm_cma_init(void);
void aq_shm_cma_fini(void);
/* Returns true if process_vm_readv/writev work between all ranks of the neighborhood: the same on
 * each of them, once the job has started. */
static inline bool aq_shm_cma_is_allowed(void)
{
    /* relaxed: written before the start-up barrier */
    return atomic_load_explicit(&aq_shm_common()->cma_refused, memory_order_relaxed) == 0;
}

/* Lets the other ranks reach this process's memory, as far as this process can allow it. Always
 * AQ_OK. */
int aq_shm_cma_allow(void *addr, uintptr_t size);
/* Returns true if this process can reach the memory of a local rank. The first call for a rank
 * tests it; that rank must have called aq_shm_cma_allow() before. */
bool aq_shm_cma_reaches(uint32_t local);
/* The same without a test: false if none was made. */
bool aq_shm_cma_has_reached(uint32_t local);
/* Copies between this process and another one of this host. Ends the job on a bad address. */
void aq_shm_cma_write(uint32_t local, void *dest, const void *src, size_t nbytes);
void aq_shm_cma_read(uint32_t local, void *dest, const void *src, size_t nbytes);

#endif
