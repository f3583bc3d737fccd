/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_other.c - another launcher starts the ranks: -spawner=mpi (MPIRUN_CMD), -spawner=pmi
 * (PMIRUN_CMD). This process becomes that launcher.
 * Owns      the template words %N %P %A %Q %C %M %H %D %V and the options that pass variables on
 * Threads   one
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/launcher/aq_launch.h"

enum aq_other_kind {
    AQ_OTHER_UNKNOWN,
    AQ_OTHER_OPENMPI,
    AQ_OTHER_MPICH,
    AQ_OTHER_SRUN,
    AQ_OTHER_INHERITS,
    AQ_OTHER_JSRUN
};

/* the words of the command under construction */
struct aq_words {
    char **word;
    size_t count;
};

static void aq_words_add(struct aq_words *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void aq_words_add(struct aq_words *w, const char *fmt, ...)
{
    char **grown = realloc(w->word, (w->count + 2) * sizeof(*grown));
    va_list ap;
    int rc = -1;

    if (grown != NULL) {
        w->word = grown;
        va_start(ap, fmt);
        rc = vasprintf(&w->word[w->count], fmt, ap);
        va_end(ap);
    }
    if (rc < 0) {
        fputs("gasnetrun: out of memory\n", stderr);
        exit(1);
    }
    w->word[++w->count] = NULL;
}

/* recognises the launcher by its version text */
static enum aq_other_kind aq_other_recognise(const char *launcher)
{
    const char *base = strrchr(launcher, '/') != NULL ? strrchr(launcher, '/') + 1 : launcher;
    char *command, text[65536]; /* read to its end: the launcher must not write to a closed pipe */
    FILE *f;

    if (strcmp(base, "srun") == 0)
        return AQ_OTHER_SRUN;
    if (strcmp(base, "prun") == 0 || strcmp(base, "aprun") == 0 || strcmp(base, "poe") == 0)
        return AQ_OTHER_INHERITS;
    if (strcmp(base, "jsrun") == 0)
        return AQ_OTHER_JSRUN;
    if (asprintf(&command, "'%s' --help 2>&1 </dev/null", launcher) < 0)
        return AQ_OTHER_UNKNOWN;
    f = strchr(launcher, '\'') == NULL ? popen(command, "r") : NULL;
    free(command);
    if (f == NULL)
        return AQ_OTHER_UNKNOWN;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    pclose(f);
    if (strcasestr(text, "open mpi") != NULL || strcasestr(text, "open-mpi") != NULL
        || strcasestr(text, "prterun") != NULL)
        return AQ_OTHER_OPENMPI;
    if (strstr(text, "-envlist") != NULL || strcasestr(text, "hydra") != NULL)
        return AQ_OTHER_MPICH;
    return AQ_OTHER_UNKNOWN;
}

static bool aq_other_listed(const char *list, const char *name, size_t len)
{
    while (list != NULL && *list != '\0') {
        size_t item = strcspn(list, ",");

        if (item == len && strncmp(list, name, len) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

/* returns true if NAME=VALUE is to be passed on: GASNET_*, AQ_*, and what -E names */
static bool aq_other_passes(const struct aq_launch *lo, const char *entry)
{
    size_t len = strcspn(entry, "=");

    return strncmp(entry, "GASNET_", 7) == 0 || strncmp(entry, "AQ_", 3) == 0
           || aq_other_listed(lo->env_names, entry, len);
}

/* characters that no shell and no decoder interprets */
static bool aq_other_is_plain(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_./:,+-@=", c) != NULL);
}

/* Characters that a shell on the way might interpret become %0HH, which the library decodes. */
static void aq_other_encode(const struct aq_launch *lo)
{
    extern char **environ;
    char *text, *to, name[256];

    for (size_t i = 0; environ[i] != NULL; i++) {
        const size_t len = strcspn(environ[i], "=");
        const char *from = environ[i] + len + (environ[i][len] == '=');

        text = malloc(4 * strlen(from) + 1);
        if (text == NULL)
            aq_launch_error(lo, "out of memory");
        for (to = text; *from != '\0'; from++)
            if (aq_other_is_plain(*from))
                *to++ = *from;
            else
                to += sprintf(to, "%%0%02X", (unsigned char)*from);
        *to = '\0';
        if (aq_other_passes(lo, environ[i]) && len < sizeof(name)) {
            snprintf(name, sizeof(name), "%.*s", (int)len, environ[i]);
            setenv(name, text, 1); /* the variable exists: the list of variables does not move */
        }
        free(text);
    }
}

/* adds the options that make the launcher pass the variables on */
static void aq_other_environment(const struct aq_launch *lo, enum aq_other_kind kind,
                                 struct aq_words *w)
{
    extern char **environ;
    char *list = NULL, *longer;

    for (char **e = environ; *e != NULL; e++) {
        int len = (int)strcspn(*e, "=");

        if (!aq_other_passes(lo, *e))
            continue;
        if (kind == AQ_OTHER_OPENMPI) {
            aq_words_add(w, "-x");
            aq_words_add(w, "%.*s", len, *e);
        } else if (kind == AQ_OTHER_JSRUN) {
            aq_words_add(w, "-E");
            aq_words_add(w, "%.*s", len, *e);
        } else if (kind == AQ_OTHER_MPICH
                   && asprintf(&longer, "%s%s%.*s", list != NULL ? list : "",
                               list != NULL ? "," : "", len, *e)
                          > 0) {
            free(list);
            list = longer;
        }
    }
    if (list != NULL) {
        aq_words_add(w, "-envlist");
        aq_words_add(w, "%s", list);
    }
    free(list);
}

/* %N: the number of ranks, then the options that place them */
static void aq_other_count(const struct aq_launch *lo, enum aq_other_kind kind, struct aq_words *w)
{
    uint32_t per_host = lo->hosts > 0 ? (lo->ranks + lo->hosts - 1) / lo->hosts : 0;

    aq_words_add(w, "%u", lo->ranks);
    if (kind
        /* lets ranks outnumber cores, as the library's own spawners do */
        == AQ_OTHER_OPENMPI) {
        aq_words_add(w, "-map-by");
        if (per_host > 0)
            aq_words_add(w, "ppr:%u:node:OVERSUBSCRIBE", per_host);
        else
            aq_words_add(w, ":OVERSUBSCRIBE");
    } else if (kind == AQ_OTHER_SRUN && per_host > 0) {
        aq_words_add(w, "-N");
        aq_words_add(w, "%u", lo->hosts);
    } else if (kind == AQ_OTHER_MPICH && per_host > 0) {
        aq_words_add(w, "-ppn");
        aq_words_add(w, "%u", per_host);
    } else if (per_host > 0) {
        fprintf(stderr, "gasnetrun: WARNING: do not know how to tell this launcher about -N %u\n",
                lo->hosts);
    }
    if (kind == AQ_OTHER_SRUN && lo->cpus > 0) {
        aq_words_add(w, "-c");
        aq_words_add(w, "%d", lo->cpus);
    } else if (kind == AQ_OTHER_OPENMPI && lo->cpus == 0) {
        aq_words_add(w, "-bind-to");
        aq_words_add(w, "none");
    }
    aq_other_environment(lo, kind, w);
}

/* %P: the program, behind `env` where the launcher has no option to pass variables on */
static void aq_other_program(const struct aq_launch *lo, enum aq_other_kind kind,
                             struct aq_words *w)
{
    extern char **environ;
    const char *env = getenv("GASNET_ENVCMD");

    if (kind == AQ_OTHER_UNKNOWN) {
        aq_words_add(w, "%s", env != NULL && *env != '\0' ? env : "env");
        for (char **e = environ; *e != NULL; e++)
            if (aq_other_passes(lo, *e))
                aq_words_add(w, "%s", *e);
    }
    aq_words_add(w, "%s", lo->program);
}

static void aq_other_arguments(const struct aq_launch *lo, bool quoted, struct aq_words *w)
{
    for (int i = 1; lo->argv[i] != NULL; i++)
        aq_words_add(w, quoted ? "'%s'" : "%s", lo->argv[i]);
}

static const char *aq_other_node_file(const struct aq_launch *lo)
{
    static const char *const names[] = { "GASNET_NODEFILE", "PBS_NODEFILE", "GASNET_RM_NODEFILE" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]) != NULL && *getenv(names[i]) != '\0')
            return getenv(names[i]);
    aq_launch_error(lo, "%%H in the command needs a file of host names: set GASNET_NODEFILE=FILE");
}

/* one word of the template */
static void aq_other_word(const struct aq_launch *lo, enum aq_other_kind kind, const char *t,
                          struct aq_words *w)
{
    char cwd[4096];

    if (strcmp(t, "%N") == 0) {
        aq_other_count(lo, kind, w);
    } else if (strcmp(t, "%P") == 0) {
        aq_other_program(lo, kind, w);
    } else if (strcmp(t, "%A") == 0 || strcmp(t, "%Q") == 0) {
        aq_other_arguments(lo, t[1] == 'Q', w);
    } else if (strcmp(t, "%C") == 0) {
        aq_other_program(lo, kind, w);
        aq_other_arguments(lo, false, w);
    } else if (strcmp(t, "%M") == 0) {
        aq_words_add(w, "%u", lo->hosts > 0 ? lo->hosts : lo->ranks);
    } else if (strcmp(t, "%H") == 0) {
        aq_words_add(w, "%s", aq_other_node_file(lo));
    } else if (strcmp(t, "%D") == 0) {
        aq_words_add(w, "%s", getcwd(cwd, sizeof(cwd)) != NULL ? cwd : ".");
    } else if (strcmp(t, "%V") == 0) {
        if (lo->verbose > 0)
            aq_words_add(w, "-v");
    } else {
        aq_words_add(w, "%s", t);
    }
}

static bool aq_other_template_ok(const char *t)
{
    bool whole = strstr(t, "%C") != NULL;

    return strstr(t, "%N") != NULL
           && (whole
               || (strstr(t, "%P") != NULL
                   && (strstr(t, "%A") != NULL || strstr(t, "%Q") != NULL)));
}

/* A shell without job control starts its background jobs with INT and QUIT ignored; these signals
 * end the job all the same. */
static void aq_other_heed_signals(void)
{
    static const int signals[] = { SIGINT, SIGQUIT, SIGTERM };

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
}

void aq_launch_exec(struct aq_launch *lo)
{
    bool mpi = lo->spawner == AQ_SPAWNER_MPI;
    const char *name = mpi ? "MPIRUN_CMD" : "PMIRUN_CMD";
    const char *set = getenv(name), *ok = getenv(mpi ? "MPIRUN_CMD_OK" : "PMIRUN_CMD_OK");
    char *text, *save = NULL, *t;
    struct aq_words w = { NULL, 0 };
    enum aq_other_kind kind;

    text = set != NULL && *set != '\0' ? strdup(set) : aq_launch_mpirun(lo);
    if (text == NULL)
        aq_launch_error(lo, "out of memory");
    if (ok == NULL && strstr(text, name) == NULL && !aq_other_template_ok(text))
        aq_launch_error(
            lo, "%s='%s' must contain %%N and %%C (or %%P and %%A); set %s_OK=1 to use it as it is",
            name, text, name);
    t = strtok_r(text, " \t\n", &save);
    kind = t != NULL ? aq_other_recognise(t) : AQ_OTHER_UNKNOWN;
    if (lo->encode == 1 || (lo->encode < 0 && kind == AQ_OTHER_UNKNOWN && lo->info->encodes_env))
        aq_other_encode(lo);
    for (; t != NULL; t = strtok_r(NULL, " \t\n", &save))
        aq_other_word(lo, kind, t, &w);
    if (lo->tell) {
        fprintf(stderr, "gasnetrun: %s:", lo->dry ? "would start" : "running");
        for (size_t i = 0; i < w.count; i++)
            fprintf(stderr, " %s", w.word[i]);
        fputc('\n', stderr);
    }
    if (lo->dry)
        exit(0);
    aq_other_heed_signals();
    execvp(w.word[0], w.word);
    aq_launch_error(
        lo, "cannot run %s: %s; name the launcher in %s, for instance %s='mpirun -np %%N %%C'",
        w.word[0], strerror(errno), name, name);
}
