/*
 * armci_msg.c - the message layer over MPI. A rank that waits for MPI makes progress for other
 * ranks.
 *
 * Messages of a rank to itself are stored in a list, since a program may send one before it
 * receives it.
 *
 * Owns      the list of messages to oneself
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    struct message *next;
    int tag, len;
    char bytes[];
};

static struct message *to_self;

/* --- MPI --- */

static void end_mpi(void)
{
    int is_down = 1;

    MPI_Finalized(&is_down);
    if (!is_down)
        MPI_Finalize();
}

/* Handles of Open MPI are pointers, those of MPICH and its kin numbers. A program of one kind whose
 * calls of MPI this library shares would end in a communicator that does not exist. */
static void check_mpi(void)
{
#ifdef OPEN_MPI
    const bool is_ours = true;
#else
    const bool is_ours = false;
#endif
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    if ((strncmp(version, "Open MPI", 8) == 0) == is_ours)
        return;
    fprintf(stderr,
            "*** FATAL ERROR: this libarmci was built for %s, but the program is linked with %s: "
            "compile and link the program with the MPI of libarmci, or build Aqueduct with "
            "--with-mpicc=COMPILER of the other\n",
            is_ours ? "Open MPI" : "an MPI of MPICH's kind", version);
    exit(1);
}

void aq_armci_mpi_start(int level, int *argc, char ***argv)
{
    int is_up = 0;

    check_mpi();
    MPI_Initialized(&is_up);
    if (is_up)
        return;
    /* over the mpi conduit a thread of Aqueduct calls MPI at the same time as the program */
    if (aq_armci_is_over_mpi())
        level = MPI_THREAD_MULTIPLE;
    MPI_Init_thread(argc, argv, level, &level);
    atexit(end_mpi);
}

void aq_armci_mpi_step(void)
{
    int level, may_call, found;

    MPI_Finalized(&found);
    if (found || !aq_armci.started)
        return;
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&may_call);
    may_call = level == MPI_THREAD_MULTIPLE || (level <= MPI_THREAD_FUNNELED && may_call);
    if (may_call)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, aq_armci.silent, &found, MPI_STATUS_IGNORE);
}

void aq_armci_mpi_wait(MPI_Request *request)
{
    int is_done = 0;
    unsigned step = 0;

    aq_armci_serve();
    for (;;) {
        MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        if (is_done)
            return;
        aq_armci_pause(&step);
    }
}

void aq_armci_mpi_barrier(MPI_Comm comm)
{
    MPI_Request request;

    MPI_Ibarrier(comm, &request);
    aq_armci_mpi_wait(&request);
}

/* A dissemination barrier. Its messages are the only ones of job_comm: Aqueduct uses the
 * communicator at start and end, the program never. Two ranks come to their common barriers in the
 * same order, and a rank sends another at most one message in each, so one tag is sufficient. */
void aq_armci_mpi_barrier_of(const int *members, int n, int self)
{
    for (int distance = 1; distance < n; distance *= 2) {
        MPI_Request in, out;

        MPI_Irecv(NULL, 0, MPI_BYTE, members[(self + n - distance) % n], 0, aq_armci.job_comm, &in);
        MPI_Isend(NULL, 0, MPI_BYTE, members[(self + distance) % n], 0, aq_armci.job_comm, &out);
        aq_armci_mpi_wait(&in);
        aq_armci_mpi_wait(&out);
    }
}

