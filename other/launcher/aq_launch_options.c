/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_options.c - the command line of gasnetrun.
 * Threads   one
 * Promise   an error message names what is wrong and what would be right; exit status 1
 */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "other/launcher/aq_hostlist.h"
#include "other/launcher/aq_launch.h"
#include "other/launcher/aq_launch_self.h"

static const char *const aq_spawner_names[] = { "", "fork", "ssh", "mpi", "pmi", "custom" };

static const char *const aq_bind_names[] = { "none", "hwthread", "core", "cache",
                                             "numa", "socket",   "share" };

static const char aq_launch_help[] =
    "  -n N, -np N        start N ranks (required)\n"
    "  -N H               spread them over H hosts\n"
    "  -H A,B:4,C         on these hosts, at most 4 ranks on B\n"
    "  --hostfile FILE    on the hosts in FILE, one a line; slots=4 after one: at most 4 ranks\n"
    "  -c N               N CPUs a rank, bound to them; 0: do not bind\n"
    "  -c CONDUIT         use this conduit (programs linked with the shared library)\n"
    "  -E A,B,C           environment variables to pass on, besides GASNET_*\n"
    "  -v                 say what is done; -v -v: also what becomes of each rank\n"
    "  -t                 say what would be done, do nothing\n"
    "  -k                 accepted, as -v; there are no temporary files to keep\n"
    "  -l, --prefix-output   put the rank before each line of output\n"
    "  --bind[=WHAT]      bind each rank to a core (WHAT: none hwthread core cache numa socket, or "
    "share,\n"
    "                     an equal share of the cores)\n"
    "  -spawner=S         fork, ssh (hosts by -H), mpi (MPIRUN_CMD) or pmi (PMIRUN_CMD)\n"
    "  -encode, -noencode conduit mpi: encode values of variables, for launchers that give them to "
    "a shell, or not\n"
    "  --                 end of options\n";

static void aq_launch_usage(const struct aq_launch *lo, FILE *to)
{
    fprintf(to, "usage: %s -n N [options] [--] program [arguments]\n%s", lo->self, aq_launch_help);
}

