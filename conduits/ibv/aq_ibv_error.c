/*
 * aq_ibv_error.c - failures of the network: noting, reporting; see aq_ibv_error.h.
 *
 * A queue pair in error does not come back, and what was under way on it is lost, so the job ends.
 * (aq_ibv_qp.c leaves out notices to a peer that has disconnected: with GASNET_CATCH_EXIT=0 the
 * others go on.) A peer that has disconnected because the job shuts down looks the same as a
 * failure. The notice of the shutdown then arrives within seconds, and the connector waits for it.
 *
 * Threads   noting: any; reporting: the connector
 * Uses      core/aq_exit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_choose.h"
#include "core/aq_exit.h"

#define AQ_IBV_SHUTDOWN_GRACE_NS UINT64_C(5000000000) /* for the notice of the shutdown to arrive */

/* --- messages --- */

const char *aq_ibv_remote_who(const struct aq_ibv_remote *remote, char *text, size_t size)
{
    /* acquire: pairs with the release in aq_ibv_dgram_find() */
    const char *host = atomic_load_explicit(&((struct aq_ibv_remote *)(uintptr_t)remote)->host,
                                            memory_order_acquire);

    if (host != NULL)
        snprintf(text, size, "rank %u on %s", remote->rank, host);
    else
        snprintf(text, size, "rank %u", remote->rank);
    return text;
}

/* The usual cause, and the remedy. */
static const char *aq_ibv_error_cause(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "the peer does not acknowledge: its process or host has ended, or the network "
               "between "
               "the ports is down "
               "or loses nearly everything; look at cables and switches (RoCE: flow control), name "
               "other ports with "
               "GASNET_IBV_PORTS, or be more patient with GASNET_QP_TIMEOUT (now 4.096 us times 2 "
               "to that power)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the peer had no receive buffer, which credits should exclude: a defect of this "
               "library, please report "
               "it";
    case IBV_WC_REM_ACCESS_ERR:
        return "the peer's memory is not registered, or not for this: an address outside its "
               "segment, or memory that "
               "was unmapped; a debug build checks addresses";
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return "the peer's device refused it: a message too long for it, or an operation that it "
               "does not offer";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
        return "local memory is not registered, or not for this: was it unmapped while a transfer "
               "was under way?";
    case IBV_WC_LOC_LEN_ERR:
        return "longer than the buffer, or than the device's largest message";
    case IBV_WC_LOC_QP_OP_ERR:
        return "the port has gone down or lost its address; or the device refused the request as "
               "it was put: a limit, "
               "such as GASNET_QP_RD_ATOM or GASNET_INLINESEND_LIMIT, may be lower than the device "
               "says";
    case IBV_WC_WR_FLUSH_ERR:
        return "the queue pair was in error before; the peer's messages may tell why";
    case IBV_WC_FATAL_ERR:
        return "the device has failed; the kernel's log (dmesg) should say why";
    default:
        return "see the kernel's log (dmesg)";
    }
}

static void aq_ibv_error_text(char *text, size_t size, const struct aq_ibv_lib *lib,
                              const char *what, enum ibv_wc_status status, uint32_t vendor)
{
    snprintf(text, size, "%s failed: %s (status %d, vendor code 0x%x): %s", what,
             lib->wc_status_str(status), (int)status, vendor, aq_ibv_error_cause(status));
}

/* --- noting --- */

/* A queue pair in error flushes what is outstanding on it. A flush may be seen before the failure
 * that caused it, whose completion is in another queue, and says nothing of the cause. So two
 * failures are kept, each the first of its kind. */
enum aq_ibv_failure_kind { AQ_IBV_CAUSE, AQ_IBV_FLUSH, AQ_IBV_FAILURE_KINDS };
enum { AQ_IBV_NO_FAILURE, AQ_IBV_NOTING, AQ_IBV_NOTED };

