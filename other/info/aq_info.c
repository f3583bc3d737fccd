/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info.c - aq-info: prints what this build of the library and this machine can do, and every
 * environment variable. Here: the command line, and the order of the parts.
 *
 * Exit code 0; 1 if nothing matched or the output could not be written; 2 for a wrong option.
 * Owns      nothing. Threads: one
 * Uses      aq_info.h, base/aq_env.h
 */
#include "other/info/aq_info.h"

#include <getopt.h>
#include <stdio.h>

#include "base/aq_env.h"

static const char info_usage[] =
    "usage: aq-info [options]\n"
    "\n"
    "Tells what this build of Aqueduct and this machine can do. Without options: all but the\n"
    "list of environment variables, of which only those with a value are shown.\n"
    "\n"
    "  -b, --build          how the library was built\n"
    "  -c, --conduits       which conduits can be used here, and why not the others\n"
    "  -l, --limits         message, segment and thread limits; the machine's limits\n"
    "  -e, --env[=PATTERN]  environment variables: type, default, unit, present value, meaning;\n"
    "                       PATTERN is a part of the name or a shell pattern, in any case\n"
    "  -j, --json           the same for machines\n"
    "  -m, --markdown       the page docs/environment.md\n"
    "  -h, --help           this text\n"
    "  -V, --version        version of the library\n"
    "\n"
    "Examples:\n"
    "  aq-info --env segsize        what may be said about segment sizes\n"
    "  aq-info --limits --json      limits for a script\n"
    "\n"
    "Limits come from a job of one rank that aq-info starts and ends. Environment variables are\n"
    "honoured: GASNET_MAX_SEGSIZE=1GB aq-info --limits shows their effect.\n";

static const struct option info_options[] = {
    { "build", no_argument, NULL, 'b' },
    { "conduits", no_argument, NULL, 'c' },
    { "limits", no_argument, NULL, 'l' },
    { "env", optional_argument, NULL, 'e' },
    { "json", no_argument, NULL, 'j' },
    { "markdown", no_argument, NULL, 'm' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
};

struct info_request {
    bool build, conduits, limits, env, json, markdown, version;
    const char *pattern;
};

/* Returns 0, or 1 + the exit code to leave with. */
static int info_parse(int argc, char **argv, struct info_request *request)
{
    int option;

    while ((option = getopt_long(argc, argv, "bcle::jmhV", info_options, NULL)) != -1) {
        switch (option) {
        case 'b':
            request->build = true;
            break;
        case 'c':
            request->conduits = true;
            break;
        case 'l':
            request->limits = true;
            break;
        case 'e':
            request->env = true;
            request->pattern = optarg;
            break;
        case 'j':
            request->json = true;
            break;
        case 'm':
            request->markdown = true;
            break;
        case 'V':
            request->version = true;
            break;
        case 'h':
            fputs(info_usage, stdout);
            return 1;
        default:
            fputs("aq-info --help lists the options\n", stderr);
            return 3;
        }
    }
    /* "--env PATTERN" in two words */
    if (request->env && request->pattern == NULL && optind < argc)
        request->pattern = argv[optind++];
    if (optind < argc) {
        fprintf(stderr, "aq-info: what is \"%s\"? aq-info --help lists the options\n",
                argv[optind]);
        return 3;
    }
    return 0;
}

static int info_report(const struct info_request *request)
{
    bool all = !request->build && !request->conduits && !request->limits && !request->env;
    unsigned matched = 1;

    aq_info_open(request->json);
    if (all || request->build)
        aq_info_build();
    if (all || request->conduits || request->limits)
        aq_info_conduits(all || request->limits);
    if (all || request->limits)
        aq_info_machine();
    if (request->env || (all && request->json))
        matched = aq_info_env(request->pattern);
    else if (all)
        aq_info_env_set();
    if (!aq_info_close())
        return 1;
    if (matched == 0)
        fprintf(stderr, "aq-info: no variable matches \"%s\"\n", request->pattern);
    return matched == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct info_request request = { .pattern = NULL };
    int rc = info_parse(argc, argv, &request);

    if (rc != 0)
        return rc - 1;
    aq_env_init();
    aq_env_refuse();
    if (request.version) {
        aq_info_version();
        return 0;
    }
    if (request.markdown) {
        aq_info_env_markdown();
        return aq_info_close() ? 0 : 1;
    }
    return info_report(&request);
}
