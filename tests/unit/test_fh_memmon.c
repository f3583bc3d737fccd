/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fh_memmon.c - the memory monitor, call by call: each change is told before the next use;
 * what cannot be monitored is not covered.
 */
#include "tests/unit/fh_memmon_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* --- reported changes --- */

static void test_munmap(void **state)
{
    char *addr;

    (void)state;
    events_or_skip();
    addr = covered();
    munmap(addr + PAGE, 2 * PAGE);
    assert_false(quiet()); /* seen without settling, from the return of munmap() on */
    assert_true(was_reported(addr + PAGE, 2 * PAGE));
    assert_true(quiet());
    assert_int_equal(cover(addr + PAGE, PAGE), AQ_ERR_RESOURCE);
    assert_int_equal(cover(addr, PAGE), AQ_OK);
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGE) && was_reported(addr + 3 * PAGE, 5 * PAGE));
}

static void test_replace(void **state)
{
    char *addr;

    (void)state;
    events_or_skip();
    addr = covered();
    assert_ptr_equal(
        mmap(addr, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), addr);
    assert_true(was_reported(addr, 2 * PAGE));
    assert_int_equal(cover(addr, PAGES * PAGE), AQ_OK); /* the new mapping is monitored as well */
    unmapped_count = 0;
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGES * PAGE));
}

static void test_move(void **state)
{
    char *addr, *to;

    (void)state;
    events_or_skip();
    addr = covered();
    to = map(PAGES);
    assert_int_equal(cover(to, PAGES * PAGE), AQ_OK);
    /* the program's own mremap of all of its mapping works although it is monitored */
    assert_int_equal(
        syscall(SYS_mremap, addr, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to),
        to);
    assert_true(was_reported(addr, PAGES * PAGE) && was_reported(to, PAGES * PAGE));
    assert_int_equal(to[5 * PAGE], 1);
    assert_int_equal(cover(to, PAGES * PAGE), AQ_OK);
    unmapped_count = 0;
    assert_int_equal(syscall(SYS_mremap, to, PAGES * PAGE, PAGE, 0), to); /* shrinks */
    assert_true(was_reported(to + PAGE, (PAGES - 1) * PAGE));
    assert_true(!was_reported(to, PAGE) || has_flooded());
    munmap(to, PAGE);
    assert_true(was_reported(to, PAGE));
}

static void test_move_keep(void **state)
{
    char *addr, *to;
    long rc;

    (void)state;
    events_or_skip();
    addr = covered();
    rc = syscall(SYS_mremap, addr, PAGES * PAGE, PAGES * PAGE,
                 MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, 0);
    to = (char *)(uintptr_t)rc;
    assert_true(rc > 0);
    assert_true(was_reported(addr, PAGES * PAGE));
    memset(addr, 2, PAGES * PAGE); /* fresh pages */
    assert_int_equal(cover(addr, PAGES * PAGE), AQ_OK);
    unmapped_count = 0;
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGES * PAGE));
    munmap(to, PAGES * PAGE);
}

static void test_grow(void **state)
{
    char *addr, *to;

    (void)state;
    events_or_skip();
    addr = covered();
    to = mremap(addr, PAGES * PAGE, 4 * PAGES * PAGE, MREMAP_MAYMOVE);
    assert_ptr_not_equal(to, MAP_FAILED);
    if (to != addr)
        assert_true(was_reported(addr, PAGES * PAGE));
    assert_int_equal(cover(to, 4 * PAGES * PAGE), AQ_OK);
    unmapped_count = 0;
    munmap(to, 4 * PAGES * PAGE);
    assert_true(was_reported(to, 4 * PAGES * PAGE));
}

static void test_heap_shrinks(void **state)
{
    char *top;

    (void)state;
    events_or_skip();
    if (sbrk(64 * (intptr_t)PAGE) == (void *)-1)
        skip();
    top = (char *)aq_round_up((uintptr_t)sbrk(0) - 8 * PAGE, PAGE);
    memset(top, 1, 4 * PAGE);
    assert_int_equal(cover(top, 4 * PAGE), AQ_OK);
    sbrk(-20 * (intptr_t)PAGE);
    assert_true(was_reported(top, 4 * PAGE));
}

static void empties(int advice)
{
    char *addr = covered();

    assert_int_equal(madvise(addr + PAGE, 2 * PAGE, advice), 0);
    assert_true(was_reported(addr + PAGE, 2 * PAGE));
    assert_int_equal(cover(addr + 2 * PAGE, PAGE),
                     AQ_ERR_RESOURCE); /* its pages may still be going */
    assert_int_equal(cover(addr + 3 * PAGE, PAGE), AQ_OK);
    rest(AQ_FH_MEMMON_LINGER_NS / 1000000 + 20);
    assert_int_equal(cover(addr, PAGES * PAGE), AQ_OK);
    unmapped_count = 0;
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGES * PAGE));
}

