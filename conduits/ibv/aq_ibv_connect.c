/*
 * aq_ibv_connect.c - connections on demand: the connector, a thread of each process that sleeps in
 * the kernel; see aq_ibv_connect.h.
 *
 * Owns      the thread, and the eventfd that wakes it
 * Threads   its own; aq_ibv_peer_connect(): any. Both work on peers under connect_lock, a mutex in
 *           seq too
 * Promise   the connector takes no lock that is held while a handler runs, and runs no handler
 * Uses      aq_ibv_error.h, core/aq_poll.h to wake sleepers. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "conduits/ibv/aq_ibv_connect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"
#include "other/spawn/aq_spawn.h"

#define AQ_IBV_SILENT_NS UINT64_C(20000000000) /* without an answer before a warning */
#define AQ_IBV_FDS       (AQ_IBV_RAILS + 2)
#define AQ_IBV_FIND      16u /* addresses that are looked up at a time */

static struct {
    struct aq_ibv_net *net;
    pthread_t thread;
    int wake; /* an eventfd */
    atomic_bool stops;
    struct aq_ibv_hello_times times;
    struct aq_ibv_peer *find_next,
        *send_next; /* where the next round starts; NULL: with the first */
    bool spent;     /* a peer's address may not be needed any more */
} aq_ibv_connector AQ_JOB_STATE = { .wake = -1 };

static void aq_ibv_connect_wake(void)
{
    aq_ibv_wake(aq_ibv_connector.wake);
}

/* --- requests for a connection --- */

/* connect_lock held. This process needs no handshake with itself: its queue pairs lead
 * back to themselves. */
static void aq_ibv_connect_self(struct aq_ibv_peer *peer)
{
    peer->hello.remote = peer->hello.local;
    aq_ibv_peer_join(peer);
    peer->hello.step = AQ_IBV_HELLO_READY;
    /* release: pairs with the acquire in aq_ibv_peer() */
    atomic_store_explicit(&peer->ready, 1, memory_order_release);
}

static void aq_ibv_connect_begin(struct aq_ibv_peer *peer)
{
    if (peer->hello.step != AQ_IBV_HELLO_NONE)
        return;
    aq_ibv_peer_open(peer);
    if (peer->remote.rank == aq_job.rank) {
        aq_ibv_connect_self(peer);
        return;
    }
    aq_ibv_hello_begin(&peer->hello, aq_now_ns(), &aq_ibv_connector.times);
}

struct aq_ibv_peer *aq_ibv_peer_connect(gex_Rank_t rank)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_look(rank);

    if (peer != NULL && atomic_load_explicit(&peer->asked, memory_order_relaxed) != 0)
        return NULL; /* under way */
    pthread_mutex_lock(&aq_ibv_peers.connect_lock);
    peer = aq_ibv_peer_make(rank);
    aq_ibv_connect_begin(peer);
    /* relaxed: it only saves waiting threads the lock */
    atomic_store_explicit(&peer->asked, 1, memory_order_relaxed);
    pthread_mutex_unlock(&aq_ibv_peers.connect_lock);
    aq_ibv_connect_wake();
    return NULL;
}

/* --- the connector; connect_lock held --- */

static void aq_ibv_connect_take(const uint8_t *packet, size_t len)
{
    struct aq_ibv_peer *peer;
    uint32_t from;
    unsigned events;

    aq_counter_add(&aq_ibv_dgram_counts.received, 1);
    if (!aq_ibv_hello_from(packet, len, aq_job.rank, &from) || from >= aq_job.size
        || from == aq_job.rank) {
        aq_counter_add(&aq_ibv_dgram_counts.refused, 1);
        return;
    }
    peer = aq_ibv_peer_look(from);
    if (peer == NULL || peer->hello.step == AQ_IBV_HELLO_NONE) {
        if (!aq_ibv_hello_is_genuine(aq_spawn_key(), aq_job.rank, from, packet, len)) {
            aq_counter_add(&aq_ibv_dgram_counts.refused,
                           1); /* no queue pairs for an unauthenticated sender */
            return;
        }
        peer = aq_ibv_peer_make(from);
        aq_ibv_connect_begin(peer);
    }
    events = aq_ibv_hello_take(&peer->hello, packet, len);
    if ((events & AQ_IBV_HELLO_BAD) != 0)
        aq_counter_add(&aq_ibv_dgram_counts.refused, 1);
    if ((events & AQ_IBV_HELLO_MET) != 0)
        aq_ibv_peer_join(peer);
    if ((events & AQ_IBV_HELLO_DONE) != 0) {
        /* release: pairs with the acquire in aq_ibv_peer() */
        atomic_store_explicit(&peer->ready, 1, memory_order_release);
        aq_wait_wake(); /* threads that wait for the connection */
    }
}

