/* test_base.c - the base of everything: memory, threads, random numbers, bytes, the fork
 * guard, and the hooks with which tests make them fail.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <stoker/error.h>

#include "loader/base/bytes.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "loader/base/fork.h"
#include "loader/base/memory/budget.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "support/leaks.h"
#include "support/runs/emulator.h"

/* ---- memory ---- */

CleanTest(memory, blocks_are_zeroed_aligned_and_counted)
{
    const int64_t before = stk_fault_live_bytes();
    for (size_t bytes = 0; bytes < 300; bytes++) {
        uint8_t *block = stk_calloc(bytes, 1);
        cr_assert_not_null(block);
        cr_assert_eq((uintptr_t)block % STK_CACHE_LINE, 0);
        for (size_t i = 0; i < bytes; i++)
            cr_assert_eq(block[i], 0);
        cr_assert_eq(stk_fault_live_bytes(), before + (int64_t)bytes);
        memset(block, 0xFF, bytes); /* the next block may be this one */
        stk_free(block);
    }
    cr_assert_eq(stk_fault_live_bytes(), before);
    stk_free(NULL);
}

/* True if the kernel was asked for huge pages at this address. */
static bool is_advised(const void *address)
{
    char line[512];
    bool here = false;
    bool advised = false;
    FILE *const file = fopen("/proc/self/smaps", "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned long begin;
        unsigned long end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = (uintptr_t)address >= begin && (uintptr_t)address < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            advised = strstr(line, " hg") != NULL;
    }
    (void)fclose(file);
    return advised;
}

CleanTest(memory, large_blocks_are_zeroed_and_advised_for_huge_pages)
{
    enum { BYTES = 5 << 20 };
    const bool advises =
        access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0 && !stk_test_is_emulated();
    for (int round = 0; round < 2; round++) {
        uint8_t *const block = stk_calloc(BYTES, 1);
        cr_assert_not_null(block);
        cr_assert_eq((uintptr_t)block % STK_CACHE_LINE, 0);
        cr_assert_eq(stk_fault_live_bytes(), BYTES);
        for (size_t i = 0; i < BYTES; i++)
            cr_assert_eq(block[i], 0);
        if (advises)
            cr_assert(is_advised(block));
        memset(block, 0xFF, BYTES); /* the next block may be this one */
        stk_free(block);
    }
}

CleanTest(memory, sizes_that_overflow_are_refused)
{
    cr_assert_null(stk_calloc(SIZE_MAX, 2));
    cr_assert_null(stk_calloc(SIZE_MAX / 2 + 1, 2));
    cr_assert_null(stk_calloc(1, SIZE_MAX));
    cr_assert_null(stk_calloc(1, SIZE_MAX - STK_CACHE_LINE));
    struct stk_region region;
    cr_assert_eq(stk_region_map(&region, SIZE_MAX), STOKER_ENOMEM);
    cr_assert_eq(stk_region_map(&region, SIZE_MAX / 2), STOKER_ENOMEM);
    cr_assert_null(region.base);
    stk_region_unmap(&region);
}

CleanTest(memory, arrays_grow_and_keep_their_items)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t count = 0; count < 1000; count++) {
        uint32_t *grown = stk_array_grow(items, sizeof(items[0]), count, &capacity, 1);
        cr_assert_not_null(grown);
        cr_assert_lt(count, capacity);
        items = grown;
        items[count] = count;
    }
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert_eq(items[i], i);
    const size_t before = capacity;
    cr_assert_null(stk_array_grow(items, sizeof(items[0]), 1000, &capacity, SIZE_MAX - 1));
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_null(stk_array_grow(items, sizeof(items[0]), 1000, &capacity, 5000));
    cr_assert(stk_fault_disarm());
    cr_assert_eq(capacity, before);
    cr_assert_eq(items[999], 999);
    items = stk_array_grow(items, sizeof(items[0]), 1000, &capacity, 5000);
    cr_assert_not_null(items);
    cr_assert_geq(capacity, 6000);
    cr_assert_eq(items[999], 999);
    stk_free(items);
}

