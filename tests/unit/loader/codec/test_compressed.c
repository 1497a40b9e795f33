/* test_compressed.c - rows as LZ4 blocks and Zstandard frames: packed and unpacked alike, damaged
 * ones survived. One table, one set of tests.
 */
#include "loader/base/rng.h"
#include "loader/codec/lz4.h"
#include "loader/codec/zstd.h"
#include "support/leaks.h"
#include "support/runs/codec_run.h"

static const struct kind {
    const stoker_codec *codec;
    bool (*present)(void);
    size_t (*bound)(size_t row_bytes);
    size_t (*pack)(const void *row, size_t row_bytes, int level, void *to, size_t bytes_max);
    int level_min, level_max, level_step;
} kinds[] = {
    { &stk_codec_lz4, stk_lz4_present, stk_lz4_bound, stk_lz4_pack, 0, 12, 3 },
    { &stk_codec_zstd, stk_zstd_present, stk_zstd_bound, stk_zstd_pack, 1, STK_ZSTD_LEVEL_MAX, 6 },
};

#define EACH_KIND(kind)                                                                            \
    for (const struct kind *kind = kinds; kind < kinds + sizeof(kinds) / sizeof(kinds[0]); kind++) \
        if (kind->present())

enum { ROW_BYTES_MAX = 5000, PACKED_BYTES_MAX = 6000 };

static uint8_t row[ROW_BYTES_MAX];
static uint8_t packed[PACKED_BYTES_MAX];

/* Pack runs and noise by turns; returns the packed bytes. */
static size_t pack(const struct kind *kind, size_t bytes, uint64_t seed, int level)
{
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)((i / 50) % 3 == 0 ? stk_mix64(seed + i) : i / 10);
    cr_assert_leq(kind->bound(bytes), PACKED_BYTES_MAX);
    const size_t size = kind->pack(row, bytes, level, packed, sizeof(packed));
    cr_assert_gt(size, 0);
    cr_assert_leq(size, kind->bound(bytes));
    return size;
}

CleanTest(codec_compressed, a_build_without_the_library_says_so)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (kinds[k].present())
            continue;
        cr_assert_eq(kinds[k].bound(100), 0);
        cr_assert_eq(kinds[k].pack("a", 1, 1, NULL, 0), 0);
        struct stk_codec_run run = stk_codec_run_open(kinds[k].codec, 1);
        cr_assert_eq(stk_codec_run(&run, (const uint8_t *)"\x10qqq", 4), STOKER_ENOTSUP);
        stk_codec_run_close(&run);
    }
}

CleanTest(codec_compressed, rows_come_back_as_they_went)
{
    static const size_t sizes[] = { 1, 2, 12, 13, 64, 784, 1000, ROW_BYTES_MAX };
    EACH_KIND(kind)
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int level = kind->level_min; level <= kind->level_max; level += kind->level_step) {
            const size_t bytes = pack(kind, sizes[s], s, level);
            struct stk_codec_run run = stk_codec_run_open(kind->codec, sizes[s]);
            cr_assert_eq(stk_codec_run(&run, packed, bytes), STOKER_OK, "%s", run.error.message);
            cr_assert_arr_eq(run.row, row, sizes[s]);
            stk_codec_run_close(&run);
        }
}

CleanTest(codec_compressed, what_does_not_fit_is_not_written)
{
    EACH_KIND(kind)
    {
        const size_t bytes = pack(kind, 1000, 3, kind->level_min);
        cr_assert_eq(kind->pack(row, 1000, kind->level_min, packed, bytes / 2), 0);
        cr_assert_eq(kind->bound(SIZE_MAX), 0);
    }
}

CleanTest(codec_compressed, prefixes_and_other_row_sizes_are_refused)
{
    EACH_KIND(kind)
    {
        const size_t bytes = pack(kind, 784, 5, kind->level_min);
        struct stk_codec_run run = stk_codec_run_open(kind->codec, 784);
        for (size_t size = 0; size < bytes; size++)
            cr_assert_eq(stk_codec_run(&run, packed, size), STOKER_ECORRUPT, "%s: %zu of %zu",
                         kind->codec->name, size, bytes);
        packed[bytes] = 0;
        cr_assert_eq(stk_codec_run(&run, packed, bytes + 1), STOKER_ECORRUPT);
        stk_codec_run_close(&run);
        for (size_t other = 780; other < 790; other++) {
            run = stk_codec_run_open(kind->codec, other);
            cr_assert_eq(stk_codec_run(&run, packed, bytes),
                         other == 784 ? STOKER_OK : STOKER_ECORRUPT);
            stk_codec_run_close(&run);
        }
    }
}

CleanTest(codec_compressed, flipped_bits_give_an_error_or_a_whole_row)
{
    EACH_KIND(kind)
    {
        const size_t bytes = pack(kind, 784, 7, 9);
        struct stk_codec_run run = stk_codec_run_open(kind->codec, 784);
        unsigned refused = 0;
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            packed[bit / 8] ^= (uint8_t)(1U << bit % 8);
            const int rc = stk_codec_run(&run, packed, bytes);
            cr_assert(rc == STOKER_OK || rc == STOKER_ECORRUPT);
            refused += rc != STOKER_OK;
            packed[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        cr_assert_gt(refused, 50);
        stk_codec_run_close(&run);
    }
}

CleanTest(codec_compressed, ratios_that_cannot_be_are_refused_unread)
{
    /* never written to: the sizes alone must decide */
    const stoker_encoded in = { .bytes = packed, .size = 4 };
    stoker_error error = { 0 };
    EACH_KIND(kind)
    cr_assert_eq(stk_decode_row(kind->codec, NULL, &in, NULL, (size_t)INT32_MAX, &error),
                 STOKER_ECORRUPT);
    cr_assert_eq(stk_decode_row(&stk_codec_lz4, NULL, &in, NULL, (size_t)1 << 40, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "2^31"));
}

CleanTest(codec_compressed, a_scratch_without_memory_is_refused)
{
    EACH_KIND(kind)
    {
        void *scratch = NULL;
        if (kind->codec->open == NULL)
            continue;
        stk_fault_arm(STK_FAULT_MEMORY, 1);
        cr_assert_eq(kind->codec->open(NULL, false, &scratch), STOKER_ENOMEM);
        cr_assert(stk_fault_disarm());
        cr_assert_null(scratch);
    }
}

/* RFC 8878, 3.1.1: magic number, descriptor (one segment), size, blocks: stored, and one byte
 * repeated. */
CleanTest(codec_compressed, zstd_frames_written_by_hand_are_read)
{
    static const uint8_t stored[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 5,   0x29,
                                      0,    0,    'h',  'e',  'l',  'l', 'o' };
    static const uint8_t repeated[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 200, 0x43, 0x06, 0, 'a' };
    if (!stk_zstd_present())
        return;
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
