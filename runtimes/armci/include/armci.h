/*
 * armci.h - the ARMCI interface: one-sided transfers, accumulate, atomics, memory, groups.
 *
 * Programs may include this header and message.h in either order. The layouts of ARMCI_Group,
 * armci_hdl_t and armci_giov_t are those of ARMCI-MPI as Debian ships it, so that objects compiled
 * for that library link with this one. The constants are those of the original ARMCI; the library
 * also accepts ARMCI-MPI's, which do not overlap.
 *
 * Ranks ("proc") are numbers in the world that ARMCI was started over, for memory of groups too.
 * Sizes and strides are bytes. A remote address is one that ARMCI_Malloc and its like gave the
 * caller for that process.
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

/* A section of the vector format: ptr_array_len pieces of the same length. */
typedef struct {
    void **src_ptr_array;
    void **dst_ptr_array;
    int bytes;         /* of one piece */
    int ptr_array_len; /* pieces */
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

/* Memory that one process made alone (ARMCI_Memget), described for others. */
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

/* What calls return for arguments that they refuse; 0 is success. */
#define FAIL  -1
#define FAIL2 -2
#define FAIL3 -3
#define FAIL4 -4
#define FAIL5 -5
#define FAIL6 -6
#define FAIL7 -7
#define FAIL8 -8

extern char *mp_group_name; /* unused */

/* Every name of these lists exists twice: ARMCI_x, which a program may define itself, and PARMCI_x.
 * */
#define ARMCI_STRIDED_ARGS_                                                                \
    void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[], int count[], \
        int stride_levels, int proc

#define ARMCI_TWINS_(P)                                                                         \
    int P##ARMCI_Init(void);                                                                    \
    int P##ARMCI_Init_args(int *argc, char ***argv);                                            \
    int P##ARMCI_Init_mpi_comm(MPI_Comm comm);                                                  \
    int P##ARMCI_Init_thread(int level);                                                        \
    int P##ARMCI_Init_thread_comm(int level, MPI_Comm comm);                                    \
    int P##ARMCI_Initialized(void);                                                             \
    int P##ARMCI_Finalize(void);                                                                \
                                                                                                \
    int P##ARMCI_Malloc(void *ptr_arr[], armci_size_t bytes);                                   \
    int P##ARMCI_Malloc_memdev(void *ptr_arr[], armci_size_t bytes, const char *device);        \
    int P##ARMCI_Malloc_group_memdev(void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group,   \
                                     const char *device);                                       \
    int P##ARMCI_Free(void *ptr);                                                               \
    int P##ARMCI_Free_memdev(void *ptr);                                                        \
    void *P##ARMCI_Malloc_local(armci_size_t bytes);                                            \
    int P##ARMCI_Free_local(void *ptr);                                                         \
    void P##ARMCI_Memget(size_t bytes, armci_meminfo_t *meminfo, int flag);                     \
    void *P##ARMCI_Memat(armci_meminfo_t *meminfo, long offset);                                \
                                                                                                \
    void P##ARMCI_Fence(int proc);                                                              \
    void P##ARMCI_AllFence(void);                                                               \
    void P##ARMCI_GroupFence(ARMCI_Group *group);                                               \
    void P##ARMCI_Barrier(void);                                                                \
    void P##ARMCI_Access_begin(void *ptr);                                                      \
    void P##ARMCI_Access_end(void *ptr);                                                        \
                                                                                                \
    int P##ARMCI_Put(void *src, void *dst, int bytes, int proc);                                \
    int P##ARMCI_Get(void *src, void *dst, int bytes, int proc);                                \
    int P##ARMCI_Acc(int op, void *scale, void *src, void *dst, int bytes, int proc);           \
    int P##ARMCI_PutS(ARMCI_STRIDED_ARGS_);                                                     \
    int P##ARMCI_GetS(ARMCI_STRIDED_ARGS_);                                                     \
    int P##ARMCI_AccS(int op, void *scale, ARMCI_STRIDED_ARGS_);                                \
    int P##ARMCI_PutV(armci_giov_t darr[], int len, int proc);                                  \
    int P##ARMCI_GetV(armci_giov_t darr[], int len, int proc);                                  \
    int P##ARMCI_AccV(int op, void *scale, armci_giov_t darr[], int len, int proc);             \
    int P##ARMCI_Put_flag(void *src, void *dst, int bytes, int *flag, int value, int proc);     \
    int P##ARMCI_PutS_flag(void *src_ptr, int src_stride_arr[], void *dst_ptr,                  \
                           int dst_stride_arr[], int count[], int stride_levels, int *flag,     \
                           int value, int proc);                                                \
    int P##ARMCI_PutS_flag_dir(void *src_ptr, int src_stride_arr[], void *dst_ptr,              \
                               int dst_stride_arr[], int count[], int stride_levels, int *flag, \
                               int value, int proc);                                            \
                                                                                                \
    int P##ARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle);         \
    int P##ARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle);         \
    int P##ARMCI_NbAcc(int op, void *scale, void *src, void *dst, int bytes, int proc,          \
                       armci_hdl_t *handle);                                                    \
    int P##ARMCI_NbPutS(ARMCI_STRIDED_ARGS_, armci_hdl_t *handle);                              \
    int P##ARMCI_NbGetS(ARMCI_STRIDED_ARGS_, armci_hdl_t *handle);                              \
    int P##ARMCI_NbAccS(int op, void *scale, ARMCI_STRIDED_ARGS_, armci_hdl_t *handle);         \
    int P##ARMCI_NbPutV(armci_giov_t darr[], int len, int proc, armci_hdl_t *handle);           \
    int P##ARMCI_NbGetV(armci_giov_t darr[], int len, int proc, armci_hdl_t *handle);           \
    int P##ARMCI_NbAccV(int op, void *scale, armci_giov_t darr[], int len, int proc,            \
                        armci_hdl_t *handle);                                                   \
                                                                                                \
    int P##ARMCI_PutValueInt(int value, void *dst, int proc);                                   \
    int P##ARMCI_PutValueLong(long value, void *dst, int proc);                                 \
    int P##ARMCI_PutValueFloat(float value, void *dst, int proc);                               \
    int P##ARMCI_PutValueDouble(double value, void *dst, int proc);                             \
    int P##ARMCI_NbPutValueInt(int value, void *dst, int proc, armci_hdl_t *handle);            \
    int P##ARMCI_NbPutValueLong(long value, void *dst, int proc, armci_hdl_t *handle);          \
    int P##ARMCI_NbPutValueFloat(float value, void *dst, int proc, armci_hdl_t *handle);        \
    int P##ARMCI_NbPutValueDouble(double value, void *dst, int proc, armci_hdl_t *handle);      \
    int P##ARMCI_GetValueInt(void *src, int proc);                                              \
    long P##ARMCI_GetValueLong(void *src, int proc);                                            \
    float P##ARMCI_GetValueFloat(void *src, int proc);                                          \
    double P##ARMCI_GetValueDouble(void *src, int proc);                                        \
                                                                                                \
    int P##ARMCI_Wait(armci_hdl_t *handle);                                                     \
    int P##ARMCI_Test(armci_hdl_t *handle);                                                     \
    int P##ARMCI_WaitAll(void);                                                                 \
    int P##ARMCI_WaitProc(int proc);                                                            \
                                                                                                \
    int P##ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);                      \
    int P##ARMCI_Create_mutexes(int count);                                                     \
    int P##ARMCI_Destroy_mutexes(void);                                                         \
    void P##ARMCI_Lock(int mutex, int proc);                                                    \
    void P##ARMCI_Unlock(int mutex, int proc);

