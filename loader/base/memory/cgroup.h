/* cgroup.h - finds how much memory and CPU time control groups allow this process.
 *
 * systemd, Slurm, Docker and Kubernetes nest groups, and each may have a limit: the tightest
 * counts.
 *
 *   /proc/self/cgroup      0::/user.slice/job.scope      which group, in which hierarchy
 *   /proc/self/mountinfo   ... /sys/fs/cgroup ...        where that hierarchy's folders are
 *   /sys/fs/cgroup/user.slice/job.scope, /sys/fs/cgroup/user.slice, /sys/fs/cgroup
 *
 * Version 2 (memory.max, cpu.max) and version 1 (memory.limit_in_bytes, cpu.cfs_quota_us), also
 * side by side. Groups above a container's own are not visible. Nothing is allocated.
 */
#ifndef STK_BASE_CGROUP_H
#define STK_BASE_CGROUP_H

#include <stdint.h>

/* What is left of the machine's memory, or of a limit, to this process. */
struct stk_memory_room {
    uint64_t left; /* bytes until the limit; page cache that can be dropped counts as left */
    /* Bytes until memory counts as short: until an eighth of the limit is left, or 1 GiB if that
     * is less. */
    uint64_t spare;
};

/* Lower *room to what is left of `limit` bytes: `used` of them are in use, `reclaimable` of these
 * as page cache. */
void stk_memory_room_lower(struct stk_memory_room *room, uint64_t limit, uint64_t used,
                           uint64_t reclaimable);

/* Lower *room by every group of this process. `root` is prefixed to all paths: "", or a test's
 * folder. */
void stk_cgroup_memory(const char *root, struct stk_memory_room *room);

/* CPUs that the tightest quota pays for, rounded up, >= 1; UINT32_MAX = no quota. */
uint32_t stk_cgroup_cpus(const char *root);

#endif
