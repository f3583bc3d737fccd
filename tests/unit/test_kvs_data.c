/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kvs_data.c - what the ranks of several hosts gather through a launcher's store: each rank
 * gets what each rank gave, and a value is asked of the rank that has put it. The exchange is
 * compiled into the test, with a store and a job area in one process.
 *
 * All ranks run in one thread: the first to come to the fence runs the next one up to its fence,
 * and so on. Ranks run in descending order, so that the first rank of a host is the first of that
 * host to leave the fence: the others then find what it writes to the job area.
 */
#include "tests/unit/aq_unit.h"

#include <stdio.h>
#include <string.h>

#define aq_spawn_host_allgather sim_host_allgather
#define aq_spawn_host_bcast     sim_host_bcast
#include "other/spawn/aq_spawn_kvs_data.c"
#undef aq_spawn_host_allgather
#undef aq_spawn_host_bcast

#define RANKS  7u
#define HOSTS  3u
#define LENGTH (AQ_KVS_CHUNK + 9u) /* bytes of a rank: no host's fit into one value */
#define VALUES 64u

struct value {
    uint32_t rank;
    bool readable; /* a fence came since */
    char key[32], text[AQ_KVS_VALUE];
};

/* the ranks of a host are neither alone nor in a row; ranks 0, 1 and 4 are first on theirs */
static const uint32_t host_of[RANKS] = { 0, 1, 0, 1, 2, 0, 2 };
static struct value store[VALUES];
static unsigned values;
static uint32_t me; /* the rank that runs */
static uint8_t given[RANKS][LENGTH], got[RANKS][RANKS * LENGTH];
static const uint8_t *jobarea[HOSTS]; /* what the first rank of a host has written for the others */

static int put(const char *key, const char *text, enum aq_kvs_scope scope)
{
    struct value *value = &store[values++];

    assert_true(values <= VALUES);
    assert_int_equal(scope, AQ_KVS_JOB);
    value->rank = me;
    snprintf(value->key, sizeof(value->key), "%s", key);
    snprintf(value->text, sizeof(value->text), "%s", text);
    return AQ_OK;
}

static int get(uint32_t rank, const char *key, char text_out[AQ_KVS_VALUE], int seconds)
{
    (void)seconds;
    for (unsigned i = 0; i < values; i++)
        if (store[i].rank == rank && store[i].readable && strcmp(store[i].key, key) == 0) {
            memcpy(text_out, store[i].text, AQ_KVS_VALUE);
            return AQ_OK;
        }
    fail_msg("rank %u asks rank %u for %s, which it has not put", me, rank, key);
    return AQ_ERR_SYS;
}

static void live(uint32_t rank);

static int fence(bool collect)
{
    const struct aq_kvs kvs = aq_kvs_me;
    const uint32_t rank = me;

    assert_true(collect);
    if (rank > 0)
        live(rank - 1);
    else
        for (unsigned i = 0; i < values; i++)
            store[i].readable = true;
    me = rank;
    aq_kvs_me = kvs;
    return AQ_OK;
}

static const struct aq_kvs_ops launcher = { .put = put, .get = get, .fence = fence };

int sim_host_allgather(const void *own_data, size_t len, void *all)
{
    size_t at = 0;

    assert_ptr_equal(own_data, given[me]);
    assert_int_equal(len, LENGTH);
    for (uint32_t i = 0; i < RANKS; i++)
        if (host_of[i] == host_of[me])
            memcpy((uint8_t *)all + len * at++, given[i], len);
    return AQ_OK;
}

int sim_host_bcast(void *buf, size_t len, uint32_t host_root)
{
    const uint8_t **written = &jobarea[host_of[me]];

    assert_int_equal(host_root, 0);
    assert_int_equal(len, RANKS * LENGTH);
    if (*written == NULL)
        *written = buf;
    else
        memcpy(buf, *written, len);
    return AQ_OK;
}

static void fill_info(struct aq_spawn_state *st)
{
    st->info = (struct aq_spawn_info){ .rank = me,
                                       .size = RANKS,
                                       .host_index = host_of[me],
                                       .host_count = HOSTS,
                                       .host_of = host_of };
    for (uint32_t i = 0; i < RANKS; i++) {
        st->info.host_size += host_of[i] == host_of[me];
        st->info.host_rank += host_of[i] == host_of[me] && i < me;
    }
}

/* A rank's part of the exchange. */
static void live(uint32_t rank)
{
    struct aq_spawn_state st = { .provider = NULL };

    me = rank;
    aq_kvs_me = (struct aq_kvs){ .ops = &launcher, .rank = rank, .size = RANKS };
    fill_info(&st);
    assert_int_equal(aq_spawn_kvs_allgather(&st, given[rank], LENGTH, got[rank]), AQ_OK);
}

static void test_allgather(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (unsigned i = 0; i < LENGTH; i++)
            given[rank][i] = (uint8_t)(rank * 37 + i);
    live(RANKS - 1);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_memory_equal(got[rank], given, sizeof(given));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_allgather) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
