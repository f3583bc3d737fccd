/*
 * aq_mpi.c - the mpi conduit's table; start-up, polling and waiting.
 *
 * Polling   a poll of MPI costs about ten times as much as one of shared memory. While local ranks
 *           send, core leaves MPI out of most polls
 * Waiting   MPI offers nothing to block on. A waiting rank sleeps and polls in turns; a sleep lasts
 *           a part of the time since the last message, up to 1 ms. Local ranks and other threads
 *           can end a sleep by a wakeup, and so can remote ranks by a datagram: a rank that is idle
 *           sleeps for long (aq_mpi_wakeup.h). MPI makes progress in polls only: while a message or
 *           transfer is under way, a thread of the program first yields its core a few times, and
 *           then, as the service thread at once, sleeps for the shortest time
 * Parts     lowest first: aq_mpi_lock.h, aq_mpi_am.h (messages), aq_mpi_rma.h (transfers),
 *           aq_mpi_attach.h, aq_mpi_shutdown.h. A part calls only lower ones
 * Threads   any
 * Uses      all parts, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/mpi/aq_mpi_am_in.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_atomic.h"
#include "conduits/mpi/aq_mpi_attach.h"
#include "conduits/mpi/aq_mpi_coalesce.h"
#include "conduits/mpi/aq_mpi_datagram.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_path.h"
#include "conduits/mpi/aq_mpi_rma.h"
#include "conduits/mpi/aq_mpi_rndv.h"
#include "conduits/mpi/aq_mpi_shutdown.h"
#include "conduits/mpi/aq_mpi_window.h"
#include "core/aq_conduit.h"
#include "core/aq_job.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "core/aq_service.h"
#include "extended/aq_ref.h"
#include "other/spawn/mpi/aq_spawn_mpi.h"

#define AQ_MPI_POLL_NS 300u
#define AQ_MPI_YIELDS  64u /* yields in a row before sleeps, while anything is under way */
#define AQ_MPI_LEFT_BYTES \
    (UINT64_C(64) << 20) /* bytes that all peers together may leave in this rank's MPI queues */

/* Polls that have found something after a thread had waited, and wake-ups, in or out. relaxed,
 * both, and not counted together: another thread sees a change sooner or later, which is enough for
 * the length of its sleeps. */
static atomic_uint aq_mpi_events AQ_JOB_STATE;
static atomic_bool aq_mpi_waited AQ_JOB_STATE; /* a thread has yielded or slept since */

/* Per thread: events as of the last wait, when it was, and when quiet began; yields since then. */
static _Thread_local struct {
    unsigned events;
    uint32_t yields;
    uint64_t waited_ns, quiet_ns;
} aq_mpi_waits;

