/*
 * comex.h - the ComEx interface: one-sided transfers, accumulate, atomics, memory and groups, whose
 * ranks are numbered in the group that each call names.
 *
 * libcomex is a layer over libarmci (armci.h), so that programs of ComEx run on it. A call does
 * what the ARMCI call of the same name does, and promises the same of progress, order and
 * completion. The docstrings say what differs. Programs may use both interfaces.
 *
 * Common arguments and rules:
 *
 *   group     COMEX_GROUP_WORLD, or a number of comex_group_create
 *   proc      a rank IN the group, 0 <= proc < size of the group
 *   remote address (dst of a put or accumulate, src of a get)  an address in the memory of proc, as
 *             comex_malloc gave it to the caller. The range lies in one allocation
 *   local address  any memory of the caller, any alignment
 *   bytes, count[0], strides  bytes
 *   request   of a non-blocking call: it is written, and stands for this one operation; NULL: only
 *             comex_wait_all, comex_wait_proc, fences and barriers complete the operation
 *   Context   between comex_init and comex_finalize; one thread of the program at a time
 *   Returns   COMEX_SUCCESS; COMEX_FAILURE if there is no such group or no such rank in it, and for
 *             arguments that the ARMCI call refuses with a FAIL code. Errors that end the job in
 *             ARMCI do so here
 *
 * "Collective" calls are made by every member of the group, in the same order.
 *
 * Source: the ComEx interface as Global Arrays 5.8 and 5.9 publish it; names, types and values
 * only. docs/armci.md has a section. Tests: tests/comex.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef COMEX_H
#define COMEX_H 1

#include <mpi.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- types and constants --- */

/* One descriptor of the vector format: count segments of the same length. */
typedef struct {
    void **src;
    void **dst;
    int count; /* number of segments, at least 1 */
    int bytes; /* of one segment, at least 1 */
} comex_giov_t;

typedef int comex_request_t;
typedef int comex_group_t;

#define COMEX_GROUP_WORLD 0
#define COMEX_GROUP_NULL  -1

#define COMEX_SUCCESS 0
#define COMEX_FAILURE 1

#define COMEX_SWAP               10
#define COMEX_SWAP_LONG          11
#define COMEX_FETCH_AND_ADD      12
#define COMEX_FETCH_AND_ADD_LONG 13

#define COMEX_ACC_OFF 36
#define COMEX_ACC_INT (COMEX_ACC_OFF + 1)
#define COMEX_ACC_DBL (COMEX_ACC_OFF + 2)
#define COMEX_ACC_FLT (COMEX_ACC_OFF + 3)
#define COMEX_ACC_CPL (COMEX_ACC_OFF + 4)
#define COMEX_ACC_DCP (COMEX_ACC_OFF + 5)
#define COMEX_ACC_LNG (COMEX_ACC_OFF + 6)

#define COMEX_MAX_STRIDE_LEVEL 8

/* --- start and end --- */

/**
 * comex_init, comex_init_args, comex_init_comm - start ComEx, and ARMCI, over MPI_COMM_WORLD or
 * comm.
 * argc, argv  passed to MPI_Init_thread() if MPI has not been started; may be NULL
 * comm        duplicated; its ranks are the world
 * Context     collective over the communicator; a call while ARMCI runs does nothing
 * Returns     COMEX_SUCCESS. A job that cannot start ends the process with a message
 */
int comex_init(void);
int comex_init_args(int *argc, char ***argv);
int comex_init_comm(MPI_Comm comm);

/** comex_initialized - 1 between comex_init and comex_finalize, else 0. Any time. */
int comex_initialized(void);

/**
 * comex_finalize - complete all operations, free all groups and all memory of comex_malloc. The
 * process and MPI go on, and ComEx can start again. A call when it does not run does nothing.
 * Context   collective over the world
 * Returns   COMEX_SUCCESS
 */
int comex_finalize(void);

/** comex_error - print msg and code, and end the job. Any time. */
void comex_error(const char *msg, int code);

