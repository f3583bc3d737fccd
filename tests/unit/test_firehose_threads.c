/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_firehose_threads.c - several threads of several ranks at once: transfers, messages,
 * progress, memory that is replaced. What firehose_sim.h checks holds, every operation ends, and
 * the books agree afterwards. For race detectors too.
 *
 *   test_firehose_threads [SEED [OPERATIONS]]
 */
#include "tests/unit/firehose_ops.h"

#define THREADS    4u
#define THREAD_OPS 4u

static uint64_t first_seed = 4711;
static uint64_t operations = 600;

struct worker {
    pthread_t thread;
    struct sim_traffic traffic;
    uint64_t seed;
};

static void *work(void *arg)
{
    struct worker *worker = arg;

    sim_seed = worker->seed;
    sim_traffic_run(&worker->traffic);
    return NULL;
}

static void run(const struct aq_fh_config *config, unsigned replace, unsigned refuse)
{
    struct worker worker[THREADS];
    struct sim *sim = sim_new(3, config, replace != 0);

    sim->refuse = refuse;
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].seed = first_seed + i * 104729;
        worker[i].traffic = (struct sim_traffic){ .sim = sim,
                                                  .ops = THREAD_OPS,
                                                  .replace = replace,
                                                  .steps = UINT64_MAX,
                                                  .finish = operations };
        assert_int_equal(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(worker[i].thread, NULL);
    sim_free(sim);
}

static void test_roomy(void **state)
{
    const struct aq_fh_config config = { .peers = 2,
                                         .remote_bytes = 2048 * AQ_FH_PAGE,
                                         .local_bytes = 1024 * AQ_FH_PAGE,
                                         .remote_regions = 1000,
                                         .local_regions = 500,
                                         .max_region = 32 * AQ_FH_PAGE,
                                         .max_chunk = 256 * AQ_FH_PAGE,
                                         .message = 4096,
                                         .carry = 3072 };

    (void)state;
    run(&config, 0, 0);
    run(&config, 20, 5);
}

static void test_tiny(void **state)
{
    const struct aq_fh_config config = { .peers = 2,
                                         .remote_bytes = 24 * AQ_FH_PAGE,
                                         .local_bytes = 24 * AQ_FH_PAGE,
                                         .remote_regions = 16,
                                         .local_regions = 20,
                                         .max_region = 32 * AQ_FH_PAGE,
                                         .max_chunk = 256 * AQ_FH_PAGE,
                                         .message = 512,
                                         .carry = 200 };

    (void)state;
    run(&config, 0, 10);
    run(&config, 40, 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roomy),
        cmocka_unit_test(test_tiny),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        operations = strtoull(argv[2], NULL, 0);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
