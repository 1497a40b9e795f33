/* gpu_node.c - see gpu_node.h. */
#include "loader/api/choose/gpu_node.h"

#include "loader/base/cpu/numa.h"

enum { RANKS_MAX = 32 }; /* GPUs of a machine */

/* The node of a GPU, and its CPUs; STK_NO_NODE if it is unknown. */
static int32_t node_of(struct stk_device *device, uint32_t index, const char *root, cpu_set_t *cpus)
{
    char address[STK_BUS_ADDRESS_BYTES];
    if (!device->ops->bus_address(device, index, address))
        return STK_NO_NODE;
    const int32_t node = stk_numa_of_pci(root, address);
    return node != STK_NO_NODE && stk_numa_cpus(root, node, cpus) ? node : STK_NO_NODE;
}

int32_t stk_gpu_node_move(struct stk_cpu_share *share, struct stk_device *device, uint32_t rank,
                          uint32_t ranks, const char *root)
{
    cpu_set_t own;
    cpu_set_t near[RANKS_MAX];
    int32_t node = STK_NO_NODE;
    if (!share->keeps || device->ops->bus_address == NULL || device->index != rank ||
        ranks > RANKS_MAX || sched_getaffinity(0, sizeof(own), &own) != 0)
        return STK_NO_NODE;
    for (uint32_t r = 0; r < ranks; r++) {
        const int32_t found = node_of(device, r, root, &near[r]);
        if (found == STK_NO_NODE)
            return STK_NO_NODE;
        node = r == rank ? found : node;
    }
    return stk_cpu_share_move(share, &own, near, rank, ranks) ? node : STK_NO_NODE;
}
