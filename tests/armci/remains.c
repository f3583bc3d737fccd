/*
 * remains.c - what of ARMCI outlives ARMCI_Finalize, and what does not: local memory stays, the
 * communicators and settings go. Run by run.sh.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "armcix.h"

#define BLOCKS 5
#define WORDS  1200000 /* as many in the first block, less in each next one */

static long *block[BLOCKS];
static int freed; /* communicators of groups, counted by MPI */
static int keyval;

static int on_free(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    freed++;
    return MPI_SUCCESS;
}

static int words_of(int b)
{
    return WORDS / (b + 1);
}

static long content(int b, int i)
{
    return (long)me * 100000000 + b * WORDS + i;
}

static void check_block(int b)
{
    int wrong = 0;

    for (int i = 0; i < words_of(b); i++)
        wrong += block[b][i] != content(b, i);
    CHECK_EQ(wrong, 0);
}

/* Between the blocks is what goes. */
static void make_blocks(void)
{
    static void *base[1024];

    for (int b = 0; b < BLOCKS; b++) {
        block[b] = ARMCI_Malloc_local(words_of(b) * sizeof(long));
        for (int i = 0; i < words_of(b); i++)
            block[b][i] = content(b, i);
        ARMCI_Malloc(base, WORDS * sizeof(long));
        memset(base[me], -1, WORDS * sizeof(long));
    }
    CHECK_EQ(ARMCI_Free_local(block[2]), 0);
}

/* Maps and unmaps memory while ARMCI ends: its mappings stay what they are. */
static atomic_bool is_over;

static void *map_meanwhile(void *unused)
{
    static char *maps[64];
    const size_t bytes = 8 << 20;
    unsigned seed = 1;

    while (!atomic_load(&is_over)) {
        char **map = &maps[test_random(&seed, 64)];

        if (*map != NULL) {
            CHECK_EQ(**map, 7);
            munmap(*map, bytes);
        }
        *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        **map = 7;
    }
    for (int i = 0; i < 64; i++)
        if (maps[i] != NULL) {
            CHECK_EQ(*maps[i], 7);
            munmap(maps[i], bytes);
        }
    return unused;
}

/* A group that is not freed, as Global Arrays leaves one, and mutexes of a group that is. */
static void make_groups(ARMCI_Group *left)
{
    int *members = malloc((size_t)nproc * sizeof(int));
    ARMCI_Group group;
    armcix_mutex_hdl_t set;

    for (int p = 0; p < nproc; p++)
        members[p] = nproc - 1 - p;
    ARMCI_Group_create(nproc, members, left);
    MPI_Comm_set_attr(armci_group_comm(left), keyval, NULL);
    ARMCI_Group_create(nproc, members, &group);
    set = ARMCIX_Create_mutexes_hdl(1, &group);
    ARMCI_Group_free(&group);
    ARMCIX_Lock_hdl(set, 0, 0);
    ARMCIX_Unlock_hdl(set, 0, 0);
    CHECK_EQ(ARMCIX_Destroy_mutexes_hdl(set), 0);
    ARMCI_Group_create(nproc, members, &group);
    ARMCIX_Create_mutexes_hdl(2, &group); /* for ARMCI_Finalize */
    ARMCI_Group_free(&group);
    free(members);
}

/* Blocks of an earlier start are sources and destinations as other memory is. */
static void use_blocks(void)
{
    void **base = malloc((size_t)nproc * sizeof(*base));
    const int next = (me + 1) % nproc;
    long *new;

    ARMCI_Malloc(base, WORDS * sizeof(long));
    ARMCI_Put(block[0], base[next], words_of(1) * sizeof(long), next);
    ARMCI_Barrier();
    ARMCI_Get(base[next], block[1], words_of(1) * sizeof(long), next);
    CHECK_EQ(memcmp(block[0], block[1], words_of(1) * sizeof(long)), 0);
    new = ARMCI_Malloc_local(WORDS * sizeof(long));
    memset(new, 0, WORDS * sizeof(long));
    check_block(0);
    check_block(3);
    check_block(4);
    CHECK_EQ(ARMCI_Free_local(new), 0);
    CHECK_EQ(ARMCI_Free_local(block[3]), 0);
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
    free(base);
}

int main(int argc, char **argv)
{
    ARMCI_Group left;
    const int had = getenv("GASNET_PROGRESS_THREAD") != NULL;
    pthread_t thread;
    int none;

    test_start(&argc, &argv);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &keyval, NULL);
    make_blocks();
    make_groups(&left);
    pthread_create(&thread, NULL, map_meanwhile, NULL);
    ARMCI_Finalize();
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    CHECK_EQ(freed, 1);
    CHECK_EQ(getenv("GASNET_PROGRESS_THREAD") != NULL, had);
    ARMCI_Group_free(&left); /* nothing more */
    CHECK_EQ(freed, 1);
    for (int b = 0; b < BLOCKS; b++)
        if (b != 2)
            check_block(b);
    CHECK_EQ(ARMCI_Free_local(&none), FAIL);
    ARMCI_Init();
    use_blocks();
    ARMCI_Finalize();
    check_block(0);
    CHECK_EQ(ARMCI_Free_local(block[0]), 0);
    ARMCI_Init();
    check_block(4);
    CHECK_EQ(ARMCI_Free_local(block[1]), 0);
    MPI_Comm_free_keyval(&keyval);
    return test_finish();
}
