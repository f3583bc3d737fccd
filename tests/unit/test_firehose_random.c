/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_firehose_random.c - random puts and gets between simulated ranks, messages in any order,
 * tiny budgets, memory that is replaced: what firehose_sim.h checks holds at every step, every
 * operation ends, and the books agree afterwards.
 *
 *   test_firehose_random [SEED [ROUNDS]]
 */
#include "tests/unit/firehose_ops.h"

static uint64_t first_seed = 20260101;
static unsigned rounds = 2;

struct setting {
    const char *name;
    uint32_t ranks;
    uint64_t remote_pages, local_pages; /* remote: of all peers */
    uint32_t remote_regions, local_regions;
    size_t max_region, max_chunk, message, carry;
    unsigned ops, replace, refuse;
};

static const struct setting settings[] = {
    { "roomy", 3, 4096, 2048, 4096, 2048, 32, 1024, 4096, 3072, 8, 0, 0 },
    { "a page each", 4, 3, 4, 3, 4, 32, 1024, 512, 128, 6, 0, 5 },
    { "tiny", 4, 24, 12, 12, 6, 32, 1024, 512, 200, 12, 0, 10 },
    { "tiny regions", 3, 400, 200, 6, 5, 8, 64, 512, 0, 8, 0, 0 },
    { "middling", 5, 256, 64, 64, 32, 32, 1024, 1024, 512, 24, 0, 10 },
    { "short messages", 3, 64, 64, 64, 64, 4, 8, 256, 3072, 8, 5, 30 },
    { "replaced", 4, 256, 64, 64, 32, 32, 1024, 4096, 3072, 16, 30, 10 },
    { "replaced, tiny", 3, 16, 8, 8, 6, 16, 1024, 512, 200, 12, 60, 10 },
    { "replaced, roomy", 3, 4096, 2048, 4096, 2048, 32, 1024, 4096, 3072, 8, 20, 0 },
    { "two", 2, 512, 128, 512, 128, 32, 1024, 4096, 3072, 4, 10, 0 },
};

static struct sim *setting_sim(const struct setting *setting)
{
    const struct aq_fh_config config = {
        .peers = setting->ranks - 1,
        .remote_bytes = setting->remote_pages * AQ_FH_PAGE,
        .local_bytes = setting->local_pages * AQ_FH_PAGE,
        .remote_regions = setting->remote_regions,
        .local_regions = setting->local_regions,
        .max_region = setting->max_region * AQ_FH_PAGE,
        .max_chunk = setting->max_chunk * AQ_FH_PAGE,
        .message = setting->message,
        .carry = setting->carry,
    };
    struct sim *sim = sim_new(setting->ranks, &config, setting->replace != 0);

    sim->refuse = setting->refuse;
    for (uint32_t i = 0; i < sim->ranks; i++)
        for (uint32_t page = 0; page < SIM_PAGES; page++)
            if (page % 256 >= 250)
                sim->rank[i].page[page] = SIM_HOLE;
            else if (page % 256 >= 230)
                sim->rank[i].page[page] = SIM_READ_ONLY;
    return sim;
}

static void test_setting(void **state)
{
    const struct setting *setting = *state;

    for (unsigned round = 0; round < rounds; round++) {
        struct sim *sim;
        struct sim_traffic traffic = {
            .ops = setting->ops, .replace = setting->replace, .steps = 4000000, .finish = 400
        };

        sim_seed = first_seed + round * 7919;
        sim = setting_sim(setting);
        traffic.sim = sim;
        sim_traffic_run(&traffic);
        sim_free(sim);
    }
}

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

int main(int argc, char **argv)
{
    struct CMUnitTest tests[SETTINGS];

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        rounds = (unsigned)atoi(argv[2]);
    for (size_t i = 0; i < SETTINGS; i++)
        tests[i] = (struct CMUnitTest){ .name = settings[i].name,
                                        .test_func = test_setting,
                                        .initial_state = (void *)(uintptr_t)&settings[i] };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