static void aq_ibv_connect_look_silent(struct aq_ibv_peer *peer, uint64_t now_ns)
{
    const char *text = "its datagrams or ours do not arrive; is the network between the hosts up, "
                       "and do the ports of "
                       "all hosts belong to it (GASNET_IBV_PORTS)?";
    char who[AQ_IBV_WHO];

    if (peer->hello.step != AQ_IBV_HELLO_ASK || peer->warned
        || now_ns - peer->hello.since_ns < AQ_IBV_SILENT_NS || aq_exit_in_progress())
        return;
    (void)aq_ibv_remote_who(&peer->remote, who, sizeof(who));
    peer->warned =
        true; /* a stopped process looks the same, so this is only a warning once the job runs */
    if (!aq_job_has_started())
        aq_fatal("ibv: %s has not answered %u datagrams in %.0f s: %s", who, peer->hello.tries,
                 (double)AQ_IBV_SILENT_NS * 1e-9, text);
    aq_warn("ibv: %s has not answered %u datagrams in %.0f s: %s", who, peer->hello.tries,
            (double)AQ_IBV_SILENT_NS * 1e-9, text);
}

/* connect_lock held: the next peer; the first after the last. Rounds start at different peers, so
 * that no peer is left out while others use up what there is of something. */
static struct aq_ibv_peer *aq_ibv_connect_or_first(struct aq_ibv_peer *peer)
{
    return peer != NULL ? peer : atomic_load_explicit(&aq_ibv_peers.active, memory_order_relaxed);
}

/* Lock not held: look up the addresses of peers that are to be sent something, from the launcher
 * and the kernel. */
static void aq_ibv_connect_find(void)
{
    struct aq_ibv_peer *list[AQ_IBV_FIND], *peer, *first;
    unsigned count, found;

    do {
        const uint64_t now = aq_now_ns();

        count = found = 0;
        pthread_mutex_lock(&aq_ibv_peers.connect_lock);
        first = peer = aq_ibv_connect_or_first(aq_ibv_connector.find_next);
        while (peer != NULL && count < AQ_IBV_FIND) {
            if (peer->ah == NULL && aq_ibv_hello_deadline(&peer->hello) <= now)
                list[count++] = peer;
            peer = aq_ibv_connect_or_first(peer->next_active);
            if (peer == first)
                break;
        }
        aq_ibv_connector.find_next = peer;
        pthread_mutex_unlock(&aq_ibv_peers.connect_lock);
        for (unsigned i = 0; i < count; i++) {
            list[i]->sought = !aq_ibv_dgram_find(list[i]);
            found += !list[i]->sought;
        }
    } while (found == AQ_IBV_FIND); /* the list was full: there may be more */
}

/* Send one peer what is due; returns when more will be. */
static uint64_t aq_ibv_connect_send_one(struct aq_ibv_peer *peer, uint64_t now_ns)
{
    uint8_t packet[AQ_IBV_HELLO_BYTES];
    uint64_t deadline;

    if (aq_ibv_hello_due(&peer->hello, now_ns, &aq_ibv_connector.times)
        && !aq_ibv_dgram_send(peer, packet, aq_ibv_hello_encode(&peer->hello, packet)))
        aq_ibv_hello_again(&peer->hello, now_ns + aq_ibv_connector.times.first_ns);
    peer->sought = false;
    aq_ibv_connect_look_silent(peer, now_ns);
    deadline = aq_ibv_hello_deadline(&peer->hello);
    aq_ibv_connector.spent = aq_ibv_connector.spent || deadline == UINT64_MAX;
    return deadline;
}

/* Send all peers what is due; returns when more will be. */
static uint64_t aq_ibv_connect_send(uint64_t now_ns)
{
    struct aq_ibv_peer *const begin = aq_ibv_connect_or_first(aq_ibv_connector.send_next);
    struct aq_ibv_peer *peer = begin;
    uint64_t first = UINT64_MAX;

    while (peer != NULL) {
        uint64_t deadline;

        if (peer->ah == NULL && !peer->sought) { /* nothing was due when addresses were looked up */
            deadline = aq_ibv_hello_deadline(&peer->hello);
        } else if (aq_ibv_dgram_has_slot()) {
            deadline = aq_ibv_connect_send_one(peer, now_ns);
        } else { /* a completion wakes the connector; what is due stays due */
            first = now_ns + aq_ibv_connector.times.max_ns;
            break;
        }
        first = deadline < first ? deadline : first;
        peer = aq_ibv_connect_or_first(peer->next_active);
        if (peer == begin)
            break;
    }
    aq_ibv_connector.send_next = peer;
    return first;
}

/* Lock not held: drop addresses of peers that are sent nothing any more. */
static void aq_ibv_connect_forget(void)
{
    struct aq_ibv_peer *peer;

    if (!aq_ibv_connector.spent)
        return;
    aq_ibv_connector.spent = false;
    /* acquire: pairs with the release where a peer is made */
    for (peer = atomic_load_explicit(&aq_ibv_peers.active, memory_order_acquire); peer != NULL;
         peer = peer->next_active) {
        bool silent;

        if (peer->ah == NULL)
            continue;
        pthread_mutex_lock(&aq_ibv_peers.connect_lock);
        silent = aq_ibv_hello_deadline(&peer->hello) == UINT64_MAX;
        pthread_mutex_unlock(&aq_ibv_peers.connect_lock);
        if (silent)
            aq_ibv_dgram_forget(peer);
    }
}