void aq_armci_mpi_allgather(const void *local, void *all, int bytes, MPI_Comm comm)
{
    MPI_Request request;

    MPI_Iallgather(local, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
    aq_armci_mpi_wait(&request);
}

__attribute__((weak)) void armci_msg_init(int *argc, char ***argv)
{
    aq_armci_mpi_start(MPI_THREAD_SINGLE, argc, argv);
}

void armci_msg_init_comm(MPI_Comm comm)
{
    (void)comm;
    aq_armci_mpi_start(MPI_THREAD_SINGLE, NULL, NULL);
}

__attribute__((weak)) void armci_msg_finalize(void)
{
    int is_up = 0, is_down = 1;

    MPI_Initialized(&is_up);
    MPI_Finalized(&is_down);
    if (is_up && !is_down)
        MPI_Finalize();
}

int armci_msg_me(void)
{
    int me;

    if (aq_armci.started)
        return aq_armci.me;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return me;
}

int armci_msg_nproc(void)
{
    int nproc;

    if (aq_armci.started)
        return aq_armci.nproc;
    MPI_Comm_size(MPI_COMM_WORLD, &nproc);
    return nproc;
}

double armci_timer(void)
{
    return MPI_Wtime();
}

/* --- messages --- */

static void send_to_self(int tag, const void *buf, int len)
{
    struct message *message = malloc(sizeof(*message) + (size_t)len), **last = &to_self;

    if (message == NULL)
        aq_armci_fatal("armci_msg_snd: no memory for %d bytes to oneself", len);
    message->next = NULL;
    message->tag = tag;
    message->len = len;
    memcpy(message->bytes, buf, (size_t)len);
    while (*last != NULL)
        last = &(*last)->next;
    *last = message;
}

/* Receives a message with this tag from the list. False if there is none. */
static bool receive_from_self(int tag, void *buf, int buflen, int *msglen)
{
    for (struct message **link = &to_self; *link != NULL; link = &(*link)->next) {
        struct message *message = *link;

        if (message->tag != tag)
            continue;
        if (message->len > buflen)
            aq_armci_fatal("armci_msg_rcv: a message of %d bytes for a buffer of %d, tag %d",
                           message->len, buflen, tag);
        memcpy(buf, message->bytes, (size_t)message->len);
        if (msglen != NULL)
            *msglen = message->len;
        *link = message->next;
        free(message);
        return true;
    }
    return false;
}

void armci_msg_snd(int tag, void *buf, int len, int to)
{
    MPI_Request request;

    if (to == armci_msg_me()) {
        send_to_self(tag, buf, len);
        return;
    }
    MPI_Isend(buf, len, MPI_BYTE, to, tag, aq_armci_world_comm(), &request);
    aq_armci_mpi_wait(&request);
}

/* Receives a message. from may be MPI_ANY_SOURCE. Returns the sender. */
static int receive(int tag, void *buf, int buflen, int *msglen, int from)
{
    MPI_Request request;
    MPI_Status status;
    int is_done = 0, len = 0;
    unsigned step = 0;

    MPI_Irecv(buf, buflen, MPI_BYTE, from, tag, aq_armci_world_comm(), &request);
    aq_armci_serve();
    for (;;) {
        MPI_Test(&request, &is_done, &status);
        if (is_done)
            break;
        aq_armci_pause(&step);
    }
    MPI_Get_count(&status, MPI_BYTE, &len);
    if (msglen != NULL)
        *msglen = len;
    return status.MPI_SOURCE;
}

void armci_msg_rcv(int tag, void *buf, int buflen, int *msglen, int from)
{
    if (from != armci_msg_me())
        receive(tag, buf, buflen, msglen, from);
    else if (!receive_from_self(tag, buf, buflen, msglen))
        aq_armci_fatal(
            "armci_msg_rcv: this rank waits for a message to itself that it has not sent, tag %d",
            tag);
}

int armci_msg_rcvany(int tag, void *buf, int buflen, int *msglen)
{
    if (receive_from_self(tag, buf, buflen, msglen))
        return armci_msg_me();
    return receive(tag, buf, buflen, msglen, MPI_ANY_SOURCE);
}

/* --- barriers and broadcasts --- */

void parmci_msg_barrier(void)
{
    if (aq_armci.running)
        gex_Event_Wait(gex_Coll_BarrierNB(aq_armci.tm, 0));
    else
        aq_armci_mpi_barrier(MPI_COMM_WORLD);
}
AQ_ARMCI_TWIN_LOWER(armci_msg_barrier);

void parmci_msg_group_barrier(ARMCI_Group *group)
{
    const ARMCI_Group *of = aq_armci_group(group);

    if (of->comm == aq_armci.comm)
        parmci_msg_barrier();
    else if (of->rank >= 0)
        aq_armci_mpi_barrier(of->comm);
}
AQ_ARMCI_TWIN_LOWER(armci_msg_group_barrier);

static void broadcast(void *buf, int len, int root, MPI_Comm comm)
{
    MPI_Request request;

    if (comm == MPI_COMM_NULL)
        return;
    MPI_Ibcast(buf, len, MPI_BYTE, root, comm, &request);
    aq_armci_mpi_wait(&request);
}

void armci_msg_brdcst(void *buf, int len, int root)
{
    broadcast(buf, len, root, aq_armci_world_comm());
}

void armci_msg_bcast(void *buf, int len, int root)
{
    armci_msg_brdcst(buf, len, root);
}

/* Returns the rank in `to` of rank `rank` of `from`; MPI_UNDEFINED if it is not in `to`. */
static int translate(MPI_Comm from, int rank, MPI_Comm to)
{
    MPI_Group from_group, to_group;
    int translated;

    MPI_Comm_group(from, &from_group);
    MPI_Comm_group(to, &to_group);
    MPI_Group_translate_ranks(from_group, 1, &rank, to_group, &translated);
    MPI_Group_free(&to_group);
    MPI_Group_free(&from_group);
    return translated;
}

/* Returns the rank in comm of a world rank; 0 if it is not in comm, as the root of a broadcast over
 * a domain may be. */
static int rank_in(MPI_Comm comm, int world_rank)
{
    const int rank = translate(aq_armci_world_comm(), world_rank, comm);

    return rank == MPI_UNDEFINED ? 0 : rank;
}

static void broadcast_scope(int scope, void *buf, int len, int root, MPI_Comm comm)
{
    const MPI_Comm of = aq_armci_scope_comm(scope, comm);

    if (of != MPI_COMM_NULL)
        broadcast(buf, len, rank_in(of, root), of);
}

void armci_msg_bcast_scope(int scope, void *buf, int len, int root)
{
    broadcast_scope(scope, buf, len, root, aq_armci_world_comm());
}

static void group_broadcast(const char *call, int scope, void *buf, int len, int root,
                            const ARMCI_Group *group)
{
    if (root < 0 || root >= aq_armci.nproc || group->abs_to_grp[root] < 0)
        aq_armci_fatal("%s: rank %d is not in the group", call, root);
    broadcast_scope(scope, buf, len, root, group->comm);
}

void armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group)
{
    group_broadcast("armci_msg_group_bcast_scope", scope, buf, len, root, aq_armci_group(group));
}