CleanTest(memory, regions_are_whole_aligned_zeroed_pages)
{
    static const size_t sizes[] = { 1, 4095, 4096, 4097, 1 << 20, (2 << 20) - 1, 2 << 20, 5 << 20 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct stk_region region;
        cr_assert_eq(stk_region_map(&region, sizes[i]), 0);
        const size_t unit = sizes[i] >= STK_HUGE_PAGE_BYTES ? STK_HUGE_PAGE_BYTES : page;
        cr_assert_eq((uintptr_t)region.base % unit, 0);
        cr_assert_geq(region.bytes, sizes[i]);
        cr_assert_eq(region.bytes % page, 0);
        const uint8_t *bytes = region.base;
        cr_assert_eq(bytes[0] | bytes[region.bytes / 2] | bytes[region.bytes - 1], 0);
        stk_region_populate(&region);
        cr_assert_eq(stk_fault_live_bytes(), (int64_t)region.mapped_bytes);
        stk_region_unmap(&region);
        cr_assert_null(region.base);
        stk_region_unmap(&region); /* never mapped: allowed */
    }
}

CleanTest(memory, available_is_a_sensible_number)
{
    cr_assert_gt(stk_memory_available(), 1U << 20);
    cr_assert_lt(stk_memory_available(), UINT64_C(1) << 50);
}

/* ---- faults ---- */

CleanTest(fault, the_nth_hit_of_its_kind_fails_once)
{
    for (uint64_t nth = 1; nth < 10; nth++) {
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        for (uint64_t i = 1; i < 20; i++) {
            struct stk_region region;
            if (i % 2 == 0) {
                cr_assert_eq(stk_region_map(&region, 1) == STOKER_ENOMEM, i == nth);
                stk_region_unmap(&region);
            } else {
                void *block = stk_calloc(1, 1);
                cr_assert_eq(block == NULL, i == nth);
                stk_free(block);
            }
        }
        cr_assert(stk_fault_disarm());
    }
    stk_fault_arm(STK_FAULT_THREAD, 1);
    stk_free(stk_calloc(1, 1)); /* another kind */
    cr_assert_not(stk_fault_disarm());
}

/* ---- threads ---- */

static void *report_signals(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
    return NULL;
}

