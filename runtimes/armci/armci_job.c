/*
 * armci_job.c - starts and ends ARMCI; what ends the job when something is wrong.
 *
 * The Aqueduct job under ARMCI runs over the ranks of a communicator (aqueduct_mpi.h), with MPI's
 * numbers. ARMCI_Init starts it and ARMCI_Finalize ends it; then another job can start over other
 * ranks. A conduit that cannot end its job keeps it until the process ends, and a later ARMCI_Init
 * uses the same job.
 *
 * Owns      aq_armci
 * Threads   the program's; collective over the communicator
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_choose.h"
#include "armci_impl.h"
#include "aqueduct_mpi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct aq_armci_job aq_armci;
char *mp_group_name = (char *)"";

/* --- errors --- */

/* Returns the rank in the job, or in MPI_COMM_WORLD where there is no job but MPI. */
static int own_rank(void)
{
    int is_up = 0, is_down = 0;

    MPI_Initialized(&is_up);
    MPI_Finalized(&is_down);
    return aq_armci.started || (is_up && !is_down) ? armci_msg_me() : 0;
}

void aq_armci_fatal(const char *format, ...)
{
    va_list list;
    char text[512];

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "ARMCI: rank %d: %s\n", own_rank(), text);
    fflush(stderr);
    armci_msg_abort(1);
    abort();
}

void aq_armci_check_proc(const char *call, int proc)
{
    if (!aq_armci.running)
        aq_armci_fatal("%s before ARMCI_Init or after ARMCI_Finalize", call);
    if (!aq_armci_is_proc(proc))
        aq_armci_fatal("%s: there is no rank %d; there are 0 to %d", call, proc,
                       aq_armci.nproc - 1);
}

void aq_armci_check_target(const char *call, const void *remote, int proc)
{
    aq_armci_check_proc(call, proc);
    if (remote == NULL)
        aq_armci_fatal("%s: the address at rank %d is NULL", call, proc);
}

void armci_msg_abort(int code)
{
    const int failing = (code & 0xff) == 0 ? 1 : code; /* a process's status has eight bits */
    int is_up = 0, is_down = 0;

    if (aq_armci.started)
        gasnet_exit(failing);
    MPI_Initialized(&is_up);
    MPI_Finalized(&is_down);
    if (is_up && !is_down)
        MPI_Abort(MPI_COMM_WORLD, failing);
    exit(failing);
}

void ARMCI_Cleanup(void)
{
    /* shared memory has no name in the system, so none of it outlives the processes */
}

void ARMCI_Error(const char *msg, int code)
{
    fflush(stdout);
    fprintf(stderr, "ARMCI: rank %d: %s (%d)\n", own_rank(), msg, code);
    fflush(stderr);
    ARMCI_Cleanup();
    armci_msg_abort(code);
}

void derr_printf(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
}

int dassertp_fail(const char *cond, const char *file, const char *func, unsigned line, int code)
{
    fprintf(stderr, "ARMCI: rank %d: assertion failed: %s, %s:%u, %s()\n", own_rank(), cond, file,
            line, func);
    ARMCI_Error("assertion failed", code == 0 ? -1 : code);
    return code;
}

/* --- start --- */

bool aq_armci_is_over_mpi(void)
{
    const char *conduit = aqueduct_job_conduit();

    return conduit != NULL && strcmp(conduit, "mpi") == 0;
}

/* The variables that aq_armci_set_default() has set: constants. */
static struct {
    const char *name, *value;
} defaults[8];
static int ndefaults;

void aq_armci_set_default(const char *name, const char *value)
{
    if (getenv(name) != NULL)
        return;
    if (ndefaults == (int)(sizeof(defaults) / sizeof(defaults[0])))
        aq_armci_fatal("too many settings: %s", name);
    setenv(name, value, 1);
    defaults[ndefaults].name = name;
    defaults[ndefaults++].value = value;
}

/* What the program has set since stays. */
static void unset_defaults(void)
{
    while (ndefaults > 0) {
        const char *name = defaults[--ndefaults].name, *now = getenv(name);

        if (now != NULL && strcmp(now, defaults[ndefaults].value) == 0)
            unsetenv(name);
    }
}

/* A setting that Aqueduct takes for a no. */
static bool is_off(const char *name)
{
    static const char *const no[] = { "0", "n", "no", "false", "off" };
    const char *value = getenv(name);

    for (size_t i = 0; value != NULL && i < sizeof(no) / sizeof(no[0]); i++)
        if (strcasecmp(value, no[i]) == 0)
            return true;
    return false;
}

