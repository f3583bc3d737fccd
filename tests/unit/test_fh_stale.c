/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fh_stale.c - firehose and its memory monitor, with a device that really holds pages: threads
 * map, transfer, unmap, map anew at addresses that others have just given back, and transfer again;
 * whatever the device sees is what the program sees. The checks are checked: without the memory
 * monitor they fail.
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_platform.h"
#include "other/firehose/aq_fh.h"
#include "other/firehose/aq_fh_memmon.h"
#include "tests/unit/fh_pages.h"

#define PAGE ((size_t)4096)
enum { THREADS = 4, LONGEST = 8, ROUNDS = 1500, MALLOC_ROUNDS = 200, ALONE_ROUNDS = 4000 };

static struct aq_fh *fh;
static struct aq_fh_memmon *memmon;
static atomic_int wrong, broken, pinned;

static void check(bool ok, atomic_int *counter)
{
    if (!ok)
        atomic_fetch_add(counter, 1);
}

/* --- the device --- */

static int reg(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out)
{
    const int number = fh_pages_pin(addr, len);

    (void)arg;
    (void)write;
    if (number < 0)
        return number == -ENOSPC || number == -ENOMEM ? AQ_ERR_NOMEM : AQ_ERR_ARG;
    atomic_fetch_add(&pinned, 1);
    *reg_out = (struct aq_fh_reg){ .handle = (void *)(intptr_t)number };
    return AQ_OK;
}

static void dereg(void *arg, const struct aq_fh_reg *old)
{
    (void)arg;
    atomic_fetch_sub(&pinned, 1);
    fh_pages_unpin((int)(intptr_t)old->handle);
}

static int no_request(void *arg, uint32_t peer, const void *msg, size_t nbytes)
{
    (void)arg;
    (void)peer;
    (void)msg;
    (void)nbytes;
    return AQ_RETRY;
}

static const struct aq_fh_ops ops = { .reg = reg, .dereg = dereg, .send_request = no_request };

static void note_unmapped(void *arg, uintptr_t addr, size_t nbytes)
{
    (void)arg;
    aq_fh_invalidate(fh, addr, nbytes);
}

static int setup(void **state)
{
    struct aq_fh_config config = { .rank = 0,
                                   .size = 1,
                                   .local_bytes = 4 << 20,
                                   .local_regions = 256,
                                   .max_region = 64 << 10,
                                   .max_chunk = 1 << 20,
                                   .message = AQ_FH_MESSAGE,
                                   .carry = 64 };
    const char *why;

    (void)state;
    atomic_store(&wrong, 0);
    atomic_store(&broken, 0);
    if (aq_fh_memmon_open(AQ_FH_MEMMON_AUTO, note_unmapped, NULL, &memmon, &why) != AQ_OK)
        return -1;
    config.memmon = memmon;
    return aq_fh_open(&config, &ops, NULL, &fh) == AQ_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    aq_fh_close(fh);
    aq_fh_memmon_close(memmon);
    return atomic_load(&pinned);
}

/* --- transfers --- */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void fill(char *addr, size_t len, uint64_t seed)
{
    for (size_t i = 0; i + 8 <= len; i += 64)
        *(uint64_t *)(void *)(addr + i) = seed + i;
}

static bool same(const char *addr, size_t len, uint64_t seed)
{
    for (size_t i = 0; i + 8 <= len; i += 64)
        if (*(const uint64_t *)(const void *)(addr + i) != seed + i)
            return false;
    return true;
}

/* One transfer each way, part by part, as a conduit does; buffer has room for len. */
static void transfer(char *addr, size_t len, char *buffer, bool get)
{
    for (size_t done = 0; done < len;) {
        struct aq_fh_hold hold;
        int rc = aq_fh_local(fh, (uintptr_t)addr + done, len - done, true, &hold);

        if (rc == AQ_RETRY) {
            sched_yield();
            continue;
        }
        check(rc == AQ_OK, &broken);
        if (rc != AQ_OK)
            return;
        rc = get ? fh_pages_write((int)(intptr_t)hold.reg->handle, hold.addr, buffer + done,
                                  hold.len)
                 : fh_pages_read((int)(intptr_t)hold.reg->handle, hold.addr, buffer + done,
                                 hold.len);
        check(rc == 0, &broken);
        done += hold.len;
        aq_fh_release(fh, &hold);
    }
}

