/*
 * message.h - the message layer beside ARMCI: messages and collective operations over MPI.
 *
 * Common arguments and rules; the docstrings below name what differs:
 *
 *   len, buflen  bytes
 *   to, from, root  world ranks; before ARMCI_Init those of MPI_COMM_WORLD
 *   scope     SCOPE_ALL, SCOPE_NODE or SCOPE_MASTERS, of the world or within a group; a rank
 *             outside of the scope returns at once. Before ARMCI_Init only SCOPE_ALL has ranks
 *   x, n      n elements; reductions work in place, and every rank of the scope has the result
 *   op        one of + * max min absmax absmin or && land || lor & band | bor; the last eight and
 *             "or" are for integer types. absmax and absmin give the absolute value. Another word
 *             ends the job
 *   type      ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE; another number
 *             ends the job
 *   group     NULL: the world
 *   Context   MPI is started; one thread of the program at a time. Collective calls are made by all
 *             ranks of the scope or group, in the same order. While a call waits, the caller serves
 *             other ranks
 *   Errors    MPI ends the job, as its error handler says
 *
 * Source: the ARMCI interface, message layer. Tests: tests/armci.
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
#define SCOPE_MASTERS 339 /* the first rank of each domain */

/* --- start and end --- */

/** armci_msg_init, armci_msg_init_comm - start MPI, if it has not been started; comm is not used. A
 * program may define its own armci_msg_init. */
void armci_msg_init(int *argc, char ***argv);
void armci_msg_init_comm(MPI_Comm comm);

/** armci_msg_finalize - end MPI, if it runs. A program may define its own. Collective. */
void armci_msg_finalize(void);

/** armci_msg_me, armci_msg_nproc - the caller's rank, the number of ranks. */
int armci_msg_me(void);
int armci_msg_nproc(void);

/** armci_msg_abort - end the job with exit code `code`; 1 for a code that a status of eight bits
 * holds as 0. Any time. After MPI_Finalize only the caller ends. */
void armci_msg_abort(int code);

/** armci_timer - seconds since some moment in the past. */
double armci_timer(void);

/* --- messages --- */

/** armci_msg_snd - send len bytes; returns when buf may be reused. A message to oneself is
 * stored. */
void armci_msg_snd(int tag, void *buf, int len, int to);

/**
 * armci_msg_rcv, armci_msg_rcvany - receive a message with this tag from one rank, from any rank.
 * msglen    receives its length in bytes; may be NULL
 * Returns   armci_msg_rcvany: the sender's rank
 * Errors    a message longer than buflen, and a receive from oneself of a message that has not been
 *           sent, end the job
 */
void armci_msg_rcv(int tag, void *buf, int buflen, int *msglen, int from);
int armci_msg_rcvany(int tag, void *buf, int buflen, int *msglen);

/* --- barriers, trees --- */

/** armci_msg_barrier, armci_msg_group_barrier - wait for all ranks of the world, of a group. They
 * complete no transfer: ARMCI_Barrier does. A caller outside of the group returns at once. */
void armci_msg_barrier(void);
void parmci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group *group);
void parmci_msg_group_barrier(ARMCI_Group *group);

/** armci_msg_bintree - the caller's neighbours in a binary tree over the ranks of a scope: world
 * ranks, -1 for none. *Root is 0 for a caller outside of the scope. */
void armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right);

/* --- broadcasts and reductions; all are collective --- */

/**
 * armci_msg_bcast, armci_msg_brdcst, armci_msg_bcast_scope, armci_msg_group_bcast_scope - copy len
 * bytes from the root's buf to the buf of all ranks of the world, the scope, the group's scope.
 * root      a world rank. A root outside of the scope stands for the scope's first rank; a root
 *           outside of the group ends the job
 */
void armci_msg_bcast(void *buf, int len, int root);
void armci_msg_brdcst(void *buf, int len, int root);
void armci_msg_bcast_scope(int scope, void *buf, int len, int root);
void armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group);

/** armci_msg_reduce, armci_msg_reduce_scope, armci_msg_gop_scope, armci_msg_?gop - reduce over the
 * world, a scope; the letter names the type: i l ll f d. */
void armci_msg_reduce(void *x, int n, char *op, int type);
void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);
void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);
void armci_msg_igop(int *x, int n, char *op);
void armci_msg_lgop(long *x, int n, char *op);
void armci_msg_llgop(long long *x, int n, char *op);
void armci_msg_fgop(float *x, int n, char *op);
void armci_msg_dgop(double *x, int n, char *op);

/** armci_msg_group_gop_scope, armci_msg_group_?gop - reduce over a scope of a group; all of it. */
void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group);
void armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_llgop(long long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);

/**
 * armci_msg_sel, armci_msg_sel_scope - every rank gets the n bytes of the rank whose first element
 * is the largest (op begins with "max") or the smallest (another op).
 * x, n      a record that begins with an element of type; bytes
 * contribute  0: the caller's record does not take part. If none does, nothing changes
 */
void armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);

/** armci_msg_clus_brdcst, armci_msg_clus_?gop - broadcast from the first rank of the caller's
 * domain, reduce over its ranks. */
void armci_msg_clus_brdcst(void *buf, int len);
void armci_msg_clus_igop(int *x, int n, char *op);
void armci_msg_clus_fgop(float *x, int n, char *op);
void armci_msg_clus_lgop(long *x, int n, char *op);
void armci_msg_clus_llgop(long long *x, int n, char *op);
void armci_msg_clus_dgop(double *x, int n, char *op);

/** armci_grp_clus_brdcst - broadcast over the group's ranks in the caller's domain, from world rank
 * grp_master if it is one of them, else from the first; grp_clus_nproc is not used. */
void armci_grp_clus_brdcst(void *buf, int len, int grp_master, int grp_clus_nproc,
                           ARMCI_Group *group);

/** armci_exchange_address, armci_exchange_address_grp - add up n addresses by place, over the
 * world, a group: where one rank has an address and the others NULL, all have it then. */
void armci_exchange_address(void *ptr_arr[], int n);
void armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#endif
