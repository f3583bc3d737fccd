/*
 * armci_mutex.c - mutexes: words in the segment of their host, taken by compare-and-swap or by
 * message.
 *
 * Owns      one set of mutexes for each ARMCI_Create_mutexes or ARMCIX_Create_mutexes_hdl, and one
 *           mutex for each rank, which ARMCI_Gpc_lock takes
 * Remote    a rank of another host sends its lock and unlock to the host's handler. A handler may
 *           send to its sender only, so its reply to a remote unlock names the next rank, and the
 *           rank that unlocks sends the hand-off
 * Threads   the program's; the handlers run on it or on the service thread. A function of
 *           ARMCI_Gpc_exec takes its own rank's mutex on a thread of its own
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_mutex_part.h"

#include <sched.h>
#include <stdlib.h>

#include "armcix.h"

enum { UNANSWERED = -2 }; /* in place of the next rank */

struct armcix_mutex_hdl_s {
    void **
        parts; /* by world rank, the caller's addresses; NULL: the rank is no member of the group */
    int *counts;
    MPI_Comm comm; /* a duplicate of the group's, which may be freed first */
    struct armcix_mutex_hdl_s *next;
};

static struct armcix_mutex_hdl_s *sets;    /* all of them */
static struct armcix_mutex_hdl_s *the_set; /* of ARMCI_Create_mutexes */
static struct armcix_mutex_hdl_s *gpc_set;
/* The answer of the host to this rank's lock request, of which one is under way at a time; -1: none
 * yet. granted: set by the last holder's message, for a request whose answer is QUEUED. */
static _Atomic int answer = -1;
static _Atomic bool granted;
static _Atomic int successor = UNANSWERED;

/* --- messages --- */

static struct aq_armci_mutex_part *part_of_words(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (struct aq_armci_mutex_part *)((uintptr_t)(uint32_t)high << 32 | (uint32_t)low);
}

static gex_AM_Arg_t high_word(const void *ptr)
{
    return (gex_AM_Arg_t)(uint32_t)((uintptr_t)ptr >> 32);
}

static gex_AM_Arg_t low_word(const void *ptr)
{
    return (gex_AM_Arg_t)(uint32_t)(uintptr_t)ptr;
}

void aq_armci_on_lock(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low, gex_AM_Arg_t mutex,
                      gex_AM_Arg_t try_only)
{
    struct aq_armci_mutex_part *part = part_of_words(high, low);
    const int state = aq_armci_mutex_queue(part, aq_armci_mutex_at(part, mutex),
                                           aq_armci_source(token), try_only != 0);

    gex_AM_ReplyShort1(token, AQ_ARMCI_HANDLE_LOCK_REPLY, 0, state);
}

void aq_armci_on_lock_reply(gex_Token_t token, gex_AM_Arg_t state)
{
    (void)token;
    atomic_store_explicit(&answer, state, memory_order_release); /* pairs with lock_remote() */
}

void aq_armci_on_handoff(gex_Token_t token)
{
    (void)token;
    atomic_store_explicit(&granted, true, memory_order_release); /* as above */
}

void aq_armci_on_unlock(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low, gex_AM_Arg_t mutex)
{
    struct aq_armci_mutex_part *part = part_of_words(high, low);
    const int next =
        aq_armci_mutex_give(part, aq_armci_mutex_at(part, mutex), aq_armci_source(token));

    gex_AM_ReplyShort1(token, AQ_ARMCI_HANDLE_UNLOCK_REPLY, 0, next);
}

void aq_armci_on_unlock_reply(gex_Token_t token, gex_AM_Arg_t next)
{
    (void)token;
    atomic_store_explicit(&successor, next,
                          memory_order_release); /* pairs with the acquire of unlock() */
}

/* The hand-off is a message of another rank and may arrive before the answer of the host. The rank
 * waits for both: an answer that arrived later would be taken for the answer to the next
 * request. */
