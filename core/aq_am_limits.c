/*
 * aq_am_limits.c - how large the payload of a message may be: the client's questions. The answers
 * are the same for every peer and any number of arguments.
 *
 * Owns      aq_limits, which the conduits' init sets
 * Threads   any; the answers do not change during a job
 * Uses      aq_am_out.h for the checks of debug builds
 * See       GASNet-EX specification 0.19, Active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_am_out.h"

struct aq_limits aq_limits AQ_JOB_STATE;

static void aq_am_check_limit_query(const char *call, gex_TM_t tm, gex_Rank_t other, unsigned nargs)
{
#if GASNET_DEBUG
    aq_check_started(call);
    if (other != GEX_RANK_INVALID)
        aq_am_check_peer(call, tm, other);
    else if (tm != GEX_TM_INVALID)
        aq_am_check_endpoints(call, tm);
    if (nargs > AQ_AM_MAX_ARGS)
        aq_fatal("%s: %u arguments; the most is %u", call, nargs, AQ_AM_MAX_ARGS);
#else
    (void)call, (void)tm, (void)other, (void)nargs;
#endif
}

static size_t aq_am_max(size_t limit, gex_Flags_t flags)
{
    /* the library's payload buffers are never larger than a medium message */
    return (flags & GEX_FLAG_AM_PREPARE_LEAST_ALLOC) != 0 && limit > aq_limits.max_medium
               ? aq_limits.max_medium
               : limit;
}

#define AQ_AM_MAX_QUERY(name, limit)                                                         \
    size_t name(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt, gex_Flags_t flags, \
                unsigned int numargs)                                                        \
    {                                                                                        \
        (void)lc_opt;                                                                        \
        aq_am_check_limit_query(#name, tm, other, numargs);                                  \
        return aq_am_max(limit, flags);                                                      \
    }
AQ_AM_MAX_QUERY(gex_AM_MaxRequestMedium, aq_limits.max_medium)
AQ_AM_MAX_QUERY(gex_AM_MaxReplyMedium, aq_limits.max_medium)
AQ_AM_MAX_QUERY(gex_AM_MaxRequestLong, aq_limits.max_long)
AQ_AM_MAX_QUERY(gex_AM_MaxReplyLong, aq_limits.max_long)

size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                unsigned int numargs)
{
    AQ_AM_CHECK_TOKEN(__func__, token);
    (void)token;
    return gex_AM_MaxReplyMedium(NULL, GEX_RANK_INVALID, lc_opt, flags, numargs);
}

size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                              unsigned int numargs)
{
    AQ_AM_CHECK_TOKEN(__func__, token);
    (void)token;
    return gex_AM_MaxReplyLong(NULL, GEX_RANK_INVALID, lc_opt, flags, numargs);
}

/* The job has one set of limits for all peers. Some clients ask before there is a job: the result
 * then holds for every conduit that may be chosen. */
static size_t aq_am_min(bool is_long)
{
    size_t min = SIZE_MAX;

    if (aq_limits.max_medium != 0)
        return is_long ? aq_limits.max_long : aq_limits.max_medium;
    for (const struct aq_conduit_ops *const *conduit = aq_conduits; *conduit != NULL; conduit++)
        min = MIN(min, is_long ? (*conduit)->min_long : (*conduit)->min_medium);
    return min;
}

size_t gex_AM_LUBRequestMedium(void)
{
    return aq_am_min(false);
}
size_t gex_AM_LUBReplyMedium(void)
{
    return aq_am_min(false);
}
size_t gex_AM_LUBRequestLong(void)
{
    return aq_am_min(true);
}
size_t gex_AM_LUBReplyLong(void)
{
    return aq_am_min(true);
}
