/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_firehose_overlap.c - large transfers from memory that is not pinned yet: whole, in growing
 * chunks, warm.
 *
 * In virtual time   one processor pins (a call costs so much, a page so much) and posts chunks, one
 *                   wire transfers them: the model M9 of pinning, with firehose's own chunks.
 *                   Pinning costs 10% and 25% of the transfer
 * On this machine   mlock() pins; another thread, bound to another core, is the wire: it copies the
 *                   chunks that it is given, in order. Warm: the memory is locked already
 *
 * Threads   this one, and the wire. Uses bench_firehose.h, bench_stat.h
 */
#include "bench_firehose.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_stat.h"

#define LOWEST  ((size_t)64 << 10)
#define HIGHEST ((size_t)64 << 20)
#define RING    64u
#define REPEATS 15u

enum mode { WARM, OVERLAPPED, WHOLE, MODES };

static const char *const mode_names[] = { "warm", "overlapped", "pin, then send" };

/* What a transfer is made of: virtual or real. */
struct wire {
    void (*send)(struct wire *wire, uintptr_t addr, size_t len); /* is not waited for */
    double (*finish)(struct wire *wire);                         /* time since the start, ns */
};

/* Send nbytes at addr, in the manner of a mode; pinning is the operation of fh. */
static double transfer(struct aq_fh *fh, struct wire *wire, uintptr_t addr, size_t nbytes,
                       enum mode mode)
{
    struct aq_fh_chunks chunks = { 0 };
    struct aq_fh_hold *holds = malloc((nbytes / AQ_FH_PAGE + 1) * sizeof(*holds));
    unsigned count = 0;
    double ns;

    for (size_t at = 0; at < nbytes; at += holds[count++].len) {
        const size_t chunk =
            mode == WHOLE ? nbytes - at
                          : aq_fh_chunk(&chunks, addr + at, nbytes - at, aq_fh_max_chunk(fh));

        if (aq_fh_local_chunk(fh, addr + at, nbytes - at, chunk, false, &holds[count]) != AQ_OK)
            abort();
        if (mode != WHOLE)
            wire->send(wire, holds[count].addr, holds[count].len);
    }
    for (unsigned i = 0; mode == WHOLE && i < count; i++)
        wire->send(wire, holds[i].addr, holds[i].len);
    ns = wire->finish(wire);
    for (unsigned i = 0; i < count; i++)
        aq_fh_release(fh, &holds[i]);
    free(holds);
    return ns;
}

static struct aq_fh *open_fh(const struct aq_fh_ops *ops, void *arg)
{
    const struct aq_fh_config config = { .size = 1,
                                         .local_bytes = 4 * HIGHEST,
                                         .local_regions = 1u << 16,
                                         .max_region = 128 << 10,
                                         .max_chunk = AQ_FH_CHUNK_PAGES * AQ_FH_PAGE,
                                         .message = AQ_FH_MESSAGE };
    struct aq_fh *fh;

    if (aq_fh_open(&config, ops, arg, &fh) != AQ_OK)
        exit(1);
    return fh;
}

static int no_request(void *arg, uint32_t peer, const void *msg, size_t nbytes)
{
    (void)arg, (void)peer, (void)msg, (void)nbytes;
    return AQ_RETRY;
}

/* --- virtual time --- */

struct virtual
{
    struct wire wire;
    double cpu, wire_free;               /* ns */
    double per_byte;                     /* of the wire */
    double per_page, per_pin, per_chunk; /* of the processor */
};

static int virtual_pin(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out)
{
    struct virtual *v = arg;

    (void)addr, (void)write;
    memset(reg_out, 0, sizeof(*reg_out));
    v->cpu += v->per_pin + v->per_page * (double)(len / AQ_FH_PAGE);
    return AQ_OK;
}

static void virtual_unpin(void *arg, const struct aq_fh_reg *reg)
{
    (void)arg, (void)reg;
}

