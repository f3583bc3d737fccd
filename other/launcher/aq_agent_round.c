/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_round.c - exchanges between hosts while the job starts, combined along the tree.
 * Threads   one
 * How       an agent's contribution is the contributions of its ranks followed by those of its
 *           children, which is the order of ranks. The root sends the whole down again, and each
 *           agent stores it in its job area
 * Promise   the job ends with a message if ranks take part in different exchanges
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_ROUND_HEAD 24 /* op, number, area, offset, bytes of a rank, root */

static void aq_round_head(struct aq_pack *p, const struct aq_exchange_request *r, uint32_t number)
{
    aq_pack_u32(p, r->op);
    aq_pack_u32(p, number);
    aq_pack_u32(p, r->area);
    aq_pack_u32(p, r->offset);
    aq_pack_u32(p, r->chunk);
    aq_pack_u32(p, r->root);
}

static bool aq_round_sane(const struct aq_node *n, const struct aq_exchange_request *r)
{
    uint64_t space = n->sv->jobarea->exchange_bytes;

    if (n->is_root)
        return r->op >= AQ_EXCHANGE_GATHER && r->op <= AQ_EXCHANGE_BCAST;
    if (r->op == AQ_EXCHANGE_GATHER)
        return r->area < 2 && (uint64_t)r->chunk * n->plan.ranks <= space;
    if (r->op == AQ_EXCHANGE_ADDRS)
        return (uint64_t)r->offset + r->chunk <= AQ_JOBAREA_ADDR_MAX;
    return r->op == AQ_EXCHANGE_BCAST && r->area < 2 && r->chunk <= space
           && r->root < n->plan.ranks;
}

/* address of a rank's contribution in the job area */
static uint8_t *aq_round_slot(const struct aq_node *n, const struct aq_exchange_request *r,
                              uint32_t rank)
{
    uint8_t *jobarea = (uint8_t *)n->sv->jobarea;

    if (r->op == AQ_EXCHANGE_ADDRS)
        return jobarea + n->sv->jobarea->addrs_offset + (uint64_t)rank * AQ_JOBAREA_ADDR_MAX
               + r->offset;
    if (r->op == AQ_EXCHANGE_BCAST)
        return jobarea + n->sv->jobarea->exchange_offset[r->area];
    return jobarea + n->sv->jobarea->exchange_offset[r->area] + (uint64_t)rank * r->chunk;
}

/* packs the contributions of this host's ranks */
static void aq_round_own(const struct aq_node *n, struct aq_pack *p)
{
    const struct aq_exchange_request *r = &n->request;
    uint32_t first = n->plan.host_first[n->host], end = n->plan.host_first[n->host + 1];

    if (r->op == AQ_EXCHANGE_BCAST) {
        if (r->root >= first && r->root < end)
            aq_pack_bytes(p, aq_round_slot(n, r, r->root), r->chunk);
        return;
    }
    for (uint32_t rank = first; rank < end; rank++)
        aq_pack_bytes(p, aq_round_slot(n, r, rank), r->chunk);
}

static void aq_round_put(struct aq_node *n, const uint8_t *data)
{
    const struct aq_exchange_request *r = &n->request;

    if (r->op == AQ_EXCHANGE_BCAST) {
        memcpy(aq_round_slot(n, r, 0), data, r->chunk);
        return;
    }
    for (uint32_t rank = 0; rank < n->plan.ranks; rank++)
        memcpy(aq_round_slot(n, r, rank), data + (size_t)rank * r->chunk, r->chunk);
}

static size_t aq_round_total(const struct aq_node *n, const struct aq_exchange_request *r)
{
    return (r->op == AQ_EXCHANGE_BCAST ? 1 : (size_t)n->plan.ranks) * r->chunk;
}

/* the root has no ranks: it takes the request from its first child */
static bool aq_round_adopt(struct aq_node *n)
{
    struct aq_unpack u = { n->child[0].contrib, n->child[0].contrib_len, false };

    n->request.op = aq_unpack_u32(&u);
    aq_unpack_u32(&u);
    n->request.area = aq_unpack_u32(&u);
    n->request.offset = aq_unpack_u32(&u);
    n->request.chunk = aq_unpack_u32(&u);
    n->request.root = aq_unpack_u32(&u);
    return !u.failed && aq_round_sane(n, &n->request);
}

