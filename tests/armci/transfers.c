/*
 * transfers.c - put, get and accumulate in all formats against a model, without a fence in between;
 * return codes.
 *
 * Each round one rank works on one target's memory, of which it keeps a copy: puts, accumulates of
 * one type and gets of contiguous, strided (0 to 8 levels, unaligned) and vector sections in random
 * order. A get sees what the calls before it did.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#define BYTES  (1 << 18) /* of each rank's memory: several stretches of locks */
#define ROUNDS 6
#define CALLS  30

enum way { PUT, GET, ACC };

static const struct {
    int op, other_op; /* of the original ARMCI, of ARMCI-MPI */
    int size;
} types[] = { { ARMCI_ACC_INT, 0, 4 }, { ARMCI_ACC_LNG, 1, 8 }, { ARMCI_ACC_FLT, 2, 4 },
              { ARMCI_ACC_DBL, 3, 8 }, { ARMCI_ACC_CPL, 4, 8 }, { ARMCI_ACC_DCP, 5, 16 } };

static void *base[1024];
static int is_short; /* fewer turns */
static char model[BYTES], buffer[BYTES];
static unsigned seed;
static int type, target;
static double scale[2];

/* Small whole numbers: sums and products are exact in every type. */
static void store(int t, char *at, int re, int im)
{
    switch (t) {
    case 0:
        memcpy(at, &(int){ re }, 4);
        break;
    case 1:
        memcpy(at, &(long){ re }, 8);
        break;
    case 2:
        memcpy(at, &(float){ (float)re }, 4);
        break;
    case 3:
        memcpy(at, &(double){ re }, 8);
        break;
    case 4:
        memcpy(at, ((float[]){ (float)re, (float)im }), 8);
        break;
    default:
        memcpy(at, ((double[]){ re, im }), 16);
        break;
    }
}

static void load(int t, const char *at, double *re, double *im)
{
    int i;
    long l;
    float f[2];
    double d[2];

    *im = 0;
    switch (t) {
    case 0:
        memcpy(&i, at, 4);
        *re = i;
        break;
    case 1:
        memcpy(&l, at, 8);
        *re = (double)l;
        break;
    case 2:
        memcpy(f, at, 4);
        *re = f[0];
        break;
    case 3:
        memcpy(d, at, 8);
        *re = d[0];
        break;
    case 4:
        memcpy(f, at, 8);
        *re = f[0];
        *im = f[1];
        break;
    default:
        memcpy(d, at, 16);
        *re = d[0];
        *im = d[1];
        break;
    }
}

/* What a call does to a run, in the model. */
static void apply(enum way way, char *remote_addr, const char *self, int bytes)
{
    double re, im, a, b;

    if (way == PUT)
        memcpy(remote_addr, self, (size_t)bytes);
    else if (way == GET)
        CHECK(memcmp(remote_addr, self, (size_t)bytes) == 0,
              "a get of %d bytes from rank %d, type %d", bytes, target, type);
    for (int i = 0; way == ACC && i < bytes; i += types[type].size) {
        load(type, self + i, &a, &b);
        load(type, remote_addr + i, &re, &im);
        store(type, remote_addr + i, (int)(re + scale[0] * a - scale[1] * b),
              (int)(im + scale[0] * b + scale[1] * a));
    }
}

/* A section: the same shape on both sides, each run somewhere else. */
struct shape {
    int levels, count[9], self[8], remote_addr[8];
    int self_bytes, peer_bytes;
};

static void choose_shape(struct shape *shape)
{
    const int unit = types[type].size;

    shape->levels = (int)test_random(&seed, 9);
    shape->count[0] = unit * (1 + (int)test_random(&seed, shape->levels > 4 ? 8 : 60));
    shape->self_bytes = shape->peer_bytes = shape->count[0];
    for (int i = 0; i < shape->levels; i++) {
        shape->count[i + 1] = 1 + (int)test_random(&seed, shape->levels > 4 ? 2 : 4);
        shape->self[i] = shape->self_bytes + (int)test_random(&seed, 20);
        shape->remote_addr[i] = shape->peer_bytes + unit * (int)test_random(&seed, 20);
        shape->self_bytes += (shape->count[i + 1] - 1) * shape->self[i];
        shape->peer_bytes += (shape->count[i + 1] - 1) * shape->remote_addr[i];
    }
}

