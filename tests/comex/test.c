/*
 * test.c - put, get and accumulate in the three formats, blocking and not, of all types, and
 * read-modify-write: over the world, halves of it, and all ranks in reversed order.
 *
 * Each rank writes to its right neighbour in the group, whose area no other rank writes. What it
 * gets from there, and what the neighbour finds, must be what a model in local memory says.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_test.h"

enum { PUT, GET, ACC };
enum { CONTIGUOUS, STRIDED, LISTS, MANY, FORMATS };

/* The section: ROWS * COLUMNS runs, at other distances in the target than in local memory. */
enum { RUN = 48, COLUMNS = 3, ROWS = 2, RUNS = ROWS * COLUMNS, AREA = 1024 };
static const int local_stride[2] = { 64, 320 }, remote_stride[2] = { 56, 400 };

enum { INT, LONG, FLOAT, DOUBLE, COMPLEX, DOUBLE_COMPLEX, TYPES };
static const int op_of[TYPES] = { COMEX_ACC_INT, COMEX_ACC_LNG, COMEX_ACC_FLT,
                                  COMEX_ACC_DBL, COMEX_ACC_CPL, COMEX_ACC_DCP };
static const int size_of[TYPES] = { sizeof(int),    sizeof(long),      sizeof(float),
                                    sizeof(double), 2 * sizeof(float), 2 * sizeof(double) };

/* The two numbers of a scale: 2 + i for complex types, 2 for the others. */
static union {
    int i;
    long l;
    float f[2];
    double d[2];
} scales[TYPES];

static void set_scales(void)
{
    scales[INT].i = 2;
    scales[LONG].l = 2;
    scales[FLOAT].f[0] = 2;
    scales[DOUBLE].d[0] = 2;
    scales[COMPLEX].f[0] = 2, scales[COMPLEX].f[1] = 1;
    scales[DOUBLE_COMPLEX].d[0] = 2, scales[DOUBLE_COMPLEX].d[1] = 1;
}

/* --- the model --- */

static int local_at(int run)
{
    return run % COLUMNS * local_stride[0] + run / COLUMNS * local_stride[1];
}

static int remote_at(int run)
{
    return run % COLUMNS * remote_stride[0] + run / COLUMNS * remote_stride[1];
}

/* Fills the runs with small numbers of a type. */
static void fill(int type, char *local, int seed)
{
    for (int run = 0; run < RUNS; run++)
        for (int at = 0; at < RUN; at += type == COMPLEX || type == FLOAT || type == INT ? 4 : 8) {
            const int value = (seed * 31 + run * 7 + at) % 100 - 50;
            char *to = local + local_at(run) + at;

            if (type == INT)
                *(int *)(void *)to = value;
            else if (type == LONG)
                *(long *)(void *)to = value;
            else if (type == FLOAT || type == COMPLEX)
                *(float *)(void *)to = (float)value;
            else
                *(double *)(void *)to = value;
        }
}

static void add_one(int type, void *to, const void *from)
{
    const float *f = (const float *)from;
    const double *d = (const double *)from;

    switch (type) {
    case INT:
        *(int *)to += 2 * *(const int *)from;
        break;
    case LONG:
        *(long *)to += 2 * *(const long *)from;
        break;
    case FLOAT:
        *(float *)to += 2 * *f;
        break;
    case DOUBLE:
        *(double *)to += 2 * *d;
        break;
    case COMPLEX:
        ((float *)to)[0] += 2 * f[0] - f[1];
        ((float *)to)[1] += 2 * f[1] + f[0];
        break;
    default:
        ((double *)to)[0] += 2 * d[0] - d[1];
        ((double *)to)[1] += 2 * d[1] + d[0];
    }
}

/* What a put, or an accumulate, makes of the target. */
static void model(int way, int type, const char *local, char *target)
{
    for (int run = 0; run < RUNS; run++) {
        const char *from = local + local_at(run);
        char *to = target + remote_at(run);

        if (way == PUT)
            memcpy(to, from, RUN);
        for (int at = 0; way == ACC && at < RUN; at += size_of[type])
            add_one(type, to + at, from + at);
    }
}

/* --- the calls --- */

enum { BLOCKING, WAITED, TESTED, NO_REQUEST, STYLES };

struct move {
    int way, type, format, style;
    char *local, *remote;
    int proc;
    comex_group_t group;
};

static void move_run(const struct move *m, int run, comex_request_t *request)
{
    char *own = m->local + local_at(run), *other = m->remote + remote_at(run);
    void *scale = &scales[m->type];
    const int op = op_of[m->type];

    if (m->style == BLOCKING && m->way == PUT)
        WORKS(comex_put(own, other, RUN, m->proc, m->group));
    else if (m->style == BLOCKING && m->way == GET)
        WORKS(comex_get(other, own, RUN, m->proc, m->group));
    else if (m->style == BLOCKING)
        WORKS(comex_acc(op, scale, own, other, RUN, m->proc, m->group));
    else if (m->way == PUT)
        WORKS(comex_nbput(own, other, RUN, m->proc, m->group, request));
    else if (m->way == GET)
        WORKS(comex_nbget(other, own, RUN, m->proc, m->group, request));
    else
        WORKS(comex_nbacc(op, scale, own, other, RUN, m->proc, m->group, request));
}

