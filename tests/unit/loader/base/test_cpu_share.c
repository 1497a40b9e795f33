/* test_cpu_share.c - the CPUs of one of several processes: every CPU has one owner, and a launcher's binding is kept. */
#include <criterion/criterion.h>

#include "loader/base/cpu_share.h"

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
