/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fh_permanent.c - firehose's memory monitor where the kernel reports nothing: which memory is
 * kept then, malloc's settings, firehose_forget(); and that each way in which the kernel can refuse
 * leads there, without a hang.
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_platform.h"
#include "other/firehose/aq_fh_permanent.h"
#include "other/firehose/aq_fh_memmon.h"

#define PAGE ((size_t)4096)

/* Checks in children, where cmocka's do not reach. */
#define NEED(COND)                                        \
    do {                                                  \
        if (!(COND)) {                                    \
            dprintf(2, "line %d: %s\n", __LINE__, #COND); \
            _exit(1);                                     \
        }                                                 \
    } while (0)

static uintptr_t unmapped_start, unmapped_end;

static void note_unmapped(void *arg, uintptr_t addr, size_t nbytes)
{
    (void)arg;
    unmapped_start = addr;
    unmapped_end = addr + nbytes;
}

static struct aq_fh_memmon *open_monitor(enum aq_fh_memmon_mode mode, const char **why_out)
{
    struct aq_fh_memmon *memmon = NULL;

    return aq_fh_memmon_open(mode, note_unmapped, NULL, &memmon, why_out) == AQ_OK ? memmon : NULL;
}

static bool covers(struct aq_fh_memmon *memmon, const void *addr, size_t len)
{
    return memmon->cover(memmon, (uintptr_t)addr & ~(PAGE - 1),
                         aq_round_up((uintptr_t)addr % PAGE + len, PAGE))
           == AQ_OK;
}

static void run_child(void (*body)(void *arg), void *arg)
{
    struct aq_unit_result result;

    aq_unit_run(body, arg, &result);
    if (aq_unit_exit_code(&result) == 77)
        skip();
    assert_string_equal(result.err, "");
    assert_int_equal(aq_unit_exit_code(&result), 0);
}

/* --- what stays --- */

static char data[3 * 4096] = "data";
static char bss[5 * 4096];

static void what_stays(struct aq_fh_memmon *memmon)
{
    void *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char self[100];

    NEED(covers(memmon, data, sizeof(data)));
    NEED(covers(memmon, bss, sizeof(bss)));
    NEED(covers(memmon, self, sizeof(self)));
    NEED(covers(memmon, (const void *)(uintptr_t)&what_stays, 1));
    NEED(!covers(memmon, mapped, PAGE));
    NEED(!covers(memmon, stdout, 1)); /* a library's */
    NEED(!covers(memmon, NULL, 1));
    NEED(memmon->changing == NULL && atomic_load(&memmon->unsettled) == 0);
    memmon->settle(memmon);
}

static void malloc_body(void *arg)
{
    const char *why;
    struct aq_fh_memmon *memmon = open_monitor(AQ_FH_MEMMON_MALLOC, &why);
    char *small = malloc(100), *large, *volatile deferred;

    (void)arg;
    NEED(memmon != NULL && why == NULL && aq_fh_memmon_mode(memmon) == AQ_FH_MEMMON_MALLOC);
    what_stays(memmon);
    NEED(!covers(memmon, small, 100)); /* malloc has not been told */
    if (!aq_fh_permanent_keep_heap())
        _exit(77); /* a sanitizer's malloc */
    NEED(covers(memmon, small, 100));
    large = malloc(3000000);
    NEED(covers(memmon, large, 3000000));
    memset(large, 1, 3000000);
    deferred = large;
    free(large);
    NEED((uintptr_t)deferred + 3000000 <= (uintptr_t)sbrk(0));
    deferred[1500000] = 2; /* still mapped */
    NEED(covers(memmon, deferred, 3000000));
    aq_fh_memmon_close(memmon);
}

static void test_mode_malloc(void **state)
{
    (void)state;
    run_child(malloc_body, NULL);
}

static void client_body(void *arg)
{
    const char *why;
    struct aq_fh_memmon *memmon = open_monitor(AQ_FH_MEMMON_CLIENT, &why);
    char *mapped = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)arg;
    NEED(memmon != NULL && aq_fh_memmon_mode(memmon) == AQ_FH_MEMMON_CLIENT);
    NEED(covers(memmon, mapped, 4 * PAGE));
    aq_fh_memmon_forget(memmon, mapped + PAGE, PAGE);
    NEED(unmapped_start == (uintptr_t)mapped + PAGE && unmapped_end == unmapped_start + PAGE);
    NEED(!covers(memmon, mapped, 2 * PAGE));
    NEED(covers(memmon, mapped + 2 * PAGE, PAGE));
    aq_fh_memmon_close(memmon);
}

static void test_mode_client(void **state)
{
    (void)state;
    run_child(client_body, NULL);
}

/* --- the kernel refuses --- */