ARMCI_TWINS_()
ARMCI_TWINS_(P)

int armci_notify(int proc);
int armci_notify_wait(int proc, int *pval);
int parmci_notify(int proc);
int parmci_notify_wait(int proc, int *pval);

/* --- names that exist once --- */

void ARMCI_INIT_HANDLE(armci_hdl_t *handle);
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

void ARMCI_Cleanup(void);
void ARMCI_Error(const char *msg, int code);
void ARMCI_Set_shm_limit(unsigned long bytes);
void ARMCI_Set_shmem_limit(unsigned long bytes);
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group *group);
void ARMCI_Copy(void *src, void *dst, int bytes);

int ARMCI_Malloc_group(void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group);
int ARMCI_Free_group(void *ptr, ARMCI_Group *group);
void ARMCI_Memdt(armci_meminfo_t *meminfo, long offset);
void ARMCI_Memctl(armci_meminfo_t *meminfo);

void armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);
void armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);

void ARMCI_Group_create(int n, int *pid_list, ARMCI_Group *group_out);
void ARMCI_Group_create_child(int n, int *pid_list, ARMCI_Group *group_out,
                              ARMCI_Group *group_parent);
void ARMCI_Group_free(ARMCI_Group *group);
int ARMCI_Group_rank(ARMCI_Group *group, int *rank);
void ARMCI_Group_size(ARMCI_Group *group, int *size);
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group_out);
void ARMCI_Group_get_world(ARMCI_Group *group_out);
int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);
MPI_Comm armci_group_comm(ARMCI_Group *group);

int armci_domain_nprocs(armci_domain_t domain, int id);
int armci_domain_count(armci_domain_t domain);
int armci_domain_id(armci_domain_t domain, int proc);
int armci_domain_my_id(armci_domain_t domain);
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int local);
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