void armci_msg_clus_brdcst(void *buf, int len)
{
    broadcast(buf, len, 0, aq_armci_scope_comm(SCOPE_NODE, aq_armci_world_comm()));
}

void armci_grp_clus_brdcst(void *buf, int len, int grp_master, int grp_clus_nproc,
                           ARMCI_Group *group)
{
    (void)grp_clus_nproc;
    group_broadcast("armci_grp_clus_brdcst", SCOPE_NODE, buf, len, grp_master,
                    aq_armci_group(group));
}

/* --- trees --- */

static int world_rank_of(MPI_Comm comm, int i)
{
    return translate(comm, i, aq_armci_world_comm());
}

void armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right)
{
    const MPI_Comm comm = aq_armci_scope_comm(scope, aq_armci_world_comm());
    int me, n;

    *Root = 0;
    *Up = *Left = *Right = -1;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    *Root = world_rank_of(comm, 0);
    if (me > 0)
        *Up = world_rank_of(comm, (me - 1) / 2);
    if (2 * me + 1 < n)
        *Left = world_rank_of(comm, 2 * me + 1);
    if (2 * me + 2 < n)
        *Right = world_rank_of(comm, 2 * me + 2);
}

/* --- addresses --- */

static void exchange(void *ptr_arr[], int n, MPI_Comm comm)
{
    MPI_Request request;

    if (comm == MPI_COMM_NULL)
        return;
    MPI_Iallreduce(MPI_IN_PLACE, ptr_arr, n, MPI_LONG, MPI_SUM, comm, &request);
    aq_armci_mpi_wait(&request);
}

void armci_exchange_address(void *ptr_arr[], int n)
{
    exchange(ptr_arr, n, aq_armci_world_comm());
}

void armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group)
{
    exchange(ptr_arr, n, aq_armci_group(group)->comm);
}
