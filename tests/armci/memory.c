/*
 * memory.c - allocation: sizes that differ, nothing at all, failure, order of frees, pages that go
 * back, groups, memory of one process, domains.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "armci_test.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "armcix.h"

#define MANY 60
#define MiB  (1 << 20)

/* Every rank writes to every rank's part, of me + 1 numbers. */
static void sizes_differ(void)
{
    void *base[1024];

    CHECK_EQ(ARMCI_Malloc(base, (me % 2) * (me + 1) * (armci_size_t)sizeof(long)), 0);
    for (int p = 0; p < nproc; p++)
        CHECK((base[p] == NULL) == (p % 2 == 0), "part of rank %d is %p", p, base[p]);
    for (int p = 1; p < nproc; p += 2)
        if (me < p + 1)
            ARMCI_PutValueLong(me, (long *)base[p] + me, p);
    ARMCI_Barrier();
    for (int i = 0; me % 2 == 1 && i < me + 1 && i < nproc; i++)
        CHECK_EQ(((long *)base[me])[i], i);
    ARMCI_Free(base[me]);
    CHECK_EQ(ARMCI_Malloc(base, 0), 0);
    for (int p = 0; p < nproc; p++)
        CHECK(base[p] == NULL, "part of rank %d is %p", p, base[p]);
    ARMCI_Free(NULL);
}

static void failure_returns(void)
{
    const armci_size_t petabyte = (armci_size_t)1 << 50;
    void *base[1024];
    armci_meminfo_t info;

    CHECK(ARMCI_Malloc(base, me == 0 ? petabyte : 64) != 0, "a petabyte");
    CHECK(base[me] == NULL, "an address after a failure");
    memset(base, -1, sizeof(base));
    CHECK(ARMCI_Malloc_group(base, me == nproc - 1 ? petabyte : 64, NULL) != 0, "a petabyte");
    CHECK(base[me] == NULL && base[0] == NULL, "an address after a failure");
    CHECK(ARMCI_Malloc_local(petabyte) == NULL && ARMCI_Malloc_local(-1) == NULL, "local memory");
    ARMCI_Memget((size_t)petabyte, &info, 0);
    CHECK(info.addr == NULL && info.armci_addr == NULL && info.size == 0, "%p, %zu bytes",
          (void *)info.addr, info.size);
    armci_msg_brdcst(&info, sizeof(info), 0);
    CHECK(ARMCI_Memat(&info, 64) == NULL, "the address of no memory");
    ARMCI_Memctl(&info);
    CHECK_EQ(ARMCI_Malloc(base, 64), 0);
    CHECK_EQ(ARMCI_Free(base[me]), 0);
}

/* 32 MiB each, far more than is touched; freed in another order than made; what is made then fits
 * again. */
static void any_order(void)
{
    static void *base[MANY][1024];
    unsigned seed = 7;
    int order[MANY];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(ARMCI_Malloc(base[i], i % 5 == 0 ? 32 * MiB : 1000 + i), 0);
            *(int *)base[i][me] = i;
            order[i] = i;
        }
        for (int i = 0; i < MANY; i++) {
            const int k = (int)test_random(&seed, MANY), other = order[i];

            order[i] = order[k];
            order[k] = other;
        }
        for (int i = 0; i < MANY; i++) {
            CHECK_EQ(*(int *)base[order[i]][me], order[i]);
            ARMCI_Free(base[order[i]][me]);
        }
    }
}

static long pages_in_memory(void *addr, size_t bytes)
{
    static unsigned char state[64 * MiB / 4096];
    long n = 0;
    char *first = (char *)(((unsigned long)addr + 4095) & ~4095ul);

    if (mincore(first, bytes - 8192, state) != 0)
        return -1;
    for (size_t i = 0; i < (bytes - 8192) / 4096; i++)
        n += state[i] & 1;
    return n;
}

static void pages_go_back(void)
{
    void *base[1024], *was;

    CHECK_EQ(ARMCI_Malloc(base, 16 * MiB), 0);
    was = base[me];
    memset(was, 1, 16 * MiB);
    CHECK(pages_in_memory(was, 16 * MiB) > 4000, "%ld pages of 16 MiB",
          pages_in_memory(was, 16 * MiB));
    ARMCI_Free(was);
    CHECK(pages_in_memory(was, 16 * MiB) < 600, "%ld pages after the free",
          pages_in_memory(was, 16 * MiB));
    ARMCI_Barrier();
}

