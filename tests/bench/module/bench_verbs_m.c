/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_verbs_m.c - ping-pong, RDMA writes and reads, streams of them, and fetch-and-add by bare
 * verbs.
 * Owns      a reliable queue pair between ranks 0 and 1, three buffers, all registered: from open
 *           to close
 * Threads   one in each process
 * Uses      libibverbs, bench_raw.h
 *
 * The same device as the conduit's first port: the one that GASNET_IBV_PORTS names first, else the
 * first with an active port; the same kind of address. Each loop is post, then poll for the
 * completion: of an RDMA write that is the other device's acknowledgement, so that a write counts
 * as over when a blocking put does. While rank 0 writes and reads, rank 1 sleeps in the kernel
 * until it is told that it is over.
 *
 * A software device does its work on the cores that the ranks spin on: who only polls waits for the
 * end of his time slice. So on such a device the loops yield after some polls in vain; on others
 * they do not.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_raw.h"

#define DEPTH        128                 /* requests of the queue pair, and receives posted */
#define INLINE       128                 /* bytes */
#define WINDOW       64                  /* requests under way, at most */
#define WINDOW_BYTES ((uint64_t)4 << 20) /* and bytes; at least two requests */
#define SIGNAL_EACH  32                  /* sends of a ping-pong */
#define TIMEOUT      4                   /* polls in vain of a software device before a yield */
#define HUGE_PAGE    ((size_t)2 << 20)
#define RAW_PING_MAX 65536

struct raw_address {
    union ibv_gid gid;
    uint64_t base;
    uint32_t qpn, rkey, mtu;
    uint16_t lid;
};

static struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* of receives */
    struct ibv_cq *sent, *received;
    struct ibv_qp *qp;
    struct ibv_mr *src_mr, *dst_mr, *base_mr;
    unsigned char *src, *dst, *base;
    struct ibv_port_attr port_attr;
    struct raw_address ours, remote;
    uint8_t port, gid_index;
    uint32_t rank, unsignalled;
    unsigned yield_after; /* polls in vain before a yield; 0: no yield */
} raw;

/* --- opening --- */

/* The name of the port, if one is asked for: "rxe0" or "mlx5_1:2". */
static void raw_asked(char *name, size_t size, int *port_out)
{
    const char *ports = getenv("GASNET_IBV_PORTS");
    size_t len = ports != NULL ? strcspn(ports, ":+, ") : 0;

    *port_out = len != 0 && ports[len] == ':' ? atoi(ports + len + 1) : 0;
    snprintf(name, size, "%.*s", (int)len, ports != NULL ? ports : "");
}

static bool raw_open_device(void)
{
    char asked[64], path[128];
    int count = 0, asked_port;
    struct ibv_device **list = ibv_get_device_list(&count);

    raw_asked(asked, sizeof(asked), &asked_port);
    for (int i = 0; i < count && raw.context == NULL; i++) {
        struct ibv_device_attr attr;

        if (*asked != '\0' && strcmp(asked, ibv_get_device_name(list[i])) != 0)
            continue;
        raw.context = ibv_open_device(list[i]);
        if (raw.context == NULL || ibv_query_device(raw.context, &attr) != 0)
            continue;
        for (uint8_t port = 1; port <= attr.phys_port_cnt && raw.port == 0; port++)
            if ((asked_port == 0 || asked_port == port)
                && ibv_query_port(raw.context, port, &raw.port_attr) == 0
                && raw.port_attr.state == IBV_PORT_ACTIVE)
                raw.port = port;
        if (raw.port == 0) {
            ibv_close_device(raw.context);
            raw.context = NULL;
        }
    }
    ibv_free_device_list(list);
    if (raw.context == NULL)
        return false;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device",
             ibv_get_device_name(raw.context->device));
    raw.yield_after = access(path, F_OK) == 0 ? 0 : TIMEOUT;
    return true;
}

