/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_plan.c - the plan of a job, which every host needs: made by the root, packed, unpacked.
 * Threads   one
 * Promise   an unpacked plan is complete and consistent, or it was refused
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_env_alias.h"
#include "other/launcher/aq_agent.h"

extern char **environ;

static bool aq_plan_named(const struct aq_launch *lo, const char *entry, size_t len)
{
    const char *at = lo->env_names;

    while (at != NULL && *at != '\0') {
        size_t n = strcspn(at, ",");

        if (n == len && strncmp(at, entry, n) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* returns true if a variable is set in the ranks' environment; the user's other variables are
 * visible to gasnet_getenv() only */
static bool aq_plan_passes(const struct aq_launch *lo, const char *entry)
{
    static const char *const prefixes[] = { "GASNET", "AQ_", "LD_LIBRARY_PATH=", "PATH=" };
    const char *equals = strchr(entry, '=');

    if (equals == NULL || strncmp(entry, "AQ_SPAWN", 8) == 0)
        return false;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return aq_env_alias_has_prefix(lo->info->aliases, entry)
           || aq_plan_named(lo, entry, (size_t)(equals - entry));
}

static void aq_plan_environment(struct aq_plan *plan, const struct aq_launch *lo)
{
    struct aq_pack block = { .buf = NULL };
    size_t count = 0, to = 0;

    while (environ[count] != NULL)
        count++;
    plan->set = calloc(count + 1, sizeof(*plan->set));
    if (plan->set == NULL)
        aq_launch_error(lo, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (aq_plan_passes(lo, environ[i]))
            plan->set[to++] = environ[i];
        else if (strchr(environ[i], '=') != NULL)
            aq_pack_bytes(&block, environ[i], strlen(environ[i]) + 1);
    }
    plan->environment = block.buf;
    plan->environment_bytes = block.len;
}

static double aq_plan_seconds(const struct aq_launch *lo, const char *name, double dflt)
{
    const char *text = getenv(name);
    double value;

    if (text == NULL || *text == '\0')
        return dflt;
    if (!aq_env_parse_time(text, "s", &value) || value < 0 || value > 1e6)
        aq_launch_error(
            lo, "%s=%s: give a time from 0 to 1000000s, for instance %s=30s; 0 means no limit",
            name, text, name);
    return value;
}

uint32_t aq_plan_host_timeout_ms(const struct aq_launch *lo)
{
    uint32_t ms = (uint32_t)(aq_plan_seconds(lo, "GASNET_HOST_TIMEOUT", 10.0) * 1000.0);

    return ms > 0 && ms < 500 ? 500 : ms; /* a shorter silence proves nothing */
}

static uint32_t aq_plan_degree(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_SSH_OUT_DEGREE");
    int64_t n;

    if (text == NULL || *text == '\0')
        return 32;
    if (!aq_env_parse_int(text, &n) || n < 0 || n > 1000000)
        aq_launch_error(
            lo, "GASNET_SSH_OUT_DEGREE=%s: give a number from 0 to 1000000; 0 means no limit",
            text);
    return (uint32_t)n;
}

static char *aq_plan_directory(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_SSH_REMOTE_PATH");
    char *dir = text != NULL && *text != '\0' ? strdup(text) : getcwd(NULL, 0);

    if (dir == NULL)
        aq_launch_error(lo, "the current directory has no name (%s); set GASNET_SSH_REMOTE_PATH",
                        strerror(errno));
    return dir;
}

static char *aq_plan_remote(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_REMOTE_RUN");
    char path[PATH_MAX];
    ssize_t len;
    char *remote;

    if (text != NULL && *text != '\0') {
        remote = strdup(text);
    } else {
        len = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (len <= 0)
            aq_launch_error(
                lo,
                "/proc/self/exe: %s; set GASNET_REMOTE_RUN to the path of gasnetrun on the hosts",
                strerror(errno));
        path[len] = '\0';
        remote = strdup(path);
    }
    if (remote == NULL)
        aq_launch_error(lo, "out of memory");
    return remote;
}

static void aq_plan_pack(struct aq_plan *plan, const struct aq_launch *lo)
{
    struct aq_pack p = { .buf = NULL };

    aq_pack_bytes(&p, plan->key, sizeof(plan->key));
    aq_pack_u32(&p, plan->ranks);
    aq_pack_u32(&p, plan->hosts);
    for (uint32_t i = 0; i < plan->hosts; i++)
        aq_pack_u32(&p, plan->host_ranks[i]);
    aq_pack_texts(&p, plan->host_name);
    aq_pack_text(&p, plan->directory);
    aq_pack_texts(&p, plan->argv);
    aq_pack_texts(&p, plan->set);
    aq_pack_block(&p, plan->environment, plan->environment_bytes);
    aq_pack_texts(&p, plan->ssh);
    aq_pack_text(&p, plan->remote);
    aq_pack_u32(&p, plan->timeout_ms);
    aq_pack_u32(&p, plan->degree);
    aq_pack_u32(&p, plan->bind);
    aq_pack_u32(&p, plan->cpus);
    aq_pack_u32(&p, plan->verbose);
    aq_pack_u32(&p, plan->prefix);
    if (p.failed)
        aq_launch_error(lo, "out of memory");
    if (p.len > AQ_FRAME_LARGE)
        aq_launch_error(
            lo, "arguments, environment and host names together are too long: %zu bytes", p.len);
    plan->blob = p.buf;
    plan->blob_len = p.len;
}

static bool aq_plan_firsts(struct aq_plan *plan)
{
    uint64_t rank = 0;

    plan->host_first = calloc((size_t)plan->hosts + 1, sizeof(*plan->host_first));
    if (plan->host_first == NULL)
        return false;
    for (uint32_t i = 0; i < plan->hosts; i++) {
        plan->host_first[i] = (uint32_t)rank;
        rank += plan->host_ranks[i];
        if (plan->host_ranks[i] == 0 || plan->host_ranks[i] > AQ_SPAWN_MAX_RANKS
            || rank > plan->ranks)
            return false;
    }
    plan->host_first[plan->hosts] = (uint32_t)rank;
    return rank == plan->ranks;
}

void aq_plan_make(struct aq_plan *plan, const struct aq_launch *lo, const struct aq_hosts *hosts)
{
    plan->ranks = lo->ranks;
    plan->hosts = (uint32_t)hosts->count;
    plan->host_ranks = hosts->ranks;
    plan->host_name = calloc(hosts->count + 1, sizeof(*plan->host_name));
    if (plan->host_name == NULL
        || getrandom(plan->key, sizeof(plan->key), 0) != (ssize_t)sizeof(plan->key))
        aq_launch_error(lo, "no memory or no random numbers: %s", strerror(errno));
    memcpy(plan->host_name, hosts->name, hosts->count * sizeof(*plan->host_name));
    if (!aq_plan_firsts(plan))
        aq_launch_error(lo,
                        "%u ranks on %u hosts: a host can have at most %u ranks; name more hosts",
                        plan->ranks, plan->hosts, AQ_SPAWN_MAX_RANKS);
    plan->directory = aq_plan_directory(lo);
    plan->argv = lo->argv;
    aq_plan_environment(plan, lo);
    plan->remote = aq_plan_remote(lo);
    plan->timeout_ms = aq_plan_host_timeout_ms(lo);
    plan->degree = lo->workers != NULL ? 0 : aq_plan_degree(lo);
    plan->bind = (uint32_t)lo->bind;
    plan->cpus = (uint32_t)(lo->cpus + 1);
    plan->verbose = (uint32_t)lo->verbose;
    plan->prefix = lo->prefix;
    aq_ssh_command(plan, lo);
    aq_plan_pack(plan, lo);
}

static uint32_t aq_plan_count(char *const *texts)
{
    uint32_t count = 0;

    while (texts[count] != NULL)
        count++;
    return count;
}

bool aq_plan_read(struct aq_plan *plan, const uint8_t *blob, size_t len)
{
    struct aq_unpack u = { blob, len, false };
    const uint8_t *key = aq_unpack_bytes(&u, sizeof(plan->key));

    plan->blob = blob;
    plan->blob_len = len;
    plan->ranks = aq_unpack_u32(&u);
    plan->hosts = aq_unpack_u32(&u);
    if (u.failed || plan->hosts == 0 || plan->hosts > u.left / 4 || plan->ranks > AQ_SPAWN_MAX_JOB)
        return false;
    memcpy(plan->key, key, sizeof(plan->key));
    plan->host_ranks = calloc(plan->hosts, sizeof(*plan->host_ranks));
    if (plan->host_ranks == NULL)
        return false;
    for (uint32_t i = 0; i < plan->hosts; i++)
        plan->host_ranks[i] = aq_unpack_u32(&u);
    plan->host_name = aq_unpack_texts(&u);
    plan->directory = aq_unpack_text(&u);
    plan->argv = aq_unpack_texts(&u);
    plan->set = aq_unpack_texts(&u);
    plan->environment = aq_unpack_block(&u, &plan->environment_bytes);
    plan->ssh = aq_unpack_texts(&u);
    plan->remote = aq_unpack_text(&u);
    plan->timeout_ms = aq_unpack_u32(&u);
    plan->degree = aq_unpack_u32(&u);
    plan->bind = aq_unpack_u32(&u);
    plan->cpus = aq_unpack_u32(&u);
    plan->verbose = aq_unpack_u32(&u);
    plan->prefix = aq_unpack_u32(&u) != 0;
    return !u.failed && u.left == 0 && aq_plan_firsts(plan)
           && aq_plan_count(plan->host_name) == plan->hosts && plan->argv[0] != NULL
           && plan->ssh[0] != NULL && plan->bind < AQ_BINDS;
}

const char *aq_plan_ranks(const struct aq_plan *plan, uint32_t first, uint32_t end,
                          char text_out[64])
{
    uint32_t from = plan->host_first[first], to = plan->host_first[end] - 1;

    if (from == to)
        snprintf(text_out, 64, "rank %u", from);
    else
        snprintf(text_out, 64, "ranks %u-%u", from, to);
    return text_out;
}