static bool lock_is_answered(int *state_out)
{
    /* acquire, both: the writes of the last holder are visible */
    *state_out = atomic_load_explicit(&answer, memory_order_acquire);
    if (*state_out == AQ_ARMCI_MUTEX_QUEUED && atomic_load_explicit(&granted, memory_order_acquire))
        *state_out = AQ_ARMCI_MUTEX_GRANTED;
    return *state_out == AQ_ARMCI_MUTEX_GRANTED || *state_out == AQ_ARMCI_MUTEX_REFUSED;
}

static int lock_remote(void *part, int mutex, int proc, bool try_only)
{
    int state;

    /* relaxed, both: they precede the request */
    atomic_store_explicit(&answer, -1, memory_order_relaxed);
    atomic_store_explicit(&granted, false, memory_order_relaxed);
    gex_AM_RequestShort4(aq_armci.tm, (gex_Rank_t)proc, AQ_ARMCI_HANDLE_LOCK, 0, high_word(part),
                         low_word(part), mutex, try_only);
    GASNET_BLOCKUNTIL(lock_is_answered(&state));
    return state;
}

static int unlock_remote(void *part, int mutex, int proc)
{
    atomic_store_explicit(&successor, UNANSWERED,
                          memory_order_relaxed); /* before the request is sent */
    gex_AM_RequestShort3(aq_armci.tm, (gex_Rank_t)proc, AQ_ARMCI_HANDLE_UNLOCK, 0, high_word(part),
                         low_word(part), mutex);
    GASNET_BLOCKUNTIL(atomic_load_explicit(&successor, memory_order_acquire)
                      != UNANSWERED); /* from its handler */
    return atomic_load_explicit(&successor, memory_order_relaxed);
}

/* --- sets --- */

static void *check_mutex(const char *call, const struct armcix_mutex_hdl_s *set, int mutex,
                         int proc)
{
    aq_armci_check_proc(call, proc);
    if (set == NULL)
        aq_armci_fatal("%s: there are no mutexes; ARMCI_Create_mutexes makes them", call);
    if (mutex < 0 || mutex >= set->counts[proc])
        aq_armci_fatal("%s: rank %d has no mutex %d; it has %d", call, proc, mutex,
                       set->counts[proc]);
    return set->parts[proc];
}

static bool any_negative(const int *counts, int n)
{
    for (int i = 0; i < n; i++)
        if (counts[i] < 0)
            return true;
    return false;
}

/* Stores the addresses and counts of the members, by their world ranks. */
static struct armcix_mutex_hdl_s *set_of(const ARMCI_Group *group, void **parts, const int *counts)
{
    struct armcix_mutex_hdl_s *set = calloc(1, sizeof(*set));

    if (set != NULL) {
        set->parts = calloc((size_t)aq_armci.nproc, sizeof(void *));
        set->counts = calloc((size_t)aq_armci.nproc, sizeof(int));
    }
    if (set == NULL || set->parts == NULL || set->counts == NULL)
        aq_armci_fatal("no memory for a set of mutexes");
    set->comm = aq_armci.comm;
    if (group->comm != aq_armci.comm)
        MPI_Comm_dup(group->comm, &set->comm);
    set->next = sets;
    sets = set;
    for (int i = 0; i < group->size; i++) {
        set->parts[group->grp_to_abs[i]] = parts[i];
        set->counts[group->grp_to_abs[i]] = counts[i];
    }
    return set;
}

/* Makes a set of mutexes. All members return 0, FAIL if one of them has passed a negative count, or
 * FAIL2 if one of them has no memory. */
static int create_set(int count, const ARMCI_Group *group, struct armcix_mutex_hdl_s **set_out)
{
    void **parts = calloc((size_t)group->size, sizeof(void *));
    int *counts = calloc((size_t)group->size, sizeof(int)), rc = 0;

    if (parts == NULL || counts == NULL)
        aq_armci_fatal("no memory for a set of mutexes");
    aq_armci_mpi_allgather(&count, counts, (int)sizeof(count), group->comm);
    if (any_negative(counts, group->size))
        rc = FAIL;
    else if (aq_armci_malloc(parts, (armci_size_t)aq_armci_mutex_part_size(count), group->comm,
                             group->grp_to_abs, group->size)
             != 0)
        rc = FAIL2;
    if (rc == 0) {
        aq_armci_mutex_part_init(parts[group->rank], count);
        *set_out = set_of(group, parts, counts);
        aq_armci_mpi_barrier(group->comm);
    }
    free(parts);
    free(counts);
    return rc;
}

