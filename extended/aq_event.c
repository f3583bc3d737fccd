/*
 * aq_event.c - explicit events: test, wait, the array forms, leaves.
 *
 * Threads   any, whichever thread created the event; two threads must not synchronise one root at a
 *           time
 * Promise   Test never polls; Wait polls at least once; an array call tests every leaf before it
 *           recycles a root, so both may be in one array in any order
 * Uses      core/aq_op.h, core/aq_poll.h
 * See       GASNet-EX specification 0.19, Events
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"

#define AQ_TAG_MASK ((uintptr_t)AQ_OP_SIZE - 1)

static inline struct aq_op *aq_event_op(gex_Event_t event)
{
    return (struct aq_op *)((uintptr_t)event & ~AQ_TAG_MASK);
}

static inline enum aq_op_cell aq_event_cell(gex_Event_t event)
{
    return (enum aq_op_cell)((uintptr_t)event & 7);
}

/* --- debug checks --- */

#if GASNET_DEBUG

static void aq_event_check(const char *call, gex_Event_t event)
{
    const struct aq_op *op = aq_event_op(event);
    const enum aq_op_cell cell = aq_event_cell(event);
    const unsigned generation = (unsigned)((uintptr_t)event >> 3 & 7);

    if (event == GEX_EVENT_NO_OP)
        aq_fatal("%s: the event is GEX_EVENT_NO_OP: nothing was started, so there is nothing to "
                 "test or wait for",
                 call);
    if (op == NULL || cell >= AQ_CELLS)
        aq_fatal("%s: %p is not an event", call, (void *)event);
    if (op->state == AQ_OP_SYNCED && cell == AQ_CELL_ROOT)
        aq_fatal("%s: the root event %p stands in the array twice; a root is synchronised once",
                 call, (void *)event);
    if ((op->state != AQ_OP_LIVE && op->state != AQ_OP_SYNCED) || op->generation != generation)
        aq_fatal("%s: the event %p is stale: its operation was synchronised before; a root is "
                 "synchronised once, a leaf only while its root is not",
                 call, (void *)event);
}

static void aq_event_check_array(const char *call, const gex_Event_t *events, size_t n,
                                 gex_Flags_t flags)
{
    aq_thread_check_main(call);
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    if (events == NULL && n != 0)
        aq_fatal("%s: the array is NULL, but numevents is %zu", call, n);
}

static void aq_event_check_query(gex_Event_t root, gex_EC_t category)
{
    const char *call = "gex_Event_QueryLeaf";

    aq_thread_check_main(call);
    if (category != GEX_EC_LC && category != GEX_EC_PUT && category != GEX_EC_GET
        && category != GEX_EC_RMW)
        aq_fatal("%s: the category 0x%x is not exactly one of GEX_EC_LC, GEX_EC_AM, GEX_EC_PUT, "
                 "GEX_EC_GET and GEX_EC_RMW",
                 call, (unsigned)category);
    if (root == GEX_EVENT_INVALID)
        return;
    aq_event_check(call, root);
    if (aq_event_cell(root) != AQ_CELL_ROOT)
        aq_fatal("%s: the event %p is a leaf; only roots have leaves", call, (void *)root);
    if (category == GEX_EC_LC && aq_event_op(root)->kind->hides_lc)
        aq_fatal("%s: the operation of event %p, a %s, has no event for its local completion; "
                 "ask for one with lc_opt",
                 call, (void *)root, aq_event_op(root)->kind->name);
}

#define AQ_EVENT_CHECK_MAIN(call)                    aq_thread_check_main(call)
#define AQ_EVENT_CHECK(call, event)                  aq_event_check(call, event)
#define AQ_EVENT_CHECK_ARRAY(call, events, n, flags) aq_event_check_array(call, events, n, flags)
#define AQ_EVENT_CHECK_QUERY(root, category)         aq_event_check_query(root, category)
#else
#define AQ_EVENT_CHECK_MAIN(call)                    ((void)0)
#define AQ_EVENT_CHECK(call, event)                  ((void)(call))
#define AQ_EVENT_CHECK_ARRAY(call, events, n, flags) ((void)(flags))
#define AQ_EVENT_CHECK_QUERY(root, category)         ((void)0)
#endif

/* --- one event --- */

/* acquire, in the loads of the counters or in the look function: what completed is visible
 * afterwards. */
