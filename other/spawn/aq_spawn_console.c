/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_console.c - see aq_spawn_console.h.
 * How       SPAWNFN=L is aq_spawn_fork_self(), which needs only the library. For S and C this
 *           process becomes the conduit's launcher, which is looked for where this library was
 *           installed or built
 */
#include "other/spawn/aq_spawn_console.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_places.h" /* AQ_BINDIR, AQ_BUILDDIR */
#include "other/spawn/aq_supervise.h"

static const struct aq_conduit_info *aq_console_conduit;

static const char *aq_console_program(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[len > 0 ? len : 0] = '\0';
    return path;
}

static _Noreturn void aq_console_usage(const char *name)
{
    fprintf(stderr,
            "usage: %s N [arguments]\n"
            "  N                    number of ranks\n"
            "  GASNET_SPAWNFN=L     start them on this host\n"
            "  GASNET_SPAWNFN=S     start them by ssh on the hosts of GASNET_SSH_SERVERS='host1 "
            "host2 ...'\n"
            "  GASNET_SPAWNFN=C     start them by the command GASNET_CSPAWN_CMD\n"
            "or: %s -np N, gasnetrun_%s -n N [-H host1,host2], mpirun -n N, srun --mpi=pmix "
            "-n N; then %s [arguments]\n",
            name, aq_console_conduit->command, aq_console_conduit->name, name);
    exit(AQ_SUPERVISE_LOST);
}

/* reads the number of ranks and removes it from the client's arguments */
static uint32_t aq_console_count(int *argc, char ***argv)
{
    const char *name =
        argc != NULL && argv != NULL && *argc > 0 ? (*argv)[0] : aq_console_program();
    int64_t n;

    if (argc == NULL || argv == NULL) {
        fprintf(stderr,
                "%s: this program keeps its arguments from gex_Client_Init; start it by %s\n", name,
                aq_console_conduit->command);
        aq_console_usage(name);
    }
    if (*argc < 2)
        aq_console_usage(name);
    if (!aq_env_parse_int((*argv)[1], &n) || n < 1 || n > AQ_SPAWN_MAX_JOB) {
        fprintf(stderr, "%s: '%s' is no number of ranks (1 to %u); write for instance %s 4\n", name,
                (*argv)[1], AQ_SPAWN_MAX_JOB, name);
        exit(1);
    }
    for (int i = 1; i < *argc; i++)
        (*argv)[i] = (*argv)[i + 1];
    --*argc;
    return (uint32_t)n;
}

bool aq_spawn_console_is_asked(const struct aq_conduit_info *conduit, const int *argc, char ***argv)
{
    int64_t n;

    if (getenv("GASNET_PSHM_NODES") == NULL || !conduit->starts_itself || argc == NULL
        || argv == NULL || *argc < 2 || !aq_env_parse_int((*argv)[1], &n))
        return false;
    aq_env_adopt_aliases(conduit->aliases, true);
    return aq_env_get("GASNET_SPAWNFN") != NULL;
}

static char aq_console_spawn_function(void)
{
    const char *text = aq_env_get("GASNET_SPAWNFN");

    if (text == NULL || *text == '\0')
        return 'S';
    if (strlen(text) == 1 && strchr("LSClsc", *text) != NULL)
        return (char)(*text & ~0x20);
    fprintf(stderr, "GASNET_SPAWNFN=%s: write L (this host), S (ssh) or C (GASNET_CSPAWN_CMD)\n",
            text);
    exit(1);
}

/* tries the conduit's launcher in dir, then the other names of the same program */
static void aq_console_try(const char *dir, size_t len, char *const argv[])
{
    const struct aq_conduit_info *c = aq_console_conduit;
    const char *const names[][2] = { { c->command, "" },
                                     { "gasnetrun_", c->name },
                                     { "gasnetrun", "" } };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%.*s/%s%s", (int)len, dir, names[i][0], names[i][1])
            >= (int)sizeof(path))
            continue;
        if (access(path, X_OK) == 0)
            execv(path, argv);
    }
}

static void aq_console_search(const char *program, char *const argv[])
{
    const char *prefix = getenv("GASNET_PREFIX"), *dir = getenv("PATH"),
               *slash = strrchr(program, '/');
    char bin[PATH_MAX];
    struct stat build;

    if (prefix != NULL && snprintf(bin, sizeof(bin), "%s/bin", prefix) < (int)sizeof(bin))
        aq_console_try(bin, strlen(bin), argv);
    aq_console_try(AQ_BINDIR, strlen(AQ_BINDIR), argv);
    /* where it was built, if this user owns it; on another machine anybody may have made a folder
     * of that name */
    if (stat(AQ_BUILDDIR, &build) == 0 && build.st_uid == geteuid())
        aq_console_try(AQ_BUILDDIR, strlen(AQ_BUILDDIR), argv);
    if (slash != NULL)
        aq_console_try(program, (size_t)(slash - program), argv);
    while (dir != NULL && *dir != '\0') {
        size_t len = strcspn(dir, ":");

        aq_console_try(dir, len, argv);
        dir += len + (dir[len] == ':');
    }
}

static _Noreturn void aq_console_become_launcher(uint32_t ranks, char function, int argc,
                                                 char **argv)
{
    char count[16], spawn[2] = { function, '\0' };
    char **words = calloc((size_t)argc + 8, sizeof(*words));
    const char *program = aq_console_program();
    int to = 0;

    if (words == NULL || *program == '\0')
        aq_fatal(
            "this program cannot find out its own path: /proc is not there, or no memory is left");
    snprintf(count, sizeof(count), "%u", ranks);
    words[to++] = (char *)aq_console_conduit->command; /* never written to */
    words[to++] = (char *)"-np";
    words[to++] = count;
    words[to++] = (char *)"-spawn";
    words[to++] = spawn;
    words[to++] = (char *)"--";
    words[to++] = (char *)program;
    for (int i = 1; i < argc; i++)
        words[to++] = argv[i];
    fflush(NULL);
    aq_console_search(program, words);
    fprintf(stderr,
            "%s: GASNET_SPAWNFN=%c needs the program %s, which is not in %s, nor beside this "
            "program or in PATH; set "
            "GASNET_PREFIX to where this package is installed, or start the ranks on this host by "
            "GASNET_SPAWNFN=L\n",
            argv[0], function, aq_console_conduit->command, AQ_BINDIR);
    exit(1);
}

int aq_spawn_console(struct aq_spawn_state *st, const struct aq_conduit_info *conduit, int *argc,
                     char ***argv)
{
    uint32_t ranks;
    char function;

    aq_console_conduit = conduit;
    ranks = aq_console_count(argc, argv);
    aq_env_adopt_aliases(conduit->aliases, true);
    function = aq_console_spawn_function();
    if (function != 'L')
        aq_console_become_launcher(ranks, function, *argc, *argv);
    if (ranks > AQ_SPAWN_MAX_RANKS) {
        fprintf(stderr,
                "%s: a host can have at most %u ranks; for %u name hosts in GASNET_SSH_SERVERS and "
                "set GASNET_SPAWNFN=S\n",
                (*argv)[0], AQ_SPAWN_MAX_RANKS, ranks);
        exit(1);
    }
    if (aq_env_get("GASNET_MASTERIP") == NULL) /* an empty value set by the user prevents it */
        (void)aq_env_change("GASNET_MASTERIP", "127.0.0.1");
    st->console = true;
    return aq_spawn_fork_self(st, ranks);
}
