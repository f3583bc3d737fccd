/*
 * armci_get.c - contiguous and strided get, and values.
 *
 * A get from mapped memory is a copy. Other gets are gex_ calls; a blocking get waits for its
 * event. A long non-blocking one may stay in the call for a moment, see stay().
 *
 * Threads   the program's
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_choose.h"
#include "armci_impl.h"

#include <sched.h>
#include <string.h>

#include "aqueduct.h"

/* How long a non-blocking get stays. Short ones do not, so that gets from several ranks overlap. */
#define STAY_FROM     ((size_t)65536)   /* bytes of a get */
#define STAY_MAX      ((size_t)4 << 20) /* bytes that count */
#define STAY          1e-4              /* seconds */
#define STAY_BYTE     2e-9              /* seconds more for each byte */
#define STAY_HALVINGS 4u
#define STAY_AGAIN    16u /* gets of which one stays as long as at first */
#define STAY_YIELD    64u /* steps between two yields */

static gex_Event_t start_run(const struct aq_armci_section *section,
                             const struct aq_armci_peer *peer, int proc)
{
    void *src = aq_armci_owner(peer, section->src);

    aq_armci_check_range(section->call, section->src, section->bytes, proc);
    if (proc == aq_armci.me) {
        memmove(section->dst, src, section->bytes); /* the two ranges may overlap */
        return GEX_EVENT_INVALID;
    }
    if (!aq_armci_is_local(peer) && aq_armci_get_chunks(proc, section->dst, src, section->bytes))
        return GEX_EVENT_INVALID;
    return gex_RMA_GetNB(aq_armci.tm, section->dst, (gex_Rank_t)proc, src, section->bytes, 0);
}

/* Starts a get for each run. */
static gex_Event_t start_segments(const struct aq_armci_section *section, int proc)
{
    struct aq_armci_cursor at;

    aq_armci_cursor_begin(&at, section);
    gex_NBI_BeginAccessRegion(0);
    for (size_t run = 0; run < section->runs; run++) {
        gex_RMA_GetNBI(aq_armci.tm, at.dst, (gex_Rank_t)proc, at.src, section->bytes, 0);
        aq_armci_cursor_next(&at);
    }
    AQ_ARMCI_COUNT(strided_segments, section->runs);
    return gex_NBI_EndAccessRegion(0);
}

static gex_Event_t start_section(const struct aq_armci_section *section, int proc)
{
    struct aq_armci_peer *peer = aq_armci_order_after(proc);

    if (section->levels == 0)
        return start_run(section, peer, proc);
    aq_armci_check_section(section, section->src, section->src_stride, proc);
    if (!aq_armci_is_local(peer)) {
        if (aq_armci_by_segments(section, false))
            return start_segments(section, proc);
        AQ_ARMCI_COUNT(strided_calls, 1);
    }
    return gex_VIS_StridedGetNB(aq_armci.tm, section->dst, section->dst_stride, (gex_Rank_t)proc,
                                aq_armci_owner(peer, section->src), section->src_stride,
                                section->bytes, section->count, section->levels, 0);
}

static __attribute__((noinline)) int get(const char *call, ARMCI_STRIDED_ARGS_)
{
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    aq_armci_tick();
    gex_Event_Wait(start_section(&section, proc));
    return 0;
}

/* Where no thread serves others, a rank that starts a get and then computes answers nobody, and
 * nobody answers it. Ranks of a parallel program often start their gets at about the same time. A
 * rank therefore stays in a long non-blocking get for as long as the get is likely to take, and
 * serves others meanwhile. If the get is not complete then, the rank stays half as long in the next
 * one from that peer, and now and then as long as at first. A rank whose get is complete stays
 * while its part of another's is under way, but not twice as long. Returns the event, or
 * GEX_EVENT_INVALID: the get is complete. */
static gex_Event_t stay(int proc, gex_Event_t event, size_t bytes)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];
    const unsigned late = peer->late % STAY_AGAIN,
                   halvings = late < STAY_HALVINGS ? late : STAY_HALVINGS;
    const double first = STAY + STAY_BYTE * (double)(bytes < STAY_MAX ? bytes : STAY_MAX);
    const double began = armci_timer();
    double limit = first / (1u << halvings);
    bool done = false;

    for (unsigned step = 1;; step++) {
        /* before the look: a get that has come in the meantime is not late */
        const double stayed = armci_timer() - began;

        if (!done && gex_Event_Test(event) == GASNET_OK) {
            done = true;
            limit = 2 * stayed;
        }
        if (stayed > limit || (done && !aqueduct_is_busy()))
            break;
        if (step % STAY_YIELD == 0)
            sched_yield();
        gasnet_AMPoll();
    }
    peer->late = (uint16_t)(done ? 0 : peer->late + 1);
    return done ? GEX_EVENT_INVALID : event;
}

