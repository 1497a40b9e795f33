/* cpu_share.c - see cpu_share.h. */
#include "loader/base/cpu/cpu_share.h"

#include <assert.h>
#include <unistd.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/memory/cgroup.h"

static uint32_t at_least_one(uint32_t count)
{
    return count < 1 ? 1 : count;
}

/* Piece `rank` of `ranks` almost equal, consecutive ones: CPUs of one socket are usually numbered
 * in a row. */
static cpu_set_t piece(const cpu_set_t *all, uint32_t count, uint32_t rank, uint32_t ranks)
{
    const uint32_t first = (uint32_t)((uint64_t)count * rank / ranks);
    const uint32_t end = (uint32_t)((uint64_t)count * (rank + 1) / ranks);
    cpu_set_t set;
    uint32_t seen = 0;
    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, all))
            continue;
        if (seen >= first && seen < end)
            CPU_SET(cpu, &set);
        seen++;
    }
    return set;
}

struct stk_cpu_share stk_cpu_share_divide(const cpu_set_t *own, const cpu_set_t *parent,
                                          uint32_t quota, uint32_t rank, uint32_t ranks)
{
    assert(ranks >= 1);
    assert(rank < ranks);
    const uint32_t mine = at_least_one((uint32_t)CPU_COUNT(own));
    const uint32_t all = (uint32_t)CPU_COUNT(parent);
    const bool bound = all > mine;
    /* Processes on the CPUs of this one, if the launcher has bound all to equally many. */
    const uint32_t together =
        bound ? at_least_one((uint32_t)((uint64_t)mine * ranks / all)) : ranks;
    const uint32_t by_mask = at_least_one(mine / together);
    const uint32_t by_quota = at_least_one(quota / ranks);
    struct stk_cpu_share share = { .count = by_quota < by_mask ? by_quota : by_mask,
                                   .keeps = !bound && ranks > 1 && mine >= ranks };
    if (share.keeps)
        share.set = piece(own, mine, rank, ranks);
    return share;
}

bool stk_cpu_share_move(struct stk_cpu_share *share, const cpu_set_t *own, const cpu_set_t *near,
                        uint32_t rank, uint32_t ranks)
{
    assert(rank < ranks);
    const uint32_t equal = (uint32_t)CPU_COUNT(own) / ranks;
    cpu_set_t moved;
    CPU_ZERO(&moved);
    for (uint32_t r = 0; r < ranks; r++) {
        cpu_set_t cpus;
        uint32_t place = 0;    /* ranks before r near these CPUs */
        uint32_t together = 0; /* all ranks near them */
        for (uint32_t other = 0; other < ranks; other++)
            if (CPU_EQUAL(&near[other], &near[r])) {
                place += other < r;
                together++;
            }
        CPU_AND(&cpus, own, &near[r]);
        const uint32_t count = (uint32_t)CPU_COUNT(&cpus);
        if (count / together < equal)
            return false;
        if (r == rank)
            moved = piece(&cpus, count, place, together);
    }
    share->set = moved;
    return true;
}

/* More CPUs than a set holds, or one rank: nothing is bound. */
static struct stk_cpu_share count_only(uint32_t ranks)
{
    return (struct stk_cpu_share){ .count = at_least_one(stk_cpu_count() / at_least_one(ranks)) };
}

struct stk_cpu_share stk_cpu_share_of(uint32_t rank, uint32_t ranks)
{
    cpu_set_t own;
    cpu_set_t parent;
    if (ranks <= 1 || sched_getaffinity(0, sizeof(own), &own) != 0)
        return count_only(ranks);
    if (sched_getaffinity(getppid(), sizeof(parent), &parent) != 0)
        parent = own;
    return stk_cpu_share_divide(&own, &parent, stk_cgroup_cpus(""), rank, ranks);
}

struct stk_cpu_share stk_cpu_share_here(uint32_t rank, uint32_t ranks)
{
    cpu_set_t own;
    if (ranks <= 1 || sched_getaffinity(0, sizeof(own), &own) != 0)
        return count_only(ranks);
    return stk_cpu_share_divide(&own, &own, stk_cgroup_cpus(""), rank, ranks);
}