static inline bool aq_event_done(gex_Event_t event, gex_Rank_t *missing_out)
{
    const struct aq_op *op = aq_event_op(event);
    const enum aq_op_cell cell = aq_event_cell(event);

    if (cell == AQ_CELL_ROOT)
        return aq_op_is_done(op, missing_out);
    *missing_out = aq_op_peer(op);
    return aq_op_cell_done(op, cell);
}

static inline int aq_event_look(gex_Event_t event)
{
    gex_Rank_t missing;

    AQ_EVENT_CHECK_MAIN("gex_Event_Test");
    AQ_EVENT_CHECK("gex_Event_Test", event);
    if (!aq_event_done(event, &missing))
        return GASNET_ERR_NOT_READY;
    if (aq_event_cell(event) == AQ_CELL_ROOT)
        aq_op_retire(aq_event_op(event));
    return GASNET_OK;
}

static __attribute__((noinline, cold)) int aq_event_look_traced(gex_Event_t event)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_TEST);
    const int rc = aq_event_look(event);

    aq_trace_end(rc == GASNET_OK ? AQ_TRACE_EVENT_TEST : AQ_TRACE_EVENT_TRY, began,
                 GEX_RANK_INVALID, 0);
    return rc;
}

int aq_event_test(gex_Event_t event)
{
    return AQ_UNLIKELY(aq_trace_is_on()) ? aq_event_look_traced(event) : aq_event_look(event);
}

/* Is the event complete, or is it after the first looks? */
static inline bool aq_event_is_quick(gex_Event_t event, gex_Rank_t *missing_out)
{
    const struct aq_op *op = aq_event_op(event);

    if (AQ_LIKELY(!op->kind->by_store))
        return aq_event_done(event, missing_out);
    for (unsigned looks = aq_wait_looks(); !op->kind->look(op, missing_out); looks--) {
        if (looks == 0)
            return false;
        aq_wait_between_looks(looks);
    }
    return true;
}

/* Polls until an event is complete. At least one poll: a process that only waits for completed
 * events must serve its peers too. */
static void aq_event_await(gex_Event_t event)
{
    struct aq_waiter waiter = AQ_WAITER_INIT(aq_event_op(event)->kind->waits_in, GEX_RANK_INVALID);

    if (aq_event_is_quick(event, &waiter.peer)) {
        aq_poll();
        return;
    }
    do {
        aq_wait_step(&waiter);
    } while (!aq_event_done(event, &waiter.peer));
    aq_wait_end(&waiter);
}

void aq_event_wait(gex_Event_t event)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_WAIT);

    AQ_EVENT_CHECK_MAIN("gex_Event_Wait");
    AQ_EVENT_CHECK("gex_Event_Wait", event);
    aq_event_await(event);
    if (aq_event_cell(event) == AQ_CELL_ROOT)
        aq_op_retire(aq_event_op(event));
    aq_trace_end(AQ_TRACE_EVENT_WAIT, began, GEX_RANK_INVALID, 0);
}

/* --- arrays --- */

struct aq_sweep {
    size_t completed; /* entries found complete */
    size_t first;     /* index of the first incomplete entry, or n */
};

/* Tests the leaves again after some roots were found complete: leaves of those roots in the same
 * array are complete as well, and the roots are not recycled yet. */
static void aq_events_sweep_leaves(gex_Event_t *events, size_t n, struct aq_sweep *sweep)
{
    gex_Rank_t missing;

    sweep->first = n;
    for (size_t i = 0; i < n; i++) {
        if (events[i] == GEX_EVENT_INVALID)
            continue;
        if (aq_event_cell(events[i]) != AQ_CELL_ROOT && aq_event_done(events[i], &missing)) {
            events[i] = GEX_EVENT_INVALID;
            sweep->completed++;
        } else if (sweep->first == n) {
            sweep->first = i;
        }
    }
}

static void aq_events_retire(struct aq_op *synced)
{
    while (synced != NULL) {
        struct aq_op *next = synced->next;

        aq_op_retire(synced);
        synced = next;
    }
}

/* Finds complete entries from entry `from` on, stores GEX_EVENT_INVALID there, retires roots. */
static struct aq_sweep aq_events_sweep(const char *call, gex_Event_t *events, size_t n, size_t from)
{
    struct aq_sweep sweep = { 0, n };
    struct aq_op *synced = NULL;
    bool has_leaf = false;
    gex_Rank_t missing;

