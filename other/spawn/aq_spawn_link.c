/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link.c - the hosts of a job agree on its end; see aq_spawn_link.h.
 * Threads   the page's fields below `owner` belong to the owner, except the atomic ones
 * How       two notes for each neighbour: the one received from it, and the one sent to it. A note
 *           that changes gets a new version and is sent until the neighbour confirms that version
 * See       aq_spawn_link_wire.c for sockets, addresses and datagrams
 */
#include "other/spawn/aq_spawn_link.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn_link_internal.h"

#define AQ_LINK_MS         1000000ull /* nanoseconds in a millisecond */
#define AQ_LINK_FIRST_MS   20         /* delay of the first retransmission */
#define AQ_LINK_LAST_MS    200  /* longest delay of a retransmission once the job shuts down */
#define AQ_LINK_ALIVE_MS   1000 /* longest time without a datagram, so that a refusal is noticed */
#define AQ_LINK_SILENT_S   30   /* default of GASNET_HOST_TIMEOUT */
#define AQ_LINK_REFUSED_MS 50   /* delay after a refusal */
/* refusals in a row after which the neighbour's processes are gone */
#define AQ_LINK_REFUSALS    3
#define AQ_LINK_SILENT_CODE 255 /* the same as the launcher's agents use */
#define AQ_LINK_SETTLE_MS   300 /* how long to wait for children that do not confirm the end */

struct aq_link aq_link_me AQ_JOB_STATE = { .fd = -1 };

int aq_link_create(char addr_out[AQ_LINK_ADDR_MAX], int fds_out[2])
{
    int area = memfd_create("aq-link", MFD_CLOEXEC);

    fds_out[0] = aq_link_socket(addr_out);
    fds_out[1] = area;
    if (fds_out[0] < 0 || area < 0 || ftruncate(area, sizeof(struct aq_link_area)) != 0)
        return aq_fail(AQ_ERR_SYS,
                       "spawn: no UDP socket or no memory to speak with other hosts: %s",
                       strerror(errno));
    return AQ_OK;
}

uint32_t aq_link_parent(const struct aq_spawn_info *info)
{
    return info->host_index == 0 ? UINT32_MAX : (info->host_index - 1) / AQ_LINK_DEGREE;
}

static struct aq_link_end *aq_link_add(uint32_t host)
{
    struct aq_link_end *end = &aq_link_me.area->end[aq_link_me.area->count++];

    end->host = host;
    end->version = 1;
    return end;
}

/* the neighbours; the parent is first, if there is one */
static void aq_link_fill(const struct aq_spawn_info *info)
{
    uint64_t child = (uint64_t)info->host_index * AQ_LINK_DEGREE + 1;

    aq_link_me.area->has_parent = info->host_index > 0;
    if (info->host_index > 0)
        aq_link_add(aq_link_parent(info));
    for (uint64_t i = 0; i < AQ_LINK_DEGREE && child + i < info->host_count; i++)
        aq_link_add((uint32_t)(child + i));
}

/* A wrong value is reported by aq_env_init(). */
static void aq_link_set_timeout(void)
{
    const char *text = getenv("GASNET_HOST_TIMEOUT");
    double seconds = AQ_LINK_SILENT_S, value;

    if (text != NULL && *text != '\0' && aq_env_parse_time(text, "s", &value) && value >= 0)
        seconds = value;
    if (seconds > 0 && seconds < 0.2)
        seconds = 0.2; /* a shorter silence can be a busy machine */
    aq_link_me.silence_ns = seconds > 1e8 ? 0 : (uint64_t)(seconds * 1e9);
    aq_link_me.alive_ms = AQ_LINK_ALIVE_MS;
    if (aq_link_me.silence_ns != 0 && seconds * 250 < AQ_LINK_ALIVE_MS)
        aq_link_me.alive_ms = (uint32_t)(seconds * 250);
}

int aq_link_attach(const int fds[2], const struct aq_spawn_info *info, const uint8_t job_key[32])
{
    struct aq_link *l = &aq_link_me;
    void *page = mmap(NULL, sizeof(*l->area), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);

    close(fds[1]);
    if (page == MAP_FAILED)
        return aq_fail(AQ_ERR_SYS, "spawn: cannot map what other hosts say: %s", strerror(errno));
    l->area = page;
    l->fd = fds[0];
    l->info = info;
    l->self = getpid();
    aq_link_make_keys(job_key);
    aq_link_set_timeout();
    if (info->host_rank == 0) {
        aq_link_fill(info);
        aq_link_own();
    }
    return AQ_OK;
}

