/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_rows.c - the registry of rows: what is measured at which sizes and against which budget.
 * Owns      the table
 * Threads   read only
 * Uses      bench.h
 */
#include "bench.h"

#include <string.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define Q      AQ_TABLE_QUICK
#define L      AQ_TABLE_LATENCY
#define W      AQ_TABLE_BANDWIDTH
#define F      AQ_TABLE_REMOTE
#define O      (AQ_TABLE_REMOTE | AQ_TABLE_ONLY_REMOTE)

/* Same-host budgets: what a row may cost at most, as a multiple of its limit. */
#define EIGHT    1.1
#define STORE8   1.3
#define COPY     1.05
#define SHORT    1.15
#define MEDIUM4K 1.3
#define STRIDED  1.0
#define BARRIER  1.15
#define FADD     2.0

/* Nanoseconds above the limit: negative, see struct aq_row. */
#define ABOVE(ns) (-(double)(ns))

/* Budgets between ranks that share no memory, against sockets. */
#define REMOTE_SHORT  1.1
#define REMOTE_FLOOD  0.35
#define REMOTE_STREAM 1.25 /* four fifths of the bandwidth */

/* Budgets of the mpi conduit, against the same MPI. */
#define RAW_SHORT  1.15
#define RAW_FLOOD  1.2
#define RAW_EIGHT  1.3
#define RAW_STREAM 1.0527 /* 0.95 of the bandwidth */

/* Budgets of the ibv conduit, against verbs on the same device. */
static const struct {
    const struct aq_row_kind *kind;
    uint64_t size;
    double budget;
} aq_row_verbs[] = {
    { &aq_kind_am_short, 0, 1.2 },
    { &aq_kind_put, 8, 1.15 },
    { &aq_kind_get, 8, 1.15 },
    { &aq_kind_fadd, 8, 1.15 },
    { &aq_kind_put_stream, KIB(64), 1.1112 }, /* 0.9 of the bandwidth */
    { &aq_kind_get_stream, KIB(64), 1.1112 },
};

