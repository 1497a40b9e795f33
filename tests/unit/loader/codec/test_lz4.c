/* test_lz4.c - LZ4 blocks: packed and unpacked alike, damaged ones survived. */
#include "loader/codec/lz4.h"

#include <criterion/criterion.h>

#include "loader/base/rng.h"
#include "support/codec_run.h"
#include "support/leaks.h"

#ifndef STOKER_HAVE_LZ4

CleanTest(codec_lz4, a_build_without_lz4_says_so)
{
    cr_assert_not(stk_lz4_present());
    cr_assert_eq(stk_lz4_bound(100), 0);
    cr_assert_eq(stk_lz4_pack("a", 1, 0, NULL, 0), 0);
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, 1);
    cr_assert_eq(stk_codec_run(&run, (const uint8_t *)"\x10q", 2), STOKER_ENOTSUP);
    stk_codec_run_close(&run);
}

#else

enum { ROW_BYTES_MAX = 5000, BLOCK_BYTES_MAX = 6000 };

static uint8_t row[ROW_BYTES_MAX];
static uint8_t block[BLOCK_BYTES_MAX];

/* Runs and noise by turns. */
static void paint(size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)((i / 50) % 3 == 0 ? stk_mix64(seed + i) : i / 10);
}

CleanTest(codec_lz4, rows_come_back_as_they_went)
{
    static const size_t sizes[] = { 1, 2, 12, 13, 64, 784, 1000, ROW_BYTES_MAX };
    cr_assert(stk_lz4_present());
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int level = 0; level <= 12; level += 3) {
            paint(sizes[s], s);
            cr_assert_leq(stk_lz4_bound(sizes[s]), BLOCK_BYTES_MAX);
            const size_t bytes = stk_lz4_pack(row, sizes[s], level, block, sizeof(block));
            cr_assert_gt(bytes, 0);
            cr_assert_leq(bytes, stk_lz4_bound(sizes[s]));
            struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, sizes[s]);
            cr_assert_eq(stk_codec_run(&run, block, bytes), STOKER_OK);
            cr_assert_arr_eq(run.row, row, sizes[s]);
            stk_codec_run_close(&run);
        }
}

CleanTest(codec_lz4, a_block_that_does_not_fit_is_not_written)
{
    paint(1000, 3);
    const size_t bytes = stk_lz4_pack(row, 1000, 0, block, sizeof(block));
    cr_assert_gt(bytes, 0);
    cr_assert_eq(stk_lz4_pack(row, 1000, 0, block, bytes / 2), 0);
    cr_assert_eq(stk_lz4_bound(SIZE_MAX), 0);
}

CleanTest(codec_lz4, prefixes_and_other_row_sizes_are_refused)
{
    paint(784, 5);
    const size_t bytes = stk_lz4_pack(row, 784, 0, block, sizeof(block));
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, 784);
    for (size_t size = 0; size < bytes; size++)
        cr_assert_eq(stk_codec_run(&run, block, size), STOKER_ECORRUPT, "%zu of %zu", size, bytes);
    stk_codec_run_close(&run);
    for (size_t other = 780; other < 790; other++) {
        run = stk_codec_run_open(&stk_codec_lz4, other);
        cr_assert_eq(stk_codec_run(&run, block, bytes), other == 784 ? STOKER_OK : STOKER_ECORRUPT);
        stk_codec_run_close(&run);
    }
}

CleanTest(codec_lz4, flipped_bits_give_an_error_or_a_whole_row)
{
    paint(784, 7);
    const size_t bytes = stk_lz4_pack(row, 784, 9, block, sizeof(block));
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, 784);
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        block[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int rc = stk_codec_run(&run, block, bytes);
        cr_assert(rc == STOKER_OK || rc == STOKER_ECORRUPT);
        refused += rc != STOKER_OK;
        block[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_gt(refused, 50);
    stk_codec_run_close(&run);
}

CleanTest(codec_lz4, ratios_that_cannot_be_are_refused_unread)
{
    /* never written to: the sizes alone must decide */
    const stoker_encoded in = { .bytes = block, .size = 4 };
    stoker_error error = { 0 };
    cr_assert_eq(stk_codec_lz4.decode(NULL, NULL, &in, NULL, (size_t)INT32_MAX, &error),
                 STOKER_ECORRUPT);
    cr_assert_eq(stk_codec_lz4.decode(NULL, NULL, &in, NULL, (size_t)1 << 40, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "2^31"));
}

#endif