bool aq_link_own(void)
{
    struct aq_link *l = &aq_link_me;
    int32_t owner;

    if (l->area == NULL)
        return false;
    /* acquire, acq_rel: the old owner's fields are visible to the new owner */
    owner = atomic_load_explicit(&l->area->owner, memory_order_acquire);
    if (owner == l->self)
        return true;
    if (owner > 0 && (kill(owner, 0) == 0 || errno != ESRCH))
        return false;
    return atomic_compare_exchange_strong_explicit(&l->area->owner, &owner, l->self,
                                                   memory_order_acq_rel, memory_order_acquire);
}

int aq_link_fd(void)
{
    return aq_link_me.fd;
}

/* writes a host's ranks in words; returns the lowest */
static uint32_t aq_link_ranks(uint32_t host, char *text, size_t space)
{
    const struct aq_spawn_info *info = aq_link_me.info;
    uint32_t first = 0, last = 0, count = 0;

    for (uint32_t i = 0; i < info->size; i++)
        if (info->host_of[i] == host) {
            first = count++ == 0 ? i : first;
            last = i;
        }
    if (count <= 1)
        snprintf(text, space, "rank %u", first);
    else if (last - first + 1 == count)
        snprintf(text, space, "ranks %u-%u", first, last);
    else
        snprintf(text, space, "%u ranks from %u to %u", count, first, last);
    return first;
}

/* Returns true if this host reports the loss of the neighbour. The parent of a host does; for the
 * root, its first child. */
static bool aq_link_tells(const struct aq_link_end *end)
{
    const struct aq_link_area *a = aq_link_me.area;

    return !a->has_parent || end != &a->end[0] || aq_link_me.info->host_index == 1;
}

/* All processes of a neighbour have ended, or it has been silent for too long. */
static void aq_link_lost(struct aq_shutdown *shutdown, struct aq_link_end *end, bool silent)
{
    char ranks[64];
    uint32_t first = aq_link_ranks(end->host, ranks, sizeof(ranks)), nobody = 0;

    end->lost = true;
    if (end->last_seen.done)
        return;
    if (silent)
        /* release: as in aq_link_raise() */
        atomic_store_explicit(&aq_link_me.area->silent, 1, memory_order_release);
    /* relaxed: only for readers of the job area, which print nothing about it */
    atomic_compare_exchange_strong_explicit(&shutdown->jobarea->lost, &nobody, first + 1,
                                            memory_order_relaxed, memory_order_relaxed);
    if (!shutdown->logged && aq_link_tells(end) && silent)
        aq_shutdown_say(
            "FATAL ERROR",
            "host %s (%s) was lost: nothing heard of it for %.3g s (GASNET_HOST_TIMEOUT; 0: "
            "never), the network or the machine is down, or a debugger holds rank %u; ending the "
            "job",
            end->name, ranks, (double)aq_link_me.silence_ns * 1e-9, first);
    else if (!shutdown->logged && aq_link_tells(end))
        aq_shutdown_say("FATAL ERROR",
                        "rank %u and all other ranks on host %s were lost; ending the job", first,
                        end->name);
    shutdown->logged = true;
    aq_jobarea_raise_exit_code(shutdown->jobarea, silent ? AQ_LINK_SILENT_CODE : 128 + SIGKILL);
    aq_shutdown_begin(shutdown, 0);
}

/* Finds neighbours that have become silent. Time during which this process did not receive does not
 * count: it was stopped, or has just taken over from another rank. */
static void aq_link_look_silent(struct aq_shutdown *shutdown, uint64_t now)
{
    struct aq_link_area *a = aq_link_me.area;
    bool absent = now - a->step_ns > aq_link_me.silence_ns / 2;

    a->step_ns = now;
    for (uint32_t i = 0; i < a->count && aq_link_me.silence_ns != 0; i++) {
        struct aq_link_end *end = &a->end[i];

        if (end->last_seen_ns == 0 || end->lost)
            continue;
        if (absent)
            end->last_seen_ns = now;
        else if (now > end->last_seen_ns && now - end->last_seen_ns > aq_link_me.silence_ns)
            aq_link_lost(shutdown, end, true);
    }
}