/* Sets the environment variables that Aqueduct needs in an MPI program. */
static void choose_settings(void)
{
    static const struct {
        int level;
        const char *name;
    } levels[] = { { MPI_THREAD_SINGLE, "single" },
                   { MPI_THREAD_FUNNELED, "funneled" },
                   { MPI_THREAD_SERIALIZED, "serialized" },
                   { MPI_THREAD_MULTIPLE, "multiple" } };
    int level = MPI_THREAD_SINGLE;

    /* A rank that has left main does not end the other ranks, which may still be in MPI calls or in
     * another part of the program. A job that fails ends as fast as any. */
    if (getenv("GASNET_EXITTIMEOUT") == NULL)
        aq_armci_set_default("AQ_EXITTIMEOUT_ORDERLY", "86400");
    /* The segment is large, and most of it free. But a first transfer to memory needs its owner's
     * attention then, which is the service thread's. */
    if (!is_off("GASNET_PROGRESS_THREAD"))
        aq_armci_set_default("AQ_IBV_REGISTER", "demand");
    /* a put through a window needs no call of its target */
    aq_armci_set_default("GASNET_MPI_COALESCE", "0");
    MPI_Query_thread(&level);
    if (aq_armci_is_over_mpi() && level < MPI_THREAD_MULTIPLE) {
        /* the service thread may not call MPI: targets make progress in their own calls only */
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
            if (levels[i].level == level)
                aq_armci_set_default("GASNET_MPI_THREAD", levels[i].name);
        return;
    }
    aq_armci.threads = true;
    aq_armci_set_default("GASNET_PROGRESS_THREAD", "1");
}

static void register_handlers(gex_EP_t ep)
{
    enum {
        SHORT_REQUEST = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST,
        SHORT_REPLY = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY,
        MEDIUM_REQUEST = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST
    };
    gex_AM_Entry_t table[] = {
        { AQ_ARMCI_HANDLE_STREAM, (gex_AM_Fn_t)aq_armci_on_stream, MEDIUM_REQUEST, 0, NULL,
          "stream" },
        { AQ_ARMCI_HANDLE_STREAM_DONE, (gex_AM_Fn_t)aq_armci_on_stream_done, SHORT_REPLY, 1, NULL,
          "stream_done" },
        { AQ_ARMCI_HANDLE_LOCK, (gex_AM_Fn_t)aq_armci_on_lock, SHORT_REQUEST, 4, NULL, "lock" },
        { AQ_ARMCI_HANDLE_LOCK_REPLY, (gex_AM_Fn_t)aq_armci_on_lock_reply, SHORT_REPLY, 1, NULL,
          "lock_reply" },
        { AQ_ARMCI_HANDLE_UNLOCK, (gex_AM_Fn_t)aq_armci_on_unlock, SHORT_REQUEST, 3, NULL,
          "unlock" },
        { AQ_ARMCI_HANDLE_UNLOCK_REPLY, (gex_AM_Fn_t)aq_armci_on_unlock_reply, SHORT_REPLY, 1, NULL,
          "unlock_reply" },
        { AQ_ARMCI_HANDLE_HANDOFF, (gex_AM_Fn_t)aq_armci_on_handoff, SHORT_REQUEST, 0, NULL,
          "handoff" },
        { AQ_ARMCI_HANDLE_GPC, (gex_AM_Fn_t)aq_armci_on_gpc, MEDIUM_REQUEST, 0, NULL, "gpc" },
        { AQ_ARMCI_HANDLE_GPC_REPLY, (gex_AM_Fn_t)aq_armci_on_gpc_reply, MEDIUM_REQUEST, 0, NULL,
          "gpc_reply" },
        { AQ_ARMCI_HANDLE_ASSIST, (gex_AM_Fn_t)aq_armci_on_assist, SHORT_REQUEST, 6, NULL,
          "assist" },
        { AQ_ARMCI_HANDLE_ASSIST_DONE, (gex_AM_Fn_t)aq_armci_on_assist_done,
          GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "assist_done" },
#if AQ_ARMCI_CHECKS
        { AQ_ARMCI_HANDLE_CHECK, (gex_AM_Fn_t)aq_armci_on_check, SHORT_REQUEST, 4, NULL, "check" },
        { AQ_ARMCI_HANDLE_CHECK_REPLY, (gex_AM_Fn_t)aq_armci_on_check_reply, SHORT_REPLY, 1, NULL,
          "check_reply" },
#endif
    };

    if (gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0])) != GASNET_OK)
        aq_armci_fatal("the handlers cannot be registered");
}

