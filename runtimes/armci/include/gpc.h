/*
 * gpc.h - global procedure calls: a function of the program runs at another process.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef __GPCDEF
#define __GPCDEF 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPC_INIT    1
#define GPC_PROBE   2
#define GPC_WAIT    3
#define GPC_DONE    4
#define GPC_PENDING 5

typedef struct {
    int proc;
    armci_hdl_t ahdl;
} gpc_hdl_t;

/*
 * What a registered function looks like. rtype is GPC_INIT at its first call; it returns GPC_DONE,
 * or GPC_PENDING and is called again with GPC_PROBE. It stores how much of rhdr and rdata it has
 * filled in *rhsize and *rdsize.
 */
typedef int (*aq_gpc_fn_t)(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr,
                           int rhlen, int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype);

/* What programs register: without parameter types, which C up to C17 leaves open. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int (*aq_gpc_any_t)();
#pragma GCC diagnostic pop

int ARMCI_Gpc_register(aq_gpc_any_t func);
void ARMCI_Gpc_release(int handle);
int ARMCI_Gpc_exec(int handle, int proc, void *hdr, int hlen, void *data, int dlen, void *rhdr,
                   int rhlen, void *rdata, int rdlen, gpc_hdl_t *nbh);
void ARMCI_Gpc_init_handle(gpc_hdl_t *nbh);
void ARMCI_Gpc_wait(gpc_hdl_t *nbh);
int ARMCI_Gpc_test(gpc_hdl_t *nbh);
void *ARMCI_Gpc_translate(void *ptr, int proc, int from);
void ARMCI_Gpc_lock(int proc);
int ARMCI_Gpc_trylock(int proc);
void ARMCI_Gpc_unlock(int proc);
int ARMCI_Get_gpc_hlen(void);
int ARMCI_Get_gpc_dlen(void);
int ARMCI_Gpc_get_hlen(void);
int ARMCI_Gpc_get_dlen(void);

#ifdef __cplusplus
}
#endif

#endif
