/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_monitor.c - ranks that leave a job of another launcher: one whose disconnect takes longer
 * than the exit timeout is not killed, one that is stopped in the middle of it is.
 */
#include "tests/unit/aq_unit.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_rc.h"
#include "other/spawn/aq_jobarea.h"
#include "other/spawn/aq_spawn_monitor.h"

#define RANKS        2u
#define TIMEOUT_MS   100u
#define DISCONNECT_S 4 /* longer than the exit timeout, and than one sign of life is good for */

static uint32_t me;
static bool second_stops;

static void part(enum aq_shutdown_mode how)
{
    (void)how;
    if (second_stops && me == 1)
        raise(SIGSTOP);
    for (unsigned rest = DISCONNECT_S; rest > 0;)
        rest = sleep(rest);
}

static void fini(void)
{
}

static void abort_job(int code, const char *text)
{
    (void)text;
    _exit(100 + code);
}

static const struct aq_kvs_ops launcher = { .disconnect = part, .fini = fini, .abort = abort_job };

/* A rank's whole life: it joins, exits with 0 and says disconnect. */
static _Noreturn void live(struct aq_jobarea *jobarea, int event_fd)
{
    alarm(60);
    atomic_store(&jobarea->rank[me].pid, getpid());
    if (aq_jobarea_barrier(jobarea, true) != 0
        || aq_monitor_start(jobarea, me, event_fd, &launcher) != AQ_OK)
        _exit(99);
    aq_jobarea_publish_exit(jobarea, me, AQ_RANK_ENDED, 0);
    aq_monitor_notify();
    _exit(aq_monitor_shutdown(0, AQ_SHUTDOWN_END));
}

static void run(int status_out[RANKS])
{
    struct aq_jobarea *jobarea;
    pid_t child[RANKS];
    int fd, event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    jobarea = aq_jobarea_create(RANKS, RANKS, &fd);
    assert_non_null(jobarea);
    assert_true(event_fd >= 0);
    jobarea->exit_timeout_ms = TIMEOUT_MS;
    for (me = 0; me < RANKS; me++) {
        child[me] = fork();
        assert_true(child[me] >= 0);
        if (child[me] == 0)
            live(jobarea, event_fd);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(waitpid(child[i], &status_out[i], 0), child[i]);
    munmap(jobarea, jobarea->bytes);
    close(fd);
    close(event_fd);
}

static void test_slow_disconnect(void **state)
{
    int status[RANKS];

    (void)state;
    second_stops = false;
    run(status);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_true(WIFEXITED(status[i]));
        assert_int_equal(WEXITSTATUS(status[i]), 0);
    }
}

static void test_stopped_in_disconnect(void **state)
{
    int status[RANKS];

    (void)state;
    second_stops = true;
    run(status);
    assert_true(WIFEXITED(status[0]));
    assert_true(WIFSIGNALED(status[1]));
    assert_int_equal(WTERMSIG(status[1]), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_disconnect),
        cmocka_unit_test(test_stopped_in_disconnect),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
