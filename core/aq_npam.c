/*
 * aq_npam.c - messages with a negotiated payload: Prepare, Commit, Cancel.
 *
 * Prepare takes a buffer from the conduit (am_alloc). In shared memory that is the block which the
 * target's handler reads, so a payload made there is not copied. With a client's buffer, Prepare of
 * a Medium takes one too, so that Commit has a place to copy to: scarce resources are taken in
 * Prepare, where GEX_FLAG_IMMEDIATE can decline. A Long with the client's buffer needs none, since
 * its payload is sent from there to its destination. If the conduit has no buffer and the flag was
 * not given, or if am_alloc returns AQ_ERR_NOSUP, or with AQ_NO_OVERRIDES, the buffer is the
 * client's or the thread's own, and Commit sends like any other message.
 *
 * For a message to this process itself, the handler reads the thread's own buffer.
 *
 * The buffer of a Long is never the destination itself, even if that is known and mapped: it would
 * be written before Commit, beyond what Commit says is the payload, and by a message that is
 * cancelled.
 *
 * Owns      the descriptors and the buffers in struct aq_thread
 * Threads   any; a descriptor belongs to its thread. A thread's first buffer is the only allocation
 * States    CLOSED -Prepare-> CLIENT, THREAD or CONDUIT -Commit, Cancel, thread's end-> CLOSED
 * Promise   Prepare and Cancel neither wait nor poll. While a descriptor is open, only Commit
 *           polls, if there is no credit, and in the context of the Prepare. The library's own
 *           progress prepares nothing, so a request's descriptor does not change in the meantime.
 *           Commit waits only for messages in flight, never for buffers in other threads' open
 *           descriptors, however many and for however long: those hold no slots, and the conduit
 *           keeps one buffer of each size from them. The Commit of a reply waits for replies in
 *           flight only. These are received: every wait serves replies, and reply handlers wait for
 *           nothing but HSLs, whose holders may not send
 * Uses      core/aq_am_out.h, core/aq_poll.h, the conduit table
 * See       GASNet-EX specification 0.19, Negotiated-payload active messages
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_npam.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_am_loop.h"
#include "core/aq_am_out.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"

#define AQ_ALWAYS_INLINE inline __attribute__((always_inline))

static struct aq_srcdesc *aq_srcdesc(gex_AM_SrcDesc_t handle)
{
    return (struct aq_srcdesc *)(void *)handle;
}

/* --- debug checks --- */

#if GASNET_DEBUG

static const char *const aq_npam_kind_names[] = { "Short", "Medium", "Long" };

static const char *aq_npam_direction(bool is_reply)
{
    return is_reply ? "Reply" : "Request";
}

/* The canary that library buffers begin with: a value that a client is unlikely to write. */
struct aq_npam_canary {
    size_t len; /* bytes, a multiple of 8; 0: off */
    uint64_t pattern;
};

static struct aq_npam_canary aq_npam_canary(size_t nbytes)
{
    struct aq_npam_canary canary = { 0, 0 };
    const char *text = aq_env_str(AQ_ENV_SD_INITVAL);
    const size_t max = (size_t)aq_env_size(AQ_ENV_SD_INITLEN);
    char *end;
    const double real = strtod(text, &end);
    long byte;

    if (!aq_env_bool(AQ_ENV_SD_INIT))
        return canary;
    if (end == text || *end != '\0')
        aq_fatal("environment variable GASNET_SD_INITVAL has the value \"%s\", which cannot be "
                 "understood; it must be "
                 "a byte from 0 to 255, or any number, for example NAN",
                 text);
    byte = strtol(text, &end, 0);
    if (*end == '\0' && byte >= 0 && byte <= 255)
        canary.pattern = UINT64_C(0x0101010101010101) * (uint64_t)byte;
    else
        memcpy(&canary.pattern, &real, sizeof(real));
    canary.len = (nbytes < max ? nbytes : max) / sizeof(canary.pattern) * sizeof(canary.pattern);
    return canary;
}

static void aq_npam_fill(const struct aq_srcdesc *sd)
{
    const struct aq_npam_canary canary = aq_npam_canary(sd->head.size);

    for (size_t at = 0; at < canary.len; at += sizeof(canary.pattern))
        memcpy((char *)sd->head.addr + at, &canary.pattern, sizeof(canary.pattern));
}

