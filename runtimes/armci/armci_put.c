/*
 * armci_put.c - contiguous and strided put, with flag or without, and values.
 *
 * A blocking put to a rank without shared memory returns when its source may be reused. A short one
 * may be a message (aq_armci_by_messages), and later messages follow it. The event of another stays
 * in struct aq_armci_peer, and the next operation on that rank waits for it. A put to mapped memory
 * is a copy.
 *
 * Threads   the program's
 * Order     aq_armci_order_after(), aq_armci_stream_after(): operations on one target take effect
 *           in the order of the calls
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_choose.h"
#include "armci_impl.h"
#include "armci_stream.h"

#include <string.h>

static void put_message(const struct aq_armci_section *section, int proc)
{
    aq_armci_stream_after(proc);
    AQ_ARMCI_COUNT(put_eager, 1);
    aq_armci_stream_section(AQ_ARMCI_STORE, NULL, section, proc);
}

static void put_run(const struct aq_armci_section *section, int proc)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);

    aq_armci_check_range(section->call, section->dst, section->bytes, proc);
    if (proc == aq_armci.me) {
        memmove(section->dst, section->src, section->bytes); /* the two ranges may overlap */
        return;
    }
    if (!aq_armci_is_local(peer)
        && aq_armci_put_chunks(proc, section->dst, section->src, section->bytes))
        return;
    aq_armci_keep_put(proc,
                      gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc,
                                    aq_armci_owner(peer, section->dst), section->src,
                                    section->bytes, GEX_EVENT_NOW, 0),
                      NULL);
}

/* Starts a put for each run. lc_opt says when the sources may be reused. */
static gex_Event_t start_segments(const struct aq_armci_section *section, int proc,
                                  gex_Event_t *lc_opt)
{
    struct aq_armci_cursor at;

    aq_armci_cursor_begin(&at, section);
    gex_NBI_BeginAccessRegion(0);
    for (size_t run = 0; run < section->runs; run++) {
        gex_RMA_PutNBI(aq_armci.tm, (gex_Rank_t)proc, at.dst, at.src, section->bytes, lc_opt, 0);
        aq_armci_cursor_next(&at);
    }
    AQ_ARMCI_COUNT(strided_segments, section->runs);
    return gex_NBI_EndAccessRegion(0);
}

/* Starts the put of a section of more than one run. */
static gex_Event_t start_section(const struct aq_armci_section *section, int proc, bool blocking)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);
    gex_Event_t event;

    aq_armci_check_section(section, section->dst, section->dst_stride, proc);
    if (!aq_armci_is_local(peer)) {
        if (aq_armci_by_segments(section, true))
            return start_segments(section, proc, blocking ? GEX_EVENT_NOW : GEX_EVENT_DEFER);
        AQ_ARMCI_COUNT(strided_calls, 1);
    }
    event = gex_VIS_StridedPutNB(aq_armci.tm, (gex_Rank_t)proc, aq_armci_owner(peer, section->dst),
                                 section->dst_stride, section->src, section->src_stride,
                                 section->bytes, section->count, section->levels,
                                 blocking ? GEX_FLAG_ENABLE_LEAF_LC : 0);
    if (blocking && event != GEX_EVENT_INVALID)
        gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    return event;
}

int aq_armci_put_section(const struct aq_armci_section *section, int proc)
{
    aq_armci_tick();
    if (aq_armci_by_messages(section, proc)) {
        aq_armci_check_section(section, section->dst, section->dst_stride, proc);
        put_message(section, proc);
    } else if (section->levels == 0) {
        put_run(section, proc);
    } else {
        aq_armci_keep_put(proc, start_section(section, proc, true), NULL);
    }
    return 0;
}

