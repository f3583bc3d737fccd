/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bufpool.c - free lists and pools of buffers: the last one given is the next one taken, none
 * is in two hands, none is lost in any order of giving back; a list that is empty says so; a pool
 * keeps no more than it may; the smallest size that holds a buffer is chosen.
 */
#include "tests/unit/aq_unit.h"

#include <pthread.h>
#include <string.h>

#include "core/aq_bufpool.h"

#define THINGS 6u

struct thing {
    uint32_t before; /* the item is not the first member */
    struct aq_freelist_item item;
    atomic_uint owner;
};

static struct thing things[THINGS];
static struct aq_freelist list;

static struct thing *take(void)
{
    return aq_freelist_thing(aq_freelist_take(&list), offsetof(struct thing, item));
}

static int start(void **state)
{
    (void)state;
    memset(things, 0, sizeof(things));
    memset(&list, 0, sizeof(list));
    return 0;
}

static void test_last_in_first_out(void **state)
{
    (void)state;
    assert_null(take());
    for (unsigned i = 0; i < THINGS; i++)
        aq_freelist_give(&list, &things[i].item);
    for (unsigned i = THINGS; i-- > 0;)
        assert_ptr_equal(take(), &things[i]);
    assert_null(take());
    assert_null(take());
    aq_freelist_give(&list, &things[3].item);
    assert_ptr_equal(take(), &things[3]);
    assert_null(take());
}

/* All are out; they come back in every order. */
static void give_in_order(const unsigned *order)
{
    bool seen[THINGS] = { false };

    for (unsigned i = 0; i < THINGS; i++)
        aq_freelist_give(&list, &things[order[i]].item);
    for (unsigned i = 0; i < THINGS; i++) {
        const struct thing *thing = take();

        assert_non_null(thing);
        assert_false(seen[thing - things]);
        seen[thing - things] = true;
    }
    assert_null(take());
}

static void permute(unsigned *order, unsigned count)
{
    if (count == 0) {
        give_in_order(order);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned last = order[count - 1], other = order[i];

        order[count - 1] = other;
        order[i] = last;
        permute(order, count - 1);
        order[i] = other;
        order[count - 1] = last;
    }
}

static void test_every_order(void **state)
{
    unsigned order[THINGS];

    (void)state;
    for (unsigned i = 0; i < THINGS; i++)
        order[i] = i;
    permute(order, THINGS);
}

static pthread_barrier_t begin;
static atomic_uint wrong_owners;

/* An assert outside the test's own thread ends the program without a message: this one counts. */
static void *take_and_give(void *arg)
{
    const unsigned self = *(const unsigned *)arg;

    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < 200000; i++) {
        struct thing *thing = take();

        if (thing == NULL)
            continue;
        wrong_owners += atomic_exchange(&thing->owner, self) != 0;
        wrong_owners += atomic_exchange(&thing->owner, 0) != self;
        aq_freelist_give(&list, &thing->item);
    }
    return NULL;
}

static void test_threads(void **state)
{
    enum { THREADS = AQ_THREADED ? 4 : 1 };
    pthread_t threads[THREADS];
    unsigned self[THREADS], count = 0;

    (void)state;
    for (unsigned i = 0; i < THREADS - 1; i++) /* fewer things than threads */
        aq_freelist_give(&list, &things[i].item);
    assert_int_equal(pthread_barrier_init(&begin, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        self[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &self[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&begin);
    assert_int_equal(wrong_owners, 0);
    while (take() != NULL)
        count++;
    assert_int_equal(count, THREADS - 1);
}

/* --- pools --- */

struct buffer {
    struct aq_freelist_item item;
    uint8_t bytes[240];
};

static struct buffer *pool_take(struct aq_bufpool *pool)
{
    return aq_freelist_thing(aq_bufpool_take(pool), offsetof(struct buffer, item));
}

static void test_fit(void **state)
{
    static const uint32_t sizes[] = { 1, 64, 4096 };

    (void)state;
    assert_int_equal(aq_bufpool_fit(sizes, 3, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(aq_bufpool_fit(sizes, 3, sizes[i] - 1), i);
        assert_int_equal(aq_bufpool_fit(sizes, 3, sizes[i]), i);
        assert_int_equal(aq_bufpool_fit(sizes, 3, sizes[i] + 1), i + 1);
    }
    assert_int_equal(aq_bufpool_fit(sizes, 3, SIZE_MAX), 3);
    assert_int_equal(aq_bufpool_fit(sizes, 0, 1), 0);
}

/* What exceeds the bound goes back to the heap (AddressSanitizer sees that it does), the rest is
 * taken again, the last one first. */
static void test_keep(void **state)
{
    struct buffer *buffers[9];

    (void)state;
    for (uint32_t keep = 0; keep <= 9; keep++) {
        struct aq_bufpool pool = { .keep = keep };

        assert_null(pool_take(&pool));
        for (unsigned i = 0; i < 9; i++) {
            buffers[i] = aq_bufpool_new("test", 64, sizeof(*buffers[i]));
            assert_int_equal((uintptr_t)buffers[i] % 64, 0);
            memset(buffers[i], 0xff, sizeof(*buffers[i]));
        }
        for (unsigned i = 0; i < 9; i++) {
            aq_bufpool_give(&pool, &buffers[i]->item);
            assert_int_equal(pool.count, i + 1 < keep ? i + 1 : keep);
        }
        for (uint32_t i = keep; i-- > keep / 2;) {
            struct buffer *buffer = pool_take(&pool);

            assert_ptr_equal(buffer, buffers[i]);
            assert_int_equal(pool.count, i);
            free(buffer);
        }
        aq_bufpool_fini(&pool, 1);
        assert_int_equal(pool.count, 0);
        assert_null(pool_take(&pool));
    }
}

/* Sizes that are no multiple of the alignment. */
static void test_new(void **state)
{
    static const size_t sizes[] = { 1, 15, 16, 17, 63, 64, 65, 65537 };

    (void)state;
    for (size_t align = 16; align <= 64; align *= 2)
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            void *buf = aq_bufpool_new("test", align, sizes[i]);

            assert_int_equal((uintptr_t)buf % align, 0);
            memset(buf, 0x5a, sizes[i]);
            free(buf);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_last_in_first_out, start),
        cmocka_unit_test_setup(test_every_order, start),
        cmocka_unit_test_setup(test_threads, start),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