static void fill(void)
{
    for (int i = 0; i + types[type].size <= BYTES; i += types[type].size)
        store(type, buffer + i, (int)test_random(&seed, 9) - 4, (int)test_random(&seed, 9) - 4);
}

/* The runs of a section one after the other, for the model and for lists of pieces. */
static int runs_of(const struct shape *shape, int *self, int *remote_addr)
{
    int n = 0, index[8] = { 0 }, level;

    do {
        self[n] = remote_addr[n] = 0;
        for (int i = 0; i < shape->levels; i++) {
            self[n] += index[i] * shape->self[i];
            remote_addr[n] += index[i] * shape->remote_addr[i];
        }
        n++;
        for (level = 0; level < shape->levels && ++index[level] == shape->count[level + 1]; level++)
            index[level] = 0;
    } while (level < shape->levels);
    return n;
}

static void call_strided(enum way way, int op, struct shape *s, char *self, char *remote_addr)
{
    int rc;

    if (way == PUT)
        rc = s->levels == 0 ? ARMCI_Put(self, remote_addr, s->count[0], target)
                            : ARMCI_PutS(self, s->self, remote_addr, s->remote_addr, s->count,
                                         s->levels, target);
    else if (way == GET)
        rc = s->levels == 0 ? ARMCI_Get(remote_addr, self, s->count[0], target)
                            : ARMCI_GetS(remote_addr, s->remote_addr, self, s->self, s->count,
                                         s->levels, target);
    else
        rc = s->levels == 0 ? ARMCI_Acc(op, scale, self, remote_addr, s->count[0], target)
                            : ARMCI_AccS(op, scale, self, s->self, remote_addr, s->remote_addr,
                                         s->count, s->levels, target);
    CHECK_EQ(rc, 0);
}

static void call_vector(enum way way, int op, const struct shape *shape, int n, const int *self,
                        const int *remote_addr, char *at_self, char *at_peer)
{
    void *local[70000 / 4], *remote[70000 / 4];
    armci_giov_t two[2];
    const int half = n / 2;
    int rc;

    for (int i = 0; i < n; i++) {
        local[i] = at_self + self[i];
        remote[i] = at_peer + remote_addr[i];
    }
    for (int i = 0; i < 2; i++) {
        two[i].src_ptr_array = (way == GET ? remote : local) + (i == 0 ? 0 : half);
        two[i].dst_ptr_array = (way == GET ? local : remote) + (i == 0 ? 0 : half);
        two[i].ptr_array_len = i == 0 ? half : n - half;
        two[i].bytes = shape->count[0];
    }
    rc = way == PUT   ? ARMCI_PutV(half == 0 ? two + 1 : two, half == 0 ? 1 : 2, target)
         : way == GET ? ARMCI_GetV(half == 0 ? two + 1 : two, half == 0 ? 1 : 2, target)
                      : ARMCI_AccV(op, scale, half == 0 ? two + 1 : two, half == 0 ? 1 : 2, target);
    CHECK_EQ(rc, 0);
}

static void one_call(void)
{
    static int self[70000 / 4], remote_addr[70000 / 4];
    struct shape shape;
    const enum way way = (enum way)test_random(&seed, 3);
    const int op = test_random(&seed, 2) ? types[type].op : types[type].other_op;
    int n, at_self, at_peer;

    do {
        choose_shape(&shape);
    } while (shape.self_bytes > BYTES / 2 || shape.peer_bytes > BYTES / 2);
    fill();
    at_self = (int)test_random(&seed, BYTES / 2);
    at_peer = (int)test_random(&seed, BYTES / 2 / 16) * 16;
    for (int i = 0; i < 2; i++)
        memcpy(&scale[i], &(double){ 0 }, sizeof(double));
    store(type, (char *)scale, 1 + (int)test_random(&seed, 2),
          type >= 4 ? (int)test_random(&seed, 2) : 0);
    n = runs_of(&shape, self, remote_addr);
    for (int i = 0; way != GET && i < n;
         i++) /* the source has whole elements wherever a run begins */
        for (int k = 0; k < shape.count[0]; k += types[type].size)
            store(type, buffer + at_self + self[i] + k, (int)test_random(&seed, 9) - 4, 1);
    if (test_random(&seed, 3) == 0)
        call_vector(way, op, &shape, n, self, remote_addr, buffer + at_self,
                    (char *)base[target] + at_peer);
    else
        call_strided(way, op, &shape, buffer + at_self, (char *)base[target] + at_peer);
    {
        double s[2];

        load(type, (const char *)scale, &s[0], &s[1]);
        scale[0] = s[0];
        scale[1] = s[1];
    }
    for (int i = 0; i < n; i++)
        apply(way, model + at_peer + remote_addr[i], buffer + at_self + self[i], shape.count[0]);
}

