/*
 * aq_spawn_mpi_m.c - the MPI provider's table of MPI functions.
 *
 * Compiled with mpi.h, as a part of the module of the mpi conduit.
 *
 * Owns      the job's communicator, and a request for a barrier on it
 * Threads   as aq_spawn_mpi_lib.h says
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include "other/spawn/mpi/module/aq_spawn_mpi_m.h"

#include <stdio.h>
#include <string.h>

#ifdef OPEN_MPI
#define AQ_SPAWN_MPI_M_KIND "Open MPI"
#define AQ_SPAWN_MPI_M_PMI  false
#else
#define AQ_SPAWN_MPI_M_KIND "MPICH or one of its relatives"
#define AQ_SPAWN_MPI_M_PMI  true
#endif

struct aq_spawn_mpi_m aq_spawn_mpi_m = { .comm = MPI_COMM_NULL };

static const char *aq_spawn_mpi_m_about(char *why, size_t len)
{
    static char
        text[16384]; /* room for what any MPI says, for it may be another than the one we know */
    int length;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    for (char *tab = strchr(text, '\t'); tab != NULL; tab = strchr(tab, '\t'))
        *tab = ' ';
    if ((strncmp(text, "Open MPI", 8) == 0) != AQ_SPAWN_MPI_M_PMI)
        return text;
    snprintf(
        why, len,
        "the program runs with %.60s, but the conduit's module was compiled "
        "for " AQ_SPAWN_MPI_M_KIND "; link the "
        "program with that, or let AQ_MODULE_DIR name a folder with an aq-mpi.so for the program's",
        text);
    return NULL;
}

static void aq_spawn_mpi_m_text(int error, char *text, size_t len)
{
    char whole[MPI_MAX_ERROR_STRING];
    int length;

    if (MPI_Error_string(error, whole, &length) == MPI_SUCCESS)
        snprintf(text, len, "%s", whole);
    else
        snprintf(text, len, "error %d of MPI", error);
}

static bool aq_spawn_mpi_m_is_initialized(void)
{
    int is;

    return MPI_Initialized(&is) == MPI_SUCCESS && is;
}

static bool aq_spawn_mpi_m_is_finalized(void)
{
    int is;

    return MPI_Finalized(&is) == MPI_SUCCESS && is;
}

static int aq_spawn_mpi_m_level_of(enum aq_mpi_level level)
{
    switch (level) {
    case AQ_MPI_SINGLE:
        return MPI_THREAD_SINGLE;
    case AQ_MPI_FUNNELED:
        return MPI_THREAD_FUNNELED;
    case AQ_MPI_SERIALIZED:
        return MPI_THREAD_SERIALIZED;
    default:
        return MPI_THREAD_MULTIPLE;
    }
}

static int aq_spawn_mpi_m_init(int *argc, char ***argv, enum aq_mpi_level wanted)
{
    int given;

    return MPI_Init_thread(argc, argv, aq_spawn_mpi_m_level_of(wanted), &given);
}

static enum aq_mpi_level aq_spawn_mpi_m_level(void)
{
    int given;

    if (MPI_Query_thread(&given) != MPI_SUCCESS || given < MPI_THREAD_FUNNELED)
        return AQ_MPI_SINGLE;
    if (given >= MPI_THREAD_MULTIPLE)
        return AQ_MPI_MULTIPLE;
    return given >= MPI_THREAD_SERIALIZED ? AQ_MPI_SERIALIZED : AQ_MPI_FUNNELED;
}

static bool aq_spawn_mpi_m_is_main_thread(void)
{
    int is;

    return MPI_Is_thread_main(&is) == MPI_SUCCESS && is;
}

static int aq_spawn_mpi_m_dup_of(MPI_Comm comm, MPI_Comm *comm_out)
{
    const int error = MPI_Comm_dup(comm, comm_out);

    /* errors are returned, and reported with rank and cause: MPI's default is to end the job */
    return error != MPI_SUCCESS ? error : MPI_Comm_set_errhandler(*comm_out, MPI_ERRORS_RETURN);
}

int aq_spawn_mpi_m_dup(MPI_Comm *comm_out)
{
    return aq_spawn_mpi_m_dup_of(aq_spawn_mpi_m.comm, comm_out);
}

