/*
 * messages.c - the message layer: messages, to oneself too, broadcasts, reductions, selection,
 * trees; the iterator.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <stdint.h>
#include <unistd.h>

#include "iterator.h"

static void point_to_point(void)
{
    static char bytes[200000];
    const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
    int len = 0, from = -1, got = -1;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)me;
    armci_msg_snd(1, bytes, 100,
                  right); /* to oneself before it is asked for, if there is one rank */
    armci_msg_rcv(1, bytes, sizeof(bytes), &len, left);
    CHECK_EQ(len, 100);
    CHECK_EQ(bytes[99], left);
    CHECK_EQ(bytes[100], me);
    armci_msg_snd(7, &me, sizeof(me), me);
    armci_msg_snd(6, &nproc, sizeof(nproc), me);
    armci_msg_rcv(6, &got, sizeof(got), NULL, me);
    CHECK_EQ(got, nproc);
    CHECK_EQ(armci_msg_rcvany(7, &got, sizeof(got), &len), me);
    CHECK_EQ(got, me);
    if (me == 0) {
        for (int p = 1; p < nproc; p++) {
            from = armci_msg_rcvany(3, bytes, sizeof(bytes), &len);
            CHECK_EQ(bytes[len - 1], from);
            CHECK_EQ(len, 150000 + from);
        }
    } else {
        memset(bytes, me, sizeof(bytes));
        armci_msg_snd(3, bytes, 150000 + me, 0);
    }
    armci_msg_barrier();
}

static void broadcasts(void)
{
    for (int root = 0; root < nproc; root++) {
        int x[3] = { me, me, me };

        armci_msg_brdcst(&x[0], sizeof(int), root);
        armci_msg_bcast(&x[1], sizeof(int), root);
        armci_msg_bcast_scope(root % 2 ? SCOPE_ALL : 0, &x[2], sizeof(int), root);
        CHECK(x[0] == root && x[1] == root && x[2] == root, "%d %d %d", x[0], x[1], x[2]);
    }
}

#define REDUCE(message, type)                                                                    \
    static void reduce_##message(void)                                                           \
    {                                                                                            \
        static const char *ops[] = { "+", "*", "max", "min", "absmax", "absmin" };               \
        const type want[] = {                                                                    \
            (type)(nproc * (nproc - 1) / 2), 0, (type)(nproc - 1), 0, (type)(nproc - 1), 0       \
        };                                                                                       \
                                                                                                 \
        for (int op = 0; op < 6; op++) {                                                         \
            type x[100];                                                                         \
                                                                                                 \
            for (int i = 0; i < 100; i++)                                                        \
                x[i] = (type)(op >= 4 ? -me : me);                                               \
            armci_msg_##message##gop(x, 100, (char *)ops[op]);                                   \
            CHECK(x[0] == want[op] && x[99] == want[op], "%s of " #type, ops[op]);               \
            x[0] = (type)me;                                                                     \
            armci_msg_group_##message##gop(x, 1, (char *)"max", NULL);                           \
            CHECK(x[0] == (type)(nproc - 1), "maximum of " #type " in a group");                 \
            x[0] = 1;                                                                            \
            armci_msg_clus_##message##gop(x, 1, (char *)"+");                                    \
            CHECK(x[0] == (type)armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1), "ranks of a domain"); \
        }                                                                                        \
    }
REDUCE(i, int)
REDUCE(l, long)
REDUCE(ll, long long)
REDUCE(f, float)
REDUCE(d, double)

static void bits(void)
{
    int x = 1 << me, y = 5 * me, z = 5, u = 5;
    long l = 5;
    long long ll = 5;
    double d[2] = { 1, 2 };

    armci_msg_igop(&x, 1, (char *)"or");
    CHECK_EQ(x, (1 << nproc) - 1);
    armci_msg_igop(&y, 1, (char *)"||");
    CHECK_EQ(y, nproc > 1);
    armci_msg_igop(&z, 1, (char *)"land");
    CHECK_EQ(z, 1);
    armci_msg_igop(&u, 1, (char *)"&&");
    armci_msg_lgop(&l, 1, (char *)"lor");
    armci_msg_llgop(&ll, 1, (char *)"land");
    CHECK(u == 1 && l == 1 && ll == 1, "%d %ld %lld", u, l, ll);
    armci_msg_reduce(d, 2, (char *)"+", ARMCI_DOUBLE);
    CHECK(me != 0 || (d[0] == nproc && d[1] == 2 * nproc), "%g %g", d[0], d[1]);
    d[0] = me;
    armci_msg_reduce_scope(SCOPE_ALL, d, 1, (char *)"max", ARMCI_DOUBLE);
    CHECK(me != 0 || d[0] == nproc - 1, "%g", d[0]);
    x = 1;
    armci_msg_gop_scope(SCOPE_NODE, &x, 1, (char *)"+", ARMCI_INT);
    CHECK_EQ(x, armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1));
    x = 1;
    armci_msg_gop_scope(SCOPE_MASTERS, &x, 1, (char *)"+", ARMCI_INT);
    CHECK_EQ(x, armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0) == me
                    ? armci_domain_count(ARMCI_DOMAIN_SMP)
                    : 1);
}