static void aq_mpi_note_event(void)
{
    atomic_store_explicit(&aq_mpi_waited, false, memory_order_relaxed);
    atomic_store_explicit(&aq_mpi_events,
                          atomic_load_explicit(&aq_mpi_events, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* --- start --- */

static int aq_mpi_probe(char *why, size_t len)
{
    return aq_mpi_load(why, len);
}

/* Messages address ranks by their MPI ranks, so the two numberings must agree. */
static int aq_mpi_check_ranks(void)
{
    const struct aq_spawn_mpi_lib *mpi = aq_mpi.lib->job;

    if (mpi->rank() == aq_job.rank && mpi->size() == aq_job.size)
        return AQ_OK;
    return aq_fail(
        AQ_ERR_ARG,
        "mpi: this is rank %u of %u, but for MPI rank %u of %u; start the program by `gasnetrun "
        "-c mpi -n N`, or by the mpirun of this MPI",
        aq_job.rank, aq_job.size, mpi->rank(), mpi->size());
}

static enum aq_mpi_receiver aq_mpi_receiver(void)
{
    switch (aq_env_choice(AQ_ENV_AQ_MPI_RECEIVE)) {
    case 1:
        return AQ_MPI_RING;
    case 2:
        return AQ_MPI_PROBE;
    default:
        return aq_mpi.lib->am->preferred;
    }
}

/* The peer is likely to answer soon: this rank's sleeps begin anew. */
static void aq_mpi_send_wakeup(gex_Rank_t jobrank)
{
    aq_mpi_note_event();
    aq_mpi_datagram_send(jobrank);
}

/* Collective. Without wake-ups ranks sleep for at most 1 ms. */
static int aq_mpi_init_wakeup(void)
{
    struct aq_mpi_wakeup_peer *peers;
    struct timespec tick;
    bool works = false;
    int rc = aq_mpi_datagram_open(aq_env_bool(AQ_ENV_AQ_MPI_WAKEUP), &works);

    if (rc == AQ_OK && !works && aq_job.rank == 0)
        AQ_LOG(INFO, MPI, "no wake-ups: idle ranks poll MPI every millisecond");
    if (rc != AQ_OK || !works)
        return rc;
    peers = calloc(aq_job.size, sizeof(*peers));
    if (peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for the wake-ups of %u ranks", aq_job.size);
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
        tick = (struct timespec){ .tv_nsec = 10000000 };
    aq_mpi_wakeup_open(&aq_mpi_am.wakeup, peers, aq_mpi_am.peers, aq_mpi_send_wakeup, aq_now_ns(),
                       (uint64_t)tick.tv_nsec);
    return aq_wait_add_fd(aq_mpi_datagram_fd());
}

static int aq_mpi_init(void)
{
    int rc;

    atomic_store_explicit(&aq_mpi.alone, false, memory_order_relaxed);
    rc = aq_mpi_check_ranks();
    if (rc != AQ_OK)
        return rc;
    aq_mpi_am.lib = &aq_mpi.lib->am[aq_mpi_receiver()];
    aq_mpi_am.place = aq_mpi_window_place;
    /* of all ranks: those that share memory send nothing, but their number differs between hosts */
    aq_mpi_am.window = aq_mpi_credit_window((uint32_t)aq_env_int(AQ_ENV_NETWORKDEPTH),
                                            aq_job.size - 1, AQ_MPI_LEFT_BYTES);
    aq_mpi_am.peers = calloc(aq_job.size, sizeof(*aq_mpi_am.peers));
    if (aq_mpi_am.peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u peers", aq_job.size);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        aq_mpi_credit_open(&aq_mpi_am.peers[rank], aq_mpi_am.window);
    rc = aq_mpi_ring_init(&aq_mpi_am.rings, aq_mpi_am.lib);
    if (rc != AQ_OK)
        return rc;
    if (aq_limits.max_medium > AQ_MPI_MAX_MEDIUM)
        aq_limits.max_medium = AQ_MPI_MAX_MEDIUM;
    if (aq_limits.max_long > AQ_MPI_MAX_LONG)
        aq_limits.max_long = AQ_MPI_MAX_LONG;
    aq_limits.poll_ns = AQ_MPI_POLL_NS;
    aq_limits.host_bytes += AQ_MPI_LEFT_BYTES * aq_job.host_size;
    rc = aq_mpi_rma_init();
    return rc != AQ_OK ? rc : aq_mpi_init_wakeup();
}

/* MPI has been given back what belongs to it (aq_mpi_shutdown.c). */
static void aq_mpi_fini(void)
{
    aq_mpi_coalesce_fini();
    aq_mpi_ring_fini(&aq_mpi_am.rings);
    if (aq_mpi_am.reserve != NULL)
        aq_mpi_buf_give(aq_mpi_am.reserve);
    aq_mpi_buf_fini();
    aq_mpi_xfer_fini(&aq_mpi_rma.xfers);
    aq_mpi_datagram_close();
    free(aq_mpi_am.wakeup.peers);
    free(aq_mpi_am.peers);
}

/* --- messages --- */

static int aq_mpi_send(const struct aq_am_out *out)
{
    return aq_mpi_am_send(&aq_mpi_am, out);
}

static int aq_mpi_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                        const gex_AM_Arg_t *args)
{
    return aq_mpi_am_short(&aq_mpi_am, jobrank, is_reply, handler, nargs, args);
}

/* --- polling --- */

/* Sends puts that wait for others. The poll that does so is theirs: none follows, as after
 * requests. */
static __attribute__((noinline)) void aq_mpi_poll_flush(void)
{
    if (!aq_mpi_try_lock())
        return;
    aq_mpi_coalesce_flush();
    aq_mpi_unlock();
    aq_mpi_am_batch.just_sent = false;
}

/* Core calls it at the end of an access region. */
static void aq_mpi_batch_end(struct aq_op *before)
{
    (void)before;
    if (aq_mpi_coalesce_is_pending())
        aq_mpi_poll_flush();
}

static unsigned aq_mpi_poll(enum aq_poll_kind kind)
{
    const bool replies_only = kind == AQ_POLL_REPLIES;
    const bool skipped = aq_mpi_am_is_skipped(kind);
    unsigned served;

    if (aq_mpi_is_alone())
        return 0;
    if (AQ_UNLIKELY(aq_mpi_coalesce_is_pending()) && !aq_mpi_coalesce_pace.keeps)
        aq_mpi_poll_flush();
    if (skipped && !aq_mpi_rma_busy())
        return 0;
    served = AQ_UNLIKELY(skipped) ? 0 : aq_mpi_am_poll(&aq_mpi_am, replies_only, aq_mpi_rma_busy());
    if (aq_mpi_rma_busy() && aq_mpi_try_lock()) {
        served += aq_mpi_rma_poll();
        aq_mpi_unlock();
    }
    if (served != 0 && AQ_UNLIKELY(atomic_load_explicit(&aq_mpi_waited, memory_order_relaxed)))
        aq_mpi_note_event();
    return served;
}

/* --- waiting --- */

static void aq_mpi_wait_arm(void)
{
    atomic_store_explicit(&aq_mpi_am.before_sleep, true, memory_order_relaxed); /* a hint */
}

/* A program that has started MPI itself may have messages of its own under way, which a thread that
 * waits here moves by its polls. Its service thread only serves other ranks. */
static inline bool aq_mpi_may_sleep_long(void)
{
    return aq_spawn_mpi_is_ours() || aq_service_is_self();
}

/* Returns true if a message or transfer is under way that only polls complete. A thread that holds
 * the lock may be starting one. Otherwise *long_out: how long this thread may sleep if that is
 * long, or 0. */
static bool aq_mpi_is_moving(uint64_t *long_out)
{
    bool moving;

    if (aq_mpi_rma_busy() || aq_mpi_coalesce_is_pending() || !aq_mpi_try_lock())
        return true;
    moving = aq_mpi_am_is_moving(&aq_mpi_am);
    *long_out = moving || !aq_mpi_may_sleep_long() ? 0 : aq_mpi_wakeup_limit(&aq_mpi_am.wakeup);
    aq_mpi_unlock();
    return moving;
}

/* Takes the datagrams that have come; otherwise they would end every sleep. The packet of a wake-up
 * follows soon. Returns true if there is one of this job's. */
static bool aq_mpi_take_wakeups(void)
{
    bool genuine;

    if (!aq_mpi_am.wakeup.works || !aq_mpi_datagram_take(&genuine))
        return false;
    if (genuine) {
        aq_mpi_wakeup_came(&aq_mpi_am.wakeup);
        aq_mpi_note_event();
    }
    return genuine;
}

/* Ends the job if the message that the thread waits for may have been lost at MPI_Finalize. */
static void aq_mpi_wait_look(gex_Rank_t peer)
{
    (void)peer;
    /* acquire: pairs with the release in aq_mpi_shutdown_close() */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_mpi.over, memory_order_acquire)) && aq_mpi.lost)
        aq_mpi_check_over();
}

/* A message or transfer is under way. The service thread shares its core with a program that may
 * spin, in a call of MPI perhaps: after a yield it would wait for the end of the program's time
 * slice, milliseconds. A thread that wakes from a sleep gets the core at once. */
static uint64_t aq_mpi_wait_moving(uint64_t max_ns)
{
    if (aq_mpi_waits.yields < AQ_MPI_YIELDS && !aq_service_is_self()) {
        aq_mpi_waits.yields++;
        sched_yield();
        return 0;
    }
    return MIN(AQ_MPI_BACKOFF_MIN_NS, max_ns);
}

/* A thread is about to wait. Returns how long to sleep before the next poll. A thread that has been
 * elsewhere for longer than a rank stays awake begins anew; a shorter absence may mean that its
 * core was busy, and then short sleeps would make that worse. */
static uint64_t aq_mpi_backoff(void)
{
    const unsigned events = atomic_load_explicit(&aq_mpi_events, memory_order_relaxed);
    const uint64_t now_ns = aq_now_ns();

    if (events != aq_mpi_waits.events || now_ns - aq_mpi_waits.waited_ns > AQ_MPI_AWAKE_NS) {
        aq_mpi_waits.quiet_ns = now_ns;
        aq_mpi_waits.yields = 0;
    }
    aq_mpi_waits.events = events;
    aq_mpi_waits.waited_ns = now_ns;
    atomic_store_explicit(&aq_mpi_waited, true, memory_order_relaxed);
    return aq_mpi_wakeup_backoff(now_ns - aq_mpi_waits.quiet_ns);
}

static uint64_t aq_mpi_wait_limit(uint64_t max_ns)
{
    const uint64_t backoff_ns = aq_mpi_backoff();
    uint64_t limit, long_ns;

    if (aq_mpi_take_wakeups())
        return 0;
    if (aq_mpi_is_alone())
        return max_ns;
    if (aq_mpi_is_moving(&long_ns))
        return aq_mpi_wait_moving(max_ns);
    aq_mpi_waits.yields = 0;
    limit = MAX(backoff_ns, long_ns);
    return MIN(limit, max_ns);
}

static bool aq_mpi_is_one_sided(gex_Rank_t jobrank)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);

    /* settings may say otherwise for some sizes */
    return paths->one_sided && paths->put_from == 0 && paths->get_from == 0;
}

