/*
 * armci.h - the ARMCI interface: one-sided transfers, accumulate, atomics, memory, groups.
 *
 * Programs may include this header and message.h in either order. The layouts of ARMCI_Group,
 * armci_hdl_t and armci_giov_t are those of ARMCI-MPI as Debian ships it, so that objects compiled
 * for that library link with this one. The constants are those of the original ARMCI. The library
 * also accepts the constants of ARMCI-MPI, which do not overlap with them.
 *
 * Common arguments and rules; the docstrings below name what differs:
 *
 *   proc      a rank of the world that ARMCI was started over, 0 <= proc < number of ranks; also
 *             for memory of a group
 *   remote address (dst of a put or accumulate, src of a get)  an address in the memory of proc, as
 *             ARMCI_Malloc or a call like it gave it to the caller. The range lies in one
 *             allocation
 *   local address  any memory of the caller, any alignment
 *   bytes, count[0], strides  bytes
 *   handle    of a non-blocking call: an explicit handle, or NULL for the implicit handle
 *   Context   between ARMCI_Init and ARMCI_Finalize; one thread of the program at a time; not in a
 *             function that ARMCI_Gpc_exec runs
 *   Returns   0, or the FAIL code that the docstring names. Other errors print one line with the
 *             call and the rank, and end the job
 *   Debug     a debug build ends the job if a remote range is outside of an allocation
 *
 * "Collective" calls are made by every rank of the world, or of the group, in the same order.
 *
 * Source: the ARMCI interface, as in its manual 1.1 (2000) and as Global Arrays and ARMCI-MPI use
 * it; each part below names its topic there. docs/armci.md says what this library promises. Tests:
 * tests/armci.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _ARMCI_H
#define _ARMCI_H 1

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- types --- */

typedef long armci_size_t;
typedef int armci_domain_t;

/* One descriptor of the vector format: ptr_array_len segments of the same length. */
typedef struct {
    void **src_ptr_array;
    void **dst_ptr_array;
    int bytes;         /* of one segment, at least 1 */
    int ptr_array_len; /* number of segments, at least 1 */
} armci_giov_t;

/* A handle of non-blocking operations; its contents are the library's. */
typedef struct armci_hdl_s {
    int request;
    int serial;
} armci_hdl_t;

#define armci_req_t armci_hdl_t

typedef struct {
    MPI_Comm comm; /* of the group's members; programs may communicate on it and may not free it */
    MPI_Comm noncoll_pgroup_comm; /* unused */
    int *grp_to_abs;              /* world rank of each member */
    int *abs_to_grp;              /* by world rank: rank in the group, or -1 */
    int rank;                     /* the caller's, or -1 */
    int size;
} ARMCI_Group;

/* Memory that one rank allocated alone (ARMCI_Memget), described for other ranks. */
typedef struct armci_meminfo_ds {
    char *armci_addr; /* as its owner sees it */
    char *addr;
    size_t size;
    int cpid; /* the owner's rank */
    long idlist[128];
} armci_meminfo_t;

/* --- constants --- */

#define ARMCI_SWAP               10
#define ARMCI_SWAP_LONG          11
#define ARMCI_FETCH_AND_ADD      12
#define ARMCI_FETCH_AND_ADD_LONG 13

#define ARMCI_ACC_OFF 36
#define ARMCI_ACC_INT (ARMCI_ACC_OFF + 1)
#define ARMCI_ACC_DBL (ARMCI_ACC_OFF + 2)
#define ARMCI_ACC_FLT (ARMCI_ACC_OFF + 3)
#define ARMCI_ACC_CPL (ARMCI_ACC_OFF + 4)
#define ARMCI_ACC_DCP (ARMCI_ACC_OFF + 5)
#define ARMCI_ACC_LNG (ARMCI_ACC_OFF + 6)

#define ARMCI_MAX_STRIDE_LEVEL 8
#define ARMCI_DOMAIN_SMP       0

