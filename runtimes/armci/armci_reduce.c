/*
 * armci_reduce.c - the reductions of the message layer, by those of MPI.
 *
 * Threads   the program's; collective over the scope or group
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    OTHER_INT,
    OTHER_LONG,
    OTHER_LONG_LONG,
    OTHER_FLOAT,
    OTHER_DOUBLE
}; /* ARMCI-MPI's numbers */

static MPI_Datatype datatype_of(int type, int *bytes_out)
{
    switch (type) {
    case ARMCI_INT:
    case OTHER_INT:
        *bytes_out = sizeof(int);
        return MPI_INT;
    case ARMCI_LONG:
    case OTHER_LONG:
        *bytes_out = sizeof(long);
        return MPI_LONG;
    case ARMCI_LONG_LONG:
    case OTHER_LONG_LONG:
        *bytes_out = sizeof(long long);
        return MPI_LONG_LONG;
    case ARMCI_FLOAT:
    case OTHER_FLOAT:
        *bytes_out = sizeof(float);
        return MPI_FLOAT;
    case ARMCI_DOUBLE:
    case OTHER_DOUBLE:
        *bytes_out = sizeof(double);
        return MPI_DOUBLE;
    default:
        aq_armci_fatal("the message layer has no type %d", type);
    }
}

struct operation {
    const char *word;
    MPI_Op op;
    bool for_integers; /* for these alone */
};

/* Returns the first row whose word op begins with. */
static const struct operation *operation_of(const char *op)
{
    static const struct operation rows[] = {
        { "+", MPI_SUM, false },    { "*", MPI_PROD, false },     { "max", MPI_MAX, false },
        { "min", MPI_MIN, false },  { "absmax", MPI_MAX, false }, { "absmin", MPI_MIN, false },
        { "or", MPI_BOR, true },    { "&&", MPI_LAND, true },     { "land", MPI_LAND, true },
        { "||", MPI_LOR, true },    { "lor", MPI_LOR, true },     { "&", MPI_BAND, true },
        { "band", MPI_BAND, true }, { "|", MPI_BOR, true },       { "bor", MPI_BOR, true }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strncmp(op, rows[i].word, strlen(rows[i].word)) == 0)
            return &rows[i];
    aq_armci_fatal("the message layer has no operation \"%s\"", op);
}

#define MAKE_ABSOLUTE(type)     \
    for (int i = 0; i < n; i++) \
        if (((type *)x)[i] < 0) \
            ((type *)x)[i] = -((type *)x)[i];

static void make_absolute(void *x, int n, MPI_Datatype datatype)
{
    if (datatype == MPI_INT) {
        MAKE_ABSOLUTE(int)
    } else if (datatype == MPI_LONG) {
        MAKE_ABSOLUTE(long)
    } else if (datatype == MPI_LONG_LONG) {
        MAKE_ABSOLUTE(long long)
    } else if (datatype == MPI_FLOAT) {
        MAKE_ABSOLUTE(float)
    } else {
        MAKE_ABSOLUTE(double)
    }
}

#define MAKE_TRUTH(type)        \
    for (int i = 0; i < n; i++) \
        ((type *)x)[i] = ((type *)x)[i] != 0;

/* Values of MPI's logical operations: one process has the same result as several. */
static void make_truth(void *x, int n, MPI_Datatype datatype)
{
    if (datatype == MPI_INT) {
        MAKE_TRUTH(int)
    } else if (datatype == MPI_LONG) {
        MAKE_TRUTH(long)
    } else {
        MAKE_TRUTH(long long)
    }
}

static void reduce(void *x, int n, const char *op, int type, MPI_Comm comm)
{
    const struct operation *operation;
    MPI_Request request;
    MPI_Datatype datatype;
    int bytes;

    if (comm == MPI_COMM_NULL || n <= 0)
        return;
    datatype = datatype_of(type, &bytes);
    operation = operation_of(op);
    if (operation->for_integers && (datatype == MPI_FLOAT || datatype == MPI_DOUBLE))
        aq_armci_fatal("the operation \"%s\" is for integers, not for float and double", op);
    if (operation->op == MPI_LAND || operation->op == MPI_LOR)
        make_truth(x, n, datatype);
    if (strncmp(op, "abs", 3) == 0)
        make_absolute(x, n, datatype);
    MPI_Iallreduce(MPI_IN_PLACE, x, n, datatype, operation->op, comm, &request);
    aq_armci_mpi_wait(&request);
}

