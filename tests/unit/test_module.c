/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_module.c - where modules of conduits are searched, and the message if there is none. Each
 * case runs in a child process, since a process reads its environment once.
 */
#include "tests/unit/aq_unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_module.h"

static char folder[] = "/tmp/aq-module-XXXXXX";

struct module_case {
    const char *dir, *name;
};

/* In a child: prints the reason; code 3: there is a table. */
static void open_one(void *arg)
{
    const struct module_case *c = arg;
    char why[512] = "";

    if (c->dir != NULL)
        setenv("AQ_MODULE_DIR", c->dir, 1);
    else
        unsetenv("AQ_MODULE_DIR");
    aq_env_init();
    if (aq_module_open(c->name, why, sizeof(why)) != NULL)
        _exit(3);
    fprintf(stderr, "%s", why);
}

static void expect(const char *dir, const char *name, int code, const char *text)
{
    struct module_case c = { dir, name };
    struct aq_unit_result run;

    aq_unit_run(open_one, &c, &run);
    assert_int_equal(aq_unit_exit_code(&run), code);
    aq_unit_contains(run.err, text);
}

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_missing(void **state)
{
    (void)state;
    expect(folder, "nosuch", 0, "aq-nosuch.so, is not installed");
    expect(NULL, "nosuch", 0, "AQ_MODULE_DIR=DIR");
    expect("/nonexistent", "nosuch", 0, "aq-nosuch.so, is not installed");
}

static void test_not_a_module(void **state)
{
    (void)state;
    put("aq-broken.so", "this is no library\n");
    expect(folder, "broken", 0, "its module cannot be loaded");
}

/* A library without our table. */
static void test_other_release(void **state)
{
    static const char *const places[] = { "/lib/x86_64-linux-gnu/libm.so.6",
                                          "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6",
                                          "/usr/lib/libm.so.6" };
    char path[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/aq-other.so", folder);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (access(places[i], R_OK) == 0) {
            assert_int_equal(symlink(places[i], path), 0);
            expect(folder, "other", 0, "of another release");
            return;
        }
    skip(); /* no libm to stand in for one */
}

/* What stands above the program is taken unless others may write there. */
static void test_unauthenticated_many(void **state)
{
    char dir[64], module[96], program[64], found[128];

    (void)state;
    snprintf(dir, sizeof(dir), "%s/modules", folder);
    snprintf(module, sizeof(module), "%s/aq-mine.so", dir);
    snprintf(program, sizeof(program), "%s/program", folder);
    put("program", "");
    assert_int_equal(mkdir(dir, 0755), 0);
    put("modules/aq-mine.so", "");
    assert_int_equal(chmod(module, 0644), 0);
    assert_true(aq_module_find("mine", NULL, program, found, sizeof(found)));
    assert_string_equal(found, module);
    assert_int_equal(chmod(module, 0666), 0);
    assert_false(aq_module_find("mine", NULL, program, found, sizeof(found)));
    assert_int_equal(chmod(module, 0644), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    assert_false(aq_module_find("mine", NULL, program, found, sizeof(found)));
    assert_true(aq_module_find("mine", dir, program, found, sizeof(found))); /* the user names it */
    unlink(module);
    assert_int_equal(rmdir(dir), 0);
}

/* A program that contains the library's code has no library beside it: ../modules may be
 * everybody's /tmp/modules. */
static void test_beside_program(void **state)
{
    char dir[PATH_MAX], name[32], module[PATH_MAX + 64], found[PATH_MAX];
    FILE *f;

    (void)state;
    assert_non_null(realpath("/proc/self/exe", dir));
    snprintf(strrchr(dir, '/'), sizeof("/../modules"), "/../modules");
    snprintf(name, sizeof(name), "beside%d", (int)getpid());
    snprintf(module, sizeof(module), "%s/aq-%s.so", dir, name);
    mkdir(dir, 0755);
    f = fopen(module, "w");
    assert_non_null(f);
    fclose(f);
    assert_false(aq_module_find(name, NULL, "/nonexistent", found, sizeof(found)));
    unlink(module);
    rmdir(dir); /* unless others use it */
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    static const char *const files[] = { "aq-broken.so", "aq-other.so", "program" };
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),        cmocka_unit_test(test_not_a_module),
        cmocka_unit_test(test_other_release),  cmocka_unit_test(test_unauthenticated_many),
        cmocka_unit_test(test_beside_program),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
