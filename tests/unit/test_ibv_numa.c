/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_numa.c - how far devices are from this process's cores, by hwloc, on a machine that a
 * file describes: two packages of two NUMA nodes with two cores each; mlx5_0 on the first node,
 * mlx5_1 on the fourth, mlx5_2 on the second package as a whole, and a network interface that has
 * the name of no device.
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif
#include "tests/unit/aq_unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conduits/ibv/aq_ibv_choose.h"

static FILE *out;
static unsigned serial;

static void begin(const char *type, unsigned index, unsigned cores, unsigned nodes)
{
    fprintf(out,
            "<object type=\"%s\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
            "nodeset=\"0x%x\" "
            "complete_nodeset=\"0x%x\" gp_index=\"%u\"",
            type, index, cores, cores, nodes, nodes, ++serial);
}

static void device(const char *name, unsigned type)
{
    fprintf(out, "<object type=\"OSDev\" gp_index=\"%u\" name=\"%s\" osdev_type=\"%u\"/>\n",
            ++serial, name, type);
}

static void node(unsigned index, const char *its)
{
    const unsigned cores = 3u << 2 * index;

    begin("Group", index, cores, 1u << index);
    fputs(" kind=\"0\" subkind=\"0\">\n", out);
    begin("NUMANode", index, cores, 1u << index);
    fputs(" local_memory=\"4096\"><page_type size=\"4096\" count=\"1\"/></object>\n", out);
    for (unsigned core = 2 * index; core < 2 * index + 2; core++) {
        begin("Core", core, 1u << core, 1u << index);
        fputs(">\n", out);
        begin("PU", core, 1u << core, 1u << index);
        fputs("/></object>\n", out);
    }
    if (its != NULL)
        device(its, 3); /* OpenFabrics */
    fputs("</object>\n", out);
}

static int describe(void **state)
{
    static char path[] = "/tmp/aq-near.XXXXXX";
    const int fd = mkstemp(path);

    (void)state;
    if (fd < 0 || (out = fdopen(fd, "w")) == NULL)
        return -1;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
          "<topology version=\"2.0\">\n",
          out);
    begin("Machine", 0, 0xff, 0xf);
    fputs(" allowed_cpuset=\"0xff\" allowed_nodeset=\"0xf\">\n", out);
    begin("Package", 0, 0x0f, 0x3);
    fputs(">\n", out);
    node(0, "mlx5_0");
    node(1, NULL);
    fputs("</object>\n", out);
    begin("Package", 1, 0xf0, 0xc);
    fputs(">\n", out);
    node(2, NULL);
    node(3, "mlx5_1");
    device("mlx5_2", 3);
    fputs("</object>\n", out);
    device("eth7", 2);
    fputs("</object>\n</topology>\n", out);
    *state = path;
    return fclose(out) == 0 && setenv("HWLOC_XMLFILE", path, 1) == 0 ? 0 : -1;
}

static int forget(void **state)
{
    aq_ibv_hwloc_end();
    return unlink(*state);
}

/* Of a process on these cores. */
static uint32_t distance(const char *name, unsigned cores)
{
    uint32_t found = 99;
    cpu_set_t ours;

    CPU_ZERO(&ours);
    for (unsigned cpu = 0; cpu < 8; cpu++)
        if ((cores >> cpu & 1) != 0)
            CPU_SET(cpu, &ours);
    if (!aq_ibv_hwloc_distance(name, &ours, &found))
        return 99;
    return found;
}

static void test_distances(void **state)
{
    (void)state;
#ifndef HAVE_HWLOC
    skip();
#endif
    if (dlopen("libhwloc.so.15", RTLD_LAZY) == NULL)
        skip(); /* built with its header, on a machine without it */
    assert_int_equal(distance("mlx5_0", 0x01), 0); /* its own node */
    assert_int_equal(distance("mlx5_0", 0x0c), 1); /* the other node of its package */
    assert_int_equal(distance("mlx5_0", 0x10), 2); /* the other package */
    assert_int_equal(distance("mlx5_0", 0x44), 2); /* beside it, and in the other package */
    assert_int_equal(distance("mlx5_0", 0xff), 0); /* bound to nothing */
    assert_int_equal(distance("mlx5_1", 0x01), 2);
    assert_int_equal(distance("mlx5_1", 0x30), 1);
    assert_int_equal(distance("mlx5_1", 0x80), 0);
    assert_int_equal(distance("mlx5_2", 0x10), 0); /* of the whole package */
    assert_int_equal(distance("mlx5_2", 0x40), 0);
    assert_int_equal(distance("mlx5_2", 0x08), 2);
}

static void test_unknown(void **state)
{
    (void)state;
    assert_int_equal(distance("mlx5_9", 0x01), 99);
    assert_int_equal(distance("eth7", 0x01), 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_unknown),
    };

    return cmocka_run_group_tests(tests, describe, forget);
}