static void put_run_nb(const struct aq_armci_section *section, int proc, armci_hdl_t *handle)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);

    if (aq_armci_is_local(peer) || aq_armci_protocol.put == AQ_ARMCI_PUT_BUFFERED) {
        put_run(section, proc); /* complete when the call returns */
        aq_armci_note_operation(handle);
        return;
    }
    aq_armci_check_range(section->call, section->dst, section->bytes, proc);
    AQ_ARMCI_COUNT(put_direct, 1);
    aq_armci_attach(handle, proc,
                    gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc, section->dst, section->src,
                                  section->bytes, GEX_EVENT_DEFER, 0),
                    NULL);
}

static int put_section_nb(const struct aq_armci_section *section, int proc, armci_hdl_t *handle)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);

    if (batch != NULL)
        aq_armci_batch_section(handle, batch, AQ_ARMCI_PUT, proc, section);
    else if (section->levels == 0)
        put_run_nb(section, proc, handle);
    else
        aq_armci_attach(handle, proc, start_section(section, proc, false), NULL);
    return 0;
}

static __attribute__((noinline)) int put(const char *call, ARMCI_STRIDED_ARGS_)
{
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    return aq_armci_put_section(&section, proc);
}

static __attribute__((noinline)) int put_nb(const char *call, ARMCI_STRIDED_ARGS_,
                                            armci_hdl_t *handle)
{
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    return put_section_nb(&section, proc, handle);
}

static __attribute__((noinline)) int put_run_any(const char *call, void *src, void *dst, int bytes,
                                                 int proc)
{
    if (aq_armci_copied(call, src, dst, dst, bytes, proc) != NULL) {
        aq_armci_copy(dst, src, bytes);
        return 0;
    }
    return put(call, src, NULL, dst, NULL, &bytes, 0, proc);
}

int PARMCI_Put(void *src, void *dst, int bytes, int proc)
{
    return aq_armci_copied_word(src, dst, bytes, proc)
               ? 0
               : put_run_any("ARMCI_Put", src, dst, bytes, proc);
}
AQ_ARMCI_TWIN(Put);

static __attribute__((noinline)) int put_run_any_nb(void *src, void *dst, int bytes, int proc,
                                                    armci_hdl_t *handle)
{
    if (aq_armci_copied("ARMCI_NbPut", src, dst, dst, bytes, proc) != NULL) {
        aq_armci_copy(dst, src, bytes);
        aq_armci_note_operation(handle);
        return 0;
    }
    if (handle != NULL
        && aq_armci_batch_run("ARMCI_NbPut", handle, AQ_ARMCI_PUT, proc, src, dst, bytes))
        return 0;
    return put_nb("ARMCI_NbPut", src, NULL, dst, NULL, &bytes, 0, proc, handle);
}

int PARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    if (aq_armci_copied_word(src, dst, bytes, proc)
        || (!AQ_ARMCI_CHECKS && handle != NULL
            && aq_armci_batch_repeat(handle, AQ_ARMCI_PUT, proc, src, dst, bytes)))
        return 0;
    return put_run_any_nb(src, dst, bytes, proc, handle);
}
AQ_ARMCI_TWIN(NbPut);

int PARMCI_PutS(ARMCI_STRIDED_ARGS_)
{
    return put("ARMCI_PutS", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count, stride_levels,
               proc);
}
AQ_ARMCI_TWIN(PutS);

int PARMCI_NbPutS(ARMCI_STRIDED_ARGS_, armci_hdl_t *handle)
{
    return put_nb("ARMCI_NbPutS", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count,
                  stride_levels, proc, handle);
}
AQ_ARMCI_TWIN(NbPutS);

/* --- with a flag, which is written when all data have arrived at the target --- */

void aq_armci_put_word(int proc, void *dst, const void *word, size_t bytes)
{
    const struct aq_armci_section section = { .call = "the put of a word",
                                              .src = (void *)(uintptr_t)word,
                                              .dst = dst,
                                              .bytes = bytes,
                                              .runs = 1 };

    if (aq_armci_by_messages(&section, proc)) {
        put_message(&section, proc);
    } else {
        aq_armci_order_after(proc);
        gex_RMA_PutBlocking(aq_armci.tm, (gex_Rank_t)proc, dst, word, bytes, 0);
    }
}

