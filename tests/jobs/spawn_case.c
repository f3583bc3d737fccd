/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_case.c - other/spawn alone, without a conduit: exchanges at start and one way to end; run
 * by slurm.pl.
 * Usage     spawn_case CASE [WHO]
 * Cases     data: exchange everything, check it, exit 0
 *           exit: rank WHO exits 6, the others wait to be asked
 *           kill: rank WHO dies of SIGKILL        killhost: all ranks of WHO's host do
 *           codes: each rank exits 20 + rank      quit: as exit, and SIGQUIT is handled
 *           hang: rank WHO exits 6, the others ignore SIGQUIT
 *           late: ranks come to the exit one after the other, 100 ms apart
 *           wait: until killed from outside
 * Prints    "ready R HOST PID PROVIDER HOSTINDEX/HOSTS", "checked R", "quit-handler R",
 *           "time NAME MICROSECONDS"
 * Uses      internals: a rank publishes its exit on the job area as core/aq_exit.c does
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "other/spawn/aq_spawn.h"

static const struct aq_spawn_info *info;
static struct aq_jobarea *jobarea;
static bool say_quit;

static _Noreturn void leave(int code)
{
    uint32_t slot = info->host_rank;

    aq_jobarea_publish_exit(jobarea, slot, AQ_RANK_EXITING, code);
    aq_spawn_notify();
    /* release: as core/aq_exit.c */
    atomic_store_explicit(&jobarea->rank[slot].state, AQ_RANK_ENDED, memory_order_release);
    _exit(aq_spawn_shutdown(code, AQ_SHUTDOWN_END));
}

static void on_quit(int sig)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "quit-handler %u\n", info->rank);

    (void)sig;
    if (say_quit && write(STDOUT_FILENO, line, (size_t)len) < 0)
        _exit(99);
    /* relaxed: it was settled before we were asked */
    leave(atomic_load_explicit(&jobarea->exit_code, memory_order_relaxed));
}

static void fail(const char *what, uint32_t rank)
{
    fprintf(stderr, "spawn_case: rank %u: %s is wrong (%u)\n", info->rank, what, rank);
    leave(90);
}

static void fill(uint8_t *bytes, size_t len, uint32_t rank, uint32_t salt)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(rank * 31 + i * 7 + salt);
}

static void check_allgather(size_t len)
{
    uint8_t *ours = malloc(len), *all = malloc(len * info->size), *want = malloc(len);

    fill(ours, len, info->rank, (uint32_t)len);
    if (aq_spawn_allgather(ours, len, all) != 0)
        fail("allgather", 0);
    for (uint32_t r = 0; r < info->size; r++) {
        fill(want, len, r, (uint32_t)len);
        if (memcmp(all + r * len, want, len) != 0)
            fail("what allgather gave of a rank", r);
    }
    free(ours);
    free(all);
    free(want);
}

static void check_bcast(size_t len, uint32_t root)
{
    uint8_t *bytes = malloc(len), *want = malloc(len);

    fill(want, len, root, 99);
    if (info->rank == root)
        memcpy(bytes, want, len);
    else
        memset(bytes, 0xee, len);
    if (aq_spawn_bcast(bytes, len, root) != 0 || memcmp(bytes, want, len) != 0)
        fail("what bcast gave of a rank", root);
    free(bytes);
    free(want);
}

static void check_addresses(void)
{
    uint8_t address[AQ_SPAWN_ADDR_MAX], want[AQ_SPAWN_ADDR_MAX];
    uint64_t begin = aq_jobarea_now_ns();

    fill(address, sizeof(address), info->rank, 5);
    if (aq_spawn_publish(address, sizeof(address)) != 0)
        fail("publish", 0);
    if (info->rank == 0)
        printf("time publish %.0f\n", (double)(aq_jobarea_now_ns() - begin) / 1e3);
    begin = aq_jobarea_now_ns();
    for (uint32_t i = 0; i < info->size; i++) {
        uint32_t r = (info->rank + i) % info->size;

        fill(want, sizeof(want), r, 5);
        if (aq_spawn_lookup(r, address, sizeof(address)) != 0
            || memcmp(address, want, sizeof(address)) != 0)
            fail("the address of a rank", r);
    }
    if (info->rank == 0)
        printf("time lookup %.0f\n", (double)(aq_jobarea_now_ns() - begin) / 1e3 / info->size);
}

