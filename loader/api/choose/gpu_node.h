/* gpu_node.h - lets the workers of one of several ranks run near its GPU: on the CPUs of its NUMA
 * node. */
#ifndef STK_API_GPU_NODE_H
#define STK_API_GPU_NODE_H

#include <stdint.h>

#include "loader/base/cpu/cpu_share.h"
#include "loader/device/device.h"

/* Moves a share that keeps to CPUs, of rank `rank` of `ranks` on this machine, to the node of its
 * GPU, and returns the node. Every rank must find the same, so all must see all GPUs, and rank r
 * must have GPU r. Returns STK_NO_NODE if that is not so, if a node is unknown, or if one has not
 * enough CPUs for its ranks: then *share is unchanged. root: "", or a test's folder. */
int32_t stk_gpu_node_move(struct stk_cpu_share *share, struct stk_device *device, uint32_t rank,
                          uint32_t ranks, const char *root);

#endif
