/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_jobarea_states.c - the job area: made in a memfd, mapped again, its barrier, exit state and
 * code, the exit timeout from the environment, the report of who waits.
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/spawn/aq_jobarea.h"

static void test_create_and_map(void **state)
{
    struct aq_jobarea *jobarea, *again;
    int fd = -1;

    (void)state;
    jobarea = aq_jobarea_create(5, 9, &fd);
    assert_non_null(jobarea);
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(jobarea->size, 5);
    assert_int_equal(jobarea->job_size, 9);
    again = aq_jobarea_map(fd);
    assert_non_null(again);
    assert_ptr_not_equal(again, jobarea);
    strcpy(aq_jobarea_local_exchange(again), "seen by both");
    assert_string_equal(aq_jobarea_local_exchange(jobarea), "seen by both");
    assert_true(again->bytes > again->local_exchange_offset);
    munmap(again, again->bytes);
    munmap(jobarea, jobarea->bytes);
    close(fd);
}

static void test_map_refuses_others(void **state)
{
    int fd = memfd_create("not-a-jobarea", 0);

    (void)state;
    assert_null(aq_jobarea_map(fd));
    assert_int_equal(ftruncate(fd, 1 << 16), 0);
    assert_null(aq_jobarea_map(fd));
    assert_int_equal(errno, EINVAL);
    close(fd);
    assert_null(aq_jobarea_map(fd));
}

/* many rounds in several processes: after each, everybody's counter is at least as far */
static void test_barrier(void **state)
{
    enum { SIZE = 5, ROUNDS = 300 };
    struct aq_jobarea *jobarea;
    int fd, status;

    (void)state;
    jobarea = aq_jobarea_create(SIZE, SIZE, &fd);
    assert_non_null(jobarea);
    for (uint32_t me = 0; me < SIZE; me++) {
        if (fork() != 0)
            continue;
        alarm(60);
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            atomic_store_explicit(&jobarea->rank[me].counter[5], round, memory_order_relaxed);
            if (aq_jobarea_barrier(jobarea, me % 2 == 0) != 0)
                _exit(2);
            for (uint32_t other = 0; other < SIZE; other++)
                if (atomic_load_explicit(&jobarea->rank[other].counter[5], memory_order_relaxed)
                    < round)
                    _exit(3);
        }
        _exit(0);
    }
    for (uint32_t me = 0; me < SIZE; me++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    munmap(jobarea, jobarea->bytes);
    close(fd);
}

static void test_barrier_gives_up(void **state)
{
    struct aq_jobarea *jobarea;
    int fd;

    (void)state;
    jobarea = aq_jobarea_create(2, 2, &fd);
    assert_non_null(jobarea);
    aq_jobarea_raise_exit_state(jobarea, AQ_EXIT_ASKED);
    assert_int_equal(aq_jobarea_barrier(jobarea, false), -ESHUTDOWN);
    munmap(jobarea, jobarea->bytes);
    close(fd);
}

static void test_exit_state_and_code(void **state)
{
    struct aq_jobarea *jobarea;
    int fd;

    (void)state;
    jobarea = aq_jobarea_create(3, 3, &fd);
    assert_non_null(jobarea);
    assert_false(aq_jobarea_in_shutdown(jobarea));
    aq_jobarea_publish_exit(jobarea, 1, AQ_RANK_EXITING, 4);
    assert_true(aq_jobarea_in_shutdown(jobarea));
    aq_jobarea_publish_exit(jobarea, 2, AQ_RANK_EXITING, 3);
    assert_int_equal(atomic_load(&jobarea->exit_code), 4); /* the largest */
    assert_int_equal(atomic_load(&jobarea->exit_seen), 2);
    assert_int_equal(aq_jobarea_raise_exit_state(jobarea, AQ_EXIT_KILLING), AQ_EXIT_SHUTDOWN);
    assert_int_equal(aq_jobarea_raise_exit_state(jobarea, AQ_EXIT_ASKED), AQ_EXIT_KILLING);
    assert_int_equal(atomic_load(&jobarea->exit_state), AQ_EXIT_KILLING); /* never back */
    aq_jobarea_publish_exit(jobarea, 0, AQ_RANK_CRASHED, 139);
    assert_int_equal(atomic_load(&jobarea->exit_code), 4); /* settled once the others were asked */
    assert_int_equal(atomic_load(&jobarea->rank[0].code), 139);
    munmap(jobarea, jobarea->bytes);
    close(fd);
}

