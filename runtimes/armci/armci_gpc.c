/*
 * armci_gpc.c - global procedure calls: functions of the program that run at another rank.
 *
 * Wire      Medium requests both ways: struct part, then a fragment of the call (header, then data)
 *           or of its result. Fragments arrive in any order. A call is complete when all its bytes
 *           have arrived
 * Threads   a handler may send to the sender of its message only, and may not run for long. So a
 *           thread of the library, started by the first registration, runs the functions and sends
 *           the results. It uses the state of this file only, and the own rank's mutex
 * Owns      the calls of this rank, by number; the calls of other ranks, until they have run. All
 *           are under the mutex
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpc.h"

#define SLOTS     32
#define BASE      -100 /* handles are BASE, BASE - 1, ... */
#define MAX_BYTES 65536

struct part {
    uint32_t call;    /* the caller's number */
    int32_t function; /* call: its slot */
    int32_t hlen, dlen, rhlen, rdlen;
    uint32_t offset; /* of this fragment's bytes in the call or the result */
    uint32_t pad;
};

/* A call that this rank has made. */
struct call {
    bool in_use;
    bool is_dropped; /* under the mutex: the result is not stored */
    char *rhdr, *rdata;
    int32_t rhlen;
    uint32_t total;
    uint32_t got; /* bytes of the result that have arrived; under the mutex */
    _Atomic bool is_done;
};

/* A call of another rank, from its first fragment until the function has run. */
struct incoming {
    struct incoming *next;
    int source;
    struct part head;
    uint32_t got;
    char *result; /* header, then data, each aligned for any type; NULL: not called yet */
    int rhsize, rdsize;
    _Alignas(16) char bytes[]; /* header, then data, each aligned for any type */
};

static aq_gpc_any_t functions[SLOTS];
static struct call **calls;
static int ncalls;

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* protects all variables below, and got of calls */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct incoming *gathering, *ready, **ready_end = &ready;
static bool has_thread, must_stop;
static pthread_t thread;
static _Thread_local bool is_function; /* on the thread */
static _Thread_local int locks;        /* that this thread has of ARMCI_Gpc_lock */

/* --- fragments --- */

static size_t part_limit(int proc)
{
    return gex_AM_MaxRequestMedium(aq_armci.tm, (gex_Rank_t)proc, GEX_EVENT_NOW, 0, 0);
}

/* Sends a (alen bytes) and then b (blen bytes) in as few messages as possible, at least one. */
static void send_parts(int proc, gex_AM_Index_t handler, struct part part, const char *a,
                       size_t alen, const char *b, size_t blen)
{
    const size_t limit = part_limit(proc), total = alen + blen;
    char *buffer = malloc(sizeof(part) + total < limit ? sizeof(part) + total : limit);
    size_t done = 0;

    if (buffer == NULL)
        aq_armci_fatal("a procedure call: no memory for %zu bytes", total);
    do {
        const size_t n = total - done < limit - sizeof(part) ? total - done : limit - sizeof(part);
        const size_t of_a = done >= alen ? 0 : alen - done < n ? alen - done : n;

        part.offset = (uint32_t)done;
        memcpy(buffer, &part, sizeof(part));
        if (of_a > 0)
            memcpy(buffer + sizeof(part), a + done, of_a);
        if (n > of_a)
            memcpy(buffer + sizeof(part) + of_a, b + (done + of_a - alen), n - of_a);
        gex_AM_RequestMedium0(aq_armci.tm, (gex_Rank_t)proc, handler, buffer, sizeof(part) + n,
                              GEX_EVENT_NOW, 0);
        done += n;
    } while (done < total);
    free(buffer);
}

/* The bytes of a header with padding, so that the data behind it are aligned for any type. */
static size_t padded(int32_t len)
{
    return ((size_t)len + 15) & ~(size_t)15;
}

/* Stores a fragment of n bytes at an offset of the sequence that consists of a (alen bytes) and
 * b. */
static void store_part(char *a, size_t alen, char *b, size_t offset, const char *bytes, size_t n)
{
    const size_t of_a = offset >= alen ? 0 : alen - offset < n ? alen - offset : n;

    if (of_a > 0)
        memcpy(a + offset, bytes, of_a);
    if (n > of_a)
        memcpy(b + (offset + of_a - alen), bytes + of_a, n - of_a);
}

/* --- the target: runs the function --- */