static void virtual_send(struct wire *wire, uintptr_t addr, size_t len)
{
    struct virtual *v = (struct virtual *)wire;

    (void)addr;
    v->cpu += v->per_chunk;
    v->wire_free = (v->wire_free > v->cpu ? v->wire_free : v->cpu) + v->per_byte * (double)len;
}

static double virtual_finish(struct wire *wire)
{
    return ((struct virtual *)wire)->wire_free;
}

/* share: what pinning costs, of the transfer. A wire of 12 GB/s; 1 us a call of pinning, 200 ns a
 * chunk. */
static double virtual_run(enum mode mode, size_t nbytes, double quota)
{
    const struct aq_fh_ops ops = { .reg = virtual_pin,
                                   .dereg = virtual_unpin,
                                   .send_request = no_request };
    struct virtual v = { .wire = { .send = virtual_send, .finish = virtual_finish },
                         .per_byte = 1 / 12.0,
                         .per_page = quota * AQ_FH_PAGE / 12.0,
                         .per_pin = 1000,
                         .per_chunk = 200 };
    struct aq_fh *fh = open_fh(&ops, &v);
    double ns;

    if (mode == WARM) {
        transfer(fh, &v.wire, AQ_FH_GRANULE, nbytes, OVERLAPPED);
        v.cpu = v.wire_free = 0;
    }
    ns = transfer(fh, &v.wire, AQ_FH_GRANULE, nbytes, mode);
    aq_fh_close(fh);
    return ns;
}

/* --- this machine --- */

struct job {
    uintptr_t addr;
    size_t len;
};

struct real {
    struct wire wire;
    pthread_t thread;
    uint8_t *to;
    uintptr_t from;
    struct job ring[RING];
    _Alignas(64) atomic_uint given;
    _Alignas(64) atomic_uint done;
    atomic_bool stop;
    double began;
};