static int aq_spawn_mpi_m_open(const void *comm)
{
    int error = aq_spawn_mpi_m_dup_of(comm != NULL ? *(const MPI_Comm *)comm : MPI_COMM_WORLD,
                                      &aq_spawn_mpi_m.comm);

    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(aq_spawn_mpi_m.comm, &aq_spawn_mpi_m.rank);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_size(aq_spawn_mpi_m.comm, &aq_spawn_mpi_m.size);
    return error;
}

static uint32_t aq_spawn_mpi_m_rank(void)
{
    return (uint32_t)aq_spawn_mpi_m.rank;
}

static uint32_t aq_spawn_mpi_m_size(void)
{
    return (uint32_t)aq_spawn_mpi_m.size;
}

static int aq_spawn_mpi_m_allgather(const void *own, size_t len, void *all)
{
    return MPI_Allgather(own, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, aq_spawn_mpi_m.comm);
}

static int aq_spawn_mpi_m_bcast(void *buf, size_t len, uint32_t root)
{
    return MPI_Bcast(buf, (int)len, MPI_BYTE, (int)root, aq_spawn_mpi_m.comm);
}

static int aq_spawn_mpi_m_barrier(void)
{
    return MPI_Barrier(aq_spawn_mpi_m.comm);
}

static MPI_Request aq_spawn_mpi_m_barrier_request = MPI_REQUEST_NULL;

static int aq_spawn_mpi_m_ibarrier(void)
{
    return MPI_Ibarrier(aq_spawn_mpi_m.comm, &aq_spawn_mpi_m_barrier_request);
}

static int aq_spawn_mpi_m_ibarrier_test(bool *all_out)
{
    int flag = 0, error = MPI_Test(&aq_spawn_mpi_m_barrier_request, &flag, MPI_STATUS_IGNORE);

    *all_out = flag;
    return error;
}

static void (*aq_spawn_mpi_m_at_end)(void);

static int aq_spawn_mpi_m_on_delete(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    aq_spawn_mpi_m_at_end();
    return MPI_SUCCESS;
}

/* MPI promises that attributes of MPI_COMM_SELF are deleted before anything else in MPI_Finalize.
 * */
static int aq_spawn_mpi_m_on_finalize(void (*fn)(void))
{
    int key, error;

    aq_spawn_mpi_m_at_end = fn;
    error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, aq_spawn_mpi_m_on_delete, &key, NULL);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    return error == MPI_SUCCESS ? MPI_Comm_free_keyval(&key)
                                : error; /* it lives as long as the attribute */
}

static void aq_spawn_mpi_m_close(void)
{
    if (aq_spawn_mpi_m.comm != MPI_COMM_NULL)
        MPI_Comm_free(&aq_spawn_mpi_m.comm);
}

static int aq_spawn_mpi_m_finalize(void)
{
    return MPI_Finalize();
}

static void aq_spawn_mpi_m_abort(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

const struct aq_spawn_mpi_lib aq_spawn_mpi_m_lib = {
    .about = aq_spawn_mpi_m_about,
    .text = aq_spawn_mpi_m_text,
    .is_initialized = aq_spawn_mpi_m_is_initialized,
    .is_finalized = aq_spawn_mpi_m_is_finalized,
    .init = aq_spawn_mpi_m_init,
    .level = aq_spawn_mpi_m_level,
    .is_main_thread = aq_spawn_mpi_m_is_main_thread,
    .open = aq_spawn_mpi_m_open,
    .rank = aq_spawn_mpi_m_rank,
    .size = aq_spawn_mpi_m_size,
    .allgather = aq_spawn_mpi_m_allgather,
    .bcast = aq_spawn_mpi_m_bcast,
    .barrier = aq_spawn_mpi_m_barrier,
    .ibarrier = aq_spawn_mpi_m_ibarrier,
    .ibarrier_test = aq_spawn_mpi_m_ibarrier_test,
    .on_finalize = aq_spawn_mpi_m_on_finalize,
    .close = aq_spawn_mpi_m_close,
    .finalize = aq_spawn_mpi_m_finalize,
    .abort = aq_spawn_mpi_m_abort,
    .code = (const void *)PMPI_Finalize, /* not that of a tool in between */
    .pmi = AQ_SPAWN_MPI_M_PMI,
};
