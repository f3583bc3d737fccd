/*
 * aq_nosup.c - the entries of a conduit's table for what the conduit does not have.
 *
 * Owns      aq_conduit_none, the remote table of a job without remote ranks
 * Threads   any
 * Uses      core/aq_nosup.h, base/aq_log.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_nosup.h"

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_job.h"

/* A job has reached an entry that it must not reach: an internal error. */
static _Noreturn __attribute__((cold)) void aq_nosup_reached(const char *entry)
{
    aq_fatal("the conduit has no %s, but the job reached it: this is a fault of the library",
             entry);
}

/* --- nothing to do --- */

int aq_nosup_init(void)
{
    return AQ_OK;
}

void aq_nosup_fini(void)
{
}

void aq_nosup_quiesce(void)
{
}

int aq_nosup_segment_attach(uintptr_t size, void **base_io)
{
    (void)size, (void)base_io;
    return AQ_OK;
}

int aq_nosup_segment_ready(void)
{
    return AQ_OK;
}

int aq_nosup_segment_discard(void *addr, size_t nbytes)
{
    return aq_job.local->segment_discard(addr, nbytes);
}

void aq_nosup_segment_detach(void)
{
}

int aq_nosup_segment_bind(const struct aq_segment *segment)
{
    (void)segment;
    return AQ_OK;
}

bool aq_nosup_segment_reaches(gex_Rank_t jobrank)
{
    (void)jobrank;
    return true;
}

void aq_nosup_exit(uint64_t max_ns)
{
    (void)max_ns;
}

unsigned aq_nosup_poll(enum aq_poll_kind kind)
{
    (void)kind;
    return 0;
}

const atomic_uint_fast64_t aq_nosup_busy;

void aq_nosup_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    (void)jobrank;
    *sent_out = *handled_out = 0;
}

void aq_nosup_wait_arm(void)
{
}

uint64_t aq_nosup_wait_limit(uint64_t max_ns)
{
    return max_ns;
}

bool aq_nosup_is_one_sided(gex_Rank_t jobrank)
{
    (void)jobrank;
    return false;
}

void aq_nosup_wait_look(gex_Rank_t peer)
{
    (void)peer;
}

bool aq_nosup_may_notify(void)
{
    return true;
}

struct aq_op *aq_nosup_rma_batch_begin(struct aq_op *op)
{
    (void)op;
    return NULL;
}

void aq_nosup_rma_batch_end(struct aq_op *before)
{
    (void)before;
}

/* --- declined --- */

int aq_nosup_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                      struct aq_am_buffer *buffer_out)
{
    (void)jobrank, (void)is_reply, (void)min, (void)max, (void)buffer_out;
    return AQ_ERR_NOSUP;
}

bool aq_nosup_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    (void)dt, (void)ops, (void)flags;
    return false;
}

uint32_t aq_nosup_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv)
{
    (void)jobrank, (void)dest, (void)nbytes, (void)rndv;
    return 0;
}

static struct aq_coll_local *aq_nosup_coll_make(struct aq_coll_team *team)
{
    (void)team;
    return NULL;
}

static void aq_nosup_coll_free(struct aq_coll_local *shm)
{
    (void)shm;
}

static bool aq_nosup_coll_serves(const struct aq_coll_local *shm, const struct aq_coll_call *call)
{
    (void)shm, (void)call;
    return false;
}

static bool aq_nosup_coll_is_open(const struct aq_coll_local *shm)
{
    (void)shm;
    return false;
}

static gex_Event_t aq_nosup_coll_submit(struct aq_coll_local *shm, const struct aq_coll_call *call)
{
    (void)shm, (void)call;
    aq_nosup_reached("collectives");
}

static uint32_t aq_nosup_coll_reserve(void)
{
    aq_nosup_reached("collectives");
}

static void aq_nosup_coll_give_back(uint32_t area)
{
    (void)area;
    aq_nosup_reached("collectives");
}

static struct aq_coll_local *aq_nosup_coll_make_local(const struct aq_coll_team *team,
                                                      uint32_t area)
{
    (void)team, (void)area;
    aq_nosup_reached("collectives");
}

static void aq_nosup_coll_submit_part(struct aq_coll_local *shm, const struct aq_coll_call *call,
                                      struct aq_op *op, struct aq_coll_part *part)
{
    (void)shm, (void)call, (void)op, (void)part;
    aq_nosup_reached("collectives");
}

static void aq_nosup_coll_open_part(struct aq_coll_local *shm, struct aq_coll_part *part)
{
    (void)shm, (void)part;
    aq_nosup_reached("collectives");
}

static unsigned aq_nosup_coll_progress(void)
{
    return 0;
}

const struct aq_coll_ops aq_nosup_coll = {
    .make = aq_nosup_coll_make,
    .free = aq_nosup_coll_free,
    .serves = aq_nosup_coll_serves,
    .is_open = aq_nosup_coll_is_open,
    .submit = aq_nosup_coll_submit,
    .reserve = aq_nosup_coll_reserve,
    .give_back = aq_nosup_coll_give_back,
    .make_local = aq_nosup_coll_make_local,
    .submit_part = aq_nosup_coll_submit_part,
    .open_part = aq_nosup_coll_open_part,
    .progress = aq_nosup_coll_progress,
};

/* --- by another entry --- */

int aq_nosup_am_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                       size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args)
{
    const struct aq_am_out out =
        aq_am_out_medium(jobrank, is_reply, handler, src, nbytes, nargs, args);

    return aq_job_ops(jobrank)->am_send(&out);
}