static void test_empties(void **state)
{
    (void)state;
    events_or_skip();
    empties(MADV_DONTNEED);
    empties(MADV_FREE);
}

/* Pages that were never touched, before and after: nobody has to answer page faults. */
static void test_untouched(void **state)
{
    char *addr;

    (void)state;
    events_or_skip();
    addr = map(1000);
    assert_int_equal(cover(addr + 500 * PAGE, PAGE), AQ_OK);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(addr[i * PAGE], 0);
        addr[i * PAGE] = 1;
    }
    munmap(addr, 1000 * PAGE);
    assert_true(was_reported(addr, 1000 * PAGE)); /* the mapping was monitored as a whole */
}

/* A whole mapping is taken even if it has parts: then the parts are taken one by one. */
static void test_parts(void **state)
{
    char *addr;

    (void)state;
    events_or_skip();
    addr = map(PAGES);
    assert_int_equal(mprotect(addr + 2 * PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(cover(addr + PAGE, 4 * PAGE), AQ_OK);
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGES * PAGE));
}

/* More changes than the ring holds, and nobody takes them: everything counts as changed. */
static void test_flood(void **state)
{
    struct aq_fh_memmon_counts counts;
    char *addr;

    (void)state;
    events_or_skip();
    addr = covered();
    for (int i = 0; i < 5000; i++)
        madvise(addr, PAGE, MADV_DONTNEED);
    assert_true(was_reported(addr, PAGES * PAGE));
    aq_fh_memmon_counts(memmon, &counts);
    assert_true(counts.floods > 0);
    munmap(addr, PAGES * PAGE);
    settle();
    assert_true(quiet());
}

/* --- what is not kept --- */

static int data = 1;
static char bss[3 * 4096];

/* Linux tells of changes to private mappings of files since 6.7. */
static bool kernel_monitors_files(void)
{
    struct utsname kernel;
    unsigned major = 0, minor = 0;

    assert_int_equal(uname(&kernel), 0);
    assert_int_equal(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 7);
}

static void test_deferred(void **state)
{
    static const char constant[] = "read only";
    void *large = malloc(1000000);
    char self[100];

    (void)state;
    events_or_skip();
    assert_int_equal(cover(&data, sizeof(data)), AQ_OK);
    assert_int_equal(cover(bss, sizeof(bss)), AQ_OK);
    assert_int_equal(cover(constant, sizeof(constant)), AQ_OK);
    assert_int_equal(cover(stdout, 1),
                     kernel_monitors_files() ? AQ_OK : AQ_ERR_RESOURCE); /* data of a library */
    assert_int_equal(cover(self, sizeof(self)), AQ_OK);
    assert_int_equal(cover(large, 1000000), AQ_OK);
    free(large);
}

static void test_not_deferred(void **state)
{
    const int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    void *attached = shmat(id, NULL, 0);
    const int file = memfd_create("test", MFD_CLOEXEC);
    void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *private, *mapped;

    (void)state;
    shmctl(id, IPC_RMID, NULL);
    assert_int_equal(ftruncate(file, (off_t)PAGE), 0);
    private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_int_equal(cover(attached, PAGE), AQ_ERR_RESOURCE);
    assert_int_equal(cover(shared, PAGE), AQ_ERR_RESOURCE);
    assert_int_equal(cover(private, PAGE), AQ_ERR_RESOURCE);
    assert_int_equal(cover(mapped, PAGE), AQ_ERR_RESOURCE);
    assert_int_equal(cover(NULL, PAGE), AQ_ERR_RESOURCE);
    aq_fh_memmon_trust(memmon, mapped, PAGE); /* unless it is the library's own */
    assert_int_equal(cover(mapped, PAGE), AQ_OK);
    shmdt(attached);
    munmap(shared, PAGE);
    munmap(private, PAGE);
    munmap(mapped, PAGE);
    close(file);
}

static void test_forget(void **state)
{
    char *addr;

    (void)state;
    events_or_skip();
    addr = covered();
    aq_fh_memmon_forget(memmon, addr + PAGE + 7, 10);
    aq_fh_memmon_forget(memmon, addr, 0);
    assert_true(was_reported(addr + PAGE, PAGE));
    assert_true(!was_reported(addr, PAGE) || has_flooded());
    assert_int_equal(cover(addr + PAGE, PAGE), AQ_ERR_RESOURCE);
    munmap(addr, PAGES * PAGE);
    settle();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_munmap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_move, setup, teardown),
        cmocka_unit_test_setup_teardown(test_move_keep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heap_shrinks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empties, setup, teardown),
        cmocka_unit_test_setup_teardown(test_untouched, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deferred, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_deferred, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
    };

    return cmocka_run_group_tests_name("fh_memmon", tests, NULL, NULL);
}