static void aq_npam_check_filled(const char *call, const struct aq_srcdesc *sd, size_t nbytes)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const struct aq_npam_canary canary = aq_npam_canary(nbytes);

    for (size_t at = 0; at < canary.len; at += sizeof(canary.pattern))
        if (memcmp((char *)sd->head.addr + at, &canary.pattern, sizeof(canary.pattern)) != 0)
            return;
    /* relaxed: at worst the warning is printed twice */
    if (canary.len > 0 && !atomic_flag_test_and_set_explicit(&logged, memory_order_relaxed))
        aq_warn(
            "%s: the first %zu bytes of the payload are what they were when Prepare gave out the "
            "buffer: was it filled? GASNET_SD_INIT=0 turns this check off",
            call, canary.len);
}

/* Checks that this is an open descriptor of this thread. */
static void aq_npam_check_open(const char *call, gex_AM_SrcDesc_t handle)
{
    const struct aq_srcdesc *own_sd = aq_thread_self()->prepared;
    const struct aq_srcdesc *sd = aq_srcdesc(handle);

    aq_check_started(call);
    if (handle == GEX_AM_SRCDESC_NO_OP)
        aq_fatal("%s: the descriptor is GEX_AM_SRCDESC_NO_OP; nothing was prepared", call);
    if (sd != &own_sd[false] && sd != &own_sd[true])
        aq_fatal("%s: %p is not a descriptor that this thread has prepared", call,
                 (const void *)handle);
    if (sd->source == AQ_NPAM_CLOSED)
        aq_fatal("%s: the descriptor was committed or cancelled already", call);
}

static void aq_npam_check_end(const char *call, gex_AM_SrcDesc_t handle, enum aq_am_kind kind,
                              bool is_reply)
{
    const struct aq_thread *self = aq_thread_self();
    const struct aq_srcdesc *sd = aq_srcdesc(handle);

    aq_npam_check_open(call, handle);
    if (sd->kind != kind || sd->is_reply != is_reply)
        aq_fatal("%s: the descriptor was prepared by gex_AM_Prepare%s%s", call,
                 aq_npam_direction(sd->is_reply), aq_npam_kind_names[sd->kind]);
    if (self->hsls_locked != 0)
        aq_fatal("%s called by a thread that holds an HSL; release it first", call);
}

static void aq_npam_check_prepare(const char *call, enum aq_am_kind kind, bool is_reply,
                                  const void *client_buf, size_t min, size_t max,
                                  const gex_Event_t *lc_opt, unsigned nargs)
{
    const size_t limit =
        kind == AQ_AM_LONG && client_buf != NULL ? aq_limits.max_long : aq_limits.max_medium;

    aq_am_check_nargs(call, nargs);
    if (aq_thread_self()->prepared[is_reply].source != AQ_NPAM_CLOSED)
        aq_fatal("%s: this thread has prepared a message already; commit or cancel that first",
                 call);
    if (client_buf != NULL)
        aq_am_check_lc(call, lc_opt, is_reply);
    else if (lc_opt != NULL)
        aq_fatal(
            "%s: lc_opt is not NULL, but client_buf is: a buffer of the library's has no local "
            "completion",
            call);
    if (min > max)
        aq_fatal("%s: least_payload of %zu bytes is more than most_payload of %zu", call, min, max);
    if (min > limit)
        aq_fatal("%s: least_payload of %zu bytes; the most is %zu (ask gex_AM_Max%s%s with "
                 "GEX_FLAG_AM_PREPARE_LEAST_%s)",
                 call, min, limit, aq_npam_direction(is_reply), aq_npam_kind_names[kind],
                 client_buf != NULL ? "CLIENT" : "ALLOC");
}

