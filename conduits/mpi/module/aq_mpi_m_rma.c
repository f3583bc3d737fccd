/*
 * aq_mpi_m_rma.c - the module's transfer functions: windows with passive targets, and MPI messages
 * beside them.
 *
 * Owns      the windows, the list of requests, the communicator of transfers
 * Threads   as aq_mpi_lib_rma.h says
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/mpi/aq_mpi_lib_rma.h"
#include "conduits/mpi/module/aq_mpi_m.h"

#define AQ_MPI_M_NOW 64u /* tests: some microseconds */

static struct {
    MPI_Comm comm;
    MPI_Request meeting;
    MPI_Win win[AQ_MPI_WINS];
    MPI_Request *list; /* [room], as the next three; always has space for one more */
    MPI_Status *statuses;
    int *done;
    unsigned *completed;
    int count, capacity;
} aq_mpi_m_transfers = { .comm = MPI_COMM_NULL,
                         .meeting = MPI_REQUEST_NULL,
                         .win = { MPI_WIN_NULL, MPI_WIN_NULL } };

static bool aq_mpi_m_resize(void **array, size_t count, size_t size)
{
    void *larger = realloc(*array, count * size);

    *array = larger != NULL ? larger : *array;
    return larger != NULL;
}

/* Makes space for one more request by doubling the list when it is full. */
static int aq_mpi_m_grow(void)
{
    const int capacity = aq_mpi_m_transfers.capacity == 0 ? 64 : 2 * aq_mpi_m_transfers.capacity;

    if (aq_mpi_m_transfers.count < aq_mpi_m_transfers.capacity)
        return MPI_SUCCESS;
    if (!aq_mpi_m_resize((void **)&aq_mpi_m_transfers.list, (size_t)capacity,
                         sizeof(*aq_mpi_m_transfers.list))
        || !aq_mpi_m_resize((void **)&aq_mpi_m_transfers.statuses, (size_t)capacity,
                            sizeof(*aq_mpi_m_transfers.statuses))
        || !aq_mpi_m_resize((void **)&aq_mpi_m_transfers.done, (size_t)capacity,
                            sizeof(*aq_mpi_m_transfers.done))
        || !aq_mpi_m_resize((void **)&aq_mpi_m_transfers.completed, (size_t)capacity,
                            sizeof(*aq_mpi_m_transfers.completed)))
        return MPI_ERR_NO_MEM;
    aq_mpi_m_transfers.capacity = capacity;
    return MPI_SUCCESS;
}

static int aq_mpi_m_start(void)
{
    int error = aq_mpi_m_grow();

    if (error == MPI_SUCCESS)
        error = MPI_Comm_dup(aq_spawn_mpi_m.comm, &aq_mpi_m_transfers.comm);
    return error != MPI_SUCCESS
               ? error
               : MPI_Comm_set_errhandler(aq_mpi_m_transfers.comm, MPI_ERRORS_RETURN);
}

static int aq_mpi_m_ibarrier(bool *done_out)
{
    int error = MPI_SUCCESS, done = 0;

    if (aq_mpi_m_transfers.meeting == MPI_REQUEST_NULL)
        error = MPI_Ibarrier(aq_mpi_m_transfers.comm, &aq_mpi_m_transfers.meeting);
    if (error == MPI_SUCCESS)
        error = MPI_Test(&aq_mpi_m_transfers.meeting, &done, MPI_STATUS_IGNORE);
    *done_out = error == MPI_SUCCESS && done;
    return error;
}

/* --- windows --- */

/* Returns true if loads and stores of this process and accesses of others meet in one copy of the
 * memory. */
static bool aq_mpi_m_is_unified(MPI_Win win)
{
    int *model, is_set;

    return MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &is_set) == MPI_SUCCESS && is_set
           && *model == MPI_WIN_UNIFIED;
}

/* A window serves all of its ranks or none. If some ranks failed to make it, the others cannot free
 * it, since that is collective: MPI_Finalize does. */
