/* cpu_share.h - the CPUs of one process where a launcher has started several on a node.
 *
 *   the launcher may use      0 1 2 3 4 5 6 7        2 processes that it has not bound:
 *   process 0, process 1      0 1 2 3 | 4 5 6 7      each keeps its threads to a half
 *
 * A process that may use fewer CPUs than its parent has been bound, and stays as it is: it only
 * counts how many others the launcher has put on the same CPUs.
 *
 *   near GPU 0, GPU 1         4 5 6 7 | 0 1 2 3      with a GPU each, a process keeps to those near its own
 */
#ifndef STK_BASE_CPU_SHARE_H
#define STK_BASE_CPU_SHARE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct stk_cpu_share {
    uint32_t count; /* CPUs that this process should keep busy, >= 1 */
    bool keeps;     /* its threads should run on `set` alone */
    cpu_set_t set;  /* empty unless keeps */
};

/* Of `own` and `parent`, the CPUs that this process and its parent may use; quota: CPUs that a
 * control group leaves to all, UINT32_MAX = no limit; rank 0..ranks - 1 of `ranks` >= 1 processes
 * on this node. Pure. */
struct stk_cpu_share stk_cpu_share_divide(const cpu_set_t *own, const cpu_set_t *parent,
                                          uint32_t quota, uint32_t rank, uint32_t ranks);

/* Moves a share that keeps to CPUs of `own` to those near its rank: near[r] are the CPUs near the
 * GPU of rank r < ranks, the CPUs of one NUMA node. Ranks with equal sets divide them. Returns
 * false, and changes nothing, if some of them would get fewer CPUs of `own` than without: then no
 * rank moves, and none takes another's CPUs. Pure. */
bool stk_cpu_share_move(struct stk_cpu_share *share, const cpu_set_t *own, const cpu_set_t *near,
                        uint32_t rank, uint32_t ranks);

/* stk_cpu_share_divide() by what the kernel says. Nothing is divided if ranks is 1. */
struct stk_cpu_share stk_cpu_share_of(uint32_t rank, uint32_t ranks);

/* The same for ranks that share the CPUs of the calling thread, such as threads of one process: no
 * launcher has bound them. rank < ranks. */
struct stk_cpu_share stk_cpu_share_here(uint32_t rank, uint32_t ranks);

#endif
