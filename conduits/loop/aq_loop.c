/*
 * aq_loop.c - the loop conduit: active messages between the ranks of one host, over Unix sockets.
 *
 * The template of a network conduit: everything that a conduit must provide, and no more.
 *
 * Owns      aq_loop: two datagram sockets, one for requests and one for replies, and the addresses
 *           and counts of all peers; made by init, freed by fini
 * Delivery  the kernel neither loses nor reorders datagrams. A send succeeds, and the datagram is
 *           in the receiver's queue, or fails because the queue is full
 * Credits   none: a full queue is AQ_RETRY. Requests can fill neither the queue of replies nor the
 *           send buffer of the socket for replies. So a reply waits for handlers of replies only,
 *           and those send nothing
 * Buffers   none: the kernel copies a message when it is sent (core/aq_bufpool.h, for others)
 * Safety    every process of the host can send to the sockets: a datagram without the job's key is
 *           dropped
 * Threads   any. The kernel protects the sockets, the peers are constant after start-up, and the
 *           counts are atomic
 * Uses      other/spawn to exchange addresses; extended/aq_ref.h for what is not native
 * See       docs/adding-a-conduit.md. SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/loop/include/loop_const.h"
#include "core/aq_am.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"
#include "other/spawn/aq_spawn.h"

#define AQ_LOOP_KEY_BYTES  16u
#define AQ_LOOP_NAME_BYTES 6u   /* of a name that the kernel chooses: a zero byte, 5 digits */
#define AQ_LOOP_POLL_MAX   16u  /* most datagrams that one poll takes from a socket */
#define AQ_LOOP_POLL_NS    800u /* cost of an empty poll: two system calls */

/* Requests and replies have separate queues; the index is is_reply of struct aq_am_out. */
enum aq_loop_channel { AQ_LOOP_REQUEST, AQ_LOOP_REPLY, AQ_LOOP_CHANNELS };

/* The head of every datagram; the payload follows it, aligned. */
struct aq_loop_head {
    uint8_t key[AQ_LOOP_KEY_BYTES];
    uint64_t dest; /* of a Long: the address at the receiver */
    uint32_t jobrank;
    uint32_t nbytes;
    uint8_t handler, nargs, kind, unused[13];
    gex_AM_Arg_t args[AQ_AM_MAX_ARGS];
};
_Static_assert(sizeof(struct aq_loop_head) == 112, "no hole, and the payload is aligned");

/* The used part of a socket's struct sockaddr_un. */
struct aq_loop_address {
    sa_family_t family;
    char name[AQ_LOOP_NAME_BYTES];
};

struct aq_loop_peer {
    struct aq_loop_address address[AQ_LOOP_CHANNELS];
    aq_counter sent, handled;
};

static struct {
    int fd[AQ_LOOP_CHANNELS];
    struct aq_loop_peer *peers; /* [aq_job.size] */
} aq_loop AQ_JOB_STATE = { .fd = { -1, -1 } };

/* --- start --- */

/* Unix sockets are always there. The conduit of a network looks for its device here. */
static int aq_loop_probe(char *why, size_t len)
{
    (void)why, (void)len;
    return AQ_OK;
}

static int aq_loop_open_socket(enum aq_loop_channel channel, struct aq_loop_address *address_out)
{
    const sa_family_t unnamed = AF_UNIX; /* without a name: the kernel chooses one */
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int bytes = (int)aq_env_size(AQ_ENV_LOOP_SNDBUF);
    socklen_t len = sizeof(*address_out);

    aq_loop.fd[channel] = fd;
    if (fd < 0 || bind(fd, (const struct sockaddr *)&unnamed, sizeof(unnamed)) != 0
        || getsockname(fd, (struct sockaddr *)address_out, &len) != 0
        || (bytes != 0 && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) != 0))
        return aq_fail(AQ_ERR_SYS, "loop: no Unix socket for messages: %s%s", strerror(errno),
                       errno == EMFILE ? "; raise ulimit -n" : "");
    return aq_wait_add_fd(fd); /* a message wakes the threads that sleep */
}