/* clang-format off */
static const struct aq_row aq_row_table[] = {
    { &aq_kind_am_short, 0, SHORT, Q | L | F, REMOTE_SHORT, RAW_SHORT },
    { &aq_kind_am_two_lines, 0, 0, 0, 0, 0 },
    { &aq_kind_am_medium, 8, 0, Q | L | F, 0, 0 },
    { &aq_kind_am_medium, 64, 0, 0, 0, 0 },
    { &aq_kind_am_medium, 512, 0, L | F, 0, 0 },
    { &aq_kind_am_medium, KIB(4), MEDIUM4K, Q | L | F, 0, 0 },
    { &aq_kind_am_medium, KIB(32), 0, L | F, 0, 0 },
    { &aq_kind_am_medium, 65000, 0, L | F, 0, 0 },
    { &aq_kind_am_medium_read, KIB(4), 0, 0, 0, 0 },
    { &aq_kind_am_long, 8, 0, L, 0, 0 },
    { &aq_kind_am_long, 512, 0, L, 0, 0 },
    { &aq_kind_am_long, KIB(4), 0, Q | L | F, 0, 0 },
    { &aq_kind_am_long, KIB(32), 0, O | L, 0, 0 },
    { &aq_kind_am_long, KIB(64), 0, L | F, 0, 0 },
    { &aq_kind_am_long, MIB(1), 0, L | F, 0, 0 },
    { &aq_kind_am_short_flood, 0, 0, Q | F, REMOTE_FLOOD, RAW_FLOOD },
    { &aq_kind_am_medium_flood, 64, 0, W | F, 0, 0 },
    { &aq_kind_am_medium_flood, 512, 0, W | F, 0, 0 },
    { &aq_kind_am_medium_flood, KIB(4), 0, Q | W | F, 0, 0 },
    { &aq_kind_am_medium_flood, KIB(32), 0, W | F, 0, 0 },
    { &aq_kind_am_long_flood, 64, 0, W, 0, 0 },
    { &aq_kind_am_long_flood, KIB(4), 0, Q | W | F, 0, 0 },
    { &aq_kind_am_long_flood, KIB(64), 0, W | F, 0, 0 },
    { &aq_kind_am_long_flood, MIB(1), 0, W | F, 0, 0 },
    { &aq_kind_am_rate, 0, 0, F, 0, 0 },

    { &aq_kind_self_short, 0, ABOVE(15), Q, 0, 0 },
    { &aq_kind_self_medium, 64, ABOVE(20), Q, 0, 0 },
    { &aq_kind_self_negotiated, 64, ABOVE(20), Q, 0, 0 },

    { &aq_kind_put8_latency, 8, EIGHT, Q | L, 0, 0 },
    { &aq_kind_put8_rate, 8, EIGHT, Q | L, 0, 0 },
    { &aq_kind_put8_nbi_rate, 8, EIGHT, Q, 0, 0 },
    { &aq_kind_put8_store, 8, STORE8, Q, 0, 0 },
    { &aq_kind_get8_latency, 8, EIGHT, Q | L, 0, 0 },
    { &aq_kind_get8_rate, 8, EIGHT, Q | L, 0, 0 },
    { &aq_kind_get8_nbi_rate, 8, EIGHT, Q, 0, 0 },
    { &aq_kind_get8_pair, 8, EIGHT, Q, 0, 0 },
    { &aq_kind_putval8, 8, EIGHT, Q | L, 0, 0 },
    { &aq_kind_getval8_rate, 8, EIGHT, Q, 0, 0 },
    { &aq_kind_getval8, 8, 0, Q | L, 0, 0 },
    { &aq_kind_put, 8, 0, F, 0, RAW_EIGHT },
    { &aq_kind_put, 64, 0, W | F, 0, 0 },
    { &aq_kind_put, 512, 0, W | F, 0, 0 },
    { &aq_kind_put, KIB(4), 0, Q | L | W | F, 0, 0 },
    { &aq_kind_put, KIB(64), COPY, Q | L | W | F, 0, 0 },
    { &aq_kind_put, KIB(256), COPY, W | F, 0, 0 },
    { &aq_kind_put, MIB(1), COPY, Q | W | F, 0, 0 },
    { &aq_kind_put, MIB(4), COPY, W | F, 0, 0 },
    { &aq_kind_put, MIB(16), COPY, Q | W | F, 0, 0 },
    { &aq_kind_put_cold, KIB(64), COPY, W, 0, 0 },
    { &aq_kind_put_cold, MIB(1), COPY, W, 0, 0 },
    { &aq_kind_put_cold, MIB(16), COPY, W, 0, 0 },
    { &aq_kind_get, 8, 0, F, 0, RAW_EIGHT },
    { &aq_kind_get, 64, 0, W | F, 0, 0 },
    { &aq_kind_get, 512, 0, W | F, 0, 0 },
    { &aq_kind_get, KIB(4), 0, Q | L | W | F, 0, 0 },
    { &aq_kind_get, KIB(64), COPY, Q | L | W | F, 0, 0 },
    { &aq_kind_get, KIB(256), COPY, W | F, 0, 0 },
    { &aq_kind_get, MIB(1), COPY, Q | W | F, 0, 0 },
    { &aq_kind_get, MIB(4), COPY, W | F, 0, 0 },
    { &aq_kind_get, MIB(16), COPY, Q | W | F, 0, 0 },
    { &aq_kind_get_cold, KIB(64), COPY, W, 0, 0 },
    { &aq_kind_get_cold, MIB(1), COPY, W, 0, 0 },
    { &aq_kind_get_cold, MIB(16), COPY, W, 0, 0 },
    { &aq_kind_put_nb, 8, 0, 0, 0, 0 },
    { &aq_kind_put_nb, KIB(4), 0, 0, 0, 0 },
    { &aq_kind_put_nb, KIB(64), 0, 0, 0, 0 },
    { &aq_kind_put_nbi, 8, 0, Q | F, 0, 0 },
    { &aq_kind_put_nbi, 64, 0, F, 0, 0 },
    { &aq_kind_put_nbi, 512, 0, F, 0, 0 },
    { &aq_kind_put_nbi, KIB(4), 0, F, 0, 0 },
    { &aq_kind_put_nbi, KIB(64), 0, 0, 0, 0 },
    { &aq_kind_get_nb, 8, 0, 0, 0, 0 },
    { &aq_kind_get_nb, KIB(4), 0, 0, 0, 0 },
    { &aq_kind_get_nb, KIB(64), 0, 0, 0, 0 },
    { &aq_kind_get_nbi, 8, 0, Q | F, 0, 0 },
    { &aq_kind_get_nbi, KIB(4), 0, F, 0, 0 },
    { &aq_kind_get_nbi, KIB(64), 0, 0, 0, 0 },
    { &aq_kind_put_stream, 64, 0, O | W, 0, 0 },
    { &aq_kind_put_stream, 512, 0, O | W, 0, 0 },
    { &aq_kind_put_stream, KIB(4), 0, O | W, 0, 0 },
    { &aq_kind_put_stream, KIB(64), 0, O | W | Q, 0, 0 },
    { &aq_kind_put_stream, KIB(256), 0, O | W, 0, 0 },
    { &aq_kind_put_stream, MIB(1), 0, O | W | Q, REMOTE_STREAM, RAW_STREAM },
    { &aq_kind_put_stream, MIB(4), 0, O | W, 0, 0 },
    { &aq_kind_put_stream, MIB(16), 0, O | W, 0, 0 },
    { &aq_kind_get_stream, KIB(64), 0, O | W, 0, 0 },
    { &aq_kind_get_stream, MIB(1), 0, O | W | Q, 0, RAW_STREAM },

    { &aq_kind_strided_put, KIB(8), STRIDED, F, 0, 0 },
    { &aq_kind_strided_put, KIB(128), STRIDED, Q | F, 0, 0 },
    { &aq_kind_strided_put, MIB(2), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_put_gaps, KIB(8), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_put_gaps, KIB(128), STRIDED, Q, 0, 0 },
    { &aq_kind_strided_put_gaps, MIB(2), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_get, KIB(128), STRIDED, Q, 0, 0 },
    { &aq_kind_strided_get_gaps, KIB(128), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_runs, KIB(128), 0, 0, 0, 0 },
    { &aq_kind_strided_runs_gaps, KIB(128), 0, 0, 0, 0 },
    { &aq_kind_strided_bytes, KIB(128), 0, 0, 0, 0 },
    { &aq_kind_strided_1d, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_1d, 16, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d, 64, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_1d, 128, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d, KIB(1), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d_packed, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_1d_packed, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d_packed, 64, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_1d_packed, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_1d_packed, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_2d, 16, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d, 64, STRIDED, Q | F, 0, 0 },
    { &aq_kind_strided_2d, 128, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d, 256, STRIDED, F, 0, 0 },
    { &aq_kind_strided_2d, KIB(1), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d, KIB(4), STRIDED, F, 0, 0 },
    { &aq_kind_strided_2d_packed, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_2d_packed, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d_packed, 64, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_2d_packed, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_2d_packed, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d, 8, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d, 64, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d_packed, 8, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d_packed, 64, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d_packed, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_3d_packed, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_4d, 16, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, 64, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_4d, 128, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, KIB(1), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d, KIB(4), STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d_packed, 8, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_4d_packed, 32, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d_packed, 64, STRIDED, Q, 0, 0 },
    { &aq_kind_strided_4d_packed, 256, STRIDED, 0, 0, 0 },
    { &aq_kind_strided_4d_packed, KIB(4), STRIDED, 0, 0, 0 },

    { &aq_kind_fadd, 8, FADD, Q | L | F, 0, 0 },
    { &aq_kind_add, 8, FADD, 0, 0, 0 },
    { &aq_kind_fcas, 8, FADD, 0, 0, 0 },
    { &aq_kind_fadd_double, 8, FADD, 0, 0, 0 },
    { &aq_kind_fadd_contended, 8, 0, Q, 0, 0 },

    { &aq_kind_broadcast, 8, 0, Q | L | F, 0, 0 },
    { &aq_kind_broadcast, 64, 0, 0, 0, 0 },
    { &aq_kind_broadcast, KIB(1), 0, F, 0, 0 },
    { &aq_kind_broadcast, KIB(64), 0, F, 0, 0 },
    { &aq_kind_broadcast, MIB(1), 0, Q | F, 0, 0 },
    { &aq_kind_broadcast, MIB(16), 0, 0, 0, 0 },
    { &aq_kind_reduce, 8, 0, Q | L | F, 0, 0 },
    { &aq_kind_reduce, KIB(1), 0, F, 0, 0 },
    { &aq_kind_reduce, KIB(64), 0, F, 0, 0 },
    { &aq_kind_reduce, MIB(1), 0, Q | F, 0, 0 },
    { &aq_kind_allreduce, 8, 0, Q | L | F, 0, 0 },
    { &aq_kind_allreduce, 64, 0, 0, 0, 0 },
    { &aq_kind_allreduce, KIB(1), 0, F, 0, 0 },
    { &aq_kind_allreduce, KIB(64), 0, F, 0, 0 },
    { &aq_kind_allreduce, MIB(1), 0, Q | F, 0, 0 },
    { &aq_kind_allreduce, MIB(16), 0, 0, 0, 0 },
    { &aq_kind_barrier, 0, BARRIER, Q | L | F, BARRIER, BARRIER },
    { &aq_kind_barrier_named, 0, BARRIER, F, BARRIER, 0 },
    { &aq_kind_progress_put, 8, 0, 0, 0, 0 },
    { &aq_kind_progress_get, KIB(4), 0, 0, 0, 0 },
    { &aq_kind_overlap_put, MIB(1), 0, F, 0, 0 },
    { &aq_kind_overlap_get, MIB(1), 0, F, 0, 0 },
};
/* clang-format on */

