/* test_codec_lz4.c - LZ4 blocks: packed and unpacked alike, damaged ones survived. */
#include "loader/codec/lz4.h"

#include <criterion/criterion.h>

#include "codec_run.h"
#include "leaks.h"
#include "loader/base/rng.h"
#include "lz4_reference.h"

#ifndef STOKER_HAVE_LZ4

Test(codec_lz4, a_build_without_lz4_says_so)
{
    cr_assert_not(stk_lz4_present());
    cr_assert_eq(stk_lz4_bound(100), 0);
    cr_assert_eq(stk_lz4_pack("a", 1, 0, NULL, 0), 0);
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, 1);
    cr_assert_eq(stk_codec_run(&run, (const uint8_t *)"\x10q", 2), STOKER_ENOTSUP);
    stk_codec_run_close(&run);
    stk_test_check_leaks();
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

Test(codec_lz4, rows_come_back_as_they_went)
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
    stk_test_check_leaks();
}

Test(codec_lz4, a_block_that_does_not_fit_is_not_written)
{
    paint(1000, 3);
    const size_t bytes = stk_lz4_pack(row, 1000, 0, block, sizeof(block));
    cr_assert_gt(bytes, 0);
    cr_assert_eq(stk_lz4_pack(row, 1000, 0, block, bytes / 2), 0);
    cr_assert_eq(stk_lz4_bound(SIZE_MAX), 0);
    stk_test_check_leaks();
}

Test(codec_lz4, prefixes_and_other_row_sizes_are_refused)
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
    stk_test_check_leaks();
}

Test(codec_lz4, flipped_bits_give_an_error_or_a_whole_row)
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
    stk_test_check_leaks();
}

/* ---- rows long enough for the bulk ---- */

enum { LONG_BYTES = 70000, LONG_BLOCK_BYTES = 71000 }; /* longer than a match reaches back */

static uint8_t long_row[LONG_BYTES];
static uint8_t long_block[LONG_BLOCK_BYTES];
static uint8_t expected[LONG_BYTES];

/* Stretches of every kind of sequence: noise, patterns of any short period, what stood some way before,
 * runs of one byte; of lengths that are usual and of such as need more bytes to tell. */
static void paint_long(size_t bytes, uint64_t seed)
{
    size_t at = 0;
    for (uint64_t draw = seed; at < bytes; draw++) {
        const uint64_t mix = stk_mix64(draw);
        const size_t length = mix % 8 == 0 ? mix / 8 % 2000 + 1 : mix / 8 % 40 + 1;
        const size_t distance = mix % 3 == 0 ? mix / 64 % 40 + 1 : mix / 64 % LONG_BYTES + 1;
        const bool copied = mix % 5 != 0 && distance <= at;
        for (size_t i = 0; i < length && at < bytes; i++, at++)
            long_row[at] = copied ? long_row[at - distance] : (uint8_t)stk_mix64(draw + i);
    }
}

/* Decode, and compare with the oracle: a row that is given out is the right one. */
static int decode_long(struct stk_codec_run *run, size_t bytes, size_t row_bytes)
{
    const int rc = stk_codec_run(run, long_block, bytes);
    const enum stk_lz4_verdict verdict = stk_lz4_reference(long_block, bytes, expected, row_bytes);
    cr_assert(rc == STOKER_OK || rc == STOKER_ECORRUPT);
    if (rc == STOKER_OK && verdict != STK_LZ4_OFFSET_0) {
        cr_assert_eq(verdict, STK_LZ4_WHOLE);
        cr_assert_arr_eq(run->row, expected, row_bytes);
    }
    return rc;
}

Test(codec_lz4, long_rows_come_back_as_they_went)
{
    static const size_t sizes[] = { 4095, 4096, 4097, 5000, 65535, 65536, LONG_BYTES };
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            paint_long(sizes[s], 1000 * s + seed);
            const size_t bytes = stk_lz4_pack(long_row, sizes[s], seed % 2 == 0 ? 0 : 9, long_block,
                                              sizeof(long_block));
            cr_assert_gt(bytes, 0);
            struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, sizes[s]);
            cr_assert_eq(decode_long(&run, bytes, sizes[s]), STOKER_OK);
            cr_assert_arr_eq(run.row, long_row, sizes[s]);
            stk_codec_run_close(&run);
        }
    stk_test_check_leaks();
}

Test(codec_lz4, damage_to_long_blocks_is_refused_or_gives_what_the_format_says)
{
    enum { BYTES = 6000 };
    paint_long(BYTES, 77);
    const size_t bytes = stk_lz4_pack(long_row, BYTES, 9, long_block, sizeof(long_block));
    cr_assert_gt(bytes, 1000);
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, BYTES);
    for (size_t size = 0; size < bytes; size++)
        cr_assert_eq(decode_long(&run, size, BYTES), STOKER_ECORRUPT, "%zu of %zu", size, bytes);
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        long_block[bit / 8] ^= (uint8_t)(1U << bit % 8);
        refused += decode_long(&run, bytes, BYTES) != STOKER_OK;
        long_block[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_gt(refused, 1000);
    stk_codec_run_close(&run);
    stk_test_check_leaks();
}

/* Each offset that is short of a whole copy, each length around those that need more bytes. */
Test(codec_lz4, short_offsets_and_long_lengths_repeat_as_they_should)
{
    static uint8_t one[5200];
    const size_t row_bytes = sizeof(one);
    for (size_t offset = 1; offset <= 40; offset++)
        for (size_t match = 4; match < 60; match++) {
            const size_t literals = 40;
            size_t at = 0;
            long_block[at++] = 0xF0 | (uint8_t)(match - 4 < 15 ? match - 4 : 15);
            long_block[at++] = (uint8_t)(literals - 15);
            for (size_t i = 0; i < literals; i++)
                long_block[at++] = (uint8_t)stk_mix64(i);
            long_block[at++] = (uint8_t)offset;
            long_block[at++] = 0;
            if (match - 4 >= 15)
                long_block[at++] = (uint8_t)(match - 4 - 15);
            const size_t rest = row_bytes - literals - match;
            long_block[at++] = 0xF0;
            size_t left = rest - 15;
            for (; left >= 255; left -= 255)
                long_block[at++] = 255;
            long_block[at++] = (uint8_t)left;
            for (size_t i = 0; i < rest; i++)
                long_block[at++] = (uint8_t)i;
            struct stk_codec_run run = stk_codec_run_open(&stk_codec_lz4, row_bytes);
            cr_assert_eq(decode_long(&run, at, row_bytes), STOKER_OK, "%zu %zu", offset, match);
            stk_codec_run_close(&run);
        }
    stk_test_check_leaks();
}

Test(codec_lz4, ratios_that_cannot_be_are_refused_unread)
{
    /* never written to: the sizes alone must decide */
    const stoker_encoded in = { .bytes = block, .size = 4 };
    stoker_error error = { 0 };
    cr_assert_eq(stk_codec_lz4.decode(NULL, NULL, &in, NULL, (size_t)INT32_MAX, &error),
                 STOKER_ECORRUPT);
    cr_assert_eq(stk_codec_lz4.decode(NULL, NULL, &in, NULL, (size_t)1 << 40, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "2^31"));
    stk_test_check_leaks();
}

#endif
