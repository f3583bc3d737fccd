/*
 * armci_put.c - contiguous and strided put, with flag or without, and values.
 *
 * A blocking put to another host returns when its source may be reused; its event stays with the
 * target until the next operation on it. Memory that is mapped here is written at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <string.h>

/* A blocking put's event: what is still on its way. */
static void keep(int proc, gex_Event_t event)
{
    if (event == GEX_EVENT_INVALID)
        return;
    aq_armci.peers[proc].put = event;
    aq_armci_mark(proc);
}

static void put_run(const struct aq_armci_section *section, int proc)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);

    aq_armci_check_range("ARMCI_Put", section->dst, section->bytes, proc);
    if (proc == aq_armci.me) {
        memmove(section->dst, section->src, section->bytes); /* to oneself the two may overlap */
        return;
    }
    keep(proc, gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc, aq_armci_owner(peer, section->dst),
                             section->src, section->bytes, GEX_EVENT_NOW, 0));
}

static gex_Event_t start_section(const struct aq_armci_section *section, int proc,
                                 gex_Flags_t flags)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);

    aq_armci_check_range("ARMCI_PutS", section->dst, section->bytes, proc);
    return gex_VIS_StridedPutNB(aq_armci.tm, (gex_Rank_t)proc, aq_armci_owner(peer, section->dst),
                                section->dst_stride, section->src, section->src_stride,
                                section->bytes, section->count, section->levels, flags);
}

int aq_armci_put_section(const struct aq_armci_section *section, int proc)
{
    gex_Event_t event;

    aq_armci_tick();
    if (section->levels == 0) {
        put_run(section, proc);
        return 0;
    }
    event = start_section(section, proc, GEX_FLAG_ENABLE_LEAF_LC);
    if (event != GEX_EVENT_INVALID)
        gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    keep(proc, event);
    return 0;
}

static int put_section_nb(const struct aq_armci_section *section, int proc, armci_hdl_t *handle)
{
    if (proc == aq_armci.me && section->levels == 0)
        return aq_armci_put_section(section, proc);
    if (aq_armci_batch_of(handle) != NULL)
        aq_armci_batch_section(handle, AQ_ARMCI_PUT, proc, section);
    else
        aq_armci_attach(handle, proc, start_section(section, proc, 0), NULL);
    return 0;
}

int PARMCI_Put(void *src, void *dst, int bytes, int proc)
{
    return PARMCI_PutS(src, NULL, dst, NULL, &bytes, 0, proc);
}
AQ_ARMCI_TWIN(Put);

int PARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    return PARMCI_NbPutS(src, NULL, dst, NULL, &bytes, 0, proc, handle);
}
AQ_ARMCI_TWIN(NbPut);

int PARMCI_PutS(ARMCI_STRIDED_ARGS_)
{
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(&section, src_ptr, src_stride_arr, dst_ptr, dst_stride_arr,
                                         count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    return aq_armci_put_section(&section, proc);
}
AQ_ARMCI_TWIN(PutS);

int PARMCI_NbPutS(ARMCI_STRIDED_ARGS_, armci_hdl_t *handle)
{
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(&section, src_ptr, src_stride_arr, dst_ptr, dst_stride_arr,
                                         count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    return put_section_nb(&section, proc, handle);
}
AQ_ARMCI_TWIN(NbPutS);

/* --- with a flag, which is written after all data is at the target --- */

static int put_flag(int *flag, int value, int proc)
{
    struct aq_armci_peer *peer;

    if (flag == NULL)
        return FAIL;
    peer = aq_armci_order_after(proc);
    aq_armci_check_range("ARMCI_PutS_flag", flag, sizeof(*flag), proc);
    if (aq_armci_is_local(peer)) /* release: who finds the flag finds the data */
        __atomic_store_n(flag, value, __ATOMIC_RELEASE);
    else
        gex_RMA_PutBlocking(aq_armci.tm, (gex_Rank_t)proc, flag, &value, sizeof(value), 0);
    return 0;
}

int PARMCI_PutS_flag(void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[],
                     int count[], int stride_levels, int *flag, int value, int proc)
{
    const int rc =
        PARMCI_PutS(src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count, stride_levels, proc);

    return rc != 0 ? rc : put_flag(flag, value, proc);
}
AQ_ARMCI_TWIN(PutS_flag);

int PARMCI_PutS_flag_dir(void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[],
                         int count[], int stride_levels, int *flag, int value, int proc)
{
    return PARMCI_PutS_flag(src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count, stride_levels,
                            flag, value, proc);
}
AQ_ARMCI_TWIN(PutS_flag_dir);

int PARMCI_Put_flag(void *src, void *dst, int bytes, int *flag, int value, int proc)
{
    return PARMCI_PutS_flag(src, NULL, dst, NULL, &bytes, 0, flag, value, proc);
}
AQ_ARMCI_TWIN(Put_flag);

/* --- values: copied before the call returns --- */

static int put_value_nb(void *value, size_t bytes, void *dst, int proc, armci_hdl_t *handle)
{
    struct aq_armci_peer *peer;

    if (dst == NULL)
        return FAIL;
    if (!aq_armci_is_proc(proc))
        return FAIL5;
    if (aq_armci_batch_of(handle) != NULL) {
        aq_armci_batch_add(handle, AQ_ARMCI_PUT, proc, value, dst, bytes, true);
        return 0;
    }
    peer = aq_armci_order_after(proc);
    aq_armci_check_range("ARMCI_NbPutValue", dst, bytes, proc);
    aq_armci_attach(handle, proc,
                    gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc, aq_armci_owner(peer, dst), value,
                                  bytes, GEX_EVENT_NOW, 0),
                    NULL);
    return 0;
}

#define PUT_VALUE(name, type)                                                          \
    int PARMCI_PutValue##name(type value, void *dst, int proc)                         \
    {                                                                                  \
        if (dst == NULL || !aq_armci_is_proc(proc))                                    \
            aq_armci_fatal("ARMCI_PutValue" #name ": address %p, rank %d", dst, proc); \
        return PARMCI_Put(&value, dst, (int)sizeof(value), proc);                      \
    }                                                                                  \
    AQ_ARMCI_TWIN(PutValue##name);                                                     \
    int PARMCI_NbPutValue##name(type value, void *dst, int proc, armci_hdl_t *handle)  \
    {                                                                                  \
        return put_value_nb(&value, sizeof(value), dst, proc, handle);                 \
    }                                                                                  \
    AQ_ARMCI_TWIN(NbPutValue##name)

PUT_VALUE(Int, int);
PUT_VALUE(Long, long);
PUT_VALUE(Float, float);
PUT_VALUE(Double, double);
