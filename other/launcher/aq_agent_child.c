/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_child.c - the state of a node's children: start, liveness, loss.
 * Threads   one
 * States    NEW -> OPEN (hello) -> DONE -> CLOSED; lost if it closes or is silent before DONE
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aq_config.h"
#include "other/launcher/aq_agent.h"

#define AQ_CHILD_START_TIMES 6 /* a host may take this many timeouts for its first answer */
#define AQ_CHILD_REAP_MS \
    1000 /* after the connection has closed: how long to wait for ssh's exit status, which
          * explains it */

static void aq_child_closed(struct aq_link *l)
{
    if (l->eof_ns == 0)
        l->eof_ns = aq_jobarea_now_ns();
}

/* At once: no time limit concerns a child that goes on talking. */
static void aq_child_drop(struct aq_link *l)
{
    if (l->pid > 0)
        kill(l->pid, SIGKILL);
    aq_link_close(l);
}

static void aq_child_greet(struct aq_node *n, struct aq_link *l)
{
    char version[AQ_HELLO_VERSION + 1];
    const char *noise;
    uint32_t protocol;
    size_t len;
    struct aq_pack p = { .buf = NULL };

    if (aq_frame_hello(&l->rx, &protocol, version, &noise, &len) == 0) {
        if (len <= AQ_FRAME_SMALL)
            return;
        aq_node_fail(n, 1,
                     "host %s prints more than %u bytes when one logs in, and no agent answers; "
                     "let the shell's startup files there print nothing for a command of ssh",
                     n->plan.host_name[l->first], AQ_FRAME_SMALL);
        aq_child_drop(l);
        return;
    }
    if (len > 0 && n->plan.verbose > 0)
        aq_shutdown_say("NOTICE", "host %s prints at login: %.*s", n->plan.host_name[l->first],
                        (int)(len < 400 ? len : 400), noise);
    if (protocol != AQ_AGENT_PROTOCOL) {
        aq_node_fail(
            n, 1,
            "host %s has version %s of gasnetrun, which does not understand ours (%s); install the "
            "same, or say where it is in GASNET_REMOTE_RUN",
            n->plan.host_name[l->first], version, PACKAGE_VERSION);
        aq_child_drop(l);
        return;
    }
    l->state = AQ_LINK_OPEN;
    aq_link_send(l, AQ_FRAME_SETUP, 0, n->plan.blob, n->plan.blob_len);
    aq_pack_u32(&p, l->first);
    aq_pack_u32(&p, l->end);
    aq_pack_u32(&p, n->window);
    aq_link_send_pack(l, AQ_FRAME_BEGIN, 0, &p);
    l->credit[0] = l->first == 0 ? AQ_AGENT_STDIN : 0;
    aq_node_send_state_to(n, l);
}

void aq_child_read(struct aq_node *n, struct aq_link *l)
{
    struct aq_frame f;
    int rc = 0;

    if (!aq_link_receive(l))
        aq_child_closed(l);
    if (l->state == AQ_LINK_NEW)
        aq_child_greet(n, l);
    if (l->state == AQ_LINK_NEW)
        return;
    while (l->state != AQ_LINK_CLOSED && (rc = aq_frame_next(&l->rx, &f)) > 0)
        aq_node_take_child(n, l, &f);
    if (rc < 0) {
        aq_node_fail(n, 1, "host %s sends what is no message of an agent",
                     n->plan.host_name[l->first]);
        aq_child_closed(l);
    }
}

static void aq_child_lose(struct aq_node *n, struct aq_link *l, uint64_t now)
{
    const char *host = n->plan.host_name[l->first];
    char ranks[64], why[700], said[512];
    bool silent = l->eof_ns == 0;

    aq_ssh_said(l, said);
    aq_plan_ranks(&n->plan, l->first, l->end, ranks);
    /* relaxed: this thread is the one that moves it beyond SHUTDOWN */
    if (atomic_load_explicit(&n->sv->jobarea->exit_state, memory_order_relaxed) < AQ_EXIT_ASKED) {
        if (l->state == AQ_LINK_NEW) {
            aq_ssh_why(n, l, why, sizeof(why));
            aq_node_fail(n, 1, "%s", why);
        } else if (silent) {
            aq_node_fail(n, AQ_AGENT_LOST,
                         "host %s (%s) was lost: nothing heard of it for %u s "
                         "(GASNET_HOST_TIMEOUT), the network or "
                         "the machine is down; ending the job",
                         host, ranks, (unsigned)((now - l->last_seen_ns) / 1000000000u));
        } else if (aq_node_was_absent(n, now)) {
            aq_node_fail(n, AQ_AGENT_LOST,
                         "gasnetrun was stopped for %u s, longer than hosts wait for it "
                         "(GASNET_HOST_TIMEOUT): "
                         "they have ended the job",
                         (unsigned)(n->absent_ns / 1000000000u));
        } else {
            aq_node_fail(
                n, AQ_AGENT_LOST,
                "host %s (%s) was lost: its connection ended, or its agent was killed%s%s; ending "
                "the job",
                host, ranks, *said != '\0' ? ": " : "", said);
        }
    }
    aq_child_drop(l);
}

/* checks whether the child is alive */
bool aq_child_check(struct aq_node *n, struct aq_link *l, uint64_t now)
{
    uint64_t limit = n->plan.timeout_ms * AQ_AGENT_MS;

    if (l->state == AQ_LINK_CLOSED)
        return false;
    if (!aq_link_flush(l))
        aq_child_closed(l);
    if (l->eof_ns != 0) {
        if (l->state == AQ_LINK_DONE || l->pid == 0
            || now - l->eof_ns > AQ_CHILD_REAP_MS * AQ_AGENT_MS) {
            if (l->err >= 0)
                aq_link_read_err(n, l);
            if (l->state == AQ_LINK_DONE)
                aq_link_close(l);
            else
                aq_child_lose(n, l, now);
        }
        return true;
    }
    if (n->paused || limit == 0)
        return false;
    if (l->state == AQ_LINK_NEW) {
        if (now - l->born_ns > limit * AQ_CHILD_START_TIMES)
            aq_child_lose(n, l, now);
        return false;
    }
    if (now - l->last_seen_ns > limit)
        aq_child_lose(n, l, now);
    else if (now - l->last_sent_ns > limit / 4)
        aq_link_send(l, AQ_FRAME_PING, 0, NULL, 0);
    aq_link_flush(l);
    return false;
}