static void forget_set(struct armcix_mutex_hdl_s *set)
{
    struct armcix_mutex_hdl_s **link = &sets;

    while (*link != set)
        link = &(*link)->next;
    *link = set->next;
    if (set->comm != aq_armci.comm)
        MPI_Comm_free(&set->comm);
    free(set->parts);
    free(set->counts);
    free(set);
}

static void destroy_set(struct armcix_mutex_hdl_s *set)
{
    aq_armci_free(set->parts[aq_armci.me], set->comm);
    forget_set(set);
}

/* The mutex is not free. A function of ARMCI_Gpc_exec, on a thread beside the program's, leaves the
 * program's ticks alone. */
static void give_way(void)
{
    if (aq_armci_gpc_is_function())
        sched_yield();
    else
        aq_armci_tick();
}

static bool lock(const char *call, struct armcix_mutex_hdl_s *set, int mutex, int proc,
                 bool try_only)
{
    struct aq_armci_mutex_part *part = check_mutex(call, set, mutex, proc);
    uint32_t word;

    if (!aq_armci_is_local(&aq_armci.peers[proc])) {
        if (lock_remote(part, mutex, proc, try_only) != AQ_ARMCI_MUTEX_GRANTED)
            return false;
    } else if (!aq_armci_mutex_take_keeping(aq_armci_mutex_at(part, mutex), 0, &word)) {
        give_way();
        if (try_only)
            return false;
        aq_armci_mutex_take(aq_armci_mutex_at(part, mutex));
    }
    if (AQ_ARMCI_CHECKS && aq_armci_is_local(&aq_armci.peers[proc]))
        aq_armci_mutex_at(part, mutex)->owner = aq_armci.me;
    return true;
}

static void unlock(const char *call, struct armcix_mutex_hdl_s *set, int mutex, int proc)
{
    struct aq_armci_mutex_part *part = check_mutex(call, set, mutex, proc);
    int next;

    if (!aq_armci_gpc_is_function()) /* a function has put nothing */
        aq_armci_order_after(proc);
    if (aq_armci_is_local(&aq_armci.peers[proc]))
        next = aq_armci_mutex_give(part, aq_armci_mutex_at(part, mutex), aq_armci.me);
    else
        next = unlock_remote(part, mutex, proc);
    if (next == AQ_ARMCI_MUTEX_NOT_OWNER)
        aq_armci_fatal("%s: mutex %d of rank %d is not held by this rank", call, mutex, proc);
    if (next >= 0)
        gex_AM_RequestShort0(aq_armci.tm, (gex_Rank_t)next, AQ_ARMCI_HANDLE_HANDOFF, 0);
    if (!aq_armci_gpc_is_function())
        aq_armci_serve();
}

/* --- calls --- */

int PARMCI_Create_mutexes(int count)
{
    aq_armci_check_proc("ARMCI_Create_mutexes", 0);
    if (the_set != NULL)
        return FAIL;
    return create_set(count, aq_armci_group(NULL), &the_set);
}
AQ_ARMCI_TWIN(Create_mutexes);

int PARMCI_Destroy_mutexes(void)
{
    if (the_set == NULL)
        return FAIL;
    destroy_set(the_set);
    the_set = NULL;
    return 0;
}
AQ_ARMCI_TWIN(Destroy_mutexes);

/* Returns the mutex if it exists and the memory of its host is mapped. NULL: lock() or unlock()
 * checks the arguments and takes the slow path. */
static inline struct aq_armci_mutex *mapped_mutex(int mutex, int proc)
{
    const struct armcix_mutex_hdl_s *set = the_set;

    if (AQ_ARMCI_CHECKS || set == NULL || !aq_armci.running || !aq_armci_is_proc(proc)
        || (unsigned)mutex >= (unsigned)set->counts[proc]
        || !aq_armci_is_local(&aq_armci.peers[proc]))
        return NULL;
    return aq_armci_mutex_at(set->parts[proc], mutex);
}

