/*
 * armci_impl.h - the internal header of libarmci: the job, its peers, and how an operation begins
 * and ends.
 *
 * Owns      aq_armci, the one object of the process; filled by ARMCI_Init, emptied by
 *           ARMCI_Finalize
 * Threads   one thread of the program at a time is in the library. Handlers run on it and on
 *           Aqueduct's service thread: data that they use are atomic, or under a lock of
 *           armci_lock.h or a handler-safe one
 * Addresses the program's remote address is the caller's mapping if the target shares memory with
 *           the caller, else the target's own address. gex_ calls take the target's own address:
 *           aq_armci_owner() converts
 * Order     blocking puts and accumulates return when their source may be reused. Those that go as
 *           messages (armci_stream.h) follow each other to the same target. Any other
 *           operation waits until what was sent before has arrived (aq_armci_order_after). So
 *           operations take effect in the order of their calls
 * Uses      gasnetex.h, gasnet_vis.h, gasnet_ratomic.h, MPI; no internal header
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_IMPL_H
#define AQ_ARMCI_IMPL_H 1

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gasnetex.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include "armci.h"
#include "armci_aggregate.h"
#include "armci_heap.h"
#include "armci_lock.h"
#include "armci_protocol.h"

/* ARMCI_x is a weak second name of PARMCI_x: a program, or a tool, may define its own ARMCI_x. No
 * source of the library calls ARMCI_x if PARMCI_x exists. */
