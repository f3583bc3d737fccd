/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_against_build.c - aq-bench --against: finds two installed implementations by their
 * pkg-config files and compiles the portable program against each.
 * Owns      nothing
 * Threads   one
 * Uses      bench_against.h; pkg-config, and the compilers that gasnet-CONDUIT-MODE.pc names
 *
 * Our tree is the one that this program is installed in, or AQ_BENCH_PREFIX. Flags are those of
 * each tree's own file; -O2 and alignment stand before them, so that a tree's own level counts.
 */
#include "bench_against.h"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef AQ_BENCH_PREFIX
#define AQ_BENCH_PREFIX "/usr/local"
#endif
#define AQ_BENCH_SOURCE "bench_portable.c"

static const char *const aq_pc_places[] = { "lib/pkgconfig", "lib64/pkgconfig", "lib/*/pkgconfig",
                                            "share/pkgconfig" };

/* The folder under the prefix that has gasnet-CONDUIT-MODE.pc; "" if there is none. Which may be
 * "*", any conduit. */
static bool aq_pc_folder(const char *prefix, const char *conduit, const char *mode, char *dir,
                         size_t size)
{
    for (size_t i = 0; i < sizeof(aq_pc_places) / sizeof(aq_pc_places[0]); i++) {
        char pattern[4400];
        glob_t found;
        bool any;

        snprintf(pattern, sizeof(pattern), "%s/%s/gasnet-%s-%s.pc", prefix, aq_pc_places[i],
                 conduit, mode);
        any = glob(pattern, 0, NULL, &found) == 0;
        if (any)
            snprintf(dir, size, "%.*s", (int)(strrchr(found.gl_pathv[0], '/') - found.gl_pathv[0]),
                     found.gl_pathv[0]);
        globfree(&found);
        if (any)
            return true;
    }
    return false;
}

/* The prefix of our tree. */
static void aq_ours(const char *mode, char *prefix, size_t size)
{
    const char *set = getenv("AQ_BENCH_PREFIX");
    const char *self = aq_front_self();
    const char *slash = strrchr(self, '/');
    char dir[4400];

    snprintf(prefix, size, "%s", set != NULL ? set : AQ_BENCH_PREFIX);
    if (set != NULL || slash == NULL)
        return;
    snprintf(prefix, size, "%.*s/..", (int)(slash - self), self);
    if (!aq_pc_folder(prefix, "*", mode, dir, sizeof(dir)))
        snprintf(prefix, size, "%s", AQ_BENCH_PREFIX);
}

static bool aq_tree_has(const struct aq_against *against, unsigned tree, const char *conduit)
{
    char dir[4400];

    return aq_pc_folder(against->trees[tree].prefix, conduit, against->options->mode, dir,
                        sizeof(dir));
}

static int aq_tree_lacks(const struct aq_against *against, unsigned tree, const char *conduit)
{
    const struct aq_tree *t = &against->trees[tree];

    fprintf(stderr,
            "aq-bench: %s has no gasnet-%s-%s.pc in lib/pkgconfig, lib64/pkgconfig, "
            "lib/*/pkgconfig or share/pkgconfig; %s\n",
            t->prefix, strcmp(conduit, "*") == 0 ? "CONDUIT" : conduit, against->options->mode,
            tree == AQ_OURS ? "set AQ_BENCH_PREFIX to the tree where Aqueduct is installed"
                            : "--against wants the prefix of an installed implementation");
    return -1;
}

static int aq_add_conduit(struct aq_against *against, const char *name, size_t length, bool must)
{
    char conduit[16];

    if (length >= sizeof(conduit) || against->conduit_count == AQ_AGAINST_CONDUITS) {
        fprintf(stderr, "aq-bench: --conduits %s: at most %d names of conduits, such as smp,udp\n",
                name, AQ_AGAINST_CONDUITS);
        return -1;
    }
    snprintf(conduit, sizeof(conduit), "%.*s", (int)length, name);
    for (unsigned tree = 0; tree < AQ_TREES; tree++) {
        if (aq_tree_has(against, tree, conduit))
            continue;
        if (must)
            return aq_tree_lacks(against, tree, conduit);
        fprintf(stderr, "aq-bench: %s is left out: %s has no gasnet-%s-%s.pc\n", conduit,
                against->trees[tree].prefix, conduit, against->options->mode);
        return 0;
    }
    snprintf(against->conduits[against->conduit_count++], sizeof(conduit), "%s", conduit);
    return 0;
}

