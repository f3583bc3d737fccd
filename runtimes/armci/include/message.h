/*
 * message.h - the message layer beside ARMCI: messages and collective operations over MPI, by world
 * rank.
 *
 * op is one of + * max min absmax absmin or && land || lor & band | bor; the last eight and "or"
 * are for integer types. Reductions work in place.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _MESSAGE_H_
#define _MESSAGE_H_ 1

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ARMCI_INT       -99
#define ARMCI_LONG      -101
#define ARMCI_LONG_LONG -102
#define ARMCI_FLOAT     -306
#define ARMCI_DOUBLE    -307

#define SCOPE_ALL     333 /* everybody */
#define SCOPE_NODE    337 /* the processes of the caller's domain */
#define SCOPE_MASTERS 339 /* the lowest rank of each domain */

void armci_msg_init(int *argc, char ***argv);
void armci_msg_init_comm(MPI_Comm comm);
void armci_msg_finalize(void);
int armci_msg_me(void);
int armci_msg_nproc(void);
void armci_msg_abort(int code);
double armci_timer(void);

void armci_msg_snd(int tag, void *buf, int len, int to);
void armci_msg_rcv(int tag, void *buf, int buflen, int *msglen, int from);
int armci_msg_rcvany(int tag, void *buf, int buflen, int *msglen);

void armci_msg_barrier(void);
void parmci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group *group);
void parmci_msg_group_barrier(ARMCI_Group *group);
void armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right);

void armci_msg_bcast(void *buf, int len, int root);
void armci_msg_brdcst(void *buf, int len, int root);
void armci_msg_bcast_scope(int scope, void *buf, int len, int root);
void armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group);

void armci_msg_reduce(void *x, int n, char *op, int type);
void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);
void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);
void armci_msg_igop(int *x, int n, char *op);
void armci_msg_lgop(long *x, int n, char *op);
void armci_msg_llgop(long long *x, int n, char *op);
void armci_msg_fgop(float *x, int n, char *op);
void armci_msg_dgop(double *x, int n, char *op);

void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group);
void armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_llgop(long long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);

void armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);

void armci_msg_clus_brdcst(void *buf, int len);
void armci_msg_clus_igop(int *x, int n, char *op);
void armci_msg_clus_fgop(float *x, int n, char *op);
void armci_msg_clus_lgop(long *x, int n, char *op);
void armci_msg_clus_llgop(long long *x, int n, char *op);
void armci_msg_clus_dgop(double *x, int n, char *op);
void armci_grp_clus_brdcst(void *buf, int len, int grp_master, int grp_clus_nproc,
                           ARMCI_Group *group);

void armci_exchange_address(void *ptr_arr[], int n);
void armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#endif
