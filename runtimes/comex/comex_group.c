/*
 * comex_group.c - groups: numbers that stand for ARMCI groups.
 *
 * A number is not used twice before comex_finalize, so that a released one is noticed. All members
 * make their common groups in the same order: releasing them by number is in one order everywhere.
 *
 * Owns      the table of groups
 * Threads   the program's
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

static ARMCI_Group **table; /* NULL: released. Entry 0, of the world, is not used */
static int ngroups = 1, capacity;

bool aq_comex_group(comex_group_t group, ARMCI_Group **group_out)
{
    if (group == COMEX_GROUP_WORLD) {
        *group_out = NULL;
        return true;
    }
    if (group < 0 || group >= ngroups || table[group] == NULL)
        return false;
    *group_out = table[group];
    return true;
}

bool aq_comex_own_group(comex_group_t group, ARMCI_Group **group_out)
{
    int rank;

    return aq_comex_group(group, group_out) && ARMCI_Group_rank(*group_out, &rank) == 0;
}

int aq_comex_member(int proc, comex_group_t group)
{
    ARMCI_Group *of;
    int size;

    if (!aq_comex_group(group, &of))
        return -1;
    ARMCI_Group_size(of, &size);
    if (proc < 0 || proc >= size)
        return -1;
    return of == NULL ? proc : of->grp_to_abs[proc];
}

static void *no_memory(void)
{
    ARMCI_Error("comex_group_create: no memory", 1);
    abort();
}

/* Returns a new number, with a group to be filled. */
static comex_group_t add_group(void)
{
    if (ngroups >= capacity) {
        const int more = capacity == 0 ? 64 : 2 * capacity;
        ARMCI_Group **longer = realloc(table, (size_t)more * sizeof(*table));

        table = longer != NULL ? longer : no_memory();
        capacity = more;
    }
    table[ngroups] = calloc(1, sizeof(ARMCI_Group));
    if (table[ngroups] == NULL)
        no_memory();
    return ngroups++;
}

static void release(comex_group_t group)
{
    ARMCI_Group_free(table[group]);
    free(table[group]);
    table[group] = NULL;
}

void aq_comex_groups_end(void)
{
    for (comex_group_t group = 1; group < ngroups; group++)
        if (table[group] != NULL)
            release(group);
    aq_comex_groups_forget();
}

void aq_comex_groups_forget(void)
{
    for (comex_group_t group = 1; group < ngroups; group++)
        free(table[group]);
    free(table);
    table = NULL;
    ngroups = 1;
    capacity = 0;
}

/* --- calls --- */

static bool are_members(int n, const int *ranks, comex_group_t group)
{
    for (int i = 0; i < n; i++)
        if (aq_comex_member(ranks[i], group) < 0)
            return false;
    return n >= 0;
}

int comex_group_create(int n, int *pid_list, comex_group_t parent, comex_group_t *group_out)
{
    ARMCI_Group *of;

    *group_out = COMEX_GROUP_NULL;
    if (!PARMCI_Initialized() || !aq_comex_group(parent, &of) || !are_members(n, pid_list, parent))
        return COMEX_FAILURE;
    *group_out = add_group();
    ARMCI_Group_create_child(n, pid_list, table[*group_out], of);
    return COMEX_SUCCESS;
}

int comex_group_free(comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    if (of != NULL)
        release(group);
    return COMEX_SUCCESS;
}

int comex_group_rank(comex_group_t group, int *rank)
{
    ARMCI_Group *of;

    *rank = -1;
    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    return aq_comex_code(ARMCI_Group_rank(of, rank));
}

int comex_group_size(comex_group_t group, int *size)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    ARMCI_Group_size(of, size);
    return COMEX_SUCCESS;
}

int comex_group_comm(comex_group_t group, MPI_Comm *comm)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    *comm = armci_group_comm(of);
    return COMEX_SUCCESS;
}

int comex_group_translate_ranks(int n, comex_group_t group_from, int *ranks_from,
                                comex_group_t group_to, int *ranks_to)
{
    ARMCI_Group *to;

    if (!aq_comex_group(group_to, &to) || !are_members(n, ranks_from, group_from))
        return COMEX_FAILURE;
    for (int i = 0; i < n; i++) {
        const int world_rank = aq_comex_member(ranks_from[i], group_from);

        ranks_to[i] = to == NULL ? world_rank : to->abs_to_grp[world_rank];
    }
    return COMEX_SUCCESS;
}

int comex_group_translate_world(comex_group_t group, int group_rank, int *world_rank)
{
    const int rank = aq_comex_member(group_rank, group);

    if (rank < 0)
        return COMEX_FAILURE;
    *world_rank = rank;
    return COMEX_SUCCESS;
}