static struct incoming *find_gathering(int source, const struct part *part)
{
    struct incoming *in;

    for (in = gathering; in != NULL; in = in->next)
        if (in->source == source && in->head.call == part->call)
            return in;
    in = malloc(sizeof(*in) + padded(part->hlen) + (size_t)part->dlen);
    if (in == NULL)
        aq_armci_fatal("a procedure call: no memory for %d bytes", part->hlen + part->dlen);
    *in = (struct incoming){ .next = gathering, .source = source, .head = *part };
    gathering = in;
    return in;
}

static void make_ready(struct incoming *in)
{
    struct incoming **link = &gathering;

    while (*link != in)
        link = &(*link)->next;
    *link = in->next;
    in->next = NULL;
    *ready_end = in;
    ready_end = &in->next;
    pthread_cond_signal(&work);
}

void aq_armci_on_gpc(gex_Token_t token, void *payload, size_t bytes)
{
    struct part part;
    struct incoming *in;
    const size_t n = bytes - sizeof(part);

    memcpy(&part, payload, sizeof(part));
    pthread_mutex_lock(&mutex);
    in = find_gathering(aq_armci_source(token), &part);
    store_part(in->bytes, (size_t)part.hlen, in->bytes + padded(part.hlen), part.offset,
               (char *)payload + sizeof(part), n);
    in->got += (uint32_t)n;
    if (in->got == (uint32_t)(part.hlen + part.dlen))
        make_ready(in);
    pthread_mutex_unlock(&mutex);
}

/* All functions wait for something else: until another call comes, or a short time has passed.
 * Under the mutex. */
static void give_way(unsigned rounds)
{
    struct timespec until;

    if (rounds < 16) {
        pthread_mutex_unlock(&mutex);
        sched_yield();
        pthread_mutex_lock(&mutex);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&work, &mutex, &until);
}

static void make_result(struct incoming *in)
{
    const struct part *part = &in->head;

    in->result = calloc(1, padded(part->rhlen) + (size_t)part->rdlen + 1);
    if (in->result == NULL)
        aq_armci_fatal("a procedure call: no memory for a result of %d bytes",
                       part->rhlen + part->rdlen);
    in->rhsize = part->rhlen;
    in->rdsize = part->rdlen;
}

/* Calls the function, and sends its result if it is done. False: it waits for something else, and
 * is to be called again. */
static bool run(struct incoming *in, aq_gpc_fn_t function)
{
    const struct part part = in->head;
    char *data = in->bytes + padded(part.hlen), *rdata;
    int type = GPC_PROBE;

    if (in->result == NULL) {
        make_result(in);
        type = GPC_INIT;
    }
    rdata = in->result + padded(part.rhlen);
    if (function(aq_armci.me, in->source, in->bytes, part.hlen, data, part.dlen, in->result,
                 part.rhlen, &in->rhsize, rdata, part.rdlen, &in->rdsize, type)
        == GPC_PENDING) {
        if (locks != 0)
            aq_armci_fatal("a function of ARMCI_Gpc_exec has answered GPC_PENDING while it holds a "
                           "lock of ARMCI_Gpc_lock, which functions that run meanwhile may want");
        return false;
    }
    send_parts(in->source, AQ_ARMCI_HANDLE_GPC_REPLY, part, in->result, (size_t)part.rhlen, rdata,
               (size_t)part.rdlen);
    free(in->result);
    free(in);
    return true;
}

void aq_armci_gpc_note_lock(int taken)
{
    locks += taken;
}

bool aq_armci_gpc_is_function(void)
{
    return is_function;
}

/* The next call whose function is to run; NULL: there is none. Under the mutex. */
static struct incoming *next_ready(void)
{
    struct incoming *in = ready;

    if (in == NULL)
        return NULL;
    ready = in->next;
    if (ready == NULL)
        ready_end = &ready;
    in->next = NULL;
    return in;
}