/* Makes system call nr fail with error; if command is not 0, only with that second argument. */
static void refuse(unsigned nr, unsigned command, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, command, 0, command != 0 ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

struct refusal {
    unsigned nr, command, error;
    const char *why;
};

static void refused_body(void *arg)
{
    const struct refusal *refusal = arg;
    const char *why;
    struct aq_fh_memmon *memmon = open_monitor(AQ_FH_MEMMON_EVENTS, &why);

    if (memmon == NULL)
        _exit(77); /* there are none here in any case */
    aq_fh_memmon_close(memmon);
    if (refusal->nr == SYS_clone)
        refuse(SYS_clone3, 0, ENOSYS);
    refuse(refusal->nr, refusal->command, refusal->error);
    NEED(open_monitor(AQ_FH_MEMMON_EVENTS, &why) == NULL);
    NEED(why != NULL && strstr(why, refusal->why) != NULL);
    memmon = open_monitor(AQ_FH_MEMMON_AUTO, &why);
    NEED(memmon != NULL && why != NULL && aq_fh_memmon_mode(memmon) == AQ_FH_MEMMON_MALLOC);
    what_stays(memmon);
    aq_fh_memmon_close(memmon);
}

static void test_refused(void **state)
{
    static struct refusal refusals[] = {
        { SYS_userfaultfd, 0, EPERM, "not permitted" },
        { SYS_userfaultfd, 0, ENOSYS, "no userfaultfd" },
        { SYS_ioctl, (unsigned)UFFDIO_API, EINVAL, "older" },
        { SYS_ioctl, (unsigned)UFFDIO_REGISTER, EINVAL, "cannot monitor" },
        { SYS_ioctl, (unsigned)UFFDIO_WRITEPROTECT, EINVAL,
          "as they must" }, /* nothing ever seems to change */
        { SYS_ioctl, (unsigned)UFFDIO_WRITEPROTECT, EAGAIN, "as they must" }, /* or all the time */
        { SYS_clone, 0, EAGAIN, "ulimit -u" },
        { SYS_eventfd2, 0, EMFILE, "ulimit -n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        run_child(refused_body, &refusals[i]);
}

/* --- the setting --- */

static int open_by_setting(const char *value, struct aq_fh_memmon **memmon_out)
{
    setenv("AQ_FIREHOSE_MONITOR", value, 1);
    aq_env_init();
    return aq_fh_memmon_job_open(memmon_out);
}

struct setting {
    const char *value;
    enum aq_fh_memmon_mode mode, other; /* other: where the kernel reports nothing */
};

static void setting_body(void *arg)
{
    const struct setting *setting = arg;
    struct aq_fh_memmon *memmon;

    NEED(open_by_setting(setting->value, &memmon) == AQ_OK);
    NEED(aq_fh_memmon_mode(memmon) == setting->mode || aq_fh_memmon_mode(memmon) == setting->other);
    aq_fh_memmon_job_close();
}

static void test_setting(void **state)
{
    static struct setting settings[] = {
        { "malloc", AQ_FH_MEMMON_MALLOC, AQ_FH_MEMMON_MALLOC },
        { "client", AQ_FH_MEMMON_CLIENT, AQ_FH_MEMMON_CLIENT },
        { "auto", AQ_FH_MEMMON_EVENTS, AQ_FH_MEMMON_MALLOC },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        run_child(setting_body, &settings[i]);
}

static void setting_refused_body(void *arg)
{
    struct aq_fh_memmon *memmon;

    (void)arg;
    refuse(SYS_userfaultfd, 0, EPERM);
    if (open_by_setting("events", &memmon) != AQ_ERR_SYS)
        _exit(1);
}

/* The message names the setting, and what the kernel has refused. */
static void test_setting_refused(void **state)
{
    struct aq_unit_result result;

    (void)state;
    aq_unit_run(setting_refused_body, NULL, &result);
    if (aq_unit_exit_code(&result) == 77)
        skip();
    assert_int_equal(aq_unit_exit_code(&result), 0);
    assert_non_null(strstr(result.err, "AQ_FIREHOSE_MONITOR=events"));
    assert_non_null(strstr(result.err, "not permitted"));
}

/* --- the call that programs make --- */

static void forget_body(void *arg)
{
    struct aq_fh_memmon *memmon;
    char *mapped = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)arg;
    firehose_forget(mapped, PAGE); /* no job: nothing happens */
    NEED(open_by_setting("client", &memmon) == AQ_OK);
    NEED(aq_fh_memmon_mode(memmon) == AQ_FH_MEMMON_CLIENT);
    NEED(covers(memmon, mapped, 4 * PAGE));
    firehose_forget(mapped + 10, 5);
    NEED(!covers(memmon, mapped, PAGE));
    NEED(covers(memmon, mapped + PAGE, PAGE));
    aq_fh_memmon_job_close();
    aq_fh_memmon_job_close();
    firehose_forget(mapped, PAGE);
}

static void test_forget(void **state)
{
    (void)state;
    run_child(forget_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mode_malloc),     cmocka_unit_test(test_mode_client),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_setting),
        cmocka_unit_test(test_setting_refused), cmocka_unit_test(test_forget),
    };

    return cmocka_run_group_tests_name("fh_permanent", tests, NULL, NULL);
}
