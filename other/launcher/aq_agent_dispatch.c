/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_dispatch.c - handles the messages that a node receives; passes the job's exit state up
 * and down the tree.
 * Threads   one
 * How       the exit states of children are merged into the node's own job area, which then holds
 *           the state of its subtree, and sent to the parent. The root's job area holds the job's
 *           state; what the root decides is sent down
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_STATE_NAME_MS 150

/* an agent's own limit; the root's answer arrives long before */
#define AQ_STATE_WAIT_MS(b) (aq_jobarea_exit_ms(b) / 2)

static uint32_t aq_node_exit_state(const struct aq_node *n)
{
    /* acquire: the code is visible with the state */
    return atomic_load_explicit(&n->sv->jobarea->exit_state, memory_order_acquire);
}

static int aq_node_exit_code(const struct aq_node *n)
{
    /* relaxed: it only grows, and is sent again when it has grown */
    return atomic_load_explicit(&n->sv->jobarea->exit_code, memory_order_relaxed);
}

static void aq_node_send_up(struct aq_node *n, uint32_t state, int code)
{
    const struct aq_shutdown *shutdown = n->shutdown;
    uint64_t now = aq_jobarea_now_ns();
    struct aq_pack p = { .buf = NULL };
    uint32_t ask_in = shutdown->start_ns == 0 ? UINT32_MAX
                      : shutdown->ask_ns <= now
                          ? 0
                          : (uint32_t)((shutdown->ask_ns - now) / AQ_AGENT_MS);

    /* a rank that ended without a word is reported at the deadline: the root must receive that
     * before it decides */
    if (shutdown->silent > 0 && !shutdown->logged && ask_in != UINT32_MAX)
        ask_in += AQ_STATE_NAME_MS;
    /* a state beyond SHUTDOWN was received from the root, or is a kill by this node, which stays
     * local */
    if (state > AQ_EXIT_SHUTDOWN
        || (state == n->sent_state && code == n->sent_code && n->joined == n->sent_joined
            && n->frozen == n->sent_frozen && shutdown->ask_ns == n->sent_ask_ns))
        return;
    aq_pack_u32(&p, state);
    aq_pack_u32(&p, (uint32_t)code);
    aq_pack_u32(&p, ask_in);
    aq_pack_u32(&p, n->joined);
    aq_pack_u32(&p, n->frozen);
    aq_link_send_pack(&n->up, AQ_FRAME_STATE, 0, &p);
    n->sent_frozen = n->frozen;
    n->sent_ask_ns = shutdown->ask_ns;
    n->sent_state = state;
    n->sent_code = code;
    n->sent_joined = n->joined;
}

static void aq_node_pack_state(const struct aq_node *n, struct aq_pack *p)
{
    aq_pack_u32(p, aq_node_exit_state(n));
    aq_pack_u32(p, (uint32_t)aq_node_exit_code(n));
    aq_pack_u32(p, n->shutdown->stopped);
    aq_pack_u32(p, n->joined || n->shutdown->joined_elsewhere);
    aq_pack_u32(p, n->frozen || n->shutdown->frozen_elsewhere);
}

static void aq_node_send_down(struct aq_node *n, uint32_t state)
{
    uint32_t stopped = n->shutdown->stopped;
    struct aq_pack p = { .buf = NULL };

    if (state == n->sent_state && n->joined == n->sent_joined && stopped == n->sent_stopped
        && n->frozen == n->sent_frozen)
        return;
    aq_node_pack_state(n, &p);
    aq_node_tell_children(n, AQ_FRAME_STATE, 0, p.buf, p.len);
    free(p.buf);
    n->sent_state = state;
    n->sent_joined = n->joined;
    n->sent_stopped = stopped;
    n->sent_frozen = n->frozen;
}

void aq_node_send_state_to(struct aq_node *n, struct aq_link *l)
{
    struct aq_pack p = { .buf = NULL };

    aq_node_pack_state(n, &p);
    aq_link_send_pack(l, AQ_FRAME_STATE, 0, &p);
}

void aq_node_send_state(struct aq_node *n)
{
    uint32_t state = aq_node_exit_state(n);

    for (uint32_t i = 0; !n->joined && i < n->sv->jobarea->size; i++)
        /* relaxed: read again later */
        n->joined = atomic_load_explicit(&n->sv->jobarea->rank[i].state, memory_order_relaxed)
                    != AQ_RANK_EMPTY;
    n->frozen = aq_shutdown_frozen(n->shutdown);
    for (uint32_t i = 0; i < n->children; i++)
        n->frozen = n->frozen || (n->child[i].frozen && n->child[i].state == AQ_LINK_OPEN);
    if (n->is_root)
        n->shutdown->frozen_elsewhere = n->frozen;
    if (n->is_root)
        aq_node_send_down(n, state);
    else
        aq_node_send_up(n, state, aq_node_exit_code(n));
}

