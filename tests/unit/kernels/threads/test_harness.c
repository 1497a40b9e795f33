/* test_harness.c - the harness itself (cuda_threads.h): nothing is found in kernels that are right,
 * and of each that is wrong in one way, exactly that.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "support/cuda_threads/cuda_threads.h"

enum { THREADS = 64, BLOCKS = 3, COUNT = BLOCKS * THREADS, SEEDS = 8 };

/* The argument of all examples (examples.cpp). */
struct example {
    uint32_t *out;
    const uint32_t *in;
    uint32_t count;
    uint32_t *ticket;
};

/* Gaps, so that an access beyond one array is not inside the next. */
static struct {
    uint32_t in[COUNT], gap[COUNT], out[COUNT + 1], second_gap[COUNT], ticket;
} memory_of_examples;
static uint32_t *const in = memory_of_examples.in, *const out = memory_of_examples.out;
static uint32_t *const ticket = &memory_of_examples.ticket;

static bool equal_writes;

static struct cuda_threads_report run(const char *kernel, uint32_t blocks, uint32_t out_count,
                                      bool scratch, uint64_t seed)
{
    static const struct cuda_threads_module *module;
    static struct cuda_threads_report report;
    const struct example a = { out, in, blocks * THREADS, ticket };
    const struct cuda_threads_memory memory[] = {
        { out, out_count * sizeof(*out), "out", true, scratch },
        { in, blocks * THREADS * sizeof(*in), "in", false, false },
        { ticket, sizeof(*ticket), "ticket", true, false },
    };
    const struct cuda_threads_launch launch = { .kernel = kernel,
                                                .arguments = &a,
                                                .arguments_bytes = sizeof(a),
                                                .grid_x = blocks,
                                                .grid_y = 1,
                                                .threads = THREADS,
                                                .memory = memory,
                                                .memory_count = 3,
                                                .seed = seed,
                                                .equal_writes = equal_writes,
                                                .interrupt_every = seed == 0 ? 0 : 3 };
    if (module == NULL)
        module = cuda_threads_open(STOKER_TEST_EXAMPLES);
    cr_assert_not_null(module, "%s", dlerror());
    cr_assert(cuda_threads_has(module, kernel), "%s", kernel);
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = i * i + 1;
    *ticket = 0;
    memset(out, 0, sizeof(memory_of_examples.out));
    (void)cuda_threads_run(module, &launch, &report);
    return report;
}

static uint32_t sum_of(uint32_t first, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = first; i < first + count; i++)
        sum += in[i];
    return sum;
}

static void expect_nothing(const char *kernel, uint64_t seed)
{
    const struct cuda_threads_report report = run(kernel, BLOCKS, COUNT + 1, true, seed);
    cr_assert_eq(report.count, 0, "%s, seed %d: %s", kernel, (int)seed, report.findings[0].text);
    cr_assert_gt(report.accesses, 0);
}

Test(cuda_threads, kernels_that_are_right)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        expect_nothing("copies", seed);
        cr_assert_eq(memcmp(out, in, sizeof(memory_of_examples.in)), 0);
        expect_nothing("sums_of_blocks", seed);
        for (uint32_t i = 0; i < BLOCKS; i++)
            cr_assert_eq(out[i], sum_of(i * THREADS, THREADS));
        expect_nothing("sums_of_warps", seed);
        for (uint32_t i = 0; i < COUNT / 32; i++)
            cr_assert_eq(out[i], sum_of(i * 32, 32));
        expect_nothing("last_block_adds", seed);
        cr_assert_eq(out[0], sum_of(0, BLOCKS));
        expect_nothing("fence_behind_a_barrier", seed);
        cr_assert_eq(out[0], sum_of(0, COUNT));
    }
}

/* Every finding must be of that kind. */
static void expect(const char *kernel, enum cuda_threads_kind kind)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct cuda_threads_report report = run(kernel, BLOCKS, COUNT, false, seed);
        cr_assert_gt(report.count, 0, "%s, seed %d: nothing found", kernel, (int)seed);
        for (uint32_t i = 0; i < report.count && i < CUDA_THREADS_FINDINGS_MAX; i++) {
            cr_assert_eq(report.findings[i].kind, kind, "%s", report.findings[i].text);
            cr_assert_not_null(strstr(report.findings[i].text, kernel));
        }
    }
}

