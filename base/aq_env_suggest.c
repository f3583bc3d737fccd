/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_suggest.c - finds the known variable that a name may be a misspelling of.
 * Threads   no state; any thread
 * Uses      base/aq_env.h (the table of rows)
 */
#include "base/aq_env.h"

#include <string.h>

/* prefixes that belong to other conduits, to parts not in this build, or to build systems */
static const char *const aq_env_foreign[] = {
    "GASNET_IBV_",  "GASNET_OFI_",      "GASNET_UCX_",      "GASNET_MPI_",   "GASNET_COLL_",
    "GASNET_VIS_",  "GASNET_FIREHOSE_", "GASNET_TSC_",      "GASNET_MALLOC", "GASNET_TRACE",
    "GASNET_STATS", "GASNET_CONNECT",   "GASNET_MAXIMIZE_", "GASNET_SD_",    "GASNET_TEST_",
};

static const char *aq_env_suffix(const char *name)
{
    if (strncmp(name, "GASNET_", 7) == 0)
        return name + 7;
    return strncmp(name, "AQ_", 3) == 0 ? name + 3 : NULL;
}

static unsigned aq_env_min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* edit distance with transposition of adjacent characters (optimal string alignment) */
static unsigned aq_env_distance(const char *a, const char *b)
{
    enum { LONGEST = 47 };
    unsigned rows[3][LONGEST + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > LONGEST || lb > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned change = before[j - 1] + (a[i - 1] != b[j - 1]);

            now[j] = aq_env_min(change, aq_env_min(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = aq_env_min(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

/* the rows whose names with _ and a number appended are variables too */
static const bool aq_env_numbered[AQ_ENV_ID_COUNT] = {
#define AQ_ENV(id, name, type, unit, dflt, help)
#define AQ_ENV_NUMBERED(id) [AQ_ENV_##id] = true,
#include "base/aq_env_rows.def"
};

/* GASNET_IBV_PORTS_3 or GASNET_IBV_PORTS_0_1: the setting for some of the processes */
static bool aq_env_is_numbered(const char *name)
{
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++) {
        const char *base = aq_env_rows[id].name;
        const size_t len = strlen(base);

        if (aq_env_numbered[id] && strncmp(name, base, len) == 0 && name[len] == '_'
            && name[len + 1] != '\0' && name[len + strspn(name + len, "_0123456789")] == '\0')
            return true;
    }
    return false;
}

const char *aq_env_suggest(const char *name)
{
    const char *suffix = aq_env_suffix(name), *best = NULL;
    unsigned min = 3;

    if (suffix == NULL || *suffix == '\0' || aq_env_is_numbered(name))
        return NULL;
    for (size_t i = 0; i < sizeof(aq_env_foreign) / sizeof(aq_env_foreign[0]); i++)
        if (strncmp(name, aq_env_foreign[i], strlen(aq_env_foreign[i])) == 0)
            return NULL;
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++) {
        const char *known = aq_env_rows[id].name;
        unsigned distance;

        if (strcmp(name, known) == 0)
            return NULL;
        if (strncmp(known, "GASNET_", 7) != 0 && strncmp(known, "AQ_", 3) != 0)
            continue;
        distance = aq_env_distance(suffix, aq_env_suffix(known));
        /* in a short name two changes make a different word */
        if (distance < min && (distance < 2 || strlen(suffix) > 5)) {
            min = distance;
            best = known;
        }
    }
    return best;
}
