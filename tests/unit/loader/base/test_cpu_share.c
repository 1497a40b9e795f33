/* test_cpu_share.c - the CPUs of one of several processes: every CPU has one owner, and a
 * launcher's binding is kept. */
#include <criterion/criterion.h>

#include "loader/base/cpu/cpu_share.h"

static cpu_set_t cpus(size_t first, size_t count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t cpu = first; cpu < first + count; cpu++)
        CPU_SET(cpu, &set);
    return set;
}

Test(cpu_share, unbound_processes_divide_all_cpus)
{
    for (uint32_t count = 1; count <= 65; count++)
        for (uint32_t ranks = 1; ranks <= 9; ranks++) {
            const cpu_set_t all = cpus(3, count);
            cpu_set_t given = cpus(0, 0);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                const struct stk_cpu_share share =
                    stk_cpu_share_divide(&all, &all, UINT32_MAX, rank, ranks);
                const uint32_t fair = count / ranks;
                cr_assert_eq(share.count, fair < 1 ? 1 : fair);
                cr_assert_eq(share.keeps, ranks > 1 && count >= ranks);
                if (!share.keeps)
                    continue;
                cr_assert_geq((uint32_t)CPU_COUNT(&share.set), fair);
                cpu_set_t both;
                CPU_AND(&both, &given, &share.set);
                cr_assert_eq(CPU_COUNT(&both), 0, "one owner each");
                CPU_OR(&given, &given, &share.set);
            }
            cr_assert(ranks == 1 || count < ranks || CPU_EQUAL(&given, &all), "none is left over");
        }
}

Test(cpu_share, a_binding_by_the_launcher_is_kept)
{
    const cpu_set_t all = cpus(0, 32);
    const cpu_set_t core = cpus(5, 1);
    const cpu_set_t socket = cpus(16, 16);
    const struct stk_cpu_share to_core = stk_cpu_share_divide(&core, &all, UINT32_MAX, 5, 32);
    cr_assert_not(to_core.keeps);
    cr_assert_eq(to_core.count, 1);
    /* 8 processes on 2 sockets: 4 on each. */
    const struct stk_cpu_share to_socket = stk_cpu_share_divide(&socket, &all, UINT32_MAX, 7, 8);
    cr_assert_not(to_socket.keeps);
    cr_assert_eq(to_socket.count, 4);
    /* 2 processes, a quarter each. */
    const cpu_set_t quarter = cpus(8, 8);
    cr_assert_eq(stk_cpu_share_divide(&quarter, &all, UINT32_MAX, 1, 2).count, 8);
}

Test(cpu_share, a_quota_is_of_all_processes_together)
{
    const cpu_set_t all = cpus(0, 32);
    cr_assert_eq(stk_cpu_share_divide(&all, &all, 8, 1, 4).count, 2);
    cr_assert_eq(stk_cpu_share_divide(&all, &all, 3, 1, 4).count, 1);
    cr_assert_eq(stk_cpu_share_divide(&all, &all, 100, 1, 4).count, 8);
}

/* ---- near a GPU ---- */

/* Checks that every rank has CPUs near its GPU, and none another's; returns false if no rank
 * moves. */
static bool move_all(const cpu_set_t *own, const cpu_set_t *near, uint32_t ranks)
{
    cpu_set_t given = cpus(0, 0);
    uint32_t moved = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct stk_cpu_share share = stk_cpu_share_divide(own, own, UINT32_MAX, rank, ranks);
        const struct stk_cpu_share before = share;
        const bool moves = stk_cpu_share_move(&share, own, near, rank, ranks);
        cpu_set_t both;
        moved += moves ? 1 : 0;
        cr_assert_eq(share.count, before.count);
        cr_assert(share.keeps);
        if (!moves)
            cr_assert(CPU_EQUAL(&share.set, &before.set));
        cr_assert_geq((uint32_t)CPU_COUNT(&share.set), share.count);
        CPU_AND(&both, &share.set, &near[rank]);
        cr_assert(!moves || CPU_EQUAL(&both, &share.set), "rank %u is elsewhere", rank);
        CPU_AND(&both, &share.set, own);
        cr_assert(CPU_EQUAL(&both, &share.set));
        CPU_AND(&both, &share.set, &given);
        cr_assert_eq(CPU_COUNT(&both), 0, "one owner each");
        CPU_OR(&given, &given, &share.set);
    }
    cr_assert(moved == 0 || moved == ranks, "all ranks decide the same");
    return moved > 0;
}

Test(cpu_share, ranks_move_to_the_node_of_their_gpu)
{
    const cpu_set_t all = cpus(0, 16);
    const cpu_set_t low = cpus(0, 8);
    const cpu_set_t high = cpus(8, 8);
    const cpu_set_t crossed[] = { high, low };
    cr_assert(move_all(&all, crossed, 2));
    const cpu_set_t in_turns[] = { high, low, high, low };
    cr_assert(move_all(&all, in_turns, 4));
    const cpu_set_t whole[] = { all, all, all };
    cr_assert(move_all(&all, whole, 3));
    /* Only a part of each node is this job's. */
    const cpu_set_t some = cpus(4, 8);
    cr_assert(move_all(&some, in_turns, 4));
}

Test(cpu_share, no_rank_moves_if_one_would_lose_cpus)
{
    const cpu_set_t all = cpus(0, 16);
    const cpu_set_t low = cpus(0, 8);
    const cpu_set_t high = cpus(8, 8);
    const cpu_set_t one_side[] = { low, low, low, low };
    cr_assert_not(move_all(&all, one_side, 4));
    const cpu_set_t uneven[] = { low, low, high }; /* 16 / 3 are 5, and 8 / 2 only 4 */
    cr_assert_not(move_all(&all, uneven, 3));
    const cpu_set_t mine = cpus(0, 6); /* the job's: 4 and 2 of them are near */
    const cpu_set_t halves[] = { cpus(0, 4), cpus(4, 4) };
    cr_assert_not(move_all(&mine, halves, 2));
}

Test(cpu_share, one_process_has_everything)
{
    cpu_set_t own;
    cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    const struct stk_cpu_share share = stk_cpu_share_of(0, 1);
    cr_assert_not(share.keeps);
    cr_assert_geq(share.count, 1);
    cr_assert_leq(share.count, (uint32_t)CPU_COUNT(&own));
}

/* Threads of a process divide what it may use, however few of the machine's CPUs that are. */
Test(cpu_share, ranks_that_are_threads_divide_the_cpus_of_their_process)
{
    cpu_set_t own;
    cpu_set_t both;
    cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    const uint32_t all = stk_cpu_share_here(0, 1).count;
    if (CPU_COUNT(&own) < 2)
        cr_skip("one CPU cannot be divided");
    const struct stk_cpu_share first = stk_cpu_share_here(0, 2);
    const struct stk_cpu_share second = stk_cpu_share_here(1, 2);
    cr_assert(first.keeps && second.keeps);
    CPU_AND(&both, &first.set, &second.set);
    cr_assert_eq(CPU_COUNT(&both), 0);
    CPU_OR(&both, &first.set, &second.set);
    cr_assert(CPU_EQUAL(&both, &own));
    cr_assert_leq(first.count, (all + 1) / 2);
    cr_assert_geq(first.count, 1);
}