const struct aq_row *aq_rows(size_t *count_out)
{
    *count_out = sizeof(aq_row_table) / sizeof(aq_row_table[0]);
    return aq_row_table;
}

bool aq_row_name_wanted(const struct aq_options *options, const char *name)
{
    const char *part = options->only;

    if (part == NULL)
        return true;
    while (*part != '\0') {
        size_t n = strcspn(part, ",");
        char one[64];

        if (n > 0 && n < sizeof(one)) {
            memcpy(one, part, n);
            one[n] = '\0';
            if (strstr(name, one) != NULL)
                return true;
        }
        part += n;
        part += *part == ',';
    }
    return false;
}

bool aq_row_wanted(const struct aq_options *options, const struct aq_row *row, bool remote)
{
    const char *table = options->table;

    if (remote ? (row->tables & AQ_TABLE_REMOTE) == 0 : (row->tables & AQ_TABLE_ONLY_REMOTE) != 0)
        return false;
    if (options->only != NULL) {
        char label[80];

        snprintf(label, sizeof(label), "%s/%llu", row->kind->name, (unsigned long long)row->size);
        return aq_row_name_wanted(options, label);
    }
    if (options->quick && (row->tables & Q) == 0)
        return false;
    if (table == NULL || strcmp(table, "all") == 0)
        return true;
    if (strcmp(table, "latency") == 0)
        return (row->tables & L) != 0;
    if (strcmp(table, "bandwidth") == 0)
        return (row->tables & W) != 0;
    if (strcmp(table, "budget") == 0)
        return aq_row_budget(options, row, remote) != 0;
    return false;
}