static void one_round(int round)
{
    for (int i = 0; i < BYTES; i += types[type].size)
        store(type, (char *)base[me] + i, 0, 0);
    memcpy(model, base[me], BYTES); /* the same zeros everywhere */
    ARMCI_Barrier();
    seed = (unsigned)(round * 1000 + me + 1);
    for (int i = 0; i < CALLS; i++)
        one_call();
    ARMCI_Fence(target);
    ARMCI_Get(base[target], buffer, BYTES, target);
    CHECK(memcmp(model, buffer, BYTES) == 0, "rank %d's memory after round %d, type %d", target,
          round, type);
    ARMCI_Barrier();
}

/* More than a message holds, everybody into rank 0, exact. */
static void everybody_adds(void)
{
    enum { N = 40000 };
    double *ours = malloc(N * sizeof(double)), *sums = base[0], one = 1;
    int strides[1] = { 4 * sizeof(double) }, count[2] = { 2 * sizeof(double), N / 8 };

    for (int i = 0; i < N; i++)
        ours[i] = i;
    if (me == 0)
        memset(sums, 0, BYTES);
    ARMCI_Barrier();
    for (int i = 0; i < 4; i++)
        ARMCI_AccS(ARMCI_ACC_DBL, &one, ours, strides, sums, strides, count, 1, 0);
    ARMCI_Acc(ARMCI_ACC_DBL, &one, ours, sums, BYTES / 2, 0);
    ARMCI_Barrier();
    for (int i = 0; me == 0 && i < BYTES / 16; i++)
        CHECK(sums[i] == (double)i * nproc * (i % 4 < 2 && i < N / 2 ? 5 : 1), "element %d is %g",
              i, sums[i]);
    ARMCI_Barrier();
    free(ours);
}

/* Small sections of few numbers, by everybody at once, in all formats: no update is lost. */
static void overlapping_adds(void)
{
    enum { N = 64 };
    /* without messages they are short */
    const int turns = ARMCI_Uses_shm() && !is_short ? 1500000 : 15000;
    int ours[N], *sums = base[0], one = 1, strides[1] = { 32 * sizeof(int) };
    int count[2] = { 32 * sizeof(int), 2 };
    void *src[2] = { ours, ours + 32 }, *dst[2] = { sums, sums + 32 };
    armci_giov_t vector = { src, dst, 32 * sizeof(int), 2 };

    for (int i = 0; i < N; i++)
        ours[i] = i;
    if (me == 0)
        memset(sums, 0, N * sizeof(int));
    ARMCI_Barrier();
    for (int i = 0; i < turns; i += 3) {
        ARMCI_Acc(ARMCI_ACC_INT, &one, ours, sums, N * sizeof(int), 0);
        ARMCI_AccS(ARMCI_ACC_INT, &one, ours, strides, sums, strides, count, 1, 0);
        ARMCI_AccV(ARMCI_ACC_INT, &one, &vector, 1, 0);
    }
    ARMCI_Barrier();
    for (int i = 0; me == 0 && i < N; i++)
        CHECK_EQ(sums[i], i * turns * nproc);
    ARMCI_Barrier();
}

/* The same of the calls with a handle; vector has no sources. */
static void return_codes_nb(armci_giov_t *vector)
{
    int count[2] = { 8, 1 }, negative[1] = { -1 }, stride[1] = { 8 };
    double x = 0, one = 1;
    armci_hdl_t handle;

    ARMCI_INIT_HANDLE(&handle);
    CHECK_EQ(ARMCI_NbPut(&x, NULL, 8, me, &handle), FAIL);
    CHECK_EQ(ARMCI_NbGet(base[me], &x, -1, me, &handle), FAIL3);
    CHECK_EQ(ARMCI_NbPut(&x, base[me], 8, -1, &handle), FAIL5);
    CHECK_EQ(ARMCI_NbAcc(ARMCI_ACC_DBL, &one, NULL, base[me], 8, me, &handle), FAIL);
    CHECK_EQ(ARMCI_NbPutS(&x, NULL, base[me], stride, count, 1, me, &handle), FAIL2);
    CHECK_EQ(ARMCI_NbGetS(base[me], stride, &x, stride, negative, 0, me, &handle), FAIL3);
    CHECK_EQ(ARMCI_NbAccS(ARMCI_ACC_DBL, &one, &x, stride, base[me], stride, count, 9, me, &handle),
             FAIL4);
    CHECK_EQ(ARMCI_NbPutV(vector, 1, me, &handle), FAIL2);
    CHECK_EQ(ARMCI_NbGetV(vector, -1, me, &handle), FAIL);
    CHECK_EQ(ARMCI_NbAccV(ARMCI_ACC_DBL, &one, vector, 1, nproc, NULL), FAIL5);
    CHECK_EQ(ARMCI_Wait(&handle), 0);
}

