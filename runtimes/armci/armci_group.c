/*
 * armci_group.c - groups of processes: MPI communicators with tables of ranks.
 *
 * Only the members take part in making a group. A rank that is no member returns without waiting,
 * with a group that it is not in. MPI makes communicators in calls that wait. So that no member
 * waits in one while another member still needs it, for the answer to an accumulate for instance,
 * the members meet first, in a wait that makes progress for other ranks.
 *
 * Owns      the world group and the default group. The scopes of a group: armci_scope.c
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>

#include "armcix.h"

static ARMCI_Group world, default_group; /* the tables of the default are those of a group */

const ARMCI_Group *aq_armci_group(const ARMCI_Group *group)
{
    return group == NULL ? &world : group;
}

static void *table_of(int n)
{
    void *table = malloc((size_t)(n == 0 ? 1 : n) * sizeof(int));

    if (table == NULL)
        aq_armci_fatal("no memory for a group of %d", n);
    return table;
}

/* Fills a group over comm. members[i] is the world rank of member i. */
static void fill(ARMCI_Group *group, MPI_Comm comm, const int *members, int n)
{
    group->comm = comm;
    group->noncoll_pgroup_comm = MPI_COMM_NULL;
    group->grp_to_abs = table_of(n);
    group->abs_to_grp = table_of(aq_armci.nproc);
    for (int p = 0; p < aq_armci.nproc; p++)
        group->abs_to_grp[p] = -1;
    for (int i = 0; i < n; i++) {
        group->grp_to_abs[i] = members[i];
        group->abs_to_grp[members[i]] = i;
    }
    group->rank = group->abs_to_grp[aq_armci.me];
    group->size = n;
}

static void empty(ARMCI_Group *group)
{
    group->grp_to_abs = group->abs_to_grp = NULL;
    group->comm = MPI_COMM_NULL;
    group->rank = -1;
    group->size = 0;
}

static void release(ARMCI_Group *group)
{
    free(group->grp_to_abs);
    free(group->abs_to_grp);
    empty(group);
}

void aq_armci_groups_start(void)
{
    int *members = table_of(aq_armci.nproc);

    for (int p = 0; p < aq_armci.nproc; p++)
        members[p] = p;
    fill(&world, aq_armci.comm, members, aq_armci.nproc);
    aq_armci_scopes_add(&world);
    default_group = world;
    free(members);
}

void aq_armci_groups_end(void)
{
    aq_armci_scopes_end();
    release(&world);
    default_group = world;
}

/* Ends the job if a rank is not in the parent group, or is listed twice: members would wait for
 * each other. */
static void check_list(int n, const int *pid_list, const ARMCI_Group *parent)
{
    char *listed = calloc((size_t)parent->size, 1);

    if (listed == NULL)
        aq_armci_fatal("ARMCI_Group_create: no memory for %d ranks", parent->size);
    for (int i = 0; i < n; i++) {
        if (pid_list[i] < 0 || pid_list[i] >= parent->size)
            aq_armci_fatal("ARMCI_Group_create: rank %d is not in the parent group of %d",
                           pid_list[i], parent->size);
        if (listed[pid_list[i]])
            aq_armci_fatal("ARMCI_Group_create: rank %d is listed twice", pid_list[i]);
        listed[pid_list[i]] = 1;
    }
    free(listed);
}

void ARMCI_Group_create_child(int n, int *pid_list, ARMCI_Group *group_out,
                              ARMCI_Group *group_parent)
{
    const ARMCI_Group *parent = aq_armci_group(group_parent);
    MPI_Group all, some;
    MPI_Comm comm = MPI_COMM_NULL;
    int *members = table_of(n);

    check_list(n, pid_list, parent);
    for (int i = 0; i < n; i++)
        members[i] = parent->grp_to_abs[pid_list[i]];
    fill(group_out, MPI_COMM_NULL, members, n);
    free(members);
    if (group_out->rank < 0)
        return;
    aq_armci_mpi_barrier_of(group_out->grp_to_abs, n, group_out->rank);
    MPI_Comm_group(parent->comm, &all);
    MPI_Group_incl(all, n, pid_list, &some);
    MPI_Comm_create_group(parent->comm, some, 0, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    group_out->comm = comm;
    aq_armci_scopes_add(group_out);
}

void ARMCI_Group_create(int n, int *pid_list, ARMCI_Group *group_out)
{
    ARMCI_Group_create_child(n, pid_list, group_out, &default_group);
}

void ARMCI_Group_free(ARMCI_Group *group)
{
    if (group == NULL || group->grp_to_abs == NULL || group->comm == aq_armci.comm)
        return;
    if (group->grp_to_abs == default_group.grp_to_abs)
        default_group = world;
    if (group->comm == MPI_COMM_NULL) {
        release(group); /* the caller is no member */
        return;
    }
    aq_armci_scopes_remove(group); /* ARMCI_Finalize has done that for groups of an earlier start */
    empty(group);
}

int ARMCI_Group_rank(ARMCI_Group *group, int *rank)
{
    *rank = aq_armci_group(group)->rank;
    return *rank >= 0 ? 0 : FAIL;
}

void ARMCI_Group_size(ARMCI_Group *group, int *size)
{
    *size = aq_armci_group(group)->size;
}

void ARMCI_Group_set_default(ARMCI_Group *group)
{
    default_group = *aq_armci_group(group);
}

void ARMCI_Group_get_default(ARMCI_Group *group_out)
{
    *group_out = default_group;
}

void ARMCI_Group_get_world(ARMCI_Group *group_out)
{
    *group_out = world;
}

int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank)
{
    const ARMCI_Group *of = aq_armci_group(group);

    if (group_rank < 0 || group_rank >= of->size)
        aq_armci_fatal("ARMCI_Absolute_id: the group has no rank %d; its size is %d", group_rank,
                       of->size);
    return of->grp_to_abs[group_rank];
}

MPI_Comm armci_group_comm(ARMCI_Group *group)
{
    return aq_armci_group(group)->comm;
}

/* Fills a group over comm, whose members exchange their world ranks. */
static void from_comm(MPI_Comm comm, ARMCI_Group *group_out)
{
    int n, *members;

    MPI_Comm_size(comm, &n);
    members = table_of(n);
    aq_armci_mpi_allgather(&aq_armci.me, members, (int)sizeof(int), comm);
    fill(group_out, comm, members, n);
    aq_armci_scopes_add(group_out);
    free(members);
}

int ARMCIX_Group_split(ARMCI_Group *parent, int color, int key, ARMCI_Group *group_out)
{
    const ARMCI_Group *of = aq_armci_group(parent);
    MPI_Comm comm = MPI_COMM_NULL;

    if (of->rank >= 0) {
        aq_armci_mpi_barrier(of->comm);
        MPI_Comm_split(of->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm);
    }
    if (comm == MPI_COMM_NULL)
        fill(group_out, comm, NULL, 0);
    else
        from_comm(comm, group_out);
    return of->rank >= 0 ? 0 : FAIL;
}

int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *group_out)
{
    const ARMCI_Group *of = aq_armci_group(parent);
    MPI_Comm comm;

    if (of->rank < 0) {
        fill(group_out, MPI_COMM_NULL, NULL, 0);
        return FAIL;
    }
    aq_armci_mpi_barrier(of->comm);
    MPI_Comm_dup(of->comm, &comm);
    from_comm(comm, group_out);
    return 0;
}

void ARMCIX_Get_world_comm(MPI_Comm *comm_out)
{
    *comm_out = aq_armci.comm;
}

void ARMCIX_Progress(void)
{
    gasnet_AMPoll();
}
