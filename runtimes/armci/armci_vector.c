/*
 * armci_vector.c - put and get in the vector format: lists of segments.
 *
 * Segments of mapped memory are copied one by one. Other segments go as one indexed transfer for
 * each descriptor; a blocking call starts those of all its descriptors and then waits, a put until
 * its sources may be reused (as a put of a section does). A transfer that a call leaves under way
 * works on copies of the lists, since the program may change its lists when the call has returned.
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

/* Starts the transfers of len descriptors as one event. The lists stay unchanged until it is
 * complete. flags: of puts. */
static gex_Event_t start_lists(enum aq_armci_way way, const armci_giov_t *darr, int len, int proc,
                               gex_Flags_t flags)
{
    gex_NBI_BeginAccessRegion(0);
    for (const armci_giov_t *giov = darr; giov < darr + len; giov++) {
        const size_t n = (size_t)giov->ptr_array_len, bytes = (size_t)giov->bytes;

        if (way == AQ_ARMCI_PUT)
            gex_VIS_IndexedPutNBI(aq_armci.tm, (gex_Rank_t)proc, n, giov->dst_ptr_array, bytes, n,
                                  giov->src_ptr_array, bytes, flags);
        else
            gex_VIS_IndexedGetNBI(aq_armci.tm, n, giov->dst_ptr_array, bytes, (gex_Rank_t)proc, n,
                                  giov->src_ptr_array, bytes, 0);
    }
    AQ_ARMCI_COUNT(vector_calls, len);
    return gex_NBI_EndAccessRegion(0);
}

/* Returns a copy of len descriptors and of their lists, in one block. */
static armci_giov_t *copy_lists(const armci_giov_t *darr, int len)
{
    armci_giov_t *copy;
    size_t total = 0;
    void **list;

    for (int i = 0; i < len; i++)
        total += 2 * (size_t)darr[i].ptr_array_len;
    copy = malloc((size_t)len * sizeof(*copy) + total * sizeof(void *));
    if (copy == NULL)
        aq_armci_fatal("no memory for the addresses of %zu segments", total / 2);
    list = (void **)(void *)(copy + len);
    for (int i = 0; i < len; i++) {
        const size_t n = (size_t)darr[i].ptr_array_len;

        copy[i] = darr[i];
        copy[i].src_ptr_array = memcpy(list, darr[i].src_ptr_array, n * sizeof(void *));
        copy[i].dst_ptr_array = memcpy(list + n, darr[i].dst_ptr_array, n * sizeof(void *));
        list += 2 * n;
    }
    return copy;
}

/* Puts to a rank whose memory is not mapped. Returns when the sources may be reused. */
static void put_lists(const armci_giov_t *darr, int len, int proc)
{
    armci_giov_t *copy = copy_lists(darr, len);
    const gex_Event_t event = start_lists(AQ_ARMCI_PUT, copy, len, proc, GEX_FLAG_ENABLE_LEAF_LC);

    if (event != GEX_EVENT_INVALID)
        gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    aq_armci_keep_put(proc, event, copy);
}

static int vector_blocking(const char *call, enum aq_armci_way way, const armci_giov_t *darr,
                           int len, int proc)
{
    const int rc = aq_armci_check_giov(call, darr, len, proc);
    bool is_local;

    if (rc != 0)
        return rc;
    aq_armci_tick();
    is_local = aq_armci_is_local(aq_armci_order_after(proc));
    for (int i = 0; i < len; i++) {
        check_segments(call, way, &darr[i], proc);
        if (is_local)
            copy_segments(&darr[i]);
    }
    if (!is_local && way == AQ_ARMCI_PUT)
        put_lists(darr, len, proc);
    else if (!is_local)
        gex_Event_Wait(start_lists(way, darr, len, proc, 0));
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
    bool is_local;

    if (rc != 0)
        return rc;
    is_local = aq_armci_is_local(aq_armci_order_after(proc));
    for (int i = 0; i < len; i++) {
        check_segments(call, way, &darr[i], proc);
        if (batch != NULL)
            batch_segments(handle, batch, way, &darr[i], proc);
        else if (is_local)
            copy_segments(&darr[i]);
    }
    if (batch == NULL && is_local) {
        aq_armci_note_operation(handle);
    } else if (batch == NULL) {
        armci_giov_t *copy = copy_lists(darr, len);

        aq_armci_attach(handle, proc, start_lists(way, copy, len, proc, 0), copy);
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