static void test_timeout(void **state)
{
    (void)state;
    unsetenv("GASNET_EXITTIMEOUT");
    unsetenv("GASNET_EXITTIMEOUT_MAX");
    unsetenv("GASNET_EXITTIMEOUT_MIN");
    unsetenv("GASNET_EXITTIMEOUT_FACTOR");
    assert_int_equal(aq_jobarea_timeout_env(1), 1100);
    assert_int_equal(aq_jobarea_timeout_env(10), 2000);
    assert_int_equal(aq_jobarea_timeout_env(1000), 5000);
    setenv("GASNET_EXITTIMEOUT_MAX", "8s", 1);
    assert_int_equal(aq_jobarea_timeout_env(1000), 8000);
    setenv("GASNET_EXITTIMEOUT", "250ms", 1);
    assert_int_equal(aq_jobarea_timeout_env(1000), 250);
    setenv("GASNET_EXITTIMEOUT", "2m", 1);
    assert_int_equal(aq_jobarea_timeout_env(1), 120000);
    setenv("GASNET_EXITTIMEOUT", "rubbish", 1);
    assert_true(aq_jobarea_timeout_env(1) >= 100);
    unsetenv("GASNET_EXITTIMEOUT");
    unsetenv("GASNET_EXITTIMEOUT_MAX");
}

/* The longer time of an orderly end is over with the first code that is not 0. */
static void test_orderly_timeout(void **state)
{
    struct aq_jobarea *jobarea;
    int fd;

    (void)state;
    unsetenv("AQ_EXITTIMEOUT_ORDERLY");
    assert_int_equal(aq_jobarea_orderly_env(), 0);
    setenv("GASNET_EXITTIMEOUT", "3", 1);
    setenv("AQ_EXITTIMEOUT_ORDERLY", "86400", 1);
    jobarea = aq_jobarea_create(2, 2, &fd);
    assert_non_null(jobarea);
    assert_int_equal(aq_jobarea_exit_ms(jobarea), 86400000);
    aq_jobarea_publish_exit(jobarea, 0, AQ_RANK_EXITING, 0);
    assert_int_equal(aq_jobarea_exit_ms(jobarea), 86400000);
    aq_jobarea_publish_exit(jobarea, 1, AQ_RANK_EXITING, 1);
    assert_int_equal(aq_jobarea_exit_ms(jobarea), 3000);
    atomic_store(&jobarea->exit_code, 0);
    jobarea->orderly_timeout_ms = 200; /* a shorter one has no effect */
    assert_int_equal(aq_jobarea_exit_ms(jobarea), 3000);
    munmap(jobarea, jobarea->bytes);
    close(fd);
    unsetenv("AQ_EXITTIMEOUT_ORDERLY");
    unsetenv("GASNET_EXITTIMEOUT");
}

static void test_report(void **state)
{
    struct aq_jobarea *jobarea;
    char text[2048] = "";
    int fd, ends[2];

    (void)state;
    jobarea = aq_jobarea_create(3, 3, &fd);
    assert_non_null(jobarea);
    for (uint32_t i = 0; i < 3; i++)
        jobarea->rank[i].jobrank = i;
    aq_jobarea_note_wait(jobarea, 0, AQ_WAIT_BARRIER, 2);
    aq_jobarea_note_wait(jobarea, 1, AQ_WAIT_EVENT, AQ_WAIT_ANYONE);
    aq_jobarea_note_wait(jobarea, 2, AQ_WAIT_QUEUE, 0);
    aq_jobarea_note_done(jobarea, 2);
    assert_int_equal(pipe(ends), 0);
    aq_jobarea_report(jobarea, ends[1], 0);
    aq_jobarea_report(jobarea, ends[1], 60000); /* nobody waits that long */
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    close(ends[0]);
    aq_unit_contains(text, "(proc 0)");
    aq_unit_contains(text, "a barrier for rank 2");
    aq_unit_contains(text, "(proc 1)");
    aq_unit_lacks(text, "(proc 2)");
    assert_null(strstr(strstr(text, "(proc 0)") + 1, "(proc 0)"));
    munmap(jobarea, jobarea->bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_and_map),
        cmocka_unit_test(test_map_refuses_others),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_barrier_gives_up),
        cmocka_unit_test(test_exit_state_and_code),
        cmocka_unit_test(test_orderly_timeout),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_report),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
