/*
 * comex_impl.h - the internal header of libcomex: numbers of groups, ranks and requests, and what
 * they are in ARMCI.
 *
 * Threads   one thread of the program at a time
 * Names     the library calls PARMCI_x where it exists: a tool that defines ARMCI_x sees the
 *           program's own calls
 * Uses      armci.h and what it includes, nothing else of Aqueduct
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_COMEX_IMPL_H
#define AQ_COMEX_IMPL_H 1

#include <stdbool.h>
#include <stddef.h>

#include "armci.h"

#include "comex.h"

/* The result of an ARMCI call. */
static inline int aq_comex_code(int rc)
{
    return rc == 0 ? COMEX_SUCCESS : COMEX_FAILURE;
}

/* --- groups (comex_group.c) --- */

/* Stores the ARMCI group of a number; NULL: the world. Returns false if there is no such group. */
bool aq_comex_group(comex_group_t group, ARMCI_Group **group_out);
/* The same, and false if the caller is no member. */
bool aq_comex_own_group(comex_group_t group, ARMCI_Group **group_out);
/* Returns the world rank of member proc; -1 if there is no such group or member. */
int aq_comex_member(int proc, comex_group_t group);
/* Releases all groups; collective over the world. */
void aq_comex_groups_end(void);
/* Forgets all groups, whose job has ended. */
void aq_comex_groups_forget(void);

/* aq_comex_member(), except that in the world any number is returned: ARMCI checks it. */
static inline int aq_comex_rank(int proc, comex_group_t group)
{
    return group == COMEX_GROUP_WORLD ? proc : aq_comex_member(proc, group);
}

/* --- requests (comex_request.c) --- */

/* Makes a request for an operation with world rank proc, and returns the handle for it. request
 * NULL: returns NULL, the implicit handle. */
armci_hdl_t *aq_comex_request_open(comex_request_t *request, int proc);
/* Returns the code for the result of the operation; one that has failed keeps no request. */
int aq_comex_request_started(const comex_request_t *request, int rc);
/* Completes all operations, with a request or without. */
void aq_comex_requests_complete(void);
/* Forgets all requests, whose job has ended. */
void aq_comex_requests_forget(void);

#endif