static void aq_npam_check_commit(const char *call, gex_AM_SrcDesc_t handle, enum aq_am_kind kind,
                                 bool is_reply, size_t nbytes, const void *dest, gex_Flags_t cflags,
                                 unsigned nargs)
{
    const struct aq_srcdesc *sd = aq_srcdesc(handle);

    aq_npam_check_end(call, handle, kind, is_reply);
    if (nbytes > sd->head.size)
        aq_fatal("%s: payload of %zu bytes; gex_AM_SrcDescSize says %zu", call, nbytes,
                 sd->head.size);
    if (nargs != sd->nargs)
        aq_fatal("%s: %u arguments, but numargs of Prepare was %u", call, nargs, sd->nargs);
    if ((cflags & ~GEX_FLAG_IMMEDIATE) != 0)
        aq_fatal("%s: flags 0x%x; only GEX_FLAG_IMMEDIATE is known here", call, cflags);
    if (kind == AQ_AM_LONG) {
        if (sd->dest != NULL && dest != sd->dest && (dest != NULL || nbytes != 0))
            aq_fatal("%s: the destination is %p, but Prepare was given %p", call, dest, sd->dest);
        aq_am_check_dest(call, sd->jobrank, dest, nbytes);
    }
    if (nbytes != 0 && sd->head.addr != NULL
        && (sd->source == AQ_NPAM_THREAD
            || (sd->source == AQ_NPAM_CONDUIT && sd->head.addr == sd->buffer.addr)))
        aq_npam_check_filled(call, sd, nbytes);
}

static void aq_npam_check_cancel(const char *call, gex_AM_SrcDesc_t handle, enum aq_am_kind kind,
                                 bool is_reply, gex_Flags_t flags)
{
    aq_npam_check_end(call, handle, kind, is_reply);
    if (flags != 0)
        aq_fatal("%s: flags 0x%x; they must be 0", call, flags);
}

#define AQ_NPAM_FILL(sd)           aq_npam_fill(sd)
#define AQ_NPAM_CHECK_PREPARE(...) aq_npam_check_prepare(__VA_ARGS__)
#define AQ_NPAM_CHECK_COMMIT(...)  aq_npam_check_commit(__VA_ARGS__)
#define AQ_NPAM_CHECK_CANCEL(...)  aq_npam_check_cancel(__VA_ARGS__)
#else
#define AQ_NPAM_FILL(sd)           ((void)0)
#define AQ_NPAM_CHECK_PREPARE(...) ((void)0)
#define AQ_NPAM_CHECK_COMMIT(...)  ((void)0)
#define AQ_NPAM_CHECK_CANCEL(...)  ((void)0)
#endif

void aq_npam_check_query(const char *call, gex_AM_SrcDesc_t handle)
{
#if GASNET_DEBUG
    aq_npam_check_open(call, handle);
#else
    (void)call, (void)handle;
#endif
}

/* --- Prepare --- */

/* The context of an open descriptor's Prepare, which is the only one in which Commit is legal. */
static inline uint8_t aq_npam_outer(bool is_reply)
{
    return is_reply ? AQ_CTX_REQUEST : AQ_CTX_MAIN;
}

__attribute__((noinline, cold)) void *aq_npam_make_own(struct aq_srcdesc *sd)
{
    const size_t size = aq_round_up(aq_limits.max_medium, AQ_CACHE_LINE);

    sd->own = aligned_alloc(AQ_CACHE_LINE, size);
    if (sd->own == NULL)
        aq_fatal("no memory for the payload buffer of a thread (%zu bytes)", size);
    return sd->own;
}

/* Finds a buffer for the payload of a descriptor that is otherwise filled in, and returns the
 * descriptor. It never waits for a buffer of the conduit, which could take for ever: other threads
 * may hold them all, and wait for this thread before they commit. */
static AQ_ALWAYS_INLINE gex_AM_SrcDesc_t aq_npam_open(struct aq_thread *self, struct aq_srcdesc *sd,
                                                      const void *client_buf, size_t min,
                                                      size_t max)
{
    const bool placed = client_buf != NULL && sd->kind == AQ_AM_LONG;
    const size_t limit = placed ? aq_limits.max_long : aq_limits.max_medium;
    enum aq_npam_source source = AQ_NPAM_CLIENT;

    if (max > limit)
        max = limit;
    sd->head.addr = (void *)(uintptr_t)client_buf;
    sd->head.size = max;
    if (!placed && AQ_LIKELY(sd->jobrank != aq_job.loop_rank)) {
        const int rc =
            aq_job_ops(sd->jobrank)->am_alloc(sd->jobrank, sd->is_reply, min, max, &sd->buffer);

        if (AQ_LIKELY(rc == AQ_OK))
            source = AQ_NPAM_CONDUIT;
        else if (rc == AQ_RETRY && (sd->flags & GEX_FLAG_IMMEDIATE) != 0)
            return GEX_AM_SRCDESC_NO_OP;
    }
    if (AQ_LIKELY(source == AQ_NPAM_CONDUIT)) {
        if (max > sd->buffer.size)
            sd->head.size = sd->buffer.size;
        if (client_buf == NULL)
            sd->head.addr = sd->buffer.addr;
    } else if (client_buf == NULL) {
        source = AQ_NPAM_THREAD;
        sd->head.addr = aq_npam_own(sd);
    }
    sd->source = (uint8_t)source;
    self->context = AQ_CTX_PREPARED;
    if (client_buf == NULL)
        AQ_NPAM_FILL(sd);
    return (gex_AM_SrcDesc_t)(void *)sd;
}