static bool aq_link_is_disconnecting(void)
{
    /* acquire: pairs with the release in aq_link_disconnect() */
    return atomic_load_explicit(&aq_link_me.disconnecting, memory_order_acquire);
}

void aq_link_disconnect(void)
{
    /* release: no neighbour frees its link before this rank has come to the next barrier */
    atomic_store_explicit(&aq_link_me.disconnecting, true, memory_order_release);
}

/* merges a neighbour's note into this host's state */
static void aq_link_merge(struct aq_shutdown *shutdown, struct aq_link_end *end, bool parent)
{
    const struct aq_link_note *n = &end->last_seen;
    /* relaxed: this thread is the one that moves the state beyond SHUTDOWN */
    uint32_t state = atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_relaxed);

    if (!end->lost && end->refused >= AQ_LINK_REFUSALS && !aq_link_is_disconnecting())
        aq_link_lost(shutdown, end, false);
    if (!n->begun)
        return;
    shutdown->logged = shutdown->logged || n->logged;
    if (state < AQ_EXIT_ASKED && !n->asked)
        aq_jobarea_raise_exit_code(shutdown->jobarea, n->code);
    if (state < AQ_EXIT_ASKED && end->fresh)
        aq_shutdown_begin(shutdown, n->ask_ms);
    if (parent && n->asked)
        aq_shutdown_agreed(shutdown, n->code);
    end->fresh = false;
}

static void aq_link_raise(_Atomic uint32_t *flag, bool on)
{
    /* relaxed: only the owner writes it */
    if (!on || atomic_load_explicit(flag, memory_order_relaxed) != 0)
        return;
    /* release: a reader that sees the end of the job sees its code */
    atomic_store_explicit(flag, 1, memory_order_release);
    aq_jobarea_wake_word(flag);
}

/* Composes this host's notes: the part that goes up and down alike, then what only the parent or
 * only the children get. */
static void aq_link_compose(const struct aq_shutdown *shutdown, bool ended, struct aq_link_note *up,
                            struct aq_link_note *down)
{
    struct aq_link_area *a = aq_link_me.area;
    uint64_t now = aq_jobarea_now_ns();
    bool linked = true, disconnected = false;

    memset(up, 0, sizeof(*up));
    up->begun = shutdown->start_ns != 0;
    up->logged = shutdown->logged;
    up->ask_ms = shutdown->start_ns != 0 && shutdown->ask_ns > now
                     ? (uint32_t)((shutdown->ask_ns - now) / AQ_LINK_MS)
                     : 0;
    /* acquire: with the state comes the code */
    up->asked =
        atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_acquire) >= AQ_EXIT_ASKED;
    up->code = atomic_load_explicit(&shutdown->jobarea->exit_code, memory_order_relaxed);
    *down = *up;
    for (uint32_t i = a->has_parent; i < a->count; i++) {
        linked = linked && a->end[i].last_seen.linked;
        ended = ended && (a->end[i].last_seen.done || a->end[i].lost);
    }
    disconnected = !a->has_parent || a->end[0].lost;
    up->linked = linked;
    up->done = ended;
    down->linked = a->has_parent ? a->end[0].last_seen.linked : linked;
    down->done = disconnected ? ended : a->end[0].last_seen.done;
    aq_link_raise(&a->whole, down->linked);
    aq_link_raise(&a->done, down->done);
}

static bool aq_link_same(const struct aq_link_note *a, const struct aq_link_note *b)
{
    return a->begun == b->begun && a->logged == b->logged && a->asked == b->asked
           && a->done == b->done && a->linked == b->linked && a->code == b->code;
}

/* sends the note if it is new, unconfirmed or requested, or as a sign of life; returns ms until the
 * next time */
