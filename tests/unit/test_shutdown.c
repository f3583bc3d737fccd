/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shutdown.c - which ranks are killed when the exit timeout has passed, which are spared, and
 * for how long.
 */
#include "tests/unit/aq_unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "other/spawn/aq_jobarea.h"
#include "other/spawn/aq_shutdown.h"

#define TIMEOUT_MS 100u
#define NS_PER_MS  UINT64_C(1000000)

struct job {
    struct aq_jobarea *jobarea;
    int fd;
    pid_t child[1];
    struct aq_shutdown shutdown_ctx;
    uint64_t killed_ms; /* since the beginning; UINT64_MAX: not yet */
};

/* A job of one rank, which does nothing but sit in a state. */
static void job_begin(struct job *job, enum aq_rank_state state)
{
    job->jobarea = aq_jobarea_create(1, 1, &job->fd);
    assert_non_null(job->jobarea);
    job->jobarea->exit_timeout_ms = TIMEOUT_MS;
    job->killed_ms = UINT64_MAX;
    job->child[0] = fork();
    assert_true(job->child[0] >= 0);
    if (job->child[0] == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    atomic_store(&job->jobarea->rank[0].pid, job->child[0]);
    aq_jobarea_publish_exit(job->jobarea, 0, state, 0);
    aq_shutdown_init(&job->shutdown_ctx, job->jobarea, job->child);
    aq_shutdown_begin(&job->shutdown_ctx, 0);
}

static uint64_t job_ms(const struct job *job)
{
    return (aq_jobarea_now_ns() - job->shutdown_ctx.start_ns) / NS_PER_MS;
}

/* Steps until so many milliseconds after the beginning. True: the rank was killed before that, and
 * not by a step that came late on a busy machine. */
static bool job_is_killed_within(struct job *job, uint64_t ms)
{
    const struct timespec rest = { .tv_nsec = 5000000 };
    int status;

    while (job->killed_ms == UINT64_MAX && job_ms(job) < ms) {
        (void)aq_shutdown_step(&job->shutdown_ctx);
        if (waitpid(job->child[0], &status, WNOHANG) == job->child[0]) {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGKILL);
            job->child[0] = 0;
            job->killed_ms = job_ms(job);
        }
        nanosleep(&rest, NULL);
    }
    return job->killed_ms < ms;
}

static void job_end(struct job *job)
{
    if (job->child[0] > 0) {
        kill(job->child[0], SIGKILL);
        waitpid(job->child[0], NULL, 0);
    }
    munmap(job->jobarea, job->jobarea->bytes);
    close(job->fd);
}

static void test_ended_but_alive(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_ENDED);
    assert_false(job_is_killed_within(&job, TIMEOUT_MS / 2));
    assert_true(job_is_killed_within(&job, 20 * TIMEOUT_MS));
    job_end(&job);
}

static void test_disconnecting(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_ENDED);
    aq_shutdown_defer_kill(&job.jobarea->rank[0], 8 * TIMEOUT_MS);
    assert_false(job_is_killed_within(&job, 6 * TIMEOUT_MS));
    assert_true(job_is_killed_within(&job, 40 * TIMEOUT_MS)); /* but not for ever */
    job_end(&job);
}

static void test_not_yet_ended(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_EXITING);
    aq_shutdown_defer_kill(&job.jobarea->rank[0], 60 * 1000); /* is for those who are done */
    assert_true(job_is_killed_within(&job, 20 * TIMEOUT_MS));
    job_end(&job);
}

static void test_last_words(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_FLUSHING);
    assert_false(job_is_killed_within(&job, 5 * TIMEOUT_MS));
    atomic_store(&job.jobarea->rank[0].state, AQ_RANK_ENDED);
    assert_false(job_is_killed_within(&job, 8 * TIMEOUT_MS)); /* has a second to go */
    assert_true(job_is_killed_within(&job, 40 * TIMEOUT_MS));
    job_end(&job);
}

static void test_stopped_from_outside(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_ENDED);
    aq_shutdown_defer_kill(&job.jobarea->rank[0], 60 * 1000);
    job.shutdown_ctx.stopped = true;
    assert_true(job_is_killed_within(&job, 20 * TIMEOUT_MS));
    job_end(&job);
}

/* The limit of an orderly end is a minute: it is kept until another rank fails. */
static void test_failure_in_an_orderly_end(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, AQ_RANK_EXITING);
    job.jobarea->orderly_timeout_ms = 60000;
    job.shutdown_ctx.start_ns = 0;
    aq_shutdown_begin(&job.shutdown_ctx, 60000);
    assert_false(job_is_killed_within(&job, 5 * TIMEOUT_MS));
    aq_shutdown_fail(&job.shutdown_ctx, 7);
    assert_true(job_is_killed_within(&job, 40 * TIMEOUT_MS));
    job_end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ended_but_alive),
        cmocka_unit_test(test_disconnecting),
        cmocka_unit_test(test_not_yet_ended),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_stopped_from_outside),
        cmocka_unit_test(test_failure_in_an_orderly_end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
