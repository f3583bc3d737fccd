/*
 * armcix.h - extensions that came with ARMCI-MPI: groups by colour, sets of mutexes, progress; and
 * the settings and counters of this library. Common arguments and rules are those of armci.h.
 *
 * Source: ARMCI-MPI's interface; ARMCIX_Counter and ARMCIX_Set: docs/armci.md. Tests: tests/armci.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _ARMCIX_H_
#define _ARMCIX_H_ 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ARMCIX_Group_split, ARMCIX_Group_dup - make groups of the members of parent (NULL: the world).
 * color     members with the same color get one group; negative: none, and the caller is in an
 *           empty group
 * key       orders the ranks in the new group; equal keys: as in parent
 * Context   collective over parent
 * Returns   0; FAIL and an empty group to a caller that is no member of parent
 */
int ARMCIX_Group_split(ARMCI_Group *parent, int color, int key, ARMCI_Group *group_out);
int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *group_out);

typedef struct armcix_mutex_hdl_s *armcix_mutex_hdl_t;

/**
 * ARMCIX_Create_mutexes_hdl, ARMCIX_Destroy_mutexes_hdl - make and free a set of mutexes.
 * count     mutexes that the caller hosts, 0 or more; may differ between members
 * group     NULL: the world
 * Context   collective over the group
 * Returns   the set; NULL on every member if one has no memory or a negative count, and for a
 *           caller that is no member. Destroy: 0, FAIL for NULL
 */
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *group);
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t set);

/**
 * ARMCIX_Lock_hdl, ARMCIX_Trylock_hdl, ARMCIX_Unlock_hdl - as ARMCI_Lock and ARMCI_Unlock, for a
 * set.
 * proc      a world rank
 * Returns   Trylock: 0 if the caller has the mutex now, another value if not
 * Errors    a rank or a mutex that does not exist ends the job
 */
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);

/** ARMCIX_Counter - a counter of the calling rank since ARMCI_Init, by its name in docs/armci.md;
 * -1 if no counter has that name. */
long ARMCIX_Counter(const char *name);

/** ARMCIX_Set - change a setting AQ_ARMCI_... of docs/armci.md for the calling rank. Returns 0; -1
 * if no setting has that name, or the setting does not have that value. */
int ARMCIX_Set(const char *name, const char *value);

/** ARMCIX_Progress - serve what other ranks ask of this rank, without waiting. */
void ARMCIX_Progress(void);

/** ARMCIX_Get_world_comm - the communicator of ARMCI's world, which the program may use and may not
 * free. */
void ARMCIX_Get_world_comm(MPI_Comm *comm_out);

#ifdef __cplusplus
}
#endif

#endif