/* On Ethernet the version 2 address that is an IPv4 one, else the first one. */
static void raw_choose_gid(void)
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

    ibv_query_gid(raw.context, raw.port, 0, &raw.ours.gid);
    for (int i = 0; i < raw.port_attr.gid_tbl_len && i < 256; i++) {
        struct ibv_gid_entry entry;

        if (ibv_query_gid_ex(raw.context, raw.port, (uint32_t)i, &entry, 0) != 0
            || entry.gid_type != IBV_GID_TYPE_ROCE_V2
            || memcmp(entry.gid.raw, mapped, sizeof(mapped)) != 0)
            continue;
        raw.ours.gid = entry.gid;
        raw.gid_index = (uint8_t)i;
        return;
    }
}

static unsigned char *raw_memory(size_t size, int value, struct ibv_mr **mr_out)
{
    unsigned char *p = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);

    if (p == NULL)
        return NULL;
    memset(p, value, size);
    *mr_out = ibv_reg_mr(raw.pd, p, size,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
                             | IBV_ACCESS_REMOTE_ATOMIC);
    return *mr_out != NULL ? p : NULL;
}

static bool raw_open_queues(void)
{
    struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = raw.port };

    raw.channel = ibv_create_comp_channel(raw.context);
    raw.sent = ibv_create_cq(raw.context, DEPTH, NULL, NULL, 0);
    raw.received =
        raw.channel != NULL ? ibv_create_cq(raw.context, DEPTH, NULL, raw.channel, 0) : NULL;
    if (raw.sent == NULL || raw.received == NULL)
        return false;
    init.send_cq = raw.sent;
    init.recv_cq = raw.received;
    init.cap = (struct ibv_qp_cap){ .max_send_wr = DEPTH,
                                    .max_recv_wr = DEPTH,
                                    .max_send_sge = 1,
                                    .max_recv_sge = 1,
                                    .max_inline_data = INLINE };
    raw.qp = ibv_create_qp(raw.pd, &init);
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return raw.qp != NULL
           && ibv_modify_qp(raw.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
                  == 0;
}

