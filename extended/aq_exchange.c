/*
 * aq_exchange.c - allgather of small data over medium messages.
 *
 * Dissemination: a member stores what it has received in the order of the ranks after its own. In
 * round r = 0, 1, ... it sends the first 2^r blocks (in the last round as many as are still
 * missing) to the rank 2^r before it, and receives as many, which follow those that it has, from
 * the rank 2^r after it. Each member sends log2(n) messages, and sends as many bytes as it
 * receives.
 *
 * A peer can be a round, and an exchange, ahead. A message that arrives early is stored in a box
 * until it is needed; the message names its box by team, number of the exchange and round. A member
 * leaves an exchange when it has received all rounds, so no message of a team is in flight to a
 * member that has ended the team's last exchange.
 *
 * Owns      the boxes; each is freed by the member that waits for it
 * Threads   any, one exchange of a team at a time as the client orders its collective calls.
 *           Handlers take the lock to find a box and fill it without: it cannot be freed before it
 *           is full
 * Wire      EXCHANGE(team, number, round, bytes in all, offset) + data; 64-bit values as two
 * Uses      core/aq_am.h, core/aq_poll.h
 * See       Bruck et al.: Efficient algorithms for all-to-all communications in multiport
 *           message-passing systems, 1997. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"
#include "core/aq_callback.h"

#define AQ_EXCHANGE_ARGS 8

/* The name of a box. */
struct aq_box_name {
    uint64_t team;
    uint32_t number, round;
};

struct aq_box {
    struct aq_box_name name;
    struct aq_box *next;
    uint64_t bytes;      /* of the whole box */
    aq_counter received; /* bytes received so far */
    char data[];
};

static struct {
    aq_lock lock;
    struct aq_box *boxes;
} aq_exchange AQ_JOB_STATE;

/* --- boxes --- */

/* Returns the link that points to a box, or where it would be. Under the lock. */
static struct aq_box **aq_box_find(const struct aq_box_name *name)
{
    struct aq_box **link = &aq_exchange.boxes;

    while (*link != NULL
           && ((*link)->name.team != name->team || (*link)->name.number != name->number
               || (*link)->name.round != name->round))
        link = &(*link)->next;
    return link;
}

/* Makes a box at a link. Under the lock. */
static struct aq_box *aq_box_create(struct aq_box **link, const struct aq_box_name *name,
                                    uint64_t bytes)
{
    struct aq_box *box = bytes <= SIZE_MAX / 2 ? malloc(sizeof(*box) + (size_t)bytes) : NULL;

    if (box == NULL)
        aq_fatal("no memory for %llu bytes of an exchange over a team", (unsigned long long)bytes);
    *box = (struct aq_box){ .name = *name, .bytes = bytes };
    *link = box;
    return box;
}

/* Returns the box with this name, made if it does not exist. */
static struct aq_box *aq_box_get(const struct aq_box_name *name, uint64_t bytes)
{
    struct aq_box **link, *box;

    aq_lock_acquire(&aq_exchange.lock);
    link = aq_box_find(name);
    box = *link != NULL ? *link : aq_box_create(link, name, bytes);
    aq_lock_release(&aq_exchange.lock);
    return box;
}

static void aq_box_destroy(struct aq_box *box)
{
    aq_lock_acquire(&aq_exchange.lock);
    *aq_box_find(&box->name) = box->next;
    aq_lock_release(&aq_exchange.lock);
    free(box);
}

static void aq_exchange_on_frag(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t team_high,
                                gex_AM_Arg_t team_low, gex_AM_Arg_t number, gex_AM_Arg_t round,
                                gex_AM_Arg_t bytes_high, gex_AM_Arg_t bytes_low,
                                gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low)
{
    const struct aq_box_name name = { aq_u64_of_args(team_high, team_low), (uint32_t)number,
                                      (uint32_t)round };
    const uint64_t bytes = aq_u64_of_args(bytes_high, bytes_low);
    const uint64_t offset = aq_u64_of_args(offset_high, offset_low);
    struct aq_box *box = aq_box_get(&name, bytes);
    gex_Token_Info_t info;

    if (box->bytes != bytes || offset > bytes || nbytes > bytes - offset) {
        gex_Token_Info(token, &info, GEX_TI_SRCRANK);
        aq_fatal(
            "rank %u is in a collective call over a team with %llu bytes to exchange, this process "
            "with %llu: their calls do not match",
            info.gex_srcrank, (unsigned long long)bytes, (unsigned long long)box->bytes);
    }
    memcpy(box->data + offset, buf, nbytes);
    aq_counter_add(&box->received, nbytes); /* from here on the box may be freed */
}

/* --- rounds --- */