/* Records of a value and who has it; one rank of two bids. */
static void selection(void)
{
    struct {
        double value;
        int rank;
    } record = { me == 1 ? -5 : me, me };
    struct {
        int value, rank;
    } other = { -me, me };

    armci_msg_sel(&record, sizeof(record), (char *)"min", ARMCI_DOUBLE, me % 2 == 0);
    CHECK_EQ(record.rank, 0);
    armci_msg_sel_scope(0, &other, sizeof(other), (char *)"max", 0, nproc == 1 || me != 0);
    CHECK_EQ(other.rank, nproc > 1 ? 1 : 0);
}

static void trees(void)
{
    int root, up, left, right;

    armci_msg_bintree(SCOPE_ALL, &root, &up, &left, &right);
    CHECK_EQ(root, 0);
    CHECK_EQ(up, me == 0 ? -1 : (me - 1) / 2);
    CHECK_EQ(left, 2 * me + 1 < nproc ? 2 * me + 1 : -1);
    CHECK_EQ(right, 2 * me + 2 < nproc ? 2 * me + 2 : -1);
}

/* The scopes of a group: its ranks in the caller's domain, and the first ones of all domains. */
static void group_scopes(ARMCI_Group *group, int n, const int *members)
{
    const int own = armci_domain_my_id(ARMCI_DOMAIN_SMP), last = members[n - 1];
    int same = 0, masters = 0, first = -1, x = me, y = me, z = me;
    double sum[2] = { 1, 1 };

    for (int i = 0; i < n; i++) {
        const int domain = armci_domain_id(ARMCI_DOMAIN_SMP, members[i]);
        int is_first = 1;

        for (int k = 0; k < i; k++)
            is_first &= armci_domain_id(ARMCI_DOMAIN_SMP, members[k]) != domain;
        masters += is_first;
        same += domain == own;
        first = is_first && domain == own ? members[i] : first;
    }
    armci_msg_group_gop_scope(SCOPE_NODE, &sum[0], 1, (char *)"+", ARMCI_DOUBLE, group);
    armci_msg_group_gop_scope(SCOPE_MASTERS, &sum[1], 1, (char *)"+", ARMCI_DOUBLE, group);
    CHECK_EQ(sum[0], same);
    CHECK_EQ(sum[1], me == first ? masters : 1);
    armci_msg_group_bcast_scope(SCOPE_ALL, &x, sizeof(x), last, group);
    CHECK_EQ(x, last);
    armci_msg_group_bcast_scope(SCOPE_NODE, &y, sizeof(y), last, group);
    armci_grp_clus_brdcst(&z, sizeof(z), last, same, group);
    CHECK(y == (armci_domain_same_id(ARMCI_DOMAIN_SMP, last) ? last : first), "%d", y);
    CHECK_EQ(z, y);
    x = me;
    armci_msg_group_bcast_scope(SCOPE_MASTERS, &x, sizeof(x), members[0], group);
    CHECK_EQ(x, me == first ? members[0] : me);
}

static void scopes(void)
{
    ARMCI_Group group, same;
    int members[1024], n = 0;
    int node = 1, by_name = me;

    for (int p = 0; p < nproc; p++)
        members[n++] = p;
    group_scopes(NULL, n, members);
    if (nproc > 1)
        n--; /* all but the first, in their order */
    ARMCI_Group_create_child(n, members + nproc - n, &group, NULL);
    if (me > 0 || nproc == 1) {
        same = group;
        group_scopes(&same, n, members + nproc - n);
    } else {
        armci_msg_group_gop_scope(SCOPE_NODE, &node, 1, (char *)"+", ARMCI_INT, &group);
        CHECK_EQ(node, 1);
    }
    ARMCI_Group_free(&group);
    armci_msg_clus_brdcst(&by_name, sizeof(by_name));
    CHECK_EQ(by_name, armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0));
}

