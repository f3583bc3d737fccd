/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_link.c - the connection of a node with its child or parent: frames through two pipes.
 * Threads   one
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_LINK_READ (64u << 10)
#define AQ_LINK_KEEP (256u << 10) /* a larger buffer was for an exchange and is freed */

void aq_link_init(struct aq_link *l, int in, int out, int err)
{
    memset(l, 0, sizeof(*l));
    l->in = in;
    l->out = out;
    l->err = err;
    l->born_ns = l->last_seen_ns = l->last_sent_ns = aq_jobarea_now_ns();
    if (in >= 0)
        fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    if (out >= 0)
        fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    if (err >= 0)
        fcntl(err, F_SETFL, fcntl(err, F_GETFL) | O_NONBLOCK);
}

void aq_link_send(struct aq_link *l, enum aq_frame_type type, uint8_t arg, const void *data,
                  size_t len)
{
    uint8_t head[AQ_FRAME_HEAD];

    if (l->out < 0)
        return;
    aq_frame_head(head, type, arg, (uint32_t)len);
    aq_pack_bytes(&l->tx, head, sizeof(head));
    aq_pack_bytes(&l->tx, data, len);
}

void aq_link_send_pack(struct aq_link *l, enum aq_frame_type type, uint8_t arg, struct aq_pack *p)
{
    aq_link_send(l, type, arg, p->buf, p->len);
    free(p->buf);
    memset(p, 0, sizeof(*p));
}

bool aq_link_has_output(const struct aq_link *l)
{
    return l->out >= 0 && l->tx.len > l->tx_head;
}

bool aq_link_flush(struct aq_link *l)
{
    if (l->tx.failed)
        return false;
    while (aq_link_has_output(l)) {
        ssize_t done = write(l->out, l->tx.buf + l->tx_head, l->tx.len - l->tx_head);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN;
        l->tx_head += (size_t)done;
        l->last_sent_ns = aq_jobarea_now_ns();
    }
    l->tx.len = l->tx_head = 0;
    if (l->tx.cap > AQ_LINK_KEEP) {
        free(l->tx.buf);
        memset(&l->tx, 0, sizeof(l->tx));
    }
    return true;
}

bool aq_link_receive(struct aq_link *l)
{
    /* one read: a child that sends a lot must not delay the others */
    uint8_t *at = aq_frame_space(&l->rx, AQ_LINK_READ);
    ssize_t got;

    if (at == NULL)
        return false;
    got = read(l->in, at, AQ_LINK_READ);
    if (got > 0) {
        aq_frame_added(&l->rx, (size_t)got);
        l->last_seen_ns = aq_jobarea_now_ns();
        return true;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

/* before the hello this output explains why there is none; later it is ordinary output */
void aq_link_read_err(struct aq_node *n, struct aq_link *l)
{
    char buf[AQ_AGENT_LINE];
    ssize_t got = read(l->err, buf, sizeof(buf));
    size_t len, space = sizeof(l->text) - 1;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        close(l->err);
        l->err = -1;
        return;
    }
    len = (size_t)got;
    if (l->state != AQ_LINK_NEW)
        aq_out_push(n, STDERR_FILENO, AQ_AGENT_NOBODY, buf, len);
    if (len > space)
        len = space;
    if (l->text_len + len > space) {
        size_t drop = l->text_len + len - space;

        memmove(l->text, l->text + drop, l->text_len - drop);
        l->text_len -= drop;
    }
    memcpy(l->text + l->text_len, buf + (size_t)got - len, len);
    l->text_len += len;
    l->text[l->text_len] = '\0';
}

void aq_link_close(struct aq_link *l)
{
    int fds[] = { l->in, l->out, l->err };

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    l->in = l->out = l->err = -1;
    aq_frame_free(&l->rx);
    free(l->tx.buf);
    memset(&l->tx, 0, sizeof(l->tx));
    l->tx_head = 0;
    l->state = AQ_LINK_CLOSED;
}