/* Returned for arguments that a call refuses; 0 is success. */
#define FAIL  -1
#define FAIL2 -2
#define FAIL3 -3
#define FAIL4 -4
#define FAIL5 -5
#define FAIL6 -6
#define FAIL7 -7
#define FAIL8 -8

extern char *mp_group_name; /* unused */

/* --- calls that exist twice --- */

/* ARMCI_name is a weak name of PARMCI_name: a program, or a profiling tool, may define its own
 * ARMCI_name, which calls PARMCI_name. */
#define ARMCI_BOTH_(type, name, args) \
    type ARMCI_##name args;           \
    type PARMCI_##name args

/* The arguments of a strided transfer. The section has count[1] * ... * count[stride_levels] runs
 * of count[0] contiguous bytes. Between two runs that follow each other in dimension i lie
 * src_stride_arr[i - 1] bytes in the source and dst_stride_arr[i - 1] bytes in the destination.
 * 0 <= stride_levels <= ARMCI_MAX_STRIDE_LEVEL. A count of 0 transfers nothing. */
#define ARMCI_STRIDED_ARGS_                                                                \
    void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[], int count[], \
        int stride_levels, int proc

/* --- start and end (ARMCI interface: initialization and termination) --- */

/**
 * ARMCI_Init, ARMCI_Init_args - start ARMCI over MPI_COMM_WORLD.
 * argc, argv  passed to MPI_Init_thread() if MPI has not been started; may be NULL
 * Context     collective over MPI_COMM_WORLD; a call while ARMCI runs does nothing
 * Returns     0. A job that cannot start ends the process with a message
 */
ARMCI_BOTH_(int, Init, (void));
ARMCI_BOTH_(int, Init_args, (int *argc, char ***argv));

/**
 * ARMCI_Init_mpi_comm - start ARMCI over the ranks of comm.
 * comm      duplicated; its ranks are the world of ARMCI
 * Context   collective over comm; a call while ARMCI runs does nothing
 * Returns   1, which Global Arrays takes for success
 */
ARMCI_BOTH_(int, Init_mpi_comm, (MPI_Comm comm));

/**
 * ARMCI_Init_thread, ARMCI_Init_thread_comm - start ARMCI if MPI provides a thread level.
 * level     MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE; MPI is started with it if it has not been
 *           started. The level concerns MPI: ARMCI itself admits one thread at a time
 * comm      as for ARMCI_Init_mpi_comm; ARMCI_Init_thread takes MPI_COMM_WORLD
 * Context   collective
 * Returns   0; FAIL if MPI provides less than level, and ARMCI is not started
 */
ARMCI_BOTH_(int, Init_thread, (int level));
ARMCI_BOTH_(int, Init_thread_comm, (int level, MPI_Comm comm));

/** ARMCI_Initialized - 1 between ARMCI_Init and ARMCI_Finalize, else 0. Any time. */
ARMCI_BOTH_(int, Initialized, (void));

/**
 * ARMCI_Finalize - end ARMCI: complete all operations, free all memory of ARMCI_Malloc.
 * The process and MPI go on, and ARMCI can start again. A call when ARMCI does not run does
 * nothing.
 * Context   collective over the world
 * Returns   0
 */
ARMCI_BOTH_(int, Finalize, (void));

/* --- memory (ARMCI interface: memory allocation) --- */

/**
 * ARMCI_Malloc - allocate memory that all ranks can reach.
 * ptr_arr   one entry for each rank of the world; receives the address of each rank's part, as the
 *           caller uses it. The addresses differ from rank to rank. Memory of a rank of the same
 *           domain may be loaded and stored
 * bytes     of the caller's part; may differ between ranks. 0: no part, its entry is NULL
 * Context   collective over the world
 * Returns   0, aligned to 64 bytes; FAIL on every rank, with null entries, if one rank has no
 *           memory left (GASNET_MAX_SEGSIZE) or passes a negative size
 */
ARMCI_BOTH_(int, Malloc, (void *ptr_arr[], armci_size_t bytes));

/** ARMCI_Malloc_memdev, ARMCI_Malloc_group_memdev - ARMCI_Malloc, ARMCI_Malloc_group; device is
 * ignored: memory is that of the host. */
