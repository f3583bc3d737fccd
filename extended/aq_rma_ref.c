/*
 * aq_rma_ref.c - put and get over active messages, for conduits without their own.
 *
 * A put is sent in requests that carry the data; each is acknowledged by a reply once its data is
 * in place. A get is sent in requests that are answered by replies with the data. Chunks follow
 * each other without waiting; only the flow control of messages limits them. Messages copy or place
 * their payload before they return, so a put is locally complete when it is started.
 *
 * With GEX_FLAG_IMMEDIATE no call waits: a transfer of several fragments is passed to aq_vis_ref.c,
 * which sends the first or declines, and sends the others in polls. A put whose source must be free
 * at return is declined.
 *
 * Threads   any; replies are counted on whichever thread polls
 * Promise   a put is acknowledged after its data is readable at the target; 1, 2, 4 and 8 bytes
 *           aligned to their size are never seen half written
 * Wire      PUT_MEDIUM(dest, op) + data, PUT_LONG(op) placed at dest -> PUT_ACK(op)
 *           GET_REQUEST(src, dest, op, nbytes) -> GET_DATA(dest, op) + data
 * Uses      core/aq_am.h, core/aq_op.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_ref.h"

#include <string.h>

#include "core/aq_am.h"
#include "base/aq_env.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "base/aq_word.h"
#include "core/aq_op.h"
#include "extended/aq_vis.h"

/* Chunks are whole words, so that a transfer of aligned words is cut between words. */
#define AQ_FRAG_UNIT ((size_t)8)

/* order of the choices in aq_env.def */
enum { AQ_REF_PUT_AUTO, AQ_REF_PUT_MEDIUM, AQ_REF_PUT_LONG };
static unsigned aq_ref_put_mode AQ_JOB_STATE;

/* Ends the job if a message from the network would access memory outside this process's
 * segments. */
void aq_ref_check_range(gex_Token_t token, const char *what, const void *addr, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)token, (void)what, (void)addr, (void)nbytes;
#else
    gex_Token_Info_t info;

    if (AQ_LIKELY(aq_bound_is_self(addr, nbytes)))
        return;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    aq_fatal("rank %u asked for a %s of [%p, +%zu), which is not inside a segment of this process",
             info.gex_srcrank, what, addr, nbytes);
#endif
}

/* --- put --- */

static void aq_ref_acknowledge(gex_Token_t token, gex_AM_Arg_t op_high, gex_AM_Arg_t op_low)
{
    const gex_AM_Arg_t args[] = { op_high, op_low };

    aq_am_reply_short(token, AQ_HIDX_PUT_ACK, 0, 2, args);
}

static void aq_ref_on_put_medium(gex_Token_t token, void *buf, size_t nbytes,
                                 gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low,
                                 gex_AM_Arg_t op_high, gex_AM_Arg_t op_low)
{
    void *dest = aq_ptr_of_args(dest_high, dest_low);

    aq_ref_check_range(token, "put", dest, nbytes);
    aq_mk_at(dest, nbytes)->copy_in(dest, buf, nbytes);
    aq_ref_acknowledge(token, op_high, op_low);
}

static void aq_ref_on_put_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t op_high,
                               gex_AM_Arg_t op_low)
{
    (void)buf, (void)nbytes; /* in place already */
    aq_ref_acknowledge(token, op_high, op_low);
}

static void aq_ref_on_put_ack(gex_Token_t token, gex_AM_Arg_t op_high, gex_AM_Arg_t op_low)
{
    (void)token;
    aq_op_end(aq_ptr_of_args(op_high, op_low), GEX_EC_PUT, 1);
}

static int aq_ref_send_put(struct aq_op *op, gex_Rank_t jobrank, char *dest, const char *src,
                           size_t nbytes, bool by_long, gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR(dest), AQ_ARGS_OF_PTR(op) };

    if (by_long)
        return aq_am_request_long(tm, jobrank, AQ_HIDX_PUT_LONG, src, nbytes, dest, GEX_EVENT_NOW,
                                  flags, 2, args + 2);
    return aq_am_request_medium(tm, jobrank, AQ_HIDX_PUT_MEDIUM, src, nbytes, GEX_EVENT_NOW, flags,
                                4, args);
}

/* Maximum bytes of one chunk. */
static size_t aq_ref_frag(size_t limit)
{
    return limit > AQ_FRAG_UNIT ? limit & ~(AQ_FRAG_UNIT - 1) : limit;
}

/* Sends several fragments, of which only the first may be sent now. */
static int aq_ref_resumable(struct aq_op *op, gex_Rank_t jobrank, bool is_put, const void *remote,
                            const void *local, size_t nbytes)
{
    const struct aq_vis_request request = {
        .op = op,
        .jobrank = jobrank,
        .is_put = is_put,
        .counts_lc = is_put,
        .nbytes = nbytes,
        .local = { .form = AQ_VIS_STRIDED, .chunk = nbytes, .base = (uintptr_t)local },
        .remote = { .form = AQ_VIS_STRIDED, .chunk = nbytes, .base = (uintptr_t)remote }
    };

    return aq_vis_ref_start(&request, GEX_FLAG_IMMEDIATE);
}

