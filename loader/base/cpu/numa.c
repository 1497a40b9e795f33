/* numa.c - see numa.h. */
#include "loader/base/cpu/numa.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/io/number_file.h"

enum { PATH_BYTES = 512, LIST_BYTES = 4096 };

int32_t stk_numa_of_pci(const char *root, const char *address)
{
    char path[PATH_BYTES];
    char text[32];
    char *end = text;
    (void)snprintf(path, sizeof(path), "%.400s/sys/bus/pci/devices/%.20s/numa_node", root, address);
    (void)stk_text_file_read(path, text, sizeof(text));
    const long node = strtol(text, &end, 10);
    return end == text || node < 0 || node > INT_MAX ? STK_NO_NODE : (int32_t)node;
}

/* One entry of a list: "3" or "0-15". Returns what follows it, or NULL. */
static const char *read_range(const char *text, cpu_set_t *out)
{
    char *end;
    const unsigned long first = strtoul(text, &end, 10);
    unsigned long last = first;
    if (end == text)
        return NULL;
    if (*end == '-') {
        const char *const from = end + 1;
        last = strtoul(from, &end, 10);
        if (end == from)
            return NULL;
    }
    if (first > last || last >= CPU_SETSIZE)
        return NULL;
    for (unsigned long cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, out);
    return end;
}

bool stk_numa_cpus(const char *root, int32_t node, cpu_set_t *out)
{
    char path[PATH_BYTES];
    char list[LIST_BYTES];
    assert(node >= 0);
    CPU_ZERO(out);
    (void)snprintf(path, sizeof(path), "%.400s/sys/devices/system/node/node%d/cpulist", root,
                   (int)node);
    if (stk_text_file_read(path, list, sizeof(list)) == 0)
        return false;
    const char *rest = read_range(list, out);
    while (rest != NULL && *rest == ',')
        rest = read_range(rest + 1, out);
    if (rest != NULL && (*rest == '\n' || *rest == '\0'))
        return true;
    CPU_ZERO(out);
    return false;
}