/* --- groups --- */

/**
 * comex_group_create - make a group of n ranks of parent.
 * pid_list   their ranks in parent, in the order of their ranks in the new group; n may be 0
 * group_out  the number of the group, which may differ from rank to rank; COMEX_GROUP_NULL if the
 *            call fails
 * Context    collective over the members of the new group. Other ranks may call, and get a group
 *            that they are not in, without waiting
 * Returns    COMEX_FAILURE also if n is negative or a rank is not in parent
 */
int comex_group_create(int n, int *pid_list, comex_group_t parent, comex_group_t *group_out);

/** comex_group_free - release a group; the world stays as it is. Its number is not used again
 * before comex_finalize. Collective over the members. */
int comex_group_free(comex_group_t group);

/** comex_group_rank - *rank is the caller's rank in group; -1 and COMEX_FAILURE if the caller is no
 * member. */
int comex_group_rank(comex_group_t group, int *rank);

/** comex_group_size - *size is the number of members; who asks need not be one. */
int comex_group_size(comex_group_t group, int *size);

/** comex_group_comm - *comm is the communicator of the members, which the program may use and may
 * not free; MPI_COMM_NULL if the caller is no member. */
int comex_group_comm(comex_group_t group, MPI_Comm *comm);

/** comex_group_translate_ranks - ranks_to[i] is the rank in group_to of member ranks_from[i] of
 * group_from, or -1 if that process is not in group_to; for n ranks. */
int comex_group_translate_ranks(int n, comex_group_t group_from, int *ranks_from,
                                comex_group_t group_to, int *ranks_to);

/** comex_group_translate_world - *world_rank is the rank in the world of member group_rank. */
int comex_group_translate_world(comex_group_t group, int group_rank, int *world_rank);

/* --- memory --- */

/**
 * comex_malloc, comex_malloc_mem_dev - allocate memory that all members of group can reach.
 * ptrs      one entry for each member, by its rank in the group; receives the address of each
 *           rank's part, as the caller uses it
 * bytes     of the caller's part; may differ between ranks. 0: no part, its entry is NULL
 * device    not used: memory is that of the host
 * Context   collective over the group
 * Returns   COMEX_FAILURE on every rank, with null entries, if one rank has no memory left
 */
int comex_malloc(void **ptrs, size_t bytes, comex_group_t group);
int comex_malloc_mem_dev(void **ptrs, size_t bytes, comex_group_t group, const char *device);

/**
 * comex_free, comex_free_dev - free an allocation of comex_malloc.
 * ptr       the caller's own part; NULL if the caller has none
 * Context   collective over the group; completes all operations of the callers first
 * Returns   COMEX_FAILURE also if ptr is not an allocation of the caller
 */
int comex_free(void *ptr, comex_group_t group);
int comex_free_dev(void *ptr, comex_group_t group);

/** comex_malloc_local, comex_free_local - memory for local addresses, as ARMCI_Malloc_local and
 * ARMCI_Free_local: NULL if no memory is left. */
void *comex_malloc_local(size_t bytes);
int comex_free_local(void *ptr);

/* --- completion and order --- */

/** comex_barrier - complete all operations of the caller, wait until those on members of group have
 * arrived, and wait for the members to do the same. Collective over the group. */
int comex_barrier(comex_group_t group);

/** comex_fence_all, comex_fence_proc - complete all operations of the caller, and wait until those
 * on the members of group, on member proc, have arrived. */
int comex_fence_all(comex_group_t group);
int comex_fence_proc(int proc, comex_group_t group);

/* --- transfers ---
 *
 * _s: a strided section of count[1] * ... * count[stride_levels] runs of count[0] contiguous bytes.
 * Between two runs that follow each other in dimension i lie src_stride[i - 1] bytes in the source
 * and dst_stride[i - 1] bytes in the destination. 0 <= stride_levels <= COMEX_MAX_STRIDE_LEVEL.
 * _v: len descriptors, at least 1. All arrays may be reused when the call returns. */