static void find_peers(void)
{
    const size_t bytes = (size_t)aq_armci.nproc * sizeof(struct aq_armci_peer);

    aq_armci.peers = aligned_alloc(AQ_ARMCI_CACHE_LINE, bytes);
    aq_armci.dirty = calloc((size_t)aq_armci.nproc, sizeof(int));
    if (aq_armci.peers == NULL || aq_armci.dirty == NULL)
        aq_armci_fatal("no memory for what is known about %d ranks", aq_armci.nproc);
    memset(aq_armci.peers, 0, bytes);
    for (int p = 0; p < aq_armci.nproc; p++) {
        struct aq_armci_peer *peer = &aq_armci.peers[p];
        void *owner, *mapped;
        uintptr_t size;

        if (gex_Segment_QueryBound(aq_armci.tm, (gex_Rank_t)p, &owner, &mapped, &size) != 0)
            aq_armci_fatal("rank %d has no memory for others", p);
        peer->base = mapped != NULL ? mapped : owner;
        peer->delta = mapped != NULL ? (intptr_t)((uintptr_t)mapped - (uintptr_t)owner) : 0;
        peer->control = mapped;
        peer->one_sided = aqueduct_is_one_sided((gex_Rank_t)p) != 0;
        peer->size = size;
        peer->put = GEX_EVENT_INVALID;
        gex_HSL_Init(&peer->arriving);
    }
}

static void give_back(void *addr, size_t bytes)
{
    (void)aqueduct_segment_discard(addr, bytes); /* a network that has pinned it keeps it */
}

/* Attaches the largest segment possible, since later ARMCI_Malloc calls are not known. Its pages
 * take memory only when they are touched. */
static void attach_segment(void)
{
    const uintptr_t page = GASNET_PAGESIZE;
    const uintptr_t size = gasnet_getMaxLocalSegmentSize() / page * page;
    const size_t control =
        sizeof(struct aq_armci_control) + (size_t)aq_armci.nproc * sizeof(int64_t);
    const size_t head = (control + AQ_ARMCI_HEAP_ALIGN - 1) & ~(AQ_ARMCI_HEAP_ALIGN - 1);
    gex_Segment_t segment;
    char *base;

    if (size <= head || gex_Segment_Attach(&segment, aq_armci.tm, size) != GASNET_OK)
        aq_armci_fatal("no memory for others can be had (GASNET_MAX_SEGSIZE)");
    base = gex_Segment_QueryAddr(segment);
    aq_armci.heap = aq_armci_heap_create(base + head, size - head, give_back);
    if (aq_armci.heap == NULL)
        aq_armci_fatal("no memory for the list of allocations");
}

/* Returns true, on every rank of comm, if one of them is in a job that cannot end and has other
 * ranks than comm or another order. A rank without a job takes part, so that all ranks learn it. */
static bool is_other_job(MPI_Comm comm)
{
    int how = MPI_IDENT, other, any;

    if (aq_armci.started)
        MPI_Comm_compare(comm, aq_armci.job_comm, &how);
    other = how != MPI_IDENT && how != MPI_CONGRUENT;
    MPI_Allreduce(&other, &any, 1, MPI_INT, MPI_MAX, comm);
    return any != 0;
}

/* Ends the job because ARMCI cannot start over comm. Rank 0 of comm prints the message. */
static void refuse(MPI_Comm comm, const char *why)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        aq_armci_fatal("ARMCI_Init_mpi_comm: %s", why);
    MPI_Barrier(comm);
}

static gex_EP_t start_over(MPI_Comm comm)
{
    struct aqueduct_group group;
    gex_Client_t client;
    gex_EP_t ep;

    MPI_Comm_dup(comm, &aq_armci.job_comm);
    MPI_Comm_dup(MPI_COMM_SELF, &aq_armci.silent);
    aqueduct_mpi_group(&aq_armci.job_comm, &group);
    if (aqueduct_job_start(&group, NULL, &client, &ep, &aq_armci.tm, "ARMCI", 0) != GASNET_OK)
        aq_armci_fatal("Aqueduct does not start");
    aq_armci.me = (int)gex_System_QueryJobRank();
    aq_armci.nproc = (int)gex_System_QueryJobSize();
    aq_armci.started = true;
    return ep;
}

/* A wait for another rank, in whatever call, goes on moving the messages of the program: the other
 * one may wait for them. Over the mpi conduit Aqueduct's own calls of MPI do. */
static void move_messages(void *unused)
{
    (void)unused;
    aq_armci_mpi_step();
}

