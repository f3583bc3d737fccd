/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_output.c - output of ranks on its way up the tree, and from the root to the user.
 * Threads   one
 * How       a queue of chunks for stdout and one for stderr. A chunk consists of whole lines,
 *           unless a line is too long, and is never divided on its way, so lines do not mix. An
 *           agent sends a chunk when its credit from the parent covers it. When a chunk has left a
 *           node, its sender gets the credit back
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

void aq_out_init(struct aq_node *n)
{
    for (int i = 0; i < 3; i++) {
        n->out[i].head = NULL;
        n->out[i].tail = &n->out[i].head;
        n->out[i].own = 0;
    }
}

void aq_out_push(struct aq_node *n, uint8_t which, uint32_t from, const char *data, size_t len)
{
    struct aq_outq *q = &n->out[which];
    struct aq_chunk *c = malloc(sizeof(*c) + len);

    if (c == NULL || len == 0) {
        free(c);
        return; /* without memory output is dropped */
    }
    c->next = NULL;
    c->from = from;
    c->len = (uint32_t)len;
    c->at = 0;
    memcpy(c->data, data, len);
    *q->tail = c;
    q->tail = &c->next;
    if (from == AQ_AGENT_NOBODY)
        q->own += len;
}

void aq_out_credit_update(struct aq_node *n, struct aq_link *l, uint8_t which, size_t bytes)
{
    uint8_t count[4];

    l->uncredited[which] += bytes;
    /* returns credit in larger amounts, unless nothing is left that could complete one */
    if (l->uncredited[which] == 0
        || (l->uncredited[which] < n->window / 4 && which != 0 && n->out[which].head != NULL))
        return;
    count[0] = (uint8_t)(l->uncredited[which] >> 24);
    count[1] = (uint8_t)(l->uncredited[which] >> 16);
    count[2] = (uint8_t)(l->uncredited[which] >> 8);
    count[3] = (uint8_t)l->uncredited[which];
    aq_link_send(l, AQ_FRAME_CREDIT, which, count, sizeof(count));
    l->uncredited[which] = 0;
}

static void aq_out_pop(struct aq_node *n, uint8_t which)
{
    struct aq_outq *q = &n->out[which];
    struct aq_chunk *c = q->head;

    q->head = c->next;
    if (q->head == NULL)
        q->tail = &q->head;
    if (c->from == AQ_AGENT_NOBODY)
        q->own -= c->len;
    else
        aq_out_credit_update(n, &n->child[c->from], which, c->len);
    free(c);
}

static void aq_out_pump_up(struct aq_node *n, uint8_t which)
{
    while (n->out[which].head != NULL && n->out[which].head->len <= n->up.credit[which]) {
        struct aq_chunk *c = n->out[which].head;

        n->up.credit[which] -= c->len;
        aq_link_send(&n->up, AQ_FRAME_OUT, which, c->data, c->len);
        aq_out_pop(n, which);
    }
}

static void aq_out_pump_user(struct aq_node *n, uint8_t which)
{
    struct aq_console *console = &n->console[which];

    while (n->out[which].head != NULL) {
        struct aq_chunk *c = n->out[which].head;
        ssize_t done =
            console->fd >= 0 ? aq_console_write(console, c->data + c->at, c->len - c->at) : -1;

        if (done == 0)
            return;
        if (done < 0) {
            console->fd = -1; /* the reader has closed it; ranks go on */
            c->at = c->len;
        } else {
            c->at += (uint32_t)done;
        }
        if (c->at == c->len)
            aq_out_pop(n, which);
    }
}

void aq_out_pump(struct aq_node *n)
{
    for (uint8_t which = STDOUT_FILENO; which <= STDERR_FILENO; which++) {
        if (n->is_root)
            aq_out_pump_user(n, which);
        else
            aq_out_pump_up(n, which);
    }
}

bool aq_out_is_empty(const struct aq_node *n)
{
    return n->out[STDOUT_FILENO].head == NULL && n->out[STDERR_FILENO].head == NULL;
}