static void aq_round_mixed(struct aq_node *n, const struct aq_link *l)
{
    char ranks[64];

    aq_node_fail(n, 1,
                 "host %s (%s) is not at the same step of the start as the others; is it the same "
                 "program there?",
                 n->plan.host_name[l->first], aq_plan_ranks(&n->plan, l->first, l->end, ranks));
}

/* everything below has contributed: sends the whole up, or from the root down */
static void aq_round_complete(struct aq_node *n)
{
    struct aq_pack p = { .buf = NULL };

    if (!n->is_root && !n->request_open)
        return;
    for (uint32_t i = 0; i < n->children; i++)
        if (!n->child[i].contrib_ready)
            return;
    if (n->is_root && !aq_round_adopt(n)) {
        aq_round_mixed(n, &n->child[0]);
        return;
    }
    aq_round_head(&p, &n->request, n->rounds);
    if (!n->is_root)
        aq_round_own(n, &p);
    for (uint32_t i = 0; i < n->children; i++) {
        struct aq_link *l = &n->child[i];

        if (l->contrib_len < AQ_ROUND_HEAD || p.failed
            || memcmp(l->contrib, p.buf, AQ_ROUND_HEAD) != 0)
            aq_round_mixed(n, l);
        else
            aq_pack_bytes(&p, l->contrib + AQ_ROUND_HEAD, l->contrib_len - AQ_ROUND_HEAD);
        free(l->contrib);
        l->contrib = NULL;
        l->contrib_ready = false;
    }
    if (!n->is_root) {
        aq_link_send_pack(&n->up, AQ_FRAME_GATHER, 0, &p);
        return;
    }
    if (p.len != AQ_ROUND_HEAD + aq_round_total(n, &n->request)) {
        if (!p.failed)
            aq_round_mixed(n, &n->child[0]);
    } else {
        aq_node_tell_children(n, AQ_FRAME_RESULT, 0, p.buf, p.len);
    }
    n->rounds++;
    free(p.buf);
}

/* the host's first rank has a contribution for the other hosts */
void aq_round_local(struct aq_node *n)
{
    struct aq_exchange_request r;
    ssize_t got = recv(n->local_fd, &r, sizeof(r), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t)sizeof(r)) { /* the rank has ended: its wait status says how */
        close(n->local_fd);
        n->local_fd = -1;
        return;
    }
    if (n->request_open || !aq_round_sane(n, &r)) {
        aq_node_fail(n, 1, "the first rank of host %s asks for an exchange that makes no sense",
                     n->plan.host_name[n->host]);
        return;
    }
    n->request = r;
    n->request_open = true;
    aq_round_complete(n);
}

void aq_round_contrib(struct aq_node *n, struct aq_link *l, const struct aq_frame *f)
{
    l->contrib = malloc(f->len + 1);
    if (l->contrib == NULL || l->contrib_ready) {
        aq_round_mixed(n, l);
        return;
    }
    memcpy(l->contrib, f->data, f->len);
    l->contrib_len = f->len;
    l->contrib_ready = true;
    aq_round_complete(n);
}

void aq_round_result(struct aq_node *n, const struct aq_frame *f)
{
    struct aq_pack p = { .buf = NULL };
    bool same;
    char done = 1;

    aq_round_head(&p, &n->request, n->rounds);
    same = n->request_open && !p.failed && f->len == AQ_ROUND_HEAD + aq_round_total(n, &n->request)
           && memcmp(p.buf, f->data, AQ_ROUND_HEAD) == 0;
    free(p.buf);
    if (!same) {
        aq_node_fail(n, 1, "the launcher's answer to host %s does not fit its question",
                     n->plan.host_name[n->host]);
        return;
    }
    aq_node_tell_children(n, AQ_FRAME_RESULT, 0, f->data, f->len);
    aq_round_put(n, f->data + AQ_ROUND_HEAD);
    n->request_open = false;
    n->rounds++;
    if (n->local_fd >= 0)
        send(n->local_fd, &done, 1,
             MSG_DONTWAIT | MSG_NOSIGNAL); /* a failure shows at the next read */
}
