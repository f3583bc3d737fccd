/*
 * armci_mutex.c - mutexes: words in the segment of their host, taken by compare-and-swap or by
 * message.
 *
 * Owns      one set of mutexes for each ARMCI_Create_mutexes or ARMCIX_Create_mutexes_hdl, and one
 *           mutex for each rank, which ARMCI_Gpc_lock takes
 * States    a word is a sum of bits: LOCKED; SLEEPERS: ranks sleep in the kernel; QUEUE: remote
 *           ranks wait in a list by rank (a rank waits for one mutex at a time). An unlock of a
 *           word that is LOCKED alone is one instruction
 * Queue     under the lock of its part. Ranks that share memory with the host do all steps
 *           themselves. For remote ranks the host's handler does them. A handler may send to its
 *           sender only, so its reply to a remote unlock names the next rank, and the rank that
 *           unlocks sends the hand-off
 * Fairness  if a queue and local contenders exist, the mutex goes to each in turn. The mutex is
 *           made free only if a contender is certain to take it: a free mutex would leave the queue
 *           unserved
 * Threads   the program's; the handlers run on it or on the service thread. A function of
 *           ARMCI_Gpc_exec takes its own rank's mutex on a thread of its own
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <gasnet_tools.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "armcix.h"

enum { LOCKED = 1, SLEEPERS = 2, QUEUE = 4 };
enum { REFUSED, GRANTED, QUEUED };
enum { UNANSWERED = -2, NOT_OWNER = -3 }; /* values in place of the next rank */

#define WAKE_NS  400000   /* between two wake-ups by a rank that locks again at once */
#define AGAIN_NS 50000    /* longest time between two unlocks of such a rank */
#define POLL_NS  1000000  /* longest sleep of a rank that must poll for other ranks, */
#define SLEEP_NS 20000000 /* and of one with a service thread */
#define SPINS    100

struct mutex {
    _Alignas(64) _Atomic uint32_t word;
    int32_t head, tail;         /* of the queue: ranks, -1 for none */
    _Atomic int32_t contenders; /* ranks that map the mutex and wait for it, asleep or not */
    int32_t slept;              /* 1: the last turn went to a contender */
    int32_t owner;              /* debug builds: the rank that holds the mutex */
    /* only the holder reads and writes these */
    int32_t giver;        /* the last rank that released the mutex while others slept, */
    gasnett_tick_t given; /* and when */
    gasnett_tick_t woken; /* when a sleeper was woken that has not taken the mutex yet; 0: none */
};

/* The part of a set that one host has in its segment. */
struct part {
    struct aq_armci_lock lock;
    int32_t count;
    int32_t pad;
    /* behind this: count mutexes; then, for each rank, the next rank in its queue */
};

struct armcix_mutex_hdl_s {
    void **
        parts; /* by world rank, the caller's addresses; NULL: the rank is no member of the group */
    int *counts;
    MPI_Comm comm;
};

static struct armcix_mutex_hdl_s *the_set; /* of ARMCI_Create_mutexes */
static struct armcix_mutex_hdl_s *gpc_set;
/* The answer of the host to this rank's lock request, of which one is under way at a time; -1: none
 * yet. granted: set by the last holder's message, for a request whose answer is QUEUED. */
static _Atomic int answer = -1;
static _Atomic bool granted;
static _Atomic int successor = UNANSWERED;

static struct mutex *mutex_at(struct part *part, int mutex)
{
    return (struct mutex *)(void *)(part + 1) + mutex;
}

static int32_t *next_of(struct part *part)
{
    return (int32_t *)(void *)mutex_at(part, part->count);
}

static size_t part_size(int count)
{
    return sizeof(struct part) + (size_t)count * sizeof(struct mutex)
           + (size_t)aq_armci.nproc * sizeof(int32_t);
}

/* --- the memory of the host is mapped --- */