static int aq_mpi_m_make(MPI_Comm comm, enum aq_mpi_win which, void *base, size_t size,
                         bool *usable_out)
{
    enum { MADE, USABLE, COUNT };
    int own[COUNT] = { 0 }, all[COUNT] = { 0 };
    MPI_Win win = MPI_WIN_NULL;
    int error;

    *usable_out = false;
    error = MPI_Win_create(base, (MPI_Aint)size, 1, MPI_INFO_NULL, comm, &win);
    if (error == MPI_SUCCESS) {
        own[MADE] = 1;
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    }
    if (own[MADE] && aq_mpi_m_is_unified(win)) {
        /* no other kind of lock is ever taken, so targets need not be asked */
        error = MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        own[USABLE] = error == MPI_SUCCESS;
    }
    if (MPI_Allreduce(own, all, COUNT, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all[USABLE]) {
        aq_mpi_m_transfers.win[which] = win;
        *usable_out = true;
        return error;
    }
    if (own[USABLE])
        MPI_Win_unlock_all(win);
    if (all[MADE])
        MPI_Win_free(&win);
    return error;
}

/* Open MPI keeps a window's shared memory in a file that is named by the number of the
 * communicator. Communicators without a common rank, such as those of two jobs over groups on one
 * host, have the same numbers, and would share the file. */
static bool aq_mpi_m_may_share_name(void)
{
#ifdef OPEN_MPI
    int world;

    return MPI_Comm_size(MPI_COMM_WORLD, &world) != MPI_SUCCESS || aq_spawn_mpi_m.size < world;
#else
    return false;
#endif
}

static int aq_mpi_m_open(void *base, size_t size, bool *usable_out)
{
    *usable_out = false;
    if (aq_mpi_m_may_share_name())
        return MPI_ERR_UNSUPPORTED_OPERATION;
    return aq_mpi_m_make(aq_mpi_m_transfers.comm, AQ_MPI_WIN_JOB, base, size, usable_out);
}

static int aq_mpi_m_pair_comm(uint32_t peer, MPI_Comm *pair_out)
{
    const int me = aq_spawn_mpi_m.rank, other = (int)peer;
    const int ranks[] = { me < other ? me : other, me < other ? other : me };
    MPI_Group all, two;
    int error;

    error = MPI_Comm_group(aq_mpi_m_transfers.comm, &all);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Group_incl(all, 2, ranks, &two);
    MPI_Group_free(&all);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Comm_create_group(aq_mpi_m_transfers.comm, two, 0, pair_out);
    MPI_Group_free(&two);
    return error != MPI_SUCCESS ? error : MPI_Comm_set_errhandler(*pair_out, MPI_ERRORS_RETURN);
}

static int aq_mpi_m_open_pair(uint32_t peer, void *base, size_t size, bool *usable_out,
                              uint32_t *me_out)
{
    MPI_Comm pair = MPI_COMM_NULL;
    int error;

    *usable_out = false;
    *me_out = (uint32_t)aq_spawn_mpi_m.rank < peer ? 0 : 1;
    error = aq_mpi_m_pair_comm(peer, &pair);
    if (error != MPI_SUCCESS)
        return error;
    error = aq_mpi_m_make(pair, AQ_MPI_WIN_PAIR, base, size, usable_out);
    MPI_Comm_free(&pair); /* freed when the window is */
    return error;
}

static int aq_mpi_m_close_win(enum aq_mpi_win which)
{
    MPI_Win *win = &aq_mpi_m_transfers.win[which];
    int error;

    if (*win == MPI_WIN_NULL)
        return MPI_SUCCESS;
    error = MPI_Win_unlock_all(*win);
    return error != MPI_SUCCESS ? error : MPI_Win_free(win);
}

static void aq_mpi_m_free_list(void)
{
    free(aq_mpi_m_transfers.list);
    free(aq_mpi_m_transfers.statuses);
    free(aq_mpi_m_transfers.done);
    free(aq_mpi_m_transfers.completed);
    aq_mpi_m_transfers.list = NULL;
    aq_mpi_m_transfers.statuses = NULL;
    aq_mpi_m_transfers.done = NULL;
    aq_mpi_m_transfers.completed = NULL;
    aq_mpi_m_transfers.capacity = 0;
}

static int aq_mpi_m_stop(void)
{
    /* a nonblocking barrier that not all ranks have entered is still pending: MPI_Finalize ends
     * both */
    if (aq_mpi_m_transfers.comm == MPI_COMM_NULL || aq_mpi_m_transfers.meeting != MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    if (aq_mpi_m_transfers.count == 0)
        aq_mpi_m_free_list();
    return MPI_Comm_free(&aq_mpi_m_transfers.comm);
}

static int aq_mpi_m_put(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src,
                        size_t nbytes)
{
    return MPI_Put(src, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)nbytes, MPI_BYTE,
                   aq_mpi_m_transfers.win[win]);
}

static int aq_mpi_m_get(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes)
{
    return MPI_Get(dest, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)nbytes, MPI_BYTE,
                   aq_mpi_m_transfers.win[win]);
}