/* Take all packets that arrived, send all that are due. */
static uint64_t aq_ibv_connect_progress(void)
{
    const uint8_t *packet;
    uint64_t deadline;
    size_t len;

    aq_ibv_dgram_arm();
    aq_ibv_connect_find();
    pthread_mutex_lock(&aq_ibv_peers.connect_lock);
    while ((packet = aq_ibv_dgram_receive(&len)) != NULL) {
        aq_ibv_connect_take(packet, len);
        aq_ibv_dgram_done(packet);
    }
    deadline = aq_ibv_connect_send(aq_now_ns());
    pthread_mutex_unlock(&aq_ibv_peers.connect_lock);
    aq_ibv_connect_forget();
    return deadline;
}

/* --- the thread --- */

static void aq_ibv_connect_events(void)
{
    struct aq_ibv_net *net = aq_ibv_connector.net;
    struct ibv_async_event event;

    for (uint32_t i = 0; i < net->dev_count; i++)
        while (net->lib->get_async_event(net->devs[i].context, &event) == 0) {
            net->lib->ack_async_event(&event); /* the objects that it names live on */
            aq_ibv_error_event(net, &net->devs[i], &event);
        }
}

static int aq_ibv_connect_timeout(uint64_t deadline)
{
    const uint64_t now = aq_now_ns();

    if (deadline == UINT64_MAX)
        return -1;
    return deadline <= now ? 0 : (int)((deadline - now) / 1000000) + 1;
}

static void *aq_ibv_connect_run(void *arg)
{
    struct aq_ibv_net *net = arg;
    struct pollfd fds[AQ_IBV_FDS];
    nfds_t count = 0;
    uint64_t drained;

    fds[count++] = (struct pollfd){ aq_ibv_connector.wake, POLLIN, 0 };
    fds[count++] = (struct pollfd){ aq_ibv_dgram_fd(), POLLIN, 0 };
    for (uint32_t i = 0; i < net->dev_count; i++)
        fds[count++] = (struct pollfd){ net->devs[i].context->async_fd, POLLIN, 0 };
    /* acquire: nothing is to be done after the stop */
    while (!atomic_load_explicit(&aq_ibv_connector.stops, memory_order_acquire)) {
        const uint64_t next = aq_ibv_connect_progress(),
                       errors = aq_ibv_error_check(net, aq_now_ns());
        const uint64_t deadline = next < errors ? next : errors;

        if (poll(fds, count, aq_ibv_connect_timeout(deadline)) > 0 && fds[0].revents != 0
            && read(aq_ibv_connector.wake, &drained, sizeof(drained)) < 0 && errno != EAGAIN)
            break; /* the descriptor is closed: the process ends */
        aq_ibv_connect_events();
    }
    return NULL;
}

static void aq_ibv_connect_configure(const struct aq_ibv_net *net)
{
    struct aq_ibv_hello_times *times = &aq_ibv_connector.times;
    const double first = aq_env_real(AQ_ENV_CONNECT_RETRANS_MIN),
                 max = aq_env_real(AQ_ENV_CONNECT_RETRANS_MAX);

    /* a software device on a busy core is slow */
    times->first_ns = first > 0 ? (uint64_t)(first * 1e3) : net->software ? 100000000 : 10000000;
    times->max_ns = max > 0 ? (uint64_t)(max * 1e3) : 1000000000;
    if (times->max_ns < times->first_ns)
        times->max_ns = times->first_ns;
}

int aq_ibv_connect_start(struct aq_ibv_net *net)
{
    struct aq_ibv_address address;
    sigset_t all, before;
    int rc;

    aq_ibv_connect_configure(net);
    aq_ibv_connector.net = net;
    aq_ibv_connector.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (aq_ibv_connector.wake < 0)
        return aq_fail(AQ_ERR_SYS, "ibv: eventfd: %s%s", strerror(errno),
                       errno == EMFILE ? "; raise ulimit -n" : "");
    aq_ibv_error_set_wakeup(aq_ibv_connector.wake);
    rc = aq_ibv_dgram_open(net, &address);
    if (rc == AQ_OK)
        rc = aq_spawn_publish(&address, sizeof(address));
    if (rc != AQ_OK)
        return rc;
    sigfillset(&all); /* signals are for the client's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&aq_ibv_connector.thread, NULL, aq_ibv_connect_run, net);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return aq_fail(AQ_ERR_SYS, "ibv: no thread for connections: %s; see ulimit -u",
                       strerror(rc));
    return AQ_OK;
}

void aq_ibv_connect_stop(void)
{
    /* release: pairs with the acquire in aq_ibv_connect_run() */
    atomic_store_explicit(&aq_ibv_connector.stops, true, memory_order_release);
    if (aq_ibv_connector.wake >= 0)
        aq_ibv_connect_wake();
}

void aq_ibv_connect_fini(void)
{
    const int error = pthread_join(aq_ibv_connector.thread, NULL);

    if (error != 0)
        aq_fatal("ibv: the thread for connections does not end: %s", strerror(error));
    aq_ibv_dgram_close();
    close(aq_ibv_connector.wake);
}