static void bind_to(unsigned core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *real_wire(void *arg)
{
    struct real *real = arg;
    unsigned next = 0;

    bind_to(1);
    while (!atomic_load_explicit(&real->stop, memory_order_relaxed)) {
        /* acquire: pairs with the release in real_send() */
        if (atomic_load_explicit(&real->given, memory_order_acquire) == next) {
            aq_cpu_relax();
            continue;
        }
        memcpy(real->to + (real->ring[next % RING].addr - real->from),
               (void *)real->ring[next % RING].addr, real->ring[next % RING].len);
        next++;
        /* release: pairs with the acquire in real_finish() */
        atomic_store_explicit(&real->done, next, memory_order_release);
    }
    return NULL;
}

static void real_send(struct wire *wire, uintptr_t addr, size_t len)
{
    struct real *real = (struct real *)wire;
    const unsigned given = atomic_load_explicit(&real->given, memory_order_relaxed);

    /* acquire: the wire has read what was in the place */
    while (given - atomic_load_explicit(&real->done, memory_order_acquire) == RING)
        aq_cpu_relax();
    real->ring[given % RING] = (struct job){ addr, len };
    atomic_store_explicit(&real->given, given + 1,
                          memory_order_release); /* release: the job is in its place */
}

static double real_finish(struct wire *wire)
{
    struct real *real = (struct real *)wire;

    while (atomic_load_explicit(&real->done, memory_order_acquire)
           != atomic_load_explicit(&real->given, memory_order_relaxed))
        aq_cpu_relax();
    return aq_bench_now() - real->began;
}

static int real_pin(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out)
{
    (void)arg, (void)write;
    memset(reg_out, 0, sizeof(*reg_out));
    return mlock((void *)addr, len) == 0 ? AQ_OK : AQ_ERR_NOMEM;
}

static void real_unpin(void *arg, const struct aq_fh_reg *reg)
{
    (void)arg, (void)reg;
}

/* Time of one transfer, ns. */
static double real_run(struct real *real, enum mode mode, size_t nbytes)
{
    const struct aq_fh_ops ops = { .reg = real_pin,
                                   .dereg = real_unpin,
                                   .send_request = no_request };
    struct aq_fh *fh = open_fh(&ops, real);
    double ns;

    if (mode == WARM)
        transfer(fh, &real->wire, real->from, nbytes, OVERLAPPED);
    real->began = aq_bench_now();
    ns = transfer(fh, &real->wire, real->from, nbytes, mode);
    aq_fh_close(fh);
    munlock((void *)real->from, nbytes);
    return ns;
}

/* The shortest times of each mode, alternating: the machine may be somebody else's as well. False:
 * not possible here.
 * */
static bool real_rows(size_t nbytes, double *ns_out)
{
    static struct real real;
    const uint64_t space = 2 * HIGHEST;

    memset(&real, 0, sizeof(real));
    real.wire = (struct wire){ .send = real_send, .finish = real_finish };
    real.from =
        (uintptr_t)mmap(NULL, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    real.to = (uint8_t *)real.from + HIGHEST;
    memset((void *)real.from, 1, space); /* pages are there: only pinning is to be measured */
    if (mlock((void *)real.from, nbytes) != 0) {
        munmap((void *)real.from, space);
        return false;
    }
    munlock((void *)real.from, nbytes);
    pthread_create(&real.thread, NULL, real_wire, &real);
    for (unsigned i = 0; i < REPEATS; i++)
        for (enum mode mode = 0; mode < MODES; mode++) {
            const double ns = real_run(&real, mode, nbytes);

            ns_out[mode] = i == 0 || ns < ns_out[mode] ? ns : ns_out[mode];
        }
    atomic_store_explicit(&real.stop, true, memory_order_relaxed);
    pthread_join(real.thread, NULL);
    munmap((void *)real.from, space);
    return true;
}

/* --- tables --- */

static void row(const char *where, size_t nbytes, const double *ns)
{
    printf("%-14s %9zu KiB", where, nbytes >> 10);
    for (enum mode mode = 0; mode < MODES; mode++)
        printf(" %12.1f us", ns[mode] / 1e3);
    printf("   %6.3f %6.3f  %6.2f\n", ns[OVERLAPPED] / ns[WARM], ns[WHOLE] / ns[WARM],
           ns[WHOLE] / ns[OVERLAPPED]);
}

void bench_fh_overlap(const char *dir)
{
    struct bench_fh_plot plot = {
        .title = "Transfers from memory that is not pinned yet, against warm ones (virtual time)",
        .x = "KiB",
        .y = "time / time when warm",
        .set = "set yrange [0.95:]",
        .curves = 4,
    };
    cpu_set_t before;

    plot.name[0] = "overlapped, pinning 10%";
    plot.name[1] = "pin then send, 10%";
    plot.name[2] = "overlapped, pinning 25%";
    plot.name[3] = "pin then send, 25%";
    pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
    printf("# large transfers; times, and ratios: overlapped / warm, whole / warm, whole / "
           "overlapped\n# %-12s %13s",
           "pinning", "size");
    for (enum mode mode = 0; mode < MODES; mode++)
        printf(" %15s", mode_names[mode]);
    printf("\n");
    for (size_t nbytes = LOWEST; nbytes <= HIGHEST; nbytes *= 2, plot.points++) {
        double ns[MODES];

        plot.at[plot.points] = (double)(nbytes >> 10);
        for (unsigned part = 0; part < 3; part++) {
            if (part == 2)
                bind_to(0);
            for (enum mode mode = 0; part < 2 && mode < MODES; mode++)
                ns[mode] = virtual_run(mode, nbytes, part == 0 ? 0.10 : 0.25);
            if (part == 2 && !real_rows(nbytes, ns))
                continue; /* so much may not be locked here */
            row(part == 0 ? "virtual 10%" : part == 1 ? "virtual 25%" : "mlock", nbytes, ns);
            if (part == 2)
                continue;
            plot.value[2 * part][plot.points] = ns[OVERLAPPED] / ns[WARM];
            plot.value[2 * part + 1][plot.points] = ns[WHOLE] / ns[WARM];
        }
        pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
    }
    bench_fh_plot(dir, "firehose-overlap.svg", &plot);
}