static int aq_mpi_m_flush(enum aq_mpi_win win, uint32_t rank)
{
    return MPI_Win_flush((int)rank, aq_mpi_m_transfers.win[win]);
}

/* --- requests --- */

/* Returns the place of the next request, which is in the list once it is appended. */
static MPI_Request *aq_mpi_m_next(void)
{
    return &aq_mpi_m_transfers.list[aq_mpi_m_transfers.count];
}

static int aq_mpi_m_append(int error)
{
    if (error != MPI_SUCCESS)
        return error;
    aq_mpi_m_transfers.count++;
    return aq_mpi_m_grow();
}

static int aq_mpi_m_rput(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src,
                         size_t nbytes)
{
    return aq_mpi_m_append(MPI_Rput(src, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at,
                                    (int)nbytes, MPI_BYTE, aq_mpi_m_transfers.win[win],
                                    aq_mpi_m_next()));
}

static int aq_mpi_m_rget(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes)
{
    return aq_mpi_m_append(MPI_Rget(dest, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at,
                                    (int)nbytes, MPI_BYTE, aq_mpi_m_transfers.win[win],
                                    aq_mpi_m_next()));
}

/* A target that polls answers within a few tests. A target that does not is not waited for here. */
static int aq_mpi_m_test_now(int error, bool *done_out)
{
    int done = 0;

    for (unsigned i = 0; error == MPI_SUCCESS && !done && i < AQ_MPI_M_NOW; i++)
        error = MPI_Test(aq_mpi_m_next(), &done, MPI_STATUS_IGNORE);
    *done_out = done != 0;
    return done ? error : aq_mpi_m_append(error);
}

static int aq_mpi_m_rput_now(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src,
                             size_t nbytes, bool *done_out)
{
    int error = MPI_Rput(src, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)nbytes, MPI_BYTE,
                         aq_mpi_m_transfers.win[win], aq_mpi_m_next());

    error = aq_mpi_m_test_now(error, done_out);
    return error == MPI_SUCCESS && *done_out ? MPI_Win_flush((int)rank, aq_mpi_m_transfers.win[win])
                                             : error;
}

static int aq_mpi_m_rget_now(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest,
                             size_t nbytes, bool *done_out)
{
    const int error = MPI_Rget(dest, (int)nbytes, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)nbytes,
                               MPI_BYTE, aq_mpi_m_transfers.win[win], aq_mpi_m_next());

    return aq_mpi_m_test_now(error, done_out);
}

static MPI_Datatype aq_mpi_m_type(enum aq_mpi_type type)
{
    switch (type) {
    case AQ_MPI_I32:
        return MPI_INT32_T;
    case AQ_MPI_U32:
        return MPI_UINT32_T;
    case AQ_MPI_I64:
        return MPI_INT64_T;
    case AQ_MPI_U64:
        return MPI_UINT64_T;
    case AQ_MPI_FLT:
        return MPI_FLOAT;
    default:
        return MPI_DOUBLE;
    }
}

