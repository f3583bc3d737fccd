/*
 * armci_scope.c - the communicators of scopes: the ranks of the world, or of a group, that are in
 * the caller's domain; the first ranks of all domains.
 *
 * They are made together with the group, since a rank outside of a scope does not take part in a
 * call on it. If all ranks of the group are in one domain, or each is in a domain of its own, no
 * communicator is made. Members come straight from the making of the group's communicator, so that
 * none of them waits for anything else while others are in MPI's calls.
 *
 * Owns      an entry for the world and for each group that the caller is a member of, by the
 *           group's communicator, which it frees together with the group's tables: copies of a
 *           group share them
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>

struct scopes {
    struct scopes *next;
    MPI_Comm of;     /* the group's */
    int *grp_to_abs; /* the group's, and its own unless it is the world's */
    int *abs_to_grp;
    MPI_Comm node;    /* those of the caller's domain */
    MPI_Comm masters; /* the first of each domain; MPI_COMM_NULL: the caller is none */
    bool is_split;    /* node and masters are communicators of their own */
};

static struct scopes *list;

/* Returns the number of domains that the members are in. *first_out: the caller is the first of its
 * domain. */
static int count_domains(const int *members, int n, bool *first_out)
{
    bool *seen = calloc((size_t)armci_domain_count(ARMCI_DOMAIN_SMP), sizeof(bool));
    int domains = 0;

    if (seen == NULL)
        aq_armci_fatal("no memory for the domains of a group of %d", n);
    for (int i = 0; i < n; i++) {
        const int domain = armci_domain_id(ARMCI_DOMAIN_SMP, members[i]);

        if (members[i] == aq_armci.me)
            *first_out = !seen[domain];
        domains += !seen[domain];
        seen[domain] = true;
    }
    free(seen);
    return domains;
}

void aq_armci_scopes_add(const ARMCI_Group *group)
{
    const MPI_Comm comm = group->comm;
    const int n = group->size;
    struct scopes *scopes = calloc(1, sizeof(*scopes));
    bool is_first = false;
    int domains;

    if (scopes == NULL)
        aq_armci_fatal("no memory for the scopes of a group of %d", n);
    domains = count_domains(group->grp_to_abs, n, &is_first);
    scopes->of = comm;
    scopes->grp_to_abs = group->grp_to_abs;
    scopes->abs_to_grp = group->abs_to_grp;
    if (domains == 1) {
        scopes->node = comm;
        scopes->masters = is_first ? MPI_COMM_SELF : MPI_COMM_NULL;
    } else if (domains == n) {
        scopes->node = MPI_COMM_SELF;
        scopes->masters = comm;
    } else {
        scopes->is_split = true;
        MPI_Comm_split(comm, armci_domain_my_id(ARMCI_DOMAIN_SMP), 0, &scopes->node);
        MPI_Comm_split(comm, is_first ? 0 : MPI_UNDEFINED, 0, &scopes->masters);
    }
    scopes->next = list;
    list = scopes;
}

static void free_scopes(struct scopes *scopes)
{
    if (scopes->of != aq_armci.comm) {
        MPI_Comm_free(&scopes->of);
        free(scopes->grp_to_abs);
        free(scopes->abs_to_grp);
    }
    if (scopes->is_split) {
        MPI_Comm_free(&scopes->node);
        if (scopes->masters != MPI_COMM_NULL)
            MPI_Comm_free(&scopes->masters);
    }
    free(scopes);
}

/* MPI may give a communicator the handle of one that was freed: the table tells groups apart. */
void aq_armci_scopes_remove(const ARMCI_Group *group)
{
    for (struct scopes **link = &list; *link != NULL; link = &(*link)->next) {
        struct scopes *scopes = *link;

        if (scopes->of == group->comm && scopes->grp_to_abs == group->grp_to_abs) {
            *link = scopes->next;
            free_scopes(scopes);
            return;
        }
    }
}

void aq_armci_scopes_end(void)
{
    while (list != NULL) {
        struct scopes *scopes = list;

        list = scopes->next;
        free_scopes(scopes);
    }
}

MPI_Comm aq_armci_scope_comm(int scope, MPI_Comm comm)
{
    const struct scopes *scopes = list;

    while (scopes != NULL && scopes->of != comm)
        scopes = scopes->next;
    switch (scope) {
    case SCOPE_NODE:
    case 1: /* ARMCI-MPI's number; as below */
        return scopes == NULL ? MPI_COMM_NULL : scopes->node;
    case SCOPE_MASTERS:
    case 2:
        return scopes == NULL ? MPI_COMM_NULL : scopes->masters;
    default:
        return comm;
    }
}
