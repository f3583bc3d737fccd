/*
 * check.h - checks of the test programs over ARMCI and ComEx, which count what fails and name the
 * rank.
 *
 * Uses      the C library alone: it is compiled outside of the source tree
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CHECK_H
#define CHECK_H 1

#include <stdio.h>

static int me, nproc, failures;

#define CHECK(cond, ...)                                                   \
    do {                                                                   \
        if (!(cond) && failures++ < 5) {                                   \
            printf("rank %d: %s:%d: %s: ", me, __FILE__, __LINE__, #cond); \
            printf(__VA_ARGS__);                                           \
            printf("\n");                                                  \
        }                                                                  \
    } while (0)
#define CHECK_EQ(a, b) CHECK((a) == (b), "%ld and %ld", (long)(a), (long)(b))

#endif