static AQ_ALWAYS_INLINE gex_AM_SrcDesc_t aq_npam_prepare_request(
    enum aq_trace_kind call, enum aq_am_kind kind, gex_Rank_t jobrank, const void *client_buf,
    size_t min, size_t max, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs)
{
    const uint64_t began = aq_trace_begin(call);
    struct aq_thread *self = aq_thread_self();
    struct aq_srcdesc *sd = &self->prepared[false];
    gex_AM_SrcDesc_t handle;

    sd->kind = kind;
    sd->is_reply = false;
    sd->nargs = (uint8_t)nargs;
    sd->flags = flags;
    sd->jobrank = jobrank;
    sd->lc_opt = lc_opt;
    sd->dest = dest;
    handle = aq_npam_open(self, sd, client_buf, min, max);
    aq_trace_end(call, began, jobrank, 0);
    return handle;
}

static AQ_ALWAYS_INLINE gex_AM_SrcDesc_t aq_npam_prepare_reply(
    enum aq_trace_kind call, enum aq_am_kind kind, gex_Token_t token, const void *client_buf,
    size_t min, size_t max, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs)
{
    const uint64_t began = aq_trace_begin(call);
    struct aq_thread *self = aq_thread_self();
    struct aq_srcdesc *sd = &self->prepared[true];
    gex_AM_SrcDesc_t handle;

    sd->kind = kind;
    sd->is_reply = true;
    sd->nargs = (uint8_t)nargs;
    sd->flags = flags;
    sd->jobrank = aq_token(token)->jobrank;
    sd->lc_opt = lc_opt;
    sd->dest = dest;
    sd->token = token;
    handle = aq_npam_open(self, sd, client_buf, min, max);
    aq_trace_end(call, began, sd->jobrank, 0);
    return handle;
}

gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                             size_t min, size_t max, gex_Event_t *lc_opt,
                                             gex_Flags_t flags, unsigned int nargs)
{
    AQ_AM_CHECK_REQUEST("gex_AM_PrepareRequestMedium", tm, rank);
    AQ_NPAM_CHECK_PREPARE("gex_AM_PrepareRequestMedium", AQ_AM_MEDIUM, false, client_buf, min, max,
                          lc_opt, nargs);
    return aq_npam_prepare_request(AQ_TRACE_NP_PREPARE_REQUEST_MEDIUM, AQ_AM_MEDIUM,
                                   aq_tm_jobrank(tm, rank), client_buf, min, max, NULL, lc_opt,
                                   flags, nargs);
}

gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                           size_t min, size_t max, void *dest, gex_Event_t *lc_opt,
                                           gex_Flags_t flags, unsigned int nargs)
{
    AQ_AM_CHECK_REQUEST("gex_AM_PrepareRequestLong", tm, rank);
    AQ_NPAM_CHECK_PREPARE("gex_AM_PrepareRequestLong", AQ_AM_LONG, false, client_buf, min, max,
                          lc_opt, nargs);
    return aq_npam_prepare_request(AQ_TRACE_NP_PREPARE_REQUEST_LONG, AQ_AM_LONG,
                                   aq_tm_jobrank(tm, rank), client_buf, min, max, dest, lc_opt,
                                   flags, nargs);
}

gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf, size_t min,
                                           size_t max, gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int nargs)
{
    AQ_AM_CHECK_REPLY("gex_AM_PrepareReplyMedium", token);
    AQ_NPAM_CHECK_PREPARE("gex_AM_PrepareReplyMedium", AQ_AM_MEDIUM, true, client_buf, min, max,
                          lc_opt, nargs);
    return aq_npam_prepare_reply(AQ_TRACE_NP_PREPARE_REPLY_MEDIUM, AQ_AM_MEDIUM, token, client_buf,
                                 min, max, NULL, lc_opt, flags, nargs);
}

gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf, size_t min,
                                         size_t max, void *dest, gex_Event_t *lc_opt,
                                         gex_Flags_t flags, unsigned int nargs)
{
    AQ_AM_CHECK_REPLY("gex_AM_PrepareReplyLong", token);
    AQ_NPAM_CHECK_PREPARE("gex_AM_PrepareReplyLong", AQ_AM_LONG, true, client_buf, min, max, lc_opt,
                          nargs);
    return aq_npam_prepare_reply(AQ_TRACE_NP_PREPARE_REPLY_LONG, AQ_AM_LONG, token, client_buf, min,
                                 max, dest, lc_opt, flags, nargs);
}

/* --- Commit --- */

/* A message to this process itself: the descriptor is closed before the handler runs. */
static int aq_npam_commit_loop(struct aq_srcdesc *sd, enum aq_am_kind kind, bool is_reply,
                               gex_AM_Index_t handler, size_t nbytes, void *dest, gex_Flags_t flags,
                               unsigned nargs, const gex_AM_Arg_t *args)
{
    void *payload = sd->head.addr;

    if (kind == AQ_AM_LONG)
        payload = aq_am_loop_put(dest, payload, nbytes);
    else if (sd->source != AQ_NPAM_THREAD)
        payload = aq_am_loop_copy(is_reply, payload, nbytes);
    sd->source = AQ_NPAM_CLOSED;
    if (is_reply)
        aq_token(sd->token)->replied = true;
    aq_am_complete_locally(sd->lc_opt);
    aq_am_loop_payload(kind, is_reply, handler, flags, nargs, args, payload, nbytes);
    return 0;
}

/* A declined commit changes nothing. */
static AQ_ALWAYS_INLINE int aq_npam_commit(gex_AM_SrcDesc_t handle, enum aq_am_kind kind,
                                           bool is_reply, gex_AM_Index_t handler, size_t nbytes,
                                           void *dest, gex_Flags_t cflags, unsigned nargs,
                                           const gex_AM_Arg_t *args)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NP_COMMIT_REQUEST_MEDIUM);
    struct aq_thread *self = aq_thread_self();
    struct aq_srcdesc *sd = aq_srcdesc(handle);
    struct aq_am_lc lc = { .opt = sd->lc_opt };
    /* a buffer of the library is reused on return */
    const struct aq_am_out out = { .jobrank = sd->jobrank,
                                   .handler = handler,
                                   .nargs = (uint8_t)nargs,
                                   .kind = kind,
                                   .is_reply = is_reply,
                                   .immediate = (cflags & GEX_FLAG_IMMEDIATE) != 0,
                                   .args = args,
                                   .src = sd->head.addr,
                                   .nbytes = nbytes,
                                   .dest = dest,
                                   .buffer = sd->source == AQ_NPAM_CONDUIT ? &sd->buffer : NULL,
                                   .lc = sd->source != AQ_NPAM_CLIENT ? NULL
                                         : kind == AQ_AM_LONG
                                             ? &lc
                                             : aq_am_medium_lc(&lc, nbytes, cflags) };

    self->context = aq_npam_outer(is_reply); /* handlers run while it waits */
    if (aq_am_is_loop(sd->jobrank, handler))
        return aq_npam_commit_loop(sd, kind, is_reply, handler, nbytes, dest, sd->flags | cflags,
                                   nargs, args);
    if (AQ_UNLIKELY(aq_job_ops(out.jobrank)->am_send(&out) == AQ_RETRY)
        && aq_am_send_waiting(&out, cflags) != 0) {
        aq_am_complete(&lc, true, is_reply);
        self->context = AQ_CTX_PREPARED;
        return 1;
    }
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_trace_end_send(began, &out, true);
    sd->source = AQ_NPAM_CLOSED;
    if (is_reply)
        aq_token(sd->token)->replied = true;
    aq_am_complete(&lc, false, is_reply);
    if (!is_reply && ((sd->flags | cflags) & GEX_FLAG_IMMEDIATE) == 0)
        aq_poll_of_send(); /* as requests with a fixed payload do */
    return 0;
}