/* Checks that a peer can be reached: a datagram to a name without a socket would be dropped, and
 * the sender would wait for ever. */
static int aq_loop_try_peer(gex_Rank_t jobrank)
{
    const struct aq_loop_address *address = aq_loop.peers[jobrank].address;
    int rc = AQ_OK;

    for (int channel = 0; channel < AQ_LOOP_CHANNELS; channel++) {
        const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0
            || connect(fd, (const struct sockaddr *)&address[channel], sizeof(*address)) != 0)
            rc = aq_fail(AQ_ERR_SYS,
                         "loop: rank %u cannot be reached: %s. All ranks must run in one network "
                         "namespace; or use another conduit",
                         jobrank, strerror(errno));
        close(fd);
    }
    return rc;
}

/* Exchanges the addresses of all ranks, at start. A conduit for many ranks or many hosts uses
 * aq_spawn_publish() and aq_spawn_lookup(), which fetch an address at first contact. */
static int aq_loop_exchange(const struct aq_loop_address self[AQ_LOOP_CHANNELS])
{
    struct aq_loop_address(*all)[AQ_LOOP_CHANNELS] = malloc(aq_job.size * sizeof(*all));
    int rc = AQ_ERR_NOMEM;

    aq_loop.peers = calloc(aq_job.size, sizeof(*aq_loop.peers));
    if (all == NULL || aq_loop.peers == NULL)
        aq_fail(rc, "loop: no memory for the addresses of %u ranks", aq_job.size);
    else
        rc = aq_spawn_allgather(self, sizeof(*all), all);
    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++) {
        memcpy(aq_loop.peers[rank].address, all[rank], sizeof(*all));
        rc = aq_loop_try_peer(rank);
    }
    free(all);
    return rc;
}

static int aq_loop_init(void)
{
    struct aq_loop_address self[AQ_LOOP_CHANNELS];
    int rc = AQ_OK;

    if (aq_job.host_count > 1)
        return aq_fail(AQ_ERR_NOSUP,
                       "loop: the job's ranks are on %u hosts, and the sockets of this conduit "
                       "reach one; use another conduit",
                       aq_job.host_count);
    memset(self, 0, sizeof(self));
    for (int channel = 0; channel < AQ_LOOP_CHANNELS && rc == AQ_OK; channel++)
        rc = aq_loop_open_socket((enum aq_loop_channel)channel, &self[channel]);
    if (rc == AQ_OK)
        rc = aq_loop_exchange(self);
    if (rc != AQ_OK)
        return rc;
    /* the shared-memory transport has set its limits; the job takes the smaller ones */
    aq_limits.max_medium = MIN(aq_limits.max_medium, LOOP_MAX_PAYLOAD);
    aq_limits.max_long = MIN(aq_limits.max_long, LOOP_MAX_PAYLOAD);
    aq_limits.poll_ns = AQ_LOOP_POLL_NS;
    return AQ_OK;
}

/* Frees everything: the job has ended, and the process goes on. */
static void aq_loop_fini(void)
{
    for (int channel = 0; channel < AQ_LOOP_CHANNELS; channel++)
        if (aq_loop.fd[channel] >= 0)
            close(aq_loop.fd[channel]);
    free(aq_loop.peers);
}

/* --- sending --- */

/* The return code for a datagram that could not be sent. */
static int aq_loop_refused(gex_Rank_t jobrank, int error)
{
    switch (error) {
    case EAGAIN: /* the receiver's queue is full, or the own send buffer */
    case ENOBUFS:
    case ENOMEM:
    case EINTR:
        return AQ_RETRY;
    case ECONNREFUSED: /* the process has ended; the spawner ends the job */
        AQ_LOG(DEBUG, LOOP, "rank %u has closed its socket; a message is dropped", jobrank);
        return AQ_OK;
    default:
        aq_fatal("loop: rank %u cannot be sent a message: %s", jobrank, strerror(error));
    }
}

