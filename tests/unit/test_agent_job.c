/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agent_job.c - a rank that uses the start-up layer alone, no conduit: run alone it checks
 * itself as a job of one; test_agent.sh starts it on several "hosts", argv[1] says what happens
 * after the exchanges. TAP.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn.h"

static const struct aq_spawn_info *me;

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    printf("not ok - rank %u: %s\n", me->rank, what);
    fflush(stdout);
    aq_exit_job(99);
}

static unsigned char pattern(uint32_t rank, size_t at)
{
    return (unsigned char)(rank * 31 + at * 7 + 5);
}

static void check_allgather(size_t len)
{
    unsigned char *ours = malloc(len), *all = malloc(len * me->size);
    bool right = true;

    for (size_t i = 0; i < len; i++)
        ours[i] = pattern(me->rank, i);
    check(aq_spawn_allgather(ours, len, all) == AQ_OK, "allgather");
    for (uint32_t r = 0; r < me->size; r++)
        for (size_t i = 0; i < len; i++)
            right = right && all[r * len + i] == pattern(r, i);
    check(right, "allgather gives everybody's bytes");
    free(ours);
    free(all);
}

static void check_bcast(size_t len, uint32_t root)
{
    unsigned char *buf = malloc(len);
    bool right = true;

    for (size_t i = 0; i < len; i++)
        buf[i] = me->rank == root ? pattern(root, i) : 0;
    check(aq_spawn_bcast(buf, len, root) == AQ_OK, "bcast");
    for (size_t i = 0; i < len; i++)
        right = right && buf[i] == pattern(root, i);
    check(right, "bcast gives the root's bytes");
    free(buf);
}

static void check_addresses(void)
{
    unsigned char address[AQ_SPAWN_ADDR_MAX], got[AQ_SPAWN_ADDR_MAX];
    bool right = true;

    for (size_t i = 0; i < sizeof(address); i++)
        address[i] = pattern(me->rank + 1000, i);
    check(aq_spawn_publish(address, sizeof(address)) == AQ_OK, "publish");
    for (uint32_t r = 0; r < me->size; r++) {
        check(aq_spawn_lookup(r, got, sizeof(got)) == AQ_OK, "lookup");
        for (size_t i = 0; i < sizeof(got); i++)
            right = right && got[i] == pattern(r + 1000, i);
    }
    check(right, "every rank has all addresses");
}

static void check_key(void)
{
    uint8_t *all = malloc(32 * (size_t)me->size);
    bool same = true, some = false;

    check(aq_spawn_allgather(aq_spawn_key(), 32, all) == AQ_OK, "allgather of keys");
    for (uint32_t r = 0; r < me->size; r++)
        same = same && memcmp(all + r * 32, aq_spawn_key(), 32) == 0;
    for (int i = 0; i < 32; i++)
        some = some || aq_spawn_key()[i] != 0;
    check(same && some, "the key is the same on all ranks");
    free(all);
}

static void check_places(void)
{
    struct {
        uint32_t host, host_rank, jobarea_rank;
    } ours, *all = calloc(me->size, sizeof(*all));
    bool right = true;

    ours.host = me->host_index;
    ours.host_rank = me->host_rank;
    ours.jobarea_rank = aq_spawn_jobarea()->rank[me->host_rank].jobrank;
    check(aq_spawn_allgather(&ours, sizeof(ours), all) == AQ_OK, "allgather of places");
    for (uint32_t r = 0; r < me->size; r++)
        right = right && all[r].host == me->host_of[r] && all[r].host < me->host_count
                && all[r].jobarea_rank == r;
    for (uint32_t i = 0; i < me->host_size; i++)
        right = right && all[me->host_ranks[i]].host == me->host_index
                && all[me->host_ranks[i]].host_rank == i;
    check(right, "everybody agrees on who is where");
    free(all);
}

static void exchanges(void)
{
    for (int i = 0; i < 3; i++) {
        check_allgather(1);
        check_allgather(40);
        check_allgather(5000);
        check_bcast(7, 0);
        check_bcast(100000, me->size - 1);
        check(aq_spawn_fence() == AQ_OK, "fence");
    }
    check_addresses();
    check_key();
    check_places();
}

static void copy_stdin(void)
{
    char line[1000];

    while (me->rank == 0 && fgets(line, sizeof(line), stdin) != NULL)
        printf("read %s", line);
}

static void much_output(void)
{
    for (int i = 0; i < 20000; i++)
        printf("rank %u line %d and so on until it has some length, so that much of it is on its "
               "way\n",
               me->rank, i);
}

static _Noreturn void wait_for_end(void)
{
    for (;;)
        usleep(1000);
}

static void play(const char *what, const char *more)
{
    uint32_t who = me->size > 1 ? 1 : 0;

    if (strcmp(what, "hello") == 0)
        printf("rank %u of %u on host %u of %u, slot %u of %u\n", me->rank, me->size,
               me->host_index, me->host_count, me->host_rank, me->host_size);
    else if (strcmp(what, "getenv") == 0)
        printf("rank %u has %s|%s\n", me->rank, getenv(more) != NULL ? getenv(more) : "nothing",
               aq_env_get(more) != NULL ? aq_env_get(more) : "nothing");
    else if (strcmp(what, "stdin") == 0)
        copy_stdin();
    else if (strcmp(what, "much") == 0)
        much_output();
    else if (strcmp(what, "return") == 0)
        exit(atoi(more));
    else if (strcmp(what, "sleep") == 0)
        wait_for_end();
    if (me->rank != who)
        check(true, "");
    if (strcmp(what, "exit") == 0 && me->rank == who)
        aq_exit_job(atoi(more));
    if (strcmp(what, "last") == 0 && me->rank == me->size - 1)
        aq_exit_job(atoi(more));
    if (strcmp(what, "die") == 0 && me->rank == me->size - 1)
        raise(atoi(more));
    if (strcmp(what, "silent") == 0 && me->rank == me->size - 1)
        _exit(atoi(more));
    if (strcmp(what, "exit") == 0 || strcmp(what, "last") == 0 || strcmp(what, "die") == 0
        || strcmp(what, "silent") == 0)
        wait_for_end();
}

int main(int argc, char **argv)
{
    aq_env_init();
    if (argc > 1 && strcmp(argv[1], "early") == 0 && getenv("AQ_SPAWN_FORK") != NULL && argc > 2
        && atoi(getenv("AQ_SPAWN_FORK")) == atoi(argv[2]))
        _exit(0); /* one slot of each host */
    if (aq_spawn_init(&argc, &argv, &(struct aq_conduit_info){ .name = "smp" }, NULL) != AQ_OK)
        return 1;
    aq_exit_init();
    me = aq_spawn_info();
    exchanges();
    if (argc > 1)
        play(argv[1], argc > 2 ? argv[2] : "0");
    else
        printf("ok 1 - start-up exchanges of a job of one\n1..1\n");
    return 0;
}