static bool try_take(struct mutex *mutex)
{
    uint32_t word = 0;

    /* acquire: pairs with the release of the unlock */
    return atomic_compare_exchange_strong_explicit(&mutex->word, &word, LOCKED,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Takes the mutex if it is free, and keeps its other bits. *word receives the bits that were
 * read. */
static bool take_keeping(struct mutex *mutex, uint32_t extra, uint32_t *word)
{
    /* relaxed: the compare-and-swap acquires */
    *word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
    while (!(*word & LOCKED))
        if (atomic_compare_exchange_weak_explicit(&mutex->word, word, *word | LOCKED | extra,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* Sleeps until the mutex is taken. A rank that has slept sets SLEEPERS, since other ranks may still
 * sleep. A rank that was awake sleeps for WAKE_NS first: when it looks again, no holder has reason to
 * take it for awake (try_give_quietly()). */
static void sleep_for(struct mutex *mutex)
{
    const long long_ns = aq_armci.must_poll ? POLL_NS : SLEEP_NS;
    bool slept = false;
    uint32_t word;

    while (!take_keeping(mutex, SLEEPERS, &word)) {
        /* release: the count is visible with the bit. A failure means that the word has changed */
        if (!(word & SLEEPERS)
            && !atomic_compare_exchange_strong_explicit(&mutex->word, &word, word | SLEEPERS,
                                                        memory_order_release, memory_order_relaxed))
            continue;
        slept = aq_armci_futex_wait(&mutex->word, word | SLEEPERS, slept ? long_ns : WAKE_NS);
        gasnet_AMPoll();
    }
    mutex->woken = 0;
}

static void take(struct mutex *mutex)
{
    uint32_t word;

    for (int i = 0; i < SPINS; i++) {
        if (take_keeping(mutex, 0, &word))
            return;
        aq_armci_cpu_pause();
    }
    /* relaxed: give() only chooses by the count, and a contender counts itself before it can take
     * the mutex */
    atomic_fetch_add_explicit(&mutex->contenders, 1, memory_order_relaxed);
    sleep_for(mutex);
    atomic_fetch_sub_explicit(&mutex->contenders, 1, memory_order_relaxed); /* as above */
}

static void wake_sleeper(struct mutex *mutex)
{
    /* relaxed: a contender that counts itself later is woken, too; its next holder sets the bit */
    const bool any = atomic_load_explicit(&mutex->contenders, memory_order_relaxed) > 0;

    mutex->woken = any ? gasnett_ticks_now() : 0;
    /* release: the next holder sees the writes of this holder */
    atomic_fetch_and_explicit(&mutex->word, ~(uint32_t)(any ? LOCKED : LOCKED | SLEEPERS),
                              memory_order_release);
    aq_armci_futex_wake(&mutex->word);
}

/* Releases the mutex if no rank waits for it. */
static bool try_give(struct mutex *mutex)
{
    uint32_t word = LOCKED;

    /* release: pairs with the acquires of taking it */
    return atomic_compare_exchange_strong_explicit(&mutex->word, &word, 0, memory_order_release,
                                                   memory_order_relaxed);
}

static bool is_within(gasnett_tick_t earlier, gasnett_tick_t now, uint64_t ns)
{
    return earlier != 0 && gasnett_ticks_to_ns(now - earlier) < ns;
}

/* Releases the mutex without a wake-up, if rank has released it a moment ago, too, and a rank that
 * was woken since WAKE_NS looks at the mutex by itself. A wake-up takes longer than the short
 * section of a rank that locks again at once, and who is woken finds the mutex taken again. */
static bool try_give_quietly(struct mutex *mutex, int rank)
{
    const gasnett_tick_t now = gasnett_ticks_now();
    const bool again = mutex->giver == rank && is_within(mutex->given, now, AGAIN_NS);
    uint32_t word = LOCKED | SLEEPERS;

    mutex->giver = rank;
    mutex->given = now;
    /* release: as above */
    return again && is_within(mutex->woken, now, WAKE_NS)
           && atomic_compare_exchange_strong_explicit(&mutex->word, &word, SLEEPERS,
                                                      memory_order_release, memory_order_relaxed);
}

/* Releases the mutex for rank. Returns the rank of the queue that holds it from now on, to which the
 * caller sends a hand-off; -1: none. */
static int give(struct part *part, struct mutex *mutex, int rank)
{
    uint32_t word;
    int next = -1;

    if (try_give(mutex) || try_give_quietly(mutex, rank))
        return -1;
    aq_armci_lock_take(&part->lock);
    word = atomic_load_explicit(&mutex->word,
                                memory_order_acquire); /* pairs with the release that sets QUEUE */
    /* relaxed: a contender takes the mutex before it leaves the count, and no rank takes the mutex
     * while it is held */
    if (!(word & QUEUE)
        || (atomic_load_explicit(&mutex->contenders, memory_order_relaxed) > 0 && !mutex->slept)) {
        mutex->slept = 1;
        wake_sleeper(mutex);
    } else {
        next = mutex->head;
        if (AQ_ARMCI_CHECKS)
            mutex->owner = next;
        mutex->slept = 0;
        mutex->head = next_of(part)[next];
        if (mutex->head < 0) /* the lock orders the queue; relaxed would suffice */
            atomic_fetch_and_explicit(&mutex->word, ~(uint32_t)QUEUE, memory_order_release);
    }
    aq_armci_lock_give(&part->lock);
    return next;
}

/* give(). A debug build returns NOT_OWNER if the rank does not hold the mutex. */
static int give_for(struct part *part, struct mutex *mutex, int rank)
{
    if (AQ_ARMCI_CHECKS) {
        if (mutex->owner != rank)
            return NOT_OWNER;
        mutex->owner = -1;
    }
    return give(part, mutex, rank);
}

/* For a remote rank: takes the mutex, or appends the rank to the queue. */
static int take_or_queue(struct part *part, struct mutex *mutex, int rank, bool try_only)
{
    uint32_t word;
    int state = try_only ? REFUSED : QUEUED;

    aq_armci_lock_take(&part->lock);
    for (;;) {
        if (take_keeping(mutex, 0, &word)) {
            state = GRANTED;
            break;
        }
        /* release: pairs with the acquire in give(), which reads the queue under the lock */
        if (try_only || (word & QUEUE)
            || atomic_compare_exchange_strong_explicit(&mutex->word, &word, word | QUEUE,
                                                       memory_order_release, memory_order_relaxed))
            break;
    }
    if (AQ_ARMCI_CHECKS && state == GRANTED)
        mutex->owner = rank;
    if (state == QUEUED) {
        next_of(part)[rank] = -1;
        if (word & QUEUE && mutex->head >= 0)
            next_of(part)[mutex->tail] = rank;
        else
            mutex->head = rank;
        mutex->tail = rank;
    }
    aq_armci_lock_give(&part->lock);
    return state;
}

/* --- messages --- */

static struct part *part_of_words(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (struct part *)((uintptr_t)(uint32_t)high << 32 | (uint32_t)low);
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
    struct part *part = part_of_words(high, low);
    const int state =
        take_or_queue(part, mutex_at(part, mutex), aq_armci_source(token), try_only != 0);

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
    struct part *part = part_of_words(high, low);
    const int next = give_for(part, mutex_at(part, mutex), aq_armci_source(token));

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
    if (*state_out == QUEUED && atomic_load_explicit(&granted, memory_order_acquire))
        *state_out = GRANTED;
    return *state_out == GRANTED || *state_out == REFUSED;
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

static void part_init(struct part *part, int count)
{
    const size_t head = sizeof(part->lock);

    memset((char *)part + head, 0, part_size(count) - head);
    part->count = count;
    for (int i = 0; i < count; i++) {
        mutex_at(part, i)->head = -1;
        mutex_at(part, i)->owner = -1;
    }
    /* release: a thread that takes the lock, the service thread too, sees the rest */
    atomic_store_explicit(&part->lock.word, AQ_ARMCI_LOCK_FREE, memory_order_release);
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
    set->comm = group->comm;
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
    else if (aq_armci_malloc(parts, (armci_size_t)part_size(count), group->comm, group->grp_to_abs,
                             group->size)
             != 0)
        rc = FAIL2;
    if (rc == 0) {
        part_init(parts[group->rank], count);
        *set_out = set_of(group, parts, counts);
        aq_armci_mpi_barrier(group->comm);
    }
    free(parts);
    free(counts);
    return rc;
}

static void destroy_set(struct armcix_mutex_hdl_s *set)
{
    aq_armci_free(set->parts[aq_armci.me], set->comm);
    free(set->parts);
    free(set->counts);
    free(set);
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
    struct part *part = check_mutex(call, set, mutex, proc);
    uint32_t word;

    if (!aq_armci_is_local(&aq_armci.peers[proc])) {
        if (lock_remote(part, mutex, proc, try_only) != GRANTED)
            return false;
    } else if (!take_keeping(mutex_at(part, mutex), 0, &word)) {
        give_way();
        if (try_only)
            return false;
        take(mutex_at(part, mutex));
    }
    if (AQ_ARMCI_CHECKS && aq_armci_is_local(&aq_armci.peers[proc]))
        mutex_at(part, mutex)->owner = aq_armci.me;
    return true;
}

static void unlock(const char *call, struct armcix_mutex_hdl_s *set, int mutex, int proc)
{
    struct part *part = check_mutex(call, set, mutex, proc);
    int next;

    if (!aq_armci_gpc_is_function()) /* a function has put nothing */
        aq_armci_order_after(proc);
    if (aq_armci_is_local(&aq_armci.peers[proc]))
        next = give_for(part, mutex_at(part, mutex), aq_armci.me);
    else
        next = unlock_remote(part, mutex, proc);
    if (next == NOT_OWNER)
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
static inline struct mutex *mapped_mutex(int mutex, int proc)
{
    const struct armcix_mutex_hdl_s *set = the_set;

    if (AQ_ARMCI_CHECKS || set == NULL || !aq_armci.running || !aq_armci_is_proc(proc)
        || (unsigned)mutex >= (unsigned)set->counts[proc]
        || !aq_armci_is_local(&aq_armci.peers[proc]))
        return NULL;
    return mutex_at(set->parts[proc], mutex);
}

void PARMCI_Lock(int mutex, int proc)
{
    struct mutex *mapped = mapped_mutex(mutex, proc);

    uint32_t word;

    if (AQ_LIKELY(mapped != NULL && (try_take(mapped) || take_keeping(mapped, 0, &word))))
        return;
    if (the_set == NULL && aq_armci.running && aq_armci.nproc == 1)
        return; /* with one rank Global Arrays makes no mutexes */
    lock("ARMCI_Lock", the_set, mutex, proc, false);
}
AQ_ARMCI_TWIN(Lock);

void PARMCI_Unlock(int mutex, int proc)
{
    struct mutex *mapped = mapped_mutex(mutex, proc);

    if (AQ_LIKELY(mapped != NULL && !aq_armci.peers[proc].dirty
                  && (try_give(mapped) || try_give_quietly(mapped, aq_armci.me)))) {
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
}

int ARMCI_Gpc_trylock(int proc)
{
    check_function("ARMCI_Gpc_trylock", proc);
    return lock("ARMCI_Gpc_trylock", gpc_set, 0, proc, true);
}

void ARMCI_Gpc_unlock(int proc)
{
    check_function("ARMCI_Gpc_unlock", proc);
    unlock("ARMCI_Gpc_unlock", gpc_set, 0, proc);
}

void aq_armci_mutexes_end(void)
{
    if (the_set != NULL)
        PARMCI_Destroy_mutexes();
    destroy_set(gpc_set);
    gpc_set = NULL;
}