int aq_ref_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    const size_t medium = aq_ref_frag(aq_am_max_medium());
    const bool long_helps = nbytes > medium && aq_limits.max_long > aq_limits.max_medium;
    /* a long message targets the segment of the primordial endpoint, a put perhaps another one */
    const bool by_long =
        (aq_ref_put_mode == AQ_REF_PUT_LONG || (aq_ref_put_mode == AQ_REF_PUT_AUTO && long_helps))
        && aq_bound_contains(jobrank, dest, nbytes);
    const size_t max = by_long ? aq_ref_frag(aq_limits.max_long) : medium;

    if ((flags & GEX_FLAG_IMMEDIATE) != 0 && nbytes > max)
        return lc_now ? AQ_RETRY : aq_ref_resumable(op, jobrank, true, dest, src, nbytes);
    for (size_t at = 0; at < nbytes;) {
        const size_t frag = nbytes - at < max ? nbytes - at : max;

        aq_op_begin(op, GEX_EC_PUT, 1);
        if (aq_ref_send_put(op, jobrank, (char *)dest + at, (const char *)src + at, frag, by_long,
                            flags & GEX_FLAG_IMMEDIATE)
            != 0) {
            aq_op_end(op, GEX_EC_PUT, 1);
            return AQ_RETRY;
        }
        at += frag;
    }
    return AQ_OK;
}

/* --- get --- */

static void aq_ref_on_get_request(gex_Token_t token, gex_AM_Arg_t src_high, gex_AM_Arg_t src_low,
                                  gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low,
                                  gex_AM_Arg_t op_high, gex_AM_Arg_t op_low, gex_AM_Arg_t size)
{
    const gex_AM_Arg_t args[] = { dest_high, dest_low, op_high, op_low };
    const void *src = aq_ptr_of_args(src_high, src_low);
    const size_t nbytes = (uint32_t)size;
    uint64_t word;

    aq_ref_check_range(token, "get", src, nbytes);
    if (aq_is_word(src, nbytes)) {
        aq_mk_at(src, nbytes)->copy_out(&word, src, nbytes);
        src = &word;
    }
    aq_am_reply_medium(token, AQ_HIDX_GET_DATA, src, nbytes, GEX_EVENT_NOW, 0, 4, args);
}

static void aq_ref_on_get_data(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t dest_high,
                               gex_AM_Arg_t dest_low, gex_AM_Arg_t op_high, gex_AM_Arg_t op_low)
{
    struct aq_op *op = aq_ptr_of_args(op_high, op_low);
    void *dest = aq_ptr_of_args(dest_high, dest_low);

    (void)token;
    aq_op_acquire(op);
    aq_mk_at(dest, nbytes)->copy_in(dest, buf, nbytes);
    aq_op_end(op, GEX_EC_GET, 1);
}

int aq_ref_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const size_t max = aq_ref_frag(aq_am_max_medium());

    if ((flags & GEX_FLAG_IMMEDIATE) != 0 && nbytes > max)
        return aq_ref_resumable(op, jobrank, false, src, dest, nbytes);
    for (size_t at = 0; at < nbytes;) {
        const size_t frag = nbytes - at < max ? nbytes - at : max;
        const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR((const char *)src + at),
                                      AQ_ARGS_OF_PTR((char *)dest + at), AQ_ARGS_OF_PTR(op),
                                      (gex_AM_Arg_t)frag };

        aq_op_begin(op, GEX_EC_GET, 1);
        if (aq_am_request_short(tm, jobrank, AQ_HIDX_GET_REQUEST, flags & GEX_FLAG_IMMEDIATE, 7,
                                args)
            != 0) {
            aq_op_end(op, GEX_EC_GET, 1);
            return AQ_RETRY;
        }
        at += frag;
    }
    return AQ_OK;
}

/* --- start-up --- */

void aq_ref_rma_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_REQUEST, reply = GEX_FLAG_AM_REPLY;

    aq_ref_put_mode = aq_env_choice(AQ_ENV_AQ_REF_PUT);
    aq_am_register_internal(AQ_HIDX_PUT_MEDIUM, (gex_AM_Fn_t)aq_ref_on_put_medium,
                            GEX_FLAG_AM_MEDIUM | request, 4, "put");
    aq_am_register_internal(AQ_HIDX_PUT_LONG, (gex_AM_Fn_t)aq_ref_on_put_long,
                            GEX_FLAG_AM_LONG | request, 2, "long put");
    aq_am_register_internal(AQ_HIDX_PUT_ACK, (gex_AM_Fn_t)aq_ref_on_put_ack,
                            GEX_FLAG_AM_SHORT | reply, 2, "put acknowledgement");
    aq_am_register_internal(AQ_HIDX_GET_REQUEST, (gex_AM_Fn_t)aq_ref_on_get_request,
                            GEX_FLAG_AM_SHORT | request, 7, "get");
    aq_am_register_internal(AQ_HIDX_GET_DATA, (gex_AM_Fn_t)aq_ref_on_get_data,
                            GEX_FLAG_AM_MEDIUM | reply, 4, "get data");
}