static void one_makes(void)
{
    armci_meminfo_t info;
    char *at, word[8] = "";

    if (me == 0) {
        ARMCI_Memget(4096, &info, 0);
        CHECK_EQ(info.cpid, 0);
        CHECK_EQ(info.size, 4096);
    }
    armci_msg_brdcst(&info, sizeof(info), 0);
    at = ARMCI_Memat(&info, me == 0 ? 0 : 64);
    if (me == nproc - 1)
        ARMCI_Put((char *)"seven", me == 0 ? at + 64 : at, 6, 0);
    ARMCI_Barrier();
    ARMCI_Get(me == 0 ? at + 64 : at, word, 6, 0);
    CHECK(strcmp(word, "seven") == 0, "\"%s\"", word);
    if (ARMCI_Same_node(0))
        CHECK(strcmp(me == 0 ? at + 64 : at, "seven") == 0, "read in place");
    ARMCI_Barrier();
    ARMCI_Memdt(&info, 0);
    ARMCI_Memctl(&info);
    CHECK(info.addr == NULL && info.armci_addr == NULL, "%p", (void *)info.addr);
}

static void local_memory(void)
{
    double *a = ARMCI_Malloc_local(80), *b = ARMCI_Malloc_local(8 * MiB);

    CHECK(a != NULL && b != NULL && a != b, "%p %p", (void *)a, (void *)b);
    memset(b, 2, 8 * MiB);
    ARMCI_Copy(b, a, 80);
    CHECK(a[9] == b[9], "a copy");
    CHECK_EQ(ARMCI_Free_local(a), 0);
    CHECK_EQ(ARMCI_Free_local(b), 0);
}

static long page_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* The pages of a buffer that comes and goes stay: Global Arrays has one of 40 MiB for each product
 * over several hosts. */
static void local_memory_stays(void)
{
    long faults = 0;

    for (int product = 0; product < 5; product++) {
        const long before = page_faults();
        char *buffer = ARMCI_Malloc_local(40 * MiB);

        CHECK(buffer != NULL, "no memory");
        memset(buffer, product, MiB);
        CHECK_EQ(ARMCI_Free_local(buffer), 0);
        if (product > 0)
            faults += page_faults() - before;
    }
    CHECK(faults < MiB / 4096, "%ld page faults", faults);
}

/* Made by its members alone, in two halves at once. */
static void groups(void)
{
    ARMCI_Group half, dup, split, world;
    void *base[1024];
    int list[1024], n = 0, rank, size, first = me < nproc / 2 ? 0 : nproc / 2;
    const int end = me < nproc / 2 ? nproc / 2 : nproc;

    for (int p = first; p < end; p++)
        list[n++] = p;
    ARMCI_Group_create(n, list, &half);
    CHECK_EQ(ARMCI_Group_rank(&half, &rank), 0);
    CHECK_EQ(rank, me - first);
    ARMCI_Group_size(&half, &size);
    CHECK_EQ(size, n);
    CHECK_EQ(ARMCI_Absolute_id(&half, rank), me);
    MPI_Comm_size(armci_group_comm(&half), &size);
    CHECK_EQ(size, n);
    CHECK_EQ(ARMCI_Malloc_group(base, 8, &half), 0);
    ARMCI_PutValueLong(me, base[(rank + 1) % n], list[(rank + 1) % n]);
    ARMCI_GroupFence(&half);
    armci_msg_group_barrier(&half);
    CHECK_EQ(*(long *)base[rank], list[(rank + n - 1) % n]);
    size = me;
    armci_msg_group_igop(&size, 1, (char *)"max", &half);
    CHECK_EQ(size, end - 1);
    size = me;
    armci_msg_group_bcast_scope(SCOPE_ALL, &size, sizeof(size), end - 1, &half);
    CHECK_EQ(size, end - 1);
    CHECK_EQ(ARMCI_Free_group(base[rank], &half), 0);
    ARMCI_Group_set_default(&half);
    ARMCI_Group_create(1, (int[]){ 0 }, &dup);
    CHECK((ARMCI_Group_rank(&dup, &n) == 0) == (rank == 0), "a group of the default's first");
    ARMCI_Group_free(&dup);
    ARMCI_Group_get_world(&world);
    ARMCI_Group_set_default(&world);
    ARMCI_Group_get_default(&dup);
    CHECK_EQ(dup.size, nproc);
    ARMCI_Group_create(0, list, &dup);
    ARMCI_Group_size(&dup, &size);
    CHECK_EQ(size, 0);
    ARMCI_Group_free(&dup);
    ARMCIX_Group_dup(&half, &dup);
    CHECK_EQ(dup.rank, rank);
    ARMCIX_Group_split(&world, me % 2, -me, &split);
    CHECK_EQ(ARMCI_Absolute_id(&split, split.rank), me);
    CHECK_EQ(split.rank, (nproc - 1 - me) / 2);
    ARMCI_Group_free(&split);
    ARMCI_Group_free(&dup);
    ARMCI_Group_free(&half);
}