ARMCI_BOTH_(int, Malloc_memdev, (void *ptr_arr[], armci_size_t bytes, const char *device));
ARMCI_BOTH_(int, Malloc_group_memdev,
            (void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group, const char *device));

/**
 * ARMCI_Free, ARMCI_Free_memdev - free an allocation of ARMCI_Malloc.
 * ptr       the caller's own part; NULL if the caller has none
 * Context   collective over the world; completes all operations of the callers first
 * Returns   0; FAIL if ptr is not an allocation of the caller
 */
ARMCI_BOTH_(int, Free, (void *ptr));
ARMCI_BOTH_(int, Free_memdev, (void *ptr));

/**
 * ARMCI_Malloc_local - allocate memory for local addresses. The network may know it already, so
 * transfers from and to it can be faster than those of other memory. It outlives ARMCI_Finalize.
 * bytes     0 is taken for 1
 * Returns   the address, aligned to 64 bytes; NULL if no memory is left or bytes is negative
 */
ARMCI_BOTH_(void *, Malloc_local, (armci_size_t bytes));

/** ARMCI_Free_local - free memory of ARMCI_Malloc_local, at any time; NULL does nothing. Returns 0;
 * FAIL if ptr is not an allocation of the caller. */
ARMCI_BOTH_(int, Free_local, (void *ptr));

/**
 * ARMCI_Memget - allocate memory that other ranks can reach, without them.
 * bytes     more than 0
 * meminfo   filled: the program sends the bytes of this structure to the ranks that are to use it
 *           Without memory (GASNET_MAX_SEGSIZE) its addresses are NULL and its size is 0
 * flag      0
 * Errors    bytes 0 or another flag end the job. ARMCI_Memctl frees the memory
 */
ARMCI_BOTH_(void, Memget, (size_t bytes, armci_meminfo_t *meminfo, int flag));

/**
 * ARMCI_Memat - the remote address of memory of ARMCI_Memget.
 * meminfo   as its owner filled it
 * offset    bytes from the beginning; not used at the owner
 * Returns   the address of that byte; at the owner, the beginning; NULL if there is no memory
 */
ARMCI_BOTH_(void *, Memat, (armci_meminfo_t * meminfo, long offset));

/* --- completion and order (ARMCI interface: progress, ordering, synchronization) --- */

/**
 * ARMCI_Fence, ARMCI_AllFence, ARMCI_GroupFence - wait until the blocking puts and accumulates of
 * the caller have arrived at rank proc, at all ranks, at the ranks of group (NULL: the world).
 * Non-blocking operations are complete after a wait on their handle and a fence.
 * Errors    a rank that does not exist ends the job
 */
ARMCI_BOTH_(void, Fence, (int proc));
ARMCI_BOTH_(void, AllFence, (void));
ARMCI_BOTH_(void, GroupFence, (ARMCI_Group * group));

/** ARMCI_Barrier - complete the operations of all handles, fence all ranks, and wait for all ranks
 * of the world to do the same. Aggregate handles go on collecting. Collective. */
ARMCI_BOTH_(void, Barrier, (void));

/** ARMCI_Access_begin, ARMCI_Access_end - loads and stores of the caller to its own memory, between
 * the two calls, are ordered with transfers of other ranks before and after. ptr is not used. */
ARMCI_BOTH_(void, Access_begin, (void *ptr));
ARMCI_BOTH_(void, Access_end, (void *ptr));

/* --- blocking transfers (ARMCI interface: data transfer operations) ---
 *
 * A put or accumulate returns when its source may be reused. A get returns when its data are in
 * dst. Operations of one rank on one target take effect in the order of their calls. */

/**
 * ARMCI_Put, ARMCI_Get - copy bytes contiguous bytes to or from rank proc.
 * Returns   0, also for bytes 0; FAIL: an address is NULL; FAIL3: bytes is negative; FAIL5: no such
 *           rank
 */
