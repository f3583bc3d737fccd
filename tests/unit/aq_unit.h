/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_unit.h - shared by unit tests: cmocka with its prerequisites, and running code in a child
 * process to check its output and how it ends.
 */
#ifndef AQ_UNIT_H
#define AQ_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* what a child left behind */
struct aq_unit_result {
    int status;      /* as waitpid() gives it */
    char err[16384]; /* its stderr, NUL-ended */
};

/**
 * aq_unit_run - fork, let the child call body(arg) and _exit(0), and collect its stderr.
 * The child is killed after 20 s.
 */
void aq_unit_run(void (*body)(void *arg), void *arg, struct aq_unit_result *result_out);

/** aq_unit_exit_code - exit code, or 128 + signal. */
int aq_unit_exit_code(const struct aq_unit_result *result);

/** aq_unit_contains - fails the test, showing the text, unless it contains part. */
void aq_unit_contains(const char *text, const char *part);

/** aq_unit_lacks - fails the test, showing the text, if it contains part. */
void aq_unit_lacks(const char *text, const char *part);

#endif