static gex_Event_t start_nb(const struct aq_armci_section *section, int proc)
{
    const gex_Event_t event = start_section(section, proc);
    const size_t bytes = section->bytes * section->runs;

    if (!aq_armci.must_poll || event == GEX_EVENT_INVALID || aq_armci.peers[proc].one_sided)
        return event;
    if (bytes >= STAY_FROM)
        return stay(proc, event, bytes);
    gasnet_AMPoll(); /* a request that has come already */
    return event;
}

static __attribute__((noinline)) int get_nb(const char *call, ARMCI_STRIDED_ARGS_,
                                            armci_hdl_t *handle)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);
    struct aq_armci_section section;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (batch != NULL)
        aq_armci_batch_section(handle, batch, AQ_ARMCI_GET, proc, &section);
    else
        aq_armci_attach(handle, proc, start_nb(&section, proc), NULL);
    return 0;
}

int PARMCI_GetS(ARMCI_STRIDED_ARGS_)
{
    return get("ARMCI_GetS", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count, stride_levels,
               proc);
}
AQ_ARMCI_TWIN(GetS);

int PARMCI_NbGetS(ARMCI_STRIDED_ARGS_, armci_hdl_t *handle)
{
    return get_nb("ARMCI_NbGetS", src_ptr, src_stride_arr, dst_ptr, dst_stride_arr, count,
                  stride_levels, proc, handle);
}
AQ_ARMCI_TWIN(NbGetS);

static __attribute__((noinline)) int get_run_any(const char *call, void *src, void *dst, int bytes,
                                                 int proc)
{
    if (aq_armci_copied(call, src, dst, src, bytes, proc) != NULL) {
        aq_armci_copy(dst, src, bytes);
        return 0;
    }
    return get(call, src, NULL, dst, NULL, &bytes, 0, proc);
}

int PARMCI_Get(void *src, void *dst, int bytes, int proc)
{
    return aq_armci_copied_word(src, dst, bytes, proc)
               ? 0
               : get_run_any("ARMCI_Get", src, dst, bytes, proc);
}
AQ_ARMCI_TWIN(Get);

static __attribute__((noinline)) int get_run_any_nb(void *src, void *dst, int bytes, int proc,
                                                    armci_hdl_t *handle)
{
    if (aq_armci_copied("ARMCI_NbGet", src, dst, src, bytes, proc) != NULL) {
        aq_armci_copy(dst, src, bytes);
        aq_armci_note_operation(handle);
        return 0;
    }
    if (handle != NULL
        && aq_armci_batch_run("ARMCI_NbGet", handle, AQ_ARMCI_GET, proc, dst, src, bytes))
        return 0;
    return get_nb("ARMCI_NbGet", src, NULL, dst, NULL, &bytes, 0, proc, handle);
}

int PARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle)
{
    if (aq_armci_copied_word(src, dst, bytes, proc)
        || (!AQ_ARMCI_CHECKS && handle != NULL
            && aq_armci_batch_repeat(handle, AQ_ARMCI_GET, proc, dst, src, bytes)))
        return 0;
    return get_run_any_nb(src, dst, bytes, proc, handle);
}
AQ_ARMCI_TWIN(NbGet);

#define GET_VALUE(name, type)                                                           \
    type PARMCI_GetValue##name(void *src, int proc)                                     \
    {                                                                                   \
        type value;                                                                     \
                                                                                        \
        if (AQ_UNLIKELY(src == NULL || !aq_armci_is_proc(proc)))                        \
            aq_armci_check_target("ARMCI_GetValue" #name, src, proc);                   \
        if (!aq_armci_copied_word(src, &value, (int)sizeof(value), proc))               \
            get_run_any("ARMCI_GetValue" #name, src, &value, (int)sizeof(value), proc); \
        return value;                                                                   \
    }                                                                                   \
    AQ_ARMCI_TWIN(GetValue##name)

GET_VALUE(Int, int);
GET_VALUE(Long, long);
GET_VALUE(Float, float);
GET_VALUE(Double, double);
