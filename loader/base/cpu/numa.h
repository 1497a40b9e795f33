/* numa.h - finds the CPUs that are near a PCI device, from files in /sys.
 *
 *   /sys/bus/pci/devices/0000:17:00.0/numa_node     1
 *   /sys/devices/system/node/node1/cpulist          16-31,48-63
 *
 * Nothing is allocated.
 */
#ifndef STK_BASE_NUMA_H
#define STK_BASE_NUMA_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum { STK_NO_NODE = -1 };

/* The NUMA node of a PCI device; STK_NO_NODE if it is unknown. address: "0000:17:00.0"; root: "",
 * or a test's folder. */
int32_t stk_numa_of_pci(const char *root, const char *address);

/* The CPUs of a node >= 0. False, and *out is empty, if they cannot be read. */
bool stk_numa_cpus(const char *root, int32_t node, cpu_set_t *out);

#endif