int aq_npam_commit_request_medium(gex_AM_SrcDesc_t handle, gex_AM_Index_t handler, size_t nbytes,
                                  gex_Flags_t cflags, unsigned int nargs, const gex_AM_Arg_t *args)
{
    AQ_NPAM_CHECK_COMMIT("gex_AM_CommitRequestMedium", handle, AQ_AM_MEDIUM, false, nbytes, NULL,
                         cflags, nargs);
    return aq_npam_commit(handle, AQ_AM_MEDIUM, false, handler, nbytes, NULL, cflags, nargs, args);
}

int aq_npam_commit_request_long(gex_AM_SrcDesc_t handle, gex_AM_Index_t handler, size_t nbytes,
                                void *dest, gex_Flags_t cflags, unsigned int nargs,
                                const gex_AM_Arg_t *args)
{
    AQ_NPAM_CHECK_COMMIT("gex_AM_CommitRequestLong", handle, AQ_AM_LONG, false, nbytes, dest,
                         cflags, nargs);
    return aq_npam_commit(handle, AQ_AM_LONG, false, handler, nbytes, dest, cflags, nargs, args);
}

int aq_npam_commit_reply_medium(gex_AM_SrcDesc_t handle, gex_AM_Index_t handler, size_t nbytes,
                                gex_Flags_t cflags, unsigned int nargs, const gex_AM_Arg_t *args)
{
    AQ_NPAM_CHECK_COMMIT("gex_AM_CommitReplyMedium", handle, AQ_AM_MEDIUM, true, nbytes, NULL,
                         cflags, nargs);
    return aq_npam_commit(handle, AQ_AM_MEDIUM, true, handler, nbytes, NULL, cflags, nargs, args);
}

int aq_npam_commit_reply_long(gex_AM_SrcDesc_t handle, gex_AM_Index_t handler, size_t nbytes,
                              void *dest, gex_Flags_t cflags, unsigned int nargs,
                              const gex_AM_Arg_t *args)
{
    AQ_NPAM_CHECK_COMMIT("gex_AM_CommitReplyLong", handle, AQ_AM_LONG, true, nbytes, dest, cflags,
                         nargs);
    return aq_npam_commit(handle, AQ_AM_LONG, true, handler, nbytes, dest, cflags, nargs, args);
}

/* --- Cancel --- */

static void aq_npam_close(struct aq_srcdesc *sd)
{
    if (sd->source == AQ_NPAM_CONDUIT)
        aq_job_ops(sd->jobrank)->am_free(sd->is_reply, &sd->buffer);
    sd->source = AQ_NPAM_CLOSED;
}

static int aq_npam_cancel(gex_AM_SrcDesc_t handle, bool is_reply)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NP_CANCEL);
    struct aq_srcdesc *sd = aq_srcdesc(handle);

    aq_npam_close(sd);
    aq_thread_self()->context = aq_npam_outer(is_reply);
    aq_trace_end(AQ_TRACE_NP_CANCEL, began, sd->jobrank, 0);
    return 0;
}

int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t handle, gex_Flags_t flags)
{
    AQ_NPAM_CHECK_CANCEL("gex_AM_CancelRequestMedium", handle, AQ_AM_MEDIUM, false, flags);
    (void)flags;
    return aq_npam_cancel(handle, false);
}

int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t handle, gex_Flags_t flags)
{
    AQ_NPAM_CHECK_CANCEL("gex_AM_CancelRequestLong", handle, AQ_AM_LONG, false, flags);
    (void)flags;
    return aq_npam_cancel(handle, false);
}

int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t handle, gex_Flags_t flags)
{
    AQ_NPAM_CHECK_CANCEL("gex_AM_CancelReplyMedium", handle, AQ_AM_MEDIUM, true, flags);
    (void)flags;
    return aq_npam_cancel(handle, true);
}

int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t handle, gex_Flags_t flags)
{
    AQ_NPAM_CHECK_CANCEL("gex_AM_CancelReplyLong", handle, AQ_AM_LONG, true, flags);
    (void)flags;
    return aq_npam_cancel(handle, true);
}

void aq_npam_thread_exit(struct aq_thread *thread)
{
    for (int is_reply = 0; is_reply < 2; is_reply++)
        if (thread->prepared[is_reply].source != AQ_NPAM_CLOSED)
            aq_npam_close(&thread->prepared[is_reply]);
}
