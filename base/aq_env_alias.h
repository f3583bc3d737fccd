/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_alias.h - variables that go by three names: GASNET_X, PREFIX_X and X, in this priority.
 * Owns      nothing: which variables they are is in the conduit's struct aq_conduit_info
 * Threads   no state; any thread
 * Promise   the name that counts and the one that contradicts it are both told
 * Uses      libc only, so that the launcher has it too
 */
#ifndef AQ_ENV_ALIAS_H
#define AQ_ENV_ALIAS_H

#include <stdbool.h>
#include <stddef.h>

#define AQ_ENV_ALIAS_NAME 64 /* length of the longest spelling */

typedef const char *(*aq_env_getter_t)(const char *name);

struct aq_env_alias {
    const char *value;             /* NULL: unset */
    char name[AQ_ENV_ALIAS_NAME];  /* the spelling that is used */
    char other[AQ_ENV_ALIAS_NAME]; /* a spelling with another value; "": none */
    const char *other_value;
};

/* The variables of a conduit whose users know them by such names. */
struct aq_env_aliases {
    const char *prefix;       /* with its underscore: "AMUDP_" */
    const char *const *names; /* X: the short names, ended by NULL */
};

/** aq_env_alias_has_prefix - does a variable's name begin with the prefix? aliases may be NULL. */
bool aq_env_alias_has_prefix(const struct aq_env_aliases *aliases, const char *name);

/**
 * aq_env_alias_find - look for GASNET_X, PREFIX_X, X.
 * x    the short name, as MASTERIP
 * get  reads a variable: getenv or the library's own
 * Returns the value, NULL if none is set; out holds the spelling
 */
const char *aq_env_alias_find(const struct aq_env_aliases *aliases, const char *x,
                              aq_env_getter_t get, struct aq_env_alias *out);

typedef bool (*aq_env_setter_t)(const char *name, const char *value);
typedef void (*aq_env_alias_warn_t)(const struct aq_env_alias *alias);

/**
 * aq_env_alias_adopt - set GASNET_X to the value that counts, so that other code reads only that.
 * warn  called for each variable whose spellings contradict each other; may be NULL
 * Returns true if anything was set
 */
bool aq_env_alias_adopt(const struct aq_env_aliases *aliases, aq_env_getter_t get,
                        aq_env_setter_t set, aq_env_alias_warn_t warn);

#endif