/**
 * comex_put, comex_get, comex_acc and their s and v forms - blocking transfers. A put or accumulate
 * returns when its source may be reused, a get when its data are in dst.
 * op        of an accumulate, dst[i] += *scale * src[i]: COMEX_ACC_INT, _LNG, _FLT, _DBL, _CPL (two
 *           floats) or _DCP (two doubles); another value ends the job
 * scale     address of one element of that type
 */
int comex_put(void *src, void *dst, int bytes, int proc, comex_group_t group);
int comex_puts(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
               int stride_levels, int proc, comex_group_t group);
int comex_putv(comex_giov_t *iov, int len, int proc, comex_group_t group);
int comex_get(void *src, void *dst, int bytes, int proc, comex_group_t group);
int comex_gets(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
               int stride_levels, int proc, comex_group_t group);
int comex_getv(comex_giov_t *iov, int len, int proc, comex_group_t group);
int comex_acc(int op, void *scale, void *src, void *dst, int bytes, int proc, comex_group_t group);
int comex_accs(int op, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
               int *count, int stride_levels, int proc, comex_group_t group);
int comex_accv(int op, void *scale, comex_giov_t *iov, int len, int proc, comex_group_t group);

/**
 * comex_nbput ... comex_nbaccv - start the transfer of the same name without nb. The memory may be
 * used again after a wait. Up to 4096 requests of a rank are open at a time; one more completes all
 * of them first.
 */
int comex_nbput(void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request);
int comex_nbputs(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
                 int stride_levels, int proc, comex_group_t group, comex_request_t *request);
int comex_nbputv(comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request);
int comex_nbget(void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request);
int comex_nbgets(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
                 int stride_levels, int proc, comex_group_t group, comex_request_t *request);
int comex_nbgetv(comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request);
int comex_nbacc(int op, void *scale, void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request);
int comex_nbaccs(int op, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
                 int *count, int stride_levels, int proc, comex_group_t group,
                 comex_request_t *request);
int comex_nbaccv(int op, void *scale, comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request);

/** comex_wait - complete the operation of *request; NULL: those that have no request. A request
 * that is complete already, or never was one, is no error. */
int comex_wait(comex_request_t *request);

/** comex_test - the same without waiting. *status is 0 if the operation is complete, 1 if not. */
int comex_test(comex_request_t *request, int *status);

/** comex_wait_all, comex_wait_proc - complete all operations of the caller, with a request or
 * without: whichever rank they concern; those with member proc. */
int comex_wait_all(comex_group_t group);
int comex_wait_proc(int proc, comex_group_t group);

/* --- read-modify-write, mutexes --- */

/**
 * comex_rmw - an atomic operation on a word of rank proc, as ARMCI_Rmw.
 * op        COMEX_FETCH_AND_ADD, COMEX_SWAP (int); COMEX_FETCH_AND_ADD_LONG, COMEX_SWAP_LONG
 *           (long); another value ends the job
 * ploc      local address of the type; receives the value before. A swap takes the new value from
 *           it
 * prem      remote address, aligned as the type
 * extra     fetch-and-add: what is added
 */
int comex_rmw(int op, void *ploc, void *prem, int extra, int proc, comex_group_t group);

/**
 * comex_create_mutexes, comex_destroy_mutexes - make and free the mutexes that comex_lock takes,
 * which are those of ARMCI_Create_mutexes.
 * num       mutexes that the caller hosts, 0 or more; may differ between ranks
 * Context   collective over the world; one set at a time
 * Returns   COMEX_FAILURE if a number is negative, a set exists already, or (destroy) none exists
 */
int comex_create_mutexes(int num);
int comex_destroy_mutexes(void);

/** comex_lock, comex_unlock - take and give mutex number `mutex` of rank proc of the WORLD, as
 * ARMCI_Lock and ARMCI_Unlock. A rank or a mutex that does not exist ends the job. */
int comex_lock(int mutex, int proc);
int comex_unlock(int mutex, int proc);

#ifdef __cplusplus
}
#endif

#endif