/* The arrays change when the call has returned. */
static void move_section(const struct move *m, comex_request_t *request)
{
    int own[2] = { local_stride[0], local_stride[1] };
    int other[2] = { remote_stride[0], remote_stride[1] };
    int n[3] = { RUN, COLUMNS, ROWS };
    void *scale = &scales[m->type];
    const int op = op_of[m->type];

    if (m->style == BLOCKING && m->way == PUT)
        WORKS(comex_puts(m->local, own, m->remote, other, n, 2, m->proc, m->group));
    else if (m->style == BLOCKING && m->way == GET)
        WORKS(comex_gets(m->remote, other, m->local, own, n, 2, m->proc, m->group));
    else if (m->style == BLOCKING)
        WORKS(comex_accs(op, scale, m->local, own, m->remote, other, n, 2, m->proc, m->group));
    else if (m->way == PUT)
        WORKS(comex_nbputs(m->local, own, m->remote, other, n, 2, m->proc, m->group, request));
    else if (m->way == GET)
        WORKS(comex_nbgets(m->remote, other, m->local, own, n, 2, m->proc, m->group, request));
    else
        WORKS(comex_nbaccs(op, scale, m->local, own, m->remote, other, n, 2, m->proc, m->group,
                           request));
    memset(own, 0, sizeof(own));
    memset(other, 0, sizeof(other));
    memset(n, 0, sizeof(n));
}

static void move_list(const struct move *m, comex_giov_t *iov, int len, comex_request_t *request)
{
    void *scale = &scales[m->type];
    const int op = op_of[m->type];

    if (m->style == BLOCKING && m->way == PUT)
        WORKS(comex_putv(iov, len, m->proc, m->group));
    else if (m->style == BLOCKING && m->way == GET)
        WORKS(comex_getv(iov, len, m->proc, m->group));
    else if (m->style == BLOCKING)
        WORKS(comex_accv(op, scale, iov, len, m->proc, m->group));
    else if (m->way == PUT)
        WORKS(comex_nbputv(iov, len, m->proc, m->group, request));
    else if (m->way == GET)
        WORKS(comex_nbgetv(iov, len, m->proc, m->group, request));
    else
        WORKS(comex_nbaccv(op, scale, iov, len, m->proc, m->group, request));
}

/* The section as lists: three segments of 48 bytes in each of two descriptors or, if MANY, one
 * segment of 16 bytes in each of 18. */
static void move_lists(const struct move *m, comex_request_t *request)
{
    const int bytes = m->format == MANY ? 16 : RUN, each = m->format == MANY ? 1 : COLUMNS;
    const int per_run = RUN / bytes, n = RUNS * per_run;
    void *src[RUNS * 3], *dst[RUNS * 3];
    comex_giov_t iov[RUNS * 3];

    for (int i = 0; i < n; i++) {
        char *own = m->local + local_at(i / per_run) + i % per_run * bytes;
        char *other = m->remote + remote_at(i / per_run) + i % per_run * bytes;

        src[i] = m->way == GET ? other : own;
        dst[i] = m->way == GET ? own : other;
    }
    for (int i = 0; i < n / each; i++) {
        iov[i].src = src + i * each;
        iov[i].dst = dst + i * each;
        iov[i].count = each;
        iov[i].bytes = bytes;
    }
    move_list(m, iov, n / each, request);
    memset(src, 0, sizeof(src));
    memset(dst, 0, sizeof(dst));
    memset(iov, 0, sizeof(iov));
}

static void move(const struct move *m)
{
    const int n = m->format == CONTIGUOUS ? RUNS : 1;
    comex_request_t requests[RUNS];

    for (int i = 0; i < n; i++) {
        comex_request_t *request = m->style == NO_REQUEST ? NULL : &requests[i];

        if (m->format == CONTIGUOUS)
            move_run(m, i, request);
        else if (m->format == STRIDED)
            move_section(m, request);
        else
            move_lists(m, request);
    }
    if (m->style == NO_REQUEST)
        WORKS(m->way == GET ? comex_wait_proc(m->proc, m->group) : comex_wait_all(m->group));
    for (int i = 0; i < n && (m->style == WAITED || m->style == TESTED); i++) {
        for (int status = m->style == TESTED; status != 0;)
            WORKS(comex_test(&requests[i], &status));
        WORKS(comex_wait(&requests[i])); /* after a test: it is complete */
    }
}

/* --- one group --- */