static void put_flag(const char *call, int *flag, int value, int proc)
{
    aq_armci_check_range(call, flag, sizeof(*flag), proc);
    if (aq_armci_is_local(&aq_armci.peers[proc]))
        __atomic_store_n(flag, value, __ATOMIC_RELEASE); /* who reads the flag reads the data */
    else
        aq_armci_put_word(proc, flag, &value, sizeof(value));
}

static int put_with_flag(const char *call, void *src_ptr, int src_stride_arr[], void *dst_ptr,
                         int dst_stride_arr[], int count[], int stride_levels, int *flag, int value,
                         int proc)
{
    int rc;

    if (flag == NULL)
        return FAIL;
    rc = put(call, src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count, stride_levels, proc);
    if (rc == 0)
        put_flag(call, flag, value, proc);
    return rc;
}

int PARMCI_PutS_flag(void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[],
                     int count[], int stride_levels, int *flag, int value, int proc)
{
    return put_with_flag("ARMCI_PutS_flag", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count,
                         stride_levels, flag, value, proc);
}
AQ_ARMCI_TWIN(PutS_flag);

int PARMCI_PutS_flag_dir(void *src_ptr, int src_stride_arr[], void *dst_ptr, int dst_stride_arr[],
                         int count[], int stride_levels, int *flag, int value, int proc)
{
    return put_with_flag("ARMCI_PutS_flag_dir", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr,
                         count, stride_levels, flag, value, proc);
}
AQ_ARMCI_TWIN(PutS_flag_dir);

int PARMCI_Put_flag(void *src, void *dst, int bytes, int *flag, int value, int proc)
{
    return put_with_flag("ARMCI_Put_flag", src, NULL, dst, NULL, &bytes, 0, flag, value, proc);
}
AQ_ARMCI_TWIN(Put_flag);

/* --- values, which are copied before the call returns --- */

static int put_value_nb(const char *call, void *value, size_t bytes, void *dst, int proc,
                        armci_hdl_t *handle)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);
    struct aq_armci_peer *peer;

    if (dst == NULL)
        return FAIL;
    if (!aq_armci_is_proc(proc)) {
        aq_armci_say_no_rank(call, proc);
        return FAIL5;
    }
    aq_armci_check_range(call, dst, bytes, proc);
    if (batch != NULL) {
        aq_armci_batch_add(handle, batch, AQ_ARMCI_PUT, proc, value, dst, bytes, true);
        return 0;
    }
    peer = aq_armci_order_after(proc);
    aq_armci_attach(handle, proc,
                    gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc, aq_armci_owner(peer, dst), value,
                                  bytes, GEX_EVENT_NOW, 0),
                    NULL);
    return 0;
}

#define PUT_VALUE(name, type)                                                                    \
    int PARMCI_PutValue##name(type value, void *dst, int proc)                                   \
    {                                                                                            \
        if (AQ_UNLIKELY(dst == NULL || !aq_armci_is_proc(proc)))                                 \
            aq_armci_check_target("ARMCI_PutValue" #name, dst, proc);                            \
        if (aq_armci_copied_word(&value, dst, (int)sizeof(value), proc))                         \
            return 0;                                                                            \
        return put_run_any("ARMCI_PutValue" #name, &value, dst, (int)sizeof(value), proc);       \
    }                                                                                            \
    AQ_ARMCI_TWIN(PutValue##name);                                                               \
    int PARMCI_NbPutValue##name(type value, void *dst, int proc, armci_hdl_t *handle)            \
    {                                                                                            \
        return put_value_nb("ARMCI_NbPutValue" #name, &value, sizeof(value), dst, proc, handle); \
    }                                                                                            \
    AQ_ARMCI_TWIN(NbPutValue##name)

PUT_VALUE(Int, int);
PUT_VALUE(Long, long);
PUT_VALUE(Float, float);
PUT_VALUE(Double, double);