/* everybody's own view of hosts and of the key is the same */
static void check_hosts(void)
{
    uint32_t *all = malloc(info->size * info->size * sizeof(*all)), next = 0;
    uint8_t *keys = malloc(32 * info->size), zero[32] = { 0 };

    if (aq_spawn_allgather(info->host_of, info->size * sizeof(*all), all) != 0
        || aq_spawn_allgather(aq_spawn_key(), 32, keys) != 0)
        fail("allgather", 0);
    for (uint32_t r = 0; r < info->size; r++) {
        if (memcmp(all + r * info->size, info->host_of, info->size * sizeof(*all)) != 0)
            fail("host_of of a rank", r);
        if (memcmp(keys + 32 * r, aq_spawn_key(), 32) != 0)
            fail("the key of a rank", r);
        if (info->host_of[r] > next)
            fail("the order of hosts", r);
        next += info->host_of[r] == next;
    }
    if (next != info->host_count || memcmp(zero, aq_spawn_key(), 32) == 0)
        fail("the number of hosts, or the key", next);
    for (uint32_t i = 0; i < info->host_size; i++)
        if (info->host_of[info->host_ranks[i]] != info->host_index)
            fail("the host of a rank", info->host_ranks[i]);
    free(all);
    free(keys);
}

static void check_data(void)
{
    check_hosts();
    check_allgather(1);
    check_allgather(300);
    check_allgather(5000);
    check_bcast(8, 0);
    check_bcast(9000, info->size - 1);
    check_bcast(3, info->size / 2);
    check_addresses();
    check_bcast(700, info->size - 1);
    check_allgather(40);
    if (aq_spawn_fence() != 0 || aq_spawn_host_fence() != 0)
        fail("a fence", 0);
    printf("checked %u\n", info->rank);
}

static _Noreturn void rest(void)
{
    for (;;)
        pause();
}

static _Noreturn void end(const char *name, uint32_t who)
{
    bool act = info->rank == who;

    if (strcmp(name, "codes") == 0)
        leave(20 + (int)info->rank);
    if (strcmp(name, "late") == 0) {
        usleep(100000 * info->rank);
        leave(0);
    }
    if (strcmp(name, "killhost") == 0)
        act = info->host_of[info->rank] == info->host_of[who];
    if (strcmp(name, "kill") == 0 || strcmp(name, "killhost") == 0) {
        usleep(100000);
        if (act)
            raise(SIGKILL);
    } else if (strcmp(name, "wait") != 0 && act) {
        leave(6);
    }
    if (strcmp(name, "hang") == 0)
        signal(SIGQUIT, SIG_IGN);
    rest();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "data";
    uint64_t begin = aq_jobarea_now_ns();
    char host[64] = "?";

    aq_env_init();
    if (aq_spawn_init(&argc, &argv,
                      &(struct aq_conduit_info){
                          .name = "udp", .starts_itself = true, .command = "amudprun" },
                      NULL)
        != 0)
        return 95; /* it has said why */
    info = aq_spawn_info();
    jobarea = aq_spawn_jobarea();
    say_quit = strcmp(name, "quit") == 0;
    signal(SIGQUIT, on_quit);
    atomic_store_explicit(&jobarea->rank[info->host_rank].state, AQ_RANK_READY,
                          memory_order_release);
    gethostname(host, sizeof(host) - 1);
    printf("ready %u %s %d %s %u/%u\n", info->rank, host, (int)getpid(), info->provider,
           info->host_index, info->host_count);
    if (info->rank == 0)
        printf("time join %.0f\n", (double)(aq_jobarea_now_ns() - begin) / 1e3);
    if (strcmp(name, "data") == 0) {
        check_data();
        leave(0);
    }
    if (aq_spawn_fence() != 0)
        fail("a fence", 0);
    end(name, argc > 2 ? (uint32_t)atoi(argv[2]) % info->size : 1 % info->size);
}