static MPI_Op aq_mpi_m_op(enum aq_mpi_op op)
{
    switch (op) {
    case AQ_MPI_SUM:
        return MPI_SUM;
    case AQ_MPI_PROD:
        return MPI_PROD;
    case AQ_MPI_MIN:
        return MPI_MIN;
    case AQ_MPI_MAX:
        return MPI_MAX;
    case AQ_MPI_BAND:
        return MPI_BAND;
    case AQ_MPI_BOR:
        return MPI_BOR;
    case AQ_MPI_BXOR:
        return MPI_BXOR;
    case AQ_MPI_REPLACE:
        return MPI_REPLACE;
    default:
        return MPI_NO_OP;
    }
}

static int aq_mpi_m_fetch(enum aq_mpi_win win, uint32_t rank, uint64_t at, enum aq_mpi_type type,
                          enum aq_mpi_op op, const void *operand, void *result)
{
    const MPI_Datatype mpi_type = aq_mpi_m_type(type);

    return aq_mpi_m_append(MPI_Rget_accumulate(operand, 1, mpi_type, result, 1, mpi_type, (int)rank,
                                               (MPI_Aint)at, 1, mpi_type, aq_mpi_m_op(op),
                                               aq_mpi_m_transfers.win[win], aq_mpi_m_next()));
}

static int aq_mpi_m_send(uint32_t rank, int tag, const void *src, size_t nbytes)
{
    return aq_mpi_m_append(MPI_Isend(src, (int)nbytes, MPI_BYTE, (int)rank, tag,
                                     aq_mpi_m_transfers.comm, aq_mpi_m_next()));
}

static int aq_mpi_m_recv(uint32_t rank, int tag, void *dest, size_t nbytes)
{
    return aq_mpi_m_append(MPI_Irecv(dest, (int)nbytes, MPI_BYTE, (int)rank, tag,
                                     aq_mpi_m_transfers.comm, aq_mpi_m_next()));
}

/* Descending order: a request that moves into a place has been examined already. */
static void aq_mpi_m_take_out(int count)
{
    int *done = aq_mpi_m_transfers.done;

    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && done[j - 1] < done[j]; j--) {
            const int other = done[j];

            done[j] = done[j - 1];
            done[j - 1] = other;
        }
    for (int i = 0; i < count; i++) {
        aq_mpi_m_transfers.list[done[i]] = aq_mpi_m_transfers.list[--aq_mpi_m_transfers.count];
        aq_mpi_m_transfers.completed[i] = (unsigned)done[i];
    }
}

static int aq_mpi_m_test(const unsigned **done_out, unsigned *count_out)
{
    int count = 0, error;

    aq_mpi_m_transfers.done[0] = 0;
    if (aq_mpi_m_transfers.count == 1) /* the usual case, for which this call is cheaper */
        error = MPI_Test(aq_mpi_m_transfers.list, &count, MPI_STATUS_IGNORE);
    else
        error = MPI_Testsome(aq_mpi_m_transfers.count, aq_mpi_m_transfers.list, &count,
                             aq_mpi_m_transfers.done, aq_mpi_m_transfers.statuses);
    error = aq_mpi_m_error_of(error, aq_mpi_m_transfers.statuses, count);
    if (error != MPI_SUCCESS || count == MPI_UNDEFINED) /* MPI_UNDEFINED: the list is empty */
        count = 0;
    aq_mpi_m_take_out(count);
    *done_out = aq_mpi_m_transfers.completed;
    *count_out = (unsigned)count;
    return error;
}

const struct aq_mpi_lib_rma aq_mpi_m_rma = {
    .start = aq_mpi_m_start,
    .ibarrier = aq_mpi_m_ibarrier,
    .open = aq_mpi_m_open,
    .open_pair = aq_mpi_m_open_pair,
    .close = aq_mpi_m_close_win,
    .stop = aq_mpi_m_stop,
    .put = aq_mpi_m_put,
    .get = aq_mpi_m_get,
    .flush = aq_mpi_m_flush,
    .rput = aq_mpi_m_rput,
    .rget = aq_mpi_m_rget,
    .rput_now = aq_mpi_m_rput_now,
    .rget_now = aq_mpi_m_rget_now,
    .fetch = aq_mpi_m_fetch,
    .send = aq_mpi_m_send,
    .recv = aq_mpi_m_recv,
    .test = aq_mpi_m_test,
};
