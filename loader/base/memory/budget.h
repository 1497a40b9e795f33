/* budget.h - how much memory this process may use, shared among its loaders and the other ranks.
 *
 *   machine: MemAvailable ─┐
 *   control groups: left  ─┴─▶ least ─▶ / ranks on this node ─▶ / 2 ─▶ less what other loaders reserved
 *
 * What a cache reserves is filled later, so what is available shows too little of it: the loaders
 * of a process count what they reserved. That count and the readers of mapped shards
 * (dataset/recall.h) are the library's only variables that belong to the process.
 */
#ifndef STK_BASE_BUDGET_H
#define STK_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/base/memory/cgroup.h"

/* Memory that the machine and control groups leave to this process. `root` is prefixed to all
 * paths: "", or a test's folder. */
struct stk_memory_room stk_memory_look(const char *root);

/* Its `left`, bytes; 1 GiB if nothing is known. */
uint64_t stk_memory_available(void);

/* Bytes that one more loader of this process may reserve by default, if `available_bytes` are
 * divided among `ranks`. */
uint64_t stk_budget_left(uint64_t available_bytes, uint32_t ranks);

/* Count bytes as reserved until they are given back. Any thread. A child process starts at 0. */
void stk_budget_reserve(uint64_t bytes);
void stk_budget_give_back(uint64_t bytes);

#endif