/* A function that waits may wait for one that is called later: they take turns. */
static void *serve(void *arg)
{
    const struct incoming *first_waiting = NULL; /* since when no function has ended */
    unsigned rounds = 0;
    struct incoming *in;

    (void)arg;
    is_function = true;
    pthread_mutex_lock(&mutex);
    for (;;) {
        in = next_ready();
        if (in == NULL) {
            if (must_stop)
                break;
            pthread_cond_wait(&work, &mutex);
            continue;
        }
        const aq_gpc_fn_t function = (aq_gpc_fn_t)functions[in->head.function];

        if (in == first_waiting)
            give_way(rounds++);
        pthread_mutex_unlock(&mutex);
        if (run(in, function)) {
            first_waiting = NULL;
            rounds = 0;
            pthread_mutex_lock(&mutex);
            continue;
        }
        if (first_waiting == NULL)
            first_waiting = in;
        pthread_mutex_lock(&mutex);
        *ready_end = in;
        ready_end = &in->next;
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* The thread blocks all signals, so that the program's threads receive them. */
static void start_thread(void)
{
    sigset_t all, before;

    if (has_thread)
        return;
    if (!aq_armci.threads)
        aq_armci_fatal("ARMCI_Gpc_register: over the mpi conduit the program has to start MPI with "
                       "MPI_THREAD_MULTIPLE");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    must_stop = false;
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        aq_armci_fatal("ARMCI_Gpc_register: no thread can be made");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    has_thread = true;
}

void aq_armci_gpc_end(void)
{
    if (has_thread) {
        pthread_mutex_lock(&mutex);
        must_stop = true;
        pthread_cond_signal(&work);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, NULL);
        has_thread = false;
    }
    memset(functions, 0, sizeof(functions));
}

static void set_function(int slot, aq_gpc_any_t func)
{
    pthread_mutex_lock(&mutex); /* the thread may read the table for another call */
    functions[slot] = func;
    pthread_mutex_unlock(&mutex);
}

/* Waits for the answers to this rank's calls. A barrier may overtake a call on a network that
 * loses. */
static void await_calls(void)
{
    for (int id = 0; id < ncalls; id++)
        if (calls[id]->in_use)
            GASNET_BLOCKUNTIL(atomic_load_explicit(
                &calls[id]->is_done, memory_order_acquire)); /* pairs with keep_result() */
}

int ARMCI_Gpc_register(aq_gpc_any_t func)
{
    int slot = 0;

    aq_armci_check_proc("ARMCI_Gpc_register", 0);
    while (slot < SLOTS && functions[slot] != NULL)
        slot++;
    if (slot == SLOTS)
        aq_armci_fatal("ARMCI_Gpc_register: %d functions are registered, and that is all", SLOTS);
    set_function(slot, func);
    start_thread();
    parmci_msg_barrier();
    return BASE - slot;
}

void ARMCI_Gpc_release(int handle)
{
    await_calls();
    parmci_msg_barrier();
    if (handle <= BASE && handle > BASE - SLOTS)
        set_function(BASE - handle, NULL);
}

/* --- the caller --- */

/* Stores the call. Returns its number, which the messages of the result contain. */
static int take_call(const struct call *call)
{
    int id = 0;

    /* a handler that runs at the same time reads the table under the mutex */
    pthread_mutex_lock(&mutex);
    while (id < ncalls && calls[id]->in_use)
        id++;
    if (id == ncalls) {
        struct call **longer = realloc(calls, (size_t)(ncalls + 1) * sizeof(*longer));
        struct call *place = malloc(sizeof(*place));

        if (longer == NULL || place == NULL)
            aq_armci_fatal("ARMCI_Gpc_exec: no memory for a call");
        calls = longer;
        calls[ncalls++] = place;
    }
    *calls[id] = *call;
    pthread_mutex_unlock(&mutex);
    return id;
}

static void keep_result(struct call *call, const struct part *part, const char *bytes, size_t n)
{
    if (!call->is_dropped)
        store_part(call->rhdr, (size_t)call->rhlen, call->rdata, part->offset, bytes, n);
    call->got += (uint32_t)n;
    /* release: pairs with the acquire in ARMCI_Gpc_wait() and ARMCI_Gpc_test() */
    if (call->got == call->total)
        atomic_store_explicit(&call->is_done, true, memory_order_release);
}

void aq_armci_on_gpc_reply(gex_Token_t token, void *payload, size_t bytes)
{
    struct part part;

    (void)token;
    memcpy(&part, payload, sizeof(part));
    pthread_mutex_lock(&mutex);
    keep_result(calls[part.call], &part, (char *)payload + sizeof(part), bytes - sizeof(part));
    pthread_mutex_unlock(&mutex);
}

/* The buffers of these results may not exist any more. */
static void drop_results(void)
{
    pthread_mutex_lock(&mutex);
    for (int id = 0; id < ncalls; id++)
        calls[id]->is_dropped = calls[id]->in_use;
    pthread_mutex_unlock(&mutex);
}

void aq_armci_gpc_complete(void)
{
    drop_results();
    await_calls();
    for (int id = 0; id < ncalls; id++)
        calls[id]->in_use = false;
}

static const char *what_is_wrong(int handle, int proc, const void *hdr, int hlen, const void *data,
                                 int dlen, const void *rhdr, int rhlen, const void *rdata,
                                 int rdlen)
{
    if (handle > BASE || handle <= BASE - SLOTS || functions[BASE - handle] == NULL)
        return "no such function is registered";
    if (!aq_armci_is_proc(proc))
        return "no such rank";
    if (hlen < 0 || dlen < 0 || rhlen < 0 || rdlen < 0 || hlen >= MAX_BYTES || dlen >= MAX_BYTES
        || rhlen >= MAX_BYTES || rdlen >= MAX_BYTES)
        return "a length is negative, or 65536 or more";
    if ((hlen > 0 && hdr == NULL) || (dlen > 0 && data == NULL) || (rhlen > 0 && rhdr == NULL)
        || (rdlen > 0 && rdata == NULL))
        return "a buffer with a length is NULL";
    return NULL;
}

int ARMCI_Gpc_exec(int handle, int proc, void *hdr, int hlen, void *data, int dlen, void *rhdr,
                   int rhlen, void *rdata, int rdlen, gpc_hdl_t *nbh)
{
    const char *wrong =
        what_is_wrong(handle, proc, hdr, hlen, data, dlen, rhdr, rhlen, rdata, rdlen);
    struct part part = { 0 };
    gpc_hdl_t own;
    int id;

    if (wrong != NULL) {
        fprintf(stderr, "ARMCI: rank %d: ARMCI_Gpc_exec: %s\n", aq_armci.me, wrong);
        return FAIL;
    }
    if (rhlen + rdlen == 0)
        aq_armci_fatal("ARMCI_Gpc_exec: the function has no room for a result");
    aq_armci_order_after(proc);
    id = take_call(&(struct call){ .in_use = true,
                                   .rhdr = rhdr,
                                   .rdata = rdata,
                                   .rhlen = rhlen,
                                   .total = (uint32_t)(rhlen + rdlen) });
    part = (struct part){ .call = (uint32_t)id,
                          .function = BASE - handle,
                          .hlen = hlen,
                          .dlen = dlen,
                          .rhlen = rhlen,
                          .rdlen = rdlen };
    send_parts(proc, AQ_ARMCI_HANDLE_GPC, part, hdr, (size_t)hlen, data, (size_t)dlen);
    if (nbh == NULL)
        nbh = &own;
    nbh->proc = proc;
    nbh->ahdl = (armci_hdl_t){ id + 1, 0 };
    if (nbh == &own)
        ARMCI_Gpc_wait(nbh);
    return 0;
}

void ARMCI_Gpc_init_handle(gpc_hdl_t *nbh)
{
    nbh->ahdl = (armci_hdl_t){ 0, 0 };
}

int ARMCI_Gpc_test(gpc_hdl_t *nbh)
{
    const int id = nbh->ahdl.request - 1;

    if (id < 0)
        return 0;
    gasnet_AMPoll();
    if (!atomic_load_explicit(&calls[id]->is_done,
                              memory_order_acquire)) /* pairs with keep_result() */
        return 1;
    calls[id]->in_use = false;
    ARMCI_Gpc_init_handle(nbh);
    return 0;
}

void ARMCI_Gpc_wait(gpc_hdl_t *nbh)
{
    const int id = nbh->ahdl.request - 1;

    if (id < 0)
        return;
    GASNET_BLOCKUNTIL(
        atomic_load_explicit(&calls[id]->is_done, memory_order_acquire)); /* as above */
    calls[id]->in_use = false;
    ARMCI_Gpc_init_handle(nbh);
}

void *ARMCI_Gpc_translate(void *ptr, int proc, int from)
{
    (void)proc;
    (void)from;
    return ptr;
}

int ARMCI_Gpc_get_hlen(void)
{
    return MAX_BYTES;
}

int ARMCI_Gpc_get_dlen(void)
{
    return MAX_BYTES;
}

int ARMCI_Get_gpc_hlen(void)
{
    return MAX_BYTES;
}

int ARMCI_Get_gpc_dlen(void)
{
    return MAX_BYTES;
}
