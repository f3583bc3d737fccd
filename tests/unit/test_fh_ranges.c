/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fh_ranges.c - sets of addresses, against a model that has a flag for each address; and what
 * is mapped where, by both ways of asking.
 */
#include "tests/unit/aq_unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "base/aq_rc.h"
#include "other/firehose/aq_fh_ranges.h"
#include "other/firehose/aq_fh_vma.h"

enum { WORLD = 200, STEPS = 20000 };

static bool model[WORLD];

static bool model_holds(unsigned start, unsigned end)
{
    for (unsigned i = start; i < end; i++)
        if (!model[i])
            return false;
    return true;
}

static void check_form(const struct aq_fh_ranges *set)
{
    unsigned in_model = 0, in_set = 0;

    for (unsigned i = 0; i < WORLD; i++)
        in_model += model[i];
    for (size_t i = 0; i < set->count; i++) {
        assert_true(set->range[i].start < set->range[i].end);
        if (i > 0)
            assert_true(set->range[i - 1].end
                        < set->range[i].start); /* sorted, and never two that touch */
        in_set += (unsigned)(set->range[i].end - set->range[i].start);
    }
    assert_int_equal(in_set, in_model);
}

static void test_random(void **state)
{
    struct aq_fh_ranges set = { 0 };

    (void)state;
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        const unsigned start = (unsigned)rand() % (WORLD - 1), len = 1 + (unsigned)rand() % 12;
        const unsigned end = start + len < WORLD ? start + len : WORLD;

        assert_int_equal(aq_fh_ranges_contains(&set, start, end), model_holds(start, end));
        if (rand() % 2 != 0) {
            aq_fh_ranges_add(&set, start, end);
            memset(&model[start], true, end - start);
        } else {
            aq_fh_ranges_remove(&set, start, end);
            memset(&model[start], false, end - start);
        }
        check_form(&set);
    }
    aq_fh_ranges_clear(&set);
    assert_false(aq_fh_ranges_contains(&set, 0, 1));
}

static void test_ends(void **state)
{
    struct aq_fh_ranges set = { 0 };

    (void)state;
    aq_fh_ranges_add(&set, 0, 4096);
    aq_fh_ranges_add(&set, UINTPTR_MAX - 4096, UINTPTR_MAX);
    assert_true(aq_fh_ranges_contains(&set, 0, 1));
    assert_true(aq_fh_ranges_contains(&set, UINTPTR_MAX - 1, UINTPTR_MAX));
    aq_fh_ranges_remove(&set, 0, UINTPTR_MAX);
    assert_int_equal(set.count, 0);
    aq_fh_ranges_clear(&set);
}

/* --- what is mapped where --- */

static int data = 1;
static int bss[5000];

static void same(const void *addr, struct aq_fh_vma *vma_out)
{
    struct aq_fh_vma read = { 0 };

    memset(vma_out, 0, sizeof(*vma_out));
    assert_int_equal(aq_fh_vma_find((uintptr_t)addr, vma_out), AQ_OK);
    assert_int_equal(aq_fh_vma_read((uintptr_t)addr, &read), AQ_OK);
    assert_int_equal(read.start, vma_out->start);
    assert_int_equal(read.end, vma_out->end);
    assert_int_equal(read.shared, vma_out->shared);
    assert_int_equal(read.heap, vma_out->heap);
    assert_int_equal(read.stack, vma_out->stack);
    assert_int_equal(read.backing, vma_out->backing);
    assert_true(read.start <= (uintptr_t)addr && (uintptr_t)addr < read.end);
}

static void test_kinds(void **state)
{
    const int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    void *attached = shmat(id, NULL, 0);
    const int file = memfd_create("a name with blanks", MFD_CLOEXEC);
    void *anonymous = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *shared = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *private;
    struct aq_fh_vma vma;
    int self;

    (void)state;
    shmctl(id, IPC_RMID, NULL);
    assert_int_equal(ftruncate(file, 8192), 0);
    private = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, file, 0);
    same(attached, &vma);
    assert_true(vma.shared);
    same(anonymous, &vma);
    assert_false(vma.shared);
    assert_int_equal(vma.backing, AQ_FH_ANONYMOUS);
    same(shared, &vma);
    assert_true(vma.shared);
    same(private, &vma);
    assert_false(vma.shared);
    assert_int_equal(vma.backing, AQ_FH_FILE);
    same(&self, &vma);
    assert_true(vma.stack);
    same(&data, &vma);
    assert_int_equal(vma.backing, AQ_FH_FILE);
    same(&bss[2500], &vma);
    same((const void *)(uintptr_t)&test_kinds, &vma);
    munmap(anonymous, 8192);
    assert_int_equal(aq_fh_vma_find((uintptr_t)anonymous, &vma), AQ_ERR_ARG);
    assert_int_equal(aq_fh_vma_read((uintptr_t)anonymous, &vma), AQ_ERR_ARG);
    assert_int_equal(aq_fh_vma_find(0, &vma), AQ_ERR_ARG);
    munmap(shared, 8192);
    munmap(private, 8192);
    shmdt(attached);
    close(file);
}

static void test_heap(void **state)
{
    struct aq_fh_vma heap;
    int rc;

    (void)state;
    if (sbrk(4096) == (void *)-1)
        skip();
    rc = aq_fh_vma_heap(&heap);
    assert_int_equal(rc, AQ_OK);
    assert_true(heap.heap && heap.start < (uintptr_t)sbrk(0));
}

/* more mappings than fit in one read of the text */
static void test_many(void **state)
{
    enum { MANY = 500 };
    char *all = mmap(NULL, MANY * 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct aq_fh_vma vma;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(mprotect(all + (size_t)i * 2 * 4096, 4096, PROT_READ), 0);
    for (int i = 0; i < MANY; i++) {
        same(all + (size_t)i * 2 * 4096 + 4095, &vma);
        assert_int_equal(vma.end - vma.start, 4096);
    }
    munmap(all, MANY * 2 * 4096);
}

static int teardown(void **state)
{
    (void)state;
    aq_fh_vma_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_ends), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_heap),   cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests_name("fh_ranges", tests, NULL, teardown);
}