Test(cuda_threads, races)
{
    expect("no_barrier", CUDA_THREADS_RACE_IN_BLOCK);
    expect("write_after_read_of_another", CUDA_THREADS_RACE_IN_BLOCK);
    expect("blocks_write_one", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    expect("no_fence_before", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    expect("no_fence_behind", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    expect("fence_of_another_thread", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    const struct cuda_threads_report report = run("all_write_one", 1, COUNT, false, 1);
    cr_assert_eq(report.count, 1, "once, although 63 threads do it");
    cr_assert_eq(report.findings[0].kind, CUDA_THREADS_RACE_IN_BLOCK);
}

Test(cuda_threads, blocks_that_write_the_same)
{
    expect("blocks_write_equal_values", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    equal_writes = true;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        cr_assert_eq(run("blocks_write_equal_values", BLOCKS, COUNT, false, seed).count, 0);
    expect("blocks_write_one", CUDA_THREADS_RACE_BETWEEN_BLOCKS);
    cr_assert_eq(run("all_write_one", 1, COUNT, false, 1).count, 1, "in a block it is a race");
}

Test(cuda_threads, memory)
{
    expect("reads_beyond", CUDA_THREADS_OUTSIDE);
    expect("writes_beyond", CUDA_THREADS_OUTSIDE);
    expect("writes_across_the_end", CUDA_THREADS_OUTSIDE);
    expect("reads_eight_bytes_at_four", CUDA_THREADS_MISALIGNED);
    expect("writes_constants", CUDA_THREADS_CONSTANT);
    expect("reads_unwritten", CUDA_THREADS_UNWRITTEN);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(in[i], i * i + 1, "a write that ends the launch does not happen");
    const struct cuda_threads_report report = run("reads_scratch", 1, COUNT, true, 0);
    cr_assert_eq(report.count, 1);
    cr_assert_eq(report.findings[0].kind, CUDA_THREADS_UNWRITTEN);
    cr_assert_eq(run("reads_scratch", 1, COUNT, false, 0).count, 0,
                 "what is no scratch may be read");
}

/* Memory that no list has is looked up. */
static bool find_out(const void *address, struct cuda_threads_memory *found)
{
    *found =
        (struct cuda_threads_memory){ out, sizeof(memory_of_examples.out), "found", true, false };
    return (const char *)address >= (const char *)out &&
           (const char *)address < (const char *)out + sizeof(memory_of_examples.out);
}

Test(cuda_threads, memory_that_is_looked_up)
{
    const struct cuda_threads_module *module = cuda_threads_open(STOKER_TEST_EXAMPLES);
    const struct example a = { out, out + THREADS, THREADS, ticket };
    struct cuda_threads_launch launch = { .kernel = "copies",
                                          .arguments = &a,
                                          .arguments_bytes = sizeof(a),
                                          .grid_x = 1,
                                          .grid_y = 1,
                                          .threads = THREADS,
                                          .find = find_out };
    static struct cuda_threads_report report;
    cr_assert_not_null(module, "%s", dlerror());
    out[2 * THREADS - 1] = 77;
    cr_assert_eq(cuda_threads_run(module, &launch, &report), 0, "%s", report.findings[0].text);
    cr_assert_eq(out[THREADS - 1], 77);
    launch.find = NULL;
    cr_assert_eq(cuda_threads_run(module, &launch, &report), 1);
    cr_assert_eq(report.findings[0].kind, CUDA_THREADS_OUTSIDE);
}

Test(cuda_threads, meetings)
{
    expect("half_at_a_barrier", CUDA_THREADS_BARRIER);
    expect("two_barriers", CUDA_THREADS_BARRIER);
    expect("lane_not_in_its_mask", CUDA_THREADS_SHUFFLE);
    expect("source_not_in_the_mask", CUDA_THREADS_SHUFFLE);
    expect("lanes_missing", CUDA_THREADS_DEADLOCK);
    expect("masks_differ", CUDA_THREADS_DEADLOCK);
}

/* More shadow memory than a chunk has, and a second one behind it. */
Test(cuda_threads, large_memory)
{
    enum { BYTES = 20 << 20 };
    const struct cuda_threads_module *module = cuda_threads_open(STOKER_TEST_EXAMPLES);
    uint32_t *from = calloc(2, BYTES), *to = from + BYTES / sizeof(*from);
    cr_assert(module != NULL && from != NULL);
    const struct cuda_threads_memory memory[] = { { from, BYTES, "from", false, false },
                                                  { to, BYTES, "to", true, true } };
    struct example a = { to, from, COUNT, NULL };
    const struct cuda_threads_launch launch = { .kernel = "copies",
                                                .arguments = &a,
                                                .arguments_bytes = sizeof(a),
                                                .grid_x = BLOCKS,
                                                .grid_y = 1,
                                                .threads = THREADS,
                                                .memory = memory,
                                                .memory_count = 2 };
    static struct cuda_threads_report report;
    cr_assert_eq(cuda_threads_run(module, &launch, &report), 0, "%s", report.findings[0].text);
    a.out = to + BYTES / sizeof(*to) - COUNT; /* up to the end, and one beyond it */
    cr_assert_eq(cuda_threads_run(module, &launch, &report), 0, "%s", report.findings[0].text);
    a.out++;
    cr_assert_eq(cuda_threads_run(module, &launch, &report), 1);
    free(from);
}

/* Slices have 32 bits: a long life must not make old notes look new, or new ones old. */
Test(cuda_threads, numbers_of_slices_run_out)
{
    for (uint32_t left = 0; left < 2000; left += 97) {
        (void)run("blocks_write_one", BLOCKS, COUNT, false, 1);
        cuda_threads_count_from(UINT32_MAX - left);
        expect_nothing("sums_of_blocks", 1);
        cuda_threads_count_from(UINT32_MAX - left);
        cr_assert_eq(run("no_barrier", BLOCKS, COUNT, false, 1).findings[0].kind,
                     CUDA_THREADS_RACE_IN_BLOCK);
        cuda_threads_count_from(UINT32_MAX - left);
        cr_assert_gt(run("blocks_write_one", BLOCKS, COUNT, false, 1).count, 0);
    }
}