void PARMCI_Lock(int mutex, int proc)
{
    struct aq_armci_mutex *mapped = mapped_mutex(mutex, proc);
    uint32_t word = mapped != NULL && aq_armci_mutex_is_again(mapped) ? AQ_ARMCI_MUTEX_SLEEPERS : 0;

    if (AQ_LIKELY(mapped != NULL && aq_armci_mutex_take_expected(mapped, 0, &word)))
        return;
    if (the_set == NULL && aq_armci.running && aq_armci.nproc == 1)
        return; /* with one rank Global Arrays makes no mutexes */
    lock("ARMCI_Lock", the_set, mutex, proc, false);
}
AQ_ARMCI_TWIN(Lock);

void PARMCI_Unlock(int mutex, int proc)
{
    struct aq_armci_mutex *mapped = mapped_mutex(mutex, proc);

    if (AQ_LIKELY(mapped != NULL && !aq_armci.peers[proc].dirty
                  && ((aq_armci_mutex_is_again(mapped) && aq_armci_mutex_give_quietly(mapped))
                      || aq_armci_mutex_try_give(mapped)))) {
        aq_armci_serve(); /* a loop that locks unlocks, too */
        return;
    }
    if (the_set == NULL && aq_armci.running && aq_armci.nproc == 1)
        return; /* as above */
    unlock("ARMCI_Unlock", the_set, mutex, proc);
}
AQ_ARMCI_TWIN(Unlock);

armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *group)
{
    const ARMCI_Group *of = aq_armci_group(group);
    struct armcix_mutex_hdl_s *set = NULL;

    aq_armci_check_proc("ARMCIX_Create_mutexes_hdl", 0);
    if (of->rank >= 0)
        create_set(count, of, &set);
    return set;
}

int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t set)
{
    if (set == NULL)
        return FAIL;
    destroy_set(set);
    return 0;
}

void ARMCIX_Lock_hdl(armcix_mutex_hdl_t set, int mutex, int proc)
{
    lock("ARMCIX_Lock_hdl", set, mutex, proc, false);
}

int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t set, int mutex, int proc)
{
    return lock("ARMCIX_Trylock_hdl", set, mutex, proc, true) ? 0 : 1;
}

void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t set, int mutex, int proc)
{
    unlock("ARMCIX_Unlock_hdl", set, mutex, proc);
}

/* --- the mutex of each rank's procedures --- */

void aq_armci_gpc_mutex_start(void)
{
    if (create_set(1, aq_armci_group(NULL), &gpc_set) != 0)
        aq_armci_fatal("no memory for the mutex of procedure calls");
}

/* Ends the job if a function locks another rank than its own: the answers of other hosts are for
 * the program's thread. */
static void check_function(const char *call, int proc)
{
    if (aq_armci_gpc_is_function() && proc != aq_armci.me)
        aq_armci_fatal("%s: a function at rank %d can lock that rank only, not %d", call,
                       aq_armci.me, proc);
}

void ARMCI_Gpc_lock(int proc)
{
    check_function("ARMCI_Gpc_lock", proc);
    lock("ARMCI_Gpc_lock", gpc_set, 0, proc, false);
    aq_armci_gpc_note_lock(1);
}

int ARMCI_Gpc_trylock(int proc)
{
    check_function("ARMCI_Gpc_trylock", proc);
    if (!lock("ARMCI_Gpc_trylock", gpc_set, 0, proc, true))
        return 0;
    aq_armci_gpc_note_lock(1);
    return 1;
}

void ARMCI_Gpc_unlock(int proc)
{
    check_function("ARMCI_Gpc_unlock", proc);
    unlock("ARMCI_Gpc_unlock", gpc_set, 0, proc);
    aq_armci_gpc_note_lock(-1);
}

/* After a barrier; their memory goes with the rest. */
void aq_armci_mutexes_end(void)
{
    while (sets != NULL)
        forget_set(sets);
    the_set = gpc_set = NULL;
}