static bool raw_receive(void)
{
    struct ibv_sge sge = { .addr = (uintptr_t)raw.dst,
                           .length = RAW_PING_MAX,
                           .lkey = raw.dst_mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    return ibv_post_recv(raw.qp, &wr, &bad) == 0;
}

static bool raw_connect(void)
{
    struct ibv_device_attr device;
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
                                .dest_qp_num = raw.remote.qpn,
                                .min_rnr_timer = 12 };

    if (ibv_query_device(raw.context, &device) != 0)
        return false;
    attr.path_mtu = raw.ours.mtu < raw.remote.mtu ? raw.ours.mtu : raw.remote.mtu;
    attr.max_dest_rd_atomic = (uint8_t)(device.max_qp_rd_atom < 16 ? device.max_qp_rd_atom : 16);
    attr.ah_attr.dlid = raw.remote.lid;
    attr.ah_attr.port_num = raw.port;
    attr.ah_attr.is_global = raw.remote.lid == 0;
    attr.ah_attr.grh.dgid = raw.remote.gid;
    attr.ah_attr.grh.sgid_index = raw.gid_index;
    attr.ah_attr.grh.hop_limit = 64;
    if (ibv_modify_qp(raw.qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                          | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
        != 0)
        return false;
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 18;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = attr.max_dest_rd_atomic;
    for (int i = 0; i < DEPTH / 2; i++)
        if (!raw_receive())
            return false;
    return ibv_modify_qp(raw.qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                             | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
           == 0;
}

/* --- posting and polling --- */

static _Noreturn void raw_die(const char *what)
{
    fprintf(stderr, "aq-bench: limit by verbs: %s\n", what);
    _exit(1);
}

static void raw_post(enum ibv_wr_opcode opcode, size_t n, bool signalled)
{
    const bool in = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    struct ibv_sge sge = { .addr = (uintptr_t)(in ? raw.dst : raw.src),
                           .length = (uint32_t)n,
                           .lkey = in ? raw.dst_mr->lkey : raw.src_mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

    wr.send_flags =
        (signalled ? IBV_SEND_SIGNALED : 0) | (!in && n <= INLINE ? IBV_SEND_INLINE : 0);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = raw.remote.base;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = raw.remote.rkey;
    } else {
        wr.wr.rdma.remote_addr = raw.remote.base;
        wr.wr.rdma.rkey = raw.remote.rkey;
    }
    if (ibv_post_send(raw.qp, &wr, &bad) != 0)
        raw_die("a request was not taken");
}

static int raw_poll_once(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    const int got = ibv_poll_cq(cq, 1, &wc);

    if (got < 0 || (got > 0 && wc.status != IBV_WC_SUCCESS))
        raw_die(got < 0 ? "a completion queue cannot be read" : ibv_wc_status_str(wc.status));
    return got;
}

static void raw_wait(struct ibv_cq *cq)
{
    for (unsigned polls = 1; raw_poll_once(cq) == 0; polls++)
        if (raw.yield_after != 0 && polls % raw.yield_after == 0)
            sched_yield();
}

/* A message of n bytes; few are signalled. */
static void raw_send(size_t n)
{
    const bool signalled = ++raw.unsignalled % SIGNAL_EACH == 0;

    raw_post(IBV_WR_SEND, n, signalled);
    if (signalled)
        raw_wait(raw.sent);
}

static void raw_take(void)
{
    raw_wait(raw.received);
    if (!raw_receive())
        raw_die("a receive was not taken");
}

/* The same asleep. */
static void raw_take_asleep(void)
{
    struct ibv_cq *cq;
    void *own;

    while (ibv_req_notify_cq(raw.received, 0) == 0 && raw_poll_once(raw.received) == 0) {
        if (ibv_get_cq_event(raw.channel, &cq, &own) != 0)
            raw_die("no event of a completion queue can be had");
        ibv_ack_cq_events(cq, 1);
    }
    if (!raw_receive())
        raw_die("a receive was not taken");
}

/* --- the runs --- */

static void raw_ping(size_t n, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (raw.rank == 0)
            raw_send(n);
        raw_take();
        if (raw.rank != 0)
            raw_send(n);
    }
}

static uint64_t raw_window(size_t n)
{
    const uint64_t window = n > 0 ? WINDOW_BYTES / n : WINDOW;

    return window < 2 ? 2 : window > WINDOW ? WINDOW : window;
}

/* Rank 0: at most window requests under way. */
static void raw_one_sided(enum ibv_wr_opcode opcode, size_t n, uint64_t iters, uint64_t window)
{
    if (raw.rank != 0) {
        raw_take_asleep();
        return;
    }
    for (uint64_t i = 0; i < iters; i++) {
        if (i >= window)
            raw_wait(raw.sent);
        raw_post(opcode, n, true);
    }
    for (uint64_t i = 0; i < window && i < iters; i++)
        raw_wait(raw.sent);
    raw_send(AQ_RAW_MIN);
}

/* --- the table --- */

static unsigned raw_ways(enum aq_raw_kind kind, size_t n)
{
    switch (kind) {
    case AQ_RAW_PING:
        return n <= RAW_PING_MAX;
    case AQ_RAW_PUT:
    case AQ_RAW_GET:
    case AQ_RAW_PUT_STREAM:
    case AQ_RAW_GET_STREAM:
    case AQ_RAW_FADD:
        return 1;
    default:
        return 0;
    }
}

static const char *raw_name(enum aq_raw_kind kind, unsigned way)
{
    (void)kind, (void)way;
    return raw.yield_after == 0 ? "verbs: post, poll" : "verbs: post, poll, yield";
}

static void raw_run(enum aq_raw_kind kind, unsigned way, size_t n, uint64_t iters)
{
    const size_t min = n < AQ_RAW_MIN ? AQ_RAW_MIN : n;

    (void)way;
    switch (kind) {
    case AQ_RAW_PUT:
        raw_one_sided(IBV_WR_RDMA_WRITE, n, iters, 1);
        break;
    case AQ_RAW_GET:
        raw_one_sided(IBV_WR_RDMA_READ, n, iters, 1);
        break;
    case AQ_RAW_PUT_STREAM:
        raw_one_sided(IBV_WR_RDMA_WRITE, n, iters, raw_window(n));
        break;
    case AQ_RAW_GET_STREAM:
        raw_one_sided(IBV_WR_RDMA_READ, n, iters, raw_window(n));
        break;
    case AQ_RAW_FADD:
        raw_one_sided(IBV_WR_ATOMIC_FETCH_AND_ADD, sizeof(uint64_t), iters, 1);
        break;
    default:
        raw_ping(min, iters);
    }
}

static void raw_ready(void)
{
    raw_send(AQ_RAW_MIN);
}

static bool raw_is_ready(void)
{
    if (raw_poll_once(raw.received) == 0)
        return false;
    return raw_receive();
}

/* --- open, close --- */

/* What rank 0 writes to rank 1 it must read back: a limit that moves nothing is none. */
static bool raw_check(void)
{
    if (raw.rank != 0)
        return true;
    memset(raw.src, 0x5a, 4096);
    raw_post(IBV_WR_RDMA_WRITE, 4096, true);
    raw_wait(raw.sent);
    raw_post(IBV_WR_RDMA_READ, 4096, true);
    raw_wait(raw.sent);
    return memcmp(raw.src, raw.dst, 4096) == 0;
}

static const char *raw_open(uint32_t rank, size_t largest, aq_raw_exchange_fn *exchange)
{
    bool good, target_addr = false;

    raw.rank = rank;
    if (rank > 1)
        return NULL;
    good = raw_open_device() && (raw.pd = ibv_alloc_pd(raw.context)) != NULL && raw_open_queues();
    largest = largest < RAW_PING_MAX ? RAW_PING_MAX : largest;
    good = good && (raw.src = raw_memory(largest, 1, &raw.src_mr)) != NULL
           && (raw.dst = raw_memory(largest, 2, &raw.dst_mr)) != NULL
           && (raw.base = raw_memory(largest, 3, &raw.base_mr)) != NULL;
    if (good) {
        raw_choose_gid();
        raw.ours.base = (uintptr_t)raw.base;
        raw.ours.qpn = raw.qp->qp_num;
        raw.ours.rkey = raw.base_mr->rkey;
        raw.ours.mtu = raw.port_attr.active_mtu;
        raw.ours.lid = raw.port_attr.lid;
    }
    exchange(&raw.ours, &raw.remote,
             sizeof(raw.ours)); /* without a queue pair: the other side must hear of it */
    good = good && raw.remote.qpn != 0 && raw_connect();
    exchange(&good, &target_addr, sizeof(good)); /* both can receive */
    if (!good || !target_addr)
        return "no queue pair could be had";
    return raw_check() ? NULL : "an RDMA read does not bring what was written";
}

static void raw_close(void)
{
    if (raw.rank > 1)
        return;
    ibv_destroy_qp(raw.qp);
    ibv_destroy_cq(raw.sent);
    ibv_destroy_cq(raw.received);
    ibv_destroy_comp_channel(raw.channel);
    ibv_dereg_mr(raw.src_mr);
    ibv_dereg_mr(raw.dst_mr);
    ibv_dereg_mr(raw.base_mr);
    ibv_dealloc_pd(raw.pd);
    ibv_close_device(raw.context);
    free(raw.src);
    free(raw.dst);
    free(raw.base);
}

static const char *raw_version(void)
{
    return "libibverbs";
}

const struct aq_raw_lib aq_bench_raw = {
    .open = raw_open,
    .close = raw_close,
    .ways = raw_ways,
    .name = raw_name,
    .version = raw_version,
    .ready = raw_ready,
    .is_ready = raw_is_ready,
    .run = raw_run,
};
