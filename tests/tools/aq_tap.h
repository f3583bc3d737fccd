/*
 * aq_tap.h - what the programs that test gasnet_tools.h are built on: rules, checks, TAP.
 *
 * C and C++; without a conduit. A failed check is told with its place; each rule is one line.
 * Threads may check. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TAP_H
#define AQ_TAP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_rules, tap_failed_rules;
static volatile int tap_bad;
static const char *tap_rule;

static inline void tap_end_rule(void)
{
    if (tap_rule == NULL)
        return;
    printf("%sok %d - %s\n", tap_bad ? "not " : "", ++tap_rules, tap_rule);
    tap_failed_rules += tap_bad;
    tap_rule = NULL;
    tap_bad = 0;
}

/* names the rule that the following checks belong to */
static inline void rule(const char *name)
{
    tap_end_rule();
    tap_rule = name;
}

static inline int tap_finish(void)
{
    tap_end_rule();
    printf("1..%d\n", tap_rules);
    fflush(stdout);
    return tap_failed_rules > 0;
}

#define CHECK(...)                                                     \
    do {                                                               \
        if (!(__VA_ARGS__)) {                                          \
            tap_bad = 1;                                               \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
        }                                                              \
    } while (0)

#define CHECK_EQ(A, B)                                                                       \
    do {                                                                                     \
        const long long tap_a = (long long)(A), tap_b = (long long)(B);                      \
        if (tap_a != tap_b) {                                                                \
            tap_bad = 1;                                                                     \
            printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #A, tap_a, tap_b); \
        }                                                                                    \
    } while (0)

#define CHECK_STR(A, B)                                                           \
    do {                                                                          \
        const char *tap_a = (A), *tap_b = (B);                                    \
        if (tap_a == NULL || strcmp(tap_a, tap_b) != 0) {                         \
            tap_bad = 1;                                                          \
            printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #A, \
                   tap_a ? tap_a : "(NULL)", tap_b);                              \
        }                                                                         \
    } while (0)

#endif
