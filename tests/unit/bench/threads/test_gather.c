/* test_gather.c - loaderbench's gather kernel, run from its own source on the CPU: the bytes of its host version, and no access
 * outside of rows, numbers and output.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/device/gather.h"
#include "support/cuda_threads/cuda_threads.h"

enum { ROWS = 40, TAKEN_MAX = 19 };

static void expect_same(const struct cuda_threads_module *module, uint64_t row_bytes,
                        size_t element_bytes, uint32_t count)
{
    const size_t out_bytes = count * row_bytes * element_bytes;
    uint8_t *rows = aligned_alloc(64, (ROWS * row_bytes + 63) / 64 * 64);
    uint8_t *expected = aligned_alloc(64, (out_bytes + 63) / 64 * 64);
    uint8_t *made = aligned_alloc(64, (out_bytes + 63) / 64 * 64);
    uint64_t numbers[TAKEN_MAX];
    for (uint64_t i = 0; i < ROWS * row_bytes; i++)
        rows[i] = (uint8_t)(i * 37 + i / 256);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = (i * 17 + 39) % ROWS;
    struct bench_gather gather = { rows, numbers, expected, row_bytes, count, 1 / 255.0F, -0.5F };
    bench_gather_on_host(&gather, element_bytes);

    static struct cuda_threads_report report;
    const struct cuda_threads_memory memory[] = {
        { rows, ROWS * row_bytes, "rows", false, false },
        { numbers, count * sizeof(*numbers), "numbers", false, false },
        { made, out_bytes, "out", true, true },
    };
    gather.out = made;
    const uint64_t to_bytes = row_bytes * element_bytes;
    const struct cuda_threads_launch launch = {
        .kernel = bench_gather_name(element_bytes),
        .arguments = &gather,
        .arguments_bytes = sizeof(gather),
        .grid_x = (count + 7) / 8,
        .grid_y = (uint32_t)((to_bytes + BENCH_GATHER_PART_BYTES - 1) / BENCH_GATHER_PART_BYTES),
        .threads = BENCH_GATHER_THREADS,
        .memory = memory,
        .memory_count = 3,
        .seed = 5,
    };
    cr_assert(bench_gather_fits(row_bytes, element_bytes));
    cr_assert(cuda_threads_has(module, launch.kernel));
    (void)cuda_threads_run(module, &launch, &report);
    cr_assert_eq(report.count, 0, "%s", report.findings[0].text);
    cr_assert_eq(memcmp(expected, made, out_bytes), 0, "%zu bytes an element, rows of %d",
                 element_bytes, (int)row_bytes);
    free(rows);
    free(expected);
    free(made);
}

Test(bench_gather, kernel_and_host_write_the_same)
{
    const struct cuda_threads_module *module = cuda_threads_open(STOKER_TEST_BENCH_KERNELS);
    cr_assert_not_null(module, "%s", dlerror());
    for (size_t element_bytes = 1; element_bytes <= 4; element_bytes *= 2) {
        expect_same(module, 16 / element_bytes, element_bytes, 1);
        expect_same(module, 784, element_bytes, TAKEN_MAX);
        expect_same(module, 3072, element_bytes, 9);
    }
}

Test(bench_gather, rows_that_are_not_whole_pieces)
{
    cr_assert_not(bench_gather_fits(15, 1));
    cr_assert_not(bench_gather_fits(783, 4));
    cr_assert_not(bench_gather_fits(16, 8));
    cr_assert(bench_gather_fits(4, 4));
}