static int aq_link_say(struct aq_link_end *end, bool to_parent, const struct aq_link_note *note,
                       uint64_t now)
{
    const uint32_t alive = aq_link_me.alive_ms;
    const uint32_t longest = note->begun && AQ_LINK_LAST_MS < alive ? AQ_LINK_LAST_MS : alive;
    uint64_t due;

    if (!aq_link_same(&end->said, note)) {
        end->version++;
        end->pause_ms = 0;
    }
    end->said = *note;
    if (end->lost || (end->addr.sin6_family == 0 && !to_parent))
        return (int)aq_link_me.alive_ms; /* the child sends first */
    if (end->refused > 0)
        due = AQ_LINK_REFUSED_MS;
    else
        due = end->confirmed != end->version ? end->pause_ms : alive;
    due = end->sent_ns + due * AQ_LINK_MS;
    if (!end->answer && now < due)
        return (int)((due - now) / AQ_LINK_MS) + 1;
    aq_link_send(end);
    end->answer = false;
    end->sent_ns = now;
    end->pause_ms = end->pause_ms == 0 ? AQ_LINK_FIRST_MS : end->pause_ms * 2;
    if (end->pause_ms > longest)
        end->pause_ms = longest;
    return end->confirmed != end->version ? (int)end->pause_ms : (int)alive;
}

/* notes that no neighbour waits for this host any more */
static void aq_link_settle(uint64_t now)
{
    struct aq_link_area *a = aq_link_me.area;
    bool all = true;

    if (!aq_link_is_done())
        return;
    if (a->done_ns == 0)
        a->done_ns = now;
    for (uint32_t i = 0; i < a->count; i++)
        all = all
              && (a->end[i].lost || a->end[i].confirmed == a->end[i].version
                  || a->end[i].refused > 0);
    aq_link_raise(&a->settled, all || now > a->done_ns + AQ_LINK_SETTLE_MS * AQ_LINK_MS);
}

int aq_link_step(struct aq_shutdown *shutdown, bool ended)
{
    struct aq_link_area *a = aq_link_me.area;
    struct aq_link_note up, down;
    uint64_t now;
    int wait = (int)aq_link_me.alive_ms;

    aq_link_receive();
    if (!aq_link_is_disconnecting())
        aq_link_look_silent(shutdown, aq_jobarea_now_ns());
    for (uint32_t i = 0; i < a->count; i++)
        aq_link_merge(shutdown, &a->end[i], a->has_parent && i == 0);
    /* without a parent that answers, this host decides for itself */
    shutdown->follow = a->has_parent && !a->end[0].lost && a->end[0].last_seen_version > 0;
    aq_link_compose(shutdown, ended, &up, &down);
    now = aq_jobarea_now_ns();
    for (uint32_t i = 0; i < a->count; i++) {
        bool to_parent = a->has_parent && i == 0;
        int next = aq_link_say(&a->end[i], to_parent, to_parent ? &up : &down, now);

        wait = next < wait ? next : wait;
    }
    aq_link_settle(now);
    return wait;
}

/* all false on one host, and before the link exists */
bool aq_link_is_whole(void)
{
    /* acquire, here and below: pairs with the release in aq_link_raise() */
    return aq_link_me.area != NULL
           && atomic_load_explicit(&aq_link_me.area->whole, memory_order_acquire) != 0;
}

bool aq_link_is_done(void)
{
    return aq_link_me.area != NULL
           && atomic_load_explicit(&aq_link_me.area->done, memory_order_acquire) != 0;
}

bool aq_link_is_settled(void)
{
    return aq_link_me.area != NULL
           && atomic_load_explicit(&aq_link_me.area->settled, memory_order_acquire) != 0;
}

bool aq_link_has_silent(void)
{
    return aq_link_me.area != NULL
           && atomic_load_explicit(&aq_link_me.area->silent, memory_order_acquire) != 0;
}

void aq_link_wait_whole(int timeout_ms)
{
    if (aq_link_me.area != NULL)
        aq_jobarea_wait_word(&aq_link_me.area->whole, 0, timeout_ms);
}

void aq_link_wait_done(int timeout_ms)
{
    if (aq_link_me.area != NULL)
        aq_jobarea_wait_word(&aq_link_me.area->done, 0, timeout_ms);
}

void aq_link_fini(void)
{
    if (aq_link_me.area == NULL)
        return;
    munmap(aq_link_me.area, sizeof(*aq_link_me.area));
    close(aq_link_me.fd);
}
