/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fh_memmon_end.c - the memory monitor, from beginning to end: forked children and others,
 * exec, closing while threads unmap, settling while threads unmap; nobody is left waiting.
 */
#include "tests/unit/fh_memmon_unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- children --- */

static void test_fork(void **state)
{
    char *addr;
    int status;
    pid_t pid;

    (void)state;
    events_or_skip();
    addr = covered();
    pid = fork();
    if (pid == 0) { /* the child's memory is its own: no thread waits, no change is reported */
        memset(addr, 2, PAGES * PAGE);
        munmap(addr, PAGES * PAGE);
        _exit(memmon->changing(memmon) ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(quiet() && unmapped_count == 0);
    assert_int_equal(addr[0], 1);
    munmap(addr, PAGES * PAGE);
    assert_true(was_reported(addr, PAGES * PAGE));
}

/* A child that holds the descriptor, since fork() has not made it. */
static pid_t raw_child(void)
{
    const pid_t pid = (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);

    if (pid == 0)
        for (;;)
            syscall(SYS_pause);
    return pid;
}

static void test_child_holds(void **state)
{
    const char *why;
    char *addr;
    pid_t pid;

    (void)state;
    events_or_skip();
    addr = covered();
    pid = raw_child();
    assert_true(pid > 0);
    aq_fh_memmon_close(memmon);
    munmap(addr, PAGES * PAGE); /* does not wait for the thread that has gone */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(
        aq_fh_memmon_open(AQ_FH_MEMMON_EVENTS, note_unmapped, &unmapped, &memmon, &why), AQ_OK);
    assert_null(why); /* nothing is to be said of it */
}

/* --- the end, while others unmap --- */

static atomic_bool over;
static atomic_uint turns;

static void *unmap_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        char *addr = map(4);

        addr[0] = 1;
        cover(addr, 4 * PAGE);
        munmap(addr, 4 * PAGE);
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

static void *unmap_late(void *arg)
{
    char **list = arg;

    for (int i = 0; i < 2000; i++)
        munmap(list[i], PAGE);
    return NULL;
}

static void test_close_meanwhile(void **state)
{
    static char *list[2000];
    const char *why;
    pthread_t thread;

    (void)state;
    events_or_skip();
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2000; i++) {
            list[i] = map(2);
            munmap(list[i] + PAGE, PAGE); /* a hole between each two */
            assert_int_equal(cover(list[i], PAGE), AQ_OK);
        }
        assert_int_equal(pthread_create(&thread, NULL, unmap_late, list), 0);
        rest(1);
        aq_fh_memmon_close(memmon);
        pthread_join(thread, NULL); /* or the test is killed */
        assert_int_equal(
            aq_fh_memmon_open(AQ_FH_MEMMON_EVENTS, note_unmapped, &unmapped, &memmon, &why), AQ_OK);
    }
}

/* Settling ends though two threads change mappings all the time. */
static void test_settle_ends(void **state)
{
    pthread_t thread[2];
    uint64_t longest = 0, begin = aq_now_ns();

    (void)state;
    events_or_skip();
    atomic_store(&over, false);
    atomic_store(&turns, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, unmap_on, NULL), 0);
    while (atomic_load(&turns) < 500 && aq_now_ns() - begin < 30000000000u) {
        const uint64_t start = aq_now_ns();

        settle();
        if (aq_now_ns() - start > longest)
            longest = aq_now_ns() - start;
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_true(atomic_load(&turns) >= 500);
    assert_true(longest
                < 5000000000u); /* 20 ms of patience, on a machine that is busy with others */
}

/* exec from a process with a memory monitor, with a thread asleep in munmap() or not. */
static void exec_body(void *arg)
{
    pthread_t thread;

    (void)arg;
    if (setup(NULL) != 0)
        _exit(2);
    atomic_store(&over, false);
    pthread_create(&thread, NULL, unmap_on, NULL);
    rest(20);
    execl("/bin/true", "true", (char *)NULL);
    _exit(3);
}

static void exit_body(void *arg)
{
    pthread_t thread;

    (void)arg;
    if (setup(NULL) != 0)
        _exit(2);
    atomic_store(&over, false);
    pthread_create(&thread, NULL, unmap_on, NULL);
    rest(20);
    _exit(0); /* the memory monitor open, a thread in munmap() */
}

static void test_exec(void **state)
{
    struct aq_unit_result result;

    (void)state;
    aq_unit_run(exec_body, NULL, &result);
    assert_int_equal(aq_unit_exit_code(&result), 0);
    aq_unit_run(exit_body, NULL, &result);
    assert_int_equal(aq_unit_exit_code(&result), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
        cmocka_unit_test_setup_teardown(test_child_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_settle_ends, setup, teardown),
        cmocka_unit_test(test_exec),
    };

    return cmocka_run_group_tests_name("fh_memmon_end", tests, NULL, NULL);
}