static void return_codes(void)
{
    int count[2] = { 8, 1 }, negative[1] = { -1 }, stride[1] = { 8 };
    armci_giov_t vector = { (void **)base, (void **)base, 8, 1 };
    double x = 0, one = 1;

    CHECK_EQ(ARMCI_Put(NULL, base[me], 8, me), FAIL);
    CHECK_EQ(ARMCI_Get(base[me], NULL, 8, me), FAIL);
    CHECK_EQ(ARMCI_PutS(&x, stride, base[me], stride, negative, 0, me), FAIL3);
    CHECK_EQ(ARMCI_PutS(&x, stride, base[me], stride, count, 9, me), FAIL4);
    CHECK_EQ(ARMCI_GetS(base[me], stride, &x, stride, count, -1, me), FAIL4);
    CHECK_EQ(ARMCI_PutS(&x, stride, base[me], stride, count, 1, nproc), FAIL5);
    CHECK_EQ(ARMCI_AccS(ARMCI_ACC_DBL, &one, &x, NULL, base[me], stride, count, 1, me), FAIL2);
    CHECK_EQ(ARMCI_AccS(ARMCI_ACC_DBL, NULL, &x, stride, base[me], stride, count, 1, me), FAIL);
    CHECK_EQ(ARMCI_Acc(ARMCI_ACC_DBL, NULL, &x, base[me], 8, me), FAIL);
    CHECK_EQ(ARMCI_Get(base[me], &x, 8, -1), FAIL5);
    CHECK_EQ(ARMCI_Rmw(ARMCI_SWAP, NULL, base[me], 1, me), FAIL);
    CHECK_EQ(ARMCI_Rmw(ARMCI_SWAP, &x, NULL, 1, me), FAIL);
    CHECK_EQ(ARMCI_Rmw(ARMCI_SWAP, &x, base[me], 1, -1), FAIL5);
    CHECK_EQ(ARMCI_PutV(&vector, 0, me), FAIL);
    CHECK_EQ(ARMCI_AccV(ARMCI_ACC_DBL, NULL, &vector, 1, me), FAIL);
    CHECK_EQ(ARMCI_AccV(ARMCI_ACC_DBL, &one, NULL, 1, me), FAIL);
    CHECK_EQ(ARMCI_AccV(ARMCI_ACC_DBL, &one, &vector, 1, nproc), FAIL5);
    vector.ptr_array_len = 0;
    CHECK_EQ(ARMCI_GetV(&vector, 1, me), FAIL4);
    vector.bytes = 0;
    CHECK_EQ(ARMCI_GetV(&vector, 1, me), FAIL3);
    vector.src_ptr_array = NULL;
    CHECK_EQ(ARMCI_GetV(&vector, 1, me), FAIL2);
    CHECK_EQ(ARMCI_AccV(ARMCI_ACC_DBL, &one, &vector, 1, me), FAIL2);
    return_codes_nb(&vector);
    count[0] = 0;
    CHECK_EQ(ARMCI_PutS(&x, stride, base[me], stride, count, 1, me), 0);
    CHECK_EQ(ARMCI_Put(&x, base[me], 0, me), 0);
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    is_short = argc > 1 && strcmp(argv[argc - 1], "short") == 0;
    CHECK_EQ(ARMCI_Malloc(base, BYTES), 0);
    for (type = 0; type < 6; type++) {
        for (int round = 0; round < ROUNDS; round++) {
            target = (me + round) % nproc;
            one_round(round);
        }
    }
    everybody_adds();
    overlapping_adds();
    return_codes();
    ARMCI_Free(base[me]);
    return test_finish();
}