static void aq_exchange_send(gex_Rank_t jobrank, const struct aq_box_name *name, const char *data,
                             uint64_t bytes)
{
    const size_t max = aq_am_max_medium();

    for (uint64_t at = 0; at < bytes;) {
        const size_t frag = bytes - at < max ? (size_t)(bytes - at) : max;
        const gex_AM_Arg_t args[AQ_EXCHANGE_ARGS] = { AQ_ARGS_OF_U64(name->team),
                                                      (gex_AM_Arg_t)name->number,
                                                      (gex_AM_Arg_t)name->round,
                                                      AQ_ARGS_OF_U64(bytes), AQ_ARGS_OF_U64(at) };

        aq_am_request_medium(aq_tm_handle(aq_job.tm), jobrank, AQ_HIDX_EXCHANGE, data + at, frag,
                             GEX_EVENT_NOW, 0, AQ_EXCHANGE_ARGS, args);
        at += frag;
    }
}

static void aq_exchange_receive(const char *call, gex_Rank_t jobrank,
                                const struct aq_box_name *name, char *data, uint64_t bytes)
{
    struct aq_waiter waiter = AQ_WAITER_INIT(call, jobrank);
    struct aq_box *box = aq_box_get(name, bytes);

    if (box->bytes != bytes)
        aq_fatal(
            "%s: rank %u is in a collective call over this team with %llu bytes to exchange, this "
            "process with %llu: their calls do not match",
            call, jobrank, (unsigned long long)box->bytes, (unsigned long long)bytes);
    while (aq_counter_get(&box->received) < bytes)
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
    memcpy(data, box->data, (size_t)bytes);
    aq_box_destroy(box);
}

/* Runs all rounds. known[] is by rank after this one; its first len bytes are filled in. */
static void aq_exchange_rounds(const char *call, struct aq_tm *tm, char *known, size_t len)
{
    const uint64_t members = tm->head.size, me = tm->head.rank;
    struct aq_box_name name = { tm->id, tm->exchanges++, 0 };

    for (uint64_t have = 1; have < members; have *= 2, name.round++) {
        const uint64_t bytes = len * (have < members - have ? have : members - have);
        const gex_Rank_t before = (gex_Rank_t)((me + members - have) % members);
        const gex_Rank_t after = (gex_Rank_t)((me + have) % members);

        aq_exchange_send(aq_tm_jobrank(aq_tm_handle(tm), before), &name, known, bytes);
        aq_exchange_receive(call, aq_tm_jobrank(aq_tm_handle(tm), after), &name, known + have * len,
                            bytes);
    }
}

void aq_exchange_as(const char *call, gex_TM_t handle, const void *own, size_t len, void *all)
{
    struct aq_tm *tm = aq_tm(handle);
    const size_t members = tm->head.size, me = tm->head.rank;
    char *known;

#if GASNET_DEBUG
    aq_check_team(call, handle);
    aq_thread_check_main(call);
#endif
    if (len == 0)
        return;
    if (len > SIZE_MAX / 2 / members || (known = malloc(members * len)) == NULL)
        aq_fatal("%s: no memory to learn %zu bytes from each of %zu members", call, len, members);
    memcpy(known, own, len);
    /* the awaited data may have arrived: one poll serves others' messages all the same */
    aq_poll();
    aq_exchange_rounds(call, tm, known, len);
    memcpy((char *)all + me * len, known, (members - me) * len);
    memcpy(all, known + (members - me) * len, me * len);
    free(known);
}

void aq_callback_allgather(const void *own, size_t len, void *all)
{
    aq_exchange_as("the job's start", aq_tm_handle(aq_job.tm), own, len, all);
}

void aq_exchange_allgather(gex_TM_t tm, const void *own, size_t len, void *all)
{
    aq_exchange_as("a collective call over a team", tm, own, len, all);
}

void aq_exchange_barrier(const char *call, gex_TM_t tm)
{
    const size_t members = aq_tm_head_of(tm)->size;
    char *all = malloc(members), own = 0;

    if (all == NULL)
        aq_fatal("%s: no memory for %zu bytes", call, members);
    aq_exchange_as(call, tm, &own, 1, all);
    free(all);
}

/* --- start-up --- */

void aq_exchange_init(void)
{
    aq_am_register_internal(AQ_HIDX_EXCHANGE, (gex_AM_Fn_t)aq_exchange_on_frag,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, AQ_EXCHANGE_ARGS, "exchange");
}

void aq_exchange_fini(void)
{
    while (aq_exchange.boxes != NULL) {
        struct aq_box *box = aq_exchange.boxes;

        aq_exchange.boxes = box->next;
        free(box);
    }
}