/* Sends one datagram, gathered from the head and the client's memory. The kernel has copied the
 * payload when the call returns: local completion is immediate, and out->lc is not used. */
static int aq_loop_am_send(const struct aq_am_out *out)
{
    const int channel = out->is_reply ? AQ_LOOP_REPLY : AQ_LOOP_REQUEST;
    struct aq_loop_peer *peer = &aq_loop.peers[out->jobrank];
    struct aq_loop_head head = { .dest = (uintptr_t)out->dest,
                                 .jobrank = aq_job.rank,
                                 .nbytes = (uint32_t)out->nbytes,
                                 .handler = out->handler,
                                 .nargs = out->nargs,
                                 .kind = out->kind };
    struct iovec parts[] = { { &head, sizeof(head) },
                             { (void *)(uintptr_t)out->src, out->nbytes } };
    const struct msghdr message = { .msg_name = &peer->address[channel],
                                    .msg_namelen = sizeof(peer->address[channel]),
                                    .msg_iov = parts,
                                    .msg_iovlen = out->nbytes == 0 ? 1 : 2 };

    memcpy(head.key, aq_spawn_key(), sizeof(head.key));
    memcpy(head.args, out->args, out->nargs * sizeof(*out->args));
    if (sendmsg(aq_loop.fd[channel], &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return aq_loop_refused(out->jobrank, errno);
    aq_counter_add(&peer->sent, 1);
    return AQ_OK;
}

static int aq_loop_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                            const gex_AM_Arg_t *args)
{
    const struct aq_am_out out = aq_am_out_short(jobrank, is_reply, handler, nargs, args);

    return aq_loop_am_send(&out);
}

/* --- receiving --- */

struct aq_loop_datagram {
    _Alignas(16) struct aq_loop_head head;
    unsigned char payload[LOOP_MAX_PAYLOAD]; /* aligned for any type, as handlers expect */
};

/* Returns true if the datagram has the job's key. No other field is used before this check. len is
 * the length of the datagram, which may be longer than the buffer. */
static bool aq_loop_is_ours(const struct aq_loop_head *head, size_t len)
{
    return len >= sizeof(*head) && memcmp(head->key, aq_spawn_key(), sizeof(head->key)) == 0;
}

/* Ends the job if the datagram is not a message as aq_loop_am_send() makes it. A longer one is an
 * error of the client. */
static void aq_loop_check(const struct aq_loop_head *head, size_t len)
{
    if (head->jobrank >= aq_job.size || head->nargs > AQ_AM_MAX_ARGS || head->kind > AQ_AM_LONG
        || head->nbytes > LOOP_MAX_PAYLOAD || len != sizeof(*head) + head->nbytes)
        aq_fatal("loop: rank %u sent a message of kind %u with %u arguments and %u bytes in a "
                 "datagram of %zu bytes; the most is %u and %u bytes",
                 head->jobrank, head->kind, head->nargs, head->nbytes, len, AQ_AM_MAX_ARGS,
                 LOOP_MAX_PAYLOAD);
}

static void aq_loop_deliver(struct aq_loop_datagram *datagram, enum aq_loop_channel channel)
{
    const struct aq_loop_head *head = &datagram->head;
    struct aq_am_in in = { .token = { .jobrank = head->jobrank,
                                      .handler = head->handler,
                                      .nargs = head->nargs,
                                      .kind = head->kind,
                                      .is_reply = channel == AQ_LOOP_REPLY },
                           .args = head->args,
                           .payload = datagram->payload,
                           .nbytes = head->nbytes };

    if (head->kind == AQ_AM_LONG) {
        in.payload = (void *)(uintptr_t)head->dest;
        aq_bound_place_long(head->jobrank, in.payload, datagram->payload, in.nbytes);
    }
    aq_counter_add(&aq_loop.peers[head->jobrank].handled, 1);
    aq_am_deliver(&in);
}

/* The datagram is on the stack, since any number of threads receive at the same time, and a request
 * handler that waits for space for its reply enters this function again for replies, at most
 * once. */
static unsigned aq_loop_receive(enum aq_loop_channel channel)
{
    struct aq_loop_datagram datagram;
    unsigned served = 0;

    for (unsigned i = 0; i < AQ_LOOP_POLL_MAX; i++) {
        const ssize_t len =
            recv(aq_loop.fd[channel], &datagram, sizeof(datagram), MSG_DONTWAIT | MSG_TRUNC);

        if (len < 0)
            break;
        if (!aq_loop_is_ours(&datagram.head, (size_t)len))
            continue;
        aq_loop_check(&datagram.head, (size_t)len);
        aq_loop_deliver(&datagram, channel);
        served++;
    }
    return served;
}

static unsigned aq_loop_poll(enum aq_poll_kind kind)
{
    const unsigned served = aq_loop_receive(AQ_LOOP_REPLY);

    return kind == AQ_POLL_REPLIES ? served : served + aq_loop_receive(AQ_LOOP_REQUEST);
}

static void aq_loop_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    *sent_out = aq_counter_get(&aq_loop.peers[jobrank].sent);
    *handled_out = aq_counter_get(&aq_loop.peers[jobrank].handled);
}

