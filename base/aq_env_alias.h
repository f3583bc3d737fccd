/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_alias.h - variables that go by three names: GASNET_X, AMUDP_X and X, in this priority.
 * Threads   no state; any thread
 *           which they are: aq_env_alias_names, those of the udp conduit
 * Promise   the name that counts and the one that contradicts it are both told
 * Uses      libc only, so that the launcher has it too
 */
#ifndef AQ_ENV_ALIAS_H
#define AQ_ENV_ALIAS_H

#include <stdbool.h>
#include <stddef.h>

#define AQ_ENV_ALIAS_NAME 64 /* room for the longest spelling */

typedef const char *(*aq_env_getter_t)(const char *name);

struct aq_env_alias {
    const char *value;             /* NULL: nobody set it */
    char name[AQ_ENV_ALIAS_NAME];  /* the spelling that value comes from */
    char other[AQ_ENV_ALIAS_NAME]; /* a spelling with another value; "" if there is none */
    const char *other_value;
};

/**
 * aq_env_alias_find - look for GASNET_X, AMUDP_X, X.
 * x    the short name, as MASTERIP
 * get  how to read a variable: getenv or the library's own
 * Returns the value, NULL if none is set; out says which spelling it was
 */
const char *aq_env_alias_find(const char *x, aq_env_getter_t get, struct aq_env_alias *out);

/** aq_env_alias_names - the short names, ended by NULL. */
extern const char *const aq_env_alias_names[];

typedef bool (*aq_env_setter_t)(const char *name, const char *value);
typedef void (*aq_env_alias_warn_t)(const struct aq_env_alias *alias);

/**
 * aq_env_alias_adopt - give GASNET_X the value that counts, so that everybody else need only look
 * there. warn  called for each variable whose spellings contradict each other; may be NULL
 * Returns whether anything was set
 */
bool aq_env_alias_adopt(aq_env_getter_t get, aq_env_setter_t set, aq_env_alias_warn_t warn);

#endif