void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type)
{
    reduce(x, n, op, type, aq_armci_scope_comm(scope, aq_armci_world_comm()));
}

/* Every rank gets the result; the interface asks for rank 0 only. */
void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type)
{
    armci_msg_gop_scope(scope, x, n, op, type);
}

void armci_msg_reduce(void *x, int n, char *op, int type)
{
    armci_msg_gop_scope(SCOPE_ALL, x, n, op, type);
}

void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group)
{
    reduce(x, n, op, type, aq_armci_scope_comm(scope, aq_armci_group(group)->comm));
}

#define GOP(prefix, type, word)                                                      \
    void armci_msg_##prefix##gop(type *x, int n, char *op)                           \
    {                                                                                \
        armci_msg_gop_scope(SCOPE_ALL, x, n, op, word);                              \
    }                                                                                \
    void armci_msg_group_##prefix##gop(type *x, int n, char *op, ARMCI_Group *group) \
    {                                                                                \
        armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, word, group);                 \
    }                                                                                \
    void armci_msg_clus_##prefix##gop(type *x, int n, char *op)                      \
    {                                                                                \
        armci_msg_gop_scope(SCOPE_NODE, x, n, op, word);                             \
    }

GOP(i, int, ARMCI_INT)
GOP(l, long, ARMCI_LONG)
GOP(ll, long long, ARMCI_LONG_LONG)
GOP(f, float, ARMCI_FLOAT)
GOP(d, double, ARMCI_DOUBLE)

/* --- the record with the smallest or largest first element --- */

struct bid {
    char value[8];
    int contributes;
};

/* Returns a negative number if a < b, 0 if they are equal, a positive number if a > b. */
static int compare(const char *a, const char *b, int type)
{
    int bytes;
    const MPI_Datatype datatype = datatype_of(type, &bytes);
    long long ia = 0, ib = 0;
    double da, db;
    float fa, fb;

    if (datatype == MPI_DOUBLE || datatype == MPI_FLOAT) {
        memcpy(&da, a, sizeof(da));
        memcpy(&db, b, sizeof(db));
        if (datatype == MPI_FLOAT) {
            memcpy(&fa, a, sizeof(fa));
            memcpy(&fb, b, sizeof(fb));
            da = (double)fa;
            db = (double)fb;
        }
        return (da > db) - (da < db);
    }
    memcpy(&ia, a, (size_t)bytes);
    memcpy(&ib, b, (size_t)bytes);
    if (bytes == (int)sizeof(int)) {
        ia = (int)ia;
        ib = (int)ib;
    }
    return (ia > ib) - (ia < ib);
}

static int winner(const struct bid *bids, int n, bool want_max, int type)
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        int order;

        if (!bids[i].contributes)
            continue;
        order = best < 0 ? 0 : compare(bids[i].value, bids[best].value, type);
        if (best < 0 || (want_max ? order > 0 : order < 0))
            best = i;
    }
    return best;
}

void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute)
{
    const MPI_Comm comm = aq_armci_scope_comm(scope, aq_armci_world_comm());
    struct bid own = { .contributes = contribute != 0 }, *bids;
    MPI_Request request;
    int size, best, bytes;

    if (comm == MPI_COMM_NULL)
        return;
    datatype_of(type, &bytes);
    memcpy(own.value, x, (size_t)(n < bytes ? n : bytes));
    MPI_Comm_size(comm, &size);
    bids = malloc((size_t)size * sizeof(*bids));
    if (bids == NULL)
        aq_armci_fatal("armci_msg_sel: no memory for %d ranks", size);
    aq_armci_mpi_allgather(&own, bids, (int)sizeof(own), comm);
    best = winner(bids, size, strncmp(op, "max", 3) == 0, type);
    free(bids);
    if (best < 0)
        return;
    MPI_Ibcast(x, n, MPI_BYTE, best, comm, &request);
    aq_armci_mpi_wait(&request);
}

void armci_msg_sel(void *x, int n, char *op, int type, int contribute)
{
    armci_msg_sel_scope(SCOPE_ALL, x, n, op, type, contribute);
}