void aq_launch_error(const struct aq_launch *lo, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s: ", lo->self);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

void aq_launch_tell(const struct aq_launch *lo, const char *fmt, ...)
{
    va_list ap;

    if (!lo->tell)
        return;
    fputs("gasnetrun: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

const char *aq_launch_spawner_name(enum aq_spawner spawner)
{
    return aq_spawner_names[spawner];
}

static _Noreturn void aq_launch_misuse(const struct aq_launch *lo, const char *what,
                                       const char *word)
{
    fprintf(stderr, "%s: %s '%s'\n", lo->self, what, word);
    aq_launch_usage(lo, stderr);
    exit(1);
}

static uint32_t aq_launch_count(const struct aq_launch *lo, const char *option, const char *text,
                                int64_t min, int64_t max, const char *what)
{
    int64_t n;

    if (!aq_env_parse_int(text, &n))
        aq_launch_error(lo, "%s %s: not a number; write for instance %s 4", option, text, option);
    if (n < min || n > max)
        aq_launch_error(lo, "%s %s: %s must be %lld to %lld", option, text, what, (long long)min,
                        (long long)max);
    return (uint32_t)n;
}

/* A conduit that this installation does not know has the properties of a plain one. */
static const struct aq_conduit_info *aq_launch_info(const char *name)
{
    static struct aq_conduit_info plain = { .about = "" };
    const struct aq_conduit_info *info = aq_conduit_info_find(name);

    plain.name = name;
    return info != NULL ? info : &plain;
}

static void aq_launch_set_conduit(struct aq_launch *lo, const char *name)
{
    if (strlen(name) == 0 || strlen(name) >= sizeof(lo->conduit))
        aq_launch_error(lo, "'%s' is not the name of a conduit", name);
    for (size_t i = 0; i <= strlen(name); i++) {
        if (name[i] != '\0' && !isalnum((unsigned char)name[i]))
            aq_launch_error(lo, "'%s' is not the name of a conduit", name);
        lo->conduit[i] = (char)tolower((unsigned char)name[i]);
    }
    lo->info = aq_launch_info(lo->conduit);
}

/* -c 4 sets CPUs, -c udp a conduit */
static void aq_launch_option_c(struct aq_launch *lo, const char *value)
{
    if (isdigit((unsigned char)value[0]) || value[0] == '-') {
        lo->cpus = (int)aq_launch_count(lo, "-c", value, 0, 65536, "CPUs a rank");
        return;
    }
    aq_launch_set_conduit(lo, value);
    lo->conduit_given = true;
}

void aq_launch_option_env(struct aq_launch *lo, const char *list)
{
    char *joined;

    for (const char *c = list; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != ',')
            aq_launch_error(lo, "-E %s: '%c' cannot stand in the name of a variable", list, *c);
    if (lo->env_names == NULL) {
        lo->env_names = strdup(list);
    } else if (asprintf(&joined, "%s,%s", lo->env_names, list) > 0) {
        free(lo->env_names);
        lo->env_names = joined;
    }
}

static enum aq_spawner aq_launch_parse_spawner(const struct aq_launch *lo, const char *from,
                                               const char *text)
{
    for (int i = 1; i <= AQ_SPAWNER_PMI; i++)
        if (strcasecmp(text, aq_spawner_names[i]) == 0)
            return (enum aq_spawner)i;
    if (strcasecmp(text, "pmix") == 0)
        return AQ_SPAWNER_PMI;
    aq_launch_error(lo, "%s=%s: not a spawner; there are fork, ssh, mpi and pmi", from, text);
}

/* from: the option or variable that says so */
static enum aq_launch_bind aq_launch_parse_bind(const struct aq_launch *lo, const char *from,
                                                const char *what)
{
    for (int i = 0; i < AQ_BINDS; i++)
        if (strcasecmp(what, aq_bind_names[i]) == 0)
            return (enum aq_launch_bind)i;
    aq_launch_error(lo, "%s=%s: choose none, hwthread, core, cache, numa, socket or share", from,
                    what);
}

static void aq_launch_option_bind(struct aq_launch *lo, const char *what)
{
    lo->bind = aq_launch_parse_bind(lo, "--bind", what);
    lo->bind_given = true;
}

static void aq_launch_settle_bind(struct aq_launch *lo)
{
    const char *set = getenv("AQ_BIND");

    if (lo->cpus == 0)
        lo->bind = AQ_BIND_NONE;
    else if (lo->bind_given)
        return;
    else if (lo->cpus > 0)
        lo->bind = AQ_BIND_CORE;
    else if (set != NULL && *set != '\0')
        lo->bind = aq_launch_parse_bind(lo, "AQ_BIND", set);
    else
        lo->bind = AQ_BIND_NONE;
}

/* Options of gasnetrun_mpi: percent encoding for launchers that pass words to a shell. This
 * library's arguments need none. */
static bool aq_launch_option_encode(struct aq_launch *lo, const char *word)
{
    const bool no = strncmp(word, "-no", 3) == 0;
    const char *what = word + (no ? 3 : 1);

    if (!lo->info->encodes_env || strncmp(what, "encode", 6) != 0)
        return false;
    if (what[6] == '\0' || strcmp(what + 6, "-env") == 0)
        lo->encode = !no;
    else if (strcmp(what + 6, "-args") != 0)
        return false;
    else if (!no)
        aq_launch_error(lo, "-encode-args: arguments are never encoded; "
                            "quote them for the launcher by %%Q in MPIRUN_CMD");
    return true;
}

/* options of one word; returns true if this was one */
static bool aq_launch_flag(struct aq_launch *lo, const char *word)
{
    if (strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0) {
        lo->verbose++;
    } else if (strcmp(word, "-vv") == 0) {
        lo->verbose += 2;
    } else if (strcmp(word, "-t") == 0) {
        lo->dry = true;
    } else if (strcmp(word, "-k") == 0) {
        lo->keep = true;
    } else if (strcmp(word, "-l") == 0 || strcmp(word, "--prefix-output") == 0) {
        lo->prefix = true;
    } else if (strcmp(word, "--bind") == 0) {
        aq_launch_option_bind(lo, "core");
    } else if (strncmp(word, "--bind=", 7) == 0) {
        aq_launch_option_bind(lo, word + 7);
    } else if (strncmp(word, "-spawner=", 9) == 0) {
        lo->spawner = aq_launch_parse_spawner(lo, "-spawner", word + 9);
    } else if (strncmp(word, "--spawner=", 10) == 0) {
        lo->spawner = aq_launch_parse_spawner(lo, "--spawner", word + 10);
    } else if (strcmp(word, "--help") == 0) {
        aq_launch_usage(lo, stdout);
        exit(0);
    } else {
        return aq_launch_option_encode(lo, word);
    }
    return true;
}

/* returns the value of an option, in the same word (-n4) or the next (-n 4); NULL if word is
 * another option */
static const char *aq_launch_value(const struct aq_launch *lo, const char *option, char **argv,
                                   int *at)
{
    size_t len = strlen(option);
    const char *word = argv[*at];

    if (strncmp(word, option, len) != 0)
        return NULL;
    if (word[len] != '\0')
        return word + len + (word[len] == '=');
    if (argv[*at + 1] == NULL)
        aq_launch_misuse(lo, "a value must follow", option);
    return argv[++*at];
}

static void aq_launch_option(struct aq_launch *lo, char **argv, int *at)
{
    const char *word = argv[*at], *value;

    if (aq_launch_flag(lo, word))
        return;
    if ((value = aq_launch_value(lo, "-np", argv, at)) != NULL
        || (value = aq_launch_value(lo, "-n", argv, at)) != NULL)
        lo->ranks = aq_launch_count(lo, "-n", value, 1, AQ_SPAWN_MAX_JOB, "the number of ranks");
    else if ((value = aq_launch_value(lo, "--hostfile", argv, at)) != NULL
             || (value = aq_launch_value(lo, "-hostfile", argv, at)) != NULL)
        lo->host_file = value;
    else if ((value = aq_launch_value(lo, "-H", argv, at)) != NULL)
        lo->host_list = value;
    else if ((value = aq_launch_value(lo, "-N", argv, at)) != NULL)
        lo->hosts = aq_launch_count(lo, "-N", value, 1, 1000000, "the number of hosts");
    else if ((value = aq_launch_value(lo, "-c", argv, at)) != NULL)
        aq_launch_option_c(lo, value);
    else if ((value = aq_launch_value(lo, "-E", argv, at)) != NULL)
        aq_launch_option_env(lo, value);
    else
        aq_launch_misuse(lo, "unknown option", word);
}

static bool aq_launch_runnable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *aq_launch_look_up(const char *name, const char **why_out)
{
    const char *dir = getenv("PATH");
    char *path = NULL;

    if (strchr(name, '/') != NULL) {
        if (aq_launch_runnable(name))
            return strdup(name);
        *why_out = access(name, F_OK) == 0 ? "not an executable file" : "no such program";
        return NULL;
    }
    if (asprintf(&path, "./%s", name) > 0 && aq_launch_runnable(path))
        return path;
    free(path);
    while (dir != NULL && *dir != '\0') {
        size_t len = strcspn(dir, ":");

        if (asprintf(&path, "%.*s/%s", (int)len, dir, name) > 0 && aq_launch_runnable(path))
            return path;
        free(path);
        dir += len + (dir[len] == ':');
    }
    *why_out = "no such program here or in PATH";
    return NULL;
}

static char *aq_launch_find(const struct aq_launch *lo, const char *name)
{
    const char *why;
    char *path = aq_launch_look_up(name, &why);

    /* each host looks the program up itself; this host need not have it */
    if (path == NULL && lo->spawner != AQ_SPAWNER_SSH && lo->spawner != AQ_SPAWNER_CUSTOM)
        aq_launch_error(lo, "%s: %s", name, why);
    return path;
}

/* gasnetrun_smp names its conduit, and the launcher of a conduit is its command; plain gasnetrun
 * uses GASNET_CONDUIT, else the program's conduit, else the first conduit */
static void aq_launch_conduit_of_name(struct aq_launch *lo)
{
    const char *under = strrchr(lo->self, '_'), *env = getenv("GASNET_CONDUIT");

    for (size_t i = 0; aq_conduit_infos[i] != NULL; i++) {
        const char *command = aq_conduit_infos[i]->command;

        if (command != NULL && strncmp(lo->self, command, strlen(command)) == 0) {
            aq_launch_set_conduit(lo, aq_conduit_infos[i]->name);
            lo->conduit_given = true;
            return;
        }
    }
    if (under != NULL && under[1] != '\0') {
        aq_launch_set_conduit(lo, under + 1);
        lo->conduit_given = true;
        return;
    }
    aq_launch_set_conduit(lo, env != NULL && *env != '\0' ? env : aq_conduit_infos[0]->name);
}

/* No conduit is named: uses the one that the program was built for. */
static void aq_launch_conduit_of_program(struct aq_launch *lo)
{
    const char *env = getenv("GASNET_CONDUIT");
    char found[16] = "";

    lo->conduit_known = lo->conduit_given || (env != NULL && *env != '\0');
    if (lo->conduit_known)
        return;
    for (int i = 0; *found == '\0' && lo->argv[i] != NULL; i++)
        aq_launch_conduit_in(lo->argv[i], found);
    lo->conduit_known = *found != '\0';
    if (lo->conduit_known)
        aq_launch_set_conduit(lo, found);
}

/* -spawner overrides GASNET_<C>_SPAWNER. Without both it is ssh if the user names hosts, else
 * fork */
static void aq_launch_choose_spawner(struct aq_launch *lo)
{
    char name[64];
    const char *text;

    if (lo->spawner != AQ_SPAWNER_UNSET)
        return;
    snprintf(name, sizeof(name), "GASNET_%s_SPAWNER", lo->conduit);
    for (char *c = name; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    text = getenv(name);
    lo->spawner = AQ_SPAWNER_FORK;
    if (text != NULL && *text != '\0' && !aq_amudprun_is(lo))
        lo->spawner = aq_launch_parse_spawner(lo, name, text);
    else if (lo->info->starts_itself)
        lo->spawner = aq_launch_self_spawner(lo);
    else if (lo->info->spawner != AQ_SPAWNER_UNSET)
        lo->spawner = lo->info->spawner;
    else if (lo->host_list != NULL || lo->host_file != NULL
             || (!lo->info->one_host && aq_hosts_explicit(NULL, NULL, NULL)))
        lo->spawner = AQ_SPAWNER_SSH;
}

static void aq_launch_settle(struct aq_launch *lo)
{
    if (lo->keep && lo->verbose == 0)
        lo->verbose = 1;
    /* -t shows the command as it would be, without the variables that only -v sets */
    lo->tell = lo->verbose > 0 || lo->dry;
    aq_launch_choose_spawner(lo);
    if (lo->ranks == 0)
        aq_launch_misuse(lo, "say how many ranks to start:", "-n N");
    if (lo->info->why_not_spawned != NULL && lo->spawner != AQ_SPAWNER_MPI
        && lo->spawner != AQ_SPAWNER_PMI)
        aq_launch_error(lo, "spawner %s cannot start the %s conduit, %s",
                        aq_launch_spawner_name(lo->spawner), lo->conduit,
                        lo->info->why_not_spawned);
    if (lo->spawner == AQ_SPAWNER_FORK && lo->ranks > AQ_SPAWN_MAX_RANKS)
        aq_launch_error(lo, "-n %u: a host can have at most %u ranks; name more hosts by -H",
                        lo->ranks, AQ_SPAWN_MAX_RANKS);
    if (lo->spawner == AQ_SPAWNER_FORK && (lo->host_list != NULL || lo->host_file != NULL))
        aq_launch_error(
            lo, "-H and --hostfile name hosts for -spawner=ssh; spawner fork runs all ranks here");
    if (lo->spawner == AQ_SPAWNER_FORK && lo->hosts > 1)
        aq_launch_error(
            lo,
            "-N %u: spawner fork runs all ranks on this host; name hosts by -H, or use -N 1 or "
            "-spawner=pmi",
            lo->hosts);
    if (lo->hosts > lo->ranks)
        aq_launch_error(lo, "-N %u: more hosts than the %u ranks of -n", lo->hosts, lo->ranks);
    aq_launch_settle_bind(lo);
}

/* returns the index of the program's word */
static int aq_launch_options(struct aq_launch *lo, int argc, char **argv)
{
    int at = 1;

    for (; at < argc && argv[at][0] == '-' && argv[at][1] != '\0'; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        aq_launch_option(lo, argv, &at);
    }
    if (at >= argc)
        aq_launch_misuse(lo, "name the program to run:", "program [arguments]");
    return at;
}

void aq_launch_parse(struct aq_launch *lo, int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int at;

    memset(lo, 0, sizeof(*lo));
    lo->cpus = lo->encode = -1;
    lo->self = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "gasnetrun";
    aq_launch_conduit_of_name(lo);
    at = aq_amudprun_is(lo) ? aq_amudprun_parse(lo, argc, argv) : aq_launch_options(lo, argc, argv);
    lo->argv = argv + at;
    aq_launch_conduit_of_program(lo);
    if (lo->info->starts_itself)
        aq_launch_self_names();
    aq_launch_settle(lo);
    lo->program = aq_launch_find(lo, argv[at]);
}