/* --- the table --- */

extern const struct aq_conduit_info aq_loop_info; /* aq_loop_info.c */

const struct aq_conduit_ops aq_loop_conduit = {
    .info = &aq_loop_info,
    .caps = AQ_CAP_AM | AQ_CAP_NETWORK,
    .min_medium = LOOP_MAX_PAYLOAD,
    .min_long = LOOP_MAX_PAYLOAD,
    .spawn = NULL, /* other/spawn finds a way */
    .probe = aq_loop_probe,
    .init = aq_loop_init,
    .fini = aq_loop_fini,
    .quiesce = aq_nosup_quiesce,               /* every sent message has arrived */
    .segment_attach = aq_nosup_segment_attach, /* no device registers the segment */
    .segment_ready = aq_nosup_segment_ready,
    .segment_discard = aq_nosup_segment_discard,
    .segment_detach = aq_nosup_segment_detach,
    .segment_bind = aq_nosup_segment_bind,
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_nosup_exit, /* every sent message has arrived */
    .am_send = aq_loop_am_send,
    .am_short = aq_loop_am_short,
    .am_medium = aq_nosup_am_medium,
    .am_alloc = aq_nosup_am_alloc, /* negotiated payloads: buffers of core */
    .am_free = aq_nosup_am_free,
    .poll = aq_loop_poll,
    .busy = &aq_nosup_busy, /* no work is left between polls */
    .peer_counts = aq_loop_peer_counts,
    .sleep_prepare = aq_nosup_sleep_prepare, /* the local table sleeps */
    .sleep = aq_nosup_sleep,
    .sleep_cancel = aq_nosup_sleep_cancel,
    .sleep_wake = aq_nosup_sleep_wake,
    .sleep_add_fd = aq_nosup_sleep_add_fd,
    .wait_arm = aq_nosup_wait_arm, /* nothing is deferred; a datagram wakes a sleeper */
    .wait_limit = aq_nosup_wait_limit,
    .wait_look = aq_nosup_wait_look,
    .may_notify = aq_nosup_may_notify,
    .is_one_sided = aq_nosup_is_one_sided,
    .put = aq_ref_put,
    .get = aq_ref_get,
    .rma_batch_begin = aq_nosup_rma_batch_begin,
    .rma_batch_end = aq_nosup_rma_batch_end,
    .ad_serves = aq_nosup_ad_serves, /* atomics: by messages */
    .ad_op = aq_nosup_ad_op,
    .coll = &aq_nosup_coll, /* collectives: by messages */
    .rndv_recv = aq_nosup_rndv_recv,
    .rndv_send = aq_nosup_rndv_send,
    .barrier_arrive = aq_ref_barrier_arrive,
    .barrier_done = aq_ref_barrier_done,
    .named_arrive = aq_ref_named_arrive,
    .named_done = aq_ref_named_done,
};
