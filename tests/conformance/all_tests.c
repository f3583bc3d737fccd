/*
 * all_tests.c - all conformance programs of a mode in one: its name says which one it is.
 * In every other file of this folder "main" is NAME_main (build-aux/programs.am), where NAME is
 * the file's; the program is called NAME-seq or NAME-par. all_tests.inc, written by make, lists
 * the names.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#undef main

#define TEST(name) int name##_main(int argc, char **argv);
#include "all_tests.inc"
#undef TEST

static const struct test {
    const char *name;
    int (*run)(int argc, char **argv);
} tests[] = {
#define TEST(name) { #name, name##_main },
#include "all_tests.inc"
#undef TEST
};

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    size_t length = strcspn(name, "-");

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strlen(tests[i].name) == length && memcmp(tests[i].name, name, length) == 0)
            return tests[i].run(argc, argv);
    fprintf(stderr, "%s: no conformance program has this name\n", name);
    return 2;
}
