/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_unit.c - see aq_unit.h. Children report through a pipe that this process drains.
 */
#include "tests/unit/aq_unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void aq_unit_run(void (*body)(void *arg), void *arg, struct aq_unit_result *result_out)
{
    int ends[2];
    size_t used = 0;
    ssize_t got;
    pid_t child;

    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        body(arg);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], result_out->err + used, sizeof(result_out->err) - 1 - used)) > 0)
        used += (size_t)got;
    result_out->err[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &result_out->status, 0), child);
}

int aq_unit_exit_code(const struct aq_unit_result *result)
{
    return WIFEXITED(result->status) ? WEXITSTATUS(result->status) : 128 + WTERMSIG(result->status);
}

void aq_unit_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, text);
}

void aq_unit_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" is in: %s", part, text);
}
