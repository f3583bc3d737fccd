/*
 * armcix.h - extensions that came with ARMCI-MPI: groups by colour, sets of mutexes, progress.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _ARMCIX_H_
#define _ARMCIX_H_ 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

int ARMCIX_Group_split(ARMCI_Group *parent, int color, int key, ARMCI_Group *group_out);
int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *group_out);

/* A set of mutexes; proc is a world rank. Trylock returns 0 if it has got the mutex. */
typedef struct armcix_mutex_hdl_s *armcix_mutex_hdl_t;
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *group);
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t set);
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t set, int mutex, int proc);

/* One of the counters of docs/armci.md, from ARMCI_Init on; -1 if there is none of that name. */
long ARMCIX_Counter(const char *name);
/* Changes a setting AQ_ARMCI_... of docs/armci.md for this rank; -1 if there is no such name or
 * value. */
int ARMCIX_Set(const char *name, const char *value);

void ARMCIX_Progress(void);
void ARMCIX_Get_world_comm(MPI_Comm *comm_out);

#ifdef __cplusplus
}
#endif

#endif
