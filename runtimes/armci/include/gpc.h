/*
 * gpc.h - global procedure calls: a function of the program runs at another rank. Common arguments
 * and rules are those of armci.h.
 *
 * Source: the ARMCI interface, global procedure calls. Test: tests/armci/procedures.c.
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

/* A handle of a call; its contents are the library's. */
typedef struct {
    int proc;
    armci_hdl_t ahdl;
} gpc_hdl_t;

/**
 * aq_gpc_fn_t - the type of a registered function.
 * to, from         the rank that runs the function, the rank that called ARMCI_Gpc_exec
 * hdr, hlen, data, dlen  copies of the caller's, bytes; aligned for any type
 * rhdr, rhlen, rdata, rdlen  space for the result, bytes; sent back as a whole
 * rhsize, rdsize   the function stores how many bytes it has filled
 * rtype            GPC_INIT at the first call, GPC_PROBE at further ones
 * Context          a thread of the library, with all signals blocked, beside the program's. The
 *                  function may work on the memory of its process and call ARMCI_Gpc_translate(),
 *                  and ARMCI_Gpc_lock, _trylock and _unlock for rank `to`; nothing else of ARMCI
 * Returns          GPC_DONE; GPC_PENDING to be called again after others have run, and then the
 *                  function holds no lock of ARMCI_Gpc_lock
 */
typedef int (*aq_gpc_fn_t)(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr,
                           int rhlen, int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype);

/* The type that programs register: without parameter types, which C up to C17 leaves open. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int (*aq_gpc_any_t)();
#pragma GCC diagnostic pop

/**
 * ARMCI_Gpc_register, ARMCI_Gpc_release - give a function a handle; take it back.
 * func      the same function on all ranks, of type aq_gpc_fn_t
 * Context   collective over the world; to release waits for the calls of all ranks
 * Returns   the handle: -100, -101, ... down to 32 of them. More end the job, and so does the mpi
 *           conduit without MPI_THREAD_MULTIPLE
 */
int ARMCI_Gpc_register(aq_gpc_any_t func);
void ARMCI_Gpc_release(int handle);

/**
 * ARMCI_Gpc_exec - run the function of a handle at rank proc.
 * hdr, hlen, data, dlen      what the function gets; 0 <= bytes < 65536 each
 * rhdr, rhlen, rdata, rdlen  where its result goes; 0 <= bytes < 65536 each. data and rdata may
 *                            be the same
 * nbh       NULL: the call returns with the result. Else it returns at once, and ARMCI_Gpc_wait or
 *           a successful ARMCI_Gpc_test of *nbh completes it; hdr and data may be reused at return.
 *           ARMCI_Finalize completes the calls that are left, and stores no results of them
 * Returns   0; FAIL with a message: no such handle or rank, a length out of range, a buffer that is
 *           NULL. rhlen + rdlen of 0 ends the job
 */
int ARMCI_Gpc_exec(int handle, int proc, void *hdr, int hlen, void *data, int dlen, void *rhdr,
                   int rhlen, void *rdata, int rdlen, gpc_hdl_t *nbh);

/** ARMCI_Gpc_init_handle - a handle that names no call, and so is complete. */
void ARMCI_Gpc_init_handle(gpc_hdl_t *nbh);

/** ARMCI_Gpc_wait - complete the call of a handle: its result is in rhdr and rdata. */
void ARMCI_Gpc_wait(gpc_hdl_t *nbh);

/** ARMCI_Gpc_test - the same without waiting. Returns 0 if the call is complete, 1 if not. */
int ARMCI_Gpc_test(gpc_hdl_t *nbh);

/** ARMCI_Gpc_translate - in a function that runs at proc, for a call of rank from: returns ptr,
 * which has to be an address as rank proc itself uses it. */
void *ARMCI_Gpc_translate(void *ptr, int proc, int from);

/** ARMCI_Gpc_lock, _trylock, _unlock - a mutex of rank proc, one for each rank. trylock returns 1
 * if the caller has it now, 0 if not. No two functions run at once at a rank; one that locks
 * it excludes the ranks' programs, too. A rank that does not exist ends the job, and so does one
 * that is not the function's own in a function. */
void ARMCI_Gpc_lock(int proc);
int ARMCI_Gpc_trylock(int proc);
void ARMCI_Gpc_unlock(int proc);

/** ARMCI_Get_gpc_hlen, _dlen, ARMCI_Gpc_get_hlen, _dlen - the limit of lengths: 65536 bytes. */
int ARMCI_Get_gpc_hlen(void);
int ARMCI_Get_gpc_dlen(void);
int ARMCI_Gpc_get_hlen(void);
int ARMCI_Gpc_get_dlen(void);

#ifdef __cplusplus
}
#endif

#endif
