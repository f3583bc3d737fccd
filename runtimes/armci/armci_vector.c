/*
 * armci_vector.c - put and get in the vector format: lists of segments.
 *
 * Segments of mapped memory are copied one by one. Other segments go as one indexed transfer for
 * each descriptor. A non-blocking transfer works on copies of the lists, since the program may
 * change its lists when the call has returned.
 *
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

static void copy_segments(const armci_giov_t *giov)
{
    for (int i = 0; i < giov->ptr_array_len; i++)
        memmove(giov->dst_ptr_array[i], giov->src_ptr_array[i], (size_t)giov->bytes);
}

static void check_segments(const char *call, enum aq_armci_way way, const armci_giov_t *giov,
                           int proc)
{
    void **remote = way == AQ_ARMCI_PUT ? giov->dst_ptr_array : giov->src_ptr_array;

    for (int i = 0; i < giov->ptr_array_len; i++)
        aq_armci_check_range(call, remote[i], (size_t)giov->bytes, proc);
}

/* Starts the transfer of n segments. The lists stay unchanged until the event is complete. */
static gex_Event_t start_segments(enum aq_armci_way way, void **src, void **dst, size_t n,
                                  size_t bytes, int proc)
{
    AQ_ARMCI_COUNT(vector_calls, 1);
    if (way == AQ_ARMCI_PUT)
        return gex_VIS_IndexedPutNB(aq_armci.tm, (gex_Rank_t)proc, n, dst, bytes, n, src, bytes, 0);
    return gex_VIS_IndexedGetNB(aq_armci.tm, n, dst, bytes, (gex_Rank_t)proc, n, src, bytes, 0);
}

static void **copy_lists(const armci_giov_t *giov)
{
    const size_t n = (size_t)giov->ptr_array_len;
    void **lists = malloc(2 * n * sizeof(void *));

    if (lists == NULL)
        aq_armci_fatal("no memory for the addresses of %zu segments", n);
    memcpy(lists, giov->src_ptr_array, n * sizeof(void *));
    memcpy(lists + n, giov->dst_ptr_array, n * sizeof(void *));
    return lists;
}

static int vector_blocking(const char *call, enum aq_armci_way way, const armci_giov_t *darr,
                           int len, int proc)
{
    const int rc = aq_armci_check_giov(call, darr, len, proc);
    struct aq_armci_peer *peer;

    if (rc != 0)
        return rc;
    aq_armci_tick();
    peer = aq_armci_order_after(proc);
    for (int i = 0; i < len; i++) {
        check_segments(call, way, &darr[i], proc);
        if (aq_armci_is_local(peer))
            copy_segments(&darr[i]);
        else
            gex_Event_Wait(start_segments(way, darr[i].src_ptr_array, darr[i].dst_ptr_array,
                                          (size_t)darr[i].ptr_array_len, (size_t)darr[i].bytes,
                                          proc));
    }
    return 0;
}

static void batch_segments(armci_hdl_t *handle, struct aq_armci_batch *batch, enum aq_armci_way way,
                           const armci_giov_t *giov, int proc)
{
    void **local = way == AQ_ARMCI_PUT ? giov->src_ptr_array : giov->dst_ptr_array;
    void **remote = way == AQ_ARMCI_PUT ? giov->dst_ptr_array : giov->src_ptr_array;

    for (int i = 0; i < giov->ptr_array_len; i++)
        aq_armci_batch_add(handle, batch, way, proc, local[i], remote[i], (size_t)giov->bytes,
                           false);
}

static int vector_nb(const char *call, enum aq_armci_way way, const armci_giov_t *darr, int len,
                     int proc, armci_hdl_t *handle)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);
    const int rc = aq_armci_check_giov(call, darr, len, proc);
    struct aq_armci_peer *peer;

    if (rc != 0)
        return rc;
    peer = aq_armci_order_after(proc);
    for (int i = 0; i < len; i++) {
        check_segments(call, way, &darr[i], proc);
        if (batch != NULL) {
            batch_segments(handle, batch, way, &darr[i], proc);
        } else if (aq_armci_is_local(peer)) {
            copy_segments(&darr[i]);
            aq_armci_note_operation(handle);
        } else {
            const size_t n = (size_t)darr[i].ptr_array_len;
            void **lists = copy_lists(&darr[i]);

            aq_armci_attach(handle, proc,
                            start_segments(way, lists, lists + n, n, (size_t)darr[i].bytes, proc),
                            lists);
        }
    }
    return 0;
}

int PARMCI_PutV(armci_giov_t darr[], int len, int proc)
{
    return vector_blocking("ARMCI_PutV", AQ_ARMCI_PUT, darr, len, proc);
}
AQ_ARMCI_TWIN(PutV);

int PARMCI_GetV(armci_giov_t darr[], int len, int proc)
{
    return vector_blocking("ARMCI_GetV", AQ_ARMCI_GET, darr, len, proc);
}
AQ_ARMCI_TWIN(GetV);

int PARMCI_NbPutV(armci_giov_t darr[], int len, int proc, armci_hdl_t *handle)
{
    return vector_nb("ARMCI_NbPutV", AQ_ARMCI_PUT, darr, len, proc, handle);
}
AQ_ARMCI_TWIN(NbPutV);

int PARMCI_NbGetV(armci_giov_t darr[], int len, int proc, armci_hdl_t *handle)
{
    return vector_nb("ARMCI_NbGetV", AQ_ARMCI_GET, darr, len, proc, handle);
}
AQ_ARMCI_TWIN(NbGetV);
