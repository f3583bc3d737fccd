/*
 * aq_vis_check.c - debug builds: checks of the arguments of gex_VIS_* calls.
 *
 * Threads   any; no state. A call with a wrong argument ends the job with the rule and the value
 * Uses      aq_vis_call.h, extended/aq_ref.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_call.h"

#include "base/aq_log.h"
#include "core/aq_thread.h"

#if GASNET_DEBUG

static const char *aq_vis_name(const struct aq_vis_call *call)
{
    return call->family->name[call->style];
}

void aq_vis_check_call(const struct aq_vis_call *call)
{
    const char *name = aq_vis_name(call);

    aq_thread_check_main(name);
    if ((call->flags & GEX_FLAG_ENABLE_LEAF_LC) != 0
        && (!call->family->is_put || call->style == AQ_VIS_BLOCKING))
        aq_fatal("%s: GEX_FLAG_ENABLE_LEAF_LC is for NB and NBI puts only", name);
    if (aq_vis_armed.handler != 0 && !call->family->is_put)
        aq_fatal(
            "%s: this thread has armed a peer completion, which the next VIS transfer has to be "
            "a put for; handler 0 takes it back",
            name);
    if (aq_vis_armed.handler != 0 && (call->flags & GEX_FLAG_IMMEDIATE) != 0)
        aq_fatal("%s: GEX_FLAG_IMMEDIATE, but this thread has armed a peer completion", name);
}

static void aq_vis_check_remote(const struct aq_vis_call *call, uintptr_t address, size_t nbytes)
{
    const gex_Flags_t others =
        GEX_FLAG_PEER_NEVER_SELF | GEX_FLAG_PEER_NEVER_NBRHD | GEX_FLAG_ENABLE_LEAF_LC;

    aq_rma_check(aq_vis_name(call), call->tm, call->rank, aq_vis_at(address), nbytes,
                 call->flags & ~others);
}

static void aq_vis_check_local(const struct aq_vis_call *call, uintptr_t address, size_t nbytes)
{
    aq_rma_check_local(aq_vis_name(call), call->family->is_put ? "source" : "destination",
                       aq_vis_at(address), nbytes);
}

/* The range from a section's lowest to its highest byte contains it. */
void aq_vis_check_shape(const struct aq_vis_call *call, const struct aq_vis_shape *shape)
{
    const bool is_put = call->family->is_put;
    uintptr_t low = is_put ? shape->dst : shape->src, high = low;
    size_t nbytes = shape->elemsz;
    bool over = false;

    for (unsigned d = 0; d < shape->levels; d++) {
        const struct aq_vis_dim *dim = &shape->dim[d];
        const ptrdiff_t stride = is_put ? dim->dst : dim->src;
        const size_t step = stride < 0 ? -(size_t)stride : (size_t)stride;
        size_t extent;

        over |= __builtin_mul_overflow(nbytes, dim->count, &nbytes);
        over |= __builtin_mul_overflow(step, dim->count - 1, &extent);
        over |= stride < 0 ? __builtin_sub_overflow(low, extent, &low)
                           : __builtin_add_overflow(high, extent, &high);
    }
    over |= __builtin_add_overflow(high, shape->elemsz, &high);
    if (over)
        aq_fatal("%s: the section is larger than the address space", aq_vis_name(call));
    aq_vis_check_remote(call, low, high - low);
    aq_vis_check_local(call, is_put ? shape->src : shape->dst, shape->elemsz);
}

void aq_vis_check_sums(const struct aq_vis_call *call, size_t dst, size_t src)
{
    if (dst != src)
        aq_fatal("%s: the destination has %zu bytes, the source %zu; they must be equal",
                 aq_vis_name(call), dst, src);
}

void aq_vis_check_vector(const struct aq_vis_call *call, const struct aq_vis_vector *remote,
                         const struct aq_vis_vector *local)
{
    for (size_t i = 0; i < remote->count; i++)
        if (remote->list[i].gex_len != 0)
            aq_vis_check_remote(call, (uintptr_t)remote->list[i].gex_addr, remote->list[i].gex_len);
    for (size_t i = 0; i < local->count; i++)
        aq_vis_check_local(call, (uintptr_t)local->list[i].gex_addr, local->list[i].gex_len);
}

void aq_vis_check_indexed(const struct aq_vis_call *call, const struct aq_vis_indexed *remote,
                          const struct aq_vis_indexed *local)
{
    for (size_t i = 0; i < remote->count; i++)
        aq_vis_check_remote(call, (uintptr_t)remote->list[i], remote->len);
    for (size_t i = 0; i < local->count; i++)
        aq_vis_check_local(call, (uintptr_t)local->list[i], local->len);
}

#endif