CleanTest(thread, starts_with_every_signal_blocked_and_leaves_ours_alone)
{
    pthread_t thread;
    sigset_t inside;
    sigset_t outside;
    sigemptyset(&inside);
    cr_assert_eq(stk_thread_start(&thread, "test", report_signals, &inside), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(sigismember(&inside, SIGINT), 1);
    cr_assert_eq(sigismember(&inside, SIGUSR1), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &outside);
    cr_assert_eq(sigismember(&outside, SIGINT), 0);
}

CleanTest(thread, futex_waits_in_time_and_only_on_the_value)
{
    _Atomic uint32_t word = 5;
    const uint64_t start_ns = stk_now_ns();
    stk_futex_wait(&word, 4, -1); /* it is not 4: returns at once */
    cr_assert_lt(stk_now_ns() - start_ns, 1000000000U);
    stk_futex_wait(&word, 5, 10000000);
    cr_assert_geq(stk_now_ns() - start_ns, 9000000U);
    stk_futex_wake(&word, UINT32_MAX); /* nobody sleeps: nothing happens */
}

CleanTest(thread, cpus_follow_the_affinity)
{
    cpu_set_t all;
    cpu_set_t one;
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    cr_assert_geq(stk_cpu_count(), 1);
    cr_assert_leq(stk_cpu_count(), (uint32_t)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    cr_assert_eq(stk_cpu_count(), 1);
}

static void *spin_until(void *argument)
{
    const uint64_t end_ns = *(const uint64_t *)argument;
    while (stk_now_ns() < end_ns)
        stk_spin_pause();
    return NULL;
}

/* Two threads that share a CPU, at work for a tenth of a second: each waits for the other. */
CleanTest(thread, knows_what_a_thread_waited_for_a_cpu)
{
    cpu_set_t one;
    const uint64_t begin_ns = stk_now_ns();
    const uint64_t end_ns = begin_ns + 100000000;
    pthread_t thread;
    CPU_ZERO(&one);
    CPU_SET(stk_cpu_here(), &one);
    if (access("/proc/self/schedstat", R_OK) != 0 || sched_setaffinity(0, sizeof(one), &one) != 0)
        cr_skip_test("this system does not say");
    cr_assert_eq(stk_thread_start(&thread, "test", spin_until, (void *)(uintptr_t)&end_ns), 0);
    (void)spin_until((void *)(uintptr_t)&end_ns);
    const uint64_t queue_ns = stk_thread_queue_ns(gettid());
    const uint64_t cpu_ns = stk_thread_cpu_ns(pthread_self());
    pthread_join(thread, NULL);
    cr_assert_gt(queue_ns, 10000000);
    cr_assert_gt(cpu_ns, 0);
    cr_assert_eq(stk_thread_queue_ns(-1), 0);
}

CleanTest(thread, leaving_a_cpu_moves_and_keeps_the_affinity)
{
    cpu_set_t before;
    cpu_set_t after;
    cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    for (uint32_t cpu = 0; cpu < 64; cpu++) {
        const bool others = CPU_COUNT(&before) > (CPU_ISSET(cpu, &before) ? 1 : 0);
        cr_assert_eq(stk_thread_leave_cpu(cpu), others);
        cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
        cr_assert(CPU_EQUAL(&before, &after));
    }
    cr_assert_not(stk_thread_leave_cpu(UINT32_MAX), "no such CPU");

    /* Bound to one CPU it has nowhere to go. */
    const uint32_t here = stk_cpu_here();
    CPU_ZERO(&before);
    CPU_SET(here, &before);
    cr_assert_eq(sched_setaffinity(0, sizeof(before), &before), 0);
    cr_assert_eq(stk_cpu_here(), here);
    cr_assert_not(stk_thread_leave_cpu(here));
}

/* ---- numbers ---- */

/* Known answers of Random123 1.14 (kat_vectors, philox4x32-10). */
CleanTest(rng, philox_gives_its_known_answers)
{
    struct stk_random draw = stk_philox(0, 0, 0);
    static const uint32_t zeros[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    cr_assert_arr_eq(draw.word, zeros, sizeof(zeros));
    draw = stk_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    static const uint32_t ones[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
    cr_assert_arr_eq(draw.word, ones, sizeof(ones));
    draw = stk_philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
    static const uint32_t pi[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    cr_assert_arr_eq(draw.word, pi, sizeof(pi));
}

/* The first outputs of SplitMix64 from seed 0: states are multiples of its increment. */
CleanTest(rng, mixer_gives_its_known_answers)
{
    cr_assert_eq(stk_mix64(0), 0xE220A8397B1DCDAFU);
    cr_assert_eq(stk_mix64(0x9E3779B97F4A7C15U), 0x6E789E6AA1B965F4U);
}

CleanTest(bytes, go_there_and_back)
{
    const uint8_t bytes[9] = { 0xFF, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint8_t stored[8];
    cr_assert_eq(stk_load_be16(bytes + 1), 0x0102);
    cr_assert_eq(stk_load_be32(bytes + 1), 0x01020304);
    cr_assert_eq(stk_load_be32(bytes), 0xFF010203);
    cr_assert_eq(stk_load_le32(bytes + 1), 0x04030201);
    cr_assert_eq(stk_load_le64(bytes + 1), 0x0807060504030201);
    stk_store_le64(stored, 0x0807060504030201);
    cr_assert_arr_eq(stored, bytes + 1, 8);
    stk_store_le32(stored, 0xFF030201);
    cr_assert_eq(stk_load_le32(stored), 0xFF030201);
}

/* ---- the fork guard ---- */

CleanTest(fork_guard, trips_in_the_child_only)
{
    struct stk_fork_guard guard;
    if (stk_test_is_emulated())
        cr_skip_test("this emulator does not wipe pages on fork");
    cr_assert_eq(stk_fork_guard_init(&guard), 0);
    cr_assert_not(stk_fork_guard_tripped(&guard));
    const pid_t child = fork();
    if (child == 0)
        _exit(stk_fork_guard_tripped(&guard) ? 0 : 1);
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_not(stk_fork_guard_tripped(&guard));
    stk_fork_guard_destroy(&guard);
}