/* Both ways, and what both sides see is the same. */
static void both_ways(char *addr, size_t len, uint64_t seed)
{
    static __thread char buffer[LONGEST * 4096] __attribute__((aligned(64)));

    fill(addr, len, seed);
    transfer(addr, len, buffer, false);
    check(same(buffer, len, seed), &wrong);
    fill(buffer, len, seed + 1);
    transfer(addr, len, buffer, true);
    check(same(addr, len, seed + 1), &wrong);
}

static char *map(size_t len)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* What programs do to their memory between transfers. Returns where it is now. */
static char *change(char *addr, size_t len, uint64_t how)
{
    void *to;

    switch (how % 4) {
    case 0:
        madvise(addr, len, MADV_DONTNEED);
        return addr;
    case 1:
        to = map(len);
        return (char *)(uintptr_t)syscall(SYS_mremap, addr, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
                                          to);
    case 2:
        return mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0);
    default:
        munmap(addr, len);
        return map(len);
    }
}

static void *churn(void *arg)
{
    uint64_t seed = 88172645463325252u + (uint64_t)(uintptr_t)arg;

    for (int round = 0; round < ROUNDS; round++) {
        const size_t len = (1 + next_random(&seed) % LONGEST) * PAGE;
        char *addr = map(len);

        both_ways(addr, len, next_random(&seed));
        addr = change(addr, len, next_random(&seed) >> 20);
        both_ways(addr, len, next_random(&seed));
        munmap(addr, len);
    }
    return NULL;
}

static void *churn_malloc(void *arg)
{
    uint64_t seed = 123456789u + (uint64_t)(uintptr_t)arg;

    for (int round = 0; round < MALLOC_ROUNDS; round++) {
        char *small = malloc(2 * PAGE), *large = malloc(200 * 1024 + next_random(&seed) % 100000);

        both_ways(small, 1 + next_random(&seed) % (2 * PAGE - 64), next_random(&seed));
        both_ways(large, LONGEST * PAGE, next_random(&seed));
        large = realloc(large, 400 * 1024);
        both_ways(large + 300 * 1024, LONGEST * PAGE, next_random(&seed));
        free(large);
        free(small);
        if (round % 16 == 0)
            malloc_trim(0);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *arg), int threads)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, body, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

static void test_churn(void **state)
{
    (void)state;
    run_threads(churn, THREADS);
    assert_int_equal(atomic_load(&broken), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void test_churn_malloc(void **state)
{
    (void)state;
    run_threads(churn_malloc, THREADS);
    assert_int_equal(atomic_load(&broken), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* The same place again and again, one thread. */
static void test_alone(void **state)
{
    char *const addr = map(4 * PAGE);

    (void)state;
    for (int round = 0; round < ALONE_ROUNDS; round++) {
        both_ways(addr, 4 * PAGE, (uint64_t)round * 1000003);
        munmap(addr, 4 * PAGE);
        assert_ptr_equal(mmap(addr, 4 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                         addr);
    }
    both_ways(addr, 4 * PAGE, 1);
    munmap(addr, 4 * PAGE);
    assert_int_equal(atomic_load(&broken), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* Registrations do stay between transfers, if nothing changes. */
static void test_hits(void **state)
{
    char *const addr = map(4 * PAGE);
    struct aq_fh_counts counts;

    (void)state;
    if (aq_fh_memmon_mode(memmon) != AQ_FH_MEMMON_EVENTS)
        skip();
    for (int round = 0; round < 100; round++)
        both_ways(addr, 4 * PAGE, (uint64_t)round);
    aq_fh_counts(fh, &counts);
    assert_true(counts.regs <= 4 && counts.local_hits >= 196);
    munmap(addr, 4 * PAGE);
}

/* --- the checks themselves --- */

static int cover_nothing(struct aq_fh_memmon *self, uintptr_t addr, size_t len)
{
    (void)self;
    (void)addr;
    (void)len;
    return AQ_OK;
}

/* Nothing is armed: the device must be seen to hold old pages. */
static void test_unmonitored_fails(void **state)
{
    (void)state;
    memmon->cover = cover_nothing;
    run_threads(churn, 1);
    assert_true(atomic_load(&wrong) > 0);
}

static int group_setup(void **state)
{
    (void)state;
    if (!fh_pages_open()) {
        printf("1..0 # SKIP no device to test with: io_uring: %s\n", strerror(errno));
        exit(0);
    }
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    fh_pages_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_churn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_churn_malloc, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unmonitored_fails, setup, teardown),
    };

    return cmocka_run_group_tests_name("fh_stale", tests, group_setup, group_teardown);
}
