/* test_zstd.c - Zstandard frames: written by hand and by libzstd, unpacked alike; damaged ones survived. */
#include "loader/codec/zstd.h"

#include <criterion/criterion.h>

#include "loader/base/rng.h"
#include "support/codec_run.h"
#include "support/leaks.h"

#ifndef STOKER_HAVE_ZSTD

CleanTest(codec_zstd, a_build_without_zstd_says_so)
{
    cr_assert_not(stk_zstd_present());
    cr_assert_eq(stk_zstd_bound(100), 0);
    cr_assert_eq(stk_zstd_pack("a", 1, 1, NULL, 0), 0);
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_zstd, 1);
    cr_assert_eq(stk_codec_run(&run, (const uint8_t *)"\x28\xb5\x2f\xfd", 4), STOKER_ENOTSUP);
    stk_codec_run_close(&run);
}

#else

enum { ROW_BYTES_MAX = 5000, FRAME_BYTES_MAX = 6000 };

static uint8_t row[ROW_BYTES_MAX];
static uint8_t frame[FRAME_BYTES_MAX];

/* Runs and noise by turns. */
static void paint(size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)((i / 50) % 3 == 0 ? stk_mix64(seed + i) : i / 10);
}

/* RFC 8878, 3.1.1: magic number, descriptor (one segment), size, blocks: stored, and one byte repeated. */
CleanTest(codec_zstd, frames_written_by_hand_are_read)
{
    static const uint8_t stored[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 5,   0x29,
                                      0,    0,    'h',  'e',  'l',  'l', 'o' };
    static const uint8_t repeated[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 200, 0x43, 0x06, 0, 'a' };
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_zstd, 5);
    cr_assert_eq(stk_codec_run(&run, stored, sizeof(stored)), STOKER_OK);
    cr_assert_arr_eq(run.row, "hello", 5);
    stk_codec_run_close(&run);
    run = stk_codec_run_open(&stk_codec_zstd, 200);
    cr_assert_eq(stk_codec_run(&run, repeated, sizeof(repeated)), STOKER_OK);
    for (size_t i = 0; i < 200; i++)
        cr_assert_eq(run.row[i], 'a');
    stk_codec_run_close(&run);
}

CleanTest(codec_zstd, rows_come_back_as_they_went)
{
    static const size_t sizes[] = { 1, 2, 12, 13, 64, 784, 1000, ROW_BYTES_MAX };
    cr_assert(stk_zstd_present());
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int level = 1; level <= STK_ZSTD_LEVEL_MAX; level += 6) {
            paint(sizes[s], s);
            cr_assert_leq(stk_zstd_bound(sizes[s]), FRAME_BYTES_MAX);
            const size_t bytes = stk_zstd_pack(row, sizes[s], level, frame, sizeof(frame));
            cr_assert_gt(bytes, 0);
            cr_assert_leq(bytes, stk_zstd_bound(sizes[s]));
            struct stk_codec_run run = stk_codec_run_open(&stk_codec_zstd, sizes[s]);
            cr_assert_eq(stk_codec_run(&run, frame, bytes), STOKER_OK, "%s", run.error.message);
            cr_assert_arr_eq(run.row, row, sizes[s]);
            stk_codec_run_close(&run);
        }
}

CleanTest(codec_zstd, a_frame_that_does_not_fit_is_not_written)
{
    paint(1000, 3);
    const size_t bytes = stk_zstd_pack(row, 1000, 1, frame, sizeof(frame));
    cr_assert_gt(bytes, 0);
    cr_assert_eq(stk_zstd_pack(row, 1000, 1, frame, bytes / 2), 0);
    cr_assert_eq(stk_zstd_bound(SIZE_MAX), 0);
}

CleanTest(codec_zstd, prefixes_tails_and_other_row_sizes_are_refused)
{
    paint(784, 5);
    const size_t bytes = stk_zstd_pack(row, 784, 3, frame, sizeof(frame) - 1);
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_zstd, 784);
    for (size_t size = 0; size < bytes; size++)
        cr_assert_eq(stk_codec_run(&run, frame, size), STOKER_ECORRUPT, "%zu of %zu", size, bytes);
    frame[bytes] = 0;
    cr_assert_eq(stk_codec_run(&run, frame, bytes + 1), STOKER_ECORRUPT);
    stk_codec_run_close(&run);
    for (size_t other = 780; other < 790; other++) {
        run = stk_codec_run_open(&stk_codec_zstd, other);
        cr_assert_eq(stk_codec_run(&run, frame, bytes), other == 784 ? STOKER_OK : STOKER_ECORRUPT);
        if (other != 784)
            cr_assert_not_null(strstr(run.error.message, "does not have the bytes of the row"));
        stk_codec_run_close(&run);
    }
}

CleanTest(codec_zstd, flipped_bits_give_an_error_or_a_whole_row)
{
    paint(784, 7);
    const size_t bytes = stk_zstd_pack(row, 784, 9, frame, sizeof(frame));
    struct stk_codec_run run = stk_codec_run_open(&stk_codec_zstd, 784);
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        frame[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int rc = stk_codec_run(&run, frame, bytes);
        cr_assert(rc == STOKER_OK || rc == STOKER_ECORRUPT);
        refused += rc != STOKER_OK;
        frame[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_gt(refused, 50);
    stk_codec_run_close(&run);
}

CleanTest(codec_zstd, ratios_that_cannot_be_are_refused_unread)
{
    /* never written to: the sizes alone must decide */
    const stoker_encoded in = { .bytes = frame, .size = 4 };
    stoker_error error = { 0 };
    cr_assert_eq(stk_codec_zstd.decode(NULL, NULL, &in, NULL, (size_t)INT32_MAX, &error),
                 STOKER_ECORRUPT);
}

CleanTest(codec_zstd, a_scratch_without_memory_is_refused)
{
    void *scratch = NULL;
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_eq(stk_codec_zstd.open(NULL, &scratch), STOKER_ENOMEM);
    cr_assert(stk_fault_disarm());
    cr_assert_null(scratch);
}

#endif