    for (size_t i = from; i < n; i++) {
        struct aq_op *op = aq_event_op(events[i]);

        if (events[i] == GEX_EVENT_INVALID)
            continue;
        AQ_EVENT_CHECK(call, events[i]);
        if (!aq_event_done(events[i], &missing)) {
            has_leaf |= aq_event_cell(events[i]) != AQ_CELL_ROOT;
            if (sweep.first == n)
                sweep.first = i;
            continue;
        }
        if (aq_event_cell(events[i]) == AQ_CELL_ROOT) {
            op->state = AQ_OP_SYNCED;
            op->next = synced;
            synced = op;
        }
        events[i] = GEX_EVENT_INVALID;
        sweep.completed++;
    }
    if (has_leaf && synced != NULL)
        aq_events_sweep_leaves(events, n, &sweep);
    aq_events_retire(synced);
    return sweep;
}

/* A test has ended. Tests that find nothing complete are counted but not traced. */
static inline int aq_event_tested(enum aq_trace_kind kind, uint64_t began, bool ready)
{
    aq_trace_end(ready ? kind : AQ_TRACE_EVENT_TRY, began, GEX_RANK_INVALID, 0);
    return ready ? GASNET_OK : GASNET_ERR_NOT_READY;
}

int gex_Event_TestSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_TEST_SOME);
    struct aq_sweep sweep;

    AQ_EVENT_CHECK_ARRAY("gex_Event_TestSome", events, numevents, flags);
    sweep = aq_events_sweep("gex_Event_TestSome", events, numevents, 0);
    return aq_event_tested(AQ_TRACE_EVENT_TEST_SOME, began,
                           sweep.completed > 0 || sweep.first == numevents);
}

int gex_Event_TestAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_TEST_ALL);
    struct aq_sweep sweep;

    AQ_EVENT_CHECK_ARRAY("gex_Event_TestAll", events, numevents, flags);
    sweep = aq_events_sweep("gex_Event_TestAll", events, numevents, 0);
    return aq_event_tested(AQ_TRACE_EVENT_TEST_ALL, began, sweep.first == numevents);
}

void gex_Event_WaitSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_WAIT_SOME);
    struct aq_waiter waiter = AQ_WAITER_INIT("gex_Event_WaitSome", GEX_RANK_INVALID);
    struct aq_sweep sweep;

    AQ_EVENT_CHECK_ARRAY("gex_Event_WaitSome", events, numevents, flags);
    sweep = aq_events_sweep("gex_Event_WaitSome", events, numevents, 0);
    if (sweep.completed > 0 || sweep.first == numevents)
        aq_poll(); /* also if no entry was live: as aq_event_await() */
    while (sweep.completed == 0 && sweep.first < numevents) {
        aq_event_done(events[sweep.first], &waiter.peer);
        waiter.what = aq_event_op(events[sweep.first])->kind->waits_in;
        aq_wait_step(&waiter);
        sweep = aq_events_sweep("gex_Event_WaitSome", events, numevents, sweep.first);
    }
    aq_wait_end(&waiter);
    aq_trace_end(AQ_TRACE_EVENT_WAIT_SOME, began, GEX_RANK_INVALID, 0);
}

/* Waits for one entry at a time, then sweeps the rest: entries before it are all invalid. */
void gex_Event_WaitAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_EVENT_WAIT_ALL);
    struct aq_sweep sweep;

    AQ_EVENT_CHECK_ARRAY("gex_Event_WaitAll", events, numevents, flags);
    sweep = aq_events_sweep("gex_Event_WaitAll", events, numevents, 0);
    if (sweep.first == numevents)
        aq_poll(); /* also if no entry was live: as aq_event_await() */
    while (sweep.first < numevents) {
        aq_event_await(events[sweep.first]);
        sweep = aq_events_sweep("gex_Event_WaitAll", events, numevents, sweep.first);
    }
    aq_trace_end(AQ_TRACE_EVENT_WAIT_ALL, began, GEX_RANK_INVALID, 0);
}

/* --- leaves --- */

gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category)
{
    AQ_EVENT_CHECK_QUERY(root, category);
    if (root == GEX_EVENT_INVALID)
        return GEX_EVENT_INVALID;
    return aq_op_leaf(aq_event_op(root), aq_op_cell_of(category));
}