/* --- reports --- */

/* Counts requests only: replies whose handlers have run are not counted. */
static void aq_mpi_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    aq_mpi_lock();
    *sent_out = aq_mpi_am.peers[jobrank].requests;
    *handled_out = aq_mpi_am.peers[jobrank].handled;
    aq_mpi_unlock();
}

extern const struct aq_conduit_info aq_mpi_info; /* aq_mpi_info.c */

const struct aq_conduit_ops aq_mpi_conduit = {
    .info = &aq_mpi_info,
    .caps = AQ_CAP_AM | AQ_CAP_NETWORK,
    .min_medium = AQ_MPI_MAX_MEDIUM,
    .min_long = AQ_MIN_LONG < AQ_MPI_MAX_LONG ? AQ_MIN_LONG : AQ_MPI_MAX_LONG,
    .spawn = &aq_mpi_spawn,
    .spawn_group = &aq_mpi_spawn_group,
    .probe = aq_mpi_probe,
    .init = aq_mpi_init,
    .fini = aq_mpi_fini,
    .quiesce = aq_mpi_barrier,
    .segment_attach = aq_mpi_segment_attach,
    .segment_ready = aq_nosup_segment_ready,
    .segment_discard = aq_mpi_segment_discard,
    .segment_detach = aq_nosup_segment_detach, /* the window stays, and no operation targets it */
    .segment_bind = aq_nosup_segment_bind,
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_mpi_shutdown_flush,
    .am_send = aq_mpi_send,
    .am_short = aq_mpi_short,
    .am_medium = aq_nosup_am_medium,
    .am_alloc = aq_nosup_am_alloc,
    .am_free = aq_nosup_am_free,
    .poll = aq_mpi_poll,
    .busy = &aq_mpi_rma.xfers.busy.value,
    .peer_counts = aq_mpi_peer_counts,
    .sleep_prepare = aq_nosup_sleep_prepare,
    .sleep = aq_nosup_sleep,
    .sleep_cancel = aq_nosup_sleep_cancel,
    .sleep_wake = aq_nosup_sleep_wake,
    .sleep_add_fd = aq_nosup_sleep_add_fd,
    .wait_arm = aq_mpi_wait_arm,
    .wait_limit = aq_mpi_wait_limit,
    .wait_look = aq_mpi_wait_look,
    .may_notify = aq_nosup_may_notify,
    .is_one_sided = aq_mpi_is_one_sided,
    .put = aq_mpi_put,
    .get = aq_mpi_get,
    .rma_batch_begin = aq_nosup_rma_batch_begin,
    .rma_batch_end = aq_mpi_batch_end,
    .ad_serves = aq_mpi_ad_serves,
    .ad_op = aq_mpi_ad_op,
    .coll = &aq_nosup_coll,
    .rndv_recv = aq_mpi_rndv_recv,
    .rndv_send = aq_mpi_rndv_send,
    .barrier_arrive = aq_ref_barrier_arrive,
    .barrier_done = aq_ref_barrier_done,
    .named_arrive = aq_ref_named_arrive,
    .named_done = aq_ref_named_done,
};
