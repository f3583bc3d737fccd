/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_against.c - aq-bench --against PREFIX: our installed tree and another implementation of the
 * interface, measured in turn by one program.
 * Owns      the folder of the programs, gone at the end
 * Threads   one
 * Uses      bench_against.h
 *
 * A round runs one job of each tree over each conduit; the next round begins with the other tree.
 * What counts is the median over the rounds of a round's ratio, ours to theirs: both jobs of a
 * round have met the machine in about the same state.
 */
#include "bench_against.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static void aq_against_clean(const struct aq_against *against)
{
    DIR *dir = opendir(against->temp);
    struct dirent *entry;
    char path[4400];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", against->temp, entry->d_name);
        unlink(path);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(against->temp);
}

static int aq_against_build_all(const struct aq_against *against)
{
    for (size_t c = 0; c < against->conduit_count; c++) {
        for (unsigned tree = 0; tree < AQ_TREES; tree++) {
            if (aq_front_stop() || aq_against_build(against, tree, c) != 0)
                return -1;
        }
    }
    return 0;
}

static int aq_against_measure(struct aq_against *against)
{
    const bool terminal = isatty(STDERR_FILENO);

    for (unsigned round = 0; round < against->rounds; round++) {
        for (size_t c = 0; c < against->conduit_count; c++) {
            for (unsigned k = 0; k < AQ_TREES; k++) {
                const unsigned tree = (round + k) % AQ_TREES;

                if (terminal)
                    fprintf(stderr, "\r\033[Kround %u of %u: %s, %s", round + 1, against->rounds,
                            against->conduits[c], against->trees[tree].label);
                if (aq_front_stop() || aq_against_job(against, tree, c, round) != 0)
                    return -1;
            }
        }
    }
    if (terminal)
        fprintf(stderr, "\r\033[K");
    return 0;
}

static int aq_against_whole(struct aq_against *against)
{
    const struct aq_options *options = against->options;
    size_t above;

    if (aq_against_build_all(against) != 0 || aq_against_measure(against) != 0)
        return 2;
    if (against->row_count == 0) {
        fprintf(stderr, "aq-bench: --only %s: no row's name/size contains that\n",
                options->only != NULL ? options->only : "");
        return 2;
    }
    above = aq_against_print(against, stdout);
    if (aq_against_files(against) != 0)
        return 2;
    return options->strict && above > 0 ? 1 : 0;
}

int aq_against_run(const struct aq_options *options)
{
    struct aq_against *against = calloc(1, sizeof(*against));
    int code;

    if (against == NULL)
        return 2;
    against->options = options;
    against->rounds = options->rounds;
    if (aq_against_find(against) != 0 || aq_front_temp(against->temp, sizeof(against->temp)) != 0) {
        free(against);
        return 2;
    }
    aq_front_catch();
    code = aq_against_whole(against);
    aq_against_clean(against);
    free(against);
    return aq_front_stop() ? aq_front_stop_code() : code;
}
