/*
 * comex_transfer.c - put, get, accumulate and read-modify-write of ranks of a group.
 *
 * Threads   the program's
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

#include <stdlib.h>

_Static_assert(COMEX_SWAP == ARMCI_SWAP && COMEX_SWAP_LONG == ARMCI_SWAP_LONG
                   && COMEX_FETCH_AND_ADD == ARMCI_FETCH_AND_ADD
                   && COMEX_FETCH_AND_ADD_LONG == ARMCI_FETCH_AND_ADD_LONG,
               "operations have the same numbers");
_Static_assert(COMEX_ACC_OFF == ARMCI_ACC_OFF, "types have the same numbers");
_Static_assert(COMEX_MAX_STRIDE_LEVEL == ARMCI_MAX_STRIDE_LEVEL, "sections have the same levels");

/* --- contiguous --- */

int comex_put(void *src, void *dst, int bytes, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_Put(src, dst, bytes, aq_comex_rank(proc, group)));
}

int comex_get(void *src, void *dst, int bytes, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_Get(src, dst, bytes, aq_comex_rank(proc, group)));
}

int comex_acc(int op, void *scale, void *src, void *dst, int bytes, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_Acc(op, scale, src, dst, bytes, aq_comex_rank(proc, group)));
}

int comex_nbput(void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request, PARMCI_NbPut(src, dst, bytes, rank, handle));
}

int comex_nbget(void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request, PARMCI_NbGet(src, dst, bytes, rank, handle));
}

int comex_nbacc(int op, void *scale, void *src, void *dst, int bytes, int proc, comex_group_t group,
                comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request,
                                    PARMCI_NbAcc(op, scale, src, dst, bytes, rank, handle));
}

/* --- strided --- */

int comex_puts(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
               int stride_levels, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_PutS(src, src_stride, dst, dst_stride, count, stride_levels,
                                     aq_comex_rank(proc, group)));
}

int comex_gets(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
               int stride_levels, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_GetS(src, src_stride, dst, dst_stride, count, stride_levels,
                                     aq_comex_rank(proc, group)));
}

int comex_accs(int op, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
               int *count, int stride_levels, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_AccS(op, scale, src, src_stride, dst, dst_stride, count,
                                     stride_levels, aq_comex_rank(proc, group)));
}

int comex_nbputs(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
                 int stride_levels, int proc, comex_group_t group, comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request, PARMCI_NbPutS(src, src_stride, dst, dst_stride, count,
                                                           stride_levels, rank, handle));
}

int comex_nbgets(void *src, int *src_stride, void *dst, int *dst_stride, int *count,
                 int stride_levels, int proc, comex_group_t group, comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request, PARMCI_NbGetS(src, src_stride, dst, dst_stride, count,
                                                           stride_levels, rank, handle));
}

int comex_nbaccs(int op, void *scale, void *src, int *src_stride, void *dst, int *dst_stride,
                 int *count, int stride_levels, int proc, comex_group_t group,
                 comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);

    return aq_comex_request_started(request,
                                    PARMCI_NbAccS(op, scale, src, src_stride, dst, dst_stride,
                                                  count, stride_levels, rank, handle));
}

/* --- vector --- */

#define FEW 16 /* descriptors that need no memory of their own */

struct descriptors {
    armci_giov_t few[FEW];
    armci_giov_t *all; /* NULL: there are none */
};

/* ARMCI's descriptors have their members in another order. */
static armci_giov_t *convert(struct descriptors *to, const comex_giov_t *iov, int len)
{
    to->all = iov == NULL || len < 1 ? NULL : to->few;
    if (to->all != NULL && len > FEW)
        to->all = malloc((size_t)len * sizeof(*to->all));
    if (to->all == NULL && iov != NULL && len > FEW)
        ARMCI_Error("no memory for the descriptors of a vector", 1);
    for (int i = 0; to->all != NULL && i < len; i++)
        to->all[i] = (armci_giov_t){ .src_ptr_array = iov[i].src,
                                     .dst_ptr_array = iov[i].dst,
                                     .bytes = iov[i].bytes,
                                     .ptr_array_len = iov[i].count };
    return to->all;
}

/* Frees what convert() has taken. Returns rc. */
static int converted(struct descriptors *to, int rc)
{
    if (to->all != to->few)
        free(to->all);
    return rc;
}

int comex_putv(comex_giov_t *iov, int len, int proc, comex_group_t group)
{
    const int rank = aq_comex_rank(proc, group);
    struct descriptors to;

    return aq_comex_code(converted(&to, PARMCI_PutV(convert(&to, iov, len), len, rank)));
}

int comex_getv(comex_giov_t *iov, int len, int proc, comex_group_t group)
{
    const int rank = aq_comex_rank(proc, group);
    struct descriptors to;

    return aq_comex_code(converted(&to, PARMCI_GetV(convert(&to, iov, len), len, rank)));
}

int comex_accv(int op, void *scale, comex_giov_t *iov, int len, int proc, comex_group_t group)
{
    const int rank = aq_comex_rank(proc, group);
    struct descriptors to;

    return aq_comex_code(converted(&to, PARMCI_AccV(op, scale, convert(&to, iov, len), len, rank)));
}

int comex_nbputv(comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);
    struct descriptors to;
    const int rc = PARMCI_NbPutV(convert(&to, iov, len), len, rank, handle);

    return aq_comex_request_started(request, converted(&to, rc));
}

int comex_nbgetv(comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);
    struct descriptors to;
    const int rc = PARMCI_NbGetV(convert(&to, iov, len), len, rank, handle);

    return aq_comex_request_started(request, converted(&to, rc));
}

int comex_nbaccv(int op, void *scale, comex_giov_t *iov, int len, int proc, comex_group_t group,
                 comex_request_t *request)
{
    const int rank = aq_comex_rank(proc, group);
    armci_hdl_t *handle = aq_comex_request_open(request, rank);
    struct descriptors to;
    const int rc = PARMCI_NbAccV(op, scale, convert(&to, iov, len), len, rank, handle);

    return aq_comex_request_started(request, converted(&to, rc));
}

/* --- read-modify-write --- */

int comex_rmw(int op, void *ploc, void *prem, int extra, int proc, comex_group_t group)
{
    return aq_comex_code(PARMCI_Rmw(op, ploc, prem, extra, aq_comex_rank(proc, group)));
}