static void start_job(MPI_Comm comm)
{
    choose_settings();
    aq_armci_protocol_prepare();
    register_handlers(start_over(comm));
    aq_armci.must_poll = gex_System_QueryHiddenAMConcurrencyLevel() == 0;
    attach_segment();
    find_peers();
    if (!aq_armci_is_over_mpi())
        aqueduct_progress(move_messages, NULL);
    gex_AD_Create(&aq_armci.ad_int, aq_armci.tm, GEX_DT_I32, GEX_OP_FADD | GEX_OP_SWAP, 0);
    gex_AD_Create(&aq_armci.ad_long, aq_armci.tm, GEX_DT_I64, GEX_OP_FADD | GEX_OP_SWAP, 0);
}

/* gasnetrun does not tell MPI of its ranks: each has an MPI_COMM_WORLD of its own. */
static void check_launcher(void)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1 && getenv("AQ_SPAWN_FORK") != NULL)
        fprintf(stderr,
                "ARMCI: this process is a job of one rank, since gasnetrun starts no ranks of "
                "MPI: start the program by mpirun or gasnetrun_mpi\n");
}

static void start(MPI_Comm comm)
{
    if (aq_armci.running)
        return;
    check_launcher();
    if (is_other_job(comm))
        refuse(comm, "the program has started Aqueduct itself, or by a launcher of Aqueduct's, so "
                     "that ARMCI can start with the ranks of that job only");
    if (!aq_armci.started)
        start_job(comm);
    MPI_Comm_dup(comm, &aq_armci.comm);
    aq_armci.running = true;
    aq_armci_protocol_start();
    aq_armci_domains_start();
    aq_armci_groups_start();
    aq_armci_gpc_mutex_start();
    aq_armci_choose_start();
    PARMCI_Barrier();
}

int PARMCI_Init_args(int *argc, char ***argv)
{
    aq_armci_mpi_start(MPI_THREAD_SINGLE, argc, argv);
    start(MPI_COMM_WORLD);
    return 0;
}
AQ_ARMCI_TWIN(Init_args);

int PARMCI_Init(void)
{
    return PARMCI_Init_args(NULL, NULL);
}
AQ_ARMCI_TWIN(Init);

/* Global Arrays expects 1 for success. */
int PARMCI_Init_mpi_comm(MPI_Comm comm)
{
    aq_armci_mpi_start(MPI_THREAD_SINGLE, NULL, NULL);
    start(comm);
    return 1;
}
AQ_ARMCI_TWIN(Init_mpi_comm);

int PARMCI_Init_thread_comm(int level, MPI_Comm comm)
{
    int has = MPI_THREAD_SINGLE;

    aq_armci_mpi_start(level, NULL, NULL);
    MPI_Query_thread(&has);
    if (has < level)
        return FAIL;
    start(comm);
    return 0;
}
AQ_ARMCI_TWIN(Init_thread_comm);

int PARMCI_Init_thread(int level)
{
    return PARMCI_Init_thread_comm(level, MPI_COMM_WORLD);
}
AQ_ARMCI_TWIN(Init_thread);

int PARMCI_Initialized(void)
{
    return aq_armci.running;
}
AQ_ARMCI_TWIN(Initialized);

/* --- end --- */

static void end_job(void)
{
    if (!aqueduct_job_can_end())
        return;
    aq_armci_local_park();
    for (int p = 0; p < aq_armci.nproc; p++)
        gex_HSL_Destroy(&aq_armci.peers[p].arriving);
    if (aqueduct_job_end() != GASNET_OK)
        aq_armci_fatal("Aqueduct does not end");
    aq_armci_heap_destroy(aq_armci.heap);
    free(aq_armci.peers);
    free(aq_armci.dirty);
    MPI_Comm_free(&aq_armci.job_comm);
    MPI_Comm_free(&aq_armci.silent);
    memset(&aq_armci, 0, sizeof(aq_armci));
    unset_defaults();
    aq_armci_local_return();
}

int PARMCI_Finalize(void)
{
    if (!aq_armci.running)
        return 0;
    aq_armci_gpc_complete();
    PARMCI_Barrier();
    aq_armci_gpc_end();
    aq_armci_mutexes_end();
    aq_armci_groups_end();
    aq_armci_domains_end();
    aq_armci_protocol_end();
    aq_armci_forget_memory();
    MPI_Comm_free(&aq_armci.comm);
    aq_armci.running = false;
    end_job();
    return 0;
}
AQ_ARMCI_TWIN(Finalize);

/* --- limits of memory --- */

void ARMCI_Set_shm_limit(unsigned long bytes)
{
    (void)bytes; /* pages take memory when they are touched; GASNET_MAX_SEGSIZE is the limit */
}

void ARMCI_Set_shmem_limit(unsigned long bytes)
{
    ARMCI_Set_shm_limit(bytes);
}