ARMCI_BOTH_(int, Put, (void *src, void *dst, int bytes, int proc));
ARMCI_BOTH_(int, Get, (void *src, void *dst, int bytes, int proc));

/**
 * ARMCI_Acc - dst[i] += *scale * src[i], atomic for each element among accumulates of all ranks.
 * op        ARMCI_ACC_INT, _LNG, _FLT, _DBL, _CPL (two floats) or _DCP (two doubles); another
 *           value ends the job
 * scale     address of one element of that type
 * bytes     of src; what is less than an element at the end is ignored
 * Returns   as ARMCI_Put; FAIL also if scale is NULL
 */
ARMCI_BOTH_(int, Acc, (int op, void *scale, void *src, void *dst, int bytes, int proc));

/**
 * ARMCI_PutS, ARMCI_GetS, ARMCI_AccS - the same for a strided section; see ARMCI_STRIDED_ARGS_.
 * op, scale as for ARMCI_Acc; what is less than an element at the end of a run is ignored
 * Returns   0; FAIL: an address (or scale) is NULL; FAIL2: an array is NULL; FAIL3: count[0] is
 *           negative; FAIL4: stride_levels is out of range; FAIL5: no such rank
 */
ARMCI_BOTH_(int, PutS, (ARMCI_STRIDED_ARGS_));
ARMCI_BOTH_(int, GetS, (ARMCI_STRIDED_ARGS_));
ARMCI_BOTH_(int, AccS, (int op, void *scale, ARMCI_STRIDED_ARGS_));

/**
 * ARMCI_PutV, ARMCI_GetV, ARMCI_AccV - the same for lists of segments.
 * darr, len len descriptors, at least 1, all under way at once. The arrays may be reused when the
 *           call returns
 * op, scale as for ARMCI_AccS, with segments for runs
 * Returns   0; FAIL: darr (or scale) is NULL, or len less than 1; FAIL2: an array of a descriptor
 *           is NULL; FAIL3: its bytes are less than 1; FAIL4: its ptr_array_len is less than 1;
 *           FAIL5: no such rank
 */
ARMCI_BOTH_(int, PutV, (armci_giov_t darr[], int len, int proc));
ARMCI_BOTH_(int, GetV, (armci_giov_t darr[], int len, int proc));
ARMCI_BOTH_(int, AccV, (int op, void *scale, armci_giov_t darr[], int len, int proc));

/**
 * ARMCI_Put_flag, ARMCI_PutS_flag, ARMCI_PutS_flag_dir - put, then store value in *flag at the
 * target: a rank that finds value there finds the data, too.
 * flag      remote address, aligned as an int
 * Returns   as ARMCI_PutS; FAIL also if flag is NULL. What fails puts nothing
 */
ARMCI_BOTH_(int, Put_flag, (void *src, void *dst, int bytes, int *flag, int value, int proc));
ARMCI_BOTH_(int, PutS_flag,
            (void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[], int count[],
             int stride_levels, int *flag, int value, int proc));
ARMCI_BOTH_(int, PutS_flag_dir,
            (void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[], int count[],
             int stride_levels, int *flag, int value, int proc));

/* --- non-blocking transfers (ARMCI interface: non-blocking operations) --- */

/**
 * ARMCI_NbPut ... ARMCI_NbAccV - start the transfer of the same name without Nb.
 * handle    several operations may share an explicit handle. The implicit handle (NULL) collects
 *           the operations of ARMCI_WaitAll and ARMCI_WaitProc. An aggregate handle collects puts
 *           and gets to one rank and sends them as one transfer
 * src, dst  the memory may be used again after the wait on the handle. Arrays of strides, counts
 *           and addresses may be reused when the call returns
 * Returns   as the call without Nb. An accumulate is complete at the caller at return
 */
