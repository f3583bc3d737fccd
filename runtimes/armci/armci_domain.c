/*
 * armci_domain.c - domains: the sets of ranks that share memory.
 *
 * A domain is a neighborhood of Aqueduct, if the ranks of every neighborhood are consecutive. If
 * they are not, each rank is a domain, since programs rely on consecutive ranks. Members of a
 * domain may load and store each other's memory at the addresses that ARMCI_Malloc returns.
 *
 * Owns      the tables of domains, between ARMCI_Init and ARMCI_Finalize
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>

static int *domain_of; /* by rank */
static int *first_of;  /* by domain; first_of[ndomains] is the number of ranks */
static int ndomains;

/* Numbers the domains in the order of their ranks. False: the ranks of a neighborhood are not
 * consecutive. */
static bool number_domains(const gasnet_nodeinfo_t *info)
{
    bool *seen = calloc((size_t)aq_armci.nproc, sizeof(bool));
    bool follow = seen != NULL;

    ndomains = 0;
    for (int p = 0; p < aq_armci.nproc && follow; p++) {
        if (p == 0 || info[p].supernode != info[p - 1].supernode) {
            follow = !seen[info[p].supernode];
            seen[info[p].supernode] = true;
            first_of[ndomains++] = p;
        }
        domain_of[p] = ndomains - 1;
    }
    free(seen);
    return follow;
}

void aq_armci_domains_start(void)
{
    const size_t n = (size_t)aq_armci.nproc;
    gasnet_nodeinfo_t *info = malloc(n * sizeof(*info));

    domain_of = malloc(n * sizeof(int));
    first_of = malloc((n + 1) * sizeof(int));
    if (info == NULL || domain_of == NULL || first_of == NULL)
        aq_armci_fatal("no memory for the domains of %d ranks", aq_armci.nproc);
    gasnet_getNodeInfo(info, aq_armci.nproc);
    if (!number_domains(info)) {
        ndomains = aq_armci.nproc;
        for (int p = 0; p < aq_armci.nproc; p++)
            domain_of[p] = first_of[p] = p;
    }
    first_of[ndomains] = aq_armci.nproc;
    free(info);
}

void aq_armci_domains_end(void)
{
    free(domain_of);
    free(first_of);
    domain_of = first_of = NULL;
}

static int checked(const char *call, int id)
{
    aq_armci_check_proc(call, 0);
    if (id >= ndomains)
        aq_armci_fatal("%s: there is no domain %d; there are %d", call, id, ndomains);
    return id < 0 ? domain_of[aq_armci.me] : id;
}

int armci_domain_nprocs(armci_domain_t domain, int id)
{
    const int of = checked("armci_domain_nprocs", id);

    (void)domain;
    return first_of[of + 1] - first_of[of];
}

int armci_domain_count(armci_domain_t domain)
{
    (void)domain;
    return ndomains;
}

int armci_domain_id(armci_domain_t domain, int proc)
{
    (void)domain;
    aq_armci_check_proc("armci_domain_id", proc);
    return domain_of[proc];
}

int armci_domain_my_id(armci_domain_t domain)
{
    return armci_domain_id(domain, aq_armci.me);
}

int armci_domain_glob_proc_id(armci_domain_t domain, int id, int local)
{
    const int of = checked("armci_domain_glob_proc_id", id);

    (void)domain;
    if (local < 0 || local >= first_of[of + 1] - first_of[of])
        aq_armci_fatal("armci_domain_glob_proc_id: domain %d has no rank %d; it has %d", of, local,
                       first_of[of + 1] - first_of[of]);
    return first_of[of] + local;
}

int armci_domain_same_id(armci_domain_t domain, int proc)
{
    return armci_domain_id(domain, proc) == armci_domain_my_id(domain);
}

int ARMCI_Same_node(int proc)
{
    return armci_domain_same_id(ARMCI_DOMAIN_SMP, proc);
}

int armci_sameclusnode(int proc)
{
    return ARMCI_Same_node(proc);
}

int ARMCI_Uses_shm(void)
{
    return ndomains < aq_armci.nproc;
}

int ARMCI_Uses_shm_grp(ARMCI_Group *group)
{
    (void)group;
    return ARMCI_Uses_shm();
}