double aq_row_budget(const struct aq_options *options, const struct aq_row *row, bool remote)
{
    if (!remote)
        return row->budget;
    for (size_t i = 0; options->verbs && i < sizeof(aq_row_verbs) / sizeof(aq_row_verbs[0]); i++)
        if (row->kind == aq_row_verbs[i].kind && row->size == aq_row_verbs[i].size)
            return aq_row_verbs[i].budget;
    if (options->verbs)
        return 0;
    return options->raw ? row->raw_budget : row->remote_budget;
}

static const char *const aq_row_raw_names[] = { [AQ_RAW_NONE] = NULL,
                                                [AQ_RAW_PING] = "MPI_Send, MPI_Recv",
                                                [AQ_RAW_FLOOD] = "MPI_Isend",
                                                [AQ_RAW_PUT] = "MPI_Put, flush",
                                                [AQ_RAW_GET] = "MPI_Get, flush",
                                                [AQ_RAW_PUT_STREAM] = "MPI_Put or MPI_Isend",
                                                [AQ_RAW_GET_STREAM] = "MPI_Get or MPI_Isend",
                                                [AQ_RAW_FADD] = "MPI_Fetch_and_op, flush",
                                                [AQ_RAW_BARRIER] = "MPI_Barrier",
                                                [AQ_RAW_BROADCAST] = "MPI_Bcast",
                                                [AQ_RAW_REDUCE] = "MPI_Reduce",
                                                [AQ_RAW_ALLREDUCE] = "MPI_Allreduce" };

static const char *const aq_row_verbs_names[AQ_RAW_ALLREDUCE + 1] = {
    [AQ_RAW_PING] = "verbs: send, receive",   [AQ_RAW_PUT] = "verbs: write, completion",
    [AQ_RAW_GET] = "verbs: read, completion", [AQ_RAW_PUT_STREAM] = "verbs: writes",
    [AQ_RAW_GET_STREAM] = "verbs: reads",     [AQ_RAW_FADD] = "verbs: fetch-and-add"
};

const char *aq_row_limit_name(const struct aq_options *options, const struct aq_row *row)
{
    if (!options->remote)
        return row->kind->limit_name;
    if (options->verbs)
        return aq_row_verbs_names[row->kind->raw];
    return options->raw ? aq_row_raw_names[row->kind->raw] : row->kind->remote.name;
}
