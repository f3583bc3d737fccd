/*
 * armci_acc.c - accumulate: in mapped memory under the target's locks, elsewhere by messages.
 *
 * Promise   at return the source may be reused: its elements are added, or in messages. Fences wait
 *           for these
 * Threads   the program's
 * Uses      armci_adder.h, armci_stream.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_adder.h"
#include "armci_impl.h"
#include "armci_stream.h"

static int check_op(const char *call, int op)
{
    const int type = aq_armci_acc_type(op);

    if (type < 0)
        aq_armci_fatal("%s: %d is no accumulate operation", call, op);
    return type;
}

static int accumulate(const char *call, int op, void *scale, ARMCI_STRIDED_ARGS_)
{
    const int type = check_op(call, op);
    struct aq_armci_section section;
    const struct aq_armci_peer *peer;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0 || scale == NULL)
        return scale == NULL ? FAIL : rc < 0 ? rc : 0;
    aq_armci_tick();
    peer = aq_armci_stream_after(proc);
    aq_armci_check_section(&section, section.dst, section.dst_stride, proc);
    /* what a run has behind its last whole element is ignored */
    section.bytes -= section.bytes % aq_armci_acc_size(type);
    if (section.bytes == 0)
        return 0;
    if (aq_armci_is_local(peer)) {
        struct aq_armci_adder adder;
        struct aq_armci_cursor at;

        aq_armci_cursor_begin(&at, &section);
        aq_armci_adder_begin(&adder, peer, type, scale);
        for (size_t run = 0; run < section.runs; run++) {
            aq_armci_adder_add(&adder, at.dst, at.src, section.bytes);
            aq_armci_cursor_next(&at);
        }
        aq_armci_adder_end(&adder);
    } else {
        aq_armci_stream_section(type, scale, &section, proc);
    }
    return 0;
}

/* Returns rc. An operation that has succeeded is complete at the origin, and so on its handle. */
static int noted(armci_hdl_t *handle, int rc)
{
    if (rc == 0)
        aq_armci_note_operation(handle);
    return rc;
}

int PARMCI_AccS(int op, void *scale, ARMCI_STRIDED_ARGS_)
{
    return accumulate("ARMCI_AccS", op, scale, src_ptr, src_stride_arr, dst_ptr, dst_stride_arr,
                      count, stride_levels, proc);
}
AQ_ARMCI_TWIN(AccS);

int PARMCI_NbAccS(int op, void *scale, ARMCI_STRIDED_ARGS_, armci_hdl_t *handle)
{
    return noted(handle, accumulate("ARMCI_NbAccS", op, scale, src_ptr, src_stride_arr, dst_ptr,
                                    dst_stride_arr, count, stride_levels, proc));
}
AQ_ARMCI_TWIN(NbAccS);

int PARMCI_Acc(int op, void *scale, void *src, void *dst, int bytes, int proc)
{
    return accumulate("ARMCI_Acc", op, scale, src, NULL, dst, NULL, &bytes, 0, proc);
}
AQ_ARMCI_TWIN(Acc);

int PARMCI_NbAcc(int op, void *scale, void *src, void *dst, int bytes, int proc,
                 armci_hdl_t *handle)
{
    return noted(handle,
                 accumulate("ARMCI_NbAcc", op, scale, src, NULL, dst, NULL, &bytes, 0, proc));
}
AQ_ARMCI_TWIN(NbAcc);

/* Sends the segments of a descriptor. A segment that is too long for a message goes as a section of
 * one run. */
static void send_giov(const char *call, int type, void *scale, const armci_giov_t *giov, int proc)
{
    for (int i = 0; i < giov->ptr_array_len;) {
        const int n = aq_armci_stream_list(type, scale, giov, i, proc);
        int bytes = giov->bytes;

        if (n == 0)
            accumulate(call, type, scale, giov->src_ptr_array[i], NULL, giov->dst_ptr_array[i],
                       NULL, &bytes, 0, proc);
        i += n > 0 ? n : 1;
    }
}

static int accumulate_lists(const char *call, int op, void *scale, armci_giov_t darr[], int len,
                            int proc)
{
    const int type = check_op(call, op);
    const int rc = aq_armci_check_giov(call, darr, len, proc);
    const struct aq_armci_peer *peer;
    struct aq_armci_adder adder;

    if (rc != 0 || scale == NULL)
        return rc != 0 ? rc : FAIL;
    aq_armci_tick();
    peer = aq_armci_stream_after(proc);
    aq_armci_adder_begin(&adder, peer, type, scale);
    for (int i = 0; i < len; i++) {
        for (int k = 0; k < darr[i].ptr_array_len; k++) {
            aq_armci_check_range(call, darr[i].dst_ptr_array[k], (size_t)darr[i].bytes, proc);
            if (aq_armci_is_local(peer))
                aq_armci_adder_add(&adder, darr[i].dst_ptr_array[k], darr[i].src_ptr_array[k],
                                   (size_t)darr[i].bytes);
        }
        if (!aq_armci_is_local(peer))
            send_giov(call, type, scale, &darr[i], proc);
    }
    aq_armci_adder_end(&adder);
    return 0;
}

int PARMCI_AccV(int op, void *scale, armci_giov_t darr[], int len, int proc)
{
    return accumulate_lists("ARMCI_AccV", op, scale, darr, len, proc);
}
AQ_ARMCI_TWIN(AccV);

int PARMCI_NbAccV(int op, void *scale, armci_giov_t darr[], int len, int proc, armci_hdl_t *handle)
{
    return noted(handle, accumulate_lists("ARMCI_NbAccV", op, scale, darr, len, proc));
}
AQ_ARMCI_TWIN(NbAccV);