/* merges the exit state of a child */
static void aq_node_merge(struct aq_node *n, struct aq_link *l, const struct aq_frame *f)
{
    struct aq_unpack u = { f->data, f->len, false };
    uint32_t state = aq_unpack_u32(&u), code = aq_unpack_u32(&u), ask_in = aq_unpack_u32(&u);

    l->joined = aq_unpack_u32(&u) != 0;
    l->frozen = aq_unpack_u32(&u) != 0;
    n->joined = n->joined || l->joined;
    if (u.failed || aq_node_exit_state(n) >= AQ_EXIT_ASKED)
        return;
    aq_jobarea_raise_exit_code(n->sv->jobarea, (int)(code & 0xff));
    if (state >= AQ_EXIT_SHUTDOWN && ask_in != UINT32_MAX)
        aq_shutdown_begin(n->shutdown, ask_in);
}

/* applies the root's decision */
static void aq_node_obey(struct aq_node *n, const struct aq_frame *f)
{
    struct aq_unpack u = { f->data, f->len, false };
    uint32_t state = aq_unpack_u32(&u), code = aq_unpack_u32(&u), stopped = aq_unpack_u32(&u);
    uint32_t joined = aq_unpack_u32(&u), frozen = aq_unpack_u32(&u);
    struct aq_shutdown *shutdown = n->shutdown;

    if (u.failed)
        return;
    aq_node_tell_children(n, AQ_FRAME_STATE, 0, f->data, f->len);
    shutdown->joined_elsewhere = shutdown->joined_elsewhere || joined != 0;
    shutdown->stopped = shutdown->stopped || stopped != 0;
    shutdown->frozen_elsewhere = frozen != 0;
    if (state == AQ_EXIT_SHUTDOWN) {
        aq_jobarea_raise_exit_code(n->sv->jobarea, (int)(code & 0xff));
        aq_shutdown_begin(shutdown, AQ_STATE_WAIT_MS(n->sv->jobarea));
    }
    if (state >= AQ_EXIT_ASKED)
        aq_shutdown_agreed(shutdown, (int)(code & 0xff));
    if (state >= AQ_EXIT_KILLING)
        aq_shutdown_now(shutdown);
}

static uint32_t aq_node_number(const struct aq_frame *f)
{
    struct aq_unpack u = { f->data, f->len, false };

    return aq_unpack_u32(&u);
}

void aq_node_take_up(struct aq_node *n, const struct aq_frame *f)
{
    switch (f->type) {
    case AQ_FRAME_PING:
    case AQ_FRAME_SETUP:
    case AQ_FRAME_BEGIN:
        break;
    case AQ_FRAME_STATE:
        aq_node_obey(n, f);
        break;
    case AQ_FRAME_CREDIT:
        if (f->arg == STDOUT_FILENO || f->arg == STDERR_FILENO)
            n->up.credit[f->arg] += aq_node_number(f);
        break;
    case AQ_FRAME_STDIN:
        aq_feed_take(n, f);
        break;
    case AQ_FRAME_SIGNAL:
        aq_node_tell_children(n, AQ_FRAME_SIGNAL, f->arg, NULL, 0);
        aq_node_signal(n, f->arg);
        break;
    case AQ_FRAME_PAUSE:
    case AQ_FRAME_RESUME:
        aq_node_tell_children(n, f->type, 0, NULL, 0);
        aq_host_pause(n, f->type == AQ_FRAME_PAUSE);
        break;
    case AQ_FRAME_RESULT:
        aq_round_result(n, f);
        break;
    case AQ_FRAME_SHUTDOWN:
        n->in_shutdown = true;
        break;
    default:
        aq_node_fail(n, 1, "gasnetrun sent host %s a message %d that agents do not take",
                     n->plan.host_name[n->host], (int)f->type);
    }
}

static void aq_node_say(struct aq_node *n, const struct aq_frame *f)
{
    const char *kind = (const char *)f->data, *text = memchr(kind, '\0', f->len);

    if (text == NULL)
        return;
    text++;
    if (!n->is_root) {
        aq_link_send(&n->up, AQ_FRAME_SAY, 0, f->data, f->len);
        return;
    }
    /* one loss causes further ones, which are not reported */
    if (strcmp(kind, "NOTICE") != 0) {
        if (n->shutdown->logged)
            return;
        n->shutdown->logged = true;
    }
    aq_out_push(n, STDERR_FILENO, AQ_AGENT_NOBODY, text, f->len - (size_t)(text - kind));
}

void aq_node_take_child(struct aq_node *n, struct aq_link *l, const struct aq_frame *f)
{
    switch (f->type) {
    case AQ_FRAME_PING:
        break;
    case AQ_FRAME_STATE:
        aq_node_merge(n, l, f);
        break;
    case AQ_FRAME_SAY:
        aq_node_say(n, f);
        break;
    case AQ_FRAME_OUT:
        if (f->arg == STDOUT_FILENO || f->arg == STDERR_FILENO)
            aq_out_push(n, f->arg, (uint32_t)(l - n->child), (const char *)f->data, f->len);
        break;
    case AQ_FRAME_CREDIT:
        l->credit[0] += f->arg == 0 ? aq_node_number(f) : 0;
        break;
    case AQ_FRAME_GATHER:
        aq_round_contrib(n, l, f);
        break;
    case AQ_FRAME_DONE:
        l->state = AQ_LINK_DONE;
        break;
    default:
        aq_node_fail(n, 1, "the agent on host %s sent a message %d that is not for us",
                     n->plan.host_name[l->first], (int)f->type);
    }
}