/* A group that is freed while it is the default: the default is the world again. */
static void freed_default(void)
{
    ARMCI_Group one, now, last;
    int size = -1, rank, end = nproc - 1;

    ARMCI_Group_create(1, &me, &one);
    ARMCI_Group_set_default(&one);
    ARMCI_Group_free(&one);
    ARMCI_Group_get_default(&now);
    ARMCI_Group_size(&now, &size);
    CHECK_EQ(size, nproc);
    ARMCI_Group_create(1, &end, &last);
    CHECK_EQ(ARMCI_Group_rank(&last, &rank), me == end ? 0 : FAIL);
    ARMCI_Group_free(&last);
}

/* The memory of devices is that of the host. */
static void device_memory(void)
{
    void *base[1024], *grouped[1024];
    long number = 0;

    CHECK_EQ(ARMCI_Malloc_memdev(base, 64, "device"), 0);
    CHECK_EQ(ARMCI_Malloc_group_memdev(grouped, 64, NULL, "device"), 0);
    ARMCI_PutValueLong(me, base[(me + 1) % nproc], (me + 1) % nproc);
    ARMCI_PutValueLong(me + 1, grouped[(me + 1) % nproc], (me + 1) % nproc);
    ARMCI_Barrier();
    ARMCI_Get(base[me], &number, sizeof(number), me);
    CHECK_EQ(number, (me + nproc - 1) % nproc);
    CHECK_EQ(*(long *)grouped[me], number + 1);
    CHECK_EQ(ARMCI_Free_memdev(base[me]), 0);
    CHECK_EQ(ARMCI_Free_group(grouped[me], NULL), 0);
}

/* What a group NULL is, and what happens to a rank that is no member. */
static void no_group(void)
{
    ARMCI_Group first, other;
    void *base[1024] = { &first };
    int rank = -1, size = -1, zero = 0;

    CHECK_EQ(ARMCI_Group_rank(NULL, &rank), 0);
    ARMCI_Group_size(NULL, &size);
    CHECK(rank == me && size == nproc, "rank %d of %d", rank, size);
    CHECK_EQ(ARMCI_Absolute_id(NULL, nproc - 1), nproc - 1);
    ARMCI_Group_set_default(NULL);
    ARMCI_Group_create_child(1, &zero, &first, NULL);
    CHECK_EQ(ARMCI_Group_rank(&first, &rank), me == 0 ? 0 : FAIL);
    CHECK_EQ(ARMCIX_Group_dup(&first, &other), me == 0 ? 0 : FAIL);
    CHECK_EQ(other.size, me == 0);
    ARMCI_Group_free(&other);
    CHECK_EQ(ARMCIX_Group_split(&first, 1, 0, &other), me == 0 ? 0 : FAIL);
    CHECK_EQ(other.rank, me == 0 ? 0 : -1);
    ARMCI_Group_free(&other);
    CHECK_EQ(ARMCI_Malloc_group(base, 8, &first), me == 0 ? 0 : FAIL);
    CHECK_EQ(ARMCI_Free_group(base[0], &first), me == 0 ? 0 : FAIL);
    armci_exchange_address_grp(base, 1, &first);
    ARMCI_GroupFence(&first);
    armci_msg_group_barrier(&first);
    ARMCI_Group_free(&first);
}

static void domains(void)
{
    const int ours = armci_domain_my_id(ARMCI_DOMAIN_SMP);
    int sum = 0;

    for (int d = 0; d < armci_domain_count(ARMCI_DOMAIN_SMP); d++) {
        const int n = armci_domain_nprocs(ARMCI_DOMAIN_SMP, d);

        for (int i = 0; i < n; i++)
            CHECK_EQ(armci_domain_id(ARMCI_DOMAIN_SMP,
                                     armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, d, i)),
                     d);
        sum += n;
    }
    CHECK_EQ(sum, nproc);
    CHECK_EQ(armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1),
             armci_domain_nprocs(ARMCI_DOMAIN_SMP, ours));
    CHECK(armci_domain_same_id(ARMCI_DOMAIN_SMP, me) && ARMCI_Same_node(me), "with oneself");
    for (int p = 0; p < nproc; p++)
        CHECK_EQ(armci_sameclusnode(p), ARMCI_Same_node(p));
    CHECK_EQ(ARMCI_Uses_shm_grp(NULL), ARMCI_Uses_shm());
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    sizes_differ();
    failure_returns();
    any_order();
    pages_go_back();
    one_makes();
    local_memory();
    local_memory_stays();
    groups();
    no_group();
    freed_default();
    device_memory();
    domains();
    /* ARMCI ends, and begins once more */
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_Finalize(), 0);
    CHECK_EQ(ARMCI_Initialized(), 0);
    CHECK_EQ(ARMCI_Finalize(), 0);
    CHECK_EQ(ARMCI_Init_mpi_comm(MPI_COMM_WORLD), 1);
    CHECK_EQ(ARMCI_Init(), 0);
    CHECK(ARMCI_Initialized(), "begun again");
    sizes_differ();
    return test_finish();
}