static int aq_find_conduits(struct aq_against *against)
{
    const char *list = against->options->conduits;
    const bool must = list != NULL;

    if (!must)
        list = "smp,udp,mpi";
    while (*list != '\0') {
        const size_t n = strcspn(list, ",");

        if (n > 0 && aq_add_conduit(against, list, n, must) != 0)
            return -1;
        list += n + (list[n] == ',');
    }
    if (against->conduit_count > 0)
        return 0;
    fprintf(stderr, "aq-bench: no conduit is left to compare; --conduits names others\n");
    return -1;
}

int aq_against_find(struct aq_against *against)
{
    const struct aq_options *options = against->options;
    struct aq_tree *ours = &against->trees[AQ_OURS], *peers = &against->trees[AQ_PEERS];

    aq_ours(options->mode, ours->prefix, sizeof(ours->prefix));
    ours->label = "ours";
    snprintf(peers->prefix, sizeof(peers->prefix), "%s", options->against);
    peers->label = options->label != NULL ? options->label : "theirs";
    for (unsigned tree = 0; tree < AQ_TREES; tree++) {
        if (!aq_tree_has(against, tree, "*"))
            return aq_tree_lacks(against, tree, "*");
    }
    return aq_find_conduits(against);
}

void aq_against_program(const struct aq_against *against, unsigned tree, size_t conduit, char *path,
                        size_t size)
{
    snprintf(path, size, "%s/%s-%s", against->temp, tree == AQ_OURS ? "ours" : "theirs",
             against->conduits[conduit]);
}

void aq_against_log(const struct aq_against *against, char *path, size_t size)
{
    snprintf(path, size, "%s/log", against->temp);
}

void aq_against_show(const struct aq_against *against)
{
    char path[4200], line[1024];
    FILE *f;

    aq_against_log(against, path, sizeof(path));
    f = fopen(path, "r");
    for (int i = 0; f != NULL && i < 40 && fgets(line, sizeof(line), f) != NULL; i++)
        fprintf(stderr, "  %s", line);
    if (f != NULL)
        fclose(f);
}

/* The compiler and its flags by the tree's file. The aligned loops keep the shortest rows from
 * depending on where the compiler happens to place them; a compiler without these options does
 * without. */
#define AQ_BUILD_SCRIPT                                                                      \
    "exec >'%s' 2>&1; export PKG_CONFIG_PATH='%s'\n"                                         \
    "pc=gasnet-%s-%s; out='%s'\n"                                                            \
    "cc=$(pkg-config --variable=GASNET_CC $pc) && ld=$(pkg-config --variable=GASNET_LD $pc)" \
    " && cflags=$(pkg-config --cflags $pc) && libs=$(pkg-config --libs $pc) || exit 1\n"     \
    "compile() { echo \"$cc $* -c bench_portable.c\"; $cc \"$@\" -c -o \"$out.o\" '%s'; }\n" \
    "compile -O2 -falign-functions=64 -falign-loops=64 $cflags >/dev/null 2>&1"              \
    " || compile -O2 $cflags || exit 1\n"                                                    \
    "echo \"$ld bench_portable.o $libs\"; $ld -o \"$out\" \"$out.o\" $libs"

int aq_against_build(const struct aq_against *against, unsigned tree, size_t conduit)
{
    const char *name = against->conduits[conduit], *mode = against->options->mode;
    char dir[4400], source[4500], program[4200], log[4200], command[20000];

    if (!aq_front_sources(AQ_BENCH_SOURCE, dir, sizeof(dir))) {
        fprintf(stderr, "aq-bench: %s is not in %s; set AQ_BENCH_DATADIR to its folder\n",
                AQ_BENCH_SOURCE, dir);
        return -1;
    }
    snprintf(source, sizeof(source), "%s/" AQ_BENCH_SOURCE, dir);
    aq_pc_folder(against->trees[tree].prefix, name, mode, dir, sizeof(dir));
    aq_against_program(against, tree, conduit, program, sizeof(program));
    aq_against_log(against, log, sizeof(log));
    snprintf(command, sizeof(command), AQ_BUILD_SCRIPT, log, dir, name, mode, program, source);
    if (system(command) == 0)
        return 0;
    if (aq_front_stop())
        return -1;
    fprintf(stderr, "aq-bench: %s cannot be built for %s by gasnet-%s-%s.pc of %s:\n",
            AQ_BENCH_SOURCE, name, name, mode, against->trees[tree].prefix);
    aq_against_show(against);
    return -1;
}
