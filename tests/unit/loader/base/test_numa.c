/* test_numa.c - the NUMA node of a device and the CPUs of a node, from a made-up /sys. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/cpu/numa.h"

#define ADDRESS "0cda:01:00.0"

static char root[64];

static void path_of(char *path, size_t bytes, const char *at)
{
    (void)snprintf(path, bytes, "%s%s", root, at);
}

static void write_file(const char *at, const char *text)
{
    char path[256];
    path_of(path, sizeof(path), at);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file, "%s", path);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

static void begin(void)
{
    static const char *const folders[] = { "/sys",
                                           "/sys/bus",
                                           "/sys/bus/pci",
                                           "/sys/bus/pci/devices",
                                           ("/sys/bus/pci/devices/" ADDRESS),
                                           "/sys/devices",
                                           "/sys/devices/system",
                                           "/sys/devices/system/node",
                                           "/sys/devices/system/node/node3" };
    (void)snprintf(root, sizeof(root), "%s/stoker-numa-XXXXXX", P_tmpdir);
    cr_assert_not_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char path[256];
        path_of(path, sizeof(path), folders[i]);
        cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
    }
}

static void finish(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(numa, .init = begin, .fini = finish);

static int32_t node_from(const char *text)
{
    write_file("/sys/bus/pci/devices/" ADDRESS "/numa_node", text);
    return stk_numa_of_pci(root, ADDRESS);
}

Test(numa, the_node_of_a_device)
{
    cr_assert_eq(stk_numa_of_pci(root, ADDRESS), STK_NO_NODE, "there is no file");
    cr_assert_eq(node_from("1\n"), 1);
    cr_assert_eq(node_from("0\n"), 0);
    cr_assert_eq(node_from("17"), 17);
    cr_assert_eq(node_from("-1\n"), STK_NO_NODE, "the kernel does not know");
    cr_assert_eq(node_from(""), STK_NO_NODE);
    cr_assert_eq(node_from("one\n"), STK_NO_NODE);
    cr_assert_eq(node_from("99999999999999999999\n"), STK_NO_NODE);
}

/* The CPUs that a list names, as a string of 0 and 1; "" = refused. */
static const char *cpus_from(const char *list)
{
    static char found[13];
    cpu_set_t set;
    memset(&set, 0xFF, sizeof(set));
    write_file("/sys/devices/system/node/node3/cpulist", list);
    if (!stk_numa_cpus(root, 3, &set)) {
        cr_assert_eq(CPU_COUNT(&set), 0);
        return "";
    }
    for (size_t cpu = 0; cpu < 12; cpu++)
        found[cpu] = CPU_ISSET(cpu, &set) ? '1' : '0';
    return found;
}

Test(numa, the_cpus_of_a_node)
{
    cpu_set_t set;
    cr_assert_not(stk_numa_cpus(root, 3, &set), "there is no file");
    cr_assert_str_eq(cpus_from("0-3\n"), "111100000000");
    cr_assert_str_eq(cpus_from("2,4-5,9\n"), "001011000100");
    cr_assert_str_eq(cpus_from("11"), "000000000001");
    static const char *const wrong[] = {
        "",      "\n",    "a\n",     "1,\n",     "1-\n",
        "3-1\n", "1;2\n", "1-2-3\n", "0-1024\n", "99999999999999999999\n"
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_str_eq(cpus_from(wrong[i]), "", "%s", wrong[i]);
}