#define AQ_ARMCI_TWIN(name) \
    extern __typeof__(PARMCI_##name) ARMCI_##name __attribute__((weak, alias("PARMCI_" #name)))
#define AQ_ARMCI_TWIN_LOWER(name) \
    extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

/* Accumulates to one stretch of a segment exclude each other. Stretch i has lock i % STRIPES. */
#define AQ_ARMCI_STRETCH_SHIFT 14 /* 16 KiB: some hundred ns of adding for 20 ns of locking */
#define AQ_ARMCI_STRIPES       64

#if GASNET_DEBUG
#define AQ_ARMCI_CHECKS 1
#else
#define AQ_ARMCI_CHECKS 0
#endif

/* Debug builds: the allocations of a rank that other ranks may reach. */
struct aq_armci_note {
    uint64_t offset, bytes; /* in its segment */
};
struct aq_armci_notes {
    struct aq_armci_lock lock;
    uint32_t count, capacity;
    uint32_t is_off; /* 1: there was no memory for the list */
    uint64_t table;  /* offset of the list in the segment */
};

/* The beginning of each segment: words that other ranks reach by address. */
struct aq_armci_control {
    struct aq_armci_lock stripe[AQ_ARMCI_STRIPES];
#if AQ_ARMCI_CHECKS
    struct aq_armci_notes notes;
#endif
    _Atomic int64_t notified[]; /* by rank: its notifications to the owner */
};

#define AQ_ARMCI_CACHE_LINE 64

struct aq_armci_peer {
    intptr_t delta; /* caller's address minus owner's address; 0 if the memory is not mapped */
    char *base;     /* the peer's segment, at the address that the caller uses */
    size_t size;
    struct aq_armci_control *control; /* NULL: the peer's memory is not mapped */
    gex_Event_t put;                  /* of a blocking put that may not have arrived */
    void *put_owned;                  /* memory that it uses; freed with the event */
    int64_t notify_sent;
    uint32_t sent;  /* messages of armci_stream.c to the peer */
    uint32_t asked; /* so many of them will be answered */
    bool one_sided; /* puts need no thread of the peer */
    bool dirty;     /* the rank is in aq_armci.dirty */
    uint16_t late;  /* non-blocking gets in a row that the peer has not served at once */

    /* Handlers use what follows, perhaps on the service thread. */
    _Alignas(AQ_ARMCI_CACHE_LINE) _Atomic uint32_t done; /* messages that the peer has applied */
    uint32_t next;                /* number of the peer's message that is applied next */
    uint32_t unanswered;          /* messages applied since the last answer */
    bool answer_due;              /* one of these asks for an answer */
    gex_HSL_t arriving;           /* protects next, unanswered, answer_due and early */
    struct aq_armci_early *early; /* the peer's messages that have come before their turn */
    int64_t notify_waited;
};

struct aq_armci_job {
    bool started;   /* Aqueduct runs: as long as ARMCI, or for ever if the job cannot be ended */
    bool running;   /* between ARMCI_Init and ARMCI_Finalize */
    bool threads;   /* threads of the library may communicate */
    bool must_poll; /* no thread of Aqueduct serves other ranks: the program's calls do */
    int me, nproc;
    gex_TM_t tm;
    gex_AD_t ad_int, ad_long;
    struct aq_armci_peer *peers;
    int *dirty; /* ranks with puts or accumulates that may not have arrived */
    int ndirty;
    struct aq_armci_heap *heap; /* of the own segment */
    unsigned ticks;
    unsigned quick;    /* calls that have looked at nothing but own memory, while must_poll */
    MPI_Comm comm;     /* the world of ARMCI; a duplicate of the program's communicator */
    MPI_Comm job_comm; /* another duplicate, for Aqueduct, as long as it runs */
    MPI_Comm silent;   /* the caller's alone, never sent on: a probe there only moves messages */
};
extern struct aq_armci_job aq_armci;

/* --- job (armci_job.c) --- */

/* Prints "ARMCI: rank N: ..." and ends the job. */
void aq_armci_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the job unless ARMCI runs and proc is a rank of it. */
void aq_armci_check_proc(const char *call, int proc);
/* The same, and for an address that is NULL: for calls that return a value and no code. */
void aq_armci_check_target(const char *call, const void *remote, int proc);

/* True if the job runs over MPI, or will when it starts. */
bool aq_armci_is_over_mpi(void);

/* Sets an environment variable, unless the user has, until the job ends: a later start may be over
 * another conduit. */
void aq_armci_set_default(const char *name, const char *value);

static inline bool aq_armci_is_proc(int proc)
{
    return proc >= 0 && proc < aq_armci.nproc;
}

/* --- addresses --- */

static inline void *aq_armci_owner(const struct aq_armci_peer *peer, const void *ptr)
{
    return (void *)((uintptr_t)ptr - (uintptr_t)peer->delta);
}

static inline void *aq_armci_mapped(const struct aq_armci_peer *peer, const void *owner)
{
    return (void *)((uintptr_t)owner + (uintptr_t)peer->delta);
}

static inline bool aq_armci_is_local(const struct aq_armci_peer *peer)
{
    return peer->control != NULL;
}

struct aq_armci_section;

/* --- checks of a debug build (armci_check.c) --- */

#if AQ_ARMCI_CHECKS
/* [ptr, ptr+bytes) of the own segment may be reached by other ranks; may not any more; nothing
 * may. */
void aq_armci_note_memory(void *ptr, size_t bytes);
void aq_armci_unnote_memory(const void *ptr);
void aq_armci_unnote_all(void);
/* Ends the job unless the remote range, or all of the remote side of a section, lies in one
 * allocation of proc. */
void aq_armci_check_range(const char *call, const void *ptr, size_t bytes, int proc);
void aq_armci_check_section(const struct aq_armci_section *section, const void *base,
                            const ptrdiff_t *strides, int proc);
/* Prints that a rank does not exist, for a call that returns FAIL5. */
void aq_armci_say_no_rank(const char *call, int proc);
/* Notes that handle has an operation, complete or not: no ARMCI_INIT_HANDLE before a wait. */
void aq_armci_note_operation(armci_hdl_t *handle);
#else
static inline void aq_armci_note_memory(void *ptr, size_t bytes)
{
    (void)ptr, (void)bytes;
}
static inline void aq_armci_unnote_memory(const void *ptr)
{
    (void)ptr;
}
static inline void aq_armci_unnote_all(void)
{
}
static inline void aq_armci_check_range(const char *call, const void *ptr, size_t bytes, int proc)
{
    (void)call, (void)ptr, (void)bytes, (void)proc;
}
static inline void aq_armci_check_section(const struct aq_armci_section *section, const void *base,
                                          const ptrdiff_t *strides, int proc)
{
    (void)section, (void)base, (void)strides, (void)proc;
}
static inline void aq_armci_say_no_rank(const char *call, int proc)
{
    (void)call, (void)proc;
}
static inline void aq_armci_note_operation(armci_hdl_t *handle)
{
    (void)handle;
}
#endif

/* --- order and completion (armci_fence.c) --- */

/* Marks proc as dirty: a fence must wait for operations on it. */
void aq_armci_mark(int proc);
/* Stores the event of a blocking put, for the next operation on proc, and memory that the put uses
 * until it is complete. */
void aq_armci_keep_put(int proc, gex_Event_t event, void *owned);
/* wait_puts: waits until earlier blocking puts to proc have arrived. wait_all: also for messages
 * (armci_stream.h) and chunks. */
void aq_armci_wait_puts(int proc);
void aq_armci_wait_all(int proc);

static inline struct aq_armci_peer *aq_armci_order_after(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    if (AQ_UNLIKELY(peer->dirty))
        aq_armci_wait_all(proc);
    return peer;
}

/* Called by operations on mapped memory, which never wait. In a loop of them the rank polls every
 * 128 operations, and yields its core every 1024. */
#define AQ_ARMCI_TICKS 127u
void aq_armci_give_way(void);
static inline void aq_armci_tick(void)
{
    if (AQ_UNLIKELY((++aq_armci.ticks & AQ_ARMCI_TICKS) == 0))
        aq_armci_give_way();
}

/* Called by calls that often end at once and that programs repeat in loops: a mutex that is free, a
 * fence with nothing to wait for. Without a service thread each 16th of them polls. */
#define AQ_ARMCI_QUICK 15u
static inline void aq_armci_serve(void)
{
    if (AQ_UNLIKELY(aq_armci.must_poll) && (++aq_armci.quick & AQ_ARMCI_QUICK) == 0)
        gasnet_AMPoll();
}

/* Bytes. Longer copies go through Aqueduct, which chooses a copy function by length. */
#define AQ_ARMCI_SHORT_COPY 4096

/* Returns the peer if a contiguous transfer is a short copy in mapped memory. NULL: it is not, or
 * an argument is wrong; the caller takes the general path. */
static inline const struct aq_armci_peer *aq_armci_copied(const char *call, const void *src,
                                                          const void *dst, const void *remote,
                                                          int bytes, int proc)
{
    const struct aq_armci_peer *peer;

    if (AQ_UNLIKELY(!aq_armci_is_proc(proc) || bytes <= 0 || bytes > AQ_ARMCI_SHORT_COPY
                    || src == NULL || dst == NULL))
        return NULL;
    peer = &aq_armci.peers[proc];
    if (!aq_armci_is_local(peer))
        return NULL;
    aq_armci_check_range(call, remote, (size_t)bytes, proc);
    aq_armci_tick();
    return peer;
}

/* The two ranges may overlap, if the target is the caller. */
static inline void aq_armci_copy(void *dst, const void *src, int bytes)
{
    if (bytes == 8)
        memmove(dst, src, 8); /* a load and a store */
    else
        memmove(dst, src, (size_t)bytes);
}

/* Copies 8 bytes in mapped memory. Returns false if the transfer is another one, if it is time to
 * give way, or if debug checks are due: the caller takes the general path. It calls no function, so
 * that its caller needs no stack. */
static inline bool aq_armci_copied_word(const void *src, void *dst, int bytes, int proc)
{
    if (AQ_ARMCI_CHECKS || AQ_UNLIKELY(bytes != 8 || !aq_armci_is_proc(proc)) || src == NULL
        || dst == NULL || !aq_armci_is_local(&aq_armci.peers[proc])
        || (aq_armci.ticks & AQ_ARMCI_TICKS) == AQ_ARMCI_TICKS)
        return false;
    aq_armci.ticks++;
    memmove(dst, src, 8); /* a load and a store */
    return true;
}

/* One step of waiting for a word that another process changes, or for MPI: polls; then spins,
 * yields or sleeps, by the number of steps. Long: sleeps become longer, which a transfer of MPI,
 * one fragment at each call, would suffer from. */
void aq_armci_pause(unsigned *step);
void aq_armci_pause_long(unsigned *step);

/* --- handles (armci_handle.c) --- */

/* Adds an event to handle (NULL: the implicit handle). owned is freed when the event is
 * complete. */
void aq_armci_attach(armci_hdl_t *handle, int proc, gex_Event_t event, void *owned);
/* Adds memory that earlier events of the handle use; it is freed with them. */
void aq_armci_attach_owned(armci_hdl_t *handle, int proc, void *owned);
/* Completes all operations of all handles. */
void aq_armci_complete_handles(void);

/* --- aggregate handles (armci_aggregate.c) --- */

/* Returns the batch of an aggregate handle; NULL: it is another handle. */
struct aq_armci_batch *aq_armci_batch_of(armci_hdl_t *handle);
struct aq_armci_batch *aq_armci_batch_create(void);
/* Adds a segment, whose remote range the caller has checked. local is used until the wait on the
 * handle; if is_value, it is copied now. */
void aq_armci_batch_add(armci_hdl_t *handle, struct aq_armci_batch *batch, enum aq_armci_way way,
                        int proc, void *local, void *remote, size_t bytes, bool is_value);
/* Adds a contiguous transfer. Returns false if the handle is not an aggregate one, or an argument
 * is wrong. */
bool aq_armci_batch_run(const char *call, armci_hdl_t *handle, enum aq_armci_way way, int proc,
                        void *local, void *remote, int bytes);
void aq_armci_batch_section(armci_hdl_t *handle, struct aq_armci_batch *batch,
                            enum aq_armci_way way, int proc,
                            const struct aq_armci_section *section);
/* Sends the segments of the batch. */
void aq_armci_batch_start(armci_hdl_t *handle, struct aq_armci_batch *batch);

/* --- transfers --- */

/* A checked section of the strided format: 64-bit sizes, no level with a count of 1. */
struct aq_armci_section {
    const char *call; /* for messages */
    void *src, *dst;
    ptrdiff_t src_stride[ARMCI_MAX_STRIDE_LEVEL], dst_stride[ARMCI_MAX_STRIDE_LEVEL];
    size_t bytes; /* of one run */
    size_t count[ARMCI_MAX_STRIDE_LEVEL];
    size_t levels;
    size_t runs;
};
/* Returns 0, 1 if there is nothing to do, or a FAIL code. */
int aq_armci_section_init(const char *call, struct aq_armci_section *section, void *src,
                          const int *src_stride, void *dst, const int *dst_stride, const int *count,
                          int levels, int proc);
/* A cursor over the runs of a section; level 1 changes fastest. */
struct aq_armci_cursor {
    const struct aq_armci_section *section;
    size_t index[ARMCI_MAX_STRIDE_LEVEL];
    char *src, *dst; /* the current run */
    size_t done;     /* bytes of the run that have been used */
};
void aq_armci_cursor_begin(struct aq_armci_cursor *at, const struct aq_armci_section *section);
void aq_armci_cursor_next(struct aq_armci_cursor *at);

/* Checks a vector call's descriptors: 0 or a FAIL code. */
int aq_armci_check_giov(const char *call, const armci_giov_t *darr, int len, int proc);

/* The blocking put of a section. Returns 0. */
int aq_armci_put_section(const struct aq_armci_section *section, int proc);
/* Puts one word, of 4 or 8 bytes, after the caller's earlier blocking operations on proc, whose
 * memory is not mapped. dst: owner's address, checked. */
void aq_armci_put_word(int proc, void *dst, const void *word, size_t bytes);

/* --- adding (armci_add.c) --- */

/* The accumulate type of an operation code of either header, or -1. */
int aq_armci_acc_type(int op);
size_t aq_armci_acc_size(int type);
/* dst += scale * src over n elements of any alignment. */
void aq_armci_add(int type, void *dst, const void *src, size_t n, const void *scale);

/* --- handlers: the table is in armci_job.c --- */

enum {
    AQ_ARMCI_HANDLE_STREAM = 200,
    AQ_ARMCI_HANDLE_STREAM_DONE,
    AQ_ARMCI_HANDLE_LOCK,
    AQ_ARMCI_HANDLE_LOCK_REPLY,
    AQ_ARMCI_HANDLE_UNLOCK,
    AQ_ARMCI_HANDLE_UNLOCK_REPLY,
    AQ_ARMCI_HANDLE_HANDOFF,
    AQ_ARMCI_HANDLE_GPC,
    AQ_ARMCI_HANDLE_GPC_REPLY,
    AQ_ARMCI_HANDLE_ASSIST,
    AQ_ARMCI_HANDLE_ASSIST_DONE,
    AQ_ARMCI_HANDLE_CHECK, /* debug builds */
    AQ_ARMCI_HANDLE_CHECK_REPLY,
};

void aq_armci_on_stream(gex_Token_t token, void *payload, size_t bytes);
void aq_armci_on_stream_done(gex_Token_t token, gex_AM_Arg_t applied);
void aq_armci_on_lock(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low, gex_AM_Arg_t mutex,
                      gex_AM_Arg_t try_only);
void aq_armci_on_lock_reply(gex_Token_t token, gex_AM_Arg_t state);
void aq_armci_on_unlock(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low, gex_AM_Arg_t mutex);
void aq_armci_on_unlock_reply(gex_Token_t token, gex_AM_Arg_t next);
void aq_armci_on_handoff(gex_Token_t token);
void aq_armci_on_gpc(gex_Token_t token, void *payload, size_t bytes);
void aq_armci_on_gpc_reply(gex_Token_t token, void *payload, size_t bytes);

void aq_armci_on_assist(gex_Token_t token, gex_AM_Arg_t source_high, gex_AM_Arg_t source_low,
                        gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low, gex_AM_Arg_t bytes,
                        gex_AM_Arg_t slot);
void aq_armci_on_assist_done(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t slot);
void aq_armci_on_check(gex_Token_t token, gex_AM_Arg_t address_high, gex_AM_Arg_t address_low,
                       gex_AM_Arg_t bytes_high, gex_AM_Arg_t bytes_low);
void aq_armci_on_check_reply(gex_Token_t token, gex_AM_Arg_t is_right);

static inline int aq_armci_source(gex_Token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return (int)info.gex_srcrank;
}

/* --- memory, mutexes, groups, messages --- */

/* ARMCI_Malloc over the members of comm, whose world ranks are members[] (NULL: the world). */
int aq_armci_malloc(void *ptr_arr[], armci_size_t bytes, MPI_Comm comm, const int *members, int n);
int aq_armci_free(void *ptr, MPI_Comm comm);
void aq_armci_forget_memory(void); /* frees all allocations but local ones; for ARMCI_Finalize */

/* Local memory (armci_local.c), before and after the end of the job, which unmaps the segment. */
void aq_armci_local_park(void);
void aq_armci_local_return(void);

/* The world of ARMCI; before ARMCI_Init that of MPI. */
static inline MPI_Comm aq_armci_world_comm(void)
{
    return aq_armci.running ? aq_armci.comm : MPI_COMM_WORLD;
}

void aq_armci_groups_start(void);
void aq_armci_groups_end(void);
/* Returns group, or the world if group is NULL. */
const ARMCI_Group *aq_armci_group(const ARMCI_Group *group);

void aq_armci_domains_start(void);
void aq_armci_domains_end(void);

/* Makes the scopes of a group of which the caller is a member; collective over its communicator.
 * remove: frees the communicator and the tables of the group, too, unless it is the world; nothing
 * if the group is of an earlier start. end: the same for all groups. */
void aq_armci_scopes_add(const ARMCI_Group *group);
void aq_armci_scopes_remove(const ARMCI_Group *group);
void aq_armci_scopes_end(void);
/* The communicator of a scope within comm, that of the world or of a group. MPI_COMM_NULL: the
 * caller is no member. */
MPI_Comm aq_armci_scope_comm(int scope, MPI_Comm comm);

void aq_armci_mutexes_end(void);
/* Completes the caller's calls of procedures that nobody has waited for, so that after a barrier
 * none is under way; their results are dropped. end: afterwards. */
void aq_armci_gpc_complete(void);
void aq_armci_gpc_end(void);
/* The mutex that ARMCI_Gpc_lock takes. */
void aq_armci_gpc_mutex_start(void);
/* True on the thread that runs functions of ARMCI_Gpc_exec, beside the program's. */
bool aq_armci_gpc_is_function(void);
/* This thread has taken (1) or given back (-1) a lock of ARMCI_Gpc_lock. */
void aq_armci_gpc_note_lock(int taken);

/* MPI operations; while the rank waits it makes progress for other ranks. */
void aq_armci_mpi_wait(MPI_Request *request);
/* Lets MPI move the program's own messages, if the calling thread may call MPI. */
void aq_armci_mpi_step(void);
void aq_armci_mpi_barrier(MPI_Comm comm);
/* A barrier of n ranks, of which the caller is members[self]. members has world ranks; no other
 * rank takes part. */
void aq_armci_mpi_barrier_of(const int *members, int n, int self);
void aq_armci_mpi_allgather(const void *local, void *all, int bytes, MPI_Comm comm);
/* Starts MPI, for threads as level says or more, if the program has not. */
void aq_armci_mpi_start(int level, int *argc, char ***argv);

#endif