/* --- never reached --- */

int aq_nosup_probe(char *why, size_t len)
{
    (void)why, (void)len;
    aq_nosup_reached("probe");
}

int aq_nosup_am_send(const struct aq_am_out *out)
{
    (void)out;
    aq_nosup_reached("am_send");
}

int aq_nosup_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                      const gex_AM_Arg_t *args)
{
    (void)jobrank, (void)is_reply, (void)handler, (void)nargs, (void)args;
    aq_nosup_reached("am_short");
}

void aq_nosup_am_free(bool is_reply, const struct aq_am_buffer *buffer)
{
    (void)is_reply, (void)buffer;
    aq_nosup_reached("am_free");
}

uint32_t aq_nosup_sleep_prepare(bool waits)
{
    (void)waits;
    aq_nosup_reached("sleep_prepare");
}

void aq_nosup_sleep(uint32_t wakeup, uint64_t max_ns)
{
    (void)wakeup, (void)max_ns;
    aq_nosup_reached("sleep");
}

void aq_nosup_sleep_cancel(bool waits)
{
    (void)waits;
    aq_nosup_reached("sleep_cancel");
}

void aq_nosup_sleep_wake(void)
{
    aq_nosup_reached("sleep_wake");
}

int aq_nosup_sleep_add_fd(int fd)
{
    (void)fd;
    aq_nosup_reached("sleep_add_fd");
}

int aq_nosup_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                 bool lc_now, gex_Flags_t flags)
{
    (void)op, (void)jobrank, (void)dest, (void)src, (void)nbytes, (void)lc_now, (void)flags;
    aq_nosup_reached("put");
}

int aq_nosup_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                 gex_Flags_t flags)
{
    (void)op, (void)jobrank, (void)dest, (void)src, (void)nbytes, (void)flags;
    aq_nosup_reached("get");
}

int aq_nosup_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p,
                   void *tgt_addr, gex_OP_t opcode, uint64_t operand1, uint64_t operand2,
                   gex_Flags_t flags)
{
    (void)op, (void)jobrank, (void)dt, (void)result_p, (void)tgt_addr, (void)opcode;
    (void)operand1, (void)operand2, (void)flags;
    aq_nosup_reached("ad_op");
}

void aq_nosup_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                        struct aq_rndv *rndv)
{
    (void)jobrank, (void)match_id, (void)src, (void)nbytes, (void)rndv;
    aq_nosup_reached("rndv_send");
}

void aq_nosup_barrier_arrive(uint64_t k)
{
    (void)k;
    aq_nosup_reached("barrier_arrive");
}

bool aq_nosup_barrier_done(uint64_t k, gex_Rank_t *missing_out)
{
    (void)k, (void)missing_out;
    aq_nosup_reached("barrier_done");
}

void aq_nosup_named_arrive(uint64_t k, int id, int flags)
{
    (void)k, (void)id, (void)flags;
    aq_nosup_reached("named_arrive");
}

bool aq_nosup_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out)
{
    (void)k, (void)name_out, (void)missing_out;
    aq_nosup_reached("named_done");
}

/* --- a job without remote ranks --- */

static const struct aq_conduit_info aq_conduit_none_info = {
    .name = "none",
    .about = "no remote ranks",
};

const struct aq_conduit_ops aq_conduit_none = {
    .info = &aq_conduit_none_info,
    .caps = 0,
    .min_medium = 512,
    .min_long = 512,
    .spawn = NULL,
    .probe = aq_nosup_probe,
    .init = aq_nosup_init,
    .fini = aq_nosup_fini,
    .quiesce = aq_nosup_quiesce,
    .segment_attach = aq_nosup_segment_attach,
    .segment_ready = aq_nosup_segment_ready,
    .segment_discard = aq_nosup_segment_discard,
    .segment_detach = aq_nosup_segment_detach,
    .segment_bind = aq_nosup_segment_bind,
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_nosup_exit,
    .am_send = aq_nosup_am_send,
    .am_short = aq_nosup_am_short,
    .am_medium = aq_nosup_am_medium,
    .am_alloc = aq_nosup_am_alloc,
    .am_free = aq_nosup_am_free,
    .poll = aq_nosup_poll,
    .busy = &aq_nosup_busy,
    .peer_counts = aq_nosup_peer_counts,
    .sleep_prepare = aq_nosup_sleep_prepare,
    .sleep = aq_nosup_sleep,
    .sleep_cancel = aq_nosup_sleep_cancel,
    .sleep_wake = aq_nosup_sleep_wake,
    .sleep_add_fd = aq_nosup_sleep_add_fd,
    .wait_arm = aq_nosup_wait_arm,
    .wait_limit = aq_nosup_wait_limit,
    .wait_look = aq_nosup_wait_look,
    .may_notify = aq_nosup_may_notify,
    .is_one_sided = aq_nosup_is_one_sided,
    .put = aq_nosup_put,
    .get = aq_nosup_get,
    .rma_batch_begin = aq_nosup_rma_batch_begin,
    .rma_batch_end = aq_nosup_rma_batch_end,
    .ad_serves = aq_nosup_ad_serves,
    .ad_op = aq_nosup_ad_op,
    .coll = &aq_nosup_coll,
    .rndv_recv = aq_nosup_rndv_recv,
    .rndv_send = aq_nosup_rndv_send,
    .barrier_arrive = aq_nosup_barrier_arrive,
    .barrier_done = aq_nosup_barrier_done,
    .named_arrive = aq_nosup_named_arrive,
    .named_done = aq_nosup_named_done,
};