/* Any address will do: one that tells its rank. */
static void *address_of(int rank, int offset)
{
    return (void *)(uintptr_t)(0x1234560000ul + 64ul * (unsigned)rank + (unsigned)offset);
}

static void check_addresses(void *const *all, int offset)
{
    for (int p = 0; p < nproc; p++)
        CHECK(all[p] == address_of(p, offset), "%p of rank %d", all[p], p);
}

static void addresses(void)
{
    void *all[1024] = { NULL };

    all[me] = address_of(me, 1);
    armci_exchange_address(all, nproc);
    check_addresses(all, 1);
    memset(all, 0, sizeof(all));
    all[me] = address_of(me, 2);
    armci_exchange_address_grp(all, nproc, NULL);
    check_addresses(all, 2);
}

static void iterator(void)
{
    char array[4][6];
    int strides[1] = { 6 }, count[2] = { 2, 4 }, packed[2] = { 0, 0 }, n = 0;
    char buffer[8];
    stride_info_t info;

    for (int i = 0; i < 24; i++)
        array[i / 6][i % 6] = (char)i;
    armci_stride_info_init(&info, &array[0][1], 1, strides, count);
    CHECK_EQ(armci_stride_info_size(&info), 4);
    CHECK_EQ(armci_stride_info_count(&info), 4);
    for (; armci_stride_info_has_more(&info); armci_stride_info_next(&info), n++) {
        CHECK_EQ(armci_stride_info_pos(&info), n);
        CHECK_EQ(*(char *)armci_stride_info_seg_ptr(&info), 6 * n + 1);
        CHECK_EQ(armci_stride_info_seg_off(&info), 6 * n);
        CHECK_EQ(armci_stride_info_seg_size(&info), 2);
    }
    CHECK_EQ(n, 4);
    armci_stride_info_destroy(&info);
    armci_write_strided(&array[0][1], 1, strides, count, buffer);
    CHECK_EQ(buffer[7], 20);
    memset(array, 0, sizeof(array));
    armci_read_strided(&array[0][1], 1, strides, count, buffer);
    CHECK_EQ(array[3][2], 20);
    CHECK_EQ(array[3][3] + packed[0], 0);
}

/* Runs of lengths that have a loop of their own, and of others, in the order of addresses. */
static void packed_sections(void)
{
    static const int lengths[] = { 1, 4, 8, 12, 16, 24 };
    int strides[3] = { 32, 100, 210 }, count[4] = { 0, 3, 2, 2 };
    char array[420], back[420], expected[420], buffer[24 * 12], packed[24 * 12];

    for (int i = 0; i < 420; i++)
        array[i] = (char)(i % 251 + 1);
    for (int l = 0; l < 6; l++) {
        for (int levels = 0; levels <= 3; levels++) {
            const int runs[] = { 1, 3, 6, 12 };

            count[0] = lengths[l];
            memset(buffer, 0, sizeof(buffer));
            memset(packed, 0, sizeof(packed));
            memset(back, 0, sizeof(back));
            memset(expected, 0, sizeof(expected));
            for (int r = 0; r < runs[levels]; r++) {
                const int at = r % 3 * strides[0] + r / 3 % 2 * strides[1] + r / 6 * strides[2];

                memcpy(packed + r * count[0], array + at, (size_t)count[0]);
                memcpy(expected + at, array + at, (size_t)count[0]);
            }
            armci_write_strided(array, levels, strides, count, buffer);
            CHECK(memcmp(buffer, packed, sizeof(packed)) == 0, "%d levels of %d", levels, count[0]);
            armci_read_strided(back, levels, strides, count, buffer);
            CHECK(memcmp(back, expected, sizeof(back)) == 0, "%d levels of %d", levels, count[0]);
        }
    }
}

int main(int argc, char **argv)
{
    double began;

    armci_msg_init(&argc, &argv);
    armci_msg_init_comm(MPI_COMM_WORLD); /* nothing: MPI runs */
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    armci_msg_barrier();
    began = armci_timer();
    point_to_point();
    ARMCI_Init_args(&argc, &argv);
    point_to_point();
    broadcasts();
    reduce_i();
    reduce_l();
    reduce_ll();
    reduce_f();
    reduce_d();
    bits();
    selection();
    trees();
    scopes();
    addresses();
    iterator();
    packed_sections();
    usleep(1000);
    CHECK(armci_timer() > began, "the clock");
    armci_msg_igop(&failures, 1, (char *)"+");
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    ARMCI_Finalize();
    armci_msg_finalize();
    return failures != 0;
}