ARMCI_BOTH_(int, NbPut, (void *src, void *dst, int bytes, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbGet, (void *src, void *dst, int bytes, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbAcc,
            (int op, void *scale, void *src, void *dst, int bytes, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbPutS, (ARMCI_STRIDED_ARGS_, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbGetS, (ARMCI_STRIDED_ARGS_, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbAccS, (int op, void *scale, ARMCI_STRIDED_ARGS_, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbPutV, (armci_giov_t darr[], int len, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbGetV, (armci_giov_t darr[], int len, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbAccV,
            (int op, void *scale, armci_giov_t darr[], int len, int proc, armci_hdl_t *handle));

/* --- values (ARMCI interface: register-originated put and get) --- */

/**
 * ARMCI_PutValueInt ... ARMCI_NbPutValueDouble - put one value, which is copied before the call
 * returns.
 * Returns   0. An address NULL or a rank that does not exist ends the job; the Nb calls return FAIL
 *           and FAIL5
 */
ARMCI_BOTH_(int, PutValueInt, (int value, void *dst, int proc));
ARMCI_BOTH_(int, PutValueLong, (long value, void *dst, int proc));
ARMCI_BOTH_(int, PutValueFloat, (float value, void *dst, int proc));
ARMCI_BOTH_(int, PutValueDouble, (double value, void *dst, int proc));
ARMCI_BOTH_(int, NbPutValueInt, (int value, void *dst, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbPutValueLong, (long value, void *dst, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbPutValueFloat, (float value, void *dst, int proc, armci_hdl_t *handle));
ARMCI_BOTH_(int, NbPutValueDouble, (double value, void *dst, int proc, armci_hdl_t *handle));

/** ARMCI_GetValueInt, _Long, _Float, _Double - return the value at src of rank proc. An address
 * NULL or a rank that does not exist ends the job. */
ARMCI_BOTH_(int, GetValueInt, (void *src, int proc));
ARMCI_BOTH_(long, GetValueLong, (void *src, int proc));
ARMCI_BOTH_(float, GetValueFloat, (void *src, int proc));
ARMCI_BOTH_(double, GetValueDouble, (void *src, int proc));

/* --- handles (ARMCI interface: non-blocking operations) --- */

/**
 * ARMCI_Wait - complete the operations of handle; NULL: of the implicit handle. A get has its data,
 * the source of a put may be reused. The handle is then as ARMCI_INIT_HANDLE leaves it, an
 * aggregate handle as ARMCI_SET_AGGREGATE_HANDLE does. A handle without operations is complete.
 * Returns   0
 */
ARMCI_BOTH_(int, Wait, (armci_hdl_t * handle));

/** ARMCI_Test - the same without waiting. Returns 0 if the operations are complete, and then does
 * what ARMCI_Wait does; 1 if not. */
ARMCI_BOTH_(int, Test, (armci_hdl_t * handle));

/** ARMCI_WaitAll, ARMCI_WaitProc - complete the operations of the implicit handle: all of them,
 * those with rank proc. Return 0. */
ARMCI_BOTH_(int, WaitAll, (void));
ARMCI_BOTH_(int, WaitProc, (int proc));

/** ARMCI_INIT_HANDLE - makes an explicit handle, which no operation uses. A debug build ends the
 * job if the handle has operations that no wait and no barrier has completed. */
void ARMCI_INIT_HANDLE(armci_hdl_t *handle);

/** ARMCI_SET_AGGREGATE_HANDLE, ARMCI_UNSET_AGGREGATE_HANDLE - the handle collects puts and gets to
 * one rank, to be sent as one transfer; and no more. SET completes the operations of the handle
 * first. UNSET starts what was collected. */
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

/* --- read-modify-write, mutexes (ARMCI interface: atomic operations, mutual exclusion) --- */

/**
 * ARMCI_Rmw - an atomic operation on a word of rank proc.
 * op        ARMCI_FETCH_AND_ADD, ARMCI_SWAP (int); ARMCI_FETCH_AND_ADD_LONG, ARMCI_SWAP_LONG
 *           (long); another value ends the job
 * ploc      local address of the type; receives the value before. A swap takes the new value from
 *           it
 * prem      remote address, aligned as the type
 * value     fetch-and-add: what is added
 * Order     a release of what the caller did before, an acquire for what follows
 * Returns   0; FAIL: an address is NULL; FAIL5: no such rank
 */
ARMCI_BOTH_(int, Rmw, (int op, void *ploc, void *prem, int value, int proc));

/**
 * ARMCI_Create_mutexes, ARMCI_Destroy_mutexes - make and free the mutexes that ARMCI_Lock takes.
 * count     mutexes that the caller hosts, 0 or more; may differ between ranks
 * Context   collective over the world; one set at a time
 * Returns   0; FAIL: a negative count of some rank, a set exists already, or (Destroy) none exists;
 *           FAIL2: a rank has no memory
 */
ARMCI_BOTH_(int, Create_mutexes, (int count));
ARMCI_BOTH_(int, Destroy_mutexes, (void));

/**
 * ARMCI_Lock, ARMCI_Unlock - take and give mutex number `mutex` of rank proc.
 * Order     Unlock takes effect after the caller's blocking puts and accumulates to proc. Data at
 *           other ranks need a fence before the unlock
 * Context   the caller does not hold the mutex (Lock), does hold it (Unlock; a debug build checks)
 * Errors    a rank or a mutex that does not exist ends the job
 */
ARMCI_BOTH_(void, Lock, (int mutex, int proc));
ARMCI_BOTH_(void, Unlock, (int mutex, int proc));

/* --- notifications (ARMCI interface: notify and wait) --- */

/**
 * armci_notify - count up the notifications of the caller at rank proc, after the caller's earlier
 * blocking operations on proc. Returns the count.
 * armci_notify_wait - wait for the next notification that rank proc sends to the caller.
 * pval      receives the number of the notification that was waited for; may be NULL
 * Returns   the number of notifications that have arrived from proc
 * Errors    a rank that does not exist ends the job
 */
int armci_notify(int proc);
int armci_notify_wait(int proc, int *pval);
int parmci_notify(int proc);
int parmci_notify_wait(int proc, int *pval);

/* --- utilities (ARMCI interface: utility operations); these names exist once --- */

/** ARMCI_Error - print msg and code, and end the job as armci_msg_abort does. ARMCI_Cleanup does
 * nothing: no memory outlives the processes. Both at any time. */
void ARMCI_Error(const char *msg, int code);
void ARMCI_Cleanup(void);

/** ARMCI_Set_shm_limit, ARMCI_Set_shmem_limit - do nothing: GASNET_MAX_SEGSIZE is the limit of
 * memory. */
void ARMCI_Set_shm_limit(unsigned long bytes);
void ARMCI_Set_shmem_limit(unsigned long bytes);

/** ARMCI_Uses_shm, ARMCI_Uses_shm_grp - 1 if some ranks of the world share memory, else 0; group is
 * not used. */
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group *group);

/** ARMCI_Copy - copy bytes between two local addresses, which may overlap. Any time. */
void ARMCI_Copy(void *src, void *dst, int bytes);

/** ARMCI_Malloc_group, ARMCI_Free_group - ARMCI_Malloc and ARMCI_Free over the members of group
 * (NULL: the world). ptr_arr has an entry for each member, by its rank in the group. Collective
 * over the group; return FAIL to a caller that is no member. */
int ARMCI_Malloc_group(void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group);
int ARMCI_Free_group(void *ptr, ARMCI_Group *group);

/** ARMCI_Memctl - free memory of ARMCI_Memget, if the caller is its owner, and empty the
 * description. ARMCI_Memdt does nothing. */
void ARMCI_Memctl(armci_meminfo_t *meminfo);
void ARMCI_Memdt(armci_meminfo_t *meminfo, long offset);

/**
 * armci_write_strided, armci_read_strided - pack a section of local memory into buf; unpack it.
 * ptr       beginning of the section
 * stride_levels, stride_arr, count  as in ARMCI_STRIDED_ARGS_
 * buf       count[0] * ... * count[stride_levels] bytes
 * Context   any time; no argument is checked
 */
void armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);
void armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);

/* --- groups (ARMCI interface: processor groups); a group NULL is the world --- */

/**
 * ARMCI_Group_create, ARMCI_Group_create_child - make a group of n ranks.
 * n, pid_list   ranks of the default group, or of group_parent (NULL: the world); another number
 *               ends the job. n may be 0
 * group_out     filled; ARMCI_Group_free releases it
 * Context       collective over the members. Other ranks may call, and get a group that they are
 *               not in, without waiting
 */
void ARMCI_Group_create(int n, int *pid_list, ARMCI_Group *group_out);
void ARMCI_Group_create_child(int n, int *pid_list, ARMCI_Group *group_out,
                              ARMCI_Group *group_parent);

/** ARMCI_Group_free - release a group; the world and a group that is released already stay as they
 * are. Collective over the members. */
void ARMCI_Group_free(ARMCI_Group *group);

/** ARMCI_Group_rank - *rank is the caller's rank in group, or -1. Returns 0; FAIL if the caller is
 * no member. */
int ARMCI_Group_rank(ARMCI_Group *group, int *rank);

/** ARMCI_Group_size - *size is the number of members. */
void ARMCI_Group_size(ARMCI_Group *group, int *size);

/** ARMCI_Group_set_default, _get_default, _get_world - the default group is the parent that
 * ARMCI_Group_create takes; at start, and after the default group has been freed, it is the world.
 * Groups are copied: a copy is not released. */
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group_out);
void ARMCI_Group_get_world(ARMCI_Group *group_out);

/** ARMCI_Absolute_id - the world rank of member group_rank; a number outside of the group ends the
 * job. */
int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);

/** armci_group_comm - the communicator of a group (NULL: of the world), which the program may use
 * and may not free; MPI_COMM_NULL if the caller is no member. */
MPI_Comm armci_group_comm(ARMCI_Group *group);

/* --- domains: ranks that share memory (ARMCI interface: cluster information) ---
 *
 * domain    ARMCI_DOMAIN_SMP, the only kind; not used
 * id        0 <= id < armci_domain_count(); negative: the caller's domain
 * Errors    a domain or a rank that does not exist ends the job */

/** armci_domain_nprocs - ranks in domain id. armci_domain_count - domains of the world. */
int armci_domain_nprocs(armci_domain_t domain, int id);
int armci_domain_count(armci_domain_t domain);

/** armci_domain_id, armci_domain_my_id - the domain of rank proc, of the caller. */
int armci_domain_id(armci_domain_t domain, int proc);
int armci_domain_my_id(armci_domain_t domain);

/** armci_domain_glob_proc_id - the world rank of member `local` of domain id, 0 <= local <
 * armci_domain_nprocs(). */
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int local);

/** armci_domain_same_id, ARMCI_Same_node, armci_sameclusnode - 1 if rank proc is in the caller's
 * domain, else 0. */
int armci_domain_same_id(armci_domain_t domain, int proc);
int ARMCI_Same_node(int proc);
int armci_sameclusnode(int proc);

/* --- failed assertions: print, then end the job --- */

int dassertp_fail(const char *cond, const char *file, const char *func, unsigned line, int code);
void derr_printf(const char *format, ...);

#define dassertc(on, cond, printf_list, code)                                             \
    ((on) && !(cond) ? (void)(derr_printf printf_list,                                    \
                              dassertp_fail(#cond, __FILE__, __func__, __LINE__, (code))) \
                     : (void)0)
#define dassertp(on, cond, printf_list) dassertc(on, cond, printf_list, -1)
#define dassert(on, cond)               dassertc(on, cond, ("%s", ""), -1)
#define dassert1(on, cond, ival)        dassertc(on, cond, ("value %d\n", (int)(ival)), (int)(ival))
#define armci_die(msg, code)            dassertc(1, 0, ("%s\n", (msg)), (code))
#define armci_die2(msg, code1, code2) \
    dassertc(1, 0, ("%s (%d, %d)\n", (msg), (int)(code1), (int)(code2)), (code1))

#define ARMCI_Put1(src, dst, bytes, proc) (memcpy((dst), (src), (bytes)), 0)

#ifdef __cplusplus
}
#endif

#include "message.h"

#endif