struct aq_ibv_failure {
    atomic_int state; /* enum above */
    const struct aq_ibv_rail *rail;
    const struct aq_ibv_remote *remote; /* NULL: not known */
    const char *what;
    struct ibv_wc wc;
    uint64_t since_ns;
};

static struct {
    struct aq_ibv_failure first[AQ_IBV_FAILURE_KINDS];
    atomic_bool reported;
    int wakeup; /* the connector's eventfd */
} aq_ibv_failures AQ_JOB_STATE = { .wakeup = -1 };

void aq_ibv_wake(int eventfd)
{
    const uint64_t one = 1;

    /* full: then the thread is awake anyhow */
    while (write(eventfd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}

void aq_ibv_error_set_wakeup(int eventfd)
{
    aq_ibv_failures.wakeup = eventfd;
}

void aq_ibv_error_note(const struct aq_ibv_rail *rail, const char *what,
                       const struct aq_ibv_remote *remote, const struct ibv_wc *wc)
{
    struct aq_ibv_failure *failure =
        &aq_ibv_failures.first[wc->status == IBV_WC_WR_FLUSH_ERR ? AQ_IBV_FLUSH : AQ_IBV_CAUSE];
    int state = AQ_IBV_NO_FAILURE;

    if (aq_exit_in_progress()
        || !atomic_compare_exchange_strong_explicit(
            &failure->state, &state, AQ_IBV_NOTING, memory_order_relaxed,
            memory_order_relaxed)) /* relaxed: it only picks one thread */
        return;
    failure->rail = rail;
    failure->remote = remote;
    failure->what = what;
    failure->wc = *wc;
    failure->since_ns = aq_now_ns();
    /* release: pairs with the acquire in aq_ibv_failure_is_noted() */
    atomic_store_explicit(&failure->state, AQ_IBV_NOTED, memory_order_release);
    aq_ibv_wake(aq_ibv_failures.wakeup);
}

static bool aq_ibv_failure_is_noted(enum aq_ibv_failure_kind kind)
{
    /* acquire: pairs with the release in aq_ibv_error_note() */
    return atomic_load_explicit(&aq_ibv_failures.first[kind].state, memory_order_acquire)
           == AQ_IBV_NOTED;
}

/* What a report is about, or NULL. */
static const struct aq_ibv_failure *aq_ibv_failure_noted(void)
{
    for (enum aq_ibv_failure_kind kind = AQ_IBV_CAUSE; kind < AQ_IBV_FAILURE_KINDS; kind++)
        if (AQ_UNLIKELY(aq_ibv_failure_is_noted(kind)))
            return &aq_ibv_failures.first[kind];
    return NULL;
}

bool aq_ibv_error_is_known(void)
{
    bool known = false;

    for (unsigned kind = 0; kind < AQ_IBV_FAILURE_KINDS; kind++)
        known = known
                || atomic_load_explicit(&aq_ibv_failures.first[kind].state, memory_order_relaxed)
                       != AQ_IBV_NO_FAILURE; /* relaxed: a hint */
    return known;
}

/* --- reporting --- */

/* Is the failure part of the shutdown? Waits for the notice of the shutdown for a while. */
static bool aq_ibv_error_is_shutdown(void)
{
    const struct timespec delay = { .tv_nsec = 1000000 };
    const uint64_t end = aq_now_ns() + AQ_IBV_SHUTDOWN_GRACE_NS;

    while (!aq_exit_in_progress() && aq_now_ns() < end)
        nanosleep(&delay, NULL);
    return aq_exit_in_progress();
}

/* Ends the job for a port that is down; what: what failed because of that, or NULL. */
static _Noreturn void aq_ibv_error_is_down(const struct aq_ibv_rail *rail, uint64_t now_ns,
                                           const char *what)
{
    aq_fatal("ibv: port %s:%u has been down for %.0f s: look at its cable, switch or network "
             "interface; other ports "
             "can be named with GASNET_IBV_PORTS%s%s",
             rail->dev->name, rail->port, (double)(now_ns - rail->down_ns) * 1e-9,
             what != NULL ? "; what failed: " : "", what != NULL ? what : "");
}

static void aq_ibv_error_report(const struct aq_ibv_failure *failure)
{
    const struct aq_ibv_rail *rail = failure->rail;
    const struct aq_ibv_remote *remote = failure->remote;
    const struct ibv_wc *wc = &failure->wc;
    char text[700], why[1000], gid[64], who[AQ_IBV_WHO];

    aq_ibv_error_text(text, sizeof(text), rail->dev->lib, failure->what, wc->status,
                      wc->vendor_err);
    snprintf(why, sizeof(why), "ibv: port %s:%u (%s): %s", rail->dev->name, rail->port,
             aq_ibv_gid_text(rail->gid.gid.raw, gid, sizeof(gid)), text);
    if (atomic_load_explicit(&rail->down, memory_order_relaxed)) /* relaxed: a hint */
        aq_ibv_error_is_down(rail, aq_now_ns(), text);
    if (remote == NULL)
        aq_fatal("%s", why);
    (void)aq_ibv_remote_who(remote, who, sizeof(who));
    if (wc->status == IBV_WC_RETRY_EXC_ERR || aq_ibv_remote_disconnected(remote)) {
        snprintf(why + strlen(why), sizeof(why) - strlen(why), "; the peer is %s", who);
        aq_exit_peer_lost(remote->rank, why);
    }
    aq_fatal("%s; the peer is %s", why, who);
}

/* Report a noted failure that is older than timeout_ns, unless the job is ending. Returns when to
 * call again, or UINT64_MAX. */
static uint64_t aq_ibv_error_report_after(uint64_t timeout_ns, uint64_t now_ns)
{
    const struct aq_ibv_failure *failure = aq_ibv_failure_noted();

    if (AQ_LIKELY(failure == NULL) || aq_exit_in_progress())
        return UINT64_MAX;
    if (now_ns < failure->since_ns + timeout_ns)
        return failure->since_ns + timeout_ns;
    /* relaxed: it only picks one thread */
    if (!atomic_exchange_explicit(&aq_ibv_failures.reported, true, memory_order_relaxed))
        aq_ibv_error_report(failure);
    return UINT64_MAX;
}

void aq_ibv_error_overdue(uint64_t now_ns)
{
    (void)aq_ibv_error_report_after(3 * AQ_IBV_SHUTDOWN_GRACE_NS, now_ns);
}

void aq_ibv_error_gid_types(const struct aq_ibv_rail *rail, const struct aq_ibv_remote *remote,
                            const uint8_t gid[16], uint32_t type)
{
    char local_gid[64], remote_gid[64], who[AQ_IBV_WHO];

    aq_fatal(
        "ibv: port %s:%u has the address %s (RoCE v%d) and the port of %s has %s (RoCE v%d), "
        "of another "
        "kind; give the network interfaces of both an IPv4 address, or choose with "
        "GASNET_IBV_GID_INDEX",
        rail->dev->name, rail->port,
        aq_ibv_gid_text(rail->gid.gid.raw, local_gid, sizeof(local_gid)),
        rail->gid.type == AQ_IBV_GID_ROCE1 ? 1 : 2, aq_ibv_remote_who(remote, who, sizeof(who)),
        aq_ibv_gid_text(gid, remote_gid, sizeof(remote_gid)), type == AQ_IBV_GID_ROCE1 ? 1 : 2);
}

/* --- events of a device --- */

static void aq_ibv_error_port(struct aq_ibv_net *net, const struct aq_ibv_dev *dev, unsigned port,
                              bool down)
{
    for (uint32_t i = 0; i < net->rail_count; i++) {
        if (net->rails[i].dev != dev || net->rails[i].port != port)
            continue;
        /* relaxed: for the words of a message */
        atomic_store_explicit(&net->rails[i].down, down, memory_order_relaxed);
        net->rails[i].down_ns = aq_now_ns();
        if (down && !aq_exit_in_progress())
            /* it may come back before retries are exhausted; those end the job if not */
            aq_warn("ibv: port %s:%u is down: look at its cable, switch or network interface; the "
                    "job goes on if it "
                    "comes back within some seconds (GASNET_QP_TIMEOUT, GASNET_QP_RETRY_COUNT)",
                    dev->name, port);
    }
}

/* As long as retries would take, which some devices do not count while the port is down. */
static uint64_t aq_ibv_error_timeout(void)
{
    const uint64_t tries = (uint64_t)(aq_env_int(AQ_ENV_QP_RETRY_COUNT) & 7) + 1;
    const uint64_t ns = tries * (UINT64_C(4096) << (aq_env_int(AQ_ENV_QP_TIMEOUT) & 31));

    return ns > AQ_IBV_SHUTDOWN_GRACE_NS ? ns : AQ_IBV_SHUTDOWN_GRACE_NS;
}

uint64_t aq_ibv_error_check(const struct aq_ibv_net *net, uint64_t now_ns)
{
    const uint64_t timeout = aq_ibv_error_timeout();
    uint64_t first = aq_ibv_error_report_after(AQ_IBV_SHUTDOWN_GRACE_NS, now_ns);

    for (uint32_t i = 0; i < net->rail_count; i++) {
        const struct aq_ibv_rail *rail = &net->rails[i];

        /* relaxed: only this thread writes it */
        if (!atomic_load_explicit(&rail->down, memory_order_relaxed) || aq_exit_in_progress())
            continue;
        if (now_ns - rail->down_ns >= timeout)
            aq_ibv_error_is_down(rail, now_ns, NULL);
        first = rail->down_ns + timeout < first ? rail->down_ns + timeout : first;
    }
    return first;
}

static void aq_ibv_error_qp_event(const struct aq_ibv_dev *dev, const struct ibv_async_event *event)
{
    const struct aq_ibv_remote *remote = event->element.qp->qp_context; /* NULL: datagrams' */
    const char *what = dev->lib->event_type_str(event->event_type);
    char who[AQ_IBV_WHO];

    if (aq_ibv_error_is_shutdown())
        return;
    if (aq_ibv_failure_is_noted(AQ_IBV_CAUSE))
        aq_ibv_error_report(&aq_ibv_failures.first[AQ_IBV_CAUSE]);
    if (remote == NULL)
        aq_fatal("ibv: device %s: %s, on the queue of datagrams", dev->name, what);
    aq_fatal("ibv: device %s: %s, on a queue pair with %s: %s", dev->name, what,
             aq_ibv_remote_who(remote, who, sizeof(who)),
             event->event_type == IBV_EVENT_QP_ACCESS_ERR
                 ? "the peer asked for memory that is not registered, or not for that; its message "
                   "says more"
                 : "the device could not go on with it; the kernel's log (dmesg) may say why");
}

void aq_ibv_error_event(struct aq_ibv_net *net, const struct aq_ibv_dev *dev,
                        const struct ibv_async_event *event)
{
    const char *what = dev->lib->event_type_str(event->event_type);

    AQ_LOG(DEBUG, IBV, "device %s: %s", dev->name, what);
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        aq_ibv_error_qp_event(dev, event);
        break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        if (!aq_ibv_error_is_shutdown())
            aq_fatal("ibv: device %s: %s: a queue of this process overflowed or broke", dev->name,
                     what);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        if (!aq_ibv_error_is_shutdown())
            aq_fatal("ibv: device %s has failed or was removed (%s); the kernel's log (dmesg) "
                     "should say why",
                     dev->name, what);
        break;
    case IBV_EVENT_PORT_ERR:
        aq_ibv_error_port(net, dev, (unsigned)event->element.port_num, true);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        aq_ibv_error_port(net, dev, (unsigned)event->element.port_num, false);
        break;
    default: /* path migrated, GIDs or keys changed: nothing to do */
        break;
    }
}
