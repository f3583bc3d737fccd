/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_self.c - see aq_launch_self.h.
 * Threads   one
 */
#include "other/launcher/aq_launch_self.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_env_alias.h"
#include "other/launcher/aq_hostlist.h"

static void aq_amudprun_usage(const struct aq_launch *lo, FILE *to)
{
    fprintf(to, "usage: %s -np N [options] program [arguments]\n", lo->self);
    fputs("  -np N, -n N, -N N    start N ranks (required)\n"
          "  -spawn F             L: on this host; S: by ssh on the hosts of GASNET_SSH_SERVERS; "
          "C: by GASNET_CSPAWN_CMD\n"
          "                       (without it GASNET_SPAWNFN counts, without that S)\n"
          "  -depth D             GASNET_NETWORKDEPTH=D: most requests on their way to one peer\n"
          "  -E A=1, -E A,B       sets a variable; names those that every rank gets\n"
          "  -v                   say what is done\n"
          "  -h                   this text\n"
          "  --                   end of options\n",
          to);
}

static _Noreturn void aq_amudprun_misuse(const struct aq_launch *lo, const char *what,
                                         const char *word)
{
    fprintf(stderr, "%s: %s '%s'\n", lo->self, what, word);
    aq_amudprun_usage(lo, stderr);
    exit(1);
}

bool aq_amudprun_is(const struct aq_launch *lo)
{
    const char *command = lo->info->command;

    return command != NULL && strncmp(lo->self, command, strlen(command)) == 0;
}

static int64_t aq_amudprun_number(const struct aq_launch *lo, const char *option, const char *text,
                                  int64_t max)
{
    int64_t n;

    if (!aq_env_parse_int(text, &n) || n < 1 || n > max)
        aq_launch_error(lo, "%s %s: give a number of 1 to %lld", option, text, (long long)max);
    return n;
}

static bool aq_amudprun_takes_value(const char *word)
{
    static const char *const with[] = { "-np", "-n", "-N", "-spawn", "-depth", "-E" };

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        if (strcmp(word, with[i]) == 0)
            return true;
    return false;
}

/* value: NAME=TEXT, or a list of names */
static void aq_amudprun_env(struct aq_launch *lo, const char *value)
{
    const size_t len = strcspn(value, "=");
    char *name = strndup(value, len);

    if (name == NULL)
        aq_launch_error(lo, "no memory is left");
    if (value[len] == '=' && (len == 0 || strchr(name, ',') != NULL))
        aq_launch_error(lo, "-E %s: a text is for one variable, NAME=TEXT", value);
    aq_launch_option_env(lo, name);
    if (value[len] == '=' && setenv(name, value + len + 1, 1) != 0)
        aq_launch_error(lo, "-E %s: %s", value, strerror(errno));
    free(name);
}

static void aq_amudprun_option(struct aq_launch *lo, const char *word, const char *value)
{
    if (strcmp(word, "-spawn") == 0) {
        if (strlen(value) != 1 || strchr("LSClsc", value[0]) == NULL)
            aq_amudprun_misuse(lo, "-spawn takes L, S or C, not", value);
        setenv("GASNET_SPAWNFN", value, 1);
    } else if (strcmp(word, "-depth") == 0) {
        aq_amudprun_number(lo, word, value, 65535);
        setenv("GASNET_NETWORKDEPTH", value, 1);
    } else if (strcmp(word, "-E") == 0) {
        aq_amudprun_env(lo, value);
    } else {
        lo->ranks = (uint32_t)aq_amudprun_number(lo, word, value, AQ_SPAWN_MAX_JOB);
    }
}

int aq_amudprun_parse(struct aq_launch *lo, int argc, char **argv)
{
    int at = 1;

    for (; at < argc && argv[at][0] == '-' && argv[at][1] != '\0'; at++) {
        const char *word = argv[at];

        if (strcmp(word, "--") == 0) {
            at++;
            break;
        }
        if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
            aq_amudprun_usage(lo, stdout);
            exit(0);
        }
        if (strcmp(word, "-v") == 0)
            lo->verbose++;
        else if (!aq_amudprun_takes_value(word))
            aq_amudprun_misuse(lo, "unknown option", word);
        else if (at + 1 >= argc)
            aq_amudprun_misuse(lo, "a value must follow", word);
        else
            aq_amudprun_option(lo, word, argv[++at]);
    }
    if (lo->ranks == 0)
        aq_amudprun_misuse(lo, "say how many ranks to start:", "-np N");
    if (at >= argc)
        aq_amudprun_misuse(lo, "name the program to run:", "program [arguments]");
    return at;
}

static const char *aq_launch_self_get(const char *name)
{
    return getenv(name);
}

static bool aq_launch_self_set(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0;
}

static void aq_launch_self_warn(const struct aq_env_alias *alias)
{
    fprintf(stderr, "*** WARNING: %s='%s' is used; %s='%s' contradicts it\n", alias->name,
            alias->value, alias->other, alias->other_value);
}

void aq_launch_self_names(void)
{
    for (size_t i = 0; aq_conduit_infos[i] != NULL; i++)
        if (aq_conduit_infos[i]->aliases != NULL)
            (void)aq_env_alias_adopt(aq_conduit_infos[i]->aliases, aq_launch_self_get,
                                     aq_launch_self_set, aq_launch_self_warn);
}

enum aq_spawner aq_launch_self_spawner(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_SPAWNFN");

    if (text == NULL || *text == '\0') {
        if (aq_amudprun_is(lo) || lo->hosts > 1
            || aq_hosts_explicit(lo->info->aliases, lo->host_list, lo->host_file))
            return AQ_SPAWNER_SSH;
        return AQ_SPAWNER_FORK;
    }
    if (strlen(text) == 1) {
        switch (toupper((unsigned char)text[0])) {
        case 'L':
            return AQ_SPAWNER_FORK;
        case 'S':
            return AQ_SPAWNER_SSH;
        case 'C':
            return AQ_SPAWNER_CUSTOM;
        }
    }
    aq_launch_error(lo, "GASNET_SPAWNFN=%s: write L (this host), S (ssh) or C (GASNET_CSPAWN_CMD)",
                    text);
}