static void check_area(const char *who, const char *area, int seed, int type)
{
    static char local[AREA], expected[AREA];

    memset(local, 0, sizeof(local));
    memset(expected, 0, sizeof(expected));
    fill(type, local, seed);
    model(PUT, type, local, expected);
    model(ACC, type, local, expected);
    CHECK(memcmp(area, expected, AREA) == 0, "%s, type %d", who, type);
}

/* A put, an accumulate and a get of one section. In FORMATS * STYLES steps each of the three calls
 * occurs in each format and style. Blocking ones follow each other without a fence. */
static void step(int number, int type, char *own, char *other, int proc, comex_group_t group)
{
    static char local[AREA], got[AREA], back[AREA];
    const int format = number % FORMATS, style = (number / FORMATS + number) % STYLES;
    struct move m = { PUT, type, format, style, local, other, proc, group };

    memset(local, 0, sizeof(local));
    memset(got, 0, sizeof(got));
    memset(back, 0, sizeof(back));
    memset(own, 0, AREA);
    WORKS(comex_barrier(group));
    fill(type, local, me + number);
    move(&m);
    if (m.style != BLOCKING)
        WORKS(number % 2 ? comex_fence_proc(proc, group) : comex_fence_all(group));
    m.way = ACC;
    m.format = (format + 1) % FORMATS;
    move(&m);
    m.way = GET;
    m.format = (format + 2) % FORMATS;
    m.local = got;
    if (m.style != BLOCKING)
        WORKS(comex_fence_proc(proc, group));
    move(&m);
    model(PUT, type, got, back);
    check_area("what a get returns", back, me + number, type);
    WORKS(comex_barrier(group));
}

static void transfers(comex_group_t group)
{
    static int done; /* steps in all groups */
    int rank, size, left;
    void **areas;

    WORKS(comex_group_rank(group, &rank));
    WORKS(comex_group_size(group, &size));
    areas = (void **)malloc((size_t)size * sizeof(*areas));
    WORKS(comex_malloc(areas, AREA, group));
    WORKS(comex_group_translate_world(group, (rank + size - 1) % size, &left));
    for (int i = 0; i < FORMATS * STYLES; i++) {
        const int number = done++, type = number % TYPES, right = (rank + 1) % size;

        step(number, type, (char *)areas[rank], (char *)areas[right], right, group);
        check_area("what a neighbour has put", (char *)areas[rank], left + number, type);
        WORKS(comex_barrier(group));
    }
    WORKS(comex_free(areas[rank], group));
    free(areas);
}

/* --- read-modify-write --- */

static void counters(comex_group_t group)
{
    enum { TIMES = 50 };
    int rank, size, before;
    long long_before;
    void **words;

    WORKS(comex_group_rank(group, &rank));
    WORKS(comex_group_size(group, &size));
    words = (void **)malloc((size_t)size * sizeof(*words));
    WORKS(comex_malloc(words, 4 * sizeof(long), group));
    memset(words[rank], 0, 4 * sizeof(long));
    WORKS(comex_barrier(group));
    for (int i = 0; i < TIMES; i++) {
        WORKS(comex_rmw(COMEX_FETCH_AND_ADD, &before, words[size - 1], -3, size - 1, group));
        CHECK(before % 3 == 0 && before <= -3 * i, "%d", before);
        WORKS(comex_rmw(COMEX_FETCH_AND_ADD_LONG, &long_before, (long *)words[size - 1] + 1,
                        1 << 30, size - 1, group));
        CHECK(long_before >= (long)i << 30, "%ld", long_before);
    }
    before = rank + 1;
    long_before = (long)(rank + 1) << 40;
    WORKS(comex_rmw(COMEX_SWAP, &before, (long *)words[(rank + 1) % size] + 2, 0, (rank + 1) % size,
                    group));
    WORKS(comex_rmw(COMEX_SWAP_LONG, &long_before, (long *)words[(rank + 1) % size] + 3, 0,
                    (rank + 1) % size, group));
    CHECK_EQ(before, 0);
    CHECK_EQ(long_before, 0);
    WORKS(comex_barrier(group));
    if (rank == size - 1) {
        CHECK_EQ(*(int *)words[rank], -3 * TIMES * size);
        CHECK_EQ(((long *)words[rank])[1], (long)TIMES * size << 30);
    }
    CHECK_EQ(*(int *)(void *)((long *)words[rank] + 2), (rank + size - 1) % size + 1);
    CHECK_EQ(((long *)words[rank])[3], (long)((rank + size - 1) % size + 1) << 40);
    WORKS(comex_free(words[rank], group));
    free(words);
}

int main(int argc, char **argv)
{
    comex_group_t half, reversed;

    WORKS(comex_init_args(&argc, &argv));
    test_started();
    set_scales();
    half = test_half();
    reversed = test_reversed();
    transfers(COMEX_GROUP_WORLD);
    transfers(half);
    transfers(reversed);
    counters(COMEX_GROUP_WORLD);
    counters(half);
    counters(reversed);
    WORKS(comex_group_free(reversed));
    WORKS(comex_group_free(half));
    return test_finish();
}
