/*
 * misuse_early.c - makes each call of the interface before the library is started. A debug build
 * has to end the process with a message that names the call; a crash, or no word, is a fault.
 * misuse.sh runs it.
 *
 * usage: misuse-early
 *
 * The calls, with arguments that are all zero, are those of tests/names: a call that is added there
 * is tried here. Each is made in a child of its own. Calls that are legal at any time must return.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"
#include "gasnet_coll.h"
#include "gasnet_mk.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aq_args.h"

#define RETURNED     77 /* status of a child whose call has returned */
#define NAME_MAX_LEN 64
#define CALLS_MIN    900 /* fewer: the names of the calls were not recognised */

static unsigned tried, failed;

static const gex_Token_Info_t gex_Token_Info_t_zero;
static const gex_MK_Create_args_t gex_MK_Create_args_t_zero;

/* Legal before the start, or the start itself. */
static bool is_legal(const char *name)
{
    static const char *const legal[] = { "gasnet_ErrorName",
                                         "gasnet_ErrorDesc",
                                         "gex_System_GetVerboseErrors",
                                         "gex_System_SetVerboseErrors",
                                         "gex_AM_MaxArgs",
                                         "gasnet_AMMaxArgs",
                                         "gasnet_AMMaxMedium",
                                         "gasnet_AMMaxLongRequest",
                                         "gasnet_AMMaxLongReply",
                                         "gex_AM_LUBRequestMedium",
                                         "gex_AM_LUBReplyMedium",
                                         "gex_AM_LUBRequestLong",
                                         "gex_AM_LUBReplyLong",
                                         "gex_HSL_Init",
                                         "gex_HSL_Destroy",
                                         "gex_HSL_Lock",
                                         "gex_HSL_Trylock",
                                         "gasnet_hsl_init",
                                         "gasnet_hsl_destroy",
                                         "gasnet_hsl_lock",
                                         "gasnet_hsl_trylock",
                                         "gasnet_hold_interrupts",
                                         "gasnet_resume_interrupts",
                                         "gasnet_set_waitmode",
                                         "gasnet_attach" };

    for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
        if (strcmp(name, legal[i]) == 0)
            return true;
    return false;
}

/* Not tried: what starts a job, and what breaks another rule that is looked at first. */
static bool is_left_out(const char *name)
{
    return strcmp(name, "gex_Client_Init") == 0 || strcmp(name, "gasnet_init") == 0
           || strcmp(name, "gex_HSL_Unlock") == 0 || strcmp(name, "gasnet_hsl_unlock") == 0;
}

/* The name of a call of the interface from its text; false: the text is something else. */
static bool name_of(const char *text, char name[NAME_MAX_LEN])
{
    size_t len = 0;

    if (strncmp(text, "gex_", 4) != 0 && strncmp(text, "gasnet_", 7) != 0)
        return false;
    while (isalnum((unsigned char)text[len]) || text[len] == '_')
        len++;
    if (text[len] != '(' || len >= NAME_MAX_LEN)
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    return true;
}

/* Length of a name without a count of arguments, "_v2" or "_nb" at its end: such forms share
 * messages. */
static size_t stem(const char *name, size_t len)
{
    while (len > 0 && strchr("0123456789_vnb", name[len - 1]) != NULL)
        len--;
    return len;
}

/* Does the message name this call? What GASNet-1 has in common with EX is named as in EX. */
static bool names_it(const char *message, const char *name)
{
    const char *end = strstr(message, " called before "), *begin = end;
    size_t len;

    if (end == NULL || strstr(message, "FATAL ERROR") == NULL)
        return false;
    while (begin > message && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
        begin--;
    if (strncmp(name, "gasnet_", 7) == 0
        && (strncmp(begin, "gex_", 4) == 0 || strncmp(begin, "gasnet_AMPoll ", 14) == 0))
        return true;
    len = stem(begin, (size_t)(end - begin));
    return len == stem(name, strlen(name)) && strncmp(name, begin, len) == 0;
}

static void judge(const char *name, int status, const char *message)
{
    const bool returned = WIFEXITED(status) && WEXITSTATUS(status) == RETURNED;

    tried++;
    if (is_legal(name) ? returned : WIFEXITED(status) && !returned && names_it(message, name))
        return;
    failed++;
    printf("%s: %s %d: %s\n", name,
           WIFSIGNALED(status) ? "signal"
           : returned          ? "returned,"
                               : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
           message[0] != '\0' ? message : "no message");
}

/* True in the child that is to make the call. */
static bool early(const char *text)
{
    char name[NAME_MAX_LEN], message[1024];
    size_t len = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;

    if (!name_of(text, name) || is_left_out(name))
        return false;
    fflush(stdout);
    if (pipe(ends) != 0 || (child = fork()) < 0) {
        perror("misuse-early");
        exit(2);
    }
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(10);
        return true;
    }
    close(ends[1]);
    while (len < sizeof(message) - 1
           && (got = read(ends[0], message + len, sizeof(message) - 1 - len)) > 0)
        len += (size_t)got;
    message[len] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    judge(name, status, message);
    return false;
}

#define VALUE(TYPE, ...)                \
    if (early(#__VA_ARGS__)) {          \
        TYPE got = (TYPE)(__VA_ARGS__); \
        (void)got;                      \
        _exit(RETURNED);                \
    }
#define DO(...)                \
    if (early(#__VA_ARGS__)) { \
        __VA_ARGS__;           \
        _exit(RETURNED);       \
    }
#define INTEGRAL(EXPR)
#define SAME(A, B)
#define case_of(NAME)

#include "names_body.h"
#include "gasnet1_body.h"

int main(void)
{
    all_names();
    all_gasnet1_names();
    printf("%u calls before the start, %u of them not answered as they should be\n", tried, failed);
    return failed == 0 && tried >= CALLS_MIN ? 0 : 1;
}
